"""The command line: models and predictions equal those of Python, and errors name file, column and row."""

import json
import re
import shlex
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
from scboost import SCBoostClassifier, SCBoostRegressor, compress, export_c, export_js, export_sql, load_model, report
from scboost.cli import COMMANDS, main, make_parser, tables
from scboost.cli.tables import Kinds, Source
from scboost.cli.text import DataError

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
    assert "colour  categorical, 3 categories" in shown
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


def test_regression_is_inferred_and_the_validation_set_is_used(folder, capsys):
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


def test_intervals_are_those_of_python(folder, capsys):
    data, columns = frame(), ["age", "code"]
    model = SCBoostRegressor(engine="auto", random_state=0, n_jobs=1).fit(data[columns], data["amount"])
    model.save_model("model.ubj")
    assert main(["predict", "model.ubj", "test.csv", "-o", "out.csv", "--interval", "0.8"]) == 0
    found, test = pd.read_csv("out.csv"), pd.read_csv("test.csv")
    assert list(found) == ["prediction", "lower", "upper"]
    np.testing.assert_allclose(found[["lower", "upper"]], model.predict_interval(test[columns], 0.8), rtol=1e-9)
    for coverage in ("0", "1.5"):
        assert main(["predict", "model.ubj", "test.csv", "-o", "out.csv", "--interval", coverage]) == 1
        assert "between 0 and 1" in capsys.readouterr().err
    train("--ignore", "label", target="amount")
    assert main(["predict", "model.json", "test.csv", "-o", "out.csv", "--interval", "0.9"]) == 1
    assert "calibrate(X_cal, y_cal)" in capsys.readouterr().err
    train("--ignore", "amount")
    assert main(["predict", "model.json", "test.csv", "-o", "out.csv", "--interval", "0.9"]) == 1
    assert "is a classifier: --interval needs a regressor or a distribution model" in capsys.readouterr().err


def test_categories_and_numbers_can_be_forced(folder, capsys):
    train("--ignore", "amount", "--categorical", "code")
    assert "code    categorical, 4 categories" in capsys.readouterr().out
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


def test_compress_command_writes_the_result_of_compress(folder, capsys):
    train("--ignore", "amount")
    arguments = ["--max-trees", "3", "--max-leaves", "8", "--certify", "test.csv", "-o", "small.json", "--threads", "1"]
    assert main(["compress", "model.json", "train.csv", *arguments]) == 0
    shown = capsys.readouterr().out
    data, test = pd.read_csv("train.csv"), pd.read_csv("test.csv")
    columns = ["age", "colour", "code"]
    expected = compress(
        load_model("model.json"),
        data[columns],
        max_trees=3,
        max_leaves=8,
        X_certify=test[columns],
        y_certify=test["label"],
        random_state=0,
    )
    assert str(expected.certificate) in shown
    assert main(["evaluate", "small.json", "test.csv"]) == 0  # the file knows the target, as that of `train` does
    found = load_model("small.json")
    assert found.n_estimators_ == 3
    assert np.array_equal(found.predict_proba(test[columns]), expected.model.predict_proba(test[columns]))


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
    assert f"{name}: row {row}, column 'label': missing value" in capsys.readouterr().err


def test_errors_exit_with_one_and_a_message(folder, capsys):
    train("--ignore", "amount")

    def error(*argv):
        assert main(list(argv)) == 1
        return capsys.readouterr().err

    assert "there is no column 'nothing'; the columns are 'age', 'colour'" in error(
        "train", "train.csv", "--target", "nothing", "-o", "m.json"
    )
    assert "missing.csv: no such file" in error("predict", "model.json", "missing.csv", "-o", "out.csv")
    assert "missing.json: no such file" in error("predict", "missing.json", "test.csv", "-o", "out.csv")
    assert "unknown file format" in error("predict", "model.json", "rows.xlsx", "-o", "out.csv")
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


