"""How redundant are the trees of an ensemble? One function for each measure.

Three kinds of input, each shared by several measures:

* votes (n, T): +1 where a tree's value is above its share of the ensemble's base, -1 elsewhere
  (:meth:`TreeMatrix.votes`, where the base is defined for each library);
* correct (n, T): True where a tree votes for the row's class, or on the same side of the base as a real target;
* covariance (T, T): of the trees' values over the rows (:func:`tree_covariance`).

Measures of pairs are (T, T) arrays, symmetric, from one matrix product; :func:`mean_of_pairs` averages one over the
pairs of distinct trees, leaving out undefined pairs (NaN). What several measures start from is an optional argument of
each (``gram``, ``energy``, ``redundancy``), so that it can be computed once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg, special

from scboost._arrays import ArrayLike, BoolArray, FloatArray
from scboost.diagnostics._target import encode_target, outcome, score
from scboost.diagnostics._tree_matrix import TreeMatrix

_BLOCK_ROWS = 16384  # also keeps float32 counts exact: they stay far below 2 ** 24

# A Gram matrix knows directions only down to the square root of the rounding; a share below this is rounding.
_NO_SHARE = 1e-10


def _gram(A: npt.NDArray[Any], shift: FloatArray | float, dtype: npt.DTypeLike) -> FloatArray:
    """Return (A - shift)'(A - shift) in float64, block by block in the given precision."""
    T = A.shape[1]
    total = np.zeros((T, T))
    product = linalg.get_blas_funcs("syrk", dtype=dtype)
    for start in range(0, len(A), _BLOCK_ROWS):
        block = np.asarray(A[start : start + _BLOCK_ROWS], dtype, order="F") - np.asarray(shift, dtype)
        total += product(1.0, block, trans=1)
    return np.triu(total) + np.triu(total, 1).T


def tree_covariance(H: FloatArray) -> FloatArray:
    """Covariance of the trees' values over the rows (divided by n, as in CRW).

    Parameters
    ----------
    H : ndarray of shape (n, T)

    Returns
    -------
    ndarray of shape (T, T)
        Float64, symmetric, positive semi-definite; the row and column of a constant tree are zero.
    """
    mean: FloatArray = H.mean(axis=0, dtype=np.float64)
    return clear_constant(_gram(H, mean, np.float64) / len(H), mean)


def clear_constant(C: FloatArray, mean: FloatArray) -> FloatArray:
    """Set the covariances of constant trees to zero: float32 columns that differ from their mean by rounding only."""
    constant = np.diag(C) <= (np.finfo(np.float32).eps * np.abs(mean)) ** 2
    C[constant] = 0
    C[:, constant] = 0
    return C


def tree_correlation(C: FloatArray) -> FloatArray:
    """Pearson correlation of the trees' values.

    Range [-1, 1]; 0 for unrelated trees; NaN in the row and column of a constant tree.

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
    """Mean of a symmetric (T, T) measure over the pairs of distinct trees whose value is defined.

    NaN if there is no such pair: one tree, or no pair for which the measure exists.
    """
    values = M[np.triu_indices_from(M, 1)]
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else float("nan")


def vote_gram(votes: npt.NDArray[Any]) -> FloatArray:
    """Mean product of two trees' votes; for arrays of right and wrong votes, of +1 and -1 in their place.

    It is the same for votes and for right votes: whether two trees vote alike does not depend on which side is right.

    Parameters
    ----------
    votes : ndarray of shape (n, T)
        +1 and -1, or True and False.

    Returns
    -------
    ndarray of shape (T, T)
        Range [-1, 1].
    """
    signs = np.where(votes, np.int8(1), np.int8(-1)) if votes.dtype == np.bool_ else votes
    return _gram(signs, 0.0, np.float32) / len(votes)


def pairwise_disagreement(votes: npt.NDArray[np.int8], *, gram: FloatArray | None = None) -> FloatArray:
    """Share of rows on which two trees vote differently.

    Range [0, 1]; 0 for equal and 1 for opposite trees; 0.5 for independent fair votes. The mean over all pairs of T
    trees is at most T / (2 (T - 1)), that is 0.505 for 100 trees, because a row can split T votes in two at best.
    A constant tree is an ordinary voter.

    Parameters
    ----------
    votes : ndarray of shape (n, T)
        +1 and -1.
    gram : ndarray of shape (T, T), optional
        :func:`vote_gram`, if it is known already.

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
    """Pearson correlation of two trees' votes.

    Range [-1, 1]; 0 for independent votes; NaN in the row and column of a tree that always votes the same.

    Parameters
    ----------
    votes : ndarray of shape (n, T)
        +1 and -1.
    gram : ndarray of shape (T, T), optional
        :func:`vote_gram`, if it is known already.

    Returns
    -------
    ndarray of shape (T, T)
    """
    return correlation_of_votes(votes.mean(axis=0), vote_gram(votes) if gram is None else gram)


