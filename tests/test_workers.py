"""Distributed fits equal local ones, and an error of one worker reaches all. Workers are threads here."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone

from choices import CHOICES, predictions, some_rows
from data_makers import QUICK, rounded, two_classes
from scboost import Checkpoint, SCBoostClassifier, SCBoostRegressor
from scboost._core.losses import QuantileLoss
from scboost._core.sampling import Draws
from scboost._core.statistics import grouped_quantiles
from scboost._data.folds import content_folds
from scboost._data.hashing import rank_keys, row_keys
from scboost._engine.xgboost.collective import joined
from scboost._estimators.sharing import Part, fit_part
from scboost._runtime.communicator import SINGLE_PROCESS, WorkerError, agreed
from scboost._runtime.context import Context

tracker = pytest.importorskip("xgboost.tracker")


def share(n, work):
    """What ``work(rank, communicator)`` returns on each of n workers that share a collective."""
    meeting = tracker.RabitTracker(n_workers=n, host_ip="127.0.0.1", sortby="task")
    meeting.start()
    arguments = meeting.worker_args() | {"dmlc_timeout": 60}

    def one(rank):
        with joined(arguments | {"dmlc_task_id": f"{rank:04d}"}) as communicator:
            return work(rank, communicator)

    with ThreadPoolExecutor(n) as threads:
        return list(threads.map(one, range(n)))


def fit_shared(estimator, parts, **kwargs):
    """The model of workers with the given parts, and the traffic."""
    meeting = tracker.RabitTracker(n_workers=len(parts), host_ip="127.0.0.1", sortby="task")
    meeting.start()
    arguments = meeting.worker_args() | {"dmlc_timeout": 60}
    with ThreadPoolExecutor(len(parts)) as threads:
        futures = [
            threads.submit(fit_part, estimator, part, arguments | {"dmlc_task_id": f"{rank:04d}"}, **kwargs)
            for rank, part in enumerate(parts)
        ]
        outcomes = [future.result() for future in futures]
    assert outcomes[1:] == [None] * (len(parts) - 1)
    return outcomes[0].into(estimator), outcomes[0].traffic


def cut(n, places):
    return np.split(np.arange(n), places)


WEIGHT = np.random.default_rng(1).integers(0, 4, size=1500).astype(float)
TARGET = np.nan_to_num(rounded()[0]).sum(axis=1) + np.random.default_rng(2).normal(size=1500)
CASES = {
    "two classes": (SCBoostClassifier(), 2, None),
    "two classes, weights": (SCBoostClassifier(), 2, WEIGHT),
    "two classes, balanced": (SCBoostClassifier(class_weight="balanced"), 2, None),
    "three classes": (SCBoostClassifier(), 3, None),
    "selected rounds": (SCBoostClassifier(**QUICK), 2, None),
    "folds with weights": (
        SCBoostClassifier(n_estimators=8, weighting="nonnegative", weighting_data="out_of_fold"),
        2,
        None,
    ),
    "drawn rows and columns": (SCBoostClassifier(subsample=0.7, colsample_bytree=0.5), 2, None),
    "monotone": (SCBoostClassifier(monotone_constraints=[1, 0, 0, 1, 0, 0]), 2, None),
    "all directions": (SCBoostClassifier(energy_threshold=1.0, projection_strength=1.0), 2, None),
    "paper's loop": (SCBoostClassifier.from_paper(weighting=None, n_estimators=12), 2, None),
    "squared error": (SCBoostRegressor(), 0, None),
    "squared error, weights, all directions": (SCBoostRegressor(energy_threshold=1.0), 0, WEIGHT),
    "huber": (SCBoostRegressor(loss="huber"), 0, WEIGHT),
    "absolute error": (SCBoostRegressor(loss="absolute_error"), 0, WEIGHT),
    "quantiles": (SCBoostRegressor(loss="quantile", quantile=[0.1, 0.9]), 0, None),
    "expectile": (SCBoostRegressor(loss="expectile", expectile=0.8), 0, None),
    "poisson": (SCBoostRegressor(loss="poisson"), -1, None),
    "tweedie": (SCBoostRegressor(loss="tweedie"), -1, WEIGHT),
    "gamma": (SCBoostRegressor(loss="gamma"), -2, None),
}


def data_of(kind):
    if kind > 0:
        return rounded(n_classes=kind)
    X = rounded()[0]
    if kind == 0:
        return X, TARGET
    counts = np.random.default_rng(3).poisson(np.exp(TARGET / 4)).astype(float)
    return X, counts if kind == -1 else counts + 0.5


@pytest.mark.parametrize("name", CASES)
def test_two_workers_fit_the_model_of_one_process(name):
    estimator, kind, weight = CASES[name]
    estimator = estimator.set_params(n_jobs=1, random_state=0, engine="xgboost")
    if estimator.n_estimators == "auto" and name != "selected rounds":
        estimator.set_params(n_estimators=12)
    X, y = data_of(kind)
    alone = estimator.fit(X, y, weight)
    parts = [Part(X[rows], y[rows], None if weight is None else weight[rows]) for rows in cut(len(y), [600])]
    shared, _ = fit_shared(estimator, parts)
    assert shared.n_estimators_ == alone.n_estimators_
    predict = "predict_proba" if kind > 0 else "predict"
    expected = getattr(alone, predict)(X)
    np.testing.assert_allclose(getattr(shared, predict)(X), expected, rtol=1e-6, atol=1e-6)
    assert len(np.unique(expected)) > 10
    np.testing.assert_allclose(shared.training_log_["loss"], alone.training_log_["loss"], rtol=1e-7)


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("preset", ["default", pytest.param("best", marks=pytest.mark.slow)])
def test_two_workers_select_like_one_process(name, preset):
    choice = CHOICES[name]
    X, y = choice.make()
    estimator = choice.cls(**QUICK, preset=preset, engine="xgboost")
    alone = estimator.fit(X, y)
    assert choice.of(alone) != choice.otherwise
    shared, _ = fit_shared(estimator, [Part(some_rows(X, rows), y[rows], None) for rows in cut(len(y), [250])])
    assert choice.of(shared) == choice.of(alone)
    tolerance = choice.tolerance
    np.testing.assert_allclose(predictions(shared, X), predictions(alone, X), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("places", [[], [0], [1499], [300, 700, 1100], [0, 750, 750]], ids=str)
def test_any_number_of_partitions_gives_the_same_model(places):
    X, y = rounded()
    estimator = SCBoostClassifier(n_estimators=10, n_jobs=1, random_state=0, engine="xgboost")
    alone = estimator.fit(X, y).decision_function(X)
    parts = [Part(X[rows], y[rows]) for rows in cut(len(y), places)]
    np.testing.assert_allclose(fit_shared(estimator, parts)[0].decision_function(X), alone, atol=1e-6)


def test_order_and_distribution_of_samples_do_not_matter():
    X, y = rounded()
    estimator = SCBoostClassifier(**QUICK, engine="xgboost")
    order = np.random.default_rng(0).permutation(len(y))
    halves = [Part(X[rows], y[rows]) for rows in np.array_split(order, 2)]
    one, other = fit_shared(estimator, [Part(X, y)])[0], fit_shared(estimator, halves)[0]
    np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X), atol=1e-6)


def test_a_worker_may_have_one_class_only():
    X, y = rounded(n_classes=3)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    estimator = SCBoostClassifier(n_estimators=8, n_jobs=1, random_state=0, engine="xgboost")
    shared, _ = fit_shared(estimator, [Part(X[y == c], np.array(list("abc"))[y[y == c]]) for c in range(3)])
    np.testing.assert_array_equal(shared.classes_, ["a", "b", "c"])
    np.testing.assert_allclose(shared.predict_proba(X), estimator.fit(X, y).predict_proba(X), atol=1e-6)


def test_workers_without_or_with_equal_samples_finish_together():
    """What varies on some workers only, and rounds until no tree finds a split."""
    X, y = np.array([[1.0], [1], [1], [2], [2], [2]]), np.array([0, 0, 0, 1, 1, 1])
    model = SCBoostClassifier(
        n_estimators=30, learning_rate=0.5, min_child_weight=0.5, n_jobs=1, random_state=0, engine="xgboost"
    )
    alone = clone(model).fit(X, y)
    assert "no tree found a split" in alone.stop_reason_
    found, _ = fit_shared(model, [Part(X[rows], y[rows]) for rows in cut(6, [4, 6])])
    assert found.stop_reason_ == alone.stop_reason_
    np.testing.assert_allclose(found.predict_proba(X), alone.predict_proba(X), atol=1e-6)


def test_an_array_without_samples_may_be_at_any_address():
    """Dask puts arrays that it receives, and the empty ones, anywhere in a buffer."""
    X, y = rounded()
    empty = np.frombuffer(bytearray(16), dtype=np.float32, offset=3, count=0).reshape(0, X.shape[1])
    assert empty.__array_interface__["data"][0] % 4
    model = SCBoostClassifier(n_estimators=3, n_jobs=1, engine="xgboost")
    found, _ = fit_shared(model, [Part(X.astype(np.float32), y), Part(empty, y[:0])])
    np.testing.assert_allclose(found.predict_proba(X), clone(model).fit(X, y).predict_proba(X), atol=1e-6)


def test_workers_join_their_categories():
    pd = pytest.importorskip("pandas")
    X, y = rounded()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["g"] = pd.Series(np.array(["x", "y", "z", "w"], dtype=object)[np.arange(len(y)) // 400])
    frame["h"] = frame["g"].where(frame["g"] == "x", None)  # the second worker has no value of it
    estimator = SCBoostClassifier(n_estimators=10, n_jobs=1, random_state=0, engine="xgboost")
    parts = [Part(frame.iloc[rows], y[rows]) for rows in cut(len(y), [420])]
    shared, _ = fit_shared(estimator, parts)
    alone = estimator.fit(frame, y)
    assert shared._model.encoder == alone._model.encoder
    np.testing.assert_array_equal(shared.feature_names_in_, alone.feature_names_in_)
    np.testing.assert_allclose(shared.predict_proba(frame), alone.predict_proba(frame), atol=1e-6)


def test_early_stopping_and_weighting_on_a_validation_set():
    X, y = rounded()
    new_X, new_y = rounded(n=700, seed=1)
    for params in ({"learning_rate": 0.5}, {"n_estimators": 10, "weighting": "nonnegative"}):
        estimator = SCBoostClassifier(n_jobs=1, random_state=0, engine="xgboost", **params)
        alone = estimator.fit(X, y, X_val=new_X, y_val=new_y)
        parts = [
            Part(X[rows], y[rows], X_val=new_X[held_out], y_val=new_y[held_out])
            for rows, held_out in zip(cut(len(y), [900]), cut(700, [100]), strict=True)
        ]
        shared, _ = fit_shared(estimator, parts)
        assert shared.n_estimators_ == alone.n_estimators_
        np.testing.assert_allclose(shared.weights_, alone.weights_, atol=1e-5)
        np.testing.assert_allclose(shared.predict_proba(X), alone.predict_proba(X), atol=1e-5)


def test_samples_are_held_out_by_content():
    X, y = rounded()
    estimator = SCBoostClassifier(
        n_estimators=60, learning_rate=0.5, early_stopping=True, n_jobs=1, random_state=0, engine="xgboost"
    )
    alone = clone(estimator).fit(X, y)
    assert alone.n_estimators_ < 60
    for places in ([700], [200, 900]):
        shared, _ = fit_shared(estimator, [Part(X[rows], y[rows]) for rows in cut(len(y), places)])
        assert shared.n_estimators_ == alone.n_estimators_
        np.testing.assert_allclose(shared.predict_proba(X), alone.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_a_checkpoint_of_workers_resumes_bit_identically(loss, tmp_path):
    X = rounded()[0]
    y = data_of(-1)[1]
    path = tmp_path / "fit.checkpoint"
    parts = [Part(X[rows], y[rows]) for rows in cut(len(y), [600])]

    class StopAfter:
        def __call__(self, model):
            return model.n_estimators_ == 13

    params = {"n_estimators": 20, "loss": loss, "n_jobs": 1, "random_state": 0}
    whole, _ = fit_shared(SCBoostRegressor(**params), parts)
    callbacks = [Checkpoint(path, every=6), StopAfter()]
    stopped, _ = fit_shared(SCBoostRegressor(**params, callbacks=callbacks), parts)
    assert stopped.n_estimators_ == 13
    resumed, _ = fit_shared(SCBoostRegressor(**params), parts, resume=path.read_bytes())
    assert resumed.n_estimators_ == 20
    np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))
    with pytest.raises(ValueError, match="y has changed"):
        fit_shared(SCBoostRegressor(**params), [parts[0], Part(parts[1].X, parts[1].y + 1)], resume=path.read_bytes())


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (SCBoostRegressor(max_depth=2), "max_depth=2 was 3"),
        (SCBoostRegressor(max_depth=3, loss="huber"), "loss='huber' was 'squared_error'"),
        (SCBoostClassifier(max_depth=3), "is of a SCBoostRegressor; this is a SCBoostClassifier"),
    ],
    ids=["parameter", "loss", "class"],
)
def test_resuming_does_not_replace_the_estimator(other, message, tmp_path):
    X, y = rounded()
    path = tmp_path / "fit.checkpoint"
    parts = [Part(X[rows], y[rows].astype(float)) for rows in cut(len(y), [600])]
    given = {"n_estimators": 6, "n_jobs": 1, "random_state": 0}
    fit_shared(SCBoostRegressor(**given, max_depth=3, callbacks=[Checkpoint(path, every=3)]), parts)
    with pytest.raises(ValueError, match=message):
        fit_shared(clone(other).set_params(**given), parts, resume=path.read_bytes())


def test_three_collective_calls_a_round():
    X, y = rounded(n_classes=3)
    parts = [Part(X[rows], y[rows]) for rows in cut(len(y), [600])]
    traffic = [
        fit_shared(SCBoostClassifier(n_estimators=n, n_jobs=1, random_state=0, engine="xgboost"), parts)[1]
        for n in (10, 30)
    ]
    rounds = traffic[1]["rounds"] - traffic[0]["rounds"]
    assert rounds == 20
    assert traffic[1]["calls"] - traffic[0]["calls"] == 3 * rounds
    # Of each class: Gram matrix and products of five trees, two sums of up to 64 leaves, three sizes.
    assert traffic[1]["bytes"] - traffic[0]["bytes"] <= 8 * rounds * (3 * (36 + 128 + 3) + 10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda part: Part(part.X[:, :4], part.y), "partitions of X differ.*array of 6 features.*array of 4"),
        (lambda part: Part(np.where(np.isnan(part.X), np.inf, part.X), part.y), "infinity"),
        (lambda part: Part(part.X, part.y[:-1]), "y has 899 entries but X has 900 samples"),
        (lambda part: Part(part.X, part.y.astype(str)), "labels of several types"),
        (lambda part: Part(part.X, part.y, -np.ones(len(part.y))), "Negative values in sample_weight"),
    ],
)
def test_an_error_of_one_worker_is_the_error_of_all(change, message):
    X, y = rounded()
    parts = [Part(X[rows], y[rows]) for rows in cut(len(y), [600])]
    if "weight" in message:
        parts[0] = Part(parts[0].X, parts[0].y, np.ones(600))
    parts[1] = change(parts[1])
    with pytest.raises((ValueError, TypeError), match=message):
        fit_shared(SCBoostClassifier(n_estimators=3, n_jobs=1, random_state=0, engine="xgboost"), parts)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"early_stopping_metric": "roc_auc", "early_stopping": True},
            "early_stopping_metric='roc_auc' cannot be used",
        ),
        ({"cv": [([0], [1])]}, "cv=.* cannot be used with several workers"),
    ],
)
def test_parameters_without_distributed_support_are_rejected_before_any_round(params, message):
    X, y = rounded()
    parts = [Part(X[rows], y[rows]) for rows in cut(len(y), [600])]
    with pytest.raises(ValueError, match=message):
        fit_shared(SCBoostClassifier(n_jobs=1, **params), parts)


def test_an_error_between_rounds_reaches_all():
    X, y = rounded()

    class Fails:
        def __call__(self, model):
            if model.n_estimators_ == 3:
                raise OSError("no more paper")

    parts = [Part(X[rows], y[rows]) for rows in cut(len(y), [600])]
    with pytest.raises((OSError, WorkerError), match="no more paper"):
        fit_shared(SCBoostClassifier(n_estimators=9, n_jobs=1, random_state=0, callbacks=[Fails()]), parts)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("quantile", [0.05, 0.5, 0.7])
def test_quantiles_of_all_workers_are_those_of_one(quantile, dtype):
    rng = np.random.default_rng(0)
    values = rng.normal(size=300).round(1).astype(dtype)
    weight = rng.integers(0, 3, size=300).astype(float)
    group = rng.integers(3, size=300)
    expected = grouped_quantiles(values, weight, group, 4, quantile, SINGLE_PROCESS)
    parts = cut(300, [40, 100])

    def work(rank, communicator):
        rows = parts[rank]
        return grouped_quantiles(values[rows], weight[rows], group[rows], 4, quantile, communicator)

    for found in share(3, work):
        np.testing.assert_array_equal(found, expected)


def test_hashes_folds_and_draws_do_not_depend_on_the_distribution_of_samples():
    X, y = rounded(n=400)
    X = X[:, :2].round(0)  # many equal samples
    keys = row_keys(X)
    weight = np.random.default_rng(0).uniform(0.5, 2, size=400)
    parts = cut(400, [90, 250])
    folds = share(3, lambda r, c: content_folds(keys[parts[r]], 5, y[parts[r]], 3, c))
    np.testing.assert_array_equal(np.concatenate(folds), content_folds(keys, 5, y, seed=3))
    for w in (None, weight):

        def draw(rank, communicator, w=w):
            own = None if w is None else w[parts[rank]]
            return Draws(keys[parts[rank]], 1, own, Context(communicator)).normal(2, 0)

        drawn = share(3, draw)
        np.testing.assert_allclose(np.concatenate(drawn), Draws(keys, 1, w).normal(2, 0), rtol=1e-6)


def test_contents_are_numbered_across_slices(monkeypatch):
    monkeypatch.setattr("scboost._data.hashing._SLICE", 16)
    rng = np.random.default_rng(0)
    all_keys = rng.integers(2**63, size=200, dtype=np.uint64)
    own = [np.unique(rng.choice(all_keys, size=120)) for _ in range(3)]
    found = share(3, lambda r, c: rank_keys(own[r], np.full(len(own[r]), r + 1.0), c))
    distinct = np.unique(np.concatenate(own))
    for keys, (rank, total, _) in zip(own, found, strict=True):
        np.testing.assert_array_equal(distinct[rank], keys)
        np.testing.assert_array_equal(total, sum((r + 1) * np.isin(keys, own[r]) for r in range(3)))
    assert sum(first.sum() for _, _, first in found) == len(distinct)


def test_several_arrays_are_summed_in_one_call():
    def work(rank, communicator):
        before = communicator.calls
        one, two = communicator.sum_all(np.full(3, rank + 1.0), np.array(10.0))
        return one, two, communicator.calls - before

    for one, two, calls in share(2, work):
        np.testing.assert_array_equal(one, [3, 3, 3])
        assert (two, calls) == (20, 1)


def test_alone_an_error_is_just_raised():
    with pytest.raises(KeyError, match="as it is"), agreed(SINGLE_PROCESS):
        raise KeyError("as it is")


def test_custom_losses_start_at_the_mean_of_the_initial_scores_of_workers():
    X, y = two_classes()
    y = X[:, 0] + y

    class Own(QuantileLoss):
        def initial_score(self, y, sample_weight):
            return np.array([np.median(y)])

    estimator = SCBoostRegressor(loss=Own(), n_estimators=4, n_jobs=1, random_state=0, engine="xgboost")
    rows = cut(len(y), [100])
    shared, _ = fit_shared(estimator, [Part(X[r], y[r]) for r in rows])
    expected = np.average([np.median(y[r]) for r in rows], weights=[len(r) for r in rows])
    np.testing.assert_allclose(shared.intercept_[0], expected, rtol=1e-6)


def test_the_page_of_figures_is_up_to_date():
    import distributed_page

    assert distributed_page.PAGE.read_text() == distributed_page.page(), "run tools/distributed_page.py"
