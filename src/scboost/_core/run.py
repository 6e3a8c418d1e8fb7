"""Models that grow round by round, monitored on samples that their trees do not see.

Trees are grown on training samples only; held-out samples determine when to stop and how trees are weighted. A
:class:`Run` is one growing ensemble; :func:`grow` advances one or several of them, the models of a cross-validation, in
step, and stops them together.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from scboost._arrays import FloatArray, IntArray
from scboost._core.loop import Boosting, Round, Settings, State, has_changing_metric, initial_state
from scboost._core.losses import Loss
from scboost._core.losses.base import initial_score
from scboost._core.sampling import Draws
from scboost._core.stopping import NOT_STOPPED, Stop, Stopping, StopReason
from scboost._core.training import Training
from scboost._data.samples import Samples
from scboost._engine.ensemble import Ensemble
from scboost._engine.interface import Engine
from scboost._runtime.context import Context
from scboost._runtime.observer import SILENT, Observer
from scboost._runtime.signals import interrupts_held
from scboost._runtime.threads import Threads


class ValidationMetric(Protocol):
    """A metric of raw scores to be minimized in place of the loss."""

    name: str

    def mean(self, y: FloatArray, F: FloatArray, sample_weight: FloatArray | None = None) -> float:
        """Return the metric of raw scores F, of shape (K, n); lower is better."""


class Validation(Protocol):
    """Held-out samples of a run."""

    weight: float
    metric: ValidationMetric | None

    def loss(self, ensemble: Ensemble, F: FloatArray, done: Round) -> float:
        """Return the mean loss after a round; F are the scores of the run's own samples."""


