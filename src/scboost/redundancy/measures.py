"""How redundant are the trees of an ensemble? Measures, and one report of them all.

Three kinds of input, each computed once and shared by several measures:

* votes (n, T): +1 where a tree's value is above its share of the ensemble's base, -1 elsewhere
  (:meth:`TreeMatrix.votes`, where the base is defined for each library);
* correct (n, T): True where a tree votes for the row's class, or on the same side of the base as a real target;
* covariance (T, T): of the trees' values over the rows (:func:`tree_covariance`).

Measures of pairs are (T, T) arrays, symmetric, from one matrix product; :func:`mean_of_pairs` averages one over the
pairs of distinct trees, leaving out undefined pairs (NaN).
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg, special

from scboost.redundancy.tree_matrix import TreeMatrix, tree_matrix

FloatArray = npt.NDArray[np.floating]
BoolArray = npt.NDArray[np.bool_]

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
    mean = np.mean(H, axis=0, dtype=np.float64)
    C = _gram(H, mean, np.float64) / len(H)
    # a constant float32 column differs from its mean by rounding only
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


def pairwise_disagreement(votes: npt.NDArray[np.int8]) -> FloatArray:
    """Share of rows on which two trees vote differently.

    Range [0, 1]; 0 for equal and 1 for opposite trees; 0.5 for independent fair votes. The mean over all pairs of T
    trees is at most T / (2 (T - 1)), that is 0.505 for 100 trees, because a row can split T votes in two at best.
    A constant tree is an ordinary voter.

    Parameters
    ----------
    votes : ndarray of shape (n, T)
        +1 and -1.

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
    return (1 - _gram(votes, 0.0, np.float32) / len(votes)) / 2


def vote_correlation(votes: npt.NDArray[np.int8]) -> FloatArray:
    """Pearson correlation of two trees' votes.

    Range [-1, 1]; 0 for independent votes; NaN in the row and column of a tree that always votes the same.

    Parameters
    ----------
    votes : ndarray of shape (n, T)
        +1 and -1.

    Returns
    -------
    ndarray of shape (T, T)
    """
    mean = votes.mean(axis=0)
    C = _gram(votes, 0.0, np.float32) / len(votes) - np.outer(mean, mean)
    return tree_correlation(np.where(np.outer(np.abs(mean) < 1, np.abs(mean) < 1), C, 0.0))


def q_statistic(correct: BoolArray) -> FloatArray:
    """Yule's Q of two trees being right: (N11 N00 - N10 N01) / (N11 N00 + N10 N01).

    N11 counts the rows both get right, N00 both wrong, N10 and N01 one of them. Range [-1, 1]; 0 for independent
    errors, 1 if one is right whenever the other is. NaN where the denominator is zero (a tree that is always right
    or always wrong). It saturates: one empty cell is enough for 1 or -1.

    Parameters
    ----------
    correct : ndarray of shape (n, T)

    Returns
    -------
    ndarray of shape (T, T)
        The diagonal is 1, or NaN for a tree that is always right or always wrong.
    """
    both, first, second, neither = _contingency(correct)
    same, different = both * neither, first * second
    with np.errstate(invalid="ignore"):
        return (same - different) / (same + different)


def double_fault(correct: BoolArray) -> FloatArray:
    """Share of rows that two trees both get wrong.

    Range [0, 1]; e_i e_j for independent trees with error rates e_i and e_j; the diagonal is the error rate.
    Always defined.

    Parameters
    ----------
    correct : ndarray of shape (n, T)

    Returns
    -------
    ndarray of shape (T, T)
    """
    return _contingency(correct)[3] / len(correct)


