"""Tree weights of rankings and survival models: convex problems, their solutions, and the estimators."""

import copy

import numpy as np
import pytest
from scipy.optimize import minimize

import scboost
from data_makers import ranking_data, survival_data
from scboost import SCBoostRanker, SCBoostSurvival
from scboost._core.losses.ranking import FixedLambdaLoss
from scboost._core.weighting import learn_weights
from scboost.losses import (
    CoxLoss,
    EfronCoxLoss,
    ExtremeAFTLoss,
    LambdaRankLoss,
    LogisticAFTLoss,
    NormalAFTLoss,
    PairwiseLoss,
    XENDCGLoss,
)

RANKING = [PairwiseLoss(), XENDCGLoss(), LambdaRankLoss(3)]
COX = [CoxLoss(), EfronCoxLoss()]
AFT = [NormalAFTLoss(0.7), LogisticAFTLoss(0.7), ExtremeAFTLoss(0.7)]


def documents(seed=0):
    """Relevance and query of documents, raw scores, and weights, some of which are 0."""
    rng = np.random.default_rng(seed)
    query = rng.permutation(np.repeat(np.arange(9), rng.integers(1, 9, 9)))
    y = np.stack([rng.integers(0, 4, len(query)), query], axis=1).astype(float)
    return y, rng.normal(size=(1, len(query))), rng.integers(0, 4, len(query)).astype(float)


def tied_times(seed=0):
    """Bounds of right-censored times with ties, raw scores, and weights, some of which are 0."""
    rng = np.random.default_rng(seed)
    time = rng.integers(1, 9, 40).astype(float)
    bounds = np.stack([time, np.where(rng.random(40) < 0.6, time, np.inf)], axis=1)
    return bounds, rng.normal(size=(1, 40)), rng.integers(0, 4, 40).astype(float)


def data_of(loss):
    return documents() if loss.task == "ranking" else tied_times()


def convex(loss, y, raw, w):
    """The convex loss that weights are learned with, for LambdaRank at other scores than the raw ones."""
    return loss.convex_surrogate(y, raw[:, ::-1], w)


def total_loss(loss, y, raw, w):
    return float(w @ loss.derivatives(y, raw, w)[0])


