"""Means, quantiles and standard errors over the samples of all workers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray, IntArray, Keys
from scboost._runtime.communicator import SINGLE_PROCESS, Communicator

_GROUPS = 256  # of samples, whose sums give the standard error of a mean


def weighted_mean(values: FloatArray, sample_weight: FloatArray | None, communicator: Communicator) -> float:
    """Return the mean over the samples of all workers; values and weights have shape (n,)."""
    if sample_weight is None:
        sums = [values.sum(dtype=np.float64), len(values)]
    else:
        sums = [np.multiply(values, sample_weight).sum(dtype=np.float64), sample_weight.sum(dtype=np.float64)]
    total, mass = communicator.sum(np.array(sums, dtype=np.float64))
    return float(total / mass)


def standard_errors(
    values: FloatArray,
    keys: Keys,
    sample_weight: FloatArray | None = None,
    communicator: Communicator = SINGLE_PROCESS,
) -> float:
    """Return the mean of a quantity in units of its standard error, over the samples of all workers; 0 if it is 0.

    The error is that of the sums over groups of samples. Samples with equal features share a group, so that repeating a
    sample is the same as giving it weight; the unit of the weights does not matter.

    Parameters
    ----------
    values : ndarray of shape (n,)
        The quantity.
    keys : ndarray of shape (n,)
        From :func:`scboost._data.hashing.row_keys`.
    sample_weight : ndarray of shape (n,), optional
        Sample weights.
    communicator : Communicator, optional
        The other workers.

    Examples
    --------
    >>> import numpy as np
    >>> from scboost._data.hashing import row_keys
    >>> X = np.random.default_rng(0).normal(size=(10_000, 1))
    >>> round(standard_errors(X[:, 0] + 0.05, row_keys(X)), 1)  # 0.05 is five times 1 / sqrt(10,000)
    5.5
    """
    groups = (keys % np.uint64(_GROUPS)).astype(np.intp)
    w = np.ones(len(keys)) if sample_weight is None else sample_weight.astype(np.float64)
    parts = [np.bincount(groups, weights=amounts, minlength=_GROUPS) for amounts in (values * w, w)]
    sums, masses = communicator.sum(np.array(parts))
    total = float(sums.sum())
    error = float(np.sqrt(np.sum((sums - total / masses.sum() * masses) ** 2)))
    return total / error if error > 0 else 0.0


def weighted_quantile(
    values: FloatArray, sample_weight: FloatArray | None, quantile: float, communicator: Communicator
) -> float:
    """Return the weighted quantile over the samples of all workers, by the mid-point rule."""
    one_group = np.zeros(len(values), dtype=np.intp)
    return float(grouped_quantiles(values, sample_weight, one_group, 1, quantile, communicator)[0])


def grouped_quantiles(
    values: FloatArray,
    sample_weight: FloatArray | None,
    group: IntArray,
    n_groups: int,
    quantile: float,
    communicator: Communicator,
) -> FloatArray:
    """Return the weighted quantile of each group over the samples of all workers, of shape (n_groups,).

    It lies where the cumulative weight reaches its share, by the mid-point rule: a sample of weight w behaves as w
    repeated samples. A group without weight gets 0.
    """
    if communicator.size > 1:
        return _quantiles_of_workers(values, sample_weight, group, n_groups, quantile, communicator)
    order = np.lexsort((values, group))
    e = np.asarray(values, dtype=np.float64)[order]
    w = np.ones(len(e)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[order]
    bounds = np.searchsorted(group[order], np.arange(n_groups + 1))
    found = np.zeros(n_groups)
    for j, (start, stop) in enumerate(pairwise(bounds)):
        if stop > start:
            cumulative = np.cumsum(w[start:stop])
            share = quantile * cumulative[-1]
            low = np.searchsorted(cumulative, share * (1 - 1e-12))
            high = np.searchsorted(cumulative, share * (1 + 1e-12), side="right")
            found[j] = (e[start + low] + e[start + min(high, stop - start - 1)]) / 2
    return found


def _quantiles_of_workers(
    values: FloatArray,
    sample_weight: FloatArray | None,
    group: IntArray,
    n_groups: int,
    quantile: float,
    communicator: Communicator,
) -> FloatArray:
    """Return exact quantiles over the samples of all workers.

    Radix selection: the bits of the quantiles are found eight at a time from counts of values with the same prefix.
    """
    codes = _ordered(values)
    width = codes.dtype.itemsize
    weight = np.ones(len(values)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    total = communicator.sum(np.bincount(group, weights=weight, minlength=n_groups).astype(np.float64))
    # The first value that reaches the share, and the first that exceeds it; up to rounding they are the same or next.
    targets = quantile * total * np.array([[1 - 1e-12], [1 + 1e-12]])
    targets[1] = np.minimum(targets[1], total * (1 - 1e-15))
    below = np.zeros((2, n_groups))
    known = np.zeros((2, n_groups), dtype=codes.dtype)
    for byte in range(width - 1, -1, -1):
        shift = codes.dtype.type(8 * byte)
        digit = (codes >> shift).astype(np.uint8)
        counts = np.zeros((2, n_groups, 256))
        for end in range(2):
            begins = (codes >> shift >> codes.dtype.type(8)) == known[end][group] if byte < width - 1 else slice(None)
            cells = group[begins].astype(np.intp) * 256 + digit[begins]
            counts[end] = np.bincount(cells, weights=weight[begins], minlength=n_groups * 256).reshape(-1, 256)
        up_to = below[:, :, None] + np.cumsum(communicator.sum(counts), axis=2)
        reached = up_to >= targets[:, :, None]
        reached[1] = up_to[1] > targets[1][:, None]
        first = np.where(reached.any(axis=2), reached.argmax(axis=2), 255)
        before = np.take_along_axis(up_to, np.maximum(first - 1, 0)[:, :, None], axis=2)[:, :, 0]
        below = np.where(first > 0, before, below)
        known = known << codes.dtype.type(8) | first.astype(codes.dtype)
    ends = _values(known, values.dtype).astype(np.float64)
    return np.where(total > 0, (ends[0] + ends[1]) / 2, 0.0)


def _ordered(values: FloatArray) -> npt.NDArray[Any]:
    """Map floating-point numbers to integers of the same order."""
    unsigned, top = _integers(values.dtype)
    codes: npt.NDArray[Any] = np.ascontiguousarray(values).view(unsigned)
    return np.where(codes & top, ~codes, codes | top)


def _values(codes: npt.NDArray[Any], dtype: npt.DTypeLike) -> FloatArray:
    _, top = _integers(np.dtype(dtype))
    return np.where(codes & top, codes & ~top, ~codes).view(dtype)


def _integers(dtype: np.dtype[Any]) -> tuple[type, Any]:
    unsigned = np.uint32 if dtype.itemsize == 4 else np.uint64
    return unsigned, unsigned(1) << unsigned(8 * dtype.itemsize - 1)
