"""The learners of a fitted estimator as the redundancy tools read them and give them other weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray, IntArray
from scboost.boosting.ensemble import Ensemble
from scboost.boosting.losses import Loss
from scboost.diagnostics import EnsembleReader, read_ensemble
from scboost.xgb.ensemble import TreeEnsemble


def read_trees(
    ensemble: Ensemble, loss: Loss, encode: Callable[[Any], Any], classes: npt.NDArray[Any] | None, n_jobs: int
) -> EnsembleReader:
    """Read a fitted ensemble; ``encode`` turns the estimator's rows into the matrix that the ensemble takes."""
    if not ensemble.weights.any():
        raise ValueError("The model has no trees: there is nothing to measure or to weigh.")
    by_learner = EnsembleReader(
        lambda X, out: np.copyto(out, ensemble.contributions(encode(X), n_jobs=n_jobs).reshape(-1, len(out)).T),
        ensemble.weights.ravel(),
        ensemble.intercept,
        np.zeros(ensemble.weights.size),
        "scboost",
        "other" if loss.link == "log" else loss.link,  # the names of TreeMatrix
        classes,
        ensemble.n_features,
    )
    if not isinstance(ensemble, TreeEnsemble):
        return by_learner
    # Without the intercept, which takes digits from float32 leaves, and without the rounds that have no weight.
    native = read_ensemble(ensemble.centred_booster(n_jobs))
    return replace(
        by_learner,
        fill=lambda X, out: native.fill(encode(X), out),
        column_weights=native.column_weights,
        centers=native.centers,
    )


def reweight_trees(ensemble: Ensemble, kept: IntArray, weights: FloatArray, intercept: FloatArray) -> None:
    """Reduce an ensemble to the learners ``kept`` of :func:`read_trees`, with weights of shape (n_kept, K)."""
    rounds = kept
    if isinstance(ensemble, TreeEnsemble):
        rounds = ensemble.kept[kept]
        weights = weights * ensemble.weights[rounds]  # leaves of the native model carry the weights
    ensemble.select(rounds)
    ensemble.reweight(weights, intercept)
