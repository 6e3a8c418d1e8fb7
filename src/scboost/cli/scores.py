"""Scores of predictions on a table, by task."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import metrics

from scboost import SCBoostClassifier, SCBoostDistribution, SCBoostRanker, SCBoostRegressor, SCBoostSurvival
from scboost._core.distributions import predicted as distributions
from scboost._core.losses import AFTLoss, DistributionLoss
from scboost._core.ranking import ALL, ndcg_by_query
from scboost._core.survival import brier_times, concordance, integrated_brier_score
from scboost._estimators.parameters import thread_count
from scboost._estimators.ranker import mean_by_query
from scboost._estimators.survival_target import cumulative_hazards, time_bounds
from scboost.cli.models import Model

_TOP = 10  # documents of a query


def predict(model: Model, X: Any) -> npt.NDArray[Any]:
    """Return probabilities of a classifier, predictions of a regressor, and raw scores of shape (n, K) of others."""
    if isinstance(model, SCBoostClassifier):
        return np.asarray(model.predict_proba(X))
    if isinstance(model, SCBoostRegressor):
        return np.asarray(model.predict(X))
    return model.__fitted_model__().raw_scores(X, thread_count(model.n_jobs)).T


def score(
    model: Model, y: npt.NDArray[Any], predicted: npt.NDArray[Any], w: Any, query: npt.NDArray[Any] | None = None
) -> dict[str, float]:
    """Score predictions by the usual metrics; those that are undefined for these samples are left out.

    Parameters
    ----------
    model : estimator
        Fitted.
    y : ndarray of shape (n,) or (n, n_targets)
        Targets; times and event indicators of a survival model.
    predicted : ndarray
        From :func:`predict`.
    w : ndarray of shape (n,) or None
        Sample weights.
    query : ndarray of shape (n,), optional
        Query of each document.
    """
    n = {"rows": len(y)}
    if isinstance(model, SCBoostRanker):
        return n | _ranking(y, predicted[:, 0], w, query)
    if isinstance(model, SCBoostSurvival):
        return n | _survival(model, y, predicted, w)
    if isinstance(model, SCBoostDistribution):
        return n | _distribution(model, y, predicted, w)
    if y.ndim == 2:
        return n | _several(model, y, predicted, w)
    return n | (
        _classification(model, y, predicted, w)
        if isinstance(model, SCBoostClassifier)
        else _regression(model, y, predicted, w)
    )


def _ranking(y: Any, predicted: Any, w: Any, query: npt.NDArray[Any] | None) -> dict[str, float]:
    number = np.unique(np.asarray(query), return_inverse=True)[1].reshape(-1)
    documents = np.column_stack([y, number])
    return {
        "queries": int(number.max()) + 1,
        f"ndcg@{_TOP}": mean_by_query(ndcg_by_query, documents, predicted, w, _TOP),
        "ndcg": mean_by_query(ndcg_by_query, documents, predicted, w, ALL),
    }


def _survival(model: SCBoostSurvival, y: Any, predicted: Any, w: Any) -> dict[str, float]:
    bounds, fitted = time_bounds(y, len(y), "y"), model.__fitted_model__()
    weight = None if w is None else np.asarray(w, dtype=np.float64)
    risk = -predicted[:, 0] if isinstance(fitted.loss, AFTLoss) else predicted[:, 0]
    found: dict[str, float] = {"events": int(y[:, 1].sum())}
    if not found["events"]:
        return found
    index = concordance(bounds, risk, weight)
    if np.isfinite(index):
        found["concordance"] = index
    times = brier_times(bounds)
    survival = np.exp(-cumulative_hazards(fitted.loss, predicted.T, fitted.baseline, times))
    return found | {"integrated_brier_score": integrated_brier_score(bounds, survival, times, weight)}


def _distribution(model: SCBoostDistribution, y: Any, predicted: Any, w: Any) -> dict[str, float]:
    loss = model.__fitted_model__().loss
    assert isinstance(loss, DistributionLoss)  # noqa: S101 - for the type checker
    found = distributions(loss, predicted.T)
    low, high = found.interval(0.8).T
    return {
        "nll": -float(np.average(found.logpdf(y), weights=w)),
        "crps": float(np.average(found.crps(y), weights=w)),
        "rmse": float(metrics.root_mean_squared_error(y, found.mean(), sample_weight=w)),
        "mae": float(metrics.mean_absolute_error(y, found.quantile(0.5), sample_weight=w)),
        "coverage_80": float(np.average((low <= y) & (y <= high), weights=w)),
    }


def _several(model: Model, y: Any, predicted: Any, w: Any) -> dict[str, float]:
    """Score each target over the rows that have it."""
    names = model.__fitted_model__().target_names or tuple(map(str, range(y.shape[1])))
    found = {}
    for k, name in enumerate(names):
        seen = ~np.isnan(y[:, k])
        if not seen.any():
            continue
        weight, own, guess = None if w is None else w[seen], y[seen, k], predicted[seen, k]
        if isinstance(model, SCBoostClassifier):
            found[f"log_loss_{name}"] = float(metrics.log_loss(own, guess, labels=[0, 1], sample_weight=weight))
            if len(np.unique(own)) == 2:
                found[f"auc_{name}"] = float(metrics.roc_auc_score(own, guess, sample_weight=weight))
        else:
            found[f"rmse_{name}"] = float(metrics.root_mean_squared_error(own, guess, sample_weight=weight))
            if len(own) > 1:
                found[f"r2_{name}"] = float(metrics.r2_score(own, guess, sample_weight=weight))
    return found


def _regression(model: SCBoostRegressor, y: Any, predicted: Any, w: Any) -> dict[str, float]:
    if isinstance(model.quantile, list | tuple):
        return {
            f"pinball_{quantile}": float(metrics.mean_pinball_loss(y, column, alpha=quantile, sample_weight=w))
            for quantile, column in zip(model.quantile, predicted.T, strict=True)
        }
    found = {
        "rmse": float(metrics.root_mean_squared_error(y, predicted, sample_weight=w)),
        "mae": float(metrics.mean_absolute_error(y, predicted, sample_weight=w)),
    }
    return found | ({"r2": float(metrics.r2_score(y, predicted, sample_weight=w))} if len(y) > 1 else {})


def _classification(model: SCBoostClassifier, y: Any, predicted: Any, w: Any) -> dict[str, float]:
    labels = model.classes_
    found = {
        "log_loss": float(metrics.log_loss(y, predicted, labels=labels, sample_weight=w)),
        "accuracy": float(metrics.accuracy_score(y, labels[predicted.argmax(axis=1)], sample_weight=w)),
    }
    if len(np.unique(y)) == len(labels):  # the AUC needs samples of every class
        p = predicted[:, 1] if len(labels) == 2 else predicted
        found["auc"] = float(metrics.roc_auc_score(y, p, labels=labels, multi_class="ovr", sample_weight=w))
    return found
