"""Any model becomes a few trees: the steps of :func:`scboost.compress`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from scboost._compress.data import ask_teacher, split_samples
from scboost._compress.families import Family
from scboost._compress.fitted import fitted_model, native_size
from scboost._compress.growth import Problem, Settings, Student, grow, select_ridge
from scboost._compress.measures import measure
from scboost._compress.result import Compressed
from scboost._compress.samples import Samples
from scboost._compress.teachers import read_teacher
from scboost._compress.types import Mask
from scboost._model.fitted import FittedModel, HasFittedModel

_RIDGES = (0.3, 1.0, 3.0, 10.0)
_FEWEST_SAMPLES = 20
_MOST_CANDIDATES = 3
_MODEL_BYTES, _TREE_BYTES, _NODE_BYTES = 1_000, 800, 36  # of a native model in UBJSON, about; the size is measured


@dataclass(frozen=True)
class Options:
    """Arguments of :func:`scboost.compress` by name."""

    max_trees: int
    max_leaves: int
    max_bytes: int | None
    confidence: float
    X_certify: Any
    y_certify: Any
    certify_fraction: float
    X_synthetic: Any
    n_synthetic: int | str
    link: str

    def __post_init__(self) -> None:
        if not isinstance(self.confidence, Real) or not 0.5 <= self.confidence < 1:
            raise ValueError(f"confidence={self.confidence!r} must be at least 0.5 and below 1, such as 0.95.")
        if not isinstance(self.certify_fraction, Real) or not 0 < self.certify_fraction < 1:
            raise ValueError(f"certify_fraction={self.certify_fraction!r} must be between 0 and 1.")
        if self.n_synthetic != "auto" and (not isinstance(self.n_synthetic, Integral) or self.n_synthetic < 0):
            raise ValueError(f"n_synthetic={self.n_synthetic!r} must be 'auto' or an integer of at least 0.")
        if self.X_certify is None and self.y_certify is not None:
            raise ValueError("y_certify was given without X_certify.")


def compress_model(
    model: object, X: Any, y: Any, options: Options, seed: int, n_threads: int
) -> Compressed[FittedModel]:
    """Compress a model; ``model`` of the result is a FittedModel.

    Parameters
    ----------
    model, X, y, options
        As for :func:`scboost.compress`.
    seed : int
        Of everything random.
    n_threads : int
        Threads that grow trees; 0 for all.
    """
    budget = Budget(options.max_trees, options.max_leaves, options.max_bytes)
    fitted = model.__fitted_model__() if isinstance(model, HasFittedModel) else None
    samples = Samples.of(X, None if fitted is None else fitted.encoder)
    if len(samples) < _FEWEST_SAMPLES:
        raise ValueError(f"X has {len(samples)} samples; compress needs at least {_FEWEST_SAMPLES}.")
    labels = y if y is not None else options.y_certify
    teacher = read_teacher(model, samples.take(np.arange(2)).X, labels, options.link, n_threads)
    rng = np.random.default_rng(seed)
    given = (options.X_certify, options.y_certify)
    data = split_samples(samples, y, given, options.certify_fraction, teacher, rng)
    fitting, validation, unit, n_drawn = ask_teacher(data, teacher, options.X_synthetic, options.n_synthetic, rng)

    def size(student: Student) -> int:
        return native_size(fitted_model(student, unit.scale, teacher, samples.encoder))

    search = Search(fitting, validation, samples.categorical, teacher.family, n_threads)
    student, ridge, leaves = search.best(budget, size)
    small = fitted_model(student, unit.scale, teacher, samples.encoder)
    curve, certificate, teacher_loss, fidelity = measure(
        student, unit, teacher, data.certifying, (fitting, validation), options.confidence
    )
    return Compressed(
        model=small,
        n_trees=student.n_rounds,
        n_leaves=sum(student.sizes),
        n_bytes=native_size(small),
        fidelity=fidelity,
        loss=curve[-1].loss,
        teacher_loss=teacher_loss,
        curve=curve,
        certificate=certificate,
        max_leaves=leaves,
        ridge=ridge,
        n_synthetic=n_drawn,
        violation=student.violation,
    )


@dataclass(frozen=True)
class Budget:
    """Largest size of the student."""

    max_trees: int
    max_leaves: int
    max_bytes: int | None

    def __post_init__(self) -> None:
        for name, least in (("max_trees", 1), ("max_leaves", 2), ("max_bytes", 1000)):
            value = getattr(self, name)
            if value is None and name == "max_bytes":
                continue
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise ValueError(f"{name}={value!r} must be an integer of at least {least}.")

    def candidates(self, n_outputs: int) -> list[tuple[int, int]]:
        """Return pairs of rounds and leaves per tree that fit."""
        if self.max_bytes is None:
            return [(self.max_trees, self.max_leaves)]
        found: dict[tuple[int, int], None] = {}
        n_rounds = self.max_trees
        while n_rounds and len(found) < _MOST_CANDIDATES:
            by_tree = (self.max_bytes - _MODEL_BYTES) / (n_rounds * n_outputs) - _TREE_BYTES
            leaves = min(self.max_leaves, int(by_tree / _NODE_BYTES + 1) // 2)
            if leaves >= 2:
                found[n_rounds, leaves] = None
            n_rounds //= 2
        if not found:
            least = _MODEL_BYTES + n_outputs * (_TREE_BYTES + 3 * _NODE_BYTES)
            raise ValueError(
                f"max_bytes={self.max_bytes} is too small for one tree of two leaves for each of {n_outputs} "
                f"outputs; use at least {least}."
            )
        return list(found)


@dataclass(frozen=True)
class Search:
    """Selects the size of trees and the ridge on validation samples."""

    fitting: Problem
    validation: Problem
    categorical: Mask
    family: Family
    n_threads: int

    def best(self, budget: Budget, size: Callable[[Student], int]) -> tuple[Student, float, int]:
        """Return the student with the lowest divergence on validation samples, its ridge and its leaves per tree."""
        found = [self._grown(budget, size, *pair) for pair in budget.candidates(len(self.fitting.target))]
        return min(found, key=lambda one: self._divergence(one[0]))

    def _grown(
        self, budget: Budget, size: Callable[[Student], int], n_rounds: int, leaves: int
    ) -> tuple[Student, float, int]:
        settings = Settings(n_rounds, leaves)
        student, fit = grow(self.fitting, self.categorical, self.family, settings, self.n_threads)
        if budget.max_bytes is not None and size(student) > budget.max_bytes:
            while student.n_rounds > 1 and size(student) > budget.max_bytes:
                student = student.truncated(student.n_rounds - 1)
            return student, settings.ridge, leaves
        return *select_ridge(student, fit, _RIDGES, self.validation, self.family), leaves

    def _divergence(self, student: Student) -> float:
        return float(self.family.divergence(student.scores(self.validation.X), self.validation.target).mean())
