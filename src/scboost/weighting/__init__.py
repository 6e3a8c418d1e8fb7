"""Covariance-regularized weighting of learners."""
