"""The interface of tree engines: grow one learner per output on a target, with the leaf of every training sample.

An engine knows neither the loss nor the history.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy.typing as npt

from scboost._arrays import FloatArray, IntArray

TreeShape = Literal["depth-wise", "leaf-wise", "symmetric", "alternating"]
"""How trees grow; "alternating" alternates depth-wise and symmetric trees."""
MultiStrategy = Literal["one_output_per_tree", "multi_output_tree"]
"""How a round serves several outputs: trees of their own, or trees with one structure and values of their own."""
EngineName = Literal["xgboost", "native"]
"""Engines that grow trees."""
Tree = dict[str, Any]
"""A tree as in XGBoost's model document: arrays by node."""


class DeferredTree(Protocol):
    """A tree that is converted to a document on demand."""

    def document(self) -> Tree:
        """Return the tree with its leaf values."""

    def gains(self) -> FloatArray:
        """Return the total gain of each feature, of shape (d,)."""


StoredTree: TypeAlias = "Tree | DeferredTree"


def with_values(tree: Tree, nodes: IntArray | None, values: FloatArray) -> Tree:
    """Return a copy of a tree with other values at its leaf nodes."""
    conditions = tree["split_conditions"].copy()
    conditions[nodes] = values
    return {**tree, "split_conditions": conditions}


class FittedRegressor(Protocol):
    """A fitted regressor of any library."""

    def predict(self, X: Any) -> Any:
        """Return the predicted values of shape (n,)."""


LearnerModel: TypeAlias = Tree | FittedRegressor


class Learner:
    """One grown learner.

    Parameters
    ----------
    leaf : ndarray of shape (n,) or None
        Leaf of each training sample, numbered from 0; None if the learner has no leaves.
    values : ndarray
        Value of each leaf as the engine fitted it, of shape (n_leaves,); predictions of the training samples, of
        shape (n,), if the learner has no leaves.
    model : Tree, FittedRegressor or None
        Decoded tree or fitted regressor, which the ensemble keeps; None for a tree that is decoded on demand.
    nodes : ndarray of shape (n_leaves,) or None
        Node index of each leaf in ``model``.
    """

    def __init__(
        self, leaf: IntArray | None, values: FloatArray, model: LearnerModel | None, nodes: IntArray | None
    ) -> None:
        self.leaf, self.values = leaf, values
        self._model, self._nodes = model, nodes

    @property
    def model(self) -> Any:
        """Decoded tree, or fitted regressor of the estimator engine."""
        return self._model

    @property
    def nodes(self) -> IntArray | None:
        """Node index of each leaf in the model."""
        return self._nodes

    def stored(self) -> StoredTree:
        """Return the tree with the leaf values of this learner."""
        return with_values(self.model, self.nodes, self.values)

    def predictions(self) -> FloatArray:
        """Return the value of each training sample, of shape (n,)."""
        return self.values if self.leaf is None else self.values.take(self.leaf)


class Regressor(FittedRegressor, Protocol):
    """A regressor with scikit-learn's interface, used as base learner in place of trees."""

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        """Fit to X, y and, if supported, ``sample_weight``."""


@dataclass(frozen=True)
class TreeOptions:
    """Options of trees that may be selected by cross-validation.

    Attributes
    ----------
    features : tuple of int
        Indices of the features that trees may use; empty for all.
    subset_splits : bool
        Whether a categorical split may separate any subset of categories, or one category from the rest.
    max_depth, max_leaves : int or None
        Maximum depth and number of leaves of a tree; None for no limit.
    shape : TreeShape
        How trees grow.
    shared : bool
        Whether the trees of a round, one for each output, have one structure.
    """

    features: tuple[int, ...] = ()
    subset_splits: bool = False
    max_depth: int | None = None
    max_leaves: int | None = None
    shape: TreeShape = "depth-wise"
    shared: bool = False

    @property
    def multi_strategy(self) -> MultiStrategy:
        """The value of ``shared`` as the estimators call it."""
        return "multi_output_tree" if self.shared else "one_output_per_tree"


class Totals(NamedTuple):
    """Sums over the samples of all workers that an engine may need to scale its target.

    Attributes
    ----------
    energy : ndarray of shape (K,)
        Sum of the sample weights times the squared unweighted targets.
    hessian : float
        Sum of the Hessians over samples and outputs.
    round : int
        Number of finished rounds, for alternating shapes.
    """

    energy: FloatArray
    hessian: float
    round: int = 0


class Engine(ABC):
    """Grows learners on a fixed training matrix.

    Attributes
    ----------
    dtype : numpy dtype
        Data type of targets and predictions. Predictions are exact in it.
    uses_seed : bool
        Whether trees depend on the seed.
    samples_features : bool
        Whether features are sampled in each round, so that a round without a split need not be the last.
    finishes_rounds : bool
        Whether :meth:`finish_round` is worth a call.
    """

    dtype: npt.DTypeLike
    finishes_rounds: bool = False
    uses_seed: bool = True
    samples_features: bool = False

    @abstractmethod
    def grow(self, target: FloatArray, hessian: FloatArray, seed: int, totals: Totals) -> list[Learner]:
        """Grow one learner for each output.

        Parameters
        ----------
        target, hessian : ndarray of shape (K, n)
            The learner minimizes ``sum(hessian * (target / hessian - h)^2)``. Samples left out of a subsample have
            both at 0. The engine may overwrite the target.
        seed : int
            Seed of the round.
        totals : Totals
            Sums over the samples of all workers.
        """

    def finish_round(self, round_: int, *arguments: Any) -> tuple[Learner, tuple[int, float, float, float]] | None:
        """Do what follows the gradient in a round of one output, in one call, if the engine is able to.

        Parameters
        ----------
        round_ : int
            Number of finished rounds.
        *arguments
            See the compiled ``finish_round``.

        Returns
        -------
        (learner, (k, kept, historical energy, energy)) or None
            None if the engine is unable to or there is something to decide: then nothing has changed.
        """
        del round_, arguments
        return None

    def fork(self) -> Engine:
        """Return a new engine on the same training matrix."""
        return self

    def constrain(self, learner: Learner, values: FloatArray, hessian: FloatArray) -> FloatArray:
        """Project recomputed leaf values onto the constraints of the engine.

        Parameters
        ----------
        learner : Learner
            A learner of this engine.
        values : ndarray of shape (n_leaves,)
            The new value of each leaf.
        hessian : ndarray of shape (n,)
            Hessians of the training samples, times their weights.
        """
        del learner, hessian
        return values
