"""SCBoostClassifier: scikit-learn's rules, and what a user may rely on."""

import inspect
import itertools
import json
import pickle
import signal

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given, settings
from scipy import sparse, special
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import estimator_checks_generator

from data_makers import ENGINES, FAST, STEPS_OF_GROWTH, legal_parameters, three_classes, two_classes
from scboost import SCBoostClassifier
from scboost._data.folds import content_sample
from scboost._data.hashing import row_keys
from scboost._engine.estimator import EstimatorEngine

X2, y2 = two_classes()
X3, y3 = three_classes()
VARIANTS = {
    "default": {},
    "paper": {k: v for k, v in SCBoostClassifier.from_paper().get_params().items() if k not in FAST},
    "nonnegative": {"weighting": "nonnegative"},
    "out of fold": {"weighting": "nonnegative", "weighting_data": "out_of_fold", "cv": 3},
    "fold average": {"weighting": "nonnegative", "weighting_data": "fold_average", "cv": 3},
    "early stopping": {"early_stopping": True, "n_iter_no_change": 3},
    "sampling": {"subsample": 0.6, "colsample_bytree": 0.5},
    "regression tree": {"estimator": DecisionTreeRegressor(max_depth=3), "colsample_bytree": 1.0},
}
every_variant = pytest.mark.parametrize("params", VARIANTS.values(), ids=VARIANTS)


def model_of(params, **overrides):
    return SCBoostClassifier(**{**FAST, **params, **overrides})


def all_checks():
    """Every check; a list, because scikit-learn 1.6's own decorator hands pytest a generator, which it deprecates."""
    full = {"memory": "all", "energy_threshold": 1.0, "projection_strength": 1.0}
    for name, params in {"default": {}, "full projection": full}.items():
        for estimator, check in estimator_checks_generator(SCBoostClassifier(n_estimators=5, n_jobs=1, **params)):
            yield pytest.param(estimator, check, id=f"{name}-{getattr(check, 'func', check).__name__}")


@pytest.mark.filterwarnings("ignore:The model has no trees")  # of a handful of rows
@pytest.mark.parametrize(("estimator", "check"), list(all_checks()))
def test_passes_check_estimator(estimator, check):
    check(clone(estimator))


def other_checks():
    """All checks of estimators that hold out rows, and all but two of those that grow trees without regularization.

    That a weight is a repeated row does not apply to the latter: on the check's 15 rows of 30 columns many splits are
    equally good, so that rounding chooses among them. Nor do class weights of 10,000,000 to 1 on 50 rows: which ten of
    them the trees are weighted on decides (28 of 40 seeds pass).
    """
    tree = DecisionTreeRegressor(max_depth=3, min_weight_fraction_leaf=0.01, random_state=0)
    for name, estimator in {
        "paper": SCBoostClassifier.from_paper(n_estimators=5, n_jobs=1),
        "regression tree": SCBoostClassifier(n_estimators=5, colsample_bytree=1.0, leaf_rule="mean", estimator=tree),
        "nonnegative": SCBoostClassifier(n_estimators=5, n_jobs=1, weighting="nonnegative"),
        "early stopping": SCBoostClassifier(n_estimators=5, n_jobs=1, early_stopping=True),
    }.items():
        for _, check in estimator_checks_generator(estimator):
            what = getattr(check, "func", check).__name__
            unregularised = name in {"paper", "regression tree"} and what.startswith("check_sample_weight_equivalence")
            if not unregularised and (name, what) != ("paper", "check_class_weight_classifiers"):
                yield pytest.param(estimator, check, id=f"{name}-{what}")


@pytest.mark.filterwarnings("ignore:The model has no trees")  # of a handful of rows
@pytest.mark.parametrize(("estimator", "check"), list(other_checks()))
def test_variants_pass_check_estimator(estimator, check):
    check(clone(estimator))


# --- the model -------------------------------------------------------------------------------------


def test_score_on_synthetic_data_beats_chance():
    X, y = load_breast_cancer(return_X_y=True)
    model = SCBoostClassifier(n_estimators=50, n_jobs=1, random_state=0)
    assert cross_val_score(model, X, y, cv=4, scoring="roc_auc").mean() > 0.985


def test_score_on_real_data_is_high(shared_data):
    pandas = pytest.importorskip("pandas")
    table = pandas.read_parquet(shared_data / "phoneme.parquet")
    y = table.iloc[:, -1].to_numpy()
    X_train, X_test, y_train, y_test = train_test_split(table.iloc[:, :-1], y, stratify=y, random_state=0)
    model = SCBoostClassifier(n_jobs=1, random_state=0).fit(X_train, y_train)
    prior = DummyClassifier(strategy="prior").fit(X_train, y_train)
    assert log_loss(y_test, model.predict_proba(X_test)) < 0.7 * log_loss(y_test, prior.predict_proba(X_test))


