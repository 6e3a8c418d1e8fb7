"""Leading directions of a history that grows by one vector a round, without all eigenvectors of every round.

Let G be the Gram matrix of t vectors, and the eigenvectors of its first t0 rows and columns be known. In their basis G
is diagonal but for the m rows and columns that came since,

    M = [[D, Z'], [Z, C]],

so that ``(M - x)^-1`` takes O(t m^2), by the Schur complement ``S(x) = C - x - Z (D - x)^-1 Z'``. No more is needed:

- The eigenvalues of M above x are as many as those of D above x and those of S(x) above 0 (Haynsworth), by which any
  one of them is found.
- The projection on the leading eigenvectors is a sum of such inverses at complex x: Zolotarev's rational approximation
  of the sign function, of which thirty terms or so are exact to eleven digits.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg, special

from scboost._arrays import FloatArray, IntArray

Numbers = npt.NDArray[Any]
"""Real or complex numbers."""

_ERROR = 1e-11  # of the approximation
_NARROWEST = 1e-8  # gap between two eigenvalues, as a share of the largest, that is told from none
_SECTIONS = 16  # into which the span of an eigenvalue is divided at once
_TRIES = 32  # numbers of leading eigenvectors


def eigenpairs(G: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues of a symmetric matrix, largest first, and the eigenvectors as columns."""
    # All pairs, by divide and conquer: faster than the leading ones alone. Without eigh's checks, which
    # take longer than the work itself for a short memory.
    eigenvalues, V, _ = linalg.lapack.dsyevd(G)
    return eigenvalues[::-1], V[:, ::-1]


class Solution(NamedTuple):
    """The part of a vector in the span of the leading eigenvectors.

    Attributes
    ----------
    coefficients : ndarray of shape (t,)
        ``V (V' b / eigenvalues)`` of the leading eigenvectors V.
    k : int
        Number of these.
    kept : float
        Share of the trace that their eigenvalues add up to.
    """

    coefficients: FloatArray
    k: int
    kept: float


