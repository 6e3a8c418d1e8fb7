"""The parameter multi_strategy: trees of several outputs with one structure."""

import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeRegressor

from scboost import Checkpoint, SCBoostClassifier, SCBoostRegressor, load_model

pytest.importorskip("scboost._engine.native._native")
SHARED = {
    "engine": "native",
    "n_estimators": 8,
    "learning_rate": 0.3,
    "multi_strategy": "multi_output_tree",
    "n_jobs": 1,
    "random_state": 0,
}
PLAIN = {"exploration": 0.0, "projection_strength": 0.0}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(500, 4)), columns=list("abcd"))
    X["kind"] = pd.Categorical(rng.choice(["x", "y", "z"], 500))
    X.loc[rng.random(500) < 0.2, "b"] = np.nan
    a, b = X["a"].to_numpy(), X["b"].fillna(0).to_numpy()
    f = np.c_[a * b, np.sin(2 * a) + (X["kind"] == "x"), b**2]
    return X, f + 0.2 * rng.normal(size=f.shape)


@pytest.fixture(scope="module")
def classes():
    return make_classification(900, 10, n_informative=8, n_classes=7, n_clusters_per_class=1, random_state=0)


def structures(model):
    """Return what defines each split, by round and output."""
    table = model.get_booster().trees_to_dataframe()
    inner = table[table.Feature != "Leaf"]
    splits = [
        (g.Feature + g.Split.astype(str) + g.Yes + g.Missing).str.replace(r"\d+-", "", regex=True).tolist()
        for _, g in inner.groupby("Tree")
    ]
    K = len(model.intercept_)
    return [splits[i : i + K] for i in range(0, len(splits), K)]


