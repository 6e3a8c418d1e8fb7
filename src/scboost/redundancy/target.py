"""A target in the terms of an ensemble's trees: class numbers or real values, and the score of margins against it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray
from scboost.redundancy.tree_matrix import TreeMatrix


def encode_target(trees: TreeMatrix, y: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return y as class numbers (classification) or as float64 (regression), or say what is wrong with it."""
    y = np.asarray(y)
    if y.shape != (len(trees.H),):
        raise ValueError(f"y must have shape ({len(trees.H)},), one value per row of X; got {y.shape}.")
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
        raise ValueError(f"y must be finite, got {values[~np.isfinite(values)][0]!r}.")
    return values


def score(trees: TreeMatrix, F: FloatArray, target: npt.NDArray[Any]) -> float:
    """Return the accuracy of margins F, or their R^2 for a real target (NaN if that is constant)."""
    if target.dtype.kind == "f":
        variance = np.var(target)
        return float(1 - np.mean((target - F) ** 2) / variance) if variance > 0 else float("nan")
    if trees.n_outputs > 1:
        return float(np.mean(np.argmax(F, axis=1) == target))
    threshold = 0.5 if trees.link == "probability" else 0.0
    return float(np.mean((threshold < F) == (target == 1)))
