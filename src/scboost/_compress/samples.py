"""Samples as a teacher takes them and as numbers: arrays, and tables of any library that narwhals knows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from scipy import sparse

from scboost._compress.synthetic import Draw
from scboost._compress.types import Float64, Indices, Mask
from scboost._data.encoder import Encoder, InputRules
from scboost._data.tables import as_table


@dataclass(frozen=True)
class Samples:
    """Samples in two forms.

    Attributes
    ----------
    X : ndarray or table of shape (n, d)
        As the teacher takes them.
    matrix : ndarray of shape (n, d)
        As numbers: categories by their codes, NaN is missing.
    encoder : Encoder
        The features.
    is_table : bool
        Whether X is a table.
    """

    X: Any
    matrix: Float64
    encoder: Encoder
    is_table: bool

    @classmethod
    def of(cls, X: Any, encoder: Encoder | None = None) -> Samples:
        """Check and encode what a user gave.

        Parameters
        ----------
        X : array, sparse matrix or table of shape (n, d)
            Samples.
        encoder : Encoder, optional
            The features as the teacher knows them; learned from X by default.
        """
        if sparse.issparse(X) and (encoder is None or not encoder.sparse):
            raise TypeError("X is a sparse matrix; compress needs a dense array or a table: pass X.toarray().")
        is_table = as_table(X) is not None
        if not is_table and not sparse.issparse(X):
            X = np.asarray(X)
            if X.ndim != 2 or X.dtype.kind not in "biuf":
                raise ValueError(
                    f"X must be a table or a 2-D array of numbers, got shape {X.shape} and dtype {X.dtype}; pass "
                    "categories as columns of a data frame."
                )
        if encoder is None:
            encoder = Encoder.learn(X, use_order=False)
            if encoder.dates is not None:
                column = encoder.column_name(encoder.column_kinds.index("date"))
                raise TypeError(
                    f"Column {column!r} of X holds dates, which compress supports in models of scboost only; wrap the "
                    "model in a function of numbers, such as days since a reference date."
                )
        matrix = _encode(encoder, X, "X")
        return cls(matrix if encoder.sparse else X, matrix, encoder, is_table)

    def like(self, X: Any, name: str) -> Samples:
        """Encode other samples in the same way."""
        if self.is_table != (as_table(X) is not None):
            raise TypeError(f"{name} is a {type(X).__name__}, but X is a {type(self.X).__name__}; pass the same kind.")
        X = X if self.is_table or sparse.issparse(X) else np.asarray(X)
        if X.shape[1] != self.encoder.n_features:
            raise ValueError(f"{name} has {X.shape[1]} features, X has {self.encoder.n_features}.")
        matrix = _encode(self.encoder, X, name)
        return replace(self, X=matrix if self.encoder.sparse else X, matrix=matrix)

    def __len__(self) -> int:
        return len(self.matrix)

    @property
    def categorical(self) -> Mask:
        """Which features are categories, of shape (d,)."""
        mask = self.encoder.features.categorical
        return np.zeros(self.matrix.shape[1], dtype=bool) if mask is None else mask

    def take(self, rows: Indices) -> Samples:
        """Return some of the samples."""
        X = nw.from_native(self.X, eager_only=True)[rows.tolist()].to_native() if self.is_table else self.X[rows]
        return replace(self, X=X, matrix=self.matrix[rows])

    def joined_encoded(self, draw: Draw) -> Samples:
        """Return synthetic samples made of these as numbers only, without their table."""
        values = draw.values(self.matrix)
        return replace(self, X=values, matrix=values, is_table=False)

    def joined(self, draw: Draw) -> Samples:
        """Return synthetic samples made of these, in both forms."""
        values = draw.values(self.matrix)
        if not self.is_table:
            return replace(self, X=values.astype(self.X.dtype), matrix=values)
        rows = draw.donor[:, 0].tolist()
        if nw.dependencies.is_pandas_like_dataframe(self.X):  # by position: names may repeat, or be numbers
            table = self.X.iloc[rows].reset_index(drop=True)
            for j in range(values.shape[1]):
                column = self.X.iloc[:, j].iloc[draw.donor[:, j]].reset_index(drop=True)
                table.isetitem(j, column + draw.noise[:, j] if draw.noise[:, j].any() else column)
            return replace(self, X=table, matrix=values)
        frame = nw.from_native(self.X, eager_only=True)
        columns = []
        for j, name in enumerate(frame.columns):
            column = frame[name][draw.donor[:, j].tolist()]
            if draw.noise[:, j].any():
                moved = nw.new_series(name, values[:, j], dtype=nw.Float64, backend=frame.implementation)
                column = moved.cast(column.dtype)
            columns.append(column)
        return replace(self, X=frame[rows].with_columns(*columns).to_native(), matrix=values)


def _encode(encoder: Encoder, X: Any, name: str) -> Float64:
    """Return samples as numbers in double precision; what a sparse matrix does not store is missing."""
    encoded = replace(encoder, rules=InputRules(dtype=np.float64)).encode(X, check_finite=False)
    if encoder.sparse:
        rows, columns, stored = sparse.find(encoded)
        matrix = np.full(encoded.shape, np.nan)
        matrix[rows, columns] = stored
    else:
        matrix = np.asarray(encoded, dtype=np.float64)
    if np.isinf(matrix).any():
        raise ValueError(f"{name} has infinite values; replace them by finite or missing ones.")
    return matrix
