"""No silent wrong result: what once went wrong without a word, each stated as the fact that holds now.

Others of the kind are with their subjects: files in test_checkpoint.py and test_model_file.py, versions in
test_document.py, other libraries in test_treematrix.py.
"""

import threading
import warnings

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold
from threadpoolctl import threadpool_info, threadpool_limits

from data_makers import FAST, real_target, three_classes, two_classes
from scboost import (
    SCBoostClassifier,
    SCBoostRegressor,
    compress,
    prune,
    redundancy_report,
    report,
    reweight,
    tree_matrix,
)
from scboost._core.history import History
from scboost._core.losses import HuberLoss
from scboost._core.spec import Facts
from scboost._data.samples import Samples
from scboost._engine.xgboost.engine import XGBoostEngine
from scboost._runtime.communicator import SINGLE_PROCESS
from scboost.diagnostics import frontier
from scboost.weighting import nonnegative_weights, simplex_weights

X, y = real_target()
X2, y2 = two_classes(d=4)
X3, y3 = three_classes(d=4)
FITTED = SCBoostClassifier(**FAST).fit(X2, y2)
COUNTS = np.round(np.exp(y))


def r2(model, target):
    return model.score(X, target)


# --- units and scales -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1e7, 1e8, 1e20])
def test_scale_of_weights_affects_penalties_only(unit):
    free = {**FAST, "reg_lambda": 0.0, "min_child_weight": 0.0, "exploration": 0.0}
    plain, weighted = (SCBoostRegressor(**free).fit(X, y, np.full(300, w)) for w in (1.0, unit))
    assert r2(plain, y) > 0.8
    np.testing.assert_allclose(weighted.predict(X), plain.predict(X), rtol=1e-3, atol=1e-3)


def test_large_weights_do_not_cost_accuracy():
    assert r2(SCBoostRegressor(**FAST).fit(X, y, np.full(300, 1e8)), y) > 0.8


def test_an_empty_model_warns():
    with pytest.warns(ConvergenceWarning, match=r"no tree found a split .* weights of at least min_child_weight"):
        SCBoostRegressor(**FAST, min_child_weight=1.0).fit(X, y, np.full(300, 1 / 300))


@pytest.mark.parametrize("mean", [1.0, 1e8, 1e9])
def test_counts_of_any_magnitude_are_learned(mean):
    counts = np.random.default_rng(0).poisson(mean * np.exp(y)).astype(float)
    model = SCBoostRegressor(**FAST, loss="poisson").fit(X, counts)
    shares = model.predict(X) / mean
    assert np.corrcoef(shares, np.exp(y))[0, 1] > 0.8


def test_init_zero_reaches_a_distant_target():
    shifted = y + 25 * y.std()
    model = SCBoostRegressor(**{**FAST, "n_estimators": 60}, init="zero").fit(X, shifted)
    assert np.abs(model.predict(X).mean() - shifted.mean()) < 1
    rare = (np.arange(300) % 200 == 0).astype(int)
    p = SCBoostClassifier(**{**FAST, "n_estimators": 60}, init="zero").fit(X, rare).predict_proba(X)[:, 1]
    assert p.mean() < 0.1


def test_large_target_mean_costs_no_precision():
    model = SCBoostRegressor(**FAST).fit(X, y + 1e7)
    assert r2(model, y + 1e7) > 0.8
    *_, last = model.staged_predict(X)
    np.testing.assert_allclose(last - 1e7, model.predict(X) - 1e7, atol=1e-5)
    np.testing.assert_allclose(tree_matrix(model, X).margin() - 1e7, model.predict(X) - 1e7, atol=1e-5)


def test_a_model_without_trees_scores_its_intercept():
    with pytest.warns(ConvergenceWarning, match="no trees"):
        model = SCBoostClassifier(**FAST, min_child_weight=1e9).fit(X2, y2, np.where(y2, 1e9, 1.0) / 1e6)
    np.testing.assert_array_equal(model.decision_function(X2), model.intercept_[0])


def test_initial_scores_that_differ_between_samples_are_rejected():
    start = DummyClassifier(strategy="stratified", random_state=0)
    model = GradientBoostingClassifier(init=start, n_estimators=3, random_state=0).fit(X2, y2)
    with pytest.raises(ValueError, match=r"init=Dummy.* predicts a different initial score for each sample"):
        tree_matrix(model, X2)


