"""Parameters passed to XGBoost: plain XGBoost is the oracle, and resuming is bit-identical."""

import numpy as np
import pytest
import xgboost as xgb
from sklearn.tree import DecisionTreeRegressor

from data_makers import real_target, three_classes, two_classes
from scboost import SCBoostClassifier, SCBoostRegressor, load_model
from scboost._engine.xgboost.engine import XGBoostEngine

PLAIN = {"projection_strength": 0.0, "exploration": 0.0, "max_depth": 4, "max_leaves": None, "reg_lambda": 1.0}
PLAIN |= {"min_child_weight": 1.0, "n_jobs": 1, "random_state": 0, "n_estimators": 15, "learning_rate": 0.3}
PLAIN["engine"] = "xgboost"  # the bins of plain XGBoost; tests/native compares trees on equal bins
NATIVE = {"max_depth": 4, "lambda": 1.0, "min_child_weight": 1.0, "eta": 0.3, "nthread": 1, "tree_method": "hist"}


def n_leaves(booster):
    return sum(dump.count("leaf=") for dump in booster.get_dump())


@pytest.mark.parametrize("size", [1.0, 1000.0])
def test_min_split_loss_equals_xgboost_for_regression(size):
    X, y = real_target(n=600)
    y = size * (y - y.mean())
    threshold = 0.02 * float(y @ y)
    model = SCBoostRegressor(min_split_loss=threshold, init="zero", **PLAIN).fit(X, y)
    booster = xgb.train({**NATIVE, "gamma": threshold, "base_score": 0.0}, xgb.DMatrix(X, y), 15)
    free = xgb.train({**NATIVE, "base_score": 0.0}, xgb.DMatrix(X, y), 15)
    assert n_leaves(booster) < 0.5 * n_leaves(free)
    np.testing.assert_allclose(model.predict(X), booster.predict(xgb.DMatrix(X)), atol=1e-4 * size)


def test_min_split_loss_equals_xgboost_for_classification():
    X, y = two_classes(n=600)
    model = SCBoostClassifier(min_split_loss=3.0, init="zero", **PLAIN).fit(X, y)
    booster = xgb.train(
        {**NATIVE, "gamma": 3.0, "base_score": 0.5, "objective": "binary:logistic"}, xgb.DMatrix(X, y), 15
    )
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], booster.predict(xgb.DMatrix(X)), atol=1e-4)

    X, y = three_classes(n=600)
    model = SCBoostClassifier(min_split_loss=2.0, init="zero", **PLAIN).fit(X, y)
    params = {**NATIVE, "gamma": 2.0, "base_score": 0.0, "objective": "multi:softprob", "num_class": 3}
    booster = xgb.train(params, xgb.DMatrix(X, y), 15)
    np.testing.assert_allclose(model.predict_proba(X), booster.predict(xgb.DMatrix(X)), atol=1e-3)


@pytest.mark.parametrize("size", [1.0, 1000.0])
def test_reg_alpha_equals_xgboost_for_regression(size):
    X, y = real_target(n=600)
    y = size * (y - y.mean())
    alpha = 0.04 * float(np.abs(y).sum())
    model = SCBoostRegressor(reg_alpha=alpha, init="zero", **PLAIN).fit(X, y)
    booster = xgb.train({**NATIVE, "alpha": alpha, "base_score": 0.0}, xgb.DMatrix(X, y), 15)
    free = xgb.train({**NATIVE, "base_score": 0.0}, xgb.DMatrix(X, y), 15)
    assert n_leaves(booster) < 0.7 * n_leaves(free)
    np.testing.assert_allclose(model.predict(X), booster.predict(xgb.DMatrix(X)), atol=1e-4 * size)


def test_reg_alpha_equals_xgboost_for_classification(tmp_path):
    X, y = two_classes(n=600)
    model = SCBoostClassifier(reg_alpha=5.0, init="zero", **PLAIN).fit(X, y)
    params = {**NATIVE, "alpha": 5.0, "base_score": 0.5, "objective": "binary:logistic"}
    wanted = xgb.train(params, xgb.DMatrix(X, y), 15).predict(xgb.DMatrix(X))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], wanted, atol=1e-4)
    model.save_model(tmp_path / "model.ubj")
    again = load_model(tmp_path / "model.ubj")
    assert again.reg_alpha == 5.0
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    native = xgb.Booster(model_file=tmp_path / "model.ubj")
    np.testing.assert_allclose(native.predict(xgb.DMatrix(X)), wanted, atol=1e-4)

    X, y = three_classes(n=600)
    model = SCBoostClassifier(reg_alpha=3.0, init="zero", **PLAIN).fit(X, y)
    params = {**NATIVE, "alpha": 3.0, "base_score": 0.0, "objective": "multi:softprob", "num_class": 3}
    booster = xgb.train(params, xgb.DMatrix(X, y), 15)
    np.testing.assert_allclose(model.predict_proba(X), booster.predict(xgb.DMatrix(X)), atol=1e-3)


