"""Scores of predictions, with bootstrap confidence intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray, IntArray
from scboost.diagnostics._predictions import Predictions

_RESAMPLES = 200


@dataclass(frozen=True)
class Score:
    """A score with its confidence interval.

    Attributes
    ----------
    name, meaning : str
        Name and a short explanation.
    value, low, high : float
        Value, and the ends of the 95 % bootstrap confidence interval.
    higher_is_better : bool
    """

    name: str
    meaning: str
    value: float
    low: float
    high: float
    higher_is_better: bool


class Metric(NamedTuple):
    """A score as a function of weights.

    Attributes
    ----------
    name, meaning, higher_is_better
        As in :class:`Score`.
    compute : callable
        Returns the score for weights of shape (n,): of samples, or of other units that are drawn independently.
    """

    name: str
    meaning: str
    higher_is_better: bool
    compute: Callable[[FloatArray], float]


def compute_scores(predictions: Predictions, seed: int, resamples: int = _RESAMPLES) -> list[Score]:
    """Return the scores of predictions, with 95 % bootstrap confidence intervals.

    Parameters
    ----------
    predictions : Predictions
    seed : int
        Seed of the bootstrap.
    resamples : int, default=200
        Resamples of the bootstrap; without any, the intervals are NaN.

    Returns
    -------
    list of Score
        The primary score first.
    """
    return scores_of(_metrics(predictions), len(predictions.target), seed, resamples)


def scores_of(metrics: list[Metric], n: int, seed: int, resamples: int) -> list[Score]:
    """Return the scores of n units, with 95 % bootstrap confidence intervals; see :func:`compute_scores`."""
    resampled = _resampled(metrics, n, seed, resamples)
    return [_score(metric, values, n) for metric, values in zip(metrics, resampled, strict=True)]


def score_differences(a: Predictions, b: Predictions, seed: int) -> list[tuple[Score, Score, float, float]]:
    """Return the scores of two predictions for the same samples, with the interval of their difference.

    Parameters
    ----------
    a, b : Predictions
        Of the same samples.
    seed : int
        Seed of the bootstrap, whose resamples are the same for both.

    Returns
    -------
    list of (Score, Score, float, float)
        Scores that both have, and the ends of the 95 % confidence interval of the first minus the second.
    """
    n = len(a.target)
    tables = []
    for predictions in (a, b):
        metrics = _metrics(predictions)
        values = _resampled(metrics, n, seed, _RESAMPLES)
        tables.append({metric.name: (metric, column) for metric, column in zip(metrics, values, strict=True)})
    found = []
    for name in tables[0]:
        if name in tables[1]:
            (first, x), (second, z) = tables[0][name], tables[1][name]
            low, high = _interval(x - z)
            found.append((_score(first, x, n), _score(second, z, n), low, high))
    return found


def _metrics(predictions: Predictions) -> list[Metric]:
    return _classification(predictions) if predictions.is_classifier else _regression(predictions)


def _resampled(metrics: list[Metric], n: int, seed: int, resamples: int) -> FloatArray:
    """Return the values of the metrics on resamples, of shape (n_metrics, n_resamples)."""
    rng = np.random.default_rng(seed)
    resampled = np.empty((resamples, len(metrics)))
    for row in resampled:
        weight = np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
        row[:] = [metric.compute(weight) for metric in metrics]
    return resampled.T


def _score(metric: Metric, resampled: FloatArray, n: int) -> Score:
    low, high = _interval(resampled)
    return Score(metric.name, metric.meaning, metric.compute(np.ones(n)), low, high, metric.higher_is_better)


def _interval(values: FloatArray) -> tuple[float, float]:
    defined = values[np.isfinite(values)]  # a resample with one class has no AUC
    low, high = np.quantile(defined, [0.025, 0.975]) if len(defined) else (np.nan, np.nan)
    return float(low), float(high)


def _mean(values: FloatArray) -> Callable[[FloatArray], float]:
    return lambda weight: float(weight @ values / weight.sum())


def _classification(predictions: Predictions) -> list[Metric]:
    metrics: list[Metric] = []
    if predictions.probability is not None:
        loss = _mean(predictions.pointwise_loss())
        metrics.append(Metric("log-loss", "mean negative log-likelihood; lower is better", False, loss))
    if predictions.ranking is not None:
        positive = predictions.target == 1
        groups = np.unique(predictions.ranking, return_inverse=True)[1]
        metrics.append(Metric("AUC", "area under the ROC curve", True, _auc(positive, groups)))
    correct = (predictions.target == predictions.predicted).astype(np.float64)
    return [*metrics, Metric("accuracy", "share of correctly classified samples", True, _mean(correct))]


def _auc(positive: npt.NDArray[np.bool_], groups: IntArray) -> Callable[[FloatArray], float]:
    """Return the area under the ROC curve as a function of sample weights; ties count one half."""
    n_groups = int(groups.max()) + 1

    def area(weight: FloatArray) -> float:
        up = np.bincount(groups, weight * positive, n_groups)
        down = np.bincount(groups, weight * ~positive, n_groups)
        pairs = up.sum() * down.sum()
        below = np.cumsum(down) - down / 2
        return float(up @ below / pairs) if pairs > 0 else float("nan")

    return area


def _regression(predictions: Predictions) -> list[Metric]:
    y, squares = predictions.target, predictions.pointwise_loss()

    def r2(weight: FloatArray) -> float:
        total = weight @ (y - weight @ y / weight.sum()) ** 2
        return float(1 - weight @ squares / total) if total > 0 else float("nan")

    def rmse(weight: FloatArray) -> float:
        return float(np.sqrt(weight @ squares / weight.sum()))

    return [
        Metric("R2", "share of the variance of y explained", True, r2),
        Metric("RMSE", "root mean squared error, in units of y", False, rmse),
        Metric("MAE", "mean absolute error, in units of y", False, _mean(np.abs(y - predictions.predicted))),
    ]
