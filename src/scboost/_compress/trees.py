"""XGBoost-style trees as dictionaries of arrays: finding leaves, and putting values into them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from scboost._compress.types import Float32, Float64, Indices
from scboost._engine.native import is_available
from scboost._model.document import Tree, leaves, with_leaf_values


def leaf_nodes(tree: Tree) -> Indices:
    """Return the node numbers of the leaves, rising."""
    return np.flatnonzero(leaves(tree))


def n_leaves(tree: Tree) -> int:
    """Return the number of leaves."""
    return int(np.count_nonzero(leaves(tree)))


def split_features(trees: Sequence[Tree]) -> Indices:
    """Return the features on which trees split, rising."""
    used = [tree["split_indices"][~leaves(tree)] for tree in trees]
    return np.unique(np.concatenate([np.zeros(0, np.int32), *used])).astype(np.intp)


def apply_trees(trees: Sequence[Tree], X: Float32) -> Iterator[Indices]:
    """Yield the leaf of each sample for one tree after the other, as :func:`apply_tree` finds it."""
    if not is_available():
        yield from (apply_tree(tree, X) for tree in trees)
        return
    from scboost._engine.native.trees import TreePredictor

    nodes = TreePredictor(list(trees), [0] * len(trees), X.shape[1]).nodes(X)
    for i, tree in enumerate(trees):
        place = np.cumsum(leaves(tree)) - 1
        yield place.take(nodes[:, i])


def apply_tree(tree: Tree, X: Float32) -> Indices:
    """Find the leaf of each sample, as a position in :func:`leaf_nodes`.

    Parameters
    ----------
    tree : Tree
        Numeric splits send ``x < threshold`` left, categorical ones the listed codes right, NaN the default way.
    X : ndarray of shape (n, d)
        Samples, with category codes.

    Returns
    -------
    ndarray of shape (n,)
    """
    left, right = tree["left_children"], tree["right_children"]
    feature, threshold, default_left = tree["split_indices"], tree["split_conditions"], tree["default_left"]
    sets = {
        int(node): tree["categories"][start : start + size]
        for node, start, size in zip(
            tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True
        )
    }
    node = np.zeros(len(X), dtype=np.intp)
    active = np.arange(len(X)) if left[0] != -1 else np.zeros(0, dtype=np.intp)
    while len(active):
        at = node[active]
        x = X[active, feature[at]]
        goes_left = np.where(np.isnan(x), default_left[at] == 1, x < threshold[at])
        for split in np.unique(at[tree["split_type"][at] == 1]) if sets else ():
            here = (at == split) & ~np.isnan(x)
            goes_left[here] = ~np.isin(x[here], sets[int(split)])
        node[active] = at = np.where(goes_left, left[at], right[at])
        active = active[left[at] != -1]
    return np.searchsorted(leaf_nodes(tree), node)


def with_features(tree: Tree, features: Indices, n_features: int) -> Tree:
    """Return a copy of a tree that was grown on some of `n_features` features, with their numbers among all."""
    inner = ~leaves(tree)
    numbers = tree["split_indices"].copy()
    numbers[inner] = features[numbers[inner]]
    return {**tree, "split_indices": numbers, "tree_param": {**tree["tree_param"], "num_feature": str(n_features)}}


def with_values(tree: Tree, values: Float64) -> Tree:
    """Return a copy of a tree with other leaf values, in the order of :func:`leaf_nodes`."""
    by_node = np.zeros(len(tree["left_children"]))
    by_node[leaf_nodes(tree)] = values
    return with_leaf_values(tree, by_node)
