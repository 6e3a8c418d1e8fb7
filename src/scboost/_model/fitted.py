"""The fitted model: the state needed for predictions and files."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy import special

from scboost._arrays import ArrayLike, BoolArray, Float64Array, FloatArray, IntArray
from scboost._core.conformal import Conformal, Intervals, LabelSets, SetMethod
from scboost._core.links import LogLink
from scboost._core.losses import Loss
from scboost._core.losses.base import Task
from scboost._core.out_of_fold import calibrated, regression_outputs
from scboost._data.encoder import Encoder, Matrix
from scboost._engine.ensemble import Ensemble, EstimatorEnsemble, interleaved
from scboost._engine.interface import EngineName, MultiStrategy, TreeShape
from scboost._engine.xgboost.ensemble import TreeEnsemble

if TYPE_CHECKING:
    import xgboost

    from scboost._core.weighting import Weights


COMPRESSED = "compressed"  # first word of the stop reason of a compressed model
_OWNERS: dict[Task, str] = {
    "regression": "SCBoostRegressor",
    "multioutput regression": "SCBoostRegressor",
    "multilabel classification": "SCBoostClassifier",
    "survival": "SCBoostSurvival",
    "ranking": "SCBoostRanker",
    "distribution": "SCBoostDistribution",
}


class NotCalibratedError(ValueError):
    """A model has neither out-of-fold predictions nor a calibration set."""

    def __init__(self, method: str) -> None:
        super().__init__(
            f"{method} needs out-of-fold predictions, which are available if the number of rounds was selected by "
            "cross-validation (n_estimators='auto'), or a calibration set: call calibrate(X_cal, y_cal) with data "
            "that were not used in fit."
        )


@dataclass(frozen=True)
class Selection:
    """Results of selection by cross-validation.

    Attributes
    ----------
    log : mapping of str to ndarray
        "validation_loss" (or the score) of the fold models after each "round"; empty if the number of rounds was not
        selected.
    features : tuple of int
        Positions of the selected features among those of the trees; empty for all.
    categorical_splits : {"one-vs-rest", "subset"} or None
        How categorical features are split; None if there are none.
    """

    log: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    features: tuple[int, ...] = ()
    categorical_splits: Literal["one-vs-rest", "subset"] | None = None


@dataclass(frozen=True)
class FittedModel:
    """A fitted model; immutable.

    Attributes
    ----------
    encoder : Encoder
        Converts X to the matrix that the ensemble reads.
    classes : ndarray of shape (n_classes,) or None
        Class labels; None for regression.
    loss : Loss
        The loss, which maps raw scores to predictions.
    ensemble : Ensemble
        Learners, their weights and the intercept.
    n_rounds : int
        Number of boosting rounds in use.
    learning_rate : float
        Learning rate in use.
    max_depth : int or None
        Largest tree depth in use; None for no limit.
    tree_shape : TreeShape or None
        How the trees grew, if known.
    multi_strategy : MultiStrategy or None
        Whether the trees of a round have one structure, if known.
    projection_strength : float or None
        Share of the historical component that was removed from the gradient, if known.
    training_log : mapping of str to ndarray
        One entry per round.
    stop_reason : str
        Why fewer rounds than requested were run; empty otherwise.
    selection : Selection
        Results of selection by cross-validation.
    weighting_result : Weights or None
        Tree weights with their optimality gap, if weights were learned.
    target_name : str, tuple of str or None
        Name of the target column, if known; names of several: all targets, time and event of a survival model, or
        relevance and query of a ranking.
    baseline : mapping of str to ndarray
        Baseline of the survival functions of a survival model; empty for other models and during the fit.
    members : tuple of int
        Number of rounds of each fold model that the ensemble ends with; empty if there are none.
    conformal : Intervals, LabelSets or None
        Calibration state of intervals or label sets; None without out-of-fold predictions and calibration set.
    engine : {"native", "xgboost"} or None
        Engine that grew the trees; None for other learners and where it is not known.
    """

    encoder: Encoder
    classes: npt.NDArray[Any] | None
    loss: Loss
    ensemble: Ensemble
    n_rounds: int
    learning_rate: float
    max_depth: int | None = None
    tree_shape: TreeShape | None = None
    multi_strategy: MultiStrategy | None = None
    projection_strength: float | None = None
    training_log: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    stop_reason: str = ""
    selection: Selection = field(default_factory=Selection)
    weighting_result: Weights | None = None
    target_name: str | tuple[str, ...] | None = None
    baseline: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    members: tuple[int, ...] = ()
    conformal: Conformal | None = None
    engine: EngineName | None = None

    @property
    def owner(self) -> str:
        """Name of the estimator class of the model."""
        return _OWNERS[self.loss.task] if self.classes is None else "SCBoostClassifier"

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of the target columns; empty if they are not known."""
        name = self.target_name
        return () if name is None else (name,) if isinstance(name, str) else name

    @property
    def has_other_learners(self) -> bool:
        """Whether the learners are regressors passed as ``estimator``, not built-in trees."""
        return not isinstance(self.ensemble, TreeEnsemble)

    @property
    def is_compressed(self) -> bool:
        """Whether the model was made by ``compress``."""
        return self.stop_reason.startswith(COMPRESSED)

    # --- raw scores and predictions ----------------------------------------------------------------------------------

    def encode(self, X: ArrayLike, *, check_finite: bool = True) -> Matrix:
        """Return X as a matrix for the ensemble."""
        return self.encoder.encode(X, owner=self.owner, check_finite=check_finite)

    def raw_scores(self, X: ArrayLike, n_threads: int) -> Float64Array:
        """Return the raw scores of samples, of shape (n_outputs, n)."""
        # Infinite values are ordered like all others; searching for them would take up to a fifth of the time.
        matrix = self.encode(X, check_finite=self.has_other_learners)
        return np.asarray(self.ensemble.scores(matrix, n_threads), dtype=np.float64)

    def staged_raw_scores(self, X: ArrayLike, n_threads: int) -> Iterator[Float64Array]:
        """Yield the raw scores after 1, 2, ... rounds, of shape (n_outputs, n)."""
        staged = islice(self.ensemble.staged(self.encode(X), n_threads), self.n_rounds)
        return (np.asarray(raw, dtype=np.float64) for raw in staged)

    def margins(self, raw: Float64Array) -> Float64Array:
        """Return raw scores in the form of ``decision_function``: (n,), or (n, n_classes)."""
        return raw[0] if len(raw) == 1 else np.ascontiguousarray(raw.T)

    def means(self, raw: FloatArray) -> Float64Array:
        """Apply the inverse link: probabilities of shape (n, n_classes), values of shape (n,) or (n, n_outputs)."""
        return np.asarray(self.loss.link.inverse(raw.astype(np.float64)), dtype=np.float64)

    def labels(self, raw: FloatArray) -> npt.NDArray[Any]:
        """Return the most probable class of each sample, or for several labels whether each of them is probable."""
        if self.loss.task == "multilabel classification":
            return np.ascontiguousarray(raw.T > 0).astype(np.int64)
        if self.classes is None:
            raise TypeError("a regression model has no classes")
        winners = np.asarray(raw[0] > 0, dtype=np.intp) if len(raw) == 1 else np.argmax(raw, axis=0)
        return np.asarray(self.classes[winners])

    def predictions(self, raw: FloatArray) -> npt.NDArray[Any]:
        """Return labels, or values for regression."""
        return self.labels(raw) if self.loss.classifies else self.means(raw)

    @property
    def n_targets(self) -> int:
        """Number of targets, each with an output of its own."""
        return self.loss.n_outputs if self.loss.independent_outputs else 1

    def require_one_target(self, method: str) -> None:
        """Raise ValueError if the model has several targets, which the method does not support."""
        if self.n_targets > 1:
            raise ValueError(
                f"{method} supports one target, this model has {self.n_targets}; use the model of one of them, which "
                "target_model(0), target_model(1), ... return in Python."
            )

    def of_target(self, k: int) -> FittedModel:
        """Return the model of one of several targets, without logs and results that refer to all of them."""
        ensemble = copy.copy(self.ensemble)
        ensemble.select_output(k)
        return replace(
            self,
            classes=np.array([0, 1]) if self.loss.classifies else None,
            loss=self.loss.output(k),
            ensemble=ensemble,
            target_name=self.target_names[k] if self.target_names else None,
            training_log={},
            selection=replace(self.selection, log={}),
        )

    # --- uncertainty -------------------------------------------------------------------------------------------------

    def intervals(self, raw: Float64Array, coverage: float) -> Float64Array:
        """Return prediction intervals of shape (n, 2)."""
        self.require_one_target("predict_interval")
        state, loss = self.conformal, self.loss
        if not isinstance(state, Intervals):
            raise NotCalibratedError("predict_interval")
        bounds = state.bounds(regression_outputs(loss, raw), coverage)
        return np.maximum(bounds, 0.0) if loss.link == LogLink() else bounds

    def label_sets(self, raw: Float64Array, coverage: float, method: SetMethod, *, by_class: bool) -> BoolArray:
        """Return which classes are in the label set of each sample, of shape (n, n_classes)."""
        self.require_one_target("predict_set")
        if not isinstance(self.conformal, LabelSets):
            raise NotCalibratedError("predict_set")
        return self.conformal.contains(self.means(raw), coverage, method, by_class=by_class)

    def uncertainty(self, X: ArrayLike, n_threads: int) -> tuple[Float64Array, Float64Array]:
        """Return the aleatoric and the epistemic uncertainty of each sample, of shape (n,)."""
        self.require_one_target("prediction_uncertainty")
        if len(self.members) < 2:
            raise ValueError(
                "prediction_uncertainty compares averaged fold models, which this model does not have; use "
                "preset='best'."
            )
        matrix = self.encode(X)
        predictions = np.stack([self.means(raw) for raw in self._member_scores(matrix, n_threads)])
        if self.classes is not None:
            inner = special.entr(predictions).sum(axis=2).mean(axis=0)
            return inner, np.maximum(special.entr(predictions.mean(axis=0)).sum(axis=1) - inner, 0.0)
        if not isinstance(self.conformal, Intervals):
            raise NotCalibratedError("prediction_uncertainty")
        scale = self.conformal.scale
        driver = self.means(np.asarray(self.ensemble.scores(matrix, n_threads), dtype=np.float64))
        unit = np.ones(len(driver)) if scale is None else scale.at(driver)
        return self.conformal.noise * unit**2, predictions.var(axis=0)

    def _member_scores(self, matrix: Matrix, n_threads: int) -> Iterator[Float64Array]:
        """Yield the raw scores of each fold model, of shape (n_outputs, n), from the common intercept."""
        on_all = self.ensemble.n_rounds - sum(self.members)  # rounds of the model on all samples, if there is one
        sizes = (on_all, *self.members) if on_all else self.members
        model_of = np.repeat(np.arange(len(sizes)), sizes)[interleaved(sizes)]
        for k in range(len(sizes) - len(self.members), len(sizes)):
            member = copy.copy(self.ensemble)
            member.select(np.flatnonzero(model_of == k))
            member.reweight(member.weights * len(sizes), member.intercept)
            yield np.asarray(member.scores(matrix, n_threads), dtype=np.float64)

    def calibrated(self, raw: Float64Array, y: FloatArray, sample_weight: FloatArray | None) -> FittedModel:
        """Return the model with the conformal state of a calibration set."""
        return replace(self, conformal=calibrated(self.loss, raw, y, sample_weight, self.conformal))

    # --- trees -------------------------------------------------------------------------------------------------------

    def trees(self, method: str) -> TreeEnsemble:
        """Return the ensemble for a method that needs trees."""
        if isinstance(self.ensemble, TreeEnsemble):
            return self.ensemble
        raise AttributeError(f"{method}() needs the built-in trees; this model was fitted with estimator=.")

    def values_only(self, function: str) -> None:
        """Raise ValueError if the predictions are distributions, which a function cannot express."""
        if self.loss.task == "distribution":
            raise ValueError(
                f"{function} exports models that predict values or probabilities, not distributions: this is a "
                f"{self.owner}. Its model file (save_model) holds the parameters as margins of an XGBoost model."
            )

    def booster(self, n_threads: int) -> xgboost.Booster:
        """Return the native model."""
        return self.trees("get_booster").booster(n_threads)

    def apply(self, X: ArrayLike, n_threads: int) -> IntArray:
        """Return the leaf of each sample in each tree of the native model, of shape (n, n_trees)."""
        return self.trees("apply").leaf_nodes(self.encode(X), n_threads)

    def shap_values(self, X: ArrayLike, n_threads: int) -> Float64Array:
        """Return exact TreeSHAP values, of shape (n, n_features + 1) or (n, n_outputs, n_features + 1).

        The values of the parts of a date are added up.
        """
        values = np.asarray(self.trees("shap_values").explain(self.encode(X), n_threads), dtype=np.float64)
        if self.encoder.dates is not None:
            values = np.concatenate([self.encoder.features.by_column(values[..., :-1]), values[..., -1:]], axis=-1)
        return values[:, 0] if values.shape[1] == 1 else values

    def learners(self) -> list[Any]:
        """Return the fitted regressors, if ``estimator`` was given."""
        if isinstance(self.ensemble, EstimatorEnsemble):
            return self.ensemble.estimators
        raise AttributeError("estimators_ exists only with estimator=; see get_booster().")

    @property
    def weights(self) -> Float64Array:
        """Weight of each learner, of shape (n_rounds,), or (n_rounds, n_outputs) for several outputs."""
        weights = np.asarray(self.ensemble.weights, dtype=np.float64)
        return weights[:, 0].copy() if weights.shape[1] == 1 else weights.copy()

    @property
    def feature_importances(self) -> Float64Array:
        """Share of each feature in the total gain, of shape (n_features,); of all parts of a date together."""
        gains = np.asarray(self.ensemble.gains(), dtype=np.float64)
        if self.encoder.dates is not None:
            gains = self.encoder.features.by_column(gains)
        total = gains.sum()
        return gains / total if total > 0 else gains

    @property
    def selected_features(self) -> tuple[int, ...]:
        """Positions of the columns of X that trees may use at least a part of; empty for all."""
        return tuple(np.unique(self.encoder.features.sources[list(self.selection.features)]).tolist())

    def with_tree_weights(self, kept: IntArray, weights: FloatArray, intercept: FloatArray) -> FittedModel:
        """Return the model reduced to some of its rounds, with other weights.

        Parameters
        ----------
        kept : ndarray of shape (n_kept,)
            Positions among the rounds that the diagnostics read: for trees, those of non-zero weight.
        weights : ndarray of shape (n_kept, n_outputs)
            New weights of these rounds; for trees, factors of the old ones, which the leaves include.
        intercept : ndarray of shape (n_outputs,)
            The new intercept.
        """
        ensemble = copy.deepcopy(self.ensemble)
        rounds = kept
        if isinstance(ensemble, TreeEnsemble):
            rounds = ensemble.kept[kept]
            weights = weights * ensemble.weights[rounds]
        ensemble.select(rounds)
        ensemble.reweight(weights, intercept)
        # Learned weights and calibration refer to the original model.
        forgotten = replace(self, weighting_result=None, conformal=None, members=())
        return replace(forgotten, ensemble=ensemble, n_rounds=ensemble.n_rounds)


