"""Result files: rows written as they come, read back by cell, and beside each file a record of how it was made."""

import csv
import json
import os
import platform
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

KEY = ("dataset", "method", "setting", "fold", "seed")
PACKAGES = ("scboost", "numpy", "scipy", "scikit-learn", "lightgbm", "catboost", "ngboost", "optuna")

Row = dict[str, str]


class StorageError(RuntimeError):
    """Results could not be written; what was finished before is in the file."""


@contextmanager
def storage(path: Path, kept: str) -> Iterator[None]:
    """Turn an error of the disk into a `StorageError` that says what is kept."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot write {path} ({error.strerror or error}); {kept}") from error


def read_rows(path: Path, key: Sequence[str] = KEY) -> list[Row]:
    """All complete rows of a result file, the last of each key.

    A last line that was cut off by a kill or a full disk does not count; two runs that append to one file at the same
    time may leave a key twice.
    """
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    rows = csv.DictReader(text[: text.rfind("\n") + 1].splitlines())
    return list({tuple(row[name] for name in key): row for row in rows if row.get("status")}.values())


class ResultFile:
    """A CSV file of rows with key columns, value columns and a `status`, that survives interruption.

    Parameters
    ----------
    path : Path
    columns : sequence of str
        Names of the value columns.
    key : sequence of str
        Names of the columns that identify a row.
    """

    def __init__(self, path: Path, columns: Sequence[str], key: Sequence[str] = KEY) -> None:
        self.path, self.key = path, tuple(key)
        self.header = [*key, *columns, "status"]

    def rows(self) -> list[Row]:
        """All complete rows, the last of each key; the file must have the columns of this object."""
        if self.path.exists():
            with self.path.open(newline="", encoding="utf-8") as stream:
                header = next(csv.reader(stream), self.header)
            if header != self.header:
                raise StorageError(
                    f"{self.path} has other columns than {', '.join(self.header)}; move it away or choose another --out"
                )
        return read_rows(self.path, self.key)

    def key_of(self, row: Row) -> tuple[str, ...]:
        """Return the values of the key columns."""
        return tuple(row[name] for name in self.key)

    def start(self, forget: Collection[tuple[str, ...]] = ()) -> set[tuple[str, ...]]:
        """Make the file ready for appending, without the keys to forget; return the keys that are done."""
        finished = [row for row in self.rows() if row["status"] == "ok" and self.key_of(row) not in forget]
        with storage(self.path, "nothing was run"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fresh = self.path.with_suffix(".tmp")
            with fresh.open("w", newline="", encoding="utf-8") as stream:
                writer = csv.DictWriter(stream, self.header, lineterminator="\n")
                writer.writeheader()
                writer.writerows(finished)
            fresh.replace(self.path)
        return {self.key_of(row) for row in finished}

    def append(self, row: Mapping[str, object]) -> None:
        """Write one row and hand it to the disk before returning."""
        kept = "the folds finished before are kept; free some space and run the same command again"
        with storage(self.path, kept), self.path.open("a", newline="", encoding="utf-8") as stream:
            csv.DictWriter(stream, self.header, lineterminator="\n", restval="").writerow(row)
            stream.flush()
            os.fsync(stream.fileno())

    @contextmanager
    def recorded(
        self, command: str, *, data: Callable[[], Mapping[str, str]] = dict, **extra: object
    ) -> Iterator[None]:
        """Add to the JSON file beside this one how the rows that are written meanwhile were made.

        The record holds the command, versions, date, time, data, and how many rows of which method and data set were
        written; nothing is added where no row was. Interrupted runs are recorded as well.

        Parameters
        ----------
        command : str
        data : callable
            Returns source and checksum of each data set; called at the end.
        **extra
            What else a reader of the table needs.
        """
        before, started = {self.key_of(row): row for row in self.rows()}, time.perf_counter()
        try:
            yield
        finally:
            ran: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
            for row in self.rows():
                if row["status"] == "ok" and before.get(self.key_of(row)) != row:
                    ran[row["method"]][row.get("dataset", "")] += 1
            if ran:
                minutes = round((time.perf_counter() - started) / 60, 1)
                add_record(self.path, {"command": command, "data": data(), "minutes": minutes, "ran": ran, **extra})


def add_record(path: Path, record: Mapping[str, object]) -> None:
    """Add one run to the JSON file beside a result file, with date and versions."""
    target = path.with_suffix(".json")
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    run = {"date": now, "python": platform.python_version(), "versions": versions(), **record}
    with storage(target, "the result file itself is complete"):
        fresh = target.with_suffix(".json.tmp")
        fresh.write_text(json.dumps({"runs": [*read_runs(path), run]}, indent=1) + "\n", encoding="utf-8")
        fresh.replace(target)


def read_runs(path: Path) -> list[dict[str, Any]]:
    """Read how a result file was made, run by run."""
    target = path.with_suffix(".json")
    return list(json.loads(target.read_text(encoding="utf-8"))["runs"]) if target.exists() else []


def versions() -> dict[str, str]:
    """Versions of the packages that made the results; ``xgboost-cpu`` counts as xgboost."""
    found = {}
    for package in (*PACKAGES, "xgboost", "xgboost-cpu"):
        try:
            found[package.removesuffix("-cpu")] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


class Results:
    """The rows of a result file for reading; ``where`` names columns and the values that a row must have there.

    Parameters
    ----------
    path : Path
        Of the CSV file; without it there are no rows.
    key : sequence of str
        See `ResultFile`.

    Attributes
    ----------
    rows, failed : list of dict
        Rows whose status is ``ok``, and the others, in the order of the file.
    runs : list of dict
        How they were made.
    """

    def __init__(self, path: Path, key: Sequence[str] = KEY) -> None:
        self.name = path.name
        rows = read_rows(path, key)
        self.rows = [row for row in rows if row["status"] == "ok"]
        self.failed = [row for row in rows if row["status"] != "ok"]
        self.runs = read_runs(path)
        self._index: dict[tuple[str, ...], dict[tuple[str, ...], list[Row]]] = {}

    def select(self, **where: object) -> list[Row]:
        """Rows with these values, in the order of the folds."""
        names = tuple(where)
        if names not in self._index:
            found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
            for row in sorted(self.rows, key=lambda row: int(row.get("fold", 0))):
                found[tuple(row[name] for name in names)].append(row)
            self._index[names] = found
        return self._index[names].get(tuple(map(str, where.values())), [])

    def values(self, column: str, **where: object) -> list[float]:
        """Numbers of a column, in the order of the folds; rows without one do not count."""
        return [float(row[column]) for row in self.select(**where) if row[column]]

    def mean(self, column: str, **where: object) -> float:
        """Mean of a column, NaN where there is nothing."""
        found = self.values(column, **where)
        return float(np.mean(found)) if found else float("nan")

    def median(self, column: str, **where: object) -> float:
        """Median of a column, NaN where there is nothing."""
        found = self.values(column, **where)
        return float(np.median(found)) if found else float("nan")

    def vectors(self, column: str, **where: object) -> NDArray[np.float64]:
        """Fold by fold, the numbers that a column holds as text; shape (folds, longest), padded with NaN."""
        lists = [[float(v) for v in row[column].split()] for row in self.select(**where)]
        padded = np.full((len(lists), max(map(len, lists), default=0)), np.nan)
        for i, numbers in enumerate(lists):
            padded[i, : len(numbers)] = numbers
        return padded

    def distinct(self, column: str, **where: object) -> list[str]:
        """Values of a column in the order of the file."""
        rows = [row for row in self.rows if all(row[name] == str(value) for name, value in where.items())]
        return list(dict.fromkeys(row[column] for row in rows))

    def status(self, **where: str) -> str:
        """Return the error of a failed row; empty if there is none."""
        found = [row for row in self.failed if all(row[name] == value for name, value in where.items())]
        return found[-1]["status"] if found else ""

    def scboost_versions(self, only: str | None = None) -> list[str]:
        """Versions of scboost that made its rows, or all rows where none is scboost's, or of one method only.

        The last runs that together wrote as many rows of a method on a set as there are replaced all that earlier ones
        left. Rows without results do not count.
        """
        count: dict[tuple[str, str], int] = defaultdict(int)
        for row in self.rows:
            count[row["method"], row.get("dataset", "")] += row.get("status", "ok") == "ok"
        ours = [cell for cell in count if cell[0].lower().startswith("scboost")] or list(count)
        ours = [cell for cell in ours if only is None or cell[0] == only]
        made: set[str] = set()
        for method, dataset in ours:
            n_left = count[method, dataset]
            for run in reversed(self.runs):
                if n_left <= 0:
                    break
                ran = run["ran"].get(method, {}).get(dataset, 0) if "ran" in run else None
                if ran is None or ran > 0:
                    made.add(run["versions"]["scboost"])
                n_left -= ran or 0
        return sorted(made)

    def made_by(self) -> str:
        """Return a sentence on the commands and versions that made the rows."""
        if not self.runs:
            return ""
        last = self.runs[-1]
        commands = dict.fromkeys(f"`{run['command']}`" for run in self.runs)
        how = f"by {' and '.join(commands)}"
        if len(commands) > 2:
            record = Path(self.name).with_suffix(".json")
            listed = f"each with its command, date and versions in `{record}`"
            how = f"in {len(self.runs)} runs ({listed}), the last of them by `{last['command']}`"
        packages = ", ".join(f"{name} {version}" for name, version in last["versions"].items())
        return (
            f"`{self.name}`: {len(self.rows) + len(self.failed)} rows, {last['date'][:10]}, made {how} with "
            f"Python {last['python']}, {packages}."
        )
