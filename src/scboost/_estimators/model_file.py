"""Model files of the estimators: saving and loading."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scboost._core.losses import AFTLoss, HuberLoss, Loss, TargetsSquaredLoss
from scboost._estimators import SCBoostClassifier, SCBoostDistribution, SCBoostRanker, SCBoostRegressor, SCBoostSurvival
from scboost._estimators.base import SCBoost
from scboost._estimators.distribution import named_distribution_loss
from scboost._estimators.ranker import named_ranking_loss
from scboost._estimators.regressor import named_loss
from scboost._estimators.survival import named_survival_loss
from scboost._model import file
from scboost._model.atomic import write_file
from scboost._model.document import Document
from scboost._model.file import not_stored, pack_loss, parse
from scboost._model.fitted import FittedModel
from scboost._model.packing import ModelFileError, require, untrusted

_FORMATS = (".json", ".ubj")
_MISSING = object()
_PLAIN = (type(None), bool, int, float, str)
Estimator = SCBoostClassifier | SCBoostDistribution | SCBoostRanker | SCBoostRegressor | SCBoostSurvival
_CLASSES: dict[str, type[Estimator]] = {
    cls.__name__: cls
    for cls in (SCBoostClassifier, SCBoostDistribution, SCBoostRanker, SCBoostRegressor, SCBoostSurvival)
}


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
    for name in not_stored(parameters):
        warnings.warn(
            f"{name}={parameters[name]!r} cannot be stored in a model file, which holds numbers, strings and lists. "
            f"After loading, {name} has its default value.",
            UserWarning,
            stacklevel=3,
        )
    if not cls.__module__.startswith("scboost."):  # the classes for Dask and Spark add nothing to a fitted model
        warnings.warn(
            f"A {cls.__name__} is stored as the {_stored_class(model).__name__} that it is derived from: model files "
            "do not contain code.",
            UserWarning,
            stacklevel=3,
        )
    compressed = model.is_compressed
    document = to_document(model, _set_parameters(parameters, cls) if compressed else parameters)
    if target.suffix == ".json":
        write_file(target, document.encode_json())
    else:
        write_file(target, document.encode_compact() if compressed else document.encode())


def _set_parameters(parameters: Mapping[str, Any], cls: type[SCBoost]) -> dict[str, Any]:
    """Return the parameters that do not have their default: the trees of a compressed model do not depend on any."""
    defaults = {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}
    return {name: value for name, value in parameters.items() if not _same(value, defaults.get(name, _MISSING))}


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and isinstance(value, _PLAIN) and value == default


def _stored_class(model: FittedModel) -> type[Estimator]:
    """Return the class stored in a file: one of this library, also for derived classes."""
    return _CLASSES[model.owner]


def to_document(model: FittedModel, parameters: Mapping[str, Any]) -> Document:
    """Return the native model, with everything else in its attributes."""
    document = file.to_document(model, parameters)
    check_loss_parameters(model, parameters)
    return document


def check_loss_parameters(model: FittedModel, parameters: Mapping[str, Any]) -> None:
    """Reject parameters that contradict the loss of the model."""
    named = parameters.get("distribution" if model.loss.task == "distribution" else "loss")
    if model.loss.classifies or named is None or isinstance(named, Loss):
        return
    loss, delta = model.loss, model.loss.delta if isinstance(model.loss, HuberLoss) else 1.0
    every = {**_stored_class(model)().get_params(deep=False), **parameters}
    if loss.task == "survival":
        expected = named_survival_loss(every, lambda: loss.scale if isinstance(loss, AFTLoss) else 1.0)
    elif isinstance(loss, TargetsSquaredLoss):
        expected = loss if every["loss"] == "squared_error" else named_loss(every, lambda: delta)
    elif loss.task == "ranking":
        expected = named_ranking_loss(every)
    elif loss.task == "distribution":
        expected = named_distribution_loss(every)
    else:
        expected = named_loss(every, lambda: delta)
    if pack_loss(expected) != pack_loss(loss):
        raise ValueError(f"the parameters name the loss {expected!r}, but the model was fitted with {loss!r}")


def load_model(path: str | os.PathLike[str], *, loss: Loss | None = None) -> Estimator:
    """Read a model that ``save_model`` of an estimator has written.

    Parameters
    ----------
    path : str or Path
        JSON or UBJSON file. Untrusted files are safe to load: nothing is executed, and the content is validated.
    loss : Loss, optional
        The loss that the model was fitted with, if it is user-defined: a file contains the name of its class and its
        arguments, which are compared, but no code.

    Returns
    -------
    SCBoostClassifier, SCBoostDistribution, SCBoostRanker, SCBoostRegressor or SCBoostSurvival
        Fitted estimator. Callbacks are not stored in files.

    Raises
    ------
    ValueError
        If the file is corrupt, was not written by scboost or by a newer version, or if `loss` is missing or differs.

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


def from_document(document: Document, loss: Loss | None = None) -> Estimator:
    """Make the estimator of a document that ``parse`` returned; see :func:`load_model` for the loss."""
    with untrusted():
        return make_estimator(*file.from_document(document, loss))


def make_estimator(model: FittedModel, parameters: dict[str, Any]) -> Estimator:
    """Return the estimator of a model and of parameters that were read from a file, after checking them."""
    estimator = _stored_class(model)()
    known = estimator.get_params(deep=False)
    unknown = sorted(set(parameters) - set(known))
    require(not unknown, f"unknown parameters {unknown!r:.80}")
    if "loss" in known:
        # An object is not stored with the parameters, and neither are the defaults of a compressed model.
        named = model.loss.task in {"ranking", "survival"}
        parameters.setdefault("loss", known["loss"] if named else model.loss)
    estimator.set_params(**parameters)
    estimator.__check_parameters__()
    require(estimator.n_jobs is None or abs(estimator.n_jobs) < 2**31, f"n_jobs is {estimator.n_jobs}")
    check_loss_parameters(model, parameters)
    return estimator.__with_fitted_model__(model)
