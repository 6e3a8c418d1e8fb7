"""Stopping and continuing fits: validation sets, warm starts, checkpoints, callbacks."""

import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
from unittest import mock

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from data_makers import ENGINES, FAST, real_target, three_classes, two_classes
from scboost import Checkpoint
from scboost._core.stopping import EarlyStopping
from scboost._data import folds
from scboost._estimators import SCBoostClassifier, SCBoostRegressor

TWELVE_ROUNDS = {**FAST, "n_estimators": 12}
TASKS = {
    "two classes": (SCBoostClassifier, {}, two_classes()),
    "many classes": (SCBoostClassifier, {}, three_classes()),
    "regression": (SCBoostRegressor, {}, real_target()),
    "quantile": (SCBoostRegressor, {"loss": "quantile", "quantile": 0.7}, real_target()),
    "poisson": (SCBoostRegressor, {"loss": "poisson"}, (real_target()[0], np.round(np.exp(real_target()[1])))),
}
every_task = pytest.mark.parametrize("task", TASKS)


def fit(task, **params):
    cls, own, data = TASKS[task]
    return cls(**{**TWELVE_ROUNDS, **own, **params}).fit(*data)


def same(a, b, task):
    X = TASKS[task][2][0]
    assert a.get_booster().save_raw() == b.get_booster().save_raw()
    np.testing.assert_array_equal(a.predict(X), b.predict(X))
    np.testing.assert_array_equal(a.weights_, b.weights_)
    for column, values in b.training_log_.items():
        np.testing.assert_array_equal(a.training_log_[column], values)


# --- early stopping --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("losses", "tol", "since"),
    [
        ([], 0.0, 0),
        ([3.0, 2.0, 1.0], 0.0, 0),
        ([3.0, 2.0, 2.5, 2.4], 0.0, 2),
        ([3.0, 2.0, 2.0], 0.0, 1),
        ([3.0, 2.9, 2.8, 2.7], 0.2, 3),  # each step is too small to count
        ([3.0, 2.9, 2.6], 0.2, 0),
    ],
)
def test_rounds_since_the_loss_improved(losses, tol, since):
    assert EarlyStopping(since, tol).reached(losses)
    assert not EarlyStopping(since + 1, tol).reached(losses)


@every_task
def test_early_stopping_keeps_the_best_round_after_patience(task):
    cls, own, (X, y) = TASKS[task]
    model = cls(**{**TWELVE_ROUNDS, **own}, early_stopping=True, n_iter_no_change=4).set_params(
        n_estimators=200, learning_rate=0.5
    )
    model.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    losses = model.training_log_["validation_loss"]
    best = int(np.argmin(losses)) + 1
    assert model.n_estimators_ == best
    assert len(model.weights_) == len(losses) == best + 4 < 200
    assert "did not improve in 4 rounds" in model.stop_reason_
    assert (model.weights_[:best] > 0).all()
    assert (model.weights_[best:] == 0).all()
    fewer = cls(**{**TWELVE_ROUNDS, **own, "learning_rate": 0.5, "n_estimators": best}).fit(X[:200], y[:200])
    np.testing.assert_allclose(model.predict(X), fewer.predict(X), rtol=1e-5, atol=1e-5)


def test_validation_set_is_only_logged_without_early_stopping():
    X, y = real_target()
    watched = SCBoostRegressor(**TWELVE_ROUNDS).fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    plain = SCBoostRegressor(**TWELVE_ROUNDS).fit(X[:200], y[:200])
    np.testing.assert_array_equal(watched.predict(X), plain.predict(X))
    stages = [np.mean((p - y[200:]) ** 2) / 2 for p in plain.staged_predict(X[200:])]
    np.testing.assert_allclose(watched.training_log_["validation_loss"], stages, rtol=1e-5)


@every_task
@pytest.mark.parametrize("params", [{"early_stopping": True}, {"weighting": "nonnegative"}], ids=str)
def test_permuted_validation_labels_change_no_tree(task, params):
    if "weighting" in params and task == "quantile":
        pytest.skip("weights of trees need a loss with curvature")
    cls, own, (X, y) = TASKS[task]
    trees = []
    for seed in (0, 1):
        labels = np.random.default_rng(seed).permutation(y[200:])
        model = cls(**{**TWELVE_ROUNDS, **own, **params}, n_iter_no_change=50)
        model.fit(X[:200], y[:200], X_val=X[200:], y_val=labels)
        trees.append(model._model.ensemble.contributions(X))
    np.testing.assert_array_equal(*trees)


