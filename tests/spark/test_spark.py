"""Estimators and models of Spark ML: tasks that share a fit, and what surrounds it."""

import os
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

import scboost
from data_makers import rounded
from scboost import Checkpoint
from scboost._runtime.communicator import WorkerError

pytest.importorskip("pyspark")
if shutil.which("java") is None:
    pytest.skip("Spark needs a Java runtime", allow_module_level=True)

from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import BinaryClassificationEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.ml.linalg import Vectors
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder
from pyspark.sql import SparkSession, functions
from scipy import sparse

from scboost.spark import (
    SCBoostClassificationModel,
    SCBoostClassifier,
    SCBoostRegressionModel,
    SCBoostRegressor,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # Spark's own, of threads, sockets and versions of pandas


@pytest.fixture(scope="module")
def spark():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[4]").config("spark.ui.enabled", "false")
    for name, value in {"sql.shuffle.partitions": 2, "default.parallelism": 2, "driver.host": "127.0.0.1"}.items():
        builder = builder.config(f"spark.{name}", value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


X, Y = rounded(n=600)
_, Y3 = rounded(n=600, n_classes=3)
TARGET = np.nan_to_num(X).sum(axis=1).round(3)
WEIGHT = np.random.default_rng(1).integers(1, 4, size=600).astype(float)
PARAMS = {"n_estimators": 8, "random_state": 0}
VECTORS = [Vectors.dense(row) for row in X.astype(float)]


def rows(spark, vectors=VECTORS, **columns):
    """A data frame of vectors, other columns, and the number of each row."""
    names = ["features", *columns, "i"]
    values = zip(vectors, *(np.asarray(c).tolist() for c in columns.values()), range(len(vectors)), strict=True)
    return spark.createDataFrame(list(values), names)


def found(model, data, column):
    return np.array([row[0] for row in model.transform(data).orderBy("i").select(column).collect()])


def fit_local(name, y, weight=None, X=X, **params):
    return getattr(scboost, name)(**{**PARAMS, **params}, n_jobs=1, engine="xgboost").fit(X, y, weight)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_two_classes_by_any_number_of_workers(spark, workers):
    data = rows(spark, label=Y, w=WEIGHT)
    model = SCBoostClassifier(num_workers=workers, weightCol="w", **PARAMS).fit(data)
    expected = fit_local("SCBoostClassifier", Y, WEIGHT)
    np.testing.assert_allclose(found(model, data, "probability"), expected.predict_proba(X), atol=1e-6)
    raw = found(model, data, "rawPrediction")
    np.testing.assert_allclose(raw[:, 1], expected.decision_function(X), atol=1e-5)
    np.testing.assert_array_equal(raw[:, 0], -raw[:, 1])
    np.testing.assert_array_equal(found(model, data, "prediction"), raw[:, 1] > 0)
    local = model.to_local()
    assert type(local) is scboost.SCBoostClassifier
    np.testing.assert_array_equal(local.predict_proba(X), found(model, data, "probability"))


def test_three_classes_named_by_strings_in_any_order_and_partitions(spark):
    names = np.array(["low", "middle", "high"])[Y3]
    data = rows(spark, label=names)
    estimator = SCBoostClassifier(num_workers=2, **PARAMS)
    model = estimator.fit(data)
    expected = fit_local("SCBoostClassifier", names)
    np.testing.assert_allclose(found(model, data, "probability"), expected.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(found(model, data, "prediction"), expected.predict(X))
    assert found(model, data, "rawPrediction").shape == (600, 3)
    other = estimator.fit(data.orderBy(functions.rand(0)).repartition(7)).to_local()
    np.testing.assert_array_equal(other.decision_function(X), model.to_local().decision_function(X))


def test_regression_and_several_quantiles(spark):
    data = rows(spark, y=TARGET)
    estimator = SCBoostRegressor(num_workers=2, labelCol="y", predictionCol="p", **PARAMS)
    expected = fit_local("SCBoostRegressor", TARGET)
    model = estimator.fit(data)
    assert type(model) is SCBoostRegressionModel
    np.testing.assert_allclose(found(model, data, "p"), expected.predict(X), atol=1e-5)
    model = estimator.copy({estimator.loss: "quantile", estimator.quantile: [0.1, 0.9]}).fit(data)
    np.testing.assert_allclose(found(model, data, "p"), model.to_local().predict(X))
    assert found(model, data, "p").shape == (600, 2)


def test_columns_of_numbers_strings_and_booleans_with_nulls(spark, tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcdef")).astype(float)
    frame["label"] = frame["a"].fillna(0)  # a name that is not that of the target
    frame["colour"] = np.array(["red", "green", None, "blue"], dtype=object)[np.arange(600) // 150]
    frame["even"] = np.arange(600) % 2 == 0
    values = [[None if v is None or v != v else v for v in row] for row in frame.astype(object).to_numpy()]  # noqa: PLR0124
    names = [*frame.columns]
    data = spark.createDataFrame(
        [[*row, str(y), i] for i, (row, y) in enumerate(zip(values, Y, strict=True))],
        ", ".join([*(f"{n} double" for n in "abcdef"), "label double, colour string, even boolean, y string, i int"]),
    )
    model = SCBoostClassifier(num_workers=3, featuresCols=names, labelCol="y", probabilityCol="", **PARAMS).fit(data)
    expected = fit_local("SCBoostClassifier", Y.astype(str), X=frame)
    local = model.to_local()
    np.testing.assert_array_equal(local.feature_names_in_, names)
    np.testing.assert_allclose(local.predict_proba(frame), expected.predict_proba(frame), atol=1e-6)
    model.write().overwrite().save(str(tmp_path / "model"))
    model = SCBoostClassificationModel.load(str(tmp_path / "model"))
    assert "probability" not in model.transform(data).columns
    np.testing.assert_array_equal(found(model, data, "rawPrediction")[:, 1], local.decision_function(frame))
    np.testing.assert_array_equal(found(model, data, "prediction"), local.predict(frame))


def test_zeros_of_sparse_vectors_are_zeros_or_missing(spark):
    values = np.where(np.abs(np.nan_to_num(X)) < 0.7, 0, X)
    mixed = [
        Vectors.dense(row) if i % 3 else Vectors.sparse(6, np.flatnonzero(row), row[row != 0])
        for i, row in enumerate(values.astype(float))
    ]
    data = rows(spark, mixed, label=Y)
    for missing, given in ((False, values), (True, sparse.csr_matrix(values))):
        model = SCBoostClassifier(num_workers=2, zeros_are_missing=missing, **PARAMS).fit(data)
        expected = fit_local("SCBoostClassifier", Y, X=given)
        np.testing.assert_allclose(model.to_local().predict_proba(given), expected.predict_proba(given), atol=1e-6)
        np.testing.assert_array_equal(found(model, data, "probability"), model.to_local().predict_proba(given))


def test_early_stopping_on_a_validation_set(spark):
    held_out = np.arange(600) % 3 == 0
    data = rows(spark, label=Y, w=WEIGHT, held_out=held_out)
    estimator = SCBoostClassifier(
        num_workers=2, weightCol="w", validationIndicatorCol="held_out", learning_rate=0.5, random_state=0
    )
    expected = scboost.SCBoostClassifier(learning_rate=0.5, random_state=0, n_jobs=1, engine="xgboost").fit(
        *(a[~held_out] for a in (X, Y, WEIGHT)),
        **{f"{n}_val": a[held_out] for n, a in {"X": X, "y": Y, "sample_weight": WEIGHT}.items()},
    )
    local = estimator.fit(data).to_local()
    assert local.n_estimators_ == expected.n_estimators_
    np.testing.assert_allclose(local.predict_proba(X), expected.predict_proba(X), atol=1e-5)


def test_a_pipeline_with_cross_validation_is_saved_and_loaded(spark, tmp_path):
    columns = spark.createDataFrame([[*map(float, np.nan_to_num(row)), int(y)] for row, y in zip(X, Y, strict=True)])
    columns = columns.withColumnRenamed("_7", "label")
    classifier = SCBoostClassifier(num_workers=2, **PARAMS)
    assembler = VectorAssembler(inputCols=[f"_{i}" for i in range(1, 7)], outputCol="features")
    Pipeline(stages=[assembler, classifier]).save(str(tmp_path / "pipeline"))
    pipeline = Pipeline.load(str(tmp_path / "pipeline"))
    classifier = pipeline.getStages()[1]
    grid = ParamGridBuilder().addGrid(classifier.n_estimators, [1, 6]).build()
    search = CrossValidator(
        estimator=pipeline, estimatorParamMaps=grid, evaluator=BinaryClassificationEvaluator(), numFolds=2, seed=0
    )
    best = search.fit(columns)
    assert 0.7 < best.avgMetrics[0] < best.avgMetrics[1]
    best.bestModel.save(str(tmp_path / "model"))
    again = PipelineModel.load(str(tmp_path / "model"))
    assert again.stages[1].to_local().n_estimators == 6
    said, expected = (m.transform(columns).select("probability").collect() for m in (again, best.bestModel))
    assert said == expected
    assert len(scboost.load_model(next((tmp_path / "model" / "stages").glob("1_*/model.ubj"))).weights_) == 6


def test_workers_may_have_no_samples(spark):
    data = rows(spark, [Vectors.dense([0.0, v]) for v in (1, 1, 1, 2, 2, 2)], label=[0, 0, 0, 1, 1, 1])
    model = SCBoostClassifier(num_workers=4, min_child_weight=0, **PARAMS).fit(data)
    np.testing.assert_array_equal(found(model, data, "prediction"), [0, 0, 0, 1, 1, 1])
    data = data.selectExpr("string(label) AS name", "double(i) AS number", "label")
    model = SCBoostClassifier(num_workers=4, min_child_weight=0, featuresCols=["name", "number"], **PARAMS).fit(data)
    np.testing.assert_array_equal([r.prediction for r in model.transform(data).collect()], [0, 0, 0, 1, 1, 1])


def test_a_killed_worker_ends_the_fit_and_it_resumes_bit_identically(spark, tmp_path):
    path = tmp_path / "fit.checkpoint"

    class Kill:
        def __call__(self, model):
            if model.n_estimators_ == 7:
                os.kill(os.getpid(), signal.SIGKILL)

    data = rows(spark, label=Y)
    estimator = SCBoostClassifier(num_workers=2, **PARAMS)
    whole = estimator.fit(data).to_local()
    broken = estimator.copy({estimator.callbacks: [Checkpoint(path, every=3), Kill()]})
    # Whichever task Spark hears first: the lost one, or the other, which knows the round.
    with pytest.raises(WorkerError, match=r"(?s)fit.checkpoint' has 6 rounds; .*(exited unexpectedly|in round [78])"):
        broken.fit(data)
    resumed = estimator.fit(data, {estimator.resume_from: str(path)}).to_local()
    assert resumed.n_estimators_ == 8
    np.testing.assert_array_equal(resumed.decision_function(X), whole.decision_function(X))
    with pytest.raises(ValueError, match="y has changed"):
        estimator.fit(rows(spark, label=1 - Y), {estimator.resume_from: str(path)})


def test_a_worker_that_stops_answering_ends_the_fit_after_the_timeout(spark):
    class Stop:
        def __call__(self, model):
            if model.n_estimators_ == 3:
                os.kill(os.getpid(), signal.SIGSTOP)

    with pytest.raises(WorkerError, match=r"The fit ended in round \d"):
        SCBoostClassifier(num_workers=2, timeout=5, callbacks=[Stop()], **PARAMS).fit(rows(spark, label=Y))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"vectors": [Vectors.dense([np.inf] * 6), *VECTORS[1:]]}, ValueError, "infinity"),
        ({"vectors": [None, *VECTORS[1:]]}, WorkerError, "featuresCol has 1 rows without a vector"),
        ({"vectors": [Vectors.dense([1.0]), *VECTORS[1:]]}, (ValueError, WorkerError), "vectors of 1 and of 6|differ"),
        ({"label": np.zeros(600)}, ValueError, "number of classes has to be greater than one"),
        ({"label": [None, *Y[1:].tolist()]}, ValueError, "y has missing|NaN"),
    ],
)
def test_errors_of_samples_are_raised_on_the_driver(spark, change, error, message):
    given = {"label": Y, **change}
    with pytest.raises(error, match=message):
        SCBoostClassifier(num_workers=2, **PARAMS).fit(rows(spark, given.pop("vectors", VECTORS), **given))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"estimator": 1}, "estimator=1 cannot be used on Spark: distributed fits support trees only"),
        ({"n_jobs": 2}, "n_jobs=2 cannot be used on Spark: .*spark.task.cpus"),
        ({"maxDepth": 2}, "no parameter 'maxDepth'.*max_depth"),
        ({"iterations": 2}, "use n_estimators"),
        ({"early_stopping_metric": "roc_auc"}, "early_stopping_metric='roc_auc' cannot be used with several workers"),
        ({"max_depth": 0}, "'max_depth' parameter"),
        ({"num_workers": 5}, r"num_workers=5 tasks run at the same time, but master='local\[4\]' has room for 4"),
        ({"num_workers": 0}, "num_workers=0 must be at least 1"),
        ({"featuresCol": "i"}, "featuresCol='i' must be a column of vectors, not bigint"),
        ({"featuresCols": ["none"]}, "none"),
    ],
)
def test_invalid_arguments_are_rejected_before_any_work(spark, params, message):
    data = rows(spark, VECTORS[:4], label=[0, 1, 0, 1])
    with pytest.raises(Exception, match=message) as caught:
        SCBoostClassifier(**{"num_workers": 2, **params}).fit(data)
    assert not isinstance(caught.value, WorkerError)


LOCAL_CLUSTER = """
import numpy as np, scboost
from pyspark.ml.linalg import Vectors
from pyspark.sql import SparkSession
from data_makers import rounded
from scboost.spark import SCBoostClassifier
X, y = rounded(n=300)
builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
rows = [(Vectors.dense(row), int(c)) for row, c in zip(X.astype(float), y)]
data = spark.createDataFrame(rows, ["features", "label"])
model = SCBoostClassifier(num_workers=2, n_estimators=4, random_state=0).fit(data)
expected = scboost.SCBoostClassifier(n_estimators=4, random_state=0, n_jobs=1).fit(X, y)
print("difference", np.abs(model.to_local().predict_proba(X) - expected.predict_proba(X)).max() < 1e-6)
spark.stop()
"""


def test_two_executors_in_separate_processes(tmp_path):
    paths = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(  # noqa: S603 - our code
        [sys.executable, "-c", LOCAL_CLUSTER],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths},
        cwd=tmp_path,
    )
    assert "difference True" in done.stdout, done.stderr[-2000:]
