"""The estimators as stages of Spark ML: rows that are spread over executors, the same method, the same model.

A fit is one barrier stage. Its tasks grow trees together through XGBoost's collective, and add up a few hundred
numbers a round. The fitted model is an ordinary one: it predicts wherever scboost is installed, and its file is
scboost's.

Rows go to the tasks by their content, and lie there in the order of their content: how the data frame is partitioned
does not matter, and the same rows give the same model.
"""

from __future__ import annotations

import inspect
import os
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from scboost._model.document import Document
from scboost._runtime.communicator import WorkerError
from scboost._xgboost import import_xgboost
from scboost.estimators import classifier, regressor
from scboost.estimators.base import SCBoost
from scboost.estimators.checkpoint import Checkpoint
from scboost.estimators.migration import advice
from scboost.estimators.model_file import from_document, parse, to_document
from scboost.estimators.parameters import check_shareable, check_together, thread_count
from scboost.estimators.sharing import Outcome, Part, fit_part, predictions
from scboost.xgb.collective import tracking

try:
    import pandas as pd
    import pyarrow as pa
    from pyspark import BarrierTaskContext, TaskContext
    from pyspark.ml import Estimator, Model
    from pyspark.ml.functions import array_to_vector
    from pyspark.ml.linalg import VectorUDT
    from pyspark.ml.param import Param, Params, TypeConverters
    from pyspark.ml.param.shared import (
        HasFeaturesCol,
        HasLabelCol,
        HasPredictionCol,
        HasProbabilityCol,
        HasRawPredictionCol,
        HasValidationIndicatorCol,
        HasWeightCol,
    )
    from pyspark.ml.util import (
        DefaultParamsReadable,
        DefaultParamsReader,
        DefaultParamsWritable,
        DefaultParamsWriter,
        MLReadable,
        MLWritable,
        MLWriter,
    )
    from pyspark.sql import functions
    from pyspark.sql.types import StringType
except ImportError as error:
    raise ImportError("scboost.spark needs PySpark, pandas and pyarrow: pip install 'scboost[spark]'.") from error

__all__ = ["SCBoostClassificationModel", "SCBoostClassifier", "SCBoostRegressionModel", "SCBoostRegressor"]

_Class = TypeVar("_Class", bound=type)
_Stage = TypeVar("_Stage", bound="_Columns")
_FILE = "model.ubj"
_NOT_HERE = {
    "estimator": "only XGBoost's trees are grown by several workers",
    "n_jobs": "a task has as many threads as spark.task.cpus says",
    "warm_start": "use callbacks=[Checkpoint(path)] and resume_from=path",
}
# A vector of Spark ML as it is stored; only sparse ones have a size and indices.
_VECTOR = pa.schema(
    {"type": pa.int8(), "size": pa.int32(), "indices": pa.list_(pa.int32()), "values": pa.list_(pa.float64())}
)


def _param(name: str, doc: str, convert: Callable[[Any], Any] | None = None) -> Param:
    return Param(Params._dummy(), name, doc, convert)  # noqa: SLF001 - how parameters are declared


# --- columns ---------------------------------------------------------------------------------------------------------


class _Columns(HasFeaturesCol, HasLabelCol, HasPredictionCol, HasWeightCol, HasValidationIndicatorCol):  # type: ignore[misc]
    """Parameters of estimators and models: the columns."""

    featuresCols = _param(  # noqa: N815 - Spark's way to write names of columns
        "featuresCols",
        "columns of numbers, strings or booleans to use in place of one column of vectors",
        TypeConverters.toListString,
    )
    zeros_are_missing = _param(
        "zeros_are_missing",
        "whether zeros of vectors count as missing; their rows then stay sparse in memory",
        TypeConverters.toBoolean,
    )

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(featuresCols=None, zeros_are_missing=False)

    def setParams(self: _Stage, **params: Any) -> _Stage:  # noqa: PYI019 - typing.Self came with Python 3.11
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
            if name in _NOT_HERE:
                raise TypeError(f"{name}={value!r} cannot be used on Spark: {_NOT_HERE[name]}.")
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


