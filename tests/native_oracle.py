"""XGBoost, and a brute-force reference, as oracles of the compiled kernels."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import xgboost as xgb

from scboost._engine.native.trees import BinnedData, Cuts, GrownTree, GrowthOptions, TreeGrower

_POLICIES = {"depth-wise": "depthwise", "leaf-wise": "lossguide"}
_SAME_NAMES = (
    "max_depth",
    "max_leaves",
    "reg_lambda",
    "reg_alpha",
    "min_child_weight",
    "min_split_loss",
    "max_delta_step",
    "max_cat_to_onehot",
    "max_cat_threshold",
)
_LOWEST = np.finfo(np.float32).min


def quantile_matrix(X: Any, categorical: Any = None, max_bin: int = 256) -> xgb.QuantileDMatrix:
    types = None if categorical is None else ["c" if c else "q" for c in categorical]
    return xgb.QuantileDMatrix(X, max_bin=max_bin, feature_types=types, enable_categorical=types is not None, nthread=1)


def cuts_of(matrix: xgb.QuantileDMatrix, categorical: Any = None) -> Cuts:
    """Cut points of XGBoost, without the lower bound that it puts before those of a numeric feature."""
    indptr, values = matrix.get_quantile_cut()
    parts = [values[a:b] for a, b in zip(indptr[:-1].astype(int), indptr[1:].astype(int), strict=True)]
    parts = [part if categorical is not None and categorical[j] else part[1:] for j, part in enumerate(parts)]
    sizes = np.cumsum([0, *map(len, parts)]).astype(np.int64)
    return Cuts(sizes, np.concatenate(parts).astype(np.float32))


def xgboost_tree(matrix: xgb.QuantileDMatrix, g: Any, h: Any, options: GrowthOptions) -> tuple[dict[str, Any], Any]:
    """Grow one tree with XGBoost; returns it and the nodes of the training samples."""
    params = {name: value for name, value in asdict(options).items() if name in _SAME_NAMES}
    params["grow_policy"] = _POLICIES[options.grow_policy]
    if options.monotone_constraints:
        params["monotone_constraints"] = str(options.monotone_constraints)
    if options.interaction_constraints:
        params["interaction_constraints"] = str([list(group) for group in options.interaction_constraints])
    fixed = {"tree_method": "hist", "eta": 1.0, "base_score": 0.0, "nthread": 1, "max_bin": 256}
    booster = xgb.Booster({**fixed, **params}, [matrix])
    booster.boost(matrix, iteration=0, grad=g, hess=h)
    document = json.loads(booster.save_raw("json"))
    tree = document["learner"]["gradient_booster"]["model"]["trees"][0]
    arrays = {name: np.array(value) if isinstance(value, list) else value for name, value in tree.items()}
    return arrays, booster.predict(matrix, pred_leaf=True).ravel().astype(int)


def native_tree(X: Any, g: Any, h: Any, options: GrowthOptions, cuts: Cuts, categorical: Any = None) -> GrownTree:
    counts = None if categorical is None else np.where(categorical, np.diff(cuts.indptr), 0)
    [grown] = TreeGrower(BinnedData(X, cuts=cuts, n_categories=counts), options).grow(g[None], h[None])
    return grown


def assert_equals_xgboost(X: Any, g: Any, h: Any, options: GrowthOptions, categorical: Any = None) -> GrownTree:
    """Assert that structure, gains and values are those of XGBoost's tree on the same cut points.

    Ties are up to rounding, which the data of the caller must not have. XGBoost takes gains in float32 as differences
    of the children's and the node's: the gain of a node is exact to the precision of those.
    """
    matrix = quantile_matrix(X, categorical)
    theirs, nodes = xgboost_tree(matrix, g, h, options)
    grown = native_tree(X, g, h, options, cuts_of(matrix, categorical), categorical)
    ours = grown.tree
    for name in ("left_children", "right_children", "parents", "split_indices", "split_type"):
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
    for name in ("categories", "categories_nodes", "categories_segments", "categories_sizes"):
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
    np.testing.assert_array_equal(grown.nodes[grown.leaf], nodes)
    inner = ours["left_children"] != -1
    # A split of missing from present values: XGBoost's threshold is a little below the smallest value.
    present = inner & (ours["split_conditions"] != _LOWEST)
    np.testing.assert_array_equal(ours["split_conditions"][present], theirs["split_conditions"][present].astype("f4"))
    size = np.abs(theirs["base_weights"]).max()
    for name in ("base_weights", "sum_hessian"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=4e-6, atol=1e-6 * size, err_msg=name)
    leaf = ~inner
    np.testing.assert_array_equal(ours["split_conditions"][leaf], ours["base_weights"][leaf])
    gain = ours["base_weights"].astype(float) ** 2 * (ours["sum_hessian"] + options.reg_lambda)
    scale = ours["loss_changes"] + gain + np.abs(ours["base_weights"]) * options.reg_alpha * 2
    assert (np.abs(ours["loss_changes"] - theirs["loss_changes"]) <= 2e-6 * scale + 1e-30).all()
    return grown
