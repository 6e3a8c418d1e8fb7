"""Is a model document sound? Asked before XGBoost reads a file, and before anything is changed in a foreign model.

XGBoost believes what it reads: a child that does not exist, or two nodes that are each other's children, end in a
crash or in an endless loop. Every number that XGBoost follows, or takes for a length, is checked here first.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from scboost._arrays import IntArray

if TYPE_CHECKING:
    from scboost._model.document import Document, Tree

LEAF = -1  # in place of a child
ROOT_PARENT = np.iinfo(np.int32).max

BY_NODE = {
    "base_weights": np.float32,
    "default_left": np.uint8,
    "left_children": np.int32,
    "loss_changes": np.float32,
    "parents": np.int32,
    "right_children": np.int32,
    "split_conditions": np.float32,
    "split_indices": np.int32,
    "split_type": np.uint8,
    "sum_hessian": np.float32,
}
BY_CATEGORY_SPLIT = {"categories_nodes": np.int32, "categories_segments": np.int64, "categories_sizes": np.int64}
BY_CATEGORY = {"categories": np.int32}
_DELETED = np.iinfo(np.int32).max  # split index of a node that pruning has taken out of its tree
_MOST_CATEGORIES = 1 << 24  # beyond, XGBoost could not tell them apart as float32
_CATEGORICAL = 1  # split type


class _UnsoundError(ValueError):
    pass


def check(document: Document) -> None:
    """Check that a model is one that XGBoost can read and predict with.

    Parameters
    ----------
    document : Document
        Decoded; nothing about it is trusted.

    Raises
    ------
    ValueError
        Says that the model is corrupt, and where; or that it is of a kind that is not supported.
    """
    try:
        _check(document)
    except _UnsoundError as error:
        raise ValueError(f"The XGBoost model is corrupt: {error}") from error
    except (AttributeError, KeyError, IndexError, TypeError, OverflowError) as error:
        raise ValueError(f"The XGBoost model is corrupt: {type(error).__name__} {error}") from error


def _check(document: Document) -> None:
    learner = document.learner
    _require(isinstance(learner, dict), "it has no learner")
    numbers = document.content["version"]
    _require(isinstance(numbers, list) and len(numbers) == 3, "version is not a list of three numbers")
    _require(all(type(n) is int and 0 <= n < 1000 for n in numbers), "version is not a list of three numbers")
    attributes = learner["attributes"]
    _require(isinstance(attributes, dict), "its attributes are not an object")
    _require(all(isinstance(text, str) for text in attributes.values()), "an attribute is not a text")
    d = _integer(learner["learner_model_param"]["num_feature"], "num_feature", 0, np.iinfo(np.int32).max)
    for name in ("num_class", "num_target"):
        _integer(learner["learner_model_param"][name], name, 0, np.iinfo(np.int32).max)
    for name in ("feature_names", "feature_types"):
        texts = learner[name]
        _require(isinstance(texts, list) and len(texts) in {0, d}, f"{name} are not those of {d} columns")
        _require(all(isinstance(text, str) for text in texts), f"{name} are not texts")
    K = document.n_outputs
    _check_base_score(learner["learner_model_param"]["base_score"], K)
    model = document.model
    _require(learner["gradient_booster"]["name"] in {"gbtree", "dart"}, "its booster has no known name")
    trees = model["trees"]
    _require(isinstance(trees, list), "its trees are not a list")
    T = len(trees)
    stated = _integer(model["gbtree_model_param"]["num_trees"], "num_trees", 0, np.iinfo(np.int32).max)
    _require(stated == T, f"num_trees is {stated} but there are {T} trees")
    outputs = _integers(model["tree_info"], "tree_info", T)
    _require(bool(((outputs >= 0) & (outputs < K)).all()), f"a tree is of an output outside of 0 to {K - 1}")
    rounds = _integers(model["iteration_indptr"], "iteration_indptr")
    _require(len(rounds) >= 1 and rounds[0] == 0 and rounds[-1] == T, f"its rounds do not cover the {T} trees")
    _require(bool((np.diff(rounds) >= 0).all()), "its rounds are out of order")
    factors = document.tree_weights
    _require(factors.shape == (T,) and bool(np.isfinite(factors).all()), f"weight_drop is not {T} finite numbers")
    sizes = _table_sizes(model.get("cats"), d)
    for i, tree in enumerate(trees):
        try:
            _check_tree(tree, d, sizes)
        except _UnsoundError as error:
            raise _UnsoundError(f"in tree {i}, {error}") from error


def base_scores(text: str) -> list[float]:
    """Read the intercepts, which XGBoost stores as text."""
    return [float(part) for part in text.strip("[]").split(",")]


def _check_base_score(text: Any, K: int) -> None:
    _require(isinstance(text, str) and len(text) < 64 * (K + 1), "base_score is not a text of the right length")
    try:
        values = np.array(base_scores(text))
    except ValueError as error:
        raise _UnsoundError(f"base_score {text!r} is not made of numbers") from error
    _require(len(values) in {1, K}, f"base_score has {len(values)} numbers for {K} outputs")
    _require(bool(np.isfinite(values).all()), f"base_score {text!r} is not finite")


def _check_tree(tree: Any, d: int, table_sizes: IntArray | None) -> None:
    _require(isinstance(tree, dict), "there is no object")
    stated = {name: _integer(text, name, 0, np.iinfo(np.int32).max) for name, text in tree["tree_param"].items()}
    if stated["size_leaf_vector"] > 1:
        raise ValueError("XGBoost's multi_strategy='multi_output_tree' is not supported.")
    n = stated["num_nodes"]
    _require(n > 0, "there are no nodes")
    for name, dtype in BY_NODE.items():
        array = tree[name]
        _require(isinstance(array, np.ndarray) and array.dtype == dtype, f"{name} is not an array of {dtype.__name__}")
        _require(array.shape == (n,), f"{name} has {array.size} entries for {n} nodes")
    left, right, parents = tree["left_children"], tree["right_children"], tree["parents"]
    inner = left != LEAF
    _require(bool(((right != LEAF) == inner).all()), "a node has one child only")
    _require(not n or parents[0] in {ROOT_PARENT, -1}, "the first node is not the root")
    children = np.concatenate([left[inner], right[inner]])
    _require(
        not children.size or (children.min() > 0 and children.max() < n), f"a child is not one of nodes 1 to {n - 1}"
    )
    deleted = tree["split_indices"] == _DELETED
    n_deleted = np.count_nonzero(deleted)
    _require(stated["num_deleted"] == n_deleted, f"num_deleted is {stated['num_deleted']}, not {n_deleted}")
    _require(not (deleted & inner).any() and not deleted[children].any(), "a deleted node has a child or a parent")
    seen = np.bincount(children, minlength=n)
    alive = ~deleted
    _require(seen[0] == 0 and bool((seen[1:] == alive[1:]).all()), "a node has not exactly one parent")
    numbers = np.flatnonzero(inner).astype(parents.dtype)
    _require(bool((parents[children] == np.tile(numbers, 2)).all()), "parents and children disagree")
    _require(
        not deleted[0] and _reached(left, right) == np.count_nonzero(alive), "a node cannot be reached from the root"
    )
    columns = tree["split_indices"][alive]
    _require(columns.min() >= 0 and columns.max() < max(d, 1), f"a split is on none of the {d} columns")
    _require(bool((tree["default_left"] <= 1).all()), "default_left is neither 0 nor 1")
    by_category = inner & (tree["split_type"] == _CATEGORICAL)
    _require(bool((tree["split_type"] <= 1).all()), "split_type is neither 0 nor 1")
    _require(
        bool(np.isfinite(tree["split_conditions"][alive & ~by_category]).all()), "a threshold or leaf is not finite"
    )
    _check_category_splits(tree, np.flatnonzero(by_category), table_sizes)


def _reached(left: IntArray, right: IntArray) -> int:
    """Count the nodes below the root, itself included, of a tree whose nodes have one parent each."""
    count, level = 1, np.zeros(1, dtype=np.intp)
    while (level := level[left[level] != LEAF]).size:
        level = np.concatenate([left[level], right[level]]).astype(np.intp)
        count += len(level)
    return count


def _check_category_splits(tree: Tree, expected: IntArray, table_sizes: IntArray | None) -> None:
    for name, dtype in {**BY_CATEGORY_SPLIT, **BY_CATEGORY}.items():
        array = tree[name]
        _require(isinstance(array, np.ndarray) and array.dtype == dtype, f"{name} is not an array of {dtype.__name__}")
        _require(array.ndim == 1, f"{name} is not a vector")
        _require(name == "categories" or len(array) == len(expected), f"{name} does not match the category splits")
    _require(bool((tree["categories_nodes"] == expected).all()), "categories_nodes are not the nodes split by category")
    categories, starts, sizes = tree["categories"], tree["categories_segments"], tree["categories_sizes"]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    _require(not len(sizes) or sizes.min() >= 0, "a set of categories has a negative size")
    _require(
        bool((starts == ends[:-1]).all()) and ends[-1] == len(categories), "the sets of categories are out of order"
    )
    _require(not categories.size or categories.min() >= 0, "a category is negative")
    columns = tree["split_indices"][expected]
    most = np.full(len(expected), _MOST_CATEGORIES) if table_sizes is None else table_sizes[columns]
    _require(
        bool((categories < np.repeat(most, sizes)).all()), "a split names a category that its column does not have"
    )


def _table_sizes(tables: Any, d: int) -> IntArray | None:
    """Check the tables of categories; return the number of each column's categories, or None without tables."""
    if tables is None or not tables["enc"]:
        return None
    entries, segments = tables["enc"], tables["feature_segments"]
    _require(isinstance(entries, list) and len(entries) == d, f"its category tables are not those of {d} columns")
    _require(segments.shape == (d + 1,) and segments.dtype == np.int32, "feature_segments has the wrong length or type")
    sizes = np.diff(segments.astype(np.int64))
    _require(segments[0] == 0 and bool((sizes >= 0).all()), "feature_segments are out of order")
    order = tables["sorted_idx"]
    _require(order.shape == (segments[-1],) and order.dtype == np.int32, "sorted_idx has the wrong length or type")
    for j, entry in enumerate(entries):
        categories = _table(entry)
        _require(len(categories) == sizes[j], f"column {j} has {len(categories)} categories, not {sizes[j]}")
        _require(len(set(categories)) == len(categories), f"a category of column {j} comes twice")
        ranks = order[segments[j] : segments[j + 1]]
        expected = sorted(range(len(categories)), key=categories.__getitem__)
        _require(ranks.tolist() == expected, f"sorted_idx does not sort the categories of column {j}")
    return np.asarray(sizes)


