"""Structural checks of LightGBM's text model format, versions v2 to v4, without LightGBM.

LightGBM trusts what it reads: node numbers are followed without bounds, and the sizes of lists are taken from other
lists. The format: lines ``key=value`` of a header, of one block ``Tree=i`` for each tree, then "end of trees", the
importances, the parameters of the training and a line with the categories of a pandas table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray, IntArray

_LARGEST = int(np.iinfo(np.int32).max)
_DEEPEST = 4096  # levels of a tree; SHAP values recurse
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|nan)")
_PARAMETER = re.compile(r"\[[a-z0-9_]+: [^\r\n]*\]")
_VERSIONS = ("v2", "v3", "v4")
_OBJECTIVE = re.compile(r"[\w:.,+\- ]*")
_CATEGORICAL = 1  # bit of decision_type
_MISSING = 12  # bits of decision_type: 0 for none, 4 for zero, 8 for NaN

Fields = dict[str, str]


class _UnsoundError(ValueError):
    pass


_ANY_FAULT = (_UnsoundError, ValueError, KeyError, IndexError, TypeError, OverflowError)


def problems(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield the location and description of what is wrong with a model file: the first problem of each tree.

    Parameters
    ----------
    data : bytes
        Untrusted.
    """
    try:
        header, blocks = _read(data)
        n_features = _check_header(header, blocks)
    except _ANY_FAULT as error:
        yield "", _described(error)
        return
    for i, block in enumerate(blocks):
        try:
            _check_tree(_fields(block), i, n_features)
        except _ANY_FAULT as error:
            yield f"tree {i}", _described(error)


def _described(error: Exception) -> str:
    return f"{error!s:.200}" if isinstance(error, _UnsoundError) else f"{type(error).__name__} {error!s:.200}"


def _read(data: bytes) -> tuple[Fields, list[str]]:
    """Split a file into its header and the blocks of its trees, which must have the sizes that the header states."""
    _require(b"\0" not in data, "there is a zero byte")
    end = data.find(b"\nend of trees")
    _require(end >= 0, "the line 'end of trees' is missing: the file is truncated")
    after = data[end + 1 :].decode()
    _check_footer(after)
    start = data.find(b"\nTree=", 0, end + 1)
    header = _fields(data[: start if start >= 0 else end].decode(), first="tree")
    _require("tree_sizes" in header, "tree_sizes is missing")
    sizes = (
        _integers(header["tree_sizes"], "tree_sizes", None, 1, len(data)) if header["tree_sizes"] else np.zeros(0, int)
    )
    blocks, at = [], start + 1 if start >= 0 else end + 1
    for i, size in enumerate(sizes.tolist()):
        block = data[at : at + size]
        _require(block.startswith(b"Tree=%d\n" % i), f"tree_sizes does not lead to tree {i}")
        blocks.append(block.decode())
        at += size
    _require(at == end + 1, f"the trees end at byte {at} by tree_sizes, at byte {end + 1} by 'end of trees'")
    return header, blocks


def _check_footer(text: str) -> None:
    """Check what follows the trees: LightGBM reads the parameters again, and takes every line for ``[name: value]``."""
    _require(text.startswith("end of trees\n"), "the line 'end of trees' goes on")
    _, found, parameters = text.partition("\nparameters:\n")
    if not found:
        return
    parameters, found, _ = parameters.partition("\nend of parameters\n")
    _require(found, "the line 'end of parameters' is missing: the file is truncated")
    wrong = next((line for line in parameters.split("\n") if line and _PARAMETER.fullmatch(line) is None), None)
    _require(wrong is None, f"the line {wrong!r:.60} is not a parameter")


def _fields(text: str, first: str | None = None) -> Fields:
    """Read lines ``key=value``; a few keys have no value."""
    fields: Fields = {}
    lines = text.split("\n")
    if first is not None:
        _require(lines[0] == first, f"the first line is not {first!r}")
        lines = lines[1:]
    for line in lines:
        key, equals, value = line.rstrip("\r").partition("=")
        if not key and not equals:
            continue
        _require(bool(equals) or key == "average_output", f"the line {line!r:.60} is not of the form key=value")
        _require(key not in fields, f"{key!r:.60} is given twice")
        fields[key] = value
    return fields


