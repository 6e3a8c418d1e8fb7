"""Model files: a native XGBoost model with the state of scboost in its attributes.

The attribute ``scboost`` is JSON text; ``scboost_checksum`` is the SHA-256 of everything else. Files are
untrusted: nothing is executed, and lengths, indices, links between nodes, types and the consistency of the two parts
are checked before XGBoost reads the model.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import math
from collections.abc import Mapping
from typing import Any, cast, get_args

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray
from scboost._core import losses
from scboost._core.links import HazardLink
from scboost._core.losses import Loss
from scboost._core.weighting.solver import Weights
from scboost._data.encoder import Encoder
from scboost._engine.interface import EngineName, MultiStrategy, TreeShape
from scboost._engine.xgboost.ensemble import TreeEnsemble
from scboost._model import ubjson
from scboost._model.columns import pack_columns, unpack_columns
from scboost._model.conformal_state import pack_conformal, unpack_conformal
from scboost._model.document import Document, leaves
from scboost._model.fitted import FittedModel, Selection, new_ensemble
from scboost._model.json_text import read_text
from scboost._model.packing import NUMERIC, ModelFileError, float64, pack, require, unpack, untrusted
from scboost._version import __version__
from scboost._xgboost import installed_version

SCHEMA = 2
_OWN, _CHECKSUM = "scboost", "scboost_checksum"
_OF_THE_PROCESS = {"callbacks", "estimator"}  # parameters that are never stored
_KEYS = {
    "schema",
    "scboost",
    "xgboost",
    "parameters",
    "columns",
    "sparse",
    "loss",
    "fitted",
    "weights",
    "intercept",
    "leaf_values",
    "dropped_trees",
    "conformal",
}
_KEYS_OF_SCHEMA_1 = {"estimator"}  # which follows from the loss


# Names of schema 1 that have changed since, and values of the parameters among them.
_RENAMED = {
    "category_splits": "categorical_splits",
    "category_splits_": "categorical_splits_",
    "choosing_log_": "selection_log_",
    "column_selection": "feature_selection",
    "selected_columns_": "selected_features_",
    "weight_pull": "weight_ridge",
    "weighting_rows": "weighting_data",
}
_MOST_FEATURES = 1 << 26  # memory of importances and of a sample's values is proportional to their number
_RENAMED_VALUES = {"one": "one-vs-rest", "groups": "subset"}


# --- writing -------------------------------------------------------------------------------------------------------


def to_document(model: FittedModel, parameters: Mapping[str, Any]) -> Document:
    """Return the native model, with the state of scboost in its attributes."""
    document = _without_checksum(model, parameters)
    return document.with_learner(attributes={**document.attributes, _CHECKSUM: checksum(document)})


def file_size(model: FittedModel) -> int:
    """Return the bytes of a model file in UBJSON, without parameters of the estimator that are not the default."""
    document = _without_checksum(model, {})
    attributes = {**document.attributes, _CHECKSUM: "0" * 2 * hashlib.sha256().digest_size}
    document = document.with_learner(attributes=attributes)
    return len(document.encode_compact()) if model.is_compressed else ubjson.size(document.content)


def _without_checksum(model: FittedModel, parameters: Mapping[str, Any]) -> Document:
    ensemble = model.trees("save_model")
    native = ensemble.document()
    own = {
        "schema": SCHEMA,
        "scboost": __version__,
        "xgboost": installed_version(),
        "parameters": _pack_parameters(parameters),
        "columns": pack_columns(model.encoder),
        "sparse": model.encoder.sparse,
        "loss": pack_loss(model.loss),
        "fitted": {name: pack(value, name) for name, value in _attributes(model).items() if value is not None},
        "weights": pack(ensemble.weights),
        "intercept": pack(ensemble.intercept),
        "leaf_values": pack(_stored_leaf_values(ensemble, native)),
        "dropped_trees": base64.b64encode(ubjson.encode(ensemble.dropped())).decode(),
    }
    if model.conformal is not None:
        own["conformal"] = pack_conformal(model.conformal)
    return native.with_learner(attributes={_OWN: json.dumps(own, allow_nan=False)})


def _stored_leaf_values(ensemble: TreeEnsemble, native: Document) -> FloatArray:
    """Return unweighted leaf values; of the first round only, if the native model contains those of the others.

    This is the case if all weights are 1. The leaves of the first round always include a part of the intercept.
    """
    values = ensemble.leaf_values()
    n_first, later = _later_leaf_values(native, ensemble.n_outputs)
    unweighted = bool((ensemble.weights == 1).all())
    return values[:n_first] if unweighted and np.array_equal(values[n_first:], later) else values


def _later_leaf_values(native: Document, n_outputs: int) -> tuple[int, FloatArray]:
    """Return the number of leaves in the first round of a native model, and the leaf values of all other rounds."""
    by_tree = [tree["split_conditions"][leaves(tree)] for tree in native.in_current_layout().trees]
    n_first = sum(len(values) for values in by_tree[:n_outputs])
    return n_first, np.concatenate([np.zeros(0, np.float32), *by_tree[n_outputs:]])


def _attributes(model: FittedModel) -> dict[str, Any]:
    """Facts about a model, under the names of the estimator's attributes; None for those that it does not have."""
    selection = model.selection
    return {
        "classes_": model.classes,
        "n_estimators_": model.n_rounds,
        "learning_rate_": model.learning_rate,
        "max_depth_": model.max_depth,
        "tree_shape_": model.tree_shape,
        "multi_strategy_": model.multi_strategy,
        "projection_strength_": model.projection_strength,
        "training_log_": dict(model.training_log),
        "stop_reason_": model.stop_reason,
        "selection_log_": dict(selection.log) or None,
        "selected_features_": np.array(selection.features, dtype=np.int64) if selection.features else None,
        "categorical_splits_": selection.categorical_splits,
        "weighting_result_": model.weighting_result,
        "target_name_": list(model.target_name) if isinstance(model.target_name, tuple) else model.target_name,
        "members_": list(model.members) or None,
        "baseline_": dict(model.baseline) or None,
        "engine_": model.engine,
    }


