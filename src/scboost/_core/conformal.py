"""Conformal prediction: intervals and label sets from the scores of held-out samples.

If a new sample and the n calibration samples are exchangeable, the rank of its score among all n + 1 is uniform. The
``ceil((1 - alpha) (n + 1))``-th smallest calibration score is therefore exceeded with probability at most alpha,
whatever the model and the distribution are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Literal

import numpy as np

from scboost._arrays import BoolArray, Float64Array, FloatArray, IntArray

SetMethod = Literal["smallest", "adaptive"]
"""How label sets are built."""

_MAX_SCORES = 1024
_MIN_BIN, _MAX_BINS = 50, 32  # samples in a bin of the prediction, and number of bins
_SHRINKAGE = 0.3
_ROUNDING = 1e-9  # of a rank that is computed in floating point


@dataclass(frozen=True)
class Scores:
    """Sorted scores of calibration samples.

    Attributes
    ----------
    values : ndarray of shape (m,)
        Increasing. All scores, or if there are many a subset of the ranks that is dense in both tails.
    ranks : ndarray of shape (m,)
        Weighted number of samples with a score of at most each value; the last is the total.
    """

    values: Float64Array
    ranks: Float64Array

    @classmethod
    def of(cls, scores: FloatArray, weight: FloatArray | None = None) -> Scores:
        """Sort scores of shape (n,); weights count samples."""
        order = np.argsort(scores, kind="stable")
        values = np.asarray(scores, dtype=np.float64)[order]
        ranks = np.arange(1.0, len(values) + 1) if weight is None else np.cumsum(weight[order], dtype=np.float64)
        kept = _dense_in_tails(len(values))
        return cls(values[kept], ranks[kept])

    @classmethod
    def merged(cls, parts: Sequence[Scores]) -> Scores:
        """Return the scores of several groups of samples together."""
        values = np.concatenate([part.values for part in parts])
        counts = np.concatenate([np.diff(part.ranks, prepend=0.0) for part in parts])
        order = np.argsort(values, kind="stable")
        return cls(values[order], np.cumsum(counts[order]))

    @property
    def size(self) -> float:
        """Number of samples."""
        return float(self.ranks[-1]) if len(self.ranks) else 0.0

    def upper(self, level: float) -> float:
        """Return the smallest value that a new score exceeds with probability at most ``1 - level``."""
        i = int(np.searchsorted(self.ranks, level * (self.size + 1) - _ROUNDING))
        return float(self.values[i]) if i < len(self.values) else np.inf

    def lower(self, level: float) -> float:
        """Return the largest value below which a new score lies with probability at most ``level``."""
        i = int(np.searchsorted(self.ranks, level * (self.size + 1) + _ROUNDING, side="right")) - 1
        return float(self.values[i]) if i >= 0 else -np.inf


def _dense_in_tails(n: int) -> IntArray:
    """Return positions among n sorted scores: all, or some whose distances grow in proportion to the smaller tail."""
    if n <= _MAX_SCORES:
        return np.arange(n)
    tail = np.unique(np.geomspace(1, (n + 1) // 2, _MAX_SCORES // 2).round().astype(np.intp)) - 1
    return np.unique(np.concatenate([tail, n - 1 - tail]))


def counted(weight: FloatArray | None, repeats: IntArray | None = None) -> FloatArray | None:
    """Return weights in units of samples: their sum is the effective sample size, ``sum(w)^2 / sum(w^2)``.

    Parameters
    ----------
    weight : ndarray of shape (n,) or None
        Sample weights.
    repeats : ndarray of shape (n,), optional
        How often each sample occurs among the n entries; repeated entries count as one sample.
    """
    if repeats is not None and (repeats > 1).any():
        weight = (1.0 if weight is None else weight) / repeats
        total = float(np.sum(weight))
        return np.asarray(weight * (total / float(np.sum(weight**2 * repeats))))
    if weight is None:
        return None
    w = weight.astype(np.float64)
    return np.asarray(w * (w.sum() / np.sum(w**2)))


@dataclass(frozen=True)
class LocalScale:
    """Size of the residuals as a piecewise linear function of a driver: the prediction, or the width of two quantiles.

    Attributes
    ----------
    knots : ndarray of shape (n_knots,)
        Values of the driver, increasing.
    values : ndarray of shape (n_knots,)
        Mean absolute residual near each of them; positive.
    """

    knots: Float64Array
    values: Float64Array

    @classmethod
    def of(cls, driver: FloatArray, residuals: FloatArray, weight: FloatArray | None) -> LocalScale | None:
        """Average absolute residuals in bins of the driver; None if there is one bin only, or no error."""
        size = np.abs(residuals)
        overall = float(np.average(size, weights=weight))
        n_bins = min(len(size) // _MIN_BIN, _MAX_BINS)
        if n_bins < 2 or not overall > 0:
            return None
        bins = np.array_split(np.argsort(driver, kind="stable"), n_bins)
        means = [np.average(size[part], weights=None if weight is None else weight[part]) for part in bins]
        knots = np.array([np.median(driver[part]) for part in bins], dtype=np.float64)
        distinct = np.flatnonzero(np.diff(knots, prepend=-np.inf) > 0)
        # A share of the overall size keeps a bin with little noise by chance from shrinking its intervals.
        return cls(knots[distinct], np.array(means)[distinct] + _SHRINKAGE * overall)

    def at(self, driver: FloatArray) -> Float64Array:
        """Return the scale at values of the driver of shape (n,)."""
        return np.asarray(np.interp(driver, self.knots, self.values))


@dataclass(frozen=True)
class Outputs:
    """Predictions of a regression model on the scale of y.

    Attributes
    ----------
    values : ndarray of shape (n_outputs, n)
        Predictions.
    quantiles : sequence of float
        The quantile that each output estimates.
    symmetric : bool
        Whether intervals are symmetric around the prediction; otherwise each tail has half of the error probability.
    """

    values: FloatArray
    quantiles: Sequence[float]
    symmetric: bool

    @property
    def centre(self) -> FloatArray:
        """Midpoint of the outer quantiles, of shape (n,); the prediction itself if there is only one output."""
        return np.asarray((self.values[0] + self.values[-1]) / 2)

    @property
    def driver(self) -> FloatArray:
        """Argument of the local scale, of shape (n,): the distance of the outer quantiles, or the prediction."""
        return self.values[0] if len(self.values) == 1 else np.asarray(self.values[-1] - self.values[0])

    def take(self, samples: BoolArray) -> Outputs:
        """Return the predictions of some samples."""
        return Outputs(self.values[:, samples], self.quantiles, self.symmetric)


@dataclass(frozen=True)
class Intervals:
    """Calibration state of prediction intervals.

    Attributes
    ----------
    centred : Scores
        ``y - centre`` in units of the local scale; its absolute value for symmetric intervals.
    scale : LocalScale or None
        Scale of the residuals; None if it is 1 everywhere.
    shifts : tuple of Scores
        ``y - prediction`` of each output, if there are several.
    """

    centred: Scores
    scale: LocalScale | None = None
    shifts: tuple[Scores, ...] = ()

    @classmethod
    def of(
        cls,
        outputs: Outputs,
        y: FloatArray,
        weight: FloatArray | None,
        scale: LocalScale | None,
        unit: FloatArray | float = 1.0,
    ) -> Intervals:
        """Sort the residuals of samples, divided by their local scale."""
        residuals = (y - outputs.centre) / unit
        centred = Scores.of(np.abs(residuals) if outputs.symmetric else residuals, weight)
        several = len(outputs.values) > 1
        return cls(centred, scale, tuple(Scores.of(y - values, weight) for values in outputs.values if several))

    def bounds(self, outputs: Outputs, coverage: float) -> Float64Array:
        """Return lower and upper bounds of shape (n, 2) with a nominal coverage.

        If the model has the two quantiles, they are shifted; other bounds are multiples of the local scale.
        """
        tail = (1 - coverage) / 2
        if outputs.symmetric:
            above = self.centred.upper(coverage)
            below = -above
        else:
            below, above = self.centred.lower(tail), self.centred.upper(1 - tail)
        low = high = outputs.centre
        unit: Float64Array | float = 1.0 if self.scale is None else self.scale.at(outputs.driver)
        fitted = [
            int(k) for q in (tail, 1 - tail) for k in np.flatnonzero(np.abs(np.array(outputs.quantiles) - q) < 1e-9)
        ]
        if len(fitted) == 2:
            low, high = outputs.values[fitted]
            below, above, unit = self.shifts[fitted[0]].lower(tail), self.shifts[fitted[1]].upper(1 - tail), 1.0
        bounds = np.stack([low + below * unit, high + above * unit], axis=1)
        return np.sort(bounds, axis=1)  # shifted quantiles may cross

    @property
    def noise(self) -> float:
        """Mean square of the residuals in units of the local scale."""
        return float(np.average(self.centred.values**2, weights=np.diff(self.centred.ranks, prepend=0.0)))


def checked_coverage(coverage: float | Sequence[float]) -> list[float]:
    """Return the requested coverages, each in (0, 1)."""
    given: list[float] = [coverage] if not isinstance(coverage, Sequence | np.ndarray) else list(coverage)
    if not given or not all(isinstance(c, Real) and not isinstance(c, bool) and 0 < c < 1 for c in given):
        raise ValueError(f"coverage={coverage!r} must be a number between 0 and 1, such as 0.9, or a list of these.")
    return [float(c) for c in given]


@dataclass(frozen=True)
class LabelSets:
    """Calibration state of label sets.

    Attributes
    ----------
    smallest, adaptive : tuple of Scores
        For each class, scores of the samples of this class at their label; see :func:`label_scores`.
    """

    smallest: tuple[Scores, ...]
    adaptive: tuple[Scores, ...]

    @classmethod
    def of(cls, probabilities: FloatArray, labels: IntArray, weight: FloatArray | None) -> LabelSets:
        """Sort the scores of samples with probabilities of shape (n, n_classes) and labels 0, 1, ... of shape (n,)."""
        n, n_classes = probabilities.shape

        def by_class(method: SetMethod) -> tuple[Scores, ...]:
            own = label_scores(probabilities, method)[np.arange(n), labels]
            members = [labels == k for k in range(n_classes)]
            return tuple(Scores.of(own[m], None if weight is None else weight[m]) for m in members)

        return cls(by_class("smallest"), by_class("adaptive"))

    def contains(self, probabilities: FloatArray, coverage: float, method: SetMethod, *, by_class: bool) -> BoolArray:
        """Return which classes are in the set of each sample, of shape (n, n_classes)."""
        parts = self.smallest if method == "smallest" else self.adaptive
        groups = parts if by_class else [Scores.merged(parts)] * len(parts)
        limits = np.array([group.upper(coverage) for group in groups])
        return np.asarray(label_scores(probabilities, method) <= limits)


def label_scores(probabilities: FloatArray, method: SetMethod) -> Float64Array:
    """Return the score of each class for each sample, of the shape of the probabilities; higher is less plausible.

    Parameters
    ----------
    probabilities : ndarray of shape (n, n_classes)
        Predicted probabilities.
    method : {"smallest", "adaptive"}
        "smallest" is 1 minus the probability of the class; "adaptive" the total probability of the classes that are
        more probable, so that the most probable class has score 0 and is in every set.
    """
    p = np.asarray(probabilities, dtype=np.float64)
    if method == "smallest":
        return 1 - p
    order = np.argsort(-p, axis=1, kind="stable")
    above = np.zeros_like(p)
    np.put_along_axis(above, order[:, 1:], np.cumsum(np.take_along_axis(p, order, axis=1), axis=1)[:, :-1], axis=1)
    return above


Conformal = Intervals | LabelSets
"""Calibration state of a fitted model."""
