"""All numbers of a report: what the model is, how well it predicts, which trees do the work, what to watch out for."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import ArrayLike, FloatArray, IntArray
from scboost.diagnostics._prune import shrink
from scboost.diagnostics._redundancy import RedundancyReport, redundancy_report
from scboost.diagnostics._registry import read_ensemble
from scboost.diagnostics._reweight import Problem
from scboost.diagnostics._scores import Calibration, Outcome, Score, calibrate, measure_scores, outcome
from scboost.diagnostics._tree_matrix import EnsembleReader, TreeMatrix, tree_matrix

MAX_ROWS = 20_000
"""Most rows that a report looks at."""
_MAX_VALUES = 50_000_000  # of all trees on all rows: 200 MB
_MAX_ROWS_TO_PRUNE = 2_000
_FEWEST_ROWS_TO_PRUNE = 60
_PULL = 0.1  # the default of `prune`
_POINTS = 120
_PRUNED_POINTS = 10
_SHUFFLED_ROWS = (200, 1_000)
_SHUFFLED_VALUES = 10_000_000  # of all trees on all rows of all shuffles
_SHUFFLED_FEATURES = 20
_SHUFFLES = 3


@dataclass(frozen=True)
class ModelFacts:
    """What the model is.

    Attributes
    ----------
    name, library, task : str
        Its class or the name given, the library, and what is predicted.
    n_trees, n_outputs, n_features : int
        Trees of one output, outputs, columns.
    classes : list of str
        Labels in the model's order; empty for regression.
    parameters : dict of str to str
        Those that are not the default.
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
class TreeCurve:
    """How well fewer trees would do, on rows that had no part in choosing them.

    Attributes
    ----------
    loss_name, score_name : str
        What the two kinds of curves show.
    sizes, loss, score : ndarray of shape (p,)
        Of the first trees, by their number.
    pruned_sizes, pruned_loss, pruned_score : ndarray of shape (q,)
        Of the trees that :func:`scboost.prune` keeps; empty if it cannot be used.
    first_loss, first_score : ndarray of shape (q,)
        Of as many first trees.
    n_choosing, n_scoring : int
        Rows that the trees were chosen on, and rows that the curves were measured on.
    best : int
        Number of first trees with the smallest loss.
    rise, rise_error : float
        What the loss of all trees is above that, and the standard error of this difference; 0 for a forest, whose trees
        come in no order.
    enough : int or None
        Fewest pruned trees whose loss is not above the smallest, of all trees or of any pruned number, by more than a
        standard error of the difference. None if there is no such number.
    no_pruning : str
        Why there is no pruned curve; empty if there is one.
    """

    loss_name: str
    score_name: str
    sizes: IntArray
    loss: FloatArray
    score: FloatArray
    pruned_sizes: IntArray
    pruned_loss: FloatArray
    pruned_score: FloatArray
    first_loss: FloatArray
    first_score: FloatArray
    n_choosing: int
    n_scoring: int
    best: int
    rise: float
    rise_error: float
    enough: int | None
    no_pruning: str

    @property
    def mirrored(self) -> bool:
        """Whether the score says the same as the loss."""
        return self.loss_name == "error rate"


@dataclass(frozen=True)
class Features:
    """Which columns matter.

    Attributes
    ----------
    names : list of str
        The most important first.
    own : ndarray of shape (m,) or None
        Importance that the library gives, as shares; None if it gives none.
    shuffled : ndarray of shape (m,) or None
        By how much the loss rises when the column is shuffled; None if that was not measured.
    shuffled_error : ndarray of shape (m,) or None
        Standard deviation of that over the shuffles.
    loss_name : str
        Of the loss that rises.
    n_features : int
        Columns in all.
    """

    names: list[str]
    own: FloatArray | None
    shuffled: FloatArray | None
    shuffled_error: FloatArray | None
    loss_name: str
    n_features: int


@dataclass(frozen=True)
class Measured:
    """Everything that a page shows.

    Attributes
    ----------
    facts : ModelFacts
    n_rows, n_rows_given : int
        Rows measured, and rows given.
    redundancy : RedundancyReport
    few_rows : str
        The warning of the redundancy report; empty without.
    scores, training_scores : list of Score
        On the rows and on the training rows; empty if not given.
    majority : float
        Share of the largest class; NaN for regression and without y.
    class_counts : ndarray of shape (n_classes,)
        Rows of each class; empty for regression and without y.
    calibration : Calibration or None
    curve : TreeCurve or None
    features : Features
    idle : list of int
        Positions of trees that say the same for every row, or have weight zero.
    """

    facts: ModelFacts
    n_rows: int
    n_rows_given: int
    redundancy: RedundancyReport
    few_rows: str
    scores: list[Score]
    training_scores: list[Score]
    majority: float
    class_counts: IntArray
    calibration: Calibration | None
    curve: TreeCurve | None
    features: Features
    idle: list[int]