def _matrix(vectors: Any, *, as_sparse: bool) -> Any:
    """Rows of X, of shape (n, d), from an Arrow array of the parts of vectors."""
    kind, size, indices, values = vectors.flatten()
    if values.null_count:
        raise ValueError(f"featuresCol has {values.null_count} rows without a vector (null).")
    is_dense = kind.to_numpy() == 1
    counts = values.value_lengths().to_numpy()
    widths = np.where(is_dense, counts, size.fill_null(0).to_numpy())
    width = int(widths.max(initial=0))
    if (widths != width).any():
        raise ValueError(f"featuresCol has vectors of {widths.min()} and of {width} entries.")
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such
        data = values.flatten().to_numpy(zero_copy_only=False).astype(np.float32)
    if is_dense.all() and not as_sparse:
        return data.reshape(len(counts), width)
    starts = np.concatenate([[0], np.cumsum(counts)])
    columns = np.arange(len(data)) - np.repeat(starts[:-1], counts)
    columns[np.repeat(~is_dense, counts)] = indices.flatten().to_numpy()
    matrix = sparse.csr_matrix((data, columns, starts), shape=(len(counts), width))
    return matrix if as_sparse else matrix.toarray()


# --- fit -------------------------------------------------------------------------------------------------------------


class _Fit:
    """What a task of the barrier stage does.

    Parameters
    ----------
    estimator : SCBoostClassifier or SCBoostRegressor
        Unfitted, of :mod:`scboost`.
    names : list of str or None
        Columns of X; None if it is one of vectors.
    as_sparse : bool
        Whether rows of vectors stay sparse.
    others : list of str
        Columns beside X: "label", and "weight" and "validation" if there are such.
    arguments : dict
        Of :func:`scboost.xgb.collective.joined`, but for the number of the worker.
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
        """Fit to the rows of this task; the first one answers with the model, or each with what is wrong."""
        context = BarrierTaskContext.get()
        features, others = [], []
        for batch in batches:  # what Arrow holds of vectors is let go
            features.append(self._rows(batch.column("features")))
            others.append(batch.select(self._others))
        X = self._joined(features)
        widths = context.allGather(str(0 if X is None else X.shape[1]))  # all are ready: nobody waits for a late one
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
        """Rows of X of one batch."""
        if self._names is not None:
            return pa.Table.from_struct_array(features)
        return _matrix(features, as_sparse=self._as_sparse)

    def _joined(self, rows: list[Any]) -> Any:
        """Rows of X of all batches; None if there is no batch, which would tell the number of columns."""
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


class _SparkEstimator(Estimator, _Columns, DefaultParamsReadable, DefaultParamsWritable):  # type: ignore[misc]
    """What the two estimators share."""

    _local_class: ClassVar[type[SCBoost]]
    _model_class: ClassVar[type[_SparkModel]]

    num_workers = _param("num_workers", "number of tasks that share a fit", TypeConverters.toInt)
    timeout = _param(
        "timeout", "seconds after which a task that does not answer the others ends the fit", TypeConverters.toInt
    )
    resume_from = _param("resume_from", "file of a checkpoint to go on from", TypeConverters.toString)

    def __init__(self, **params: Any) -> None:
        super().__init__()
        self._setDefault(num_workers=1, timeout=300, resume_from=None, **_parameters(self._local_class))
        self.setParams(**params)

    def _fit(self, dataset: Any) -> _SparkModel:
        local = self._local_class(**{name: self.getOrDefault(name) for name in _parameters(self._local_class)})
        local._validate_params()  # noqa: SLF001 - what a fit begins with, here before any task
        check_together(local)
        n_workers = self.getOrDefault("num_workers")
        if n_workers != 1:
            check_shareable(local)
        context = dataset.sparkSession.sparkContext
        _check_slots(context, n_workers)
        resume_from = self.getOrDefault("resume_from")
        label = functions.col(self.getLabelCol())
        if not isinstance(dataset.select(label).schema[0].dataType, StringType):
            label = label.cast("double")
        rows = {"features": self._features(dataset), "label": label}
        if weight := self._given("weightCol"):
            rows["weight"] = functions.col(weight).cast("double")
        if validation := self._given("validationIndicatorCol"):
            rows["validation"] = functions.coalesce(functions.col(validation).cast("boolean"), functions.lit(False))
        others = [name for name in rows if name != "features"]
        resume = None if resume_from is None else Path(resume_from).read_bytes()
        with tracking(n_workers, context.getConf().get("spark.driver.host"), self.getOrDefault("timeout")) as arguments:
            task = _Fit(
                local,
                self._given("featuresCols") or None,
                self.getOrDefault("zeros_are_missing"),
                others,
                arguments,
                resume,
            )
            answers = _answers(dataset.select(*(column.alias(name) for name, column in rows.items())), n_workers, task)
        outcome: Outcome | None = None
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
            outcome = outcome or answer
        if outcome is None:
            raise ValueError("The training data have no rows.")
        model = self._model_class(outcome.into(local))
        model._resetUid(self.uid)  # noqa: SLF001 - a model of Spark ML has the name of its estimator
        return self._copyValues(model)  # type: ignore[no-any-return]


def _answers(rows: Any, n_workers: int, task: _Fit) -> list[Any]:
    """Run a task on each of a number of partitions, at the same time, and return their answers."""
    content = functions.xxhash64(*rows.columns)
    placed = rows.withColumn("content", content).repartition(n_workers, "content").sortWithinPartitions("content")
    try:
        found = placed.drop("content").mapInArrow(task, "answer binary", barrier=True).collect()
    except Exception as error:
        # Spark ends the stage with the first task, and says what was wrong with it before the stack of its own code.
        reasons = re.search(r"finished unsuccessfully\.\s*(.*?)(?=\n\s+at |\Z)", str(error), re.DOTALL)
        said = reasons[1].strip() if reasons else str(error)
        raise WorkerError(f"The fit on Spark ended. {_last_checkpoint(task)}{said}") from error
    return [pickle.loads(row.answer) for row in found]  # noqa: S301 - from our own tasks


def _last_checkpoint(task: _Fit) -> str:
    for callback in task.estimator.callbacks or ():
        if isinstance(callback, Checkpoint) and callback.path.exists():
            with suppress(ValueError):  # it may need a loss of the user's
                done = callback.load().n_estimators_
                return f"The checkpoint {str(callback.path)!r} holds {done} rounds; go on with resume_from. "
    return ""


def _check_slots(context: Any, n_workers: int) -> None:
    """Refuse more tasks than there can be at the same time: Spark would wait for ten minutes."""
    if n_workers < 1:
        raise ValueError(f"num_workers={n_workers} must be at least 1.")
    local = re.fullmatch(r"local(?:\[(\d+|\*)(?:,.*)?\])?", context.master)
    if local is None:  # a cluster may still grow
        return
    cores = (os.cpu_count() or 1) if local[1] == "*" else int(local[1] or 1)
    slots = cores // int(context.getConf().get("spark.task.cpus", "1"))
    if n_workers > slots:
        raise ValueError(
            f"num_workers={n_workers} tasks run at the same time, but master={context.master!r} has room for {slots}; "
            f"use local[{n_workers}], or fewer workers."
        )


def _parameters(local: type[SCBoost]) -> dict[str, Any]:
    """Parameters of a local estimator that there are on Spark, with their defaults."""
    given = inspect.signature(local).parameters.values()
    return {parameter.name: parameter.default for parameter in given if parameter.name not in _NOT_HERE}


def _with_parameters_of(local: type[SCBoost]) -> Callable[[_Class], _Class]:
    """Give a class the parameters of a local estimator as Spark's, which parameter grids can name."""

    def add(cls: _Class) -> _Class:
        for name in _parameters(local):
            setattr(cls, name, _param(name, f"see scboost.{local.__name__}"))
        return cls

    return add


