"""Fits on a Dask cluster of two processes: the same model, lazy predictions, and an end with an error when it must."""

import copy
import importlib
import os
import signal
import threading
import time
from dataclasses import asdict

import numpy as np
import pytest

import scboost
from scboost import Checkpoint
from scboost._runtime.communicator import WorkerError

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.filterwarnings("ignore")  # Dask's own: of sizes, ports and tasks that end


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("name", ["SCBoostSurvival", "SCBoostDistribution"])
def test_estimators_that_are_not_distributed_are_refused_in_words(name):
    with pytest.raises(ImportError, match=f"has no {name}, which is not distributed"):
        getattr(importlib.import_module("scboost.dask"), name)
    assert not hasattr(importlib.import_module("scboost.dask"), "SCBoostNothing")


def rows(n=1200, seed=0):
    """Samples with few distinct values, so that bins do not depend on the partitions."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).round(1).astype(np.float32)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, np.nan_to_num(X[:, 0] - X[:, 1] * X[:, 2]) + rng.normal(size=n)


def on_dask(name, **params):
    from scboost import dask

    return getattr(dask, name)(n_estimators=8, random_state=0, **params)


def local(name, **params):
    return getattr(scboost, name)(n_estimators=8, random_state=0, n_jobs=1, engine="xgboost", **params)


@pytest.mark.parametrize("chunk", [1200, 600, 300, 500])
def test_partitioning_does_not_change_the_model(client, chunk):
    X, y = rows()
    y = np.array(["no", "yes"])[(y > 0).astype(int)]
    weight = np.random.default_rng(1).integers(1, 3, size=len(y)).astype(float)
    dX = da.from_array(X, chunks=(chunk, 2))
    model = on_dask("SCBoostClassifier").fit(dX, da.from_array(y, chunks=chunk), da.from_array(weight, chunks=chunk))
    expected = local("SCBoostClassifier").fit(X, y, weight)
    probabilities = model.predict_proba(dX)
    assert isinstance(probabilities, da.Array)
    assert probabilities.shape == (1200, 2)
    np.testing.assert_allclose(probabilities.compute(), expected.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(model.predict(dX).compute(), expected.predict(X))
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))  # in memory


def documents(n_queries=80, seed=0):
    """Documents of queries of different sizes, with ties in relevance, and the ends of four chunks of whole queries."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 25, size=n_queries)
    qid = np.repeat(rng.permutation(1000)[:n_queries], sizes)
    X, y = rows(len(qid), seed)
    ends = np.cumsum(sizes)[[n_queries // 8, n_queries // 2 - 1, n_queries // 2, n_queries - 1]]
    return X, np.digitize(y, [0.5, 1.5]).astype(float), qid, tuple(np.diff([0, *ends]).tolist())


@pytest.mark.parametrize(
    "params",
    [
        {"loss": "lambdarank"},
        {"loss": "pairwise"},
        {"loss": "xendcg"},
        {"n_estimators": "auto", "learning_rate": 0.3},
        {"early_stopping": True, "n_estimators": 20, "learning_rate": 0.3},
        {"weighting": "nonnegative"},
    ],
    ids=str,
)
def test_rankers_equal_those_of_one_process(client, params):
    """LambdaRank has the mean size of all queries as a factor: workers with larger queries must not outweigh others."""
    X, y, qid, chunk = documents()
    weight = np.random.default_rng(1).integers(1, 3, size=len(y)).astype(float)
    dX = da.from_array(X, chunks=(chunk, 2))
    dy, dw, dq = (da.from_array(part, chunks=(chunk,)) for part in (y, weight, qid))
    model = on_dask("SCBoostRanker").set_params(**params).fit(dX, dy, dw, qid=dq)
    expected = local("SCBoostRanker").set_params(**params).fit(X, y, weight, qid=qid)
    assert model.n_estimators_ == expected.n_estimators_
    assert len(np.unique(expected.predict(X))) > 10
    np.testing.assert_allclose(model.predict(dX).compute(), expected.predict(X), atol=2e-5)
    np.testing.assert_array_equal(model.to_local().predict(X), model.predict(X))


def test_rankers_take_tables_and_validation_sets_whose_queries_are_whole(client):
    X, y, qid, chunk = documents()
    X_val, y_val, qid_val, _ = documents(20, seed=5)
    table = pd.DataFrame(X, columns=list("abcde")).assign(y=y, qid=qid)
    divisions = [0, *(np.cumsum(chunk)[:-1]), len(y) - 1]
    frame = dd.from_pandas(table, npartitions=1).repartition(divisions=divisions, force=True)
    params = {"early_stopping": True, "n_estimators": 20, "learning_rate": 0.3}
    held_out = {"X_val": pd.DataFrame(X_val, columns=list("abcde")), "y_val": y_val, "qid_val": qid_val}
    model = on_dask("SCBoostRanker").set_params(**params)
    model.fit(frame[list("abcde")], frame["y"], qid=frame["qid"], **held_out)
    expected = local("SCBoostRanker").set_params(**params).fit(table[list("abcde")], y, qid=qid, **held_out)
    assert model.n_estimators_ == expected.n_estimators_
    scores = model.predict(frame[list("abcde")]).compute()
    np.testing.assert_allclose(scores, expected.predict(table[list("abcde")]), atol=2e-5)


def test_rankers_resume_bit_identically(client, tmp_path):
    X, y, qid, _ = documents()
    chunk = (0, len(y))  # a worker without documents
    dX, (dy, dq) = da.from_array(X, chunks=(chunk, 5)), (da.from_array(part, chunks=(chunk,)) for part in (y, qid))
    checkpoint = Checkpoint(tmp_path / "fit.checkpoint", every=5)
    model = on_dask("SCBoostRanker", callbacks=[checkpoint]).fit(dX, dy, qid=dq)
    resumed = on_dask("SCBoostRanker", callbacks=[checkpoint]).fit(dX, dy, qid=dq, resume_from=checkpoint.path)
    np.testing.assert_array_equal(resumed.predict(X), model.predict(X))


def test_rankers_refuse_divided_and_missing_queries(client):
    X, y, qid, _ = documents()
    dX, dy, dq = da.from_array(X, chunks=(200, 5)), da.from_array(y, chunks=200), da.from_array(qid, chunks=200)
    with pytest.raises(ValueError, match=r"query \d+ is in the partitions \[0, 1\].*shuffle"):
        on_dask("SCBoostRanker").fit(dX[:400], dy[:400], qid=dq[:400])
    with pytest.raises(ValueError, match="needs the queries of the documents: give qid"):
        on_dask("SCBoostRanker").fit(dX, dy)
    with pytest.raises(ValueError, match="give qid_val"):
        on_dask("SCBoostRanker").fit(dX, dy, qid=dq, X_val=X, y_val=y)
    equal = da.zeros(200, chunks=200)
    with pytest.raises(ValueError, match="no query with documents of different relevance"):
        on_dask("SCBoostRanker").fit(dX[:200], equal, qid=dq[:200])


def test_seeds_are_drawn_as_in_a_local_fit(client):
    X, y = rows(300)
    dX, dy = da.from_array(X, chunks=(150, 5)), da.from_array(y, chunks=150)
    for state in (None, 3, np.random.RandomState(3)):
        here, there = (copy.deepcopy(state) for _ in range(2))
        for _ in range(2):  # the state of a RandomState advances, so that the second fit differs from the first
            expected = local("SCBoostRegressor").set_params(random_state=here).fit(X, y).predict(X)
            found = on_dask("SCBoostRegressor").set_params(random_state=there).fit(dX, dy).predict(X)
            np.testing.assert_allclose(found, expected, atol=1e-5)


def test_tables_with_categories_validation_sets_and_empty_partitions(client):
    X, y = rows()
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["f"] = np.array(["u", "v", "w", "x"])[np.arange(1200) // 300]
    target = pd.Series(y, index=frame.index)
    # The second partition is empty, the third has categories of its own.
    table = dd.concat([dd.from_pandas(frame[:600], npartitions=2), dd.from_pandas(frame[600:], npartitions=1)])
    table = table.map_partitions(lambda part: part[part.index // 300 != 1])
    values = dd.concat([dd.from_pandas(target[:600], npartitions=2), dd.from_pandas(target[600:], npartitions=1)])
    values = values.map_partitions(lambda part: part[part.index // 300 != 1])
    kept = np.arange(1200) // 300 != 1
    new_X, new_y = rows(seed=1)
    new = pd.DataFrame(new_X, columns=list("abcde")).assign(f="u")
    model = on_dask("SCBoostRegressor", learning_rate=0.5).set_params(n_estimators="auto")
    model.fit(table, values, X_val=new, y_val=new_y)
    expected = local("SCBoostRegressor", learning_rate=0.5).set_params(n_estimators="auto")
    expected.fit(frame[kept], y[kept], X_val=new, y_val=new_y)
    assert model.n_estimators_ == expected.n_estimators_
    predicted = model.predict(table)
    assert isinstance(predicted, dd.Series)
    np.testing.assert_allclose(predicted.compute(), expected.predict(frame[kept]), atol=1e-5)
    assert predicted.compute().index.equals(frame.index[kept])


def test_the_result_is_an_ordinary_model(client, tmp_path):
    X, y = rows()
    classes = np.digitize(y, [-0.5, 0.5])
    model = on_dask("SCBoostClassifier").fit(da.from_array(X, chunks=(400, 5)), da.from_array(classes, chunks=400))
    own = model.to_local()
    assert type(own) is scboost.SCBoostClassifier
    assert own.get_params() == model.get_params()
    own.save_model(tmp_path / "model.ubj")
    stored = scboost.load_model(tmp_path / "model.ubj")
    expected = local("SCBoostClassifier").fit(X, classes).predict_proba(X)
    for fitted in (own, stored):
        np.testing.assert_allclose(fitted.predict_proba(X), expected, atol=1e-6)
    assert scboost.redundancy_report(model, X).n_outputs == 3


@pytest.mark.parametrize("kind", ["two classes", "three classes", "numbers", "forest"])
@pytest.mark.parametrize("with_y", [True, False])
def test_a_report_of_distributed_samples_equals_that_of_one_process(client, kind, with_y):
    from sklearn.ensemble import RandomForestClassifier

    from scboost.dask import redundancy_report

    X, y = rows()
    X = np.nan_to_num(X)
    y = y if kind == "numbers" else np.digitize(y, [-0.5, 0.5] if kind == "three classes" else [0])
    order = np.argsort(y, kind="stable")  # partitions with one class only
    X, y = X[order], y[order]
    model = (
        RandomForestClassifier(5, max_depth=4, random_state=0, n_jobs=1)
        if kind == "forest"
        else local("SCBoostRegressor" if kind == "numbers" else "SCBoostClassifier")
    ).fit(X, y)
    expected = scboost.redundancy_report(model, X, y if with_y else None)
    # Nine partitions, more than are added up at once; two are empty.
    chunks = (133, 0, 200, 67, 300, 100, 150, 0, 250)
    found = redundancy_report(
        model, da.from_array(X, chunks=(chunks, (2, 3))), da.from_array(y, chunks=(chunks,)) if with_y else None
    )
    for name, value in asdict(expected).items():
        if isinstance(value, str) or value is None:
            assert getattr(found, name) == value
        else:
            np.testing.assert_allclose(getattr(found, name), value, rtol=1e-9, atol=1e-9, err_msg=name)


def test_a_report_of_tables_of_a_model_fitted_on_dask(client):
    from scboost.dask import redundancy_report

    X, y = rows()
    frame = pd.DataFrame(X, columns=list("abcde")).assign(f=np.array(["u", "v"])[np.arange(1200) // 600])
    table, values = dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.Series(y), npartitions=3)
    model = on_dask("SCBoostRegressor").fit(table, values)
    found = redundancy_report(model, table, values, name="shared")
    assert found.model_name == "shared"
    assert found.ensemble_score == pytest.approx(model.to_local().score(frame, y), abs=1e-6)
    with pytest.raises(ValueError, match="X has 3, y has 1"):
        redundancy_report(model, table, values.repartition(npartitions=1))
    with pytest.raises(TypeError, match=r"X is a DataFrame; scboost\.dask needs Dask collections"):
        redundancy_report(model, frame)
    with pytest.raises(ValueError, match="X must have at least one sample"):
        redundancy_report(model, table.loc[5000:])


def test_dates_are_expanded_as_on_one_machine(client):
    X, y = rows()
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(1200) // 3, "D")  # no year changes in a partition
    frame = pd.DataFrame(X, columns=list("abcde")).assign(day=days)
    y = y + 2 * (days.month == 3)
    table, values = dd.from_pandas(frame, npartitions=4), dd.from_pandas(pd.Series(y), npartitions=4)
    model = on_dask("SCBoostRegressor").fit(table, values)
    expected = local("SCBoostRegressor").fit(frame, y)
    assert model.model_feature_names_.tolist() == expected.model_feature_names_.tolist()
    assert "day: year" in model.model_feature_names_
    np.testing.assert_allclose(model.predict(table).compute(), expected.predict(frame), atol=0.1)


def test_refit_removes_attributes_of_the_first_fit(client):
    X, y = rows()
    data = da.from_array(X, chunks=(600, 5)), da.from_array((y > 0).astype(int), chunks=600)
    model = on_dask("SCBoostClassifier", weighting="nonnegative").fit(*data)
    assert hasattr(model, "weighting_result_")
    model.set_params(weighting=None).fit(*data)
    assert not hasattr(model, "weighting_result_")
    assert model.n_estimators_ == 8


def test_a_validation_set_in_fewer_chunks_than_workers(client):
    X, y = rows()
    new_X, new_y = rows(n=200, seed=1)
    weight = np.linspace(0.5, 1.5, len(new_y))
    params = {"early_stopping": True, "n_iter_no_change": 2, "learning_rate": 0.5, "n_estimators": 30}
    given = {"X_val": new_X, "y_val": new_y, "sample_weight_val": weight}
    one_chunk = {name: da.from_array(value, chunks=value.shape) for name, value in given.items()}
    model = on_dask("SCBoostRegressor").set_params(**params)
    model.fit(da.from_array(X, chunks=(400, 5)), da.from_array(y, chunks=400), **one_chunk)
    expected = local("SCBoostRegressor").set_params(**params).fit(X, y, **given)
    assert model.n_estimators_ == expected.n_estimators_
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-5)


def test_a_worker_without_samples_and_empty_chunks_at_prediction(client):
    X, y = rows()
    weight = np.linspace(0.5, 1.5, len(y))
    chunks = (600, 600, 0, 0)
    dX = da.from_array(X, chunks=((1200,), (5,))).rechunk((chunks, (5,)))
    parts = [da.from_array(v, chunks=(chunks,)) for v in ((y > 0).astype(int), weight)]
    model = on_dask("SCBoostClassifier").fit(dX, *parts)
    expected = local("SCBoostClassifier").fit(X, (y > 0).astype(int), weight)
    np.testing.assert_array_equal(model.predict(dX).compute(), expected.predict(X))
    np.testing.assert_allclose(model.predict_proba(dX).compute(), expected.predict_proba(X), atol=1e-6)
    none = dX[dX[:, 0] > 100]
    assert model.predict(none).compute().shape == (0,)
    assert model.predict_proba(none).compute().shape == (0, 2)


def test_several_quantiles_are_columns(client):
    X, y = rows()
    table = pd.DataFrame(X, columns=list("abcde"))
    frame = dd.from_pandas(table, npartitions=2)
    model = on_dask("SCBoostRegressor", loss="quantile", quantile=[0.1, 0.9])
    predicted = model.fit(frame, dd.from_pandas(pd.Series(y), npartitions=2)).predict(frame)
    assert list(predicted.columns) == [0.1, 0.9]
    expected = local("SCBoostRegressor", loss="quantile", quantile=[0.1, 0.9]).fit(table, y).predict(table)
    np.testing.assert_allclose(predicted.compute().to_numpy(), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, y[:300]), "X has 2, y has 1"),
        (lambda X, y: (X.compute(), y), "X is a ndarray; scboost.dask needs Dask collections"),
        (lambda X, y: (X, da.zeros(1200, chunks=600)), "number of classes has to be greater than one"),
        (lambda X, y: (da.where(X > 3, np.inf, X), y), "infinity"),
    ],
)
def test_errors_reach_the_driver(client, change, message):
    X, y = rows()
    X[X[0, 0] == X] = 4.0
    X, y = change(da.from_array(X, chunks=(600, 5)), da.from_array((y > 0).astype(int), chunks=600))
    with pytest.raises((ValueError, TypeError), match=message):
        on_dask("SCBoostClassifier").fit(X, y)


def test_parameters_that_need_one_process_are_rejected(client):
    from sklearn.tree import DecisionTreeRegressor

    X, y = da.zeros((10, 2), chunks=(5, 2)), da.zeros(10, chunks=5)
    for params in ({"estimator": DecisionTreeRegressor()}, {"warm_start": True}):
        with pytest.raises(ValueError, match=next(iter(params))):
            on_dask("SCBoostRegressor", **params).fit(X, y)
    with pytest.raises(TypeError, match=r"eval_set.*X_val"):
        on_dask("SCBoostRegressor").fit(X, y, eval_set=[(X, y)])


@pytest.mark.slow
def test_a_killed_worker_ends_the_fit_and_a_checkpoint_resumes_it_bit_identically(client, tmp_path):
    X, y = rows()
    dX, dy = da.from_array(X, chunks=(600, 5)), da.from_array(y, chunks=600)
    params = {"n_estimators": 60, "random_state": 0}
    whole = on_dask("SCBoostRegressor").set_params(**params).fit(dX, dy)
    path = tmp_path / "fit.checkpoint"
    pids = client.run(os.getpid)
    killed = []

    def kill_in_round_20():
        while not path.exists():
            time.sleep(0.01)
        victim = max(pids)
        killed.append(victim)
        os.kill(pids[victim], signal.SIGKILL)

    def slow(model):  # leaves time to be killed; a class of this module would need it on the workers' path
        if model.n_estimators_ >= 20:
            time.sleep(0.5)

    killer = threading.Thread(target=kill_in_round_20, daemon=True)
    killer.start()
    with pytest.raises(WorkerError, match=r"Lost worker .*The fit ended in round 2") as caught:
        on_dask("SCBoostRegressor", callbacks=[Checkpoint(path, every=20), slow]).set_params(**params).fit(dX, dy)
    killer.join()
    assert killed[0] in str(caught.value)
    client.wait_for_workers(2, timeout=60)
    resumed = on_dask("SCBoostRegressor").set_params(**params).fit(dX, dy, resume_from=path)
    assert resumed.n_estimators_ == 60
    np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))
