"""Going on with an earlier fit: what must be the same, and what may change."""

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
"""Parameters that leave the rounds already done as they are; all others must stay between fits with ``warm_start``."""


@dataclass(frozen=True)
class Identity:
    """What a fit was about, small enough to be kept with it.

    Attributes
    ----------
    rows, target, weights : int
        Checksums, in the order of the rows; in any order where workers share them.
    validation : tuple of int
        The same three of the validation set; empty if there is none.
    columns : tuple
        Number of features and their names.
    categories : int
        Checksum of the categories of all features.
    parameters : dict of str to str
        Texts of the parameters that must not change.
    """

    rows: int
    target: int
    weights: int
    validation: tuple[int, ...]
    columns: tuple[Any, ...]
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
        rows: Samples,
        validation: Samples | None,
        context: Context,
    ) -> Identity:
        """Take the identity of a fit that is about to begin; "engine" among the parameters is the one in use."""
        texts = {
            name: parameter_text(value) for name, value in parameters.items() if name not in MAY_CHANGE_IN_WARM_START
        }
        if not isinstance(parameters["random_state"], int | np.integer | None):
            texts.pop("random_state")  # a generator moves on; the seed it gave is kept with the training

        def checksum(keys: Keys, values: FloatArray | None = None) -> int:
            if context.communicator.size == 1:
                return _checksum(keys, values)
            return _checksum_of_all_workers(keys, values, context.communicator)

        def parts(of: Samples) -> tuple[int, int, int]:
            keys = of.keys(context)
            weights = 0 if of.weight is None else checksum(keys, of.weight)
            return checksum(keys), checksum(keys, of.y.astype(np.float64)), weights

        own = parts(rows)
        return cls(
            rows=own[0],
            target=own[1],
            weights=own[2],
            validation=() if validation is None else parts(validation),
            columns=(encoder.n_features, *(encoder.feature_names or ())),
            categories=_categories_checksum(encoder),
            parameters=texts,
        )

    def check_same(self, now: Identity) -> None:
        """Raise ValueError that names what has changed."""
        if self.columns != now.columns:
            raise ValueError(
                f"The fit to go on with had the columns {_columns(self)}, X has {_columns(now)}; give the same "
                "columns in the same order, or start anew with warm_start=False or a clone."
            )
        if self.categories != now.categories:
            raise ValueError(
                "The categories of X are not those of the fit to continue, or the parts of its dates; pass the same "
                "data, or start anew with warm_start=False or a clone."
            )
        for name, old in self.parameters.items():
            if now.parameters.get(name, old) != old:
                raise ValueError(
                    f"{name}={now.parameters[name]} was {old} in the fit to go on with. Between two fits with "
                    f"warm_start=True only {', '.join(sorted(MAY_CHANGE_IN_WARM_START))} may change; use "
                    "warm_start=False, or a clone, to start anew."
                )
        parts = {"rows": "X", "target": "y", "weights": "sample_weight", "validation": "the validation set"}
        changed = [said for name, said in parts.items() if getattr(self, name) != getattr(now, name)]
        if changed:
            raise ValueError(
                f"warm_start=True goes on with the first fit and needs its samples, but {' and '.join(changed)} "
                f"{'has' if len(changed) == 1 else 'have'} changed; use warm_start=False, or a clone, to start anew."
            )


def _categories_checksum(encoder: Encoder) -> int:
    """Return a number that differs if the categories or the parts of dates do."""
    if encoder.dates is not None or encoder.ordinal:
        return crc32(repr((encoder.categories, sorted(encoder.ordinal), encoder.dates)).encode())
    return 0 if encoder.categories is None else crc32(repr(encoder.categories).encode())


def _checksum(keys: Keys, values: FloatArray | None = None) -> int:
    """Return a number that differs if any sample or the order of the samples does."""
    return crc32(keys.tobytes()) if values is None else crc32(values.tobytes())


def _checksum_of_all_workers(keys: Keys, values: FloatArray | None, communicator: Communicator) -> int:
    """Return the same for the samples of all workers, however they are distributed."""
    with np.errstate(over="ignore"):
        if values is not None:
            keys = mix64(keys ^ mix64(np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)))
        parts: list[int] = communicator.gather(int(keys.sum(dtype=np.uint64)))
    return sum(parts) % 2**53


@dataclass(frozen=True)
class Resumable:
    """State of a fit that a later one can continue.

    Attributes
    ----------
    training : Training
        Where the loop stands.
    identity : Identity
        What the fit was about.
    n_rounds : int or "auto"
        Number of rounds that the fit was asked for.
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
    """Say what keeps a fit from continuing a model; empty if nothing does."""
    if _names(model.encoder) != _names(encoder):
        own, now = _names(model.encoder), _names(encoder)
        return f"has the columns {own}, X has {now}; give the same columns in the same order"
    if model.encoder != encoder:
        return (
            "was fitted on other kinds of columns: numbers where X has categories or dates, or dense values where X is "
            "sparse"
        )
    own_labels, labels = (() if given is None else given for given in (model.classes, classes))
    if not np.array_equal(own_labels, labels):
        return f"has the classes {np.asarray(own_labels).tolist()}, y has {np.asarray(labels).tolist()}"
    if not model.loss.same_as(loss):
        return f"was fitted with another loss, {model.loss!r}; this is {loss!r}"
    return ""


def _names(encoder: Encoder) -> list[Any]:
    return list(encoder.feature_names or range(encoder.n_features))


def _columns(identity: Identity) -> str:
    number, *names = identity.columns
    return str(names) if names else f"0 to {number - 1}, without names"


def parameter_text(value: Any) -> str:
    """Text of a parameter's value, by which it is compared."""
    return str(value.tolist()) if isinstance(value, np.ndarray) else repr(value)
