"""Gradient-boosted tree regressor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from scboost._arrays import ArrayLike, Float64Array
from scboost._core.conformal import checked_coverage
from scboost._core.foreign_arguments import explains_foreign_arguments
from scboost._core.links import LogLink
from scboost._core.losses import (
    ExpectileLoss,
    GammaLoss,
    HuberLoss,
    Loss,
    PoissonLoss,
    QuantileLoss,
    QuantilesLoss,
    SquaredLoss,
    TweedieLoss,
    is_built_in,
)
from scboost._core.losses.checks import check_loss
from scboost._core.parameters import Parameters
from scboost._core.statistics import weighted_quantile
from scboost._data.samples import Samples
from scboost._engine.interface import Regressor
from scboost._estimators.intake import Target, make_samples, numbers
from scboost._estimators.parameters import CONSTRAINTS, documented
from scboost._estimators.targets import (
    SupportsTargets,
    checked_matrix,
    regression_targets,
    supports_several_targets,
    target_matrix,
)
from scboost._runtime.communicator import Communicator, agreed

LossName = Literal["squared_error", "absolute_error", "huber", "quantile", "expectile", "poisson", "gamma", "tweedie"]

_PLAIN_LOSSES: dict[str, type[Loss]] = {"squared_error": SquaredLoss, "poisson": PoissonLoss, "gamma": GammaLoss}


@documented
class SCBoostRegressor(RegressorMixin, SupportsTargets):
    """Gradient-boosted tree regressor with settings selected by cross-validation.

    The number of rounds, the learning rate, the shape and depth of the trees and the features are selected by
    cross-validation; printing a fitted model shows them. String and categorical columns are categorical features, NaN
    is missing, dates are expanded. Trees have up to 31 leaves by default, unlike those of the classifier.

    Before a tree is grown, part of the projection of the gradient on the predictions of the latest trees is removed
    (Spectral Residual Projection). Splits are chosen on the rest; leaf values are computed on the full gradient.

    Parameters
    ----------
    loss : str or Loss, default="squared_error"
        Loss to minimize, which determines what is predicted: "squared_error" the mean; "absolute_error" the median;
        "huber" a compromise of the two that is robust to outliers; "quantile" and "expectile" those; with a log link,
        "poisson" the mean of counts, "gamma" of positive values and "tweedie" of non-negative values with many zeros.
        Or a custom loss: an instance of a subclass of :class:`scboost.losses.Loss`.
    quantile : float in (0, 1), list of these or None, default=None
        Quantile to predict; required by ``loss="quantile"``. With an increasing list, ``predict`` returns one column
        per quantile, and the columns do not cross; see ``predict_interval``.
    expectile : float in (0, 1) or None, default=None
        Expectile to predict; required by ``loss="expectile"``. 0.5 is the mean.
    tweedie_power : float in (1, 2) or None, default=None
        Variance power of ``loss="tweedie"``: the variance is proportional to this power of the mean. None is 1.5.
    huber_delta : float or None, default=None
        Absolute residual, in units of y, beyond which ``loss="huber"`` is linear. Lower it for more robustness to
        outliers. None uses the weighted 0.9 quantile of the non-zero absolute deviations of y from its median; for
        constant y, its absolute value, or 1 if y is 0. A continued fit keeps the value of the model it continues.
    <shared parameters>

    Attributes
    ----------
    <shared attributes>

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import train_test_split
    >>> X_train, X_test, y_train, y_test = train_test_split(*load_diabetes(return_X_y=True), random_state=0)
    >>> model = SCBoostRegressor(learning_rate=0.05, max_depth=3, random_state=0).fit(X_train, y_train)
    >>> bool(model.score(X_test, y_test) > 0.2)
    True

    Permutation importance of the body mass index (column 2) on held-out data:

    >>> from sklearn.inspection import permutation_importance
    >>> importance = permutation_importance(model, X_test, y_test, random_state=0).importances_mean
    >>> bool(importance[2] > 0.05)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "loss": [StrOptions(set(get_args(LossName))), Loss],
        "quantile": [Interval(Real, 0, 1, closed="neither"), list, tuple, None],
        "expectile": [Interval(Real, 0, 1, closed="neither"), None],
        "tweedie_power": [Interval(Real, 1, 2, closed="neither"), None],
        "huber_delta": [Interval(Real, 0, None, closed="neither"), None],
    }

    loss: LossName | Loss
    quantile: float | Sequence[float] | None
    expectile: float | None
    tweedie_power: float | None
    huber_delta: float | None

    @explains_foreign_arguments
    def __init__(
        self,
        *,
        loss: LossName | Loss = "squared_error",
        quantile: float | Sequence[float] | None = None,
        expectile: float | None = None,
        tweedie_power: float | None = None,
        huber_delta: float | None = None,
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

    def _target_array(self, y: ArrayLike | None, X: Any, name: str) -> npt.NDArray[Any]:
        matrix = target_matrix(y)
        return super()._target_array(y, X, name) if matrix is None else checked_matrix(matrix, X.shape[0], name)

    def _learn_target(
        self,
        y: npt.NDArray[Any],
        X: Any,
        sample_weight: ArrayLike | None,
        communicator: Communicator,
        base: Loss | None,
    ) -> Target:
        if y.ndim == 2:
            parameters = Parameters.of(self.__stored_parameters__())
            return regression_targets(y, X, sample_weight, parameters, self.loss, base, communicator)
        with agreed(communicator):
            for name, needed in (
                ("quantile", True),
                ("expectile", True),
                ("tweedie_power", False),
                ("huber_delta", False),
            ):
                self._check_belongs(name, name.partition("_")[0], needed=needed)
            samples = make_samples(X, numbers(y, "y"), sample_weight, communicator)
        loss = (
            self.loss
            if isinstance(self.loss, Loss)
            else named_loss(vars(self), lambda: _huber_delta(samples, communicator, base))
        )
        if loss.link == LogLink() and self.leaf_rule == "mean":
            raise ValueError(
                f"leaf_rule='mean' with loss={self.loss!r} would add means of counts or amounts to a logarithm; use "
                "leaf_rule='newton'."
            )
        if isinstance(self.loss, Loss) and (loss.n_outputs != 1 or loss.n_classes):
            raise ValueError(
                f"loss={loss!r} must have one output and no classes, got n_outputs={loss.n_outputs} and "
                f"n_classes={loss.n_classes}."
            )
        with agreed(communicator):
            loss.check_target(samples.y, "y")
            if not is_built_in(loss):
                check_loss(loss, samples.y, samples.weight)
        if self.loss in ("poisson", "tweedie") and not communicator.sum(np.array(samples.y.sum())):
            raise ValueError(
                f"loss={self.loss!r} needs a positive sum of y, but y is 0 in every sample with positive weight."
            )
        return Target(samples, loss)

    def _supports_weighting(self) -> bool:
        if isinstance(self.loss, Loss):
            return self.loss.supports_weighting
        return self.loss not in ("absolute_error", "quantile")

    def _check_belongs(self, name: str, loss: str, *, needed: bool) -> None:
        """Reject a parameter of another loss, and a loss without its required parameter."""
        value = getattr(self, name)
        given, expected = value is not None, isinstance(self.loss, str) and self.loss == loss
        if needed and given != expected:
            raise ValueError(f"{name}={value!r} with loss={self.loss!r}: set {name} if and only if loss={loss!r}.")
        if given and not expected:
            raise ValueError(f"{name}={value!r} needs loss={loss!r}, got loss={self.loss!r}.")

    def _validation_samples(
        self,
        y: npt.NDArray[Any],
        X: Any,
        sample_weight: ArrayLike | None,
        target: Target,
        communicator: Communicator,
    ) -> Samples:
        values = numbers(y, "y_val")
        if values.ndim == 2 and not target.loss.independent_outputs:
            raise ValueError(f"y_val has {values.shape[1]} targets, y has one.")
        target.loss.check_target(values, "y_val")
        return make_samples(X, values, sample_weight, communicator, "sample_weight_val")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss in ("poisson", "gamma", "tweedie")
        tags.target_tags.multi_output = self.loss == "squared_error" and supports_several_targets(self)
        return tags

    @explains_foreign_arguments
    def predict(self, X: ArrayLike) -> Float64Array:
        """Return the predicted value of each sample.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_quantiles) or (n_samples, n_targets) for several of these
            On the scale of y.
        """
        return self._fitted.means(self._raw_scores(X))

    @explains_foreign_arguments
    def predict_interval(self, X: ArrayLike, coverage: float | Sequence[float] = 0.9) -> Float64Array:
        """Predict intervals that contain the target of a new sample with a given probability.

        The width is a multiple of a local scale, the mean absolute out-of-fold residual of samples with similar
        predictions; the multiple is a quantile of the scaled residuals (conformal prediction), times a factor of 0.85
        to 1 if fold models are averaged, because the average errs less than each of them. If the two quantiles that
        correspond to the coverage were fitted, the bounds are these quantiles, each shifted by a constant; for other
        coverages, the local scale depends on the distance between the outer quantiles. After ``calibrate``, the
        residuals are those of the calibration set. For losses with a log link, bounds are non-negative.

        Coverage is marginal: it holds on average over samples, and may be lower within a subgroup. Without
        ``calibrate``, it is approximate.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples.
        coverage : float in (0, 1) or list of these, default=0.9
            Nominal coverage for samples from the distribution of the training set, or of the calibration set.

        Returns
        -------
        ndarray of shape (n_samples, 2), or (n_samples, n_coverages, 2) for a list
            Lower and upper bounds; infinite if there are too few residuals for the coverage.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = SCBoostRegressor(random_state=0).fit(X[:300], y[:300])
        >>> low, high = model.predict_interval(X[300:], coverage=0.8).T
        >>> bool(0.7 < ((low <= y[300:]) & (y[300:] <= high)).mean() < 0.9)
        True
        """
        coverages = checked_coverage(coverage)
        raw = self._raw_scores(X)
        bounds = [self._fitted.intervals(raw, c) for c in coverages]
        return bounds[0] if isinstance(coverage, Real) else np.stack(bounds, axis=1)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the coefficient of determination R2, as in scikit-learn.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Target values.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights.

        Returns
        -------
        float
            R2; at most 1. For several targets, the mean of their R2. Not defined for several quantiles.
        """
        if self._fitted.loss.n_outputs > self._fitted.n_targets:
            raise ValueError(
                f"score compares one prediction with y, but quantile={self.quantile!r} predicts several; see "
                "sklearn.metrics.mean_pinball_loss."
            )
        return float(super().score(X, y, sample_weight))

    def staged_predict(self, X: ArrayLike) -> Iterator[Float64Array]:
        """Yield the predicted values after each boosting round.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples.

        Yields
        ------
        ndarray of shape (n_samples,)
            After 1, 2, ... rounds.
        """
        yield from map(self._fitted.means, self._staged_raw_scores(X))


def named_loss(parameters: Mapping[str, Any], default_delta: Callable[[], float]) -> Loss:
    """Return the loss for the parameters of a regressor.

    Parameters
    ----------
    parameters : mapping of str to object
        ``loss``, ``quantile``, ``expectile``, ``tweedie_power`` and ``huber_delta``.
    default_delta : callable
        Returns the default of ``huber_delta``, which depends on the data.
    """
    name, quantile, power, delta = (parameters[key] for key in ("loss", "quantile", "tweedie_power", "huber_delta"))
    if name == "expectile":
        return ExpectileLoss(float(parameters["expectile"]))
    if name == "tweedie":
        return TweedieLoss(1.5 if power is None else float(power))
    if name == "huber":
        return HuberLoss(default_delta() if delta is None else float(delta))
    if name in _PLAIN_LOSSES:
        return _PLAIN_LOSSES[name]()
    if isinstance(quantile, Sequence):
        return QuantilesLoss(quantile)
    return QuantileLoss(0.5 if quantile is None else float(quantile))


def _huber_delta(samples: Samples, communicator: Communicator, base: Loss | None = None) -> float:
    """Return the default of ``huber_delta``: that of the base model if it has a Huber loss, else one from the data.

    The latter is the weighted 0.9 quantile of the non-zero absolute deviations from the median. For a constant target
    it is the absolute value of the target, or 1 if the target is 0.
    """
    if isinstance(base, HuberLoss):
        return base.delta
    median = weighted_quantile(samples.y, samples.weight, 0.5, communicator)
    distance = np.abs(samples.y - median)
    away = distance > 0
    if not communicator.sum(np.array(away.sum(dtype=np.float64))):
        return abs(median) or 1.0
    weight = None if samples.weight is None else samples.weight[away]
    return weighted_quantile(distance[away], weight, 0.9, communicator)
