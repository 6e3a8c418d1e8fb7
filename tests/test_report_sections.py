"""The sections of a report: their numbers against scikit-learn's metrics and against their definitions."""

import json
from types import SimpleNamespace

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost
from scipy import sparse, stats
from sklearn import metrics
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.inspection import partial_dependence
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import scboost
from scboost.diagnostics._columns import compose, read_feature
from scboost.diagnostics._findings import find
from scboost.diagnostics._scores import Score


@pytest.fixture(scope="module")
def binary():
    X, y = make_classification(900, 6, n_informative=4, flip_y=0.1, random_state=0)
    model = xgboost.XGBClassifier(n_estimators=25, max_depth=3, n_jobs=1).fit(X[:450], y[:450])
    found = scboost.report(model, X[450:], y[450:], X_train=X[:450], y_train=y[:450]).analysis
    return SimpleNamespace(X=X[450:], y=y[450:], X_train=X[:450], y_train=y[:450], model=model, found=found)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    model = RandomForestClassifier(30, random_state=0, n_jobs=1).fit(X[:900], y[:900])
    return SimpleNamespace(X=X[900:], y=y[900:], model=model, found=scboost.report(model, X[900:], y[900:]).analysis)


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = RandomForestRegressor(30, random_state=0, n_jobs=1).fit(X[:220], y[:220])
    found = scboost.report(model, X[220:], y[220:], X_train=X[:220], y_train=y[:220]).analysis
    return SimpleNamespace(X=X[220:], y=y[220:].to_numpy(), model=model, found=found)


@pytest.mark.parametrize("data", ["binary", "digits"])
def test_class_scores_and_confusion_matrix_equal_those_of_scikit_learn(data, request):
    case = request.getfixturevalue(data)
    p, predicted = case.model.predict_proba(case.X), case.model.predict(case.X)
    found = case.found.classification
    np.testing.assert_array_equal(found.confusion, metrics.confusion_matrix(case.y, predicted))
    precision, recall, f1, support = metrics.precision_recall_fscore_support(case.y, predicted)
    for k, one in enumerate(found.classes):
        assert (one.k, one.support) == (k, support[k])
        assert (one.precision, one.recall, one.f1) == pytest.approx((precision[k], recall[k], f1[k]))
        assert one.auc == pytest.approx(metrics.roc_auc_score(case.y == k, p[:, k]), abs=1e-6)
        assert one.average_precision == pytest.approx(metrics.average_precision_score(case.y == k, p[:, k]), abs=1e-6)
        assert one.roc[:, [0, -1]].tolist() == [[0, 1], [0, 1]]


def test_counts_at_a_threshold_are_those_of_the_decision(binary):
    p = binary.model.predict_proba(binary.X).astype(np.float64)
    for one in binary.found.classification.thresholds:
        for i in (0, 30, 50, 77, 100):
            decided = p[:, one.k] >= one.threshold[i]
            if np.abs(p[:, one.k] - one.threshold[i]).min() > 1e-6:
                assert one.true_positives[i] == np.sum(decided & (binary.y == one.k))
                assert one.false_positives[i] == np.sum(decided & (binary.y != one.k))
        best = int(np.argmax(one.f1))
        assert one.f1[best] == pytest.approx(metrics.f1_score(binary.y == one.k, p[:, one.k] >= one.threshold[best]))


def test_residuals_of_a_regression_model(diabetes):
    residual = diabetes.y - diabetes.model.predict(diabetes.X)
    found = diabetes.found.residuals
    assert found.mean == pytest.approx(residual.mean(), rel=1e-4)
    assert found.absolute_error[0.5] == pytest.approx(metrics.median_absolute_error(residual, 0 * residual), rel=1e-4)
    assert found.counts.sum() >= 0.97 * len(residual)
    assert diabetes.found.classification is None


def test_worst_samples_have_the_largest_loss(binary, diabetes):
    p = binary.model.predict_proba(binary.X)[np.arange(450), binary.y]
    assert [sample.row for sample in binary.found.errors.worst] == np.argsort(p, kind="stable")[:10].tolist()
    error = (diabetes.y - diabetes.model.predict(diabetes.X)) ** 2
    assert [sample.row for sample in diabetes.found.errors.worst[:3]] == np.argsort(-error)[:3].tolist()
    first = diabetes.found.errors.worst[0]
    assert first.features[0][1] == f"{diabetes.X.iloc[first.row][first.features[0][0]]:.6g}"