# --- models ----------------------------------------------------------------------------------------------------------


class _SparkModel(Model, _Columns, MLReadable, MLWritable):  # type: ignore[misc]
    """What the two models share."""

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
        """Parts of the answer for some rows."""
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
                    rows = pa.RecordBatch.from_pandas(batch, _VECTOR, preserve_index=False)
                    X = _matrix(rows.to_struct_array(), as_sparse=as_sparse)
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


class _Writer(MLWriter):  # type: ignore[misc]
    def __init__(self, instance: _SparkModel) -> None:
        super().__init__()
        self._instance = instance

    def saveImpl(self, path: str) -> None:
        DefaultParamsWriter.saveMetadata(self._instance, path, self.sc)
        # Spark has no writer of binary files: Hadoop's file system, which knows all addresses that Spark does.
        java, context = self.sc._jvm, self.sc._jsc  # noqa: SLF001 - the only way there
        target = java.org.apache.hadoop.fs.Path(path, _FILE)
        stream = target.getFileSystem(context.hadoopConfiguration()).create(target)
        stream.write(_document(self._instance.to_local()).encode())
        stream.close()


class _Reader(DefaultParamsReader):  # type: ignore[misc]
    def load(self, path: str) -> Any:
        model = super().load(path)
        file = self.sparkSession.read.format("binaryFile").load(f"{path}/{_FILE}").first()
        model._local = from_document(parse(bytes(file.content)), None)  # noqa: SLF001 - of this module
        return model


class _Probabilistic(HasProbabilityCol, HasRawPredictionCol):  # type: ignore[misc]
    """Columns of a classifier."""


