"""Fitted ensembles: the weighted sum, the native model, dropping, staging, joining, pickling."""

import pickle

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from data_makers import real_target
from scboost._engine.ensemble import EstimatorEnsemble
from scboost._engine.estimator import EstimatorEngine
from scboost._engine.xgboost.engine import XGBoostEngine
from scboost._engine.xgboost.ensemble import TreeEnsemble

X, TARGET = real_target(n=250)
X[::7, 2] = np.nan
NEW, _ = real_target(n=80, seed=9)
NEW[::5, 0] = np.nan
DENSE = np.nan_to_num(NEW)


def grown(n_outputs=1, rounds=6, *, objective="reg:squarederror", intercept=0.0, **kwargs):
    """An ensemble of trees on random targets with weight 0.3 each."""
    rng = np.random.default_rng(n_outputs)
    engine = XGBoostEngine(X, n_outputs, {"max_depth": 3})
    ensemble = TreeEnsemble(X.shape[1], np.full(n_outputs, intercept), objective=objective, **kwargs)
    for seed in range(rounds):
        target = (TARGET + rng.normal(size=(n_outputs, 250))).astype(np.float32)
        ensemble.append(engine.grow(target, np.ones_like(target), seed), 0.3)
    return ensemble


def fitted(make, n_outputs=1, rounds=4):
    """An ensemble of scikit-learn regressors with weight 0.3 each."""
    rows = np.nan_to_num(X)
    engine = EstimatorEngine(rows, make, sample_weighted=False)
    ensemble = EstimatorEnsemble(X.shape[1], np.full(n_outputs, 0.5))
    rng = np.random.default_rng(0)
    for seed in range(rounds):
        target = TARGET + rng.normal(size=(n_outputs, 250))
        ensemble.append(engine.grow(target, np.ones_like(target), seed), 0.3)
    return ensemble


ENSEMBLES = {
    "trees": lambda k: (grown(k, intercept=0.5), NEW),
    "regression trees": lambda k: (fitted(lambda s: DecisionTreeRegressor(max_depth=3, random_state=s), k), DENSE),
    "linear": lambda k: (fitted(lambda s: LinearRegression(), k), DENSE),
}
every_kind = pytest.mark.parametrize(("kind", "n_outputs"), [(kind, k) for kind in ENSEMBLES for k in (1, 3)], ids=str)


@every_kind
def test_scores_are_the_weighted_sum_of_contributions(kind, n_outputs):
    ensemble, rows = ENSEMBLES[kind](n_outputs)
    H = ensemble.contributions(rows)
    assert H.shape == (ensemble.n_rounds, n_outputs, len(rows))
    w = np.random.default_rng(1).normal(size=ensemble.weights.shape)
    w[1] = 0
    ensemble.reweight(w, ensemble.intercept + 1)
    expected = 1.5 + np.einsum("tk,tkn->kn", w, H)
    np.testing.assert_allclose(ensemble.scores(rows), expected, atol=3e-6)
    np.testing.assert_array_equal(ensemble.contributions(rows, first=2), H[2:])


@every_kind
def test_the_last_stage_is_the_whole(kind, n_outputs):
    ensemble, rows = ENSEMBLES[kind](n_outputs)
    stages = list(ensemble.staged(rows))
    assert len(stages) == ensemble.n_rounds
    np.testing.assert_allclose(stages[-1], ensemble.scores(rows), atol=2e-6)
    steps = np.diff(np.array([np.full_like(stages[0], 0.5), *stages]), axis=0)
    np.testing.assert_allclose(steps, 0.3 * ensemble.contributions(rows), atol=1e-6)


@every_kind
def test_rounds_of_weight_zero_are_dropped_without_changing_a_prediction(kind, n_outputs):
    ensemble, rows = ENSEMBLES[kind](n_outputs)
    w = ensemble.weights.copy()
    w[[0, 2]] = 0
    ensemble.reweight(w, ensemble.intercept)
    only, _ = ENSEMBLES[kind](n_outputs)
    H = only.contributions(rows)
    expected = 0.5 + np.einsum("tk,tkn->kn", w, H)
    np.testing.assert_allclose(ensemble.scores(rows), expected, atol=2e-6)
    if isinstance(ensemble, TreeEnsemble):
        assert ensemble.booster().num_boosted_rounds() == len(w) - 2
    assert len(ensemble.weights) == len(w)


