"""Compiled kernels: binning, tree growth, prediction and SHAP values without XGBoost.

The kernels are C++17 with nanobind, built by CMake (``make native`` in a checkout, scikit-build-core in ``pip
install``). Why C++ and not Cython: the inner loops are templates that are compiled once for each number of features in
a group, each kind of penalty and each kind of matrix, which Cython has no means for; nanobind checks types and shapes
of arrays in one line, releases the GIL explicitly and makes one small binary for all versions of Python from 3.12 on.
No instruction beyond the baseline of the platform is used, and products and sums are not contracted: results are the
same on every processor, and bit-identical for any number of threads.

The package works without the compiled module; :func:`is_available` returns whether it is installed.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from scboost._runtime.threads import thread_count

if TYPE_CHECKING:
    from ._native import Pool

MISSING = (
    "The compiled kernels of scboost are not installed. Install a wheel, or install from source where a C++17 compiler "
    "is present (in a checkout: `make native`); or use engine='xgboost'."
)


_THREADED = 1 << 18  # trees times samples from which it pays to start threads


@cache
def is_available() -> bool:
    """Whether the compiled module is installed."""
    return find_spec("scboost._engine.native._native") is not None


def pool_for(n_jobs: int, work: int) -> Pool | None:
    """Return threads for a prediction, ``n_jobs`` or all for 0; None if it is not worth it.

    Parameters
    ----------
    n_jobs : int
        Number of threads; 0 for all.
    work : int
        Number of trees times samples.
    """
    n_threads = thread_count(n_jobs) if work >= _THREADED else 1
    if n_threads < 2:
        return None
    from ._native import Pool

    return Pool(n_threads)
