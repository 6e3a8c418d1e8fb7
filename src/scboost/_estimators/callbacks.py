"""Callbacks, which are notified of the rounds of a fit.

A callback is called as ``callback(model)`` after every round of the final model, and a true return value stops the fit;
if it has a method ``begin``, ``begin(model)`` is called before the first round. Callbacks of scikit-learn's protocol,
registered with ``set_callbacks``, are notified of the same rounds.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from scboost._core.training import Training
from scboost._model.fitted import HasFittedModel
from scboost._runtime.communicator import Communicator, agreed
from scboost._runtime.observer import Observer
from scboost._runtime.progress import Progress

__all__ = ["CallbackSupportMixin", "RoundObserver", "Tasks", "with_callbacks"]

_LABELS = {
    "scboost, features": "scboost: feature selection",
    "scboost, folds": "scboost: cross-validation",
    "scboost, rounds": "scboost: validation set",
    "scboost, all samples": "scboost: final model",
}
"""What progress shows for the phases of a fit."""

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn has the protocol since version 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Empty: this version of scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method unchanged: this version of scikit-learn has no callbacks."""
        return method


def _check_unchanged(estimator: object, before: dict[str, Any], callback: Callable[[Any], Any]) -> None:
    """Raise ValueError if a callback has set a parameter: it has no effect during a fit."""
    for name, value in before.items():
        now = getattr(estimator, name)
        if now is not value:
            raise ValueError(
                f"The callback {callback!r} set {name}={now!r}, but parameters are fixed when a fit begins; set {name} "
                "before fit, or return True from the callback to stop."
            )


class RoundObserver(Observer):
    """Notifies the progress bar, the user's callbacks and scikit-learn's callbacks of every round.

    Parameters
    ----------
    callbacks : sequence of callables
        The user's callbacks.
    tasks : Tasks
        The rounds as tasks of scikit-learn's callbacks.
    publish : callable
        Returns a fitted estimator with the rounds so far, given the training and the requested number of rounds.
    communicator : Communicator
        The other workers; only the first worker calls the callbacks.
    verbose : bool or None
        Whether to show progress; None shows it after three seconds.
    """

    def __init__(
        self,
        callbacks: Sequence[Callable[[Any], Any]],
        tasks: Tasks,
        publish: Callable[[Training, int], Any],
        communicator: Communicator,
        *,
        verbose: bool | None,
    ) -> None:
        self._tasks, self._publish, self._communicator = tasks, publish, communicator
        first = communicator.rank == 0
        self._has_callbacks = bool(callbacks)
        self._callbacks = tuple(callbacks) if first else ()
        self._shows_log = bool(verbose)  # equal on all workers, which compute the loss jointly
        self._kept = False
        self.n_rounds = 0
        self._progress = Progress(verbose=verbose if first else False)

    def begin(self, n_rounds: int, label: str, *, kept: bool) -> None:
        """Start a phase of the progress bar; see :class:`Observer`."""
        self._kept = kept
        self.reads_log = self._shows_log or (kept and (self._has_callbacks or self._tasks.has_callbacks))
        if kept:
            self.n_rounds = n_rounds
        self._progress.begin(n_rounds, _LABELS.get(label, label), remaining=kept)

    def begin_round(self) -> None:
        """Announce a round."""
        if self._kept:
            self._tasks.begin_round()

    def end_round(self, training: Training, validation_loss: float | None) -> bool:
        """Notify of the end of a round; return whether a callback stops the fit."""
        sign, metric = (-1, f" {training.metric}") if training.metric else (1, "")
        notes = []
        if self._kept and training.loss and not math.isnan(training.last_loss):  # fold models do not measure it
            notes.append(f"training loss {training.last_loss:.4f}")
        if validation_loss is not None:
            notes.append(f"validation{metric or ' loss'} {sign * validation_loss:.4f}")
        self._progress.step(", ".join(notes))
        if not self._kept:
            return False
        so_far: Any = None
        if self._callbacks or self._tasks.has_callbacks:
            so_far = self._publish(training, self.n_rounds)
        stop = self._tasks.end_round(so_far)
        if self._has_callbacks:
            with agreed(self._communicator):
                before = so_far.get_params(deep=False) if self._callbacks else {}
                for callback in self._callbacks:
                    stop = bool(callback(so_far)) or stop
                    _check_unchanged(so_far, before, callback)
            stop = any(self._communicator.gather(stop))
        return stop

    def end(self) -> None:
        """Finish a phase of the progress bar."""
        self._progress.end()

    def close(self) -> None:
        """Close the progress bar."""
        self._progress.close()

    def warn(self, message: str) -> None:
        """Issue a ConvergenceWarning."""
        warnings.warn(message, ConvergenceWarning, stacklevel=6)


class Tasks:
    """The rounds of a fit as tasks of scikit-learn's callback protocol; does nothing before scikit-learn 1.9.

    Parameters
    ----------
    estimator : estimator
        Estimator that is being fitted, with callbacks registered by ``set_callbacks``.
    X, y, sample_weight
        As the user gave them.
    max_rounds : int
        Maximum number of rounds of this fit.

    Attributes
    ----------
    has_callbacks : bool
        Whether there is any callback.
    """

    def __init__(self, estimator: CallbackSupportMixin, X: Any, y: Any, sample_weight: Any, max_rounds: int) -> None:
        self._estimator = estimator
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        self._data = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self._fit: Any = None
        self._round: Any = None
        self.has_callbacks = bool(getattr(estimator, "_skl_callbacks", ()))
        if self.has_callbacks:
            self._fit = estimator._init_callback_context(max_subtasks=max_rounds)  # noqa: SLF001 - scikit-learn's interface
            self._fit.call_on_fit_task_begin(**self._data)

    def begin_round(self) -> None:
        """Announce a round."""
        if self._fit is not None:
            self._round = self._fit.subcontext(task_name="round")
            self._round.call_on_fit_task_begin(**self._data)

    def end_round(self, so_far: HasFittedModel) -> bool:
        """Notify of the end of a round, with the model so far; return whether a callback stops the fit."""
        return self._round is not None and bool(
            self._round.call_on_fit_task_end(**self._data, reconstruction_attributes=lambda: _state(so_far))
        )

    def end_fit(self, fitted: HasFittedModel) -> None:
        """Notify of the end of the fit, with the fitted estimator."""
        if self._fit is not None:
            self._fit.call_on_fit_task_end(**self._data, reconstruction_attributes=lambda: _state(fitted))


def _state(estimator: HasFittedModel) -> dict[str, Any]:
    # A copy: the loop keeps adding rounds to the ensemble, and a callback may store the model.
    return {"_model": copy.deepcopy(estimator.__fitted_model__())}
