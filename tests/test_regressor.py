"""Facts about the regressor: its losses, its invariances, and how scikit-learn's tools see it."""

import inspect
import pickle

import numpy as np
import pytest
from scipy import optimize
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import estimator_checks_generator

from data_makers import FAST, real_target
from scboost._core.leaves import leaf_values
from scboost._core.losses import PoissonLoss, QuantileLoss
from scboost._data.samples import Samples
from scboost._estimators import SCBoostClassifier, SCBoostRegressor
from scboost._estimators.regressor import _huber_delta
from scboost._runtime.communicator import SINGLE_PROCESS
from scboost._runtime.context import Context

X, y = real_target()
COUNTS = np.random.default_rng(1).poisson(np.exp(0.5 * y + 0.5))
LOSSES = {
    "squared_error": {},
    "absolute_error": {},
    "huber": {},
    "quantile": {"quantile": 0.8},
    "poisson": {},
}
every_loss = pytest.mark.parametrize("loss", LOSSES)


def model_of(loss="squared_error", **overrides):
    return SCBoostRegressor(**{**FAST, "loss": loss, **LOSSES[loss], **overrides})


def target(loss):
    return COUNTS if loss == "poisson" else y


CHECKS = [
    pytest.param(estimator, check, id=f"{estimator.loss}-{getattr(check, 'func', check).__name__}")
    for loss in ("squared_error", "poisson")
    for estimator, check in estimator_checks_generator(SCBoostRegressor(loss=loss, n_estimators=5, n_jobs=1))
]


@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_passes_check_estimator(estimator, check):
    check(clone(estimator))


def test_shared_parameters_have_the_same_meaning_everywhere():
    """Both classes list the shared parameters, and both docstrings describe every parameter of their class."""
    of_losses = {"loss", "quantile", "expectile", "tweedie_power", "huber_delta"}
    own = {SCBoostClassifier: {"class_weight"}, SCBoostRegressor: of_losses}
    shared = [set(inspect.signature(cls).parameters) - extra for cls, extra in own.items()]
    assert shared[0] == shared[1]
    for cls in own:
        assert set(cls._parameter_constraints) == set(inspect.signature(cls).parameters) == set(cls().get_params())
        described = [line.split(" : ")[0].strip() for line in cls.__doc__.splitlines() if " : " in line]
        assert set(inspect.signature(cls).parameters) <= set(described)
        assert "<shared" not in cls.__doc__
        assert "default=<" not in cls.__doc__


def test_the_defaults_of_each_task_are_in_its_signature_and_docstring():
    measured = {SCBoostClassifier: ("auto", None), SCBoostRegressor: ("auto", "auto")}
    for cls, expected in measured.items():
        names = ("max_depth", "max_leaves")
        assert tuple(cls().get_params()[name] for name in names) == expected
        for name, value in zip(names, expected, strict=True):
            line = next(line for line in cls.__doc__.splitlines() if line.strip().startswith(f"{name} : "))
            assert line.endswith(f"default={value}".replace("auto", '"auto"'))


# --- losses ----------------------------------------------------------------------------------------------------------


@every_loss
def test_each_loss_is_lowered_round_by_round_and_beats_the_constant(loss):
    model = model_of(loss, n_estimators=30).fit(X, target(loss))
    losses = model.training_log_["loss"]
    assert losses[-1] < 0.8 * losses[0] if loss != "poisson" else losses[-1] < losses[0]
    assert (np.diff(losses) < 1e-6).all()


def test_one_tree_is_scikit_learns_tree():
    rng = np.random.default_rng(0)
    grid = rng.integers(0, 8, size=(300, 3)).astype(float)  # fewer values than bins: both see every threshold
    z = grid[:, 0] * grid[:, 1] + rng.normal(size=300)
    ours = SCBoostRegressor(
        n_estimators=1,
        learning_rate=1.0,
        exploration=0.0,
        max_depth=3,
        max_leaves=None,
        min_child_weight=0,
        reg_lambda=0,
        colsample_bytree=1.0,
    )
    theirs = DecisionTreeRegressor(max_depth=3, random_state=0).fit(grid, z)
    np.testing.assert_allclose(ours.fit(grid, z).predict(grid), theirs.predict(grid), rtol=1e-5, atol=1e-5)


def test_squared_error_follows_a_change_of_units():
    reference = model_of().fit(X, y).predict(X)
    for scale, shift in ((1.0, 100.0), (1024.0, 0.0), (2.0**-20, 0.0)):
        moved = model_of().fit(X, scale * y + shift).predict(X)
        np.testing.assert_allclose((moved - shift) / scale, reference, atol=1e-4)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_quantiles_cover_their_share(quantile):
    model = model_of("quantile", quantile=quantile, n_estimators=50, max_leaves=4).fit(X, y)
    assert np.mean(y <= model.predict(X)) == pytest.approx(quantile, abs=0.05)


