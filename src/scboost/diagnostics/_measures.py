"""Measures of redundancy and diversity, one function each.

The measures take one of three inputs:

* votes (n_samples, T): +1 where the value of a tree exceeds its share of the base score, -1 elsewhere
  (:meth:`TreeMatrix.votes`);
* correct (n_samples, T): True where a tree votes for the true class, or on the same side of the base score as a real
  target (:func:`correct_votes`);
* covariance (T, T) of the tree predictions (:func:`tree_covariance`).

Pairwise measures are symmetric (T, T) arrays computed by one matrix product; :func:`mean_of_pairs` averages them over
the pairs of distinct trees, ignoring undefined pairs (NaN). Intermediate results shared by several measures are
optional arguments (``gram``, ``energy``, ``redundancy``), so that they are computed once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg, special

from scboost._arrays import ArrayLike, BoolArray, FloatArray, blocks
from scboost.diagnostics._target import encode_target, outcome, score
from scboost.diagnostics._tree_matrix import TreeMatrix

_BLOCK_SIZE = 16384  # also keeps float32 counts exact: they stay far below 2 ** 24

# A Gram matrix resolves directions down to the square root of the rounding error; a smaller share is rounding error.
_PANEL = 64  # trees of which the rest is updated at once
_NO_SHARE = 1e-10


def _gram(A: npt.NDArray[Any], shift: FloatArray | float, dtype: npt.DTypeLike) -> FloatArray:
    """Return (A - shift)'(A - shift) in float64, block by block in the given precision."""
    T = A.shape[1]
    total = np.zeros((T, T))
    product = linalg.get_blas_funcs("syrk", dtype=dtype)
    for rows in blocks(len(A), _BLOCK_SIZE):
        block = np.asarray(A[rows], dtype, order="F") - np.asarray(shift, dtype)
        total += product(1.0, block, trans=1)
    return np.triu(total) + np.triu(total, 1).T


def tree_covariance(H: FloatArray) -> FloatArray:
    """Covariance of the tree predictions (divided by n_samples, as in CRW).

    Parameters
    ----------
    H : ndarray of shape (n_samples, T)

    Returns
    -------
    ndarray of shape (T, T)
        Float64, symmetric, positive semi-definite; the row and column of a constant tree are zero.
    """
    mean: FloatArray = H.mean(axis=0, dtype=np.float64)
    return clear_constant(_gram(H, mean, np.float64) / len(H), mean)


def clear_constant(C: FloatArray, mean: FloatArray) -> FloatArray:
    """Set the covariances of constant trees to zero: float32 columns that vary by rounding error only."""
    constant = np.diag(C) <= (np.finfo(np.float32).eps * np.abs(mean)) ** 2
    C[constant] = 0
    C[:, constant] = 0
    return C


def tree_correlation(C: FloatArray) -> FloatArray:
    """Pearson correlation of the tree predictions.

    Range [-1, 1]; 0 for uncorrelated trees; NaN in the row and column of a constant tree.

    Parameters
    ----------
    C : ndarray of shape (T, T)
        From :func:`tree_covariance`.

    Returns
    -------
    ndarray of shape (T, T)
    """
    scale = np.sqrt(np.diag(C))
    with np.errstate(invalid="ignore", divide="ignore"):
        R = np.clip(C / scale / scale[:, None], -1, 1)
    R[np.diag_indices_from(R)] = np.where(scale > 0, 1.0, np.nan)
    return R


def mean_of_pairs(M: FloatArray) -> float:
    """Mean of a symmetric (T, T) measure over the pairs of distinct trees for which it is defined.

    NaN if there is no such pair, as for a single tree.
    """
    values = M[np.triu_indices_from(M, 1)]
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else float("nan")


def vote_gram(votes: npt.NDArray[Any]) -> FloatArray:
    """Mean product of the votes of two trees; True and False count as +1 and -1.

    It is the same for votes and for correct votes: whether two trees agree does not depend on which of them is correct.

    Parameters
    ----------
    votes : ndarray of shape (n_samples, T)
        +1 and -1, or True and False.

    Returns
    -------
    ndarray of shape (T, T)
        Range [-1, 1].
    """
    signs = np.where(votes, np.int8(1), np.int8(-1)) if votes.dtype == np.bool_ else votes
    return _gram(signs, 0.0, np.float32) / len(votes)


