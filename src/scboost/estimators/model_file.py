"""One file for a fitted model: a native XGBoost model that carries what is scboost's own in its attributes.

The attribute ``scboost`` is JSON text; ``scboost_checksum`` is the SHA-256 of everything else. Nothing in a file is
executed, and nothing is believed: lengths, indices, links between nodes, types and the agreement of the two parts are
checked before XGBoost sees the model.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import inspect
import json
import os
import struct
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils._param_validation import validate_parameter_constraints

from scboost._arrays import FloatArray
from scboost._core import losses
from scboost._core.losses import HuberLoss, Loss
from scboost._data.encoder import Encoder
from scboost._model import ubjson
from scboost._model.atomic import write_file
from scboost._model.document import Document
from scboost._model.fitted import FittedModel, Selection, new_ensemble
from scboost._model.json_text import read_text
from scboost._version import __version__
from scboost._xgboost import import_xgboost
from scboost.estimators import SCBoostClassifier, SCBoostRegressor
from scboost.estimators.base import SCBoost
from scboost.weighting.solver import Weights
from scboost.xgb.ensemble import TreeEnsemble

SCHEMA = 2
_OWN, _CHECKSUM = "scboost", "scboost_checksum"
_FORMATS = (".json", ".ubj")
_OF_THE_PROCESS = {"callbacks", "estimator"}  # parameters that are never stored
_NUMBERS = "biuf"  # kinds of arrays that are stored as bytes
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
}
_KEYS_OF_SCHEMA_1 = {"estimator"}  # which follows from the loss
_OF_THE_LOSS = {"loss", "quantile", "expectile", "huber_delta", "tweedie_power"}


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
_RENAMED_VALUES = {"one": "one-vs-rest", "groups": "subset"}


# What reading something else than what was written can end in; none of it is a fault of this code.
_ANY_FAULT = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError, struct.error)


class ModelFileError(ValueError):
    """A file is not one that :func:`load_model` can read: the message says why."""


# --- writing -------------------------------------------------------------------------------------------------------


def save_model(
    model: FittedModel, parameters: Mapping[str, Any], cls: type[SCBoost], path: str | os.PathLike[str]
) -> None:
    """Write a fitted model; see the method of the estimators.

    Parameters
    ----------
    model : FittedModel
        The model.
    parameters : mapping of str to object
        Parameters of the estimator.
    cls : type
        Class of the estimator.
    path : str or Path
        Name of the file.
    """
    target = Path(path)
    if target.suffix not in _FORMATS:
        raise ValueError(f"path={str(path)!r} must end in one of {', '.join(_FORMATS)}.")
    for name in _not_stored(parameters):
        warnings.warn(
            f"{name}={parameters[name]!r} is no number, text, list or the like, and cannot be stored in a model file. "
            f"After loading, {name} has its default value.",
            UserWarning,
            stacklevel=3,
        )
    if not cls.__module__.startswith("scboost."):  # the classes for clusters add nothing to a fitted model
        warnings.warn(
            f"A {cls.__name__} is stored as the {_stored_class(model).__name__} that it is derived from: what it adds "
            "is code, which a model file does not hold.",
            UserWarning,
            stacklevel=3,
        )
    document = to_document(model, parameters)
    write_file(target, document.encode_json() if target.suffix == ".json" else document.encode())


def _stored_class(model: FittedModel) -> type[SCBoostClassifier | SCBoostRegressor]:
    """Class that a file names: one of this library's, also for a model of a class derived from it."""
    return SCBoostRegressor if model.classes is None else SCBoostClassifier


def to_document(model: FittedModel, parameters: Mapping[str, Any]) -> Document:
    """Return the native model, with everything else in its attributes."""
    ensemble = model.trees("save_model")
    _check_loss_parameters(model, parameters)
    own = {
        "schema": SCHEMA,
        "scboost": __version__,
        "xgboost": import_xgboost().__version__,
        "parameters": _pack_parameters(model, parameters),
        "columns": _pack_categories(model.encoder),
        "sparse": model.encoder.sparse,
        "loss": _pack_loss(model.loss),
        "fitted": {name: pack(value, name) for name, value in _attributes(model).items() if value is not None},
        "weights": pack(ensemble.weights),
        "intercept": pack(ensemble.intercept),
        "leaf_values": pack(ensemble.leaf_values()),
        "dropped_trees": base64.b64encode(ubjson.encode(ensemble.dropped())).decode(),
    }
    document = ensemble.document().with_learner(attributes={_OWN: json.dumps(own, allow_nan=False)})
    return document.with_learner(attributes={**document.attributes, _CHECKSUM: _checksum(document)})