@every_variant
@pytest.mark.parametrize("many", [False, True])
def test_prediction_methods_agree(params, many):
    X, y = (X3, y3) if many else (X2, y2)
    labels = np.array(["ash", "birch", "cedar"])[y]
    model = model_of(params).fit(X, labels)
    probability = model.predict_proba(X)
    score = model.decision_function(X).astype(np.float64)
    assert probability.shape == (300, len(model.classes_))
    np.testing.assert_allclose(probability.sum(axis=1), 1, atol=1e-12)
    if many:
        np.testing.assert_allclose(probability, special.softmax(score, axis=1), atol=1e-12)
        np.testing.assert_array_equal(model.predict(X), model.classes_[np.argmax(score, axis=1)])
    else:
        np.testing.assert_allclose(probability[:, 1], special.expit(score), atol=1e-12)
        np.testing.assert_array_equal(model.predict(X), model.classes_[(score > 0).astype(int)])
    stages = list(model.staged_predict_proba(X))
    assert len(stages) == model.n_estimators_
    np.testing.assert_allclose(stages[-1], probability, atol=1e-6)
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], model.classes_[np.argmax(stages[-1], axis=1)])


@every_variant
def test_pickles_and_clones(params):
    model = model_of(params).fit(X2, y2)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 - written here
    np.testing.assert_array_equal(again.predict_proba(X2), model.predict_proba(X2))
    np.testing.assert_array_equal(again.weights_, model.weights_)
    twin = clone(model)
    assert not hasattr(twin, "classes_")
    np.testing.assert_array_equal(twin.fit(X2, y2).predict_proba(X2), model.predict_proba(X2))


@every_variant
def test_fits_are_bit_identical_for_any_number_of_threads(params):
    models = [model_of(params, n_jobs=n_jobs).fit(X2, y2) for n_jobs in (1, 1, 2)]
    for other in models[1:]:
        np.testing.assert_array_equal(other.predict_proba(X2), models[0].predict_proba(X2))
        np.testing.assert_array_equal(other.weights_, models[0].weights_)
        assert other.training_log_.keys() == models[0].training_log_.keys()
        for name, column in models[0].training_log_.items():
            np.testing.assert_array_equal(other.training_log_[name], column)
    if "estimator" not in params or params["estimator"] is None:
        assert models[0].get_booster().save_raw() == models[2].get_booster().save_raw()


def test_random_states_differ_where_something_is_random():
    fits = [model_of({"subsample": 0.5}, random_state=seed).fit(X2, y2).decision_function(X2) for seed in (0, 1)]
    assert not np.array_equal(*fits)


@every_variant
def test_the_training_log_has_an_entry_for_every_round(params):
    model = model_of(params).fit(X2, y2)
    rounds = model.training_log_
    grown = len(rounds["loss"])
    assert {len(column) for column in rounds.values()} == {grown}
    assert rounds["round"].tolist() == list(range(1, grown + 1))
    assert rounds["components"][0] == 0
    assert (np.diff(rounds["loss"]) < 0).any()
    for name in ("energy_kept", "energy_removed"):
        assert ((rounds[name] >= 0) & (rounds[name] <= 1)).all()
    assert model.stop_reason_ == "" or model.n_estimators_ < 8
    assert len(model.weights_) >= model.n_estimators_
    assert not model.weights_[model.n_estimators_ :].any()
    assert model.intercept_.shape == (1,)


def test_training_loss_is_that_of_the_stages():
    model = model_of({"learning_rate": 0.3}).fit(X2, y2)
    stages = list(model.staged_predict_proba(X2))
    losses = [log_loss(y2, stage) for stage in stages]
    np.testing.assert_allclose(model.training_log_["loss"], losses, rtol=1e-5)
    p = y2.mean()
    np.testing.assert_allclose(model.intercept_, [np.log(p / (1 - p))])
    np.testing.assert_array_equal(model.weights_, np.full(8, 0.3))


@settings(deadline=None, max_examples=40)
@given(params=legal_parameters())
def test_any_valid_parameters_give_a_model(params):
    model = SCBoostClassifier(**params).fit(X2, y2)
    probability = model.predict_proba(X2)
    assert np.isfinite(probability).all()
    assert ((probability >= 0) & (probability <= 1)).all()
    assert len(model.weights_) >= model.n_estimators or model.stop_reason_
    if (model.weights_ != 0).any() and model.learning_rate != "auto" and model.weighting is None:
        assert set(model.weights_) <= {0.0, model.learning_rate}


def test_without_projection_equals_xgboost_classifier():
    X, y = two_classes(n=800)
    model = SCBoostClassifier(
        n_estimators=15,
        learning_rate=0.3,
        projection_strength=0.0,
        exploration=0.0,
        max_depth=4,
        max_leaves=None,
        reg_lambda=1.0,
        min_child_weight=1.0,
        colsample_bytree=1.0,
        n_jobs=1,
        engine="xgboost",
    ).fit(X, y)
    params = {
        "objective": "binary:logistic",
        "tree_method": "hist",
        "max_depth": 4,
        "eta": 0.3,
        "base_score": y.mean(),
        "nthread": 1,
    }
    booster = xgb.train(params, xgb.QuantileDMatrix(X, label=y), num_boost_round=15)
    mine, theirs = model.get_booster(), booster
    assert [tree.splitlines()[0] for tree in mine.get_dump()] == [tree.splitlines()[0] for tree in theirs.get_dump()]
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], booster.predict(xgb.DMatrix(X)), atol=1e-5)