def checksum(document: Document) -> str:
    """SHA-256 of a model as UBJSON, without the attribute that holds it: the same for both formats."""
    attributes = {name: text for name, text in document.attributes.items() if name != _CHECKSUM}
    return hashlib.sha256(document.with_learner(attributes=attributes).encode()).hexdigest()


def _pack_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    skipped = {*_OF_THE_PROCESS, *not_stored(parameters)}
    if isinstance(parameters.get("loss"), Loss):  # which has a place of its own
        skipped.add("loss")
    return {name: pack(value, name) for name, value in parameters.items() if name not in skipped}


def not_stored(parameters: Mapping[str, Any]) -> list[str]:
    """Return the names of parameters with values that a file cannot store."""
    names = []
    for name, value in parameters.items():
        try:
            pack(None if name in _OF_THE_PROCESS or isinstance(value, Loss) else value, name)
        except ValueError:
            names.append(name)
    return names


def pack_loss(loss: Loss) -> dict[str, Any]:
    cls = type(loss)
    names = inspect.signature(cls).parameters
    if losses.is_built_in(loss):
        return {"name": cls.__name__, "numbers": {name: getattr(loss, name) for name in names}}
    return {"name": cls.__name__, "module": cls.__module__, "parameters": _pack_own_parameters(loss)}


def _pack_own_parameters(loss: Loss) -> dict[str, Any]:
    """Return the constructor arguments of a user-defined loss by name."""
    cls = type(loss)
    missing = [name for name in inspect.signature(cls).parameters if not hasattr(loss, name)]
    if missing:
        raise ValueError(
            f"The loss {cls.__name__} does not keep its argument {missing[0]!r} as an attribute of that name, which a "
            "model file needs to tell one loss from another."
        )
    return {name: pack(getattr(loss, name), name) for name in inspect.signature(cls).parameters}


# --- reading -------------------------------------------------------------------------------------------------------


def parse(data: bytes) -> Document:
    """Decode and check the native part of a model file.

    Parameters
    ----------
    data : bytes
        Untrusted.

    Returns
    -------
    Document
        Valid, of a known schema, and with the right checksum.
    """
    with untrusted("is corrupt or not a model file"):
        document = Document.decode(data)
        _check_origin(document)
        document.check()
    return document


def _check_origin(document: Document) -> None:
    attributes = document.attributes
    if not isinstance(attributes, dict) or not isinstance(attributes.get(_OWN), str):
        raise ModelFileError("was not written by scboost; xgboost.Booster(model_file=...) may be able to read it.")
    require(attributes.get(_CHECKSUM) == checksum(document), "its checksum is not that of its content")


