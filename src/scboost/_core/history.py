"""The history of predictions and its projection: Spectral Residual Projection (SRP).

Let H hold the remembered prediction vectors as rows, W the diagonal of sample weights, and
``<a, b> = a' W b``. SRP keeps the k leading principal directions of H that hold a share ``alpha`` of its
energy, finds the historical component ``p = P r`` of a residual (negative gradient) r that lies in their span, and
returns the innovation ``q = r - gamma p``.

A tree that takes Newton steps does not fit r with equal samples: with Hessians C = diag(c) it fits ``r / c`` with
sample weights c. Projected in that metric, ``p`` is the best Newton step that re-weighting the history could still
take, and ``q = r - gamma c p``. With equal samples instead, a sample that is already right (r and c near 0) would get
the target ``-gamma p / c``, which is huge: trees would be spent on undoing it. With c = 1 the two are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg

from scboost._arrays import FloatArray
from scboost._runtime.communicator import Communicator
from scboost._runtime.context import Context
from scboost._runtime.storage import IN_MEMORY, Storage
from scboost._runtime.threads import SERIAL, Threads

# Eigenvalues of H W H' below this share of the largest have lost too many digits to squaring: the
# directions are then taken from an orthogonal factorisation of H itself.
_GRAM_FLOOR = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-9}
# Directions of H whose singular value is below this share of the largest are rounding, not history.
_RANK_FLOOR = 1e-12
_LONG = 192  # vectors from which BLAS's product with two vectors is slower than two products with one
_SHORT_MEMORY = 16  # vectors of a projection that takes one compiled pass
_BLOCK, _SHORT_BLOCK = 1 << 14, 1 << 12  # samples of which ten vectors stay in cache, and even a hundred


class Projection(NamedTuple):
    """The projection of one residual.

    Attributes
    ----------
    innovation : ndarray of shape (n,)
        ``q = r - gamma P r``; with Hessians, ``q = r - gamma c P (r / c)``.
    k : int
        Number of principal directions in P.
    energy_kept : float
        Share of the history's energy that these directions hold, in [0, 1]; 0 for an empty history.
    historical_energy, innovation_energy : float
        ``|P r|^2`` and ``|r - P r|^2``; they add up to ``|r|^2``. With Hessians, of ``r / c`` in its metric.
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


class SpectralProjector:
    """The projection of all outputs: each has a history of its own.

    Parameters
    ----------
    histories : list of History
        One per output.
    alpha : float in (0, 1]
        Share of the history's energy that the projected directions must hold.
    gamma : float in [0, 1]
        Share of the historical component that is removed.
    """

    def __init__(self, histories: list[History], alpha: float, gamma: float) -> None:
        self.histories = histories
        self.alpha, self.gamma = alpha, gamma

    def local_sums(self, r: FloatArray, hessian: FloatArray | None, threads: Threads) -> list[FloatArray]:
        """Return what :meth:`project` needs summed over all workers.

        Parameters
        ----------
        r : ndarray of shape (K, n)
            The residuals of all outputs.
        hessian : ndarray of shape (K, n) or None
            The Hessians that define the metric; None if they are all 1.
        threads : Threads
            Threads for passes over the samples.
        """
        return [
            history.local_sums(r[k], None if hessian is None else hessian[k], threads)
            for k, history in enumerate(self.histories)
        ]

    def project(
        self,
        r: FloatArray,
        hessian: FloatArray | None,
        sums: Sequence[FloatArray],
        out: FloatArray,
        context: Context,
    ) -> list[Projection]:
        """Write the innovations of all outputs, of shape (K, n), into ``out``, given the sums over all workers."""
        return [
            history.solve(
                r[k],
                sums[k],
                alpha=self.alpha,
                gamma=self.gamma,
                hessian=None if hessian is None else hessian[k],
                out=out[k],
                context=context,
            )
            for k, history in enumerate(self.histories)
        ]

    def is_compiled(self, context: Context) -> bool:
        """Whether one compiled call per output replaces :meth:`local_sums` and :meth:`project`."""
        return context.communicator.size == 1 and all(
            history.is_compiled(self.alpha, context.threads) for history in self.histories
        )

    def project_compiled(
        self, r: FloatArray, hessian: FloatArray | None, out: FloatArray, context: Context
    ) -> list[Projection]:
        """Write the innovations of all outputs, of shape (K, n), into ``out``."""
        return [
            history.project_compiled(
                r[k], self.alpha, self.gamma, None if hessian is None else hessian[k], out[k], context
            )
            for k, history in enumerate(self.histories)
        ]

    def append(self, predictions: Sequence[FloatArray], threads: Threads) -> None:
        """Remember the predictions of the newest trees, K vectors of shape (n,)."""
        for history, h in zip(self.histories, predictions, strict=True):
            history.append(h, threads)

    def reserve(self, capacity: int, storage: Storage) -> None:
        """Make room for more rounds."""
        for history in self.histories:
            history.reserve(capacity, storage)


