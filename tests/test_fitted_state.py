"""Fitted state: one object, which a failed fit leaves as it was, and what a continued fit must have in common."""

import numpy as np
import pytest

from data_makers import two_classes
from scboost import Checkpoint, SCBoostClassifier, load_model

pd = pytest.importorskip("pandas")

FAST = {"n_estimators": 6, "learning_rate": 0.3, "max_depth": 3, "n_jobs": 1, "random_state": 0}


def private_state(model):
    return set(vars(model)) - set(model.get_params(deep=False))


def test_the_fitted_model_is_the_only_fitted_state():
    X, y = two_classes()
    model = SCBoostClassifier(**FAST, class_weight="balanced", early_stopping=True).fit(X, y)
    assert private_state(model) <= {"_model", "_resumable"}
    assert vars(model.set_params(class_weight=None).fit(X, y))["_resumable"] is None


def failing(n_rounds):
    def fail(model):
        if model.n_estimators_ == n_rounds:
            raise RuntimeError("the callback fails")

    return fail


@pytest.mark.parametrize("warm_start", [False, True])
def test_a_failed_fit_leaves_the_model_of_the_last_one(warm_start):
    X, y = two_classes()
    model = SCBoostClassifier(**FAST, warm_start=warm_start).fit(X, y)
    before, log = model.predict_proba(X), model.training_log_["loss"]
    model.set_params(n_estimators=12, callbacks=[failing(9)])
    with pytest.raises(RuntimeError, match="the callback fails"):
        model.fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    np.testing.assert_array_equal(model.training_log_["loss"], log)
    assert model.n_estimators_ == 6
    whole = SCBoostClassifier(**{**FAST, "n_estimators": 12}).fit(X, y)
    np.testing.assert_array_equal(model.set_params(callbacks=None).fit(X, y).predict_proba(X), whole.predict_proba(X))


def test_callbacks_see_the_model_so_far_and_the_estimator_is_unfitted_meanwhile():
    X, y = two_classes()
    seen = []
    model = SCBoostClassifier(**FAST)
    model.set_params(callbacks=[lambda so_far: seen.append((so_far.n_estimators_, hasattr(model, "classes_")))])
    model.fit(X, y)
    assert seen == [(n, False) for n in range(1, 7)]


CHANGED = {
    "X_val": lambda X, y, w: (X + 1, y, w),
    "y_val": lambda X, y, w: (X, 1 - y, w),
    "sample_weight_val": lambda X, y, w: (X, y, w + 1),
}


@pytest.mark.parametrize("name", CHANGED)
@pytest.mark.parametrize("how", ["warm start", "checkpoint"])
def test_a_continued_fit_needs_the_same_validation_set(name, how, tmp_path):
    X, y = two_classes()
    X, y, X_val, y_val, weight = X[:200], y[:200], X[200:], y[200:], np.arange(1.0, 1 + len(y) - 200)
    given = {"X_val": X_val, "y_val": y_val, "sample_weight_val": weight}
    params = {**FAST, "early_stopping": True, "n_iter_no_change": 50}
    checkpoint = Checkpoint(tmp_path / "fit.checkpoint", every=2)
    if how == "warm start":
        model = SCBoostClassifier(**params, warm_start=True).fit(X, y, **given)
    else:
        SCBoostClassifier(**params, callbacks=[checkpoint]).fit(X, y, **given)
        model = checkpoint.load()
    model.set_params(n_estimators=10)
    other = dict(zip(given, CHANGED[name](X_val, y_val, weight), strict=True))
    with pytest.raises(ValueError, match=r"validation .* changed"):
        model.fit(X, y, **other)
    assert model.fit(X, y, **given).n_estimators_ >= 6


def test_a_continued_fit_needs_the_same_categories(tmp_path):
    X, y = two_classes()
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(c=np.where(X[:, 2] > 0, "up", "down"))
    model = SCBoostClassifier(**FAST, warm_start=True).fit(frame, y)
    model.set_params(n_estimators=10)
    with pytest.raises(ValueError, match="categories of X, or the parts of its dates, differ from those"):
        model.fit(frame.assign(c=frame["c"].map({"up": "high", "down": "deep"})), y)
    model.fit(frame, y).save_model(tmp_path / "model.ubj")
    np.testing.assert_array_equal(load_model(tmp_path / "model.ubj").predict_proba(frame), model.predict_proba(frame))
