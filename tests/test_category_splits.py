"""What splits of categories part from the others: one category, or a group, as held-out rows ask for."""

import json

import numpy as np
import pytest

from data_makers import grouped, levels
from scboost import Batches, Checkpoint, SCBoostClassifier, SCBoostRegressor, load_model

pytest.importorskip("pandas")

QUICK = {"learning_rate": 0.3, "n_iter_no_change": 8, "cv": 3, "random_state": 0, "n_jobs": 1}


def by_chance(n=1200):
    """Return rows whose categories mean nothing."""
    X, _, rng = levels(60, n)
    return X, (X["x"] + rng.normal(size=n) > 0).astype(int)


def split_sizes(model):
    """Return the numbers of categories on the side of a split that lists them."""
    trees = map(json.loads, model.get_booster().get_dump(dump_format="json"))
    return [len(listed) for tree in trees for listed in _listed(tree)]


def _listed(node):
    if "children" in node:
        if isinstance(node["split_condition"], list):
            yield node["split_condition"]
        for child in node["children"]:
            yield from _listed(child)


def test_groups_part_several_categories_and_one_parts_one():
    X, member, _ = levels(300, 3000)
    few = {"n_estimators": 5, "max_leaves": 4, "learning_rate": 0.5, "random_state": 0, "n_jobs": 1}
    groups, one = (SCBoostClassifier(**few, category_splits=way).fit(X, member) for way in ("groups", "one"))
    assert groups.score(X, member) > 0.99  # a tree of four leaves on codes could not separate every third one
    assert one.score(X, member) < 0.8
    assert set(split_sizes(one)) == {1}
    assert max(split_sizes(groups)) > 10


@pytest.mark.parametrize(
    ("make", "cls", "expected"), [(grouped, SCBoostRegressor, "groups"), (by_chance, SCBoostClassifier, "one")]
)
def test_held_out_rows_choose(make, cls, expected):
    X, y = make()
    models = {way: cls(**QUICK, category_splits=way).fit(X, y) for way in ("auto", "one", "groups")}
    assert {way: model.category_splits_ for way, model in models.items()} == {
        "auto": expected,
        "one": "one",
        "groups": "groups",
    }
    new, y_new = make(2400)
    scores = {way: model.score(new[1200:], y_new[1200:]) for way, model in models.items()}
    assert scores[expected] == max(scores.values())
    assert scores["auto"] == scores[expected]


def test_a_fit_without_folds_parts_one():
    X, y = grouped()
    assert SCBoostRegressor(n_estimators=20, random_state=0).fit(X, y).category_splits_ == "one"
    assert not hasattr(SCBoostRegressor(n_estimators=5).fit(X[["x"]], y), "category_splits_")


def test_whole_weights_are_repetitions():
    X, y = grouped(600)
    X["x"] = X["x"].round(1)  # few values: the same bins, repeated or not
    weight = np.random.default_rng(1).integers(1, 4, size=len(y))
    repeated = np.repeat(np.arange(len(y)), weight)
    one = SCBoostRegressor(**QUICK).fit(X, y, weight)
    other = SCBoostRegressor(**QUICK).fit(X.iloc[repeated], y[repeated])
    assert one.category_splits_ == other.category_splits_ == "groups"
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-4)


def test_fold_models_that_are_kept_split_as_chosen(tmp_path):
    X, y = grouped()
    model = SCBoostRegressor(**QUICK, preset="best").fit(X, y)
    assert model.category_splits_ == "groups"
    assert max(split_sizes(model)) > 10
    model.save_model(tmp_path / "model.ubj")
    assert load_model(tmp_path / "model.ubj").category_splits_ == "groups"


def test_rows_in_batches_give_the_model_of_rows_in_memory(tmp_path):
    X, y = grouped()
    parts = np.array_split(np.arange(len(y)), 3)
    batches = Batches(lambda: ((X.iloc[rows], y[rows]) for rows in parts), folder=tmp_path)
    one, other = SCBoostRegressor(**QUICK).fit(X, y), SCBoostRegressor(**QUICK).fit(batches)
    assert other.category_splits_ == "groups"
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_a_resumed_fit_splits_as_before(tmp_path):
    X, y = grouped()
    checkpoint = Checkpoint(tmp_path / "model", every=7)
    whole = SCBoostRegressor(**QUICK, callbacks=[checkpoint]).fit(X, y)
    partly = checkpoint.load()
    assert partly.n_estimators_ < whole.n_estimators_
    resumed = partly.fit(X, y)
    assert resumed.category_splits_ == "groups"
    np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))
