"""A fit warns of columns that look like identifiers, or are dates or numbers stored as strings, and of no others."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from scboost import SCBoostRegressor
from scboost._data.identifiers import IdentifierWarning, integers_identify
from scboost.cli.columns import suspicious_columns

FAST = {"n_estimators": 3, "n_jobs": 1, "random_state": 0}
N = 300


def table(**columns):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"x": rng.normal(size=N), **columns}), rng.normal(size=N)


SHUFFLED = np.random.default_rng(1).permutation(N)
IDENTIFIERS = {
    "row numbers": np.arange(N),
    "shuffled row numbers": SHUFFLED,
    "numbers with gaps": 100_000 + 7 * SHUFFLED,
    "nullable integers": pd.array(SHUFFLED, dtype="Int64"),
    "strings": [f"customer {i}" for i in SHUFFLED],
    "categories": pd.Categorical([f"customer {i}" for i in SHUFFLED]),
}
RNG = np.random.default_rng(2)
FEATURES = {
    "floats": SHUFFLED.astype(float),
    "measurements": RNG.normal(size=N),
    "counts": RNG.poisson(20, size=N),
    "wide integers": RNG.integers(10**8, size=N),
    "populations": np.exp(RNG.normal(12, 2, size=N)).astype(int),
    "pairs": np.arange(N) // 2,
    "missing integers": pd.array([None, *range(1, N)], dtype="Int64"),
    "half the strings": [f"customer {i // 2}" for i in SHUFFLED],
    "dates": pd.date_range("2020-01-01", periods=N),
    "ordered": pd.Categorical([f"{i:03}" for i in SHUFFLED], ordered=True),
}


@pytest.mark.parametrize("make", [lambda t: t, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"])
@pytest.mark.parametrize("what", IDENTIFIERS)
def test_identifiers_are_named_once(what, make):
    X, y = table(key=IDENTIFIERS[what])
    with pytest.warns(IdentifierWarning, match=r"Column 'key' .*, like an ID.*X\.drop\(columns=\['key'\]\)") as caught:
        SCBoostRegressor(**FAST).fit(make(X), y)
    assert len(caught) == 1


@pytest.mark.parametrize("what", FEATURES)
def test_features_are_not_suspected(what):
    X, y = table(key=FEATURES[what])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SCBoostRegressor(**FAST).fit(X, y)
    if what != "ordered":
        assert not list(suspicious_columns(pa.Table.from_pandas(X)))


@pytest.mark.parametrize(
    ("column", "fix"),
    [
        ([str(day.date()) for day in pd.date_range("2020-01-01", periods=N)], r"dates as strings.*pd\.to_datetime"),
        ([f"{v:.3f}" for v in range(N - 1)] + ["unknown"], r"numbers as strings because of 'unknown'.*pd\.to_numeric"),
    ],
    ids=["dates", "numbers"],
)
def test_dates_and_numbers_as_strings_name_the_conversion(column, fix):
    X, y = table(key=column)
    with pytest.warns(IdentifierWarning, match=f"Column 'key' has {fix}") as caught:
        SCBoostRegressor(**FAST).fit(X, y)
    assert len(caught) == 1


def test_codes_of_digits_stay_categories():
    X, y = table(key=[f"{i % 40:05}" for i in range(N)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SCBoostRegressor(**FAST).fit(X, y)


def test_small_tables_and_arrays_without_names_are_not_suspected():
    X, y = table(key=np.arange(N))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SCBoostRegressor(**FAST).fit(X[:99], y[:99])
        SCBoostRegressor(**FAST).fit(X.to_numpy(), y)


@pytest.mark.parametrize("what", IDENTIFIERS)
def test_the_command_line_has_the_same_rule(what):
    X, _ = table(key=IDENTIFIERS[what])
    (text,) = suspicious_columns(pa.Table.from_pandas(X))
    assert "'key'" in text
    assert "--ignore 'key'" in text


def test_random_integers_are_rarely_suspected():
    rng = np.random.default_rng(3)
    for size in (10, 1_000, 10**5, 10**9):
        assert sum(integers_identify(rng.integers(size, size=200)) for _ in range(300)) == 0
