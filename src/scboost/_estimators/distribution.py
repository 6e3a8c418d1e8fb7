"""Gradient-boosted trees that predict distributions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, Literal, NoReturn, cast, get_args

import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from scboost._arrays import ArrayLike, Float64Array
from scboost._core.distributions import PredictedDistribution, predicted
from scboost._core.foreign_arguments import explains_foreign_arguments
from scboost._core.losses import (
    DistributionLoss,
    GammaDistributionLoss,
    LogNormalLoss,
    Loss,
    NegativeBinomialLoss,
    NormalLoss,
    StudentLoss,
)
from scboost._core.parameters import Parameters
from scboost._core.spec import Strategy
from scboost._data.samples import Samples
from scboost._engine.interface import Regressor
from scboost._estimators.fitting import FitArguments
from scboost._estimators.intake import Target, make_samples, numbers
from scboost._estimators.parameters import CONSTRAINTS, documented
from scboost._estimators.restricted import RestrictedSCBoost
from scboost._runtime.communicator import Communicator

DistributionName = Literal["normal", "lognormal", "student", "gamma", "negative_binomial"]

_LOSSES: dict[str, type[DistributionLoss]] = {
    "normal": NormalLoss,
    "lognormal": LogNormalLoss,
    "gamma": GammaDistributionLoss,
    "negative_binomial": NegativeBinomialLoss,
}
_DF = 5.0
# Why some options are refused.
_NOT_CONVEX = (
    "the negative log-likelihood is not convex in location and scale jointly, so that learned weights would have no "
    "certified optimum"
)
_NO_FIDELITY = "location and scale are raw scores in different units, so that errors of the two cannot be compared"


@documented
class SCBoostDistribution(RegressorMixin, RestrictedSCBoost):
    """Gradient-boosted trees for distributional regression: they predict a distribution instead of a point.

    Both parameters of the distribution depend on the features, so the predicted spread differs between samples. In each
    round, one tree is grown for each parameter on the gradient of the negative log-likelihood, with the Fisher
    information as expected Hessian. The number of rounds is selected by cross-validation on the negative
    log-likelihood. Location and scale are then corrected on the out-of-fold predictions, because a model underestimates
    the spread of samples that it was trained on.

    Use :class:`SCBoostRegressor` and its ``predict_interval`` if you need intervals with a coverage that does not
    depend on the family of distributions. Tree weights (``weighting``, ``preset="best"``) are not supported, because
    the negative log-likelihood is not convex in both parameters jointly; neither is compression, because their raw
    scores have no common unit. Monotone constraints, batches and clusters are not supported yet.

    Parameters
    ----------
    distribution : {"normal", "lognormal", "student", "gamma", "negative_binomial"}, default="normal"
        Family of the distribution of y given X: "student" has heavier tails than "normal" and is robust to outliers;
        "lognormal" and "gamma" are for positive y, "negative_binomial" for counts with a variance above the mean.
    df : float or None, default=None
        Degrees of freedom of ``distribution="student"``, above 1; the lower, the heavier the tails. None means 5.
    <shared parameters>

    Attributes
    ----------
    <shared attributes>

    Examples
    --------
    The standard deviation of y grows with the first feature:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(1000, 2))
    >>> y = 10 * X[:, 1] + (0.5 + 2 * X[:, 0]) * rng.normal(size=1000)
    >>> model = SCBoostDistribution(random_state=0).fit(X, y)
    >>> predicted = model.predict_distribution([[0.1, 0.5], [0.9, 0.5]])
    >>> low, high = predicted.std()
    >>> bool(high > 2 * low)
    True
    >>> predicted.interval(coverage=0.8).shape
    (2, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "distribution": [StrOptions(set(get_args(DistributionName)))],
        "df": [Interval(Real, 1, None, closed="neither"), None],
    }

    distribution: DistributionName
    df: float | None

    @explains_foreign_arguments
    def __init__(
        self,
        *,
        distribution: DistributionName = "normal",
        df: float | None = None,
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

    def _check(self, given: FitArguments, parameters: Parameters, communicator: Communicator) -> Strategy:
        p = parameters
        if self.df is not None and self.distribution != "student":
            raise ValueError(f"df={self.df!r} needs distribution='student', got distribution={self.distribution!r}.")
        problems = {
            "monotone_constraints": (p.monotone_constraints is not None, "None: it would also constrain the scale"),
            "leaf_rule": (p.leaf_rule == "mean", "'newton': parameters have gradients in different units"),
            "init": (p.init == "zero", "'prior': a scale of 1 may be far from that of y"),
            "weighting": (p.weighting is not None, f"None: {_NOT_CONVEX}"),
            "preset": (p.preset == "best", f"'default', because 'best' weights trees: {_NOT_CONVEX}"),
            "max_trees": (p.max_trees is not None, f"None: {_NO_FIDELITY}"),
        }
        for name, (found, fix) in problems.items():
            if found:
                raise ValueError(f"SCBoostDistribution does not support {name}={getattr(p, name)!r}; use {fix}.")
        return super()._check(given, parameters, communicator)

    def _learn_target(
        self,
        y: npt.NDArray[Any],
        X: Any,
        sample_weight: ArrayLike | None,
        communicator: Communicator,
        base: Loss | None,
    ) -> Target:
        del base
        loss = named_distribution_loss(vars(self))
        samples = make_samples(X, numbers(y, "y"), sample_weight, communicator)
        loss.check_target(samples.y, "y")
        return Target(samples, loss)

    def _validation_samples(
        self,
        y: npt.NDArray[Any],
        X: Any,
        sample_weight: ArrayLike | None,
        target: Target,
        communicator: Communicator,
    ) -> Samples:
        values = numbers(y, "y_val")
        target.loss.check_target(values, "y_val")
        return make_samples(X, values, sample_weight, communicator, "sample_weight_val")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.distribution not in ("normal", "student")
        return tags

    def compress(self, X: ArrayLike, y: ArrayLike | None = None, **options: Any) -> NoReturn:
        """Raise ValueError: the two raw scores have no common unit of fidelity.

        Parameters
        ----------
        X, y, **options
            Ignored.
        """
        del X, y, options
        raise ValueError(f"SCBoostDistribution does not support compress: {_NO_FIDELITY}.")

    # --- predictions ---------------------------------------------------------------------------------------------

    def predict(self, X: ArrayLike) -> Float64Array:
        """Predict the mean of each sample's distribution.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Means.
        """
        return self._fitted.means(self._raw_scores(X))

    def predict_distribution(self, X: ArrayLike) -> PredictedDistribution:
        """Predict the distribution of the target of each sample.

        Parameters
        ----------
        X : array-like, sparse matrix or table of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        PredictedDistribution
            With ``mean()``, ``std()``, ``quantile(q)``, ``interval(coverage)``, ``cdf(y)``, ``logpdf(y)``,
            ``crps(y)`` and ``sample(n_samples, random_state)``; ``scipy`` is the distribution of scipy.stats.
        """
        return predicted(cast("DistributionLoss", self._fitted.loss), self._raw_scores(X))

    def staged_predict(self, X: ArrayLike) -> Iterator[Float64Array]:
        """Yield the predicted means after each boosting round.

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


def named_distribution_loss(parameters: Mapping[str, Any]) -> DistributionLoss:
    """Return the loss for ``distribution`` and ``df``."""
    name, df = parameters["distribution"], parameters["df"]
    if name == "student":
        return StudentLoss(_DF if df is None else float(df))
    return _LOSSES[name]()
