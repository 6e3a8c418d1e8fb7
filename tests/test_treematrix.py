"""H @ weights + intercept is the raw score of the model, for every library and task."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import ensemble as sk
from sklearn.datasets import make_classification, make_regression
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression

from scboost.diagnostics import (
    EnsembleReader,
    Reader,
    _registry,
    iter_tree_matrix,
    read_ensemble,
    redundancy_report,
    register_reader,
    reweight,
    tree_matrix,
)

xgboost = pytest.importorskip("xgboost")

pytestmark = pytest.mark.filterwarnings("ignore:.*booster=dart. is deprecated")  # by XGBoost 3.4

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
def test_the_weighted_sum_equals_the_raw_score_of_the_library(library, task):
    X, y = data(task)
    model = make(library, task).fit(X[:200], y[:200])
    F = margin(model, X)
    for dtype in (np.float32, np.float64):
        trees = tree_matrix(model, X, dtype=dtype, block_size=128)
        assert trees.H.dtype == dtype
        assert trees.H.shape == (len(X), trees.n_trees * trees.n_outputs)
        assert_allclose(trees.H @ trees.weights + trees.intercept, F, rtol=2e-6, atol=2e-6)
        assert_allclose(trees.margin(), F, rtol=2e-6, atol=2e-6)
    if library not in {"dart", "AdaBoost"}:
        assert trees.n_trees == T
    assert trees.n_outputs == (3 if task == "multiclass" else 1)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_blocks_of_samples_equal_the_whole_matrix(library, task):
    X, y = data(task)
    model = make(library, task).fit(X, y)
    whole = tree_matrix(model, X)
    blocks = list(iter_tree_matrix(model, X, block_size=77))
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
def test_native_boosters_are_read_like_their_wrappers(library, task):
    X, y = data(task)
    model = make(library, task).fit(X, y)
    booster = model.get_booster() if library == "xgboost" else model.booster_
    trees, of_booster = tree_matrix(model, X), tree_matrix(booster, X)
    assert np.array_equal(trees.H, of_booster.H)
    assert of_booster.link == trees.link
    assert of_booster.classes is None


def test_trees_after_the_best_iteration_are_not_read():
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


@pytest.mark.parametrize("how", ["parameter", "callback"])
@pytest.mark.parametrize("loaded", [False, True])
def test_early_stopped_xgboost_is_read_up_to_its_best_iteration(how, loaded, tmp_path):
    X, y = data("binary")
    noise = np.random.default_rng(0).integers(0, 2, 100)
    stop = {"early_stopping_rounds": 3}
    if how == "callback":
        stop = {"callbacks": [xgboost.callback.EarlyStopping(rounds=3)]}
    model = xgboost.XGBClassifier(n_estimators=30, n_jobs=1, **stop)
    model.fit(X[:200], y[:200], eval_set=[(X[200:], noise)], verbose=False)
    if loaded:
        model.save_model(tmp_path / "model.ubj")
        model = xgboost.XGBClassifier()
        model.load_model(tmp_path / "model.ubj")
    assert model.get_booster().num_boosted_rounds() > model.best_iteration + 1
    trees = tree_matrix(model, X)
    assert trees.n_trees == model.best_iteration + 1
    assert_allclose(trees.margin(), margin(model, X), rtol=1e-5, atol=1e-6)
    found = reweight(model, X[200:], y[200:], ridge=1e6)
    assert_allclose(margin(found.model, X), trees.margin() - trees.intercept + found.intercept, rtol=1e-4, atol=1e-4)


def test_arrays_are_refused_by_models_with_categorical_features():
    pd = pytest.importorskip("pandas")
    lightgbm, catboost = pytest.importorskip("lightgbm"), pytest.importorskip("catboost")
    X, y = data("binary")
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    frame["b"] = pd.Categorical(np.where(frame["b"] > 0, "x", "z"))
    codes = np.column_stack([X[:, 0], X[:, 1] > 0]).astype(np.float32)
    for model in (
        xgboost.XGBClassifier(n_estimators=2, n_jobs=1, enable_categorical=True),
        lightgbm.LGBMClassifier(n_estimators=2, n_jobs=1, verbose=-1),
        sk.HistGradientBoostingClassifier(max_iter=2, categorical_features="from_dtype"),
        catboost.CatBoostClassifier(
            iterations=2, thread_count=1, verbose=0, allow_writing_files=False, cat_features=["b"]
        ),
    ):
        model.fit(frame, y)
        with pytest.raises(TypeError, match="X is a ndarray, but the model was fitted on a table with categorical"):
            tree_matrix(model, codes)


def test_missing_values_and_categories_are_read_and_names_checked():
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
        assert_allclose(tree_matrix(model, frame, block_size=99).margin(), margin(model, frame), rtol=1e-5, atol=1e-6)
        with pytest.raises(ValueError, match=r"columns|feature names"):
            tree_matrix(model, frame[["b", "a", "c", "d", "e", "f g"]])


def test_catboost_models_of_categories_are_read():
    catboost = pytest.importorskip("catboost")
    pd = pytest.importorskip("pandas")
    X, y = data("binary")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["b"] = np.where(frame["b"] > 0, "x", "z")
    model = catboost.CatBoostClassifier(
        iterations=T, depth=3, thread_count=1, verbose=0, allow_writing_files=False, cat_features=["b"]
    ).fit(frame, y)
    assert_allclose(tree_matrix(model, frame).margin(), margin(model, frame), rtol=1e-5, atol=1e-6)


def test_sums_of_catboost_models_are_read_but_not_reweighted():
    catboost = pytest.importorskip("catboost")
    X, y = data("binary")
    parts = [make("catboost", "binary").set_params(random_seed=seed).fit(X, y) for seed in (0, 1)]
    total = catboost.sum_models(parts, weights=[0.25, 0.75])
    trees = tree_matrix(total, X)
    assert trees.n_trees == 2 * T
    assert_allclose(trees.margin(), margin(total, X), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=r"its objective is not supported, or not known|not on the scale of y"):
        reweight(total, X, y)


def test_catboost_columns_must_come_in_order():
    pytest.importorskip("catboost")
    pd = pytest.importorskip("pandas")
    X, y = data("binary")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = make("catboost", "binary").fit(frame, y)
    with pytest.raises(ValueError, match=r"fitted with .* in this order"):
        tree_matrix(model, frame[list("bacdef")])


def test_catboost_text_and_embeddings_are_read_but_not_written():
    catboost = pytest.importorskip("catboost")
    pd = pytest.importorskip("pandas")
    X, y = data("binary")
    words = np.array(["good fine nice", "bad awful poor"])[(y + (X[:, 0] > 1)) % 2]
    frame = pd.DataFrame({"a": X[:, 0], "text": words, "vector": [list(map(float, row)) for row in X]})
    for column, kind in (("text", "text_features"), ("vector", "embedding_features")):
        model = catboost.CatBoostClassifier(
            iterations=T, depth=3, thread_count=1, verbose=0, allow_writing_files=False, **{kind: [column]}
        ).fit(frame[["a", column]], y)
        rows = frame[["a", column]]
        assert_allclose(tree_matrix(model, rows).margin(), margin(model, rows), rtol=1e-5, atol=1e-6)
        with pytest.raises(ValueError, match="text or embedding features"):
            reweight(model, rows, y)


def test_an_ensemble_of_a_single_tree_is_read():
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


def test_votes_are_relative_to_the_base_score():
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


def test_lightgbm_base_score_is_separated_from_the_first_tree():
    X, y = data("binary")
    y = (y + (np.arange(len(y)) % 3 == 0) > 0).astype(int)
    trees = tree_matrix(make("lightgbm", "binary").fit(X, y), X)
    assert trees.intercept == pytest.approx(np.log(y.mean() / (1 - y.mean())), abs=1e-6)


def test_scboost_models_are_read():
    from sklearn.tree import DecisionTreeRegressor

    from scboost._estimators import SCBoostClassifier

    for task in ("binary", "multiclass"):
        X, y = data(task)
        model = SCBoostClassifier(n_estimators=T, n_jobs=1, random_state=0).fit(X, y)
        trees = tree_matrix(model, X)
        assert trees.library == "scboost"
        assert_allclose(trees.margin(), model.decision_function(X), rtol=1e-5, atol=1e-6)
    X, y = data("binary")
    model = SCBoostClassifier(n_estimators=T, estimator=DecisionTreeRegressor(max_depth=3), colsample_bytree=1).fit(
        X, y
    )
    assert_allclose(tree_matrix(model, X).margin(), model.decision_function(X), rtol=1e-5, atol=1e-6)


def test_scboost_models_keep_their_precision_far_from_zero():
    from scboost import SCBoostRegressor

    X, y = data("regression")
    model = SCBoostRegressor(n_estimators=T, n_jobs=1, random_state=0).fit(X, y + 1e7)
    assert_allclose(tree_matrix(model, X).margin() - 1e7, model.predict(X) - 1e7, atol=1e-3)


def test_scboost_models_without_trees_are_refused():
    from scboost import SCBoostRegressor

    X, y = data("regression")
    model = SCBoostRegressor(n_estimators=2, n_jobs=1).fit(X, np.ones(len(y)))
    with pytest.raises(ValueError, match="The model has no trees"):
        tree_matrix(model, X)


class Stump:
    """Not a model of any library: two trees, the same step twice."""

    def __init__(self, weights=(0.5, 0.5), intercept=0.0):
        self.weights, self.intercept = np.array(weights), intercept

    def __tree_ensemble__(self):
        def fill(X, out):
            out[:] = np.sign(X[:, :1])

        zeros = np.zeros(len(self.weights))
        return EnsembleReader(fill, self.weights, np.array([self.intercept]), zeros, "mine", "identity", None, 1)


class WritableStump(Stump):
    def __with_tree_weights__(self, kept, weights, intercept):
        return type(self)(weights[:, 0], intercept[0])


def test_a_model_that_defines_its_trees_needs_no_registration():
    X = np.linspace(-1, 1, 100)[:, None]
    assert_allclose(tree_matrix(Stump(), X).margin(), np.sign(X[:, 0]))
    assert redundancy_report(Stump(), X, X[:, 0]).library == "mine"
    with pytest.raises(TypeError, match="Stump defines __tree_ensemble__ but not __with_tree_weights__"):
        reweight(Stump(), X, X[:, 0])
    found = reweight(WritableStump(), X, 3 * np.sign(X[:, 0]), ridge=1e-6)
    assert_allclose(tree_matrix(found.model, X).margin(), 3 * np.sign(X[:, 0]), rtol=1e-3)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"centers": np.zeros(3)}, r"centers must have shape \(4,\).*got shape \(3,\)"),
        ({"centers": np.zeros((4, 1))}, r"centers must have shape \(4,\).*got shape \(4, 1\)"),
        ({"column_weights": np.ones(3), "centers": np.zeros(3)}, r"K=2 outputs, got shape \(3,\)"),
        ({"intercepts": np.zeros(())}, r"intercepts must have shape \(K,\)"),
    ],
)
def test_readers_of_inconsistent_shapes_are_refused(changed, message):
    arrays = {"column_weights": np.ones(4), "intercepts": np.zeros(2), "centers": np.zeros(4)} | changed
    with pytest.raises(ValueError, match=message):
        EnsembleReader(lambda X, out: None, **arrays, library="mine", link="identity", classes=None, n_features=1)


class Wrapped:
    """A model of a library that knows nothing of this package."""

    def __init__(self, forest):
        self.forest = forest


def test_registered_readers_are_used_and_can_lack_write(monkeypatch):
    monkeypatch.setattr(_registry, "_READERS", dict(_registry._READERS))
    X, y = data("regression")
    model = Wrapped(make("RandomForest", "regression").fit(X, y))
    with pytest.raises(TypeError, match="got Wrapped"):
        tree_matrix(model, X)

    def matches(model):
        return isinstance(model, Wrapped)

    register_reader(Reader("wood", "Wood", matches, lambda model: read_ensemble(model.forest)))
    assert np.array_equal(tree_matrix(model, X).H, tree_matrix(model.forest, X).H)
    with pytest.raises(TypeError, match="reader 'wood' has no `write` function"):
        reweight(model, X, y)
    with pytest.raises(TypeError, match=r"Wood.*got LinearRegression"):
        tree_matrix(LinearRegression(), X)


@pytest.mark.parametrize(("module", "name"), [("elsewhere", "WeightedTrees"), ("xgboost.sklearn", "XGBClassifier")])
def test_a_class_of_the_same_name_is_not_taken_for_the_library(module, name):
    X, _ = data("binary")
    with pytest.raises(TypeError, match=f"model must be a tree ensemble.*got {name}"):
        tree_matrix(type(name, (), {"__module__": module})(), X)


@pytest.mark.parametrize("library", LIBRARIES)
def test_unfitted_models_and_wrong_shapes_are_refused(library):
    X, y = data("binary")
    model = make(library, "binary")
    with pytest.raises(NotFittedError):
        tree_matrix(model, X)
    model.fit(X, y)
    with pytest.raises(ValueError, match="5 features, but the model was fitted with 6"):
        tree_matrix(model, X[:, :5])
    with pytest.raises(ValueError, match="two dimensions"):
        tree_matrix(model, X[0])
    with pytest.raises(ValueError, match="at least one sample"):
        tree_matrix(model, X[:0])
    for bad in (0, 1.5, True, "10"):
        with pytest.raises(ValueError, match=f"block_size must be an integer of at least 1, got {bad!r}"):
            tree_matrix(model, X, block_size=bad)


def test_models_other_than_sums_of_trees_are_refused():
    X, y = data("binary")
    with pytest.raises(TypeError, match="got LogisticRegression"):
        tree_matrix(LogisticRegression().fit(X, y), X)
    linear = xgboost.XGBClassifier(booster="gblinear", n_estimators=2, n_jobs=1)
    with pytest.raises(ValueError, match="'gblinear' has no trees"):
        tree_matrix(linear.fit(X, y), X)
    started = sk.GradientBoostingRegressor(n_estimators=2, init=LinearRegression())
    with pytest.raises(ValueError, match="different initial score for each sample"):
        tree_matrix(started.fit(X, y), X)
    random = sk.GradientBoostingClassifier(n_estimators=2, init=DummyClassifier(strategy="stratified"))
    with pytest.raises(ValueError, match="different initial score for each sample"):
        tree_matrix(random.fit(X, y), X)
    for strategy in ("prior", "most_frequent"):
        same = sk.GradientBoostingClassifier(n_estimators=2, init=DummyClassifier(strategy=strategy)).fit(X, y)
        assert_allclose(tree_matrix(same, X, dtype=np.float64).margin(), same.decision_function(X))
    lightgbm = pytest.importorskip("lightgbm")
    linear_tree = lightgbm.LGBMRegressor(n_estimators=2, linear_tree=True, n_jobs=1, verbose=-1)
    with pytest.raises(ValueError, match="linear trees"):
        tree_matrix(linear_tree.fit(X, y), X)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "GradientBoosting", "RandomForest"])
def test_sparse_samples_are_read(library):
    sparse = pytest.importorskip("scipy.sparse")
    X, y = data("binary")
    X = sparse.csr_matrix(np.where(X > 0, X, 0))
    model = make(library, "binary").fit(X, y)
    assert_allclose(tree_matrix(model, X, block_size=77).margin(), margin(model, X), rtol=1e-5, atol=1e-6)


def test_polars_tables_are_read():
    polars = pytest.importorskip("polars")
    X, y = data("binary")
    frame = polars.DataFrame(X, schema=list("abcdef"))
    for library in ("xgboost", "HistGradientBoosting", "RandomForest"):
        model = make(library, "binary").fit(frame, y)
        assert_allclose(tree_matrix(model, frame, block_size=77).margin(), margin(model, frame), rtol=1e-5, atol=1e-6)
