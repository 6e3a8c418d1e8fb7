"""All numbers of a report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from scboost._arrays import ArrayLike, IntArray
from scboost.diagnostics._calibration import Calibration, compute_calibration, compute_class_calibration
from scboost.diagnostics._frontier import Frontier, compute_frontier
from scboost.diagnostics._importance import Importance, compute_importance
from scboost.diagnostics._predictions import Predictions
from scboost.diagnostics._redundancy import RedundancyReport, make_report
from scboost.diagnostics._scores import Score, compute_scores
from scboost.diagnostics._statistics import matrix_statistics
from scboost.diagnostics._subject import Subject, unwrap
from scboost.diagnostics._target import check_length
from scboost.diagnostics._tree_matrix import BLOCK_SIZE, TreeMatrix, take_samples
from scboost.diagnostics.sections.classes import Classification, evaluate_classes
from scboost.diagnostics.sections.comparison import Comparison, baseline_scores, compare_models
from scboost.diagnostics.sections.cost import Cost, measure_cost
from scboost.diagnostics.sections.data import DataSummary, summarize_data
from scboost.diagnostics.sections.effects import MAX_EFFECT_CLASSES, MAX_EFFECTS, Effect, compute_effects
from scboost.diagnostics.sections.errors import Errors, find_errors
from scboost.diagnostics.sections.explanations import Explanation, choose_samples, explain
from scboost.diagnostics.sections.fitting import Fitting, describe_fit
from scboost.diagnostics.sections.residuals import Residuals, evaluate_residuals
from scboost.diagnostics.sections.tasks import TaskResult, TaskTarget, check_queries, is_task, task_target
from scboost.diagnostics.sections.uncertainty import Uncertainty, evaluate_uncertainty

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
    wrappers, notes : tuple of str
        Class names of what wraps the ensemble, and what a reader should know of it.
    """

    name: str
    library: str
    task: str
    n_trees: int
    n_outputs: int
    n_features: int
    classes: list[str]
    parameters: dict[str, str]
    wrappers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Analysis:
    """All results shown by a report.

    Attributes
    ----------
    facts : ModelFacts
    n_samples, n_samples_given : int
        Samples used, and samples given.
    redundancy : RedundancyReport
    scores, training_scores, baseline_scores : list of Score
        On the samples, on the training samples, and of a constant prediction; empty without targets.
    class_counts : ndarray of shape (n_classes,)
        Samples of each class; empty for regression and without y.
    data : DataSummary
    classification : Classification or None
        None for regression and without y.
    residuals : Residuals or None
        None for classification and without y.
    errors : Errors or None
        None without y.
    calibration : Calibration or None
    class_calibration : list of Calibration
        Of the classes of ``classification``; empty for at most two classes.
    uncertainty : Uncertainty or None
        None without y, and if the model predicts neither intervals nor label sets nor distributions.
    frontier : Frontier or None
        None without y, or if the raw score is not on the scale of y.
    importance : Importance
    effects : list of Effect
    explanations : list of Explanation
    fitting : Fitting
    cost : Cost
    comparison : Comparison or None
        None without a second model.
    task : TaskResult or None
        Scores of a ranking or survival model, which are also in ``scores``; None for others and without y.
    constant_trees : list of int
        Indices of trees that predict the same for every sample, or have weight zero.
    """

    facts: ModelFacts
    n_samples: int
    n_samples_given: int
    redundancy: RedundancyReport
    scores: list[Score]
    training_scores: list[Score]
    baseline_scores: list[Score]
    class_counts: IntArray
    data: DataSummary
    classification: Classification | None
    residuals: Residuals | None
    errors: Errors | None
    calibration: Calibration | None
    class_calibration: list[Calibration]
    uncertainty: Uncertainty | None
    frontier: Frontier | None
    importance: Importance
    effects: list[Effect]
    explanations: list[Explanation]
    fitting: Fitting
    cost: Cost
    comparison: Comparison | None
    constant_trees: list[int]
    task: TaskResult | None = None

    @property
    def majority_share(self) -> float:
        """Share of the most frequent class; NaN for regression and without y."""
        counts = self.class_counts
        return float(counts.max() / counts.sum()) if len(counts) else float("nan")


@dataclass(frozen=True)
class Options:
    """Options of a report; see :func:`scboost.report`."""

    name: str | None = None
    compare: object = None
    measure_speed: bool = True
    seed: int = 0
    qid: Any = None
    qid_train: Any = None


