"""Work on blocks of samples, on several threads where that helps.

Block boundaries do not depend on the number of threads, and results are combined in the order of the blocks: sums are
bit-identical for any number of threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import ModuleType
from typing import Any, TypeVar

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


_SIDE_BY_SIDE = 50_000  # feature values from which growing a tree, without Python's lock, outweighs the rest of a round


def thread_count(n_jobs: int) -> int:
    """Return the number of threads: ``n_jobs``, or for 0 the cores of this process, limited as OpenMP is."""
    if n_jobs:
        return n_jobs
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(limit)) if limit.isdigit() and int(limit) else cores


class Threads:
    """Threads for passes over the samples. Idle threads sleep.

    Parameters
    ----------
    n_threads : int, default=1
        Number of threads, the calling one included.

    Attributes
    ----------
    n_threads : int
        Number of threads.
    passes : module or None
        :mod:`scboost._engine.native.passes`, set for fits with the native engine; NumPy is used without it.
    native_pool : Pool or None
        Threads of the compiled kernels; None for one thread.
    """

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self.passes: ModuleType | None = None
        self.native_pool: Any = None
        self._pool: ThreadPoolExecutor | None = None

    def use_passes(self, passes: ModuleType) -> None:
        """Use the passes of the native engine, with any number of threads: their sums are rounded differently."""
        self.passes = passes
        self.native_pool = passes.Pool(self.n_threads) if self.n_threads > 1 else None

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

    def map_models(self, function: Callable[[_P], _T], models: Sequence[_P], n_values: int) -> list[_T]:
        """Call a function for every model, side by side if the native engine grows them on that many feature values."""
        if self.n_threads < 2 or len(models) < 2 or self.passes is None or n_values < _SIDE_BY_SIDE:
            return [function(model) for model in models]
        return self._map(function, list(models))

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
            # Threads that have not started have nothing left to do: do not wait for a core that XGBoost occupies.
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
    """Limits BLAS to one thread while at least one caller, in any thread of the process, is active.

    The matrices are small. If another process keeps a core busy, waiting for a second thread costs far more time than
    it saves; and a sum split over threads would depend on their number. The limit applies to the whole process, and
    callers are counted for the whole process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callers = 0
        self._controller: ThreadpoolController | None = None
        self._limit: Any = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._callers == 0:
                # Finding the loaded libraries takes milliseconds: once is enough.
                self._controller = self._controller or ThreadpoolController()
                self._limit = self._controller.limit(limits=1, user_api="blas")
            self._callers += 1
        try:
            yield
        finally:
            with self._lock:
                self._callers -= 1
                if self._callers == 0:
                    self._limit.restore_original_limits()


single_threaded_blas = _SingleThreadedBlas()
