"""Give the trees of a fitted ensemble of any library new weights, and drop those that are not needed.

The trees stay as they are. On rows that the model was not fitted on, covariance-regularized weighting (CRW) finds one
factor per tree (per round, if there are several classes). :func:`prune` then looks for few trees whose weighted sum
comes closest to that of all trees: it imitates the re-weighted ensemble, not the labels, and so does not fit their
noise a second time.
"""

from __future__ import annotations

import copy
import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from scboost.boosting.losses import LogisticLoss, Loss, SoftmaxLoss, SquaredLoss
from scboost.redundancy.measures import encode_target
from scboost.redundancy.tree_matrix import (
    BLOCK_ROWS,
    EnsembleReader,
    TreeMatrix,
    lightgbm_leaves,
    lightgbm_means,
    lightgbm_trees,
    read_ensemble,
    tree_matrix,
    xgboost_document,
    xgboost_order,
)
from scboost.weighting import Weights, learn_weights
from scboost.weighting.solver import row_weights
from scboost.xgb.ubjson import encode

FloatArray = npt.NDArray[np.float64]

# Rows the ensemble is sure of hardly count in the imitation, but not nothing: their margins must stay large.
_MIN_CURVATURE = 1e-3
# Small, because the margins that are imitated carry no noise; above 0, which makes the optimum unique.
_IMITATION_PULL = 0.003
_LINKS = {LogisticLoss: "logit", SoftmaxLoss: "softmax", SquaredLoss: "identity"}
_SURE = 1e-3  # the margin of a forest's probabilities is scaled with this much pull towards factor 1


@dataclass(frozen=True)
class Reweighted:
    """A re-weighted ensemble and what is needed to trust it.

    Attributes
    ----------
    model : object
        Of the library and class given for XGBoost, LightGBM, CatBoost and SCBoost, with scaled leaves and without
        the dropped trees; a :class:`WeightedTrees` for scikit-learn's ensembles.
    factors : ndarray of shape (T,)
        What the contribution of each tree was multiplied by; 0 where it was dropped. For classifiers whose margin is
        a probability or a vote this includes the scale from there to log-odds.
    intercept : ndarray of shape (K,)
        The new intercept of the margin.
    kept : ndarray of shape (n_kept,)
        Positions of the trees kept, rising.
    loss : float
        Mean loss on the validation rows: log-loss, or half the squared error.
    gap : float
        Upper bound of the last optimisation's distance from its optimum.
    """

    model: Any
    factors: FloatArray
    intercept: FloatArray
    kept: npt.NDArray[np.intp]
    loss: float
    gap: float

    def __repr__(self) -> str:
        return (
            f"Reweighted({type(self.model).__name__}, {len(self.kept)} of {len(self.factors)} trees, "
            f"loss {self.loss:.4f}, gap {self.gap:.1e})"
        )


@dataclass
class WeightedTrees:
    """Trees of a scikit-learn ensemble, summed with other weights.

    Attributes
    ----------
    base : object
        A copy of the ensemble that has the kept trees only.
    column_weights : ndarray of shape (T * K,)
    intercepts : ndarray of shape (K,)
    link : {"logit", "softmax", "identity"}
    classes_ : ndarray of shape (n_classes,) or None
    """

    base: Any = field(repr=False)
    column_weights: FloatArray = field(repr=False)
    intercepts: FloatArray = field(repr=False)
    link: str
    classes_: npt.NDArray[Any] | None

    @cached_property
    def _ensemble(self) -> EnsembleReader:
        return replace(
            read_ensemble(self.base),
            column_weights=self.column_weights,
            intercepts=self.intercepts,
            link=self.link,
            average=False,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_ensemble"}

    def ensemble(self) -> EnsembleReader:
        """Return the view that :func:`tree_matrix` reads."""
        return self._ensemble

    def decision_function(self, X: Any) -> FloatArray:
        """Return the margin, of shape (n,) or (n, K)."""
        X = self._ensemble.check(X)
        blocks = X.iloc if hasattr(X, "iloc") else X
        rows = range(0, X.shape[0], BLOCK_ROWS)
        margins = [self._ensemble.matrix(blocks[i : i + BLOCK_ROWS], np.float64, BLOCK_ROWS).margin() for i in rows]
        return np.concatenate(margins)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the classes, of shape (n, n_classes)."""
        if self.classes_ is None:
            raise AttributeError("A regression ensemble has no predict_proba.")
        F = self.decision_function(X)
        if self.link == "softmax":
            return np.asarray(special.softmax(F, axis=1))
        return np.stack([special.expit(-F), special.expit(F)], axis=1)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return labels or values, of shape (n,)."""
        if self.classes_ is None:
            return self.decision_function(X)
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])


