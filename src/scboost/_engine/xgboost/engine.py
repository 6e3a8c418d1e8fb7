"""XGBoost as the engine: histogram trees, one boosting call per round."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray, IntArray, Paged, take_columns
from scboost._engine.interface import Engine, Learner, Totals
from scboost._engine.leaf_sums import leaf_sums
from scboost._engine.monotone import clip_to_bounds
from scboost._model.document import NewestTrees
from scboost._model.ubjson import ObjectReader
from scboost._runtime.context import Context
from scboost._runtime.signals import interrupts_deferred
from scboost._runtime.threads import SERIAL, Threads
from scboost._xgboost import import_xgboost, usable_threads

from .calls import Calls
from .paged import paged_matrix

if TYPE_CHECKING:
    import xgboost

_CELLS = (
    1 << 12,
    1 << 14,
)  # minimum and maximum size of the lookup table from margin changes to leaves, so that it stays in cache
# Range of mean Hessians that need no rescaling, and the parameters in units of the Hessian.
_COMMON_HESSIANS = (2.0**-24, 2.0**16)
_PENALTIES = ("lambda", "min_child_weight")
_EPS, _TINY = float(np.finfo(np.float32).eps), float(np.finfo(np.float32).tiny)
_LARGEST = np.finfo(np.float32).max
_LARGEST_UNIT = 4.0**63  # the largest power of four in float32


class XGBoostEngine(Engine):
    """XGBoost's histogram trees, one boosting call per round.

    Parameters
    ----------
    X : ndarray, sparse matrix or Paged of shape (n, d)
        Training samples.
    n_outputs : int
        K.
    params : dict
        XGBoost parameters of the trees.
    categorical : sequence of bool, optional
        Which features hold category codes.
    subset_splits : bool, default=False
        Whether a categorical split may separate any subset of categories, or one category from the rest.
    features : ndarray of int, optional
        Indices of the features that trees may use; all by default.
    colsample : float in (0, 1], default=1.0
        Share of the features available to each round's trees.
    sample_weight : ndarray of shape (n,), optional
        Used for the bin edges and the number of samples; the caller weights target and Hessian.
    max_bin : int
        Number of histogram bins.
    n_jobs : int
        Number of threads; 0 for all.
    context : Context, optional
        Context of the fit; by default one process and one thread.
    """

    dtype = np.float32

    def __init__(
        self,
        X: Any,
        n_outputs: int,
        params: dict[str, Any],
        *,
        categorical: npt.NDArray[np.bool_] | None = None,
        subset_splits: bool = False,
        features: IntArray | None = None,
        colsample: float = 1.0,
        sample_weight: FloatArray | None = None,
        max_bin: int = 256,
        n_jobs: int = 1,
        context: Context | None = None,
    ) -> None:
        self._context = context or Context()
        n_jobs = usable_threads(n_jobs)
        self._features = features
        self._monotone = params.get("monotone_constraints")
        if features is not None:
            X, params = take_columns(X, features), _of_features(params, features)
            categorical = None if categorical is None else categorical[features]
        self.matrix = _quantile_matrix(X, feature_types(categorical), sample_weight, max_bin=max_bin, nthread=n_jobs)
        self._n_outputs = n_outputs
        n = float(self.matrix.num_row())
        mass = n if sample_weight is None else float(np.sum(sample_weight, dtype=np.float64))
        self._mass, self._n = self._context.communicator.sum(np.array([mass, n])).tolist()
        n_features = self.matrix.num_col()
        self._n_sampled = max(1, round(colsample * n_features))
        # The first round of a booster allocates histograms of every feature; every round reads all its trees.
        self._rounds_per_booster = min(max(n_features // 8, 16), 64)
        params = _booster_params(params, n_outputs, max_bin=max_bin, n_jobs=n_jobs, subset_splits=subset_splits)
        self._samples_by_tree = self._n_sampled < n_features
        self._samples_inside = min(params.get(f"colsample_by{part}", 1.0) for part in ("level", "node")) < 1
        self.uses_seed = self.samples_features = self._samples_by_tree or self._samples_inside
        if self._samples_by_tree:
            # Features are drawn here, by the seed of the round, and passed as weights: XGBoost's
            # sampler carries its state from round to round, so a resumed fit could not repeat it.
            params["colsample_bytree"] = (self._n_sampled + 0.5) / n_features
        self._params = params
        # These are in units of the target, which must be the same for the trees of all outputs.
        self._one_scale = params["min_split_loss"] > 0 or params["alpha"] > 0
        self._unit = 1.0
        self._reader = ObjectReader()
        self._renew()

    def _renew(self, seed: int = 0) -> None:
        """Start a new booster on the same matrix.

        Reading the newest tree from the serialized booster is cheaper than slicing the booster as long as it has few
        trees, and small margins have small rounding errors.
        """
        params = {**self._params, **self._penalties(), "seed": seed}
        self._booster: xgboost.Booster = import_xgboost().Booster(params, [self.matrix])
        self._calls = Calls(self._booster, self.matrix)
        self._newest = NewestTrees(self._reader)
        self._margin = np.array(self._read_margin())
        self._round = 0

    def _penalties(self) -> dict[str, float]:
        """Return the parameters in units of the Hessian, converted to this unit."""
        return {name: _single(self._params[name] / self._unit) for name in _PENALTIES}

    def fork(self) -> XGBoostEngine:
        """Start a new booster on the same matrix; see :class:`Engine`."""
        engine = copy.copy(self)
        engine._renew()  # noqa: SLF001 - its own class
        return engine

    def _units(self, totals: Totals) -> tuple[float, FloatArray]:
        """Return the unit of the Hessian, and of the target of each output, of shape (K, 1).

        XGBoost rejects splits whose gain is below an absolute threshold: the target is scaled to unit size, in which
        a gain is a number of samples: the larger of their number and the sum of their weights.
        """
        energies, mass, n = totals.energy.tolist(), self._mass, self._n
        if self._one_scale:
            energies = [max(energies)] * len(energies)
        weight_unit = _unit(mass / n)
        size = math.sqrt(max(mass, n) / weight_unit)
        scales = [[max(math.sqrt(energy) / size, _TINY)] if energy > 0 else [1.0] for energy in energies]
        unit = min(_unit(totals.hessian / (mass * len(energies))) * weight_unit, _LARGEST_UNIT)
        return unit, np.array(scales, dtype=np.float32)

    def grow(self, target: FloatArray, hessian: FloatArray, seed: int, totals: Totals | None = None) -> list[Learner]:
        """Grow one tree for each output; see :class:`Engine`."""
        if totals is None:
            energy = np.einsum("kn,kn->k", target, target, dtype=np.float64)
            totals = Totals(energy, float(hessian.sum(dtype=np.float64)))
        unit, scale = self._units(totals)
        threads = self._context.threads
        if self._samples_by_tree:
            sampled = np.random.default_rng(seed).permutation(self.matrix.num_col())[: self._n_sampled]
            weights = np.zeros(self.matrix.num_col(), dtype=np.float32)
            weights[sampled] = 1e6  # XGBoost clips weights to at least 1e-6: with these, other features are never drawn
            self.matrix.set_info(feature_weights=weights)
        if unit != self._unit:
            self._unit = unit
            self._booster.set_param(self._penalties())
        if self._samples_inside or self._round == self._rounds_per_booster:
            self._renew(seed % 2**31)  # only a new booster resets the feature sampler
        if self._one_scale:
            size = float(scale[0, 0])
            least_gain, alpha = self._params["min_split_loss"] * unit / size**2, self._params["alpha"] / size
            self._booster.set_param({"min_split_loss": _single(least_gain), "alpha": _single(alpha)})
        threads.map_blocks(lambda rows: np.divide(target[:, rows], -scale, out=target[:, rows]), target.shape[1])
        hessian = hessian if unit == 1 else hessian / unit
        self._calls.boost(self._round, _samples_first(target), _samples_first(hessian))
        self._round += 1
        margin = self._read_margin()
        trees = self._newest.read(self._calls.model())
        learners = []
        exact: IntArray | None = None
        for k, tree in enumerate(trees):
            nodes = (tree["left_children"] == -1).nonzero()[0]
            values = tree["split_conditions"][nodes]
            leaf = _snap(margin[k], self._margin[k], values, threads)
            if leaf is None:  # the values of two leaves are too close to distinguish them
                exact = self._newest_leaves() if exact is None else exact
                leaf = np.searchsorted(nodes, exact[:, k])
            # Gains of a diverging fit are kept finite: files do not support infinity.
            gains = tree["loss_changes"] * min(scale[k] ** 2 / np.float32(unit), _LARGEST)
            tree["loss_changes"] = np.minimum(gains, _LARGEST)
            if unit != 1:
                # Relative to each other, if those of a diverging fit are beyond float32: covers must add up.
                largest = max(float(tree["sum_hessian"].max()), float(np.finfo(np.float32).tiny))
                tree["sum_hessian"] *= np.float32(min(float(unit), float(_LARGEST) / largest))
            if self._features is not None:
                split = tree["left_children"] != -1
                tree["split_indices"][split] = self._features[tree["split_indices"][split]]
            learners.append(Learner(leaf, values * (scale[k] / np.float32(unit)), tree, nodes))
        threads.map_blocks(lambda rows: np.copyto(self._margin[:, rows], margin[:, rows]), margin.shape[1])
        return learners

    def _read_margin(self) -> FloatArray:
        """Return the margins, of shape (K, n); possibly a view of XGBoost's buffer, valid until the next call."""
        return np.ascontiguousarray(self._calls.margin().reshape(-1, self._n_outputs).T)

    def _newest_leaves(self) -> IntArray:
        """Return the node of every sample in the newest trees, of shape (n, K)."""
        leaves = self._booster[self._round - 1 : self._round].predict(self.matrix, pred_leaf=True)
        return leaves.reshape(-1, self._n_outputs).astype(np.intp)

    def constrain(self, learner: Learner, values: FloatArray, hessian: FloatArray) -> FloatArray:
        """Clip leaf values to XGBoost's monotone bounds; see :class:`Engine`."""
        if not self._monotone or learner.leaf is None or learner.nodes is None:
            return values
        sums = leaf_sums(learner.leaf, len(values), (hessian,), None, self._context.threads)[0]
        mass = self._context.communicator.sum(sums)
        return clip_to_bounds(learner.model, learner.nodes, values, mass, self._monotone)


