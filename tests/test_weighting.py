import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, lsq_linear, minimize, nnls

from scboost._core.losses import (
    GammaLoss,
    HuberLoss,
    LogisticLoss,
    PoissonLoss,
    QuantileLoss,
    QuantilesLoss,
    SoftmaxLoss,
    SquaredLoss,
    TweedieLoss,
)
from scboost._core.weighting.losses import margin_loss
from scboost.weighting import LOGISTIC, SQUARED_ERROR, learn_weights, nonnegative_weights, simplex_weights

LOSSES = {"logistic": LOGISTIC, "squared error": SQUARED_ERROR}


def make(m, T, seed=0, scale=1.0):
    """Learners that all know something of the same signal, and labels with noise (both classes present)."""
    rng = np.random.default_rng(seed)
    signal = rng.normal(size=m)
    y = (signal + 0.7 * rng.normal(size=m) > 0).astype(float)
    y[:2] = 0, 1
    H = scale * np.tanh(signal[:, None] * rng.uniform(0, 1, T) + rng.normal(size=(m, T)))
    return H, y


def covariance(H, s=None):
    return np.atleast_2d(np.cov(H, rowvar=False, aweights=s, ddof=0))


def objective(w, H, y, *, lam=0.0, s=None, offset=0.0, b=0.0, ridge=0.0, w0=1.0, loss="logistic"):
    """The definition, written independently of the module."""
    F = offset + b + H @ w
    each = np.log1p(np.exp(-np.abs(F))) + np.maximum(F, 0) - y * F if loss == "logistic" else (F - y) ** 2 / 2
    w0 = np.broadcast_to(w0, w.shape)
    return np.average(each, weights=s) + lam * w @ covariance(H, s) @ w + ridge / len(w) * np.sum((w - w0) ** 2)


@st.composite
def problems(draw):
    m = draw(st.integers(3, 40))
    T = draw(st.integers(1, 6))
    H, y = make(m, T, draw(st.integers(0, 10_000)), draw(st.sampled_from([0.1, 1.0, 5.0])))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    for j in range(T):
        kind = draw(st.sampled_from(["own", "own", "own", "zero", "constant", "copy"]))
        if kind != "own":
            H[:, j] = {"zero": 0.0, "constant": 0.3, "copy": H[:, 0]}[kind]
    return {
        "H": H,
        "y": y,
        "s": rng.uniform(0.1, 2, m) if draw(st.booleans()) else None,
        "offset": rng.normal(size=m) if draw(st.booleans()) else np.zeros(m),
        "lam": draw(st.sampled_from([0.0, 0.01, 1.0, 100.0])),
        "loss": draw(st.sampled_from(sorted(LOSSES))),
    }


def solve_simplex(p, **options):
    return simplex_weights(
        p["H"],
        p["y"],
        covariance_penalty=p["lam"],
        sample_weight=p["s"],
        offset=p["offset"],
        loss=LOSSES[p["loss"]],
        **options,
    )


def solve_nonnegative(p, **options):
    return nonnegative_weights(
        p["H"],
        p["y"],
        covariance_penalty=p["lam"],
        sample_weight=p["s"],
        offset=p["offset"],
        loss=LOSSES[p["loss"]],
        **options,
    )


