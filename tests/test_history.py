"""Projection onto the history: exact identities, and an SVD of the whole history as the oracle."""

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy import stats

from data_makers import energy_thresholds, vectors
from scboost._core.history import History

quick = settings(deadline=None, max_examples=80)


def remember(H, *, capacity=None, dtype=np.float64, sample_weight=None):
    history = History(H.shape[1], capacity or len(H), dtype, sample_weight)
    for h in H:
        history.append(h)
    return history


def oracle(H, r, alpha, sample_weight=None):
    """Leading left singular vectors of H' (n, t) by definition, the projection of r, and whether k is firm."""
    root = np.ones(H.shape[1]) if sample_weight is None else np.sqrt(sample_weight)
    U, s, _ = np.linalg.svd((H * root).T, full_matrices=False)
    energies = s**2
    if energies.sum() == 0:
        return np.zeros_like(r), 0, True
    rank = int(np.sum(s > 1e-11 * s[0]))
    shares = np.cumsum(energies) / energies.sum()
    k = rank if alpha == 1 else min(int(np.searchsorted(shares, alpha)) + 1, rank)
    p = U[:, :k] @ (U[:, :k].T @ (r * root)) / root
    # k, and the span of the first k directions, are well defined only if no share lies on the threshold and no
    # direction outside is as long as one inside.
    on_threshold = alpha < 1 and np.abs(shares - alpha).min() < 1e-9
    tied = k < rank and s[k - 1] - s[k] < 1e-4 * s[0]
    return p, k, not (on_threshold or tied)


def residual(n, seed):
    return np.random.default_rng(seed).normal(size=n)


# --- against the SVD -------------------------------------------------------------------------------


@quick
@given(H=vectors(), alpha=energy_thresholds, gamma=st.floats(0, 1), seed=st.integers(0, 99))
@example(H=np.ones((3, 4)), alpha=0.9, gamma=1.0, seed=0)
@example(H=np.ones((3, 4)), alpha=1.0, gamma=1.0, seed=0)
@example(H=np.zeros((3, 4)), alpha=1.0, gamma=1.0, seed=0)
def test_projection_equals_the_svd(H, alpha, gamma, seed):
    r = residual(H.shape[1], seed)
    p, k, firm = oracle(H, r, alpha)
    assume(firm)
    found = remember(H).project(r, alpha=alpha, gamma=gamma)
    assert found.k == k
    np.testing.assert_allclose(found.innovation, r - gamma * p, rtol=0, atol=1e-9 * np.linalg.norm(r))
    assert found.historical_energy == pytest.approx(p @ p, abs=1e-9 * (r @ r))


@pytest.mark.parametrize("alpha", [0.5, 0.9, 0.99, 0.9999, 0.999999, 1 - 1e-8, 1 - 1e-10, 1 - 1e-12, 1.0])
@pytest.mark.parametrize("decay", [0.8, 0.5, 0.3])
def test_ill_conditioned_histories_keep_full_precision(alpha, decay):
    # Singular values fall by `decay` from one direction to the next: their squares span up to 12 orders of magnitude,
    # more than a Gram matrix can hold, but every direction stands clear of the next.
    rng = np.random.default_rng(0)
    U, _ = np.linalg.qr(rng.normal(size=(200, 12)))
    V, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    H = (U * decay ** np.arange(12) @ V.T).T
    r = rng.normal(size=200)
    p, k, _ = oracle(H, r, alpha)
    found = remember(H).project(r, alpha=alpha)
    assert found.k == k
    np.testing.assert_allclose(found.innovation, r - p, rtol=0, atol=1e-9 * np.linalg.norm(r))


