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
class Outcome:
    """Predictions for samples.

    Attributes
    ----------
    predicted : ndarray of shape (n_samples,)
        Predicted class codes or values.
    probability : ndarray of shape (n_samples, n_classes) or None
        None for regression, and for classifiers whose raw score has no probability.
    ranking : ndarray of shape (n_samples,) or None
        Score of the second of two classes, for the ROC curve.
    """

    predicted: npt.NDArray[Any]
    probability: FloatArray | None = None
    ranking: FloatArray | None = None

    @classmethod
    def of_probability(cls, probability: FloatArray) -> Outcome:
        """Return the outcome of class probabilities; ties go to the first class, as in scikit-learn."""
        ranking = probability[:, 1] if probability.shape[1] == 2 else None
        return cls(np.argmax(probability, axis=1), probability, ranking)

    def value(self, k: int) -> FloatArray:
        """Return the number to be explained: the probability of class k, its score or vote, or the predicted value."""
        if self.probability is not None:
            return self.probability[:, k]
        if self.ranking is not None:
            return self.ranking if k == 1 else -self.ranking
        if self.predicted.dtype.kind == "f":
            return np.asarray(self.predicted if self.predicted.ndim == 1 else self.predicted[:, k])
        return np.asarray(self.predicted == k, np.float64)


@dataclass(frozen=True)
class Predictions:
    """Predictions for samples with known targets.

    Attributes
    ----------
    target : ndarray of shape (n_samples,)
        Class codes, or float64 values.
    predicted, probability, ranking
        As in :class:`Outcome`.
    """

    target: npt.NDArray[Any]
    predicted: npt.NDArray[Any]
    probability: FloatArray | None
    ranking: FloatArray | None

    @classmethod
    def of(cls, target: npt.NDArray[Any], outcome: Outcome) -> Predictions:
        """Return predictions together with their targets, class codes or float64 values."""
        return cls(target, outcome.predicted, outcome.probability, outcome.ranking)

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


def outcome_of_margin(trees: TreeMatrix, margin: FloatArray, *, link: str | None = None) -> Outcome:
    """Return the predictions of raw scores.

    Parameters
    ----------
    trees : TreeMatrix
        Of any samples; gives classes and link.
    margin : ndarray of shape (n_samples,) or (n_samples, K)
        Raw scores.
    link : str, optional
        Link of the raw scores, if it is not that of the trees.

    Returns
    -------
    Outcome
    """
    link = trees.link if link is None else link
    if not trees.is_classifier:
        return Outcome(margin)
    if link == "probability":
        margin = np.round(margin, 6)  # ties go to the first class, as in scikit-learn, whatever the rounding error
    if margin.ndim == 2:
        p = special.softmax(margin, axis=1) if link == "softmax" else margin
        return Outcome(np.argmax(margin, axis=1), None if link in {"vote", "other"} else p)
    if link in {"vote", "other"}:
        return Outcome((margin > 0).astype(np.intp), None, margin)
    positive = special.expit(margin) if link == "logit" else np.clip(margin, 0, 1)
    return Outcome((positive > 0.5).astype(np.intp), np.stack([1 - positive, positive], axis=1), positive)


def predict_from_margin(trees: TreeMatrix, margin: FloatArray, y: ArrayLike, *, link: str | None = None) -> Predictions:
    """Return :func:`outcome_of_margin` together with the targets y, class labels or values."""
    return Predictions.of(encode_target(trees, y), outcome_of_margin(trees, margin, link=link))


def log_odds_link(trees: TreeMatrix) -> str | None:
    """Return the link of re-weighted trees, which predict log-odds; None for regression."""
    if not trees.is_classifier:
        return None
    return "logit" if trees.n_outputs == 1 else "softmax"
