"""The reproduction page: what its template asks for, computed from the result files, and its figures."""

import csv
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scboost_lab.comparisons import mean_ranks, wilcoxon_mark
from scboost_lab.datasets import REGISTRY
from scboost_lab.models import BASELINES, METHODS, SCBOOST, SCBOOST_PAPER
from scboost_lab.page import fill, made_with, number, sections, table, template, write
from scboost_lab.reproduce import (
    ALL_ROWS,
    DISTINCT,
    DISTINCT_OVER,
    DISTINCT_SMOTE,
    DRAWN,
    DRAWN_ORDINARY,
    EXPERIMENTS,
    ORDINARY,
    OVER,
    SIGN,
    SMOTE,
    SMOTE_INSIDE,
    TEST_WEIGHTS,
    TRAINING_ROWS,
    TRAINING_SIGN,
    UNDER,
)
from scboost_lab.results import Results, storage
from scboost_lab.scoring import HIGHER_IS_BETTER, N_FOLDS

METRICS = ("ACC", "F1", "AUC")
Cell = tuple[str, str, str]  # dataset, method, setting
Shown = Mapping[str, object] | None
"""Values of a section's template, None where nothing was run."""


def read(out: Path, name: str) -> Results:
    """Read the rows of an experiment."""
    return Results(out / f"{name}.csv")


@lru_cache
def paper(name: str) -> Mapping[Cell, float]:
    """Read the paper's figures: (dataset, method, metric) to value."""
    text = files("scboost_lab").joinpath("paper", f"{name}.csv").read_text(encoding="utf-8")
    return {(r["dataset"], r["method"], r["metric"]): float(r["value"]) for r in csv.DictReader(text.splitlines())}


def printed(name: str, dataset: str, method: str, metric: str) -> float:
    """Find the paper's figure for one of our rows: its only SCBoost column belongs to the literal method."""
    column = {SCBOOST_PAPER: "SCBoost", SCBOOST: ""}.get(method, method)
    return paper(name).get((dataset, column, metric), np.nan)


def at(dataset: str, method: str, setting: str = "") -> dict[str, str]:
    """Name a cell for `Results`."""
    return {"dataset": dataset, "method": method, "setting": setting}


def sets_of(results: Results) -> list[str]:
    """Names in the order of the registry, whatever their status."""
    present = {row["dataset"] for row in (*results.rows, *results.failed)}
    return [name for name in (*REGISTRY, "synthetic") if name in present]


def cells_of(results: Results) -> list[Cell]:
    """Cells in the order of the file."""
    return list(dict.fromkeys((row["dataset"], row["method"], row["setting"]) for row in results.rows))


def made(results: Results) -> str:
    """How the rows were made."""
    if not results.runs:
        return ""
    counts = Counter(len(results.select(**at(*cell))) for cell in cells_of(results))
    uneven = f" Folds per cell: {', '.join(f'{n} ({c} cells)' for n, c in counts.items())}." if len(counts) > 1 else ""
    return f"<sub>{results.made_by()}{uneven}</sub>"


def beside(ours: float, theirs: float, mark: str = "") -> list[str]:
    """Our figure, the paper's, and the difference."""
    difference = ours - theirs
    return [number(ours) + mark, number(theirs), "-" if np.isnan(difference) else f"{difference:+.4f}"]


def beside_header(metrics: Sequence[str]) -> list[str]:
    """Name the columns of `beside`."""
    return [f"{metric} {what}" for metric in metrics for what in ("ours", "paper", "diff.")]


def escaped(mark: str) -> str:
    """Keep Markdown from reading stars."""
    return mark.replace("*", "\\*")


# --- sections ---------------------------------------------------------------------------------------------------------


def table1(out: Path) -> Shown:
    """Out-of-the-box performance: ours, the paper's, the difference, for every cell."""
    results = read(out, "table1")
    blocks = []
    for dataset in sets_of(results):
        body = []
        for method in METHODS:
            status = results.status(**at(dataset, method))
            if status:
                body.append([method, status, *[""] * 9])
                continue
            row = [method]
            for metric in METRICS:
                ours = results.mean(metric, **at(dataset, method))
                row += beside(ours, printed("table1", dataset, method, metric), _mark(results, dataset, method, metric))
            body.append([*row, number(results.mean("log_loss", **at(dataset, method)))])
        note = REGISTRY[dataset].note
        header = ["method", *beside_header(METRICS), "log-loss ours"]
        blocks.append(f"**{dataset}**{' (' + note + ')' if note else ''}\n\n{table(header, body)}")
    return {
        "agreement": _agreement(results),
        "overview": _overview(results),
        **_ranks(results),
        "by_set": "\n\n".join(blocks),
        "made": made(results),
    }


