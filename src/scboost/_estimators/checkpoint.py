"""A file that a killed fit can be resumed from: the model so far, and where the loop stands.

The file is a line that names it, the SHA-256 of the rest, and plain NumPy arrays (``.npz``): one of them is the model
file, the others are those of the loop. There is no pickle in it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray
from scboost._core.history import History, SpectralProjector
from scboost._core.loop import Settings, State
from scboost._core.losses import Loss
from scboost._core.training import Training
from scboost._engine.interface import TreeOptions
from scboost._estimators import SCBoostClassifier, SCBoostRegressor
from scboost._estimators.base import SCBoost
from scboost._estimators.model_file import from_document, to_document
from scboost._estimators.resuming import Identity, Resumable, parameter_text
from scboost._model.atomic import check_folder, write_file
from scboost._model.file import parse
from scboost._model.fitted import FittedModel
from scboost._model.packing import ModelFileError, pack, unpack
from scboost._version import __version__
from scboost._xgboost import import_xgboost

_FIRST_LINE = b"scboost checkpoint 1\n"
_LOG = ("loss", "validation_loss", "components", "energy_kept", "energy_removed", "shift", "scale")

Arrays = dict[str, npt.NDArray[Any]]


class Checkpoint:
    """Callback that writes a model to disk every few rounds, so that a killed fit can be resumed.

    The file is replaced in one step: it always holds a complete checkpoint. A write that fails, because the disk is
    full for example, is a warning and leaves the last one. There is no pickle in the file.

    Parameters
    ----------
    path : str or Path
        File to write; its folder must exist. A link is followed.
    every : int, default=10
        Number of rounds between two checkpoints.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from scboost import SCBoostClassifier
    >>> X, y = make_classification(random_state=0)
    >>> folder = tempfile.TemporaryDirectory()
    >>> checkpoint = Checkpoint(f"{folder.name}/fit.checkpoint", every=4)
    >>> model = SCBoostClassifier(n_estimators=10, random_state=0, callbacks=[checkpoint]).fit(X, y)
    >>> resumed = checkpoint.load()  # as after a crash in round 9 or 10
    >>> resumed.n_estimators_
    8
    >>> resumed = resumed.fit(X, y)
    >>> bool(np.array_equal(resumed.predict_proba(X), model.predict_proba(X)))
    True
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], every: int = 10) -> None:
        if not isinstance(every, int | np.integer) or isinstance(every, bool) or every < 1:
            raise ValueError(f"every={every!r} must be a whole number of rounds of at least 1.")
        self.path = Path(path)
        self.every = int(every)

    def begin(self, estimator: SCBoost) -> None:
        """Check, before the first round, that this fit can be resumed and that the folder exists."""
        if estimator.estimator is not None:
            raise ValueError(
                f"A checkpoint cannot hold estimator={estimator.estimator!r}, which only pickle could store; use "
                "XGBoost's trees (estimator=None)."
            )
        if estimator.preset == "best" or (estimator.weighting is not None and estimator.weighting_data != "holdout"):
            raise ValueError(
                f"A checkpoint cannot resume preset={estimator.preset!r} with weighting_data="
                f"{estimator.weighting_data!r}, which grows several models; use weighting_data='holdout' or "
                "weighting=None, and another preset than 'best'."
            )
        chosen = estimator.n_estimators == "auto" and estimator.preset == "default"
        if estimator.weighting is not None and chosen:
            raise ValueError(
                f"A checkpoint cannot resume weighting={estimator.weighting!r} with n_estimators='auto', where fold "
                "models choose the rounds and weigh the trees; give a number of rounds."
            )
        check_folder(self.path, "the checkpoint ")

    def __call__(self, estimator: SCBoost) -> None:
        """Write the model and the state of the loop if it is time to."""
        resumable = estimator.__resumable__()
        if estimator.n_estimators_ % self.every or resumable is None:
            return
        try:
            content = _to_bytes(estimator.__fitted_model__(), estimator.__stored_parameters__(), resumable)
            write_file(self.path, content)
        except (OSError, ValueError, TypeError) as error:  # a full disk; labels or a projector that no file can hold
            warnings.warn(
                f"The checkpoint {str(self.path)!r} could not be written after round {estimator.n_estimators_}: "
                f"{error}. The fit goes on; an earlier checkpoint is left as it is.",
                RuntimeWarning,
                stacklevel=2,
            )

    def load(self, *, other_versions: bool = False, loss: Loss | None = None) -> SCBoostClassifier | SCBoostRegressor:
        """Read the estimator of the last checkpoint.

        Parameters
        ----------
        other_versions : bool, default=False
            Whether to go on with a checkpoint that another version of scboost or XGBoost has written. The rounds that
            follow are then those of this version: the result differs from that of an uninterrupted fit.
        loss : Loss, optional
            The loss of the fit, if it is not one of scboost's; see :func:`scboost.load_model`.

        Returns
        -------
        estimator
            Fitted with the rounds done so far. It has ``warm_start=True`` and this callback: ``fit`` with the same rows
            does the remaining rounds, and the result equals that of a fit without interruption, bit for bit. Other
            callbacks have to be set again.
        """
        try:
            estimator = from_bytes(self.path.read_bytes(), loss, other_versions=other_versions)
        except ModelFileError as error:
            raise ValueError(f"The checkpoint {str(self.path)!r} {error}") from error
        return estimator.set_params(callbacks=[self])


