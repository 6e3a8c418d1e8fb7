"""Columns of a Spark data frame: their parameters, and vectors as matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from scboost._core.foreign_arguments import advice

try:
    import pandas as pd  # noqa: F401 - Spark needs it to exchange data with Python
    import pyarrow as pa
    from pyspark.ml.linalg import VectorUDT
    from pyspark.ml.param import Param, Params, TypeConverters
    from pyspark.ml.param.shared import (
        HasFeaturesCol,
        HasLabelCol,
        HasPredictionCol,
        HasValidationIndicatorCol,
        HasWeightCol,
    )
    from pyspark.sql import functions
except ImportError as error:
    raise ImportError("scboost.spark needs PySpark, pandas and pyarrow: pip install 'scboost[spark]'.") from error

if TYPE_CHECKING:
    from typing_extensions import Self

NOT_ON_SPARK = {
    "estimator": "distributed fits support trees only",
    "max_trees": "compress the fitted model on a sample: scboost.compress",
    "n_jobs": "a task has as many threads as spark.task.cpus says",
    "warm_start": "use callbacks=[Checkpoint(path)] and resume_from=path",
}
"""Parameters of the local estimators that Spark does not have, and why."""
VECTOR = pa.schema(
    {"type": pa.int8(), "size": pa.int32(), "indices": pa.list_(pa.int32()), "values": pa.list_(pa.float64())}
)
"""A vector of Spark ML as it is stored; only sparse ones have a size and indices."""


def param(name: str, doc: str, convert: Callable[[Any], Any] | None = None) -> Param:
    return Param(Params._dummy(), name, doc, convert)  # noqa: SLF001 - how parameters are declared


class Columns(HasFeaturesCol, HasLabelCol, HasPredictionCol, HasWeightCol, HasValidationIndicatorCol):
    """Parameters of estimators and models: the columns."""

    featuresCols = param(  # noqa: N815 - Spark's naming convention
        "featuresCols",
        "columns of numbers, strings or booleans to use in place of one column of vectors",
        TypeConverters.toListString,
    )
    zeros_are_missing = param(
        "zeros_are_missing",
        "whether zeros of vectors count as missing; they then stay sparse in memory",
        TypeConverters.toBoolean,
    )

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(featuresCols=None, zeros_are_missing=False)

    def setParams(self, **params: Any) -> Self:
        """Set parameters by name.

        Parameters
        ----------
        **params
            Parameters.

        Returns
        -------
        self
            The stage.
        """
        known = [param.name for param in self.params]
        for name, value in params.items():
            if name in NOT_ON_SPARK:
                raise TypeError(f"{name}={value!r} cannot be used on Spark: {NOT_ON_SPARK[name]}.")
            if name not in known:
                raise TypeError(f"{type(self).__name__} has no parameter {name!r}. {advice(name, known)}")
        self._set(**params)
        return self

    def _given(self, name: str) -> Any:
        return self.getOrDefault(name) if self.isDefined(name) else None

    def _features(self, dataset: Any) -> Any:
        """Columns of X, as one of structs: of the named columns, or of the parts of a vector."""
        names = self._given("featuresCols")
        if names:
            return functions.struct(*names)
        name = self.getFeaturesCol()
        kind = dataset.select(name).schema[0].dataType
        if not isinstance(kind, VectorUDT):
            raise TypeError(
                f"featuresCol={name!r} must be a column of vectors, not {kind.simpleString()}; use "
                "pyspark.ml.feature.VectorAssembler, or name the columns in featuresCols."
            )
        return functions.unwrap_udt(name)


def vectors_to_matrix(vectors: Any, *, as_sparse: bool) -> Any:
    """Return X, of shape (n, d), from an Arrow array of the parts of vectors."""
    kind, size, indices, values = vectors.flatten()
    if values.null_count:
        raise ValueError(f"featuresCol has {values.null_count} rows without a vector (null).")
    is_dense = kind.to_numpy() == 1
    counts = values.value_lengths().to_numpy()
    widths = np.where(is_dense, counts, size.fill_null(0).to_numpy())
    width = int(widths.max(initial=0))
    if (widths != width).any():
        raise ValueError(f"featuresCol has vectors of {widths.min()} and of {width} entries.")
    with np.errstate(over="ignore"):  # values that are too large become infinite and are rejected
        data = values.flatten().to_numpy(zero_copy_only=False).astype(np.float32)
    if is_dense.all() and not as_sparse:
        return data.reshape(len(counts), width)
    starts = np.concatenate([[0], np.cumsum(counts)])
    columns = np.arange(len(data)) - np.repeat(starts[:-1], counts)
    columns[np.repeat(~is_dense, counts)] = indices.flatten().to_numpy()
    matrix = sparse.csr_matrix((data, columns, starts), shape=(len(counts), width))
    return matrix if as_sparse else matrix.toarray()