def _attributes(model: FittedModel) -> dict[str, Any]:
    """Facts about a model, under the names of the estimator's attributes; None for those that it does not have."""
    selection = model.selection
    return {
        "classes_": model.classes,
        "n_estimators_": model.n_rounds,
        "learning_rate_": model.learning_rate,
        "max_depth_": model.max_depth,
        "training_log_": dict(model.training_log),
        "stop_reason_": model.stop_reason,
        "selection_log_": dict(selection.log) or None,
        "selected_features_": np.array(selection.features, dtype=np.int64) if selection.features else None,
        "categorical_splits_": selection.categorical_splits,
        "weighting_result_": model.weighting_result,
        "target_name_": model.target_name,
    }


def _checksum(document: Document) -> str:
    """SHA-256 of a model as UBJSON, without the attribute that holds it: the same for both formats."""
    attributes = {name: text for name, text in document.attributes.items() if name != _CHECKSUM}
    return hashlib.sha256(document.with_learner(attributes=attributes).encode()).hexdigest()


def _pack_parameters(model: FittedModel, parameters: Mapping[str, Any]) -> dict[str, Any]:
    skipped = {*_OF_THE_PROCESS, *_not_stored(parameters)}
    if isinstance(parameters.get("loss"), Loss):  # which has a place of its own
        skipped.add("loss")
    names = [name for name in inspect.signature(_stored_class(model)).parameters if name not in skipped]
    return {name: pack(parameters[name], name) for name in names}


def _not_stored(parameters: Mapping[str, Any]) -> list[str]:
    """Names of the parameters that hold objects which a file cannot store."""
    names = []
    for name, value in parameters.items():
        try:
            pack(None if name in _OF_THE_PROCESS or isinstance(value, Loss) else value, name)
        except ValueError:
            names.append(name)
    return names


def pack(value: Any, name: str = "") -> Any:
    """Turn a value into what JSON has, with a tag where JSON has no such type."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return float(value) if np.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, np.generic):
        return pack(value.item(), name)
    if isinstance(value, list):
        return [pack(item, name) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [pack(item, name) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[pack(key, name), pack(item, name)] for key, item in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in _NUMBERS:
        code = value.dtype.newbyteorder("<").str
        data = np.ascontiguousarray(value).astype(code).tobytes()
        return {"array": code, "shape": list(value.shape), "data": base64.b64encode(data).decode()}
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "UO":
        return {"array": value.dtype.kind, "values": [pack(item, name) for item in value.tolist()]}
    if isinstance(value, Weights):
        fields = {field.name: pack(getattr(value, field.name), name) for field in dataclasses.fields(value)}
        return {"weights": fields}
    kind = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
    raise ValueError(
        f"{name} holds {kind}, which a model file cannot store; allowed are numbers, texts, and lists, "
        "dictionaries and arrays of these."
    )


def _pack_categories(encoder: Encoder) -> Any:
    if encoder.categories is None:
        return None
    categories = [None if texts is None else list(texts) for texts in encoder.categories]
    return {"categories": categories, "whole": sorted(encoder.integer_categories)}


def _pack_loss(loss: Loss) -> dict[str, Any]:
    cls = type(loss)
    names = inspect.signature(cls).parameters
    if losses.is_built_in(loss):
        return {"name": cls.__name__, "numbers": {name: getattr(loss, name) for name in names}}
    return {"name": cls.__name__, "module": cls.__module__, "parameters": _pack_own_parameters(loss)}


def _check_loss_parameters(model: FittedModel, parameters: Mapping[str, Any]) -> None:
    """Refuse parameters that name another loss than that of the model."""
    named = parameters.get("loss")
    if model.classes is not None or named is None or isinstance(named, Loss):
        return
    own = {name: value for name, value in parameters.items() if name in _OF_THE_LOSS}
    loss, delta = model.loss, model.loss.delta if isinstance(model.loss, HuberLoss) else 1.0
    expected = SCBoostRegressor(**own)._make_loss(lambda: delta)
    if _pack_loss(expected) != _pack_loss(loss):
        raise ValueError(f"the parameters name the loss {expected!r}, but the model was fitted with {loss!r}")


def _pack_own_parameters(loss: Loss) -> dict[str, Any]:
    """Arguments that a loss of the user's was made with, by name."""
    cls = type(loss)
    missing = [name for name in inspect.signature(cls).parameters if not hasattr(loss, name)]
    if missing:
        raise ValueError(
            f"The loss {cls.__name__} does not keep its argument {missing[0]!r} as an attribute of that name, which a "
            "model file needs to tell one loss from another."
        )
    return {name: pack(getattr(loss, name), name) for name in inspect.signature(cls).parameters}


