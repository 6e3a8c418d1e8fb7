"""``scboost-lab bench``: time and memory of SCBoost and its peers, as ratios to XGBoost in the same run."""

from __future__ import annotations

import argparse
import csv
import gc
import json
import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost import SCBoostClassifier
from scboost.estimators.base import auto_learning_rate
from scboost.estimators.progress import Progress
from scboost.redundancy import tree_matrix
from scboost_lab.protocol import versions

Array = npt.NDArray[np.float32]
SHAPES = ((2_340, 500), (3_375, 1_776), (13_000, 16), (100_000, 30), (1_000_000, 30))
N_ROUNDS = 100
WIDE = 500
BASES = {"SCBoost": "XGBoost", "SCBoost, paper form": "XGBoost, depth 5"}
MATRIX_TWINS = ("XGBoost, depth 5", "SCBoost, paper form")  # read by the code of their namesakes
MATRIX_SHAPE = (100_000, 30)
SHORT = 0.2
LITERAL_ROUNDS = 10
LITERAL_SIZE = 4_000_000  # numbers in the training rows above which the literal algorithm is not run to the end
WHERE_THE_TIME_GOES = (
    "Seconds, one thread. Where trees on the innovation have more leaves than trees on the residual, growing them is "
    "dearer than XGBoost's own growth; on wide shapes that is all the difference. On narrow shapes the rest comes "
    "between two trees: the margin and the new tree are read through XGBoost's Python interface, a fixed cost a round "
    "that counts while a round takes milliseconds, and some twenty NumPy passes go over the rows. These passes run on "
    "one thread. Handing their blocks to two threads was tried: each call is so short that the threads wait for "
    "Python's global lock, and nothing is gained below a million rows. To come nearer at two threads they would have "
    "to be compiled. The literal algorithm is not 20 times slower on wide shapes, where nearly all of its time is "
    "scikit-learn's tree, a few times slower than XGBoost's, and its SVDs of few rows are cheap."
)
KINDS = {"fit_seconds": "shape", "predict_seconds": "predict"}
FIELDS = (
    "kind",
    "method",
    "rows",
    "columns",
    "rounds",
    "threads",
    "repeat",
    "fit_seconds",
    "predict_seconds",
    "matrix_seconds",
    "peak_bytes",
)


