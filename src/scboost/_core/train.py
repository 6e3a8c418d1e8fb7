"""From a specification and data to a trained ensemble."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray, IntArray
from scboost._core import autotune
from scboost._core.averaging import average, join, refit
from scboost._core.conformal import Conformal
from scboost._core.distributions import out_of_fold_correction
from scboost._core.out_of_fold import out_of_fold_conformal, raw_scores_by_fold
from scboost._core.run import Run, ValidationSet, grow
from scboost._core.selection import CrossValidation, FoldModels
from scboost._core.spec import FitSpec, RoundSelection
from scboost._core.stopping import StopReason
from scboost._core.survival import baseline_and_shift, out_of_fold_baseline
from scboost._core.training import Training, validation_column
from scboost._core.tree_weights import out_of_fold_scale, out_of_fold_shift, weigh_ensemble, weigh_folds
from scboost._core.weighting import Weights
from scboost._data.folds import Folds, class_counts, count_distinct, hold_out, make_folds
from scboost._data.samples import Samples
from scboost._engine.ensemble import Ensemble
from scboost._engine.factory import EngineFactory
from scboost._engine.interface import Engine
from scboost._runtime.context import Context
from scboost._runtime.observer import Observer
from scboost._runtime.signals import interrupts_raised

# A model on all samples tolerates more rounds than its larger training set alone accounts for.
_MORE_ROUNDS = 1.12


@dataclass
class TrainingData:
    """The data of a fit.

    Attributes
    ----------
    samples : Samples
        Training samples.
    validation : Samples or None
        Validation set, if one is given.
    classes : ndarray or None
        Class labels, for messages; None for regression.
    groups : ndarray of shape (n,) or None
        Group labels for a splitter.
    positions : ndarray of int or None
        Position among the samples of each sample as the user counts them, -1 for those left out; None if none was.
    base : Ensemble or None
        A finished model to continue.
    resume : Training or None
        An unfinished training to resume.
    """

    samples: Samples
    validation: Samples | None = None
    classes: npt.NDArray[Any] | None = None
    groups: npt.NDArray[Any] | None = None
    positions: IntArray | None = None
    base: Ensemble | None = None
    resume: Training | None = None


@dataclass
class Trained:
    """The result of a fit.

    Attributes
    ----------
    training : Training
        The ensemble with the log of its rounds.
    n_rounds : int
        Number of rounds in use.
    weights : Weights or None
        Result of the weighting.
    selection_log : dict of ndarrays
        Loss on held-out samples after each round of the fold models, if they selected the number of rounds.
    """

    training: Training
    n_rounds: int
    weights: Weights | None = None
    selection_log: dict[str, FloatArray] = field(default_factory=dict)


def can_select_rounds(samples: Samples, n_classes: int, context: Context) -> bool:
    """Whether there are enough samples for cross-validation: 20 distinct ones, and two of every class."""
    distinct = count_distinct(samples, n_classes, context)
    return min(distinct) >= 2 and sum(distinct) >= autotune.MIN_SAMPLES_TO_SELECT


def train(spec: FitSpec, data: TrainingData, context: Context) -> Trained:
    """Train an ensemble.

    Parameters
    ----------
    spec : FitSpec
        What to do.
    data : TrainingData
        The data.
    context : Context
        Communicator, threads, storage and observer.

    Returns
    -------
    Trained
        The ensemble with the log of its rounds.
    """
    return _train_on_folds(spec, data, context) if spec.strategy.grows_folds else _train_one(spec, data, context)


def _train_one(spec: FitSpec, data: TrainingData, context: Context) -> Trained:
    """Grow one model; a validation set stops it and weights its trees."""
    strategy, resume = spec.strategy, data.resume
    options = spec.options if resume is None else resume.options
    with interrupts_raised():
        samples, validation = _with_validation(spec, data, context)
        run = Run(
            samples,
            spec.loss,
            spec.settings,
            EngineFactory(spec.engine, context).make(samples.X, samples.weight, options),
            spec.new_ensemble,
            strategy.n_rounds,
            context,
            from_zero=spec.from_zero,
            base=data.base,
            validation=None if validation is None else ValidationSet(validation, spec.loss, context, spec.metric),
            resume=resume,
        )
        run.training.options = options
        samples.forget_keys()
    training = _grow(spec, run, strategy.n_rounds, "scboost", context)
    join(training, alone=training.interrupted or training.stop.is_premature)
    ensemble = training.ensemble
    trained = Trained(training, ensemble.n_rounds)
    if strategy.weighting is not None and validation is not None and not training.interrupted:
        try:
            with interrupts_raised():
                trained.weights = weigh_ensemble(ensemble, validation, spec.loss, strategy.weighting, context)
        except KeyboardInterrupt:  # the rounds are finished
            training.interrupt()
    elif strategy.early_stopping is not None and training.validation_loss:
        earlier = ensemble.n_rounds - len(training.validation_loss)
        trained.n_rounds = earlier + int(np.argmin(training.validation_loss)) + 1
        weights = ensemble.weights.copy()
        weights[trained.n_rounds :] = 0
        ensemble.reweight(weights, ensemble.intercept)
    return trained


def _with_validation(spec: FitSpec, data: TrainingData, context: Context) -> tuple[Samples, Samples | None]:
    """Return training samples and validation set, held out if it is needed and not given."""
    n_classes, strategy = spec.loss.n_classes, spec.strategy
    if data.validation is None and strategy.needs_validation:
        fraction, seed = spec.folds.validation_fraction, spec.settings.seed
        return hold_out(data.samples, fraction, n_classes, data.classes, seed, context)
    if data.validation is not None and strategy.weighting is not None:
        missing = np.sum(class_counts(data.validation, n_classes, context.communicator) == 0)
        if missing:  # tree weights learned without a class would know nothing of it
            raise ValueError(
                f"weighting={strategy.weighting.method!r} needs every class in the validation set, but X_val and "
                f"y_val have only {n_classes - missing} of the {n_classes} classes; give others."
            )
    return data.samples, data.validation


def _train_on_folds(spec: FitSpec, data: TrainingData, context: Context) -> Trained:
    """Grow a model for each fold, in step, to select the rounds and to learn tree weights out of fold.

    Then a model is grown on all samples, or the fold models are kept and averaged, or both: then the leaf values of the
    fold models are refitted on all samples, and all models are averaged.
    """
    samples, strategy, weighting = data.samples, spec.strategy, spec.strategy.weighting
    only_folds = strategy.keeps_weighted_folds and not strategy.adds_full_model
    with interrupts_raised():
        folds = folds_of(spec, data, context)
        validation = CrossValidation(spec, samples, folds, context)
        models = validation.grow(kept=only_folds)
        options = models.candidate.options
    weights = None
    if weighting is not None and models.n_rounds:
        try:
            with interrupts_raised():
                weights = weigh_folds(samples, folds, models, spec.loss, weighting, context)
        except KeyboardInterrupt:
            if not only_folds:
                raise
            models.trainings[0].interrupt()  # their rounds are finished
    log = _selection_log(models, spec) if spec.selection is not None else {}
    weighted: list[FloatArray] = []  # raw scores of held-out samples, for the baseline of a survival model
    if spec.loss.task == "survival" and weights is not None:
        weighted = [start + added for start, added in raw_scores_by_fold(models, folds, weights)]
    if only_folds:
        conformal = _conformal(spec, samples, folds, models, weights, context)
        training = models.trainings[0]
        training.options, training.companions = options, average(models.trainings, weights)
        join(training, alone=True)
        training.conformal = conformal
        _set_baseline(training, spec, samples, folds, weighted)
        return Trained(training, training.ensemble.n_rounds, weights, log)
    engine = validation.engine(options)
    training, n_rounds = _train_on_all(spec, samples, folds, models, weights, engine, context)
    if training.companions is not None:
        if weighted and training.scale and not training.interrupted:
            parts, n = zip(raw_scores_by_fold(models, folds, None), weighted, strict=True), len(folds)
            weighted = [(start + training.scale[0] * added + n * other) / (n + 1) for (start, added), other in parts]
        join(training, alone=training.interrupted or training.stop.is_premature)
    elif weights is not None and not training.interrupted:
        _apply_weights(training.ensemble, weights, models.n_rounds, n_rounds)
    _set_baseline(training, spec, samples, folds, weighted)
    return Trained(training, training.ensemble.n_rounds, weights, log)


def _averages(spec: FitSpec, folds: Folds) -> bool:
    """Whether fold models are averaged with the model on all samples."""
    if spec.strategy.keeps_weighted_folds:
        return True
    return spec.selection is not None and spec.selection.averages and len(folds) > 1


def folds_of(spec: FitSpec, data: TrainingData, context: Context) -> Folds:
    """Return the folds of a fit."""
    return make_folds(
        data.samples,
        spec.folds.cv,
        spec.folds.n_folds,
        spec.folds.n_used,
        n_classes=spec.loss.n_classes,
        seed=spec.settings.seed,
        all_needed=spec.strategy.weighting is not None,
        groups=data.groups,
        positions=data.positions,
        fallback=autotune.FOLDS,
        context=context,
    )


def _selection_log(models: FoldModels, spec: FitSpec) -> dict[str, npt.NDArray[Any]]:
    metric = "" if spec.metric is None else spec.metric.name
    return {"round": np.array(range(1, len(models.losses) + 1)), **validation_column(models.losses, metric)}


def _train_on_all(
    spec: FitSpec,
    samples: Samples,
    folds: Folds,
    models: FoldModels,
    weights: Weights | None,
    engine: Engine,
    context: Context,
) -> tuple[Training, int]:
    """Grow a model on all samples with the number of rounds that the fold models selected; return that, too."""
    candidate, n_rounds = models.candidate, max(models.n_rounds, 1)
    averages = _averages(spec, folds)
    settings = candidate.settings(spec.settings)
    strategy, selection, communicator = spec.strategy, spec.selection, context.communicator
    if strategy.corrects_quantiles:
        n_rounds = strategy.n_rounds
    if selection is not None and averages and not strategy.keeps_weighted_folds:  # as the fold models
        settings = replace(settings, eta=settings.eta * selection.speedup)
        rounds = _rounds_on_all(samples, folds, models.n_rounds, selection, context) / selection.speedup
        n_rounds = max(round(rounds), 1)
    elif selection is not None:
        rounds = _rounds_on_all(samples, folds, models.n_rounds, selection, context) / candidate.rate
        n_rounds = min(max(round(rounds), 1), strategy.n_rounds)
        if selection.scales_rate:  # larger steps in place of more rounds than there may be
            settings = replace(settings, eta=settings.eta * candidate.rate * max(rounds / strategy.n_rounds, 1.0))
    if strategy.n_rounds_given is not None:
        given = strategy.n_rounds_given
        settings, n_rounds = replace(settings, eta=settings.eta * n_rounds / given), given
    with interrupts_raised():
        run = Run(samples, spec.loss, settings, engine, spec.new_ensemble, n_rounds, context, from_zero=spec.from_zero)
        run.training.options = candidate.options
        if not spec.loss.supports_weighting:
            run.training.shift = out_of_fold_shift(samples, folds, models, spec.loss, communicator).tolist()
        elif selection is not None and spec.loss.task == "distribution":
            run.training.scale, run.training.shift = out_of_fold_correction(samples, folds, models, spec.loss)
        elif selection is not None and (averages or weights is None):
            run.training.scale = out_of_fold_scale(samples, folds, models, spec.loss, communicator)
            if weights is None:
                run.training.baseline, run.training.shift = out_of_fold_baseline(
                    samples, folds, models, spec.loss, run.training.scale[0]
                )
        run.training.conformal = _conformal(spec, samples, folds, models, weights, context, run.training)
    if averages:
        refitted = refit(models, spec, samples, engine, context)
        interrupted = refitted[-1].interrupted
        scale = run.training.scale[0] if run.training.scale else 1.0
        run.training.companions = average(models.trainings if interrupted else refitted, weights, scale)
        if interrupted:
            run.training.interrupt()
            return run.training, n_rounds
    return _grow(spec, run, n_rounds, "scboost, all samples", context), n_rounds


def _conformal(
    spec: FitSpec,
    samples: Samples,
    folds: Folds,
    models: FoldModels,
    weights: Weights | None,
    context: Context,
    training: Training | None = None,
) -> Conformal | None:
    """Return the conformal state of a model, corrected as a training's out-of-fold estimates say."""
    # Each of several workers has predictions of its own samples only; censored times have no residuals.
    if context.communicator.size > 1 or spec.loss.task != "regression":
        return None
    scale, shift = (None, None) if training is None else (training.scale, training.shift)
    # A splitter may hold out groups or times, whose common effects the residuals of the other models do not show.
    averaged = spec.selection is not None and spec.selection.averages and isinstance(spec.folds.cv, str | Integral)
    return out_of_fold_conformal(
        samples,
        folds,
        models,
        spec.loss,
        weights,
        factor=scale[0] if scale and weights is None else 1.0,
        shift=np.array(shift or np.zeros(spec.loss.n_outputs)),
        n_threads=context.n_threads,
        averaged=averaged and len(folds) > 1,
    )


