"""Exploration, and the number of rounds that the data choose."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, TimeSeriesSplit
from sklearn.tree import DecisionTreeRegressor

from data_makers import QUICK, real_target, three_classes, two_classes
from scboost import SCBoostClassifier, SCBoostRegressor, tree_matrix
from scboost._core.autotune import FAST_ROUNDS, FEW_SAMPLES, MAX_ROUNDS, auto_learning_rate
from scboost._core.losses import LogisticLoss, PoissonLoss, SoftmaxLoss, SquaredLoss
from scboost._core.stopping import EarlyStopping
from scboost._engine.ensemble import interleaved
from scboost.weighting import learn_scale

TASKS = {
    "two classes": (SCBoostClassifier, two_classes),
    "many classes": (SCBoostClassifier, three_classes),
    "numbers": (SCBoostRegressor, real_target),
}
every_task = pytest.mark.parametrize("task", TASKS)
PRESETS = pytest.mark.parametrize("params", [{}, {"preset": "best", "cv": 2}, {"n_estimators": 20}], ids=str)
SELECTED = {name: value for name, value in QUICK.items() if name != "cv"} | {"learning_rate": 0.25}


def fitted(task, *, n=300, seed=0, **params):
    cls, make = TASKS[task]
    X, y = make(n=n, seed=seed)
    return cls(**{**SELECTED, **params}).fit(X, y), X, y


def output(model, X):
    return model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)


# --- exploration -----------------------------------------------------------------------------------------------------


@every_task
def test_exploration_depends_on_the_seed_only(task):
    cls, make = TASKS[task]
    X, y = make()
    params = {"n_estimators": 10, "learning_rate": 0.3, "n_jobs": 1}
    first, again, other = (cls(random_state=s, **params).fit(X, y) for s in (0, 0, 1))
    np.testing.assert_array_equal(output(first, X), output(again, X))
    assert not np.array_equal(output(first, X), output(other, X))
    without = [cls(random_state=s, exploration=0.0, **params).fit(X, y) for s in (0, 1)]
    np.testing.assert_array_equal(output(without[0], X), output(without[1], X))


@every_task
@PRESETS
def test_the_order_of_the_samples_does_not_matter(task, params):
    model, X, y = fitted(task, **params)
    order = np.random.default_rng(1).permutation(len(X))
    shuffled = type(model)(**{**SELECTED, **params}).fit(X[order], y[order])
    assert shuffled.n_estimators_ == model.n_estimators_
    # XGBoost sums in the order of the samples: the last digits of sums differ, and rarely a split.
    assert np.median(np.abs(output(shuffled, X) - output(model, X))) < 1e-4


def test_exploration_affects_splits_not_leaf_values():
    # Only one split is possible: for any noise, leaf values are the Newton steps of their samples.
    X = np.repeat([[0.0], [1.0]], 100, axis=0)
    y = np.r_[np.arange(100) % 4 == 0, np.arange(100) % 4 != 0].astype(int)
    plain, noisy = (
        SCBoostClassifier(n_estimators=5, learning_rate=0.5, exploration=nu, random_state=0, n_jobs=1).fit(X, y)
        for nu in (0.0, 0.5)
    )
    np.testing.assert_allclose(noisy.decision_function(X), plain.decision_function(X), rtol=1e-5)


def test_exploration_makes_many_rounds_safer():
    X, y = two_classes(n=600, seed=3, flip=0.3)
    X_new, y_new = two_classes(n=5000, seed=4, flip=0.3)
    params = {"n_estimators": 300, "learning_rate": 0.1, "random_state": 0, "n_jobs": 1}
    without, with_noise = (
        log_loss(y_new, SCBoostClassifier(exploration=nu, **params).fit(X, y).predict_proba(X_new)) for nu in (0.0, 0.7)
    )
    assert with_noise < without


# --- rounds ----------------------------------------------------------------------------------------------------------


@every_task
def test_selection_log_explains_the_number_of_rounds(task):
    model, *_ = fitted(task)
    losses = model.selection_log_["validation_loss"]
    best = int(np.argmin(losses)) + 1
    # Fold models use twice the learning rate here, up to 0.5, on four fifths of the samples.
    assert model.n_estimators_ == len(model.weights_) == min(round(best * 2 * 1.12 / 0.8), MAX_ROUNDS)
    factor = np.ravel(model.weights_)[0] / model.learning_rate_
    assert 0.5 <= factor <= 2
    np.testing.assert_allclose(model.weights_, model.learning_rate_ * factor)
    assert model.best_iteration_ == model.n_estimators_ - 1


def test_noisy_targets_select_fewer_rounds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 5))
    noise = rng.integers(0, 2, size=800)
    structure = (np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).astype(int)
    few, many = (SCBoostClassifier(**SELECTED).fit(X, y).n_estimators_ for y in (noise, structure))
    assert few < many / 3


@every_task
def test_selected_model_equals_fixed_rounds_times_a_factor(task):
    model, X, y = fitted(task, feature_selection=False)
    again = type(model)(**SELECTED, max_depth=model.max_depth_, n_estimators=model.n_estimators_).fit(X, y)
    factor = np.ravel(model.weights_)[0] / model.learning_rate_
    np.testing.assert_allclose(tree_matrix(model, X).H, factor * tree_matrix(again, X).H, rtol=1e-5, atol=1e-6)


@every_task
def test_many_given_rounds_cross_validate_the_learning_rate(task):
    cls, make = TASKS[task]
    settings = {"random_state": 0, "n_jobs": 1, "n_iter_no_change": 8, "max_depth": 3, "max_leaves": None}
    data = make(n=FEW_SAMPLES + 1)  # of which fold models take equal steps, averaged or not
    chosen, many, few = (cls(**settings, n_estimators=n).fit(*data) for n in ("auto", 600, 100))
    assert many.n_estimators_ == len(many.weights_) == 600
    on_all_samples = chosen.n_estimators_ - sum(chosen.__fitted_model__().members)
    far = on_all_samples * chosen.learning_rate_
    assert many.n_estimators_ * many.learning_rate_ == pytest.approx(far, rel=0.02)  # the rounds are whole numbers
    assert few.learning_rate_ * 100 != pytest.approx(far)
    np.testing.assert_array_equal(many.selection_log_["validation_loss"], chosen.selection_log_["validation_loss"])


@pytest.mark.parametrize("reason", ["rate", "early stopping", "validation rows", "warm start", "learner", "init_model"])
def test_many_given_rounds_skip_cross_validation_if_not_needed(reason):
    X, y = two_classes(200)
    params = {
        "rate": {"learning_rate": 0.1},
        "early stopping": {"early_stopping": True},
        "warm start": {"warm_start": True},
        "learner": {"estimator": DecisionTreeRegressor(max_depth=1), "leaf_rule": "mean"},
    }.get(reason, {})
    given = {
        "validation rows": {"X_val": X, "y_val": y},
        "init_model": {"init_model": SCBoostClassifier(n_estimators=2).fit(X, y)},
    }.get(reason, {})
    model = SCBoostClassifier(n_estimators=500, max_depth=1, max_leaves=None, n_jobs=1, random_state=0)
    assert not hasattr(model.set_params(**params).fit(X, y, **given), "selection_log_")


def test_the_factor_is_estimated_out_of_fold():
    X, y = two_classes(n=600, seed=5)
    X = np.round(2 * X).clip(-4, 4)  # all values occur in the kept samples: bin edges are the same
    kept, held_out = np.arange(400), np.arange(400, 600)
    params = {**SELECTED, "exploration": 0.0, "max_depth": 6, "tree_shape": "depth-wise"}
    model = SCBoostClassifier(**params, cv=[(kept, held_out)]).fit(X, y)
    best = int(np.argmin(model.selection_log_["validation_loss"])) + 1
    fold = SCBoostClassifier(**{**params, "learning_rate": 0.5}, n_estimators=best).fit(X[kept], y[kept])
    start = np.full((1, 200), fold.intercept_[0])
    added = fold.decision_function(X[held_out])[None] - start
    expected = learn_scale(added, y[held_out].astype(float), loss=LogisticLoss(), start=start)
    assert expected != 1
    assert model.weights_[0] / model.learning_rate_ == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("loss", [LogisticLoss(), SoftmaxLoss(3), SquaredLoss(), PoissonLoss()], ids=repr)
def test_the_factor_minimizes_the_held_out_loss_up_to_sampling_error(loss):
    rng = np.random.default_rng(0)
    K, n = loss.n_outputs, 2000
    added, start = rng.normal(size=(K, n)), np.full((K, n), 0.3)
    F = start + 1.4 * added
    y = {
        "LogisticLoss": lambda: rng.random(n) < expit(F[0]),
        "SoftmaxLoss": lambda: (rng.random(n) > softmax(F, axis=0).cumsum(axis=0)).sum(axis=0).clip(0, 2),
        "SquaredLoss": lambda: F[0] + rng.normal(size=n),
        "PoissonLoss": lambda: rng.poisson(np.exp(F[0])),
    }[type(loss).__name__]().astype(float)
    found = learn_scale(added, y, loss=loss, start=start)
    best = minimize_scalar(lambda a: loss.mean(y, start + a * added), bounds=(0.5, 2), method="bounded").x
    derivatives = np.sum(-loss.gradient_hessian(y, start + added)[0] * added, axis=0)
    chance = np.sum(derivatives**2) / np.sum(derivatives) ** 2
    assert chance < 0.05
    assert found == pytest.approx(1 + (best - 1) * (1 - chance), abs=1e-4)
    weight = rng.integers(0, 3, size=n)
    weighted = learn_scale(added, y, loss=loss, start=start, sample_weight=weight.astype(float))
    repeated = learn_scale(
        added.repeat(weight, axis=1), y.repeat(weight), loss=loss, start=start.repeat(weight, axis=1)
    )
    assert weighted == pytest.approx(repeated, rel=1e-9)


def test_the_factor_is_one_if_it_is_not_significant():
    rng = np.random.default_rng(1)
    added = rng.normal(size=(200, 1, 100))
    factors = [learn_scale(a, a[0] + rng.normal(size=100), loss=SquaredLoss(), start=np.zeros((1, 100))) for a in added]
    # A normal sum is larger than its own standard deviation in 32 of 100 cases.
    assert 0.55 < np.mean(np.array(factors) == 1) < 0.8
    assert max(abs(np.array(factors) - 1)) < 0.4


def test_a_validation_set_replaces_folds():
    X, y = two_classes(n=600)
    model = SCBoostClassifier(**SELECTED).fit(X[:400], y[:400], X_val=X[400:], y_val=y[400:])
    assert not hasattr(model, "selection_log_")
    losses = model.training_log_["validation_loss"]
    assert model.n_estimators_ == int(np.argmin(losses)) + 1 < len(losses)
    assert log_loss(y[400:], model.predict_proba(X[400:])) == pytest.approx(losses.min(), rel=1e-5)


def test_splitters_are_taken_as_they_are():
    X, y = two_classes(n=300)
    groups = np.arange(300) // 10
    params = SELECTED
    by_group = SCBoostClassifier(cv=GroupKFold(3), **params).fit(X, y, groups=groups)
    by_hand = SCBoostClassifier(cv=list(GroupKFold(3).split(X, y, groups)), **params).fit(X, y)
    np.testing.assert_array_equal(by_group.predict_proba(X), by_hand.predict_proba(X))
    in_time = SCBoostClassifier(cv=TimeSeriesSplit(3), **params).fit(X, y)
    assert in_time.n_estimators_ > 0
    weight = np.arange(300) % 3 > 0
    some = SCBoostClassifier(cv=GroupKFold(3), **params).fit(X, y, weight, groups=groups)
    fewer = SCBoostClassifier(cv=GroupKFold(3), **params).fit(X[weight], y[weight], groups=groups[weight])
    np.testing.assert_array_equal(some.predict_proba(X), fewer.predict_proba(X))
    with pytest.raises(ValueError, match=r"groups need a splitter.*cv='auto'"):
        SCBoostClassifier(**params).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match=r"groups must have shape \(300,\).*got \(299,\)"):
        SCBoostClassifier(cv=GroupKFold(3), **params).fit(X, y, groups=groups[1:])
    with pytest.raises(ValueError, match="no cross-validation is run"):
        SCBoostClassifier(n_estimators=5, **params).fit(X, y, groups=groups)


def test_refit_removes_attributes_of_the_first_fit():
    X, y = two_classes()
    model = SCBoostClassifier(**SELECTED, preset="best", cv=2).fit(X, y)
    model.set_params(preset="fast").fit(X, y)
    assert not hasattr(model, "weighting_result_")
    assert not hasattr(model, "selection_log_")


def test_a_memory_above_the_number_of_rounds_is_all_history():
    X, y = two_classes()
    params = {**SELECTED, "n_estimators": 6}
    first, second = (SCBoostClassifier(memory=m, **params).fit(X, y).predict_proba(X) for m in (50, "all"))
    np.testing.assert_allclose(first, second, atol=1e-6)


@every_task
def test_fast_is_one_fit_of_a_hundred_rounds_with_a_smaller_learning_rate_and_more_projection(task):
    model, X, y = fitted(task, preset="fast", learning_rate="auto")
    assert model.n_estimators_ == FAST_ROUNDS
    assert not hasattr(model, "selection_log_")
    hundred = clone(model).set_params(preset="default", n_estimators=FAST_ROUNDS).fit(X, y)
    assert model.learning_rate_ == pytest.approx(0.8 * hundred.learning_rate_)
    same = hundred.set_params(learning_rate=model.learning_rate_, projection_strength=0.7).fit(X, y)
    np.testing.assert_array_equal(output(model, X), output(same, X))


def test_fast_quantiles_are_shifted_and_not_projected():
    X, y = real_target()
    params = {"loss": "quantile", "quantile": 0.9, "random_state": 0, "n_jobs": 1}
    fast = SCBoostRegressor(preset="fast", **params).fit(X, y)
    same = SCBoostRegressor(n_estimators=FAST_ROUNDS, **params).fit(X, y)
    shift = fast.predict(X) - same.predict(X)  # estimated out of fold: training samples lie too close to quantiles
    assert shift[0] > 0
    np.testing.assert_allclose(shift, shift[0], rtol=1e-6)


@every_task
def test_fast_of_a_given_number_is_that_number(task):
    model, X, y = fitted(task, preset="fast", n_estimators=5)
    same = type(model)(**SELECTED, n_estimators=5).fit(X, y)
    np.testing.assert_array_equal(output(model, X), output(same, X))


@every_task
def test_best_is_the_mean_of_the_default_and_of_weighted_fold_models(task):
    best, X, y = fitted(task, preset="best", cv=3)
    default = type(best)(**SELECTED, cv=3).fit(X, y)
    np.testing.assert_array_equal(best.selection_log_["validation_loss"], default.selection_log_["validation_loss"])
    rounds = int(np.argmin(best.selection_log_["validation_loss"])) + 1
    assert best.n_estimators_ == len(best.weights_) == default.n_estimators_ + 3 * rounds
    model_of = np.repeat(np.arange(4), [default.n_estimators_, *[rounds] * 3])
    model_of = model_of[interleaved([default.n_estimators_, *[rounds] * 3])]
    np.testing.assert_allclose(best.weights_[model_of == 0], default.weights_ / 4)
    shares = np.stack([best.weights_[model_of == k].reshape(rounds, -1) for k in (1, 2, 3)])
    np.testing.assert_allclose(shares[0], shares[1])
    # Fold models take steps twice as large here, up to 0.5.
    np.testing.assert_allclose(shares[0, :, 0], 2 * best.learning_rate_ * best.weighting_result_.weights / 4)
    assert best.weighting_result_.converged
    own, others = tree_matrix(best, X), tree_matrix(default, X)
    of_default = np.repeat(model_of == 0, own.H.shape[1] // len(best.weights_))
    np.testing.assert_allclose(4 * own.H[:, of_default], others.H, rtol=1e-5, atol=1e-6)


@every_task
def test_default_is_the_mean_of_fold_models_and_of_one_on_all_samples(task):
    """All have the same learning rate; the factor that is estimated out of fold is common to all trees."""
    cls, make = TASKS[task]
    X, y = make(n=300)
    settings = {name: value for name, value in SELECTED.items() if name != "learning_rate"}
    model = cls(**settings, cv=3, max_depth=4, max_leaves=None, tree_shape="depth-wise", feature_selection=False)
    model.fit(X, y)
    fitted_model = model.__fitted_model__()
    rounds = int(np.argmin(model.selection_log_["validation_loss"])) + 1
    assert fitted_model.members == (rounds, rounds, rounds)
    on_all = model.n_estimators_ - 3 * rounds
    assert on_all == round(rounds * 1.12 * 3 / 2)
    assert np.ptp(model.weights_) == pytest.approx(0, abs=1e-12)
    alone = clone(model).set_params(n_estimators=on_all, learning_rate=model.learning_rate_).fit(X, y)
    of_model = np.repeat(np.arange(4), [on_all, *fitted_model.members])[interleaved([on_all, *fitted_model.members])]
    weights = model.weights_.reshape(model.n_estimators_, -1)
    trees, n_outputs = tree_matrix(model, X), weights.shape[1]
    own = trees.H[:, np.repeat(of_model == 0, n_outputs)]
    single = tree_matrix(alone, X).H
    factor = (own * single).sum() / (single**2).sum()
    assert factor == pytest.approx(weights[0, 0] / model.learning_rate_)
    np.testing.assert_allclose(own, factor * single, rtol=1e-4, atol=1e-6 * np.abs(single).max())


@every_task
def test_first_rounds_of_the_default_have_a_share_of_each_model(task):
    cls, make = TASKS[task]
    X, y = make(n=300)
    settings = {name: value for name, value in SELECTED.items() if name != "learning_rate"}
    model = cls(**settings, cv=3).fit(X, y)
    sizes = [model.n_estimators_ - sum(model.__fitted_model__().members), *model.__fitted_model__().members]
    order = np.repeat(np.arange(4), sizes)[interleaved(sizes)]
    for n in range(1, model.n_estimators_ + 1):
        counts = np.bincount(order[:n], minlength=4)
        assert (np.abs(counts - n * np.array(sizes) / sum(sizes)) <= 2).all()


def test_best_uses_five_folds_if_a_class_is_too_small_for_ten():
    X, y = two_classes(n=300)
    rare = np.concatenate([np.flatnonzero(y == 0)[:100], np.flatnonzero(y == 1)[:7]])
    settings = {**SELECTED, "preset": "best"}
    auto, five = (SCBoostClassifier(**settings, cv=cv).fit(X[rare], y[rare]) for cv in ("auto", 5))
    np.testing.assert_array_equal(auto.predict_proba(X), five.predict_proba(X))
    ten = SCBoostClassifier(**settings, cv=10).fit(X, y)
    np.testing.assert_array_equal(ten.predict_proba(X), SCBoostClassifier(**settings).fit(X, y).predict_proba(X))


def test_few_samples_are_not_cross_validated():
    X, y = two_classes(n=15)
    model = SCBoostClassifier(random_state=0, n_jobs=1, min_child_weight=0).fit(X, y)
    assert not hasattr(model, "selection_log_")
    assert len(model.weights_) == FAST_ROUNDS or model.stop_reason_


def test_quantiles_cover_their_share_of_new_samples():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(3000, 2))
    y = X[:, 0] + (0.2 + X[:, 1]) * rng.normal(size=3000)
    train, new = slice(0, 1500), slice(1500, None)
    for q in (0.05, 0.5, 0.95):
        model = SCBoostRegressor(**SELECTED, loss="quantile", quantile=q).fit(X[train], y[train])
        below = np.mean(y[new] < model.predict(X[new]))
        assert below == pytest.approx(q, abs=0.03)


def test_patience_grows_with_the_best_round():
    falling = np.r_[np.linspace(1, 0.5, 100), np.full(15, 0.6)]
    assert EarlyStopping(10, 0.0).reached(falling)
    assert not EarlyStopping(10, 0.0, share=0.2).reached(falling)
    assert EarlyStopping(10, 0.0, share=0.2).reached(np.r_[falling, np.full(5, 0.6)])


def test_the_automatic_learning_rate_grows_with_samples_and_falls_with_rounds():
    assert auto_learning_rate(10_000, 100) > auto_learning_rate(1000, 100) > auto_learning_rate(1000, 1000)
    assert auto_learning_rate(10**9, 1) == 0.5


@pytest.mark.parametrize("n", [300, 8000, 10**6])
def test_the_learning_rate_decreases_beyond_a_hundred_fixed_rounds(n):
    rates = {T: auto_learning_rate(n, T, two_classes_to_the_end=True) for T in (20, 100, 101, 300, 1000, 3000)}
    assert rates[20] == auto_learning_rate(n, 20)
    assert rates[100] == auto_learning_rate(n, 100)
    assert rates[101] == pytest.approx(rates[100], rel=0.02)
    assert all(a >= b for a, b in pairwise(rates.values()))
    assert rates[1000] == pytest.approx(n**0.427 * np.exp(-7.525))


def test_only_fixed_numbers_of_rounds_use_the_smaller_learning_rate():
    X, y = two_classes()
    usual, smaller = (auto_learning_rate(len(y), 120, two_classes_to_the_end=end) for end in (False, True))
    assert SCBoostClassifier(n_estimators=120).fit(X, y).learning_rate_ == pytest.approx(smaller)
    stopped = SCBoostClassifier(n_estimators=120, early_stopping=True, n_iter_no_change=3).fit(X, y, X_val=X, y_val=y)
    assert stopped.learning_rate_ == pytest.approx(usual)
    X, y = three_classes()
    rate = auto_learning_rate(len(y), 120, many_classes=True)
    assert SCBoostClassifier(n_estimators=120).fit(X, y).learning_rate_ == pytest.approx(rate)


# --- going on from a model -------------------------------------------------------------------------------------------


@every_task
def test_rounds_are_added_to_a_model(task, tmp_path):
    first, X, y = fitted(task, n_estimators=6)
    first.save_model(tmp_path / "first.ubj")
    more = type(first)(**SELECTED, n_estimators=5)
    for base in (first, tmp_path / "first.ubj"):
        second = more.fit(X[:200], y[:200], init_model=base)
        assert second.n_estimators_ == len(second.weights_) == 11
        stages = list(second.staged_predict(X))
        np.testing.assert_array_equal(stages[5], list(first.staged_predict(X))[5])
        scores = first._model.ensemble.scores(first._model.encode(X[:200]))
        start = first._model.loss.mean(y[:200], scores)
        assert np.all(np.diff([start, *second.training_log_["loss"]]) < 0)
        scores = second._model.ensemble.scores(second._model.encode(X[:200]))
        assert second.training_log_["loss"][-1] == pytest.approx(first._model.loss.mean(y[:200], scores), rel=1e-5)
    assert first.n_estimators_ == 6


def test_init_model_must_match_the_training_data():
    pd = pytest.importorskip("pandas")
    X, y = two_classes()
    names = list("abcde")
    first = SCBoostClassifier(**SELECTED, n_estimators=3).fit(pd.DataFrame(X, columns=names), y)
    more = SCBoostClassifier(**SELECTED, n_estimators=3)
    turned = pd.DataFrame(X, columns=names)[names[::-1]]
    with pytest.raises(ValueError, match=r"init_model has the features \['a', .*same order"):
        more.fit(turned, y, init_model=first)
    with pytest.raises(ValueError, match=r"init_model has the classes \[0, 1\], y has \['no', 'yes'\]"):
        more.fit(pd.DataFrame(X, columns=names), np.where(y, "yes", "no"), init_model=first)
    with pytest.raises(ValueError, match=r"init_model adds rounds.*set n_estimators to a number"):
        SCBoostClassifier(**SELECTED).fit(pd.DataFrame(X, columns=names), y, init_model=first)
    with pytest.raises(ValueError, match="init_model is a SCBoostRegressor"):
        more.fit(X, y, init_model=SCBoostRegressor(**SELECTED, n_estimators=2).fit(X, y))


@pytest.mark.parametrize(
    "given", [{"loss": "quantile", "quantile": [0.1, 0.5, 0.9]}, {"loss": "huber"}], ids=["several quantiles", "huber"]
)
def test_losses_with_parameters_are_continued_on_other_samples(given):
    X, y = real_target(n=400)
    params = {**given, "n_estimators": 5, "n_jobs": 1, "random_state": 0}
    first = SCBoostRegressor(**params).fit(X[:200], y[:200])
    second = SCBoostRegressor(**params).fit(X[200:], 3 * y[200:], init_model=first)
    assert second.n_estimators_ == 10
    assert repr(second.__fitted_model__().loss) == repr(first.__fitted_model__().loss)


def test_a_model_of_other_quantiles_is_not_continued():
    X, y = real_target(n=200)
    params = {"loss": "quantile", "n_estimators": 3, "n_jobs": 1, "random_state": 0}
    first = SCBoostRegressor(quantile=[0.1, 0.9], **params).fit(X, y)
    with pytest.raises(ValueError, match=r"the loss QuantilesLoss\(quantiles=\[0.1, 0.9\]\), which differs.*0.8"):
        SCBoostRegressor(quantile=[0.1, 0.8], **params).fit(X, y, init_model=first)


def test_categories_of_the_first_model_stay_the_categories():
    pd = pytest.importorskip("pandas")
    colour = np.random.default_rng(0).choice(list("rgb"), size=300)
    y = (colour == "g").astype(int)
    first = SCBoostClassifier(**SELECTED, n_estimators=3).fit(pd.DataFrame({"colour": colour}), y)
    some = colour != "r"
    second = SCBoostClassifier(**SELECTED, n_estimators=3).fit(
        pd.DataFrame({"colour": colour[some]}), y[some], init_model=first
    )
    assert second.predict(pd.DataFrame({"colour": ["r", "g", "b"]})).tolist() == [0, 1, 0]


def test_a_warm_start_needs_a_number_of_rounds():
    X, y = two_classes()
    with pytest.raises(
        ValueError, match=r"warm_start=True.*n_estimators='auto' selects it; set n_estimators to a number"
    ):
        SCBoostClassifier(warm_start=True).fit(X, y)


def test_empty_folds_are_left_out():
    X, y = np.array([[0.0], [1.0]]), np.array([1e12, 1e12 + 2])
    model = SCBoostRegressor(cv=3).fit(X, y)  # two samples in three folds
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-9)
