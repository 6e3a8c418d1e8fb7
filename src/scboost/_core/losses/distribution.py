"""Negative log-likelihoods of distributions with two parameters, both of which depend on the features.

The first raw score is a location or the logarithm of a mean, the second the logarithm of a scale, shape or size. All
pairs are orthogonal: the Fisher information is diagonal. Where the second derivative of a sample's loss grows without
bound, the Hessian returned has the same expectation, the Fisher information, but bounds the Newton steps.

Trees of the first parameter are grown on natural gradients: gradient and Hessian are multiplied by the squared scale,
so that samples with a small predicted scale, which is uncertain itself, do not outweigh all others.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import replace
from functools import cache

import numpy as np
from scipy import ndimage, optimize, special

from scboost._arrays import FloatArray
from scboost._core.links import IDENTITY_MEAN, LOG_MEAN, LOGNORMAL_MEAN
from scboost._core.losses.base import MIN_HESSIAN, Frame, Loss, check_range
from scboost._core.statistics import weighted_mean
from scboost._runtime.communicator import SINGLE_PROCESS

# Logarithms of shapes and sizes are clipped to these limits; means and scales have wider ones.
_LOWEST, _HIGHEST = -12.0, 12.0
_WIDEST = 80.0
_SMALLEST_SCALE = 1e-9  # of the largest target, if all are equal
_HALF_LOG_2_PI = float(np.log(2 * np.pi) / 2)

Terms = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]
"""Loss, first derivatives by the two raw scores, and their Hessians, each of shape (n,)."""


class DistributionLoss(Loss):
    """Negative log-likelihood of a distribution with two parameters.

    Attributes
    ----------
    parameters : tuple of str
        Names of the raw scores.
    """

    task = "distribution"
    n_outputs = 2
    convex = False  # a negative log-likelihood is not convex in location and log-scale jointly
    parameters: tuple[str, str] = ("loc", "log_scale")

    @abstractmethod
    def terms(self, y: FloatArray, first: FloatArray, second: FloatArray) -> Terms:
        """Return loss, gradients and Hessians of samples in float64."""

    def squared_scale(self, second: FloatArray) -> FloatArray | float:
        """Return the factor of gradients and Hessians of the first parameter."""
        del second
        return 1.0

    def gradient_hessian(self, y: FloatArray, raw: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return natural gradients; see the module."""
        _, g0, g1, h0, h1 = self._all_terms(y, raw)
        return np.stack([g0, g1]), np.stack([h0, h1])

    def pointwise_loss(self, y: FloatArray, raw: FloatArray) -> FloatArray:
        return self._all_terms(y, raw)[0]

    def loss_gradient_hessian(
        self, y: FloatArray, raw: FloatArray, gradient: FloatArray, hessian: FloatArray
    ) -> FloatArray:
        losses, gradient[0], gradient[1], hessian[0], hessian[1] = self._all_terms(y, raw)
        return losses

    def _all_terms(self, y: FloatArray, raw: FloatArray) -> Terms:
        first, second = raw.astype(np.float64)
        loss, g0, g1, h0, h1 = self.terms(y.astype(np.float64), first, second)
        factor = self.squared_scale(second)
        return loss, factor * g0, g1, np.maximum(factor * h0, MIN_HESSIAN), np.maximum(h1, MIN_HESSIAN)


class _LocationScaleLoss(DistributionLoss):
    """A distribution of ``(y - location) / scale``; in the loop, the unit of y is the scale of all targets."""

    link = IDENTITY_MEAN

    def __init__(self) -> None:
        self._location, self._log_unit = 0.0, 0.0  # zero and unit of the raw scores

    def check_target(self, y: FloatArray, name: str) -> None:
        check_range(y, name)

    def frame(self, prior: FloatArray) -> Frame:
        location, log_unit = map(float, prior)
        unit = float(np.exp(log_unit))
        inner = copy.copy(self)
        vars(inner).update(_location=location, _log_unit=log_unit)
        return Frame(inner, np.array([location, log_unit]), np.array([unit, 1.0]), location, unit)

    def squared_scale(self, second: FloatArray) -> FloatArray:
        return np.exp(2 * np.clip(second, -_WIDEST, _WIDEST))

    def terms(self, y: FloatArray, first: FloatArray, second: FloatArray) -> Terms:
        second = np.clip(second, -_WIDEST, _WIDEST)
        scale = np.exp(second)
        loss, g0, g1, h0, h1 = self.standard_terms((y - first) / scale)
        return loss + second + self._log_unit, g0 / scale, g1, h0 / scale**2, h1

    @abstractmethod
    def standard_terms(self, z: FloatArray) -> Terms:
        """Return the terms of standardized residuals, at location 0 and scale 1."""


