"""Exports: XGBoost's classes, ONNX and treelite predict what the model predicts; what cannot be told is refused."""

import functools

import numpy as np
import pytest
import xgboost as xgb
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor

import scboost
from data_makers import FAST, coloured, real_target, three_classes, two_classes
from scboost import SCBoostClassifier, SCBoostRegressor, encode_features, to_onnx, to_treelite

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore:The model has no trees")


def with_many_categories():
    """Two categorical columns, of few and of many categories, with missing ones among them."""
    rng = np.random.default_rng(0)
    few, many = rng.integers(3, size=900), rng.integers(70, size=900)
    table = pd.DataFrame({"few": pd.Categorical(few), "many": pd.Categorical(many), "x": rng.normal(size=900)})
    table.loc[::7, "many"] = table.loc[::9, "few"] = np.nan
    return table, np.where(many % 3 == 0, 2.0, 0) * (few == 1) + table["x"] + (many > 60)


def with_gaps(data):
    X, y = data
    X = X.astype(np.float32)
    X[::5, 1] = np.nan
    return X, y


def sparse_rows():
    X, y = two_classes()
    return sparse.csr_matrix(np.where(np.abs(X) < 0.7, 0, X).astype(np.float32)), y


def unsplit_rounds():
    """Many classes of which some are learned early: their trees are single leaves."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)).astype(np.float32)
    y = np.where(X[:, 0] > 1, 2, (X[:, 1] > 0).astype(int))
    return X, y


CASES = {
    "binary": (SCBoostClassifier, {}, lambda: with_gaps(two_classes())),
    "classes": (SCBoostClassifier, {}, lambda: with_gaps(three_classes())),
    "single leaves": (SCBoostClassifier, {"min_child_weight": 20.0, "n_estimators": 40}, unsplit_rounds),
    "no trees": (SCBoostClassifier, {}, lambda: (np.zeros((30, 2), np.float32), np.arange(30) % 3 == 0)),
    "weighted": (SCBoostClassifier, {"weighting": "nonnegative", "covariance_penalty": 0.3}, two_classes),
    "sparse": (SCBoostClassifier, {}, sparse_rows),
    "regression": (SCBoostRegressor, {}, lambda: with_gaps(real_target())),
    "far away": (SCBoostRegressor, {}, lambda: (real_target()[0], real_target()[1] + 1e4)),
    "categories": (SCBoostRegressor, {"n_estimators": 30}, with_many_categories),
    "colours": (SCBoostClassifier, {}, coloured),
    "poisson": (SCBoostRegressor, {"loss": "poisson"}, lambda: (real_target()[0], 10 * np.abs(real_target()[1]))),
    "quantile": (SCBoostRegressor, {"loss": "quantile", "quantile": 0.3}, real_target),
}
FORMATS = pytest.mark.parametrize("case", CASES)


@functools.cache
def fitted(case):
    cls, params, make = CASES[case]
    X, y = make()
    return cls(**{**FAST, **params}).fit(X, y), X


def expected(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-6)


def dense(X):
    """Rows for those who take dense ones only: NaN where nothing is stored."""
    if isinstance(X, pd.DataFrame):
        return X
    if not sparse.issparse(X):
        return np.asarray(X, dtype=np.float32)
    filled = X.toarray()
    filled[filled == 0] = np.nan
    return filled


@FORMATS
def test_to_xgboost_predicts_the_same(case):
    model, X = fitted(case)
    exported = model.to_xgboost()
    assert isinstance(exported, xgb.XGBClassifier if hasattr(model, "predict_proba") else xgb.XGBRegressor)
    close(expected(exported, dense(X)), expected(model, X))
    if hasattr(model, "classes_"):
        np.testing.assert_array_equal(model.classes_[exported.predict(dense(X))], model.predict(X))


@FORMATS
def test_to_onnx_predicts_the_same(case):
    runtime = pytest.importorskip("onnxruntime")
    model, X = fitted(case)
    session = runtime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    # Zeros are passed to a model of sparse data; the graph treats them as missing.
    rows = X.toarray() if sparse.issparse(X) else encode_features(model, X)
    *label, found = session.run(None, {"X": rows})
    close(found, expected(model, X))
    if label:
        np.testing.assert_array_equal(label[0], model.predict(X))


@pytest.mark.parametrize("labels", [["ape", "bee", "cat"], [3, 5, 9], [0.5, 1.5, 2.5], [False, True]])
def test_onnx_has_the_labels(labels):
    runtime = pytest.importorskip("onnxruntime")
    X, y = with_gaps(three_classes() if len(labels) == 3 else two_classes())
    y = np.array(labels, dtype=object if isinstance(labels[0], float) else None)[y]
    if isinstance(labels[0], float):
        y = 2 * y.astype(float)
    model = SCBoostClassifier(**FAST).fit(X, y)
    session = runtime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    found = session.run(["label"], {"X": X})[0]
    np.testing.assert_array_equal(found, model.predict(X))


@FORMATS
def test_to_treelite_predicts_the_same(case):
    treelite = pytest.importorskip("treelite")
    model, X = fitted(case)
    found = treelite.gtil.predict(to_treelite(model), dense(encode_features(model, X))).reshape(X.shape[0], -1)
    wanted = expected(model, X).reshape(X.shape[0], -1)
    close(found, wanted[:, -found.shape[1] :])


def test_unseen_categories_and_numbers_outside_of_the_table():
    runtime = pytest.importorskip("onnxruntime")
    model, table = fitted("categories")
    session = runtime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    unseen = table.assign(many=pd.Categorical([1000] * 900), few=pd.Categorical([1, 77, None] * 300))
    close(session.run(None, {"X": encode_features(model, unseen)})[0], model.predict(unseen))
    rows = encode_features(model, table)
    rows[:, 1] = np.resize([-1, 70, 71, 1e6, np.nan], len(rows))
    close(session.run(None, {"X": rows})[0], model._model.ensemble.scores(rows)[0])


def test_several_quantiles():
    X, y = with_gaps(real_target())
    given = {**FAST, "n_estimators": 40, "learning_rate": 1.0, "min_child_weight": 1.0}
    model = SCBoostRegressor(loss="quantile", quantile=[0.4, 0.5, 0.6], **given).fit(X, y)
    wanted = model.predict(X)
    # The native model does not know that quantiles must not cross.
    native = model.to_xgboost().predict(X)
    assert (np.diff(native, axis=1) < 0).any()
    close(np.sort(native, axis=1), wanted)
    treelite = pytest.importorskip("treelite")
    found = treelite.gtil.predict(to_treelite(model), X).reshape(len(X), 3)
    close(np.sort(found, axis=1), wanted)
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    close(session.run(None, {"X": X})[0], wanted)


@pytest.mark.parametrize("case", ["binary", "classes", "regression", "poisson", "categories"])
def test_shap_explains_the_exported_model(case):
    shap = pytest.importorskip("shap", minversion="0.50")  # see test_classifier
    model, X = fitted(case)
    found = shap.TreeExplainer(model.to_xgboost()).shap_values(X)
    own = model.shap_values(X)
    close(np.moveaxis(found, -1, 1) if found.ndim == 3 else found, own[..., :-1])


@pytest.mark.parametrize("export", [to_onnx, to_treelite, lambda model: model.to_xgboost()])
def test_other_learners_are_refused(export):
    X, y = two_classes()
    model = SCBoostClassifier.from_paper(estimator=DecisionTreeRegressor(max_depth=2), n_estimators=2).fit(X, y)
    with pytest.raises(AttributeError, match=r"to_\w+\(\) needs the built-in trees"):
        export(model)


def test_foreign_models_are_refused_by_name():
    with pytest.raises(TypeError, match="to_treelite takes a fitted SCBoostClassifier or SCBoostRegressor, got XGBR"):
        scboost.to_treelite(xgb.XGBRegressor())
