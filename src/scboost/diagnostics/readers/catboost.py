"""Reader of CatBoost models."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from sklearn.exceptions import NotFittedError

from scboost._arrays import FloatArray, IntArray
from scboost.diagnostics._registry import Reader, instances
from scboost.diagnostics._tree_matrix import EnsembleReader, gather

_LINKS = {
    "Logloss": "logit",
    "CrossEntropy": "logit",
    "MultiClass": "softmax",
    "RMSE": "identity",
    "MAE": "identity",
    "Huber": "identity",
    "Quantile": "quantile",
}


class _Model(Protocol):
    """The members of ``catboost.CatBoost`` used here."""

    feature_names_: list[str]
    classes_: list[Any]

    def is_fitted(self) -> bool: ...
    def get_scale_and_bias(self) -> tuple[float, Any]: ...
    def get_tree_leaf_counts(self) -> Any: ...
    def get_leaf_values(self) -> Any: ...
    def get_cat_feature_indices(self) -> list[int]: ...
    def get_text_feature_indices(self) -> list[int]: ...
    def get_embedding_feature_indices(self) -> list[int]: ...
    def calc_leaf_indexes(self, data: Any, *, thread_count: int) -> Any: ...
    def get_param(self, key: str) -> Any: ...
    def get_all_params(self) -> dict[str, Any]: ...
    def save_model(self, fname: str, *, format: str) -> None: ...  # noqa: A002 - CatBoost's name
    def load_model(self, fname: str, *, format: str) -> Any: ...  # noqa: A002


def _read(model: _Model) -> EnsembleReader:
    if not model.is_fitted():
        raise NotFittedError(f"This {type(model).__name__} has not been fitted.")
    scale, bias = model.get_scale_and_bias()
    intercepts = np.atleast_1d(np.asarray(bias, np.float64))
    K = len(intercepts)
    counts = np.asarray(model.get_tree_leaf_counts())
    values = np.asarray(model.get_leaf_values()).reshape(-1, K)
    find = gather(np.split(values, np.cumsum(counts)[:-1]))
    categorical = bool(model.get_cat_feature_indices())

    def fill(X: Any, out: FloatArray) -> None:
        if isinstance(X, np.ndarray) and not categorical:
            X = np.asfortranarray(X, np.float32)  # CatBoost's own precision and fastest layout
        find(model.calc_leaf_indexes(X, thread_count=model.get_param("thread_count") or -1), out)

    names = list(model.feature_names_)
    automatic = names == [str(i) for i in range(len(names))]
    return EnsembleReader(
        fill,
        np.full(len(counts) * K, float(scale)),
        intercepts,
        np.zeros(len(counts) * K),
        "catboost",
        _LINKS.get(_loss_function(model), "other"),
        np.asarray(model.classes_) if len(model.classes_) else None,
        len(names),
        None if automatic else names,
        needs_table=categorical,
    )


def _loss_function(model: _Model) -> str:
    """Return the name of the loss without options; empty for a sum of models (``sum_models``)."""
    from catboost import CatBoostError

    try:
        parameters = model.get_all_params()
    except CatBoostError:
        return ""
    return str(parameters.get("loss_function", "")).partition(":")[0]


def _write(model: _Model, kept: IntArray, weights: FloatArray, intercept: FloatArray) -> _Model:
    """Scale the leaves in CatBoost's JSON format; CatBoost's own ``shrink`` drops trees from both ends only."""
    if model.get_text_feature_indices() or model.get_embedding_feature_indices():
        raise ValueError(
            "reweight and prune do not support CatBoost models with text or embedding features: CatBoost writes them "
            "only in its binary format, in which trees cannot be changed."
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        document = json.loads(path.read_text())
        name = "oblivious_trees" if "oblivious_trees" in document else "trees"
        document[name] = [document[name][t] for t in kept]
        for tree, factor in zip(document[name], weights, strict=True):
            _scale(tree, factor)
        document["scale_and_bias"] = [1, intercept.tolist()]
        path.write_text(json.dumps(document))
        new = type(model)()
        new.load_model(str(path), format="json")
    return new


def _scale(node: dict[str, Any], factor: FloatArray) -> None:
    for name in ("value", "leaf_values"):  # of a leaf; of a symmetric tree, leaf by leaf
        if name in node:
            values = np.reshape(node[name], (-1, len(factor))) * factor
            node[name] = float(values[0, 0]) if np.isscalar(node[name]) else values.ravel().tolist()
    for child in ("left", "right"):
        if child in node:
            _scale(node[child], factor)


READER = Reader("catboost", "CatBoost", instances("catboost", "CatBoost"), _read, _write)
