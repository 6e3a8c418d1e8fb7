"""All rules behind "auto": default values that depend on the loss and the data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scboost._core.losses import Loss, SquaredLoss

FAST_ROUNDS = 100
"""Rounds of ``preset="fast"``."""
LARGEST_RATE = 0.5
"""Largest learning rate that "auto" returns."""


@dataclass(frozen=True)
class LossDefaults:
    """Default values that depend on the loss.

    Attributes
    ----------
    projection_strength, exploration : float
        Strength of the projection and of exploration.
    min_child_weight : float
        Minimum sum of Hessians in a leaf.
    rate : float
        Factor of the learning rate where the number of rounds is selected.
    """

    projection_strength: float
    exploration: float
    min_child_weight: float = 1.0
    rate: float = 1.0


def loss_defaults(loss: Loss) -> LossDefaults:
    """Return the default values for a loss."""
    quantiles = [loss.output(k).residual_quantile for k in range(loss.n_outputs)]
    extremes = [min(q, 1 - q) for q in quantiles if q is not None]
    if extremes:
        # Gradients are signs, which do not tell the size of a step that history could take: nothing to project. A leaf
        # needs enough samples on either side of its quantile.
        return LossDefaults(0.0, 0.0, min_child_weight=max(20.0, 2 / min(extremes)), rate=2.0)
    if loss.n_classes or not _derives_from_built_in(loss):
        return LossDefaults(0.5, 0.7)
    return LossDefaults(0.7, 0.3)


def _derives_from_built_in(loss: Loss) -> bool:
    package = SquaredLoss.__module__.rpartition(".")[0]
    return any(cls.__module__.startswith(package) for cls in type(loss).__mro__ if cls is not Loss)


def auto_learning_rate(
    n_samples: float, n_estimators: int, *, many_classes: bool = False, two_classes_to_the_end: bool = False
) -> float:
    """Return the default learning rate for a number of samples and of rounds, at most 0.5.

    It grows with the number of samples as CatBoost's rule at 1,000 rounds; with fewer rounds it is larger.

    Parameters
    ----------
    n_samples : float
        Number of training samples, or the sum of their weights.
    n_estimators : int
        Number of rounds.
    many_classes : bool, default=False
        Whether there are more than two classes, whose steps are damped by an upper bound of the Hessian.
    two_classes_to_the_end : bool, default=False
        Whether there are two classes and no early stopping that would prevent overfitting. More than 100 rounds then
        have a smaller rate: 1,000 rounds that of CatBoost's rule, in between by interpolation.

    Returns
    -------
    float
        ``exp(0.246 ln n - 5.127) (T / 1000)^-0.627``, or ``exp(0.051 ln n - 3.001) (T / 1000)^-0.627``; to the end,
        at 1,000 rounds, ``exp(0.427 ln n - 7.525)``.
    """
    a, b = (0.051, -3.001) if many_classes else (0.246, -5.127)

    def rate(rounds: int) -> float:
        return float(np.exp(a * np.log(n_samples) + b) * (rounds / 1000) ** -0.627)

    if two_classes_to_the_end and n_estimators > FAST_ROUNDS:
        few, many = rate(FAST_ROUNDS), float(np.exp(0.427 * np.log(n_samples) - 7.525))
        share = float(np.log10(n_estimators / FAST_ROUNDS))
        return float(min(few * (many / few) ** share, LARGEST_RATE))
    return min(rate(n_estimators), LARGEST_RATE)