def _mark(results: Results, dataset: str, method: str, metric: str) -> str:
    ours, theirs = (results.values(metric, **at(dataset, m)) for m in (SCBOOST, method))
    if method == SCBOOST or len(ours) != len(theirs) or len(ours) < N_FOLDS:
        return ""
    return escaped(wilcoxon_mark(theirs, ours))


def _agreement(results: Results) -> str:
    """How near the baseline columns are, set by set."""
    body = []
    for dataset in sets_of(results):
        gaps = _gaps(results, dataset)
        if gaps:
            counts = [str(sum(g <= limit for g in gaps)) for limit in (0.001, 0.005, 0.01)]
            body.append([dataset, str(len(gaps)), *counts, number(float(np.median(gaps)))])
    within = [f"within {limit}" for limit in (0.001, 0.005, 0.01)]
    return table(["dataset", "baseline cells", *within, "median absolute difference"], body)


def _overview(results: Results) -> str:
    body = []
    for dataset in sets_of(results):
        row = [dataset]
        for metric in ("ACC", "AUC"):
            values = {m: results.mean(metric, **at(dataset, m)) for m in METHODS}
            best = max((m for m in BASELINES if not np.isnan(values[m])), key=values.__getitem__, default="")
            row += [
                f"{number(values.get(best, np.nan))} {best}",
                number(printed("table1", dataset, SCBOOST_PAPER, metric)),
                *(number(values[m]) for m in (SCBOOST_PAPER, SCBOOST)),
            ]
        body.append(row)
    what = ("best baseline", "SCBoost, printed", "SCBoost as printed, run", "our default")
    return table(["dataset", *(f"{m}: {w}" for m in ("ACC", "AUC") for w in what)], body)


def _ranks(results: Results) -> dict[str, object]:
    """Mean ranks over the sets on which every method was run."""
    names = {"ACC": "ACC", "AUC": "AUC", "log_loss": "log-loss"}
    sets = [d for d in sets_of(results) if all(results.values("log_loss", **at(d, m)) for m in METHODS)]
    ranks = {}
    for metric in names if sets else ():
        means = {m: {d: results.mean(metric, **at(d, m)) for d in sets} for m in METHODS}
        ranks[metric] = mean_ranks(means, METHODS, sets, HIGHER_IS_BETTER[metric])
    body = [[m, *(f"{ranks[metric][m]:.2f}" for metric in ranks)] for m in METHODS] if ranks else []
    return {"n_ranked": len(sets), "ranks": table(["method", *names.values()], body)}


def table2(out: Path) -> Shown:
    """Tuned baselines: the best trial of each cell."""
    results, defaults = read(out, "table2"), read(out, "table1")
    blocks = []
    for dataset in sets_of(results):
        body = []
        for method in BASELINES:
            trials = results.select(**at(dataset, method))
            if not trials:
                body.append([method, results.status(**at(dataset, method)) or "not run", *[""] * 11])
                continue
            best = max(trials, key=lambda row: (row["stopped"] != "1", float(row["ACC"])))
            row = [method, str(len(trials)), str(_stopped(trials))]
            for metric in METRICS:
                mine = defaults.values(metric, **at(dataset, SCBOOST))
                fold_values = [float(v) for v in best[f"{metric}_folds"].split()]
                mark = escaped(wilcoxon_mark(fold_values, mine)) if len(mine) == len(fold_values) else ""
                row += beside(float(best[metric]), printed("table2", dataset, method, metric), mark)
            chosen = json.loads(best["params"])
            body.append([*row, ", ".join(f"{name} {value:.3g}" for name, value in chosen.items())])
        for method in (SCBOOST_PAPER, SCBOOST):
            row = [method, "-", "-"]
            for metric in METRICS:
                ours = defaults.mean(metric, **at(dataset, method))
                row += beside(ours, printed("table2", dataset, method, metric))
            body.append([*row, "defaults"])
        header = ["method", "trials", "stopped", *beside_header(METRICS), "parameters"]
        blocks.append(f"**{dataset}, {_trials(results, dataset)}** (the paper: 50)\n\n{table(header, body)}")
    return {"by_set": "\n\n".join(blocks), "made": made(results)} if blocks else None


