"""The paper's ten data sets: a registry, a loader that checks what it gets, and ``scboost-lab datasets``.

A set comes from OpenML (scikit-learn's cached ``fetch_openml``) or from a directory of Parquet files.
What cannot be had raises `DataError`; nothing is replaced silently.
"""

import argparse
import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DATA_DIR_VARIABLE = "SCBOOST_DATA_DIR"


class DataError(RuntimeError):
    """A data set could not be had, or is not what the registry says."""


@dataclass(frozen=True)
class DatasetInfo:
    """One row of the registry.

    Attributes
    ----------
    name : str
        The paper's name.
    openml_id, openml_version : int
        The id decides; the version is for the reader.
    openml_target, openml_positive : str
        Target column and positive class, as the paper counts it, in OpenML's words.
    n_rows, n_columns, n_positive : int
        What OpenML holds (before undersampling).
    file : str or None
        Stem of the Parquet file; its last column is `target`.
    file_positive : int
        Value of `target` that the paper counts as positive.
    file_rows, file_n_positive : int or None
        Rows and positives of the file where they differ from OpenML's.
    checksum : str or None
        `content_checksum` of the file, 16 hexadecimal digits.
    undersampled : bool
        The paper balances the classes by random undersampling.
    note : str
        What a reader of the tables must know.
    """

    name: str
    openml_id: int
    openml_version: int
    openml_target: str
    openml_positive: str
    n_rows: int
    n_columns: int
    n_positive: int
    file: str | None
    checksum: str | None
    file_positive: int = 1
    file_rows: int | None = None
    file_columns: int | None = None
    undersampled: bool = False
    note: str = ""


@dataclass(frozen=True)
class Dataset:
    """A loaded set.

    Attributes
    ----------
    name : str
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
        1 is the class that the paper counts as positive.
    source : str
        ``"openml:<id>"`` or ``"parquet:<stem>"``.
    checksum : str
        `content_checksum` of (X, y) and the column names.
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    source: str
    checksum: str


REGISTRY: dict[str, DatasetInfo] = {
    info.name: info
    for info in (
        DatasetInfo("Madelon", 1485, 1, "Class", "2", 2600, 500, 1300, "madelon", "010ff9afcec089e4", file_positive=0),
        DatasetInfo("Jasmine", 41143, 1, "class", "1", 2984, 144, 1492, "jasmine", "2b59f59b4852981a"),
        DatasetInfo("Bioresponse", 4134, 1, "target", "1", 3751, 1776, 2034, "bioresponse", "5b91a23625f0d9e8"),
        DatasetInfo(
            "Creditcard",
            1597,
            1,
            "Class",
            "1",
            284807,
            30,
            492,
            "creditcard",
            "68222f764eb51b14",
            file_rows=17849,
            undersampled=True,
            note="the Parquet file holds all 492 positives and 17,357 of the 284,315 negatives; "
            "undersampling draws its 492 negatives from those",
        ),
        DatasetInfo(
            "OVA_Uterus",
            1138,
            1,
            "Tissue",
            "Uterus",
            1545,
            10936,
            124,
            None,
            None,
            undersampled=True,
            note="from OpenML only: there is no Parquet file",
        ),
        DatasetInfo("QSAR", 1494, 1, "Class", "2", 1055, 41, 356, "qsar_biodeg", "19dedeed031edb7e"),
        DatasetInfo(
            "Scene",
            312,
            1,
            "Urban",
            "1",
            2407,
            299,
            431,
            "scene",
            "5339802914bc0bcc",
            note="five of the columns are the sibling labels Beach .. Mountain, as in OpenML",
        ),
        DatasetInfo("Letter", 977, 2, "binaryClass", "P", 20000, 16, 813, "letter_U", "d130c8e4f5eb93f2"),
        DatasetInfo(
            "Pol",
            722,
            2,
            "binaryClass",
            "P",
            15000,
            48,
            9959,
            "pol_binmean_full",
            "13db1ed035526fe5",
            file_positive=0,
            file_columns=26,
            note="the 15,000-row set, which the printed baselines fit (the text says 10,082); "
            "the Parquet file lacks 22 near-constant columns of OpenML's 48",
        ),
        DatasetInfo(
            "Elevators",
            846,
            2,
            "binaryClass",
            "P",
            16599,
            18,
            11469,
            "elevators",
            "7ce240a4642807ac",
            file_positive=0,
        ),
    )
}


def content_checksum(columns: list[str], X: NDArray[np.float64], y: NDArray[np.int64]) -> str:
    """Hash names and values, independent of file format, storage type and platform.

    Parameters
    ----------
    columns : list of str
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)

    Returns
    -------
    str
        The first 16 hexadecimal digits of a SHA-256.

    Examples
    --------
    >>> import numpy as np
    >>> a = content_checksum(["x"], np.array([[0.0], [1.0]]), np.array([0, 1]))
    >>> a == content_checksum(["x"], np.array([[-0.0], [1.0]]), np.array([0, 1]))
    True
    >>> a == content_checksum(["x"], np.array([[1.0], [0.0]]), np.array([0, 1]))
    False
    """
    digest = hashlib.sha256("\x1f".join(columns).encode())
    values = np.ascontiguousarray(X, dtype="<f8") + 0.0  # -0.0 becomes 0.0
    values[np.isnan(values)] = np.nan  # one bit pattern for every NaN
    digest.update(values.tobytes())
    digest.update(np.ascontiguousarray(y, dtype="<i8").tobytes())
    return digest.hexdigest()[:16]


def info(name: str) -> DatasetInfo:
    """Look a set up by the paper's name, whatever the case; a `DataError` lists the known names."""
    for key, value in REGISTRY.items():
        if key.lower() == name.lower():
            return value
    raise DataError(f"unknown dataset {name!r}; known: {', '.join(REGISTRY)}")


