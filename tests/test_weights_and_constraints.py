"""Sample weights of every task, and constraints of the fitted function."""

import json

import numpy as np
import pytest

from data_makers import FAST, real_target, three_classes, two_classes
from scboost._estimators import SCBoostClassifier, SCBoostRegressor

X, y = real_target()
TASKS = {
    "two classes": (SCBoostClassifier, {}, two_classes(d=4)),
    "many classes": (SCBoostClassifier, {}, three_classes(d=4)),
    "squared error": (SCBoostRegressor, {}, (X, y)),
    "absolute error": (SCBoostRegressor, {"loss": "absolute_error"}, (X, y)),
    "huber": (SCBoostRegressor, {"loss": "huber"}, (X, y)),
    "quantile": (SCBoostRegressor, {"loss": "quantile", "quantile": 0.3}, (X, y)),
    "poisson": (SCBoostRegressor, {"loss": "poisson"}, (X, np.round(np.exp(y)))),
}
every_task = pytest.mark.parametrize("task", TASKS)


def scores(model, rows):
    return model.decision_function(rows) if isinstance(model, SCBoostClassifier) else model.predict(rows)


def test_class_weights_apply_to_given_and_held_out_validation_samples():
    Z, target = two_classes()
    model = SCBoostClassifier(**FAST, class_weight={0: 1, 1: 5}, early_stopping=True)
    given = model.fit(Z, target, X_val=Z, y_val=target).training_log_["validation_loss"]
    by_hand = SCBoostClassifier(**FAST, early_stopping=True).fit(
        Z,
        target,
        sample_weight=np.where(target, 5, 1),
        X_val=Z,
        y_val=target,
        sample_weight_val=np.where(target, 5, 1),
    )
    np.testing.assert_array_equal(given, by_hand.training_log_["validation_loss"])


# --- constraints ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [task for task in TASKS if task != "many classes"])
@pytest.mark.parametrize("leaf_rule", ["newton", "mean"])
def test_monotone_constraints_hold_for_the_fitted_function(task, leaf_rule):
    cls, params, (Z, target) = TASKS[task]
    if (task, leaf_rule) == ("poisson", "mean"):
        pytest.skip("means of counts are no steps of their logarithm")
    model = cls(**FAST, **params, leaf_rule=leaf_rule, monotone_constraints=[1, -1, 0, 0])
    model.set_params(n_estimators=30, colsample_bytree=1.0).fit(Z, target)
    rng = np.random.default_rng(0)
    grid = np.linspace(-3, 3, 41)
    for column, sign in ((0, 1), (1, -1)):
        rows = np.repeat(rng.normal(size=(40, 4)), len(grid), axis=0)
        rows[:, column] = np.tile(grid, 40)
        change = np.diff(scores(model, rows).reshape(40, -1), axis=1)
        assert (sign * change >= -1e-5).all()
        free = cls(**FAST, **params, leaf_rule=leaf_rule).fit(Z, target)
        change = np.diff(scores(free, rows).reshape(40, -1), axis=1)
        assert (sign * change < -1e-3).any()  # the data alone would not have it so


@pytest.mark.parametrize("task", ["many classes", "squared error", "quantile"])
def test_interaction_constraints_make_the_score_a_sum(task):
    cls, params, (Z, target) = TASKS[task]
    groups = [[0, 1], [2, 3]]
    model = cls(**FAST, **params, interaction_constraints=groups).fit(Z, target)
    a, b = np.random.default_rng(0).normal(size=(2, 50, 4))
    mixed = np.hstack([a[:, :2], b[:, 2:]]), np.hstack([b[:, :2], a[:, 2:]])
    f = [scores(model, rows) for rows in (a, b, *mixed)]
    np.testing.assert_allclose(f[0] + f[1], f[2] + f[3], atol=1e-4)
    free = cls(**FAST, **params).fit(Z, target)
    f = [scores(free, rows) for rows in (a, b, *mixed)]
    assert not np.allclose(f[0] + f[1], f[2] + f[3], atol=1e-2)


