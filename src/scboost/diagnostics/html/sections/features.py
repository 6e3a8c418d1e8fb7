"""Tab "Features": importance, partial dependence, and explanations of single predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scboost._arrays import FloatArray
from scboost.diagnostics._analysis import Analysis
from scboost.diagnostics._importance import MAX_FEATURES, Importance
from scboost.diagnostics._redundancy_text import format_percent
from scboost.diagnostics.html.charts import line_chart
from scboost.diagnostics.html.sections.types import Section
from scboost.diagnostics.html.text import library_name, number
from scboost.diagnostics.sections.effects import Effect
from scboost.diagnostics.sections.explanations import OTHERS, Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def features(analysis: Analysis) -> Section:
    """Return what the tab shows."""
    importance, labels = analysis.importance, analysis.facts.classes
    return {
        "charts": _importance(importance, library_name(analysis.facts.library)),
        "has_permutation": importance.permutation is not None,
        "n_shown": len(importance.names),
        "n_features": importance.n_features,
        "max_features": MAX_FEATURES,
        "subject": _subject(labels),
        "effects": [_effect_chart(effect, labels) for effect in analysis.effects],
        "explanations": [_explanation(one, labels) for one in analysis.explanations],
    }


def _importance(importance: Importance, library: str) -> list[Section]:
    charts = []
    if importance.permutation is not None and importance.permutation_error is not None:
        largest = float(np.abs(importance.permutation).max()) or 1.0
        decimals = max(0, 2 - int(np.floor(np.log10(largest))))  # three significant digits of the largest
        half = 1.96 * importance.permutation_error
        values = [
            f"{round(mean, decimals) + 0.0:,.{decimals}f} ± {error:,.{decimals}f}"
            for mean, error in zip(importance.permutation, half, strict=True)
        ]
        title = f"Permutation importance: increase of the {importance.loss_name}"
        charts.append(_bars(title, importance.names, importance.permutation, values, half))
    if importance.native is not None:
        order = np.argsort(-importance.native, kind="stable")
        shares = importance.native[order]
        names = [importance.names[i] for i in order]
        title = f"Importance computed by {library}, share of all features"
        charts.append(_bars(title, names, shares, [format_percent(share, 1) for share in shares]))
    return charts


def _bars(
    title: str, names: list[str], values: FloatArray, texts: list[str], half: FloatArray | None = None
) -> Section:
    """Return a list with a bar for each value: names of any length wrap, which they would not in a chart."""
    ends = np.abs(values) if half is None else np.abs(values) + half
    largest = float(np.max(ends)) or 1.0
    entries = []
    for i, (name, value, text) in enumerate(zip(names, values, texts, strict=True)):
        entry: Section = {"name": name, "width": 100 * max(float(value), 0) / largest, "value": text, "whisker": None}
        if half is not None:
            low, high = (100 * max(float(value + sign * half[i]), 0) / largest for sign in (-1, 1))
            entry["whisker"] = (low, high - low)
        entries.append(entry)
    return {"title": title, "entries": entries}


def _subject(labels: list[str]) -> str:
    if not labels:
        return "predicted value"
    return f"probability of class {labels[1]}" if len(labels) == 2 else "probability of the class"


def _effect_chart(effect: Effect, labels: list[str]) -> Section:
    if effect.kind == "categorical":
        # One list of bars: the first class shown.
        values = effect.mean[0]
        shown = f" ({labels[effect.outputs[0]]})" if len(labels) > 2 else ""
        return {"bars": _bars(f"{effect.name}{shown}", list(effect.grid), values, [number(v) for v in values])}
    return {"chart": line_chart(lambda ax: _draw_effect(ax, effect, labels))}


def _draw_effect(ax: Axes, effect: Effect, labels: list[str]) -> None:
    for k, mean in zip(effect.outputs, effect.mean, strict=True):
        label = labels[k] if labels else "mean prediction"
        ax.plot(np.asarray(effect.grid, float), mean, marker="o" if len(mean) <= 20 else None, ms=3, label=label)
    name = effect.name if len(effect.name) <= 40 else f"{effect.name[:37]}..."
    ax.set(xlabel=name, ylabel=_subject(labels) if len(labels) != 2 else "mean probability", title=effect.name)
    ax.spines[["top", "right"]].set_visible(False)


def _explanation(one: Explanation, labels: list[str]) -> Section:
    largest = float(np.abs(one.contribution).max()) or 1.0
    decimals = int(np.clip(2 - np.floor(np.log10(largest)), 0, 12))  # three significant digits of the largest
    return {
        "reason": one.reason,
        "prediction": number(one.prediction),
        "baseline": number(one.baseline),
        "subject": f"probability of class {labels[one.output]}" if labels else "prediction",
        "entries": [
            {
                "name": name if name == OTHERS else f"{name} = {value}",
                "width": 50 * abs(float(c)) / largest,
                "positive": c > 0,
                "value": f"{c:+.{decimals}f}" if round(float(c), decimals) else "0",
            }
            for name, value, c in zip(one.names, one.values, one.contribution, strict=True)
        ],
    }