def _table(entry: Any) -> list[Any]:
    """Categories of one column, texts as bytes."""
    values = entry["values"]
    _require(
        isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iu", "a table is not an array"
    )
    if "offsets" not in entry:
        return list(values.tolist())
    offsets = entry["offsets"]
    _require(isinstance(offsets, np.ndarray) and offsets.dtype == np.int32, "offsets is not an array of int32")
    _require(values.dtype == np.int8, "a table of texts is not made of bytes")
    if not len(offsets):
        _require(not len(values), "a table of texts has no offsets")
        return []
    _require(offsets[0] == 0 and offsets[-1] == len(values), "offsets do not cover the texts")
    _require(bool((np.diff(offsets) >= 0).all()), "offsets are out of order")
    text = values.tobytes()
    return [text[a:b] for a, b in pairwise(offsets)]


def _integer(text: Any, name: str, low: int, high: int) -> int:
    """Read a number that XGBoost stores as text."""
    _require(
        isinstance(text, str) and text.isdecimal() and text.isascii(), f"{name} {text!r:.40} is not a whole number"
    )
    _require(len(text) <= 10 and low <= int(text) <= high, f"{name} {text:.40} is not from {low} to {high}")
    return int(text)


def _integers(values: Any, name: str, size: int | None = None) -> IntArray:
    _require(isinstance(values, list | np.ndarray), f"{name} is not a list")
    array = np.asarray(values)
    array = array.astype(np.int64) if not array.size else array
    _require(array.ndim == 1 and array.dtype.kind in "iu", f"{name} is not a list of whole numbers")
    _require(size is None or len(array) == size, f"{name} has {len(array)} entries, not {size}")
    return array


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise _UnsoundError(problem)