def dated(n=300, seed=0):
    days = pd.Series(
        pd.Timestamp("2020-01-31") + pd.to_timedelta(np.random.default_rng(seed).integers(900, size=n), "D")
    )
    table = frame(n, seed).assign(day=days.mask(days.dt.day == 13))
    return table.assign(amount=table["amount"] + 3 * (table["day"].dt.day_of_week >= 5)).drop(columns="label")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_dates_are_expanded_from_end_to_end(folder, capsys, ending):
    for name, table in {"old": dated(), "new": dated(200, 1)}.items():
        table.to_csv(f"{name}.csv", index=False) if ending == "csv" else table.to_parquet(f"{name}.parquet")
    more = ["--valid", f"new.{ending}", "--param", "early_stopping=True"]
    assert train(*more, data=f"old.{ending}", target="amount") == 0
    parts = "year, month, day, weekday, day of year, days since 1970"
    assert f"day     date, expanded to {parts}, {dated()['day'].isna().sum()} missing" in capsys.readouterr().out
    assert main(["predict", "model.json", f"new.{ending}", "-o", "out.csv"]) == 0
    X, new = dated().drop(columns="amount"), dated(200, 1)
    model = SCBoostRegressor(n_estimators=8, random_state=0, n_jobs=1, early_stopping=True)
    model.fit(X, dated()["amount"], X_val=new[X.columns], y_val=new["amount"])
    np.testing.assert_allclose(pd.read_csv("out.csv")["prediction"], model.predict(new[X.columns]), rtol=1e-12)
    assert main(["evaluate", "model.json", f"new.{ending}"]) == 0


def test_times_with_zones_are_dates_and_other_texts_are_named(folder, capsys):
    table = frame().assign(when=pd.date_range("2020-01-31", periods=300, freq="7h").strftime("%Y-%m-%dT%H:%M:%SZ"))
    table.to_csv("zoned.csv", index=False)
    assert train(data="zoned.csv") == 0
    assert "date, expanded to month, day, weekday, day of year, hour, days since 1970" in capsys.readouterr().out
    assert main(["predict", "model.json", "zoned.csv", "-o", "zoned_out.csv"]) == 0
    plain = table.assign(when=table["when"].str.removesuffix("Z"))
    plain.to_csv("plain.csv", index=False)
    assert main(["predict", "model.json", "plain.csv", "-o", "plain_out.csv"]) == 0
    pd.testing.assert_frame_equal(pd.read_csv("plain_out.csv"), pd.read_csv("zoned_out.csv"))
    plain.loc[7, "when"] = "soon"
    plain.to_csv("plain.csv", index=False)
    assert main(["predict", "model.json", "plain.csv", "-o", "plain_out.csv"]) == 1
    assert "row 9, column 'when': 'soon', where a date such as 2024-12-31 is expected" in capsys.readouterr().err


def test_times_of_day_are_rejected_with_a_suggestion(folder, capsys):
    frame().assign(at="12:30:00").to_csv("timed.csv", index=False)
    assert train(data="timed.csv") == 1
    assert "column 'at' holds durations or times of day such as 12:30:00; leave it out" in capsys.readouterr().err


def test_wrong_arguments_exit_with_two_and_help_lists_the_commands(folder, capsys):
    for argv in (["dance"], ["train"]):
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


def test_the_session_of_the_page_prints_the_same_up_to_digits():
    def words(text):
        return re.sub(r"[\d.,]+(e-\d+)?", "#", text)

    assert words(command_line.PAGE.read_text()) == words(command_line.page()), "run tools/command_line.py"


def test_the_report_is_that_of_python(folder, capsys):
    train("--ignore", "amount")
    capsys.readouterr()
    assert main(["report", "model.json", "test.csv", "--name", "mine", "-o", "page.html"]) == 0
    assert capsys.readouterr().out == "200 samples evaluated, written to page.html\n"
    test = pd.read_csv("test.csv")
    columns = ["age", "colour", "code"]
    found = report(load_model("model.json"), test[columns], test["label"], name="mine").html()
    page = (folder / "page.html").read_text()
    assert re.search(r"<h1>mine \(scboost\)", page)
    # Threads are among the parameters that the page names, and the time of predictions is measured.
    other = r"<tr><td>(n_jobs|prediction time|size, pickled)<.*?</tr>\n"
    assert re.sub(other, "", page) == re.sub(other, "", found)


