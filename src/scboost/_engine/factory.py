"""Choice and construction of the tree engine of a fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from scboost._arrays import BoolArray, FloatArray, IntArray
from scboost._engine.alternating import AlternatingEngine
from scboost._engine.estimator import EstimatorEngine
from scboost._engine.interface import Engine, EngineName, TreeOptions
from scboost._engine.native import MISSING, is_available
from scboost._runtime.context import Context
from scboost._xgboost import installed_version

NEITHER = (
    "Trees are grown by the compiled kernels of scboost or by XGBoost, and neither is installed. For XGBoost: `pip "
    "install 'scboost[cpu]'` (small, CPU only) or `pip install 'scboost[gpu]'`."
)

if TYPE_CHECKING:
    from scboost._engine.native.trees import BinnedData


def engine_name(
    engine: Literal["auto", "native", "xgboost"], *, in_batches: bool, distributed: bool, device: str
) -> EngineName:
    """Return the engine of a fit.

    Parameters
    ----------
    engine : {"auto", "native", "xgboost"}
        The parameter of that name. If the compiled kernels are not installed or do not support the fit, "native" raises
        an error and "auto" uses XGBoost.
    in_batches : bool
        Whether the training set is given in batches.
    distributed : bool
        Whether the fit runs on a cluster, also of a single worker, so that the trees do not depend on their number.
    device : str
        The parameter ``device``.
    """
    obstacles = {
        "X is given in batches": in_batches,
        "the fit is distributed": distributed,
        f"device={device!r}": device != "cpu",
    }
    found = [text for text, holds in obstacles.items() if holds]
    if engine == "native":
        if found:
            raise ValueError(f"engine='native' trains in memory on one machine, but {found[0]}; use engine='xgboost'.")
        if not is_available():
            raise ImportError(MISSING)
    if engine == "xgboost" or found or not is_available():
        return "xgboost"
    return "native"


@dataclass(frozen=True)
class EngineSpec:
    """Parameters of the tree engine.

    Attributes
    ----------
    name : {"xgboost", "native"}
        Which engine grows the trees.
    n_outputs : int
        K.
    min_child_weight : float
        Minimum sum of Hessians in a leaf.
    l2, l1, min_split_loss : float
        Regularization.
    colsample_bytree, colsample_bylevel, colsample_bynode : float in (0, 1]
        Share of the features available to a round, a level and a node.
    max_bin : int
        Number of histogram bins.
    n_threads : int
        Number of threads; 0 for all.
    device : str
        Device of XGBoost.
    categorical : ndarray of bool or None
        Which features are categorical.
    monotone : tuple of int or None
        Sign of the monotone constraint of each feature.
    interactions : list of lists of int or None
        Groups of features that may interact.
    make_learner : callable or None
        ``make_learner(seed)`` returns a scikit-learn regressor to use in place of trees.
    weighted_learner : bool
        Whether the regressor is fitted with sample weights even if the samples have none.
    bin_reference : ndarray or None
        Samples whose quantiles define the histogram bins of the native engine; the training samples by default.
    """

    name: EngineName
    n_outputs: int
    min_child_weight: float
    l2: float
    l1: float
    min_split_loss: float
    colsample_bytree: float
    colsample_bylevel: float
    colsample_bynode: float
    max_bin: int
    n_threads: int
    device: str
    categorical: BoolArray | None = None
    monotone: tuple[int, ...] | None = None
    interactions: list[list[int]] | None = None
    make_learner: Callable[[int], Any] | None = None
    weighted_learner: bool = False
    bin_reference: FloatArray | None = None


class EngineFactory:
    """Creates the engines of a fit; native engines share binned data.

    Parameters
    ----------
    spec : EngineSpec
        Parameters.
    context : Context
        Context of the fit.
    """

    def __init__(self, spec: EngineSpec, context: Context) -> None:
        self._spec, self._context = spec, context
        self._binned: dict[tuple[int, int], tuple[Any, FloatArray | None, BinnedData]] = {}

    def make(self, X: Any, sample_weight: FloatArray | None, options: TreeOptions) -> Engine:
        """Return an engine on a training matrix.

        Parameters
        ----------
        X : matrix or Paged of shape (n, d)
            Training samples.
        sample_weight : ndarray of shape (n,) or None
            Sample weights.
        options : TreeOptions
            Options of the trees.
        """
        spec = self._spec
        if spec.make_learner is not None:
            weighted = spec.weighted_learner or sample_weight is not None
            return EstimatorEngine(X, spec.make_learner, sample_weighted=weighted)
        make = self._make_native if spec.name == "native" else self._make_xgboost
        return make(X, sample_weight, options)

    def _make_xgboost(self, X: Any, sample_weight: FloatArray | None, options: TreeOptions) -> Engine:
        from scboost._engine.xgboost.engine import XGBoostEngine

        if not is_available() and not installed_version():
            raise ImportError(f"{NEITHER} {MISSING}")
        spec = self._spec
        params: dict[str, Any] = {
            "max_leaves": options.max_leaves or 0,
            "grow_policy": "lossguide" if options.shape == "leaf-wise" else "depthwise",
            "min_child_weight": spec.min_child_weight,
            "lambda": spec.l2,
            "alpha": spec.l1,
            "min_split_loss": spec.min_split_loss,
            "colsample_bylevel": spec.colsample_bylevel,
            "colsample_bynode": spec.colsample_bynode,
            "device": spec.device,
            "max_depth": options.max_depth or 0,
        }
        if spec.monotone is not None:
            params["monotone_constraints"] = spec.monotone
        if spec.interactions is not None:
            params["interaction_constraints"] = spec.interactions
        return XGBoostEngine(
            X,
            spec.n_outputs,
            params,
            categorical=spec.categorical,
            subset_splits=options.subset_splits,
            features=_indices(options),
            colsample=spec.colsample_bytree,
            sample_weight=sample_weight,
            max_bin=spec.max_bin,
            n_jobs=spec.n_threads,
            context=self._context,
        )

    def _make_native(self, X: Any, sample_weight: FloatArray | None, options: TreeOptions) -> Engine:
        if options.shape != "alternating":
            return self._make_native_of_shape(X, sample_weight, options, options.shape)
        return AlternatingEngine(
            self._make_native_of_shape(X, sample_weight, options, "depth-wise"),
            self._make_native_of_shape(X, sample_weight, options, "symmetric"),
        )

    def _make_native_of_shape(
        self,
        X: Any,
        sample_weight: FloatArray | None,
        options: TreeOptions,
        shape: Literal["depth-wise", "leaf-wise", "symmetric"],
    ) -> Engine:
        from scboost._engine.native.engine import NativeEngine, binned
        from scboost._engine.native.trees import GrowthOptions

        spec, key, pool = self._spec, (id(X), id(sample_weight)), self._context.threads.native_pool
        if key not in self._binned:
            data = binned(
                X,
                max_bin=spec.max_bin,
                categorical=spec.categorical,
                sample_weight=sample_weight,
                reference=spec.bin_reference,
                pool=pool,
            )
            self._binned[key] = X, sample_weight, data  # keep the objects alive while their ids are used as keys
        growth = GrowthOptions(
            grow_policy=shape,
            max_depth=options.max_depth or 0,
            max_leaves=options.max_leaves or 0,
            reg_lambda=spec.l2,
            reg_alpha=spec.l1,
            min_child_weight=spec.min_child_weight,
            min_split_loss=spec.min_split_loss,
            colsample_bylevel=spec.colsample_bylevel,
            colsample_bynode=spec.colsample_bynode,
            monotone_constraints=spec.monotone or (),
            interaction_constraints=tuple(map(tuple, spec.interactions or ())),
            max_cat_to_onehot=4 if options.subset_splits else 2**31,
        )
        return NativeEngine(
            self._binned[key][2],
            growth,
            features=_indices(options),
            colsample=spec.colsample_bytree,
            shared=options.shared,
            pool=pool,
            context=self._context,
        )


def _indices(options: TreeOptions) -> IntArray | None:
    return np.array(options.features, dtype=np.intp) if options.features else None
