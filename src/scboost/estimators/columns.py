"""Tables of mixed columns as one float matrix with category codes.

pandas, polars and pyarrow tables give the same matrix for the same values: categories are numbered by the sorted
text of the values seen in training. A value that was not seen then, and a missing one, is NaN, which every tree
knows how to route.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating]
Kind = Literal["number", "category", "empty"]


def is_table(X: Any) -> bool:
    """Whether X has named, typed columns (pandas, polars, pyarrow) rather than one array type."""
    if _library(X) == "polars" and hasattr(X, "collect"):
        raise TypeError("X is a polars LazyFrame, whose rows do not exist yet; call its collect() first.")
    return _library(X) is not None and len(getattr(X, "shape", ())) == 2


def readable_by_scikit_learn(X: Any) -> Any:
    """Return the table, or a stand-in with its shape and names where this scikit-learn cannot read the names.

    scikit-learn before 1.9 asks for the data frame interchange protocol, which polars 2 does not have.
    """
    if _library(X) != "polars" or hasattr(X, "__dataframe__"):
        return X
    import sklearn

    major, minor = sklearn.__version__.split(".")[:2]
    return X if (int(major), int(minor)) >= (1, 9) else _Header(X.shape, list(X.columns))


@dataclass
class _Header:
    shape: tuple[int, int]
    names: list[str]

    def __dataframe__(self) -> _Header:
        return self

    def column_names(self) -> list[str]:
        return self.names


@dataclass
class Columns:
    """What was learnt about the columns of a training table.

    Attributes
    ----------
    categories : list of (dict or None)
        For each column None if it is numeric, or the code of each category by its text.
    whole : frozenset of int
        Numbers of the columns whose categories are whole numbers.
    """

    categories: list[dict[str, int] | None]
    whole: frozenset[int] = frozenset()

    @property
    def tables(self) -> list[list[str] | npt.NDArray[np.int64] | None]:
        """Categories of each column in the order of their codes, or None; whole numbers as such."""
        tables: list[list[str] | npt.NDArray[np.int64] | None] = []
        for j, known in enumerate(self.categories):
            texts = None if known is None else list(known)
            tables.append(np.array(texts, dtype=np.int64) if texts and j in self.whole else texts)
        return tables

    @property
    def categorical(self) -> npt.NDArray[np.bool_] | None:
        """Which columns are categorical, or None if none is."""
        mask = np.array([c is not None for c in self.categories])
        return mask if mask.any() else None

    @property
    def most_categories(self) -> int:
        """How many categories the column with the most of them has."""
        return max((len(known) for known in self.categories if known is not None), default=0)

    @classmethod
    def learn(cls, X: Any) -> Columns:
        """Learn column kinds and categories from a training table."""
        categories: list[dict[str, int] | None] = []
        whole = set()
        for j, (name, column) in enumerate(_columns(X)):
            if _kind(name, column) == "category":
                levels, codes = _factorize(column)
                texts = _texts(name, levels)
                seen = np.unique(codes[codes >= 0])
                categories.append({text: code for code, text in enumerate(sorted(texts[i] for i in seen))})
                if len(seen) and all(_is_whole(levels[i]) for i in seen):
                    whole.add(j)
            else:
                categories.append(None)
        return cls(categories, frozenset(whole))

    def kinds(self, X: Any) -> list[Kind]:
        """Return the kind of each column of a table."""
        return [_kind(name, column) for name, column in _columns(X)]

    @classmethod
    def joined(cls, names: Sequence[Hashable], parts: Sequence[tuple[Columns, list[Kind]]]) -> Columns:
        """Join what was learnt from parts of a table; each comes with the kinds of its columns."""
        categories: list[dict[str, int] | None] = []
        whole = set()
        for j, name in enumerate(names):
            kinds = {kinds[j] for _, kinds in parts} - {"empty"}
            if len(kinds) > 1:
                raise ValueError(f"Column {name!r} is numeric in some partitions and categorical in others.")
            known = [part.categories[j] for part, _ in parts]
            texts = sorted({text for own in known for text in own or ()})
            categories.append({text: code for code, text in enumerate(texts)} if "category" in kinds else None)
            filled = [j in part.whole for part, _ in parts if part.categories[j]]
            if filled and all(filled):
                whole.add(j)
        return cls(categories, frozenset(whole))

    def encode(self, X: Any, dtype: npt.DTypeLike = np.float32) -> FloatArray:
        """Turn a table with these columns into a float matrix of shape (n, d).

        Parameters
        ----------
        X : table of shape (n, d)
            Columns may have changed their type, but not from numbers to categories or back.
        dtype : {float32, float64}
            Type of the matrix; what is too large for it becomes infinite.
        """
        matrix = np.empty(X.shape, dtype=dtype)
        for j, ((name, column), known) in enumerate(zip(_columns(X), self.categories, strict=True)):
            kind = _kind(name, column)
            if kind == "empty":
                matrix[:, j] = np.nan
            elif known is not None and kind == "number" and np.isnan(numbers := _numbers(column)).all():
                matrix[:, j] = numbers  # pandas gives a column without values the type of numbers
            elif (kind == "category") != (known is not None):
                now, then = ("categorical", "numeric") if known is None else ("numeric", "categorical")
                raise ValueError(f"Column {name!r} is {now} but was {then} in fit; give it the type it had then.")
            elif known is None:
                with np.errstate(over="ignore"):
                    matrix[:, j] = _numbers(column)
            else:
                levels, codes = _factorize(column)
                table = np.array([known.get(text, np.nan) for text in _texts(name, levels)] + [np.nan])
                matrix[:, j] = table[codes]  # a missing value has code -1, the last entry
        return matrix


def _library(X: Any) -> str | None:
    root = type(X).__module__.partition(".")[0]
    return root if root in {"pandas", "polars", "pyarrow"} else None


def _columns(X: Any) -> Iterator[tuple[Hashable, Any]]:
    """Name and values of each column, by position: names may repeat."""
    library = _library(X)
    if library == "pandas":
        return zip(X.columns, (_unwrapped(X.iloc[:, j]) for j in range(X.shape[1])), strict=True)
    if library == "polars":
        return zip(X.columns, X.iter_columns(), strict=True)
    return zip(X.schema.names, (X.column(j) for j in range(X.shape[1])), strict=True)


def _unwrapped(column: Any) -> Any:
    """Arrow's own column where pandas only holds one: pandas cannot factorise every kind of these."""
    import pandas as pd

    if isinstance(column.dtype, pd.ArrowDtype):
        import pyarrow as pa

        return pa.array(column)
    return column


