"""Hashes of feature values, by which samples are drawn and assigned to folds.

A draw then depends neither on the position of a sample nor on the other samples: the order of the samples, their
partition and the number of threads do not matter, and samples with equal features behave as one with more weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from scboost._arrays import FloatArray, IntArray, Keys, Paged
from scboost._runtime.communicator import Communicator
from scboost._runtime.storage import IN_MEMORY, Storage
from scboost._runtime.threads import SERIAL, Threads

_SLICE = 1 << 20  # keys that are exchanged at once


def row_keys(X: Any, threads: Threads = SERIAL, storage: Storage = IN_MEMORY) -> Keys:
    """Return a 64-bit hash of the feature values of each sample, of shape (n,).

    Parameters
    ----------
    X : ndarray, CSR matrix or Paged of shape (n, d)
        Features, in single precision. All NaN are equal, and so are 0 and -0; entries that a sparse matrix does not
        store are NaN.
    threads : Threads, optional
        Threads for passes over the samples.
    storage : Storage, optional
        Storage of the keys of samples that are not in memory.
    """
    if isinstance(X, Paged):
        all_keys, done = storage.zeros(X.shape[0], np.uint64), 0
        for part in X:
            all_keys[done : done + part.shape[0]] = row_keys(part, threads)
            done += part.shape[0]
        return all_keys
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64
        factors = mix64(np.arange(1, X.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
    if bool(sparse.issparse(X)):
        terms = _bits(X.data) * factors[X.indices]
        starts = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)])
        return mix64(starts[X.indptr[1:]] - starts[X.indptr[:-1]])
    keys = np.empty(X.shape[0], dtype=np.uint64)

    def hash_block(rows: slice) -> None:
        keys[rows] = mix64(_bits(X[rows]) @ factors)

    threads.map_blocks(hash_block, len(X), max(1, (1 << 16) // max(X.shape[1], 1)))  # 64-bit values stay in cache
    return keys


def _bits(values: FloatArray) -> Keys:
    """Return an integer for each value, equal for equal values, and 0 for NaN."""
    plain = np.ascontiguousarray(values, dtype=np.float32) + np.float32(0)  # -0 becomes 0
    bits = plain.view(np.uint32).astype(np.uint64)
    bits += np.uint64(1)
    missing = np.isnan(plain)
    if missing.any():
        bits[missing] = 0
    return bits


def mix64(x: Keys) -> Keys:
    """Spread every bit of x over all bits (the finalizer of SplitMix64)."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def rank_keys(keys: Keys, mass: FloatArray, communicator: Communicator) -> tuple[IntArray, FloatArray, FloatArray]:
    """Rank the distinct keys of all workers.

    Parameters
    ----------
    keys : ndarray of shape (n,)
        Distinct keys of this worker, increasing.
    mass : ndarray of shape (n,)
        Weight of each.
    communicator : Communicator
        The other workers.

    Returns
    -------
    rank : ndarray of shape (n,)
        Rank of each key among those of all workers.
    total : ndarray of shape (n,)
        Its weight on all workers.
    first : ndarray of shape (n,)
        1 on the first worker that has the key, 0 on the others.
    """
    prefix = (keys >> np.uint64(52)).astype(np.intp)
    counts = communicator.sum(np.bincount(prefix, minlength=1 << 12).astype(np.float64))
    rank, total, first = np.empty(len(keys), dtype=np.intp), np.empty(len(keys)), np.ones(len(keys))
    taken = 0
    for low, high in _slices(counts):
        own = slice(*np.searchsorted(prefix, [low, high]))
        parts = communicator.gather((keys[own], mass[own]))
        distinct, place = np.unique(np.concatenate([part for part, _ in parts]), return_inverse=True)
        sums = np.bincount(place.reshape(-1), weights=np.concatenate([part for _, part in parts]))
        rank[own] = found = np.searchsorted(distinct, keys[own])
        total[own] = sums[found]
        rank[own] += taken
        for part, _ in parts[: communicator.rank]:
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
