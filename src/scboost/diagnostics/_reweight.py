"""Learn new weights for the trees of a fitted ensemble of any library.

The trees stay as they are. On validation samples, covariance-regularized weighting (CRW) learns one factor per tree
(per boosting round, if there are several classes).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from scboost._arrays import ArrayLike
from scboost._core.losses import LogisticLoss, Loss, SoftmaxLoss, SquaredLoss
from scboost._core.weighting.solver import row_weights
from scboost._runtime.threads import single_threaded_blas
from scboost.diagnostics._registry import write_ensemble
from scboost.diagnostics._target import encode_target
from scboost.diagnostics._tree_matrix import TreeMatrix, tree_matrix
from scboost.weighting import Weights, learn_weights

FloatArray = npt.NDArray[np.float64]

_SCALING_RIDGE = 1e-3  # of the single factor that turns probabilities or votes into log-odds


@dataclass(frozen=True)
class Reweighted:
    """A re-weighted or pruned ensemble, with the evidence needed to trust it.

    Attributes
    ----------
    model : object
        The new model, without the dropped trees. For XGBoost, LightGBM, CatBoost and SCBoost, of the class given, with
        rescaled leaves; for the ensembles of scikit-learn, a :class:`WeightedTrees`.
    factors : ndarray of shape (T,)
        Factor of each tree's contribution; 0 for dropped trees. For classifiers whose raw score is a probability or a
        vote, this includes the scale to log-odds.
    intercept : ndarray of shape (K,)
        New intercept of the raw score.
    kept : ndarray of shape (n_kept,)
        Indices of the trees kept, increasing.
    loss : float
        Mean loss on the validation samples: log-loss, or half the squared error.
    loss_before : float
        The same of the model given (after the scaling to log-odds, where there is one).
    gap : float
        Upper bound of the distance from the optimum of the last optimization.
    """

    model: Any  # of the caller's library: no common interface
    factors: FloatArray
    intercept: FloatArray
    kept: npt.NDArray[np.intp]
    loss: float
    loss_before: float
    gap: float

    @property
    def verdict(self) -> str:
        """The result in one or two sentences."""
        n, T = len(self.kept), len(self.factors)
        change = self.loss - self.loss_before
        relative = f" ({100 * change / self.loss_before:+.1f} %)" if self.loss_before > 0 else ""
        trees = f"{n} of {T} trees are kept" if n < T else f"All {T} trees are kept, with new weights"
        return (
            f"{trees}; the validation loss changes from {self.loss_before:.4g} to {self.loss:.4g}{relative}. Evaluate "
            "the new model on other samples: these were used to learn the weights."
        )

    def __repr__(self) -> str:
        low, high = self.factors[self.kept].min(), self.factors[self.kept].max()
        numbers = (
            ("model", type(self.model).__name__),
            ("trees", f"{len(self.kept)} of {len(self.factors)}"),
            ("validation loss", f"{self.loss:.6g} (before: {self.loss_before:.6g})"),
            ("factors", f"{low:.3g} to {high:.3g}"),
            ("optimality gap", f"{self.gap:.1e}"),
        )
        return "\n".join([self.verdict, *(f"  {name:<18}{value}" for name, value in numbers)])


@single_threaded_blas()
def reweight(
    model: object,
    X_val: Any,
    y_val: ArrayLike,
    *,
    method: Literal["nonnegative", "simplex"] = "nonnegative",
    covariance_penalty: float = 0.0,
    ridge: float = 0.1,
    sample_weight: ArrayLike | None = None,
) -> Reweighted:
    """Learn the tree weights of a fitted ensemble that minimize the loss on validation samples.

    Parameters
    ----------
    model : object
        Any ensemble that :func:`tree_matrix` reads. It is not modified.
    X_val : array-like or table of shape (n_samples, n_features)
        Samples that the model was not fitted on.
    y_val : array-like of shape (n_samples,)
        Class labels (at least two classes) or real targets. Real targets are fitted by the squared error, whatever loss
        the model was fitted with; quantile models are refused.
    method : {"nonnegative", "simplex"}, default="nonnegative"
        "nonnegative" learns non-negative factors with a ridge penalty on their distance from 1, and an intercept.
        "simplex" is the paper's CRW: non-negative factors with mean 1; the intercept stays.
    covariance_penalty : float, default=0
        Penalty on w'Cw, the variance of the weighted sum (divided by the variance of y for regression).
    ridge : float, default=0.1
        Ridge penalty on the distance of the factors from 1; above 0. Increase it if validation samples are few. Not
        used on the simplex.
    sample_weight : array-like of shape (n_samples,), optional
        Sample weights.

    Returns
    -------
    Reweighted
        ``model`` predicts the weighted sum; trees with factor 0 are removed. Printing it shows the verdict.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = make_classification(400, 5, random_state=0)
    >>> forest = RandomForestClassifier(n_estimators=20, random_state=0).fit(X[:200], y[:200])
    >>> found = reweight(forest, X[200:], y[200:])
    >>> found.model.predict_proba(X[:3]).shape
    (3, 2)
    """
    if method not in {"nonnegative", "simplex"}:  # before the trees are read, which takes longer
        raise ValueError(f"method must be 'nonnegative' or 'simplex', got {method!r}.")
    problem = WeightingProblem.from_model(model, X_val, y_val, sample_weight, covariance_penalty)
    solution = problem.solve_simplex() if method == "simplex" else problem.solve_nonnegative(problem.y, ridge)
    return problem.write(model, solution)


@dataclass(frozen=True)
class Solution:
    """Factors of all trees, of shape (T,), intercepts of shape (K,), and the optimality gap."""

    factors: FloatArray
    intercept: FloatArray
    gap: float


@dataclass(frozen=True)
class WeightingProblem:
    """Contributions of the trees, and the target of their weighted sum.

    Attributes
    ----------
    trees : TreeMatrix
    A : ndarray of shape (n_samples, K, T)
        H times the weights of the model times ``scale``.
    scale : float
        Factor from probabilities or votes to log-odds; 1 otherwise.
    start : ndarray of shape (K,)
        Intercept before the weighting.
    y : ndarray of shape (n_samples,)
        Class codes or real targets.
    sample_weight : ndarray of shape (n_samples,)
    covariance_penalty : float
    loss : Loss
    """

    trees: TreeMatrix
    A: FloatArray
    scale: float
    start: FloatArray
    y: FloatArray
    sample_weight: FloatArray
    covariance_penalty: float
    loss: Loss

    @classmethod
    def from_model(
        cls, model: object, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, penalty: float
    ) -> WeightingProblem:
        """Read the trees of a model and check the target."""
        trees = tree_matrix(model, X, dtype=np.float64)
        target = encode_target(trees, y)
        n, K = len(target), trees.n_outputs
        weight = row_weights(sample_weight, n)
        loss: Loss
        if target.dtype.kind == "f":
            loss, link = SquaredLoss(), "identity"
        else:
            if len(np.unique(target[weight > 0])) < 2:
                raise ValueError("y_val must have samples of at least two classes, got one class only.")
            loss, link = (LogisticLoss(), "logit") if K == 1 else (SoftmaxLoss(K), "softmax")
        _check_link(trees, link)
        A = (trees.H * trees.column_weights).T.reshape(-1, K, n).transpose(2, 1, 0)
        start = np.asarray(trees.intercepts, np.float64)
        problem = cls(trees, A, 1.0, start, target.astype(np.float64), weight, penalty, loss)
        return problem if trees.link == link else problem.to_log_odds()

    @property
    def T(self) -> int:
        """Number of trees of one output."""
        return int(self.A.shape[2])

    def to_log_odds(self) -> WeightingProblem:
        """Calibrate a raw score that is a probability or a vote to log-odds, by one factor and a shift."""
        summed = replace(self, A=self.A.sum(axis=2, keepdims=True), covariance_penalty=0.0)
        solution = summed.solve_nonnegative(self.y, _SCALING_RIDGE)
        scale = float(solution.factors[0])
        return replace(self, A=self.A * scale, scale=scale, start=solution.intercept)

    def unweighted(self) -> Solution:
        """Return the model as given."""
        return Solution(np.ones(self.T), self.start, 0.0)

    def margin(self, solution: Solution) -> FloatArray:
        """Return the raw score of the weighted sum, of shape (n_samples, K)."""
        return np.asarray(self.A @ solution.factors + solution.intercept)

    def predict(self, F: FloatArray) -> FloatArray:
        """Return the prediction that the loss accepts in place of y: probabilities or values."""
        p = self.loss.link.inverse(F.T)
        return np.asarray(p[:, 1] if isinstance(self.loss, LogisticLoss) else p, np.float64)

    def mean_loss(self, solution: Solution) -> float:
        """Return the weighted mean loss of the weighted sum."""
        return self.loss.mean(self.y, self.margin(solution).T, self.sample_weight)

    def solve_nonnegative(self, target: FloatArray, ridge: float, kept: npt.NDArray[np.intp] | None = None) -> Solution:
        """Learn non-negative factors of the kept trees (default: all), with a ridge towards T / len(kept)."""
        if kept is None:
            found = self._learn(self.A, target, "nonnegative", ridge)
            return Solution(found.weights, self.start + found.intercept, found.gap)
        scale = self.T / len(kept)
        found = self._learn(self.A[:, :, kept] * scale, target, "nonnegative", ridge)
        factors = np.zeros(self.T)
        factors[kept] = found.weights * scale
        return Solution(factors, self.start + found.intercept, found.gap)

    def solve_simplex(self) -> Solution:
        """Learn non-negative factors with mean 1; the intercept stays."""
        found = self._learn(self.A * self.T, self.y, "simplex")
        return Solution(found.weights * self.T, self.start, found.gap)

    def _learn(
        self, A: FloatArray, target: FloatArray, method: Literal["nonnegative", "simplex"], ridge: float = 0.1
    ) -> Weights:
        return learn_weights(
            A,
            target,
            loss=self.loss,
            start=self.start,
            sample_weight=self.sample_weight,
            method=method,
            covariance_penalty=self.covariance_penalty,
            ridge=ridge,
        )

    def write(self, model: object, solution: Solution) -> Reweighted:
        """Return a copy of the model with the weights of a solution."""
        # A model needs a tree, if only one of weight 0.
        kept = np.flatnonzero(solution.factors) if solution.factors.any() else np.arange(1)
        factors = solution.factors * self.scale
        weights = self.trees.column_weights.reshape(len(factors), -1)[kept] * factors[kept, None]
        return Reweighted(
            model=write_ensemble(model, kept, weights, solution.intercept),
            factors=factors,
            intercept=solution.intercept,
            kept=kept,
            loss=self.mean_loss(solution),
            loss_before=self.mean_loss(self.unweighted()),
            gap=solution.gap,
        )


def _check_link(trees: TreeMatrix, link: str) -> None:
    """Refuse models whose raw score cannot be weighted for a loss with this link."""
    if trees.link == "quantile":
        raise ValueError(
            "The model predicts a quantile of y. New weights minimize the squared error, which would turn it into a "
            "model of the mean; reweight and prune support models of the mean and classifiers."
        )
    if trees.link not in {link, "probability", "vote"}:
        raise ValueError(
            f"The raw score of this {trees.library} model is neither the log-odds nor on the scale of y, so its trees "
            "cannot be re-weighted: its objective is not supported, or not known (as of a sum of models)."
        )
