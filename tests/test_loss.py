"""Losses: derivatives, optimal constants, links, and agreement between losses that are special cases of each other."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special
from sklearn.metrics import (
    log_loss,
    mean_gamma_deviance,
    mean_pinball_loss,
    mean_poisson_deviance,
    mean_tweedie_deviance,
)

from scboost._core.leaves import leaf_values
from scboost._core.losses import (
    ExpectileLoss,
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
from scboost._core.statistics import weighted_quantile
from scboost._runtime.communicator import SINGLE_PROCESS
from scboost._runtime.context import Context

LOSSES = {
    "logistic": LogisticLoss(),
    "softmax": SoftmaxLoss(3),
    "squared": SquaredLoss(),
    "quantile": QuantileLoss(0.3),
    "huber": HuberLoss(0.7),
    "poisson": PoissonLoss(),
    "gamma": GammaLoss(),
    "tweedie": TweedieLoss(1.3),
    "expectile": ExpectileLoss(0.8),
    "quantiles": QuantilesLoss([0.1, 0.5, 0.8]),
}
quick = settings(deadline=None, max_examples=30)


def targets(name, n, seed):
    rng = np.random.default_rng(seed)
    if name == "logistic":
        return np.r_[0.0, 1.0, rng.integers(2, size=n - 2)]
    if name == "softmax":
        return np.r_[0.0, 1.0, 2.0, rng.integers(3, size=n - 3)]
    if name == "poisson":
        return np.r_[1.0, rng.poisson(2.0, size=n - 1)]
    if name in {"gamma", "tweedie"}:
        y = rng.gamma(2.0, size=n)
        return np.where(rng.uniform(size=n) < 0.3, 0.0, y) + (np.arange(n) == 0) if name == "tweedie" else y
    return rng.normal(size=n)


def scores(name, n, seed):
    return np.random.default_rng(seed + 1000).normal(size=(LOSSES[name].n_outputs, n))


@pytest.mark.parametrize("name", LOSSES)
@quick
@given(seed=st.integers(0, 10_000))
def test_gradient_is_the_first_derivative(name, seed):
    loss, y, F = LOSSES[name], targets(name, 8, seed), scores(name, 8, seed)
    gradient, _ = loss.gradient_hessian(y, F)
    step = 1e-5
    if name in {"quantile", "quantiles", "huber"}:  # away from their kinks
        F = np.where(np.abs(np.abs(y - F) - 0.7) < 2 * step, F + 0.01, F)
        F = np.where(np.abs(y - F) < 2 * step, F + 0.01, F)
        gradient, _ = loss.gradient_hessian(y, F)
    for k in range(loss.n_outputs):
        shift = np.zeros_like(F)
        shift[k] = step
        numerical = (loss.pointwise_loss(y, F + shift) - loss.pointwise_loss(y, F - shift)) / (2 * step)
        np.testing.assert_allclose(gradient[k], numerical, atol=1e-8)


@pytest.mark.parametrize("name", ["logistic", "squared", "poisson", "softmax", "gamma", "tweedie"])
@quick
@given(seed=st.integers(0, 10_000))
def test_hessian_is_the_second_derivative(name, seed):
    loss, y, F = LOSSES[name], targets(name, 8, seed), scores(name, 8, seed)
    _, hessian = loss.gradient_hessian(y, F)
    # Softmax uses twice the diagonal, an upper bound of the whole second derivative.
    factor = 2 if name == "softmax" else 1
    step = 1e-5
    for k in range(loss.n_outputs):
        shift = np.zeros_like(F)
        shift[k] = step
        up, down = (loss.gradient_hessian(y, F + sign * shift)[0][k] for sign in (1, -1))
        numerical = (up - down) / (2 * step)
        np.testing.assert_allclose(hessian[k], factor * numerical, atol=1e-8)


@quick
@given(F=st.lists(st.floats(-5, 5), min_size=4, max_size=4))
def test_softmax_hessian_bounds_the_second_derivative(F):
    p = special.softmax(F)
    bound = SoftmaxLoss(4).gradient_hessian(np.array([0.0]), np.array(F)[:, None])[1][:, 0]
    assert np.linalg.eigvalsh(np.diag(bound) - (np.diag(p) - np.outer(p, p))).min() >= -1e-12


@pytest.mark.parametrize("name", ["quantile", "huber"])
def test_losses_without_hessian_everywhere_use_one(name):
    _, hessian = LOSSES[name].gradient_hessian(targets(name, 8, 0), scores(name, 8, 0))
    np.testing.assert_array_equal(hessian, np.ones((1, 8)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", LOSSES)
@quick
@given(seed=st.integers(0, 10_000))
def test_initial_score_minimizes_the_mean_loss(name, weighted, seed):
    loss, y = LOSSES[name], targets(name, 30, seed)
    weight = np.random.default_rng(seed).uniform(0.5, 2, size=30) if weighted else None

    def mean(constant):
        return loss.mean(y, np.repeat(np.reshape(constant, (-1, 1)), 30, axis=1), weight)

    start = loss.initial_score(y, weight)
    assert start.shape == (loss.n_outputs,)
    if loss.n_outputs == 1:
        best = optimize.minimize_scalar(mean, bounds=(-10, 10), method="bounded", options={"xatol": 1e-10}).fun
    else:
        best = optimize.minimize(mean, np.zeros(loss.n_outputs), method="BFGS").fun
    assert mean(start) <= best + 1e-9


def test_integer_weights_equal_repeated_samples_in_the_initial_score():
    for name, loss in LOSSES.items():
        y, weight = targets(name, 12, 5), np.tile([1.0, 2.0, 3.0], 4)
        repeated = np.repeat(y, weight.astype(int))
        np.testing.assert_allclose(
            loss.initial_score(y, weight), loss.initial_score(repeated, None), atol=1e-9, err_msg=name
        )


@quick
@given(seed=st.integers(0, 10_000))
def test_two_class_softmax_is_the_binary_loss(seed):
    y = targets("logistic", 20, seed)
    F = scores("logistic", 20, seed)
    both = np.vstack([-F / 2, F / 2])
    binary, softmax = LogisticLoss(), SoftmaxLoss(2)
    np.testing.assert_allclose(softmax.pointwise_loss(y, both), binary.pointwise_loss(y, F), atol=1e-12)
    np.testing.assert_allclose(softmax.link.inverse(both), binary.link.inverse(F), atol=1e-12)
    (r2, c2), (r1, c1) = softmax.gradient_hessian(y, both), binary.gradient_hessian(y, F)
    np.testing.assert_allclose(r2[1], r1[0], atol=1e-12)
    # Both outputs step, so that F moves by twice the step of one: with twice the Hessian the Newton steps agree.
    np.testing.assert_allclose(2 * r2[1] / c2[1], r1[0] / c1[0], rtol=1e-9)
    start = softmax.initial_score(y, None)
    np.testing.assert_allclose(start[1] - start[0], binary.initial_score(y, None)[0], atol=1e-12)


@quick
@given(seed=st.integers(0, 10_000))
def test_special_cases_agree(seed):
    y, F = targets("squared", 15, seed), scores("squared", 15, seed)
    wide = HuberLoss(1e6)
    np.testing.assert_allclose(wide.pointwise_loss(y, F), SquaredLoss().pointwise_loss(y, F), rtol=1e-12)
    np.testing.assert_allclose(wide.gradient_hessian(y, F)[0], SquaredLoss().gradient_hessian(y, F)[0], rtol=1e-12)
    np.testing.assert_allclose(wide.initial_score(y, None), SquaredLoss().initial_score(y, None), atol=1e-9)
    np.testing.assert_allclose(QuantileLoss(0.5).pointwise_loss(y, F), np.abs(y - F[0]) / 2, rtol=1e-12)
    np.testing.assert_allclose(QuantileLoss(0.5).initial_score(y, None), [np.median(y)], atol=1e-12)
    np.testing.assert_allclose(ExpectileLoss(0.5).pointwise_loss(y, F), SquaredLoss().pointwise_loss(y, F), rtol=1e-12)
    np.testing.assert_allclose(
        ExpectileLoss(0.5).gradient_hessian(y, F)[0], SquaredLoss().gradient_hessian(y, F)[0], rtol=1e-12
    )
    counts = targets("poisson", 15, seed)
    np.testing.assert_allclose(
        TweedieLoss(1 + 1e-9).gradient_hessian(counts, F)[0], PoissonLoss().gradient_hessian(counts, F)[0], atol=1e-6
    )


def test_mean_agrees_with_scikit_learn():
    deviances = {"gamma": mean_gamma_deviance, "tweedie": partial(mean_tweedie_deviance, power=1.3)}
    for name, deviance in deviances.items():
        y, F = targets(name, 40, 1), scores(name, 40, 1)
        other = F + 0.3  # the constant of the target drops out of differences
        change = LOSSES[name].mean(y, F) - LOSSES[name].mean(y, other)
        assert change == pytest.approx((deviance(y, np.exp(F[0])) - deviance(y, np.exp(other[0]))) / 2, rel=1e-9)
    weight = np.random.default_rng(0).uniform(0.5, 2, size=40)
    y, F = targets("logistic", 40, 1), scores("logistic", 40, 1)
    expected = log_loss(y, LOSSES["logistic"].link.inverse(F), sample_weight=weight)
    assert LOSSES["logistic"].mean(y, F, weight) == pytest.approx(expected, rel=1e-12)
    y, F = targets("softmax", 40, 1), scores("softmax", 40, 1)
    expected = log_loss(y, LOSSES["softmax"].link.inverse(F), sample_weight=weight)
    assert LOSSES["softmax"].mean(y, F, weight) == pytest.approx(expected, rel=1e-12)
    y, F = targets("quantile", 40, 1), scores("quantile", 40, 1)
    expected = mean_pinball_loss(y, F[0], alpha=0.3, sample_weight=weight)
    assert LOSSES["quantile"].mean(y, F, weight) == pytest.approx(expected, rel=1e-12)
    y, F = targets("poisson", 40, 1), scores("poisson", 40, 1)
    constant = np.average(special.xlogy(y, y) - y, weights=weight)
    expected = mean_poisson_deviance(y, np.exp(F[0]), sample_weight=weight) / 2 - constant
    assert LOSSES["poisson"].mean(y, F, weight) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", LOSSES)
def test_residuals_keep_the_dtype_of_the_scores(name, dtype):
    y, F = targets(name, 9, 0).astype(dtype), scores(name, 9, 0).astype(dtype)
    kept = F.copy()
    r, hessian = LOSSES[name].gradient_hessian(y, F)
    assert r.dtype == hessian.dtype == dtype
    assert r.shape == hessian.shape == F.shape
    np.testing.assert_array_equal(F, kept)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "y"), [("logistic", [0.0, 1.0]), ("softmax", [0.0, 2.0])])
def test_saturated_probabilities_stay_finite_and_keep_some_hessian(name, y, dtype):
    F = np.full((LOSSES[name].n_outputs, 2), -200.0, dtype=dtype)
    F[-1] = 200.0
    for sign in (1, -1):
        r, hessian = LOSSES[name].gradient_hessian(np.array(y, dtype=dtype), sign * F)
        assert np.isfinite(r).all()
        assert (hessian > 0).all()
        assert np.isfinite(LOSSES[name].pointwise_loss(np.array(y, dtype=dtype), sign * F)).all()


# --- leaf steps ------------------------------------------------------------------------------------


def steps_of(loss, leaf, n_leaves, y, F, weight, l2, l1=0.0):
    """Leaf values of one output."""
    gradient, hessian = loss.gradient_hessian(y, F)
    (steps,) = leaf_values([(leaf, n_leaves)], loss, y, F, -gradient, hessian, weight, l2, l1, Context())
    return steps


@pytest.mark.parametrize("l1", [0.0, 4.0, 1e6])
@pytest.mark.parametrize("l2", [0.0, 2.5])
@pytest.mark.parametrize("name", ["squared", "poisson", "gamma", "tweedie"])
def test_leaf_values_minimize_the_loss_under_both_penalties(name, l2, l1):
    loss, y, F = LOSSES[name], targets(name, 60, 3), scores(name, 60, 3)
    rng = np.random.default_rng(4)
    leaf, weight = rng.integers(3, size=60), rng.uniform(0.5, 2, size=60)
    steps = steps_of(loss, leaf, 4, y, F, weight, l2, l1)
    assert steps[3] == 0
    for j in range(3):
        rows = leaf == j

        def cost(s, rows=rows):
            return weight[rows] @ loss.pointwise_loss(y[rows], F[:, rows] + s) + l2 * s**2 / 2 + l1 * abs(s)

        assert cost(steps[j]) <= min(cost(s) for s in np.linspace(-3, 3, 6001)) + 1e-9
        if l1 == 1e6:
            assert abs(steps[j]) < 1e-15


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("l2", [0.0, 2.5])
@pytest.mark.parametrize("name", ["logistic", "squared"])
def test_newton_step_minimizes_the_quadratic_model_of_its_leaf(name, l2, weighted):
    loss, y, F = LOSSES[name], targets(name, 40, 3), scores(name, 40, 3)
    rng = np.random.default_rng(4)
    leaf = rng.integers(3, size=40)
    weight = rng.uniform(0.5, 2, size=40) if weighted else None
    gradient, hessian = loss.gradient_hessian(y, F)
    steps = steps_of(loss, leaf, 4, y, F, weight, l2)
    w = np.ones(40) if weight is None else weight
    for j in range(3):
        rows = leaf == j
        slope = np.sum(w[rows] * (gradient[0, rows] + hessian[0, rows] * steps[j])) + l2 * steps[j]
        assert slope == pytest.approx(0, abs=1e-10)
    assert steps[3] == 0  # a leaf without samples has value 0


@pytest.mark.parametrize("l2", [0.0, 2.5])
@pytest.mark.parametrize("name", ["gamma", "tweedie"])
def test_leaf_values_of_tweedie_and_gamma_minimize_the_penalized_loss(name, l2):
    loss, y, F = LOSSES[name], targets(name, 60, 3), 3 * scores(name, 60, 3)
    rng = np.random.default_rng(4)
    leaf, weight = rng.integers(3, size=60), rng.uniform(0.5, 2, size=60)
    steps = steps_of(loss, leaf, 4, y, F, weight, l2)
    for j in range(3):
        rows = leaf == j
        slope = np.sum(weight[rows] * loss.gradient_hessian(y[rows], F[:, rows] + steps[j])[0][0]) + l2 * steps[j]
        assert slope == pytest.approx(0, abs=1e-8)
    assert steps[3] == 0


def test_a_leaf_of_zero_targets_has_a_finite_negative_value():
    loss, y, F = TweedieLoss(1.5), np.zeros(5), np.zeros((1, 5))
    leaf = np.zeros(5, dtype=int)
    (free,) = steps_of(loss, leaf, 1, y, F, None, 0.0)
    (held,) = steps_of(loss, leaf, 1, y, F, None, 3.0)
    assert -31 < free < held < 0


@quick
@given(
    e=st.lists(st.integers(-5, 5), min_size=1, max_size=15),
    quantile=st.sampled_from([0.1, 0.25, 0.5, 0.9]),
    data=st.data(),
)
def test_leaf_quantile_minimizes_the_weighted_pinball_loss(e, quantile, data):
    e = np.array(e, dtype=float)
    weight = np.array(data.draw(st.lists(st.integers(1, 3), min_size=len(e), max_size=len(e))), dtype=float)
    step = weighted_quantile(e, weight, quantile, SINGLE_PROCESS)

    def mean(s):
        return np.average(np.maximum(quantile * (e - s), (quantile - 1) * (e - s)), weights=weight)

    assert mean(step) <= min(mean(s) for s in e) + 1e-12
    repeated = np.repeat(e, weight.astype(int))
    assert step == weighted_quantile(repeated, None, quantile, SINGLE_PROCESS)


def test_quantile_steps_of_several_leaves_are_independent():
    leaf = np.array([2, 0, 2, 0, 2, 0])
    e = np.array([9.0, 1.0, 7.0, 3.0, 8.0, 2.0])
    steps = steps_of(QuantileLoss(0.5), leaf, 3, e, np.zeros((1, 6)), None, 1.0)
    np.testing.assert_array_equal(steps, [2.0, 0.0, 8.0])


def test_the_log_odds_of_a_rare_negative_class_keep_their_precision():
    weight = np.array([3.2, 877490.7, 2440479.1, 4.8e-05, 2.4e-06])
    found = LogisticLoss().initial_score(np.array([1.0, 1.0, 1.0, 1.0, 0.0]), weight)
    assert found[0] == pytest.approx(np.log(weight[:4].sum() / weight[4]), rel=1e-13)


@pytest.mark.parametrize("power", [1.2, 1.5, 1.9])
@pytest.mark.filterwarnings("error:invalid value")
@pytest.mark.filterwarnings("ignore:overflow")
def test_tweedie_derivatives_at_zero_are_finite_for_any_score(power):
    y, raw = np.zeros(3), np.array([[-1e5, 0.0, 3.0]])
    gradient, hessian = TweedieLoss(power).gradient_hessian(y, raw)
    np.testing.assert_allclose(gradient, np.exp((2 - power) * raw))
    assert np.isfinite(hessian).all()