# --- explanations ----------------------------------------------------------------------------------


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("weighting", [None, "nonnegative"])
def test_shap_values_add_up_to_the_score(many, weighting):
    X, y = (X3, y3) if many else (X2, y2)
    model = model_of({"weighting": weighting}).fit(X, y)
    contributions = model.get_booster().predict(xgb.DMatrix(X), pred_contribs=True)
    np.testing.assert_allclose(contributions.sum(axis=-1), model.decision_function(X), atol=1e-5)


def test_the_shap_package_reads_the_native_model():
    # Earlier ones cannot read the intercept that XGBoost 3.1 and later write; there is no later one for Python 3.10.
    shap = pytest.importorskip("shap", minversion="0.50")
    model = model_of({}).fit(X2, y2)
    explainer = shap.TreeExplainer(model.get_booster())
    values = explainer.shap_values(X2)
    np.testing.assert_allclose(values.sum(axis=1) + explainer.expected_value, model.decision_function(X2), atol=1e-4)


def test_feature_importances_find_informative_features():
    model = model_of({}, n_estimators=20).fit(X2, y2)
    importances = model.feature_importances_
    assert importances.sum() == pytest.approx(1)
    assert importances[:2].min() > importances[2:].max()
    X = np.column_stack([X2, np.zeros(300)])
    assert model_of({}).fit(X, y2).feature_importances_[-1] == 0


# --- constraints -----------------------------------------------------------------------------------


def paths(node, above=()):
    """Sets of columns that meet on a path of a tree, as XGBoost describes it."""
    if "leaf" in node:
        yield frozenset(above)
    else:
        for child in node["children"]:
            yield from paths(child, (*above, node["split"]))


def test_interaction_constraints_hold_on_every_path():
    groups = [[0, 1], [2, 3, 4]]
    model = model_of({"interaction_constraints": groups, "colsample_bytree": 1.0}, n_estimators=15).fit(X2, y2)
    allowed = [{f"f{i}" for i in group} for group in groups]
    for tree in model.get_booster().get_dump(dump_format="json"):
        for path in paths(json.loads(tree)):
            assert any(path <= group for group in allowed)
    # The score is then a sum of one function of each group.
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 50, 5))
    mixed_1, mixed_2 = np.hstack([a[:, :2], b[:, 2:]]), np.hstack([b[:, :2], a[:, 2:]])
    f = model.decision_function
    np.testing.assert_allclose(f(a) + f(b), f(mixed_1) + f(mixed_2), atol=1e-5)


def test_constraints_by_column_name():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X2, columns=list("abcde"))
    by_name = model_of({"monotone_constraints": {"b": -1, "a": 1}, "interaction_constraints": [["a", "b"], ["c"]]})
    by_number = model_of({"monotone_constraints": [1, -1, 0, 0, 0], "interaction_constraints": [[0, 1], [2]]})
    np.testing.assert_array_equal(
        by_name.fit(table, y2).decision_function(table), by_number.fit(X2, y2).decision_function(X2)
    )


# --- weights ---------------------------------------------------------------------------------------


def test_weight_zero_equals_leaving_the_sample_out():
    weight = (np.arange(300) % 3 > 0).astype(float)
    kept = weight > 0
    a = model_of({}).fit(X2, y2, sample_weight=weight).decision_function(X2)
    b = model_of({}).fit(X2[kept], y2[kept], sample_weight=weight[kept]).decision_function(X2)
    np.testing.assert_array_equal(a, b)


def test_equal_weights_equal_no_weights():
    a = model_of({}).fit(X2, y2, sample_weight=np.ones(300)).decision_function(X2)
    b = model_of({}).fit(X2, y2).decision_function(X2)
    np.testing.assert_allclose(a, b, atol=1e-5)


def test_larger_weights_shift_predictions():
    heavy = np.where(y2 == 1, 10.0, 1.0)
    p = model_of({}).fit(X2, y2, sample_weight=heavy).predict_proba(X2)[:, 1]
    assert p.mean() > model_of({}).fit(X2, y2).predict_proba(X2)[:, 1].mean() + 0.1


def test_class_weight_is_a_sample_weight():
    balanced = 300 / (2 * np.bincount(y2))
    a = model_of({"class_weight": "balanced"}).fit(X2, y2).decision_function(X2)
    b = model_of({}).fit(X2, y2, sample_weight=balanced[y2]).decision_function(X2)
    np.testing.assert_allclose(a, b, atol=1e-6)
    a = model_of({"class_weight": {0: 2.0, 1: 0.5}}).fit(X2, y2, sample_weight=np.full(300, 3.0)).decision_function(X2)
    b = model_of({}).fit(X2, y2, sample_weight=np.where(y2, 1.5, 6.0)).decision_function(X2)
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_trees_of_weight_zero_are_not_in_the_native_model():
    model = SCBoostClassifier.from_paper(n_estimators=15, covariance_penalty=0.0, n_jobs=1).fit(X2, y2)
    used = np.count_nonzero(model.weights_)
    assert used < 15
    assert model.get_booster().num_boosted_rounds() == used
    assert len(model.weights_) == 15


