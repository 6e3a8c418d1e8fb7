"""Tab "Calibration" of classifiers, "Predictions" of regression models: predictions against outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scboost.diagnostics._analysis import Analysis
from scboost.diagnostics._calibration import Calibration
from scboost.diagnostics._plots import draw_calibration
from scboost.diagnostics._redundancy_text import format_percent
from scboost.diagnostics.html.charts import line_chart
from scboost.diagnostics.html.sections.types import Section

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_CURVES = 4


def calibration(analysis: Analysis) -> Section | None:
    """Return what the tab shows; None without targets or probabilities."""
    found = analysis.calibration
    if found is None:
        return None
    labels = analysis.facts.classes
    subject = ""
    if labels:
        subject = "the predicted class" if len(labels) > 2 else f"class {labels[1]}"
    charts = [line_chart(lambda ax: draw_calibration(ax, found))]
    rows: list[list[str]] = []
    if analysis.class_calibration and analysis.classification is not None:
        named = {
            labels[scores.k]: one
            for scores, one in zip(analysis.classification.classes, analysis.class_calibration, strict=True)
        }
        worst = dict(sorted(named.items(), key=lambda entry: -entry[1].error)[:_MAX_CURVES])
        charts.append(line_chart(lambda ax: _draw_classes(ax, worst)))
        rows = [_row(label, one) for label, one in named.items()]
    return {
        "subject": subject,
        "error": format_percent(found.error, 1),
        "by_chance": format_percent(found.error_by_chance, 1),
        "charts": charts,
        "rows": rows,
    }


def _row(label: str, one: Calibration) -> list[str]:
    verdict = "miscalibrated" if one.is_miscalibrated else "calibrated"
    return [label, format_percent(one.error, 1), format_percent(one.error_by_chance, 1), verdict]


def _draw_classes(ax: Axes, classes: dict[str, Calibration]) -> None:
    ax.plot([0, 1], [0, 1], color="0.35", lw=0.8, ls=":", label="_perfect")
    for label, one in classes.items():
        ax.plot(one.predicted, one.observed, marker="o", ms=4, label=label)
    ax.set(
        xlabel="predicted probability of the class",
        ylabel="observed share",
        title="Calibration of single classes",
        xlim=(0, 1),
        ylim=(0, 1),
    )
    ax.spines[["top", "right"]].set_visible(False)
