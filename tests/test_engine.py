"""Tree engines: what is assumed of XGBoost, and what is promised of the trees."""

import json
import pickle

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor
from threadpoolctl import threadpool_info

from data_makers import real_target, three_classes, two_classes
from scboost import SCBoostClassifier
from scboost._engine.estimator import EstimatorEngine
from scboost._engine.interface import Totals
from scboost._engine.native import is_available
from scboost._engine.xgboost import engine as engine_module
from scboost._engine.xgboost.calls import Calls
from scboost._engine.xgboost.engine import XGBoostEngine, _snap
from scboost._engine.xgboost.ensemble import TreeEnsemble

PARAMS = {"max_depth": 4, "lambda": 1.0, "min_child_weight": 0.0}


def targets(n, rounds, n_outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rounds, n_outputs, n)).astype(np.float32)


def grow_all(engine, rounds, shape):
    ones = np.ones(shape, dtype=np.float32)
    return [engine.grow(target.copy(), ones, seed) for seed, target in enumerate(rounds)]


def structure(learner):
    tree = learner.model
    leaves = tree["left_children"] == -1
    return tree["left_children"], tree["split_indices"], np.where(leaves, 0, tree["split_conditions"])


def assert_same_structure(a, b):
    for x, y in zip(structure(a), structure(b), strict=True):
        np.testing.assert_array_equal(x, y)


def leaf_nodes(tree, X):
    """Route every sample through a tree: the number of its leaf node."""
    node = np.zeros(len(X), dtype=int)
    for _ in range(len(tree["left_children"])):
        left = X[np.arange(len(X)), tree["split_indices"][node]] < tree["split_conditions"][node]
        inner = tree["left_children"][node] != -1
        node = np.where(inner, np.where(left, tree["left_children"][node], tree["right_children"][node]), node)
    return node


# --- the nine hazards ------------------------------------------------------------------------------


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_cached_margins_equal_the_sum_of_trees(n_outputs):
    X, _ = real_target(n=400)
    engine = XGBoostEngine(X, n_outputs, PARAMS)
    ensemble = TreeEnsemble(X.shape[1], np.zeros(n_outputs), objective="reg:squarederror")
    seen = []
    for seed, target in enumerate(targets(400, 12, n_outputs)):
        learners = engine.grow(target, np.ones_like(target), seed)
        ensemble.append(learners, 0.1)
        seen.append([learner.predictions() for learner in learners])
        # Reading parts of the model on the training matrix between two rounds is what spoils XGBoost's cache.
        ensemble.contributions(engine.matrix)
        ensemble.booster().predict(engine.matrix, iteration_range=(seed, seed + 1))
    np.testing.assert_array_equal(seen, ensemble.contributions(X))


def test_inconsistent_margins_raise():
    values = np.array([-1.0, 0.5, 2.0], dtype=np.float32)
    right = values[[0, 1, 2, 1]]
    np.testing.assert_array_equal(_snap(right, np.zeros_like(right), values), [0, 1, 2, 1])
    with pytest.raises(RuntimeError, match="cached margins cannot be trusted"):
        _snap(right + np.float32([0, 0.01, 0, 0]), np.zeros_like(right), values)


@pytest.mark.parametrize("exponent", [-40, -20, 20])
def test_tree_structure_does_not_depend_on_the_scale_of_the_target(exponent):
    X, y = real_target(n=300)
    factor = np.float32(2.0**exponent)  # a power of two changes no digit
    target = y[None].astype(np.float32)
    ones = np.ones_like(target)
    (plain,) = XGBoostEngine(X, 1, PARAMS).grow(target.copy(), ones, 0)
    (scaled,) = XGBoostEngine(X, 1, PARAMS).grow(target * factor, ones, 0)
    assert len(plain.values) > 4
    assert_same_structure(plain, scaled)
    np.testing.assert_array_equal(scaled.values, plain.values * factor)
    np.testing.assert_allclose(scaled.model["loss_changes"], plain.model["loss_changes"] * factor**2, rtol=1e-6)


