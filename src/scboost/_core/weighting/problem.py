"""Covariance-regularized weighting (CRW) of boosting rounds, independent of the unit of y."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.optimize import brentq

from scboost._arrays import ArrayLike, FloatArray
from scboost._core.links import LogLink
from scboost._core.losses import CoupledLoss, Loss
from scboost._core.weighting.losses import Array, CoupledMargin, MarginLoss, TargetedMargin, margin_loss
from scboost._core.weighting.solver import Weights, nonnegative_weights, not_negative, row_weights, simplex_weights
from scboost._runtime.communicator import SINGLE_PROCESS, Communicator
from scboost._runtime.threads import single_threaded_blas


@single_threaded_blas()
def learn_weights(
    A: ArrayLike,
    y: ArrayLike,
    *,
    loss: Loss,
    start: ArrayLike = 0.0,
    sample_weight: ArrayLike | None = None,
    method: Literal["nonnegative", "simplex"] = "nonnegative",
    covariance_penalty: float = 0.0,
    ridge: float = 0.1,
) -> Weights:
    """Learn one weight per round on held-out samples.

    Method "nonnegative" minimizes over factors ``u >= 0`` and shifts b, one for each of the K outputs::

        mean_i loss(y_i, start_i + b + A_i u) / l  +  covariance_penalty * u' C u / s  +  ridge / T * |u - 1|^2

    where C is the covariance of the rounds' contributions, summed over outputs, and the scales l and s make the result
    independent of the unit of y. For translation-invariant losses (squared error, Huber) both are the variance of y;
    with a log link (Poisson, Tweedie), l is the Hessian of the mean loss at the mean of y and s is 1; for
    classification, rankings and survival times both are 1. Rankings and Cox models have no shift, which would not
    change their loss. LambdaRank is not the gradient of a convex loss: pairs and their weights are kept as they are at
    the raw scores with all weights equal to 1. All means are weighted by `sample_weight`. For several outputs the ridge
    penalty includes the shifts, ``|u - 1|^2 + |b|^2``, because the loss depends on their differences only. Method
    "simplex", the form of the paper, has weights that sum to one, no shifts and no ridge penalty.

    Parameters
    ----------
    A : array-like of shape (n, K, T), or (n, T) for one output
        Contribution of each round to the raw scores of each sample. Any memory layout; never copied.
    y : array-like of shape (n,)
        Targets as the loss expects them: 0/1 (or probabilities), class indices (or probabilities, of shape (n, K)),
        or real values; of shape (n, 2) for rankings and survival times.
    loss : Loss
        The boosting loss; quantile losses and distributions are not supported.
    start : array-like that broadcasts to (n, K), or (n,) for A of shape (n, T), default=0
        Raw scores before the first round.
    sample_weight : array-like of shape (n,), optional
        Sample weights: non-negative, not all 0.
    method : {"nonnegative", "simplex"}, default="nonnegative"
        Non-negative weights shrunk towards 1, with shifts; or weights on the probability simplex.
    covariance_penalty : float, default=0
        Coefficient of the covariance term, at least 0; larger values penalize redundant rounds.
    ridge : float, default=0.1
        Coefficient of the ridge penalty, above 0; not used on the simplex.

    Returns
    -------
    Weights
        ``weights`` of shape (T,), ``intercept`` (the shifts) of shape (K,), and the certified ``gap``.

    Notes
    -----
    For an ensemble and held-out samples X, "nonnegative" takes weighted contributions and returns factors of the
    current weights; "simplex" takes unweighted contributions and returns weights::

        H = ensemble.contributions(X)                                   # (T, K, n)
        A = (H * ensemble.weights[:, :, None]).transpose(2, 1, 0)
        found = learn_weights(A, y, loss=loss, start=ensemble.intercept)
        ensemble.reweight(ensemble.weights * found.weights[:, None], ensemble.intercept + found.intercept)

        found = learn_weights(H.transpose(2, 1, 0), y, loss=loss, start=ensemble.intercept, method="simplex")
        ensemble.reweight(np.repeat(found.weights[:, None], K, axis=1), ensemble.intercept)

    Out of fold, the contributions and the start of a sample come from the fold model that was not fitted on it; rounds
    that this model lacks contribute 0::

        A, start = np.zeros((n, K, T), np.float32), np.zeros((n, K))
        for ensemble, held_out in folds:
            H = ensemble.contributions(X[held_out]) * ensemble.weights[:, :, None]
            A[held_out, :, :len(H)] = H.transpose(2, 1, 0)
            start[held_out] = ensemble.intercept
        found = learn_weights(A, y, loss=loss, start=start)

    Examples
    --------
    >>> import numpy as np
    >>> from scboost.losses import SquaredLoss
    >>> A = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> y = np.array([2.0, 2.0, -2.0, -2.0])
    >>> one, thousand = (learn_weights(c * A, c * y, loss=SquaredLoss()) for c in (1, 1000))
    >>> bool(np.allclose(one.weights, thousand.weights))
    True
    """
    if method not in {"nonnegative", "simplex"}:
        raise ValueError(f"method must be 'nonnegative' or 'simplex', got {method!r}.")
    A, y = np.asarray(A), np.asarray(y, np.float64)
    offset = np.broadcast_to(np.asarray(start, np.float64), A.shape[:-1])
    if y.ndim == 2 and loss.task in {"ranking", "survival"}:
        weight = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        margin = _targeted_margin(A, y, loss, offset, weight)
        y, square_of_score = np.zeros(len(y)), 1.0
    else:
        unit_of_loss, square_of_score = _units(loss, y, row_weights(sample_weight, len(y)))
        margin = margin_loss(loss, unit_of_loss)
    penalty = not_negative("covariance_penalty", covariance_penalty) / square_of_score
    if method == "simplex":
        return simplex_weights(
            A, y, covariance_penalty=penalty, sample_weight=sample_weight, offset=offset, loss=margin
        )
    return nonnegative_weights(
        A,
        y,
        covariance_penalty=penalty,
        ridge=ridge,
        intercept=not isinstance(margin, CoupledMargin),
        sample_weight=sample_weight,
        offset=offset,
        loss=margin,
    )


def _targeted_margin(
    A: FloatArray, y: Array, loss: Loss, offset: FloatArray, sample_weight: Array | None
) -> MarginLoss:
    """Return a loss of rankings or survival times as a convex loss of margins."""
    if not loss.convex:
        raw = (offset + A.sum(axis=-1, dtype=np.float64)).reshape(1, -1)
        loss = loss.convex_surrogate(y, raw, sample_weight)
    return CoupledMargin(loss, y, sample_weight) if isinstance(loss, CoupledLoss) else TargetedMargin(loss, y)


def _units(loss: Loss, y: FloatArray, s: FloatArray) -> tuple[float, float]:
    """Return the scales of the loss and of the squared raw score, for targets y with weights s."""
    if loss.translation_invariant:
        variance = float(np.average((y - np.average(y, weights=s)) ** 2, weights=s))
        return (variance, variance) if 0 < variance < np.inf else (1.0, 1.0)
    if isinstance(loss.link, LogLink) and y @ s > 0:  # a target that is 0 everywhere has no scale
        score = np.full((1, len(y)), np.log(np.average(y, weights=s)))
        return float(np.average(loss.gradient_hessian(y, score)[1][0], weights=s)), 1.0
    return 1.0, 1.0


@single_threaded_blas()
def learn_scale(
    added: FloatArray,
    y: FloatArray,
    *,
    loss: Loss,
    start: FloatArray,
    sample_weight: FloatArray | None = None,
    communicator: Communicator = SINGLE_PROCESS,
) -> float:
    """Learn one common factor of all rounds on held-out samples.

    The factor a minimizes ``sum_i loss(y_i, start_i + a added_i)`` in [0.5, 2] and is then shrunk towards 1 by its
    sampling error: let G be the sum over samples of the derivatives with respect to a at 1, and V the sum of their
    squares, which estimates the variance of G. The result is ``1 + (a - 1) (1 - V / G^2)``, or 1 if V exceeds ``G^2``.

    Parameters
    ----------
    added : ndarray of shape (K, n)
        Sum of the contributions of all rounds to each raw score. Sums run over the samples of all workers.
    y : ndarray of shape (n,) or (n, 2)
        Targets as the loss expects them.
    loss : Loss
        The boosting loss, convex in the raw score.
    start : ndarray of shape (K, n)
        Raw scores before the first round.
    sample_weight : ndarray of shape (n,), optional
        Sample weights; an integer weight is equivalent to repeating the sample.
    communicator : Communicator, optional
        The other workers.

    Examples
    --------
    >>> import numpy as np
    >>> from scboost.losses import SquaredLoss
    >>> y = np.linspace(-1, 1, 1000)
    >>> round(learn_scale(2 * y[None], y, loss=SquaredLoss(), start=np.zeros((1, 1000))), 2)
    0.5
    """

    def slopes(a: float) -> FloatArray:
        """Return the negative derivative of each sample's loss with respect to the factor."""
        _, gradient, _ = loss.shared_derivatives(y, start + a * added, sample_weight, communicator)
        return np.asarray(np.sum(-gradient * added, axis=0))

    def total(values: FloatArray) -> float:
        return float(communicator.sum(np.array(values.sum() if sample_weight is None else values @ sample_weight)))

    own = slopes(1.0)
    G, V = total(own), total(own**2)
    if G**2 <= V:
        return 1.0
    end = 2.0 if G > 0 else 0.5
    best = end
    if total(slopes(end)) * G < 0:
        best = float(brentq(lambda a: total(slopes(a)), 1.0, end, xtol=1e-6))
    return 1 + (best - 1) * (1 - V / G**2)
