"""An engine that returns the trees of a fitted ensemble, so that the boosting loop refits their leaf values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from scboost._arrays import FloatArray, IntArray
from scboost._engine.interface import Engine, Learner, Totals

if TYPE_CHECKING:
    from scboost._engine.xgboost.ensemble import TreeEnsemble

_BLOCK = 2**24  # leaves of samples that are looked up at a time


class ReplayEngine(Engine):
    """Returns the trees of an ensemble round by round: their structures are given, the loop fits their leaf values.

    Parameters
    ----------
    ensemble : TreeEnsemble
        The trees.
    X : matrix of shape (n, d)
        Features of the training samples.
    engine : Engine
        An engine on these samples, whose constraints hold.
    n_threads : int, default=1
        Number of threads.
    """

    uses_seed = False
    samples_features = True  # so that a tree without a split does not end the rounds

    def __init__(self, ensemble: TreeEnsemble, X: Any, engine: Engine, n_threads: int = 1) -> None:
        self.dtype = engine.dtype
        self._ensemble, self._engine, self._n_threads = ensemble, engine, n_threads
        self._X, self._n_samples = ensemble.prepare(X, n_threads), X.shape[0]
        self._first, self._nodes = 0, np.empty((0, 0), dtype=np.intp)

    def grow(self, target: FloatArray, hessian: FloatArray, seed: int, totals: Totals) -> list[Learner]:
        """Return the learners of the round; see :class:`Engine`."""
        del target, hessian, seed
        K, t = self._ensemble.n_outputs, totals.round
        nodes = self._nodes_from(t)[(t - self._first) * K :][:K]
        return [_learner(*pair) for pair in zip(self._ensemble.trees_of(t), nodes, strict=True)]

    def _nodes_from(self, t: int) -> IntArray:
        """Return the node of each sample in the trees of some rounds, the given one among them, a row for each tree."""
        K, ensemble = self._ensemble.n_outputs, self._ensemble
        if not self._first <= t < self._first + len(self._nodes) // K:
            n_rounds = max(_BLOCK // (K * max(self._n_samples, 1)), 1)
            last = min(t + n_rounds, ensemble.n_rounds)
            nodes = ensemble.nodes_of(self._X, t, last, self._n_threads)
            self._first, self._nodes = t, np.ascontiguousarray(nodes.T)
        return self._nodes

    def constrain(self, learner: Learner, values: FloatArray, hessian: FloatArray) -> FloatArray:
        """Project leaf values as the engine on these samples does; see :class:`Engine`."""
        return self._engine.constrain(learner, values, hessian)


def _learner(tree: Any, nodes: IntArray) -> Learner:
    leaves = np.flatnonzero(tree["left_children"] == -1)
    place = np.zeros(len(tree["left_children"]), dtype=_smallest(len(leaves)))
    place[leaves] = np.arange(len(leaves))
    return Learner(place.take(nodes), np.zeros(len(leaves), dtype=np.float32), tree, leaves)


def _smallest(n_leaves: int) -> Any:
    """Return the type of leaf numbers that the compiled passes take."""
    return next((kind for kind in (np.uint8, np.uint16) if n_leaves <= np.iinfo(kind).max + 1), np.int32)