# --- resuming ---------------------------------------------------------------------------------------------------------


def _cell(X):
    X = X.copy()
    X[3, 1] += 1
    return X


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_cell, "X has changed"),
        (lambda X: X[:, ::-1], "X has changed"),
        (lambda X: X[::-1], "X has changed"),
        (lambda X: X[:, :3], "features 0 to 3"),
    ],
    ids=["a cell", "order of columns", "order of rows", "number of columns"],
)
def test_a_warm_start_rejects_other_data_and_keeps_its_model(change, words):
    model = SCBoostRegressor(**FAST, warm_start=True).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match=words):
        model.set_params(n_estimators=12).fit(change(X), y)
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize(
    "change",
    [
        {"random_state": 1},
        {"loss": "huber"},
        {"loss": "quantile", "quantile": 0.2},
        {"memory": "all"},
        {"projection_strength": 0.1},
        {"learning_rate": 0.1},
        {"max_leaves": 4},
        {"subsample": 0.5},
        {"leaf_rule": "mean"},
        {"init": "zero"},
        {"validation_fraction": 0.4},
        {"early_stopping": False},
        {"weighting": "nonnegative"},
        {"max_bin": 16},
        {"exploration": 1.0},
    ],
    ids=str,
)
def test_a_warm_start_refuses_another_parameter_by_name(change):
    model = SCBoostRegressor(**FAST, early_stopping=True, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=f"{next(iter(change))}=.* was .* in the fit to resume"):
        model.set_params(n_estimators=12, **change).fit(X, y)


def test_a_warm_start_of_a_constant_target_adds_no_rounds():
    model = SCBoostRegressor(warm_start=True, n_estimators=5, n_jobs=1)
    for _ in range(2):
        model.fit(X, np.ones(300))
    np.testing.assert_array_equal(model.predict(X), 1.0)


def test_a_failed_refit_leaves_the_model():
    model = SCBoostRegressor(**FAST).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, np.full(300, np.nan))
    np.testing.assert_array_equal(model.predict(X), before)


# --- weights and samples ----------------------------------------------------------------------------------------------

TASKS = {
    "two classes": (SCBoostClassifier, {}, (X2, y2)),
    "many classes": (SCBoostClassifier, {}, (X3, y3)),
    "squared error": (SCBoostRegressor, {}, (X, y)),
    "absolute error": (SCBoostRegressor, {"loss": "absolute_error"}, (X, y)),
    "poisson": (SCBoostRegressor, {"loss": "poisson"}, (X, COUNTS)),
}


def test_integer_weights_equal_repeated_samples_before_the_first_round():
    weight = np.array([1.0, 3.0])
    ends, repeated = np.array([0.0, 1000.0]), np.array([0.0, 1000.0, 1000.0, 1000.0])
    start = HuberLoss(1.0).initial_score(ends, weight)
    np.testing.assert_allclose(start, [1000 - 1 / 3])
    np.testing.assert_allclose(HuberLoss(1.0).initial_score(repeated, None), start)
    weighted = Samples(np.zeros((4000, 1)), np.zeros(4000), np.full(4000, 2.0))
    twice = Samples(np.zeros((8000, 1)), np.zeros(8000), None)
    facts = [
        Facts(1, part.total_weight(SINGLE_PROCESS), part.effective_size(SINGLE_PROCESS)) for part in (weighted, twice)
    ]
    assert facts[0] == facts[1]


def test_weight_zero_hides_the_category_of_a_sample():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"a": pd.Categorical(np.where(X[:, 0] > 0, "up", "down")), "b": X[:, 1]})
    table.loc[0, "a"] = None
    odd = table.assign(a=table["a"].cat.add_categories(["zz"]))
    odd.loc[0, "a"] = "zz"
    weight = np.r_[0.0, np.ones(299)]
    a, b = (SCBoostRegressor(**FAST).fit(t, y, weight) for t in (table, odd))
    np.testing.assert_array_equal(a.predict(odd), b.predict(odd))


