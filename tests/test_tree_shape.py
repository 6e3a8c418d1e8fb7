"""The parameter tree_shape: what trees look like, and that it is kept."""

import numpy as np
import pytest
import xgboost

from scboost import SCBoostClassifier, SCBoostRegressor, load_model

pytest.importorskip("scboost._engine.native._native")
NATIVE = {"engine": "native", "n_estimators": 6, "learning_rate": 0.3, "n_jobs": 1, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6)).astype(np.float32)
    return X, X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] ** 2 + 0.3 * rng.normal(size=600)


def is_symmetric(booster, tree):
    """Whether a tree has no more different splits than levels: one for all leaves of a level."""
    table = booster.trees_to_dataframe()
    inner = table[(table.Tree == tree) & (table.Feature != "Leaf")]
    assert len(inner) > 6
    return len(set(zip(inner.Feature, inner.Split, strict=True))) <= 6


@pytest.mark.parametrize(
    ("shape", "symmetric"),
    [("symmetric", [True] * 6), ("depth-wise", [False] * 6), ("alternating", [False, True] * 3)],
)
def test_trees_have_the_requested_shape(data, shape, symmetric):
    X, y = data
    model = SCBoostRegressor(**NATIVE, tree_shape=shape).fit(X, y)
    assert model.tree_shape_ == shape
    assert model.max_depth_ == 6
    assert [is_symmetric(model.get_booster(), tree) for tree in range(6)] == symmetric


@pytest.mark.parametrize("cls", [SCBoostClassifier, SCBoostRegressor])
def test_auto_is_leaf_wise_if_the_leaves_are_limited(cls, data):
    X, y = data
    y = y if cls is SCBoostRegressor else y > 0
    given = cls(**NATIVE, max_leaves=9).fit(X, y)
    explicit = cls(**NATIVE, max_leaves=9, tree_shape="leaf-wise").fit(X, y)
    assert given.tree_shape_ == "leaf-wise"
    assert (given.predict(X) == explicit.predict(X)).all()
    by_level = cls(**NATIVE, max_leaves=None).fit(X, y)
    assert (by_level.tree_shape_, by_level.max_depth_) == ("depth-wise", 6)


def test_file_keeps_the_shape_and_xgboost_predicts_the_same(data, tmp_path):
    X, y = data
    model = SCBoostRegressor(**NATIVE, tree_shape="symmetric").fit(X, y)
    model.save_model(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.tree_shape_ == "symmetric"
    assert loaded.projection_strength_ == model.projection_strength_ == 0.7  # the default of regression
    booster = xgboost.Booster(model_file=tmp_path / "model.json")
    margins = booster.predict(xgboost.DMatrix(X), output_margin=True)
    np.testing.assert_allclose(margins, model.predict(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("done", [3, 4])
def test_alternation_continues_in_a_resumed_fit(data, done):
    X, y = data
    params = {**NATIVE, "tree_shape": "alternating"}
    whole = SCBoostRegressor(**params).fit(X, y)
    resumed = SCBoostRegressor(**{**params, "n_estimators": done}, warm_start=True).fit(X, y)
    resumed.set_params(n_estimators=6).fit(X, y)
    assert (resumed.predict(X) == whole.predict(X)).all()


@pytest.mark.parametrize("shape", ["symmetric", "alternating"])
def test_shapes_that_xgboost_lacks_need_the_native_engine(data, shape):
    X, y = data
    with pytest.raises(ValueError, match=rf"tree_shape='{shape}' needs engine='native'"):
        SCBoostRegressor(**{**NATIVE, "engine": "xgboost"}, tree_shape=shape).fit(X, y)


def test_trees_need_a_limit(data):
    X, y = data
    with pytest.raises(ValueError, match="max_depth=None and max_leaves=auto do not limit the size of trees"):
        SCBoostRegressor(**NATIVE, tree_shape="symmetric", max_depth=None).fit(X, y)
    with pytest.raises(ValueError, match="tree_shape='depth-wise' needs estimator=None"):
        SCBoostRegressor(tree_shape="depth-wise", estimator=SCBoostRegressor(), leaf_rule="mean").fit(X, y)


def test_threads_do_not_matter(data):
    X, y = data
    fits = [SCBoostRegressor(**{**NATIVE, "n_jobs": n}, tree_shape="alternating").fit(X, y) for n in (1, 3)]
    assert (fits[0].predict(X) == fits[1].predict(X)).all()
