"""The page about a model: its numbers against other ways to compute them, and that it is safe and self-contained."""

import json
import re
import warnings
from html.parser import HTMLParser

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score

import scboost
from scboost.diagnostics._findings import advise
from scboost.diagnostics._prune import shrink
from scboost.diagnostics._reweight import Problem
from scboost.diagnostics._scores import Outcome, calibrate, measure_scores
from scboost.diagnostics.html import draw

HOSTILE = "</script><script>alert('x')</script><img src=http://example.org/x onerror=alert(1)>&\"'{{script}}"


def rows(classes=2, n=600):
    X, y = make_classification(n, 6, n_informative=4, n_redundant=0, n_classes=classes, random_state=0)
    return X[: n // 2], y[: n // 2], X[n // 2 :], y[n // 2 :]


class Page(HTMLParser):
    """What a browser would load or run."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text, self.titles = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data):
        self.text.append(data)


MODELS = {
    "scboost": lambda: scboost.SCBoostClassifier(n_estimators=20, random_state=0),
    "xgboost": lambda: xgboost.XGBClassifier(n_estimators=20, n_jobs=1),
    "lightgbm": lambda: lightgbm.LGBMClassifier(n_estimators=20, n_jobs=1, verbose=-1),
    "catboost": lambda: catboost.CatBoostClassifier(
        iterations=20, thread_count=1, verbose=0, allow_writing_files=False
    ),
    "forest": lambda: RandomForestClassifier(n_estimators=20, random_state=0),
    "adaboost": lambda: AdaBoostClassifier(n_estimators=20, random_state=0),
    "histogram": lambda: HistGradientBoostingClassifier(max_iter=20),
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("library", MODELS)
def test_scores_are_those_of_the_model(library, classes):
    X, y, X_test, y_test = rows(classes)
    model = MODELS[library]().fit(X, y)
    found = scboost.report(model, X_test, y_test)
    scores = {score.name: score for score in found.measured.scores}
    assert scores["accuracy"].value == pytest.approx(accuracy_score(y_test, np.ravel(model.predict(X_test))))
    p = model.predict_proba(X_test)
    if library != "adaboost":
        assert scores["log-loss"].value == pytest.approx(log_loss(y_test, p), rel=1e-4)
    if classes == 2:
        assert scores["AUC"].value == pytest.approx(roc_auc_score(y_test, p[:, 1]), abs=1e-6)
    assert all(score.low < score.value < score.high for score in scores.values())
    curve = found.measured.curve
    assert curve.sizes[-1] == found.measured.facts.n_trees == curve.pruned_sizes[-1]
    assert not curve.no_pruning
    text = found.html()
    assert len(text) < 2_000_000
    assert f"max_trees={curve.enough or curve.pruned_sizes[-1]}" in text


@pytest.mark.parametrize(
    "model",
    [
        GradientBoostingRegressor(n_estimators=15, random_state=0),
        scboost.SCBoostRegressor(n_estimators=15, random_state=0),
        xgboost.XGBRegressor(n_estimators=15, n_jobs=1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_scores_of_regression(model):
    X, y = make_regression(400, 5, noise=10.0, random_state=0)
    model.fit(X[:200], y[:200])
    found = scboost.report(model, X[200:], y[200:]).measured
    assert found.scores[0].value == pytest.approx(r2_score(y[200:], model.predict(X[200:])), abs=1e-5)
    assert found.calibration.count.sum() == 200
    # Equal weights of the groups' rows: the mean of all is kept.
    assert found.calibration.observed @ found.calibration.count / 200 == pytest.approx(y[200:].mean())


def test_a_margin_that_is_not_on_the_scale_of_y_is_scored_by_predict():
    X, y = make_regression(300, 5, random_state=0)
    y = np.random.default_rng(0).poisson(np.exp(y / 100))
    model = HistGradientBoostingRegressor(loss="poisson", max_iter=10).fit(X[:150], y[:150])
    found = scboost.report(model, X[150:], y[150:])
    assert found.measured.scores[0].value == pytest.approx(r2_score(y[150:], model.predict(X[150:])))
    assert found.measured.curve is None
    assert "on the scale of the model's trees" in found.html()


def test_boosters_are_reported_like_their_wrappers():
    X, y, X_test, y_test = rows()
    model = MODELS["xgboost"]().fit(X, y)
    wrapped, bare = scboost.report(model, X_test, y_test), scboost.report(model.get_booster(), X_test, y_test)
    assert [s.value for s in bare.measured.scores] == [s.value for s in wrapped.measured.scores]
    # The wrapper's shares are of the mean gain of a split, the booster's of the total.
    assert set(bare.measured.features.names) == set(wrapped.measured.features.names)
    assert bare.measured.facts.parameters == {}


def test_many_sizes_at_once_are_what_prune_finds_for_each():
    X, y, X_val, y_val = rows()
    for make in (MODELS["xgboost"], MODELS["forest"]):
        model = make().fit(X, y)
        for selection in ("backward", "lasso"):
            sizes = [2, 5, 12, 20]
            found = shrink(Problem.of(model, X_val, y_val, None, 0.0), sizes, selection, 0.1)
            for size, one in zip(sizes, found, strict=True):
                alone = scboost.prune(model, X_val, y_val, max_trees=size, selection=selection)
                np.testing.assert_array_equal(np.flatnonzero(one.factors), alone.kept)


def test_the_curve_of_pruned_trees_is_that_of_the_pruned_models():
    X, y, X_test, y_test = rows(n=1000)
    model = MODELS["forest"]().fit(X, y)
    found = scboost.report(model, X_test, y_test, random_state=3).measured.curve
    rng = np.random.default_rng(3)
    order = rng.permutation(len(y_test))
    choosing, scoring = order[:250], np.sort(order[250:])
    assert (found.n_choosing, found.n_scoring) == (250, 250)
    for i, size in enumerate(found.pruned_sizes):
        pruned = scboost.prune(model, X_test[choosing], y_test[choosing], max_trees=int(size)).model
        p = pruned.predict_proba(X_test[scoring])
        assert found.pruned_loss[i] == pytest.approx(log_loss(y_test[scoring], p), rel=1e-4)


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    held = 0
    for seed in range(60):
        p = rng.random(150)
        y = (rng.random(150) < p).astype(int)
        outcome = Outcome(y, (p > 0.5).astype(int), np.stack([1 - p, p], axis=1), p)
        accuracy = next(s for s in measure_scores(outcome, seed) if s.name == "accuracy")
        held += accuracy.low <= 0.75 <= accuracy.high  # E max(p, 1 - p)
    assert 52 <= held <= 60


def test_calibration_of_true_probabilities_is_within_chance_and_of_squeezed_ones_is_not():
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    y = (rng.random(4000) < p).astype(int)
    right = calibrate(Outcome(y, (p > 0.5).astype(int), np.stack([1 - p, p], axis=1), p), 0)
    assert right.error <= right.error_by_chance
    q = 0.5 + (p - 0.5) * 0.6
    wrong = calibrate(Outcome(y, (q > 0.5).astype(int), np.stack([1 - q, q], axis=1), q), 0)
    assert wrong.error > 3 * wrong.error_by_chance
    assert np.all(right.low <= right.observed)
    assert np.all(right.observed <= right.high)


def test_names_from_data_are_escaped_everywhere():
    X, y, X_test, y_test = rows()
    names = [f"{HOSTILE}{i}" for i in range(6)]
    labels = np.array([f"a{HOSTILE}", f"b{HOSTILE}"])
    frame, frame_test = (pd.DataFrame(A, columns=names) for A in (X, X_test))
    model = RandomForestClassifier(n_estimators=5, random_state=0, class_weight={labels[0]: 1.0, labels[1]: 1.0})
    model.fit(frame, labels[y])
    plain = RandomForestClassifier(n_estimators=5, random_state=0).fit(X, y)
    found = scboost.report(model, frame_test, labels[y_test], name=HOSTILE)
    hostile, harmless = Page(found.html()), Page(scboost.report(plain, X_test, y_test).html())
    assert hostile.tags.count("script") == harmless.tags.count("script") == 2
    assert "img" not in hostile.tags
    assert not any(name.startswith("on") for _, name, _ in hostile.attributes)
    assert names[0] in "".join(hostile.text)
    frame_page = Page(found._repr_html_())
    assert frame_page.tags == ["iframe"]
    assert {n: v for _, n, v in frame_page.attributes}["srcdoc"] == found.html()


def test_the_page_is_one_file_that_asks_for_nothing(tmp_path):
    X, y, X_test, y_test = rows()
    found = scboost.report(MODELS["xgboost"]().fit(X, y), X_test, y_test)
    path = found.save(tmp_path / "report.html")
    text = path.read_text(encoding="utf-8")
    assert text == found.html()
    for tag, name, value in Page(text).attributes:
        if name in {"src", "href", "data", "action"}:
            assert value.startswith("data:"), (tag, name, value)
    assert not re.search(r"@import|url\(", text)
    assert "default-src 'none'" in text
    stops = json.loads(re.search(r'id="slider-data">(.*?)</script>', text, re.DOTALL)[1])
    assert [stop["size"] for stop in stops] == found.measured.curve.pruned_sizes.tolist()


def test_the_same_arguments_give_the_same_page():
    X, y, X_test, y_test = rows()
    model = MODELS["forest"]().fit(X, y)
    assert scboost.report(model, X_test, y_test).html() == scboost.report(model, X_test, y_test).html()


def titles(found):
    return {one.title for one in advise(found.measured)}


def test_warnings_come_when_they_should_and_only_then():
    X, y, X_test, y_test = rows(n=2400)
    good = scboost.SCBoostClassifier(n_estimators=30, learning_rate=0.1, random_state=0).fit(X, y)
    assert not titles(scboost.report(good, X_test, y_test)) & {
        "Too few rows for the number of trees",
        "Trees that do nothing",
        "Overfitting",
        "Few rows",
    }
    noisy = np.where(np.random.default_rng(0).random(1200) < 0.3, 1 - y, y)
    bad = xgboost.XGBClassifier(n_estimators=100, learning_rate=0.5, n_jobs=1).fit(X[:300], noisy[:300])
    found = scboost.report(bad, X_test[:90], y_test[:90], X_train=X[:300], y_train=noisy[:300])
    assert {
        "Too few rows for the number of trees",
        "Few rows",
        "Better on training rows",
    } <= titles(found)
    assert "Overfitting" in titles(scboost.report(bad, X_test, y_test))
    idle = xgboost.XGBClassifier(n_estimators=10, gamma=40, n_jobs=1).fit(X[:300], y[:300])
    found = scboost.report(idle, X_test, y_test)
    assert "Trees that do nothing" in titles(found)
    flat = [t for t, column in enumerate(scboost.tree_matrix(idle, X_test).H.T) if np.ptp(column) == 0]
    assert found.measured.idle == flat


def test_a_forest_does_not_overfit_by_its_number_of_trees():
    """Its trees come in no order: that the first ones happen to be better says nothing."""
    X, y, X_test, y_test = rows()
    forest = RandomForestClassifier(30, random_state=0, n_jobs=1).fit(X, y)
    rotten = RandomForestClassifier(30, random_state=0, n_jobs=1).fit(X, np.roll(y, 1))
    forest.estimators_ = forest.estimators_[:10] + rotten.estimators_[:20]
    page = scboost.report(forest, X_test, y_test)
    assert page.measured.curve.best < 30
    assert "Overfitting" not in titles(page)


def test_votes_have_one_curve_and_idle_trees_a_key():
    X, y, X_test, y_test = rows()
    model = AdaBoostClassifier(n_estimators=10, random_state=0).fit(X, y)
    model.estimators_[3].fit(X, np.zeros(len(X), int))  # one class: it always says the same
    html = scboost.report(model, X_test, y_test).html()
    assert "error rate by number of trees" in html
    assert "accuracy by number of trees" not in html
    assert "Trees that do nothing" in html
    assert "the same for every row</li>" in html


@pytest.mark.parametrize(
    ("value", "text"), [(0.25, "0.25"), (5000, "5k"), (20_000, "20k"), (-1.5e6, "-1.5M"), (2e12, "2e+12")]
)
def test_ticks_are_short(value, text):
    assert draw.Axis("y", 0, 1).name(value) == text


def test_an_axis_is_logarithmic_where_values_differ_by_a_factor_of_ten():
    assert draw.axis_around("y", np.array([0.2, 6.0])).log
    for values in ([0.2, 1.9], [-1.0, 20.0], [0.0, 5.0], [np.nan, np.inf]):
        assert not draw.axis_around("y", np.array(values)).log


def test_a_rare_class_is_named():
    X, y, X_test, y_test = rows(n=2400)
    keep = (y_test == 0) | (np.cumsum(y_test) <= 15)
    model = MODELS["xgboost"]().fit(X, y)
    text = scboost.report(model, X_test[keep], y_test[keep]).html()
    assert "A rare class" in text
    assert "of class 1" in text


def test_without_targets_what_needs_none_is_shown():
    X, y, X_test, _ = rows()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = scboost.report(MODELS["xgboost"]().fit(X, y), X_test)
    assert found.measured.scores == []
    assert found.measured.curve is None
    assert "no targets" in repr(found)
    assert "No targets were given" in found.html()


def test_degenerate_models_have_a_page():
    X, y, X_test, y_test = rows()
    one = xgboost.XGBClassifier(n_estimators=1, n_jobs=1).fit(X, y)
    assert "A single tree cannot repeat another" in scboost.report(one, X_test, y_test).html()
    constant = xgboost.XGBClassifier(n_estimators=3, gamma=1e9, n_jobs=1).fit(X, y)
    assert "Trees that do nothing" in scboost.report(constant, X_test, y_test).html()
    few = scboost.report(one, X_test[:10], y_test[:10])
    assert "too few to prune" in few.html()


def test_a_table_with_categories_is_shuffled_as_a_table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"kind": pd.Categorical(rng.choice(["a", "b", "c"], 400)), "x": rng.normal(size=400)})
    y = (frame["kind"] == "b").to_numpy().astype(int)
    model = scboost.SCBoostClassifier(n_estimators=10, random_state=0).fit(frame[:200], y[:200])
    features = scboost.report(model, frame[200:], y[200:]).measured.features
    assert features.names == ["kind", "x"]
    assert features.shuffled[0] > 0.1 > abs(features.shuffled[1])


def test_wrong_targets_are_named():
    X, y, X_test, y_test = rows()
    model = MODELS["forest"]().fit(X, y)
    with pytest.raises(ValueError, match=r"y must have shape \(300,\).*got \(299,\)"):
        scboost.report(model, X_test, y_test[1:])
