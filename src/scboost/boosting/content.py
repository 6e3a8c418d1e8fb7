"""Random draws that follow from what a row contains.

A draw depends on the seed, the round and the values of the row, and on nothing else: neither on the position of the row
nor on the other rows. So the order of the rows, their partition and the number of threads do not matter, nothing has
to be stored to go on after an interruption, and rows with the same content draw the same: repeating a row is giving it
weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse, special

from scboost._arrays import FloatArray, IntArray, Keys, Paged, kernels, map_blocks, map_parts, zeros
from scboost.boosting.workers import contents, quantiles, workers

_ALL = slice(None)
_GROUPS = 256  # of rows, whose sums tell how sure a mean is
_PART_BITS = 4  # by which keys are parted, to be sorted on threads
_LEVELS = 12  # bits of a draw that are looked up: 4,096 normal numbers stay in cache
_NORMAL = special.ndtri((np.arange(1 << _LEVELS) + 0.5) / (1 << _LEVELS))
_NORMAL = (_NORMAL / np.sqrt(np.mean(_NORMAL**2))).astype(np.float32)


def row_keys(X: Any) -> Keys:
    """Return a number for each row that depends on its values only, of shape (n,).

    Parameters
    ----------
    X : ndarray, CSR matrix or Paged of shape (n, d)
        Numbers, taken in single precision. All NaN count as equal, and so do 0 and -0; what a sparse matrix does not
        store is NaN.
    """
    if isinstance(X, Paged):
        all_keys, done = zeros(X.shape[0], np.uint64), 0
        for part in X:
            all_keys[done : done + part.shape[0]] = row_keys(part)
            done += part.shape[0]
        return all_keys
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64
        factors = mix64(np.arange(1, X.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
    if bool(sparse.issparse(X)):
        terms = _bits(X.data) * factors[X.indices]
        starts = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)])
        return mix64(starts[X.indptr[1:]] - starts[X.indptr[:-1]])
    keys = np.empty(X.shape[0], dtype=np.uint64)

    def go(rows: slice) -> None:
        keys[rows] = mix64(_bits(X[rows]) @ factors)

    map_blocks(go, len(X), max(1, (1 << 16) // max(X.shape[1], 1)))  # of which the numbers of 64 bits stay in cache
    return keys


def standard_errors(values: FloatArray, keys: Keys, sample_weight: FloatArray | None = None) -> float:
    """By how many standard errors the mean of a quantity lies above 0, over the rows of all workers; 0 if it is 0.

    The error is that of the sums over groups of rows. Rows with the same content share a group, so that repeating a row
    is giving it weight; the unit of the weights does not matter.

    Parameters
    ----------
    values : ndarray of shape (n,)
        The quantity.
    keys : ndarray of shape (n,)
        From :func:`row_keys`.
    sample_weight : ndarray of shape (n,), optional
        Row weights.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(10_000, 1))
    >>> round(standard_errors(X[:, 0] + 0.05, row_keys(X)), 1)  # 0.05 is five times 1 / sqrt(10,000)
    5.5
    """
    groups = (keys % np.uint64(_GROUPS)).astype(np.intp)
    w = np.ones(len(keys)) if sample_weight is None else sample_weight.astype(np.float64)
    parts = [np.bincount(groups, weights=amounts, minlength=_GROUPS) for amounts in (values * w, w)]
    sums, masses = workers().sum(np.array(parts))
    total = float(sums.sum())
    error = float(np.sqrt(np.sum((sums - total / masses.sum() * masses) ** 2)))
    return total / error if error > 0 else 0.0


class Draws:
    """Draws of every round, by the content of the rows.

    Parameters
    ----------
    keys : ndarray of shape (n,)
        From :func:`row_keys`.
    seed : int
        Two fits with the same seed draw the same.
    sample_weight : ndarray of shape (n,), optional
        Row weights; a weight counts as that many rows.
    """

    def __init__(self, keys: Keys, seed: int, sample_weight: FloatArray | None = None) -> None:
        self._keys = np.empty(len(keys), dtype=np.uint32)

        def fold(rows: slice) -> None:
            self._keys[rows] = (keys[rows] ^ (keys[rows] >> np.uint64(32))).astype(np.uint32)

        map_blocks(fold, len(keys))
        self._seed = seed
        self._spread = _spread(keys, sample_weight)

    def normal(self, round_: int, output: int, rows: slice = _ALL) -> FloatArray:
        """Return standard normal numbers of shape (n,), smaller for rows that repeat each other.

        Rows with the same content draw the same number. It is divided by the root of their total weight, so that
        together they vary as much as independent rows would; the unit of weight is the median over the contents.
        """
        z = _NORMAL.take(self._draw(round_, output, rows) >> np.uint32(32 - _LEVELS), mode="clip")
        return z if self._spread is None else np.multiply(z, self._spread[rows], out=z)

    def noise(self, round_: int, output: int, rows: slice, curvature: FloatArray, size: float) -> FloatArray:
        """Return the size times the root of the rows' curvatures times normal numbers, of shape (rows,)."""
        compiled = kernels()
        if compiled is not None and curvature.dtype == np.float32:
            out = np.empty_like(curvature)
            spread = None if self._spread is None else self._spread[rows]
            key = _stream_key(self._seed, round_, output)
            compiled.noise(curvature, size, self._keys[rows], key, _NORMAL, spread, out)
            return out
        noise = np.sqrt(curvature)
        noise *= self.normal(round_, output, rows)
        noise *= noise.dtype.type(size)
        return np.asarray(noise)

    def sample(self, round_: int, share: float) -> FloatArray:
        """Return 1 for a random share of the rows and 0 for the others, of shape (n,)."""
        return np.asarray(self._draw(round_, -1, _ALL) < share * 2.0**32, dtype=np.float64)

    def _draw(self, round_: int, stream: int, rows: slice) -> npt.NDArray[np.uint32]:
        x = self._keys[rows] ^ _stream_key(self._seed, round_, stream)
        shifted = np.empty_like(x)
        for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
            x ^= np.right_shift(x, np.uint32(shift), out=shifted)
            x *= np.uint32(factor)
        x ^= np.right_shift(x, np.uint32(16), out=shifted)
        return np.asarray(x)


