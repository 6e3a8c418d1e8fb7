"""Search for better parameters with Optuna: a search space and a callback that prunes trials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import optuna

    from scboost._estimators.base import SCBoost

__all__ = ["PruneTrial", "search_space"]


def search_space(trial: optuna.Trial, *, prefix: str = "") -> dict[str, Any]:
    """Suggest parameters of an estimator for a trial of Optuna.

    The number of rounds and the learning rate are not part of the space: the default selects them for every candidate
    by cross-validation. With a fixed ``n_estimators`` suggest ``learning_rate`` as well.

    Parameters
    ----------
    trial : optuna.Trial
        The trial.
    prefix : str, default=""
        Put before the names of the parameters in the study, such as ``"model__"``; not in the result.

    Returns
    -------
    dict
        Values of ``max_depth`` (2 to 8), ``min_child_weight`` (0.1 to 30), ``reg_lambda`` (0.3 to 30), ``subsample``
        and ``colsample_bytree`` (0.5 to 1), ``projection_strength`` (0 to 0.7) and ``exploration`` (0 to 1).

    Examples
    --------
    >>> from scboost import SCBoostClassifier
    >>> from scboost.tuning import search_space
    >>> def objective(trial):
    ...     model = SCBoostClassifier(**search_space(trial))
    ...     return cross_val_score(model, X, y, scoring="neg_log_loss").mean()
    """
    return {
        "max_depth": trial.suggest_int(f"{prefix}max_depth", 2, 8),
        "min_child_weight": trial.suggest_float(f"{prefix}min_child_weight", 0.1, 30.0, log=True),
        "reg_lambda": trial.suggest_float(f"{prefix}reg_lambda", 0.3, 30.0, log=True),
        "subsample": trial.suggest_float(f"{prefix}subsample", 0.5, 1.0),
        "colsample_bytree": trial.suggest_float(f"{prefix}colsample_bytree", 0.5, 1.0),
        "projection_strength": trial.suggest_float(f"{prefix}projection_strength", 0.0, 0.7),
        "exploration": trial.suggest_float(f"{prefix}exploration", 0.0, 1.0),
    }


class PruneTrial:
    """Callback that reports the validation loss of every round to Optuna and ends unpromising trials.

    The fit needs a validation set (``X_val=, y_val=`` in ``fit``, or ``early_stopping=True``). A pruned fit raises
    ``optuna.TrialPruned``, which ``study.optimize`` expects.

    Parameters
    ----------
    trial : optuna.Trial
        The trial.
    log_name : str, default="validation_loss"
        Column of ``training_log_`` to report. With ``early_stopping_metric="roc_auc"`` it is "validation_roc_auc", and
        the direction of the study must be "maximize".

    Examples
    --------
    >>> from scboost import SCBoostClassifier
    >>> from scboost.tuning import PruneTrial, search_space
    >>> def objective(trial):
    ...     model = SCBoostClassifier(
    ...         **search_space(trial), n_estimators=200, early_stopping=True, callbacks=[PruneTrial(trial)]
    ...     )
    ...     return min(model.fit(X, y).training_log_["validation_loss"])
    """

    def __init__(self, trial: optuna.Trial, log_name: str = "validation_loss") -> None:
        self.trial, self.log_name = trial, log_name

    def __call__(self, model: SCBoost) -> bool:
        """Report the last round; raise if the trial is to be pruned."""
        log = model.training_log_
        if self.log_name not in log or not len(log[self.log_name]):
            raise ValueError(
                f"PruneTrial reports {self.log_name!r}, but the training log has {sorted(log)}; pass X_val= and y_val= "
                "to fit or set early_stopping=True, and name the column that is logged with log_name=."
            )
        values = np.asarray(log[self.log_name], dtype=np.float64)
        self.trial.report(float(values[-1]), len(values))
        if self.trial.should_prune():
            import optuna

            raise optuna.TrialPruned(f"pruned after {len(values)} rounds, {self.log_name} {values[-1]:.6g}")
        return False
