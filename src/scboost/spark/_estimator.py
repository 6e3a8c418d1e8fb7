"""Base class of the Spark estimators: parameters and ``fit``."""

from __future__ import annotations

import inspect
import os
import pickle
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pyspark.ml import Estimator
from pyspark.ml.param import TypeConverters
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
from pyspark.sql import functions
from pyspark.sql.types import StringType

from scboost._core.parameters import Parameters
from scboost._core.rules import check_distributed, check_parameters
from scboost._engine.xgboost.collective import tracking
from scboost._estimators.base import SCBoost
from scboost._estimators.checkpoint import Checkpoint
from scboost._estimators.sharing import Outcome
from scboost._runtime.communicator import WorkerError
from scboost.spark._columns import NOT_ON_SPARK, Columns, param
from scboost.spark._model import SparkModel
from scboost.spark._task import FitTask

_Class = TypeVar("_Class", bound=type)


class SparkEstimator(Estimator, Columns, DefaultParamsReadable, DefaultParamsWritable):
    """Base class of the Spark estimators."""

    _local_class: ClassVar[type[SCBoost]]
    _model_class: ClassVar[type[SparkModel]]

    num_workers = param("num_workers", "number of tasks that share a fit", TypeConverters.toInt)
    timeout = param("timeout", "seconds after which the fit fails if a task does not respond", TypeConverters.toInt)
    resume_from = param("resume_from", "file of a checkpoint to resume", TypeConverters.toString)

    def __init__(self, **params: Any) -> None:
        super().__init__()
        self._setDefault(num_workers=1, timeout=300, resume_from=None, **_parameters(self._local_class))
        self.setParams(**params)

    def _fit(self, dataset: Any) -> SparkModel:
        local = self._local_class(**{name: self.getOrDefault(name) for name in _parameters(self._local_class)})
        local.__check_parameters__()  # before any task
        parameters = Parameters.of(local.get_params(deep=False))
        check_parameters(parameters)
        n_workers = self.getOrDefault("num_workers")
        if n_workers != 1:
            check_distributed(parameters)
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
            task = FitTask(
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
        fitted: SparkModel = self._copyValues(model)
        return fitted


def _answers(rows: Any, n_workers: int, task: FitTask) -> list[Any]:
    """Run a task on each of a number of partitions, at the same time, and return their answers."""
    content = functions.xxhash64(*rows.columns)
    placed = rows.withColumn("content", content).repartition(n_workers, "content").sortWithinPartitions("content")
    try:
        found = placed.drop("content").mapInArrow(task, "answer binary", barrier=True).collect()
    except Exception as error:
        # Spark ends the stage with the first task, and says what was wrong with it before the stack of its own code.
        reasons = re.search(r"finished unsuccessfully\.\s*(.*?)(?=\n\s+at |\Z)", str(error), re.DOTALL)
        reason = reasons[1].strip() if reasons else str(error)
        raise WorkerError(f"The fit on Spark ended. {_last_checkpoint(task)}{reason}") from error
    return [pickle.loads(row.answer) for row in found]  # noqa: S301 - from our own tasks


def _last_checkpoint(task: FitTask) -> str:
    for callback in task.estimator.callbacks or ():
        if isinstance(callback, Checkpoint) and callback.path.exists():
            with suppress(ValueError):  # it may need a user-defined loss
                done = callback.load().n_estimators_
                return f"The checkpoint {str(callback.path)!r} has {done} rounds; resume with resume_from. "
    return ""


def _check_slots(context: Any, n_workers: int) -> None:
    """Reject more workers than concurrent tasks, for which Spark would wait ten minutes."""
    if n_workers < 1:
        raise ValueError(f"num_workers={n_workers} must be at least 1.")
    local = re.fullmatch(r"local(?:\[(\d+|\*)(?:,.*)?\])?", context.master)
    if local is None:  # a cluster may still add executors
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
    return {parameter.name: parameter.default for parameter in given if parameter.name not in NOT_ON_SPARK}


def with_parameters_of(local: type[SCBoost]) -> Callable[[_Class], _Class]:
    """Give a class the parameters of a local estimator as Spark's, which parameter grids can name."""

    def add(cls: _Class) -> _Class:
        for name in _parameters(local):
            setattr(cls, name, param(name, f"see scboost.{local.__name__}"))
        return cls

    return add
