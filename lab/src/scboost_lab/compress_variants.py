"""Alternatives of ``compress`` that are not arguments of it, for ``scboost-lab compress_study``."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict

from scboost._compress import backfitting, compression, grower, growth
from scboost._compress.families import Family
from scboost._compress.leaves import JointFit
from scboost._compress.samples import Samples
from scboost._compress.student import Problem, Student
from scboost._compress.synthetic import Munge

SELECTED = "selected"
LABEL_SHARES = (0.0, 0.1, 0.2, 0.4, 0.7)
N_TEACHER_FOLDS = 5

Array = NDArray[Any]
ByRow = dict[bytes, NDArray[np.float64]]

INTERNAL = ("ridge", "real_weight", "backfitted", "passes", "bins", "label_share")
VARIANTS_20: dict[str, Mapping[str, Any]] = {
    "default": {},
    "without backfitting": {"backfitted": 0},
    "backfitting, 2 passes": {"backfitted": 20},
    "backfitting, 4 passes": {"backfitted": 20, "passes": 4},
    "label refit, weight of labels 0.2": {"label_share": 0.2},
    "label refit, selected weight": {"label_share": SELECTED},
    "out-of-fold scores": {"out_of_fold": True},
    "64 thresholds per feature (default 256)": {"bins": 64},
}
VARIANTS_50: dict[str, Mapping[str, Any]] = {
    "default": {},
    "backfitting, 2 passes": {"backfitted": 50},
    "ridge 3 during growth (default of classifiers)": {"ridge": 3.0},
    "ridge 30 during growth (default of regressors)": {"ridge": 30.0},
    "64 leaves (default 96)": {"max_leaves": 64},
    "128 leaves (default 96)": {"max_leaves": 128},
    "100,000 synthetic samples": {"n_synthetic": 100_000},
    "swap probability 0.25 (default 0.5)": {"munge": {"swap_probability": 0.25}},
    "20 neighbors (default 50)": {"munge": {"n_neighbors": 20}},
    "real samples weighted by 4": {"real_weight": 4.0},
    "64 thresholds per feature (default 256)": {"bins": 64},
}
OF_LABELS = tuple(name for name, params in VARIANTS_20.items() if "label_share" in params)


@contextmanager
def changed(params: Mapping[str, Any], labels: Callable[[], ByRow]) -> Iterator[None]:
    """Change settings of ``compress`` that are not arguments of it.

    Parameters
    ----------
    params : mapping
        Values of `INTERNAL`: the ridge during growth, the weight of real samples, the maximum number of rounds that are
        backfitted, the number of backfitting passes, that of thresholds per feature, and the share of labels in a final
        refit of the leaf values.
    labels : callable
        Returns the labels of the samples, see :func:`by_row`.
    """
    constants: list[tuple[object, str, object]] = []
    if "ridge" in params:
        constants.append((grower, "_RIDGE", dict.fromkeys((True, False), params["ridge"])))
    if "real_weight" in params:
        constants.append((Problem, "weight", _weighted(params["real_weight"])))
    if "backfitted" in params:
        constants.append((growth, "_BACKFITTED_ROUNDS", dict.fromkeys((True, False), params["backfitted"])))
    if "passes" in params:
        constants.append((backfitting, "_PASSES", params["passes"]))
    if "bins" in params:
        constants.append((grower, "_BINS", params["bins"]))
    if "label_share" in params:
        constants.append((compression, "Search", _label_search(labels(), params["label_share"])))
    with ExitStack() as stack:
        for owner, name, value in constants:
            stack.enter_context(patch.object(owner, name, value))
        yield


def _weighted(real_weight: float) -> Callable[[Problem, Family], NDArray[np.float64]]:
    weight = Problem.weight

    def weighted(problem: Problem, family: Family) -> NDArray[np.float64]:
        found = weight(problem, family)
        found[: problem.n_real] *= real_weight
        return found

    return weighted


def _label_search(labels: ByRow, share: float | str) -> type[compression.Search]:
    """Return a search whose last step is a refit of all leaf values on a mixture of the teacher's scores and labels."""

    class LabelSearch(compression.Search):
        def student(self, *size: Any) -> tuple[Student, float]:
            select = growth.select_ridge

            def refitted(student: Student, fit: JointFit, *rest: Any) -> tuple[Student, float]:
                student, ridge = select(student, fit, *rest)
                refit_on_labels(student, fit, self.fitting, self.validation, labels, share)
                return student, ridge

            with patch.object(compression, "select_ridge", refitted):
                return super().student(*size)

    return LabelSearch


