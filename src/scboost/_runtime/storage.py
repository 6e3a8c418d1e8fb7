"""Storage of the long vectors of a fit: memory or temporary files."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import numpy.typing as npt


class Storage:
    """Allocates arrays that live as long as a fit.

    Parameters
    ----------
    folder : Path, optional
        Folder for memory-mapped temporary files; in memory if not given.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an array of zeros."""
        if self._folder is None or not np.prod(shape):
            return np.zeros(shape, dtype=dtype)
        with TemporaryFile(dir=self._folder) as file:  # unlinked: deleted with the last array that maps it
            return np.asarray(np.memmap(file, dtype=dtype, mode="w+", shape=shape))

    def stored(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a copy of an array."""
        copy = self.zeros(array.shape, array.dtype)
        copy[...] = array
        return copy


IN_MEMORY = Storage()
"""Arrays in memory."""
