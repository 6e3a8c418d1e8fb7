"""Objects of other tools as input and output: Arrow streams, arrays of strings, forked processes."""

import os
import signal
import time

import numpy as np
import pytest

import scboost
from scboost import SCBoostClassifier, SCBoostRegressor, plotting, tuning

duckdb = pytest.importorskip("duckdb")
pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
FEW = {"n_estimators": 8, "n_jobs": 1}


def mixed(n=300):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=n), "n": rng.integers(0, 9, n), "c": rng.choice(["x", "y", "z"], n)})
    return frame, (frame.a + (frame.c == "x") + 0.1 * rng.normal(size=n) > 0).astype(int).to_numpy()


class Stream:
    """Any object that exports the Arrow C stream; it is read at most once, as a reader is."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        table, self._table = self._table, None
        return table.__arrow_c_stream__(requested_schema)


STREAMS = {
    "object": lambda frame: Stream(pa.Table.from_pandas(frame)),
    "RecordBatchReader": lambda frame: pa.Table.from_pandas(frame).to_reader(max_chunksize=100),
    "RecordBatch": pa.RecordBatch.from_pandas,
    "DuckDB relation": lambda frame: duckdb.connect().from_df(frame).select("a, n, c"),
}


@pytest.mark.parametrize("name", STREAMS)
def test_arrow_streams_give_the_model_of_the_frame(name):
    frame, y = mixed()
    make = STREAMS[name]
    expected = SCBoostClassifier(**FEW).fit(frame, y).predict_proba(frame)
    fitted = SCBoostClassifier(**FEW).fit(make(frame), y, X_val=make(frame), y_val=y)
    np.testing.assert_array_equal(fitted.predict_proba(make(frame)), expected)
    assert list(fitted.feature_names_in_) == ["a", "n", "c"]


def test_a_reader_is_read_once_even_if_the_fit_needs_it_twice():
    frame, y = mixed()
    weight = np.r_[0, np.ones(len(y) - 1)]
    table = pa.Table.from_pandas(frame)
    model = SCBoostClassifier(**FEW, max_trees=3).fit(table.to_reader(), y, sample_weight=weight)
    expected = SCBoostClassifier(**FEW, max_trees=3).fit(table, y, sample_weight=weight)
    np.testing.assert_array_equal(model.predict_proba(frame), expected.predict_proba(frame))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_a_relation_of_one_column_is_a_target():
    frame, y = mixed()
    relation = duckdb.connect().from_df(pd.DataFrame({"y": y}))
    expected = SCBoostRegressor(**FEW).fit(frame, y).predict(frame)
    np.testing.assert_array_equal(SCBoostRegressor(**FEW).fit(frame, relation).predict(frame), expected)


@pytest.mark.parametrize("convert", [lambda f: f.to_numpy(), lambda f: f.to_numpy().tolist()], ids=["array", "list"])
def test_objects_with_strings_are_columns_without_names(convert):
    frame, y = mixed()
    frame.loc[3, "c"] = None
    expected = SCBoostClassifier(**FEW).fit(frame, y).predict_proba(frame)
    model = SCBoostClassifier(**FEW).fit(convert(frame), y)
    np.testing.assert_array_equal(model.predict_proba(convert(frame)), expected)
    assert not hasattr(model, "feature_names_in_")
    rows = frame.iloc[3:4]  # without any string
    np.testing.assert_array_equal(model.predict_proba(convert(rows)), expected[3:4])
    with pytest.raises(TypeError, match="without strings"):
        model.predict(np.zeros((2, 3)))


@pytest.mark.parametrize(
    "dtype", [str, *([np.dtypes.StringDType()] if hasattr(np.dtypes, "StringDType") else [])], ids=str
)
def test_arrays_of_strings_are_categories(dtype):
    rng = np.random.default_rng(0)
    X = rng.choice(["red", "green", "blue"], size=(200, 2)).astype(dtype)
    y = (X[:, 0] == "red").astype(int)
    model = SCBoostClassifier(**FEW).fit(X, y)
    assert model.score(X, y) == 1
    expected = SCBoostClassifier(**FEW).fit(pd.DataFrame(X.astype(object)), y).predict_proba(X.astype(object))
    np.testing.assert_array_equal(model.predict_proba(X), expected)


def test_a_model_of_strings_survives_its_file(tmp_path):
    frame, y = mixed()
    X = frame.to_numpy()
    model = SCBoostClassifier(**FEW).fit(X, y)
    model.save_model(tmp_path / "model.ubj")
    np.testing.assert_array_equal(scboost.load_model(tmp_path / "model.ubj").predict_proba(X), model.predict_proba(X))


def fit_in_child(engine):
    """Fit with two threads, fork, and fit again in the child; True if the child's model is the same."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 6))
    y = X[:, 0] + X[:, 1] > 0
    model = SCBoostClassifier(n_estimators=5, n_jobs=2, engine=engine).fit(X, y)
    expected = model.predict_proba(X)
    child = os.fork()
    if child == 0:
        try:
            again = SCBoostClassifier(n_estimators=5, n_jobs=2, engine=engine).fit(X, y).predict_proba(X)
            same = np.array_equal(again, expected) and np.array_equal(model.predict_proba(X), expected)
        except BaseException:  # noqa: BLE001 - the child must not return into pytest
            same = False
        os._exit(0 if same else 1)
    return child


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("engine", ["native", "xgboost"])
def test_a_fit_after_fork_ends_with_the_same_model(engine):
    child = fit_in_child(engine)
    end = time.monotonic() + 60  # only a child that hangs takes so long
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0
            return
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the fit in the forked process did not end")