@settings(deadline=None, max_examples=60)
@given(problems(), st.integers(0, 3))
def test_simplex_gap_bounds_the_distance_from_scipys_optimum(p, steps):
    T = p["H"].shape[1]
    f = lambda w: objective(w, **p)  # noqa: E731 - the oracle's closure
    oracle = minimize(
        f,
        np.full(T, 1 / T),
        method="SLSQP",
        bounds=[(0, 1)] * T,
        constraints=LinearConstraint(np.ones(T), 1, 1),
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    reached = f(np.maximum(oracle.x, 0) / np.maximum(oracle.x, 0).sum())
    best = solve_simplex(p)
    assert best.converged
    assert best.weights.min() >= 0
    assert best.weights.sum() == pytest.approx(1, abs=1e-12)
    assert best.objective == pytest.approx(f(best.weights), rel=1e-11, abs=1e-11)
    assert best.objective - best.gap <= reached + 1e-8 * max(1, abs(reached))
    assert best.objective <= reached + 1e-8 * max(1, abs(reached))
    early = solve_simplex(p, max_iter=steps)
    assert early.n_iterations <= steps
    assert early.gap >= 0
    assert early.gap >= early.objective - best.objective - 1e-12 * max(1, abs(best.objective))
    assert best.objective <= early.objective + 1e-9 * max(1, abs(best.objective))


@settings(deadline=None, max_examples=60)
@given(problems(), st.integers(0, 3), st.sampled_from([1e-3, 0.1, 10.0]), st.booleans())
def test_nonnegative_gap_bounds_the_distance_from_scipys_optimum(p, steps, ridge, intercept):
    T = p["H"].shape[1]
    f = lambda x: objective(x[1:], **p, b=x[0], ridge=ridge)  # noqa: E731 - the oracle's closure
    oracle = minimize(
        f,
        np.r_[0.0, np.ones(T)],
        method="L-BFGS-B",
        bounds=[(None, None) if intercept else (0, 0)] + [(0, None)] * T,
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000, "maxfun": 100_000},
    )
    best = solve_nonnegative(p, ridge=ridge, intercept=intercept)
    assert best.converged
    assert best.weights.min() >= 0
    assert intercept or best.intercept == 0
    assert best.objective == pytest.approx(f(np.r_[best.intercept, best.weights]), rel=1e-11, abs=1e-11)
    assert best.objective == pytest.approx(best.loss + best.covariance_term + best.ridge_term)
    assert best.objective <= oracle.fun + 1e-8 * max(1, oracle.fun)
    assert best.objective - best.gap <= oracle.fun + 1e-10 * max(1, oracle.fun)
    early = solve_nonnegative(p, ridge=ridge, intercept=intercept, max_iter=steps)
    assert early.gap >= early.objective - best.objective - 1e-12 * max(1, best.objective)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("m", "T"), [(200, 30), (20, 60)])
def test_squared_error_matches_an_exact_nonnegative_least_squares(m, T, intercept):
    H, _ = make(m, T, 1)
    y = np.random.default_rng(1).normal(size=m) + H[:, 0]
    lam, ridge = 0.3, 0.05
    # The objective as one least-squares problem: samples, covariance penalty, ridge penalty.
    root = np.linalg.cholesky(covariance(H) + 1e-15 * np.eye(T)).T if m > T else (H - H.mean(0)) / np.sqrt(m)
    centre = (lambda a: a - a.mean(0)) if intercept else (lambda a: a)
    A = np.vstack([centre(H) / np.sqrt(2 * m), np.sqrt(lam) * root, np.sqrt(ridge / T) * np.eye(T)])
    target = np.concatenate([centre(y) / np.sqrt(2 * m), np.zeros(len(root)), np.full(T, np.sqrt(ridge / T))])
    w, residual = nnls(A, target)
    found = nonnegative_weights(H, y, covariance_penalty=lam, ridge=ridge, intercept=intercept, loss=SQUARED_ERROR)
    np.testing.assert_allclose(found.weights, w, atol=1e-5)
    assert found.objective == pytest.approx(residual**2, abs=1e-9)
    if intercept:
        assert found.intercept == pytest.approx((y - H @ w).mean(), abs=1e-5)


