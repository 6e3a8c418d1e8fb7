"""The estimators as stages of Spark ML: samples distributed over executors, the same method, the same model.

A fit is one barrier stage. Its tasks grow trees together through XGBoost's collective, and add up a few hundred
numbers a round. The fitted model is an ordinary one: it predicts wherever scboost is installed, and its file is
scboost's.

Samples are assigned to tasks by a hash of their content and sorted by it: results do not depend on
the partitioning of the data frame.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from scboost._estimators import classifier, regressor
from scboost._estimators.parameters import thread_count
from scboost._estimators.sharing import missing_estimator, predictions
from scboost.spark._columns import Columns as _Columns  # noqa: F401 - first: it says which packages are missing
from scboost.spark._estimator import SparkEstimator, with_parameters_of
from scboost.spark._model import Probabilistic, SparkModel

__all__ = ["SCBoostClassificationModel", "SCBoostClassifier", "SCBoostRegressionModel", "SCBoostRegressor"]


class SCBoostClassificationModel(SparkModel, Probabilistic):
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


class SCBoostRegressionModel(SparkModel):
    """A fitted :class:`scboost.spark.SCBoostRegressor`: a transformer that adds a column of predictions.

    Parameters are the names of columns, taken over from the estimator.
    """

    def _outputs(self) -> dict[str, tuple[str, str]]:
        several = len(self._local.intercept_) > 1
        return {"prediction": ("array<double>" if several else "double", self.getPredictionCol())}

    def _predict(self, X: Any) -> dict[str, Any]:
        return {"prediction": self._local.predict(X).astype(np.float64)}


@with_parameters_of(classifier.SCBoostClassifier)
class SCBoostClassifier(SparkEstimator, Probabilistic):
    """:class:`scboost.SCBoostClassifier` as an estimator of Spark ML.

    Parameters are keyword arguments, and attributes for :class:`pyspark.ml.tuning.ParamGridBuilder`. All parameters of
    the local class are available except ``estimator``, ``n_jobs`` (a task has ``spark.task.cpus`` threads) and
    ``warm_start``. ``early_stopping_metric`` and splitters as ``cv`` need a single worker.

    Parameters
    ----------
    featuresCol : str, default="features"
        Column of vectors. Zeros of sparse vectors are zeros, not missing values.
    featuresCols : list of str, optional
        Columns to use instead: numeric, boolean, or string columns, which are categorical. Null is missing.
    zeros_are_missing : bool, default=False
        Whether zeros of vectors count as missing, as in a sparse matrix; the samples then stay sparse in memory.
    labelCol : str, default="label"
        Column of numbers or strings.
    weightCol : str, optional
        Column of sample weights.
    validationIndicatorCol : str, optional
        Column that is true for validation samples, used for early stopping, round selection and tree weights.
    predictionCol : str, default="prediction"
        Column of predicted labels: doubles, or strings if labels are strings.
    probabilityCol : str, default="probability"
        Column of probabilities: a vector in the order of the labels.
    rawPredictionCol : str, default="rawPrediction"
        Column of raw scores: a vector, minus and plus the log-odds where there are two classes.
    num_workers : int, default=1
        Number of tasks that share the fit; all run at the same time.
    timeout : int, default=300
        Seconds after which the fit fails if a task does not respond.
    resume_from : str, optional
        Checkpoint to resume, written by ``callbacks=[Checkpoint(path)]``. The first task writes it and the
        driver reads it: use a shared folder. With the same samples, the result equals that of an uninterrupted fit.
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


@with_parameters_of(regressor.SCBoostRegressor)
class SCBoostRegressor(SparkEstimator):
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


def __getattr__(name: str) -> NoReturn:
    raise missing_estimator(__name__, name)
