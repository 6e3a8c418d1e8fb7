"""Ranking: losses and metrics against brute force and other libraries, and the estimator."""

import copy
import pickle

import lightgbm
import numpy as np
import pytest
import sklearn
import xgboost as xgb
from scipy.optimize import approx_fprime
from sklearn.metrics import ndcg_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score

import scboost
from data_makers import ranking_data
from scboost import Checkpoint, SCBoostRanker
from scboost._core.losses import ranking
from scboost._core.ranking import ndcg_by_query, precision_by_query, reciprocal_rank_by_query
from scboost._data.folds import make_folds
from scboost._data.samples import Samples
from scboost._runtime.context import Context
from scboost.losses import LambdaRankLoss, PairwiseLoss, XENDCGLoss


@pytest.fixture(params=["compiled", "NumPy"])
def kernels(request, monkeypatch):
    """Whether losses are computed by compiled kernels."""
    if request.param == "NumPy":
        monkeypatch.setattr(ranking, "is_available", lambda: False)
    elif not ranking.is_available():
        pytest.skip("the compiled kernels are not installed")


def documents(n_queries=9, seed=0):
    """Relevance and query of documents in random order, raw scores, and weights, some of which are 0."""
    rng = np.random.default_rng(seed)
    query = rng.permutation(np.repeat(np.arange(n_queries), rng.integers(1, 9, n_queries)))
    n = len(query)
    y = np.stack([rng.integers(0, 4, n), query], axis=1).astype(float)
    return y, rng.normal(size=(1, n)), rng.integers(0, 4, n).astype(float)


def brute_force_lambdas(y, raw, truncation):
    """Gradient and Hessian of LambdaRank, pair by pair."""
    gradient, hessian = np.zeros(len(y)), np.zeros(len(y))
    for query in np.unique(y[:, 1]):
        rows = np.flatnonzero(y[:, 1] == query)
        rows = rows[np.argsort(-raw[0, rows])]
        gain = 2 ** y[rows, 0] - 1
        best = sum(g / np.log2(i + 2) for i, g in enumerate(sorted(gain, reverse=True)[:truncation]))
        for i in range(min(truncation, len(rows))):
            for j in range(i + 1, len(rows)):
                if gain[i] == gain[j]:
                    continue
                change = abs(gain[i] - gain[j]) * abs(1 / np.log2(i + 2) - 1 / np.log2(j + 2)) / best
                high, low = (rows[i], rows[j]) if gain[i] > gain[j] else (rows[j], rows[i])
                p = 1 / (1 + np.exp(raw[0, high] - raw[0, low]))
                gradient[high] -= change * p
                gradient[low] += change * p
                hessian[[high, low]] += change * p * (1 - p)
    return gradient, hessian


@pytest.mark.parametrize("truncation", [1, 3, 30])
@pytest.mark.usefixtures("kernels")
def test_lambdas_are_those_of_all_pairs(truncation):
    y, raw, _ = documents()
    loss = LambdaRankLoss(truncation)
    normalized = loss.derivatives(y, raw, None)
    loss.normalized = False
    value, gradient, hessian = loss.derivatives(y, raw, None)
    expected = brute_force_lambdas(y, raw, truncation)
    np.testing.assert_allclose(gradient[0], expected[0], atol=1e-12)
    np.testing.assert_allclose(hessian[0], np.maximum(expected[1], 1e-16), atol=1e-12)
    ratio = np.divide(normalized[1][0], gradient[0], out=np.ones(len(y)), where=gradient[0] != 0)
    for query in np.unique(y[:, 1]):
        own = (y[:, 1] == query) & (gradient[0] != 0)
        np.testing.assert_allclose(ratio[own], ratio[own][:1].repeat(own.sum()))  # one positive factor of a query
        assert (ratio[own] > 0).all()
    shares = ndcg_by_query(y[:, 0], raw[0], y[:, 1].astype(int), truncation)
    np.testing.assert_allclose(value, np.nan_to_num(1 - shares)[y[:, 1].astype(int)])


