"""The paper's Algorithm 1 against a literal reference: an SVD of the history every round, SciPy for the weights."""

import numpy as np
import pytest
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeRegressor

from data_makers import two_classes
from scboost import SCBoostClassifier
from scboost._core.history import History
from scboost_lab.literal import fit_literal, simplex_weights
from scboost_lab.printed import PrintedSCBoost


@pytest.fixture
def projections(monkeypatch):
    """Every projection that a fit makes, in order."""
    seen = []
    solve = History.solve

    def record(self, r, sums, **kwargs):
        residual, found = r.copy(), solve(self, r, sums, **kwargs)
        seen.append((residual, found._replace(innovation=found.innovation.copy())))
        return found

    monkeypatch.setattr(History, "solve", record)
    return seen


CASES = [
    {"seed": 0, "alpha": 0.9, "eta": 0.1, "penalty": 0.1, "depth": 5},
    {"seed": 1, "alpha": 0.9, "eta": 0.5, "penalty": 0.0, "depth": 5},
    {"seed": 2, "alpha": 0.5, "eta": 0.1, "penalty": 10.0, "depth": 2},
    {"seed": 3, "alpha": 0.99, "eta": 0.3, "penalty": 1.0, "depth": 3},
    {"seed": 4, "alpha": 1.0, "eta": 0.1, "penalty": 0.1, "depth": 4},
]


def fit_both(X, y, case, T=30):
    """The library's model and the literal one, on the same split."""
    model = PrintedSCBoost.from_paper(
        estimator=DecisionTreeRegressor(max_depth=case["depth"], random_state=0),
        n_estimators=T,
        energy_threshold=case["alpha"],
        learning_rate=case["eta"],
        covariance_penalty=case["penalty"],
    ).fit(X, y)
    split = train_test_split(X, y, test_size=0.2, stratify=y, random_state=42)
    X_train, X_val, y_train, y_val = split
    literal = fit_literal(
        X_train,
        y_train,
        X_val,
        y_val,
        n_estimators=T,
        learning_rate=case["eta"],
        energy_threshold=case["alpha"],
        covariance_penalty=case["penalty"],
        max_depth=case["depth"],
        random_state=0,
    )
    return model, literal, X_val, y_val


def objective(w, H, y, penalty):
    F = H @ w
    return np.mean(np.logaddexp(0, F) - y * F) + penalty * w @ np.atleast_2d(np.cov(H.T, ddof=0)) @ w


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_round_and_the_weights_are_those_of_algorithm_1(projections, case):
    X, y = two_classes(n=500, seed=case["seed"])
    model, literal, X_val, y_val = fit_both(X, y, case)
    assert [p.k for _, p in projections] == literal.n_components.tolist()
    assert model.training_log_["components"].tolist() == literal.n_components.tolist()
    for t, (r, found) in enumerate(projections):
        np.testing.assert_allclose(r, literal.residuals[t], rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.innovation, literal.projected_residuals[t], rtol=0, atol=1e-9)

    # Where two columns split the training rows of a node in the same way, the last digit of the target decides between
    # them, and other rows may then fall on other sides: the weights are compared on the library's own trees.
    H = np.column_stack([tree.predict(X_val) for tree in model.estimators_])
    _, _, best, gap = simplex_weights(H, y_val, case["penalty"])
    assert gap < 1e-6
    # The problem may have many solutions, but its minimum is one number.
    assert model.weighting_result_.objective <= best + 1e-8
    assert model.weighting_result_.objective == pytest.approx(best, abs=1e-8 + gap)
    assert model.weighting_result_.gap <= 1e-8
    assert objective(model.weights_, H, y_val, case["penalty"]) == pytest.approx(
        model.weighting_result_.objective, abs=1e-12
    )
    assert model.weights_.sum() == pytest.approx(1)
    assert (model.weights_ >= 0).all()
    assert model.intercept_ == [0.0]
    np.testing.assert_allclose(model.decision_function(X_val), H @ model.weights_, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.5, 0.9, 1.0])
def test_with_stumps_the_whole_model_is_that_of_algorithm_1(alpha):
    # The only node of a stump holds all rows, so that no two splits tie.
    X, y = two_classes(n=500, seed=5)
    case = {"alpha": alpha, "eta": 0.3, "penalty": 5.0, "depth": 1}
    model, literal, _, y_val = fit_both(X, y, case)
    for mine, theirs in zip(model.estimators_, literal.trees, strict=True):
        np.testing.assert_array_equal(mine.tree_.feature, theirs.tree_.feature)
        np.testing.assert_array_equal(mine.tree_.threshold, theirs.tree_.threshold)
        np.testing.assert_allclose(mine.tree_.value, theirs.tree_.value, atol=1e-9)
    assert model.weighting_result_.objective == pytest.approx(literal.objective, abs=1e-8 + literal.gap)
    assert objective(model.weights_, literal.H_val, y_val, case["penalty"]) <= literal.objective + 1e-8


def test_the_papers_defaults():
    model = SCBoostClassifier.from_paper()
    assert (model.n_estimators, model.max_depth, model.energy_threshold, model.random_state) == (100, 5, 0.9, 42)
    assert (model.projection_strength, model.memory, model.leaf_rule) == (1.0, "all", "mean")
    assert (model.init, model.weighting, model.validation_fraction) == ("zero", "simplex", 0.2)
    assert SCBoostClassifier.from_paper(max_depth=3).max_depth == 3


def test_the_range_of_probabilities_is_as_narrow_as_the_paper_makes_it():
    # Learners are means of residuals in [-1, 1] and the weights sum to one: |F| cannot exceed 1.
    X, y = two_classes(n=400)
    model = SCBoostClassifier.from_paper(n_estimators=20, n_jobs=1).fit(X, y)
    assert np.abs(model.decision_function(X)).max() <= 1


def test_the_xgboost_engine_runs_the_same_algorithm():
    # Histogram bins hold every value here, so that both engines choose among the same splits; equal gains may still be
    # broken differently, hence the tolerance on accuracy and not on trees.
    X, y = two_classes(n=250, flip=0.0)
    exact = SCBoostClassifier.from_paper(estimator=DecisionTreeRegressor(max_depth=5, random_state=0), n_estimators=1)
    binned = SCBoostClassifier.from_paper(n_estimators=1, max_bin=512, n_jobs=1)
    a, b = exact.fit(X, y).decision_function(X), binned.fit(X, y).decision_function(X)
    assert np.mean(np.abs(a - b) < 1e-5) > 0.9