# --- reading -------------------------------------------------------------------------------------------------------


def load_model(path: str | os.PathLike[str], *, loss: Loss | None = None) -> SCBoostClassifier | SCBoostRegressor:
    """Read a model that ``save_model`` of an estimator has written.

    Parameters
    ----------
    path : str or Path
        The file, in JSON or UBJSON. It need not be trusted: nothing in it is executed, and it is checked throughout.
    loss : Loss, optional
        The loss that the model was fitted with, if it is not one of scboost's: a file holds the name of its class and
        its arguments, which are compared, and never code.

    Returns
    -------
    SCBoostClassifier or SCBoostRegressor
        Fitted. Callbacks are not part of a file.

    Raises
    ------
    ValueError
        If the file is corrupt, not one of scboost's, or of a newer version; if it needs a loss, or another one.

    Examples
    --------
    >>> import tempfile, numpy as np, scboost
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = scboost.SCBoostClassifier(n_estimators=5).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save_model(f"{folder}/iris.ubj")
    ...     again = scboost.load_model(f"{folder}/iris.ubj")
    >>> bool(np.array_equal(again.predict_proba(X), model.predict_proba(X)))
    True
    """
    try:
        return from_document(parse(Path(path).read_bytes()), loss)
    except ModelFileError as error:
        raise ModelFileError(f"{str(path)!r} {error}") from error


def parse(data: bytes) -> Document:
    """Decode and check the native part of a model file.

    Parameters
    ----------
    data : bytes
        Untrusted.

    Returns
    -------
    Document
        Sound, of a known schema, and with the right checksum.
    """
    try:
        document = Document.decode(data)
        _check_origin(document)
        document.check()
    except ModelFileError:
        raise
    except _ANY_FAULT as error:
        raise ModelFileError(f"is corrupt or no model: {type(error).__name__}: {error}") from error
    return document


def _check_origin(document: Document) -> None:
    attributes = document.attributes
    if not isinstance(attributes, dict) or not isinstance(attributes.get(_OWN), str):
        raise ModelFileError("was not written by scboost; xgboost.Booster(model_file=...) may be able to read it.")
    _require(attributes.get(_CHECKSUM) == _checksum(document), "its checksum is not that of its content")


def from_document(document: Document, loss: Loss | None = None) -> SCBoostClassifier | SCBoostRegressor:
    """Make the estimator of a document that :func:`parse` returned; see :func:`load_model` for the loss."""
    try:
        own = read_text(document.attributes[_OWN].encode(), finite=True)
        _check_schema(own)
        return _Reader(own, document, loss).estimator()
    except ModelFileError:
        raise
    except _ANY_FAULT as error:
        raise ModelFileError(f"is corrupt: {type(error).__name__}: {error}") from error


def _renamed(stored: dict[str, Any]) -> dict[str, Any]:
    """Return parameters or fitted attributes under the names of this version."""
    now = {_RENAMED.get(name, name): value for name, value in stored.items()}
    for name in ("categorical_splits", "categorical_splits_"):
        if isinstance(now.get(name), str):
            now[name] = _RENAMED_VALUES.get(now[name], now[name])
    return now


def _check_schema(own: dict[str, Any]) -> None:
    schema = own["schema"]
    _require(type(schema) is int and schema >= 1, f"its schema is {schema!r:.40}")
    if schema > SCHEMA:
        raise ModelFileError(
            f"has schema {schema}, written by scboost {own.get('scboost')!s:.40}; this is {__version__}, "
            f"which reads up to schema {SCHEMA}. Install a newer scboost."
        )
    unknown = sorted(set(own) - _KEYS - (_KEYS_OF_SCHEMA_1 if schema == 1 else set()))
    _require(not unknown, f"unknown entries {unknown!r:.80}")
    versions = own["scboost"], own["xgboost"]
    _require(all(isinstance(version, str) for version in versions), "a version is not a text")


