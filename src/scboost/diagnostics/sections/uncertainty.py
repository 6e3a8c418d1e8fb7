"""Uncertainty: coverage of prediction intervals, label sets and predicted distributions on the evaluated samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast

import numpy as np
import numpy.typing as npt
from scipy import special

from scboost._arrays import BoolArray, FloatArray
from scboost.diagnostics._calibration import wilson
from scboost.diagnostics._predictions import Predictions

NOMINAL = (0.8, 0.9, 0.95)
"""Nominal coverages."""
_BINS = 10
_STREAM = 7  # of random numbers: data simulated with the same seed must not be correlated with them
_LEAST_EXPECTED = 5  # samples of a bin of the histogram, for the test


@dataclass(frozen=True)
class Coverage:
    """Coverage on the evaluated samples.

    Attributes
    ----------
    nominal, observed, low, high : float
        Nominal coverage, share of the samples whose target is covered, and its 95 % confidence interval.
    size : float
        Mean width of the intervals, or mean number of labels in a set.
    """

    nominal: float
    observed: float
    low: float
    high: float
    size: float

    @property
    def differs(self) -> bool:
        """Whether the nominal coverage is outside of the confidence interval."""
        return not self.low <= self.nominal <= self.high


@dataclass(frozen=True)
class Uncertainty:
    """Observed coverage, and the calibration of predicted distributions.

    Attributes
    ----------
    kind : {"interval", "set", "distribution"}
        What the model predicts: conformal intervals, conformal label sets, or distributions.
    coverage : list of Coverage
        For each nominal coverage.
    pit : ndarray of shape (n_bins,)
        Share of the samples in each bin of the probability integral transform (PIT), the predicted probability of a
        target below the observed one, which is uniform for a calibrated model. Empty for intervals and sets.
    pit_low, pit_high : float
        Range of the share of a bin for a calibrated model, with 95 % probability.
    p_value : float
        Of the chi-squared test that the PIT is uniform.
    nll, crps : float
        Mean negative log-likelihood and continuous ranked probability score; NaN unless distributions are predicted.
    """

    kind: Literal["interval", "set", "distribution"]
    coverage: list[Coverage]
    pit: FloatArray
    pit_low: float = float("nan")
    pit_high: float = float("nan")
    p_value: float = float("nan")
    nll: float = float("nan")
    crps: float = float("nan")


class _Distribution(Protocol):
    name: str

    def interval(self, coverage: Sequence[float]) -> FloatArray: ...
    def cdf(self, y: FloatArray) -> FloatArray: ...
    def logpdf(self, y: FloatArray) -> FloatArray: ...
    def crps(self, y: FloatArray) -> FloatArray: ...


class _Model(Protocol):
    """A model of scboost."""

    def predict_interval(self, X: Any, coverage: Sequence[float]) -> FloatArray: ...
    def predict_set(self, X: Any, coverage: Sequence[float]) -> BoolArray: ...
    def predict_distribution(self, X: Any) -> _Distribution: ...


def evaluate_uncertainty(model: object, kind: str, X: Any, predictions: Predictions, seed: int) -> Uncertainty | None:
    """Evaluate what a model says about the uncertainty of its predictions.

    Parameters
    ----------
    model : object
        The ensemble.
    kind : {"interval", "set", "distribution", ""}
        What it can predict; empty for nothing.
    X : array-like or table
        Samples with the features of the ensemble.
    predictions : Predictions
        Their targets.
    seed : int
        Seed of the randomized PIT of counts.

    Returns
    -------
    Uncertainty or None
        None if the model predicts neither intervals nor sets nor distributions.
    """
    given, y = cast("_Model", model), predictions.target
    if kind == "set":
        sets = given.predict_set(X, NOMINAL)
        inside = sets[np.arange(len(y)), :, y]
        return Uncertainty("set", _coverages(inside, sets.sum(axis=2)), np.zeros(0))
    if kind == "interval":
        return Uncertainty("interval", _of_bounds(given.predict_interval(X, NOMINAL), y), np.zeros(0))
    if kind != "distribution":
        return None
    found = given.predict_distribution(X)
    pit = _pit(found, y, seed)
    low, high = _range_by_chance(len(y))
    return Uncertainty(
        "distribution",
        _of_bounds(found.interval(NOMINAL), y),
        pit,
        low,
        high,
        _p_value(pit, len(y)),
        -float(found.logpdf(y).mean()),
        float(found.crps(y).mean()),
    )


def _of_bounds(bounds: FloatArray, y: npt.NDArray[Any]) -> list[Coverage]:
    """Return the coverages of intervals of shape (n, n_coverages, 2)."""
    inside = (bounds[..., 0] <= y[:, None]) & (y[:, None] <= bounds[..., 1])
    return _coverages(inside, bounds[..., 1] - bounds[..., 0])


def _coverages(inside: BoolArray, sizes: npt.NDArray[Any]) -> list[Coverage]:
    """Return the coverages of samples that are inside or not, of shape (n, n_coverages)."""
    observed = inside.mean(axis=0)
    low, high = wilson(observed, np.full(len(observed), len(inside)))
    columns = zip(NOMINAL, observed, low, high, sizes.mean(axis=0), strict=True)
    return [Coverage(*map(float, column)) for column in columns]


def _pit(found: _Distribution, y: FloatArray, seed: int) -> FloatArray:
    """Return the shares of the bins of the PIT; that of counts is drawn between its two ends."""
    at = found.cdf(y)
    if found.name == "negative_binomial":
        below = found.cdf(y - 1)
        rng = np.random.default_rng([seed, _STREAM])
        at = below + rng.random(len(y)) * (at - below)
    counts = np.histogram(at, bins=_BINS, range=(0.0, 1.0))[0]
    return counts / len(y)


def _range_by_chance(n: int) -> tuple[float, float]:
    """Return the range of the share of one bin for uniform values, with 95 % probability."""
    half = 1.96 * np.sqrt((1 - 1 / _BINS) / _BINS / n)
    return max(1 / _BINS - half, 0.0), 1 / _BINS + half


def _p_value(shares: FloatArray, n: int) -> float:
    """Return the p-value of the chi-squared test of uniform shares; NaN for too few samples."""
    expected = n / _BINS
    if expected < _LEAST_EXPECTED:
        return float("nan")
    statistic = np.sum((n * shares - expected) ** 2) / expected
    return float(special.chdtrc(_BINS - 1, statistic))
