"""Covariance-regularized weighting (CRW): one weight per learner, learned on held-out samples.

``H[i, j]`` is the contribution of learner ``j`` to the margin of sample ``i``; for K outputs, ``H[i, k, j]`` is the
contribution of round ``j`` to margin ``k``, and all outputs of a round share one weight. Two convex problems are
solved:

- :func:`simplex_weights`: the weights are non-negative and sum to one (the paper's form);
- :func:`nonnegative_weights`: the weights are non-negative, their sum is free, and a ridge penalty shrinks
  them towards reference weights.

Both are minimized by Newton steps whose quadratic model is solved exactly by an active-set method. The result
includes a certified bound on the distance from the optimal objective (``gap``). The bound is computed from the gradient
only, so an inaccurate Hessian slows convergence but cannot make the certificate wrong.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve

from scboost._core.weighting.losses import LOGISTIC, Array, CoupledMargin, MarginLoss
from scboost._runtime.threads import single_threaded_blas

_BLOCK_ELEMENTS = 2**19  # 4 MB of float64: samples are read in blocks so that H is never copied
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Weights:
    """Learner weights with their optimality gap.

    Attributes
    ----------
    weights : ndarray of shape (T,)
        Non-negative weights; exactly 0 for learners that are not used.
    intercept : ndarray of shape (K,)
        Constant added to the margin of each output; 0 without `intercept`.
    objective : float
        ``loss + covariance_term + ridge_term`` at the solution.
    loss : float
        Weighted mean loss.
    covariance_term : float
        ``covariance_penalty * w' C w``, C summed over outputs.
    ridge_term : float
        ``ridge / T * |w - reference|^2`` (0 on the simplex), plus ``ridge / T * |intercept|^2`` for several outputs.
    gap : float
        Upper bound of ``objective`` minus the optimum.
    n_iterations : int
        Number of Newton steps.
    converged : bool
        Whether ``gap <= tol * max(1, |objective|)``.
    """

    weights: Array
    intercept: Array
    objective: float
    loss: float
    covariance_term: float
    ridge_term: float
    gap: float
    n_iterations: int
    converged: bool


@single_threaded_blas()
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
    """Learn weights on the probability simplex, the form of the paper.

    Minimizes ``mean_i loss(y_i, offset_i + H_i w) + covariance_penalty * w' C w`` over ``w >= 0``,
    ``sum(w) = 1``. The mean and the covariance ``C`` of the columns of ``H`` are weighted by `sample_weight`.

    Parameters
    ----------
    H : array-like of shape (m, T) or (m, K, T)
        Contribution of each learner to the margins of each sample. Never copied; sums are computed in float64.
    y : array-like of shape (m,)
        Targets: 0 or 1 (or probabilities) for the logistic loss; of shape (m, K) if the loss supports it.
    covariance_penalty : float, default=0
        Coefficient of the covariance term, at least 0; larger values penalize redundant learners.
    sample_weight : array-like of shape (m,), optional
        Sample weights: non-negative, not all 0; 1 by default.
    offset : array-like of shape (m,), or (m, K) for K outputs, optional
        Margin without any learner; 0 by default.
    loss : MarginLoss, default=LOGISTIC
        Loss as a function of the margin.
    tol : float, default=1e-9
        Tolerance: the solver stops when the gap is at most ``tol * max(1, |objective|)``.
    max_iter : int, default=200
        Maximum number of Newton steps.

    Returns
    -------
    Weights
        The gap is the Frank-Wolfe gap.

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
    return _minimize(data, start, lam=lam, mu=0.0, w0=start, simplex=True, tol=tol, max_iter=max_iter)


