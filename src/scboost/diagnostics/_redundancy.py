"""One report of all measures of an ensemble."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scboost._arrays import ArrayLike, FloatArray
from scboost.diagnostics import _measures as measures
from scboost.diagnostics import _redundancy_text as render
from scboost.diagnostics._registry import read_ensemble
from scboost.diagnostics._statistics import Sums, add_up, sums_of
from scboost.diagnostics._target import score

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
        from scboost.diagnostics._plots import plot_report

        return plot_report(self, *others)


def redundancy_report(model: Any, X: Any, y: ArrayLike | None = None, *, name: str | None = None) -> RedundancyReport:
    """Measure how redundant the trees of a fitted ensemble are.

    Use rows that the model was not fitted on, and many more rows than trees. For a model with several outputs
    every measure is computed among the trees of one output and averaged over outputs. Rows are read block by block and
    only sums are kept, a few (T, T) matrices an output; :func:`scboost.dask.redundancy_report` adds them up over the
    workers of a cluster.

    Parameters
    ----------
    model : object
        Any ensemble :func:`tree_matrix` reads.
    X : array-like or data frame of shape (n, d), or iterator
        An iterator, such as a generator, yields batches of rows, or pairs (rows, y of the rows): it may go through
        more rows than fit in memory.
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
    ensemble = read_ensemble(model)
    if isinstance(X, Iterator):
        if y is not None:
            raise ValueError("y cannot be given with an iterator X: let it yield pairs (rows, y of the rows).")
        sums = add_up(sums_of(ensemble, *_pair(batch)) for batch in X)
    else:
        sums = sums_of(ensemble, X, y)
    return report_of(sums, type(model).__name__ if name is None else name)


def _pair(batch: Any) -> tuple[Any, Any]:
    """Return rows, and their y or None."""
    if not isinstance(batch, tuple):
        return batch, None
    if len(batch) != 2:
        raise ValueError(f"A batch must be rows, or a pair (rows, y of the rows); got a tuple of {len(batch)}.")
    return batch


def report_of(sums: Sums | None, name: str) -> RedundancyReport:
    """Return the report of a model of the given name, from the sums over all its rows (None: it has none)."""
    if sums is None:
        raise ValueError("X has no rows.")
    trees, n, errors = sums.trees, sums.values.n, sums.errors
    K, T = trees.n_outputs, trees.n_trees
    if _MAX_CHANCE * (n - 1) < 0.5 * (T - 1):
        warnings.warn(
            f"{n} rows are few for {T} trees: trees that have nothing in common would show a redundancy of about "
            f"{min(0.5 * (T - 1) / max(n - 1, 1), 1):.0%} by chance; use at least "
            f"{round(0.5 * (T - 1) / _MAX_CHANCE) + 1} rows.",
            UserWarning,
            stacklevel=3,  # where the public function was called
        )
    path = None if errors is None else score(trees, errors.path, n, float(errors.target.scatter[0, 0]))
    per_output = [_measure(sums, k) for k in range(K)]
    mean = {name: np.mean([m[name] for m in per_output], axis=0) for name in per_output[0]}
    numbers: dict[str, Any] = {name: float(value) if np.ndim(value) == 0 else value for name, value in mean.items()}
    return RedundancyReport(
        library=trees.library,
        model_name=name,
        n_rows=n,
        n_trees=T,
        n_outputs=K,
        truncation=path,
        ensemble_score=float("nan") if path is None else float(path[-1]),
        score_name="accuracy" if path is None or trees.classifies else "R2",
        **numbers,
    )


def _measure(sums: Sums, k: int) -> dict[str, Any]:
    """Return the measures of the trees of one output; what they share is computed once."""
    n, mean = sums.values.n, sums.values.mean[k]
    C = measures.clear_constant(sums.values.scatter[k] / n, mean)
    R = measures.tree_correlation(C)
    gram = sums.vote_products[k] / n
    energy = measures.energy_by_component(C)
    redundancy = measures.redundancy_ratio(C)
    trees = sums.trees.output(k)
    w = trees.column_weights
    nan = float("nan")
    spread = share = nan
    if np.all(w >= 0) and w.sum() > 0:
        # measures.ambiguity, and the mean square of the margin around the base, from means and covariance
        own, joint = w @ (np.diag(C) + (mean - w @ mean / w.sum()) ** 2), w @ C @ w
        spread = max(float(w.sum() * own - joint), 0.0)
        around = spread + float(joint + (w @ (mean - trees.centers)) ** 2)
        share = spread / around if around > 0 else 0.0
    pairs = measures.mean_of_pairs
    q_statistic = double_fault = tree_score = nan
    if sums.errors is not None:
        right = sums.errors.right[k]
        table = measures.Contingency.of(n, right, gram)
        q_statistic, double_fault = pairs(table.q_statistic()), pairs(table.neither)
        tree_score = float(right.mean() / n)
    return {
        "redundancy": float(redundancy.mean()),
        "disagreement": pairs((1 - gram) / 2),
        "vote_correlation": pairs(measures.correlation_of_votes(sums.votes[k] / n, gram)),
        "correlation": pairs(R),
        "q_statistic": q_statistic,
        "double_fault": double_fault,
        "tree_score": tree_score,
        "ambiguity": spread,
        "ambiguity_share": share,
        "effective_rank": measures.effective_rank(C, energy=energy),
        "energy": energy,
        "spectrum": measures.singular_spectrum(C, energy=energy),
        "redundancy_ratio": redundancy,
        "innovation": measures.innovation(C, redundancy=redundancy) * w**2,
        "correlations": R,
    }
