"""Checks of a user-defined loss before the first round."""

from __future__ import annotations

import numpy as np

from scboost._arrays import FloatArray
from scboost._core.losses.base import Loss

_MOST_SAMPLES = 64
_STEP = 1e-4


def check_loss(loss: Loss, y: FloatArray, sample_weight: FloatArray | None) -> None:
    """Raise ValueError if shapes, signs or values of a loss are wrong on a few of the targets.

    Parameters
    ----------
    loss : Loss
        The loss.
    y : ndarray of shape (n,)
        Targets.
    sample_weight : ndarray of shape (n,) or None
        Sample weights.
    """
    if not len(y):
        return
    chosen = np.linspace(0, len(y) - 1, min(len(y), _MOST_SAMPLES)).astype(np.intp)
    targets = np.asarray(y[chosen], dtype=np.float64)
    n = len(targets)
    start = _checked(loss, "initial_score", loss.initial_score(y, sample_weight), (1,))
    raw = np.repeat(start[:, None], n, axis=1)
    derivatives = loss.gradient_hessian(targets, raw)
    if not isinstance(derivatives, tuple | list) or len(derivatives) != 2:
        raise ValueError(f"loss={loss!r}: gradient_hessian must return a pair, got {type(derivatives).__name__}.")
    gradient = _checked(loss, "gradient_hessian (gradient)", derivatives[0], (1, n))
    hessian = _checked(loss, "gradient_hessian (Hessian)", derivatives[1], (1, n))
    if hessian.min() < 0:
        raise ValueError(
            f"loss={loss!r}: the Hessian is {hessian.min():.3g} at the initial score; it must not be negative, or "
            "Newton steps would increase the loss."
        )
    step = _STEP * max(1.0, float(np.abs(start[0])))
    above, below = (
        _checked(loss, "pointwise_loss", loss.pointwise_loss(targets, raw + shift), (n,)) for shift in (step, -step)
    )
    slope = (above - below) / (2 * step)
    agreement = float(slope @ gradient[0])
    if agreement < -0.01 * float(np.linalg.norm(slope) * np.linalg.norm(gradient)):
        raise ValueError(
            f"loss={loss!r}: gradient_hessian returns a gradient of the opposite sign of the slope of pointwise_loss; "
            "return the derivative of the loss with respect to the raw score, not the residual."
        )


def _checked(loss: Loss, method: str, value: object, shape: tuple[int, ...]) -> FloatArray:
    array: FloatArray = np.asarray(value, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"loss={loss!r}: {method} must return an array of shape {shape}, got {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"loss={loss!r}: {method} is not finite at the initial score.")
    return array