def _stopped(trials: Sequence[Mapping[str, str]]) -> int:
    return sum(row["stopped"] == "1" for row in trials)


def _trials(results: Results, dataset: str) -> str:
    """Say how many trials the cells of a set have, and how many of all of them were stopped early."""
    of_set = results.select(dataset=dataset)
    counts = Counter(row["method"] for row in of_set)
    fewest, most = min(counts[m] for m in BASELINES), max(counts.values(), default=0)
    span = f"{fewest} to {most}" if fewest < most else str(most)
    stopped = _stopped(of_set)
    return f"{span} trials a cell" + (f", {stopped} of {len(of_set)} stopped early" if stopped else "")


def table3(out: Path) -> Shown:
    """Diversity of the learners."""
    results = read(out, "table3")
    measures, rest = ("Dis", "Q-s", "Amb"), {"learners": 0, "weighted": 1, "differ": 4, "staged_differ": 4}
    blocks = []
    for dataset in sets_of(results):
        body = []
        for method in METHODS:
            cell = at(dataset, method)
            if not results.select(**cell):
                body.append([method, results.status(**cell) or "not run", *[""] * 12])
                continue
            row = [method]
            for metric in measures:
                row += beside(results.mean(metric, **cell), printed("table3", dataset, method, metric))
            body.append([*row, *(number(results.mean(column, **cell), digits) for column, digits in rest.items())])
        names = ("learners", "with weight", "values differ", "stages differ")
        blocks.append(f"**{dataset}**\n\n{table(['method', *beside_header(measures), *names], body)}")
    return {"by_set": "\n\n".join(blocks), "made": made(results)} if blocks else None


def table4(out: Path) -> Shown:
    """Ablation of the printed algorithm."""
    results = read(out, "table4")
    body = []
    for dataset, setting in product(sets_of(results), results.distinct("setting")):
        cell = at(dataset, SCBOOST_PAPER, setting)
        row = [dataset, setting]
        for metric in METRICS:
            row += beside(results.mean(metric, **cell), paper("table4").get((dataset, setting, metric), np.nan))
        body.append([*row, number(results.mean("log_loss", **cell))])
    header = ["dataset", "parts", *beside_header(METRICS), "log-loss ours"]
    return {"table": table(header, body), "made": made(results)} if body else None


def _by_setting(out: Path, name: str, metrics: Sequence[str], clean: Results | None = None) -> Shown:
    """Rows of (dataset, method), a column for each setting, a table for each metric."""
    results = read(out, name)
    settings = results.distinct("setting")
    blocks = []
    for metric in metrics:
        body = []
        for dataset, method in product(sets_of(results), METHODS):
            if results.select(dataset=dataset, method=method):
                first = [number(clean.mean(metric, **at(dataset, method)))] if clean else []
                cells = [number(results.mean(metric, **at(dataset, method, s))) for s in settings]
                body.append([dataset, method, *first, *cells])
        header = ["dataset", "method", *(["noise=0"] if clean else []), *settings]
        blocks.append(f"{metric}:\n\n{table(header, body)}")
    return {"by_setting": "\n\n".join(blocks), "made": made(results)} if results.rows else None


def noise(out: Path) -> Shown:
    """Label noise in the training folds."""
    return _by_setting(out, "noise", METRICS, read(out, "table1"))


def learning_rate(out: Path) -> Shown:
    """Learning-rate sensitivity."""
    return _by_setting(out, "learning_rate", METRICS)


def covariance_penalty(out: Path) -> Shown:
    """Sensitivity to lambda."""
    return _by_setting(out, "covariance_penalty", ("ACC", "AUC"))


