"""A communicator on XGBoost's own collective, which also grows the trees of all workers."""

from __future__ import annotations

import pickle
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray
from scboost._runtime.communicator import Communicator, WorkerError
from scboost._xgboost import import_xgboost


class CollectiveCommunicator(Communicator):
    """XGBoost's collective; to be created inside its context.

    Attributes
    ----------
    calls, numbers : int
        Number of collective calls so far, and of 8-byte values exchanged in them.
    seconds : float
        Time spent in them, including waiting for other workers.
    """

    def __init__(self) -> None:
        collective = import_xgboost().collective
        self._collective = collective
        self.rank, self.size = collective.get_rank(), collective.get_world_size()
        self.calls = self.numbers = 0
        self.seconds = 0.0

    def sum(self, values: FloatArray) -> FloatArray:
        """Return sums; see :class:`Communicator`."""
        return self._reduce(np.asarray(values, dtype=np.float64), self._collective.Op.SUM)

    def max(self, values: FloatArray) -> FloatArray:
        """Return maxima; see :class:`Communicator`."""
        return self._reduce(np.asarray(values, dtype=np.float64), self._collective.Op.MAX)

    def gather(self, value: Any) -> list[Any]:
        """Gather values by pickle, since the workers of a fit trust each other; see :class:`Communicator`."""
        data = np.frombuffer(pickle.dumps(value), dtype=np.uint8)
        lengths = np.zeros(self.size)
        lengths[self.rank] = len(data)
        ends = np.cumsum(self.sum(lengths)).astype(np.intp)
        joined = np.zeros(ends[-1], dtype=np.uint8)
        joined[ends[self.rank] - len(data) : ends[self.rank]] = data
        joined = self._reduce(joined, self._collective.Op.BITWISE_OR)
        return [pickle.loads(part.tobytes()) for part in np.split(joined, ends[:-1])]  # noqa: S301 - from our own workers

    def _reduce(self, values: npt.NDArray[Any], op: Any) -> npt.NDArray[Any]:
        begin = time.perf_counter()
        result = self._collective.allreduce(values, op).reshape(values.shape)
        self.calls += 1
        self.numbers += -(-values.nbytes // 8)
        self.seconds += time.perf_counter() - begin
        return np.asarray(result)


def lost_worker(error: Exception) -> str | None:
    """Return a message about a lost worker; None if the error has another cause.

    XGBoost lists causes line by line, each with a location in its source; the innermost comes last.
    """
    if isinstance(error, WorkerError):
        return str(error)
    if "/collective/" not in str(error):
        return None
    reasons = re.findall(r"^- \[[^\]]*\]: (.*)$", str(error), re.MULTILINE)
    return f"Another worker no longer responds: {reasons[-1] if reasons else 'connection lost'}."


@contextmanager
def tracking(n_workers: int, host: str, timeout: int) -> Iterator[dict[str, Any]]:
    """Start a tracker that connects workers.

    Parameters
    ----------
    n_workers : int
        Number of workers.
    host : str
        Address of this process as the workers see it.
    timeout : int
        Seconds that a worker waits for the others.

    Yields
    ------
    dict
        Arguments of :func:`joined` except the number of the worker, which determines its rank.
    """
    xgb = import_xgboost()
    tracker = xgb.tracker.RabitTracker(n_workers=n_workers, host_ip=host, sortby="task")
    tracker.start()
    try:
        yield {**tracker.worker_args(), "dmlc_timeout": timeout}
    finally:
        with suppress(xgb.core.XGBoostError):  # it raises an error if workers were lost
            tracker.free()


@contextmanager
def joined(arguments: dict[str, Any]) -> Iterator[CollectiveCommunicator]:
    """Connect to the workers of a tracker.

    Parameters
    ----------
    arguments : dict
        Those of :func:`tracking`, with the number of this worker as ``dmlc_task_id``.
    """
    xgb = import_xgboost()
    with xgb.config_context(verbosity=0), ExitStack() as group:
        group.enter_context(xgb.collective.CommunicatorContext(**arguments))
        try:
            yield CollectiveCommunicator()
        except BaseException:
            with suppress(xgb.core.XGBoostError):  # an error while disconnecting must not hide the original error
                group.close()
            raise
