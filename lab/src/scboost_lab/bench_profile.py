"""Where the CPU time of a fit goes: ``scboost-lab bench --only-profile``."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from scboost._runtime import threads as runtime_threads
from scboost_lab.bench import (
    BASES,
    CV_SHAPE,
    N_ROUNDS,
    PARTS,
    PROFILE_KEY,
    Measurement,
    Shape,
    load_libraries,
    machine,
    make_data,
    make_model,
)
from scboost_lab.results import ResultFile
from scboost_lab.runner import Values, run_tasks


@contextmanager
def profiled() -> Iterator[dict[str, float]]:
    """Collect the CPU seconds spent in each part of a fit; the parts do not overlap.

    Reading the clock is a system call of microseconds, which are subtracted and collected as well.
    """
    import xgboost as xgb

    from scboost._core import sampling
    from scboost._engine.xgboost.calls import Calls
    from scboost._model.document import NewestTrees

    seconds = dict.fromkeys((*PARTS, "clock"), 0.0)
    readings = [time.process_time() for _ in range(1001)]
    overhead = (readings[-1] - readings[0]) / 1000
    hooks: list[tuple[Any, str, str]] = [
        (xgb.QuantileDMatrix, "__init__", "binning"),
        (Calls, "boost", "tree growth"),
        (xgb.Booster, "update", "tree growth"),
        (runtime_threads.Threads, "map_blocks", "row blocks"),
        (sampling, "_repeated", "row blocks"),
        (Calls, "margin", "reading back"),
        (Calls, "model", "reading back"),
        (NewestTrees, "read", "reading back"),
    ]
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in hooks]

    def timed(function: Any, part: str) -> Any:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            start = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                seconds[part] += time.process_time() - start - overhead
                seconds["clock"] += 2 * overhead

        return wrapper

    for (owner, name, function), (_, _, part) in zip(originals, hooks, strict=True):
        setattr(owner, name, timed(function, part))
    try:
        yield seconds
    finally:
        for owner, name, function in originals:
            setattr(owner, name, function)


def profile_fit(task: Measurement) -> Values:
    """Split the CPU time of a fit into its parts, and count the leaves of a tree."""
    X, y = make_data(task.rows, task.columns)
    load_libraries(task.method, task.rows)
    with profiled() as seconds:
        start = time.process_time()
        model = make_model(task.method, task.rows, N_ROUNDS, task.threads)
        if task.method in BASES:  # the parts are those of a round with XGBoost's trees
            model.set_params(engine="xgboost")
        model.fit(X, y)
        total = time.process_time() - start - seconds.pop("clock")
    seconds["the rest"] = total - sum(seconds.values())
    leaves = sum(tree.count("leaf=") for tree in model.get_booster().get_dump()) / N_ROUNDS
    return {"leaves": leaves, "seconds": round(total, 4), **{part: round(v, 4) for part, v in seconds.items()}}


@dataclass(frozen=True)
class _Profile(Measurement):
    @property
    def key(self) -> tuple[str, ...]:
        return (self.method, str(self.rows), str(self.columns), str(self.repeat))


def profile(output: Path, shapes: Sequence[Shape], repeat: int = 1, *, command: str = "") -> list[dict[str, str]]:
    """Split the CPU time of fits of SCBoost and XGBoost into parts; runs alternate and existing rows are replaced."""
    methods = ("XGBoost", "SCBoost", "XGBoost, depth 5", "SCBoost, paper form")
    tasks = [
        _Profile("profile", m, n, d, N_ROUNDS, 1, i)
        for (n, d), i, m in product((CV_SHAPE, *shapes), range(repeat), methods)
    ]
    file = ResultFile(output / "profile.csv", ("leaves", "seconds", *PARTS, "the rest"), PROFILE_KEY)
    with file.recorded(command, machine=machine()):
        return run_tasks(tasks, profile_fit, file, again=True)
