"""Work on blocks of samples, on several threads where that helps.

Block boundaries do not depend on the number of threads, and results are combined in the order of the blocks: sums are
bit-identical for any number of threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any, TypeVar

import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from scboost._arrays import blocks

_P = TypeVar("_P")
_T = TypeVar("_T")

# Samples of a block, of which a dozen vectors stay in cache. With many samples blocks are larger: the time between two
# blocks, when other threads hold Python's lock, then matters less.
_BLOCK, _LARGE_BLOCK, _MANY = 1 << 14, 1 << 16, 1 << 18
# Samples and threads from which threads help. With fewer samples they wait for Python's lock longer than they work; and
# of two cores, one is occupied by an OpenMP thread of XGBoost that spins for some milliseconds after a tree.
_THREADED, _FEWEST_THREADS = 1 << 18, 3
_COMPILED = 1 << 16  # samples from which a fit is worth the time that it takes to load Numba


def thread_count(n_jobs: int) -> int:
    """Return the number of threads: ``n_jobs``, or for 0 the cores of this process, limited as OpenMP is."""
    if n_jobs:
        return n_jobs
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(limit)) if limit.isdigit() and int(limit) else cores


def load_kernels(n_samples: int) -> ModuleType | None:
    """Return :mod:`scboost._kernels` if there are enough samples to be worth it and Numba is installed."""
    if n_samples >= _COMPILED:
        # Numba may be missing, incompatible with this version of NumPy, or without a folder for its cache.
        with suppress(ImportError, RuntimeError):
            from scboost import _kernels

            return _kernels
    return None


class Threads:
    """Threads and compiled kernels for passes over the samples. Idle threads sleep.

    Parameters
    ----------
    n_threads : int, default=1
        Number of threads, the calling one included.
    kernels : module, optional
        :mod:`scboost._kernels`, see :func:`load_kernels`; NumPy is used without it, with bit-identical results.

    Attributes
    ----------
    n_threads : int
        Number of threads.
    passes : module or None
        :mod:`scboost._engine.native.passes`, set for fits with the native engine.
    """

    def __init__(self, n_threads: int = 1, kernels: ModuleType | None = None) -> None:
        self.n_threads, self._kernels = n_threads, kernels
        self.passes: ModuleType | None = None
        self._pool: ThreadPoolExecutor | None = None

    def kernels(self, leaf: npt.NDArray[Any] | None = None) -> Any:
        """Return the compiled kernels, or None if there are none, or none for the dtype of these leaf indices."""
        kernels = self._kernels
        return kernels if kernels is None or leaf is None or leaf.dtype in kernels.LEAF_TYPES else None

    def load_kernels(self, n_samples: int) -> None:
        """Load the compiled kernels if there are enough samples."""
        self._kernels = self._kernels or load_kernels(n_samples)

    def use_passes(self, passes: ModuleType) -> None:
        """Use the passes of the native engine, with any number of threads: their sums are rounded differently."""
        self.passes = passes

    def map_blocks(self, function: Callable[[slice], _T], n: int, size: int | None = None) -> list[_T]:
        """Call a function for every block of samples.

        Parameters
        ----------
        function : callable
            Takes the slice of a block and writes to that slice of arrays only. NumPy releases Python's lock meanwhile.
        n : int
            Number of samples.
        size : int, optional
            Samples of a block; by default it depends on the number of samples.

        Returns
        -------
        list
            One result per block, in the order of the blocks.
        """
        size = size or (_LARGE_BLOCK if n >= _MANY else _BLOCK)
        if 0 < n <= size:
            return [function(slice(0, n))]
        return self.map_parts(function, blocks(n, size), n)

    def map_parts(self, function: Callable[[_P], _T], parts: Iterable[_P], n: int) -> list[_T]:
        """Call a function for every part of n samples, in whatever way they are split."""
        if self.n_threads < _FEWEST_THREADS or n < _THREADED:
            return [function(part) for part in parts]
        return self._map(function, list(parts))

    def _map(self, function: Callable[[_P], _T], parts: list[_P]) -> list[_T]:
        """Let all threads, the calling one among them, take the parts in turn."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_threads - 1, thread_name_prefix="scboost-samples")
        results: list[Any] = [None] * len(parts)
        left = iter(range(len(parts)))

        def work() -> None:
            for i in left:
                results[i] = function(parts[i])

        helpers = [self._pool.submit(work) for _ in range(min(self.n_threads, len(parts)) - 1)]
        try:
            work()
        finally:
            # Helpers that have not started find nothing left to do: do not wait for a core that XGBoost occupies.
            started = [helper for helper in helpers if not helper.cancel()]
            wait(started)
        for helper in started:
            helper.result()
        return results

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


SERIAL = Threads()
"""One thread, NumPy only."""


class _SingleThreadedBlas:
    """Limits BLAS to one thread while at least one fit, in any thread of the process, is running."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fits = 0
        self._controller: ThreadpoolController | None = None
        self._limit: Any = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._fits == 0:
                # Finding the loaded libraries takes milliseconds: once is enough.
                self._controller = self._controller or ThreadpoolController()
                self._limit = self._controller.limit(limits=1, user_api="blas")
            self._fits += 1
        try:
            yield
        finally:
            with self._lock:
                self._fits -= 1
                if self._fits == 0:
                    self._limit.restore_original_limits()


# The limit belongs to the process, and so does this count. The projections are bound by memory bandwidth, and a sum
# split over threads would depend on their number.
single_threaded_blas = _SingleThreadedBlas()
