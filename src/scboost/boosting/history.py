"""History of predictions and its projection: Spectral Residual Projection (SRP).

Let H hold the remembered prediction vectors as rows, W the diagonal of sample weights, and
``<a, b> = a' W b``. SRP keeps the k leading principal directions of H that hold a share ``alpha`` of its
energy, finds the part ``p = P r`` of a residual that lies in their span, and returns the innovation
``q = r - gamma p``.

A tree that takes Newton steps does not fit r with equal rows: with curvatures C = diag(c) it fits ``r / c`` with row
weights c. Projected in that metric, ``p`` is the best Newton step that re-weighting history could still take, and
``q = r - gamma c p``. With equal rows instead, a row that is already right (r and c near 0) would get the target
``-gamma p / c``, which is huge: trees would be spent on undoing it. With c = 1 the two are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import linalg

from scboost._arrays import FloatArray, IntArray, in_files, kernels, map_blocks, zeros
from scboost.boosting.learners import Learner
from scboost.boosting.spectrum import GrowingSpectrum, Solution, eigenpairs
from scboost.boosting.workers import workers

# Eigenvalues of H W H' below this share of the largest have lost too many digits to squaring: the
# directions are then taken from an orthogonal factorisation of H itself.
_GRAM_FLOOR = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-9}
# Directions of H whose singular value is below this share of the largest are rounding, not history.
_RANK_FLOOR = 1e-12
_LONG, _NEW = 192, 16  # vectors from which eigenvectors are computed every few rounds only, and rounds in between
_SHORT_MEMORY, _MANY_ROWS = 16, 1 << 18  # to remember leaf numbers in place of predictions
_ROWS, _FEW_ROWS = 1 << 14, 1 << 12  # of which ten vectors stay in cache, and even a hundred


@dataclass(frozen=True)
class Projection:
    """What SRP did to one residual.

    Attributes
    ----------
    innovation : ndarray of shape (n,)
        ``q = r - gamma P r``; with curvature, ``q = r - gamma c P (r / c)``.
    k : int
        Number of principal directions in P.
    energy_kept : float
        Share of the history's energy that these directions hold, in [0, 1]; 0 for an empty history.
    historical_energy, innovation_energy : float
        ``|P r|^2`` and ``|r - P r|^2``; they add up to ``|r|^2``. With curvature, of ``r / c`` in its metric.
    """

    innovation: FloatArray
    k: int
    energy_kept: float
    historical_energy: float
    innovation_energy: float

    @property
    def share(self) -> float:
        """Share of the residual's energy that history spans, in [0, 1]."""
        total = self.historical_energy + self.innovation_energy
        return self.historical_energy / total if total > 0 else 0.0


class Projector(Protocol):
    """What the loop asks of a projection. Hand the loop another one to try a variant."""

    def project(self, r: FloatArray, curvature: FloatArray | None, out: FloatArray) -> list[Projection]:
        """Split the residuals of all outputs, of shape (K, n), into what is known and what is new.

        The innovations are put into ``out``; the curvatures, of the same shape, are None where they are all 1.
        """

    def append(self, predictions: Sequence[FloatArray]) -> None:
        """Remember the predictions of the newest learners, K vectors of shape (n,)."""

    def reserve(self, capacity: int) -> None:
        """Make room for more rounds."""


class SpectralProjector:
    """The projection of the method: each output has a history of its own.

    Parameters
    ----------
    histories : list of History
        One for each output.
    alpha : float in (0, 1]
        Share of the history's energy that the projected directions must hold.
    gamma : float in [0, 1]
        Share of the historical component that is removed.
    """

    def __init__(self, histories: list[History], alpha: float, gamma: float) -> None:
        self.histories = histories
        self._alpha, self._gamma = alpha, gamma

    def project(self, r: FloatArray, curvature: FloatArray | None, out: FloatArray) -> list[Projection]:
        """Project on the histories; see :class:`Projector`."""
        waiting = [
            history.project_later(
                r[k],
                alpha=self._alpha,
                gamma=self._gamma,
                curvature=None if curvature is None else curvature[k],
                out=out[k],
            )
            for k, history in enumerate(self.histories)
        ]
        return [project() for project in waiting]

    def append(self, predictions: Sequence[FloatArray]) -> None:
        """Remember; see :class:`Projector`."""
        for history, h in zip(self.histories, predictions, strict=True):
            history.append(h)

    def remember(self, learners: Sequence[Learner]) -> list[FloatArray | None]:
        """Remember the newest learners; see :meth:`History.remember`."""
        pairs = zip(self.histories, learners, strict=True)
        return [history.remember(learner.leaf, learner.values) for history, learner in pairs]

    def reserve(self, capacity: int) -> None:
        """Make room; see :class:`Projector`."""
        for history in self.histories:
            history.reserve(capacity)


