"""From a plan and rows to a fitted ensemble: held-out rows, folds, training, weighting."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from scboost._arrays import FloatArray, IntArray
from scboost._core.loop import Settings
from scboost._core.losses import Loss
from scboost._core.run import Observer, OutOfFold, Run, Validation, ValidationMetric, ValidationSet, grow
from scboost._core.samples import Samples
from scboost._core.sampling import content_folds, content_sample
from scboost._core.statistics import standard_errors, weighted_quantile
from scboost._core.stopping import ComparedStopping, EarlyStopping, StopReason
from scboost._core.training import Training
from scboost._engine.ensemble import Ensemble
from scboost._engine.interface import Engine, TreeOptions
from scboost._runtime.communicator import Communicator
from scboost._runtime.context import Context
from scboost.estimators.parameters import FOLDS, Plan, Weighting
from scboost.weighting import Weights, learn_scale, learn_weights

# A model on all rows bears more rounds than its larger sample alone accounts for.
_MORE_ROUNDS = 1.12

# Columns with at most so many times the mean gain are left out in a trial; more of them if that is a success,
# fewer if not.
_GAIN, _LOW_GAIN, _HIGH_GAIN = 1.0, 0.5, 2.0
# A trial is a success if held-out losses fall by so many standard errors, and ends after so many rounds behind.
_SURE = 2.0
_LAG = 10
# By so many standard errors shallow trees must be better.
_SURE_OF_DEPTH = 1.5

_LARGEST_EXCHANGE = 2 * 2**30  # bytes of held-out contributions that workers send each other

MIN_ROWS_TO_CHOOSE = 20
"""Fewest rows that differ on which the number of rounds can be chosen."""

Folds = list[tuple[IntArray, IntArray]]
"""Numbers of the training and of the held-out rows, fold by fold."""


EngineMaker = Callable[[Samples, TreeOptions], Engine]
"""Makes an engine on rows whose trees may use what is offered."""


class NoModelYet(KeyboardInterrupt):
    """An interrupt from the keyboard before there is a model that could be kept."""


@dataclass
class Fitted:
    """What a fit leaves behind.

    Attributes
    ----------
    training : Training
        The ensemble with the log of its rounds.
    n_rounds : int
        Number of rounds in use.
    weights : Weights or None
        Result of the weighting.
    choosing_log : dict of ndarrays
        Loss on held-out rows after each round of the fold models, if they chose the number of rounds.
    """

    training: Training
    n_rounds: int
    weights: Weights | None = None
    choosing_log: dict[str, FloatArray] = field(default_factory=dict)


@dataclass
class FoldModels:
    """Models of a cross-validation, grown in step.

    Attributes
    ----------
    trainings : list of Training
        One a fold, cut at the best round.
    watches : list of OutOfFold
        Their held-out rows.
    contributions : list of lists of ndarrays
        What each round adds to the scores of these, where that is kept.
    pooled : list of float
        Loss on all held-out rows after each round.
    n_rounds : int
        The best number of rounds, or that of all.
    """

    trainings: list[Training]
    watches: list[OutOfFold]
    contributions: list[list[FloatArray]]
    pooled: list[float]
    n_rounds: int

    def pooled_of(self, n_folds: int) -> list[float]:
        """Return the loss on the held-out rows of the first folds after each round."""
        if n_folds == len(self.trainings):
            return self.pooled
        parts = [(t.validation_loss, w.weight) for t, w in zip(self.trainings, self.watches, strict=True)][:n_folds]
        seen = [(losses, weight) for losses, weight in parts if losses]  # a model that ended early keeps its last loss
        padded = [[losses[min(i, len(losses) - 1)] for i in range(len(self.pooled))] for losses, _ in seen]
        return np.average(padded, axis=0, weights=[weight for _, weight in seen]).tolist() if seen else []


class Trainer:
    """Grows models by a plan.

    Parameters
    ----------
    plan : Plan
        What to do.
    loss : Loss
        The loss.
    make_engine : callable
        Returns an engine on the rows given whose trees may use what is offered.
    make_ensemble : callable
        Returns an empty ensemble with the intercept given.
    observe : callable
        ``observe(n_rounds, label, kept)`` returns the observer of the next models; ``kept`` tells whether the first of
        them is part of the result.
    context : Context
        Context of the fit.
    metric : ValidationMetric, optional
        Metric of validation samples and held-out folds; the loss by default.
    """

    def __init__(
        self,
        plan: Plan,
        loss: Loss,
        make_engine: EngineMaker,
        make_ensemble: Callable[[FloatArray], Ensemble],
        observe: Callable[[int, str, bool], Observer],
        context: Context,
        metric: ValidationMetric | None = None,
    ) -> None:
        self._metric, self._context = metric, context
        self._plan, self._loss, self._observe = plan, loss, observe
        self._make_engine, self._make_ensemble = make_engine, make_ensemble

    def fit(
        self, rows: Samples, validation: Samples | None, *, resume: Training | None = None, base: Ensemble | None = None
    ) -> Fitted:
        """Grow one model, on top of another if there is a base; validation rows stop it and weigh its trees."""
        plan = self._plan
        watched = None if validation is None else ValidationSet(validation, self._loss, self._context, self._metric)
        offer = plan.options if resume is None else resume.options
        engine = self._make_engine(rows, offer)
        run = self._run(rows, engine, plan.n_rounds, validation=watched, resume=resume, base=base)
        run.training.options = offer
        rows.forget_keys()
        training = self._grow(run, plan.n_rounds, "scboost")
        ensemble = training.ensemble
        fitted = Fitted(training, ensemble.n_rounds)
        if plan.weighting is not None and validation is not None and not training.interrupted:
            fitted.weights = self._weigh(ensemble, validation, plan.weighting)
        elif plan.stopping is not None and training.validation_loss:
            earlier = ensemble.n_rounds - len(training.validation_loss)
            fitted.n_rounds = earlier + int(np.argmin(training.validation_loss)) + 1
            weights = ensemble.weights.copy()
            weights[fitted.n_rounds :] = 0
            ensemble.reweight(weights, ensemble.intercept)
        return fitted

    def fit_folds(self, rows: Samples, folds: Folds) -> Fitted:
        """Grow a model for each fold, in step; let their held-out rows choose the rounds and weigh them.

        Then either one model is grown on all rows, or the fold models are kept and averaged, or both, and averaged.
        """
        plan, weighting = self._plan, self._plan.weighting
        keeps = weighting is not None and weighting.source == "fold_average"
        offer = plan.options
        engine = self._make_engine(rows, offer)
        label = "scboost, folds" if keeps or len(folds) > 1 else "scboost, rounds"
        forks = [engine.fork() for _ in folds]
        only_folds = keeps and not plan.joins_all_rows
        models = self._grow_folds(rows, folds, forks, plan.choosing, label, kept=only_folds)
        if len(folds) > 1:
            models, chosen = self._choose_offer(rows, folds, models, offer)
            engine = engine if chosen is offer else self._make_engine(rows, chosen)
            offer = chosen
        trainings, n_rounds, pooled = models.trainings, models.n_rounds, models.pooled
        weights = None
        if weighting is not None and n_rounds:
            weights = self._weigh_folds(rows, folds, models, weighting)
        log = {"round": np.arange(1, len(pooled) + 1), "validation_loss": np.array(pooled)} if plan.choosing else {}
        if only_folds:
            training = _averaged(trainings, weights, offer)
            return Fitted(training, training.ensemble.n_rounds, weights, log)
        settings, rounds = plan.settings, max(n_rounds, 1)
        if plan.choosing is not None:
            rate = plan.shallow_rate if offer.max_depth in plan.depths else 1.0
            settings = replace(settings, eta=rate * settings.eta)
            share = sum(rows.only(kept).total_weight(self._context.communicator) for kept, _ in folds) / (
                len(folds) * rows.total_weight(self._context.communicator)
            )
            rounds = min(max(round(n_rounds * plan.choosing_speed / rate * _MORE_ROUNDS / share), 1), plan.n_rounds)
        if plan.spread is not None:
            settings, rounds = replace(settings, eta=settings.eta * rounds / plan.spread), plan.spread
        run = self._run(rows, engine.fork(), rounds, settings=settings)
        run.training.options = offer
        if not self._loss.supports_weighting and plan.choosing is not None:
            run.training.shift = self._held_out_shift(rows, folds, models).tolist()
        elif (keeps or weights is None) and plan.choosing is not None:
            run.training.scale = [self._held_out_scale(rows, folds, models)]
        training = self._grow(run, rounds, "scboost, all rows")
        if keeps:
            training = _joined(training, _averaged(trainings, weights, offer))
        elif weights is not None and not training.interrupted:
            stretched = np.interp(np.linspace(0, n_rounds - 1, rounds), np.arange(n_rounds), weights.weights)
            ensemble = training.ensemble
            factors = stretched[: ensemble.n_rounds, None]
            ensemble.reweight(ensemble.weights * factors, ensemble.intercept + weights.intercept)
        return Fitted(training, training.ensemble.n_rounds, weights, log)

    def _grow_folds(
        self,
        rows: Samples,
        folds: Folds,
        engines: list[Engine],
        stopping: EarlyStopping | None,
        label: str,
        *,
        kept: bool,
    ) -> FoldModels:
        """Grow a model for each fold, in step, and cut them at the best round."""
        plan = self._plan
        most = plan.n_rounds // plan.choosing_speed
        keeps_contributions = plan.weighting is not None or not self._loss.supports_weighting
        contributions: list[list[FloatArray]] = [[] for _ in folds]
        watches = [
            OutOfFold(rows, held_out, self._loss, self._context, added if keeps_contributions else None, self._metric)
            for added, (_, held_out) in zip(contributions, folds, strict=True)
        ]
        runs = [
            self._run(
                rows.only(seen),
                engine,
                most,
                settings=replace(
                    plan.settings, seed=plan.settings.seed + 1 + i, eta=plan.settings.eta * plan.choosing_speed
                ),
                validation=watches[i],
            )
            for i, (engine, (seen, _)) in enumerate(zip(engines, folds, strict=True))
        ]
        observer = self._observe(most, label, kept)

        def keep_best() -> None:
            for watch in watches:
                watch.keep()

        pooled = grow(runs, most, stopping=stopping, observer=observer, on_best=keep_best)
        trainings = [run.training for run in runs]
        if trainings[0].interrupted:
            raise NoModelYet("interrupted while fold models were grown: there is no model yet")
        n_rounds = int(np.argmin(pooled)) + 1 if plan.choosing is not None and pooled else len(pooled)
        for training in trainings:
            training.ensemble.truncate(n_rounds)
        return FoldModels(trainings, watches, contributions, pooled, n_rounds)

    def _choose_offer(
        self, rows: Samples, folds: Folds, models: FoldModels, offer: TreeOptions
    ) -> tuple[FoldModels, TreeOptions]:
        """Try another offer than that of the models; return the best models, and what to offer a model on all rows."""
        plan = self._plan
        if plan.tries_groups and _all_have_trees(models):
            groups = replace(offer, subset_splits=True)
            tried = self._try(rows, folds, groups, "scboost, categories", models, models)
            if tried is not None:
                models, offer = tried, groups
        deep = models
        for depth in plan.depths if _all_have_trees(models) else ():
            shallow = replace(offer, max_depth=depth)
            tried = self._try(
                rows, folds, shallow, "scboost, depth", models, deep, sure=_SURE_OF_DEPTH, pace=plan.shallow_pace
            )
            if tried is None:
                break
            models, offer = tried, shallow
        if plan.selects_columns and _all_have_trees(models):
            return self._select_columns(rows, folds, models, offer)
        return models, offer

    def _select_columns(
        self, rows: Samples, folds: Folds, models: FoldModels, offer: TreeOptions
    ) -> tuple[FoldModels, TreeOptions]:
        """Try fewer columns.

        The columns of a fold's model are chosen by their gains in the model of that fold, which has not seen the rows
        that tell whether the choice was good.
        """
        gains = np.array([training.ensemble.gains() for training in models.trainings])
        gains /= gains.mean(axis=1, keepdims=True)

        def without(least: float, rival: FoldModels) -> tuple[FoldModels, TreeOptions] | None:
            """Try the columns with a gain above the least."""
            parts = (*gains, gains.mean(axis=0))
            *of_folds, of_all = (tuple(np.flatnonzero(part > least).tolist()) for part in parts)
            if len(of_all) == gains.shape[1] or not all((*of_folds, of_all)):
                return None
            chosen = replace(offer, features=of_all)
            tried = self._try(rows, folds, chosen, "scboost, columns", rival, models, columns=of_folds)
            return None if tried is None else (tried, chosen)

        middle = without(_GAIN, models)
        if middle is None:
            return without(_LOW_GAIN, models) or (models, offer)
        return without(_HIGH_GAIN, middle[0]) or middle

    def _try(
        self,
        rows: Samples,
        folds: Folds,
        offer: TreeOptions,
        label: str,
        rival: FoldModels,
        before: FoldModels,
        *,
        columns: Sequence[tuple[int, ...]] = (),
        sure: float = _SURE,
        pace: int = 1,
    ) -> FoldModels | None:
        """Grow fold models again; None unless they beat the rival, and surely those before, on held-out rows.

        Each has the offer, or the columns given for its fold. `sure` is a number of standard errors, and `pace` the
        number of rounds that go as far as one of the rival. Where folds are many, some must beat the rival before all
        are grown; but trials of columns are short unless they succeed.
        """
        plan, heat = self._plan, len(folds) if columns else min(FOLDS, len(folds))
        if columns:
            engines = [self._make_engine(rows, replace(offer, features=part)) for part in columns]
        else:
            engines = [self._make_engine(rows, offer)] * len(folds)
        for n in dict.fromkeys((heat, len(folds))):
            theirs = rival.pooled_of(n)
            stopping = ComparedStopping(
                **vars(plan.choosing), reference=tuple(np.repeat(theirs, pace).tolist()), n_worse=_LAG
            )
            forks = [engine.fork() for engine in engines[:n]]
            tried = self._grow_folds(rows, folds[:n], forks, stopping, label, kept=False)
            if min(tried.pooled, default=np.inf) >= min(theirs, default=np.inf):
                return None
        return tried if _certainty(rows, folds, before, tried, self._context) > sure else None

    def _run(
        self,
        rows: Samples,
        engine: Engine,
        n_rounds: int,
        *,
        settings: Settings | None = None,
        validation: Validation | None = None,
        resume: Training | None = None,
        base: Ensemble | None = None,
    ) -> Run:
        return Run(
            rows,
            self._loss,
            settings or self._plan.settings,
            engine,
            self._make_ensemble,
            n_rounds,
            self._context,
            from_zero=self._plan.from_zero,
            base=base,
            validation=validation,
            resume=resume,
        )

    def _grow(self, run: Run, n_rounds: int, label: str) -> Training:
        grow([run], n_rounds, stopping=self._plan.stopping, observer=self._observe(n_rounds, label, True))
        training = run.training
        if not training.interrupted and (training.shift or training.scale):
            ensemble = training.ensemble
            ensemble.reweight(ensemble.weights * (training.scale or 1.0), ensemble.intercept + (training.shift or 0.0))
        _warn_of_trouble(training)
        return training

    def _weigh(self, ensemble: Ensemble, rows: Samples, weighting: Weighting) -> Weights | None:
        """Covariance-regularized weights of an ensemble, learnt on rows it has not seen."""
        if ensemble.n_rounds == 0:
            return None
        H = ensemble.contributions(rows.X, n_jobs=self._context.n_threads)
        simplex = weighting.method == "simplex"
        A = H if simplex else H * ensemble.weights[:, :, None].astype(H.dtype)
        found = self._learn(A.transpose(2, 1, 0), rows, ensemble.intercept, weighting)
        factors = np.repeat(found.weights[:, None], ensemble.n_outputs, axis=1)
        weights = factors if simplex else factors * ensemble.weights
        ensemble.reweight(weights, ensemble.intercept if simplex else ensemble.intercept + found.intercept)
        return found

    def _weigh_folds(
        self,
        rows: Samples,
        folds: Folds,
        models: FoldModels,
        weighting: Weighting,
    ) -> Weights:
        """Weights by round from rows that each fold's model has not seen."""
        K, n_rounds = self._loss.n_outputs, models.n_rounds
        A = np.zeros((n_rounds, K, len(rows)), dtype=np.float32)
        start = np.zeros((len(rows), K))
        seen = np.zeros(len(rows), dtype=bool)
        for training, rounds, (_, held_out) in zip(models.trainings, models.contributions, folds, strict=True):
            for t, h in enumerate(rounds[:n_rounds]):
                A[t][:, held_out] = training.settings.eta * h
            start[held_out] = training.ensemble.intercept
            seen[held_out] = True
        A = A.transpose(2, 1, 0)
        if not seen.all():
            A, start, rows = A[seen], start[seen], rows.targets(np.flatnonzero(seen))
        return self._learn(A, rows, start, weighting)

    def _held_out_shift(self, rows: Samples, folds: Folds, models: FoldModels) -> FloatArray:
        """Return what the held-out rows of all folds ask to add to the scores of the chosen round."""
        scores = [
            training.ensemble.intercept[:, None]
            + training.settings.eta
            * np.sum(rounds[: models.n_rounds] or np.zeros((1, self._loss.n_outputs, len(numbers))), axis=0)
            for training, rounds, (_, numbers) in zip(models.trainings, models.contributions, folds, strict=True)
        ]
        held_out = rows.targets(np.concatenate([numbers for _, numbers in folds]))
        F = np.concatenate(scores, axis=1)
        communicator = self._context.communicator
        shifts = np.zeros(len(F))
        for k in range(len(F)):
            quantile = self._loss.output(k).residual_quantile
            if quantile is not None:
                shifts[k] = weighted_quantile(held_out.y - F[k], held_out.weight, quantile, communicator)
        return shifts

    def _held_out_scale(self, rows: Samples, folds: Folds, models: FoldModels) -> float:
        """Return the factor of all rounds that the held-out rows of all folds ask for at the chosen round."""
        start, added = [], []
        for training, watch in zip(models.trainings, models.watches, strict=True):
            if watch.best_scores is None:
                return 1.0
            intercept = training.ensemble.intercept[:, None]
            scores = watch.best_scores.astype(np.float64)
            added.append(scores if self._loss.translation_invariant else scores - intercept)
            start.append(np.broadcast_to(intercept, scores.shape))
        held_out = rows.targets(np.concatenate([numbers for _, numbers in folds]))
        return learn_scale(
            np.concatenate(added, axis=1),
            held_out.y,
            loss=self._loss,
            start=np.concatenate(start, axis=1),
            sample_weight=held_out.weight,
            communicator=self._context.communicator,
        )

    def _learn(self, A: FloatArray, rows: Samples, start: FloatArray, weighting: Weighting) -> Weights:
        if self._context.communicator.size > 1:
            A, rows, start = _of_all_workers(A, rows, start, self._context.communicator)
        found = learn_weights(
            A,
            rows.y,
            loss=self._loss,
            start=start,
            sample_weight=rows.weight,
            method=weighting.method,
            covariance_penalty=weighting.covariance_penalty,
            pull=weighting.pull,
        )
        if not found.converged:
            warnings.warn(
                f"The weights are {found.gap:.2g} from the optimum after {found.n_iterations} iterations.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return found


def _all_have_trees(models: FoldModels) -> bool:
    return all(training.ensemble.gains().any() for training in models.trainings)


def _certainty(rows: Samples, folds: Folds, before: FoldModels, after: FoldModels, context: Context) -> float:
    """By how many standard errors held-out losses fall from one set of models to another; 0 if a fold has no trees."""
    if any(watch.best_scores is None for models in (before, after) for watch in models.watches):
        return 0.0
    numbers = np.concatenate([held_out for _, held_out in folds])
    losses, other = (
        np.concatenate([w.pointwise_loss(t.ensemble) for w, t in zip(m.watches, m.trainings, strict=True)])
        for m in (before, after)
    )
    return standard_errors(
        losses - other, rows.keys(context)[numbers], rows.targets(numbers).weight, context.communicator
    )


def _of_all_workers(
    A: FloatArray, rows: Samples, start: FloatArray, communicator: Communicator
) -> tuple[FloatArray, Samples, FloatArray]:
    """Held-out rows of all workers, on every worker: all solve the same small problem."""
    size = float(communicator.sum(np.array(float(A.nbytes))))
    if size > _LARGEST_EXCHANGE:
        raise ValueError(
            f"weighting needs what {A.shape[-1]} rounds add to {rows.count(communicator)} held-out rows on every "
            f"worker, {size / 2**30:.1f} GiB, more than {_LARGEST_EXCHANGE / 2**30:.0f}; hold out fewer rows."
        )
    start = np.broadcast_to(start, A.shape[:-1])
    parts = communicator.gather((A, rows.y, rows.weight, start))
    weights = None if parts[0][2] is None else np.concatenate([part[2] for part in parts])
    joined = Samples(None, np.concatenate([part[1] for part in parts]), weights)
    return np.concatenate([part[0] for part in parts]), joined, np.concatenate([part[3] for part in parts])


def _averaged(trainings: list[Training], weights: Weights | None, offer: TreeOptions) -> Training:
    """Add up the fold models, each with its share of the weights."""
    for training in trainings:
        own = training.ensemble
        factors = np.ones(own.n_rounds) if weights is None else weights.weights[: own.n_rounds]
        shift = 0.0 if weights is None else weights.intercept
        own.reweight(own.weights * factors[:, None] / len(trainings), (own.intercept + shift) / len(trainings))
    first = trainings[0]
    for training in trainings[1:]:
        first.ensemble.extend(training.ensemble)
    used = tuple(np.flatnonzero(first.ensemble.gains()).tolist()) if offer.features else ()
    first.options = replace(offer, features=used)
    return first


def _joined(whole: Training, averaged: Training) -> Training:
    """Average a model on all rows with the average of fold models, which stands alone if the model was interrupted."""
    if whole.interrupted:
        averaged.interrupted, averaged.stop = True, whole.stop
        return averaged
    for training in (whole, averaged):
        ensemble = training.ensemble
        ensemble.reweight(ensemble.weights / 2, ensemble.intercept / 2)
    whole.ensemble.extend(averaged.ensemble)
    if averaged.options.features:
        whole.options = replace(whole.options, features=tuple(np.flatnonzero(whole.ensemble.gains()).tolist()))
    return whole


def _warn_of_trouble(training: Training) -> None:
    if training.ensemble.n_rounds == 0 and training.stop.reason is StopReason.NO_SPLIT:
        warnings.warn(
            f"The model has no trees and predicts a constant: {training.stop.message}.",
            ConvergenceWarning,
            stacklevel=5,
        )
    elif training.stop.diverged:
        warnings.warn(
            f"The fit diverged after {training.ensemble.n_rounds} rounds, which are kept: {training.stop.message}; use "
            f"a learning_rate below {training.settings.eta:g}.",
            ConvergenceWarning,
            stacklevel=5,
        )
    elif len(training.loss) > 1 and training.loss[-1] > training.loss[0] + abs(training.loss[0]):
        warnings.warn(
            f"The training loss rose from {training.loss[0]:.3g} to {training.loss[-1]:.3g}: the fit diverges; use a "
            f"learning_rate below {training.settings.eta:g}.",
            ConvergenceWarning,
            stacklevel=5,
        )


def hold_out(
    rows: Samples, loss: Loss, plan: Plan, share: float, labels: Any, context: Context
) -> tuple[Samples, Samples]:
    """Split rows in two by their content, class by class: to train on, and to stop and weigh on.

    Equal rows stay together. Messages name the classes by labels.
    """
    origin = f"validation_fraction={share} of {rows.count(context.communicator)} rows"
    advice = "Give X_val and y_val, or use neither early_stopping nor weighting."
    distinct = _distinct_rows(rows, loss, context)
    if loss.n_classes and min(distinct) < 2:
        raise ValueError(
            f"{origin} cannot be held out: class {labels.tolist()[np.argmin(distinct)]!r} has 1 row, not counting "
            f"repetitions, and at least 2 are needed. {advice}"
        )
    size = rows.effective_size(context.communicator)
    if min(np.ceil(share * size), np.floor((1 - share) * size)) < max(loss.n_classes, 1) or min(distinct) < 2:
        raise ValueError(f"{origin} cannot be held out: these, or those that are left, are too few. {advice}")
    held_out = content_sample(
        rows.keys(context), share, _class_numbers(rows, loss), plan.settings.seed, context.communicator
    )
    return rows.take(np.flatnonzero(~held_out)), rows.take(np.flatnonzero(held_out))


def check_classes(validation: Samples, loss: Loss, plan: Plan, communicator: Communicator) -> None:
    """Weights of trees that are learnt without a class would know nothing of it."""
    counts = np.bincount(validation.y.astype(np.intp), minlength=loss.n_classes) if loss.n_classes else np.zeros(0)
    missing = np.flatnonzero(communicator.sum(counts.astype(np.float64)) == 0)
    if len(missing) and plan.weighting is not None:
        raise ValueError(
            f"weighting={plan.weighting.method!r} needs every class among the validation rows, but X_val and y_val "
            f"have only {loss.n_classes - len(missing)} of the {loss.n_classes} classes; give others."
        )


def can_choose_rounds(rows: Samples, loss: Loss, context: Context) -> bool:
    """Whether there are rows enough to hold some out: 20 that differ, and two of every class."""
    distinct = _distinct_rows(rows, loss, context)
    return min(distinct) >= 2 and sum(distinct) >= MIN_ROWS_TO_CHOOSE


def make_folds(
    rows: Samples,
    loss: Loss,
    plan: Plan,
    cv: Any,
    groups: Any,
    context: Context,
    numbers: IntArray | None = None,
) -> Folds:
    """Cut rows into folds by their content, or as the splitter says that ``cv`` is.

    Parameters
    ----------
    rows : Samples
        All rows.
    loss : Loss
        Whose classes are spread over all folds.
    plan : Plan
        Number of folds, and how many of them are used.
    cv : int, "auto", splitter or iterable of (train, test)
        The parameter of that name.
    groups : array-like of shape (n,) or None
        For splitters that need them.
    context : Context
        Context of the fit.
    numbers : ndarray of shape (n,), optional
        Numbers of the rows by which an iterable counts them; 0, 1, 2, ... if not given.
    """
    if not isinstance(cv, str | int | np.integer):
        if hasattr(cv, "split"):
            splits = cv.split(np.zeros((len(rows), 1)), rows.y, groups)
        elif numbers is None:
            splits = cv
        else:
            splits = [[np.flatnonzero(np.isin(numbers, part)) for part in split] for split in cv]
        return [(np.asarray(kept), np.asarray(held_out)) for kept, held_out in splits]
    if groups is not None:
        raise ValueError(f"groups need a splitter that knows them, such as GroupKFold, got cv={cv!r}.")
    smallest = min(_distinct_rows(rows, loss, context))
    if cv == "auto" and smallest < plan.n_folds:
        plan = replace(plan, n_folds=min(plan.n_folds, FOLDS), n_folds_used=min(plan.n_folds_used, FOLDS))
    if smallest < (plan.n_folds if plan.n_folds_used > 1 and plan.weighting is not None else 2):
        kind = "rows of the rarest class" if loss.n_classes else "rows"
        raise ValueError(f"cv={plan.n_folds} is more than the {smallest} {kind} that differ from each other.")
    fold = content_folds(
        rows.keys(context), plan.n_folds, _class_numbers(rows, loss), plan.settings.seed, context.communicator
    )
    sizes = context.communicator.sum(np.bincount(fold, minlength=plan.n_folds).astype(np.float64))
    used = np.flatnonzero(sizes[: plan.n_folds_used])  # few rows leave folds without any
    return [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in used]


def _class_numbers(rows: Samples, loss: Loss) -> IntArray | None:
    return rows.y.astype(np.intp) if loss.n_classes else None


def _distinct_rows(rows: Samples, loss: Loss, context: Context) -> list[int]:
    """Count the rows that differ, by class if there are classes; each worker counts its own."""
    keys = rows.keys(context)
    groups = [keys[rows.y == c] for c in range(loss.n_classes)] if loss.n_classes else [keys]
    counts = np.array([len(np.unique(group)) for group in groups], dtype=np.float64)
    return [int(n) for n in context.communicator.sum(counts)]
