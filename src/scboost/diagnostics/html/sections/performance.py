"""Tab "Performance": curves, confusion matrix and thresholds of a classifier; residuals; scores of other tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scboost._arrays import IntArray
from scboost.diagnostics._analysis import Analysis
from scboost.diagnostics._redundancy_text import format_percent
from scboost.diagnostics.html.charts import line_chart
from scboost.diagnostics.html.sections.types import Section
from scboost.diagnostics.html.text import number
from scboost.diagnostics.sections.classes import Classification, ClassScores, Thresholds
from scboost.diagnostics.sections.residuals import Residuals
from scboost.diagnostics.sections.tasks import TaskResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_CURVES = 4
_MAX_MATRIX = 20


def performance(analysis: Analysis) -> Section | None:
    """Return what the tab shows; None without targets."""
    if analysis.classification is not None:
        return _classification(analysis.classification, analysis.facts.classes)
    if analysis.task is not None:
        return _task(analysis.task)
    return None if analysis.residuals is None else _regression(analysis.residuals)


def _task(found: TaskResult) -> Section:
    if found.kind == "ranking":
        charts = [line_chart(lambda ax: _draw_queries(ax, found))]
    else:
        charts = [line_chart(lambda ax: _draw_survival(ax, found))] if len(found.predicted) else []
    return {
        "kind": found.kind,
        "charts": charts,
        "n_units": f"{found.n_units:,}",
        "rows": [
            (score.name, number(score.value), number(score.low), number(score.high), number(constant.value))
            for score, constant in zip(found.scores, found.baseline_scores, strict=True)
        ],
        "meanings": [(score.name, score.meaning) for score in found.scores],
    }


def _draw_queries(ax: Axes, found: TaskResult) -> None:
    counts, edges = np.histogram(found.values, bins=np.linspace(0, 1, 21))
    ax.stairs(counts, edges, fill=True, color="C0", alpha=0.55, label="queries")
    ax.set(xlabel=found.scores[0].name, ylabel="queries", title=f"{found.scores[0].name} of each query", xlim=(0, 1))
    ax.spines[["top", "right"]].set_visible(False)


def _draw_survival(ax: Axes, found: TaskResult) -> None:
    ax.plot([0, 1], [0, 1], color="0.35", lw=0.8, ls=":", label="_calibrated")
    ax.plot(found.predicted, found.observed, "o-", label="quantile bins")
    title = f"Survival at the median event time {found.time:.4g}"
    ax.set(xlabel="predicted probability", ylabel="Kaplan-Meier estimate", title=title, xlim=(0, 1), ylim=(0, 1.02))
    ax.spines[["top", "right"]].set_visible(False)


def _classification(found: Classification, labels: list[str]) -> Section:
    shown = _with_curves(found, len(labels))
    charts = []
    if shown:
        charts = [
            line_chart(lambda ax: _draw_roc(ax, shown, labels)),
            line_chart(lambda ax: _draw_precision_recall(ax, shown, labels)),
        ]
    return {
        "kind": "classification",
        "charts": charts,
        "n_curves": len(shown),
        "n_classes": len(labels),
        "matrix": _matrix(found.confusion, labels) if len(labels) <= _MAX_MATRIX else None,
        "confused": _confused(found.confusion, labels),
        "rows": [_row(scores, labels) for scores in found.classes],
        "thresholds": [_stops(thresholds, labels) for thresholds in found.thresholds],
        "start_class": len(found.thresholds) - 1 if len(labels) == 2 else 0,
    }


def _with_curves(found: Classification, n_classes: int) -> list[ClassScores]:
    """Return the classes whose curves are drawn: the second of two, or the most frequent ones."""
    drawn = [scores for scores in found.classes if scores.roc.shape[1]]
    if n_classes == 2:
        return drawn[-1:]
    return sorted(drawn, key=lambda scores: -scores.support)[:_MAX_CURVES]


def _draw_roc(ax: Axes, shown: list[ClassScores], labels: list[str]) -> None:
    for scores in shown:
        ax.plot(*scores.roc, label=f"{labels[scores.k]}: AUC {scores.auc:.3f}")
    ax.plot([0, 1], [0, 1], color="0.35", lw=0.8, ls=":", label="_random")
    ax.set(xlabel="false positive rate", ylabel="true positive rate", title="ROC curve", xlim=(0, 1), ylim=(0, 1.02))
    ax.spines[["top", "right"]].set_visible(False)


def _draw_precision_recall(ax: Axes, shown: list[ClassScores], labels: list[str]) -> None:
    for scores in shown:
        label = f"{labels[scores.k]}: average precision {scores.average_precision:.3f}"
        ax.plot(*scores.precision_recall, label=label)
    ax.set(xlabel="recall", ylabel="precision", title="Precision-recall curve", xlim=(0, 1), ylim=(0, 1.02))
    ax.spines[["top", "right"]].set_visible(False)


def _matrix(confusion: IntArray, labels: list[str]) -> Section:
    shares = confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    rows = [
        (label, [{"count": f"{n:,}", "share": float(share)} for n, share in zip(counts, row, strict=True)])
        for label, counts, row in zip(labels, confusion.tolist(), shares.tolist(), strict=True)
    ]
    return {"labels": labels, "rows": rows}


def _confused(confusion: IntArray, labels: list[str], most: int = 5) -> list[str]:
    """Return the most frequent confusions of more than two classes."""
    if len(labels) <= 2:
        return []
    wrong = confusion.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:most]
    pairs = [np.unravel_index(i, wrong.shape) for i in order]
    return [f"{labels[i]} predicted as {labels[j]}: {wrong[i, j]:,}" for i, j in pairs if wrong[i, j]]


def _row(scores: ClassScores, labels: list[str]) -> list[str]:
    values = [scores.precision, scores.recall, scores.f1, scores.auc, scores.average_precision]
    return [labels[scores.k], f"{scores.support:,}", *(number(value) for value in values)]


def _stops(thresholds: Thresholds, labels: list[str]) -> Section:
    return {
        "label": labels[thresholds.k],
        "k": thresholds.k,
        "positive": thresholds.n_positive,
        "negative": thresholds.n_negative,
        "tp": thresholds.true_positives.tolist(),
        "fp": thresholds.false_positives.tolist(),
        "best": int(np.argmax(thresholds.f1)),
    }


def _regression(found: Residuals) -> Section:
    return {
        "kind": "regression",
        "mean": number(found.mean),
        "error": number(found.standard_error),
        "biased": found.is_biased,
        "quantiles": [(format_percent(q), number(value)) for q, value in found.absolute_error.items()],
        "charts": [
            line_chart(lambda ax: _draw_residuals(ax, found)),
            line_chart(lambda ax: _draw_histogram(ax, found)),
        ],
    }


def _draw_residuals(ax: Axes, found: Residuals) -> None:
    ax.plot(found.predicted, found.residual, "o", ms=3, alpha=0.35, color="C0", label="_samples")
    ax.axhline(0, color="0.35", lw=0.8, ls=":")
    ax.plot(found.bin_predicted, found.bin_residual, color="C1", label="mean residual")
    ax.set(xlabel="prediction", ylabel="y - prediction", title="Residuals against predictions")
    ax.spines[["top", "right"]].set_visible(False)


def _draw_histogram(ax: Axes, found: Residuals) -> None:
    ax.stairs(found.counts, found.edges, fill=True, color="C0", alpha=0.55, label="samples")
    ax.set(xlabel="y - prediction", ylabel="samples", title="Distribution of the residuals")
    ax.spines[["top", "right"]].set_visible(False)
