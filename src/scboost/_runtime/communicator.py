"""Communication between the workers of a distributed fit.

All workers run the same loop on their own samples and make the same collective calls in the same order. They exchange
only small arrays: sums and maxima over all samples, and now and then a short message.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from scboost._arrays import FloatArray


class WorkerError(RuntimeError):
    """Another worker failed."""


class Communicator(ABC):
    """Collective operations of the workers that share a fit.

    Attributes
    ----------
    rank : int
        Index of this worker, from 0.
    size : int
        Number of workers.
    round : int
        Current boosting round, for error messages; 0 before the first.
    """

    rank: int = 0
    size: int = 1
    round: int = 0

    @abstractmethod
    def sum(self, values: FloatArray) -> FloatArray:
        """Return the sums over the workers, of the shape given, in float64."""

    @abstractmethod
    def max(self, values: FloatArray) -> FloatArray:
        """Return the maxima over the workers, of the shape given, in float64."""

    @abstractmethod
    def gather(self, value: Any) -> list[Any]:
        """Return the values of all workers, in the order of their ranks."""

    def sum_all(self, *arrays: FloatArray) -> list[FloatArray]:
        """Return the sums of several arrays with one collective call."""
        parts = [np.asarray(array, dtype=np.float64) for array in arrays]
        sums = self.sum(np.concatenate([part.ravel() for part in parts]))
        ends = np.cumsum([part.size for part in parts])
        return [sums[end - part.size : end].reshape(part.shape) for part, end in zip(parts, ends, strict=True)]


class SingleProcess(Communicator):
    """A fit without other workers: every operation returns its argument."""

    def sum(self, values: FloatArray) -> FloatArray:
        """Return the values."""
        return values

    def max(self, values: FloatArray) -> FloatArray:
        """Return the values."""
        return values

    def gather(self, value: Any) -> list[Any]:
        """Return a list of the value."""
        return [value]

    def sum_all(self, *arrays: FloatArray) -> list[FloatArray]:
        """Return the arrays."""
        return list(arrays)


SINGLE_PROCESS = SingleProcess()
"""The communicator of a fit in one process."""


@contextmanager
def agreed(communicator: Communicator) -> Iterator[None]:
    """Propagate exceptions to all workers to avoid a deadlock.

    The body must not make collective calls.
    """
    if communicator.size == 1:
        yield
        return
    problem: Exception | None = None
    try:
        yield
    except Exception as error:  # noqa: BLE001 - raised again below
        problem = error
    errors = communicator.gather(None if problem is None else (type(problem), str(problem)))
    if problem is not None:
        raise problem
    for rank, other in enumerate(errors):
        if other is not None:
            kind, text = other
            raise kind(text) if kind in (ValueError, TypeError) else WorkerError(f"Worker {rank}: {text}")
