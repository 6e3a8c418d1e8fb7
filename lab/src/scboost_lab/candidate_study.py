"""Which shapes and sizes of trees are worth selecting among: ``scboost-lab candidate_study``.

Every row of ``results/default/candidates.csv`` is one model on one fold of one data set, of at most ``--rows`` samples:
the lowest loss on the test fold over all rounds, the round of it, and the CPU time up to it. The round is chosen with
hindsight, for every candidate alike: the differences are upper bounds of what selection by cross-validation can gain.
"""

import argparse
import time
from collections.abc import Mapping
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scboost_lab.datasets import DATA_DIR_VARIABLE, SEED, capped, read_parquet, require_data_dir
from scboost_lab.default_methods import COLUMN_CAP, METHODS, N_FOLDS, SETS, task_of
from scboost_lab.default_study import encoded, fingerprint
from scboost_lab.runner import Experiment, Task
from scboost_lab.scoring import folds

COLUMNS = ("best_loss", "best_round", "n_rounds", "cpu_seconds", "n_samples")
MAX_ROUNDS = 1500
PATIENCE = 40
SHAPES = ("depth-wise", "symmetric", "alternating")
DEPTHS = (6, 8, 10, 12)
PROJECTIONS = (0.0, 0.5, 0.9)
BASE: dict[str, Any] = {"tree_shape": "depth-wise", "max_depth": 6, "projection_strength": 0.5, "rate": 2.0}


def _name(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items()) or "base"


def _settings() -> dict[str, dict[str, Any]]:
    grid: list[dict[str, Any]] = [
        {"tree_shape": shape, "max_depth": depth, "projection_strength": gamma}
        for shape, depth, gamma in product(SHAPES, DEPTHS, PROJECTIONS)
    ]
    leaves: list[dict[str, Any]] = [
        {"tree_shape": "leaf-wise", "max_leaves": n, "max_depth": None} for n in (31, 63, 127, 255, 511)
    ]
    others: list[dict[str, Any]] = [
        {"tree_shape": shape, **change}
        for shape in SHAPES[:2]
        for change in ({"exploration": 0.0}, {"exploration": 1.4}, {"rate": 1.0}, {"rate": 4.0}, {"reg_lambda": 10.0})
    ]
    return {_name(params): params for params in (*grid, *leaves, *others)}


SETTINGS = _settings()


@lru_cache(maxsize=2)
def load(name: str, data_dir: str | None, rows: int) -> tuple[Any, NDArray[Any]]:
    """Read a data set, capped to a number of samples."""
    frame, target = read_parquet(name, require_data_dir(data_dir))
    regression = task_of(name) == "regression"
    y = target.astype(np.float64) if regression else np.unique(target, return_inverse=True)[1].astype(np.int64)
    frame, y = capped(frame, y, rows, COLUMN_CAP, stratified=not regression)
    return encoded(frame.reset_index(drop=True), METHODS["SCBoost"]), y


def run_fold(task: Task, params: Mapping[str, Any], data_dir: str | None) -> dict[str, float]:
    """Fit one candidate and find its best round on the test fold."""
    from scboost import SCBoostClassifier, SCBoostRegressor
    from scboost._core.autotune import auto_learning_rate

    kind = task_of(task.dataset)
    X, y = load(task.dataset, data_dir, int(task.method))
    train, test = folds(y, SEED, N_FOLDS, stratified=kind != "regression")[task.fold]
    given = {**BASE, **params}
    given["learning_rate"] = given.pop("rate") * auto_learning_rate(len(train), 1000, many_classes=kind == "multiclass")
    if kind == "regression":
        y = (y - y[train].mean()) / y[train].std()
    model: Any = (SCBoostRegressor if kind == "regression" else SCBoostClassifier)(
        engine="native",
        n_estimators=MAX_ROUNDS,
        early_stopping=True,
        n_iter_no_change=PATIENCE,
        n_jobs=1,
        random_state=task.fold,
        **{"max_leaves": None, **given},
    )
    begun = time.process_time()
    model.fit(X.iloc[train], y[train], X_val=X.iloc[test], y_val=y[test])
    seconds = time.process_time() - begun
    losses = model.training_log_["validation_loss"]
    best = int(np.argmin(losses))
    return {
        "best_loss": float(losses[best]),
        "best_round": best + 1,
        "n_rounds": len(losses),
        "cpu_seconds": seconds,
        "n_samples": len(train),
    }


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab candidate_study``."""
    parser.description = "Measure candidates of the selection. An interrupted run is resumed."
    parser.add_argument("--data-dir", help=f"directory of Parquet files (default: ${DATA_DIR_VARIABLE})")
    parser.add_argument("--out", type=Path, default=Path("results/default"), help="directory of the result file")
    parser.add_argument("--rows", type=int, default=4000, help="largest number of samples")
    parser.add_argument("--folds", type=int, default=1, help="number of folds to run, of five")
    parser.add_argument("--sets", nargs="+", metavar="NAME", choices=SETS, help="only these data sets")
    parser.add_argument("--only", nargs="+", metavar="TEXT", default=[""], help="only settings with one of these texts")


def main(args: argparse.Namespace) -> int:
    """Run the candidates that are not done yet."""
    directory = require_data_dir(args.data_dir)
    chosen = {name: params for name, params in SETTINGS.items() if any(text in name for text in args.only)}
    experiment = Experiment(
        "candidates of the selection", run_fold, COLUMNS, SETS, (str(args.rows),), settings=chosen, n_folds=N_FOLDS
    )
    experiment.run_recorded(
        args.out / "candidates.csv",
        sorted(experiment.tasks(args.sets, None, args.folds), key=lambda task: task.fold),
        directory,
        command="scboost-lab candidate_study",
        fingerprint=partial(fingerprint, data_dir=directory),
    )
    return 0
