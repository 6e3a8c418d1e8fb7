"""Reports of rankings and survival models: their scores against other implementations, and the command line."""

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.metrics import average_precision_score, ndcg_score

import scboost
from data_makers import ranking_data, survival_data
from scboost import SCBoostRanker, SCBoostSurvival
from scboost._core.survival import brier_times, integrated_brier_score, kaplan_meier
from scboost._estimators.survival_target import time_bounds
from scboost.cli import main
from scboost.diagnostics.sections.tasks import RankingTarget


@pytest.fixture(scope="module")
def ranker():
    X, y, qid = ranking_data(80)
    return SCBoostRanker(n_estimators=20, random_state=0).fit(X[:400], y[:400], qid=qid[:400])


@pytest.fixture(scope="module", params=["cox", "aft"])
def survival(request):
    X, y = survival_data()
    return SCBoostSurvival(loss=request.param, random_state=0).fit(X[:400], y[:400])


def scores_by_name(found):
    return {score.name: score for score in found.analysis.scores}


def test_scores_of_a_ranking_are_those_of_scikit_learn(ranker):
    X, y, qid = (part[400:] for part in ranking_data(80))
    found = scboost.report(ranker, X, y, qid=qid, measure_speed=False)
    scores, raw = scores_by_name(found), ranker.predict(X)
    parts = [qid == q for q in np.unique(qid) if y[qid == q].any()]
    ndcg = [ndcg_score([2.0 ** y[own] - 1], [raw[own]], k=10) for own in parts]
    assert scores["NDCG@10"].value == pytest.approx(np.mean(ndcg))
    assert scores["NDCG"].value == pytest.approx(ranker.score(X, y, qid=qid))
    assert scores["MAP"].value == pytest.approx(np.mean([average_precision_score(y[p] > 0, raw[p]) for p in parts]))
    first = [1 / (1 + np.argmax(y[own][np.argsort(-raw[own])] > 0)) for own in parts]
    assert scores["MRR"].value == pytest.approx(np.mean(first))
    error = np.std(ndcg) / np.sqrt(len(ndcg))  # the bootstrap resamples queries
    assert scores["NDCG@10"].high - scores["NDCG@10"].low == pytest.approx(2 * 1.96 * error, rel=0.25)
    np.testing.assert_allclose(found.analysis.task.values, ndcg)


def test_the_report_of_a_ranking_shows_scores_and_random_orders(ranker):
    X, y, qid = ranking_data(80)
    found = scboost.report(
        ranker, X[400:], y[400:], qid=qid[400:], X_train=X[:400], y_train=y[:400], qid_train=qid[:400]
    )
    page = found.html()
    assert "random order" in page
    assert "NDCG@10 of each query" in page
    assert "Better than a constant prediction" in page
    random = {score.name: score.value for score in found.analysis.baseline_scores}
    assert all(random[name] < score.value for name, score in scores_by_name(found).items())
    assert [score.name for score in found.analysis.training_scores] == ["NDCG@10", "NDCG", "MAP", "MRR"]
    assert found.to_dict()["task"]["n_units"] == found.analysis.task.n_units
    assert "| NDCG@10 |" in found.markdown()


def test_scores_of_a_survival_model_are_those_of_its_methods(survival):
    X, y = (part[400:] for part in survival_data())
    found = scboost.report(survival, X, y, measure_speed=False)
    scores, bounds = scores_by_name(found), time_bounds(y, 400, "y")
    assert scores["C-index"].value == pytest.approx(survival.score(X, y))
    times = brier_times(bounds)
    functions = survival.predict_survival_function(X, times)
    assert scores["IBS"].value == pytest.approx(integrated_brier_score(bounds, functions, times), rel=1e-5)
    median = np.median(y[y[:, 1] == 1, 0])
    predicted = survival.predict_survival_function(X, [median]).mean()
    km_times, km = kaplan_meier(bounds)
    assert scores["calibration"].value == pytest.approx(predicted - km[np.searchsorted(km_times, median)], abs=0.01)
    assert scores["calibration"].low < 0 < scores["calibration"].high
    baseline = {score.name: score.value for score in found.analysis.baseline_scores}
    assert baseline["C-index"] == 0.5
    assert baseline["IBS"] > scores["IBS"].high
    assert baseline["calibration"] == pytest.approx(0, abs=1e-12)
    assert "Survival at the median event time" in found.html()


def test_kaplan_meier_is_the_product_over_event_times():
    rng = np.random.default_rng(0)
    time, w = rng.integers(1, 8, 60).astype(float), rng.integers(1, 4, 60).astype(float)
    event = rng.random(60) < 0.6
    bounds = np.stack([time, np.where(event, time, np.inf)], axis=1)
    times, found = kaplan_meier(bounds, w)
    product, expected = 1.0, []
    for t in np.unique(time[event]):
        product *= 1 - w[event & (time == t)].sum() / w[time >= t].sum()
        expected.append(product)
    np.testing.assert_allclose(found, expected)
    repeated = np.repeat(bounds, w.astype(int), axis=0)
    np.testing.assert_allclose(kaplan_meier(repeated)[1], found)
    np.testing.assert_array_equal(times, np.unique(time[event]))


