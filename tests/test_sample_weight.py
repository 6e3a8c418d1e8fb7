"""Sample weights: an integer weight equals that many copies of the sample, and weight 0 equals leaving it out."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from choices import CHOICES, predictions, some_rows
from data_makers import ENGINES, FAST, QUICK, real_target, three_classes, two_classes
from scboost import SCBoostClassifier, SCBoostRegressor


def counts():
    X, y = real_target()
    return X, np.round(np.exp(y))


def positive():
    X, y = real_target()
    return X, np.exp(y)


TASKS = {
    "binary": (SCBoostClassifier, {}, lambda: two_classes(d=4)),
    "multiclass": (SCBoostClassifier, {}, lambda: three_classes(d=4)),
    "squared error": (SCBoostRegressor, {}, real_target),
    "absolute error": (SCBoostRegressor, {"loss": "absolute_error"}, real_target),
    "huber": (SCBoostRegressor, {"loss": "huber"}, real_target),
    "quantile": (SCBoostRegressor, {"loss": "quantile", "quantile": 0.3}, real_target),
    "several quantiles": (SCBoostRegressor, {"loss": "quantile", "quantile": [0.2, 0.8]}, real_target),
    "expectile": (SCBoostRegressor, {"loss": "expectile", "expectile": 0.8}, real_target),
    "poisson": (SCBoostRegressor, {"loss": "poisson"}, counts),
    "tweedie": (SCBoostRegressor, {"loss": "tweedie"}, counts),
    "gamma": (SCBoostRegressor, {"loss": "gamma"}, positive),
}
WITHOUT_HESSIAN = {"absolute error", "quantile", "several quantiles"}
LOG_LINK = {"poisson", "tweedie", "gamma"}
# Few rounds of small trees: later on, rounding may break a tie between two splits the other way.
SMALL = {"n_estimators": 4, "max_leaves": 5}
KINDS = {
    "plain": SMALL,
    "subsample": {**SMALL, "subsample": 0.6},
    "best preset": {**SMALL, "preset": "best", "cv": 3},
    "out of fold": {**SMALL, "weighting": "nonnegative", "weighting_data": "out_of_fold", "cv": 2},
    "simplex": {**SMALL, "weighting": "simplex"},
    "early stopping, X_val": {**SMALL, "early_stopping": True, "n_iter_no_change": 2},
    "early stopping": {**SMALL, "early_stopping": True, "validation_fraction": 0.4},
    "exploration, full memory": {**SMALL, "exploration": 1.0, "memory": "all"},
    "leaf means": {**SMALL, "leaf_rule": "mean"},
    "monotone": {"monotone_constraints": [-1] * 4},
    "scikit-learn trees": {**SMALL, "estimator": DecisionTreeRegressor(max_depth=2, random_state=0)},
    "balanced classes": {**SMALL, "class_weight": "balanced"},
}
TOLERANCE = {"balanced classes": 1e-5, "scikit-learn trees": 1e-9}
"""Relative and absolute, of log-odds and of predictions of y; otherwise 1e-4."""
MANY_TASKS = {"plain", "early stopping"}
FEW_TASKS = ("binary", "multiclass", "squared error", "absolute error", "poisson")


def supported(task, kind):
    """Whether a task takes the parameters of a kind of fit, and whether the two are tested together."""
    if kind == "balanced classes":
        return TASKS[task][0] is SCBoostClassifier
    if kind in {"best preset", "out of fold", "simplex"} and task in WITHOUT_HESSIAN:
        return False
    if kind == "leaf means" and task in LOG_LINK:
        return False
    if kind == "monotone":
        return task in {"binary", "squared error", "poisson"}
    if kind == "scikit-learn trees":
        return task in {"binary", "squared error"}
    return kind in MANY_TASKS or task in FEW_TASKS


def scores(model, X):
    return model.decision_function(X) if isinstance(model, SCBoostClassifier) else model.predict(X)


@pytest.mark.parametrize(("task", "kind"), [(task, kind) for kind in KINDS for task in TASKS if supported(task, kind)])
def test_integer_weights_equal_repeated_samples(task, kind):
    cls, own, make = TASKS[task]
    X, y = make()
    X = np.round(2 * X) / 2  # few distinct values: the same bins, repeated or not
    if kind == "monotone":
        weight = np.where(np.arange(300) % 3, 0, 1 + np.arange(300) % 20)
    else:
        weight = np.random.default_rng(0).integers(0, 4, size=300)
    rows = np.repeat(np.arange(300), weight)
    validation = {"X_val": X[::3], "y_val": y[::3]} if kind.endswith("X_val") else {}
    model = cls(**{**FAST, **own, **KINDS[kind]})
    weighted = scores(model.fit(X, y, sample_weight=weight, **validation), X)
    repeated = scores(model.fit(X[rows], y[rows], **validation), X)
    assert np.ptp(repeated) > 0
    tolerance = TOLERANCE.get(kind, 1e-4)
    np.testing.assert_allclose(weighted, repeated, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("params", [{}, {"preset": "best", "cv": 2}, {"n_estimators": 20}], ids=str)
@pytest.mark.parametrize("task", ["binary", "multiclass", "squared error"])
def test_integer_weights_select_the_rounds_of_repeated_samples(task, params):
    cls, _, make = TASKS[task]
    X, y = make()
    X, y = np.round(X[:150], 1), y[:150]
    weight = np.random.default_rng(0).integers(1, 4, size=150)
    model = cls(**{**QUICK, "max_depth": 3, "max_leaves": None, **params})
    weighted = model.fit(X, y, weight)
    found = weighted.n_estimators_, predictions(weighted, X)
    repeated = model.fit(X.repeat(weight, axis=0), y.repeat(weight))
    assert repeated.n_estimators_ == found[0]
    np.testing.assert_allclose(predictions(repeated, X), found[1], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", CHOICES)
def test_integer_weights_select_the_model_of_repeated_samples(name):
    choice = CHOICES[name]
    X, y = choice.make()
    weight = np.random.default_rng(1).integers(1, 4, size=len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    weighted = choice.cls(**QUICK).fit(X, y, weight)
    repeated = choice.cls(**QUICK).fit(some_rows(X, rows), y[rows])
    assert choice.of(weighted) == choice.of(repeated) != choice.otherwise
    np.testing.assert_allclose(predictions(weighted, X), predictions(repeated, X), atol=10 * choice.tolerance)


@pytest.mark.parametrize(
    ("params", "x", "y", "weight"),
    [
        # Gains near the smallest one that XGBoost accepts.
        ({"loss": "tweedie"}, [0.0, 1.0, 2.0], [58818557.0, 2943882.0, 11336053380.0], [1, 3, 1]),
        (
            {"loss": "gamma", "init": "zero"},
            [-1.3015536710371545, -0.8517881126785315, -0.4963088682776296, -0.6836474480491421],
            [449095.0, 808385.0, 937796.0, 599863.0],
            [1, 2, 4, 4],
        ),
        # A diverging fit, whose squared residuals overflow single precision.
        (
            {"loss": "poisson", "n_estimators": 5, "learning_rate": 3.0},
            [0.0, -1.0, 1.0],
            [7.5e8, 1.9e8, 2.2e9],
            [1, 3, 2],
        ),
    ],
    ids=["tweedie", "gamma", "diverging poisson"],
)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_integer_weights_equal_repeated_samples_of_huge_targets(params, x, y, weight, engine):
    X = np.array(x)[:, None]
    model = SCBoostRegressor(**{"n_estimators": 2, "n_jobs": 1, "random_state": 0, "engine": engine, **params})
    weighted = np.log(model.fit(X, y, sample_weight=weight).predict(X))
    repeated = np.log(model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).predict(X))
    diverges = "learning_rate" in params
    assert (model.training_log_["loss"].max() > 1e18) == diverges
    if engine == "xgboost":  # the other one splits off no Hessian as small as the rounding of their sum
        assert (weighted.max() > 40) == diverges
    tolerance = {"rtol": 1e-5} if diverges else {"rtol": 1e-3, "atol": 1e-3 * np.ptp(repeated)}
    np.testing.assert_allclose(weighted, repeated, **tolerance)


@pytest.mark.parametrize("extra", [{"early_stopping": True}, {"weighting": "nonnegative"}], ids=str)
@pytest.mark.parametrize(
    "task", ["binary", "multiclass", "squared error", "absolute error", "huber", "quantile", "poisson"]
)
def test_integer_weights_of_validation_samples_equal_repeated_samples(task, extra):
    if "weighting" in extra and task in WITHOUT_HESSIAN:
        pytest.skip("weights of trees need a loss with a Hessian")
    cls, own, make = TASKS[task]
    X, y = make()
    weight = np.random.default_rng(0).integers(0, 4, size=300)
    rows = np.repeat(np.arange(300), weight)

    def fit(**validation):
        return cls(**FAST, **own, **extra).fit(X, y, **validation)

    weighted = fit(X_val=X, y_val=y, sample_weight_val=weight)
    repeated = fit(X_val=X[rows], y_val=y[rows])
    plain = fit(X_val=X, y_val=y)
    losses = [model.training_log_["validation_loss"] for model in (weighted, repeated, plain)]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, rtol=1e-4, atol=1e-6)
    assert not np.allclose(losses[0], losses[2], rtol=1e-5)


@pytest.mark.parametrize("task", TASKS)
def test_weight_zero_equals_absence(task):
    cls, own, make = TASKS[task]
    X, y = make()
    weight = (np.arange(300) % 3 > 0).astype(float)
    kept = weight > 0
    model = cls(**FAST, **own)
    with_zeros = model.fit(X, y, sample_weight=weight).predict(X)
    without = model.fit(X[kept], y[kept], sample_weight=weight[kept]).predict(X)
    np.testing.assert_array_equal(with_zeros, without)
