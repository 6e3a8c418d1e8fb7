"""Pictures of redundancy. Every function takes matplotlib axes (or makes them) and returns the axes it drew on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost.diagnostics._redundancy import RedundancyReport
from scboost.diagnostics._redundancy_text import title

__all__ = [
    "plot_correlation",
    "plot_energy",
    "plot_innovation",
    "plot_report",
    "plot_spectrum",
    "plot_trees_kept",
    "plot_weights",
]

_TEXT = "0.35"


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    return plt.subplots(figsize=(6, 4), layout="constrained")[1]


def _plain(ax: Any) -> Any:
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _labels(reports: tuple[RedundancyReport, ...], labels: list[str] | None) -> list[str]:
    if labels is None:
        return [report.model_name for report in reports]
    if len(labels) != len(reports):
        raise ValueError(f"labels must name {len(reports)} reports, got {labels!r}.")
    return labels


def plot_spectrum(*reports: RedundancyReport, labels: list[str] | None = None, ax: Any = None) -> Any:
    """Draw the normalised singular spectrum of one or more ensembles; the flatter, the less redundant.

    Parameters
    ----------
    *reports : RedundancyReport
    labels : list of str, optional
        Names for the legend; the models' class names otherwise.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    if not reports:
        raise ValueError("plot_spectrum needs at least one report, got none.")
    ax = _axes(ax)
    for report, label in zip(reports, _labels(reports, labels), strict=True):
        T = len(report.spectrum)
        name = f"{label}: effective rank {report.effective_rank:.1f} of {T}"
        ax.plot(np.arange(1, T + 1), report.spectrum, label=name, marker="." if T <= 30 else None)
    longest = max(report.n_trees for report in reports)
    ax.axhline(1, color=_TEXT, lw=0.8, ls=":")
    ax.annotate("uncorrelated trees", (longest, 1), ha="right", va="bottom", color=_TEXT, fontsize=8)
    ax.set(
        xlabel="component",
        ylabel="singular value / largest",
        title="Spectrum of the trees' predictions",
        ylim=(0, 1.1),
    )
    ax.legend(frameon=False, loc="upper right", bbox_to_anchor=(1, 0.93), fontsize=9)
    return _plain(ax)


def plot_correlation(report: RedundancyReport, *, ax: Any = None) -> Any:
    """Draw the correlations between trees, ordered by round, as a heat map; constant trees are grey.

    Parameters
    ----------
    report : RedundancyReport
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = _axes(ax)
    import matplotlib as mpl

    T = report.n_trees
    colors = mpl.colormaps["RdBu_r"].with_extremes(bad="0.8")
    image = ax.imshow(
        report.correlations, cmap=colors, vmin=-1, vmax=1, extent=(0.5, T + 0.5, T + 0.5, 0.5), interpolation="nearest"
    )
    ax.figure.colorbar(image, ax=ax, label="correlation of predictions", shrink=0.85)
    ax.set(xlabel="round", ylabel="round", title=f"Correlation of trees (mean {report.correlation:.2f})")
    return ax


def plot_innovation(report: RedundancyReport, *, ax: Any = None) -> Any:
    """Draw by round how much of each tree is new (bars) and how much variance that is (line, log scale).

    Parameters
    ----------
    report : RedundancyReport
    ax : matplotlib Axes, optional
        The line is drawn on a twin of it.

    Returns
    -------
    matplotlib Axes
        The axes of the bars.
    """
    ax = _axes(ax)
    rounds = np.arange(1, report.n_trees + 1)
    ratio = report.redundancy_ratio
    ax.bar(rounds, ratio, width=1, color="0.85", label="repeats earlier trees")
    ax.bar(rounds, 1 - ratio, width=1, bottom=ratio, color="C0", alpha=0.55, label="new")
    ax.set(
        xlabel="round",
        ylabel="share of the tree's variance",
        ylim=(0, 1),
        xlim=(0.5, report.n_trees + 0.5),
        title="What each tree adds",
    )
    twin = ax.twinx()
    energy = np.where(report.innovation > 0, report.innovation, np.nan)
    twin.plot(rounds, energy, color="C3", lw=1.5, label="new variance", marker="." if len(rounds) <= 30 else None)
    if np.any(report.innovation > 0):
        twin.set_yscale("log")
        top = float(report.innovation.max())
        twin.set_ylim(max(1e-4 * top, 0.5 * float(np.nanmin(energy))), 2 * top)
    twin.set_ylabel("new variance in the margin (log)", color="C3")
    twin.tick_params(axis="y", which="both", colors="C3")
    twin.spines[["top"]].set_visible(False)
    handles = [*ax.get_legend_handles_labels()[0], *twin.get_legend_handles_labels()[0]]
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, frameon=False, fontsize=9)
    ax.spines[["top"]].set_visible(False)
    return ax


def plot_energy(*reports: RedundancyReport, labels: list[str] | None = None, ax: Any = None) -> Any:
    """Draw how much of the trees' variance the leading components hold together; the slower, the less redundant.

    Parameters
    ----------
    *reports : RedundancyReport
    labels : list of str, optional
        Names for the legend; the models' class names otherwise.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    if not reports:
        raise ValueError("plot_energy needs at least one report, got none.")
    ax = _axes(ax)
    for i, (report, label) in enumerate(zip(reports, _labels(reports, labels), strict=True)):
        held = np.cumsum(report.energy)
        ax.plot(np.arange(1, report.n_trees + 1), held, color=f"C{i}", label=label)
        if report.energy[0] > 0:
            k = int(np.searchsorted(held, 0.9) + 1)
            ax.plot([k, k], [0, held[min(k, len(held)) - 1]], color=f"C{i}", lw=0.8, ls=":")
            ax.annotate(f"{k}", (k, 0.91), color=f"C{i}", fontsize=9, ha="right")
    ax.axhline(0.9, color=_TEXT, lw=0.8, ls=":")
    ax.annotate("90%", (1, 0.9), va="bottom", color=_TEXT, fontsize=8)
    ax.set(
        xlabel="components",
        ylabel="share of the trees' variance",
        ylim=(0, 1.02),
        title="Components that hold the trees' variance",
    )
    ax.legend(frameon=False, loc="lower right", fontsize=9)
    return _plain(ax)


