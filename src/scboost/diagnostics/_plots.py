"""Plots of diagnostics with matplotlib; public in :mod:`scboost.plotting` and drawn by the HTML report as well.

matplotlib is the only chart backend. The functions below have to return matplotlib axes, so that users can combine and
restyle them; a JavaScript chart library for the report would be a second implementation of every chart. The report
inlines the same charts as SVG, and adds what interactivity it needs (values under the pointer, a slider) by a small
script: see :mod:`scboost.diagnostics.html.charts`. matplotlib is an optional dependency, the extra ``plot``: with its
own dependencies it would add about 60 MB to every installation.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray
from scboost.diagnostics._calibration import Calibration
from scboost.diagnostics._frontier import Frontier
from scboost.diagnostics._redundancy import RedundancyReport
from scboost.diagnostics._redundancy_text import title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

_GREY = "0.35"
_MAX_CELLS = 100
_MAX_MARKERS = 30


def require(*modules: str) -> None:
    """Raise an ImportError that names the extra if one of the modules is not installed."""
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise ImportError(
                f"{module} is not installed. Plots require matplotlib, HTML reports matplotlib and jinja2: "
                "`pip install 'scboost[plot]'`."
            ) from error


def _new_axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    require("matplotlib")
    from matplotlib import pyplot as plt

    _, new = plt.subplots(figsize=(6, 4), layout="constrained")
    return cast("Axes", new)


def _hide_spines(ax: Axes) -> Axes:
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _count(*axes: Axis) -> None:
    """Keep the ticks of linear axes that count trees or components from lying between two of them."""
    from matplotlib.ticker import AutoLocator

    for axis in axes:
        locator = axis.get_major_locator()
        if isinstance(locator, AutoLocator):
            locator.set_params(integer=True)


def _marker(n: int) -> str | None:
    return "o" if n <= _MAX_MARKERS else None


def _check_labels(function: str, reports: tuple[RedundancyReport, ...], labels: list[str] | None) -> list[str]:
    if not reports:
        raise ValueError(f"{function} needs at least one report, got none.")
    if labels is None:
        return [report.model_name for report in reports]
    if len(labels) != len(reports):
        raise ValueError(f"labels must have one name for each of the {len(reports)} reports, got {labels!r}.")
    return labels


def plot_spectrum(*reports: RedundancyReport, labels: list[str] | None = None, ax: Any = None) -> Any:
    """Plot the normalized singular spectrum of one or more ensembles; flatter means less redundant.

    Parameters
    ----------
    *reports : RedundancyReport
    labels : list of str, optional
        Names for the legend; the class names of the models by default.
    ax : matplotlib Axes, optional
        Axes to draw on; new ones by default.

    Returns
    -------
    matplotlib Axes
    """
    names = _check_labels("plot_spectrum", reports, labels)
    ax = _new_axes(ax)
    for report, name in zip(reports, names, strict=True):
        T = len(report.spectrum)
        label = f"{name}: effective rank {report.effective_rank:.1f} of {T}"
        ax.plot(np.arange(1, T + 1), report.spectrum, label=label, marker=_marker(T), ms=4)
    longest = max(report.n_trees for report in reports)
    ax.axhline(1, color=_GREY, lw=0.8, ls=":")
    ax.annotate("uncorrelated trees", (longest, 1), ha="right", va="bottom", color=_GREY, fontsize=8)
    ax.set(
        xlabel="component",
        ylabel="singular value / largest",
        title="Singular spectrum of the tree predictions",
        ylim=(0, 1.1),
    )
    _count(ax.xaxis)
    ax.legend(frameon=False, loc="upper right", bbox_to_anchor=(1, 0.93), fontsize=9)
    return _hide_spines(ax)


def binned_correlations(report: RedundancyReport) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Return the correlations in at most 100 x 100 cells, each the mean of what it covers, and the cell edges."""
    R, T = report.correlations, report.n_trees
    edges = np.linspace(0, T, min(T, _MAX_CELLS) + 1).round().astype(np.intp)
    defined = np.isfinite(R)
    total = np.add.reduceat(np.add.reduceat(np.where(defined, R, 0.0), edges[:-1], 0), edges[:-1], 1)
    count = np.add.reduceat(np.add.reduceat(defined.astype(float), edges[:-1], 0), edges[:-1], 1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan), edges


