"""What the workers of a fit add up.

Rows may be spread over several workers that all run the same loop, each on its own rows. What they must share is
small: sums and largest values over all rows, and now and then a short message. All workers make the same calls in the
same order. Without other workers a sum is what was given, and costs nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray, IntArray, Keys

_SLICE = 1 << 20  # contents that are exchanged at once


class WorkerError(RuntimeError):
    """Another worker could not go on."""


class Workers(ABC):
    """The workers that share a fit.

    Attributes
    ----------
    rank : int
        Number of this worker, from 0.
    size : int
        Number of workers.
    round : int
        Round that they are in, for messages; 0 before the first.
    """

    rank: int = 0
    size: int = 1
    round: int = 0

    def __init__(self) -> None:
        self._waiting: list[FloatArray] = []

    @abstractmethod
    def sum(self, values: FloatArray) -> FloatArray:
        """Return the sums over the workers, of the shape given, in float64."""

    @abstractmethod
    def max(self, values: FloatArray) -> FloatArray:
        """Return the largest values over the workers, of the shape given, in float64."""

    @abstractmethod
    def gather(self, value: Any) -> list[Any]:
        """Return the values of all workers, in the order of their ranks."""

    def sum_later(self, values: FloatArray) -> Callable[[], FloatArray]:
        """Return a function that returns the sums; the first such call adds up everything that waits, at once."""
        self._waiting.append(np.asarray(values, dtype=np.float64))
        waiting, place = self._waiting, len(self._waiting) - 1

        def read() -> FloatArray:
            if self._waiting is waiting:
                self._waiting = []
                sums = self.sum(np.concatenate([part.ravel() for part in waiting]))
                ends = np.cumsum([part.size for part in waiting])
                for i, (part, end) in enumerate(zip(waiting, ends, strict=True)):
                    waiting[i] = sums[end - part.size : end].reshape(part.shape)
            return waiting[place]

        return read


class _Alone(Workers):
    """One process has all rows."""

    def sum(self, values: FloatArray) -> FloatArray:
        return values

    def max(self, values: FloatArray) -> FloatArray:
        return values

    def gather(self, value: Any) -> list[Any]:
        return [value]

    def sum_later(self, values: FloatArray) -> Callable[[], FloatArray]:
        return lambda: values


_ALONE = _Alone()
_current: ContextVar[Workers | None] = ContextVar("workers", default=None)


def workers() -> Workers:
    """Return the workers that share the fit of the calling thread."""
    return _current.get() or _ALONE


@contextmanager
def sharing(with_others: Workers) -> Iterator[None]:
    """Share what the calling thread does meanwhile with other workers."""
    token = _current.set(with_others)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def agreed() -> Iterator[None]:
    """Let an error of one worker be the error of all: nobody waits for one that has given up.

    What is done meanwhile must share nothing.
    """
    others = workers()
    if others.size == 1:
        yield
        return
    problem: Exception | None = None
    try:
        yield
    except Exception as error:  # noqa: BLE001 - raised again below
        problem = error
    said = others.gather(None if problem is None else (type(problem), str(problem)))
    if problem is not None:
        raise problem
    for rank, other in enumerate(said):
        if other is not None:
            kind, text = other
            raise kind(text) if kind in (ValueError, TypeError) else WorkerError(f"Worker {rank}: {text}")


def weighted_mean(values: FloatArray, sample_weight: FloatArray | None) -> float:
    """Mean over the rows of all workers; values and weights have shape (n,)."""
    if sample_weight is None:
        sums = values.sum(dtype=np.float64), len(values)
    else:
        sums = np.multiply(values, sample_weight).sum(dtype=np.float64), sample_weight.sum(dtype=np.float64)
    total, mass = workers().sum(np.array(sums, dtype=np.float64))
    return float(total / mass)


def quantiles(
    values: FloatArray, sample_weight: FloatArray | None, group: IntArray, n_groups: int, quantile: float
) -> FloatArray:
    """Weighted quantile of each group over the rows of all workers, of shape (n_groups,), by the mid-point rule.

    Exact: the bits of the answers are found eight at a time from counts of values that begin with the bits known so
    far. A group without weight gets 0.
    """
    codes = _ordered(values)
    width = codes.dtype.itemsize
    weight = np.ones(len(values)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    others = workers()
    total = others.sum(np.bincount(group, weights=weight, minlength=n_groups).astype(np.float64))
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
        up_to = below[:, :, None] + np.cumsum(others.sum(counts), axis=2)
        reached = up_to >= targets[:, :, None]
        reached[1] = up_to[1] > targets[1][:, None]
        first = np.where(reached.any(axis=2), reached.argmax(axis=2), 255)
        before = np.take_along_axis(up_to, np.maximum(first - 1, 0)[:, :, None], axis=2)[:, :, 0]
        below = np.where(first > 0, before, below)
        known = known << codes.dtype.type(8) | first.astype(codes.dtype)
    ends = _values(known, values.dtype).astype(np.float64)
    return np.where(total > 0, (ends[0] + ends[1]) / 2, 0.0)


def _ordered(values: FloatArray) -> npt.NDArray[Any]:
    """Whole numbers in the order of floating-point ones."""
    unsigned, top = _integers(values.dtype)
    codes: npt.NDArray[Any] = np.ascontiguousarray(values).view(unsigned)
    return np.where(codes & top, ~codes, codes | top)


def _values(codes: npt.NDArray[Any], dtype: npt.DTypeLike) -> FloatArray:
    _, top = _integers(np.dtype(dtype))
    return np.where(codes & top, codes & ~top, ~codes).view(dtype)


def _integers(dtype: np.dtype[Any]) -> tuple[type, Any]:
    unsigned = np.uint32 if dtype.itemsize == 4 else np.uint64
    return unsigned, unsigned(1) << unsigned(8 * dtype.itemsize - 1)


def contents(keys: Keys, mass: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """Give the distinct keys of all workers numbers in their order.

    Parameters
    ----------
    keys : ndarray of shape (n,)
        This worker's keys, without repetition, rising.
    mass : ndarray of shape (n,)
        Weight of each.

    Returns
    -------
    rank : ndarray of shape (n,)
        Place of each key among those of all workers.
    total : ndarray of shape (n,)
        Its weight on all workers.
    first : ndarray of shape (n,)
        1 on the first worker that has the key, 0 on others.
    """
    others = workers()
    prefix = (keys >> np.uint64(52)).astype(np.intp)
    counts = others.sum(np.bincount(prefix, minlength=1 << 12).astype(np.float64))
    rank, total, first = np.empty(len(keys), dtype=np.intp), np.empty(len(keys)), np.ones(len(keys))
    taken = 0
    for low, high in _slices(counts):
        own = slice(*np.searchsorted(prefix, [low, high]))
        parts = others.gather((keys[own], mass[own]))
        distinct, place = np.unique(np.concatenate([part for part, _ in parts]), return_inverse=True)
        sums = np.bincount(place.reshape(-1), weights=np.concatenate([part for _, part in parts]))
        rank[own] = found = np.searchsorted(distinct, keys[own])
        total[own] = sums[found]
        rank[own] += taken
        for part, _ in parts[: others.rank]:
            first[own] *= ~np.isin(keys[own], part)
        taken += len(distinct)
    return rank, total, first


def _slices(counts: FloatArray) -> Sequence[tuple[int, int]]:
    """Ranges of buckets, each with few enough keys."""
    slices, low, held = [], 0, 0.0
    for bucket, count in enumerate(counts):
        if held and held + count > _SLICE:
            slices.append((low, bucket))
            low, held = bucket, 0.0
        held += count
    return [*slices, (low, len(counts))]