@pytest.mark.parametrize("loss", [*RANKING, *COX], ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_gradient_and_hessian_product_are_derivatives_of_the_total_loss(loss, weighted):
    y, raw, weight = data_of(loss)
    given = weight if weighted else None
    w = weight if weighted else np.ones(len(y))
    loss = convex(loss, y, raw, given)
    step, V = 1e-5, np.random.default_rng(1).normal(size=(len(y), 3))
    gradient = w * loss.derivatives(y, raw, given)[1][0]
    slopes = [total_loss(loss, y, raw + step * v, w) - total_loss(loss, y, raw - step * v, w) for v in V.T]
    np.testing.assert_allclose(gradient @ V, np.array(slopes) / (2 * step), atol=1e-7)
    changes = [
        w * (loss.derivatives(y, raw + step * v, given)[1][0] - loss.derivatives(y, raw - step * v, given)[1][0])
        for v in V.T
    ]
    product = loss.hessian_product(y, raw, given, V)
    np.testing.assert_allclose(product, np.stack(changes, axis=1) / (2 * step), atol=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_surrogate_of_lambdarank_has_its_gradient(weighted):
    y, raw, weight = documents()
    w = weight if weighted else None
    for truncation in (1, 3, 30):
        loss = LambdaRankLoss(truncation)
        found, expected = (one.derivatives(y, raw, w)[1:] for one in (FixedLambdaLoss(loss, y, raw, w), loss))
        np.testing.assert_allclose(found, expected, atol=1e-14)


def test_the_surrogate_of_lambdarank_is_convex_along_every_segment():
    y, raw, w = documents()
    loss = LambdaRankLoss(3).convex_surrogate(y, raw, w)
    rng = np.random.default_rng(2)
    for _ in range(50):
        a, b = rng.normal(size=(2, 1, len(y))) * 3
        middle = total_loss(loss, y, (a + b) / 2, w)
        assert middle <= (total_loss(loss, y, a, w) + total_loss(loss, y, b, w)) / 2 + 1e-12


@pytest.mark.parametrize("loss", [NormalAFTLoss(0.7), ExtremeAFTLoss(0.7)], ids=repr)
def test_the_exact_gradient_of_aft_is_not_limited(loss):
    y = np.array([[1.0, 1.0], [0.5, np.inf], [0.2, 3.0]])
    raw, step = np.array([[-20.0, -20.0, 25.0]]), 1e-6
    up, down = (loss.pointwise_loss(y, raw + d) for d in (step, -step))
    exact = loss.exact_gradient(y, raw)[0]
    np.testing.assert_allclose(exact, (up - down) / (2 * step), rtol=1e-4)
    assert np.abs(exact).max() > np.abs(loss.gradient_hessian(y, raw)[0]).max()


def test_distributions_have_no_convex_loss():
    with pytest.raises(ValueError, match="need a convex loss"):
        scboost.losses.NormalLoss().convex_surrogate(np.zeros(3), np.zeros((2, 3)), None)


def contributions(y, loss, T=8):
    rng = np.random.default_rng(3)
    signal = y[:, 0] if loss.task == "ranking" or loss in AFT else -y[:, 0]
    return 0.3 * rng.normal(size=(len(y), T)) + 0.1 * signal[:, None] * rng.uniform(0, 1, T)


@pytest.mark.parametrize("loss", [*RANKING, *COX, *AFT], ids=repr)
def test_learned_weights_minimize_the_stated_objective(loss):
    y, _, s = data_of(loss)
    A, T, start = contributions(y, loss), 8, 0.1
    found = learn_weights(A, y, loss=loss, start=start, sample_weight=s, covariance_penalty=0.2, ridge=0.05)
    fixed = loss.convex_surrogate(y, (start + A.sum(axis=1))[None], s)
    C = np.cov(A, rowvar=False, aweights=s, ddof=0)

    def objective(z):
        u, b = z[:T], z[T] if loss in AFT else 0.0
        mean = total_loss(fixed, y, (start + b + A @ u)[None], s) / s.sum()
        return mean + 0.2 * u @ C @ u + 0.05 / T * np.sum((u - 1) ** 2)

    bounds = [(0, None)] * T + [(None, None)]
    oracle = minimize(objective, np.r_[np.ones(T), 0.0], bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-9})
    assert found.converged
    assert found.gap <= 1e-8
    assert found.objective == pytest.approx(objective(np.r_[found.weights, found.intercept]), rel=1e-9)
    assert found.objective <= oracle.fun + 1e-8
    assert loss in AFT or found.intercept == [0.0]


@pytest.mark.parametrize("loss", [PairwiseLoss(), XENDCGLoss(), CoxLoss(), *AFT], ids=repr)
def test_integer_weights_of_queries_and_samples_equal_repetition(loss):
    """Not so for ties under Efron's rule, and for LambdaRank, whose queries are divided by their mean size."""
    y, _, s = data_of(loss)
    if loss.task == "ranking":
        s = s[np.unique(y[:, 1], return_index=True)[1]][y[:, 1].astype(int)]
    A = contributions(y, loss)
    weighted = learn_weights(A, y, loss=loss, sample_weight=s)
    if loss.task == "ranking":
        rows = [np.flatnonzero(s > k) for k in range(int(s.max()))]
        copies = np.concatenate([np.stack([y[r, 0], y[r, 1] + 100 * k], axis=1) for k, r in enumerate(rows)])
        repeated = learn_weights(np.concatenate([A[r] for r in rows]), copies, loss=loss)
    else:
        rows = np.repeat(np.arange(len(y)), s.astype(int))
        repeated = learn_weights(A[rows], y[rows], loss=loss)
    np.testing.assert_allclose(weighted.weights, repeated.weights, atol=1e-4)


OPTIONS = [
    {"n_estimators": 20, "weighting": "nonnegative"},
    {"n_estimators": 20, "weighting": "simplex"},
    {"n_estimators": 20, "weighting": "nonnegative", "weighting_data": "out_of_fold"},
    {"n_estimators": 20, "weighting": "nonnegative", "weighting_data": "fold_average"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("loss", ["lambdarank", "pairwise", "xendcg"])
def test_weighted_rankings_keep_their_scores_in_files(loss, options, tmp_path):
    X, y, qid = ranking_data()
    model = SCBoostRanker(loss=loss, random_state=0, **options).fit(X[:400], y[:400], qid=qid[:400])
    assert model.weighting_result_.converged
    assert model.score(X[400:], y[400:], qid=qid[400:]) > 0.8
    model.save_model(tmp_path / "ranker.json")
    np.testing.assert_array_equal(scboost.load_model(tmp_path / "ranker.json").predict(X), model.predict(X))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("loss", ["cox", "aft"])
def test_weighted_survival_models_keep_their_functions_in_files(loss, options, tmp_path):
    X, y = survival_data(300)
    model = SCBoostSurvival(loss=loss, random_state=0, **options).fit(X[:200], y[:200])
    assert model.weighting_result_.converged
    assert model.score(X[200:], y[200:]) > 0.6
    model.save_model(tmp_path / "survival.json")
    again = scboost.load_model(tmp_path / "survival.json")
    times = [0.2, 1.0, 2.0]
    np.testing.assert_array_equal(again.predict_survival_function(X, times), model.predict_survival_function(X, times))


@pytest.mark.parametrize("options", [{"preset": "best"}, {"weighting": "nonnegative"}], ids=str)
@pytest.mark.parametrize("loss", ["cox", "aft"])
def test_cumulative_hazards_of_weighted_models_add_up_to_the_events(loss, options):
    """The expected number of events of new samples, up to their observed times, is near the number observed."""
    X, y = survival_data(3000)
    model = SCBoostSurvival(loss=loss, random_state=0, **options).fit(X[:1000], y[:1000])
    hazards = model.predict_cumulative_hazard_function(X[1000:], np.unique(y[1000:, 0]))
    own = hazards[np.arange(2000), np.searchsorted(np.unique(y[1000:, 0]), y[1000:, 0])]
    assert own.sum() == pytest.approx(y[1000:, 1].sum(), rel=0.1)


def test_weights_do_not_change_the_unweighted_fit():
    X, y, qid = ranking_data()
    model = SCBoostRanker(n_estimators=10, weighting="nonnegative", weighting_data="out_of_fold", weight_ridge=1e9)
    plain = SCBoostRanker(n_estimators=10)
    found, expected = (copy.copy(one).fit(X, y, qid=qid).predict(X) for one in (model, plain))
    np.testing.assert_allclose(found, expected, atol=1e-5)
