"""Losses of a positive mean, whose logarithm is the raw score: Poisson, gamma and Tweedie."""

from __future__ import annotations

import numpy as np

from scboost._arrays import FloatArray
from scboost._core.links import LogLink
from scboost._core.losses.base import MIN_HESSIAN, LineSearch, Loss, check_range
from scboost._core.statistics import weighted_mean
from scboost._runtime.communicator import SINGLE_PROCESS, Communicator

# On the log scale: the step of a group whose targets are all 0, without regularization, would be infinite.
_LONGEST_STEP = 30.0
# Smallest mean of a count: avoids a division by 0 in a diverging fit or in a fold where all counts are 0.
_LOWEST_MEAN = np.float32(1e-30)


class _LogMeanLoss(Loss):
    """A loss whose best constant is the logarithm of the mean."""

    link = LogLink()

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        return self.shared_initial_score(y, sample_weight, SINGLE_PROCESS)

    def shared_initial_score(
        self, y: FloatArray, sample_weight: FloatArray | None, communicator: Communicator
    ) -> FloatArray:
        return np.array([np.log(max(weighted_mean(y, sample_weight, communicator), float(_LOWEST_MEAN)))])


class PoissonLoss(_LogMeanLoss):
    """Negative log-likelihood of a count whose log-mean is the raw score, up to a constant of the target."""

    def __init__(self) -> None:
        self.line_search = _PoissonLineSearch()

    def check_target(self, y: FloatArray, name: str) -> None:
        if (y < 0).any():
            raise ValueError(f"loss='poisson' needs {name} >= 0, got {y.min():g}.")
        check_range(y, name)

    def gradient_hessian(self, y: FloatArray, raw: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean = np.exp(raw)
        return mean - y, np.maximum(mean, _LOWEST_MEAN)

    def pointwise_loss(self, y: FloatArray, raw: FloatArray) -> FloatArray:
        return np.asarray(np.exp(raw[0]) - y * raw[0])


class _PoissonLineSearch(LineSearch):
    """Solves ``sum(mean) exp(s) + l2 s = sum(y)``: a Newton step diverges if the mean is far below the counts."""

    def terms(self, y: FloatArray, raw: FloatArray, hessian: FloatArray) -> tuple[FloatArray, FloatArray]:
        del raw
        return y, hessian

    def minimize(self, sums: FloatArray, l2: float, l1: float) -> FloatArray:
        """Solve the increasing convex equation by Newton's method from above; see :class:`LineSearch`.

        ``l1`` moves the sum of counts towards that of the means.
        """
        Y, S = sums
        n_groups = len(Y)
        Y = Y - np.clip(Y - S, -l1, l1)
        filled = S > 0
        s = np.log(np.maximum(np.divide(Y, S, out=np.ones(n_groups), where=filled), 1))
        for _ in range(30):  # a group without counts and without regularization would not converge
            slope = S * np.exp(s)
            s -= np.divide(slope + l2 * s - Y, slope + l2, out=np.zeros(n_groups), where=filled)
        return np.asarray(s)


class TweedieLoss(_LogMeanLoss):
    """Half the Tweedie deviance of a non-negative target with many zeros, up to a constant of the target.

    The raw score is the logarithm of the mean; the variance is a multiple of its ``power``.

    Parameters
    ----------
    power : float in (1, 2), default=1.5
        Power of the variance: near 1 as for counts, near 2 as for positive quantities.
    """

    def __init__(self, power: float = 1.5) -> None:
        if not 1 < power < 2:
            raise ValueError(f"power={power!r} of the Tweedie loss must be between 1 and 2; use poisson or gamma.")
        self.power = power
        self.line_search = _TweedieLineSearch(power)

    def check_target(self, y: FloatArray, name: str) -> None:
        if (y < 0).any():
            raise ValueError(f"loss='tweedie' needs {name} >= 0, got {y.min():g}.")
        check_range(y, name)

    def gradient_hessian(self, y: FloatArray, raw: FloatArray) -> tuple[FloatArray, FloatArray]:
        up, down = _tweedie_terms(y, raw, self.power)
        return down - up, np.maximum((self.power - 1) * up + (2 - self.power) * down, MIN_HESSIAN)

    def pointwise_loss(self, y: FloatArray, raw: FloatArray) -> FloatArray:
        up, down = _tweedie_terms(y, raw[0], self.power)
        return np.asarray(up / (self.power - 1) + down / (2 - self.power))


class GammaLoss(TweedieLoss):
    """Half the gamma deviance of a positive target, whose log-mean is the raw score, up to a constant of the target."""

    def __init__(self) -> None:
        self.power = 2.0
        self.line_search = _TweedieLineSearch(2.0)

    def check_target(self, y: FloatArray, name: str) -> None:
        if (y <= 0).any():
            raise ValueError(f"loss='gamma' needs {name} > 0, got {y.min():g}.")
        check_range(y, name)

    def pointwise_loss(self, y: FloatArray, raw: FloatArray) -> FloatArray:
        return np.asarray(y * np.exp(-raw[0]) + raw[0])


def _tweedie_terms(y: FloatArray, raw: FloatArray, power: float) -> tuple[FloatArray, FloatArray]:
    """Return the terms of the derivative that raise a score and that lower it; their difference is the gradient."""
    p = raw.dtype.type(power)
    exponent = np.where(y > 0, (1 - p) * raw, raw.dtype.type(0))  # 0 times infinity is no number
    return y * np.exp(exponent), np.exp((2 - p) * raw)


class _TweedieLineSearch(LineSearch):
    """Solves ``A exp((1 - p) s) - B exp((2 - p) s) = l2 s + l1 sign(s)``: far from y, a Newton step diverges."""

    def __init__(self, power: float) -> None:
        self._power = power

    def terms(self, y: FloatArray, raw: FloatArray, hessian: FloatArray) -> tuple[FloatArray, FloatArray]:
        del hessian
        return _tweedie_terms(y, raw, self._power)

    def minimize(self, sums: FloatArray, l2: float, l1: float) -> FloatArray:
        """Bisect: the left side decreases, and its root without regularization is ``log(A / B)``."""
        A, B = sums
        ends = np.zeros(len(A))
        filled = B > 0
        with np.errstate(divide="ignore"):
            ends[filled] = np.clip(np.log(A[filled] / B[filled]), -_LONGEST_STEP, _LONGEST_STEP)
        shrinkage = np.clip(A - B, -l1, l1)
        near, far = np.zeros(len(A)), ends
        for _ in range(60):
            middle = (near + far) / 2
            slope = A * np.exp((1 - self._power) * middle) - B * np.exp((2 - self._power) * middle)
            beyond = (slope - l2 * middle - shrinkage) * ends < 0
            near, far = np.where(beyond, near, middle), np.where(beyond, middle, far)
        return (near + far) / 2