def test_shap_explanation_has_the_values_of_the_model_and_feeds_the_plots_of_shap():
    pytest.importorskip("shap")
    frame, y = mixed(60)
    classes = y + (frame.a.to_numpy() > 1)
    for target, kind in ((y, SCBoostRegressor), (y, SCBoostClassifier), (classes, SCBoostClassifier)):
        model = kind(**FEW).fit(frame, target)
        explained = plotting.shap_explanation(model, frame)
        values = model.shap_values(frame)
        if values.ndim == 3:
            values = np.moveaxis(values, 1, 2)
        np.testing.assert_array_equal(explained.values, values[:, :-1])
        np.testing.assert_array_equal(explained.base_values, values[:, -1])
        assert list(explained.feature_names) == ["a", "n", "c"]
        assert explained.data[0, 2] == frame.c[0]


def test_shap_explanation_of_a_regressor_equals_the_tree_explainer():
    shap = pytest.importorskip("shap")
    frame, y = mixed(60)
    X = frame[["a", "n"]].to_numpy()
    model = SCBoostClassifier(**FEW).fit(X, y)
    expected = shap.TreeExplainer(model.to_xgboost())(X)
    np.testing.assert_allclose(plotting.shap_explanation(model, X).values, expected.values, atol=1e-5)


def test_plot_importance_shows_the_largest_on_top():
    frame, y = mixed()
    model = SCBoostClassifier(**FEW).fit(frame, y)
    axes = plotting.plot_importance(model, max_features=2)
    largest = np.argsort(-model.feature_importances_)[:2]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(frame.columns[largest[::-1]])
    assert [bar.get_width() for bar in axes.patches] == list(model.feature_importances_[largest[::-1]])
    with pytest.raises(ValueError, match="max_features must be at least 1, got 0"):
        plotting.plot_importance(model, max_features=0)


def test_prune_trial_reports_every_round_and_prunes():
    optuna = pytest.importorskip("optuna")
    frame, y = mixed()

    class Never(optuna.pruners.BasePruner):
        def prune(self, study, trial):
            return trial.last_step >= 3

    study = optuna.create_study(pruner=Never())

    def objective(trial):
        params = tuning.search_space(trial, prefix="scboost_")
        model = SCBoostClassifier(**params, **FEW, early_stopping=True, callbacks=[tuning.PruneTrial(trial)])
        return min(model.fit(frame, y).training_log_["validation_loss"])

    study.optimize(objective, n_trials=2)
    assert {trial.state.name for trial in study.trials} == {"PRUNED"}
    assert [list(trial.intermediate_values) for trial in study.trials] == [[1, 2, 3]] * 2
    assert all(name.startswith("scboost_") for name in study.trials[0].params)
    with pytest.raises(ValueError, match=r"X_val= and y_val= to fit or set early_stopping=True"):
        SCBoostClassifier(**FEW, callbacks=[tuning.PruneTrial(study.ask())]).fit(frame, y)


def test_compressed_fits_repeat_without_a_seed():
    frame, y = mixed()
    first, second = (SCBoostClassifier(**FEW, max_trees=3).fit(frame, y).predict_proba(frame) for _ in range(2))
    np.testing.assert_array_equal(first, second)
