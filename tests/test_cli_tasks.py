"""The command line for rankings, survival times, distributions and several targets."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from scboost import (
    SCBoostClassifier,
    SCBoostDistribution,
    SCBoostRanker,
    SCBoostRegressor,
    SCBoostSurvival,
    load_model,
)
from scboost._core.survival import brier_times, integrated_brier_score
from scboost.cli import main

FEATURES = ["a", "b", "kind"]
FEW_ROUNDS = ["--param", "n_estimators=10", "--param", "n_jobs=1", "--quiet"]


def frame(n=300, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    kind = rng.choice(["x", "y"], size=n)
    time, censoring = rng.exponential(np.exp(-a)), rng.exponential(2.0, n)
    return pd.DataFrame(
        {
            "a": a,
            "b": b,
            "kind": kind,
            "relevance": np.digitize(a + 0.5 * rng.normal(size=n), [0.5, 1.5]),
            "query": [f"q{i // 10}" for i in range(n)],
            "days": np.minimum(time, censoring),
            "died": time <= censoring,
            "amount": a + (kind == "x") + np.exp(0.4 * b) * rng.normal(size=n),
            "second": b + rng.normal(size=n),
            "flag": (a + rng.normal(size=n) > 0).astype(int),
            "other_flag": (b + rng.normal(size=n) > 0).astype(int),
            "weight": rng.integers(1, 4, n),
        }
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame().to_csv("train.csv", index=False)
    frame(200, 1).to_csv("test.csv", index=False)
    return tmp_path


def train(*options, data="train.csv", more=()):
    targets = {name for option, name in pairwise(options) if option.startswith("--")}
    ignored = [name for name in frame(10) if name not in targets and name not in FEATURES]
    ignore = [word for name in ignored for word in ("--ignore", name)]
    return main(["train", data, "-o", "model.json", *options, *ignore, *FEW_ROUNDS, *more])


def evaluate(capsys, *options, data="test.csv"):
    capsys.readouterr()
    assert main(["evaluate", "model.json", data, "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def predictions(*options):
    assert main(["predict", "model.json", "test.csv", "-o", "out.csv", *options]) == 0
    return pd.read_csv("out.csv")


def test_ranking_agrees_with_python(folder, capsys):
    assert train("--task", "rank", "--target", "relevance", "--group", "query", "--weight", "weight") == 0
    assert "ranking of 'relevance'" in capsys.readouterr().out
    data, test = frame(), frame(200, 1)
    model = SCBoostRanker(n_estimators=10, n_jobs=1)
    model.fit(data[FEATURES], data["relevance"], data["weight"], qid=data["query"])
    np.testing.assert_allclose(predictions()["prediction"], model.predict(test[FEATURES]), rtol=1e-9)
    assert load_model("model.json").target_name_ == ("relevance", "query")
    found = evaluate(capsys)
    assert found["rows"] == 200
    assert found["queries"] == 20
    for name, k in (("ndcg@10", 10), ("ndcg", None)):
        expected = model.score(test[FEATURES], test["relevance"], qid=test["query"], k=k)
        assert found[name] == pytest.approx(expected)
    weighted = evaluate(capsys, "--weight", "weight")
    expected = model.score(test[FEATURES], test["relevance"], test["weight"], qid=test["query"])
    assert weighted["ndcg"] == pytest.approx(expected)


@pytest.mark.parametrize("loss", ["cox", "aft"])
def test_survival_agrees_with_python(folder, capsys, loss):
    assert train("--target", "days", "--event", "died", more=["--param", f"loss={loss}"]) == 0
    assert "survival of 'days'" in capsys.readouterr().out
    data, test = frame(), frame(200, 1)
    y, y_test = (part[["days", "died"]].to_numpy(float) for part in (data, test))
    model = SCBoostSurvival(loss=loss, n_estimators=10, n_jobs=1).fit(data[FEATURES], y)
    out = predictions("--time", "0.5", "--time", "2", "--quantile", "0.5")
    assert list(out) == ["prediction", "quantile_0.5", "survival_0.5", "survival_2"]
    np.testing.assert_allclose(out["prediction"], model.predict(test[FEATURES]), rtol=1e-9)
    np.testing.assert_allclose(out["quantile_0.5"], model.predict_quantile(test[FEATURES]), rtol=1e-9)
    expected = model.predict_survival_function(test[FEATURES], [0.5, 2])
    np.testing.assert_allclose(out[["survival_0.5", "survival_2"]], expected, rtol=1e-9)
    found = evaluate(capsys)
    assert found["events"] == test["died"].sum()
    assert found["concordance"] == pytest.approx(model.score(test[FEATURES], y_test))
    bounds = np.column_stack([test["days"], np.where(test["died"], test["days"], np.inf)])
    times = brier_times(bounds)
    expected = integrated_brier_score(bounds, model.predict_survival_function(test[FEATURES], times), times)
    assert found["integrated_brier_score"] == pytest.approx(expected)


def test_distribution_agrees_with_python(folder, capsys):
    assert train("--target", "amount", "--distribution", "student", more=["--param", "df=4"]) == 0
    assert "distribution of 'amount'" in capsys.readouterr().out
    data, test = frame(), frame(200, 1)
    model = SCBoostDistribution(distribution="student", df=4, n_estimators=10, n_jobs=1)
    predicted = model.fit(data[FEATURES], data["amount"]).predict_distribution(test[FEATURES])
    out = predictions("--interval", "0.8", "--quantile", "0.9")
    assert list(out) == ["prediction", "std", "lower", "upper", "quantile_0.9"]
    np.testing.assert_allclose(out["prediction"], predicted.mean(), rtol=1e-9)
    np.testing.assert_allclose(out["std"], predicted.std(), rtol=1e-9)
    np.testing.assert_allclose(out[["lower", "upper"]], predicted.interval(0.8), rtol=1e-9)
    np.testing.assert_allclose(out["quantile_0.9"], predicted.quantile(0.9), rtol=1e-9)
    found = evaluate(capsys)
    assert found["nll"] == pytest.approx(-predicted.logpdf(test["amount"]).mean())
    assert found["crps"] == pytest.approx(predicted.crps(test["amount"]).mean())
    inside = (out["lower"] <= test["amount"]) & (test["amount"] <= out["upper"])
    assert found["coverage_80"] == pytest.approx(inside.mean())


def test_several_values_agree_with_python(folder, capsys):
    data = frame()
    data.loc[::5, "second"] = np.nan
    data.to_csv("train.csv", index=False)
    assert train("--target", "amount", "--target", "second") == 0
    assert "regression of 'amount', 'second'" in capsys.readouterr().out
    model = SCBoostRegressor(n_estimators=10, n_jobs=1).fit(data[FEATURES], data[["amount", "second"]])
    test = frame(200, 1)
    expected = model.predict(test[FEATURES])
    out = predictions()
    np.testing.assert_allclose(out[["prediction_amount", "prediction_second"]], expected, rtol=1e-9)
    found = evaluate(capsys)
    error = np.sqrt(np.mean((expected[:, 1] - test["second"]) ** 2))
    assert found["rmse_second"] == pytest.approx(error)
    assert set(found) == {"rows", "rmse_amount", "r2_amount", "rmse_second", "r2_second"}


def test_several_labels_agree_with_python(folder, capsys):
    assert train("--target", "flag", "--target", "other_flag") == 0
    assert "classification of 'flag', 'other_flag'" in capsys.readouterr().out
    data, test = frame(), frame(200, 1)
    model = SCBoostClassifier(n_estimators=10, n_jobs=1).fit(data[FEATURES], data[["flag", "other_flag"]])
    out = predictions("--proba")
    np.testing.assert_allclose(
        out[["probability_flag", "probability_other_flag"]], model.predict_proba(test[FEATURES]), rtol=1e-9
    )
    assert 0.5 < evaluate(capsys)["auc_flag"] < 1


@pytest.mark.parametrize(
    ("options", "score"),
    [
        (["--target", "relevance", "--group", "query"], "ndcg@10 "),
        (["--target", "days", "--event", "died"], "concordance "),
        (["--target", "amount", "--task", "distribution"], "crps "),
        (["--target", "amount", "--target", "second"], "rmse_second "),
    ],
)
def test_validation_sets_stop_early_and_are_scored(folder, capsys, options, score):
    assert train(*options, more=["--valid", "test.csv", "--param", "early_stopping=True"]) == 0
    assert score in capsys.readouterr().out.split("validation set: ")[1]
    assert load_model("model.json").training_log_.keys() & {"validation_loss"}


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["--target", "relevance", "--group", "query"], "cross-validation: NDCG 0."),
        (["--target", "days", "--event", "died"], "cross-validation: negative log partial likelihood"),
        (["--target", "amount", "--task", "distribution"], "cross-validation: negative log-likelihood"),
        (["--target", "flag", "--target", "other_flag"], "cross-validation: log-loss"),
    ],
)
def test_cross_validated_losses_are_shown(folder, capsys, options, shown):
    assert train(*options, more=["--param", "n_estimators=auto", "--param", "max_depth=2"]) == 0
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--task", "ranking", "--target", "relevance"], "--task ranking needs --group COLUMN"),
        (["--task", "survival", "--target", "days"], "--task survival needs --event COLUMN"),
        (["--task", "regression", "--target", "days", "--event", "died"], "--event belongs to --task survival"),
        (["--target", "relevance", "--group", "query", "--event", "died"], "--group belongs to --task ranking"),
        (["--target", "days", "--target", "amount", "--event", "died"], "--task survival takes one --target"),
        (["--target", "amount", "--target", "amount"], "column 'amount' is named twice"),
        (["--target", "days", "--event", "dead"], "there is no column 'dead'"),
        (["--target", "days", "--event", "query"], "row 2, column 'query': 'q0', where an event indicator is expected"),
        (["--target", "amount", "--target", "query"], "column 'query'"),
        (["--target", "amount", "--distribution", "gamma"], "y > 0"),
    ],
)
def test_contradictions_are_refused_in_words(folder, capsys, options, message):
    assert train(*options) == 1
    assert message in capsys.readouterr().err
    assert not (folder / "model.json").exists()


def test_options_of_other_tasks_are_refused_before_the_table_is_read(folder, capsys):
    train("--target", "days", "--event", "died")

    def error(*argv):
        capsys.readouterr()
        assert main(list(argv)) == 1
        return capsys.readouterr().err

    read = ("missing.csv", "-o", "out.csv")
    assert "is a survival model: --interval needs" in error("predict", "model.json", *read, "--interval", "0.9")
    assert "--time -1: a time must be at least 0" in error("predict", "model.json", *read, "--time", "-1")
    assert "--quantile 2: must be between 0 and 1" in error("predict", "model.json", *read, "--quantile", "2")
    assert "--group belongs to a ranking model" in error("evaluate", "model.json", "missing.csv", "--group", "query")
    message = error("prune", "model.json", "missing.csv", "--max-trees", "3", "-o", "small.json")
    assert "is a SCBoostSurvival: scboost prune supports classification" in message
    message = error("report", "model.json", "missing.csv", "--group", "query", "-o", "out.html")
    assert "--group belongs to a ranking model" in message


def test_models_without_names_of_columns_need_them(folder, capsys):
    data = frame()
    SCBoostRanker(n_estimators=2).fit(data[FEATURES], data["relevance"], qid=data["query"]).save_model("model.json")
    assert main(["evaluate", "model.json", "test.csv", "--target", "relevance"]) == 1
    assert "give --group COLUMN" in capsys.readouterr().err
    assert "ndcg" in evaluate(capsys, "--target", "relevance", "--group", "query")


def test_queries_may_span_chunks(folder, capsys, monkeypatch):
    train("--target", "relevance", "--group", "query")
    whole = evaluate(capsys)
    monkeypatch.setattr("scboost.cli.tables._BLOCK", 1000)
    assert evaluate(capsys) == whole


@pytest.mark.parametrize("options", [["--target", "days", "--event", "died"], ["--target", "amount", "--target", "a"]])
def test_a_table_without_rows_gives_an_output_without_rows(folder, options):
    train(*options)
    frame(1).iloc[:0].to_csv("test.csv", index=False)
    out = predictions(*(["--time", "1"] if "--event" in options else []))
    assert len(out) == 0
    assert len(list(out)) == 2