@runtime_checkable
class HasFittedModel(Protocol):
    """An estimator of this library, for functions that take a fitted model."""

    def __fitted_model__(self) -> FittedModel:
        """Return the fitted model; NotFittedError before ``fit``."""


def fitted_model(estimator: HasFittedModel, function: str) -> FittedModel:
    """Return the fitted model of an estimator passed to a public function."""
    if not isinstance(estimator, HasFittedModel):
        raise TypeError(
            f"{function} takes a fitted SCBoostClassifier or SCBoostRegressor, got {type(estimator).__name__}."
        )
    return estimator.__fitted_model__()


def new_ensemble(encoder: Encoder, loss: Loss, intercept: FloatArray, *, of_trees: bool) -> Ensemble:
    """Return an ensemble without learners.

    Parameters
    ----------
    encoder : Encoder
        The features.
    loss : Loss
        The loss, which determines the link of the native model.
    intercept : ndarray of shape (n_outputs,)
        Constant raw score.
    of_trees : bool
        Whether the learners are trees.
    """
    if not of_trees:
        return EstimatorEnsemble(encoder.features.n, intercept)
    names = encoder.features.names
    return TreeEnsemble(
        encoder.features.n,
        intercept,
        objective=loss.link.objective,
        categorical=encoder.features.categorical,
        feature_names=None if names is None else list(names),
        tables=encoder.features.tables(encoder.integer_features),
    )
