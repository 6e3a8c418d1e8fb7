"""Array types, and matrices that are not in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

ArrayLike = Any
FloatArray = npt.NDArray[np.floating]  # float32 or float64
Float64Array = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer]
BoolArray = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.uint64]


def blocks(n: int, size: int = 1 << 14) -> Iterator[slice]:
    """Yield blocks of samples, of which a dozen vectors stay in cache."""
    return (slice(start, start + size) for start in range(0, n, size))


class Paged(ABC):
    """A matrix of samples of which one batch is in memory at a time.

    Attributes
    ----------
    shape : tuple of (n, d)
        Number of samples and features.
    folder : Path
        Folder for temporary files.
    """

    shape: tuple[int, int]
    folder: Path

    @abstractmethod
    def __iter__(self) -> Iterator[Any]:
        """Iterate over the batches, dense or CSR matrices; every pass yields the same ones."""


def take_columns(X: Any, columns: IntArray) -> Any:
    """Return some columns of a matrix; the result is in memory, also if the matrix is paged."""
    if not isinstance(X, Paged):
        return X[:, columns]
    parts = [part[:, columns] for part in X]
    return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)
