"""Where the teacher is asked: real samples, synthetic ones, and those for the certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from scboost._compress.families import Family
from scboost._compress.samples import Samples
from scboost._compress.student import Problem
from scboost._compress.synthetic import Munge
from scboost._compress.teachers import Teacher
from scboost._compress.types import Float32, Float64, Indices, Mask

_MOST_REAL = 50_000
# Synthetic samples: for each real one, and at least. Models of many trees have fewer, because they take longer, and
# regression has more: every sample has the same weight in the squared error.
FEW_TREES = 20
_OF_FEW_TREES, _OF_MANY_TREES, _OF_VALUES, _MOST_SYNTHETIC = (8, 10_000), (6, 8_000), (14, 20_000), 100_000
_VALIDATION_SHARE = 0.05
_MOST_CERTIFYING = 5_000


@dataclass(frozen=True)
class Certifying:
    """Samples for the certificate: the student's view, the teacher's raw scores, and targets as the loss takes them.

    Documents of a ranking may have the numbers of their queries.
    """

    X: Float32
    raw: Float64
    y: Float64 | None
    query: Indices | None = None


@dataclass(frozen=True)
class Given:
    """Targets and queries of the samples, and samples for the certificate, as the user gave them."""

    y: Any = None
    qid: Any = None
    X_certify: Any = None
    y_certify: Any = None
    qid_certify: Any = None


@dataclass(frozen=True)
class Data:
    """Real samples to fit, those among them that validate, and those for the certificate."""

    fitting: Samples
    validating: Mask
    certifying: Certifying


@dataclass(frozen=True)
class Unit:
    """Unit of the student's raw scores, of shape (K,), and the teacher's mean score in regression."""

    scale: Float64


def split_samples(samples: Samples, given: Given, fraction: float, teacher: Teacher, rng: np.random.Generator) -> Data:
    """Hold out samples for the certificate, unless they are given with their targets, and mark validation samples."""
    n = len(samples)
    target = None if given.y is None else _target(given.y, n, teacher, "y")
    query = _queries(given.qid, n, teacher, "qid")
    order = rng.permutation(n)
    if given.X_certify is None:
        n_held = min(max(round(fraction * n), 1), _MOST_CERTIFYING)
        if query is not None:  # whole queries, in random order
            order = order[np.argsort(rng.permutation(query.max() + 1)[query[order]], kind="stable")]
            n_held = int(np.flatnonzero(query[order] == query[order[n_held - 1]])[-1]) + 1
        held, order = order[:n_held], order[n_held:]
        certify_on, target = samples.take(held), None if target is None else target[held]
        query = None if query is None else query[held]
    else:
        certify_on = samples.like(given.X_certify, "X_certify")
        n_held = len(certify_on)
        target = None if given.y_certify is None else _target(given.y_certify, n_held, teacher, "y_certify")
        query = _queries(given.qid_certify, n_held, teacher, "qid_certify")
    if target is not None and teacher.task == "ranking" and query is None:
        raise ValueError("Relevances are compared within queries: pass qid with y, and qid_certify with y_certify.")
    kept = np.sort(order[:_MOST_REAL])
    validating = np.zeros(len(kept), dtype=bool)
    validating[rng.permutation(len(kept))[: max(round(_VALIDATION_SHARE * len(kept)), 1)]] = True
    certifying = Certifying(certify_on.matrix.astype(np.float32), teacher.scores(certify_on), target, query)
    return Data(samples.take(kept), validating, certifying)


def _target(y: Any, n: int, teacher: Teacher, name: str) -> Float64:
    """Return targets as numbers: positions among the classes, or values."""
    values = np.asarray(y)
    if teacher.task == "survival" and values.shape == (n, 2):  # bounds of the times
        return values.astype(np.float64)
    if values.shape != (n,):
        raise ValueError(f"{name} has shape {values.shape}; it must be ({n},), one value for each sample.")
    if teacher.classes is None:
        return values.astype(np.float64)
    place = {label: k for k, label in enumerate(teacher.classes.tolist())}
    unknown = sorted({str(label) for label in values.tolist() if label not in place})
    if unknown:
        raise ValueError(f"{name} has labels {unknown} that the model does not know: {teacher.classes.tolist()}.")
    return np.array([place[label] for label in values.tolist()], dtype=np.float64)


def _queries(qid: Any, n: int, teacher: Teacher, name: str) -> Indices | None:
    """Return the queries of documents as numbers 0, 1, ..."""
    if qid is None:
        return None
    if teacher.task != "ranking":
        raise ValueError(f"{name} was given, but the model is not an SCBoostRanker; leave it out.")
    values = np.asarray(qid)
    if values.shape != (n,):
        raise ValueError(f"{name} has shape {values.shape}; it must be ({n},), one query for each sample.")
    return np.asarray(np.unique(values, return_inverse=True)[1].reshape(-1), dtype=np.intp)


def ask_teacher(
    data: Data, teacher: Teacher, given: Any, n_synthetic: int | str, max_trees: int, rng: np.random.Generator
) -> tuple[Problem, Problem, Unit, int]:
    """Ask the teacher on real and synthetic samples; return those to fit and those to validate on."""
    real = data.fitting
    n = len(real)
    n_drawn = automatic_number(n, teacher, max_trees) if n_synthetic == "auto" else int(n_synthetic)
    validating = data.validating
    if given is None or callable(given):
        munge = Munge(real.matrix, real.categorical)
        parts = [
            _drawn(real, given or munge, teacher, rows, size, rng)
            for rows, size in (
                (np.flatnonzero(~validating), n_drawn),
                (np.flatnonzero(validating), max(n_drawn // 10, 1)),
            )
        ]
        synthetic, extra = parts
    else:
        every = real.like(given, "X_synthetic")
        cut = rng.permutation(len(every))
        n_extra = max(len(every) // 10, 1)
        extra, synthetic = every.take(cut[:n_extra]), every.take(cut[n_extra:])
    raw = teacher.scores(real)
    if not np.isfinite(raw).all():
        raise ValueError("The model's raw score is not finite on X.")
    blocks = [(real.matrix[~validating], raw[:, ~validating]), (real.matrix[validating], raw[:, validating])]
    problems = []
    for (values, scores), drawn in zip(blocks, (synthetic, extra), strict=True):
        more = [] if drawn is None else [drawn]
        X = np.concatenate([values, *(part.matrix for part in more)])
        target = np.concatenate([scores, *(teacher.scores(part) for part in more)], axis=1)
        problems.append(Problem(X.astype(np.float32), target, len(values), teacher.features))
    fitting, validation = problems
    unit = _unit(fitting.target, teacher.family)
    for problem in problems:
        problem.target = problem.target / unit.scale[:, None]
    return fitting, validation, unit, 0 if synthetic is None else len(synthetic)


def automatic_number(n: int, teacher: Teacher, max_trees: int) -> int:
    """Return the number of synthetic samples for n real ones."""
    of_classes = _OF_FEW_TREES if max_trees <= FEW_TREES else _OF_MANY_TREES
    share, fewest = of_classes if teacher.family.of_classes else _OF_VALUES
    return min(max(share * n, fewest), _MOST_SYNTHETIC)


def _drawn(
    real: Samples, generator: Any, teacher: Teacher, among: Indices, size: int, rng: np.random.Generator
) -> Samples | None:
    if size == 0:
        return None
    if not isinstance(generator, Munge):
        return real.like(generator(size, rng), "the result of X_synthetic")
    draw = generator.draw(size, rng, among)
    return real.joined(draw) if teacher.raw_encoded is None else real.joined_encoded(draw)


def _unit(target: Float64, family: Family) -> Unit:
    """Return the unit in which a regression target has variance 1; other raw scores have a unit of their own."""
    scale = target.std(axis=1) if family.link == "identity" else np.ones(len(target))
    return Unit(np.where(scale > 0, scale, 1.0))
