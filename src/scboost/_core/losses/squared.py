"""Losses of regression towards the mean: squared error and Huber loss."""

from __future__ import annotations

import numpy as np
from scipy import special

from scboost._arrays import FloatArray
from scboost._core.losses.base import Loss, check_range
from scboost._core.statistics import weighted_mean, weighted_quantile
from scboost._runtime.communicator import SINGLE_PROCESS, Communicator


class SquaredLoss(Loss):
    """Half the squared error."""

    translation_invariant = True
    constant_hessian = True
    kernel = "squared"

    def check_target(self, y: FloatArray, name: str) -> None:
        check_range(y, name)

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        return self.shared_initial_score(y, sample_weight, SINGLE_PROCESS)

    def shared_initial_score(
        self, y: FloatArray, sample_weight: FloatArray | None, communicator: Communicator
    ) -> FloatArray:
        return np.array([weighted_mean(y, sample_weight, communicator)])

    def gradient_hessian(self, y: FloatArray, raw: FloatArray) -> tuple[FloatArray, FloatArray]:
        return raw - y, np.ones_like(raw)

    def pointwise_loss(self, y: FloatArray, raw: FloatArray) -> FloatArray:
        return np.asarray((y - raw[0]) ** 2 / 2)


class HuberLoss(Loss):
    """Squared error for small residuals, absolute error for large ones.

    Parameters
    ----------
    delta : float
        Absolute residual at which the loss becomes linear, in units of the target.
    """

    translation_invariant = True
    constant_hessian = True

    def __init__(self, delta: float) -> None:
        self.delta = delta

    def check_target(self, y: FloatArray, name: str) -> None:
        check_range(y, name)

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        return self.shared_initial_score(y, sample_weight, SINGLE_PROCESS)

    def shared_initial_score(
        self, y: FloatArray, sample_weight: FloatArray | None, communicator: Communicator
    ) -> FloatArray:
        median = weighted_quantile(np.asarray(y, dtype=np.float64), sample_weight, 0.5, communicator)
        score = np.array([median])
        n = float(communicator.sum(np.array(float(len(y)))))
        for _ in range(100):
            residual = np.clip(y - score[0], -self.delta, self.delta)
            inside = weighted_mean(np.abs(y - score[0]) <= self.delta, sample_weight, communicator)
            step = weighted_mean(residual, sample_weight, communicator) / max(inside, 1 / n)
            score += step
            if abs(step) <= 1e-12 * self.delta:
                break
        return score

    def gradient_hessian(self, y: FloatArray, raw: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.clip(raw - y, -self.delta, self.delta), np.ones_like(raw)

    def pointwise_loss(self, y: FloatArray, raw: FloatArray) -> FloatArray:
        return np.asarray(special.huber(self.delta, y - raw[0]))
