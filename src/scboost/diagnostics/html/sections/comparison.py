"""Tab "Comparison": the model beside a second one."""

from __future__ import annotations

from scboost.diagnostics._analysis import Analysis
from scboost.diagnostics._redundancy_text import format_percent
from scboost.diagnostics.html.sections.overview import cost_rows
from scboost.diagnostics.html.sections.types import Section
from scboost.diagnostics.html.text import number


def comparison(analysis: Analysis) -> Section | None:
    """Return what the tab shows; None without a second model."""
    found = analysis.comparison
    if found is None:
        return None
    own, other = dict(cost_rows(analysis.cost)), dict(cost_rows(found.cost))
    is_classifier = bool(analysis.facts.classes)
    return {
        "names": (analysis.facts.name, found.name),
        "scores": [
            [
                difference.score.name,
                number(difference.score.value),
                number(difference.other.value),
                f"[{number(difference.low)}, {number(difference.high)}]",
                difference.verdict,
            ]
            for difference in found.scores
        ],
        "facts": [
            ("trees", f"{analysis.facts.n_trees:,}", "" if found.n_trees is None else f"{found.n_trees:,}"),
            *((name, own.get(name, ""), other.get(name, "")) for name in dict.fromkeys([*own, *other])),
        ],
        "agreement": format_percent(found.agreement, 1) if is_classifier else number(found.agreement),
        "is_classifier": is_classifier,
    }
