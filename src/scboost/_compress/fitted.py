"""The last step: trees become a fitted model."""

from __future__ import annotations

import numpy as np

from scboost._compress.student import Student
from scboost._compress.teachers import Teacher
from scboost._compress.trees import with_values
from scboost._compress.types import Float64
from scboost._core.losses import LogisticLoss, Loss, PoissonLoss, SoftmaxLoss, SquaredLoss
from scboost._data.encoder import Encoder
from scboost._engine.xgboost.ensemble import TreeEnsemble
from scboost._model import file
from scboost._model.fitted import COMPRESSED, FittedModel, new_ensemble

# Upper bounds of what an estimator stores of its parameters: those of a compressed model that are set, or all.
_PARAMETER_BYTES, _EVERY_PARAMETER_BYTES = 100, 1_100


def fitted_model(student: Student, scale: Float64, teacher: Teacher, encoder: Encoder) -> FittedModel:
    """Return the fitted model whose raw score is the student's, times `scale`.

    Parameters
    ----------
    student : Student
        Trees and leaf values.
    scale : ndarray of shape (K,)
        Unit of the student's raw scores.
    teacher : Teacher
        Gives loss, classes and the baseline of survival functions.
    encoder : Encoder
        The features.
    """
    K = student.n_outputs
    loss = teacher.loss or _loss(teacher, K)
    ensemble = new_ensemble(encoder, loss, student.intercept * scale, of_trees=True)
    if not isinstance(ensemble, TreeEnsemble):
        raise TypeError(f"expected an ensemble of trees, got a {type(ensemble).__name__}")
    values = np.split(student.history[-1], np.cumsum(student.sizes)[:-1]) if student.trees else []
    ensemble._trees = [  # noqa: SLF001
        with_values(tree, v * scale[i % K]) for i, (tree, v) in enumerate(zip(student.trees, values, strict=True))
    ]
    ensemble.reweight(np.ones((student.n_rounds, K)), ensemble.intercept)
    return FittedModel(
        encoder,
        teacher.classes,
        loss,
        ensemble,
        student.n_rounds,
        learning_rate=1.0,
        stop_reason=COMPRESSED,
        baseline=teacher.baseline,
    )


def file_size(model: FittedModel) -> int:
    """Return the bytes of the model file in UBJSON, the parameters of the estimator included as far as known."""
    return file.file_size(model) + (_PARAMETER_BYTES if model.is_compressed else _EVERY_PARAMETER_BYTES)


def _loss(teacher: Teacher, n_outputs: int) -> Loss:
    link = teacher.family.link
    if link == "softmax":
        return SoftmaxLoss(n_outputs)
    if link == "logit":
        return LogisticLoss()
    return PoissonLoss() if link == "log" else SquaredLoss()