def test_held_out_samples_change_no_tree():
    """By construction, trees do not depend on the values of the held-out samples."""
    X, y = real_target()
    seen = []
    original = folds.content_sample

    def content_sample(*args):
        seen.append(original(*args))
        return seen[0]  # the split depends on feature values: changed samples would be split differently

    with mock.patch("scboost._data.folds.content_sample", content_sample):
        first = SCBoostRegressor(**TWELVE_ROUNDS, early_stopping=True, n_iter_no_change=50).fit(X, y)
        held_out = seen[0]
        assert held_out.sum() == 60
        spoilt_X, spoilt_y = X.copy(), y.copy()
        spoilt_X[held_out] += 100
        spoilt_y[held_out] -= 100
        second = SCBoostRegressor(**TWELVE_ROUNDS, early_stopping=True, n_iter_no_change=50).fit(spoilt_X, spoilt_y)
    assert len(seen) == 2
    np.testing.assert_array_equal(first._model.ensemble.contributions(X), second._model.ensemble.contributions(X))
    assert first.intercept_ == second.intercept_


def test_one_validation_set_serves_early_stopping_and_weighting():
    X, y = two_classes()
    model = SCBoostClassifier(**TWELVE_ROUNDS, early_stopping=True, n_iter_no_change=2, weighting="nonnegative")
    model.set_params(n_estimators=300, learning_rate=0.5).fit(X, y)
    assert "did not improve in 2 rounds" in model.stop_reason_
    assert len(model.weighting_result_.weights) == model.n_estimators_ < 300


def test_searches_and_pipelines_hold_out_within_each_fold():
    X, y = two_classes()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SCBoostClassifier(**TWELVE_ROUNDS, early_stopping=True)),
        {"scboostclassifier__n_iter_no_change": [2, 5]},
        cv=3,
    )
    assert search.fit(X, y).best_score_ > 0.7


def test_validation_sets_pass_through_a_pipeline():
    X, y = real_target()
    with sklearn.config_context(enable_metadata_routing=True):
        last = SCBoostRegressor(**TWELVE_ROUNDS, early_stopping=True).set_fit_request(X_val=True, y_val=True)
        pipeline = Pipeline([("scale", StandardScaler()), ("model", last)], transform_input=["X_val"])
        pipeline.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    scaler = StandardScaler().fit(X[:200])
    by_hand = SCBoostRegressor(**TWELVE_ROUNDS, early_stopping=True)
    by_hand.fit(scaler.transform(X[:200]), y[:200], X_val=scaler.transform(X[200:]), y_val=y[200:])
    np.testing.assert_array_equal(pipeline.predict(X), by_hand.predict(scaler.transform(X)))


def test_the_record_of_a_fit_is_tidy():
    pd = pytest.importorskip("pandas")
    model = fit("many classes", early_stopping=True)
    record = pd.DataFrame(model.training_log_)
    assert record["round"].tolist() == list(range(1, len(model.weights_) + 1))
    assert {"loss", "validation_loss", "components", "energy_kept", "energy_removed"} <= set(record)
    assert record.notna().all(axis=None)


# --- going on --------------------------------------------------------------------------------------------------------


@every_task
@pytest.mark.parametrize(
    "params",
    [{}, {"early_stopping": True, "n_iter_no_change": 3}, {"memory": "all", "subsample": 0.6, "colsample_bytree": 0.5}],
    ids=str,
)
def test_a_warm_start_equals_one_fit(task, params):
    _, _, data = TASKS[task]
    whole = fit(task, **params)
    model = fit(task, **params, n_estimators=5, warm_start=True)
    model.set_params(n_estimators=9).fit(*data).set_params(n_estimators=12).fit(*data)
    same(model, whole, task)
    assert model.stop_reason_ == whole.stop_reason_


def test_a_warm_start_keeps_its_automatic_learning_rate():
    X, y = real_target()
    model = SCBoostRegressor(n_estimators=5, warm_start=True, n_jobs=1, random_state=0).fit(X, y)
    rate = model.weights_[0]
    model.set_params(n_estimators=20).fit(X, y)
    assert (model.weights_ == rate).all()


