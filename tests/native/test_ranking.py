"""Losses of rankings: the compiled kernels are NumPy's losses up to rounding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("scboost._engine.native._native")

from data_makers import ranking_data
from scboost import SCBoostRanker
from scboost._core.losses import ranking
from scboost._engine.native import _native
from scboost.losses import LambdaRankLoss, PairwiseLoss, XENDCGLoss

LOSSES = [LambdaRankLoss(30), LambdaRankLoss(3), PairwiseLoss(), XENDCGLoss()]


def plain_lambdarank(truncation):
    loss = LambdaRankLoss(truncation)
    loss.normalized = False
    return loss


def documents(seed, n_queries, largest, *, ties, order):
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), rng.integers(1, largest + 1, n_queries))
    query = rng.permutation(query) if order == "any" else query
    y = np.stack([rng.integers(0, 5, len(query)), query], axis=1).astype(float)
    raw = 3 * rng.normal(size=(1, len(query)))
    return y, np.round(raw) if ties else raw


def weights(kind, y, seed):
    rng = np.random.default_rng(seed)
    return {
        "none": None,
        "positive": rng.uniform(0.1, 2, len(y)),
        "some 0": rng.integers(0, 3, len(y)).astype(float),
        "queries 0": (y[:, 1] % 3 > 0).astype(float),
    }[kind]


@given(
    seed=st.integers(0, 2**32 - 1),
    n_queries=st.integers(1, 20),
    largest=st.sampled_from([1, 3, 9, 70]),
    ties=st.booleans(),
    order=st.sampled_from(["by query", "any"]),
    kind=st.sampled_from(["none", "positive", "some 0", "queries 0"]),
)
@pytest.mark.parametrize("loss", [*LOSSES, plain_lambdarank(5)], ids=str)
def test_losses_and_derivatives_are_those_of_numpy(loss, seed, n_queries, largest, ties, order, kind):
    y, raw = documents(seed, n_queries, largest, ties=ties, order=order)
    w = weights(kind, y, seed)
    found, expected = loss.derivatives(y, raw, w), loss.numpy_derivatives(y, raw, w)
    for part, same in zip(found, expected, strict=True):
        assert part.shape == same.shape
        np.testing.assert_allclose(part, same, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(loss.losses(y, raw, w), found[0])
    np.testing.assert_allclose(loss.numpy_losses(y, raw, w), expected[0], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_scores_far_apart_keep_derivatives_finite(loss):
    y, raw = documents(0, 5, 9, ties=False, order="any")
    for part, same in zip(
        loss.derivatives(y, 1e4 * raw, None), loss.numpy_derivatives(y, 1e4 * raw, None), strict=True
    ):
        assert np.isfinite(part).all()
        np.testing.assert_allclose(part, same, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_score_that_is_not_a_number_shows_in_the_derivatives(loss):
    y, raw = documents(1, 1, 9, ties=False, order="by query")
    y[:, 0] = np.arange(len(y)) % 3
    raw[0, 1] = np.nan
    assert np.isnan(loss.derivatives(y, raw, None)[1]).any()


def test_a_kernel_refuses_arrays_of_other_lengths():
    y, raw = documents(0, 3, 5, ties=False, order="any")
    out = np.empty(len(y))
    for arguments in [(y[:-1], raw[0], None, out, out, out), (y, raw[0], out[1:], out, out, out)]:
        with pytest.raises(ValueError, match="differ in length"):
            _native.pairwise(*arguments)
    with pytest.raises(ValueError, match="differ in length"):
        _native.xendcg(y, raw[0], None, out, out, None)
    with pytest.raises(TypeError):  # it would be converted, and the result lost
        _native.xendcg(y, raw[0], None, out, out.astype(np.float32), out)


def test_a_loss_derived_from_a_built_in_one_does_not_use_its_kernel():
    class Constant(XENDCGLoss):
        def terms(self, block):
            return tuple(np.ones_like(block.score) for _ in range(3))

    y, raw = documents(0, 3, 5, ties=False, order="any")
    assert (Constant().derivatives(y, raw, None)[1] == 1).all()


@pytest.mark.parametrize("loss", ["lambdarank", "pairwise", "xendcg"])
def test_fits_with_and_without_kernels_agree(loss, monkeypatch):
    X, y, qid = ranking_data()
    w = np.random.default_rng(0).uniform(0.5, 1.5, len(y))
    compiled = SCBoostRanker(loss=loss, n_estimators=10).fit(X, y, w, qid=qid).predict(X)
    monkeypatch.setattr(ranking, "is_available", lambda: False)
    plain = SCBoostRanker(loss=loss, n_estimators=10).fit(X, y, w, qid=qid).predict(X)
    np.testing.assert_allclose(compiled, plain, rtol=1e-4, atol=1e-4)


def test_fits_are_bit_identical_for_any_number_of_threads():
    X, y, qid = ranking_data()
    one, two = (SCBoostRanker(n_estimators="auto", n_jobs=n).fit(X, y, qid=qid).predict(X) for n in (1, 2))
    np.testing.assert_array_equal(one, two)
