"""Array types, the one way to go through many rows, and rows and vectors that are not in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from tempfile import TemporaryFile
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

ArrayLike = Any
FloatArray = npt.NDArray[np.floating]
IntArray = npt.NDArray[np.integer]
BoolArray = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.uint64]

_P = TypeVar("_P")
_T = TypeVar("_T")

# Rows of a block, of which a dozen vectors stay in cache. Where there are many rows blocks are larger: calls between
# them, while other threads wait for the lock of Python, then count less.
_BLOCK, _LARGE_BLOCK, _MANY = 1 << 14, 1 << 16, 1 << 18
# Rows and threads from which threads help. With fewer rows they wait for Python's lock longer than they work; and of
# two cores, one is held by a thread of XGBoost that looks for work for some milliseconds after a tree.
_THREADED, _FEWEST_THREADS = 1 << 18, 3


def blocks(n: int, size: int = _BLOCK) -> Iterator[slice]:
    """Rows in blocks that stay in cache; their bounds do not depend on the number of threads."""
    return (slice(start, start + size) for start in range(0, n, size))


def map_blocks(function: Callable[[slice], _T], n: int, size: int | None = None) -> list[_T]:
    """Call a function for every block of rows; of many rows, on the threads of :func:`row_threads`.

    Parameters
    ----------
    function : callable
        Gets the rows of a block; writes to these rows of arrays only, and returns what is to be added up. NumPy lets
        other threads work while it goes through a block.
    n : int
        Number of rows.
    size : int, optional
        Rows of a block; if not given, the number of rows decides.

    Returns
    -------
    list
        One result a block, in the order of the blocks: sums of them do not depend on the number of threads.
    """
    size = size or (_LARGE_BLOCK if n >= _MANY else _BLOCK)
    if 0 < n <= size:
        return [function(slice(0, n))]
    return map_parts(function, blocks(n, size), n)


def map_parts(function: Callable[[_P], _T], parts: Iterable[_P], n: int) -> list[_T]:
    """Do the same for parts of n rows that are not blocks."""
    threads = _threads.get()
    if threads is None or n < _THREADED:
        return [function(part) for part in parts]
    return threads.map(function, list(parts))


class _Threads:
    """Threads that share parts of the rows."""

    def __init__(self, n_threads: int) -> None:
        self._n_threads = n_threads
        self._pool: ThreadPoolExecutor | None = None

    def map(self, function: Callable[[_P], _T], parts: list[_P]) -> list[_T]:
        """Take the parts in turn, the calling thread among those who do."""
        if self._pool is None:  # data of a single block never need it
            self._pool = ThreadPoolExecutor(self._n_threads - 1, thread_name_prefix="scboost-rows")
        results: list[Any] = [None] * len(parts)
        left = iter(range(len(parts)))

        def work() -> None:
            for i in left:
                results[i] = function(parts[i])

        helpers = [self._pool.submit(work) for _ in range(min(self._n_threads, len(parts)) - 1)]
        try:
            work()
        finally:
            # Whoever has not begun finds nothing left: not to be waited for, where threads of XGBoost hold its core.
            begun = [helper for helper in helpers if not helper.cancel()]
            wait(begun)
        for helper in begun:
            helper.result()
        return results

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()


_threads: ContextVar[_Threads | None] = ContextVar("row_threads", default=None)


@contextmanager
def row_threads(n_threads: int) -> Iterator[None]:
    """Let :func:`map_blocks` use several threads, where they help, in what the calling thread does meanwhile."""
    if n_threads < _FEWEST_THREADS:
        yield
        return
    threads = _Threads(n_threads)
    token = _threads.set(threads)
    try:
        yield
    finally:
        _threads.reset(token)
        threads.close()


_COMPILED = 1 << 16  # rows from which a fit is worth the time that it takes to load Numba
_kernels: ModuleType | None = None


def load_kernels(n: int) -> None:
    """Let :func:`kernels` return the compiled passes from now on, if n rows are many and Numba is installed."""
    global _kernels  # noqa: PLW0603 - loaded once for all threads; what is computed does not depend on it
    if _kernels is None and n >= _COMPILED:
        # Numba may be missing, not made for this version of NumPy, or without a folder for what it compiles.
        with suppress(ImportError, RuntimeError):
            from scboost import _kernels as loaded

            _kernels = loaded


def kernels(leaf: npt.NDArray[Any] | None = None) -> Any:
    """Return the module :mod:`scboost._kernels`, or None: where it is not loaded, or not made for such leaf numbers."""
    return _kernels if _kernels is None or leaf is None or leaf.dtype in _kernels.LEAF_TYPES else None


class Paged(ABC):
    """Rows of which one batch is in memory at a time.

    Attributes
    ----------
    shape : tuple of (n, d)
        Number of rows and columns.
    folder : Path
        Where temporary files may be put.
    """

    shape: tuple[int, int]
    folder: Path

    @abstractmethod
    def __iter__(self) -> Iterator[Any]:
        """Go through the rows: matrices, dense or CSR, the same ones each time."""


def take_columns(X: Any, columns: IntArray) -> Any:
    """Return some columns of a matrix; of rows in batches, in memory."""
    if not isinstance(X, Paged):
        return X[:, columns]
    parts = [part[:, columns] for part in X]
    return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)


_folder: ContextVar[Path | None] = ContextVar("folder_of_vectors", default=None)


@contextmanager
def vectors_in(folder: Path | None) -> Iterator[None]:
    """Let :func:`zeros` put what the calling thread asks for meanwhile into files; in memory if there is no folder."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def zeros(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return zeros that live as long as a fit: in a file of :func:`vectors_in`, if there is one."""
    folder = _folder.get()
    if folder is None or not np.prod(shape):
        return np.zeros(shape, dtype=dtype)
    with TemporaryFile(dir=folder) as file:  # without a name: gone when the last array on it is
        return np.asarray(np.memmap(file, dtype=dtype, mode="w+", shape=shape))


def in_files(array: npt.NDArray[Any]) -> bool:
    """Whether :func:`zeros` has put an array into a file."""
    return isinstance(array.base, np.memmap)


def stored(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a copy of an array where :func:`zeros` would put it."""
    copy = zeros(array.shape, array.dtype)
    copy[...] = array
    return copy