def make_data(n: int, d: int, seed: int = 0) -> tuple[Array, npt.NDArray[np.int64]]:
    """Make normal columns and a noisy label that depends on a few of them and their products."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d), dtype=np.float32)
    score = X[:, 0] + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) - X[:, 4] * (X[:, 5] > 0)
    return X, (score + rng.standard_normal(n, dtype=np.float32) > 0.5).astype(np.int64)


def make_model(method: str, n: int, rounds: int, threads: int, rate: float | None = None) -> Any:
    """Make a model of a given number of rounds and threads: depth 6 or 31 leaves, the same learning rate for all."""
    rate = auto_learning_rate(n, rounds) if rate is None else rate
    if method == "SCBoost":
        return SCBoostClassifier(n_estimators=rounds, n_jobs=threads, learning_rate=rate)
    if method == "SCBoost, paper form":  # without the weights, which are not part of growing
        return SCBoostClassifier.from_paper(n_estimators=rounds, n_jobs=threads, weighting=None)
    if method in {"XGBoost", "XGBoost, depth 5"}:
        from xgboost import XGBClassifier

        default = SCBoostClassifier()
        if method == "XGBoost":
            shape = {
                "max_depth": default.max_depth or 0,
                "max_leaves": default.max_leaves or 0,
                "grow_policy": "lossguide" if default.max_leaves else "depthwise",
                "colsample_bytree": default.colsample,
                "reg_lambda": default.reg_lambda,
                "min_child_weight": default.min_child_weight,
            }
        else:  # the shape of the paper form
            shape = {"max_depth": 5}
        return XGBClassifier(n_estimators=rounds, n_jobs=threads, learning_rate=rate, **shape)
    if method == "LightGBM":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=rounds, n_jobs=threads, learning_rate=rate, num_leaves=31, verbose=-1)
    if method == "HistGradientBoosting":
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(
            max_iter=rounds, learning_rate=rate, max_leaf_nodes=31, early_stopping=False
        )
    if method == "CatBoost":
        from catboost import CatBoostClassifier

        return CatBoostClassifier(
            n_estimators=rounds, thread_count=threads, learning_rate=rate, depth=6, verbose=0, allow_writing_files=False
        )
    if method == "RandomForest":
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(n_estimators=rounds, n_jobs=threads, max_depth=12)
    raise ValueError(f"unknown method {method!r}; known: {', '.join((*METHODS, 'RandomForest'))}")


METHODS = (
    "XGBoost",
    "SCBoost",
    "XGBoost, depth 5",
    "SCBoost, paper form",
    "LightGBM",
    "HistGradientBoosting",
    "CatBoost",
)


def time_fit(
    method: str, X: Array, y: npt.NDArray[np.int64], rounds: int, threads: int, rate: float | None = None
) -> float:
    """Seconds of one fit, with whatever is made when the model first predicts."""
    from threadpoolctl import threadpool_limits

    model = make_model(method, len(X), rounds, threads, rate)
    gc.collect()
    with threadpool_limits(threads):
        start = time.perf_counter()
        model.fit(X, y)
        model.predict_proba(X[:2])
        return time.perf_counter() - start


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
        return take_turns({method: partial(predict, model, X, threads) for method, model in models.items()})


def take_turns(actions: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median time of each action, done in turn until each took `SHORT` seconds: a few milliseconds say little."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    while min(map(sum, times.values())) < SHORT:
        for name, action in actions.items():
            start = time.perf_counter()
            action()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def median_seconds(action: Callable[[], object]) -> float:
    """Median time of one action; see `take_turns`."""
    return take_turns({"": action})[""]


def time_matrix(method: str, n: int, d: int, threads: int) -> tuple[float, float]:
    """Seconds of one prediction of all rows and of the matrix of all trees' predictions."""
    from threadpoolctl import threadpool_limits

    X, y = make_data(n, d)
    with threadpool_limits(threads):
        model = make_model(method, n, N_ROUNDS, threads).fit(X, y)
        tree_matrix(model, X[:2])
        return median_seconds(lambda: predict(model, X, threads)), median_seconds(lambda: tree_matrix(model, X))


def time_literal(X: Array, y: npt.NDArray[np.int64], rounds: int) -> float:
    """Seconds of the literal algorithm for a few rounds, times what is missing to N_ROUNDS: a lower bound."""
    from threadpoolctl import threadpool_limits

    from scboost_lab.literal import fit_literal

    held_out = len(X) // 5
    with threadpool_limits(1):
        start = time.perf_counter()
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
        return (time.perf_counter() - start) * N_ROUNDS / rounds


def peak_memory(method: str, n: int, d: int, rounds: int) -> int:
    """Bytes by which one fit in a process of its own raises the process's peak."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return int(pool.apply(_peak, (method, n, d, rounds)))


def _peak(method: str, n: int, d: int, rounds: int) -> int:
    X, y = make_data(n, d)
    make_model(method, n, 2, 1).fit(X[:1000], y[:1000])  # load the libraries
    before = _resident()
    _reset_peak()
    make_model(method, n, rounds, 1).fit(X, y)
    return _peak_resident() - before


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _peak_resident() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


class Results:
    """Rows of measurements, written to CSV as they come; what is there already is not measured again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, str]] = []
        if path.exists():
            with path.open(newline="") as file:
                self.rows = list(csv.DictReader(file))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("w", newline="") as file:
                csv.writer(file).writerow(FIELDS)

    def has(self, **key: Any) -> bool:
        """Whether a row with these values is there."""
        return any(all(row[name] == str(value) for name, value in key.items()) for row in self.rows)

    def add(self, **values: Any) -> None:
        """Append a row and flush it to disk."""
        row = {name: str(values.get(name, "")) for name in FIELDS}
        self.rows.append(row)
        with self.path.open("a", newline="") as file:
            csv.DictWriter(file, FIELDS).writerow(row)

    def median(self, field: str, **key: Any) -> float:
        """Median of a field over the rows with these values; NaN if there is none."""
        found = [
            float(row[field])
            for row in self.rows
            if row[field] and all(row[name] == str(value) for name, value in key.items())
        ]
        return statistics.median(found) if found else float("nan")

    def ratios(self, field: str, method: str, base: str, shapes: list[tuple[int, int]], n_threads: int) -> list[float]:
        """Medians of a method over those of another, for the shapes that were measured."""
        found = []
        for n, d in shapes:
            key = {"kind": KINDS[field], "rows": n, "columns": d, "threads": n_threads}
            found.append(self.median(field, method=method, **key) / self.median(field, method=base, **key))
        return [ratio for ratio in found if not np.isnan(ratio)]

    def shapes(self) -> list[tuple[int, int]]:
        """Shapes that were fitted, fewest rows first."""
        return sorted({(int(row["rows"]), int(row["columns"])) for row in self.rows if row["kind"] == "shape"})