def pairwise_disagreement(votes: npt.NDArray[np.int8], *, gram: FloatArray | None = None) -> FloatArray:
    """Share of samples on which two trees vote differently.

    Range [0, 1]; 0 for equal and 1 for opposite trees; 0.5 for independent fair votes. The mean over all pairs of T
    trees is at most T / (2 (T - 1)), for example 0.505 for 100 trees, because a sample splits T votes into halves at
    best. A constant tree is an ordinary voter.

    Parameters
    ----------
    votes : ndarray of shape (n_samples, T)
        +1 and -1.
    gram : ndarray of shape (T, T), optional
        :func:`vote_gram`, if already computed.

    Returns
    -------
    ndarray of shape (T, T)

    Examples
    --------
    >>> import numpy as np
    >>> pairwise_disagreement(np.array([[1, 1], [1, -1], [-1, -1], [-1, -1]], np.int8))
    array([[0.  , 0.25],
           [0.25, 0.  ]])
    """
    return (1 - (vote_gram(votes) if gram is None else gram)) / 2


def vote_correlation(votes: npt.NDArray[np.int8], *, gram: FloatArray | None = None) -> FloatArray:
    """Pearson correlation of the votes of two trees.

    Range [-1, 1]; 0 for independent votes; NaN in the row and column of a tree that always votes the same.

    Parameters
    ----------
    votes : ndarray of shape (n_samples, T)
        +1 and -1.
    gram : ndarray of shape (T, T), optional
        :func:`vote_gram`, if already computed.

    Returns
    -------
    ndarray of shape (T, T)
    """
    return correlation_of_votes(votes.mean(axis=0), vote_gram(votes) if gram is None else gram)


def correlation_of_votes(mean: FloatArray, gram: FloatArray) -> FloatArray:
    """Return :func:`vote_correlation` from the mean votes and :func:`vote_gram`."""
    C = gram - np.outer(mean, mean)
    return tree_correlation(np.where(np.outer(np.abs(mean) < 1, np.abs(mean) < 1), C, 0.0))


def q_statistic(correct: BoolArray, *, gram: FloatArray | None = None) -> FloatArray:
    """Yule's Q-statistic of the correctness of two trees: (N11 N00 - N10 N01) / (N11 N00 + N10 N01).

    N11 counts the samples both classify correctly, N00 both wrongly, N10 and N01 only one of them. Range [-1, 1]; 0 for
    independent errors, 1 if one is correct whenever the other is. NaN where the denominator is zero (a tree that is
    always correct or always wrong). It saturates: one empty cell gives 1 or -1.

    Parameters
    ----------
    correct : ndarray of shape (n_samples, T)
    gram : ndarray of shape (T, T), optional
        :func:`vote_gram`, if already computed.

    Returns
    -------
    ndarray of shape (T, T)
        The diagonal is 1, or NaN for a tree that is always correct or always wrong.
    """
    return _contingency(correct, gram).q_statistic()


def double_fault(correct: BoolArray, *, gram: FloatArray | None = None) -> FloatArray:
    """Share of samples that both of two trees misclassify.

    Range [0, 1]; e_i e_j for independent trees with error rates e_i and e_j; the diagonal is the error rate.
    Always defined.

    Parameters
    ----------
    correct : ndarray of shape (n_samples, T)
    gram : ndarray of shape (T, T), optional
        :func:`vote_gram`, if already computed.

    Returns
    -------
    ndarray of shape (T, T)
    """
    return _contingency(correct, gram).neither


class Contingency(NamedTuple):
    """Shares of samples that both trees classify correctly, only the first, only the second, neither; (T, T) each."""

    both: FloatArray
    first: FloatArray
    second: FloatArray
    neither: FloatArray

    @classmethod
    def from_counts(cls, n: int, correct: npt.NDArray[Any], gram: FloatArray) -> Contingency:
        """Return the table of n samples from the number of correct votes of each tree and :func:`vote_gram`."""
        row, column = correct[:, None], correct
        both = (np.rint(n * gram) - n) / 4 + (row + column) / 2  # exact counts
        return cls(both / n, (row - both) / n, (column - both) / n, (n - column - row + both) / n)

    def q_statistic(self) -> FloatArray:
        """Return Yule's Q-statistic; see the function of this name."""
        same, different = self.both * self.neither, self.first * self.second
        with np.errstate(invalid="ignore"):
            return (same - different) / (same + different)


def _contingency(correct: BoolArray, gram: FloatArray | None) -> Contingency:
    return Contingency.from_counts(len(correct), correct.sum(axis=0), vote_gram(correct) if gram is None else gram)