def test_positions_of_a_subsample_refer_to_the_given_samples(monkeypatch, binary):
    monkeypatch.setattr("scboost.diagnostics._analysis.MAX_SAMPLES", 100)
    found = scboost.report(binary.model, binary.X, binary.y).analysis
    p = binary.model.predict_proba(binary.X)[np.arange(450), binary.y]
    for sample in found.errors.worst:
        assert sample.probability == pytest.approx(p[sample.row], abs=1e-6)


def test_segments_partition_the_samples_and_have_their_mean_loss():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=1200), "kind": rng.choice(["a", "b", "c"], 1200)})
    y = (frame["x"] + np.where(frame["kind"] == "c", 3.0, 0.3) * rng.normal(size=1200)).to_numpy()
    model = scboost.SCBoostRegressor(n_estimators=20, random_state=0).fit(frame[:600], y[:600])
    found = scboost.report(model, frame[600:], y[600:]).analysis.errors
    loss = (y[600:] - model.predict(frame[600:])) ** 2
    kinds = {s.condition: s for s in found.segments if s.feature == "kind"}
    assert sum(segment.n for segment in kinds.values()) == 600
    for text, segment in kinds.items():
        assert segment.loss == pytest.approx(loss[frame["kind"][600:] == text.removeprefix("= ")].mean(), rel=1e-4)
    assert [name for name, segment in kinds.items() if segment.is_worse] == ["= c"]
    assert sum(s.n for s in found.segments if s.feature == "x") == 600


def test_data_summary_counts_missing_values_and_finds_drift():
    rng = np.random.default_rng(0)
    train = pd.DataFrame(
        {"same": rng.normal(size=800), "moved": rng.normal(size=800), "kind": rng.choice(["a", "b"], 800)}
    )
    test = train.sample(400, random_state=0).reset_index(drop=True)
    test["moved"] += 1
    test.loc[:99, "same"] = np.nan
    test.loc[:199, "kind"] = "new"
    y = (train["same"] > 0).astype(int).to_numpy()
    model = scboost.SCBoostClassifier(n_estimators=5, random_state=0).fit(train, y)
    summary = scboost.report(model, test, X_train=train).analysis.data
    same, moved, kind = summary.features
    assert (same.missing, same.kind, kind.kind, kind.n_distinct) == (0.25, "numeric", "categorical", 3)
    assert same.drift.distance == pytest.approx(0.25)  # the share of missing values
    expected = stats.ks_2samp(train["moved"], test["moved"], method="asymp")
    assert (moved.drift.distance, moved.drift.p_value) == pytest.approx((expected.statistic, expected.pvalue))
    assert kind.drift.unseen == pytest.approx(0.5)
    assert kind.drift.distance == pytest.approx(0.5, abs=0.05)
    assert {feature.name for feature in summary.drifted} == {"same", "moved", "kind"}


def test_samples_of_the_same_distribution_do_not_drift(binary):
    assert binary.found.data.drifted == []
    assert all(feature.drift is not None for feature in binary.found.data.features)


def test_partial_dependence_equals_that_of_scikit_learn(binary):
    effect = binary.found.effects[0]
    j = int(effect.name.removeprefix("feature "))
    model = HistGradientBoostingClassifier(max_iter=10).fit(binary.X_train, binary.y_train)
    found = {e.name: e for e in scboost.report(model, binary.X[:200], binary.y[:200]).analysis.effects}[f"feature {j}"]
    expected = partial_dependence(
        model, binary.X[:200], [j], method="brute", custom_values={j: found.grid}, response_method="predict_proba"
    )["average"][0]
    np.testing.assert_allclose(found.mean[0], expected, atol=1e-6)


def test_explanations_add_up_to_the_prediction(binary, diabetes, digits):
    for case in (binary, diabetes, digits):
        assert len(case.found.explanations) >= 3
        for one in case.found.explanations:
            assert one.contribution.sum() == pytest.approx(one.prediction - one.baseline, rel=1e-5, abs=1e-6)
    p = binary.model.predict_proba(binary.X)[:, 1]
    for one in binary.found.explanations:
        assert one.prediction == pytest.approx(p[one.position], abs=1e-6)


def test_features_that_the_model_does_not_use_contribute_nothing():
    X, y = make_classification(400, 6, n_informative=2, n_redundant=0, random_state=0)
    model = xgboost.XGBRegressor(n_estimators=5, n_jobs=1)
    model.fit(np.column_stack([X[:, 0], np.zeros((400, 5))]), X[:, 0] * 2)
    for one in scboost.report(model, X, y.astype(float)).analysis.explanations:
        for name, value in zip(one.names, one.contribution, strict=True):
            assert name == "feature 0" or value == 0


