"""Student against teacher, size by size, on samples that were not used for fitting."""

from __future__ import annotations

import numpy as np
from scipy import special

from scboost._compress.certificate import Certificate, certify
from scboost._compress.data import Certifying, Unit
from scboost._compress.growth import Student
from scboost._compress.result import SizePoint
from scboost._compress.teachers import Teacher
from scboost._compress.types import Float64, Indices, Mask


def measure(
    student: Student, unit: Unit, teacher: Teacher, on: Certifying, confidence: float
) -> tuple[list[SizePoint], Certificate, float | None, float]:
    """Measure every size on the samples for the certificate."""
    family, K = teacher.family, student.n_outputs
    scale = unit.scale[:, None]
    teacher_losses = None if on.y is None else pointwise_loss(teacher, on.raw, on.y)
    labels = None if teacher.classes is None else _winners(on.raw)
    curve = []
    divergence, losses = np.zeros(0), teacher_losses
    same: Mask | None = None
    for t in range(1, student.n_rounds + 1):
        F = student.scores(on.X, t) * scale
        divergence = family.divergence(F, on.raw)
        same = None if labels is None else _winners(F) == labels
        losses = None if on.y is None else pointwise_loss(teacher, F, on.y)
        curve.append(
            SizePoint(
                n_trees=t,
                n_leaves=sum(student.sizes[: t * K]),
                divergence=float(divergence.mean()),
                agreement=None if same is None else float(same.mean()),
                loss=None if losses is None else float(losses.mean()),
            )
        )
    rise = None if losses is None or teacher_losses is None else losses - teacher_losses
    certificate = certify(same, divergence, rise, confidence)
    constant = np.repeat((student.intercept * unit.scale)[:, None], on.raw.shape[1], axis=1)
    base = float(family.divergence(constant, on.raw).mean())
    fidelity = 1 - certificate.divergence / base if base > 0 else 1.0
    return curve, certificate, None if teacher_losses is None else float(teacher_losses.mean()), fidelity


def _winners(raw: Float64) -> Indices:
    return np.asarray(raw[0] > 0, dtype=np.intp) if len(raw) == 1 else np.asarray(raw.argmax(axis=0))


def pointwise_loss(teacher: Teacher, raw: Float64, y: Float64) -> Float64:
    """Return the loss of each sample: the model's own, else log-loss, half the squared error or Poisson's deviance."""
    if teacher.loss is not None:
        return np.asarray(teacher.loss.pointwise_loss(y, raw), dtype=np.float64)
    link = teacher.family.link
    if link == "logit":
        return np.asarray(np.logaddexp(0.0, raw[0]) - y * raw[0])
    if link == "softmax":
        return np.asarray(special.logsumexp(raw, axis=0) - raw[y.astype(np.intp), np.arange(len(y))])
    if link == "log":
        return np.asarray(np.exp(raw[0]) - y * raw[0] - (y - special.xlogy(y, y)))
    return np.asarray((y - raw[0]) ** 2 / 2)