@every_task
@pytest.mark.parametrize("params", [{}, {"early_stopping": True}, {"subsample": 0.6, "memory": 2}], ids=str)
def test_checkpoint_resumes_bit_identically(task, params, tmp_path):
    checkpoint = Checkpoint(tmp_path / "model", every=5)
    whole = fit(task, **params, callbacks=[checkpoint, lambda _: None])  # the second cannot be pickled
    resumed = checkpoint.load()
    assert resumed.n_estimators_ == 10
    assert resumed.callbacks == [checkpoint]
    _, _, data = TASKS[task]
    same(resumed.fit(*data), whole, task)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_checkpoint_of_an_automatic_rate_and_of_weights(tmp_path):
    X, y = two_classes()
    checkpoint = Checkpoint(tmp_path / "model", every=4)
    for params in ({}, {"weighting": "nonnegative"}, {"weighting": "simplex", "random_state": None}):
        settings = {"n_estimators": 11, "n_jobs": 1, "random_state": 0, **params}
        whole = SCBoostClassifier(**settings, callbacks=[checkpoint]).fit(X, y)
        resumed = checkpoint.load().fit(X, y)
        np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))


def test_a_checkpoint_survives_a_killed_process(tmp_path):
    code = """
import os, sys
import numpy as np
from scboost import Checkpoint
from scboost._estimators import SCBoostRegressor
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
kill = lambda model: model.n_estimators_ == 8 and os.kill(os.getpid(), 9)
callbacks = [Checkpoint(sys.argv[1], every=3), kill]
SCBoostRegressor(n_estimators=12, n_jobs=1, random_state=0, callbacks=callbacks).fit(X, X[:, 0])
"""
    path = tmp_path / "model"
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})  # noqa: S603 - our own code
    assert done.returncode == -signal.SIGKILL
    resumed = Checkpoint(path).load()
    assert resumed.n_estimators_ == 6
    X = np.random.default_rng(0).normal(size=(200, 3))
    whole = SCBoostRegressor(n_estimators=12, n_jobs=1, random_state=0).fit(X, X[:, 0])
    np.testing.assert_array_equal(resumed.fit(X, X[:, 0]).predict(X), whole.predict(X))


def test_unsupported_checkpoints_raise(tmp_path):
    with pytest.raises(ValueError, match="every=0"):
        Checkpoint(tmp_path / "model", every=0)
    with pytest.raises(ValueError, match=r"weighting_data='out_of_fold'.*holdout"):
        fit("regression", weighting="nonnegative", weighting_data="out_of_fold", callbacks=[Checkpoint(tmp_path / "m")])
    with pytest.raises(FileNotFoundError):
        Checkpoint(tmp_path / "nothing").load()


# --- interrupts ------------------------------------------------------------------------------------------------------


@pytest.fixture
def keyboard():
    """Python's own handling of interrupts, which a process started in the background does not have."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_interrupt_waits_for_the_round_and_leaves_a_model(engine, keyboard):
    X, y = TASKS["many classes"][2]
    model = SCBoostClassifier(**TWELVE_ROUNDS, warm_start=True, engine=engine)
    original, grown = ENGINES[engine].grow, []

    def grow(self, *args):
        grown.append(True)
        if len(grown) == 3:
            os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C does, in the middle of a round
        return original(self, *args)

    with mock.patch.object(ENGINES[engine], "grow", grow), pytest.raises(KeyboardInterrupt, match="3 rounds"):
        model.fit(X, y)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert "interrupted" in model.stop_reason_
    same(model, fit("many classes", n_estimators=3, engine=engine), "many classes")
    same(model.fit(X, y), fit("many classes", engine=engine), "many classes")


def test_a_second_interrupt_does_not_wait(keyboard):
    def impatient(_):
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fit("regression", callbacks=[impatient])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_foreign_signal_handlers_are_kept():
    caught = []
    previous = signal.signal(signal.SIGINT, lambda *_: caught.append(True))
    try:
        model = fit("regression", callbacks=[lambda _: os.kill(os.getpid(), signal.SIGINT)])
    finally:
        signal.signal(signal.SIGINT, previous)
    assert len(caught) == model.n_estimators_ == 12


def test_fits_in_other_threads_touch_no_handler():
    models = []
    thread = threading.Thread(target=lambda: models.append(fit("regression")))
    thread.start()
    thread.join()
    same(models[0], fit("regression"), "regression")


def test_an_interrupt_in_a_fold_leaves_no_model():
    def interrupt(model):
        raise KeyboardInterrupt

    X, y = real_target()
    model = SCBoostRegressor(
        **TWELVE_ROUNDS, weighting="nonnegative", weighting_data="fold_average", callbacks=[interrupt]
    )
    with pytest.raises(KeyboardInterrupt, match="there is no model yet"):
        model.fit(X, y)
    assert model._model is None


def test_a_failed_fit_is_no_fit():
    X, y = two_classes()
    model = SCBoostClassifier(**TWELVE_ROUNDS, early_stopping=True, validation_fraction=0.001)
    with pytest.raises(ValueError, match="validation_fraction"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


# --- scikit-learn's callbacks ----------------------------------------------------------------------------------------


class Recorder:
    """A callback of scikit-learn's protocol that writes down what it is told."""

    def __init__(self, stop_after=None):
        self.events, self.scores, self.kept, self.stop_after = [], [], [], stop_after

    def setup(self, estimator, context):
        self.events.append(("setup", context.max_subtasks))

    def teardown(self, estimator, context):
        self.events.append(("teardown", None))

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self.events.append(("end", context.task_name))
        self.kept.append(fitted_estimator)
        self.scores.append(fitted_estimator.score(X, y, **metadata))
        return len(self.scores) == self.stop_after