def _contingency(correct: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    both = _gram(correct, 0.0, np.float32)
    right = np.diag(both)
    return both, right[:, None] - both, right - both, len(correct) - right - right[:, None] + both


class Ambiguity(NamedTuple):
    """Squared error of an ensemble = weighted error of its members - ambiguity."""

    ambiguity: float
    member_error: float
    ensemble_error: float


def ambiguity(H: FloatArray, weights: FloatArray, intercept: float = 0.0, y: npt.ArrayLike | None = None) -> Ambiguity:
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


def singular_spectrum(C: FloatArray) -> FloatArray:
    """Singular values of the centred, unit-variance columns of H, divided by the largest.

    The square root of :func:`energy_by_component`, divided by its first entry: range [0, 1], falling from 1; flat
    for uncorrelated trees, (1, 0, ...) for copies of one tree; all zeros if every tree is constant.

    Parameters
    ----------
    C : ndarray of shape (T, T)
        From :func:`tree_covariance`.

    Returns
    -------
    ndarray of shape (T,)
    """
    s = np.sqrt(energy_by_component(C))
    return s / s[0] if s[0] > 0 else s


def effective_rank(C: FloatArray) -> float:
    """Count the equally strong directions of the same entropy: exp(-sum_i e_i log e_i), e = energy by component.

    Range [1, T]; T for uncorrelated trees, 1 for copies of one tree; 0 if every tree is constant.

    Parameters
    ----------
    C : ndarray of shape (T, T)
        From :func:`tree_covariance`.

    Returns
    -------
    float
    """
    energy = energy_by_component(C)
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


def innovation(C: FloatArray) -> FloatArray:
    """Variance that each tree adds outside the span of the trees before it: (1 - redundancy) * variance.

    Range [0, variance of the tree], in squared units of the tree's values; the variance for uncorrelated trees, 0
    for a tree that repeats earlier ones and for a constant one.

    Parameters
    ----------
    C : ndarray of shape (T, T)
        From :func:`tree_covariance`.

    Returns
    -------
    ndarray of shape (T,)
    """
    return (1 - redundancy_ratio(C)) * np.diag(C)


def encode_target(trees: TreeMatrix, y: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return y as class numbers (classification) or as float64 (regression), or say what is wrong with it."""
    y = np.asarray(y)
    if y.shape != (len(trees.H),):
        raise ValueError(f"y must have shape ({len(trees.H)},), one value per row of X; got {y.shape}.")
    if trees.classes is not None:
        codes = np.searchsorted(trees.classes, y).clip(0, len(trees.classes) - 1)
        unknown = y[trees.classes[codes] != y]
        if len(unknown):
            raise ValueError(f"y has the label {unknown.tolist()[0]!r}; the model knows {trees.classes.tolist()}.")
        return codes
    if trees.link in {"logit", "softmax"}:
        n_classes = max(2, trees.n_outputs)
        if not np.all(np.isin(y, np.arange(n_classes))):
            raise ValueError(f"y must hold the class numbers 0 .. {n_classes - 1}, got {np.unique(y)[:5]}.")
        return y.astype(np.intp)
    if trees.link not in {"identity", "quantile"} or trees.n_outputs > 1:
        raise ValueError("y cannot be compared with this model's trees: its margin is not on the scale of y.")
    return y.astype(np.float64)


def correct_votes(trees: TreeMatrix, y: npt.ArrayLike) -> BoolArray:
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
        base = trees.intercepts[0] + trees.column_weights @ trees.centers
        right = (target > base)[:, None]
    elif trees.n_outputs == 1:
        right = (target == 1)[:, None]
    else:
        right = np.tile(target[:, None] == np.arange(trees.n_outputs), (1, trees.n_trees))
    return np.asarray(votes == right)


def score(trees: TreeMatrix, F: FloatArray, target: npt.NDArray[Any]) -> float:
    """Return the accuracy of margins F, or their R^2 for a real target (NaN if that is constant)."""
    if target.dtype.kind == "f":
        variance = np.var(target)
        return float(1 - np.mean((target - F) ** 2) / variance) if variance > 0 else float("nan")
    if trees.n_outputs > 1:
        return float(np.mean(np.argmax(F, axis=1) == target))
    threshold = 0.5 if trees.link == "probability" else 0.0
    return float(np.mean((threshold < F) == (target == 1)))


def truncation_path(trees: TreeMatrix, y: npt.ArrayLike) -> FloatArray:
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
    K, T = trees.n_outputs, trees.n_trees
    w = trees.column_weights.reshape(T, K)
    scale = w.sum(axis=0) / np.cumsum(w, axis=0) if trees.average else np.ones((T, K))
    F = np.zeros((len(trees.H), K))
    path = np.empty(T)
    for t in range(T):
        F += trees.H[:, t * K : (t + 1) * K] * w[t]
        margin = F * scale[t] + trees.intercepts
        path[t] = score(trees, margin[:, 0] if K == 1 else margin, target)
    return path


@dataclass(frozen=True)
class RedundancyReport:
    """Measures of one ensemble on given rows; see :func:`redundancy_report`.

    Attributes
    ----------
    library, model_name : str
    n_rows, n_trees, n_outputs : int
        Trees are counted per output: a model with K classes has ``n_trees * n_outputs`` trees.
    disagreement, vote_correlation, correlation : float
        Means over pairs of trees.
    q_statistic, double_fault, tree_score, ensemble_score : float
        Means over pairs; mean share of right votes of one tree; accuracy or R^2 of the ensemble. NaN without y.
    ambiguity, ambiguity_share : float
        :func:`ambiguity`, and its share of the members' mean square around the ensemble's base, in [0, 1].
        NaN if a weight is negative.
    effective_rank : float
    energy, spectrum, redundancy, innovation : ndarray of shape (T,)
        By component (the first two) and by round (the others).
    correlations : ndarray of shape (T, T)
    truncation : ndarray of shape (T,) or None
        Score of the first 1 .. T trees; None without y.
    score_name : str
        "accuracy" or "R2".
    """

    library: str
    model_name: str
    n_rows: int
    n_trees: int
    n_outputs: int
    disagreement: float
    vote_correlation: float
    correlation: float
    q_statistic: float
    double_fault: float
    tree_score: float
    ensemble_score: float
    ambiguity: float
    ambiguity_share: float
    effective_rank: float
    energy: FloatArray = field(repr=False)
    spectrum: FloatArray = field(repr=False)
    redundancy: FloatArray = field(repr=False)
    innovation: FloatArray = field(repr=False)
    correlations: FloatArray = field(repr=False)
    truncation: FloatArray | None = field(repr=False)
    score_name: str = "accuracy"

    def rows(self) -> list[tuple[str, str, str]]:
        """Return name, value and meaning of each number, as the representations print them."""

        def number(x: float, digits: int = 3) -> str:
            return "undefined" if np.isnan(x) else f"{x:.{digits}f}"

        T = self.n_trees
        half = int(np.searchsorted(np.cumsum(self.energy), 0.9) + 1) if self.energy[0] > 0 else 0
        table = [
            ("effective rank", number(self.effective_rank, 1), f"of {T}; 1 = copies, {T} = uncorrelated"),
            ("components for 90% energy", f"{min(half, T)}", f"of {T}"),
            ("redundancy, mean", number(float(self.redundancy.mean())), "share of a tree in earlier ones, 0..1"),
            ("redundancy, last tenth", number(float(self.redundancy[-max(1, T // 10) :].mean())), "0..1"),
            ("correlation of values", number(self.correlation), "mean of pairs, -1..1, independent 0"),
            ("correlation of votes", number(self.vote_correlation), "mean of pairs, -1..1, independent 0"),
            ("disagreement", number(self.disagreement), "mean of pairs, 0..1, independent fair votes 0.5"),
            ("ambiguity share", number(self.ambiguity_share), "spread of trees, 0..1, copies 0"),
            ("ambiguity", f"{self.ambiguity:.4g}", "squared units of the margin"),
        ]
        if self.truncation is not None:
            table += [
                ("Q-statistic", number(self.q_statistic), "mean of pairs, -1..1, independent errors 0"),
                ("double fault", number(self.double_fault), "mean of pairs, share of rows both get wrong"),
                ("right votes of a tree", number(self.tree_score), "mean share of rows"),
                (f"ensemble {self.score_name}", number(self.ensemble_score, 4), ""),
            ]
        return table

    def title(self) -> str:
        """Return what was measured, in one line."""
        outputs = f" x {self.n_outputs} outputs (means over outputs)" if self.n_outputs > 1 else ""
        return f"Redundancy of {self.model_name} ({self.library}): {self.n_trees} trees{outputs}, {self.n_rows} rows"

    def __str__(self) -> str:
        lines = [f"  {name:<27}{value:>10}   {meaning}" for name, value, meaning in self.rows()]
        return "\n".join([self.title(), *(line.rstrip() for line in lines)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td>{html.escape(name)}</td><td style='text-align:right'><b>{value}</b></td>"
            f"<td style='color:gray'>{html.escape(meaning)}</td></tr>"
            for name, value, meaning in self.rows()
        )
        return f"<table><caption>{html.escape(self.title())}</caption><tbody>{cells}</tbody></table>"

    def plot(self, *others: RedundancyReport) -> Any:
        """Draw spectrum (against other reports), correlations, innovation and truncation; return the figure."""
        from scboost.plotting import plot_report

        return plot_report(self, *others)


def redundancy_report(
    model: Any, X: Any, y: npt.ArrayLike | None = None, *, name: str | None = None
) -> RedundancyReport:
    """Measure how redundant the trees of a fitted ensemble are.

    Use rows that the model was not fitted on, and many more rows than trees. For a model with several outputs
    every measure is computed among the trees of one output and averaged over outputs.

    Parameters
    ----------
    model : object
        Any ensemble :func:`tree_matrix` reads.
    X : array-like or data frame of shape (n, d)
    y : array-like of shape (n,), optional
        Labels or real targets; adds the measures about errors. A y with one class is allowed: all measures about
        errors stay defined, except the Q-statistic of trees that are always right or wrong.
    name : str, optional
        How to call the model in texts and legends; its class name otherwise.

    Returns
    -------
    RedundancyReport
        With a text and an HTML representation, and ``plot()``. Of a single tree, the measures of pairs are NaN
        ("undefined"), the effective rank 1 and the redundancy 0. If all trees are constant, correlations are NaN,
        the effective rank 0 and the redundancy 1.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import GradientBoostingClassifier
    >>> X, y = make_classification(400, 5, random_state=0)
    >>> model = GradientBoostingClassifier(n_estimators=20, random_state=0).fit(X[:200], y[:200])
    >>> report = redundancy_report(model, X[200:], y[200:])
    >>> report.n_trees, 1 <= report.effective_rank <= 20
    (20, True)
    """
    trees = tree_matrix(model, X)
    correct = None if y is None else correct_votes(trees, y)
    path = None if y is None else truncation_path(trees, y)
    K = trees.n_outputs
    per_output = [_measure(trees.output(k), None if correct is None else correct[:, k::K]) for k in range(K)]
    mean = {name: np.mean([m[name] for m in per_output], axis=0) for name in per_output[0]}
    numbers: dict[str, Any] = {name: float(value) if np.ndim(value) == 0 else value for name, value in mean.items()}
    regression = y is not None and encode_target(trees, y).dtype.kind == "f"
    return RedundancyReport(
        library=trees.library,
        model_name=type(model).__name__ if name is None else name,
        n_rows=len(trees.H),
        n_trees=trees.n_trees,
        n_outputs=K,
        truncation=path,
        ensemble_score=float("nan") if path is None else float(path[-1]),
        score_name="R2" if regression else "accuracy",
        **numbers,
    )


def _measure(trees: TreeMatrix, correct: BoolArray | None) -> dict[str, Any]:
    """Return the measures of an ensemble with one output."""
    C = tree_covariance(trees.H)
    R = tree_correlation(C)
    votes = trees.votes()
    spread = share = float("nan")
    w = trees.column_weights
    if np.all(w >= 0) and w.sum() > 0:
        spread = ambiguity(trees.H, w, float(trees.intercepts[0])).ambiguity
        base = trees.intercepts[0] + w @ trees.centers
        around = spread + float(np.mean((trees.margin() - base) ** 2))
        share = spread / around if around > 0 else 0.0
    nan = float("nan")
    return {
        "disagreement": mean_of_pairs(pairwise_disagreement(votes)),
        "vote_correlation": mean_of_pairs(vote_correlation(votes)),
        "correlation": mean_of_pairs(R),
        "q_statistic": nan if correct is None else mean_of_pairs(q_statistic(correct)),
        "double_fault": nan if correct is None else mean_of_pairs(double_fault(correct)),
        "tree_score": nan if correct is None else float(correct.mean()),
        "ambiguity": spread,
        "ambiguity_share": share,
        "effective_rank": effective_rank(C),
        "energy": energy_by_component(C),
        "spectrum": singular_spectrum(C),
        "redundancy": redundancy_ratio(C),
        "innovation": innovation(C) * w**2,
        "correlations": R,
    }