def test_fold_indices_refer_to_the_given_samples():
    weight = np.where(np.arange(300) % 5 == 0, 0.0, 1.0)
    kept = np.flatnonzero(weight)
    halves = [(np.arange(150), np.arange(150, 300)), (np.arange(150, 300), np.arange(150))]
    of_kept = [tuple(np.flatnonzero(np.isin(kept, part)) for part in split) for split in halves]
    folds = {"weighting": "nonnegative", "weighting_data": "out_of_fold"}
    given = SCBoostRegressor(**FAST, **folds, cv=halves).fit(X, y, weight)
    without = SCBoostRegressor(**FAST, **folds, cv=of_kept).fit(X[kept], y[kept])
    np.testing.assert_allclose(given.predict(X), without.predict(X), rtol=1e-5, atol=1e-5)
    groups = np.arange(300) // 30
    SCBoostRegressor(**FAST, **folds, cv=GroupKFold(3)).fit(X, y, weight, groups=groups)


# --- steps that are too large -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "target", "rounds"),
    [
        ({"loss": "absolute_error", "learning_rate": 3.0}, y, 200),
        ({"learning_rate": 30.0}, y, 60),
        ({"loss": "poisson", "learning_rate": 3.0}, 1e9 * np.exp(y), 7),
        ({"loss": "poisson", "learning_rate": 30.0}, COUNTS, 30),
    ],
    ids=str,
)
def test_a_diverging_fit_reports_it_and_keeps_finite_rounds(params, target, rounds):
    model = SCBoostRegressor(**{**FAST, **params, "n_estimators": rounds})
    with pytest.warns(ConvergenceWarning, match=r"diverge.* learning_rate below"):
        model.fit(X, target)
    assert np.isfinite(model.predict(X)).all()
    assert len(model.training_log_["loss"]) == model.n_estimators_ == len(model.weights_)
    assert np.isfinite(model.training_log_["loss"]).all()


def test_gains_too_large_for_a_file_stay_finite():
    engine = XGBoostEngine(X.astype(np.float32), 1, {"max_depth": 2, "lambda": 0.0, "min_child_weight": 0.0})
    with np.errstate(over="ignore"):
        residuals, hessians = np.float32(1e17) * y[None].astype(np.float32), np.full((1, 300), 1e-10, np.float32)
        (learner,) = engine.grow(residuals, hessians, 0)
    gains = learner.model["loss_changes"]
    assert gains.dtype == np.float32
    assert np.isfinite(gains).all()
    assert gains[0] > 1e38
    assert (gains[learner.nodes] == 0).all()


def test_vanishing_hessians_do_not_divide_by_zero():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        SCBoostRegressor(**{**FAST, "learning_rate": 3.0}, loss="poisson").fit(X, 1e9 * np.exp(y))


# --- threads ----------------------------------------------------------------------------------------------------------


def test_fits_in_threads_leave_blas_as_it_was():
    def blas():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before = blas()
        fits = [threading.Thread(target=SCBoostRegressor(**FAST).fit, args=(X, y)) for _ in range(4)]
        for fit in fits:
            fit.start()
        for fit in fits:
            fit.join()
        assert blas() == before


