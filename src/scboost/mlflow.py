"""Logging of fits to mlflow, whose ``mlflow.autolog`` does not support this library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from scboost._estimators.base import SCBoost

__all__ = ["LogRounds"]


class LogRounds:
    """Callback that logs parameters and the training log to the active run of mlflow.

    Pass it in ``callbacks``. Parameters are logged before the first round as ``mlflow.log_params`` does, the
    measurements of every round (``training_log_``) as metrics whose step is the round. A run is started if none is
    active, as by every function of mlflow.

    Parameters
    ----------
    every : int, default=1
        Number of rounds between two log entries; increase it for many rounds and a remote server.
    log_params : bool, default=True
        Whether to log the parameters of the estimator.

    Examples
    --------
    >>> from scboost import SCBoostClassifier
    >>> from scboost.mlflow import LogRounds
    >>> model = SCBoostClassifier(callbacks=[LogRounds(every=10)])
    """

    def __init__(self, every: int = 1, *, log_params: bool = True) -> None:
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every!r}.")
        self.every, self.log_params = every, log_params

    def begin(self, model: SCBoost) -> None:
        """Log the parameters that are not None, except callbacks."""
        if self.log_params:
            params = {name: value for name, value in model.get_params(deep=False).items() if name != "callbacks"}
            _mlflow().log_params({name: value for name, value in params.items() if value is not None})

    def __call__(self, model: SCBoost) -> bool:
        """Log the measurements of the last round; never stops the fit."""
        log = model.training_log_
        n_rounds = max(map(len, log.values()), default=0)
        if n_rounds and n_rounds % self.every == 0:
            last = {name: values[-1] for name, values in log.items() if len(values) == n_rounds}
            _mlflow().log_metrics({name: float(value) for name, value in last.items() if _is_scalar(value)}, n_rounds)
        return False


def _is_scalar(value: Any) -> bool:
    return np.ndim(value) == 0 and np.issubdtype(type(value), np.number) and bool(np.isfinite(value))


def _mlflow() -> Any:
    try:
        import mlflow
    except ImportError as error:
        raise ImportError("scboost.mlflow needs mlflow: `pip install mlflow` (or mlflow-skinny).") from error
    return mlflow
