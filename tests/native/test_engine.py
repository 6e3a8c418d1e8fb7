"""The engine of the compiled kernels, alone and in whole fits."""

import numpy as np
import pytest
from sklearn.metrics import log_loss
from sklearn.tree import DecisionTreeRegressor

from data_makers import FAST, three_classes, two_classes

pytest.importorskip("scboost._engine.native._native")

import scboost
from scboost import SCBoostClassifier, load_model
from scboost._engine import factory
from scboost._engine.factory import engine_name
from scboost._engine.native.engine import NativeEngine, binned
from scboost._engine.native.trees import GrowthOptions, Pool
from scboost._engine.xgboost.engine import XGBoostEngine
from scboost._runtime import threads


def make(n=600, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    target = (X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)).astype(np.float32)
    return X, target[None], rng.uniform(0.3, 1, (1, n)).astype(np.float32)


def test_few_distinct_values_give_the_trees_of_the_xgboost_engine():
    X, target, hessian = make()
    X = X.round(1)  # one bin for each value, in both
    params = {"max_depth": 4}
    [theirs] = XGBoostEngine(X, 1, params).grow(target.copy(), hessian, 0)
    [ours] = NativeEngine(binned(X, max_bin=256), GrowthOptions(max_depth=4)).grow(target, hessian, 0)
    np.testing.assert_array_equal(ours.leaf, theirs.leaf)
    np.testing.assert_array_equal(ours.nodes, theirs.nodes)
    np.testing.assert_allclose(ours.values, theirs.values, rtol=1e-5)
    np.testing.assert_allclose(ours.model["loss_changes"], theirs.model["loss_changes"], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("size", [1e-60, 1e-30, 1e-15, 1e15, 1e30])
@pytest.mark.parametrize("hessian_size", [1e-60, 1e-25, 1.0, 1e25])
def test_trees_do_not_depend_on_the_units_of_target_and_hessian(size, hessian_size):
    X, target, hessian = (a.astype(np.float64) for a in make())
    unit, hessian_unit = 2.0 ** round(np.log2(size)), 2.0 ** round(np.log2(hessian_size))
    data = binned(X, max_bin=64)
    plain = GrowthOptions(reg_lambda=2.0, min_child_weight=3.0, reg_alpha=0.7, min_split_loss=0.1)
    scaled = GrowthOptions(
        reg_lambda=2.0 * hessian_unit,
        min_child_weight=3.0 * hessian_unit,
        reg_alpha=0.7 * unit,
        min_split_loss=0.1 * unit / hessian_unit * unit,
    )
    [a] = NativeEngine(data, plain).grow(target, hessian, 0)
    [b] = NativeEngine(data, scaled).grow(target * unit, hessian * hessian_unit, 0)
    assert len(a.values) > 10
    np.testing.assert_array_equal(a.leaf, b.leaf)
    with np.errstate(over="ignore", under="ignore"):
        largest = np.finfo(np.float32).max
        expected = np.clip(a.values.astype(np.float64) * unit / hessian_unit, -largest, largest)
    np.testing.assert_allclose(b.values, expected, rtol=1e-6, atol=1e-44)
    assert np.isfinite(b.model["loss_changes"]).all()


def test_sampled_features_depend_on_the_seed_alone():
    X, target, hessian = make(d=12)
    engine = NativeEngine(binned(X, max_bin=64), GrowthOptions(), colsample=0.25)
    assert engine.samples_features
    first = [engine.grow(target, hessian, seed)[0].model["split_indices"] for seed in (0, 1, 2)]
    again = [engine.grow(target, hessian, seed)[0].model["split_indices"] for seed in (2, 1, 0)]
    for a, b in zip(first, again[::-1], strict=True):
        np.testing.assert_array_equal(a, b)
        assert len(np.unique(a)) <= 4
    assert len(np.unique(np.concatenate(first))) > 4


@pytest.mark.parametrize("make_data", [two_classes, three_classes])
def test_a_fit_is_as_good_as_with_xgboost(make_data):
    X, y = make_data(n=800)
    losses = []
    for name in ("native", "xgboost"):
        model = scboost.SCBoostClassifier(n_estimators=60, random_state=0, engine=name).fit(X[::2], y[::2])
        losses.append(log_loss(y[1::2], model.predict_proba(X[1::2])))
    assert abs(losses[0] - losses[1]) < 0.1 * losses[1]


def test_scores_after_training_are_those_of_the_model():
    X, y = two_classes(n=500)
    X[::7, 2] = np.nan
    model = scboost.SCBoostRegressor(engine="native", n_estimators=30, exploration=0.0, random_state=0).fit(X, y)
    booster = model.get_booster()
    np.testing.assert_allclose(booster.inplace_predict(X), model.predict(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_fits_are_bit_identical_for_any_number_of_threads(n_jobs):
    X, y = three_classes(n=400)
    models = [
        scboost.SCBoostClassifier(engine="native", n_estimators=15, random_state=0, n_jobs=k).fit(X, y)
        for k in (1, n_jobs)
    ]
    np.testing.assert_array_equal(models[0].predict_proba(X), models[1].predict_proba(X))


def test_monotone_constraints_hold_for_recomputed_leaf_values():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = X[:, 0] + np.sin(3 * X[:, 0]) + X[:, 1] + rng.normal(size=500)
    model = scboost.SCBoostRegressor(
        engine="native", n_estimators=60, monotone_constraints=(1, -1, 0), random_state=0
    ).fit(X, y)
    for feature, sign in ((0, 1), (1, -1)):
        grid = np.repeat(rng.normal(size=(20, 1, 3)), 50, axis=1)
        grid[:, :, feature] = np.linspace(-3, 3, 50)
        steps = np.diff(model.predict(grid.reshape(-1, 3)).reshape(20, 50), axis=1)
        assert (sign * steps >= -1e-6).all()


def test_more_workers_than_one_are_refused():
    from scboost._runtime.communicator import SINGLE_PROCESS
    from scboost._runtime.context import Context

    class Two(type(SINGLE_PROCESS)):
        size = 2

    with pytest.raises(ValueError, match="engine='xgboost'"):
        NativeEngine(binned(make()[0], max_bin=16), GrowthOptions(), context=Context(communicator=Two()), pool=Pool(1))


@pytest.mark.parametrize("changes", [{}, {"in_batches": True}, {"distributed": True}, {"device": "cuda"}], ids=str)
def test_auto_takes_the_kernels_where_they_can_be_used(changes):
    given = {"in_batches": False, "distributed": False, "device": "cpu", **changes}
    assert engine_name("auto", **given) == ("xgboost" if changes else "native")
    assert engine_name("xgboost", **given) == "xgboost"
    if changes:
        with pytest.raises(ValueError, match="use engine='xgboost'"):
            engine_name("native", **given)


def test_without_the_kernels_auto_is_xgboost_and_native_a_clear_error(monkeypatch):
    monkeypatch.setattr(factory, "is_available", lambda: False)
    given = {"in_batches": False, "distributed": False, "device": "cpu"}
    assert engine_name("auto", **given) == "xgboost"
    with pytest.raises(ImportError, match="make native"):
        engine_name("native", **given)


def test_a_resumed_fit_is_bit_identical():
    X, y = two_classes(n=400)
    params = {"engine": "native", "random_state": 0, "n_jobs": 1, "warm_start": True, "learning_rate": 0.2}
    whole = scboost.SCBoostClassifier(n_estimators=20, **params).fit(X, y)
    parts = scboost.SCBoostClassifier(n_estimators=9, **params).fit(X, y)
    parts.set_params(n_estimators=20).fit(X, y)
    np.testing.assert_array_equal(parts.predict_proba(X), whole.predict_proba(X))


def test_the_model_and_its_file_store_the_engine(tmp_path):
    X, y = two_classes(n=60)
    for asked, used in [("auto", "native"), ("native", "native"), ("xgboost", "xgboost")]:
        model = SCBoostClassifier(n_estimators=2, engine=asked, n_jobs=1).fit(X, y)
        assert model.engine_ == used
        model.save_model(tmp_path / "model.ubj")
        assert load_model(tmp_path / "model.ubj").engine_ == used
    assert SCBoostClassifier(n_estimators=2, n_jobs=1, estimator=DecisionTreeRegressor()).fit(X, y).engine_ is None


def test_a_resumed_fit_keeps_its_engine():
    X, y = two_classes(n=80)
    few = SCBoostClassifier(**{**FAST, "n_estimators": 3}, engine="xgboost", warm_start=True).fit(X, y)
    resumed = few.set_params(n_estimators=6, engine="auto").fit(X, y)
    whole = SCBoostClassifier(**{**FAST, "n_estimators": 6}, engine="xgboost").fit(X, y)
    assert resumed.engine_ == "xgboost"
    np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))
    with pytest.raises(ValueError, match="engine='native' was 'xgboost'"):
        resumed.set_params(n_estimators=9, engine="native").fit(X, y)


def test_fits_of_many_samples_do_not_depend_on_threads(monkeypatch):
    monkeypatch.setattr(threads, "_THREADED", 0)  # as with many samples
    X, y = two_classes(n=500)
    one, four = (SCBoostClassifier(**FAST | {"n_jobs": n}, engine="native").fit(X, y) for n in (1, 4))
    np.testing.assert_array_equal(one.training_log_["loss"], four.training_log_["loss"])
    np.testing.assert_array_equal(one.predict_proba(X), four.predict_proba(X))
