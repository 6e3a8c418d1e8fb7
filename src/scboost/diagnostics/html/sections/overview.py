"""Tab "Overview": scores, checks, and facts about the model."""

from __future__ import annotations

import numpy as np

from scboost.diagnostics._analysis import Analysis
from scboost.diagnostics._findings import find
from scboost.diagnostics._scores import Score
from scboost.diagnostics.html.sections.types import Section
from scboost.diagnostics.html.text import library_name, number, seconds, size
from scboost.diagnostics.sections.cost import Cost

_MAX_PARAMETERS, _MAX_CLASSES = 40, 20


def overview(analysis: Analysis) -> Section:
    """Return what the tab shows."""
    facts = analysis.facts
    baselines = {score.name: score.value for score in analysis.baseline_scores}
    training = {score.name: score.value for score in analysis.training_scores}
    return {
        "scores": [_card(score, baselines.get(score.name)) for score in analysis.scores],
        "table": [_row(score, baselines, training) for score in analysis.scores],
        "has_training": bool(training),
        "findings": find(analysis),
        "facts": [*_facts(analysis), *cost_rows(analysis.cost), *list(facts.parameters.items())[:_MAX_PARAMETERS]],
        "notes": facts.notes,
        "has_parameters": bool(facts.parameters),
    }


def _card(score: Score, baseline: float | None) -> tuple[str, str, str]:
    against = "" if baseline is None or np.isnan(baseline) else f" Constant prediction: {number(baseline)}."
    return score.name, number(score.value), f"[{number(score.low)}, {number(score.high)}] {score.meaning}.{against}"


def _row(score: Score, baselines: dict[str, float], training: dict[str, float]) -> list[str]:
    nan = float("nan")
    values = [score.value, baselines.get(score.name, nan), *([training.get(score.name, nan)] if training else [])]
    return [score.name, *map(number, values)]


def _facts(analysis: Analysis) -> list[tuple[str, str]]:
    facts = analysis.facts
    rows = [("model", facts.name), ("library", library_name(facts.library)), ("task", facts.task)]
    if facts.wrappers:
        rows.append(("inside of", " > ".join(facts.wrappers)))
    if facts.classes:
        counts = analysis.class_counts
        names = [f"{label} ({counts[i]:,} samples)" if len(counts) else label for i, label in enumerate(facts.classes)]
        more = f" and {len(names) - _MAX_CLASSES} more" if len(names) > _MAX_CLASSES else ""
        rows.append(("classes", ", ".join(names[:_MAX_CLASSES]) + more))
    return rows


def cost_rows(cost: Cost) -> list[tuple[str, str]]:
    """Return size and speed of a model as rows of a table."""
    rows = [] if cost.bytes is None else [("size, pickled", size(cost.bytes))]
    if np.isnan(cost.seconds_one):
        return rows
    many = f"{seconds(cost.seconds_many)} for {cost.n_many:,} samples"
    return [*rows, ("prediction time", f"{seconds(cost.seconds_one)} for one sample, {many}")]