def test_plain_xgboost_rejects_splits_of_tiny_targets():
    X, y = real_target(n=300)
    matrix = xgb.QuantileDMatrix(X, nthread=1)
    booster = xgb.Booster({**PARAMS, "nthread": 1, "base_score": 0.0}, [matrix])
    booster.boost(matrix, 0, grad=(-1e-5 * y).astype(np.float32), hess=np.ones(300, dtype=np.float32))
    assert booster.get_dump()[0].startswith("0:leaf")


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_predictions_are_exact_leaf_values(n_outputs):
    X, _ = real_target(n=400)
    engine = XGBoostEngine(X, n_outputs, PARAMS)
    for seed, target in enumerate(targets(400, 10, n_outputs)):
        # Large steps make the cached margins large, and their differences coarse.
        for learner in engine.grow(1e3 * target, np.ones_like(target), seed):
            nodes = leaf_nodes(learner.model, X.astype(np.float32))
            assert len(np.unique(nodes)) > 4
            np.testing.assert_array_equal(learner.nodes[learner.leaf], nodes)
            np.testing.assert_array_equal(learner.predictions(), learner.values[learner.leaf])
            # Values are the leaves of the tree times the one scale that the target was divided by.
            scale = learner.values / learner.model["split_conditions"][learner.nodes]
            np.testing.assert_allclose(scale, scale[0], rtol=1e-6)
            assert scale[0] == pytest.approx(1e3 * np.sqrt(np.mean(target**2)), rel=0.2)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_leaves_from_margins_equal_leaves_from_prediction(n_outputs, monkeypatch):
    X, _ = real_target(n=400)
    rounds = targets(400, 8, n_outputs)
    snapped = grow_all(XGBoostEngine(X, n_outputs, PARAMS), rounds, rounds[0].shape)
    monkeypatch.setattr(engine_module, "_snap", lambda *_: None)
    exact = grow_all(XGBoostEngine(X, n_outputs, PARAMS), rounds, rounds[0].shape)
    for some, others in zip(snapped, exact, strict=True):
        for a, b in zip(some, others, strict=True):
            assert_same_structure(a, b)
            np.testing.assert_array_equal(a.leaf, b.leaf)
            np.testing.assert_array_equal(a.values, b.values)


@settings(deadline=None)
@given(st.lists(st.floats(-2, 2, width=32), min_size=1, max_size=8), st.floats(0, 1e6), st.integers(0, 99))
def test_leaf_lookup_survives_rounding_of_large_margins(values, size, seed):
    values = np.unique(np.array(values, dtype=np.float32))
    values = np.random.default_rng(seed).permutation(values)
    leaf = np.random.default_rng(seed).integers(len(values), size=50)
    before = np.random.default_rng(seed).uniform(-size, size, size=50).astype(np.float32)
    after = before + values[leaf]
    found = _snap(after, before, values)
    if found is not None:
        np.testing.assert_array_equal(found, leaf)


def test_leaf_lookup_separates_close_leaf_values():
    values = np.array([-2.0, 0.1, 0.10005, 0.1001, 2.0], dtype=np.float32)
    leaf = np.random.default_rng(0).integers(5, size=40_000)
    np.testing.assert_array_equal(_snap(values[leaf], np.zeros(40_000, dtype=np.float32), values), leaf)


def test_leaf_lookup_does_not_guess_between_equal_leaf_values():
    values = np.array([1.0, 1.0 + 2e-7, 3.0], dtype=np.float32)
    assert _snap(values, np.zeros(3, dtype=np.float32), values) is None
    np.testing.assert_array_equal(_snap(values[[2, 0]], np.zeros(2, dtype=np.float32), values[[0, 2]]), [1, 0])


