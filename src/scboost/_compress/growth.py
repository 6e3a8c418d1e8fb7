"""Orthogonal growth: each tree is grown on the residual of the joint fit of all leaves before it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from scboost._compress.families import Family
from scboost._compress.leaves import JointFit, Leaves
from scboost._compress.products import leaf_index
from scboost._compress.trees import apply_trees
from scboost._compress.types import Float32, Float64, LeafIndex, Mask
from scboost._engine.factory import EngineFactory, EngineSpec
from scboost._engine.interface import Totals, TreeOptions
from scboost._engine.native import is_available
from scboost._model.document import Tree
from scboost._runtime.context import Context

_BINS = 256
# Smallest sum of Hessians in a leaf: a share of that of all samples, within limits (the upper one of classes, others).
_LEAF_SHARE, _LEAST_HESSIAN, _MOST_HESSIAN = 1 / 200, 4.0, (16.0, 64.0)
_TREE_RIDGE = 0.1  # of a tree's own leaf values while it is grown, where only the order of split gains matters
_TOLERANCE, _STEPS = 3e-2, 1  # of the joint fit after each round
# After the first rounds, a step in the metric of the teacher's Hessian is accurate enough, and one in four rounds.
_ACCURATE_ROUNDS, _JOINT_ROUNDS = 20, 4
_LAST_TOLERANCE, _LAST_STEPS = 1e-2, 3
# The ridge of growth of classes is selected after a few rounds; regression takes the large one.
_PILOT_ROUNDS, _LARGE_RIDGE, _STANDARD_ERRORS = 6, 30.0, 2.0
_EXACT = 1e-10  # relative divergence below which there is nothing left to fit


@dataclass(frozen=True)
class Settings:
    """Settings of one growth.

    Attributes
    ----------
    n_rounds : int
        Trees of each output.
    max_leaves : int
        Leaves of a tree.
    ridge : float
        Penalty of leaf values in the joint fit, in units of a sample's Hessian.
    min_child_weight : float
        Smallest sum of Hessians in a leaf.
    """

    n_rounds: int
    max_leaves: int
    ridge: float = 3.0
    min_child_weight: float = 4.0

    @classmethod
    def of(cls, problem: Problem, family: Family, n_rounds: int, max_leaves: int) -> Settings:
        """Return the settings for a problem."""
        total = float(_weight(problem, family) @ family.hessian(family.mean(problem.target)).mean(axis=0))
        least = float(np.clip(_LEAF_SHARE * total, _LEAST_HESSIAN, _MOST_HESSIAN[not family.of_classes]))
        return cls(n_rounds, max_leaves, min_child_weight=least)


class Grower(Protocol):
    """Grows trees on fixed samples."""

    def grow(self, residual: Float64, hessian: Float64) -> list[tuple[Tree, LeafIndex]]:
        """Grow one tree for each output.

        Parameters
        ----------
        residual, hessian : ndarray of shape (K, n)
            A tree h minimises ``sum(hessian * (residual / hessian - h)^2)``.

        Returns
        -------
        list of (Tree, ndarray of shape (n,))
            Trees, and the leaf of each sample as a position among the tree's leaves.
        """


class EngineGrower:
    """Leaf-wise histogram trees of a tree engine: the native one, or XGBoost's where the compiled kernels are missing.

    Parameters
    ----------
    X : ndarray of float32 of shape (n, d)
        Samples, with category codes.
    categorical : ndarray of shape (d,)
        Which features are categories.
    n_outputs : int
        K.
    settings : Settings
        Size of the trees.
    n_threads : int
        Threads; 0 for all.
    n_real : int, default=0
        The first samples, which are real: their quantiles are the candidates for thresholds, as they were for a teacher
        of trees.
    """

    def __init__(
        self, X: Float32, categorical: Mask, n_outputs: int, settings: Settings, n_threads: int, n_real: int = 0
    ) -> None:
        spec = EngineSpec(
            name="native" if is_available() else "xgboost",
            n_outputs=n_outputs,
            min_child_weight=settings.min_child_weight,
            l2=_TREE_RIDGE,
            l1=0.0,
            min_split_loss=0.0,
            colsample_bytree=1.0,
            colsample_bylevel=1.0,
            colsample_bynode=1.0,
            max_bin=_BINS,
            n_threads=n_threads,
            device="cpu",
            categorical=categorical if categorical.any() else None,
            bin_reference=X[:n_real] if n_real >= _BINS else None,
        )
        options = TreeOptions(subset_splits=True, max_leaves=settings.max_leaves, shape="leaf-wise")
        self._engine = EngineFactory(spec, Context()).make(X, None, options)

    def grow(self, residual: Float64, hessian: Float64) -> list[tuple[Tree, LeafIndex]]:
        """Grow one tree for each output; see :class:`Grower`."""
        target, weighted_hessian = residual.astype(np.float32), hessian.astype(np.float32)
        totals = Totals(np.square(residual).sum(axis=1), float(hessian.sum()))
        grown = []
        for learner in self._engine.grow(target, weighted_hessian, 0, totals):
            if learner.leaf is None:
                raise RuntimeError("the engine returned a learner without leaves")
            n_leaves = int(np.count_nonzero(learner.model["left_children"] == -1))
            grown.append((learner.model, leaf_index(learner.leaf, n_leaves)))
        return grown


@dataclass
class Problem:
    """Samples and the teacher's raw scores there.

    Attributes
    ----------
    X : ndarray of float32 of shape (n, d)
    target : ndarray of shape (K, n)
        The teacher's raw scores, in units of `scale`.
    n_real : int
        How many of the samples, the first ones, are real; 0 if they are not told apart.
    """

    X: Float32
    target: Float64
    n_real: int = 0


@dataclass
class Student:
    """Trees, and the leaf values after each round.

    Attributes
    ----------
    trees : list of Tree
        Those of the K outputs of a round after each other; their leaf values are not used.
    intercept : ndarray of shape (K,)
        Of the raw score.
    history : list of ndarray
        For each round, the leaf values of all trees so far after the joint fit.
    sizes : list of int
        Leaves of each tree.
    violation : float
        Largest violation of the orthogonality of the last joint fit; see :meth:`JointFit.violation`.
    """

    trees: list[Tree]
    intercept: Float64
    history: list[Float64]
    sizes: list[int]
    violation: float = 0.0
    _places: dict[int, tuple[Float32, Leaves]] = field(default_factory=dict, repr=False)

    @classmethod
    def empty(cls, n_outputs: int) -> Student:
        """Return a student without trees."""
        return cls([], np.zeros(n_outputs), [], [])

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""
        return len(self.history)

    @property
    def n_outputs(self) -> int:
        """K."""
        return len(self.intercept)

    def leaves(self, X: Float32) -> Leaves:
        """Return the leaf of each sample in each tree; remembered for the array."""
        if id(X) not in self._places:
            K = self.n_outputs
            places = Leaves(K, len(X))
            for i, leaf in enumerate(apply_trees(self.trees, X)):
                places.add(leaf, self.sizes[i], i % K)
            self.remember(X, places)
        return self._places[id(X)][1]

    def remember(self, X: Float32, places: Leaves) -> None:
        """Remember the leaves of samples; with the array, which keeps its identity while it lives."""
        self._places[id(X)] = X, places

    def scores(self, X: Float32, n_rounds: int | None = None) -> Float64:
        """Return raw scores of shape (K, n), of the model after some rounds; all by default."""
        values = self.history[(n_rounds or self.n_rounds) - 1]
        return self.leaves(X).scores(values) + self.intercept[:, None]

    def truncated(self, n_rounds: int) -> Student:
        """Return the model after some rounds."""
        n_trees = n_rounds * self.n_outputs
        return Student(
            self.trees[:n_trees], self.intercept, self.history[:n_rounds], self.sizes[:n_trees], self.violation
        )


class Growth:
    """A student that grows: each tree is grown on the residual of the joint fit of all leaves so far.

    Parameters
    ----------
    problem : Problem
        Samples to fit.
    family : Family
        Gives the divergence to minimise.
    ridge : float
        Penalty of leaf values in the joint fits.
    grower : Grower
        Of trees on these samples.

    Attributes
    ----------
    fit : JointFit
        The last joint fit, which can go on with another ridge.
    """

    def __init__(self, problem: Problem, family: Family, ridge: float, grower: Grower) -> None:
        K, n = problem.target.shape
        self._problem, self._grower = problem, grower
        weight, intercept = _weight(problem, family), _intercept(problem.target, family)
        self.fit = JointFit(Leaves(K, n), family, problem.target, weight, intercept, ridge)
        self._first = self.fit.divergence()
        self._trees: list[Tree] = []
        self._history: list[Float64] = []
        self._ended = False

    def grow(self, n_rounds: int) -> None:
        """Go on until there are `n_rounds` trees of each output, or nothing is left to fit."""
        while len(self._history) < n_rounds and not self._ended:
            self._grow_one()

    def _grow_one(self) -> None:
        fit, n_before = self.fit, len(self._history)
        grown = self._grower.grow(*fit.gradient_hessian())
        if n_before and all(len(tree["left_children"]) == 1 for tree, _ in grown):
            self._ended = True  # no split has a gain: the teacher is reproduced as far as these samples tell
            return
        for k, (tree, leaf) in enumerate(grown):
            fit.add_tree(leaf, int(np.count_nonzero(tree["left_children"] == -1)), k)
            self._trees.append(tree)
        joint = True
        if n_before < _ACCURATE_ROUNDS:
            fit.refit(_TOLERANCE, _STEPS)
        elif n_before % _JOINT_ROUNDS == 0:
            fit.advance()
        else:
            fit.fit_newest()
            joint = False
        self._history.append(fit.leaf_values)
        self._ended = joint and fit.divergence() <= _EXACT * self._first

    def student(self) -> Student:
        """Return the student so far."""
        fit = self.fit
        student = Student(list(self._trees), fit.intercept, list(self._history), list(fit.leaves.sizes))
        student.remember(self._problem.X, fit.leaves)
        return student


def grow(
    problem: Problem, categorical: Mask, family: Family, settings: Settings, n_threads: int = 1
) -> tuple[Student, JointFit]:
    """Grow a student with the ridge of the settings.

    Parameters
    ----------
    problem : Problem
        Samples to fit.
    categorical : ndarray of shape (d,)
        Which features are categories.
    family : Family
        Gives the divergence to minimise.
    settings : Settings
        Size of the trees and regularization.
    n_threads : int
        Threads of the grower; 0 for all.

    Returns
    -------
    student : Student
    fit : JointFit
        The last joint fit, which can go on with another ridge.
    """
    grower = EngineGrower(problem.X, categorical, len(problem.target), settings, n_threads, problem.n_real)
    growth = Growth(problem, family, settings.ridge, grower)
    growth.grow(settings.n_rounds)
    return growth.student(), growth.fit


def grow_selected(
    problem: Problem, validation: Problem, categorical: Mask, family: Family, settings: Settings, n_threads: int = 1
) -> tuple[Student, JointFit]:
    """Grow a student with a small or a large ridge, selected on validation samples after the first rounds.

    Regression takes the large one; classes do if it lowers the divergence by more than two standard errors. With a
    large ridge, a tree fits part of the residual only, and leaves the rest to the following trees. That pays where
    samples are few for the teacher's complexity, so that fully fitted trees overfit them.

    Parameters
    ----------
    problem, validation : Problem
        Samples to fit, and those that select.
    categorical, family, settings, n_threads
        As for :func:`grow`; the ridge of the settings is the smaller candidate.

    Returns
    -------
    student : Student
    fit : JointFit
    """
    grower = EngineGrower(problem.X, categorical, len(problem.target), settings, n_threads, problem.n_real)
    small = Growth(problem, family, settings.ridge, grower)
    large = Growth(problem, family, _LARGE_RIDGE, grower)
    if family.of_classes:
        values = []
        for growth in (small, large):
            growth.grow(min(_PILOT_ROUNDS, settings.n_rounds))
            values.append(_refitted_divergence(growth, settings.ridge, validation, family))
        gain = values[0] - values[1]
        best = large if gain.mean() > _STANDARD_ERRORS * gain.std() / np.sqrt(len(gain)) else small
    else:
        best = large
    best.grow(settings.n_rounds)
    return best.student(), best.fit


def _refitted_divergence(growth: Growth, ridge: float, validation: Problem, family: Family) -> Float64:
    """Return the divergence of each validation sample for the trees so far, with leaf values refitted with a ridge."""
    fit, student = growth.fit, growth.student()
    before = fit.ridge, fit.leaf_values, fit.scores
    if fit.ridge != ridge:
        fit.ridge = ridge
        fit.refit(_TOLERANCE, _STEPS)
    F = student.leaves(validation.X).scores(fit.leaf_values) + student.intercept[:, None]
    fit.ridge, fit.leaf_values, fit.scores = before
    return family.divergence(F, validation.target)


def select_ridge(
    student: Student, fit: JointFit, ridges: tuple[float, ...], validation: Problem, family: Family
) -> tuple[Student, float]:
    """Select the ridge with the lowest divergence on validation samples, and refit all leaf values with it."""
    best = (np.inf, fit.ridge, fit.leaf_values, fit.scores)
    for ridge in sorted(ridges, reverse=True):
        fit.ridge = ridge
        fit.refit(_TOLERANCE, _STEPS)
        F = student.leaves(validation.X).scores(fit.leaf_values) + student.intercept[:, None]
        value = float(family.divergence(F, validation.target).mean())
        if value < best[0]:
            best = (value, ridge, fit.leaf_values, fit.scores)
    _, fit.ridge, fit.leaf_values, fit.scores = best
    fit.refit(_LAST_TOLERANCE, _LAST_STEPS)
    student.history[-1] = fit.leaf_values
    student.violation = fit.violation()
    return student, fit.ridge


def _weight(problem: Problem, family: Family) -> Float64:
    """Return sample weights that make the mean Hessian 1 at most, of shape (n,)."""
    mean = float(family.hessian(family.mean(problem.target)).mean())
    return np.full(len(problem.X), 1.0 / max(mean, 1.0))


def _intercept(target: Float64, family: Family) -> Float64:
    """Return the constant raw score with the teacher's mean prediction, of shape (K,)."""
    mean = family.mean(target).mean(axis=1)
    if family.link == "logit":
        return np.asarray(np.log(mean / (1 - mean)))
    if family.link == "softmax":
        return np.asarray(np.log(mean) - np.log(mean).mean())
    return np.asarray(np.log(mean)) if family.link == "log" else mean
