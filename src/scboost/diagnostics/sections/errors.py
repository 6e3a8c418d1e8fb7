"""Where the model errs: the samples with the largest loss, and segments of samples with a loss above average."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from scboost._arrays import BoolArray, FloatArray, IntArray
from scboost.diagnostics._columns import Feature, read_feature
from scboost.diagnostics._predictions import Predictions

_WORST = 10
_SHOWN_VALUES = 5
_LEAST_SAMPLES = 20
_MOST_CATEGORIES = 8
_PARTS = 4
_LEVEL = 3.0  # standard errors by which the loss of a flagged segment differs


@dataclass(frozen=True)
class WorstSample:
    """A sample with a large loss.

    Attributes
    ----------
    row : int
        Position in X as it was given, counted from 0.
    position : int
        Position among the samples used.
    target, predicted : str
        Label or value.
    probability : float
        Predicted probability of the true class; NaN if there is none.
    loss : float
    features : list of (str, str)
        Names and values of the most important features.
    """

    row: int
    position: int
    target: str
    predicted: str
    probability: float
    loss: float
    features: list[tuple[str, str]]


@dataclass(frozen=True)
class Segment:
    """Samples with similar values of one feature.

    Attributes
    ----------
    feature, condition : str
        Name, and which values.
    n : int
        Number of samples.
    loss, standard_error : float
        Mean loss and its standard error.
    excess : float
        Difference of the mean loss to that of all other samples, in standard errors.
    """

    feature: str
    condition: str
    n: int
    loss: float
    standard_error: float
    excess: float

    @property
    def is_worse(self) -> bool:
        """Whether the loss is above that of the other samples by more than three standard errors."""
        return self.excess > _LEVEL


@dataclass(frozen=True)
class Errors:
    """Where the model errs.

    Attributes
    ----------
    worst : list of WorstSample
        Largest loss first.
    segments : list of Segment
        Of the most important features, largest excess first.
    loss, loss_name
        Mean loss of all samples, and its name.
    """

    worst: list[WorstSample]
    segments: list[Segment]
    loss: float
    loss_name: str


def find_errors(
    predictions: Predictions, X: Any, rows: IntArray, features: Sequence[int], names: list[str], labels: list[str]
) -> Errors:
    """Return the worst samples and segments.

    Parameters
    ----------
    predictions : Predictions
        Of the samples.
    X : array-like or table
        The samples.
    rows : ndarray of shape (n_samples,)
        Their positions in X as it was given.
    features : sequence of int
        The most important features.
    names : list of str
        Names of all features.
    labels : list of str
        Class labels; empty for regression.

    Returns
    -------
    Errors
    """
    loss = predictions.pointwise_loss()
    columns = [(names[j], read_feature(X, j)) for j in features]
    worst = [
        _worst_sample(predictions, int(i), int(rows[i]), float(loss[i]), labels, columns[:_SHOWN_VALUES])
        for i in np.argsort(-loss, kind="stable")[:_WORST]
    ]
    segments = [
        _segment(name, condition, loss, member)
        for name, feature in columns
        for condition, member in _parts(feature)
        if _LEAST_SAMPLES <= member.sum() <= len(loss) - _LEAST_SAMPLES
    ]
    segments.sort(key=lambda segment: -segment.excess)
    return Errors(worst, segments, float(loss.mean()), predictions.loss_name)


def _worst_sample(
    predictions: Predictions,
    i: int,
    row: int,
    loss: float,
    labels: list[str],
    columns: list[tuple[str, Feature]],
) -> WorstSample:
    target, predicted = predictions.target[i], predictions.predicted[i]
    p = predictions.probability
    return WorstSample(
        row=row,
        position=i,
        target=labels[target] if labels else f"{target:.5g}",
        predicted=labels[predicted] if labels else f"{predicted:.5g}",
        probability=float("nan") if p is None else float(p[i, target]),
        loss=loss,
        features=[(name, feature.text(i)) for name, feature in columns],
    )


def _segment(name: str, condition: str, loss: FloatArray, member: BoolArray) -> Segment:
    inside, outside = loss[member], loss[~member]
    variances = [part.var(ddof=1) / len(part) for part in (inside, outside)]
    error = float(np.sqrt(sum(variances)))
    excess = float(inside.mean() - outside.mean()) / error if error > 0 else 0.0
    return Segment(name, condition, len(inside), float(inside.mean()), float(np.sqrt(variances[0])), excess)


def _parts(feature: Feature) -> Iterator[tuple[str, BoolArray]]:
    """Yield conditions and members: frequent categories, quarters of the numbers, missing values."""
    values = feature.data
    missing = np.isnan(values)
    if feature.kind == "other":
        return
    if missing.any():
        yield "missing", missing
    present = values[~missing]
    if not len(present):
        return
    if feature.categories:
        counts = np.bincount(present.astype(np.intp))
        for code in np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]:
            yield f"= {feature.categories[int(code)]}", values == code
        return
    distinct = np.unique(present)
    if len(distinct) <= _MOST_CATEGORIES:
        yield from ((f"= {value:.5g}", values == value) for value in distinct)
        return
    edges = np.unique(np.quantile(present, np.linspace(0, 1, _PARTS + 1)))
    for i, (low, high) in enumerate(pairwise(edges)):
        first = i == 0
        member = (values <= high) & ((values >= low) if first else (values > low))
        yield (f"at most {high:.5g}" if first else f"above {low:.5g}, at most {high:.5g}"), member
