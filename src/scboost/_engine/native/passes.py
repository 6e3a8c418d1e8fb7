"""Passes over the samples that every round of boosting makes, in compiled form.

Each does in one call what takes NumPy a dozen: on a few hundred samples the calls cost more than the arithmetic.
Vectors are float32 and contiguous, sums are taken over fixed blocks of samples and added in their order.
"""

from __future__ import annotations

from ._native import (
    Pool,
    add_predictions,
    leaf_sums,
    logistic,
    logistic_loss,
    newton_values,
    project,
    set_target,
    softmax,
    softmax_loss,
    squared,
    squared_loss,
)

__all__ = [
    "Pool",
    "add_predictions",
    "leaf_sums",
    "logistic",
    "logistic_loss",
    "newton_values",
    "project",
    "set_target",
    "softmax",
    "softmax_loss",
    "squared",
    "squared_loss",
]