def reweight(
    model: Any,
    X_val: Any,
    y_val: npt.ArrayLike,
    *,
    method: Literal["nonnegative", "simplex"] = "nonnegative",
    covariance_penalty: float = 0.0,
    pull: float = 0.1,
    sample_weight: npt.ArrayLike | None = None,
) -> Reweighted:
    """Give the trees of a fitted ensemble the weights that predict held-out rows best.

    Parameters
    ----------
    model : object
        Any ensemble :func:`tree_matrix` reads. It is not changed.
    X_val : array-like or data frame of shape (m, d)
        Rows the model was not fitted on.
    y_val : array-like of shape (m,)
        Their labels (at least two classes) or real targets. For real targets the weights minimise the squared
        error, whatever loss the model was fitted with; a model of a quantile is refused.
    method : {"nonnegative", "simplex"}, default="nonnegative"
        "nonnegative" pulls free non-negative factors towards 1, that is towards the model as it is, and learns a new
        intercept. "simplex" is the paper's CRW: the factors are non-negative with mean 1 and the intercept stays.
    covariance_penalty : float, default=0
        Price of w'Cw, the variance of the weighted sum (of margins; divided by the variance of y for regression).
    pull : float, default=0.1
        Strength of the pull; above 0. Not used on the simplex.
    sample_weight : array-like of shape (m,), optional

    Returns
    -------
    Reweighted
        ``model`` predicts the weighted sum; trees with factor 0 are gone.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = make_classification(400, 5, random_state=0)
    >>> forest = RandomForestClassifier(n_estimators=20, random_state=0).fit(X[:200], y[:200])
    >>> found = reweight(forest, X[200:], y[200:])
    >>> found.model.predict_proba(X[:3]).shape
    (3, 2)
    """
    if method not in {"nonnegative", "simplex"}:
        raise ValueError(f"method must be 'nonnegative' or 'simplex', got {method!r}.")
    problem = _Problem.of(model, X_val, y_val, sample_weight, covariance_penalty)
    found = problem.simplex() if method == "simplex" else problem.nonnegative(problem.y, pull)
    return _result(model, problem, found)


