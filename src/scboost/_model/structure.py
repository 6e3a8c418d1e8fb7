"""Structural checks of a model document, made before XGBoost reads a file or a foreign model is changed.

XGBoost trusts its input: an invalid child index or a cycle of nodes causes a crash or an endless loop. All indices,
lengths and values that XGBoost uses are checked here first.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from scboost._arrays import BoolArray, IntArray

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
_LARGEST = int(np.iinfo(np.int32).max)
_DELETED = np.iinfo(np.int32).max  # split index of a node that pruning has taken out of its tree
_MOST_CATEGORIES = 1 << 24  # beyond, XGBoost could not tell them apart as float32
_MOST_BITS = 1 << 35  # of the sets of categories, for which XGBoost allocates a bit for each category up to the largest
_DEEPEST = 4096  # levels of a tree; SHAP values recurse, and take memory by the square of the depth
_COVER_TOLERANCE = 1e-5  # relative; float32 sums of covers differ by 1e-7
_MOST_OUTPUTS = 10_000  # of a model with fewer trees than outputs
_CATEGORICAL = 1  # split type
# Parameters of objectives that are one number.
_OBJECTIVE_NUMBERS = {
    "reg_loss_param": "scale_pos_weight",
    "poisson_regression_param": "max_delta_step",
    "tweedie_regression_param": "tweedie_variance_power",
    "pseudo_huber_param": "huber_slope",
}


class UnsupportedError(ValueError):
    """A model of a kind that is not covered here."""


class _UnsoundError(ValueError):
    pass


_ANY_FAULT = (AttributeError, KeyError, IndexError, TypeError, OverflowError)


def check(document: Document) -> None:
    """Check that a model is one that XGBoost can read and predict with.

    Parameters
    ----------
    document : Document
        Decoded, untrusted.

    Raises
    ------
    ValueError
        If the model is corrupt, with the location, or not supported.
    """
    for location, message in problems(document):
        raise ValueError(f"The XGBoost model is corrupt: {f'in {location}, ' if location else ''}{message}")


def problems(document: Document) -> Iterator[tuple[str, str]]:
    """Yield the location and description of what is wrong with a model: the first problem of each tree.

    Parameters
    ----------
    document : Document
        Decoded, untrusted.

    Raises
    ------
    UnsupportedError
        If the model is of a kind that is not covered.
    """
    try:
        d, n_outputs = _check_learner(document)
        table_sizes = _check_model(document, d, n_outputs)
    except (_UnsoundError, *_ANY_FAULT) as error:
        yield "", _described(error)
        return
    n_bits = 0
    for i, tree in enumerate(document.trees):
        try:
            n_bits += _check_tree(tree, d, table_sizes)
            # XGBoost stores the tree under its id, and leaves a null pointer where no tree has one.
            _require(type(tree["id"]) is int and tree["id"] == i, f"id is {tree['id']!r:.40}")
            _require(n_bits <= _MOST_BITS, f"the sets of categories so far take {n_bits // 8} bytes")
        except (_UnsoundError, *_ANY_FAULT) as error:
            yield f"tree {i}", _described(error)


def linear_problems(document: Document) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a model of the booster ``gblinear``; see :func:`problems`."""
    try:
        d, n_outputs = _check_learner(document)
        model = document.learner["gradient_booster"]["model"]
        weights = model["weights"]
        _require(isinstance(weights, list | np.ndarray), "its weights are not a list")
        _require(not isinstance(weights, list) or {*map(type, weights)} <= {int, float}, "a weight is not a number")
        expected = (d + 1) * n_outputs
        _require(np.shape(weights) in {(expected,), (0,)}, f"there are {len(weights)} weights, not {expected}")
        _require(bool(np.isfinite(np.asarray(weights, dtype=np.float64)).all()), "a weight is not finite")
        if "boosted_rounds" in model:
            _integer(str(model["boosted_rounds"]), "boosted_rounds", 0, _LARGEST)
    except (_UnsoundError, *_ANY_FAULT) as error:
        yield "", _described(error)


def _described(error: Exception) -> str:
    return str(error) if isinstance(error, _UnsoundError) else f"{type(error).__name__} {error!s:.200}"


