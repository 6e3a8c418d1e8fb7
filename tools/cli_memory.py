"""Peak memory of ``scboost predict`` on files of few and of many rows: results/cli_memory.json."""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from scboost import __version__

RESULT = Path(__file__).parents[1] / "results" / "cli_memory.json"
_COLUMNS = 10
_AT_ONCE = 100_000


def write_rows(path: Path, n_rows: int) -> None:
    """Write random rows in chunks, so that this script needs little memory."""
    rng = np.random.default_rng(0)
    schema = pa.schema([(f"x{j}", pa.float64()) for j in range(_COLUMNS)] + [("y", pa.int64())])
    writer = parquet.ParquetWriter(path, schema) if path.suffix == ".parquet" else csv.CSVWriter(path, schema)
    with writer:
        for start in range(0, n_rows, _AT_ONCE):
            X = rng.normal(size=(min(_AT_ONCE, n_rows - start), _COLUMNS)).round(4)
            y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(np.int64)
            writer.write_table(pa.Table.from_arrays([*map(pa.array, X.T), pa.array(y)], schema=schema))


_MEASURED = """
import sys
from scboost.cli import main
code = main(sys.argv[1:])
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
sys.exit(code)
"""


def peak_and_seconds(arguments: list[str]) -> tuple[float, float]:
    """Run a command; return its peak resident memory in MiB and the seconds it took.

    The process reads its own peak: what the system tells of a child includes the memory of its parent at the fork.
    """
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", _MEASURED, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return int(done.stdout.split()[-1]) / 1024, time.monotonic() - start


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 1_000_000, 10_000_000])
    sizes = parser.parse_args().rows
    scboost = [sys.executable, "-m", "scboost"]
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        write_rows(where / "train.parquet", 20_000)
        model = where / "model.ubj"
        train = ["train", str(where / "train.parquet"), "--target", "y", "-o", str(model), "--quiet"]
        subprocess.run([*scboost, *train, "--param", "n_estimators=100", "--param", "n_jobs=1"], check=True)
        for ending in ("parquet", "csv"):
            for n_rows in sizes:
                data = where / f"rows.{ending}"
                write_rows(data, n_rows)
                predict = ["predict", str(model), str(data), "-o", str(where / f"out.{ending}"), "--proba"]
                peak, seconds = peak_and_seconds([*predict, "--threads", "1"])
                runs.append(
                    {
                        "format": ending,
                        "rows": n_rows,
                        "columns": _COLUMNS,
                        "file_MiB": round(data.stat().st_size / 2**20, 1),
                        "peak_MiB": round(peak, 1),
                        "seconds": round(seconds, 1),
                    }
                )
                data.unlink()
    result = {
        "command": "scboost predict model.ubj rows.FORMAT -o out.FORMAT --proba --threads 1",
        "made_by": "python tools/cli_memory.py",
        "scboost": __version__,
        "python": platform.python_version(),
        "pyarrow": pa.__version__,
        "model": "100 rounds, two classes",
        "runs": runs,
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
