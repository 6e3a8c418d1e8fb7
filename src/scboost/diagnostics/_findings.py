"""Findings of a report: warnings, notes and checks that passed, in plain sentences."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from scboost.diagnostics._analysis import Analysis
from scboost.diagnostics._redundancy_text import format_percent

_FEW_SAMPLES = 100
_RARE = 0.05
_SHOWN_TREES = 8
_LEAST_KEPT = 1 / 3  # share of the improvement over a constant prediction that must remain on held-out samples


class Finding(NamedTuple):
    """The result of a check: a warning, a note, or that all is well.

    Attributes
    ----------
    kind : {"warning", "note", "ok"}
    title, text : str
    """

    kind: Literal["warning", "note", "ok"]
    title: str
    text: str


def find(analysis: Analysis) -> list[Finding]:
    """Return the findings: warnings first, then notes, then checks that passed."""
    findings = [
        *_about_samples(analysis),
        *_about_baseline(analysis),
        *_about_training(analysis),
        *_about_trees(analysis),
        *_about_calibration(analysis),
        *_about_coverage(analysis),
        *_about_bias(analysis),
        *_about_drift(analysis),
        *_about_segments(analysis),
        *_about_classes(analysis),
        *_about_redundancy(analysis),
    ]
    order = ("warning", "note", "ok")
    return sorted(findings, key=lambda finding: order.index(finding.kind))


def _about_samples(analysis: Analysis) -> list[Finding]:
    findings = []
    n, n_given = analysis.n_samples, analysis.n_samples_given
    if n < _FEW_SAMPLES and analysis.scores:
        text = f"Scores on {n} samples are uncertain: read their confidence intervals."
        findings.append(Finding("warning", "Few samples", text))
    if n < n_given:
        findings.append(Finding("note", "Subsample", f"{n:,} of the {n_given:,} samples given were used."))
    return findings


def _about_redundancy(analysis: Analysis) -> list[Finding]:
    text = analysis.redundancy.few_samples
    return [Finding("note", "Redundancy is uncertain", text)] if text else []


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
    elif frontier is not None:
        text = f"Truncating the model does not lower the {frontier.loss_name} by more than two standard errors."
        findings.append(Finding("ok", "Number of trees", text))
    return findings


def _about_baseline(analysis: Analysis) -> list[Finding]:
    """Compare the primary score with that of a constant prediction."""
    if not analysis.scores or not analysis.baseline_scores:
        return []
    score, baseline = analysis.scores[0], analysis.baseline_scores[0].value
    if np.isnan(baseline) or np.isnan(score.low):
        return []
    is_better = score.low > baseline if score.higher_is_better else score.high < baseline
    values = f"{score.name} {score.value:.3g}; a constant prediction has {baseline:.3g}"
    if is_better:
        return [Finding("ok", "Better than a constant prediction", f"{values}.")]
    text = f"{values}, which is inside or beyond the confidence interval. The features may not predict the target."
    return [Finding("warning", "Not better than a constant prediction", text)]


def _about_training(analysis: Analysis) -> list[Finding]:
    """Compare what the model gains over a constant prediction on the training samples and on these."""
    if not analysis.training_scores or not analysis.scores:
        return []
    training, score, baseline = (
        scores[0] for scores in (analysis.training_scores, analysis.scores, analysis.baseline_scores)
    )
    beyond = training.value > score.high if score.higher_is_better else training.value < score.low
    values = f"{training.name} is {training.value:.3g} on the training samples and {score.value:.3g} on these"
    if not beyond:
        return [Finding("ok", "Training scores", f"{values}, inside of the confidence interval.")]
    gain_training, gain = abs(training.value - baseline.value), abs(score.value - baseline.value)
    is_gain = (score.value > baseline.value) == score.higher_is_better
    kept = gain / gain_training if is_gain and gain_training > 0 else 0.0
    if kept < _LEAST_KEPT:
        text = (
            f"{values}: only {format_percent(kept)} of the improvement over a constant prediction remains. Try "
            "shallower trees, stronger regularization or more data, and look for features that leak the target."
        )
        return [Finding("warning", "Gap to training scores", text)]
    text = f"{values}: {format_percent(kept)} of the improvement over a constant prediction remains."
    return [Finding("note", "Gap to training scores", f"{text} Rely on held-out scores.")]


def _about_calibration(analysis: Analysis) -> list[Finding]:
    calibration = analysis.calibration
    if calibration is None or np.isnan(calibration.error):
        return []
    error, by_chance = format_percent(calibration.error, 1), format_percent(calibration.error_by_chance, 1)
    text = (
        f"The expected calibration error is {error}; that of a calibrated model would be below {by_chance} with 95 % "
        "probability."
    )
    if not calibration.is_miscalibrated:
        return [Finding("ok", "Calibrated probabilities", text)]
    return [Finding("warning", "Miscalibrated probabilities", f"{text} Consider sklearn's CalibratedClassifierCV.")]


def _about_coverage(analysis: Analysis) -> list[Finding]:
    """Warn if the observed coverage is significantly below the nominal one at any level."""
    found = analysis.uncertainty
    if found is None:
        return []
    what = "label sets" if found.kind == "set" else "prediction intervals"
    wrong = [one for one in found.coverage if one.observed < one.nominal and one.differs]
    one = wrong[0] if wrong else found.coverage[1]
    text = (
        f"{what.capitalize()} with a nominal coverage of {format_percent(one.nominal)} cover "
        f"{format_percent(one.observed, 1)} of the samples (95 % confidence interval {format_percent(one.low, 1)} to "
        f"{format_percent(one.high, 1)})."
    )
    if not wrong:
        return [Finding("ok", "Coverage", text)]
    fix = "another distribution" if found.kind == "distribution" else "calibrate(X_cal, y_cal) with samples like these"
    return [Finding("warning", "Coverage below the nominal level", f"{text} Consider {fix}.")]


def _about_bias(analysis: Analysis) -> list[Finding]:
    residuals = analysis.residuals
    if residuals is None or not residuals.is_biased:
        return []
    text = (
        f"The mean of y - prediction is {residuals.mean:.3g}, {abs(residuals.mean) / residuals.standard_error:.1f} "
        "standard errors from zero."
    )
    return [Finding("warning", "Biased predictions", text)]


def _about_drift(analysis: Analysis) -> list[Finding]:
    data = analysis.data
    if not any(feature.drift is not None for feature in data.features):
        return []
    drifted = data.drifted
    if not drifted:
        return [Finding("ok", "No drift", "No feature differs significantly from the training samples.")]
    shown = ", ".join(f"{f.name} ({f.drift.distance:.2f})" for f in drifted[:_SHOWN_TREES] if f.drift is not None)
    more = ", ..." if len(drifted) > _SHOWN_TREES else ""
    text = f"Features whose distribution differs from that of the training samples: {shown}{more}."
    return [Finding("warning", "Drift", text)]


def _about_segments(analysis: Analysis) -> list[Finding]:
    errors = analysis.errors
    worse = [] if errors is None else [segment for segment in errors.segments if segment.is_worse]
    if errors is None or not worse:
        return []
    first = worse[0]
    text = (
        f"The {errors.loss_name} is {first.loss:.3g} for {first.feature} {first.condition} ({first.n:,} samples) and "
        f"{errors.loss:.3g} for all. See Errors."
    )
    return [Finding("note", "Segments with a higher loss", text)]
