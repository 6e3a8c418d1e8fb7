"""Covariance-regularized weighting (CRW) of learners: the solver, its losses and the problem."""

from scboost._core.weighting import (
    LOGISTIC,
    SQUARED_ERROR,
    MarginLoss,
    Weights,
    learn_scale,
    learn_weights,
    nonnegative_weights,
    simplex_weights,
)

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
