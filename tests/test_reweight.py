"""A re-weighted model predicts the weighted sum of the trees, in its own library, and the weights are optimal."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, special
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.metrics import accuracy_score, log_loss, r2_score

from scboost import diagnostics as rw
from scboost import tree_matrix
from scboost.diagnostics._prune import _backward_elimination, _lasso
from test_treematrix import LIBRARIES, TASKS, T, data, make, margin

xgboost = pytest.importorskip("xgboost")

pytestmark = pytest.mark.filterwarnings("ignore:.*booster=dart. is deprecated")  # by XGBoost 3.4


def split(task, n=400):
    X, y = data(task, n)
    half = n // 2
    return X[:half], y[:half], X[half:], y[half:]


def own_margin(model, X):
    if isinstance(model, rw.WeightedTrees):
        return model._margin(X)
    if type(model).__module__.startswith("lightgbm"):
        return model.booster_.predict(X, raw_score=True)
    return margin(model, X)


def weighted_sum(model, found, X):
    """Return the sum by the definition of the factors."""
    trees = tree_matrix(model, X, dtype=np.float64)
    K = trees.n_outputs
    w = trees.column_weights.reshape(-1, K) * found.factors[:, None]
    return np.stack([trees.H[:, k::K] @ w[:, k] for k in range(K)], axis=1)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_written_model_predicts_the_weighted_sum(library, task):
    X, y, X_val, y_val = split(task)
    model = make(library, task).fit(X, y)
    before = own_margin(model, X_val) if "rf" not in library else None
    for found in (rw.reweight(model, X_val, y_val), rw.prune(model, X_val, y_val, max_trees=3)):
        expected = weighted_sum(model, found, X_val) + found.intercept
        F = own_margin(found.model, X_val).reshape(expected.shape)
        assert_allclose(F, expected, rtol=3e-6, atol=3e-6)
        assert_allclose(tree_matrix(found.model, X_val).margin().reshape(expected.shape), F, rtol=3e-6, atol=3e-6)
        assert np.array_equal(found.kept, np.flatnonzero(found.factors))
        assert tree_matrix(found.model, X_val).n_trees == len(found.kept)
        assert 0 <= found.gap < 1e-6
        assert np.all(found.factors >= 0)
    assert len(found.kept) <= 3
    if before is not None:
        assert np.array_equal(own_margin(model, X_val), before)


@pytest.mark.parametrize("library", LIBRARIES)
def test_pruned_classifiers_predict_labels_and_probabilities(library):
    X, y, X_val, y_val = split("binary")
    model = make(library, "binary").fit(X, y)
    found = rw.prune(model, X_val, y_val, max_trees=2)
    F = own_margin(found.model, X_val)
    p = found.model.predict_proba(X_val)
    assert_allclose(p[:, 1], special.expit(F), rtol=1e-5, atol=1e-6)
    assert_allclose(log_loss(y_val, p), found.loss, rtol=1e-5)
    assert np.array_equal(found.model.predict(X_val), (F > 0).astype(y.dtype))
    again = pickle.loads(pickle.dumps(found.model))  # noqa: S301 - our own bytes
    assert_allclose(own_margin(again, X_val), F)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_reweight_of_a_booster_returns_a_booster(library):
    X, y, X_val, y_val = split("binary")
    model = make(library, "binary").fit(X, y)
    booster = model.get_booster() if library == "xgboost" else model.booster_
    found = rw.prune(booster, X_val, y_val, max_trees=3)
    assert type(found.model) is type(booster)
    same = rw.prune(model, X_val, y_val, max_trees=3)
    assert_allclose(found.factors, same.factors)
    matrix = xgboost.DMatrix(X_val) if library == "xgboost" else X_val
    assert_allclose(found.model.predict(matrix), same.model.predict_proba(X_val)[:, 1], rtol=1e-6)


def test_pruned_classifiers_predict_text_labels():
    X, y, X_val, y_val = split("multiclass")
    names = np.array(["one", "three", "two"])
    for library in ("catboost", "RandomForest", "lightgbm"):
        model = make(library, "multiclass").fit(X, names[y])
        found = rw.prune(model, X_val, names[y_val], max_trees=3)
        assert np.mean(found.model.predict(X_val).ravel() == names[y_val]) > 0.5


def test_catboost_models_of_categories_are_written():
    catboost = pytest.importorskip("catboost")
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    code = rng.integers(0, 30, 600)
    y = (rng.normal(size=30)[code] + 0.5 * rng.normal(size=600) > 0).astype(int)
    frame = pd.DataFrame({"a": rng.normal(size=600), "c": code.astype(str)})
    model = catboost.CatBoostClassifier(
        iterations=8, depth=3, thread_count=1, verbose=0, allow_writing_files=False, cat_features=["c"]
    ).fit(frame[:300], y[:300])
    found = rw.prune(model, frame[300:], y[300:], max_trees=3)
    expected = weighted_sum(model, found, frame)[:, 0] + found.intercept
    assert_allclose(margin(found.model, frame), expected, rtol=1e-6, atol=1e-6)


def test_pruned_scboost_models_are_scboost_models():
    from sklearn.tree import DecisionTreeRegressor

    from scboost._estimators import SCBoostClassifier

    for task, extra in (
        ("binary", {}),
        ("multiclass", {}),
        ("binary", {"estimator": DecisionTreeRegressor(max_depth=3), "colsample_bytree": 1}),
    ):
        X, y, X_val, y_val = split(task)
        model = SCBoostClassifier(n_estimators=T, n_jobs=1, random_state=0, **extra).fit(X, y)
        found = rw.prune(model, X_val, y_val, max_trees=3)
        assert isinstance(found.model, SCBoostClassifier)
        again = rw.prune(found.model, X_val, y_val, max_trees=2)
        for new, old in ((found, model), (again, found.model)):
            expected = weighted_sum(old, new, X_val) + new.intercept
            assert_allclose(new.model.decision_function(X_val).reshape(expected.shape), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("task", TASKS)
def test_the_estimator_and_reweight_learn_the_same_weights(task):
    from scboost import SCBoostClassifier, SCBoostRegressor

    X, y, X_val, y_val = split(task)
    Model = SCBoostRegressor if task == "regression" else SCBoostClassifier
    settings = {"n_estimators": T, "n_jobs": 1, "random_state": 0, "learning_rate": 0.3}
    penalty = {"covariance_penalty": 0.02}
    plain = Model(**settings).fit(X, y)
    inside = Model(**settings, **penalty, weighting="nonnegative", weight_ridge=0.1)
    inside.fit(X, y, X_val=X_val, y_val=y_val)
    outside = rw.reweight(plain, X_val, y_val, ridge=0.1, **penalty)
    assert_allclose(inside.weighting_result_.weights, outside.factors, atol=1e-4)
    assert_allclose(inside.intercept_, outside.intercept, rtol=1e-5, atol=1e-4)
    assert np.ptp(outside.factors) > 0.05


def test_factors_minimize_the_stated_objective():
    X, y, X_val, y_val = split("binary")
    model = make("xgboost", "binary").fit(X, y)
    trees = tree_matrix(model, X_val, dtype=np.float64)
    ridge, penalty = 0.05, 0.3
    C = np.cov(trees.H.T, bias=True)

    def objective(z):
        F = trees.intercept + z[-1] + trees.H @ z[:-1]
        loss = np.mean(np.logaddexp(0, F) - y_val * F)
        return loss + penalty * z[:-1] @ C @ z[:-1] + ridge / T * np.sum((z[:-1] - 1) ** 2)

    bounds = [(0, None)] * T + [(None, None)]
    oracle = optimize.minimize(objective, np.r_[np.ones(T), 0], bounds=bounds, options={"ftol": 1e-14, "gtol": 1e-9})
    found = rw.reweight(model, X_val, y_val, ridge=ridge, covariance_penalty=penalty)
    assert objective(np.r_[found.factors, found.intercept - trees.intercept]) <= oracle.fun + 1e-9
    assert_allclose(found.factors, oracle.x[:-1], atol=2e-3)


def test_softmax_factors_minimize_the_stated_objective():
    X, y, X_val, y_val = split("multiclass")
    model = make("xgboost", "multiclass").fit(X, y)
    trees = tree_matrix(model, X_val, dtype=np.float64)
    weight = np.random.default_rng(0).random(len(y_val))
    ridge = 0.05

    def objective(z):
        F = trees.intercepts + z[T:] + np.stack([trees.H[:, k::3] @ z[:T] for k in range(3)], axis=1)
        loss = -special.log_softmax(F, axis=1)[np.arange(len(y_val)), y_val]
        away = np.sum((z[:T] - 1) ** 2) + np.sum(z[T:] ** 2)
        return np.average(loss, weights=weight) + ridge / T * away

    bounds = [(0, None)] * T + [(None, None)] * 3
    oracle = optimize.minimize(objective, np.r_[np.ones(T), np.zeros(3)], bounds=bounds, method="trust-constr")
    found = rw.reweight(model, X_val, y_val, ridge=ridge, sample_weight=weight)
    assert objective(np.r_[found.factors, found.intercept - trees.intercepts]) <= oracle.fun + 1e-7


def test_simplex_factors_have_mean_one():
    X, y, X_val, y_val = split("binary")
    model = make("xgboost", "binary").fit(X, y)
    found = rw.reweight(model, X_val, y_val, method="simplex", covariance_penalty=0.1)
    assert found.factors.mean() == pytest.approx(1)
    assert_allclose(found.intercept, tree_matrix(model, X_val).intercepts)
    assert_allclose(margin(found.model, X_val), weighted_sum(model, found, X_val)[:, 0] + found.intercept, rtol=1e-5)


@pytest.mark.parametrize("task", TASKS)
def test_simplex_factors_of_every_task_have_mean_one(task):
    X, y, X_val, y_val = split(task)
    found = rw.reweight(make("lightgbm", task).fit(X, y), X_val, y_val, method="simplex", covariance_penalty=0.1)
    assert found.factors.mean() == pytest.approx(1)
    assert found.gap < 1e-8


def test_a_large_ridge_keeps_the_model():
    X, y, X_val, y_val = split("regression")
    model = make("lightgbm", "regression").fit(X, y)
    found = rw.reweight(model, X_val, y_val, ridge=1e9)
    assert_allclose(found.factors, 1, atol=1e-6)


def test_regression_does_not_depend_on_the_unit_of_y():
    X, y, X_val, y_val = split("regression")
    small = rw.prune(make("GradientBoosting", "regression").fit(X, y), X_val, y_val, max_trees=3)
    large = rw.prune(make("GradientBoosting", "regression").fit(X, 1000 * y), X_val, 1000 * y_val, max_trees=3)
    assert_allclose(small.factors, large.factors, rtol=1e-4)


def test_copies_of_a_tree_are_dropped_first():
    X, y, X_val, y_val = split("binary")
    forest = RandomForestClassifier(n_estimators=4, max_depth=4, random_state=0).fit(X, y)
    forest.estimators_ = forest.estimators_ * 3
    found = rw.prune(forest, X_val, y_val, max_trees=4)
    whole = rw.reweight(forest, X_val, y_val)
    assert sorted(found.kept % 4) == [0, 1, 2, 3]
    assert found.loss == pytest.approx(whole.loss, abs=2e-3)
    assert len(rw.prune(forest, X_val, y_val, max_trees=4, selection="lasso").kept) <= 4


def test_backward_elimination_keeps_the_largest_coefficients():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, 6))
    b = A @ np.array([3.0, 0.1, 2.0, 0.0, 1.0, 0.2])
    G, c = A.T @ A, A.T @ b
    assert next(_backward_elimination(G, c, [3])).tolist() == [0, 2, 4]
    assert next(_lasso(G, c, [3])).tolist() == [0, 2, 4]


def test_pruning_beats_truncation_of_slow_boosting():
    X, y, X_val, y_val = split("binary", 800)
    model = xgboost.XGBClassifier(n_estimators=40, max_depth=3, learning_rate=0.05, n_jobs=1).fit(X, y)
    pruned = rw.prune(model, X_val[:200], y_val[:200], max_trees=8).model
    assert pruned.get_booster().num_boosted_rounds() == 8
    first = model.predict_proba(X_val[200:], iteration_range=(0, 8))
    assert log_loss(y_val[200:], pruned.predict_proba(X_val[200:])) < log_loss(y_val[200:], first)


def test_invalid_arguments_and_models_are_refused():
    X, y, X_val, y_val = split("binary")
    model = make("xgboost", "binary").fit(X, y)
    with pytest.raises(ValueError, match="at least two classes"):
        rw.reweight(model, X_val, np.ones(len(y_val), int))
    for bad in (0, 1.5, True):
        with pytest.raises(ValueError, match="max_trees must be an integer of at least 1"):
            rw.prune(model, X_val, y_val, max_trees=bad)
    with pytest.raises(ValueError, match="selection must be"):
        rw.prune(model, X_val, y_val, max_trees=2, selection="best")
    with pytest.raises(ValueError, match="method must be"):
        rw.reweight(model, X_val, y_val, method="ridge")
    with pytest.raises(ValueError, match="covariance_penalty must be a finite number of at least 0, got -1"):
        rw.reweight(model, X_val, y_val, covariance_penalty=-1)
    with pytest.raises(ValueError, match="sample_weight must have shape"):
        rw.reweight(model, X_val, y_val, sample_weight=[1.0])
    Xm, ym, Xm_val, ym_val = split("multiclass")
    many = make("xgboost", "multiclass").fit(Xm, ym)
    with pytest.raises(ValueError, match="ridge must be above 0"):
        rw.reweight(many, Xm_val, ym_val, ridge=0)
    counts = xgboost.XGBRegressor(objective="count:poisson", n_estimators=2, n_jobs=1).fit(X, y)
    with pytest.raises(ValueError, match="not on the scale of y"):
        rw.reweight(counts, X_val, y_val)
    regressor = make("xgboost", "regression").fit(X, y)
    with pytest.raises(ValueError, match="y must be finite"):
        rw.reweight(regressor, X_val, np.where(y_val > 0, np.nan, 0.0))
    Quantile = type(make("GradientBoosting", "regression"))
    for tool, options in ((rw.reweight, {}), (rw.prune, {"max_trees": 1})):
        with pytest.raises(ValueError, match="predicts a quantile of y"):
            tool(Quantile(loss="quantile", n_estimators=2).fit(X, y), X_val, y_val, **options)
    regression = rw.reweight(make("RandomForest", "regression").fit(X, y), X_val, y_val)
    with pytest.raises(AttributeError, match="predict_proba"):
        regression.model.predict_proba(X_val)
    with pytest.raises(AttributeError, match="classes_"):
        _ = regression.model.classes_


@pytest.mark.parametrize("task", TASKS)
def test_weighted_trees_are_an_estimator_of_scikit_learn(task):
    X, y, X_val, y_val = split(task)
    found = rw.prune(make("RandomForest", task).fit(X, y), X_val, y_val, max_trees=4)
    model = found.model
    assert isinstance(model, rw.WeightedTrees)
    assert is_classifier(model) == (task != "regression")
    assert is_regressor(model) == (task == "regression")
    measure = r2_score if task == "regression" else accuracy_score
    assert model.score(X_val, y_val) == pytest.approx(measure(y_val, model.predict(X_val)))
    assert clone(model) is model.fit(X, y) is model
    assert model.n_features_in_ == 6
    importances = permutation_importance(model, X_val, y_val, n_repeats=2, random_state=0).importances_mean
    assert importances.shape == (6,)
    assert importances.max() > 0
    assert "WeightedTrees" in repr(model)
    if task == "regression":
        assert not hasattr(model, "predict_proba")
        assert not hasattr(model, "decision_function")
    else:
        assert model.classes_.tolist() == sorted(set(y))
        calibrated = CalibratedClassifierCV(FrozenEstimator(model)).fit(X_val, y_val)
        assert_allclose(calibrated.predict_proba(X_val).sum(axis=1), 1)
        assert calibrated.score(X_val, y_val) > 0.5


def test_weighted_trees_read_tables_by_name():
    pd = pytest.importorskip("pandas")
    X, y, X_val, y_val = split("binary")
    columns = list("abcdef")
    forest = RandomForestClassifier(n_estimators=5, random_state=0).fit(pd.DataFrame(X, columns=columns), y)
    model = rw.reweight(forest, pd.DataFrame(X_val, columns=columns), y_val).model
    assert model.feature_names_in_.tolist() == columns
    with pytest.raises(ValueError, match="in this order"):
        model.predict(pd.DataFrame(X_val, columns=columns[::-1]))


def test_a_single_tree_is_kept():
    X, y, X_val, y_val = split("binary")
    model = xgboost.XGBClassifier(n_estimators=1, n_jobs=1).fit(X, y)
    found = rw.prune(model, X_val, y_val, max_trees=1)
    assert len(found.kept) == 1
    assert "1 of 1" in repr(found)
    assert repr(found).startswith("All 1 trees are kept")


@pytest.mark.parametrize("suffix", [".json", ".ubj"])
@pytest.mark.parametrize("task", TASKS)
def test_a_pruned_model_keeps_no_trace_of_the_dropped_trees(task, suffix, tmp_path):
    from scboost import SCBoostClassifier, SCBoostRegressor, load_model

    X, y, X_val, y_val = split(task)
    Model = SCBoostRegressor if task == "regression" else SCBoostClassifier
    model = Model(n_estimators=12, n_jobs=1, random_state=0).fit(X, y)
    model.save_model(tmp_path / f"whole{suffix}")
    sizes = [(tmp_path / f"whole{suffix}").stat().st_size]
    for max_trees in (9, 6, 3, 1):
        pruned = rw.prune(model, X_val, y_val, max_trees=max_trees).model
        assert pruned.n_estimators_ == len(pruned.weights_) == max_trees
        assert all(pruned.weights_.reshape(max_trees, -1).any(axis=1))
        pruned.save_model(tmp_path / f"pruned{suffix}")
        sizes.append((tmp_path / f"pruned{suffix}").stat().st_size)
        again = load_model(tmp_path / f"pruned{suffix}")
        assert np.array_equal(again.predict(X_val), pruned.predict(X_val))
        if task == "regression":
            assert_allclose(list(again.staged_predict(X_val))[-1], pruned.predict(X_val), rtol=1e-6)
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes)


def test_the_verdict_of_pruning_comes_first_and_compares_with_the_model():
    X, y, X_val, y_val = split("binary")
    model = make("xgboost", "binary").fit(X, y)
    found = rw.prune(model, X_val, y_val, max_trees=3)
    assert found.loss_before == pytest.approx(log_loss(y_val, model.predict_proba(X_val)), rel=1e-5)
    assert repr(found).splitlines()[0] == found.verdict
    assert found.verdict.startswith(
        f"3 of {T} trees are kept; the validation loss changes from {found.loss_before:.4g}"
    )
