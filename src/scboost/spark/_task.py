"""Task of the barrier stage: reads its samples and fits jointly with the other tasks."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import BarrierTaskContext
from scipy import sparse

from scboost._estimators.base import SCBoost
from scboost._estimators.sharing import Outcome, Part, fit_part
from scboost._xgboost import import_xgboost
from scboost.spark._columns import vectors_to_matrix


class FitTask:
    """Task of the barrier stage.

    Parameters
    ----------
    estimator : SCBoostClassifier or SCBoostRegressor
        Unfitted, of :mod:`scboost`.
    names : list of str or None
        Columns of X; None if it is one of vectors.
    as_sparse : bool
        Whether vectors stay sparse.
    others : list of str
        Columns beside X: "label", and "weight" and "validation" if there are such.
    arguments : dict
        Of :func:`scboost._engine.xgboost.collective.joined`, but for the number of the worker.
    resume : bytes or None
        Content of a checkpoint.
    """

    def __init__(
        self,
        estimator: SCBoost,
        names: list[str] | None,
        as_sparse: bool,
        others: list[str],
        arguments: dict[str, Any],
        resume: bytes | None,
    ) -> None:
        self.estimator, self._names, self._as_sparse = estimator, names, as_sparse
        self._others, self._arguments, self._resume = others, arguments, resume

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Fit to the samples of this task; the first one returns the model, or each task its error."""
        context = BarrierTaskContext.get()
        features, others = [], []
        for batch in batches:  # free the Arrow buffers of the vectors
            features.append(self._rows(batch.column("features")))
            others.append(batch.select(self._others))
        X = self._joined(features)
        widths = context.allGather(str(0 if X is None else X.shape[1]))  # wait until all tasks are ready
        if X is None:
            X = self._no_rows(max(map(int, widths)))
        arguments = {**self._arguments, "dmlc_task_id": f"{context.partitionId():06d}"}
        answer: Outcome | Exception | None
        try:
            estimator = self.estimator.set_params(n_jobs=context.cpus())
            answer = fit_part(estimator, self._part(X, others), arguments, self._resume)
        except import_xgboost().core.XGBoostError:  # which is a ValueError
            raise
        except (ValueError, TypeError) as error:  # which all tasks agree on; others end the stage
            answer = error
        yield pa.RecordBatch.from_pydict({"answer": [pickle.dumps(answer)]})

    def _rows(self, features: Any) -> Any:
        """Return X of one batch."""
        if self._names is not None:
            return pa.Table.from_struct_array(features)
        return vectors_to_matrix(features, as_sparse=self._as_sparse)

    def _joined(self, rows: list[Any]) -> Any:
        """Return X of all batches; None if there is no batch, which would tell the number of columns."""
        if len(rows) < 2:
            return rows[0] if rows else None
        if self._names is not None:
            return pa.concat_tables(rows)
        return sparse.vstack(rows, format="csr") if self._as_sparse else np.concatenate(rows)

    def _no_rows(self, width: int) -> Any:
        if self._names is not None:
            return pa.table({name: pa.nulls(0) for name in self._names})
        rows = np.zeros((0, width), dtype=np.float32)
        return sparse.csr_matrix(rows) if self._as_sparse else rows

    def _part(self, X: Any, others: list[Any]) -> Part:
        def values(name: str) -> npt.NDArray[Any] | None:
            if name not in self._others:
                return None
            found = [batch.column(name).to_numpy(zero_copy_only=False) for batch in others]
            return np.concatenate(found) if found else np.zeros(0)

        columns = [X, values("label"), values("weight")]
        validation = values("validation")
        if validation is None:
            return Part(*columns)
        is_held_out = validation.astype(bool)
        sets = [
            None if column is None else column.take(rows) if isinstance(column, pa.Table) else column[rows]
            for rows in (np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out))
            for column in columns
        ]
        return Part(*sets)
