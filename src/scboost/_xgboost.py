"""XGBoost as an optional dependency: importing it, or saying which version to install."""

from __future__ import annotations

import re
from typing import Any

# 3.0 predicts wrong means of models that are made here, and 3.1.0 wrong SHAP values for many classes.
_LOWEST, _TOO_HIGH = (3, 1, 1), (4, 0, 0)


def import_xgboost() -> Any:
    """Import XGBoost, or say how to get one that works."""
    try:
        import xgboost as xgb
    except ImportError as error:
        raise ImportError(
            "scboost grows its trees with XGBoost, which is not installed. Install one of the extras: "
            "`pip install 'scboost[cpu]'` (small, CPU only) or `pip install 'scboost[gpu]'`."
        ) from error
    if not _LOWEST <= version(xgb.__version__) < _TOO_HIGH:
        lowest, too_high = (".".join(map(str, bound)) for bound in (_LOWEST, _TOO_HIGH))
        raise ImportError(
            f"scboost needs XGBoost of at least {lowest} and below {too_high}, but {xgb.__version__} is installed. "
            f"Install one of these: `pip install 'xgboost-cpu>={lowest},<{too_high}'` (or xgboost in its place)."
        )
    return xgb


def version(text: str) -> tuple[int, ...]:
    """Numbers of a version such as "3.2.0" or "3.3.0-dev"."""
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])
