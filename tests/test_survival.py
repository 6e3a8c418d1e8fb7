"""Survival analysis: losses and metrics against brute force and other libraries, and the estimator."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from scipy import integrate
from scipy.optimize import approx_fprime

import scboost
from scboost import Checkpoint, SCBoostSurvival
from scboost._core.survival import concordance, cumulative_hazard, integrated_brier_score
from scboost.losses import CoxLoss, EfronCoxLoss, ExtremeAFTLoss, LogisticAFTLoss, NormalAFTLoss

AFT = {"normal": NormalAFTLoss, "logistic": LogisticAFTLoss, "extreme": ExtremeAFTLoss}


def tied_times(n=40, seed=0):
    """Bounds of right-censored times with many ties, raw scores and weights, some of which are 0."""
    rng = np.random.default_rng(seed)
    time = rng.integers(1, 9, n).astype(float)
    bounds = np.stack([time, np.where(rng.random(n) < 0.6, time, np.inf)], axis=1)
    return bounds, rng.normal(size=(1, n)), rng.integers(0, 4, n).astype(float)


def all_kinds_of_bounds(n=40, seed=0):
    rng = np.random.default_rng(seed)
    lower = rng.exponential(size=n) + 0.1
    upper = lower + rng.exponential(size=n)
    kind = np.arange(n) % 4
    upper = np.where(kind == 0, lower, np.where(kind == 1, np.inf, upper))
    return np.stack([np.where(kind == 2, 0.0, lower), upper], axis=1), rng.normal(size=(1, n))


def survival_data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    time = rng.exponential(np.exp(-X[:, 0] + 0.5 * X[:, 1] ** 2))
    censoring = rng.exponential(2.0, n)
    return X, np.stack([np.minimum(time, censoring), time <= censoring], axis=1)


def partial_likelihood(bounds, F, w, *, efron):
    """Negative log partial likelihood, event by event."""
    total = 0.0
    time, event = bounds[:, 0], np.isfinite(bounds[:, 1]) & (w > 0)
    for t in np.unique(time[event]):
        dying = event & (time == t)
        d = dying.sum()
        at_risk, leaving = np.sum((w * np.exp(F))[time >= t]), np.sum((w * np.exp(F))[dying])
        total -= w[dying] @ F[dying]
        for place in range(d):
            total += w[dying].mean() * np.log(at_risk - (place / d * leaving if efron else 0))
    return total


@pytest.mark.parametrize("loss", [CoxLoss(), EfronCoxLoss()])
def test_cox_loss_is_the_partial_likelihood_and_its_derivatives(loss):
    bounds, raw, w = tied_times()
    for weight in (w, np.ones(len(w))):

        def total(F, weight=weight):
            return partial_likelihood(bounds, F, weight, efron=loss.efron)

        losses, gradient, hessian = loss.derivatives(bounds, raw, weight)
        assert losses @ weight == pytest.approx(total(raw[0]))
        assert loss.mean(bounds, raw, weight) == pytest.approx(total(raw[0]) / weight.sum())
        np.testing.assert_allclose(gradient[0] * weight, approx_fprime(raw[0], total, 1e-7), atol=1e-5)
    second = approx_fprime(raw[0], lambda F: loss.derivatives(bounds, F[None], None)[1][0], 1e-6).diagonal()
    np.testing.assert_allclose(hessian[0], second, atol=1e-5)


def test_integer_weights_are_repetitions_under_breslow_ties():
    bounds, raw, w = tied_times()
    repeated = np.repeat(np.arange(len(w)), w.astype(int))
    weighted = CoxLoss().derivatives(bounds, raw, w)
    for part, whole in zip(weighted, CoxLoss().derivatives(bounds[repeated], raw[:, repeated], None), strict=True):
        np.testing.assert_allclose(part[..., repeated], whole, atol=1e-12)


def first_step(matrix, params, ridge):
    """Return what the first round of XGBoost adds to the margin of the first sample."""
    grown = {"tree_method": "exact", "max_depth": 1, "min_child_weight": 0, "eta": 1, "lambda": ridge, **params}
    margin = xgb.train(grown, matrix, 1).predict(matrix, output_margin=True)
    return float(margin[0]) - float(matrix.get_base_margin()[0])


def xgboost_derivatives(matrices, params):
    """Gradient and Hessian of samples, each alone in a leaf of a tree, from its values under two regularizations."""
    steps = np.array([[first_step(matrix, params, ridge) for ridge in (0.0, 1.0)] for matrix in matrices])
    hessian = steps[:, 1] / (steps[:, 0] - steps[:, 1])
    return -steps[:, 0] * hessian, hessian


def test_cox_derivatives_equal_those_of_xgboost():
    bounds, raw, _ = tied_times(12, seed=5)
    bounds += np.arange(12)[:, None] / 100  # XGBoost's treatment of ties depends on the order of the samples
    bounds[np.argmin(bounds[:, 0]), 1] = bounds[:, 0].min()  # before the first event, Hessians are 0
    label = np.where(np.isfinite(bounds[:, 1]), bounds[:, 0], -bounds[:, 0])
    orders = [np.roll(np.arange(12), -i) for i in range(12)]
    alone = (np.arange(12) == 0)[:, None].astype(float)
    matrices = [xgb.DMatrix(alone, label=label[order], base_margin=raw[0, order]) for order in orders]
    gradient, hessian = xgboost_derivatives(matrices, {"objective": "survival:cox"})
    ours = CoxLoss().derivatives(bounds, raw, None)
    np.testing.assert_allclose(ours[1][0], gradient, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(ours[2][0], hessian, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", AFT)
def test_aft_derivatives_equal_those_of_xgboost(name):
    bounds, raw = all_kinds_of_bounds(12)
    matrices = []
    for (lower, upper), score in zip(bounds, raw[0], strict=True):
        matrix = xgb.DMatrix(np.zeros((1, 1)), base_margin=[score])
        matrix.set_float_info("label_lower_bound", [lower])
        matrix.set_float_info("label_upper_bound", [upper])
        matrices.append(matrix)
    params = {"objective": "survival:aft", "aft_loss_distribution": name, "aft_loss_distribution_scale": 1.0}
    gradient, hessian = xgboost_derivatives(matrices, params)
    ours = AFT[name](1.0).gradient_hessian(bounds, raw)
    np.testing.assert_allclose(ours[0][0], gradient, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(ours[1][0], hessian, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("scale", [0.4, 1.0, 2.5])
@pytest.mark.parametrize("cls", AFT.values())
def test_aft_loss_is_a_likelihood_and_its_derivatives(cls, scale):
    loss = cls(scale)
    bounds, raw = all_kinds_of_bounds()
    gradient, hessian = loss.gradient_hessian(bounds, raw)
    step = 1e-4
    up, here, down = (loss.pointwise_loss(bounds, raw + d) for d in (step, 0.0, -step))
    inside = np.maximum(np.abs(gradient[0]) * scale, hessian[0] * scale**2) < 15  # where they are not clipped
    assert inside.mean() > 0.8
    np.testing.assert_allclose(gradient[0, inside], ((up - down) / (2 * step))[inside], atol=1e-4)
    second = (up - 2 * here + down) / step**2
    np.testing.assert_allclose(hessian[0, inside], second[inside], atol=1e-3, rtol=1e-4)

    def density(t):
        return np.exp(-loss.pointwise_loss(np.array([[t, t]]), np.array([[0.3]]))[0])

    between = integrate.quad(density, 0.5, 2.0)[0]
    censored = np.exp(-loss.pointwise_loss(np.array([[0.5, 2.0], [2.0, np.inf], [0.0, 0.5]]), np.full((1, 3), 0.3)))
    assert censored[0] == pytest.approx(between)
    assert censored.sum() == pytest.approx(1)
    median = np.exp(0.3 + scale * loss.quantile(np.array(0.5)))
    assert np.exp(-loss.pointwise_loss(np.array([[median, np.inf]]), np.array([[0.3]])))[0] == pytest.approx(0.5)


@pytest.mark.parametrize("cls", AFT.values())
def test_initial_score_of_aft_minimizes_the_mean_loss(cls):
    bounds, _ = all_kinds_of_bounds(200)
    w = np.random.default_rng(1).random(200)
    loss = cls(0.7)
    best = loss.initial_score(bounds, w)[0]
    losses = [loss.mean(bounds, np.full((1, 200), best + d), w) for d in (-1e-3, 0.0, 1e-3)]
    assert losses[1] < min(losses[0], losses[2])


@pytest.mark.parametrize("cls", AFT.values())
def test_aft_terms_are_finite_far_from_the_score(cls):
    bounds, _ = all_kinds_of_bounds(8)
    for score in (-1e4, -100.0, 100.0, 1e4):
        parts = cls(0.1).gradient_hessian(bounds, np.full((1, 8), score))
        assert all(np.isfinite(part).all() for part in parts)
        assert (parts[1] > 0).all()


# --- metrics ------------------------------------------------------------------------------------------------------


def brute_force_concordance(bounds, risk, w):
    agree = total = 0.0
    for i in range(len(risk)):
        for j in range(len(risk)):
            (low_j, up_j), up_i = bounds[j], bounds[i, 1]
            if up_i < low_j or (up_i == low_j and low_j < up_j):
                total += w[i] * w[j]
                agree += w[i] * w[j] * ((risk[i] > risk[j]) + (risk[i] == risk[j]) / 2)
    return agree / total


@pytest.mark.parametrize("n", [2, 37, 530])
def test_concordance_is_that_of_all_pairs(n):
    bounds, raw, w = tied_times(n, seed=n)
    bounds[0] = [1.0, 1.0]
    bounds[1] = [2.0, np.inf]
    risk = np.round(raw[0], 1)
    assert concordance(bounds, risk, w + 1) == pytest.approx(brute_force_concordance(bounds, risk, w + 1))
    intervals, raw = all_kinds_of_bounds(n)
    intervals[0] = [0.01, 0.01]
    ones = np.ones(n)
    assert concordance(intervals, raw[0]) == pytest.approx(brute_force_concordance(intervals, raw[0], ones))


def test_metrics_equal_those_of_scikit_survival():
    metrics = pytest.importorskip("sksurv.metrics")
    util = pytest.importorskip("sksurv.util")
    X, y = survival_data(200, seed=4)
    times = np.linspace(0.1, 1.5, 30)
    model = SCBoostSurvival(n_estimators=20).fit(X, y)
    structured = util.Surv.from_arrays(y[:, 1] == 1, y[:, 0])
    theirs = metrics.concordance_index_censored(structured["event"], structured["time"], model.predict(X))[0]
    assert model.score(X, structured) == pytest.approx(theirs)
    survival = model.predict_survival_function(X, times)
    bounds = np.stack([y[:, 0], np.where(y[:, 1] == 1, y[:, 0], np.inf)], axis=1)
    expected = metrics.integrated_brier_score(structured, structured, survival, times)
    assert integrated_brier_score(bounds, survival, times) == pytest.approx(expected)


def test_cumulative_hazard_without_risks_is_that_of_nelson_and_aalen():
    bounds, _, w = tied_times()
    times, hazard = cumulative_hazard(bounds, np.ones(len(w)), w)
    event = np.isfinite(bounds[:, 1])
    parts = [w[event & (bounds[:, 0] == t)].sum() / w[bounds[:, 0] >= t].sum() for t in times]
    np.testing.assert_allclose(hazard, np.cumsum(parts))


# --- the estimator ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [{}, {"ties": "efron"}, *({"loss": "aft", "aft_distribution": d} for d in AFT)])
def test_fit_beats_random_predictions_and_native_model_agrees(parameters):
    X, y = survival_data()
    model = SCBoostSurvival(n_estimators=60, random_state=0, **parameters).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.65
    native = model.get_booster().predict(xgb.DMatrix(X))
    np.testing.assert_allclose(native, model.predict(X), rtol=1e-5)


@pytest.mark.parametrize("loss", ["cox", "aft"])
def test_every_form_of_y_gives_the_same_model(loss):
    X, y = survival_data(120)
    first = np.empty(120, dtype=[("event", bool), ("time", float)])
    first["event"], first["time"] = y[:, 1] == 1, y[:, 0]
    second = np.empty(120, dtype=[("t", float), ("e", bool)])
    second["e"], second["t"] = first["event"], first["time"]
    bounds = np.stack([y[:, 0], np.where(y[:, 1] == 1, y[:, 0], np.inf)], axis=1)
    table = pd.DataFrame({"time": y[:, 0], "event": y[:, 1] == 1})
    models = [SCBoostSurvival(loss=loss, n_estimators=5).fit(X, given) for given in (y, first, second, bounds, table)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.predict(X), models[0].predict(X))
        assert model.score(X, y) == model.score(X, first) == model.score(X, bounds)


@pytest.mark.parametrize("loss", ["cox", "aft"])
def test_survival_functions_quantiles_and_hazards_agree(loss):
    X, y = survival_data()
    model = SCBoostSurvival(loss=loss, n_estimators=30).fit(X, y)
    survival = model.predict_survival_function(X)
    assert survival.shape == (len(X), len(model.event_times_))
    assert (np.diff(survival) <= 0).all()
    assert (survival >= 0).all()
    assert (survival <= 1).all()
    np.testing.assert_allclose(survival, np.exp(-model.predict_cumulative_hazard_function(X)), rtol=1e-12)
    np.testing.assert_array_equal(model.predict_survival_function(X, [0.0]), 1)
    for quantile in (0.1, 0.5):
        times = model.predict_quantile(X, quantile)
        found = np.flatnonzero(np.isfinite(times))
        reached = np.array([model.predict_survival_function(X[[i]], times[[i]])[0, 0] for i in found])
        before = np.array([model.predict_survival_function(X[[i]], times[[i]] * 0.9999)[0, 0] for i in found])
        assert (reached <= 1 - quantile + 1e-9).all()
        assert (before > 1 - quantile - 1e-9).all()


@pytest.mark.parametrize("loss", ["cox", "aft"])
def test_baseline_from_out_of_fold_scores_is_calibrated(loss):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2))
    time, censoring = np.exp(X[:, 0] + 0.7 * rng.normal(size=900)), rng.exponential(3.0, 900)
    y = np.stack([np.minimum(time, censoring), time <= censoring], axis=1)
    model = SCBoostSurvival(loss=loss, max_depth=3, feature_selection=False).fit(X[:500], y[:500])
    at = np.array([0.5, 1.0, 2.0])
    mean = model.predict_survival_function(X[500:], at).mean(axis=0)
    np.testing.assert_allclose(mean, (time[500:, None] > at).mean(axis=0), atol=0.04)
    if loss == "aft":
        assert model.aft_scale_ == pytest.approx(0.7, rel=0.15)


@pytest.mark.parametrize("n_estimators", ["auto", 30])
def test_aft_trees_are_grown_with_the_scale_given_the_features(n_estimators):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    time, censoring = np.exp(X[:, 0] + 0.7 * rng.normal(size=500)), rng.exponential(3.0, 500)
    y = np.stack([np.minimum(time, censoring), time <= censoring], axis=1)
    model = SCBoostSurvival(loss="aft", n_estimators=n_estimators).fit(X, y)
    assert model.__fitted_model__().loss.scale == pytest.approx(0.7, rel=0.15)  # without features: 1.2


def test_aft_scale_of_a_model_is_kept_when_it_is_continued():
    X, y = survival_data()
    first = SCBoostSurvival(loss="aft", n_estimators=10).fit(X, y)
    more = SCBoostSurvival(loss="aft", n_estimators=10).fit(X[:200], y[:200], init_model=first)
    assert more.__fitted_model__().loss.scale == first.__fitted_model__().loss.scale


def test_weights_of_zero_and_integers():
    X, y = survival_data()
    w = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    repeated = np.repeat(np.arange(len(X)), w.astype(int))
    options = {"n_estimators": 10, "exploration": 0.0, "min_child_weight": 1.0}
    weighted = SCBoostSurvival(**options).fit(X, y, w)
    doubled = SCBoostSurvival(**options).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.predict(X), doubled.predict(X), rtol=1e-4)
    times = [0.2, 0.5, 1.0]
    ours, theirs = (model.predict_survival_function(X, times) for model in (weighted, doubled))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4)


@pytest.mark.parametrize("loss", ["cox", "aft"])
def test_files_pickles_and_copies_predict_the_same(loss, tmp_path):
    X, y = survival_data(150)
    table = pd.DataFrame(X, columns=list("abcd"))
    table["kind"] = pd.Categorical(np.where(X[:, 0] > 0, "high", "low"))
    table.loc[::7, "b"] = np.nan
    model = SCBoostSurvival(loss=loss, n_estimators=8).fit(table, y)
    model.save_model(tmp_path / "model.ubj")
    again = scboost.load_model(tmp_path / "model.ubj")
    assert isinstance(again, SCBoostSurvival)
    for other in (again, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):  # noqa: S301 - our own bytes
        np.testing.assert_array_equal(other.predict(table), model.predict(table))
        np.testing.assert_array_equal(other.predict_survival_function(table), model.predict_survival_function(table))
        np.testing.assert_array_equal(other.predict_quantile(table), model.predict_quantile(table))
        assert other.get_params().keys() == model.get_params().keys()
    native = xgb.Booster(model_file=str(tmp_path / "model.ubj"))
    margin = native.predict(xgb.DMatrix(table, enable_categorical=True), output_margin=True)
    np.testing.assert_allclose(margin, np.log(model.predict(table)), atol=1e-5)


@pytest.mark.parametrize("loss", ["cox", "aft"])
def test_resumed_fit_is_bit_identical(loss, tmp_path):
    X, y = survival_data(150)
    checkpoint = Checkpoint(tmp_path / "fit.checkpoint", every=4)
    whole = SCBoostSurvival(loss=loss, n_estimators=10, callbacks=[checkpoint]).fit(X, y)
    resumed = checkpoint.load()
    assert resumed.n_estimators_ == 8
    with pytest.raises(AttributeError, match="finish the fit"):
        resumed.predict_survival_function(X)
    resumed.fit(X, y)
    np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))
    np.testing.assert_array_equal(resumed.predict_survival_function(X), whole.predict_survival_function(X))


def test_interval_censored_times_are_learned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    time = np.exp(X[:, 0] + 0.3 * rng.normal(size=400))
    lower = np.floor(time * 2) / 2
    bounds = np.stack([lower, lower + 0.5], axis=1)  # seen at visits only
    model = SCBoostSurvival(loss="aft", max_depth=3, feature_selection=False).fit(X[:300], bounds[:300])
    assert np.corrcoef(np.log(model.predict(X[300:])), X[300:, 0])[0, 1] > 0.9
    assert model.score(X[300:], bounds[300:]) > 0.8
    assert 0.3 < model.aft_scale_ < 0.45  # what the features do not explain, and what the trees do not


def test_monotone_constraints_hold():
    X, y = survival_data()
    model = SCBoostSurvival(n_estimators=30, monotone_constraints=[1, 0, 0, 0]).fit(X, y)
    grid = np.repeat(X[:20], 15, axis=0)
    grid[:, 0] = np.tile(np.linspace(-2, 2, 15), 20)
    assert (np.diff(model.predict(grid).reshape(20, 15)) >= 0).all()


@pytest.mark.parametrize("loss", ["cox", "aft"])
@pytest.mark.parametrize("metric", ["concordance", "integrated_brier_score"])
def test_early_stopping_on_metrics_of_censored_times(loss, metric):
    X, y = survival_data()
    model = SCBoostSurvival(
        loss=loss, n_estimators=40, learning_rate=0.3, early_stopping=True, early_stopping_metric=metric
    ).fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    name = "validation_concordance" if metric == "concordance" else "validation_neg_integrated_brier_score"
    log = model.training_log_[name]
    assert model.n_estimators_ == np.argmax(log) + 1
    if metric == "concordance":
        assert log.max() == pytest.approx(model.score(X[200:], y[200:]))


def test_scorers_get_structured_times():
    X, y = survival_data(200)
    seen = []

    def scorer(estimator, X, y):
        seen.append(y.dtype.names)
        return -float(np.mean(np.abs(np.log(estimator.predict(X)))))

    SCBoostSurvival(n_estimators=3, early_stopping=True, early_stopping_metric=scorer).fit(X, y)
    assert set(seen) == {("event", "time")}


def test_rounds_are_selected_by_cross_validation():
    X, y = survival_data(400)
    model = SCBoostSurvival(random_state=0).fit(X[:300], y[:300])
    assert 1 < model.n_estimators_ < 1000
    assert np.min(model.selection_log_["validation_loss"]) < model.selection_log_["validation_loss"][0]
    assert model.score(X[300:], y[300:]) > 0.65


X_SMALL, Y_SMALL = survival_data(60)
INTERVALS = np.stack([Y_SMALL[:, 0], Y_SMALL[:, 0] + 2.0], axis=1)


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({"ties": "efron", "loss": "aft"}, Y_SMALL, "ties='efron' needs loss='cox'"),
        ({"aft_scale": 1.0}, Y_SMALL, "needs loss='aft'"),
        ({"early_stopping_metric": "r2"}, Y_SMALL, "early_stopping_metric='r2'"),
        ({}, Y_SMALL[:, 0], "shape \\(60,\\)"),
        ({}, Y_SMALL[:50], "50 entries but X has 60"),
        ({}, None, "requires y"),
        ({}, np.where(Y_SMALL > 0, np.nan, 0), "NaN or infinity"),
        ({}, -Y_SMALL, "times >= 0"),
        ({}, INTERVALS, "use loss='aft'"),
        ({"loss": "aft"}, INTERVALS[:, ::-1], "bounds"),
        ({}, Y_SMALL * [1, 0], "all 60 times are censored"),
        ({"loss": "aft"}, Y_SMALL * [0, 1], "> 0"),
    ],
)
def test_unsupported_input_is_rejected(parameters, y, message):
    with pytest.raises(ValueError, match=message):
        SCBoostSurvival(**parameters).fit(X_SMALL, y)
