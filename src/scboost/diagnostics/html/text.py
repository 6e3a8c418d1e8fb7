"""Numbers and names as the report writes them."""

from __future__ import annotations

import numpy as np

_LIBRARY_NAMES = {"sklearn": "scikit-learn", "xgboost": "XGBoost", "lightgbm": "LightGBM", "catboost": "CatBoost"}


def library_name(library: str) -> str:
    """Return the name of a library as its authors write it."""
    return _LIBRARY_NAMES.get(library, library)


def number(value: float) -> str:
    """Return a number with four significant digits."""
    if np.isnan(value):
        return "undefined"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def seconds(value: float) -> str:
    """Return a time with a readable unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"


def size(n_bytes: int) -> str:
    """Return a size with a readable unit."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= scale:
            return f"{n_bytes / scale:.3g} {unit}"
    return f"{n_bytes} bytes"
