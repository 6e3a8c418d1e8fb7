"""Columns of real tables: kinds, categories, missing values, sparse data, and table libraries."""

import datetime as dt
import decimal

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from data_makers import FAST
from scboost._data.encoder import Encoder
from scboost._data.tables import as_table
from scboost._estimators import SCBoostClassifier, SCBoostRegressor
from scboost._xgboost import version

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


def mixed_table(n=400, seed=0):
    """Two real columns, an integer, a boolean and two categorical ones, with some missing values."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    colour = rng.choice(["red", "green", "blue", "black", "white", "pink"], size=n)
    shape = rng.choice(["round", "square"], size=n)
    columns = {
        "x": np.where(rng.random(n) < 0.1, np.nan, x),
        "y": rng.normal(size=n),
        "count": rng.integers(0, 9, size=n),
        "flag": rng.random(n) < 0.5,
        "colour": np.where(rng.random(n) < 0.1, None, colour),
        "shape": shape,
    }
    signal = x + 1.5 * np.isin(colour, ["red", "black"]) - (shape == "round") * columns["flag"]
    return columns, (signal + 0.3 * rng.normal(size=n) > 0.5).astype(int)


def in_pandas(columns):
    frame = pd.DataFrame(columns)
    return frame.astype({"colour": "category", "shape": "category"})


def as_polars(columns):
    kinds = {"colour": pl.Categorical, "shape": pl.Enum(["square", "round"])}
    series = {k: np.where(np.isnan(v), None, v).tolist() if k == "x" else v.tolist() for k, v in columns.items()}
    return pl.DataFrame(series).with_columns(pl.col(k).cast(kind) for k, kind in kinds.items())


def as_arrow(columns):
    arrays = {k: pa.array(v.tolist(), from_pandas=True) for k, v in columns.items()}
    arrays["colour"] = arrays["colour"].dictionary_encode()
    return pa.table(arrays)


CONTAINERS = {
    "pandas categories": in_pandas,
    "pandas objects": pd.DataFrame,
    "pandas strings": lambda c: pd.DataFrame(c).astype({"colour": "string", "shape": "string"}),
    "pandas nullable": lambda c: pd.DataFrame(c).convert_dtypes(),
    "pandas on arrow": lambda c: pd.DataFrame(c).convert_dtypes(dtype_backend="pyarrow"),
    "pandas dictionaries on arrow": lambda c: as_arrow(c).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": as_polars,
    "polars strings": lambda c: as_polars(c).with_columns(pl.col("colour", "shape").cast(pl.String)),
    "arrow": as_arrow,
    "arrow in pieces": lambda c: pa.concat_tables([as_arrow(c).slice(0, 150), as_arrow(c).slice(150)]),
}


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS)
def test_every_container_gives_the_same_model(make):
    columns, y = mixed_table()
    reference = SCBoostClassifier(**FAST).fit(in_pandas(columns), y)
    table = make(columns)
    model = SCBoostClassifier(**FAST).fit(table, y)
    assert model.get_booster().save_raw() == reference.get_booster().save_raw()
    assert model.feature_names_in_.tolist() == list(columns)
    np.testing.assert_array_equal(reference.predict_proba(table), model.predict_proba(in_pandas(columns)))


def test_numeric_tables_and_arrays_give_the_same_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X).sum(axis=1)
    names = ["a", "b", "c"]
    frame = pd.DataFrame(X, columns=names)
    tables = [frame, pl.DataFrame(frame), pa.table(frame)]
    reference = SCBoostRegressor(**FAST).fit(X, y).predict(X)
    for table in tables:
        np.testing.assert_array_equal(SCBoostRegressor(**FAST).fit(table, y).predict(table), reference)
    for other in (X.astype(np.float64), np.asfortranarray(X)):
        np.testing.assert_array_equal(SCBoostRegressor(**FAST).fit(other, y).predict(other), reference)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.text(st.characters(codec="utf-8"), max_size=3)), min_size=1, max_size=12),
    st.data(),
)
def test_table_libraries_agree_on_any_text(values, data):
    later = data.draw(st.lists(st.sampled_from([*values, None, "never seen in fit"]), min_size=1, max_size=12))
    makers = (
        lambda v: pd.DataFrame({"a": pd.Series(v, dtype="string")}),
        lambda v: pl.DataFrame({"a": pl.Series(v, dtype=pl.String)}),
        lambda v: pa.table({"a": pa.array(v, pa.string())}),
    )
    codes = [Encoder.learn(make(values)).encode(make(later)) for make in makers]
    np.testing.assert_array_equal(codes[0], codes[1])
    np.testing.assert_array_equal(codes[0], codes[2])
    known = sorted({v for v in values if v is not None})
    expected = [known.index(v) if v in known else np.nan for v in later]
    np.testing.assert_array_equal(codes[0][:, 0], np.array(expected, dtype=np.float32))


@pytest.mark.parametrize("make", [in_pandas, as_polars, as_arrow])
def test_an_unseen_category_counts_as_missing(make):
    columns, y = mixed_table()
    model = SCBoostClassifier(**FAST).fit(make(columns), y)
    new, gone = (dict(columns, colour=np.full(len(y), value, dtype=object)) for value in ("violet", None))
    np.testing.assert_array_equal(model.predict_proba(make(new)), model.predict_proba(make(gone)))
    assert np.isfinite(model.predict_proba(make(new))).all()


def test_unordered_categories_have_no_order_and_unused_ones_no_influence():
    columns, y = mixed_table()
    a = pd.DataFrame(columns).astype({"shape": pd.CategoricalDtype(["square", "round", "oval"])})
    b = pd.DataFrame(columns).astype({"shape": pd.CategoricalDtype(["round", "square"])})
    one, two = SCBoostClassifier(**FAST).fit(a, y), SCBoostClassifier(**FAST).fit(b, y)
    assert one.get_booster().save_raw() == two.get_booster().save_raw()


def test_integer_categories_survive_a_missing_value():
    y = np.tile([0, 1, 1], 40)
    fitted = SCBoostClassifier(**FAST).fit(pd.DataFrame({"a": pd.Categorical(np.tile([1, 2, 3], 40))}), y)
    floats = pd.DataFrame({"a": pd.Categorical([1.0, 2.0, 3.0, np.nan])})  # what pandas makes of [1, 2, 3, None]
    whole = pd.DataFrame({"a": pd.Categorical([1, 2, 3])})
    np.testing.assert_array_equal(fitted.predict_proba(floats)[:3], fitted.predict_proba(whole))


def test_numbers_in_object_columns_are_numbers():
    x = np.arange(100.0)
    y = (x > 30).astype(int)
    reference = SCBoostClassifier(**FAST).fit(pd.DataFrame({"a": x}), y).predict_proba(pd.DataFrame({"a": x}))
    for values in (list(map(int, x)), [decimal.Decimal(int(v)) for v in x]):
        frame = pd.DataFrame({"a": pd.Series(values, dtype=object)})
        np.testing.assert_array_equal(SCBoostClassifier(**FAST).fit(frame, y).predict_proba(frame), reference)


def test_empty_columns_of_any_type_are_missing():
    columns, y = mixed_table()
    model = SCBoostClassifier(**FAST).fit(in_pandas(columns), y)
    nothing = np.full(len(y), None, dtype=object)
    missing = model.predict_proba(in_pandas(dict(columns, colour=nothing, x=np.full(len(y), np.nan))))
    blank = pd.DataFrame(dict(columns, colour=nothing, x=nothing))
    np.testing.assert_array_equal(model.predict_proba(blank), missing)
    blank = pl.DataFrame({k: v.tolist() for k, v in columns.items()}, strict=False)
    blank = blank.with_columns(colour=pl.lit(None), x=pl.lit(None))
    np.testing.assert_array_equal(model.predict_proba(blank), missing)
    arrow = pa.Table.from_pandas(pd.DataFrame(dict(columns, colour=nothing, x=nothing)))
    assert pa.types.is_null(arrow.schema.field("colour").type)
    np.testing.assert_array_equal(model.predict_proba(arrow), missing)


def test_integer_categories_may_become_floats_and_back():
    columns, y = mixed_table()
    model = SCBoostClassifier(**FAST).fit(in_pandas(columns), y)
    drifted = in_pandas(dict(columns, count=columns["count"].astype(float), flag=columns["flag"].astype(int)))
    np.testing.assert_array_equal(model.predict_proba(drifted), model.predict_proba(in_pandas(columns)))


def test_column_names_that_are_not_texts():
    X = np.random.default_rng(0).normal(size=(100, 2))
    y = (X[:, 1] > 0).astype(int)
    reference = SCBoostClassifier(**FAST).fit(X, y).predict_proba(X)
    for names in ([0, 1], [("a", 1), ("a", 2)]):
        frame = pd.DataFrame(X)
        frame.columns = names
        np.testing.assert_array_equal(SCBoostClassifier(**FAST).fit(frame, y).predict_proba(frame), reference)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.to_timedelta(np.arange(4), unit="h")),
        pd.Series(pd.period_range("2020-01", periods=4)),
        pd.Series(pd.interval_range(0, 4)),
        pd.Series([1 + 2j] * 4),
        pd.Series(["a", 1, "b", 2]),
        pd.Series([[1], [2], [3], [4]]),
        pd.Series([dt.time(12, 30)] * 4, dtype=object),
        pd.Series([dt.date(2020, 1, 1), 1, 2, 3], dtype=object),
    ],
    ids=lambda c: str(c.dtype),
)
def test_kinds_that_no_tree_can_read_are_refused_by_name(column):
    frame = pd.DataFrame({"fine": np.arange(4.0), "odd": column})
    with pytest.raises(TypeError, match="Column 'odd' has type"):
        SCBoostRegressor(**FAST).fit(frame, np.arange(4.0))


def test_polars_and_arrow_refuse_the_same_kinds():
    span = dt.timedelta(hours=1)
    for frame in (pl.DataFrame({"odd": [span] * 4}), pa.table({"odd": [span] * 4})):
        with pytest.raises(TypeError, match=r"(?i)column 'odd' has type duration.*Convert it to a number"):
            SCBoostRegressor(**FAST).fit(frame, np.arange(4.0))
    with pytest.raises(TypeError, match=r"LazyFrame.*collect\(\)"):
        as_table(pl.LazyFrame({"a": [1]}))


def test_numbers_beyond_single_precision():
    X = np.arange(20.0)[:, None]
    X[3] = 1e300
    for rows in (X, pd.DataFrame(X, columns=["a"])):
        with pytest.raises(ValueError, match=r"too large|inf|up to 1.7e\+38"):
            SCBoostRegressor(**FAST).fit(rows, X[:, 0] > 5)


# --- sparse data ------------------------------------------------------------------------------------------------------


def sparse_rows():
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((300, 10)) < 0.3, rng.random((300, 10)), 0)
    return sparse.csr_array(dense), dense.sum(axis=1)


def test_zeros_of_sparse_matrices_are_missing():
    X, y = sparse_rows()
    dense = X.toarray()
    missing = np.where(dense == 0, np.nan, dense)
    expected = SCBoostRegressor(**FAST).fit(missing, y).predict(missing)
    for convert in (sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix, sparse.csc_matrix):
        model = SCBoostRegressor(**FAST).fit(convert(X), y)
        np.testing.assert_array_equal(model.predict(convert(X)), expected)


def test_equal_samples_have_equal_predictions_in_any_storage():
    X, y = sparse_rows()
    dense = X.toarray()
    padded = sparse.csr_array((np.ones(dense.size), (np.repeat(np.arange(300), 10), np.tile(np.arange(10), 300))))
    padded.data[:] = dense.ravel()  # with its zeros stored
    stored = padded.copy()
    for rows in (X, dense):
        model = SCBoostRegressor(**FAST).fit(rows, y)
        reference = model.predict(X)
        for other in (dense, padded, X.tocsc()):
            np.testing.assert_array_equal(model.predict(other), reference)
    np.testing.assert_array_equal(
        SCBoostRegressor(**FAST).fit(padded, y).predict(X), SCBoostRegressor(**FAST).fit(X, y).predict(X)
    )
    assert padded.nnz == stored.nnz  # what was given is left as it was


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [in_pandas, as_polars, as_arrow])
def test_columns_are_checked_by_name(make):
    columns, y = mixed_table()
    model = SCBoostClassifier(**FAST).fit(make(columns), y)
    backwards = dict(reversed(columns.items()))
    with pytest.raises(ValueError, match="same order"):
        model.predict(make(backwards))
    renamed = {("z" if k == "x" else k): v for k, v in columns.items() if k != "z"}
    with pytest.raises(ValueError, match=r"(?s)unseen at fit time.*z"):
        model.predict(in_pandas(renamed))
    with pytest.raises(ValueError, match=r"(?s)seen at fit time.*shape|features"):
        model.predict(pd.DataFrame(columns).drop(columns="shape"))


def coloured(n=500, seed=0):
    """A number and two categorical columns, one of texts and one of whole numbers."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "colour": pd.Categorical(rng.choice(["red", "green", "blue", "black", "white", "ab"], size=n)),
            "code": pd.Categorical(rng.choice([100, 20, 3, 7], size=n)),
        }
    )
    signal = 2 * (table["colour"] == "red") - 2.0 * (table["code"] == 20) + table["x"]
    return table, (signal + rng.normal(size=n) > 0).astype(int)


