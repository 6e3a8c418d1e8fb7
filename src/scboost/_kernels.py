"""Compiled passes over a block of rows, for which Numba must be installed: the same numbers, to the bit, as NumPy's.

Each does in one pass what takes NumPy several, and without Python's lock, so that threads do not wait for each other.
Exponentials, logarithms, and sums that NumPy and BLAS do in an order of their own are left to them. Arguments are
contiguous vectors of one length, but for tables and leaf values; those that are set come last.
"""

# ruff: noqa: FURB136 - comparisons say what becomes of NaN, min and max do not

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, TypeVar

import numpy as np
from numba import njit, types

_T = TypeVar("_T")
_ONE, _ZERO, _MIN_HESSIAN = np.float32(1), np.float32(0), np.float32(1e-16)
_SHORT = 1024  # rows of which a kernel keeps something in cache
_f4, _f8 = types.float32, types.float64
LEAF_TYPES = (np.dtype(np.uint8), np.dtype(np.uint16))
"""Types of leaf numbers that the kernels take."""


def _kernel(signatures: Any) -> Callable[[_T], _T]:
    compiled: Callable[[_T], _T] = njit(signatures, nogil=True, cache=True, error_model="numpy")  # 1 / 0 is infinite
    return compiled


def _in(kind: Any) -> Any:
    return types.Array(kind, 1, "C", readonly=True)


_LEAF_TYPES = (types.uint8, types.uint16)


@_kernel(types.void(*[_in(_f4)] * 3, *[_f4[::1]] * 4))
def logistic(y: Any, F: Any, e: Any, gradient: Any, hessian: Any, larger: Any, losses: Any) -> None:
    """Set the derivatives where ``e = exp(-F)``, the larger probability, and the losses without its logarithm."""
    for i in range(len(F)):
        p = _ONE / (e[i] + _ONE)
        rest = _ONE - p
        c = rest * p
        gradient[i] = p - y[i]
        hessian[i] = _MIN_HESSIAN if c < _MIN_HESSIAN else c
        larger[i] = p if p > rest else rest
        losses[i] = (F[i] if F[i] > _ZERO else _ZERO) - y[i] * F[i]


@_kernel(
    [
        types.void(_in(_f4), _f4, _in(types.uint32), types.uint32, _in(_f4), scale, _f4[::1])
        for scale in (types.none, _in(_f4))
    ],
)
def noise(hessian: Any, size: Any, keys: Any, stream: Any, table: Any, scale: Any, out: Any) -> None:
    """Look up the normal number of each draw by 12 bits; see :meth:`scboost._core.sampling.Draws.noise`."""
    place = np.empty(_SHORT, dtype=np.uint32)
    for start in range(0, len(keys), _SHORT):
        key, c, z = keys[start : start + _SHORT], hessian[start : start + _SHORT], out[start : start + _SHORT]
        for i in range(len(key)):
            x = key[i] ^ stream
            x = np.uint32(np.uint32(x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D))
            x = np.uint32(np.uint32(x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B))
            place[i] = np.uint32(x ^ (x >> np.uint32(16))) >> np.uint32(20)
        for i in range(len(key)):  # apart from the other two, which are done several rows at a time
            z[i] = table[place[i]]
            if scale is not None:
                z[i] *= scale[start + i]
        for i in range(len(key)):
            z[i] = np.sqrt(c[i]) * z[i] * size


@_kernel(
    [_f4(_in(_f4), _in(_f4), _f4, _f4, _in(u), _in(_f4), _f8, _in(_f8), _in(u), u[::1]) for u in _LEAF_TYPES],
)
def look_up(
    margin: Any,
    before: Any,
    low: Any,
    per_step: Any,
    leaf_at: Any,
    values: Any,
    error: Any,
    middles: Any,
    order: Any,
    leaf: Any,
) -> Any:
    """Set the leaf of each row by the change of its margin; return the largest distance of a row from its leaf."""
    last = np.float32(len(leaf_at) - 1)
    worst = _ZERO
    change, cell = np.empty(_SHORT, dtype=np.float32), np.empty(_SHORT, dtype=np.uint32)
    for start in range(0, len(margin), _SHORT):
        after, then = margin[start : start + _SHORT], before[start : start + _SHORT]
        out = leaf[start : start + _SHORT]
        for i in range(len(after)):  # apart from the look-up: several rows at a time
            change[i] = after[i] - then[i]
            place = (change[i] - low) * per_step
            place = place if place > _ZERO else _ZERO
            cell[i] = np.int32(place if place < last else last)
        for i in range(len(after)):
            found = leaf_at[cell[i]]
            distance = abs(change[i] - values[found])
            if distance > error:
                found = order[np.searchsorted(middles, change[i])]
                distance = abs(change[i] - values[found])
            out[i] = found
            worst = distance if distance > worst else worst
    return worst


@_kernel(
    [types.void(_in(u), _in(f), _in(f), _f8[:, ::1]) for u, f in product(_LEAF_TYPES, (_f4, _f8))],
)
def leaf_sums(leaf: Any, a: Any, b: Any, sums: Any) -> None:
    """Add two vectors up by leaf, row by row."""
    for i in range(len(leaf)):
        sums[0, leaf[i]] += a[i]
        sums[1, leaf[i]] += b[i]


@_kernel(
    [types.void(_in(u), _in(_f4), _f4, h, _f4[::1]) for u, h in product(_LEAF_TYPES, (types.none, _f4[::1]))],
)
def add(leaf: Any, values: Any, eta: Any, h: Any, F: Any) -> None:
    """Add the prediction of each row to the scores, and keep it in h if there is one."""
    for i in range(len(F)):
        prediction = values[leaf[i]]
        if h is not None:
            h[i] = prediction
        F[i] += eta * prediction


@_kernel([types.void(_in(u), _in(_f4), _f4[::1]) for u in _LEAF_TYPES])
def take(leaf: Any, values: Any, out: Any) -> None:
    """Set the prediction of each row."""
    for i in range(len(out)):
        out[i] = values[leaf[i]]
