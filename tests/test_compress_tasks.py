"""Compression of rankings and survival models: predictions, files and certificates."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import xgboost as xgb

import scboost
from data_makers import ranking_data, survival_data
from scboost import SCBoostDistribution, SCBoostRanker, SCBoostSurvival
from scboost._compress.measures import independent_pairs
from scboost._core.survival import concordance


@pytest.fixture(scope="module")
def ranker():
    X, y, qid = ranking_data(80)
    return SCBoostRanker(n_estimators=60, random_state=0, truncation=5).fit(X[:400], y[:400], qid=qid[:400])


@pytest.fixture(scope="module", params=["cox", "aft"])
def survival(request):
    X, y = survival_data()
    return SCBoostSurvival(loss=request.param, n_estimators=60, random_state=0).fit(X[:400], y[:400])


SMALL = {"max_trees": 8, "n_synthetic": 4000, "random_state": 0, "max_bytes": None}


def test_a_compressed_ranking_orders_documents_like_its_teacher(ranker, tmp_path):
    X, y, qid = ranking_data(80)
    found = scboost.compress(ranker, X[:400], X_certify=X[400:], y_certify=y[400:], qid_certify=qid[400:], **SMALL)
    small, certificate = found.model, found.certificate
    assert isinstance(small, SCBoostRanker)
    assert (small.loss, small.truncation, small.n_estimators_) == ("lambdarank", 5, 8)
    assert found.fidelity > 0.9
    new, old = small.predict(X[400:]), ranker.predict(X[400:])
    first, second = np.triu_indices(10, 1)
    gaps = [(p.reshape(-1, 10)[:, first] - p.reshape(-1, 10)[:, second]).ravel() for p in (new, old)]
    alike = np.mean((gaps[0] > 0) == (gaps[1] > 0))  # of all pairs within queries
    assert certificate.n_pairs == 40  # one for each query
    assert certificate.agreement_bound < certificate.agreement
    assert certificate.agreement == pytest.approx(alike, abs=0.1)
    ndcg = [model.score(X[400:], y[400:], qid=qid[400:]) for model in (small, ranker)]
    assert certificate.loss_rise == pytest.approx(ndcg[1] - ndcg[0])
    assert (1 - found.loss, 1 - found.teacher_loss) == pytest.approx(tuple(ndcg))
    assert certificate.loss_rise <= certificate.loss_rise_bound < 1
    assert "ranked in the same order" in str(certificate)
    small.save_model(tmp_path / "small.json")
    np.testing.assert_array_equal(scboost.load_model(tmp_path / "small.json").predict(X), small.predict(X))
    booster = xgb.Booster(model_file=tmp_path / "small.json")
    np.testing.assert_allclose(booster.predict(xgb.DMatrix(X)), small.predict(X), atol=1e-5)


def test_queries_are_held_out_as_a_whole(ranker):
    X, y, qid = ranking_data(80)
    found = scboost.compress(ranker, X, y, qid=qid, certify_fraction=0.21, **SMALL)
    assert found.certificate.n_samples == 170  # the next multiple of a query's size
    assert found.certificate.n_pairs == 17


def test_a_ranking_without_queries_certifies_pairs_of_any_documents(ranker):
    X, *_ = ranking_data(80)
    certificate = ranker.compress(X[:400], X_certify=X[400:], **SMALL).certificate
    assert certificate.n_pairs == 200
    assert certificate.loss_rise is None


def test_relevances_need_queries(ranker):
    X, y, qid = ranking_data(80)
    with pytest.raises(ValueError, match="pass qid with y"):
        ranker.compress(X, y, **SMALL)
    with pytest.raises(ValueError, match="qid_certify was given without X_certify"):
        ranker.compress(X, qid_certify=qid, **SMALL)
    with pytest.raises(ValueError, match="qid has shape"):
        ranker.compress(X, y, qid=qid[:10], **SMALL)


def test_a_compressed_survival_model_predicts_survival_functions(survival, tmp_path):
    X, y = survival_data()
    found = scboost.compress(survival, X[:400], X_certify=X[400:], y_certify=y[400:], **SMALL)
    small, certificate = found.model, found.certificate
    assert isinstance(small, SCBoostSurvival)
    assert small.loss == survival.loss
    assert found.fidelity > 0.9
    times = [0.2, 0.5, 1.0, 2.0]
    functions = [model.predict_survival_function(X[400:], times) for model in (small, survival)]
    spread = np.abs(functions[1] - functions[1].mean(axis=0)).mean()
    assert np.abs(functions[0] - functions[1]).mean() < spread / 3
    assert small.score(X[400:], y[400:]) > survival.score(X[400:], y[400:]) - 0.03
    assert certificate.n_pairs == 200
    bounds = np.stack([survival.predict(X[400:])] * 2, axis=1)  # concordance with the teacher
    assert certificate.agreement == pytest.approx(concordance(bounds, -small.predict(X[400:])), abs=0.05)
    assert (certificate.loss_rise_bound is None) == (survival.loss == "cox")
    assert certificate.loss_rise == pytest.approx(found.loss - found.teacher_loss)
    small.save_model(tmp_path / "small.ubj")
    again = scboost.load_model(tmp_path / "small.ubj")
    assert again.loss == survival.loss
    np.testing.assert_array_equal(again.predict_survival_function(X, times), small.predict_survival_function(X, times))


def test_the_baseline_does_not_count_against_the_automatic_size():
    X, y = survival_data()
    model = SCBoostSurvival(n_estimators=60, random_state=0).fit(X[:400], y[:400])
    fitted = model.__fitted_model__()
    long = {"time": np.linspace(0, 1, 5000), "cumulative_hazard": np.linspace(0, 1, 5000)}
    sizes = [
        copy.copy(model)
        .__with_fitted_model__(replace(fitted, baseline=baseline))
        .compress(X[:400], max_trees=8, n_synthetic=4000, random_state=0)
        .n_leaves
        for baseline in (fitted.baseline, long)
    ]
    assert sizes[0] == sizes[1]


def test_max_trees_compresses_in_fit():
    X, y, qid = ranking_data(40)
    assert SCBoostRanker(n_estimators=30, max_trees=4, random_state=0).fit(X, y, qid=qid).n_estimators_ == 4
    X, y = survival_data(300)
    model = SCBoostSurvival(n_estimators=30, max_trees=4, random_state=0).fit(X, y)
    assert model.n_estimators_ == 4
    assert (np.diff(model.predict_survival_function(X[:5])) <= 0).all()


def test_a_distribution_is_refused():
    X, y = survival_data(100)
    model = SCBoostDistribution(n_estimators=3).fit(X, y[:, 0])
    with pytest.raises(ValueError, match="this is a model of distribution"):
        scboost.compress(model, X)


def test_pairs_are_disjoint_and_ordered_by_the_teacher():
    rng = np.random.default_rng(0)
    raw = rng.integers(0, 5, 1000).astype(float)
    for query in (None, rng.integers(0, 100, 1000)):
        high, low = independent_pairs(raw, query)
        used = np.concatenate([high, low])
        assert len(np.unique(used)) == len(used)
        assert (raw[high] > raw[low]).all()
        if query is not None:
            np.testing.assert_array_equal(query[high], query[low])
            assert len(np.unique(query[high])) == len(high)


def test_the_bound_of_agreement_holds_as_often_as_it_says():
    """Pairs of a ranking that are ordered alike with probability 0.8: the bound is below in 95 % of certificates."""
    rng = np.random.default_rng(1)
    from scboost._compress.certificate import certify

    below = 0
    for _ in range(400):
        same = rng.random(60) < 0.8
        found = certify(same, np.zeros(60), None, 0.95, (1.0, None), of_pairs=True)
        below += found.agreement_bound <= 0.8
    assert below >= 0.93 * 400
