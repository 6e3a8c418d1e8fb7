"""A measured model as one HTML page. All names that come from data or models are escaped here or in ``draw``."""

from __future__ import annotations

import json
import re
from html import escape
from importlib import resources
from typing import Any

import numpy as np

from scboost._arrays import FloatArray
from scboost._version import __version__
from scboost.diagnostics._analysis import Measured, TreeCurve
from scboost.diagnostics._findings import advise
from scboost.diagnostics._scores import Score
from scboost.diagnostics.html import draw
from scboost.diagnostics.html.draw import Axis, Line

_LIBRARY_NAMES = {"sklearn": "scikit-learn", "xgboost": "XGBoost", "lightgbm": "LightGBM", "catboost": "CatBoost"}
_MOST_PARAMETERS = 40
_MOST_CLASSES = 20


def page(found: Measured) -> str:
    """Return the whole page, which needs no other file and no network."""
    parts = {
        "overview": ("Overview", _overview(found)),
        "trees": ("Trees needed", _trees(found)),
        "redundancy": ("Redundancy", _redundancy(found)),
        "calibration": ("Calibration" if found.facts.classes else "Predictions", _calibration(found)),
        "features": ("Features", _features(found)),
    }
    tabs = "".join(
        f'<button role="tab" id="tab-{key}" aria-controls="part-{key}" aria-selected="false">{name}</button>'
        for key, (name, _) in parts.items()
    )
    sections = "".join(
        f'<section role="tabpanel" id="part-{key}" aria-labelledby="tab-{key}"><h2>{name}</h2>{text}</section>'
        for key, (name, text) in parts.items()
    )
    facts = found.facts
    outputs = f" for each of {facts.n_outputs} classes" if facts.n_outputs > 1 else ""
    size = f"{found.n_rows:,} rows, {facts.n_features:,} columns"
    lead = f"{facts.task}; {facts.n_trees:,} trees{outputs}; measured on {size}"
    slots = {
        "title": escape(f"{facts.name} ({_library(found)})"),
        "lead": escape(lead),
        "tabs": tabs,
        "sections": sections,
        "footer": f"Made by scboost {escape(__version__)}. Measure on rows that the model was not fitted on.",
        "slider": _json(_stops(found)),
        "style": _file("page.css"),
        "script": _file("page.js"),
    }
    # One pass: what a slot brings in is not searched for slots.
    return re.sub(r"{{(\w+)}}", lambda match: slots[match[1]], _file("page.html"))


def _file(name: str) -> str:
    return resources.files("scboost.diagnostics.html").joinpath(name).read_text(encoding="utf-8")


def _library(found: Measured) -> str:
    return _LIBRARY_NAMES.get(found.facts.library, found.facts.library)


