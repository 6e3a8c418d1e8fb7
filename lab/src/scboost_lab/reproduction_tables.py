"""Tables of the reproduction page, from the result files."""

import csv
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scboost_lab.comparisons import mean_ranks, wilcoxon_mark
from scboost_lab.datasets import REGISTRY
from scboost_lab.models import BASELINES, METHODS, SCBOOST, SCBOOST_DEFAULT, SCBOOST_PAPER, SCORED_METHODS
from scboost_lab.page import fill, number, sections, table, template
from scboost_lab.results import Results
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
    column = {SCBOOST_PAPER: "SCBoost", SCBOOST: "", SCBOOST_DEFAULT: ""}.get(method, method)
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


def gaps_to_paper(results: Results, dataset: str, setting: str = "", metrics: Sequence[str] = METRICS) -> list[float]:
    """Absolute differences from the printed figures over the baseline cells of a set."""
    gaps = [
        abs(results.mean(metric, **at(dataset, method, setting)) - printed("table1", dataset, method, metric))
        for method, metric in product(BASELINES, metrics)
    ]
    return [gap for gap in gaps if not np.isnan(gap)]


def table1(out: Path) -> Shown:
    """Out-of-the-box performance: ours, the paper's, the difference, for every cell."""
    results = read(out, "table1")
    blocks = []
    for dataset in sets_of(results):
        body = []
        for method in SCORED_METHODS:
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
        gaps = gaps_to_paper(results, dataset)
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
            values = {m: results.mean(metric, **at(dataset, m)) for m in SCORED_METHODS}
            best = max((m for m in BASELINES if not np.isnan(values[m])), key=values.__getitem__, default="")
            row += [
                f"{number(values.get(best, np.nan))} {best}",
                number(printed("table1", dataset, SCBOOST_PAPER, metric)),
                *(number(values[m]) for m in (SCBOOST_PAPER, SCBOOST, SCBOOST_DEFAULT)),
            ]
        body.append(row)
    what = ("best baseline", "SCBoost, printed", "SCBoost as printed, run", "our 100 rounds", "our default")
    return table(["dataset", *(f"{m}: {w}" for m in ("ACC", "AUC") for w in what)], body)


def _ranks(results: Results) -> dict[str, object]:
    """Mean ranks over the sets on which every method was run."""
    names = {"ACC": "ACC", "AUC": "AUC", "log_loss": "log-loss"}
    sets = [d for d in sets_of(results) if all(results.values("log_loss", **at(d, m)) for m in SCORED_METHODS)]
    ranks = {}
    for metric in names if sets else ():
        means = {m: {d: results.mean(metric, **at(d, m)) for d in sets} for m in SCORED_METHODS}
        ranks[metric] = mean_ranks(means, SCORED_METHODS, sets, HIGHER_IS_BETTER[metric])
    body = [[m, *(f"{ranks[metric][m]:.2f}" for metric in ranks)] for m in SCORED_METHODS] if ranks else []
    return {"n_ranked": len(sets), "n_methods": len(SCORED_METHODS), "ranks": table(["method", *names.values()], body)}


def table2(out: Path) -> Shown:
    """Tuned baselines: the best trial of each cell."""
    results, defaults = read(out, "table2"), read(out, "table1")
    blocks = []
    for dataset in sets_of(results):
        body = []
        for method in BASELINES:
            trials = results.select(**at(dataset, method))
            best = _best_trial(trials)
            if best is None:
                body.append([method, results.status(**at(dataset, method)) or "not run", *[""] * 11])
                continue
            row = [method, str(len(trials)), str(_stopped(trials))]
            for metric in METRICS:
                mine = defaults.values(metric, **at(dataset, SCBOOST_DEFAULT))
                fold_values = [float(v) for v in best[f"{metric}_folds"].split()]
                mark = escaped(wilcoxon_mark(fold_values, mine)) if len(mine) == len(fold_values) else ""
                row += beside(float(best[metric]), printed("table2", dataset, method, metric), mark)
            chosen = json.loads(best["params"])
            body.append([*row, ", ".join(f"{name} {value:.3g}" for name, value in chosen.items())])
        for method, what in ((SCBOOST_PAPER, "defaults"), (SCBOOST, "100 rounds"), (SCBOOST_DEFAULT, "defaults")):
            row = [method, "-", "-"]
            for metric in METRICS:
                ours = defaults.mean(metric, **at(dataset, method))
                row += beside(ours, printed("table2", dataset, method, metric))
            body.append([*row, what])
        header = ["method", "trials", "stopped", *beside_header(METRICS), "parameters"]
        blocks.append(f"**{dataset}, {_trials(results, dataset)}** (the paper: 50)\n\n{table(header, body)}")
    if not blocks:
        return None
    return {**_against_tuned(results, defaults), "by_set": "\n\n".join(blocks), "made": made(results)}


def _best_trial(trials: Sequence[Mapping[str, str]]) -> Mapping[str, str] | None:
    """Return the trial with the highest accuracy among those that were not stopped early."""
    return max(trials, key=lambda row: (row["stopped"] != "1", float(row["ACC"])), default=None)


def _against_tuned(results: Results, defaults: Results) -> dict[str, object]:
    """Compare our models, not tuned, with the best tuned baseline of each set."""
    body, higher, n_compared = [], Counter[tuple[str, str]](), 0
    for dataset in sets_of(results):
        best = {m: _best_trial(results.select(**at(dataset, m))) for m in BASELINES}
        ours = {m: {k: defaults.mean(k, **at(dataset, m)) for k in ("ACC", "AUC")} for m in (SCBOOST, SCBOOST_DEFAULT)}
        row, found = [dataset], {m: trial for m, trial in best.items() if trial is not None}
        n_compared += bool(found) and not np.isnan(ours[SCBOOST_DEFAULT]["ACC"])
        for metric in ("ACC", "AUC"):
            tuned = {m: float(trial[metric]) for m, trial in found.items()}
            top = max(tuned, key=tuned.__getitem__, default="")
            row += [f"{number(tuned.get(top, np.nan))} {top}", *(number(own[metric]) for own in ours.values())]
            higher.update({(m, metric): int(own[metric] > tuned[top]) for m, own in ours.items()} if tuned else {})
        body.append(row)
    what = ("best tuned baseline", "SCBoost, 100 rounds", "SCBoost, default")
    header = ["dataset", *(f"{metric}: {w}" for metric in ("ACC", "AUC") for w in what)]
    return {
        "against_tuned": table(header, body),
        "n_compared": n_compared,
        "higher_accuracy": higher[SCBOOST_DEFAULT, "ACC"],
        "higher_auc": higher[SCBOOST_DEFAULT, "AUC"],
    }


def _stopped(trials: Sequence[Mapping[str, str]]) -> int:
    return sum(row["stopped"] == "1" for row in trials)


def _trials(results: Results, dataset: str) -> str:
    """Return the number of trials per cell of a set, and how many were stopped early."""
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
    for method in SCORED_METHODS:
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
    """Collapse of weights and targets in the literal algorithm."""
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