class _Reader:
    """Turns scboost's own part of a file back into an estimator."""

    def __init__(self, own: dict[str, Any], document: Document, loss: Loss | None) -> None:
        self._own, self._document, self._given_loss = own, document, loss

    def estimator(self) -> SCBoostClassifier | SCBoostRegressor:
        own = self._own
        loss = self._loss()
        estimator: SCBoostClassifier | SCBoostRegressor = SCBoostClassifier() if loss.n_classes else SCBoostRegressor()
        if own["schema"] == 1:
            _require(own["estimator"] == type(estimator).__name__, f"{own['estimator']!r:.40} has another loss")
        known = estimator.get_params(deep=False)
        parameters = {name: unpack(value) for name, value in _renamed(own["parameters"]).items()}
        unknown = sorted(set(parameters) - set(known))
        _require(not unknown, f"unknown parameters {unknown!r:.80}")
        _require(not _OF_THE_PROCESS & set(parameters), "a parameter is set that is never stored")
        if "loss" in known:
            parameters.setdefault("loss", loss)  # an object, which is not stored among the parameters
        estimator.set_params(**parameters)
        validate_parameter_constraints(type(estimator)._parameter_constraints, parameters, type(estimator).__name__)
        _require(estimator.n_jobs is None or abs(estimator.n_jobs) < 2**31, f"n_jobs is {estimator.n_jobs}")
        model = self._model(loss)
        _check_loss_parameters(model, parameters)
        return estimator.__with_fitted_model__(model)

    def _model(self, loss: Loss) -> FittedModel:
        fitted = {name: unpack(value) for name, value in _renamed(self._own["fitted"]).items()}
        fitted.pop("n_classes_", None)  # of schema 1: the number of classes_
        unknown = sorted(set(fitted) - _ATTRIBUTES - (_ATTRIBUTES_OF_SCHEMA_1 if self._own["schema"] == 1 else set()))
        _require(not unknown, f"unknown attributes {unknown!r:.80}")
        encoder = self._encoder(fitted)
        ensemble = self._ensemble(encoder, loss)
        n_rounds = fitted["n_estimators_"]
        _require(type(n_rounds) is int and 0 <= n_rounds <= ensemble.n_rounds, f"n_estimators_ is {n_rounds!r:.40}")
        _require(not ensemble.weights[n_rounds:].any(), f"n_estimators_ is {n_rounds}, but later rounds have weights")
        depth = fitted.get("max_depth_")
        _require(depth is None or (type(depth) is int and depth > 0), f"max_depth_ is {depth!r:.40}")
        rate, reason, name = fitted["learning_rate_"], fitted["stop_reason_"], fitted.get("target_name_")
        _require(type(rate) in {int, float} and 0 < rate < 1e300, f"learning_rate_ is {rate!r:.40}")
        _require(isinstance(reason, str), "stop_reason_ is not a text")
        _require(name is None or isinstance(name, str), "target_name_ is not a text")
        weights = fitted.get("weighting_result_")
        _require(weights is None or isinstance(weights, Weights), "weighting_result_ is none")
        return FittedModel(
            encoder,
            _checked_classes(fitted.get("classes_"), loss),
            loss,
            ensemble,
            n_rounds=n_rounds,
            learning_rate=float(rate),
            max_depth=depth,
            training_log=_checked_log(fitted["training_log_"]),
            stop_reason=reason,
            selection=_selection(fitted, encoder),
            weighting_result=weights,
            target_name=name,
        )

    def _encoder(self, fitted: dict[str, Any]) -> Encoder:
        d, names = self._document.n_features, tuple(self._document.learner["feature_names"]) or None
        if self._own["schema"] == 1:
            n_features, stored = fitted["n_features_in_"], fitted.get("feature_names_in_")
            _require(type(n_features) is int and n_features == d, f"n_features_in_ is not {d}")
            given = [] if stored is None else stored.tolist()
            _require(given == list(names or ()), "feature_names_in_ are not those of the native model")
        is_sparse = self._own["sparse"]
        _require(isinstance(is_sparse, bool), "sparse is neither true nor false")
        categories, integer = self._categories()
        _require(categories is None or len(categories) == d, f"there are not categories of {d} columns")
        _require(categories is None or not is_sparse, "sparse data have no categories")
        return Encoder(d, names, categories, integer, sparse=is_sparse)

    def _ensemble(self, encoder: Encoder, loss: Loss) -> TreeEnsemble:
        own = self._own
        intercept = _float64(unpack(own["intercept"]), "intercept")
        _require(intercept.shape == (loss.n_outputs,), f"the intercept is not of {loss.n_outputs} outputs")
        _require(bool(np.isfinite(intercept).all()), "the intercept is not finite")
        _require(self._document.n_outputs == loss.n_outputs, "the loss has other outputs than the trees")
        ensemble = new_ensemble(encoder, loss, intercept, of_trees=True)
        weights = _float64(unpack(own["weights"]), "weights")
        leaf_values = unpack(own["leaf_values"])
        _require(isinstance(leaf_values, np.ndarray) and leaf_values.dtype == np.float32, "leaf_values are not float32")
        _require(leaf_values.ndim == 1, "leaf_values are not a vector")
        dropped = ubjson.decode(base64.b64decode(own["dropped_trees"], validate=True))
        _require(isinstance(dropped, list), "dropped_trees is not a list")
        assert isinstance(ensemble, TreeEnsemble)  # noqa: S101 - for the type checker
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
        _require(isinstance(name, str) and not name.startswith("_") and known, f"unknown loss {name!r:.40}")
        _require(set(numbers) == set(inspect.signature(cls).parameters), f"the numbers of the loss are {list(numbers)}")
        for number in (n for given in numbers.values() for n in (given if isinstance(given, list) else [given])):
            _require(isinstance(number, int | float) and not isinstance(number, bool), "a number of the loss is none")
            _require(0 < number < 1e300, "a number of the loss is not positive")
        loss: Loss = cls(**numbers)
        return loss

    def _own_loss(self, stored: dict[str, Any]) -> Loss:
        """Return the loss given, if it is the one that the file names."""
        name, module, parameters = stored["name"], stored["module"], stored["parameters"]
        _require(isinstance(name, str) and isinstance(module, str), "the name of the loss is not a text")
        _require(isinstance(parameters, dict), "the parameters of the loss are not a dictionary")
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

    def _categories(self) -> tuple[tuple[tuple[str, ...] | None, ...] | None, frozenset[int]]:
        stored = self._own["columns"]
        if stored is None:
            return None, frozenset()
        categories: list[tuple[str, ...] | None] = []
        for texts in stored["categories"]:
            _require(texts is None or isinstance(texts, list), "categories are not a list")
            if texts is not None:
                _require(all(isinstance(text, str) for text in texts), "a category is not a text")
                _require(len(set(texts)) == len(texts), "a category comes twice")
            categories.append(None if texts is None else tuple(texts))
        whole = stored["whole"]
        _require(all(type(j) is int and 0 <= j < len(categories) for j in whole), "a column of numbers does not exist")
        _require(any(texts is not None for texts in categories), "there are column tables without categories")
        return tuple(categories), frozenset(whole)