@pytest.mark.usefixtures("kernels")
def test_lambdas_equal_those_of_lightgbm():
    y, raw, _ = documents(1, seed=4)
    n = len(y)
    expected = LambdaRankLoss(30)
    expected.normalized = False
    gradient, hessian = (part[0] for part in expected.derivatives(y, raw, None)[1:])
    params = {
        "objective": "lambdarank",
        "lambdarank_norm": False,
        "lambdarank_truncation_level": 30,
        "num_leaves": 2,
        "min_data_in_leaf": 0,
        "min_sum_hessian_in_leaf": 0,
        "min_data_in_bin": 1,
        "feature_pre_filter": False,
        "learning_rate": 1,
        "verbose": -1,
        "boost_from_average": False,
    }
    compared = 0
    for i in range(n):  # each alone in a leaf, whose value is the ratio of the two, if LightGBM makes the split
        alone = (np.arange(n) == i)[:, None].astype(float)
        data = lightgbm.Dataset(alone, y[:, 0], group=[n], init_score=raw[0], params=params)
        step = lightgbm.train(params, data, 1).predict(alone, raw_score=True)[i]
        if step:
            assert step == pytest.approx(-gradient[i] / hessian[i], rel=1e-3)
            compared += 1
    assert compared >= n / 2


@pytest.mark.parametrize("loss", [PairwiseLoss(), XENDCGLoss()])
@pytest.mark.usefixtures("kernels")
def test_derivatives_of_smooth_losses(loss):
    y, raw, w = documents()
    for weight in (None, np.ones(len(y)), w):
        used = np.ones(len(y)) if weight is None else weight
        _, gradient, hessian = loss.derivatives(y, raw, weight)

        def total(F, weight=weight, used=used):
            return loss.derivatives(y, F[None], weight)[0] @ used

        np.testing.assert_allclose(gradient[0] * used, approx_fprime(raw[0], total, 1e-7), atol=1e-5)
    second = approx_fprime(raw[0], lambda F: loss.derivatives(y, F[None], None)[1][0], 1e-6).diagonal()
    _, _, hessian = loss.derivatives(y, raw, None)
    np.testing.assert_allclose(hessian[0], np.maximum(second, 0), atol=1e-5)


@pytest.mark.usefixtures("kernels")
def test_pairwise_loss_is_that_of_all_pairs():
    y, raw, _ = documents()
    total = 0.0
    for query in np.unique(y[:, 1]):
        rows = np.flatnonzero(y[:, 1] == query)
        pairs = [(i, j) for i in rows for j in rows if y[i, 0] > y[j, 0]]
        total += sum(np.log1p(np.exp(raw[0, j] - raw[0, i])) for i, j in pairs) / len(rows)
    assert PairwiseLoss().derivatives(y, raw, None)[0].sum() == pytest.approx(total)


@pytest.mark.parametrize("loss", [LambdaRankLoss(5), PairwiseLoss(), XENDCGLoss()])
@pytest.mark.usefixtures("kernels")
def test_weights_of_a_query_scale_it_and_zero_leaves_out(loss):
    y, raw, w = documents()
    whole = loss.derivatives(y, raw, np.full(len(y), 3.0))
    for part, same in zip(whole[1:], loss.derivatives(y, raw, None)[1:], strict=True):
        np.testing.assert_allclose(part, same, atol=1e-12)
    kept = w > 0
    some, only = loss.derivatives(y, raw, w), loss.derivatives(y[kept], raw[:, kept], w[kept])
    np.testing.assert_allclose(some[1][:, kept], only[1], atol=1e-12)
    np.testing.assert_allclose(some[2][:, kept], only[2], atol=1e-12)


