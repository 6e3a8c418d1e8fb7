"""The report on intervals, label sets and distributions, and on models whose targets it does not support."""

import lightgbm
import numpy as np
import pytest
import xgboost
from scipy import stats
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import scboost
from scboost import SCBoostClassifier, SCBoostDistribution, SCBoostRanker, SCBoostRegressor, SCBoostSurvival
from scboost._core.distributions import PredictedDistribution
from scboost.diagnostics._predictions import Predictions
from scboost.diagnostics.sections.uncertainty import evaluate_uncertainty


def heteroscedastic(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3))
    return X, 5 * X[:, 1] + (0.3 + X[:, 0]) * rng.normal(size=n)


def report(model, X, y):
    return scboost.report(model, X, y, measure_speed=False)


@pytest.fixture(scope="module")
def regressor():
    X, y = heteroscedastic(500)
    return SCBoostRegressor(random_state=0, max_depth=2).fit(X, y)


def test_coverage_of_intervals_is_that_of_predict_interval(regressor):
    X, y = heteroscedastic(600, 1)
    found = report(regressor, X, y).analysis.uncertainty
    assert found.kind == "interval"
    assert [one.nominal for one in found.coverage] == [0.8, 0.9, 0.95]
    for one in found.coverage:
        low, high = regressor.predict_interval(X, one.nominal).T
        inside = np.mean((low <= y) & (y <= high))
        assert one.observed == pytest.approx(inside)
        assert one.size == pytest.approx(np.mean(high - low))
        assert one.low < one.observed < one.high
        assert one.high - one.low == pytest.approx(2 * 1.96 * np.sqrt(inside * (1 - inside) / 600), rel=0.1)
        assert one.differs == (not one.low <= one.nominal <= one.high)
        assert one.observed > one.nominal - 0.03  # the errors of fold models are larger than those of their average


def test_intervals_inside_of_a_pipeline_are_those_of_the_ensemble():
    X, y = heteroscedastic(400)
    pipeline = make_pipeline(StandardScaler(), SCBoostRegressor(random_state=0, max_depth=2)).fit(X, y)
    found = report(pipeline, X, y).analysis.uncertainty
    low, high = pipeline[-1].predict_interval(pipeline[0].transform(X), 0.9).T
    assert found.coverage[1].size == pytest.approx(np.mean(high - low))


def test_coverage_of_label_sets_is_that_of_predict_set():
    X, y = load_iris(return_X_y=True)
    labels = np.array(["a", "b", "c"])[y]
    model = SCBoostClassifier(random_state=0, max_depth=2).fit(X[::2], labels[::2])
    found = report(model, X[1::2], labels[1::2])
    sets = model.predict_set(X[1::2], 0.95)
    one = found.analysis.uncertainty.coverage[2]
    assert one.size == pytest.approx(sets.sum(axis=1).mean())
    assert one.observed == pytest.approx(sets[np.arange(75), y[1::2]].mean())
    assert "mean number of labels" in found.html()


def test_scores_of_distributions_are_those_of_predict_distribution():
    X, y = heteroscedastic(600)
    model = SCBoostDistribution(random_state=0).fit(X, y)
    X_test, y_test = heteroscedastic(400, 1)
    whole, predicted = report(model, X_test, y_test), model.predict_distribution(X_test)
    found = whole.analysis.uncertainty
    np.testing.assert_allclose(found.pit, np.histogram(predicted.cdf(y_test), 10, (0, 1))[0] / 400)
    assert found.nll == pytest.approx(-predicted.logpdf(y_test).mean())
    assert found.crps == pytest.approx(predicted.crps(y_test).mean())
    low, high = predicted.interval(0.9).T
    assert found.coverage[1].observed == pytest.approx(np.mean((low <= y_test) & (y_test <= high)))
    assert whole.analysis.facts.task == "distributional regression"
    assert "PIT histogram" in whole.html()
    far = report(model, X_test, predicted.mean() + 2 * (y_test - predicted.mean()))
    assert far.analysis.uncertainty.p_value < 1e-6
    assert far.analysis.uncertainty.coverage[0].differs
    assert "Coverage below the nominal level" in far.markdown()


