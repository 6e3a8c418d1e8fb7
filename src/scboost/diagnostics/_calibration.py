"""Calibration: predictions against observed outcomes, in bins of equal size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scboost._arrays import BoolArray, FloatArray, IntArray
from scboost.diagnostics._predictions import Predictions

_BINS = 10
_SIMULATIONS = 200


@dataclass(frozen=True)
class Calibration:
    """Mean prediction and mean outcome of bins of samples with similar predictions.

    Attributes
    ----------
    predicted, observed, low, high : ndarray of shape (n_bins,)
        Mean prediction, mean outcome, and the 95 % confidence interval of the mean outcome.
    count : ndarray of shape (n_bins,)
        Samples of each bin.
    error : float
        Expected calibration error: mean distance of prediction and outcome over the samples; NaN for regression.
    error_by_chance : float
        95 % quantile of the error of a perfectly calibrated model on as many samples; NaN for regression.
    subject : str
        The prediction compared: "value", "probability of the second class" or "probability of the predicted class".
    """

    predicted: FloatArray
    observed: FloatArray
    low: FloatArray
    high: FloatArray
    count: IntArray
    error: float
    error_by_chance: float
    subject: str

    @property
    def is_miscalibrated(self) -> bool:
        """Whether the calibration error is significant at the 5 % level; False for regression."""
        return self.error > self.error_by_chance


def compute_calibration(predictions: Predictions, seed: int) -> Calibration | None:
    """Return the calibration of predictions; None where there is no probability.

    Two classes are evaluated by the probability of the second one, more classes by that of the predicted class, and
    regression by the prediction itself.
    """
    if not predictions.is_classifier:
        return _regression_calibration(predictions.predicted, predictions.target)
    p = predictions.probability
    if p is None:
        return None
    if p.shape[1] == 2:
        return _calibration(p[:, 1], predictions.target == 1, "probability of the second class", seed)
    correct = predictions.target == predictions.predicted
    return _calibration(p.max(axis=1), correct, "probability of the predicted class", seed)


def compute_class_calibration(predictions: Predictions, classes: Sequence[int], seed: int) -> list[Calibration]:
    """Return the calibration of the probability of each class; empty for two classes and without probabilities.

    Errors by chance are at the 5 % level for all classes together.
    """
    p = predictions.probability
    if p is None or p.shape[1] == 2:
        return []
    level = 1 - 0.05 / len(classes)
    return [
        _calibration(p[:, k], predictions.target == k, "probability of the class", seed + k, level=level)
        for k in classes
    ]


def _regression_calibration(prediction: FloatArray, outcome: FloatArray) -> Calibration:
    bins = _equal_bins(prediction)
    count = np.bincount(bins)
    predicted, observed = np.bincount(bins, prediction) / count, np.bincount(bins, outcome) / count
    variance = np.bincount(bins, (outcome - observed[bins]) ** 2) / np.maximum(count - 1, 1)
    half = 1.96 * np.sqrt(variance / count)
    nan = float("nan")
    return Calibration(predicted, observed, observed - half, observed + half, count, nan, nan, "value")


def _calibration(p: FloatArray, outcome: BoolArray, subject: str, seed: int, *, level: float = 0.95) -> Calibration:
    """Return the calibration of the probabilities of an event."""
    bins = _equal_bins(p)
    count = np.bincount(bins)
    predicted, observed = np.bincount(bins, p) / count, np.bincount(bins, outcome) / count
    low, high = wilson(observed, count)
    rng = np.random.default_rng(seed)
    simulated = [np.bincount(bins, rng.random(len(p)) < p) / count for _ in range(_SIMULATIONS)]
    errors = [np.abs(shares - predicted) @ count / count.sum() for shares in simulated]
    error = float(np.abs(predicted - observed) @ count / count.sum())
    return Calibration(predicted, observed, low, high, count, error, float(np.quantile(errors, level)), subject)


def _equal_bins(prediction: FloatArray) -> IntArray:
    """Return the bin of each sample; bins have about the same size and none is empty."""
    n_bins = max(1, min(_BINS, len(prediction) // 5))
    edges = np.quantile(prediction, np.linspace(0, 1, n_bins + 1)[1:-1])
    bins = np.searchsorted(edges, prediction, side="right")
    return np.asarray(np.unique(bins, return_inverse=True)[1])  # ties leave some bins empty


def wilson(share: FloatArray, count: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the Wilson score interval of a proportion at 95 % confidence."""
    z = 1.96
    center = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z * np.sqrt(share * (1 - share) / count + z**2 / (4 * count**2)) / (1 + z**2 / count)
    return center - half, center + half
