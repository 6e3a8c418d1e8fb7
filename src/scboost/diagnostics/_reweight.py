"""Give the trees of a fitted ensemble of any library new weights.

The trees stay as they are. On rows that the model was not fitted on, covariance-regularized weighting (CRW) finds one
factor per tree (per round, if there are several classes).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from scboost._arrays import ArrayLike
from scboost.boosting.losses import LogisticLoss, Loss, SoftmaxLoss, SquaredLoss
from scboost.diagnostics._registry import write_ensemble
from scboost.diagnostics._target import encode_target
from scboost.diagnostics._tree_matrix import TreeMatrix, tree_matrix
from scboost.weighting import Weights, learn_weights
from scboost.weighting.solver import row_weights

FloatArray = npt.NDArray[np.float64]

_SURE = 1e-3  # the margin of a forest's probabilities is scaled with this much pull towards factor 1


@dataclass(frozen=True)
class Reweighted:
    """A re-weighted ensemble and what is needed to trust it.

    Attributes
    ----------
    model : object
        Of the library and class given for XGBoost, LightGBM, CatBoost and SCBoost, with scaled leaves and without
        the dropped trees; a :class:`WeightedTrees` for scikit-learn's ensembles.
    factors : ndarray of shape (T,)
        What the contribution of each tree was multiplied by; 0 where it was dropped. For classifiers whose margin is
        a probability or a vote this includes the scale from there to log-odds.
    intercept : ndarray of shape (K,)
        The new intercept of the margin.
    kept : ndarray of shape (n_kept,)
        Positions of the trees kept, rising.
    loss : float
        Mean loss on the validation rows: log-loss, or half the squared error.
    gap : float
        Upper bound of the last optimisation's distance from its optimum.
    """

    model: Any
    factors: FloatArray
    intercept: FloatArray
    kept: npt.NDArray[np.intp]
    loss: float
    gap: float

    def __repr__(self) -> str:
        return (
            f"Reweighted({type(self.model).__name__}, {len(self.kept)} of {len(self.factors)} trees, "
            f"loss {self.loss:.4f}, gap {self.gap:.1e})"
        )


def reweight(
    model: Any,
    X_val: Any,
    y_val: ArrayLike,
    *,
    method: Literal["nonnegative", "simplex"] = "nonnegative",
    covariance_penalty: float = 0.0,
    pull: float = 0.1,
    sample_weight: ArrayLike | None = None,
) -> Reweighted:
    """Give the trees of a fitted ensemble the weights that predict held-out rows best.

    Parameters
    ----------
    model : object
        Any ensemble :func:`tree_matrix` reads. It is not changed.
    X_val : array-like or data frame of shape (m, d)
        Rows the model was not fitted on.
    y_val : array-like of shape (m,)
        Their labels (at least two classes) or real targets. For real targets the weights minimise the squared
        error, whatever loss the model was fitted with; a model of a quantile is refused.
    method : {"nonnegative", "simplex"}, default="nonnegative"
        "nonnegative" pulls free non-negative factors towards 1, that is towards the model as it is, and learns a new
        intercept. "simplex" is the paper's CRW: the factors are non-negative with mean 1 and the intercept stays.
    covariance_penalty : float, default=0
        Price of w'Cw, the variance of the weighted sum (of margins; divided by the variance of y for regression).
    pull : float, default=0.1
        Strength of the pull; above 0. Not used on the simplex.
    sample_weight : array-like of shape (m,), optional

    Returns
    -------
    Reweighted
        ``model`` predicts the weighted sum; trees with factor 0 are gone.

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
    problem = Problem.of(model, X_val, y_val, sample_weight, covariance_penalty)
    found = problem.simplex() if method == "simplex" else problem.nonnegative(problem.y, pull)
    return problem.write(model, found)


@dataclass(frozen=True)
class Found:
    """Factors of all trees, of shape (T,), the intercepts, of shape (K,), and the optimality gap."""

    factors: FloatArray
    intercept: FloatArray
    gap: float