def plot_trees_kept(
    paths: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]],
    *,
    full: float | None = None,
    score_name: str = "accuracy",
    ax: Any = None,
) -> Any:
    """Draw a score against the number of trees kept, for one or more ways to keep them.

    Parameters
    ----------
    paths : mapping of str to (array-like of shape (p,), array-like of shape (p,))
        Name of a way to choose trees -> numbers of trees kept, and scores.
    full : float, optional
        Score of the whole ensemble, drawn as a line.
    score_name : str, default="accuracy"
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    if not paths:
        raise ValueError("paths must hold at least one path, got none.")
    ax = _axes(ax)
    for name, (kept, scores) in paths.items():
        ax.plot(kept, scores, label=name, marker="o" if np.size(kept) <= 30 else None, ms=4)
    if full is not None:
        ax.axhline(full, color=_TEXT, lw=0.8, ls=":", label=f"all trees: {full:.3f}")
    ax.set(xlabel="trees kept", ylabel=score_name, title=f"{score_name[0].upper()}{score_name[1:]} by trees kept")
    ax.legend(frameon=False, loc="lower right", fontsize=9)
    return _plain(ax)


def plot_weights(weights: npt.ArrayLike, *, reference: npt.ArrayLike | None = None, ax: Any = None) -> Any:
    """Draw the weight of each tree by round; dropped trees are marked below the axis.

    Parameters
    ----------
    weights : array-like of shape (T,)
    reference : array-like of shape (T,), optional
        The weights before, drawn as a line.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    w = np.asarray(weights, np.float64)
    if w.ndim != 1:
        raise ValueError(f"weights must be a vector, got shape {w.shape}.")
    ax = _axes(ax)
    rounds = np.arange(1, len(w) + 1)
    kept = w != 0
    ax.bar(rounds[kept], w[kept], width=0.9, color="C0", label="kept")
    if not kept.all():
        dropped = rounds[~kept]
        ax.plot(dropped, np.zeros(len(dropped)), "|", color="C3", ms=7, label="dropped")
    if reference is not None:
        ax.step(rounds, np.asarray(reference, np.float64), where="mid", color=_TEXT, lw=1, label="before")
    ax.axhline(0, color=_TEXT, lw=0.8)
    ax.set(
        xlabel="round",
        ylabel="weight",
        xlim=(0, len(w) + 1),
        title=f"Weights of the trees: {int(kept.sum())} of {len(w)} kept",
    )
    ax.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)
    return _plain(ax)


def plot_report(report: RedundancyReport, *others: RedundancyReport) -> Any:
    """Draw a report on one page: spectrum, correlations, innovation, and truncation (energy without y).

    Parameters
    ----------
    report : RedundancyReport
    *others : RedundancyReport
        Other models, for the spectrum and the truncation.

    Returns
    -------
    matplotlib Figure
    """
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(12, 8.5), layout="constrained")
    figure.suptitle(title(report))
    plot_spectrum(report, *others, ax=axes[0, 0])
    plot_correlation(report, ax=axes[0, 1])
    plot_innovation(report, ax=axes[1, 0])
    if report.truncation is None:
        plot_energy(report, *others, ax=axes[1, 1])
        return figure
    paths = {}
    for i, r in enumerate((report, *others)):
        if r.truncation is not None:
            name = f"{r.model_name}: all {r.ensemble_score:.3f}"
            paths[name if name not in paths else f"{name} ({i + 1})"] = (np.arange(1, r.n_trees + 1), r.truncation)
    plot_trees_kept(paths, score_name=report.score_name, ax=axes[1, 1])
    return figure
