"""The compiled kernels as an engine: trees on binned data that all models of a fit share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from scboost._arrays import BoolArray, FloatArray, IntArray
from scboost._engine.interface import Engine, Learner, StoredTree, Totals, Tree, with_values
from scboost._engine.leaf_sums import leaf_sums
from scboost._engine.monotone import clip_to_bounds
from scboost._runtime.context import Context

from . import _native
from .trees import BinnedData, GrownTree, GrowthOptions, Pool, TreeGrower


class _Structure:
    """A grown tree, which is decoded once for all learners that share it."""

    def __init__(self, native: _native.Tree) -> None:
        self.native = native

    @cached_property
    def document(self) -> Tree:
        return self.native.document()

    @cached_property
    def nodes(self) -> IntArray:
        return self.native.leaves()


@dataclass(frozen=True)
class _Deferred:
    """A grown tree with other leaf values."""

    structure: _Structure
    values: FloatArray

    def document(self) -> Tree:
        return with_values(self.structure.document, self.structure.nodes, self.values)

    def gains(self) -> FloatArray:
        return self.structure.native.gains()


class NativeLearner(Learner):
    """A grown tree that is decoded when it is needed."""

    def __init__(self, structure: _Structure, leaf: IntArray, values: FloatArray) -> None:
        super().__init__(leaf, values, None, None)
        self._structure = structure

    @property
    def model(self) -> Tree:
        """The tree as a document."""
        return self._structure.document

    @property
    def nodes(self) -> IntArray:
        """Node index of each leaf."""
        return self._structure.nodes

    def stored(self) -> StoredTree:
        """Return the tree with the leaf values of this learner, to be decoded later."""
        return _Deferred(self._structure, self.values)


def _learners(grown: GrownTree, count: int = 1) -> list[Learner]:
    """Return learners that share the structure of a tree."""
    structure = _Structure(grown.native)
    return [NativeLearner(structure, grown.leaf, grown.values) for _ in range(count)]


def binned(
    X: Any,
    *,
    max_bin: int,
    categorical: BoolArray | None = None,
    sample_weight: FloatArray | None = None,
    reference: FloatArray | None = None,
    pool: Pool | None = None,
) -> BinnedData:
    """Bin samples; a categorical feature has as many categories as its largest code says.

    The cut points are quantiles of these samples, or of those of `reference`.
    """
    counts = None
    if categorical is not None and categorical.any():
        counts = np.zeros(X.shape[1], dtype=np.uint32)
        for j in np.flatnonzero(categorical):
            codes = X[:, j] if isinstance(X, np.ndarray) else X[:, [j]].data
            counts[j] = int(np.nanmax(codes, initial=0)) + 1
    cuts = None
    if reference is not None:
        cuts = BinnedData(reference, max_bin=max_bin, n_categories=counts, pool=pool).cuts
    return BinnedData(X, max_bin=max_bin, n_categories=counts, sample_weight=sample_weight, cuts=cuts, pool=pool)


class NativeEngine(Engine):
    """Histogram trees of the compiled kernels.

    Parameters
    ----------
    data : BinnedData
        Training samples; engines may share them.
    options : GrowthOptions
        How trees are grown.
    features : ndarray of int, optional
        Features that trees may use; all by default.
    colsample : float in (0, 1], default=1.0
        Share of the features available to each round's trees.
    shared : bool, default=False
        Whether the trees of a round have one structure.
    pool : Pool, optional
        Threads of the kernels.
    context : Context, optional
        Context of the fit; by default one process and one thread.
    """

    dtype = np.float32

    def __init__(
        self,
        data: BinnedData,
        options: GrowthOptions,
        *,
        features: IntArray | None = None,
        colsample: float = 1.0,
        shared: bool = False,
        pool: Pool | None = None,
        context: Context | None = None,
    ) -> None:
        self._context = context or Context()
        if self._context.communicator.size > 1:
            raise ValueError("engine='native' trains on one machine; distributed fits need engine='xgboost'.")
        self._data, self._options, self._shared, self._pool = data, options, shared, pool
        self._features = np.arange(data.shape[1]) if features is None else features
        self._offered: list[int] | None = None if features is None else features.tolist()
        self._n_sampled = max(1, round(colsample * len(self._features)))
        self._samples_by_tree = self._n_sampled < len(self._features)
        inside = min(options.colsample_bylevel, options.colsample_bynode) < 1
        self.samples_features = self._samples_by_tree or inside
        self.uses_seed = self.samples_features or shared
        self._grower = TreeGrower(data, options)
        self.finishes_rounds = not self.uses_seed and not any(options.monotone_constraints)

    def grow(self, target: FloatArray, hessian: FloatArray, seed: int, totals: Totals | None = None) -> list[Learner]:
        """Grow one tree for each output; see :class:`Engine`."""
        del totals
        features = self._offered
        if self._samples_by_tree:
            features = np.random.default_rng(seed).permutation(self._features)[: self._n_sampled].tolist()
        # The gradient is the negative target.
        if self._shared:
            tree = self._grower.grow_shared(target, hessian, factor=-1.0, seed=seed, features=features, pool=self._pool)
            return _learners(tree, len(target))
        grown = self._grower.grow(target, hessian, factor=-1.0, seed=seed, features=features, pool=self._pool)
        return [learner for one in grown for learner in _learners(one)]

    def finish_round(self, round_: int, *arguments: Any) -> tuple[Learner, tuple[int, float, float, float]] | None:
        """Do what follows the gradient; see :class:`Engine`."""
        del round_
        done = self._grower.finish_round(arguments, self._offered, self._pool)
        return None if done is None else (_learners(done[0])[0], done[1])

    def constrain(self, learner: Learner, values: FloatArray, hessian: FloatArray) -> FloatArray:
        """Clip leaf values to monotone bounds; see :class:`Engine`."""
        signs = self._options.monotone_constraints
        if not any(signs) or learner.leaf is None or learner.nodes is None:
            return values
        mass = leaf_sums(learner.leaf, len(values), (hessian,), None, self._context.threads)[0]
        return clip_to_bounds(learner.model, learner.nodes, values, mass, signs)
