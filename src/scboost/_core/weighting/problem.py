"""The problem of covariance-regularized weighting (CRW): one factor per round, in one set of units."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.optimize import brentq

from scboost._arrays import ArrayLike, FloatArray
from scboost._core.links import LogLink
from scboost._core.losses import Loss
from scboost._core.weighting.losses import margin_loss
from scboost._core.weighting.solver import Weights, nonnegative_weights, not_negative, row_weights, simplex_weights
from scboost._runtime.communicator import SINGLE_PROCESS, Communicator


def learn_weights(
    A: ArrayLike,
    y: ArrayLike,
    *,
    loss: Loss,
    start: ArrayLike = 0.0,
    sample_weight: ArrayLike | None = None,
    method: Literal["nonnegative", "simplex"] = "nonnegative",
    covariance_penalty: float = 0.0,
    pull: float = 0.1,
) -> Weights:
    """Learn one weight per round from rows that the rounds did not see.

    With method "nonnegative", minimises over factors ``u >= 0`` and shifts b, one for each of the K outputs::

        mean_i loss(y_i, start_i + b + A_i u) / l  +  covariance_penalty * u' C u / s  +  pull / T * |u - 1|^2

    where C is the covariance of the rounds' contributions, summed over outputs, and l and s keep the answer from
    depending on the unit of y. For losses of the difference between target and score (squared error, Huber) both are
    the variance of y; where the score is the logarithm of a mean (Poisson, Tweedie), l is the Hessian of the mean
    loss at the mean of y and s is 1; for classes both are 1. All means are weighted by `sample_weight`. For several
    outputs, of which only the differences matter, the pull also holds the shifts: ``|u - 1|^2 + |b|^2``. With method
    "simplex" the weights sum to one, there are no shifts and there is no pull: the paper's form.

    Parameters
    ----------
    A : array-like of shape (n, K, T), or (n, T) for one output
        Contribution of each round to each score of each row. Any memory layout; never copied.
    y : array-like of shape (n,)
        Targets as the loss takes them: 0/1 (or probabilities), class numbers (or probabilities, of shape (n, K)),
        real numbers.
    loss : Loss
        The boosting loss; not a quantile's.
    start : array-like that broadcasts to (n, K), or (n,) for A of shape (n, T), default=0
        Scores before the first round.
    sample_weight : array-like of shape (n,), optional
        Non-negative, not all zero.
    method : {"nonnegative", "simplex"}, default="nonnegative"
        Free scale, pulled towards 1, with shifts; or the probability simplex.
    covariance_penalty : float, default=0
        Price of redundancy, at least 0.
    pull : float, default=0.1
        Strength of the pull, above 0; not used on the simplex.

    Returns
    -------
    Weights
        ``weights`` of shape (T,), ``intercept`` (the shifts) of shape (K,), and the certified ``gap``.

    Notes
    -----
    For an ensemble whose rows X were held out, "nonnegative" takes the contributions as they are added up and
    returns factors of the present weights; "simplex" takes the bare learners and returns their weights::

        H = ensemble.contributions(X)                                   # (T, K, n)
        A = (H * ensemble.weights[:, :, None]).transpose(2, 1, 0)
        found = learn_weights(A, y, loss=loss, start=ensemble.intercept)
        ensemble.reweight(ensemble.weights * found.weights[:, None], ensemble.intercept + found.intercept)

        found = learn_weights(H.transpose(2, 1, 0), y, loss=loss, start=ensemble.intercept, method="simplex")
        ensemble.reweight(np.repeat(found.weights[:, None], K, axis=1), ensemble.intercept)

    Out of fold, each row takes its contributions and its start from the model that did not see it; rounds that this
    model lacks contribute 0::

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
    unit_of_loss, square_of_score = _units(loss, y, row_weights(sample_weight, len(y)))
    margin = margin_loss(loss, unit_of_loss)
    offset = np.broadcast_to(np.asarray(start, np.float64), A.shape[:-1])
    penalty = not_negative("covariance_penalty", covariance_penalty) / square_of_score
    if method == "simplex":
        return simplex_weights(
            A, y, covariance_penalty=penalty, sample_weight=sample_weight, offset=offset, loss=margin
        )
    return nonnegative_weights(
        A, y, covariance_penalty=penalty, pull=pull, sample_weight=sample_weight, offset=offset, loss=margin
    )


def _units(loss: Loss, y: FloatArray, s: FloatArray) -> tuple[float, float]:
    """Return the units of the loss and of the squared score, for targets y with weights s."""
    if loss.translation_invariant:
        variance = float(np.average((y - np.average(y, weights=s)) ** 2, weights=s))
        return (variance, variance) if 0 < variance < np.inf else (1.0, 1.0)
    if isinstance(loss.link, LogLink) and y @ s > 0:  # rows without any amount have no unit
        score = np.full((1, len(y)), np.log(np.average(y, weights=s)))
        return float(np.average(loss.gradient_hessian(y, score)[1][0], weights=s)), 1.0
    return 1.0, 1.0


def learn_scale(
    added: FloatArray,
    y: FloatArray,
    *,
    loss: Loss,
    start: FloatArray,
    sample_weight: FloatArray | None = None,
    communicator: Communicator = SINGLE_PROCESS,
) -> float:
    """Learn one factor of all rounds from rows that the rounds did not see.

    The factor a minimises ``sum_i loss(y_i, start_i + a added_i)`` between a half and two. Chance alone would move it
    as well: of the derivatives by a at 1, one a row, let G be the sum and V the sum of squares, whose root is what
    chance makes of G. The result is ``1 + (a - 1) (1 - V / G^2)``, or 1 where V is larger than ``G^2``.

    Parameters
    ----------
    added : ndarray of shape (K, n)
        What the rounds add to each score of each row. Rows of other workers count, too.
    y : ndarray of shape (n,)
        Targets as the loss takes them.
    loss : Loss
        The boosting loss, convex in the score.
    start : ndarray of shape (K, n)
        Scores before the first round.
    sample_weight : ndarray of shape (n,), optional
        Sample weights; a weight counts as that many samples.
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
        """Return minus the derivative of each sample's loss by the factor."""
        gradient, _ = loss.gradient_hessian(y, start + a * added)
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
