"""Classification: ROC and precision-recall curves, confusion matrix, scores of each class and at each threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn import metrics

from scboost._arrays import FloatArray, IntArray
from scboost.diagnostics._predictions import Predictions

MAX_CLASSES = 20
"""Classes with curves at most."""
_POINTS = 150  # of a curve
_THRESHOLDS = np.linspace(0, 1, 101)


@dataclass(frozen=True)
class ClassScores:
    """One class against all others.

    Attributes
    ----------
    k : int
        Position of the class.
    support : int
        Samples of the class.
    precision, recall, f1 : float
        Of the predicted labels.
    auc, average_precision : float
        Areas under the ROC and the precision-recall curve; NaN without probabilities or if one side has no samples.
    roc, precision_recall : ndarray of shape (2, n_points)
        False and true positive rate; recall and precision.
    """

    k: int
    support: int
    precision: float
    recall: float
    f1: float
    auc: float
    average_precision: float
    roc: FloatArray
    precision_recall: FloatArray


@dataclass(frozen=True)
class Thresholds:
    """Decisions for one class at thresholds of its probability.

    Attributes
    ----------
    k : int
        Position of the class.
    threshold : ndarray of shape (n_thresholds,)
        A sample is assigned to the class if its probability is at least the threshold.
    true_positives, false_positives : ndarray of shape (n_thresholds,)
    n_positive, n_negative : int
        Samples of the class and of all others.
    """

    k: int
    threshold: FloatArray
    true_positives: IntArray
    false_positives: IntArray
    n_positive: int
    n_negative: int

    @property
    def f1(self) -> FloatArray:
        """F1 score at each threshold."""
        predicted = self.true_positives + self.false_positives
        return np.asarray(2 * self.true_positives / np.maximum(predicted + self.n_positive, 1))


@dataclass(frozen=True)
class Classification:
    """Results of a classifier.

    Attributes
    ----------
    confusion : ndarray of shape (n_classes, n_classes)
        Samples by class (rows) and predicted class (columns).
    classes : list of ClassScores
        The most frequent classes, at most 20 of them.
    thresholds : list of Thresholds
        Of the same classes; empty without probabilities.
    """

    confusion: IntArray
    classes: list[ClassScores]
    thresholds: list[Thresholds]


def evaluate_classes(predictions: Predictions, n_classes: int) -> Classification:
    """Evaluate the predictions of a classifier."""
    target, predicted = predictions.target, predictions.predicted
    confusion = metrics.confusion_matrix(target, predicted, labels=np.arange(n_classes))
    frequent = np.sort(np.argsort(-confusion.sum(axis=1), kind="stable")[:MAX_CLASSES])
    scores, thresholds = [], []
    for k in frequent.tolist():
        positive = target == k
        ranking = _ranking(predictions, k)
        scores.append(_class_scores(k, confusion, positive, ranking))
        if predictions.probability is not None:
            thresholds.append(_thresholds(k, positive, predictions.probability[:, k]))
    return Classification(confusion, scores, thresholds)


def _ranking(predictions: Predictions, k: int) -> FloatArray | None:
    if predictions.probability is not None:
        return predictions.probability[:, k]
    if predictions.ranking is None:
        return None
    return predictions.ranking if k == 1 else -predictions.ranking


def _class_scores(
    k: int, confusion: IntArray, positive: npt.NDArray[np.bool_], ranking: FloatArray | None
) -> ClassScores:
    hits, predicted, support = int(confusion[k, k]), int(confusion[:, k].sum()), int(confusion[k].sum())
    auc = area = float("nan")
    roc: FloatArray = np.empty((2, 0))
    curve: FloatArray = np.empty((2, 0))
    if ranking is not None and 0 < support < len(positive):
        false_positive, true_positive, _ = metrics.roc_curve(positive, ranking)
        precision, recall, _ = metrics.precision_recall_curve(positive, ranking)
        auc, area = metrics.auc(false_positive, true_positive), metrics.average_precision_score(positive, ranking)
        roc = _thinned(np.stack([false_positive, true_positive]))
        curve = _thinned(np.stack([recall[::-1], precision[::-1]]))
    return ClassScores(
        k=k,
        support=support,
        precision=hits / predicted if predicted else 0.0,
        recall=hits / support if support else 0.0,
        f1=2 * hits / (predicted + support) if predicted + support else 0.0,
        auc=float(auc),
        average_precision=float(area),
        roc=roc,
        precision_recall=curve,
    )


def _thinned(curve: FloatArray) -> FloatArray:
    """Return at most 150 points of a curve, its ends among them."""
    n = curve.shape[1]
    return curve if n <= _POINTS else curve[:, np.linspace(0, n - 1, _POINTS).round().astype(np.intp)]


def _thresholds(k: int, positive: npt.NDArray[np.bool_], p: FloatArray) -> Thresholds:
    hits, others = np.sort(p[positive]), np.sort(p[~positive])
    return Thresholds(
        k=k,
        threshold=_THRESHOLDS,
        true_positives=len(hits) - np.searchsorted(hits, _THRESHOLDS, side="left"),
        false_positives=len(others) - np.searchsorted(others, _THRESHOLDS, side="left"),
        n_positive=len(hits),
        n_negative=len(others),
    )
