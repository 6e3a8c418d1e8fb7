"""Losses: initial score, residual, curvature, leaf step and link. They know nothing of trees.

A loss is one class, and it alone knows its number of outputs and classes, its link, the targets it is defined for and
the name of XGBoost's objective with the same link. To add one, derive from :class:`Loss`.

Raw scores ``F`` and everything derived from them have shape (K, n): K outputs, n rows. Targets are a vector of
length n: 0/1 for two classes, class numbers for many, real numbers for regression.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import special

from scboost._arrays import FloatArray, IntArray, kernels, map_blocks
from scboost.boosting.workers import quantiles, weighted_mean, workers

# A row whose probability has reached 0 or 1 in float32 has no curvature left; XGBoost uses the same floor.
_MIN_CURVATURE = 1e-16
# Targets are float32 in the loop, and so are their squares: outside of these spans they would over- or underflow.
_TARGET_SPANS = (1e-15, 1e15)
# In units of a logarithm: a leaf without any amount and without penalty would go on for ever.
_LONGEST_STEP = 30.0
# Smallest mean of a count: a diverging fit, or a fold without any count, must leave something to divide by.
_LOWEST_MEAN = np.float32(1e-30)
_NEAR_ONE = 0.99


@dataclass(frozen=True)
class Suggested:
    """Settings that suit a loss: what "auto" stands for.

    Attributes
    ----------
    gamma, nu : float
        Strength of the projection and of exploration.
    min_child_weight : float
        Smallest sum of curvatures in a leaf.
    rate : float
        Factor of the learning rate.
    """

    gamma: float = 0.5
    nu: float = 0.7
    min_child_weight: float = 1.0
    rate: float = 1.0


class Loss(ABC):
    """A differentiable loss of raw scores.

    Attributes
    ----------
    n_outputs : int
        K, the number of raw scores a row has.
    n_classes : int
        Number of classes; 0 for regression.
    link : str
        How raw scores become predictions: "logit", "softmax", "identity", "log", or "quantile" if the raw score is a
        quantile of y rather than a mean or a median.
    objective : str
        XGBoost's objective with the same link, for the native model.
    translation_invariant : bool
        Whether only the difference of target and raw score matters.
    constant_curvature : bool
        Whether the curvature is 1 everywhere.
    unit_dispersion : bool
        Whether the residual's variance is the curvature where the model is right, as for two classes. Otherwise the
        ratio of the two is measured each round, which gives exploration its scale.
    weighable : bool
        Whether weights of learners can be learnt with it, which needs curvature.
    suggested : Suggested
        Settings that suit it.
    """

    n_outputs: int = 1
    n_classes: int = 0
    link: str = "identity"
    objective: str = "reg:squarederror"
    translation_invariant: bool = False
    constant_curvature: bool = False
    unit_dispersion: bool = False
    weighable: bool = True
    suggested: Suggested = Suggested()

    def __repr__(self) -> str:
        own = ", ".join(f"{name}={getattr(self, name, '?')!r}" for name in inspect.signature(type(self)).parameters)
        return f"{type(self).__name__}({own})"

    def of_output(self, k: int) -> Loss:
        """Return the loss whose leaf steps are those of output k; itself where all outputs step alike."""
        del k
        return self

    def held_out_shift(self, y: FloatArray, F: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        """Return what held-out rows, with scores F of shape (K, n), ask to add to all scores, of shape (K,)."""
        del y, sample_weight
        return np.zeros(len(F))

    def check_target(self, y: FloatArray, name: str) -> None:
        """Raise ValueError, with the name of the target, if the loss is not defined for y of shape (n,)."""
        del y, name

    @abstractmethod
    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        """Return the constant raw score of shape (K,) that minimises the mean loss."""

    @abstractmethod
    def residual(self, y: FloatArray, F: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the negative gradient and the curvature per row, both of the shape of F."""

    @abstractmethod
    def row_losses(self, y: FloatArray, F: FloatArray) -> FloatArray:
        """Return the loss of each row, of shape (n,)."""

    @abstractmethod
    def inverse_link(self, F: FloatArray) -> FloatArray:
        """Turn raw scores into predictions: probabilities of shape (n, classes) or values of shape (n,)."""

    def evaluate(self, y: FloatArray, F: FloatArray, r: FloatArray, curvature: FloatArray) -> FloatArray:
        """Set residual and curvature, and return the loss of each row; override it where the three share work."""
        r[:], curvature[:] = self.residual(y, F)
        return self.row_losses(y, F)

    def mean(self, y: FloatArray, F: FloatArray, sample_weight: FloatArray | None = None) -> float:
        """Return the weighted mean loss, summed in float64 over blocks that stay in cache."""

        def add_up(rows: slice) -> tuple[float, float]:
            return _loss_sums(self.row_losses(y[rows], F[:, rows]), sample_weight, rows)

        return _quotient(map_blocks(add_up, len(y)))()

    def derivatives(
        self, y: FloatArray, F: FloatArray, sample_weight: FloatArray | None, r: FloatArray, curvature: FloatArray
    ) -> Callable[[], float]:
        """Set residual and curvature, of the shape of F, and return a function for the weighted mean loss, in one pass.

        The mean is known with the next sums over all workers.
        """

        def go(rows: slice) -> tuple[float, float]:
            losses = self.evaluate(y[rows], F[:, rows], r[:, rows], curvature[:, rows])
            return _loss_sums(losses, sample_weight, rows)

        return _quotient(map_blocks(go, len(y)))

    def leaf_steps(
        self,
        leaf: IntArray,
        n_leaves: int,
        y: FloatArray,
        F: FloatArray,
        r: FloatArray,
        curvature: FloatArray,
        sample_weight: FloatArray | None,
        l2: float,
        l1: float = 0.0,
    ) -> Callable[[], FloatArray]:
        """Return a function for the best step s of each leaf, of shape (n_leaves,), for one output.

        It minimises the loss under the penalty ``l2 s^2 / 2 + l1 |s|``. The default is a Newton step: ``sum(r) /
        (sum(curvature) + l2)`` over the rows of the leaf, without ``l1``. The steps are known with the next sums over
        all workers.

        Parameters
        ----------
        leaf : ndarray of shape (n,)
            Leaf of each row.
        n_leaves : int
            Number of leaves.
        y, F, r, curvature : ndarray of shape (n,)
            Target, raw score, residual and curvature.
        sample_weight : ndarray of shape (n,) or None
            Row weights.
        l2 : float
            Added to the curvature of every leaf.
        l1 : float, default=0.0
            By so much the sum of residuals of every leaf comes closer to 0, which it does not cross.
        """
        del y, F
        return newton_steps(leaf, n_leaves, r, curvature, sample_weight, l2, l1)


