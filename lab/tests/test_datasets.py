"""The loader against a stand-in for OpenML's answers and against files that are not what they should be."""

import gzip
import hashlib
import io
import json
import os
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification

from scboost_lab import cli, datasets
from scboost_lab.datasets import DataError, DatasetInfo, content_checksum, load, matrix, oversample, undersample
from scboost_lab.results import read_runs

ROWS, POSITIVE = 40, 10


def toy_frame() -> pd.DataFrame:
    x = np.arange(float(ROWS))
    return pd.DataFrame({"a": x, "b": x % 2, "target": (x >= ROWS - POSITIVE).astype(np.int8)})


def entry(**changes) -> DatasetInfo:
    frame = toy_frame()
    X, y = frame[["a", "b"]].to_numpy(), frame["target"].to_numpy().astype(np.int64)
    fields = {
        "name": "Toy",
        "openml_id": 7,
        "openml_version": 1,
        "openml_target": "Class",
        "openml_positive": "P",
        "n_rows": ROWS,
        "n_columns": 2,
        "n_positive": POSITIVE,
        "file": "toy",
        "checksum": content_checksum(["a", "b"], X, y),
    }
    return DatasetInfo(**{**fields, **changes})


@pytest.fixture
def toy(monkeypatch, tmp_path):
    monkeypatch.delenv(datasets.DATA_DIR_VARIABLE, raising=False)
    monkeypatch.setitem(datasets.REGISTRY, "Toy", entry())
    toy_frame().to_parquet(tmp_path / "toy.parquet")
    return tmp_path


class Answer(io.BytesIO):
    def info(self):
        return {"Content-Encoding": "gzip"}


