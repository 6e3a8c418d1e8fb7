"""Automatically selected settings and their reasons, for ``print(model)``, notebooks and the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from scboost._model.fitted import FittedModel

Settings = list[tuple[str, str, str]]
"""Name, value and reason of each setting."""


def selected_settings(model: FittedModel, parameters: Mapping[str, Any]) -> Settings:
    """Return the settings that were "auto", with the value used and the reason.

    Parameters
    ----------
    model : FittedModel
    parameters : mapping of str to object
        Parameters of the estimator.

    Returns
    -------
    list of (str, str, str)
        Name, value and reason.
    """
    selected = bool(model.selection.log)
    reason = "lowest loss in cross-validation" if selected else "default of the task"
    settings: Settings = []
    if parameters["n_estimators"] == "auto":
        settings.append(("number of rounds", f"{model.n_rounds:,}", _rounds_reason(model, parameters)))
    if parameters["learning_rate"] == "auto":
        settings.append(("learning rate", f"{model.learning_rate:.4g}", "from the numbers of samples and rounds"))
    if parameters["max_depth"] == "auto" and not model.has_other_learners:
        depth = "no limit" if model.max_depth is None else str(model.max_depth)
        settings.append(("maximum depth", depth, reason))
    if selected and parameters["tree_shape"] == "auto" and model.tree_shape is not None:
        settings.append(("tree shape", model.tree_shape, reason))
    if selected and parameters["multi_strategy"] == "auto" and model.loss.n_outputs > 1 and model.multi_strategy:
        of_strategy = reason if model.loss.independent_outputs else "default of the task"
        settings.append(("trees of several outputs", model.multi_strategy, of_strategy))
    if selected and parameters["projection_strength"] == "auto" and model.projection_strength is not None:
        settings.append(("projection strength", f"{model.projection_strength:g}", reason))
    if model.selected_features:
        n, d = len(model.selected_features), model.encoder.n_features
        settings.append(("features", f"{n} of {d}", "leaving out the others lowers the cross-validation loss"))
    splits = model.selection.categorical_splits
    if splits is not None and parameters["categorical_splits"] == "auto":
        reason = "lower cross-validation loss" if splits == "subset" else "default"
        settings.append(("categorical splits", splits, reason))
    return settings


def _rounds_reason(model: FittedModel, parameters: Mapping[str, Any]) -> str:
    log = {name: values for name, values in model.selection.log.items() if name.startswith("validation_")}
    for name, values in log.items():
        if name == "validation_loss":
            return f"lowest loss in cross-validation ({float(np.min(values)):.4g})"
        return f"best {name.removeprefix('validation_')} in cross-validation"
    if model.stop_reason:
        return model.stop_reason.rstrip(".")
    if parameters["preset"] == "fast":
        return 'preset="fast"'
    return "early stopping on the validation set" if "validation_loss" in model.training_log else "default"


def as_text(settings: Settings) -> str:
    """Return the settings as aligned lines."""
    names, values = (max((len(entry[i]) for entry in settings), default=0) for i in (0, 1))
    return "\n".join(f"  {name:<{names}}  {value:<{values}}  {reason}" for name, value, reason in settings)