# --- validation set --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params", [{"early_stopping": True, "n_iter_no_change": 50}, {"weighting": "nonnegative"}], ids=str
)
def test_permuted_validation_labels_do_not_change_a_tree(params):
    X_val, y_val = two_classes(n=100, seed=1)
    shuffled = np.random.default_rng(0).permutation(y_val)
    models = [model_of(params).fit(X2, y2, X_val=X_val, y_val=labels) for labels in (y_val, shuffled)]
    a, b = (model._model.ensemble.contributions(X2) for model in models)
    assert len(a) == len(b) == 8
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(models[0].weights_, models[1].weights_)


def test_held_out_samples_do_not_change_trees():
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)  # as the model draws it from random_state=0
    held_out = content_sample(row_keys(X2), 0.2, y2, seed)
    rest = ~held_out
    assert np.bincount(y2[held_out]).tolist() == pytest.approx(np.bincount(y2) / 5, abs=1)
    alone = model_of({}, learning_rate=0.3).fit(X2[rest], y2[rest])
    given_rows = model_of({"weighting": "nonnegative"}, learning_rate=0.3)
    given_rows.fit(X2[rest], y2[rest], X_val=X2[held_out], y_val=y2[held_out])
    np.testing.assert_array_equal(given_rows._model.ensemble.contributions(X2), alone._model.ensemble.contributions(X2))
    inside = model_of({"weighting": "nonnegative"}, learning_rate=0.3).fit(X2, y2)
    np.testing.assert_array_equal(inside._model.ensemble.contributions(X2), alone._model.ensemble.contributions(X2))
    np.testing.assert_array_equal(inside.weights_, given_rows.weights_)


def test_early_stopping_keeps_the_best_round():
    X_val, y_val = two_classes(n=150, seed=1)
    model = SCBoostClassifier(
        n_estimators=200, learning_rate=0.5, early_stopping=True, n_iter_no_change=4, n_jobs=1, random_state=0
    ).fit(X2, y2, X_val=X_val, y_val=y_val)
    losses = model.training_log_["validation_loss"]
    best = int(np.argmin(losses))
    assert model.n_estimators_ == best + 1
    assert len(losses) == best + 1 + 4 < 200
    assert "did not improve in 4 rounds" in model.stop_reason_
    assert np.count_nonzero(model.weights_) == best + 1
    assert log_loss(y_val, model.predict_proba(X_val)) == pytest.approx(losses[best], rel=1e-5)


def test_weighting_lowers_the_validation_loss_and_reports_its_gap():
    X_val, y_val = two_classes(n=200, seed=1)
    plain = model_of({}, learning_rate=0.05).fit(X2, y2)
    free = model_of({"weighting": "nonnegative", "weight_ridge": 1e-6}, learning_rate=0.05)
    free.fit(X2, y2, X_val=X_val, y_val=y_val)
    assert log_loss(y_val, free.predict_proba(X_val)) < log_loss(y_val, plain.predict_proba(X_val))
    result = free.weighting_result_
    assert result.converged
    assert result.gap <= 1e-8
    assert result.loss == pytest.approx(log_loss(y_val, free.predict_proba(X_val)), rel=1e-5)
    assert (free.weights_ >= 0).all()


# --- going on, stopping ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [{}, {"memory": "all"}, {"memory": 2}, {"subsample": 0.6, "colsample_bytree": 0.5}, {"energy_threshold": 1.0}],
    ids=str,
)
@pytest.mark.parametrize(("first", "more"), [(2, 10), (8, 4)])
@pytest.mark.parametrize("many", [False, True])
def test_warm_start_is_bit_identical_to_one_fit(params, first, more, many):
    X, y = (X3, y3) if many else (X2, y2)
    whole = model_of(params, n_estimators=first + more, learning_rate=0.3).fit(X, y)
    model = model_of(params, n_estimators=first, learning_rate=0.3, warm_start=True).fit(X, y)
    assert model.n_estimators_ == first
    model.set_params(n_estimators=first + more).fit(X, y)
    assert model.get_booster().save_raw() == whole.get_booster().save_raw()
    np.testing.assert_array_equal(model.training_log_["loss"], whole.training_log_["loss"])
    np.testing.assert_array_equal(model.training_log_["components"], whole.training_log_["components"])


def test_warm_start_with_early_stopping():
    params = {"learning_rate": 0.3, "early_stopping": True, "n_iter_no_change": 6}
    whole = model_of(params, n_estimators=20).fit(X2, y2)
    model = model_of(params, n_estimators=2, warm_start=True)
    for n_estimators in (2, 9, 13, 20):
        model.set_params(n_estimators=n_estimators).fit(X2, y2)
    np.testing.assert_array_equal(model.training_log_["validation_loss"], whole.training_log_["validation_loss"])
    np.testing.assert_array_equal(model.weights_, whole.weights_)
    assert model.stop_reason_ == whole.stop_reason_