class Watched:
    """Samples that record the number of BLAS threads whenever they are read."""

    def __init__(self, X, noted):
        self.X, self.noted, self.shape = X, noted, X.shape

    def __len__(self):
        return len(self.X)

    def __getitem__(self, rows):
        return Watched(self.X[rows], self.noted)

    def __array__(self, dtype=None, copy=None):
        self.noted.add(max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"))
        return np.asarray(self.X, dtype=dtype)


@pytest.mark.parametrize(
    "call",
    [
        lambda X: SCBoostClassifier(**FAST, weighting="nonnegative").fit(X, y2),
        lambda X: compress(FITTED, X, max_trees=2, n_synthetic=100, random_state=0),
        lambda X: prune(FITTED, X, y2, max_trees=2),
        lambda X: reweight(FITTED, X, y2),
        lambda X: redundancy_report(FITTED, X),
        lambda X: frontier(FITTED, X, y2, sizes=[1, 2]),
        lambda X: report(FITTED, X, y2),
        lambda X: simplex_weights(X, y2),
        lambda X: nonnegative_weights(X, y2),
    ],
    ids=["fit", "compress", "prune", "reweight", "redundancy", "frontier", "report", "simplex", "nonnegative"],
)
def test_blas_has_one_thread(call):
    """With a second BLAS thread on a busy machine, compress took 9 times as long, redundancy_report 40 times."""
    before, noted = set(), set()
    with threadpool_limits(2, user_api="blas"):
        np.asarray(Watched(X2, before))
        call(Watched(X2, noted))
    assert before == {2}
    assert noted == {1}


@pytest.mark.parametrize("compiled", [True, False])
def test_predictions_in_threads_survive_a_change_of_n_jobs(compiled, monkeypatch):
    """One booster was told its number of threads while others predicted with it."""
    model = SCBoostRegressor(**FAST).fit(X, y)
    if not compiled:
        monkeypatch.setattr(type(model.__fitted_model__().ensemble), "_prepared", lambda _: None)
    wanted, found = model.predict(X), []

    def predict():
        found.extend(np.array_equal(model.predict(X), wanted) for _ in range(20))

    threads = [threading.Thread(target=predict) for _ in range(4)]
    for thread in threads:
        thread.start()
    for n_jobs in [1, 2, 3] * 10:
        model.set_params(n_jobs=n_jobs)
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert all(found)


# --- columns ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "pandas with NaN", "polars", "pyarrow"])
def test_a_category_may_be_absent_from_all_predicted_samples(library):
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    table = pd.DataFrame({"a": np.where(X[:, 0] > 0, "up", "down"), "b": X[:, 1]})
    model = SCBoostRegressor(**FAST).fit(table, y)
    one = {
        "pandas": lambda: pd.DataFrame({"a": [None], "b": [0.5]}),
        "pandas with NaN": lambda: pd.DataFrame({"a": [np.nan], "b": [0.5]}),
        "polars": lambda: pl.DataFrame({"a": [None], "b": [0.5]}),
        "pyarrow": lambda: pa.table({"a": pa.nulls(1), "b": [0.5]}),
    }[library]()
    unknown = pd.DataFrame({"a": ["sideways"], "b": [0.5]})
    np.testing.assert_array_equal(model.predict(one), model.predict(unknown))


def test_views_of_strings_are_categories():
    pa = pytest.importorskip("pyarrow")
    texts = pa.array(np.where(X[:, 0] > 0, "up", "down"))
    plain, views = (
        SCBoostRegressor(**FAST).fit(pa.table({"a": column, "b": X[:, 1]}), y)
        for column in (texts, texts.cast(pa.string_view()))
    )
    rows = pa.table({"a": texts, "b": X[:, 1]})
    np.testing.assert_array_equal(views.predict(rows), plain.predict(rows))


@pytest.mark.parametrize("size", [1e39, 3.4e38, 2e38])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_too_large_for_a_tree_are_refused(size, dtype):
    pd = pytest.importorskip("pandas")
    with np.errstate(over="ignore"):
        rows = np.where(np.arange(300)[:, None] == 7, size, X).astype(dtype)
    for given in (rows, pd.DataFrame(rows)):
        with pytest.raises(ValueError, match=r"X has a value of size .*up to 1\.7e\+38|X contains infinity"):
            SCBoostRegressor(**FAST).fit(given, y)


def test_validation_values_too_large_for_a_tree_are_rejected():
    model = SCBoostRegressor(**FAST, early_stopping=True)
    with pytest.raises(ValueError, match=r"X_val has a value of size .*; trees support values up to 1.7e\+38"):
        model.fit(X, y, X_val=np.where(X > 2, 3e38, X), y_val=y)


def test_the_largest_values_allowed_make_a_model_that_can_be_saved(tmp_path):
    rows = np.sign(X) * 1.6e38
    model = SCBoostRegressor(**FAST).fit(rows, y)
    model.save_model(tmp_path / "model.ubj")
    assert np.isfinite(model.get_booster().trees_to_dataframe()["Split"].dropna()).all()


# --- messages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.full(300, 1e39), r"sample_weight runs from 1e\+39 to 1e\+39; allowed are weights up to 1e\+30"),
        (np.where(y > 0, 1e18, 1.0), r"sample_weight runs from 1 to 1e\+18.*ratio is at most 1e\+15"),
        (np.eye(300)[0], r"sample_weight is positive for 1 of 300 samples"),
    ],
    ids=["1e39", "ratio 1e18", "one row"],
)
def test_weights_that_no_tree_can_add_up_are_refused(weight, words):
    with pytest.raises(ValueError, match=words):
        SCBoostRegressor(**FAST).fit(X, y, weight)


def test_labels_of_several_types_are_named():
    with pytest.raises(TypeError, match=r"y has labels of several types, \['int', 'str'\]; use one type"):
        SCBoostClassifier(**FAST).fit(X2, np.array(["a", 1] * 150, dtype=object))


