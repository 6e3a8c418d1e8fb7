"""Statistics of methods over data sets: means, ranks, paired differences with their uncertainty."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Means = dict[str, dict[str, float]]
"""Mean over the folds by method and data set."""


def means(rows: Iterable[Mapping[str, str]], measure: str) -> Means:
    """Mean of a measure over the folds of each method on each set.

    Parameters
    ----------
    rows : iterable of mappings
        Rows with "method", "dataset" and the measure as text; rows without the measure do not count.
    measure : str
        A column.

    Returns
    -------
    dict of dict
        By method, then by data set.

    Examples
    --------
    >>> rows = [{"method": "a", "dataset": "d", "AUC": "0.5"}, {"method": "a", "dataset": "d", "AUC": "0.7"}]
    >>> round(means(rows, "AUC")["a"]["d"], 6)
    0.6
    """
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row[measure]:
            values[row["method"]][row["dataset"]].append(float(row[measure]))
    return {m: {d: float(np.mean(v)) for d, v in sets.items()} for m, sets in values.items()}


def average(table: Means, method: str, sets: Sequence[str]) -> float:
    """Mean of a method over the sets."""
    return float(np.mean([table[method][d] for d in sets]))


def mean_ranks(table: Means, methods: Sequence[str], sets: Sequence[str], sign: int) -> dict[str, float]:
    """Mean rank of each method over the sets; 1 is the best, equal values share their rank.

    Parameters
    ----------
    table : dict of dict
        See `means`.
    methods, sets : sequence of str
        What is compared.
    sign : {-1, 1}
        1 if larger values are better.

    Returns
    -------
    dict

    Examples
    --------
    >>> mean_ranks({"a": {"d": 0.9}, "b": {"d": 0.8}}, ["a", "b"], ["d"], 1)
    {'a': 1.0, 'b': 2.0}
    """
    values = np.array([[-sign * table[m][d] for m in methods] for d in sets])
    ranks = stats.rankdata(values, axis=1).mean(axis=0)
    return dict(zip(methods, map(float, ranks), strict=True))


@dataclass(frozen=True)
class Comparison:
    """One method against another over data sets.

    Attributes
    ----------
    difference : float
        Mean of ours minus theirs.
    low, high : float
        95 % percentile bootstrap interval of it; the sets are drawn anew.
    p : float
        Two-sided Wilcoxon signed-rank test over the sets; 1 if all differences are zero.
    wins : int
        Sets on which ours is better; a tie counts for neither.
    n : int
        Number of sets.
    """

    difference: float
    low: float
    high: float
    p: float
    wins: int
    n: int

    @property
    def interval(self) -> str:
        """The difference in units of 0.0001 with its interval."""
        return f"{1e4 * self.difference:+.0f} [{1e4 * self.low:+.0f}, {1e4 * self.high:+.0f}]"

    @property
    def won(self) -> str:
        """The number of sets won, and of all sets."""
        return f"{self.wins}/{self.n}"

    def __str__(self) -> str:
        return f"{self.interval}, better on {self.won}"


def compare(table: Means, ours: str, theirs: str, sets: Sequence[str], sign: int) -> Comparison:
    """Compare two methods over the sets.

    Parameters
    ----------
    table : dict of dict
        See `means`.
    ours, theirs : str
        Methods.
    sets : sequence of str
        Data sets.
    sign : {-1, 1}
        1 if larger values are better.

    Returns
    -------
    Comparison
    """
    d = np.array([table[ours][s] - table[theirs][s] for s in sets])
    rng = np.random.default_rng(0)
    drawn = d[rng.integers(len(d), size=(10_000, len(d)))].mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    p = float(stats.wilcoxon(d).pvalue) if d.any() else 1.0
    return Comparison(float(d.mean()), float(low), float(high), p, int(np.sum(sign * d > 0)), len(d))


def wilcoxon_mark(baseline: Sequence[float], ours: Sequence[float]) -> str:
    """Mark a baseline whose paired fold values differ from SCBoost's, as in the paper.

    Parameters
    ----------
    baseline, ours : sequence of float
        Values of the same folds.

    Returns
    -------
    str
        ``"**"`` for p < 0.01, ``"*"`` for p < 0.05, ``""`` otherwise, ``"#"`` where all differences are zero
        and the test does not apply.

    Examples
    --------
    >>> wilcoxon_mark([0.1] * 10, [0.1] * 10)
    '#'
    >>> wilcoxon_mark([0.1] * 10, [0.2 + 0.01 * i for i in range(10)])
    '**'
    """
    difference = np.subtract(baseline, ours)
    if not difference.any():
        return "#"
    p = signed_rank_p(difference)
    return "**" if p < 0.01 else "*" if p < 0.05 else ""


def signed_rank_p(difference: NDArray[np.float64]) -> float:
    """Exact two-sided p-value of the Wilcoxon signed-rank test, also with ties and zeros.

    SciPy gives the same, but takes a second where values are tied.

    Parameters
    ----------
    difference : ndarray of shape (n,)
        A few paired differences: all 2^n signs are gone through. Zeros do not count.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> signed_rank_p(np.array([1.0, 2.0, 3.0, 4.0, -0.5]))
    0.125
    """
    d = difference[difference != 0]
    ranks = stats.rankdata(np.abs(d))
    signs = np.arange(2 ** len(d))[:, None] >> np.arange(len(d)) & 1
    sums, seen = signs @ ranks, ranks[d > 0].sum()
    return float(min(1.0, 2 * min(np.mean(sums <= seen), np.mean(sums >= seen))))


class Standing:
    """Place of one method among others, by mean rank.

    Parameters
    ----------
    method : str
        The method.
    ranks : dict
        Mean rank of each method.
    """

    def __init__(self, method: str, ranks: dict[str, float]) -> None:
        self.place = 1 + sum(rank < ranks[method] for rank in ranks.values())
        self.rank = ranks[method]
        self.best_other, self.best_other_rank = min(
            ((m, r) for m, r in ranks.items() if m != method), key=lambda pair: pair[1], default=("", np.nan)
        )

    def __str__(self) -> str:
        return f"place {self.place} ({self.rank:.2f}; {self.best_other} {self.best_other_rank:.2f})"


def elo(
    table: Means, methods: Sequence[str], sets: Sequence[str], sign: int, anchor: str, n_draws: int = 500
) -> dict[str, tuple[float, float, float]]:
    """Rate methods by the Bradley-Terry model of their wins over the sets, on the scale of Elo.

    Parameters
    ----------
    table : dict of dict
        See `means`.
    methods, sets : sequence of str
        What is compared; each pair of methods plays once on each set.
    sign : {-1, 1}
        1 if larger values are better.
    anchor : str
        The method that is rated 1000.
    n_draws : int
        Number of bootstrap samples of the sets.

    Returns
    -------
    dict
        Rating of each method, and the ends of its 95 % bootstrap interval.

    Examples
    --------
    >>> table = {"a": {"d": 1.0, "e": 1.0}, "b": {"d": 2.0, "e": 0.5}}
    >>> [round(rating) for rating, _, _ in elo(table, ["a", "b"], ["d", "e"], 1, "a").values()]
    [1000, 1000]
    """
    values = np.array([[sign * table[m][d] for m in methods] for d in sets])
    won = (values[:, :, None] > values[:, None, :]) + 0.5 * (values[:, :, None] == values[:, None, :])
    rng, at = np.random.default_rng(0), list(methods).index(anchor)
    draws = rng.integers(len(sets), size=(n_draws, len(sets)))
    rated = _bradley_terry(won.mean(axis=0), at)
    low, high = np.quantile([_bradley_terry(won[draw].mean(axis=0), at) for draw in draws], [0.025, 0.975], axis=0)
    return {m: (float(rated[i]), float(low[i]), float(high[i])) for i, m in enumerate(methods)}


def _bradley_terry(won: NDArray[np.float64], anchor: int) -> NDArray[np.float64]:
    """Fit ratings to shares of games won, of shape (K, K), by minorization-maximization."""
    share = 0.98 * won + 0.01  # a method that wins everything has no finite rating
    np.fill_diagonal(share, 0.0)
    strength = np.ones(len(share))
    for _ in range(200):
        strength = share.sum(axis=1) / (1 / (strength[:, None] + strength) - np.diag(0.5 / strength)).sum(axis=1)
        strength /= strength.mean()
    return np.asarray(1000 + 400 * np.log10(strength / strength[anchor]))
