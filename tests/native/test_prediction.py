"""Predictions and SHAP values of the compiled kernels: equal to those of XGBoost reading the same trees."""

import numpy as np
import pytest
import xgboost as xgb
from scipy import sparse

pytest.importorskip("scboost._engine.native._native")

from scboost._engine.native.trees import Pool, TreePredictor
from scboost._model.document import Document


def make(n=700, d=7, *, missing=0.2, categorical=True, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    if categorical:
        X[:, 0] = rng.integers(5, size=n)
        X[:, 1] = rng.integers(60, size=n)
    y = np.digitize(X[:, 2] + np.sin(X[:, 1]) + rng.normal(size=n), [-1, 1])
    X[rng.random((n, d)) < missing] = np.nan
    return X, y


def train(X, y, *, categorical=True, n_rounds=12, **params):
    types = ["c" if categorical and j < 2 else "q" for j in range(X.shape[1])]
    matrix = xgb.DMatrix(X, y, feature_types=types, enable_categorical=True)
    return xgb.train({"nthread": 1, "max_cat_to_onehot": 8, **params}, matrix, n_rounds), matrix


CASES = {
    "one output": {"objective": "reg:squarederror", "base_score": 0.0},
    "three classes": {"objective": "multi:softprob", "num_class": 3, "base_score": 0.0},
    "deep": {"objective": "reg:squarederror", "base_score": 0.0, "max_depth": 0, "max_leaves": 200,
             "grow_policy": "lossguide", "min_child_weight": 0},
    "stumps": {"objective": "reg:squarederror", "base_score": 0.0, "max_depth": 1},
}  # fmt: skip


@pytest.fixture(params=CASES)
def fitted(request):
    X, y = make()
    booster, matrix = train(X, y, **CASES[request.param])
    document = Document.of(booster)
    predictor = TreePredictor(document.trees, document.outputs.tolist(), X.shape[1], document.n_outputs)
    return X, booster, matrix, document, predictor


def forms(X):
    stored = ~np.isnan(X)
    matrix = sparse.csr_matrix((X[stored], np.nonzero(stored)), shape=X.shape)
    return {"float32": X, "float64": X.astype(np.float64), "csr": matrix, "csr array": sparse.csr_array(matrix)}


def test_scores_equal_xgboost(fitted):
    X, booster, matrix, document, predictor = fitted
    margin = booster.predict(matrix, output_margin=True).reshape(len(X), -1).T - document.base_margin()[:, None]
    for form, data in forms(X).items():
        np.testing.assert_allclose(predictor.scores(data), margin, rtol=2e-6, atol=2e-6, err_msg=form)


def test_predictions_of_many_samples_equal_those_of_few(fitted):
    """Blocks of samples are larger then; with threads, only of even more samples."""
    X, *_, predictor = fitted
    for copies, pool in ((12, None), (12, Pool(2)), (190, Pool(2))):
        many = np.tile(X, (copies, 1))[:-3]
        for predict in (predictor.scores, predictor.tree_values):
            np.testing.assert_array_equal(predict(many, pool), np.tile(predict(X), copies)[:, :-3])
        np.testing.assert_array_equal(predictor.nodes(many, pool), np.tile(predictor.nodes(X), (copies, 1))[:-3])


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 63, 64, 65])
def test_scores_of_a_subset_equal_those_of_all_samples(fitted, count):
    X, *_, predictor = fitted
    np.testing.assert_array_equal(predictor.scores(X[:count]), predictor.scores(X)[:, :count])


def test_leaf_nodes_equal_xgboost(fitted):
    X, booster, matrix, _, predictor = fitted
    expected = booster.predict(matrix, pred_leaf=True).reshape(len(X), -1)
    for form, data in forms(X).items():
        np.testing.assert_array_equal(predictor.nodes(data), expected, err_msg=form)


def test_tree_values_are_those_of_the_leaf_nodes(fitted):
    X, _, _, document, predictor = fitted
    nodes = predictor.nodes(X)
    for t, (tree, values) in enumerate(zip(document.trees, predictor.tree_values(X), strict=True)):
        np.testing.assert_array_equal(values, tree["split_conditions"][nodes[:, t]])