def correlation_of_votes(mean: FloatArray, gram: FloatArray) -> FloatArray:
    """Return :func:`vote_correlation` of trees whose mean votes and :func:`vote_gram` are known."""
    C = gram - np.outer(mean, mean)
    return tree_correlation(np.where(np.outer(np.abs(mean) < 1, np.abs(mean) < 1), C, 0.0))


def q_statistic(correct: BoolArray, *, gram: FloatArray | None = None) -> FloatArray:
    """Yule's Q of two trees being right: (N11 N00 - N10 N01) / (N11 N00 + N10 N01).

    N11 counts the rows both get right, N00 both wrong, N10 and N01 one of them. Range [-1, 1]; 0 for independent
    errors, 1 if one is right whenever the other is. NaN where the denominator is zero (a tree that is always right
    or always wrong). It saturates: one empty cell is enough for 1 or -1.

    Parameters
    ----------
    correct : ndarray of shape (n, T)
    gram : ndarray of shape (T, T), optional
        :func:`vote_gram`, if it is known already.

    Returns
    -------
    ndarray of shape (T, T)
        The diagonal is 1, or NaN for a tree that is always right or always wrong.
    """
    return _contingency(correct, gram).q_statistic()


def double_fault(correct: BoolArray, *, gram: FloatArray | None = None) -> FloatArray:
    """Share of rows that two trees both get wrong.

    Range [0, 1]; e_i e_j for independent trees with error rates e_i and e_j; the diagonal is the error rate.
    Always defined.

    Parameters
    ----------
    correct : ndarray of shape (n, T)
    gram : ndarray of shape (T, T), optional
        :func:`vote_gram`, if it is known already.

    Returns
    -------
    ndarray of shape (T, T)
    """
    return _contingency(correct, gram).neither


class Contingency(NamedTuple):
    """Shares of rows that both trees get right, only the first, only the second, neither; each of shape (T, T)."""

    both: FloatArray
    first: FloatArray
    second: FloatArray
    neither: FloatArray

    @classmethod
    def of(cls, n: int, right: npt.NDArray[Any], gram: FloatArray) -> Contingency:
        """Return that of n rows from the number of right votes of each tree and :func:`vote_gram`."""
        both = (np.rint(n * gram) - n) / 4 + (right[:, None] + right) / 2  # counts, exactly
        return cls(both / n, (right[:, None] - both) / n, (right - both) / n, (n - right - right[:, None] + both) / n)

    def q_statistic(self) -> FloatArray:
        """Return Yule's Q: see the function of this name."""
        same, different = self.both * self.neither, self.first * self.second
        with np.errstate(invalid="ignore"):
            return (same - different) / (same + different)


def _contingency(correct: BoolArray, gram: FloatArray | None) -> Contingency:
    return Contingency.of(len(correct), correct.sum(axis=0), vote_gram(correct) if gram is None else gram)


