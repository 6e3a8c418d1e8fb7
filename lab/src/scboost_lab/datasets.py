"""The one place where data are read: the paper's ten sets, other Parquet files, and ``scboost-lab datasets``.

One of the ten comes from OpenML (scikit-learn's cached ``fetch_openml``) or from a directory of Parquet files, and is
checked against a registry. What cannot be had raises `DataError`; nothing is replaced silently.
"""

import argparse
import csv
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

DATA_DIR_VARIABLE = "SCBOOST_DATA_DIR"
SEED = 42


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
    openml_checksum : str or None
        `content_checksum` of what OpenML holds, where it is known; scikit-learn checks the download's own MD5 as well.
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
    openml_checksum: str | None = None
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


def _registry() -> dict[str, DatasetInfo]:
    text = files("scboost_lab").joinpath("datasets.csv").read_text(encoding="utf-8")
    read: dict[Any, Callable[[str], Any]] = {int: int, bool: lambda v: v == "1", str: str}
    kinds = get_type_hints(DatasetInfo)
    found = {}
    for row in csv.DictReader(text.splitlines()):
        values: dict[str, Any] = {}
        for name, value in row.items():
            kind, *optional = get_args(kinds[name]) or (kinds[name],)
            values[name] = None if optional and not value else read[kind](value)
        found[row["name"]] = DatasetInfo(**values)
    return found


REGISTRY: dict[str, DatasetInfo] = _registry()
"""The paper's ten sets by name; the table is ``datasets.csv``."""


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


def require_data_dir(data_dir: str | os.PathLike[str] | None) -> str:
    """Return the directory of Parquet files, for sets that can only be had from there."""
    directory = resolve_data_dir(data_dir)
    if directory is None:
        raise DataError(f"these sets are read from Parquet files: give --data-dir or set {DATA_DIR_VARIABLE}")
    return str(directory)


def read_parquet(stem: str, directory: str | os.PathLike[str]) -> tuple[Any, NDArray[Any]]:
    """Read a Parquet file of features and a column ``target``.

    Parameters
    ----------
    stem : str
        Name of the file without its ending.
    directory : path
        Where it is.

    Returns
    -------
    X : pandas.DataFrame of shape (n, d)
    y : ndarray of shape (n,)
    """
    import pandas as pd

    path = Path(directory) / f"{stem}.parquet"
    if not path.is_file():
        raise DataError(f"there is no {path.name} in {str(directory)!r}")
    try:
        frame = pd.read_parquet(path)
    except (OSError, ValueError) as error:  # pyarrow's ArrowInvalid is a ValueError
        raise DataError(f"{path.name} cannot be read, it may be truncated ({error})") from error
    if "target" not in frame.columns:
        raise DataError(f"{path.name} has no column 'target'")
    return frame.drop(columns="target"), frame["target"].to_numpy()


@lru_cache(maxsize=1)
def table(stem: str, data_dir: str, row_cap: int) -> tuple[Any, NDArray[Any]]:
    """Read features as a pandas table and the target, of a random part of the rows if there are more than `row_cap`."""
    X, y = read_parquet(stem, data_dir)
    if len(X) > row_cap:
        X = X.sample(row_cap, random_state=SEED)
        y = y[X.index.to_numpy()]
    return X.reset_index(drop=True), y


