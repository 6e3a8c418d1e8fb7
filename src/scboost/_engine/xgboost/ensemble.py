"""XGBoost's trees as a fitted ensemble: one native model whose leaves carry the weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse, special

from scboost._arrays import FloatArray, IntArray, Paged
from scboost._engine.ensemble import Ensemble
from scboost._engine.interface import Learner, StoredTree
from scboost._engine.native import MISSING, is_available, pool_for
from scboost._model.document import Document, Table, Tree, constant, leaves, scaled, with_leaf_values
from scboost._model.structure import check_covers
from scboost._xgboost import import_xgboost, usable_threads

from .engine import feature_types
from .paged import paged_matrix

if TYPE_CHECKING:
    import xgboost

    from scboost._engine.native.trees import TreePredictor

_LOG_LINKS = {"count:poisson", "survival:cox", "survival:aft"}  # objectives whose raw score is a logarithm
_BELOW_LARGEST = np.nextafter(np.finfo(np.float32).max, np.float32(0))  # the largest number has an infinite spacing
_LARGEST_SHIFT = 64  # of the leaves by the intercept, in units of what the native model holds


def _predictor(trees: list[Tree], n_features: int, n_outputs: int) -> TreePredictor:
    """Prepare trees for the compiled kernels, those of the outputs of a round after each other."""
    from scboost._engine.native.trees import TreePredictor

    return TreePredictor(trees, [i % n_outputs for i in range(len(trees))], n_features, n_outputs)


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
        self._stored: list[StoredTree] = []  # as they were grown, or decoded
        self._n_decoded = 0
        self._forget_boosters()

    @property
    def _trees(self) -> list[Tree]:
        """All trees, decoded on first use: a fit grows many that are never inspected."""
        for i in range(self._n_decoded, len(self._stored)):
            tree = self._stored[i]
            if not isinstance(tree, dict):
                self._stored[i] = tree.document()
        self._n_decoded = len(self._stored)
        return cast("list[Tree]", self._stored)

    @_trees.setter
    def _trees(self, trees: list[Tree]) -> None:
        self._stored, self._n_decoded = list(trees), len(trees)

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name not in {"_stored", "_n_decoded"}}
        return {**kept, "_trees": self._trees, "_booster": None, "_centred": {}, "_predictor": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._trees = state.pop("_trees")
        self.__dict__.update(state)

    def _forget_boosters(self) -> None:
        self._booster: xgboost.Booster | None = None
        self._centred: dict[int, xgboost.Booster] = {}  # the same without the intercept, by number of threads
        self._predictor: TreePredictor | None = None  # the trees of the centred model

    def _prepared(self) -> TreePredictor | None:
        """Trees of the native model without the intercept for the compiled kernels, if these are installed."""
        if self._predictor is None and is_available():
            self._predictor = _predictor(self.centred_document().trees, self.n_features, self.n_outputs)
        return self._predictor

    def _append(self, learner: Learner) -> None:
        self._stored.append(learner.stored())
        self._forget_boosters()

    def _extend(self, other: TreeEnsemble) -> None:
        self._stored += other._stored

    def _select(self, learners: IntArray) -> None:
        self._stored, self._n_decoded = [self._stored[i] for i in learners], 0

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
        n_jobs = usable_threads(n_jobs)
        booster = self._centred.get(n_jobs)
        if booster is None:  # one for each number: telling a booster while another thread predicts with it is a race
            booster = self._centred[n_jobs] = self.centred_document().booster(n_jobs)
        return booster

    def leaf_values(self) -> FloatArray:
        """Leaf values before the weights, tree by tree, of the trees in the native model."""
        kept = [tree for t in self.kept for tree in self.trees_of(int(t))]
        return np.concatenate([np.zeros(0, np.float32), *(tree["split_conditions"][leaves(tree)] for tree in kept)])

    def dropped(self) -> list[Tree]:
        """Trees that are not in the native model, because their weights are zero."""
        return [tree for t in np.setdiff1d(np.arange(self.n_rounds), self.kept) for tree in self.trees_of(int(t))]

    def trees_of(self, t: int) -> list[Tree]:
        """Return the trees of a round, without their weights."""
        return self._trees[t * self.n_outputs : (t + 1) * self.n_outputs]

    def restore(self, native: Document, weights: FloatArray, leaf_values: FloatArray, dropped: list[Tree]) -> None:
        """Take over what :meth:`document`, :meth:`leaf_values` and :meth:`dropped` of another ensemble returned.

        Parameters
        ----------
        native : Document
            A valid model. It must be that of the restored ensemble, which is verified.
        weights : ndarray of shape (rounds, K)
            Of the other ensemble; its intercept is the one that this ensemble was made with.
        leaf_values, dropped
            Of the other ensemble.
        """
        K = self.n_outputs
        if weights.ndim != 2 or weights.shape[1] != K or not np.isfinite(weights).all():
            raise ValueError(f"the weights are not finite numbers of {K} outputs")
        self.reweight(weights, self.intercept)
        kept = self.kept
        native = native.in_current_layout()
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
        self._stored, self._n_decoded = [], 0
        for t in range(self.n_rounds):
            for _ in range(K):
                tree = next(given if t in used else other)
                if t in used:
                    by_node = np.zeros(len(tree["left_children"]), dtype=np.float32)
                    by_node[leaves(tree)] = next(values)
                    tree = with_leaf_values(tree, by_node)
                self._stored.append(tree)
        self._forget_boosters()
        self._check_agreement(native)

    def _check_agreement(self, native: Document) -> None:
        """Raise a ValueError unless this ensemble predicts what the native model predicts.

        Leaves must be the same to the bit. Where they hold a part of the intercept, they may differ by the rounding of
        the link, which is that of another machine; all tolerances are relative to numbers of the native model.
        """
        K = self.n_outputs
        with np.errstate(over="ignore"):  # weights that do not fit the leaves
            expected = self.document()
        margin = np.broadcast_to(self._base_margin(np.array(native.base_scores)), K)
        if not np.isfinite(margin).all():
            raise ValueError("the base score is outside the domain of the link")
        shift = self.intercept - margin
        agrees = native.equals_but_for_values(expected)
        largest = np.zeros(K)
        for i, (given, made) in enumerate(zip(native.trees, expected.trees, strict=True) if agrees else ()):
            check_covers(given)
            leaf = leaves(given)
            value = given["split_conditions"][leaf]
            largest[i % K] = max(largest[i % K], np.abs(value).max())
            if i < K:
                wanted = self._first_leaf_values(i)[leaf] + shift[i]
                rounding = 4 * np.spacing(np.abs(margin[i]).astype(np.float32)) if self._link_is_rounded else 0.0
                spacing = np.spacing(np.minimum(np.abs(value), _BELOW_LARGEST))
                agrees &= bool((np.abs(wanted - value) <= spacing + rounding).all())
            else:
                agrees &= np.array_equal(value, made["split_conditions"][leaf])
        if not agrees:
            raise ValueError("the native model is not that of these weights")
        unit = np.maximum(np.maximum(np.abs(margin), largest), 0.0 if self._scores_have_unit else 1.0)
        if (np.abs(shift) > _LARGEST_SHIFT * unit).any():  # it would cost the leaves their digits
            raise ValueError("the intercept is not that of the native model")

    def _first_leaf_values(self, k: int) -> FloatArray:
        """Weighted values by node, in float64, of the first tree of the native model for an output."""
        if not len(self.kept):
            return np.zeros(1)
        values = self._trees[self.kept[0] * self.n_outputs + k]["split_conditions"]
        return np.asarray(values.astype(np.float64) * self.weights[self.kept[0], k])

    @property
    def _link_is_rounded(self) -> bool:
        return self._objective in {"binary:logistic", *_LOG_LINKS}

    @property
    def _scores_have_unit(self) -> bool:
        """Whether raw scores have the unit of y, as opposed to logarithms."""
        return self._objective not in {"binary:logistic", "multi:softprob", *_LOG_LINKS}

    def _document(self, kept: IntArray, weights: FloatArray, intercept: FloatArray) -> Document:
        base_score, rest = self._base_score(intercept)
        trees = [
            scaled(self._trees[t * self.n_outputs + k], weights[t, k], rest[k] if t == kept[0] else 0.0)
            for t in kept
            for k in range(self.n_outputs)
        ]
        # Without any tree, XGBoost does not apply the link, and what base_score could not hold would be lost.
        return Document.new(
            trees or [constant(value) for value in rest],
            objective=self._objective,
            n_outputs=self.n_outputs,
            base_score=base_score,
            n_features=self.n_features,
            feature_names=self._feature_names or (),
            feature_types=feature_types(self._categorical) or (),
            tables=self._tables or (),
        )

    def _base_score(self, intercept: FloatArray) -> tuple[float, FloatArray]:
        """Intercept of all outputs as XGBoost stores it, and what that leaves for the leaves of the first round."""
        middle = np.array([(intercept.min() + intercept.max()) / 2])
        if self._objective == "binary:logistic":
            stored = np.clip(special.expit(middle), 1e-6, 1 - 1e-6).astype(np.float32)
        elif self._objective in _LOG_LINKS:
            stored = np.exp(np.clip(middle, -80, 80)).astype(np.float32)  # what float32 holds
        else:
            stored = middle.astype(np.float32)
        return float(stored[0]), intercept - self._base_margin(stored)

    def _base_margin(self, base_score: FloatArray) -> FloatArray:
        """Raw score that XGBoost starts from; not finite outside the domain of the link."""
        stored = np.asarray(base_score, dtype=np.float32)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self._objective == "binary:logistic":
                return -np.log(1 / stored - 1).astype(np.float64)  # in float32, as XGBoost does
            if self._objective in _LOG_LINKS:
                return np.log(stored.astype(np.float64))
        return stored.astype(np.float64)

    def scores(self, X: Any, n_jobs: int = 1) -> FloatArray:
        """Scores of shape (K, n), by the compiled kernels, or by XGBoost without them; see :class:`Ensemble`."""
        if isinstance(X, Paged):
            return np.concatenate([self.scores(part, n_jobs) for part in X], axis=1)
        predictor = self._prepared()
        if predictor is not None:
            scores: FloatArray = predictor.scores(X, pool_for(n_jobs, X.shape[0] * predictor.n_trees))
            scores += self.intercept[:, None]
            return scores
        booster = self.centred_booster(n_jobs)
        if isinstance(X, sparse.csr_array):  # which inplace_predict refuses, as opposed to a matrix
            X = sparse.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)
        margin = booster.inplace_predict(X, predict_type="margin", validate_features=False)
        trees: FloatArray = np.asarray(margin).reshape(-1, self.n_outputs).T
        return self.intercept[:, None] + trees

    def explain(self, X: Any, n_jobs: int = 1) -> FloatArray:
        """Shares of the columns in the scores, of shape (n, K, d + 1), the mean score in the last place."""
        if isinstance(X, Paged):
            return np.concatenate([self.explain(part, n_jobs) for part in X])
        predictor = self._prepared()
        if predictor is not None:
            values: FloatArray = predictor.shap_values(X, pool_for(n_jobs, X.shape[0] * predictor.n_trees))
            values[:, :, -1] += self.intercept
            return values
        matrix = self.prepare(X, n_jobs)
        shares = self.centred_booster(n_jobs).predict(matrix, pred_contribs=True, validate_features=False)
        shares = shares.reshape(matrix.num_row(), self.n_outputs, -1).astype(np.float64)
        shares[:, :, -1] += self.intercept
        return np.asarray(shares)

    def weighted_trees(self, X: Any, n_jobs: int = 1) -> FloatArray:
        """Return the weighted value of each tree of the native model, of shape (n_trees, n), by the kernels."""
        predictor = self._prepared()
        if predictor is None:
            raise ImportError(MISSING)
        return predictor.tree_values(X, pool_for(n_jobs, X.shape[0] * predictor.n_trees))

    def leaf_nodes(self, X: Any, n_jobs: int = 1) -> IntArray:
        """Node of each sample in each tree of the native model, of shape (n, n_trees)."""
        predictor = self._prepared()
        if predictor is not None:
            nodes = predictor.nodes(X, pool_for(n_jobs, X.shape[0] * predictor.n_trees))
            return nodes.astype(np.intp)
        matrix = self.prepare(X, n_jobs)
        leaves = self.booster(n_jobs).predict(matrix, pred_leaf=True, validate_features=False)
        return np.asarray(leaves, dtype=np.intp).reshape(matrix.num_row(), -1)

    def prepare(self, X: Any, n_jobs: int = 1) -> Any:
        """Make a DMatrix of samples that are in files or without the compiled kernels; see :class:`Ensemble`."""
        if is_available() and not isinstance(X, Paged):
            return X
        xgb = import_xgboost()
        if isinstance(X, xgb.DMatrix):
            return X
        types = feature_types(self._categorical)
        n_threads = usable_threads(n_jobs) or None
        if isinstance(X, Paged):
            return paged_matrix("DMatrix", X, types, nthread=n_threads)
        return xgb.DMatrix(X, nthread=n_threads, feature_types=types, enable_categorical=types is not None)

    def contributions(self, X: Any, first: int = 0, last: int | None = None, n_jobs: int = 1) -> FloatArray:
        """Unweighted predictions of every learner, of shape (rounds, K, n); see :class:`Ensemble`."""
        K = self.n_outputs
        rounds = np.arange(first, self.n_rounds if last is None else last)
        if is_available() and not hasattr(X, "num_row"):  # a DMatrix
            predictor = _predictor(self._trees[first * K : (first + len(rounds)) * K], self.n_features, 1)
            parts = X if isinstance(X, Paged) else (X,)
            values = [predictor.tree_values(part, pool_for(n_jobs, part.shape[0] * len(rounds) * K)) for part in parts]
            together = np.concatenate(values, axis=1)
            return together.reshape(len(rounds), K, together.shape[1])
        matrix = self.prepare(X, n_jobs)
        n = matrix.num_row()
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

    def nodes_of(self, X: Any, first: int, last: int, n_jobs: int = 1) -> IntArray:
        """Node of each sample in the trees of some rounds, of shape (n, rounds * K); X as from :meth:`prepare`."""
        K = self.n_outputs
        if is_available() and not hasattr(X, "num_row"):  # a DMatrix
            predictor = _predictor(self._trees[first * K : last * K], self.n_features, 1)
            return predictor.nodes(X, pool_for(n_jobs, X.shape[0] * predictor.n_trees))
        structure = self._document(np.arange(first, last), np.ones_like(self.weights), np.zeros(K)).booster(n_jobs)
        leaves = structure.predict(X, pred_leaf=True, validate_features=False)
        return np.asarray(leaves, dtype=np.intp).reshape(X.num_row(), -1)

    def gains(self) -> FloatArray:
        """Total gain of each feature; see :class:`Ensemble`."""
        total = np.zeros(self.n_features)
        for tree, weight in zip(self._stored, self.weights.ravel(), strict=True):
            if weight == 0:
                continue
            if not isinstance(tree, dict):
                total += tree.gains()
                continue
            splits = tree["left_children"] != -1
            total += np.bincount(
                tree["split_indices"][splits], weights=tree["loss_changes"][splits], minlength=self.n_features
            )
        return total
