"""Ranking against other libraries at their defaults: ``scboost-lab ranking_study``.

Every row of ``results/tasks/ranking.csv`` is one method on one simulated data set: NDCG@10 on queries that were not
used for fitting, and the CPU seconds of the fit. No ranking data set could be had from a package, so queries are drawn
from known relevance functions: the relevance of a document, 0 to 4, is a quantile of a function of its features plus
noise and an effect of its query, which shifts features and relevance alike. The five functions are linear, additive,
with interactions, with thresholds, and linear with few relevant documents. A fold is another draw.
"""

import argparse
import time
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scboost_lab.datasets import SEED
from scboost_lab.runner import Experiment, Task
from scboost_lab.task_tables import print_ranks

COLUMNS = ("ndcg10", "fit_seconds", "n_samples")
N_FOLDS = 3
N_FEATURES = 20
N_QUERIES, N_TEST_QUERIES = 150, 300
SETS = ("linear", "additive", "interactions", "thresholds", "rare")
METHODS = ("SCBoost", "LightGBM", "XGBoost", "CatBoost")

Floats = NDArray[np.float64]


def _utility(name: str, X: Floats, rng: np.random.Generator) -> Floats:
    """Return what the relevance depends on, without noise."""
    w = rng.normal(size=N_FEATURES) * (np.arange(N_FEATURES) < 10)
    if name == "additive":
        return np.sin(2 * X) @ w + np.abs(X) @ np.roll(w, 3)
    if name == "interactions":
        return X @ w / 2 + (X * np.roll(X, 1, axis=1)) @ w
    if name == "thresholds":
        return (X > 0.5).astype(float) @ w + ((X > 0) & (np.roll(X, 2, axis=1) < 0)).astype(float) @ np.roll(w, 1)
    return X @ w


@lru_cache(maxsize=1)
def load(name: str, fold: int) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Return features, relevances and queries; those of the test set come last."""
    rng = np.random.default_rng([SEED, SETS.index(name), fold])
    sizes = rng.integers(5, 40, N_QUERIES + N_TEST_QUERIES)
    qid = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(qid), N_FEATURES)) + 0.5 * rng.normal(size=(len(sizes), N_FEATURES))[qid]
    utility = _utility(name, X, rng)
    noisy = utility / utility.std() + 0.7 * rng.normal(size=len(qid)) + 0.5 * rng.normal(size=len(sizes))[qid]
    shares = [0.85, 0.93, 0.97, 0.99] if name == "rare" else [0.5, 0.75, 0.9, 0.97]
    return X, np.digitize(noisy, np.quantile(noisy, shares)), qid


def _scores(method: str, X: Floats, y: NDArray[np.int64], qid: NDArray[np.int64], X_test: Floats) -> Floats:
    """Fit a library at its defaults, and return its scores of the test set."""
    if method == "SCBoost":
        from scboost import SCBoostRanker

        return SCBoostRanker(n_jobs=1).fit(X, y, qid=qid).predict(X_test)
    if method == "LightGBM":
        import lightgbm

        ranker = lightgbm.LGBMRanker(n_jobs=1, random_state=SEED, verbose=-1)
        return np.asarray(ranker.fit(X, y, group=np.bincount(qid)).predict(X_test))
    if method == "XGBoost":
        import xgboost

        model = xgboost.XGBRanker(n_jobs=1, random_state=SEED).fit(X, y, qid=qid)
        return np.asarray(model.predict(X_test), dtype=np.float64)
    import catboost

    parameters = {"loss_function": "YetiRank", "thread_count": 1, "random_seed": SEED, "verbose": False}
    found = catboost.CatBoost({**parameters, "allow_writing_files": False}).fit(catboost.Pool(X, y, group_id=qid))
    return np.asarray(found.predict(X_test))


def run_fold(task: Task, params: Mapping[str, Any], data_dir: str | None) -> dict[str, float]:
    """Fit one method on one draw and score it."""
    del params, data_dir
    from sklearn.metrics import ndcg_score

    X, y, qid = load(task.dataset, task.fold)
    train = qid < N_QUERIES
    begun = time.process_time()
    score = _scores(task.method, X[train], y[train], qid[train], X[~train])
    seconds = time.process_time() - begun
    values = [
        ndcg_score([2.0 ** y[~train][own] - 1], [score[own]], k=10)
        for own in (qid[~train] == q for q in np.unique(qid[~train]))
        if y[~train][own].any()
    ]
    return {"ndcg10": float(np.mean(values)), "fit_seconds": round(seconds, 4), "n_samples": int(train.sum())}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab ranking_study``."""
    parser.description = "Compare rankings with other libraries. An interrupted run is resumed."
    parser.add_argument("--out", type=Path, default=Path("results/tasks"), help="directory of the result file")
    parser.add_argument("--folds", type=int, default=N_FOLDS, help=f"number of draws to run, of {N_FOLDS}")
    parser.add_argument("--summary", action="store_true", help="only print the table of the results that are there")


def main(args: argparse.Namespace) -> int:
    """Run what is not done yet and print the mean scores and ranks."""
    experiment = Experiment("ranking", run_fold, COLUMNS, SETS, METHODS, n_folds=N_FOLDS)
    path = args.out / "ranking.csv"
    if not args.summary:
        experiment.run_recorded(
            path,
            sorted(experiment.tasks(None, None, args.folds), key=lambda task: task.fold),
            None,
            command="scboost-lab ranking_study",
            fingerprint=lambda name: f"simulated: {name}",
        )
    print_ranks(path, {"ndcg10": True}, METHODS)
    return 0