def refit_on_labels(
    student: Student, fit: JointFit, fitting: Problem, validation: Problem, labels: ByRow, share: float | str
) -> None:
    """Refit leaf values of two classes on a mixture of the teacher's probabilities and the labels of real samples.

    A selected share has the lowest log-loss on the labels of the validation samples.
    """
    real = fitting.n_real
    y, y_validation = (
        np.array([labels[row.tobytes()][0] for row in problem.X[: problem.n_real]]) for problem in (fitting, validation)
    )
    teacher = fit._mean  # noqa: SLF001 - the target under study
    candidates = []
    for a in LABEL_SHARES if isinstance(share, str) else (share,):
        mean = teacher.copy()
        mean[0, :real] = (1 - a) * mean[0, :real] + a * y
        fit._mean = mean  # noqa: SLF001 - as above
        fit.refit(1e-2, 3)
        student.history[-1] = fit.leaf_values
        F = student.scores(validation.X)[0, : validation.n_real]
        candidates.append((float((np.logaddexp(0, F) - y_validation * F).mean()), fit.leaf_values))
    student.history[-1] = min(candidates, key=lambda candidate: candidate[0])[1]


def by_row(X: Any, encoder: Any, values: Array) -> ByRow:
    """Return means of values, of shape (K, n), of equal samples, by the bytes of the sample as numbers.

    Parameters
    ----------
    X : table
        Samples.
    encoder : Encoder or None
        Of the features; learned from X if None.
    values : ndarray of shape (K, n) or (n,)
    """
    found = defaultdict(list)
    for row, value in zip(Samples.of(X, encoder).matrix.astype(np.float32), np.atleast_2d(values).T, strict=True):
        found[row.tobytes()].append(value)
    return {row: np.mean(same, axis=0, dtype=np.float64) for row, same in found.items()}


def out_of_fold(model: Any, X: Any, y: Array, kind: str, seed: int) -> tuple[Callable[[Any], Array], str]:
    """Return a teacher whose raw score of a training sample is from a model fitted without it, and its link.

    Elsewhere it is the model itself.
    """
    classes = kind != "regression"
    splitter = (StratifiedKFold if classes else KFold)(N_TEACHER_FOLDS, shuffle=True, random_state=seed)
    link = {"regression": "identity", "multiclass": "softmax"}.get(kind, "logit")

    def raw(prediction: Array) -> Array:
        if link == "identity":
            return np.atleast_2d(prediction)
        p = np.clip(prediction, 1e-6, 1 - 1e-6).T
        return special.logit(p[1:]) if link == "logit" else np.log(p)

    method = "predict_proba" if classes else "predict"
    unseen = raw(cross_val_predict(clone(model), X, y, cv=splitter, method=method))
    encoder = model.__fitted_model__().encoder
    known = by_row(X, encoder, unseen)

    def teacher(samples: Any) -> Array:
        F = raw(getattr(model, method)(samples)).T
        for i, row in enumerate(Samples.of(samples, encoder).matrix.astype(np.float32)):
            F[i] = known.get(row.tobytes(), F[i])
        return F

    return teacher, link


def generator(X: Any, parameters: Mapping[str, Any]) -> Callable[[int, np.random.Generator], Any]:
    """Return a generator of synthetic samples with other parameters than those of ``compress``."""
    samples = Samples.of(X)
    munge = Munge(samples.matrix, samples.categorical, **parameters)
    return lambda n, rng: samples.joined(munge.draw(n, rng)).X