class NormalLoss(_LocationScaleLoss):
    """Normal distribution with mean and standard deviation; raw scores are the mean and the log standard deviation."""

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        y = np.asarray(y, dtype=np.float64)
        mean = weighted_mean(y, sample_weight, SINGLE_PROCESS)
        variance = weighted_mean((y - mean) ** 2, sample_weight, SINGLE_PROCESS)
        return np.array([mean, np.log(max(np.sqrt(variance), _smallest_scale(y)))])

    def standard_terms(self, z: FloatArray) -> Terms:
        squares = z**2
        # The exact step of the log-scale of a leaf is log(mean(z^2)) / 2; the Newton step is its hyperbolic tangent.
        return squares / 2 + _HALF_LOG_2_PI, -z, 1 - squares, np.ones_like(z), 1 + squares


class LogNormalLoss(NormalLoss):
    """Log-normal distribution; raw scores are mean and log standard deviation of the logarithm of y."""

    link = LOGNORMAL_MEAN
    parameters = ("log_mean", "log_sigma")

    def check_target(self, y: FloatArray, name: str) -> None:
        _check_positive(y, name, "lognormal")

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        return super().initial_score(np.log(np.asarray(y, dtype=np.float64)), sample_weight)

    def frame(self, prior: FloatArray) -> Frame:
        return replace(super().frame(prior), target_shift=0.0, target_unit=1.0)

    def terms(self, y: FloatArray, first: FloatArray, second: FloatArray) -> Terms:
        logs = np.log(y)
        loss, g0, g1, h0, h1 = super().terms((logs - self._location) / np.exp(self._log_unit), first, second)
        return loss + logs, g0, g1, h0, h1


class StudentLoss(_LocationScaleLoss):
    """Student's t distribution; raw scores are location and log-scale.

    Parameters
    ----------
    df : float
        Degrees of freedom; above 1, so that the mean exists.
    """

    def __init__(self, df: float) -> None:
        if not df > 1:
            raise ValueError(f"df={df!r} must be above 1.")
        super().__init__()
        self.df = df

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        """Maximize the likelihood by expectation maximization, from the normal distribution."""
        y = np.asarray(y, dtype=np.float64)
        location, log_scale = NormalLoss().initial_score(y, sample_weight)
        scale, least = float(np.exp(log_scale)), _smallest_scale(y)
        own = np.ones(len(y)) if sample_weight is None else sample_weight.astype(np.float64)
        for _ in range(1000):
            w = own * (self.df + 1) / (self.df + ((y - location) / scale) ** 2)
            before = location, scale
            location = float(np.average(y, weights=w))
            scale = max(float(np.sqrt(w @ (y - location) ** 2 / own.sum())), least)
            if abs(location - before[0]) + abs(scale - before[1]) <= 1e-12 * scale:
                break
        return np.array([location, np.log(scale)])

    def standard_terms(self, z: FloatArray) -> Terms:
        df = self.df
        constant = special.gammaln(df / 2) - special.gammaln((df + 1) / 2) + np.log(df * np.pi) / 2
        weight = (df + 1) / (df + z**2)
        ones = np.ones_like(z)
        return (
            (df + 1) / 2 * np.log1p(z**2 / df) + constant,
            -weight * z,
            1 - weight * z**2,
            (df + 1) / (df + 3) * ones,
            2 * df / (df + 3) * ones,
        )


class GammaDistributionLoss(DistributionLoss):
    """Gamma distribution; raw scores are the logarithms of mean and shape."""

    link = LOG_MEAN
    parameters = ("log_mean", "log_shape")

    def check_target(self, y: FloatArray, name: str) -> None:
        _check_positive(y, name, "gamma")

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        y = np.asarray(y, dtype=np.float64)
        log_mean = float(np.log(weighted_mean(y, sample_weight, SINGLE_PROCESS)))
        gap = log_mean - weighted_mean(np.log(y), sample_weight, SINGLE_PROCESS)

        def slope(log_shape: float) -> float:
            return log_shape - float(special.digamma(np.exp(log_shape))) - gap

        if slope(_HIGHEST) >= 0:  # all targets are nearly equal
            return np.array([log_mean, _HIGHEST])
        if slope(_LOWEST) <= 0:
            return np.array([log_mean, _LOWEST])
        return np.array([log_mean, optimize.brentq(slope, _LOWEST, _HIGHEST, xtol=1e-13)])

    def squared_scale(self, second: FloatArray) -> FloatArray:
        """Return the squared coefficient of variation."""
        return np.exp(-np.clip(second, _LOWEST, _HIGHEST))

    def terms(self, y: FloatArray, first: FloatArray, second: FloatArray) -> Terms:
        second = np.clip(second, _LOWEST, _HIGHEST)
        shape, logs = np.exp(second), np.log(y)
        log_ratio = logs - first
        ratio = np.exp(np.minimum(log_ratio, 500.0))
        loss = special.gammaln(shape) - shape * (second + log_ratio - ratio) + logs
        g1 = shape * (special.digamma(shape) - second - 1 - log_ratio + ratio)
        h1 = shape**2 * special.polygamma(1, shape) - shape
        return loss, shape * (1 - ratio), g1, shape * (1 + ratio) / 2, h1