def spectrum(out: Path) -> Shown:
    """How many singular directions hold the energy of the learners' predictions."""
    results = read(out, "spectrum")
    body = []
    for cell in cells_of(results):
        s = np.nan_to_num(results.vectors("singular_values", **at(*cell)))
        share = np.cumsum(s**2, axis=1) / np.sum(s**2, axis=1, keepdims=True)
        needed = [f"{np.mean((share < level).sum(axis=1) + 1):.1f}" for level in (0.5, 0.9, 0.99)]
        ratios = [f"{s[:, i].mean():.3f}" if s.shape[1] > i else "-" for i in (1, 9, 49)]
        body.append([*cell[:2], *needed, *ratios])
    columns = [*(f"directions for {p} %" for p in (50, 90, 99)), *(f"s{i}/s1" for i in (2, 10, 50))]
    return {"table": table(["dataset", "method", *columns], body), "made": made(results)} if body else None


def depth(out: Path) -> Shown:
    """Tree depth."""
    results = read(out, "depth")
    body = [
        [cell[2].removeprefix("max_depth="), *(number(results.mean(c, **at(*cell))) for c in (*METRICS, "redundancy"))]
        for cell in cells_of(results)
    ]
    return {"table": table(["depth", *METRICS, "redundancy ratio"], body), "made": made(results)} if body else None


def timing(out: Path) -> Shown:
    """Seconds a fit, from the folds of Table 1."""
    results = read(out, "table1")
    sets = ("OVA_Uterus", "Madelon", "Jasmine", "Bioresponse", "Creditcard")
    body = []
    for method in METHODS:
        row = [method]
        for dataset in sets:
            ours = results.median("fit_seconds", **at(dataset, method))
            row += [number(ours, 2), number(printed("timing", dataset, method, "fit_seconds"), 2)]
        body.append(row)
    return {"table": table(["method", *(f"{d} {w}" for d in sets for w in ("ours", "paper"))], body)}


def exponents(results: Results, method: str, column: str) -> tuple[float, float] | None:
    """Least-squares exponents of n and T in the logarithms of the shortest times."""
    points = []
    for cell in cells_of(results):
        values = results.values(column, **at(*cell))
        if cell[1] == method and values:
            n, T = (float(part.split("=")[1]) for part in cell[2].split())
            points.append((np.log(n), np.log(T), np.log(min(values))))
    if len(points) < 4:
        return None
    A: NDArray[np.float64] = np.array(points)
    design = np.column_stack([A[:, 0], A[:, 1], np.ones(len(A))])
    slope = np.linalg.lstsq(design, A[:, 2], rcond=None)[0]
    return float(slope[0]), float(slope[1])


def complexity(out: Path) -> Shown:
    """Exponents of rows and rounds in the time of a fit."""
    results = read(out, "complexity")
    body = []
    for label, method, column in (
        ("literal, its SVDs alone", "literal", "svd_seconds"),
        ("literal, whole fit", "literal", "fit_seconds"),
        ("ours, `from_paper`", SCBOOST_PAPER, "fit_seconds"),
        ("ours, default", SCBOOST, "fit_seconds"),
    ):
        found = exponents(results, method, column)
        if found:
            largest = [
                f"{min(values):.2f}"
                for setting in ("n=4000 T=100", "n=4000 T=200", "n=16000 T=100")
                if (values := results.values(column, **at("synthetic", method, setting)))
            ]
            body.append([label, *(f"{e:.2f}" for e in found), ", ".join(largest)])
    seconds = "seconds at (4,000, 100), (4,000, 200), (16,000, 100)"
    header = ["implementation", "exponent of n", "exponent of T", seconds]
    return {"table": table(header, body), "made": made(results)} if results.rows else None