def _to_bytes(model: FittedModel, parameters: Mapping[str, Any], resumable: Resumable) -> bytes:
    training = resumable.training
    state = training.state
    arrays: Arrays = {"model": _bytes(to_document(model, parameters).encode())}
    histories = []
    has_rows = not state.distributed
    if has_rows:
        arrays["F"] = state.F
    for k, history in enumerate(_histories(state) if has_rows else []):
        parts = history.__getstate__()
        arrays[f"H{k}"], arrays[f"G{k}"] = parts["_H"], parts["_G"]
        if parts["_weight"] is not None:
            arrays["weight"] = parts["_weight"]
        histories.append({name: parts[name] for name in ("capacity", "_appended", "_in_gram")})
    about = {
        "versions": _versions(),
        "settings": pack(dataclasses.asdict(training.settings)),
        "log": {name: pack(np.array(getattr(training, name), dtype=np.float64)) for name in _LOG},
        "offer": _options_dict(training.options),
        "round": state.round,
        "histories": histories,
        "identity": pack(dataclasses.asdict(resumable.identity)),
        "n_rounds_asked": resumable.n_rounds,
    }
    arrays["about"] = _bytes(json.dumps(about, allow_nan=False).encode())
    stream = io.BytesIO()
    # NumPy 1.26's savez cannot be told to refuse pickles: it would store the argument as one more array.
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.save(entry, array, allow_pickle=False)
    content = stream.getvalue()
    return _FIRST_LINE + hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def _options_dict(options: TreeOptions) -> dict[str, Any]:
    return {"columns": options.features, "groups": options.subset_splits, "depth": options.max_depth}


def _histories(state: State) -> list[History]:
    if state.projector is None:
        return []
    return state.projector.histories


def from_bytes(data: bytes, loss: Loss | None, *, other_versions: bool) -> SCBoostClassifier | SCBoostRegressor:
    """Read the estimator of a checkpoint's content; see :meth:`Checkpoint.load`."""
    arrays = _arrays(data)
    try:
        about = json.loads(arrays["about"].tobytes())
        if not other_versions:
            _check_versions(about["versions"])
        estimator = from_document(parse(arrays["model"].tobytes()), loss)
        settings = Settings(**unpack(about["settings"]))
        model = estimator.__fitted_model__()
        training = Training(model.ensemble, _state(arrays, about, settings), settings, without_scores="F" not in arrays)
        for name in _LOG:
            setattr(training, name, unpack(about["log"][name]).tolist())
        offer = about["offer"]
        training.options = TreeOptions(tuple(offer["columns"]), offer["groups"], offer["depth"])
        if training.loss:
            training.state.first_loss = training.loss[0]
        identity = unpack(about["identity"])
        # A parameter that no file can hold is now the default, and no longer part of what must be the same.
        stored = estimator.get_params(deep=False)
        identity["parameters"] = {k: v for k, v in identity["parameters"].items() if v == parameter_text(stored.get(k))}
        resumable = Resumable(training, Identity(**identity), about["n_rounds_asked"])
        estimator.__with_fitted_model__(model, resumable)
        return estimator.set_params(warm_start=True, n_estimators=about["n_rounds_asked"])
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ModelFileError(f"is corrupt: {type(error).__name__}: {error}") from error


def _state(arrays: Arrays, about: dict[str, Any], settings: Settings) -> State:
    if "F" not in arrays:  # the rows are spread over workers
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
    """Arrays of a file whose checksum is right."""
    if not data.startswith(_FIRST_LINE):
        known = data.startswith(_FIRST_LINE[:19])
        raise ModelFileError("is of a newer scboost." if known else "is corrupt, or no checkpoint of scboost.")
    checksum, _, content = data[len(_FIRST_LINE) :].partition(b"\n")
    if hashlib.sha256(content).hexdigest().encode() != checksum:
        raise ModelFileError("is corrupt: its checksum is not that of its content.")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise ModelFileError(f"is corrupt: {error}") from error


def _bytes(data: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(data, dtype=np.uint8)


def _versions() -> dict[str, str]:
    return {"scboost": __version__, "XGBoost": import_xgboost().__version__}


def _check_versions(stored: dict[str, str]) -> None:
    for name, now in _versions().items():
        if stored[name] != now:
            raise ModelFileError(
                f"was written with {name} {stored[name]!s:.40}, and this is {now}: the remaining rounds would not be "
                f"those of the first fit. Install {name} {stored[name]!s:.40}, or say load(other_versions=True)."
            )
