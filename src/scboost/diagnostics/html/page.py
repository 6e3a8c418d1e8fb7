"""The HTML page of a report: its tabs."""

from __future__ import annotations

from scboost._version import __version__
from scboost.diagnostics._analysis import Analysis
from scboost.diagnostics.html import template
from scboost.diagnostics.html.sections.calibration import calibration
from scboost.diagnostics.html.sections.comparison import comparison
from scboost.diagnostics.html.sections.data import data
from scboost.diagnostics.html.sections.errors import errors
from scboost.diagnostics.html.sections.features import features
from scboost.diagnostics.html.sections.fitting import fitting
from scboost.diagnostics.html.sections.overview import overview
from scboost.diagnostics.html.sections.performance import performance
from scboost.diagnostics.html.sections.redundancy import redundancy
from scboost.diagnostics.html.sections.trees import slider, trees
from scboost.diagnostics.html.sections.uncertainty import uncertainty
from scboost.diagnostics.html.text import library_name


def render_page(analysis: Analysis) -> str:
    """Return the whole page, which needs no other file and no network."""
    facts, frontier = analysis.facts, analysis.frontier
    tabs = {
        "overview": "Overview",
        "performance": "Performance",
        "errors": "Errors",
        "calibration": "Calibration" if facts.classes else "Predictions",
        **({} if analysis.uncertainty is None else {"uncertainty": "Uncertainty"}),
        "features": "Features",
        "data": "Data",
        "fitting": "Training",
        "trees": "Number of trees",
        "redundancy": "Redundancy",
        **({} if analysis.comparison is None else {"comparison": "Comparison"}),
    }
    of_trees = trees(frontier)
    return template("report.html").render(
        title=f"{facts.name} ({library_name(facts.library)})",
        lead=describe(analysis),
        version=__version__,
        sections=tabs,
        overview=overview(analysis),
        performance=performance(analysis),
        errors=errors(analysis),
        calibration=calibration(analysis),
        uncertainty=uncertainty(analysis),
        features=features(analysis),
        data=data(analysis),
        fitting=fitting(analysis),
        trees=of_trees,
        slider=None if frontier is None or of_trees is None else slider(frontier, of_trees["charts"][0]),
        redundancy=redundancy(analysis),
        comparison=comparison(analysis),
    )


def describe(analysis: Analysis) -> str:
    """Return model and samples in one line."""
    facts = analysis.facts
    per_class = " per class" if facts.n_outputs > 1 else ""
    return (
        f"{facts.task}; {facts.n_trees:,} trees{per_class}; evaluated on {analysis.n_samples:,} samples with "
        f"{analysis.data.n_features:,} features"
    )


def render_frame(page: str) -> str:
    """Return a frame for notebooks, which separates the style of the page from that of the notebook."""
    return template("frame.html").render(page=page)
