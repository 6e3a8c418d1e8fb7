"""Predictions computed from the raw score of the trees.

Boosters without ``predict_proba``, truncated ensembles and pruned ones are thereby evaluated in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from scboost._arrays import ArrayLike, FloatArray
from scboost.diagnostics._target import encode_target
from scboost.diagnostics._tree_matrix import TreeMatrix

_MIN_PROBABILITY = float(np.finfo(np.float64).eps)  # keeps the log-loss finite, as in scikit-learn


@dataclass(frozen=True)
class Predictions:
    """Predictions for samples with known targets.

    Attributes
    ----------
    target : ndarray of shape (n_samples,)
        Class codes, or float64 values.
    predicted : ndarray of shape (n_samples,)
        Predicted class codes or values.
    probability : ndarray of shape (n_samples, n_classes) or None
        None for regression, and for classifiers whose raw score has no probability.
    ranking : ndarray of shape (n_samples,) or None
        Score of the second of two classes, for the ROC curve.
    """

    target: npt.NDArray[Any]
    predicted: npt.NDArray[Any]
    probability: FloatArray | None
    ranking: FloatArray | None

    @property
    def is_classifier(self) -> bool:
        """Whether the targets are classes."""
        return bool(self.target.dtype.kind != "f")

    @property
    def loss_name(self) -> str:
        """Name of the loss."""
        if not self.is_classifier:
            return "squared error"
        return "error rate" if self.probability is None else "log-loss"

    def pointwise_loss(self) -> FloatArray:
        """Return the loss of each sample."""
        if not self.is_classifier:
            return np.asarray((self.target - self.predicted) ** 2)
        if self.probability is None:
            return np.asarray(self.target != self.predicted, np.float64)
        p = self.probability[np.arange(len(self.target)), self.target]
        return np.asarray(-np.log(np.clip(p, _MIN_PROBABILITY, 1)))

    @property
    def score_name(self) -> str:
        """Name of the score."""
        return "accuracy" if self.is_classifier else "R2"

    def score(self) -> float:
        """Return the accuracy or R^2; R^2 of a constant target is NaN."""
        if self.is_classifier:
            return float(np.mean(self.target == self.predicted))
        variance = float(np.var(self.target))
        return float(1 - self.pointwise_loss().mean() / variance) if variance > 0 else float("nan")


def predict_from_margin(trees: TreeMatrix, margin: FloatArray, y: ArrayLike, *, link: str | None = None) -> Predictions:
    """Return the predictions of raw scores.

    Parameters
    ----------
    trees : TreeMatrix
        Of the samples; gives classes and link.
    margin : ndarray of shape (n_samples,) or (n_samples, K)
        Raw scores.
    y : array-like of shape (n_samples,)
        Class labels or values.
    link : str, optional
        Link of the raw scores, if it is not that of the trees.

    Returns
    -------
    Predictions
    """
    target = encode_target(trees, y)
    link = trees.link if link is None else link
    if target.dtype.kind == "f":
        return Predictions(target, margin, None, None)
    if link == "probability":
        margin = np.round(margin, 6)  # ties go to the first class, as in scikit-learn, whatever the rounding error
    if margin.ndim == 2:
        p = special.softmax(margin, axis=1) if link == "softmax" else margin
        return Predictions(target, np.argmax(margin, axis=1), None if link in {"vote", "other"} else p, None)
    if link in {"vote", "other"}:
        return Predictions(target, (margin > 0).astype(np.intp), None, margin)
    positive = special.expit(margin) if link == "logit" else np.clip(margin, 0, 1)
    probability = np.stack([1 - positive, positive], axis=1)
    return Predictions(target, (positive > 0.5).astype(np.intp), probability, positive)


def log_odds_link(trees: TreeMatrix) -> str | None:
    """Return the link of re-weighted trees, which predict log-odds; None for regression."""
    if not trees.is_classifier:
        return None
    return "logit" if trees.n_outputs == 1 else "softmax"