def installed(methods: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the methods whose package is there."""
    found = []
    for method in methods:
        try:
            make_model(method, 100, 2, 1)
        except ImportError:
            print(f"{method}: not installed, left out", file=sys.stderr)
        else:
            found.append(method)
    return tuple(found)


def run(
    output: Path,
    shapes: tuple[tuple[int, int], ...] = SHAPES,
    threads: tuple[int, ...] = (1, 2),
    repeat: int = 3,
    *,
    only_shapes: bool = False,
) -> Results:
    """Measure everything, or fits and predictions of the shapes only; runs alternate between the methods."""
    results = Results(output / "bench.csv")
    methods = installed(METHODS)
    tasks: list[tuple[str, Callable[[], None]]] = []

    def shape_task(n: int, d: int, n_threads: int, i: int) -> Callable[[], None]:
        def task() -> None:
            X, y = make_data(n, d)
            for method in methods:
                key = {"method": method, "rows": n, "columns": d, "rounds": N_ROUNDS, "threads": n_threads, "repeat": i}
                if not results.has(kind="shape", **key):
                    results.add(kind="shape", fit_seconds=time_fit(method, X, y, N_ROUNDS, n_threads), **key)

        return task

    def predict_task(n: int, d: int) -> Callable[[], None]:
        def task() -> None:
            missing = [
                (n_threads, i)
                for i in range(repeat)
                for n_threads in threads
                if not all(
                    results.has(kind="predict", method=m, rows=n, columns=d, threads=n_threads, repeat=i)
                    for m in methods
                )
            ]
            if not missing:
                return
            X, y = make_data(n, d)
            models = {method: make_model(method, n, N_ROUNDS, max(threads)).fit(X, y) for method in methods}
            for n_threads, i in missing:
                key = {"kind": "predict", "rows": n, "columns": d, "rounds": N_ROUNDS, "threads": n_threads}
                for method, seconds in time_predictions(models, X, n_threads).items():
                    results.add(method=method, repeat=i, predict_seconds=seconds, **key)

        return task

    def literal_task(n: int, d: int) -> Callable[[], None]:
        def task() -> None:
            key = {"method": "literal", "rows": n, "columns": d, "rounds": N_ROUNDS, "threads": 1, "repeat": 0}
            if not results.has(kind="shape", **key):
                rounds = N_ROUNDS if n * d <= LITERAL_SIZE else LITERAL_ROUNDS
                results.add(kind="shape", fit_seconds=time_literal(*make_data(n, d), rounds), **key)

        return task

    def scaling_task(kind: str, method: str, n: int, rounds: int, i: int) -> Callable[[], None]:
        def task() -> None:
            key = {"method": method, "rows": n, "columns": 16, "rounds": rounds, "threads": 1, "repeat": i}
            if not results.has(kind=kind, **key):
                # One rate for all: with smaller steps trees stay larger, which is not what is asked here.
                fit = time_fit(method, *make_data(n, 16), rounds, 1, rate=auto_learning_rate(10_000, N_ROUNDS))
                results.add(kind=kind, fit_seconds=fit, **key)

        return task

    def matrix_task(method: str, n_threads: int, i: int) -> Callable[[], None]:
        def task() -> None:
            n, d = MATRIX_SHAPE
            key = {"method": method, "rows": n, "columns": d, "rounds": N_ROUNDS, "threads": n_threads, "repeat": i}
            if not results.has(kind="trees", **key):
                own, matrix = time_matrix(method, n, d, n_threads)
                results.add(kind="trees", predict_seconds=own, matrix_seconds=matrix, **key)

        return task

    def memory_task(method: str, n: int, rounds: int) -> Callable[[], None]:
        def task() -> None:
            key = {"method": method, "rows": n, "columns": 16, "rounds": rounds, "threads": 1, "repeat": 0}
            if not results.has(kind="memory", **key):
                results.add(kind="memory", peak_bytes=peak_memory(method, n, 16, rounds), **key)

        return task

    for n_threads in threads:
        for i in range(repeat):
            tasks += [(f"{n} x {d}", shape_task(n, d, n_threads, i)) for n, d in shapes]
    tasks += [(f"predict {n} x {d}", predict_task(n, d)) for n, d in shapes]
    if not only_shapes:
        ours = ("XGBoost", "SCBoost", "SCBoost, paper form")
        for i in range(repeat):
            tasks += [
                ("by rows", scaling_task("rows", m, n, 50, i)) for n in (10_000, 100_000, 1_000_000) for m in ours
            ]
            tasks += [
                ("by rounds", scaling_task("rounds", m, 10_000, T, i)) for T in (50, 100, 200, 400, 800) for m in ours
            ]
        tasks += [
            ("trees", matrix_task(method, n_threads, i))
            for n_threads in threads
            for i in range(repeat)
            for method in (*methods, "RandomForest")
            if method not in MATRIX_TWINS
        ]
        for m in ("XGBoost", "SCBoost", "XGBoost, depth 5", "SCBoost, paper form"):
            tasks += [("memory", memory_task(m, 200_000, T)) for T in (50, 200)]
        tasks += [("literal", literal_task(n, d)) for n, d in shapes]
    with Progress(len(tasks), "bench") as progress:
        for label, task in tasks:
            task()
            progress.step(label)
    return results


@contextmanager
def profiled() -> Iterator[dict[str, float]]:
    """Collect the seconds spent in each part of a fit."""
    import xgboost as xgb

    from scboost.boosting.history import History
    from scboost.xgb.engine import XGBoostEngine

    seconds = dict.fromkeys(("binning", "tree growth", "leaf assignment", "projection"), 0.0)
    watched: list[tuple[Any, str, str]] = [
        (xgb.QuantileDMatrix, "__init__", "binning"),
        (xgb.Booster, "boost", "tree growth"),
        (xgb.Booster, "update", "tree growth"),
        (XGBoostEngine, "grow", "leaf assignment"),
        (History, "project", "projection"),
        (History, "append", "projection"),
    ]
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in watched]

    def timed(function: Any, part: str) -> Any:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                seconds[part] += time.perf_counter() - start

        return wrapper

    for (owner, name, function), (_, _, part) in zip(originals, watched, strict=True):
        setattr(owner, name, timed(function, part))
    try:
        yield seconds
    finally:
        for owner, name, function in originals:
            setattr(owner, name, function)
        if seconds["leaf assignment"]:  # boosting is called within grow
            seconds["leaf assignment"] -= seconds["tree growth"]


def profile(output: Path, shapes: tuple[tuple[int, int], ...], threads: int = 1) -> list[dict[str, Any]]:
    """Split the time of our fits and of XGBoost's into parts, count the trees' leaves; write profile.csv."""
    rows = []
    for n, d in shapes:
        X, y = make_data(n, d)
        for method in ("XGBoost", "SCBoost", "XGBoost, depth 5", "SCBoost, paper form"):
            make_model(method, n, 2, threads).fit(X[:500], y[:500])
            with profiled() as seconds:
                start = time.perf_counter()
                model = make_model(method, n, N_ROUNDS, threads).fit(X, y)
                total = time.perf_counter() - start
            seconds["the rest"] = total - sum(seconds.values())
            shares = {part: round(value, 4) for part, value in seconds.items()}
            leaves = sum(tree.count("leaf=") for tree in model.get_booster().get_dump()) / N_ROUNDS
            shape = {"method": method, "rows": n, "columns": d, "leaves": leaves}
            rows.append({**shape, "seconds": round(total, 4), **shares})
    output.mkdir(parents=True, exist_ok=True)
    with (output / "profile.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return rows


def exponent(x: list[float], seconds: list[float]) -> float:
    """Slope of log time against log size."""
    return float(np.polyfit(np.log(x), np.log(seconds), 1)[0])


def ratio_table(results: Results, field: str, n_threads: int) -> list[str]:
    """Markdown rows: each method's median over XGBoost's in the same run, for every shape."""
    shapes = results.shapes()
    methods = [m for m in (*METHODS, "literal") if results.has(kind="shape", method=m)]
    lines = ["| | " + " | ".join(f"{n:,} x {d:,}" for n, d in shapes) + " |", "|---" * (len(shapes) + 1) + "|"]
    for method in methods:
        cells = []
        for n, d in shapes:
            key = {"kind": KINDS[field], "rows": n, "columns": d}
            threads = 1 if method == "literal" else n_threads
            own = results.median(field, method=method, threads=threads, **key)
            base = results.median(field, method="XGBoost", threads=threads, **key)
            absolute = f" ({base:.2f} s)" if method == "XGBoost" else ""
            cells.append("" if np.isnan(own) else f"{own / base:.2f}{absolute}")
        if any(cells):
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return lines


def doubling(results: Results, method: str) -> float:
    """Time of 800 rounds over time of 400."""
    T800, T400 = (results.median("fit_seconds", kind="rounds", method=method, rounds=T) for T in (800, 400))
    return T800 / T400


def bytes_per_row_and_round(results: Results, method: str) -> float:
    """Peak memory above that of XGBoost with the same trees, by which each round adds to each row."""
    above = [
        results.median("peak_bytes", kind="memory", method=method, rounds=T)
        - results.median("peak_bytes", kind="memory", method=BASES[method], rounds=T)
        for T in (50, 200)
    ]
    return (above[1] - above[0]) / 200_000 / 150


def targets(results: Results, import_time: float) -> list[str]:
    """Markdown table: what we ask of ourselves beside what was measured."""
    ratios, shapes = results.ratios, results.shapes()
    wide = [shape for shape in shapes if shape[1] >= WIDE]
    narrow = [shape for shape in shapes if shape[1] < WIDE]

    lines = ["| | asked | 1 thread | 2 threads |", "|---|---|---|---|"]

    def add(label: str, limit: float, by_threads: list[list[float]], *, at_least: bool = False) -> None:
        cells = []
        for values in by_threads:
            met = all(value >= limit if at_least else value <= limit for value in values)
            cells.append(", ".join(f"{v:.2f}" if v < 10 else f"{v:.0f}" for v in values) + ("" if met else " (short)"))
        asked = f"at {'least' if at_least else 'most'} {limit:g}"
        lines.append(f"| {label} | {asked} | " + " | ".join(cells) + " |" + (" |" if len(cells) == 1 else ""))

    def names(chosen: list[tuple[int, int]]) -> str:
        return ", ".join(f"{n:,} x {d:,}" for n, d in chosen)

    both = (1, 2)
    fit, own = "fit_seconds", "predict_seconds"
    add(f"fit / XGBoost, {names(wide)}", 1.15, [ratios(fit, "SCBoost", "XGBoost", wide, t) for t in both])
    add(f"fit / XGBoost, {names(narrow)}", 1.4, [ratios(fit, "SCBoost", "XGBoost", narrow, t) for t in both])
    paper = [ratios(fit, "SCBoost, paper form", "XGBoost", shapes, t) for t in both]
    add(f"paper form / XGBoost, {names(shapes)}", 1.8, paper)
    add(
        f"predict / XGBoost, {names(shapes)}",
        1.05,
        [ratios(own, "SCBoost", "XGBoost", shapes, t) for t in both],
    )
    add(
        f"literal / SCBoost, {names(shapes)}",
        20,
        [ratios(fit, "literal", "SCBoost", shapes, 1)],
        at_least=True,
    )
    large = [shape for shape in shapes if shape == (100_000, 30)]
    add(f"literal / SCBoost, {names(large)}", 100, [ratios(fit, "literal", "SCBoost", large, 1)], at_least=True)
    add("800 rounds / 400 rounds", 2.1, [[doubling(results, "SCBoost")]])
    add(
        "paper form: bytes per row and round remembered", 4, [[bytes_per_row_and_round(results, "SCBoost, paper form")]]
    )
    add("memory of 5: bytes per row and round", 0, [[bytes_per_row_and_round(results, "SCBoost")]])
    add("seconds of `import scboost` above `import xgboost`", 0.3, [[import_time]])
    return lines


def matrix_table(results: Results) -> list[str]:
    """Markdown section: what `tree_matrix` takes, as multiples of the model's own prediction."""
    n, d = MATRIX_SHAPE
    lines = [
        "## The matrix of all trees' predictions",
        "",
        f"`tree_matrix` of {N_ROUNDS} trees on {n:,} x {d}, over the model's own `predict_proba`; asked: at most 3.",
        "",
        "| | predict, 1 thread | ratio | predict, 2 threads | ratio |",
        "|---|---|---|---|---|",
    ]
    for method in dict.fromkeys(row["method"] for row in results.rows if row["kind"] == "trees"):
        cells = []
        for n_threads in (1, 2):
            key = {"kind": "trees", "method": method, "threads": n_threads}
            own, matrix = (results.median(field, **key) for field in ("predict_seconds", "matrix_seconds"))
            cells += [f"{own:.3f} s", f"{matrix / own:.2f}"] if results.has(**key) else ["", ""]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return lines


def page(results: Results, output: Path, docs: Path) -> None:
    """Write docs/speed.md and its figure from the result files."""
    info = json.loads((output / "bench.json").read_text())
    threads = sorted({int(r["threads"]) for r in results.rows if r["kind"] == "shape"})
    lines = [
        "# Speed",
        "",
        f"Made by `{info['command']}` on {info['date']}; {info['machine']}. "
        + ", ".join(f"{name} {version}" for name, version in info["versions"].items())
        + ".",
        "",
        (
            f"{N_ROUNDS} rounds for every method, the same learning rate, depth 6 (31 leaves for LightGBM and "
            "HistGradientBoosting, depth 5 for the rows that say so). Figures are ratios of medians to XGBoost "
            "with the same shape of trees in the same run; fits and predictions alternate between the methods. "
            "`SCBoost, paper form` projects on all history; compare it with `XGBoost, depth 5`. "
            "`literal` is the algorithm as printed (an SVD a round, a scikit-learn tree); on shapes of more than "
            f"{LITERAL_SIZE:,} numbers run for {LITERAL_ROUNDS} rounds and multiplied up to {N_ROUNDS}, a lower bound, "
            "since its rounds grow dearer."
        ),
        "",
        *targets(results, info["import_seconds"]),
        "",
    ]
    for n_threads in threads:
        lines += [
            f"## Fit, {n_threads} thread{'s' * (n_threads > 1)}",
            "",
            *ratio_table(results, "fit_seconds", n_threads),
            "",
        ]
        lines += [f"## Predict, {n_threads} thread{'s' * (n_threads > 1)}", ""]
        lines += [*ratio_table(results, "predict_seconds", n_threads), ""]
    lines += ["## Growth", "", "| | time ~ n^ | time ~ T^ | T = 800 / T = 400 |", "|---|---|---|---|"]
    for method in ("XGBoost", "SCBoost", "SCBoost, paper form"):
        by = {}
        for kind, field in (("rows", "rows"), ("rounds", "rounds")):
            sizes = sorted({int(r[field]) for r in results.rows if r["kind"] == kind})
            medians = [results.median("fit_seconds", kind=kind, method=method, **{field: size}) for size in sizes]
            by[kind] = exponent([float(s) for s in sizes], medians) if sizes else float("nan")
        lines.append(f"| {method} | {by['rows']:.2f} | {by['rounds']:.2f} | {doubling(results, method):.2f} |")
    lines += ["", "16 columns; rows from 10,000 to 1,000,000 at 50 rounds, rounds from 50 to 800 at 10,000 rows.", ""]
    lines += [
        "## Memory",
        "",
        "| | peak of a fit, T = 50 | T = 200 | bytes per row and round above XGBoost |",
        "|---|---|---|---|",
    ]
    for method in (*BASES, *BASES.values()):
        first, last = (results.median("peak_bytes", kind="memory", method=method, rounds=T) for T in (50, 200))
        above = f"{bytes_per_row_and_round(results, method):.2f}" if method in BASES else ""
        lines.append(f"| {method} | {first / 2**20:.0f} MB | {last / 2**20:.0f} MB | {above} |")
    lines += [
        "",
        "200,000 rows, 16 columns, one thread; the fit alone in a process of its own, training rows not counted.",
        "",
    ]
    if results.has(kind="trees"):
        lines += [*matrix_table(results), ""]
    if (output / "profile.csv").exists():
        with (output / "profile.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        parts = [name for name in rows[0] if name not in {"method", "rows", "columns", "leaves", "seconds"}]
        lines += [
            "## Where the time goes",
            "",
            "| | | leaves a tree | seconds | " + " | ".join(parts) + " |",
            "|---" * (len(parts) + 4) + "|",
        ]
        for row in rows:
            cells = " | ".join(f"{float(row[part]):.2f}" for part in parts)
            shape = f"{int(row['rows']):,} x {int(row['columns']):,}"
            head = f"| {shape} | {row['method']} | {float(row['leaves']):.1f} | {float(row['seconds']):.2f}"
            lines.append(f"{head} | {cells} |")
        lines += ["", WHERE_THE_TIME_GOES, ""]
    lines += ["![Cost by rounds](figures/speed.png)", ""]
    docs.mkdir(parents=True, exist_ok=True)
    (docs / "speed.md").write_text("\n".join(lines))
    _figure(results, docs / "figures" / "speed.png")


def _figure(results: Results, path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for ax, kind, label in zip(axes, ("rows", "rounds"), ("rows (50 rounds)", "rounds (10,000 rows)"), strict=True):
        for method in ("XGBoost", "SCBoost", "SCBoost, paper form"):
            sizes = sorted({int(r[kind]) for r in results.rows if r["kind"] == kind})
            medians = [results.median("fit_seconds", kind=kind, method=method, **{kind: size}) for size in sizes]
            ax.loglog(sizes, medians, marker="o", label=method)
        ax.set(xlabel=label, ylabel="fit, seconds")
        ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
        ax.minorticks_off()
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def import_seconds(repeat: int = 5) -> float:
    """Median seconds of ``import scboost`` after ``import xgboost`` and what it brings, in fresh processes."""
    import subprocess

    code = "import xgboost, time; t = time.perf_counter(); import scboost; print(time.perf_counter() - t)"
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
    if n < 100 or d < 6:
        raise argparse.ArgumentTypeError(f"{text!r} is too small: at least 100 rows and 6 columns")
    return n, d


def add_parser(subparsers: Any) -> None:
    """Add ``scboost-lab bench``."""
    parser = subparsers.add_parser("bench", help="measure time and memory against the peers")
    parser.add_argument("--shapes", type=_shape, nargs="+", default=SHAPES, metavar="ROWSxCOLUMNS")
    parser.add_argument("--threads", type=int, nargs="+", default=(1, 2))
    parser.add_argument("--repeat", type=int, default=3, help="runs of each method (%(default)s)")
    parser.add_argument("--profile", action="store_true", help="also split our time into its parts")
    parser.add_argument("--only-shapes", action="store_true", help="fits and predictions of the shapes, nothing else")
    parser.add_argument(
        "--output", type=Path, default=Path("scboost-bench"), help="folder of the results; goes on there (%(default)s)"
    )
    parser.add_argument("--docs", type=Path, default=Path("scboost-bench"), help="folder of the page (%(default)s)")
    parser.set_defaults(func=_command)


def _command(args: argparse.Namespace) -> int:
    import platform
    from datetime import datetime, timezone

    if args.repeat < 1:
        print(f"--repeat {args.repeat}: at least 1", file=sys.stderr)
        return 2
    results = run(args.output, tuple(args.shapes), tuple(args.threads), args.repeat, only_shapes=args.only_shapes)
    if args.profile:
        profile(args.output, tuple(args.shapes))
    info = {
        "command": "scboost " + " ".join(sys.argv[1:]),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "machine": f"{multiprocessing.cpu_count()} cores, Python {platform.python_version()}, {platform.system()}",
        "versions": versions(),
        "import_seconds": import_seconds(),
    }
    (args.output / "bench.json").write_text(json.dumps(info, indent=1) + "\n")
    if not args.only_shapes:
        page(results, args.output, args.docs)
    for n_threads in args.threads:
        print(f"\nfit, {n_threads} thread(s), ratio to XGBoost")
        print("\n".join(ratio_table(results, "fit_seconds", n_threads)))
        print(f"\npredict, {n_threads} thread(s), ratio to XGBoost")
        print("\n".join(ratio_table(results, "predict_seconds", n_threads)))
    return 0
