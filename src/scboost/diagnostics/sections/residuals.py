"""Regression: residuals against predictions, and the distribution of errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scboost._arrays import FloatArray
from scboost.diagnostics._predictions import Predictions

_POINTS = 500
_BINS, _BARS = 12, 40
QUANTILES = (0.5, 0.8, 0.9, 0.95, 0.99)
"""Quantiles of the absolute error."""


@dataclass(frozen=True)
class Residuals:
    """Residuals of a regression model: y minus prediction.

    Attributes
    ----------
    mean, standard_error : float
        Mean residual (bias) and its standard error.
    predicted, residual : ndarray of shape (n_points,)
        A random subset of at most 500 samples.
    bin_predicted, bin_residual : ndarray of shape (n_bins,)
        Means over bins of samples with similar predictions.
    absolute_error : dict of float to float
        Quantiles of the absolute error.
    counts, edges : ndarray
        Histogram of the residuals between their 1 % and 99 % quantiles.
    """

    mean: float
    standard_error: float
    predicted: FloatArray
    residual: FloatArray
    bin_predicted: FloatArray
    bin_residual: FloatArray
    absolute_error: dict[float, float]
    counts: FloatArray
    edges: FloatArray

    @property
    def is_biased(self) -> bool:
        """Whether the mean residual differs from zero by more than three standard errors."""
        return abs(self.mean) > 3 * self.standard_error


def evaluate_residuals(predictions: Predictions, seed: int) -> Residuals:
    """Evaluate the predictions of a regression model."""
    predicted = np.asarray(predictions.predicted, np.float64)
    residual = predictions.target - predicted
    n = len(residual)
    shown = np.sort(np.random.default_rng(seed).permutation(n)[:_POINTS])
    parts = np.array_split(np.argsort(predicted, kind="stable"), max(1, min(_BINS, n // 10)))
    low, high = np.quantile(residual, [0.01, 0.99])
    counts, edges = np.histogram(residual, bins=_BARS, range=(low, high) if high > low else None)
    error = np.abs(residual)
    return Residuals(
        mean=float(residual.mean()),
        standard_error=float(residual.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan"),
        predicted=predicted[shown],
        residual=residual[shown],
        bin_predicted=np.array([predicted[part].mean() for part in parts]),
        bin_residual=np.array([residual[part].mean() for part in parts]),
        absolute_error={q: float(np.quantile(error, q)) for q in QUANTILES},
        counts=counts.astype(np.float64),
        edges=edges,
    )
