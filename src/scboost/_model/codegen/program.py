"""A fitted model reduced to what a code generator needs: trees as nested splits, intercepts, a link and names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from scboost._arrays import FloatArray
from scboost._model.atomic import write_file
from scboost._model.document import Document, Tree

LinkName = Literal["logistic", "softmax", "identity", "exp", "sorted"]
Label: TypeAlias = str | int | float | bool


@dataclass(frozen=True)
class Leaf:
    """A leaf with its weighted value."""

    value: np.float32
    n_leaves: int = 1


@dataclass(frozen=True)
class Split:
    """An inner node. Missing values and unseen categories go to the side that ``missing_left`` names.

    Attributes
    ----------
    feature : int
        Index of the feature.
    threshold : float32 or None
        Samples with smaller values, compared as float32, go left; None for a categorical split.
    members : tuple of int
        Codes of the categories that go right, for a categorical split.
    n_leaves : int
        Number of leaves below.
    """

    feature: int
    threshold: np.float32 | None
    members: tuple[int, ...]
    missing_left: bool
    left: Node
    right: Node
    n_leaves: int


Node: TypeAlias = Leaf | Split


@dataclass(frozen=True)
class Program:
    """The function that an exported file computes.

    Attributes
    ----------
    trees : tuple of (tuple of Node)
        Roots of the trees of each output; their leaves carry the tree weights.
    intercept : ndarray of shape (n_outputs,)
        Added to the sum of the trees' values.
    link : {"logistic", "softmax", "identity", "exp", "sorted"}
        From raw scores to predictions; "sorted" sorts quantiles, which must not cross.
    features : tuple of str
        Names of all features, in the order of the columns.
    categories : tuple of (tuple of str or None)
        Categories of each feature in the order of their codes, None for a numeric feature.
    whole : frozenset of int
        Indices of the features whose categories are integers.
    classes : tuple of (str, int, float or bool) or None
        Class labels in the order of the probabilities, None for regression.
    quantiles : tuple of float
        Of the outputs, if there are several quantiles.
    zero_is_missing : bool
        True for a model that was fitted on a sparse matrix.
    """

    trees: tuple[tuple[Node, ...], ...]
    intercept: FloatArray
    link: LinkName
    features: tuple[str, ...]
    categories: tuple[tuple[str, ...] | None, ...]
    whole: frozenset[int]
    classes: tuple[Label, ...] | None
    quantiles: tuple[float, ...]
    zero_is_missing: bool

    @property
    def n_outputs(self) -> int:
        """Number of raw scores."""
        return len(self.trees)

    @property
    def used(self) -> list[int]:
        """Indices of the features that the trees split on, ascending."""
        return sorted({split.feature for trees in self.trees for root in trees for split in splits(root)})

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        n_trees = sum(map(len, self.trees))
        if self.classes is None:
            task = f"regression of {len(self.quantiles)} quantiles" if self.quantiles else "regression"
        else:
            task = f"classification, {len(self.classes)} classes"
        return f"{task}; {n_trees} trees on {len(self.used)} of {len(self.features)} features"

    def describe(self, split: Split) -> str:
        """Condition under which a sample goes left, for a comment."""
        name = comment_text(self.features[split.feature])
        missing = " or missing" if split.missing_left else ""
        if split.threshold is not None:
            return f"{name} < {float32_text(split.threshold)}{missing}"
        known = self.categories[split.feature] or ()
        shown = ", ".join(comment_text(known[c]) if c < len(known) else str(c) for c in split.members[:3])
        return f"{name} not in {{{shown}{', ...' if len(split.members) > 3 else ''}}}{missing}"


def splits(root: Node) -> Iterator[Split]:
    """Iterate over the inner nodes of a tree, without recursion: trees may be as deep as they have leaves."""
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Split):
            yield node
            stack += [node.right, node.left]


def chain(root: Node) -> tuple[list[tuple[Split, bool, Node]], Leaf]:
    """Cut a tree into conditions to be tested one after the other.

    Each one leads to the smaller side of a split; the last leaf is where all of them fail. Nested code is then at most
    as deep as the logarithm of the number of leaves, whatever the shape of the tree: parsers limit the nesting.

    Returns
    -------
    conditions : list of (Split, bool, Node)
        A split, whether the condition is that the sample goes left, and the node that it leads to.
    last : Leaf
    """
    found = []
    while isinstance(root, Split):
        goes_left = root.left.n_leaves <= root.right.n_leaves
        found.append((root, goes_left, root.left if goes_left else root.right))
        root = root.right if goes_left else root.left
    return found, root


def depth(root: Node) -> int:
    """Return the largest number of splits between the root and a leaf."""
    level, found = [root], 0
    while level := [child for node in level if isinstance(node, Split) for child in (node.left, node.right)]:
        found += 1
    return found


def read_tree(tree: Tree) -> Node:
    """Convert the arrays of a valid tree to nested nodes."""
    starts, sizes = tree["categories_segments"], tree["categories_sizes"]
    members = {
        int(node): tuple(sorted(tree["categories"][start : start + size].tolist()))
        for node, start, size in zip(tree["categories_nodes"], starts, sizes, strict=True)
    }
    left, right = tree["left_children"].tolist(), tree["right_children"].tolist()
    order = [0]
    for node in order:  # grows while it is read: parents before children
        order += [left[node], right[node]] if left[node] != -1 else []
    done: dict[int, Node] = {}
    for node in reversed(order):
        value = tree["split_conditions"][node]
        if left[node] == -1:
            done[node] = Leaf(value)
        else:
            done[node] = Split(
                int(tree["split_indices"][node]),
                None if node in members else value,
                members.get(node, ()),
                bool(tree["default_left"][node]),
                done[left[node]],
                done[right[node]],
                done[left[node]].n_leaves + done[right[node]].n_leaves,
            )
    return done[0]


def read_program(
    document: Document,
    intercept: FloatArray,
    link: LinkName,
    *,
    features: Sequence[str] | None = None,
    categories: Sequence[Sequence[str] | None] | None = None,
    whole: frozenset[int] = frozenset(),
    classes: Sequence[Any] | None = None,
    quantiles: Sequence[float] = (),
    zero_is_missing: bool = False,
) -> Program:
    """Make a program from a model document without intercept.

    Parameters
    ----------
    document : Document
        Valid; its base score is not used.
    intercept : ndarray of shape (n_outputs,)
        On the scale of the raw scores.
    link, features, categories, whole, classes, quantiles, zero_is_missing
        See :class:`Program`; features without names are called x0, x1, ...
    """
    outputs = document.outputs
    trees = tuple(
        tuple(read_tree(tree) for tree, output in zip(document.trees, outputs, strict=True) if output == k)
        for k in range(document.n_outputs)
    )
    d = document.n_features
    return Program(
        trees=trees,
        intercept=np.asarray(intercept, dtype=np.float64),
        link=link,
        features=tuple(f"x{j}" for j in range(d)) if features is None else tuple(map(str, features)),
        categories=(None,) * d if categories is None else tuple(None if c is None else tuple(c) for c in categories),
        whole=whole,
        classes=None if classes is None else tuple(_label(label) for label in classes),
        quantiles=tuple(map(float, quantiles)),
        zero_is_missing=zero_is_missing,
    )


def _label(label: Any) -> Label:
    value = label.item() if isinstance(label, np.generic) else label
    if not isinstance(value, str | int | float | bool):
        raise TypeError(
            f"The class label {value!r} is a {type(value).__name__}; exported code holds labels that are strings, "
            "numbers or booleans."
        )
    return value


def float32_text(value: np.float32) -> str:
    """Shortest decimal that float32 reads back to the same bits."""
    return str(np.float32(value))


def comment_text(name: str) -> str:
    """Convert a name to a comment in any language: one printable line, without comment signs, of limited length."""
    text = "".join(c if c.isprintable() else " " for c in name)
    for sign in ("*/", "/*", "</", "<!", "??", "\\"):
        text = text.replace(sign, " ".join(sign) if len(sign) > 1 else "/")
    return text if len(text) <= 40 else f"{text[:37]}..."


def write_text(path: str | os.PathLike[str] | None, text: str) -> str:
    """Write an exported file, if a path is given, and return its text."""
    if path is not None:
        write_file(Path(path), text.encode())
    return text
