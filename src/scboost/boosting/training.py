"""Training: rounds of the loop, watched on rows that the learners do not see.

One rule holds throughout: learners see training rows only; held-out rows decide when to stop and what the learners
weigh. A :class:`Run` is one ensemble that grows; :func:`grow` takes one or several of them, the models of a
cross-validation, forward in step, and stops them together.
"""

from __future__ import annotations

import copy
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from threadpoolctl import ThreadpoolController

from scboost._arrays import FloatArray, IntArray, Keys, load_kernels, row_threads
from scboost.boosting.content import Draws, row_keys
from scboost.boosting.ensemble import Ensemble
from scboost.boosting.learners import Engine, Offer
from scboost.boosting.loop import (
    ProjectorMaker,
    Round,
    Settings,
    State,
    boost,
    diverged,
    is_curved,
    spectral_projector,
    start,
)
from scboost.boosting.losses import Loss, is_built_in
from scboost.boosting.workers import workers


@dataclass
class Rows:
    """Rows with their targets and weights.

    Attributes
    ----------
    X : matrix or Paged of shape (n, d), or None
        Features; None where they are not needed.
    y : ndarray of shape (n,)
        Targets as the loss takes them.
    weight : ndarray of shape (n,) or None
        Sample weights.
    """

    X: Any
    y: FloatArray
    weight: FloatArray | None
    _keys: Keys | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.y)

    def take(self, chosen: Any) -> Rows:
        """Return some of the rows."""
        return replace(self.targets(chosen), X=self.X[chosen])

    def targets(self, chosen: Any) -> Rows:
        """Return some of the rows without their features."""
        return Rows(None, self.y[chosen], None if self.weight is None else self.weight[chosen])

    def weighted(self, weight: FloatArray | None) -> Rows:
        """Return the same rows with other weights."""
        return Rows(self.X, self.y, weight, self._keys)

    def only(self, chosen: IntArray) -> Rows:
        """Return all rows, of which only the chosen ones have weight."""
        mask = np.zeros(len(self), dtype=np.float32)  # exact in any product
        mask[chosen] = 1
        return self.weighted(mask if self.weight is None else self.weight * mask)

    def total_weight(self) -> float:
        """Return the sum of the weights of the rows of all workers."""
        return float(workers().sum(np.array(float(len(self)) if self.weight is None else self.weight.sum())))

    def count(self) -> int:
        """Return the number of rows of all workers."""
        return int(workers().sum(np.array(float(len(self)))))

    def size(self) -> float:
        """Return how many rows these are on all workers, where a weight counts as that many; at least their number."""
        return max(self.total_weight(), self.count())

    def keys(self) -> Keys:
        """Return a number for each row that depends on its features only, computed once."""
        if self._keys is None:
            self._keys = row_keys(self.X)
        return self._keys

    def forget_keys(self) -> None:
        """Make room; they are computed again if they are asked for again."""
        self._keys = None


@dataclass(frozen=True)
class Stopping:
    """When to stop on held-out rows.

    Attributes
    ----------
    patience : int
        Stop if the last ``patience`` rounds brought no improvement by more than ``tol``.
    tol : float
        Smallest decrease of the validation loss that counts.
    share : float, default=0.0
        Patience in units of the best round so far, where that is more: small steps need more of them.
    """

    patience: int
    tol: float
    share: float = 0.0

    def reached(self, losses: Sequence[float]) -> bool:
        """Whether the losses after each round so far are reason to stop."""
        best, lowest = 0, np.inf
        for i, value in enumerate(losses, start=1):
            if value < lowest - self.tol:
                best = i
            lowest = min(lowest, value)
        return len(losses) - best >= max(self.patience, self.share * best)


@dataclass(frozen=True)
class Race(Stopping):
    """When to stop a model that must do better than another one did.

    Attributes
    ----------
    rival : tuple of float
        Losses of the other model after each round.
    lag : int
        Stop if it did worse than the other one in each of so many rounds.
    """

    rival: tuple[float, ...] = ()
    lag: int = 1

    def reached(self, losses: Sequence[float]) -> bool:
        """Whether the losses after each round so far are reason to stop."""
        compared = list(zip(losses, self.rival, strict=False))[-self.lag :]
        behind = len(compared) == self.lag and all(own > other for own, other in compared)
        return (behind and len(losses) <= len(self.rival)) or super().reached(losses)


