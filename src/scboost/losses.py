"""Losses of the estimators, and the base class of user-defined losses.

A user-defined loss is an instance of a class derived from :class:`Loss`, passed as ``SCBoostRegressor(loss=...)``. It
implements the best constant (``initial_score``), first and second derivatives (``gradient_hessian``) and the loss of
each sample (``pointwise_loss``); it may set ``link``, which is the identity by default. Raw scores have shape
(1, n_samples), targets shape (n_samples,). A model file holds the name of the class and its arguments, never its code:
pass the loss to ``scboost.load_model(path, loss=...)``.

Examples
--------
The logarithm of the hyperbolic cosine: squared error near zero, absolute error far from it.

>>> import numpy as np
>>> from sklearn.datasets import load_diabetes
>>> from scboost import SCBoostRegressor
>>> from scboost.losses import Loss
>>> class LogCosh(Loss):
...     def __init__(self, scale):
...         self.scale = scale
...     def initial_score(self, y, sample_weight):
...         return np.array([np.median(y)])
...     def gradient_hessian(self, y, raw):
...         t = np.tanh((raw - y) / self.scale)
...         return self.scale * t, 1 - t**2 + 1e-3
...     def pointwise_loss(self, y, raw):
...         e = np.abs(y - raw[0]) / self.scale
...         return self.scale**2 * (e + np.log1p(np.exp(-2 * e)) - np.log(2))
>>> X, y = load_diabetes(return_X_y=True)
>>> model = SCBoostRegressor(loss=LogCosh(scale=30.0), random_state=0).fit(X, y)
>>> bool(model.score(X, y) > 0.5)
True
"""

from scboost._core.links import (
    HazardLink,
    IdentityLink,
    Link,
    LogitLink,
    LogLink,
    LogMeanLink,
    LogNormalMeanLink,
    MeanLink,
    PairwiseRankLink,
    QuantileLink,
    RankLink,
    SoftmaxLink,
    SortedQuantilesLink,
    TimeLink,
)
from scboost._core.losses import (
    CoxLoss,
    EfronCoxLoss,
    ExpectileLoss,
    ExtremeAFTLoss,
    GammaDistributionLoss,
    GammaLoss,
    HuberLoss,
    LambdaRankLoss,
    LogisticAFTLoss,
    LogisticLoss,
    LogNormalLoss,
    Loss,
    NegativeBinomialLoss,
    NormalAFTLoss,
    NormalLoss,
    PairwiseLoss,
    PoissonLoss,
    QuantileLoss,
    QuantilesLoss,
    SoftmaxLoss,
    SquaredLoss,
    StudentLoss,
    TweedieLoss,
    XENDCGLoss,
)

__all__ = [
    "CoxLoss",
    "EfronCoxLoss",
    "ExpectileLoss",
    "ExtremeAFTLoss",
    "GammaDistributionLoss",
    "GammaLoss",
    "HazardLink",
    "HuberLoss",
    "IdentityLink",
    "LambdaRankLoss",
    "Link",
    "LogLink",
    "LogMeanLink",
    "LogNormalLoss",
    "LogNormalMeanLink",
    "LogisticAFTLoss",
    "LogisticLoss",
    "LogitLink",
    "Loss",
    "MeanLink",
    "NegativeBinomialLoss",
    "NormalAFTLoss",
    "NormalLoss",
    "PairwiseLoss",
    "PairwiseRankLink",
    "PoissonLoss",
    "QuantileLink",
    "QuantileLoss",
    "QuantilesLoss",
    "RankLink",
    "SoftmaxLink",
    "SoftmaxLoss",
    "SortedQuantilesLink",
    "SquaredLoss",
    "StudentLoss",
    "TimeLink",
    "TweedieLoss",
    "XENDCGLoss",
]
