"""The one runner: tasks that are not done yet, one row each, in this process or in several.

An interrupted run is resumed: a task whose row has status ``ok`` is not run again, any other row is retried.
"""

import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from scboost_lab.datasets import SEED, DataError
from scboost_lab.results import ResultFile, Row


class NotInstalledError(RuntimeError):
    """A method's package is missing."""


class Keyed(Protocol):
    """What the runner needs to know of a task: the key columns of its row, as text, and how to call it."""

    @property
    def key(self) -> tuple[str, ...]:
        """Values of the file's key columns."""

    @property
    def label(self) -> str:
        """Name of the task in messages."""

    @property
    def kind(self) -> object:
        """Tasks of one kind take about equally long."""


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
        """The columns of `results.KEY` as they stand in the file."""
        return (self.dataset, self.method, self.setting, str(self.fold), str(self.seed))

    @property
    def label(self) -> str:
        """Name of the task in messages."""
        return " ".join([*filter(None, (self.dataset, self.method, self.setting)), "fold", str(self.fold)])

    @property
    def kind(self) -> object:
        """Folds of one method on one set take about equally long."""
        return self.dataset, self.method


Values = Mapping[str, float | int | str]
T = TypeVar("T", bound=Keyed)


Work = Callable[[Task, Mapping[str, Any], str | None], Values]


class NothingToDoError(ValueError):
    """The chosen data sets and methods are no part of the experiment."""


@dataclass(frozen=True)
class Experiment:
    """One result file: the cells that belong to it, and the function that runs one fold of a cell.

    Attributes
    ----------
    title : str
    work : callable
        ``work(task, params, data_dir)`` returns the value columns of one fold; a function of a module, so that worker
        processes find it.
    columns : tuple of str
    datasets, methods : tuple of str
    settings : mapping
        Name of each setting to the parameters it stands for.
    n_folds : int
        Folds (or repetitions) of each cell.
    seeds : tuple of int
        The folds are cut anew with each.
    wanted : callable
        Says of each cell (dataset, method, setting) whether it is part of the experiment.
    """

    title: str
    work: Work
    columns: tuple[str, ...]
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"": {}})
    n_folds: int = 10
    seeds: tuple[int, ...] = (SEED,)
    wanted: Callable[[str, str, str], bool] = lambda dataset, method, setting: True  # noqa: ARG005

    def tasks(
        self, datasets: Sequence[str] | None = None, methods: Sequence[str] | None = None, n_folds: int | None = None
    ) -> list[Task]:
        """List the folds of the chosen data sets and methods (all of them by default), data set by data set.

        The settings of a fold follow each other: what they share need not be made twice.
        """
        found = [
            Task(dataset, method, fold, setting, seed)
            for dataset, method, seed, fold, setting in product(
                [d for d in self.datasets if datasets is None or d in datasets],
                [m for m in self.methods if methods is None or m in methods],
                self.seeds,
                range(self.n_folds if n_folds is None else min(n_folds, self.n_folds)),
                self.settings,
            )
            if self.wanted(dataset, method, setting)
        ]
        if not found:
            raise NothingToDoError(
                f"nothing to do for {self.title}: it has the datasets {', '.join(self.datasets)} "
                f"and the methods {', '.join(self.methods)}"
            )
        return found

    def file(self, path: Path) -> ResultFile:
        """Return the result file at a path."""
        return ResultFile(path, self.columns)

    def run(
        self, path: Path, tasks: Sequence[Task], data_dir: str | None, *, jobs: int = 1, again: bool = False
    ) -> list[Row]:
        """Run those of the tasks that are not done yet; see `run_tasks`."""
        work = partial(_perform, self.work, dict(self.settings), data_dir)
        return run_tasks(tasks, work, self.file(path), jobs=jobs, again=again)

    def run_recorded(
        self,
        path: Path,
        tasks: Sequence[Task],
        data_dir: str | None,
        *,
        command: str,
        fingerprint: Callable[[str], str],
        jobs: int = 1,
        **extra: object,
    ) -> None:
        """Run those of the tasks that are not done yet, record how, and say how many failed.

        Parameters
        ----------
        path : Path
            Of the result file.
        tasks : sequence of Task
        data_dir : str or None
        command : str
            What makes the rows again.
        fingerprint : callable
            Maps the name of a data set to its source and checksum.
        jobs : int
            Processes; each fit uses one thread.
        **extra
            What else a reader of the table needs.
        """

        def data() -> dict[str, str]:
            return {name: fingerprint(name) for name in dict.fromkeys(task.dataset for task in tasks)}

        with self.file(path).recorded(command, data=data, **extra):
            rows = self.run(path, tasks, data_dir, jobs=jobs)
        failed = sum(row["status"] != "ok" for row in rows)
        print(f"{path}: {len(rows) - failed} folds, {failed} failed")


def _perform(work: Work, settings: Mapping[str, Mapping[str, Any]], data_dir: str | None, task: Task) -> Values:
    return work(task, settings[task.setting], data_dir)


def run_tasks(
    tasks: Sequence[T],
    work: Callable[[T], Values],
    results: ResultFile,
    *,
    jobs: int = 1,
    again: bool = False,
    progress: Callable[[str], None] | None = None,
) -> list[Row]:
    """Run the tasks that are not done yet and append a row for each.

    Parameters
    ----------
    tasks : sequence of Task, or of others with a key
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
        named = dict(zip(results.key, task.key, strict=True))
        results.append({**named, **{c: _text(v) for c, v in values.items()}, "status": status})
        say(clock.line(task, seconds, status))
    stored = {results.key_of(row): row for row in results.rows()}
    return [stored[task.key] for task in tasks]


def _text(value: float | str) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _outcomes(todo: Sequence[T], work: Callable[[T], Values], jobs: int) -> Iterator[tuple[T, Values, str, float]]:
    if jobs == 1 or len(todo) <= 1:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            for task in todo:
                yield (task, *_attempt(work, task))
        return
    os.environ["OMP_NUM_THREADS"] = "1"  # read by the children's OpenMP runtimes when they are loaded
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        running: dict[Future[Any], T] = {pool.submit(_attempt, work, task): task for task in todo}
        try:
            for future in as_completed(running):
                yield (running[future], *future.result())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _attempt(work: Callable[[T], Values], task: T) -> tuple[Values, str, float]:
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
    """Estimate what remains from the mean time of each kind of task, of all where it is not known."""

    def __init__(self, todo: Sequence[Keyed], jobs: int) -> None:
        self.jobs = jobs
        self.left: dict[object, int] = defaultdict(int)
        for task in todo:
            self.left[task.kind] += 1
        self.seen: dict[object, list[float]] = defaultdict(list)
        self.total, self.count = len(todo), 0

    def line(self, task: Keyed, seconds: float, status: str) -> str:
        self.left[task.kind] -= 1
        self.seen[task.kind].append(seconds)
        self.count += 1
        overall = float(np.mean([s for times in self.seen.values() for s in times]))
        remaining = sum(
            n * (float(np.mean(self.seen[kind])) if self.seen.get(kind) else overall) for kind, n in self.left.items()
        )
        minutes, second = divmod(round(remaining / self.jobs), 60)
        return (
            f"[{self.count}/{self.total}] {task.label}: {seconds:.1f} s, {status}; "
            f"about {minutes} min {second:02d} s left"
        )
