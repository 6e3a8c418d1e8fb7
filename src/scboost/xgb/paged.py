"""Rows that are not in memory, as XGBoost takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scboost._arrays import FloatArray, Paged

from . import import_xgboost


def batches_of(X: Paged, feature_types: list[str] | None, sample_weight: FloatArray | None = None) -> Any:
    """Make an ``xgboost.DataIter`` of rows; its matrices keep their pages in files in the folder of the rows.

    Parameters
    ----------
    X : Paged of shape (n, d)
        The rows.
    feature_types : list of str or None
        Column types as XGBoost names them.
    sample_weight : ndarray of shape (n,), optional
        Row weights.
    """
    base: Any = import_xgboost().DataIter

    class Batches(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(cache_prefix=str(X.folder / "rows"))
            self.reset()

        def reset(self) -> None:
            self._parts, self._done = iter(X), 0

        def next(self, input_data: Callable[..., None]) -> bool:
            part = next(self._parts, None)
            if part is None:
                return False
            rows = slice(self._done, self._done + part.shape[0])
            self._done = rows.stop
            weight = None if sample_weight is None else sample_weight[rows]
            input_data(data=part, weight=weight, feature_types=feature_types)
            return True

    return Batches()
