"""Training one ensemble: the loop, watched.

The loop itself knows neither validation rows nor patience; this module consumes its rounds. One rule holds
throughout: learners see training rows only; validation rows decide when to stop and what the learners weigh.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from scboost._arrays import FloatArray
from scboost.boosting.ensemble import Ensemble
from scboost.boosting.learners import Engine
from scboost.boosting.loop import Dials, Round, State, boost
from scboost.boosting.losses import Loss


@dataclass
class Rows:
    """Rows with their targets and weights.

    Attributes
    ----------
    X : matrix of shape (n, d)
        Features.
    y : ndarray of shape (n,)
        Targets as the loss takes them.
    weight : ndarray of shape (n,) or None
        Sample weights.
    """

    X: Any
    y: FloatArray
    weight: FloatArray | None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: Any) -> Rows:
        """Return some of the rows."""
        return Rows(self.X[rows], self.y[rows], None if self.weight is None else self.weight[rows])


@dataclass(frozen=True)
class Stopping:
    """When to stop on validation rows.

    Attributes
    ----------
    patience : int
        Stop if the last ``patience`` rounds brought no improvement by more than ``tol``.
    tol : float
        Smallest decrease of the validation loss that counts.
    """

    patience: int
    tol: float


@dataclass
class Training:
    """An ensemble with the story of its rounds.

    Attributes
    ----------
    ensemble : Ensemble
        The learners.
    state : State
        Where the loop stands.
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
    """

    ensemble: Ensemble
    state: State
    loss: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    components: list[float] = field(default_factory=list)
    energy_kept: list[float] = field(default_factory=list)
    energy_removed: list[float] = field(default_factory=list)
    stop_reason: str = ""
    interrupted: bool = False
    grown: tuple[FloatArray, FloatArray] | None = None

    def record(self, done: Round) -> None:
        """Add a round's numbers to the story."""
        self.loss.append(done.loss)
        parts = done.projections
        n = len(parts) or 1
        self.components.append(sum(p.k for p in parts) / n)
        self.energy_kept.append(sum(p.energy_kept for p in parts) / n)
        self.energy_removed.append(sum(p.share for p in parts) / n)

    def rounds(self) -> dict[str, FloatArray]:
        """Return the story as columns of equal length, one entry a round."""
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


def train(
    rows: Rows,
    *,
    loss: Loss,
    dials: Dials,
    engine: Engine,
    n_rounds: int,
    begin: Callable[[], Training],
    validation: Rows | None = None,
    stopping: Stopping | None = None,
    before: Callable[[], None] | None = None,
    watch: Callable[[Training], bool] | None = None,
) -> Training:
    """Boost until ``n_rounds`` are done in all, nothing is left to learn, or validation says stop.

    Parameters
    ----------
    rows : Rows
        Training rows, in the engine's dtype.
    loss, dials, engine
        See :func:`scboost.boosting.loop.boost`.
    n_rounds : int
        Number of rounds in all, those of a resumed training included.
    begin : callable
        Returns the training to start from or to go on with.
    validation : Rows, optional
        Rows on which the loss is followed; the learners never see them.
    stopping : Stopping, optional
        When to stop on the validation rows.
    before : callable, optional
        Called before every round.
    watch : callable, optional
        Called after every round; a true answer stops the loop.

    Returns
    -------
    Training
        After an interrupt from the keyboard, the training with the rounds finished so far.
    """
    training = begin()
    ensemble = training.ensemble
    if training.grown is not None:
        ensemble.reweight(*training.grown)
    training.grown, training.stop_reason, training.interrupted = None, "", False
    scores = _ValidationScores(ensemble, validation) if validation is not None else None
    with _single_threaded_blas(), _interrupt_between_rounds() as interrupted:
        loop = boost(training.state, loss, rows.y, rows.weight, dials, engine)
        while training.state.round < n_rounds and not training.stop_reason:
            if stopping and _rounds_since_best(training.validation_loss, stopping.tol) >= stopping.patience:
                training.stop_reason = f"validation loss did not improve in {stopping.patience} rounds"
                break
            if before is not None:
                before()
            done = next(loop, None)
            if done is None:
                training.stop_reason = training.state.stop_reason
                break
            ensemble.append(done.learners, dials.eta)
            training.record(done)
            if scores is not None and validation is not None:
                training.validation_loss.append(loss.mean(validation.y, scores.update(), validation.weight))
            try:
                if watch is not None and watch(training):
                    training.stop_reason = "a callback asked to stop"
            except KeyboardInterrupt:
                training.interrupted = True
            if training.interrupted or interrupted():
                training.interrupted = True
                training.stop_reason = "interrupted from the keyboard"
    training.grown = ensemble.weights.copy(), ensemble.intercept.copy()
    return training


def _rounds_since_best(losses: list[float], tol: float) -> int:
    """Count the rounds since the loss last fell by more than ``tol`` below everything before."""
    best, lowest = 0, np.inf
    for i, value in enumerate(losses, start=1):
        if value < lowest - tol:
            best = i
        lowest = min(lowest, value)
    return len(losses) - best


@contextmanager
def _interrupt_between_rounds() -> Iterator[Callable[[], bool]]:
    """Hold an interrupt from the keyboard back until the round is finished; a second one breaks through.

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


class _ValidationScores:
    """Scores of validation rows, brought up to date by the newest round only."""

    def __init__(self, ensemble: Ensemble, rows: Rows) -> None:
        self._ensemble = ensemble
        self._X = ensemble.prepare(rows.X)
        self._F = np.repeat(ensemble.intercept[:, None], len(rows), axis=1)
        self._n_rounds = 0

    def update(self) -> FloatArray:
        H = self._ensemble.contributions(self._X, first=self._n_rounds)
        for weights, h in zip(self._ensemble.weights[self._n_rounds :], H, strict=True):
            self._F += weights[:, None] * h  # one by one: a resumed fit must round as an uninterrupted one
        self._n_rounds = self._ensemble.n_rounds
        return self._F


@contextmanager
def _single_threaded_blas() -> Iterator[None]:
    # The projections are bound by memory, and a sum split over threads would depend on their number.
    global _controller  # noqa: PLW0603 - finding the loaded libraries takes milliseconds: once is enough
    if _controller is None:
        _controller = ThreadpoolController()
    with _controller.limit(limits=1, user_api="blas"):
        yield


_controller: ThreadpoolController | None = None
