"""The model of a report: what predicts, and the tree ensemble inside of it.

Pipelines, searches over parameters and calibrated classifiers of scikit-learn are unwrapped: trees are read from the
ensemble inside, scores are those of the whole model, and features are those that the whole model takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, cast

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from scboost._arrays import FloatArray
from scboost.diagnostics._predictions import Outcome, Predictions, outcome_of_margin
from scboost.diagnostics._registry import read_ensemble
from scboost.diagnostics._target import check_length, encode_target
from scboost.diagnostics._tree_matrix import EnsembleReader, TreeMatrix, column_names


class Predictor(Protocol):
    """A regressor."""

    def predict(self, X: Any, /) -> Any: ...


class ProbabilityPredictor(Protocol):
    """A classifier with probabilities."""

    def predict_proba(self, X: Any, /) -> Any: ...


class Transformer(Protocol):
    """A step of a pipeline."""

    def transform(self, X: Any, /) -> Any: ...


@dataclass(frozen=True)
class Subject:
    """A model to be evaluated.

    Attributes
    ----------
    model : object
        As it was given.
    ensemble : object
        The tree ensemble: the model itself, or what it wraps.
    reader : EnsembleReader
        Of the ensemble.
    steps : tuple of transformers
        Applied to X before the ensemble.
    calibrated : bool
        Whether the wrapper replaces the probabilities of the ensemble.
    wrappers : tuple of str
        Class names of what was unwrapped, outermost first.
    notes : tuple of str
        What a reader should know of the unwrapping.
    """

    model: object
    ensemble: object
    reader: EnsembleReader
    steps: tuple[Transformer, ...] = ()
    calibrated: bool = False
    wrappers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def trees(self) -> TreeMatrix:
        """Tree matrix of zero samples: link, classes and so on."""
        return self.reader.with_predictions(np.empty((0, len(self.reader.column_weights)), np.float32))

    def check(self, X: Any) -> Any:
        """Return X as an object with a shape; features are checked by the ensemble or by the first step."""
        if not self.steps:
            return self.reader.check(X)
        X = X if hasattr(X, "shape") else np.asarray(X)
        if len(X.shape) != 2 or X.shape[0] == 0:
            raise ValueError(f"X must have two dimensions and at least one sample, got shape {tuple(X.shape)}.")
        return X

    def transform(self, X: Any) -> Any:
        """Return the features of the ensemble."""
        for step in self.steps:
            X = step.transform(X)
        return self.reader.check(X) if self.steps else X

    def feature_names(self, X: Any) -> list[str]:
        """Return the names of the features of X."""
        known = None if self.steps else self.reader.feature_names
        return known or column_names(X) or [f"feature {j}" for j in range(X.shape[1])]

    def outcome(self, X: Any, margin: FloatArray | None = None) -> Outcome:
        """Predict samples; from the raw score of the trees where that determines the prediction.

        Parameters
        ----------
        X : array-like or table
            Samples, with the features of the model as it was given.
        margin : ndarray, optional
            Their raw scores, if they are known.

        Returns
        -------
        Outcome
        """
        if self.calibrated:
            p = cast("ProbabilityPredictor", self.model).predict_proba(X)
            return Outcome.of_probability(np.asarray(p, np.float64))
        if self.trees.on_target_scale:
            margin = self.reader.margin(self.transform(X)) if margin is None else margin
            return outcome_of_margin(self.trees, margin)
        return Outcome(np.asarray(cast("Predictor", self.model).predict(X), np.float64).ravel())

    def target(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return class codes, or values as float64."""
        return encode_target(self.trees, y, n=len(y)) if self.trees.on_target_scale else np.asarray(y, np.float64)

    def predictions(self, X: Any, y: npt.NDArray[Any], margin: FloatArray | None = None) -> Predictions:
        """Return the predictions of samples with known targets; see :meth:`outcome`."""
        return Predictions.of(self.target(check_length(y, X.shape[0])), self.outcome(X, margin))


def unwrap(model: object) -> Subject:
    """Find the tree ensemble inside of a model.

    Parameters
    ----------
    model : object
        A fitted tree ensemble, or a scikit-learn Pipeline, search (``GridSearchCV`` ...), ``CalibratedClassifierCV`` or
        ``FrozenEstimator`` that contains one.

    Returns
    -------
    Subject

    Raises
    ------
    TypeError
        If there is no supported tree ensemble inside.
    sklearn.exceptions.NotFittedError
        If the model has not been fitted.
    """
    inner: Any = model
    steps: list[Transformer] = []
    wrappers, notes = [], []
    calibrated = False
    while (kind := _wrapper_kind(inner)) is not None:
        wrappers.append(type(inner).__name__)
        if kind == "pipeline":
            steps += [step for _, step in inner.steps[:-1] if step is not None and step != "passthrough"]
            inner = inner.steps[-1][1]
        elif kind == "search":
            check_is_fitted(inner, "best_estimator_")
            best = ", ".join(f"{name}={value!r}" for name, value in inner.best_params_.items())
            notes.append(f"The search selected {best}: mean validation score {inner.best_score_:.4g}.")
            inner = inner.best_estimator_
        elif kind == "calibration":
            check_is_fitted(inner, "calibrated_classifiers_")
            calibrated = True
            if len(inner.calibrated_classifiers_) > 1:
                n = len(inner.calibrated_classifiers_)
                notes.append(f"Trees are those of the first of {n} calibrated models; scores are those of all.")
            inner = inner.calibrated_classifiers_[0].estimator
        else:
            inner = inner.estimator
    return Subject(model, inner, read_ensemble(inner), tuple(steps), calibrated, tuple(wrappers), tuple(notes))


def _wrapper_kind(model: object) -> Literal["pipeline", "search", "calibration", "frozen"] | None:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator
    from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
    from sklearn.pipeline import Pipeline

    if isinstance(model, Pipeline):
        return "pipeline"
    if isinstance(model, CalibratedClassifierCV):
        return "calibration"
    if isinstance(model, FrozenEstimator):
        return "frozen"
    # Other searches, such as HalvingGridSearchCV, follow the same protocol.
    is_search = isinstance(model, GridSearchCV | RandomizedSearchCV) or hasattr(model, "best_estimator_")
    return "search" if is_search else None
