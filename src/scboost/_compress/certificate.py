"""Certificates: what samples that took no part in fitting say about the difference of student and teacher."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from scboost._compress.types import Float64, Mask


@dataclass(frozen=True)
class Certificate:
    """Confidence bounds from samples that were not used for fitting or selection.

    Every bound holds by itself with the stated confidence, for samples drawn like these ones. Where the teacher was
    fitted on the same samples, they are samples that the teacher knows: pass fresh ones as ``X_certify`` to certify
    what holds for new data.

    Attributes
    ----------
    n_samples : int
        Samples used.
    confidence : float
        Confidence of each bound.
    agreement, agreement_bound : float or None
        Share of the samples on which student and teacher predict the same label, and its exact (Clopper-Pearson) lower
        bound. None for regression.
    divergence, divergence_bound : float
        Mean divergence of the student from the teacher, and an upper bound: Kullback-Leibler divergence for classes,
        half the squared difference for regression.
    loss_rise, loss_rise_bound : float or None
        Mean loss of the student minus that of the teacher, and an upper bound. None if no labels were given.
    """

    n_samples: int
    confidence: float
    agreement: float | None
    agreement_bound: float | None
    divergence: float
    divergence_bound: float
    loss_rise: float | None
    loss_rise_bound: float | None

    def __str__(self) -> str:
        level = f"{100 * self.confidence:g} % confidence"
        lines = []
        if self.agreement_bound is not None:
            share = np.floor(1000 * self.agreement_bound) / 10  # a bound must not be rounded up
            lines.append(f"At least {share:.1f} % of samples like these get the same label ({level}).")
        else:
            difference = _up(float(np.sqrt(2 * self.divergence_bound)))
            lines.append(f"The root mean squared difference on samples like these is at most {difference} ({level}).")
        if self.loss_rise_bound is not None:
            lines.append(f"The mean loss rises by at most {_up(self.loss_rise_bound)} ({level}).")
        return "\n".join(lines)


def certify(same: Mask | None, divergence: Float64, rise: Float64 | None, confidence: float) -> Certificate:
    """Make the certificate.

    Parameters
    ----------
    same : ndarray of shape (n,) or None
        Whether student and teacher predict the same label.
    divergence : ndarray of shape (n,)
        Divergence of each sample.
    rise : ndarray of shape (n,) or None
        Loss of the student minus loss of the teacher.
    confidence : float
        Between 0.5 and 1.
    """
    n = len(divergence)
    hits = None if same is None else int(np.count_nonzero(same))
    return Certificate(
        n_samples=n,
        confidence=confidence,
        agreement=None if hits is None else hits / n,
        agreement_bound=None if hits is None else clopper_pearson(hits, n, confidence),
        divergence=float(divergence.mean()),
        divergence_bound=upper_mean_bound(divergence, confidence),
        loss_rise=None if rise is None else float(rise.mean()),
        loss_rise_bound=None if rise is None else upper_mean_bound(rise, confidence),
    )


def clopper_pearson(hits: int, n: int, confidence: float) -> float:
    """Return the exact one-sided lower confidence bound of a probability.

    Examples
    --------
    >>> round(clopper_pearson(58, 58, 0.95), 3)
    0.95
    """
    return float(stats.beta.ppf(1 - confidence, hits, n - hits + 1)) if hits else 0.0


def upper_mean_bound(values: Float64, confidence: float) -> float:
    """Return an upper confidence bound of a mean: Student's t, corrected for skewness as by Hall (1992).

    Losses of a few samples that a small model gets wrong make a long right tail, where plain Student's t covers too
    seldom. The bound is never below that of plain Student's t.
    """
    n = len(values)
    mean, deviation = float(values.mean()), float(values.std(ddof=1)) if n > 1 else 0.0
    if deviation == 0:
        return mean
    skewness = float(np.mean(((values - mean) / deviation) ** 3))
    t = float(stats.t.ppf(confidence, n - 1)) / np.sqrt(n)
    # g(x) = x + a x^2 + a^2 x^3 / 3 + b is nearly symmetric for the studentized mean x; its inverse in closed form.
    a, b = skewness / 3, skewness / (6 * n)
    lower = float(np.cbrt(1 + 3 * a * (-t - b)) - 1) / a if abs(a) > 1e-9 else -t
    return float(mean + deviation * max(t, -lower))


def _up(value: float) -> str:
    """Round up to three digits: a bound must not be rounded down."""
    if value == 0:
        return "0"
    unit = 10.0 ** (np.floor(np.log10(abs(value))) - 2)
    return f"{np.ceil(value / unit) * unit:.3g}"