def collapse(out: Path) -> Shown:
    """Say what the weights and the targets of the literal algorithm become."""
    results = read(out, "collapse")
    if not results.rows:
        return None
    penalties = [c.removeprefix("trees_kept_") for c in results.rows[0] if c.startswith("trees_kept_")]
    scores = ("ACC", "AUC", "ACC_unweighted", "AUC_unweighted")
    body = []
    for cell in cells_of(results):
        where = at(*cell)
        energy, cosine = results.vectors("energy_kept", **where), results.vectors("cosine", **where)
        kept = [results.values(f"trees_kept_{penalty}", **where) for penalty in penalties]
        body.append(
            [
                cell[0],
                *(f"{np.median(k):.0f} ({min(k):.0f} to {max(k):.0f})" for k in kept),
                number(max(results.values("F_largest", **where)), 2),
                *(number(results.mean(c, **where)) for c in scores),
                *(f"{energy[:, t].mean():.2f}" for t in (1, 9, 49, 99)),
                *(f"{cosine[:, t].mean():.2f}" for t in (0, 9, 49, 99)),
            ]
        )
    header = [
        "dataset",
        *(f"trees kept of 100, lambda {penalty}" for penalty in penalties),
        "largest abs. F",
        *(score.replace("_unweighted", " without CRW") for score in scores),
        *(f"energy, round {t}" for t in (2, 10, 50, 100)),
        *(f"cosine, round {t}" for t in (1, 10, 50, 100)),
    ]
    return {"table": table(header, body), "made": made(results)}


def protocols(out: Path) -> Shown:
    """Figures under protocols other than the honest one."""
    results, honest = read(out, "protocols"), read(out, "table1")
    blocks = []
    for dataset, metric in product(sets_of(results), METRICS):
        settings = [s for s in results.distinct("setting") if results.select(dataset=dataset, setting=s)]
        body = [
            [
                method,
                number(printed("table1", dataset, method, metric)),
                number(honest.mean(metric, **at(dataset, method))),
                *(number(results.mean(metric, **at(dataset, method, s))) for s in settings),
            ]
            for method in METHODS
            if results.select(dataset=dataset, method=method)
        ]
        header = ["method", "printed", "honest protocol", *settings]
        blocks.append(f"**{dataset}, {metric}**\n\n{table(header, body)}")
    return {"by_set": "\n\n".join(blocks), "made": made(results)} if blocks else None


SECTIONS: dict[str, Callable[[Path], Shown]] = {
    "table1": table1,
    "table2": table2,
    "table3": table3,
    "noise": noise,
    "learning_rate": learning_rate,
    "covariance_penalty": covariance_penalty,
    "table4": table4,
    "spectrum": spectrum,
    "depth": depth,
    "timing": timing,
    "complexity": complexity,
    "collapse": collapse,
    "protocols": protocols,
}


def section(name: str, out: Path) -> str:
    """Render one experiment as Markdown.

    Parameters
    ----------
    name : str
        A key of `SECTIONS`.
    out : Path
        Directory of the result files.

    Returns
    -------
    str
    """
    text = sections(template("reproduction"))[name]
    values = SECTIONS[name](out)
    return f"{text.splitlines()[0]}\n\nNot run.\n" if values is None else fill(text, **values)


# --- figures ----------------------------------------------------------------------------------------------------------


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


# --- the whole page ---------------------------------------------------------------------------------------------------


def page_text(out: Path) -> str:
    """Write the page from the result files in a directory."""
    values = {**_introduction(out), **_why(out), "versions": made_with(*(read(out, name) for name in EXPERIMENTS))}
    parts = [fill(sections(template("reproduction"))[""], **values)]
    for name in SECTIONS:
        text = section(name, out)
        parts.append(text)
        if name in FIGURES and read(out, name).rows:
            title = text.splitlines()[0].removeprefix("## ")
            parts.append(f"![{title}](figures/reproduction_{name}.png)\n")
    return "\n".join(parts)


def write_page(out: Path, page: Path) -> None:
    """Write the page, and its figures to ``figures`` beside it.

    Parameters
    ----------
    out : Path
        Directory of the result files.
    page : Path
        Of the Markdown file.
    """
    write(page, page_text(out))
    with storage(page, "the result files are complete"):
        for name in FIGURES:
            draw(name, out, page.parent / "figures" / f"reproduction_{name}.png")


def _introduction(out: Path) -> dict[str, object]:
    results = read(out, "table1")
    settings: dict[str, Any] = {}
    for run in results.runs:
        settings = run.get(SCBOOST_PAPER, settings)
    unavailable = {row["dataset"] for row in results.failed if row["status"].startswith("no data")}
    missing = [name for name in REGISTRY if name in unavailable]
    availability = "all ten sets."
    if missing:
        availability = f"**not available here: {', '.join(missing)}**; the rows say so and nothing stands in for it."
    return {
        "learning_rate": settings.get("learning_rate", "-"),
        "covariance_penalty": settings.get("covariance_penalty", "-"),
        "availability": availability,
        "notes": "".join(f"- {name}: {entry.note}.\n" for name, entry in REGISTRY.items() if entry.note),
    }