def test_squared_error_on_the_simplex_matches_the_optimality_conditions_of_an_exact_solver():
    H, _ = make(300, 40, 2)
    y = np.random.default_rng(2).normal(size=300) + 2 * H[:, :3].mean(axis=1)
    found = simplex_weights(H, y, loss=SQUARED_ERROR, tol=1e-13)
    # On the simplex sum(w) = 1, so a heavily weighted row for it turns the problem into bounded least squares.
    A = np.vstack([H, np.full(40, 1e5)])
    oracle = lsq_linear(A, np.r_[y, 1e5], bounds=(0, np.inf), method="bvls", tol=1e-14)
    np.testing.assert_allclose(found.weights, oracle.x, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_loss_derivatives_are_the_numerical_ones(loss):
    F = np.linspace(-30, 30, 121)
    for y in (np.zeros_like(F), np.ones_like(F)):
        h = 1e-5
        slope = (loss.value(y, F + h) - loss.value(y, F - h)) / (2 * h)
        bend = (loss.gradient(y, F + h) - loss.gradient(y, F - h)) / (2 * h)
        np.testing.assert_allclose(loss.gradient(y, F), slope, atol=1e-8)
        np.testing.assert_allclose(loss.hessian(y, F), bend, atol=1e-9)


def test_logistic_loss_is_finite_and_exact_far_from_zero():
    F = np.array([-1e4, 1e4])
    np.testing.assert_array_equal(LOGISTIC.value(np.ones(2), F), [1e4, 0])
    np.testing.assert_array_equal(LOGISTIC.gradient(np.ones(2), F), [-1, 0])


def test_large_penalty_gives_minimum_variance_weights():
    # Independent columns of variance v_j have minimum-variance weights proportional to 1 / v_j.
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(np.column_stack([np.ones(60), rng.normal(size=(60, 4))]))
    sd = np.array([1.0, 2.0, 3.0, 5.0])
    H = basis[:, 1:] * np.sqrt(60) * sd
    found = simplex_weights(H, rng.integers(0, 2, 60), covariance_penalty=1e6)
    assert found.converged
    np.testing.assert_allclose(found.weights, sd**-2 / np.sum(sd**-2.0), atol=1e-5)


def test_large_penalty_spends_everything_on_a_learner_without_variance():
    H, y = make(50, 5)
    H[:, 2] = 0.7
    found = simplex_weights(H, y, covariance_penalty=1e6)
    np.testing.assert_allclose(found.weights, np.eye(5)[2], atol=1e-5)
    assert found.converged


def test_gap_is_reached_although_the_objective_no_longer_changes():
    # The last steps gain less than the objective's last digit, but the gap is of the order of their square root.
    H = np.array([[0.0, -4.1], [0.0, -0.27], [0.0, 1.2]])
    found = simplex_weights(H, [0, 1, 1], covariance_penalty=100.0)
    assert found.converged
    assert 0 < found.weights[1] < 1e-2


def test_one_learner_gets_all_the_weight():
    H, y = make(30, 1)
    found = simplex_weights(H, y, covariance_penalty=3.0)
    assert found.weights.tolist() == [1.0]
    assert found.gap == 0


@pytest.mark.parametrize("lam", [0.0, 0.5])
def test_duplicated_learners_may_split_their_weight_but_predict_the_same(lam):
    H, y = make(200, 8, 3, scale=4.0)
    twice = np.hstack([H, H])
    one = simplex_weights(H, y, covariance_penalty=lam, tol=1e-13)
    two = simplex_weights(twice, y, covariance_penalty=lam, tol=1e-13)
    assert two.converged
    np.testing.assert_allclose(twice @ two.weights, H @ one.weights, atol=1e-6)
    np.testing.assert_allclose(two.weights[:8] + two.weights[8:], one.weights, atol=1e-6)


def test_duplicated_learners_share_the_ridge_penalty_and_predict_the_same():
    # Two copies at w/2 each cost half of ridge |w|^2: with reference 0 and half the ridge times T, the fit agrees.
    H, y = make(200, 6, 3)
    one = nonnegative_weights(H, y, ridge=0.1, reference=np.zeros(6), tol=1e-13)
    two = nonnegative_weights(np.hstack([H, H]), y, ridge=0.4, reference=np.zeros(12), tol=1e-13)
    np.testing.assert_allclose(two.weights[:6] + two.weights[6:], one.weights, atol=1e-6)


@pytest.mark.parametrize("solve", [simplex_weights, nonnegative_weights])
def test_integer_weights_repeat_samples_and_zero_weights_remove_them(solve):
    H, y = make(120, 7, 4, scale=3.0)
    counts = np.random.default_rng(4).integers(0, 4, 120)
    offset = np.random.default_rng(5).normal(size=120)
    options = {"covariance_penalty": 0.2, "tol": 1e-12}
    weighted = solve(H, y, sample_weight=counts, offset=offset, **options)
    rows = np.repeat(np.arange(120), counts)
    repeated = solve(H[rows], y[rows], offset=offset[rows], **options)
    np.testing.assert_allclose(weighted.weights, repeated.weights, atol=1e-5)
    assert weighted.objective == pytest.approx(repeated.objective, abs=1e-11)


@pytest.mark.parametrize("solve", [simplex_weights, nonnegative_weights])
def test_scaling_all_sample_weights_changes_nothing(solve):
    H, y = make(80, 5)
    s = np.random.default_rng(1).uniform(0, 1, 80)
    one = solve(H, y, sample_weight=s, covariance_penalty=0.1)
    other = solve(H, y, sample_weight=1e6 * s, covariance_penalty=0.1)
    assert one.objective == pytest.approx(other.objective, rel=1e-9)


def test_learners_bounded_by_one_collapse_onto_few():
    # |F| <= 1 on the simplex: the logistic loss is almost linear there, and a linear function ends at a vertex.
    rng = np.random.default_rng(0)
    signal = rng.normal(size=400)
    y = (signal + rng.normal(size=400) > 0).astype(float)
    H = 0.3 * np.tanh(signal[:, None] * np.linspace(0, 1, 100) + 0.5 * rng.normal(size=(400, 100)))
    on_simplex = simplex_weights(H, y)
    free = nonnegative_weights(H, y, ridge=0.1)
    assert np.count_nonzero(on_simplex.weights) <= 2
    assert np.count_nonzero(free.weights) >= 20
    assert free.loss < on_simplex.loss


def test_strong_ridge_penalty_returns_the_reference():
    H, y = make(100, 6)
    reference = np.array([0.0, 0.5, 1.0, 2.0, 0.1, 3.0])
    found = nonnegative_weights(H, y, ridge=1e9, reference=reference)
    assert found.converged
    np.testing.assert_allclose(found.weights, reference, atol=1e-7)


def test_intercept_alone_recovers_the_log_odds():
    y = np.array([1, 1, 1, 0])
    found = nonnegative_weights(np.zeros((4, 3)), y, offset=np.full(4, 50.0))
    assert 50 + found.intercept == pytest.approx(np.log(3), abs=1e-9)
    assert found.weights.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize(("m", "T"), [(20, 60), (60, 20)])
def test_separable_data_still_converges(m, T, scale):
    H, y = make(m, T, 6)
    H[:, 0] = 2 * y - 1
    H *= scale
    assert simplex_weights(H, y).converged
    free = nonnegative_weights(H, y, ridge=1e-3)
    assert free.converged
    assert np.isfinite(free.intercept)


@pytest.mark.parametrize("lam", [0.0, 1e-3, 1e6])
@pytest.mark.parametrize("solve", [simplex_weights, nonnegative_weights])
def test_more_learners_than_samples_converges(solve, lam):
    H, y = make(40, 250, 7)
    assert solve(H, y, covariance_penalty=lam).converged


def test_ambiguity_decomposition_of_squared_loss():
    H, _ = make(100, 12, 8)
    y = np.random.default_rng(8).normal(size=100)
    w = simplex_weights(H, y, covariance_penalty=0.5, loss=SQUARED_ERROR).weights
    F = H @ w
    ensemble, average = (F - y) ** 2, ((H - y[:, None]) ** 2) @ w
    np.testing.assert_allclose(ensemble, average - ((H - F[:, None]) ** 2) @ w, atol=1e-12)


@pytest.mark.parametrize("solve", [simplex_weights, nonnegative_weights])
def test_float32_and_memory_order_do_not_matter(solve):
    H, y = make(3000, 20, 9, scale=3.0)
    single = solve(H.astype(np.float32), y, covariance_penalty=0.1).weights
    np.testing.assert_allclose(single, solve(H, y, covariance_penalty=0.1).weights, atol=1e-5)
    transposed = solve(np.asfortranarray(H), y, covariance_penalty=0.1).weights
    np.testing.assert_allclose(transposed, solve(H, y, covariance_penalty=0.1).weights, atol=1e-5)


@pytest.mark.parametrize("solve", [simplex_weights, nonnegative_weights])
@pytest.mark.parametrize("order", ["C", "F"])
def test_no_copy_of_the_contributions_is_made(solve, order):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200_000).astype(float)
    H = np.asarray(rng.standard_normal((200_000, 50), dtype=np.float32), order=order)
    tracemalloc.start()
    solve(H, y, covariance_penalty=0.1, max_iter=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.6 * H.nbytes


TARGETS = np.random.default_rng(3)
LOSSES_OF_BOOSTING = [
    (SoftmaxLoss(3), TARGETS.integers(0, 3, 200)),
    (SoftmaxLoss(3), TARGETS.dirichlet(np.ones(3), 200)),
    (PoissonLoss(), TARGETS.integers(0, 5, 200)),
    (HuberLoss(0.5), TARGETS.normal(size=200)),
    (SquaredLoss(), TARGETS.normal(size=200)),
    (LogisticLoss(), TARGETS.integers(0, 2, 200)),
    (LogisticLoss(), TARGETS.random(200)),
]
every_loss = pytest.mark.parametrize(("loss", "y"), LOSSES_OF_BOOSTING, ids=lambda v: type(v).__name__)


def second_derivative(margin, y, F, direction):
    """The second derivative along a direction, by the interface's definition for one output and for several."""
    c = margin.hessian(y, F)
    bend = c * direction**2
    if F.ndim == 1:
        return bend
    return bend.sum(axis=1) - (c * direction).sum(axis=1) ** 2 / c.sum(axis=1)


@every_loss
def test_margins_of_boosting_losses_have_the_derivatives_of_the_mean_loss(loss, y):
    y = y.astype(float)
    rng = np.random.default_rng(0)
    margin = margin_loss(loss, unit=4.0)
    shape = (200,) if loss.n_outputs == 1 else (200, loss.n_outputs)
    F, direction = rng.normal(size=shape), rng.normal(size=shape)
    if y.ndim == 1:
        assert margin.value(y, F).mean() == pytest.approx(loss.mean(y, np.atleast_2d(F.T)) / 4)
    slope = np.sum(margin.gradient(y, F) * direction)

    def total(t):
        return margin.value(y, F + t * direction).sum()

    assert slope == pytest.approx((total(1e-5) - total(-1e-5)) / 2e-5, rel=1e-5, abs=1e-6)
    bend = second_derivative(margin, y, F, direction).sum()
    numerical = (total(1e-3) - 2 * total(0.0) + total(-1e-3)) / 1e-6
    assert bend >= numerical - 1e-3
    if not isinstance(loss, HuberLoss):  # whose Hessian is an upper bound
        assert bend == pytest.approx(numerical, rel=1e-3)


def problem(loss, y, T=8, seed=10):
    rng = np.random.default_rng(seed)
    n, K = len(y), loss.n_outputs
    signal = np.eye(K)[y.astype(int)] if K > 1 and y.ndim == 1 else y.reshape(n, -1)
    A = 0.3 * rng.normal(size=(n, K, T)) + 0.4 * signal[:, :, None] * rng.uniform(0, 1, T)
    return A, rng.normal(size=K) * 0.1, rng.uniform(0, 2, n)


def stated_objective(z, A, y, loss, start, s, *, lam, ridge):
    """The definition of the problem, written independently of the package."""
    _, K, T = A.shape
    u, b = z[:T], z[T:]
    F = start + b + A @ u
    variance = np.average((y - np.average(y, weights=s)) ** 2, weights=s) if loss.translation_invariant else 1.0
    unit = np.average(y, weights=s) if isinstance(loss, PoissonLoss) else variance
    C = sum(np.cov(A[:, k], rowvar=False, aweights=s, ddof=0) for k in range(K))
    away = np.sum((u - 1) ** 2) + (np.sum(b**2) if K > 1 else 0)
    mean = np.average(loss.pointwise_loss(y.T, F.T), weights=s)
    return mean / unit + lam * u @ C @ u / variance + ridge / T * away


@every_loss
def test_learned_weights_minimize_the_stated_objective(loss, y):
    y = y.astype(float)
    A, start, s = problem(loss, y)
    _, K, T = A.shape
    f = lambda z: stated_objective(z, A, y, loss, start, s, lam=0.2, ridge=0.05)  # noqa: E731 - the oracle's closure
    bounds = [(0, None)] * T + [(None, None)] * K
    oracle = minimize(f, np.r_[np.ones(T), np.zeros(K)], bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-9})
    found = learn_weights(A, y, loss=loss, start=start, sample_weight=s, covariance_penalty=0.2, ridge=0.05)
    assert found.converged
    assert found.intercept.shape == (K,)
    assert found.objective == pytest.approx(f(np.r_[found.weights, found.intercept]), rel=1e-9)
    assert found.objective <= oracle.fun + 1e-8
    assert found.objective - found.gap <= oracle.fun + 1e-10
    np.testing.assert_allclose(found.weights, oracle.x[:T], atol=2e-3)