def test_warm_start_keeps_the_seed_of_the_first_fit():
    params = {"subsample": 0.5, "colsample_bytree": 0.5, "learning_rate": 0.3}
    whole = model_of(params, random_state=np.random.RandomState(5)).fit(X2, y2)
    model = model_of(params, random_state=np.random.RandomState(5), n_estimators=3, warm_start=True).fit(X2, y2)
    model.set_params(n_estimators=8).fit(X2, y2)  # the generator has moved on since
    np.testing.assert_array_equal(model.decision_function(X2), whole.decision_function(X2))


@pytest.mark.parametrize("weighting", ["simplex", "nonnegative"])
def test_warm_start_with_weighting(weighting):
    whole = model_of({"weighting": weighting, "learning_rate": 0.3}).fit(X2, y2)
    model = model_of({"weighting": weighting, "learning_rate": 0.3}, n_estimators=5, warm_start=True).fit(X2, y2)
    model.set_params(n_estimators=8).fit(X2, y2)
    np.testing.assert_array_equal(model.weights_, whole.weights_)
    np.testing.assert_array_equal(model.decision_function(X2), whole.decision_function(X2))


def test_warm_start_continues_the_latest_fit():
    model = model_of({"learning_rate": 0.3}, n_estimators=3, warm_start=True).fit(X2, y2)
    other = 1 - y2
    model.set_params(warm_start=False).fit(X2, other)
    model.set_params(warm_start=True, n_estimators=6).fit(X2, other)
    expected = model_of({"learning_rate": 0.3}, n_estimators=6).fit(X2, other)
    np.testing.assert_array_equal(model.decision_function(X2), expected.decision_function(X2))


def test_an_interrupt_from_the_keyboard_leaves_a_usable_model():
    def interrupt(model):
        if model.n_estimators_ == 3:
            raise KeyboardInterrupt

    model = model_of({"callbacks": [interrupt], "warm_start": True}, learning_rate=0.3)
    with pytest.raises(KeyboardInterrupt, match="keeps the 3 rounds"):
        model.fit(X2, y2)
    three = model_of({}, n_estimators=3, learning_rate=0.3).fit(X2, y2)
    np.testing.assert_array_equal(model.predict_proba(X2), three.predict_proba(X2))
    assert "interrupted" in model.stop_reason_
    assert model.n_estimators_ == len(model.weights_) == 3
    pickle.loads(pickle.dumps(model.set_params(callbacks=None)))  # noqa: S301 - written here
    model.fit(X2, y2)
    np.testing.assert_array_equal(
        model.predict_proba(X2), model_of({}, learning_rate=0.3).fit(X2, y2).predict_proba(X2)
    )
    assert model.stop_reason_ == ""


@pytest.mark.parametrize("engine", ENGINES)
def test_an_interrupt_in_the_middle_of_a_round_waits_for_its_end(engine, monkeypatch):
    calls = []
    for name in STEPS_OF_GROWTH:
        step = getattr(ENGINES[engine], name)

        def pressed(self, *args, step=step):
            calls.append(1)
            if len(calls) == 3:
                signal.raise_signal(signal.SIGINT)
            return step(self, *args)

        monkeypatch.setattr(ENGINES[engine], name, pressed)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        model = model_of({"learning_rate": 0.3}, warm_start=True, engine=engine)
        with pytest.raises(KeyboardInterrupt, match="keeps the 3 rounds"):
            model.fit(X2, y2)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, handler)
    assert (model.n_estimators_, len(calls)) == (3, 3)
    whole = model_of({"learning_rate": 0.3}, engine=engine).fit(X2, y2)
    np.testing.assert_array_equal(model.fit(X2, y2).predict_proba(X2), whole.predict_proba(X2))


def test_callbacks_see_a_model_that_predicts_and_may_stop_it():
    seen = []

    def look(model):
        seen.append((model.n_estimators_, log_loss(y2, model.predict_proba(X2)), model.predict(X2[:1]).shape))
        return model.n_estimators_ == 5

    model = model_of({"callbacks": [look]}).fit(X2, y2)
    assert [n for n, _, _ in seen] == [1, 2, 3, 4, 5]
    assert all(a > b for (_, a, _), (_, b, _) in itertools.pairwise(seen))
    assert model.n_estimators_ == 5
    assert "callback" in model.stop_reason_


def test_constant_features_predict_the_prior_and_report_a_reason():
    X = np.zeros((40, 2))
    y = np.repeat([0, 1], [10, 30])
    with pytest.warns(ConvergenceWarning, match="has no trees and predicts a constant: no tree found a split"):
        model = model_of({}).fit(X, y)
    assert model.stop_reason_
    assert model.n_estimators_ == 0
    np.testing.assert_allclose(model.predict_proba(X), np.tile([0.25, 0.75], (40, 1)), atol=1e-6)
    np.testing.assert_array_equal(model.feature_importances_, [0, 0])
    assert list(model.staged_predict_proba(X)) == []