class History:
    """Remembered prediction vectors, with everything needed to project onto their span.

    The Gram matrix ``G = H W H'`` is kept up to date, so a projection costs two passes over H and one
    eigendecomposition of G; no factorisation of H is made. (A Hessian that changes every round makes a new Gram matrix
    necessary, O(n t^2): meant for short memories.) Where G is too ill conditioned, or when all directions are wanted
    (``alpha = 1``), an orthonormal basis of H is used, extended by one vector per round by Gram-Schmidt: also O(n t).

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
    storage : Storage, optional
        Where the vectors live.

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
        storage: Storage = IN_MEMORY,
    ) -> None:
        self._H: FloatArray = storage.zeros((capacity, n), dtype)
        self._G = np.zeros((capacity, capacity))
        self._weight = sample_weight
        self._appended = 0
        self._in_gram = 0
        self._basis: _Basis | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Only the used part, and without the basis, which is made again by the same operations.
        used = len(self)
        kept = {name: value for name, value in self.__dict__.items() if name != "_basis"}
        return {**kept, "_H": self._H[:used], "_G": self._G[:used, :used], "capacity": len(self._H)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        capacity = state.pop("capacity")
        self.__dict__.update(state)
        self._basis = None
        self._resize(capacity, IN_MEMORY)

    def __len__(self) -> int:
        return min(self._appended, len(self._H))

    @property
    def vectors(self) -> FloatArray:
        """The remembered vectors as rows, oldest first, as a copy of shape (len(self), n)."""
        slots = np.arange(self._appended - len(self), self._appended) % len(self._H)
        return self._H[slots]

    def reserve(self, capacity: int, storage: Storage = IN_MEMORY) -> None:
        """Make room for more vectors; only before the first one has been forgotten."""
        if capacity <= len(self._H):
            return
        if self._appended > len(self._H):
            raise ValueError(f"capacity={capacity}: a history that has forgotten vectors cannot grow.")
        self._resize(capacity, storage)
        self._basis = None

    def _resize(self, capacity: int, storage: Storage) -> None:
        old_H, old_G = self._H, self._G
        self._H = storage.zeros((capacity, old_H.shape[1]), old_H.dtype)
        self._G = np.zeros((capacity, capacity))
        self._H[: len(old_H)], self._G[: len(old_G), : len(old_G)] = old_H, old_G

    def append(self, h: FloatArray, threads: Threads = SERIAL) -> None:
        """Remember a prediction vector of shape (n,), in place of the oldest one if the memory is full."""
        slot = self.next_place()

        def copy(rows: slice) -> None:
            slot[rows] = h[rows]

        threads.map_blocks(copy, len(h))

    @property
    def place(self) -> FloatArray:
        """Place of the next vector, of shape (n,), that of the oldest one if the memory is full."""
        place: FloatArray = self._H[self._appended % len(self._H)]
        return place

    def next_place(self) -> FloatArray:
        """Return the place of the next vector, which counts as remembered from now on."""
        place = self.place
        self._appended += 1
        return place

    def project(
        self,
        r: FloatArray,
        *,
        alpha: float,
        gamma: float = 1.0,
        hessian: FloatArray | None = None,
        out: FloatArray | None = None,
        context: Context | None = None,
    ) -> Projection:
        """Split a residual into its historical component and its innovation.

        Parameters
        ----------
        r : ndarray of shape (n,)
            The residual.
        alpha : float in (0, 1]
            Share of the history's energy that the projected directions must hold.
        gamma : float in [0, 1], default=1.0
            Share of the historical component that is removed.
        hessian : ndarray of shape (n,), optional
            Positive Hessians of the samples, which define the metric; all 1 if not given.
        out : ndarray of shape (n,), optional
            Where to put the innovation.
        context : Context, optional
            Context of the fit; by default one process and one thread.

        Returns
        -------
        Projection
            The innovation, in the residual's dtype, and the numbers that describe the split.
        """
        context = context or Context()
        sums = context.communicator.sum(self.local_sums(r, hessian, context.threads))
        q = np.empty_like(r) if out is None else out
        return self.solve(r, sums, alpha=alpha, gamma=gamma, hessian=hessian, out=q, context=context)

    def is_compiled(self, alpha: float, threads: Threads) -> bool:
        """Whether :meth:`project_compiled` applies: to a short memory."""
        short = len(self._H) <= _SHORT_MEMORY and alpha < 1.0
        return short and threads.passes is not None and self._H.dtype == np.float32

    @property
    def compiled(self) -> tuple[FloatArray, float]:
        """Remembered vectors in any order, of shape (len(self), n), and the least share of a usable eigenvalue."""
        return self._H[: len(self)], _GRAM_FLOOR[self._H.dtype]

    def project_compiled(
        self,
        r: FloatArray,
        alpha: float,
        gamma: float,
        hessian: FloatArray | None,
        out: FloatArray,
        context: Context,
    ) -> Projection:
        """Project a residual by one pass of the native engine; see :meth:`project`."""
        weight = None if self._weight is None else np.ascontiguousarray(self._weight, dtype=np.float64)
        H, floor = self.compiled
        k, kept, p_energy, r_energy = context.threads.passes.project(  # type: ignore[union-attr]
            H, r, hessian, weight, alpha, gamma, floor, out, context.threads.native_pool
        )
        if k < 0:  # the Gram matrix has lost too many digits
            return self.project(r, alpha=alpha, gamma=gamma, hessian=hessian, out=out, context=context)
        return Projection(out, k, kept, p_energy, r_energy - p_energy)

    def local_sums(self, r: FloatArray, hessian: FloatArray | None, threads: Threads) -> FloatArray:
        """Return the inner products of this worker's samples that :meth:`solve` needs, summed over all workers."""
        return self._inner_products(r, threads) if hessian is None else self._metric_products(r, hessian, threads)

    def solve(
        self,
        r: FloatArray,
        sums: FloatArray,
        *,
        alpha: float,
        gamma: float,
        hessian: FloatArray | None,
        out: FloatArray,
        context: Context,
    ) -> Projection:
        """Project a residual; see :meth:`project`. ``sums`` are those of :meth:`local_sums` over all workers."""
        t = len(self)
        self._update_gram(sums, plain=hessian is None)
        b, r_energy = sums[:t, -1], float(sums[t, -1])
        if alpha < 1.0:
            eigenvalues, V, k, kept = self._principal_directions(alpha)
            if k == 0 or eigenvalues[k - 1] >= _GRAM_FLOOR[self._H.dtype] * eigenvalues[0]:
                coordinates = V[:, :k].T @ b
                solution = coordinates / eigenvalues[:k]
                self._subtract(r, gamma * (V[:, :k] @ solution), hessian, out, context.threads)
                p_energy = min(float(coordinates @ solution), r_energy)
                return Projection(out, k, kept, p_energy, r_energy - p_energy)
        p, k, kept, p_energy = self._project_on_basis(r, alpha, hessian, context.communicator)
        np.subtract(r, gamma * p if hessian is None else gamma * hessian * p, out=out, casting="same_kind")
        p_energy = min(p_energy, r_energy)
        return Projection(out, k, kept, p_energy, r_energy - p_energy)

    def _update_gram(self, sums: FloatArray, *, plain: bool) -> None:
        t = len(self)
        if plain:
            for i, slot in enumerate(self._pending()):
                self._G[slot, :t] = self._G[:t, slot] = sums[:t, i]
            self._in_gram = self._appended
        else:
            self._G[:t, :t] = sums[:t, :t]
            self._in_gram = -1  # not the plain Gram matrix any more

    def _pending(self) -> list[int]:
        """Return the slots of the vectors that are not yet in the Gram matrix."""
        first = max(self._in_gram, self._appended - len(self))  # _in_gram is -1 if none is
        return [i % len(self._H) for i in range(first, self._appended)]

    def _subtract(
        self, r: FloatArray, c: FloatArray, hessian: FloatArray | None, out: FloatArray, threads: Threads
    ) -> None:
        """Set ``out = r - C H'c``, by blocks that stay in cache."""
        c = c.astype(self._H.dtype)

        def subtract(rows: slice) -> None:
            p = c @ self._H[: len(self), rows]
            if hessian is not None:
                p *= hessian[rows]
            np.subtract(r[rows], p, out=out[rows], casting="same_kind")

        threads.map_blocks(subtract, len(r))

    def _principal_directions(self, alpha: float) -> tuple[FloatArray, FloatArray, int, float]:
        """Eigenpairs of G, largest first; how many hold a share alpha of its trace, and the share they hold."""
        t = len(self)
        G = self._G[:t, :t]
        if not np.isfinite(G).all():  # the fit diverges, which its loss will show
            return np.zeros(t), np.zeros((t, t)), 0, 0.0
        eigenvalues, V = _eigenpairs(G)
        eigenvalues = np.maximum(eigenvalues, 0.0)
        k, kept = _leading(eigenvalues, alpha, float(G.trace()))
        return eigenvalues, V, k, kept

    def _inner_products(self, r: FloatArray, threads: Threads) -> FloatArray:
        """H W r and r' W r in the last column, and, in the same pass over H, the columns of G not yet computed.

        Products are formed in the dtype of the history and summed over short blocks, the blocks' sums in float64.
        """
        t, pending = len(self), self._pending()

        def add_up(rows: slice) -> tuple[FloatArray, float]:
            block, v = self._H[: len(self), rows], r[rows]
            vectors = np.stack([*block[pending], v])
            if self._weight is not None:
                vectors = vectors * self._weight[rows]
            # One vector after the other reads a long block twice, and is still faster than BLAS's product with two.
            products = block @ vectors.T if t < _LONG else np.stack([block @ vector for vector in vectors], axis=1)
            return products, float(v @ vectors[-1])

        sums = np.zeros((t + 1, len(pending) + 1))
        for products, energy in threads.map_blocks(add_up, len(r), _SHORT_BLOCK):
            sums[:t] += products
            sums[t, -1] += energy
        return sums

    def _metric_products(self, r: FloatArray, hessian: FloatArray, threads: Threads) -> FloatArray:
        """H W r and ``r' W C^-1 r`` in the last column, and G in the metric of the Hessian; summed as above."""
        t = len(self)

        def add_up(rows: slice) -> tuple[FloatArray, FloatArray, float]:
            block, v, c = self._H[: len(self), rows], r[rows], hessian[rows]
            weighted_v, weighted_c = v, c
            if self._weight is not None:
                weighted_v, weighted_c = v * self._weight[rows], c * self._weight[rows]
            return (block * weighted_c) @ block.T, block @ weighted_v, float(weighted_v @ (v / c))

        sums = np.zeros((t + 1, t + 1))
        for gram, products, energy in threads.map_blocks(add_up, len(r), _BLOCK):
            sums[:t, :t] += gram
            sums[:t, t] += products
            sums[t, t] += energy
        return sums

    def _project_on_basis(
        self, r: FloatArray, alpha: float, hessian: FloatArray | None, communicator: Communicator
    ) -> tuple[FloatArray, int, float, float]:
        """P r, k, the share of energy kept and |P r|^2, by an orthonormal basis of the history."""
        root = np.ones(len(r)) if self._weight is None else np.sqrt(self._weight)
        z = np.asarray(r, dtype=np.float64) * root
        if hessian is not None:
            c = np.sqrt(np.asarray(hessian, dtype=np.float64))
            root, z = root * c, z / c
            Q, energies = _directions(self._H[: len(self)] * root, alpha, communicator)
            k, kept = _leading(energies, alpha, float(energies.sum()))
            coordinates = communicator.sum(Q[:k] @ z)
            p = coordinates @ Q[:k]
        else:
            basis = self._extended_basis(root, communicator)
            U, energies = basis.principal_directions()
            k, kept = _leading(energies, alpha, float(energies.sum()))
            coordinates = U[:, :k].T @ communicator.sum(basis.Q @ z)
            p = (U[:, :k] @ coordinates) @ basis.Q
        np.divide(p, root, out=p, where=root > 0)
        return p, k, kept, float(coordinates @ coordinates)

    def _extended_basis(self, root: FloatArray, communicator: Communicator) -> _Basis:
        """Return the basis of all remembered vectors, times the roots of the sample weights."""
        oldest = self._appended - len(self)
        if self._basis is None or self._basis.first != oldest:
            self._basis = _Basis(self._H.shape[1], len(self._H), oldest)
        for i in range(self._basis.last, self._appended):
            self._basis.append(np.asarray(self._H[i % len(self._H)], dtype=np.float64) * root, communicator)
        return self._basis


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

    def append(self, h: FloatArray, communicator: Communicator) -> None:
        column, Q = self.last - self.first, self.Q
        norm = _norm(h, communicator)
        for _ in range(2):
            coefficients = communicator.sum(Q @ h)
            h = h - coefficients @ Q
            self._R[: self.rank, column] += coefficients
        rest = _norm(h, communicator)
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