def _json(value: Any) -> str:
    """Return JSON that cannot end the script element it stands in."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")


def _number(value: float) -> str:
    if np.isnan(value):
        return "undefined"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def _share(value: float) -> str:
    return "undefined" if np.isnan(value) else f"{100 * value:.0f}%"


def _cards(*cards: tuple[str, str, str]) -> str:
    inner = "".join(
        f'<div class="card"><small>{escape(name)}</small><b>{escape(value)}</b><small>{escape(text)}</small></div>'
        for name, value, text in cards
    )
    return f'<div class="cards">{inner}</div>'


def _overview(found: Measured) -> str:
    advice = "".join(
        f'<div class="advice {one.kind}"><b>{escape(one.title)}.</b> {escape(one.text)}</div>' for one in advise(found)
    )
    if found.scores:
        cards = _cards(*(_score_card(score) for score in found.scores))
        scores = f'{cards}<p class="quietly">In brackets: 95% of such values on resampled rows lie there.</p>'
    else:
        scores = "<p>No targets were given, so there are no scores: pass <code>y</code>, too.</p>"
    if found.training_scores:
        rows = "".join(
            f'<tr><td>{escape(a.name)}</td><td class="number">{_number(a.value)}</td>'
            f'<td class="number">{_number(b.value)}</td></tr>'
            for a, b in zip(found.training_scores, found.scores, strict=True)
        )
        scores += f"<table><tr><th></th><th>training rows</th><th>these rows</th></tr>{rows}</table>"
    return f"{scores}{advice}<h3>The model</h3>{_facts(found)}"


def _score_card(score: Score) -> tuple[str, str, str]:
    return score.name, _number(score.value), f"[{_number(score.low)}, {_number(score.high)}] {score.meaning}"


def _facts(found: Measured) -> str:
    facts = found.facts
    rows = [("class", facts.name), ("library", _library(found)), ("predicts", facts.task)]
    if facts.classes:
        counts = found.class_counts
        names = [f"{label} ({counts[i]:,} rows)" if i < len(counts) else label for i, label in enumerate(facts.classes)]
        more = f" and {len(names) - _MOST_CLASSES} more" if len(names) > _MOST_CLASSES else ""
        rows.append(("classes", ", ".join(names[:_MOST_CLASSES]) + more))
    rows += list(facts.parameters.items())[:_MOST_PARAMETERS]
    cells = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in rows)
    note = "" if facts.parameters else '<p class="quietly">No parameter differs from the default, or none is known.</p>'
    return f"<table>{cells}</table>{note}"


def _tree_axis(curve: TreeCurve) -> Axis:
    return Axis("trees kept", 1, max(float(curve.sizes[-1]), 2), log=bool(curve.sizes[-1] > 20))


def _trees(found: Measured) -> str:
    curve = found.curve
    if curve is None:
        return "<p>This needs targets <code>y</code> on the scale of the model's trees.</p>"
    T = found.facts.n_trees
    x = _tree_axis(curve)
    all_loss, all_score = float(curve.loss[-1]), float(curve.score[-1])
    if curve.no_pruning:
        words = f"<p>Pruning could not be tried: {escape(curve.no_pruning)}</p>"
    elif curve.enough is None:
        words = (
            f"<p><b>All {T:,} trees do the work</b>: every pruned set that was tried predicts worse than the whole "
            "model, by more than chance.</p>"
        )
    else:
        words = (
            f"<p><b>{curve.enough:,} of {T:,} trees do the work</b>: chosen and re-weighted by <code>prune</code>, "
            f"their {escape(curve.loss_name)} is within one standard error of the best that was found with any "
            "number of trees.</p>"
        )
    how = (
        f'<p class="quietly">Trees were chosen on {curve.n_choosing:,} rows and both lines measured on the other '
        f"{curve.n_scoring:,}. “First trees” is the ensemble cut short"
        f"{'; the axis of trees is logarithmic' if x.log else ''}.</p>"
    )
    shown = [(curve.loss_name, curve.loss, curve.pruned_loss, all_loss)]
    if not curve.mirrored:
        shown.append((curve.score_name, curve.score, curve.pruned_score, all_score))
    charts = "".join(
        draw.line_chart(
            f"{name} by number of trees",
            _curves(curve, first, pruned, reference),
            x,
            draw.axis_around(name, first, pruned),
        )
        for name, first, pruned, reference in shown
    )
    return f'{words}{_slider(curve)}<div class="charts markable">{charts}</div>{how if not curve.no_pruning else ""}'


def _curves(curve: TreeCurve, first: FloatArray, pruned: FloatArray, reference: float) -> list[Line]:
    lines = [Line("first trees", curve.sizes.astype(float), first, "first")]
    if len(pruned):
        lines.append(Line("pruned", curve.pruned_sizes.astype(float), pruned, "second", points=True))
    ends = curve.sizes[[0, -1]].astype(float)
    lines.append(Line("all trees", ends, np.array([reference, reference]), "quiet"))
    return lines


def _slider(curve: TreeCurve) -> str:
    if not len(curve.pruned_sizes):
        return ""
    sizes = curve.pruned_sizes.tolist()
    start = sizes.index(curve.enough) if curve.enough is not None else len(sizes) - 1
    return (
        '<div class="control"><label for="trees-kept">Trees to keep</label>'
        f'<input type="range" id="trees-kept" min="0" max="{len(sizes) - 1}" step="1" value="{start}">'
        '<div id="trees-kept-words" aria-live="polite"></div><code id="trees-kept-call"></code></div>'
    )


def _pair(curve: TreeCurve, loss: float, score: float) -> str:
    return f"{curve.loss_name} {_number(loss)}" + (f", {curve.score_name} {_number(score)}" * (not curve.mirrored))


def _stops(found: Measured) -> list[dict[str, Any]] | None:
    """Return what the slider says at each of its stops."""
    curve = found.curve
    if curve is None or not len(curve.pruned_sizes):
        return None
    places = draw.cursor_places(_tree_axis(curve), curve.pruned_sizes.astype(float))
    return [
        {
            "size": int(size),
            "at": places[i],
            "words": (
                f"{size:,} of {found.facts.n_trees:,} trees. "
                f"Pruned: {_pair(curve, curve.pruned_loss[i], curve.pruned_score[i])}. "
                f"The first {size:,}: {_pair(curve, curve.first_loss[i], curve.first_score[i])}."
            ),
            "call": f"scboost.prune(model, X_val, y_val, max_trees={size}).model",
        }
        for i, size in enumerate(curve.pruned_sizes)
    ]


def _redundancy(found: Measured) -> str:
    report = found.redundancy
    T, n = report.n_trees, report.n_rows
    last = max(1, T // 10)
    late = float(report.redundancy_ratio[-last:].mean())
    chance = min((T - 1) / (2 * max(n - 1, 1)), 1.0)
    held = np.cumsum(report.energy)
    components = min(int(np.searchsorted(held, 0.9)) + 1, T) if report.energy[0] > 0 else 0
    words = (
        f"<p>A tree is redundant as far as its predictions can be put together from those of the trees before it. On "
        f"average that is <b>{_share(report.redundancy)}</b> of a tree's variation over these rows; in the last tenth "
        f"of the rounds it is <b>{_share(late)}</b>. Trees without anything in common would show {_share(chance)} by "
        f"chance on {n:,} rows.</p>"
    )
    cards = _cards(
        ("redundancy", _share(report.redundancy), "mean share of a tree in the span of earlier trees"),
        ("effective number of trees", _number(round(report.effective_rank, 1)), f"of {T:,}; 1 if all were copies"),
        ("for 90% of the variation", f"{components:,}", f"directions are enough, of {T:,}"),
        ("correlation of two trees", _number(round(report.correlation, 3)), "mean of all pairs"),
    )
    if T == 1:
        return cards + "<p>A single tree cannot repeat another.</p>"
    rounds = Axis("round", 0.5, T + 0.5)
    components_axis = Axis("direction", 1, T)
    charts = [
        draw.stacked_bars(
            "What each tree repeats, and what is new", report.redundancy_ratio, rounds, ("repeats earlier trees", "new")
        ),
        draw.heat_map("Correlation of the trees' predictions", report.correlations),
        draw.line_chart(
            "How different the trees are: the spectrum",
            [Line("strength", np.arange(1.0, T + 1), report.spectrum, "first")],
            components_axis,
            Axis("strength of a direction / largest", 0, 1.05),
        ),
        draw.line_chart(
            "Directions that hold the trees' variation",
            [Line("share held", np.arange(1.0, T + 1), held, "first")],
            components_axis,
            Axis("share of the variation", 0, 1.02, percent=True),
        ),
    ]
    many = '<p class="quietly">Means over the classes.</p>' if report.n_outputs > 1 else ""
    return f'{words}{cards}{many}<div class="charts">{"".join(charts)}</div>'


def _calibration(found: Measured) -> str:
    calibration = found.calibration
    if calibration is None:
        if found.scores:
            return "<p>The trees of this model add up to a score that is no probability: nothing can be compared.</p>"
        return "<p>This needs targets <code>y</code>.</p>"
    bounds = (calibration.observed, calibration.low, calibration.high)
    if found.facts.classes:
        subject = "the second class" if "second" in calibration.subject else "the predicted class"
        if len(found.facts.classes) == 2:
            subject = f"class {found.facts.classes[1]}"
        words = (
            f"<p>Of rows with a predicted probability of 30%, 30% should come true. Rows are grouped by the predicted "
            f"probability of {escape(subject)}; lines are 95% intervals. Mean distance from the diagonal: "
            f"<b>{100 * calibration.error:.1f}%</b>; 95% of perfectly calibrated models would stay below "
            f"{100 * calibration.error_by_chance:.1f}% on as many rows.</p>"
        )
        axes = (Axis("predicted", 0, 1, percent=True), Axis("came true", 0, 1, percent=True))
        title = "Predicted and observed shares"
    else:
        words = (
            "<p>Rows are grouped by what was predicted; the points are the means of y in each group, with 95% "
            "intervals. On the diagonal, predictions are right on average.</p>"
        )
        limits = draw.around(calibration.predicted, calibration.low, calibration.high)
        axes = (Axis("predicted", *limits), Axis("mean of y", *limits))
        title = "Predicted values and means of y"
    return f'{words}<div class="charts">{draw.intervals(title, calibration.predicted, bounds, axes)}</div>'


def _features(found: Measured) -> str:
    features = found.features
    if features.own is None and features.shuffled is None:
        return "<p>The library gives no importances; without targets or with over 20 columns none are measured.</p>"
    charts = []
    if features.shuffled is not None:
        title = f"Rise of the {features.loss_name} when the column is shuffled"
        largest = float(np.abs(features.shuffled).max()) or 1.0
        decimals = max(0, 2 - int(np.floor(np.log10(largest))))  # three digits of the largest
        charts.append(
            draw.bars(
                title,
                features.names,
                features.shuffled,
                features.shuffled_error,
                lambda v: f"{round(v, decimals) + 0.0:,.{decimals}f}",
            )
        )
    if features.own is not None:
        order = np.argsort(-features.own, kind="stable")
        names = [features.names[i] for i in order]
        title = f"Importance given by {_library(found)}, share of all columns"
        charts.append(draw.bars(title, names, features.own[order], None, lambda v: f"{v:.1%}"))
    shown = len(features.names)
    words = (
        "<p>Shuffling a column shows what the model loses without it, on rows it has not seen; columns that say the "
        "same can stand in for each other, and then neither looks important.</p>"
        if features.shuffled is not None
        else ""
    )
    if shown < features.n_features:
        words += f'<p class="quietly">The {shown} most important of {features.n_features:,} columns.</p>'
    return f'{words}<div class="charts">{"".join(charts)}</div>'
