"""A target in the terms of an ensemble's trees: class numbers or real values, and the score of margins against it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray
from scboost.diagnostics._tree_matrix import TreeMatrix


def check_length(y: npt.ArrayLike, n: int) -> npt.NDArray[Any]:
    """Return y as an array with one value for each of n rows, or say that it is none."""
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y must have shape ({n},), one value per row of X; got {y.shape}.")
    return y


def encode_target(trees: TreeMatrix, y: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return y as class numbers (classification) or as float64 (regression), or say what is wrong with it."""
    y = check_length(y, len(trees.H))
    if trees.classes is not None:
        codes = np.searchsorted(trees.classes, y).clip(0, len(trees.classes) - 1)
        unknown = y[trees.classes[codes] != y]
        if len(unknown):
            raise ValueError(f"y has the label {unknown.tolist()[0]!r}; the model knows {trees.classes.tolist()}.")
        return codes
    if trees.link in {"logit", "softmax"}:
        n_classes = max(2, trees.n_outputs)
        if not np.all(np.isin(y, np.arange(n_classes))):
            raise ValueError(f"y must hold the class numbers 0 .. {n_classes - 1}, got {np.unique(y)[:5]}.")
        return y.astype(np.intp)
    if trees.link not in {"identity", "quantile"} or trees.n_outputs > 1:
        raise ValueError("y cannot be compared with this model's trees: its margin is not on the scale of y.")
    values = y.astype(np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"y must be finite, got {values[~np.isfinite(values)][0]}.")
    return values


def outcome(trees: TreeMatrix, F: FloatArray, target: npt.NDArray[Any]) -> float:
    """Return the number of rows that margins F get right, or their sum of squared errors for a real target."""
    if target.dtype.kind == "f":
        return float(np.sum((target - F) ** 2))
    if trees.n_outputs > 1:
        return float(np.sum(np.argmax(F, axis=1) == target))
    threshold = 0.5 if trees.link == "probability" else 0.0
    return float(np.sum((threshold < F) == (target == 1)))


def score(trees: TreeMatrix, outcomes: FloatArray, n: int, scatter: float) -> FloatArray:
    """Return outcomes of n rows as accuracies or R^2, with the target's sum of squares about its mean.

    R^2 of a constant target is NaN.
    """
    return outcomes / n if trees.classifies else 1 - outcomes / (scatter if scatter > 0 else np.nan)
