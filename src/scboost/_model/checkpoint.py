"""The checkpoint file: a fitted model with the state of the boosting loop, to resume a fit from.

The file consists of a first line with the format's name, the SHA-256 of the rest, and NumPy arrays (``.npz``): one of
them is the model file, the others are the state of the loop. It contains no pickle.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray
from scboost._core.history import History, SpectralProjector
from scboost._core.loop import Settings, State
from scboost._core.losses import Loss
from scboost._core.training import Companions, Training
from scboost._engine.interface import EngineName, TreeOptions
from scboost._model.file import from_document, parse, to_document
from scboost._model.fitted import FittedModel
from scboost._model.packing import ModelFileError, pack, unpack, untrusted
from scboost._model.resuming import Identity, Resumable
from scboost._version import __version__
from scboost._xgboost import installed_version

_FIRST_LINE = b"scboost checkpoint 1\n"
_LOG = ("loss", "validation_loss", "components", "energy_kept", "energy_removed", "shift", "scale")

Arrays = dict[str, npt.NDArray[Any]]


class Saved(NamedTuple):
    """Content of a checkpoint.

    Attributes
    ----------
    model : FittedModel
        Model of the rounds done so far.
    parameters : dict of str to object
        Parameters of the estimator.
    resumable : Resumable
        State of the fit.
    """

    model: FittedModel
    parameters: dict[str, Any]
    resumable: Resumable


def to_bytes(model: FittedModel, parameters: Mapping[str, Any], resumable: Resumable) -> bytes:
    """Return the content of a checkpoint file."""
    training = resumable.training
    state = training.state
    arrays: Arrays = {"model": _bytes(to_document(model, parameters).encode())}
    companions = training.companions
    if companions is not None:
        joining = dataclasses.replace(model, ensemble=companions.ensemble, n_rounds=companions.ensemble.n_rounds)
        arrays["companions"] = _bytes(to_document(joining, parameters).encode())
    histories = []
    if not state.distributed:
        arrays["F"] = state.F
        for k, history in enumerate([] if state.projector is None else state.projector.histories):
            parts = history.__getstate__()
            arrays[f"H{k}"], arrays[f"G{k}"] = parts["_H"], parts["_G"]
            if parts["_weight"] is not None:
                arrays["weight"] = parts["_weight"]
            histories.append({name: parts[name] for name in ("capacity", "_appended", "_in_gram")})
    about = {
        "versions": _versions(resumable.identity.engine),
        "settings": pack(dataclasses.asdict(training.settings)),
        "log": {name: pack(np.array(getattr(training, name), dtype=np.float64)) for name in _LOG},
        "last_loss": pack(float(training.last_loss)),
        "offer": _options_dict(training.options),
        "round": state.round,
        "histories": histories,
        "identity": pack(_identity_dict(resumable.identity)),
        "n_rounds_asked": resumable.n_rounds,
        "companions": [] if companions is None else companions.sizes,
    }
    arrays["about"] = _bytes(json.dumps(about, allow_nan=False).encode())
    stream = io.BytesIO()
    # Not numpy.savez: that of NumPy 1.26 would store allow_pickle=False as an array.
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.save(entry, array, allow_pickle=False)
    content = stream.getvalue()
    return _FIRST_LINE + hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def _identity_dict(identity: Identity) -> dict[str, Any]:
    """Return an identity under the names that files use."""
    stored = dataclasses.asdict(identity)
    return {"rows": stored.pop("samples"), "columns": stored.pop("features"), **stored}


def _identity(stored: dict[str, Any]) -> Identity:
    """Undo :func:`_identity_dict`."""
    return Identity(samples=stored.pop("rows"), features=stored.pop("columns"), **stored)


def _options_dict(options: TreeOptions) -> dict[str, Any]:
    return {
        "columns": options.features,
        "groups": options.subset_splits,
        "depth": options.max_depth,
        "leaves": options.max_leaves,
        "shape": options.shape,
        "shared": options.shared,
    }


def from_bytes(data: bytes, loss: Loss | None, *, other_versions: bool) -> Saved:
    """Read the content of a checkpoint file.

    Parameters
    ----------
    data : bytes
        Content of the file, possibly untrusted.
    loss : Loss or None
        The loss of the fit, if it is not a built-in one.
    other_versions : bool
        Whether files of other versions of scboost or XGBoost are accepted.
    """
    arrays = _arrays(data)
    with untrusted():
        about = json.loads(arrays["about"].tobytes())
        if not other_versions:
            _check_versions(about["versions"])
        model, parameters = from_document(parse(arrays["model"].tobytes()), loss)
        settings = Settings(**unpack(about["settings"]))
        training = Training(model.ensemble, _state(arrays, about, settings), settings, without_scores="F" not in arrays)
        for name in _LOG:
            setattr(training, name, unpack(about["log"][name]).tolist())
        training.last_loss = float(unpack(about.get("last_loss", np.nan)))
        training.baseline = model.baseline
        training.conformal = model.conformal
        options = about["offer"]
        training.options = TreeOptions(
            tuple(options["columns"]),
            options["groups"],
            options["depth"],
            options["leaves"],
            options["shape"],
            options.get("shared", False),
        )
        if "companions" in arrays:
            companions, _ = from_document(parse(arrays["companions"].tobytes()), loss)
            training.companions = Companions(companions.ensemble, list(about["companions"]))
        if training.loss:
            training.state.first_loss = training.loss[0]
        resumable = Resumable(training, _identity(unpack(about["identity"])), about["n_rounds_asked"])
    return Saved(model, parameters, resumable)


def _state(arrays: Arrays, about: dict[str, Any], settings: Settings) -> State:
    if "F" not in arrays:  # a distributed fit, whose workers recompute the raw scores of their samples
        return State(np.zeros((0, 0)), None, about["round"])
    F: FloatArray = arrays["F"]
    histories = []
    for k, numbers in enumerate(about["histories"]):
        history = History.__new__(History)
        parts = {"_H": arrays[f"H{k}"], "_G": arrays[f"G{k}"], "_weight": arrays.get("weight")}
        history.__setstate__({**parts, **numbers})
        histories.append(history)
    projector = SpectralProjector(histories, settings.alpha, settings.gamma) if histories else None
    return State(F, projector, about["round"])


def _arrays(data: bytes) -> Arrays:
    """Return the arrays of a file after verifying its checksum."""
    if not data.startswith(_FIRST_LINE):
        is_newer = data.startswith(_FIRST_LINE[:19])
        raise ModelFileError(
            "was written by a newer scboost." if is_newer else "is corrupt or not a checkpoint of scboost."
        )
    checksum, _, content = data[len(_FIRST_LINE) :].partition(b"\n")
    if hashlib.sha256(content).hexdigest().encode() != checksum:
        raise ModelFileError("is corrupt: the checksum does not match the content.")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise ModelFileError(f"is corrupt: {error}") from error


def _bytes(data: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(data, dtype=np.uint8)


def _versions(engine: EngineName | None) -> dict[str, str]:
    """Return the versions on which the trees of an engine depend."""
    return {"scboost": __version__} if engine == "native" else {"scboost": __version__, "XGBoost": installed_version()}


def _check_versions(stored: dict[str, str]) -> None:
    for name, now in _versions(None if "XGBoost" in stored else "native").items():
        if stored[name] != now:
            raise ModelFileError(
                f"was written with {name} {stored[name]!s:.40}; the installed version is {now or None}, with which "
                f"the remaining rounds could differ from those of an uninterrupted fit. Install {name} "
                f"{stored[name]!s:.40}, or pass other_versions=True to load()."
            )
