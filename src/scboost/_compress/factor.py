"""Cholesky factor of the normal matrix of all leaves, extended by one tree at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from scboost._compress.products import leaf_index, sum_by_leaf, sum_by_pair
from scboost._compress.types import Float64, LeafIndex

_MOST_LEAVES = 8192


class LeafFactor:
    """Block Cholesky factor of ``Z' C Z + ridge I`` for the leaf indicators Z of the trees of one output.

    Products of leaf indicators are counts of samples by pairs of leaves, so that a block of the normal matrix is one
    weighted count. A new tree adds one block of rows to the factor and changes nothing else: the factor of T
    trees costs what a single factorization at the end would.

    Parameters
    ----------
    weight : ndarray of shape (n,)
        Diagonal of C.
    ridge : float
        Added to the diagonal.
    max_leaves : int
        Trees beyond this many leaves count as if no sample was in a leaf of theirs and in one of another tree: memory
        grows with the square of the number of leaves.
    dtype : dtype, default=float64
        Of the factor; float32 is enough for a preconditioner, and takes half the time.
    """

    def __init__(
        self,
        weight: Float64,
        ridge: float,
        max_leaves: int = _MOST_LEAVES,
        dtype: npt.DTypeLike = np.float64,
    ) -> None:
        self._weight, self._ridge, self._max_leaves, self._dtype = weight, ridge, max_leaves, dtype
        self._leaf: list[LeafIndex] = []
        self._sizes: list[int] = []
        self._rows: list[Float64] = []  # of shape (leaves of the tree, leaves of all trees before)
        self._inverses: list[Float64] = []  # of the corners, which are lower triangular

    def add(self, leaf: npt.NDArray[np.integer[Any]], n_leaves: int) -> None:
        """Add a tree, given by the leaf of each sample."""
        leaf = leaf_index(leaf, n_leaves)
        n_before = sum(self._sizes)
        coupled = n_before if n_before + n_leaves <= self._max_leaves else 0
        row = np.empty((n_leaves, coupled), dtype=self._dtype)
        start = 0
        for other, size, before, inverse in zip(self._leaf, self._sizes, self._rows, self._inverses, strict=True):
            if start == coupled:
                break
            counts = sum_by_pair(leaf, other, self._weight, (n_leaves, size))
            block = counts.astype(self._dtype) - row[:, :start] @ before.T
            row[:, start : start + size] = block @ inverse.T
            start += size
        mass = sum_by_leaf(leaf, self._weight, n_leaves)
        # Leaves that others span have nothing but the ridge left, below which rounding errors must stay.
        corner = cholesky_above(np.diag(mass + self._ridge) - row.astype(np.float64) @ row.T, self._ridge / 2)
        inverted = solve_triangular(corner, np.eye(n_leaves), lower=True, check_finite=False)
        self._inverses.append(inverted.astype(self._dtype))
        self._rows.append(row)
        self._leaf.append(leaf)
        self._sizes.append(n_leaves)

    def solve(self, right: Float64) -> Float64:
        """Solve ``(Z' C Z + ridge I) x = right``."""
        x = right.astype(self._dtype)
        ends = np.cumsum([0, *self._sizes]).tolist()
        for start, end, row, inverse in zip(ends[:-1], ends[1:], self._rows, self._inverses, strict=True):
            x[start:end] = inverse @ (x[start:end] - row @ x[: row.shape[1]])
        for i in range(len(self._sizes) - 1, -1, -1):
            start, end, row = ends[i], ends[i + 1], self._rows[i]
            x[start:end] = x[start:end] @ self._inverses[i]
            x[: row.shape[1]] -= x[start:end] @ row
        return x.astype(np.float64)


def cholesky_above(matrix: Float64, least: float) -> Float64:
    """Return the Cholesky factor; if rounding left none, that of the matrix with eigenvalues of at least `least`."""
    try:
        return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        eigenvalues, vectors = np.linalg.eigh(matrix)
        root = vectors * np.sqrt(np.maximum(eigenvalues, least))
        return np.asarray(np.linalg.qr(root.T, mode="r"), dtype=np.float64).T
