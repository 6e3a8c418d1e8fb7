"""Student against teacher, size by size, on samples that were not used for fitting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from scboost._compress.certificate import Certificate, certify
from scboost._compress.data import Certifying, Unit
from scboost._compress.result import SizePoint
from scboost._compress.student import Problem, Student
from scboost._compress.teachers import Teacher
from scboost._compress.types import Float64, Indices, Mask
from scboost._core.ranking import ndcg_by_query


def measure(
    student: Student,
    unit: Unit,
    teacher: Teacher,
    on: Certifying,
    fitted: Sequence[Problem],
    confidence: float,
) -> tuple[list[SizePoint], Certificate, float | None, float]:
    """Measure every size on the samples for the certificate; `fitted` has the other samples that the teacher scored."""
    family = teacher.family
    scale = unit.scale[:, None]
    teacher_losses = None if on.y is None else pointwise_loss(teacher, on.raw, on.y, on.query)
    labels = None if teacher.classes is None else _winners(on.raw)
    pairs = independent_pairs(on.raw[0], on.query) if teacher.orders else None
    curve = []
    divergence, losses = np.zeros(0), teacher_losses
    same: Mask | None = None
    for t in range(1, student.n_rounds + 1):
        F = student.scores(on.X, t) * scale
        divergence = family.divergence(F, on.raw)
        if pairs is not None:
            same = np.asarray(F[0][pairs[0]] > F[0][pairs[1]])
        else:
            same = None if labels is None else _winners(F) == labels
        losses = None if on.y is None else pointwise_loss(teacher, F, on.y, on.query)
        curve.append(
            SizePoint(
                n_trees=t,
                n_leaves=student.n_leaves(t),
                divergence=float(divergence.mean()),
                agreement=None if same is None or not len(same) else float(same.mean()),
                loss=None if losses is None else float(losses.mean()),
            )
        )
    rise = None if losses is None or teacher_losses is None else losses - teacher_losses
    largest = _largest(student, unit, teacher, on, fitted)
    certificate = certify(same, divergence, rise, confidence, largest, of_pairs=teacher.orders)
    constant = np.repeat((student.intercept * unit.scale)[:, None], on.raw.shape[1], axis=1)
    base = float(family.divergence(constant, on.raw).mean())
    fidelity = 1 - certificate.divergence / base if base > 0 else 1.0
    return curve, certificate, None if teacher_losses is None else float(teacher_losses.mean()), fidelity


def _largest(
    student: Student, unit: Unit, teacher: Teacher, on: Certifying, fitted: Sequence[Problem]
) -> tuple[float, float | None]:
    """Return the largest divergence of a sample, and the largest rise of its loss whatever its label is.

    None if the loss of a sample depends on others. Of a ranking, it is the loss of a query, 1 - NDCG.
    """
    scale = unit.scale[:, None]
    pairs = [(student.scores(on.X) * scale, on.raw)]
    pairs += [(student.scores(problem.X) * scale, problem.target * scale) for problem in fitted]
    divergence = max(float(teacher.family.divergence(F, f).max()) for F, f in pairs)
    if teacher.task == "ranking":
        return divergence, 1.0
    if teacher.loss is not None and not teacher.loss.separable:
        return divergence, None
    if teacher.classes is None:
        if on.y is None:
            return divergence, 0.0
        F, f = pairs[0]
        gap = max(float(np.abs(F - f).max()) for F, f in pairs)
        slope = max(float(np.abs(_slope(teacher, raw, on.y)).max()) for raw in (F, f))
        return divergence, gap * slope
    rises = []
    for F, f in pairs:
        for k in range(len(teacher.classes)):
            y = np.full(F.shape[1], float(k))
            rises.append(float((pointwise_loss(teacher, F, y) - pointwise_loss(teacher, f, y)).max()))
    return divergence, max(rises)


def _slope(teacher: Teacher, raw: Float64, y: Float64) -> Float64:
    """Return the derivative of the loss by the raw score."""
    if teacher.loss is not None:
        return np.asarray(teacher.loss.exact_gradient(y, raw), dtype=np.float64)
    return np.asarray(teacher.family.mean(raw) - y)


def _winners(raw: Float64) -> Indices:
    return np.asarray(raw[0] > 0, dtype=np.intp) if len(raw) == 1 else np.asarray(raw.argmax(axis=0))


def independent_pairs(raw: Float64, query: Indices | None) -> tuple[Indices, Indices]:
    """Return disjoint random pairs of samples that the teacher orders, the higher one first.

    Samples are paired at random; documents of queries within their query, one pair for each query, because the pairs of
    a query are not independent.
    """
    order = np.random.default_rng(0).permutation(len(raw))
    if query is not None:
        order = order[np.argsort(query[order], kind="stable")]
        first = np.flatnonzero(np.append(True, np.diff(query[order]) != 0))
        first = first[np.diff(np.append(first, len(order))) > 1]
        a, b = order[first], order[first + 1]
    else:
        half = len(order) // 2
        a, b = order[:half], order[half : 2 * half]
    a, b = np.where(raw[a] > raw[b], a, b), np.where(raw[a] > raw[b], b, a)
    ordered = raw[a] > raw[b]
    return a[ordered], b[ordered]


def pointwise_loss(teacher: Teacher, raw: Float64, y: Float64, query: Indices | None = None) -> Float64:
    """Return the loss of each sample: the model's own, else log-loss, half the squared error or Poisson's deviance.

    Of a ranking, 1 - NDCG of each query with a relevant document.
    """
    if teacher.task == "ranking" and query is not None:
        shares = ndcg_by_query(y, raw[0], np.unique(query, return_inverse=True)[1].reshape(-1))
        return np.asarray(1 - shares[~np.isnan(shares)], dtype=np.float64)
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