def test_dropping_changes_no_bit():
    # A tree whose leaves are all zero adds exactly nothing, whether it is in the native model or not.
    ensemble = grown()
    w = ensemble.weights.copy()
    w[[1, 4]] = 0
    ensemble.reweight(w, ensemble.intercept)
    kept = ensemble._document(np.arange(6), w, ensemble.intercept).booster()
    assert kept.num_boosted_rounds() == 6
    np.testing.assert_array_equal(
        kept.inplace_predict(NEW, predict_type="margin"), ensemble.booster().inplace_predict(NEW, predict_type="margin")
    )


def test_without_trees_the_score_is_the_intercept():
    for objective in ("binary:logistic", "reg:squarederror", "count:poisson"):
        ensemble = grown(rounds=0, objective=objective, intercept=-0.75)
        np.testing.assert_allclose(ensemble.scores(NEW), np.full((1, 80), -0.75), atol=1e-6)
        assert ensemble.contributions(NEW).shape == (0, 1, 80)
        assert list(ensemble.staged(NEW)) == []
    all_zero = grown(intercept=0.25)
    all_zero.reweight(np.zeros((6, 1)), np.array([0.25]))
    np.testing.assert_allclose(all_zero.scores(NEW), np.full((1, 80), 0.25), atol=1e-6)


@every_kind
def test_joined_ensembles_add_up(kind, n_outputs):
    a, rows = ENSEMBLES[kind](n_outputs)
    b, _ = ENSEMBLES[kind](n_outputs)
    b.reweight(b.weights * np.linspace(0, 1, len(b.weights))[:, None], b.intercept - 2)
    expected = a.scores(rows).astype(np.float64) + b.scores(rows)
    a.extend(b)
    assert a.n_rounds == 2 * b.n_rounds
    np.testing.assert_allclose(a.scores(rows), expected, atol=5e-6)
    np.testing.assert_allclose(a.contributions(rows)[b.n_rounds :], b.contributions(rows))


@every_kind
def test_pickling_keeps_every_bit(kind, n_outputs):
    ensemble, rows = ENSEMBLES[kind](n_outputs)
    before = ensemble.scores(rows)
    again = pickle.loads(pickle.dumps(ensemble))  # noqa: S301 - written here
    np.testing.assert_array_equal(again.scores(rows), before)
    np.testing.assert_array_equal(again.contributions(rows), ensemble.contributions(rows))


def test_appending_and_reweighting_reach_the_native_model():
    ensemble = grown()
    first = ensemble.scores(NEW)
    assert ensemble.booster() is ensemble.booster()
    ensemble.reweight(2 * ensemble.weights, 2 * ensemble.intercept)
    np.testing.assert_allclose(ensemble.scores(NEW), 2 * first, atol=1e-6)
    engine = XGBoostEngine(X, 1, {"max_depth": 3})
    target = TARGET[None].astype(np.float32)
    ensemble.append(engine.grow(target, np.ones_like(target), 0), 1.0)
    np.testing.assert_allclose(ensemble.scores(NEW), 2 * first + ensemble.contributions(NEW)[-1], atol=1e-5)


def test_recomputed_leaves_do_not_change_a_stored_tree():
    engine = XGBoostEngine(X, 1, {"max_depth": 3})
    target = TARGET[None].astype(np.float32)
    (learner,) = engine.grow(target, np.ones_like(target), 0)
    ensemble = TreeEnsemble(X.shape[1], np.zeros(1), objective="reg:squarederror")
    ensemble.append([learner], 1.0)
    before = ensemble.contributions(NEW)
    learner.values *= 2
    learner.model["split_conditions"] *= 3
    np.testing.assert_array_equal(ensemble.contributions(NEW), before)


LINKS = {
    "binary:logistic": (1, special.expit),
    "count:poisson": (1, np.exp),
    "reg:squarederror": (1, lambda F: F),
    "multi:softprob": (3, lambda F: special.softmax(F, axis=0)),
}


