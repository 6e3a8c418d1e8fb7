"""Sufficient statistics of a redundancy report: those of blocks of samples, or of distributed workers, add up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import ArrayLike, FloatArray, blocks
from scboost.diagnostics import _measures as measures
from scboost.diagnostics._target import check_length, encode_target
from scboost.diagnostics._tree_matrix import BLOCK_SIZE, EnsembleReader, TreeMatrix


@dataclass(frozen=True)
class Moments:
    """Means of columns and centred second moments, which stay accurate for columns far from zero.

    Attributes
    ----------
    n : int
        Number of samples.
    mean : ndarray of shape (..., T)
    scatter : ndarray of shape (..., T, T)
        Sums of products of deviations from the means.
    """

    n: int
    mean: FloatArray
    scatter: FloatArray

    def __add__(self, other: Moments) -> Moments:
        n = self.n + other.n
        step = other.mean - self.mean
        between = step[..., :, None] * step[..., None, :] * (self.n * other.n / n)
        return Moments(n, self.mean + step * (other.n / n), self.scatter + other.scatter + between)


@dataclass(frozen=True)
class TargetStatistics:
    """Statistics that need the target.

    Attributes
    ----------
    target : Moments
        Of the class codes or real values, as a single column.
    correct : ndarray of shape (K, T)
        Number of correct votes of each tree.
    staged : ndarray of shape (T,)
        Number of correct predictions of the first 1 .. T trees, or their sum of squared errors.
    """

    target: Moments
    correct: FloatArray
    staged: FloatArray

    def __add__(self, other: TargetStatistics) -> TargetStatistics:
        return TargetStatistics(self.target + other.target, self.correct + other.correct, self.staged + other.staged)


@dataclass(frozen=True)
class Statistics:
    """Sufficient statistics of a redundancy report.

    Attributes
    ----------
    trees : TreeMatrix
        Of zero samples: weights, intercepts and so on.
    values : Moments
        Of the tree predictions; the leading axis of this and the next two is the output.
    votes : ndarray of shape (K, T)
        Sums of the votes.
    vote_products : ndarray of shape (K, T, T)
        Sums of products of the votes of two trees.
    with_target : TargetStatistics or None
        None without a target.
    """

    trees: TreeMatrix
    values: Moments
    votes: FloatArray
    vote_products: FloatArray
    with_target: TargetStatistics | None

    @classmethod
    def of_block(cls, trees: TreeMatrix, y: ArrayLike | None = None) -> Statistics:
        """Return the statistics of one block of samples."""
        n, K = len(trees.H), trees.n_outputs
        outputs = [trees.output(k) for k in range(K)]
        votes = [output.votes() for output in outputs]
        with_target = None
        if y is not None:
            target = encode_target(trees, y)
            mean, scatter = measures.mean_and_scatter(target)
            with_target = TargetStatistics(
                Moments(n, np.array([mean]), np.array([[scatter]])),
                measures.correct_votes(trees, y).sum(axis=0, dtype=np.float64).reshape(-1, K).T,
                measures.staged_outcomes(trees, target),
            )
        return cls(
            replace(trees, H=trees.H[:0].copy()),
            Moments(
                n,
                np.stack([output.H.mean(axis=0, dtype=np.float64) for output in outputs]),
                n * np.stack([measures.tree_covariance(output.H) for output in outputs]),
            ),
            np.stack([v.sum(axis=0, dtype=np.float64) for v in votes]),
            np.rint(n * np.stack([measures.vote_gram(v) for v in votes])),
            with_target,
        )

    def __add__(self, other: Statistics) -> Statistics:
        if (self.with_target is None) != (other.with_target is None):
            raise ValueError("Some batches have a y and others do not; pass y with all batches or with none.")
        return Statistics(
            self.trees,
            self.values + other.values,
            self.votes + other.votes,
            self.vote_products + other.vote_products,
            None if self.with_target is None or other.with_target is None else self.with_target + other.with_target,
        )


def combine(parts: Iterable[Statistics | None]) -> Statistics | None:
    """Return the sum of the parts that have samples; None if no part has any."""
    total = None
    for part in parts:
        total = part if total is None else total if part is None else total + part
    return total


def collect_statistics(ensemble: EnsembleReader, X: Any, y: ArrayLike | None = None) -> Statistics | None:
    """Return the statistics of all samples, in the memory of one block; None if X has no samples."""
    if np.shape(X)[:1] == (0,):
        return None
    X = ensemble.check(X)
    if y is not None and ensemble.task:
        raise ValueError(
            f"y cannot be compared with the trees of a model for {ensemble.task}: its raw score is not on the scale of "
            "y; leave y out."
        )
    target = None if y is None else check_length(y, X.shape[0])
    return combine(
        Statistics.of_block(trees, None if target is None else target[rows])
        for rows, trees in zip(blocks(X.shape[0], BLOCK_SIZE), ensemble.matrices(X, np.float32), strict=True)
    )


def matrix_statistics(trees: TreeMatrix, y: npt.NDArray[Any] | None = None) -> Statistics | None:
    """Return :func:`collect_statistics` of a tree matrix that is in memory."""
    return combine(
        Statistics.of_block(replace(trees, H=trees.H[rows]), None if y is None else y[rows])
        for rows in blocks(len(trees.H), BLOCK_SIZE)
    )
