"""Several targets: y of shape (n_samples, n_targets)."""

from __future__ import annotations

import copy
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from scboost._arrays import ArrayLike, FloatArray
from scboost._core.losses import Loss, TargetsLogisticLoss, TargetsSquaredLoss
from scboost._core.parameters import Parameters
from scboost._core.rules import check_several_targets
from scboost._estimators.base import SCBoost
from scboost._estimators.intake import Target, make_samples, numbers
from scboost._runtime.communicator import Communicator, SingleProcess

if TYPE_CHECKING:
    from typing_extensions import Self


class SupportsTargets(SCBoost):
    """Base class of estimators that fit several targets."""

    def target_model(self, target: int | str) -> Self:
        """Return the model of one of several targets, as a fitted estimator of that target.

        Its predictions are those of this model for the target. Use it for what supports one target only: reports,
        ``compress``, ``calibrate`` and prediction intervals, exports to source code.

        Parameters
        ----------
        target : int or str
            Position of the target among the columns of y, or its name in ``target_name_``.

        Returns
        -------
        estimator
            Of the same class and with the same parameters; for a label, a classifier of the classes 0 and 1. It has no
            ``training_log_``, which refers to all targets.
        """
        check_is_fitted(self)
        fitted = self._fitted
        n, names = fitted.n_targets, fitted.target_names
        if n == 1:
            raise ValueError("target_model needs a model of several targets; this model has one.")
        if isinstance(target, str):
            if target not in names:
                raise ValueError(
                    f"target={target!r} is not in target_name_={list(names)!r:.200}; use a number below {n}."
                )
            k = names.index(target)
        elif isinstance(target, Integral) and 0 <= target < n:
            k = int(target)
        else:
            raise ValueError(f"target must be between 0 and {n - 1}, or a name in target_name_, got {target!r}.")
        return copy.copy(self).__with_fitted_model__(fitted.of_target(k))


def supports_several_targets(estimator: SCBoost) -> bool:
    """Whether the parameters of an estimator allow several targets; see :func:`check_several_targets`."""
    try:
        check_several_targets(Parameters.of(estimator.__stored_parameters__()), 2, has_missing=False, distributed=False)
    except ValueError:
        return False
    return True


def target_matrix(y: Any) -> npt.NDArray[Any] | None:
    """Return y as an array if it has two dimensions and several columns; otherwise None."""
    array = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
    return array if array.ndim == 2 and array.shape[1] > 1 and array.dtype.names is None else None


def checked_matrix(y: npt.NDArray[Any], n_samples: int, name: str) -> npt.NDArray[Any]:
    """Check the length and the missing values of several targets; return them as numbers."""
    if len(y) != n_samples:
        raise ValueError(f"{name} has {len(y)} entries but X has {n_samples} samples.")
    values = numbers(y, name)
    if np.isinf(values).any():
        raise ValueError(f"Input {name} contains infinity; targets must be finite, or NaN where they are missing.")
    missing = np.isnan(values)
    empty = np.flatnonzero(missing.all(axis=1))
    if len(empty):
        raise ValueError(
            f"{name} is NaN in all {values.shape[1]} columns of {len(empty)} samples, the first of which is sample "
            f"{empty[0]}; remove samples without any target."
        )
    if missing.all(axis=0).any():
        column = int(np.flatnonzero(missing.all(axis=0))[0])
        raise ValueError(f"Column {column} of {name} is NaN in every sample; leave it out.")
    return values


def regression_targets(
    y: FloatArray,
    X: Any,
    sample_weight: ArrayLike | None,
    parameters: Parameters,
    loss: object,
    base: Loss | None,
    communicator: Communicator,
) -> Target:
    """Return the training samples of several numeric targets.

    Parameters
    ----------
    y : ndarray of shape (n, K)
        From :func:`checked_matrix`.
    X : matrix of shape (n, d)
        Encoded features.
    sample_weight : array-like of shape (n,), optional
        Sample weights.
    parameters : Parameters
        Parameters of the estimator.
    loss : str or Loss
        The parameter of that name.
    base : Loss or None
        Loss of a model to continue, whose scales are kept.
    communicator : Communicator
        The other workers.
    """
    if not isinstance(loss, str) or loss != "squared_error":
        raise ValueError(
            f"loss={loss!r} supports one target, y has {y.shape[1]}; use loss='squared_error' or one model per target, "
            "for example with sklearn.multioutput.MultiOutputRegressor."
        )
    _check(y, parameters, communicator)
    samples = make_samples(X, y, sample_weight, communicator)
    scales = base.scales if isinstance(base, TargetsSquaredLoss) and base.n_outputs == y.shape[1] else None
    return Target(samples, TargetsSquaredLoss.of(samples.y, samples.weight, scales))


def label_targets(
    y: FloatArray,
    X: Any,
    sample_weight: ArrayLike | None,
    parameters: Parameters,
    class_weight: Any,
    communicator: Communicator,
) -> Target:
    """Return the training samples of several 0/1 labels; the parameters are those of :func:`regression_targets`."""
    if class_weight is not None:
        raise ValueError(
            f"class_weight={class_weight!r} supports one target, y has {y.shape[1]} labels; use sample_weight, or one "
            "model per label, for example with sklearn.multioutput.MultiOutputClassifier."
        )
    _check(y, parameters, communicator)
    check_indicators(y, "y")
    return Target(make_samples(X, y, sample_weight, communicator), TargetsLogisticLoss(y.shape[1]))


def check_indicators(y: FloatArray, name: str) -> None:
    """Reject labels that are not 0, 1 or NaN."""
    wrong = y[~np.isin(y, (0, 1)) & ~np.isnan(y)]
    if wrong.size:
        raise ValueError(
            f"{name} has {y.shape[1]} columns, which must be labels with the values 0 and 1 (multilabel "
            f"classification), got {wrong[0]:g}; for several targets with more than two classes use one model per "
            "target, for example with sklearn.multioutput.MultiOutputClassifier."
        )


def _check(y: FloatArray, parameters: Parameters, communicator: Communicator) -> None:
    distributed = not isinstance(communicator, SingleProcess)
    check_several_targets(parameters, y.shape[1], has_missing=bool(np.isnan(y).any()), distributed=distributed)
