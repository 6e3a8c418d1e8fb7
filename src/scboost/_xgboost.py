"""XGBoost as an optional dependency: importing it, or saying which version to install."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

# 3.0 predicts wrong means of models that are made here, and 3.1.0 wrong SHAP values for many classes.
_LOWEST, _TOO_HIGH = (3, 1, 1), (4, 0, 0)


def import_xgboost() -> Any:
    """Import XGBoost, or say how to get one that works."""
    try:
        import xgboost as xgb
    except ImportError as error:
        raise ImportError(
            "This needs XGBoost, which is not installed. Install one of the extras: "
            "`pip install 'scboost[cpu]'` (small, CPU only) or `pip install 'scboost[gpu]'`. Fits in memory on one "
            "machine, predictions, files and diagnostics work without it where the compiled kernels are installed."
        ) from error
    if not _LOWEST <= version(xgb.__version__) < _TOO_HIGH:
        lowest, too_high = (".".join(map(str, bound)) for bound in (_LOWEST, _TOO_HIGH))
        raise ImportError(
            f"scboost needs XGBoost of at least {lowest} and below {too_high}, but {xgb.__version__} is installed. "
            f"Install one of these: `pip install 'xgboost-cpu>={lowest},<{too_high}'` (or xgboost in its place)."
        )
    return xgb


_forked_after_import = False


def _note_fork() -> None:
    global _forked_after_import  # noqa: PLW0603 - a fact about this process
    _forked_after_import = _forked_after_import or "xgboost" in sys.modules


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def usable_threads(n_threads: int) -> int:
    """Return the number of threads that XGBoost may use; 0 means all.

    It is 1 in the child of a fork, because the OpenMP threads of the parent do not exist there and XGBoost would wait
    for them forever. Results do not depend on it.
    """
    return 1 if _forked_after_import else n_threads


def installed_version() -> str:
    """Return the version of XGBoost; empty if it is not installed."""
    try:
        import xgboost as xgb
    except ImportError:
        return ""
    return str(xgb.__version__)


def version(text: str) -> tuple[int, ...]:
    """Numbers of a version such as "3.2.0" or "3.3.0-dev"."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])