def test_a_class_too_rare_to_hold_out_is_named_by_its_label():
    labels = np.array(["ant"] * 150 + ["bee"] * 149 + ["zebra"])
    with pytest.raises(ValueError, match=r"validation_fraction=0\.2 of 300 samples .* class 'zebra' has 1 sample"):
        SCBoostClassifier(**FAST, early_stopping=True).fit(X2, labels)


@pytest.mark.parametrize(
    "params",
    [{"weighting": "nonnegative", "weighting_data": "out_of_fold"}, {"n_estimators": "auto", "loss": "absolute_error"}],
)
def test_the_first_fold_may_find_no_tree(params):
    """Its target is constant; the other folds go on, and the progress bar has nothing to say of the first."""
    halves = [(np.arange(150), np.arange(150, 300)), (np.arange(150, 300), np.arange(150))]
    target = np.where(np.arange(300) < 150, 0.0, y)
    model = SCBoostRegressor(**{**FAST, **params}, cv=halves, verbose=1)
    assert np.isfinite(model.fit(X, target).predict(X)).all()


@pytest.mark.parametrize("loss", ["poisson", "tweedie"])
@pytest.mark.parametrize("weight", [1.0, 1e-10])  # small weights and tiny means: penalties are huge in their unit
def test_a_fold_may_hold_no_counts(loss, weight):
    halves = [(np.arange(150), np.arange(150, 300)), (np.arange(150, 300), np.arange(150))]
    counts = np.where(np.arange(300) < 150, 0.0, COUNTS)
    folds = {"weighting": "nonnegative", "weighting_data": "fold_average", "cv": halves}
    model = SCBoostRegressor(**FAST, **folds, loss=loss).fit(X, counts, np.full(300, weight))
    assert np.isfinite(model.predict(X)).all()


def test_steps_of_the_weights_may_overflow_and_are_shortened():
    rng = np.random.default_rng(7)
    rows, amounts, weight = (
        rng.normal(size=(24, 1)),
        rng.poisson(1, size=24) + 0.01,
        np.exp(rng.uniform(-15, 15, size=24)),
    )
    model = SCBoostRegressor(
        n_estimators=3, learning_rate=3.0, weighting="nonnegative", loss="gamma", n_jobs=1, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert np.isfinite(model.fit(rows, amounts, weight).predict(rows)).all()


# --- cost -------------------------------------------------------------------------------------------------------------


def test_a_new_metric_each_round_takes_one_factorisation(monkeypatch):
    """Full history, all its energy, Hessians that change: vector by vector, a round took a pass for each of them."""
    rng = np.random.default_rng(0)
    history = History(60, 40, np.float64)
    for h in rng.normal(size=(40, 60)):
        history.append(h)
    r, c = rng.normal(size=60), rng.uniform(0.1, 1, size=60)
    appended = []
    monkeypatch.setattr("scboost._core.history._Basis.append", lambda *_: appended.append(1))
    q = history.project(r, alpha=1.0, hessian=c).innovation
    assert not appended
    H = history.vectors
    best = np.linalg.lstsq(H.T * np.sqrt(c)[:, None], r / np.sqrt(c), rcond=None)[0]
    np.testing.assert_allclose(q, r - c * (best @ H), atol=1e-8)


def test_penalties_that_float32_does_not_hold_do_not_end_a_fit():
    """In units of a diverging target, a penalty may be as good as nothing; XGBoost refuses such numbers."""
    X = np.array([6.0, 1.0, 2.0, 5.0, 3.0, 4.0])[:, None]
    y = np.array([1082976.31, 83130.12, 156490.39, 185491.73, 1044762.34, 95825.56])
    model = SCBoostRegressor(loss="poisson", n_estimators=7, learning_rate=3.0, min_split_loss=10.0)
    heavy = SCBoostRegressor(loss="gamma", n_estimators=4, learning_rate=3.0, subsample=0.3, random_state=0)
    rows = np.array([[-1.0, 0], [np.nan, 0], [-0.5, 0], [-2.5, 0], [np.nan, 0], [np.nan, 0]])
    amounts, weight = np.array([0.0005] * 5 + [0.3705]), [5.49e11, 6.08e11, 8.33e11, 6.49e11, 1.245e12, 1.114e12]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isfinite(model.fit(X, y).predict(X)).all()
        assert np.isfinite(heavy.fit(rows, amounts, weight).predict(rows)).all()
