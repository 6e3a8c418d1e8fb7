"""XGBoost's models, read and written."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from scboost._arrays import FloatArray, IntArray
from scboost._model.document import Document, scaled
from scboost.diagnostics._registry import Reader, instances
from scboost.diagnostics._tree_matrix import EnsembleReader

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


def _used_booster(model: Any) -> Any:
    """Return the Booster with the trees that the model's own ``predict`` uses."""
    if _is_booster(model):
        return model
    check_is_fitted(model)
    booster = model.get_booster()
    # Of whatever stopped the fit: a parameter, a callback, or the fit of a model that was loaded from a file.
    best = booster.attr("best_iteration")
    return booster if best is None else booster[: int(best) + 1]


def _read(model: Any) -> EnsembleReader:
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
        booster.feature_names,
        needs_table=bool(document.model.get("cats", {}).get("enc")),
    )


def _write(model: Any, kept: IntArray, weights: FloatArray, intercept: FloatArray) -> Any:
    """Scale the leaves of the kept trees; the first round carries what the intercept has changed by."""
    document = Document.of(_used_booster(model))
    order = document.by_round().reshape(-1, len(intercept))
    shift = np.zeros_like(weights)
    shift[0] = intercept - document.base_margin()
    trees = [
        scaled(document.trees[tree], float(weight), float(by))
        for tree, weight, by in zip(order[kept].flat, weights.flat, shift.flat, strict=True)
    ]
    # The attributes are about rounds that may be gone, such as the best one.
    changed = document.with_trees(trees, list(range(len(intercept))) * len(kept)).with_learner(attributes={})
    if _is_booster(model):
        return changed.booster()
    new = clone(model)
    # DART's weights are in the leaves now.
    new.set_params(n_estimators=len(kept), booster=None, early_stopping_rounds=None, num_parallel_tree=None)
    new.load_model(bytearray(changed.encode()))
    return new


READER = Reader("xgboost", "XGBoost", instances("xgboost", "Booster", "XGBModel"), _read, _write)
