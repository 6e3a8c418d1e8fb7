"""Tree depth selected by cross-validation."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from data_makers import QUICK, additive, product_of_three
from scboost import SCBoostClassifier, SCBoostRegressor
from scboost._core.autotune import auto_learning_rate

pytest.importorskip("xgboost")


def depth_of(model):
    """Return the depth of the deepest tree, by XGBoost's own account."""
    nodes = model.get_booster().trees_to_dataframe()
    children = nodes.dropna(subset=["Yes"])
    depths = dict.fromkeys(nodes["ID"], 0)
    for node, *below in children[["ID", "Yes", "No"]].itertuples(index=False):  # parents come first
        for child in below:
            depths[child] = depths[node] + 1
    return max(depths.values())


@pytest.mark.parametrize(("make", "shallow"), [(additive, True), (product_of_three, False)])
def test_depth_is_selected_by_cross_validation(make, shallow):
    X, y = make(3000)
    # Features are selected with trees of the default depth: without it, only the depth differs.
    settings = {**QUICK, "feature_selection": False}
    models = {depth: SCBoostClassifier(**settings, max_depth=depth).fit(X[:800], y[:800]) for depth in ("auto", 2, 6)}
    expected = 2 if shallow else 6
    assert models["auto"].max_depth_ == expected
    np.testing.assert_array_equal(*(models[depth].predict_proba(X) for depth in ("auto", expected)))
    losses = {depth: log_loss(y[800:], model.predict_proba(X[800:])) for depth, model in models.items()}
    assert losses["auto"] == min(losses.values()) < max(losses.values())


def test_no_tree_is_deeper_than_selected():
    X, y = additive()
    for preset in ("default", "best"):
        model = SCBoostClassifier(**{**QUICK, "preset": preset}).fit(X, y)
        assert depth_of(model) == model.max_depth_ in (2, 3)


def test_shallow_trees_have_the_learning_rate_of_the_fold_models():
    X, y = additive()
    model = SCBoostClassifier(**{**QUICK, "learning_rate": "auto"}).fit(X, y)
    assert model.max_depth_ in (2, 3)
    assert model.learning_rate_ == pytest.approx(8 * auto_learning_rate(len(y), 1000))
    assert SCBoostClassifier(**QUICK).fit(X, y).learning_rate_ == QUICK["learning_rate"]


def test_regression_depth_is_unlimited_unless_cross_validation_selects_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 4))
    noisy = np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) - X[:, 2] + 1.5 * rng.normal(size=1000)
    sharp = np.sign(X).prod(axis=1) + 0.1 * rng.normal(size=1000)
    assert SCBoostRegressor(**QUICK, tree_shape="leaf-wise").fit(X, noisy).max_depth_ in (2, 3, 4)
    model = SCBoostRegressor(**QUICK, tree_shape="leaf-wise").fit(X, sharp)
    assert model.max_depth_ is None
    assert depth_of(model) > 6
    assert SCBoostRegressor(n_estimators=3, max_leaves=None).fit(X, sharp).max_depth_ == 6


@pytest.mark.parametrize("given", [1, 4, None])
def test_given_depth_is_kept(given):
    X, y = additive()
    assert SCBoostClassifier(**QUICK, max_depth=given, max_leaves=8).fit(X, y).max_depth_ == given


@pytest.mark.parametrize("reason", [{"early_stopping_metric": "roc_auc"}, {"preset": "fast"}])
def test_depth_is_not_reduced_without_selection_by_the_loss(reason):
    X, y = additive()
    assert SCBoostClassifier(**{**QUICK, "cv": "auto", **reason}).fit(X, y).max_depth_ == 6


def test_ten_folds_select_the_depth_that_five_folds_select():
    X, y = additive()
    settings = {**QUICK, "cv": 10}
    model = SCBoostClassifier(**settings, preset="best").fit(X, y)
    assert depth_of(model) == model.max_depth_ == SCBoostClassifier(**settings).fit(X, y).max_depth_ < 6