def test_baseline_is_the_best_constant_prediction(binary, diabetes):
    found = {score.name: score.value for score in binary.found.baseline_scores}
    share = binary.y_train.mean()
    assert found["log-loss"] == pytest.approx(metrics.log_loss(binary.y, np.full(450, share)))
    assert found["AUC"] == 0.5
    assert found["accuracy"] == pytest.approx(np.mean(binary.y == (share > 0.5)))
    scores = {score.name: score.value for score in diabetes.found.baseline_scores}
    assert scores["R2"] <= 0


def test_a_model_compared_with_itself_does_not_differ(binary):
    found = scboost.report(binary.model, binary.X, binary.y, compare=binary.model).analysis.comparison
    assert found.agreement == 1
    assert all(d.verdict == "no significant difference" and d.low == d.high == 0 for d in found.scores)


def test_a_second_model_of_any_kind_is_scored_on_the_same_samples(binary, diabetes):
    other = LogisticRegression().fit(binary.X_train, binary.y_train)
    report = scboost.report(binary.model, binary.X, binary.y, compare=other)
    found = report.analysis.comparison
    loss = next(d for d in found.scores if d.score.name == "log-loss")
    assert loss.other.value == pytest.approx(metrics.log_loss(binary.y, other.predict_proba(binary.X)))
    assert loss.verdict == "better"
    assert found.n_trees is None
    assert "LogisticRegression" in report.html()
    line = LinearRegression().fit(diabetes.X, diabetes.y)
    found = scboost.report(diabetes.model, diabetes.X, diabetes.y, compare=line).analysis.comparison
    assert found.scores[0].other.value == pytest.approx(metrics.r2_score(diabetes.y, line.predict(diabetes.X)))


def test_models_that_cannot_be_compared_are_refused(binary):
    with pytest.raises(ValueError, match="compare needs targets"):
        scboost.report(binary.model, binary.X, compare=binary.model)
    with pytest.raises(TypeError, match="must have predict_proba"):
        scboost.report(binary.model, binary.X, binary.y, compare=LinearRegression().fit(binary.X, binary.y))
    labels = np.array(["a", "b"])[binary.y]
    other = LogisticRegression().fit(binary.X, labels)
    with pytest.raises(ValueError, match=r"compare has the classes \['a', 'b'\]"):
        scboost.report(binary.model, binary.X, binary.y, compare=other)


def test_pipelines_and_searches_have_the_scores_of_the_whole_model(binary):
    pipe = make_pipeline(StandardScaler(), lightgbm.LGBMClassifier(n_estimators=15, n_jobs=1, verbose=-1))
    frame, names = pd.DataFrame(binary.X_train), [f"column {j}" for j in range(6)]
    frame.columns = names
    search = GridSearchCV(pipe.set_output(transform="pandas"), {"lgbmclassifier__num_leaves": [4, 8]}, cv=2)
    search.fit(frame, binary.y_train)
    test = pd.DataFrame(binary.X, columns=names)
    found = scboost.report(search, test, binary.y).analysis
    assert found.facts.wrappers == ("GridSearchCV", "Pipeline")
    assert found.scores[0].value == pytest.approx(metrics.log_loss(binary.y, search.predict_proba(test)), rel=1e-4)
    assert set(found.importance.names) == set(names)
    assert "num_leaves" in found.facts.notes[0]
    with pytest.raises(Exception, match="not fitted"):
        scboost.report(GridSearchCV(pipe, {}), test)


def test_calibrated_classifiers_are_scored_by_their_own_probabilities(binary):
    forest = RandomForestClassifier(20, max_depth=3, random_state=0, n_jobs=1)
    model = CalibratedClassifierCV(forest, cv=3).fit(binary.X_train, binary.y_train)
    found = scboost.report(model, binary.X, binary.y).analysis
    assert found.scores[0].value == pytest.approx(metrics.log_loss(binary.y, model.predict_proba(binary.X)))
    assert found.facts.n_trees == 20
    assert "first of 3 calibrated models" in found.facts.notes[0]


def test_a_large_gap_to_the_training_scores_is_a_warning(diabetes):
    def score(value):
        return [Score("R2", "", value, value - 0.1, value + 0.1, higher_is_better=True)]

    def kind(training, here):
        from dataclasses import replace

        changed = replace(
            diabetes.found, training_scores=score(training), scores=score(here), baseline_scores=score(0.0)
        )
        return next(f.kind for f in find(changed) if f.title in {"Gap to training scores", "Training scores"})

    assert kind(0.98, 0.25) == "warning"
    assert kind(0.98, 0.80) == "note"
    assert kind(0.85, 0.80) == "ok"
    assert kind(0.98, -0.5) == "warning"


