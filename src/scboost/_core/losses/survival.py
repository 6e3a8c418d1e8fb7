"""Losses of survival times, of which only bounds are known if they are censored.

Targets have shape (n, 2): lower and upper bound of the time of the event. Equal bounds are an observed event, an upper
bound of infinity is a right-censored time.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy import sparse, special

from scboost._arrays import BoolArray, FloatArray, IntArray
from scboost._core.links import HazardLink, TimeLink
from scboost._core.losses.base import MIN_HESSIAN, Loss
from scboost._core.losses.coupled import CoupledLoss
from scboost._runtime.communicator import SINGLE_PROCESS, Communicator

# Largest gradient and Hessian of an AFT loss in units of the scale, those of XGBoost: a censored time far from its
# score must not outweigh all others.
_LARGEST = 15.0
_LARGEST_EXPONENT = 200.0  # float64 holds products of three such exponentials


class CoxLoss(CoupledLoss):
    """Negative log partial likelihood of Cox; the raw score is the logarithm of the hazard ratio.

    Tied events are treated by Breslow's approximation, under which an integer weight is the same as repetition.
    """

    link = HazardLink()
    task = "survival"
    efron = False

    def check_target(self, y: FloatArray, name: str) -> None:
        lower, upper = y.T
        interval = (lower < upper) & np.isfinite(upper)
        if interval.any():
            raise ValueError(
                f"loss='cox' needs {name} to be observed or right-censored, but {interval.sum()} of {len(y)} times are "
                "only known to be in an interval; use loss='aft'."
            )
        if not np.isfinite(upper).any():
            raise ValueError(f"loss='cox' needs an event in {name}; all {len(y)} times are censored.")

    def derivatives(
        self, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        at = _RiskSets.of(y, raw, sample_weight, efron=self.efron)
        n, event, e, share, left, risk = at.n_groups, at.event, at.e, at.share, at.left, at.risk
        hazard = e * (at.so_far(at.by_group(share)) - event * at.by_group(share * left)[at.group])
        squares = at.so_far(at.by_group(share / risk))
        squares -= event * at.by_group(share / risk * (1 - (1 - left) ** 2))[at.group]
        logs = np.divide(at.by_group(np.log(risk)), at.deaths, out=np.zeros(n), where=at.deaths > 0)[at.group]
        hessian = np.maximum(hazard - e**2 * squares, MIN_HESSIAN)
        return event * (logs + at.largest - at.F), (hazard - event)[None], hessian[None]

    def hessian_product(
        self, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None, V: FloatArray
    ) -> FloatArray:
        at = _RiskSets.of(y, raw, sample_weight, efron=self.efron)
        mass, event = (at.w * at.e)[:, None], at.event[:, None]
        left, factor = at.left[:, None], (at.share / at.risk)[:, None]
        hazard = at.so_far(at.by_group(at.share)) - at.event * at.by_group(at.share * at.left)[at.group]
        # Sums of the directions over the risk set of each event, of which those dying leave a part.
        weighted = mass * V
        sums = np.cumsum(_sums(at.group, weighted, at.n_groups), axis=0)[at.term]
        sums -= left * _sums(at.group, weighted * event, at.n_groups)[at.term]
        first = at.so_far(_sums(at.term, factor * sums, at.n_groups))
        second = event * _sums(at.term, factor * left * sums, at.n_groups)[at.group]
        return np.asarray(mass * (hazard[:, None] * V - first + second))


@dataclass(frozen=True)
class _RiskSets:
    """Samples by distinct time in descending order, and one term of the partial likelihood for each event.

    Attributes
    ----------
    event : ndarray of bool of shape (n,)
        Whether the event is observed.
    w, F, e : ndarray of shape (n,)
        Weights, raw scores and their exponentials relative to that of the largest.
    largest : float
        The largest raw score.
    group : ndarray of shape (n,)
        Distinct time of the sample.
    n_groups : int
        Number of distinct times.
    deaths : ndarray of shape (n_groups,)
        Number of events at each time.
    term, left, risk, share : ndarray of shape (n_events,)
        Distinct time of the event; the part of the dying that has left the risk set before it (under Efron's rule, the
        events of a tie leave one after the other); the sum over the risk set; weight of the event divided by that.
    """

    event: BoolArray
    w: FloatArray
    F: FloatArray
    e: FloatArray
    largest: float
    group: IntArray
    n_groups: int
    deaths: IntArray
    term: IntArray
    left: FloatArray
    risk: FloatArray
    share: FloatArray

    @classmethod
    def of(cls, y: FloatArray, raw: FloatArray, sample_weight: FloatArray | None, *, efron: bool) -> _RiskSets:
        time, event = y[:, 0], np.isfinite(y[:, 1])
        w = np.ones(len(y)) if sample_weight is None else sample_weight.astype(np.float64)
        F = raw[0].astype(np.float64)
        largest = F.max(initial=-np.inf)
        e = np.exp(F - largest)
        group, n_groups = _descending_groups(time)

        def total(values: FloatArray) -> FloatArray:
            return np.asarray(np.bincount(group, weights=values, minlength=n_groups), dtype=np.float64)

        at_risk, dying = np.cumsum(total(w * e)), total(w * e * event)
        deaths = total((event & (w > 0)).astype(np.float64)).astype(np.intp)
        g = np.repeat(np.arange(n_groups), deaths)
        place = np.arange(len(g)) - np.repeat(np.cumsum(deaths) - deaths, deaths)
        left = place / deaths[g] if efron else np.zeros(len(g))
        risk = np.maximum(at_risk[g] - left * dying[g], np.finfo(np.float64).tiny)
        share = total(w * event)[g] / deaths[g] / risk
        return cls(event, w, F, e, largest, group, n_groups, deaths, g, left, risk, share)

    def by_group(self, values: FloatArray) -> FloatArray:
        """Add up values of the events at each time."""
        return np.asarray(np.bincount(self.term, weights=values, minlength=self.n_groups), dtype=np.float64)

    def so_far(self, values: FloatArray) -> FloatArray:
        """Sum over the events up to the time of each sample, the groups being in descending order."""
        return np.asarray(np.cumsum(values[::-1], axis=0)[::-1][self.group])


def _sums(group: IntArray, values: FloatArray, n_groups: int) -> FloatArray:
    """Add up the rows of each group, of shape (n_groups, T)."""
    shape = (n_groups, len(group))
    sums = sparse.csr_array((np.ones(len(group)), (group, np.arange(len(group)))), shape=shape) @ values
    return np.asarray(sums)


class EfronCoxLoss(CoxLoss):
    """Negative log partial likelihood of Cox with Efron's approximation of ties, closer to that of continuous time."""

    efron = True