def _norm(h: FloatArray, communicator: Communicator) -> float:
    own = float(np.linalg.norm(h))
    return own if communicator.size == 1 else float(np.sqrt(communicator.sum(np.array(own**2))))


def _eigenpairs(G: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues of a symmetric matrix, largest first, and the eigenvectors as columns."""
    # All pairs, by divide and conquer: faster than the leading ones alone. Without eigh's checks, which
    # take longer than the decomposition itself for a short memory.
    eigenvalues, V, _ = linalg.lapack.dsyevd(np.asarray(G, dtype=np.float64))
    return eigenvalues[::-1], V[:, ::-1]


def _directions(H: FloatArray, alpha: float, communicator: Communicator) -> tuple[FloatArray, FloatArray]:
    """Orthonormal directions of the span of the rows of H, as rows, and their energies, largest first.

    Principal directions, or any if all are wanted: a QR factorisation with pivots takes a tenth of the time.
    """
    if not len(H):  # which earlier versions of SciPy refuse
        return H, np.zeros(0, dtype=H.dtype)
    if communicator.size > 1:
        # Every worker factorises its own samples, and all factorise the triangles: H' = Q R = Q U S V'.
        own, triangle = linalg.qr(H.T, mode="economic", check_finite=False) if H.size else (H.T, np.zeros((0, len(H))))
        triangles = communicator.gather(triangle)
        stacked, R = linalg.qr(np.concatenate(triangles), mode="economic", check_finite=False)
        begin = sum(len(part) for part in triangles[: communicator.rank])
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
