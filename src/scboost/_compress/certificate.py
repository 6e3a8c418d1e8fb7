"""Certificates: what samples that took no part in fitting say about the difference of student and teacher."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from scboost._compress.types import Float64, Mask

_BISECTIONS = 50
_BOLDEST_BET = 0.9  # share of the capital that may be lost in one draw


@dataclass(frozen=True)
class Certificate:
    """Confidence bounds from samples that were not used for fitting or selection.

    Every bound holds by itself with the stated confidence, for samples drawn like these ones. Where the teacher was
    fitted on the same samples, they are samples that the teacher knows: pass fresh ones as ``X_certify`` to certify
    what holds for new data. Label agreement has an exact bound. The bounds of means assume that no sample differs more
    than the worst one seen, fitted and synthetic samples included, with the worst label for it.

    Attributes
    ----------
    n_samples : int
        Samples used.
    confidence : float
        Confidence of each bound.
    agreement, agreement_bound : float or None
        Share of the samples on which student and teacher predict the same label, and its exact (Clopper-Pearson) lower
        bound. For rankings and survival models, share of the pairs of samples that both rank in the same
        order. None for regression.
    divergence, divergence_bound : float
        Mean divergence of the student from the teacher, and an upper bound: Kullback-Leibler divergence for classes,
        half the squared difference for regression.
    loss_rise, loss_rise_bound : float or None
        Mean loss of the student minus that of the teacher, and an upper bound. None if no labels were given. For
        rankings, the loss is 1 - NDCG of a query. A Cox model has no bound: its loss is not a sum over independent
        samples.
    n_pairs : int or None
        Number of independent pairs of samples that were compared, for rankings and survival models.
    """

    n_samples: int
    confidence: float
    agreement: float | None
    agreement_bound: float | None
    divergence: float
    divergence_bound: float
    loss_rise: float | None
    loss_rise_bound: float | None
    n_pairs: int | None = None

    def __str__(self) -> str:
        level = f"{100 * self.confidence:g} % confidence"
        lines = []
        if self.agreement_bound is not None:
            share = np.floor(1000 * self.agreement_bound) / 10  # a bound must not be rounded up
            if self.n_pairs is None:
                lines.append(f"At least {share:.1f} % of samples like these get the same label ({level}).")
            else:
                lines.append(
                    f"At least {share:.1f} % of pairs of samples like these are ranked in the same order ({level})."
                )
        if self.agreement_bound is None or self.n_pairs is not None:
            difference = _up(float(np.sqrt(2 * self.divergence_bound)))
            lines.append(f"The root mean squared difference on samples like these is at most {difference} ({level}).")
        if self.loss_rise_bound is not None:
            bound = _up(self.loss_rise_bound)
            change = f"falls by at least {bound[1:]}" if bound.startswith("-") else f"rises by at most {bound}"
            lines.append(f"The mean loss {change} ({level}).")
        return "\n".join(lines)


def certify(
    same: Mask | None,
    divergence: Float64,
    rise: Float64 | None,
    confidence: float,
    largest: tuple[float, float | None],
    *,
    of_pairs: bool = False,
) -> Certificate:
    """Make the certificate.

    Parameters
    ----------
    same : ndarray of shape (n,), or (n_pairs,) with `of_pairs`, or None
        Whether student and teacher predict the same label, or rank a pair in the same order.
    divergence : ndarray of shape (n,)
        Divergence of each sample.
    rise : ndarray of shape (n,) or None
        Loss of the student minus loss of the teacher.
    confidence : float
        Between 0.5 and 1.
    largest : tuple of float
        What divergence and rise of a sample cannot exceed; None if rises are not independent.
    of_pairs : bool, default=False
        Whether `same` refers to pairs.
    """
    n = len(divergence)
    if same is not None and not len(same):  # no pair to compare
        same = None
    hits, n_compared = (None, n) if same is None else (int(np.count_nonzero(same)), len(same))
    rise_bound = None
    if rise is not None and largest[1] is not None:
        rise_bound = upper_mean_bound(rise, largest[1], confidence)
    return Certificate(
        n_samples=n,
        confidence=confidence,
        agreement=None if hits is None else hits / n_compared,
        agreement_bound=None if hits is None else clopper_pearson(hits, n_compared, confidence),
        divergence=float(divergence.mean()),
        divergence_bound=upper_mean_bound(divergence, largest[0], confidence),
        loss_rise=None if rise is None else float(rise.mean()),
        loss_rise_bound=rise_bound,
        n_pairs=n_compared if of_pairs and hits is not None else None,
    )


def clopper_pearson(hits: int, n: int, confidence: float) -> float:
    """Return the exact one-sided lower confidence bound of a probability.

    Examples
    --------
    >>> round(clopper_pearson(58, 58, 0.95), 3)
    0.95
    """
    return float(stats.beta.ppf(1 - confidence, hits, n - hits + 1)) if hits else 0.0


def upper_mean_bound(values: Float64, largest: float, confidence: float) -> float:
    """Return an upper confidence bound of the mean of a distribution that does not exceed `largest`.

    The bound inverts a test by betting (Waudby-Smith and Ramdas, 2024), which holds for any such distribution and any
    number of samples. Bounds from the normal approximation do not: a few samples that a small model gets very wrong
    may be missing among the ones measured.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Independent draws.
    largest : float
        What no draw can exceed.
    confidence : float
        Between 0.5 and 1.

    Examples
    --------
    >>> round(upper_mean_bound(np.zeros(300), 1.0, 0.95), 3)
    0.011
    """
    # The mean of what is below the largest value has a lower bound; bets follow each other in random order.
    below = np.random.default_rng(0).permutation(np.maximum(largest - values, 0.0))
    mean = float(below.mean())
    if mean == 0:
        return largest
    n, log_odds = len(below), float(np.log(1 / (1 - confidence)))
    seen = np.arange(1, n + 1)
    # Variance of the draws before each one, with one draw at the largest distance from the mean to begin with.
    centred = below - np.concatenate([[below[0]], (np.cumsum(below) / seen)[:-1]])
    variance = (mean**2 / 4 + np.concatenate([[0.0], np.cumsum(centred**2)[:-1]])) / seen
    bets = np.sqrt(2 * log_odds / (n * np.maximum(variance, np.finfo(float).tiny)))
    low, high = 0.0, mean
    for _ in range(_BISECTIONS):
        m = (low + high) / 2
        capital = np.log1p(np.minimum(bets, _BOLDEST_BET / m) * (below - m)).sum()
        low, high = (m, high) if capital >= log_odds else (low, m)
    return largest - low


def _up(value: float) -> str:
    """Round up to three digits: a bound must not be rounded down."""
    if value == 0:
        return "0"
    unit = 10.0 ** (np.floor(np.log10(abs(value))) - 2)
    return f"{np.ceil(value / unit) * unit:.3g}"
