"""Covariance-regularized weighting (CRW) of learners: the solver, its losses and the problem."""

from scboost._core.weighting.losses import LOGISTIC, SQUARED_ERROR, MarginLoss
from scboost._core.weighting.problem import learn_scale, learn_weights
from scboost._core.weighting.solver import Weights, nonnegative_weights, simplex_weights

__all__ = [
    "LOGISTIC",
    "SQUARED_ERROR",
    "MarginLoss",
    "Weights",
    "learn_scale",
    "learn_weights",
    "nonnegative_weights",
    "simplex_weights",
]