@dataclass
class Training:
    """An ensemble with the log of its rounds: what a later fit needs to go on.

    Attributes
    ----------
    ensemble : Ensemble
        The learners.
    state : State
        Where the loop stands.
    settings : Settings
        Settings of the loop, those of the first round for all rounds.
    loss, validation_loss : list of float
        Mean loss before each round on the training rows, and after each round on the validation rows.
    components, energy_kept, energy_removed : list of float
        k, the share of the history's energy in these directions, and the share of the residual's energy that lies in
        their span, each round; means over the outputs.
    stop_reason : str
        Why the loop ended before the rounds asked for; empty if it did not.
    interrupted : bool
        Whether that was an interrupt from the keyboard.
    grown : tuple of (weights, intercept) or None
        Those of the ensemble when the loop ended: what to return to before going on, if it was re-weighted since.
    shift : list of float
        What held-out rows ask to add to the scores of each output when the rounds are done; empty for nothing.
    scale : list of float
        The factor of all learners that held-out rows ask for when the rounds are done; empty for 1.
    offer : Offer
        What the learners may use.
    without_rows : bool
        Whether the state lacks everything that is known of each row, as where rows are spread over workers: it is
        worked out again from the learners before going on.
    """

    ensemble: Ensemble
    state: State
    settings: Settings
    loss: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    components: list[float] = field(default_factory=list)
    energy_kept: list[float] = field(default_factory=list)
    energy_removed: list[float] = field(default_factory=list)
    stop_reason: str = ""
    interrupted: bool = False
    grown: tuple[FloatArray, FloatArray] | None = None
    shift: list[float] = field(default_factory=list)
    scale: list[float] = field(default_factory=list)
    offer: Offer = field(default_factory=Offer)
    without_rows: bool = False

    def record(self, done: Round) -> None:
        """Add a round's numbers to the log."""
        self.loss.append(done.loss)
        parts = done.projections
        n = len(parts) or 1
        self.components.append(sum(p.k for p in parts) / n)
        self.energy_kept.append(sum(p.energy_kept for p in parts) / n)
        self.energy_removed.append(sum(p.share for p in parts) / n)

    def forget_last(self) -> None:
        """Take the last round's numbers from the log."""
        for column in (self.loss, self.validation_loss, self.components, self.energy_kept, self.energy_removed):
            del column[-1:]

    def log(self) -> dict[str, FloatArray]:
        """Return the log as columns of equal length, one entry a round."""
        columns = {
            "round": np.arange(1, len(self.loss) + 1),
            "loss": np.array(self.loss),
            "components": np.array(self.components),
            "energy_kept": np.array(self.energy_kept),
            "energy_removed": np.array(self.energy_removed),
        }
        if self.validation_loss:
            columns["validation_loss"] = np.array(self.validation_loss)
        return columns


class Observer(Protocol):
    """What is told of the rounds of a fit: progress bars, callbacks."""

    def begin_round(self) -> None:
        """Act before a round of all models."""

    def end_round(self, training: Training, validation_loss: float | None) -> bool:
        """Act after a round of all models, of which the first is given; a true answer stops."""

    def end(self) -> None:
        """Act after the last round."""


class Measure(Protocol):
    """What held-out rows are measured by: the loss, or something else to be minimised."""

    def mean(self, y: FloatArray, F: FloatArray, sample_weight: FloatArray | None = None) -> float:
        """Return a number that is the smaller the better the raw scores F, of shape (K, n), are."""


class Watch(Protocol):
    """Held-out rows of a run."""

    weight: float

    def loss(self, ensemble: Ensemble, F: FloatArray, done: Round) -> float:
        """Return the mean loss after a round; F are the scores of the run's own rows."""


