"""Fits on a Dask cluster whose workers are killed at random moments go on from their checkpoint, to the bit.

A fit on two processes loses one of them (SIGKILL) at a random moment, ten times. Each time the fit must end with an
error that names the lost worker and the round, no task may be left on the cluster, and a fit that goes on from the
checkpoint must give the model of one that nothing disturbed. Then a worker is stopped (SIGSTOP): the fit must end with
an error soon after its timeout. ``python tools/kill_dask.py --output results/distributed/kill_dask.json``
"""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from kills import ROUNDS, TIMEOUT, finish_kills, options, problem
from scboost import Checkpoint
from scboost._runtime.communicator import WorkerError
from scboost.dask import SCBoostClassifier


def broken_fit(
    client: Any, rows: tuple[Any, Any], path: Path, rank: int, wait: float, kind: signal.Signals
) -> dict[str, Any]:
    """Fit, send a signal to a worker some time after the first checkpoint, and say how the fit ended."""
    pids = dict(sorted(client.run(os.getpid).items()))
    victim, pid = list(pids.items())[rank]
    sent: list[float] = []

    def strike() -> None:
        while not path.exists():
            time.sleep(0.01)
        time.sleep(wait)
        os.kill(pid, kind)
        sent.append(time.monotonic())

    striker = threading.Thread(target=strike)
    striker.start()
    model = SCBoostClassifier(n_estimators=ROUNDS, random_state=0, callbacks=[Checkpoint(path, every=5)])
    said = ""
    try:
        model.fit(*rows, timeout=TIMEOUT)
    except WorkerError as error:
        said = str(error)
    seconds = time.monotonic() - sent[0] if sent else float("nan")
    striker.join()
    if kind == signal.SIGSTOP:
        os.kill(pid, signal.SIGCONT)
    found = re.search(r"in round (\d+)", said)
    return {
        "worker": rank,
        "round": int(found[1]) if found else None,
        "names the worker": victim in said,
        "seconds to the error": round(seconds, 2),
    }


def idle(client: Any) -> bool:
    """Whether nothing of a fit is left on the cluster within ten seconds."""
    for _ in range(100):
        if not any(client.processing().values()) and not client.futures:
            return True
        time.sleep(0.1)
    return False


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return 1 if a promise was broken."""
    given = options(__doc__, arguments)
    dask.config.set({"distributed.logging.distributed": "critical"})
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    rng = np.random.default_rng(given.seed)
    X, y = problem(rng)
    rows = da.from_array(X, chunks=(1000, 8)), da.from_array(y, chunks=1000)
    kills: list[dict[str, Any]] = []
    whole: Any = None
    for i in range(given.kills + 1):
        kind = signal.SIGKILL if i < given.kills else signal.SIGSTOP
        silent = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
        with (
            tempfile.TemporaryDirectory() as folder,
            LocalCluster(n_workers=2, threads_per_worker=1, **silent) as cluster,
            Client(cluster) as client,
        ):
            if whole is None:
                whole = SCBoostClassifier(n_estimators=ROUNDS, random_state=0).fit(*rows).predict_proba(X)
            path = Path(folder) / "fit.checkpoint"
            case = broken_fit(client, rows, path, int(rng.integers(2)), float(rng.uniform(0, 1.5)), kind)
            case["idle afterwards"] = idle(client)
            client.wait_for_workers(2, timeout=60)
            resumed = SCBoostClassifier(n_estimators=ROUNDS, random_state=0).fit(*rows, resume_from=path)
            case["resumed to the bit"] = bool(np.array_equal(resumed.predict_proba(X), whole))
            case["signal"] = kind.name
            kills.append(case)
            print(case, file=sys.stderr, flush=True)
    return finish_kills("python tools/kill_dask.py", {"dask": dask.__version__}, kills, given.output)


if __name__ == "__main__":
    raise SystemExit(main())