def grid_steps(model, X, column):
    """Changes of the raw score along a fine grid of one column, at many settings of the others."""
    grid = np.linspace(X[:, column].min() - 1, X[:, column].max() + 1, 400)
    rows = np.repeat(X[:40], len(grid), axis=0)
    rows[:, column] = np.tile(grid, 40)
    return np.diff(model.decision_function(rows).reshape(40, -1), axis=1)


@pytest.mark.parametrize("leaf_rule", ["newton", "mean"])
@pytest.mark.parametrize("gamma", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_monotone_constraints_hold_for_recomputed_leaves(leaf_rule, gamma, seed):
    X, y = two_classes(n=400, seed=seed, flip=0.2)
    common = {
        "n_estimators": 25,
        "learning_rate": 0.3,
        "leaf_rule": leaf_rule,
        "projection_strength": gamma,
        "n_jobs": 1,
        "random_state": 0,
    }
    model = SCBoostClassifier(monotone_constraints=[1, -1, 0, 0, 1], **common).fit(X, y)
    assert grid_steps(model, X, 0).min() >= 0
    assert grid_steps(model, X, 1).max() <= 0
    assert grid_steps(model, X, 4).min() >= 0
    free = SCBoostClassifier(**common).fit(X, y)
    assert grid_steps(free, X, 0).min() < 0  # the constraint is at work


def test_leaves_are_unchanged_without_constraints():
    X, y = real_target(n=300)
    target = y[None].astype(np.float32)
    ones = np.ones_like(target)
    engine = XGBoostEngine(X, 1, PARAMS)
    (learner,) = engine.grow(target, ones, 0)
    odd = np.arange(len(learner.values), dtype=np.float64)
    np.testing.assert_array_equal(engine.constrain(learner, odd, ones[0]), odd)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000), signs=st.tuples(*[st.sampled_from([-1, 0, 1])] * 3))
def test_any_leaf_values_become_monotone(seed, signs):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 3))
    target = rng.normal(size=(1, 150)).astype(np.float32)
    ones = np.ones_like(target)
    params = {"max_depth": 5, "lambda": 0.0, "min_child_weight": 0.0, "monotone_constraints": signs}
    engine = XGBoostEngine(X, 1, params)
    (learner,) = engine.grow(target, ones, 0)
    learner.values = engine.constrain(learner, rng.normal(size=len(learner.values)), ones[0]).astype(np.float32)
    ensemble = TreeEnsemble(3, np.zeros(1), objective="reg:squarederror")
    ensemble.append([learner], 1.0)
    for column, sign in enumerate(signs):
        grid = np.repeat(X[:20], 100, axis=0)
        grid[:, column] = np.tile(np.linspace(-4, 4, 100), 20)
        steps = np.diff(ensemble.scores(grid)[0].reshape(20, 100), axis=1)
        assert (sign * steps).min() >= 0


@pytest.mark.parametrize("weighting", [None, "nonnegative"])
def test_native_model_has_what_converters_need(tmp_path, weighting):
    X, y = two_classes(n=300)
    model = SCBoostClassifier(n_estimators=8, weighting=weighting, n_jobs=1, random_state=0).fit(X, y)
    path = tmp_path / "model.json"
    model.get_booster().save_model(path)
    learner = json.loads(path.read_text())["learner"]
    assert learner["objective"] == {"name": "binary:logistic", "reg_loss_param": {"scale_pos_weight": "1"}}
    for tree in learner["gradient_booster"]["model"]["trees"]:
        assert all(isinstance(cover, float) for cover in tree["sum_hessian"])
        assert tree["sum_hessian"][0] != round(tree["sum_hessian"][0])  # covers are sums of Hessians, not counts
    wrapper = xgb.XGBClassifier(n_jobs=1)
    wrapper.load_model(path)
    np.testing.assert_allclose(wrapper.predict_proba(X), model.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(wrapper.predict(X), model.predict(X))


def test_native_multiclass_model_has_what_converters_need(tmp_path):
    X, y = three_classes()
    model = SCBoostClassifier(n_estimators=6, n_jobs=1, random_state=0).fit(X, y)
    model.get_booster().save_model(tmp_path / "model.json")
    wrapper = xgb.XGBClassifier(n_jobs=1)
    wrapper.load_model(tmp_path / "model.json")
    np.testing.assert_allclose(wrapper.predict_proba(X), model.predict_proba(X), atol=1e-6)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 1000), n_outputs=st.sampled_from([1, 3]))
