"""The compiled kernels as an engine: trees on binned data that all models of a fit share."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from scboost._arrays import BoolArray, FloatArray, IntArray
from scboost._engine.interface import Engine, Learner, Totals
from scboost._engine.leaf_sums import leaf_sums
from scboost._engine.monotone import clip_to_bounds
from scboost._model.document import leaves
from scboost._runtime.context import Context

from .trees import BinnedData, GrowthOptions, Pool, TreeGrower

# Sizes of targets and mean Hessians, as powers of two, that float32 holds along with much smaller and larger ones.
_COMMON = 40


def binned(
    X: Any,
    *,
    max_bin: int,
    categorical: BoolArray | None = None,
    sample_weight: FloatArray | None = None,
    pool: Pool | None = None,
) -> BinnedData:
    """Bin samples; a categorical feature has as many categories as its largest code says."""
    counts = None
    if categorical is not None and categorical.any():
        counts = np.zeros(X.shape[1], dtype=np.uint32)
        for j in np.flatnonzero(categorical):
            codes = X[:, j] if isinstance(X, np.ndarray) else X[:, [j]].data
            counts[j] = int(np.nanmax(codes, initial=0)) + 1
    return BinnedData(X, max_bin=max_bin, n_categories=counts, sample_weight=sample_weight, pool=pool)


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
        pool: Pool | None = None,
        context: Context | None = None,
    ) -> None:
        self._context = context or Context()
        if self._context.communicator.size > 1:
            raise ValueError("engine='native' trains on one machine; distributed fits need engine='xgboost'.")
        self._data, self._options, self._pool = data, options, pool
        self._features = np.arange(data.shape[1]) if features is None else features
        self._all_features = features is None
        self._n_sampled = max(1, round(colsample * len(self._features)))
        self._samples_by_tree = self._n_sampled < len(self._features)
        inside = min(options.colsample_bylevel, options.colsample_bynode) < 1
        self.uses_seed = self.samples_features = self._samples_by_tree or inside
        self._grower, self._units = TreeGrower(data, options), (1.0, 1.0)

    def grow(self, target: FloatArray, hessian: FloatArray, seed: int, totals: Totals | None = None) -> list[Learner]:
        """Grow one tree for each output; see :class:`Engine`."""
        if totals is None:
            energy = np.einsum("kn,kn->k", target, target, dtype=np.float64)
            totals = Totals(energy, float(hessian.sum(dtype=np.float64)))
        n = max(target.shape[1], 1)
        units = _unit(math.sqrt(totals.energy.max(initial=0) / n)), _unit(totals.hessian / (n * len(target)))
        if units != self._units:
            self._grower, self._units = TreeGrower(self._data, _in_units(self._options, *units)), units
        unit, hessian_unit = units
        gradient = np.negative(target) if unit == 1 else target / -unit
        hessian = hessian if hessian_unit == 1 else hessian / hessian_unit
        features = None if self._all_features else self._features
        if self._samples_by_tree:
            features = np.random.default_rng(seed).permutation(self._features)[: self._n_sampled]
        grown = self._grower.grow(gradient, hessian, seed=seed, features=features, pool=self._pool)
        if units != (1.0, 1.0):
            for one in grown:
                _rescale(one.tree, unit, hessian_unit)
        return [Learner(one.leaf, one.values, one.tree, one.nodes) for one in grown]

    def constrain(self, learner: Learner, values: FloatArray, hessian: FloatArray) -> FloatArray:
        """Clip leaf values to monotone bounds; see :class:`Engine`."""
        signs = self._options.monotone_constraints
        if not any(signs) or learner.leaf is None or learner.nodes is None:
            return values
        mass = leaf_sums(learner.leaf, len(values), (hessian,), None, self._context.threads)[0]
        return clip_to_bounds(learner.model, learner.nodes, values, mass, signs)


def _unit(size: float) -> float:
    """Return a power of two that brings a size near 1, or 1 if it is not far from it."""
    if size <= 0 or not math.isfinite(size):
        return 1.0
    exponent = math.frexp(size)[1]
    return 1.0 if abs(exponent) <= _COMMON else 2.0**exponent


def _in_units(options: GrowthOptions, unit: float, hessian_unit: float) -> GrowthOptions:
    """Return the options for targets and Hessians that were divided by these units."""
    return replace(
        options,
        reg_lambda=options.reg_lambda / hessian_unit,
        min_child_weight=options.min_child_weight / hessian_unit,
        reg_alpha=options.reg_alpha / unit,
        min_split_loss=options.min_split_loss * hessian_unit / unit / unit,
        max_delta_step=options.max_delta_step * hessian_unit / unit,
    )


def _rescale(tree: dict[str, Any], unit: float, hessian_unit: float) -> None:
    """Bring a tree back to the units of the target and the Hessian."""
    most = np.finfo(np.float32).max
    leaf = leaves(tree)

    def times(values: FloatArray, factor: float) -> FloatArray:
        return np.clip(values.astype(np.float64) * factor, -most, most).astype(np.float32)

    tree["base_weights"] = times(tree["base_weights"], unit / hessian_unit)
    tree["split_conditions"] = np.where(leaf, tree["base_weights"], tree["split_conditions"])
    tree["sum_hessian"] = times(tree["sum_hessian"], hessian_unit)
    tree["loss_changes"] = times(tree["loss_changes"], unit / hessian_unit * unit)