class Ambiguity(NamedTuple):
    """The ambiguity decomposition: squared error of an ensemble = mean error of its members - ambiguity."""

    ambiguity: float
    member_error: float
    ensemble_error: float


def ambiguity(H: FloatArray, weights: FloatArray, intercept: float = 0.0, y: ArrayLike | None = None) -> Ambiguity:
    """Weighted variance of the members around the ensemble (Krogh and Vedelsby's ambiguity).

    A sum of trees is an average of members: with S = sum(w) and v = w / S, member t predicts
    f_t = intercept + S h_t and F = sum_t v_t f_t is the raw score of the ensemble. The ambiguity is the mean over the
    samples of sum_t v_t (f_t - F)^2, and for any y, exactly,
    mean (F - y)^2 = mean sum_t v_t (f_t - y)^2 - ambiguity.

    Range [0, inf), in squared units of the raw score; 0 if and only if all trees with a positive weight agree on every
    sample.

    Parameters
    ----------
    H : ndarray of shape (n_samples, T)
    weights : ndarray of shape (T,)
        Non-negative, with a positive sum.
    intercept : float, default=0
    y : array-like of shape (n_samples,), optional
        Target on the scale of the raw score.

    Returns
    -------
    Ambiguity
        ``ambiguity``, ``member_error``, ``ensemble_error``; the errors are NaN without y.
    """
    weights = np.asarray(weights, np.float64)
    S = weights.sum()
    if not (S > 0 and np.all(weights >= 0)):
        raise ValueError(f"weights must be non-negative with a positive sum, got {weights!r}.")
    v = weights / S
    target = None if y is None else np.asarray(y, np.float64)
    variance = member = total = 0.0
    for rows in blocks(len(H), _BLOCK_SIZE):
        f = intercept + S * np.asarray(H[rows], np.float64)
        F = f @ v
        variance += np.sum(((f - F[:, None]) ** 2) @ v)
        if target is not None:
            member += np.sum(((f - target[rows, None]) ** 2) @ v)
            total += np.sum((F - target[rows]) ** 2)
    n = len(H)
    if target is None:
        return Ambiguity(float(variance / n), float("nan"), float("nan"))
    return Ambiguity(float(variance / n), float(member / n), float(total / n))


def energy_by_component(C: FloatArray) -> FloatArray:
    """Share of the variance of the trees explained by each principal component, after scaling trees to unit variance.

    Scaling makes ensembles comparable whose later trees have smaller leaf values. The shares decrease and sum to 1;
    1 / T each for uncorrelated trees, (1, 0, ...) for copies of one tree. Constant trees add a zero; all shares are
    zero if every tree is constant.

    Parameters
    ----------
    C : ndarray of shape (T, T)
        From :func:`tree_covariance`.

    Returns
    -------
    ndarray of shape (T,)
    """
    R = np.nan_to_num(tree_correlation(C))
    energy = np.clip(linalg.eigvalsh(R)[::-1], 0, None)
    total = energy.sum()
    return energy / total if total > 0 else energy


def n_components_for(energy: FloatArray, share: float = 0.9) -> int:
    """Return how many leading components explain a share of the variance; 0 if every tree is constant."""
    if not energy[0] > 0:
        return 0
    return min(int(np.searchsorted(np.cumsum(energy), share)) + 1, len(energy))


def singular_spectrum(C: FloatArray, *, energy: FloatArray | None = None) -> FloatArray:
    """Singular values of the standardized columns of H, divided by the largest.

    The square root of :func:`energy_by_component`, divided by its first entry: range [0, 1], decreasing from 1; flat
    for uncorrelated trees, (1, 0, ...) for copies of one tree; all zeros if every tree is constant.

    Parameters
    ----------
    C : ndarray of shape (T, T)
        From :func:`tree_covariance`.
    energy : ndarray of shape (T,), optional
        :func:`energy_by_component`, if already computed.

    Returns
    -------
    ndarray of shape (T,)
    """
    s = np.sqrt(energy_by_component(C) if energy is None else energy)
    return s / s[0] if s[0] > 0 else s


def effective_rank(C: FloatArray, *, energy: FloatArray | None = None) -> float:
    """Effective rank of the tree matrix: exp(-sum_i e_i log e_i), the exponential of the entropy of the energies e.

    Range [1, T]; T for uncorrelated trees, 1 for copies of one tree; 0 if every tree is constant.

    Parameters
    ----------
    C : ndarray of shape (T, T)
        From :func:`tree_covariance`.
    energy : ndarray of shape (T,), optional
        :func:`energy_by_component`, if already computed.

    Returns
    -------
    float
    """
    energy = energy_by_component(C) if energy is None else energy
    return float(np.exp(special.entr(energy).sum())) if energy[0] > 0 else 0.0


