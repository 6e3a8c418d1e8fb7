"""How X becomes a float matrix: feature names, kinds, categories, sparsity.

The same values give the same matrix in every table library: categories are numbered by the sorted text of the values
seen in training. A category that was not seen in training, and a missing value, is NaN, which every split handles.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import check_array

from scboost._arrays import ArrayLike, BoolArray, FloatArray
from scboost._data.tables import Kind, Series, Table, as_table, factorize, kind_of, numbers

Matrix = Any
"""A dense float matrix, or a CSR matrix or array."""


@dataclass(frozen=True)
class InputRules:
    """What a model accepts as X, and as what it is encoded.

    Attributes
    ----------
    dtype : type
        float32 for XGBoost's trees, float64 for other learners.
    allow_nan, allow_sparse : bool
        Whether missing values and sparse matrices are accepted.
    """

    dtype: type[np.floating] = np.float32
    allow_nan: bool = True
    allow_sparse: bool = True


@dataclass(frozen=True)
class Encoder:
    """Immutable description of the features of a training set, which encodes other data in the same way.

    Attributes
    ----------
    n_features : int
        Number of features.
    feature_names : tuple of str or None
        Their names, if X had any.
    categories : tuple of (tuple of str or None) or None
        For each feature None if it is numeric, or its categories in the order of their codes; None if no feature is
        categorical.
    integer_categories : frozenset of int
        Positions of the features whose categories are integers.
    sparse : bool
        Whether the training set was sparse: zeros are missing values then.
    rules : InputRules
        What is accepted.
    kinds : tuple of str
        Kind of each column of the table that this was learned from; empty if it was no table. Part of learning only:
        not compared and not stored.
    """

    n_features: int
    feature_names: tuple[str, ...] | None = None
    categories: tuple[tuple[str, ...] | None, ...] | None = None
    integer_categories: frozenset[int] = frozenset()
    sparse: bool = False
    rules: InputRules = field(default_factory=InputRules)
    kinds: tuple[Kind, ...] = field(default=(), compare=False, repr=False)

    # --- learning --------------------------------------------------------------------------------------------------

    @classmethod
    def learn(cls, X: ArrayLike, rules: InputRules | None = None, like: Encoder | None = None) -> Encoder:
        """Learn the features of a training set, or of a part of it.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n, d)
            The training set.
        rules : InputRules, optional
            What is accepted.
        like : Encoder, optional
            Encoder of a model that is to be continued, whose categories are kept.
        """
        rules = rules or InputRules()
        table = as_table(X)
        if table is None:
            return cls(_n_columns(X), sparse=sparse.issparse(X), rules=rules)
        known = None if like is None else like.categories
        for name in table.feature_names or ():
            _check_unicode(name, f"The name of column {name!r}")
        kinds = tuple(kind_of(name, column) for name, column in table)
        if known is not None and len(known) == len(kinds):
            categories, integer = known, like.integer_categories  # type: ignore[union-attr]
        else:
            categories, integer = _learn_categories(table, kinds)
        return cls(
            len(kinds),
            table.feature_names,
            categories if any(texts is not None for texts in categories) else None,
            integer,
            rules=rules,
            kinds=kinds,
        )

    @property
    def form(self) -> str:
        """What kind of X this was learned from."""
        return "table" if self.kinds else "sparse matrix" if self.sparse else "array"

    @classmethod
    def merge(cls, parts: Sequence[Encoder]) -> Encoder:
        """Join what was learned from the partitions of a training set.

        Raises
        ------
        ValueError
            If they differ in the number, the names or the kinds of their features.
        """
        first = parts[0]
        for i, other in enumerate(parts):
            if not first.has_same_features(other):
                raise ValueError(
                    f"The partitions of X differ: the first is {_described(first)}, number {i} is {_described(other)}."
                )
        if len(parts) == 1 or not first.kinds:
            return first
        merged: list[tuple[str, ...] | None] = []
        integer = set()
        for j in range(first.n_features):
            kinds = {other.kinds[j] for other in parts} - {"empty"}
            if len(kinds) > 1:
                name = j if first.feature_names is None else first.feature_names[j]
                raise ValueError(f"Column {name!r} is numeric in some partitions and categorical in others.")
            found = [other.categories[j] or () if other.categories else () for other in parts]
            merged.append(tuple(sorted({text for texts in found for text in texts})) if "category" in kinds else None)
            filled = [j in other.integer_categories for other, texts in zip(parts, found, strict=True) if texts]
            if filled and all(filled):
                integer.add(j)
        return replace(
            first,
            categories=tuple(merged) if any(texts is not None for texts in merged) else None,
            integer_categories=frozenset(integer),
            kinds=tuple(_merged_kind(other.kinds[j] for other in parts) for j in range(first.n_features)),
        )

    def has_same_features(self, other: Encoder) -> bool:
        """Whether two partitions agree in form, number and names of their features."""
        return (self.form, self.n_features, self.feature_names) == (other.form, other.n_features, other.feature_names)

    # --- what it says ------------------------------------------------------------------------------------------------

    @property
    def categorical(self) -> BoolArray | None:
        """Which features are categorical, or None if none is."""
        return None if self.categories is None else np.array([texts is not None for texts in self.categories])

    @property
    def max_categories(self) -> int:
        """Largest number of categories of a feature."""
        return max((len(texts) for texts in self.categories or () if texts is not None), default=0)

    @property
    def tables(self) -> list[list[str] | npt.NDArray[np.int64] | None] | None:
        """Categories of each feature as XGBoost stores them; integers as such."""
        if self.categories is None:
            return None
        tables: list[list[str] | npt.NDArray[np.int64] | None] = [
            None if texts is None else list(texts) for texts in self.categories
        ]
        for j in self.integer_categories:
            if self.categories[j]:
                tables[j] = np.array(self.categories[j], dtype=np.int64)
        return tables

    @cached_property
    def _codes(self) -> list[dict[str, int] | None]:
        known = self.categories or (None,) * self.n_features
        return [None if texts is None else {text: code for code, text in enumerate(texts)} for texts in known]

    # --- encoding ----------------------------------------------------------------------------------------------------

    def encode(
        self, X: ArrayLike, *, owner: str = "the model", check_finite: bool = True, min_samples: int = 1
    ) -> Matrix:
        """Check X and return it as a float matrix (dense, or CSR if the training set was sparse) with category codes.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n, d)
            With the features of the training set, in the same order.
        owner : str
            Name of the estimator, for messages.
        check_finite : bool, default=True
            Whether to look for infinite values.
        min_samples : int, default=1
            Least number of samples.
        """
        table = as_table(X, objects=self.categories is not None)
        if table is None and self.categories is not None:
            raise TypeError(
                f"X is a {type(X).__name__} without strings but the model was fitted on data with categorical columns; "
                "pass a table with the same columns, or an array with the same strings."
            )
        self._check_names(None if table is None else table.feature_names, owner)
        checks: dict[str, Any] = {
            "ensure_all_finite": ("allow-nan" if self.rules.allow_nan else True) if check_finite else False,
            "ensure_min_samples": min_samples,
            "estimator": owner,
            "input_name": "X",
        }
        with np.errstate(invalid="ignore"):  # scikit-learn sums all values, which may include both infinities
            if table is not None:
                self._check_width(len(table.names), owner)
                matrix = check_array(self._encode_table(table), **checks)
            else:
                matrix = self._encode_array(X, checks)
                self._check_width(matrix.shape[1], owner)
        return self._as_in_training(matrix)

    def _encode_array(self, X: ArrayLike, checks: dict[str, Any]) -> Matrix:
        _refuse_other_types(X)
        accepted = "csr" if self.rules.allow_sparse else False
        types = [self.rules.dtype, np.float32, np.float64]
        return check_array(X, accept_sparse=accepted, dtype=types, **checks)

    def _encode_table(self, table: Table) -> FloatArray:
        matrix = np.empty((table.n_rows, self.n_features), dtype=self.rules.dtype)
        for j, ((name, column), known) in enumerate(zip(table, self._codes, strict=True)):
            with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite
                matrix[:, j] = _encode_column(name, column, known)
        return matrix

    def _as_in_training(self, matrix: Matrix) -> Matrix:
        """Give equal samples equal meaning, sparse or dense: if the training set was sparse, zeros are missing."""
        is_sparse: bool = sparse.issparse(matrix)
        if is_sparse and not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        if not self.sparse:
            return matrix.toarray() if is_sparse else matrix
        if not is_sparse:
            return sparse.csr_matrix(matrix)
        if not np.all(matrix.data):
            matrix = matrix.copy()
            matrix.eliminate_zeros()
        return matrix

    def _check_width(self, n: int, owner: str) -> None:
        if n != self.n_features:
            raise ValueError(f"X has {n} features, but {owner} is expecting {self.n_features} features as input.")

    def _check_names(self, names: tuple[str, ...] | None, owner: str) -> None:
        """Compare the names of the columns with those of the training set, as scikit-learn does."""
        expected = self.feature_names
        if names == expected:
            return
        if expected is None:
            warnings.warn(f"X has feature names, but {owner} was fitted without feature names", stacklevel=5)
            return
        if names is None:
            warnings.warn(
                f"X does not have valid feature names, but {owner} was fitted with feature names", stacklevel=5
            )
            return
        raise ValueError(_names_differ(names, expected))


def _merged_kind(kinds: Any) -> Kind:
    return next((kind for kind in kinds if kind != "empty"), "empty")


def _described(part: Encoder) -> str:
    names = "" if part.feature_names is None else f" with columns {list(part.feature_names)}"
    return f"{'an' if part.form == 'array' else 'a'} {part.form} of {part.n_features} features{names}"


def _names_differ(names: tuple[str, ...], expected: tuple[str, ...]) -> str:
    unexpected, missing = sorted(set(names) - set(expected)), sorted(set(expected) - set(names))
    message = "The feature names should match those that were passed during fit.\n"
    if unexpected:
        message += f"Feature names unseen at fit time:\n{_listed(unexpected)}"
    if missing:
        message += f"Feature names seen at fit time, yet now missing:\n{_listed(missing)}"
    if not unexpected and not missing:
        message += "Feature names must be in the same order as they were in fit.\n"
        places = [j for j, (now, then) in enumerate(zip(names, expected, strict=False)) if now != then]
        if places:
            j = places[0]
            message += (
                f"Column {j} is {names[j]!r} but was {expected[j]!r}; reorder the columns: "
                "X[list(model.feature_names_in_)].\n"
            )
    return message


def _listed(names: list[str], most: int = 5) -> str:
    more = "- ...\n" if len(names) > most else ""
    return "".join(f"- {name}\n" for name in names[:most]) + more


def _n_columns(X: ArrayLike) -> int:
    shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    return int(shape[1]) if len(shape) == 2 else 0  # anything else is refused when it is encoded


def _refuse_other_types(X: ArrayLike) -> None:
    """Refuse arrays whose values a conversion to float would silently change."""
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError("X is a masked array, whose mask would be ignored; pass X.filled(np.nan): NaN is missing.")
    dtype = getattr(X, "dtype", None)
    kind = dtype.kind if isinstance(dtype, np.dtype) else ""
    if kind and kind in "mM":
        raise TypeError(
            f"X has dtype {dtype}; dates and durations are not features. Convert them to numbers first, such as days "
            "since a reference date, with NaN for missing ones."
        )
    if kind and kind in "SV":
        raise ValueError(
            f"X is an array with dtype {dtype}; pass numbers, or strings (X.astype(str)) for categorical features."
        )


# --- categories ------------------------------------------------------------------------------------------------------


def _learn_categories(
    table: Table, kinds: tuple[Kind, ...]
) -> tuple[tuple[tuple[str, ...] | None, ...], frozenset[int]]:
    categories: list[tuple[str, ...] | None] = []
    integer = set()
    for j, ((name, column), kind) in enumerate(zip(table, kinds, strict=True)):
        if kind != "category":
            categories.append(None)
            continue
        levels, codes = factorize(column)
        texts = _texts(name, levels)
        seen = np.unique(codes[codes >= 0])
        for i in seen:
            _check_unicode(texts[i], f"The category {texts[i]!r} of column {name!r}")
        categories.append(tuple(sorted(texts[i] for i in seen)))
        if len(seen) and all(_is_integer(levels[i]) for i in seen):
            integer.add(j)
    return tuple(categories), frozenset(integer)


def _encode_column(name: Hashable, column: Series, codes: dict[str, int] | None) -> FloatArray | float:
    kind = kind_of(name, column)
    if kind == "empty":
        return np.nan
    if kind == "number":
        values = numbers(column)
        if codes is None or np.isnan(values).all():  # pandas gives a column without values a numeric type
            return values
    if (kind == "category") != (codes is not None):
        now, then = ("categorical", "numeric") if codes is None else ("numeric", "categorical")
        raise ValueError(f"Column {name!r} is {now} but was {then} in fit; convert it to the type it had then.")
    levels, positions = factorize(column)
    table = np.array([(codes or {}).get(text, np.nan) for text in _texts(name, levels)] + [np.nan])
    return np.asarray(table[positions])  # a missing value has position -1, the last entry


def _texts(name: Hashable, levels: list[Any]) -> list[str]:
    """Text of each category of a column, by which categories are the same in every table library."""
    by_text: dict[str, Any] = {}
    for level in levels:
        other = by_text.setdefault(_text(level), level)
        if other is not level:
            raise ValueError(
                f"Column {name!r} has the categories {other!r} and {level!r}, which are both written {_text(level)!r}; "
                "use one type for all categories of a column."
            )
    return list(by_text)


def _text(value: Any) -> str:
    """Text of a category; 1.0 is 1, because a missing value turns integers into floats."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _check_unicode(text: str, what: str) -> None:
    """Reject halves of surrogate pairs, which no file, table library or language of an export can hold."""
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"{what} is not valid Unicode: it has a lone surrogate, as undecodable bytes give; rename it.")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and -(2**63) <= int(value) < 2**63
