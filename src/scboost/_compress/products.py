"""Products with the leaf indicators of one tree: compiled, or NumPy's where the kernels are missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._compress.types import Float64, LeafIndex
from scboost._engine.native import is_available

if is_available():
    from scboost._engine.native import _native


def leaf_index(leaf: npt.NDArray[np.integer[Any]], n_leaves: int) -> LeafIndex:
    """Return leaf numbers in the smallest type: a pass over many trees takes as long as reading them."""
    return np.ascontiguousarray(leaf, dtype=np.min_scalar_type(n_leaves))


def add_values(leaf: LeafIndex, values: Float64, out: Float64) -> None:
    """Add the value of each sample's leaf to `out`."""
    if is_available():
        _native.add_leaf_values(leaf, values, out)
    else:
        out += values.take(leaf)


def sum_by_leaf(leaf: LeafIndex, u: Float64, n_leaves: int) -> Float64:
    """Return the sum of u over the samples of each leaf."""
    if not is_available():
        return np.asarray(np.bincount(leaf, weights=u, minlength=n_leaves), dtype=np.float64)
    out = np.empty(n_leaves)
    _native.sum_by_leaf(leaf, np.ascontiguousarray(u, dtype=np.float64), out)
    return out


def sum_by_pair(leaf: LeafIndex, other: LeafIndex, weight: Float64, shape: tuple[int, int]) -> Float64:
    """Return the sums of weights by leaf of one tree and leaf of another one, which have `shape` leaves."""
    if not is_available():
        pair = leaf.astype(np.intp) * shape[1] + other
        sums = np.bincount(pair, weights=weight, minlength=shape[0] * shape[1])
        return np.asarray(sums, dtype=np.float64).reshape(shape)
    out = np.empty(shape)
    _native.sum_by_pair(leaf, other, np.ascontiguousarray(weight, dtype=np.float64), out)
    return out


def move_and_sum(
    leaf: LeafIndex,
    change: Float64,
    residual: Float64,
    hessian: Float64,
    other: LeafIndex,
    n_other: int,
    moved: Float64,
) -> Float64:
    """Add the change of each sample's leaf to `moved`; return sums of ``residual - hessian * moved`` by `other`."""
    if not is_available():
        moved += change.take(leaf)
        return sum_by_leaf(other, residual - hessian * moved, n_other)
    out = np.empty(n_other)
    _native.move_and_sum(leaf, change, residual, hessian, other, moved, out)
    return out