@quick
@given(H=vectors(), alpha=energy_thresholds, seed=st.integers(0, 99))
def test_single_precision_storage(H, alpha, seed):
    H = H.astype(np.float32).astype(np.float64)
    s = np.linalg.svd(H, compute_uv=False)
    assume(alpha < 1)  # at alpha = 1 the rounding of the residual itself would be amplified
    r = residual(H.shape[1], seed).astype(np.float32)
    p, k, firm = oracle(H, r.astype(np.float64), alpha)
    assume(firm)
    assume(k == 0 or s[k - 1] > 1e-2 * s[0])
    found = remember(H, dtype=np.float32).project(r, alpha=alpha)
    assert found.innovation.dtype == np.float32
    assert found.k == k
    np.testing.assert_allclose(found.innovation, r - p, rtol=0, atol=1e-5 * np.linalg.norm(r))


# --- projector identities --------------------------------------------------------------------------


@quick
@given(H=vectors(), alpha=energy_thresholds, seed=st.integers(0, 99))
def test_projector_is_symmetric_and_idempotent(H, alpha, seed):
    n = H.shape[1]
    assume(oracle(H, np.ones(n), alpha)[2])
    history = remember(H)
    P = np.column_stack([e - history.project(e, alpha=alpha).innovation for e in np.eye(n)])
    np.testing.assert_allclose(P, P.T, atol=1e-9)
    np.testing.assert_allclose(P @ P, P, atol=1e-9)
    assert np.trace(P) == pytest.approx(history.project(residual(n, seed), alpha=alpha).k, abs=1e-8)


@quick
@given(H=vectors(), alpha=energy_thresholds, seed=st.integers(0, 99))
def test_innovation_is_orthogonal_to_the_historical_component(H, alpha, seed):
    r = residual(H.shape[1], seed)
    found = remember(H).project(r, alpha=alpha)
    q = found.innovation
    p = r - q
    scale = r @ r
    assert found.historical_energy + found.innovation_energy == pytest.approx(scale, rel=1e-12)
    assert q @ q == pytest.approx(found.innovation_energy, abs=1e-8 * scale)
    assert p @ p == pytest.approx(found.historical_energy, abs=1e-8 * scale)
    assert abs(p @ q) <= 1e-8 * scale
    assert 0 <= found.share <= 1


@quick
@given(H=vectors(), alpha=energy_thresholds, seed=st.integers(0, 99))
def test_innovation_is_the_closest_orthogonal_vector(H, alpha, seed):
    r = residual(H.shape[1], seed)
    history = remember(H)
    q = history.project(r, alpha=alpha).innovation
    # Any vector that the projection leaves unchanged is orthogonal to the kept directions.
    other = history.project(residual(H.shape[1], seed + 1), alpha=alpha).innovation
    assert np.linalg.norm(r - q) <= np.linalg.norm(r - other) + 1e-9


@quick
@given(H=vectors(), alpha=energy_thresholds)
def test_energy_kept_reaches_the_threshold_with_the_fewest_directions(H, alpha):
    found = remember(H).project(np.ones(H.shape[1]), alpha=alpha)
    energies = np.linalg.svd(H, compute_uv=False) ** 2
    if energies.sum() == 0:
        assert (found.k, found.energy_kept) == (0, 0.0)
        return
    shares = np.cumsum(energies) / energies.sum()
    assert found.energy_kept == pytest.approx(shares[found.k - 1], abs=1e-12)
    assert found.energy_kept >= alpha - 1e-12
    if found.k > 1 and alpha < 1:
        assert shares[found.k - 2] < alpha + 1e-12


def test_an_empty_history_removes_nothing():
    r = residual(7, 0)
    found = History(7, capacity=3).project(r, alpha=0.9)
    np.testing.assert_array_equal(found.innovation, r)
    assert (found.k, found.energy_kept, found.historical_energy, found.share) == (0, 0.0, 0.0, 0.0)


def test_a_zero_residual_stays_zero():
    found = remember(np.ones((2, 5))).project(np.zeros(5), alpha=0.9)
    np.testing.assert_array_equal(found.innovation, np.zeros(5))
    assert found.share == 0.0


def test_alpha_one_removes_everything_that_history_spans():
    H = np.random.default_rng(1).normal(size=(6, 50))
    r = np.arange(6.0) @ H
    found = remember(H).project(r, alpha=1.0)
    assert np.abs(found.innovation).max() <= 1e-12 * np.abs(r).max()
    assert found.share == pytest.approx(1.0)
    assert found.k == 6


