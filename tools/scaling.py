"""What a shared fit costs: collective calls, bytes and time, next to XGBoost's own distributed fit.

Measures, on a Dask cluster of two processes with one thread each, fits of the same shape by ``xgboost.dask`` and by
``scboost.dask`` in turn, and the traffic of scboost's part. From these it predicts weak and strong scaling to 256
workers for a stated latency and bandwidth. ``python tools/scaling.py --output results/distributed/scaling.json``
"""

from __future__ import annotations

import argparse
import logging
import os
import time
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import xgboost.dask
from distributed import Client, LocalCluster, wait

from figures import described, write
from scboost.dask import SCBoostClassifier

_ROUNDS, _DEPTH, _BINS = 20, 6, 256
_LATENCY, _BANDWIDTH = 50e-6, 1.25e9  # seconds a message; bytes a second: 10 Gbit Ethernet
_WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


def cpu_seconds(client: Any) -> float:
    """User and system time of all workers so far."""
    return float(sum(sum(times[:2]) for times in client.run(os.times).values()))


def timed(client: Any, fit: Any) -> tuple[dict[str, float], Any]:
    """Return seconds of a fit, on the clock and of the workers' processors, and what it returns."""
    begin, cpu = time.perf_counter(), cpu_seconds(client)
    found = fit()
    return {"seconds": time.perf_counter() - begin, "cpu_seconds": cpu_seconds(client) - cpu}, found


def allreduce_seconds(n_workers: int, n_bytes: float) -> float:
    """Time of one sum over a ring of workers: each sends and gets all parts once to add and once to share."""
    return 2 * (n_workers - 1) * _LATENCY + 2 * (n_workers - 1) / n_workers * n_bytes / _BANDWIDTH


def predicted(rows: float, n_workers: int, measured: dict[str, float]) -> dict[str, float]:
    """Seconds of a round for plain XGBoost and for scboost, with the samples distributed over the workers."""
    # XGBoost adds up the histograms of one child of every split, a level at a time.
    levels = [1, *(2 ** max(level - 1, 0) for level in range(1, _DEPTH))]
    plain = rows / n_workers * measured["XGBoost, seconds a row and round"]
    cell = 16 * _BINS * measured["columns"]
    plain += sum(allreduce_seconds(n_workers, nodes * cell) for nodes in levels)
    ours = plain + rows / n_workers * measured["scboost's part, seconds a row and round"]
    calls = measured["calls a round"]
    ours += calls * allreduce_seconds(n_workers, measured["bytes a round"] / calls)
    return {"workers": n_workers, "XGBoost": plain, "scboost": ours, "ratio": ours / plain}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    n, d = options.rows, options.columns
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(np.float32)
    y = (X[:, 0] - X[:, 1] * X[:, 2] + rng.normal(size=n) > 0).astype(np.int32)
    silent = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
    fits: list[dict[str, Any]] = []
    with LocalCluster(n_workers=2, threads_per_worker=1, **silent) as cluster, Client(cluster) as client:
        rows = [da.from_array(part, chunks=(n // 2, *part.shape[1:])).persist() for part in (X, y)]
        wait(rows)
        params = {"max_depth": _DEPTH, "max_bin": _BINS, "objective": "binary:logistic", "nthread": 1}

        def plain() -> Any:
            matrix = xgboost.dask.DaskQuantileDMatrix(client, *rows, max_bin=_BINS)
            return xgboost.dask.train(client, params, matrix, num_boost_round=_ROUNDS)

        def ours() -> Any:
            return SCBoostClassifier(n_estimators=_ROUNDS, max_depth=_DEPTH, random_state=0).fit(*rows)

        for _ in range(options.repeats):
            for name, fit in (("XGBoost", plain), ("scboost", ours)):
                figures, model = timed(client, fit)
                traffic = getattr(model, "traffic_", {})
                fits.append({"fit": name, **figures, **{f"traffic, {key}": value for key, value in traffic.items()}})
        few, many = (
            SCBoostClassifier(n_estimators=rounds, max_depth=_DEPTH, random_state=0).fit(*rows).traffic_
            for rounds in (5, 25)
        )
    best = {
        (name, key): min(fit[key] for fit in fits if fit["fit"] == name)
        for name in ("XGBoost", "scboost")
        for key in ("seconds", "cpu_seconds")
    }
    waited = min(fit["traffic, seconds"] for fit in fits if fit["fit"] == "scboost")
    calls = min(fit["traffic, calls"] for fit in fits if fit["fit"] == "scboost")
    cells = n * _ROUNDS
    plain_cpu, ours_cpu = best["XGBoost", "cpu_seconds"], best["scboost", "cpu_seconds"]
    measured = {
        "rows": n,
        "columns": d,
        "rounds": _ROUNDS,
        "calls a round": (many["calls"] - few["calls"]) / 20,
        "bytes a round": (many["bytes"] - few["bytes"]) / 20,
        "milliseconds a call, waiting included": 1000 * waited / calls,
        "collective seconds of a fit": waited,
        "XGBoost, seconds": best["XGBoost", "seconds"],
        "scboost, seconds": best["scboost", "seconds"],
        "XGBoost, CPU seconds": plain_cpu,
        "scboost, CPU seconds": ours_cpu,
        "CPU ratio": ours_cpu / plain_cpu,
        "XGBoost, seconds a row and round": plain_cpu / cells,
        "scboost's part, seconds a row and round": max(ours_cpu - plain_cpu, 0.0) / cells,
    }
    network = {"latency, seconds": _LATENCY, "bandwidth, bytes a second": _BANDWIDTH}
    found = {
        "dask": dask.__version__,
        "load when it began": os.getloadavg()[0],
        "measured": measured,
        "network": network,
        "strong scaling, 100,000,000 rows": [predicted(1e8, workers, measured) for workers in _WORKERS],
        "weak scaling, 1,000,000 rows a worker": [predicted(1e6 * workers, workers, measured) for workers in _WORKERS],
        "fits": fits,
    }
    print(write(described("python tools/scaling.py", found), options.output))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
