"""The reference implementation, which the library must agree with."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from scboost import SCBoostClassifier, SCBoostRegressor, reference
from scboost.reference import LogisticLoss, Settings, SoftmaxLoss, SquaredLoss, TreeSettings
from scboost.weighting import simplex_weights


def seed_of(random_state):
    """Seed that an estimator draws from its random_state."""
    return int(np.random.RandomState(random_state).randint(np.iinfo(np.int32).max))


def binary():
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:250].copy()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    return X, y[:250]


def three_classes():
    X, y = load_iris(return_X_y=True)
    return X + 0.01 * np.random.default_rng(0).normal(size=X.shape), y


# Parameters of an estimator, and the same as settings of the reference.
VARIANTS = {
    "default": ({}, {}),
    "no projection": ({"projection_strength": 0.0}, {"gamma": 0.0}),
    "all history": ({"memory": "all", "projection_strength": 1.0}, {"memory": None, "gamma": 1.0}),
    "whole span": ({"energy_threshold": 1.0}, {"alpha": 1.0}),
}
# Without noise, the labels of a classifier make the gains of many splits equal: regression has no such ties.
REGRESSION_VARIANTS = {
    **VARIANTS,
    "no exploration": ({"exploration": 0.0}, {"nu": 0.0}),
    "leaf means": (
        {"leaf_rule": "mean", "exploration": 0.0, "init": "zero"},
        {"leaf_values": "mean", "nu": 0.0, "start": "zero"},
    ),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_binary_classifier_equals_the_reference(variant):
    parameters, settings = VARIANTS[variant]
    X, y = binary()
    parameters = {"n_estimators": 12, "learning_rate": 0.1, "max_depth": 4, "random_state": 3, **parameters}
    model = SCBoostClassifier(**parameters).fit(X, y)
    plain = Settings(n_rounds=12, eta=0.1, tree=TreeSettings(4), seed=seed_of(3))
    expected = reference.boost(X, y, LogisticLoss(), reference.replace(plain, **settings))
    np.testing.assert_allclose(model.decision_function(X), expected.raw_scores(X)[0], atol=5e-6)


def test_multiclass_classifier_equals_the_reference():
    X, y = three_classes()
    model = SCBoostClassifier(n_estimators=12, learning_rate=0.1, max_depth=3, random_state=3).fit(X, y)
    settings = Settings(n_rounds=12, eta=0.1, tree=TreeSettings(3), seed=seed_of(3))
    expected = reference.boost(X, y, SoftmaxLoss(3), settings)
    np.testing.assert_allclose(model.decision_function(X), expected.raw_scores(X).T, atol=5e-6)


@pytest.mark.parametrize("variant", REGRESSION_VARIANTS)
def test_regressor_equals_the_reference(variant):
    parameters, settings = REGRESSION_VARIANTS[variant]
    X, y = (part[:250] for part in load_diabetes(return_X_y=True))  # every distinct value has a bin of its own
    parameters = {"n_estimators": 12, "learning_rate": 0.1, "max_depth": 3, "max_leaves": None, **parameters}
    model = SCBoostRegressor(random_state=3, **parameters).fit(X, y)
    plain = Settings(n_rounds=12, eta=0.1, gamma=0.7, nu=0.3, tree=TreeSettings(3), seed=seed_of(3))
    expected = reference.boost(X, y, SquaredLoss(), reference.replace(plain, **settings))
    np.testing.assert_allclose(model.predict(X), expected.raw_scores(X)[0], rtol=1e-5)


def test_symmetric_tree_has_one_split_per_level():
    X, y = load_diabetes(return_X_y=True)
    cuts = reference.quantile_cuts(X, 256)
    tree = reference.grow(X, cuts, y - y.mean(), np.ones(len(y)), TreeSettings(3, symmetric=True))
    splits, level = [], [0]
    while level:
        inner = [tree.nodes[i] for i in level if tree.nodes[i].feature >= 0]
        splits.append({(node.feature, node.threshold) for node in inner})
        level = [child for node in inner for child in (node.left, node.left + 1)]
    assert [len(level) for level in splits] == [1, 1, 1, 0]


@pytest.mark.parametrize("penalty", [0.0, 0.01, 1.0])
def test_simplex_weights_equal_the_certified_solver(penalty):
    X, y = load_breast_cancer(return_X_y=True)
    model = reference.boost(X[::2], y[::2], LogisticLoss(), Settings(n_rounds=8, eta=0.5, gamma=1.0, nu=0.0))
    H = model.contributions(X[1::2])[:, 0]
    w, gap = reference.simplex_weights(H, y[1::2].astype(float), penalty)
    expected = simplex_weights(H.T, y[1::2], covariance_penalty=penalty)
    assert gap <= 1e-8
    np.testing.assert_allclose(w @ H, expected.weights @ H, atol=2e-3)


def test_projection_is_orthogonal_in_the_metric_of_the_hessian():
    rng = np.random.default_rng(1)
    H, r, c = rng.normal(size=(4, 50)), rng.normal(size=50), rng.uniform(0.1, 1, 50)
    q = r - reference.project(H, r, c, alpha=1.0)
    np.testing.assert_allclose(H @ q, 0, atol=1e-12)


def test_selected_rounds_have_the_lowest_out_of_fold_loss():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:200], y[:200]
    folds = np.arange(200) % 2
    settings = Settings(n_rounds=8, eta=0.5, tree=TreeSettings(2))
    losses = np.zeros(8)
    for i in range(2):
        train, held_out = folds != i, folds == i
        fold_settings = reference.replace(settings, seed=settings.seed + 1 + i)
        for t in range(8):
            model = reference.boost(
                X[train], y[train], LogisticLoss(), reference.replace(fold_settings, n_rounds=t + 1)
            )
            losses[t] += LogisticLoss().pointwise_loss(y[held_out], model.raw_scores(X[held_out])).sum()
    assert reference.select_rounds(X, y, LogisticLoss(), settings, folds) == np.argmin(losses) + 1