def from_document(document: Document, loss: Loss | None = None) -> tuple[FittedModel, dict[str, Any]]:
    """Return the model of a document that :func:`parse` returned, and the parameters of its estimator.

    Parameters
    ----------
    document : Document
        Valid.
    loss : Loss, optional
        The loss of the model, if it is user-defined.
    """
    own = read_text(document.attributes[_OWN].encode(), finite=True)
    _check_schema(own)
    return _Reader(own, document, loss).read()


def _renamed(stored: dict[str, Any]) -> dict[str, Any]:
    """Return parameters or fitted attributes under the names of this version."""
    now = {_RENAMED.get(name, name): value for name, value in stored.items()}
    for name in ("categorical_splits", "categorical_splits_"):
        if isinstance(now.get(name), str):
            now[name] = _RENAMED_VALUES.get(now[name], now[name])
    return now


def _check_schema(own: dict[str, Any]) -> None:
    schema = own["schema"]
    require(type(schema) is int and schema >= 1, f"its schema is {schema!r:.40}")
    if schema > SCHEMA:
        raise ModelFileError(
            f"has schema {schema}, written by scboost {own.get('scboost')!s:.40}; this is {__version__}, "
            f"which reads up to schema {SCHEMA}. Install a newer scboost."
        )
    unknown = sorted(set(own) - _KEYS - (_KEYS_OF_SCHEMA_1 if schema == 1 else set()))
    require(not unknown, f"unknown entries {unknown!r:.80}")
    versions = own["scboost"], own["xgboost"]
    require(all(isinstance(version, str) for version in versions), "a version is not a string")