@pytest.mark.parametrize("shape", ["depth-wise", "leaf-wise", "symmetric", "alternating"])
def test_trees_of_a_round_have_one_structure_and_xgboost_predicts_the_same(data, shape, tmp_path):
    X, Y = data
    model = SCBoostRegressor(**SHARED, tree_shape=shape).fit(X, Y)
    assert model.multi_strategy_ == "multi_output_tree"
    assert all(len(set(map(tuple, round_))) == 1 for round_ in structures(model))
    assert len({tuple(round_[0]) for round_ in structures(model)}) > 4
    assert len(np.unique(model.predict(X), axis=1).T) == 3
    margin = model.get_booster().predict(xgboost.DMatrix(X, enable_categorical=True), output_margin=True)
    np.testing.assert_allclose(margin, model.predict(X), atol=1e-4)
    model.save_model(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.multi_strategy_ == "multi_output_tree"
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_leaf_values_are_newton_steps_of_each_output(data):
    X, Y = data
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    model = SCBoostRegressor(**{**SHARED, "n_estimators": 1}, **PLAIN, reg_lambda=2.0).fit(X, Y)
    step = (model.predict(X) - model.intercept_) / 0.3
    leaf = np.unique(step, axis=0, return_inverse=True)[1].ravel()
    assert leaf.max() > 5
    for k in range(leaf.max() + 1):
        rows = leaf == k
        expected = (Y[rows] - model.intercept_).sum(axis=0) / (rows.sum() + 2.0)
        np.testing.assert_allclose(step[rows][0], expected, atol=1e-4)


def test_integer_weights_are_repetition(data):
    X, Y = data
    weight = np.random.default_rng(1).integers(0, 3, len(X))
    params = {**SHARED, **PLAIN, "max_depth": 3}
    weighted = SCBoostRegressor(**params).fit(X, Y, sample_weight=weight)
    repeated = SCBoostRegressor(**params).fit(X.loc[np.repeat(X.index, weight)], np.repeat(Y, weight, axis=0))
    near = np.isclose(weighted.predict(X), repeated.predict(X), atol=1e-3).all(axis=1)
    assert near.mean() > 0.95  # bins differ where values are repeated


def test_targets_may_be_missing(data):
    X, Y = data
    gaps = Y.copy()
    gaps[np.random.default_rng(2).random(Y.shape) < 0.4] = np.nan
    kept = ~np.isnan(gaps).all(axis=1)
    model = SCBoostRegressor(**{**SHARED, "n_estimators": 60}).fit(X[kept], gaps[kept])
    hidden = np.isnan(gaps)
    assert np.corrcoef(model.predict(X)[hidden], Y[hidden])[0, 1] > 0.9


@pytest.mark.parametrize("options", [{}, {"subsample": 0.7}, {"colsample_bytree": 0.6}])
def test_threads_and_continued_fits_do_not_change_the_result(data, options):
    X, Y = data
    once = SCBoostRegressor(**SHARED, **options).fit(X, Y)
    threads = SCBoostRegressor(**{**SHARED, "n_jobs": 3}, **options).fit(X, Y)
    continued = SCBoostRegressor(**{**SHARED, "n_estimators": 3}, **options, warm_start=True).fit(X, Y)
    continued.set_params(n_estimators=8).fit(X, Y)
    for other in (threads, continued):
        np.testing.assert_array_equal(other.predict(X), once.predict(X))


def test_one_output_ignores_the_strategy(data):
    X, Y = data
    models = [
        SCBoostRegressor(**{**SHARED, "multi_strategy": s}).fit(X, Y[:, 0]) for s in ("auto", "multi_output_tree")
    ]
    np.testing.assert_array_equal(models[0].predict(X), models[1].predict(X))
    assert models[1].multi_strategy_ == "one_output_per_tree"


def test_shap_values_add_up(data):
    X, Y = data
    model = SCBoostRegressor(**SHARED).fit(X, Y)
    np.testing.assert_allclose(model.shap_values(X).sum(axis=2), model.predict(X), atol=1e-4)


def test_a_few_given_rounds_have_trees_of_their_own(data, classes):
    auto = {**SHARED, "multi_strategy": "auto"}
    assert SCBoostRegressor(**auto).fit(*data).multi_strategy_ == "one_output_per_tree"
    assert SCBoostClassifier(**auto).fit(*classes).multi_strategy_ == "one_output_per_tree"


def test_many_classes_share_a_structure_if_rounds_are_selected(classes):
    params = {"engine": "native", "n_jobs": 1, "random_state": 0, "cv": 2}
    assert SCBoostClassifier(**params).fit(*classes).multi_strategy_ == "multi_output_tree"
    own = SCBoostClassifier(**params, multi_strategy="one_output_per_tree", n_iter_no_change=5).fit(*classes)
    assert own.multi_strategy_ == "one_output_per_tree"


def test_cross_validation_shares_a_structure_where_targets_have_the_same_splits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    f = np.where(X[:, 0] * X[:, 1] > 0, X[:, 2], np.abs(X[:, 0]))
    noise = rng.normal(size=(400, 6))
    model = SCBoostRegressor(n_jobs=1, random_state=0, cv=2, engine="native").fit(X, f[:, None] + noise)
    assert model.multi_strategy_ == "multi_output_tree"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"engine": "xgboost"}, "engine='xgboost', which grows one tree per output"),
        ({"monotone_constraints": {"a": 1}}, "use multi_strategy='one_output_per_tree'"),
        ({"estimator": DecisionTreeRegressor(), "engine": "auto"}, "which grows one model per output"),
    ],
)
def test_obstacles_to_one_structure_are_named(data, params, message):
    X, Y = data
    with pytest.raises(ValueError, match=message):
        SCBoostRegressor(**{**SHARED, **params}).fit(X.drop(columns="kind"), Y)


def test_constrained_targets_have_trees_of_their_own(data):
    X, Y = data
    params = {"engine": "native", "n_jobs": 1, "cv": 2, "n_iter_no_change": 5, "random_state": 0}
    model = SCBoostRegressor(**params, monotone_constraints={"a": 1}).fit(X, Y)
    assert model.multi_strategy_ == "one_output_per_tree"


@pytest.mark.parametrize("params", [{**SHARED, "n_estimators": 12, "subsample": 0.6}, {"cv": 2, "n_iter_no_change": 5}])
def test_resumed_fits_are_bit_identical(classes, tmp_path, params):
    checkpoint = Checkpoint(tmp_path / "model", every=5)
    whole = SCBoostClassifier(**{"n_jobs": 1, "random_state": 0, **params}, callbacks=[checkpoint]).fit(*classes)
    resumed = checkpoint.load()
    assert 0 < resumed.n_estimators_ < whole.n_estimators_
    resumed.fit(*classes)
    assert resumed.multi_strategy_ == whole.multi_strategy_ == "multi_output_tree"
    np.testing.assert_array_equal(resumed.predict_proba(classes[0]), whole.predict_proba(classes[0]))


def test_the_model_of_one_target_predicts_the_same(data):
    X, Y = data
    model = SCBoostRegressor(**SHARED).fit(X, Y)
    for k in range(3):
        np.testing.assert_array_equal(model.target_model(k).predict(X), model.predict(X)[:, k])
