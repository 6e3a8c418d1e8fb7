"""Losses of raw scores: one module per family."""

from scboost._core.losses.base import Loss, is_built_in
from scboost._core.losses.classification import LogisticLoss, SoftmaxLoss
from scboost._core.losses.coupled import CoupledLoss
from scboost._core.losses.distribution import (
    DistributionLoss,
    GammaDistributionLoss,
    LogNormalLoss,
    NegativeBinomialLoss,
    NormalLoss,
    StudentLoss,
)
from scboost._core.losses.positive import GammaLoss, PoissonLoss, TweedieLoss
from scboost._core.losses.quantile import ExpectileLoss, QuantileLoss, QuantilesLoss
from scboost._core.losses.ranking import LambdaRankLoss, PairwiseLoss, RankingLoss, XENDCGLoss
from scboost._core.losses.squared import HuberLoss, SquaredLoss
from scboost._core.losses.survival import (
    AFTLoss,
    CoxLoss,
    EfronCoxLoss,
    ExtremeAFTLoss,
    LogisticAFTLoss,
    NormalAFTLoss,
)
from scboost._core.losses.targets import TargetsLogisticLoss, TargetsLoss, TargetsSquaredLoss

__all__ = [
    "AFTLoss",
    "CoupledLoss",
    "CoxLoss",
    "DistributionLoss",
    "EfronCoxLoss",
    "ExpectileLoss",
    "ExtremeAFTLoss",
    "GammaDistributionLoss",
    "GammaLoss",
    "HuberLoss",
    "LambdaRankLoss",
    "LogNormalLoss",
    "LogisticAFTLoss",
    "LogisticLoss",
    "Loss",
    "NegativeBinomialLoss",
    "NormalAFTLoss",
    "NormalLoss",
    "PairwiseLoss",
    "PoissonLoss",
    "QuantileLoss",
    "QuantilesLoss",
    "RankingLoss",
    "SoftmaxLoss",
    "SquaredLoss",
    "StudentLoss",
    "TargetsLogisticLoss",
    "TargetsLoss",
    "TargetsSquaredLoss",
    "TweedieLoss",
    "XENDCGLoss",
    "is_built_in",
]
