"""Conformal state of a model from its out-of-fold predictions."""

from __future__ import annotations

import copy

import numpy as np

from scboost._arrays import FloatArray, IntArray
from scboost._core.conformal import Conformal, Intervals, LabelSets, LocalScale, Outputs, counted
from scboost._core.links import IDENTITY
from scboost._core.losses import Loss
from scboost._core.selection import FoldModels
from scboost._core.weighting import Weights
from scboost._data.folds import Folds
from scboost._data.samples import Samples

# Share of a calibration set that determines the local scale of the residuals where the model has none.
_SCALE_SHARE = 3
# Few samples, fitted almost exactly, have residuals that say too little: the factor would be too small.
_SMALLEST_FACTOR, _FEWEST_FOR_FACTOR = 0.85, 300


def out_of_fold_conformal(
    samples: Samples,
    folds: Folds,
    models: FoldModels,
    loss: Loss,
    weights: Weights | None,
    factor: float,
    shift: FloatArray,
    n_threads: int,
    *,
    averaged: bool,
) -> Conformal | None:
    """Return the conformal state that the out-of-fold predictions of fold models give.

    Parameters
    ----------
    samples : Samples
        All samples.
    folds : Folds
        Their folds.
    models : FoldModels
        The models, before their trees are re-weighted.
    loss : Loss
        The loss.
    weights : Weights or None
        Weights of the rounds, learned out of fold.
    factor : float
        Factor of all trees, estimated out of fold.
    shift : ndarray of shape (n_outputs,)
        Shift of the raw scores, estimated out of fold.
    n_threads : int
        Number of threads.
    averaged : bool
        Whether intervals are those of the average of the fold models, whose errors are smaller than those of one.
    """
    raw = [factor * added + start + shift[:, None] for start, added in raw_scores_by_fold(models, folds, weights)]
    scores = np.concatenate(raw, axis=1)
    if not np.isfinite(scores).all():
        return None
    indices = np.concatenate([held_out for _, held_out in folds])
    repeats = np.bincount(indices, minlength=len(samples))[indices]
    held_out = samples.targets(indices)
    weight = counted(held_out.weight, repeats)
    if loss.n_classes:
        return LabelSets.of(loss.link.inverse(scores), held_out.y.astype(np.intp), weight)
    fold = np.repeat(np.arange(len(folds)), [len(part) for _, part in folds])
    members: FloatArray | None = None
    if averaged and loss.n_outputs == 1:
        predictions = []
        for training in models.trainings:
            member = copy.copy(training.ensemble)
            member.reweight(member.weights * factor, member.intercept)
            own = member.scores(samples.X, n_threads).astype(np.float64) + shift[:, None]
            predictions.append(loss.link.inverse(own)[indices])
        members = np.stack(predictions)
    return _intervals(loss, scores, held_out.y, weight, fold, members)


def raw_scores_by_fold(
    models: FoldModels, folds: Folds, weights: Weights | None
) -> list[tuple[FloatArray, FloatArray]]:
    """Return intercept and contribution of the trees to the held-out samples of each fold, of shape (n_outputs, m)."""
    scores: list[tuple[FloatArray, FloatArray]] = []
    parts = zip(models.trainings, models.held_out, models.contributions, folds, strict=True)
    for training, part, rounds, (_, held_out) in parts:
        ensemble = training.ensemble
        start: FloatArray = ensemble.intercept[:, None]
        added: FloatArray = np.zeros((ensemble.n_outputs, len(held_out)))
        if rounds:  # where they are kept, the scores of the lowest loss may be those of another round
            factors = ensemble.weights * (1.0 if weights is None else weights.weights[: ensemble.n_rounds, None])
            for factor, h in zip(factors, rounds, strict=False):
                added += factor[:, None] * h
            start = start if weights is None else start + np.reshape(weights.intercept, (-1, 1))
        else:
            kept = part.added_scores(ensemble)
            added = added if kept is None else kept
        scores.append((start, added))
    return scores


def _intervals(
    loss: Loss,
    scores: FloatArray,
    y: FloatArray,
    weight: FloatArray | None,
    fold: IntArray,
    members: FloatArray | None,
) -> Intervals:
    """Sort residuals in units of a local scale, which is estimated on the other folds."""
    outputs, y = regression_outputs(loss, scores), y.astype(np.float64)
    scale, unit = _local_scale(outputs.driver, y - outputs.centre, weight, fold)
    if members is not None and (len(y) if weight is None else weight.sum()) >= _FEWEST_FOR_FACTOR:
        unit = unit / _factor_of_average((y - members) / unit, fold, weight)
    return Intervals.of(outputs, y, weight, scale, unit)