def _kind(name: Hashable, column: Any) -> Kind:
    """Whether a column holds numbers, categories or nothing at all."""
    library = _library(column)
    if library == "pandas":
        kind, dtype = _pandas_kind(column), column.dtype
    elif library == "polars":
        kind, dtype = _polars_kind(column), column.dtype
    else:
        kind, dtype = _arrow_kind(column.type), column.type
    if kind is None:
        raise TypeError(
            f"Column {name!r} has type {dtype} and values that are neither numbers, booleans, strings nor categories; "
            "turn it into one of these, or leave it out."
        )
    return kind


def _pandas_kind(column: Any) -> Kind | None:
    import pandas as pd

    dtype: Any = column.dtype
    if isinstance(dtype, pd.CategoricalDtype | pd.StringDtype):
        return "category"
    if dtype.kind in "biuf":
        return "number"
    if dtype.kind == "O" and isinstance(dtype, np.dtype):
        inferred = pd.api.types.infer_dtype(column, skipna=True)
        if inferred in {"integer", "floating", "mixed-integer-float", "decimal", "boolean"}:
            return "number"
        return {"string": "category", "empty": "empty"}.get(inferred)  # type: ignore[return-value]
    return None


def _polars_kind(column: Any) -> Kind | None:
    import polars as pl

    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return "number"
    if column.dtype in (pl.Categorical, pl.Enum, pl.String):
        return "category"
    return "empty" if column.dtype == pl.Null else None


def _arrow_kind(dtype: Any) -> Kind | None:
    from pyarrow import types

    if any(test(dtype) for test in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)):
        return "number"
    if any(test(dtype) for test in (types.is_dictionary, types.is_string, types.is_large_string, types.is_string_view)):
        return "category"
    return "empty" if types.is_null(dtype) else None


def _factorize(column: Any) -> tuple[list[Any], npt.NDArray[np.intp]]:
    """Distinct values of a categorical column, and the number of each row's (-1 if missing)."""
    library = _library(column)
    if library == "pandas":
        factor = column.astype("category").cat
        return list(factor.categories), factor.codes.to_numpy().astype(np.intp)
    if library == "polars":
        import polars as pl

        column = column.cast(pl.String)
        levels = column.drop_nulls().unique().to_list()
        codes = column.replace_strict(levels, range(len(levels)), default=-1, return_dtype=pl.Int64)
        return levels, codes.to_numpy().astype(np.intp)
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    factor = (column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column).dictionary_encode()
    codes = factor.indices.fill_null(-1).to_numpy().astype(np.intp)
    return factor.dictionary.to_pylist(), codes


def _text(value: Any) -> str:
    """Text of a category; 1.0 is 1, because a missing value turns whole numbers into floats."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _texts(name: Hashable, levels: list[Any]) -> list[str]:
    """Texts of the categories of a column, which tell them apart in any table library."""
    by_text: dict[str, Any] = {}
    for level in levels:
        other = by_text.setdefault(_text(level), level)
        if other is not level:
            raise ValueError(
                f"Column {name!r} has the categories {other!r} and {level!r}, which are both written {_text(level)!r}; "
                "give all categories of a column one type."
            )
    return list(by_text)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and -(2**63) <= int(value) < 2**63


def _numbers(column: Any) -> FloatArray:
    library = _library(column)
    if library == "pandas":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if library == "polars":
        import polars as pl

        return np.asarray(column.cast(pl.Float64).to_numpy())
    import pyarrow as pa

    floats = column.cast(pa.float64(), safe=False)
    return np.asarray(floats.to_numpy(zero_copy_only=False) if isinstance(floats, pa.Array) else floats.to_numpy())