@every_loss
@pytest.mark.parametrize("method", ["nonnegative", "simplex"])
def test_layout_of_the_contributions_does_not_matter(loss, y, method):
    A, start, s = problem(loss, y)
    rounds_first = np.ascontiguousarray(A.transpose(2, 1, 0)).transpose(2, 1, 0)
    options = {"loss": loss, "start": start, "sample_weight": s, "method": method}
    found = learn_weights(A, y, **options)
    assert found.converged
    np.testing.assert_allclose(learn_weights(rounds_first, y, **options).weights, found.weights, atol=1e-6)
    if loss.n_outputs == 1:
        flat = learn_weights(A[:, 0], y, **options)
        np.testing.assert_allclose(flat.weights, found.weights, atol=1e-6)
    if method == "simplex":
        assert found.weights.sum() == pytest.approx(1)
        assert not found.intercept.any()


@pytest.mark.parametrize("method", ["nonnegative", "simplex"])
@pytest.mark.parametrize("unit", [1e-6, 1000.0, 1e9])
def test_weights_do_not_depend_on_the_unit_of_a_real_target(method, unit):
    y = np.random.default_rng(2).normal(size=200) + 5
    A, start, s = problem(SquaredLoss(), y)
    options = {"sample_weight": s, "method": method, "covariance_penalty": 0.1}
    for loss, scaled in ((SquaredLoss(), SquaredLoss()), (HuberLoss(0.5), HuberLoss(0.5 * unit))):
        one = learn_weights(A, y, loss=loss, start=start, **options)
        other = learn_weights(unit * A, unit * y, loss=scaled, start=unit * start, **options)
        assert other.converged
        np.testing.assert_allclose(other.weights, one.weights, atol=1e-5)
        np.testing.assert_allclose(other.intercept, unit * one.intercept, rtol=1e-4, atol=1e-6 * unit)
        assert other.objective == pytest.approx(one.objective, rel=1e-8)