@single_threaded_blas()
def nonnegative_weights(
    H: ArrayLike,
    y: ArrayLike,
    *,
    covariance_penalty: float = 0.0,
    ridge: float = 0.1,
    reference: ArrayLike | None = None,
    intercept: bool = True,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    loss: MarginLoss = LOGISTIC,
    tol: float = 1e-9,
    max_iter: int = 200,
) -> Weights:
    """Learn non-negative weights, shrunk towards reference weights by a ridge penalty.

    Minimizes ``mean_i loss(y_i, offset_i + b + H_i w) + covariance_penalty * w' C w
    + ridge / T * |w - reference|^2`` over ``w >= 0`` and, with `intercept`, over the shift ``b``. The mean and
    the covariance ``C`` of the columns of ``H`` are weighted by `sample_weight`; for K outputs ``C`` is the sum of
    their covariances. Each output has its own shift. The loss depends on their differences only, so that for K > 1 the
    shifts are penalized as well, by ``ridge / T * |b|^2``.

    Parameters
    ----------
    H : array-like of shape (m, T) or (m, K, T)
        Contribution of each learner to the margins of each sample. Never copied; sums are computed in float64.
    y : array-like of shape (m,)
        Targets: 0 or 1 (or probabilities) for the logistic loss, not all 0 or all 1 if `intercept`; of shape (m, K)
        if the loss supports it.
    covariance_penalty : float, default=0
        Coefficient of the covariance term, at least 0; larger values penalize redundant learners.
    ridge : float, default=0.1
        Coefficient of the ridge penalty, above 0; larger values keep the weights closer to `reference`.
    reference : array-like of shape (T,), optional
        Weights that the penalty shrinks towards; 1 by default, the learners as they were grown.
    intercept : bool, default=True
        Whether to learn a constant shift of the margin.
    sample_weight : array-like of shape (m,), optional
        Sample weights: non-negative, not all 0; 1 by default.
    offset : array-like of shape (m,), or (m, K) for K outputs, optional
        Margin without any learner; 0 by default.
    loss : MarginLoss, default=LOGISTIC
        Loss as a function of the margin.
    tol : float, default=1e-9
        Tolerance: the solver stops when the gap is at most ``tol * max(1, |objective|)``.
    max_iter : int, default=200
        Maximum number of Newton steps.

    Returns
    -------
    Weights
        The gap follows from the strong convexity of the ridge penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from scboost._core.weighting import nonnegative_weights
    >>> H = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> found = nonnegative_weights(H, [1, 1, 0, 0], ridge=0.1)
    >>> bool(found.weights[0] > 1 > found.weights[1] > 0)
    True
    >>> found.gap <= 1e-9
    True
    """
    data = _Data.checked(H, y, sample_weight, offset, loss, intercept=intercept)
    lam = not_negative("covariance_penalty", covariance_penalty)
    if not_negative("ridge", ridge) == 0:
        raise ValueError(f"ridge must be above 0, got {ridge!r}")
    T = data.T
    w0 = np.ones(T) if reference is None else _finite("reference", reference, (T,))
    w0 = np.append(w0, np.zeros(data.n_shifts))
    start = np.maximum(w0, 0)
    return _minimize(data, start, lam=lam, mu=2 * ridge / T, w0=w0, simplex=False, tol=tol, max_iter=max_iter)


def row_weights(sample_weight: ArrayLike | None, m: int) -> Array:
    """Return checked weights of m samples; ones by default."""
    s = np.ones(m) if sample_weight is None else _finite("sample_weight", sample_weight, (m,))
    if s.min() < 0 or s.max() == 0:
        raise ValueError(f"sample_weight must be non-negative and not all zero, got minimum {s.min()!r}")
    return s


@dataclass(frozen=True)
class _Data:
    """The samples, and the three products with H that the solver needs: margins, column sums and second moments.

    H has shape (m, K, T). The shifts of K > 1 outputs are treated as K more columns, which are not stored in H.
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
        """K if the shifts are penalized; the shift of a single output is not, and is no column."""
        K = int(self.H.shape[1])
        return K if self.intercept and K > 1 else 0

    def blocks(self) -> Iterator[slice]:
        m, K, T = self.H.shape
        size = max(512, _BLOCK_ELEMENTS // (K * T))
        return (slice(start, min(start + size, m)) for start in range(0, m, size))

    def read(self, rows: slice, *, copy: bool = False) -> Array:
        """Return samples of H with the columns of the shifts, in float64, of shape (b, K, T + n_shifts)."""
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
        """Return the Hessian in the weights with the free shift eliminated, and the derivative of that shift."""
        if isinstance(self.loss, CoupledMargin):
            return self._coupled_hessian(self.loss, F), np.zeros(self.T)
        c = self.loss.hessian(self.y, F).reshape(len(F), -1)
        d = self.s[:, None] * c
        if c.shape[1] > 1:
            share = c / c.sum(axis=1, keepdims=True)
            G = self.moments(d, lambda rows, block: np.einsum("ik,ikt->it", share[rows], block)[:, None])
            return G, np.zeros(len(G))
        total = d.sum()
        centre = self.sums(d) / total if self.intercept and total > 0 else np.zeros(self.T)
        return self.moments(d, lambda *_: centre), centre

    def _coupled_hessian(self, loss: CoupledMargin, F: Array) -> Array:
        """Return the Hessian in the weights of a loss whose Hessian in the margins is not diagonal."""
        H = self.H[:, 0]
        G = np.zeros((self.T, self.T))
        step = max(1, _BLOCK_ELEMENTS // len(H))
        for start in range(0, self.T, step):
            columns = slice(start, start + step)
            product = loss.hessian_product(F, H[:, columns].astype(np.float64))
            for rows in self.blocks():
                G[:, columns] += self.read(rows)[:, 0].T @ product[rows]
        return (G + G.T) / (2 * self.W)

    def mean(self, values: Array) -> float:
        return float(self.s @ values) / self.W

    def best_shift(self, F: Array) -> float:
        """Return the shift of all margins that minimizes the loss, by Newton's method safeguarded by a bracket."""
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