class Truth:
    """A model that knows the distribution of the targets."""

    def __init__(self, name, distribution):
        self.distribution = PredictedDistribution(name, distribution)

    def predict_distribution(self, X):
        del X
        return self.distribution


@pytest.mark.parametrize("factor", [1.0, 0.7, 1.5])
@pytest.mark.parametrize("name", ["normal", "negative_binomial"])
def test_pit_is_uniform_for_the_true_distribution_only(name, factor):
    rng = np.random.default_rng(0)
    mean = rng.uniform(1, 5, size=4000)

    def distribution(spread):
        return (
            stats.norm(loc=mean, scale=spread)
            if name == "normal"
            else stats.nbinom(n=2 / spread, p=1 / (1 + mean * spread / 2))
        )

    y = distribution(1.0).rvs(random_state=rng).astype(float)
    model = Truth(name, distribution(factor))
    found = evaluate_uncertainty(model, "distribution", None, Predictions(y, mean, None, None), seed=0)
    assert found.pit.sum() == pytest.approx(1)
    if factor == 1:
        assert found.p_value > 0.01
        assert np.mean((found.pit_low < found.pit) & (found.pit < found.pit_high)) >= 0.8
    else:
        assert found.p_value < 1e-4
    if name == "normal":
        assert (found.coverage[0].observed < 0.78) == (factor < 1)


def test_models_without_uncertainty_have_no_such_tab(regressor):
    X, y = heteroscedastic(200, 2)
    fixed = report(SCBoostRegressor(n_estimators=10).fit(X, y), X, y)
    assert fixed.analysis.uncertainty is None
    assert "tab-uncertainty" not in fixed.html()
    assert report(xgboost.XGBRegressor(n_estimators=5).fit(X, y), X, y).analysis.uncertainty is None
    assert report(regressor, X, None).analysis.uncertainty is None
    labels = (y > 2).astype(int)
    calibrated = CalibratedClassifierCV(FrozenEstimator(SCBoostClassifier(max_depth=2).fit(X, labels))).fit(X, labels)
    assert report(calibrated, X, labels).analysis.uncertainty is None


def other_models():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    relevance, query = np.digitize(X[:, 0], [0.5, 1.5]), np.repeat(np.arange(30), 10)
    time = rng.exponential(np.exp(X[:, 0]))
    survival = np.column_stack([time, np.ones(300)])
    xgb = xgboost.XGBRanker(n_estimators=5).fit(X, relevance, qid=query)
    lgb = lightgbm.LGBMRanker(n_estimators=5, verbose=-1).fit(X, relevance, group=np.full(30, 10))
    cox = xgboost.XGBRegressor(n_estimators=5, objective="survival:cox").fit(X, time)
    return X, [
        (SCBoostRanker(n_estimators=5).fit(X, relevance, qid=query), relevance, "ranking"),
        (SCBoostSurvival(n_estimators=5).fit(X, survival), survival, "survival"),
        (SCBoostSurvival(loss="aft", n_estimators=5).fit(X, survival), survival, "survival"),
        (xgb, relevance, "ranking"),
        (lgb, relevance, "ranking"),
        (cox, time, "survival"),
    ]


def test_rankings_and_survival_models_are_reported_without_targets():
    X, models = other_models()
    for model, _, task in models:
        found = scboost.report(model, X, measure_speed=False)
        assert found.analysis.facts.task == task
        assert found.analysis.scores == []
        assert "Redundancy" in found.html()


def test_weights_of_survival_models_cannot_be_learned_afterwards():
    X, models = other_models()
    model, y, _ = models[1]
    with pytest.raises(ValueError, match="not on the scale of y"):
        scboost.reweight(model, X, y)
