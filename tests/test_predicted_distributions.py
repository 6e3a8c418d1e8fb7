"""Distributional regression: losses against scipy.stats and numerical derivatives, and the estimator."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from scipy import integrate, stats

import scboost
from scboost import Checkpoint, SCBoostClassifier, SCBoostDistribution
from scboost._core.distributions import predicted
from scboost.losses import GammaDistributionLoss, LogNormalLoss, NegativeBinomialLoss, NormalLoss, StudentLoss

LOSSES = {
    "normal": NormalLoss(),
    "lognormal": LogNormalLoss(),
    "student": StudentLoss(5.0),
    "gamma": GammaDistributionLoss(),
    "negative_binomial": NegativeBinomialLoss(),
}
NAMES = list(LOSSES)


def truth(name, mean, spread):
    """Distribution of scipy.stats with first raw score `mean` and a second one of -log(spread), or log(spread)."""
    return {
        "normal": lambda: stats.norm(mean, spread),
        "lognormal": lambda: stats.lognorm(s=spread, scale=np.exp(mean)),
        "student": lambda: stats.t(5.0, mean, spread),
        "gamma": lambda: stats.gamma(1 / spread, scale=np.exp(mean) * spread),
        "negative_binomial": lambda: stats.nbinom(1 / spread, 1 / (1 + spread * np.exp(mean))),
    }[name]()


def raw_of(name, mean, spread):
    sign = 1 if name in {"normal", "lognormal", "student"} else -1
    return np.stack(np.broadcast_arrays(np.asarray(mean, float), sign * np.log(spread)))


def heteroscedastic(name, n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3))
    d = truth(name, 1 + 2 * X[:, 0], np.exp(-1.2 + 1.5 * X[:, 1]))
    return X, d.rvs(random_state=rng).astype(float), d


def log_density(d, y):
    return d.logpmf(y) if hasattr(d.dist, "logpmf") else d.logpdf(y)


def integrated_distance(d, y):
    """CRPS by its definition."""
    if hasattr(d.dist, "pmf"):
        k = np.arange(100_000)
        return np.sum((d.cdf(k) - (k >= y)) ** 2)
    below = integrate.quad(lambda t: d.cdf(t) ** 2, -np.inf, y)[0]
    return below + integrate.quad(lambda t: d.sf(t) ** 2, y, np.inf)[0]


@pytest.mark.parametrize("name", NAMES)
def test_crps_is_the_integrated_squared_distance_of_the_distribution_functions(name):
    mean, spread = np.array([0.2, 1.0, 1.5]), np.array([0.4, 1.0, 2.5])
    d = predicted(LOSSES[name], raw_of(name, mean, spread))
    for quantile in (0.02, 0.5, 0.97):
        y = d.quantile(quantile)
        expected = [integrated_distance(truth(name, mean[i], spread[i]), y[i]) for i in range(3)]
        np.testing.assert_allclose(d.crps(y), expected, rtol=1e-4)


# --- losses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_loss_is_the_negative_log_likelihood_of_scipy(name):
    _, y, _ = heteroscedastic(name, 200)
    mean, spread = np.random.default_rng(1).normal(size=(2, 200)) * 0.5
    d = truth(name, mean, np.exp(spread))
    np.testing.assert_allclose(
        LOSSES[name].pointwise_loss(y, raw_of(name, mean, np.exp(spread))), -log_density(d, y), rtol=1e-9
    )


@pytest.mark.parametrize("name", NAMES)
def test_terms_are_derivatives_of_the_loss(name):
    loss = LOSSES[name]
    _, y, _ = heteroscedastic(name, 100)
    raw = np.random.default_rng(2).normal(size=(2, 100)) * 0.5
    gradients = loss.terms(y, *raw)[1:3]
    for k, step in enumerate(np.eye(2)[:, :, None] * 1e-5):
        slope = (loss.pointwise_loss(y, raw + step) - loss.pointwise_loss(y, raw - step)) / 2e-5
        np.testing.assert_allclose(gradients[k], slope, rtol=1e-6, atol=1e-7)
    natural, hessian = loss.gradient_hessian(y, raw)
    factor = loss.squared_scale(raw[1])
    np.testing.assert_allclose(natural, [factor * gradients[0], gradients[1]])
    assert (hessian > 0).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("mean", "spread"), [(0.5, 0.4), (1.5, 1.3)])
def test_expected_hessian_is_the_fisher_information(name, mean, spread):
    d = truth(name, mean, spread)
    y = d.rvs(size=400_000, random_state=0).astype(float)
    _, g0, g1, h0, h1 = LOSSES[name].terms(y, *np.repeat(raw_of(name, mean, spread)[:, None], len(y), axis=1))
    np.testing.assert_allclose([h0.mean(), h1.mean()], [np.mean(g0**2), np.mean(g1**2)], rtol=0.02)
    assert np.mean(g0 * g1) / np.sqrt(np.mean(g0**2) * np.mean(g1**2)) == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("weighted", [False, True])
def test_initial_score_minimizes_the_mean_loss(name, weighted):
    loss = LOSSES[name]
    _, y, _ = heteroscedastic(name, 300)
    w = np.random.default_rng(3).random(300) if weighted else None
    best = loss.initial_score(y, w)
    gradient = np.stack(loss.terms(y, *np.repeat(best[:, None], 300, axis=1))[1:3])
    np.testing.assert_allclose(np.average(gradient, axis=1, weights=w), 0, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_units_of_the_loop_do_not_change_the_loss(name):
    loss = LOSSES[name]
    _, y, _ = heteroscedastic(name, 100)
    raw = np.random.default_rng(4).normal(size=(2, 100)) * 0.5
    frame = loss.frame(loss.initial_score(y, None))
    inside = frame.loss.pointwise_loss(frame.target(y), frame.scores(raw))
    np.testing.assert_allclose(inside, loss.pointwise_loss(y, raw), rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_terms_are_finite_far_from_the_target(name):
    _, y, _ = heteroscedastic(name, 50)
    for first in (-50.0, 50.0):
        for second in (-20.0, 20.0):
            parts = LOSSES[name].terms(y, np.full(50, first), np.full(50, second))
            assert all(np.isfinite(part).all() for part in parts)


# --- the estimator ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_location_and_scale_are_recovered(name):
    X, y, _ = heteroscedastic(name, 900)
    X_test, y_test, d = heteroscedastic(name, 3000, seed=1)
    model = SCBoostDistribution(distribution=name, feature_selection=False, random_state=0).fit(X, y)
    found = model.predict_distribution(X_test)
    loss = LOSSES[name]
    constant = loss.mean(y_test, np.repeat(loss.initial_score(y, None)[:, None], 3000, axis=1))
    best, ours = -log_density(d, y_test).mean(), -found.logpdf(y_test).mean()
    assert ours < best + 0.35 * (constant - best)
    assert np.corrcoef(np.log(found.std()), np.log(d.std()))[0, 1] > 0.85
    low, high = found.interval(0.8).T
    expected = np.mean((d.ppf(0.1) <= y_test) & (y_test <= d.ppf(0.9)))  # counts are covered more often
    assert np.mean((low <= y_test) & (y_test <= high)) == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("name", NAMES)
def test_methods_are_those_of_scipy(name):
    X, y, _ = heteroscedastic(name, 80)
    model = SCBoostDistribution(distribution=name, n_estimators=5).fit(X, y)
    found = model.predict_distribution(X)
    booster = model.get_booster().predict(xgb.DMatrix(X), output_margin=True)
    sign = 1 if name in {"normal", "lognormal", "student"} else -1
    d = truth(name, booster[:, 0], np.exp(sign * booster[:, 1]))
    np.testing.assert_allclose(found.mean(), d.mean(), rtol=1e-4)
    np.testing.assert_array_equal(found.mean(), found.scipy.mean())
    np.testing.assert_allclose(model.predict(X), found.mean(), rtol=1e-12)
    np.testing.assert_allclose(found.std(), d.std(), rtol=1e-4)
    np.testing.assert_allclose(found.logpdf(y), log_density(d, y), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found.cdf(y), d.cdf(y), rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(found.quantile([0.1, 0.9]), np.stack([found.quantile(q) for q in (0.1, 0.9)], axis=1))
    np.testing.assert_allclose(found.interval([0.5, 0.8])[:, 1], found.quantile([0.1, 0.9]))
    assert (found.cdf(found.quantile(0.3)) >= 0.3 - 1e-9).all()
    drawn = found.sample(2000, random_state=0)
    assert drawn.shape == (80, 2000)
    np.testing.assert_array_equal(drawn, found.sample(2000, random_state=0))
    if name != "lognormal":  # whose means converge slowly
        assert np.median(np.abs(drawn.mean(axis=1) - found.mean()) / found.std()) < 0.05
    assert len(found) == 80
    assert repr(found) == f"PredictedDistribution({name!r}, n_samples=80)"


@pytest.mark.parametrize("name", ["normal", "gamma", "negative_binomial"])
def test_integer_weights_are_repetitions_and_zero_weights_leave_out(name):
    X, y, _ = heteroscedastic(name, 200)
    w = np.random.default_rng(0).integers(0, 3, 200).astype(float)
    repeated = np.repeat(np.arange(200), w.astype(int))
    options = {"distribution": name, "n_estimators": 10, "exploration": 0.0, "min_child_weight": 1.0}
    weighted = SCBoostDistribution(**options).fit(X, y, w).predict_distribution(X)
    doubled = SCBoostDistribution(**options).fit(X[repeated], y[repeated]).predict_distribution(X)
    np.testing.assert_allclose(weighted.mean(), doubled.mean(), rtol=1e-4)
    np.testing.assert_allclose(weighted.std(), doubled.std(), rtol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_files_pickles_and_copies_predict_the_same(name, tmp_path):
    X, y, _ = heteroscedastic(name, 120)
    table = pd.DataFrame(X, columns=list("abc"))
    table["kind"] = pd.Categorical(np.where(X[:, 0] > 0.5, "high", "low"))
    table.loc[::7, "b"] = np.nan
    model = SCBoostDistribution(distribution=name, random_state=0).fit(table, y)
    model.save_model(tmp_path / "model.ubj")
    again = scboost.load_model(tmp_path / "model.ubj")
    assert isinstance(again, SCBoostDistribution)
    ours = model.predict_distribution(table)
    for other in (again, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):  # noqa: S301 - our own bytes
        theirs = other.predict_distribution(table)
        for key, value in ours.params.items():
            np.testing.assert_array_equal(theirs.params[key], value)
        assert other.get_params() == model.get_params()
    margin = xgb.Booster(model_file=str(tmp_path / "model.ubj")).predict(
        xgb.DMatrix(table, enable_categorical=True), output_margin=True
    )
    np.testing.assert_allclose(np.asarray(LOSSES[name].link.inverse(margin.T)), model.predict(table), rtol=1e-4)


def test_a_file_that_names_another_distribution_is_refused(tmp_path):
    X, y, _ = heteroscedastic("gamma", 60)
    model = SCBoostDistribution(distribution="gamma", n_estimators=3).fit(X, y)
    model.set_params(distribution="lognormal")
    with pytest.raises(ValueError, match="LogNormalLoss"):
        model.save_model(tmp_path / "model.ubj")


@pytest.mark.parametrize("engine", ["native", "xgboost"])
def test_resumed_fit_is_bit_identical(engine, tmp_path):
    X, y, _ = heteroscedastic("normal", 150)
    checkpoint = Checkpoint(tmp_path / "fit.checkpoint", every=4)
    whole = SCBoostDistribution(n_estimators=10, engine=engine, callbacks=[checkpoint]).fit(X, y)
    resumed = checkpoint.load()
    assert resumed.n_estimators_ == 8
    resumed.fit(X, y)
    np.testing.assert_array_equal(resumed.predict_distribution(X).std(), whole.predict_distribution(X).std())
    np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))


def test_checkpoint_of_a_fit_with_selected_rounds_keeps_the_correction(tmp_path):
    X, y, _ = heteroscedastic("normal", 200)
    checkpoint = Checkpoint(tmp_path / "fit.checkpoint", every=10)
    options = {"max_depth": 2, "feature_selection": False, "random_state": 0}
    whole = SCBoostDistribution(callbacks=[checkpoint], **options).fit(X, y)
    resumed = checkpoint.load().fit(X, y)
    np.testing.assert_array_equal(resumed.predict_distribution(X).std(), whole.predict_distribution(X).std())


def test_units_of_y_do_not_matter():
    X, y, _ = heteroscedastic("normal", 200)
    options = {"n_estimators": 20, "random_state": 0}
    small = SCBoostDistribution(**options).fit(X, y).predict_distribution(X)
    large = SCBoostDistribution(**options).fit(X, 1e6 * y + 3e7).predict_distribution(X)
    np.testing.assert_allclose(large.mean(), 1e6 * small.mean() + 3e7, rtol=1e-4)
    np.testing.assert_allclose(large.std(), 1e6 * small.std(), rtol=1e-3)


def test_scale_is_corrected_out_of_fold():
    """Without the correction, a model underestimates the scale of new samples."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4, 250, 8)), rng.normal(size=(4, 250))
    X_test, y_test = rng.normal(size=(4000, 8)), rng.normal(size=4000)
    selected, fixed = [], []
    for own, target in zip(X, y, strict=True):
        for n_rounds, found in (("auto", selected), (100, fixed)):
            model = SCBoostDistribution(n_estimators=n_rounds, random_state=0).fit(own, target)
            z = (y_test - model.predict(X_test)) / model.predict_distribution(X_test).std()
            found.append(np.mean(z**2))
    assert np.mean(selected) == pytest.approx(1, abs=0.1)
    assert np.mean(fixed) > 1.5