def measure(
    model: Any,
    X: Any,
    y: ArrayLike | None,
    X_train: Any,
    y_train: ArrayLike | None,
    *,
    name: str | None,
    seed: int,
) -> Measured:
    """Measure a model; the arguments are those of :func:`scboost.report`."""
    reader = read_ensemble(model)
    X = reader.check(X)
    if y is not None:
        y = np.asarray(y)
        if y.shape != (X.shape[0],):
            raise ValueError(f"y must have shape ({X.shape[0]},), one value per row of X; got {y.shape}.")
    rng = np.random.default_rng(seed)
    n_given = int(X.shape[0])
    X, y = _sample(X, y, max(1, min(MAX_ROWS, _MAX_VALUES // len(reader.column_weights))), rng)
    trees = tree_matrix(model, X)
    comparable = trees.classifies or trees.link in {"identity", "quantile"}
    found = None if y is None else _predict(model, X, y, trees, comparable=comparable)
    redundancy, few_rows = _redundancy(model, X, y if comparable else None, name)
    training: list[Score] = []
    if y_train is not None and y is not None:
        X_some, y_some = _sample(reader.check(X_train), np.asarray(y_train), MAX_ROWS, rng)
        outcome_in_training = _predict(model, X_some, y_some, tree_matrix(model, X_some), comparable=comparable)
        training = measure_scores(outcome_in_training, seed)
    counts: IntArray = np.zeros(0, np.intp)
    if found is not None and found.classifies:
        n_classes = len(trees.classes) if trees.classes is not None else max(2, trees.n_outputs)
        counts = np.bincount(found.target, minlength=n_classes)
    return Measured(
        facts=_facts(model, reader, redundancy, counts),
        n_rows=int(X.shape[0]),
        n_rows_given=n_given,
        redundancy=redundancy,
        few_rows=few_rows,
        scores=[] if found is None else measure_scores(found, seed),
        training_scores=training,
        majority=float(counts.max() / counts.sum()) if len(counts) else float("nan"),
        class_counts=counts,
        calibration=None if found is None else calibrate(found, seed),
        curve=_tree_curve(model, X, y, trees, rng) if y is not None and comparable else None,
        features=_features(model, X, y if comparable else None, reader, rng),
        idle=_idle(trees),
    )


def _take(X: Any, rows: npt.NDArray[np.intp]) -> Any:
    if hasattr(X, "column_names"):  # pyarrow
        return X.take(rows)
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _sample(X: Any, y: Any, size: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return at most as many rows, in their order."""
    n = int(X.shape[0])
    if n <= size:
        return X, y
    rows = np.sort(rng.choice(n, size, replace=False))
    return _take(X, rows), None if y is None else y[rows]


def _predict(model: Any, X: Any, y: Any, trees: TreeMatrix, *, comparable: bool) -> Outcome:
    """Predict from the margin, or with the model itself where its margin is not on the scale of y."""
    if comparable:
        return outcome(trees, trees.margin(), y)
    return Outcome(np.asarray(y, np.float64), np.asarray(model.predict(X), np.float64).ravel(), None, None)


def _redundancy(model: Any, X: Any, y: Any, name: str | None) -> tuple[RedundancyReport, str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        found = redundancy_report(model, X, y, name=name)
    few = [str(one.message) for one in caught if "rows are few for" in str(one.message)]
    return found, few[0] if few else ""


def _facts(model: Any, reader: EnsembleReader, redundancy: RedundancyReport, counts: IntArray) -> ModelFacts:
    labels = [] if reader.classes is None else [str(label) for label in reader.classes]
    if not labels and reader.link in {"logit", "softmax"}:
        labels = [str(k) for k in range(max(2, len(reader.intercepts), len(counts)))]
    if len(labels) > 2:
        task = f"classification, {len(labels)} classes"
    elif labels:
        task = "classification, two classes"
    else:
        task = "a quantile of a number" if reader.link == "quantile" else "regression"
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


def _changed_parameters(model: Any) -> dict[str, str]:
    """Return the parameters that differ from those of a new model of the class."""
    try:
        default = type(model)().get_params(deep=False)
        current = model.get_params(deep=False)
    except (AttributeError, TypeError):  # boosters have no such parameters, other classes have no defaults
        return {}
    changed = {key: repr(value) for key, value in current.items() if repr(value) != repr(default.get(key))}
    return {str(key): text if len(text) <= 120 else f"{text[:117]}..." for key, text in changed.items()}


def _idle(trees: TreeMatrix) -> list[int]:
    """Return the rounds whose trees all say the same for every row, or count nothing."""
    same = np.all(np.equal(trees.H, trees.H[:1]), axis=0) | (trees.column_weights == 0)
    return [int(t) for t in np.flatnonzero(same.reshape(trees.n_trees, trees.n_outputs).all(axis=1))]


def _first_margins(trees: TreeMatrix, sizes: IntArray) -> list[FloatArray]:
    """Return the margins of the first trees, as :func:`scboost.diagnostics.truncation_path` cuts an ensemble."""
    K, T = trees.n_outputs, trees.n_trees
    w = trees.column_weights.reshape(T, K)
    F = np.zeros((len(trees.H), K))
    margins, done = [], 0
    for size in sizes:
        for t in range(done, size):
            F += trees.H[:, t * K : (t + 1) * K] * w[t]
        done = int(size)
        scale = w.sum(axis=0) / w[:size].sum(axis=0) if trees.average else 1.0
        margin = F * scale + trees.intercepts
        margins.append(margin[:, 0] if K == 1 else margin)
    return margins


def _summary(found: Outcome) -> tuple[FloatArray, float]:
    """Return the loss of each row and the score that people read: accuracy or R^2."""
    if found.classifies:
        return found.loss()[1], float(np.mean(found.target == found.decided))
    spread = float(np.var(found.target))
    loss = found.loss()[1]
    return loss, float(1 - loss.mean() / spread) if spread > 0 else float("nan")


def _tree_curve(model: Any, X: Any, y: Any, trees: TreeMatrix, rng: np.random.Generator) -> TreeCurve:
    """Cut and prune the model; prune on at most half of the rows and measure both on the others."""
    n, T = len(trees.H), trees.n_trees
    order = rng.permutation(n)
    n_choosing = min(n // 2, _MAX_ROWS_TO_PRUNE)
    choosing, scoring = order[:n_choosing], np.sort(order[n_choosing:])
    reason = "" if n >= _FEWEST_ROWS_TO_PRUNE else f"{n} rows are too few to prune on some and measure on others"
    pruned_sizes = np.unique(np.geomspace(1, T, _PRUNED_POINTS).round().astype(np.intp))
    margins: list[FloatArray] = []
    if not reason:
        try:
            problem = Problem.of(model, _take(X, choosing), y[choosing], None, 0.0)
        except ValueError as error:
            reason = str(error)
        else:
            H, K = trees.H[scoring], trees.n_outputs
            for weights in shrink(problem, [int(size) for size in pruned_sizes], "backward", _PULL):
                w = trees.column_weights.reshape(T, K) * (weights.factors * problem.scale)[:, None]
                F = np.stack([H[:, k::K] @ w[:, k] for k in range(K)], axis=1) + weights.intercept
                margins.append(F[:, 0] if K == 1 else F)
    if reason:
        pruned_sizes, scoring = np.zeros(0, np.intp), np.arange(n)
    rows = replace(trees, H=trees.H[scoring])
    sizes = np.unique(np.r_[np.geomspace(1, T, _POINTS).round().astype(np.intp), pruned_sizes, T])
    first = [outcome(rows, F, y[scoring]) for F in _first_margins(rows, sizes)]
    # Pruned forests and votes are log-odds.
    log_odds = "logit" if trees.n_outputs == 1 else "softmax"
    found = [outcome(rows, F, y[scoring], link=log_odds if trees.classifies else None) for F in margins]
    if first[-1].probability is None:  # the losses of the whole and of its parts must be the same
        found = [replace(one, probability=None) for one in found]
    pruned = [_summary(one) for one in found]
    cut = [_summary(found) for found in first]
    losses = np.array([loss.mean() for loss, _ in cut])
    best = int(np.argmin(losses))
    difference = cut[-1][0] - cut[best][0]
    if trees.average and np.ptp(trees.column_weights) == 0:  # a forest
        difference = np.zeros_like(difference)
    root = np.sqrt(len(scoring))
    rivals = [cut[-1][0], *(loss for loss, _ in pruned)]
    reference = min(rivals, key=np.mean)
    within = [(loss - reference).mean() <= (loss - reference).std() / root for loss, _ in pruned]
    enough = int(pruned_sizes[within.index(True)]) if True in within else None
    at = np.searchsorted(sizes, pruned_sizes)
    scores = np.array([score for _, score in cut])
    return TreeCurve(
        loss_name=first[-1].loss()[0],
        score_name="accuracy" if first[-1].classifies else "R2",
        sizes=sizes,
        loss=losses,
        score=scores,
        pruned_sizes=pruned_sizes,
        pruned_loss=np.array([loss.mean() for loss, _ in pruned]),
        pruned_score=np.array([score for _, score in pruned]),
        first_loss=losses[at],
        first_score=scores[at],
        n_choosing=0 if reason else n_choosing,
        n_scoring=len(scoring),
        best=int(sizes[best]),
        rise=float(difference.mean()),
        rise_error=float(difference.std() / root),
        enough=enough,
        no_pruning=reason,
    )


def _features(model: Any, X: Any, y: Any, reader: EnsembleReader, rng: np.random.Generator) -> Features:
    d = reader.n_features
    names = reader.feature_names
    if names is None:
        columns = getattr(X, "column_names", getattr(X, "columns", None))
        names = [f"column {j}" for j in range(d)] if columns is None else [str(column) for column in columns]
    own = _own_importances(model, names)
    rank = np.arange(d) if own is None else np.argsort(-own, kind="stable")
    shown = rank[:_SHUFFLED_FEATURES] if own is not None or d <= _SHUFFLED_FEATURES else rank[:0]
    shuffled = spread = None
    loss_name = ""
    replaced = _column_replacer(X)
    if y is not None and replaced is not None and len(shown):
        affordable = _SHUFFLED_VALUES // (len(shown) * _SHUFFLES * len(reader.column_weights))
        rows = rng.permutation(len(y))[: int(np.clip(affordable, *_SHUFFLED_ROWS))]
        X_some, y_some = _take(X, rows), y[rows]
        trees = reader.matrix(X_some, np.float32, len(rows))
        loss_name, before = outcome(trees, trees.margin(), y_some).loss()
        rises = np.empty((len(shown), _SHUFFLES))
        for row, j in zip(rises, shown, strict=True):
            for r in range(_SHUFFLES):
                changed = reader.matrix(replaced(X_some, int(j), rng.permutation(len(rows))), np.float32, len(rows))
                row[r] = float(np.mean(outcome(changed, changed.margin(), y_some).loss()[1] - before))
        by_rise = np.argsort(-rises.mean(axis=1), kind="stable")
        shown, rises = shown[by_rise], rises[by_rise]
        shuffled, spread = rises.mean(axis=1), rises.std(axis=1)
    return Features([names[j] for j in shown], None if own is None else own[shown], shuffled, spread, loss_name, d)


def _own_importances(model: Any, names: list[str]) -> FloatArray | None:
    """Return the shares that the library itself gives; None if it gives none."""
    if hasattr(model, "get_score"):  # XGBoost's Booster
        gains = model.get_score(importance_type="total_gain")
        keys = names if model.feature_names is not None else [f"f{j}" for j in range(len(names))]
        values = np.array([gains.get(key, 0.0) for key in keys])
    elif hasattr(model, "feature_importance"):  # LightGBM's Booster
        values = np.asarray(model.feature_importance(importance_type="gain"), np.float64)
    else:
        values = np.asarray(getattr(model, "feature_importances_", ()), np.float64)
    if values.shape != (len(names),) or not np.isfinite(values).all() or values.sum() <= 0:
        return None
    return np.asarray(values / values.sum())


def _column_replacer(X: Any) -> Callable[[Any, int, npt.NDArray[np.intp]], Any] | None:
    """Return a function that shuffles a column of rows like X; None if that is no array, pandas or pyarrow table."""
    if hasattr(X, "iloc"):

        def in_table(rows: Any, j: int, order: npt.NDArray[np.intp]) -> Any:
            rows = rows.copy()
            rows.isetitem(j, rows.iloc[order, j].set_axis(rows.index))
            return rows

        return in_table
    if hasattr(X, "column_names"):

        def in_arrow(rows: Any, j: int, order: npt.NDArray[np.intp]) -> Any:
            return rows.set_column(j, rows.field(j), rows.column(j).take(order))

        return in_arrow
    if isinstance(X, np.ndarray):

        def in_array(rows: Any, j: int, order: npt.NDArray[np.intp]) -> Any:
            rows = rows.copy()
            rows[:, j] = rows[order, j]
            return rows

        return in_array
    return None
