"""Samples as a teacher takes them and as numbers: arrays, and tables of any library that narwhals knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from scipy import sparse

from scboost._compress.synthetic import Draw
from scboost._compress.types import Float64, Indices, Mask
from scboost.estimators.columns import Columns, is_table


@dataclass(frozen=True)
class Samples:
    """Samples in two forms.

    Attributes
    ----------
    X : ndarray or table of shape (n, d)
        As the teacher takes them.
    matrix : ndarray of shape (n, d)
        As numbers: categories by their codes, NaN is missing.
    columns : Columns or None
        How a table was encoded; None for an array.
    """

    X: Any
    matrix: Float64
    columns: Columns | None

    @classmethod
    def of(cls, X: Any, name: str = "X") -> Samples:
        """Check and encode what a user gave."""
        if sparse.issparse(X):
            raise TypeError(f"{name} is a sparse matrix; compress needs a dense array or a table: {name}.toarray().")
        if is_table(X):
            columns = Columns.learn(X)
            samples = cls(X, columns.encode(X, np.float64).astype(np.float64), columns)
        else:
            X = np.asarray(X)
            if X.ndim != 2 or X.dtype.kind not in "biuf":
                raise ValueError(
                    f"{name} must be a table or a 2-D array of numbers, got shape {X.shape} and dtype {X.dtype}; pass "
                    "categories as columns of a data frame."
                )
            samples = cls(X, X.astype(np.float64), None)
        if np.isinf(samples.matrix).any():
            raise ValueError(f"{name} has infinite values; replace them by finite or missing ones.")
        return samples

    def like(self, X: Any, name: str) -> Samples:
        """Encode other samples in the same way."""
        if (self.columns is not None) != is_table(X):
            raise TypeError(f"{name} is a {type(X).__name__}, but X is a {type(self.X).__name__}; give the same kind.")
        if self.columns is None:
            other = Samples.of(X, name)
        else:
            expected = _names(self.X)
            if _names(X) != expected:
                raise ValueError(f"{name} has the columns {_names(X)}, X has {expected}; give the same in this order.")
            other = Samples(X, self.columns.encode(X, np.float64).astype(np.float64), self.columns)
        if other.matrix.shape[1] != self.matrix.shape[1]:
            raise ValueError(f"{name} has {other.matrix.shape[1]} features, X has {self.matrix.shape[1]}.")
        return other

    def __len__(self) -> int:
        return len(self.matrix)

    @property
    def categorical(self) -> Mask:
        """Which features are categories, of shape (d,)."""
        mask = None if self.columns is None else self.columns.categorical
        return np.zeros(self.matrix.shape[1], dtype=bool) if mask is None else mask

    @property
    def names(self) -> list[str] | None:
        """Names of the features, if all are strings."""
        names = [] if self.columns is None else _names(self.X)
        return names if names and all(isinstance(name, str) for name in names) else None

    def take(self, rows: Indices) -> Samples:
        """Return some of the samples."""
        X = self.X[rows] if self.columns is None else nw.from_native(self.X, eager_only=True)[rows.tolist()].to_native()
        return replace(self, X=X, matrix=self.matrix[rows])

    def joined(self, draw: Draw) -> Samples:
        """Return synthetic samples made of these, in both forms."""
        values = draw.values(self.matrix)
        if self.columns is None:
            return replace(self, X=values.astype(self.X.dtype), matrix=values)
        frame = nw.from_native(self.X, eager_only=True)
        series = {}
        for j, name in enumerate(frame.columns):
            column = frame[name]
            if draw.noise[:, j].any():
                moved = nw.new_series(name, values[:, j], dtype=nw.Float64, backend=frame.implementation)
                series[name] = moved.cast(column.dtype)
            else:
                series[name] = column[draw.donor[:, j].tolist()]
        return replace(self, X=nw.from_dict(series, backend=frame.implementation).to_native(), matrix=values)


def _names(X: Any) -> list[str]:
    return list(nw.from_native(X, eager_only=True).columns)


Generator = Callable[[int, np.random.Generator], Any]
"""Draws samples: ``generator(n_samples, rng)`` returns an array or a table like X."""
