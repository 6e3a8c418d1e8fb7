"""Growers of single trees for the student, and their settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from scboost._compress.families import Family
from scboost._compress.products import leaf_index
from scboost._compress.student import Problem
from scboost._compress.trees import n_leaves, with_features
from scboost._compress.types import Float64, LeafIndex, Mask
from scboost._engine.factory import EngineFactory, EngineSpec
from scboost._engine.interface import Totals, TreeOptions
from scboost._engine.native import is_available
from scboost._model.document import Tree
from scboost._runtime.context import Context

_BINS = 256
# Smallest sum of Hessians in a leaf: a share of that of all samples, within limits. Here and below, one value is for
# classifiers (True) and one for all other students (False).
_LEAF_SHARE, _LEAST_HESSIAN, _MOST_HESSIAN = 1 / 200, 4.0, {True: 16.0, False: 64.0}
# Ridge penalty of the joint fits during growth. With the larger one, a tree fits only part of the residual and leaves
# the rest to later trees; the single sweeps of classifiers are inexact anyway.
_RIDGE = {True: 3.0, False: 30.0}
_TREE_RIDGE = 0.1  # of a tree's own leaf values while it is grown, where only the order of split gains matters


@dataclass(frozen=True)
class Settings:
    """Settings of one growth.

    Attributes
    ----------
    n_rounds : int
        Trees of each output.
    max_leaves : int
        Leaves of a tree.
    ridge : float
        Penalty of leaf values in the joint fit, in units of a sample's Hessian.
    min_child_weight : float
        Smallest sum of Hessians in a leaf.
    """

    n_rounds: int
    max_leaves: int
    ridge: float = _RIDGE[True]
    min_child_weight: float = 4.0

    @classmethod
    def of(cls, problem: Problem, family: Family, n_rounds: int, max_leaves: int) -> Settings:
        """Return the settings for a problem."""
        total = float(problem.weight(family) @ family.hessian(family.mean(problem.target)).mean(axis=0))
        least = float(np.clip(_LEAF_SHARE * total, _LEAST_HESSIAN, _MOST_HESSIAN[family.of_classes]))
        return cls(n_rounds, max_leaves, _RIDGE[family.of_classes], least)


class Grower(Protocol):
    """Grows trees on fixed samples."""

    def grow(self, residual: Float64, hessian: Float64) -> list[tuple[Tree, LeafIndex]]:
        """Grow one tree for each output.

        Parameters
        ----------
        residual, hessian : ndarray of shape (K, n)
            A tree h minimises ``sum(hessian * (residual / hessian - h)^2)``.

        Returns
        -------
        list of (Tree, ndarray of shape (n,))
            Trees, and the leaf of each sample as a position among the tree's leaves.
        """


class EngineGrower:
    """Leaf-wise histogram trees of a tree engine: the native one, or XGBoost's where the compiled kernels are missing.

    Parameters
    ----------
    problem : Problem
        Samples, with category codes. Quantiles of the real ones are the candidates for thresholds, as they were for a
        teacher of trees.
    categorical : ndarray of shape (d,)
        Which features are categories.
    settings : Settings
        Size of the trees.
    n_threads : int
        Threads; 0 for all.
    """

    def __init__(self, problem: Problem, categorical: Mask, settings: Settings, n_threads: int) -> None:
        X, n_real, features = problem.X, problem.n_real, problem.features
        self._features, self._n_features = features if features is not None and len(features) else None, X.shape[1]
        if self._features is not None:
            X, categorical = X[:, self._features], categorical[self._features]
        spec = EngineSpec(
            name="native" if is_available() else "xgboost",
            n_outputs=len(problem.target),
            min_child_weight=settings.min_child_weight,
            l2=_TREE_RIDGE,
            l1=0.0,
            min_split_loss=0.0,
            colsample_bytree=1.0,
            colsample_bylevel=1.0,
            colsample_bynode=1.0,
            max_bin=_BINS,
            n_threads=n_threads,
            device="cpu",
            categorical=categorical if categorical.any() else None,
            bin_reference=X[:n_real] if n_real >= _BINS else None,
        )
        options = TreeOptions(subset_splits=True, max_leaves=settings.max_leaves, shape="leaf-wise")
        self._engine = EngineFactory(spec, Context()).make(X, None, options)

    def grow(self, residual: Float64, hessian: Float64) -> list[tuple[Tree, LeafIndex]]:
        """Grow one tree for each output; see :class:`Grower`."""
        target, weighted_hessian = residual.astype(np.float32), hessian.astype(np.float32)
        totals = Totals(np.square(residual).sum(axis=1), float(hessian.sum()))
        grown = []
        for learner in self._engine.grow(target, weighted_hessian, 0, totals):
            if learner.leaf is None:
                raise RuntimeError("the engine returned a learner without leaves")
            tree = learner.model
            if self._features is not None:
                tree = with_features(tree, self._features, self._n_features)
            grown.append((tree, leaf_index(learner.leaf, n_leaves(tree))))
        return grown