def _descending_groups(time: FloatArray) -> tuple[np.ndarray[tuple[int], np.dtype[np.intp]], int]:
    """Return the position of each time among the distinct times in descending order, and their number."""
    distinct, place = np.unique(time, return_inverse=True)
    return len(distinct) - 1 - place.reshape(-1), len(distinct)


class AFTLoss(Loss):
    """Negative log-likelihood of an accelerated failure time model; the raw score is the location of the log-time.

    Parameters
    ----------
    scale : float
        Scale of the distribution of the log-time.
    """

    link = TimeLink()
    task = "survival"

    def __init__(self, scale: float) -> None:
        self.scale = scale

    @staticmethod
    @abstractmethod
    def density(z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the log-density of the standard distribution and its first two derivatives."""

    @staticmethod
    @abstractmethod
    def log_cdf(z: FloatArray) -> FloatArray:
        """Return the logarithm of the distribution function."""

    @staticmethod
    @abstractmethod
    def log_survival(z: FloatArray) -> FloatArray:
        """Return the logarithm of one minus the distribution function."""

    @staticmethod
    @abstractmethod
    def quantile(p: FloatArray) -> FloatArray:
        """Return quantiles of the standard distribution."""

    def check_target(self, y: FloatArray, name: str) -> None:
        if (y[:, 1] <= 0).any():
            raise ValueError(f"loss='aft' needs {name} > 0, a time with a logarithm, got {y[:, 1].min():g}.")
        if ((y[:, 0] == 0) & np.isinf(y[:, 1])).any():
            raise ValueError(f"loss='aft' needs {name} > 0, but a time is censored at 0; remove such samples.")
        if np.isinf(y[:, 1]).all():
            raise ValueError(f"loss='aft' needs an event in {name}; all {len(y)} times are right-censored.")

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        return self.shared_initial_score(y, sample_weight, SINGLE_PROCESS)

    def shared_initial_score(
        self, y: FloatArray, sample_weight: FloatArray | None, communicator: Communicator
    ) -> FloatArray:
        """Minimize the convex mean loss by bisection on its derivative, between the extreme finite bounds."""
        logs = np.log(y[np.isfinite(y) & (y > 0)].astype(np.float64))
        ends = communicator.max(np.array([logs.max(initial=-np.inf), (-logs).max(initial=-np.inf)]))
        high, low = float(ends[0]) + 40 * self.scale, -float(ends[1]) - 40 * self.scale
        for _ in range(100):
            middle = (low + high) / 2
            slope = self._terms(y, np.full((1, len(y)), middle))[1]
            total = slope.sum() if sample_weight is None else slope @ sample_weight
            low, high = (middle, high) if communicator.sum(np.array(total)) < 0 else (low, middle)
            if not low < (low + high) / 2 < high:
                break
        return np.array([(low + high) / 2])

    def gradient_hessian(self, y: FloatArray, raw: FloatArray) -> tuple[FloatArray, FloatArray]:
        _, gradient, hessian = self._terms(y, raw)
        return gradient[None], hessian[None]

    def pointwise_loss(self, y: FloatArray, raw: FloatArray) -> FloatArray:
        return self._terms(y, raw)[0]

    def loss_gradient_hessian(
        self, y: FloatArray, raw: FloatArray, gradient: FloatArray, hessian: FloatArray
    ) -> FloatArray:
        losses, gradient[0], hessian[0] = self._terms(y, raw)
        return losses

    def exact_gradient(self, y: FloatArray, raw: FloatArray) -> FloatArray:
        return self._terms(y, raw, np.inf)[1][None]

    def _terms(
        self, y: FloatArray, raw: FloatArray, largest: float = _LARGEST
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return loss, gradient and Hessian of each sample in float64."""
        lower, upper = y.T.astype(np.float64)
        F = raw[0].astype(np.float64)
        with np.errstate(divide="ignore"):
            z = (np.log(lower) - F) / self.scale, (np.log(upper) - F) / self.scale
        loss, gradient, hessian = (np.empty(len(F)) for _ in range(3))
        observed = lower == upper
        for rows, terms in ((observed, self._observed), (~observed, self._censored)):
            loss[rows], gradient[rows], hessian[rows] = terms(z[0][rows], z[1][rows])
        loss[observed] += np.log(self.scale * lower[observed])
        gradient, hessian = np.clip(gradient, -largest, largest), np.clip(hessian, MIN_HESSIAN, largest)
        return loss, gradient / -self.scale, hessian / self.scale**2

    def _observed(self, z: FloatArray, _: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        log, first, second = self.density(z)
        return -log, -first, -second

    def _censored(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Terms of the probability between two bounds, by the tail that is farther from 1."""
        upper_tail = low > 0
        a = np.where(upper_tail, self.log_survival(low), self.log_cdf(high))
        b = np.where(upper_tail, self.log_survival(high), self.log_cdf(low))
        with np.errstate(divide="ignore"):
            log_p = a + np.log(-np.expm1(np.minimum(b - a, 0)))
        log_p = np.maximum(log_p, -1e300)
        first, second = np.zeros(len(low)), np.zeros(len(low))
        for z, sign in ((low, -1), (high, 1)):
            inside = np.isfinite(z)
            log, slope, _ = self.density(z[inside])
            ratio = sign * np.exp(np.minimum(log - log_p[inside], _LARGEST_EXPONENT))
            first[inside] += ratio
            second[inside] += ratio * slope
        return -log_p, -first, first**2 - second


class NormalAFTLoss(AFTLoss):
    """Loss of log-normal times."""

    @staticmethod
    def density(z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        return -(z**2) / 2 - np.log(2 * np.pi) / 2, -z, -np.ones_like(z)

    @staticmethod
    def log_cdf(z: FloatArray) -> FloatArray:
        return np.asarray(special.log_ndtr(z))

    @staticmethod
    def log_survival(z: FloatArray) -> FloatArray:
        return np.asarray(special.log_ndtr(-z))

    @staticmethod
    def quantile(p: FloatArray) -> FloatArray:
        return np.asarray(special.ndtri(p))


class LogisticAFTLoss(AFTLoss):
    """Loss of log-logistic times."""

    @staticmethod
    def density(z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        slope = np.tanh(z / 2)
        return -np.abs(z) - 2 * np.log1p(np.exp(-np.abs(z))), -slope, (slope**2 - 1) / 2

    @staticmethod
    def log_cdf(z: FloatArray) -> FloatArray:
        return np.asarray(special.log_expit(z))

    @staticmethod
    def log_survival(z: FloatArray) -> FloatArray:
        return np.asarray(special.log_expit(-z))

    @staticmethod
    def quantile(p: FloatArray) -> FloatArray:
        return np.asarray(special.logit(p))


class ExtremeAFTLoss(AFTLoss):
    """Loss of Weibull times, whose logarithm has the extreme value distribution of minima."""

    @staticmethod
    def density(z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        hazard = np.exp(np.minimum(z, _LARGEST_EXPONENT))
        return z - hazard, 1 - hazard, -hazard

    @staticmethod
    def log_cdf(z: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            logs = np.log(-np.expm1(-np.exp(np.minimum(z, _LARGEST_EXPONENT))))
        return np.where(z < -_LARGEST_EXPONENT, z, logs)

    @staticmethod
    def log_survival(z: FloatArray) -> FloatArray:
        return np.where(np.isposinf(z), -np.inf, -np.exp(np.minimum(z, _LARGEST_EXPONENT)))

    @staticmethod
    def quantile(p: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(-np.log1p(-p))
