"""Losses of a margin: what the solver needs to know of a loss, and the boosting losses in that form."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import special

from scboost._core.losses import LogisticLoss, Loss, SquaredLoss

Array = npt.NDArray[np.float64]


class MarginLoss(Protocol):
    """A convex loss of the margins F of m rows, of shape (m,), or (m, K) for K outputs a row."""

    def check(self, y: Array, *, intercept: bool) -> None:
        """Raise ValueError if `y` is not allowed, or if it leaves a free intercept without optimum."""

    def value(self, y: Array, F: Array) -> Array:
        """Loss of every row, of shape (m,)."""

    def gradient(self, y: Array, F: Array) -> Array:
        """First derivatives by the margins, of the shape of F."""

    def hessian(self, y: Array, F: Array) -> Array:
        """Second derivatives c by the margins, or upper bounds; non-negative, of the shape of F.

        For several outputs the matrix of a row's second derivatives is ``diag(c) - c c' / sum(c)``: a loss that does
        not change when all outputs of a row are shifted by the same amount.
        """


def margin_loss(loss: Loss, unit: float = 1.0) -> MarginLoss:
    """Turn a boosting loss into a loss of margins.

    Parameters
    ----------
    loss : Loss
        With a Hessian, which rules out quantiles and the absolute error. Targets are those of the loss; in
        classification they may also be probabilities, of shape (m,) for two classes and (m, K) for many.
    unit : float, default=1
        What to divide the loss by.

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
    """A boosting loss, divided by its unit, with the outputs as the last axis."""

    def __init__(self, loss: Loss, unit: float) -> None:
        self._loss, self._unit = loss, unit

    def check(self, y: Array, *, intercept: bool) -> None:
        """Accept every target: the loss itself knows its range."""

    def value(self, y: Array, F: Array) -> Array:
        return np.asarray(self._loss.pointwise_loss(y.T, np.atleast_2d(F.T)) / self._unit, np.float64)

    def gradient(self, y: Array, F: Array) -> Array:
        return self._of_shape(F, self._loss.gradient_hessian(y.T, np.atleast_2d(F.T))[0]) / self._unit

    def hessian(self, y: Array, F: Array) -> Array:
        if (
            F.ndim == 2
        ):  # the softmax, whose second derivatives are diag(p) - pp'; its Hessian is a bound of the diagonal
            return np.asarray(self._loss.link.inverse(F.T) / self._unit, np.float64)
        return self._of_shape(F, self._loss.gradient_hessian(y.T, np.atleast_2d(F.T))[1]) / self._unit

    @staticmethod
    def _of_shape(F: Array, values: npt.NDArray[Any]) -> Array:
        return np.asarray(values.T, np.float64).reshape(F.shape)


class _LogisticMargin(_Margin):
    """The logistic loss, with derivatives that lose no digit far from zero: boosting trades those for speed."""

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

    def hessian(self, y: Array, F: Array) -> Array:  # noqa: ARG002 - the interface's signature
        return np.asarray(special.expit(F) * special.expit(-F)) / self._unit


LOGISTIC = margin_loss(LogisticLoss())
SQUARED_ERROR = margin_loss(SquaredLoss())
