"""Symmetric trees by trying everything, in plain NumPy: the oracle of the compiled ones."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from scboost._engine.native.trees import GrowthOptions


def _threshold(g: float, alpha: float) -> float:
    return float(np.sign(g) * max(abs(g) - alpha, 0.0))


class _Leaf:
    """Samples of a leaf, and the bounds of its values."""

    def __init__(self, rows: Any, low: float = -np.inf, high: float = np.inf) -> None:
        self.rows, self.low, self.high = rows, low, high


def symmetric_tree(
    codes: Any, n_bins: Any, categorical: Any, g: Any, h: Any, options: GrowthOptions
) -> tuple[Any, list[float], list[tuple[int, frozenset[int]]]]:
    """Grow a symmetric tree with one-vs-rest splits of categories.

    A level has the split with the largest sum of gains, over the leaves in which both children have enough Hessian and
    obey the constraints; those leaves are split. Returns the leaf of each sample, the values of the leaves, and the
    splits as feature and codes that go left. Gradients of shape (n, K) are those of K outputs with common Hessians:
    gains are sums over them, thresholded as a vector, and values are those of the first.
    """
    o = options
    g, h = g.astype(float).reshape(len(g), -1), h.astype(float)
    signs = o.monotone_constraints or (0,) * codes.shape[1]

    def value(rows: Any, leaf: _Leaf) -> float:
        G, D = g[rows, 0].sum(), h[rows].sum()
        if o.min_child_weight > D or D <= 0:
            return float(np.clip(0.0, leaf.low, leaf.high))
        return float(np.clip(-_threshold(G, o.reg_alpha) / (D + o.reg_lambda), leaf.low, leaf.high))

    def gain(rows: Any, leaf: _Leaf) -> float:
        G, D = g[rows].sum(axis=0), h[rows].sum()
        if D <= 0:
            return 0.0
        if not any(signs):
            return _threshold(float(np.linalg.norm(G)), o.reg_alpha) ** 2 / (D + o.reg_lambda)
        w = value(rows, leaf)
        return float(-(2 * G[0] * w + (D + o.reg_lambda) * w * w))

    def sides(leaf: _Leaf, j: int, goes_left: Any) -> tuple[Any, Any] | None:
        left, right = leaf.rows[goes_left[leaf.rows]], leaf.rows[~goes_left[leaf.rows]]
        least = max(o.min_child_weight, 1e-300)
        if h[left].sum() < least or h[right].sum() < least:
            return None
        if signs[j] and signs[j] * (value(right, leaf) - value(left, leaf)) < 0:
            return None
        return left, right

    def candidates() -> Any:
        for j in range(codes.shape[1]):
            missing = codes[:, j] == n_bins[j]
            if categorical[j]:
                for c, missing_left in product(range(n_bins[j]), (True, False)):
                    yield j, np.where(missing, missing_left, codes[:, j] != c)
            else:
                for missing_left, count in product((False, True), range(n_bins[j] + 1)):
                    yield j, np.where(missing, missing_left, codes[:, j] < count)

    leaves, splits = [_Leaf(np.arange(len(g)))], []
    for _ in range(o.max_depth):
        best, chosen = 1e-9, None
        for j, goes_left in candidates():
            total = 0.0
            for leaf in leaves:
                children = sides(leaf, j, goes_left)
                if children is not None:
                    total += sum(gain(rows, leaf) for rows in children) - leaf_gain(leaf, gain) - o.min_split_loss
            if total > best * (1 + 1e-9):
                best, chosen = total, (j, goes_left)
        if chosen is None:
            break
        j, goes_left = chosen
        splits.append((j, frozenset(codes[goes_left, j].tolist())))
        after: list[_Leaf] = []
        for leaf in leaves:
            children = sides(leaf, j, goes_left)
            if children is None:
                after.append(leaf)
                continue
            parts = [_Leaf(rows, leaf.low, leaf.high) for rows in children]
            if signs[j]:
                middle = (value(children[0], leaf) + value(children[1], leaf)) / 2
                below, above = parts if signs[j] > 0 else parts[::-1]
                below.high, above.low = middle, middle
            for part in parts:
                part.outer = leaf  # type: ignore[attr-defined]
            after += parts
        leaves = after
    place = np.empty(len(g), dtype=int)
    values = []
    for number, leaf in enumerate(leaves):
        place[leaf.rows] = number
        values.append(value(leaf.rows, getattr(leaf, "outer", leaf)))
    return place, values, splits


def leaf_gain(leaf: Any, gain: Any) -> float:
    """Gain of a leaf without a split, under the bounds that it was made with, as in XGBoost."""
    return float(gain(leaf.rows, getattr(leaf, "outer", leaf)))
