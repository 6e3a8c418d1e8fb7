"""Ordered categories of pandas and Arrow are used in their order."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xgboost

from scboost import SCBoostRegressor, compress, encode_features, load_model
from scboost._data.encoder import Encoder

FAST = {"n_estimators": 15, "n_jobs": 1, "random_state": 0}
SIZES = ["tiny", "small", "medium", "large", "huge"]
SIZE = pd.CategoricalDtype(SIZES, ordered=True)


def shirts(n=400, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.choice([0, 1, 2, 4], size=n)  # none is large
    table = pd.DataFrame({"x": rng.normal(size=n), "size": pd.Categorical.from_codes(codes, dtype=SIZE)})
    y = np.array([0.0, 1.0, 1.5, 2.5, 3.0])[codes] + table["x"]
    table.loc[::11, "size"] = None
    return table, y


def test_codes_are_the_positions_in_the_order():
    table, y = shirts()
    model = SCBoostRegressor(**FAST).fit(table, y)
    expected = table["size"].cat.codes.astype(float).replace(-1, np.nan)
    np.testing.assert_array_equal(encode_features(model, table)[:, 1], expected)
    assert model.model_feature_names_.tolist() == ["x", "size: order"] == model.get_booster().feature_names
    assert model.feature_names_in_.tolist() == ["x", "size"]
    assert not hasattr(model, "categorical_splits_")
    same = SCBoostRegressor(**FAST).fit(table.assign(size=expected), y)
    np.testing.assert_array_equal(model.predict(table), same.predict(table.assign(size=expected)))


def test_categories_that_were_declared_but_not_seen_have_their_place():
    table, y = shirts()
    model = SCBoostRegressor(**FAST, monotone_constraints={"size": 1}).fit(table, y)
    rows = pd.DataFrame({"x": 0.0, "size": SIZES})  # plain strings have the same meaning
    predicted = model.predict(rows)
    assert (np.diff(predicted) >= -1e-6).all()
    assert predicted[0] < predicted[2] <= predicted[3] <= predicted[4]


def test_unseen_categories_are_missing_and_numbers_are_refused():
    table, y = shirts()
    model = SCBoostRegressor(**FAST).fit(table, y)
    missing = model.predict(table.assign(size=pd.Categorical([None] * len(table), dtype=SIZE)))
    np.testing.assert_array_equal(model.predict(table.assign(size="gigantic")), missing)
    np.testing.assert_array_equal(model.predict(table.assign(size=None)), missing)
    with pytest.raises(ValueError, match="Column 'size' is numeric but was ordered categorical in fit"):
        model.predict(table.assign(size=2))


def test_order_survives_files_and_arrow(tmp_path):
    table, y = shirts()
    model = SCBoostRegressor(**FAST).fit(table, y)
    arrow = pa.Table.from_pandas(table)
    assert arrow.schema.field("size").type.ordered
    assert Encoder.learn(arrow) == Encoder.learn(table)
    np.testing.assert_array_equal(model.predict(arrow), model.predict(table))
    model.save_model(tmp_path / "model.ubj")
    again = load_model(tmp_path / "model.ubj")
    assert again.__fitted_model__().encoder == model.__fitted_model__().encoder
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    rows = table.assign(size=table["size"].cat.codes.replace(-1, np.nan)).rename(columns={"size": "size: order"})
    plain = xgboost.Booster(model_file=tmp_path / "model.ubj").predict(xgboost.DMatrix(rows))
    np.testing.assert_allclose(plain, model.predict(table), rtol=1e-5)


def test_partitions_must_agree_on_the_order():
    table, _ = shirts()
    whole = Encoder.learn(table)
    assert Encoder.merge([Encoder.learn(table[:50]), Encoder.learn(table[50:])]) == whole
    other = table.assign(size=table["size"].cat.reorder_categories(SIZES[::-1], ordered=True))
    with pytest.raises(ValueError, match=r"Column 'size' has the ordered categories .* declare the same categories"):
        Encoder.merge([whole, Encoder.learn(other)])


def test_models_of_other_libraries_see_categories_without_order():
    table, y = shirts(600)
    other = xgboost.XGBRegressor(n_estimators=20, enable_categorical=True).fit(table, y)
    small = compress(other, table, max_trees=10, random_state=0).model
    assert np.corrcoef(small.predict(table), other.predict(table))[0, 1] > 0.9
