"""Callbacks: who is told of the rounds of a fit.

There is one protocol: a callback is called as ``callback(model)`` after every round of the model that is kept, and a
true answer stops the fit; if it has a method ``begin``, ``begin(model)`` is called before the first round. Callbacks of
scikit-learn's own protocol, given to ``set_callbacks``, are told of the same rounds.
"""

from __future__ import annotations

import copy
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

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # the protocol came with scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method: this scikit-learn has no callbacks."""
        return method


def _check_unchanged(estimator: object, before: dict[str, Any], callback: Callable[[Any], Any]) -> None:
    """Reject a callback that sets a parameter, which would have no effect on the fit."""
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
        The rounds as scikit-learn's callbacks see them.
    publish : callable
        Returns an estimator with the model so far, which can predict; given the training and the number of rounds that
        was asked for.
    communicator : Communicator
        The other workers, for all of which the first one calls the callbacks.
    verbose : bool or None
        Whether to show progress; None shows it by itself after three seconds.
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
        self._shows_log = bool(verbose)  # the same on all workers, which measure the loss together
        self._kept = False
        self.n_rounds = 0
        self._progress = Progress(verbose=verbose if first else False)

    def begin(self, n_rounds: int, label: str, *, kept: bool) -> None:
        """Start a phase of the progress; see :class:`Observer`."""
        self._kept = kept
        self.reads_log = self._shows_log or (kept and (self._has_callbacks or self._tasks.watched))
        if kept:
            self.n_rounds = n_rounds
        self._progress.begin(n_rounds, label)

    def begin_round(self) -> None:
        """Announce a round."""
        if self._kept:
            self._tasks.begin_round()

    def end_round(self, training: Training, validation_loss: float | None) -> bool:
        """Report a round; True if a callback asks to stop."""
        sign, metric = (-1, f" {training.metric}") if training.metric else (1, "")
        validation = "" if validation_loss is None else f", validation{metric} {sign * validation_loss:.4f}"
        own = f"loss {training.last_loss:.4f}" if training.loss else "no tree"  # the first of several may have none
        self._progress.step(f"{own}{validation}")
        if not self._kept:
            return False
        so_far: Any = None
        if self._callbacks or self._tasks.watched:
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
        """Finish a phase of the progress."""
        self._progress.end()

    def close(self) -> None:
        """End the progress."""
        self._progress.close()

    def warn(self, message: str) -> None:
        """Warn as scikit-learn does of fits that do not converge."""
        warnings.warn(message, ConvergenceWarning, stacklevel=6)


class Tasks:
    """The rounds of a fit as tasks of scikit-learn's callback protocol; silent before scikit-learn 1.9.

    Parameters
    ----------
    estimator : estimator
        Being fitted; callbacks were given to its ``set_callbacks``.
    X, y, sample_weight
        As the user gave them.
    max_rounds : int
        Most rounds that this fit may take.

    Attributes
    ----------
    watched : bool
        Whether there is any callback.
    """

    def __init__(self, estimator: CallbackSupportMixin, X: Any, y: Any, sample_weight: Any, max_rounds: int) -> None:
        self._estimator = estimator
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        self._data = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self._fit: Any = None
        self._round: Any = None
        self.watched = bool(getattr(estimator, "_skl_callbacks", ()))
        if self.watched:
            self._fit = estimator._init_callback_context(max_subtasks=max_rounds)  # noqa: SLF001 - scikit-learn's interface
            self._fit.call_on_fit_task_begin(**self._data)

    def begin_round(self) -> None:
        """Announce a round."""
        if self._fit is not None:
            self._round = self._fit.subcontext(task_name="round")
            self._round.call_on_fit_task_begin(**self._data)

    def end_round(self, so_far: HasFittedModel) -> bool:
        """Report a round, with an estimator that has the model so far; True if a callback asks to stop."""
        return self._round is not None and bool(
            self._round.call_on_fit_task_end(**self._data, reconstruction_attributes=lambda: _state(so_far))
        )

    def end_fit(self, fitted: HasFittedModel) -> None:
        """Report the fit, with the fitted estimator."""
        if self._fit is not None:
            self._fit.call_on_fit_task_end(**self._data, reconstruction_attributes=lambda: _state(fitted))


def _state(estimator: HasFittedModel) -> dict[str, Any]:
    # The loop goes on adding to the ensemble: whoever keeps the reported model must not see it grow.
    return {"_model": copy.deepcopy(estimator.__fitted_model__())}