@lru_cache(maxsize=4)
def matrix(stem: str, data_dir: str, row_cap: int, column_cap: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Read a binary set as a numeric matrix, at most `row_cap` rows (stratified) and `column_cap` columns, drawn once.

    Parameters
    ----------
    stem : str
        Name of the Parquet file; its ``target`` is 1 for the positive class.
    data_dir : str
        Directory of the files.
    row_cap, column_cap : int
        Largest number of rows and of columns.

    Returns
    -------
    X : ndarray of shape (n, d)
        Category columns hold the number of the category, missing values are NaN.
    y : ndarray of shape (n,)
    """
    frame, target = read_parquet(stem, data_dir)
    frame, y = capped(frame, target.astype(np.int64), row_cap, column_cap)
    return np.column_stack([numbers(frame[column]) for column in frame.columns]), y


def capped(
    frame: Any, y: NDArray[Any], row_cap: int, column_cap: int, *, stratified: bool = True
) -> tuple[Any, NDArray[Any]]:
    """Draw at most `row_cap` rows and `column_cap` columns of a table, the same ones each time, in their order.

    Parameters
    ----------
    frame : pandas.DataFrame of shape (n, d)
    y : ndarray of shape (n,)
    row_cap, column_cap : int
        Largest number of rows and of columns.
    stratified : bool
        Whether sampling is stratified by class; False for regression.

    Returns
    -------
    frame : pandas.DataFrame
    y : ndarray
    """
    from sklearn.model_selection import train_test_split

    rng = np.random.default_rng(SEED)
    if frame.shape[1] > column_cap:
        frame = frame.iloc[:, np.sort(rng.permutation(frame.shape[1])[:column_cap])]
    if len(y) > row_cap:
        stratify = y if stratified else None
        rows = np.sort(train_test_split(np.arange(len(y)), train_size=row_cap, stratify=stratify, random_state=SEED)[0])
        frame, y = frame.iloc[rows], y[rows]
    return frame, y


def numbers(column: Any) -> NDArray[np.float64]:
    """Return a column as numbers: categories by the order of their names, missing values as NaN."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return np.asarray(column.to_numpy(), dtype=np.float64)
    codes, _ = pd.factorize(column, sort=True)
    return np.where(codes < 0, np.nan, codes.astype(np.float64))


def _from_parquet(entry: DatasetInfo, directory: Path) -> Dataset:
    if entry.file is None:
        raise DataError(f"{entry.name}: {entry.note}")
    try:
        frame, target = read_parquet(entry.file, directory)
    except DataError as error:
        raise DataError(f"{entry.name}: {error}") from error
    y = (target == entry.file_positive).astype(np.int64)
    shape = entry.file_rows or entry.n_rows, entry.file_columns or entry.n_columns
    return _checked(entry, frame, y, f"parquet:{entry.file}", shape, entry.checksum)


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
    source, shape = f"openml:{entry.openml_id}", (entry.n_rows, entry.n_columns)
    return _checked(entry, frame.drop(columns=entry.openml_target), y, source, shape, entry.openml_checksum)


def _checked(
    entry: DatasetInfo, frame: Any, y: NDArray[np.int64], source: str, shape: tuple[int, int], checksum: str | None
) -> Dataset:
    """Turn the frame into numbers and compare its shape, its positives and its content with the registry."""
    import pandas as pd

    if frame.shape != shape:
        raise DataError(
            f"{entry.name}: {source} has {frame.shape[0]} rows and {frame.shape[1]} features, "
            f"expected {shape[0]} and {shape[1]}"
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
    found = content_checksum([str(c) for c in frame.columns], X, y)
    if checksum is not None and found != checksum:
        raise DataError(
            f"{entry.name}: {source} has checksum {found}, the registry says {checksum}: "
            "these are not the rows that the results were made with"
        )
    return Dataset(entry.name, X, y, source, found)


whole = lru_cache(maxsize=2)(load)
"""Load one of the ten sets, once for all its folds."""


@lru_cache(maxsize=2)
def prepared(name: str, data_dir: str | None, seed: int = SEED) -> Dataset:
    """Load a set; Creditcard and OVA_Uterus come undersampled, as in the paper, before the folds are cut."""
    dataset = whole(name, data_dir)
    if not info(name).undersampled:
        return dataset
    rows = undersample(dataset.y, seed)
    return Dataset(dataset.name, dataset.X[rows], dataset.y[rows], dataset.source, dataset.checksum)


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


def smote(
    X: NDArray[np.float64], y: NDArray[np.int64], seed: int, n_neighbors: int = 5
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Fill the smaller class up to the size of the larger with points between its rows and their neighbours.

    A new point is drawn evenly between a random row of the smaller class and one of its nearest neighbours of that
    class: the method named SMOTE.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
        Labels 0 and 1.
    seed : int
    n_neighbors : int
        Neighbours of a row to choose from.

    Returns
    -------
    X : ndarray of shape (m, d)
        All rows, then the new ones.
    y : ndarray of shape (m,)
    """
    from sklearn.neighbors import NearestNeighbors

    rng = np.random.default_rng(seed)
    label = int(2 * y.sum() < len(y))
    rows = X[y == label]
    neighbours = NearestNeighbors(n_neighbors=n_neighbors + 1).fit(rows).kneighbors(rows, return_distance=False)[:, 1:]
    n_new = len(y) - 2 * len(rows)
    first = rng.integers(len(rows), size=n_new)
    second = neighbours[first, rng.integers(n_neighbors, size=n_new)]
    new = rows[first] + rng.random((n_new, 1)) * (rows[second] - rows[first])
    return np.vstack([X, new]), np.concatenate([y, np.full(n_new, label)])


def arguments(parser: argparse.ArgumentParser) -> None:
    """Describe ``scboost-lab datasets``."""
    parser.description = "List the paper's ten data sets; with --check load and verify each."
    parser.add_argument("names", nargs="*", metavar="NAME", help="sets to show (default: all ten)")
    parser.add_argument("--data-dir", help=f"directory of Parquet files (default: ${DATA_DIR_VARIABLE}, else OpenML)")
    parser.add_argument("--check", action="store_true", help="fetch (or read) each set and verify it")


def main(args: argparse.Namespace) -> int:
    """List the sets, and check them if asked."""
    entries = [info(name) for name in args.names] or list(REGISTRY.values())
    directory = resolve_data_dir(args.data_dir)
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
