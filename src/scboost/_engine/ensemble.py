"""Fitted ensembles: learners, one weight each, and an intercept.

Raw scores are ``F(x) = intercept + sum_t w_t h_t(x)``, one sum for each of the K outputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from scboost._arrays import FloatArray, IntArray
from scboost._engine.interface import Learner


def interleaved(sizes: Sequence[int]) -> IntArray:
    """Return the order of the rounds of several models, numbered one model after the other, by their relative position.

    Any number of first rounds in this order has about the same share of the rounds of each model.
    """
    positions = [(np.arange(size) + 0.5) / size for size in sizes]
    return np.argsort(np.concatenate(positions), kind="stable")


class Ensemble(ABC):
    """Learners with weights.

    Parameters
    ----------
    n_features : int
        Number of features.
    intercept : ndarray of shape (K,)
        Constant raw score of each output.

    Attributes
    ----------
    weights : ndarray of shape (rounds, K)
        Weight of each learner; see :meth:`reweight`.
    """

    def __init__(self, n_features: int, intercept: FloatArray) -> None:
        self.n_features = n_features
        self.intercept = np.asarray(intercept, dtype=np.float64)
        self._weights: FloatArray = np.zeros((0, len(self.intercept)))
        self._new_weights: list[float | FloatArray] = []  # of the latest rounds

    @property
    def n_outputs(self) -> int:
        """K."""
        return len(self.intercept)

    @property
    def weights(self) -> FloatArray:
        """Weight of each learner, of shape (rounds, K)."""
        if self._new_weights:
            added = np.empty((len(self._new_weights), self.n_outputs))
            for row, weight in zip(added, self._new_weights, strict=True):
                row[:] = weight
            self._weights, self._new_weights = np.concatenate([self._weights, added]), []
        return self._weights

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return len(self._weights) + len(self._new_weights)

    def append(self, learners: Sequence[Learner], weight: float | FloatArray) -> None:
        """Add one round of K learners, with one weight for all of them or one for each."""
        self._new_weights.append(weight)
        for learner in learners:
            self._append(learner)

    def reweight(self, weights: FloatArray, intercept: FloatArray) -> None:
        """Replace all weights, of shape (rounds, K), and the intercept, of shape (K,)."""
        self._weights, self._new_weights = np.array(weights, dtype=np.float64), []
        self.intercept = np.array(intercept, dtype=np.float64)

    def truncate(self, n_rounds: int) -> None:
        """Keep the first ``n_rounds`` rounds only."""
        self.select(np.arange(min(n_rounds, self.n_rounds)))

    def select(self, rounds: IntArray) -> None:
        """Keep the given rounds only, in this order."""
        self.reweight(self.weights[rounds], self.intercept)
        self._select((rounds[:, None] * self.n_outputs + np.arange(self.n_outputs)).ravel())

    def select_output(self, k: int) -> None:
        """Keep the learners of output k only."""
        learners = np.arange(k, self.n_rounds * self.n_outputs, self.n_outputs)
        self.reweight(self.weights[:, [k]], self.intercept[[k]])
        self._select(learners)

    def extend(self, other: Ensemble) -> None:
        """Add the rounds and the intercept of another ensemble of the same kind: their raw scores add up."""
        self.reweight(np.vstack([self.weights, other.weights]), self.intercept + other.intercept)
        self._extend(other)

    def staged(self, X: Any, n_jobs: int = 1) -> Iterator[FloatArray]:
        """Yield the raw scores of shape (K, n) after 1, 2, ... rounds."""
        H = self.contributions(X, n_jobs=n_jobs)
        F = np.repeat(self.intercept[:, None], H.shape[2], axis=1)
        for t in range(self.n_rounds):
            F = F + self.weights[t][:, None] * H[t]
            yield F

    @abstractmethod
    def _append(self, learner: Learner) -> None: ...

    @abstractmethod
    def _extend(self, other: Any) -> None: ...

    @abstractmethod
    def _select(self, learners: IntArray) -> None: ...

    @abstractmethod
    def scores(self, X: Any, n_jobs: int = 1) -> FloatArray:
        """Return the raw scores, of shape (K, n)."""

    def prepare(self, X: Any, n_jobs: int = 1) -> Any:
        """Convert samples to the form that :meth:`contributions` reads fastest, for repeated calls."""
        del n_jobs
        return X

    @abstractmethod
    def contributions(self, X: Any, first: int = 0, last: int | None = None, n_jobs: int = 1) -> FloatArray:
        """Return the unweighted predictions of the learners of rounds ``first`` to ``last``, of shape (rounds, K, n).

        ``last`` is excluded; None means all rounds from ``first`` on.
        """

    @abstractmethod
    def gains(self) -> FloatArray:
        """Return the total gain of each feature, of shape (n_features,)."""


class EstimatorEnsemble(Ensemble):
    """Fitted scikit-learn regressors, with their leaf values replaced if the leaf rule recomputes them."""

    def __init__(self, n_features: int, intercept: FloatArray) -> None:
        super().__init__(n_features, intercept)
        self.estimators: list[Any] = []
        self._leaf_values: list[tuple[IntArray, FloatArray] | None] = []

    def _append(self, learner: Learner) -> None:
        self.estimators.append(learner.model)
        nodes = learner.nodes
        self._leaf_values.append(None if learner.leaf is None or nodes is None else (nodes, learner.values))

    def _extend(self, other: EstimatorEnsemble) -> None:
        self.estimators += other.estimators
        self._leaf_values += other._leaf_values

    def _select(self, learners: IntArray) -> None:
        self.estimators = [self.estimators[i] for i in learners]
        self._leaf_values = [self._leaf_values[i] for i in learners]

    def _predict(self, i: int, X: Any) -> FloatArray:
        leaves = self._leaf_values[i]
        if leaves is None:
            return np.asarray(self.estimators[i].predict(X), dtype=np.float64)
        nodes, values = leaves
        return np.asarray(values[np.searchsorted(nodes, self.estimators[i].apply(X))])

    def scores(self, X: Any, n_jobs: int = 1) -> FloatArray:
        """Return the raw scores, of shape (K, n); see :class:`Ensemble`."""
        del n_jobs
        F = np.repeat(self.intercept[:, None], X.shape[0], axis=1)
        for i, weight in enumerate(self.weights.ravel()):
            if weight != 0:
                F[i % self.n_outputs] += weight * self._predict(i, X)
        return F

    def contributions(self, X: Any, first: int = 0, last: int | None = None, n_jobs: int = 1) -> FloatArray:
        """Return the unweighted predictions of the learners, of shape (rounds, K, n); see :class:`Ensemble`."""
        del n_jobs
        K = self.n_outputs
        last = self.n_rounds if last is None else last
        H = np.empty((last - first, K, X.shape[0]))
        for i in range(first * K, last * K):
            H[i // K - first, i % K] = self._predict(i, X)
        return H

    def gains(self) -> FloatArray:
        """Return the sum of the feature importances of the learners; see :class:`Ensemble`."""
        total = np.zeros(self.n_features)
        for estimator, weight in zip(self.estimators, self.weights.ravel(), strict=True):
            if weight != 0:
                total += getattr(estimator, "feature_importances_", 0)
        return total