def resolve_data_dir(data_dir: str | os.PathLike[str] | None) -> Path | None:
    """Return the directory given, else the environment variable's, else None (OpenML); it must be readable.

    Parameters
    ----------
    data_dir : path or None

    Returns
    -------
    Path or None
    """
    chosen = data_dir if data_dir is not None else os.environ.get(DATA_DIR_VARIABLE) or None
    if chosen is None:
        return None
    origin = "--data-dir" if data_dir is not None else DATA_DIR_VARIABLE
    path = Path(chosen)
    if not path.is_dir():
        raise DataError(f"{origin} is {str(path)!r}, which is not a directory")
    if not os.access(path, os.R_OK | os.X_OK):
        raise DataError(f"{origin} is {str(path)!r}, which cannot be read (permissions)")
    return path


def load(name: str, data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """Load one of the ten sets and check it against the registry.

    Parameters
    ----------
    name : str
        The paper's name.
    data_dir : path, optional
        Directory of Parquet files. Without it the environment variable SCBOOST_DATA_DIR counts, else OpenML.

    Returns
    -------
    Dataset
    """
    entry = info(name)
    directory = resolve_data_dir(data_dir)
    return _from_openml(entry) if directory is None else _from_parquet(entry, directory)


def _from_parquet(entry: DatasetInfo, directory: Path) -> Dataset:
    import pandas as pd

    if entry.file is None:
        raise DataError(f"{entry.name}: {entry.note}")
    path = directory / f"{entry.file}.parquet"
    if not path.is_file():
        raise DataError(f"{entry.name}: there is no {path.name} in {str(directory)!r}")
    try:
        frame = pd.read_parquet(path)
    except (OSError, ValueError) as error:  # pyarrow's ArrowInvalid is a ValueError
        raise DataError(f"{entry.name}: {path.name} cannot be read, it may be truncated ({error})") from error
    if "target" not in frame.columns:
        raise DataError(f"{entry.name}: {path.name} has no column 'target'")
    y = (frame["target"].to_numpy() == entry.file_positive).astype(np.int64)
    dataset = _checked(entry, frame.drop(columns="target"), y, f"parquet:{entry.file}")
    if dataset.checksum != entry.checksum:
        raise DataError(
            f"{entry.name}: {path.name} has checksum {dataset.checksum}, the registry says {entry.checksum}: "
            "the file is not the one the results were made with"
        )
    return dataset


def _from_openml(entry: DatasetInfo) -> Dataset:
    from sklearn.datasets import fetch_openml

    try:
        bunch = fetch_openml(data_id=entry.openml_id, target_column=None, as_frame=True, parser="auto")
    except Exception as error:  # network, cache and OpenML's own errors share no base class
        raise DataError(
            f"{entry.name}: OpenML {entry.openml_id} could not be fetched ({type(error).__name__}: {error})"
        ) from error
    frame = bunch.data
    if entry.openml_target not in frame.columns:
        raise DataError(f"{entry.name}: OpenML {entry.openml_id} has no column {entry.openml_target!r}")
    y = (frame[entry.openml_target].astype(str) == entry.openml_positive).to_numpy().astype(np.int64)
    return _checked(entry, frame.drop(columns=entry.openml_target), y, f"openml:{entry.openml_id}")


def _checked(entry: DatasetInfo, frame: Any, y: NDArray[np.int64], source: str) -> Dataset:
    """Turn the frame into numbers and compare its shape and its positives with the registry."""
    import pandas as pd

    from_file = source.startswith("parquet")
    rows = entry.file_rows if from_file and entry.file_rows else entry.n_rows
    columns = entry.file_columns if from_file and entry.file_columns else entry.n_columns
    if frame.shape != (rows, columns):
        raise DataError(
            f"{entry.name}: {source} has {frame.shape[0]} rows and {frame.shape[1]} features, "
            f"expected {rows} and {columns}"
        )
    if int(y.sum()) != entry.n_positive:
        raise DataError(f"{entry.name}: {source} has {int(y.sum())} positives, expected {entry.n_positive}")
    arrays = []
    for column in frame.columns:
        try:
            arrays.append(pd.to_numeric(frame[column].astype(object)).to_numpy(dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise DataError(f"{entry.name}: column {column!r} is not numeric ({error})") from error
    X = np.column_stack(arrays)
    return Dataset(entry.name, X, y, source, content_checksum([str(c) for c in frame.columns], X, y))


def undersample(y: NDArray[np.int64], seed: int, *, replace: bool = False) -> NDArray[np.int64]:
    """Rows that stay when the larger class is cut, at random, to the size of the smaller.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels 0 and 1.
    seed : int
    replace : bool, default=False
        Whether to draw the rows of both classes with replacement.

    Returns
    -------
    ndarray
        Sorted row numbers.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0, 0, 0, 1, 0, 1])
    >>> y[undersample(y, seed=42)].tolist().count(0)
    2
    """
    rng = np.random.default_rng(seed)
    classes = [np.flatnonzero(y == label) for label in (0, 1)]
    size = min(map(len, classes))
    return np.sort(np.concatenate([rng.choice(rows, size, replace=replace) for rows in classes]))


def oversample(y: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Rows, some of them repeated, when the smaller class is drawn up at random to the size of the larger.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels 0 and 1.
    seed : int

    Returns
    -------
    ndarray
        All row numbers, then the repeated ones.
    """
    rng = np.random.default_rng(seed)
    classes = sorted((np.flatnonzero(y == label) for label in (0, 1)), key=len)
    repeats = rng.choice(classes[0], len(classes[1]) - len(classes[0]), replace=True)
    return np.concatenate([np.arange(len(y)), repeats])


def add_parser(subparsers: Any) -> None:
    """Add ``scboost-lab datasets``."""
    parser = subparsers.add_parser(
        "datasets",
        help="list, fetch and check the paper's ten data sets",
        description="List the paper's ten data sets; with --check load and verify each.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="sets to show (default: all ten)")
    parser.add_argument("--data-dir", help=f"directory of Parquet files (default: ${DATA_DIR_VARIABLE}, else OpenML)")
    parser.add_argument("--check", action="store_true", help="fetch (or read) each set and verify it")
    parser.set_defaults(func=_command)


def _command(args: argparse.Namespace) -> int:
    try:
        entries = [info(name) for name in args.names] or list(REGISTRY.values())
        directory = resolve_data_dir(args.data_dir)
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{'name':<12} {'OpenML':>6} v {'target':<12} {'positive':<8} {'rows':>7} {'cols':>5} {'pos.':>6} sha")
    missing = 0
    for entry in entries:
        line = (
            f"{entry.name:<12} {entry.openml_id:>6} {entry.openml_version} {entry.openml_target:<12} "
            f"{entry.openml_positive:<8} {entry.n_rows:>7} {entry.n_columns:>5} {entry.n_positive:>6} "
            f"{entry.checksum or '-'}"
        )
        if args.check:
            try:
                dataset = load(entry.name, directory)
            except DataError as error:
                missing += 1
                line += f"\n  NOT AVAILABLE: {error}"
            else:
                shape = " x ".join(map(str, dataset.X.shape))
                line += f"\n  ok: {dataset.source}, {shape}, {dataset.checksum}"
        if entry.note:
            line += f"\n  {entry.note}"
        print(line)
    return 1 if missing else 0
