"""``scboost-lab bench``: time and memory of SCBoost and its peers, as ratios to XGBoost in the same run."""

from __future__ import annotations

import argparse
import gc
import importlib.util
import multiprocessing
import os
import platform
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost import SCBoostClassifier
from scboost._core.autotune import auto_learning_rate
from scboost.diagnostics import tree_matrix
from scboost_lab.models import HGB, SCBOOST, SCBOOST_PAPER, make
from scboost_lab.page import write
from scboost_lab.results import ResultFile, Results
from scboost_lab.runner import NotInstalledError, Values, run_tasks

Array = npt.NDArray[np.float32]
SHAPES = ((2_340, 500), (3_375, 1_776), (4_000, 5), (13_000, 16), (100_000, 30), (1_000_000, 30))
CV_SHAPE = (1_000, 20)  # a fit of a cross-validation on few rows; profiled, too
CV_FITS = 200
PEAK_SHAPE, PEAK_ROUNDS = (1_000_000, 30), 20
SCALE_SHAPE, SCALE_ROUNDS, SCALE_METHODS = (10_000_000, 30), 20, ("XGBoost", "SCBoost", "LightGBM")
CORES = (1, 8, 16, 32)
N_ROUNDS = 100
WIDE = 500
BASES = {"SCBoost": "XGBoost", "SCBoost, paper form": "XGBoost, depth 5"}
MATRIX_TWINS = ("XGBoost, depth 5", "SCBoost, paper form")  # read by the code of their namesakes
MATRIX_SHAPE = (100_000, 30)
SHORT = 0.2
LITERAL_ROUNDS = 10
LITERAL_SIZE = 4_000_000  # numbers in the training rows above which the literal algorithm is not run to the end
KEY = ("kind", "method", "rows", "columns", "rounds", "threads", "repeat")
COLUMNS = ("fit_seconds", "predict_seconds", "matrix_seconds", "peak_bytes")
PARTS = ("binning", "tree growth", "row blocks", "reading back")
SERIAL = ("reading back", "the rest")
PROFILE_KEY = ("method", "rows", "columns", "repeat")
KINDS = {"fit_seconds": "shape", "predict_seconds": "predict"}
METHODS = {
    "XGBoost": "XGB",
    "SCBoost": SCBOOST,
    "XGBoost, depth 5": "XGB",
    "SCBoost, paper form": SCBOOST_PAPER,
    "LightGBM": "LGBM",
    "HistGradientBoosting": HGB,
    "CatBoost": "CAT",
}
"""Names in the files, and in the factory."""
FOREST = "RandomForest"
WITHOUT = ", without Numba"  # added to the name of a method in earlier results

Shape = tuple[int, int]


@dataclass(frozen=True)
class Measurement:
    """One row of the results: what is measured, of which method, on which shape, and how often before."""

    what: str
    method: str
    rows: int
    columns: int
    rounds: int
    threads: int
    repeat: int

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of `KEY` as they stand in the file."""
        return tuple(map(str, astuple(self)))

    @property
    def label(self) -> str:
        """Name of the measurement in messages."""
        return (
            f"{self.what} {self.rows:,} x {self.columns}, {self.rounds} rounds, {self.threads} thread(s): {self.method}"
        )

    @property
    def kind(self) -> object:
        """All repetitions take about equally long."""
        return astuple(self)[:-1]


@lru_cache(maxsize=1)
def make_data(n: int, d: int, seed: int = 0) -> tuple[Array, npt.NDArray[np.int64]]:
    """Make normal columns and a noisy label that depends on a few of them and their products."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d), dtype=np.float32)
    score = X[:, 0] + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) - X[:, 4] * (X[:, min(5, d - 1)] > 0)
    return X, (score + rng.standard_normal(n, dtype=np.float32) > 0.5).astype(np.int64)


def make_model(method: str, n: int, rounds: int, threads: int, rate: float | None = None) -> Any:
    """Make a model of a given number of rounds and threads: depth 6 or 31 leaves, the same learning rate for all."""
    rate = auto_learning_rate(n, rounds) if rate is None else rate
    default = SCBoostClassifier()
    params: dict[str, dict[str, Any]] = {
        "SCBoost": {"learning_rate": rate},
        "SCBoost, paper form": {"weighting": None},  # the weights are not part of growing
        "XGBoost": {
            "learning_rate": rate,
            "max_depth": 6,  # what "auto" is for classes, too
            "max_leaves": default.max_leaves or 0,
            "grow_policy": "lossguide" if default.max_leaves else "depthwise",
            "colsample_bytree": default.colsample_bytree,
            "reg_lambda": default.reg_lambda,
            "min_child_weight": 1.0,  # what "auto" is for classes
        },
        "XGBoost, depth 5": {"learning_rate": rate, "max_depth": 5},  # the shape of the paper form
        "LightGBM": {"learning_rate": rate, "num_leaves": 31},
        "HistGradientBoosting": {"learning_rate": rate, "max_leaf_nodes": 31, "early_stopping": False},
        "CatBoost": {"learning_rate": rate, "depth": 6},
        FOREST: {"max_depth": 12},
    }
    if method not in params:
        raise ValueError(f"unknown method {method!r}; known: {', '.join(params)}")
    key = {**METHODS, FOREST: "RF"}[method]
    return make(key, 0, n_estimators=rounds, n_threads=threads, **params[method])