class GrowingSpectrum:
    """Eigenvectors of the first rows and columns of a positive semidefinite matrix, and what follows for a larger one.

    Parameters
    ----------
    G : ndarray of shape (t0, t0)
        The first rows and columns, finite.
    longest : int
        Most rows and columns that will be added.

    Attributes
    ----------
    eigenvalues : ndarray of shape (t0,)
        Largest first; rounding leaves some below 0.
    eigenvectors : ndarray of shape (t0, t0)
        As columns.
    """

    def __init__(self, G: FloatArray, longest: int = 0) -> None:
        self.eigenvalues, V = eigenpairs(G)
        self.eigenvectors = np.ascontiguousarray(V)
        self._m = 0
        self._Z = np.empty((longest, len(G)))
        self._products = np.empty((longest * (longest + 1) // 2, len(G)))  # of all pairs of rows of Z

    def solve(self, G: FloatArray, b: FloatArray, alpha: float, floor: float) -> Solution | None:
        """Solve for the fewest leading eigenvectors whose eigenvalues add up to a share alpha of the trace.

        Parameters
        ----------
        G : ndarray of shape (t, t)
            The matrix with all its rows and columns.
        b : ndarray of shape (t,)
            Right-hand side.
        alpha : float in (0, 1)
            Share of the trace.
        floor : float
            Share of the largest eigenvalue below which none may be among the leading ones.

        Returns
        -------
        Solution or None
            None where two eigenvalues are too close to be parted, or one is below the floor. It does not depend on what
            was solved before: a fit that is resumed goes on alike.
        """
        self._extend(G)
        wanted = alpha * self._total
        k = self._first_guess(alpha, floor)
        if not self._m:
            V, eigenvalues = self.eigenvectors[:, :k], self.eigenvalues[:k]
            firm = eigenvalues[-1] >= floor * eigenvalues[0] > 0
            return Solution(V @ (V.T @ b / eigenvalues), k, eigenvalues.sum() / self._total) if firm else None
        for _ in range(_TRIES):
            span = self._between(k)
            if span is None or span[1] < floor * self._largest:
                return None
            coefficients, energy = self._filter(b, *span)
            if energy < wanted:
                k += max(1, math.ceil((wanted - energy) / span[0])) if span[0] > 0 else 1  # at least so many more
            elif self._counts(np.array([energy - wanted]))[0] < k:  # the others alone would do
                k -= 1
            else:
                return Solution(coefficients, k, energy / self._total)
        return None

    def _first_guess(self, alpha: float, floor: float) -> int:
        """Return the number of leading eigenvectors of the first rows and columns, and in proportion for the others.

        What an earlier round found would be nearer, but a fit that is resumed does not know it.
        """
        sums = np.cumsum(self.eigenvalues)
        k = min(int(np.searchsorted(sums, alpha * sums[-1])) + 1, len(sums))
        firm = int(np.sum(self.eigenvalues > floor * self.eigenvalues[0]))
        return min(k + k * self._m // len(sums), max(k, firm))

    def _extend(self, G: FloatArray) -> None:
        t0 = len(self.eigenvalues)
        for i in range(self._m, len(G) - t0):
            self._Z[i] = G[t0 + i, :t0] @ self.eigenvectors
            self._products[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2] = self._Z[: i + 1] * self._Z[i]
        self._m = len(G) - t0
        self._C = G[t0:, t0:]
        self._total = float(G.trace())
        self._largest = min(self._total, float(self.eigenvalues[0] + self._C.trace()))  # or less

    def _schur(self, x: Numbers, inverses: Numbers) -> Numbers:
        """Return ``S(x)`` of several x, of shape (x, m, m); the inverses of ``D - x`` have shape (t0, x)."""
        return self._C - x[:, None, None] * np.eye(self._m) - self._weighted_products(inverses)

    def _weighted_products(self, weights: Numbers) -> Numbers:
        """Return ``Z diag(w) Z'`` for the columns w of an array, real or complex, of shape (columns, m, m)."""
        m = self._m
        packed = (self._products[: m * (m + 1) // 2] @ weights.view(np.float64)).view(weights.dtype).T
        products = np.empty((len(packed), m, m), dtype=weights.dtype)
        i, j = np.tril_indices(m)
        products[:, i, j] = products[:, j, i] = packed
        return products

    def _counts(self, x: FloatArray) -> IntArray:
        """Return how many eigenvalues are above each x."""
        distances = self.eigenvalues[:, None] - x
        nearest = np.finfo(np.float64).eps * self._largest
        S = self._schur(x, 1 / np.copysign(np.maximum(np.abs(distances), nearest), distances))
        return np.asarray(np.sum(distances > 0, axis=0) + np.sum(np.linalg.eigvalsh(S) > 0, axis=1))

    def _between(self, k: int) -> tuple[float, float] | None:
        """Return bounds between eigenvalues k and k + 1, from below and above, almost as far apart as these are."""
        D, m = self.eigenvalues, self._m
        if not 0 < k < len(D) + m:
            return None
        # Added rows and columns move no eigenvalue down, and none above the one m places before it.
        low = np.array([D[i] if i < len(D) else 0.0 for i in (k - 1, k)])
        high = np.array([D[i] if i >= 0 else self._largest for i in (k - 1 - m, k - m)])
        while low[0] - high[1] < 0.9 * (high[0] - low[1]) and high[0] - low[1] > _NARROWEST * self._largest:
            parts = np.arange(1, _SECTIONS) / _SECTIONS
            x = (low[:, None] + (high - low)[:, None] * parts).ravel()
            counts = self._counts(x)
            for i, number in enumerate((k, k + 1)):
                low[i] = max(low[i], x[counts >= number].max(initial=low[i]))
                high[i] = min(high[i], x[counts < number].min(initial=high[i]))
        apart = low[0] - high[1] > _NARROWEST / 2 * self._largest
        return (float(high[1]), float(low[0])) if apart else None

    def _filter(self, b: FloatArray, below: float, above: float) -> tuple[FloatArray, float]:
        """Return coefficients and energy of the eigenvectors with eigenvalues above a gap; see :class:`Solution`."""
        middle = (above + below) / 2
        # sign(x - middle) is the sum of w Re 1 / (x - z). Half of it and a half is 1 above the gap and 0 below; over x,
        # without what is left of it at x = 0, that is the sum of w / 2 Re 1 / (z (x - z)).
        weights, squares = zolotarev((above - below) / 2 / self._largest)
        weights = weights * self._largest / 2
        z = middle + 1j * self._largest * np.sqrt(squares)
        t0, m = len(self.eigenvalues), self._m
        inverses = 1 / (self.eigenvalues[:, None] - z)
        S = np.linalg.inv(self._schur(z, inverses))
        trace = inverses.sum(axis=0) + np.einsum("xij,xji->x", S, np.eye(m) + self._weighted_products(inverses**2))
        energy = self._total / 2 + float(weights @ (t0 + m + z * trace).real)
        Z, first, last = self._Z[:m], b[:t0] @ self.eigenvectors, b[t0:]
        known = ((Z * first) @ inverses.view(np.float64)).view(np.complex128)
        last_part = np.einsum("xij,jx->ix", S, last[:, None] - known)
        first_part = inverses * (first[:, None] - Z.T @ last_part)
        solution = [(part @ (weights / z)).real for part in (first_part, last_part)]
        return np.concatenate([self.eigenvectors @ solution[0], solution[1]]), energy


def zolotarev(gap: float) -> tuple[FloatArray, FloatArray]:
    """Return w and s such that the sum of ``w x / (x^2 + s)`` is the sign of x, for ``gap <= |x| <= 1``.

    The best of all sums of so many terms, which are as many as it takes for an error of 1e-11. See Zolotarev (1877);
    Nakatsukasa and Freund (2016) for the formulas.

    Parameters
    ----------
    gap : float in (0, 1)
        Smallest number whose sign matters.

    Examples
    --------
    >>> import numpy as np
    >>> w, s = zolotarev(0.01)
    >>> x = np.array([-1, -0.01, 0.01, 0.5])
    >>> np.round((w * x[:, None] / (x[:, None] ** 2 + s)).sum(axis=1), 9)
    array([-1., -1.,  1.,  1.])
    """
    r = math.ceil(math.log(4 / _ERROR) * math.log(4 / gap) / math.pi**2)
    # The squares of Jacobi's sn / cn to the modulus sqrt(1 - gap^2), by the Fourier series of sn to the modulus gap;
    # those of the second half of the arguments follow from the first.
    quarter, other = special.ellipk(gap**2), special.ellipkm1(gap**2)
    odd, argument = np.arange(1, 64, 2)[:, None], np.arange(1, r + 1) / (2 * r)
    decay = np.pi * other / (2 * quarter) * odd
    terms = (np.exp(decay * (argument - 1)) - np.exp(-decay * (argument + 1))) / -np.expm1(-2 * decay)
    first = (np.pi / quarter * terms.sum(axis=0)) ** 2
    places = np.concatenate([first, gap**2 / first[-2::-1]])
    poles, zeros = places[::2], places[1::2]
    between = poles - poles[:, None]
    np.fill_diagonal(between, 1.0)
    weights = np.exp(np.log(np.abs(zeros - poles[:, None])).sum(axis=1) - np.log(np.abs(between)).sum(axis=1))
    x = np.geomspace(gap, 1, 200)[:, None]
    signs = (weights * x / (x**2 + poles)).sum(axis=1)
    return weights * (2 / (signs.max() + signs.min())), poles
