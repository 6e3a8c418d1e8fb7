"""H @ weights + intercept is the model's own margin, for every library and task."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import ensemble as sk
from sklearn.datasets import make_classification, make_regression
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression

from scboost.redundancy import iter_tree_matrix, tree_matrix

xgboost = pytest.importorskip("xgboost")

TASKS = ["binary", "multiclass", "regression"]
LIBRARIES = [
    "xgboost",
    "dart",
    "lightgbm",
    "lightgbm-rf",
    "catboost",
    "catboost-lossguide",
    "GradientBoosting",
    "HistGradientBoosting",
    "RandomForest",
    "ExtraTrees",
    "AdaBoost",
]
T = 6


def data(task, n=300):
    if task == "regression":
        X, y = make_regression(n, 6, n_informative=4, noise=5.0, random_state=0)
        return X.astype(np.float32), y + 300
    n_classes = 3 if task == "multiclass" else 2
    X, y = make_classification(n, 6, n_informative=4, n_redundant=0, n_classes=n_classes, random_state=0)
    return X.astype(np.float32), y


def make(library, task):
    kind = "Regressor" if task == "regression" else "Classifier"
    if library in {"xgboost", "dart"}:
        extra = {"booster": "dart", "rate_drop": 0.5, "num_parallel_tree": 2} if library == "dart" else {}
        return getattr(xgboost, f"XGB{kind}")(n_estimators=T, max_depth=3, n_jobs=1, random_state=0, **extra)
    if library.startswith("lightgbm"):
        lightgbm = pytest.importorskip("lightgbm")
        extra = {"boosting_type": "rf", "subsample": 0.6, "subsample_freq": 1} if library.endswith("rf") else {}
        return getattr(lightgbm, f"LGBM{kind}")(n_estimators=T, num_leaves=7, n_jobs=1, verbose=-1, **extra)
    if library.startswith("catboost"):
        catboost = pytest.importorskip("catboost")
        extra = {"grow_policy": "Lossguide"} if library.endswith("lossguide") else {}
        return getattr(catboost, f"CatBoost{kind}")(
            iterations=T, depth=3, thread_count=1, verbose=0, allow_writing_files=False, random_seed=0, **extra
        )
    name = "max_iter" if library == "HistGradientBoosting" else "n_estimators"
    return getattr(sk, library + kind)(**{name: T}, random_state=0)


def margin(model, X):
    """Return the margin by the library's own words: the table of the module."""
    package = type(model).__module__.partition(".")[0]
    if package == "xgboost":
        return model.predict(X, output_margin=True)
    if package == "lightgbm":
        F = model.booster_.predict(X, raw_score=True)
        return F / T if model.boosting_type == "rf" else F  # predict averages, raw_score does not
    if package == "catboost":
        return model.predict(X, prediction_type="RawFormulaVal")
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(X)
        return p[:, 1] if p.shape[1] == 2 else p
    if isinstance(model, sk.AdaBoostRegressor):
        w = model.estimator_weights_[: len(model.estimators_)]
        return np.average([tree.predict(X) for tree in model.estimators_], axis=0, weights=w)
    return model.predict(X)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_weighted_sum_is_the_margin(library, task):
    X, y = data(task)
    model = make(library, task).fit(X[:200], y[:200])
    F = margin(model, X)
    for dtype in (np.float32, np.float64):
        trees = tree_matrix(model, X, dtype=dtype, block_rows=128)
        assert trees.H.dtype == dtype
        assert trees.H.shape == (len(X), trees.n_trees * trees.n_outputs)
        assert_allclose(trees.H @ trees.weights + trees.intercept, F, rtol=2e-6, atol=2e-6)
        assert_allclose(trees.margin(), F, rtol=2e-6, atol=2e-6)
    if library not in {"dart", "AdaBoost"}:
        assert trees.n_trees == T
    assert trees.n_outputs == (3 if task == "multiclass" else 1)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_blocks_are_the_rows_of_the_whole(library, task):
    X, y = data(task)
    model = make(library, task).fit(X, y)
    whole = tree_matrix(model, X)
    blocks = list(iter_tree_matrix(model, X, block_rows=77))
    assert [len(block.H) for block in blocks] == [77, 77, 77, 69]
    assert np.array_equal(np.vstack([block.H for block in blocks]), whole.H)


