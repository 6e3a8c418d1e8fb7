"""Text and HTML of a redundancy report: the verdict first, then the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from scboost.diagnostics._redundancy import RedundancyReport

_LOW, _HIGH = 0.3, 0.6


class Entry(NamedTuple):
    """One line of a report."""

    name: str
    value: str
    meaning: str


def title(report: RedundancyReport) -> str:
    """Return the model, the number of trees and the number of samples in one line."""
    outputs = f" x {report.n_outputs} outputs (means over outputs)" if report.n_outputs > 1 else ""
    trees = f"{report.n_trees} trees{outputs}, {report.n_samples} samples"
    return f"Redundancy of {report.model_name} ({report.library}): {trees}"


def verdict(report: RedundancyReport) -> str:
    """Return the result in one or two sentences."""
    T = report.n_trees
    if T == 1:
        return "A single tree has no redundancy."
    if report.effective_rank == 0:
        return "All trees are constant on these samples."
    level = "Low" if report.redundancy < _LOW else "High" if report.redundancy > _HIGH else "Moderate"
    share = format_percent(report.redundancy)
    first = f"{level} redundancy: on average {share} of the variance of a tree lies in the span of the earlier trees."
    if report.truncation is None or np.isnan(report.ensemble_score):
        return f"{first} {report.n_components_90} of {T} components explain 90 % of the variance of the trees."
    enough = int(np.argmax(report.truncation >= report.ensemble_score)) + 1
    value = f"{report.score_name} {report.ensemble_score:.3f}"
    if enough == T:
        return f"{first} All {T} trees are needed to reach the {value} of the model by truncation."
    return f"{first} The first {enough} of {T} trees reach the {value} of the model."


def as_text(report: RedundancyReport) -> str:
    """Return verdict, title and aligned lines of numbers."""
    lines = [f"  {name:<27}{value:>10}   {meaning}".rstrip() for name, value, meaning in entries(report)]
    return "\n".join([report.verdict, title(report), *lines])


def as_html(report: RedundancyReport) -> str:
    """Return verdict, title and numbers as HTML."""
    from scboost.diagnostics.html import template

    return template("redundancy.html").render(title=title(report), verdict=report.verdict, entries=entries(report))


def format_number(x: float, digits: int = 3) -> str:
    """Return a number with fixed decimals, or "undefined"."""
    return "undefined" if np.isnan(x) else f"{x:.{digits}f}"


def format_percent(x: float, digits: int = 0) -> str:
    """Return a share as a percentage, or "undefined"."""
    return "undefined" if np.isnan(x) else f"{100 * x:.{digits}f} %"


def entries(report: RedundancyReport) -> list[Entry]:
    """Return name, value and meaning of each number."""
    T, number = report.n_trees, format_number
    lines = [
        Entry("redundancy", number(report.redundancy), "mean share of a tree in the span of earlier trees, 0..1"),
        Entry("redundancy, last tenth", number(report.late_redundancy), "of the trees, 0..1"),
        Entry("effective rank", number(report.effective_rank, 1), f"of {T}; 1 = copies, {T} = uncorrelated"),
        Entry("components for 90 %", f"{report.n_components_90}", f"of {T}, of the variance of the trees"),
        Entry("correlation", number(report.correlation), "of predictions, mean of pairs, -1..1, independent 0"),
        Entry("correlation of votes", number(report.vote_correlation), "mean of pairs, -1..1, independent 0"),
        Entry("disagreement", number(report.disagreement), "mean of pairs, 0..1, independent fair votes 0.5"),
        Entry("ambiguity share", number(report.ambiguity_share), "diversity of the trees, 0..1, copies 0"),
        Entry("ambiguity", f"{report.ambiguity:.4g}", "squared units of the raw score"),
    ]
    if report.truncation is not None:
        lines += [
            Entry("Q-statistic", number(report.q_statistic), "mean of pairs, -1..1, independent errors 0"),
            Entry("double fault", number(report.double_fault), "mean of pairs, share of samples both get wrong"),
            Entry("correct votes of a tree", number(report.tree_score), "mean share of samples"),
            Entry(f"ensemble {report.score_name}", number(report.ensemble_score, 4), ""),
        ]
    return lines
