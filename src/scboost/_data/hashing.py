"""Hashes of feature values, by which samples are drawn and assigned to folds.

A draw then depends neither on the position of a sample nor on the other samples: the order of the samples, their
partition and the number of threads do not matter, and samples with equal features behave as one with more weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from scboost._arrays import FloatArray, Keys, Paged
from scboost._runtime.storage import IN_MEMORY, Storage
from scboost._runtime.threads import SERIAL, Threads


def row_keys(X: Any, threads: Threads = SERIAL, storage: Storage = IN_MEMORY) -> Keys:
    """Return a 64-bit hash of the feature values of each sample, of shape (n,).

    Parameters
    ----------
    X : ndarray, CSR matrix or Paged of shape (n, d)
        Features, taken in single precision. All NaN count as equal, and so do 0 and -0; what a sparse matrix does not
        store is NaN.
    threads : Threads, optional
        Threads for passes over the samples.
    storage : Storage, optional
        Where the keys of samples that are not in memory are put.
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
    """Spread every bit of x over all bits (the finaliser of SplitMix64)."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
