"""Calibration of probabilities on held-out data."""

import numpy as np
import pytest
from scipy import special
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from data_makers import two_classes
from scboost._estimators import SCBoostClassifier, SCBoostRegressor


def calibration_error(y, p, bins=10):
    """Expected calibration error: mean distance of predicted and observed share over bins of equally many samples."""
    parts = np.array_split(np.argsort(p, kind="stable"), bins)
    return sum(len(rows) * abs(p[rows].mean() - y[rows].mean()) for rows in parts) / len(y)


def unseen_probabilities(X, y, **params):
    model = SCBoostClassifier(n_jobs=1, random_state=0, **params)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    return cross_val_predict(model, X, y, cv=folds, method="predict_proba")[:, 1]


def assert_calibrated(y, p, excess):
    """Balance within what chance allows, and a calibration error of little more than a perfect model would show."""
    noise = np.sqrt(np.sum(p * (1 - p)))
    assert abs(np.sum(y - p)) < 4 * noise
    rng = np.random.default_rng(0)
    perfect = np.mean([calibration_error((rng.random(len(p)) < p).astype(float), p) for _ in range(20)])
    assert calibration_error(y, p) < perfect + excess


def test_calibration_error_separates_calibrated_from_uncalibrated():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    y = (rng.random(20_000) < p).astype(float)
    assert calibration_error(y, p) < 0.01
    assert calibration_error(y, special.expit(3 * special.logit(p))) > 0.08  # too sure of itself


@pytest.mark.parametrize("params", [{}, {"n_estimators": 40, "weighting": "nonnegative"}], ids=str)
def test_breast_cancer_probabilities_are_calibrated(params):
    X, y = load_breast_cancer(return_X_y=True)
    assert_calibrated(y, unseen_probabilities(X, y, **params), excess=0.03)


@pytest.mark.parametrize("name", ["adult_train", "sick", "credit_g"])
def test_probabilities_on_real_data_are_calibrated(shared_data, name):
    pd = pytest.importorskip("pandas")
    frame = pd.read_parquet(shared_data / f"{name}.parquet")
    frame = frame.sample(min(len(frame), 4000), random_state=0)
    y = frame.pop("target").to_numpy()
    assert_calibrated(y, unseen_probabilities(frame, y), excess=0.02)


def test_mean_training_residual_is_near_zero():
    X, y = load_breast_cancer(return_X_y=True)
    for weight in (None, np.where(y, 3.0, 1.0)):
        model = SCBoostClassifier(n_estimators=50, n_jobs=1, random_state=0).fit(X, y, sample_weight=weight)
        residual = np.average(y - model.predict_proba(X)[:, 1], weights=weight)
        assert abs(residual) < 0.005


def test_weighted_trees_match_the_mean_of_their_validation_set():
    """The free intercept makes the mean probability the observed share; the constant start does it before any tree."""
    X, y = two_classes()
    new_X, new_y = two_classes(seed=1)
    params = {"n_estimators": 10, "n_jobs": 1, "random_state": 0, "weighting": "nonnegative"}
    model = SCBoostClassifier(**params).fit(X, y, X_val=new_X, y_val=new_y)
    p = model.predict_proba(new_X)[:, 1]
    assert p.mean() == pytest.approx(new_y.mean(), abs=1e-5)
    target, new_target = X[:, 0] + y, new_X[:, 0] + new_y
    means = SCBoostRegressor(**params).fit(X, target, X_val=new_X, y_val=new_target).predict(new_X)
    assert means.mean() == pytest.approx(new_target.mean(), abs=1e-5)


def test_class_weights_calibrate_for_another_prevalence():
    """Weights (share there) / (share here) give the probabilities of a population with other class shares."""
    X, y = two_classes(6000, flip=0.25)
    rng = np.random.default_rng(0)
    there = np.flatnonzero((y == 1) | (rng.random(6000) < 0.2))  # a population with fewer zeros
    train, test = np.arange(6000) < 3000, there[there >= 3000]
    share_here, share_there = y[train].mean(), y[test].mean()
    weights = {0: (1 - share_there) / (1 - share_here), 1: share_there / share_here}
    params = {"n_estimators": 40, "n_jobs": 1, "random_state": 0, "max_leaves": 8}
    shifted = SCBoostClassifier(**params, class_weight=weights).fit(X[train], y[train])
    plain = SCBoostClassifier(**params).fit(X[train], y[train])
    errors = [abs(m.predict_proba(X[test])[:, 1].mean() - share_there) for m in (shifted, plain)]
    assert errors[0] < 0.03 < errors[1]