def test_full_projection_stops_when_history_explains_the_residual():
    X = np.column_stack([np.repeat([0.0, 1.0], 30), np.random.default_rng(0).normal(size=60)])
    model = SCBoostClassifier.from_paper(n_estimators=10, energy_threshold=1.0, weighting=None, n_jobs=1)
    model.fit(X, X[:, 0].astype(int))
    assert model.n_estimators_ == 1
    assert "nothing is left to learn" in model.stop_reason_


# --- kinds of input --------------------------------------------------------------------------------


@every_variant
def test_tables_and_arrays_agree(params):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X2.astype(np.float32), columns=list("abcde"))
    a = model_of(params).fit(table, pandas.Series(y2))
    b = model_of(params).fit(X2.astype(np.float32), y2)
    np.testing.assert_array_equal(a.predict_proba(table), b.predict_proba(X2.astype(np.float32)))
    assert a.feature_names_in_.tolist() == list("abcde")


@pytest.mark.parametrize("names", [["a[0]", "b]", "c<1", "d e", "é"]])
@pytest.mark.parametrize("params", [{}, {"early_stopping": True}, {"weighting": "nonnegative"}], ids=str)
def test_any_column_name_is_accepted(names, params):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X2, columns=names)
    model = model_of(params).fit(table, y2)
    np.testing.assert_allclose(list(model.staged_predict_proba(table))[-1], model.predict_proba(table), atol=1e-6)


def test_missing_values_are_learned():
    X = X2.copy()
    X[X[:, 0] > 0.5, 0] = np.nan
    assert model_of({}).fit(X, y2).score(X, y2) > 0.75
    assert np.isfinite(model_of({}).fit(X2, y2).predict_proba(np.full((3, 5), np.nan))).all()


def test_infinity_at_prediction_equals_the_largest_value():
    model = model_of({}).fit(X2, y2)
    for infinity in (np.inf, -np.inf):
        given, large = X2.copy(), X2.copy()
        given[:, 0], large[:, 0] = infinity, np.sign(infinity) * 1e30
        np.testing.assert_array_equal(model.predict_proba(given), model.predict_proba(large))
        with pytest.raises(ValueError, match="infinity"):
            model_of({"estimator": DecisionTreeRegressor(max_depth=2)}).fit(X2, y2).predict(given)


def test_sparse_formats_give_the_same_model():
    rng = np.random.default_rng(0)
    X = sparse.csr_array(np.where(rng.random((300, 8)) < 0.4, rng.random((300, 8)), 0))
    y = (X.sum(axis=1) > np.median(X.sum(axis=1))).astype(int)
    reference = model_of({}).fit(X, y).predict_proba(X)
    for convert in (sparse.csc_array, sparse.coo_array):
        np.testing.assert_array_equal(model_of({}).fit(convert(X), y).predict_proba(X), reference)


@pytest.mark.parametrize("labels", [[-1, 1], [False, True], ["no", "yes"], [2.0, 7.0]])
def test_labels_of_any_kind(labels):
    named = np.array(labels)[y2]
    model = model_of({}).fit(X2, named)
    np.testing.assert_array_equal(model.classes_, labels)
    assert set(model.predict(X2)) <= set(named)
    np.testing.assert_array_equal(model.predict_proba(X2), model_of({}).fit(X2, y2).predict_proba(X2))


def test_works_in_scikit_learn_pipelines_and_searches():
    pipeline = make_pipeline(StandardScaler(), SCBoostClassifier(**FAST))
    search = GridSearchCV(pipeline, {"scboostclassifier__memory": [1, "all"]}, cv=2, scoring="neg_log_loss")
    assert search.fit(X2, y2).best_score_ > -0.7


@pytest.mark.parametrize(
    "learner", [LinearRegression(), KNeighborsRegressor(5), RandomForestRegressor(3, max_depth=3)], ids=str
)
def test_any_scikit_learn_regressor_can_be_the_estimator(learner):
    model = model_of({"estimator": learner, "leaf_rule": "mean", "colsample_bytree": 1.0, "learning_rate": 0.5})
    model.fit(X2, y2)
    assert len(model.estimators_) == model.n_estimators_
    assert model.training_log_["loss"][-1] < model.training_log_["loss"][0]
    staged = list(model.staged_predict_proba(X2))
    np.testing.assert_allclose(staged[-1], model.predict_proba(X2), atol=1e-9)
    # Every learner still predicts what it did when it was grown, even one that keeps the target it was given.
    np.testing.assert_allclose([log_loss(y2, p) for p in staged], model.training_log_["loss"], rtol=1e-6)
    with pytest.raises(AttributeError, match="estimator="):
        model.get_booster()


# --- bad input -------------------------------------------------------------------------------------


class NoPredict:
    def fit(self, X, y):
        return self


