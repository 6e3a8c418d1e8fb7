"""Facts about more than two classes: labels, probabilities, class weights, weights of trees."""

import numpy as np
import pytest
from scipy import optimize, special
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict

from data_makers import FAST, three_classes
from scboost._estimators import SCBoostClassifier

X, y = three_classes()


@pytest.mark.parametrize(
    "labels", [["b", "c", "a"], [7, -1, 3], [2.0, 0.0, 1.0], np.array(["x", "yy", "z"], dtype=object)], ids=str
)
def test_class_labels_do_not_change_the_model(labels):
    named = np.array(labels)[y]
    model = SCBoostClassifier(**FAST).fit(X, named)
    order = np.argsort(labels)
    assert model.classes_.tolist() == sorted(labels)
    # Trees do not depend on the names; only the order of the classes does.
    reference = SCBoostClassifier(**FAST).fit(X, np.argsort(order)[y])
    np.testing.assert_array_equal(model.predict_proba(X), reference.predict_proba(X))
    assert set(model.predict(X)) <= set(labels)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_labels_in_any_container(library):
    module = pytest.importorskip(library)
    text = np.array(["low", "middle", "high"])[y]
    container = {"pandas": "Series", "polars": "Series", "pyarrow": "array"}[library]
    given = getattr(module, container)(text.tolist())
    model = SCBoostClassifier(**FAST).fit(X, given)
    np.testing.assert_array_equal(model.predict_proba(X), SCBoostClassifier(**FAST).fit(X, text).predict_proba(X))


def test_probabilities_scores_and_stages_agree():
    model = SCBoostClassifier(**FAST).fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_allclose(p, special.softmax(model.decision_function(X).astype(float), axis=1), rtol=1e-6)
    np.testing.assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
    *_, last = model.staged_predict_proba(X)
    np.testing.assert_allclose(last, p, rtol=1e-4)
    assert model.weights_.shape == (8, 3)
    assert model.shap_values(X).shape == (300, 3, 6)
    np.testing.assert_allclose(model.shap_values(X).sum(axis=2), model.decision_function(X), rtol=1e-3, atol=1e-4)


def test_shifting_all_class_scores_changes_nothing():
    model = SCBoostClassifier(**FAST).fit(X, y)
    assert model.intercept_.sum() == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(special.softmax(model.intercept_), np.bincount(y) / len(y), rtol=1e-6)


def test_it_learns_as_well_as_scikit_learns():
    for data in (load_iris(return_X_y=True), tuple(part[:600] for part in load_digits(return_X_y=True))):
        models = (
            SCBoostClassifier(n_estimators=20, n_jobs=1, random_state=0),
            HistGradientBoostingClassifier(max_iter=20, random_state=0),
        )
        ours, theirs = (log_loss(data[1], cross_val_predict(m, *data, cv=3, method="predict_proba")) for m in models)
        assert ours < theirs + 0.05


def test_class_weights_shift_the_prevalence_as_documented():
    p = np.bincount(y) / len(y)
    wanted = np.array([0.5, 0.3, 0.2])
    shifted = SCBoostClassifier(**FAST, class_weight=dict(enumerate(wanted / p))).fit(X, y)
    np.testing.assert_allclose(special.softmax(shifted.intercept_), wanted, rtol=1e-6)
    balanced = SCBoostClassifier(**FAST, class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(balanced.intercept_, 0, atol=1e-9)


def test_classes_without_weight_are_left_out():
    model = SCBoostClassifier(**FAST).fit(X, y, sample_weight=(y != 1).astype(float))
    assert model.classes_.tolist() == [0, 2]
    kept = y != 1
    np.testing.assert_array_equal(
        model.predict_proba(X), SCBoostClassifier(**FAST).fit(X[kept], y[kept]).predict_proba(X)
    )


# --- weights of trees -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighting_data", ["holdout", "out_of_fold", "fold_average"])
def test_weights_of_many_classes_are_optimal(weighting_data):
    params = {**FAST, "weighting": "nonnegative", "weighting_data": weighting_data, "cv": 3}
    model = SCBoostClassifier(**params).fit(X, y)
    result = model.weighting_result_
    assert result.converged
    assert result.gap <= 1e-8
    assert result.weights.shape == (8,)  # one weight a round, for its three trees
    assert (np.ptp(model.weights_, axis=1) == 0).all()
    assert model.score(X, y) > 0.8


def test_weights_of_many_classes_are_those_of_scipy():
    new, labels = three_classes(seed=1)
    params = {**FAST, "covariance_penalty": 0.1, "weight_ridge": 0.05}
    plain = SCBoostClassifier(**params).fit(X, y)
    model = SCBoostClassifier(**params, weighting="nonnegative").fit(X, y, X_val=new, y_val=labels)
    H = plain._model.ensemble.contributions(new).astype(float) * plain.weights_[:, :, None]
    C = sum(np.cov(H[:, k], bias=True) for k in range(3))

    def objective(z):
        w, b = z[:8], z[8:]
        F = plain.intercept_ + b + np.einsum("tki,t->ik", H, w)
        away = np.sum((w - 1) ** 2) + np.sum(b**2)
        return log_loss(labels, special.softmax(F, axis=1)) + 0.1 * w @ C @ w + 0.05 / 8 * away

    start = np.r_[np.ones(8), np.zeros(3)]
    bounds = [(0, None)] * 8 + [(None, None)] * 3
    best = optimize.minimize(objective, start, bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-10})
    assert model.weighting_result_.objective == pytest.approx(best.fun, abs=1e-7)
    np.testing.assert_allclose(model.weighting_result_.weights, best.x[:8], atol=1e-3)
    np.testing.assert_allclose(model.weighting_result_.intercept, best.x[8:], atol=1e-3)


def test_weights_on_the_simplex():
    model = SCBoostClassifier(**FAST, weighting="simplex").fit(X, y)
    np.testing.assert_allclose(model.weights_.sum(axis=0), 1)
