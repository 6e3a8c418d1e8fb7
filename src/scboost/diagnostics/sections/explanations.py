"""Explanations of single predictions by Shapley values, for every library and every kind of feature.

The value of a set of features is the mean prediction over background samples whose features in the set are replaced by
those of the sample. Shapley values are estimated over random orders of the features; forward and reversed orders are
paired, which reduces the variance. They always sum to the difference between the prediction and the mean prediction of
the background samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scboost._arrays import FloatArray, IntArray
from scboost.diagnostics._columns import can_compose, compose, read_feature
from scboost.diagnostics._predictions import Outcome, Predictions
from scboost.diagnostics._subject import Subject
from scboost.diagnostics._tree_matrix import take_samples

_WORST = 2
_PLACES = ("largest", "second largest")
_PAIRS = 24  # of orders
_MAX_FEATURES = 10  # all others are one player
_MAX_VALUES = 40_000_000  # tree predictions over all samples
OTHERS = "all other features"
"""Name of the features that are not explained one by one."""


@dataclass(frozen=True)
class Explanation:
    """Explanation of one prediction.

    Attributes
    ----------
    reason : str
        Why this sample was chosen.
    position : int
        Position among the samples used.
    output : int
        Position of the class whose probability is explained; 0 for regression.
    prediction, baseline : float
        Prediction of the sample, and mean prediction of the background samples.
    names, values : list of str
        Features and their values, the largest contribution first.
    contribution : ndarray of shape (n_features,)
        Shapley values; their sum is prediction - baseline.
    """

    reason: str
    position: int
    output: int
    prediction: float
    baseline: float
    names: list[str]
    values: list[str]
    contribution: FloatArray


@dataclass(frozen=True)
class Chosen:
    """A sample to be explained: its position, the output, and why it was chosen."""

    position: int
    output: int
    reason: str


def choose_samples(outcome: Outcome, predictions: Predictions | None, n_classes: int) -> list[Chosen]:
    """Choose samples that are worth an explanation: extreme and median predictions, and the largest losses.

    Parameters
    ----------
    outcome : Outcome
        Predictions of the samples.
    predictions : Predictions or None
        The same with targets; None without y.
    n_classes : int
        Number of classes; 0 for regression.

    Returns
    -------
    list of Chosen
        Different samples.
    """
    multiclass = n_classes > 2
    value = outcome.value(1 if n_classes == 2 else 0)
    if multiclass and outcome.probability is not None:
        value = outcome.probability.max(axis=1)
    order = np.argsort(value, kind="stable")
    found = {"highest": order[-1], "median": order[len(order) // 2], "lowest": order[0]}
    reasons = {int(i): f"{which} prediction" for which, i in found.items()}
    if predictions is not None:
        worst = np.argsort(-predictions.pointwise_loss(), kind="stable")[:_WORST]
        reasons = {**{int(i): f"{place} loss" for i, place in zip(worst, _PLACES, strict=False)}, **reasons}
    output = {i: int(outcome.predicted[i]) if multiclass else int(n_classes == 2) for i in reasons}
    return [Chosen(i, output[i], why) for i, why in reasons.items()]


def explain(
    subject: Subject,
    X: Any,
    chosen: Sequence[Chosen],
    features: Sequence[int],
    names: list[str],
    rng: np.random.Generator,
) -> list[Explanation]:
    """Return the explanations of some samples; none for sparse matrices.

    Parameters
    ----------
    subject : Subject
    X : ndarray or table
        All samples, of which some serve as background.
    chosen : sequence of Chosen
        Which samples.
    features : sequence of int
        Features, the most important first: at most ten are explained one by one.
    names : list of str
        Names of all features.
    rng : numpy Generator

    Returns
    -------
    list of Explanation
    """
    if not can_compose(X) or not chosen or not len(features):
        return []
    shown = [int(j) for j in features[:_MAX_FEATURES]]
    others = [j for j in range(len(names)) if j not in shown]
    players = [*[[j] for j in shown], *([others] if others else [])]
    texts = [*[names[j] for j in shown], *([OTHERS] if others else [])]
    steps = len(players) + 1
    affordable = _MAX_VALUES // (2 * len(chosen) * steps * len(subject.reader.column_weights))
    pairs = int(np.clip(affordable, 4, _PAIRS))
    orders = [order for _ in range(pairs) for order in _pair(rng.permutation(len(players)))]
    background = np.repeat(rng.integers(X.shape[0], size=pairs), 2)
    known = np.stack([_known(order) for order in orders])  # (order, step, player)
    found = []
    for one in chosen:
        mean = _values(subject, X, one, players, known, background)
        gains = np.diff(mean, axis=1)  # of the player that joins in each step
        contribution = np.zeros(len(players))
        for order, gain in zip(orders, gains, strict=True):
            contribution[order] += gain / len(orders)
        ranked = np.argsort(-np.abs(contribution), kind="stable")
        sample = take_samples(X, np.array([one.position]))
        values = [read_feature(sample, j).text(0) for j in shown] + [""] * bool(others)
        found.append(
            Explanation(
                one.reason,
                one.position,
                one.output,
                float(mean[0, -1]),
                float(mean[:, 0].mean()),
                [texts[i] for i in ranked],
                [values[i] for i in ranked],
                contribution[ranked],
            )
        )
    return found


def _pair(order: IntArray) -> tuple[IntArray, IntArray]:
    return order, order[::-1]


def _known(order: IntArray) -> IntArray:
    """Return for each step which players have joined, of shape (n_players + 1, n_players)."""
    n = len(order)
    place = np.empty(n, np.intp)
    place[order] = np.arange(n)
    return (place[None, :] < np.arange(n + 1)[:, None]).astype(np.intp)


def _values(
    subject: Subject, X: Any, one: Chosen, players: list[list[int]], known: IntArray, background: IntArray
) -> FloatArray:
    """Return the predictions in each step of each order."""
    n_orders, steps, _ = known.shape
    rows = np.repeat(np.arange(n_orders), steps)
    some = take_samples(X, np.append(background, one.position))  # the sample is the last one
    sources = {
        j: np.where(known[:, :, p].ravel() == 1, n_orders, rows) for p, features in enumerate(players) for j in features
    }
    return subject.outcome(compose(some, rows, sources)).value(one.output).reshape(n_orders, steps)
