"""A redundancy report as text and as HTML."""

from __future__ import annotations

import html as escaping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scboost.diagnostics._redundancy import RedundancyReport


def title(report: RedundancyReport) -> str:
    """Return what was measured, in one line."""
    outputs = f" x {report.n_outputs} outputs (means over outputs)" if report.n_outputs > 1 else ""
    trees = f"{report.n_trees} trees{outputs}, {report.n_rows} rows"
    return f"Redundancy of {report.model_name} ({report.library}): {trees}"


def text(report: RedundancyReport) -> str:
    """Return the report as aligned lines."""
    lines = [f"  {name:<27}{value:>10}   {meaning}" for name, value, meaning in _entries(report)]
    return "\n".join([title(report), *(line.rstrip() for line in lines)])


def html(report: RedundancyReport) -> str:
    """Return the report as an HTML table."""
    cells = "".join(
        f"<tr><td>{escaping.escape(name)}</td><td style='text-align:right'><b>{value}</b></td>"
        f"<td style='color:gray'>{escaping.escape(meaning)}</td></tr>"
        for name, value, meaning in _entries(report)
    )
    return f"<table><caption>{escaping.escape(title(report))}</caption><tbody>{cells}</tbody></table>"


def _number(x: float, digits: int = 3) -> str:
    return "undefined" if np.isnan(x) else f"{x:.{digits}f}"


def _entries(report: RedundancyReport) -> list[tuple[str, str, str]]:
    """Name, value and meaning of each number."""
    T = report.n_trees
    leading = int(np.searchsorted(np.cumsum(report.energy), 0.9) + 1) if report.energy[0] > 0 else 0
    last_tenth = float(report.redundancy_ratio[-max(1, T // 10) :].mean())
    entries = [
        ("effective rank", _number(report.effective_rank, 1), f"of {T}; 1 = copies, {T} = uncorrelated"),
        ("components for 90% energy", f"{min(leading, T)}", f"of {T}"),
        ("redundancy", _number(report.redundancy), "mean share of a tree in the span of earlier ones, 0..1"),
        ("redundancy, last tenth", _number(last_tenth), "0..1"),
        ("correlation of values", _number(report.correlation), "mean of pairs, -1..1, independent 0"),
        ("correlation of votes", _number(report.vote_correlation), "mean of pairs, -1..1, independent 0"),
        ("disagreement", _number(report.disagreement), "mean of pairs, 0..1, independent fair votes 0.5"),
        ("ambiguity share", _number(report.ambiguity_share), "spread of trees, 0..1, copies 0"),
        ("ambiguity", f"{report.ambiguity:.4g}", "squared units of the margin"),
    ]
    if report.truncation is not None:
        entries += [
            ("Q-statistic", _number(report.q_statistic), "mean of pairs, -1..1, independent errors 0"),
            ("double fault", _number(report.double_fault), "mean of pairs, share of rows both get wrong"),
            ("right votes of a tree", _number(report.tree_score), "mean share of rows"),
            (f"ensemble {report.score_name}", _number(report.ensemble_score, 4), ""),
        ]
    return entries
