"""Findings of a report: warnings and notes in plain sentences."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from scboost.diagnostics._analysis import Analysis
from scboost.diagnostics._redundancy_text import format_percent

_FEW_SAMPLES = 100
_RARE = 0.05
_SHOWN_TREES = 8


class Finding(NamedTuple):
    """A warning or a note.

    Attributes
    ----------
    kind : {"warning", "note"}
    title, text : str
    """

    kind: Literal["warning", "note"]
    title: str
    text: str


def find(analysis: Analysis) -> list[Finding]:
    """Return the findings, warnings first."""
    findings = [
        *_about_samples(analysis),
        *_about_classes(analysis),
        *_about_trees(analysis),
        *_about_training(analysis),
        *_about_calibration(analysis),
    ]
    return sorted(findings, key=lambda finding: finding.kind != "warning")


def _about_samples(analysis: Analysis) -> list[Finding]:
    findings = []
    if analysis.redundancy.few_samples:
        findings.append(Finding("warning", "Too few samples for the number of trees", analysis.redundancy.few_samples))
    n, n_given = analysis.n_samples, analysis.n_samples_given
    if n < _FEW_SAMPLES and analysis.scores:
        text = f"Scores on {n} samples are uncertain: read their confidence intervals."
        findings.append(Finding("warning", "Few samples", text))
    if n < n_given:
        findings.append(Finding("note", "Subsample", f"{n:,} of the {n_given:,} samples given were used."))
    return findings


def _about_classes(analysis: Analysis) -> list[Finding]:
    counts = analysis.class_counts
    if not len(counts) or counts.min() >= _RARE * counts.sum():
        return []
    rare = analysis.facts.classes[int(np.argmin(counts))]
    share, majority = format_percent(counts.min() / counts.sum(), 1), format_percent(analysis.majority_share, 1)
    text = (
        f"{share} of the samples are of class {rare}. Predicting the most frequent class has an accuracy of "
        f"{majority}: compare models by log-loss or AUC."
    )
    return [Finding("note", "Rare class", text)]


def _about_trees(analysis: Analysis) -> list[Finding]:
    findings = []
    if analysis.constant_trees:
        n, T = len(analysis.constant_trees), analysis.facts.n_trees
        shown = ", ".join(str(t + 1) for t in analysis.constant_trees[:_SHOWN_TREES])
        text = (
            f"{n} of {T} trees predict the same value for all samples or have weight zero "
            f"(round{'s' if n > 1 else ''} {shown}{', ...' if n > _SHOWN_TREES else ''})."
        )
        findings.append(Finding("warning", "Constant trees", text))
    frontier = analysis.frontier
    if frontier is not None and frontier.overfits:
        text = (
            f"The {frontier.loss_name} is lowest after {frontier.best_truncation} of {frontier.n_trees} trees; the "
            f"others increase it by {frontier.overfitting:.3g}, more than two standard errors. Use fewer trees or "
            "early stopping."
        )
        findings.append(Finding("warning", "Overfitting", text))
    return findings


def _about_training(analysis: Analysis) -> list[Finding]:
    for training, score in zip(analysis.training_scores, analysis.scores, strict=False):
        above, below = training.value > score.high, training.value < score.low
        if above if score.higher_is_better else below:
            text = (
                f"{training.name} is {training.value:.3g} on the training samples and {score.value:.3g} on these, "
                "outside of the confidence interval. Some gap is normal for boosted trees; rely on held-out scores."
            )
            return [Finding("note", "Gap to training scores", text)]
    return []


def _about_calibration(analysis: Analysis) -> list[Finding]:
    calibration = analysis.calibration
    if calibration is None or not calibration.is_miscalibrated:
        return []
    error, by_chance = format_percent(calibration.error, 1), format_percent(calibration.error_by_chance, 1)
    text = (
        f"The expected calibration error is {error}; that of a calibrated model would be below {by_chance} with 95 % "
        "probability. Consider sklearn's CalibratedClassifierCV."
    )
    return [Finding("warning", "Miscalibrated probabilities", text)]