class _Reader:
    """Restores the fitted model and the parameters of its estimator from a file."""

    def __init__(self, own: dict[str, Any], document: Document, loss: Loss | None) -> None:
        self._own, self._document, self._given_loss = own, document, loss

    def read(self) -> tuple[FittedModel, dict[str, Any]]:
        parameters = {name: unpack(value) for name, value in _renamed(self._own["parameters"]).items()}
        require(not _OF_THE_PROCESS & set(parameters), "a parameter is set that is never stored")
        model = self._model(self._loss())
        if self._own["schema"] == 1:
            require(self._own["estimator"] == model.owner, f"{self._own['estimator']!r:.40} has another loss")
        return model, parameters

    def _model(self, loss: Loss) -> FittedModel:
        fitted = {name: unpack(value) for name, value in _renamed(self._own["fitted"]).items()}
        fitted.pop("n_classes_", None)  # of schema 1: the number of classes_
        unknown = sorted(set(fitted) - _ATTRIBUTES - (_ATTRIBUTES_OF_SCHEMA_1 if self._own["schema"] == 1 else set()))
        require(not unknown, f"unknown attributes {unknown!r:.80}")
        encoder = self._encoder(fitted)
        ensemble = self._ensemble(encoder, loss)
        n_rounds = fitted["n_estimators_"]
        require(type(n_rounds) is int and 0 <= n_rounds <= ensemble.n_rounds, f"n_estimators_ is {n_rounds!r:.40}")
        require(not ensemble.weights[n_rounds:].any(), f"n_estimators_ is {n_rounds}, but later rounds have weights")
        depth = fitted.get("max_depth_")
        require(depth is None or (type(depth) is int and depth > 0), f"max_depth_ is {depth!r:.40}")
        shape = fitted.get("tree_shape_")
        require(shape is None or shape in get_args(TreeShape), f"tree_shape_ is {shape!r:.40}")
        multi = fitted.get("multi_strategy_")
        require(multi is None or multi in get_args(MultiStrategy), f"multi_strategy_ is {multi!r:.40}")
        strength = fitted.get("projection_strength_")
        plausible = strength is None or (type(strength) in {int, float} and 0 <= strength <= 1)
        require(plausible, f"projection_strength_ is {strength!r:.40}")
        rate, reason, name = fitted["learning_rate_"], fitted["stop_reason_"], fitted.get("target_name_")
        require(type(rate) in {int, float} and 0 < rate < 1e300, f"learning_rate_ is {rate!r:.40}")
        require(isinstance(reason, str), "stop_reason_ is not a string")
        names = [] if name is None else [name] if isinstance(name, str) else name
        require(isinstance(names, list) and all(isinstance(one, str) for one in names), "target_name_ is not a string")
        engine = fitted.get("engine_")
        require(engine in (None, *get_args(EngineName)), f"engine_ is {engine!r:.40}")
        weights = fitted.get("weighting_result_")
        require(weights is None or isinstance(weights, Weights), "weighting_result_ is none")
        return FittedModel(
            encoder,
            _checked_classes(fitted.get("classes_"), loss),
            loss,
            ensemble,
            n_rounds=n_rounds,
            learning_rate=float(rate),
            max_depth=depth,
            tree_shape=shape,
            multi_strategy=multi,
            projection_strength=strength,
            training_log=_checked_log(fitted["training_log_"]),
            stop_reason=reason,
            selection=_selection(fitted, encoder),
            weighting_result=weights,
            target_name=tuple(name) if isinstance(name, list) else name,
            baseline=_checked_baseline(fitted.get("baseline_", {}), loss),
            members=_checked_members(fitted.get("members_", []), ensemble),
            conformal=unpack_conformal(self._own["conformal"], loss) if "conformal" in self._own else None,
            engine=engine,
        )

    def _encoder(self, fitted: dict[str, Any]) -> Encoder:
        d, names = self._document.n_features, tuple(self._document.learner["feature_names"]) or None
        require(d <= _MOST_FEATURES, f"it has {d} features")
        if self._own["schema"] == 1:
            n_features, stored = fitted["n_features_in_"], fitted.get("feature_names_in_")
            require(type(n_features) is int and n_features == d, f"n_features_in_ is not {d}")
            given = [] if stored is None else stored.tolist()
            require(given == list(names or ()), "feature_names_in_ are not those of the native model")
        is_sparse = self._own["sparse"]
        require(isinstance(is_sparse, bool), "sparse is neither true nor false")
        stored = self._own["columns"]
        require(not is_sparse or stored is None, "sparse data have no categories")
        return Encoder(d, names, sparse=is_sparse) if stored is None else unpack_columns(stored, d, names)

    def _ensemble(self, encoder: Encoder, loss: Loss) -> TreeEnsemble:
        own = self._own
        intercept = float64(unpack(own["intercept"]), "intercept")
        require(intercept.shape == (loss.n_outputs,), f"the intercept is not of {loss.n_outputs} outputs")
        require(bool(np.isfinite(intercept).all()), "the intercept is not finite")
        require(self._document.n_outputs == loss.n_outputs, "the loss has other outputs than the trees")
        ensemble = cast("TreeEnsemble", new_ensemble(encoder, loss, intercept, of_trees=True))
        weights = float64(unpack(own["weights"]), "weights")
        leaf_values = unpack(own["leaf_values"])
        require(isinstance(leaf_values, np.ndarray) and leaf_values.dtype == np.float32, "leaf_values are not float32")
        require(leaf_values.ndim == 1, "leaf_values are not a vector")
        n_first, later = _later_leaf_values(self._document, loss.n_outputs)
        if len(leaf_values) == n_first and bool((weights == 1).all()):
            leaf_values = np.concatenate([leaf_values, later])
        dropped = ubjson.decode(base64.b64decode(own["dropped_trees"], validate=True))
        require(isinstance(dropped, list), "dropped_trees is not a list")
        ensemble.restore(self._document, weights, leaf_values, dropped)
        return ensemble

    def _loss(self) -> Loss:
        stored = self._own["loss"]
        if "module" in stored:
            return self._own_loss(stored)
        if self._given_loss is not None:
            raise ModelFileError(f"has the loss {stored['name']!s:.40}, which needs no loss={self._given_loss!r}.")
        name, numbers = stored["name"], stored["numbers"]
        cls: Any = getattr(losses, name, None)
        known = isinstance(cls, type) and issubclass(cls, Loss) and not inspect.isabstract(cls)
        require(isinstance(name, str) and not name.startswith("_") and known, f"unknown loss {name!r:.40}")
        require(set(numbers) == set(inspect.signature(cls).parameters), f"the numbers of the loss are {list(numbers)}")
        for number in (n for given in numbers.values() for n in (given if isinstance(given, list) else [given])):
            require(isinstance(number, int | float) and not isinstance(number, bool), "a number of the loss is none")
            require(0 < number < 1e300, "a number of the loss is not positive")
        loss: Loss = cls(**numbers)
        return loss

    def _own_loss(self, stored: dict[str, Any]) -> Loss:
        """Return the given loss if it matches the one that the file names."""
        name, module, parameters = stored["name"], stored["module"], stored["parameters"]
        require(isinstance(name, str) and isinstance(module, str), "the name of the loss is not a string")
        require(isinstance(parameters, dict), "the parameters of the loss are not a dictionary")
        written = f"{name:.80}({', '.join(f'{key}={unpack(value)!r}' for key, value in parameters.items()):.200})"
        given = self._given_loss
        if given is None:
            raise ModelFileError(
                f"was fitted with a loss that is not scboost's, {written} of the module {module:.80}; files hold no "
                f"code: pass it as load_model(..., loss={written})."
            )
        if type(given).__name__ != name or _pack_own_parameters(given) != parameters:
            raise ModelFileError(f"was fitted with the loss {written}, got loss={given!r}.")
        return given