def plot_correlation(report: RedundancyReport, *, ax: Any = None) -> Any:
    """Plot the correlations between trees, ordered by round, as a heat map; constant trees are grey.

    With more than 100 trees, each cell is the mean over neighbouring trees.

    Parameters
    ----------
    report : RedundancyReport
    ax : matplotlib Axes, optional
        Axes to draw on; new ones by default.

    Returns
    -------
    matplotlib Axes
    """
    ax = _new_axes(ax)
    import matplotlib as mpl

    T = report.n_trees
    image = ax.imshow(
        binned_correlations(report)[0],
        cmap=mpl.colormaps["RdBu_r"].with_extremes(bad="0.5"),
        vmin=-1,
        vmax=1,
        extent=(0.5, T + 0.5, T + 0.5, 0.5),
        interpolation="none",
    )
    bar = ax.figure.colorbar(image, ax=ax, label="correlation of predictions", shrink=0.85)
    bar.solids.set_rasterized(True)
    ax.set(xlabel="tree", ylabel="tree", title=f"Correlation of the trees (mean {report.correlation:.2f})")
    _count(ax.xaxis, ax.yaxis)
    return ax


def draw_redundancy(ax: Axes, report: RedundancyReport) -> None:
    """Draw the redundancy of each tree, and the rest of its variance, as areas that fill the axes."""
    edges = np.arange(0.5, report.n_trees + 1)
    ratio = report.redundancy_ratio
    ax.stairs(ratio, edges, fill=True, color="0.8", label="in the span of earlier trees")
    ax.stairs(np.ones_like(ratio), edges, baseline=ratio, fill=True, color="C0", alpha=0.55, label="new")
    ax.set(
        xlabel="tree",
        ylabel="share of the variance of the tree",
        ylim=(0, 1),
        xlim=(0.5, report.n_trees + 0.5),
        title="Redundancy of each tree",
    )
    _count(ax.xaxis)


def plot_innovation(report: RedundancyReport, *, ax: Any = None) -> Any:
    """Plot by tree the share of its variance outside the span of earlier trees, and that variance on a log scale.

    Parameters
    ----------
    report : RedundancyReport
    ax : matplotlib Axes, optional
        Axes to draw on; new ones by default. The variance is drawn on a twin of them.

    Returns
    -------
    matplotlib Axes
        The axes of the shares.
    """
    ax = _new_axes(ax)
    draw_redundancy(ax, report)
    rounds = np.arange(1, report.n_trees + 1)
    twin = ax.twinx()
    innovation = np.where(report.innovation > 0, report.innovation, np.nan)
    twin.plot(rounds, innovation, color="C3", lw=1.5, label="new variance", marker=_marker(len(rounds)), ms=4)
    if np.any(report.innovation > 0):
        twin.set_yscale("log")
        top = float(report.innovation.max())
        twin.set_ylim(max(1e-4 * top, 0.5 * float(np.nanmin(innovation))), 2 * top)
    twin.set_ylabel("new variance of the raw score (log)", color="C3")
    twin.tick_params(axis="y", which="both", colors="C3")
    twin.spines[["top"]].set_visible(False)
    handles = [*ax.get_legend_handles_labels()[0], *twin.get_legend_handles_labels()[0]]
    ax.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, frameon=False, fontsize=9)
    ax.spines[["top"]].set_visible(False)
    return ax


