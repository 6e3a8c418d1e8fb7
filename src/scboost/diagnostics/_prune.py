"""Prune a fitted ensemble of any library to a small weighted subset of its trees.

All trees are re-weighted first. Then trees are selected whose weighted sum approximates the raw score of the
re-weighted ensemble: pruning fits the ensemble rather than the labels, and so does not fit the noise of the labels a
second time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from scboost._arrays import ArrayLike
from scboost._core.losses import SquaredLoss
from scboost._runtime.threads import single_threaded_blas
from scboost.diagnostics._reweight import FloatArray, Reweighted, Solution, WeightingProblem
from scboost.diagnostics._tree_matrix import check_positive_integer

# Samples predicted with high confidence have a small weight, but not zero: their raw scores must stay large.
_MIN_HESSIAN = 1e-3
# Small, because the approximated raw scores carry no noise; above 0, which makes the optimum unique.
_APPROXIMATION_RIDGE = 0.003


@single_threaded_blas()
def prune(
    model: object,
    X_val: Any,
    y_val: ArrayLike,
    *,
    max_trees: int,
    selection: Literal["backward", "lasso"] = "backward",
    covariance_penalty: float = 0.0,
    ridge: float = 0.1,
    sample_weight: ArrayLike | None = None,
) -> Reweighted:
    """Prune a fitted ensemble to at most ``max_trees`` trees with new weights.

    First :func:`reweight` all trees; then select trees, and weights for them, whose sum approximates the raw scores of
    the re-weighted ensemble on the same samples.

    Parameters
    ----------
    model, X_val, y_val, covariance_penalty, ridge, sample_weight
        As for :func:`reweight`.
    max_trees : int
        Maximum number of trees, at least 1; per class (boosting rounds) if there are more than two classes.
    selection : {"backward", "lasso"}, default="backward"
        "backward" removes one tree at a time, the one whose removal increases the error least after refitting the
        others; "lasso" takes the first trees of the non-negative lasso path, on which copies of a tree enter together.

    Returns
    -------
    Reweighted
        ``model`` has at most ``max_trees`` trees. Printing the result shows the verdict.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = make_classification(400, 5, random_state=0)
    >>> forest = RandomForestClassifier(n_estimators=20, random_state=0).fit(X[:200], y[:200])
    >>> len(prune(forest, X[200:], y[200:], max_trees=5).kept)
    5
    """
    max_trees = check_positive_integer("max_trees", max_trees)
    if selection not in {"backward", "lasso"}:
        raise ValueError(f"selection must be 'backward' or 'lasso', got {selection!r}.")
    problem = WeightingProblem.from_model(model, X_val, y_val, sample_weight, covariance_penalty)
    return problem.write(model, select_trees(problem, [max_trees], selection, ridge)[0])


def select_trees(problem: WeightingProblem, sizes: Sequence[int], selection: str, ridge: float) -> list[Solution]:
    """Select and weight trees for several sizes, at little more than the cost of one.

    Parameters
    ----------
    problem : WeightingProblem
        The trees and the target.
    sizes : sequence of int
        Maximum numbers of trees.
    selection, ridge
        As for :func:`prune`.

    Returns
    -------
    list of Solution
        In the order of the sizes.
    """
    full = problem.solve_nonnegative(problem.y, ridge)
    needed = sorted({size for size in sizes if size < np.count_nonzero(full.factors)}, reverse=True)
    solutions: dict[int, Solution] = {}
    if needed:
        F = problem.margin(full)
        G, c = _approximation(problem, F)
        target = problem.predict(F)
        select = _backward_elimination if selection == "backward" else _lasso
        for size, kept in zip(needed, select(G, c, needed), strict=True):
            solutions[size] = problem.solve_nonnegative(target, _APPROXIMATION_RIDGE, kept)
    return [solutions.get(size, full) for size in sizes]


def _approximation(problem: WeightingProblem, F: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return G and c of u'Gu / 2 - c'u: least squares to the raw scores F, weighted by the Hessian of the loss at F."""
    p = problem.predict(F).reshape(F.shape)
    hessian = np.ones_like(F) if isinstance(problem.loss, SquaredLoss) else p * (1 - p)
    v = problem.sample_weight[:, None] * np.maximum(hessian, _MIN_HESSIAN)
    v /= v.sum(axis=0)
    G, c = np.zeros((problem.T, problem.T)), np.zeros(problem.T)
    for k in range(F.shape[1]):
        centred = problem.A[:, k] - v[:, k] @ problem.A[:, k]
        weighted = centred * v[:, k, None]
        G += centred.T @ weighted
        c += weighted.T @ (F[:, k] - v[:, k] @ F[:, k])
    # Shrinks the factors towards 1; makes G invertible when trees are linearly dependent.
    ridge = max(0.1 * float(np.mean(np.diag(G))), np.finfo(float).tiny)
    G[np.diag_indices_from(G)] += ridge
    return G, c + ridge


def _backward_elimination(G: FloatArray, c: FloatArray, sizes: Sequence[int]) -> Iterator[npt.NDArray[np.intp]]:
    """Remove columns of the problem u'Gu / 2 - c'u one by one, negative factors first, and yield those left.

    Removing column j and refitting the others increases the objective by u_j^2 / (2 (G^-1)_jj).
    """
    inverse = np.linalg.inv(G)
    u = inverse @ c
    left = np.arange(len(c))
    for size in sizes:
        while len(left) > size:
            j = int(np.argmin(u)) if u.min() <= 0 else int(np.argmin(u**2 / np.diag(inverse)))
            column = inverse[:, j] / inverse[j, j]
            u = u - column * u[j]
            inverse = inverse - np.outer(column, inverse[j])
            keep = np.arange(len(left)) != j
            left, u, inverse = left[keep], u[keep], inverse[np.ix_(keep, keep)]
        yield left


def _lasso(G: FloatArray, c: FloatArray, sizes: Sequence[int]) -> Iterator[npt.NDArray[np.intp]]:
    """Yield the columns of the last step of the non-negative lasso path that has at most as many, for each size."""
    from sklearn.linear_model import lars_path_gram

    path = np.zeros((len(c), 1))
    if c.max() > 0:
        unit = 1 / np.sqrt(np.diag(G).mean())
        _, _, path = lars_path_gram(c * unit, G * unit**2, n_samples=1, method="lasso", positive=True)
    for size in sizes:
        steps = np.flatnonzero((path > 0).sum(axis=0) <= size)
        chosen = np.flatnonzero(path[:, steps[-1]] > 0)
        yield chosen if len(chosen) else np.array([int(np.argmax(c))])
