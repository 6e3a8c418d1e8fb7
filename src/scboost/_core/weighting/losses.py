"""Losses as functions of the margin, the interface of the weighting solver, and adapters of the boosting losses."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import special

from scboost._core.losses import CoupledLoss, LogisticLoss, Loss, SquaredLoss

Array = npt.NDArray[np.float64]


class MarginLoss(Protocol):
    """A convex loss of the margins F of m samples, of shape (m,), or (m, K) for K outputs."""

    def check(self, y: Array, *, intercept: bool) -> None:
        """Raise ValueError if `y` is out of range, or if the optimal intercept would be infinite."""

    def value(self, y: Array, F: Array) -> Array:
        """Return the loss of each sample, of shape (m,)."""

    def gradient(self, y: Array, F: Array) -> Array:
        """Return the first derivatives with respect to the margins, of the shape of F."""

    def hessian(self, y: Array, F: Array) -> Array:
        """Return second derivatives c with respect to the margins, or upper bounds; non-negative, of the shape of F.

        For several outputs the Hessian matrix of a sample is ``diag(c) - c c' / sum(c)``: the loss is invariant under a
        common shift of all outputs.
        """


def margin_loss(loss: Loss, unit: float = 1.0) -> MarginLoss:
    """Return a boosting loss as a loss of margins.

    Parameters
    ----------
    loss : Loss
        A loss with a Hessian: not a quantile or the absolute error. Targets are those of the loss; in classification
        they may also be probabilities, of shape (m,) for two classes and (m, K) for more.
    unit : float, default=1
        Scale that the loss is divided by.

    Returns
    -------
    MarginLoss
    """
    if not loss.supports_weighting:
        raise ValueError(
            f"Tree weights need a loss with a Hessian, which {loss!r} does not have; leave the trees unweighted or use "
            "another loss."
        )
    return (_LogisticMargin if isinstance(loss, LogisticLoss) else _Margin)(loss, unit)


class _Margin:
    """A boosting loss, divided by its scale, with the outputs as the last axis."""

    def __init__(self, loss: Loss, unit: float) -> None:
        self._loss, self._unit = loss, unit

    def check(self, y: Array, *, intercept: bool) -> None:
        """Accept all targets: the loss has checked their range."""

    def value(self, y: Array, F: Array) -> Array:
        return np.asarray(self._loss.pointwise_loss(y.T, np.atleast_2d(F.T)) / self._unit, np.float64)

    def gradient(self, y: Array, F: Array) -> Array:
        return self._of_shape(F, self._loss.gradient_hessian(y.T, np.atleast_2d(F.T))[0]) / self._unit

    def hessian(self, y: Array, F: Array) -> Array:
        if F.ndim == 2:  # softmax: the Hessian matrix is diag(p) - p p', and the loss's own Hessian an upper bound
            return np.asarray(self._loss.link.inverse(F.T) / self._unit, np.float64)
        return self._of_shape(F, self._loss.gradient_hessian(y.T, np.atleast_2d(F.T))[1]) / self._unit

    @staticmethod
    def _of_shape(F: Array, values: npt.NDArray[Any]) -> Array:
        return np.asarray(values.T, np.float64).reshape(F.shape)


class _LogisticMargin(_Margin):
    """The logistic loss, with derivatives that are accurate for large margins; the boosting loss is faster."""

    def check(self, y: Array, *, intercept: bool) -> None:
        wrong = y[(y < 0) | (y > 1)]
        if wrong.size:
            raise ValueError(f"y must contain only 0 and 1, or probabilities, for the logistic loss, got {wrong[0]!r}")
        if intercept and (y.min() == 1 or y.max() == 0):
            raise ValueError(
                f"y must contain both 0 and 1 where sample_weight > 0 if intercept=True, got only {y[0]:g}: "
                "the best intercept is infinite"
            )

    def gradient(self, y: Array, F: Array) -> Array:
        return np.asarray((1 - y) * special.expit(F) - y * special.expit(-F)) / self._unit

    def hessian(self, y: Array, F: Array) -> Array:
        del y
        return np.asarray(special.expit(F) * special.expit(-F)) / self._unit


class TargetedMargin:
    """A loss of survival times, with its targets: two columns of targets are one output.

    Parameters
    ----------
    loss : Loss
        Convex in the raw scores.
    target : ndarray of shape (m, 2)
        Targets, in place of those that the solver passes.
    """

    def __init__(self, loss: Loss, target: Array) -> None:
        self._loss, self._target = loss, target

    def check(self, y: Array, *, intercept: bool) -> None:
        """Accept all targets: the loss has checked their range."""

    def value(self, y: Array, F: Array) -> Array:
        del y
        return np.asarray(self._loss.pointwise_loss(self._target, F[None]), np.float64)

    def gradient(self, y: Array, F: Array) -> Array:
        del y
        return np.asarray(self._loss.exact_gradient(self._target, F[None])[0], np.float64)

    def hessian(self, y: Array, F: Array) -> Array:
        del y
        return np.asarray(self._loss.gradient_hessian(self._target, F[None])[1][0], np.float64)


class CoupledMargin:
    """A loss that couples samples, with targets and weights; a shift of all margins does not change it.

    Parameters
    ----------
    loss : CoupledLoss
        Convex in the raw scores.
    target : ndarray of shape (m, 2)
        Targets, in place of those that the solver passes.
    sample_weight : ndarray of shape (m,) or None
        The solver's weights, on which the loss of each sample depends.
    """

    def __init__(self, loss: CoupledLoss, target: Array, sample_weight: Array | None) -> None:
        self._loss, self._target, self._weight = loss, target, sample_weight

    def check(self, y: Array, *, intercept: bool) -> None:
        """Accept all targets: the loss has checked their range."""

    def value(self, y: Array, F: Array) -> Array:
        del y
        return np.asarray(self._loss.derivatives(self._target, F[None], self._weight)[0], np.float64)

    def gradient(self, y: Array, F: Array) -> Array:
        del y
        return np.asarray(self._loss.derivatives(self._target, F[None], self._weight)[1][0], np.float64)

    def hessian(self, y: Array, F: Array) -> Array:
        """Return the diagonal; the solver uses :meth:`hessian_product`."""
        del y
        return np.asarray(self._loss.derivatives(self._target, F[None], self._weight)[2][0], np.float64)

    def hessian_product(self, F: Array, V: Array) -> Array:
        """Return the Hessian of the weighted sum of the losses, applied to V of shape (m, T)."""
        return np.asarray(self._loss.hessian_product(self._target, F[None], self._weight, V), np.float64)


LOGISTIC = margin_loss(LogisticLoss())
SQUARED_ERROR = margin_loss(SquaredLoss())
