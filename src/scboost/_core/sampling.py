"""Random draws that depend on the features of a sample only: subsampling and exploration noise.

A draw depends on the seed, the round and the features of the sample, and on nothing else. Nothing has to be stored to
resume after an interruption, and samples with equal features draw the same: repeating a sample is the same as giving it
weight.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from scboost._arrays import FloatArray, IntArray, Keys
from scboost._core.statistics import weighted_quantile
from scboost._data.hashing import rank_keys
from scboost._runtime.communicator import Communicator
from scboost._runtime.context import Context
from scboost._runtime.threads import Threads

_ALL = slice(None)
_PART_BITS = 4  # by which keys are partitioned, to be sorted on threads
_LEVELS = 12  # bits of a draw that are looked up: 4,096 normal numbers stay in cache
_NORMAL = special.ndtri((np.arange(1 << _LEVELS) + 0.5) / (1 << _LEVELS))
_NORMAL = (_NORMAL / np.sqrt(np.mean(_NORMAL**2))).astype(np.float32)


class Draws:
    """Random draws of every round, by the hashed features of the samples.

    Parameters
    ----------
    keys : ndarray of shape (n,)
        From :func:`scboost._data.hashing.row_keys`.
    seed : int
        Two fits with the same seed draw the same.
    sample_weight : ndarray of shape (n,), optional
        Sample weights; a weight counts as that many samples.
    context : Context, optional
        Context of the fit; by default one process and one thread.
    """

    def __init__(
        self, keys: Keys, seed: int, sample_weight: FloatArray | None = None, context: Context | None = None
    ) -> None:
        context = context or Context()
        self._keys = np.empty(len(keys), dtype=np.uint32)

        def fold(rows: slice) -> None:
            self._keys[rows] = (keys[rows] ^ (keys[rows] >> np.uint64(32))).astype(np.uint32)

        context.threads.map_blocks(fold, len(keys))
        self._seed = seed
        self._scale = _noise_scale(keys, sample_weight, context)

    def normal(self, round_: int, output: int, rows: slice = _ALL) -> FloatArray:
        """Return standard normal numbers of shape (n,), smaller for rows that repeat each other.

        Samples with equal features draw the same number. It is divided by the root of their total weight, so that
        together they vary as much as independent samples would; the unit of weight is the median over the contents.
        """
        z = _NORMAL.take(self._draw(round_, output, rows) >> np.uint32(32 - _LEVELS), mode="clip")
        return z if self._scale is None else np.multiply(z, self._scale[rows], out=z)

    def noise(self, round_: int, output: int, rows: slice, hessian: FloatArray, size: float) -> FloatArray:
        """Return the size times the root of the Hessians times normal numbers, for a block of samples."""
        noise = np.sqrt(hessian)
        noise *= self.normal(round_, output, rows)
        noise *= noise.dtype.type(size)
        return np.asarray(noise)

    def source(
        self, round_: int, outputs: range
    ) -> tuple[npt.NDArray[np.uint32], FloatArray | None, FloatArray, list[int]]:
        """Return the keys, the scale, the table of normal numbers and the streams that :meth:`noise` combines."""
        streams = [int(_stream_key(self._seed, round_, k)) for k in outputs]
        return self._keys, self._scale, _NORMAL, streams

    def sample(self, round_: int, share: float) -> FloatArray:
        """Return 1 for a random share of the samples and 0 for the others, of shape (n,)."""
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
    """Return what is combined with the keys of all samples: looked up for every block, and by models of other trees."""
    key: np.uint32 = np.random.SeedSequence([seed, round_, stream + 1]).generate_state(1, np.uint32)[0]
    return key


def _noise_scale(keys: Keys, sample_weight: FloatArray | None, context: Context) -> FloatArray | None:
    """Return the factor that keeps repeated samples from drawing more than independent ones; None if it is 1."""
    communicator = context.communicator
    if communicator.size > 1:
        own, place = np.unique(keys, return_inverse=True)
        weights = np.bincount(place.reshape(-1), weights=sample_weight, minlength=len(own)).astype(np.float64)
        _, total, first = rank_keys(own, weights, communicator)
        return _roots_of_shares(total, communicator, first)[place.reshape(-1)]
    if not _repeated(keys, context.threads):  # the usual case, several times faster than to number the contents
        if sample_weight is None:
            return None
        return _roots_of_shares(np.asarray(sample_weight, dtype=np.float64), communicator)
    _, content, counts = np.unique(keys, return_inverse=True, return_counts=True)
    content = content.reshape(-1)
    mass = counts if sample_weight is None else np.bincount(content, weights=sample_weight)
    return _roots_of_shares(mass, communicator)[content]


def _repeated(keys: Keys, threads: Threads) -> bool:
    """Whether a key comes more than once."""
    part = (keys >> np.uint64(64 - _PART_BITS)).astype(np.uint8)

    def go(number: int) -> bool:
        in_order = np.sort(keys[part == number])
        return bool((in_order[1:] == in_order[:-1]).any())

    return any(threads.map_parts(go, range(1 << _PART_BITS), len(keys)))


def _roots_of_shares(
    mass: FloatArray | IntArray, communicator: Communicator, counted: FloatArray | None = None
) -> FloatArray:
    """Root of the median positive mass over each mass, 0 for no mass; other workers count the remaining copies."""
    if counted is None:
        unit = float(np.median(mass[mass > 0]))
    else:
        unit = weighted_quantile(mass.astype(np.float64), counted * (mass > 0), 0.5, communicator)
    return np.sqrt(np.divide(unit, mass, out=np.zeros(len(mass)), where=mass > 0)).astype(np.float32)