class NegativeBinomialLoss(DistributionLoss):
    """Negative binomial distribution of counts; raw scores are the logarithms of mean and size.

    The variance is ``mean + mean**2 / size``. Steps of the mean are Newton steps: the information about it depends on
    the mean at least as much as on the size.
    """

    link = LOG_MEAN
    parameters = ("log_mean", "log_size")

    def check_target(self, y: FloatArray, name: str) -> None:
        if (y < 0).any() or (y != np.round(y)).any():
            wrong = y[(y < 0) | (y != np.round(y))][0]
            raise ValueError(f"distribution='negative_binomial' needs {name} to be counts 0, 1, 2, ..., got {wrong:g}.")
        if not y.any():
            raise ValueError(f"distribution='negative_binomial' needs a positive count, but {name} is 0 everywhere.")
        check_range(y, name)

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        y = np.asarray(y, dtype=np.float64)
        log_mean = float(np.log(max(weighted_mean(y, sample_weight, SINGLE_PROCESS), 1e-30)))

        def mean_loss(log_size: float) -> float:
            return self.mean(y, np.repeat([[log_mean], [log_size]], len(y), axis=1), sample_weight)

        limits = _LOWEST, _HIGHEST
        found = optimize.minimize_scalar(mean_loss, bounds=limits, method="bounded", options={"xatol": 1e-8})
        return np.array([log_mean, float(found.x)])

    def terms(self, y: FloatArray, first: FloatArray, second: FloatArray) -> Terms:
        first, second = np.clip(first, -_WIDEST, _WIDEST), np.clip(second, _LOWEST, _HIGHEST)
        size, mean = np.exp(second), np.exp(first)
        log_total = np.logaddexp(first, second)
        total = size + mean
        loss = special.gammaln(size) + special.gammaln(y + 1) - special.gammaln(y + size)
        loss += size * (log_total - second) + y * (log_total - first)
        g1 = special.digamma(size) - special.digamma(y + size) + log_total - second + (y - mean) / total
        h1 = np.exp(_log_size_information(first, second))
        return loss, size * (mean - y) / total, size * g1, size * (mean + y) / (2 * total), h1


_GRID = np.arange(_LOWEST, _HIGHEST + 0.125, 0.25)


def _log_size_information(log_mean: FloatArray, log_size: FloatArray) -> FloatArray:
    """Return the logarithm of the Fisher information of the log-size, interpolated in a table."""
    places = (np.clip(np.stack([log_mean, log_size]), _GRID[0], _GRID[-1]) - _GRID[0]) / 0.25
    return np.asarray(ndimage.map_coordinates(_size_table(), places, order=1, mode="nearest"))


@cache
def _size_table() -> FloatArray:
    """Logarithm of the Fisher information of the log-size of a negative binomial distribution, on a grid.

    With ``trigamma(z) = integral of t exp(-z t) / (1 - exp(-t))`` over t > 0 and the moment generating function of a
    count, the information of the size is an integral of elementary functions.
    """
    t, weight = _nodes()
    survival = -np.expm1(-t)
    log_mean, log_size = np.meshgrid(_GRID, _GRID, indexing="ij")
    information = np.zeros_like(log_mean)
    for node, w, u in zip(t, weight, survival, strict=True):
        size, ratio = np.exp(log_size), np.exp(log_mean - log_size)
        # 1 - E exp(-t Y) minus its first-order term in the mean: both integrals are of order t near 0.
        gone = -np.expm1(-size * np.log1p(ratio * u))
        information += w * (node / u * np.exp(-size * node) * gone)
    size, mean = np.exp(log_size), np.exp(log_mean)
    information = size**2 * information - size * mean / (size + mean)
    # For a large size the difference is below rounding; there, the leading term is exact.
    leading = (mean / (size + mean)) ** 2 / 2
    return np.asarray(np.log(np.where(information > 1e-7 * size, information, leading)))


def _nodes() -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of an integral over t > 0, uniform in the logarithm of t."""
    logs = np.linspace(-25.0, 14.0, 800)
    return np.exp(logs), np.exp(logs) * (logs[1] - logs[0])


def _smallest_scale(y: FloatArray) -> float:
    return _SMALLEST_SCALE * max(float(np.abs(y).max(initial=0)), 1e-15)


def _check_positive(y: FloatArray, name: str, distribution: str) -> None:
    if (y <= 0).any():
        raise ValueError(f"distribution={distribution!r} needs {name} > 0, got {y.min():g}.")
    check_range(y, name)
