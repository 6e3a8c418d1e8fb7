"""The whole method in plain NumPy, written to be read.

This module is the specification of scboost: no native code, no XGBoost, no options that the method does not need. The
library computes the same models faster, and the tests hold it to this file: same splits, same leaf values, same raw
scores up to rounding. From top to bottom: losses; exploration noise; trees; Spectral Residual Projection (SRP); the
boosting loop; Covariance-Regularized Weighting (CRW) and the paper's algorithm; rounds selected by cross-validation.

Letters follow the paper: ``r`` negative gradient, ``c`` Hessian, ``H`` prediction history, ``q`` innovation, ``w`` tree
weights, ``F`` raw scores of shape (K, n) for K outputs and n samples. Features are numeric; NaN is missing.

Examples
--------
>>> from sklearn.datasets import load_breast_cancer
>>> X, y = load_breast_cancer(return_X_y=True)
>>> model = boost(X[::2], y[::2], LogisticLoss(), Settings(n_rounds=20))
>>> accuracy = np.mean((model.raw_scores(X[1::2])[0] > 0) == y[1::2])
>>> bool(accuracy > 0.9)
True
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]


# 1. Losses ----------------------------------------------------------------------------------------------------------


class Loss(Protocol):
    """What the method needs to know of a loss."""

    n_outputs: int

    def initial_score(self, y: FloatArray) -> FloatArray:
        """Return the constant raw score of each output that minimizes the mean loss."""

    def gradient_hessian(self, y: FloatArray, F: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the first and second derivative of each sample's loss with respect to its raw scores."""

    def pointwise_loss(self, y: FloatArray, F: FloatArray) -> FloatArray:
        """Return the loss of each sample."""