def clock(threads: int) -> float:
    """CPU seconds with one thread, which other processes hardly change; with several, time on the wall."""
    return time.process_time() if threads == 1 else time.perf_counter()


def load_libraries(method: str, n: int) -> None:
    """Load what a fit of n samples would load."""
    make_model(method, n, 2, 1).fit(*make_data.__wrapped__(1000, 5))  # the data of the fit stay cached


def time_fit(
    method: str, X: Array, y: npt.NDArray[np.int64], rounds: int, threads: int, rate: float | None = None
) -> float:
    """Seconds of one fit, with whatever is made when the model first predicts."""
    from threadpoolctl import threadpool_limits

    load_libraries(method, len(X))
    with threadpool_limits(threads):
        model = make_model(method, len(X), rounds, threads, rate)
        gc.collect()
        start = clock(threads)
        model.fit(X, y)
        model.predict_proba(X[:2])
        return clock(threads) - start


def time_cross_validation(method: str, n: int, d: int, rounds: int) -> float:
    """CPU seconds of `CV_FITS` fits on n of 5 n / 4 rows, each with a prediction of the others."""
    from sklearn.model_selection import ShuffleSplit
    from threadpoolctl import threadpool_limits

    X, y = make_data(5 * n // 4, d)
    with threadpool_limits(1):
        start = clock(1)
        for kept, held_out in ShuffleSplit(CV_FITS, train_size=n, random_state=0).split(X):
            make_model(method, n, rounds, 1).fit(X[kept], y[kept]).predict_proba(X[held_out])
        return clock(1) - start


def predict(model: Any, X: Array, threads: int) -> Any:
    """Predict all rows with a fitted model, whatever number of threads it was fitted with."""
    if "thread_count" in model.get_params():  # CatBoost, which does not let a fitted model be changed
        return model.predict_proba(X, thread_count=threads)
    if "n_jobs" in model.get_params() and model.n_jobs != threads:
        model.set_params(n_jobs=threads)
    return model.predict_proba(X)


def time_predictions(models: dict[str, Any], X: Array, threads: int) -> dict[str, float]:
    """Median seconds of each model's prediction of all rows; the models take turns."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(threads):
        for model in models.values():
            predict(model, X[:2], threads)
        return take_turns({method: partial(predict, model, X, threads) for method, model in models.items()}, threads)


def take_turns(actions: dict[str, Callable[[], object]], threads: int) -> dict[str, float]:
    """Median time of each action, done in turn until each took `SHORT` seconds: a few milliseconds say little."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    while min(map(sum, times.values())) < SHORT:
        for name, action in actions.items():
            start = clock(threads)
            action()
            times[name].append(clock(threads) - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def median_seconds(action: Callable[[], object], threads: int) -> float:
    """Median time of one action; see `take_turns`."""
    return take_turns({"": action}, threads)[""]


def time_matrix(method: str, n: int, d: int, threads: int) -> tuple[float, float]:
    """Seconds of one prediction of all rows and of the matrix of all trees' predictions."""
    from threadpoolctl import threadpool_limits

    X, y = make_data(n, d)
    with threadpool_limits(threads):
        model = make_model(method, n, N_ROUNDS, threads).fit(X, y)
        tree_matrix(model, X[:2])
        own = median_seconds(lambda: predict(model, X, threads), threads)
        return own, median_seconds(lambda: tree_matrix(model, X), threads)


def time_literal(X: Array, y: npt.NDArray[np.int64], rounds: int) -> float:
    """Seconds of the literal algorithm for a few rounds, times what is missing to N_ROUNDS: a lower bound."""
    from threadpoolctl import threadpool_limits

    from scboost_lab.literal import fit_literal

    held_out = len(X) // 5
    with threadpool_limits(1):
        start = clock(1)
        fit_literal(
            X[held_out:],
            y[held_out:],
            X[:held_out],
            y[:held_out],
            n_estimators=rounds,
            learning_rate=0.1,
            energy_threshold=0.9,
            covariance_penalty=0.1,
            max_depth=5,
            random_state=0,
        )
        return (clock(1) - start) * N_ROUNDS / rounds


def fit_apart(method: str, n: int, d: int, rounds: int, threads: int) -> tuple[float, int]:
    """Seconds of one fit in a process of its own, and bytes by which it raises the process's peak."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        seconds, peak = pool.apply(_fit_apart, (method, n, d, rounds, threads))
        return float(seconds), int(peak)


def _fit_apart(method: str, n: int, d: int, rounds: int, threads: int) -> tuple[float, int]:
    load_libraries(method, n)
    X, y = make_data(n, d)
    before = _resident()
    _reset_peak()
    return time_fit(method, X, y, rounds, threads), _peak_resident() - before


def _resident() -> int:
    import resource  # not on Windows, which `can_measure_memory` says first

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def can_measure_memory() -> bool:
    """Return whether the peak memory of a process can be measured; print a note to standard error if not."""
    found = Path("/proc/self/clear_refs").exists() and importlib.util.find_spec("resource") is not None
    if not found:
        print("memory is not measured: this requires Linux (/proc and the module resource)", file=sys.stderr)
    return found


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _peak_resident() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


@lru_cache(maxsize=1)
def _fitted(n: int, d: int, methods: tuple[str, ...]) -> dict[str, Any]:
    X, y = make_data(n, d)
    threads = multiprocessing.cpu_count()
    return {method: make_model(method, n, N_ROUNDS, threads).fit(X, y) for method in methods}


@lru_cache(maxsize=1)
def predictions(n: int, d: int, threads: int, repeat: int, methods: tuple[str, ...]) -> dict[str, float]:  # noqa: ARG001 - each repetition is measured anew
    """Seconds that each method takes to predict the training rows, measured in turn."""
    return time_predictions(_fitted(n, d, methods), make_data(n, d)[0], threads)


def measure(task: Measurement, methods: tuple[str, ...]) -> Values:
    """Measure one thing: the work of one row."""
    n, d = task.rows, task.columns
    if task.what == "predict":
        return {"predict_seconds": predictions(n, d, task.threads, task.repeat, methods)[task.method]}
    if task.what == "trees":
        own, matrix = time_matrix(task.method, n, d, task.threads)
        return {"predict_seconds": own, "matrix_seconds": matrix}
    if task.what in ("memory", "scale"):
        seconds, peak = fit_apart(task.method, n, d, task.rounds, task.threads)
        return {"peak_bytes": peak} | ({"fit_seconds": seconds} if task.what == "scale" else {})
    if task.what == "cv":
        return {"fit_seconds": time_cross_validation(task.method, n, d, task.rounds)}
    X, y = make_data(n, d)
    if task.method == "literal":
        return {"fit_seconds": time_literal(X, y, N_ROUNDS if n * d <= LITERAL_SIZE else LITERAL_ROUNDS)}
    # One rate where sizes are compared: with smaller steps trees stay larger, which is not what is asked there.
    rate = None if task.what == "shape" else auto_learning_rate(10_000, N_ROUNDS)
    return {"fit_seconds": time_fit(task.method, X, y, task.rounds, task.threads, rate)}


def measurements(
    methods: Sequence[str], shapes: Sequence[Shape], threads: Sequence[int], repeat: int, *, only: str
) -> Iterator[Measurement]:
    """Everything to measure, or one part of it; runs alternate between the methods."""
    if only == "scale":
        for t, i, m in product(threads, range(repeat), SCALE_METHODS):
            yield Measurement("scale", m, *SCALE_SHAPE, SCALE_ROUNDS, t, i)
        return
    for t, i, (n, d), m in product(threads, range(repeat), shapes, methods):
        yield Measurement("shape", m, n, d, N_ROUNDS, t, i)
    for (n, d), i, t, m in product(shapes, range(repeat), threads, methods):
        yield Measurement("predict", m, n, d, N_ROUNDS, t, i)
    if only == "shapes":
        return
    ours = ("XGBoost", "SCBoost", "SCBoost, paper form")
    for i in range(repeat):
        for n, m in product((10_000, 100_000, 1_000_000), ours):
            yield Measurement("rows", m, n, 16, 50, 1, i)
        for T, m in product((50, 100, 200, 400, 800), ours):
            yield Measurement("rounds", m, 10_000, 16, T, 1, i)
    for m in ours[:2]:
        yield Measurement("cv", m, *CV_SHAPE, N_ROUNDS, 1, 0)
    for t, i, m in product(threads, range(repeat), (*methods, FOREST)):
        if m not in MATRIX_TWINS:
            yield Measurement("trees", m, *MATRIX_SHAPE, N_ROUNDS, t, i)
    if can_measure_memory():
        yield from _memory_measurements()
    for n, d in shapes:
        yield Measurement("shape", "literal", n, d, N_ROUNDS, 1, 0)


def _memory_measurements() -> Iterator[Measurement]:
    for m, T in product((*BASES.values(), *BASES), (50, 200)):
        yield Measurement("memory", m, 200_000, 16, T, 1, 0)
    for m in ("XGBoost", "SCBoost"):
        yield Measurement("memory", m, *PEAK_SHAPE, PEAK_ROUNDS, 1, 0)


def machine() -> str:
    """Describe the machine, and how many processes want to run on it."""
    load = f", load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    return f"{multiprocessing.cpu_count()} cores, {platform.system()}{load}"


def installed(methods: Iterable[str]) -> tuple[str, ...]:
    """Those of the methods whose package is there."""
    found = []
    for method in methods:
        try:
            make_model(method, 100, 2, 1)
        except NotInstalledError as error:
            print(f"{error}: left out", file=sys.stderr)
        else:
            found.append(method)
    return tuple(found)


def run(
    output: Path,
    shapes: Sequence[Shape] = SHAPES,
    threads: Sequence[int] = (1, 2),
    repeat: int = 3,
    *,
    only: str = "",
    command: str = "",
) -> Results:
    """Measure everything, or only "shapes" or "scale"; existing results are kept."""
    methods = installed(METHODS)
    file = ResultFile(output / "bench.csv", COLUMNS, KEY)
    tasks = list(measurements(methods, shapes, threads, repeat, only=only))
    with file.recorded(command, machine=machine(), import_seconds=import_seconds()):
        run_tasks(tasks, partial(measure, methods=methods), file)
    return Results(file.path, KEY)


def import_seconds(repeat: int = 5) -> float:
    """Median CPU seconds of ``import scboost`` after ``import xgboost`` and what it brings, in fresh processes."""
    import subprocess

    code = "import xgboost, time; t = time.process_time(); import scboost; print(time.process_time() - t)"
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)  # noqa: S603
        for _ in range(repeat)
    ]
    return statistics.median(times)


def _shape(text: str) -> tuple[int, int]:
    try:
        n, d = (int(part.replace("_", "")) for part in text.lower().split("x"))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a shape such as 13000x16") from error
    if n < 100 or d < 5:
        raise argparse.ArgumentTypeError(f"{text!r} is too small: at least 100 rows and 5 columns")
    return n, d


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab bench``."""
    parser.add_argument("--shapes", type=_shape, nargs="+", default=SHAPES, metavar="ROWSxCOLUMNS")
    parser.add_argument("--threads", type=int, nargs="+", default=(1, 2))
    parser.add_argument("--repeat", type=int, default=3, help="runs of each method (%(default)s)")
    parser.add_argument("--only-profile", action="store_true", help="only the CPU time of fits and its parts")
    parser.add_argument("--only-shapes", action="store_true", help="only fits and predictions of the shapes")
    parser.add_argument("--only-scale", action="store_true", help="only time and memory of the largest shape")
    parser.add_argument("--page-only", action="store_true", help="only write the page from existing results")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("scboost-bench"),
        help="directory of the results, resumed if it exists (%(default)s)",
    )
    parser.add_argument("--docs", type=Path, default=Path("scboost-bench"), help="directory of the page (%(default)s)")


def main(args: argparse.Namespace) -> int:
    """Measure, print the ratios and write the page."""
    from scboost_lab.bench_page import cores_table, draw_growth, page_text, profile_table, ratio_table, scale_table
    from scboost_lab.bench_profile import profile

    if args.repeat < 1:
        raise ValueError(f"--repeat must be at least 1, got {args.repeat}")
    if not args.page_only:
        words = ["--threads", *map(str, args.threads), "--repeat", str(args.repeat)]
        words += [f"--only-{part}" for part in ("profile", "shapes", "scale") if getattr(args, f"only_{part}")]
        if tuple(args.shapes) != SHAPES:
            words += ["--shapes", *(f"{n}x{d}" for n, d in args.shapes)]
        command = shlex.join(["scboost-lab", "bench", *words])
        if not args.only_profile:
            only = "scale" if args.only_scale else "shapes" if args.only_shapes else ""
            run(args.output, args.shapes, args.threads, args.repeat, only=only, command=command)
        if not (args.only_shapes or args.only_scale):
            profile(args.output, args.shapes, args.repeat, command=command)
            profiles = Results(args.output / "profile.csv", PROFILE_KEY)
            print(f"\nCPU seconds\n{profile_table(profiles)}\n\nMany cores\n{cores_table(profiles)}")
    results = Results(args.output / "bench.csv", KEY)
    if args.only_scale:
        print(scale_table(results))
    if args.only_profile or args.only_scale:
        return 0
    for threads, field in product(args.threads, KINDS):
        print(f"\n{field}, {threads} thread(s), ratio to XGBoost\n{ratio_table(results, field, threads)}")
    if not args.only_shapes:
        write(args.docs / "speed.md", page_text(args.output))
        draw_growth(results, args.docs / "figures" / "speed.png")
    return 0
