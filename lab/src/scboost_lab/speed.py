"""Time of fits and predictions against other libraries, and the page ``docs/speed.md``: ``scboost-lab speed``.

Every row of ``results/speed/speed.csv`` is one repetition of one method on one workload. The methods of a workload
follow each other within a repetition, so that ratios are not disturbed by what else the machine does. Run it on a
machine that does nothing else.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost import SCBoostClassifier
from scboost_lab.page import fill, made_with, table, template, write
from scboost_lab.results import Results
from scboost_lab.runner import Experiment, Task

COLUMNS = ("cpu_seconds", "wall_seconds")
N_REPEATS = 3
N_ROUNDS, RATE = 100, 0.1
OURS = "SCBoost"
_SAMPLES_OF_ONE_REPEAT = 100_000  # larger fits are run as often, but not many times in a row
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Workload:
    """What is timed.

    Attributes
    ----------
    what : {"rounds", "default", "threads", "predict", "one sample"}
        A fit of 100 rounds, a fit at default settings, a fit of 100 rounds with two threads, predictions.
    n, d : int
        Number of samples and features.
    methods : tuple of str
        The first is ours.
    targets : dict of str to float
        Target: the largest allowed ratio to another method.
    n_classes : int
        Number of classes.
    """

    what: str
    n: int
    d: int
    methods: tuple[str, ...]
    targets: Mapping[str, float]
    n_classes: int = 2


_SMALL = ((284, 30), (1_000, 20), (4_000, 5), (13_000, 16))
_WIDE = ((2_340, 500), (3_375, 1_776))
_PEERS = (OURS, "XGBoost", "LightGBM")
WORKLOADS: dict[str, Workload] = {
    **{f"{n:,} x {d}": Workload("rounds", n, d, _PEERS, {"XGBoost": 0.5, "LightGBM": 0.8}) for n, d in _SMALL},
    "100,000 x 30": Workload("rounds", 100_000, 30, _PEERS, {"XGBoost": 0.8}),
    "1,000,000 x 30": Workload("rounds", 1_000_000, 30, _PEERS, {"XGBoost": 1.0}),
    **{f"{n:,} x {d}": Workload("rounds", n, d, _PEERS, {"XGBoost": 0.6}) for n, d in _WIDE},
    "default, 284 x 30": Workload("default", 284, 30, (OURS, "CatBoost", "ChimeraBoost", "LightGBM"), {}),
    "default, 5,000 x 40, three classes": Workload("default", 5_000, 40, (OURS, "ChimeraBoost"), {}, 3),
    "two threads, 100,000 x 30": Workload("threads", 100_000, 30, (OURS, f"{OURS}, one thread"), {}),
    "predictions of 500 trees, 100,000 x 30": Workload("predict", 100_000, 30, (OURS, "XGBoost"), {"XGBoost": 0.8}),
    "500 predictions of one sample": Workload("one sample", 1_000, 30, (OURS, "XGBoost"), {"XGBoost": 0.5}),
}
"""Workloads in the order of the page."""


@lru_cache(maxsize=1)
def data(n: int, d: int, n_classes: int) -> tuple[Array, Array]:
    """Return standard normal features and labels with noise; 284 x 30 is half of the breast cancer data."""
    if (n, d) == (284, 30):
        from sklearn.datasets import load_breast_cancer

        X, y = load_breast_cancer(return_X_y=True)
        return X[::2][:n].astype(np.float32), y[::2][:n]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=np.float32)
    score = X[:, 0] + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) - X[:, 4] * (X[:, d - 1] > 0) + rng.standard_normal(n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def estimator(method: str, what: str, d: int) -> Any:
    """Return an estimator with trees of depth 6, 100 rounds (500 for predictions), or one at its defaults."""
    if what == "default":
        return _at_defaults(method)
    rounds = 500 if what == "predict" else N_ROUNDS
    bins = 64 if d >= 100 else 256  # what SCBoost uses
    if method == "XGBoost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=rounds, learning_rate=RATE, max_depth=6, max_bin=bins, n_jobs=1)
    if method == "LightGBM":
        from lightgbm import LGBMClassifier

        leaves = {"max_depth": 6, "num_leaves": 64, "max_bin": bins - 1}
        return LGBMClassifier(n_estimators=rounds, learning_rate=RATE, n_jobs=1, verbosity=-1, **leaves)
    n_jobs = 2 if what == "threads" and method == OURS else 1
    return SCBoostClassifier(
        n_estimators=rounds, learning_rate=RATE, max_depth=6, max_bin=bins, n_jobs=n_jobs, engine="native"
    )


def _at_defaults(method: str) -> Any:
    if method == "CatBoost":
        from catboost import CatBoostClassifier

        return CatBoostClassifier(verbose=0, thread_count=1, allow_writing_files=False)
    if method == "ChimeraBoost":
        from chimeraboost import ChimeraBoostClassifier

        return ChimeraBoostClassifier(thread_count=1)
    if method == "LightGBM":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_jobs=1, verbosity=-1)
    return SCBoostClassifier(n_jobs=1)


def run_one(task: Task, params: Mapping[str, Any], data_dir: str | None) -> dict[str, float]:
    """Time one repetition."""
    del params, data_dir
    load = WORKLOADS[task.dataset]
    X, y = data(load.n, load.d, load.n_classes)
    model = estimator(task.method, load.what, load.d)
    if load.what in {"predict", "one sample"}:
        return _timed(_prediction(model, task.method, load.what, X, y))
    if task.fold == 0 and load.n <= _SAMPLES_OF_ONE_REPEAT:
        estimator(task.method, "rounds", load.d).fit(X[:300], y[:300])  # imports and compiles
    return _timed(lambda: model.fit(X, y))


def _prediction(model: Any, method: str, what: str, X: Array, y: Array) -> Callable[[], Any]:
    """Return a function that predicts with a fitted model."""
    few = X[:20_000], y[:20_000]
    model.fit(*few)
    if what == "one sample":
        return lambda: [model.predict_proba(X[i : i + 1]) for i in range(500)]
    if method == "XGBoost":
        booster = model.get_booster()
        return lambda: booster.inplace_predict(X)
    return lambda: model.predict_proba(X)


def _timed(work: Callable[[], Any]) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return {"wall_seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}


def seconds(results: Results, name: str, method: str) -> float:
    """Return the median time of a method: wall time with threads, CPU time otherwise."""
    column = "wall_seconds" if WORKLOADS[name].what == "threads" else "cpu_seconds"
    return float(np.median(results.values(column, dataset=name, method=method)))


def ratio(results: Results, name: str, peer: str) -> float:
    """Return our time as a multiple of that of another method."""
    return seconds(results, name, OURS) / seconds(results, name, peer)


def ratio_table(results: Results) -> str:
    """Make the table of times and ratios of all workloads that were run."""
    rows = []
    for name, load in WORKLOADS.items():
        if not all(results.values("cpu_seconds", dataset=name, method=m) for m in load.methods):
            continue
        cells = []
        for peer in load.methods[1:]:
            value, most = ratio(results, name, peer), load.targets.get(peer)
            asked = "" if most is None else f" (target {most:g}{'' if value <= most else ', missed'})"
            cells.append(f"{value:.2f} of {peer}{asked}")
        rows.append([name, f"{1000 * seconds(results, name, OURS):,.0f} ms", "; ".join(cells)])
    return table(["", "SCBoost", "time relative to others"], rows)


def page_text(directory: Path) -> str:
    """Write the page from the result files of a directory."""
    results = Results(directory / "speed.csv")
    fits = [name for name, load in WORKLOADS.items() if load.what == "rounds"]
    return fill(
        template("speed"),
        versions=made_with(results),
        rounds=N_ROUNDS,
        repeats=N_REPEATS,
        ratios=ratio_table(results),
        least=min(ratio(results, name, "XGBoost") for name in fits),
        most=max(ratio(results, name, "XGBoost") for name in fits),
        small=1000 * seconds(results, "default, 284 x 30", OURS),
        made=f"- {results.made_by()}",
    )


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab speed``."""
    parser.description = "Measure fits and predictions. An interrupted run is resumed."
    parser.add_argument("--page-only", action="store_true", help="only write the page from existing results")
    parser.add_argument("--workloads", nargs="+", metavar="NAME", choices=list(WORKLOADS), help="only these")
    parser.add_argument("--out", type=Path, default=Path("results/speed"), help="directory of the result files")
    parser.add_argument("--page", type=Path, default=Path("docs/speed.md"), help="path of the page")


def main(args: argparse.Namespace) -> int:
    """Measure what is not measured yet and write the page."""
    if not args.page_only:
        methods = tuple(dict.fromkeys(m for load in WORKLOADS.values() for m in load.methods))
        experiment = Experiment(
            "speed",
            run_one,
            COLUMNS,
            tuple(WORKLOADS),
            methods,
            n_folds=N_REPEATS,
            wanted=lambda name, method, setting: method in WORKLOADS[name].methods,  # noqa: ARG005 - of any setting
        )
        place = {name: i for i, name in enumerate(WORKLOADS)}
        tasks = sorted(experiment.tasks(args.workloads), key=lambda task: (place[task.dataset], task.fold))
        experiment.run_recorded(
            args.out / "speed.csv",
            tasks,
            None,
            command="scboost-lab speed",
            fingerprint=lambda name: "generated" if "284" not in name else "scikit-learn: breast cancer",
        )
    write(args.page, page_text(args.out))
    print(f"wrote {args.page}")
    return 0
