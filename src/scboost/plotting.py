"""Plots with matplotlib. Every plot function draws on the axes given, or on new ones, and returns them."""

from scboost.diagnostics._explanation import plot_importance, shap_explanation
from scboost.diagnostics._plots import (
    plot_correlation,
    plot_energy,
    plot_frontier,
    plot_innovation,
    plot_report,
    plot_spectrum,
    plot_trees_kept,
    plot_weights,
)

__all__ = [
    "plot_correlation",
    "plot_energy",
    "plot_frontier",
    "plot_importance",
    "plot_innovation",
    "plot_report",
    "plot_spectrum",
    "plot_trees_kept",
    "plot_weights",
    "shap_explanation",
]
