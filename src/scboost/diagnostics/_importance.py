"""Feature importance: that of the library, and permutation importance on held-out samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray, IntArray
from scboost.diagnostics._predictions import predict_from_margin
from scboost.diagnostics._tree_matrix import EnsembleReader, column_names, take_samples

_MIN_SAMPLES, _MAX_SAMPLES = 200, 1_000
_MAX_VALUES = 10_000_000  # tree predictions over all permutations, and values of a batch of copies
MAX_FEATURES = 20
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
    loss_name : str
        Name of the loss.
    n_features : int
        Number of features of the model.
    """

    names: list[str]
    native: FloatArray | None
    permutation: FloatArray | None
    permutation_std: FloatArray | None
    loss_name: str
    n_features: int


def compute_importance(
    model: object, X: Any, y: npt.NDArray[Any] | None, reader: EnsembleReader, rng: np.random.Generator
) -> Importance:
    """Compute the importance of at most 20 features, permutation importance only if y is given."""
    d = reader.n_features
    names = reader.feature_names or column_names(X) or [f"feature {j}" for j in range(d)]
    native = _native_importance(model, names)
    ranked = np.arange(d) if native is None else np.argsort(-native, kind="stable")
    shown = ranked[:MAX_FEATURES] if native is not None or d <= MAX_FEATURES else ranked[:0]
    mean = std = None
    loss_name = ""
    permute = _column_permuter(X)
    if y is not None and permute is not None and len(shown):
        loss_name, increases = _permutation_increases(X, y, reader, shown, permute, rng)
        order = np.argsort(-increases.mean(axis=1), kind="stable")
        shown, increases = shown[order], increases[order]
        mean, std = increases.mean(axis=1), increases.std(axis=1)
    return Importance([names[j] for j in shown], None if native is None else native[shown], mean, std, loss_name, d)


Permute = Callable[[Any, int, npt.NDArray[np.intp]], Any]
"""``permute(X, j, order)`` returns X with column j in another order; X is a copy that may be modified."""


def _permutation_increases(
    X: Any, y: npt.NDArray[Any], reader: EnsembleReader, features: IntArray, permute: Permute, rng: np.random.Generator
) -> tuple[str, FloatArray]:
    """Return the name of the loss and its increases, of shape (n_features, n_repeats).

    Copies of the samples are predicted many at a time: wide tables take long to encode whatever their number of rows.
    """
    affordable = _MAX_VALUES // (len(features) * _REPEATS * len(reader.column_weights))
    rows = rng.permutation(len(y))[: int(np.clip(affordable, _MIN_SAMPLES, _MAX_SAMPLES))]
    n = len(rows)
    X_some, y_some = take_samples(X, rows), y[rows]

    def evaluate(X: Any, n_copies: int) -> tuple[str, FloatArray]:
        trees = reader.matrix(X, np.float32, n * n_copies)
        predictions = predict_from_margin(trees, trees.margin(), np.tile(y_some, n_copies))
        return predictions.loss_name, predictions.pointwise_loss().reshape(n_copies, n).mean(axis=1)

    copies = [(int(j), rng.permutation(n)) for j in features for _ in range(_REPEATS)]
    at_once = max(1, _MAX_VALUES // (n * max(reader.n_features, len(reader.column_weights))))
    losses: list[float] = []
    for first in range(0, len(copies), at_once):
        batch = copies[first : first + at_once]
        permuted = take_samples(X_some, np.tile(np.arange(n), len(batch)))
        for j in {feature for feature, _ in batch}:
            same = np.arange(n)
            orders = [c * n + (order if feature == j else same) for c, (feature, order) in enumerate(batch)]
            permuted = permute(permuted, j, np.concatenate(orders))
        losses.extend(evaluate(permuted, len(batch))[1])
    loss_name, before = evaluate(X_some, 1)
    return loss_name, np.reshape(losses, (len(features), _REPEATS)) - before


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


def _column_permuter(X: Any) -> Permute | None:
    """Return a function that permutes a column of data like X; None for sparse matrices and unknown types."""
    if isinstance(X, np.ndarray):
        return _permute_array
    if hasattr(X, "iloc"):  # pandas, whose column names may repeat
        return _permute_pandas
    return _permute_table if nw.dependencies.is_into_dataframe(X) else None


def _permute_array(X: Any, j: int, order: npt.NDArray[np.intp]) -> Any:
    X[:, j] = X[order, j]
    return X


def _permute_pandas(X: Any, j: int, order: npt.NDArray[np.intp]) -> Any:
    X.isetitem(j, X.iloc[order, j].array)
    return X


def _permute_table(X: Any, j: int, order: npt.NDArray[np.intp]) -> Any:
    table = nw.from_native(X, eager_only=True)
    name = table.columns[j]
    return table.with_columns(table[name][order].alias(name)).to_native()
