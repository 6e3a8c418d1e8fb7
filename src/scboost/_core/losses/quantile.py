"""Losses of quantiles and expectiles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from scboost._arrays import FloatArray
from scboost._core.links import IDENTITY, QuantileLink, SortedQuantilesLink
from scboost._core.losses.base import Loss, check_range
from scboost._core.statistics import weighted_mean, weighted_quantile
from scboost._runtime.communicator import SINGLE_PROCESS, Communicator


class QuantileLoss(Loss):
    """Pinball loss; half the absolute error at the median.

    Its Hessian is zero, so trees are grown on the sign of the residual with unit Hessian, and the best step of a group
    of samples is the quantile of their residuals.

    Parameters
    ----------
    quantile : float in (0, 1), default=0.5
        The quantile that is estimated.
    """

    translation_invariant = True
    constant_hessian = True
    supports_weighting = False

    def __init__(self, quantile: float = 0.5) -> None:
        self.quantile = self.residual_quantile = quantile
        self.link = IDENTITY if quantile == 0.5 else QuantileLink()

    def check_target(self, y: FloatArray, name: str) -> None:
        check_range(y, name)

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        return self.shared_initial_score(y, sample_weight, SINGLE_PROCESS)

    def shared_initial_score(
        self, y: FloatArray, sample_weight: FloatArray | None, communicator: Communicator
    ) -> FloatArray:
        y = np.asarray(y, dtype=np.float64)
        return np.array([weighted_quantile(y, sample_weight, self.quantile, communicator)])

    def gradient_hessian(self, y: FloatArray, raw: FloatArray) -> tuple[FloatArray, FloatArray]:
        gradient = np.where(y > raw, -self.quantile, 1 - self.quantile).astype(raw.dtype)
        gradient[y == raw] = 0
        return gradient, np.ones_like(raw)

    def pointwise_loss(self, y: FloatArray, raw: FloatArray) -> FloatArray:
        e = y - raw[0]
        return np.asarray(np.maximum(self.quantile * e, (self.quantile - 1) * e))


class QuantilesLoss(Loss):
    """Sum of the pinball losses of several quantiles, one output each; predictions are sorted, so that none cross.

    Parameters
    ----------
    quantiles : sequence of float in (0, 1)
        Strictly increasing.
    """

    translation_invariant = True
    constant_hessian = True
    supports_weighting = False
    link = SortedQuantilesLink()

    def __init__(self, quantiles: Sequence[float]) -> None:
        self.quantiles = [float(q) for q in quantiles]
        bounds = [0.0, *self.quantiles, 1.0]
        if len(self.quantiles) < 2 or any(low >= high for low, high in pairwise(bounds)):
            raise ValueError(f"quantiles={self.quantiles!r} must be two or more, strictly increasing, between 0 and 1.")
        self.n_outputs = len(self.quantiles)
        self._losses = [QuantileLoss(q) for q in self.quantiles]

    def output(self, k: int) -> Loss:
        return self._losses[k]

    def check_target(self, y: FloatArray, name: str) -> None:
        check_range(y, name)

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        return self.shared_initial_score(y, sample_weight, SINGLE_PROCESS)

    def shared_initial_score(
        self, y: FloatArray, sample_weight: FloatArray | None, communicator: Communicator
    ) -> FloatArray:
        return np.concatenate([loss.shared_initial_score(y, sample_weight, communicator) for loss in self._losses])

    def gradient_hessian(self, y: FloatArray, raw: FloatArray) -> tuple[FloatArray, FloatArray]:
        parts = [loss.gradient_hessian(y, raw[k : k + 1])[0] for k, loss in enumerate(self._losses)]
        return np.concatenate(parts), np.ones_like(raw)

    def pointwise_loss(self, y: FloatArray, raw: FloatArray) -> FloatArray:
        parts = [loss.pointwise_loss(y, raw[k : k + 1]) for k, loss in enumerate(self._losses)]
        return np.asarray(np.sum(parts, axis=0))


class ExpectileLoss(Loss):
    """Asymmetric squared error: weight ``expectile`` if y is above the raw score, ``1 - expectile`` below.

    The expectile 0.5 is the mean.

    Parameters
    ----------
    expectile : float in (0, 1)
        The expectile that is estimated.
    """

    translation_invariant = True

    def __init__(self, expectile: float) -> None:
        if not 0 < expectile < 1:
            raise ValueError(f"expectile={expectile!r} must be between 0 and 1.")
        self.expectile = expectile
        self.link = IDENTITY if expectile == 0.5 else QuantileLink()

    def check_target(self, y: FloatArray, name: str) -> None:
        check_range(y, name)

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        return self.shared_initial_score(y, sample_weight, SINGLE_PROCESS)

    def shared_initial_score(
        self, y: FloatArray, sample_weight: FloatArray | None, communicator: Communicator
    ) -> FloatArray:
        score = np.array([weighted_mean(y, sample_weight, communicator)])
        largest = float(communicator.max(np.abs(y).max(initial=0)))
        for _ in range(100):  # each step is exact unless it changes on which side samples lie
            w = self._weights(y, score) * (1 if sample_weight is None else sample_weight)
            step = weighted_mean(y, w, communicator) - score[0]
            score += step
            if abs(step) <= 1e-14 * largest:
                break
        return score

    def _weights(self, y: FloatArray, raw: FloatArray) -> FloatArray:
        return np.asarray(np.where(y > raw, 2 * self.expectile, 2 - 2 * self.expectile))

    def gradient_hessian(self, y: FloatArray, raw: FloatArray) -> tuple[FloatArray, FloatArray]:
        w = self._weights(y, raw).astype(raw.dtype)
        return w * (raw - y), w

    def pointwise_loss(self, y: FloatArray, raw: FloatArray) -> FloatArray:
        return np.asarray(self._weights(y, raw[0]) * (y - raw[0]) ** 2 / 2)