def _quantile_matrix(
    X: Any, types: list[str] | None, sample_weight: FloatArray | None, **options: Any
) -> xgboost.DMatrix:
    """Bin training samples."""
    matrix: xgboost.DMatrix
    if isinstance(X, Paged):  # the bins are in a file that is read several times per tree
        matrix = paged_matrix("ExtMemQuantileDMatrix", X, types, sample_weight, **options)
    else:
        make = import_xgboost().QuantileDMatrix
        if isinstance(X, np.ndarray) and not len(X):  # may be at any address, which XGBoost rejects
            X = X.copy()
        with interrupts_deferred():  # it reads X in a callback
            matrix = make(X, weight=sample_weight, feature_types=types, enable_categorical=types is not None, **options)
    return matrix


def _booster_params(
    params: dict[str, Any], n_outputs: int, *, max_bin: int, n_jobs: int, subset_splits: bool
) -> dict[str, Any]:
    """Return the parameters of a booster that is trained on given gradients."""
    params = {
        "lambda": 1.0,
        "min_child_weight": 1.0,
        "min_split_loss": 0.0,
        "alpha": 0.0,
        **params,
        "booster": "gbtree",
        "tree_method": "hist",
        "max_bin": max_bin,
        "nthread": n_jobs,
        "eta": 1.0,
        "base_score": 0.0,
        "disable_default_eval_metric": 1,
        "verbosity": 0,
    }
    if not subset_splits:
        params["max_cat_to_onehot"] = np.iinfo(np.int32).max
    if n_outputs > 1:
        params |= {"objective": "multi:softprob", "num_class": n_outputs}
    else:
        params |= {"objective": "reg:squarederror"}
    if "interaction_constraints" in params:  # as text: a list would be translated through feature names
        params["interaction_constraints"] = str(params["interaction_constraints"])
    return params