@pytest.fixture
def openml(monkeypatch, tmp_path):
    """Answer scikit-learn's requests as OpenML does, from memory; returns the counter of requests."""
    monkeypatch.delenv(datasets.DATA_DIR_VARIABLE, raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    monkeypatch.setitem(datasets.REGISTRY, "Toy", entry())
    frame = toy_frame()
    lines = [f"{a},{int(b)},{'P' if t else 'N'}" for a, b, t in frame.itertuples(index=False)]
    header = [
        "@relation toy",
        "@attribute a numeric",
        "@attribute b {0,1}",
        "@attribute Class {N,P}",
        "@data",
    ]
    arff = "\n".join([*header, *lines, ""]).encode()
    url = "https://www.openml.org/data/v1/download/99/toy.arff"
    features = [
        {
            "index": str(i),
            "name": n,
            "data_type": t,
            "is_target": str(n == "Class").lower(),
            "is_ignore": "false",
        }
        | {"is_row_identifier": "false", "number_of_missing_values": "0"}
        for i, (n, t) in enumerate([("a", "numeric"), ("b", "nominal"), ("Class", "nominal")])
    ]
    description = {
        "id": "7",
        "name": "toy",
        "version": "1",
        "format": "ARFF",
        "status": "active",
        "url": url,
        "file_id": "99",
        "default_target_attribute": "Class",
        "md5_checksum": hashlib.md5(arff, usedforsecurity=False).hexdigest(),
        "description": "",
    }
    quality = [{"name": "NumberOfInstances", "value": str(ROWS)}, {"name": "NumberOfFeatures", "value": "3"}]
    answers = {
        "json/data/7": json.dumps({"data_set_description": description}).encode(),
        "json/data/features/7": json.dumps({"data_features": {"feature": features}}).encode(),
        "json/data/qualities/7": json.dumps({"data_qualities": {"quality": quality}}).encode(),
        "download/99": arff,
    }
    requests = []

    def urlopen(request, *args, **kwargs):
        requests.append(request.full_url)
        for part, body in answers.items():
            if part in request.full_url and (part.startswith("json") is ("/json/" in request.full_url)):
                return Answer(gzip.compress(body))
        raise URLError(f"no such page: {request.full_url}")

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", urlopen)
    return requests


def test_the_registry_has_the_papers_ten_sets():
    assert len(datasets.REGISTRY) == 10
    assert {i.name for i in datasets.REGISTRY.values() if i.undersampled} == {"Creditcard", "OVA_Uterus"}
    assert all((i.file is None) == (i.checksum is None) for i in datasets.REGISTRY.values())


def test_a_parquet_file_is_read_and_checked(toy):
    dataset = load("toy", toy)
    assert dataset.source == "parquet:toy"
    assert dataset.X.shape == (ROWS, 2)
    assert dataset.y.sum() == POSITIVE


def test_the_environment_variable_names_the_directory(toy, monkeypatch):
    monkeypatch.setenv(datasets.DATA_DIR_VARIABLE, str(toy))
    assert load("Toy").source == "parquet:toy"


def test_the_positive_class_follows_the_registry(toy, monkeypatch):
    frame = toy_frame()
    y = (frame["target"] == 0).to_numpy().astype(np.int64)
    checksum = content_checksum(["a", "b"], frame[["a", "b"]].to_numpy(), y)
    monkeypatch.setitem(datasets.REGISTRY, "Toy", entry(file_positive=0, n_positive=ROWS - POSITIVE, checksum=checksum))
    assert load("Toy", toy).y.tolist() == y.tolist()


def test_openml_answers_are_read_and_cached(openml):
    first = load("Toy")
    n_requests = len(openml)
    second = load("Toy")
    assert first.source == "openml:7"
    assert first.X.tolist() == toy_frame()[["a", "b"]].to_numpy().tolist()
    assert first.y.tolist() == toy_frame()["target"].tolist()
    assert first.checksum == second.checksum == entry().checksum
    assert n_requests > 0
    assert len(openml) == n_requests


def test_the_reproduction_needs_no_data_but_openmls(openml, monkeypatch, tmp_path):
    monkeypatch.setitem(datasets.REGISTRY, "QSAR", entry(name="QSAR"))
    words = ["reproduce", "table1", "page", "--datasets", "QSAR", "--methods", "RF", "SCBoost", "--folds", "1"]
    assert cli.main([*words, "--out", str(tmp_path / "out")]) == 0
    (record,) = read_runs(tmp_path / "out" / "table1.csv")
    assert record["data"]["QSAR"] == f"openml:7 sha256:{entry().checksum} {ROWS} x 2"
    assert record["ran"] == {"RF": {"QSAR": 1}, "SCBoost": {"QSAR": 1}}
    assert "**QSAR**" in (tmp_path / "out" / "reproduction.md").read_text()


def test_the_content_of_a_download_is_checked_where_it_is_known(openml, monkeypatch):
    monkeypatch.setitem(datasets.REGISTRY, "Toy", entry(openml_checksum=entry().checksum))
    assert load("Toy").source == "openml:7"
    monkeypatch.setitem(datasets.REGISTRY, "Toy", entry(openml_checksum="0" * 16))
    with pytest.raises(DataError, match=f"openml:7 has checksum {entry().checksum}, the registry says 0000"):
        load("Toy")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"openml_target": "Urban"}, "no column 'Urban'"),
        ({"n_rows": ROWS + 1}, f"{ROWS} rows and 2 features, expected {ROWS + 1} and 2"),
        ({"n_columns": 5}, f"expected {ROWS} and 5"),
        ({"openml_positive": "N"}, f"{ROWS - POSITIVE} positives, expected {POSITIVE}"),
        ({"openml_id": 8}, "could not be fetched"),
    ],
)
def test_an_openml_answer_that_does_not_fit_is_refused(openml, monkeypatch, changes, message):
    monkeypatch.setattr("sklearn.datasets._openml.time.sleep", lambda _: None)
    monkeypatch.setitem(datasets.REGISTRY, "Toy", entry(**changes))
    with pytest.raises(DataError, match=message):
        load("Toy")


def test_string_columns_are_rejected(toy):
    frame = toy_frame()
    frame["b"] = "word"
    frame.to_parquet(toy / "toy.parquet")
    with pytest.raises(DataError, match="column 'b' is not numeric"):
        load("Toy", toy)


def test_a_changed_value_changes_the_checksum(toy):
    frame = toy_frame()
    frame.loc[3, "a"] += 1e-9
    frame.to_parquet(toy / "toy.parquet")
    with pytest.raises(DataError, match=f"the registry says {entry().checksum}"):
        load("Toy", toy)


