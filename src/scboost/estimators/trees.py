"""The learners of a fitted estimator as the redundancy tools read them and give them other weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost._arrays import FloatArray, IntArray
from scboost.boosting.ensemble import Ensemble
from scboost.boosting.losses import LogisticLoss, Loss, PoissonLoss, QuantileLoss, SoftmaxLoss
from scboost.redundancy import EnsembleReader, read_ensemble
from scboost.xgb.ensemble import TreeEnsemble


def read_trees(
    ensemble: Ensemble, loss: Loss, encode: Callable[[Any], Any], classes: npt.NDArray[Any] | None
) -> EnsembleReader:
    """Read a fitted ensemble; ``encode`` turns the estimator's rows into the matrix that the ensemble takes."""
    if isinstance(ensemble, TreeEnsemble):
        native = read_ensemble(ensemble.booster())

        def fill(X: Any, out: FloatArray) -> None:
            native.fill(encode(X), out)

        return replace(
            native,
            fill=fill,
            library="scboost",
            link=_link(loss),
            classes=classes,
            feature_names=None,
            needs_table=False,
        )

    def fill_by_learner(X: Any, out: FloatArray) -> None:
        out[:] = ensemble.contributions(encode(X)).reshape(-1, len(out)).T

    weights = ensemble.weights.ravel()
    return EnsembleReader(
        fill_by_learner,
        weights,
        ensemble.intercept,
        np.zeros(len(weights)),
        "scboost",
        _link(loss),
        classes,
        ensemble.n_features,
    )


def reweight_trees(ensemble: Ensemble, kept: IntArray, weights: FloatArray, intercept: FloatArray) -> None:
    """Change an ensemble to the weights (n_kept, K) of those learners that :func:`read_trees` showed."""
    old = ensemble.weights
    rounds, in_values = np.arange(len(old)), np.ones_like(old)
    if isinstance(ensemble, TreeEnsemble):  # whose native model leaves out rounds without weight, and carries the rest
        rounds, in_values = np.flatnonzero(old.any(axis=1)), old
    changed = np.zeros_like(old)
    changed[rounds[kept]] = weights * in_values[rounds[kept]]
    ensemble.reweight(changed, intercept)


def _link(loss: Loss) -> str:
    match loss:
        case LogisticLoss():
            return "logit"
        case SoftmaxLoss():
            return "softmax"
        case PoissonLoss():
            return "other"
        case QuantileLoss() if loss.quantile != 0.5:
            return "quantile"
        case _:
            return "identity"
