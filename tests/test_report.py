"""The HTML report: its numbers against independent computations, and that the page is safe and self-contained."""

import json
import re
import subprocess
import sys
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import catboost
import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.metrics import accuracy_score, log_loss, r2_score, roc_auc_score

import scboost
from scboost.diagnostics import _importance, frontier
from scboost.diagnostics._calibration import compute_calibration
from scboost.diagnostics._findings import find
from scboost.diagnostics._predictions import Predictions
from scboost.diagnostics._prune import select_trees
from scboost.diagnostics._reweight import WeightingProblem
from scboost.diagnostics._scores import compute_scores
from scboost.diagnostics._subject import unwrap

HOSTILE = "</script><script>alert('x')</script><img src=http://example.org/x onerror=alert(1)>&\"'{{script}}"


def split(classes=2, n=600):
    X, y = make_classification(n, 6, n_informative=4, n_redundant=0, n_classes=classes, random_state=0)
    return X[: n // 2], y[: n // 2], X[n // 2 :], y[n // 2 :]


class Page(HTMLParser):
    """The tags, attributes and texts of a page."""

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
def test_classification_scores_equal_those_of_scikit_learn(library, classes):
    X, y, X_test, y_test = split(classes)
    model = MODELS[library]().fit(X, y)
    found = scboost.report(model, X_test, y_test)
    scores = {score.name: score for score in found.analysis.scores}
    assert scores["accuracy"].value == pytest.approx(accuracy_score(y_test, np.ravel(model.predict(X_test))))
    p = model.predict_proba(X_test)
    if library != "adaboost":
        assert scores["log-loss"].value == pytest.approx(log_loss(y_test, p), rel=1e-4)
    if classes == 2:
        assert scores["AUC"].value == pytest.approx(roc_auc_score(y_test, p[:, 1]), abs=1e-6)
    assert all(score.low < score.value < score.high for score in scores.values())
    curves = found.analysis.frontier.curves
    assert curves["first trees"].n_trees[-1] == found.analysis.facts.n_trees == curves["prune"].n_trees[-1]
    assert not found.analysis.frontier.unavailable
    text = found.html()
    assert len(text) < 2_000_000
    assert f"max_trees={found.analysis.frontier.sufficient or curves['prune'].n_trees[-1]}" in text


@pytest.mark.parametrize(
    "model",
    [
        GradientBoostingRegressor(n_estimators=15, random_state=0),
        scboost.SCBoostRegressor(n_estimators=15, random_state=0),
        xgboost.XGBRegressor(n_estimators=15, n_jobs=1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_regression_scores_equal_those_of_scikit_learn(model):
    X, y = make_regression(400, 5, noise=10.0, random_state=0)
    model.fit(X[:200], y[:200])
    found = scboost.report(model, X[200:], y[200:]).analysis
    assert found.scores[0].value == pytest.approx(r2_score(y[200:], model.predict(X[200:])), abs=1e-5)
    assert found.calibration.count.sum() == 200
    # Equal weights of the groups' rows: the mean of all is kept.
    assert found.calibration.observed @ found.calibration.count / 200 == pytest.approx(y[200:].mean())


def test_models_with_a_log_link_are_scored_by_predict():
    X, y = make_regression(300, 5, random_state=0)
    y = np.random.default_rng(0).poisson(np.exp(y / 100))
    model = HistGradientBoostingRegressor(loss="poisson", max_iter=10).fit(X[:150], y[:150])
    found = scboost.report(model, X[150:], y[150:])
    assert found.analysis.scores[0].value == pytest.approx(r2_score(y[150:], model.predict(X[150:])))
    assert found.analysis.frontier is None
    assert "on the scale of the model's trees" in found.html()


def test_boosters_have_the_scores_of_their_estimators():
    X, y, X_test, y_test = split()
    model = MODELS["xgboost"]().fit(X, y)
    wrapped, bare = scboost.report(model, X_test, y_test), scboost.report(model.get_booster(), X_test, y_test)
    assert [s.value for s in bare.analysis.scores] == [s.value for s in wrapped.analysis.scores]
    # The wrapper's shares are of the mean gain of a split, the booster's of the total.
    assert set(bare.analysis.importance.names) == set(wrapped.analysis.importance.names)
    assert bare.analysis.facts.parameters == {}


def test_selecting_several_sizes_at_once_equals_pruning_to_each():
    X, y, X_val, y_val = split()
    for make in (MODELS["xgboost"], MODELS["forest"]):
        model = make().fit(X, y)
        for selection in ("backward", "lasso"):
            sizes = [2, 5, 12, 20]
            found = select_trees(WeightingProblem.from_model(model, X_val, y_val, None, 0.0), sizes, selection, 0.1)
            for size, one in zip(sizes, found, strict=True):
                alone = scboost.prune(model, X_val, y_val, max_trees=size, selection=selection)
                np.testing.assert_array_equal(np.flatnonzero(one.factors), alone.kept)


def assert_same_curves(a, b):
    assert a.to_dict() == b.to_dict()
    assert json.loads(json.dumps(a.to_dict())) == a.to_dict()


def test_pruned_curve_is_the_held_out_loss_of_pruned_models():
    X, y, X_test, y_test = split(n=1000)
    model = MODELS["forest"]().fit(X, y)
    found = scboost.report(model, X_test, y_test, random_state=3).analysis.frontier
    assert_same_curves(found, frontier(model, X_test, y_test, random_state=3))
    rng = np.random.default_rng(3)
    order = rng.permutation(len(y_test))
    selection, evaluation = order[:250], np.sort(order[250:])
    assert (found.n_selection, found.n_evaluation) == (250, 250)
    for size, loss in zip(found.curves["prune"].n_trees, found.curves["prune"].loss, strict=True):
        pruned = scboost.prune(model, X_test[selection], y_test[selection], max_trees=int(size)).model
        p = pruned.predict_proba(X_test[evaluation])
        assert loss == pytest.approx(log_loss(y_test[evaluation], p), rel=1e-4)


def test_confidence_intervals_cover_the_true_accuracy():
    rng = np.random.default_rng(0)
    held = 0
    for seed in range(60):
        p = rng.random(150)
        y = (rng.random(150) < p).astype(int)
        predictions = Predictions(y, (p > 0.5).astype(int), np.stack([1 - p, p], axis=1), p)
        accuracy = next(s for s in compute_scores(predictions, seed) if s.name == "accuracy")
        held += accuracy.low <= 0.75 <= accuracy.high  # E max(p, 1 - p)
    assert 52 <= held <= 60


def test_only_miscalibrated_probabilities_exceed_the_calibration_error_by_chance():
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    y = (rng.random(4000) < p).astype(int)
    right = compute_calibration(Predictions(y, (p > 0.5).astype(int), np.stack([1 - p, p], axis=1), p), 0)
    assert right.error <= right.error_by_chance
    q = 0.5 + (p - 0.5) * 0.6
    wrong = compute_calibration(Predictions(y, (q > 0.5).astype(int), np.stack([1 - q, q], axis=1), q), 0)
    assert wrong.error > 3 * wrong.error_by_chance
    assert np.all(right.low <= right.observed)
    assert np.all(right.observed <= right.high)


def test_names_from_data_are_escaped():
    X, y, X_test, y_test = split()
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
    assert frame_page.tags == ["iframe", "script"]
    assert {n: v for _, n, v in frame_page.attributes}["srcdoc"] == found.html()


def test_the_page_is_a_single_file_without_requests(tmp_path):
    X, y, X_test, y_test = split()
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
    assert [stop["size"] for stop in stops] == found.analysis.frontier.curves["prune"].n_trees.tolist()


def test_the_page_is_reproducible():
    X, y, X_test, y_test = split()
    model = MODELS["forest"]().fit(X, y)
    pages = [scboost.report(model, X_test, y_test, measure_speed=False).html() for _ in range(2)]
    assert pages[0] == pages[1]


def titles(found):
    return {finding.title for finding in find(found.analysis)}


def test_findings_appear_for_bad_models_only():
    X, y, X_test, y_test = split(n=2400)
    good = scboost.SCBoostClassifier(n_estimators=30, learning_rate=0.1, random_state=0).fit(X, y)
    assert not titles(scboost.report(good, X_test, y_test)) & {
        "Redundancy is uncertain",
        "Constant trees",
        "Overfitting",
        "Few samples",
    }
    noisy = np.where(np.random.default_rng(0).random(1200) < 0.3, 1 - y, y)
    bad = xgboost.XGBClassifier(n_estimators=100, learning_rate=0.5, n_jobs=1).fit(X[:300], noisy[:300])
    found = scboost.report(bad, X_test[:90], y_test[:90], X_train=X[:300], y_train=noisy[:300])
    assert {
        "Redundancy is uncertain",
        "Few samples",
        "Gap to training scores",
    } <= titles(found)
    assert "Overfitting" in titles(scboost.report(bad, X_test, y_test))
    pure = xgboost.XGBClassifier(n_estimators=10, gamma=40, n_jobs=1).fit(X[:300], y[:300])
    found = scboost.report(pure, X_test, y_test)
    assert "Constant trees" in titles(found)
    flat = [t for t, column in enumerate(scboost.tree_matrix(pure, X_test).H.T) if np.ptp(column) == 0]
    assert found.analysis.constant_trees == flat


def test_the_order_of_the_trees_of_a_forest_is_no_overfitting():
    X, y, X_test, y_test = split()
    forest = RandomForestClassifier(30, random_state=0, n_jobs=1).fit(X, y)
    rotten = RandomForestClassifier(30, random_state=0, n_jobs=1).fit(X, np.roll(y, 1))
    forest.estimators_ = forest.estimators_[:10] + rotten.estimators_[:20]
    page = scboost.report(forest, X_test, y_test)
    assert page.analysis.frontier.best_truncation < 30
    assert "Overfitting" not in titles(page)


def test_votes_have_the_error_rate_as_loss_and_constant_trees_a_legend():
    X, y, X_test, y_test = split()
    model = AdaBoostClassifier(n_estimators=10, random_state=0).fit(X, y)
    model.estimators_[3].fit(X, np.zeros(len(X), int))  # a single class: a constant tree
    html = scboost.report(model, X_test, y_test).html()
    assert "Error rate against number of trees" in html
    assert "Accuracy against number of trees" not in html
    assert "Constant trees" in html
    assert "constant trees</li>" in html


def test_the_loss_axis_is_logarithmic_where_losses_differ_by_a_factor_of_ten():
    from scboost.plotting import plot_frontier

    X, y, X_test, y_test = split()
    found = frontier(MODELS["xgboost"]().fit(X, y), X_test, y_test)
    assert plot_frontier(found).get_yscale() == "linear"
    first = found.curves["first trees"]
    steep = replace(first, loss=np.geomspace(10, 0.1, len(first.loss)))
    assert plot_frontier(replace(found, curves={"first trees": steep})).get_yscale() == "log"


def test_a_rare_class_is_reported():
    X, y, X_test, y_test = split(n=2400)
    keep = (y_test == 0) | (np.cumsum(y_test) <= 15)
    model = MODELS["xgboost"]().fit(X, y)
    text = scboost.report(model, X_test[keep], y_test[keep]).html()
    assert "Rare class" in text
    assert "of class 1" in text


def test_without_targets_the_page_has_no_scores():
    X, y, X_test, _ = split()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = scboost.report(MODELS["xgboost"]().fit(X, y), X_test)
    assert found.analysis.scores == []
    assert found.analysis.frontier is None
    assert "no targets" in repr(found)
    assert "No targets were given" in found.html()


def test_single_trees_constant_trees_and_few_samples_have_a_page():
    X, y, X_test, y_test = split()
    one = xgboost.XGBClassifier(n_estimators=1, n_jobs=1).fit(X, y)
    assert "A single tree has no redundancy" in scboost.report(one, X_test, y_test).html()
    constant = xgboost.XGBClassifier(n_estimators=3, gamma=1e9, n_jobs=1).fit(X, y)
    assert "Constant trees" in scboost.report(constant, X_test, y_test).html()
    few = scboost.report(one, X_test[:10], y_test[:10])
    assert "too few to select trees" in few.html()


def to_polars(frame):
    return pl.DataFrame({name: frame[name].astype(str) if name == "kind" else frame[name] for name in frame})


def to_arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize("convert", [lambda frame: frame, to_polars, to_arrow], ids=["pandas", "polars", "pyarrow"])
def test_permutation_importance_of_categorical_features(convert):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"kind": pd.Categorical(rng.choice(["a", "b", "c"], 400)), "x": rng.normal(size=400)})
    y = (frame["kind"] == "b").to_numpy().astype(int)
    model = scboost.SCBoostClassifier(n_estimators=10, random_state=0).fit(convert(frame[:200]), y[:200])
    importance = scboost.report(model, convert(frame[200:]), y[200:]).analysis.importance
    assert importance.names == ["kind", "x"]
    assert importance.permutation[0] > 0.1 > abs(importance.permutation[1])


def test_targets_of_another_length_are_refused():
    X, y, X_test, y_test = split()
    model = MODELS["forest"]().fit(X, y)
    with pytest.raises(ValueError, match=r"y must have shape \(300,\).*got \(299,\)"):
        scboost.report(model, X_test, y_test[1:])


@pytest.mark.parametrize("module", ["matplotlib", "jinja2"])
def test_the_error_for_a_missing_library_names_the_extra(module):
    code = """
import sys
sys.modules[sys.argv[1]] = None
import scboost
from sklearn.ensemble import RandomForestClassifier
model = RandomForestClassifier(n_estimators=2).fit([[0.0], [1.0]], [0, 1])
print(scboost.redundancy_report(model, [[0.0], [1.0]] * 9).n_trees)
report = scboost.report(model, [[0.0], [1.0]])
print(report.markdown().splitlines()[0], report.to_dict()["facts"]["n_trees"])
report.html()
"""
    done = subprocess.run([sys.executable, "-c", code, module], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.stdout.splitlines() == ["2", "# Model card: RandomForestClassifier 2"]
    assert f"{module} is not installed" in done.stderr
    assert "scboost[plot]" in done.stderr


def test_truncated_curve_is_the_staged_loss_of_the_model():
    X, y, X_test, y_test = split(n=1000)
    model = GradientBoostingClassifier(n_estimators=30, random_state=0).fit(X, y)
    found = frontier(model, X_test, y_test, sizes=[30, 1, 7], random_state=5)
    evaluation = np.sort(np.random.default_rng(5).permutation(len(y_test))[250:])
    first = found.curves["first trees"]
    assert first.n_trees.tolist() == found.curves["prune"].n_trees.tolist() == [1, 7, 30]
    staged = list(model.staged_predict_proba(X_test[evaluation]))
    expected = [log_loss(y_test[evaluation], staged[size - 1]) for size in (1, 7, 30)]
    np.testing.assert_allclose(first.loss, expected, rtol=1e-5)
    assert found.loss == pytest.approx(first.loss[-1])
    assert first.standard_error[-1] == pytest.approx(0, abs=1e-6)
    assert first.trees_needed(first.loss[1]) == 7
    assert first.trees_needed(0.0) is None


def test_compress_is_a_curve_of_the_frontier_with_its_certificate():
    X, y = make_classification(1200, 6, n_informative=4, n_redundant=0, random_state=0)
    model = GradientBoostingClassifier(n_estimators=60, random_state=0).fit(X[:600], y[:600])
    found = frontier(model, X[600:], y[600:], sizes=[1, 4, 10, 60])
    curve = found.curves["compress"]
    assert curve.n_trees.tolist() == [1, 4, 10]
    assert curve.loss[2] < curve.loss[0]
    assert curve.loss[2] < found.curves["first trees"].loss[2]
    assert found.notes["compress"].startswith("Certificate for 10 trees: At least ")
    assert "compress" in frontier(model, X[600:], y[600:], sizes=[40, 60]).unavailable


def test_compress_is_a_curve_for_several_classes_and_for_values():
    X, y = make_classification(900, 6, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    classes = GradientBoostingClassifier(n_estimators=12, random_state=0).fit(X[:500], y[:500])
    values = GradientBoostingRegressor(n_estimators=12, random_state=0).fit(X[:500], X[:500, 0] * X[:500, 1])
    for model, target in ((classes, y), (values, X[:, 0] * X[:, 1])):
        curve = frontier(model, X[500:], target[500:], sizes=[1, 12]).curves["compress"]
        assert curve.loss[1] < curve.loss[0]


def test_other_methods_add_curves_to_the_frontier():
    X, y, X_test, y_test = split()
    model = MODELS["xgboost"]().fit(X, y)

    def constant(task):
        assert task.X_selection.shape[0] + task.X_evaluation.shape[0] == len(X_test)
        return {1: np.zeros(len(task.X_evaluation))}

    def impossible(task):
        raise ValueError("it cannot be done")

    found = frontier(model, X_test, y_test, methods={"constant": constant, "impossible": impossible})
    assert found.curves["constant"].loss == pytest.approx(np.log(2))
    assert found.unavailable == {"impossible": "it cannot be done"}
    assert found.curves["prune"].loss.tolist() == frontier(model, X_test, y_test).curves["prune"].loss.tolist()


@pytest.mark.parametrize("bad", [[0], [21], [], [1.5]])
def test_sizes_outside_of_the_model_are_refused(bad):
    X, y, X_test, y_test = split()
    model = MODELS["xgboost"]().fit(X, y)
    with pytest.raises(ValueError, match="sizes must"):
        frontier(model, X_test, y_test, sizes=bad)


def test_permutation_importance_equals_its_definition(monkeypatch):
    monkeypatch.setattr(_importance, "_MAX_VALUES", 60_000)  # 200 samples, 15 of 18 copies at once
    X, y, X_test, y_test = split()
    model = MODELS["xgboost"]().fit(X, y)
    found = _importance.compute_importance(unwrap(model), X_test, y_test, np.random.default_rng(4))
    rng = np.random.default_rng(4)
    rows = rng.permutation(300)[:200]
    before = log_loss(y_test[rows], model.predict_proba(X_test[rows]))
    ranked = np.argsort(-model.feature_importances_, kind="stable")
    for j in ranked:
        increases = []
        for _ in range(3):
            permuted = X_test[rows].copy()
            permuted[:, j] = permuted[rng.permutation(200), j]
            increases.append(log_loss(y_test[rows], model.predict_proba(permuted)) - before)
        at = found.names.index(f"feature {j}")
        assert found.permutation[at] == pytest.approx(np.mean(increases), abs=1e-5)
        assert found.permutation_std[at] == pytest.approx(np.std(increases), abs=1e-5)
    assert np.all(np.diff(found.permutation) <= 0)
