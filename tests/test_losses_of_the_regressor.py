"""Losses through the whole estimator: XGBoost's objectives as oracles, several quantiles, custom losses."""

from functools import partial

import numpy as np
import pytest
import xgboost as xgb
from sklearn.base import clone
from sklearn.metrics import mean_gamma_deviance, mean_pinball_loss, mean_tweedie_deviance

from data_makers import real_target
from scboost import Checkpoint, SCBoostRegressor, load_model
from scboost.losses import ExpectileLoss, HuberLoss, Loss, QuantilesLoss, SoftmaxLoss, SquaredLoss

PLAIN = {"projection_strength": 0.0, "exploration": 0.0, "max_depth": 3, "max_leaves": None, "reg_lambda": 0.0}
PLAIN |= {"min_child_weight": 0.0, "n_jobs": 1, "random_state": 0}


def amounts(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    mean = np.exp(X[:, 0] + 0.5 * (X[:, 1] > 0))
    return X, rng.gamma(2.0, mean / 2), np.where(rng.uniform(size=n) < 0.4, 0.0, rng.gamma(2.0, mean))


@pytest.mark.parametrize("objective", ["reg:gamma", "reg:tweedie"])
def test_the_first_tree_is_that_of_xgboosts_objective(objective):
    X, positive, often_zero = amounts()
    y = positive if objective == "reg:gamma" else often_zero
    name = objective.partition(":")[2]
    model = SCBoostRegressor(loss=name, n_estimators=1, learning_rate=1.0, engine="xgboost", **PLAIN).fit(X, y)
    params = {"objective": objective, "eta": 1.0, "max_depth": 3, "lambda": 0.0, "min_child_weight": 0.0, "nthread": 1}
    params |= {"tree_method": "hist", "base_score": float(y.mean()), "tweedie_variance_power": 1.5}
    booster = xgb.train(params, xgb.DMatrix(X, y), 1)
    leaf = booster.predict(xgb.DMatrix(X), pred_leaf=True)
    assert len(np.unique(leaf)) > 4
    own = model.predict(X)
    # The leaves have the same samples; their values are exact, not Newton steps: the mean of the samples.
    for number in np.unique(leaf):
        assert own[leaf == number] == pytest.approx(y[leaf == number].mean(), rel=1e-5)
    assert len(np.unique(own)) == len(np.unique(leaf))


def test_expectiles_are_those_of_plain_xgboost_with_the_same_derivatives():
    X, y = real_target(n=400)
    y = y - y.mean()
    model = SCBoostRegressor(
        loss="expectile", expectile=0.8, n_estimators=10, learning_rate=0.3, init="zero", engine="xgboost", **PLAIN
    )
    model.fit(X, y)

    def objective(F, rows):
        w = np.where(rows.get_label() > F, 1.6, 0.4)
        return w * (F - rows.get_label()), w

    params = {"eta": 0.3, "max_depth": 3, "lambda": 0.0, "min_child_weight": 0.0, "nthread": 1, "tree_method": "hist"}
    booster = xgb.train({**params, "base_score": 0.0}, xgb.DMatrix(X, y), 10, obj=objective)
    np.testing.assert_allclose(model.predict(X), booster.predict(xgb.DMatrix(X)), atol=1e-4)


def test_tweedie_and_gamma_losses_approach_the_deviance_of_the_true_means():
    X, positive, often_zero = amounts(2000)
    X_test, positive_test, often_zero_test = amounts(2000, 1)
    truth = np.exp(X_test[:, 0] + 0.5 * (X_test[:, 1] > 0))
    for loss, y, y_test, mean, deviance in (
        ("gamma", positive, positive_test, truth, mean_gamma_deviance),
        ("tweedie", often_zero, often_zero_test, 1.2 * truth, partial(mean_tweedie_deviance, power=1.5)),
    ):
        model = SCBoostRegressor(loss=loss, random_state=0, n_jobs=1).fit(X, y)
        predicted = model.predict(X_test)
        assert predicted.min() > 0
        floor, constant = deviance(y_test, mean), deviance(y_test, np.full(2000, y.mean()))
        assert deviance(y_test, predicted) - floor < 0.2 * (constant - floor)
        np.testing.assert_allclose(model.get_booster().predict(xgb.DMatrix(X_test)), predicted, rtol=1e-4)


def test_several_quantiles_do_not_cross_and_have_nominal_coverage(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(6000, 2)).astype(np.float32)
    y = X[:, 0] + (1 + X[:, 1]) * rng.normal(size=6000)
    model = SCBoostRegressor(loss="quantile", quantile=[0.05, 0.5, 0.95], random_state=0, n_jobs=1)
    model.fit(X[:3000], y[:3000])
    predicted = model.predict(X[3000:])
    assert predicted.shape == (3000, 3)
    assert (np.diff(predicted, axis=1) >= 0).all()
    interval = model.predict_interval(X[3000:], coverage=0.9)
    shift = interval - predicted[:, [0, 2]]  # of the two quantiles, by what the finite sample asks for
    np.testing.assert_allclose(shift, np.broadcast_to(shift[:1], shift.shape), atol=1e-9 * np.abs(predicted).max())
    assert np.abs(shift).max() < 0.02 * np.diff(interval, axis=1).mean()
    covered = np.mean((interval[:, 0] <= y[3000:]) & (y[3000:] <= interval[:, 1]))
    assert 0.87 < covered < 0.93
    # As accurate as the three models that it replaces, on the same samples.
    for k, quantile in enumerate(model.quantile):
        alone = clone(model).set_params(quantile=quantile).fit(X[:3000], y[:3000])
        assert mean_pinball_loss(y[3000:], predicted[:, k], alpha=quantile) < 1.05 * mean_pinball_loss(
            y[3000:], alone.predict(X[3000:]), alpha=quantile
        )
    model.save_model(tmp_path / "model.json")
    np.testing.assert_array_equal(load_model(tmp_path / "model.json").predict(X[3000:]), predicted)
    half = model.predict_interval(X[3000:], coverage=0.5)  # from the two quantiles that are nearest
    assert 0.46 < np.mean((half[:, 0] <= y[3000:]) & (y[3000:] <= half[:, 1])) < 0.54
    with pytest.raises(ValueError, match="predicts several"):
        model.score(X, y)


def test_one_round_of_several_quantiles_is_one_round_of_each():
    X, y = real_target(n=500)
    given = {"n_estimators": 5, "learning_rate": 0.3, "random_state": 0, "n_jobs": 1, "min_child_weight": 20.0}
    several = SCBoostRegressor(loss="quantile", quantile=[0.2, 0.7], **given).fit(X, y)
    for k, quantile in enumerate([0.2, 0.7]):
        alone = SCBoostRegressor(loss="quantile", quantile=quantile, **given).fit(X, y)
        np.testing.assert_allclose(several._raw_scores(X)[k], alone.predict(X), rtol=1e-4, atol=1e-3)


class LogCosh(Loss):
    """A user's loss: squared error near zero, absolute error far from it."""

    def __init__(self, scale):
        self.scale = scale

    def initial_score(self, y, sample_weight):
        return np.array([np.median(y)])

    def gradient_hessian(self, y, raw):
        t = np.tanh((raw - y) / self.scale)
        return self.scale * t, 1 - t**2 + 1e-3

    def pointwise_loss(self, y, F):
        e = np.abs(y - F[0]) / self.scale
        return self.scale**2 * (e + np.log1p(np.exp(-2 * e)) - np.log(2))


class MySquared(SquaredLoss):
    """Nothing new: the oracle of a custom loss."""


def test_a_custom_loss_is_fitted_and_cloned():
    X, y = real_target(n=500)
    y = y + 50 * (np.arange(500) % 25 == 0)  # outliers
    clean = np.arange(500) % 25 != 0
    given = {"preset": "fast", "random_state": 0, "n_jobs": 1}
    robust = clone(SCBoostRegressor(loss=LogCosh(1.0), **given)).fit(X, y)
    squared = SCBoostRegressor(**given).fit(X, y)

    def error(model):
        return np.abs(model.predict(X) - y)[clean].mean()

    assert error(robust) < error(squared)
    assert (np.diff(robust.training_log_["loss"]) < 0).all()
    assert "LogCosh(scale=1.0)" in repr(robust)
    margin = robust.get_booster().predict(xgb.DMatrix(X), output_margin=True)
    np.testing.assert_allclose(margin, robust.predict(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("suffix", ["json", "ubj"])
def test_the_file_of_a_custom_loss_is_read_with_the_loss_given(tmp_path, suffix):
    X, y = real_target(n=200)
    model = SCBoostRegressor(loss=LogCosh(1.5), n_estimators=5, random_state=0, n_jobs=1).fit(X, y)
    path = tmp_path / f"model.{suffix}"
    model.save_model(path)
    own = LogCosh(1.5)
    again = load_model(path, loss=own)
    assert again.loss is own
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match=r"LogCosh\(scale=1.5\) of the module \S+; files hold no code: pass it"):
        load_model(path)
    for other in (LogCosh(2.0), MySquared(), SquaredLoss()):
        with pytest.raises(ValueError, match=r"was fitted with the loss LogCosh\(scale=1.5\), got loss=\w+\("):
            load_model(path, loss=other)


def test_a_built_in_loss_passed_as_an_object_is_stored(tmp_path):
    X, y = real_target(n=200)
    model = SCBoostRegressor(loss=HuberLoss(0.5), n_estimators=3, random_state=0, n_jobs=1).fit(X, y)
    model.save_model(tmp_path / "model.ubj")
    again = load_model(tmp_path / "model.ubj")
    assert repr(again.loss) == "HuberLoss(delta=0.5)"
    np.testing.assert_array_equal(again.fit(X, y).predict(X), model.predict(X))
    with pytest.raises(ValueError, match="has the loss HuberLoss, which needs no loss="):
        load_model(tmp_path / "model.ubj", loss=LogCosh(1.0))


class Forgetful(MySquared):
    """A loss that does not keep its argument."""

    def __init__(self, power):
        self._power = power


def test_a_loss_that_forgets_its_arguments_cannot_be_stored(tmp_path):
    X, y = real_target(n=100)
    model = SCBoostRegressor(loss=Forgetful(2), n_estimators=2, n_jobs=1).fit(X, y)
    with pytest.raises(ValueError, match="Forgetful does not keep its argument 'power'"):
        model.save_model(tmp_path / "model.ubj")


def test_a_checkpoint_of_a_custom_loss_resumes_bit_identically(tmp_path):
    X, y = real_target(n=200)
    given = {"loss": LogCosh(1.5), "n_estimators": 8, "learning_rate": 0.1, "random_state": 0, "n_jobs": 1}
    checkpoint = Checkpoint(tmp_path / "fit.checkpoint", every=5)
    model = SCBoostRegressor(**given, callbacks=[checkpoint]).fit(X, y)
    with pytest.raises(ValueError, match="pass it as load"):
        checkpoint.load()
    resumed = checkpoint.load(loss=LogCosh(1.5))
    assert resumed.n_estimators_ == 5
    np.testing.assert_array_equal(resumed.fit(X, y).predict(X), model.predict(X))


def test_warm_start_of_a_custom_loss_is_bit_identical():
    X, y = real_target(n=300)
    given = {"loss": LogCosh(1.0), "learning_rate": 0.1, "random_state": 0, "n_jobs": 1}
    at_once = SCBoostRegressor(n_estimators=12, **given).fit(X, y)
    parts = SCBoostRegressor(n_estimators=5, warm_start=True, **given).fit(X, y).set_params(n_estimators=12).fit(X, y)
    np.testing.assert_array_equal(parts.predict(X), at_once.predict(X))


def test_a_custom_loss_equal_to_a_built_in_one_gives_the_same_model():
    X, y = real_target(n=300)
    given = {"n_estimators": 20, "random_state": 0, "n_jobs": 1}
    np.testing.assert_array_equal(
        SCBoostRegressor(loss=MySquared(), **given).fit(X, y).predict(X), SCBoostRegressor(**given).fit(X, y).predict(X)
    )


class UnderflowingLogCosh(LogCosh):
    """A loss whose Hessian underflows to 0 far from the target."""

    def gradient_hessian(self, y, raw):
        t = np.tanh((raw - y) / self.scale)
        return self.scale * t, 1 - t**2


def test_a_hessian_that_underflows_to_zero_keeps_exploration_finite():
    X, y = real_target(n=300)
    given = {"n_estimators": 20, "exploration": 1.0, "random_state": 0, "n_jobs": 1}
    model = SCBoostRegressor(loss=UnderflowingLogCosh(1.0), **given).fit(X, 100 * y)  # warnings are errors
    losses = model.training_log_["loss"]
    assert np.isfinite(model.predict(X)).all()
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"loss": "expectile"}, "expectile=None with loss='expectile'"),
        ({"expectile": 0.3}, "expectile=0.3 with loss='squared_error'"),
        ({"tweedie_power": 1.2}, "tweedie_power=1.2 needs loss='tweedie'"),
        ({"loss": "gamma"}, "loss='gamma' needs y > 0, got -"),
        ({"loss": "tweedie"}, "loss='tweedie' needs y >= 0, got -"),
        ({"loss": "quantile", "quantile": [0.9, 0.1]}, "two or more, strictly increasing"),
        ({"loss": "quantile", "quantile": [0.5]}, "two or more, strictly increasing"),
        ({"loss": SoftmaxLoss(3)}, "must have one output and no classes"),
        ({"loss": HuberLoss(1.0), "huber_delta": 1.0}, "huber_delta=1.0 needs loss='huber'"),
    ],
)
def test_losses_that_do_not_fit_are_refused(given, message):
    X, y = real_target(n=50)
    with pytest.raises(ValueError, match=message.replace("[", "\\[")):
        SCBoostRegressor(**given).fit(X, y)


def test_losses_show_their_numbers():
    assert repr(ExpectileLoss(0.3)) == "ExpectileLoss(expectile=0.3)"
    assert repr(QuantilesLoss([0.1, 0.9])) == "QuantilesLoss(quantiles=[0.1, 0.9])"
