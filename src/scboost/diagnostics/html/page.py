"""The HTML page of a report: what its templates show."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from scboost._arrays import FloatArray
from scboost._version import __version__
from scboost.diagnostics._analysis import Analysis
from scboost.diagnostics._findings import find
from scboost.diagnostics._frontier import FIRST_TREES, PRUNE, Frontier, FrontierCurve
from scboost.diagnostics._importance import MAX_FEATURES
from scboost.diagnostics._plots import draw_calibration, draw_redundancy, plot_energy, plot_frontier, plot_spectrum
from scboost.diagnostics._redundancy_text import format_percent
from scboost.diagnostics._scores import Score
from scboost.diagnostics.html import template
from scboost.diagnostics.html.charts import Chart, correlation_chart, line_chart

_LIBRARY_NAMES = {"sklearn": "scikit-learn", "xgboost": "XGBoost", "lightgbm": "LightGBM", "catboost": "CatBoost"}
_MAX_PARAMETERS = 40
_MAX_CLASSES = 20
_LOSS_LEVELS = (0.0, 0.01, 0.05, 0.1)  # relative increases of the loss in the table of trees needed

Section = dict[str, Any]


def render_page(analysis: Analysis) -> str:
    """Return the whole page, which needs no other file and no network."""
    facts = analysis.facts
    per_class = " per class" if facts.n_outputs > 1 else ""
    trees = _trees(analysis.frontier)
    return template("report.html").render(
        title=f"{facts.name} ({_library(analysis)})",
        lead=(
            f"{facts.task}; {facts.n_trees:,} trees{per_class}; evaluated on {analysis.n_samples:,} samples with "
            f"{facts.n_features:,} features"
        ),
        version=__version__,
        sections={
            "overview": "Overview",
            "trees": "Number of trees",
            "redundancy": "Redundancy",
            "calibration": "Calibration" if facts.classes else "Predictions",
            "features": "Features",
        },
        overview=_overview(analysis),
        trees=trees,
        slider=None if analysis.frontier is None or trees is None else _slider(analysis.frontier, trees["charts"][0]),
        redundancy=_redundancy(analysis),
        calibration=_calibration(analysis),
        features=_features(analysis),
    )


def render_frame(page: str) -> str:
    """Return a frame for notebooks, which separates the style of the page from that of the notebook."""
    return template("frame.html").render(page=page)


def _library(analysis: Analysis) -> str:
    return _LIBRARY_NAMES.get(analysis.facts.library, analysis.facts.library)


def _number(value: float) -> str:
    if np.isnan(value):
        return "undefined"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def _overview(analysis: Analysis) -> Section:
    facts = analysis.facts
    rows = [("model", facts.name), ("library", _library(analysis)), ("task", facts.task)]
    if facts.classes:
        counts = analysis.class_counts
        names = [f"{label} ({counts[i]:,} samples)" if len(counts) else label for i, label in enumerate(facts.classes)]
        more = f" and {len(names) - _MAX_CLASSES} more" if len(names) > _MAX_CLASSES else ""
        rows.append(("classes", ", ".join(names[:_MAX_CLASSES]) + more))
    return {
        "scores": [_score_card(score) for score in analysis.scores],
        "training": [
            (training.name, _number(training.value), _number(here.value))
            for training, here in zip(analysis.training_scores, analysis.scores, strict=False)
        ],
        "findings": find(analysis),
        "facts": [*rows, *list(facts.parameters.items())[:_MAX_PARAMETERS]],
        "has_parameters": bool(facts.parameters),
    }


def _score_card(score: Score) -> tuple[str, str, str]:
    return score.name, _number(score.value), f"[{_number(score.low)}, {_number(score.high)}] {score.meaning}"


def _trees(frontier: Frontier | None) -> Section | None:
    if frontier is None:
        return None
    charts = [line_chart(partial(_draw_frontier, frontier, score=False))]
    if frontier.loss_name != "error rate":  # of which the accuracy is the complement
        charts.append(line_chart(partial(_draw_frontier, frontier, score=True)))
    sizes = _pruned(frontier).n_trees.tolist() if PRUNE in frontier.curves else []
    return {
        "unavailable": frontier.unavailable.get(PRUNE, ""),
        "sufficient": None if frontier.sufficient is None else f"{frontier.sufficient:,}",
        "n_trees": f"{frontier.n_trees:,}",
        "loss_name": frontier.loss_name,
        "start": sizes.index(frontier.sufficient) if frontier.sufficient in sizes else max(len(sizes) - 1, 0),
        "charts": charts,
        "methods": list(frontier.curves),
        "needed": [_trees_needed(frontier, level) for level in _LOSS_LEVELS],
        "n_selection": frontier.n_selection,
        "n_evaluation": f"{frontier.n_evaluation:,}",
        "log_scale": frontier.n_trees > 20,
    }


def _draw_frontier(frontier: Frontier, ax: Any, *, score: bool) -> None:
    plot_frontier(frontier, score=score, ax=ax)


def _pruned(frontier: Frontier) -> FrontierCurve:
    return frontier.curves[PRUNE]


def _trees_needed(frontier: Frontier, level: float) -> tuple[str, list[str]]:
    """Return a loss and the number of trees that each method needs for it."""
    loss = frontier.loss * (1 + level) if frontier.loss > 0 else frontier.loss
    above = "all trees" if level == 0 else f"{format_percent(level)} above all trees"
    found = [curve.trees_needed(loss) for curve in frontier.curves.values()]
    return f"{_number(loss)} ({above})", ["not reached" if n is None else f"{n:,}" for n in found]


def _slider(frontier: Frontier, chart: Chart) -> list[dict[str, Any]] | None:
    """Return the text and the position of the marker at each stop of the slider."""
    if PRUNE not in frontier.curves:
        return None
    pruned, first = _pruned(frontier), frontier.curves[FIRST_TREES]
    places = next(line["at"] for line in chart.hover["lines"] if line["name"] == PRUNE)
    stops = []
    for i, size in enumerate(pruned.n_trees.tolist()):
        j = first.at(size)
        stops.append(
            {
                "size": size,
                "at": places[i],
                "words": (
                    f"{size:,} of {frontier.n_trees:,} trees. "
                    f"Pruned: {_loss_and_score(frontier, pruned, i)}. "
                    f"First {size:,}: {_loss_and_score(frontier, first, j)}."
                ),
                "call": f"scboost.prune(model, X_val, y_val, max_trees={size}).model",
            }
        )
    return stops


def _loss_and_score(frontier: Frontier, curve: FrontierCurve, i: int) -> str:
    loss = f"{frontier.loss_name} {_number(curve.loss[i])}"
    if frontier.loss_name == "error rate":
        return loss
    return f"{loss}, {frontier.score_name} {_number(curve.score[i])}"


def _redundancy(analysis: Analysis) -> Section:
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
            ("effective rank", _number(round(report.effective_rank, 1)), f"of {T:,}; 1 if all trees were copies"),
            ("components for 90 %", f"{report.n_components_90:,}", f"of {T:,}, of the variance of the trees"),
            ("correlation of two trees", _number(round(report.correlation, 3)), "mean over all pairs"),
        ],
        "chance": format_percent(report.chance_redundancy),
        "n_samples": f"{report.n_samples:,}",
        "many_outputs": report.n_outputs > 1,
        "charts": charts,
    }


def _calibration(analysis: Analysis) -> Section | None:
    calibration = analysis.calibration
    if calibration is None:
        return None
    subject = ""
    if analysis.facts.classes:
        subject = "the predicted class" if len(analysis.facts.classes) > 2 else f"class {analysis.facts.classes[1]}"
    return {
        "subject": subject,
        "error": format_percent(calibration.error, 1),
        "by_chance": format_percent(calibration.error_by_chance, 1),
        "chart": line_chart(lambda ax: draw_calibration(ax, calibration)),
    }


def _features(analysis: Analysis) -> Section:
    importance = analysis.importance
    charts = []
    if importance.permutation is not None and importance.permutation_std is not None:
        largest = float(np.abs(importance.permutation).max()) or 1.0
        decimals = max(0, 2 - int(np.floor(np.log10(largest))))  # three significant digits of the largest
        values = [
            f"{round(mean, decimals) + 0.0:,.{decimals}f} ± {std:,.{decimals}f}"
            for mean, std in zip(importance.permutation, importance.permutation_std, strict=True)
        ]
        title = f"Permutation importance: increase of the {importance.loss_name}"
        charts.append(_bars(title, importance.names, importance.permutation, values))
    if importance.native is not None:
        order = np.argsort(-importance.native, kind="stable")
        shares = importance.native[order]
        names = [importance.names[i] for i in order]
        title = f"Importance computed by {_library(analysis)}, share of all features"
        charts.append(_bars(title, names, shares, [format_percent(share, 1) for share in shares]))
    return {
        "charts": charts,
        "has_permutation": importance.permutation is not None,
        "n_shown": len(importance.names),
        "n_features": importance.n_features,
        "max_features": MAX_FEATURES,
    }


def _bars(title: str, names: list[str], values: FloatArray, texts: list[str]) -> Section:
    """Return a list with a bar for each value: names of any length wrap, which they would not in a chart."""
    largest = float(np.max(np.abs(values))) or 1.0
    entries = [
        {"name": name, "width": 100 * max(float(value), 0) / largest, "value": text}
        for name, value, text in zip(names, values, texts, strict=True)
    ]
    return {"title": title, "entries": entries}
