"""How X becomes a float matrix: feature names, kinds, categories, dates, sparsity.

The same values give the same matrix in every table library: categories are numbered by the sorted text of the values
seen in training, ordered ones in their order, and dates are replaced by their parts. A category that was not seen in
training, and a missing value, is NaN, which every split handles.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from scboost._arrays import ArrayLike, FloatArray
from scboost._data.categories import check_unicode, codes_of, learn_categories
from scboost._data.dates import Parts, Span, date_parts
from scboost._data.model_features import ORDER, Categories, ModelFeatures, name_of
from scboost._data.tables import Kind, Series, Table, as_table, factorize, instants, kind_of, numbers

Matrix = Any
"""A dense float matrix, or a CSR matrix or array."""
_NAMED: dict[Kind, str] = {
    "number": "numeric",
    "category": "categorical",
    "ordinal": "ordered categorical",
    "date": "a date",
}


@dataclass(frozen=True)
class InputRules:
    """Rules of accepted input.

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
        Number of columns of X; see ``features`` for what the trees split on.
    feature_names : tuple of str or None
        Their names, if X had any.
    categories : tuple of (tuple of str or None) or None
        For each column None if it is not categorical, or its categories in the order of their codes; None if no column
        is categorical.
    integer_categories : frozenset of int
        Positions of the columns whose categories are integers.
    sparse : bool
        Whether the training set was sparse: zeros are missing values then.
    rules : InputRules
        Rules of accepted input.
    ordinal : frozenset of int
        Positions of the columns whose categories are ordered: their codes are numbers.
    dates : tuple of (tuple of str or None) or None
        For each column None if it holds no dates, or the names of the parts that replace it; None if there are no
        dates.
    kinds : tuple of str
        Kind of each column of the table that this was learned from; empty if it was no table. Part of learning only:
        not compared and not stored.
    spans : tuple of (Span or None)
        Dates of each column that this was learned from. Part of learning only.
    """

    n_features: int
    feature_names: tuple[str, ...] | None = None
    categories: tuple[tuple[str, ...] | None, ...] | None = None
    integer_categories: frozenset[int] = frozenset()
    sparse: bool = False
    rules: InputRules = field(default_factory=InputRules)
    ordinal: frozenset[int] = frozenset()
    dates: tuple[Parts | None, ...] | None = None
    kinds: tuple[Kind, ...] = field(default=(), compare=False, repr=False)
    spans: tuple[Span | None, ...] = field(default=(), compare=False, repr=False)

    # --- learning --------------------------------------------------------------------------------------------------

    @classmethod
    def learn(
        cls, X: ArrayLike, rules: InputRules | None = None, like: Encoder | None = None, *, use_order: bool = True
    ) -> Encoder:
        """Learn the features of a training set, or of a part of it.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n, d)
            The training set.
        rules : InputRules, optional
            Rules of accepted input.
        like : Encoder, optional
            Encoder of a model that is to be continued, whose categories and parts of dates are kept.
        use_order : bool, default=True
            Whether ordered categories are numbers; if not, they are categories like others.
        """
        rules = rules or InputRules()
        table = as_table(X)
        if table is None:
            return cls(_n_columns(X), sparse=sparse.issparse(X), rules=rules)
        for name in table.feature_names or ():
            check_unicode(name, f"The name of column {name!r}")
        kinds = tuple(kind_of(name, column) for name, column in table)
        if not use_order:
            kinds = tuple("category" if kind == "ordinal" else kind for kind in kinds)
        like = like if like is not None and like.n_features == len(kinds) else None
        if like is not None and like.categories is not None:
            categories: Categories = like.categories
            integer, ordinal = like.integer_categories, like.ordinal
        else:
            categories, integer = learn_categories(table, kinds)
            ordinal = frozenset(j for j, kind in enumerate(kinds) if kind == "ordinal")
        spans = tuple(
            Span.of(instants(column)) if kind == "date" else None
            for column, kind in zip(table.columns, kinds, strict=True)
        )
        encoder = cls(
            len(kinds),
            table.feature_names,
            categories if any(texts is not None for texts in categories) else None,
            integer,
            rules=rules,
            ordinal=ordinal,
            dates=_parts(spans) if like is None or like.dates is None else like.dates,
            kinds=kinds,
            spans=spans,
        )
        encoder.check_new_names()
        return encoder

    @property
    def form(self) -> str:
        """Type of the training input."""
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
        categories: list[tuple[str, ...] | None] = []
        spans: list[Span | None] = []
        kinds: list[Kind] = []
        integer, ordinal = set(), set()
        for j in range(first.n_features):
            kind = first.merged_kind(j, [other.kinds[j] for other in parts])
            kinds.append(kind)
            found = [other.categories[j] or () if other.categories else () for other in parts]
            dates = [span for other in parts if (span := other.spans[j]) is not None]
            spans.append(Span.merge(dates) if dates else None)
            if kind == "ordinal":
                categories.append(first.merged_order(j, {texts for texts in found if texts}))
                ordinal.add(j)
            else:
                texts = sorted({text for texts in found for text in texts})
                categories.append(tuple(texts) if kind == "category" else None)
            filled = [j in other.integer_categories for other, texts in zip(parts, found, strict=True) if texts]
            if filled and all(filled):
                integer.add(j)
        return replace(
            first,
            categories=tuple(categories) if any(texts is not None for texts in categories) else None,
            integer_categories=frozenset(integer),
            ordinal=frozenset(ordinal),
            dates=_parts(spans),
            kinds=tuple(kinds),
            spans=tuple(spans),
        )

    def merged_kind(self, j: int, kinds: Sequence[Kind]) -> Kind:
        """Return the kind that a column has in all partitions."""
        found = [kind for kind in _NAMED if kind in kinds]
        if len(found) > 1:
            one, other = (_NAMED[kind] for kind in found[:2])
            raise ValueError(f"Column {self.column_name(j)!r} is {one} in some partitions and {other} in others.")
        return found[0] if found else "empty"

    def merged_order(self, j: int, orders: set[tuple[str, ...]]) -> tuple[str, ...]:
        """Return the order of the categories of a column, which must be the same in all partitions."""
        if len(orders) > 1:
            one, other = (list(order) for order in sorted(orders)[:2])
            raise ValueError(
                f"Column {self.column_name(j)!r} has the ordered categories {one} in some partitions and {other} in "
                "others; declare the same categories in the same order."
            )
        return orders.pop() if orders else ()

    def has_same_features(self, other: Encoder) -> bool:
        """Whether two partitions agree in form, number and names of their features."""
        return (self.form, self.n_features, self.feature_names) == (other.form, other.n_features, other.feature_names)

    # --- properties --------------------------------------------------------------------------------------------------

    @cached_property
    def features(self) -> ModelFeatures:
        """The features that the trees split on."""
        parts: list[Parts | None] = list(self.dates or (None,) * self.n_features)
        known = self.categories
        for j in self.ordinal:
            parts[j] = (ORDER,)
        if known is not None and self.ordinal:
            known = tuple(None if j in self.ordinal else texts for j, texts in enumerate(known))
        nominal = known if known is not None and any(texts is not None for texts in known) else None
        return ModelFeatures(tuple(parts), self.feature_names, nominal)

    @property
    def column_kinds(self) -> tuple[Kind, ...]:
        """Kind of each column of X: "number", "category", "ordinal" or "date"."""
        dates, known = self.dates or (None,) * self.n_features, self.categories or (None,) * self.n_features
        return tuple(
            "date" if dates[j] else "ordinal" if j in self.ordinal else "number" if known[j] is None else "category"
            for j in range(self.n_features)
        )

    @property
    def integer_features(self) -> frozenset[int]:
        """Positions of the features whose categories are integers."""
        return frozenset(self.features.positions(self.integer_categories - self.ordinal))

    def check_new_names(self) -> None:
        """Raise ValueError if a part of a column has the name of another column."""
        if self.feature_names is None or not (self.ordinal or self.dates):
            return
        for column, parts in zip(self.feature_names, self.features.parts, strict=True):
            for name in (name_of(column, part) for part in parts or ()):
                if name in self.feature_names:
                    raise ValueError(
                        f"Column {name!r} has the name of a feature that is made of column {column!r}; rename it."
                    )

    def column_name(self, j: int) -> Hashable:
        """Name of a column of X, or its position if it has none."""
        return j if self.feature_names is None else self.feature_names[j]

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
        needs_table = self.categories is not None or self.dates is not None
        table = as_table(X, objects=needs_table)
        if table is None and needs_table:
            raise TypeError(self._array_refused(X))
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

    def _array_refused(self, X: ArrayLike) -> str:
        if self.categories is not None:
            return (
                f"X is a {type(X).__name__} without strings but the model was fitted on data with categorical columns; "
                "pass a table with the same columns, or an array with the same strings."
            )
        column = self.column_kinds.index("date")
        return (
            f"X is a {type(X).__name__} without dates but the model was fitted on data with dates in column "
            f"{self.column_name(column)!r}; pass a table with the same columns, or an array with the same dates."
        )

    def _encode_array(self, X: ArrayLike, checks: dict[str, Any]) -> Matrix:
        _refuse_other_types(X)
        accepted = "csr" if self.rules.allow_sparse else False
        types = [self.rules.dtype, np.float32, np.float64]
        return check_array(X, accept_sparse=accepted, dtype=types, **checks)

    def _encode_table(self, table: Table) -> FloatArray:
        matrix = np.empty((table.n_rows, self.features.n), dtype=self.rules.dtype)
        dates, kinds, place = self.dates or (None,) * self.n_features, self.column_kinds, 0
        for (name, column), known, parts, kind in zip(table, self._codes, dates, kinds, strict=True):
            width = 1 if parts is None else len(parts)
            with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite
                matrix[:, place : place + width] = _encode_column(name, column, kind, known, parts)
            place += width
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


def _parts(spans: Sequence[Span | None]) -> tuple[Parts | None, ...] | None:
    """Return the parts of the dates in each column; None without dates."""
    return tuple(None if span is None else span.parts for span in spans) if any(spans) else None


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
    if kind == "m":
        raise TypeError(
            f"X has dtype {dtype}; durations are not features. Convert them to numbers first, such as hours, with NaN "
            "for missing ones."
        )
    if kind and kind in "SV":
        raise ValueError(
            f"X is an array with dtype {dtype}; pass numbers, or strings (X.astype(str)) for categorical features."
        )


def _encode_column(
    name: Hashable, column: Series, then: Kind, codes: dict[str, int] | None, parts: Parts | None
) -> FloatArray | float:
    """Return the features of a column, of shape (n, 1) or (n, n_parts)."""
    now = kind_of(name, column)
    if now == "empty":
        return np.nan
    if now == "number":
        values = numbers(column)
        if then == "number" or np.isnan(values).all():  # pandas gives a column without values a numeric type
            return values[:, None]
    if now == "date" and parts is not None:
        return date_parts(instants(column), parts)
    if codes is None or now not in {"category", "ordinal"}:
        if now == "date" and np.isnat(instants(column)).all():
            return np.nan
        raise ValueError(
            f"Column {name!r} is {_NAMED[now]} but was {_NAMED[then]} in fit; convert it to the type it had then."
        )
    return codes_of(name, *factorize(column), codes)[:, None]