class Run:
    """One ensemble that grows, a round at a time.

    Parameters
    ----------
    rows : Rows
        Training rows; those of weight 0 teach nothing, but are scored.
    loss, settings, engine
        See :func:`scboost.boosting.loop.boost`.
    make_ensemble : callable
        Returns an empty ensemble with the intercept given.
    n_rounds : int
        Number of rounds in all.
    from_zero : bool, default=False
        Whether to start at the raw score 0 in place of the best constant.
    base : Ensemble, optional
        An ensemble to go on with on other rows: the new rounds start from its scores and are added to a copy of it.
    make_projector : callable, optional
        Returns the projection; see :func:`scboost.boosting.loop.spectral_projector`.
    watch : Watch, optional
        Held-out rows.
    resume : Training, optional
        The training to go on with.
    """

    def __init__(
        self,
        rows: Rows,
        loss: Loss,
        settings: Settings,
        engine: Engine,
        make_ensemble: Callable[[FloatArray], Ensemble],
        n_rounds: int,
        *,
        from_zero: bool = False,
        base: Ensemble | None = None,
        make_projector: ProjectorMaker = spectral_projector,
        watch: Watch | None = None,
        resume: Training | None = None,
    ) -> None:
        settings = settings if resume is None else resume.settings
        prior: FloatArray = np.zeros(loss.n_outputs)
        if base is not None:
            prior = base.intercept
        elif not from_zero:
            prior = _initial_score(loss, rows)
        # Where only differences matter, the loop works on the centred target: a large mean would cost float32 digits.
        shift = prior[0] if loss.translation_invariant else 0.0
        if resume is None:
            state = start(rows.weight, settings, engine, prior - shift, len(rows), n_rounds, make_projector)
            self.training = Training(make_ensemble(prior) if base is None else copy.deepcopy(base), state, settings)
            if base is not None:
                state.F[:] = base.scores(rows.X, engine.n_threads) - shift
        else:
            self.training = resume
            if resume.state.projector is not None and not resume.without_rows:
                resume.state.projector.reserve(n_rounds if settings.memory is None else settings.memory)
            if resume.grown is not None:
                resume.ensemble.reweight(*resume.grown)
            resume.grown, resume.stop_reason, resume.interrupted = None, "", False
            if resume.without_rows:
                state = start(rows.weight, settings, engine, prior - shift, len(rows), n_rounds, make_projector)
                _replay(resume, state, rows, engine.n_threads, curved=is_curved(loss, settings))
        self._watch, self._loss, self._weight = watch, loss, rows.weight
        self.n_threads = engine.n_threads
        load_kernels(len(rows))
        self._y = y = np.asarray(rows.y - shift if shift else rows.y, dtype=engine.dtype)
        with row_threads(self.n_threads):
            draws = Draws(rows.keys(), settings.seed, rows.weight) if settings.random else None
        self._rounds = boost(self.training.state, loss, y, rows.weight, settings, engine, draws)

    @property
    def held_out_weight(self) -> float:
        """Total weight of the held-out rows."""
        return 0.0 if self._watch is None else self._watch.weight

    def step(self) -> bool:
        """Do one round; False if nothing is left to learn."""
        training = self.training
        if workers().size > 1:
            workers().round = training.state.round + 1
        with np.errstate(over="ignore", invalid="ignore"):  # the loop looks at what comes out
            done = next(self._rounds, None)
            if done is None:
                training.stop_reason = training.state.stop_reason
                return False
            training.ensemble.append(done.learners, training.settings.eta)
            training.record(done)
            if self._watch is not None:
                training.validation_loss.append(self._watch.loss(training.ensemble, training.state.F, done))
        return True

    def drop_diverged_round(self) -> None:
        """Take the last round back if its scores have no finite loss: the one before had."""
        training, state = self.training, self.training.state
        if not state.round or len(training.loss) < state.round:  # it was taken back before
            return
        with np.errstate(over="ignore", invalid="ignore"):
            loss = self._loss.mean(self._y, state.F, self._weight)
        if not np.isfinite(loss):
            training.stop_reason = state.stop_reason = diverged(loss)
            training.ensemble.truncate(training.ensemble.n_rounds - 1)
            training.forget_last()


