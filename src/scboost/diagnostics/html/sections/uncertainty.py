"""Tab "Uncertainty": observed against nominal coverage, and the PIT histogram of predicted distributions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scboost.diagnostics._analysis import Analysis
from scboost.diagnostics._redundancy_text import format_percent
from scboost.diagnostics.html.charts import line_chart
from scboost.diagnostics.html.sections.types import Section
from scboost.diagnostics.html.text import number
from scboost.diagnostics.sections.uncertainty import Coverage, Uncertainty

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZES = {"interval": "mean width", "set": "mean number of labels", "distribution": "mean width"}


def uncertainty(analysis: Analysis) -> Section | None:
    """Return what the tab shows; None if the model does not quantify uncertainty."""
    found = analysis.uncertainty
    if found is None:
        return None
    charts = [line_chart(lambda ax: _draw_coverage(ax, found.coverage))]
    if len(found.pit):
        charts.append(line_chart(lambda ax: _draw_pit(ax, found)))
    return {
        "kind": found.kind,
        "size": _SIZES[found.kind],
        "rows": [_row(one) for one in found.coverage],
        "charts": charts,
        "nll": number(found.nll),
        "crps": number(found.crps),
        "p_value": "" if np.isnan(found.p_value) else f"{found.p_value:.2g}",
    }


def _row(one: Coverage) -> list[str]:
    interval = f"[{format_percent(one.low, 1)}, {format_percent(one.high, 1)}]"
    verdict = "nominal coverage outside of the confidence interval" if one.differs else "agrees"
    return [format_percent(one.nominal), format_percent(one.observed, 1), interval, number(one.size), verdict]


def _draw_coverage(ax: Axes, coverage: list[Coverage]) -> None:
    nominal = np.array([one.nominal for one in coverage])
    ends = np.array([nominal.min() - 0.03, 1.0])
    ax.plot(ends, ends, color="0.35", lw=0.8, ls=":", label="_nominal")
    ax.vlines(nominal, [one.low for one in coverage], [one.high for one in coverage], color="C0", alpha=0.6, lw=1.4)
    ax.plot(nominal, [one.observed for one in coverage], color="C0", marker="o", ms=4, label="observed coverage")
    ax.set(xlabel="nominal coverage", ylabel="observed coverage", title="Observed and nominal coverage")
    ax.spines[["top", "right"]].set_visible(False)


def _draw_pit(ax: Axes, found: Uncertainty) -> None:
    edges = np.linspace(0, 1, len(found.pit) + 1)
    ax.stairs(found.pit, edges, fill=True, color="C0", alpha=0.5, label="share of the samples")
    for end in (found.pit_low, found.pit_high):
        ax.axhline(end, color="0.35", lw=0.8, ls=":", label="_calibrated")
    ax.set(
        xlabel="predicted probability of a smaller target",
        ylabel="share of the samples",
        title="PIT histogram",
        xlim=(0, 1),
    )
    ax.spines[["top", "right"]].set_visible(False)
