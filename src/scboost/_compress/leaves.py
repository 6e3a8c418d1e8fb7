"""All leaves of all trees as one linear model, fitted jointly by ridge regression.

The columns of the design matrix Z are the indicators of the leaves. Z is never formed: products with it are look-ups
and sums by leaf, both O(n_samples * n_trees).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from scboost._compress.factor import LeafFactor
from scboost._compress.families import Family
from scboost._compress.products import add_values, leaf_index, move_and_sum, sum_by_leaf
from scboost._compress.types import Float64, Indices, LeafIndex

_MOST_ITERATIONS = 300
_SMALLEST_STEP = 1e-3


@dataclass
class Leaves:
    """Leaf of every sample in every tree.

    Attributes
    ----------
    n_outputs, n_samples : int
        K and n.
    index : list of ndarray of shape (n,)
        For each tree the leaf of each sample, numbered from 0.
    sizes : list of int
        Number of leaves of each tree.
    outputs : list of int
        Output of each tree.
    """

    n_outputs: int
    n_samples: int
    index: list[LeafIndex] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    def add(self, leaf: Indices | LeafIndex, n_leaves: int, output: int) -> None:
        """Add a tree."""
        self.index.append(leaf_index(leaf, n_leaves))
        self.sizes.append(n_leaves)
        self.outputs.append(output)

    def replace(self, i: int, leaf: Indices | LeafIndex, n_leaves: int) -> None:
        """Put another tree in the place of tree i."""
        self.index[i], self.sizes[i] = leaf_index(leaf, n_leaves), n_leaves

    def first(self, n_trees: int) -> Leaves:
        """Return the first trees."""
        parts = self.index[:n_trees], self.sizes[:n_trees], self.outputs[:n_trees]
        return Leaves(self.n_outputs, self.n_samples, *parts)

    def slices(self) -> list[slice]:
        """Return where the leaf values of each tree are in the vector of all."""
        ends = np.cumsum([0, *self.sizes]).tolist()
        return [slice(a, b) for a, b in pairwise(ends)]

    def scores(self, values: Float64) -> Float64:
        """Return Z v: the sum of each sample's leaf values, of shape (K, n); v may be that of the first trees only."""
        F = np.zeros((self.n_outputs, self.n_samples))
        for leaf, part, k in zip(self.index, self.slices(), self.outputs, strict=True):
            if part.start >= len(values):
                break
            add_values(leaf, values[part], F[k])
        return F

    def sums(self, u: Float64) -> Float64:
        """Return Z' u: the sum over the samples of each leaf, of shape (n_leaves,); u has shape (K, n)."""
        parts = [
            sum_by_leaf(leaf, u[k], size) for leaf, size, k in zip(self.index, self.sizes, self.outputs, strict=True)
        ]
        return np.concatenate(parts)