def test_metrics_by_query():
    y, raw, _ = documents(seed=2)
    query = y[:, 1].astype(int)
    for score in (raw[0], np.round(raw[0])):  # with ties
        for k in (2, 100):
            found = ndcg_by_query(y[:, 0], score, query, k)
            for q in range(9):
                own = query == q
                if own.sum() > 1 and y[own, 0].any():
                    assert found[q] == pytest.approx(ndcg_score([2 ** y[own, 0] - 1], [score[own]], k=k))
                elif not y[own, 0].any():
                    assert np.isnan(found[q])
    relevance, group = np.array([0.0, 1, 0, 2, 0, 0]), np.array([0, 0, 0, 0, 1, 1])
    score = np.array([4.0, 3, 2, 1, 1, 2])
    np.testing.assert_allclose(precision_by_query(relevance, score, group)[0], (1 / 2 + 2 / 4) / 2)
    np.testing.assert_allclose(precision_by_query(relevance, score, group, 2)[0], (1 / 2) / 2)
    np.testing.assert_allclose(reciprocal_rank_by_query(relevance, score, group)[0], 1 / 2)
    np.testing.assert_allclose(reciprocal_rank_by_query(relevance, score, group, 1)[0], 0)
    assert np.isnan(reciprocal_rank_by_query(relevance, score, group)[1])


# --- the estimator ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["lambdarank", "pairwise", "xendcg"])
def test_fit_ranks_and_native_model_agrees(loss, tmp_path):
    X, y, qid = ranking_data()
    model = SCBoostRanker(loss=loss, n_estimators=15).fit(X[:400], y[:400], qid=qid[:400])
    constant = ndcg_by_query(y[400:].astype(float), np.zeros(200), qid[400:] - 40)
    assert model.score(X[400:], y[400:], qid=qid[400:]) > np.nanmean(constant) + 0.1
    model.save_model(tmp_path / "model.ubj")
    native = xgb.Booster(model_file=str(tmp_path / "model.ubj"))
    np.testing.assert_allclose(native.predict(xgb.DMatrix(X)), model.predict(X), atol=1e-5)
    again = scboost.load_model(tmp_path / "model.ubj")
    assert isinstance(again, SCBoostRanker)
    for other in (again, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):  # noqa: S301 - our own bytes
        np.testing.assert_array_equal(other.predict(X), model.predict(X))


def test_group_and_qid_in_any_order_give_the_same_model():
    X, y, qid = ranking_data(20)
    by_group = SCBoostRanker(n_estimators=5, exploration=0).fit(X, y, group=[10] * 20)
    by_name = SCBoostRanker(n_estimators=5, exploration=0).fit(X, y, qid=[f"query {q}" for q in qid])
    np.testing.assert_array_equal(by_group.predict(X), by_name.predict(X))
    order = np.random.default_rng(0).permutation(len(X))
    options = {"loss": "pairwise", "n_estimators": 5, "exploration": 0}  # lambdas depend on the order of equal scores
    mixed = SCBoostRanker(**options).fit(X[order], y[order], qid=qid[order])
    np.testing.assert_allclose(mixed.predict(X), SCBoostRanker(**options).fit(X, y, qid=qid).predict(X), atol=1e-5)
    weights = np.random.default_rng(1).random(20) + 0.5
    of_queries = SCBoostRanker(n_estimators=5).fit(X, y, weights, qid=qid)
    of_documents = SCBoostRanker(n_estimators=5).fit(X, y, weights[qid], qid=qid)
    np.testing.assert_array_equal(of_queries.predict(X), of_documents.predict(X))


def test_folds_keep_queries_whole():
    X, y, qid = ranking_data(30)
    target = SCBoostRanker()._learn_target(
        np.stack([y, qid], axis=1).astype(float), X, None, Context().communicator, None
    )
    samples = target.samples
    assert isinstance(samples, Samples)
    options = {"n_classes": 0, "seed": 0, "all_needed": True, "groups": None, "positions": None, "fallback": 5}
    folds = make_folds(samples, "auto", 5, 5, context=Context(), **options)
    assert len(folds) == 5
    for train, held_out in folds:
        assert not set(qid[train]) & set(qid[held_out])


