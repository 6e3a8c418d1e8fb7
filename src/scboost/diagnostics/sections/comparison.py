"""Comparison of the model with a constant prediction, and with a second model on the same samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from scboost.diagnostics._predictions import Outcome, Predictions
from scboost.diagnostics._scores import Score, compute_scores, score_differences
from scboost.diagnostics._subject import Predictor, ProbabilityPredictor, Subject, unwrap
from scboost.diagnostics.sections.cost import Cost, measure_cost


@dataclass(frozen=True)
class ScoreDifference:
    """A score of two models on the same samples.

    Attributes
    ----------
    score, other : Score
        Of the model and of the second one.
    low, high : float
        95 % bootstrap confidence interval of ``score.value - other.value``, on the same resamples.
    """

    score: Score
    other: Score
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Whether the model is "better" or "worse" than the second one, or "no significant difference"."""
        if self.low <= 0 <= self.high or np.isnan(self.low):
            return "no significant difference"
        return "better" if (self.low > 0) == self.score.higher_is_better else "worse"


@dataclass(frozen=True)
class Comparison:
    """Comparison with a second model.

    Attributes
    ----------
    name : str
        Class name of the second model.
    n_trees : int or None
        Its trees per output; None if it is no tree ensemble.
    scores : list of ScoreDifference
    agreement : float
        Share of samples with the same predicted class, or correlation of the predictions of regression models.
    cost : Cost
    """

    name: str
    n_trees: int | None
    scores: list[ScoreDifference]
    agreement: float
    cost: Cost


def constant_predictions(predictions: Predictions, n_classes: int, y_train: npt.NDArray[Any] | None) -> Predictions:
    """Return the best constant prediction: class frequencies or the mean, of training targets if there are any.

    Parameters
    ----------
    predictions : Predictions
        Gives the targets.
    n_classes : int
        Number of classes; 0 for regression.
    y_train : ndarray, optional
        Class codes or values of the training samples.

    Returns
    -------
    Predictions
    """
    target = predictions.target
    known = target if y_train is None else y_train
    n = len(target)
    if not predictions.is_classifier:
        return Predictions.of(target, Outcome(np.full(n, known.mean(dtype=np.float64))))
    shares = np.bincount(known, minlength=n_classes) / len(known)
    found = Outcome.of_probability(np.tile(shares, (n, 1)))
    if predictions.probability is None:  # scored by accuracy and AUC only
        found = Outcome(found.predicted, None, found.ranking)
    return Predictions.of(target, found)


def compare_models(
    subject: Subject, predictions: Predictions, other: object, X: Any, *, seed: int, measure_speed: bool
) -> Comparison:
    """Score a second model on the same samples.

    Parameters
    ----------
    subject : Subject
        The model of the report.
    predictions : Predictions
        Its predictions.
    other : object
        A fitted model of any kind: a tree ensemble, or an estimator with ``predict`` or ``predict_proba``.
    X : array-like or table
        The samples.
    seed : int
        Seed of the bootstrap.
    measure_speed : bool
        Whether to measure the time of predictions.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If the second model has other classes.
    TypeError
        If it cannot predict the same kind of target.
    """
    n_trees = None
    try:
        found = unwrap(other)
        n_trees = len(found.reader.column_weights) // len(found.reader.intercepts)
        outcome = found.outcome(X)
        _check_classes(subject, found.reader.classes)
    except TypeError:
        outcome = _predict(subject, other, X)
    if (outcome.predicted.dtype.kind == "f") == predictions.is_classifier:
        raise TypeError(f"compare is a {type(other).__name__}, which does not predict the same kind of target.")
    second = Predictions.of(predictions.target, outcome)
    differences = [ScoreDifference(a, b, low, high) for a, b, low, high in score_differences(predictions, second, seed)]
    cost = measure_cost(other, X, measure_speed=measure_speed)
    return Comparison(type(other).__name__, n_trees, differences, _agreement(predictions, second), cost)


def _predict(subject: Subject, model: object, X: Any) -> Outcome:
    """Predict with an estimator of any kind."""
    if subject.trees.is_classifier:
        if not hasattr(model, "predict_proba"):
            raise TypeError(f"compare must have predict_proba to be compared with a classifier, got {model!r:.100}.")
        _check_classes(subject, getattr(model, "classes_", None))
        return Outcome.of_probability(np.asarray(cast("ProbabilityPredictor", model).predict_proba(X), np.float64))
    if not hasattr(model, "predict"):
        raise TypeError(f"compare must be a fitted model with predict, got {model!r:.100}.")
    return Outcome(np.asarray(cast("Predictor", model).predict(X), np.float64).ravel())


def _check_classes(subject: Subject, classes: Any) -> None:
    own = subject.reader.classes
    if own is not None and classes is not None and list(own) != list(classes):
        raise ValueError(
            f"compare has the classes {np.asarray(classes).tolist()}, but the model has {np.asarray(own).tolist()}."
        )


def _agreement(a: Predictions, b: Predictions) -> float:
    if a.is_classifier:
        return float(np.mean(a.predicted == b.predicted))
    if np.ptp(a.predicted) == 0 or np.ptp(b.predicted) == 0:
        return float("nan")
    return float(np.corrcoef(a.predicted, b.predicted)[0, 1])


def baseline_scores(
    predictions: Predictions, n_classes: int, y_train: npt.NDArray[Any] | None, seed: int
) -> list[Score]:
    """Return the scores of a constant prediction, in the order of those of the model."""
    return compute_scores(constant_predictions(predictions, n_classes, y_train), seed, resamples=0)