def test_shap_values_equal_xgboost(fitted):
    X, booster, matrix, document, predictor = fitted
    expected = booster.predict(matrix, pred_contribs=True).reshape(len(X), document.n_outputs, -1)
    shap = predictor.shap_values(X)
    shap[:, :, -1] += document.base_margin()
    np.testing.assert_allclose(shap, expected, rtol=1e-4, atol=2e-5)
    for form, data in forms(X).items():
        np.testing.assert_array_equal(predictor.shap_values(data)[:, :, :-1], shap[:, :, :-1], err_msg=form)


def test_shap_values_sum_to_the_scores(fitted):
    X, *_, predictor = fitted
    np.testing.assert_allclose(predictor.shap_values(X).sum(axis=2).T, predictor.scores(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_threads", [2, 4, 8])
def test_predictions_are_bit_identical_for_any_number_of_threads(fitted, n_threads):
    X, *_, predictor = fitted
    threads = Pool(n_threads)
    np.testing.assert_array_equal(predictor.scores(X, threads), predictor.scores(X))
    np.testing.assert_array_equal(predictor.shap_values(X, threads), predictor.shap_values(X))


def test_unknown_categories_and_infinite_values_go_where_xgboost_sends_them(fitted):
    X, booster, _, _, predictor = fitted
    strange = np.array([-1.0, 59.0, 60.0, 1e6, 2.0**24, 3e38, 2.5], dtype=np.float32)
    X = X[: len(strange)].copy()
    X[:, 1] = strange
    X[:, 3] = [-3e38, 3e38, 0.0, -0.0, 1e-45, np.nan, 1.0]
    margin = booster.inplace_predict(X, predict_type="margin", validate_features=False)
    scores = predictor.scores(X)
    np.testing.assert_allclose(scores, np.asarray(margin).reshape(len(X), -1).T, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(("n_categories", "max_depth"), [(5, 5), (32, 8), (32, 10), (60, 8)])
def test_trees_of_any_depth_and_sets_of_any_size_equal_xgboost(n_categories, max_depth):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 4)).astype(np.float32)
    X[:, 0] = rng.integers(n_categories, size=len(X))
    X[:n_categories, 0] = np.arange(n_categories)
    y = np.sin(3 * X[:, 1]) + rng.normal(size=n_categories)[X[:, 0].astype(int)] * X[:, 2]
    X[n_categories:][rng.random((len(X) - n_categories, 4)) < 0.1] = np.nan
    matrix = xgb.DMatrix(X, y, feature_types=["c", "q", "q", "q"], enable_categorical=True)
    params = {"nthread": 1, "max_cat_to_onehot": 1, "max_depth": max_depth, "min_child_weight": 0, "base_score": 0.0}
    booster = xgb.train(params, matrix, 3)
    trees = Document.of(booster).trees
    assert any(tree["split_type"].any() for tree in trees)
    strange = np.array([-1.0, 31.0, 32.0, 63.0, 1e6, 2.0**24, 3e38, 2.5, np.nan], dtype=np.float32)
    X[: 20 * len(strange), 0] = np.tile(strange, 20)
    margin = booster.inplace_predict(X, predict_type="margin", validate_features=False)
    scores = TreePredictor(trees, [0] * len(trees), 4).scores(X)[0]
    np.testing.assert_allclose(scores, margin, rtol=2e-6, atol=2e-6)


def test_trees_that_would_be_followed_out_of_memory_are_refused(fitted):
    X, *_, document, _ = fitted
    broken = {
        "left_children": 10**6,
        "right_children": -5,
        "split_indices": 99,
    }
    for name, value in broken.items():
        tree = dict(document.trees[0])
        tree[name] = tree[name].copy()
        tree[name][0] = value
        with pytest.raises(ValueError, match="tree"):
            TreePredictor([tree], [0], X.shape[1])
    loop = dict(document.trees[0])
    loop["left_children"] = loop["left_children"].copy()
    loop["left_children"][1] = 0
    if len(loop["left_children"]) > 3:
        with pytest.raises(ValueError, match="loop"):
            TreePredictor([loop], [0], X.shape[1])


def test_samples_with_other_features_are_refused(fitted):
    X, *_, predictor = fitted
    for data in (X[:, :-1], sparse.csr_matrix(np.nan_to_num(X[:, :-1]))):
        with pytest.raises(ValueError, match="features"):
            predictor.scores(data)
