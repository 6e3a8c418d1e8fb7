"""Replace a fitted ensemble of any library by a smaller weighted one.

All trees are re-weighted first; then few trees are looked for whose weighted sum comes closest to that of all: pruning
imitates the re-weighted ensemble, not the labels, and so does not fit their noise a second time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from scboost._arrays import ArrayLike
from scboost.boosting.losses import SquaredLoss
from scboost.diagnostics._reweight import FloatArray, Found, Problem, Reweighted
from scboost.diagnostics._tree_matrix import positive_integer

# Rows the ensemble is sure of hardly count in the imitation, but not nothing: their margins must stay large.
_MIN_CURVATURE = 1e-3
# Small, because the margins that are imitated carry no noise; above 0, which makes the optimum unique.
_IMITATION_PULL = 0.003


def prune(
    model: Any,
    X_val: Any,
    y_val: ArrayLike,
    *,
    max_trees: int,
    selection: Literal["backward", "lasso"] = "backward",
    covariance_penalty: float = 0.0,
    pull: float = 0.1,
    sample_weight: ArrayLike | None = None,
) -> Reweighted:
    """Replace a fitted ensemble by a smaller weighted one that predicts held-out rows about as well.

    First :func:`reweight` all trees; then choose trees, and weights for them, whose sum imitates the margins of the
    re-weighted ensemble on the same rows.

    Parameters
    ----------
    model, X_val, y_val, covariance_penalty, pull, sample_weight
        As for :func:`reweight`.
    max_trees : int
        Trees to keep at most, at least 1. With several classes: trees per class (rounds).
    selection : {"backward", "lasso"}, default="backward"
        "backward" drops one tree after the other, each time the one whose loss the others repair best;
        "lasso" takes the first trees of the non-negative lasso path, on which copies of a tree come together.

    Returns
    -------
    Reweighted

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = make_classification(400, 5, random_state=0)
    >>> forest = RandomForestClassifier(n_estimators=20, random_state=0).fit(X[:200], y[:200])
    >>> len(prune(forest, X[200:], y[200:], max_trees=5).kept)
    5
    """
    max_trees = positive_integer("max_trees", max_trees)
    if selection not in {"backward", "lasso"}:
        raise ValueError(f"selection must be 'backward' or 'lasso', got {selection!r}.")
    problem = Problem.of(model, X_val, y_val, sample_weight, covariance_penalty)
    return problem.write(model, shrink(problem, [max_trees], selection, pull)[0])


def shrink(problem: Problem, sizes: Sequence[int], selection: str, pull: float) -> list[Found]:
    """Find which trees to keep, and their weights, for several numbers of trees at the cost of little more than one.

    Parameters
    ----------
    problem : Problem
        What the weighted trees should predict.
    sizes : sequence of int
        Trees to keep at most.
    selection, pull
        As for :func:`prune`.

    Returns
    -------
    list of Found
        In the order of the sizes.
    """
    whole = problem.nonnegative(problem.y, pull)
    needed = sorted({size for size in sizes if size < np.count_nonzero(whole.factors)}, reverse=True)
    small: dict[int, Found] = {}
    if needed:
        F = problem.margin(whole)
        G, c = _imitation(problem, F)
        target = problem.predict(F)
        for size, kept in zip(needed, (_eliminate if selection == "backward" else _lasso)(G, c, needed), strict=True):
            small[size] = problem.nonnegative(target, _IMITATION_PULL, kept)
    return [small.get(size, whole) for size in sizes]


def _imitation(problem: Problem, F: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return G and c of u'Gu / 2 - c'u: imitate the margins F, in the metric of the loss's curvature at F."""
    p = problem.predict(F).reshape(F.shape)
    curvature = np.ones_like(F) if isinstance(problem.loss, SquaredLoss) else p * (1 - p)
    v = problem.sample_weight[:, None] * np.maximum(curvature, _MIN_CURVATURE)
    v /= v.sum(axis=0)
    G, c = np.zeros((problem.T, problem.T)), np.zeros(problem.T)
    for k in range(F.shape[1]):
        centred = problem.A[:, k] - v[:, k] @ problem.A[:, k]
        weighted = centred * v[:, k, None]
        G += centred.T @ weighted
        c += weighted.T @ (F[:, k] - v[:, k] @ F[:, k])
    # Pulls equal trees towards equal factors; makes G invertible when trees repeat each other.
    ridge = max(0.1 * float(np.mean(np.diag(G))), np.finfo(float).tiny)
    G[np.diag_indices_from(G)] += ridge
    return G, c + ridge


def _eliminate(G: FloatArray, c: FloatArray, sizes: Sequence[int]) -> Iterator[npt.NDArray[np.intp]]:
    """Drop columns of the least-squares problem u'Gu / 2 - c'u one by one, negative factors first, down to each size.

    Dropping column j and re-fitting the others raises the objective by u_j^2 / (2 (G^-1)_jj).
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
    """Find the columns of the non-negative lasso path's last step with at most as many of them, for each size."""
    from sklearn.linear_model import lars_path_gram

    path = np.zeros((len(c), 1))
    if c.max() > 0:
        unit = 1 / np.sqrt(np.diag(G).mean())
        _, _, path = lars_path_gram(c * unit, G * unit**2, n_samples=1, method="lasso", positive=True)
    for size in sizes:
        steps = np.flatnonzero((path > 0).sum(axis=0) <= size)
        chosen = np.flatnonzero(path[:, steps[-1]] > 0)
        yield chosen if len(chosen) else np.array([int(np.argmax(c))])