@dataclass(frozen=True)
class _Evaluated:
    """Samples with the predictions of the trees, and of the model where targets are known."""

    X: Any
    rows: IntArray
    trees: TreeMatrix
    predictions: Predictions | None
    task: TaskTarget | None = None

    def scores(self, seed: int) -> list[Score]:
        """Return the scores; none without targets."""
        if self.task is not None:
            return self.task.evaluate(self.trees.margin(), seed).scores
        return [] if self.predictions is None else compute_scores(self.predictions, seed)


def analyze(
    model: object, X: Any, y: ArrayLike | None, X_train: Any, y_train: ArrayLike | None, options: Options
) -> Analysis:
    """Compute all results; the arguments are those of :func:`scboost.report`."""
    subject, seed = unwrap(model), options.seed
    reader = subject.reader
    X = subject.check(X)
    n_given = int(X.shape[0])
    target, task = _target(subject, y, options.qid, n_given)
    if task is not None and options.compare is not None:
        raise ValueError(f"compare supports classification and regression; this is a model for {reader.task}.")
    rng = np.random.default_rng(seed)
    size = max(1, min(MAX_SAMPLES, _MAX_VALUES // len(reader.column_weights)))
    here = _evaluate(subject, X, target, size, rng, task)
    training = None
    if X_train is not None:
        X_train = subject.check(X_train)
        known = _target(subject, None if y is None else y_train, options.qid_train, int(X_train.shape[0]))
        training = _evaluate(subject, X_train, known[0], size, rng, known[1])
    predictions, trees = here.predictions, here.trees
    result = None if here.task is None else here.task.evaluate(trees.margin(), seed)
    comparable = None if target is None or not trees.on_target_scale else target[here.rows]
    name = type(subject.ensemble).__name__ if options.name is None else options.name
    redundancy = make_report(matrix_statistics(trees, comparable), name)
    counts = _class_counts(trees, predictions)
    facts = _facts(subject, redundancy, len(counts))
    frontier = None
    if comparable is not None:
        frontier = compute_frontier(subject.ensemble, subject.transform(here.X), comparable, trees, rng)
    importance = compute_importance(subject, here.X, None if target is None else target[here.rows], rng)
    detail = _Detail(subject, here, facts, importance)
    classification = _evaluate_classes(predictions, len(counts))
    return Analysis(
        facts=facts,
        n_samples=len(here.rows),
        n_samples_given=n_given,
        redundancy=redundancy,
        scores=here.scores(seed) if result is None else result.scores,
        training_scores=[] if training is None else training.scores(seed),
        baseline_scores=_baseline(here, training, len(counts), seed) if result is None else result.baseline_scores,
        class_counts=counts,
        data=summarize_data(here.X, detail.names, None if training is None else training.X),
        classification=classification,
        residuals=(None if predictions is None or predictions.is_classifier else evaluate_residuals(predictions, seed)),
        errors=detail.errors(),
        calibration=None if predictions is None else compute_calibration(predictions, seed),
        class_calibration=_calibrate_classes(predictions, classification, seed),
        uncertainty=detail.uncertainty(seed),
        frontier=frontier,
        importance=importance,
        effects=detail.effects(rng),
        explanations=detail.explanations(rng),
        fitting=describe_fit(subject, _staged_input(here), None if training is None else _staged_input(training)),
        cost=measure_cost(model, here.X, measure_speed=options.measure_speed),
        comparison=_compare(subject, here, options),
        constant_trees=_constant_trees(trees),
        task=result,
    )


def _target(
    subject: Subject, y: ArrayLike | None, qid: Any, n: int
) -> tuple[npt.NDArray[Any] | None, TaskTarget | None]:
    """Return labels or values of shape (n,), or the targets of a ranking or survival model; None without y."""
    task = subject.reader.task
    check_queries(task, y, qid)
    if y is None:
        return None, None
    return (None, task_target(subject.ensemble, task, y, qid, n)) if is_task(task) else (check_length(y, n), None)


def _evaluate(
    subject: Subject,
    X: Any,
    y: npt.NDArray[Any] | None,
    size: int,
    rng: np.random.Generator,
    task: TaskTarget | None = None,
) -> _Evaluated:
    """Predict at most ``size`` samples, in their order; of a ranking, those of whole queries."""
    n = int(X.shape[0])
    rows: IntArray
    if task is None:
        rows = np.arange(n) if n <= size else np.sort(rng.choice(n, size, replace=False))
    else:
        rows = task.choose(size, rng)
        task = task.take(rows)
    X = X if len(rows) == n else take_samples(X, rows)
    trees = subject.reader.matrix(subject.transform(X), np.float32, BLOCK_SIZE)
    predictions = None if y is None else subject.predictions(X, y[rows], trees.margin())
    return _Evaluated(X, rows, trees, predictions, task)


def _staged_input(samples: _Evaluated) -> tuple[TreeMatrix, Predictions] | None:
    return None if samples.predictions is None else (samples.trees, samples.predictions)


def _evaluate_classes(predictions: Predictions | None, n_classes: int) -> Classification | None:
    if predictions is None or not predictions.is_classifier:
        return None
    return evaluate_classes(predictions, n_classes)


def _baseline(here: _Evaluated, training: _Evaluated | None, n_classes: int, seed: int) -> list[Score]:
    """Return the scores of a constant prediction, that of the training set if it is given."""
    known = None if training is None or training.predictions is None else training.predictions.target
    return [] if here.predictions is None else baseline_scores(here.predictions, n_classes, known, seed)


def _calibrate_classes(
    predictions: Predictions | None, classification: Classification | None, seed: int
) -> list[Calibration]:
    if predictions is None or classification is None:
        return []
    return compute_class_calibration(predictions, [scores.k for scores in classification.classes], seed)


def _compare(subject: Subject, here: _Evaluated, options: Options) -> Comparison | None:
    if options.compare is None:
        return None
    if here.predictions is None:
        raise ValueError("compare needs targets: pass y as well.")
    return compare_models(
        subject, here.predictions, options.compare, here.X, seed=options.seed, measure_speed=options.measure_speed
    )


class _Detail:
    """Errors, effects and explanations: what needs the most important features."""

    def __init__(self, subject: Subject, here: _Evaluated, facts: ModelFacts, importance: Importance) -> None:
        self._subject, self._here, self._facts = subject, here, facts
        self.names = subject.feature_names(here.X)
        self._features = importance.positions or list(range(min(MAX_EFFECTS, len(self.names))))
        self._outcome = subject.outcome(here.X, here.trees.margin())

    def errors(self) -> Errors | None:
        here = self._here
        if here.predictions is None:
            return None
        return find_errors(here.predictions, here.X, here.rows, self._features, self.names, self._facts.classes)

    def uncertainty(self, seed: int) -> Uncertainty | None:
        subject, here = self._subject, self._here
        if here.predictions is None or subject.calibrated:  # a wrapper has other probabilities than the ensemble
            return None
        X = subject.transform(here.X)
        return evaluate_uncertainty(subject.ensemble, subject.reader.uncertainty, X, here.predictions, seed)

    def effects(self, rng: np.random.Generator) -> list[Effect]:
        n = len(self._facts.classes)
        outputs = [0] if n == 0 else [1] if n == 2 else list(range(min(n, MAX_EFFECT_CLASSES)))
        features = self._features[:MAX_EFFECTS]
        return compute_effects(self._subject, self._here.X, features, self.names, outputs, rng)

    def explanations(self, rng: np.random.Generator) -> list[Explanation]:
        chosen = choose_samples(self._outcome, self._here.predictions, len(self._facts.classes))
        return explain(self._subject, self._here.X, chosen, self._features, self.names, rng)


class _Estimator(Protocol):
    def get_params(self, *, deep: bool) -> dict[str, Any]: ...


def _class_counts(trees: TreeMatrix, predictions: Predictions | None) -> IntArray:
    if predictions is None or not predictions.is_classifier:
        return np.zeros(0, np.intp)
    n_classes = len(trees.classes) if trees.classes is not None else max(2, trees.n_outputs)
    return np.bincount(predictions.target, minlength=n_classes)


def _facts(subject: Subject, redundancy: RedundancyReport, n_classes: int) -> ModelFacts:
    reader = subject.reader
    labels = [] if reader.classes is None else [str(label) for label in reader.classes]
    if not labels and reader.link in {"logit", "softmax"}:
        labels = [str(k) for k in range(max(2, len(reader.intercepts), n_classes))]
    if len(labels) > 2:
        task = f"multiclass classification, {len(labels)} classes"
    elif labels:
        task = "binary classification"
    else:
        task = "quantile regression" if reader.link == "quantile" else "regression"
        task = {"distribution": "distributional regression"}.get(reader.task, reader.task) or task
    return ModelFacts(
        name=redundancy.model_name,
        library=reader.library,
        task=task,
        n_trees=redundancy.n_trees,
        n_outputs=redundancy.n_outputs,
        n_features=reader.n_features,
        classes=labels,
        parameters=_changed_parameters(subject.ensemble),
        wrappers=subject.wrappers,
        notes=subject.notes,
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
