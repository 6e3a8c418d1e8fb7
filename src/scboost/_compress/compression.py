"""``compress``: any model becomes a few trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from scboost._compress.data import ask_teacher, split_samples
from scboost._compress.estimator import estimator_of, fitted_model, native_size
from scboost._compress.families import Family
from scboost._compress.growth import Problem, Settings, Student, grow, select_ridge
from scboost._compress.measures import measure
from scboost._compress.result import Compressed
from scboost._compress.samples import Generator, Samples
from scboost._compress.teachers import read_teacher
from scboost._compress.types import Mask
from scboost.estimators import SCBoostClassifier, SCBoostRegressor
from scboost.estimators.parameters import thread_count

_RIDGES = (0.3, 1.0, 3.0, 10.0)
_FEWEST_SAMPLES = 20
_MOST_CANDIDATES = 3
_MODEL_BYTES, _TREE_BYTES, _NODE_BYTES = 1_000, 800, 36  # of a native model in UBJSON, about; the size is measured


def compress(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    max_trees: int = 20,
    max_leaves: int = 64,
    max_bytes: int | None = None,
    confidence: float = 0.95,
    X_certify: Any = None,
    y_certify: Any = None,
    certify_fraction: float = 0.1,
    X_synthetic: Any | Generator = None,
    n_synthetic: int | Literal["auto"] = "auto",
    link: Literal["auto", "identity", "log", "logit", "softmax"] = "auto",
    library: Literal["scboost", "xgboost"] = "scboost",
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Compressed:
    """Compress a fitted model of any library into a few trees, with a certificate of how little is lost.

    The teacher's raw score is a function without noise that can be evaluated anywhere. It is evaluated on the samples
    and on synthetic samples near them, and a few trees are fitted to it. Each tree is grown on the residual that is
    orthogonal to all leaves of the trees before it, then the leaf values of all trees are refitted jointly by ridge
    regression. No tree repeats what the others say.

    Parameters
    ----------
    model : object
        The teacher: a fitted model of scboost, XGBoost, LightGBM, CatBoost or scikit-learn, any other estimator with
        ``predict_proba``, ``decision_function`` or ``predict``, or a function that returns raw scores (see `link`).
    X : array or table of shape (n_samples, n_features)
        Samples in the form that the model takes, such as its training samples. Labels are not needed.
    y : array-like of shape (n_samples,), optional
        Labels or targets. Used to report losses, not for fitting.
    max_trees : int, default=20
        Largest number of trees. With several classes: of trees for each class.
    max_leaves : int, default=64
        Largest number of leaves of a tree. More leaves follow the teacher more closely at equal number of trees.
    max_bytes : int, optional
        Largest size of the native model in UBJSON. The number of trees and leaves is then selected on validation
        samples among combinations that fit.
    confidence : float, default=0.95
        Confidence of the bounds in the certificate.
    X_certify, y_certify : optional
        Samples for the certificate that neither the teacher nor the student has been fitted on. By default, a random
        part of X is held out, and the certificate is about samples that the teacher may know.
    certify_fraction : float, default=0.1
        Share of X that is held out, if ``X_certify`` is not given.
    X_synthetic : array, table or callable, optional
        Synthetic samples like X, or a function ``X_synthetic(n_samples, rng)`` that draws them, in place of the
        built-in generator: a sample in which about half of the values are replaced by those of a near neighbour.
    n_synthetic : int or "auto", default="auto"
        Number of synthetic samples; "auto" takes eight for each sample, but at least 20,000 and at most 100,000.
    link : {"auto", "identity", "log", "logit", "softmax"}, default="auto"
        How raw scores become predictions. Needed if `model` is a function: it returns the log-odds of the second class
        ("logit"), one score for each class ("softmax"), predictions ("identity") or their logarithms ("log").
    library : {"scboost", "xgboost"}, default="scboost"
        Whether ``model`` of the result is one of scboost's estimators, or an ``XGBClassifier`` or ``XGBRegressor``.
    n_jobs : int or None, default=None
        Number of threads that grow trees; None for all cores.
    random_state : int, RandomState or None, default=None
        Seed of the held-out part and of the synthetic samples.

    Returns
    -------
    Compressed
        With the fields ``model``, ``certificate``, ``curve``, ``fidelity``, ``loss`` and others.

    Examples
    --------
    >>> import scboost
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = make_classification(2000, 8, n_informative=6, random_state=0)
    >>> forest = RandomForestClassifier(n_estimators=100, random_state=0).fit(X[:1000], y[:1000])
    >>> small = scboost.compress(forest, X[:1000], max_trees=10, X_certify=X[1000:], random_state=0)
    >>> small.n_trees
    10
    >>> print(small.certificate)
    At least 9... % of samples like these get the same label (95 % confidence).
    """
    budget = Budget(max_trees, max_leaves, max_bytes)
    _check_arguments(confidence, certify_fraction, n_synthetic, library)
    own = isinstance(model, SCBoostClassifier | SCBoostRegressor)
    samples = Samples.of(X, model.__fitted_model__().encoder if own else None)
    if len(samples) < _FEWEST_SAMPLES:
        raise ValueError(f"X has {len(samples)} samples; compress needs at least {_FEWEST_SAMPLES}.")
    if X_certify is None and y_certify is not None:
        raise ValueError("y_certify was given without X_certify.")
    teacher = read_teacher(model, samples.take(np.arange(2)).X, y if y is not None else y_certify, link)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    data = split_samples(samples, y, (X_certify, y_certify), certify_fraction, teacher, rng)
    fitting, validation, unit, n_drawn = ask_teacher(data, teacher, X_synthetic, n_synthetic, rng)

    def size(student: Student) -> int:
        return native_size(fitted_model(student, unit.scale, teacher, samples.encoder))

    search = Search(fitting, validation, samples.categorical, teacher.family, thread_count(n_jobs))
    student, ridge, leaves = search.best(budget, size)
    fitted = fitted_model(student, unit.scale, teacher, samples.encoder)
    params = {"random_state": random_state if isinstance(random_state, Integral) else None, "n_jobs": n_jobs}
    small = estimator_of(fitted, teacher, leaves, params)
    curve, certificate, teacher_loss, fidelity = measure(student, unit, teacher, data.certifying, confidence)
    return Compressed(
        model=small.to_xgboost() if library == "xgboost" else small,
        n_trees=student.n_rounds,
        n_leaves=sum(student.sizes),
        n_bytes=native_size(fitted),
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


def _check_arguments(confidence: float, fraction: float, n_synthetic: Any, library: str) -> None:
    if not isinstance(confidence, Real) or not 0.5 <= confidence < 1:
        raise ValueError(f"confidence={confidence!r} must be at least 0.5 and below 1, such as 0.95.")
    if not isinstance(fraction, Real) or not 0 < fraction < 1:
        raise ValueError(f"certify_fraction={fraction!r} must be between 0 and 1.")
    if n_synthetic != "auto" and (not isinstance(n_synthetic, Integral) or n_synthetic < 0):
        raise ValueError(f"n_synthetic={n_synthetic!r} must be 'auto' or an integer of at least 0.")
    if library not in {"scboost", "xgboost"}:
        raise ValueError(f"library={library!r} must be 'scboost' or 'xgboost'.")


@dataclass(frozen=True)
class Search:
    """Selects the size of trees and the ridge on validation samples."""

    fitting: Problem
    validation: Problem
    categorical: Mask
    family: Family
    n_jobs: int

    def best(self, budget: Budget, size: Callable[[Student], int]) -> tuple[Student, float, int]:
        """Return the student with the lowest divergence on validation samples, its ridge and its leaves per tree."""
        found = [self._grown(budget, size, *pair) for pair in budget.candidates(len(self.fitting.target))]
        return min(found, key=lambda one: self._divergence(one[0]))

    def _grown(
        self, budget: Budget, size: Callable[[Student], int], n_rounds: int, leaves: int
    ) -> tuple[Student, float, int]:
        settings = Settings(n_rounds, leaves)
        student, fit = grow(self.fitting, self.categorical, self.family, settings, self.n_jobs)
        if budget.max_bytes is not None and size(student) > budget.max_bytes:
            while student.n_rounds > 1 and size(student) > budget.max_bytes:
                student = student.truncated(student.n_rounds - 1)
            return student, settings.ridge, leaves
        return *select_ridge(student, fit, _RIDGES, self.validation, self.family), leaves

    def _divergence(self, student: Student) -> float:
        return float(self.family.divergence(student.scores(self.validation.X), self.validation.target).mean())