def test_validation_set_stops_the_fit():
    X, y, _ = heteroscedastic("normal", 400)
    model = SCBoostDistribution(learning_rate=0.3, random_state=0).fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    log = model.training_log_["validation_loss"]
    assert model.n_estimators_ == np.argmin(log) + 1
    assert log.min() == pytest.approx(-model.predict_distribution(X[200:]).logpdf(y[200:]).mean(), rel=1e-5)


def test_training_continues_from_a_model():
    X, y, _ = heteroscedastic("normal", 200)
    first = SCBoostDistribution(n_estimators=5, random_state=0).fit(X, y)
    more = SCBoostDistribution(n_estimators=5, random_state=0).fit(X, y, init_model=first)
    assert more.n_estimators_ == 10
    assert more.predict_distribution(X).logpdf(y).mean() > first.predict_distribution(X).logpdf(y).mean()


def test_constant_and_nearly_constant_targets():
    X = np.random.default_rng(0).normal(size=(50, 2))
    for name in NAMES:
        model = SCBoostDistribution(distribution=name, n_estimators=5).fit(X, np.full(50, 3.0))
        np.testing.assert_allclose(model.predict(X), 3.0, rtol=1e-3)
        assert np.isfinite(model.predict_distribution(X).std()).all()


def test_outliers_do_not_inflate_the_scale():
    X, y, _ = heteroscedastic("normal", 300)
    y[:3] = 1e4
    for name in ("normal", "student"):
        model = SCBoostDistribution(distribution=name, random_state=0).fit(X, y)
        assert np.isfinite(model.predict_distribution(X).std()).all()
    assert np.median(model.predict_distribution(X).std()) < 2  # Student's t distribution is robust


