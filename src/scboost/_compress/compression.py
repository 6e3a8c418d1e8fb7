"""Any model becomes a few trees: the steps of :func:`scboost.compress`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from scboost._compress.data import FEW_TREES, Given, ask_teacher, split_samples
from scboost._compress.families import Family
from scboost._compress.fitted import file_size, fitted_model
from scboost._compress.grower import Settings
from scboost._compress.growth import grow, select_ridge
from scboost._compress.measures import measure
from scboost._compress.result import Compressed
from scboost._compress.samples import Samples
from scboost._compress.student import Problem, Student
from scboost._compress.teachers import Teacher, read_teacher
from scboost._compress.types import Float64, Mask
from scboost._model.fitted import FittedModel, HasFittedModel

_RIDGES = (1.0, 3.0, 10.0)
_FEWEST_SAMPLES = 20
_TREE_BYTES, _NODE_BYTES = 360, 29  # of the file of a compressed model, for trees without categories
_ENOUGH_LEAVES, _ENOUGH_TREES = 16, 10
_LEAVES, _MORE_LEAVES = 64, 96  # of up to FEW_TREES, of more
_TEACHER_SHARE, _LEAST_BYTES = 10, 10_000


@dataclass(frozen=True)
class Options:
    """Arguments of :func:`scboost.compress` by name."""

    max_trees: int
    max_leaves: int | str
    max_bytes: int | str | None
    confidence: float
    X_certify: Any
    y_certify: Any
    certify_fraction: float
    X_synthetic: Any
    n_synthetic: int | str
    link: str
    qid: Any = None
    qid_certify: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.confidence, Real) or not 0.5 <= self.confidence < 1:
            raise ValueError(f"confidence={self.confidence!r} must be at least 0.5 and below 1, such as 0.95.")
        if not isinstance(self.certify_fraction, Real) or not 0 < self.certify_fraction < 1:
            raise ValueError(f"certify_fraction={self.certify_fraction!r} must be between 0 and 1.")
        if self.n_synthetic != "auto" and (not isinstance(self.n_synthetic, Integral) or self.n_synthetic < 0):
            raise ValueError(f"n_synthetic={self.n_synthetic!r} must be 'auto' or an integer of at least 0.")
        if self.X_certify is None and self.y_certify is not None:
            raise ValueError("y_certify was given without X_certify.")
        if self.X_certify is None and self.qid_certify is not None:
            raise ValueError("qid_certify was given without X_certify.")


@dataclass(frozen=True)
class Grown:
    """A compressed model, and the raw scores of smaller ones on the samples for the certificate.

    Attributes
    ----------
    result : Compressed
        Its ``model`` is a FittedModel.
    teacher : Teacher
        The model that was compressed.
    scores : callable
        ``scores(n_trees)`` returns raw scores of shape (K, n).
    """

    result: Compressed[FittedModel]
    teacher: Teacher
    scores: Callable[[int], Float64]


def compress_model(model: object, X: Any, y: Any, options: Options, seed: int, n_threads: int) -> Grown:
    """Compress a model.

    Parameters
    ----------
    model, X, y, options
        As for :func:`scboost.compress`.
    seed : int
        Of everything random.
    n_threads : int
        Threads that grow trees; 0 for all.
    """
    fitted = model.__fitted_model__() if isinstance(model, HasFittedModel) else None
    budget = Budget(options.max_trees, _max_leaves(options), _max_bytes(options.max_bytes, fitted))
    samples = Samples.of(X, None if fitted is None else fitted.encoder)
    if len(samples) < _FEWEST_SAMPLES:
        raise ValueError(f"X has {len(samples)} samples; compress needs at least {_FEWEST_SAMPLES}.")
    labels = y if y is not None else options.y_certify
    teacher = read_teacher(model, samples.take(np.arange(2)).X, labels, options.link, n_threads)
    rng = np.random.default_rng(seed)
    given = Given(y, options.qid, options.X_certify, options.y_certify, options.qid_certify)
    data = split_samples(samples, given, options.certify_fraction, teacher, rng)
    fitting, validation, unit, n_drawn = ask_teacher(
        data, teacher, options.X_synthetic, options.n_synthetic, options.max_trees, rng
    )

    search = Search(fitting, validation, samples.categorical, teacher.family, n_threads)

    def fitted_of(student: Student) -> FittedModel:
        return fitted_model(student, unit.scale, teacher, samples.encoder)

    n_rounds, leaves = budget.shape(len(fitting.target), file_size(fitted_of(Student.empty(len(fitting.target)))))

    def cut(grown: Student) -> Student:
        return grown if budget.max_bytes is None else budget.cut(grown, fitted_of)[0]

    student, ridge = search.student(n_rounds, leaves, cut)
    student, small, n_bytes = budget.cut(student, fitted_of)  # other leaf values may take more digits
    curve, certificate, teacher_loss, fidelity = measure(
        student, unit, teacher, data.certifying, (fitting, validation), options.confidence
    )
    result = Compressed(
        model=small,
        n_trees=student.n_rounds,
        n_leaves=sum(student.sizes),
        n_bytes=n_bytes,
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

    def scores(n_trees: int) -> Float64:
        return student.scores(data.certifying.X, n_trees) * unit.scale[:, None]

    return Grown(result, teacher, scores)


def _max_leaves(options: Options) -> int:
    """Return the largest number of leaves of a tree: with "auto", more of them for models of many trees."""
    asked, n_trees = options.max_leaves, options.max_trees
    if asked != "auto":
        if isinstance(asked, str):
            raise ValueError(f"max_leaves={asked!r} must be 'auto' or an integer of at least 2.")
        return asked
    return _MORE_LEAVES if isinstance(n_trees, Integral) and n_trees > FEW_TREES else _LEAVES


def _max_bytes(asked: int | str | None, fitted: FittedModel | None) -> int | None:
    """Return the largest size of the model file: with "auto", a tenth of a teacher of scboost's."""
    if asked != "auto":
        if isinstance(asked, str):
            raise ValueError(f"max_bytes={asked!r} must be 'auto', None or an integer of at least 1000.")
        return asked
    if fitted is None or fitted.has_other_learners:
        return None
    size = file_size(replace(fitted, baseline={}))
    kept = file_size(fitted) - size if fitted.baseline else 0  # the baseline of a survival model is kept as it is
    return max(size // _TEACHER_SHARE, _LEAST_BYTES) + kept


@dataclass(frozen=True)
class Budget:
    """Largest size of the student.

    Attributes
    ----------
    max_trees, max_leaves : int
        Of rounds, and of leaves in a tree.
    max_bytes : int or None
        Of the model file.
    """

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

    def shape(self, n_outputs: int, empty: int) -> tuple[int, int]:
        """Return rounds and leaves of a tree that fit.

        Of models of equal size, those with trees of about 16 leaves come nearest to the teacher, and a model should
        not have fewer than ten trees for it.

        Parameters
        ----------
        n_outputs : int
            K.
        empty : int
            Bytes of a model file without trees.
        """
        if self.max_bytes is None:
            return self.max_trees, self.max_leaves
        room = (self.max_bytes - empty) / n_outputs
        enough = min(_ENOUGH_LEAVES, self.max_leaves)
        n_rounds = int(room / _tree_bytes(enough))
        n_rounds = min(max(n_rounds, _ENOUGH_TREES), self.max_trees)
        while n_rounds and (leaves := _leaves_of(room / n_rounds)) < 2:
            n_rounds -= 1
        if not n_rounds:
            least = empty + n_outputs * _tree_bytes(2)
            raise ValueError(
                f"max_bytes={self.max_bytes} is too small for one tree of two leaves for each of {n_outputs} "
                f"outputs; use at least {least}."
            )
        return n_rounds, min(leaves, self.max_leaves)

    def cut(self, student: Student, fitted_of: Callable[[Student], FittedModel]) -> tuple[Student, FittedModel, int]:
        """Drop the last rounds of a student that do not fit, because sets of categories take more than reckoned.

        Parameters
        ----------
        student : Student
            All its rounds have about the same size.
        fitted_of : callable
            Makes the fitted model, whose file counts.

        Returns
        -------
        student : Student
            The same one if all its rounds fit.
        fitted : FittedModel
        size : int
            Bytes of its file.
        """
        cut, kept = student, student.n_rounds
        while True:
            fitted = fitted_of(cut)
            size = file_size(fitted)
            if self.max_bytes is None or size <= self.max_bytes or kept == 1:
                return cut, fitted, size
            kept = max(min(kept * self.max_bytes // size, kept - 1), 1)
            cut = student.truncated(kept)


def _tree_bytes(n_leaves: int) -> int:
    return _TREE_BYTES + _NODE_BYTES * (2 * n_leaves - 1)


def _leaves_of(n_bytes: float) -> int:
    return int((n_bytes - _TREE_BYTES) / _NODE_BYTES + 1) // 2


@dataclass(frozen=True)
class Search:
    """Grows a student and selects the ridge on validation samples."""

    fitting: Problem
    validation: Problem
    categorical: Mask
    family: Family
    n_threads: int

    def student(
        self, n_rounds: int, max_leaves: int, cut: Callable[[Student], Student] = lambda grown: grown
    ) -> tuple[Student, float]:
        """Return a student of at most this size, and its ridge.

        Parameters
        ----------
        n_rounds, max_leaves : int
            Rounds that are grown, and leaves of a tree.
        cut : callable, optional
            May drop the last rounds of the grown student; leaf values are fitted without their trees.
        """
        settings = Settings.of(self.fitting, self.family, n_rounds, max_leaves)
        student, fit = grow(self.fitting, self.categorical, self.family, settings, self.n_threads, self.validation)
        grown, student = student, cut(student)
        if student is not grown:
            fit = fit.of_trees(student.leaves(self.fitting.X), student.history[-1])
        return select_ridge(student, fit, _RIDGES, self.validation, self.family)
