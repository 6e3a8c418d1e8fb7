"""Losses of the estimators, and the class to derive one's own from.

A loss of one's own is an instance of a class derived from :class:`Loss`, given as ``SCBoostRegressor(loss=...)``. It
says what the best constant is, what the negative gradient and the curvature are, what a row costs, and what a raw score
predicts. Raw scores ``F`` have shape (1, n), targets shape (n,). A file of a model with such a loss holds the name of
the class and its arguments, never its code: give the loss to ``scboost.load_model(path, loss=...)``.

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
...     def residual(self, y, F):
...         t = np.tanh((y - F) / self.scale)
...         return self.scale * t, 1 - t**2 + 1e-3
...     def row_losses(self, y, F):
...         e = np.abs(y - F[0]) / self.scale
...         return self.scale**2 * (e + np.log1p(np.exp(-2 * e)) - np.log(2))
...     def inverse_link(self, F):
...         return F[0]
>>> X, y = load_diabetes(return_X_y=True)
>>> model = SCBoostRegressor(loss=LogCosh(scale=30.0), random_state=0).fit(X, y)
>>> bool(model.score(X, y) > 0.5)
True
"""

from scboost.boosting.losses import (
    ExpectileLoss,
    GammaLoss,
    HuberLoss,
    LogisticLoss,
    Loss,
    PoissonLoss,
    QuantileLoss,
    QuantilesLoss,
    SoftmaxLoss,
    SquaredLoss,
    Suggested,
    TweedieLoss,
)

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
    "Suggested",
    "TweedieLoss",
]
