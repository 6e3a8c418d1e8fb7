"""Resuming a fit: checks that data and parameters are those of the earlier fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args
from zlib import crc32

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray, Keys
from scboost._core.losses import Loss
from scboost._core.training import Training
from scboost._data.encoder import Encoder
from scboost._data.hashing import mix64
from scboost._data.samples import Samples
from scboost._engine.interface import EngineName
from scboost._model.fitted import FittedModel
from scboost._runtime.communicator import Communicator
from scboost._runtime.context import Context

MAY_CHANGE_IN_WARM_START = frozenset(
    {
        "callbacks",
        "covariance_penalty",
        "n_estimators",
        "n_iter_no_change",
        "n_jobs",
        "tol",
        "verbose",
        "warm_start",
        "weight_ridge",
    }
)
"""Parameters that may change between fits with ``warm_start``, because finished rounds do not depend on them."""


@dataclass(frozen=True)
class Identity:
    """Fingerprint of the data and parameters of a fit, stored with its state.

    Attributes
    ----------
    samples, target, weights : int
        Checksums of X, y and the sample weights; independent of the order of the samples in distributed fits.
    validation : tuple of int
        The same three checksums of the validation set; empty if there is none.
    features : tuple
        Number of features and their names.
    categories : int
        Checksum of the categories of all features.
    parameters : dict of str to str
        String representations of the parameters that must not change.
    """

    samples: int
    target: int
    weights: int
    validation: tuple[int, ...]
    features: tuple[Any, ...]
    categories: int
    parameters: dict[str, str]

    @property
    def engine(self) -> EngineName | None:
        """Engine that grew the trees; None if it is not known."""
        text = self.parameters.get("engine")
        return next((name for name in get_args(EngineName) if text == parameter_text(name)), None)

    @classmethod
    def of(
        cls,
        parameters: Mapping[str, Any],
        encoder: Encoder,
        samples: Samples,
        validation: Samples | None,
        context: Context,
    ) -> Identity:
        """Return the identity of a fit; "engine" among the parameters is the engine in use."""
        texts = {
            name: parameter_text(value) for name, value in parameters.items() if name not in MAY_CHANGE_IN_WARM_START
        }
        if not isinstance(parameters["random_state"], int | np.integer | None):
            texts.pop(
                "random_state"
            )  # the state of a generator changes; the seed drawn from it is stored with the training

        def checksum(keys: Keys, values: FloatArray | None = None) -> int:
            if context.communicator.size == 1:
                return _checksum(keys, values)
            return _checksum_of_all_workers(keys, values, context.communicator)

        def checksums(of: Samples) -> tuple[int, int, int]:
            keys = of.keys(context)
            weights = 0 if of.weight is None else checksum(keys, of.weight)
            return checksum(keys), checksum(keys, of.y.astype(np.float64)), weights

        own = checksums(samples)
        return cls(
            samples=own[0],
            target=own[1],
            weights=own[2],
            validation=() if validation is None else checksums(validation),
            features=(encoder.n_features, *(encoder.feature_names or ())),
            categories=_categories_checksum(encoder),
            parameters=texts,
        )

    def check_same(self, now: Identity) -> None:
        """Raise ValueError if data or parameters have changed."""
        if self.features != now.features:
            raise ValueError(
                f"The fit to resume had the features {_features(self)}, but X has {_features(now)}; pass the same "
                "features in the same order, or start a new fit with warm_start=False or a clone."
            )
        if self.categories != now.categories:
            raise ValueError(
                "The categories of X, or the parts of its dates, differ from those of the fit to resume; pass the same "
                "data, or start a new fit with warm_start=False or a clone."
            )
        for name, old in self.parameters.items():
            if now.parameters.get(name, old) != old:
                raise ValueError(
                    f"{name}={now.parameters[name]} was {old} in the fit to resume. Between two fits with "
                    f"warm_start=True only {', '.join(sorted(MAY_CHANGE_IN_WARM_START))} may change; use "
                    "warm_start=False or a clone to start a new fit."
                )
        names = {"samples": "X", "target": "y", "weights": "sample_weight", "validation": "the validation set"}
        changed = [argument for name, argument in names.items() if getattr(self, name) != getattr(now, name)]
        if changed:
            raise ValueError(
                f"warm_start=True resumes the previous fit and needs the same data, but {' and '.join(changed)} "
                f"{'has' if len(changed) == 1 else 'have'} changed; use warm_start=False or a clone to start a new fit."
            )


def _categories_checksum(encoder: Encoder) -> int:
    """Return a number that differs if the categories or the parts of dates do."""
    if encoder.dates is not None or encoder.ordinal:
        return crc32(repr((encoder.categories, sorted(encoder.ordinal), encoder.dates)).encode())
    return 0 if encoder.categories is None else crc32(repr(encoder.categories).encode())


def _checksum(keys: Keys, values: FloatArray | None = None) -> int:
    """Return a checksum of the samples in their order."""
    return crc32(keys.tobytes()) if values is None else crc32(values.tobytes())


def _checksum_of_all_workers(keys: Keys, values: FloatArray | None, communicator: Communicator) -> int:
    """Return a checksum of the samples of all workers that does not depend on their distribution."""
    with np.errstate(over="ignore"):
        for column in [] if values is None else [values] if values.ndim == 1 else values.T:
            keys = mix64(keys ^ mix64(np.ascontiguousarray(column, dtype=np.float64).view(np.uint64)))
        parts: list[int] = communicator.gather(int(keys.sum(dtype=np.uint64)))
    return sum(parts) % 2**53


@dataclass(frozen=True)
class Resumable:
    """State of a fit that a later one can continue.

    Attributes
    ----------
    training : Training
        State of the loop.
    identity : Identity
        Fingerprint of data and parameters.
    n_rounds : int or "auto"
        Requested number of rounds.
    """

    training: Training
    identity: Identity
    n_rounds: int | str


def check_base(model: FittedModel, encoder: Encoder, classes: npt.NDArray[Any] | None, loss: Loss) -> None:
    """Raise ValueError if a fit cannot continue another fitted model.

    Parameters
    ----------
    model : FittedModel
        The model to continue.
    encoder : Encoder
        Features of the training set.
    classes : ndarray of shape (n_classes,) or None
        Class labels of the training set; None for regression.
    loss : Loss
        Loss of the new rounds.
    """
    problem = _difference(model, encoder, classes, loss)
    if problem:
        raise ValueError(f"init_model {problem}.")


def _difference(model: FittedModel, encoder: Encoder, classes: npt.NDArray[Any] | None, loss: Loss) -> str:
    """Return why a fit cannot continue a model; empty if it can."""
    if _names(model.encoder) != _names(encoder):
        own, now = _names(model.encoder), _names(encoder)
        return f"has the features {own}, but X has {now}; pass the same features in the same order"
    if model.encoder != encoder:
        return (
            "was fitted on other types of features: numeric, but categorical or dates in X, or dense, but sparse in X"
        )
    own_labels, labels = (() if given is None else given for given in (model.classes, classes))
    if not np.array_equal(own_labels, labels):
        return f"has the classes {np.asarray(own_labels).tolist()}, y has {np.asarray(labels).tolist()}"
    if not model.loss.same_as(loss):
        return f"was fitted with the loss {model.loss!r}, which differs from {loss!r}"
    return ""


def _names(encoder: Encoder) -> list[Any]:
    return list(encoder.feature_names or range(encoder.n_features))


def _features(identity: Identity) -> str:
    number, *names = identity.features
    return str(names) if names else f"0 to {number - 1}, without names"


def parameter_text(value: Any) -> str:
    """Return the string representation of a parameter, which is used to compare values."""
    return str(value.tolist()) if isinstance(value, np.ndarray) else repr(value)