class SquaredLoss:
    """Half the squared error."""

    n_outputs = 1

    def initial_score(self, y: FloatArray) -> FloatArray:
        """Return the mean."""
        return np.array([y.mean()])

    def gradient_hessian(self, y: FloatArray, F: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the error and 1."""
        return F - y, np.ones_like(F)

    def pointwise_loss(self, y: FloatArray, F: FloatArray) -> FloatArray:
        """Return half the squared error."""
        return np.asarray((y - F[0]) ** 2 / 2)


class LogisticLoss:
    """Negative log-likelihood of a 0/1 label whose log-odds are the raw score."""

    n_outputs = 1

    def initial_score(self, y: FloatArray) -> FloatArray:
        """Return the log-odds of the positive class."""
        return np.array([special.logit(y.mean())])

    def gradient_hessian(self, y: FloatArray, F: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return p - y and p (1 - p)."""
        p = special.expit(F)
        return p - y, np.maximum(p * (1 - p), 1e-16)

    def pointwise_loss(self, y: FloatArray, F: FloatArray) -> FloatArray:
        """Return the negative log-likelihood."""
        return np.asarray(np.logaddexp(0, F[0]) - y * F[0])


class SoftmaxLoss:
    """Negative log-likelihood of class numbers 0 to K - 1 under the softmax of K raw scores."""

    def __init__(self, n_classes: int) -> None:
        self.n_outputs = n_classes

    def initial_score(self, y: FloatArray) -> FloatArray:
        """Return the centred log-frequencies of the classes."""
        scores = np.log(np.bincount(y.astype(np.intp), minlength=self.n_outputs) / len(y))
        return np.asarray(scores - scores.mean())

    def gradient_hessian(self, y: FloatArray, F: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return p - onehot(y), and 2 p (1 - p): an upper bound that keeps K simultaneous steps from overshooting."""
        p = special.softmax(F, axis=0)
        onehot = np.arange(self.n_outputs)[:, None] == y
        return p - onehot, np.maximum(2 * p * (1 - p), 1e-16)

    def pointwise_loss(self, y: FloatArray, F: FloatArray) -> FloatArray:
        """Return the negative log-likelihood."""
        return np.asarray(special.logsumexp(F, axis=0) - F[y.astype(np.intp), np.arange(len(y))])


# 2. Exploration -----------------------------------------------------------------------------------------------------
# The noise depends on the values of a sample, the seed and the round, and on nothing else. So results do not depend on
# the order of the samples, a sample of weight two equals two samples, and a resumed fit needs no stored state.

_LEVELS = 12  # a draw is one of 4,096 quantiles of the normal distribution, scaled to unit variance
_NORMAL = special.ndtri((np.arange(1 << _LEVELS) + 0.5) / (1 << _LEVELS))
_NORMAL = _NORMAL / np.sqrt(np.mean(_NORMAL**2))


def row_keys(X: FloatArray) -> npt.NDArray[np.uint64]:
    """Hash the float32 values of each sample to 64 bits; all NaN are equal."""
    values = X.astype(np.float32) + np.float32(0)  # -0 becomes 0
    bits = np.where(np.isnan(values), 0, values.view(np.uint32).astype(np.uint64) + 1).astype(np.uint64)
    factors = _mix64(np.arange(1, X.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
    return _mix64((bits * factors).sum(axis=1, dtype=np.uint64))


def _mix64(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64: the finalizer of SplitMix64
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def normal_draws(keys: npt.NDArray[np.uint64], seed: int, round_: int, output: int) -> FloatArray:
    """Return a standard normal number for each sample, divided by the root of the number of its copies."""
    stream = np.random.SeedSequence([seed, round_, output + 1]).generate_state(1, np.uint32)[0]
    x = (keys ^ (keys >> np.uint64(32))).astype(np.uint32) ^ stream
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        x ^= x >> np.uint32(shift)
        x *= np.uint32(factor)
    x ^= x >> np.uint32(16)
    _, place, copies = np.unique(keys, return_inverse=True, return_counts=True)
    share = np.median(copies) / copies[place.reshape(-1)]
    return np.asarray(_NORMAL[x >> np.uint32(32 - _LEVELS)] * np.sqrt(share))


# 3. Trees -----------------------------------------------------------------------------------------------------------


@dataclass
class Node:
    """A leaf with a value, or a split: samples with ``x < threshold`` go to node ``left``, others to ``left + 1``."""

    value: float = 0.0
    feature: int = -1
    threshold: float = 0.0
    default_left: bool = True  # where a missing value goes
    left: int = -1


@dataclass
class Tree:
    """A binary regression tree; node 0 is the root."""

    nodes: list[Node] = field(default_factory=lambda: [Node()])

    def split(self, node: Node, feature: int, threshold: float, *, default_left: bool) -> None:
        """Turn a leaf into a split with two new leaves."""
        node.feature, node.threshold, node.default_left = feature, threshold, default_left
        node.left = len(self.nodes)
        self.nodes += [Node(), Node()]

    def apply(self, X: FloatArray) -> IntArray:
        """Return the number of each sample's leaf."""
        leaf = np.zeros(len(X), dtype=np.intp)
        for number, node in enumerate(self.nodes):  # children come after their parent
            if node.feature >= 0:
                here = np.flatnonzero(leaf == number)
                x = X[here, node.feature].astype(np.float32)
                goes_left = np.where(np.isnan(x), node.default_left, x < np.float32(node.threshold))
                leaf[here] = np.where(goes_left, node.left, node.left + 1)
        return leaf

    def predict(self, X: FloatArray) -> FloatArray:
        """Return the value of each sample's leaf."""
        return np.array([node.value for node in self.nodes])[self.apply(X)]


def quantile_cuts(X: FloatArray, max_bin: int) -> list[FloatArray]:
    """Return the thresholds to try for each feature: all distinct values, or at most ``max_bin`` quantiles of them."""
    cuts = []
    for x in X.astype(np.float32).astype(np.float64).T:
        values, counts = np.unique(x[~np.isnan(x)], return_counts=True)
        if len(values) > max_bin:
            ranks = np.cumsum(counts) - counts / 2
            wanted = np.linspace(0, counts.sum(), max_bin + 1)[1:-1]
            values = values[np.unique(np.searchsorted(ranks, wanted))]
            cuts.append(values)
        else:
            cuts.append(values[1:])
    return cuts


@dataclass(frozen=True)
class TreeSettings:
    """Limits and penalties of a tree; ``l2`` and ``min_child_weight`` are in units of the Hessian."""

    max_depth: int = 6
    l2: float = 3.0
    min_child_weight: float = 0.1
    symmetric: bool = False


def grow(X: FloatArray, cuts: list[FloatArray], g: FloatArray, c: FloatArray, settings: TreeSettings) -> Tree:
    """Grow the tree that greedily minimizes ``sum c (g / c - h(x))^2 + l2 * sum value^2``, level by level.

    With sums G and C of g and c, the gain of a split is ``G_l^2 / (C_l + l2) + G_r^2 / (C_r + l2) - G^2 / (C + l2)``.
    Missing values go to the better side. A symmetric tree uses one split for all nodes of a level: the one with the
    largest sum of gains.
    """
    values = X.astype(np.float32)
    bins = np.column_stack([np.searchsorted(cut, values[:, j], side="right") for j, cut in enumerate(cuts)])
    missing = np.isnan(X)
    tree, leaf, level = Tree(), np.zeros(len(X), dtype=np.intp), [0]
    for _ in range(settings.max_depth):
        gains = {node: _split_gains(bins, missing, cuts, g, c, leaf == node, settings) for node in level}
        if settings.symmetric:
            total = sum(np.maximum(gain, 0.0) for gain in gains.values())
            gains = {node: np.where(np.isfinite(gain), total, -np.inf) for node, gain in gains.items()}
        level = []
        for node, gain in gains.items():
            j, cut, side = np.unravel_index(np.argmax(gain), gain.shape)
            if gain[j, cut, side] > 0:
                level += [len(tree.nodes), len(tree.nodes) + 1]
                tree.split(tree.nodes[node], int(j), float(cuts[j][cut]), default_left=bool(side == 1))
                here = leaf == node
                goes_left = np.where(missing[here, j], side == 1, bins[here, j] <= cut)
                leaf[here] = np.where(goes_left, *level[-2:])
    return tree


def _split_gains(
    bins: IntArray,
    missing: npt.NDArray[np.bool_],
    cuts: list[FloatArray],
    g: FloatArray,
    c: FloatArray,
    here: npt.NDArray[np.bool_],
    settings: TreeSettings,
) -> FloatArray:
    """Return the gain of every split of a node, of shape (features, cuts, 2): missing values right or left."""
    gain = np.full((len(cuts), max(map(len, cuts), default=0) or 1, 2), -np.inf)
    G, C = g[here].sum(), c[here].sum()
    for j, cut in enumerate(cuts):
        known = here & ~missing[:, j]
        sums = [np.bincount(bins[known, j], weights=v[known], minlength=len(cut) + 1) for v in (g, c)]
        left_G, left_C = (np.cumsum(s)[:-1] for s in sums)
        for side, (more_G, more_C) in enumerate([(0.0, 0.0), (G - sums[0].sum(), C - sums[1].sum())]):
            G_l, C_l = left_G + more_G, left_C + more_C
            allowed = np.minimum(C_l, C - C_l) >= settings.min_child_weight
            change = _score(G_l, C_l, settings) + _score(G - G_l, C - C_l, settings) - _score(G, C, settings)
            gain[j, : len(cut), side] = np.where(allowed, change, -np.inf)
    return gain


def _score(G: npt.ArrayLike, C: npt.ArrayLike, settings: TreeSettings) -> FloatArray:
    G, C = np.asarray(G, dtype=float), np.asarray(C, dtype=float)
    return np.asarray(np.divide(G**2, C + settings.l2, out=np.zeros_like(G), where=C + settings.l2 > 0))


# 4. History ---------------------------------------------------------------------------------------------------------


def project(H: FloatArray, r: FloatArray, c: FloatArray, alpha: float) -> FloatArray:
    """Return the historical component of r: its projection on the principal directions of the history.

    A tree with Newton leaves fits ``r / c`` with sample weights c, so the projection is orthogonal in that metric. With
    c = 1 it is the paper's ``U_k U_k' r``, where U_k holds the leading left singular vectors of H with a share alpha of
    its energy. ``H`` has shape (t, n).
    """
    if not len(H):
        return np.zeros_like(r)
    root = np.sqrt(c)
    U, s, _ = np.linalg.svd((H * root).T, full_matrices=False)
    energy = s**2
    if alpha == 1:
        k = int(np.sum(s > 1e-12 * s[0]))
    else:
        k = int(np.searchsorted(np.cumsum(energy), alpha * energy.sum() * (1 - 1e-12))) + 1
    return np.asarray(root * (U[:, :k] @ (U[:, :k].T @ (r / root))))


# 5. The boosting loop -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """Settings of the loop.

    Attributes
    ----------
    n_rounds : int
        T, the number of boosting rounds.
    eta : float
        Learning rate.
    gamma : float in [0, 1]
        Projection strength: the share of the historical component that is removed from the gradient. With 0 this is
        plain Newton boosting.
    alpha : float in (0, 1]
        Energy threshold of the projection.
    memory : int or None
        Number of latest trees that make up the history; None for all.
    nu : float
        Exploration: noise under which the structure of a tree is chosen, relative to the noise of the gradient itself.
    leaf_values : {"newton", "mean"}
        Newton steps on the negative gradient, or (the paper) means of the innovation.
    start : {"prior", "zero"}
        First raw score: the best constant, or 0 (the paper).
    tree : TreeSettings
        Limits and penalties of a tree.
    seed : int
        Seed of exploration.
    """

    n_rounds: int = 100
    eta: float = 0.1
    gamma: float = 0.5
    alpha: float = 0.9
    memory: int | None = 5
    nu: float = 0.7
    leaf_values: Literal["newton", "mean"] = "newton"
    start: Literal["prior", "zero"] = "prior"
    tree: TreeSettings = field(default_factory=TreeSettings)
    seed: int = 0


@dataclass
class Model:
    """Trees, their weights and the intercept: ``F(x) = intercept + sum_t weight_t tree_t(x)`` for each output."""

    intercept: FloatArray
    trees: list[list[Tree]] = field(default_factory=list)  # one list of K trees a round
    weights: list[float] = field(default_factory=list)

    def contributions(self, X: FloatArray) -> FloatArray:
        """Return the unweighted predictions of all trees, of shape (T, K, n)."""
        return np.array([[tree.predict(X) for tree in trees] for trees in self.trees])

    def raw_scores(self, X: FloatArray) -> FloatArray:
        """Return the raw scores, of shape (K, n)."""
        F = np.repeat(self.intercept[:, None], len(X), axis=1)
        for weight, trees in zip(self.weights, self.trees, strict=True):
            F += weight * np.array([tree.predict(X) for tree in trees])
        return F


def boost(
    X: FloatArray, y: npt.ArrayLike, loss: Loss, settings: Settings, cuts: list[FloatArray] | None = None
) -> Model:
    """Fit by boosting; see :func:`rounds`."""
    *_, model = rounds(X, np.asarray(y, dtype=np.float64), loss, settings, cuts)
    return model


def rounds(
    X: FloatArray, y: FloatArray, loss: Loss, settings: Settings, cuts: list[FloatArray] | None = None
) -> Iterator[Model]:
    """Yield the growing model after each round: gradient, project, grow, leaf values, update."""
    cuts = quantile_cuts(X, 256) if cuts is None else cuts
    keys = row_keys(X)
    model = Model(loss.initial_score(y) if settings.start == "prior" else np.zeros(loss.n_outputs))
    F = np.repeat(model.intercept[:, None], len(X), axis=1)
    H: list[list[FloatArray]] = [[] for _ in F]  # history of each output
    newton = settings.leaf_values == "newton"
    first_loss = loss.pointwise_loss(y, F).mean()
    for t in range(settings.n_rounds):
        gradient, hessian = loss.gradient_hessian(y, F)
        r, c = -gradient, hessian if newton else np.ones_like(hessian)
        noise = settings.nu * _noise_scale(loss, y, F, r, c, first_loss)
        trees = []
        for k in range(len(F)):
            memory = H[k] if settings.memory is None else H[k][-settings.memory :]
            p = project(np.array(memory), r[k], c[k], settings.alpha)
            q = r[k] - settings.gamma * p
            z = noise * np.sqrt(c[k]) * normal_draws(keys, settings.seed, t, k) if settings.nu else 0.0
            tree = grow(X, cuts, q + z, c[k], settings.tree)
            _set_leaf_values(tree, X, r[k] if newton else q, c[k], settings.tree.l2)
            trees.append(tree)
        for k, tree in enumerate(trees):
            h = tree.predict(X)
            H[k].append(h)
            F[k] += settings.eta * h
        model.trees.append(trees)
        model.weights.append(settings.eta)
        yield model


def _set_leaf_values(tree: Tree, X: FloatArray, r: FloatArray, c: FloatArray, l2: float) -> None:
    """Set each leaf to ``sum r / (sum c + l2)``: a Newton step, or with c = 1 a shrunken mean."""
    leaf = tree.apply(X)
    G, C = (np.bincount(leaf, weights=v, minlength=len(tree.nodes)) for v in (r, c))
    for node, g, h in zip(tree.nodes, G, C, strict=True):
        node.value = float(g / (h + l2)) if h + l2 > 0 else 0.0


def _noise_scale(loss: Loss, y: FloatArray, F: FloatArray, r: FloatArray, c: FloatArray, first_loss: float) -> float:
    """Return the standard deviation of r in units of sqrt(c).

    It is 1 for a calibrated binary classifier, and estimated from the mean absolute value otherwise. For classification
    it falls with the root of the training loss: data with little noise need little exploration.
    """
    scale = float(np.sqrt(np.pi / 2 * np.mean(np.mean(np.abs(r) / np.sqrt(c), axis=1) ** 2)))
    if isinstance(loss, LogisticLoss):
        scale = 1.0
    if isinstance(loss, LogisticLoss | SoftmaxLoss) and first_loss > 0:
        scale *= round(float(np.sqrt(loss.pointwise_loss(y, F).mean() / first_loss)), 2)
    return scale


# 6. Covariance-regularized weighting, and the paper's algorithm -----------------------------------------------------


def simplex_weights(H: FloatArray, y: FloatArray, penalty: float = 0.0, tol: float = 1e-8) -> tuple[FloatArray, float]:
    """Minimize ``mean logistic loss(y, H'w) + penalty * w' Cov(H) w`` over the probability simplex.

    Frank-Wolfe with away steps and exact line search; the duality gap bounds the distance to the optimum. ``H`` has
    shape (T, m), ``y`` holds 0 and 1.
    """
    loss = LogisticLoss()
    cov = np.cov(H, bias=True).reshape(len(H), len(H))

    def slope(w: FloatArray) -> FloatArray:
        """Gradient of the objective."""
        return np.asarray(H @ loss.gradient_hessian(y, (w @ H)[None])[0][0] / len(y) + 2 * penalty * cov @ w)

    w, gap = np.full(len(H), 1 / len(H)), np.inf
    for _ in range(10_000):
        s = slope(w)
        best, worst = int(np.argmin(s)), int(np.argmax(np.where(w > 0, s, -np.inf)))
        gap = float(s @ w - s[best])
        if gap <= tol:
            break
        if gap >= s[worst] - s @ w:  # towards the best vertex of the simplex, or away from the worst
            direction, longest = np.eye(len(w))[best] - w, 1.0
        else:
            direction, longest = w - np.eye(len(w))[worst], w[worst] / (1 - w[worst])

        def along(step: float, w: FloatArray = w, direction: FloatArray = direction) -> float:
            return float(slope(w + step * direction) @ direction)

        step = longest if along(longest) <= 0 else float(optimize.brentq(along, 0, longest, xtol=1e-16))
        w = np.maximum(w + step * direction, 0)
    return w, gap


def fit_paper(
    X_train: FloatArray, y_train: FloatArray, X_val: FloatArray, y_val: FloatArray, settings: Settings, penalty: float
) -> Model:
    """Run the paper's Algorithm 1: full projection on all history, leaf means, a start at zero, simplex weights.

    Settings other than ``n_rounds``, ``eta``, ``alpha`` and the depth are those of the paper.
    """
    literal = replace(
        settings,
        gamma=1.0,
        memory=None,
        nu=0.0,
        leaf_values="mean",
        start="zero",
        tree=TreeSettings(max_depth=settings.tree.max_depth, l2=0.0, min_child_weight=0.0),
    )
    model = boost(X_train, y_train, LogisticLoss(), literal)
    w, _ = simplex_weights(model.contributions(X_val)[:, 0], y_val, penalty)
    model.weights = w.tolist()
    return model


# 7. Rounds selected by cross-validation -----------------------------------------------------------------------------


def select_rounds(X: FloatArray, y: npt.ArrayLike, loss: Loss, settings: Settings, folds: IntArray) -> int:
    """Return the number of rounds with the lowest out-of-fold loss.

    ``folds`` has the fold of each sample, from 0; ``settings.n_rounds`` is the largest number tried.
    """
    y = np.asarray(y, dtype=np.float64)
    total = np.zeros(settings.n_rounds)
    for i in range(int(folds.max()) + 1):
        train, held_out = folds != i, folds == i
        F = np.zeros((loss.n_outputs, int(held_out.sum())))
        for t, model in enumerate(rounds(X[train], y[train], loss, replace(settings, seed=settings.seed + 1 + i))):
            F = F + model.intercept[:, None] if t == 0 else F
            F = F + model.weights[t] * np.array([tree.predict(X[held_out]) for tree in model.trees[t]])
            total[t] += loss.pointwise_loss(y[held_out], F).sum()
    return int(np.argmin(total)) + 1