_ATTRIBUTES = {
    "classes_",
    "n_estimators_",
    "learning_rate_",
    "max_depth_",
    "training_log_",
    "stop_reason_",
    "selection_log_",
    "selected_features_",
    "categorical_splits_",
    "weighting_result_",
    "target_name_",
}


_ATTRIBUTES_OF_SCHEMA_1 = {"n_features_in_", "feature_names_in_"}  # which follow from the native model


def _checked_classes(classes: Any, loss: Loss) -> npt.NDArray[Any] | None:
    n_classes = loss.n_classes
    _require((classes is not None) == (n_classes > 0), "there are classes without a loss for them, or the reverse")
    if classes is None:
        return None
    _require(isinstance(classes, np.ndarray) and classes.shape == (n_classes,), f"there are not {n_classes} classes")
    labels = classes.tolist()
    _require(len(set(labels)) == n_classes, "a class comes twice")
    _require(all(label == label for label in labels), "a class is NaN")  # noqa: PLR0124
    array: npt.NDArray[Any] = classes
    return array


def _checked_log(log: Any) -> dict[str, FloatArray]:
    _require(isinstance(log, dict), "a log is not a dictionary")
    _require(all(isinstance(name, str) for name in log), "a name in a log is not a text")
    is_column = all(isinstance(values, np.ndarray) and values.ndim == 1 for values in log.values())
    _require(is_column, "a log holds something else than columns")
    _require(all(values.dtype.kind in _NUMBERS for values in log.values()), "a log holds something else than numbers")
    _require(len({len(values) for values in log.values()}) <= 1, "the columns of a log have different lengths")
    return dict(log)