@pytest.mark.parametrize("method", ["nonnegative", "simplex"])
@pytest.mark.parametrize("unit", [1e-6, 1000.0, 1e9])
@pytest.mark.parametrize("loss", [PoissonLoss(), TweedieLoss(1.5), GammaLoss()])
def test_weights_do_not_depend_on_the_unit_of_an_amount(loss, method, unit):
    y = np.random.default_rng(2).gamma(2, 3, size=200) + 0.1
    A, _, s = problem(loss, np.log(y))
    start = np.log(np.average(y, weights=s))
    options = {"loss": loss, "sample_weight": s, "method": method, "covariance_penalty": 0.1}
    one = learn_weights(A, y, start=start, **options)
    other = learn_weights(A, unit * y, start=start + np.log(unit), **options)
    assert one.converged
    assert other.converged
    np.testing.assert_allclose(other.weights, one.weights, atol=1e-4)
    np.testing.assert_allclose(other.intercept, one.intercept, atol=1e-4)


@pytest.mark.parametrize("loss", [PoissonLoss(), TweedieLoss(1.5)])
def test_targets_that_are_all_zero_give_weights(loss):
    A, start, s = problem(loss, np.zeros(50))
    found = learn_weights(A, np.zeros(50), loss=loss, start=start, sample_weight=s)
    assert found.converged
    np.testing.assert_allclose(found.weights, 1, atol=1e-3)  # the shift alone reaches the mean of zero