@dataclass(frozen=True)
class Problem:
    """Contributions A of shape (n, K, T), and what their weighted sum should be.

    ``A`` is H times the model's weights times ``scale``, which leads from probabilities or votes to log-odds; ``y``
    is what the loss takes: class numbers or real targets.
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
    def of(cls, model: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, penalty: float) -> Problem:
        """Read the trees of a model and check what is to be predicted."""
        trees = tree_matrix(model, X, dtype=np.float64)
        target = encode_target(trees, y)
        n, K = len(target), trees.n_outputs
        weight = row_weights(sample_weight, n)
        loss: Loss
        if target.dtype.kind == "f":
            loss, link = SquaredLoss(), "identity"
        else:
            if len(np.unique(target[weight > 0])) < 2:
                raise ValueError("y_val must have rows of at least two classes, got one class only.")
            loss, link = (LogisticLoss(), "logit") if K == 1 else (SoftmaxLoss(K), "softmax")
        if trees.link == "quantile":
            raise ValueError(
                "The model predicts a quantile of y. New weights minimise the squared error, which would turn it into "
                "a model of the mean: reweight and prune need a model of the mean or of classes."
            )
        if trees.link not in {link, "probability", "vote"}:
            raise ValueError(
                f"The margin of this {trees.library} model is neither log-odds nor on the scale of y, so its trees "
                "cannot be re-weighted: its objective is another, or not known (as of a sum of models)."
            )
        A = (trees.H * trees.column_weights).T.reshape(-1, K, n).transpose(2, 1, 0)
        start = np.asarray(trees.intercepts, np.float64)
        problem = cls(trees, A, 1.0, start, target.astype(np.float64), weight, penalty, loss)
        return problem if trees.link == link else problem.to_log_odds()

    @property
    def T(self) -> int:
        """Number of trees of one output."""
        return int(self.A.shape[2])

    def to_log_odds(self) -> Problem:
        """Scale a margin that is a probability or a vote, by one factor and a shift, to the best log-odds."""
        whole = replace(self, A=self.A.sum(axis=2, keepdims=True), covariance_penalty=0.0)
        found = whole.nonnegative(self.y, _SURE)
        scale = float(found.factors[0])
        return replace(self, A=self.A * scale, scale=scale, start=found.intercept)

    def margin(self, found: Found) -> FloatArray:
        """Return the weighted sum, of shape (n, K)."""
        return np.asarray(self.A @ found.factors + found.intercept)

    def predict(self, F: FloatArray) -> FloatArray:
        """Turn margins into what the loss takes in place of y: probabilities or values."""
        p = self.loss.inverse_link(F.T)
        return np.asarray(p[:, 1] if isinstance(self.loss, LogisticLoss) else p, np.float64)

    def mean_loss(self, found: Found) -> float:
        """Return the weighted mean loss of the weighted sum."""
        return self.loss.mean(self.y, self.margin(found).T, self.sample_weight)

    def nonnegative(self, target: FloatArray, pull: float, kept: npt.NDArray[np.intp] | None = None) -> Found:
        """Find non-negative factors of the kept trees (all by default), pulled towards T / len(kept)."""
        if kept is None:
            found = self._learn(self.A, target, "nonnegative", pull)
            return Found(found.weights, self.start + found.intercept, found.gap)
        scale = self.T / len(kept)
        found = self._learn(self.A[:, :, kept] * scale, target, "nonnegative", pull)
        factors = np.zeros(self.T)
        factors[kept] = found.weights * scale
        return Found(factors, self.start + found.intercept, found.gap)

    def simplex(self) -> Found:
        """Find non-negative factors with mean 1; the intercept stays."""
        found = self._learn(self.A * self.T, self.y, "simplex")
        return Found(found.weights * self.T, self.start, found.gap)

    def _learn(
        self, A: FloatArray, target: FloatArray, method: Literal["nonnegative", "simplex"], pull: float = 0.1
    ) -> Weights:
        return learn_weights(
            A,
            target,
            loss=self.loss,
            start=self.start,
            sample_weight=self.sample_weight,
            method=method,
            covariance_penalty=self.covariance_penalty,
            pull=pull,
        )

    def write(self, model: Any, found: Found) -> Reweighted:
        """Return a copy of the model with the weights found."""
        # A model needs a tree; one with factor 0 is as good as none.
        kept = np.flatnonzero(found.factors) if found.factors.any() else np.arange(1)
        factors = found.factors * self.scale
        weights = self.trees.column_weights.reshape(len(factors), -1)[kept] * factors[kept, None]
        new = write_ensemble(model, kept, weights, found.intercept)
        return Reweighted(new, factors, found.intercept, kept, self.mean_loss(found), found.gap)