def prune(
    model: Any,
    X_val: Any,
    y_val: npt.ArrayLike,
    *,
    max_trees: int,
    selection: Literal["backward", "lasso"] = "backward",
    covariance_penalty: float = 0.0,
    pull: float = 0.1,
    sample_weight: npt.ArrayLike | None = None,
) -> Reweighted:
    """Replace a fitted ensemble by a smaller weighted one that predicts held-out rows about as well.

    First :func:`reweight` all trees; then choose trees, and weights for them, whose sum imitates the margins of the
    re-weighted ensemble on the same rows.

    Parameters
    ----------
    model, X_val, y_val, covariance_penalty, pull, sample_weight
        As for :func:`reweight`.
    max_trees : int
        Trees to keep at most, at least 1. With several classes: trees per class (rounds).
    selection : {"backward", "lasso"}, default="backward"
        "backward" drops one tree after the other, each time the one whose loss the others repair best;
        "lasso" takes the first trees of the non-negative lasso path, on which copies of a tree come together.

    Returns
    -------
    Reweighted

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = make_classification(400, 5, random_state=0)
    >>> forest = RandomForestClassifier(n_estimators=20, random_state=0).fit(X[:200], y[:200])
    >>> len(prune(forest, X[200:], y[200:], max_trees=5).kept)
    5
    """
    if isinstance(max_trees, bool) or not isinstance(max_trees, int | np.integer) or max_trees < 1:
        raise ValueError(f"max_trees must be an integer of at least 1, got {max_trees!r}.")
    if selection not in {"backward", "lasso"}:
        raise ValueError(f"selection must be 'backward' or 'lasso', got {selection!r}.")
    problem = _Problem.of(model, X_val, y_val, sample_weight, covariance_penalty)
    found = problem.nonnegative(problem.y, pull)
    if np.count_nonzero(found.factors) > max_trees:
        F = problem.margin(found)
        kept = problem.select(F, int(max_trees), selection)
        found = problem.nonnegative(problem.predict(F), _IMITATION_PULL, kept)
    return _result(model, problem, found)


# --- the optimisation problem ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Found:
    factors: FloatArray
    intercept: FloatArray
    gap: float


@dataclass(frozen=True)
class _Problem:
    """Contributions A of shape (n, K, T), and what their weighted sum should be.

    ``A`` is H times the model's weights times ``scale``, which leads from probabilities or votes to log-odds; ``y``
    is what the loss takes: class numbers or real targets.
    """

    trees: TreeMatrix
    A: FloatArray
    scale: float
    start: FloatArray
    y: FloatArray
    sample_weight: FloatArray
    covariance_penalty: float
    loss: Loss

    @classmethod
    def of(cls, model: Any, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None, penalty: float) -> _Problem:
        trees = tree_matrix(model, X, dtype=np.float64)
        target = encode_target(trees, y)
        n, K = len(target), trees.n_outputs
        weight = row_weights(sample_weight, n)
        loss: Loss
        if target.dtype.kind == "f":
            if not np.isfinite(target).all():
                raise ValueError("y_val must be finite.")
            loss, link = SquaredLoss(), "identity"
        else:
            if len(np.unique(target[weight > 0])) < 2:
                raise ValueError("y_val must have rows of at least two classes, got one class only.")
            loss, link = (LogisticLoss(), "logit") if K == 1 else (SoftmaxLoss(K), "softmax")
        if trees.link != link and (link == "identity" or trees.library in _WRITERS):
            raise ValueError(f"A {trees.library} model whose margin is not its {link} cannot be re-weighted.")
        A = (trees.H * trees.column_weights).T.reshape(-1, K, n).transpose(2, 1, 0)
        start = np.asarray(trees.intercepts, np.float64)
        problem = cls(trees, A, 1.0, start, target.astype(np.float64), weight, penalty, loss)
        return problem if trees.link == link else problem.to_log_odds()

    @property
    def T(self) -> int:
        return int(self.A.shape[2])

    def to_log_odds(self) -> _Problem:
        """Scale a margin that is a probability or a vote, by one factor and a shift, to the best log-odds."""
        whole = replace(self, A=self.A.sum(axis=2, keepdims=True), covariance_penalty=0.0)
        found = whole.nonnegative(self.y, _SURE)
        scale = float(found.factors[0])
        return replace(self, A=self.A * scale, scale=scale, start=found.intercept)

    def margin(self, found: _Found) -> FloatArray:
        """Return the weighted sum, of shape (n, K)."""
        return np.asarray(self.A @ found.factors + found.intercept)

    def predict(self, F: FloatArray) -> FloatArray:
        """Turn margins into what the loss takes in place of y: probabilities or values."""
        p = self.loss.inverse_link(F.T)
        return np.asarray(p[:, 1] if isinstance(self.loss, LogisticLoss) else p, np.float64)

    def mean_loss(self, found: _Found) -> float:
        return self.loss.mean(self.y, self.margin(found).T, self.sample_weight)

    def nonnegative(self, target: FloatArray, pull: float, kept: npt.NDArray[np.intp] | None = None) -> _Found:
        """Find non-negative factors of the kept trees (all by default), pulled towards T / len(kept)."""
        kept = np.arange(self.T) if kept is None else kept
        scale = self.T / len(kept)
        found = self._learn(self.A[:, :, kept] * scale, target, "nonnegative", pull)
        factors = np.zeros(self.T)
        factors[kept] = found.weights * scale
        return _Found(factors, self.start + found.intercept, found.gap)

    def simplex(self) -> _Found:
        """Find non-negative factors with mean 1; the intercept stays."""
        found = self._learn(self.A * self.T, self.y, "simplex")
        return _Found(found.weights * self.T, self.start, found.gap)

    def _learn(
        self, A: FloatArray, target: FloatArray, method: Literal["nonnegative", "simplex"], pull: float = 0.1
    ) -> Weights:
        return learn_weights(
            A,
            target,
            loss=self.loss,
            start=self.start,
            sample_weight=self.sample_weight,
            method=method,
            covariance_penalty=self.covariance_penalty,
            pull=pull,
        )

    def select(self, F: FloatArray, max_trees: int, selection: str) -> npt.NDArray[np.intp]:
        """Choose trees that imitate the margins F, in the metric of the loss's curvature at F."""
        p = self.predict(F).reshape(F.shape)
        curvature = np.ones_like(F) if isinstance(self.loss, SquaredLoss) else p * (1 - p)
        v = self.sample_weight[:, None] * np.maximum(curvature, _MIN_CURVATURE)
        v /= v.sum(axis=0)
        G, c = np.zeros((self.T, self.T)), np.zeros(self.T)
        for k in range(F.shape[1]):
            centred = self.A[:, k] - v[:, k] @ self.A[:, k]
            weighted = centred * v[:, k, None]
            G += centred.T @ weighted
            c += weighted.T @ (F[:, k] - v[:, k] @ F[:, k])
        # Pulls equal trees towards equal factors; makes G invertible when trees repeat each other.
        ridge = max(0.1 * float(np.mean(np.diag(G))), np.finfo(float).tiny)
        G[np.diag_indices_from(G)] += ridge
        c += ridge
        return (_eliminate if selection == "backward" else _lasso)(G, c, max_trees)


