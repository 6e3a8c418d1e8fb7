"""Model features: what the trees split on, made of the columns of X."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from scboost._arrays import BoolArray, Float64Array, FloatArray, IntArray

ORDER = "order"
"""The one part of an ordered categorical column: the position of a category in the order."""

Categories = tuple[tuple[str, ...] | None, ...]


def name_of(column: str, part: str) -> str:
    """Name of a model feature that is a part of a column."""
    return f"{column}: {part}"


@dataclass(frozen=True)
class ModelFeatures:
    """The features that the trees split on: the columns of X, with each date replaced by its parts.

    Attributes
    ----------
    parts : tuple of (tuple of str or None)
        For each column of X the names of its parts, or None if the column is a feature as it is.
    columns : tuple of str or None
        Names of the columns of X, if it had any.
    column_categories : tuple of (tuple of str or None) or None
        Categories of each column that is categorical and not ordered.
    """

    parts: tuple[tuple[str, ...] | None, ...]
    columns: tuple[str, ...] | None
    column_categories: Categories | None

    @cached_property
    def sources(self) -> IntArray:
        """Column of X of each feature, of shape (n,)."""
        counts = [1 if parts is None else len(parts) for parts in self.parts]
        return np.repeat(np.arange(len(counts)), counts)

    @property
    def n(self) -> int:
        """Number of features."""
        return len(self.sources)

    @cached_property
    def names(self) -> tuple[str, ...] | None:
        """Names of the features: "sold: year" for a part of the column "sold"."""
        if self.columns is None:
            return None
        return tuple(
            name
            for column, parts in zip(self.columns, self.parts, strict=True)
            for name in ([column] if parts is None else [name_of(column, part) for part in parts])
        )

    @cached_property
    def categories(self) -> Categories | None:
        """For each feature None if it is numeric, or its categories; None if no feature is categorical."""
        known = self.column_categories
        return None if known is None else tuple(known[j] for j in self.sources)

    @property
    def categorical(self) -> BoolArray | None:
        """Which features are categorical, or None if none is."""
        return None if self.categories is None else np.array([texts is not None for texts in self.categories])

    @property
    def max_categories(self) -> int:
        """Largest number of categories of a feature."""
        return max((len(texts) for texts in self.categories or () if texts is not None), default=0)

    def positions(self, columns: Iterable[int]) -> list[int]:
        """Positions of the features that are made of some columns of X."""
        return np.flatnonzero(np.isin(self.sources, list(columns))).tolist()

    def tables(self, integer: Iterable[int]) -> list[list[str] | npt.NDArray[np.int64] | None] | None:
        """Categories of each feature as XGBoost stores them; those at some positions as integers."""
        if self.categories is None:
            return None
        tables: list[list[str] | npt.NDArray[np.int64] | None] = [
            None if texts is None else list(texts) for texts in self.categories
        ]
        for j in integer:
            if self.categories[j]:
                tables[j] = np.array(self.categories[j], dtype=np.int64)
        return tables

    def by_column(self, values: FloatArray) -> Float64Array:
        """Add up values of the features, of shape (..., n), over those of the same column of X."""
        starts = np.searchsorted(self.sources, np.arange(len(self.parts)))
        return np.asarray(np.add.reduceat(values, starts, axis=-1), dtype=np.float64)


def column_names(names: Sequence[str], parts: Sequence[tuple[str, ...] | None]) -> tuple[str, ...]:
    """Names of the columns of X, of which features with these names are made."""
    columns, i = [], 0
    for own in parts:
        columns.append(names[i] if own is None else names[i].removesuffix(name_of("", own[0])))
        i += 1 if own is None else len(own)
    return tuple(columns)
