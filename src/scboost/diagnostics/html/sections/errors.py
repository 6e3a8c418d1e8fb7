"""Tab "Errors": segments with a loss above average, and the samples with the largest loss."""

from __future__ import annotations

import numpy as np

from scboost.diagnostics._analysis import Analysis
from scboost.diagnostics.html.sections.types import Section
from scboost.diagnostics.html.text import number

_MAX_SEGMENTS = 15


def errors(analysis: Analysis) -> Section | None:
    """Return what the tab shows; None without targets."""
    found = analysis.errors
    if found is None:
        return None
    return {
        "loss_name": found.loss_name,
        "loss": number(found.loss),
        "n_worse": sum(segment.is_worse for segment in found.segments),
        "segments": [
            {
                "name": f"{segment.feature} {segment.condition}",
                "n": f"{segment.n:,}",
                "loss": f"{number(segment.loss)} ± {number(1.96 * segment.standard_error)}",
                "ratio": f"{segment.loss / found.loss:.2f}" if found.loss > 0 else "",
                "worse": segment.is_worse,
            }
            for segment in found.segments[:_MAX_SEGMENTS]
        ],
        "has_probability": any(not np.isnan(sample.probability) for sample in found.worst),
        "value_names": [name for name, _ in found.worst[0].features] if found.worst else [],
        "worst": [
            {
                "row": str(sample.row),
                "target": sample.target,
                "predicted": sample.predicted,
                "probability": "" if np.isnan(sample.probability) else number(sample.probability),
                "loss": number(sample.loss),
                "features": [value for _, value in sample.features],
            }
            for sample in found.worst
        ],
    }