def test_the_residual_is_not_changed_in_place():
    H = np.random.default_rng(1).normal(size=(3, 20))
    for alpha in (0.9, 1.0):
        r = residual(20, 2)
        kept = r.copy()
        remember(H).project(r, alpha=alpha)
        np.testing.assert_array_equal(r, kept)


# --- growing, forgetting, weighting ----------------------------------------------------------------


@quick
@given(H=vectors(max_vectors=9), capacity=st.integers(1, 9), alpha=energy_thresholds, seed=st.integers(0, 99))
def test_memory_is_a_history_of_the_latest_only(H, capacity, alpha, seed):
    r = residual(H.shape[1], seed)
    latest = H[-capacity:]
    assume(oracle(latest, r, alpha)[2])
    ring = History(H.shape[1], capacity)
    for h in H:
        ring.append(h)
        ring.project(r, alpha=alpha)  # every round, as the loop does
    late = remember(H, capacity=capacity)  # none before the last: the Gram matrix is filled at once
    assert len(ring) == len(late) == len(latest)
    np.testing.assert_array_equal(ring.vectors, latest)
    expected = remember(latest).project(r, alpha=alpha)
    for found in (ring.project(r, alpha=alpha), late.project(r, alpha=alpha)):
        assert found.k == expected.k
        np.testing.assert_allclose(found.innovation, expected.innovation, atol=1e-9 * np.linalg.norm(r))


@quick
@given(H=vectors(max_rows=20, max_vectors=6), alpha=energy_thresholds, seed=st.integers(0, 99), data=st.data())
def test_history_weights_equal_repeated_samples(H, alpha, seed, data):
    n = H.shape[1]
    weight = np.array(data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)), dtype=float)
    r = residual(n, seed)
    assume(oracle(H, r, alpha, weight)[2])
    rows = np.repeat(np.arange(n), weight.astype(int))
    weighted = remember(H, sample_weight=weight).project(r, alpha=alpha)
    repeated = remember(H[:, rows]).project(r[rows], alpha=alpha)
    assert weighted.k == repeated.k
    np.testing.assert_allclose(weighted.innovation[rows], repeated.innovation, atol=1e-9 * np.linalg.norm(r))
    assert weighted.historical_energy == pytest.approx(repeated.historical_energy, abs=1e-9 * (weight @ r**2))


@quick
@given(
    H=vectors(max_rows=20, max_vectors=6),
    alpha=energy_thresholds,
    gamma=st.floats(0, 1),
    seed=st.integers(0, 99),
    weighted=st.booleans(),
)
def test_the_hessian_is_the_metric(H, alpha, gamma, seed, weighted):
    # Newton steps r / c are projected, with the Hessians c as weights of the samples, and scaled back.
    n = H.shape[1]
    rng = np.random.default_rng(seed)
    r, c = rng.normal(size=n), rng.uniform(0.1, 1, size=n)
    weight = rng.uniform(0.5, 2, size=n) if weighted else None
    metric = c if weight is None else c * weight
    p, k, firm = oracle(H, r / c, alpha, metric)
    assume(firm)
    found = remember(H, sample_weight=weight).project(r, alpha=alpha, gamma=gamma, hessian=c)
    assert found.k == k
    np.testing.assert_allclose(found.innovation, r - gamma * c * p, atol=1e-8 * np.linalg.norm(r / c))
    assert found.historical_energy == pytest.approx(metric @ p**2, abs=1e-8 * (metric @ (r / c) ** 2))
    total = found.historical_energy + found.innovation_energy
    assert total == pytest.approx(metric @ (r / c) ** 2, rel=1e-9)