# --- defects ---------------------------------------------------------------------------------------------------------


def failed(capsys, *argv):
    """Run a command that must fail, and return its message."""
    assert main(list(argv)) == 1
    return capsys.readouterr().err


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
@pytest.mark.parametrize("proba", [[], ["--proba"]])
def test_a_table_without_rows_gives_an_output_without_rows(folder, ending, proba):
    train("--ignore", "amount")
    table = csv.read_csv("test.csv").slice(0, 0)
    {"csv": csv.write_csv, "parquet": parquet.write_table, "feather": feather.write_feather}[ending](
        table, f"empty.{ending}"
    )
    (folder / f"out.{ending}").write_text("yesterday")
    assert main(["predict", "model.json", f"empty.{ending}", "-o", f"out.{ending}", "--keep", "amount", *proba]) == 0
    names = ["amount", "prediction", *(["probability_no", "probability_yes"] if proba else [])]
    found = Source(f"out.{ending}")
    assert found.names == names
    with pytest.raises(DataError, match="the table has no rows"):
        found.read(names, Kinds())


def test_a_table_without_rows_cannot_be_evaluated_or_trained_on(folder, capsys):
    train("--ignore", "amount")
    csv.write_csv(csv.read_csv("test.csv").slice(0, 0), "empty.csv")
    assert "empty.csv: the table has no rows" in failed(capsys, "evaluate", "model.json", "empty.csv")
    assert "empty.csv: the table has no rows" in failed(
        capsys, "train", "empty.csv", "--target", "label", "-o", "m.json"
    )


def test_a_kept_column_cannot_hide_the_predictions(folder, capsys):
    train("--ignore", "amount")
    pd.read_csv("test.csv").assign(prediction=7, probability_no=8).to_csv("named.csv", index=False)
    command = ["predict", "model.json", "named.csv", "-o", "out.csv"]
    assert "--keep prediction: the output has a column of predictions" in failed(
        capsys, *command, "--keep", "prediction"
    )
    assert main([*command, "--keep", "probability_no"]) == 0
    assert "--keep probability_no: " in failed(capsys, *command, "--proba", "--keep", "probability_no")


def test_a_link_is_followed_not_replaced(folder):
    train("--ignore", "amount")
    (folder / "real.csv").write_text("old")
    (folder / "link.csv").symlink_to("real.csv")
    assert main(["predict", "model.json", "test.csv", "-o", "link.csv"]) == 0
    assert (folder / "link.csv").is_symlink()
    assert len(pd.read_csv("real.csv")) == 200


def test_outputs_are_checked_before_any_work(folder, capsys, monkeypatch):
    train("--ignore", "amount")

    def never(*_, **__):
        raise AssertionError("the output was to be checked first")

    monkeypatch.setattr(SCBoostClassifier, "fit", never)
    monkeypatch.setattr("scboost.cli.predict.read_model", never)
    monkeypatch.setattr("scboost.cli.report.read_model", never)
    command = ["train", "train.csv", "--target", "label", "-o"]
    assert "'no/model.json' does not exist" in failed(capsys, *command, "no/model.json")
    (folder / "folder.json").mkdir()
    assert "this is a folder" in failed(capsys, *command, "folder.json")
    (folder / "valid.json").write_text("")
    assert "the output is also an input" in failed(capsys, *command, "valid.json", "--valid", "valid.json")
    (folder / "alias.csv").symlink_to("test.csv")
    assert "the output is also an input" in failed(capsys, "predict", "model.json", "test.csv", "-o", "alias.csv")
    assert "must end in .html or .htm" in failed(capsys, "report", "model.json", "test.csv", "-o", "r.pdf")
    assert "unknown file format" in failed(capsys, "predict", "model.json", "test.csv", "-o", "out.xlsx")


