"""A report as plain data (JSON) and as a Markdown model card."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np

from scboost._version import __version__
from scboost.diagnostics._analysis import Analysis
from scboost.diagnostics._findings import find
from scboost.diagnostics._redundancy import RedundancyReport
from scboost.diagnostics.html.page import describe
from scboost.diagnostics.html.sections.overview import cost_rows
from scboost.diagnostics.html.text import library_name, number

_REDUNDANCY = ("n_trees", "n_outputs", "n_samples", "redundancy", "effective_rank", "correlation")
_LIGHTS = {"warning": "warning", "note": "note", "ok": "passed"}
_SHOWN_FEATURES = 10


def to_dict(analysis: Analysis) -> dict[str, Any]:
    """Return all numbers of a report as dictionaries, lists, strings and numbers; NaN is None."""
    found = {field.name: _plain(getattr(analysis, field.name)) for field in dataclasses.fields(analysis)}
    return {
        "scboost": __version__,
        **found,
        "frontier": None if analysis.frontier is None else _plain(analysis.frontier.to_dict()),
        "findings": [finding._asdict() for finding in find(analysis)],
    }


def to_json(analysis: Analysis) -> str:
    """Return all numbers of a report as JSON."""
    return json.dumps(to_dict(analysis), allow_nan=False, indent=1)


def _plain(value: Any) -> Any:
    if isinstance(value, RedundancyReport):  # whose matrices are large
        return {name: _plain(getattr(value, name)) for name in _REDUNDANCY}
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def to_markdown(analysis: Analysis) -> str:
    """Return the report as a model card."""
    facts = analysis.facts
    lines = [
        f"# Model card: {_escaped(facts.name)}",
        "",
        f"{library_name(facts.library)}; {describe(analysis)}.",
        "",
        "## Scores",
        "",
        *_scores(analysis),
        "",
        "## Checks",
        "",
        *(f"- **{_LIGHTS[f.kind]}**: {_escaped(f.title)}. {_escaped(f.text)}" for f in find(analysis)),
        "",
        "## Features",
        "",
        *_features(analysis),
        "",
        "## Model",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {_escaped(value)} |" for name, value in [*cost_rows(analysis.cost), *facts.parameters.items()]),
        *(f"| {entry.name} | {entry.value} ({entry.reason}) |" for entry in analysis.fitting.selected),
        "",
        f"Created by scboost {__version__}.",
        "",
    ]
    return "\n".join(lines)


def _scores(analysis: Analysis) -> list[str]:
    if not analysis.scores:
        return ["No targets were given."]
    baselines = {score.name: number(score.value) for score in analysis.baseline_scores}
    return [
        "| score | value | 95 % confidence interval | constant prediction |",
        "|---|---|---|---|",
        *(
            f"| {s.name} | {number(s.value)} | {number(s.low)} to {number(s.high)} | {baselines.get(s.name, '')} |"
            for s in analysis.scores
        ),
    ]


def _features(analysis: Analysis) -> list[str]:
    importance = analysis.importance
    if importance.permutation is None or importance.permutation_error is None:
        return [", ".join(_escaped(feature.name) for feature in analysis.data.features[:_SHOWN_FEATURES])]
    rows = zip(importance.names, importance.permutation, 1.96 * importance.permutation_error, strict=True)
    return [
        f"| feature | permutation importance ({importance.loss_name}) |",
        "|---|---|",
        *(f"| {_escaped(name)} | {mean:.3g} ± {half:.2g} |" for name, mean, half in list(rows)[:_SHOWN_FEATURES]),
    ]


def _escaped(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    for character in "\\`*_[]<>|#":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())
