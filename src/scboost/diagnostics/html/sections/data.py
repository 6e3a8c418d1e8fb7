"""Tab "Data": features of the samples, and their drift against the training samples."""

from __future__ import annotations

from scboost.diagnostics._analysis import Analysis
from scboost.diagnostics._redundancy_text import format_percent
from scboost.diagnostics.html.sections.types import Section
from scboost.diagnostics.html.text import number
from scboost.diagnostics.sections.data import FeatureSummary


def data(analysis: Analysis) -> Section:
    """Return what the tab shows."""
    summary = analysis.data
    has_drift = any(feature.drift is not None for feature in summary.features)
    drifted = {feature.name for feature in summary.drifted}
    return {
        "rows": [
            {
                "name": feature.name,
                "cells": [
                    feature.kind,
                    format_percent(feature.missing, 1) if feature.missing else "0",
                    f"{feature.n_distinct:,}",
                    _typical(feature),
                    *([_drift(feature)] if has_drift else []),
                ],
                "drifted": feature.name in drifted,
            }
            for feature in summary.features
        ],
        "has_drift": has_drift,
        "n_drifted": len(drifted),
        "n_shown": len(summary.features),
        "n_features": summary.n_features,
    }


def _typical(feature: FeatureSummary) -> str:
    if feature.top:
        return f"{feature.top} ({format_percent(feature.top_share, 0)})"
    if feature.kind != "numeric" or feature.n_distinct == 0:
        return ""
    return f"{number(feature.low)} to {number(feature.high)}, median {number(feature.median)}"


def _drift(feature: FeatureSummary) -> str:
    drift = feature.drift
    if drift is None:
        return "not comparable"
    unseen = f"; {format_percent(drift.unseen, 1)} in unseen categories" if drift.unseen > 0 else ""
    return f"{drift.distance:.2f}{unseen}"
