"""The redundancy report: all measures of an ensemble on given samples."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from scboost._arrays import ArrayLike, FloatArray
from scboost._runtime.threads import single_threaded_blas
from scboost.diagnostics import _measures as measures
from scboost.diagnostics import _redundancy_text as text
from scboost.diagnostics._registry import read_ensemble
from scboost.diagnostics._statistics import Statistics, collect_statistics, combine, matrix_statistics
from scboost.diagnostics._target import score
from scboost.diagnostics._tree_matrix import BLOCK_SIZE, TreeMatrix
from scboost.diagnostics.sections.tasks import TaskTarget, check_queries, is_task, task_target

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_CHANCE = 0.1  # expected redundancy of independent trees above which samples are too few: five samples per tree
_NAN = float("nan")


@dataclass(frozen=True)
class RedundancyReport:
    """Redundancy measures of an ensemble on given samples; see :func:`redundancy_report`.

    Attributes
    ----------
    library, model_name : str
    n_samples, n_trees, n_outputs : int
        Trees are counted per output: a model of K classes has ``n_trees * n_outputs`` trees.
    redundancy : float
        Mean over trees of the share of the variance of a tree that lies in the span of the earlier trees.
    disagreement, vote_correlation, correlation : float
        Means over pairs of trees.
    q_statistic, double_fault, tree_score, ensemble_score : float
        Means over pairs; mean share of correct votes of a tree; accuracy or R^2 of the ensemble. NaN without y.
    ambiguity, ambiguity_share : float
        :func:`ambiguity`, and its share of the members' mean squared deviation from the base score, in [0, 1].
        NaN if a weight is negative.
    effective_rank : float
    energy, spectrum, redundancy_ratio, innovation : ndarray of shape (T,)
        By component (the first two) and by tree (the others); ``redundancy`` is the mean of ``redundancy_ratio``.
    correlations : ndarray of shape (T, T)
    truncation : ndarray of shape (T,) or None
        Score of the first 1 .. T trees; None without y.
    score_name : str
        "accuracy", "R2", "NDCG" or "concordance".
    """

    library: str
    model_name: str
    n_samples: int
    n_trees: int
    n_outputs: int
    redundancy: float
    disagreement: float
    vote_correlation: float
    correlation: float
    q_statistic: float
    double_fault: float
    tree_score: float
    ensemble_score: float
    ambiguity: float
    ambiguity_share: float
    effective_rank: float
    energy: FloatArray = field(repr=False)
    spectrum: FloatArray = field(repr=False)
    redundancy_ratio: FloatArray = field(repr=False)
    innovation: FloatArray = field(repr=False)
    correlations: FloatArray = field(repr=False)
    truncation: FloatArray | None = field(repr=False)
    score_name: str = "accuracy"

    @property
    def n_components_90(self) -> int:
        """Number of principal components that explain 90 % of the variance of the trees."""
        return measures.n_components_for(self.energy)

    @property
    def late_redundancy(self) -> float:
        """Mean redundancy of the last tenth of the trees."""
        return float(self.redundancy_ratio[-max(1, self.n_trees // 10) :].mean())

    @property
    def chance_redundancy(self) -> float:
        """Expected redundancy of independent trees on as many samples."""
        return min(0.5 * (self.n_trees - 1) / max(self.n_samples - 1, 1), 1.0)

    @property
    def few_samples(self) -> str:
        """Warning about too few samples for the number of trees; empty if there are enough."""
        if self.chance_redundancy <= _MAX_CHANCE:
            return ""
        return (
            f"{self.n_samples:,} samples are too few for {self.n_trees:,} trees: independent trees would show a "
            f"redundancy of about {text.format_percent(self.chance_redundancy)}. Use at least "
            f"{round(0.5 * (self.n_trees - 1) / _MAX_CHANCE) + 1:,} samples."
        )

    @property
    def verdict(self) -> str:
        """The result in one or two sentences."""
        return text.verdict(self)

    def __str__(self) -> str:
        return text.as_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return text.as_html(self)

    def plot(self, *others: RedundancyReport) -> Figure:
        """Plot spectrum (with those of other reports), correlations, innovation and truncation; return the figure."""
        from scboost.diagnostics._plots import plot_report

        return plot_report(self, *others)


@single_threaded_blas()
def redundancy_report(
    model: object, X: Any, y: ArrayLike | None = None, *, name: str | None = None, qid: ArrayLike | None = None
) -> RedundancyReport:
    """Measure the redundancy of the trees of a fitted ensemble.

    Use held-out samples, and many more samples than trees. For a model with several outputs every measure is computed
    among the trees of one output and averaged over the outputs. Samples are processed in blocks and only sufficient
    statistics are kept, a few (T, T) matrices per output; :func:`scboost.dask.redundancy_report` computes them on the
    workers of a cluster.

    Parameters
    ----------
    model : object
        Any ensemble that :func:`tree_matrix` reads.
    X : array-like or table of shape (n_samples, n_features), or iterator
        An iterator, such as a generator, yields batches X, or pairs (X, y); the data need not fit in memory.
    y : array-like of shape (n_samples,), optional
        Class labels or real targets; adds the measures that need errors. A single class is allowed. For a ranking,
        relevances (with ``qid``), and for a :class:`SCBoostSurvival`, survival times: these add the score of the model,
        NDCG or concordance, and that of its first trees; X is held in memory.
    name : str, optional
        Name of the model in texts and legends; its class name by default.
    qid : array-like of shape (n_samples,), optional
        Queries of the documents of a ranking.

    Returns
    -------
    RedundancyReport
        With a text and an HTML representation, and ``plot()``. For a single tree, pairwise measures are NaN
        ("undefined"), the effective rank is 1 and the redundancy 0. If all trees are constant, correlations are NaN,
        the effective rank is 0 and the redundancy 1.

    Warns
    -----
    UserWarning
        If there are fewer than about five samples per tree: T independent trees have an expected redundancy of
        (T - 1) / (2 (n_samples - 1)).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> X, y = make_classification(400, 5, random_state=0)
    >>> model = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(X[:200], y[:200])
    >>> report = redundancy_report(model, X[200:], y[200:])
    >>> report.n_trees, 1 <= report.effective_rank <= 20
    (20, True)
    """
    ensemble, title = read_ensemble(model), type(model).__name__ if name is None else name
    check_queries(ensemble.task, y, qid)
    if isinstance(X, Iterator):
        if y is not None:
            raise ValueError("y cannot be given with an iterator X; let the iterator yield pairs (X, y).")
        statistics = combine(collect_statistics(ensemble, *_pair(batch)) for batch in X)
    elif is_task(ensemble.task) and y is not None:
        X = ensemble.check(X)
        target = task_target(model, ensemble.task, y, qid, int(X.shape[0]))
        trees = ensemble.matrix(X, np.float32, BLOCK_SIZE)
        report = _with_scores(make_report(matrix_statistics(trees), title), trees, target)
        warn_if_few_samples(report)
        return report
    else:
        statistics = collect_statistics(ensemble, X, y)
    report = make_report(statistics, title)
    warn_if_few_samples(report)
    return report


def _with_scores(report: RedundancyReport, trees: TreeMatrix, target: TaskTarget) -> RedundancyReport:
    """Add the scores of the first 1 .. T trees of a ranking or survival model."""
    path = np.array([target.score(F) for F in trees.staged_margins(np.arange(1, trees.n_trees + 1))])
    return replace(report, truncation=path, ensemble_score=float(path[-1]), score_name=target.score_name)


def _pair(batch: Any) -> tuple[Any, Any]:
    """Return the X and y of a batch; y is None if the batch has none."""
    if not isinstance(batch, tuple):
        return batch, None
    if len(batch) != 2:
        raise ValueError(f"A batch must be X or a pair (X, y), got a tuple of {len(batch)}.")
    return batch


def warn_if_few_samples(report: RedundancyReport) -> None:
    """Warn where the public function was called, if samples are too few for the number of trees."""
    if report.few_samples:
        warnings.warn(report.few_samples, UserWarning, stacklevel=3)


def make_report(statistics: Statistics | None, name: str) -> RedundancyReport:
    """Return the report of a model of the given name from its statistics; None means that there were no samples."""
    if statistics is None:
        raise ValueError("X must have at least one sample, got none.")
    trees, n, with_target = statistics.trees, statistics.values.n, statistics.with_target
    path = None
    if with_target is not None:
        path = score(trees, with_target.staged, n, float(with_target.target.scatter[0, 0]))
    per_output = [_measure(statistics, k) for k in range(trees.n_outputs)]
    mean = {key: np.mean([m[key] for m in per_output], axis=0) for key in per_output[0]}
    numbers: dict[str, Any] = {key: float(value) if np.ndim(value) == 0 else value for key, value in mean.items()}
    return RedundancyReport(
        library=trees.library,
        model_name=name,
        n_samples=n,
        n_trees=trees.n_trees,
        n_outputs=trees.n_outputs,
        truncation=path,
        ensemble_score=_NAN if path is None else float(path[-1]),
        score_name="accuracy" if path is None or trees.is_classifier else "R2",
        **numbers,
    )


def _measure(statistics: Statistics, k: int) -> dict[str, Any]:
    """Return the measures of the trees of output k; shared intermediate results are computed once."""
    n, mean = statistics.values.n, statistics.values.mean[k]
    C = measures.clear_constant(statistics.values.scatter[k] / n, mean)
    R = measures.tree_correlation(C)
    gram = statistics.vote_products[k] / n
    energy = measures.energy_by_component(C)
    redundancy = measures.redundancy_ratio(C)
    trees = statistics.trees.output(k)
    ambiguity, ambiguity_share = _ambiguity(C, mean, trees.column_weights, trees.centers)
    pairs = measures.mean_of_pairs
    q_statistic = double_fault = tree_score = _NAN
    if statistics.with_target is not None:
        correct = statistics.with_target.correct[k]
        table = measures.Contingency.from_counts(n, correct, gram)
        q_statistic, double_fault = pairs(table.q_statistic()), pairs(table.neither)
        tree_score = float(correct.mean() / n)
    return {
        "redundancy": float(redundancy.mean()),
        "disagreement": pairs((1 - gram) / 2),
        "vote_correlation": pairs(measures.correlation_of_votes(statistics.votes[k] / n, gram)),
        "correlation": pairs(R),
        "q_statistic": q_statistic,
        "double_fault": double_fault,
        "tree_score": tree_score,
        "ambiguity": ambiguity,
        "ambiguity_share": ambiguity_share,
        "effective_rank": measures.effective_rank(C, energy=energy),
        "energy": energy,
        "spectrum": measures.singular_spectrum(C, energy=energy),
        "redundancy_ratio": redundancy,
        "innovation": measures.innovation(C, redundancy=redundancy) * trees.column_weights**2,
        "correlations": R,
    }


def _ambiguity(C: FloatArray, mean: FloatArray, w: FloatArray, centers: FloatArray) -> tuple[float, float]:
    """Return :func:`ambiguity` and its share, from the means and the covariance; NaN if a weight is negative."""
    if not (np.all(w >= 0) and w.sum() > 0):
        return _NAN, _NAN
    own, joint = w @ (np.diag(C) + (mean - w @ mean / w.sum()) ** 2), w @ C @ w
    ambiguity = max(float(w.sum() * own - joint), 0.0)
    around_base = ambiguity + float(joint + (w @ (mean - centers)) ** 2)
    return ambiguity, ambiguity / around_base if around_base > 0 else 0.0
