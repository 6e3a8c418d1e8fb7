"""Interrupts from the keyboard at any moment of a fit: finished rounds are kept, or the old model is."""

import signal

import numpy as np
import pytest

from pressing import pressed
from scboost import SCBoostRegressor
from scboost._core import train as training
from scboost._engine.native import is_available
from scboost._runtime.signals import interrupts_deferred, interrupts_held, interrupts_raised

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
y = X[:, 0] + 0.3 * rng.normal(size=60)
ENGINES = ["xgboost", *(["native"] if is_available() else [])]


@pytest.fixture(autouse=True)
def _keyboard():
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


KINDS = {
    "rounds": {"n_estimators": 4},
    "weights": {"n_estimators": 4, "weighting": "nonnegative"},
    "folds": {"n_estimators": 3, "weighting": "nonnegative", "weighting_data": "out_of_fold", "cv": 2},
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a finalizer may be interrupted
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_at_any_moment_leaves_finished_rounds_or_the_old_model(kind, engine):
    def make():
        return SCBoostRegressor(**KINDS[kind], engine=engine, n_jobs=1)

    before = make().fit(X, y).predict(X)
    with pressed(0) as press:
        make().fit(X, y + 1)
    moments = rng.integers(1, press.n_calls - 20, size=12)
    for at in moments:
        model = make().fit(X, y)
        with pressed(at) as press, pytest.raises(KeyboardInterrupt) as raised:
            model.fit(X, y + 1)
        if "keeps" in str(raised.value):
            assert model.n_estimators_ >= 1
            assert np.isfinite(model.predict(X)).all()
        else:
            np.testing.assert_array_equal(model.predict(X), before, err_msg=press.where)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("engine", ENGINES)
def test_an_interrupt_while_weights_are_learned_keeps_all_rounds(engine, monkeypatch):
    def interrupted(*_):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(training, "weigh_ensemble", interrupted)
    model = SCBoostRegressor(n_estimators=5, weighting="nonnegative", engine=engine, n_jobs=1)
    with pytest.raises(KeyboardInterrupt, match="keeps the 5 rounds"):
        model.fit(X, y)
    assert len(model.weights_) == 5
    assert "interrupted" in model.stop_reason_
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.5


def test_an_interrupt_while_weights_of_averaged_folds_are_learned_keeps_their_rounds(monkeypatch):
    def interrupted(*_):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(training, "weigh_folds", interrupted)
    weighting = {"weighting": "nonnegative", "weighting_data": "fold_average", "cv": 2}
    model = SCBoostRegressor(n_estimators=5, **weighting, n_jobs=1)
    with pytest.raises(KeyboardInterrupt, match="keeps the 10 rounds"):
        model.fit(X, y)
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.5


def test_an_interrupt_during_compression_keeps_the_model(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("scboost._estimators.compression.compressed", interrupted)
    model = SCBoostRegressor(n_estimators=5, max_trees=2, n_jobs=1)
    with pytest.raises(KeyboardInterrupt, match="keeps its 5 rounds"):
        model.fit(X, y)
    assert model.n_estimators_ == 5


def test_sections_nest():
    with interrupts_held() as interrupted:
        with pytest.raises(KeyboardInterrupt), interrupts_raised():  # raised in between, held around it
            signal.raise_signal(signal.SIGINT)
        assert interrupted()
        with pytest.raises(KeyboardInterrupt), interrupts_raised():  # one that was held is raised at once
            pytest.fail("the section was entered")


def test_deferred_interrupts_are_raised_at_the_end():
    passed = []

    def section():
        with interrupts_deferred():
            for _ in range(3):
                signal.raise_signal(signal.SIGINT)
            passed.append(True)

    with pytest.raises(KeyboardInterrupt):
        section()
    assert passed
