"""Tables of the studies of tasks besides classification and regression."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd


def ranks(path: Path, metrics: Mapping[str, bool], methods: Sequence[str]) -> pd.DataFrame:
    """Return mean score and mean rank of each method, over the sets on which all methods have results.

    Parameters
    ----------
    path : Path
        Of the result file.
    metrics : mapping of str to bool
        Names of the columns, and whether higher is better.
    methods : sequence of str
        The methods to compare.
    """
    rows = pd.read_csv(path)
    rows = rows[(rows["status"] == "ok") & rows["method"].isin(methods)]
    parts = {}
    for metric, higher in metrics.items():
        table = rows.pivot_table(index="dataset", columns="method", values=metric).dropna()
        parts[f"mean {metric}"] = table.mean()
        parts[f"rank by {metric}"] = table.rank(axis=1, ascending=not higher).mean()
    parts["fit seconds"] = rows.pivot_table(index="dataset", columns="method", values="fit_seconds").mean()
    return pd.DataFrame(parts).reindex(methods)


def print_ranks(path: Path, metrics: Mapping[str, bool], methods: Sequence[str]) -> None:
    """Print mean score and mean rank of each method, and the number of data sets."""
    found = ranks(path, metrics, methods)
    n_sets = pd.read_csv(path).query("status == 'ok'")["dataset"].nunique()
    print(f"{n_sets} data sets")
    print(found.to_string(float_format=lambda value: f"{value:.4f}"))
