"""The command line: what it trains and predicts is what Python does, and its errors name file, column and row."""

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xgboost
from pyarrow import csv, feather, parquet
from sklearn.metrics import accuracy_score, log_loss, mean_pinball_loss, root_mean_squared_error

import command_line
from scboost import SCBoostClassifier, SCBoostRegressor, load_model, report
from scboost.cli import COMMANDS, main, tables
from scboost.cli.tables import DataError, Kinds, Source

N_ROUNDS = ["--param", "n_estimators=8", "--param", "random_state=0", "--param", "n_jobs=1", "--quiet"]


def frame(n=300, seed=0):
    rng = np.random.default_rng(seed)
    age, colour = rng.integers(18, 90, size=n).astype(float), rng.choice(["red", "green", "blue"], size=n)
    code = rng.integers(4, size=n)
    score = age / 30 + (colour == "red") - (code == 2) + rng.normal(size=n)
    age[::17] = np.nan
    label = np.where(score > 1.8, "yes", "no")
    return pd.DataFrame({"age": age, "colour": colour, "code": code, "label": label, "amount": score})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame().to_csv("train.csv", index=False)
    frame(200, 1).to_csv("test.csv", index=False)
    return tmp_path


def train(*more, data="train.csv", target="label", out="model.json"):
    return main(["train", data, "--target", target, "-o", out, *N_ROUNDS, *more])