def _replay(training: Training, state: State, rows: Rows, n_threads: int, *, curved: bool) -> None:
    """Bring a fresh state to where a training stands, by the same operations on every row."""
    ensemble, eta = training.ensemble, training.settings.eta
    X = ensemble.prepare(rows.X, n_threads)
    scratch = np.empty_like(state.F)
    for t in range(ensemble.n_rounds):
        predictions = ensemble.contributions(X, t, t + 1, n_jobs=n_threads)[0].astype(state.F.dtype)
        if state.projector is not None:
            if not curved:  # the products of remembered vectors are kept, and rounded in the order they came in
                state.projector.project(predictions, None, scratch)
            state.projector.append(list(predictions))
        state.F += eta * predictions
    state.round, state.first_loss = ensemble.n_rounds, training.loss[0] if training.loss else np.nan
    training.state, training.without_rows = state, False


def _initial_score(loss: Loss, rows: Rows) -> FloatArray:
    """Best constant score; for a loss that knows nothing of workers, the mean of what each worker's rows ask for."""
    others = workers()
    if others.size == 1 or is_built_in(loss):
        return loss.initial_score(rows.y, rows.weight)
    own = float(len(rows)) if rows.weight is None else float(rows.weight.sum())
    score = loss.initial_score(rows.y, rows.weight)
    return others.sum(own / rows.total_weight() * score if own else np.zeros(loss.n_outputs))


class HeldOut:
    """Held-out rows among the rows of a run, of weight 0 there: every round scores them at no cost.

    Parameters
    ----------
    rows : Rows
        All rows, with their own weights.
    held_out : ndarray of shape (m,)
        Numbers of the rows held out.
    loss : Loss
        The loss.
    contributions : list, optional
        Where to put what each round adds to the scores of these rows, of shape (K, m), before the learning rate.
    measure : Measure, optional
        What takes the place of the loss.
    """

    def __init__(
        self,
        rows: Rows,
        held_out: IntArray,
        loss: Loss,
        contributions: list[FloatArray] | None = None,
        measure: Measure | None = None,
    ) -> None:
        self._chosen, self._loss, self._contributions, self._measure = held_out, loss, contributions, measure
        own = rows.targets(held_out)
        self._y, self._weight, self.weight = own.y.astype(np.float64), own.weight, own.total_weight()
        self._scores: FloatArray | None = None
        self.best_scores: FloatArray | None = None

    def keep(self) -> None:
        """Keep the scores of the newest round, of shape (K, m), as the best so far."""
        self.best_scores = self._scores

    def row_losses(self, ensemble: Ensemble) -> FloatArray:
        """Loss of each row at the scores kept, of shape (m,)."""
        if self.best_scores is None:
            raise ValueError("no scores were kept")
        return self._loss.row_losses(self._y - self._shift(ensemble), self.best_scores.astype(np.float64))

    def _shift(self, ensemble: Ensemble) -> float:
        return float(ensemble.intercept[0]) if self._loss.translation_invariant else 0.0

    def loss(self, ensemble: Ensemble, F: FloatArray, done: Round) -> float:
        """Mean loss; see :class:`Watch`."""
        if self._contributions is not None:
            h = [np.take(learner.predictions(), self._chosen) for learner in done.learners]
            self._contributions.append(np.stack(h))
        shift = self._shift(ensemble)
        self._scores = scores = F.take(self._chosen, axis=1)
        if self._measure is not None:  # which may depend on more than differences
            return self._measure.mean(self._y, scores.astype(np.float64) + shift, self._weight)
        return self._loss.mean(self._y - shift if shift else self._y, scores, self._weight)


class ValidationRows:
    """Held-out rows of their own, scored by the newest trees of each round.

    Parameters
    ----------
    rows : Rows
        The rows.
    loss : Measure
        The loss, or what takes its place.
    n_jobs : int, default=1
        Number of threads that score them; 0 for all.
    """

    def __init__(self, rows: Rows, loss: Measure, n_jobs: int = 1) -> None:
        self._rows, self._loss, self._n_jobs = rows, loss, n_jobs
        self.weight = rows.total_weight()
        self._X: Any = None
        self._n_rounds = 0

    def loss(self, ensemble: Ensemble, F: FloatArray, done: Round) -> float:
        """Mean loss; see :class:`Watch`."""
        del F, done
        if self._X is None:
            self._X = ensemble.prepare(self._rows.X, self._n_jobs)
            self._scores = np.repeat(ensemble.intercept[:, None], len(self._rows), axis=1)
        H = ensemble.contributions(self._X, first=self._n_rounds, n_jobs=self._n_jobs)
        for weights, h in zip(ensemble.weights[self._n_rounds :], H, strict=True):
            self._scores += weights[:, None] * h  # one by one: a resumed fit must round as an uninterrupted one
        self._n_rounds = ensemble.n_rounds
        return self._loss.mean(self._rows.y, self._scores, self._rows.weight)


