"""XGBoost's trees as a fitted ensemble: one native model whose leaves carry the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse, special

from scboost._arrays import FloatArray, IntArray
from scboost.boosting.ensemble import Ensemble
from scboost.boosting.learners import Learner

from . import import_xgboost
from .document import Document, Tree, constant, scaled
from .engine import feature_types

if TYPE_CHECKING:
    import xgboost


class TreeEnsemble(Ensemble):
    """Trees of the XGBoost engine, as one native XGBoost model whose leaves carry the weights.

    Parameters
    ----------
    n_features : int
        Number of columns.
    intercept : ndarray of shape (K,)
        Constant score of each output.
    objective : str
        XGBoost's name of the loss, which gives the native model its link.
    categorical : ndarray of bool, optional
        Which columns hold category codes.
    feature_names : list of str, optional
        Names of the columns, for the native model.
    """

    def __init__(
        self,
        n_features: int,
        intercept: FloatArray,
        *,
        objective: str,
        categorical: npt.NDArray[np.bool_] | None = None,
        feature_names: list[str] | None = None,
    ) -> None:
        super().__init__(n_features, intercept)
        self._objective, self._categorical, self._feature_names = objective, categorical, feature_names
        self._trees: list[Tree] = []
        self._booster: xgboost.Booster | None = None
        self._booster_threads: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_booster": None}

    def _append(self, learner: Learner) -> None:
        tree = {**learner.model, "split_conditions": learner.model["split_conditions"].copy()}
        tree["split_conditions"][learner.nodes] = learner.values
        self._trees.append(tree)
        self._booster = None

    def _extend(self, other: TreeEnsemble) -> None:
        self._trees += other._trees

    def reweight(self, weights: FloatArray, intercept: FloatArray) -> None:
        """Replace weights and intercept; see :class:`Ensemble`."""
        super().reweight(weights, intercept)
        self._booster = None

    def booster(self) -> xgboost.Booster:
        """Native model of the weighted sum, without the rounds whose weights are all zero."""
        if self._booster is None:
            kept = np.flatnonzero(self.weights.any(axis=1))
            self._booster = self._build(kept, self.weights, self.intercept)
            self._booster_threads = None
        return self._booster

    def _build(self, kept: IntArray, weights: FloatArray, intercept: FloatArray) -> xgboost.Booster:
        base_score, rest = self._base_score(intercept)
        trees = [
            scaled(self._trees[t * self.n_outputs + k], weights[t, k], rest[k] if t == kept[0] else 0.0)
            for t in kept
            for k in range(self.n_outputs)
        ]
        # Without any tree, XGBoost forgets the link, and what base_score could not hold would be lost.
        document = Document.new(
            trees or [constant(value) for value in rest],
            objective=self._objective,
            base_score=base_score,
            n_features=self.n_features,
            feature_names=self._feature_names or (),
            feature_types=feature_types(self._categorical) or (),
        )
        return document.booster(self.n_jobs)

    def _base_score(self, intercept: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Intercept as XGBoost stores it, and what that loses: a float32 probability has few digits near 1."""
        if self._objective == "binary:logistic":
            stored = np.clip(special.expit(intercept), 1e-6, 1 - 1e-6).astype(np.float32)
            return stored, intercept + np.log(1 / stored - 1).astype(np.float64)  # in float32, as XGBoost reads it
        if self._objective == "count:poisson":
            stored = np.exp(intercept).astype(np.float32)
            return stored, intercept - np.log(stored.astype(np.float64))
        stored = intercept.astype(np.float32)
        return stored, intercept - stored

    def scores(self, X: Any) -> FloatArray:
        """Scores of shape (K, n), by XGBoost itself; see :class:`Ensemble`."""
        booster = self.booster()
        if self._booster_threads != self.n_jobs:  # XGBoost takes longer to be told than to predict a few rows
            booster.set_param({"nthread": self.n_jobs})
            self._booster_threads = self.n_jobs
        if isinstance(X, sparse.csr_array):  # which inplace_predict refuses, as opposed to a matrix
            X = sparse.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)
        margin = booster.inplace_predict(X, predict_type="margin", validate_features=False)
        return np.asarray(margin).reshape(-1, self.n_outputs).T

    def prepare(self, X: Any) -> Any:
        """Make a DMatrix of the rows; see :class:`Ensemble`."""
        xgb = import_xgboost()
        if isinstance(X, xgb.DMatrix):
            return X
        return xgb.DMatrix(
            X,
            nthread=self.n_jobs or None,
            feature_types=feature_types(self._categorical),
            enable_categorical=self._categorical is not None,
        )

    def contributions(self, X: Any, first: int = 0) -> FloatArray:
        """Unweighted predictions of every learner, of shape (rounds, K, n); see :class:`Ensemble`."""
        K = self.n_outputs
        matrix = self.prepare(X)
        n = matrix.num_row()
        rounds = np.arange(first, self.n_rounds)
        H = np.empty((len(rounds), K, n), dtype=np.float32)
        if not len(rounds):
            return H
        structure = self._build(rounds, np.ones_like(self.weights), np.zeros(K))
        structure.set_param({"nthread": self.n_jobs})
        # Without a check of names: a DMatrix refuses brackets in them.
        leaves = structure.predict(matrix, pred_leaf=True, validate_features=False)
        leaves = leaves.reshape(n, -1).astype(np.intp)
        for i, tree in enumerate(self._trees[first * K :]):
            H[i // K, i % K] = tree["split_conditions"][leaves[:, i]]
        return H

    def gains(self) -> FloatArray:
        """Total gain of each column; see :class:`Ensemble`."""
        total = np.zeros(self.n_features)
        for tree, weight in zip(self._trees, self.weights.ravel(), strict=True):
            splits = (tree["left_children"] != -1) & (weight != 0)
            total += np.bincount(
                tree["split_indices"][splits], weights=tree["loss_changes"][splits], minlength=self.n_features
            )
        return total