def newton_steps(
    leaf: IntArray,
    n_leaves: int,
    r: FloatArray,
    curvature: FloatArray,
    sample_weight: FloatArray | None,
    l2: float,
    l1: float = 0.0,
) -> Callable[[], FloatArray]:
    """``sum(r) / (sum(curvature) + l2)`` over the rows of each leaf, the sum of r less ``l1``; 0 without curvature."""
    sums = workers().sum_later(leaf_sums(leaf, n_leaves, (r, curvature), sample_weight))

    def steps() -> FloatArray:
        G, D = sums()
        G, D = G - np.clip(G, -l1, l1) if l1 else G, D + l2
        return np.asarray(np.divide(G, D, out=np.zeros(n_leaves), where=D > 0))

    return steps


def leaf_sums(
    leaf: IntArray, n_leaves: int, vectors: Sequence[FloatArray], sample_weight: FloatArray | None
) -> FloatArray:
    """Weighted sums of vectors in each leaf, of shape (vectors, n_leaves), in float64.

    By blocks, whose conversion stays in cache.
    """

    def add_up(rows: slice) -> FloatArray:
        weight = None if sample_weight is None else sample_weight[rows]
        weighted = [v[rows] if weight is None else v[rows] * weight for v in vectors]
        if compiled is not None and len(weighted) == 2:
            pair = np.zeros((2, n_leaves))
            compiled.leaf_sums(leaf[rows], *weighted, pair)
            return pair
        numbers = leaf[rows].astype(np.intp, copy=False)
        return np.array([np.bincount(numbers, weights=v, minlength=n_leaves) for v in weighted])

    compiled = kernels(leaf)
    sums = np.zeros((len(vectors), n_leaves))
    for block in map_blocks(add_up, len(leaf)):
        sums += block
    return sums


