"""Reader of XGBoost models."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from scboost._arrays import FloatArray, IntArray
from scboost._model.document import Document, scaled
from scboost.diagnostics._registry import Reader, instances
from scboost.diagnostics._tree_matrix import EnsembleReader

if TYPE_CHECKING:
    import xgboost

    Model = xgboost.Booster | xgboost.XGBModel

_TASKS = {"rank": "ranking", "survival": "survival"}
_LINKS = {
    "binary:logistic": "logit",
    "multi:softprob": "softmax",
    "multi:softmax": "softmax",
    "reg:squarederror": "identity",
    "reg:absoluteerror": "identity",
    "reg:pseudohubererror": "identity",
    "reg:quantileerror": "quantile",
}

_is_booster = instances("xgboost", "Booster")


def _used_booster(model: Model) -> xgboost.Booster:
    """Return the Booster with the trees that the model's own ``predict`` uses."""
    if not hasattr(model, "get_booster"):
        return model
    check_is_fitted(model)
    booster: xgboost.Booster = model.get_booster()
    # Set by early stopping through a parameter or a callback, also before the model was saved and loaded.
    best = booster.attr("best_iteration")
    return booster if best is None else booster[: int(best) + 1]


def _read(model: Model) -> EnsembleReader:
    booster = _used_booster(model)
    document = Document.of(booster)
    if not document.trees:
        raise ValueError("The XGBoost booster has no trees.")
    if any(int(tree["tree_param"]["size_leaf_vector"]) > 1 for tree in document.trees):
        raise ValueError("XGBoost's multi_strategy='multi_output_tree' is not supported.")
    order = document.by_round()
    n_threads = int(json.loads(booster.save_config())["learner"]["generic_param"]["nthread"])
    by_tree = document.by_tree().booster(n_threads)
    missing = getattr(model, "missing", np.nan)

    def fill(X: Any, out: FloatArray) -> None:
        out[:] = by_tree.inplace_predict(X, predict_type="margin", missing=missing)[:, order]

    return EnsembleReader(
        fill,
        document.tree_weights[order],
        document.base_margin(),
        np.zeros(len(order)),
        "xgboost",
        _LINKS.get(document.objective, "other"),
        getattr(model, "classes_", None),
        booster.num_features(),
        None if booster.feature_names is None else list(booster.feature_names),
        needs_table=bool(document.model.get("cats", {}).get("enc")),
        task=_TASKS.get(document.objective.split(":")[0], ""),
    )


def _write(model: Model, kept: IntArray, weights: FloatArray, intercept: FloatArray) -> Model:
    """Scale the leaves of the kept trees; the change of the intercept is added to those of the first round."""
    document = Document.of(_used_booster(model))
    order = document.by_round().reshape(-1, len(intercept))
    shift = np.zeros_like(weights)
    shift[0] = intercept - document.base_margin()
    trees = [
        scaled(document.trees[tree], float(weight), float(by))
        for tree, weight, by in zip(order[kept].flat, weights.flat, shift.flat, strict=True)
    ]
    # The attributes refer to rounds that may have been dropped, such as best_iteration.
    changed = document.with_trees(trees, list(range(len(intercept))) * len(kept)).with_learner(attributes={})
    if _is_booster(model):
        return changed.booster()
    new: xgboost.XGBModel = clone(model)
    # DART's weights are part of the leaves now.
    new.set_params(n_estimators=len(kept), booster=None, early_stopping_rounds=None, num_parallel_tree=None)
    new.load_model(bytearray(changed.encode()))
    return new


READER = Reader("xgboost", "XGBoost", instances("xgboost", "Booster", "XGBModel"), _read, _write)
