"""Fits on Spark whose workers are killed at random moments go on from their checkpoint, to the bit.

A fit of two barrier tasks loses the Python process of one of them (SIGKILL) at a random moment, ten times. Each time
the fit must end with an error that names the round, or the rounds of the checkpoint, and a fit that goes on from the
checkpoint must give the model of one that nothing disturbed. Then a process is stopped (SIGSTOP): the fit must end with
an error soon after its timeout, and Spark must end the process.
``python tools/kill_spark.py --output results/distributed/kill_spark.json``
"""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyspark
from pyspark import TaskContext
from pyspark.ml.linalg import Vectors
from pyspark.sql import SparkSession

from kills import ROUNDS, TIMEOUT, finish_kills, options, problem
from scboost import Checkpoint
from scboost._runtime.communicator import WorkerError
from scboost.spark import SCBoostClassifier


def processes(folder: Path) -> dict[int, int]:
    """Read the numbers of the processes that the tasks of a fit have left in a folder, by rank."""
    return {int(path.suffix[1:]): int(path.read_text() or 0) for path in folder.glob("task.*")}


class Note:
    """Callback that takes note of the round; a copy of it that reaches a task, of the task's process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        context = TaskContext.get()
        if context is not None:
            (self.folder / f"task.{context.partitionId()}").write_text(str(os.getpid()))

    def __call__(self, model: Any) -> None:
        """Take note of the round."""
        (self.folder / "round").write_text(str(model.n_estimators_))


def alive(pid: int) -> bool:
    """Whether a process runs."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def broken_fit(estimator: Any, data: Any, folder: Path, rank: int, wait: float, kind: signal.Signals) -> dict[str, Any]:
    """Fit, send a signal to a task some time after the first checkpoint, and say how the fit ended."""
    path = folder / "fit.checkpoint"
    sent: list[float] = []

    def strike() -> None:
        while not path.exists():
            time.sleep(0.01)
        time.sleep(wait)
        os.kill(processes(folder)[rank], kind)
        sent.append(time.monotonic())

    striker = threading.Thread(target=strike)
    striker.start()
    callbacks = [Checkpoint(path, every=5), Note(folder)]
    said = ""
    try:
        estimator.fit(data, {estimator.callbacks: callbacks, estimator.timeout: TIMEOUT})
    except WorkerError as error:
        said = str(error)
    seconds = time.monotonic() - sent[0] if sent else float("nan")
    striker.join()
    found = re.search(r"in round (\d+)", said) or re.search(r"has (\d+) rounds", said)
    deadline = time.monotonic() + 10
    while any(map(alive, processes(folder).values())) and time.monotonic() < deadline:
        time.sleep(0.1)
    return {
        "worker": rank,
        "round": int((folder / "round").read_text()) + 1,
        "round of the error": int(found[1]) if found else None,
        "seconds to the error": round(seconds, 2),
        "lost process is gone": not alive(processes(folder)[rank]),
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return 1 if a promise was broken."""
    given = options(__doc__, arguments)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    rng = np.random.default_rng(given.seed)
    X, y = problem(rng)
    rows = [(Vectors.dense(row), label) for row, label in zip(X.astype(float), y.tolist(), strict=True)]
    data = spark.createDataFrame(rows, ["features", "label"]).cache()
    estimator = SCBoostClassifier(num_workers=2, n_estimators=ROUNDS, random_state=0)
    whole = estimator.fit(data).to_local().predict_proba(X)
    fits: list[dict[str, Any]] = []
    for i in range(given.kills + 1):
        kind = signal.SIGKILL if i < given.kills else signal.SIGSTOP
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            case = broken_fit(estimator, data, folder, int(rng.integers(2)), float(rng.uniform(0, 1.5)), kind)
            resumed = estimator.fit(data, {estimator.resume_from: str(folder / "fit.checkpoint")}).to_local()
            case["resumed to the bit"] = bool(np.array_equal(resumed.predict_proba(X), whole))
        case["signal"] = kind.name
        fits.append(case)
        print(case, file=sys.stderr, flush=True)
    spark.stop()
    return finish_kills("python tools/kill_spark.py", {"pyspark": pyspark.__version__}, fits, given.output)


if __name__ == "__main__":
    raise SystemExit(main())
