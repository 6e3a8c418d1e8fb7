"""Statistics of the study and the page ``docs/default.md``, written from its result files."""

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]
Means = dict[str, dict[str, float]]
"""Mean over the folds by method and data set."""

# Sign with which a measure counts as better.
BETTER = {"log_loss": -1, "AUC": 1, "ACC": 1, "F1": 1}


def read(path: Path) -> list[dict[str, str]]:
    """Read the rows of a result file that are complete."""
    with path.open(newline="", encoding="utf-8") as stream:
        return [row for row in csv.DictReader(stream) if row["status"] == "ok"]


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


def complete(table: Means, methods: Iterable[str], sets: Sequence[str]) -> list[str]:
    """Those of the methods that have a value on every set."""
    return [m for m in methods if all(d in table.get(m, {}) for d in sets)]
