"""Predicted distributions, and their correction by out-of-fold predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize, special

from scboost._arrays import ArrayLike, Float64Array, FloatArray
from scboost._core.conformal import checked_coverage
from scboost._core.losses import (
    DistributionLoss,
    GammaDistributionLoss,
    LogNormalLoss,
    Loss,
    NegativeBinomialLoss,
    StudentLoss,
)
from scboost._core.selection import FoldModels
from scboost._data.folds import Folds
from scboost._data.samples import Samples

if TYPE_CHECKING:
    from scipy.stats._distn_infrastructure import rv_frozen

_LARGEST_FACTOR = 2.0  # of the trees of a parameter


@dataclass(frozen=True)
class PredictedDistribution:
    """Predicted distributions of the target, one for each sample.

    Attributes
    ----------
    name : str
        Name of the family, such as "normal".
    scipy : scipy.stats frozen distribution
        The distributions, with parameters of shape (n_samples,), for everything without a method here.
    """

    name: str
    scipy: rv_frozen

    def __len__(self) -> int:
        return len(self.mean())

    def __repr__(self) -> str:
        return f"PredictedDistribution({self.name!r}, n_samples={len(self)})"

    @property
    def params(self) -> dict[str, Any]:
        """Parameters by their names in scipy.stats, each of shape (n_samples,) or a number."""
        return dict(self.scipy.kwds)

    def mean(self) -> Float64Array:
        """Return the means, of shape (n_samples,)."""
        return np.asarray(self.scipy.mean(), dtype=np.float64)

    def std(self) -> Float64Array:
        """Return the standard deviations, of shape (n_samples,)."""
        return np.asarray(self.scipy.std(), dtype=np.float64)

    def quantile(self, q: float | Sequence[float]) -> Float64Array:
        """Return quantiles.

        Parameters
        ----------
        q : float in (0, 1) or list of these
            Probability of a target of at most the quantile.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_quantiles) for a list
            The quantiles.
        """
        levels = np.atleast_1d(np.asarray(q, dtype=np.float64))
        if levels.ndim != 1 or not len(levels) or not ((levels > 0) & (levels < 1)).all():
            raise ValueError(f"q={q!r} must be a number between 0 and 1, or a list of these.")
        columns = [np.asarray(self.scipy.ppf(one), dtype=np.float64) for one in levels]
        return columns[0] if np.ndim(q) == 0 else np.stack(columns, axis=1)

    def interval(self, coverage: float | Sequence[float] = 0.9) -> Float64Array:
        """Return central intervals: both tails have the same probability.

        Parameters
        ----------
        coverage : float in (0, 1) or list of these, default=0.9
            Probability of the interval under the predicted distribution. Unlike ``SCBoostRegressor.predict_interval``,
            it holds only as far as the family of distributions is right.

        Returns
        -------
        ndarray of shape (n_samples, 2), or (n_samples, n_coverages, 2) for a list
            Lower and upper bounds.
        """
        bounds = [self.quantile([(1 - c) / 2, (1 + c) / 2]) for c in checked_coverage(coverage)]
        return bounds[0] if isinstance(coverage, Real) else np.stack(bounds, axis=1)

    def cdf(self, y: ArrayLike) -> Float64Array:
        """Return the probability of a target of at most y.

        Parameters
        ----------
        y : float or array-like of shape (n_samples,)
            Values on the scale of the target.

        Returns
        -------
        ndarray of shape (n_samples,)
            For targets from the predicted distributions, uniform on [0, 1] unless they are counts.
        """
        return np.asarray(self.scipy.cdf(np.asarray(y, dtype=np.float64)), dtype=np.float64)

    def logpdf(self, y: ArrayLike) -> Float64Array:
        """Return the log-density; for counts, the log-probability.

        Parameters
        ----------
        y : float or array-like of shape (n_samples,)
            Values on the scale of the target.

        Returns
        -------
        ndarray of shape (n_samples,)
            Minus the mean over held-out samples is the negative log-likelihood that ``fit`` minimizes.
        """
        log_density: Any = getattr(self.scipy, "logpmf" if hasattr(self.scipy.dist, "logpmf") else "logpdf")
        return np.asarray(log_density(np.asarray(y, dtype=np.float64)), dtype=np.float64)

    def crps(self, y: ArrayLike) -> Float64Array:
        """Return the continuous ranked probability score (CRPS), in closed form.

        Parameters
        ----------
        y : float or array-like of shape (n_samples,)
            Observed targets.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores in the unit of y, lower is better. It generalizes the absolute error: for a distribution with all
            mass on one value, it is the distance of y from that value.
        """
        return _CRPS[self.name](self, np.asarray(y, dtype=np.float64))

    def sample(self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None) -> Float64Array:
        """Draw targets.

        Parameters
        ----------
        n_samples : int, default=1
            Number of draws for each sample.
        random_state : int, RandomState or None, default=None
            Seed.

        Returns
        -------
        ndarray of shape (len(self), n_samples)
            Independent draws.
        """
        drawn = self.scipy.rvs(size=(n_samples, len(self)), random_state=random_state)
        return np.ascontiguousarray(np.asarray(drawn, dtype=np.float64).T)


def _crps_normal(d: PredictedDistribution, y: FloatArray) -> Float64Array:
    scale = d.params["scale"]
    z = (y - d.params["loc"]) / scale
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    return np.asarray(scale * (z * (2 * special.ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi)))


def _crps_lognormal(d: PredictedDistribution, y: FloatArray) -> Float64Array:
    s = d.params["s"]
    with np.errstate(divide="ignore"):
        z = np.log(np.maximum(y, 0) / d.params["scale"]) / s
    tails = special.ndtr(z - s) + special.ndtr(s / np.sqrt(2)) - 1
    return np.asarray(y * (2 * special.ndtr(z) - 1) - 2 * d.mean() * tails)


def _crps_student(d: PredictedDistribution, y: FloatArray) -> Float64Array:
    df, scale = d.params["df"], d.params["scale"]
    z = (y - d.params["loc"]) / scale
    density = scale * np.exp(d.logpdf(y))
    spread = 2 * np.sqrt(df) / (df - 1) * special.beta(0.5, df - 0.5) / special.beta(0.5, df / 2) ** 2
    return np.asarray(scale * (z * (2 * d.cdf(y) - 1) + 2 * density * (df + z**2) / (df - 1) - spread))


def _crps_gamma(d: PredictedDistribution, y: FloatArray) -> Float64Array:
    shape, scale = d.params["a"], d.params["scale"]
    x = np.maximum(y, 0) / scale
    location = y * (2 * special.gammainc(shape, x) - 1) - d.mean() * (2 * special.gammainc(shape + 1, x) - 1)
    return np.asarray(location - scale / special.beta(0.5, shape))


def _crps_negative_binomial(d: PredictedDistribution, y: FloatArray) -> Float64Array:
    from scipy import stats  # which takes long to import

    n, p = d.params["n"], d.params["p"]
    odds = (1 - p) / p**2
    larger = 2 * stats.nbinom.cdf(y - 1, n + 1, p) - 1
    return np.asarray(y * (2 * d.cdf(y) - 1) - n * odds * (p * larger + special.hyp2f1(n + 1, 0.5, 2, -4 * odds)))


# Closed forms as in Jordan, Krueger and Lerch (2019), Evaluating probabilistic forecasts with scoringRules.
_CRPS: dict[str, Callable[[PredictedDistribution, FloatArray], Float64Array]] = {
    "normal": _crps_normal,
    "lognormal": _crps_lognormal,
    "student": _crps_student,
    "gamma": _crps_gamma,
    "negative_binomial": _crps_negative_binomial,
}


def predicted(loss: DistributionLoss, raw: FloatArray) -> PredictedDistribution:
    """Return the distributions whose parameters are raw scores of shape (2, n)."""
    from scipy import stats  # which takes long to import

    first, second = raw
    with np.errstate(over="ignore"):
        scale, mean = np.exp(second), np.exp(first)
    if isinstance(loss, NegativeBinomialLoss):
        return PredictedDistribution("negative_binomial", stats.nbinom(n=scale, p=scale / (scale + mean)))
    if isinstance(loss, GammaDistributionLoss):
        return PredictedDistribution("gamma", stats.gamma(a=scale, scale=mean / scale))
    if isinstance(loss, LogNormalLoss):
        return PredictedDistribution("lognormal", stats.lognorm(s=scale, scale=mean))
    if isinstance(loss, StudentLoss):
        return PredictedDistribution("student", stats.t(df=loss.df, loc=first, scale=scale))
    return PredictedDistribution("normal", stats.norm(loc=first, scale=scale))


def out_of_fold_correction(
    samples: Samples, folds: Folds, models: FoldModels, loss: Loss
) -> tuple[list[float], list[float]]:
    """Return the factor of the trees and the shift of each parameter that minimize the loss of held-out samples.

    On its training samples a model underestimates the residuals, and so the scale.

    Parameters
    ----------
    samples, folds, models, loss
        The cross-validation.
    """
    K = loss.n_outputs
    pairs = list(zip(models.trainings, models.held_out, strict=True))
    kept = [part.added_scores(training.ensemble) for training, part in pairs]
    if any(scores is None for scores in kept):
        return [1.0] * K, [0.0] * K
    added = np.concatenate([scores for scores in kept if scores is not None], axis=1)
    sizes = [len(indices) for _, indices in folds]
    start = np.repeat(np.stack([training.ensemble.intercept for training, _ in pairs], axis=1), sizes, axis=1)
    held_out = samples.targets(np.concatenate([indices for _, indices in folds]))
    y, unit = held_out.y.astype(np.float64), loss.frame(pairs[0][0].ensemble.intercept).unit

    def mean_loss(parameters: FloatArray) -> float:
        factor, shift = parameters[:K, None], (unit * parameters[K:])[:, None]
        return loss.mean(y, start + factor * added + shift, held_out.weight)

    first = np.concatenate([np.ones(K), np.zeros(K)])
    limits = [(0.0, _LARGEST_FACTOR)] * K + [(-1.0, 1.0)] * K
    found = optimize.minimize(mean_loss, first, method="L-BFGS-B", bounds=limits)
    best = found.x if found.fun <= mean_loss(first) else first
    return best[:K].tolist(), (unit * best[K:]).tolist()
