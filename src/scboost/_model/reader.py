"""A fitted model as the diagnostics read it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scboost._core.conformal import Intervals
from scboost._engine.native import is_available
from scboost._engine.xgboost.ensemble import TreeEnsemble
from scboost._model.fitted import FittedModel
from scboost.diagnostics import EnsembleReader, read_ensemble


def read_trees(model: FittedModel, n_threads: int) -> EnsembleReader:
    """Return the reader of a fitted model's trees."""
    model.require_one_target("Reading trees for diagnostics")
    ensemble = model.ensemble
    if not ensemble.weights.any():
        raise ValueError("The model has no trees, so that redundancy and tree weights are not defined.")
    link = model.loss.link.name
    by_learner = EnsembleReader(
        lambda X, out: np.copyto(
            out, ensemble.contributions(model.encode(X), n_jobs=n_threads).reshape(-1, len(out)).T
        ),
        ensemble.weights.ravel(),
        ensemble.intercept,
        np.zeros(ensemble.weights.size),
        "scboost",
        "other" if link == "log" else link,  # the names of TreeMatrix
        model.classes,
        model.encoder.n_features,
        task="" if model.loss.task == "regression" else model.loss.task,
        uncertainty=_uncertainty(model),
    )
    if not isinstance(ensemble, TreeEnsemble):
        return by_learner
    # Without the intercept, which would reduce the precision of float32 leaves, and without rounds of weight 0.
    if is_available():
        n_trees = len(ensemble.kept) * ensemble.n_outputs
        return replace(
            by_learner,
            fill=lambda X, out: np.copyto(out, ensemble.weighted_trees(model.encode(X), n_threads).T),
            column_weights=np.ones(n_trees),
            centers=np.zeros(n_trees),
        )
    native = read_ensemble(ensemble.centred_booster(n_threads))
    return replace(
        by_learner,
        fill=lambda X, out: native.fill(model.encode(X), out),
        column_weights=native.column_weights,
        centers=native.centers,
    )


def _uncertainty(model: FittedModel) -> str:
    """Return what a model predicts about the uncertainty of a sample."""
    if model.loss.task == "distribution":
        return "distribution"
    if model.conformal is None:
        return ""
    return "interval" if isinstance(model.conformal, Intervals) else "set"