def native_margin(model, X):
    return model.get_booster().inplace_predict(X, predict_type="margin")


def test_the_native_model_has_the_categories():
    """Plain XGBoost on the user's own frames: single rows, other orders and other sets of categories."""
    table, y = coloured()
    model = SCBoostClassifier(**FAST).fit(table, y)
    expected = model.decision_function(table)
    np.testing.assert_allclose(native_margin(model, table), expected, atol=1e-5)
    for i in range(20):
        row = table.iloc[i : i + 1].assign(colour=lambda t: t["colour"].cat.remove_unused_categories())
        row["code"] = row["code"].cat.remove_unused_categories()
        np.testing.assert_allclose(native_margin(model, row), expected[i], atol=1e-5)
    turned = table.assign(
        colour=table["colour"].cat.reorder_categories(["red", "white", "ab", "green", "blue", "black"]),
        code=table["code"].cat.reorder_categories([20, 100, 7, 3]),
    )
    np.testing.assert_allclose(native_margin(model, turned), expected, atol=1e-5)
    raw = model.get_booster().save_raw("json")
    reloaded = xgb.Booster(model_file=raw)
    np.testing.assert_allclose(reloaded.inplace_predict(turned, predict_type="margin"), expected, atol=1e-5)


def test_plain_xgboost_predicts_or_rejects_an_unseen_category():
    # XGBoost before 3.4 sends it to one side of every split on categories, which need not be that of missing values.
    table, y = coloured()
    model = SCBoostClassifier(**FAST).fit(table, y)
    unseen = table.assign(colour=pd.Categorical(["new"] * len(table)))
    if version(xgb.__version__) >= (3, 4):
        with pytest.raises(xgb.core.XGBoostError, match="category not in the training set"):
            native_margin(model, unseen)
    else:
        assert np.isfinite(native_margin(model, unseen)).all()
        missing = table.assign(colour=pd.Categorical([None] * len(table), categories=["red"]))
        np.testing.assert_array_equal(model.decision_function(unseen), model.decision_function(missing))


def test_categories_with_equal_text_are_not_merged():
    table, y = coloured()
    mixed = pd.Series(np.where(table["x"] > 0, 1, 2), dtype=object)
    mixed[::3] = "1"
    with pytest.raises(ValueError, match=r"Column 'm' has the categories 1 and '1', which are both written '1'"):
        SCBoostClassifier(**FAST).fit(table.assign(m=pd.Categorical(mixed)), y)
    model = SCBoostClassifier(**FAST).fit(table, y)
    both = pd.Categorical([3, "3"] * (len(table) // 2))
    with pytest.raises(ValueError, match="categories 3 and '3'"):
        model.predict(table.assign(code=both))
