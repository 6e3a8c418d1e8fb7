"""Learners, and the engines that grow them: one learner per output on a target, with the leaf of every training row.

An engine knows neither the loss nor the history. XGBoost's trees are in :mod:`scboost.xgb`; ``EstimatorEngine`` takes
any scikit-learn regressor, which makes it the learner of the paper and an oracle for the tests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray, IntArray


@dataclass
class Learner:
    """One grown learner.

    Attributes
    ----------
    leaf : ndarray of shape (n,) or None
        Leaf of each training row, numbered from 0; None if the learner has no leaves.
    values : ndarray
        Value of each leaf as the engine fitted it, of shape (n_leaves,); predictions of the training rows, of
        shape (n,), if the learner has no leaves.
    model : object
        What the ensemble keeps: a decoded XGBoost tree, or a fitted regressor.
    nodes : ndarray of shape (n_leaves,) or None
        Node number of each leaf in ``model``.
    """

    leaf: IntArray | None
    values: FloatArray
    model: Any
    nodes: IntArray | None

    def predictions(self) -> FloatArray:
        """Value of each training row, of shape (n,)."""
        return self.values if self.leaf is None else self.values.take(self.leaf)


@dataclass(frozen=True)
class Offer:
    """What the trees of a model may use.

    Attributes
    ----------
    columns : tuple of int
        Numbers of the columns; empty for all.
    groups : bool
        Whether a split may part a group of categories from the others, or one category only.
    depth : int or None
        Largest depth of a tree; None for no limit.
    """

    columns: tuple[int, ...] = ()
    groups: bool = False
    depth: int | None = None


class Engine(ABC):
    """Grows learners on a fixed training matrix.

    Attributes
    ----------
    dtype : numpy dtype
        Type of the vectors that go in and come out. Predictions are exact in it.
    draws : bool
        Whether the seed matters.
    samples_columns : bool
        Whether each round sees other columns, so that one without a split need not be the last.
    n_threads : int
        Threads for the work between two learners, on which nothing depends but time.
    """

    dtype: npt.DTypeLike
    draws: bool = True
    samples_columns: bool = False
    n_threads: int = 1

    def measure(self, energy: FloatArray, curvature: float, n: int) -> Callable[[], Any]:
        """Return a function for what the engine must know of all rows before it grows learners on them.

        Parameters
        ----------
        energy : ndarray of shape (K,)
            Sum over the rows of their weight times the square of what the target is without it.
        curvature : float
            Sum over the rows and outputs of the curvature that :meth:`grow` is given.
        n : int
            Number of rows.
        """
        del energy, curvature, n
        return lambda: None

    @abstractmethod
    def grow(self, target: FloatArray, curvature: FloatArray, seed: int, measured: Any) -> list[Learner]:
        """Grow one learner for each output.

        Parameters
        ----------
        target, curvature : ndarray of shape (K, n)
            The learner minimises ``sum(curvature * (target / curvature - h)^2)``. Rows left out of a sample have
            both at 0. The target is the engine's to overwrite.
        seed : int
            Seed of everything random in this round.
        measured : object
            What :meth:`measure` found.
        """

    def fork(self) -> Engine:
        """Return an engine that starts anew on the same training matrix."""
        return self

    def constrain(self, learner: Learner, values: FloatArray, curvature: FloatArray) -> FloatArray:
        """Make recomputed leaf values obey the engine's constraints.

        Parameters
        ----------
        learner : Learner
            A learner of this engine.
        values : ndarray of shape (n_leaves,)
            The new value of each leaf.
        curvature : ndarray of shape (n,)
            Curvature of the training rows, times their weights.
        """
        del learner, curvature
        return values


class EstimatorEngine(Engine):
    """Any scikit-learn regressor as the learner.

    Parameters
    ----------
    X : array of shape (n, d)
        Training rows.
    make : callable
        ``make(seed)`` returns an unfitted regressor.
    sample_weighted : bool
        Whether target and curvature are to be passed on as a weighted least-squares problem; otherwise the curvature
        is constant and the regressor is fitted to the target as it is.
    """

    dtype = np.float64

    def __init__(self, X: Any, make: Any, *, sample_weighted: bool) -> None:
        self._X, self._make, self._sample_weighted = X, make, sample_weighted

    def grow(self, target: FloatArray, curvature: FloatArray, seed: int, measured: Any = None) -> list[Learner]:
        """Fit one regressor for each output; see :class:`Engine`."""
        del measured
        learners = []
        for k in range(len(target)):
            model = self._make((seed + k) % 2**32)
            if self._sample_weighted:
                rows = curvature[k] > 0
                model.fit(self._X[rows], target[k, rows] / curvature[k, rows], sample_weight=curvature[k, rows])
            else:
                model.fit(self._X, target[k])
            leaves = model.apply(self._X) if hasattr(model, "apply") else None
            if leaves is not None and leaves.ndim == 1:  # a forest has one leaf for each of its trees
                nodes, leaf = np.unique(leaves, return_inverse=True)
                values = np.empty(len(nodes))
                values[leaf] = model.predict(self._X)
                learners.append(Learner(leaf, values, model, nodes))
            else:
                learners.append(Learner(None, np.asarray(model.predict(self._X), dtype=np.float64), model, None))
        return learners