def _rounds_on_all(samples: Samples, folds: Folds, selected: int, selection: RoundSelection, context: Context) -> float:
    """Return the number of rounds on all samples that corresponds to the number selected on folds."""
    communicator = context.communicator
    train_weight = sum(samples.only(train).total_weight(communicator) for train, _ in folds)
    share = train_weight / (len(folds) * samples.total_weight(communicator))
    return max(selected * selection.speedup * _MORE_ROUNDS / share, 1.0)


def _grow(spec: FitSpec, run: Run, n_rounds: int, label: str, context: Context) -> Training:
    """Grow a model that is part of the result."""
    context.observer.begin(n_rounds, label, kept=True)
    grow([run], n_rounds, stopping=spec.strategy.early_stopping, observer=context.observer)
    training = run.training
    if not training.interrupted and (training.shift or training.scale):
        ensemble = training.ensemble
        ensemble.reweight(ensemble.weights * (training.scale or 1.0), ensemble.intercept + (training.shift or 0.0))
    _warn_if_diverged(training, context.observer)
    return training


def _apply_weights(ensemble: Ensemble, weights: Weights, n_selected: int, n_rounds: int) -> None:
    """Multiply tree weights by those learned out of fold, interpolated to the number of rounds on all samples."""
    positions = np.linspace(0, n_selected - 1, n_rounds)
    stretched = np.interp(positions, np.arange(n_selected), weights.weights)
    factors = stretched[: ensemble.n_rounds, None]
    ensemble.reweight(ensemble.weights * factors, ensemble.intercept + weights.intercept)


