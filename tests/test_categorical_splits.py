"""One-vs-rest and subset splits of categorical features, selected by cross-validation."""

import json

import pytest

from data_makers import QUICK, grouped, levels
from scboost import SCBoostClassifier, SCBoostRegressor, load_model

pytest.importorskip("pandas")


def by_chance(n=1200):
    """Return samples with uninformative categories."""
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


def test_subset_splits_separate_several_categories_and_one_vs_rest_one():
    X, member, _ = levels(300, 3000)
    few = {"n_estimators": 5, "max_leaves": 4, "learning_rate": 0.5, "random_state": 0, "n_jobs": 1}
    groups, one = (SCBoostClassifier(**few, categorical_splits=way).fit(X, member) for way in ("subset", "one-vs-rest"))
    assert groups.score(X, member) > 0.99  # a tree of four leaves on codes could not separate every third one
    assert one.score(X, member) < 0.8
    assert set(split_sizes(one)) == {1}
    assert max(split_sizes(groups)) > 10


@pytest.mark.parametrize(
    ("make", "cls", "expected"), [(grouped, SCBoostRegressor, "subset"), (by_chance, SCBoostClassifier, "one-vs-rest")]
)
def test_categorical_splits_are_selected_by_cross_validation(make, cls, expected):
    X, y = make()
    models = {way: cls(**QUICK, categorical_splits=way).fit(X, y) for way in ("auto", "one-vs-rest", "subset")}
    assert {way: model.categorical_splits_ for way, model in models.items()} == {
        "auto": expected,
        "one-vs-rest": "one-vs-rest",
        "subset": "subset",
    }
    new, y_new = make(2400)
    scores = {way: model.score(new[1200:], y_new[1200:]) for way, model in models.items()}
    assert scores[expected] == max(scores.values())
    assert scores["auto"] == scores[expected]


def test_categorical_splits_attribute_needs_categorical_features():
    X, y = grouped()
    assert not hasattr(SCBoostRegressor(n_estimators=5).fit(X[["x"]], y), "categorical_splits_")


def test_kept_fold_models_use_the_selected_categorical_splits(tmp_path):
    X, y = grouped()
    model = SCBoostRegressor(**QUICK, preset="best").fit(X, y)
    assert model.categorical_splits_ == "subset"
    assert max(split_sizes(model)) > 10
    model.save_model(tmp_path / "model.ubj")
    assert load_model(tmp_path / "model.ubj").categorical_splits_ == "subset"
