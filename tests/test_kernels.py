"""Compiled passes over rows: the same numbers as NumPy's, to the bit, or none at all."""

import copy
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from scboost import SCBoostClassifier, SCBoostRegressor
from scboost._core import history
from scboost._core.loop import add_predictions
from scboost._core.losses import LogisticLoss
from scboost._core.sampling import Draws
from scboost._engine.interface import Learner
from scboost._engine.leaf_sums import leaf_sums
from scboost._engine.xgboost.engine import _snap
from scboost._runtime import threads as threads_module
from scboost._runtime.context import Context
from scboost._runtime.threads import SERIAL, Threads, load_kernels

pytest.importorskip("numba")
N = 40_000  # several blocks


@pytest.fixture
def compiled():
    return Threads(kernels=load_kernels(1 << 16))


def both_ways(compute):
    """What NumPy alone computes, and the compiled kernels."""
    compiled = Threads(kernels=load_kernels(1 << 16))
    assert compiled.kernels() is not None
    return compute(SERIAL), compute(compiled)


def assert_same(compute):
    for plain, compiled in zip(*both_ways(compute), strict=True):
        assert np.asarray(plain).dtype == np.asarray(compiled).dtype
        np.testing.assert_array_equal(plain, compiled)


@settings(max_examples=50)
@given(F=arrays(np.float32, 33, elements=st.floats(-200, 200, width=32)), seed=st.integers(0, 99))
def test_compiled_logistic_derivatives_equal_numpy(F, seed):
    y = np.random.default_rng(seed).choice(np.array([0, 1, 0.3], dtype=np.float32), 33)

    def derivatives(threads):
        gradient, hessian = np.empty_like(F[None]), np.empty_like(F[None])
        losses = LogisticLoss().loss_gradient_hessian(y, F[None], gradient, hessian, threads)
        return gradient, hessian, losses

    with np.errstate(over="ignore"):
        assert_same(derivatives)


