"""Array types, and the one way to go through many rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

ArrayLike = Any
FloatArray = npt.NDArray[np.floating]
IntArray = npt.NDArray[np.integer]
BoolArray = npt.NDArray[np.bool_]


def blocks(n: int, size: int = 1 << 14) -> Iterator[slice]:
    """Rows in blocks that stay in cache; their bounds do not depend on the number of threads."""
    return (slice(start, start + size) for start in range(0, n, size))
