"""Losses of raw scores: one module per family."""

from scboost._core.losses.base import Loss, is_built_in
from scboost._core.losses.classification import LogisticLoss, SoftmaxLoss
from scboost._core.losses.positive import GammaLoss, PoissonLoss, TweedieLoss
from scboost._core.losses.quantile import ExpectileLoss, QuantileLoss, QuantilesLoss
from scboost._core.losses.squared import HuberLoss, SquaredLoss

__all__ = [
    "ExpectileLoss",
    "GammaLoss",
    "HuberLoss",
    "LogisticLoss",
    "Loss",
    "PoissonLoss",
    "QuantileLoss",
    "QuantilesLoss",
    "SoftmaxLoss",
    "SquaredLoss",
    "TweedieLoss",
    "is_built_in",
]
