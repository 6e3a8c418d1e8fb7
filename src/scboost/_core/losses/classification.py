"""Losses of classification: the negative log-likelihood of two classes and of many."""

from __future__ import annotations

import numpy as np
from scipy import special

from scboost._arrays import FloatArray
from scboost._core.links import LogitLink, SoftmaxLink
from scboost._core.losses.base import MIN_HESSIAN, Loss
from scboost._core.statistics import weighted_mean
from scboost._runtime.communicator import SINGLE_PROCESS, Communicator

_NEAR_ONE = 0.99


class LogisticLoss(Loss):
    """Negative log-likelihood of a 0/1 target whose log-odds are the raw score."""

    n_classes = 2
    link = LogitLink()
    kernel = "logistic"
    unit_dispersion = True

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        return self.shared_initial_score(y, sample_weight, SINGLE_PROCESS)

    def shared_initial_score(
        self, y: FloatArray, sample_weight: FloatArray | None, communicator: Communicator
    ) -> FloatArray:
        p = weighted_mean(y, sample_weight, communicator)
        if p > _NEAR_ONE:  # 1 - p has lost digits
            return np.array([-special.logit(weighted_mean(1 - y, sample_weight, communicator))])
        return np.array([special.logit(p)])

    def gradient_hessian(self, y: FloatArray, raw: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = _expit(raw, np.empty_like(raw))
        return _binary_derivatives(y, p, 1 - p)

    def loss_gradient_hessian(
        self, y: FloatArray, raw: FloatArray, gradient: FloatArray, hessian: FloatArray
    ) -> FloatArray:
        p = _expit(raw, gradient)
        rest = np.subtract(1, p, out=hessian)
        # max(F, 0) - y F - log(max(p, 1 - p)): the logarithm of the other formula without its exponential
        larger = np.maximum(p[0], rest[0])
        losses = np.maximum(raw[0], 0)
        losses -= y * raw[0]
        losses -= np.log(larger, out=larger)
        _binary_derivatives(y, p, rest)
        return np.asarray(losses)

    def pointwise_loss(self, y: FloatArray, raw: FloatArray) -> FloatArray:
        # log(1 + exp(-|F|)) + (max(F, 0) - y F), for any y in [0, 1]
        losses = np.abs(raw[0])
        np.exp(np.negative(losses, out=losses), out=losses)
        losses += 1
        np.log(losses, out=losses)
        losses += np.maximum(raw[0], 0) - y * raw[0]
        return np.asarray(losses)


def _expit(raw: FloatArray, out: FloatArray) -> FloatArray:
    """Logistic function by NumPy's vectorized exponential, several times faster in float32 than SciPy's."""
    p = np.negative(raw, out=out)
    with np.errstate(over="ignore"):  # exp(-F) = inf gives the right limit, 0
        np.exp(p, out=p)
    p += 1
    return np.asarray(np.reciprocal(p, out=p))


def _binary_derivatives(y: FloatArray, p: FloatArray, rest: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gradient and Hessian from the probabilities of both classes, which are overwritten."""
    hessian = np.multiply(rest, p, out=rest)
    if hessian.min(initial=1) < MIN_HESSIAN:  # rare, and three times as fast to look for as to fix
        np.maximum(hessian, MIN_HESSIAN, out=hessian)
    return np.subtract(p, y, out=p), hessian


class SoftmaxLoss(Loss):
    """Negative log-likelihood of a class index under the softmax of K raw scores.

    A target of shape (K, n) holds the probabilities of the classes instead.

    The Hessian is ``2 p (1 - p)``, as in XGBoost: an upper bound of the diagonal that keeps K simultaneous
    steps from overshooting, and that makes two classes agree with the binary loss.

    Parameters
    ----------
    n_classes : int
        K.
    """

    link = SoftmaxLink()
    kernel = "softmax"

    def __init__(self, n_classes: int) -> None:
        self.n_outputs = self.n_classes = n_classes

    def initial_score(self, y: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
        return self.shared_initial_score(y, sample_weight, SINGLE_PROCESS)

    def shared_initial_score(
        self, y: FloatArray, sample_weight: FloatArray | None, communicator: Communicator
    ) -> FloatArray:
        counts = np.bincount(y.astype(np.intp), weights=sample_weight, minlength=self.n_outputs)
        totals = communicator.sum(counts.astype(np.float64))
        scores = np.log(totals / totals.sum())
        return np.asarray(scores - scores.mean())

    def gradient_hessian(self, y: FloatArray, raw: FloatArray) -> tuple[FloatArray, FloatArray]:
        p = special.softmax(raw, axis=0)
        hessian = 2 * p * (1 - p)
        np.maximum(hessian, MIN_HESSIAN, out=hessian)
        if y.ndim == 2:
            p -= y
        else:
            p[y.astype(np.intp), np.arange(len(y))] -= 1
        return np.asarray(p), np.asarray(hessian)

    def pointwise_loss(self, y: FloatArray, raw: FloatArray) -> FloatArray:
        chosen = np.sum(y * raw, axis=0) if y.ndim == 2 else raw[y.astype(np.intp), np.arange(len(y))]
        return np.asarray(special.logsumexp(raw, axis=0) - chosen)
