"""Covariance-Regularized Weighting (CRW): one weight per learner, learnt on rows the learners did not see.

``H[i, j]`` is what learner ``j`` contributes to the margin of row ``i``; for K outputs, ``H[i, k, j]`` is what round
``j`` contributes to margin ``k``, and one weight serves all outputs of a round. Two convex problems are solved:

- :func:`simplex_weights`: the weights are non-negative and sum to one (the paper's form);
- :func:`nonnegative_weights`: the weights are non-negative, their scale is free, and they are pulled towards
  reference weights.

Both are minimised by Newton steps whose quadratic model is solved exactly by an active-set method. The answer
carries a proven bound on its distance from the optimum (``gap``), which depends on the loss's gradient only:
the Hessian steers the steps but cannot make a wrong answer look right.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve

from scboost._core.weighting.losses import LOGISTIC, Array, MarginLoss

_BLOCK_ELEMENTS = 2**19  # 4 MB of float64: rows are read in blocks so that H is never copied
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Weights:
    """Learner weights and what is needed to trust them.

    Attributes
    ----------
    weights : ndarray of shape (T,)
        Non-negative weights; learners that are not used have exactly zero.
    intercept : ndarray of shape (K,)
        What to add to the margin of each output (0 unless asked for).
    objective : float
        ``loss + covariance_term + pull_term`` at the answer.
    loss : float
        Weighted mean loss.
    covariance_term : float
        ``covariance_penalty * w' C w``, C summed over outputs.
    pull_term : float
        ``pull / T * |w - reference|^2`` (0 on the simplex); for several outputs ``pull / T * |intercept|^2`` is added.
    gap : float
        Upper bound of ``objective`` minus the optimum.
    n_iterations : int
        Newton steps taken.
    converged : bool
        Whether ``gap <= tol * max(1, |objective|)``.
    """

    weights: Array
    intercept: Array
    objective: float
    loss: float
    covariance_term: float
    pull_term: float
    gap: float
    n_iterations: int
    converged: bool


def simplex_weights(
    H: ArrayLike,
    y: ArrayLike,
    *,
    covariance_penalty: float = 0.0,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    loss: MarginLoss = LOGISTIC,
    tol: float = 1e-9,
    max_iter: int = 200,
) -> Weights:
    """Weights on the probability simplex: the paper's CRW.

    Minimises ``mean_i loss(y_i, offset_i + H_i w) + covariance_penalty * w' C w`` over ``w >= 0``,
    ``sum(w) = 1``. The mean and the covariance ``C`` of the columns of ``H`` are weighted by `sample_weight`.

    Parameters
    ----------
    H : array-like of shape (m, T) or (m, K, T)
        Contribution of every learner to every row's margins. Never copied; sums are in float64.
    y : array-like of shape (m,)
        Targets; 0 or 1 (or a probability) for the logistic loss; of shape (m, K) if the loss takes it.
    covariance_penalty : float, default=0
        Price of redundancy, at least 0.
    sample_weight : array-like of shape (m,), optional
        Non-negative, not all zero; 1 for every row by default.
    offset : array-like of shape (m,), or (m, K) for K outputs, optional
        Margin that is there before any learner; 0 by default.
    loss : MarginLoss, default=LOGISTIC
        The loss of a margin.
    tol : float, default=1e-9
        Stop when the proven gap is at most ``tol * max(1, |objective|)``.
    max_iter : int, default=200
        Newton steps allowed.

    Returns
    -------
    Weights
        Its gap is the Frank-Wolfe gap.

    Examples
    --------
    >>> import numpy as np
    >>> from scboost._core.weighting import SQUARED_ERROR, simplex_weights
    >>> H = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> found = simplex_weights(H, [0.25, 0.75, 1.0], loss=SQUARED_ERROR)
    >>> found.weights.round(6)
    array([0.25, 0.75])
    >>> found.converged
    True
    """
    data = _Data.checked(H, y, sample_weight, offset, loss, intercept=False)
    lam = not_negative("covariance_penalty", covariance_penalty)
    start = np.full(data.T, 1.0 / data.T)
    return _minimise(data, start, lam=lam, mu=0.0, w0=start, simplex=True, tol=tol, max_iter=max_iter)


def nonnegative_weights(
    H: ArrayLike,
    y: ArrayLike,
    *,
    covariance_penalty: float = 0.0,
    pull: float = 0.1,
    reference: ArrayLike | None = None,
    intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    loss: MarginLoss = LOGISTIC,
    tol: float = 1e-9,
    max_iter: int = 200,
) -> Weights:
    """Non-negative weights of free scale, pulled towards reference weights.

    Minimises ``mean_i loss(y_i, offset_i + b + H_i w) + covariance_penalty * w' C w
    + pull / T * |w - reference|^2`` over ``w >= 0`` and, with `intercept`, over the shift ``b``. The mean and
    the covariance ``C`` of the columns of ``H`` are weighted by `sample_weight`; for K outputs ``C`` is the sum of
    their covariances. Each output has a shift of its own; as only their differences matter to the loss, the pull
    holds them too: ``pull / T * |b|^2`` is added.

    Parameters
    ----------
    H : array-like of shape (m, T) or (m, K, T)
        Contribution of every learner to every row's margins. Never copied; sums are in float64.
    y : array-like of shape (m,)
        Targets; 0 or 1 (or a probability) for the logistic loss, not all 0 or all 1 if `intercept`; of shape (m, K)
        if the loss takes it.
    covariance_penalty : float, default=0
        Price of redundancy, at least 0.
    pull : float, default=0.1
        Strength of the pull, above 0.
    reference : array-like of shape (T,), optional
        Where the pull leads; ones by default: the learners as they were grown.
    intercept : bool, default=True
        Whether to learn a shift of the margin.
    sample_weight : array-like of shape (m,), optional
        Non-negative, not all zero; 1 for every row by default.
    offset : array-like of shape (m,), or (m, K) for K outputs, optional
        Margin that is there before any learner; 0 by default.
    loss : MarginLoss, default=LOGISTIC
        The loss of a margin.
    tol : float, default=1e-9
        Stop when the proven gap is at most ``tol * max(1, |objective|)``.
    max_iter : int, default=200
        Newton steps allowed.

    Returns
    -------
    Weights
        Its gap follows from the strong convexity that the pull brings.

    Examples
    --------
    >>> import numpy as np
    >>> from scboost._core.weighting import nonnegative_weights
    >>> H = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> found = nonnegative_weights(H, [1, 1, 0, 0], pull=0.1)
    >>> bool(found.weights[0] > 1 > found.weights[1] > 0)
    True
    >>> found.gap <= 1e-9
    True
    """
    data = _Data.checked(H, y, sample_weight, offset, loss, intercept=intercept)
    lam = not_negative("covariance_penalty", covariance_penalty)
    if not_negative("pull", pull) == 0:
        raise ValueError(f"pull must be above 0, got {pull!r}")
    T = data.T
    w0 = np.ones(T) if reference is None else _finite("reference", reference, (T,))
    w0 = np.append(w0, np.zeros(data.n_shifts))
    start = np.maximum(w0, 0)
    return _minimise(data, start, lam=lam, mu=2 * pull / T, w0=w0, simplex=False, tol=tol, max_iter=max_iter)


def row_weights(sample_weight: ArrayLike | None, m: int) -> Array:
    """Check the weights of m rows; ones by default."""
    s = np.ones(m) if sample_weight is None else _finite("sample_weight", sample_weight, (m,))
    if s.min() < 0 or s.max() == 0:
        raise ValueError(f"sample_weight must be non-negative and not all zero, got minimum {s.min()!r}")
    return s


@dataclass(frozen=True)
class _Data:
    """The rows, and the three ways in which H is read: margins, column sums and second moments.

    H has shape (m, K, T). If K > 1 outputs have shifts, these are K more columns, which do not exist in H.
    """

    H: NDArray[Any]
    y: Array
    s: Array
    W: float
    offset: Array
    loss: MarginLoss
    intercept: bool

    @classmethod
    def checked(
        cls,
        H: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        offset: ArrayLike | None,
        loss: MarginLoss,
        *,
        intercept: bool,
    ) -> "_Data":
        H = np.asarray(H)
        if H.ndim not in {2, 3} or 0 in H.shape:
            raise ValueError(f"H must have shape (m, T) or (m, K, T), none of them 0, got shape {H.shape}")
        if H.dtype.kind not in "fiub":
            raise ValueError(f"H must be real numbers, got dtype {H.dtype}")
        margins = H.shape[:-1]
        m, K = margins[0], H.size // (H.shape[0] * H.shape[-1])
        F_shape = (m,) if K == 1 else (m, K)
        y = np.asarray(y, dtype=np.float64)
        y = _finite("y", y, F_shape if y.ndim == 2 else (m,))
        s = row_weights(sample_weight, m)
        b = np.zeros(F_shape) if offset is None else _finite("offset", offset, margins).reshape(F_shape)
        data = cls(H.reshape(m, K, -1), y, s, float(s.sum()), b, loss, intercept)
        for rows in data.blocks():
            if not np.isfinite(H[rows]).all():
                raise ValueError(f"H must be finite, got NaN or infinity in rows {rows.start} to {rows.stop - 1}")
        loss.check(y, intercept=False)
        loss.check(y[s > 0], intercept=intercept)
        return data

    @property
    def T(self) -> int:
        return int(self.H.shape[2])

    @property
    def n_shifts(self) -> int:
        """K, if there are shifts to pull; the shift of a single output is free, and not among the columns."""
        K = int(self.H.shape[1])
        return K if self.intercept and K > 1 else 0

    def blocks(self) -> Iterator[slice]:
        m, K, T = self.H.shape
        size = max(512, _BLOCK_ELEMENTS // (K * T))
        return (slice(start, min(start + size, m)) for start in range(0, m, size))

    def read(self, rows: slice, *, copy: bool = False) -> Array:
        """Return rows of H with the columns of the shifts, in float64, of shape (b, K, T + n_shifts)."""
        block = self.H[rows]
        if not self.n_shifts:
            return block.astype(np.float64, order="K" if block.shape[1] == 1 else "C", copy=copy)
        K = self.n_shifts
        return np.concatenate([block, np.broadcast_to(np.eye(K), (len(block), K, K))], axis=2, dtype=np.float64)

    def margin(self, w: Array) -> Array:
        """``H w``."""
        F = np.empty_like(self.offset)
        for rows in self.blocks():
            F[rows] = (self.read(rows).reshape(-1, len(w)) @ w).reshape(F[rows].shape)
        return F

    def sums(self, d: Array) -> Array:
        """``H' d``, of shape (T + n_shifts,), for d of the shape of the margins."""
        total = np.zeros(self.T + self.n_shifts)
        for rows in self.blocks():
            total += d[rows].ravel() @ self.read(rows).reshape(-1, len(total))
        return total

    def moments(self, d: Array, centre: Callable[[slice, Array], Array]) -> Array:
        """``(H - c)' diag(d) (H - c) / W`` for d of shape (m, K) and the centres c of a block."""
        n = self.T + self.n_shifts
        G = np.zeros((n, n))
        root = np.sqrt(d)[:, :, None]
        for rows in self.blocks():
            block = self.read(rows, copy=True)
            block -= centre(rows, block)
            block *= root[rows]
            flat = block.reshape(-1, n)
            G += flat.T @ flat
        G /= self.W
        return G

    def covariance(self) -> Array:
        """Weighted covariance of the columns of H, summed over outputs; shifts have none."""
        m, K, _ = self.H.shape
        mean = np.zeros((K, self.T + self.n_shifts))
        for rows in self.blocks():
            mean += np.einsum("i,ikt->kt", self.s[rows], self.read(rows)) / self.W
        return self.moments(np.broadcast_to(self.s[:, None], (m, K)), lambda *_: mean)

    def hessian(self, F: Array) -> tuple[Array, Array]:
        """Second derivatives by the weights, the free shift following them, and how it follows."""
        c = self.loss.hessian(self.y, F).reshape(len(F), -1)
        d = self.s[:, None] * c
        if c.shape[1] > 1:
            share = c / c.sum(axis=1, keepdims=True)
            G = self.moments(d, lambda rows, block: np.einsum("ik,ikt->it", share[rows], block)[:, None])
            return G, np.zeros(len(G))
        total = d.sum()
        centre = self.sums(d) / total if self.intercept and total > 0 else np.zeros(self.T)
        return self.moments(d, lambda *_: centre), centre

    def mean(self, values: Array) -> float:
        return float(self.s @ values) / self.W

    def best_shift(self, F: Array) -> float:
        """Find the shift of all margins that minimises the loss, by Newton's method kept inside a bracket."""
        low, high, reach, b = -np.inf, np.inf, 1.0, 0.0
        for _ in range(200):
            slopes = self.loss.gradient(self.y, F + b)
            slope = self.mean(slopes)
            if abs(slope) <= 2 * _EPS * self.mean(np.abs(slopes)):
                break
            low, high = (low, b) if slope > 0 else (b, high)
            hessian = self.mean(self.loss.hessian(self.y, F + b))
            # Far from the optimum the Hessian vanishes: the reach grows until the bracket closes.
            step = -slope / hessian if abs(slope) < reach * hessian else -np.copysign(reach, slope)
            reach *= 2
            following = b + step if low < b + step < high else 0.5 * (low + high)
            if following in (low, high):
                break
            b = following
        return b