def test_fields_of_megabytes_are_read(folder, monkeypatch):
    train("--ignore", "amount")
    test = pd.read_csv("test.csv").assign(note="short")
    test.loc[150, "note"] = "x" * 5_000_000
    test.to_csv("long.csv", index=False)
    assert main(["predict", "model.json", "test.csv", "-o", "plain.csv", "--proba"]) == 0
    assert main(["predict", "model.json", "long.csv", "-o", "out.csv", "--proba", "--keep", "note"]) == 0
    out = pd.read_csv("out.csv")
    assert out["note"].str.len().tolist() == test["note"].str.len().tolist()
    pd.testing.assert_frame_equal(out.drop(columns="note"), pd.read_csv("plain.csv"))
    assert train("--ignore", "amount", "--ignore", "note", data="long.csv", out="long.json") == 0


def test_rows_before_a_long_field_come_once(folder, monkeypatch):
    monkeypatch.setattr(tables, "_BLOCK", 256)
    rows = [*map(str, range(100)), "9" * 3000, *map(str, range(50))]
    (folder / "rows.csv").write_text("a\n" + "\n".join(rows) + "\n")
    parts = [table["a"].to_pylist() for _, table in Source("rows.csv").chunks(["a"], Kinds(labels=frozenset("a")))]
    assert len(parts) > 1
    assert [value for part in parts for value in part] == rows


def test_json_has_no_nan(folder, capsys, monkeypatch):
    train("--ignore", "label", target="amount")
    capsys.readouterr()
    monkeypatch.setattr("scboost.cli.evaluate.score", lambda *_: {"rows": 3, "r2": float("nan"), "rmse": float("inf")})
    assert main(["evaluate", "model.json", "test.csv", "--json"]) == 0

    def refuse(text):
        raise AssertionError(text)

    assert json.loads(capsys.readouterr().out, parse_constant=refuse) == {"rows": 3, "r2": None, "rmse": None}


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_string_view_columns_are_categorical(folder, capsys, ending):
    def views(name):
        table = csv.read_csv(f"{name}.csv")
        for j, column in enumerate(table.columns):
            if pa.types.is_string(column.type):
                table = table.set_column(j, table.schema.names[j], column.cast(pa.string_view()))
        {"parquet": parquet.write_table, "feather": feather.write_feather}[ending](table, f"{name}.{ending}")

    views("train")
    views("test")
    assert train("--ignore", "amount", out="texts.json") == 0
    capsys.readouterr()
    assert train("--ignore", "amount", data=f"train.{ending}") == 0
    assert "colour  categorical, 3 categories" in capsys.readouterr().out
    assert main(["evaluate", "model.json", f"test.{ending}", "--json"]) == 0
    views = json.loads(capsys.readouterr().out)
    assert main(["evaluate", "texts.json", "test.csv", "--json"]) == 0
    assert views == json.loads(capsys.readouterr().out)


def test_the_closest_column_is_suggested(folder, capsys):
    command = ["train", "train.csv", "-o", "m.json", "--target"]
    assert "Did you mean 'label'?" in failed(capsys, *command, "lable")
    assert "Did you mean 'label'?" in failed(capsys, *command, "Label")
    assert "Did you mean" not in failed(capsys, *command, "zzz")


def test_swapped_arguments_are_noticed(folder, capsys):
    train("--ignore", "amount")
    assert "the two seem to be swapped" in failed(capsys, "evaluate", "test.csv", "model.json")


def test_unseen_categories_are_reported_with_their_share(folder, capsys):
    train("--ignore", "amount")
    test = pd.read_csv("test.csv")
    test.loc[:9, "colour"] = "violet"
    test.to_csv("test.csv", index=False)
    expected = "column 'colour': 10 of 200 rows (5.00%) have categories that were not seen in training"
    for command in (["predict", "model.json", "test.csv", "-o", "out.csv"], ["evaluate", "model.json", "test.csv"]):
        assert main(command) == 0
        shown = capsys.readouterr().err
        assert expected in shown
        assert "'violet'" in shown