_ATTRIBUTES = {
    "classes_",
    "n_estimators_",
    "learning_rate_",
    "max_depth_",
    "tree_shape_",
    "multi_strategy_",
    "projection_strength_",
    "training_log_",
    "stop_reason_",
    "selection_log_",
    "selected_features_",
    "categorical_splits_",
    "weighting_result_",
    "target_name_",
    "baseline_",
    "engine_",
    "members_",
}


_ATTRIBUTES_OF_SCHEMA_1 = {"n_features_in_", "feature_names_in_"}  # which follow from the native model


def _checked_classes(classes: Any, loss: Loss) -> npt.NDArray[Any] | None:
    n_classes = loss.n_classes
    require((classes is not None) == (n_classes > 0), "there are classes without a loss for them, or the reverse")
    if classes is None:
        return None
    require(isinstance(classes, np.ndarray) and classes.shape == (n_classes,), f"there are not {n_classes} classes")
    labels = classes.tolist()
    require(len(set(labels)) == n_classes, "a class comes twice")
    require(not any(isinstance(label, float) and math.isnan(label) for label in labels), "a class is NaN")
    array: npt.NDArray[Any] = classes
    return array


def _checked_members(members: Any, ensemble: TreeEnsemble) -> tuple[int, ...]:
    is_list = isinstance(members, list) and all(type(size) is int and size >= 0 for size in members)
    require(is_list and sum(members) <= ensemble.n_rounds, f"members_ is {members!r:.80}")
    return tuple(members)


def _checked_log(log: Any) -> dict[str, FloatArray]:
    require(isinstance(log, dict), "a log is not a dictionary")
    require(all(isinstance(name, str) for name in log), "a name in a log is not a string")
    is_column = all(isinstance(values, np.ndarray) and values.ndim == 1 for values in log.values())
    require(is_column, "a log holds something else than columns")
    require(all(values.dtype.kind in NUMERIC for values in log.values()), "a log holds something else than numbers")
    require(len({len(values) for values in log.values()}) <= 1, "the columns of a log have different lengths")
    return dict(log)


def _checked_baseline(baseline: Any, loss: Loss) -> dict[str, FloatArray]:
    """Check the baseline of survival functions."""
    require(isinstance(baseline, dict), "the baseline is not a dictionary")
    if not baseline:
        return {}
    require(loss.task == "survival", "there is a baseline of a model that has none")
    own = "cumulative_hazard" if isinstance(loss.link, HazardLink) else "scale"
    require(set(baseline) == {"time", own}, f"the baseline holds {list(baseline)!r:.80}")
    for name, given in baseline.items():
        values = float64(given, name)
        require(values.ndim == 1 and len(values) > 0 and bool(np.isfinite(values).all()), f"{name} is not finite")
        require(values[0] >= 0 and bool((np.diff(values) >= 0).all()), f"{name} of the baseline does not rise")
    size = 1 if own == "scale" else len(baseline["time"])
    require(len(baseline[own]) == size and baseline[own][-1] > 0, f"{own} of the baseline is not of size {size}")
    return dict(baseline)


def _selection(fitted: dict[str, Any], encoder: Encoder) -> Selection:
    features = fitted.get("selected_features_")
    positions: tuple[int, ...] = ()
    if features is not None:
        is_integer = isinstance(features, np.ndarray) and features.dtype.kind in "iu"
        require(is_integer, "selected_features_ are not positions")
        positions = tuple(features.ravel().tolist())
        require(all(0 <= j < encoder.features.n for j in positions), "a selected feature does not exist")
    splits = fitted.get("categorical_splits_")
    require(splits in (None, "one-vs-rest", "subset"), f"categorical_splits_ is {splits!r:.40}")
    return Selection(_checked_log(fitted.get("selection_log_", {})), positions, splits)