def _minimise(
    data: _Data, w: Array, *, lam: float, mu: float, w0: Array, simplex: bool, tol: float, max_iter: int
) -> Weights:
    """Minimise the mean loss plus ``lam w' C w + mu / 2 |w - w0|^2``, starting at a feasible w."""
    not_negative("tol", tol)
    if max_iter < 0:
        raise ValueError(f"max_iter must be at least 0, got {max_iter!r}")
    y, loss = data.y, data.loss
    n_columns = len(w)
    bounded = np.arange(n_columns) < data.T
    each_row = data.s.reshape(-1, *[1] * (data.offset.ndim - 1))
    C = data.covariance() if lam else np.zeros((n_columns, n_columns))
    ridge = 2 * lam * C
    ridge[np.diag_indices(n_columns)] += mu
    Q, c = ridge, np.zeros(n_columns)
    F = data.offset + data.margin(w)
    b = 0.0
    previous, tiny = np.inf, False
    n = 0
    while True:
        if data.intercept and not data.n_shifts:
            shift = data.best_shift(F)
            F += shift
            b += shift
        value = data.mean(loss.value(y, F))
        covariance_term = lam * float(w @ C @ w)
        pull_term = 0.5 * mu * float(np.sum((w - w0) ** 2))
        objective = value + covariance_term + pull_term
        pressure = 2 * lam * (C @ w) + mu * (w - w0)
        g = data.sums(each_row * loss.gradient(y, F)) / data.W + pressure
        if simplex:  # a constant does not matter to steps that sum to zero, except to their rounding
            g -= g @ w
            pressure -= pressure @ w
        gap = _gap(g, w, mu, bounded, simplex=simplex)
        scale = max(1.0, abs(objective))
        converged = gap <= tol * scale
        if converged or n == max_iter:
            break
        # The second moments are most of the cost: keep them while they still make the gap fall fast.
        if n == 0 or gap > 0.1 * previous:
            Q, c = data.hessian(F)
            Q += ridge
        u = _minimise_model(Q, g, w, mu, bounded, simplex=simplex, goal=max(0.01 * tol, _EPS) * scale)
        d = u - w
        slope = float(g @ d)
        # The gap falls with the square root of what is left to gain: go on below the objective's last digit, and
        # stop when rounding keeps the gap itself from falling.
        was_tiny, tiny = tiny, slope >= -_EPS * scale
        if slope >= 0 or (was_tiny and tiny and gap > 0.5 * previous):
            break
        previous = gap
        dF = data.margin(d) - c @ d
        step = _line_search(data, F, dF, slope, float(pressure @ d), float(d @ ridge @ d), 8 * _EPS * scale)
        if step == 0:
            break
        w = w + step * d if step < 1 else u
        F += step * dF
        b -= step * float(c @ d)
        n += 1
    shifts = w[data.T :] if data.n_shifts else np.full(data.H.shape[1], b)
    return Weights(w[: data.T], shifts, objective, value, covariance_term, pull_term, gap, n, converged)