class SCBoostClassificationModel(_SparkModel, _Probabilistic):
    """A fitted :class:`scboost.spark.SCBoostClassifier`: a transformer that adds the columns of predictions.

    Parameters are the names of columns, taken over from the estimator; an empty name leaves a column out.
    """

    def _outputs(self) -> dict[str, tuple[str, str]]:
        return {
            "prediction": ("double" if self._numbered() else "string", self.getPredictionCol()),
            "probability": ("array<double>", self.getProbabilityCol()),
            "raw": ("array<double>", self.getRawPredictionCol()),
        }

    def _numbered(self) -> bool:
        return bool(self._local.classes_.dtype.kind in "biuf")

    def _predict(self, X: Any) -> dict[str, Any]:
        labels, probabilities, scores = predictions(self._local.__fitted_model__(), X, thread_count(self._local.n_jobs))
        raw = np.stack([-scores[0], scores[0]], axis=1) if len(scores) == 1 else scores.T
        label = labels.astype(np.float64) if self._numbered() else labels
        return {"prediction": label, "probability": probabilities, "raw": raw.astype(np.float64)}


class SCBoostRegressionModel(_SparkModel):
    """A fitted :class:`scboost.spark.SCBoostRegressor`: a transformer that adds a column of predictions.

    Parameters are the names of columns, taken over from the estimator.
    """

    def _outputs(self) -> dict[str, tuple[str, str]]:
        several = len(self._local.intercept_) > 1
        return {"prediction": ("array<double>" if several else "double", self.getPredictionCol())}

    def _predict(self, X: Any) -> dict[str, Any]:
        return {"prediction": self._local.predict(X).astype(np.float64)}


@_with_parameters_of(classifier.SCBoostClassifier)
class SCBoostClassifier(_SparkEstimator, _Probabilistic):
    """:class:`scboost.SCBoostClassifier` as an estimator of Spark ML.

    Parameters are keywords, and attributes for a :class:`pyspark.ml.tuning.ParamGridBuilder`. Beside those listed
    there are all of the local class but ``estimator``, ``n_jobs`` (a task has ``spark.task.cpus`` threads) and
    ``warm_start``; with several workers, ``early_stopping_metric`` and splitters as ``cv`` are refused.

    Parameters
    ----------
    featuresCol : str, default="features"
        Column of vectors. A sparse vector is what it stands for: its zeros are zeros.
    featuresCols : list of str, optional
        Columns to use in its place: numbers, booleans, and strings, which are categories. Null is missing.
    zeros_are_missing : bool, default=False
        Whether zeros of vectors count as missing, as in a sparse matrix; the rows then stay sparse in memory.
    labelCol : str, default="label"
        Column of numbers or strings.
    weightCol : str, optional
        Column of row weights.
    validationIndicatorCol : str, optional
        Column that is true for validation rows, which choose the number of rounds, stop early and weigh the trees.
    predictionCol : str, default="prediction"
        Column of predicted labels: doubles, or strings if labels are strings.
    probabilityCol : str, default="probability"
        Column of probabilities: a vector in the order of the labels.
    rawPredictionCol : str, default="rawPrediction"
        Column of raw scores: a vector, minus and plus the log-odds where there are two classes.
    num_workers : int, default=1
        Number of tasks that share the fit; all run at the same time.
    timeout : int, default=300
        Seconds after which a task that does not answer the others ends the fit.
    resume_from : str, optional
        Checkpoint to go on from, that ``callbacks=[Checkpoint(path)]`` has written. The first task writes it and the
        driver reads it: use a folder that all machines see. The same rows give the model of an unbroken fit.
    **params
        Parameters of :class:`scboost.SCBoostClassifier`.

    Examples
    --------
    >>> from pyspark.ml.linalg import Vectors
    >>> from scboost.spark import SCBoostClassifier
    >>> rows = [(Vectors.dense([i % 7, i % 5]), float(i % 7 > 3)) for i in range(200)]
    >>> data = spark.createDataFrame(rows, ["features", "label"])  # doctest: +SKIP
    >>> model = SCBoostClassifier(num_workers=2, n_estimators=20).fit(data)  # doctest: +SKIP
    >>> model.transform(data).select("probability", "prediction").show()  # doctest: +SKIP
    """

    _local_class = classifier.SCBoostClassifier
    _model_class = SCBoostClassificationModel


@_with_parameters_of(regressor.SCBoostRegressor)
class SCBoostRegressor(_SparkEstimator):
    """:class:`scboost.SCBoostRegressor` as an estimator of Spark ML.

    Parameters are those of :class:`scboost.spark.SCBoostClassifier` without ``probabilityCol`` and
    ``rawPredictionCol``, and those of the local regressor. Several quantiles are predicted as a vector.

    Parameters
    ----------
    **params
        Names of columns, ``num_workers``, ``timeout``, ``resume_from``, and parameters of
        :class:`scboost.SCBoostRegressor`.
    """

    _local_class = regressor.SCBoostRegressor
    _model_class = SCBoostRegressionModel
