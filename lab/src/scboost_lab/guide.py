"""Tables of the guide, written from the committed results: ``scboost-lab guide``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from scboost_lab import distribution_study, ranking_study, survival_study, targets_study
from scboost_lab.coverage_study import COLUMN_TARGETS, COVERAGES, EXCESS, MAPIE, NOISE, OURS
from scboost_lab.default_methods import ALL, MULTICLASS, REGRESSION
from scboost_lab.page import table
from scboost_lab.readme import replace_between
from scboost_lab.results import Results
from scboost_lab.task_tables import complete, ranks

_NOMINAL = 0.8
_PLACES = ("highest", "second highest", "third highest", "lowest")
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def coverage(results: Path) -> str:
    """Return coverage and size of intervals and label sets, and how much narrower intervals are than those of MAPIE."""
    found = Results(results / "uncertainty" / "coverage.csv")
    header = ["", "nominal", "SCBoost", "MAPIE CV+, LightGBM", "size relative to MAPIE"]
    rows, narrower = [], ""
    for title, sets in (("regression intervals", REGRESSION), ("classification sets", (*ALL, *MULTICLASS))):
        done = [name for name in sets if all(_splits(found, name, method) for method in (OURS, MAPIE))]
        ours, theirs = (min(_splits(found, name, method) for name in done) for method in (OURS, MAPIE))
        sizes = [_size_ratio(found, done, c) for c in COVERAGES]
        rows.append(
            [
                f"{title}, {len(done)} data sets, {ours} random splits each (MAPIE: {theirs} or more)",
                " / ".join(_short(c, 2) for c in COVERAGES),
                *(" / ".join(_short(_coverage(found, done, m, c), 3) for c in COVERAGES) for m in (OURS, MAPIE)),
                " / ".join(_short(size, 2) for size in sizes),
            ]
        )
        if title.startswith("regression"):
            first, second, third = (round(100 * (1 - size)) for size in sizes)
            narrower = f"Regression intervals are {first}, {second} and {third} % narrower than those of MAPIE."
    return f"{table(header, rows)}\n\n{narrower} {_confirmed(found)}\n{_excess(results)}"


def _confirmed(found: Results) -> str:
    """Return the range of the coverages of single regression data sets."""
    each = [[_coverage(found, [name], OURS, c) for name in REGRESSION] for c in COVERAGES]
    lowest, highest = (" / ".join(_short(pick(values), 3) for values in each) for pick in (min, max))
    return f"On single data sets, they\ncover {lowest} to {highest}."


def _excess(results: Path) -> str:
    """Say what intervals cover on targets that influenced no choice, and which widths would be exact."""
    found = Results(results / "uncertainty" / "excess.csv")
    columns = list(COLUMN_TARGETS)
    mean = " / ".join(_short(_coverage(found, columns, OURS, c), 3) for c in COVERAGES)
    lowest = " / ".join(_short(min(_coverage(found, [name], OURS, c) for name in columns), 3) for c in COVERAGES)
    factors = {name: found.mean("factor_80", dataset=name) for name in EXCESS.datasets}
    none = _short(factors.pop(NOISE), 2)
    low, high = (_short(pick(factors[name] for name in REGRESSION), 2) for pick in (min, max))
    return (
        f"On {len(columns)} other targets, which influenced no choice, they cover {mean} on\naverage, "
        f"at least {lowest}: the first numeric column of each table of the classification study that has 100 distinct "
        "values\nand none missing, predicted from the other features. 80 % intervals that are "
        f"{low} to {high} times as wide would cover\nexactly 80 % on the {len(REGRESSION)} regression data sets; for a "
        f"simulated target that is pure noise, {none} times."
    )


def _splits(results: Results, name: str, method: str) -> int:
    return len(results.values("seconds", dataset=name, method=method))


def _column(what: str, c: float) -> str:
    return f"{what}_{round(100 * c)}"


def _coverage(results: Results, sets: list[str], method: str, c: float) -> float:
    return float(np.mean([results.mean(_column("coverage", c), dataset=name, method=method) for name in sets]))


def _size_ratio(results: Results, sets: list[str], c: float) -> float:
    """Return the geometric mean over data sets of our size divided by that of MAPIE."""
    sizes = [[results.mean(_column("size", c), dataset=name, method=m) for m in (OURS, MAPIE)] for name in sets]
    return float(np.exp(np.mean([np.log(ours / theirs) for ours, theirs in sizes])))


def _short(value: float, digits: int) -> str:
    """Write a number without the zero before the point."""
    return f"{value:.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"


def _rows(results: Path, name: str, methods: tuple[str, ...], folds: str = "folds") -> tuple[pd.DataFrame, str]:
    """Return results of folds on which all methods have results, and how many data sets and folds these are."""
    rows = complete(results / "tasks" / f"{name}.csv", methods)
    n_folds = rows.groupby("dataset")["fold"].nunique()
    if n_folds.min() != n_folds.max():
        raise ValueError(f"{name}.csv has different numbers of folds for its data sets; finish the study")
    return rows, f"{len(n_folds)} data sets, {n_folds.iloc[0]} {folds} each"


def _table(found: pd.DataFrame, columns: Mapping[str, tuple[str, int]], labels: Mapping[str, str]) -> str:
    """Write a table with the best value of each column in bold.

    Parameters
    ----------
    found : DataFrame
        Values by method.
    columns : mapping
        Columns with their titles and digits after the point, negative where higher is better. Of "coverage", the value
        nearest to the nominal one is the best.
    labels : mapping of str to str
        Methods and how they are called.
    """
    header = ["", *(title for title, _ in columns.values())]
    cells = []
    for method, label in labels.items():
        row = [label]
        for column, (_, digits) in columns.items():
            values = found[column]
            order = (values - _NOMINAL).abs() if column == "coverage" else -values if digits < 0 else values
            text = _short(float(values[method]), abs(digits))
            row.append(f"**{text}**" if order[method] == order.min() else text)
        cells.append(row)
    return table(header, cells)


def distribution(results: Path) -> str:
    """Return scores and times of predicted distributions."""
    methods = tuple(distribution_study.METHODS)
    rows, size = _rows(results, "distribution", methods, "random splits")
    found = ranks(rows, {"crps": False, "nll": False, "rmse": False}, methods)
    coverages = rows.pivot_table(index="dataset", columns="method", values="coverage_80")
    columns = {
        "mean crps": ("CRPS", 3),
        "mean nll": ("negative log-likelihood", 3),
        "mean rmse": ("RMSE", 3),
        "coverage": ("coverage of 80 % intervals", 2),
        "fit seconds": ("CPU seconds per fit and prediction", 1),
    }
    labels = {
        "SCBoost": "`SCBoostDistribution`",
        "CatBoost": "CatBoost, `RMSEWithUncertainty`",
        "NGBoost": "NGBoost",
    }
    found["coverage"] = coverages.mean()
    own = coverages["SCBoost"]
    low, high = (f"{_short(float(own[name]), 2)} (`{name}`)" for name in (own.idxmin(), own.idxmax()))
    first = {}
    for metric in ("crps", "nll"):
        best = rows.pivot_table(index="dataset", columns="method", values=metric).idxmin(axis=1)
        first[metric] = int((best == "SCBoost").sum())
    return (
        f"{_table(found, columns, labels)}\n\n{size}. For scores and time, lower is better. SCBoost has the lowest "
        f"CRPS on {first['crps']} and the lowest negative\nlog-likelihood on {first['nll']} of the data sets; its "
        f"coverage is between {low} and {high}."
    )


def targets(results: Path) -> str:
    """Return losses and times of one model of several targets, and of one model per target."""
    rows, size = _rows(results, "targets", targets_study.METHODS, "draws")
    found = ranks(rows, {"loss": False}, targets_study.METHODS)
    columns = {"mean loss": ("mean loss", 3), "fit seconds": ("CPU seconds per fit", 1)}
    labels = {
        "SCBoost": "one `SCBoostRegressor` or `SCBoostClassifier`",
        "SCBoost per target": "one model per target",
        "CatBoost": "CatBoost, multi-target losses",
    }
    rise, share = (float(found[c]["SCBoost"] / found[c]["SCBoost per target"]) for c in ("mean loss", "fit seconds"))
    return (
        f"{_table(found, columns, labels)}\n\n{size}. The mean loss of one model is {100 * (rise - 1):.1f} % higher "
        f"than that of one model per target, at {100 * share:.0f} % of its CPU time."
    )


def ranking(results: Path) -> str:
    """Return NDCG, ranks and times of rankings."""
    rows, size = _rows(results, "ranking", ranking_study.METHODS, "draws")
    found = ranks(rows, {"ndcg10": True}, ranking_study.METHODS)
    columns = {
        "mean ndcg10": ("NDCG@10", -3),
        "rank by ndcg10": ("mean rank", 1),
        "fit seconds": ("CPU seconds per fit and prediction", 1),
    }
    labels = {
        "SCBoost": "`SCBoostRanker`",
        "CatBoost": "CatBoost, `YetiRank`",
        "LightGBM": "LightGBM, `lambdarank`",
        "XGBoost": "XGBoost, `rank:ndcg`",
    }
    place = _PLACES[int((found["mean ndcg10"] > found["mean ndcg10"]["SCBoost"]).sum())]
    times = found["fit seconds"]["SCBoost"] / found["fit seconds"]
    return (
        f"{_table(found, columns, labels)}\n\n{size}. `SCBoostRanker` has the {place} NDCG@10, at "
        f"{times['LightGBM']:.1f} times the CPU time of LightGBM and\n{times['CatBoost']:.1f} times that of CatBoost."
    )


def survival(results: Path) -> str:
    """Return concordance, Brier score, ranks and times of survival models."""
    methods = tuple(survival_study.METHODS)
    rows, size = _rows(results, "survival", methods)
    found = ranks(rows, {"concordance": True, "integrated_brier_score": False}, methods)
    columns = {
        "mean concordance": ("concordance", -3),
        "rank by concordance": ("mean rank", 1),
        "mean integrated_brier_score": ("integrated Brier score", 3),
        "rank by integrated_brier_score": ("mean rank", 1),
        "fit seconds": ("seconds per fit and prediction", 1),
    }
    labels = {
        "SCBoost Cox": '`SCBoostSurvival(loss="cox")`',
        "SCBoost AFT": '`SCBoostSurvival(loss="aft")`',
        "sksurv boosting": "scikit-survival, `GradientBoostingSurvivalAnalysis`",
        "sksurv forest": "scikit-survival, `RandomSurvivalForest`",
        "XGBoost Cox": "XGBoost, `survival:cox`",
        "XGBoost AFT": "XGBoost, `survival:aft`",
    }
    concordance, brier, fastest = (
        labels[str(column.idxmin())]
        for column in (-found["mean concordance"], found["mean integrated_brier_score"], found["fit seconds"])
    )
    return (
        f"{_table(found, columns, labels)}\n\n{size}. {concordance} has the highest concordance,\n{brier} the lowest "
        f"integrated Brier score; {fastest} fits fastest."
    )


PAGES: dict[str, Callable[[Path], str]] = {
    "uncertainty": coverage,
    "distributions": distribution,
    "targets": targets,
    "ranking": ranking,
    "survival": survival,
}
"""Pages of the guide, and what stands between their marks."""


def update(text: str, name: str, results: Path) -> str:
    """Put the results between the marks of a page's text."""
    return replace_between(text, BEGIN, END, PAGES[name](results))


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab guide``."""
    parser.description = "Write the tables of the guide from the committed results."
    parser.add_argument("--docs", type=Path, default=Path("docs/guide"), help="directory of the pages")
    parser.add_argument("--results", type=Path, default=Path("results"), help="directory of the result files")


def main(args: argparse.Namespace) -> int:
    """Rewrite the tables of all pages."""
    for name in PAGES:
        page = args.docs / f"{name}.md"
        page.write_text(update(page.read_text(encoding="utf-8"), name, args.results), encoding="utf-8")
    return 0
