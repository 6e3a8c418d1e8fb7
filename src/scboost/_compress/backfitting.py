"""Backfitting: each tree is grown again on what all other trees leave of the teacher."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scboost._compress.grower import Grower
from scboost._compress.leaves import JointFit
from scboost._compress.student import Problem
from scboost._compress.trees import apply_trees, n_leaves
from scboost._compress.types import Float64
from scboost._model.document import Tree

_PASSES = 2
_TOLERANCE, _STEPS = 3e-2, 1  # of the joint fit after a pass


def backfit(trees: list[Tree], fit: JointFit, grower: Grower, validation: Problem) -> tuple[list[Tree], JointFit]:
    """Grow all trees again in some passes, and return those with the lowest divergence on validation samples.

    A tree is grown when only the trees before it exist. Grown again, it fits what all the others leave: what later
    trees found need not be in it. A pass goes from the last round to the first, the next one back, and all leaf values
    are refitted jointly after each pass.

    Parameters
    ----------
    trees : list of Tree
        Trees of the K outputs of a round after each other.
    fit : JointFit
        Their joint fit.
    grower : Grower
        Grows trees on the fitted samples.
    validation : Problem
        Samples that select among the passes.

    Returns
    -------
    list of Tree, JointFit
        The given objects themselves if no pass is better; they are not changed.
    """
    best, lowest = (trees, fit), _divergence(trees, fit, validation)
    rounds = list(range(len(trees) // fit.leaves.n_outputs))
    for _ in range(_PASSES):
        rounds.reverse()
        trees, fit = grow_again(trees, fit, grower, rounds)
        fit.refit(_TOLERANCE, _STEPS)
        divergence = _divergence(trees, fit, validation)
        if divergence < lowest:
            best, lowest = (trees, fit), divergence
    return best


def grow_again(
    trees: Sequence[Tree], fit: JointFit, grower: Grower, rounds: Sequence[int]
) -> tuple[list[Tree], JointFit]:
    """Grow the trees of some rounds again, one round after the other; return all trees and their fit.

    The leaf values of a new tree are those of a Newton step, given all other trees.
    """
    trees, K = list(trees), fit.leaves.n_outputs
    for t in rounds:
        places = range(t * K, (t + 1) * K)
        fit = fit.without_values(places)
        for i, (tree, leaf) in zip(places, grower.grow(*fit.gradient_hessian()), strict=True):
            trees[i] = tree
            fit.replace_tree(i, leaf, n_leaves(tree))
        fit.fit_trees(places)
    return trees, fit


def _divergence(trees: Sequence[Tree], fit: JointFit, validation: Problem) -> float:
    F: Float64 = np.repeat(fit.intercept[:, None], len(validation.X), axis=1)
    values = np.split(fit.leaf_values, np.cumsum(fit.leaves.sizes)[:-1])
    for leaf, value, k in zip(apply_trees(trees, validation.X), values, fit.leaves.outputs, strict=True):
        F[k] += value.take(leaf)
    return float(fit.family.divergence(F, validation.target).mean())
