"""Pipelines of scikit-learn with an estimator of scboost, exported by skl2onnx: `make test-tools`."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import scboost.onnx
from data_makers import real_target, three_classes, two_classes
from scboost import SCBoostClassifier, SCBoostRegressor

skl2onnx = pytest.importorskip("skl2onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.filterwarnings("ignore")  # skl2onnx's own
FEW = {"n_estimators": 8, "n_jobs": 1}


@pytest.fixture(autouse=True)
def registered():
    scboost.onnx.register_converters()


def run(exported, inputs):
    return onnxruntime.InferenceSession(exported.SerializeToString()).run(None, inputs)


@pytest.mark.parametrize("make", [two_classes, three_classes])
def test_a_pipeline_of_a_classifier_exports_as_a_whole(make):
    X, y = make()
    X = np.asarray(X, dtype=np.float32)
    X[::7, 0] = np.nan
    pipeline = make_pipeline(SimpleImputer(strategy="constant", fill_value=0), SCBoostClassifier(**FEW)).fit(X, y)
    exported = skl2onnx.to_onnx(pipeline, X[:1], options={"zipmap": False})
    labels, probabilities = run(exported, {"X": X})
    np.testing.assert_array_equal(labels, pipeline.predict(X))
    np.testing.assert_allclose(probabilities, pipeline.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("params", [{}, {"loss": "quantile", "quantile": [0.1, 0.9]}], ids=["mean", "quantiles"])
def test_a_pipeline_of_a_regressor_exports_as_a_whole(params):
    X, y = real_target()
    X = np.asarray(X, dtype=np.float32)
    pipeline = make_pipeline(SimpleImputer(strategy="constant", fill_value=0), SCBoostRegressor(**FEW, **params)).fit(
        X, y
    )
    (predicted,) = run(skl2onnx.to_onnx(pipeline, X[:1]), {"X": X})
    expected = pipeline.predict(X)
    np.testing.assert_allclose(predicted, expected.reshape(len(X), -1), rtol=1e-4, atol=1e-4)


def test_categories_are_encoded_by_the_pipeline():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"colour": rng.choice(["red", "blue"], 200), "x": rng.normal(size=200).astype(np.float32)})
    y = (frame.colour == "red") ^ (frame.x > 0)
    encoder = make_column_transformer((OrdinalEncoder(), ["colour"]), remainder="passthrough")
    pipeline = make_pipeline(encoder, SCBoostClassifier(**FEW)).fit(frame, y)
    exported = skl2onnx.to_onnx(pipeline, frame[:1], options={"zipmap": False})
    _, probabilities = run(exported, {name: frame[[name]].to_numpy() for name in frame})
    np.testing.assert_allclose(probabilities, pipeline.predict_proba(frame), atol=1e-5)
    with pytest.raises(ValueError, match="Encode them in the pipeline"):
        skl2onnx.to_onnx(SCBoostClassifier(**FEW).fit(frame, y), frame[:1])
