"""Tables of mixed columns as one float matrix with category codes.

pandas, polars and pyarrow tables give the same matrix for the same values: categories are numbered by the sorted
text of the values seen in training. A value that was not seen then, and a missing one, is NaN, which every tree
knows how to route.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating]


def is_table(X: Any) -> bool:
    """Whether X has named, typed columns (pandas, polars, pyarrow) rather than one array type."""
    return _library(X) is not None


@dataclass
class Columns:
    """What was learnt about the columns of a training table.

    Attributes
    ----------
    categories : list of (dict or None)
        For each column None if it is numeric, or the code of each category by its text.
    """

    categories: list[dict[str, int] | None]

    @property
    def categorical(self) -> npt.NDArray[np.bool_] | None:
        """Which columns are categorical, or None if none is."""
        mask = np.array([c is not None for c in self.categories])
        return mask if mask.any() else None

    @classmethod
    def learn(cls, X: Any) -> Columns:
        """Learn column kinds and categories from a training table."""
        categories: list[dict[str, int] | None] = []
        for name in _names(X):
            factors = _factorize(X, name)
            if factors is None:
                categories.append(None)
            else:
                levels, codes = factors
                seen = np.unique(codes[codes >= 0])
                texts = sorted({levels[i] for i in seen})
                categories.append({text: code for code, text in enumerate(texts)})
        return cls(categories)

    def encode(self, X: Any) -> FloatArray:
        """Turn a table with these columns into a float32 matrix of shape (n, d)."""
        matrix = np.empty(X.shape, dtype=np.float32)
        for j, (name, known) in enumerate(zip(_names(X), self.categories, strict=True)):
            factors = _factorize(X, name)
            if (factors is None) != (known is None):
                now, then = ("numeric", "categorical") if factors is None else ("categorical", "numeric")
                raise ValueError(
                    f"Column {name!r} is {now} but was {then} in fit; give it the type it had then."
                )
            if factors is None or known is None:
                matrix[:, j] = _numbers(X, name)
            else:
                levels, codes = factors
                table = np.array([known.get(level, np.nan) for level in levels] + [np.nan], dtype=np.float32)
                matrix[:, j] = table[codes]  # a missing value has code -1, the last entry
        return matrix


def _library(X: Any) -> str | None:
    root = type(X).__module__.partition(".")[0]
    return root if root in {"pandas", "polars", "pyarrow"} and len(getattr(X, "shape", ())) == 2 else None


def _names(X: Any) -> list[Hashable]:
    return list(X.column_names if _library(X) == "pyarrow" else X.columns)


def _factorize(X: Any, name: Hashable) -> tuple[list[str], npt.NDArray[np.intp]] | None:
    """Texts of the distinct values and the number of each row's (-1 if missing), or None for a numeric column."""
    column = X[name]
    library = _library(X)
    if library == "pandas":
        if column.dtype.kind in "biuf" or (column.dtype.kind == "O" and hasattr(column.dtype, "numpy_dtype")):
            return None
        if isinstance(column.dtype, np.dtype) and column.dtype.kind != "O":
            raise TypeError(_unsupported(name, column.dtype))
        factor = column.astype("category").cat
        return [str(c) for c in factor.categories], factor.codes.to_numpy().astype(np.intp)
    if library == "polars":
        import polars as pl

        if column.dtype.is_numeric() or column.dtype == pl.Boolean:
            return None
        if column.dtype not in (pl.Categorical, pl.Enum, pl.String):
            raise TypeError(_unsupported(name, column.dtype))
        column = column.cast(pl.String)
        levels = column.drop_nulls().unique().to_list()
        codes = column.replace_strict(levels, range(len(levels)), default=-1, return_dtype=pl.Int64)
        return levels, codes.to_numpy().astype(np.intp)
    import pyarrow as pa

    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return None
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise TypeError(_unsupported(name, kind))
    factor = column.combine_chunks().dictionary_encode()
    return [str(v) for v in factor.dictionary.to_pylist()], factor.indices.fill_null(-1).to_numpy().astype(
        np.intp
    )


def _numbers(X: Any, name: Hashable) -> FloatArray:
    column = X[name]
    if _library(X) == "pandas":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if _library(X) == "polars":
        import polars as pl

        return np.asarray(column.cast(pl.Float64).to_numpy())
    import pyarrow as pa

    return np.asarray(column.cast(pa.float64()).to_numpy())


def _unsupported(name: Hashable, dtype: Any) -> str:
    return f"Column {name!r} has type {dtype}; use a numeric, boolean, string or categorical column."
