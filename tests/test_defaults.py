"""Defaults of a fit: results repeat, weights of any scale are learned, settings that cannot work are rejected."""

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_regression

from scboost import SCBoostClassifier, SCBoostRegressor
from scboost._estimators import fitting

QUICK = {"n_estimators": 20, "n_jobs": 1}


def test_fits_repeat_without_a_random_state():
    X, y = make_classification(200, 5, random_state=0)
    first, second = (SCBoostClassifier(**QUICK).fit(X, y).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_weights_that_sum_to_one_equal_weights_with_mean_one():
    X, y = make_classification(200, 5, random_state=0)
    weight = np.random.default_rng(0).uniform(0.5, 1.5, 200)
    weight /= weight.mean()
    unit, share = (SCBoostClassifier(**QUICK).fit(X, y, w).predict_proba(X) for w in (weight, weight / weight.sum()))
    np.testing.assert_allclose(share, unit, rtol=1e-4)
    assert share[:, 1].std() > 0.1


def test_an_explicit_min_child_weight_keeps_the_scale_of_the_weights():
    X, y = make_regression(200, 5, random_state=0)
    with pytest.warns(UserWarning, match="no trees"):
        SCBoostRegressor(**QUICK, min_child_weight=1.0).fit(X, y, np.full(200, 1 / 200))


def test_init_zero_far_from_the_mean_is_rejected():
    X, y = make_regression(100, 5, random_state=0)
    y /= y.std()
    with pytest.raises(ValueError, match=r"init='zero' starts at the raw score 0, but y has mean 1e\+04"):
        SCBoostRegressor(**QUICK, init="zero").fit(X, y + 1e4)
    assert SCBoostRegressor(**QUICK, learning_rate=0.5, init="zero").fit(X, y + 5).score(X, y + 5) > 0.5


@pytest.mark.parametrize("mean", [-1e12, 3e9])
def test_init_zero_is_rejected_alike_with_weights_and_repeated_samples(mean):
    X, y = np.array([[1.0], [2.0], [3.0]]), mean + np.array([1.65, 2.7, 0.9])
    repeats = np.array([4, 3, 4])
    model = SCBoostRegressor(n_estimators=1, init="zero", loss="quantile", quantile=0.9)
    for given in ((X, y, repeats.astype(float)), (np.repeat(X, repeats, axis=0), np.repeat(y, repeats))):
        with pytest.raises(ValueError, match=r"standard deviation 0\.71"):
            model.fit(*given)


def test_a_callback_that_sets_a_parameter_is_rejected():
    X, y = make_classification(100, 5, random_state=0)

    def decay(model):
        model.learning_rate = 0.01

    with pytest.raises(ValueError, match=r"set learning_rate=0\.01, but parameters are fixed when a fit begins"):
        SCBoostClassifier(**QUICK, callbacks=[decay]).fit(X, y)


@pytest.mark.parametrize(("n_jobs", "cells", "n_threads"), [(None, 2_000_000, 1), (None, 0, 3), (2, 2_000_000, 2)])
def test_small_fits_use_one_thread_unless_told_otherwise(n_jobs, cells, n_threads, monkeypatch):
    seen = []

    def train(spec, data, context):
        seen.append(context.n_threads)
        return real(spec, data, context)

    real = fitting.train
    monkeypatch.setattr(fitting, "train", train)
    monkeypatch.setattr(fitting, "_SERIAL_CELLS", cells)
    monkeypatch.setattr(fitting, "thread_count", lambda n: n or 3)
    X, y = make_regression(100, 5, random_state=0)
    SCBoostRegressor(n_estimators=2, n_jobs=n_jobs).fit(X, y)
    assert seen == [n_threads]


def test_small_fits_are_those_of_one_thread_to_the_bit():
    X, y = make_classification(300, 20, random_state=0)
    one, default = (SCBoostClassifier(n_estimators=30, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, None))
    np.testing.assert_array_equal(default.predict_proba(X), one.predict_proba(X))
    np.testing.assert_array_equal(default.training_log_["loss"], one.training_log_["loss"])