@pytest.mark.parametrize("alpha", [0.9, 1.0])
def test_constant_hessian_equals_no_hessian(alpha):
    rng = np.random.default_rng(0)
    H, r = rng.normal(size=(4, 30)), rng.normal(size=30)
    history = remember(H)
    plain = history.project(r, alpha=alpha)
    equal = history.project(r, alpha=alpha, hessian=np.full(30, 0.25))
    np.testing.assert_allclose(equal.innovation, plain.innovation, atol=1e-12)
    assert equal.share == pytest.approx(plain.share)
    history.project(r, alpha=alpha, hessian=rng.uniform(0.1, 1, size=30))
    again = history.project(r, alpha=alpha)
    np.testing.assert_allclose(again.innovation, plain.innovation, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.9, 1.0])
def test_reserve_makes_room_without_forgetting(alpha):
    rng = np.random.default_rng(0)
    H = rng.normal(size=(7, 30))
    r = rng.normal(size=30)
    history = remember(H[:3], capacity=3)
    history.project(r, alpha=alpha)
    history.reserve(7)
    history.reserve(2)  # never shrinks
    for h in H[3:]:
        history.append(h)
    np.testing.assert_array_equal(history.vectors, H)
    expected = remember(H).project(r, alpha=alpha)
    np.testing.assert_allclose(history.project(r, alpha=alpha).innovation, expected.innovation, atol=1e-12)


def test_reserve_after_forgetting_is_an_error():
    history = remember(np.ones((3, 4)), capacity=2)
    with pytest.raises(ValueError, match="capacity=5"):
        history.reserve(5)


@pytest.mark.parametrize("alpha", [0.9, 1.0])
def test_blocks_of_samples_do_not_change_the_result(alpha):
    # More samples than one block, so that sums are over several blocks.
    rng = np.random.default_rng(3)
    H = rng.normal(size=(4, 70_001))
    r = rng.normal(size=70_001)
    p, k, _ = oracle(H, r, alpha)
    found = remember(H).project(r, alpha=alpha)
    assert found.k == k
    np.testing.assert_allclose(found.innovation, r - p, atol=1e-9)


# --- what the method is for ------------------------------------------------------------------------


@quick
@given(H=vectors(max_rows=30), alpha=energy_thresholds, seed=st.integers(0, 99))
def test_one_step_removes_the_correlation_with_the_learner(H, alpha, seed):
    r = residual(H.shape[1], seed)
    history = remember(H)
    found = history.project(r, alpha=alpha)
    q = found.innovation
    h = history.project(residual(H.shape[1], seed + 1), alpha=alpha).innovation  # in the range of I - P
    assume(np.linalg.norm(h) > 1e-3)
    assume(np.linalg.norm(q) > 1e-3)
    h = h / np.linalg.norm(h)
    cosine = q @ h / np.linalg.norm(q)
    after = r - (q @ h) * h
    expected = found.historical_energy + (1 - cosine**2) * found.innovation_energy
    assert after @ after == pytest.approx(expected, abs=1e-7 * (r @ r))


def test_expected_noise_energy_follows_the_proposition():
    # Fixed history, residual = signal + N(0, nu^2 I): what is left of the noise has (n - k) nu^2 energy on average.
    rng = np.random.default_rng(0)
    n, nu, repeats, delta = 60, 0.7, 4000, 0.05
    history = remember(rng.normal(size=(15, n)))
    signal = rng.normal(size=n)
    split = history.project(signal, alpha=0.8)
    k = split.k
    assert 1 < k < 15
    noise = nu * rng.normal(size=(repeats, n))
    left = np.array([history.project(e, alpha=0.8).innovation for e in noise])
    energies = np.sum(left**2, axis=1)
    d = n - k
    standard_error = nu**2 * np.sqrt(2 * d / repeats)
    assert abs(energies.mean() - d * nu**2) < 4 * standard_error
    assert stats.kstest(energies / nu**2, stats.chi2(d).cdf).pvalue > 1e-3
    bound = nu**2 * (d + 2 * np.sqrt(d * np.log(1 / delta)) + 2 * np.log(1 / delta))
    assert np.mean(energies > bound) <= delta

    snr_before = signal @ signal / np.mean(np.sum(noise**2, axis=1))
    snr_after = split.innovation @ split.innovation / energies.mean()
    assert snr_after / snr_before == pytest.approx((1 - split.share) / (1 - k / n), rel=0.01)
