"""XGBoost's trees as a fitted ensemble: one native model whose leaves carry the weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse, special

from scboost._arrays import FloatArray, IntArray, Paged
from scboost._model.document import Document, Table, Tree, constant, leaves, scaled, with_leaf_values
from scboost._xgboost import import_xgboost
from scboost.boosting.ensemble import Ensemble
from scboost.boosting.learners import Learner

from .engine import feature_types
from .paged import paged_matrix

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
    tables : list of (Table or None), optional
        Categories of each column in the order of their codes, for the native model.
    """

    def __init__(
        self,
        n_features: int,
        intercept: FloatArray,
        *,
        objective: str,
        categorical: npt.NDArray[np.bool_] | None = None,
        feature_names: list[str] | None = None,
        tables: Sequence[Table | None] | None = None,
    ) -> None:
        super().__init__(n_features, intercept)
        self._objective, self._categorical, self._feature_names = objective, categorical, feature_names
        self._tables = tables
        self._trees: list[Tree] = []
        self._forget_boosters()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_booster": None, "_centred": None}

    def _forget_boosters(self) -> None:
        self._booster: xgboost.Booster | None = None
        self._centred: xgboost.Booster | None = None  # the same without the intercept
        self._centred_threads: int | None = None

    def _append(self, learner: Learner) -> None:
        tree = {**learner.model, "split_conditions": learner.model["split_conditions"].copy()}
        tree["split_conditions"][learner.nodes] = learner.values
        self._trees.append(tree)
        self._forget_boosters()

    def _extend(self, other: TreeEnsemble) -> None:
        self._trees += other._trees

    def _select(self, learners: IntArray) -> None:
        self._trees = [self._trees[i] for i in learners]

    def reweight(self, weights: FloatArray, intercept: FloatArray) -> None:
        """Replace weights and intercept; see :class:`Ensemble`."""
        super().reweight(weights, intercept)
        self._forget_boosters()

    @property
    def kept(self) -> IntArray:
        """Rounds that have a weight other than zero: those of the native model."""
        return np.flatnonzero(self.weights.any(axis=1))

    def document(self) -> Document:
        """Native model of the weighted sum, without the rounds whose weights are all zero."""
        return self._document(self.kept, self.weights, self.intercept)

    def booster(self, n_jobs: int = 1) -> xgboost.Booster:
        """Return the native model; its margins are the scores as far as float32 can hold them."""
        if self._booster is None:
            self._booster = self.document().booster(n_jobs)
        return self._booster

    def centred_document(self) -> Document:
        """Native model without the intercept, whose size would cost the trees their digits."""
        return self._document(self.kept, self.weights, np.zeros(self.n_outputs))

    def centred_booster(self, n_jobs: int = 1) -> xgboost.Booster:
        """Return the native model without the intercept; 0 threads are all."""
        if self._centred is None:
            self._centred, self._centred_threads = self.centred_document().booster(n_jobs), n_jobs
        elif self._centred_threads != n_jobs:  # XGBoost takes longer to be told than to predict a few rows
            self._centred.set_param({"nthread": n_jobs})
            self._centred_threads = n_jobs
        return self._centred

    def leaf_values(self) -> FloatArray:
        """Leaf values before the weights, tree by tree, of the trees in the native model."""
        kept = [tree for t in self.kept for tree in self._of_round(int(t))]
        return np.concatenate([np.zeros(0, np.float32), *(tree["split_conditions"][leaves(tree)] for tree in kept)])

    def dropped(self) -> list[Tree]:
        """Trees that are not in the native model, because their weights are zero."""
        return [tree for t in np.setdiff1d(np.arange(self.n_rounds), self.kept) for tree in self._of_round(int(t))]

    def _of_round(self, t: int) -> list[Tree]:
        return self._trees[t * self.n_outputs : (t + 1) * self.n_outputs]

    def restore(self, native: Document, weights: FloatArray, leaf_values: FloatArray, dropped: list[Tree]) -> None:
        """Take over what :meth:`document`, :meth:`leaf_values` and :meth:`dropped` of another ensemble returned.

        Parameters
        ----------
        native : Document
            A sound model. It must be that of the restored ensemble; nothing is taken on trust.
        weights : ndarray of shape (rounds, K)
            Of the other ensemble; its intercept is the one that this ensemble was made with.
        leaf_values, dropped
            Of the other ensemble.
        """
        K = self.n_outputs
        if weights.ndim != 2 or weights.shape[1] != K or not np.isfinite(weights).all():
            raise ValueError(f"the weights are not finite numbers of {K} outputs")
        self.weights = np.array(weights, dtype=np.float64)
        kept = self.kept
        given = iter(native.trees if len(kept) else ())
        other = iter(dropped)
        counts = [int(np.count_nonzero(leaves(tree))) for tree in (native.trees if len(kept) else ())]
        if len(counts) != len(kept) * K or len(dropped) != (self.n_rounds - len(kept)) * K:
            raise ValueError(f"there are {len(counts)} and {len(dropped)} trees for {self.n_rounds} rounds")
        if len(leaf_values) != sum(counts) or not np.isfinite(leaf_values).all():
            raise ValueError(f"there are {len(leaf_values)} finite leaf values for {sum(counts)} leaves")
        native.with_trees(dropped, list(range(K)) * (len(dropped) // K)).check()
        values = iter(np.split(leaf_values.astype(np.float32), np.cumsum(counts)[:-1]) if counts else ())
        used = set(kept.tolist())
        self._trees = []
        for t in range(self.n_rounds):
            for _ in range(K):
                tree = next(given if t in used else other)
                if t in used:
                    by_node = np.zeros(len(tree["left_children"]), dtype=np.float32)
                    by_node[leaves(tree)] = next(values)
                    tree = with_leaf_values(tree, by_node)
                self._trees.append(tree)
        self._forget_boosters()
        if not self.document().nearly_equals(native):
            raise ValueError("the native model is not that of these weights")

    def _document(self, kept: IntArray, weights: FloatArray, intercept: FloatArray) -> Document:
        base_score, rest = self._base_score(intercept)
        trees = [
            scaled(self._trees[t * self.n_outputs + k], weights[t, k], rest[k] if t == kept[0] else 0.0)
            for t in kept
            for k in range(self.n_outputs)
        ]
        # Without any tree, XGBoost forgets the link, and what base_score could not hold would be lost.
        return Document.new(
            trees or [constant(value) for value in rest],
            objective=self._objective,
            base_score=base_score,
            n_features=self.n_features,
            feature_names=self._feature_names or (),
            feature_types=feature_types(self._categorical) or (),
            tables=self._tables or (),
        )

    def _base_score(self, intercept: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Intercept as XGBoost stores it, and what that loses: a float32 probability has few digits near 1."""
        if self._objective == "binary:logistic":
            stored = np.clip(special.expit(intercept), 1e-6, 1 - 1e-6).astype(np.float32)
            return stored, intercept + np.log(1 / stored - 1).astype(np.float64)  # in float32, as XGBoost reads it
        if self._objective == "count:poisson":
            stored = np.exp(np.clip(intercept, -80, 80)).astype(np.float32)  # what float32 holds
            return stored, intercept - np.log(stored.astype(np.float64))
        stored = intercept.astype(np.float32)
        return stored, intercept - stored

    def scores(self, X: Any, n_jobs: int = 1) -> FloatArray:
        """Scores of shape (K, n), by XGBoost itself; see :class:`Ensemble`."""
        if isinstance(X, Paged):
            return np.concatenate([self.scores(part, n_jobs) for part in X], axis=1)
        booster = self.centred_booster(n_jobs)
        if isinstance(X, sparse.csr_array):  # which inplace_predict refuses, as opposed to a matrix
            X = sparse.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)
        margin = booster.inplace_predict(X, predict_type="margin", validate_features=False)
        trees: FloatArray = np.asarray(margin).reshape(-1, self.n_outputs).T
        return self.intercept[:, None] + trees

    def explain(self, X: Any, n_jobs: int = 1) -> FloatArray:
        """Shares of the columns in the scores, of shape (n, K, d + 1), the mean score in the last place."""
        matrix = self.prepare(X, n_jobs)
        shares = self.centred_booster(n_jobs).predict(matrix, pred_contribs=True, validate_features=False)
        shares = shares.reshape(matrix.num_row(), self.n_outputs, -1).astype(np.float64)
        shares[:, :, -1] += self.intercept
        return np.asarray(shares)

    def prepare(self, X: Any, n_jobs: int = 1) -> Any:
        """Make a DMatrix of the rows; see :class:`Ensemble`."""
        xgb = import_xgboost()
        if isinstance(X, xgb.DMatrix):
            return X
        types = feature_types(self._categorical)
        n_threads = n_jobs or None
        if isinstance(X, Paged):
            return paged_matrix("DMatrix", X, types, nthread=n_threads)
        return xgb.DMatrix(X, nthread=n_threads, feature_types=types, enable_categorical=types is not None)

    def contributions(self, X: Any, first: int = 0, last: int | None = None, n_jobs: int = 1) -> FloatArray:
        """Unweighted predictions of every learner, of shape (rounds, K, n); see :class:`Ensemble`."""
        K = self.n_outputs
        matrix = self.prepare(X, n_jobs)
        n = matrix.num_row()
        rounds = np.arange(first, self.n_rounds if last is None else last)
        H = np.empty((len(rounds), K, n), dtype=np.float32)
        if not len(rounds):
            return H
        structure = self._document(rounds, np.ones_like(self.weights), np.zeros(K)).booster(n_jobs)
        # Without a check of names: a DMatrix refuses brackets in them.
        leaves = structure.predict(matrix, pred_leaf=True, validate_features=False)
        leaves = leaves.reshape(n, len(rounds) * K).astype(np.intp)
        for i, tree in enumerate(self._trees[first * K : (first + len(rounds)) * K]):
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
