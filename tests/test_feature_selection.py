"""Features selected by cross-validation, together with the number of rounds."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from data_makers import QUICK, mostly_noise
from scboost import SCBoostClassifier, SCBoostRegressor
from scboost._core.statistics import standard_errors
from scboost._core.stopping import ComparedStopping
from scboost._data.hashing import row_keys

pytest.importorskip("xgboost")
from scboost._engine.xgboost.engine import XGBoostEngine


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_feature_selection_drops_noise_and_improves_test_loss(n_classes):
    X, y = mostly_noise(1800, n_classes=n_classes)
    cls = SCBoostClassifier if n_classes else SCBoostRegressor
    some, all_ = (cls(**QUICK, feature_selection=selects).fit(X[:800], y[:800]) for selects in (True, False))
    assert {0, 1, 2} <= set(some.selected_features_.tolist())
    assert len(some.selected_features_) < 6
    assert not hasattr(all_, "selected_features_")
    if n_classes:
        losses = [log_loss(y[800:], model.predict_proba(X[800:])) for model in (some, all_)]
    else:
        losses = [np.mean((y[800:] - model.predict(X[800:])) ** 2) for model in (some, all_)]
    assert losses[0] < 0.95 * losses[1]


def test_dropped_features_do_not_affect_predictions():
    X, y = mostly_noise()
    model = SCBoostClassifier(**QUICK).fit(X, y)
    left_out = np.setdiff1d(np.arange(X.shape[1]), model.selected_features_)
    assert len(left_out) > 10
    assert not model.feature_importances_[left_out].any()
    other = X.copy()
    other[:, left_out] = np.nan
    np.testing.assert_array_equal(model.predict_proba(other), model.predict_proba(X))


def test_informative_features_are_all_kept():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = (X.sum(axis=1) + 0.3 * rng.normal(size=600) > 0).astype(int)
    some, all_ = (SCBoostClassifier(**QUICK, feature_selection=selects).fit(X, y) for selects in (True, False))
    assert not hasattr(some, "selected_features_")
    np.testing.assert_array_equal(some.predict_proba(X), all_.predict_proba(X))


def test_single_feature_is_kept():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1))
    model = SCBoostClassifier(**QUICK).fit(X, X[:, 0] > rng.normal(size=200))
    assert not hasattr(model, "selected_features_")


def test_too_few_samples_select_no_features():
    X, y = mostly_noise(18)
    model = SCBoostClassifier(preset="best", random_state=0, n_jobs=1).fit(X, y)
    assert model.n_estimators_ == 500
    assert not hasattr(model, "selected_features_")


def test_kept_fold_models_have_their_own_feature_subsets():
    X, y = mostly_noise()
    model = SCBoostClassifier(**QUICK, preset="best").fit(X, y)
    used = np.flatnonzero(model.feature_importances_)
    np.testing.assert_array_equal(used, model.selected_features_)
    assert {0, 1, 2} <= set(used.tolist())
    assert len(used) < 15


def test_an_engine_on_a_feature_subset_grows_the_trees_of_the_submatrix():
    X, y = mostly_noise()
    columns = np.array([1, 4, 7, 0])
    params = {"max_depth": 4}
    signs = np.zeros(X.shape[1], dtype=int)
    signs[0] = 1
    groups = [[0, 1], [7, 20], [30]]
    some = {"monotone_constraints": tuple(signs.tolist()), "interaction_constraints": groups}
    own = {"monotone_constraints": tuple(signs[columns].tolist()), "interaction_constraints": [[3, 0], [2]]}
    target, curvature = (y - 0.5).astype(np.float32)[None], np.full((1, len(y)), 0.25, dtype=np.float32)
    engines = (
        XGBoostEngine(X, 1, {**params, **some}, features=columns),
        XGBoostEngine(X[:, columns], 1, {**params, **own}),
    )
    (one,), (other,) = (engine.grow(target.copy(), curvature, 0) for engine in engines)
    np.testing.assert_array_equal(one.leaf, other.leaf)
    split = one.model["left_children"] != -1
    assert len(set(one.model["split_indices"][split])) > 1
    np.testing.assert_array_equal(one.model["split_indices"][split], columns[other.model["split_indices"][split]])
    values = np.random.default_rng(0).normal(size=len(one.nodes))
    obeyed = [engine.constrain(tree, values, curvature[0]) for engine, tree in zip(engines, (one, other), strict=True)]
    np.testing.assert_array_equal(*obeyed)
    assert (obeyed[0] != values).any()


def test_standard_errors_do_not_depend_on_the_unit_of_weights_or_repetitions():
    rng = np.random.default_rng(0)
    X, values = rng.normal(size=(5000, 2)), rng.normal(size=5000) + 0.05
    keys = row_keys(X)
    classical = values.mean() / (values.std() / np.sqrt(5000))
    assert standard_errors(values, keys) == pytest.approx(classical, rel=0.15)
    assert standard_errors(-values, keys) == pytest.approx(-standard_errors(values, keys))
    weight = rng.integers(0, 4, size=5000)
    repeated = np.repeat(np.arange(5000), weight)
    sure = standard_errors(values, keys, weight)
    assert standard_errors(values[repeated], keys[repeated]) == pytest.approx(sure)
    assert standard_errors(values, keys, weight * 1e6) == pytest.approx(sure)
    assert standard_errors(np.zeros(5000), keys) == 0


def test_a_candidate_stops_behind_the_best_or_without_improvement():
    stopping = ComparedStopping(patience=5, tol=0.0, reference=(3.0, 2.0, 1.0, 0.5), n_worse=2)
    assert not stopping.reached([3.1, 1.9, 1.1])  # behind once
    assert stopping.reached([2.9, 2.1, 1.1])
    assert not stopping.reached([2.9, 1.9, 1.1, 0.4])
    assert not stopping.reached([2.9, 2.1, 0.9, 0.6, 0.7, 0.55])  # the reference has stopped
    assert stopping.reached([2.9, 1.9, 0.9, 0.4, *[0.5] * 5])


@pytest.mark.parametrize("reason", [{"early_stopping_metric": "roc_auc"}, {"n_estimators": 20}, {"preset": "fast"}])
def test_no_feature_is_dropped_without_selection_by_the_loss(reason):
    X, y = mostly_noise()
    model = SCBoostClassifier(**{**QUICK, **reason}).fit(X, y)
    assert not hasattr(model, "selected_features_")