RARE = np.repeat([1, 0], [2, 98])
NONNEGATIVE = {"weighting": "nonnegative"}
FOLDS = {"weighting": "nonnegative", "weighting_data": "out_of_fold"}
NAN = np.where(np.arange(300) == 7, np.nan, 1.0)
BAD = {  # parameters, arguments of fit, what the message must say: the name, the value, what is allowed
    "one class": ({}, {"y": np.zeros(300)}, ["class", "y", "one", "0"]),
    "no labels": ({}, {"y": None}, ["y", "None"]),
    "NaN in y": ({}, {"y": NAN}, ["y", "NaN", "finite"]),
    "inf in y": ({}, {"y": np.where(np.isnan(NAN), np.inf, y2)}, ["y", "inf", "finite"]),
    "missing label": ({}, {"y": np.where(y2, "a", None)}, ["y", "None", "label"]),
    "continuous y": ({}, {"y": X2[:, 0]}, ["label type", "continuous"]),
    "y too short": ({}, {"y": y2[:-1]}, ["y", "299", "300"]),
    "y of several columns of classes": ({}, {"y": np.full((300, 2), 3)}, ["y", "2 columns", "0 and 1", "3"]),
    "X of one dimension": ({}, {"X": X2[:, 0]}, ["2D", "1D"]),
    "inf in X": ({}, {"X": np.where(X2 > 2, np.inf, X2)}, ["X", "infinity"]),
    "NaN in weights": ({}, {"sample_weight": NAN}, ["sample_weight", "NaN"]),
    "inf in weights": ({}, {"sample_weight": np.where(np.isnan(NAN), np.inf, 1)}, ["sample_weight", "infinity"]),
    "negative weights": ({}, {"sample_weight": -NAN[8:].repeat(2)[:300]}, ["sample_weight", "-1", "0"]),
    "weights too short": ({}, {"sample_weight": np.ones(299)}, ["sample_weight", "(299,)", "(300,)"]),
    "all weights zero": ({}, {"sample_weight": np.zeros(300)}, ["weights", "non-zero"]),
    "alpha 0": ({"energy_threshold": 0.0}, {}, ["energy_threshold", "(0.0, 1.0]", "0.0"]),
    "alpha above 1": ({"energy_threshold": 1.5}, {}, ["energy_threshold", "(0.0, 1.0]", "1.5"]),
    "alpha NaN": ({"energy_threshold": np.nan}, {}, ["energy_threshold", "nan"]),
    "gamma above 1": ({"projection_strength": 1.1}, {}, ["projection_strength", "[0.0, 1.0]", "1.1"]),
    "gamma below 0": ({"projection_strength": -0.1}, {}, ["projection_strength", "[0.0, 1.0]", "-0.1"]),
    "no rounds": ({"n_estimators": 0}, {}, ["n_estimators", "1", "0"]),
    "rate 0": ({"learning_rate": 0.0}, {}, ["learning_rate", "0.0"]),
    "memory 0": ({"memory": 0}, {}, ["memory", "1", "0"]),
    "no limit on trees": (
        {"max_depth": None, "max_leaves": None},
        {},
        ["max_depth=None", "max_leaves=None", "set at least one"],
    ),
    "subsample 0": ({"subsample": 0.0}, {}, ["subsample", "0.0"]),
    "colsample above 1": ({"colsample_bytree": 1.2}, {}, ["colsample_bytree", "1.2"]),
    "leaf rule": ({"leaf_rule": "median"}, {}, ["leaf_rule", "median", "newton", "mean"]),
    "weighting": ({"weighting": "softmax"}, {}, ["weighting", "softmax", "simplex", "nonnegative"]),
    "negative penalty": ({"covariance_penalty": -1.0}, {}, ["covariance_penalty", "-1.0"]),
    "ridge 0": ({**NONNEGATIVE, "weight_ridge": 0.0}, {}, ["weight_ridge", "0.0"]),
    "validation fraction 1": ({"validation_fraction": 1.0}, {}, ["validation_fraction", "1.0"]),
    "one fold": ({**FOLDS, "cv": 1}, {}, ["cv", "2", "1"]),
    "more folds than samples": (
        FOLDS,
        {"X": X2[:4], "y": [0, 1, 0, 1]},
        ["cv=5", "2 distinct samples of the rarest class"],
    ),
    "more folds than samples of a class": (FOLDS, {"X": X2[:100], "y": RARE}, ["cv=5", "2"]),
    "simplex on folds": (
        {"weighting": "simplex", "weighting_data": "out_of_fold"},
        {},
        ["weighting_data='out_of_fold'", "weighting='nonnegative'"],
    ),
    "early stopping on folds": ({**FOLDS, "early_stopping": True}, {}, ["early_stopping=True", "weighting_data"]),
    "warm start on folds": ({**FOLDS, "warm_start": True}, {}, ["warm_start=True", "weighting_data", "holdout"]),
    "validation part of one row": (
        {"early_stopping": True, "validation_fraction": 0.001},
        {},
        ["validation_fraction=0.001", "300"],
    ),
    "validation part without the rare class": (
        NONNEGATIVE,
        {"X": X2[:100], "y": np.repeat([1, 0], [1, 99])},
        ["validation_fraction=0.2", "100", "class"],
    ),
    "validation rows of one class": (NONNEGATIVE, {"X_val": X2[:9], "y_val": np.ones(9)}, ["y_val", "1", "class"]),
    "validation rows without labels": ({"early_stopping": True}, {"X_val": X2}, ["X_val", "y_val", "together"]),
    "validation labels without rows": ({"early_stopping": True}, {"y_val": y2}, ["X_val", "y_val", "together"]),
    "unknown validation label": ({"early_stopping": True}, {"X_val": X2, "y_val": y2 + 1}, ["y_val", "2", "0", "1"]),
    "NaN in y_val": ({"early_stopping": True}, {"X_val": X2, "y_val": NAN}, ["y_val", "NaN"]),
    "other validation columns": ({"early_stopping": True}, {"X_val": X2[:, :3], "y_val": y2}, ["X", "3", "5"]),
    "validation rows and folds": (FOLDS, {"X_val": X2, "y_val": y2}, ["X_val", "weighting_data='out_of_fold'"]),
    "regressor without predict": ({"estimator": NoPredict()}, {}, ["estimator", "NoPredict", "'predict'"]),
    "newton without leaves": (
        {"estimator": LinearRegression(), "colsample_bytree": 1.0},
        {},
        ["leaf_rule='newton'", "LinearRegression()", "leaf_rule='mean'"],
    ),
    "newton with a forest": (
        {"estimator": RandomForestRegressor(), "colsample_bytree": 1.0},
        {},
        ["leaf_rule='newton'", "RandomForestRegressor()", "leaf_rule='mean'"],
    ),
    "columns of a regressor": (
        {"estimator": DecisionTreeRegressor(), "colsample_bytree": 0.5},
        {},
        ["colsample_bytree=0.5", "estimator=None"],
    ),
    "constraints of a regressor": (
        {"estimator": DecisionTreeRegressor(), "colsample_bytree": 1.0, "monotone_constraints": [1, 0, 0, 0, 0]},
        {},
        ["monotone_constraints", "estimator=None"],
    ),
    "too few signs": ({"monotone_constraints": [1, 0]}, {}, ["monotone_constraints", "-1, 0 or 1", "5", "[1, 0]"]),
    "sign 2": ({"monotone_constraints": [2, 0, 0, 0, 0]}, {}, ["monotone_constraints", "-1, 0 or 1", "2"]),
    "sign by unknown name": ({"monotone_constraints": {"z": 1}}, {}, ["monotone_constraints", "name", "indices"]),
    "unknown feature": ({"interaction_constraints": [[0, 5]]}, {}, ["interaction_constraints", "0 to 4", "[0, 5]"]),
    "invalid groups": ({"interaction_constraints": [0, 1]}, {}, ["interaction_constraints", "[0, 1]"]),
    "callback that cannot be called": ({"callbacks": [3]}, {}, ["callbacks", "3", "call"]),
    "class weight of a class": ({"class_weight": {0: 0.0, 1: 1.0}}, {}, ["class_weight", "positive", "0.0"]),
}


