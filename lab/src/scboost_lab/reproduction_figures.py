"""Figures of the reproduction page."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from scboost_lab.models import METHODS, SCBOOST, SCBOOST_PAPER
from scboost_lab.reproduction_tables import at, cells_of, read


def _lines(axes: Any, means: Mapping[str, Sequence[float]], metric: str, x: Sequence[float]) -> None:
    """Draw one line a method."""
    for method, values in means.items():
        if not np.isnan(values).all():
            emphasis = {SCBOOST_PAPER: ("tab:red", 2.0), SCBOOST: ("black", 2.0)}.get(method, (None, 1.0))
            axes.plot(x, values, marker="o", markersize=3, label=method, color=emphasis[0], linewidth=emphasis[1])
    axes.set_ylabel(metric)


def _legend(axes: Any) -> None:
    """Put the legend into the first panel that has lines (a partial run may leave panels empty)."""
    for panel in np.ravel(axes):
        if panel.get_legend_handles_labels()[1]:
            panel.legend(fontsize=6, ncols=2)
            return


def _noise_figure(out: Path, axes: Any) -> None:
    results, clean = read(out, "noise"), read(out, "table1")
    levels = (0.0, 0.1, 0.2, 0.3)
    for row, metric in zip(axes, ("ACC", "AUC"), strict=True):
        for panel, dataset in zip(row, ("Madelon", "Jasmine"), strict=True):
            means = {
                m: [(results if v else clean).mean(metric, **at(dataset, m, f"noise={v}" if v else "")) for v in levels]
                for m in METHODS
            }
            _lines(panel, means, metric, levels)
            panel.set(title=dataset, xlabel="training labels flipped")
    _legend(axes)


def _learning_rate_figure(out: Path, axes: Any) -> None:
    results = read(out, "learning_rate")
    settings = results.distinct("setting")
    rates = [float(s.split("=")[1]) for s in settings]
    for row, metric in zip(axes, ("ACC", "AUC"), strict=True):
        for panel, dataset in zip(row, ("Jasmine", "Madelon", "Bioresponse"), strict=True):
            ours = (SCBOOST_PAPER, SCBOOST)
            means = {m: [results.mean(metric, **at(dataset, m, s)) for s in settings] for m in ours}
            _lines(panel, means, metric, rates)
            panel.set(title=dataset, xlabel="learning rate", xscale="log")
    _legend(axes)


def _spectrum_figure(out: Path, axes: Any) -> None:
    results = read(out, "spectrum")
    for cell in cells_of(results):
        s = np.nanmean(results.vectors("singular_values", **at(*cell)), axis=0)
        axes.semilogy(np.arange(1, len(s) + 1), np.maximum(s, 1e-4), label=cell[1])
    axes.set(xlabel="index", ylabel="singular value / largest", title="Jasmine", ylim=(1e-4, 1.2))
    _legend(axes)


def _depth_figure(out: Path, axes: Any) -> None:
    results = read(out, "depth")
    cells = cells_of(results)
    depths = [float(cell[2].split("=")[1]) for cell in cells]
    for panel, metric in zip(axes, ("ACC", "redundancy"), strict=True):
        _lines(panel, {SCBOOST_PAPER: [results.mean(metric, **at(*cell)) for cell in cells]}, metric, depths)
        panel.set(xlabel="tree depth", title="Jasmine")


def _collapse_figure(out: Path, axes: Any) -> None:
    results = read(out, "collapse")
    for panel, column, label in zip(
        axes,
        ("energy_kept", "cosine"),
        ("energy left to the tree", "cosine of tree and residual"),
        strict=True,
    ):
        for cell in cells_of(results):
            mean = results.vectors(column, **at(*cell)).mean(axis=0)
            panel.plot(np.arange(1, len(mean) + 1), mean, label=cell[0])
        panel.set(xlabel="round", ylabel=label, ylim=(0, 1.02))
    _legend(axes)


FIGURES: dict[str, tuple[Callable[[Path, Any], None], tuple[int, int]]] = {
    "noise": (_noise_figure, (2, 2)),
    "learning_rate": (_learning_rate_figure, (2, 3)),
    "spectrum": (_spectrum_figure, (1, 1)),
    "depth": (_depth_figure, (1, 2)),
    "collapse": (_collapse_figure, (1, 2)),
}


def draw(name: str, out: Path, path: Path) -> bool:
    """Draw a figure from the result files.

    Parameters
    ----------
    name : str
        A key of `FIGURES`.
    out : Path
        Directory of the result files.
    path : Path
        Of the PNG file.

    Returns
    -------
    bool
        False, and no file, where there are no results.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if not read(out, name).rows:
        return False
    render, (n_rows, n_columns) = FIGURES[name]
    figure = Figure(figsize=(3.4 * n_columns, 2.6 * n_rows), dpi=90, layout="constrained")
    render(out, figure.subplots(n_rows, n_columns))
    path.parent.mkdir(parents=True, exist_ok=True)
    FigureCanvasAgg(figure).print_png(path)
    return True
