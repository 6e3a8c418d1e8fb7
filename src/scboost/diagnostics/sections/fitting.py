"""How the model was fitted: loss by number of trees, and settings that were selected automatically."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from scboost._arrays import FloatArray, IntArray
from scboost.diagnostics._predictions import Predictions, outcome_of_margin
from scboost.diagnostics._subject import Subject
from scboost.diagnostics._tree_matrix import TreeMatrix

_POINTS = 60
SELECTION = "selection (validation)"
"""Name of the curve by which an estimator selected its rounds."""


class Selected(NamedTuple):
    """A setting that the fit determined: its name, its value, and why."""

    name: str
    value: str
    reason: str


@runtime_checkable
class ReportsSelection(Protocol):
    """An estimator that tells which settings its fit determined."""

    def __selected_settings__(self) -> Sequence[tuple[str, str, str]]: ...


class Curve(NamedTuple):
    """Loss after numbers of trees."""

    n_trees: IntArray
    loss: FloatArray


@dataclass(frozen=True)
class Fitting:
    """How the model was fitted.

    Attributes
    ----------
    curves : dict of str to Curve
        Loss by number of trees: on the evaluated samples, the training samples, and what the library recorded.
    loss_name : str
        Name of the loss of the first two.
    selected : list of Selected
        Settings that were selected automatically, with the reason.
    """

    curves: dict[str, Curve] = field(default_factory=dict)
    loss_name: str = ""
    selected: list[Selected] = field(default_factory=list)


def describe_fit(
    subject: Subject, evaluated: tuple[TreeMatrix, Predictions] | None, training: tuple[TreeMatrix, Predictions] | None
) -> Fitting:
    """Return learning curves and selected settings.

    Parameters
    ----------
    subject : Subject
    evaluated, training : tuple of (TreeMatrix, Predictions), optional
        Tree predictions and predictions for the evaluated and for the training samples.

    Returns
    -------
    Fitting
    """
    curves: dict[str, Curve] = {}
    loss_name = ""
    if evaluated is not None and evaluated[0].on_target_scale:
        loss_name = evaluated[1].loss_name
        curves["evaluated samples"] = _staged(*evaluated)
        if training is not None:
            curves["training samples"] = _staged(*training)
    recorded = getattr(subject.ensemble, "selection_log_", None)
    if isinstance(recorded, Mapping) and "validation_loss" in recorded:  # not if another metric was used
        loss = np.asarray(recorded["validation_loss"], np.float64)
        curves[SELECTION] = Curve(np.arange(1, len(loss) + 1), loss)
    return Fitting(curves, loss_name, _selected(subject.ensemble))


def _staged(trees: TreeMatrix, predictions: Predictions) -> Curve:
    T = trees.n_trees
    sizes = np.unique(np.geomspace(1, T, min(T, _POINTS)).round().astype(np.intp))
    stages = trees.staged_margins(sizes)
    found = [Predictions.of(predictions.target, outcome_of_margin(trees, F)).pointwise_loss().mean() for F in stages]
    return Curve(sizes, np.array(found))


def _selected(model: object) -> list[Selected]:
    """Return the settings that an estimator reports, or the round of early stopping of other libraries."""
    if isinstance(model, ReportsSelection):
        return [Selected(*entry) for entry in model.__selected_settings__()]
    rounds = _early_stopping_rounds(model)
    if rounds is None:
        return []
    return [Selected("number of rounds", f"{rounds:,}", "early stopping on the validation set given to fit")]


def _early_stopping_rounds(model: object) -> int | None:
    """Return the number of rounds that early stopping of another library selected; None without it."""
    library = type(model).__module__.partition(".")[0]
    for name in ("best_iteration", "best_iteration_"):
        value = getattr(model, name, None)  # XGBoost raises AttributeError without early stopping
        if isinstance(value, int | np.integer):
            if library == "lightgbm":  # counted from 1; at most 0 without early stopping
                return int(value) if value > 0 else None
            return int(value) + 1
    return None
