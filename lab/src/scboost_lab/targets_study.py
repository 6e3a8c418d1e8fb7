"""Several targets in one model against one model per target and CatBoost: ``scboost-lab targets_study``.

Every row of ``results/tasks/targets.csv`` is one method on one data set: the mean over targets of the RMSE in units of
the target's standard deviation, or of the log-loss for labels, and the CPU seconds of the fit. Three sets are
simulated: "related" (five mixtures of three functions), "separate" (five functions of different features) and "labels"
(signs of the latter with noise). Two are tables of which the last two features are targets besides the original one;
they are no multi-target benchmarks, and are skipped without ``--data``. Their targets are standardized beforehand,
because CatBoost's MultiRMSE depends on the units. A fold is another draw of 1,500 training samples.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scboost_lab.datasets import SEED, read_parquet
from scboost_lab.runner import Experiment, Task
from scboost_lab.task_tables import print_ranks

COLUMNS = ("loss", "fit_seconds", "n_samples", "n_targets")
N_FOLDS = 3
N_TRAIN, N_TEST = 1500, 1500
SIMULATED = ("related", "separate", "labels")
TABLES = ("cpu_act_reg", "pol_reg")
METHODS = ("SCBoost", "SCBoost per target", "CatBoost")

Floats = NDArray[np.float64]


def simulated(name: str, fold: int) -> tuple[Floats, Floats]:
    """Return features and targets of a simulated set."""
    rng = np.random.default_rng([SEED, SIMULATED.index(name), fold])
    X = rng.normal(size=(N_TRAIN + N_TEST, 8))
    f = np.c_[
        np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2],
        np.abs(X[:, 3]) + X[:, 0] * X[:, 4],
        np.where(X[:, 5] > 0, X[:, 1], -X[:, 6]),
        np.exp(X[:, 7] / 2),
        X[:, 0] ** 2 - X[:, 6],
    ]
    Y = f[:, :3] @ rng.normal(size=(3, 5)) if name == "related" else f
    Y = Y + 0.5 * Y.std(axis=0) * rng.normal(size=Y.shape)
    return X, (np.median(Y, axis=0) < Y).astype(float) if name == "labels" else Y


def load(name: str, fold: int, data_dir: str | None) -> tuple[Floats, Floats]:
    """Return features and targets; the first samples are for training."""
    if name in SIMULATED:
        return simulated(name, fold)
    if data_dir is None:
        raise FileNotFoundError(f"{name} needs --data, the directory of its Parquet file")
    table, y = read_parquet(name, data_dir)
    values = np.column_stack([np.asarray(table, dtype=np.float64), np.asarray(y, dtype=np.float64)])
    drawn = np.random.default_rng([SEED, fold]).permutation(len(values))[: N_TRAIN + N_TEST]
    Y = values[drawn, -3:]
    return values[drawn, :-3], Y / Y[:N_TRAIN].std(axis=0)


def _fitted(method: str, X: Floats, Y: Floats, *, labels: bool) -> Callable[[Floats], Floats]:
    """Fit a method at its defaults; return a function that predicts values or probabilities of shape (n, K)."""
    if method == "CatBoost":
        import catboost

        loss = "MultiLogloss" if labels else "MultiRMSE"
        parameters = {"loss_function": loss, "thread_count": 1, "random_seed": SEED, "verbose": False}
        found = catboost.CatBoost({**parameters, "allow_writing_files": False}).fit(X, Y)
        return lambda Z: np.asarray(found.predict(Z, prediction_type="Probability" if labels else "RawFormulaVal"))
    from scboost import SCBoostClassifier, SCBoostRegressor

    parts = [Y] if method == "SCBoost" else list(Y.T)
    if labels:
        classifiers = [SCBoostClassifier(n_jobs=1).fit(X, part.astype(int)) for part in parts]
        if method == "SCBoost":
            return classifiers[0].predict_proba
        return lambda Z: np.column_stack([model.predict_proba(Z)[:, 1] for model in classifiers])
    regressors = [SCBoostRegressor(n_jobs=1).fit(X, part) for part in parts]
    return lambda Z: np.column_stack([model.predict(Z) for model in regressors])


def run_fold(task: Task, params: Mapping[str, Any], data_dir: str | None) -> dict[str, float]:
    """Fit one method on one draw and score it."""
    del params
    X, Y = load(task.dataset, task.fold, data_dir)
    labels = task.dataset == "labels"
    begun = time.process_time()
    predict = _fitted(task.method, X[:N_TRAIN], Y[:N_TRAIN], labels=labels)
    seconds = time.process_time() - begun
    y, found = Y[N_TRAIN:], predict(X[N_TRAIN:])
    if labels:
        p = np.clip(found, 1e-15, 1 - 1e-15)
        loss = -np.mean(y * np.log(p) + (1 - y) * np.log1p(-p))
    else:
        loss = np.mean(np.sqrt(np.mean((found - y) ** 2, axis=0)) / y.std(axis=0))
    return {"loss": float(loss), "fit_seconds": round(seconds, 4), "n_samples": N_TRAIN, "n_targets": Y.shape[1]}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab targets_study``."""
    parser.description = "Compare one model of several targets with one model per target. A run is resumed."
    parser.add_argument("--out", type=Path, default=Path("results/tasks"), help="directory of the result file")
    parser.add_argument(
        "--data", type=str, default=None, help="directory of the Parquet files; without, simulated sets"
    )
    parser.add_argument("--folds", type=int, default=N_FOLDS, help=f"number of draws to run, of {N_FOLDS}")
    parser.add_argument("--summary", action="store_true", help="only print the table of the results that are there")


def main(args: argparse.Namespace) -> int:
    """Run what is not done yet and print the mean scores and ranks."""
    sets = SIMULATED if args.data is None else (*SIMULATED, *TABLES)
    experiment = Experiment("targets", run_fold, COLUMNS, sets, METHODS, n_folds=N_FOLDS)
    path = args.out / "targets.csv"
    if not args.summary:
        experiment.run_recorded(
            path,
            sorted(experiment.tasks(None, None, args.folds), key=lambda task: task.fold),
            args.data,
            command="scboost-lab targets_study",
            fingerprint=lambda name: f"simulated: {name}" if name in SIMULATED else f"table: {name}",
        )
    print_ranks(path, {"loss": False}, METHODS)
    return 0