def _check_learner(document: Document) -> tuple[int, int]:
    """Check all but the booster; return the number of features and of outputs."""
    learner = document.learner
    _require(isinstance(learner, dict), "it has no learner")
    numbers = document.content["version"]
    _require(isinstance(numbers, list | np.ndarray) and len(numbers) == 3, "version is not a list of three numbers")
    numbers = numbers.tolist() if isinstance(numbers, np.ndarray) else numbers
    _require(all(type(n) is int and 0 <= n < 1000 for n in numbers), "version is not a list of three numbers")
    attributes = learner["attributes"]
    _require(isinstance(attributes, dict), "its attributes are not an object")
    _require(all(isinstance(text, str) for text in attributes.values()), "an attribute is not a string")
    parameters = learner["learner_model_param"]
    d = _integer(parameters["num_feature"], "num_feature", 0, _LARGEST)
    n_classes = _integer(parameters["num_class"], "num_class", 0, _LARGEST)
    n_targets = _integer(parameters["num_target"], "num_target", 0, _LARGEST)
    _require(n_classes <= 1 or n_targets <= 1, f"there are {n_classes} classes and {n_targets} targets")
    for name in ("feature_names", "feature_types"):
        texts = learner[name]
        _require(isinstance(texts, list) and len(texts) in {0, d}, f"{name} are not those of {d} features")
        _require(all(isinstance(text, str) for text in texts), f"{name} are not strings")
    objective = learner["objective"]
    _require(isinstance(objective["name"], str), "the name of the objective is not a string")
    if "softmax_multiclass_param" in objective:
        stated = _integer(objective["softmax_multiclass_param"]["num_class"], "num_class", 0, _LARGEST)
        _require(stated == n_classes, f"the objective has {stated} classes, the model {n_classes}")
    for group, name in _OBJECTIVE_NUMBERS.items():
        if group in objective:
            _check_number(objective[group][name], name)
    n_outputs = max(n_classes, n_targets, 1)
    _check_base_score(parameters["base_score"], n_outputs)
    return d, n_outputs


def _check_model(document: Document, d: int, n_outputs: int) -> IntArray | None:
    """Check all of the booster but its trees; return the number of each feature's categories, None without tables."""
    booster = document.learner["gradient_booster"]
    model = document.model
    _require(booster["name"] in {"gbtree", "dart"}, f"the booster {booster['name']!r:.40} has no known name")
    trees = model["trees"]
    _require(isinstance(trees, list), "its trees are not a list")
    if any(_has_vector_leaves(tree) for tree in trees):
        raise UnsupportedError("XGBoost's multi_strategy='multi_output_tree' is not supported.")
    n_trees = len(trees)
    _require(n_outputs <= max(n_trees, _MOST_OUTPUTS), f"there are {n_outputs} outputs of {n_trees} trees")
    stated = _integer(model["gbtree_model_param"]["num_trees"], "num_trees", 0, _LARGEST)
    _require(stated == n_trees, f"num_trees is {stated} but there are {n_trees} trees")
    _integer(model["gbtree_model_param"]["num_parallel_tree"], "num_parallel_tree", 1, _LARGEST)
    outputs = _integers(model["tree_info"], "tree_info", n_trees)
    _require(
        bool(((outputs >= 0) & (outputs < n_outputs)).all()), f"a tree is of an output outside of 0 to {n_outputs - 1}"
    )
    counts = np.bincount(outputs, minlength=n_outputs) if n_trees else np.zeros(1)
    _require(bool((counts == counts[0]).all()), "its outputs have different numbers of trees")
    if "iteration_indptr" in model:  # since XGBoost 2.0
        rounds = _integers(model["iteration_indptr"], "iteration_indptr")
        _require(len(rounds) >= 1 and rounds[0] == 0, "its rounds do not start at the first tree")
        _require(rounds[-1] == n_trees, f"its rounds do not cover the {n_trees} trees")
        _require(bool((np.diff(rounds) >= 0).all()), "its rounds are out of order")
    factors = document.tree_weights
    _require(
        factors.shape == (n_trees,) and bool(np.isfinite(factors).all()), f"weight_drop is not {n_trees} finite numbers"
    )
    return _table_sizes(model.get("cats"), d)


def _has_vector_leaves(tree: Any) -> bool:
    try:
        size = tree["tree_param"]["size_leaf_vector"]
    except (KeyError, IndexError, TypeError):
        return False  # and a problem of the tree
    return isinstance(size, str) and size.isdecimal() and size not in {"0", "1"}


def base_scores(text: str) -> list[float]:
    """Read the intercepts, which XGBoost stores as text."""
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    return [float(part) for part in inner.split(",")]


def _check_base_score(text: Any, K: int) -> None:
    _require(isinstance(text, str) and len(text) < 64 * (K + 1), "base_score is not a string of the right length")
    try:
        values = np.array(base_scores(text))
    except ValueError as error:
        raise _UnsoundError(f"base_score {text!r} is not made of numbers") from error
    _require(len(values) in {1, K}, f"base_score has {len(values)} numbers for {K} outputs")
    _require(bool(np.isfinite(values).all()), f"base_score {text!r} is not finite")


