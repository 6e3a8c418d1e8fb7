"""Gradient-boosted trees for survival analysis."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils._param_validation import Interval, StrOptions

from scboost._arrays import ArrayLike, Float64Array, FloatArray
from scboost._core.aft_scale import with_scale_given_features
from scboost._core.foreign_arguments import explains_foreign_arguments
from scboost._core.losses import (
    AFTLoss,
    CoxLoss,
    EfronCoxLoss,
    ExtremeAFTLoss,
    LogisticAFTLoss,
    Loss,
    NormalAFTLoss,
)
from scboost._core.run import ValidationMetric
from scboost._core.spec import FitSpec
from scboost._core.survival import baseline_of, concordance, location_and_scale
from scboost._core.train import TrainingData
from scboost._data.samples import Samples
from scboost._engine.interface import Regressor
from scboost._estimators.intake import Target, make_samples
from scboost._estimators.parameters import CONSTRAINTS, documented
from scboost._estimators.restricted import RestrictedSCBoost
from scboost._estimators.survival_target import SurvivalMetric, SurvivalScorer, cumulative_hazards, time_bounds
from scboost._model.fitted import FittedModel
from scboost._runtime.communicator import SINGLE_PROCESS, Communicator
from scboost._runtime.context import Context

if TYPE_CHECKING:
    from scboost.diagnostics.sections.tasks import SurvivalTarget

_AFT: dict[str, type[AFTLoss]] = {"normal": NormalAFTLoss, "logistic": LogisticAFTLoss, "extreme": ExtremeAFTLoss}


@documented
class SCBoostSurvival(RestrictedSCBoost):
    """Gradient-boosted trees for censored survival times.

    Fits a Cox proportional hazards model or an accelerated failure time (AFT) model. The number of rounds is selected
    by cross-validation on the partial likelihood (Cox) or the likelihood (AFT) of held-out data, which take censoring
    into account. Censoring is assumed to be independent of the event time given the features. ``y`` is one of

    - a structured array with an event indicator (bool) and a time, as in scikit-survival;
    - an array of shape (n_samples, 2) with times and event indicators (1: observed, 0: right-censored);
    - for ``loss="aft"``, an array of shape (n_samples, 2) with lower and upper bounds of the times: equal bounds denote
      an observed event, an infinite upper bound a right-censored time, and a lower bound of 0 a left-censored one.

    Batches and clusters are not supported yet.

    Parameters
    ----------
    loss : {"cox", "aft"}, default="cox"
        "cox" assumes proportional hazards and leaves the baseline hazard unspecified; "aft" assumes a parametric
        distribution of the logarithm of the time, and also accepts left- and interval-censored times.
    ties : {"breslow", "efron"} or None, default=None
        Approximation for tied event times with ``loss="cox"``. None means "breslow", for which an integer sample weight
        is equivalent to repeating the sample; "efron" is more accurate if many event times are tied.
    aft_distribution : {"normal", "logistic", "extreme"} or None, default=None
        Distribution of the logarithm of the time for ``loss="aft"``, which corresponds to log-normal, log-logistic or
        Weibull times. None means "normal".
    aft_scale : float or None, default=None
        Scale of that distribution during training. None means an estimate from the out-of-fold predictions of a short
        first fit; ``aft_scale_`` is then re-estimated from the out-of-fold predictions of the fit itself, or from the
        training set if there are none.
    <shared parameters>

    Attributes
    ----------
    event_times_ : ndarray of shape (n_event_times,)
        Distinct event times of the training set; the default ``times`` of the predicted functions.
    aft_scale_ : float
        Scale of the predicted distribution of the log-time. Only for ``loss="aft"``.
    <shared attributes>

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> time, censored = rng.exponential(np.exp(-X[:, 0])), rng.exponential(2.0, size=300)
    >>> y = np.stack([np.minimum(time, censored), time <= censored], axis=1)
    >>> model = SCBoostSurvival(n_estimators=50, random_state=0).fit(X[:200], y[:200])
    >>> bool(model.score(X[200:], y[200:]) > 0.65)
    True
    >>> model.predict_survival_function(X[200:], times=[0.5, 1.0]).shape
    (100, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "loss": [StrOptions({"cox", "aft"})],
        "ties": [StrOptions({"breslow", "efron"}), None],
        "aft_distribution": [StrOptions(set(_AFT)), None],
        "aft_scale": [Interval(Real, 0, None, closed="neither"), None],
    }

    loss: Literal["cox", "aft"]
    ties: Literal["breslow", "efron"] | None
    aft_distribution: Literal["normal", "logistic", "extreme"] | None
    aft_scale: float | None

    @explains_foreign_arguments
    def __init__(
        self,
        *,
        loss: Literal["cox", "aft"] = "cox",
        ties: Literal["breslow", "efron"] | None = None,
        aft_distribution: Literal["normal", "logistic", "extreme"] | None = None,
        aft_scale: float | None = None,
        preset: Literal["default", "fast", "best"] = "default",
        n_estimators: int | Literal["auto"] = "auto",
        learning_rate: float | Literal["auto"] = "auto",
        max_depth: int | Literal["auto"] | None = "auto",
        max_leaves: int | Literal["auto"] | None = "auto",
        tree_shape: Literal["auto", "depth-wise", "leaf-wise", "symmetric", "alternating"] = "auto",
        multi_strategy: Literal["auto", "one_output_per_tree", "multi_output_tree"] = "auto",
        max_trees: int | None = None,
        min_child_weight: float | Literal["auto"] = "auto",
        reg_lambda: float = 3.0,
        reg_alpha: float = 0.0,
        min_split_loss: float = 0.0,
        projection_strength: float | Literal["auto"] = "auto",
        energy_threshold: float = 0.9,
        memory: int | Literal["auto", "all"] = "auto",
        exploration: float | Literal["auto"] = "auto",
        leaf_rule: Literal["newton", "mean"] = "newton",
        init: Literal["prior", "zero"] = "prior",
        subsample: float = 1.0,
        colsample_bytree: float = 1.0,
        colsample_bylevel: float = 1.0,
        colsample_bynode: float = 1.0,
        max_bin: int | Literal["auto"] = "auto",
        categorical_splits: Literal["auto", "one-vs-rest", "subset"] = "auto",
        weighting: Literal["simplex", "nonnegative"] | None = None,
        weighting_data: Literal["holdout", "out_of_fold", "fold_average"] = "holdout",
        covariance_penalty: float = 0.0,
        weight_ridge: float = 0.1,
        cv: Any = "auto",
        feature_selection: bool = True,
        early_stopping: bool = False,
        early_stopping_metric: str | Callable[..., float] | None = None,
        n_iter_no_change: int | Literal["auto"] = "auto",
        tol: float = 1e-7,
        validation_fraction: float = 0.2,
        monotone_constraints: Any = None,
        interaction_constraints: Any = None,
        estimator: Regressor | None = None,
        warm_start: bool = False,
        callbacks: Sequence[Callable[[Any], Any]] | None = None,
        n_jobs: int | None = None,
        engine: Literal["auto", "native", "xgboost"] = "auto",
        device: str = "cpu",
        random_state: Any = None,
        verbose: int | None = None,
    ) -> None:
        self._set_parameters(locals())

    # --- fitting -------------------------------------------------------------------------------------------------

    def _target_array(self, y: ArrayLike | None, X: Any, name: str) -> npt.NDArray[Any]:
        return time_bounds(y, X.shape[0], name)

    def _learn_target(
        self,
        y: npt.NDArray[Any],
        X: Any,
        sample_weight: ArrayLike | None,
        communicator: Communicator,
        base: Loss | None,
    ) -> Target:
        for name, owner in (("ties", "cox"), ("aft_distribution", "aft"), ("aft_scale", "aft")):
            if getattr(self, name) is not None and self.loss != owner:
                raise ValueError(f"{name}={getattr(self, name)!r} needs loss={owner!r}, got loss={self.loss!r}.")
        samples = make_samples(X, y, sample_weight, communicator)
        any_loss = _AFT[self.aft_distribution or "normal"](1.0) if self.loss == "aft" else CoxLoss()
        any_loss.check_target(samples.y, "y")

        def default_scale() -> float:
            if isinstance(base, AFTLoss):
                return base.scale
            return location_and_scale(_AFT[self.aft_distribution or "normal"], samples.y, samples.weight)[1]

        return Target(samples, named_survival_loss(vars(self), default_scale))

    def _validation_samples(
        self,
        y: npt.NDArray[Any],
        X: Any,
        sample_weight: ArrayLike | None,
        target: Target,
        communicator: Communicator,
    ) -> Samples:
        target.loss.check_target(y, "y_val")
        return make_samples(X, y, sample_weight, communicator, "sample_weight_val")

    def _metric(self, scoring: str | Callable[..., float], target: Target) -> ValidationMetric:
        if isinstance(scoring, str):
            return SurvivalMetric(scoring, target.loss)
        return SurvivalScorer(scoring, target.loss, None)

    def _refined_loss(self, spec: FitSpec, data: TrainingData, context: Context) -> Loss | None:
        """Replace the scale without features, with which trees would predict too late times."""
        if self.loss == "cox" or self.aft_scale is not None:
            return None
        return with_scale_given_features(spec, data, context)

    def _finished(self, model: FittedModel, samples: Samples, n_threads: int) -> FittedModel:
        """Add the baseline, from the training samples if there are no out-of-fold scores."""
        if model.baseline and self.aft_scale is None:
            return model
        raw = model.ensemble.scores(samples.X, n_threads).astype(np.float64)
        baseline = model.baseline or baseline_of(model.loss, samples.y, raw, samples.weight)
        if self.aft_scale is not None:
            baseline = {**baseline, "scale": np.array([float(self.aft_scale)])}
        return replace(model, baseline=baseline)

    # --- fitted model --------------------------------------------------------------------------------------------

    @property
    def event_times_(self) -> Float64Array:
        """Distinct event times of the training set."""
        return np.array(self._baseline()["time"])

    @property
    def aft_scale_(self) -> float:
        """Scale of the predicted distribution of log-times."""
        scale = self._baseline().get("scale")
        return self._optional("aft_scale_", None if scale is None else float(scale[0]))

    def _baseline(self) -> Mapping[str, npt.NDArray[Any]]:
        """Return what survival functions are computed from; a model in the middle of its fit does not have it."""
        baseline = self._fitted.baseline
        if not baseline:
            raise AttributeError("The baseline of a survival model is estimated at the end of fit; finish the fit.")
        return baseline

    def predict(self, X: ArrayLike) -> Float64Array:
        """Predict the hazard ratio (Cox) or the survival time (AFT) of each sample.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Cox: the hazard relative to the baseline; higher means an earlier event. AFT: the exponential of the
            location of the log-time, which is the median for "normal" and "logistic"; higher means a later event.
            Plain XGBoost returns the same values from the model file.
        """
        return self._fitted.means(self._raw_scores(X))

    def predict_cumulative_hazard_function(self, X: ArrayLike, times: ArrayLike | None = None) -> Float64Array:
        """Predict the cumulative hazard of each sample at the given times.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples.
        times : array-like of shape (n_times,), optional
            Times of at least 0; ``event_times_`` by default.

        Returns
        -------
        ndarray of shape (n_samples, n_times)
            Cumulative hazards, non-decreasing in time. For a Cox model, constant after the last event time.
        """
        baseline = self._baseline()
        at = baseline["time"] if times is None else np.asarray(times, dtype=np.float64)
        if at.ndim != 1 or not (at >= 0).all():
            raise ValueError(f"times must be a list of numbers >= 0, got {times!r}.")
        return cumulative_hazards(self._fitted.loss, self._raw_scores(X), baseline, at)

    def predict_survival_function(self, X: ArrayLike, times: ArrayLike | None = None) -> Float64Array:
        """Predict the probability that the event occurs after each of the given times.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples.
        times : array-like of shape (n_times,), optional
            Times of at least 0; ``event_times_`` by default.

        Returns
        -------
        ndarray of shape (n_samples, n_times)
            Survival probabilities, non-increasing in time, as the metrics of scikit-survival expect them.
        """
        return np.exp(-self.predict_cumulative_hazard_function(X, times))

    def predict_quantile(self, X: ArrayLike, quantile: float = 0.5) -> Float64Array:
        """Predict a quantile of the event time; the median by default.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples.
        quantile : float in (0, 1), default=0.5
            Probability that the event occurs at or before the returned time.

        Returns
        -------
        ndarray of shape (n_samples,)
            Quantiles of the event time. For a Cox model, the first event time at which the survival function is at most
            ``1 - quantile``, or infinity if there is none.
        """
        if not 0 < quantile < 1:
            raise ValueError(f"quantile={quantile!r} must be between 0 and 1.")
        raw, loss, baseline = self._raw_scores(X)[0], self._fitted.loss, self._baseline()
        if isinstance(loss, AFTLoss):
            return np.asarray(np.exp(raw + baseline["scale"][0] * loss.quantile(np.array(quantile))))
        needed = -np.log1p(-quantile) * np.exp(-raw)
        place = np.searchsorted(baseline["cumulative_hazard"], needed)
        return np.asarray(np.append(baseline["time"], np.inf)[place])

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return Harrell's concordance index.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples.
        y : structured array of shape (n_samples,) or array-like of shape (n_samples, 2)
            Survival times in one of the formats that ``fit`` accepts.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights; the weight of a pair is their product.

        Returns
        -------
        float
            Fraction of comparable pairs that are ranked correctly: 0.5 for random and 1 for perfect predictions.
        """
        raw = self._raw_scores(X)[0]
        bounds = time_bounds(y, len(raw), "y")
        samples = make_samples(np.empty((len(raw), 1)), np.column_stack([bounds, raw]), sample_weight, SINGLE_PROCESS)
        risk = samples.y[:, 2] if self.loss == "cox" else -samples.y[:, 2]
        value = concordance(samples.y[:, :2], risk, samples.weight)
        if np.isnan(value):
            raise ValueError(f"y has no pair of {len(raw)} samples of which one is known to have the earlier event.")
        return value

    def __survival_target__(self, y: ArrayLike, n_samples: int) -> SurvivalTarget:
        from scboost.diagnostics.sections.tasks import SurvivalTarget

        loss, baseline = self._fitted.loss, self._baseline()

        def survival(raw: FloatArray, times: FloatArray) -> FloatArray:
            return np.exp(-cumulative_hazards(loss, raw[None], baseline, times))

        return SurvivalTarget(time_bounds(y, n_samples, "y"), 1 if self.loss == "cox" else -1, survival)

    def staged_predict(self, X: ArrayLike) -> Iterator[Float64Array]:
        """Yield the predictions after each boosting round.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples.

        Yields
        ------
        ndarray of shape (n_samples,)
            After 1, 2, ... rounds; see ``predict``.
        """
        yield from map(self._fitted.means, self._staged_raw_scores(X))


def named_survival_loss(parameters: Mapping[str, Any], default_scale: Callable[[], float]) -> Loss:
    """Return the loss that the parameters of the estimator name.

    Parameters
    ----------
    parameters : mapping of str to object
        ``loss``, ``ties``, ``aft_distribution`` and ``aft_scale``.
    default_scale : callable
        Returns the default of ``aft_scale``, which depends on the data.
    """
    if parameters["loss"] == "cox":
        return EfronCoxLoss() if parameters["ties"] == "efron" else CoxLoss()
    scale = parameters["aft_scale"]
    return _AFT[parameters["aft_distribution"] or "normal"](default_scale() if scale is None else float(scale))