def test_scaled_leaves_reproduce_the_weighted_sum(seed, n_outputs):
    X, _ = real_target(n=200)
    rng = np.random.default_rng(seed)
    engine = XGBoostEngine(X, n_outputs, PARAMS)
    objective = "binary:logistic" if n_outputs == 1 else "multi:softprob"
    ensemble = TreeEnsemble(X.shape[1], np.zeros(n_outputs), objective=objective)
    for learners in grow_all(engine, targets(200, 6, n_outputs, seed), (n_outputs, 200)):
        ensemble.append(learners, 1.0)
    w = rng.uniform(-1, 2, size=(6, n_outputs)) * (rng.random((6, n_outputs)) < 0.6)
    intercept = rng.normal(size=n_outputs)
    ensemble.reweight(w, intercept)
    H = ensemble.contributions(X).astype(np.float64)
    expected = intercept[:, None] + np.einsum("tk,tkn->kn", w, H)
    booster = ensemble.booster()
    assert booster.num_boosted_rounds() == max(np.count_nonzero(w.any(axis=1)), 1)  # a constant, if there is none
    np.testing.assert_allclose(ensemble.scores(X), expected, atol=2e-6)
    margin = booster.predict(xgb.DMatrix(X), output_margin=True).reshape(200, n_outputs).T
    np.testing.assert_allclose(margin, expected, atol=2e-6)
    contributions = booster.predict(xgb.DMatrix(X), pred_contribs=True).reshape(200, n_outputs, -1)
    np.testing.assert_allclose(contributions.sum(axis=2).T, expected, atol=1e-5)


def test_interrupted_fit_resumes_from_a_checkpoint():
    X, y = two_classes(n=300)
    params = {"learning_rate": 0.2, "warm_start": True, "subsample": 0.7, "n_jobs": 1, "random_state": 3}
    whole = SCBoostClassifier(n_estimators=12, **params).fit(X, y)
    checkpoints = []

    def die(model):
        if model.n_estimators_ == 7:
            checkpoints.append(pickle.dumps(model.set_params(callbacks=None)))
            raise ConnectionError

    with pytest.raises(ConnectionError):
        SCBoostClassifier(n_estimators=12, callbacks=[die], **params).fit(X, y)
    resumed = pickle.loads(checkpoints[0]).fit(X, y)  # noqa: S301 - written above
    assert resumed.n_estimators_ == 12
    assert resumed.get_booster().save_raw() == whole.get_booster().save_raw()


@pytest.mark.parametrize("gamma", [0.0, 0.7])
@pytest.mark.parametrize("many", [False, True])
def test_engine_is_bit_identical_for_any_number_of_threads(gamma, many):
    X, y = three_classes(n=1500) if many else two_classes(n=1500)
    models = [
        SCBoostClassifier(n_estimators=8, projection_strength=gamma, n_jobs=n_jobs, random_state=0).fit(X, y)
        for n_jobs in (1, 2, 4)
    ]
    raw = [model.get_booster().save_raw() for model in models]
    assert raw[0] == raw[1] == raw[2]
    assert models[0].training_log_["loss"].tolist() == models[1].training_log_["loss"].tolist()
    np.testing.assert_array_equal(models[0].predict_proba(X), models[1].predict_proba(X))


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_c_api_calls_equal_those_of_the_python_package(n_outputs):
    X, _ = real_target(n=400)
    grads = np.random.default_rng(0).normal(size=(3, 400, n_outputs))
    matrix = xgb.QuantileDMatrix(X, nthread=1)
    params = {"nthread": 1, "base_score": 0.0}
    if n_outputs > 1:
        params |= {"objective": "multi:softprob", "num_class": n_outputs}
    ours, theirs = (xgb.Booster(params, [matrix]) for _ in range(2))
    calls = Calls(ours, matrix)
    for i, (grad, dtype) in enumerate(zip(grads, (np.float32, np.float64, np.float32), strict=True)):
        pair = grad.astype(dtype), np.ones_like(grad, dtype=dtype)
        calls.boost(i, *pair)
        theirs.boost(matrix, i, grad=pair[0], hess=pair[1])
        np.testing.assert_array_equal(calls.margin(), theirs.predict(matrix, output_margin=True).ravel())
        assert calls.model() == ours.save_raw("ubj") == theirs.save_raw("ubj")