def _minimize(
    data: _Data, w: Array, *, lam: float, mu: float, w0: Array, simplex: bool, tol: float, max_iter: int
) -> Weights:
    """Minimize the mean loss plus ``lam w' C w + mu / 2 |w - w0|^2``, starting at a feasible w."""
    not_negative("tol", tol)
    if max_iter < 0:
        raise ValueError(f"max_iter must be at least 0, got {max_iter!r}")
    y, loss = data.y, data.loss
    n_columns = len(w)
    bounded = np.arange(n_columns) < data.T
    each_sample = data.s.reshape(-1, *[1] * (data.offset.ndim - 1))
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
        ridge_term = 0.5 * mu * float(np.sum((w - w0) ** 2))
        objective = value + covariance_term + ridge_term
        pressure = 2 * lam * (C @ w) + mu * (w - w0)
        g = data.sums(each_sample * loss.gradient(y, F)) / data.W + pressure
        if simplex:  # a constant does not matter to steps that sum to zero, except to their rounding
            g -= g @ w
            pressure -= pressure @ w
        gap = _gap(g, w, mu, bounded, simplex=simplex)
        scale = max(1.0, abs(objective))
        converged = gap <= tol * scale
        if converged or n == max_iter:
            break
        # Second moments dominate the cost: reuse them as long as the gap decreases by a factor of ten.
        if n == 0 or gap > 0.1 * previous:
            Q, c = data.hessian(F)
            Q += ridge
        u = _minimize_model(Q, g, w, mu, bounded, simplex=simplex, goal=max(0.01 * tol, _EPS) * scale)
        d = u - w
        slope = float(g @ d)
        # The gap decreases like the square root of the remaining improvement: continue below the rounding error of the
        # objective, and stop when the gap itself no longer decreases.
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
    return Weights(w[: data.T], shifts, objective, value, covariance_term, ridge_term, gap, n, converged)


def _line_search(
    data: _Data, F: Array, dF: Array, slope: float, linear: float, quadratic: float, rounding: float
) -> float:
    """Return a step along dF that satisfies the Armijo condition; 0 if there is none.

    Differences are computed sample by sample, and in closed form for the penalty, ``step * linear + step^2 / 2 *
    quadratic``, so that a large penalty does not cancel a small improvement.
    """
    before = data.loss.value(data.y, F)
    step = 1.0
    for _ in range(60):
        with np.errstate(over="ignore"):  # such a step is shortened below
            change = data.mean(data.loss.value(data.y, F + step * dF) - before)
        change += step * linear + 0.5 * step**2 * quadratic
        if change <= 1e-4 * step * slope + rounding:
            return step
        parabola = -0.5 * step * slope / (change - step * slope)
        step *= min(max(parabola, 0.1), 0.5)
    return 0.0


def _gap(g: Array, w: Array, mu: float, bounded: NDArray[np.bool_], *, simplex: bool) -> float:
    """Return a bound on f(w) - min f for convex f with gradient g at w; off the simplex f is mu-strongly convex."""
    if simplex:
        return max(float((g - g.min()) @ w), 0.0)
    u = w - g / mu
    u[bounded] = np.maximum(u[bounded], 0)
    return float(np.sum(g * (w - u) - 0.5 * mu * (u - w) ** 2))


def _minimize_model(
    Q: Array, g: Array, w: Array, mu: float, bounded: NDArray[np.bool_], *, simplex: bool, goal: float
) -> Array:
    """Minimize ``g'(u - w) + (u - w)' Q (u - w) / 2`` over u >= 0 where bounded (on the simplex, over sum(u) = 1).

    A small proximal term keeps the linear systems positive definite with duplicated or unused learners. It vanishes at
    w, so it does not change the optimum of the outer problem. If pivoting does not terminate, the proximal term starts
    large, where pivoting terminates at once, and is decreased step by step, each solution being the next start.
    """
    T = len(w)
    diagonal = np.diag(Q)
    # Where the Hessian vanishes the gradient sets the scale, which bounds the step length.
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
    """Minimize ``c'u + u'Qu / 2`` over u >= 0 where bounded (and sum(u) = 1) by block principal pivoting.

    `free` is the initial support. All variables with a wrong sign change sides at once, which takes a few solves for
    any T but need not terminate; returns None in that case.
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
    """Return a parameter after checking that it is finite and at least 0."""
    if not 0 <= value < np.inf:
        raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}")
    return float(value)
