"""What a person should know before believing the numbers, in sentences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from scboost.diagnostics._analysis import Measured

_FEW_ROWS = 100
_RARE = 0.05


class Advice(NamedTuple):
    """One finding.

    Attributes
    ----------
    kind : {"warning", "note"}
    title, text : str
    """

    kind: str
    title: str
    text: str


def advise(found: Measured) -> list[Advice]:
    """Return warnings first, then notes."""
    advice = [*_about_rows(found), *_about_trees(found), *_about_training(found), *_about_probabilities(found)]
    return sorted(advice, key=lambda one: one.kind != "warning")


def _about_rows(found: Measured) -> list[Advice]:
    advice = []
    if found.few_rows:
        advice.append(Advice("warning", "Too few rows for the number of trees", found.few_rows))
    if found.n_rows < _FEW_ROWS and found.scores:
        advice.append(
            Advice(
                "warning",
                "Few rows",
                f"With {found.n_rows} rows the scores are uncertain: look at their intervals, not at their values.",
            )
        )
    if found.n_rows < found.n_rows_given:
        text = f"Measured on {found.n_rows:,} rows, drawn from the {found.n_rows_given:,} given."
        advice.append(Advice("note", "A sample of the rows", text))
    counts = found.class_counts
    if len(counts) and counts.min() < _RARE * counts.sum():
        rare = found.facts.classes[int(np.argmin(counts))]
        advice.append(
            Advice(
                "note",
                "A rare class",
                f"{counts.min() / counts.sum():.1%} of the rows are of class {rare}. Always naming the largest class "
                f"would have an accuracy of {found.majority:.1%}: judge the model by log-loss or AUC.",
            )
        )
    return advice


def _about_trees(found: Measured) -> list[Advice]:
    advice = []
    if found.idle:
        n, T = len(found.idle), found.facts.n_trees
        where = ", ".join(str(t + 1) for t in found.idle[:8]) + (", ..." if n > 8 else "")
        advice.append(
            Advice(
                "warning",
                "Trees that do nothing",
                f"{n} of {T} trees say the same for every one of these rows or have weight zero "
                f"(round{'s' if n > 1 else ''} {where}).",
            )
        )
    curve = found.curve
    if curve is not None and curve.rise > 2 * curve.rise_error and curve.best < found.facts.n_trees:
        advice.append(
            Advice(
                "warning",
                "Overfitting",
                f"The {curve.loss_name} is lowest after {curve.best} of {found.facts.n_trees} trees and then rises by "
                f"{curve.rise:.3g}, which is more than chance: use fewer trees or early stopping.",
            )
        )
    return advice


def _about_training(found: Measured) -> list[Advice]:
    pairs = zip(found.training_scores, found.scores, strict=False)
    for training, score in pairs:
        better = training.value - score.value if score.higher_is_better else score.value - training.value
        beyond = training.value > score.high if score.higher_is_better else training.value < score.low
        if better > 0 and beyond:
            text = (
                f"{training.name} is {training.value:.3g} on the training rows and {score.value:.3g} on these. Part of "
                "such a gap is normal for boosted trees; a wide one says that the training scores mean little."
            )
            return [Advice("note", "Better on training rows", text)]
    return []


def _about_probabilities(found: Measured) -> list[Advice]:
    calibration = found.calibration
    if calibration is None or not calibration.error > calibration.error_by_chance:
        return []
    return [
        Advice(
            "warning",
            "Probabilities that do not come true",
            f"Predicted and observed shares differ by {calibration.error:.1%} on average; a calibrated model would "
            f"stay below {calibration.error_by_chance:.1%} on as many rows. Consider sklearn's CalibratedClassifierCV.",
        )
    ]
