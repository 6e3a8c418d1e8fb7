"""Passes of every round: equal to NumPy's up to rounding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

pytest.importorskip("scboost._engine.native._native")

from scboost._core.history import History
from scboost._core.leaves import newton_steps
from scboost._core.losses import LogisticLoss, SoftmaxLoss, SquaredLoss
from scboost._core.sampling import Draws
from scboost._engine.leaf_sums import leaf_sums
from scboost._engine.native import passes
from scboost._runtime.context import Context
from scboost._runtime.threads import Threads

N = 5000  # several blocks
COMPILED = Threads()
COMPILED.use_passes(passes)


def vectors(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def weights(kind):
    w = np.random.default_rng(1).uniform(0, 2, N)
    w[::5] = 0
    return {"none": None, "weights": w}[kind]


@pytest.mark.parametrize("kind", ["none", "weights"])
@pytest.mark.parametrize("scale", [0.1, 3.0, 40.0])
@pytest.mark.parametrize("loss", [LogisticLoss(), SoftmaxLoss(4), SquaredLoss()], ids=str)
def test_derivatives_and_losses_are_those_of_the_loss(loss, scale, kind):
    K, w = loss.n_outputs, weights(kind)
    F = vectors(K, N) * np.float32(scale)
    y = np.random.default_rng(2).integers(max(loss.n_classes, 2), size=N).astype(np.float32)
    r, hessian = np.empty_like(F), np.empty_like(F)
    total, mass = getattr(passes, loss.kernel)(y, F, w, r, hessian)
    gradient, expected = loss.gradient_hessian(y.astype(float), F.astype(float))
    np.testing.assert_allclose(r, -gradient, rtol=2e-6, atol=2e-7)
    np.testing.assert_allclose(hessian, expected, rtol=1e-5, atol=5e-7)  # 1 - p in float32
    losses = loss.pointwise_loss(y.astype(float), F.astype(float))
    np.testing.assert_allclose(total, np.average(losses, weights=w) * mass, rtol=1e-6)
    np.testing.assert_allclose(mass, N if w is None else w.sum())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_threads", [2, 5])
def test_passes_are_bit_identical_for_any_number_of_threads(n_threads, weighted):
    n, pool = 70_001, passes.Pool(n_threads)
    F, rng = vectors(3, n), np.random.default_rng(3)
    w = rng.uniform(0, 2, n) if weighted else None
    keys, table = rng.integers(2**32, size=n, dtype=np.uint32), vectors(4096)
    leaf, values = rng.integers(40, size=n).astype(np.uint8), vectors(40)

    def run(threads):
        out = []
        for loss, y in ((LogisticLoss(), F[1] > 0), (SoftmaxLoss(3), F.argmax(axis=0)), (SquaredLoss(), F[2])):
            scores = F[: loss.n_outputs]
            r, hessian = np.empty_like(scores), np.empty_like(scores)
            sums = getattr(passes, loss.kernel)(y.astype(np.float32), scores, w, r, hessian, threads)
            target, mass, energy, span = np.empty_like(r), np.empty_like(r), np.empty(len(r)), np.empty(len(r))
            streams = list(range(len(r)))
            total = passes.set_target(
                r, hessian, w, keys, None, table, streams, 0.3, target, mass, energy, span, threads
            )
            out += [np.array(sums), r, hessian, target, mass if weighted else np.array(total), energy, span]
        h, sums = np.empty(n, dtype=np.float32), F[0].copy()
        passes.add_predictions(leaf, values, 0.1, h, sums, threads)
        q = np.empty_like(h)
        projected = passes.project(F, F[1], np.abs(F[0]) + 1, w, 0.95, 0.7, 1e-4, q, threads)
        return [*out, h, sums, np.array(projected), q]

    for one, several in zip(run(None), run(pool), strict=True):
        np.testing.assert_array_equal(one, several)


@given(arrays(np.float32, (1, 17), elements=st.floats(width=32)))
def test_logistic_derivatives_of_any_scores_are_probabilities_or_not_a_number(F):
    y = np.arange(17, dtype=np.float32) % 2
    r, hessian = np.empty_like(F), np.empty_like(F)
    passes.logistic(y, F, None, r, hessian)
    finite = np.isfinite(F[0])
    assert (np.abs(r[0, finite]) <= 1).all()
    assert ((hessian[0, finite] > 0) & (hessian[0, finite] <= 0.25 + 1e-7)).all()
    assert np.isnan(r[0, ~finite]).all()


@pytest.mark.parametrize("kind", ["none", "weights"])
@pytest.mark.parametrize("t", [0, 1, 7])
def test_projection_is_that_of_numpy(t, kind):
    w, r = weights(kind), vectors(N)
    hessian = np.abs(vectors(N, seed=3)) + np.float32(0.1)
    history = History(N, capacity=8, dtype=np.float32, sample_weight=w)
    for h in vectors(t, N, seed=4):
        history.append(h)
    context = Context(threads=COMPILED)
    assert history.is_compiled(0.9, COMPILED)
    for metric in (None, hessian):
        plain = history.project(r, alpha=0.9, gamma=0.7, hessian=metric)
        compiled = history.project_compiled(r, 0.9, 0.7, metric, np.empty_like(r), context)
        np.testing.assert_allclose(compiled.innovation, plain.innovation, rtol=1e-4, atol=1e-5)
        assert compiled.k == plain.k
        for name in ("energy_kept", "historical_energy", "innovation_energy"):
            assert getattr(compiled, name) == pytest.approx(getattr(plain, name), rel=1e-4)


def test_directions_that_a_gram_matrix_cannot_resolve_are_projected_on_all_the_same():
    first, r = vectors(2, N)
    history = History(N, capacity=3, dtype=np.float32)
    for h in (first, first + np.float32(1e-3) * vectors(N, seed=5), r + np.float32(1e-3) * first):
        history.append(h)
    compiled = history.project_compiled(r, 0.9999999, 1.0, None, np.empty_like(r), Context(threads=COMPILED))
    assert compiled.k == 3
    assert np.abs(compiled.innovation).max() < 1e-3


@pytest.mark.parametrize("kind", ["none", "weights"])
@pytest.mark.parametrize("loss", [LogisticLoss(), SquaredLoss(), SoftmaxLoss(3)], ids=lambda one: type(one).__name__)
def test_held_out_losses_are_those_of_numpy(loss, kind):
    index = np.random.default_rng(0).permutation(N)[: N // 3]
    F, y = vectors(loss.n_outputs, N), np.random.default_rng(1).integers(loss.n_outputs + 1, size=len(index))
    y = np.minimum(y, loss.n_classes - 1 if loss.n_classes else 9).astype(np.float32)
    w = None if kind == "none" else weights(kind)[: len(index)]
    total, mass = getattr(passes, f"{loss.kernel}_loss")(y, F, index, w)
    assert total / mass == pytest.approx(loss.mean(y, F[:, index], w), rel=1e-5)


@pytest.mark.parametrize("kind", ["none", "weights"])
@pytest.mark.parametrize("explores", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_targets_are_those_of_numpy(dtype, explores, kind):
    w, q = weights(kind), vectors(2, N)
    hessian = np.abs(vectors(2, N, seed=3)) + np.float32(0.1)
    draws = Draws(np.random.default_rng(0).integers(2**63, size=N).astype(np.uint64), 5, w)
    source = (*draws.source(3, range(2)), 0.7) if explores else (None, None, None, [], 0.0)
    target, weighted, energy, spans = np.empty((2, N), dtype), np.empty((2, N), dtype), np.empty(2), np.empty(2)
    mass = passes.set_target(q, hessian, w, *source, target, weighted, energy, spans)
    noise = [draws.noise(3, k, slice(None), hessian[k], 0.7) if explores else np.zeros(N) for k in range(2)]
    v = q.astype(float) + np.array(noise)
    every = np.ones(N) if w is None else w
    np.testing.assert_allclose(target, v * every, rtol=1e-5, atol=1e-6)
    if w is not None:
        np.testing.assert_allclose(weighted, hessian * every, rtol=1e-6)
    np.testing.assert_allclose(energy, (v**2 * every).sum(axis=1), rtol=1e-5)
    np.testing.assert_allclose(mass, (hessian * every).sum(), rtol=1e-5)
    np.testing.assert_allclose(spans, np.ptp(q, axis=1), rtol=1e-6)


@pytest.mark.parametrize("kind", ["none", "weights"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32])
def test_leaf_sums_and_predictions_are_those_of_numpy(dtype, kind):
    w = weights(kind)
    leaf = np.random.default_rng(0).integers(50, size=N).astype(dtype)
    a, b, values, F = vectors(N), vectors(N, seed=1), vectors(50), vectors(N, seed=2)
    out = np.empty((2, 50))
    passes.leaf_sums(leaf, a, b, w, out)
    every = np.ones(N) if w is None else w
    expected = [np.bincount(leaf, weights=v * every, minlength=50) for v in (a, b)]
    np.testing.assert_allclose(out, expected, rtol=1e-6, atol=1e-6)
    steps, hessian = np.empty(51, dtype=np.float32), np.abs(b)  # the last leaf has no samples
    passes.newton_values(leaf, a, hessian, w, 0.0, 0.5, steps)
    sums = leaf_sums(leaf, 51, (a, hessian), w)
    np.testing.assert_allclose(steps, newton_steps(sums, 0.0, 0.5), rtol=1e-5, atol=1e-6)
    for h in (None, np.empty(N, dtype=np.float32)):
        own = F.copy()
        passes.add_predictions(leaf, values, 0.3, h, own)
        np.testing.assert_array_equal(own, F + np.float32(0.3) * values[leaf])
        if h is not None:
            np.testing.assert_array_equal(h, values[leaf])


def test_leaves_that_do_not_exist_are_refused():
    leaf, values = np.array([0, 3], dtype=np.uint8), vectors(3)
    with pytest.raises(ValueError, match="length"):
        passes.add_predictions(leaf, values, 0.1, None, vectors(2))
    with pytest.raises(ValueError, match="length"):
        passes.leaf_sums(leaf, vectors(2), vectors(2), None, np.empty((2, 3)))


@pytest.mark.parametrize("n_leaves", [7, 300, 70_000])
def test_products_with_leaf_indicators(n_leaves, monkeypatch):
    from scboost._compress import products

    rng = np.random.default_rng(0)
    leaf = products.leaf_index(rng.integers(n_leaves, size=N), n_leaves)
    other = products.leaf_index(rng.integers(5, size=N), 5)
    u, hessian, values = rng.normal(size=N), rng.random(N), rng.normal(size=n_leaves)

    def found():
        scores = np.ones(N)
        products.add_values(leaf, values, scores)
        moved = np.ones(N)
        sums = products.move_and_sum(leaf, values, u, hessian, other, 5, moved)
        back = products.move_and_sum(other, values[:5], u, hessian, leaf, n_leaves, moved)
        pairs = products.sum_by_pair(leaf, other, u, (n_leaves, 5)), products.sum_by_pair(other, leaf, u, (5, n_leaves))
        return scores, products.sum_by_leaf(leaf, u, n_leaves), *pairs, sums, back, moved

    compiled = found()
    monkeypatch.setattr(products, "is_available", lambda: False)
    for one, expected in zip(compiled, found(), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-12, atol=1e-12)


def test_leaves_beyond_the_table_are_refused():
    from scboost._engine.native import _native

    leaf = np.array([0, 3], dtype=np.uint8)
    with pytest.raises(ValueError, match="differ in length"):
        _native.sum_by_leaf(leaf, np.ones(2), np.empty(3))
    with pytest.raises(ValueError, match="differ in length"):
        _native.add_leaf_values(leaf, np.ones(3), np.empty(2))
    with pytest.raises(ValueError, match="differ in length"):
        _native.sum_by_pair(leaf, leaf, np.ones(2), np.empty((4, 3)))
    with pytest.raises(ValueError, match="differ in length"):
        _native.move_and_sum(leaf, np.ones(3), *np.ones((2, 2)), leaf, np.ones(2), np.empty(4))
    with pytest.raises(ValueError, match="differ in length"):
        _native.move_and_sum(leaf, np.ones(4), *np.ones((2, 2)), leaf, np.ones(2), np.empty(3))
    with pytest.raises(ValueError, match="differ in length"):
        _native.move_and_sum(leaf, np.ones(4), *np.ones((2, 2)), leaf, np.ones(1), np.empty(4))
