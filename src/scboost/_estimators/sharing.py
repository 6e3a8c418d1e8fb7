"""Distributed fits: every worker runs the same code on its own samples."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy.typing as npt
from sklearn.base import clone

from scboost._arrays import FloatArray
from scboost._core.losses import Loss, is_built_in
from scboost._engine.xgboost.collective import joined, lost_worker
from scboost._estimators.base import SCBoost
from scboost._estimators.checkpoint import estimator_from_bytes
from scboost._estimators.fitting import FitArguments
from scboost._estimators.model_file import from_document, to_document
from scboost._model.file import parse
from scboost._model.fitted import FittedModel
from scboost._runtime.communicator import WorkerError
from scboost._xgboost import import_xgboost

_Estimator = TypeVar("_Estimator", bound=SCBoost)

_ONE_PROCESS = ("SCBoostDistribution", "SCBoostRanker", "SCBoostSurvival")


@dataclass
class Part:
    """Samples of one worker.

    Attributes
    ----------
    X, y, sample_weight : table or array, array, array or None
        Training samples; may be empty, but must have all features.
    X_val, y_val, sample_weight_val : the same, or None
        Validation set.
    """

    X: Any
    y: Any
    sample_weight: Any = None
    X_val: Any = None
    y_val: Any = None
    sample_weight_val: Any = None


@dataclass
class Outcome:
    """Result of a distributed fit, returned by the first worker.

    Attributes
    ----------
    model : bytes
        The model file.
    caught : list of (type, str)
        Warnings of the fit.
    traffic : dict of str to float
        Collective ``calls`` of this library with their ``bytes`` and ``seconds``, and the number of ``rounds``.
    """

    model: bytes
    caught: list[tuple[type[Warning], str]] = field(default_factory=list)
    traffic: dict[str, float] = field(default_factory=dict)

    def into(self, estimator: _Estimator) -> _Estimator:
        """Return a fitted copy of an estimator, and issue the warnings of the workers."""
        for kind, text in self.caught:
            warnings.warn(text, kind, stacklevel=4)
        model = from_document(parse(self.model), _own_loss(estimator))
        fitted: _Estimator = clone(estimator)
        return fitted.__with_fitted_model__(model.__fitted_model__())


def _own_loss(estimator: SCBoost) -> Loss | None:
    """Return the user-defined loss of an estimator, which files cannot store."""
    loss = getattr(estimator, "loss", None)
    return loss if isinstance(loss, Loss) and not is_built_in(loss) else None


def resumed_estimator(estimator: SCBoost, checkpoint: bytes) -> SCBoost:
    """Return a copy of the estimator that resumes the fit of a checkpoint, with its own parameters.

    Parameters, loss and data are compared with those of the checkpoint as in any resumed fit.
    """
    saved = estimator_from_bytes(checkpoint, _own_loss(estimator), other_versions=False)
    local_class = next(cls for cls in type(estimator).__mro__ if cls.__module__.startswith("scboost._estimators"))
    if not isinstance(saved, local_class):
        raise ValueError(  # noqa: TRY004 - the value of resume_from is wrong
            f"The checkpoint to resume from is of a {type(saved).__name__}; this is a {type(estimator).__name__}."
        )
    model: SCBoost = clone(estimator).set_params(warm_start=True)
    if model.n_estimators == "auto":
        model.set_params(n_estimators=saved.n_estimators)
    return model.__with_fitted_model__(saved.__fitted_model__(), saved.__resumable__())


def fit_part(estimator: SCBoost, part: Part, arguments: dict[str, Any], resume: bytes | None = None) -> Outcome | None:
    """Fit to the samples of this worker jointly with the other workers; the first worker returns the model.

    Parameters
    ----------
    estimator : SCBoostClassifier or SCBoostRegressor
        Unfitted, the same on all workers.
    part : Part
        Samples of this worker.
    arguments : dict
        Of :func:`scboost._engine.xgboost.collective.joined`.
    resume : bytes, optional
        Content of a checkpoint to resume.
    """
    XGBoostError = import_xgboost().core.XGBoostError
    with joined(arguments) as communicator, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model: SCBoost = clone(estimator) if resume is None else resumed_estimator(estimator, resume)
        given = FitArguments(part.X, part.y, part.sample_weight, part.X_val, part.y_val, part.sample_weight_val)
        try:
            model.__fit_shared__(communicator, given)
        except (WorkerError, XGBoostError) as error:
            other = lost_worker(error)
            if other is None:
                raise
            raise WorkerError(f"The fit ended in round {communicator.round}. {other}") from error
        if communicator.rank:
            return None
        traffic = {"calls": communicator.calls, "bytes": 8 * communicator.numbers, "seconds": communicator.seconds}
        return Outcome(
            to_document(model.__fitted_model__(), model.__stored_parameters__()).encode(),
            [(warning.category, str(warning.message)) for warning in caught],
            {**traffic, "rounds": len(model.training_log_["round"])},
        )


def predictions(model: FittedModel, X: Any, n_threads: int) -> tuple[npt.NDArray[Any], FloatArray, FloatArray]:
    """Return labels, probabilities and raw scores of a classifier, computing the raw scores once.

    Returns
    -------
    labels : ndarray of shape (n,)
        As ``predict`` gives them.
    probabilities : ndarray of shape (n, n_classes)
        As ``predict_proba`` gives them.
    scores : ndarray of shape (n_outputs, n)
        Raw scores.
    """
    raw = model.raw_scores(X, n_threads)
    return model.labels(raw), model.means(raw), raw


def missing_estimator(module: str, name: str) -> Exception:
    """Return the error about a name that a module of distributed estimators does not have."""
    if name not in _ONE_PROCESS:
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    # Not an AttributeError, whose text `from module import name` drops.
    return ImportError(
        f"{module} has no {name}, which is not distributed. Use scboost.{name}, which needs the samples in one process."
    )
