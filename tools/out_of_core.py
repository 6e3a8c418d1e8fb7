"""Memory and time of a fit to Parquet files, in batches and with all samples in memory.

``python tools/out_of_core.py --output results/distributed/out_of_core.json``
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import scboost
from figures import described, write

_AT_ONCE = 50_000  # samples per row group


def write_rows(folder: Path, n_rows: int, n_columns: int, n_files: int = 8) -> int:
    """Write samples of few distinct values, so that bins do not depend on batches; return the bytes of the files."""
    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(n_columns)]
    schema = pa.schema([(name, pa.float32()) for name in names] + [("y", pa.int8())])
    for i, part in enumerate(np.array_split(np.arange(n_rows), n_files)):
        with parquet.ParquetWriter(folder / f"{i}.parquet", schema) as writer:
            for start in range(0, len(part), _AT_ONCE):
                X = rng.normal(size=(min(_AT_ONCE, len(part) - start), n_columns)).astype(np.float32).round(1)
                score = X[:, 0] + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + rng.normal(size=len(X))
                y = pa.array((score > 0.8).astype(np.int8))
                writer.write_table(pa.Table.from_arrays([*map(pa.array, X.T), y], schema=schema))
    return sum(file.stat().st_size for file in folder.iterdir())


def memory() -> dict[str, float]:
    """Memory of this process in MiB: held by itself, and in all, with files that the system may drop any time."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    own, files = (int(lines[name].split()[0]) / 1024 for name in ("RssAnon", "RssFile"))
    return {"own_MiB": own, "with_files_MiB": own + files}


class Peak:
    """Largest memory of this process, looked at a hundred times a second."""

    def __init__(self) -> None:
        self.seen = memory()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.seen = {name: max(value, self.seen[name]) for name, value in memory().items()}
            time.sleep(0.01)


def rows_in_memory(folder: Path, n_rows: int, n_columns: int) -> tuple[Any, Any]:
    """Read all samples into float32 without a second copy."""
    X, y, done = np.empty((n_rows, n_columns), dtype=np.float32), np.empty(n_rows, dtype=np.int8), 0
    for path in sorted(folder.iterdir()):
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            for batch in file.iter_batches(_AT_ONCE, use_threads=False):
                rows = slice(done, done + len(batch))
                for j in range(n_columns):
                    X[rows, j] = batch.column(j).to_numpy()
                y[rows], done = batch.column(n_columns).to_numpy(), rows.stop
    return X, y


def fit_once(way: str, folder: Path, n_rows: int, n_columns: int, n_rounds: int) -> dict[str, Any]:
    """Fit in this process and return time and memory; with 0 rounds, their number is selected."""
    import xgboost  # noqa: F401 - its code is no part of what a fit needs

    before, peak, start, cpu = memory(), Peak(), time.monotonic(), time.process_time()
    # A late round needs no more memory than an early one: a short patience will do where the data choose.
    rounds: dict[str, Any] = {"n_estimators": n_rounds} if n_rounds else {"n_iter_no_change": 3}
    model = scboost.SCBoostClassifier(**rounds, learning_rate=0.3, n_jobs=1, random_state=0)
    if way == "batches":
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            model.fit(scboost.Batches.from_parquet(folder, target="y", folder=temporary))
            left = list(Path(temporary).iterdir())
            if left:
                raise RuntimeError(f"The fit has left {left} behind.")
    else:
        model.fit(*rows_in_memory(folder, n_rows, n_columns))
    taken = {"cpu_seconds": time.process_time() - cpu, "seconds": time.monotonic() - start}
    above = {f"peak_{name}": value - before[name] for name, value in peak.seen.items()}
    some = np.random.default_rng(1).normal(size=(10_000, n_columns)).astype(np.float32)
    return {
        "way": way,
        "rounds": model.n_estimators_,
        **{f"before_{name}": round(value, 1) for name, value in before.items()},
        **{name: round(value, 1) for name, value in {**above, **taken}.items()},
        **{f"bytes_a_row_{name[5:-4]}": round(value * 2**20 / n_rows, 1) for name, value in above.items()},
        "crc32_of_scores": zlib.crc32(model.decision_function(some).tobytes()),
    }


def main() -> None:
    """Write samples, fit in both ways, each in a process of its own, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=15, help="0 for as many as the data choose")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="for rows and temporary files")
    parser.add_argument("--way", choices=["batches", "memory"], help="fit once, to the rows in --folder")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    if given.way:
        print(json.dumps(fit_once(given.way, given.folder, given.rows, given.columns, given.rounds)))
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name) / "rows"
        folder.mkdir()
        size = write_rows(folder, given.rows, given.columns)
        runs = []
        for way in ("batches", "memory"):
            command = [sys.executable, __file__, "--way", way, "--folder", str(folder)]
            command += [f"--{key}={getattr(given, key)}" for key in ("rows", "columns", "rounds")]
            runs.append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout))
            print(runs[-1], flush=True)
    found = {
        "rows": given.rows,
        "columns": given.columns,
        "rounds": given.rounds,
        "float32_MiB": round(4 * given.rows * given.columns / 2**20, 1),
        "parquet_MiB": round(size / 2**20, 1),
        "runs": runs,
    }
    options = f"--rows {given.rows} --columns {given.columns} --rounds {given.rounds}"
    print(write(described(f"python tools/out_of_core.py {options}", found), given.output))


if __name__ == "__main__":
    main()