class Run:
    """One ensemble that grows, a round at a time.

    Parameters
    ----------
    samples : Samples
        Training samples; those of weight 0 do not affect the trees, but are scored.
    loss, settings, engine, context
        See :class:`scboost._core.loop.Boosting`.
    make_ensemble : callable
        Returns an empty ensemble with the intercept given.
    n_rounds : int
        Number of rounds in all.
    from_zero : bool, default=False
        Whether to start at the raw score 0 in place of the best constant.
    base : Ensemble, optional
        An ensemble to continue on other samples: the new rounds start from its scores and are added to a copy of it.
    validation : Validation, optional
        Held-out samples.
    resume : Training, optional
        The training to resume.
    """

    def __init__(
        self,
        samples: Samples,
        loss: Loss,
        settings: Settings,
        engine: Engine,
        make_ensemble: Callable[[FloatArray], Ensemble],
        n_rounds: int,
        context: Context,
        *,
        from_zero: bool = False,
        base: Ensemble | None = None,
        validation: Validation | None = None,
        resume: Training | None = None,
    ) -> None:
        self._context = context
        settings = settings if resume is None else resume.settings
        prior: FloatArray = np.zeros(loss.n_outputs)
        if base is not None:
            prior = base.intercept
        elif not from_zero:
            prior = initial_score(loss, samples.y, samples.weight, context.communicator)
        frame = loss.frame(prior)
        start = frame.scores(prior[:, None])[:, 0]
        if resume is None:
            state = initial_state(samples.weight, settings, engine, start, len(samples), n_rounds, context)
            self.training = Training(make_ensemble(prior) if base is None else copy.deepcopy(base), state, settings)
            if base is not None:
                state.F[:] = frame.scores(base.scores(samples.X, context.n_threads))
        else:
            self.training = resume
            if resume.state.projector is not None and not resume.without_scores:
                capacity = n_rounds if settings.memory is None else settings.memory
                resume.state.projector.reserve(capacity, context.storage)
            if resume.grown is not None:
                resume.ensemble.reweight(*resume.grown)
            resume.grown, resume.stop, resume.interrupted = None, NOT_STOPPED, False
            if resume.without_scores:
                state = initial_state(samples.weight, settings, engine, start, len(samples), n_rounds, context)
                _replay(resume, state, samples, has_changing_metric(loss, settings), context)
        self._validation, self._loss, self._weight = validation, frame.loss, samples.weight
        if validation is not None and validation.metric is not None:
            self.training.metric = validation.metric.name
        # Losses that are not separable compare targets: rounding would make ties.
        dtype = engine.dtype if loss.separable else np.float64
        self._y = y = np.asarray(frame.target(samples.y), dtype=dtype)
        draws = None
        if settings.random:
            draws = Draws(samples.keys(context), settings.seed, samples.weight, context)
        state = self.training.state
        self._unit = self.training.settings.eta * frame.unit
        self._rounds = iter(Boosting(state, frame.loss, y, samples.weight, settings, engine, draws, context))

    @property
    def threads(self) -> Threads:
        """Threads of the fit."""
        return self._context.threads

    @property
    def n_values(self) -> int:
        """Number of feature values of the training samples."""
        return int(self.training.state.F.shape[1]) * self.training.ensemble.n_features

    @property
    def validation_weight(self) -> float:
        """Total weight of the held-out samples."""
        return 0.0 if self._validation is None else self._validation.weight

    def step(self) -> bool:
        """Do one round; False if nothing is left to learn."""
        training = self.training
        if self._context.communicator.size > 1:
            self._context.communicator.round = training.state.round + 1
        with np.errstate(over="ignore", invalid="ignore"):  # the loop checks what comes out
            done = next(self._rounds, None)
            if done is None:
                training.stop = training.state.stop
                return False
            training.ensemble.append(done.learners, self._unit)
            training.record(done)
            if self._validation is not None:
                training.validation_loss.append(self._validation.loss(training.ensemble, training.state.F, done))
        return True

    def measure_loss(self) -> None:
        """Measure the mean training loss after the last round, which the next round would."""
        context, F = self._context, self.training.state.F
        with np.errstate(over="ignore", invalid="ignore"):
            loss = self._loss.mean(self._y, F, self._weight, context.communicator, context.threads)
        self.training.last_loss = loss

    def drop_diverged_round(self) -> None:
        """Undo the last round if its scores have no finite loss: the one before had."""
        training, state = self.training, self.training.state
        if not state.round or len(training.loss) < state.round:  # it was undone before
            return
        self.measure_loss()
        if not np.isfinite(training.last_loss):
            training.stop = state.stop = Stop(StopReason.LOSS_NOT_FINITE, training.last_loss)
            training.ensemble.truncate(training.ensemble.n_rounds - 1)
            training.forget_last()


def _replay(training: Training, state: State, samples: Samples, changing_metric: bool, context: Context) -> None:
    """Bring a fresh state to where a training stands, by the same operations on every sample."""
    ensemble, eta = training.ensemble, training.settings.eta
    X = ensemble.prepare(samples.X, context.n_threads)
    scratch = np.empty_like(state.F)
    for t in range(ensemble.n_rounds):
        predictions = ensemble.contributions(X, t, t + 1, n_jobs=context.n_threads)[0].astype(state.F.dtype)
        projector = state.projector
        if projector is not None:
            if not changing_metric:  # inner products of remembered vectors are rounded in the order they came in
                sums = context.communicator.sum_all(*projector.local_sums(predictions, None, context.threads))
                projector.project(predictions, None, sums, scratch, context)
            projector.append(list(predictions), context.threads)
        state.F += eta * predictions
    state.round, state.first_loss = ensemble.n_rounds, training.loss[0] if training.loss else np.nan
    training.state, training.without_scores = state, False