def test_command_line_agrees_with_python_and_xgboost(folder, capsys):
    assert train("--ignore", "amount") == 0
    shown = capsys.readouterr().out
    assert "300 rows; classification of 'label'" in shown
    assert "colour  categorical, 3 values" in shown
    assert "age     numeric, 18 missing" in shown
    assert main(["predict", "model.json", "test.csv", "-o", "out.csv", "--proba", "--keep", "amount"]) == 0
    assert main(["evaluate", "model.json", "test.csv", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)

    columns = ["age", "colour", "code"]
    data, test = pd.read_csv("train.csv"), pd.read_csv("test.csv")
    model = SCBoostClassifier(n_estimators=8, random_state=0, n_jobs=1).fit(data[columns], data["label"])
    p = model.predict_proba(test[columns])
    out = pd.read_csv("out.csv")
    np.testing.assert_allclose(out[["probability_no", "probability_yes"]], p, rtol=1e-12)
    np.testing.assert_array_equal(out["prediction"], model.predict(test[columns]))
    np.testing.assert_allclose(out["amount"], test["amount"])
    assert figures["rows"] == 200
    assert figures["log_loss"] == pytest.approx(log_loss(test["label"], p), rel=1e-9)
    assert figures["accuracy"] == pytest.approx(accuracy_score(test["label"], model.predict(test[columns])))

    booster = xgboost.Booster(model_file="model.json")
    rows = xgboost.DMatrix(test[columns].astype({"colour": "category"}), enable_categorical=True)
    np.testing.assert_allclose(booster.predict(rows), p[:, 1], rtol=1e-5)


def test_regression_is_inferred_and_validation_rows_are_used(folder, capsys):
    more = ["--ignore", "label", "--valid", "test.csv", "--param", "early_stopping=True"]
    assert train(*more, target="amount") == 0
    assert "regression of 'amount'" in capsys.readouterr().out
    model = load_model("model.json")
    assert isinstance(model, SCBoostRegressor)
    assert "validation_loss" in model.training_log_
    assert main(["evaluate", "model.json", "test.csv", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    test = pd.read_csv("test.csv")
    expected = root_mean_squared_error(test["amount"], model.predict(test[["age", "colour", "code"]]))
    assert figures["rmse"] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.zst", "tsv", "parquet", "feather", "arrow"])
def test_all_file_formats_give_the_same_result(folder, ending):
    train("--ignore", "amount", "--categorical", "code")
    table = csv.read_csv("test.csv")
    name = f"rows.{ending}"
    if ending == "parquet":
        parquet.write_table(table, name)
    elif ending in {"feather", "arrow"}:
        feather.write_feather(table, name)
    else:
        with pa.output_stream(name, compression="detect") as stream:
            csv.write_csv(table, stream, csv.WriteOptions(delimiter="\t" if ending == "tsv" else ","))
    assert main(["predict", "model.json", name, "-o", f"out.{ending}", "--proba"]) == 0
    found = Source(f"out.{ending}").read(["probability_yes"], Kinds())["probability_yes"].to_numpy()
    model, test = load_model("model.json"), pd.read_csv("test.csv", dtype={"code": str})
    np.testing.assert_allclose(found, model.predict_proba(test[["age", "colour", "code"]])[:, 1], rtol=1e-12)
    assert not list(folder.glob("*.part"))


def test_chunks_give_the_predictions_of_the_whole(folder, monkeypatch):
    train("--ignore", "amount")
    parquet.write_table(csv.read_csv("test.csv"), "test.parquet")
    for name in ("test.csv", "test.parquet"):
        main(["predict", "model.json", name, "-o", "whole.csv", "--proba"])
        monkeypatch.setattr(tables, "_BLOCK", 1000)
        monkeypatch.setattr(tables, "_ROWS", 30)
        assert len(list(Source(name).chunks(["age"], Kinds(numeric=frozenset(["age"]))))) > 3
        main(["predict", "model.json", name, "-o", "parts.csv", "--proba"])
        monkeypatch.undo()
        monkeypatch.chdir(folder)
        assert (folder / "whole.csv").read_bytes() == (folder / "parts.csv").read_bytes()


def test_categories_and_numbers_can_be_forced(folder, capsys):
    train("--ignore", "amount", "--categorical", "code")
    assert "code    categorical, 4 values" in capsys.readouterr().out
    data = frame()
    data["age"] = data["age"].map(lambda v: "unknown" if np.isnan(v) else str(v))
    data.to_csv("texts.csv", index=False)
    assert train("--ignore", "amount", data="texts.csv") == 0
    assert "age     categorical" in capsys.readouterr().out
    assert train("--ignore", "amount", "--numeric", "age", data="texts.csv") == 1
    assert (
        "texts.csv: row 2, column 'age': invalid value 'unknown', where a number is expected" in capsys.readouterr().err
    )


def test_several_quantiles_are_columns(folder, capsys):
    more = ["--ignore", "label", "--param", "loss=quantile", "--param", "quantile=[0.1, 0.9]"]
    assert train(*more, target="amount") == 0
    assert main(["predict", "model.json", "test.csv", "-o", "out.csv"]) == 0
    out, test = pd.read_csv("out.csv"), pd.read_csv("test.csv")
    assert list(out) == ["quantile_0.1", "quantile_0.9"]
    assert (out["quantile_0.1"] <= out["quantile_0.9"]).all()
    capsys.readouterr()
    assert main(["evaluate", "model.json", "test.csv", "--json"]) == 0
    expected = mean_pinball_loss(test["amount"], out["quantile_0.9"], alpha=0.9)
    assert json.loads(capsys.readouterr().out)["pinball_0.9"] == pytest.approx(expected)


def test_prune_command_keeps_the_given_number_of_trees(folder, capsys):
    train("--ignore", "amount")
    assert main(["prune", "model.json", "test.csv", "--max-trees", "3", "-o", "small.ubj"]) == 0
    assert "3 of 8 trees are kept" in capsys.readouterr().out
    assert np.count_nonzero(load_model("small.ubj").weights_) == 3
    assert main(["evaluate", "small.ubj", "test.csv"]) == 0
    assert "log_loss" in capsys.readouterr().out


def put(folder, column, row, value):
    """Write test.csv and test.parquet with one wrong value."""
    data = frame(200, 1)
    data[column] = data[column].astype(object)
    data.loc[row, column] = value
    data.to_csv("test.csv", index=False)
    texts = data[column].map(lambda v: None if pd.isna(v) else str(v))
    parquet.write_table(pa.Table.from_pandas(data.assign(**{column: texts}), preserve_index=False), "test.parquet")


@pytest.mark.parametrize(("name", "row"), [("test.csv", 152), ("test.parquet", 151)])
def test_a_wrong_value_is_named_with_file_column_and_row(folder, capsys, name, row):
    train("--ignore", "amount")
    put(folder, "age", 150, "old")
    assert main(["predict", "model.json", name, "-o", "out.csv"]) == 1
    err = capsys.readouterr().err
    assert f"{name}: row {row}, column 'age':" in err
    assert "'old', where a number is expected" in err
    assert not (folder / "out.csv").exists()
    put(folder, "label", 150, "perhaps")
    assert main(["evaluate", "model.json", name]) == 1
    assert f"{name}: row {row}, column 'label': 'perhaps' is none of the model's classes" in capsys.readouterr().err
    put(folder, "label", 150, None)
    assert main(["evaluate", "model.json", name]) == 1
    assert f"{name}: row {row}, column 'label': no value" in capsys.readouterr().err


def test_errors_of_other_kinds_say_what_is_wrong_and_exit_with_one(folder, capsys):
    train("--ignore", "amount")

    def error(*argv):
        assert main(list(argv)) == 1
        return capsys.readouterr().err

    assert "there is no column 'nothing'; the file has 'age', 'colour'" in error(
        "train", "train.csv", "--target", "nothing", "-o", "m.json"
    )
    assert "No such file" in error("predict", "model.json", "missing.csv", "-o", "out.csv")
    assert "unknown kind of file" in error("predict", "model.json", "rows.xlsx", "-o", "out.csv")
    train("--ignore", "label", target="amount", out="r.json")
    assert "--proba needs a classifier" in error("predict", "r.json", "test.csv", "-o", "out.csv", "--proba")
    assert "use max_leaves" in error(
        "train", "train.csv", "--target", "label", "-o", "m.json", "--param", "num_leaves=3"
    )
    assert "write it as NAME=VALUE" in error("train", "train.csv", "--target", "label", "-o", "m.json", "--param", "x")
    assert "must end in .json or .ubj" in error("train", "train.csv", "--target", "label", "-o", "m.pkl")
    (folder / "broken.json").write_text("{}")
    assert "broken.json: " in error("predict", "broken.json", "test.csv", "-o", "out.csv")
    pd.read_csv("test.csv").drop(columns="colour").to_csv("less.csv", index=False)
    assert "less.csv: there is no column 'colour'" in error("predict", "model.json", "less.csv", "-o", "out.csv")
    (folder / "ragged.csv").write_text("age,colour,code\n1,red,2\n1,red\n")
    assert "ragged.csv: row 3: Expected 3 columns, got 2" in error("predict", "model.json", "ragged.csv", "-o", "o.csv")
    (folder / "twice.csv").write_text("a,a\n1,2\n")
    with pytest.raises(DataError, match="'a' occurs more than once"):
        Source("twice.csv")


@pytest.mark.parametrize("name", ["dated.csv", "dated.parquet"])
def test_dates_are_rejected_with_a_suggestion(folder, capsys, name):
    dated = frame().assign(day=pd.date_range("2020-01-31", periods=300).date)
    dated.to_csv(name, index=False) if name.endswith("csv") else dated.to_parquet(name)
    assert train(data=name) == 1
    assert f"{name}: column 'day' holds dates or times such as 2020-01-31; leave it out with --ignore 'day'" in (
        capsys.readouterr().err
    )
    assert train("--ignore", "day", data=name) == 0


def test_wrong_arguments_exit_with_two_and_help_lists_the_commands(folder, capsys):
    for argv in ([], ["dance"], ["train"]):
        with pytest.raises(SystemExit) as caught:
            main(argv)
        assert caught.value.code == 2
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMMANDS)


def test_interrupt_has_its_own_exit_code(folder, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(SCBoostClassifier, "fit", interrupted)
    assert train("--ignore", "amount") == 130


def test_python_dash_m_runs_it_and_without_pyarrow_the_error_names_the_extra(folder):
    done = subprocess.run([sys.executable, "-m", "scboost", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("scboost ")
    code = (
        "import sys; sys.modules['pyarrow'] = None; from scboost.cli import main; "
        "sys.exit(main(['train', 'train.csv', '--target', 'label', '-o', 'm.json']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603 - our code
    assert done.returncode == 1
    assert "pip install 'scboost[cli]'" in done.stderr


def test_listing_the_commands_imports_none_of_them(folder):
    code = "import sys, scboost.cli; print([m for m in sys.modules if m.startswith('scboost.cli.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - our code
    assert done.stdout.strip() == "[]"


def test_the_session_of_the_page_runs_and_prints_the_same_but_for_digits():
    def words(text):
        return re.sub(r"[\d.,]+(e-\d+)?", "#", text)

    assert words(command_line.PAGE.read_text()) == words(command_line.page()), "run tools/command_line.py"


def test_the_report_is_that_of_python(folder, capsys):
    train("--ignore", "amount")
    capsys.readouterr()
    assert main(["report", "model.json", "test.csv", "--name", "mine", "-o", "page.html"]) == 0
    assert capsys.readouterr().out == f"200 samples evaluated, written to {folder / 'page.html'}\n"
    test = pd.read_csv("test.csv")
    columns = ["age", "colour", "code"]
    found = report(load_model("model.json"), test[columns], test["label"], name="mine").html()
    page = (folder / "page.html").read_text()
    assert re.search(r"<h1>mine \(scboost\)", page)
    # Threads are among the parameters that the page names.
    assert re.sub(r"<tr><td>n_jobs.*?</tr>\n", "", page) == re.sub(r"<tr><td>n_jobs.*?</tr>\n", "", found)