def _set_baseline(training: Training, spec: FitSpec, samples: Samples, folds: Folds, raw: list[FloatArray]) -> None:
    """Estimate the baseline of a survival model with weighted trees from its out-of-fold raw scores, fold by fold."""
    if not raw:
        return
    held_out = samples.targets(np.concatenate([indices for _, indices in folds]))
    training.baseline, shift = baseline_and_shift(spec.loss, held_out, np.concatenate(raw, axis=1))
    if shift:
        training.ensemble.reweight(training.ensemble.weights, training.ensemble.intercept + shift)


def _warn_if_diverged(training: Training, observer: Observer) -> None:
    message = ""
    rate = training.settings.eta
    if training.ensemble.n_rounds == 0 and training.stop.reason is StopReason.NO_SPLIT:
        message = (
            f"The model has no trees and predicts a constant: {training.stop.message}. A leaf needs a sum of Hessians "
            'times sample weights of at least min_child_weight; "auto" adapts to the scale of the weights.'
        )
    elif training.stop.diverged:
        message = (
            f"The fit diverged after {training.ensemble.n_rounds} rounds, which are kept: {training.stop.message}; use "
            f"a learning_rate below {rate:g}."
        )
    elif len(training.loss) > 1 and training.loss[-1] > training.loss[0] + abs(training.loss[0]):
        message = (
            f"The training loss rose from {training.loss[0]:.3g} to {training.loss[-1]:.3g}: the fit diverges; use a "
            f"learning_rate below {rate:g}."
        )
    if message:
        observer.warn(message)
