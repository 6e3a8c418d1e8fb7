"""Reader of scikit-learn ensembles, and the estimator of their re-weighted trees."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import special
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags, check_array, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from scboost._arrays import FloatArray, IntArray
from scboost.diagnostics._registry import Reader, instances, read_ensemble
from scboost.diagnostics._tree_matrix import EnsembleReader, gather


class _Tree(Protocol):
    """The members of ``sklearn.tree._tree.Tree`` used here."""

    value: FloatArray

    def predict(self, X: Any) -> FloatArray: ...


class _Learner(Protocol):
    """A fitted learner of an ensemble."""

    tree_: _Tree

    def predict(self, X: Any) -> Any: ...


class _Model(Protocol):
    """The public members shared by all ensembles."""

    n_features_in_: int


class _GradientBoosting(_Model, Protocol):
    """The members of ``GradientBoosting*`` used here."""

    init_: object
    loss: str
    learning_rate: float
    estimators_: npt.NDArray[Any]

    def _raw_predict_init(self, X: FloatArray) -> FloatArray: ...


class _HistGradientBoosting(_Model, Protocol):
    """The members of ``HistGradientBoosting*`` used here, most of which are private."""

    loss: str
    _predictors: list[Any]
    _bin_mapper: Any
    _baseline_prediction: Any
    _preprocessor: Any

    def _preprocess_X(self, X: Any, *, reset: bool) -> FloatArray: ...


class _Forest(_Model, Protocol):
    """The members of ``RandomForest*`` and ``ExtraTrees*`` used here."""

    estimators_: list[_Learner]

    def apply(self, X: Any) -> IntArray: ...


class _AdaBoost(_Model, Protocol):
    """The members of ``AdaBoost*`` used here."""

    estimators_: list[_Learner]
    estimator_weights_: FloatArray


def _read_gradient_boosting(model: _GradientBoosting) -> EnsembleReader:
    constant = model.init_ == "zero" or (
        isinstance(model.init_, DummyClassifier | DummyRegressor)
        and model.init_.strategy not in {"stratified", "uniform"}
    )
    if not constant:
        raise ValueError(
            f"init={model.init_!r} predicts a different initial score for each sample, so the raw score is not a sum "
            "of trees."
        )
    trees = model.estimators_.ravel()
    K = model.estimators_.shape[1]

    def fill(X: Any, out: FloatArray) -> None:
        X = check_array(X, dtype=np.float32, order="C", accept_sparse="csr")
        for c, tree in enumerate(trees):
            out[:, c] = tree.tree_.predict(X)[:, 0]

    classes = getattr(model, "classes_", None)
    if classes is None:
        link = "quantile" if model.loss == "quantile" else "identity"
    elif K > 1:
        link = "softmax"
    else:
        link = "logit" if model.loss == "log_loss" else "vote"
    sample = np.zeros((1, model.n_features_in_), np.float32)
    start = model._raw_predict_init(sample)[0]  # noqa: SLF001  (no public access)
    weights = np.full(len(trees), float(model.learning_rate))
    return EnsembleReader(
        fill, weights, np.asarray(start), np.zeros(len(trees)), "sklearn", link, classes, model.n_features_in_
    )


def _read_hist_gradient_boosting(model: _HistGradientBoosting) -> EnsembleReader:
    from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

    predictors = [tree for trees in model._predictors for tree in trees]  # noqa: SLF001  (no public access)
    bitsets, feature_map = model._bin_mapper.make_known_categories_bitsets()  # noqa: SLF001

    def fill(X: Any, out: FloatArray) -> None:
        X = model._preprocess_X(X, reset=False)  # noqa: SLF001
        threads = _openmp_effective_n_threads()
        for c, tree in enumerate(predictors):
            out[:, c] = tree.predict(X, bitsets, feature_map, threads)

    intercepts = np.asarray(model._baseline_prediction, np.float64).ravel()  # noqa: SLF001
    classes = getattr(model, "classes_", None)
    if classes is None:
        link = {"poisson": "other", "gamma": "other", "quantile": "quantile"}.get(model.loss, "identity")
    else:
        link = "logit" if len(intercepts) == 1 else "softmax"
    n = len(predictors)
    reader = EnsembleReader(fill, np.ones(n), intercepts, np.zeros(n), "sklearn", link, classes, model.n_features_in_)
    has_categories = model._preprocessor is not None  # noqa: SLF001
    return replace(reader, needs_table=has_categories and hasattr(model, "feature_names_in_"))


def _read_forest(model: _Forest) -> EnsembleReader:
    classes = getattr(model, "classes_", None)
    trees = [tree.tree_ for tree in model.estimators_]
    if classes is None:
        values = [tree.value[:, :, 0] for tree in trees]
    elif isinstance(classes, list):
        raise ValueError("Multi-output forests are not supported.")
    else:
        values = [tree.value[:, 0, :] / tree.value[:, 0, :].sum(axis=1, keepdims=True) for tree in trees]
        if len(classes) == 2:
            values = [value[:, 1:] for value in values]
    T, K = len(values), values[0].shape[1]
    find = gather(values)
    if classes is None:
        centers = np.tile(np.mean([value[0] for value in values], axis=0), T)
    else:
        centers = np.full(T * K, 1 / len(classes))

    def fill(X: Any, out: FloatArray) -> None:
        find(model.apply(X), out)

    link = "identity" if classes is None else "probability"
    weights, zero, d = np.full(T * K, 1 / T), np.zeros(K), model.n_features_in_
    return EnsembleReader(fill, weights, zero, centers, "sklearn", link, classes, d, average=True)


def _read_adaboost(model: _AdaBoost) -> EnsembleReader:
    learners = model.estimators_
    weights = np.asarray(model.estimator_weights_[: len(learners)], np.float64)
    weights = weights / weights.sum()
    classes = getattr(model, "classes_", None)
    d = model.n_features_in_
    if classes is None:

        def fill(X: Any, out: FloatArray) -> None:
            X = _without_names(X)
            for t, learner in enumerate(learners):
                out[:, t] = learner.predict(X)

        centers = np.full(len(learners), np.mean([_root_value(learner) for learner in learners]))
        return EnsembleReader(fill, weights, np.zeros(1), centers, "sklearn", "identity", None, d, average=True)
    n_classes = len(classes)
    K = 1 if n_classes == 2 else n_classes
    against = -1 / (n_classes - 1)

    def fill_votes(X: Any, out: FloatArray) -> None:
        X = _without_names(X)
        for t, learner in enumerate(learners):
            label = learner.predict(X)
            for k in range(K):
                out[:, t * K + k] = np.where(label == classes[-1 if K == 1 else k], 1.0, against)

    scale = 2.0 if K == 1 else 1.0  # scikit-learn's two-class score is the difference of two opposite sums
    weights, zeros = np.repeat(scale * weights, K), np.zeros(len(learners) * K)
    return EnsembleReader(fill_votes, weights, np.zeros(K), zeros, "sklearn", "vote", classes, d, average=True)


def _without_names(X: Any) -> Any:
    """Return X without column names, as AdaBoost passes it to its learners."""
    return X.to_numpy() if hasattr(X, "to_numpy") else X


def _root_value(learner: _Learner) -> float:
    if not hasattr(learner, "tree_"):
        raise ValueError(f"The learners of AdaBoostRegressor must be trees, got {type(learner).__name__}.")
    return float(learner.tree_.value[0].ravel()[0])


_KINDS: dict[str, Callable[[Any], EnsembleReader]] = {
    "HistGradientBoosting": _read_hist_gradient_boosting,
    "GradientBoosting": _read_gradient_boosting,
    "RandomForest": _read_forest,
    "ExtraTrees": _read_forest,
    "AdaBoost": _read_adaboost,
}


def _kind(model: object) -> str | None:
    for kind in _KINDS:
        if instances("sklearn.ensemble", f"{kind}Classifier", f"{kind}Regressor")(model):
            return kind
    return None


def _read(model: _Model) -> EnsembleReader:
    check_is_fitted(model)
    names = getattr(model, "feature_names_in_", None)
    reader = _KINDS[_kind(model) or ""](model)
    return replace(reader, feature_names=None if names is None else list(names))


def _write(model: _Model, kept: IntArray, weights: FloatArray, intercept: FloatArray) -> WeightedTrees:
    """Copy the ensemble without the dropped trees; the weights are kept outside, its class cannot store them."""
    base: Any = copy.copy(model)
    old: Any = model
    if hasattr(base, "_predictors"):
        base._predictors = [old._predictors[t] for t in kept]  # noqa: SLF001  (no public access)
    elif isinstance(old.estimators_, np.ndarray):
        base.estimators_ = old.estimators_[kept]
    else:
        base.estimators_ = [old.estimators_[t] for t in kept]
    if hasattr(base, "estimator_weights_"):
        base.estimator_weights_ = old.estimator_weights_[kept]
    return WeightedTrees(base, weights.ravel(), intercept)


def _classifies(model: WeightedTrees) -> bool:
    return hasattr(model.base, "classes_")


class WeightedTrees(BaseEstimator):  # type: ignore[misc]
    """Trees of a scikit-learn ensemble with other weights: a classifier or regressor like the ensemble itself.

    It is already fitted: ``fit`` does nothing and a clone is the estimator itself, as for
    :class:`sklearn.frozen.FrozenEstimator`.

    Parameters
    ----------
    base : object
        A fitted scikit-learn ensemble with the kept trees only.
    column_weights : ndarray of shape (T * K,)
        Weights of its trees; see :class:`TreeMatrix`.
    intercepts : ndarray of shape (K,)
        Intercepts of the raw score, which is the log-odds for classifiers and the prediction for regressors.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels; classifiers only.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Feature names, if the ensemble was fitted on a table.
    """

    def __init__(self, base: _Model, column_weights: FloatArray, intercepts: FloatArray) -> None:
        self.base = base
        self.column_weights = column_weights
        self.intercepts = intercepts

    def __getattr__(self, name: str) -> Any:
        if name in {"classes_", "n_features_in_", "feature_names_in_"}:
            return getattr(self.base, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> WeightedTrees:
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.base).input_tags
        tags.target_tags.required = True
        if _classifies(self):
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags

    def __tree_ensemble__(self) -> EnsembleReader:
        link = "identity" if not _classifies(self) else "logit" if len(self.intercepts) == 1 else "softmax"
        return replace(
            read_ensemble(self.base),
            column_weights=self.column_weights,
            intercepts=self.intercepts,
            link=link,
            average=False,
        )

    def __with_tree_weights__(self, kept: IntArray, weights: FloatArray, intercept: FloatArray) -> WeightedTrees:
        return _write(self.base, kept, weights, intercept)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> WeightedTrees:  # noqa: ARG002 - the usual signature
        """Return the estimator unchanged."""
        return self

    def _margin(self, X: Any) -> FloatArray:
        return np.concatenate([trees.margin() for trees in self.__tree_ensemble__().matrices(X, np.float64)])

    @available_if(_classifies)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> FloatArray:
        """Return the raw score, of shape (n_samples,) or (n_samples, n_classes)."""
        return self._margin(X)

    @available_if(_classifies)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the class probabilities, of shape (n_samples, n_classes)."""
        F = self._margin(X)
        if F.ndim == 2:
            return np.asarray(special.softmax(F, axis=1))
        return np.stack([special.expit(-F), special.expit(F)], axis=1)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return class labels or values, of shape (n_samples,)."""
        if not _classifies(self):
            return self._margin(X)
        return np.asarray(self.classes_[np.argmax(self.predict_proba(X), axis=1)])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier or the R^2 of a regressor."""
        measure = accuracy_score if _classifies(self) else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))


READER = Reader(
    "sklearn",
    "scikit-learn's GradientBoosting*, HistGradientBoosting*, RandomForest*, ExtraTrees* and AdaBoost*",
    lambda model: _kind(model) is not None,
    _read,
    _write,
)