def _check_header(header: Fields, blocks: list[str]) -> int:
    """Check the header; return the number of features."""
    _require(header["version"] in _VERSIONS, f"version {header['version']!r:.40} is none of {', '.join(_VERSIONS)}")
    n_classes = _integer(header["num_class"], "num_class", 1, _LARGEST)
    by_round = _integer(header["num_tree_per_iteration"], "num_tree_per_iteration", 1, _LARGEST)
    _require(by_round == n_classes, f"{by_round} trees per iteration do not go with {n_classes} classes")
    _require(n_classes <= max(len(blocks), 10_000), f"there are {n_classes} classes and {len(blocks)} trees")
    _require(len(blocks) % by_round == 0, f"{len(blocks)} trees are not whole iterations of {by_round}")
    _integer(header["label_index"], "label_index", 0, _LARGEST)
    n_features = _integer(header["max_feature_idx"], "max_feature_idx", 0, _LARGEST - 1) + 1
    for name in ("feature_names", "feature_infos"):
        found = len(header[name].split(" "))
        _require(found == n_features, f"{name} has {found} entries for {n_features} features")
    _require(all(header["feature_names"].split(" ")), "a feature has no name")
    _check_infos(header["feature_infos"].split(" "))
    if "monotone_constraints" in header:
        _integers(header["monotone_constraints"], "monotone_constraints", n_features, -1, 1)
    if "objective" in header:
        _require(_OBJECTIVE.fullmatch(header["objective"]) is not None, f"objective is {header['objective']!r:.60}")
        _check_objective(header["objective"].split(), n_classes)
    known = {"version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "objective"}
    known |= {"average_output", "feature_names", "monotone_constraints", "feature_infos", "tree_sizes"}
    unknown = sorted(set(header) - known)
    _require(not unknown, f"unknown field {unknown[:1]!r:.60}")
    return n_features


def _check_objective(words: list[str], n_classes: int) -> None:
    """Check the numbers that an objective is stored with."""
    _require(bool(words), "the objective has no name")
    for word in words[1:]:
        name, _, value = word.partition(":")
        if name == "num_class":
            _require(_integer(value, "num_class", 1, _LARGEST) == n_classes, "the objective has other classes")
        elif value:
            _require(np.isfinite(_number(value, name)), f"{name} of the objective is not finite")


def _check_infos(infos: list[str]) -> None:
    """Check the value ranges of the features: "none", "[low:high]" or categories "a:b:c"."""
    for j, info in enumerate(infos):
        if info == "none":
            continue
        if info.startswith("["):
            _require(info.endswith("]"), f"the range of feature {j} is {info!r:.40}")
            low, _, high = info[1:-1].partition(":")
            _require(_number(low, "a range") <= _number(high, "a range"), f"the range of feature {j} is {info!r:.40}")
        else:
            _integers(info.replace(":", " "), f"the categories of feature {j}", None, -1, _LARGEST)


def _check_tree(fields: Fields, i: int, n_features: int) -> None:
    _require(fields.pop("Tree") == str(i), "it has another number")
    n_leaves = _integer(fields["num_leaves"], "num_leaves", 1, _LARGEST)
    n_cat = _integer(fields["num_cat"], "num_cat", 0, _LARGEST)
    n_inner = n_leaves - 1
    _require(np.isfinite(_number(fields["shrinkage"], "shrinkage")), "shrinkage is not finite")
    _floats(fields["leaf_value"], "leaf_value", n_leaves)
    for name in ("leaf_weight", "leaf_count"):
        if name in fields and (fields[name] or n_inner):  # a tree of one leaf need not have them
            _floats(fields[name], name, n_leaves)
    for name in ("internal_value", "internal_weight", "internal_count", "split_gain"):
        if name in fields and (fields[name] or n_inner):
            _floats(fields[name], name, n_inner)
    _check_splits(fields, n_inner, n_cat, n_features)
    if fields.get("is_linear", "0") != "0":
        _check_linear(fields, n_leaves, n_features)


def _check_splits(fields: Fields, n_inner: int, n_cat: int, n_features: int) -> None:
    """Check the inner nodes: features, thresholds, sets of categories and children."""
    names = ("split_feature", "threshold", "decision_type", "left_child", "right_child")
    if n_inner == 0:
        _require(not any(fields.get(name) for name in names), "a tree with one leaf has splits")
        _require(n_cat == 0, "a tree with one leaf has sets of categories")
        return
    _integers(fields["split_feature"], "split_feature", n_inner, 0, n_features - 1)
    kinds = _integers(fields["decision_type"], "decision_type", n_inner, 0, 11)
    _require(bool(((kinds & _MISSING) <= 8).all()), "decision_type has an unknown kind of missing values")
    thresholds = _floats(fields["threshold"], "threshold", n_inner, finite=False)
    by_category = (kinds & _CATEGORICAL) > 0
    _require(not np.isnan(thresholds).any(), "a threshold is NaN")
    _require(
        int(by_category.sum()) == n_cat, f"num_cat is {n_cat}, but {int(by_category.sum())} splits are categorical"
    )
    if n_cat:
        _check_categories(fields, thresholds[by_category], n_cat)
    left = _integers(fields["left_child"], "left_child", n_inner, -n_inner - 1, n_inner - 1)
    right = _integers(fields["right_child"], "right_child", n_inner, -n_inner - 1, n_inner - 1)
    _check_children(left, right, n_inner)


def _check_categories(fields: Fields, numbers: FloatArray, n_cat: int) -> None:
    """Check the sets of categories, which are stored as bits of 32-bit words."""
    _require(
        bool((numbers == np.floor(numbers)).all()) and sorted(numbers.tolist()) == list(range(n_cat)),
        f"the thresholds of categorical splits are not the sets 0 to {n_cat - 1}",
    )
    bounds = _integers(fields["cat_boundaries"], "cat_boundaries", n_cat + 1, 0, _LARGEST)
    _require(bounds[0] == 0 and bool((np.diff(bounds) > 0).all()), "cat_boundaries are out of order")
    _integers(fields["cat_threshold"], "cat_threshold", int(bounds[-1]), 0, 2**32 - 1)


def _check_children(left: IntArray, right: IntArray, n_inner: int) -> None:
    """Check that the nodes make one tree: every inner node but the root, and every leaf, is a child once."""
    children = np.concatenate([left, right])
    inner, leaf = children[children >= 0], ~children[children < 0]
    _require(not (inner == 0).any(), "the root is a child")
    _require(bool((np.bincount(inner, minlength=n_inner)[1:] == 1).all()), "a node has not exactly one parent")
    _require(bool((np.bincount(leaf, minlength=n_inner + 1) == 1).all()), "a leaf has not exactly one parent")
    count, depth, level = 1, 0, np.zeros(1, dtype=np.intp)
    while level.size:
        level = np.concatenate([left[level], right[level]])
        level = level[level >= 0]
        count += len(level)
        depth += 1
        _require(depth <= _DEEPEST, f"it is more than {_DEEPEST} levels deep")
    _require(count == n_inner, "a node cannot be reached from the root")


def _check_linear(fields: Fields, n_leaves: int, n_features: int) -> None:
    """Check the linear models in the leaves."""
    _require(fields["is_linear"] == "1", f"is_linear is {fields['is_linear']!r:.40}")
    _floats(fields["leaf_const"], "leaf_const", n_leaves)
    counts = _integers(fields["num_features"], "num_features", n_leaves, 0, n_features)
    n = int(counts.sum())
    for name in ("leaf_features", "leaf_coeff"):
        _require(len(fields[name].split()) == n, f"{name} has {len(fields[name].split())} entries, not {n}")
    if n:
        _integers(" ".join(fields["leaf_features"].split()), "leaf_features", n, 0, n_features - 1)
        _floats(" ".join(fields["leaf_coeff"].split()), "leaf_coeff", n)


def _integer(text: str, name: str, low: int, high: int) -> int:
    _require(_INTEGER.fullmatch(text) is not None, f"{name} {text!r:.40} is not an integer")
    _require(low <= int(text) <= high, f"{name} {text:.40} is not from {low} to {high}")
    return int(text)


def _integers(text: str, name: str, size: int | None, low: int, high: int) -> npt.NDArray[np.int64]:
    words = text.split(" ")
    _require(size is None or len(words) == size, f"{name} has {len(words)} entries, not {size}")
    wrong = next((word for word in words if _INTEGER.fullmatch(word) is None), None)
    _require(wrong is None, f"{name} {wrong!r:.40} is not an integer")
    numbers = [int(word) for word in words]
    for number in (min(numbers), max(numbers)):
        _require(low <= number <= high, f"{name} {number} is not from {low} to {high}")
    return np.array(numbers, dtype=np.int64)


def _number(text: str, name: str) -> float:
    _require(_NUMBER.fullmatch(text) is not None, f"{name} {text!r:.40} is not a number")
    return float(text)


def _floats(text: str, name: str, size: int, *, finite: bool = True) -> FloatArray:
    words = text.split(" ")
    _require(len(words) == size, f"{name} has {len(words)} entries, not {size}")
    wrong = next((word for word in words if _NUMBER.fullmatch(word) is None), None)
    _require(wrong is None, f"{name} {wrong!r:.40} is not a number")
    values = np.array([float(word) for word in words])
    _require(not finite or bool(np.isfinite(values).all()), f"{name} is not finite")
    return values


def _require(condition: Any, problem: str) -> None:
    if not condition:
        raise _UnsoundError(problem)
