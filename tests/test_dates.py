"""Dates are expanded to numeric features, the same in every table library, in files and in exports."""

import contextlib
import sqlite3
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import TimeSeriesSplit

from scboost import (
    Batches,
    SCBoostClassifier,
    SCBoostRegressor,
    compress,
    encode_features,
    export_sql,
    load_model,
    report,
    to_onnx,
)
from scboost._data.dates import PARTS, date_parts
from scboost._data.encoder import Encoder

FAST = {"n_estimators": 15, "n_jobs": 1, "random_state": 0}


EARLIEST_AND_LATEST = (pd.Timestamp("1700-01-01").to_pydatetime(), pd.Timestamp("2250-01-01").to_pydatetime())


def in_tokyo(table):
    return table.assign(sold=table["sold"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"))


def sales(n=400, seed=0, freq="D"):
    rng = np.random.default_rng(seed)
    step = pd.Timedelta(1, freq)
    when = pd.Series(pd.Timestamp("2019-11-03") + rng.integers(700, size=n) * step).astype("datetime64[us]")
    table = pd.DataFrame({"x": rng.normal(size=n), "sold": when, "shop": rng.choice(["a", "b"], n)})
    y = table["x"] + 3 * (when.dt.dayofweek >= 5) + when.dt.month / 4 + rng.normal(scale=0.1, size=n)
    table.loc[::9, "sold"] = pd.NaT
    return table, y


@settings(max_examples=60, deadline=None)
@given(st.lists(st.datetimes(*EARLIEST_AND_LATEST), min_size=1, max_size=20))
def test_parts_are_those_of_pandas(values):
    series = pd.Series(values, dtype="datetime64[us]")
    found = date_parts(series.to_numpy(), PARTS)
    of = series.dt
    expected = [of.year, of.month, of.day, of.dayofweek, of.dayofyear]
    np.testing.assert_array_equal(found[:, :5], np.stack(expected, axis=1))
    hours = (series - of.normalize()) / pd.Timedelta(hours=1)
    np.testing.assert_allclose(found[:, 5], hours, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found[:, 6], (series - pd.Timestamp(0)) / pd.Timedelta(days=1), rtol=1e-12)


def test_constant_parts_are_left_out_and_missing_dates_are_nan():
    table, _ = sales()
    encoder = Encoder.learn(table)
    assert encoder.dates == (None, tuple(part for part in PARTS if part != "hour"), None)
    matrix = encoder.encode(table)
    np.testing.assert_array_equal(np.isnan(matrix[:, 1:7]).all(axis=1), table["sold"].isna())
    of = table["sold"].dt
    np.testing.assert_array_equal(matrix[:, 1:3], np.stack([of.year, of.month], axis=1).astype(np.float32))
    assert "hour" in Encoder.learn(sales(freq="h")[0]).dates[1]
    one_day = table.assign(sold=pd.Timestamp("2020-05-01"))
    assert Encoder.learn(one_day).dates[1] == ("days since 1970",)
    assert Encoder.learn(table.assign(sold=pd.Series(pd.NaT, table.index))).dates[1] == ("days since 1970",)


LIBRARIES = {
    "pandas ns": lambda t: t.astype({"sold": "datetime64[ns]"}),
    "pandas s": lambda t: t.astype({"sold": "datetime64[s]"}),
    "pandas arrow": lambda t: t.astype({"sold": pd.ArrowDtype(pa.timestamp("ms"))}),
    "pandas date objects": lambda t: t.assign(sold=t["sold"].dt.date),
    "pandas datetime objects": lambda t: t.assign(sold=t["sold"].astype(object)),
    "polars": pl.from_pandas,
    "polars date": lambda t: pl.from_pandas(t).with_columns(pl.col("sold").cast(pl.Date)),
    "arrow": pa.Table.from_pandas,
    "arrow date": lambda t: pa.Table.from_pandas(t.assign(sold=t["sold"].dt.date)),
    "UTC": lambda t: t.assign(sold=t["sold"].dt.tz_localize("UTC")),
    "zone": in_tokyo,
    "polars zone": lambda t: pl.from_pandas(in_tokyo(t)),
    "arrow zone": lambda t: pa.Table.from_pandas(in_tokyo(t)),
    "zoned objects": lambda t: in_tokyo(t).astype({"sold": object}),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_all_libraries_and_time_zones_give_the_same_features(library):
    table, y = sales()
    converted = LIBRARIES[library](table)
    expected, found = Encoder.learn(table), Encoder.learn(converted)
    assert found == expected
    np.testing.assert_array_equal(found.encode(converted), expected.encode(table))
    model = SCBoostRegressor(**FAST).fit(table, y)
    np.testing.assert_array_equal(model.predict(converted), model.predict(table))


def test_arrays_of_dates_are_features_without_names():
    table, y = sales()
    X = table[["sold"]].to_numpy()
    assert X.dtype.kind == "M"
    expected = Encoder.learn(table[["sold"]]).encode(table[["sold"]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for same in (X, X.astype("datetime64[D]"), X.tolist(), X.astype(object)):
            model = SCBoostRegressor(**FAST).fit(same, y)
            assert model.n_features_in_ == 1
            np.testing.assert_array_equal(encode_features(model, same), expected)


def test_user_facing_shapes_are_those_of_the_columns():
    table, y = sales()
    model = SCBoostRegressor(**FAST).fit(table, y)
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["x", "sold", "shop"]
    names = ["x", *(f"sold: {part}" for part in PARTS if part != "hour"), "shop"]
    assert model.model_feature_names_.tolist() == names == model.get_booster().feature_names
    values = model.shap_values(table)
    assert values.shape == (len(y), 4)
    np.testing.assert_allclose(values.sum(axis=1), model.predict(table), rtol=1e-5)
    rows = xgboost.DMatrix(
        encode_features(model, table), feature_names=names, feature_types=["q"] * 7 + ["c"], enable_categorical=True
    )
    by_part = model.get_booster().predict(rows, pred_contribs=True)
    np.testing.assert_allclose(values[:, 1], by_part[:, 1:7].sum(axis=1), atol=1e-4)
    assert model.feature_importances_.shape == (3,)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.feature_importances_[1] > 0.3


@pytest.mark.parametrize("ending", ["json", "ubj"])
def test_files_keep_the_expansion_and_plain_xgboost_reads_them(tmp_path, ending):
    table, y = sales()
    model = SCBoostRegressor(**FAST).fit(table, y)
    path = tmp_path / f"model.{ending}"
    model.save_model(path)
    again = load_model(path)
    assert again.__fitted_model__().encoder == model.__fitted_model__().encoder
    assert again.feature_names_in_.tolist() == ["x", "sold", "shop"]
    later = table.assign(sold=table["sold"] + pd.Timedelta(days=500, hours=3))
    np.testing.assert_array_equal(again.predict(later), model.predict(later))
    np.testing.assert_array_equal(again.shap_values(later), model.shap_values(later))
    days = table["sold"].dt
    frame = pd.DataFrame(
        {
            "x": table["x"],
            "sold: year": days.year,
            "sold: month": days.month,
            "sold: day": days.day,
            "sold: weekday": days.dayofweek,
            "sold: day of year": days.dayofyear,
            "sold: days since 1970": (table["sold"] - pd.Timestamp(0)) / pd.Timedelta(days=1),
            "shop": table["shop"].astype("category"),
        }
    )
    booster = xgboost.Booster(model_file=path)
    plain = booster.predict(xgboost.DMatrix(frame, enable_categorical=True))
    np.testing.assert_allclose(plain, model.predict(table), rtol=1e-5)


def test_corrupt_parts_of_dates_are_rejected(tmp_path):
    import json

    from scboost._model.document import Document
    from scboost._model.file import checksum

    table, y = sales()
    SCBoostRegressor(**FAST).fit(table, y).save_model(tmp_path / "model.json")
    document = Document.decode((tmp_path / "model.json").read_bytes())
    for change in (
        {"dates": [None, ["year", "fortnight"], None]},
        {"dates": [None, ["month", "year"], None]},
        {"dates": [None, [], None]},
        {"dates": [["year"], None, None]},
        {"dates": [None, None, ["year", "month", "day", "weekday", "day of year", "days since 1970"]]},
        {"ordinal": [0]},
        {"ordinal": [9]},
    ):
        own = json.loads(document.attributes["scboost"])
        own["columns"].update(change)
        wrong = document.with_learner(attributes={"scboost": json.dumps(own)})
        wrong = wrong.with_learner(attributes={**wrong.attributes, "scboost_checksum": checksum(wrong)})
        (tmp_path / "wrong.json").write_bytes(wrong.encode_json())
        with pytest.raises(ValueError, match=r"wrong\.json"):
            load_model(tmp_path / "wrong.json")


def test_exports_take_the_expanded_features():
    table, y = sales()
    model = SCBoostRegressor(**FAST).fit(table[["x", "sold"]], y)
    matrix = encode_features(model, table[["x", "sold"]])
    np.testing.assert_allclose(model.to_xgboost().predict(matrix), model.predict(table[["x", "sold"]]), atol=1e-5)
    onnx = to_onnx(model)
    assert onnx.graph.input[0].type.tensor_type.shape.dim[1].dim_value == matrix.shape[1] == 7
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        pd.DataFrame(matrix, columns=model.model_feature_names_).to_sql("sales", database, index=False)
        found = database.execute(export_sql(model, table="sales", dialect="sqlite")).fetchall()
    np.testing.assert_allclose(np.ravel(found), model.predict(table[["x", "sold"]]), atol=1e-5)


def test_a_column_keeps_its_kind_and_errors_name_it():
    table, y = sales()
    model = SCBoostRegressor(**FAST).fit(table, y)
    for other, seen in ((table.assign(sold=5.0), "numeric"), (table.assign(sold="soon"), "categorical")):
        with pytest.raises(ValueError, match=f"Column 'sold' is {seen} but was a date in fit"):
            model.predict(other)
    with pytest.raises(ValueError, match="Column 'shop' is a date but was categorical in fit"):
        model.predict(table.assign(shop=table["sold"]))
    dates_only = SCBoostRegressor(**FAST).fit(table[["sold"]], y)
    with pytest.raises(TypeError, match="without dates but the model was fitted on data with dates in column 'sold'"):
        dates_only.predict(np.zeros((3, 1)))
    numbers = SCBoostRegressor(**FAST).fit(table[["x"]].to_numpy(), y)
    with pytest.raises(ValueError, match="Column 0 is a date but was numeric"):
        numbers.predict(table[["sold"]].to_numpy())
    missing = model.predict(table.assign(sold=pd.NaT))
    np.testing.assert_array_equal(model.predict(table.assign(sold=np.nan)), missing)
    np.testing.assert_array_equal(model.predict(table.assign(sold=None)), missing)


def test_a_column_may_not_have_the_name_of_a_part():
    table, y = sales()
    with pytest.raises(
        ValueError, match=r"Column 'sold: year' has the name of a feature .* of column 'sold'; rename it"
    ):
        SCBoostRegressor(**FAST).fit(table.assign(**{"sold: year": 1}), y)


def test_constraints_on_dates():
    table, y = sales()
    with pytest.raises(ValueError, match="monotone_constraints cannot constrain the dates of 'sold'"):
        SCBoostRegressor(**FAST, monotone_constraints={"sold": 1}).fit(table, y)
    model = SCBoostRegressor(**FAST, monotone_constraints={"x": 1}).fit(table, y)
    moved = np.stack([model.predict(table.assign(x=v)) for v in (-1.0, 0.0, 1.0)])
    assert (np.diff(moved, axis=0) >= -1e-6).all()
    apart = SCBoostRegressor(**FAST, interaction_constraints=[["x"], ["sold"], ["shop"]]).fit(table, y)
    low, high = (apart.predict(table.assign(x=v)) for v in (-1.0, 1.0))
    np.testing.assert_allclose(high - low, (high - low)[0], atol=1e-4)  # without interactions, the same everywhere


def test_partitions_and_batches_learn_the_parts_of_all_dates(tmp_path):
    table, y = sales()
    order = np.argsort(table["sold"].to_numpy())
    table, y = table.iloc[order].reset_index(drop=True), y.iloc[order].reset_index(drop=True)
    cuts = [slice(0, 10), slice(10, 250), slice(250, None)]
    parts = [Encoder.learn(table[cut]) for cut in cuts]
    assert Encoder.merge(parts) == Encoder.learn(table) != parts[0]
    with pytest.raises(ValueError, match="Column 'sold' is numeric in some partitions and a date in others"):
        Encoder.merge([parts[0], Encoder.learn(table.assign(sold=1.0))])
    model = SCBoostRegressor(**FAST).fit(Batches(lambda: ((table[c], y[c]) for c in cuts), folder=tmp_path))
    assert model.__fitted_model__().encoder == Encoder.learn(table)
    assert model.score(table, y) > 0.5


def test_a_model_with_dates_is_continued_with_its_own_parts():
    table, y = sales()
    first = SCBoostRegressor(**FAST).fit(table, y)
    later = table.assign(sold=pd.Timestamp("2021-06-01 12:00"))  # a training set with fewer parts
    more = SCBoostRegressor(**FAST).fit(later, y, init_model=first)
    assert more.n_estimators_ == 30
    warm = SCBoostRegressor(**FAST, warm_start=True).fit(table, y)
    warm.set_params(n_estimators=20).fit(table, y)
    assert warm.n_estimators_ == 20


def test_compression_and_reports_work_with_dates():
    table, y = sales(800)
    model = SCBoostRegressor(**{**FAST, "n_estimators": 40}).fit(table, y)
    small = compress(model, table, max_trees=5, random_state=0).model
    assert small.feature_names_in_.tolist() == ["x", "sold", "shop"]
    assert np.corrcoef(small.predict(table), model.predict(table))[0, 1] > 0.9
    assert "sold" in report(model, table, y, random_state=0).markdown()
    with pytest.raises(TypeError, match="Column 'sold' of X holds dates"):
        compress(lambda X: np.zeros(len(X)), table, link="identity")


def test_classification_selects_rounds_with_dates():
    table, y = sales()
    model = SCBoostClassifier(n_jobs=1, random_state=0).fit(table, y > y.median())
    assert model.score(table, y > y.median()) > 0.8
    assert set(getattr(model, "selected_features_", [0])) <= {0, 1, 2}


def series(n=400, trend=2.0):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=n), "day": pd.date_range("2020-01-01", periods=n)})
    return X, X["x"] + trend * np.linspace(-1, 1, n) + rng.normal(size=n)


def test_a_target_that_drifts_in_time_is_reported_with_the_remedy():
    X, y = series()
    for data, target in ((X, y), (X[::-1], y[::-1])):
        with pytest.warns(
            UserWarning, match=r"y drifts with the date 'day'.*rank correlation .*cv=TimeSeriesSplit\(\)"
        ):
            SCBoostRegressor(n_jobs=1, max_depth=2, random_state=0).fit(data, target)
    with pytest.warns(UserWarning, match="y drifts"):
        SCBoostClassifier(n_jobs=1, max_depth=2, random_state=0).fit(X, y > 0)


def test_no_drift_is_reported_without_time_trend_or_random_folds():
    X, y = series()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for cv in (TimeSeriesSplit(3), 3):
            SCBoostRegressor(n_jobs=1, max_depth=2, random_state=0, cv=cv).fit(X, y)
        fit = SCBoostRegressor(n_jobs=1, max_depth=2, random_state=0).fit
        fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
        fit(*series(trend=0.0))
        mixed = np.random.default_rng(0).permutation(len(y))
        fit(X.iloc[mixed], y.iloc[mixed])
        by_y = np.argsort(y.to_numpy())
        fit(X.iloc[by_y], y.iloc[by_y])  # sorted by the target, as tables often are
        SCBoostRegressor(**FAST).fit(X, y)
