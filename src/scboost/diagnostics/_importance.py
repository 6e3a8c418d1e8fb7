"""Feature importance: that of the library, and permutation importance on held-out samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray, IntArray
from scboost.diagnostics._columns import can_compose, compose
from scboost.diagnostics._predictions import Predictions
from scboost.diagnostics._subject import Subject
from scboost.diagnostics._tree_matrix import take_samples

_MIN_SAMPLES, _MAX_SAMPLES = 200, 1_000
_MAX_VALUES = 10_000_000  # tree predictions over all permutations, and values of a batch of copies
MAX_FEATURES = 20
_MAX_RANKED = 500  # features that are ranked by permutation where the library has no importance
_REPEATS = 3


@dataclass(frozen=True)
class Importance:
    """Importance of the features.

    Attributes
    ----------
    names : list of str
        Feature names, the most important first.
    native : ndarray of shape (n_shown,) or None
        Importance computed by the library, as shares; None if it has none.
    permutation : ndarray of shape (n_shown,) or None
        Increase of the loss when the feature is permuted; None if it was not computed.
    permutation_std : ndarray of shape (n_shown,) or None
        Standard deviation over the repeats.
    permutation_error : ndarray of shape (n_shown,) or None
        Standard error of the increase over the samples: 1.96 of them on either side are the 95 % confidence interval.
    loss_name : str
        Name of the loss.
    n_features : int
        Number of features of the model.
    positions : list of int
        Positions of the features in X.
    """

    names: list[str]
    native: FloatArray | None
    permutation: FloatArray | None
    permutation_std: FloatArray | None
    permutation_error: FloatArray | None
    loss_name: str
    n_features: int
    positions: list[int]


def compute_importance(subject: Subject, X: Any, y: npt.NDArray[Any] | None, rng: np.random.Generator) -> Importance:
    """Compute the importance of at most 20 features, permutation importance only if y is given."""
    names = subject.feature_names(X)
    d = len(names)
    native = None if subject.steps else _native_importance(subject.ensemble, names)
    can_permute = y is not None and can_compose(X)
    shown: IntArray = np.arange(d)
    if native is not None:
        shown = np.argsort(-native, kind="stable")
    elif d > MAX_FEATURES:
        shown = _rank(subject, X, y, rng) if y is not None and can_permute and d <= _MAX_RANKED else shown[:0]
    shown = shown[:MAX_FEATURES]
    mean = std = error = None
    loss_name = ""
    if y is not None and can_permute and len(shown):
        loss_name, increases = _permutation_increases(subject, X, y, shown, _REPEATS, rng)
        by_repeat = increases.mean(axis=2)
        order = np.argsort(-by_repeat.mean(axis=1), kind="stable")
        shown, by_repeat, increases = shown[order], by_repeat[order], increases[order]
        mean, std = by_repeat.mean(axis=1), by_repeat.std(axis=1)
        error = increases.mean(axis=1).std(axis=1) / np.sqrt(increases.shape[2])
    return Importance(
        [names[j] for j in shown],
        None if native is None else native[shown],
        mean,
        std,
        error,
        loss_name,
        d,
        [int(j) for j in shown],
    )


def _rank(subject: Subject, X: Any, y: npt.NDArray[Any], rng: np.random.Generator) -> IntArray:
    """Return all features, the most important first by a single permutation each."""
    _, increases = _permutation_increases(subject, X, y, np.arange(X.shape[1]), 1, rng)
    return np.argsort(-increases.mean(axis=(1, 2)), kind="stable")


def _permutation_increases(
    subject: Subject, X: Any, y: npt.NDArray[Any], features: IntArray, repeats: int, rng: np.random.Generator
) -> tuple[str, FloatArray]:
    """Return the name of the loss and its increases, of shape (n_features, n_repeats, n_samples).

    Copies of the samples are predicted many at a time: wide tables take long to encode whatever their number of rows.
    """
    n_trees = len(subject.reader.column_weights)
    affordable = _MAX_VALUES // (len(features) * repeats * n_trees)
    rows = rng.permutation(len(y))[: int(np.clip(affordable, _MIN_SAMPLES, _MAX_SAMPLES))]
    n = len(rows)
    X_some, target = take_samples(X, rows), subject.target(y[rows])

    def evaluate(X: Any, n_copies: int) -> tuple[str, FloatArray]:
        predictions = Predictions.of(np.tile(target, n_copies), subject.outcome(X))
        return predictions.loss_name, predictions.pointwise_loss().reshape(n_copies, n)

    copies = [(int(j), rng.permutation(n)) for j in features for _ in range(repeats)]
    at_once = max(1, _MAX_VALUES // (n * max(len(subject.feature_names(X)), n_trees)))
    same = np.arange(n)
    losses: list[FloatArray] = []
    for first in range(0, len(copies), at_once):
        batch = copies[first : first + at_once]
        sources = {
            j: np.concatenate([order if feature == j else same for feature, order in batch])
            for j in {feature for feature, _ in batch}
        }
        losses.append(evaluate(compose(X_some, np.tile(same, len(batch)), sources), len(batch))[1])
    loss_name, before = evaluate(X_some, 1)
    return loss_name, np.reshape(np.concatenate(losses), (len(features), repeats, n)) - before


def _native_importance(model: object, names: list[str]) -> FloatArray | None:
    """Return the importance computed by the library as shares; None if it has none."""
    if hasattr(model, "get_score"):  # xgboost.Booster
        gains = model.get_score(importance_type="total_gain")
        keys = names if getattr(model, "feature_names", None) is not None else [f"f{j}" for j in range(len(names))]
        values = np.array([gains.get(key, 0.0) for key in keys])
    elif hasattr(model, "feature_importance"):  # lightgbm.Booster
        values = np.asarray(model.feature_importance(importance_type="gain"), np.float64)
    else:
        values = np.asarray(getattr(model, "feature_importances_", ()), np.float64)
    if values.shape != (len(names),) or not np.isfinite(values).all() or values.sum() <= 0:
        return None
    return np.asarray(values / values.sum())