def test_absolute_error_is_the_median():
    np.testing.assert_array_equal(
        model_of("absolute_error").fit(X, y).predict(X), model_of("quantile", quantile=0.5).fit(X, y).predict(X)
    )


def test_huber_lies_between_squared_and_absolute_error():
    squared = model_of().fit(X, y).predict(X)
    np.testing.assert_allclose(model_of("huber", huber_delta=1e6).fit(X, y).predict(X), squared, atol=1e-5)
    spoilt = y.copy()
    spoilt[::30] += 1e4

    def error(loss):
        return np.median(np.abs(model_of(loss).fit(X, spoilt).predict(X) - y))

    assert error("huber") < 0.1 * error("squared_error")


def test_hubers_delta_is_the_documented_quantile():
    away = np.abs(y - np.median(y))
    assert _huber_delta(Samples(X, y, None), SINGLE_PROCESS) == pytest.approx(
        np.quantile(away[away > 0], 0.9), rel=0.05
    )
    mostly_zero = np.where(np.arange(300) < 285, 0.0, y)  # the plain 0.9 quantile is 0
    assert _huber_delta(Samples(X, mostly_zero, None), SINGLE_PROCESS) > 0
    weight = np.random.default_rng(0).integers(1, 4, size=300)
    repeated = Samples(None, np.repeat(y, weight), None)
    assert _huber_delta(Samples(X, y, weight.astype(float)), SINGLE_PROCESS) == pytest.approx(
        _huber_delta(repeated, SINGLE_PROCESS), rel=1e-12
    )
    assert _huber_delta(Samples(X, np.ones(300), None), SINGLE_PROCESS) == 1.0


@pytest.mark.parametrize("unit", [1e-3, 2.0**20])
def test_the_huber_loss_of_a_constant_target_has_its_unit(unit):
    X, y = np.arange(6.0)[:, None], np.full(6, 5.0)
    params = {"loss": "huber", "init": "zero", "n_estimators": 2}
    one, other = (SCBoostRegressor(**params).fit(X, y * u).predict(X) for u in (1.0, unit))
    np.testing.assert_allclose(other / unit, one, rtol=1e-6)
    assert _huber_delta(Samples(X, 0 * y, None), SINGLE_PROCESS) == 1.0


def test_poisson_predicts_means_of_counts():
    model = model_of("poisson", n_estimators=50).fit(X, COUNTS)
    prediction = model.predict(X)
    assert (prediction > 0).all()
    assert prediction.sum() == pytest.approx(COUNTS.sum(), rel=0.01)
    native = model.get_booster().inplace_predict(X)  # the native model knows the link
    np.testing.assert_allclose(native, prediction, rtol=1e-5)


def test_poisson_survives_rare_large_counts():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(5000, 2))
    counts = np.where(Z[:, 0] > 3.0, 20_000, rng.poisson(0.1, size=5000))
    for rate in ("auto", 1.0):  # a Newton step would multiply the mean of the large ones by exp(1000)
        prediction = (
            SCBoostRegressor(loss="poisson", n_estimators=100, learning_rate=rate, n_jobs=1, random_state=0)
            .fit(Z, counts)
            .predict(Z)
        )
        assert np.isfinite(prediction).all()
        assert prediction.max() < 40_000
        assert prediction.sum() == pytest.approx(counts.sum(), rel=0.01)


@pytest.mark.parametrize("l2", [0.0, 0.5, 30.0])
@pytest.mark.parametrize("scale", [0.01, 1.0, 1000.0])
def test_poisson_leaves_minimize_their_penalized_loss(l2, scale):
    rng = np.random.default_rng(0)
    counts, F, weight = rng.poisson(2 * scale, size=60) + 0.0, rng.normal(size=60), rng.uniform(0.5, 2, size=60)
    counts[0] += 1
    gradient, hessian = PoissonLoss().gradient_hessian(counts, F[None])
    leaf = np.zeros(60, int)
    (step,) = leaf_values([(leaf, 2)], PoissonLoss(), counts, F[None], -gradient, hessian, weight, l2, 0.0, Context())

    def slope(s):
        return weight @ (np.exp(F + s) - counts) + l2 * s

    assert step[0] == pytest.approx(optimize.brentq(slope, -50, 50), abs=1e-8)
    assert step[1] == 0  # without samples


def test_constant_targets_are_predicted():
    for loss in LOSSES:
        for value in (0.0, 3.0) if loss != "poisson" else (3.0,):
            model = model_of(loss).fit(X, np.full(300, value))
            np.testing.assert_allclose(model.predict(X), value, rtol=1e-6)
            assert model.stop_reason_


# --- the model -------------------------------------------------------------------------------------------------------


@every_loss
def test_the_last_stage_is_the_prediction(loss):
    model = model_of(loss).fit(X, target(loss))
    *_, last = model.staged_predict(X)
    np.testing.assert_allclose(last, model.predict(X), rtol=1e-5, atol=1e-5)