@pytest.mark.parametrize("metric", ["ndcg@5", "map@3", "mrr", "ndcg"])
def test_early_stopping_on_ranking_metrics(metric):
    X, y, qid = ranking_data()
    model = SCBoostRanker(n_estimators=20, learning_rate=0.3, early_stopping=True, early_stopping_metric=metric)
    model.fit(X[:400], y[:400], qid=qid[:400], X_val=X[400:], y_val=y[400:], qid_val=qid[400:])
    log = model.training_log_[f"validation_{metric}"]
    assert model.n_estimators_ == np.argmax(log) + 1
    if metric.startswith("ndcg"):
        k = 5 if metric == "ndcg@5" else None
        assert log.max() == pytest.approx(model.score(X[400:], y[400:], qid=qid[400:], k=k))


def test_rounds_are_selected_and_splitters_get_the_queries():
    X, y, qid = ranking_data(40)
    model = SCBoostRanker(loss="xendcg", max_depth=3, feature_selection=False).fit(X, y, qid=qid)
    assert 1 < model.n_estimators_ < 1000
    given = SCBoostRanker(loss="xendcg", max_depth=3, cv=GroupKFold(3), feature_selection=False).fit(X, y, qid=qid)
    assert 1 < given.n_estimators_ < 1000


def test_resumed_fit_is_bit_identical(tmp_path):
    X, y, qid = ranking_data(30)
    checkpoint = Checkpoint(tmp_path / "fit.checkpoint", every=4)
    whole = SCBoostRanker(n_estimators=10, callbacks=[checkpoint]).fit(X, y, qid=qid)
    resumed = checkpoint.load()
    assert resumed.n_estimators_ == 8
    np.testing.assert_array_equal(resumed.fit(X, y, qid=qid).predict(X), whole.predict(X))


X_SMALL, Y_SMALL, QID_SMALL = ranking_data(6)


@pytest.mark.parametrize(
    ("parameters", "given", "message"),
    [
        ({}, {}, "either qid or group"),
        ({}, {"qid": QID_SMALL, "group": [10] * 6}, "either qid or group"),
        ({}, {"group": [10] * 5}, "sum to the 60 rows"),
        ({}, {"qid": QID_SMALL[:50]}, "shape \\(60,\\)"),
        ({}, {"qid": QID_SMALL, "y": -Y_SMALL}, "relevances from 0"),
        ({}, {"qid": QID_SMALL, "y": 0 * Y_SMALL}, "needed to learn a ranking"),
        ({"truncation": 5, "loss": "pairwise"}, {"qid": QID_SMALL}, "truncation=5 needs"),
        ({"early_stopping_metric": "auc"}, {"qid": QID_SMALL}, "early_stopping_metric='auc'"),
    ],
)
def test_unsupported_input_is_rejected(parameters, given, message):
    with pytest.raises(ValueError, match=message):
        SCBoostRanker(**parameters).fit(X_SMALL, **{"y": Y_SMALL, **given})


@pytest.mark.parametrize("given", ["X", "X_val"])
def test_batches_are_refused(given, tmp_path):
    batches = scboost.Batches(lambda: iter([(X_SMALL, Y_SMALL)]), folder=tmp_path)
    data = {"X": X_SMALL, "y": Y_SMALL, "qid": QID_SMALL, given: batches}
    with pytest.raises(ValueError, match="does not support a fit to Batches"):
        SCBoostRanker(n_estimators=2).fit(**data)


def test_scikit_learn_routes_queries_to_fit_and_score():
    X, y, qid = ranking_data()
    k = 5
    with sklearn.config_context(enable_metadata_routing=True):
        model = SCBoostRanker(n_estimators=5).set_fit_request(qid=True).set_score_request(qid=True, k=True)
        params = {"qid": qid, "groups": qid, "k": k}
        found = cross_val_score(model, X, y, cv=GroupKFold(3), params=params)
        search = GridSearchCV(model, {"max_depth": [2, 4]}, cv=GroupKFold(3)).fit(X, y, **params)
    expected = [
        SCBoostRanker(n_estimators=5)
        .fit(X[train], y[train], qid=qid[train])
        .score(X[test], y[test], qid=qid[test], k=k)
        for train, test in GroupKFold(3).split(X, y, qid)
    ]
    np.testing.assert_allclose(found, expected)
    assert 0 < search.best_score_ <= 1
