"""Objects of other tools as input and output: Arrow streams, arrays of strings, forked processes."""

import os
import signal
import time

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import scboost
from scboost import SCBoostClassifier, SCBoostRegressor

FEW = {"n_estimators": 8, "n_jobs": 1}


def mixed(n=300):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=n), "n": rng.integers(0, 9, n), "c": rng.choice(["x", "y", "z"], n)})
    return frame, (frame.a + (frame.c == "x") + 0.1 * rng.normal(size=n) > 0).astype(int).to_numpy()


class Stream:
    """Any object that exports the Arrow C stream; it is read at most once, as a reader is."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        table, self._table = self._table, None
        return table.__arrow_c_stream__(requested_schema)


STREAMS = {
    "object": lambda frame: Stream(pa.Table.from_pandas(frame)),
    "RecordBatchReader": lambda frame: pa.Table.from_pandas(frame).to_reader(max_chunksize=100),
    "RecordBatch": lambda frame: pa.RecordBatch.from_pandas(frame),
    "DuckDB relation": lambda frame: duckdb.connect().from_df(frame).select("a, n, c"),
}


@pytest.mark.parametrize("name", STREAMS)
def test_arrow_streams_give_the_model_of_the_frame(name):
    frame, y = mixed()
    make = STREAMS[name]
    expected = SCBoostClassifier(**FEW).fit(frame, y).predict_proba(frame)
    fitted = SCBoostClassifier(**FEW).fit(make(frame), y, X_val=make(frame), y_val=y)
    np.testing.assert_array_equal(fitted.predict_proba(make(frame)), expected)
    assert list(fitted.feature_names_in_) == ["a", "n", "c"]


def test_a_reader_is_read_once_even_if_the_fit_needs_it_twice():
    frame, y = mixed()
    weight = np.r_[0, np.ones(len(y) - 1)]
    reader = pa.Table.from_pandas(frame).to_reader()
    model = SCBoostClassifier(**FEW, max_trees=3).fit(reader, y, sample_weight=weight)
    expected = SCBoostClassifier(**FEW, max_trees=3).fit(frame, y, sample_weight=weight)
    np.testing.assert_array_equal(model.predict_proba(frame), expected.predict_proba(frame))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_a_relation_of_one_column_is_a_target():
    frame, y = mixed()
    relation = duckdb.connect().from_df(pd.DataFrame({"y": y}))
    expected = SCBoostRegressor(**FEW).fit(frame, y).predict(frame)
    np.testing.assert_array_equal(SCBoostRegressor(**FEW).fit(frame, relation).predict(frame), expected)


@pytest.mark.parametrize("convert", [lambda f: f.to_numpy(), lambda f: f.to_numpy().tolist()], ids=["array", "list"])
def test_objects_with_strings_are_columns_without_names(convert):
    frame, y = mixed()
    frame.loc[3, "c"] = None
    expected = SCBoostClassifier(**FEW).fit(frame, y).predict_proba(frame)
    model = SCBoostClassifier(**FEW).fit(convert(frame), y)
    np.testing.assert_array_equal(model.predict_proba(convert(frame)), expected)
    assert not hasattr(model, "feature_names_in_")
    rows = frame.iloc[3:4]  # without any string
    np.testing.assert_array_equal(model.predict_proba(convert(rows)), expected[3:4])
    with pytest.raises(TypeError, match="without strings"):
        model.predict(np.zeros((2, 3)))


@pytest.mark.parametrize("dtype", [str, np.dtypes.StringDType()], ids=str)
def test_arrays_of_strings_are_categories(dtype):
    rng = np.random.default_rng(0)
    X = rng.choice(["red", "green", "blue"], size=(200, 2)).astype(dtype)
    y = (X[:, 0] == "red").astype(int)
    model = SCBoostClassifier(**FEW).fit(X, y)
    assert model.score(X, y) == 1
    expected = SCBoostClassifier(**FEW).fit(pd.DataFrame(X.astype(object)), y).predict_proba(X.astype(object))
    np.testing.assert_array_equal(model.predict_proba(X), expected)


def test_a_model_of_strings_survives_its_file(tmp_path):
    frame, y = mixed()
    X = frame.to_numpy()
    model = SCBoostClassifier(**FEW).fit(X, y)
    model.save_model(tmp_path / "model.ubj")
    np.testing.assert_array_equal(
        scboost.load_model(tmp_path / "model.ubj").predict_proba(X), model.predict_proba(X)
    )


def test_several_targets_are_refused_with_the_way_out():
    X = np.zeros((20, 2))
    with pytest.raises(ValueError, match=r"1d array, got an array of shape \(20, 2\).*MultiOutputRegressor"):
        SCBoostRegressor().fit(X, X)