def _line_search(
    data: _Data, F: Array, dF: Array, slope: float, linear: float, quadratic: float, rounding: float
) -> float:
    """Return a step along dF that lowers the objective by a share of what its slope promises; 0 if there is none.

    Differences are taken sample by sample, and exactly for the penalty, whose change is ``step * linear + step^2 / 2 *
    quadratic``: a large penalty hides no progress.
    """
    before = data.loss.value(data.y, F)
    step = 1.0
    for _ in range(60):
        with np.errstate(over="ignore"):  # a step so long is shortened
            change = data.mean(data.loss.value(data.y, F + step * dF) - before)
        change += step * linear + 0.5 * step**2 * quadratic
        if change <= 1e-4 * step * slope + rounding:
            return step
        parabola = -0.5 * step * slope / (change - step * slope)
        step *= min(max(parabola, 0.1), 0.5)
    return 0.0


def _gap(g: Array, w: Array, mu: float, bounded: NDArray[np.bool_], *, simplex: bool) -> float:
    """Bound of f(w) - min f for a convex f of gradient g at w, mu-strongly convex off the simplex."""
    if simplex:
        return max(float((g - g.min()) @ w), 0.0)
    u = w - g / mu
    u[bounded] = np.maximum(u[bounded], 0)
    return float(np.sum(g * (w - u) - 0.5 * mu * (u - w) ** 2))


