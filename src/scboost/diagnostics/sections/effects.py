"""Partial dependence: how the mean prediction changes with one feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scboost._arrays import FloatArray, IntArray
from scboost.diagnostics._columns import Feature, can_compose, compose, read_feature
from scboost.diagnostics._subject import Subject
from scboost.diagnostics._tree_matrix import take_samples

_SAMPLES, _GRID, _MOST_CATEGORIES = 300, 20, 12
MAX_EFFECTS, MAX_EFFECT_CLASSES = 6, 4
"""Features and classes of the charts at most."""
_MAX_VALUES = 20_000_000  # tree predictions over all features


@dataclass(frozen=True)
class Effect:
    """Partial dependence of the prediction on one feature.

    Attributes
    ----------
    name, kind : str
        Feature, and whether it is "numeric" or "categorical".
    grid : list of str or ndarray of shape (n_grid,)
        Categories, or values.
    mean : ndarray of shape (n_outputs, n_grid)
        Mean prediction if all samples had this value: probabilities of the classes shown, or the predicted value.
    outputs : list of int
        Positions of the classes shown; [0] for regression.
    """

    name: str
    kind: str
    grid: list[str] | FloatArray
    mean: FloatArray
    outputs: list[int]


def compute_effects(
    subject: Subject, X: Any, features: Sequence[int], names: list[str], outputs: list[int], rng: np.random.Generator
) -> list[Effect]:
    """Return the partial dependence on some features; none for sparse matrices.

    The values of a feature are those of samples, so that every kind of feature is handled as the model reads it.
    """
    if not can_compose(X):
        return []
    affordable = _MAX_VALUES // (max(1, len(features)) * _GRID * len(subject.reader.column_weights))
    n = int(np.clip(affordable, 20, min(_SAMPLES, X.shape[0])))
    background = np.sort(rng.permutation(X.shape[0])[:n])
    effects = []
    for j in features:
        feature = read_feature(X, j)
        grid = _grid_samples(feature)
        if len(grid) < 2:
            continue
        rows = np.tile(np.arange(n), len(grid))
        some = take_samples(X, np.concatenate([background, grid]))
        found = subject.outcome(compose(some, rows, {j: np.repeat(np.arange(n, n + len(grid)), n)}))
        mean = np.stack([found.value(k).reshape(len(grid), n).mean(axis=1) for k in outputs])
        texts = [feature.text(i) for i in grid] if feature.categories else feature.data[grid]
        effects.append(Effect(names[j], feature.kind, texts, mean, outputs))
    return effects


def _grid_samples(feature: Feature) -> IntArray:
    """Return samples with the values of the grid: quantiles in increasing order, or the most frequent categories."""
    present = np.flatnonzero(~np.isnan(feature.data))
    if feature.kind == "other" or not len(present):
        return present[:0]
    values = feature.data[present]
    distinct, first, counts = np.unique(values, return_index=True, return_counts=True)
    if feature.categories:
        return present[first[np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]]]
    if len(distinct) > _GRID:
        order = np.argsort(values, kind="stable")
        places = np.linspace(0.01, 0.99, _GRID) * (len(values) - 1)
        chosen = order[places.round().astype(np.intp)]
        return present[chosen[np.unique(values[chosen], return_index=True)[1]]]
    return present[first]