def _check_number(text: Any, name: str) -> None:
    """Check a number that XGBoost stores as text and refuses to load if it cannot read it."""
    _require(isinstance(text, str) and len(text) < 64, f"{name} is not a string")
    try:
        value = float(text)
    except ValueError as error:
        raise _UnsoundError(f"{name} {text!r} is not a number") from error
    _require(bool(np.isfinite(value)) and "_" not in text and text == text.strip(), f"{name} {text!r} is not a number")


def _check_tree(tree: Any, d: int, table_sizes: IntArray | None) -> int:
    """Check one tree; return the number of bits that its sets of categories take."""
    _require(isinstance(tree, dict), "there is no object")
    stated = {name: _integer(text, name, 0, _LARGEST) for name, text in tree["tree_param"].items()}
    n = stated["num_nodes"]
    _require(n > 0, "there are no nodes")
    for name, dtype in BY_NODE.items():
        array = tree[name]
        _require(isinstance(array, np.ndarray) and array.dtype == dtype, f"{name} is not an array of {dtype.__name__}")
        _require(array.shape == (n,), f"{name} has {array.size} entries for {n} nodes")
    alive = _check_nodes(tree, n, stated["num_deleted"])
    features = tree["split_indices"][alive]
    _require(features.min() >= 0 and features.max() < max(d, 1), f"a split is on none of the {d} features")
    _require(bool((tree["default_left"] <= 1).all()), "default_left is neither 0 nor 1")
    by_category = tree["split_type"] == _CATEGORICAL
    _require(bool((tree["split_type"] <= 1).all()), "split_type is neither 0 nor 1")
    _require(not (by_category & (tree["left_children"] == LEAF)).any(), "a leaf is split by category")
    _require(
        bool(np.isfinite(tree["split_conditions"][alive & ~by_category]).all()), "a threshold or leaf is not finite"
    )
    for name in ("base_weights", "loss_changes", "sum_hessian"):
        _require(bool(np.isfinite(tree[name][alive]).all()), f"{name} is not finite")
    return _check_category_splits(tree, np.flatnonzero(by_category), table_sizes)


def _check_nodes(tree: Tree, n: int, n_deleted: int) -> BoolArray:
    """Check that the nodes make one binary tree, as XGBoost walks it; return which nodes belong to it."""
    left, right, parents = tree["left_children"], tree["right_children"], tree["parents"]
    inner = left != LEAF
    _require(bool(((right != LEAF) == inner).all()), "a node has one child only")
    _require(parents[0] in {ROOT_PARENT, -1}, "the first node is not the root")
    children = np.concatenate([left[inner], right[inner]])
    _require(
        not children.size or (children.min() > 0 and children.max() < n), f"a child is not one of nodes 1 to {n - 1}"
    )
    deleted = tree["split_indices"] == _DELETED
    found = np.count_nonzero(deleted)
    _require(n_deleted == found, f"num_deleted is {n_deleted}, not {found}")
    _require(not (deleted & inner).any() and not deleted[children].any(), "a deleted node has a child or a parent")
    seen = np.bincount(children, minlength=n)
    alive = ~deleted
    _require(seen[0] == 0 and bool((seen[1:] == alive[1:]).all()), "a node has not exactly one parent")
    numbers = np.flatnonzero(inner).astype(parents.dtype)
    _require(bool((parents[children] == np.tile(numbers, 2)).all()), "parents and children disagree")
    # XGBoost looks up the parent of every node, also of a deleted one.
    _require(bool(((parents[1:] >= 0) & (parents[1:] < n)).all()), f"a parent is not one of nodes 0 to {n - 1}")
    _require(
        not deleted[0] and _reached(left, right) == np.count_nonzero(alive), "a node cannot be reached from the root"
    )
    # XGBoost does not read right_children where it predicts, but takes the node after the left child.
    _require(bool((right[inner] == left[inner] + 1).all()), "a right child does not follow the left one")
    return np.asarray(alive)


def check_covers(tree: Tree) -> None:
    """Raise a ValueError unless the covers of two children add up to that of their parent, as SHAP values assume."""
    left, cover = tree["left_children"], tree["sum_hessian"].astype(np.float64)
    inner = np.flatnonzero(left != LEAF)
    total = cover[left[inner]] + cover[tree["right_children"][inner]]
    total = np.minimum(total, np.finfo(np.float32).max)  # the largest cover that is stored
    if (cover < 0).any() or (np.abs(total - cover[inner]) > _COVER_TOLERANCE * cover[inner]).any():
        raise ValueError("the covers of two children do not add up to that of their parent")


def _reached(left: IntArray, right: IntArray) -> int:
    """Count the nodes below the root, itself included, of a tree whose nodes have one parent each."""
    count, depth, level = 1, 0, np.zeros(1, dtype=np.intp)
    while (level := level[left[level] != LEAF]).size:
        level = np.concatenate([left[level], right[level]]).astype(np.intp)
        count += len(level)
        depth += 1
        _require(depth <= _DEEPEST, f"it is more than {_DEEPEST} levels deep")
    return count