def test_two_outputs_that_mirror_each_other_weigh_as_one():
    # The softmax of (-F/2, F/2) is the logistic function of F; shifts are penalized for several outputs only.
    H, y = make(300, 6, 11)
    pair = np.stack([-H / 2, H / 2], axis=1)
    one = nonnegative_weights(H, y, intercept=False, ridge=0.05)
    two = nonnegative_weights(pair, y, intercept=False, ridge=0.05, loss=margin_loss(SoftmaxLoss(2)))
    np.testing.assert_allclose(two.weights, one.weights, atol=1e-5)
    assert two.n_iterations <= one.n_iterations + 2  # exact second derivatives


@pytest.mark.parametrize("loss", [QuantileLoss(), QuantilesLoss([0.1, 0.9])], ids=repr)
def test_a_quantile_has_no_weights(loss):
    with pytest.raises(ValueError, match="need a loss with a Hessian"):
        margin_loss(loss)
    with pytest.raises(ValueError, match="need a loss with a Hessian"):
        learn_weights(np.ones((4, 1)), np.arange(4.0), loss=loss)


def test_methods_of_weighting_are_checked():
    with pytest.raises(ValueError, match="method must be 'nonnegative' or 'simplex', got 'ridge'"):
        learn_weights(np.ones((4, 1)), np.arange(4.0), loss=SquaredLoss(), method="ridge")


