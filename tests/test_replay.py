"""Fold models whose trees are kept and whose leaf values are fitted again on all samples."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_regression

from scboost import SCBoostClassifier, SCBoostRegressor
from scboost._core import averaging, train
from scboost._core.replay import replay
from scboost._engine import replay as replay_engine
from scboost._engine.ensemble import interleaved
from scboost._engine.factory import EngineFactory

SMALL = {"random_state": 0, "n_jobs": 1, "n_iter_no_change": 5, "cv": 3}


def data(task):
    if task == "regression":
        X, y = make_regression(240, 6, n_informative=4, noise=5.0, random_state=0)
        return SCBoostRegressor, X, 1e3 + y  # far from 0
    classes = 3 if task == "multiclass" else 2
    X, y = make_classification(240, 6, n_informative=4, n_classes=classes, flip_y=0.1, random_state=0)
    return SCBoostClassifier, X, y


def captured(monkeypatch, model, X, y, **fit):
    """Fit; return specification, samples, context and the trained model as the core has them."""
    seen = []

    def spy(spec, given, context):
        found = train.train(spec, given, context)
        seen.append((spec, given.samples, context, found.training))
        return found

    monkeypatch.setattr("scboost._estimators.fitting.train", spy)
    model.fit(X, y, **fit)
    return seen[-1]


every_engine = pytest.mark.parametrize("engine", ["native", "xgboost"])


@every_engine
@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_replay_on_the_same_samples_changes_nothing(task, engine, monkeypatch):
    """Exploration and projection affect the structures only, so the leaf values are those of the first fit."""
    cls, X, y = data(task)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    model = cls(n_estimators=8, engine=engine, random_state=0, n_jobs=1)
    spec, samples, context, training = captured(monkeypatch, model, X, y, sample_weight=weight)
    on_all = EngineFactory(spec.engine, context).make(samples.X, samples.weight, training.options)
    again = replay(training, spec, samples, on_all, context)
    assert again.ensemble.n_rounds == 8
    np.testing.assert_allclose(again.ensemble.intercept, training.ensemble.intercept)
    size = np.abs(training.ensemble.scores(samples.X) - training.ensemble.intercept[:, None]).max()
    np.testing.assert_allclose(
        again.ensemble.scores(samples.X), training.ensemble.scores(samples.X), rtol=0, atol=1e-5 * size
    )


def test_leaves_looked_up_in_small_blocks_are_the_same(monkeypatch):
    cls, X, y = data("multiclass")
    model = cls(n_estimators=5, random_state=0, n_jobs=1)
    spec, samples, context, training = captured(monkeypatch, model, X, y)
    on_all = EngineFactory(spec.engine, context).make(samples.X, samples.weight, training.options)
    once = replay(training, spec, samples, on_all, context).ensemble.scores(samples.X)
    monkeypatch.setattr(replay_engine, "_BLOCK", 2 * 3 * len(y))  # two rounds at a time
    np.testing.assert_array_equal(replay(training, spec, samples, on_all, context).ensemble.scores(samples.X), once)


def test_members_of_best_have_leaf_values_of_all_samples():
    cls, X, y = data("binary")
    model = cls(preset="best", reg_lambda=1.0, **SMALL).fit(X, y)
    share = y.mean()
    r, hessian = y - share, np.full(len(y), share * (1 - share))
    trees, leaves = model.get_booster().get_dump(dump_format="text"), model.apply(X)
    on_all = model.n_estimators_ - sum(model.__fitted_model__().members)
    first = interleaved([on_all, *model.__fitted_model__().members]).tolist().index(on_all)
    nodes = leaves[:, first]  # of the first tree of the first fold model
    values = {
        int(line.split(":")[0]): float(line.split("leaf=")[1]) for line in trees[first].splitlines() if "leaf=" in line
    }
    expected = {node: r[nodes == node].sum() / (hessian[nodes == node].sum() + 1) for node in set(nodes.tolist())}
    assert len(expected) > 2
    ratios = [values[node] / step for node, step in expected.items()]
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-4)


def test_replayed_members_keep_monotone_constraints():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 2))
    y = X[:, 0] + 0.5 * rng.normal(size=300)
    model = SCBoostRegressor(preset="best", monotone_constraints=[1, 0], **SMALL).fit(X, y)
    grid = np.column_stack([np.linspace(0, 1, 200), np.full(200, 0.5)])
    assert (np.diff(model.predict(grid)) >= -1e-6).all()


def test_learners_without_leaves_are_not_replayed(monkeypatch):
    from sklearn.linear_model import LinearRegression

    cls, X, y = data("regression")
    model = cls(n_estimators=3, estimator=LinearRegression(), leaf_rule="mean", random_state=0)
    spec, samples, context, training = captured(monkeypatch, model, X, y)
    assert replay(training, spec, samples, None, context) is training


def test_replay_of_means_repeats_the_projection(monkeypatch):
    cls, X, y = data("regression")
    model = cls(n_estimators=6, leaf_rule="mean", exploration=0.0, random_state=0, n_jobs=1)
    spec, samples, context, training = captured(monkeypatch, model, X, y)
    on_all = EngineFactory(spec.engine, context).make(samples.X, samples.weight, training.options)
    again = replay(training, spec, samples, on_all, context)
    np.testing.assert_allclose(again.ensemble.scores(samples.X), training.ensemble.scores(samples.X), rtol=1e-4)
    other = replace(training, settings=replace(training.settings, gamma=0.0))
    without = replay(other, spec, samples, on_all, context)
    assert not np.allclose(without.ensemble.scores(samples.X), again.ensemble.scores(samples.X), rtol=1e-4)


def test_an_interrupt_while_leaf_values_are_fitted_again_keeps_the_finished_models(monkeypatch):
    cls, X, y = data("binary")
    whole = cls(preset="best", **SMALL).fit(X, y)

    def interrupted(member, *_):
        again = replace(member)
        again.interrupt()
        return again

    monkeypatch.setattr(averaging, "replay", interrupted)
    model = cls(preset="best", **SMALL)
    with pytest.raises(KeyboardInterrupt, match="keeps the"):
        model.fit(X, y)
    assert "interrupted" in model.stop_reason_
    assert model.n_estimators_ == sum(whole.__fitted_model__().members)
    assert np.corrcoef(model.predict_proba(X)[:, 1], whole.predict_proba(X)[:, 1])[0, 1] > 0.95


def test_a_callback_that_stops_the_fit_keeps_the_average_of_the_fold_models():
    """A model of few rounds, whose raw scores are near the intercept, would only shrink it."""
    cls, X, y = data("binary")
    settings = {**SMALL, "max_depth": 3, "tree_shape": "depth-wise"}
    whole = cls(**settings).fit(X, y).__fitted_model__()
    stopped = cls(**settings, callbacks=[lambda model: model.n_estimators_ == 3]).fit(X, y)
    assert "callback" in stopped.stop_reason_
    members = stopped.__fitted_model__().members
    assert members == whole.members
    assert stopped.n_estimators_ == sum(members)
    raw = stopped.__fitted_model__().raw_scores(X, 1)
    np.testing.assert_allclose(raw, np.mean([*whole._member_scores(whole.encode(X), 1)], axis=0), rtol=1e-5, atol=1e-6)
