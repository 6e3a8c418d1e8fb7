"""Sums over the samples of each leaf."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scboost._arrays import FloatArray, IntArray
from scboost._runtime.threads import SERIAL, Threads


def leaf_sums(
    leaf: IntArray,
    n_leaves: int,
    vectors: Sequence[FloatArray],
    sample_weight: FloatArray | None,
    threads: Threads = SERIAL,
) -> FloatArray:
    """Return weighted sums of vectors in each leaf, of shape (vectors, n_leaves), in float64.

    By blocks, whose conversion to float64 stays in cache.
    """
    passes = threads.passes
    if passes is not None and len(vectors) == 2 and all(v.dtype == np.float32 for v in vectors):
        out = np.empty((2, n_leaves))
        weight = None if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=np.float64)
        passes.leaf_sums(leaf, *vectors, weight, out)
        return out

    def add_up(rows: slice) -> FloatArray:
        weight = None if sample_weight is None else sample_weight[rows]
        weighted = [v[rows] if weight is None else v[rows] * weight for v in vectors]
        indices = leaf[rows].astype(np.intp, copy=False)
        return np.array([np.bincount(indices, weights=v, minlength=n_leaves) for v in weighted])

    sums = np.zeros((len(vectors), n_leaves))
    for block in threads.map_blocks(add_up, len(leaf)):
        sums += block
    return sums