@pytest.mark.parametrize("library", LIBRARIES)
def test_column_order_is_round_then_output(library):
    X, y = data("multiclass")
    trees = tree_matrix(make(library, "multiclass").fit(X, y), X)
    F = trees.margin()
    for k in range(3):
        assert_allclose(trees.output(k).margin(), F[:, k])
        assert np.shares_memory(trees.output(k).H, trees.H)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("task", TASKS)
def test_native_boosters(library, task):
    X, y = data(task)
    model = make(library, task).fit(X, y)
    booster = model.get_booster() if library == "xgboost" else model.booster_
    trees, of_booster = tree_matrix(model, X), tree_matrix(booster, X)
    assert np.array_equal(trees.H, of_booster.H)
    assert of_booster.link == trees.link
    assert of_booster.classes is None


def test_trees_after_the_best_iteration_do_not_count():
    X, y = data("binary")
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 2, 100)
    xgb = xgboost.XGBClassifier(n_estimators=30, n_jobs=1, early_stopping_rounds=2)
    xgb.fit(X[:200], y[:200], eval_set=[(X[200:], noise)], verbose=False)
    train = lightgbm.Dataset(X[:200], y[:200])
    lgb = lightgbm.train(
        {"objective": "binary", "num_threads": 1, "verbose": -1},
        train,
        30,
        valid_sets=[lightgbm.Dataset(X[200:], noise, reference=train)],
        callbacks=[lightgbm.early_stopping(2, verbose=False)],
        keep_training_booster=True,
    )
    assert lgb.num_trees() > lgb.best_iteration
    assert xgb.get_booster().num_boosted_rounds() > xgb.best_iteration + 1
    assert tree_matrix(xgb, X).n_trees == xgb.best_iteration + 1
    assert tree_matrix(lgb, X).n_trees == lgb.best_iteration
    assert_allclose(tree_matrix(xgb, X).margin(), margin(xgb, X), rtol=1e-5, atol=1e-6)
    assert_allclose(tree_matrix(lgb, X).margin(), lgb.predict(X, raw_score=True), rtol=1e-5, atol=1e-6)


def test_missing_values_categories_and_names():
    pd = pytest.importorskip("pandas")
    lightgbm = pytest.importorskip("lightgbm")
    X, y = data("binary")
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d", "e", "f g"])
    frame.loc[::5, "a"] = np.nan
    frame["b"] = pd.Categorical(np.where(frame["b"] > 0, "x", "z"))
    for model in (
        xgboost.XGBClassifier(n_estimators=T, n_jobs=1, enable_categorical=True),
        lightgbm.LGBMClassifier(n_estimators=T, n_jobs=1, verbose=-1),
        sk.HistGradientBoostingClassifier(max_iter=T, categorical_features="from_dtype"),
    ):
        model.fit(frame, y)
        assert_allclose(tree_matrix(model, frame, block_rows=99).margin(), margin(model, frame), rtol=1e-5, atol=1e-6)
        with pytest.raises(ValueError, match=r"columns|feature names"):
            tree_matrix(model, frame[["b", "a", "c", "d", "e", "f g"]])


def test_catboost_categories():
    catboost = pytest.importorskip("catboost")
    pd = pytest.importorskip("pandas")
    X, y = data("binary")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["b"] = np.where(frame["b"] > 0, "x", "z")
    model = catboost.CatBoostClassifier(
        iterations=T, depth=3, thread_count=1, verbose=0, allow_writing_files=False, cat_features=["b"]
    ).fit(frame, y)
    assert_allclose(tree_matrix(model, frame).margin(), margin(model, frame), rtol=1e-5, atol=1e-6)


def test_a_single_tree():
    X, y = data("binary")
    for library in LIBRARIES:
        name = {"catboost": "iterations", "catboost-lossguide": "iterations", "HistGradientBoosting": "max_iter"}
        model = make(library, "binary").set_params(**{name.get(library, "n_estimators"): 1})
        if library == "dart":
            model.set_params(num_parallel_tree=1)
        model.fit(X, y)
        trees = tree_matrix(model, X)
        assert trees.n_trees == 1
        F = margin(model, X) * (T if library == "lightgbm-rf" else 1)
        assert_allclose(trees.margin(), F, rtol=1e-5, atol=1e-6)