def test_a_model_of_noise_is_not_better_than_a_constant():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 3)), rng.normal(size=600)
    model = xgboost.XGBRegressor(n_estimators=20, n_jobs=1).fit(X[:300], y[:300])
    kinds = {f.title: f.kind for f in find(scboost.report(model, X[300:], y[300:]).analysis)}
    assert kinds["Not better than a constant prediction"] == "warning"


def test_calibration_of_each_class_finds_the_class_that_is_not_calibrated():
    from scboost.diagnostics._calibration import compute_class_calibration
    from scboost.diagnostics._predictions import Outcome, Predictions

    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], size=6000)
    y = (p.cumsum(axis=1) < rng.random((6000, 1))).sum(axis=1)
    right = compute_class_calibration(Predictions.of(y, Outcome.of_probability(p)), [0, 1, 2], 0)
    assert not any(one.is_miscalibrated for one in right)
    wrong = p.copy()
    wrong[:, 0] *= 0.5
    wrong[:, 1] += p[:, 0] * 0.5
    found = compute_class_calibration(Predictions.of(y, Outcome.of_probability(wrong)), [0, 1, 2], 0)
    assert [one.is_miscalibrated for one in found] == [True, True, False]


def test_learning_curves_are_the_staged_losses(binary):
    from sklearn.ensemble import GradientBoostingClassifier

    model = GradientBoostingClassifier(n_estimators=12, random_state=0).fit(binary.X_train, binary.y_train)
    found = scboost.report(model, binary.X, binary.y, X_train=binary.X_train, y_train=binary.y_train).analysis.fitting
    for name, X, y in (("evaluated samples", binary.X, binary.y), ("training samples", binary.X_train, binary.y_train)):
        staged = [metrics.log_loss(y, p) for p in model.staged_predict_proba(X)]
        curve = found.curves[name]
        np.testing.assert_allclose(curve.loss, np.array(staged)[curve.n_trees - 1], rtol=1e-4)


def test_early_stopping_of_other_libraries_is_reported(binary):
    stopped = xgboost.XGBClassifier(n_estimators=200, early_stopping_rounds=3, n_jobs=1)
    stopped.fit(binary.X_train, binary.y_train, eval_set=[(binary.X, binary.y)], verbose=False)
    selected = scboost.report(stopped, binary.X, binary.y).analysis.fitting.selected
    assert [entry.value for entry in selected] == [str(stopped.best_iteration + 1)]
    assert binary.found.fitting.selected == []


def test_exports_are_json_and_a_model_card(binary, tmp_path):
    report = scboost.report(binary.model, binary.X, binary.y, name="a|b <i>")
    found = json.loads(report.save(tmp_path / "report.json").read_text())
    assert found["scores"][0]["value"] == report.analysis.scores[0].value
    assert found["classification"]["confusion"] == report.analysis.classification.confusion.tolist()
    card = report.save(tmp_path / "card.md").read_text()
    assert card.startswith("# Model card: a\\|b \\<i\\>\n")
    assert "| log-loss |" in card
    with pytest.raises(ValueError, match=r"path must end in one of .html, .htm, .json, .md, got '.pdf'"):
        report.save(tmp_path / "report.pdf")


@pytest.mark.parametrize("convert", [np.asarray, lambda f: f, pl.from_pandas, pa.Table.from_pandas])
def test_composed_samples_take_each_feature_from_its_source(convert):
    frame = pd.DataFrame({"a": np.arange(5.0), "b": np.arange(5.0) * 10})
    X = convert(frame)
    new = compose(X, np.array([0, 1, 4]), {1: np.array([3, 3, 0])})
    assert read_feature(new, 0).data.tolist() == [0, 1, 4]
    assert read_feature(new, 1).data.tolist() == [30, 30, 0]
    assert read_feature(X, 1).data.tolist() == [0, 10, 20, 30, 40]


def test_sparse_matrices_have_a_report():
    X, y = make_classification(300, 5, random_state=0)
    X[np.abs(X) < 0.5] = 0
    model = xgboost.XGBClassifier(n_estimators=5, n_jobs=1).fit(sparse.csr_matrix(X), y)
    report = scboost.report(model, sparse.csr_matrix(X), y)
    assert report.analysis.effects == []
    assert len(report.analysis.data.features) == 5
    assert "Partial dependence" not in report.html()
