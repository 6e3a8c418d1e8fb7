"""What a report needs of the rows, as sums: those of blocks of rows add up, in one process or over many workers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from scboost._arrays import ArrayLike, FloatArray
from scboost.diagnostics import _measures as measures
from scboost.diagnostics._target import check_length, encode_target
from scboost.diagnostics._tree_matrix import BLOCK_ROWS, EnsembleReader, TreeMatrix


@dataclass(frozen=True)
class Moments:
    """Means of columns, and the sums of products of differences from them.

    Sums about zero would lose the digits of columns that are far from it.

    Attributes
    ----------
    n : int
        Number of rows.
    mean : ndarray of shape (..., T)
    scatter : ndarray of shape (..., T, T)
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
class Errors:
    """Sums about a target.

    Attributes
    ----------
    target : Moments
        Of class numbers or real values, as a single column.
    right : ndarray of shape (K, T)
        Number of right votes.
    path : ndarray of shape (T,)
        Of the first 1 .. T trees, the number of rows they get right, or the sum of squared errors.
    """

    target: Moments
    right: FloatArray
    path: FloatArray

    def __add__(self, other: Errors) -> Errors:
        return Errors(self.target + other.target, self.right + other.right, self.path + other.path)


@dataclass(frozen=True)
class Sums:
    """Everything that a report needs to know of some rows.

    Attributes
    ----------
    trees : TreeMatrix
        Without rows: the weights and the like.
    values : Moments
        Of the trees' values; the leading axis of this and the next two counts the K outputs.
    votes : ndarray of shape (K, T)
        Sums of votes.
    vote_products : ndarray of shape (K, T, T)
        Sums of products of two trees' votes.
    errors : Errors or None
        None without a target.
    """

    trees: TreeMatrix
    values: Moments
    votes: FloatArray
    vote_products: FloatArray
    errors: Errors | None

    @classmethod
    def of(cls, trees: TreeMatrix, y: ArrayLike | None = None) -> Sums:
        """Return the sums over the rows of one block."""
        n, K = len(trees.H), trees.n_outputs
        outputs = [trees.output(k) for k in range(K)]
        votes = [output.votes() for output in outputs]
        errors = None
        if y is not None:
            target = encode_target(trees, y)
            mean, scatter = measures.mean_and_scatter(target)
            errors = Errors(
                Moments(n, np.array([mean]), np.array([[scatter]])),
                measures.correct_votes(trees, y).sum(axis=0, dtype=np.float64).reshape(-1, K).T,
                measures.outcomes(trees, target),
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
            errors,
        )

    def __add__(self, other: Sums) -> Sums:
        if (self.errors is None) != (other.errors is None):
            raise ValueError("Some batches have a y and others have none; give it with all of them or with none.")
        return Sums(
            self.trees,
            self.values + other.values,
            self.votes + other.votes,
            self.vote_products + other.vote_products,
            None if self.errors is None or other.errors is None else self.errors + other.errors,
        )


def add_up(parts: Iterable[Sums | None]) -> Sums | None:
    """Return the sum of those that have rows; None if none has."""
    total = None
    for part in parts:
        total = part if total is None else total if part is None else total + part
    return total


def sums_of(ensemble: EnsembleReader, X: Any, y: ArrayLike | None = None) -> Sums | None:
    """Return the sums over the rows of X, in the memory of one block; None if X has no rows."""
    if np.shape(X)[:1] == (0,):
        return None
    X = ensemble.check(X)
    target = None if y is None else check_length(y, X.shape[0])
    return add_up(
        Sums.of(trees, None if target is None else target[i * BLOCK_ROWS : (i + 1) * BLOCK_ROWS])
        for i, trees in enumerate(ensemble.matrices(X, np.float32))
    )
