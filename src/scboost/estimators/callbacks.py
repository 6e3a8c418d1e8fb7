"""Callbacks: who is told of the rounds of a fit, and a checkpoint that a fit can be resumed from.

There is one protocol: a callback is called as ``callback(model)`` after every round of the model that is kept, and a
true answer stops the fit. Callbacks of scikit-learn's own protocol, given to ``set_callbacks``, are told of the same
rounds.
"""

from __future__ import annotations

import copy
import os
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scboost.boosting.training import Training
from scboost.estimators.progress import Progress

__all__ = ["CallbackSupportMixin", "Checkpoint", "RoundObserver", "Tasks", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # the protocol came with scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method: this scikit-learn has no callbacks."""
        return method


# Attributes of scikit-learn's callbacks, which belong to the running fit.
_OF_THIS_FIT = ("_skl_callbacks", "_callback_fit_ctx", "_skl_callbacks_to_teardown", "_parent_callback_ctx")


class Checkpoint:
    """Callback that writes an estimator to disk every few rounds, so that a killed fit can be resumed.

    The file is replaced in one step: it always holds a complete checkpoint. It is a pickle; load only your own.

    Parameters
    ----------
    path : str or Path
        File to write; its folder must exist.
    every : int, default=10
        Number of rounds between two checkpoints.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from scboost import SCBoostClassifier
    >>> X, y = make_classification(random_state=0)
    >>> folder = tempfile.TemporaryDirectory()
    >>> checkpoint = Checkpoint(f"{folder.name}/fit.checkpoint", every=4)
    >>> model = SCBoostClassifier(n_estimators=10, random_state=0, callbacks=[checkpoint]).fit(X, y)
    >>> resumed = checkpoint.load()  # as after a crash in round 9 or 10
    >>> resumed.n_estimators_
    8
    >>> resumed = resumed.fit(X, y)
    >>> bool(np.array_equal(resumed.predict_proba(X), model.predict_proba(X)))
    True
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], every: int = 10) -> None:
        if every < 1:
            raise ValueError(f"every={every!r} must be a number of rounds of at least 1.")
        self.path = Path(path)
        self.every = every

    def __call__(self, estimator: Any) -> None:
        """Write the estimator if it is time to."""
        if estimator.preset == "best" or (estimator.weighting is not None and estimator.weighting_rows != "holdout"):
            raise ValueError(
                f"A checkpoint cannot resume preset={estimator.preset!r} with weighting_rows="
                f"{estimator.weighting_rows!r}, which grows several models; use weighting_rows='holdout' or "
                "weighting=None, and another preset than 'best'."
            )
        if estimator.n_estimators_ % self.every:
            return
        kept = copy.copy(estimator)
        kept.warm_start = True
        kept.n_estimators = estimator._n_rounds_asked  # noqa: SLF001 - a number, also where the data chose it
        kept.callbacks = None  # others than this one may hold what cannot be pickled
        for name in _OF_THIS_FIT:
            vars(kept).pop(name, None)
        with tempfile.NamedTemporaryFile(dir=self.path.parent, prefix=self.path.name, delete=False) as stream:
            try:
                pickle.dump(kept, stream)
                stream.flush()
                os.fsync(stream.fileno())
                Path(stream.name).replace(self.path)
            except BaseException:
                Path(stream.name).unlink()
                raise

    def load(self) -> Any:
        """Read the estimator of the last checkpoint.

        Returns
        -------
        estimator
            Fitted with the rounds done so far. It has ``warm_start=True`` and this callback: ``fit`` with the same rows
            does the remaining rounds, and the result equals that of a fit without interruption, bit for bit. Other
            callbacks have to be set again.
        """
        with self.path.open("rb") as stream:
            estimator = pickle.load(stream)  # noqa: S301 - the user's own file
        return estimator.set_params(callbacks=[self])


class RoundObserver:
    """Tells the progress bar, the user's callbacks and scikit-learn's callbacks of every round.

    Parameters
    ----------
    estimator : estimator
        Being fitted.
    tasks : Tasks or None
        The rounds as scikit-learn's callbacks see them; None for models that are not kept.
    n_rounds : int
        Most rounds.
    label : str
        What the progress bar calls them.
    publish : callable or None
        Makes the estimator one that can predict; None for models that are not kept.
    """

    def __init__(
        self,
        estimator: Any,
        tasks: Tasks | None,
        n_rounds: int,
        label: str,
        publish: Callable[[Training], None] | None,
    ) -> None:
        self._estimator, self._tasks, self._publish = estimator, tasks, publish
        self._callbacks = tuple(estimator.callbacks or ()) if publish is not None else ()
        self._progress = Progress(n_rounds, label, enabled=bool(estimator.verbose))

    def begin_round(self) -> None:
        """Announce a round."""
        if self._tasks is not None:
            self._tasks.begin_round()

    def end_round(self, training: Training, validation_loss: float | None) -> bool:
        """Report a round; True if a callback asks to stop."""
        seen = "" if validation_loss is None else f", validation {validation_loss:.4f}"
        self._progress.step(f"loss {training.loss[-1]:.4f}{seen}")
        if self._publish is None:
            return False
        if self._callbacks or (self._tasks is not None and self._tasks.watched):
            self._publish(training)
        stop = self._tasks is not None and self._tasks.end_round()
        for callback in self._callbacks:
            stop = bool(callback(self._estimator)) or stop
        return stop

    def end(self) -> None:
        """Finish the progress bar."""
        self._progress.close()


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

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any, max_rounds: int) -> None:
        self._estimator = estimator
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        self._data = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self._fit: Any = None
        self._round: Any = None
        self.watched = bool(getattr(estimator, "_skl_callbacks", ()))
        if self.watched:
            self._fit = estimator._init_callback_context(max_subtasks=max_rounds)  # noqa: SLF001 - the protocol's name
            self._fit.call_on_fit_task_begin(**self._data)

    def begin_round(self) -> None:
        """Announce a round."""
        if self._fit is not None:
            self._round = self._fit.subcontext(task_name="round")
            self._round.call_on_fit_task_begin(**self._data)

    def end_round(self) -> bool:
        """Report a round; True if a callback asks to stop."""
        return self._round is not None and bool(
            self._round.call_on_fit_task_end(**self._data, reconstruction_attributes=self._fitted)
        )

    def end_fit(self) -> None:
        """Report the fit."""
        if self._fit is not None:
            self._fit.call_on_fit_task_end(**self._data, reconstruction_attributes=self._fitted)

    def _fitted(self) -> dict[str, Any]:
        # The loop goes on adding to the ensemble: whoever keeps the reported model must not see it grow.
        return {"_ensemble": copy.deepcopy(self._estimator._ensemble)}  # noqa: SLF001 - the estimator's own part