def test_failed_calls_raise_the_error_of_xgboost():
    matrix = xgb.QuantileDMatrix(np.zeros((4, 1)), nthread=1)
    grad = np.zeros(3, dtype=np.float32)
    with pytest.raises(xgb.core.XGBoostError, match="gradient"):
        Calls(xgb.Booster({"nthread": 1}, [matrix]), matrix).boost(0, grad, grad)


@pytest.fixture
def threads(monkeypatch):
    """Number of threads that every matrix was made with and that every model worked with."""
    seen = []

    def watch(cls, name, of):
        original = getattr(cls, name)

        def wrapper(self, *args, **kwargs):
            result = original(self, *args, **kwargs)
            seen.append((f"{cls.__name__}.{name}", of(self)))
            return result

        monkeypatch.setattr(cls, name, wrapper)

    def of_model(booster):
        return int(json.loads(booster.save_config())["learner"]["generic_param"]["nthread"])

    for cls in (xgb.DMatrix, xgb.QuantileDMatrix):
        watch(cls, "__init__", lambda matrix: matrix.nthread)
    for name in ("boost", "margin"):
        watch(Calls, name, lambda calls: of_model(calls.booster))
    for name in ("predict", "inplace_predict"):
        watch(xgb.Booster, name, of_model)
    return seen


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"early_stopping": True},
        {"weighting": "nonnegative"},
        {"weighting": "nonnegative", "weighting_data": "fold_average", "cv": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_n_jobs_limits_all_threads(threads, parameters, n_jobs):
    X, y = two_classes()
    model = SCBoostClassifier(n_estimators=3, n_jobs=n_jobs, random_state=0, engine="xgboost", **parameters).fit(X, y)
    model.predict_proba(X)
    list(model.staged_predict_proba(X))
    predicted_by = set() if is_available() else {"Booster.inplace_predict"}  # compiled kernels have a pool of their own
    assert {name for name, _ in threads} >= {"QuantileDMatrix.__init__", "Calls.boost", *predicted_by}
    assert {entry for entry in threads if entry[1] != n_jobs} == set()


def test_blas_does_not_use_threads_during_a_fit():
    X, y = two_classes()
    blas = []

    def look(_):
        blas.append([pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"])

    SCBoostClassifier(n_estimators=2, n_jobs=2, callbacks=[look], random_state=0).fit(X, y)
    assert len(blas) == 2
    assert all(n == 1 for round_ in blas for n in round_)


# --- sampling --------------------------------------------------------------------------------------


def used_columns(learner):
    tree = learner.model
    return set(tree["split_indices"][tree["left_children"] != -1].tolist())


def test_features_are_sampled_by_the_seed_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 12))
    target = rng.normal(size=(1, 500)).astype(np.float32)
    ones = np.ones_like(target)
    params = {"max_depth": 7, "lambda": 0.0, "min_child_weight": 0.0}
    engine = XGBoostEngine(X, 1, params, colsample=0.25)
    by_seed = {seed: engine.grow(target.copy(), ones, seed)[0] for seed in range(20)}
    for seed in (13, 4):  # again, late, and from an engine that has grown nothing
        for other in (engine, XGBoostEngine(X, 1, params, colsample=0.25)):
            assert_same_structure(other.grow(target.copy(), ones, seed)[0], by_seed[seed])
    used = [used_columns(learner) for learner in by_seed.values()]
    assert {len(columns) for columns in used} == {3}
    assert set().union(*used) == set(range(12))


def test_at_least_one_feature_is_sampled():
    X, y = real_target()
    (learner,) = XGBoostEngine(X, 1, PARAMS, colsample=0.01).grow(
        y[None].astype(np.float32), np.ones((1, 300), dtype=np.float32), 0
    )
    assert len(used_columns(learner)) == 1


def test_samples_with_zero_hessian_have_no_effect():
    X, y = real_target(n=300)
    rows = np.arange(300) % 3 > 0
    target = (y * rows)[None].astype(np.float32)
    (masked,) = XGBoostEngine(X, 1, PARAMS).grow(target.copy(), rows[None].astype(np.float32), 0)
    in_leaf = np.bincount(masked.leaf, weights=rows, minlength=len(masked.values))
    sums = np.bincount(masked.leaf, weights=target[0], minlength=len(masked.values))
    np.testing.assert_allclose(masked.values, sums / (in_leaf + 1.0), atol=1e-5)


def test_an_engine_leaf_is_the_penalized_mean():
    X, y = real_target()
    curvature = np.random.default_rng(0).uniform(0.5, 2, size=(1, 300)).astype(np.float32)
    target = y[None].astype(np.float32)
    (learner,) = XGBoostEngine(X, 1, PARAMS).grow(target.copy(), curvature, 0)
    G = np.bincount(learner.leaf, weights=target[0])
    D = np.bincount(learner.leaf, weights=curvature[0])
    np.testing.assert_allclose(learner.values, G / (D + 1.0), rtol=1e-4)


# --- any scikit-learn regressor --------------------------------------------------------------------


def test_estimator_engine_fits_the_target_as_it_is():
    X, y = real_target()
    tree = DecisionTreeRegressor(max_depth=3, random_state=0)
    engine = EstimatorEngine(X, lambda seed: DecisionTreeRegressor(max_depth=3, random_state=0), sample_weighted=False)
    (learner,) = engine.grow(y[None], np.ones((1, 300)), 0)
    np.testing.assert_array_equal(learner.predictions(), tree.fit(X, y).predict(X))
    assert len(learner.values) == tree.get_n_leaves()


def test_estimator_engine_weights_samples_by_the_hessian():
    X, y = real_target()
    weight = np.random.default_rng(0).integers(0, 3, size=300).astype(float)
    engine = EstimatorEngine(X, lambda seed: LinearRegression(), sample_weighted=True)
    (learner,) = engine.grow((y * weight)[None], weight[None], 0)
    expected = LinearRegression().fit(X, y, sample_weight=weight).predict(X)
    np.testing.assert_allclose(learner.predictions(), expected, atol=1e-10)
    assert learner.leaf is None


def test_estimator_engine_gives_each_output_its_own_seed_and_learner():
    X, y = real_target()
    seeds = []

    def make(seed):
        seeds.append(seed)
        return DummyRegressor()

    learners = EstimatorEngine(X, make, sample_weighted=False).grow(np.stack([y, -y]), np.ones((2, 300)), 2**32 - 1)
    assert len(set(seeds)) == 2
    assert all(0 <= seed < 2**32 for seed in seeds)
    np.testing.assert_allclose(learners[0].predictions(), -learners[1].predictions())


def test_targets_below_single_precision_cause_no_division_by_zero():
    X = np.arange(20.0)[:, None]
    engine = XGBoostEngine(X, 1, {})
    hessian = np.ones((1, 20), dtype=np.float32)
    totals = Totals(np.array([1e-90]), 20.0)
    (learner,) = engine.grow(np.full((1, 20), 1e-45, dtype=np.float32), hessian, 0, totals)
    assert np.isfinite(learner.values).all()