def _why(out: Path) -> dict[str, object]:
    """Explain the difference of the SCBoost column: what was shown, and what is conjecture."""
    honest, other, literal = read(out, "table1"), read(out, "protocols"), read(out, "collapse")
    votes, ablation = read(out, "table3"), read(out, "table4")
    gaps = {dataset: _gaps(honest, dataset) for dataset in sets_of(honest)}
    cells = [gap for of_set in gaps.values() for gap in of_set]
    shortfall = [
        printed("table1", dataset, SCBOOST_PAPER, "ACC") - honest.mean("ACC", **at(dataset, SCBOOST_PAPER))
        for dataset in sets_of(honest)
    ]
    energy = {cell[0]: literal.vectors("energy_kept", **at(*cell)).mean(axis=0) for cell in cells_of(literal)}

    def compared(dataset: str, method: str, metric: str, setting: str, digits: int) -> list[str]:
        theirs = printed("table1", dataset, method, metric)
        ours = honest.mean(metric, **at(dataset, method)), other.mean(metric, **at(dataset, method, setting))
        return [number(value, digits) for value in (theirs, *ours)]

    def nearness(results: Results, dataset: str, setting: str) -> str:
        found = _gaps(results, dataset, setting, ("ACC",))
        return f"{np.mean(found):.3f} ({sum(gap <= 0.01 for gap in found)} of {len(found)})" if found else "-"

    schemes = (UNDER, OVER, DRAWN, SMOTE, SMOTE_INSIDE, DISTINCT, DISTINCT_OVER, DISTINCT_SMOTE)
    balanced = [dataset for dataset in ("QSAR", "Scene", "Creditcard") if dataset in sets_of(other)]
    resampled = [["honest protocol", *(nearness(honest, dataset, "") for dataset in balanced)]]
    resampled += [[scheme, *(nearness(other, dataset, scheme) for dataset in balanced)] for scheme in schemes]
    leaks = [
        [dataset, method, *compared(dataset, method, "ACC", TRAINING_ROWS, 3)]
        for dataset, method in product(sets_of(other), (SCBOOST_PAPER, SCBOOST, "RF", "LGBM"))
        if other.select(**at(dataset, method, TRAINING_ROWS))
    ]
    ways = (TEST_WEIGHTS, ALL_ROWS, SIGN, TRAINING_SIGN)
    seen = [dataset for dataset in sets_of(other) if other.select(**at(dataset, SCBOOST_PAPER, ALL_ROWS))]
    labels_seen = [
        [
            dataset,
            *compared(dataset, SCBOOST_PAPER, "ACC", ways[0], 3),
            *(number(other.mean("ACC", **at(dataset, SCBOOST_PAPER, way)), 3) for way in ways[1:]),
        ]
        for dataset in seen
    ]
    away = {
        f"{dataset}, {way}": abs(
            other.mean("ACC", **at(dataset, SCBOOST_PAPER, way)) - printed("table1", dataset, SCBOOST_PAPER, "ACC")
        )
        for dataset, way in product(seen, ways)
        if other.select(**at(dataset, SCBOOST_PAPER, way))
    }
    nearest = min(away, key=away.__getitem__, default="(not run)")
    ordinary = [
        [dataset, metric, *compared(dataset, "NGB", metric, ORDINARY, 4)]
        for dataset, metric in product(sets_of(other), METRICS)
        if other.select(**at(dataset, "NGB", ORDINARY))
    ]
    twice = {name: 2 * REGISTRY[name].n_positive for name in ("QSAR", "Scene")}  # in both the smaller class

    def disagreements(methods: Sequence[str], column: str) -> list[tuple[str, float, float]]:
        found = [
            (f"{d} {m}", printed("table3", d, m, "Dis"), votes.mean(column, **at(d, m)))
            for d, m in product(sets_of(votes), methods)
        ]
        return [each for each in found if not np.isnan(each[1:]).any()]

    values = disagreements(("RF", "ADA", SCBOOST_PAPER), "differ")
    stages = disagreements(("CAT", "NGB"), "staged_differ")
    scene = (("drawn", DRAWN), ("drawn and without natural gradients", DRAWN_ORDINARY))
    return {
        "n_cells": len(cells),
        "within_1": sum(gap <= 0.001 for gap in cells),
        "within_5": sum(gap <= 0.005 for gap in cells),
        "within_10": sum(gap <= 0.01 for gap in cells),
        "near": ", ".join(d for d, g in gaps.items() if g and np.median(g) <= 0.005) or "no set",
        "far": ", ".join(d for d, g in gaps.items() if g and np.median(g) > 0.005) or "no set",
        "shortfall": _range(shortfall),
        "largest_score": number(max(literal.values("F_largest"), default=np.nan), 2),
        "kept": _kept(literal.values("trees_kept_0.1")),
        "energy_10": _shares(energy, 9),
        "energy_50": _shares(energy, 49),
        "with_projection": _range([ablation.mean("ACC", **at(d, SCBOOST_PAPER, "SRP")) for d in sets_of(ablation)]),
        "without_projection": _range(
            [ablation.mean("ACC", **at(d, SCBOOST_PAPER, "neither")) for d in sets_of(ablation)]
        ),
        "leaks": _indented(["dataset", "method", "printed", "honest protocol", TRAINING_ROWS], leaks),
        "balanced_rows": " and ".join(map(str, twice.values())),
        "balanced_distance": number(max(_from_whole(name, n) for name, n in twice.items()), 2),
        "whole_distance": number(max(_from_whole(name, REGISTRY[name].n_rows) for name in twice), 2),
        "external_distance": number(_from_whole("QSAR", 1725), 2),
        "labels_seen": _indented(["dataset", "printed", "honest protocol", *ways], labels_seen),
        "nearest": nearest,
        "nearest_gap": number(away.get(nearest, np.nan), 3),
        "resampled": _indented(["protocol", *balanced], resampled if balanced else []),
        "scene_ngb": ", ".join(
            f"{name} {number(other.mean('ACC', **at('Scene', 'NGB', setting)), 3)}" for name, setting in scene
        )
        + f", printed {number(printed('table1', 'Scene', 'NGB', 'ACC'), 3)}",
        "ordinary": _indented(["dataset", "metric", "printed", "default", ORDINARY], ordinary),
        "values_gap": number(max((abs(ours - theirs) for _, theirs, ours in values), default=np.nan))
        + f" ({len(values)} cells)",
        "stages": ", ".join(f"{cell} {theirs:.4f} and {ours:.4f}" for cell, theirs, ours in stages) or "(not run)",
    }


