"""Calibration of a fitted estimator on a calibration set."""

from __future__ import annotations

import numpy as np

from scboost._arrays import ArrayLike
from scboost._data.validation import refuse_masked, target_vector
from scboost._estimators.intake import make_samples, numbers, without_weightless
from scboost._model.fitted import FittedModel
from scboost._runtime.communicator import SINGLE_PROCESS


def calibrate(
    model: FittedModel, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, n_threads: int
) -> FittedModel:
    """Return a fitted model with the conformal state of a calibration set; see the method of the estimators."""
    model.require_one_target("calibrate")
    if model.loss.task != "regression":
        raise ValueError(
            f"calibrate is for regression and classification, got a model for the task {model.loss.task!r}."
        )
    refuse_masked(y=y, sample_weight=sample_weight)
    X, y, sample_weight, *_ = without_weightless(X, y, sample_weight, None, SINGLE_PROCESS)
    raw = model.raw_scores(X, n_threads)
    values = target_vector(y, raw.T)
    if model.classes is None:
        target = numbers(values, "y")
        model.loss.check_target(target, "y")
    else:
        unknown = np.setdiff1d(values, model.classes)
        if len(unknown):
            raise ValueError(
                f"y has labels {unknown.tolist()} that the model was not fitted with; it has {model.classes.tolist()}."
            )
        target = np.searchsorted(model.classes, values).astype(np.float64)
    samples = make_samples(raw.T, target, sample_weight, SINGLE_PROCESS)
    return model.calibrated(np.ascontiguousarray(samples.X.T), samples.y.astype(np.float64), samples.weight)
