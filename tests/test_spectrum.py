"""Eigenvectors of some rounds before serve a history that has grown since, against eigenvectors computed anew."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scboost import SCBoostClassifier
from scboost.boosting import history, spectrum
from scboost.boosting.history import History
from scboost.boosting.spectrum import GrowingSpectrum, zolotarev


def sign_of(x, gap):
    weights, squares = zolotarev(gap)
    return (weights * x[:, None] / (x[:, None] ** 2 + squares)).sum(axis=1)


@given(exponent=st.floats(-7, -0.1))
def test_the_sign_function(exponent):
    gap = 10**exponent
    x = np.geomspace(gap, 1, 3000)
    np.testing.assert_allclose(sign_of(x, gap), 1, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(sign_of(-x, gap), -sign_of(x, gap))
    assert np.all(np.abs(sign_of(np.linspace(-gap, gap, 99), gap)) < 1 + 1e-10)


def solved_anew(G, b, alpha):
    eigenvalues, V = np.linalg.eigh(G)
    eigenvalues, V = eigenvalues[::-1], V[:, ::-1]
    k = int(np.searchsorted(np.cumsum(eigenvalues), alpha * eigenvalues.sum())) + 1
    V = V[:, :k]
    return V @ (V.T @ b / eigenvalues[:k]), k, eigenvalues[:k].sum() / eigenvalues.sum()


def gram(rng, t, *, rank=None, decay=1.0):
    """Of vectors that are less and less, such as a history's."""
    H = rng.normal(size=(t, rank or 2 * t)) * np.arange(1, t + 1)[:, None] ** -decay
    return H @ H.T


