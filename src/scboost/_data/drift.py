"""Targets that drift in time, where random folds overestimate how well later samples are predicted."""

from __future__ import annotations

import warnings

import numpy as np

from scboost._arrays import FloatArray
from scboost._data.encoder import Encoder
from scboost._data.tables import as_table, instants

_FEWEST_SAMPLES = 100
_CORRELATION, _DEVIATIONS = 0.3, 6.0


def warn_of_drift(X: object, y: FloatArray, encoder: Encoder) -> None:
    """Warn if the rows of a table are in the order of a column of dates, with which y rises or falls.

    The order of the rows alone is no evidence: tables are often sorted by something that predicts y, or by y itself.

    Parameters
    ----------
    X : array-like or table of shape (n, d)
        The training set.
    y : ndarray of shape (n,)
        Target.
    encoder : Encoder
        What was learned from X.
    """
    table = as_table(X) if encoder.dates is not None and len(y) >= _FEWEST_SAMPLES else None
    if table is None:
        return
    from scipy import stats

    for j, kind in enumerate(encoder.column_kinds):
        if kind != "date":
            continue
        when = instants(table.columns[j])
        present = ~np.isnat(when)
        days = when[present].astype(np.int64)
        steps = np.diff(days)
        if len(days) < _FEWEST_SAMPLES or not steps.any() or not ((steps >= 0).all() or (steps <= 0).all()):
            continue
        rho = float(stats.spearmanr(days, y[present]).statistic) if np.ptp(y[present]) > 0 else 0.0
        if abs(rho) > _CORRELATION and abs(rho) * np.sqrt(len(days) - 1) > _DEVIATIONS:
            warnings.warn(
                f"y drifts with the date {encoder.column_name(j)!r} (rank correlation {rho:.2f}; the rows are in its "
                "order), but rounds are selected on random folds, which is optimistic for later dates. Pass "
                "cv=TimeSeriesSplit() with the earliest row first, or the latest rows as X_val and y_val; cv=5 keeps "
                "random folds without this warning.",
                UserWarning,
                stacklevel=5,
            )
            return