def test_constraints_by_name_and_rejection_for_categorical_features():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcd")).assign(e=np.where(X[:, 3] > 0, "up", "down"))
    model = SCBoostRegressor(**FAST, monotone_constraints={"a": 1}).fit(table, y)
    moved = pd.concat([table.assign(a=v) for v in (-1.0, 0.0, 1.0)])
    assert (np.diff(model.predict(moved).reshape(3, -1), axis=0) >= -1e-6).all()
    with pytest.raises(ValueError, match=r"monotone_constraints cannot constrain the categorical feature 'e'.*order"):
        SCBoostRegressor(**FAST, monotone_constraints={"e": 1}).fit(table, y)
    with pytest.raises(ValueError, match=r"unknown features \['z'\]"):
        SCBoostRegressor(**FAST, monotone_constraints={"z": 1}).fit(table, y)


# --- shape and sampling -----------------------------------------------------------------------------------------------


def leaves_and_depth(node):
    if "leaf" in node:
        return 1, 0
    parts = [leaves_and_depth(child) for child in node["children"]]
    return sum(n for n, _ in parts), 1 + max(d for _, d in parts)


@pytest.mark.parametrize(("max_leaves", "max_depth"), [(5, None), (None, 2), (12, 3), (31, None)])
def test_trees_have_the_requested_shape(max_leaves, max_depth):
    model = SCBoostRegressor(**FAST, max_leaves=max_leaves, max_depth=max_depth).fit(X, y)
    shapes = [leaves_and_depth(json.loads(t)) for t in model.get_booster().get_dump(dump_format="json")]
    leaves, depths = map(max, zip(*shapes, strict=True))
    assert leaves <= (max_leaves or 2**max_depth)
    assert max_depth is None or depths <= max_depth
    if max_depth is None:
        assert leaves == max_leaves  # leaf-wise growth uses what it may
        assert depths > np.log2(max_leaves)


def test_limits_of_leaves_and_bins():
    model = SCBoostRegressor(**FAST, min_child_weight=40).fit(X, y)
    for tree in model.get_booster().get_dump(dump_format="json", with_stats=True):
        covers = [node["cover"] for node in walk(json.loads(tree)) if "leaf" in node]
        assert min(covers) >= 40
    few_bins = SCBoostRegressor(**FAST, max_bin=4, colsample_bytree=1.0).fit(X, y)
    for column in few_bins.get_booster().trees_to_dataframe().groupby("Feature")["Split"].nunique().drop("Leaf"):
        assert column <= 4
    strong, weak = (np.ptp(SCBoostRegressor(**FAST, reg_lambda=v).fit(X, y).predict(X)) for v in (1e4, 0.0))
    assert strong < 0.2 * weak


def walk(node):
    yield node
    for child in node.get("children", ()):
        yield from walk(child)


def test_sampling_changes_the_trees_and_follows_the_seed():
    for params in ({"subsample": 0.5}, {"colsample_bytree": 0.5}):
        a, b, c = (
            SCBoostRegressor(**{**FAST, **params, "random_state": seed}).fit(X, y).predict(X) for seed in (0, 0, 1)
        )
        np.testing.assert_array_equal(a, b)
        assert not np.array_equal(a, c)


@pytest.mark.filterwarnings("ignore:The model has no trees")
@pytest.mark.parametrize("rows", ["holdout", "out_of_fold", "fold_average"])
def test_weights_of_no_trees_leave_the_prior(rows):
    X, y = two_classes()
    model = SCBoostClassifier(
        n_estimators=3, min_child_weight=1e9, weighting="nonnegative", weighting_data=rows, random_state=0, n_jobs=1
    ).fit(X, y)
    assert "no tree found a split" in model.stop_reason_
    p = model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(p, p[0])
    assert p[0] == pytest.approx(y.mean(), abs=0.1)


@pytest.mark.parametrize(("n_columns", "weight", "bins"), [(99, 1.0, 256), (100, 1.0, 64), (100, 20.0, 256)])
def test_automatic_bins_are_few_for_wide_data_with_few_samples_or_little_weight(n_columns, weight, bins):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, n_columns))
    y = X[:, 0] * X[:, 1] + X[:, 2]

    def predictions(**params):
        model = SCBoostRegressor(preset="fast", n_estimators=3, learning_rate=0.3, n_jobs=1, random_state=0, **params)
        return model.fit(X, y, sample_weight=np.full(600, weight)).predict(X)

    np.testing.assert_array_equal(predictions(), predictions(max_bin=bins))
    assert (predictions(max_bin=64) != predictions(max_bin=256)).any()