class OutOfFold:
    """Held-out samples among the samples of a run, of weight 0 there: every round scores them at no cost.

    Parameters
    ----------
    samples : Samples
        All samples, with their own weights.
    held_out : ndarray of shape (m,)
        Indices of the held-out samples.
    loss : Loss
        The loss.
    context : Context
        Context of the fit.
    contributions : list, optional
        Where to put the predictions of each round's learners for these samples, of shape (K, m).
    metric : ValidationMetric, optional
        Used in place of the loss.
    """

    def __init__(
        self,
        samples: Samples,
        held_out: IntArray,
        loss: Loss,
        context: Context,
        contributions: list[FloatArray] | None = None,
        metric: ValidationMetric | None = None,
    ) -> None:
        self._held_out, self._loss, self._contributions, self.metric = held_out, loss, contributions, metric
        self._context = context
        own = samples.targets(held_out)
        self._y, self._weight = own.y.astype(np.float64), own.weight
        self.weight = own.total_weight(context.communicator)
        self._F: FloatArray | None = None
        self.best_scores: FloatArray | None = None
        passes, kernel = context.threads.passes, vars(type(loss)).get("kernel")
        self._compiled = getattr(passes, f"{kernel}_loss") if passes is not None and kernel and metric is None else None
        self._weight64 = None if own.weight is None else np.ascontiguousarray(own.weight, dtype=np.float64)
        self._y32: FloatArray | None = None

    def keep(self) -> None:
        """Keep the scores of the newest round, of shape (K, m), as the best so far."""
        if self._F is not None:
            self.best_scores = self._F.take(self._held_out, axis=1)

    def pointwise_loss(self, ensemble: Ensemble) -> FloatArray:
        """Return the loss of each sample at the scores kept, of shape (m,)."""
        if self.best_scores is None:
            raise ValueError("no scores were kept")
        frame = self._loss.frame(ensemble.intercept)
        y, scores = frame.target(self._y), self.best_scores.astype(np.float64)
        return frame.loss.derivatives(y, scores, self._weight)[0]

    def added_scores(self, ensemble: Ensemble) -> FloatArray | None:
        """Return the raw scores kept without the intercept, of shape (K, m); None if there are none."""
        if self.best_scores is None:
            return None
        frame, start = self._loss.frame(ensemble.intercept), ensemble.intercept[:, None]
        return frame.unit[:, None] * (self.best_scores.astype(np.float64) - frame.scores(start))

    def loss(self, ensemble: Ensemble, F: FloatArray, done: Round) -> float:
        """Return the mean loss; see :class:`Validation`."""
        if self._contributions is not None:
            h = [np.take(learner.predictions(), self._held_out) for learner in done.learners]
            self._contributions.append(np.stack(h))
        self._F = F
        if self._compiled is not None and F.dtype == np.float32 and self._y.ndim == 1:
            if self._y32 is None:
                target = self._loss.frame(ensemble.intercept).target(self._y)
                self._y32 = np.ascontiguousarray(target, dtype=np.float32)
            total, weight = self._compiled(self._y32, F, self._held_out, self._weight64)
            return float(total / weight)
        frame, scores = self._loss.frame(ensemble.intercept), F.take(self._held_out, axis=1)
        if self.metric is not None:  # which may depend on more than differences
            return self.metric.mean(self._y, frame.raw(scores), self._weight)
        y = frame.target(self._y)
        return frame.loss.mean(y, scores, self._weight, self._context.communicator, self._context.threads)


