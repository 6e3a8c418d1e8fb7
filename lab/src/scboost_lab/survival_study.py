"""Survival analysis against other libraries at their defaults: ``scboost-lab survival_study``.

Every row of ``results/tasks/survival.csv`` is one method on one fold of one of the right-censored data sets that
lifelines and scikit-survival ship: concordance index and integrated Brier score on the test fold, both by
scikit-survival, and the seconds of the fit. All methods get the same matrix: categories one-hot, missing values imputed
by the median.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from scboost_lab.datasets import SEED
from scboost_lab.runner import Experiment, NotInstalledError, Task
from scboost_lab.task_tables import print_ranks

COLUMNS = ("concordance", "integrated_brier_score", "fit_seconds", "n_samples")
N_FOLDS = 5
MAX_SAMPLES = 2000  # of a data set: a forest of scikit-survival takes time and memory by the square
# Columns that identify a sample or tell what happened after the event.
_LEFT_OUT = {
    "flchain": ["chapter"],
    "dd": ["ctryname", "cowcode2", "politycode", "ehead", "leaderspellreg"],
    "lung": ["inst"],
}
_FROM_SCIKIT_SURVIVAL = {
    "aids": "load_aids",
    "breast_cancer": "load_breast_cancer",
    "flchain": "load_flchain",
    "gbsg2": "load_gbsg2",
    "veteran": "load_veterans_lung_cancer",
    "whas500": "load_whas500",
}
# Loader, time and event.
_FROM_LIFELINES = {
    "dd": ("load_dd", "duration", "observed"),
    "kidney_transplant": ("load_kidney_transplant", "time", "death"),
    "lung": ("load_lung", "time", "status"),
    "rossi": ("load_rossi", "week", "arrest"),
}
SETS = tuple(sorted((*_FROM_SCIKIT_SURVIVAL, *_FROM_LIFELINES)))

Floats = NDArray[np.float64]
Fitted = tuple[Floats, Callable[[Floats], Floats]]  # risks of the test fold, and its survival functions at some times


@lru_cache(maxsize=1)
def load(name: str) -> tuple[Floats, NDArray[Any]]:
    """Return features, and a structured array of event and time."""
    try:
        import lifelines.datasets
        import sksurv.datasets
        from sksurv.util import Surv
    except ImportError as error:
        raise NotInstalledError("the study of survival needs lifelines and scikit-survival") from error
    if name in _FROM_SCIKIT_SURVIVAL:
        frame, given = getattr(sksurv.datasets, _FROM_SCIKIT_SURVIVAL[name])()
        event, duration = (given[field] for field in given.dtype.names)
    else:
        loader, time_column, event_column = _FROM_LIFELINES[name]
        frame = getattr(lifelines.datasets, loader)()
        event, duration = frame.pop(event_column), frame.pop(time_column)
    frame = frame.drop(columns=_LEFT_OUT.get(name, []))
    numeric = frame.select_dtypes("number")
    frame[numeric.columns] = numeric.fillna(numeric.median())
    X = pd.get_dummies(frame, drop_first=True).to_numpy(np.float64)
    y = Surv.from_arrays(np.asarray(event) == np.max(event), np.maximum(np.asarray(duration, float), 1e-3))
    kept = np.random.default_rng(SEED).permutation(len(X))[:MAX_SAMPLES]
    return X[kept], y[kept]


def _scboost(X: Floats, y: NDArray[Any], X_test: Floats, **parameters: Any) -> Fitted:
    from scboost import SCBoostSurvival

    model = SCBoostSurvival(n_jobs=1, **parameters).fit(X, y)
    predicted = model.predict(X_test)
    risk = -predicted if parameters.get("loss") == "aft" else predicted
    return risk, lambda times: model.predict_survival_function(X_test, times)


def _scikit_survival(X: Floats, y: NDArray[Any], X_test: Floats, *, name: str) -> Fitted:
    from sksurv import ensemble

    model = getattr(ensemble, name)(random_state=SEED).fit(X, y)
    functions = model.predict_survival_function(X_test)
    return model.predict(X_test), lambda times: np.array([function(times) for function in functions])


def _xgboost(X: Floats, y: NDArray[Any], X_test: Floats, *, objective: str) -> Fitted:
    import xgboost as xgb
    from scipy.stats import norm

    event, duration = y["event"], y["time"]
    matrix = xgb.DMatrix(X)
    if objective == "survival:cox":
        matrix.set_info(label=np.where(event, duration, -duration))
    else:
        matrix.set_info(label_lower_bound=duration, label_upper_bound=np.where(event, duration, np.inf))
    booster = xgb.train({"objective": objective, "nthread": 1, "seed": SEED}, matrix, 100)
    raw = booster.predict(xgb.DMatrix(X_test), output_margin=True).astype(np.float64)
    if objective == "survival:aft":
        return -raw, lambda times: norm.sf(np.log(times) - raw[:, None])
    from scboost._core.survival import cumulative_hazard, step

    # XGBoost has no survival functions: Breslow's baseline from the training set, as scikit-survival computes it.
    ratio = np.exp(booster.predict(matrix, output_margin=True).astype(np.float64))
    bounds = np.stack([duration, np.where(event, duration, np.inf)], axis=1)
    steps, hazard = cumulative_hazard(bounds, ratio)
    return raw, lambda times: np.exp(-np.exp(raw)[:, None] * step(steps, hazard, times, 0.0))


METHODS: dict[str, tuple[Callable[..., Fitted], dict[str, Any]]] = {
    "SCBoost Cox": (_scboost, {}),
    "SCBoost AFT": (_scboost, {"loss": "aft"}),
    "sksurv forest": (_scikit_survival, {"name": "RandomSurvivalForest"}),
    "sksurv boosting": (_scikit_survival, {"name": "GradientBoostingSurvivalAnalysis"}),
    "XGBoost Cox": (_xgboost, {"objective": "survival:cox"}),
    "XGBoost AFT": (_xgboost, {"objective": "survival:aft"}),
}


def run_fold(task: Task, params: Mapping[str, Any], data_dir: str | None) -> dict[str, float]:
    """Fit one method on one fold and score it."""
    del params, data_dir
    X, y = load(task.dataset)
    from sksurv.metrics import concordance_index_censored, integrated_brier_score

    event = y["event"]
    train, test = list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=task.seed).split(X, event))[task.fold]
    # Times at which both folds have samples at risk; the metric is not defined outside of the follow-up.
    known = y["time"][test][event[test]]
    low, high = np.quantile(known, [0.1, 0.9])
    inside = test[y["time"][test] < y["time"][train].max()]
    times = np.unique(np.linspace(low, min(high, np.nextafter(y["time"][inside].max(), 0)), 50))
    fit, options = METHODS[task.method]
    begun = time.perf_counter()
    risk, survival = fit(X[train], y[train], X[test], **options)
    seconds = time.perf_counter() - begun
    scored = np.isin(test, inside)
    return {
        "concordance": float(concordance_index_censored(event[test], y["time"][test], risk)[0]),
        "integrated_brier_score": float(integrated_brier_score(y[train], y[inside], survival(times)[scored], times)),
        "fit_seconds": round(seconds, 4),
        "n_samples": len(train),
    }


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab survival_study``."""
    parser.description = "Compare survival models with other libraries. An interrupted run is resumed."
    parser.add_argument("--out", type=Path, default=Path("results/tasks"), help="directory of the result file")
    parser.add_argument("--sets", nargs="+", metavar="NAME", choices=SETS, help="only these data sets")
    parser.add_argument("--folds", type=int, default=N_FOLDS, help=f"number of folds to run, of {N_FOLDS}")
    parser.add_argument("--methods", nargs="+", metavar="NAME", choices=tuple(METHODS), help="only these methods")
    parser.add_argument("--summary", action="store_true", help="only print the table of the results that are there")


def main(args: argparse.Namespace) -> int:
    """Run what is not done yet and print the mean scores and ranks."""
    experiment = Experiment("survival", run_fold, COLUMNS, SETS, tuple(METHODS), n_folds=N_FOLDS)
    path = args.out / "survival.csv"
    if not args.summary:
        experiment.run_recorded(
            path,
            sorted(experiment.tasks(args.sets, args.methods, args.folds), key=lambda task: task.fold),
            None,
            command="scboost-lab survival_study",
            fingerprint=lambda name: f"{'scikit-survival' if name in _FROM_SCIKIT_SURVIVAL else 'lifelines'}: {name}",
        )
    print_ranks(path, {"concordance": True, "integrated_brier_score": False}, tuple(METHODS))
    return 0