@lru_cache(maxsize=1 << 12)
def _stream_key(seed: int, round_: int, stream: int) -> np.uint32:
    """Return what is combined with the keys of all rows: looked up for every block, and by models of other trees."""
    key: np.uint32 = np.random.SeedSequence([seed, round_, stream + 1]).generate_state(1, np.uint32)[0]
    return key


def content_folds(keys: Keys, n_folds: int, classes: IntArray | None, seed: int) -> IntArray:
    """Return the fold of each row, of shape (n,): equal rows share one, and every class is spread over all folds.

    Parameters
    ----------
    keys : ndarray of shape (n,)
        From :func:`row_keys`.
    n_folds : int
        Number of folds.
    classes : ndarray of shape (n,) or None
        Class number of each row; None for regression.
    seed : int
        Two calls with the same seed cut the same folds, whichever workers have the rows.
    """
    fold = np.empty(len(keys), dtype=np.intp)
    taken = 0
    for group, rank, n_contents in _ranked(keys, classes, seed):
        fold[group] = (rank + taken) % n_folds
        taken += n_contents  # a class begins where the one before ended: folds of equal size
    return fold


def content_sample(keys: Keys, share: float, classes: IntArray | None, seed: int) -> npt.NDArray[np.bool_]:
    """Return whether each row is in a random share of the contents of every class, of shape (n,).

    A class of two contents or more has at least one in and one out, a single one is out. The other parameters are those
    of :func:`content_folds`.
    """
    drawn = np.empty(len(keys), dtype=bool)
    for group, rank, n_contents in _ranked(keys, classes, seed):
        drawn[group] = rank < min(max(round(share * n_contents), 1), n_contents - 1)
    return drawn


def _ranked(keys: Keys, classes: IntArray | None, seed: int) -> Iterator[tuple[Any, IntArray, int]]:
    """Put the contents of each class, of all workers, in a random order.

    Yields the rows of a class, the rank of each row's content, and the number of contents.
    """
    order_keys = mix64(keys ^ mix64(np.array([seed + 1], dtype=np.uint64)))
    groups: list[Any] = [slice(None)]
    others = workers()
    if classes is not None:
        n_classes = int(others.max(classes.max(initial=-1))) + 1
        groups = [np.flatnonzero(classes == c) for c in range(n_classes)]
    for group in groups:
        keys_of_group, place = np.unique(order_keys[group], return_inverse=True)
        rank: IntArray = np.arange(len(keys_of_group))
        n_contents = len(rank)
        if others.size > 1:
            rank, _, first = contents(keys_of_group, np.zeros(len(rank)))
            n_contents = int(others.sum(first.sum()))
        yield group, rank[place.reshape(-1)], n_contents


def _spread(keys: Keys, sample_weight: FloatArray | None) -> FloatArray | None:
    """Return the factor that keeps repeated rows from drawing more than independent ones; None if it is 1."""
    if workers().size > 1:
        own, place = np.unique(keys, return_inverse=True)
        weights = np.bincount(place.reshape(-1), weights=sample_weight, minlength=len(own)).astype(np.float64)
        _, total, first = contents(own, weights)
        return _roots_of_shares(total, first)[place.reshape(-1)]
    if not _repeated(keys):  # the usual case, several times faster than to number the contents
        if sample_weight is None:
            return None
        return _roots_of_shares(np.asarray(sample_weight, dtype=np.float64))
    _, content, counts = np.unique(keys, return_inverse=True, return_counts=True)
    content = content.reshape(-1)
    mass = counts if sample_weight is None else np.bincount(content, weights=sample_weight)
    return _roots_of_shares(mass)[content]


def _repeated(keys: Keys) -> bool:
    """Whether a key comes more than once."""
    part = (keys >> np.uint64(64 - _PART_BITS)).astype(np.uint8)

    def go(number: int) -> bool:
        in_order = np.sort(keys[part == number])
        return bool((in_order[1:] == in_order[:-1]).any())

    return any(map_parts(go, range(1 << _PART_BITS), len(keys)))


def _roots_of_shares(mass: FloatArray | IntArray, counted: FloatArray | None = None) -> FloatArray:
    """Root of the median positive mass over each mass, 0 for no mass; other workers count what is not counted here."""
    if counted is None:
        unit = float(np.median(mass[mass > 0]))
    else:
        one_group = np.zeros(len(mass), dtype=np.intp)
        unit = float(quantiles(mass.astype(np.float64), counted * (mass > 0), one_group, 1, 0.5)[0])
    return np.sqrt(np.divide(unit, mass, out=np.zeros(len(mass)), where=mass > 0)).astype(np.float32)


def _bits(values: FloatArray) -> Keys:
    """Return a number for each value that is equal for equal values, and 0 for NaN."""
    plain = np.ascontiguousarray(values, dtype=np.float32) + np.float32(0)  # -0 becomes 0
    bits = plain.view(np.uint32).astype(np.uint64)
    bits += np.uint64(1)
    missing = np.isnan(plain)
    if missing.any():
        bits[missing] = 0
    return bits


def mix64(x: Keys) -> Keys:
    """Spread every bit of x over all bits (the finaliser of SplitMix64)."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
