"""Tab "Training": learning curves, and what was selected automatically."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scboost.diagnostics._analysis import Analysis
from scboost.diagnostics.html.charts import line_chart
from scboost.diagnostics.html.sections.types import Section
from scboost.diagnostics.sections.fitting import SELECTION, Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def fitting(analysis: Analysis) -> Section:
    """Return what the tab shows."""
    found = analysis.fitting
    samples = {name: curve for name, curve in found.curves.items() if name != SELECTION}
    charts = []
    if samples:
        name = f"{found.loss_name[:1].upper()}{found.loss_name[1:]}"
        charts.append(line_chart(lambda ax: _draw(ax, samples, f"{name} by number of trees", found.loss_name)))
    if SELECTION in found.curves:
        title = "Validation loss of the fold models"
        chosen = {"validation loss": found.curves[SELECTION]}
        charts.append(line_chart(lambda ax: _draw(ax, chosen, title, "validation loss")))
    return {"charts": charts, "selected": found.selected, "has_training": "training samples" in samples}


def _draw(ax: Axes, curves: dict[str, Curve], title: str, ylabel: str) -> None:
    for name, curve in curves.items():
        ax.plot(curve.n_trees, curve.loss, label=name)
        if name != "training samples":
            best = int(np.argmin(curve.loss))
            ax.plot(curve.n_trees[best], curve.loss[best], "o", ms=5, color="0.35", label="_lowest")
    ax.set(xlabel="trees", ylabel=ylabel, title=title)
    ax.spines[["top", "right"]].set_visible(False)