class History:
    """Remembered prediction vectors, with everything needed to project onto their span.

    The Gram matrix ``G = H W H'`` is kept up to date, so a projection costs two passes over H and one
    eigendecomposition of G, of a long history every few rounds only; no factorisation of H is made. (A curvature that
    changes every round makes a new Gram matrix necessary, O(n t^2): meant for short memories.) Where G is too ill
    conditioned, or when all directions are wanted (``alpha = 1``), an orthonormal basis of H is used, extended by one
    vector a round by Gram-Schmidt: also O(n t).

    Parameters
    ----------
    n : int
        Length of a prediction vector.
    capacity : int
        How many of the latest vectors are remembered.
    dtype : {float32, float64}
        Type in which they are stored. Sums are accumulated in float64 in either case.
    sample_weight : ndarray of shape (n,), optional
        Weights of the inner product; all 1 if not given.

    Examples
    --------
    >>> import numpy as np
    >>> history = History(3, capacity=2, dtype=np.float64)
    >>> history.append(np.array([1.0, 0.0, 0.0]))
    >>> result = history.project(np.array([3.0, 4.0, 0.0]), alpha=0.9)
    >>> result.innovation, result.historical_energy, result.innovation_energy
    (array([0., 4., 0.]), 9.0, 16.0)
    """

    def __init__(
        self,
        n: int,
        capacity: int,
        dtype: npt.DTypeLike = np.float64,
        sample_weight: FloatArray | None = None,
    ) -> None:
        self._H: FloatArray = zeros((capacity, n), dtype)
        self._G = np.zeros((capacity, capacity))
        self._weight = sample_weight
        self._appended = 0
        self._in_gram = 0
        self._basis: _Basis | None = None
        self._spectrum: GrowingSpectrum | None = None
        self._leaves: dict[int, tuple[IntArray, FloatArray]] = {}  # by slot, in place of what would be in H

    def __getstate__(self) -> dict[str, Any]:
        # Only what is in use, and neither basis nor spectrum: both are made again, by the same operations.
        self._look_up()
        used = len(self)
        kept = {name: value for name, value in self.__dict__.items() if name not in {"_basis", "_spectrum", "_leaves"}}
        return {**kept, "_H": self._H[:used], "_G": self._G[:used, :used], "capacity": len(self._H)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        capacity = state.pop("capacity")
        self.__dict__.update(state)
        self._basis, self._spectrum, self._leaves = None, None, {}
        self._resize(capacity)

    def __len__(self) -> int:
        return min(self._appended, len(self._H))

    @property
    def vectors(self) -> FloatArray:
        """The remembered vectors as rows, oldest first, as a copy of shape (len(self), n)."""
        self._look_up()
        slots = np.arange(self._appended - len(self), self._appended) % len(self._H)
        return self._H[slots]

    def reserve(self, capacity: int) -> None:
        """Make room for more vectors; only before the first one has been forgotten."""
        if capacity <= len(self._H):
            return
        if self._appended > len(self._H):
            raise ValueError(f"capacity={capacity}: a history that has forgotten vectors cannot grow.")
        self._resize(capacity)
        self._basis = None

    def _resize(self, capacity: int) -> None:
        self._look_up()
        old_H, old_G = self._H, self._G
        self._H = zeros((capacity, old_H.shape[1]), old_H.dtype)
        self._G = np.zeros((capacity, capacity))
        self._H[: len(old_H)], self._G[: len(old_G), : len(old_G)] = old_H, old_G

    def append(self, h: FloatArray) -> None:
        """Remember a prediction vector of shape (n,), in place of the oldest one if the memory is full."""
        slot = self._next()

        def copy(rows: slice) -> None:
            slot[rows] = h[rows]

        map_blocks(copy, len(h))

    def remember(self, leaf: IntArray | None, values: FloatArray) -> FloatArray | None:
        """Remember the prediction vector ``values[leaf]``, by its leaf numbers where that saves memory.

        Leaf numbers take a byte a row, and are looked up when they are read: for short memories of many rows, with
        compiled passes.

        Parameters
        ----------
        leaf : ndarray of shape (n,) or None
            Leaf of each row, kept as it is; None if the learner has no leaves.
        values : ndarray
            Value of each leaf.

        Returns
        -------
        ndarray of shape (n,) or None
            Where the predictions are to be put; None if they need not.
        """
        few, many = len(self._H) <= _SHORT_MEMORY, self._H.shape[1] >= _MANY_ROWS
        if leaf is None or not (few and many) or kernels(leaf) is None or in_files(self._H):
            return self._next()
        self._leaves[self._appended % len(self._H)] = leaf, values
        self._appended += 1
        return None

    def _next(self) -> FloatArray:
        """Return the place of the next vector, of shape (n,), that of the oldest one if the memory is full."""
        slot = self._appended % len(self._H)
        self._leaves.pop(slot, None)
        self._appended += 1
        place: FloatArray = self._H[slot]
        return place

    def _block(self, rows: slice) -> FloatArray:
        """Return some rows of the remembered vectors, of shape (len(self), rows)."""
        block = self._H[: len(self), rows]
        if not self._leaves:
            return block
        block = np.empty_like(block)
        for slot, out in enumerate(block):
            if slot in self._leaves:
                leaf, values = self._leaves[slot]
                kernels(leaf).take(leaf[rows], values, out)
            else:
                out[:] = self._H[slot, rows]
        return block

    def _look_up(self) -> None:
        """Put what leaf numbers stand for into H."""
        for slot, (leaf, values) in self._leaves.items():
            values.take(leaf, out=self._H[slot], mode="clip")
        self._leaves = {}

    def project(
        self,
        r: FloatArray,
        *,
        alpha: float,
        gamma: float = 1.0,
        curvature: FloatArray | None = None,
        out: FloatArray | None = None,
    ) -> Projection:
        """Split a residual into what history spans and what is new.

        Parameters
        ----------
        r : ndarray of shape (n,)
            The residual.
        alpha : float in (0, 1]
            Share of the history's energy that the projected directions must hold.
        gamma : float in [0, 1], default=1.0
            Share of the historical component that is removed.
        curvature : ndarray of shape (n,), optional
            Positive curvatures of the rows, which define the metric; all 1 if not given.
        out : ndarray of shape (n,), optional
            Where to put the innovation.

        Returns
        -------
        Projection
            The innovation, in the residual's dtype, and the numbers that describe the split.
        """
        return self.project_later(r, alpha=alpha, gamma=gamma, curvature=curvature, out=out)()

    def project_later(
        self,
        r: FloatArray,
        *,
        alpha: float,
        gamma: float = 1.0,
        curvature: FloatArray | None = None,
        out: FloatArray | None = None,
    ) -> Callable[[], Projection]:
        """Return a function that does the same: what workers add up for several histories, they add up at once."""
        products = self._inner_products(r) if curvature is None else self._curved_inner_products(r, curvature)
        q = np.empty_like(r) if out is None else out
        return lambda: self._project(r, *products(), alpha, gamma, curvature, q)

    def _project(
        self,
        r: FloatArray,
        b: FloatArray,
        r_energy: float,
        alpha: float,
        gamma: float,
        curvature: FloatArray | None,
        q: FloatArray,
    ) -> Projection:
        """Project a residual whose products with the history are b, of shape (len(self),)."""
        grown = self._grown(b, alpha) if alpha < 1.0 else None
        if grown is not None:
            self._subtract(r, gamma * grown.coefficients, curvature, q)
            p_energy = min(float(b @ grown.coefficients), r_energy)
            return Projection(q, grown.k, grown.kept, p_energy, r_energy - p_energy)
        if alpha < 1.0:
            eigenvalues, V, k, kept = self._principal_directions(alpha)
            if k == 0 or eigenvalues[k - 1] >= _GRAM_FLOOR[self._H.dtype] * eigenvalues[0]:
                coordinates = V[:, :k].T @ b
                solution = coordinates / eigenvalues[:k]
                self._subtract(r, gamma * (V[:, :k] @ solution), curvature, q)
                p_energy = min(float(coordinates @ solution), r_energy)
                return Projection(q, k, kept, p_energy, r_energy - p_energy)
        p, k, kept, p_energy = self._project_on_basis(r, alpha, curvature)
        np.subtract(r, gamma * p if curvature is None else gamma * curvature * p, out=q, casting="same_kind")
        p_energy = min(p_energy, r_energy)
        return Projection(q, k, kept, p_energy, r_energy - p_energy)

    def _subtract(self, r: FloatArray, c: FloatArray, curvature: FloatArray | None, q: FloatArray) -> None:
        """Set ``q = r - C H'c``, by blocks that stay in cache."""
        c = c.astype(self._H.dtype)

        def go(rows: slice) -> None:
            p = c @ self._block(rows)
            if curvature is not None:
                p *= curvature[rows]
            np.subtract(r[rows], p, out=q[rows], casting="same_kind")

        map_blocks(go, len(r))

    def _grown(self, b: FloatArray, alpha: float) -> Solution | None:
        """Solve by the eigenvectors of some rounds before, where the history is long and has only grown since."""
        t = len(self)
        known = t - t % _NEW
        if known < _LONG or self._appended > len(self._H) or self._in_gram != self._appended:
            return None
        G = self._G[:t, :t]
        if not np.isfinite(G).all():
            return None
        if self._spectrum is None or len(self._spectrum.eigenvalues) != known:
            self._spectrum = GrowingSpectrum(G[:known, :known], _NEW - 1)
        return self._spectrum.solve(G, b, alpha, _GRAM_FLOOR[self._H.dtype])

    def _principal_directions(self, alpha: float) -> tuple[FloatArray, FloatArray, int, float]:
        """Eigenpairs of G, largest first; how many hold a share alpha of its trace, and the share they hold."""
        t = len(self)
        G = self._G[:t, :t]
        if not np.isfinite(G).all():  # a fit that diverges, as its loss will tell
            return np.zeros(t), np.zeros((t, t)), 0, 0.0
        eigenvalues, V = eigenpairs(G)
        eigenvalues = np.maximum(eigenvalues, 0.0)
        k, kept = _leading(eigenvalues, alpha, float(G.trace()))
        return eigenvalues, V, k, kept

    def _inner_products(self, r: FloatArray) -> Callable[[], tuple[FloatArray, float]]:
        """H W r and r' W r, and, in the same pass over H, the rows of G not yet computed.

        Products are formed in the type of the history and summed over short blocks, the blocks' sums in float64.
        """
        t = len(self)
        first = max(self._in_gram, self._appended - t)  # -1 if none is
        pending = [i % len(self._H) for i in range(first, self._appended)]

        def add_up(rows: slice) -> tuple[FloatArray, float]:
            block, v = self._block(rows), r[rows]
            vectors = np.stack([*block[pending], v])
            if self._weight is not None:
                vectors = vectors * self._weight[rows]
            # One vector after the other reads a long block twice, and is still faster than BLAS's product with two.
            products = block @ vectors.T if t < _LONG else np.stack([block @ vector for vector in vectors], axis=1)
            return products, float(v @ vectors[-1])

        sums = np.zeros((t + 1, len(pending) + 1))
        for products, energy in map_blocks(add_up, len(r), _FEW_ROWS):
            sums[:t] += products
            sums[t, -1] += energy
        totals = workers().sum_later(sums)

        def read() -> tuple[FloatArray, float]:
            sums = totals()
            for i, slot in enumerate(pending):
                self._G[slot, :t] = self._G[:t, slot] = sums[:t, i]
            self._in_gram = self._appended
            return sums[:t, -1], float(sums[t, -1])

        return read

    def _curved_inner_products(self, r: FloatArray, curvature: FloatArray) -> Callable[[], tuple[FloatArray, float]]:
        """H W r and ``r' W C^-1 r``, and G anew in the metric of the curvature; summed as for equal rows."""
        t = len(self)

        def add_up(rows: slice) -> tuple[FloatArray, FloatArray, float]:
            block, v, c = self._block(rows), r[rows], curvature[rows]
            weighted_v, weighted_c = v, c
            if self._weight is not None:
                weighted_v, weighted_c = v * self._weight[rows], c * self._weight[rows]
            return (block * weighted_c) @ block.T, block @ weighted_v, float(weighted_v @ (v / c))

        sums = np.zeros((t + 1, t + 1))
        for gram, products, energy in map_blocks(add_up, len(r), _ROWS):
            sums[:t, :t] += gram
            sums[:t, t] += products
            sums[t, t] += energy
        totals = workers().sum_later(sums)

        def read() -> tuple[FloatArray, float]:
            sums = totals()
            self._G[:t, :t] = sums[:t, :t]
            self._in_gram = -1  # not the plain Gram matrix any more
            return sums[:t, t], float(sums[t, t])

        return read

    def _project_on_basis(
        self, r: FloatArray, alpha: float, curvature: FloatArray | None
    ) -> tuple[FloatArray, int, float, float]:
        """P r, k, the share of energy kept and |P r|^2, by an orthonormal basis of the history."""
        self._look_up()
        root = np.ones(len(r)) if self._weight is None else np.sqrt(self._weight)
        z = np.asarray(r, dtype=np.float64) * root
        if curvature is not None:
            c = np.sqrt(np.asarray(curvature, dtype=np.float64))
            root, z = root * c, z / c
            Q, energies = _directions(self._H[: len(self)] * root, alpha)
            k, kept = _leading(energies, alpha, float(energies.sum()))
            coordinates = workers().sum(Q[:k] @ z)
            p = coordinates @ Q[:k]
        else:
            oldest = self._appended - len(self)
            if self._basis is None or self._basis.first != oldest:
                self._basis = _Basis(self._H.shape[1], len(self._H), oldest)
            basis = self._basis
            for i in range(basis.last, self._appended):
                basis.append(np.asarray(self._H[i % len(self._H)], dtype=np.float64) * root)
            U, energies = basis.principal_directions()
            k, kept = _leading(energies, alpha, float(energies.sum()))
            coordinates = U[:, :k].T @ workers().sum(basis.Q @ z)
            p = (U[:, :k] @ coordinates) @ basis.Q
        np.divide(p, root, out=p, where=root > 0)
        return p, k, kept, float(coordinates @ coordinates)


class _Basis:
    """Orthonormal basis of a growing list of vectors: H' = Q' R, by Gram-Schmidt done twice."""

    def __init__(self, n: int, capacity: int, first: int) -> None:
        self._Q = np.zeros((capacity, n))
        self._R = np.zeros((capacity, capacity))
        self.first = first
        self.last = first
        self.rank = 0

    @property
    def Q(self) -> FloatArray:
        return self._Q[: self.rank]

    def append(self, h: FloatArray) -> None:
        column, Q = self.last - self.first, self.Q
        norm = _norm(h)
        for _ in range(2):
            coefficients = workers().sum(Q @ h)
            h = h - coefficients @ Q
            self._R[: self.rank, column] += coefficients
        rest = _norm(h)
        if rest > _RANK_FLOOR * norm:
            self._Q[self.rank] = h / rest
            self._R[self.rank, column] = rest
            self.rank += 1
        self.last += 1

    def principal_directions(self) -> tuple[FloatArray, FloatArray]:
        """Left singular vectors of H' in the coordinates of Q, and squared singular values."""
        if self.rank == 0:
            return np.zeros((0, 0)), np.zeros(0)
        U, s, _ = linalg.svd(self._R[: self.rank, : self.last - self.first], full_matrices=False)
        return U, s**2


def _norm(h: FloatArray) -> float:
    own = float(np.linalg.norm(h))
    return own if workers().size == 1 else float(np.sqrt(workers().sum(np.array(own**2))))


def _directions(H: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Orthonormal directions of the span of the rows of H, as rows, and their energies, largest first.

    Principal directions, or any if all are wanted: a QR factorisation with pivots takes a tenth of the time.
    """
    if not len(H):  # which earlier versions of SciPy refuse
        return H, np.zeros(0, dtype=H.dtype)
    others = workers()
    if others.size > 1:
        # Every worker factorises its own rows, and all factorise the triangles: H' = Q R = Q U S V'.
        own, triangle = linalg.qr(H.T, mode="economic", check_finite=False) if H.size else (H.T, np.zeros((0, len(H))))
        triangles = others.gather(triangle)
        stacked, R = linalg.qr(np.concatenate(triangles), mode="economic", check_finite=False)
        begin = sum(len(part) for part in triangles[: others.rank])
        U, s, _ = linalg.svd(R, full_matrices=False, check_finite=False)
        return (own @ (stacked[begin : begin + len(triangle)] @ U)).T, np.where(s > _RANK_FLOOR * s[0], s, 0.0) ** 2
    if alpha < 1.0:
        _, s, V = linalg.svd(H, full_matrices=False, check_finite=False)
        return V, s**2
    Q, R, _ = linalg.qr(H.T, mode="economic", pivoting=True, check_finite=False)
    sizes = np.abs(np.diagonal(R))
    return Q.T, np.where(sizes > _RANK_FLOOR * sizes[0], sizes, 0.0) ** 2


def _leading(energies: FloatArray, alpha: float, total: float) -> tuple[int, float]:
    """Smallest k whose leading energies (descending) hold a share alpha of the total, and the share held."""
    k, held = 0, 0.0
    if total > 0.0:
        values = energies.tolist()
        while k < len(values) and values[k] > _RANK_FLOOR**2 * values[0] and (alpha == 1.0 or held < alpha * total):
            held += values[k]
            k += 1
    return k, min(held / total, 1.0) if k else 0.0