X_SMALL, Y_SMALL, _ = heteroscedastic("gamma", 60)


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({"weighting": "nonnegative"}, Y_SMALL, "weighting='nonnegative'; use None: .* not convex"),
        ({"preset": "best"}, Y_SMALL, "preset='best'; use 'default', .* not convex"),
        ({"max_trees": 3}, Y_SMALL, "max_trees=3; use None: .* different units"),
        ({"monotone_constraints": [1, 0, 0]}, Y_SMALL, "monotone_constraints=\\[1, 0, 0\\]"),
        ({"leaf_rule": "mean"}, Y_SMALL, "leaf_rule='mean'; use 'newton'"),
        ({"init": "zero"}, Y_SMALL, "init='zero'; use 'prior'"),
        ({"df": 4.0}, Y_SMALL, "needs distribution='student', got distribution='normal'"),
        ({"distribution": "student", "df": 1.0}, Y_SMALL, "'df' parameter"),
        ({"distribution": "poisson"}, Y_SMALL, "'distribution' parameter"),
        ({"distribution": "gamma"}, -Y_SMALL, "distribution='gamma' needs y > 0"),
        ({"distribution": "lognormal"}, Y_SMALL - Y_SMALL.min(), "distribution='lognormal' needs y > 0, got 0"),
        ({"distribution": "negative_binomial"}, Y_SMALL, "counts 0, 1, 2"),
        ({"distribution": "negative_binomial"}, 0 * Y_SMALL, "0 everywhere"),
        ({}, np.where(Y_SMALL > 0, np.nan, 0), "NaN or infinity"),
    ],
)
def test_unsupported_input_is_rejected(parameters, y, message):
    with pytest.raises(ValueError, match=message):
        SCBoostDistribution(**parameters).fit(X_SMALL, y)