@pytest.mark.parametrize("objective", LINKS)
def test_the_native_model_has_the_link(objective):
    n_outputs, link = LINKS[objective]
    ensemble = grown(n_outputs, objective=objective, intercept=0.8)
    found = ensemble.booster().predict(xgb.DMatrix(NEW)).reshape(80, -1).T
    np.testing.assert_allclose(found, link(ensemble.scores(NEW).astype(np.float64)), rtol=1e-5)


@settings(deadline=None, max_examples=20)
@given(p=st.floats(-12, 12))
def test_the_intercept_keeps_its_precision(p):
    # The native model stores it as a probability, in which a float32 has no digits left near 1.
    ensemble = grown(rounds=1, objective="binary:logistic", intercept=p)
    expected = p + 0.3 * ensemble.contributions(NEW)[0].astype(np.float64)
    np.testing.assert_allclose(ensemble.scores(NEW), expected, atol=1e-5)


def test_gains_are_xgboosts_own():
    ensemble = grown()
    w = ensemble.weights.copy()
    w[3] = 0
    ensemble.reweight(w, ensemble.intercept)
    scores = ensemble.booster().get_score(importance_type="total_gain")
    expected = [scores.get(f"f{j}", 0.0) for j in range(X.shape[1])]
    np.testing.assert_allclose(ensemble.gains(), expected, rtol=1e-4)


def test_categories_names_and_missing_values_survive():
    rows = X.copy()
    rows[:, 1] = np.digitize(rows[:, 1], [-1, 0, 1])
    categorical = np.array([False, True, False, False])
    engine = XGBoostEngine(rows, 1, {"max_depth": 4}, categorical=categorical)
    ensemble = TreeEnsemble(
        4, np.zeros(1), objective="reg:squarederror", categorical=categorical, feature_names=["a", "b", "c", "d"]
    )
    seen = []
    for seed in range(3):
        target = np.random.default_rng(seed).normal(size=(1, 250)).astype(np.float32)
        learners = engine.grow(target + (rows[:, 1] == 1).astype(np.float32), np.ones_like(target), seed)
        ensemble.append(learners, 1.0)
        seen.append(learners[0].predictions())
    np.testing.assert_array_equal(ensemble.contributions(rows)[:, 0], seen)
    np.testing.assert_allclose(ensemble.scores(rows)[0], np.sum(seen, axis=0), atol=1e-5)
    booster = ensemble.booster()
    assert booster.feature_names == ["a", "b", "c", "d"]
    assert booster.feature_types == ["float", "c", "float", "float"]


@pytest.mark.parametrize("size", [1e7, 1e12])
def test_a_large_intercept_does_not_reduce_the_precision_of_trees(size):
    near, far = grown(intercept=0.0), grown(intercept=size)
    np.testing.assert_array_equal(far.scores(NEW), size + near.scores(NEW))
    *_, last = far.staged(NEW)
    np.testing.assert_allclose(far.scores(NEW) - size, last - size, atol=1e-6 + 1e-15 * size)
    shares = far.explain(NEW)
    np.testing.assert_allclose(shares.sum(axis=2).T - size, far.scores(NEW) - size, atol=1e-5 + 1e-15 * size)


@pytest.mark.parametrize("intercept", [21.4, -21.4, 60.0])
def test_scores_beyond_float32_probabilities_survive_without_trees(intercept):
    ensemble = grown(rounds=0, objective="binary:logistic", intercept=intercept)
    assert (ensemble.scores(NEW) == intercept).all()
    margin = ensemble.booster().inplace_predict(NEW, predict_type="margin")
    np.testing.assert_allclose(margin, intercept, rtol=1e-6)


@pytest.mark.parametrize("intercept", [-100.0, 100.0])
def test_a_log_mean_that_float32_does_not_hold_is_in_the_native_model(intercept):
    booster = TreeEnsemble(1, np.array([intercept]), objective="count:poisson").booster(1)
    margin = booster.predict(xgb.DMatrix(np.zeros((1, 1))), output_margin=True)
    np.testing.assert_allclose(margin, intercept, rtol=1e-6)
