"""Random draws and folds that depend on the feature values of a sample."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

from scboost._core.sampling import Draws
from scboost._data.folds import content_folds, content_sample
from scboost._data.hashing import row_keys


def rows_of(seed, n=200, d=3):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def test_sample_key_depends_on_values_only():
    X = rows_of(0)
    order = np.random.default_rng(1).permutation(len(X))
    np.testing.assert_array_equal(row_keys(X)[order], row_keys(X[order]))
    np.testing.assert_array_equal(row_keys(np.asfortranarray(X)), row_keys(X))
    np.testing.assert_array_equal(row_keys(X.astype(np.float64)), row_keys(X))
    np.testing.assert_array_equal(row_keys(X[:7]), row_keys(X)[:7])


def test_different_samples_have_different_keys():
    grid = np.stack(np.meshgrid(*[np.arange(12.0)] * 4), axis=-1).reshape(-1, 4)  # small whole numbers, all orders
    assert len(np.unique(row_keys(grid))) == len(grid)


def test_nan_and_zero_have_one_form_each():
    payload = np.array([0x7FC00001], np.uint32).view(np.float32)[0]
    X = np.array([[0.0, np.nan], [-0.0, payload], [np.nan, 0.0]], np.float32)
    keys = row_keys(X)
    assert keys[0] == keys[1] != keys[2]


def test_implicit_zeros_hash_as_missing():
    X = rows_of(0)
    X[X < 0] = 0
    np.testing.assert_array_equal(row_keys(sparse.csr_matrix(X)), row_keys(np.where(X == 0, np.nan, X)))


def test_draws_are_standard_normal_and_independent_between_rounds_and_outputs():
    draws = Draws(row_keys(rows_of(0, 20_000)), seed=0)
    z = [draws.normal(0, 0), draws.normal(1, 0), draws.normal(0, 1)]
    for v in z:
        assert stats.kstest(v, "norm").pvalue > 1e-4
    assert np.abs(np.corrcoef(z) - np.eye(3)).max() < 5 / np.sqrt(20_000)


def test_similar_samples_and_seeds_draw_independently():
    steps = np.arange(20_000.0)[:, None]
    z = Draws(row_keys(steps), seed=0).normal(0, 0)
    other = Draws(row_keys(steps), seed=1).normal(0, 0)
    for a, b in ((z[:-1], z[1:]), (z, other)):
        assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(20_000)


@given(seed=st.integers(0, 1000), share=st.sampled_from([0.1, 0.5, 0.9]))
def test_subsample_has_the_given_fraction(seed, share):
    drawn = Draws(row_keys(rows_of(0, 5000)), seed).sample(3, share)
    assert set(np.unique(drawn)) <= {0.0, 1.0}
    assert abs(drawn.mean() - share) < 5 * np.sqrt(share * (1 - share) / 5000)


@given(seed=st.integers(0, 1000))
def test_noise_of_repeated_samples_sums_to_noise_of_their_weight(seed):
    X = rows_of(seed, 50)
    weight = np.random.default_rng(seed).integers(1, 5, size=50)
    weighted = Draws(row_keys(X), seed, weight.astype(float)).normal(2, 0) * weight
    repeated = Draws(row_keys(X.repeat(weight, axis=0)), seed).normal(2, 0)
    np.testing.assert_allclose(np.add.reduceat(repeated, np.r_[0, np.cumsum(weight)[:-1]]), weighted, rtol=1e-5)


def test_duplicated_samples_do_not_increase_exploration():
    # The sum over the copies of one sample has the variance of as many independent samples.
    distinct = np.repeat(rows_of(0, 400), np.tile([1, 1, 9], 134)[:400], axis=0)
    z = np.array([Draws(row_keys(distinct), seed).normal(0, 0).sum() for seed in range(200)])
    assert z.std() == pytest.approx(np.sqrt(len(distinct)), rel=0.2)


def test_the_unit_of_the_weights_does_not_matter():
    keys = row_keys(rows_of(0))
    weight = np.random.default_rng(0).uniform(0.5, 2, size=200)
    one, many = (Draws(keys, 0, c * weight).normal(0, 0) for c in (1.0, 2.0**30))
    np.testing.assert_array_equal(one, many)


@given(seed=st.integers(0, 100), n_folds=st.integers(2, 6))
def test_folds_keep_equal_samples_together_and_are_stratified(seed, n_folds):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 12, size=(300, 2)).astype(float)
    classes = rng.integers(0, 3, size=300)
    fold = content_folds(row_keys(X), n_folds, classes, seed)
    assert set(fold) == set(range(n_folds))
    for c in range(3):
        pairs = {(tuple(x), f) for x, f in zip(X[classes == c], fold[classes == c], strict=True)}
        rows = {x for x, _ in pairs}
        assert len(pairs) == len(rows)  # one fold per sample
        sizes = np.bincount([f for _, f in pairs], minlength=n_folds)
        assert np.ptp(sizes) <= 1
    order = rng.permutation(300)
    np.testing.assert_array_equal(content_folds(row_keys(X[order]), n_folds, classes[order], seed), fold[order])


@given(st.integers(0, 2**31 - 1), st.floats(0.01, 0.99))
def test_held_out_fraction_is_stratified_and_depends_on_values(seed, share):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 12, size=(300, 2)).astype(float)
    classes = rng.integers(0, 3, size=300)
    drawn = content_sample(row_keys(X), share, classes, seed)
    for c in range(3):
        pairs = {(tuple(x), d) for x, d in zip(X[classes == c], drawn[classes == c], strict=True)}
        n_contents = len({x for x, _ in pairs})
        assert len(pairs) == n_contents  # equal samples are drawn together
        assert sum(d for _, d in pairs) == min(max(round(share * n_contents), 1), n_contents - 1)
    order = rng.permutation(300)
    np.testing.assert_array_equal(content_sample(row_keys(X[order]), share, classes[order], seed), drawn[order])