def test_interval_censored_times_have_a_concordance_only():
    X, y = survival_data(300)
    bounds = np.stack([y[:, 0], y[:, 0] + 2.0], axis=1)
    model = SCBoostSurvival(loss="aft", n_estimators=10).fit(X, bounds)
    found = scboost.report(model, X, bounds, measure_speed=False)
    assert [score.name for score in found.analysis.scores] == ["C-index"]
    assert found.analysis.scores[0].value == pytest.approx(model.score(X, bounds))
    assert "C-index" in found.html()


@pytest.mark.parametrize("loss", ["cox", "aft"])
def test_redundancy_reports_have_the_score_of_the_first_trees(ranker, loss):
    X, y, qid = ranking_data(80)
    found = scboost.redundancy_report(ranker, X, y, qid=qid)
    assert found.score_name == "NDCG"
    assert found.ensemble_score == pytest.approx(ranker.score(X, y, qid=qid))
    for t, scores in enumerate(ranker.staged_predict(X)):
        expected = RankingTarget.of(y, qid, len(X)).score(scores)
        assert found.truncation[t] == pytest.approx(expected, abs=1e-4)  # float32 sums may break ties
    X, y = survival_data()
    model = SCBoostSurvival(loss=loss, n_estimators=20).fit(X, y)
    found = scboost.redundancy_report(model, X, y)
    assert found.ensemble_score == pytest.approx(model.score(X, y), abs=1e-4)
    assert "concordance" in str(found)


def test_rankings_of_other_libraries_are_scored():
    X, y, qid = ranking_data(80)
    xgb = xgboost.XGBRanker(n_estimators=5).fit(X, y, qid=qid)
    lgb = lightgbm.LGBMRanker(n_estimators=5, verbose=-1).fit(X, y, group=np.full(80, 10))
    for model in (xgb, lgb):
        found = scboost.report(model, X, y, qid=qid, measure_speed=False)
        raw = model.predict(X)
        expected = [ndcg_score([2.0 ** y[qid == q] - 1], [raw[qid == q]], k=10) for q in range(80) if y[qid == q].any()]
        assert found.analysis.scores[0].value == pytest.approx(np.mean(expected), abs=1e-6)


def test_large_rankings_are_subsampled_by_whole_queries():
    _, y, qid = ranking_data(80)
    target = RankingTarget.of(y, qid, 800)
    rows = target.choose(95, np.random.default_rng(0))
    assert len(rows) == 90
    assert (np.bincount(qid[rows])[np.unique(qid[rows])] == 10).all()


def test_wrong_arguments_are_named(ranker):
    X, y, qid = ranking_data(80)
    with pytest.raises(ValueError, match="pass qid"):
        scboost.report(ranker, X, y)
    with pytest.raises(ValueError, match="qid must have shape"):
        scboost.report(ranker, X, y, qid=qid[:10])
    with pytest.raises(ValueError, match="relevances of at least 0"):
        scboost.report(ranker, X, -y, qid=qid)
    with pytest.raises(ValueError, match="no query has a relevant document"):
        scboost.report(ranker, X, 0 * y, qid=qid)
    with pytest.raises(ValueError, match="compare supports classification and regression"):
        scboost.report(ranker, X, y, qid=qid, compare=ranker)
    classifier = scboost.SCBoostClassifier(n_estimators=2).fit(X, y > 0)
    with pytest.raises(ValueError, match="qid was given, but the model is not a ranking model"):
        scboost.report(classifier, X, y > 0, qid=qid)
    cox = xgboost.XGBRegressor(n_estimators=5, objective="survival:cox").fit(X, y + 1.0)
    with pytest.raises(TypeError, match="SCBoostSurvival only, this is a XGBRegressor"):
        scboost.report(cox, X, np.column_stack([y + 1.0, y > 0]))


def test_the_command_line_reports_and_compresses(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y, qid = ranking_data(80)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(relevance=y, query=[f"q{q}" for q in qid])
    X, y = survival_data()
    other = pd.DataFrame(X, columns=list("abcd")).assign(days=y[:, 0], died=y[:, 1].astype(int))
    options = {"rank": ["--target", "relevance", "--group", "query"], "surv": ["--target", "days", "--event", "died"]}
    for name, table in (("rank", frame), ("surv", other)):
        table[:400].to_csv(f"{name}.csv", index=False)
        table[400:].to_csv(f"{name}_test.csv", index=False)
        train = ["train", f"{name}.csv", *options[name], "-o", f"{name}.json", "--param", "n_estimators=10"]
        assert main(train) == 0, capsys.readouterr().err
        assert main(["report", f"{name}.json", f"{name}_test.csv", "--train", f"{name}.csv", "-o", f"{name}.md"]) == 0
        small = ["compress", f"{name}.json", f"{name}.csv", "--certify", f"{name}_test.csv", "--max-trees", "4"]
        capsys.readouterr()
        assert main([*small, "-o", f"{name}_small.json"]) == 0, capsys.readouterr().err
        assert "ranked in the same order" in capsys.readouterr().out
    assert "| NDCG@10 |" in (tmp_path / "rank.md").read_text()
    assert "| C-index |" in (tmp_path / "surv.md").read_text()
    assert scboost.load_model("rank_small.json").n_estimators_ <= 4
    assert scboost.load_model("surv_small.json").predict_survival_function(other[list("abcd")], [1.0]).shape == (800, 1)