def _eliminate(G: FloatArray, c: FloatArray, max_trees: int) -> npt.NDArray[np.intp]:
    """Drop columns of the least-squares problem u'Gu / 2 - c'u one by one, negative factors first.

    Dropping column j and re-fitting the others raises the objective by u_j^2 / (2 (G^-1)_jj).
    """
    inverse = np.linalg.inv(G)
    u = inverse @ c
    left = np.arange(len(c))
    while len(left) > max_trees:
        j = int(np.argmin(u)) if u.min() <= 0 else int(np.argmin(u**2 / np.diag(inverse)))
        column = inverse[:, j] / inverse[j, j]
        u = u - column * u[j]
        inverse = inverse - np.outer(column, inverse[j])
        keep = np.arange(len(left)) != j
        left, u, inverse = left[keep], u[keep], inverse[np.ix_(keep, keep)]
    return left


def _lasso(G: FloatArray, c: FloatArray, max_trees: int) -> npt.NDArray[np.intp]:
    """Return the columns of the non-negative lasso path's last step with at most max_trees of them."""
    from sklearn.linear_model import lars_path_gram

    if not c.max() > 0:
        return np.arange(1)
    unit = 1 / np.sqrt(np.diag(G).mean())
    _, _, path = lars_path_gram(c * unit, G * unit**2, n_samples=1, method="lasso", positive=True)
    steps = np.flatnonzero((path > 0).sum(axis=0) <= max_trees)
    chosen = np.flatnonzero(path[:, steps[-1]] > 0)
    return chosen if len(chosen) else np.array([int(np.argmax(c))])


