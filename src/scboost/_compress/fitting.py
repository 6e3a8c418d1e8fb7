"""Fit, then compress: what ``max_trees`` of the estimators does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from scboost._compress.compression import compress
from scboost._model.fitted import FittedModel
from scboost.estimators import SCBoostClassifier, SCBoostRegressor

_LEAVES = 64


def compressed(estimator: SCBoostClassifier | SCBoostRegressor, X: Any, max_trees: int) -> FittedModel:
    """Return the model of a fitted estimator, compressed.

    Parameters
    ----------
    estimator : SCBoostClassifier or SCBoostRegressor
        Fitted; ``max_leaves`` bounds the leaves of the small trees, 64 if it is None.
    X : array, sparse matrix or table
        Its training samples.
    max_trees : int
        Largest number of trees.
    """
    full = estimator.__fitted_model__()
    small = compress(
        estimator,
        X,
        max_trees=max_trees,
        max_leaves=estimator.max_leaves or _LEAVES,
        n_jobs=estimator.n_jobs,
        random_state=estimator.random_state,
    )
    log = {name: values for name, values in small.curve_arrays().items() if not np.isnan(values).any()}
    certificate = " ".join(str(small.certificate).splitlines())
    reason = f"compressed from {full.n_rounds} rounds. {certificate}"
    model: FittedModel = small.model.__fitted_model__()
    return replace(model, training_log=log, stop_reason=reason)