class Ambiguity(NamedTuple):
    """Squared error of an ensemble = weighted error of its members - ambiguity."""

    ambiguity: float
    member_error: float
    ensemble_error: float


def ambiguity(H: FloatArray, weights: FloatArray, intercept: float = 0.0, y: ArrayLike | None = None) -> Ambiguity:
    """Spread of the members around the ensemble, and the error it saves.

    A sum of trees is an average of members: with S = sum(w) and v = w / S, member t predicts
    f_t = intercept + S h_t and F = sum_t v_t f_t is the ensemble's margin. The ambiguity is the mean over rows of
    sum_t v_t (f_t - F)^2, and for any y, exactly,
    mean (F - y)^2 = mean sum_t v_t (f_t - y)^2 - ambiguity.

    Range [0, inf), in squared units of the margin; 0 if and only if all trees with weight agree on every row (so
    for one tree).

    Parameters
    ----------
    H : ndarray of shape (n, T)
    weights : ndarray of shape (T,)
        Not negative, with a positive sum.
    intercept : float, default=0
    y : array-like of shape (n,), optional
        Target in units of the margin.

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
    spread = member = total = 0.0
    for start in range(0, len(H), _BLOCK_ROWS):
        f = intercept + S * np.asarray(H[start : start + _BLOCK_ROWS], np.float64)
        F = f @ v
        spread += np.sum(((f - F[:, None]) ** 2) @ v)
        if target is not None:
            y_block = target[start : start + _BLOCK_ROWS]
            member += np.sum(((f - y_block[:, None]) ** 2) @ v)
            total += np.sum((F - y_block) ** 2)
    n = len(H)
    if target is None:
        return Ambiguity(float(spread / n), float("nan"), float("nan"))
    return Ambiguity(float(spread / n), float(member / n), float(total / n))


def energy_by_component(C: FloatArray) -> FloatArray:
    """Share of the trees' variance in each principal component, after scaling every tree to unit variance.

    Scaling makes ensembles comparable whose later trees are smaller. Each share is in [0, 1], they fall and add up
    to 1; 1 / T each for uncorrelated trees, (1, 0, ...) for copies of one tree. Constant trees have no variance and
    add a zero; all zeros if every tree is constant.

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


def singular_spectrum(C: FloatArray, *, energy: FloatArray | None = None) -> FloatArray:
    """Singular values of the centred, unit-variance columns of H, divided by the largest.

    The square root of :func:`energy_by_component`, divided by its first entry: range [0, 1], falling from 1; flat
    for uncorrelated trees, (1, 0, ...) for copies of one tree; all zeros if every tree is constant.

    Parameters
    ----------
    C : ndarray of shape (T, T)
        From :func:`tree_covariance`.
    energy : ndarray of shape (T,), optional
        :func:`energy_by_component`, if it is known already.

    Returns
    -------
    ndarray of shape (T,)
    """
    s = np.sqrt(energy_by_component(C) if energy is None else energy)
    return s / s[0] if s[0] > 0 else s


def effective_rank(C: FloatArray, *, energy: FloatArray | None = None) -> float:
    """Count the equally strong directions of the same entropy: exp(-sum_i e_i log e_i), e = energy by component.

    Range [1, T]; T for uncorrelated trees, 1 for copies of one tree; 0 if every tree is constant.

    Parameters
    ----------
    C : ndarray of shape (T, T)
        From :func:`tree_covariance`.
    energy : ndarray of shape (T,), optional
        :func:`energy_by_component`, if it is known already.

    Returns
    -------
    float
    """
    energy = energy_by_component(C) if energy is None else energy
    return float(np.exp(special.entr(energy).sum())) if energy[0] > 0 else 0.0