def _local_scale(
    driver: FloatArray, residuals: FloatArray, weight: FloatArray | None, fold: IntArray
) -> tuple[LocalScale | None, FloatArray]:
    """Return the local scale, and its value for each sample if the samples of other folds estimate it."""
    unit = np.ones(len(residuals))
    scale = LocalScale.of(driver, residuals, weight)
    if scale is None:
        return None, unit
    n_folds = int(fold.max()) + 1
    if n_folds == 1:  # the number of rounds was selected on one fold
        fold, n_folds = np.arange(len(residuals)) % 2, 2
    for i in range(n_folds):
        own = fold == i
        other = LocalScale.of(driver[~own], residuals[~own], None if weight is None else weight[~own])
        if other is None:
            return None, np.ones(len(residuals))
        unit[own] = other.at(driver[own])
    return scale, unit


def _factor_of_average(errors: FloatArray, fold: IntArray, weight: FloatArray | None) -> float:
    """Estimate the size of the errors of the average of the fold models, relative to those of a single one.

    The errors of all models for a sample are averaged. Only one of the models was not fitted to it. The residuals of
    the others are too small, but similar in sign and order to their errors for new samples: each is replaced by the
    out-of-fold residual of the same rank. As models also fit the noise of their samples, residuals agree less than
    errors for new samples: the result is rather too small, and 1 too large. Their geometric mean is returned.

    Parameters
    ----------
    errors : ndarray of shape (n_folds, m)
        Residuals of each fold model, in units of the local scale.
    fold : ndarray of shape (m,)
        Fold of each sample: the model that was not fitted to it.
    weight : ndarray of shape (m,) or None
        Weights.
    """
    weight = np.ones(len(fold)) if weight is None else weight
    held_out = np.abs(errors[fold, np.arange(len(fold))])
    size = float(np.average(held_out, weights=weight))
    if size == 0:
        return 1.0
    as_new = errors.copy()
    for k, residuals in enumerate(as_new):
        fitted = fold != k
        sizes = _of_same_rank(np.abs(residuals[fitted]), weight[fitted], held_out, weight)
        residuals[fitted] = np.sign(residuals[fitted]) * sizes
    share = float(np.average(np.abs(as_new.mean(axis=0)), weights=weight)) / size
    return float(np.clip(np.sqrt(share), _SMALLEST_FACTOR, 1.0))


def _of_same_rank(values: FloatArray, weight: FloatArray, others: FloatArray, other_weight: FloatArray) -> FloatArray:
    """Return for each value the one of the same rank among others, both weighted."""

    def ranked(v: FloatArray, w: FloatArray) -> tuple[IntArray, FloatArray]:
        order = np.argsort(v, kind="stable")
        return order, (np.cumsum(w[order]) - w[order] / 2) / w.sum()

    (order, ranks), (other_order, other_ranks) = ranked(values, weight), ranked(others, other_weight)
    found = np.empty(len(values))
    found[order] = np.interp(ranks, other_ranks, others[other_order])
    return found


def calibrated(
    loss: Loss, scores: FloatArray, y: FloatArray, sample_weight: FloatArray | None, before: Conformal | None
) -> Conformal:
    """Return the conformal state that a calibration set gives.

    A local scale of the model is kept: it does not depend on the calibration set. Otherwise it is estimated on some of
    the calibration samples and the scores on the others, so that the coverage guarantee is exact.

    Parameters
    ----------
    loss : Loss
        The loss.
    scores : ndarray of shape (n_outputs, n)
        Raw scores of the calibration samples.
    y : ndarray of shape (n,)
        Their targets.
    sample_weight : ndarray of shape (n,) or None
        Their weights.
    before : Intervals, LabelSets or None
        The state so far.
    """
    weight = counted(sample_weight)
    if loss.n_classes:
        return LabelSets.of(loss.link.inverse(scores), y.astype(np.intp), weight)
    outputs, y = regression_outputs(loss, scores), y.astype(np.float64)
    if isinstance(before, Intervals):
        scale = before.scale
    else:
        first = np.zeros(len(y), dtype=bool)
        first[np.random.default_rng(0).permutation(len(y))[: len(y) // _SCALE_SHARE]] = True
        part = None if weight is None else weight[first]
        scale = LocalScale.of(outputs.driver[first], (y - outputs.centre)[first], part)
        if scale is not None:
            outputs, y = outputs.take(~first), y[~first]
            weight = None if sample_weight is None else counted(sample_weight[~first])
    return Intervals.of(outputs, y, weight, scale, 1.0 if scale is None else scale.at(outputs.driver))


def regression_outputs(loss: Loss, scores: FloatArray) -> Outputs:
    """Return the predictions of raw scores of shape (n_outputs, n)."""
    predictions = loss.link.inverse(np.asarray(scores, dtype=np.float64))
    values = predictions[None] if predictions.ndim == 1 else predictions.T
    quantiles = [loss.output(k).residual_quantile for k in range(loss.n_outputs)]
    # Errors of a mean or a median on the scale of y lie on both sides; those of other predictions need not.
    symmetric = loss.n_outputs == 1 and loss.link == IDENTITY
    return Outputs(values, [0.5 if q is None else q for q in quantiles], symmetric)
