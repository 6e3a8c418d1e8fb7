"""All numbers of a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from scboost._arrays import ArrayLike, IntArray
from scboost.diagnostics._calibration import Calibration, compute_calibration
from scboost.diagnostics._frontier import Frontier, compute_frontier
from scboost.diagnostics._importance import Importance, compute_importance
from scboost.diagnostics._predictions import Predictions, predict_from_margin
from scboost.diagnostics._redundancy import RedundancyReport, make_report
from scboost.diagnostics._registry import read_ensemble
from scboost.diagnostics._scores import Score, compute_scores
from scboost.diagnostics._statistics import matrix_statistics
from scboost.diagnostics._target import check_length
from scboost.diagnostics._tree_matrix import BLOCK_SIZE, EnsembleReader, TreeMatrix, take_samples

MAX_SAMPLES = 20_000
"""Samples used by a report at most."""
_MAX_VALUES = 50_000_000  # predictions of all trees for all samples: 200 MB
_MAX_TEXT = 120  # characters of a parameter


@dataclass(frozen=True)
class ModelFacts:
    """Description of a model.

    Attributes
    ----------
    name, library, task : str
        Class or given name, library, and learning task.
    n_trees, n_outputs, n_features : int
        Trees per output, outputs, features.
    classes : list of str
        Class labels in the order of the model; empty for regression.
    parameters : dict of str to str
        Parameters that differ from their defaults.
    """

    name: str
    library: str
    task: str
    n_trees: int
    n_outputs: int
    n_features: int
    classes: list[str]
    parameters: dict[str, str]


@dataclass(frozen=True)
class Analysis:
    """All results shown by a report.

    Attributes
    ----------
    facts : ModelFacts
    n_samples, n_samples_given : int
        Samples used, and samples given.
    redundancy : RedundancyReport
    scores, training_scores : list of Score
        On the samples and on the training samples; empty without targets.
    class_counts : ndarray of shape (n_classes,)
        Samples of each class; empty for regression and without y.
    calibration : Calibration or None
    frontier : Frontier or None
        None without y, or if the raw score is not on the scale of y.
    importance : Importance
    constant_trees : list of int
        Indices of trees that predict the same for every sample, or have weight zero.
    """

    facts: ModelFacts
    n_samples: int
    n_samples_given: int
    redundancy: RedundancyReport
    scores: list[Score]
    training_scores: list[Score]
    class_counts: IntArray
    calibration: Calibration | None
    frontier: Frontier | None
    importance: Importance
    constant_trees: list[int]

    @property
    def majority_share(self) -> float:
        """Share of the most frequent class; NaN for regression and without y."""
        counts = self.class_counts
        return float(counts.max() / counts.sum()) if len(counts) else float("nan")


def analyze(
    model: object,
    X: Any,
    y: ArrayLike | None,
    X_train: Any,
    y_train: ArrayLike | None,
    *,
    name: str | None,
    seed: int,
) -> Analysis:
    """Compute all results; the arguments are those of :func:`scboost.report`."""
    reader = read_ensemble(model)
    X = reader.check(X)
    n_given = int(X.shape[0])
    target = None if y is None else check_length(y, n_given)
    rng = np.random.default_rng(seed)
    X, target = _subsample(X, target, max(1, min(MAX_SAMPLES, _MAX_VALUES // len(reader.column_weights))), rng)
    trees = reader.matrix(X, np.float32, BLOCK_SIZE)
    predictions = None if target is None else _predict(model, X, target, trees)
    comparable = target if trees.on_target_scale else None
    training_scores: list[Score] = []
    if y_train is not None and target is not None:
        X_some, y_some = reader.check(X_train), np.asarray(y_train)
        X_some, y_some = _subsample(X_some, check_length(y_some, X_some.shape[0]), MAX_SAMPLES, rng)
        in_training = _predict(model, X_some, y_some, reader.matrix(X_some, np.float32, BLOCK_SIZE))
        training_scores = compute_scores(in_training, seed)
    redundancy = make_report(matrix_statistics(trees, comparable), type(model).__name__ if name is None else name)
    counts = _class_counts(trees, predictions)
    return Analysis(
        facts=_facts(model, reader, redundancy, len(counts)),
        n_samples=int(X.shape[0]),
        n_samples_given=n_given,
        redundancy=redundancy,
        scores=[] if predictions is None else compute_scores(predictions, seed),
        training_scores=training_scores,
        class_counts=counts,
        calibration=None if predictions is None else compute_calibration(predictions, seed),
        frontier=None if comparable is None else compute_frontier(model, X, comparable, trees, rng),
        importance=compute_importance(model, X, comparable, reader, rng),
        constant_trees=_constant_trees(trees),
    )


def _subsample(X: Any, y: Any, size: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return at most ``size`` samples, in their order."""
    n = int(X.shape[0])
    if n <= size:
        return X, y
    rows = np.sort(rng.choice(n, size, replace=False))
    return take_samples(X, rows), None if y is None else y[rows]


class _Predictor(Protocol):
    def predict(self, X: Any, /) -> Any: ...


class _Estimator(Protocol):
    def get_params(self, *, deep: bool) -> dict[str, Any]: ...


def _predict(model: object, X: Any, y: npt.NDArray[Any], trees: TreeMatrix) -> Predictions:
    """Predict from the raw score, or by the model itself where its raw score is not on the scale of y."""
    if trees.on_target_scale:
        return predict_from_margin(trees, trees.margin(), y)
    model = cast("_Predictor", model)
    return Predictions(np.asarray(y, np.float64), np.asarray(model.predict(X), np.float64).ravel(), None, None)


def _class_counts(trees: TreeMatrix, predictions: Predictions | None) -> IntArray:
    if predictions is None or not predictions.is_classifier:
        return np.zeros(0, np.intp)
    n_classes = len(trees.classes) if trees.classes is not None else max(2, trees.n_outputs)
    return np.bincount(predictions.target, minlength=n_classes)


def _facts(model: object, reader: EnsembleReader, redundancy: RedundancyReport, n_classes: int) -> ModelFacts:
    labels = [] if reader.classes is None else [str(label) for label in reader.classes]
    if not labels and reader.link in {"logit", "softmax"}:
        labels = [str(k) for k in range(max(2, len(reader.intercepts), n_classes))]
    if len(labels) > 2:
        task = f"multiclass classification, {len(labels)} classes"
    elif labels:
        task = "binary classification"
    else:
        task = "quantile regression" if reader.link == "quantile" else "regression"
    return ModelFacts(
        name=redundancy.model_name,
        library=reader.library,
        task=task,
        n_trees=redundancy.n_trees,
        n_outputs=redundancy.n_outputs,
        n_features=reader.n_features,
        classes=labels,
        parameters=_changed_parameters(model),
    )


def _changed_parameters(model: object) -> dict[str, str]:
    """Return the parameters that differ from the defaults of the class; boosters have none."""
    try:
        default = cast("_Estimator", type(model)()).get_params(deep=False)
        current = cast("_Estimator", model).get_params(deep=False)
    except (AttributeError, TypeError):
        return {}
    changed = {key: repr(value) for key, value in current.items() if repr(value) != repr(default.get(key))}
    return {
        str(key): text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 3]}..." for key, text in changed.items()
    }


def _constant_trees(trees: TreeMatrix) -> list[int]:
    """Return the rounds whose trees are all constant on the samples, or have weight zero."""
    constant = np.all(np.equal(trees.H, trees.H[:1]), axis=0) | (trees.column_weights == 0)
    return [int(t) for t in np.flatnonzero(constant.reshape(trees.n_trees, trees.n_outputs).all(axis=1))]
