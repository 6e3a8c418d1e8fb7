"""Calibration: predictions against observed outcomes, in bins of equal size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scboost._arrays import FloatArray, IntArray
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
        prediction, outcome, subject = predictions.predicted, predictions.target, "value"
    elif predictions.probability is None:
        return None
    elif predictions.probability.shape[1] == 2:
        prediction, outcome = predictions.probability[:, 1], (predictions.target == 1).astype(np.float64)
        subject = "probability of the second class"
    else:
        prediction = predictions.probability.max(axis=1)
        outcome = (predictions.target == predictions.predicted).astype(np.float64)
        subject = "probability of the predicted class"
    bins = _equal_bins(prediction)
    count = np.bincount(bins)
    predicted, observed = np.bincount(bins, prediction) / count, np.bincount(bins, outcome) / count
    if not predictions.is_classifier:
        variance = np.bincount(bins, (outcome - observed[bins]) ** 2) / np.maximum(count - 1, 1)
        half = 1.96 * np.sqrt(variance / count)
        nan = float("nan")
        return Calibration(predicted, observed, observed - half, observed + half, count, nan, nan, subject)
    low, high = _wilson(observed, count)
    rng = np.random.default_rng(seed)
    simulated = [np.bincount(bins, rng.random(len(prediction)) < prediction) / count for _ in range(_SIMULATIONS)]
    errors = [np.abs(shares - predicted) @ count / count.sum() for shares in simulated]
    error = float(np.abs(predicted - observed) @ count / count.sum())
    by_chance = float(np.quantile(errors, 0.95))
    return Calibration(predicted, observed, low, high, count, error, by_chance, subject)


def _equal_bins(prediction: FloatArray) -> IntArray:
    """Return the bin of each sample; bins have about the same size and none is empty."""
    n_bins = max(1, min(_BINS, len(prediction) // 5))
    edges = np.quantile(prediction, np.linspace(0, 1, n_bins + 1)[1:-1])
    bins = np.searchsorted(edges, prediction, side="right")
    return np.asarray(np.unique(bins, return_inverse=True)[1])  # ties leave some bins empty


def _wilson(share: FloatArray, count: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the Wilson score interval of a proportion at 95 % confidence."""
    z = 1.96
    center = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z * np.sqrt(share * (1 - share) / count + z**2 / (4 * count**2)) / (1 + z**2 / count)
    return center - half, center + half
