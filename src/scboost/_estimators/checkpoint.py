"""The callback that writes checkpoints."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from scboost._core.losses import Loss
from scboost._estimators.base import SCBoost
from scboost._estimators.model_file import Estimator, check_loss_parameters, make_estimator
from scboost._model.atomic import check_folder, write_file
from scboost._model.checkpoint import from_bytes, to_bytes
from scboost._model.packing import ModelFileError, untrusted
from scboost._model.resuming import parameter_text


class Checkpoint:
    """Callback that saves the state of a fit every few rounds, to resume the fit after a crash.

    The file is replaced atomically: it always contains a complete checkpoint. If writing fails, for example because the
    disk is full, a warning is issued and the previous checkpoint is kept. The file contains no pickle.

    Parameters
    ----------
    path : str or Path
        File to write; its folder must exist. A symbolic link is followed.
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
            raise ValueError(f"every={every!r} must be an integer of at least 1, a number of rounds.")
        self.path = Path(path)
        self.every = int(every)

    def begin(self, estimator: SCBoost) -> None:
        """Check, before the first round, that this fit can be resumed and that the folder exists."""
        if estimator.estimator is not None:
            raise ValueError(
                f"A checkpoint cannot store estimator={estimator.estimator!r}, which would need pickle; use the "
                "built-in trees (estimator=None)."
            )
        if estimator.preset == "best" or (estimator.weighting is not None and estimator.weighting_data != "holdout"):
            raise ValueError(
                f"A checkpoint cannot resume preset={estimator.preset!r} with weighting_data="
                f"{estimator.weighting_data!r}, which fits several models; use weighting_data='holdout' or "
                "weighting=None, and another preset than 'best'."
            )
        selects_rounds = estimator.n_estimators == "auto" and estimator.preset == "default"
        if estimator.weighting is not None and selects_rounds:
            raise ValueError(
                f"A checkpoint cannot resume weighting={estimator.weighting!r} with n_estimators='auto', where the "
                "weights are learned from fold models; set n_estimators to a number."
            )
        check_folder(self.path, "the checkpoint ")

    def __call__(self, estimator: SCBoost) -> None:
        """Write a checkpoint if the number of rounds is a multiple of ``every``."""
        resumable = estimator.__resumable__()
        if estimator.n_estimators_ % self.every or resumable is None:
            return
        model, parameters = estimator.__fitted_model__(), estimator.__stored_parameters__()
        try:
            check_loss_parameters(model, parameters)
            write_file(self.path, to_bytes(model, parameters, resumable))
        except (OSError, ValueError, TypeError) as error:  # a full disk, or labels that cannot be stored
            warnings.warn(
                f"The checkpoint {str(self.path)!r} could not be written after round {estimator.n_estimators_}: "
                f"{error}. The fit continues; an earlier checkpoint is kept.",
                RuntimeWarning,
                stacklevel=2,
            )

    def load(self, *, other_versions: bool = False, loss: Loss | None = None) -> Estimator:
        """Read the estimator of the last checkpoint.

        Parameters
        ----------
        other_versions : bool, default=False
            Whether to accept a checkpoint written with another version of scboost or XGBoost. The remaining rounds then
            use the installed version, and the result may differ from that of an uninterrupted fit.
        loss : Loss, optional
            The loss of the fit, if it is not a built-in one; see :func:`scboost.load_model`.

        Returns
        -------
        estimator
            Fitted with the rounds done so far, with ``warm_start=True`` and this callback. ``fit`` on the same data
            runs the remaining rounds; the result is bit-identical to that of an uninterrupted fit. Other callbacks have
            to be set again.
        """
        try:
            estimator = estimator_from_bytes(self.path.read_bytes(), loss, other_versions=other_versions)
        except ModelFileError as error:
            raise ValueError(f"The checkpoint {str(self.path)!r} {error}") from error
        return estimator.set_params(callbacks=[self])


def estimator_from_bytes(data: bytes, loss: Loss | None, *, other_versions: bool) -> Estimator:
    """Return the estimator of a checkpoint's content; see :meth:`Checkpoint.load`."""
    model, parameters, resumable = from_bytes(data, loss, other_versions=other_versions)
    with untrusted():
        estimator = make_estimator(model, parameters)
    # Parameters that a file cannot store have their default values after loading, and are not compared.
    now = estimator.get_params(deep=False)
    kept = {k: v for k, v in resumable.identity.parameters.items() if v == parameter_text(now.get(k))}
    resumable = replace(resumable, identity=replace(resumable.identity, parameters=kept))
    estimator.__with_fitted_model__(model, resumable)
    return estimator.set_params(warm_start=True, n_estimators=resumable.n_rounds)