class Propagated:
    """A callback that reaches the estimators inside a search, and counts their rounds."""

    max_propagation_depth = None
    rounds = 0

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        self.rounds += context.task_name == "round"


def test_rounds_are_tasks_of_scikit_learns_callbacks():
    pytest.importorskip("sklearn.callback")
    X, y = three_classes()
    recorder = Recorder()
    weight = np.linspace(0.5, 1, 300)
    model = SCBoostClassifier(**TWELVE_ROUNDS).set_callbacks(recorder).fit(X, y, sample_weight=weight)
    rounds = [("begin", "round"), ("end", "round")] * 12
    assert recorder.events == [("setup", 12), ("begin", "fit"), *rounds, ("end", "fit"), ("teardown", None)]
    assert recorder.scores[-1] == model.score(X, y, weight)
    stages = [np.average(p == y, weights=weight) for p in model.staged_predict(X)]
    np.testing.assert_allclose(recorder.scores[:-1], stages)
    assert [kept.score(X, y, weight) for kept in recorder.kept] == recorder.scores  # models that were kept do not grow


def test_scikit_learns_callbacks_may_stop_a_fit():
    pytest.importorskip("sklearn.callback")
    X, y = real_target()
    model = SCBoostRegressor(**TWELVE_ROUNDS).set_callbacks(Recorder(stop_after=4)).fit(X, y)
    assert model.n_estimators_ == 4
    assert "callback" in model.stop_reason_


def test_scikit_learns_monitor_and_searches():
    callback = pytest.importorskip("sklearn.callback")
    X, y = real_target()
    monitor = callback.ScoringMonitor(scoring="r2")
    SCBoostRegressor(**TWELVE_ROUNDS).set_callbacks(monitor).fit(X, y)
    values = [row["r2"] for row in monitor.get_logs().data if row["task_name"] == "round"]
    assert len(values) == 12
    assert values[-1] > values[0]
    counter = Propagated()
    GridSearchCV(SCBoostRegressor(**TWELVE_ROUNDS), {"max_leaves": [4, 8]}, cv=2, refit=False).set_callbacks(
        counter
    ).fit(X, y)
    assert counter.rounds == 2 * 2 * 12


def test_estimators_with_callbacks_can_be_pickled_and_checkpointed(tmp_path):
    pytest.importorskip("sklearn.callback")
    X, y = real_target()
    checkpoint = Checkpoint(tmp_path / "model", every=5)
    model = SCBoostRegressor(**TWELVE_ROUNDS, callbacks=[checkpoint]).set_callbacks(Recorder()).fit(X, y)
    np.testing.assert_array_equal(checkpoint.load().fit(X, y).predict(X), model.predict(X))
    pickle.dumps(model)


def test_rounds_of_the_model_that_is_kept_are_announced():
    pytest.importorskip("sklearn.callback")
    X, y = real_target()
    recorder = Recorder()
    params = {**TWELVE_ROUNDS, "n_estimators": 3, "weighting": "nonnegative", "weighting_data": "out_of_fold", "cv": 2}
    SCBoostRegressor(**params).set_callbacks(recorder).fit(X, y)
    assert recorder.events.count(("end", "round")) == 3
    assert recorder.events[0] == ("setup", 3)


def test_the_progress_bar_counts_rounds(capsys):
    clock = itertools.count()  # every look at the clock takes a second
    with mock.patch("scboost._runtime.progress.time.monotonic", side_effect=lambda: float(next(clock))):
        fit("regression", verbose=1)
    shown = capsys.readouterr().err
    assert "12/12" in shown
    assert "loss" in shown