@pytest.mark.parametrize("repeated", [False, True])
def test_compiled_noise_equals_numpy(repeated):
    keys = np.random.default_rng(0).integers(0, 2**63, N).astype(np.uint64)
    if repeated:
        keys[: N // 3] = keys[N // 3 : 2 * (N // 3)]
    hessian = np.random.default_rng(1).random(N, dtype=np.float32)

    def noise(threads):
        draws = Draws(keys, 5, None, Context(threads=threads))
        return [draws.noise(t, k, slice(7, N), hessian[7:], 0.3) for t, k in ((0, 0), (9, 2))]

    assert_same(noise)


@pytest.mark.parametrize("n_leaves", [1, 60, 1000])
@pytest.mark.parametrize("spacing", [1e-2, 1e-5])
def test_leaves_by_the_change_of_the_margin(n_leaves, spacing):
    """Leaves far closer to each other than a cell of the table, too."""
    rng = np.random.default_rng(0)
    values = (rng.permutation(n_leaves) * spacing).astype(np.float32)
    values[0] = -1  # most of the table is empty
    before = (0.1 * rng.standard_normal(N)).astype(np.float32)
    leaf = rng.integers(0, n_leaves, N)
    plain, compiled = both_ways(lambda threads: _snap(before + values[leaf], before, values, threads))
    np.testing.assert_array_equal(plain, leaf)
    np.testing.assert_array_equal(compiled, leaf)
    assert plain.dtype == compiled.dtype == np.min_scalar_type(n_leaves - 1)


def test_a_margin_that_fits_no_leaf_is_told(compiled):
    values, before = np.array([0, 1], dtype=np.float32), np.zeros(N, dtype=np.float32)
    margin = before + 1
    margin[N // 2] = 0.4
    with pytest.raises(RuntimeError, match=r"changed by a value 0.4 away"):
        _snap(margin, before, values, compiled)


@pytest.mark.parametrize("leaf_type", [np.uint8, np.uint16, np.int64])
@pytest.mark.parametrize("weight_type", [None, np.float32, np.float64])
def test_sums_of_leaves_and_scores(leaf_type, weight_type):
    rng = np.random.default_rng(0)
    leaf = rng.integers(0, 60, N).astype(leaf_type)
    r, hessian, start = (rng.standard_normal(N).astype(np.float32) for _ in range(3))
    weight = None if weight_type is None else rng.random(N).astype(weight_type)
    values = rng.standard_normal(60).astype(np.float32)

    def work(threads):
        F, h = start.copy(), np.empty_like(start)
        add_predictions(Learner(leaf, values, None, None), 0.1, h, F, threads)
        add_predictions(Learner(leaf, values, None, None), 0.2, None, F, threads)
        both = leaf_sums(leaf, 60, (r, hessian), weight, threads)
        return both, leaf_sums(leaf, 60, (r,), weight, threads), h, F

    assert_same(work)


def test_a_history_of_leaf_numbers_is_that_of_predictions(monkeypatch, compiled):
    """Predictions that were remembered before, in the same history, and a copy of it, too."""
    monkeypatch.setattr(history, "_MANY_SAMPLES", N)
    context = Context(threads=compiled)
    rng = np.random.default_rng(0)
    leaf = rng.integers(0, 60, (4, N)).astype(np.uint8)
    values = rng.standard_normal((4, 60)).astype(np.float32)
    r, hessian = rng.standard_normal(N).astype(np.float32), rng.random(N).astype(np.float32)
    by_leaf, plain = (history.History(N, 3, np.float32) for _ in range(2))
    for t in range(4):
        plain.append(values[t][leaf[t]])
        if t == 1:
            by_leaf.append(values[t][leaf[t]])
        else:
            assert by_leaf.remember(leaf[t], values[t], compiled) is None
        for c in (hessian, None):
            found = [h.project(r, alpha=0.8, gamma=0.5, hessian=c, context=context) for h in (by_leaf, plain)]
            np.testing.assert_array_equal(*(p.innovation for p in found))
            assert found[0].k == found[1].k
            assert found[0].historical_energy == found[1].historical_energy
    np.testing.assert_array_equal(copy.deepcopy(by_leaf).vectors, plain.vectors)
    assert by_leaf.project(r, alpha=1.0).k == 3


def test_a_fit_of_many_rows_remembers_leaf_numbers(monkeypatch):
    monkeypatch.setattr(history, "_MANY_SAMPLES", 1 << 16)
    X = np.random.default_rng(0).standard_normal((1 << 16, 2), dtype=np.float32)
    seen = []

    def look(model):
        seen.append(len(model._resumable.training.state.projector.histories[0]._leaves))

    model = SCBoostClassifier(n_estimators=7, memory=5, n_jobs=1, callbacks=[look], engine="xgboost")
    model.fit(X, X[:, 0] > X[:, 1])
    assert seen == [1, 2, 3, 4, 5, 5, 5]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["two classes", "three classes", "numbers"])
def test_compiled_fits_are_bit_identical(kind, weighted, monkeypatch):
    monkeypatch.setattr(history, "_MANY_SAMPLES", 0)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 4), dtype=np.float32)
    X[:500] = X[500:1000]
    score = X[:, 0] + X[:, 1] * X[:, 2] + rng.standard_normal(len(X))
    y = {"two classes": score > 0, "three classes": np.digitize(score, [-1, 1]), "numbers": score}[kind]
    make = SCBoostRegressor if kind == "numbers" else SCBoostClassifier
    weight = rng.random(len(X)) if weighted else None

    def fit(threads):
        fewest = sys.maxsize if threads is SERIAL else 0
        monkeypatch.setattr(threads_module, "_COMPILED", fewest)
        model = make(n_estimators=8, n_jobs=1, random_state=0, engine="xgboost").fit(X, y, sample_weight=weight)
        return model.training_log_["loss"], np.frombuffer(model.get_booster().save_raw(), dtype=np.uint8)

    assert_same(fit)


def test_many_rows_load_them_and_few_do_not():
    threads = Threads()
    threads.load_kernels((1 << 16) - 1)
    assert threads.kernels() is None
    threads.load_kernels(1 << 16)
    assert threads.kernels() is not None
    assert threads.kernels(np.zeros(3, dtype=np.int64)) is None


def test_a_fit_of_many_rows_does_without_numba(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "scboost._kernels", raising=False)
    monkeypatch.delattr("scboost._kernels", raising=False)
    X = np.random.default_rng(0).standard_normal((1 << 16, 2), dtype=np.float32)
    SCBoostRegressor(n_estimators=2, n_jobs=1).fit(X, X[:, 0])
    assert load_kernels(1 << 16) is None
