"""Teachers: what a model of any library says, as raw scores on the scale of its link."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._compress.families import FAMILIES, Family
from scboost._compress.samples import Samples
from scboost._compress.trees import split_features
from scboost._compress.types import Float64, Indices
from scboost._core.losses import Loss
from scboost._model.fitted import FittedModel, HasFittedModel
from scboost.diagnostics import read_ensemble

# Probabilities of 0 and 1, as forests have them, are moved this far inside: log-odds of 0 are infinite.
_LEAST_PROBABILITY = 1e-6
_LINKS = {"logit": "logit", "softmax": "softmax", "log": "log", "identity": "identity", "quantile": "identity"}
_COUNT_WORDS = ("poisson", "gamma", "tweedie")


@dataclass(frozen=True)
class Teacher:
    """A model that can be asked for raw scores anywhere.

    Attributes
    ----------
    raw : callable
        ``raw(X)`` returns scores of shape (K, n); X is an array or a table as the model takes it.
    family : Family
        Family of the link.
    classes : ndarray or None
        Labels in the order of the outputs (two for one output); None for regression.
    loss : Loss or None
        The model's own loss, if it is one of scboost's.
    raw_encoded : callable or None
        The same as `raw` for encoded samples, if it is one of scboost's models of trees.
    baseline : mapping of str to ndarray
        What survival functions are computed from; empty for other models.
    features : ndarray of int or None
        Features that the trees of `raw_encoded` split on; None without it.
    """

    raw: Callable[[Any], Float64]
    family: Family
    classes: npt.NDArray[Any] | None
    loss: Loss | None = None
    raw_encoded: Callable[[Float64], Float64] | None = None
    baseline: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    features: Indices | None = None

    @property
    def task(self) -> str:
        """The task of the model's own loss: "ranking" and "survival" order samples; "regression" for all others."""
        return "regression" if self.loss is None else self.loss.task

    @property
    def orders(self) -> bool:
        """Whether raw scores order samples."""
        return self.task in {"ranking", "survival"}

    def scores(self, samples: Samples) -> Float64:
        """Return raw scores of samples, of shape (K, n)."""
        return self.raw(samples.X) if self.raw_encoded is None else self.raw_encoded(samples.matrix)


def read_teacher(model: object, X: Any, y: Any, link: str, n_threads: int = 1) -> Teacher:
    """Find out how to ask a model for raw scores.

    Parameters
    ----------
    model : object
        A fitted estimator, a booster that the diagnostics can read, or a callable.
    X : array or table
        Some samples, which tell the number of outputs of a callable or booster.
    y : array-like or None
        Labels, for models that do not know theirs.
    link : {"auto", "identity", "log", "logit", "softmax"}
        How raw scores become predictions.
    n_threads : int
        Threads of scboost's own models; others use their own setting.
    """
    if link != "auto" and link not in FAMILIES:
        raise ValueError(f"link={link!r} must be 'auto' or one of {', '.join(map(repr, FAMILIES))}.")
    if isinstance(model, HasFittedModel):
        teacher = _of_fitted_model(model.__fitted_model__(), n_threads)
    elif hasattr(model, "predict_proba") and not _is_regressor(model):
        teacher = _from_classifier(model.predict_proba, _labels(model, y, None))
    elif hasattr(model, "decision_function") and hasattr(model, "classes_"):
        teacher = _from_decisions(model.decision_function, _labels(model, y, None))
    elif _is_booster(model):
        teacher = _from_trees(model, y)
    elif hasattr(model, "predict"):
        teacher = _from_regressor(model.predict, _regression_link(model) if link == "auto" else link)
    elif callable(model):
        teacher = _from_callable(model, X, y, link)
    else:
        raise TypeError(
            f"model is a {type(model).__name__}; compress needs a fitted estimator with predict_proba, "
            "decision_function or predict, a booster, or a callable that returns raw scores."
        )
    if link not in {"auto", teacher.family.link}:
        raise ValueError(f"link={link!r} contradicts the model, whose link is {teacher.family.link!r}.")
    return teacher


def _is_regressor(model: object) -> bool:
    return getattr(model, "_estimator_type", None) == "regressor"


def _is_booster(model: object) -> bool:
    """Whether a model has no scikit-learn interface but trees that the diagnostics can read."""
    if type(model).__name__ not in {"Booster", "CatBoost"} and not hasattr(type(model), "__tree_ensemble__"):
        return False
    read_ensemble(model)
    return True


def _of_fitted_model(fitted: FittedModel, n_threads: int) -> Teacher:
    fitted.require_one_target("compress")
    task = fitted.loss.task
    if task not in {"regression", "ranking", "survival"}:
        raise ValueError(
            f"compress supports classification, regression, ranking and survival analysis; this is a model of {task}."
        )

    def raw(X: Any) -> Float64:
        return np.asarray(fitted.raw_scores(X, n_threads), dtype=np.float64)

    def raw_encoded(matrix: Float64) -> Float64:
        return np.asarray(fitted.ensemble.scores(matrix.astype(np.float32), n_threads), dtype=np.float64)

    family = FAMILIES[_LINKS[fitted.loss.link.name] if task == "regression" else "identity"]()
    if fitted.has_other_learners:
        return Teacher(raw, family, fitted.classes, fitted.loss, None, fitted.baseline)
    ensemble = fitted.trees("compress")
    features = split_features([tree for t in ensemble.kept.tolist() for tree in ensemble.trees_of(t)])
    return Teacher(raw, family, fitted.classes, fitted.loss, raw_encoded, fitted.baseline, features)


