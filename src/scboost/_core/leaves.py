"""Leaf values: Newton steps, exact line searches and quantiles.

The steps of all outputs need sums over the samples of each leaf, which a distributed fit reduces in one call.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scboost._arrays import FloatArray, IntArray
from scboost._core.losses import Loss
from scboost._core.statistics import grouped_quantiles
from scboost._engine.leaf_sums import leaf_sums
from scboost._runtime.context import Context


def newton_steps(sums: FloatArray, l2: float, l1: float = 0.0) -> FloatArray:
    """Return ``sum(r) / (sum(hessian) + l2)`` of each leaf, the first sum soft-thresholded by ``l1``.

    Parameters
    ----------
    sums : ndarray of shape (2, n_leaves)
        Sums of residuals and of Hessians.
    l2, l1 : float
        Regularization. Leaves whose Hessian is 0 get the value 0.
    """
    G, D = sums
    G, D = G - np.clip(G, -l1, l1) if l1 else G, D + l2
    return np.asarray(np.divide(G, D, out=np.zeros(len(G)), where=D > 0))


def takes_newton_steps(loss: Loss) -> bool:
    """Whether leaf values of all outputs are Newton steps, not quantiles or line searches."""
    outputs = (loss.output(k) for k in range(loss.n_outputs))
    return all(own.residual_quantile is None and own.line_search is None for own in outputs)


def newton_values(
    leaves: Sequence[tuple[IntArray, int]],
    r: FloatArray,
    hessian: FloatArray,
    sample_weight: FloatArray | None,
    l2: float,
    l1: float,
    context: Context,
) -> list[FloatArray]:
    """Return the Newton steps of the leaves of every output, in float32, by the passes of the native engine."""
    passes = context.threads.passes
    if passes is None:
        raise ValueError("there are no compiled passes")
    values = []
    for k, (leaf, n_leaves) in enumerate(leaves):
        steps = np.empty(n_leaves, dtype=np.float32)
        passes.newton_values(leaf, r[k], hessian[k], sample_weight, l2, l1, steps)
        values.append(steps)
    return values


def leaf_values(
    leaves: Sequence[tuple[IntArray, int]],
    loss: Loss,
    y: FloatArray,
    raw: FloatArray,
    r: FloatArray,
    hessian: FloatArray,
    sample_weight: FloatArray | None,
    l2: float,
    l1: float,
    context: Context,
) -> list[FloatArray]:
    """Return the step of each leaf that minimizes the loss plus ``l2 s^2 / 2 + l1 |s|``, for every output.

    Parameters
    ----------
    leaves : sequence of (ndarray of shape (n,), int)
        Leaf of each sample and number of leaves, for every output.
    loss : Loss
        The loss. Without a line search or a quantile, the steps are Newton steps.
    y : ndarray of shape (n,)
        Target.
    raw, r, hessian : ndarray of shape (K, n)
        Raw scores, residuals (negative gradients) and Hessians.
    sample_weight : ndarray of shape (n,) or None
        Sample weights.
    l2, l1 : float
        Regularization; quantiles ignore it.
    context : Context
        Context of the fit.
    """
    local = []
    for k, (leaf, n_leaves) in enumerate(leaves):
        own = loss.output(k)
        if own.residual_quantile is not None:
            continue
        search = own.line_search
        terms = (r[k], hessian[k]) if search is None else search.terms(y, raw[k], hessian[k])
        local.append(leaf_sums(leaf, n_leaves, terms, sample_weight, context.threads))
    sums = iter(context.communicator.sum_all(*local) if local else ())
    values = []
    for k, (leaf, n_leaves) in enumerate(leaves):
        own = loss.output(k)
        if own.residual_quantile is not None:
            residuals, share = y - raw[k], own.residual_quantile
            values.append(grouped_quantiles(residuals, sample_weight, leaf, n_leaves, share, context.communicator))
        elif own.line_search is not None:
            values.append(own.line_search.minimize(next(sums), l2, l1))
        else:
            values.append(newton_steps(next(sums), l2, l1))
    return values


def mean_values(
    leaves: Sequence[tuple[IntArray, int]],
    q: FloatArray,
    sample_weight: FloatArray | None,
    l2: float,
    l1: float,
    context: Context,
) -> list[FloatArray]:
    """Return the (regularized) mean of the innovations of each leaf, for every output: the paper's leaf values."""
    ones = np.ones_like(q[0])
    local = [
        leaf_sums(leaf, n_leaves, (q[k], ones), sample_weight, context.threads)
        for k, (leaf, n_leaves) in enumerate(leaves)
    ]
    return [newton_steps(sums, l2, l1) for sums in context.communicator.sum_all(*local)]
