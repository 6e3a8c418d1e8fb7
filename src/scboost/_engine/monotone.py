"""Leaf values under monotone constraints."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scboost._arrays import FloatArray, IntArray
from scboost._model.document import Tree


def clip_to_bounds(
    tree: Tree, nodes: IntArray, values: FloatArray, mass: FloatArray, signs: Sequence[int]
) -> FloatArray:
    """Clip recomputed leaf values to monotone bounds.

    A split on a constrained feature puts the mean of its children's values between all leaves on its left and all
    leaves on its right, as XGBoost does for the values that it fits itself.

    Parameters
    ----------
    tree : dict
        The tree.
    nodes : ndarray of shape (n_leaves,)
        Node of each leaf.
    values, mass : ndarray of shape (n_leaves,)
        New value and sum of Hessians of each leaf.
    signs : sequence of int
        Constraint of each feature.
    """
    left, right = tree["left_children"], tree["right_children"]
    total = np.zeros(len(left))
    weight = np.zeros(len(left))
    total[nodes], weight[nodes] = values * mass, mass
    for node in range(len(left) - 1, -1, -1):  # children always come after their parent
        if left[node] != -1:
            total[node] = total[left[node]] + total[right[node]]
            weight[node] = weight[left[node]] + weight[right[node]]
    value = np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)
    value[nodes] = values
    low, high = np.full(len(left), -np.inf), np.full(len(left), np.inf)
    for split in np.flatnonzero(left != -1):
        node = int(split)
        children = int(left[node]), int(right[node])
        for child in children:
            low[child], high[child] = low[node], high[node]
        sign = signs[tree["split_indices"][node]]
        if sign:
            below, above = children if sign > 0 else children[::-1]
            middle = np.clip(value[list(children)], low[node], high[node]).mean()
            high[below], low[above] = middle, middle
    return np.clip(values, low[nodes], high[nodes])
