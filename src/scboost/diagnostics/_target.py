"""The target of an ensemble: class codes or real values, checked, and the score of raw scores against it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray
from scboost.diagnostics._tree_matrix import TreeMatrix

_SHOWN_CLASSES = 10


def check_length(y: npt.ArrayLike, n: int) -> npt.NDArray[Any]:
    """Return y as an array of shape (n,), or raise an error that names its shape."""
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y must have shape ({n},), one value per sample of X; got {y.shape}.")
    return y


def encode_target(trees: TreeMatrix, y: npt.ArrayLike, n: int | None = None) -> npt.NDArray[Any]:
    """Return y as class codes (classification) or as float64 (regression).

    Parameters
    ----------
    trees : TreeMatrix
        Gives classes and link.
    y : array-like of shape (n,)
        Class labels or values.
    n : int, optional
        Number of samples, if it is not that of the tree matrix.

    Raises
    ------
    ValueError
        If y has another length than X, labels that are missing or that the model does not know, values that are not
        finite numbers, or if the raw score of the model is not on the scale of y.
    """
    has_classes = trees.classes is not None or trees.link in {"logit", "softmax"}
    if not has_classes and (trees.link not in {"identity", "quantile"} or trees.n_outputs > 1):
        raise ValueError("y cannot be compared with this model's trees: its raw score is not on the scale of y.")
    y = check_length(y, len(trees.H) if n is None else n)
    if trees.classes is not None:
        return _encode_labels(y, np.asarray(trees.classes))
    if has_classes:  # a booster without labels
        return _encode_labels(y, np.arange(max(2, trees.n_outputs)))
    try:
        values = y.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"y must hold numbers for a regression model, got {_first_text(y)!r}.") from None
    if not np.isfinite(values).all():
        raise ValueError(f"y must be finite, got {values[~np.isfinite(values)][0]}.")
    return values


def _encode_labels(y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return the position of each label among the classes; labels of different types are never compared by order."""
    if any(y.dtype.kind in kinds and classes.dtype.kind in kinds for kinds in ("biuf", "U")):
        order = np.argsort(classes)
        found = order[np.searchsorted(classes, y, sorter=order).clip(0, len(classes) - 1)]
        codes: npt.NDArray[np.intp] = np.where(classes[found] == y, found, -1)
    else:
        known = {label: code for code, label in enumerate(classes.tolist())}
        codes = np.array([known.get(label, -1) if _is_hashable(label) else -1 for label in y.tolist()], dtype=np.intp)
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        label = y[unknown[0]].item() if isinstance(y[unknown[0]], np.generic) else y[unknown[0]]
        if _is_missing(label):
            raise ValueError(f"y has a missing label ({label!r}); remove the samples without a label.")
        shown = ", ".join(map(repr, classes[:_SHOWN_CLASSES].tolist())) + (", ..." * (len(classes) > _SHOWN_CLASSES))
        raise ValueError(
            f"y has the label {label!r}, which is not a class of the model ({shown}); remove such samples, or use "
            "labels of the type the model was fitted with."
        )
    return codes


def _is_hashable(label: object) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True


def _is_missing(label: object) -> bool:
    if isinstance(label, float):
        return bool(np.isnan(label))
    return label is None or type(label).__name__ in {"NAType", "NaTType"}  # pandas, which may not be installed


def _first_text(y: npt.NDArray[Any]) -> object:
    """Return the first value that is not a number."""
    for value in y.tolist():
        try:
            float(value)
        except (TypeError, ValueError):
            return value
    return y[0]


def outcome(trees: TreeMatrix, F: FloatArray, target: npt.NDArray[Any]) -> float:
    """Return the number of correct predictions of raw scores F, or their sum of squared errors for a real target."""
    if target.dtype.kind == "f":
        return float(np.sum((target - F) ** 2))
    if trees.n_outputs > 1:
        return float(np.sum(np.argmax(F, axis=1) == target))
    threshold = 0.5 if trees.link == "probability" else 0.0
    return float(np.sum((threshold < F) == (target == 1)))


def score(trees: TreeMatrix, outcomes: FloatArray, n: int, scatter: float) -> FloatArray:
    """Return outcomes of n samples as accuracies or R^2, given the target's sum of squares about its mean.

    R^2 of a constant target is NaN.
    """
    return outcomes / n if trees.is_classifier else 1 - outcomes / (scatter if scatter > 0 else np.nan)
