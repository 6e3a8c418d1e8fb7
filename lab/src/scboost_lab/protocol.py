"""The paper's protocol: stratified ten-fold, seed 42, one row of results a fold, appended as it comes.

A run that is stopped goes on where it was: a fold whose row says ``ok`` is not run again, any other row is
retried. The data are numeric and complete and every method is a tree ensemble: there is no preprocessing.
"""

import csv
import json
import os
import platform
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from importlib import metadata
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scboost_lab.datasets import DataError, Dataset, info, load, undersample

SEED = 42
N_FOLDS = 10
KEY = ("dataset", "method", "setting", "fold", "seed")
SCORES = ("ACC", "F1", "AUC", "log_loss")
SCORE_COLUMNS = (*SCORES, "fit_seconds", "predict_seconds")
PACKAGES = ("scboost", "numpy", "scipy", "scikit-learn", "lightgbm", "catboost", "ngboost", "optuna")

Row = dict[str, str]


class StorageError(RuntimeError):
    """Results could not be written; what was finished before is in the file."""


class NotInstalledError(RuntimeError):
    """A method's package is missing."""


@dataclass(frozen=True)
class Task:
    """One fold of one method on one data set, under one setting (``""`` where there is only one)."""

    dataset: str
    method: str
    fold: int
    setting: str = ""
    seed: int = SEED

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of `KEY` as they stand in the file."""
        return (self.dataset, self.method, self.setting, str(self.fold), str(self.seed))


Work = Callable[[Task], Mapping[str, float | int | str]]


class ResultFile:
    """A CSV file of rows keyed by `KEY`, with value columns and a `status`, that survives interruption.

    Parameters
    ----------
    path : Path
    columns : sequence of str
        Names of the value columns.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path = path
        self.header = [*KEY, *columns, "status"]

    def rows(self) -> list[Row]:
        """All complete rows, the last of each key.

        A last line that was cut off by a kill or a full disk does not count; two runs that append to one file at the
        same time may leave a key twice.
        """
        if not self.path.exists():
            return []
        text = self.path.read_text(encoding="utf-8")
        lines = text[: text.rfind("\n") + 1].splitlines()
        if not lines:
            return []
        rows = list(csv.DictReader(lines))
        if list(rows[0] if rows else next(csv.reader(lines))) != self.header:
            raise StorageError(
                f"{self.path} has other columns than {', '.join(self.header)}; move it away or choose another --out"
            )
        return list({_key(row): row for row in rows if row.get("status")}.values())

    def start(self, forget: Collection[tuple[str, ...]] = ()) -> set[tuple[str, ...]]:
        """Make the file ready for appending, without the keys to forget; return the keys that are done."""
        finished = [row for row in self.rows() if row["status"] == "ok" and _key(row) not in forget]
        with _storage(self.path, "nothing was run"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fresh = self.path.with_suffix(".tmp")
            with fresh.open("w", newline="", encoding="utf-8") as stream:
                writer = csv.DictWriter(stream, self.header, lineterminator="\n")
                writer.writeheader()
                writer.writerows(finished)
            fresh.replace(self.path)
        return {_key(row) for row in finished}

    def append(self, row: Mapping[str, object]) -> None:
        """Write one row and hand it to the disk before returning."""
        comfort = "the folds finished before are kept; free some space and run the same command again"
        with _storage(self.path, comfort), self.path.open("a", newline="", encoding="utf-8") as stream:
            csv.DictWriter(stream, self.header, lineterminator="\n", restval="").writerow(row)
            stream.flush()
            os.fsync(stream.fileno())


def _key(row: Row) -> tuple[str, ...]:
    return tuple(row[column] for column in KEY)


@contextmanager
def _storage(path: Path, comfort: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot write {path} ({error.strerror or error}); {comfort}") from error


whole = lru_cache(maxsize=2)(load)
"""Load a set, once for all its folds."""


@lru_cache(maxsize=2)
def prepared(name: str, data_dir: str | None, seed: int = SEED) -> Dataset:
    """Load a set; Creditcard and OVA_Uterus come undersampled, as in the paper, before the folds are cut."""
    dataset = whole(name, data_dir)
    if not info(name).undersampled:
        return dataset
    rows = undersample(dataset.y, seed)
    return Dataset(dataset.name, dataset.X[rows], dataset.y[rows], dataset.source, dataset.checksum)


def folds(y: NDArray[np.int64], seed: int = SEED) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Cut the rows into ten stratified folds.

    Parameters
    ----------
    y : ndarray of shape (n,)
    seed : int

    Returns
    -------
    list of (train, test) row numbers
    """
    from sklearn.model_selection import StratifiedKFold

    splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
    return list(splitter.split(np.zeros((len(y), 1)), y))


def scores(y: NDArray[np.int64], probability: NDArray[np.float64]) -> dict[str, float]:
    """ACC, F1 (of class 1), AUC and log-loss of the probability of class 1.

    Examples
    --------
    >>> import numpy as np
    >>> scores(np.array([0, 1, 1, 0]), np.array([0.2, 0.9, 0.4, 0.1]))["ACC"]
    0.75
    """
    from sklearn.metrics import accuracy_score, f1_score, log_loss, roc_auc_score

    label = (probability > 0.5).astype(np.int64)
    return {
        "ACC": float(accuracy_score(y, label)),
        "F1": float(f1_score(y, label, zero_division=0.0)),
        "AUC": float(roc_auc_score(y, probability)),
        "log_loss": float(log_loss(y, probability, labels=[0, 1])),
    }


def fit_and_score(
    model: Any,
    X_train: NDArray[np.float64],
    y_train: NDArray[np.int64],
    X_test: NDArray[np.float64],
    y_test: NDArray[np.int64],
) -> dict[str, float]:
    """Fit, predict, and return the `SCORE_COLUMNS`."""
    start = time.perf_counter()
    model.fit(X_train, y_train)
    fitted = time.perf_counter()
    probability = np.asarray(model.predict_proba(X_test), dtype=np.float64)[:, 1]
    done = time.perf_counter()
    return {
        **scores(y_test, probability),
        "fit_seconds": round(fitted - start, 4),
        "predict_seconds": round(done - fitted, 4),
    }


def run_tasks(
    tasks: Sequence[Task],
    work: Work,
    results: ResultFile,
    *,
    jobs: int = 1,
    again: bool = False,
    progress: Callable[[str], None] | None = None,
) -> list[Row]:
    """Run the tasks that are not done yet and append a row for each.

    Parameters
    ----------
    tasks : sequence of Task
    work : callable
        Maps a task to its value columns; with `jobs` > 1 it must be picklable. A missing package, an
        unavailable data set or any other failure becomes the row's `status`, and the rest runs.
    results : ResultFile
    jobs : int
        Processes; each fit uses one thread.
    again : bool
        Run also what is done, and replace its rows.
    progress : callable, optional
        Takes a line of text; by default lines go to standard error.

    Returns
    -------
    list of dict
        The rows of `tasks` in the file, in the order of `tasks`.
    """
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}")
    say = progress or (lambda line: print(line, file=sys.stderr, flush=True))
    done = results.start(forget={task.key for task in tasks} if again else ())
    todo = [task for task in tasks if task.key not in done]
    say(f"{results.path.name}: {len(tasks) - len(todo)} of {len(tasks)} folds are there, {len(todo)} to run")
    clock = _Clock(todo, jobs)
    for task, values, status, seconds in _outcomes(todo, work, jobs):
        named = dict(zip(KEY, task.key, strict=True))
        results.append({**named, **{c: _text(v) for c, v in values.items()}, "status": status})
        say(clock.line(task, seconds, status))
    stored = {_key(row): row for row in results.rows()}
    return [stored[task.key] for task in tasks]


def _text(value: float | str) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _outcomes(
    todo: Sequence[Task], work: Work, jobs: int
) -> Iterator[tuple[Task, Mapping[str, float | int | str], str, float]]:
    if jobs == 1 or len(todo) <= 1:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            for task in todo:
                yield (task, *_attempt(work, task))
        return
    os.environ["OMP_NUM_THREADS"] = "1"  # read by the children's OpenMP runtimes when they are loaded
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        running: dict[Future[Any], Task] = {pool.submit(_attempt, work, task): task for task in todo}
        try:
            for future in as_completed(running):
                yield (running[future], *future.result())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _attempt(work: Work, task: Task) -> tuple[Mapping[str, float | int | str], str, float]:
    start = time.perf_counter()
    try:
        values, status = work(task), "ok"
    except NotInstalledError as error:
        values, status = {}, f"not installed: {error}"
    except DataError as error:
        values, status = {}, f"no data: {error}"
    except Exception as error:  # noqa: BLE001 - a method that fails must not stop the others; the row says how
        values, status = {}, " ".join(f"failed: {type(error).__name__}: {error}".split())
    return values, status, time.perf_counter() - start


class _Clock:
    """Estimate what remains from the mean time of each (dataset, method), of all where it is not known."""

    def __init__(self, todo: Sequence[Task], jobs: int) -> None:
        self.jobs = jobs
        self.left: dict[tuple[str, str], int] = defaultdict(int)
        for task in todo:
            self.left[task.dataset, task.method] += 1
        self.seen: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.total, self.count = len(todo), 0

    def line(self, task: Task, seconds: float, status: str) -> str:
        pair = (task.dataset, task.method)
        self.left[pair] -= 1
        self.seen[pair].append(seconds)
        self.count += 1
        overall = float(np.mean([s for times in self.seen.values() for s in times]))
        remaining = sum(
            n * (float(np.mean(self.seen[p])) if self.seen.get(p) else overall) for p, n in self.left.items()
        )
        label = " ".join(filter(None, (task.dataset, task.method, task.setting)))
        minutes, second = divmod(round(remaining / self.jobs), 60)
        return (
            f"[{self.count}/{self.total}] {label} fold {task.fold}: {seconds:.1f} s, {status}; "
            f"about {minutes} min {second:02d} s left"
        )


def write_provenance(path: Path, *, command: str, data: Mapping[str, str], extra: Mapping[str, object]) -> None:
    """Add to the JSON file beside a result file how its rows were made: command, versions, date, data.

    Parameters
    ----------
    path : Path
        Of the CSV file; the JSON file has the same stem.
    command : str
    data : mapping
        Source and checksum of each data set.
    extra : mapping
        Settings that a reader of the table needs.
    """
    target = path.with_suffix(".json")
    runs = json.loads(target.read_text(encoding="utf-8"))["runs"] if target.exists() else []
    runs.append(
        {
            "command": command,
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "versions": versions(),
            "data": dict(data),
            **extra,
        }
    )
    with _storage(target, "the result file itself is complete"):
        fresh = target.with_suffix(".json.tmp")
        fresh.write_text(json.dumps({"runs": runs}, indent=1) + "\n", encoding="utf-8")
        fresh.replace(target)


def versions() -> dict[str, str]:
    """Versions of the packages that made the results; ``xgboost-cpu`` counts as xgboost."""
    found = {}
    for package in (*PACKAGES, "xgboost", "xgboost-cpu"):
        try:
            found[package.removesuffix("-cpu")] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def wilcoxon_mark(baseline: Sequence[float], ours: Sequence[float]) -> str:
    """Mark a baseline whose paired fold values differ from SCBoost's, as in the paper.

    Parameters
    ----------
    baseline, ours : sequence of float
        Values of the same folds.

    Returns
    -------
    str
        ``"**"`` for p < 0.01, ``"*"`` for p < 0.05, ``""`` otherwise, ``"#"`` where all differences are zero
        and the test does not apply.

    Examples
    --------
    >>> wilcoxon_mark([0.1] * 10, [0.1] * 10)
    '#'
    >>> wilcoxon_mark([0.1] * 10, [0.2 + 0.01 * i for i in range(10)])
    '**'
    """
    from scipy.stats import wilcoxon

    difference = np.subtract(baseline, ours)
    if not difference.any():
        return "#"
    p = float(wilcoxon(difference).pvalue)
    return "**" if p < 0.01 else "*" if p < 0.05 else ""