# --- the new model ---------------------------------------------------------------------------------------------


def _result(model: Any, problem: _Problem, found: _Found) -> Reweighted:
    # A model needs a tree; one with factor 0 is as good as none.
    kept = np.flatnonzero(found.factors) if found.factors.any() else np.arange(1)
    factors = found.factors * problem.scale
    weights = problem.trees.column_weights.reshape(len(factors), -1)[kept] * factors[kept, None]
    write: _Writer = _WRITERS.get(problem.trees.library, _write_sklearn)
    new = write(model, problem, kept, weights, found.intercept)
    return Reweighted(new, factors, found.intercept, kept, problem.mean_loss(found), found.gap)


_Writer = Callable[[Any, _Problem, npt.NDArray[np.intp], FloatArray, FloatArray], Any]

# Each writer returns a copy of the model that predicts H[:, kept] * weights summed plus intercept, where weights of
# shape (n_kept, K) multiply the trees' values. XGBoost and LightGBM get the new intercept in the first kept round.


def _write_xgboost(
    model: Any, problem: _Problem, kept: npt.NDArray[np.intp], weights: FloatArray, intercept: FloatArray
) -> Any:
    import xgboost

    wrapper = None if isinstance(model, xgboost.Booster) else model
    document, part = xgboost_document(model if wrapper is None else wrapper.get_booster())
    K = len(intercept)
    order = xgboost_order(part, K)
    shift = np.zeros_like(weights)
    shift[0] = intercept - problem.trees.intercepts
    trees: list[dict[str, Any]] = []
    for t, round_weights, round_shift in zip(kept, weights, shift, strict=True):
        for k in range(K):
            tree = dict(part["trees"][order[t * K + k]], id=len(trees))
            leaf = tree["left_children"] == -1
            value = tree["split_conditions"].astype(np.float64) * round_weights[k] + round_shift[k]
            tree["split_conditions"] = np.where(leaf, value, tree["split_conditions"]).astype(np.float32)
            tree["base_weights"] = np.where(leaf, value, tree["base_weights"]).astype(np.float32)
            trees.append(tree)
    part = {
        **part,
        "trees": trees,
        "tree_info": list(range(K)) * len(kept),
        "iteration_indptr": [K * t for t in range(len(kept) + 1)],
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
    }
    boosted: dict[str, Any] = {"model": part, "name": "gbtree"}
    if document["learner"]["gradient_booster"]["name"] == "dart":
        boosted = {"gbtree": boosted, "name": "dart", "weight_drop": [1.0] * len(trees)}
    # the attributes are about rounds that may be gone, such as the best one
    learner = {**document["learner"], "attributes": {}, "gradient_booster": boosted}
    raw = bytearray(encode({**document, "learner": learner}))
    if wrapper is None:
        return xgboost.Booster(model_file=raw)
    new = copy.deepcopy(wrapper)
    new.set_params(n_estimators=len(kept), early_stopping_rounds=None, num_parallel_tree=None)
    new.load_model(raw)
    return new