def plot_energy(*reports: RedundancyReport, labels: list[str] | None = None, ax: Any = None) -> Any:
    """Plot the cumulative explained variance of the leading components; a slower rise means less redundant.

    Parameters
    ----------
    *reports : RedundancyReport
    labels : list of str, optional
        Names for the legend; the class names of the models by default.
    ax : matplotlib Axes, optional
        Axes to draw on; new ones by default.

    Returns
    -------
    matplotlib Axes
    """
    names = _check_labels("plot_energy", reports, labels)
    ax = _new_axes(ax)
    for i, (report, name) in enumerate(zip(reports, names, strict=True)):
        explained = np.cumsum(report.energy)
        ax.plot(np.arange(1, report.n_trees + 1), explained, color=f"C{i}", label=name)
        k = report.n_components_90
        if k:
            ax.plot([k, k], [0, explained[k - 1]], color=f"C{i}", lw=0.8, ls=":")
            beside = {"xytext": (3, 3 + 11 * i), "textcoords": "offset points"}
            ax.annotate(f"{k}", (k, 0), **beside, color=f"C{i}", fontsize=9)
    ax.axhline(0.9, color=_GREY, lw=0.8, ls=":")
    ax.annotate("90 %", (1, 0.89), xycoords=("axes fraction", "data"), ha="right", va="top", color=_GREY, fontsize=8)
    ax.set(
        xlabel="components",
        ylabel="explained share of the variance",
        ylim=(0, 1.02),
        title="Variance explained by the leading components",
    )
    _count(ax.xaxis)
    ax.legend(frameon=False, loc="lower right", fontsize=9)
    return _hide_spines(ax)


def plot_trees_kept(
    paths: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]],
    *,
    full: float | None = None,
    score_name: str = "accuracy",
    ax: Any = None,
) -> Any:
    """Plot a score or loss against the number of trees, for one or more ways to select them.

    Parameters
    ----------
    paths : mapping of str to (array-like of shape (n_sizes,), array-like of shape (n_sizes,))
        Name of a selection -> numbers of trees, and scores.
    full : float, optional
        Score of all trees, drawn as a horizontal line.
    score_name : str, default="accuracy"
        Label of the vertical axis.
    ax : matplotlib Axes, optional
        Axes to draw on; new ones by default.

    Returns
    -------
    matplotlib Axes
    """
    if not paths:
        raise ValueError("paths must hold at least one path, got none.")
    ax = _new_axes(ax)
    for name, (kept, scores) in paths.items():
        ax.plot(kept, scores, label=name, marker=_marker(np.size(kept)), ms=4)
    if full is not None:
        ax.axhline(full, color=_GREY, lw=0.8, ls=":", label=f"all trees: {full:.3f}")
    ax.set(xlabel="trees", ylabel=score_name, title=f"{score_name[0].upper()}{score_name[1:]} against number of trees")
    ax.legend(frameon=False, loc="lower right", fontsize=9)
    return _hide_spines(ax)


def plot_frontier(frontier: Frontier, *, score: bool = False, ax: Any = None) -> Any:
    """Plot the held-out loss against the number of trees: the first trees of the model, and selected ones.

    Parameters
    ----------
    frontier : Frontier
        From :func:`scboost.diagnostics.frontier`.
    score : bool, default=False
        Whether to plot accuracy or R^2 instead of the loss.
    ax : matplotlib Axes, optional
        Axes to draw on; new ones by default.

    Returns
    -------
    matplotlib Axes
    """
    from matplotlib.ticker import FuncFormatter, LogLocator

    ax = _new_axes(ax)
    curves = {name: (c.n_trees, c.score if score else c.loss) for name, c in frontier.curves.items()}
    full, name = (frontier.score, frontier.score_name) if score else (frontier.loss, frontier.loss_name)
    plot_trees_kept(curves, full=full, score_name=name, ax=ax)
    values = np.concatenate([np.ravel(y) for _, y in curves.values()])
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    if frontier.n_trees > 20:
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter(plain)
        ax.xaxis.set_minor_locator(LogLocator(subs=()))
        ax.set_xlim(1, frontier.n_trees)
    if 0 < 10 * values.min() < values.max():
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(plain)
        ax.yaxis.set_minor_locator(LogLocator(subs=()))
    ax.legend(frameon=False, loc="best", fontsize=9)
    return ax