def test_separator_decimal_point_and_encoding_can_be_given(folder, capsys):
    data = frame().assign(colour=lambda d: d["colour"].replace("green", "gr\u00fcn"))
    data.to_csv("german.csv", index=False, sep=";", decimal=",", encoding="latin1")
    data.to_csv("plain.csv", index=False)
    for separator in ([], ["--sep", ";"]):
        command = ["train", "german.csv", "--target", "label", "-o", "m.json", *separator]
        assert "use --encoding if the file has another encoding" in failed(capsys, *command)
    data.rename(columns={"colour": "f\u00e4rg"}).to_csv("header.csv", index=False, sep=";", encoding="latin1")
    command = ["train", "header.csv", "--target", "label", "-o", "m.json"]
    assert "header.csv: the text is not utf8; use --encoding" in failed(capsys, *command)
    options = ["--decimal", ",", "--encoding", "latin1"]
    assert train("--ignore", "label", *options, data="german.csv", target="amount", out="german.json") == 0
    assert "300 rows, fields separated by ';'; regression" in capsys.readouterr().out
    assert train("--ignore", "label", data="plain.csv", target="amount") == 0
    german, plain = load_model("german.json"), load_model("model.json")
    columns = ["age", "colour", "code"]
    np.testing.assert_allclose(german.predict(data[columns]), plain.predict(data[columns]), rtol=1e-12)
    assert "must be one ASCII character" in failed(capsys, "evaluate", "model.json", "plain.csv", "--sep", "ab")
    parquet.write_table(csv.read_csv("plain.csv"), "plain.parquet")
    assert "apply to text files" in failed(capsys, "evaluate", "model.json", "plain.parquet", "--sep", ";")


def test_a_wrong_separator_is_named(folder, capsys):
    frame().to_csv("plain.csv", index=False)
    command = ["train", "plain.csv", "--target", "label", "-o", "m.json", "--sep", ";"]
    assert "The fields seem to be separated by ',': use --sep ','" in failed(capsys, *command)


def test_values_that_are_no_numbers_name_the_option_that_helps(folder, capsys):
    data = frame()
    data.to_csv("comma.csv", index=False, sep=";", decimal=",")
    assert train("--ignore", "label", data="comma.csv", target="code") == 0
    assert "column 'amount' has values such as" in (shown := capsys.readouterr().err)
    assert "use --decimal ," in shown
    numeric = ["--ignore", "label", "--numeric", "amount"]
    command = ["train", "comma.csv", "--target", "code", "-o", "m.json", *numeric]
    assert "use --decimal , if the comma is the decimal point" in failed(capsys, *command)
    data.assign(amount=data["amount"].astype(str).where(data.index != 7, "unknown")).to_csv("odd.csv", index=False)
    assert "row 9, column 'amount'" in (shown := failed(capsys, command[0], "odd.csv", *command[2:]))
    assert "use --missing 'unknown' to read it as a missing value" in shown


def test_an_unknown_command_names_the_closest_and_no_command_shows_help(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["trian", "data.csv"])
    assert "there is no command 'trian'; did you mean 'train'?" in capsys.readouterr().err
    assert main([]) == 2
    assert "train a model on a table" in capsys.readouterr().out


def test_training_ends_with_settings_and_scores_against_a_constant_prediction(folder, capsys):
    assert train("--ignore", "amount", "--valid", "test.csv", "--threads", "1") == 0
    shown = capsys.readouterr().out
    assert re.search(r"settings: \d+ rounds, learning rate [\d.]+", shown)
    found = re.search(r"validation set: log_loss ([\d.]+) \(constant prediction: ([\d.]+)\)", shown)
    y, test = pd.read_csv("train.csv")["label"], pd.read_csv("test.csv")
    share = (y == "yes").mean()
    assert float(found[2]) == pytest.approx(log_loss(test["label"], np.tile([1 - share, share], (200, 1))), rel=1e-3)
    p = load_model("model.json").predict_proba(test[["age", "colour", "code"]])
    assert float(found[1]) == pytest.approx(log_loss(test["label"], p), rel=1e-3)