@pytest.mark.parametrize("case", BAD)
def test_invalid_input_raises_an_error_that_names_it(case, monkeypatch):
    params, arguments, words = BAD[case]
    grown = []
    for engine in (*ENGINES.values(), EstimatorEngine):
        for name in STEPS_OF_GROWTH:
            monkeypatch.setattr(engine, name, lambda *_: grown.append(1))
    arguments = {"X": X2, "y": y2, **arguments}
    with pytest.raises((ValueError, TypeError)) as error:
        model_of(params).fit(**arguments)
    message = str(error.value)
    assert not grown, "the error must come before any tree"
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ({"monotone_constraints": {"z": 1}}, ["monotone_constraints", "'z'", "'a'"]),
        ({"monotone_constraints": {"a": 0.5}}, ["monotone_constraints", "-1, 0 or 1", "0.5"]),
        ({"interaction_constraints": [["a", "z"]]}, ["interaction_constraints", "'z'"]),
    ],
    ids=str,
)
def test_bad_constraints_by_column_name(constraints, words):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=words[0]) as error:
        model_of(constraints).fit(pandas.DataFrame(X2, columns=list("abcde")), y2)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_warm_start_cannot_remove_rounds_or_change_data():
    model = model_of({}, warm_start=True).fit(X2, y2)
    with pytest.raises(ValueError, match="n_estimators=5 is less than the 8 rounds"):
        model.set_params(n_estimators=5).fit(X2, y2)
    with pytest.raises(ValueError, match="warm_start=True"):
        model.set_params(n_estimators=10).fit(X2[:-5], y2[:-5])


def test_wrong_features_at_prediction_are_rejected():
    model = model_of({}).fit(X2, y2)
    for method in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(ValueError, match="3 features"):
            getattr(model, method)(X2[:, :3])
    with pytest.raises(ValueError, match="3 features"):
        next(model.staged_predict_proba(X2[:, :3]))


def test_every_parameter_is_constrained():
    assert set(SCBoostClassifier._parameter_constraints) == set(inspect.signature(SCBoostClassifier).parameters)
