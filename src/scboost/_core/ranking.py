"""Metrics of rankings, by query."""

from __future__ import annotations

import numpy as np

from scboost._arrays import FloatArray, IntArray

ALL = 1 << 30
"""Number of documents that means all documents of a query."""


def gains(relevance: FloatArray) -> FloatArray:
    """Return the exponential gain ``2^r - 1`` of relevances."""
    return np.asarray(np.exp2(relevance) - 1)


def discounts(n: int) -> FloatArray:
    """Return the discount ``1 / log2(2 + i)`` of positions i = 0, 1, ..., n - 1."""
    return np.asarray(1 / np.log2(np.arange(n) + 2.0))


def _positions(query: IntArray) -> IntArray:
    """Return the position of each document within its query, for documents sorted by query."""
    _, first, sizes = np.unique(query, return_index=True, return_counts=True)
    return np.asarray(np.arange(len(query)) - np.repeat(first, sizes))


def ndcg_by_query(relevance: FloatArray, score: FloatArray, query: IntArray, k: int = ALL) -> FloatArray:
    """Return NDCG of the first k documents of queries 0, 1, ...; NaN for those without a relevant document.

    The gains of documents of equal score are averaged, as scikit-learn does it.
    """
    n_queries = int(query.max(initial=-1)) + 1

    def total(order: IntArray, worth: FloatArray) -> FloatArray:
        """Discounted gains of documents in their order, whose gain is their worth."""
        position = _positions(query[order])
        weight = np.where(position < k, discounts(int(position.max(initial=0)) + 1)[position], 0.0)
        changes = np.flatnonzero(np.diff(query[order]) | (np.diff(score[order]) != 0)) + 1
        tie = np.zeros(len(order), dtype=np.intp)
        tie[changes] = 1
        tie = np.cumsum(tie)
        shared = (np.bincount(tie, weights=weight) / np.bincount(tie))[tie] if worth is not relevance else weight
        sums = np.bincount(query[order], weights=gains(relevance[order]) * shared, minlength=n_queries)
        return np.asarray(sums, dtype=np.float64)

    ideal = total(np.lexsort((-relevance, query)), relevance)
    found = total(np.lexsort((-score, query)), score)
    return np.asarray(np.divide(found, ideal, out=np.full(n_queries, np.nan), where=ideal > 0))


def precision_by_query(relevance: FloatArray, score: FloatArray, query: IntArray, k: int = ALL) -> FloatArray:
    """Return average precision of the first k documents; NaN for queries without a relevant document.

    A document is relevant if its relevance is above 0. Among equal scores, relevant ones come last.
    """
    order = np.lexsort((relevance, -score, query))
    group, n_queries = query[order], int(query.max(initial=-1)) + 1
    relevant, position = relevance[order] > 0, _positions(group)
    so_far = np.cumsum(relevant)
    start = np.flatnonzero(position == 0)
    before: IntArray = np.repeat(so_far[start] - relevant[start], np.diff(np.append(start, len(order))))
    precision = np.where(relevant & (position < k), (so_far - before) / (position + 1), 0.0)
    possible = np.minimum(np.bincount(group, weights=relevant, minlength=n_queries), k)
    sums = np.bincount(group, weights=precision, minlength=n_queries)
    return np.asarray(np.divide(sums, possible, out=np.full(n_queries, np.nan), where=possible > 0))


def reciprocal_rank_by_query(relevance: FloatArray, score: FloatArray, query: IntArray, k: int = ALL) -> FloatArray:
    """Return one divided by the rank of the first relevant document, 0 if it is not among the first k.

    NaN for queries without a relevant document. Among equal scores, relevant ones come last.
    """
    order = np.lexsort((relevance, -score, query))
    group, n_queries = query[order], int(query.max(initial=-1)) + 1
    relevant, position = relevance[order] > 0, _positions(group)
    best = np.zeros(n_queries)
    np.maximum.at(best, group, np.where(relevant & (position < k), 1 / (position + 1.0), 0.0))
    has_any = np.bincount(group, weights=relevant, minlength=n_queries) > 0
    return np.where(has_any, best, np.nan)