@pytest.mark.parametrize("n_new", [1, 2, 7, 16])
@pytest.mark.parametrize("alpha", [0.3, 0.9, 0.99])
@pytest.mark.parametrize("decay", [0.0, 1.0])
@pytest.mark.parametrize("rank", [None, 30])
def test_the_leading_part_is_that_of_all_eigenvectors(n_new, alpha, decay, rank):
    rng = np.random.default_rng(n_new)
    G = gram(rng, 60 + n_new, rank=rank, decay=decay)
    b = G @ rng.normal(size=len(G))
    found = GrowingSpectrum(G[:60, :60], 16).solve(G, b, alpha, 1e-9)
    coefficients, k, kept = solved_anew(G, b, alpha)
    assert found is not None
    assert found.k == k
    assert found.kept == pytest.approx(kept, abs=1e-9)
    np.testing.assert_allclose(found.coefficients, coefficients, rtol=0, atol=1e-7 * np.abs(coefficients).max())


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("equal", [1, 4])
def test_rows_and_columns_may_come_one_by_one(seed, equal):
    """Also where some eigenvalues are equal, so that not every number of leading ones can be looked at."""
    rng = np.random.default_rng(seed)
    G = gram(rng, 56) if equal == 1 else np.diag(np.repeat(rng.uniform(1, 2, 56 // equal), equal)[rng.permutation(56)])
    growing = GrowingSpectrum(G[:40, :40], 16)
    for t in range(41, 57):
        b = rng.normal(size=t)
        at_once = GrowingSpectrum(G[:40, :40], 16)
        found, expected = (each.solve(G[:t, :t], b, 0.9, 1e-9) for each in (growing, at_once))
        assert (found is None) == (expected is None)
        if found is not None:
            assert (found.k, found.kept) == (expected.k, expected.kept)
            np.testing.assert_array_equal(found.coefficients, expected.coefficients)


def test_eigenvalues_that_cannot_be_parted_are_told():
    """Whichever of two equal ones is taken, its direction is arbitrary."""
    G = np.diag(np.repeat([4.0, 1.0], [3, 5]))
    b = np.ones(8)
    assert GrowingSpectrum(G[:7, :7], 2).solve(G, b, 0.5, 1e-9) is None
    assert GrowingSpectrum(G[:7, :7], 2).solve(G, b, 12 / 17 - 1e-3, 1e-9).k == 3
    assert GrowingSpectrum(G[:7, :7], 2).solve(G, b, 12 / 17 - 1e-3, 0.5) is not None
    assert GrowingSpectrum(G[:7, :7], 2).solve(G, b, 12 / 17 - 1e-3, 1.1) is None


@pytest.fixture
def short_rounds(monkeypatch):
    """What holds for hundreds of vectors, for a dozen."""
    monkeypatch.setattr(history, "_LONG", 12)
    monkeypatch.setattr(history, "_NEW", 4)


def residuals(rng, n, rounds, dtype=np.float64):
    """Vectors like those of a fit, and residuals."""
    H = np.cumsum(rng.normal(size=(rounds, n)), axis=0) * np.arange(1, rounds + 1)[:, None] ** -0.7
    return H.astype(dtype), rng.normal(size=(rounds, n)).astype(dtype)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_long_history_projects_like_its_singular_vectors(short_rounds, monkeypatch, weighted, dtype):
    n = 200
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.5, 2, n) if weighted else None
    root = np.ones(n) if weight is None else np.sqrt(weight)
    decomposed = []
    monkeypatch.setattr(
        spectrum.linalg.lapack, "dsyevd", lambda G, f=spectrum.linalg.lapack.dsyevd: decomposed.append(len(G)) or f(G)
    )
    long = History(n, 40, dtype, weight)
    for h, r in zip(*residuals(rng, n, 40, dtype), strict=True):
        found = long.project(r, alpha=0.9, gamma=0.5)
        if len(long):
            _, s, V = np.linalg.svd(long.vectors.astype(np.float64) * root, full_matrices=False)
            V = V[: found.k]
            p = (V.T @ (V @ (r * root))) / root
            assert found.k == np.searchsorted(np.cumsum(s**2), 0.9 * (s**2).sum()) + 1
            atol = 1e-9 if dtype is np.float64 else 1e-4
            np.testing.assert_allclose(found.innovation, r - 0.5 * p, rtol=0, atol=atol)
            assert found.historical_energy == pytest.approx(np.sum((p * root) ** 2), rel=10 * atol)
            assert found.energy_kept == pytest.approx((s[: found.k] ** 2).sum() / (s**2).sum(), rel=10 * atol)
        long.append(h)
    assert decomposed == [*range(13), *range(16, 40, 4)]


def test_a_copy_of_a_long_history_goes_on_alike(short_rounds):
    rng = np.random.default_rng(2)
    first = History(100, 30)
    H, R = residuals(rng, 100, 30)
    for t in range(22):
        first.project(R[t], alpha=0.9)
        first.append(H[t])
    second = copy.deepcopy(first)
    for t in range(22, 30):
        pair = [a.project(R[t], alpha=0.9) for a in (first, second)]
        np.testing.assert_array_equal(*(p.innovation for p in pair))
        first.append(H[t])
        second.append(H[t])


def test_a_long_history_of_nothing_leaves_a_residual_as_it_is(short_rounds):
    nothing = History(50, 20)
    r = np.arange(50.0)
    for _ in range(20):
        nothing.append(np.zeros(50))
        found = nothing.project(r, alpha=0.9)
        np.testing.assert_array_equal(found.innovation, r)
        assert (found.k, found.energy_kept, found.historical_energy) == (0, 0, 0)


@pytest.mark.parametrize("capacity", [14, 30])
def test_a_history_that_forgets_or_is_curved_needs_all_eigenvectors(short_rounds, capacity):
    """Its first rows and columns do not stay what they were."""
    rng = np.random.default_rng(3)
    H, R = residuals(rng, 100, 30)
    forgetting, curvature = History(100, capacity), rng.uniform(0.1, 1, 100)
    for t in range(30):
        c = curvature if capacity == 30 else None
        found = forgetting.project(R[t], alpha=0.9, curvature=c)
        fresh = History(100, 1000)
        for h in forgetting.vectors:
            fresh.append(h)
        expected = fresh.project(R[t], alpha=0.9, curvature=c)
        np.testing.assert_allclose(found.innovation, expected.innovation, atol=1e-9)
        forgetting.append(H[t])


def test_whole_fits_are_the_same_up_to_rounding(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    y = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=600) > 0
    model = SCBoostClassifier.from_paper(n_estimators=40, weighting=None, n_jobs=1)
    anew = copy.deepcopy(model).fit(X, y)
    monkeypatch.setattr(history, "_LONG", 16)
    monkeypatch.setattr(history, "_NEW", 8)
    grown = model.fit(X, y)
    np.testing.assert_array_equal(grown.training_log_["components"], anew.training_log_["components"])
    np.testing.assert_allclose(grown.training_log_["energy_removed"], anew.training_log_["energy_removed"], rtol=1e-5)
    np.testing.assert_allclose(grown.decision_function(X), anew.decision_function(X), atol=1e-5)
