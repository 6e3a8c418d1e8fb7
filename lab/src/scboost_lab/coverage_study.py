"""Measure coverage and size of prediction intervals and label sets.

``scboost-lab coverage_study run`` appends to ``results/uncertainty/coverage.csv``; one row is one random split of one
method on one data set: at most `TRAIN_SIZE` training and `TEST_SIZE` test samples. Within a split, the test set is used
only for the two measures. The number of bins of the local scale and the factor of averaged fold models were selected
on the same regression data sets, however, so our interval widths are somewhat optimistic. MAPIE runs with its default
conformity scores, which have a constant width for regression. ``scboost-lab coverage_study summary`` prints coverages
and relative sizes.

``scboost-lab coverage_study excess`` appends to ``results/uncertainty/excess.csv`` by which factor of the widths
exactly 80 % of the test samples would be covered: on the regression data sets, on a simulated target that does not
depend on the features, and on data sets that influenced no choice. Their targets are columns of the tables of the
classification study: the first numeric column without missing values that has `FEWEST_VALUES` distinct ones, predicted
from the others without the class. This rule was fixed before any of them was fitted.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from scboost import SCBoostClassifier, SCBoostRegressor
from scboost_lab.datasets import DATA_DIR_VARIABLE, require_data_dir
from scboost_lab.default_methods import ALL, MULTICLASS, REGRESSION, SETS, Method, estimator, task_of
from scboost_lab.default_study import encoded, fingerprint, load
from scboost_lab.models import SCBOOST
from scboost_lab.results import Results
from scboost_lab.runner import Experiment, NotInstalledError, Task

TRAIN_SIZE = TEST_SIZE = 2_000
N_SPLITS = 20
COVERAGES = (0.8, 0.9, 0.95)
COLUMNS = (*(f"{what}_{round(100 * c)}" for c in COVERAGES for what in ("coverage", "size")), "seconds")
OURS, MAPIE, CHIMERA = "SCBoost", "MAPIE CV+, LightGBM", "ChimeraBoost quantiles"
NOISE, N_EXCESS_SPLITS = "noise", 5
FEWEST_VALUES = 100
COLUMN = ", column"  # in the names of data sets whose target is a column of a table
COLUMN_TARGETS = tuple(
    f"{name}{COLUMN}"
    for name in (*ALL, *MULTICLASS)
    if name not in ("elevators", "pol", "letter_U", "letter_26class", "sick")
)  # without tables of regression data sets, and without those that have no such column
TOLERANCE, SHORTFALL = 0.015, 0.03  # of the mean coverage, and of the coverage on one data set

Array = NDArray[Any]


def run_split(task: Task, params: Mapping[str, Any], data_dir: str | None) -> dict[str, float]:
    """Fit a method to one split; return coverage and mean width (regression) or set size of each nominal coverage."""
    del params
    X, y = load(task.dataset, data_dir)
    kind = task_of(task.dataset)
    n_train = min(TRAIN_SIZE, len(y) // 2)
    n_test = min(TEST_SIZE, len(y) - n_train)
    classes = None if kind == "regression" else y
    train, test = train_test_split(
        np.arange(len(y)), train_size=n_train, test_size=n_test, random_state=task.fold, stratify=classes
    )
    library = Method(SCBOOST if task.method == OURS else "LGBM" if task.method == MAPIE else "RF")
    X = encoded(X, library)
    start = time.perf_counter()
    predict = _regression if kind == "regression" else _classification
    found = predict(task, X.iloc[train], y[train], X.iloc[test])
    seconds = time.perf_counter() - start
    values = {}
    for c, part in zip(COVERAGES, np.moveaxis(found, 1, 0), strict=True):
        if kind == "regression":
            inside, size = (part[:, 0] <= y[test]) & (y[test] <= part[:, 1]), (part[:, 1] - part[:, 0]) / y[train].std()
        else:
            inside, size = part[np.arange(len(test)), y[test]], part.sum(axis=1)
        values[f"coverage_{round(100 * c)}"], values[f"size_{round(100 * c)}"] = inside.mean(), size.mean()
    return {**values, "seconds": seconds}


def _regression(task: Task, X: Any, y: Array, X_test: Any) -> Array:
    """Return bounds of shape (n, n_coverages, 2)."""
    if task.method == OURS:
        bounds: Array = _ours(task.dataset).fit(X, y).predict_interval(X_test, COVERAGES)
        return bounds
    if task.method == CHIMERA:
        return _chimera(X, y, X_test)
    try:
        from mapie.regression import CrossConformalRegressor
    except ImportError as error:
        raise NotInstalledError("mapie is not installed") from error
    model = estimator(Method("LGBM"), "regression", (), task.seed)
    mapie = CrossConformalRegressor(model, confidence_level=list(COVERAGES), cv=5, random_state=task.fold)
    mapie.fit_conformalize(X, y)
    return np.swapaxes(mapie.predict_interval(X_test)[1], 1, 2)


def _classification(task: Task, X: Any, y: Array, X_test: Any) -> Array:
    """Return sets of shape (n, n_coverages, n_classes)."""
    if task.method == OURS:
        sets: Array = _ours(task.dataset).fit(X, y).predict_set(X_test, COVERAGES)
        return sets
    try:
        from mapie.classification import CrossConformalClassifier
    except ImportError as error:
        raise NotInstalledError("mapie is not installed") from error
    model = estimator(Method("LGBM"), task_of(task.dataset), (), task.seed)
    mapie = CrossConformalClassifier(model, confidence_level=list(COVERAGES), cv=5, random_state=task.fold)
    mapie.fit_conformalize(X, y)
    return np.swapaxes(mapie.predict_set(X_test)[1], 1, 2)


def _ours(dataset: str) -> Any:
    cls = SCBoostRegressor if task_of(dataset) == "regression" else SCBoostClassifier
    return cls(engine="auto", n_jobs=1)


def _chimera(X: Any, y: Array, X_test: Any) -> Array:
    """Return the conformalized quantiles of one ChimeraBoost model, which holds out its calibration set."""
    try:
        from chimeraboost import ChimeraBoostQuantileRegressor
    except ImportError as error:
        raise NotInstalledError("chimeraboost is not installed") from error
    tails = [(1 - c) / 2 for c in COVERAGES]
    levels = sorted([*tails, *(1 - t for t in tails)])
    model = ChimeraBoostQuantileRegressor(quantiles=levels, thread_count=1, random_state=0)
    found = model.fit(X.to_numpy(np.float64), y).predict(X_test.to_numpy(np.float64))
    return np.stack([found[:, [levels.index(t), levels.index(1 - t)]] for t in tails], axis=1)


EXPERIMENT = Experiment(
    "coverage and size of intervals and label sets",
    run_split,
    COLUMNS,
    (*REGRESSION, *ALL, *MULTICLASS),
    (OURS, MAPIE, CHIMERA),
    n_folds=N_SPLITS,
    wanted=lambda dataset, method, setting: method != CHIMERA or dataset in REGRESSION,  # noqa: ARG005
)


def column_target(name: str, data_dir: str | None) -> tuple[Any, Array]:
    """Return the table of a classification data set with one of its columns as target, as described above."""
    X, _ = load(name, data_dir)
    numeric = [c for c in X.columns if X[c].dtype.kind in "iuf" and not X[c].isna().any()]
    target = next(c for c in numeric if X[c].nunique() >= FEWEST_VALUES)
    return X.drop(columns=target), X[target].to_numpy(np.float64)


def run_excess(task: Task, params: Mapping[str, Any], data_dir: str | None) -> dict[str, float]:
    """Return the coverage of intervals, and the factor of their widths that would make that of 80 % intervals exact."""
    del params
    if task.dataset == NOISE:
        rng = np.random.default_rng(task.fold)
        X, y = rng.normal(size=(TRAIN_SIZE + TEST_SIZE, 10)), rng.normal(size=TRAIN_SIZE + TEST_SIZE)
        table: Any = pd.DataFrame(X)
    else:
        name = task.dataset.removesuffix(COLUMN)
        table, y = load(name, data_dir) if name == task.dataset else column_target(name, data_dir)
        table = encoded(table, Method(SCBOOST))
    n_train = min(TRAIN_SIZE, len(y) // 2)
    n_test = min(TEST_SIZE, len(y) - n_train)
    train, test = train_test_split(np.arange(len(y)), train_size=n_train, test_size=n_test, random_state=task.fold)
    model = SCBoostRegressor(engine="auto", n_jobs=1).fit(table.iloc[train], y[train])
    bounds = model.predict_interval(table.iloc[test], COVERAGES)
    inside = (bounds[..., 0] <= y[test, None]) & (y[test, None] <= bounds[..., 1])
    centre, width = bounds[:, 0].mean(axis=1), (bounds[:, 0, 1] - bounds[:, 0, 0]) / 2
    relative = np.abs(y[test] - centre) / width
    found = {
        f"coverage_{round(100 * c)}": float(share) for c, share in zip(COVERAGES, inside.mean(axis=0), strict=True)
    }
    return {**found, "factor_80": float(np.quantile(relative, min(COVERAGES)))}


EXCESS = Experiment(
    "excess of out-of-fold residuals",
    run_excess,
    (*(f"coverage_{round(100 * c)}" for c in COVERAGES), "factor_80"),
    (*REGRESSION, NOISE, *COLUMN_TARGETS),
    (OURS,),
    n_folds=N_EXCESS_SPLITS,
)


def in_order(tasks: Sequence[Task]) -> list[Task]:
    """Sort tasks by split, regression first: an interrupted study has the same splits of every set."""
    return sorted(tasks, key=lambda task: (task.dataset not in REGRESSION, task.fold))


def summary(path: Path) -> str:
    """Return a table of coverage and relative size, and how the targets are met.

    Sizes are divided by those of MAPIE on the same data set, if it was measured there, before they are averaged.
    """
    results = Results(path)
    lines = []
    for title, sets in (("regression", REGRESSION), ("classification", (*ALL, *MULTICLASS))):
        for method in EXPERIMENT.methods:
            done = [name for name in sets if results.values("seconds", dataset=name, method=method)]
            if not done:
                continue
            cells = [f"{title}, {method}: {len(done)} sets"]
            for c in (round(100 * c) for c in COVERAGES):
                means = [results.mean(f"coverage_{c}", dataset=name, method=method) for name in done]
                ratios = [
                    results.mean(f"size_{c}", dataset=name, method=method)
                    / results.mean(f"size_{c}", dataset=name, method=MAPIE)
                    for name in done
                    if results.values(f"size_{c}", dataset=name, method=MAPIE)
                ]
                ratio = float(np.exp(np.mean(np.log(ratios))))
                cells.append(f"{c} %: covers {np.mean(means):.3f} (lowest {min(means):.3f}), size {ratio:.3f}")
            splits = min(len(results.values("seconds", dataset=name, method=method)) for name in done)
            lines.append("; ".join([*cells, f"{splits} splits or more"]))
            if method == OURS:
                lines.append(_verdict(results, done))
    return "\n".join(lines)


def _verdict(results: Results, sets: Sequence[str]) -> str:
    """Say whether coverage is near the nominal one on average, and nowhere far below it."""
    verdicts = []
    for c in COVERAGES:
        means = [results.mean(f"coverage_{round(100 * c)}", dataset=name, method=OURS) for name in sets]
        near, low = (
            abs(np.mean(means) - c) <= TOLERANCE,
            [n for n, m in zip(sets, means, strict=True) if m < c - SHORTFALL],
        )
        verdicts.append(f"{c:.0%}: {'within' if near else 'not within'} {TOLERANCE:.1%}, too low on {low or 'none'}")
    return "  asked: " + "; ".join(verdicts)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab coverage_study``."""
    parser.description = "Measure coverage and size of intervals and label sets. An interrupted run is resumed."
    parser.add_argument("part", choices=["run", "summary", "excess"], help="run a study, or print coverages")
    parser.add_argument("--data-dir", help=f"directory of Parquet files (default: ${DATA_DIR_VARIABLE})")
    parser.add_argument("--out", type=Path, default=Path("results/uncertainty"), help="directory of the result file")
    parser.add_argument("--splits", type=int, default=N_SPLITS, metavar="N", help="number of splits to run, of 20")
    parser.add_argument("--sets", nargs="+", metavar="NAME", choices=SETS, help="only these data sets")
    parser.add_argument("--methods", nargs="+", metavar="NAME", choices=EXPERIMENT.methods, help="only these methods")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes, one thread each")