def redundancy_ratio(C: FloatArray) -> FloatArray:
    """Share of each tree's variance that lies in the span of the trees before it.

    The R^2 of regressing tree t on trees 1 .. t-1 and a constant, over the rows. Range [0, 1]; 0 for the first tree
    and for a tree uncorrelated with all earlier ones; (t - 1) / (n - 1) is expected of pure noise, so it needs many
    more rows than trees. A constant tree adds nothing: 1.

    Parameters
    ----------
    C : ndarray of shape (T, T)
        From :func:`tree_covariance`.

    Returns
    -------
    ndarray of shape (T,)
        Shares within 1e-10 of 1 are reported as 1: a covariance cannot tell them apart.
    """
    T = len(C)
    left = np.nan_to_num(tree_correlation(C))  # becomes the covariance of what earlier trees do not explain
    ratio = np.ones(T)
    for t in range(T):
        share = left[t, t]
        if share <= _NO_SHARE:
            continue
        ratio[t] = 1 - share
        left -= np.outer(left[:, t], left[t] / share)
    return np.clip(ratio, 0, 1)


def innovation(C: FloatArray, *, redundancy: FloatArray | None = None) -> FloatArray:
    """Variance that each tree adds outside the span of the trees before it: (1 - redundancy) * variance.

    Range [0, variance of the tree], in squared units of the tree's values; the variance for uncorrelated trees, 0
    for a tree that repeats earlier ones and for a constant one.

    Parameters
    ----------
    C : ndarray of shape (T, T)
        From :func:`tree_covariance`.
    redundancy : ndarray of shape (T,), optional
        :func:`redundancy_ratio`, if it is known already.

    Returns
    -------
    ndarray of shape (T,)
    """
    return (1 - (redundancy_ratio(C) if redundancy is None else redundancy)) * np.diag(C)


def correct_votes(trees: TreeMatrix, y: ArrayLike) -> BoolArray:
    """Return where each tree's vote is right, of the shape of H.

    A classification tree is right if it votes for its class where y is that class and against it elsewhere. A
    regression tree is right if it is on the same side of the ensemble's base as y.

    Parameters
    ----------
    trees : TreeMatrix
    y : array-like of shape (n,)
        Labels, or real targets.

    Returns
    -------
    ndarray of shape (n, T * K)
    """
    target = encode_target(trees, y)
    votes = trees.votes() > 0
    if target.dtype.kind == "f":
        right = (target > trees.base())[:, None]
    elif trees.n_outputs == 1:
        right = (target == 1)[:, None]
    else:
        right = np.tile(target[:, None] == np.arange(trees.n_outputs), (1, trees.n_trees))
    return np.asarray(votes == right)


def truncation_path(trees: TreeMatrix, y: ArrayLike) -> FloatArray:
    """Score of the ensemble cut after 1, 2, ..., T trees: what pruning has to beat.

    Boosted sums keep the intercept and the first trees; averages are the average of the first trees.

    Parameters
    ----------
    trees : TreeMatrix
    y : array-like of shape (n,)

    Returns
    -------
    ndarray of shape (T,)
        Accuracy, or R^2 for regression.
    """
    target = encode_target(trees, y)
    return score(trees, outcomes(trees, target), len(target), mean_and_scatter(target)[1])


def mean_and_scatter(target: npt.NDArray[Any]) -> tuple[float, float]:
    """Return the mean and the sum of squares about it; of a constant target that is exactly zero."""
    shifted = target - target[0]
    return float(target[0] + shifted.mean()), float(len(target) * shifted.var())


def outcomes(trees: TreeMatrix, target: npt.NDArray[Any]) -> FloatArray:
    """Return the number of rows that the first 1, 2, ..., T trees get right, or their sum of squared errors."""
    K, T = trees.n_outputs, trees.n_trees
    w = trees.column_weights.reshape(T, K)
    scale = w.sum(axis=0) / np.cumsum(w, axis=0) if trees.average else np.ones((T, K))
    F = np.zeros((len(trees.H), K))
    path = np.empty(T)
    for t in range(T):
        F += trees.H[:, t * K : (t + 1) * K] * w[t]
        margin = F * scale[t] + trees.intercepts
        path[t] = outcome(trees, margin[:, 0] if K == 1 else margin, target)
    return path