def _from_classifier(predict_proba: Callable[[Any], Any], labels: npt.NDArray[Any]) -> Teacher:
    def probabilities(X: Any) -> Float64:
        p = predict_proba(X)
        if isinstance(p, list):
            raise TypeError("model predicts several targets; compress needs one model for each.")
        p = np.asarray(p, dtype=np.float64)
        return np.column_stack([1 - p, p]) if p.ndim == 1 else p

    return _of_probabilities(probabilities, labels)


def _of_probabilities(probabilities: Callable[[Any], Float64], labels: npt.NDArray[Any]) -> Teacher:
    """Make a teacher of class probabilities, of shape (n, n_classes)."""
    if len(labels) == 2:

        def raw(X: Any) -> Float64:
            p = np.clip(probabilities(X), _LEAST_PROBABILITY, 1.0)
            return np.asarray(np.log(p[:, 1]) - np.log(p[:, 0]))[None]

        return Teacher(raw, FAMILIES["logit"](), labels)

    def raws(X: Any) -> Float64:
        log_p = np.log(np.clip(probabilities(X), _LEAST_PROBABILITY, 1.0)).T
        return np.asarray(log_p - log_p.mean(axis=0))

    return Teacher(raws, FAMILIES["softmax"](), labels)


def _from_decisions(decide: Callable[[Any], Any], labels: npt.NDArray[Any]) -> Teacher:
    def raw(X: Any) -> Float64:
        return np.atleast_2d(np.asarray(decide(X), dtype=np.float64).T)

    return Teacher(raw, FAMILIES["logit" if len(labels) == 2 else "softmax"](), labels)


def _from_trees(model: object, y: Any) -> Teacher:
    """Read a booster without a scikit-learn interface."""
    reader = read_ensemble(model)

    def margins(X: Any) -> Float64:
        parts = [np.atleast_2d(part.margin().T) for part in reader.matrices(X, np.float32)]
        return np.concatenate(parts, axis=1).astype(np.float64)

    if reader.link in {"logit", "softmax"}:
        n_classes = max(len(reader.intercepts), 2)
        return Teacher(margins, FAMILIES[reader.link](), _labels(model, y, n_classes))
    if reader.link in {"identity", "quantile"}:
        return Teacher(margins, FAMILIES["identity"](), None)
    raise ValueError(
        f"The raw score of this {reader.library} model is neither log-odds nor on the scale of y; pass a function that "
        "returns raw scores, with link='log' for counts."
    )


def _from_regressor(predict: Callable[[Any], Any], link: str) -> Teacher:
    if link not in {"identity", "log"}:
        raise ValueError(f"link={link!r} needs a classifier; a model with predict only takes 'identity' or 'log'.")

    def raw(X: Any) -> Float64:
        prediction = np.atleast_2d(np.asarray(predict(X), dtype=np.float64).T)
        return prediction if link == "identity" else _logarithm(prediction)

    return Teacher(raw, FAMILIES[link](), None)


def _logarithm(prediction: Float64) -> Float64:
    if (prediction <= 0).any():
        raise ValueError(
            f"link='log' needs positive predictions, the model predicts {prediction.min():.4g}; use link='identity'."
        )
    return np.asarray(np.log(prediction))


def _regression_link(model: object) -> str:
    """Return "log" if the parameters of a regressor name a loss for counts or amounts."""
    final = model.steps[-1][1] if hasattr(model, "steps") else model
    parameters: Mapping[str, Any] = final.get_params() if hasattr(final, "get_params") else {}
    named = [parameters.get(name) for name in ("objective", "loss", "loss_function")]
    words = " ".join(str(name).lower() for name in named if name is not None) + type(final).__name__.lower()
    return "log" if any(word in words for word in _COUNT_WORDS) else "identity"


def _from_callable(function: Callable[[Any], Any], X: Any, y: Any, link: str) -> Teacher:
    if link == "auto":
        raise ValueError(
            "model is a function: say what it returns by link='logit' (log-odds of the second of two classes), "
            "'softmax' (a score for each class), 'identity' or 'log'."
        )

    def raw(X: Any) -> Float64:
        return np.atleast_2d(np.asarray(function(X), dtype=np.float64).T)

    n_outputs = len(raw(X))
    if link == "logit" and n_outputs != 1:
        raise ValueError(f"link='logit' needs one score a sample, the function returns {n_outputs}; use 'softmax'.")
    if link == "softmax" and n_outputs < 3:
        raise ValueError(f"link='softmax' needs a score for each of 3 or more classes, got {n_outputs}; use 'logit'.")
    n_classes = {"logit": 2, "softmax": n_outputs}.get(link)
    return Teacher(raw, FAMILIES[link](), None if n_classes is None else _labels(function, y, n_classes))


def _labels(model: object, y: Any, n_classes: int | None) -> npt.NDArray[Any]:
    """Return the class labels that a model knows, else those of y, else 0, 1, ..."""
    for name in ("classes_", "class_labels"):
        if getattr(model, name, None) is not None:
            return np.asarray(getattr(model, name))
    if y is not None:
        labels = np.unique(np.asarray(y))
        if n_classes is None or len(labels) == n_classes:
            return labels
        raise ValueError(f"y has the {len(labels)} classes {labels.tolist()}, the model has {n_classes}.")
    if n_classes is None:
        raise ValueError("model has predict_proba but no classes_; pass y, whose sorted labels are the classes.")
    return np.arange(n_classes)