def redundancy_ratio(C: FloatArray) -> FloatArray:
    """Share of the variance of each tree that lies in the span of the earlier trees.

    The R^2 of regressing tree t on trees 1 .. t-1 and a constant. Range [0, 1]; 0 for the first tree and for a tree
    uncorrelated with all earlier ones. Independent noise has the expectation (t - 1) / (n_samples - 1), so use many
    more samples than trees. 1 for a constant tree, which adds nothing.

    Parameters
    ----------
    C : ndarray of shape (T, T)
        From :func:`tree_covariance`.

    Returns
    -------
    ndarray of shape (T,)
        Shares within 1e-10 of 1 are reported as 1, the resolution of a covariance.
    """
    T = len(C)
    residual = np.nan_to_num(tree_correlation(C))  # covariance of the residuals of a regression on the earlier trees
    ratio = np.ones(T)
    for first in range(0, T, _PANEL):
        last = min(first + _PANEL, T)
        for t in range(first, last):
            share = residual[t, t]
            if share <= _NO_SHARE:
                residual[t:, t] = 0
                continue
            ratio[t] = 1 - share
            residual[t:, t] /= np.sqrt(share)
            residual[t + 1 :, t + 1 : last] -= np.outer(residual[t + 1 :, t], residual[t + 1 : last, t])
        panel = residual[last:, first:last]
        residual[last:, last:] -= panel @ panel.T
    return np.clip(ratio, 0, 1)


def innovation(C: FloatArray, *, redundancy: FloatArray | None = None) -> FloatArray:
    """Variance of each tree outside the span of the earlier trees: (1 - redundancy) * variance.

    Range [0, variance of the tree], in squared units of the tree predictions; 0 for a constant tree and for a linear
    combination of earlier trees.

    Parameters
    ----------
    C : ndarray of shape (T, T)
        From :func:`tree_covariance`.
    redundancy : ndarray of shape (T,), optional
        :func:`redundancy_ratio`, if already computed.

    Returns
    -------
    ndarray of shape (T,)
    """
    return (1 - (redundancy_ratio(C) if redundancy is None else redundancy)) * np.diag(C)


def correct_votes(trees: TreeMatrix, y: ArrayLike) -> BoolArray:
    """Return where the vote of each tree is correct, of the shape of H.

    A classification tree is correct if it votes for its class where y is that class and against it elsewhere. A
    regression tree is correct if it is on the same side of the base score as y.

    Parameters
    ----------
    trees : TreeMatrix
    y : array-like of shape (n_samples,)
        Class labels or real targets.

    Returns
    -------
    ndarray of shape (n_samples, T * K)
    """
    target = encode_target(trees, y)
    votes = trees.votes() > 0
    if target.dtype.kind == "f":
        expected = (target > trees.base())[:, None]
    elif trees.n_outputs == 1:
        expected = (target == 1)[:, None]
    else:
        expected = np.tile(target[:, None] == np.arange(trees.n_outputs), (1, trees.n_trees))
    return np.asarray(votes == expected)


def truncation_path(trees: TreeMatrix, y: ArrayLike) -> FloatArray:
    """Score of the ensemble truncated after 1, 2, ..., T trees: the baseline for pruning.

    Boosted sums keep the intercept and the first trees; averages become the average of the first trees.

    Parameters
    ----------
    trees : TreeMatrix
    y : array-like of shape (n_samples,)

    Returns
    -------
    ndarray of shape (T,)
        Accuracy, or R^2 for regression.
    """
    target = encode_target(trees, y)
    return score(trees, staged_outcomes(trees, target), len(target), mean_and_scatter(target)[1])


def mean_and_scatter(target: npt.NDArray[Any]) -> tuple[float, float]:
    """Return the mean and the sum of squares about it, which is exactly zero for a constant target."""
    shifted = target - target[0]
    return float(target[0] + shifted.mean()), float(len(target) * shifted.var())


def staged_outcomes(trees: TreeMatrix, target: npt.NDArray[Any]) -> FloatArray:
    """Return the number of correct predictions of the first 1, 2, ..., T trees, or their sum of squared errors."""
    margins = trees.staged_margins(np.arange(1, trees.n_trees + 1))
    return np.array([outcome(trees, margin, target) for margin in margins])