def test_unsupported_methods_of_a_fitted_model_raise():
    model = SCBoostDistribution(n_estimators=2).fit(X_SMALL, Y_SMALL)
    with pytest.raises(ValueError, match=r"does not support compress: .* different units"):
        model.compress(X_SMALL)
    with pytest.raises(ValueError, match="task 'distribution'"):
        model.calibrate(X_SMALL, Y_SMALL)
    with pytest.raises(ValueError, match=r"q=1\.5"):
        model.predict_distribution(X_SMALL).quantile(1.5)
    with pytest.raises(ValueError, match="coverage=0"):
        model.predict_distribution(X_SMALL).interval(0)
    with pytest.raises(ValueError, match="init_model is a SCBoostClassifier"):
        SCBoostDistribution(n_estimators=2).fit(
            X_SMALL, Y_SMALL, init_model=SCBoostClassifier(n_estimators=2).fit(X_SMALL, Y_SMALL > 1)
        )


def test_exports_without_a_link_for_distributions_are_refused():
    model = SCBoostDistribution(n_estimators=2).fit(X_SMALL, Y_SMALL)
    for export in (scboost.export_c, scboost.export_js, scboost.to_onnx):
        with pytest.raises(ValueError, match=f"{export.__name__} exports.*SCBoostDistribution"):
            export(model)