@pytest.mark.parametrize("target", ["label", "amount"])
def test_the_cross_validated_loss_is_shown_beside_that_of_a_constant(folder, capsys, target):
    other = {"label": "amount", "amount": "label"}[target]
    command = ["train", "train.csv", "--target", target, "-o", "m.json", "--ignore", other, "--quiet"]
    assert main([*command, "--param", "random_state=0", "--param", "preset=default", "--threads", "1"]) == 0
    found = re.search(r"cross-validation: .* ([\d.]+) \(constant prediction: ([\d.]+)\)", capsys.readouterr().out)
    y = pd.read_csv("train.csv")[target]
    share = (y == "yes").mean()
    constant = log_loss(y, np.tile([1 - share, share], (300, 1))) if target == "label" else y.var(ddof=0) / 2
    assert float(found[2]) == pytest.approx(constant, rel=1e-3)
    assert float(found[1]) < float(found[2])


def test_exported_code_is_that_of_python(folder, capsys):
    train("--ignore", "amount")
    model = load_model("model.json")
    exported = [("c", "m.h", export_c(model)), ("js", "m.mjs", export_js(model))]
    query = export_sql(model, table="people", dialect="sqlite", keep=["id"])
    exported.append(("sql", "m.sql", query))
    for to, name, text in exported:
        more = ["--table", "people", "--dialect", "sqlite", "--keep", "id"] if to == "sql" else []
        assert main(["export", "model.json", "--to", to, "-o", name, *more]) == 0
        assert (folder / name).read_text() == text
    assert "--table belongs to --to sql, not to --to c" in failed(
        capsys, "export", "model.json", "--to", "c", "-o", "m.h", "--table", "t"
    )
    assert "must end in .mjs or .js" in failed(capsys, "export", "model.json", "--to", "js", "-o", "m.h")


@pytest.mark.parametrize(("to", "name"), [("onnx", "m.onnx"), ("treelite", "m.tl")])
def test_exported_models_are_readable(folder, to, name):
    library = pytest.importorskip(to)
    train("--ignore", "amount")
    assert main(["export", "model.json", "--to", to, "-o", name]) == 0
    if to == "onnx":
        library.checker.check_model(library.load(name))
    else:
        assert library.Model.deserialize(name).num_tree == 8


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_examples_that_parse(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    shown = capsys.readouterr().out
    examples = re.findall(r"^  scboost (.*?)(?: &&.*)?$", shown, re.MULTILINE)
    assert examples
    for example in examples:
        assert make_parser().parse_args(shlex.split(example)).command == command


def test_suspicious_columns_are_warned_about(folder, capsys):
    data = frame()
    data["row"] = np.arange(300)
    data["key"] = [f"customer {i}" for i in range(300)]
    data["same"] = 1
    data["income"] = [str(1000 + i) for i in range(299)] + ["unknown"]
    data.to_csv("odd.csv", index=False)
    assert train("--ignore", "amount", data="odd.csv") == 0
    warnings = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert [re.search(r"column '(\w+)'", line)[1] for line in warnings] == ["row", "key", "same", "income"]
    assert "99.7% numeric, but has 'unknown' in 1 row" in warnings[3]
    assert train("--ignore", "amount", "--missing", "unknown", data="odd.csv") == 0
    shown = capsys.readouterr()
    assert "income  numeric, 1 missing" in shown.out
    assert "income" not in shown.err
    assert main(["predict", "model.json", "odd.csv", "-o", "out.csv", "--missing", "unknown"]) == 0


def test_ordinary_columns_are_not_warned_about(folder, capsys):
    assert train() == 0
    assert "warning" not in capsys.readouterr().err


def test_the_report_is_written_in_all_formats_and_compares_with_the_training_table(folder, capsys):
    assert train() == 0
    for name in ("r.html", "r.json", "r.md"):
        assert main(["report", "model.json", "test.csv", "--train", "train.csv", "-o", name]) == 0
    found = json.loads((folder / "r.json").read_text())
    assert found["training_scores"][0]["name"] == "log-loss"
    assert all(feature["drift"] is not None for feature in found["data"]["features"])
    capsys.readouterr()
    assert main(["report", "model.json", "test.csv", "-o", "r.pdf"]) == 1
    assert "must end in .html or .htm or .json or .md" in capsys.readouterr().err
