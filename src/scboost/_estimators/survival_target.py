"""Targets and metrics of survival analysis, as users give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import ArrayLike, Float64Array, FloatArray
from scboost._core.losses import AFTLoss, Loss
from scboost._core.survival import baseline_of, brier_times, concordance, integrated_brier_score, step
from scboost._estimators.metric import Metric

METRICS = ("concordance", "integrated_brier_score")
"""Names of the metrics that ``early_stopping_metric`` takes besides scikit-learn's."""

_FORMS = (
    "a structured array with an event indicator and a time, an array of shape (n_samples, 2) of times and event "
    "indicators (0 or 1), or one of lower and upper bounds of the times"
)


def time_bounds(y: ArrayLike | None, n_samples: int, name: str) -> Float64Array:
    """Return lower and upper bounds of survival times, of shape (n, 2); an upper bound of infinity is censored.

    Parameters
    ----------
    y : structured array of shape (n,), or array-like of shape (n, 2)
        Event indicator and time, in any order of the two fields; times and event indicators; or bounds. A second
        column of zeros and ones is an event indicator.
    n_samples : int
        Number of samples of X.
    name : str
        Name of the target, for messages.
    """
    if y is None:
        raise ValueError(f"This estimator requires {name} to be passed, but the target {name} is None.")
    array: npt.NDArray[Any] = np.asarray(y)
    columns = _fields(array, name) if array.dtype.names else _columns(array, name)
    if len(columns[0]) != n_samples:
        raise ValueError(f"{name} has {len(columns[0])} entries but X has {n_samples} rows.")
    first, second = columns
    is_event = second.dtype.kind == "b" or bool(np.isin(second, (0, 1)).all())
    lower, second = first.astype(np.float64), second.astype(np.float64)
    upper = np.where(second == 1, lower, np.inf) if is_event else second
    if not np.isfinite(lower).all() or np.isnan(upper).any():
        raise ValueError(f"Input {name} contains NaN or infinity; only an upper bound may be infinite (censored).")
    if (lower < 0).any():
        raise ValueError(f"{name} must hold times >= 0, got {lower.min():g}.")
    if (lower > upper).any():
        i = int(np.argmax(lower > upper))
        raise ValueError(f"{name} has the bounds {lower[i]:g} > {upper[i]:g} in row {i}; give {_FORMS}.")
    return np.stack([lower, upper], axis=1)


def _fields(array: npt.NDArray[Any], name: str) -> list[npt.NDArray[Any]]:
    """Return time and event, or the two bounds, from a structured array."""
    fields = [array[field].reshape(-1) for field in array.dtype.names or ()]
    flags = [field.dtype.kind == "b" for field in fields]
    if len(fields) != 2 or all(flags):
        raise ValueError(f"{name} has the fields {array.dtype.names}; give {_FORMS}.")
    return fields[::-1] if flags[0] else fields


def _columns(array: npt.NDArray[Any], name: str) -> list[npt.NDArray[Any]]:
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"{name} has shape {array.shape}; give {_FORMS}.")
    try:
        return list(array.astype(np.float64).T)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers, got {array.dtype} ({error}).") from error


def cumulative_hazards(
    loss: Loss, raw: FloatArray, baseline: Mapping[str, FloatArray], times: FloatArray
) -> Float64Array:
    """Return cumulative hazards of shape (n, n_times) of raw scores of shape (1, n)."""
    if isinstance(loss, AFTLoss):
        with np.errstate(divide="ignore"):
            z = (np.log(times) - raw[0][:, None]) / baseline["scale"][0]
        return np.asarray(-loss.log_survival(z))
    hazard = step(baseline["time"], baseline["cumulative_hazard"], times, 0.0)
    return np.asarray(np.exp(raw[0])[:, None] * hazard)


class SurvivalMetric:
    """A metric of censored times, to be minimized like a loss.

    Parameters
    ----------
    name : {"concordance", "integrated_brier_score"}
        Name of the metric.
    loss : Loss
        Which turns raw scores into predictions.

    Attributes
    ----------
    name : str
        Name of the score in logs, where higher is better.
    """

    def __init__(self, name: str, loss: Loss) -> None:
        if name not in METRICS:
            raise ValueError(
                f"early_stopping_metric={name!r} is not defined for censored times; use one of "
                f"{', '.join(map(repr, METRICS))} or a scorer, scorer(estimator, X, y)."
            )
        self._loss, self._is_brier = loss, name == "integrated_brier_score"
        self.name = f"neg_{name}" if self._is_brier else name

    def mean(self, y: FloatArray, F: FloatArray, sample_weight: FloatArray | None = None) -> float:
        """Return the metric of raw scores F, of shape (1, n); lower is better."""
        if not np.isfinite(y[:, 1]).any():
            raise ValueError(
                f"early_stopping_metric needs an event among the {len(y)} held-out samples; pass other or more "
                "validation samples, or fewer folds."
            )
        if self._is_brier:
            return self._brier(y, F, sample_weight)
        value = concordance(y, -F[0] if isinstance(self._loss, AFTLoss) else F[0], sample_weight)
        return -0.5 if np.isnan(value) else -value

    def _brier(self, y: FloatArray, F: FloatArray, sample_weight: FloatArray | None) -> float:
        """Return the integrated Brier score, with the baseline hazard or the scale that fits these samples best."""
        if ((y[:, 0] < y[:, 1]) & np.isfinite(y[:, 1])).any():
            raise ValueError("early_stopping_metric='integrated_brier_score' needs observed or right-censored times.")
        baseline = baseline_of(self._loss, y, F, sample_weight)
        times = brier_times(y)
        survival = np.exp(-cumulative_hazards(self._loss, F, baseline, times))
        return integrated_brier_score(y, survival, times, sample_weight)


class SurvivalScorer(Metric):
    """Minus the score of a scorer that takes times as a structured array of event and time."""

    def _target(self, y: FloatArray) -> npt.NDArray[Any]:
        times = np.empty(len(y), dtype=[("event", bool), ("time", np.float64)])
        times["event"], times["time"] = np.isfinite(y[:, 1]), y[:, 0]
        return times
