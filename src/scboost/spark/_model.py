"""Base class of the Spark models: predictions and files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark import TaskContext
from pyspark.ml import Model
from pyspark.ml.functions import array_to_vector
from pyspark.ml.param.shared import HasProbabilityCol, HasRawPredictionCol
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLWritable, MLWriter
from pyspark.sql import functions

from scboost._estimators.base import SCBoost
from scboost._estimators.model_file import from_document, to_document
from scboost._model.document import Document
from scboost._model.file import parse
from scboost.spark._columns import VECTOR, Columns, vectors_to_matrix

_FILE = "model.ubj"


class SparkModel(Model, Columns, MLReadable, MLWritable):
    """Base class of the Spark models."""

    def __init__(self, local: Any = None) -> None:
        super().__init__()
        self._local = local

    def to_local(self) -> Any:
        """Return the model as an ordinary estimator of :mod:`scboost`, with the same predictions.

        Returns
        -------
        SCBoostClassifier or SCBoostRegressor
            Fitted.
        """
        return self._local

    def write(self) -> MLWriter:
        """Return the writer: ``write().overwrite().save(path)``.

        Returns
        -------
        MLWriter
            Writes a folder of Spark's metadata and the model file ``model.ubj``, which
            :func:`scboost.load_model` reads, too.
        """
        return _Writer(self)

    @classmethod
    def read(cls) -> DefaultParamsReader:
        """Return the reader: ``read().load(path)``.

        Returns
        -------
        DefaultParamsReader
            Reads what :meth:`write` has written.
        """
        return _Reader(cls)

    def _outputs(self) -> dict[str, tuple[str, str]]:
        """Type of each part of the answer, and the column that it goes to."""
        raise NotImplementedError

    def _predict(self, X: Any) -> dict[str, Any]:
        """Return the parts of the answer for some samples."""
        raise NotImplementedError

    def _transform(self, dataset: Any) -> Any:
        outputs = {part: both for part, both in self._outputs().items() if both[1]}
        is_vector = not self._given("featuresCols")
        as_sparse = self.getOrDefault("zeros_are_missing")

        def predicted(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            self._local.set_params(n_jobs=TaskContext.get().cpus())
            for batch in batches:
                X = batch
                if is_vector:
                    rows = pa.RecordBatch.from_pandas(batch, VECTOR, preserve_index=False)
                    X = vectors_to_matrix(rows.to_struct_array(), as_sparse=as_sparse)
                found = self._predict(X)
                yield pd.DataFrame({part: list(found[part]) for part in outputs})

        answer = f"{self.uid}_answer"
        predict = functions.pandas_udf(predicted, ", ".join(f"{part} {kind}" for part, (kind, _) in outputs.items()))
        result = dataset.withColumn(answer, predict(self._features(dataset)))
        for part, (kind, column) in outputs.items():
            found = functions.col(answer)[part]
            result = result.withColumn(column, array_to_vector(found) if kind.startswith("array") else found)
        return result.drop(answer)


def _document(local: SCBoost) -> Document:
    return to_document(local.__fitted_model__(), local.__stored_parameters__())


class _Writer(MLWriter):
    def __init__(self, instance: SparkModel) -> None:
        super().__init__()
        self._instance = instance

    def saveImpl(self, path: str) -> None:
        DefaultParamsWriter.saveMetadata(self._instance, path, self.sc)
        # Spark cannot write binary files: Hadoop's file system supports the same URLs.
        java, context = self.sc._jvm, self.sc._jsc  # noqa: SLF001 - no public access
        target = java.org.apache.hadoop.fs.Path(path, _FILE)
        stream = target.getFileSystem(context.hadoopConfiguration()).create(target)
        stream.write(_document(self._instance.to_local()).encode())
        stream.close()


class _Reader(DefaultParamsReader):
    def load(self, path: str) -> Any:
        model = super().load(path)
        file = self.sparkSession.read.format("binaryFile").load(f"{path}/{_FILE}").first()
        model._local = from_document(parse(bytes(file.content)), None)  # noqa: SLF001 - of this module
        return model


class Probabilistic(HasProbabilityCol, HasRawPredictionCol):
    """Columns of a classifier."""