def _minimise_model(
    Q: Array, g: Array, w: Array, mu: float, bounded: NDArray[np.bool_], *, simplex: bool, goal: float
) -> Array:
    """Minimise ``g'(u - w) + (u - w)' Q (u - w) / 2`` over u >= 0 where bounded (on the simplex, over sum(u) = 1).

    A trace of proximity to w keeps every face's system definite (duplicated or unused learners). It vanishes at
    w, so it does not move the optimum of the outer problem. If the pivoting does not end, proximity starts
    strong, where it ends at once, and fades; each answer is the next one's start.
    """
    T = len(w)
    diagonal = np.diag(Q)
    # Where the Hessian vanishes, the gradient sets the scale: no step is longer than rounding can add.
    unit = diagonal + max(1e-3 * float(diagonal.max()), float(np.abs(g).max()))
    tolerance = goal if simplex else float(np.sqrt(2 * mu * goal / T))

    def near_w(proximity: float, free: NDArray[np.bool_]) -> Array | None:
        proximal = Q.copy()
        proximal[np.diag_indices(T)] += proximity * unit
        return _pivot(proximal, g - proximal @ w, free, bounded, tolerance, simplex=simplex)

    u = near_w(1e-11, (w > 0) | ~bounded)
    if u is not None:
        return u
    best = w
    for proximity in T * np.logspace(0, -14, 15):
        u = near_w(proximity, (best > 0) | ~bounded)
        if u is None:
            break
        best = u
    return best