def _selection(fitted: dict[str, Any], encoder: Encoder) -> Selection:
    features = fitted.get("selected_features_")
    positions: tuple[int, ...] = ()
    if features is not None:
        is_integer = isinstance(features, np.ndarray) and features.dtype.kind in "iu"
        _require(is_integer, "selected_features_ are not positions")
        positions = tuple(features.ravel().tolist())
        _require(all(0 <= j < encoder.n_features for j in positions), "a selected feature does not exist")
    splits = fitted.get("categorical_splits_")
    _require(splits in (None, "one-vs-rest", "subset"), f"categorical_splits_ is {splits!r:.40}")
    return Selection(_checked_log(fitted.get("selection_log_", {})), positions, splits)


def unpack(value: Any) -> Any:
    """Undo :func:`pack`."""
    if isinstance(value, list):
        return [unpack(item) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"float"}:
        _require(value["float"] in {"inf", "-inf", "nan"}, f"unknown number {value['float']!r:.40}")
        return float(value["float"])
    if set(value) == {"tuple"}:
        return tuple(unpack(item) for item in value["tuple"])
    if set(value) == {"dict"}:
        pairs = [(unpack(key), unpack(item)) for key, item in value["dict"]]
        _require(len(dict(pairs)) == len(pairs), "a key comes twice")
        return dict(pairs)
    if set(value) == {"weights"}:
        return _checked_weights(Weights(**{name: unpack(item) for name, item in value["weights"].items()}))
    if set(value) == {"array", "values"}:
        return _unpack_texts(value["array"], value["values"])
    _require(set(value) == {"array", "shape", "data"}, f"unknown kind of value with {sorted(value)!r:.80}")
    return _unpack_numbers(value["array"], value["shape"], value["data"])


def _checked_weights(weights: Weights) -> Weights:
    for name in ("weights", "intercept"):
        values = _float64(getattr(weights, name), name)
        _require(bool(np.isfinite(values).all()), f"{name} of the weighting are not finite")
    for name in ("objective", "loss", "covariance_term", "pull_term", "gap"):
        _require(type(getattr(weights, name)) in {int, float}, f"{name} of the weighting is not a number")
    _require(type(weights.n_iterations) is int, "n_iterations of the weighting is not a whole number")
    _require(type(weights.converged) is bool, "converged of the weighting is neither true nor false")
    return weights


def _unpack_texts(kind: str, values: list[Any]) -> npt.NDArray[Any]:
    _require(isinstance(values, list), "the values of an array are not a list")
    _require(all(isinstance(v, str | int | float) for v in values), "an array holds neither texts nor numbers")
    if kind == "U":
        _require(all(isinstance(v, str) for v in values), "an array of texts holds something else")
        return np.array(values, dtype=str)
    _require(kind == "O", f"unknown type of array {kind!r:.40}")
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _unpack_numbers(code: str, shape: list[int], data: str) -> npt.NDArray[Any]:
    _require(isinstance(code, str) and len(code) == 3, f"unknown type of array {code!r:.40}")
    dtype = np.dtype(code)
    _require(dtype.kind in _NUMBERS and dtype.str == code, f"unknown type of array {code!r:.40}")
    _require(isinstance(shape, list) and len(shape) <= 4, "the shape of an array is not a list")
    _require(all(type(n) is int and 0 <= n < 2**40 for n in shape), f"the shape of an array is {shape!r:.80}")
    content = base64.b64decode(data, validate=True)
    size = int(np.prod([dtype.itemsize, *shape], dtype=object))
    _require(len(content) == size, f"an array of shape {shape} has {len(content)} bytes")
    return np.frombuffer(content, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def _float64(value: Any, name: str) -> FloatArray:
    _require(isinstance(value, np.ndarray) and value.dtype == np.float64, f"{name} is not an array of float64")
    array: FloatArray = value
    return array


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ModelFileError(f"is corrupt: {problem}.")