def feature_types(categorical: npt.NDArray[np.bool_] | None) -> list[str] | None:
    """Return XGBoost's names of the feature types; None if no feature is categorical."""
    return None if categorical is None else ["c" if c else "float" for c in categorical]


def _of_features(params: dict[str, Any], features: IntArray) -> dict[str, Any]:
    """Return the constraints for a subset of the features, with indices into the subset."""
    params = dict(params)
    if "monotone_constraints" in params:
        params["monotone_constraints"] = tuple(params["monotone_constraints"][j] for j in features)
    if "interaction_constraints" in params:
        place = {int(j): i for i, j in enumerate(features)}
        groups = [[place[j] for j in group if j in place] for group in params["interaction_constraints"]]
        params["interaction_constraints"] = [group for group in groups if group] or [[i] for i in place.values()]
    return params


def _unit(mean: float) -> float:
    """Return a power of four near a mean Hessian or weight, or 1 if it is close to 1.

    XGBoost's thresholds are absolute: with Hessians of 1e8 every gain is too small for a split.
    """
    low, high = _COMMON_HESSIANS
    return 1.0 if low <= mean <= high or mean <= 0 else 4.0 ** round(np.log2(min(mean, float(_LARGEST))) / 2)


def _single(value: float) -> float:
    """Clip a value to the range of float32, and to 0 below its smallest number: XGBoost rejects both."""
    return min(value, float(_LARGEST)) if value > _TINY else 0.0


