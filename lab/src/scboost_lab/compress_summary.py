"""The targets of compression next to what was measured, from the rows of ``scboost-lab compress_study``."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from scboost_lab.default_methods import ALL, MULTICLASS, REGRESSION
from scboost_lab.results import Results

_MOST_RISE = 0.01
LIBRARIES = ("XGBoost", "LightGBM", "CatBoost")
Row = tuple[str, str, str]
# Sets whose test folds selected the ridge of growth and the leaves of 50 trees: every second one by name.
CHOSEN_ON = (*sorted(ALL)[::2], *sorted(REGRESSION)[::2])


def summary(folder: Path) -> str:
    """Return a Markdown table of targets and measured values.

    Parameters
    ----------
    folder : Path
        Of the result files.

    Returns
    -------
    str
    """
    students, peers = Results(folder / "students.csv"), Results(folder / "peers.csv")
    rows = [
        *_against_peers(students, peers),
        *_against_teacher(students, Results(folder / "foreign.csv")),
        *_regression(students, peers),
        *_multiclass(students),
        *_cost(students, peers),
        *_coverage(Results(folder / "coverage.csv")),
    ]
    lines = ["| target | at least | measured |", "|---|---|---|"]
    return "\n".join(lines + [f"| {what} | {asked} | {found} |" for what, asked, found in rows])


def variants(folder: Path, size: int) -> str:
    """Return a Markdown table of alternatives of the method, next to the default on the same folds.

    Parameters
    ----------
    folder : Path
        Of the result files; ``variants_20.csv`` or ``variants_50.csv`` is read.
    size : int
        20 or 50 trees.
    """
    results = Results(folder / f"variants_{size}.csv")
    lines = [
        f"| {size} trees | divergence | log-loss | AUC | RMSE | CPU |",
        "|---|---|---|---|---|---|",
    ]
    for setting in results.distinct("setting"):
        ratios: dict[str, list[float]] = {"divergence": [], "seconds": []}
        rises: dict[str, list[float]] = {"log_loss": [], "RMSE": [], "AUC": []}
        for row in results.select(setting=setting):
            [default] = results.select(setting="default", dataset=row["dataset"], fold=int(row["fold"]))
            for column, found in ratios.items():
                found.append(float(row[column]) / float(default[column]))
            score = "log_loss" if row["log_loss"] else "RMSE"
            own, teacher = float(row[score]), float(row[f"teacher_{score}"])
            rises[score].append(own - teacher if score == "log_loss" else own / teacher - 1)
            if row["AUC"]:
                rises["AUC"].append(float(row["AUC"]) - float(row["teacher_AUC"]))
        divergence, seconds = (float(np.exp(np.mean(np.log(found)))) for found in ratios.values())
        shown = (_mean(found, form) for found, form in zip(rises.values(), ("+.4f", "+.1%", "+.4f"), strict=True))
        log_loss, rmse, auc = shown
        lines.append(f"| {setting} | {divergence:.2f} | {log_loss} | {auc} | {rmse} | {seconds:.2f} |")
    return "\n".join(lines)


def _mean(values: Sequence[float], form: str) -> str:
    return f"{np.mean(values):{form}}" if values else ""


def best(peers: Results, prefix: str, dataset: str, column: str, folds: Sequence[int]) -> float:
    """Return the mean over folds of a score at the learning rate that is best on each test fold."""
    sign = -1 if column == "AUC" else 1
    found = []
    for fold in folds:
        rows = [row for row in peers.select(dataset=dataset, fold=fold) if row["method"].startswith(f"{prefix},")]
        values = [sign * float(row[column]) for row in rows if row[column]]
        if not values:
            return float("nan")
        found.append(sign * min(values))
    return float(np.mean(found)) if found else float("nan")


def _folds(results: Results, dataset: str, setting: str) -> list[int]:
    return [int(row["fold"]) for row in results.select(dataset=dataset, setting=setting)]


def _share(hits: Sequence[bool]) -> str:
    return f"{np.mean(hits):.0%} of {len(hits)} sets" if hits else "not run"


def _wins(
    students: Results, sets: Sequence[str], setting: str, column: str, rival: Callable[[str, list[int]], float]
) -> list[bool]:
    hits = []
    for dataset in sets:
        folds = _folds(students, dataset, setting)
        other = rival(dataset, folds) if folds else float("nan")
        if not np.isnan(other):
            own = students.mean(column, dataset=dataset, setting=setting)
            hits.append(own > other if column == "AUC" else own < other)
    return hits


def _against_peers(students: Results, peers: Results) -> list[Row]:
    rows = []
    for column in ("log_loss", "AUC"):
        for library in LIBRARIES:

            def rival(dataset: str, folds: list[int], library: str = library, column: str = column) -> float:
                return best(peers, f"{library} 20", dataset, column, folds)

            hits = _wins(students, ALL, "20 trees", column, rival)
            rows.append((f"20 trees, {column}, better than {library}'s 20", "80%", _share(hits)))

        def strongest(dataset: str, folds: list[int], column: str = column) -> float:
            values = [best(peers, f"{library} 20", dataset, column, folds) for library in LIBRARIES]
            return max(values) if column == "AUC" else min(values)

        hits = _wins(students, ALL, "20 trees", column, strongest)
        rows.append((f"20 trees, {column}, better than the best of the three", "60%", _share(hits)))
    hits = _wins(students, ALL, "20 trees", "log_loss", lambda d, f: best(peers, "XGBoost 100", d, "log_loss", f))
    rows.append(("20 trees, log_loss, better than XGBoost's 100", "60%", _share(hits)))
    return rows


def _halves(sets: Sequence[str]) -> tuple[tuple[str, list[str]], ...]:
    """Return the sets that settings were selected on, and the others, with what a row says of them."""
    chosen = [name for name in sets if name in CHOSEN_ON]
    others = [name for name in sets if name not in CHOSEN_ON]
    return ("sets of the selection", chosen), ("other sets", others)


def _rise(results: Results, sets: Sequence[str] = ALL, **where: str) -> list[float]:
    """Return student minus teacher in log-loss, one value for each data set."""
    found = []
    for dataset in sets:
        own = results.mean("log_loss", dataset=dataset, **where)
        if not np.isnan(own):
            found.append(own - results.mean("teacher_log_loss", dataset=dataset, **where))
    return found


def _against_teacher(students: Results, foreign: Results) -> list[Row]:
    rises = _rise(students, setting="50 trees")
    rows: list[Row] = []
    if rises:
        halves = [(text, _rise(students, sets, setting="50 trees")) for text, sets in _halves(ALL)]
        means = [f"{text} {np.mean(half):+.4f}" for text, half in halves if half]
        shares = [f"{text} {np.mean([rise <= _MOST_RISE for rise in half]):.0%}" for text, half in halves if half]
        what = "50 trees, mean rise of log-loss over the teacher"
        rows.append((what, "+.005", f"{np.mean(rises):+.4f} ({', '.join(means)})"))
        share = _share([rise <= _MOST_RISE for rise in rises])
        rows.append(("50 trees, rise at most .01", "80%", f"{share} ({', '.join(shares)})"))
    for method in foreign.distinct("method"):
        rises = _rise(foreign, method=method, setting="50 trees")
        text = f"{_share([rise <= _MOST_RISE for rise in rises])}, mean {np.mean(rises):+.4f}"
        rows.append((f"50 trees, teacher {method}, rise at most .01", "80%", text))
    return rows


def _regression(students: Results, peers: Results) -> list[Row]:
    rows: list[Row] = []
    for setting, asked in (("20 trees", ""), ("50 trees", "+3%")):
        shown = []
        for text, sets in _halves(REGRESSION):
            rises = [f"{_short(name)} {r - 1:+.1%}" for name, r in _ratios(students, sets, setting, "RMSE").items()]
            if rises:
                shown.append(f"{', '.join(rises)} ({text})")
        if shown:
            rows.append((f"regression, {setting}, RMSE over the teacher's", asked, "; ".join(shown)))
    if not rows:
        return []
    hits = _wins(students, REGRESSION, "50 trees", "RMSE", lambda d, f: best(peers, "XGBoost 100", d, "RMSE", f))
    return [*rows, ("regression, 50 trees, RMSE lower than XGBoost's 100", "100%", _share(hits))]


def _multiclass(students: Results) -> list[Row]:
    rows: list[Row] = []
    for setting in ("20 trees", "50 trees"):
        rises = {name: rise for name in MULTICLASS for rise in _rise(students, [name], setting=setting)}
        if rises:
            text = ", ".join(f"{_short(name)} {rise:+.4f}" for name, rise in rises.items())
            rows.append((f"multiclass, {setting} per class, rise of log-loss over the teacher", "", text))
    return rows


def _short(dataset: str) -> str:
    """Return the name of a data set without what tells its task."""
    return dataset.removesuffix("_reg").removesuffix("_26class")


def _ratios(students: Results, sets: Sequence[str], setting: str, column: str) -> dict[str, float]:
    """Return what students have in a column as a multiple of what their teachers have, by data set."""
    found = {}
    for dataset in sets:
        own = students.mean(column, dataset=dataset, setting=setting)
        if not np.isnan(own):
            found[dataset] = own / students.mean(f"teacher_{column}", dataset=dataset, setting=setting)
    return found


def _redundancy_at_best(peers: Results, prefix: str, dataset: str) -> float:
    """Return the redundancy at the learning rate with the lowest log-loss on the first test fold."""
    rows = [row for row in peers.select(dataset=dataset, fold=0) if row["method"].startswith(f"{prefix},")]
    rows = [row for row in rows if row["redundancy"]]
    return float(min(rows, key=lambda row: float(row["log_loss"]))["redundancy"]) if rows else float("nan")


def _cost(students: Results, peers: Results) -> list[Row]:
    rows: list[Row] = []
    for setting, prefix in (("20 trees", "XGBoost 20"), ("50 trees", "XGBoost 50")):
        hits = []
        for dataset in ALL:
            own = students.mean("redundancy", dataset=dataset, setting=setting)
            other = _redundancy_at_best(peers, prefix, dataset)
            if not np.isnan(own) and not np.isnan(other):
                hits.append(own < other)
        rows.append((f"{setting}, redundancy lower than XGBoost's (at its best learning rate)", "90%", _share(hits)))
        ratios = _ratios(students, ALL, setting, "bytes")
        rows += _at_most([*ratios.values()], 0.1, f"{setting}, bytes at most 1/10")
        for text, sets in (("", ALL), ("regression, ", REGRESSION), ("multiclass, ", MULTICLASS)):
            ratios = _ratios(students, sets, setting, "seconds")
            rows += _at_most([*ratios.values()], 1.0, f"{text}{setting}, CPU at most the fit's")
    return rows


def _at_most(ratios: Sequence[float], most: float, text: str) -> list[Row]:
    """Return a row with the share of data sets on which a ratio is at most this."""
    if not ratios:
        return []
    return [(text, "100%", f"{_share([ratio <= most for ratio in ratios])}, median {np.median(ratios):.2f}")]


def _coverage(coverage: Results) -> list[Row]:
    return [
        (f"coverage of the bound on {what}", "95%", f"{np.mean(values):.1%}, lowest {np.min(values):.1%}")
        for what, column in (
            ("agreement", "covered_agreement"),
            ("the rise of the loss", "covered_rise"),
            ("the divergence", "covered_divergence"),
        )
        if (values := coverage.values(column))
    ]