@dataclass
class JointFit:
    """Minimises ``sum_i w_i D(f_i, b + Z_i v) + ridge |v|^2 / 2`` over the leaf values v of all trees.

    Newton steps, each of which solves its ridge regression by conjugate gradients. Their preconditioner is the exact
    solution of the ridge regression in the metric of the teacher's Hessian, which the Newton steps differ little from;
    for the squared error it is the solution itself. At the minimum the weighted residual is orthogonal to every leaf
    up to the ridge: ``Z' w (mean(f) - mean(F)) = ridge v``. Cheaper and less exact are sweeps over the trees, in which
    the leaves of a tree, whose block of the normal equations is diagonal, are fitted to what all other trees leave.

    Attributes
    ----------
    leaves : Leaves
        Z.
    family : Family
        Gives D, the divergence between teacher and student.
    target, weight : ndarray of shape (K, n) and (n,)
        The teacher's raw scores f and the sample weights w.
    intercept : ndarray of shape (K,)
        b.
    ridge : float
        Penalty of leaf values.
    """

    leaves: Leaves
    family: Family
    target: Float64
    weight: Float64
    intercept: Float64
    ridge: float

    def __post_init__(self) -> None:
        self._mean = self.family.mean(self.target)
        self._least = float(
            self.weight @ (self.family.log_partition(self.target) - (self._mean * self.target).sum(axis=0))
        )
        self._metric = self.weight * self.family.hessian(np.asarray(self._mean))
        self.forget_factors()
        self.leaf_values: Float64 = np.zeros(sum(self.leaves.sizes))
        self.scores: Float64 = self.leaves.scores(self.leaf_values) + self.intercept[:, None]
        self._mean_of: Float64 | None = None
        self._mean_there = self._mean

    def gradient_hessian(self) -> tuple[Float64, Float64]:
        """Return the weighted residual mean(f) - mean(F) and the diagonal of the Hessian, of shape (K, n)."""
        mean = self._student_mean()
        return self.weight * (self._mean - mean), self.weight * self.family.hessian(mean)

    def add_tree(self, leaf: Indices | LeafIndex, n_leaves: int, output: int) -> None:
        """Add the leaves of a tree, with value 0."""
        self.leaves.add(leaf, n_leaves, output)
        self.leaf_values = np.concatenate([self.leaf_values, np.zeros(n_leaves)])

    def without_values(self, trees: Sequence[int]) -> JointFit:
        """Return a copy in which the leaf values of some trees are 0."""
        values, scores, parts = self.leaf_values.copy(), self.scores.copy(), self.leaves.slices()
        for i in trees:
            add_values(self.leaves.index[i], -values[parts[i]], scores[self.leaves.outputs[i]])
            values[parts[i]] = 0.0
        return self._copy(self.leaves.first(len(parts)), values, scores)

    def of_trees(self, leaves: Leaves, leaf_values: Float64) -> JointFit:
        """Return a fit of other trees on the same samples, which starts from their leaf values."""
        return self._copy(leaves, leaf_values, leaves.scores(leaf_values) + self.intercept[:, None])

    def replace_tree(self, i: int, leaf: Indices | LeafIndex, n_leaves: int) -> None:
        """Put another tree in the place of tree i, whose leaf values must be 0; those of the new one are 0 too."""
        part = self.leaves.slices()[i]
        self.leaves.replace(i, leaf, n_leaves)
        self.leaf_values = np.concatenate(
            [self.leaf_values[: part.start], np.zeros(n_leaves), self.leaf_values[part.stop :]]
        )
        self.forget_factors()

    def forget_factors(self) -> None:
        """Make the Cholesky factors again at the next joint fit, because other trees than the newest have changed."""
        self._factors: list[LeafFactor] = []
        self._n_factored = 0

    def fit_trees(self, trees: Sequence[int]) -> None:
        """Set the leaf values of trees of different outputs, which are 0, by a Newton step: a single pass."""
        residual, hessian = self._residual_and_bound()
        values, self.scores, parts = self.leaf_values.copy(), self.scores.copy(), self.leaves.slices()
        for i in trees:
            leaf, part, k = self.leaves.index[i], parts[i], self.leaves.outputs[i]
            size = part.stop - part.start
            values[part] = sum_by_leaf(leaf, residual[k], size) / (sum_by_leaf(leaf, hessian[k], size) + self.ridge)
            add_values(leaf, values[part], self.scores[k])
        self.leaf_values = values

    def divergence(self) -> float:
        """Return the weighted sum of the divergences from the teacher; at least 0 up to rounding."""
        loss = self.family.log_partition(self.scores) - (self._mean * self.scores).sum(axis=0)
        return float(self.weight @ loss) - self._least

    def objective(self) -> float:
        """Return what is minimised."""
        return self.divergence() + float(self.ridge * (self.leaf_values @ self.leaf_values) / 2)

    def advance(self) -> float:
        """Take one step in the metric of the teacher's Hessian, the first iteration of :meth:`refit`."""
        return self._go(self._precondition(self._slope()), self.objective())

    def refit(self, tolerance: float, max_steps: int) -> None:
        """Take Newton steps until the relative decrease of the objective is below tolerance squared.

        Parameters
        ----------
        tolerance : float
            Also of the conjugate gradients, relative to the gradient before the step.
        max_steps : int
            Newton steps at most; a Gaussian family needs one.
        """
        before = self.objective()
        for _ in range(1 if self.family.link == "identity" else max_steps):
            after = self._go(self._solve(self._slope(), tolerance), before)
            if before - after <= tolerance**2 * abs(before):
                break
            before = after

    def sweep(self, n_sweeps: int = 1) -> float:
        """Take one Newton step that block coordinate descent finds, one pass over the samples for each tree and sweep.

        Parameters
        ----------
        n_sweeps : int
            The first one goes from the newest tree to the oldest one, the next one back.

        Returns
        -------
        float
            The objective.
        """
        order = there_and_back(range(len(self.leaves.sizes)), n_sweeps)
        return self._move(*self._step(*self._residual_and_bound(), order), self.objective())

    def restart(self, n_sweeps: int) -> None:
        """Find the leaf values again from 0, oldest trees first, such that the scores stay about the same.

        Trees share directions: what one of them predicts, others can predict, too. Here it is left to the oldest tree
        that can, so that later trees repeat little of earlier ones.

        Parameters
        ----------
        n_sweeps : int
            Sweeps from the oldest tree to the newest one. More of them come closer to the scores, and share more.
        """
        _, hessian = self.gradient_hessian()
        gain = hessian * (self.scores - self.intercept[:, None])
        self.leaf_values = np.zeros_like(self.leaf_values)
        self.leaf_values, change = self._step(gain, hessian, [*range(len(self.leaves.sizes))] * n_sweeps)
        self.scores = self.intercept[:, None] + change

    def violation(self) -> float:
        """Return the largest ``|Z'r - ridge v|``, relative to the largest leaf sum of ``|r|``: 0 if orthogonal."""
        residual, _ = self.gradient_hessian()
        scale = self.leaves.sums(np.abs(residual)).max()
        return float(np.abs(self._slope()).max() / scale) if scale > 0 else 0.0

    def _residual_and_bound(self) -> tuple[Float64, Float64]:
        """Return the weighted residual, and a bound of the Hessian for steps of all outputs at once."""
        residual, hessian = self.gradient_hessian()
        return residual, self.family.bound(hessian)

    def _slope(self) -> Float64:
        """Return the negative gradient of the objective: 0 if the residual is orthogonal to all leaves."""
        return self.leaves.sums(self.weight * (self._mean - self._student_mean())) - self.ridge * self.leaf_values

    def _copy(self, leaves: Leaves, values: Float64, scores: Float64) -> JointFit:
        other = copy(self)
        other.leaves, other.leaf_values, other.scores = leaves, values, scores
        other.forget_factors()
        return other

    def _student_mean(self) -> Float64:
        """Return mean(F) at the scores, which is computed once as long as they stay the same array."""
        if self._mean_of is not self.scores:
            self._mean_of, self._mean_there = self.scores, self.family.mean(self.scores)
        return self._mean_there

    def _go(self, direction: Float64, before: float) -> float:
        return self._move(direction, self.leaves.scores(direction), before)

    def _step(self, residual: Float64, hessian: Float64, order: Sequence[int]) -> tuple[Float64, Float64]:
        """Fit trees one after the other; return what that adds to leaf values and scores. Outputs are independent."""
        leaves, parts = self.leaves, self.leaves.slices()
        step, change = np.zeros_like(self.leaf_values), np.zeros_like(residual)
        for k in range(leaves.n_outputs):
            path = [i for i in order if leaves.outputs[i] == k]
            mass = {i: sum_by_leaf(leaves.index[i], hessian[k], leaves.sizes[i]) + self.ridge for i in set(path)}
            sums = sum_by_leaf(leaves.index[path[0]], residual[k], leaves.sizes[path[0]])
            for i, following in zip(path, [*path[1:], None], strict=True):
                part, leaf = parts[i], leaves.index[i]
                values = (sums - self.ridge * (self.leaf_values[part] + step[part])) / mass[i]
                step[part] += values
                if following is None:
                    add_values(leaf, values, change[k])
                else:
                    other, size = leaves.index[following], leaves.sizes[following]
                    sums = move_and_sum(leaf, values, residual[k], hessian[k], other, size, change[k])
        return step, change

    def _move(self, direction: Float64, change: Float64, before: float) -> float:
        """Go in a direction all the way, half of it and so on until the objective falls; return the objective."""
        values, scores, step = self.leaf_values, self.scores, 1.0
        while step >= _SMALLEST_STEP:
            self.leaf_values, self.scores = values + step * direction, scores + step * change
            after = self.objective()
            if after <= before + 1e-12 * abs(before):
                return after
            step /= 2
        self.leaf_values, self.scores = values, scores
        return before

    def _precondition(self, right: Float64) -> Float64:
        """Solve the ridge regression in the metric of the teacher's Hessian, output by output."""
        self._extend_factors()
        parts = self.leaves.slices()
        x = np.empty_like(right)
        for k, factor in enumerate(self._factors):
            rows = [part for part, output in zip(parts, self.leaves.outputs, strict=True) if output == k]
            found = factor.solve(np.concatenate([right[part] for part in rows]))
            for part, values in zip(
                rows, np.split(found, np.cumsum([p.stop - p.start for p in rows])[:-1]), strict=True
            ):
                x[part] = values
        return x

    def _extend_factors(self) -> None:
        """Add the trees that came since the last joint fit to the Cholesky factors."""
        if not self._factors:
            self._factors = [LeafFactor(c, self.ridge, dtype=np.float32) for c in self._metric]
        leaves, start = self.leaves, self._n_factored
        for leaf, size, k in zip(leaves.index[start:], leaves.sizes[start:], leaves.outputs[start:], strict=True):
            self._factors[k].add(leaf, size)
        self._n_factored = len(leaves.index)

    def _solve(self, right: Float64, tolerance: float) -> Float64:
        """Solve ``(Z' H Z + ridge) x = right``, H the Hessian at the scores, by preconditioned conjugate gradients."""
        mean = self._student_mean()
        x = np.zeros_like(right)
        r = right.copy()
        z = self._precondition(r)
        p = z.copy()
        rz = start = float(r @ z)
        for _ in range(_MOST_ITERATIONS):
            if rz <= tolerance**2 * start or rz == 0:
                break
            curved = self.weight * self.family.curve(mean, self.leaves.scores(p))
            Ap = self.leaves.sums(curved) + self.ridge * p
            step = rz / float(p @ Ap)
            x += step * p
            r -= step * Ap
            z = self._precondition(r)
            rz, last = float(r @ z), rz
            p = z + (rz / last) * p
        return x


def there_and_back(items: Sequence[int], n_sweeps: int) -> list[int]:
    """Return items from the last to the first one, back to the last one, and so on; none follows itself.

    Examples
    --------
    >>> there_and_back([0, 1, 2], 3)
    [2, 1, 0, 1, 2, 1, 0]
    """
    path = list(items[::-1])
    for sweep in range(1, n_sweeps):
        path += items[1:] if sweep % 2 else items[-2::-1]
    return path