def _write_lightgbm(
    model: Any, problem: _Problem, kept: npt.NDArray[np.intp], weights: FloatArray, intercept: FloatArray
) -> Any:
    import lightgbm

    wrapper = None if isinstance(model, lightgbm.Booster) else model
    booster = model if wrapper is None else wrapper.booster_
    head, blocks, tail = lightgbm_trees(booster.model_to_string(num_iteration=None))
    K = len(intercept)
    base = lightgbm_means(blocks[:K])
    trees: list[str] = []
    for i, t in enumerate(kept):
        for k in range(K):
            block = blocks[t * K + k]
            has_base = t == 0 or problem.trees.average
            value = (lightgbm_leaves(block) - has_base * base[k]) * weights[i, k] + (i == 0) * intercept[k]
            block = re.sub(r"^Tree=\d+$", f"Tree={len(trees)}", block, count=1, flags=re.MULTILINE)
            text = " ".join(f"{v:.17g}" for v in value)
            trees.append(re.sub(r"^leaf_value=.*$", f"leaf_value={text}", block, count=1, flags=re.MULTILINE))
    # without their sizes LightGBM parses the trees one after the other; the average is in the weights now
    head = re.sub(r"^(tree_sizes=.*|average_output)\n", "", head, flags=re.MULTILINE)
    new_booster = lightgbm.Booster(model_str=head + "".join(trees) + tail)
    if wrapper is None:
        return new_booster
    new = copy.copy(wrapper).set_params(n_estimators=len(kept))
    new._Booster = new_booster  # noqa: SLF001  (LightGBM's wrappers have no public way in)
    new._best_iteration = 0  # noqa: SLF001
    return new


def _write_catboost(
    model: Any,
    problem: _Problem,  # noqa: ARG001 - the writers' signature
    kept: npt.NDArray[np.intp],
    weights: FloatArray,
    intercept: FloatArray,
) -> Any:
    def scale(node: dict[str, Any], factor: FloatArray) -> None:
        for name in ("value", "leaf_values"):  # of a leaf; of a symmetric tree, leaf by leaf
            if name in node:
                values = np.reshape(node[name], (-1, len(factor))) * factor
                node[name] = float(values[0, 0]) if np.isscalar(node[name]) else values.ravel().tolist()
        for child in ("left", "right"):
            if child in node:
                scale(node[child], factor)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"  # CatBoost drops trees from the ends only; its JSON can lose any
        model.save_model(str(path), format="json")
        document = json.loads(path.read_text())
        name = "oblivious_trees" if "oblivious_trees" in document else "trees"
        document[name] = [document[name][t] for t in kept]
        for tree, factor in zip(document[name], weights, strict=True):
            scale(tree, factor)
        document["scale_and_bias"] = [1, intercept.tolist()]
        path.write_text(json.dumps(document))
        new = type(model)()
        new.load_model(str(path), format="json")
    return new


def _write_scboost(
    model: Any,
    problem: _Problem,  # noqa: ARG001 - the writers' signature
    kept: npt.NDArray[np.intp],
    weights: FloatArray,
    intercept: FloatArray,
) -> Any:
    new = copy.deepcopy(model)
    ensemble = new._ensemble  # noqa: SLF001  (the same package)
    old = ensemble.weights
    rounds = np.flatnonzero(old.any(axis=1)) if hasattr(ensemble, "booster") else np.arange(len(old))
    in_values = old[rounds[kept]] if hasattr(ensemble, "booster") else 1.0  # a booster's leaves carry the weights
    changed = np.zeros_like(old)
    changed[rounds[kept]] = weights * in_values
    ensemble.reweight(changed, intercept)
    return new


def _write_sklearn(
    model: Any, problem: _Problem, kept: npt.NDArray[np.intp], weights: FloatArray, intercept: FloatArray
) -> WeightedTrees:
    if isinstance(model, WeightedTrees):
        model = model.base
    base = copy.copy(model)
    if hasattr(base, "_predictors"):
        base._predictors = [model._predictors[t] for t in kept]  # noqa: SLF001  (no public access)
    elif isinstance(model.estimators_, np.ndarray):
        base.estimators_ = model.estimators_[kept]
    else:
        base.estimators_ = [model.estimators_[t] for t in kept]
    if hasattr(base, "estimator_weights_"):
        base.estimator_weights_ = model.estimator_weights_[kept]
    return WeightedTrees(base, weights.ravel(), intercept, _LINKS[type(problem.loss)], problem.trees.classes)


_WRITERS: dict[str, _Writer] = {
    "xgboost": _write_xgboost,
    "lightgbm": _write_lightgbm,
    "catboost": _write_catboost,
    "scboost": _write_scboost,
}
