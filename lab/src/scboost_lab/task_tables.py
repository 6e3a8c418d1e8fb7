"""Tables of the studies of tasks besides classification and regression."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd


def complete(path: Path, methods: Sequence[str]) -> pd.DataFrame:
    """Return the rows of the folds on which all methods have results."""
    rows = pd.read_csv(path)
    rows = rows[(rows["status"] == "ok") & rows["method"].isin(methods)]
    n_methods = rows.groupby(["dataset", "fold"])["method"].transform("nunique")
    return rows[n_methods == len(methods)]


def ranks(rows: pd.DataFrame, metrics: Mapping[str, bool], methods: Sequence[str]) -> pd.DataFrame:
    """Return mean score and mean rank of each method over the data sets.

    Parameters
    ----------
    rows : DataFrame
        From :func:`complete`.
    metrics : mapping of str to bool
        Names of the columns, and whether higher is better.
    methods : sequence of str
        The methods to compare.
    """
    parts = {}
    for metric, higher in metrics.items():
        table = rows.pivot_table(index="dataset", columns="method", values=metric)
        parts[f"mean {metric}"] = table.mean()
        parts[f"rank by {metric}"] = table.rank(axis=1, ascending=not higher).mean()
    parts["fit seconds"] = rows.pivot_table(index="dataset", columns="method", values="fit_seconds").mean()
    return pd.DataFrame(parts).reindex(methods)


def print_ranks(path: Path, metrics: Mapping[str, bool], methods: Sequence[str]) -> None:
    """Print mean score and mean rank of each method, and the number of data sets and folds."""
    rows = complete(path, methods)
    n_folds = rows.groupby("dataset")["fold"].nunique()
    print(f"{len(n_folds)} data sets, {n_folds.sum()} folds with results of all methods")
    print(ranks(rows, metrics, methods).to_string(float_format=lambda value: f"{value:.4f}"))
