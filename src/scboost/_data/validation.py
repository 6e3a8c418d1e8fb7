"""Checks of feature values and targets that hold for every form of input."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import column_or_1d

from scboost._arrays import ArrayLike
from scboost._data.tables import is_missing


def check_size(matrix: Any, name: str = "X") -> None:
    """Reject values that XGBoost's bins cannot represent."""
    values = matrix.data if hasattr(matrix, "indptr") else matrix
    largest = max(
        float(np.fmax.reduce(values, axis=None, initial=0)), -float(np.fmin.reduce(values, axis=None, initial=0))
    )
    limit = (
        float(np.finfo(np.float32).max) / 2
    )  # XGBoost places the upper edge of a feature's last bin at twice the largest value
    if largest > limit:
        raise ValueError(
            f"{name} has a value of size {largest:.3g}; trees support values up to {limit:.3g}; rescale it."
        )


def refuse_masked(**given: ArrayLike | None) -> None:
    """Reject masked arrays, whose masks NumPy's conversions would drop; the names are those of the arguments."""
    for name, values in given.items():
        if isinstance(values, np.ma.MaskedArray):
            raise TypeError(f"{name} is a masked array, whose mask would be ignored; remove the masked samples first.")


def target_vector(y: ArrayLike | None, X: Any, name: str = "y") -> npt.NDArray[Any]:
    """Return a one-dimensional target of the length of X, without missing values."""
    if y is None:
        raise ValueError(f"This estimator requires {name} to be passed, but the target {name} is None.")
    try:
        y = column_or_1d(y, warn=True)
    except ValueError as error:
        if "should be a 1d array" not in str(error):
            raise
        raise ValueError(
            f"{error} Several targets are supported by SCBoostRegressor and SCBoostClassifier in memory; otherwise "
            "fit one model per column."
        ) from error
    if len(y) != X.shape[0]:
        raise ValueError(f"{name} has {len(y)} entries but X has {X.shape[0]} samples.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"Input {name} contains NaN or infinity; every sample needs a finite target.")
    if y.dtype.kind in "mM" and np.isnat(y).any():
        raise ValueError(f"Input {name} contains NaT; every sample needs a target.")
    if y.dtype.kind == "O" and any(is_missing(v) for v in y):
        raise ValueError(f"Input {name} contains NaN or None; every sample needs a label.")
    return np.asarray(y)
