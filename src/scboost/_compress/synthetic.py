"""Synthetic samples near the data: where the teacher is asked for its raw score besides the samples themselves.

The generator follows MUNGE (Bucila, Caruana and Niculescu-Mizil, 2006): a synthetic sample is a sample of which about
half of the values are replaced by those of a near neighbour. Every value comes from a real sample, so categories,
integers, rounded numbers, frequent values and missing values stay what they are; only values of real-valued features
that occur once get Gaussian noise in proportion to the distance of the two samples. Correlations are kept because
neighbours are alike in all features.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scboost._compress.types import Float64, Indices, Mask

_MOST_REFERENCES = 10_000  # samples among which neighbours are searched
_MOST_LEVELS = 30  # categories of a feature that count in distances
_LARGEST_DEVIATION = 4.0  # standard deviations: beyond, a value is an outlier and counts as this far away


@dataclass(frozen=True)
class Draw:
    """Synthetic samples as parts of real ones.

    Attributes
    ----------
    donor : ndarray of shape (m, d)
        Number of the real sample that each value is from.
    noise : ndarray of shape (m, d)
        What is added to the value.
    """

    donor: Indices
    noise: Float64

    def values(self, X: Float64) -> Float64:
        """Return the samples as numbers, of shape (m, d), where X holds the real ones."""
        return np.take_along_axis(X, self.donor, axis=0) + self.noise


@dataclass(frozen=True)
class Munge:
    """Draws synthetic samples.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Samples as numbers; categories by their codes, NaN is missing.
    categorical : ndarray of shape (d,)
        Which features are categories.
    n_neighbors : int, default=50
        A partner is drawn from this many nearest neighbours, but at most a fortieth of the samples (or 20 samples, or a
        quarter of them).
    swap_probability : float, default=0.5
        Probability that a value is the partner's.
    noise : float, default=0.5
        Standard deviation of the noise, as a multiple of the distance of the two values.
    """

    X: Float64
    categorical: Mask
    n_neighbors: int = 50
    swap_probability: float = 0.5
    noise: float = 0.5

    def draw(self, n_samples: int, rng: np.random.Generator, among: Indices | None = None) -> Draw:
        """Draw synthetic samples.

        Parameters
        ----------
        n_samples : int
            m, how many.
        rng : Generator
            Source of randomness.
        among : ndarray of int, optional
            Numbers of the samples to start from; all by default. Each is used about equally often.
        """
        n, d = self.X.shape
        bases = np.arange(n) if among is None else among
        chosen = np.concatenate([rng.permutation(len(bases)) for _ in range(-(-n_samples // len(bases)))])[:n_samples]
        base = bases[chosen]
        nearest = self._neighbors(bases, rng)
        partner = nearest[chosen, rng.integers(nearest.shape[1], size=n_samples)]
        swapped = rng.random((n_samples, d)) < self.swap_probability
        donor = np.where(swapped, partner[:, None], base[:, None])
        return Draw(donor, self._noise(base, partner, swapped, rng))

    def _noise(self, base: Indices, partner: Indices, swapped: Mask, rng: np.random.Generator) -> Float64:
        noise = np.zeros(swapped.shape)
        for j in np.flatnonzero(~self.categorical):
            x, single = self.X[:, j], self._single[:, j]
            if not single.any():
                continue
            rows = swapped[:, j] & single[partner]
            at, origin = x[partner[rows]], x[base[rows]]
            distance = np.nan_to_num(np.abs(at - origin))
            moved = at + self.noise * distance * rng.standard_normal(len(at))
            noise[rows, j] = np.clip(moved, np.nanmin(x), np.nanmax(x)) - at
        return noise

    @cached_property
    def _single(self) -> Mask:
        """Which values may get noise, of shape (n, d)."""
        return np.column_stack([occurs_once(x) for x in self.X.T])

    @cached_property
    def _embedding(self) -> Float64:
        return embedding(self.X, self.categorical)

    def _neighbors(self, bases: Indices, rng: np.random.Generator) -> Indices:
        """Return the nearest neighbours of each base sample, without itself, of shape (n_bases, n_neighbors)."""
        from sklearn.neighbors import NearestNeighbors

        n, Z = len(self.X), self._embedding
        reference = np.arange(n) if n <= _MOST_REFERENCES else np.sort(rng.permutation(n)[:_MOST_REFERENCES])
        most = max(len(reference) // 40, min(20, len(reference) // 4), 1)
        k = min(self.n_neighbors, most) + 1
        k = min(k, len(reference))
        found = reference[NearestNeighbors(n_neighbors=k).fit(Z[reference]).kneighbors(Z[bases], return_distance=False)]
        own = found == bases[:, None]
        own[~own.any(axis=1), -1] = True  # of equal samples another one may have taken its place
        found = found[~own].reshape(len(bases), k - 1) if k > 1 else found
        return np.asarray(found)


def occurs_once(x: Float64) -> Mask:
    """Return which values of a feature may get noise: those that occur once, if the feature is not integer-valued."""
    known = x[np.isfinite(x)]
    if not len(known) or np.array_equal(known, np.round(known)):
        return np.zeros(len(x), dtype=bool)
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    return np.asarray((count[place] == 1) & np.isfinite(x))


def embedding(X: Float64, categorical: Mask) -> Float64:
    """Return coordinates in which Euclidean distance compares samples of mixed features.

    Numbers are standardized and clipped, missing ones are at the mean and have an indicator; two different categories
    are at distance 1, and a missing category is one more category.
    """
    columns = []
    for j in range(X.shape[1]):
        x = X[:, j]
        missing = np.isnan(x)
        if categorical[j]:
            levels, count = np.unique(x[~missing], return_counts=True)
            kept = levels[np.argsort(-count, kind="stable")[:_MOST_LEVELS]]
            columns += [(x == level) * np.sqrt(0.5) for level in kept]
        else:
            known = x[~missing]
            deviation = float(known.std()) if len(known) else 0.0
            if deviation > 0:
                z = (np.where(missing, known.mean(), x) - known.mean()) / deviation
                columns.append(np.clip(z, -_LARGEST_DEVIATION, _LARGEST_DEVIATION))
        if missing.any() and not missing.all():
            columns.append(missing * (np.sqrt(0.5) if categorical[j] else 1.0))
    return np.column_stack(columns) if columns else np.zeros((len(X), 1))
