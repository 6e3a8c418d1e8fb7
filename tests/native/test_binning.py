"""Bins of the compiled kernels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

pytest.importorskip("scboost._engine.native._native")

from scboost._engine.native.trees import BinnedData, Cuts, Pool


def cuts_of(data, j=0):
    return data.cuts.values[data.cuts.indptr[j] : data.cuts.indptr[j + 1]]


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=200))
def test_few_distinct_values_have_a_bin_each(values):
    x = np.array(values, dtype=np.float32)
    data = BinnedData(x[:, None])
    _, expected = np.unique(x, return_inverse=True)
    np.testing.assert_array_equal(data.codes()[:, 0], expected)


@given(st.integers(2, 40), st.integers(1, 2000), st.integers(0, 10**6), st.booleans())
def test_a_value_is_below_the_cut_of_its_bin_and_not_below_the_one_before(max_bin, n, seed, missing):
    rng = np.random.default_rng(seed)
    x = rng.standard_cauchy(n).astype(np.float32).round(int(rng.integers(0, 4)))
    if missing:
        x[rng.random(n) < 0.3] = np.nan
    data = BinnedData(x[:, None], max_bin=max_bin)
    cuts, codes = cuts_of(data), data.codes()[:, 0]
    assert 1 <= len(cuts) <= max_bin
    present = ~np.isnan(x)
    np.testing.assert_array_equal(codes[present], np.searchsorted(cuts, x[present], side="right"))
    assert (codes[~present] == len(cuts)).all()


@pytest.mark.parametrize("max_bin", [16, 256, 1000])
def test_bins_of_many_values_have_about_equal_weight(max_bin):
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=20_000), rng.uniform(0, 2, 20_000)
    for w in (None, weight):
        data = BinnedData(x[:, None], max_bin=max_bin, sample_weight=w)
        mass = np.bincount(data.codes()[:, 0], weights=w, minlength=max_bin)
        assert len(mass) == max_bin
        assert mass.max() < 1.3 * mass.mean()


def test_a_frequent_value_has_its_own_bin():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(10_000) < 0.7, 0.0, rng.normal(size=10_000))
    codes = BinnedData(x[:, None], max_bin=64).codes()[:, 0]
    assert len(np.unique(codes[x == 0])) == 1
    assert len(np.unique(codes)) == 64
    counts = np.bincount(codes[x != 0], minlength=64)
    assert counts.max() < 2 * 3000 / 63


def test_weights_are_repetitions_and_weight_zero_is_absence():
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000).astype(np.float32)
    weight = rng.integers(0, 4, 3000)
    weighted = BinnedData(x[:, None], max_bin=32, sample_weight=weight)
    repeated = BinnedData(np.repeat(x, weight)[:, None], max_bin=32)
    np.testing.assert_array_equal(cuts_of(weighted), cuts_of(repeated))


def test_bins_do_not_depend_on_the_order_of_samples_nor_on_threads():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 20)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    order = rng.permutation(5000)
    plain = BinnedData(X)
    np.testing.assert_array_equal(BinnedData(X[order]).codes(), plain.codes()[order])
    for n_threads in (2, 4, 8):
        np.testing.assert_array_equal(BinnedData(X, pool=Pool(n_threads)).codes(), plain.codes())


def test_sparse_bins_are_those_of_missing_values():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20)).astype(np.float32)
    X[rng.random(X.shape) < 0.7] = np.nan
    stored = ~np.isnan(X)
    matrix = sparse.csr_matrix((X[stored], np.nonzero(stored)), shape=X.shape)
    np.testing.assert_array_equal(BinnedData(matrix).codes(), BinnedData(X).codes())


def test_a_category_is_a_bin():
    X = np.array([[0, 300], [2, 7], [np.nan, 0], [1, np.nan]], dtype=np.float32)
    data = BinnedData(X, n_categories=[3, 301])
    np.testing.assert_array_equal(data.codes(), [[0, 300], [2, 7], [3, 0], [1, 301]])


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"max_bin": 1}, "max_bin"),
        ({"n_categories": [3]}, "categories"),
        ({"n_categories": [70_000, 0]}, "65536"),
        ({"sample_weight": [1.0]}, "weights"),
        ({"cuts": Cuts(np.array([0, 1]), np.ones(1, dtype=np.float32))}, "cut points"),
        ({"cuts": Cuts(np.array([0, 2, 3]), np.array([2, 1, 5], dtype=np.float32))}, "ascending"),
        ({"cuts": Cuts(np.array([0, 0, 1]), np.array([1], dtype=np.float32))}, "cut points"),
    ],
)
def test_mismatched_input_is_rejected(arguments, match):
    with pytest.raises(ValueError, match=match):
        BinnedData(np.ones((3, 2), dtype=np.float32), **arguments)


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 3.3, 1e7, 1e20])
def test_bins_do_not_depend_on_the_unit_of_the_weights(unit):
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(300, 4)), rng.integers(1, 4, 300)
    expected = BinnedData(X, sample_weight=weight).codes()
    np.testing.assert_array_equal(BinnedData(X, sample_weight=weight * unit).codes(), expected)