def draw_calibration(ax: Axes, calibration: Calibration) -> None:
    """Draw observed against predicted means with confidence intervals, and the diagonal of perfect calibration."""
    ends = np.array([calibration.predicted.min(), calibration.predicted.max()])
    probability = calibration.subject != "value"
    if probability:
        ends = np.array([0.0, 1.0])
    ax.plot(ends, ends, color=_GREY, lw=0.8, ls=":", label="_perfect")
    ax.vlines(calibration.predicted, calibration.low, calibration.high, color="C0", alpha=0.6, lw=1.4)
    ax.plot(calibration.predicted, calibration.observed, color="C0", marker="o", ms=4, label="observed")
    ax.set(
        xlabel=f"predicted {calibration.subject}" if probability else "predicted value",
        ylabel="observed share" if probability else "mean of y",
        title="Calibration" if probability else "Predicted and observed values",
    )
    if probability:
        ax.set(xlim=(0, 1), ylim=(0, 1))
    _hide_spines(ax)


def plot_weights(weights: npt.ArrayLike, *, reference: npt.ArrayLike | None = None, ax: Any = None) -> Any:
    """Plot the weight of each tree; dropped trees are marked on the axis.

    Parameters
    ----------
    weights : array-like of shape (n_trees,)
    reference : array-like of shape (n_trees,), optional
        Previous weights, drawn as a line.
    ax : matplotlib Axes, optional
        Axes to draw on; new ones by default.

    Returns
    -------
    matplotlib Axes
    """
    w = np.asarray(weights, np.float64)
    if w.ndim != 1:
        raise ValueError(f"weights must be a vector, got shape {w.shape}.")
    ax = _new_axes(ax)
    rounds = np.arange(1, len(w) + 1)
    kept = w != 0
    ax.bar(rounds[kept], w[kept], width=0.9, color="C0", label="kept")
    if not kept.all():
        dropped = rounds[~kept]
        ax.plot(dropped, np.zeros(len(dropped)), "|", color="C3", ms=7, label="dropped")
    if reference is not None:
        ax.step(rounds, np.asarray(reference, np.float64), where="mid", color=_GREY, lw=1, label="before")
    ax.axhline(0, color=_GREY, lw=0.8)
    ax.set(
        xlabel="tree",
        ylabel="weight",
        xlim=(0, len(w) + 1),
        title=f"Weights of the trees: {int(kept.sum())} of {len(w)} kept",
    )
    ax.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)
    return _hide_spines(ax)


def plot_report(report: RedundancyReport, *others: RedundancyReport) -> Figure:
    """Plot a report on one page: spectrum, correlations, innovation, and truncation (energy without y).

    Parameters
    ----------
    report : RedundancyReport
    *others : RedundancyReport
        Other models, for the spectrum and the truncation.

    Returns
    -------
    matplotlib Figure
    """
    require("matplotlib")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(12, 8.5), layout="constrained")
    figure.suptitle(title(report))
    plot_spectrum(report, *others, ax=axes[0, 0])
    plot_correlation(report, ax=axes[0, 1])
    plot_innovation(report, ax=axes[1, 0])
    if report.truncation is None:
        plot_energy(report, *others, ax=axes[1, 1])
        return cast("Figure", figure)
    paths = {}
    for i, r in enumerate((report, *others)):
        if r.truncation is not None:
            name = f"{r.model_name}: all {r.ensemble_score:.3f}"
            paths[name if name not in paths else f"{name} ({i + 1})"] = (np.arange(1, r.n_trees + 1), r.truncation)
    plot_trees_kept(paths, score_name=report.score_name, ax=axes[1, 1])
    return cast("Figure", figure)