def test_too_few_steps_are_reported():
    H, y = make(200, 30, scale=5.0)
    found = simplex_weights(H, y, max_iter=0)
    assert not found.converged
    assert found.n_iterations == 0
    np.testing.assert_allclose(found.weights, 1 / 30)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"H": np.ones(4)}, r"H must have shape \(m, T\).*got shape \(4,\)"),
        ({"H": np.ones((4, 0))}, r"H must have shape.*got shape \(4, 0\)"),
        ({"H": np.full((4, 2), np.nan)}, "H must be finite.*rows 0 to 3"),
        ({"H": np.ones((4, 2), dtype=complex)}, "H must be real numbers, got dtype complex128"),
        ({"y": [0, 1, 0]}, r"y must have shape \(4,\), got shape \(3,\)"),
        ({"y": [0, 1, 2, 0]}, "y must contain only 0 and 1.*got.*2.0"),
        ({"y": [0, 1, np.inf, 0]}, "y must be finite.*inf"),
        ({"sample_weight": [1, 1, 1, -1]}, "sample_weight must be non-negative and not all zero.*-1.0"),
        ({"sample_weight": [0, 0, 0, 0]}, "sample_weight must be non-negative and not all zero.*0.0"),
        ({"offset": [0, 0]}, r"offset must have shape \(4,\)"),
        ({"covariance_penalty": -0.5}, "covariance_penalty must be a finite number of at least 0, got -0.5"),
        ({"covariance_penalty": np.nan}, "covariance_penalty must be .* got nan"),
        ({"tol": -1.0}, "tol must be .* got -1.0"),
        ({"max_iter": -1}, "max_iter must be at least 0, got -1"),
    ],
)
def test_wrong_input_is_named(change, message):
    arguments = {"H": np.eye(4)[:, :2], "y": [0, 1, 0, 1]} | change
    for solve in (simplex_weights, nonnegative_weights):
        with pytest.raises(ValueError, match=message):
            solve(arguments["H"], arguments["y"], **{k: v for k, v in arguments.items() if k not in {"H", "y"}})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ridge": 0.0}, "ridge must be above 0, got 0.0"),
        ({"ridge": -1.0}, "ridge must be a finite number of at least 0, got -1.0"),
        ({"reference": [1.0]}, r"reference must have shape \(2,\), got shape \(1,\)"),
        ({"sample_weight": [1, 0, 1, 0]}, "both 0 and 1 where sample_weight > 0 if intercept=True, got only 0"),
    ],
)
def test_wrong_nonnegative_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        nonnegative_weights(np.eye(4)[:, :2], [0, 1, 0, 1], **options)