def main(args: argparse.Namespace) -> int:
    """Run the study or print its summary."""
    path = args.out / "coverage.csv"
    if args.part == "excess":
        return _run_excess(args)
    if args.part == "run":
        directory = require_data_dir(args.data_dir)
        EXPERIMENT.run_recorded(
            path,
            in_order(EXPERIMENT.tasks(args.sets, args.methods, args.splits)),
            directory,
            command=f"scboost-lab coverage_study run --splits {args.splits}",
            fingerprint=partial(fingerprint, data_dir=directory),
            jobs=args.jobs,
            train_size=TRAIN_SIZE,
            test_size=TEST_SIZE,
        )
    print(summary(path))
    return 0


def _run_excess(args: argparse.Namespace) -> int:
    directory, path = require_data_dir(args.data_dir), args.out / "excess.csv"
    EXCESS.run_recorded(
        path,
        EXCESS.tasks(args.sets),
        directory,
        command="scboost-lab coverage_study excess",
        fingerprint=lambda name: (
            "simulated: noise" if name == NOISE else fingerprint(name.removesuffix(COLUMN), data_dir=directory)
        ),
        train_size=TRAIN_SIZE,
        test_size=TEST_SIZE,
    )
    results = Results(path)
    for name in EXCESS.datasets:
        means = (results.mean(column, dataset=name) for column in EXCESS.columns)
        print(name, *(f"{mean:.3f}" for mean in means))
    return 0
