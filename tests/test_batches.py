"""Fits on batches: the model equals that of an in-memory fit, with one batch in memory at a time."""

import json
import mmap
import signal
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor

from data_makers import rounded
from scboost import Batches, Checkpoint, SCBoostClassifier, SCBoostRegressor

pytest.importorskip("xgboost")
pd = pytest.importorskip("pandas")

WEIGHT = np.random.default_rng(1).integers(0, 4, size=1500).astype(float)
NUMBERS = np.nan_to_num(rounded()[0]).sum(axis=1) + np.random.default_rng(2).normal(size=1500)
COUNTS = np.random.default_rng(3).poisson(np.exp(NUMBERS / 4))
TWO, THREE = rounded()[1], np.array(["red", "green", "blue"], dtype=object)[rounded(n_classes=3)[1]]
CASES = {
    "two classes": (SCBoostClassifier(), TWO, None),
    "weights": (SCBoostClassifier(), TWO, WEIGHT),
    "balanced": (SCBoostClassifier(class_weight="balanced"), THREE, WEIGHT),
    "three classes": (SCBoostClassifier(), THREE, None),
    "chosen rounds": (SCBoostClassifier(n_estimators="auto", learning_rate=0.4, n_iter_no_change=8), TWO, None),
    "drawn rows and columns": (SCBoostClassifier(subsample=0.7, colsample_bytree=0.5), TWO, WEIGHT),
    "monotone": (SCBoostClassifier(monotone_constraints=[1, 0, 0, 1, 0, 0]), TWO, None),
    "all directions": (SCBoostClassifier(energy_threshold=1.0, projection_strength=1.0), TWO, None),
    "squared error": (SCBoostRegressor(), NUMBERS, None),
    "huber": (SCBoostRegressor(loss="huber"), NUMBERS, WEIGHT),
    "chosen rounds of a quantile": (
        SCBoostRegressor(loss="quantile", quantile=0.8, max_leaves=4, learning_rate=0.8, cv=2, n_iter_no_change=5),
        NUMBERS,
        None,
    ),
    "poisson": (SCBoostRegressor(loss="poisson"), COUNTS, WEIGHT),
}


def cut(folder, n_batches, *columns):
    """The columns (X, y, maybe weights) in batches of about equal size."""
    parts = np.array_split(np.arange(columns[0].shape[0]), n_batches)

    def make_batches():
        return (tuple(getattr(column, "iloc", column)[rows] for column in columns) for rows in parts)

    return Batches(make_batches, folder=folder)


def assert_same_model(one, other, X):
    assert one.n_estimators_ == other.n_estimators_
    np.testing.assert_array_equal(one._raw_scores(X), other._raw_scores(X))
    assert one.get_booster().get_dump(with_stats=True) == other.get_booster().get_dump(with_stats=True)
    np.testing.assert_array_equal(one.training_log_["loss"], other.training_log_["loss"])


def named(name):
    estimator, y, weight = CASES[name]
    estimator.set_params(n_jobs=1, random_state=0, engine="xgboost")  # that of batches
    if "chosen" not in name:
        estimator.set_params(n_estimators=12)
    return estimator, y, weight


def copy_of(estimator):
    return type(estimator)(**estimator.get_params())


@pytest.mark.parametrize("name", CASES)
def test_batches_give_the_model_of_data_in_memory(name, tmp_path):
    estimator, y, weight = named(name)
    X = rounded()[0]
    at_once = copy_of(estimator).fit(X, y, weight)
    assert len(np.unique(at_once._raw_scores(X))) > 10
    columns = (X, y) if weight is None else (X, y, weight)
    for n_batches in (1, 4):
        assert_same_model(estimator.fit(cut(tmp_path, n_batches, *columns)), at_once, X)
    assert not list(tmp_path.iterdir())


