"""One report of all measures of an ensemble."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scboost._arrays import ArrayLike, BoolArray, FloatArray
from scboost.redundancy import measures, render
from scboost.redundancy.tree_matrix import TreeMatrix, tree_matrix

_MAX_CHANCE = 0.1  # redundancy that chance alone may show without a warning: five rows a tree


@dataclass(frozen=True)
class RedundancyReport:
    """Measures of one ensemble on given rows; see :func:`redundancy_report`.

    Attributes
    ----------
    library, model_name : str
    n_rows, n_trees, n_outputs : int
        Trees are counted per output: a model with K classes has ``n_trees * n_outputs`` trees.
    redundancy : float
        Mean over trees of the share of a tree's variance that lies in the span of the trees before it.
    disagreement, vote_correlation, correlation : float
        Means over pairs of trees.
    q_statistic, double_fault, tree_score, ensemble_score : float
        Means over pairs; mean share of right votes of one tree; accuracy or R^2 of the ensemble. NaN without y.
    ambiguity, ambiguity_share : float
        :func:`ambiguity`, and its share of the members' mean square around the ensemble's base, in [0, 1].
        NaN if a weight is negative.
    effective_rank : float
    energy, spectrum, redundancy_ratio, innovation : ndarray of shape (T,)
        By component (the first two) and by round (the others); ``redundancy`` is the mean of ``redundancy_ratio``.
    correlations : ndarray of shape (T, T)
    truncation : ndarray of shape (T,) or None
        Score of the first 1 .. T trees; None without y.
    score_name : str
        "accuracy" or "R2".
    """

    library: str
    model_name: str
    n_rows: int
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

    def __str__(self) -> str:
        return render.text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return render.html(self)

    def plot(self, *others: RedundancyReport) -> Any:
        """Draw spectrum (against other reports), correlations, innovation and truncation; return the figure."""
        from scboost.plotting import plot_report

        return plot_report(self, *others)


def redundancy_report(model: Any, X: Any, y: ArrayLike | None = None, *, name: str | None = None) -> RedundancyReport:
    """Measure how redundant the trees of a fitted ensemble are.

    Use rows that the model was not fitted on, and many more rows than trees. For a model with several outputs
    every measure is computed among the trees of one output and averaged over outputs.

    Parameters
    ----------
    model : object
        Any ensemble :func:`tree_matrix` reads.
    X : array-like or data frame of shape (n, d)
    y : array-like of shape (n,), optional
        Labels or real targets; adds the measures about errors. A y with one class is allowed: all measures about
        errors stay defined, except the Q-statistic of trees that are always right or wrong.
    name : str, optional
        How to call the model in texts and legends; its class name otherwise.

    Returns
    -------
    RedundancyReport
        With a text and an HTML representation, and ``plot()``. Of a single tree, the measures of pairs are NaN
        ("undefined"), the effective rank 1 and the redundancy 0. If all trees are constant, correlations are NaN,
        the effective rank 0 and the redundancy 1.

    Warns
    -----
    UserWarning
        If rows are few for the number of trees: on n rows, T trees that have nothing in common show a redundancy of
        (T - 1) / (2 (n - 1)) by chance. The warning comes when that is more than 0.1: below five rows a tree.

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
    trees = tree_matrix(model, X)
    n, K, T = len(trees.H), trees.n_outputs, trees.n_trees
    if _MAX_CHANCE * (n - 1) < 0.5 * (T - 1):
        warnings.warn(
            f"{n} rows are few for {T} trees: trees that have nothing in common would show a redundancy of about "
            f"{min(0.5 * (T - 1) / max(n - 1, 1), 1):.0%} by chance; use at least "
            f"{round(0.5 * (T - 1) / _MAX_CHANCE) + 1} rows.",
            UserWarning,
            stacklevel=2,
        )
    correct = path = None
    score_name = "accuracy"
    if y is not None:
        correct, path = measures.correct_votes(trees, y), measures.truncation_path(trees, y)
        score_name = "accuracy" if trees.classifies else "R2"
    per_output = [_measure(trees.output(k), None if correct is None else correct[:, k::K]) for k in range(K)]
    mean = {name: np.mean([m[name] for m in per_output], axis=0) for name in per_output[0]}
    numbers: dict[str, Any] = {name: float(value) if np.ndim(value) == 0 else value for name, value in mean.items()}
    return RedundancyReport(
        library=trees.library,
        model_name=type(model).__name__ if name is None else name,
        n_rows=n,
        n_trees=T,
        n_outputs=K,
        truncation=path,
        ensemble_score=float("nan") if path is None else float(path[-1]),
        score_name=score_name,
        **numbers,
    )


def _measure(trees: TreeMatrix, correct: BoolArray | None) -> dict[str, Any]:
    """Return the measures of an ensemble with one output; what they share is computed once."""
    C = measures.tree_covariance(trees.H)
    R = measures.tree_correlation(C)
    votes = trees.votes()
    gram = measures.vote_gram(votes)
    energy = measures.energy_by_component(C)
    redundancy = measures.redundancy_ratio(C)
    nan = float("nan")
    spread = share = nan
    w = trees.column_weights
    if np.all(w >= 0) and w.sum() > 0:
        spread = measures.ambiguity(trees.H, w, float(trees.intercepts[0])).ambiguity
        around = spread + float(np.mean((trees.margin() - trees.base()) ** 2))
        share = spread / around if around > 0 else 0.0
    pairs = measures.mean_of_pairs
    return {
        "redundancy": float(redundancy.mean()),
        "disagreement": pairs(measures.pairwise_disagreement(votes, gram=gram)),
        "vote_correlation": pairs(measures.vote_correlation(votes, gram=gram)),
        "correlation": pairs(R),
        "q_statistic": nan if correct is None else pairs(measures.q_statistic(correct, gram=gram)),
        "double_fault": nan if correct is None else pairs(measures.double_fault(correct, gram=gram)),
        "tree_score": nan if correct is None else float(correct.mean()),
        "ambiguity": spread,
        "ambiguity_share": share,
        "effective_rank": measures.effective_rank(C, energy=energy),
        "energy": energy,
        "spectrum": measures.singular_spectrum(C, energy=energy),
        "redundancy_ratio": redundancy,
        "innovation": measures.innovation(C, redundancy=redundancy) * w**2,
        "correlations": R,
    }