def test_a_file_without_target_is_refused(toy):
    toy_frame().drop(columns="target").to_parquet(toy / "toy.parquet")
    with pytest.raises(DataError, match="no column 'target'"):
        load("Toy", toy)


def test_a_file_with_a_missing_feature_is_refused(toy):
    toy_frame().drop(columns="a").to_parquet(toy / "toy.parquet")
    with pytest.raises(DataError, match=f"{ROWS} rows and 1 features, expected {ROWS} and 2"):
        load("Toy", toy)


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.98])
def test_a_truncated_file_is_refused(toy, keep):
    path = toy / "toy.parquet"
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data))])
    with pytest.raises(DataError, match=r"toy\.parquet cannot be read, it may be truncated"):
        load("Toy", toy)


def test_missing_files_are_reported(toy, monkeypatch):
    with pytest.raises(DataError, match=r"no madelon\.parquet"):
        load("Madelon", toy)
    with pytest.raises(DataError, match="from OpenML only"):
        load("OVA_Uterus", toy)
    with pytest.raises(DataError, match=r"unknown dataset 'nope'; known: Madelon, Jasmine"):
        load("nope", toy)
    with pytest.raises(DataError, match=r"--data-dir is .*is not a directory"):
        load("Toy", toy / "toy.parquet")
    monkeypatch.setenv(datasets.DATA_DIR_VARIABLE, str(toy / "absent"))
    with pytest.raises(DataError, match=r"SCBOOST_DATA_DIR is .*is not a directory"):
        load("Toy")


def test_unreadable_directories_are_reported(toy, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root reads everything, so chmod would not do
    with pytest.raises(DataError, match="cannot be read"):
        load("Toy", toy)


def test_undersampling_keeps_the_minority_and_as_many_others():
    y = np.array([0] * 90 + [1] * 10)
    rows = undersample(y, 42)
    assert rows.tolist() == undersample(y, 42).tolist()
    assert rows.tolist() != undersample(y, 43).tolist()
    assert len(set(rows)) == 20
    assert set(range(90, 100)) <= set(rows)
    drawn = undersample(y, 42, replace=True)
    assert np.bincount(y[drawn]).tolist() == [10, 10]
    assert len({row for row in drawn if row >= 90}) < 10


def test_oversampling_keeps_every_sample_and_repeats_the_minority():
    y = np.array([1] * 90 + [0] * 10)
    rows = oversample(y, 42)
    assert rows[:100].tolist() == list(range(100))
    assert np.bincount(y[rows]).tolist() == [90, 90]
    assert min(rows[100:]) >= 90


def run(*words):
    return cli.main(["datasets", *words])


def test_the_command_lists_checks_and_reports(toy, capsys):
    assert run() == 0
    assert "41143" in capsys.readouterr().out
    assert run("Toy", "--check", "--data-dir", str(toy)) == 0
    assert f"ok: parquet:toy, {ROWS} x 2" in capsys.readouterr().out
    assert run("Toy", "QSAR", "--check", "--data-dir", str(toy)) == 1
    assert "NOT AVAILABLE: QSAR: there is no qsar_biodeg.parquet" in capsys.readouterr().out
    assert run("nope") == 2
    assert "unknown dataset 'nope'" in capsys.readouterr().err


def test_categories_become_numbers_and_missing_values_stay(tmp_path):
    X, y = make_classification(n_samples=120, n_features=4, random_state=1)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.loc[::7, "a"] = np.nan
    frame["e"] = pd.Categorical(np.where(X[:, 1] > 0, "yes", "no"))
    frame.assign(target=y).to_parquet(tmp_path / "tiny.parquet")
    X, y = matrix("tiny", str(tmp_path), 1000, 1000)
    assert X.shape == (120, 5)
    assert np.isnan(X[::7, 0]).all()
    assert set(X[:, 4]) == {0.0, 1.0}
    capped, y_capped = matrix("tiny", str(tmp_path), 60, 3)
    assert capped.shape == (60, 3)
    assert abs(y_capped.mean() - y.mean()) < 0.02
