"""Orthogonal growth: each tree is grown on the residual of the joint fit of all leaves before it."""

from __future__ import annotations

import numpy as np

from scboost._compress.backfitting import backfit
from scboost._compress.families import Family
from scboost._compress.grower import EngineGrower, Grower, Settings
from scboost._compress.leaves import JointFit, Leaves
from scboost._compress.student import Problem, Student
from scboost._compress.trees import n_leaves
from scboost._compress.types import Float64, Mask
from scboost._model.document import Tree

_TOLERANCE, _STEPS = 3e-2, 1  # of the joint fit after each round
# After the first rounds, a step in the metric of the teacher's Hessian is accurate enough, and one in four rounds.
_ACCURATE_ROUNDS, _JOINT_ROUNDS = 20, 4
_LAST_TOLERANCE, _LAST_STEPS = 1e-2, 3
# Students of classes come as close to the teacher, at a fraction of the cost, if sweeps over the trees replace exact
# joint fits: one after a round, and more of them to select the ridge and at the end. Those of values do not. The fit is
# restarted at the end with some sweeps, and one more for five rounds: fewer make trees less alike, but fit less well.
_SELECTING_SWEEPS, _LAST_SWEEPS = 2, 4
_RESTART_SWEEPS, _ROUNDS_OF_RESTART_SWEEP = 5, 5
# Students of at most this many rounds are backfitted. With more rounds, the factor of all leaves, which is made again,
# costs too much; for classes, a lower divergence did not mean a lower loss.
_BACKFITTED_ROUNDS = {True: 0, False: 20}  # of classifiers, of all other students
_EXACT = 1e-10  # relative divergence below which there is nothing left to fit


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
        weight, intercept = problem.weight(family), _intercept(problem.target, family)
        self.fit = JointFit(Leaves(K, n), family, problem.target, weight, intercept, ridge)
        self._first = self.fit.divergence()
        self._trees: list[Tree] = []
        self._before: Student | None = None
        self._history: list[Float64] = []
        self._ended = False

    def grow(self, n_rounds: int) -> None:
        """Go on until there are `n_rounds` trees of each output, or nothing is left to fit."""
        while len(self._history) < n_rounds and not self._ended:
            self._grow_one()

    def backfit(self, validation: Problem) -> None:
        """Grow the trees so far again, if that lowers the divergence on validation samples."""
        if self._ended:
            return
        student = self.student()
        trees, self.fit = backfit(self._trees, self.fit, self._grower, validation)
        if trees is not self._trees:
            self._before, self._trees = student, trees
            self._history[-1] = self.fit.leaf_values

    def _grow_one(self) -> None:
        fit, n_before = self.fit, len(self._history)
        grown = self._grower.grow(*fit.gradient_hessian())
        if n_before and all(len(tree["left_children"]) == 1 for tree, _ in grown):
            self._ended = True  # no split has a gain: the teacher is reproduced as far as these samples tell
            return
        for k, (tree, leaf) in enumerate(grown):
            fit.add_tree(leaf, n_leaves(tree), k)
            self._trees.append(tree)
        joint = n_before < _ACCURATE_ROUNDS or n_before % _JOINT_ROUNDS == 0
        if not joint:
            fit.fit_trees(range(len(self._trees) - len(grown), len(self._trees)))
        elif fit.family.of_classes:
            fit.sweep()
        elif n_before < _ACCURATE_ROUNDS:
            fit.refit(_TOLERANCE, _STEPS)
        else:
            fit.advance()
        self._history.append(fit.leaf_values)
        self._ended = joint and fit.divergence() <= _EXACT * self._first

    def student(self) -> Student:
        """Return the student so far."""
        fit = self.fit
        student = Student(list(self._trees), fit.intercept, list(self._history), list(fit.leaves.sizes))
        student.grown = self._before
        student.remember(self._problem.X, fit.leaves)
        return student


def grow(
    problem: Problem,
    categorical: Mask,
    family: Family,
    settings: Settings,
    n_threads: int = 1,
    validation: Problem | None = None,
) -> tuple[Student, JointFit]:
    """Grow a student.

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
    validation : Problem, optional
        Validation samples. If given, small students, except for those of classes, are backfitted, and the pass with the
        lowest divergence on these samples is kept.

    Returns
    -------
    student : Student
    fit : JointFit
        The last joint fit, which can go on with another ridge.
    """
    growth = Growth(problem, family, settings.ridge, EngineGrower(problem, categorical, settings, n_threads))
    growth.grow(settings.n_rounds)
    if validation is not None and settings.n_rounds <= _BACKFITTED_ROUNDS[family.of_classes]:
        growth.backfit(validation)
    return growth.student(), growth.fit


def _refit(fit: JointFit) -> None:
    """Fit all leaf values jointly with a ridge to be assessed."""
    if fit.family.of_classes:
        fit.sweep(_SELECTING_SWEEPS)
    else:
        fit.refit(_TOLERANCE, _STEPS)


def select_ridge(
    student: Student, fit: JointFit, ridges: tuple[float, ...], validation: Problem, family: Family
) -> tuple[Student, float]:
    """Select the ridge with the lowest divergence on validation samples, and refit all leaf values with it."""
    best = (np.inf, fit.ridge, fit.leaf_values, fit.scores)
    for ridge in sorted(ridges, reverse=True):
        fit.ridge = ridge
        _refit(fit)
        F = student.leaves(validation.X).scores(fit.leaf_values) + student.intercept[:, None]
        value = float(family.divergence(F, validation.target).mean())
        if value < best[0]:
            best = (value, ridge, fit.leaf_values, fit.scores)
    _, fit.ridge, fit.leaf_values, fit.scores = best
    if family.of_classes:
        fit.restart(_RESTART_SWEEPS + student.n_rounds // _ROUNDS_OF_RESTART_SWEEP)
        fit.sweep(_LAST_SWEEPS)
    else:
        fit.refit(_LAST_TOLERANCE, _LAST_STEPS)
    student.history[-1] = fit.leaf_values
    student.violation = fit.violation()
    return student, fit.ridge


def _intercept(target: Float64, family: Family) -> Float64:
    """Return the constant raw score with the teacher's mean prediction, of shape (K,)."""
    mean = family.mean(target).mean(axis=1)
    if family.link == "logit":
        return np.asarray(np.log(mean / (1 - mean)))
    if family.link == "softmax":
        return np.asarray(np.log(mean) - np.log(mean).mean())
    return np.asarray(np.log(mean)) if family.link == "log" else mean
