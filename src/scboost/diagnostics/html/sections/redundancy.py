"""Tab "Redundancy": how much the trees repeat each other."""

from __future__ import annotations

from scboost.diagnostics._analysis import Analysis
from scboost.diagnostics._plots import draw_redundancy, plot_energy, plot_spectrum
from scboost.diagnostics._redundancy_text import format_percent
from scboost.diagnostics.html.charts import Chart, correlation_chart, line_chart
from scboost.diagnostics.html.sections.types import Section
from scboost.diagnostics.html.text import number


def redundancy(analysis: Analysis) -> Section:
    """Return what the tab shows."""
    report = analysis.redundancy
    T = report.n_trees
    charts: list[Chart] = []
    if T > 1:
        charts = [
            line_chart(lambda ax: draw_redundancy(ax, report), percent=True),
            correlation_chart(report),
            line_chart(lambda ax: plot_spectrum(report, labels=["singular value"], ax=ax)),
            line_chart(lambda ax: plot_energy(report, labels=["explained variance"], ax=ax), percent=True),
        ]
    return {
        "verdict": report.verdict,
        "cards": [
            ("redundancy", format_percent(report.redundancy), "mean share of a tree in the span of earlier trees"),
            ("redundancy, last tenth", format_percent(report.late_redundancy), "of the trees"),
            ("effective rank", number(round(report.effective_rank, 1)), f"of {T:,}; 1 if all trees were copies"),
            ("components for 90 %", f"{report.n_components_90:,}", f"of {T:,}, of the variance of the trees"),
            ("correlation of two trees", number(round(report.correlation, 3)), "mean over all pairs"),
        ],
        "chance": format_percent(report.chance_redundancy),
        "n_samples": f"{report.n_samples:,}",
        "many_outputs": report.n_outputs > 1,
        "charts": charts,
    }
