"""The rest of a round in one call is the steps of the loop, to the bit."""

import numpy as np
import pytest

from scboost import SCBoostClassifier, SCBoostRegressor
from scboost._core.loop import Boosting

KINDS = {
    "default": {},
    "no projection": {"projection_strength": 0.0},
    "no exploration": {"exploration": 0.0},
    "symmetric": {"tree_shape": "symmetric"},
    "alternating": {"tree_shape": "alternating"},
    "penalties": {"reg_alpha": 0.5, "reg_lambda": 2.0, "min_split_loss": 0.1},
    "long memory": {"memory": 16},
    "two threads": {"n_jobs": 2},
}


def data(classifies, seed=0, n=400):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0] + X[:, 1] * X[:, 2]) + rng.normal(size=n)
    return X, (y > 0).astype(int) if classifies else y, rng.integers(0, 4, n).astype(float)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cls", [SCBoostClassifier, SCBoostRegressor])
@pytest.mark.parametrize("kind", KINDS)
def test_one_call_equals_the_steps_of_the_loop(kind, cls, weighted, monkeypatch):
    X, y, weight = data(cls is SCBoostClassifier)
    settings = {"n_estimators": 25, "learning_rate": 0.3, "random_state": 0, "n_jobs": 1, **KINDS[kind]}
    calls = 0
    finish = Boosting._finish

    def counted(self, sums):
        nonlocal calls
        calls += 1
        return finish(self, sums)

    monkeypatch.setattr(Boosting, "_finish", counted)
    at_once = cls(**settings).fit(X, y, weight if weighted else None)
    assert calls >= 25
    monkeypatch.setattr(Boosting, "_suits_one_call", lambda self: False)
    by_steps = cls(**settings).fit(X, y, weight if weighted else None)
    assert calls < 50
    np.testing.assert_array_equal(at_once.predict(X), by_steps.predict(X))
    for name, column in by_steps.training_log_.items():
        np.testing.assert_array_equal(at_once.training_log_[name], column)


def test_the_loop_decides_where_nothing_is_left_to_learn():
    X = np.repeat([[0.0], [1.0]], 50, axis=0)
    y = X[:, 0]
    model = SCBoostRegressor(n_estimators=40, learning_rate=1.0, reg_lambda=0.0, n_jobs=1).fit(X, y)
    assert model.n_estimators_ < 5
    np.testing.assert_allclose(model.predict(X), y, atol=1e-6)