def _pivot(
    Q: Array, c: Array, free: NDArray[np.bool_], bounded: NDArray[np.bool_], tolerance: float, *, simplex: bool
) -> Array | None:
    """Minimise ``c'u + u'Qu / 2`` over u >= 0 where bounded (and sum(u) = 1) by block principal pivoting.

    `free` is the first guess of the support. All wrong signs change sides at once, which takes a few solves
    whatever T is, but need not end: then None.
    """
    T = len(c)
    for _ in range(10):
        face = np.flatnonzero(free)
        u = np.zeros(T)
        nu = 0.0
        if face.size:
            factor = cho_factor(Q[np.ix_(face, face)], check_finite=False)
            u[face] = -cho_solve(factor, c[face], check_finite=False)
            if simplex:
                response = cho_solve(factor, np.ones(face.size), check_finite=False)
                nu = (1.0 - u.sum()) / float(response.sum())
                u[face] += nu * response
        wrong = np.where(free, (u < 0) & bounded, Q @ u + c - nu < -tolerance)
        if not wrong.any():
            return u / u.sum() if simplex else u
        free = free ^ wrong
    return None


def _finite(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]!r}")
    return array


def not_negative(name: str, value: float) -> float:
    """Check a parameter that may be 0."""
    if not 0 <= value < np.inf:
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    return float(value)
