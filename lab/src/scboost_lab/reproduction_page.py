"""Render the reproduction page and its figures from the result files; every number in it comes from them."""

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from scboost_lab.baselines import BASELINES, METHODS, SCBOOST, SCBOOST_PAPER
from scboost_lab.datasets import REGISTRY
from scboost_lab.protocol import KEY, N_FOLDS, wilcoxon_mark
from scboost_lab.reproduce import DRAWN, DRAWN_ORDINARY, ORDINARY, OVER, TRAINING_ROWS, UNDER

METRICS = ("ACC", "F1", "AUC")
Row = dict[str, str]
Cell = tuple[str, str, str]  # dataset, method, setting


class Results:
    """The rows of one result file, grouped by (dataset, method, setting)."""

    def __init__(self, out: Path, name: str) -> None:
        self.name = name
        path = out / f"{name}.csv"
        self.rows: list[Row] = []
        if path.exists():
            with path.open(newline="", encoding="utf-8") as stream:
                keyed = {tuple(row[column] for column in KEY): row for row in csv.DictReader(stream)}
            self.rows = list(keyed.values())
        self.cells: dict[Cell, list[Row]] = defaultdict(list)
        self.status: dict[Cell, str] = {}
        for row in self.rows:
            cell = (row["dataset"], row["method"], row["setting"])
            if row["status"] == "ok":
                self.cells[cell].append(row)
            else:
                self.status[cell] = row["status"]
        for rows in self.cells.values():
            rows.sort(key=lambda row: int(row["fold"]))
        provenance = path.with_suffix(".json")
        self.runs: list[dict[str, Any]] = json.loads(provenance.read_text())["runs"] if provenance.exists() else []

    def values(self, cell: Cell, metric: str) -> list[float]:
        """Fold values of a cell, in the order of the folds."""
        return [float(row[metric]) for row in self.cells.get(cell, []) if row[metric] != ""]

    def mean(self, cell: Cell, metric: str) -> float | None:
        """Mean over the folds, None where there are none."""
        values = self.values(cell, metric)
        return float(np.mean(values)) if values else None

    def vectors(self, cell: Cell, column: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Fold by fold, the numbers that a column holds as text; shape (folds, longest), padded with nan."""
        lists = [[float(v) for v in row[column].split()] for row in self.cells.get(cell, [])]
        padded = np.full((len(lists), max(map(len, lists), default=0)), np.nan)
        for i, numbers in enumerate(lists):
            padded[i, : len(numbers)] = numbers
        return padded

    def datasets(self) -> list[str]:
        """Names in the order of the registry, whatever their status."""
        present = {cell[0] for cell in (*self.cells, *self.status)}
        return [name for name in (*REGISTRY, "synthetic") if name in present]

    def settings(self) -> list[str]:
        """Return the settings in the order of the file."""
        return list(dict.fromkeys(row["setting"] for row in self.rows))

    def footer(self) -> str:
        """How the rows were made."""
        if not self.runs:
            return ""
        last = self.runs[-1]
        commands = list(dict.fromkeys(run["command"] for run in self.runs))
        packages = ", ".join(f"{k} {v}" for k, v in last["versions"].items())
        folds = Counter(len(rows) for rows in self.cells.values())
        partial = (
            "" if len(folds) <= 1 else f"; folds per cell: {', '.join(f'{n} ({c} cells)' for n, c in folds.items())}"
        )
        return (
            f"<sub>`{self.name}.csv`: {len(self.rows)} rows, {last['date'][:10]}, by "
            f"{' and '.join(f'`{c}`' for c in commands)}; Python {last['python']}, {packages}{partial}."
            "</sub>\n"
        )


@lru_cache
def paper(name: str) -> Mapping[Cell, float]:
    """Read the paper's figures: (dataset, method, metric) to value."""
    text = files("scboost_lab").joinpath("paper", f"{name}.csv").read_text(encoding="utf-8")
    return {(r["dataset"], r["method"], r["metric"]): float(r["value"]) for r in csv.DictReader(text.splitlines())}


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def _number(value: float | None, digits: int = 4) -> str:
    return "-" if value is None or np.isnan(value) else f"{value:.{digits}f}"


def _difference(ours: float | None, theirs: float | None) -> str:
    return "-" if ours is None or theirs is None else f"{ours - theirs:+.4f}"


def _printed(table: str, dataset: str, method: str, metric: str) -> float | None:
    """Find the paper's figure for one of our rows: its only SCBoost column belongs to the literal method."""
    column = {SCBOOST_PAPER: "SCBoost", SCBOOST: ""}.get(method, method)
    return paper(table).get((dataset, column, metric))


def table1(out: Path) -> str:
    """Out-of-the-box performance: ours, the paper's, the difference, for every cell."""
    results = Results(out, "table1")
    text = [_agreement(results), _overview(results)]
    for dataset in results.datasets():
        rows = []
        for method in METHODS:
            cell = (dataset, method, "")
            if cell in results.status:
                rows.append([method, results.status[cell], *[""] * 9])
                continue
            row = [method]
            for metric in METRICS:
                ours, theirs = results.mean(cell, metric), _printed("table1", dataset, method, metric)
                row += [
                    _number(ours) + _mark(results, cell, metric),
                    _number(theirs),
                    _difference(ours, theirs),
                ]
            rows.append([*row, _number(results.mean(cell, "log_loss"))])
        header = [
            "method",
            *(f"{m} {w}" for m in METRICS for w in ("ours", "paper", "diff.")),
            "log-loss ours",
        ]
        note = REGISTRY[dataset].note
        text.append(f"**{dataset}**{' (' + note + ')' if note else ''}\n\n" + _table(header, rows))
    text.append(
        "Marks: the fold values differ from those of our default SCBoost by the Wilcoxon signed-rank test, "
        "\\* p < 0.05, \\*\\* p < 0.01, # no difference at all.\n"
    )
    return "\n".join([*text, results.footer()])


def _mark(results: Results, cell: Cell, metric: str) -> str:
    ours = results.values((cell[0], SCBOOST, ""), metric)
    theirs = results.values(cell, metric)
    if cell[1] == SCBOOST or len(ours) != len(theirs) or len(ours) < N_FOLDS:
        return ""
    return wilcoxon_mark(theirs, ours).replace("*", "\\*")


def _agreement(results: Results) -> str:
    """How near the baseline columns are, set by set."""
    rows = []
    for dataset in results.datasets():
        gaps = _gaps(results, dataset)
        if gaps:
            counts = [str(sum(g <= limit for g in gaps)) for limit in (0.001, 0.005, 0.01)]
            rows.append([dataset, str(len(gaps)), *counts, _number(float(np.median(gaps)))])
    header = [
        "dataset",
        "baseline cells",
        "within 0.001",
        "within 0.005",
        "within 0.01",
        "median absolute difference",
    ]
    return "How near our baseline columns are to the printed ones:\n\n" + _table(header, rows)


def _overview(results: Results) -> str:
    rows = []
    ranks: dict[str, list[float]] = defaultdict(list)
    for dataset in results.datasets():
        row = [dataset]
        for metric in ("ACC", "AUC"):
            values = {m: v for m in METHODS if (v := results.mean((dataset, m, ""), metric)) is not None}
            best = max((m for m in BASELINES if m in values), key=values.__getitem__, default="")
            row += [
                f"{_number(values.get(best))} {best}",
                _number(_printed("table1", dataset, SCBOOST_PAPER, metric)),
                _number(values.get(SCBOOST_PAPER)),
                _number(values.get(SCBOOST)),
            ]
        losses = {m: v for m in METHODS if (v := results.mean((dataset, m, ""), "log_loss")) is not None}
        if len(losses) == len(METHODS):
            for metric, sign in (("ACC", -1), ("AUC", -1), ("log_loss", 1)):
                from scipy.stats import rankdata

                means = [sign * (results.mean((dataset, m, ""), metric) or 0.0) for m in METHODS]
                for method, rank in zip(METHODS, rankdata(means), strict=True):
                    ranks[f"{method} {metric}"].append(float(rank))
        rows.append(row)
    what = ("best baseline", "SCBoost, printed", "SCBoost as printed, run", "our default")
    text = "The column in question:\n\n" + _table(
        ["dataset", *(f"{m}: {w}" for m in ("ACC", "AUC") for w in what)], rows
    )
    if ranks:
        n = len(next(iter(ranks.values())))
        body = [[m, *(f"{np.mean(ranks[f'{m} {s}']):.2f}" for s in ("ACC", "AUC", "log_loss"))] for m in METHODS]
        text += f"\nMean rank among the nine methods over {n} sets (1 is best):\n\n"
        text += _table(["method", "ACC", "AUC", "log-loss"], body)
    return text


def table2(out: Path) -> str:
    """Tuned baselines: the best trial of each cell."""
    results = Results(out, "table2")
    defaults = Results(out, "table1")
    if not results.rows:
        return "Not run.\n"
    text = ["Baselines tuned by Optuna's TPE over the paper's search spaces.\n"]
    for dataset in results.datasets():
        trials = {len(trial_rows) for (name, _, _), trial_rows in results.cells.items() if name == dataset} or {0}
        span = f"{min(trials)} to {max(trials)}" if len(trials) > 1 else str(*trials)
        rows = []
        for method in BASELINES:
            trial_rows = results.cells.get((dataset, method, ""))
            if not trial_rows:
                rows.append([method, results.status.get((dataset, method, ""), "not run"), *[""] * 10])
                continue
            best = max(trial_rows, key=lambda row: float(row["ACC"]))
            row = [method, str(len(trial_rows))]
            for metric in METRICS:
                best_mean, theirs = float(best[metric]), _printed("table2", dataset, method, metric)
                mine = defaults.values((dataset, SCBOOST, ""), metric)
                folds = [float(v) for v in best[f"{metric}_folds"].split()]
                mark = wilcoxon_mark(folds, mine).replace("*", "\\*") if len(mine) == len(folds) else ""
                row += [_number(best_mean) + mark, _number(theirs), _difference(best_mean, theirs)]
            chosen = json.loads(best["params"])
            rows.append([*row, ", ".join(f"{name} {value:.3g}" for name, value in chosen.items())])
        for method in (SCBOOST_PAPER, SCBOOST):
            row = [method, "-"]
            for metric in METRICS:
                ours, theirs = (
                    defaults.mean((dataset, method, ""), metric),
                    _printed("table2", dataset, method, metric),
                )
                row += [_number(ours), _number(theirs), _difference(ours, theirs)]
            rows.append([*row, "defaults"])
        header = [
            "method",
            "trials",
            *(f"{m} {w}" for m in METRICS for w in ("ours", "paper", "diff.")),
            "parameters",
        ]
        text.append(f"**{dataset}, {span} trials a cell** (the paper: 50)\n\n" + _table(header, rows))
    text.append(
        "As in the paper, the ten folds that choose the parameters are the ones that are reported: these "
        "figures are optimistic. QSAR is ours: the paper does not tune on it.\n"
    )
    return "\n".join([*text, results.footer()])


def table3(out: Path) -> str:
    """Diversity of the learners."""
    results = Results(out, "table3")
    if not results.rows:
        return "Not run.\n"
    text = []
    for dataset in results.datasets():
        rows = []
        for method in METHODS:
            cell = (dataset, method, "")
            if cell not in results.cells:
                rows.append([method, results.status.get(cell, "not run"), *[""] * 12])
                continue
            row = [method]
            for metric in ("Dis", "Q-s", "Amb"):
                ours, theirs = results.mean(cell, metric), _printed("table3", dataset, method, metric)
                row += [_number(ours), _number(theirs), _difference(ours, theirs)]
            rest = (("learners", 0), ("weighted", 1), ("differ", 4), ("staged_differ", 4))
            rows.append([*row, *(_number(results.mean(cell, column), digits) for column, digits in rest)])
        header = [
            "method",
            *(f"{m} {w}" for m in ("Dis", "Q-s", "Amb") for w in ("ours", "paper", "diff.")),
            "learners",
            "with weight",
            "values differ",
            "stages differ",
        ]
        text.append(f"**{dataset}**\n\n" + _table(header, rows))
    text.append(
        "Votes are those of the learners on the test fold (the sign of a boosted tree's value, a forest tree's or "
        "stump's class); Dis and Q-s are means over pairs. Amb is sum w (h - F)^2 with the ensemble's own weights, "
        "in squared units of its score, so it compares folds and settings of a method, not methods. The paper "
        "defines none of the three. *Values differ* is the share of all ordered pairs, a learner with itself included, "
        "whose real values are not equal; *stages differ* the same for the classes after 1, 2, ... rounds.\n"
    )
    return "\n".join([*text, results.footer()])


def table4(out: Path) -> str:
    """Ablation of the printed algorithm."""
    results = Results(out, "table4")
    if not results.rows:
        return "Not run.\n"
    rows = []
    for dataset in results.datasets():
        for setting in results.settings():
            row = [dataset, setting]
            for metric in METRICS:
                ours = results.mean((dataset, SCBOOST_PAPER, setting), metric)
                theirs = paper("table4").get((dataset, setting, metric))
                row += [_number(ours), _number(theirs), _difference(ours, theirs)]
            rows.append([*row, _number(results.mean((dataset, SCBOOST_PAPER, setting), "log_loss"))])
    header = [
        "dataset",
        "parts",
        *(f"{m} {w}" for m in METRICS for w in ("ours", "paper", "diff.")),
        "log-loss ours",
    ]
    return _table(header, rows) + "\n" + results.footer()


def _by_setting(results: Results, metrics: Sequence[str], methods: Sequence[str], extra: Results | None = None) -> str:
    """Rows of (dataset, method), a column for each setting, a table for each metric."""
    text = []
    settings = results.settings()
    for metric in metrics:
        rows = []
        for dataset in results.datasets():
            for method in methods:
                if not any((dataset, method, s) in results.cells for s in settings):
                    continue
                first = [_number(extra.mean((dataset, method, ""), metric))] if extra else []
                cells = [_number(results.mean((dataset, method, s), metric)) for s in settings]
                rows.append([dataset, method, *first, *cells])
        header = ["dataset", "method", *(["noise=0"] if extra else []), *settings]
        text.append(f"{metric}:\n\n" + _table(header, rows))
    return "\n".join(text)


def noise(out: Path) -> str:
    """Label noise in the training folds."""
    results = Results(out, "noise")
    if not results.rows:
        return "Not run.\n"
    note = "Labels are flipped in the training folds only, the same ones for every method; the paper does not say.\n\n"
    return note + _by_setting(results, METRICS, list(METHODS), Results(out, "table1")) + "\n" + results.footer()


def learning_rate(out: Path) -> str:
    """Learning-rate sensitivity."""
    results = Results(out, "learning_rate")
    if not results.rows:
        return "Not run.\n"
    note = "The first tree does not depend on the learning rate, so nor do weights that are all on it.\n\n"
    return note + _by_setting(results, METRICS, [SCBOOST_PAPER, SCBOOST]) + "\n" + results.footer()


def covariance_penalty(out: Path) -> str:
    """Sensitivity to lambda."""
    results = Results(out, "covariance_penalty")
    if not results.rows:
        return "Not run.\n"
    return _by_setting(results, ("ACC", "AUC"), [SCBOOST_PAPER]) + "\n" + results.footer()


def spectrum(out: Path) -> str:
    """How many singular directions hold the energy of the learners' predictions."""
    results = Results(out, "spectrum")
    if not results.rows:
        return "Not run.\n"
    rows = []
    for dataset, method, setting in results.cells:
        s = np.nan_to_num(results.vectors((dataset, method, setting), "singular_values"))
        share = np.cumsum(s**2, axis=1) / np.sum(s**2, axis=1, keepdims=True)
        needed = [f"{np.mean((share < level).sum(axis=1) + 1):.1f}" for level in (0.5, 0.9, 0.99)]
        at = [f"{s[:, i].mean():.3f}" if s.shape[1] > i else "-" for i in (1, 9, 49)]
        rows.append([dataset, method, *needed, *at])
    header = [
        "dataset",
        "method",
        *(f"directions for {p} %" for p in (50, 90, 99)),
        *(f"s{i}/s1" for i in (2, 10, 50)),
    ]
    return _table(header, rows) + "\n" + results.footer()


def depth(out: Path) -> str:
    """Tree depth."""
    results = Results(out, "depth")
    if not results.rows:
        return "Not run.\n"
    rows = [
        [
            s.removeprefix("max_depth="),
            *(_number(results.mean((d, m, s), c)) for c in (*METRICS, "redundancy")),
        ]
        for d, m, s in results.cells
    ]
    return _table(["depth", *METRICS, "redundancy ratio"], rows) + "\n" + results.footer()


def timing(out: Path) -> str:
    """Seconds a fit, from the folds of Table 1."""
    results = Results(out, "table1")
    sets = ("OVA_Uterus", "Madelon", "Jasmine", "Bioresponse", "Creditcard")
    rows = []
    for method in METHODS:
        row = [method]
        for dataset in sets:
            values = results.values((dataset, method, ""), "fit_seconds")
            ours = float(np.median(values)) if values else None
            row += [_number(ours, 2), _number(_printed("timing", dataset, method, "fit_seconds"), 2)]
        rows.append(row)
    return (
        _table(["method", *(f"{d} {w}" for d in sets for w in ("ours", "paper"))], rows)
        + "\nMedian over the ten folds, one thread, on a machine that did other work at the same time; "
        "the paper's machine had 20 logical cores.\n"
    )


def _exponents(results: Results, method: str, column: str) -> tuple[float, float] | None:
    """Least-squares exponents of n and T in the logarithms of the shortest times."""
    points = []
    for cell in results.cells:
        values = results.values(cell, column)
        if cell[1] == method and values:
            n, T = (float(part.split("=")[1]) for part in cell[2].split())
            points.append((np.log(n), np.log(T), np.log(min(values))))
    if len(points) < 4:
        return None
    A: np.ndarray[Any, np.dtype[np.float64]] = np.array(points)
    design = np.column_stack([A[:, 0], A[:, 1], np.ones(len(A))])
    slope = np.linalg.lstsq(design, A[:, 2], rcond=None)[0]
    return float(slope[0]), float(slope[1])


def complexity(out: Path) -> str:
    """Exponents of rows and rounds in the time of a fit."""
    results = Results(out, "complexity")
    if not results.rows:
        return "Not run.\n"
    rows = []
    for label, method, column in (
        ("literal, its SVDs alone", "literal", "svd_seconds"),
        ("literal, whole fit", "literal", "fit_seconds"),
        ("ours, `from_paper`", SCBOOST_PAPER, "fit_seconds"),
        ("ours, default", SCBOOST, "fit_seconds"),
    ):
        exponents = _exponents(results, method, column)
        if exponents:
            largest = ", ".join(
                f"{min(results.values(('synthetic', method, s), column)):.2f}"
                for s in ("n=4000 T=100", "n=4000 T=200", "n=16000 T=100")
                if results.values(("synthetic", method, s), column)
            )
            rows.append([label, f"{exponents[0]:.2f}", f"{exponents[1]:.2f}", largest])
    header = [
        "implementation",
        "exponent of n",
        "exponent of T",
        "seconds at (4,000, 100), (4,000, 200), (16,000, 100)",
    ]
    return (
        _table(header, rows)
        + "\nThe paper's claim is n T^3 for the projections and n T for the trees.\n\n"
        + results.footer()
    )


def collapse(out: Path) -> str:
    """Say what the weights and the targets of the literal algorithm become."""
    results = Results(out, "collapse")
    if not results.rows:
        return "Not run.\n"
    rows = []
    penalties = [c.removeprefix("trees_kept_") for c in results.rows[0] if c.startswith("trees_kept_")]
    for cell in results.cells:
        energy, cosine = results.vectors(cell, "energy_kept"), results.vectors(cell, "cosine")
        kept = [results.values(cell, f"trees_kept_{penalty}") for penalty in penalties]
        rows.append(
            [
                cell[0],
                *(f"{np.median(k):.0f} ({min(k):.0f} to {max(k):.0f})" for k in kept),
                _number(max(results.values(cell, "F_largest")), 2),
                *(_number(results.mean(cell, c)) for c in ("ACC", "AUC", "ACC_unweighted", "AUC_unweighted")),
                *(f"{energy[:, t].mean():.2f}" for t in (1, 9, 49, 99)),
                *(f"{cosine[:, t].mean():.2f}" for t in (0, 9, 49, 99)),
            ]
        )
    header = [
        "dataset",
        *(f"trees kept of 100, lambda {penalty}" for penalty in penalties),
        "largest abs. F",
        "ACC",
        "AUC",
        "ACC without CRW",
        "AUC without CRW",
        *(f"energy, round {t}" for t in (2, 10, 50, 100)),
        *(f"cosine, round {t}" for t in (1, 10, 50, 100)),
    ]
    return (
        _table(header, rows)
        + "\nTrees kept: median and range over the folds. Energy: the part of the squared residual "
        "that the projection leaves to the next tree. Cosine: between the residual and the fitted tree on the training "
        "rows; at 0 the step does not reduce the loss.\n\n" + results.footer()
    )


def protocols(out: Path) -> str:
    """Figures under protocols other than the honest one."""
    results = Results(out, "protocols")
    honest = Results(out, "table1")
    if not results.rows:
        return "Not run.\n"
    text = []
    for dataset in results.datasets():
        settings = [s for s in results.settings() if any((dataset, m, s) in results.cells for m in METHODS)]
        methods = [m for m in METHODS if any((dataset, m, s) in results.cells for s in settings)]
        for metric in METRICS:
            rows = [
                [
                    method,
                    _number(_printed("table1", dataset, method, metric)),
                    _number(honest.mean((dataset, method, ""), metric)),
                    *(_number(results.mean((dataset, method, s), metric)) for s in settings),
                ]
                for method in methods
            ]
            header = ["method", "printed", "honest protocol", *settings]
            text.append(f"**{dataset}, {metric}**\n\n" + _table(header, rows))
    return "\n".join([*text, results.footer()])


SECTIONS: dict[str, tuple[str, Callable[[Path], str]]] = {
    "table1": ("Table 1: out-of-the-box performance", table1),
    "table2": ("Table 2: tuned baselines", table2),
    "table3": ("Table 3: diversity of the learners", table3),
    "noise": ("Figures 2 and 3: label noise", noise),
    "learning_rate": ("Learning-rate sensitivity", learning_rate),
    "covariance_penalty": ("Sensitivity to lambda", covariance_penalty),
    "table4": ("Table 4: ablation", table4),
    "spectrum": ("Singular spectrum of the learners' predictions", spectrum),
    "depth": ("Tree depth, accuracy and redundancy", depth),
    "timing": ("Wall-clock table", timing),
    "complexity": ("The complexity claim", complexity),
    "collapse": ("What the weights and the targets become", collapse),
    "protocols": ("Other protocols and the figures they give", protocols),
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
    title, render = SECTIONS[name]
    return f"## {title}\n\n{render(out)}"


def _lines(axes: Any, results: Results, cells: Mapping[str, Sequence[Cell]], metric: str, x: Sequence[float]) -> None:
    """Draw one line a method through its cells."""
    for method, of_method in cells.items():
        y = [results.mean(cell, metric) for cell in of_method]
        if any(v is not None for v in y):
            emphasis = {SCBOOST_PAPER: ("tab:red", 2.0), SCBOOST: ("black", 2.0)}.get(method, (None, 1.0))
            values = [np.nan if v is None else v for v in y]
            axes.plot(x, values, marker="o", markersize=3, label=method, color=emphasis[0], linewidth=emphasis[1])
    axes.set_ylabel(metric)


def _legend(axes: Any) -> None:
    """Put the legend into the first panel that has lines (a partial run may leave panels empty)."""
    for panel in np.ravel(axes):
        if panel.get_legend_handles_labels()[1]:
            panel.legend(fontsize=6, ncols=2)
            return


def _noise_figure(out: Path, axes: Any) -> None:
    results, clean = Results(out, "noise"), Results(out, "table1")
    for (dataset, method, setting), rows in clean.cells.items():
        results.cells[dataset, method, setting] = rows
    levels = (0.0, 0.1, 0.2, 0.3)
    for row, metric in zip(axes, ("ACC", "AUC"), strict=True):
        for panel, dataset in zip(row, ("Madelon", "Jasmine"), strict=True):
            cells = {m: [(dataset, m, f"noise={v}" if v else "") for v in levels] for m in METHODS}
            _lines(panel, results, cells, metric, levels)
            panel.set(title=dataset, xlabel="training labels flipped")
    _legend(axes)


def _learning_rate_figure(out: Path, axes: Any) -> None:
    results = Results(out, "learning_rate")
    rates = [float(s.split("=")[1]) for s in results.settings()]
    for row, metric in zip(axes, ("ACC", "AUC"), strict=True):
        for panel, dataset in zip(row, ("Jasmine", "Madelon", "Bioresponse"), strict=True):
            cells = {m: [(dataset, m, s) for s in results.settings()] for m in (SCBOOST_PAPER, SCBOOST)}
            _lines(panel, results, cells, metric, rates)
            panel.set(title=dataset, xlabel="learning rate", xscale="log")
    _legend(axes)


def _spectrum_figure(out: Path, axes: Any) -> None:
    results = Results(out, "spectrum")
    for cell in results.cells:
        s = np.nanmean(results.vectors(cell, "singular_values"), axis=0)
        axes.semilogy(np.arange(1, len(s) + 1), np.maximum(s, 1e-4), label=cell[1])
    axes.set(xlabel="index", ylabel="singular value / largest", title="Jasmine", ylim=(1e-4, 1.2))
    _legend(axes)


def _depth_figure(out: Path, axes: Any) -> None:
    results = Results(out, "depth")
    depths = [float(s.split("=")[1]) for s in results.settings()]
    for panel, metric in zip(axes, ("ACC", "redundancy"), strict=True):
        _lines(panel, results, {SCBOOST_PAPER: list(results.cells)}, metric, depths)
        panel.set(xlabel="tree depth", title="Jasmine")


def _collapse_figure(out: Path, axes: Any) -> None:
    results = Results(out, "collapse")
    for panel, column, label in zip(
        axes,
        ("energy_kept", "cosine"),
        ("energy left to the tree", "cosine of tree and residual"),
        strict=True,
    ):
        for cell in results.cells:
            mean = results.vectors(cell, column).mean(axis=0)
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

    if not Results(out, name).cells:
        return False
    render, (n_rows, n_columns) = FIGURES[name]
    figure = Figure(figsize=(3.4 * n_columns, 2.6 * n_rows), dpi=90, layout="constrained")
    render(out, figure.subplots(n_rows, n_columns))
    path.parent.mkdir(parents=True, exist_ok=True)
    FigureCanvasAgg(figure).print_png(path)
    return True


def write_page(out: Path, page: Path) -> None:
    """Write the page, and its figures to ``figures`` beside it.

    Parameters
    ----------
    out : Path
        Directory of the result files.
    page : Path
        Of the Markdown file.
    """
    from scboost_lab.protocol import StorageError

    parts = [_introduction(out), _why(out)]
    try:
        for name in SECTIONS:
            parts.append(section(name, out))
            if name in FIGURES and draw(name, out, page.parent / "figures" / f"reproduction_{name}.png"):
                parts.append(f"![{SECTIONS[name][0]}](figures/reproduction_{name}.png)\n")
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("\n".join(parts), encoding="utf-8")
    except OSError as error:
        raise StorageError(f"cannot write {page} ({error.strerror or error}); the result files are complete") from error


def _introduction(out: Path) -> str:
    results = Results(out, "table1")
    settings: dict[str, Any] = {}
    for run in results.runs:
        settings = run.get(SCBOOST_PAPER, settings)
    missing = [
        name for name in REGISTRY if any(c[0] == name and s.startswith("no data") for c, s in results.status.items())
    ]
    availability = "all ten sets."
    if missing:
        availability = f"**not available here: {', '.join(missing)}**; the rows say so and nothing stands in for it."
    return _prose("introduction").format(
        learning_rate=settings.get("learning_rate", "-"),
        covariance_penalty=settings.get("covariance_penalty", "-"),
        availability=availability,
        notes="".join(f"- {name}: {entry.note}.\n" for name, entry in REGISTRY.items() if entry.note),
    )


def _prose(name: str) -> str:
    return files("scboost_lab").joinpath("paper", f"{name}.md").read_text(encoding="utf-8")


def _why(out: Path) -> str:
    """Explain the difference of the SCBoost column: what was shown, and what is conjecture."""
    table, other, literal = Results(out, "table1"), Results(out, "protocols"), Results(out, "collapse")
    votes, ablation = Results(out, "table3"), Results(out, "table4")
    gaps = {dataset: _gaps(table, dataset) for dataset in table.datasets()}
    cells = [gap for of_set in gaps.values() for gap in of_set]
    shortfall = [
        theirs - ours
        for dataset in table.datasets()
        if (ours := table.mean((dataset, SCBOOST_PAPER, ""), "ACC")) is not None
        and (theirs := _printed("table1", dataset, SCBOOST_PAPER, "ACC")) is not None
    ]
    energy = {cell[0]: literal.vectors(cell, "energy_kept").mean(axis=0) for cell in literal.cells}

    def compared(dataset: str, method: str, metric: str, setting: str, digits: int) -> list[str]:
        ours = table.mean((dataset, method, ""), metric), other.mean((dataset, method, setting), metric)
        return [_number(value, digits) for value in (_printed("table1", dataset, method, metric), *ours)]

    def nearness(results: Results, dataset: str, setting: str) -> str:
        found = _gaps(results, dataset, setting, ("ACC",))
        return f"{np.mean(found):.3f} ({sum(gap <= 0.01 for gap in found)} of {len(found)})" if found else "-"

    schemes = (UNDER, OVER, DRAWN)
    resampled = [
        [dataset, nearness(table, dataset, ""), *(nearness(other, dataset, scheme) for scheme in schemes)]
        for dataset in ("QSAR", "Scene", "Creditcard")
        if dataset in other.datasets()
    ]
    leaks = [
        [dataset, method, *compared(dataset, method, "ACC", TRAINING_ROWS, 3)]
        for dataset, method in product(other.datasets(), (SCBOOST_PAPER, SCBOOST, "RF", "LGBM"))
        if (dataset, method, TRAINING_ROWS) in other.cells
    ]
    ordinary = [
        [dataset, metric, *compared(dataset, "NGB", metric, ORDINARY, 4)]
        for dataset, metric in product(other.datasets(), METRICS)
        if (dataset, "NGB", ORDINARY) in other.cells
    ]
    twice = {name: 2 * REGISTRY[name].n_positive for name in ("QSAR", "Scene")}  # in both the smaller class

    def disagreements(methods: Sequence[str], column: str) -> list[tuple[str, float, float]]:
        return [
            (f"{dataset} {method}", theirs, ours)
            for dataset, method in product(votes.datasets(), methods)
            if (ours := votes.mean((dataset, method, ""), column)) is not None
            and (theirs := _printed("table3", dataset, method, "Dis")) is not None
        ]

    values = disagreements(("RF", "ADA", SCBOOST_PAPER), "differ")
    stages = disagreements(("CAT", "NGB"), "staged_differ")
    return _prose("why").format(
        n_cells=len(cells),
        within_1=sum(gap <= 0.001 for gap in cells),
        within_5=sum(gap <= 0.005 for gap in cells),
        within_10=sum(gap <= 0.01 for gap in cells),
        near=", ".join(d for d, g in gaps.items() if g and np.median(g) <= 0.005) or "no set",
        far=", ".join(d for d, g in gaps.items() if g and np.median(g) > 0.005) or "no set",
        shortfall=_range(shortfall),
        largest_score=_number(max((v for c in literal.cells for v in literal.values(c, "F_largest")), default=None), 2),
        kept=_kept([v for c in literal.cells for v in literal.values(c, "trees_kept_0.1")]),
        energy_10=_shares(energy, 9),
        energy_50=_shares(energy, 49),
        with_projection=_range([ablation.mean((d, SCBOOST_PAPER, "SRP"), "ACC") for d in ablation.datasets()]),
        without_projection=_range([ablation.mean((d, SCBOOST_PAPER, "neither"), "ACC") for d in ablation.datasets()]),
        leaks=_indented(["dataset", "method", "printed", "honest protocol", TRAINING_ROWS], leaks),
        balanced_rows=" and ".join(map(str, twice.values())),
        balanced_distance=_number(max(_from_whole(name, n) for name, n in twice.items()), 2),
        whole_distance=_number(max(_from_whole(name, REGISTRY[name].n_rows) for name in twice), 2),
        resampled=_indented(["dataset", "honest protocol", *schemes], resampled),
        scene_ngb=", ".join(
            f"{name} {_number(other.mean(('Scene', 'NGB', setting), 'ACC'), 3)}"
            for name, setting in (("drawn", DRAWN), ("drawn and without natural gradients", DRAWN_ORDINARY))
        )
        + f", printed {_number(_printed('table1', 'Scene', 'NGB', 'ACC'), 3)}",
        ordinary=_indented(["dataset", "metric", "printed", "default", ORDINARY], ordinary),
        values_gap=_number(max((abs(ours - theirs) for _, theirs, ours in values), default=None))
        + f" ({len(values)} cells)",
        stages=", ".join(f"{cell} {theirs:.4f} and {ours:.4f}" for cell, theirs, ours in stages) or "(not run)",
    )


def _indented(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Render a table inside a numbered item."""
    return "".join(f"   {line}\n" for line in _table(header, rows).splitlines()) if rows else "   (not run)\n"


def _from_whole(dataset: str, n: int) -> float:
    """Largest distance of a printed accuracy times n from a whole number."""
    printed = (_printed("table1", dataset, method, "ACC") for method in METHODS)
    counts = [n * value for value in printed if value is not None]
    return max(abs(count - round(count)) for count in counts)


def _gaps(table: Results, dataset: str, setting: str = "", metrics: Sequence[str] = METRICS) -> list[float]:
    """Absolute differences from the printed figures over the baseline cells of a set."""
    return [
        abs(ours - theirs)
        for method in BASELINES
        for metric in metrics
        if (ours := table.mean((dataset, method, setting), metric)) is not None
        and (theirs := _printed("table1", dataset, method, metric)) is not None
    ]


def _range(values: Sequence[float | None]) -> str:
    found = [v for v in values if v is not None]
    return f"{min(found):.3f} to {max(found):.3f}" if found else "(not run)"


def _kept(kept: Sequence[float]) -> str:
    if not kept:
        return "(not run)"
    one = sum(v == 1 for v in kept)
    return f"one tree has all the weight in {one} of {len(kept)} folds, and never more than {max(kept):.0f} have any"


def _shares(energy: Mapping[str, Any], t: int) -> str:
    return ", ".join(f"{100 * e[t]:.0f} % ({name})" for name, e in energy.items()) or "(not run)"