def _indented(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Render a table inside a numbered item."""
    return "".join(f"   {line}\n" for line in table(header, rows).splitlines()) if rows else "   (not run)\n"


def _from_whole(dataset: str, n: int) -> float:
    """Largest distance of a printed accuracy times n from a whole number."""
    counts = n * np.array([printed("table1", dataset, method, "ACC") for method in METHODS])
    return float(np.nanmax(np.abs(counts - np.round(counts))))


def _gaps(results: Results, dataset: str, setting: str = "", metrics: Sequence[str] = METRICS) -> list[float]:
    """Absolute differences from the printed figures over the baseline cells of a set."""
    gaps = [
        abs(results.mean(metric, **at(dataset, method, setting)) - printed("table1", dataset, method, metric))
        for method, metric in product(BASELINES, metrics)
    ]
    return [gap for gap in gaps if not np.isnan(gap)]


def _range(values: Sequence[float]) -> str:
    found = [v for v in values if not np.isnan(v)]
    return f"{min(found):.3f} to {max(found):.3f}" if found else "(not run)"


def _kept(kept: Sequence[float]) -> str:
    if not kept:
        return "(not run)"
    one = sum(v == 1 for v in kept)
    return f"one tree has all the weight in {one} of {len(kept)} folds, and never more than {max(kept):.0f} have any"


def _shares(energy: Mapping[str, Any], t: int) -> str:
    return ", ".join(f"{100 * e[t]:.0f} % ({name})" for name, e in energy.items()) or "(not run)"
