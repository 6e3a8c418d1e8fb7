"""Tab "Number of trees": loss against the number of trees, with a slider for pruning."""

from __future__ import annotations

from functools import partial
from typing import Any

from scboost.diagnostics._frontier import COMPRESS, FIRST_TREES, PRUNE, Frontier, FrontierCurve
from scboost.diagnostics._plots import plot_frontier
from scboost.diagnostics._redundancy_text import format_percent
from scboost.diagnostics.html.charts import Chart, line_chart
from scboost.diagnostics.html.sections.types import Section
from scboost.diagnostics.html.text import number

_LOSS_LEVELS = (0.0, 0.01, 0.05, 0.1)  # relative increases of the loss in the table of trees needed


def trees(frontier: Frontier | None) -> Section | None:
    """Return what the tab shows; None without targets on the scale of the trees."""
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
        "certificate": frontier.notes.get(COMPRESS, ""),
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
    return f"{number(loss)} ({above})", ["not reached" if n is None else f"{n:,}" for n in found]


def slider(frontier: Frontier, chart: Chart) -> list[dict[str, Any]] | None:
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
    loss = f"{frontier.loss_name} {number(curve.loss[i])}"
    if frontier.loss_name == "error rate":
        return loss
    return f"{loss}, {frontier.score_name} {number(curve.score[i])}"