def _samples_first(a: FloatArray) -> FloatArray:
    return np.ascontiguousarray(a.T) if len(a) > 1 else a[0]


def _snap(margin: FloatArray, before: FloatArray, values: FloatArray, threads: Threads = SERIAL) -> IntArray | None:
    """Return the leaf of each sample from the change of its margin; None if rounding could confuse two leaves.

    The change has a float32 rounding error of at most half an ulp of the margin. Leaves are looked up in a table of
    equal steps over the range of the values, in blocks that stay in cache, several times faster than by binary search.
    If two leaves share a step, the leaf found may be wrong; such samples are detected by their distance from the leaf
    value and found by binary search.
    """
    order = values.argsort()
    levels = values[order].astype(np.float64)
    if not len(margin):
        return np.zeros(0, dtype=np.intp)
    first, last = float(levels[0]), float(levels[-1])
    ends = threads.map_blocks(lambda rows: max(float(margin[rows].max()), -float(margin[rows].min())), len(margin))
    error = _EPS * (max(ends) + max(-first, last))
    if np.minimum.reduce(levels[1:] - levels[:-1], initial=np.inf) <= 2 * error:
        return None
    low = first - error
    n_cells = min(max(len(margin), _CELLS[0]), _CELLS[1])
    step = max((last + error - low) / n_cells, _TINY)
    middles = (levels[:-1] + levels[1:]) / 2
    bounds = np.concatenate(([0], np.ceil((middles - low) / step).astype(np.intp), [n_cells + 1]))
    order = order.astype(np.min_scalar_type(len(values) - 1))
    leaf_at = order.repeat(bounds[1:] - bounds[:-1])
    leaf = np.empty(len(margin), dtype=order.dtype)
    low32, per_step = np.float32(low), np.float32(1 / step)
    value_at = values.take(leaf_at)

    def look_up(rows: slice) -> float:
        """Set the leaves of a block; return the largest distance from a leaf value, or 0 if all are rounding errors."""
        change = margin[rows] - before[rows]
        distance = change - low32
        distance *= per_step
        cells = distance.astype(np.int32).astype(np.intp)  # in two steps, which is several times faster
        found = leaf_at.take(cells, mode="clip", out=leaf[rows])
        np.subtract(change, value_at.take(cells, mode="clip", out=distance), out=distance)
        if max(float(distance.max()), -float(distance.min())) <= error:
            return 0.0
        wrong = np.flatnonzero(np.abs(distance) > error)
        found[wrong] = order[np.searchsorted(middles, change[wrong])]
        distance[wrong] = change[wrong] - values[found[wrong]]
        return float(np.abs(distance).max())

    worst = max(threads.map_blocks(look_up, len(margin)))
    if worst > error:
        raise RuntimeError(
            f"The margin of a training sample changed by a value {worst:.3g} away from every leaf of the new tree "
            f"(at most {error:.3g} is rounding): XGBoost's cached margins cannot be trusted."
        )
    return leaf