def grow(
    runs: Sequence[Run],
    n_rounds: int,
    *,
    stopping: Stopping | None = None,
    observer: Observer | None = None,
    on_best: Callable[[], None] | None = None,
) -> list[float]:
    """Take runs forward in step, up to ``n_rounds`` rounds, until nothing is left to learn or held-out rows say stop.

    Parameters
    ----------
    runs : sequence of Run
        Models that grow together; usually one.
    n_rounds : int
        Number of rounds in all, those of a resumed training included.
    stopping : Stopping, optional
        When to stop on the held-out rows of all runs together.
    observer : Observer, optional
        Told of every round.
    on_best : callable, optional
        Called after a round that has the lowest loss on the held-out rows so far.

    Returns
    -------
    list of float
        Mean loss on the held-out rows of all runs together after each round; empty without such rows. After an
        interrupt from the keyboard, the trainings keep the rounds finished so far.
    """
    first = runs[0].training
    pooled = list(first.validation_loss) if len(runs) == 1 else []
    reason = ""
    n_threads = max(run.n_threads for run in runs)
    with single_threaded_blas(), row_threads(n_threads), interrupts_held() as interrupted:
        while max(run.training.state.round for run in runs) < n_rounds and not reason:
            if stopping and stopping.reached(pooled):
                reason = f"validation loss did not improve in {len(pooled) - 1 - int(np.argmin(pooled))} rounds"
                break
            if observer is not None:
                observer.begin_round()
            alive = [run.step() for run in runs]
            if not any(alive):
                break
            held_out = [run for run in runs if run.training.validation_loss]
            if held_out:
                losses = [run.training.validation_loss[-1] for run in held_out]
                pooled.append(float(np.average(losses, weights=[run.held_out_weight for run in held_out])))
                if on_best is not None and pooled[-1] < min(pooled[:-1], default=np.inf):
                    on_best()
            try:
                if observer is not None and observer.end_round(first, pooled[-1] if pooled else None):
                    reason = "a callback asked to stop"
            except KeyboardInterrupt:
                first.interrupted = True
            if first.interrupted or interrupted():
                first.interrupted = True
                reason = "interrupted from the keyboard"
    if observer is not None:
        observer.end()
    for run in runs:
        training = run.training
        training.stop_reason = reason or training.stop_reason
        run.drop_diverged_round()
        training.grown = training.ensemble.weights.copy(), training.ensemble.intercept.copy()
    return pooled


@contextmanager
def interrupts_held() -> Iterator[Callable[[], bool]]:
    """Hold an interrupt from the keyboard back; a second one breaks through. What is given tells whether there was one.

    Half a round would leave scores and histories that no later round could go on from. Only Python's own handler
    in the main thread is replaced; where someone else handles interrupts, that is left alone.
    """
    asked: list[bool] = []
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )

    def hold(number: int, frame: Any) -> None:
        if asked:
            signal.default_int_handler(number, frame)
        asked.append(True)

    if ours:
        signal.signal(signal.SIGINT, hold)
    try:
        yield lambda: bool(asked)
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


class _SingleThreadedBlas:
    """Limits BLAS to one thread while at least one fit, in any thread of the process, is running."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fits = 0
        self._controller: ThreadpoolController | None = None
        self._limit: Any = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._fits == 0:
                # Finding the loaded libraries takes milliseconds: once is enough.
                self._controller = self._controller or ThreadpoolController()
                self._limit = self._controller.limit(limits=1, user_api="blas")
            self._fits += 1
        try:
            yield
        finally:
            with self._lock:
                self._fits -= 1
                if self._fits == 0:
                    self._limit.restore_original_limits()


# The projections are bound by memory, and a sum split over threads would depend on their number.
single_threaded_blas = _SingleThreadedBlas()
