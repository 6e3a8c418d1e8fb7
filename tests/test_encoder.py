"""Encoding of X: names in every table library, sparse duplicates, refused types, and merging of partitions."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from scboost import SCBoostClassifier, SCBoostRegressor
from scboost._data.encoder import Encoder

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")

FAST = {"n_estimators": 8, "learning_rate": 0.3, "n_jobs": 1, "random_state": 0}


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.choice(["u", "v", "w"], size=n)})
    return frame, frame["a"].to_numpy() + 2 * (frame["c"] == "u").to_numpy()


class Stream:
    """A table of a library that nothing is known about, but that it exports the Arrow C stream."""

    def __init__(self, arrow):
        self._arrow = arrow

    def __arrow_c_stream__(self, requested_schema=None):
        return self._arrow.__arrow_c_stream__(requested_schema)


ARROW = {
    "record batch": lambda arrow: arrow.combine_chunks().to_batches()[0],
    "reader": lambda arrow: arrow.to_reader(),
    "stream": Stream,
}


@pytest.mark.parametrize("make", ARROW.values(), ids=ARROW)
def test_arrow_data_keep_names_and_categories(make):
    frame, y = table()
    arrow = pa.Table.from_pandas(frame)
    model = SCBoostRegressor(**FAST).fit(make(arrow), y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    expected = SCBoostRegressor(**FAST).fit(frame, y).predict(frame)
    np.testing.assert_array_equal(model.predict(make(arrow)), expected)
    weight = np.arange(len(y)) % 3
    weighted = SCBoostRegressor(**FAST).fit(make(arrow), y, weight, X_val=make(arrow), y_val=y)
    again = SCBoostRegressor(**FAST).fit(frame, y, weight)
    np.testing.assert_array_equal(weighted.predict(frame), again.predict(frame))
    with pytest.raises(ValueError, match="same order"):
        model.predict(make(arrow.select(["b", "a", "c"])))


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_reordered_columns_are_refused_with_the_first_difference(convert):
    frame, y = table()
    model = SCBoostRegressor(**FAST).fit(convert(frame), y)
    with pytest.raises(ValueError, match=r"(?s)same order.*Column 1 is 'c' but was 'b'; reorder.*feature_names_in_"):
        model.predict(convert(frame[["a", "c", "b"]]))


def test_unsummed_duplicates_of_a_sparse_matrix_are_summed_in_a_copy():
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((300, 6)) < 0.4, rng.normal(size=(300, 6)), 0)
    whole = sparse.csr_matrix(dense)
    halves = sparse.csr_matrix(
        (np.repeat(whole.data / 2, 2), np.repeat(whole.indices, 2), 2 * whole.indptr), shape=whole.shape
    )
    assert not halves.has_canonical_format
    y = dense.sum(axis=1) > 0
    expected = SCBoostClassifier(**FAST).fit(whole, y).predict_proba(whole)
    nnz = halves.nnz
    np.testing.assert_allclose(SCBoostClassifier(**FAST).fit(halves, y).predict_proba(halves), expected, rtol=1e-6)
    model = SCBoostClassifier(**FAST).fit(dense, y)
    np.testing.assert_allclose(model.predict_proba(halves), model.predict_proba(dense), rtol=1e-6)
    assert halves.nnz == nnz


X = np.arange(60.0).reshape(20, 3)
REFUSED = {
    "durations": (X.astype("timedelta64[s]"), TypeError, r"dtype timedelta64\[s\].*Convert them to numbers"),
    "masked": (np.ma.masked_greater(X, 50), TypeError, r"masked array.*X\.filled\(np\.nan\)"),
    "strings": (X.astype(str), ValueError, r"dtype <U32.*column 0 holds numbers.*'0\.0'.*Pass a table"),
    "bytes": (X.astype("S"), ValueError, r"dtype \|S.*astype\(str\)"),
    "objects": (np.where(X > 50, "many", X.astype(object)), TypeError, r"Column 0 has the value 'many' of type str"),
    "dicts": (np.where(X > 50, "many", {}), TypeError, r"Column 0 has the value \{\} of type dict"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_arrays_that_are_not_numeric_are_refused(name):
    bad, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        SCBoostRegressor(**FAST).fit(bad, X[:, 0])
    model = SCBoostRegressor(**FAST).fit(X, X[:, 0])
    with pytest.raises(kind, match=message):
        model.predict(bad)


def test_numbers_in_object_arrays_are_numbers():
    expected = SCBoostRegressor(**FAST).fit(X, X[:, 0]).predict(X)
    np.testing.assert_array_equal(SCBoostRegressor(**FAST).fit(X.astype(object), X[:, 0]).predict(X), expected)


VALUES = st.lists(
    st.tuples(st.one_of(st.none(), st.sampled_from("abcde")), st.floats(-5, 5), st.sampled_from([1, 2, 30])),
    min_size=2,
    max_size=20,
)


@settings(max_examples=40, deadline=None)
@given(VALUES, st.data())
def test_merged_partitions_encode_like_the_whole(values, data):
    names, numbers, codes = zip(*values, strict=True)
    frame = pd.DataFrame(
        {"s": pd.Series(names, dtype="string"), "x": numbers, "c": pd.Categorical(codes, categories=[30, 1, 2])}
    )
    cut = data.draw(st.integers(0, len(frame)))
    whole = Encoder.learn(frame)
    merged = Encoder.merge([Encoder.learn(frame[:cut]), Encoder.learn(frame[cut:])])
    assert merged == whole
    np.testing.assert_array_equal(merged.encode(frame), whole.encode(frame))


def test_partitions_that_differ_are_refused():
    frame, _ = table()
    whole = Encoder.learn(frame)
    with pytest.raises(ValueError, match=r"partitions of X differ.*\['a', 'b', 'c'\].*\['a', 'c'\]"):
        Encoder.merge([whole, Encoder.learn(frame[["a", "c"]])])
    with pytest.raises(ValueError, match="Column 'c' is numeric in some partitions"):
        Encoder.merge([whole, Encoder.learn(frame.assign(c=1.0))])


def test_an_encoder_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Encoder.learn(X).n_features = 4