def test_batches_may_lack_categories_of_other_batches(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = rounded()
    table = pd.DataFrame(X, columns=list("abcdef"))
    table["g"] = pd.Series(np.array(["x", "y", "z", "w"], dtype=object)[np.arange(len(y)) // 400])
    table["h"] = table["g"].where(table["g"] == "x", None)
    estimator = SCBoostClassifier(n_estimators=12, n_jobs=1, random_state=0, engine="xgboost")
    batched = copy_of(estimator).fit(cut(tmp_path, 5, table, y))
    at_once = estimator.fit(table, y)
    assert batched._model.encoder == at_once._model.encoder
    np.testing.assert_array_equal(batched.feature_names_in_, table.columns)
    assert_same_model(batched, at_once, table)


def test_sparse_batches_give_the_model_of_sparse_data(tmp_path):
    X, y = rounded()
    S = sparse.csr_matrix(np.nan_to_num(X) * (X > 0))
    estimator = SCBoostClassifier(n_estimators=12, n_jobs=1, random_state=0, engine="xgboost")
    batched = copy_of(estimator).fit(cut(tmp_path, 4, S, y))
    assert batched._model.encoder.sparse
    assert_same_model(batched, estimator.fit(S, y), S)


def test_from_parquet_reads_a_folder(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X, _ = rounded()
    columns = {f"x{j}": X[:, j] for j in range(6)}
    columns["colour"] = pa.array(THREE).dictionary_encode()
    table = pa.table({**columns, "many": WEIGHT, "label": np.array(["no", "yes"])[TWO]})
    files = tmp_path / "rows"
    (files / "deeper").mkdir(parents=True)
    parquet.write_table(table[:700], files / "a.parquet", row_group_size=200)
    parquet.write_table(table[700:], files / "deeper" / "b.parquet")
    (files / "notes.txt").write_text("not rows")
    estimator = SCBoostClassifier(n_estimators=12, n_jobs=1, random_state=0, engine="xgboost")
    weight = {"target": "label", "weight": "many", "batch_rows": 130, "folder": tmp_path}
    names = [*columns]
    at_once = copy_of(estimator).fit(table.select(names), table["label"].to_numpy(), WEIGHT)
    assert_same_model(copy_of(estimator).fit(Batches.from_parquet(files, **weight)), at_once, table.select(names))
    some = Batches.from_parquet([files / "a.parquet"], columns=["x1", "x0"], **weight)
    assert copy_of(estimator).fit(some).feature_names_in_.tolist() == ["x1", "x0"]
    for wrong in ({"target": "y"}, {"columns": ["x9"]}):
        with pytest.raises(ValueError, match=r"a\.parquet has no column '(y|x9)'; it has \['x0'"):
            Batches.from_parquet(files, **{**weight, **wrong})
    for repeated in ("label", "many"):
        with pytest.raises(ValueError, match=rf"columns=.*contains '{repeated}'.*leave it out of columns"):
            Batches.from_parquet(files, **weight, columns=["x0", repeated])
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match=r"has no file that ends in \.parquet"):
        Batches.from_parquet(tmp_path / "none", **weight)


@pytest.mark.parametrize("n_batches", [0, 1, 3])
@pytest.mark.parametrize(
    "params",
    [
        {"n_estimators": 60, "early_stopping": True, "learning_rate": 0.5},
        {"n_estimators": 10, "weighting": "nonnegative"},
    ],
)
def test_validation_set_may_be_batches(params, n_batches, tmp_path):
    X, y = rounded()
    X_val, y_val = rounded(n=700, seed=1)
    estimator = SCBoostClassifier(n_jobs=1, random_state=0, engine="xgboost", **params)
    at_once = copy_of(estimator).fit(X, y, X_val=X_val, y_val=y_val)
    val = {"X_val": cut(tmp_path, n_batches, X_val, y_val)} if n_batches else {"X_val": X_val, "y_val": y_val}
    batched = copy_of(estimator).fit(cut(tmp_path, 3, X, y), **val)
    assert_same_model(batched, at_once, X)
    assert_same_model(estimator.fit(X, y, **val), at_once, X)
    np.testing.assert_array_equal(batched.weights_, at_once.weights_)
    np.testing.assert_array_equal(batched.training_log_["validation_loss"], at_once.training_log_["validation_loss"])
    assert not list(tmp_path.iterdir())


def test_a_fit_can_be_resumed_and_built_upon(tmp_path):
    X, y = rounded()
    estimator = SCBoostClassifier(n_estimators=12, learning_rate=0.2, n_jobs=1, random_state=0, engine="xgboost")
    at_once, base = copy_of(estimator).fit(X, y), copy_of(estimator).set_params(n_estimators=5).fit(X, y)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    batches = cut(temporary, 4, X, y)
    assert_same_model(
        copy_of(estimator).fit(batches, init_model=base), copy_of(estimator).fit(X, y, init_model=base), X
    )

    warm = copy_of(estimator).set_params(n_estimators=7, warm_start=True).fit(batches)
    assert not list(temporary.iterdir())
    assert_same_model(warm.set_params(n_estimators=12).fit(batches), at_once, X)

    path = tmp_path / "fit.checkpoint"
    copy_of(estimator).set_params(callbacks=[Checkpoint(path, every=8)]).fit(batches)
    assert_same_model(Checkpoint(path).load().fit(batches), at_once, X)


def test_the_guide_quotes_the_measurements():
    root = Path(__file__).parents[1]
    measured = json.loads((root / "results" / "distributed" / "out_of_core.json").read_text())
    page = (root / "docs" / "guide" / "out_of_core.md").read_text()
    assert f"{measured['rows'] / 1e6:g} million samples with {measured['columns']} features" in page
    assert f"{measured['float32_MiB']:,.0f} MiB as float32" in page
    for run, name in zip(measured["runs"], ("in batches", "all in memory"), strict=True):
        numbers = (run[key] for key in ("peak_own_MiB", "peak_with_files_MiB", "cpu_seconds"))
        assert f"| {name} | {' | '.join(f'{number:,.0f}' for number in numbers)} |" in page
    batches, memory = measured["runs"]
    assert batches["crc32_of_scores"] == memory["crc32_of_scores"]
    assert 4 * batches["peak_with_files_MiB"] < memory["peak_with_files_MiB"]


def memory_of(array):
    """What an array is a view of."""
    while isinstance(array, np.ndarray):
        array = array.base
    return type(array)


def test_bins_and_vectors_are_temporary_files_removed_after_the_fit(tmp_path):
    X, y = rounded()
    seen = []

    def look(model):
        state = model._resumable.training.state
        seen.extend(memory_of(array) for array in (state.F, state.projector.histories[0]._H))
        seen.append([file.name.partition("-")[0] for file in tmp_path.glob("*/*")])

    batches = cut(tmp_path, 3, X, y)
    model = SCBoostClassifier(n_estimators=1, early_stopping=True, n_jobs=1, callbacks=[look]).fit(
        batches, X_val=batches
    )
    assert seen == [mmap.mmap, mmap.mmap, ["rows", "rows"]]
    assert not list(tmp_path.iterdir())
    assert model.predict(X).shape == (1500,)

    def fail(_model):
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        SCBoostClassifier(n_estimators=1, n_jobs=1, callbacks=[fail]).fit(batches)
    assert not list(tmp_path.iterdir())


def raise_interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize("interrupt", [raise_interrupt, lambda: signal.raise_signal(signal.SIGINT)], ids=["own", "key"])
def test_an_interrupt_while_batches_are_read_ends_the_fit(interrupt, tmp_path, request):
    # XGBoost swallows exceptions of its callbacks, and would continue with another batch.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores the key
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    passes = []

    def make_batches(moment=None):
        passes.append(moment)
        for i, batch in enumerate([*GOOD, None]):
            if (len(passes), i) == moment:
                interrupt()
            if batch is not None:
                yield batch

    model = SCBoostClassifier(n_estimators=2, n_jobs=1, random_state=0)
    model.fit(Batches(make_batches, folder=tmp_path))
    for moment in [(number, i) for number in range(1, len(passes) + 1) for i in range(4)]:
        passes = []
        with pytest.raises(KeyboardInterrupt):
            model.fit(Batches(lambda moment=moment: make_batches(moment), folder=tmp_path))
        assert not list(tmp_path.iterdir())


def changing(*passes):
    """Batches that are others in each pass; the last pass is repeated."""
    count = iter(range(100))
    return lambda: iter(passes[min(next(count), len(passes) - 1)])


X, Y = rounded()
GOOD = [(X[:500], TWO[:500]), (X[500:900], TWO[500:900]), (X[900:], TWO[900:])]
INFINITE = np.where(np.arange(6) == 2, np.inf, X[500:900])
OTHER_X = [GOOD[0], (X[500:900] + 1, TWO[500:900]), GOOD[2]]
FRAME = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "up", "down")})
TABLES = [(FRAME[:500], TWO[:500]), (FRAME[500:900], TWO[500:900])]
OTHER_NUMBER = [TABLES[0], (FRAME[500:900].assign(a=1.0), TWO[500:900])]
OTHER_CATEGORY = [TABLES[0], (FRAME[500:900].assign(b="up"), TWO[500:900])]
BAD = {
    "shuffled": (changing(GOOD, GOOD, GOOD[::-1]), ValueError, "Batch 0 differs from the first pass in y"),
    "fewer": (changing(GOOD, GOOD[:2]), ValueError, "fewer batches than in the first pass"),
    "more": (changing(GOOD[:2], GOOD), ValueError, "Batch 2 differs from the first pass in y"),
    "other X": (changing(GOOD, GOOD, OTHER_X), ValueError, "Batch 1 differs from an earlier pass in X"),
    "other X at once": (changing(GOOD, OTHER_X), ValueError, "Batch 1 differs from an earlier pass in X"),
    "other number": (changing(TABLES, OTHER_NUMBER), ValueError, "Batch 1 differs from an earlier pass in X"),
    "other category": (changing(TABLES, TABLES, OTHER_CATEGORY), ValueError, "Batch 1 differs from an earlier pass"),
    "no tuple": (lambda: [X, X], TypeError, r"Batch 0 must be \(X, y\) or \(X, y, sample_weight\), got a ndarray"),
    "no rows": (list, ValueError, "The batches have 0 samples"),
    "no weight": (lambda: [(*GOOD[0], np.zeros(500))], ValueError, "The batches have 0 samples with positive weight"),
    "lengths": (lambda: [GOOD[0], (X, TWO[:5])], ValueError, "Batch 1: y has 5 entries but X has 1500 samples"),
    "columns": (lambda: [GOOD[0], (X[:, :4], TWO)], ValueError, "Batch 1: X has 4 features"),
    "kinds": (lambda: [GOOD[0], (sparse.csr_matrix(X), TWO)], TypeError, "Batch 1: X is a sparse matrix, unlike"),
    "weights": (lambda: [GOOD[0], (X, TWO, WEIGHT)], ValueError, "Batch 1 has weights, unlike those before"),
    "labels": (lambda: [GOOD[0], (X, THREE)], TypeError, "y has labels of several types"),
    "no label": (lambda: [(X, np.where(TWO, np.nan, 1.0))], ValueError, "Batch 0: Input y contains NaN"),
    "infinite": (lambda: [GOOD[0], (INFINITE, TWO[500:900])], ValueError, "Batch 1: Input X contains infinity"),
    "huge": (lambda: [GOOD[0], (X * 0 + 3e38, TWO)], ValueError, "Batch 1: X has a value of size 3e"),
    "one class": (lambda: [(X, TWO * 0)], ValueError, r"number of classes has to be greater than one; got 1 class \(0"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_error_names_the_batch_and_leaves_nothing_behind(name, tmp_path):
    make_batches, kind, message = BAD[name]
    model = SCBoostClassifier(n_estimators=3, n_jobs=1)
    with pytest.raises(kind, match=message):
        model.fit(Batches(make_batches, folder=tmp_path))
    assert not list(tmp_path.iterdir())
    assert not hasattr(model, "classes_")


def test_unsupported_parameters_raise_before_batches_are_read(tmp_path):
    def make_batches():
        raise AssertionError("read")

    batches = Batches(make_batches, folder=tmp_path)
    for params, name in [
        ({"estimator": DecisionTreeRegressor()}, "estimator="),
        ({"preset": "best"}, "preset='best'"),
        ({"weighting": "nonnegative", "weighting_data": "out_of_fold"}, "weighting_data='out_of_fold'"),
        ({"early_stopping": True}, "early_stopping=True"),
        ({"weighting": "simplex"}, "weighting='simplex'"),
        ({"cv": [([0], [1])]}, "cv="),
    ]:
        with pytest.raises(ValueError, match=f"{name}.* cannot be used with a fit to batches"):
            SCBoostClassifier(**params).fit(batches)
    for given in ({"y": TWO}, {"sample_weight": WEIGHT}, {"groups": TWO}):
        with pytest.raises(ValueError, match=f"{next(iter(given))} cannot be given with batches"):
            SCBoostClassifier().fit(batches, **given)
    with pytest.raises(ValueError, match="X_val is batches, which bring their own y_val"):
        SCBoostClassifier().fit(X, TWO, X_val=batches, y_val=TWO)
    with pytest.raises(TypeError, match="must be a function that returns the batches anew each time"):
        Batches(GOOD, folder=tmp_path)
    with pytest.raises(ValueError, match="must be an existing folder"):
        Batches(make_batches, folder=tmp_path / "none")
    with pytest.raises(TypeError, match="predict batch by batch"):
        SCBoostClassifier(n_estimators=1, n_jobs=1).fit(X, TWO).predict(batches)