@every_loss
def test_fits_are_bit_identical_for_any_number_of_threads(loss):
    models = [model_of(loss, n_jobs=n, subsample=0.7).fit(X, target(loss)) for n in (1, 2, 1)]
    assert len({bytes(m.get_booster().save_raw()) for m in models}) == 1
    np.testing.assert_array_equal(models[0].predict(X), pickle.loads(pickle.dumps(models[1])).predict(X))  # noqa: S301


@pytest.mark.parametrize("weighting_data", ["holdout", "out_of_fold", "fold_average"])
@pytest.mark.parametrize("loss", ["squared_error", "huber", "poisson"])
def test_weights_of_trees_are_optimal_for_every_smooth_loss(loss, weighting_data):
    params = {"weighting": "nonnegative", "weighting_data": weighting_data, "cv": 3}
    model = model_of(loss, **params).fit(X, target(loss))
    result = model.weighting_result_
    assert result.converged
    assert result.gap <= 1e-8
    assert (result.weights >= 0).all()
    plain = model_of(loss).fit(X, target(loss))
    assert model.score(X, target(loss)) > 0.5 * plain.score(X, target(loss)) > 0


def test_weights_on_the_simplex():
    model = model_of(weighting="simplex", covariance_penalty=0.1).fit(X, y)
    assert model.weights_.sum() == pytest.approx(1)


def test_any_scikit_learn_regressor_can_be_the_estimator():
    model = model_of(estimator=DecisionTreeRegressor(max_depth=3), colsample_bytree=1.0).fit(X, y)
    assert model.score(X, y) > 0.5
    assert len(model.estimators_) == FAST["n_estimators"]


def test_r2_is_close_to_that_of_scikit_learn():
    data = load_diabetes(return_X_y=True)
    ours = cross_val_score(SCBoostRegressor(learning_rate=0.1, max_leaves=8, n_jobs=1, random_state=0), *data, cv=5)
    theirs = cross_val_score(HistGradientBoostingRegressor(max_leaf_nodes=8, random_state=0), *data, cv=5)
    constant = cross_val_score(DummyRegressor(), *data, cv=5)
    assert ours.mean() > theirs.mean() - 0.05
    assert ours.mean() > constant.mean() + 0.3


# --- scikit-learn's tools --------------------------------------------------------------------------------------------


def test_searches_and_pipelines():
    grid = GridSearchCV(
        make_pipeline(StandardScaler(), model_of()),
        {"scboostregressor__projection_strength": [0.0, 0.7], "scboostregressor__early_stopping": [False, True]},
        cv=3,
    ).fit(X, y)
    assert grid.best_score_ > 0.3
    assert clone(grid.best_estimator_).get_params()


def test_permutation_importance_and_gain_agree_on_what_matters():
    model = model_of(n_estimators=30).fit(X, y)
    permuted = permutation_importance(model, X, y, n_repeats=3, random_state=0).importances_mean
    assert permuted[3] == permuted.min()  # the column that the target does not depend on
    assert model.feature_importances_[3] == model.feature_importances_.min()
    assert model.feature_importances_.sum() == pytest.approx(1)


def test_partial_dependence_is_the_mean_prediction():
    model = model_of(n_estimators=30).fit(X, y)
    found = partial_dependence(model, X, [0], grid_resolution=5)
    for value, average in zip(found["grid_values"][0], found["average"][0], strict=True):
        moved = X.copy()
        moved[:, 0] = value
        assert model.predict(moved).mean() == pytest.approx(average, rel=1e-6)


def test_partial_dependence_of_tables_with_categories():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X[:, :3], columns=list("abc")).assign(e=pd.Categorical(np.where(X[:, 3] > 0, "up", "down")))
    model = model_of().fit(table, y + (X[:, 3] > 0))
    found = partial_dependence(model, table, ["a"], grid_resolution=4)
    assert found["average"].shape == (1, 4)
    found = partial_dependence(model, table, ["e"], categorical_features=["e"])
    down, up = found["average"][0]
    assert up > down


@every_loss
def test_shap_values_add_up_to_the_raw_score(loss):
    model = model_of(loss).fit(X, target(loss))
    total = model.shap_values(X).sum(axis=1)
    raw = np.log(model.predict(X)) if loss == "poisson" else model.predict(X)
    np.testing.assert_allclose(total, raw, rtol=1e-4, atol=1e-4)


def test_shap_values_of_tables_with_categories():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "up", "down")})
    model = model_of().fit(table, y)
    values = model.shap_values(table)
    assert values.shape == (300, 3)
    np.testing.assert_allclose(values.sum(axis=1), model.predict(table), rtol=1e-4, atol=1e-4)


def test_quantile_of_the_initial_score_is_that_of_numpy():
    for q in (0.25, 0.5, 0.9):
        assert QuantileLoss(q).initial_score(y, None)[0] == pytest.approx(np.quantile(y, q), abs=0.05)
