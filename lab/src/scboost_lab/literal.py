"""The paper's Algorithm 1 as it is printed: an SVD of the whole history each round, SLSQP for the weights.

Slow on purpose: it is the reference that the library is compared with, and the subject of the complexity fit.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import LinearConstraint, minimize
from scipy.special import expit
from sklearn.tree import DecisionTreeRegressor

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LiteralFit:
    """What Algorithm 1 computed, round by round.

    Attributes
    ----------
    trees : list of DecisionTreeRegressor
        The T learners.
    n_components : ndarray of shape (T,)
        k of each round; 0 in the first.
    residuals, projected_residuals : ndarray of shape (T, n)
        r and q = r - U_k U_k' r of each round.
    H, H_val : ndarray of shape (n, T) and (m, T)
        Predictions of the learners on the training and the validation rows.
    F : ndarray of shape (n,)
        Training logits after the last round, eta times the row sums of H.
    C : ndarray of shape (T, T)
        Covariance of the columns of H_val, divided by m.
    weights : ndarray of shape (T,)
        w on the probability simplex.
    objective : float
        Mean logistic loss plus the covariance penalty at `weights`.
    gap : float
        Frank-Wolfe gap at `weights`: `objective` exceeds the minimum by at most this.
    """

    trees: list[DecisionTreeRegressor]
    n_components: NDArray[np.int64]
    residuals: Array
    projected_residuals: Array
    H: Array
    H_val: Array
    F: Array
    C: Array
    weights: Array
    objective: float
    gap: float

    def decision_function(self, X: ArrayLike) -> Array:
        """Sum over the learners of w_t h_t(x)."""
        return np.column_stack([tree.predict(X) for tree in self.trees]) @ self.weights


def project_out(H: Array, r: Array, energy_threshold: float) -> tuple[Array, int]:
    """Remove from r its part in the leading left singular directions of H.

    Parameters
    ----------
    H : ndarray of shape (n, t)
    r : ndarray of shape (n,)
    energy_threshold : float
        Smallest fraction of the squared singular values that the kept directions must hold.

    Returns
    -------
    q : ndarray of shape (n,)
        The closest vector to r orthogonal to the kept directions.
    k : int
        Number of directions; 0 when H has no energy.

    Examples
    --------
    >>> import numpy as np
    >>> project_out(np.array([[1.0], [1.0]]), np.array([3.0, 1.0]), 0.9)
    (array([ 1., -1.]), 1)
    """
    U, s, _ = np.linalg.svd(H, full_matrices=False)
    energy = np.cumsum(s**2)
    if energy.size == 0 or energy[-1] == 0.0:
        return r.copy(), 0
    k = int(np.searchsorted(energy, energy_threshold * energy[-1])) + 1
    k = min(k, int(np.sum(s > s[0] * max(H.shape) * np.finfo(np.float64).eps)))
    U_k = U[:, :k]
    return r - U_k @ (U_k.T @ r), k


def simplex_weights(H_val: Array, y_val: Array, covariance_penalty: float) -> tuple[Array, Array, float, float]:
    """Minimise mean logistic loss(y, H w) + lambda w' C w over the simplex, by SLSQP.

    Parameters
    ----------
    H_val : ndarray of shape (m, T)
    y_val : ndarray of shape (m,)
        Labels 0 and 1.
    covariance_penalty : float
        lambda.

    Returns
    -------
    w : ndarray of shape (T,)
    C : ndarray of shape (T, T)
    objective, gap : float
        The objective at w and its Frank-Wolfe gap there.
    """
    m, T = H_val.shape
    centred = H_val - H_val.mean(axis=0)
    C = centred.T @ centred / m

    def value_and_gradient(w: Array) -> tuple[float, Array]:
        F = H_val @ w
        value = np.mean(np.logaddexp(0.0, F) - y_val * F) + covariance_penalty * w @ C @ w
        return float(value), H_val.T @ (expit(F) - y_val) / m + 2.0 * covariance_penalty * C @ w

    solution = minimize(
        value_and_gradient,
        np.full(T, 1.0 / T),
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * T,
        constraints=LinearConstraint(np.ones((1, T)), 1.0, 1.0),
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    w = np.clip(solution.x, 0.0, None)
    w /= w.sum()
    objective, gradient = value_and_gradient(w)
    return w, C, objective, float(gradient @ w - gradient.min())


def fit_literal(
    X_train: ArrayLike,
    y_train: ArrayLike,
    X_val: ArrayLike,
    y_val: ArrayLike,
    *,
    n_estimators: int,
    learning_rate: float,
    energy_threshold: float,
    covariance_penalty: float,
    max_depth: int,
    random_state: int,
) -> LiteralFit:
    """Run Algorithm 1 on a given split.

    Parameters
    ----------
    X_train, X_val : array-like of shape (n, d) and (m, d)
    y_train, y_val : array-like of shape (n,) and (m,)
        Labels 0 and 1.
    n_estimators, learning_rate, energy_threshold, covariance_penalty, max_depth
        T, eta, alpha, lambda and D of the paper.
    random_state : int
        Seed of every tree.

    Returns
    -------
    LiteralFit

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(40.0).reshape(-1, 1)
    >>> y = (X.ravel() > 17).astype(int)
    >>> fit = fit_literal(X[::2], y[::2], X[1::2], y[1::2], n_estimators=3, learning_rate=0.1,
    ...                   energy_threshold=0.9, covariance_penalty=0.1, max_depth=2, random_state=0)
    >>> fit.n_components.tolist()[0], fit.H.shape, round(float(fit.weights.sum()), 6)
    (0, (20, 3), 1.0)
    """
    X_train, X_val = np.asarray(X_train), np.asarray(X_val)
    y_train, y_val = np.asarray(y_train, dtype=np.float64), np.asarray(y_val, dtype=np.float64)
    n = y_train.size
    F = np.zeros(n)
    H = np.empty((n, n_estimators))
    residuals = np.empty((n_estimators, n))
    projected = np.empty((n_estimators, n))
    n_components = np.zeros(n_estimators, dtype=np.int64)
    trees = []
    for t in range(n_estimators):
        r = y_train - expit(F)
        q, n_components[t] = project_out(H[:, :t], r, energy_threshold) if t else (r, 0)
        tree = DecisionTreeRegressor(max_depth=max_depth, random_state=random_state).fit(X_train, q)
        h = tree.predict(X_train)
        F += learning_rate * h
        H[:, t] = h
        residuals[t], projected[t] = r, q
        trees.append(tree)
    H_val = np.column_stack([tree.predict(X_val) for tree in trees])
    w, C, objective, gap = simplex_weights(H_val, y_val, covariance_penalty)
    return LiteralFit(trees, n_components, residuals, projected, H, H_val, F, C, w, objective, gap)
