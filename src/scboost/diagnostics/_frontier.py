"""The frontier of an ensemble: held-out loss against the number of trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import ArrayLike, FloatArray, IntArray
from scboost._runtime.threads import single_threaded_blas
from scboost.diagnostics._predictions import Predictions, log_odds_link, predict_from_margin
from scboost.diagnostics._prune import select_trees
from scboost.diagnostics._reweight import WeightingProblem
from scboost.diagnostics._target import check_length
from scboost.diagnostics._tree_matrix import TreeMatrix, check_positive_integer, take_samples, tree_matrix

FIRST_TREES, PRUNE, COMPRESS = "first trees", "prune", "compress"
_MAX_SELECTION = 2_000
_MIN_SAMPLES = 60
_RIDGE = 0.1  # the default of `prune`
_FIRST_SIZES, _SELECTED_SIZES = 120, 10  # points of the curves


@dataclass(frozen=True)
class FrontierTask:
    """Arguments of a method that makes smaller models.

    Attributes
    ----------
    model : object
        The fitted ensemble.
    X_selection, y_selection : array-like
        Samples to select or fit trees on.
    X_evaluation : array-like
        Samples to predict.
    trees : TreeMatrix
        Of the evaluation samples.
    sizes : ndarray of int
        Numbers of trees, increasing.
    """

    model: object
    X_selection: Any
    y_selection: npt.NDArray[Any]
    X_evaluation: Any
    trees: TreeMatrix
    sizes: IntArray


FrontierMethod = Callable[[FrontierTask], Mapping[int, FloatArray]]
"""Returns raw scores of the evaluation samples by number of trees: log-odds, or predictions of y for regression."""


class NotedMargins(dict[int, FloatArray]):
    """What a :data:`FrontierMethod` returns, with a note for the reader.

    Parameters
    ----------
    margins : mapping of int to ndarray
        Raw scores by number of trees.
    note : str
        A sentence or two, such as a certificate.
    """

    def __init__(self, margins: Mapping[int, FloatArray], note: str) -> None:
        super().__init__(margins)
        self.note = note


@dataclass(frozen=True)
class FrontierCurve:
    """Held-out loss of one way to use fewer trees.

    Attributes
    ----------
    n_trees : ndarray of shape (n_sizes,)
        Numbers of trees (per class, if there are more than two), increasing.
    loss, score : ndarray of shape (n_sizes,)
        Mean loss, and accuracy or R^2, on the evaluation samples.
    standard_error : ndarray of shape (n_sizes,)
        Of the difference of the loss from that of all trees.
    """

    n_trees: IntArray
    loss: FloatArray
    score: FloatArray
    standard_error: FloatArray

    def at(self, size: int) -> int:
        """Return the position of a number of trees."""
        return int(np.searchsorted(self.n_trees, size))

    def trees_needed(self, loss: float) -> int | None:
        """Return the smallest number of trees with at most this loss; None if there is no such number."""
        enough = np.flatnonzero(self.loss <= loss)
        return int(self.n_trees[enough[0]]) if len(enough) else None


@dataclass(frozen=True)
class Frontier:
    """Held-out loss against the number of trees, for each way to use fewer trees; see :func:`frontier`.

    Attributes
    ----------
    loss_name, score_name : str
        "log-loss", "error rate" or "squared error"; "accuracy" or "R2".
    n_trees : int
        Number of trees of the model.
    loss, score : float
        Of all trees.
    curves : dict of str to FrontierCurve
        "first trees" is the truncated ensemble, "prune" the trees selected by :func:`prune`, and "compress" the new
        trees of :func:`scboost.compress`.
    unavailable : dict of str to str
        Methods that could not be applied, with the reason.
    notes : dict of str to str
        What methods say about their largest model: "compress" its certificate.
    n_selection, n_evaluation : int
        Samples on which trees were selected, and samples on which all curves were evaluated.
    best_truncation : int
        Number of first trees with the lowest loss.
    overfitting, overfitting_error : float
        Excess of the loss of all trees over that, and the standard error of the difference; 0 for a forest, whose
        trees have no order.
    sufficient : int or None
        Fewest selected trees whose loss is within one standard error of the lowest of the model and all selections;
        None if there is no such number.
    """

    loss_name: str
    score_name: str
    n_trees: int
    loss: float
    score: float
    curves: dict[str, FrontierCurve]
    unavailable: dict[str, str]
    notes: dict[str, str]
    n_selection: int
    n_evaluation: int
    best_truncation: int
    overfitting: float
    overfitting_error: float
    sufficient: int | None

    @property
    def overfits(self) -> bool:
        """Whether truncation lowers the loss by more than two standard errors."""
        return self.best_truncation < self.n_trees and self.overfitting > 2 * self.overfitting_error

    def to_dict(self) -> dict[str, Any]:
        """Return the curves as lists of plain numbers, by name."""
        return {
            name: {field: np.asarray(value).tolist() for field, value in vars(curve).items()}
            for name, curve in self.curves.items()
        }


@single_threaded_blas()
def frontier(
    model: object,
    X: Any,
    y: ArrayLike,
    *,
    sizes: Sequence[int] | None = None,
    methods: Mapping[str, FrontierMethod] | None = None,
    random_state: int = 0,
) -> Frontier:
    """Compute the held-out loss of a fitted ensemble against the number of trees.

    The number of trees needed for a given loss is a measure of redundancy that does not depend on the learning rate.
    Trees are selected on at most half of the samples; all curves are evaluated on the others.

    Parameters
    ----------
    model : object
        Any ensemble that :func:`tree_matrix` reads.
    X : array-like or table of shape (n_samples, n_features)
        Held-out samples, at least 60 if trees are to be selected.
    y : array-like of shape (n_samples,)
        Class labels or real targets.
    sizes : sequence of int, optional
        Numbers of trees, at most that of the model; about ten, equally spaced on a log scale, by default.
    methods : mapping of str to callable, optional
        Further ways to make smaller models, besides "prune" and "compress": name and a function of a
        :class:`FrontierTask` that returns raw scores of the evaluation samples by number of trees (log-odds for
        classifiers). A method that raises ValueError is listed as unavailable.
    random_state : int, default=0
        Seed of the split into samples for selection and evaluation.

    Returns
    -------
    Frontier

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> X, y = make_classification(800, 5, random_state=0)
    >>> model = GradientBoostingClassifier(n_estimators=50, random_state=0).fit(X[:400], y[:400])
    >>> found = frontier(model, X[400:], y[400:], sizes=[5, 10, 50])
    >>> found.curves["prune"].n_trees
    array([ 5, 10, 50])
    """
    trees = tree_matrix(model, X)
    y = check_length(y, len(trees.H))
    return compute_frontier(model, X, y, trees, np.random.default_rng(random_state), sizes=sizes, methods=methods)


def compute_frontier(
    model: object,
    X: Any,
    y: npt.NDArray[Any],
    trees: TreeMatrix,
    rng: np.random.Generator,
    *,
    sizes: Sequence[int] | None = None,
    methods: Mapping[str, FrontierMethod] | None = None,
) -> Frontier:
    """Compute :func:`frontier` from the tree matrix of all samples."""
    n = len(trees.H)
    selected_sizes = _check_sizes(sizes, trees.n_trees)
    order = rng.permutation(n)
    n_selection = min(n // 2, _MAX_SELECTION)
    selection, evaluation = order[:n_selection], np.sort(order[n_selection:])
    rows = replace(trees, H=trees.H[evaluation])
    methods = {**_METHODS, **(methods or {})}
    margins: dict[str, Mapping[int, FloatArray]] = {}
    unavailable: dict[str, str] = {}
    for name, method in methods.items():
        if n < _MIN_SAMPLES:
            unavailable[name] = f"{n} samples are too few to select trees on some and evaluate on others"
            continue
        X_selection, X_evaluation = take_samples(X, selection), take_samples(X, evaluation)
        task = FrontierTask(model, X_selection, y[selection], X_evaluation, rows, selected_sizes)
        try:
            margins[name] = method(task)
        except ValueError as error:
            unavailable[name] = str(error)
    if not margins:
        n_selection, evaluation, rows = 0, np.arange(n), trees
    first_sizes = selected_sizes
    if sizes is None:
        first_sizes = np.union1d(_log_spaced(trees.n_trees, _FIRST_SIZES), selected_sizes)
    return _evaluate(rows, y[evaluation], first_sizes, margins, unavailable, n_selection)


def _check_sizes(sizes: Sequence[int] | None, T: int) -> IntArray:
    if sizes is None:
        return _log_spaced(T, _SELECTED_SIZES)
    checked = np.unique([check_positive_integer("sizes", size) for size in sizes])
    if not len(checked) or checked[-1] > T:
        raise ValueError(f"sizes must hold numbers of trees from 1 to {T}, got {list(sizes)!r}.")
    return np.asarray(checked)


def _log_spaced(T: int, n_sizes: int) -> IntArray:
    return np.unique(np.geomspace(1, T, n_sizes).round().astype(np.intp))


def pruned_margins(task: FrontierTask) -> dict[int, FloatArray]:
    """Return the raw scores of the trees that :func:`prune` selects; see :data:`FrontierMethod`."""
    problem = WeightingProblem.from_model(task.model, task.X_selection, task.y_selection, None, 0.0)
    trees, K = task.trees, task.trees.n_outputs
    margins: dict[int, FloatArray] = {}
    for size, solution in zip(task.sizes, select_trees(problem, task.sizes.tolist(), "backward", _RIDGE), strict=True):
        w = trees.column_weights.reshape(trees.n_trees, K) * (solution.factors * problem.scale)[:, None]
        F = np.stack([trees.H[:, k::K] @ w[:, k] for k in range(K)], axis=1) + solution.intercept
        margins[int(size)] = F[:, 0] if K == 1 else F
    return margins


_METHODS: dict[str, FrontierMethod] = {PRUNE: pruned_margins}


def register_frontier_method(name: str, method: FrontierMethod) -> None:
    """Add a way to make smaller models to all frontiers and reports; one of the same name is replaced."""
    _METHODS[name] = method


@dataclass(frozen=True)
class _Losses:
    """Losses of the evaluation samples of one method, by number of trees."""

    sizes: IntArray
    pointwise: list[FloatArray]
    scores: list[float]

    @classmethod
    def of(cls, sizes: Sequence[int] | IntArray, predictions: Sequence[Predictions]) -> _Losses:
        losses = [one.pointwise_loss() for one in predictions]
        return cls(np.asarray(sizes, np.intp), losses, [one.score() for one in predictions])

    def curve(self, full: FloatArray) -> FrontierCurve:
        means = np.array([loss.mean() for loss in self.pointwise])
        errors = np.array([_standard_error(loss - full) for loss in self.pointwise])
        return FrontierCurve(self.sizes, means, np.array(self.scores), errors)


def _standard_error(difference: FloatArray) -> float:
    return float(difference.std() / np.sqrt(len(difference)))


def _evaluate(
    rows: TreeMatrix,
    y: npt.NDArray[Any],
    first_sizes: IntArray,
    margins: Mapping[str, Mapping[int, FloatArray]],
    unavailable: dict[str, str],
    n_selection: int,
) -> Frontier:
    """Evaluate all curves on the evaluation samples."""
    full = predict_from_margin(rows, rows.margin(), y)
    truncated = _Losses.of(first_sizes, [predict_from_margin(rows, F, y) for F in rows.staged_margins(first_sizes)])
    selected: dict[str, _Losses] = {}
    for name, by_size in margins.items():
        found = [predict_from_margin(rows, by_size[size], y, link=log_odds_link(rows)) for size in sorted(by_size)]
        if full.probability is None:  # all curves must show the same loss
            found = [replace(one, probability=None) for one in found]
        selected[name] = _Losses.of(sorted(by_size), found)
    full_loss = full.pointwise_loss()
    best = int(np.argmin([loss.mean() for loss in truncated.pointwise]))
    is_forest = rows.average and np.ptp(rows.column_weights) == 0
    difference = np.zeros_like(full_loss) if is_forest else full_loss - truncated.pointwise[best]
    curves = {name: losses.curve(full_loss) for name, losses in selected.items()}
    return Frontier(
        loss_name=full.loss_name,
        score_name=full.score_name,
        n_trees=rows.n_trees,
        loss=float(full_loss.mean()),
        score=full.score(),
        curves={FIRST_TREES: truncated.curve(full_loss), **curves},
        unavailable=unavailable,
        notes={name: by_size.note for name, by_size in margins.items() if isinstance(by_size, NotedMargins)},
        n_selection=n_selection,
        n_evaluation=len(full_loss),
        best_truncation=int(first_sizes[best]),
        overfitting=float(difference.mean()),
        overfitting_error=_standard_error(difference),
        sufficient=_sufficient(full_loss, [one for name, one in selected.items() if name != COMPRESS]),
    )


def _sufficient(full: FloatArray, selected: Sequence[_Losses]) -> int | None:
    """Return the fewest trees whose loss is within one standard error of the lowest; None if there are none."""
    candidates = [(int(size), loss) for one in selected for size, loss in zip(one.sizes, one.pointwise, strict=True)]
    lowest = min([full, *(loss for _, loss in candidates)], key=np.mean)
    sizes = [size for size, loss in candidates if (loss - lowest).mean() <= _standard_error(loss - lowest)]
    return min(sizes) if sizes else None
