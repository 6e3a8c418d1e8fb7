"""Estimates and metrics of censored times.

Times are given by bounds of shape (n, 2), as in :mod:`scboost._core.losses.survival`.
"""

from __future__ import annotations

import numpy as np
from scipy import integrate, optimize

from scboost._arrays import FloatArray
from scboost._core.losses import AFTLoss, Loss
from scboost._core.selection import FoldModels
from scboost._data.folds import Folds
from scboost._data.samples import Samples

_BLOCK = 512  # up to this many samples are compared pairwise
_GRID = 100  # times at which a Brier score is computed
_INNER = (0.05, 0.95)  # quantiles of the event times between which it is integrated
_SCALES = (1e-3, 1e3)  # range of the scale of log-times


def event_times(bounds: FloatArray) -> FloatArray:
    """Return the distinct finite upper bounds: the times at which an event is known to have happened."""
    upper = bounds[:, 1]
    return np.unique(upper[np.isfinite(upper)])


def cumulative_hazard(
    bounds: FloatArray, risk: FloatArray, sample_weight: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the distinct event times, and Breslow's estimate of the baseline cumulative hazard at these.

    Parameters
    ----------
    bounds : ndarray of shape (n, 2)
        Observed or right-censored times.
    risk : ndarray of shape (n,)
        Hazard ratio of each sample.
    sample_weight : ndarray of shape (n,), optional
        Sample weights.
    """
    time, event = bounds[:, 0], np.isfinite(bounds[:, 1])
    w = np.ones(len(time)) if sample_weight is None else sample_weight
    order = np.argsort(time, kind="stable")
    at_risk = np.cumsum((w * risk)[order][::-1])[::-1]
    times, place = np.unique(time[event], return_inverse=True)
    events = np.bincount(place.reshape(-1), weights=w[event], minlength=len(times))
    return times, np.cumsum(events / at_risk[np.searchsorted(time[order], times)])


def kaplan_meier(bounds: FloatArray, sample_weight: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
    """Return the distinct event times, and the Kaplan-Meier estimate of the probability to survive each of them.

    Parameters
    ----------
    bounds : ndarray of shape (n, 2)
        Observed or right-censored times.
    sample_weight : ndarray of shape (n,), optional
        Sample weights above 0.
    """
    time, event = bounds[:, 0], np.isfinite(bounds[:, 1])
    w = np.ones(len(time)) if sample_weight is None else sample_weight
    order = np.argsort(time, kind="stable")
    at_risk = np.cumsum(w[order][::-1])[::-1]
    times, place = np.unique(time[event], return_inverse=True)
    events = np.bincount(place.reshape(-1), weights=w[event], minlength=len(times))
    return times, np.cumprod(np.maximum(1 - events / at_risk[np.searchsorted(time[order], times)], 0.0))


def baseline_of(
    loss: Loss, bounds: FloatArray, raw: FloatArray, sample_weight: FloatArray | None
) -> dict[str, FloatArray]:
    """Return the baseline of survival functions, estimated from raw scores of shape (1, n).

    For a Cox model, the baseline cumulative hazard at each event time; for an AFT model, the scale of the log-times,
    and the event times for reference.
    """
    if isinstance(loss, AFTLoss):
        return {"time": event_times(bounds), "scale": np.array([scale_of(type(loss), bounds, raw, sample_weight)])}
    times, hazard = cumulative_hazard(bounds, np.exp(raw[0]), sample_weight)
    return {"time": times, "cumulative_hazard": hazard}


def out_of_fold_scores(
    samples: Samples, folds: Folds, models: FoldModels, factor: float = 1.0
) -> tuple[Samples, FloatArray] | None:
    """Return the held-out samples of all folds with their raw scores, of shape (n_outputs, n); None without scores.

    Parameters
    ----------
    samples, folds, models
        The cross-validation.
    factor : float, default=1.0
        Factor of all trees.
    """
    parts = []
    for training, part in zip(models.trainings, models.held_out, strict=True):
        added = part.added_scores(training.ensemble)
        if added is None:
            return None
        parts.append(training.ensemble.intercept[:, None] + factor * added)
    return samples.targets(np.concatenate([indices for _, indices in folds])), np.concatenate(parts, axis=1)


def out_of_fold_baseline(
    samples: Samples, folds: Folds, models: FoldModels, loss: Loss, factor: float
) -> tuple[dict[str, FloatArray], list[float]]:
    """Return the baseline of a survival model, and the shift of its scores, from scores that are not overfitted.

    The shift of an AFT model corrects the mean of the locations, which depends on the scale where times are censored.
    Both are empty for other losses.

    Parameters
    ----------
    samples, folds, models, loss
        The cross-validation.
    factor : float
        Factor of all trees.
    """
    found = out_of_fold_scores(samples, folds, models, factor) if loss.task == "survival" else None
    return ({}, []) if found is None else baseline_and_shift(loss, found[0], found[1])


def baseline_and_shift(loss: Loss, held_out: Samples, raw: FloatArray) -> tuple[dict[str, FloatArray], list[float]]:
    """Return the baseline of a survival model, and the shift of its scores; see :func:`out_of_fold_baseline`.

    Parameters
    ----------
    loss : Loss
        The loss.
    held_out : Samples
        Samples that the scores were not fitted to.
    raw : ndarray of shape (1, n)
        Their raw scores.
    """
    if not np.isfinite(held_out.y[:, 1]).any():
        return {}, []
    if isinstance(loss, AFTLoss):
        shift, scale = location_and_scale(type(loss), held_out.y, held_out.weight, raw[0])
        return {"time": event_times(held_out.y), "scale": np.array([scale])}, [shift]
    return baseline_of(loss, held_out.y, raw, held_out.weight), []


def step(times: FloatArray, values: FloatArray, at: FloatArray, before: float) -> FloatArray:
    """Return a right-continuous step function, which has a value before its first step, at some times."""
    return np.concatenate([[before], values])[np.searchsorted(times, at, side="right")]


def concordance(bounds: FloatArray, risk: FloatArray, sample_weight: FloatArray | None = None) -> float:
    """Return Harrell's concordance index.

    It is the share of the comparable pairs in which the sample with the earlier event has the higher risk; equal risks
    count half. A pair is comparable if the event of one is known to come before that of the other. Weights of a pair
    multiply. NaN if no pair is comparable.

    Parameters
    ----------
    bounds : ndarray of shape (n, 2)
        Bounds of the times.
    risk : ndarray of shape (n,)
        Higher for earlier events.
    sample_weight : ndarray of shape (n,), optional
        Sample weights.
    """
    lower, upper = bounds.T
    w = np.ones(len(lower)) if sample_weight is None else sample_weight.astype(np.float64)
    # Others in descending order of their lower bounds; among equal ones, those observed at that time last.
    exact = lower == upper
    others = np.lexsort((exact, -lower))
    first = np.flatnonzero(np.isfinite(upper))
    key = -lower[others]
    later = np.searchsorted(key, -upper[first])  # others whose lower bound is higher
    ties = np.concatenate([[0], np.cumsum(~exact[others])])
    later = later + ties[np.searchsorted(key, -upper[first], side="right")] - ties[later]
    first, later = first[np.argsort(later, kind="stable")], np.sort(later, kind="stable")
    known, mass = np.zeros(0), np.zeros(0)
    agree = total = 0.0
    for start in range(0, len(others), _BLOCK):
        block = others[start : start + _BLOCK]
        last = start + len(block) == len(others)
        here = slice(np.searchsorted(later, start), len(later) if last else np.searchsorted(later, start + _BLOCK))
        own, own_weight = risk[first[here]], w[first[here]]
        inside = (np.arange(len(block)) < (later[here] - start)[:, None]) * w[block]
        cumulative = np.concatenate([[0.0], np.cumsum(mass)])
        lower_risk = cumulative[np.searchsorted(known, own)] + (inside * (risk[block] < own[:, None])).sum(axis=1)
        equal = cumulative[np.searchsorted(known, own, side="right")] - cumulative[np.searchsorted(known, own)]
        equal += (inside * (risk[block] == own[:, None])).sum(axis=1)
        agree += float(own_weight @ (lower_risk + equal / 2))
        total += float(own_weight @ (cumulative[-1] + inside.sum(axis=1)))
        known = np.concatenate([known, risk[block]])
        order = np.argsort(known, kind="stable")
        known, mass = known[order], np.concatenate([mass, w[block]])[order]
    return agree / total if total else float("nan")


def brier_times(bounds: FloatArray) -> FloatArray:
    """Return the times at which a Brier score is integrated: a grid of quantiles of the event times."""
    times = bounds[np.isfinite(bounds[:, 1]), 1]
    return np.unique(np.quantile(times, np.linspace(*_INNER, _GRID)))


def integrated_brier_score(
    bounds: FloatArray, survival: FloatArray, times: FloatArray, sample_weight: FloatArray | None = None
) -> float:
    """Return the mean of the Brier score over a range of times, weighted by the inverse probability of censoring.

    Parameters
    ----------
    bounds : ndarray of shape (n, 2)
        Observed or right-censored times.
    survival : ndarray of shape (n, n_times)
        Predicted probabilities to survive the times.
    times : ndarray of shape (n_times,)
        In ascending order.
    sample_weight : ndarray of shape (n,), optional
        Sample weights.
    """
    time, event = bounds[:, 0], np.isfinite(bounds[:, 1])
    w = np.ones(len(time)) if sample_weight is None else sample_weight
    # Kaplan-Meier's estimate of not being censored; at a tie, events come before censoring.
    order = np.lexsort((~event, time))
    at_risk = np.cumsum(w[order][::-1])[::-1]
    uncensored = np.cumprod(1 - np.where(event[order], 0, w[order] / at_risk))
    ranks = np.empty(len(order), dtype=np.intp)
    ranks[order] = np.arange(len(order))
    tiny = np.finfo(np.float64).eps
    at_event = np.maximum(np.concatenate([[1.0], uncensored])[ranks], tiny)
    at_time = np.maximum(step(time[order], uncensored, times, 1.0), tiny)
    dead = (time[:, None] <= times) & event[:, None]
    errors = np.where(dead, survival**2 / at_event[:, None], 0.0)
    errors += np.where(time[:, None] > times, (1 - survival) ** 2 / at_time, 0.0)
    scores = w @ errors / w.sum()
    return (
        float(integrate.trapezoid(scores, times) / (times[-1] - times[0])) if len(times) > 1 else float(scores.mean())
    )


def location_and_scale(
    cls: type[AFTLoss], bounds: FloatArray, sample_weight: FloatArray | None, offset: FloatArray | None = None
) -> tuple[float, float]:
    """Return location and scale of log-times, or of their differences from offsets, by maximum likelihood."""
    known = np.isfinite(bounds) & (bounds > 0)
    raw = np.zeros(len(bounds)) if offset is None else offset
    logs = np.log(bounds[known]) - np.repeat(raw[:, None], 2, axis=1)[known]
    start = [float(np.median(logs)), float(np.log(np.clip(logs.std(), *_SCALES)))]

    def mean_loss(parameters: FloatArray) -> float:
        return cls(float(np.exp(parameters[1]))).mean(bounds, raw[None] + parameters[0], sample_weight)

    limits = [(logs.min() - 50, logs.max() + 50), tuple(np.log(_SCALES))]
    location, scale = optimize.minimize(mean_loss, start, method="L-BFGS-B", bounds=limits).x
    return float(location), float(np.exp(scale))


def scale_of(cls: type[AFTLoss], bounds: FloatArray, raw: FloatArray, sample_weight: FloatArray | None = None) -> float:
    """Return the scale of log-times around raw scores of shape (1, n), by maximum likelihood."""

    def mean_loss(log_scale: float) -> float:
        return cls(float(np.exp(log_scale))).mean(bounds, raw, sample_weight)

    found = optimize.minimize_scalar(mean_loss, bounds=tuple(np.log(_SCALES)), method="bounded")
    return float(np.exp(found.x))