class ValidationSet:
    """Validation samples of their own, scored by the newest trees of each round.

    Parameters
    ----------
    samples : Samples
        The validation samples.
    loss : Loss
        The loss.
    context : Context
        Context of the fit.
    metric : ValidationMetric, optional
        Used in place of the loss.
    """

    def __init__(self, samples: Samples, loss: Loss, context: Context, metric: ValidationMetric | None = None) -> None:
        self._samples, self._loss, self._context, self.metric = samples, loss, context, metric
        self.weight = samples.total_weight(context.communicator)
        self._X: Any = None
        self._n_rounds = 0

    def loss(self, ensemble: Ensemble, F: FloatArray, done: Round) -> float:
        """Return the mean loss; see :class:`Validation`."""
        del F, done
        context, samples = self._context, self._samples
        if self._X is None:
            self._X = ensemble.prepare(samples.X, context.n_threads)
            self._scores = np.repeat(ensemble.intercept[:, None], len(samples), axis=1)
        H = ensemble.contributions(self._X, first=self._n_rounds, n_jobs=context.n_threads)
        for weights, h in zip(ensemble.weights[self._n_rounds :], H, strict=True):
            self._scores += weights[:, None] * h  # one by one: a resumed fit must round as an uninterrupted one
        self._n_rounds = ensemble.n_rounds
        if self.metric is not None:
            return self.metric.mean(samples.y, self._scores, samples.weight)
        return self._loss.mean(samples.y, self._scores, samples.weight, context.communicator, context.threads)


def grow(
    runs: Sequence[Run],
    n_rounds: int,
    *,
    stopping: Stopping | None = None,
    observer: Observer = SILENT,
    on_best: Callable[[], None] | None = None,
) -> list[float]:
    """Advance runs in step until the number of rounds is reached, nothing is left to learn or validation stops them.

    Parameters
    ----------
    runs : sequence of Run
        Models that grow together; usually one.
    n_rounds : int
        Number of rounds in all, those of a resumed training included.
    stopping : Stopping, optional
        When to stop on the held-out samples of all runs together.
    observer : Observer, optional
        Notified of every round.
    on_best : callable, optional
        Called after a round that has the lowest validation loss so far.

    Returns
    -------
    list of float
        Mean loss on the held-out samples of all runs together after each round; empty without such samples. After an
        interrupt from the keyboard, the trainings keep the rounds finished so far.
    """
    first = runs[0].training
    pooled = list(first.validation_loss) if len(runs) == 1 else []
    lowest, stop = min(pooled, default=np.inf), NOT_STOPPED
    with interrupts_held() as interrupted:
        while max(run.training.state.round for run in runs) < n_rounds and not stop:
            if stopping and stopping.reached(pooled):
                n_worse = len(pooled) - 1 - int(np.argmin(pooled))
                stop = Stop(StopReason.NO_IMPROVEMENT, n_worse, first.metric or "loss")
                break
            observer.begin_round()
            alive = runs[0].threads.map_models(Run.step, runs, runs[0].n_values)
            if not any(alive):
                break
            validated = [run for run in runs if run.training.validation_loss]
            if validated:
                pooled.append(pooled_loss(validated))
                if pooled[-1] < lowest:
                    lowest = pooled[-1]
                    if on_best is not None:
                        on_best()
            if observer.reads_log:
                runs[0].measure_loss()
            stop = _observed_stop(first, observer, pooled[-1] if pooled else None, interrupted)
    if interrupted():
        first.interrupted, stop = True, Stop(StopReason.INTERRUPTED)
    observer.end()
    for run in runs:
        training = run.training
        training.stop = stop or training.stop
        run.drop_diverged_round()
        training.grown = training.ensemble.weights.copy(), training.ensemble.intercept.copy()
    return pooled


def pooled_loss(runs: Sequence[Run]) -> float:
    """Return the loss on the held-out samples of all runs together after their last rounds."""
    total = sum(run.training.validation_loss[-1] * run.validation_weight for run in runs)
    return total / sum(run.validation_weight for run in runs)


def _observed_stop(
    training: Training, observer: Observer, validation_loss: float | None, interrupted: Callable[[], bool]
) -> Stop:
    """Report a round; return why to stop after it, if a callback or an interrupt asks for it."""
    stop = NOT_STOPPED
    try:
        if observer.end_round(training, validation_loss):
            stop = Stop(StopReason.CALLBACK)
    except KeyboardInterrupt:
        training.interrupted = True
    if training.interrupted or interrupted():
        training.interrupted = True
        stop = Stop(StopReason.INTERRUPTED)
    return stop