def test_penalties_are_in_the_unit_of_the_weights():
    X, y = two_classes(n=400)
    given = {"n_estimators": 8, "learning_rate": 0.3, "random_state": 0, "n_jobs": 1}
    penalties = {"reg_alpha": 2.0, "reg_lambda": 1.0, "min_child_weight": 1.0, "min_split_loss": 0.5}
    model = SCBoostClassifier(**given, **penalties).fit(X, y)
    large = 2.0**25  # beyond which the engine changes its own unit
    scaled = SCBoostClassifier(**given, **{name: large * p for name, p in penalties.items()})
    scaled.fit(X, y, sample_weight=np.full(400, large))
    np.testing.assert_allclose(scaled.predict_proba(X), model.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("name", ["colsample_bylevel", "colsample_bynode"])
@pytest.mark.parametrize("more", [{}, {"colsample_bytree": 0.7, "subsample": 0.8}])
def test_sampled_features_change_trees_and_resume_bit_identically(name, more):
    X, y = two_classes(n=400)
    given = {"learning_rate": 0.2, "random_state": 3, name: 0.4, **more}
    at_once = SCBoostClassifier(n_estimators=14, n_jobs=1, **given).fit(X, y)
    parts = SCBoostClassifier(n_estimators=5, n_jobs=1, warm_start=True, **given).fit(X, y)
    parts.set_params(n_estimators=14).fit(X, y)
    threads = SCBoostClassifier(n_estimators=14, n_jobs=2, **given).fit(X, y)
    np.testing.assert_array_equal(parts.predict_proba(X), at_once.predict_proba(X))
    np.testing.assert_array_equal(threads.predict_proba(X), at_once.predict_proba(X))
    other = SCBoostClassifier(n_estimators=14, n_jobs=1, **{**given, "random_state": 4}).fit(X, y)
    assert not np.array_equal(other.predict_proba(X), at_once.predict_proba(X))


@pytest.mark.parametrize("engine", ["auto", "xgboost"])
def test_features_are_sampled_for_each_split(engine):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4)).astype(np.float32)
    y = 10 * X[:, 0] + X[:, 1]
    shares = {}
    for share in (1.0, 0.25):  # one of four columns at each split; every node of the two levels is split
        given = {"n_estimators": 40, "learning_rate": 0.001, "random_state": 0, "n_jobs": 1, "projection_strength": 0.0}
        given |= {"max_leaves": None, "max_depth": 2, "engine": engine}
        model = SCBoostRegressor(colsample_bynode=share, exploration=0.0, **given).fit(X, y)
        used = [tree["split_indices"][tree["left_children"] != -1] for tree in model._model.ensemble._trees]
        shares[share] = np.mean(np.concatenate(used) == 0)
    assert shares[1.0] > 0.9
    assert shares[0.25] == pytest.approx(0.25, abs=0.08)


def test_the_device_reaches_the_engine_and_the_native_model(monkeypatch):
    X, y = two_classes(n=100)
    seen = []
    plain = XGBoostEngine.__init__

    def record(self, rows, n_outputs, params, **more):
        seen.append(params["device"])
        plain(self, rows, n_outputs, {**params, "device": "cpu"}, **more)

    monkeypatch.setattr(XGBoostEngine, "__init__", record)
    model = SCBoostClassifier(n_estimators=2, device="cuda:1", n_jobs=1).fit(X, y)
    assert seen == ["cuda:1"]
    monkeypatch.setattr(xgb.Booster, "set_param", lambda self, given, value=None: seen.append(given))
    model.get_booster()
    assert seen[-1] == {"device": "cuda:1"}


def test_a_device_that_does_not_exist_is_an_error():
    X, y = two_classes(n=100)
    with pytest.raises(xgb.core.XGBoostError, match="device"):
        SCBoostClassifier(n_estimators=2, device="abacus").fit(X, y)


@pytest.mark.parametrize("make", [two_classes, three_classes])
def test_apply_gives_the_leaves_whose_values_add_up_to_the_score(make):
    X, y = make(n=200)
    model = SCBoostClassifier(n_estimators=6, early_stopping=True, random_state=0, n_jobs=1).fit(X, y)
    leaves = model.apply(X)
    booster = model.get_booster()
    np.testing.assert_array_equal(leaves, booster.predict(xgb.DMatrix(X), pred_leaf=True).reshape(len(X), -1))
    assert leaves.shape == (len(X), len(booster.get_dump()))


@pytest.mark.parametrize("given", [{"colsample_bynode": 0.5}, {"colsample_bylevel": 0.5}, {"min_split_loss": 1.0}])
def test_tree_parameters_need_estimator_none(given):
    X, y = two_classes(n=100)
    with pytest.raises(ValueError, match="needs estimator=None"):
        SCBoostClassifier(estimator=DecisionTreeRegressor(max_depth=2), **given).fit(X, y)
