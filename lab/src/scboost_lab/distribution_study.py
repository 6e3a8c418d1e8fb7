"""Distributional regression against other libraries at their defaults: ``scboost-lab distribution_study``.

Every row of ``results/tasks/distribution.csv`` is one method on one random split of one data set: at most `TRAIN_SIZE`
training and `TEST_SIZE` test samples. All methods predict a normal distribution for each test sample and get the same
matrix of numbers, without missing values, and a target with mean 0 and standard deviation 1 on the training set, so
that scores can be averaged over data sets. Scores are the continuous ranked probability score (CRPS) and the negative
log-likelihood; lower is better. Settings of SCBoost were selected on other splits of the same data sets: seed 1.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.model_selection import train_test_split

from scboost_lab.datasets import DATA_DIR_VARIABLE, SEED, require_data_dir
from scboost_lab.default_methods import REGRESSION, Method
from scboost_lab.default_study import encoded, fingerprint, load
from scboost_lab.runner import Experiment, NotInstalledError, Task
from scboost_lab.task_tables import print_ranks

TRAIN_SIZE, TEST_SIZE = 4_000, 4_000
N_SPLITS = 5
COLUMNS = ("crps", "nll", "rmse", "coverage_80", "fit_seconds", "n_samples")

Floats = NDArray[np.float64]
Predicted = tuple[Floats, Floats]  # means and standard deviations of the test samples


def _scboost(X: Floats, y: Floats, X_test: Floats) -> Predicted:
    from scboost import SCBoostDistribution

    found = SCBoostDistribution(n_jobs=1, random_state=0).fit(X, y).predict_distribution(X_test)
    return found.mean(), found.std()


def _ngboost(X: Floats, y: Floats, X_test: Floats) -> Predicted:
    try:
        from ngboost import NGBRegressor
    except ImportError as error:
        raise NotInstalledError("ngboost is not installed") from error
    found = NGBRegressor(verbose=False, random_state=0).fit(X, y).pred_dist(X_test)
    return found.params["loc"], found.params["scale"]


def _catboost(X: Floats, y: Floats, X_test: Floats) -> Predicted:
    try:
        from catboost import CatBoostRegressor
    except ImportError as error:
        raise NotInstalledError("catboost is not installed") from error
    model = CatBoostRegressor(
        loss_function="RMSEWithUncertainty", thread_count=1, random_seed=0, verbose=False, allow_writing_files=False
    )
    mean, variance = model.fit(X, y).predict(X_test).T
    return mean, np.sqrt(variance)


METHODS: dict[str, Callable[[Floats, Floats, Floats], Predicted]] = {
    "SCBoost": _scboost,
    "NGBoost": _ngboost,
    "CatBoost": _catboost,
}


def split(dataset: str, seed: int, data_dir: str | None) -> tuple[Floats, Floats, Floats, Floats]:
    """Return X and y of training and test set, with a standardized y."""
    frame, y = load(dataset, data_dir)
    X = encoded(frame, Method("RF")).to_numpy(np.float64)
    n_train = min(TRAIN_SIZE, len(y) // 2)
    train, test = train_test_split(
        np.arange(len(y)), train_size=n_train, test_size=min(TEST_SIZE, len(y) - n_train), random_state=seed
    )
    z = (y - y[train].mean()) / y[train].std()
    return X[train], z[train], X[test], z[test]


def crps(y: Floats, mean: Floats, std: Floats) -> Floats:
    """Return the continuous ranked probability score of normal distributions."""
    z = (y - mean) / std
    return np.asarray(std * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi)))


def run_split(task: Task, params: Mapping[str, Any], data_dir: str | None) -> dict[str, float]:
    """Fit one method to one split and score its distributions."""
    del params
    X, y, X_test, y_test = split(task.dataset, task.seed + task.fold, data_dir)
    begun = time.process_time()
    mean, std = METHODS[task.method](X, y, X_test)
    seconds = time.process_time() - begun
    low, high = stats.norm.interval(0.8, mean, std)
    return {
        "crps": float(crps(y_test, mean, std).mean()),
        "nll": -float(np.mean(stats.norm.logpdf(y_test, mean, std))),
        "rmse": float(np.sqrt(np.mean((y_test - mean) ** 2))),
        "coverage_80": float(np.mean((low <= y_test) & (y_test <= high))),
        "fit_seconds": round(seconds, 4),
        "n_samples": len(y),
    }


EXPERIMENT = Experiment("distributional regression", run_split, COLUMNS, REGRESSION, tuple(METHODS), n_folds=N_SPLITS)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab distribution_study``."""
    parser.description = "Compare predicted distributions with other libraries. An interrupted run is resumed."
    parser.add_argument("--data-dir", help=f"directory of Parquet files (default: ${DATA_DIR_VARIABLE})")
    parser.add_argument("--out", type=Path, default=Path("results/tasks"), help="directory of the result file")
    parser.add_argument("--sets", nargs="+", metavar="NAME", choices=REGRESSION, help="only these data sets")
    parser.add_argument("--splits", type=int, default=N_SPLITS, help=f"number of splits to run, of {N_SPLITS}")
    parser.add_argument("--methods", nargs="+", metavar="NAME", choices=tuple(METHODS), help="only these methods")
    parser.add_argument("--summary", action="store_true", help="only print the table of the results that are there")


def main(args: argparse.Namespace) -> int:
    """Run what is not done yet and print mean scores, ranks and CPU seconds."""
    path = args.out / "distribution.csv"
    if not args.summary:
        directory = require_data_dir(args.data_dir)
        EXPERIMENT.run_recorded(
            path,
            sorted(EXPERIMENT.tasks(args.sets, args.methods, args.splits), key=lambda task: task.fold),
            directory,
            command=f"scboost-lab distribution_study --splits {args.splits}",
            fingerprint=partial(fingerprint, data_dir=directory),
            seed=SEED,
            train_size=TRAIN_SIZE,
            test_size=TEST_SIZE,
        )
    print_ranks(path, {"crps": False, "nll": False, "rmse": False}, tuple(METHODS))
    return 0