def test_votes_are_signs_around_the_base():
    X, y = data("binary")
    boosted = tree_matrix(make("xgboost", "binary").fit(X, y), X)
    assert np.array_equal(boosted.votes(), np.where(boosted.H > 0, 1, -1))
    forest = tree_matrix(make("RandomForest", "binary").fit(X, y), X)
    assert np.array_equal(forest.votes(), np.where(forest.H > 0.5, 1, -1))
    Xr, yr = data("regression")
    model = make("RandomForest", "regression").fit(Xr, yr)
    base = np.mean([tree.tree_.value[0, 0, 0] for tree in model.estimators_])
    trees = tree_matrix(model, Xr)
    assert np.array_equal(trees.votes(), np.where(base < trees.H, 1, -1))


def test_lightgbm_base_is_taken_out_of_the_first_tree():
    X, y = data("binary")
    y = (y + (np.arange(len(y)) % 3 == 0) > 0).astype(int)
    trees = tree_matrix(make("lightgbm", "binary").fit(X, y), X)
    assert trees.intercept == pytest.approx(np.log(y.mean() / (1 - y.mean())), abs=1e-6)


def test_scboost_models():
    from sklearn.tree import DecisionTreeRegressor

    from scboost.estimators.base import SCBoostClassifier

    for task in ("binary", "multiclass"):
        X, y = data(task)
        model = SCBoostClassifier(n_estimators=T, n_jobs=1, random_state=0).fit(X, y)
        trees = tree_matrix(model, X)
        assert trees.library == "scboost"
        assert_allclose(trees.margin(), model.decision_function(X), rtol=1e-5, atol=1e-6)
    X, y = data("binary")
    model = SCBoostClassifier(n_estimators=T, estimator=DecisionTreeRegressor(max_depth=3), colsample=1).fit(X, y)
    assert_allclose(tree_matrix(model, X).margin(), model.decision_function(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("library", LIBRARIES)
def test_bad_input(library):
    X, y = data("binary")
    model = make(library, "binary")
    with pytest.raises(NotFittedError):
        tree_matrix(model, X)
    model.fit(X, y)
    with pytest.raises(ValueError, match="5 columns, but the model was fitted with 6"):
        tree_matrix(model, X[:, :5])
    with pytest.raises(ValueError, match="two dimensions"):
        tree_matrix(model, X[0])
    with pytest.raises(ValueError, match="no rows"):
        tree_matrix(model, X[:0])
    with pytest.raises(ValueError, match="block_rows must be an integer of at least 1, got 0"):
        tree_matrix(model, X, block_rows=0)


def test_models_that_are_no_sum_of_trees():
    X, y = data("binary")
    with pytest.raises(TypeError, match="got LogisticRegression"):
        tree_matrix(LogisticRegression().fit(X, y), X)
    linear = xgboost.XGBClassifier(booster="gblinear", n_estimators=2, n_jobs=1)
    with pytest.raises(ValueError, match="'gblinear' has no trees"):
        tree_matrix(linear.fit(X, y), X)
    started = sk.GradientBoostingRegressor(n_estimators=2, init=LinearRegression())
    with pytest.raises(ValueError, match="different start for each row"):
        tree_matrix(started.fit(X, y), X)
    lightgbm = pytest.importorskip("lightgbm")
    linear_tree = lightgbm.LGBMRegressor(n_estimators=2, linear_tree=True, n_jobs=1, verbose=-1)
    with pytest.raises(ValueError, match="linear trees"):
        tree_matrix(linear_tree.fit(X, y), X)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "GradientBoosting", "RandomForest"])
def test_sparse_rows(library):
    sparse = pytest.importorskip("scipy.sparse")
    X, y = data("binary")
    X = sparse.csr_matrix(np.where(X > 0, X, 0))
    model = make(library, "binary").fit(X, y)
    assert_allclose(tree_matrix(model, X, block_rows=77).margin(), margin(model, X), rtol=1e-5, atol=1e-6)


def test_polars_rows():
    polars = pytest.importorskip("polars")
    X, y = data("binary")
    frame = polars.DataFrame(X, schema=list("abcdef"))
    for library in ("xgboost", "HistGradientBoosting", "RandomForest"):
        model = make(library, "binary").fit(frame, y)
        assert_allclose(tree_matrix(model, frame, block_rows=77).margin(), margin(model, frame), rtol=1e-5, atol=1e-6)
