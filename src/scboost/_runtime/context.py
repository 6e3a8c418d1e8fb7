"""The context of a fit."""

from __future__ import annotations

from dataclasses import dataclass

from scboost._runtime.communicator import SINGLE_PROCESS, Communicator
from scboost._runtime.observer import SILENT, Observer
from scboost._runtime.storage import IN_MEMORY, Storage
from scboost._runtime.threads import SERIAL, Threads


@dataclass(frozen=True)
class Context:
    """Resources of a fit, passed explicitly to everything that needs them.

    Attributes
    ----------
    communicator : Communicator
        The other workers of a distributed fit.
    threads : Threads
        Threads for passes over the samples.
    storage : Storage
        Storage of long vectors.
    observer : Observer
        Notified of models and rounds.
    """

    communicator: Communicator = SINGLE_PROCESS
    threads: Threads = SERIAL
    storage: Storage = IN_MEMORY
    observer: Observer = SILENT

    @property
    def n_threads(self) -> int:
        """Number of threads."""
        return self.threads.n_threads
