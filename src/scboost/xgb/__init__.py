"""The only place that knows XGBoost: its document, its trees, its models."""

from __future__ import annotations

from typing import Any


def import_xgboost() -> Any:
    """Import XGBoost, or say how to get it."""
    try:
        import xgboost as xgb
    except ImportError as error:
        raise ImportError(
            "scboost grows its trees with XGBoost, which is not installed. Install one of the extras: "
            "`pip install 'scboost[cpu]'` (small, CPU only) or `pip install 'scboost[gpu]'`."
        ) from error
    return xgb