def _loss_sums(losses: FloatArray, sample_weight: FloatArray | None, rows: slice) -> tuple[float, float]:
    """Sum of a block's losses times weights, and of its weights."""
    if sample_weight is None:
        return float(losses.sum(dtype=np.float64)), float(len(losses))
    weight = sample_weight[rows]
    return float(losses @ weight), float(weight.sum())


def _quotient(sums: Sequence[tuple[float, float]]) -> Callable[[], float]:
    """Return a function for the quotient of the totals of pairs, those of other workers included."""
    totals = workers().sum_later(np.array([sum(total for total, _ in sums), sum(weight for _, weight in sums)]))

    def quotient() -> float:
        total, weight = totals()
        return float(total / weight)

    return quotient


def is_built_in(loss: Loss) -> bool:
    """Whether a loss is one of these here, which know of workers and which files hold, and not the user's own."""
    return type(loss).__module__ == Loss.__module__


class LogisticLoss(Loss):
    """Negative log-likelihood of a 0/1 target whose log-odds are the raw score."""

    n_classes = 2
    link = "logit"
    objective = "binary:logistic"
    unit_dispersion = True

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        p = weighted_mean(y, sample_weight)
        if p > _NEAR_ONE:  # it has lost digits of what is missing to 1
            return np.array([-special.logit(weighted_mean(1 - y, sample_weight))])
        return np.array([special.logit(p)])

    def residual(self, y: FloatArray, F: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = _expit(F, np.empty_like(F))
        return _binary_derivatives(y, p, 1 - p)

    def evaluate(self, y: FloatArray, F: FloatArray, r: FloatArray, curvature: FloatArray) -> FloatArray:
        compiled = kernels()
        if compiled is not None and F.dtype == np.float32:
            e = np.negative(F[0])
            larger, losses = np.empty_like(e), np.empty_like(e)
            compiled.logistic(y, F[0], np.exp(e, out=e), r[0], curvature[0], larger, losses)
            losses -= np.log(larger, out=larger)
            return np.asarray(losses)
        p = _expit(F, r)
        rest = np.subtract(1, p, out=curvature)
        # max(F, 0) - y F - log(max(p, 1 - p)): the logarithm of the other formula without its exponential
        larger = np.maximum(p[0], rest[0])
        losses = np.maximum(F[0], 0)
        losses -= y * F[0]
        losses -= np.log(larger, out=larger)
        _binary_derivatives(y, p, rest)
        return np.asarray(losses)

    def row_losses(self, y: FloatArray, F: FloatArray) -> FloatArray:
        # log(1 + exp(-|F|)) + (max(F, 0) - y F), for any y in [0, 1]
        losses = np.abs(F[0])
        np.exp(np.negative(losses, out=losses), out=losses)
        losses += 1
        np.log(losses, out=losses)
        losses += np.maximum(F[0], 0) - y * F[0]
        return np.asarray(losses)

    def inverse_link(self, F: FloatArray) -> FloatArray:
        p = special.expit(F[0])
        return np.stack([1 - p, p], axis=1)


def _expit(F: FloatArray, out: FloatArray) -> FloatArray:
    """Logistic function by NumPy's vectorised exponential, several times faster in float32 than SciPy's."""
    p = np.negative(F, out=out)
    with np.errstate(over="ignore"):  # exp(-F) = inf gives the right limit, 0
        np.exp(p, out=p)
    p += 1
    return np.asarray(np.reciprocal(p, out=p))


def _binary_derivatives(y: FloatArray, p: FloatArray, rest: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Residual and curvature from the probabilities of both classes, which are overwritten."""
    curvature = np.multiply(rest, p, out=rest)
    if curvature.min(initial=1) < _MIN_CURVATURE:  # seldom, and three times as fast to look for as to mend
        np.maximum(curvature, _MIN_CURVATURE, out=curvature)
    return np.subtract(y, p, out=p), curvature


class SoftmaxLoss(Loss):
    """Negative log-likelihood of a class number under the softmax of K raw scores.

    A target of shape (K, n) holds the probabilities of the classes instead.

    The curvature is ``2 p (1 - p)``, as in XGBoost: an upper bound of the diagonal that keeps K simultaneous
    steps from overshooting, and that makes two classes agree with the binary loss.

    Parameters
    ----------
    n_classes : int
        K.
    """

    link = "softmax"
    objective = "multi:softprob"

    def __init__(self, n_classes: int) -> None:
        self.n_outputs = self.n_classes = n_classes

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        counts = np.bincount(y.astype(np.intp), weights=sample_weight, minlength=self.n_outputs)
        totals = workers().sum(counts.astype(np.float64))
        scores = np.log(totals / totals.sum())
        return np.asarray(scores - scores.mean())

    def residual(self, y: FloatArray, F: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = special.softmax(F, axis=0)
        curvature = 2 * p * (1 - p)
        np.maximum(curvature, _MIN_CURVATURE, out=curvature)
        np.negative(p, out=p)
        if y.ndim == 2:
            p += y
        else:
            p[y.astype(np.intp), np.arange(len(y))] += 1
        return np.asarray(p), np.asarray(curvature)

    def row_losses(self, y: FloatArray, F: FloatArray) -> FloatArray:
        chosen = np.sum(y * F, axis=0) if y.ndim == 2 else F[y.astype(np.intp), np.arange(len(y))]
        return np.asarray(special.logsumexp(F, axis=0) - chosen)

    def inverse_link(self, F: FloatArray) -> FloatArray:
        return np.ascontiguousarray(special.softmax(F, axis=0).T)


class _RegressionLoss(Loss):
    """A loss of one real raw score with the identity link."""

    translation_invariant = True
    constant_curvature = True
    suggested = Suggested(gamma=0.7, nu=0.3)

    def check_target(self, y: FloatArray, name: str) -> None:
        _check_span(y, name)

    def inverse_link(self, F: FloatArray) -> FloatArray:
        return np.asarray(F[0])


class SquaredLoss(_RegressionLoss):
    """Half the squared error."""

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        return np.array([weighted_mean(y, sample_weight)])

    def residual(self, y: FloatArray, F: FloatArray) -> tuple[FloatArray, FloatArray]:
        return y - F, np.ones_like(F)

    def row_losses(self, y: FloatArray, F: FloatArray) -> FloatArray:
        return np.asarray((y - F[0]) ** 2 / 2)


class QuantileLoss(_RegressionLoss):
    """Pinball loss; half the absolute error at the median.

    Its curvature is zero, so trees are grown on the sign of the residual with unit curvature and a leaf steps
    to the quantile of its rows' residuals.

    Parameters
    ----------
    quantile : float in (0, 1), default=0.5
        The quantile that is estimated.
    """

    weighable = False

    def __init__(self, quantile: float = 0.5) -> None:
        self.quantile = quantile
        self.link = "identity" if quantile == 0.5 else "quantile"
        # Its residuals are signs, which say nothing of the size of a step that history could take: nothing to project.
        # A leaf needs rows enough on either side of its quantile.
        few = 2 / min(quantile, 1 - quantile)
        self.suggested = Suggested(gamma=0.0, nu=0.0, min_child_weight=max(20.0, few), rate=2.0)

    def held_out_shift(self, y: FloatArray, F: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        return self.initial_score(y - F[0], sample_weight)  # training rows lie closer to their scores than others do

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        one_leaf = np.zeros(len(y), dtype=np.intp)
        return _leaf_quantiles(one_leaf, 1, np.asarray(y, dtype=np.float64), sample_weight, self.quantile)

    def residual(self, y: FloatArray, F: FloatArray) -> tuple[FloatArray, FloatArray]:
        r = np.where(y > F, self.quantile, self.quantile - 1).astype(F.dtype)
        r[y == F] = 0
        return r, np.ones_like(F)

    def row_losses(self, y: FloatArray, F: FloatArray) -> FloatArray:
        e = y - F[0]
        return np.asarray(np.maximum(self.quantile * e, (self.quantile - 1) * e))

    def leaf_steps(
        self,
        leaf: IntArray,
        n_leaves: int,
        y: FloatArray,
        F: FloatArray,
        r: FloatArray,
        curvature: FloatArray,
        sample_weight: FloatArray | None,
        l2: float,
        l1: float = 0.0,
    ) -> Callable[[], FloatArray]:
        del r, curvature, l2, l1
        return lambda: _leaf_quantiles(leaf, n_leaves, y - F, sample_weight, self.quantile)


class HuberLoss(_RegressionLoss):
    """Squared error for small residuals, absolute error for large ones.

    Parameters
    ----------
    delta : float
        The residual at which one turns into the other, in units of the target.
    """

    def __init__(self, delta: float) -> None:
        self.delta = delta

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        F = QuantileLoss(0.5).initial_score(y, sample_weight)
        n = float(workers().sum(np.array(float(len(y)))))
        for _ in range(100):
            r, _ = self.residual(y, np.full((1, len(y)), F[0]))
            inside = weighted_mean(np.abs(y - F[0]) <= self.delta, sample_weight)
            step = weighted_mean(r[0], sample_weight) / max(inside, 1 / n)
            F += step
            if abs(step) <= 1e-12 * self.delta:
                break
        return F

    def residual(self, y: FloatArray, F: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.clip(y - F, -self.delta, self.delta), np.ones_like(F)

    def row_losses(self, y: FloatArray, F: FloatArray) -> FloatArray:
        return np.asarray(special.huber(self.delta, y - F[0]))


def _log_mean(y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
    return np.array([np.log(max(weighted_mean(y, sample_weight), float(_LOWEST_MEAN)))])


class PoissonLoss(Loss):
    """Negative log-likelihood of a count whose log-mean is the raw score, up to a constant of the target."""

    link = "log"
    objective = "count:poisson"
    suggested = Suggested(gamma=0.7, nu=0.3)

    def check_target(self, y: FloatArray, name: str) -> None:
        if (y < 0).any():
            raise ValueError(f"loss='poisson' needs {name} >= 0, got {y.min():g}.")
        _check_span(y, name)

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        return _log_mean(y, sample_weight)

    def residual(self, y: FloatArray, F: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean = np.exp(F)
        return y - mean, np.maximum(mean, _LOWEST_MEAN)

    def row_losses(self, y: FloatArray, F: FloatArray) -> FloatArray:
        return np.asarray(np.exp(F[0]) - y * F[0])

    def inverse_link(self, F: FloatArray) -> FloatArray:
        return np.asarray(np.exp(F[0]))

    def leaf_steps(
        self,
        leaf: IntArray,
        n_leaves: int,
        y: FloatArray,
        F: FloatArray,
        r: FloatArray,
        curvature: FloatArray,
        sample_weight: FloatArray | None,
        l2: float,
        l1: float = 0.0,
    ) -> Callable[[], FloatArray]:
        """Minimise the penalised loss of each leaf exactly: far below the counts, a Newton step explodes.

        The step s solves ``sum(mean) exp(s) + l2 s = sum(y)``, an increasing convex equation that Newton's method
        solves from above; ``l1`` brings the sum of counts closer to that of the means.
        """
        del F, r
        w = 1 if sample_weight is None else sample_weight
        parts = [np.bincount(leaf, weights=v * w, minlength=n_leaves) for v in (y, curvature)]
        sums = workers().sum_later(np.array(parts))

        def steps() -> FloatArray:
            Y, S = sums()
            Y = Y - np.clip(Y - S, -l1, l1)
            filled = S > 0
            s = np.log(np.maximum(np.divide(Y, S, out=np.ones(n_leaves), where=filled), 1))
            for _ in range(30):  # a leaf without counts and without penalty would go on for ever
                slope = S * np.exp(s)
                s -= np.divide(slope + l2 * s - Y, slope + l2, out=np.zeros(n_leaves), where=filled)
            return np.asarray(s)

        return steps


def _check_span(y: FloatArray, name: str) -> None:
    """Refuse targets whose differences cannot be squared in float32, the type of the loop."""
    span, (low, high) = float(np.ptp(y)) if len(y) else 0.0, _TARGET_SPANS
    if span and not low < span < high:
        raise ValueError(f"{name} spans {span:.3g}; rescale it to span between {low:g} and {high:g}.")


def _leaf_quantiles(
    leaf: IntArray, n_leaves: int, e: FloatArray, sample_weight: FloatArray | None, quantile: float
) -> FloatArray:
    """Weighted quantile of e in each leaf: where the cumulative weight crosses its share, by the mid-point rule.

    Rows of equal weight w behave as w repeated rows; an empty leaf steps by 0.
    """
    if workers().size > 1:
        return quantiles(e, sample_weight, leaf, n_leaves, quantile)
    order = np.lexsort((e, leaf))
    e = np.asarray(e, dtype=np.float64)[order]
    w = np.ones(len(e)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[order]
    bounds = np.searchsorted(leaf[order], np.arange(n_leaves + 1))
    steps = np.zeros(n_leaves)
    for j, (start, stop) in enumerate(pairwise(bounds)):
        if stop > start:
            cumulative = np.cumsum(w[start:stop])
            share = quantile * cumulative[-1]
            low = np.searchsorted(cumulative, share * (1 - 1e-12))
            high = np.searchsorted(cumulative, share * (1 + 1e-12), side="right")
            steps[j] = (e[start + low] + e[start + min(high, stop - start - 1)]) / 2
    return steps


class TweedieLoss(Loss):
    """Half the Tweedie deviance of a target of at least 0, which it often is, up to a constant of the target.

    The raw score is the logarithm of the mean; the variance is a multiple of its ``power``.

    Parameters
    ----------
    power : float in (1, 2), default=1.5
        Power of the variance: near 1 as for counts, near 2 as for positive quantities.
    """

    link = "log"
    objective = "count:poisson"  # whose link it has; the native model needs no more
    suggested = Suggested(gamma=0.7, nu=0.3)

    def __init__(self, power: float = 1.5) -> None:
        if not 1 < power < 2:
            raise ValueError(f"power={power!r} of the Tweedie loss must be between 1 and 2; use poisson or gamma.")
        self.power = power

    def check_target(self, y: FloatArray, name: str) -> None:
        if (y < 0).any():
            raise ValueError(f"loss='tweedie' needs {name} >= 0, got {y.min():g}.")

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        return _log_mean(y, sample_weight)

    def residual(self, y: FloatArray, F: FloatArray) -> tuple[FloatArray, FloatArray]:
        pull, push = self._forces(y, F)
        return pull - push, np.maximum((self.power - 1) * pull + (2 - self.power) * push, _MIN_CURVATURE)

    def _forces(self, y: FloatArray, F: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what raises a score and what lowers it; their difference is the residual."""
        p = F.dtype.type(self.power)
        return y * np.exp((1 - p) * F), np.exp((2 - p) * F)

    def row_losses(self, y: FloatArray, F: FloatArray) -> FloatArray:
        pull, push = self._forces(y, F[0])
        return np.asarray(pull / (self.power - 1) + push / (2 - self.power))

    def inverse_link(self, F: FloatArray) -> FloatArray:
        return np.asarray(np.exp(F[0]))

    def leaf_steps(
        self,
        leaf: IntArray,
        n_leaves: int,
        y: FloatArray,
        F: FloatArray,
        r: FloatArray,
        curvature: FloatArray,
        sample_weight: FloatArray | None,
        l2: float,
        l1: float = 0.0,
    ) -> Callable[[], FloatArray]:
        """Minimise the penalised loss of each leaf exactly: far from the target, a Newton step explodes.

        The step s solves ``A exp((1 - p) s) - B exp((2 - p) s) = l2 s + l1 sign(s)``, whose left side falls: its root
        lies between 0 and ``log(A / B)``, where the penalties have no say.
        """
        del r, curvature
        sums = workers().sum_later(leaf_sums(leaf, n_leaves, self._forces(y, F), sample_weight))

        def steps() -> FloatArray:
            A, B = sums()
            ends = np.zeros(n_leaves)
            filled = B > 0
            with np.errstate(divide="ignore"):
                ends[filled] = np.clip(np.log(A[filled] / B[filled]), -_LONGEST_STEP, _LONGEST_STEP)
            pull_back = np.clip(A - B, -l1, l1)
            near, far = np.zeros(n_leaves), ends
            for _ in range(60):
                middle = (near + far) / 2
                slope = A * np.exp((1 - self.power) * middle) - B * np.exp((2 - self.power) * middle)
                beyond = (slope - l2 * middle - pull_back) * ends < 0
                near, far = np.where(beyond, near, middle), np.where(beyond, middle, far)
            return (near + far) / 2

        return steps


class GammaLoss(TweedieLoss):
    """Half the gamma deviance of a positive target, whose log-mean is the raw score, up to a constant of the target."""

    def __init__(self) -> None:
        self.power = 2.0

    def check_target(self, y: FloatArray, name: str) -> None:
        if (y <= 0).any():
            raise ValueError(f"loss='gamma' needs {name} > 0, got {y.min():g}.")

    def row_losses(self, y: FloatArray, F: FloatArray) -> FloatArray:
        return np.asarray(y * np.exp(-F[0]) + F[0])


class ExpectileLoss(_RegressionLoss):
    """Squared error that weighs rows above their score by the expectile, those below by the rest.

    The expectile 0.5 is the mean.

    Parameters
    ----------
    expectile : float in (0, 1)
        The expectile that is estimated.
    """

    constant_curvature = False

    def __init__(self, expectile: float) -> None:
        if not 0 < expectile < 1:
            raise ValueError(f"expectile={expectile!r} must be between 0 and 1.")
        self.expectile = expectile
        self.link = "identity" if expectile == 0.5 else "quantile"

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        F = np.array([weighted_mean(y, sample_weight)])
        largest = float(workers().max(np.abs(y).max(initial=0)))
        for _ in range(100):  # each step is exact unless it changes on which side rows lie
            w = self._weights(y, F) * (1 if sample_weight is None else sample_weight)
            step = weighted_mean(y, w) - F[0]
            F += step
            if abs(step) <= 1e-14 * largest:
                break
        return F

    def _weights(self, y: FloatArray, F: FloatArray) -> FloatArray:
        return np.asarray(np.where(y > F, 2 * self.expectile, 2 - 2 * self.expectile))

    def residual(self, y: FloatArray, F: FloatArray) -> tuple[FloatArray, FloatArray]:
        w = self._weights(y, F).astype(F.dtype)
        return w * (y - F), w

    def row_losses(self, y: FloatArray, F: FloatArray) -> FloatArray:
        return np.asarray(self._weights(y, F[0]) * (y - F[0]) ** 2 / 2)


class QuantilesLoss(_RegressionLoss):
    """Sum of the pinball losses of several quantiles, one output each; predictions are sorted, so that none cross.

    Parameters
    ----------
    quantiles : sequence of float in (0, 1)
        Rising.
    """

    weighable = False
    link = "quantile"

    def __init__(self, quantiles: Sequence[float]) -> None:
        self.quantiles = [float(q) for q in quantiles]
        bounds = [0.0, *self.quantiles, 1.0]
        if len(self.quantiles) < 2 or any(low >= high for low, high in pairwise(bounds)):
            raise ValueError(f"quantiles={self.quantiles!r} must be two or more, rising, between 0 and 1.")
        self.n_outputs = len(self.quantiles)
        self._losses = [QuantileLoss(q) for q in self.quantiles]
        self.suggested = max((loss.suggested for loss in self._losses), key=lambda s: s.min_child_weight)

    def of_output(self, k: int) -> Loss:
        return self._losses[k]

    def held_out_shift(self, y: FloatArray, F: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        shifts = [loss.held_out_shift(y, F[k : k + 1], sample_weight) for k, loss in enumerate(self._losses)]
        return np.concatenate(shifts)

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        return np.concatenate([loss.initial_score(y, sample_weight) for loss in self._losses])

    def residual(self, y: FloatArray, F: FloatArray) -> tuple[FloatArray, FloatArray]:
        parts = [loss.residual(y, F[k : k + 1])[0] for k, loss in enumerate(self._losses)]
        return np.concatenate(parts), np.ones_like(F)

    def row_losses(self, y: FloatArray, F: FloatArray) -> FloatArray:
        return np.asarray(np.sum([loss.row_losses(y, F[k : k + 1]) for k, loss in enumerate(self._losses)], axis=0))

    def inverse_link(self, F: FloatArray) -> FloatArray:
        return np.ascontiguousarray(np.sort(F, axis=0).T)