def _check_category_splits(tree: Tree, expected: IntArray, table_sizes: IntArray | None) -> int:
    for name, dtype in {**BY_CATEGORY_SPLIT, **BY_CATEGORY}.items():
        array = tree[name]
        _require(isinstance(array, np.ndarray) and array.dtype == dtype, f"{name} is not an array of {dtype.__name__}")
        _require(array.ndim == 1, f"{name} is not a vector")
        _require(name == "categories" or len(array) == len(expected), f"{name} does not match the category splits")
    _require(bool((tree["categories_nodes"] == expected).all()), "categories_nodes are not the nodes split by category")
    categories, starts, sizes = tree["categories"], tree["categories_segments"], tree["categories_sizes"]
    _require(
        not len(sizes) or (sizes.min() > 0 and sizes.max() <= len(categories)),
        "a set of categories has an impossible size",
    )
    ends = np.concatenate([[0], np.cumsum(sizes)])
    _require(
        bool((starts == ends[:-1]).all()) and ends[-1] == len(categories), "the sets of categories are out of order"
    )
    _require(not categories.size or categories.min() >= 0, "a category is negative")
    features = tree["split_indices"][expected]
    most = np.full(len(expected), _MOST_CATEGORIES) if table_sizes is None else table_sizes[features]
    _require(
        bool((categories < np.repeat(most, sizes)).all()), "a split names a category that its feature does not have"
    )
    return int(np.maximum.reduceat(categories, starts).sum()) + len(expected) if len(expected) else 0


def _table_sizes(tables: Any, d: int) -> IntArray | None:
    """Check the tables of categories; return the number of each feature's categories, or None without tables."""
    if tables is None or not tables["enc"]:
        return None
    entries, segments = tables["enc"], tables["feature_segments"]
    _require(isinstance(entries, list) and len(entries) == d, f"its category tables are not those of {d} features")
    _require(segments.shape == (d + 1,) and segments.dtype == np.int32, "feature_segments has the wrong length or type")
    sizes = np.diff(segments.astype(np.int64))
    _require(segments[0] == 0 and bool((sizes >= 0).all()), "feature_segments are out of order")
    order = tables["sorted_idx"]
    _require(order.shape == (segments[-1],) and order.dtype == np.int32, "sorted_idx has the wrong length or type")
    for j, entry in enumerate(entries):
        categories = _table(entry)
        _require(len(categories) == sizes[j], f"feature {j} has {len(categories)} categories, not {sizes[j]}")
        _require(len(set(categories)) == len(categories), f"a category of feature {j} comes twice")
        ranks = order[segments[j] : segments[j + 1]]
        expected = sorted(range(len(categories)), key=categories.__getitem__)
        _require(ranks.tolist() == expected, f"sorted_idx does not sort the categories of feature {j}")
    return np.asarray(sizes)


def _table(entry: Any) -> list[Any]:
    """Categories of one feature, texts as bytes."""
    values = entry["values"]
    _require(
        isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iu", "a table is not an array"
    )
    if "offsets" not in entry:
        return list(values.tolist())
    offsets = entry["offsets"]
    _require(isinstance(offsets, np.ndarray) and offsets.dtype == np.int32, "offsets is not an array of int32")
    _require(values.dtype == np.int8, "a table of strings is not made of bytes")
    if not len(offsets):
        _require(not len(values), "a table of strings has no offsets")
        return []
    _require(offsets[0] == 0 and offsets[-1] == len(values), "offsets do not cover the strings")
    _require(bool((np.diff(offsets) >= 0).all()), "offsets are out of order")
    text = values.tobytes()
    return [text[a:b] for a, b in pairwise(offsets)]


def _integer(text: Any, name: str, low: int, high: int) -> int:
    """Read a number that XGBoost stores as text."""
    _require(isinstance(text, str) and text.isdecimal() and text.isascii(), f"{name} {text!r:.40} is not an integer")
    _require(len(text) <= 10 and low <= int(text) <= high, f"{name} {text:.40} is not from {low} to {high}")
    return int(text)


def _integers(values: Any, name: str, size: int | None = None) -> IntArray:
    _require(isinstance(values, list | np.ndarray), f"{name} is not a list")
    _require(not isinstance(values, list) or {*map(type, values)} <= {int}, f"{name} is not a list of integers")
    array = np.asarray(values)
    array = array.astype(np.int64) if not array.size else array
    _require(array.ndim == 1 and array.dtype.kind in "iu", f"{name} is not a list of integers")
    _require(size is None or len(array) == size, f"{name} has {len(array)} entries, not {size}")
    return array


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise _UnsoundError(problem)
