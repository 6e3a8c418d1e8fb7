"""Matrices of XGBoost for data that are not in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from scboost._arrays import FloatArray, Paged
from scboost._runtime.signals import interrupts_deferred
from scboost._xgboost import import_xgboost


class _Interrupted(Exception):  # noqa: N818 - not an error
    """An interrupt inside a callback of XGBoost, which would swallow it and repeat the previous batch."""


def paged_matrix(
    kind: Literal["DMatrix", "ExtMemQuantileDMatrix"],
    X: Paged,
    feature_types: list[str] | None,
    sample_weight: FloatArray | None = None,
    **options: Any,
) -> Any:
    """Make a matrix of XGBoost whose pages are files in the folder of X.

    Parameters
    ----------
    kind : str
        Class of the matrix.
    X : Paged of shape (n, d)
        Samples.
    feature_types : list of str or None
        XGBoost's names of the feature types.
    sample_weight : ndarray of shape (n,), optional
        Sample weights.
    **options
        Other arguments of the class.
    """
    xgb = import_xgboost()
    base: Any = xgb.DataIter

    class Batches(base):
        def __init__(self, interrupted: Callable[[], bool]) -> None:
            super().__init__(cache_prefix=str(X.folder / "rows"))
            self._interrupted = interrupted
            self.reset()

        def reset(self) -> None:
            self._parts, self._done = iter(X), 0

        def next(self, input_data: Callable[..., None]) -> bool:
            try:
                part = next(self._parts, None)
            except (KeyboardInterrupt, SystemExit) as error:
                raise _Interrupted from error
            if self._interrupted():
                raise _Interrupted
            if part is None:
                return False
            rows = slice(self._done, self._done + part.shape[0])
            self._done = rows.stop
            weight = None if sample_weight is None else sample_weight[rows]
            input_data(data=part, weight=weight, feature_types=feature_types)
            return True

    with interrupts_deferred() as interrupted:
        try:
            matrix = getattr(xgb, kind)(Batches(interrupted), enable_categorical=feature_types is not None, **options)
        except _Interrupted as error:
            raise KeyboardInterrupt from error
    return matrix
