"""The small model while it is fitted: trees and leaf values after each round."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from scboost._compress.families import Family
from scboost._compress.leaves import Leaves
from scboost._compress.trees import apply_trees
from scboost._compress.types import Float32, Float64, Indices
from scboost._model.document import Tree


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
    features : ndarray of int, optional
        Features that trees may split on; all by default.
    """

    X: Float32
    target: Float64
    n_real: int = 0
    features: Indices | None = None

    def weight(self, family: Family) -> Float64:
        """Return sample weights that make the mean Hessian 1 at most, of shape (n,)."""
        mean = float(family.hessian(family.mean(self.target)).mean())
        return np.full(len(self.X), 1.0 / max(mean, 1.0))


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
    grown : Student or None
        The student before backfitting, whose first rounds are the smaller models; None without backfitting.
    """

    trees: list[Tree]
    intercept: Float64
    history: list[Float64]
    sizes: list[int]
    violation: float = 0.0
    grown: Student | None = None
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
        at = self.at(n_rounds or self.n_rounds)
        return at.leaves(X).scores(at.history[(n_rounds or self.n_rounds) - 1]) + self.intercept[:, None]

    def n_leaves(self, n_rounds: int) -> int:
        """Return the leaves of all trees after some rounds."""
        return sum(self.at(n_rounds).sizes[: n_rounds * self.n_outputs])

    def at(self, n_rounds: int) -> Student:
        """Return the student that held after some rounds: this one, or the one before backfitting."""
        return self if self.grown is None or n_rounds >= self.grown.n_rounds else self.grown

    def truncated(self, n_rounds: int) -> Student:
        """Return the model after some rounds."""
        at, n_trees = self.at(n_rounds), n_rounds * self.n_outputs
        grown = None if at is self.grown else self.grown
        cut = Student(at.trees[:n_trees], at.intercept, at.history[:n_rounds], at.sizes[:n_trees], at.violation, grown)
        for X, places in at._places.values():  # noqa: SLF001 - of the same class
            cut.remember(X, places.first(n_trees))
        return cut
