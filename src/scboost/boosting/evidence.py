"""How sure held-out rows are of a mean: standard errors that repeated rows and the unit of weights do not change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scboost._arrays import FloatArray, Keys
from scboost.boosting.workers import workers

_GROUPS = 256


@dataclass(frozen=True)
class Evidence:
    """Weighted sums over groups of rows, of one or several quantities.

    Rows fall into groups by what they contain. Equal rows share a group, so that repeating a row is giving it weight,
    and groups of the same number add up over folds and workers.

    Attributes
    ----------
    sums : ndarray of shape (..., groups)
        Sum of weight times quantity in each group.
    masses : ndarray of shape (groups,)
        Sum of the weights.
    """

    sums: FloatArray
    masses: FloatArray

    @classmethod
    def of(cls, values: FloatArray, keys: Keys, weight: FloatArray | None) -> Evidence:
        """Sum up the rows of all workers.

        Parameters
        ----------
        values : ndarray of shape (q, n)
            The quantities.
        keys : ndarray of shape (n,)
            Of :func:`scboost.boosting.content.row_keys`.
        weight : ndarray of shape (n,) or None
            Row weights.
        """
        groups = (keys % np.uint64(_GROUPS)).astype(np.intp)
        w = np.ones(len(keys)) if weight is None else weight.astype(np.float64)
        parts = [np.bincount(groups, weights=row, minlength=_GROUPS) for row in (*(values * w), w)]
        *sums, masses = workers().sum(np.array(parts))
        return cls(np.array(sums).reshape(len(values), _GROUPS), masses)

    def __add__(self, other: Evidence) -> Evidence:
        return Evidence(self.sums + other.sums, self.masses + other.masses)

    def mean(self) -> FloatArray:
        """Return the mean of each quantity, of shape (q,)."""
        return np.asarray(self.sums.sum(axis=-1) / self.masses.sum())

    def standard_errors(self) -> FloatArray:
        """Return by how many standard errors each mean lies above 0, of shape (q,); 0 for what does not vary."""
        errors = np.sqrt(((self.sums - self.mean()[:, None] * self.masses) ** 2).sum(axis=-1))
        totals = self.sums.sum(axis=-1)
        return np.asarray(np.divide(totals, errors, out=np.zeros(len(errors)), where=errors > 0))
