"""The last step: trees become a fitted estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from scboost._compress.growth import Student
from scboost._compress.samples import Samples
from scboost._compress.teachers import Teacher
from scboost._compress.trees import with_values
from scboost._compress.types import Float64
from scboost.boosting.losses import LogisticLoss, Loss, PoissonLoss, SoftmaxLoss, SquaredLoss
from scboost.estimators import SCBoostClassifier, SCBoostRegressor
from scboost.xgb.ensemble import TreeEnsemble


def make_estimator(
    student: Student, scale: Float64, teacher: Teacher, samples: Samples, max_leaves: int, params: dict[str, Any]
) -> SCBoostClassifier | SCBoostRegressor:
    """Make the estimator whose raw score is the student's, times `scale`.

    Parameters
    ----------
    student : Student
        Trees and leaf values.
    scale : ndarray of shape (K,)
        Unit of the student's raw scores.
    teacher : Teacher
        Gives loss and classes.
    samples : Samples
        Give the features.
    max_leaves : int
        Largest number of leaves of a tree.
    params : dict
        Further parameters of the estimator.
    """
    loss = teacher.loss or _loss(teacher, student.n_outputs)
    shape: dict[str, Any] = {"n_estimators": student.n_rounds, "max_leaves": max_leaves, "max_depth": None}
    model: SCBoostClassifier | SCBoostRegressor
    if teacher.classes is None:
        model = SCBoostRegressor(**_regression_parameters(teacher), **shape, **params)
    else:
        model = SCBoostClassifier(**shape, **params)
        model.classes_, model.n_classes_ = teacher.classes, len(teacher.classes)
    model.n_features_in_ = samples.matrix.shape[1]
    if samples.names is not None:
        model.feature_names_in_ = np.array(samples.names, dtype=object)
    model._columns = samples.columns if samples.categorical.any() else None  # noqa: SLF001
    model._sparse, model._loss = False, loss  # noqa: SLF001
    model._ensemble = model._make_ensemble(loss)(student.intercept * scale)  # noqa: SLF001
    _fill(model._trees("compress"), student, scale)  # noqa: SLF001
    model.n_estimators_, model.learning_rate_, model.max_depth_ = student.n_rounds, 1.0, None
    model.stop_reason_, model.training_log_ = "compressed", {}
    return model


def native_size(model: SCBoostClassifier | SCBoostRegressor) -> int:
    """Return the bytes of the native model in UBJSON."""
    return len(model._trees("compress").document().encode())  # noqa: SLF001


def _fill(ensemble: TreeEnsemble, student: Student, scale: Float64) -> None:
    K = student.n_outputs
    values = np.split(student.history[-1], np.cumsum(student.sizes)[:-1])
    trees = [with_values(tree, v * scale[i % K]) for i, (tree, v) in enumerate(zip(student.trees, values, strict=True))]
    ensemble._trees = trees  # noqa: SLF001
    ensemble.reweight(np.ones((student.n_rounds, K)), ensemble.intercept)


def _loss(teacher: Teacher, n_outputs: int) -> Loss:
    link = teacher.family.link
    if link == "softmax":
        return SoftmaxLoss(n_outputs)
    if link == "logit":
        return LogisticLoss()
    return PoissonLoss() if link == "log" else SquaredLoss()


def _regression_parameters(teacher: Teacher) -> dict[str, Any]:
    """Return the parameters of the regressor that stand for the loss."""
    return teacher.parameters or {"loss": "poisson" if teacher.family.link == "log" else "squared_error"}
