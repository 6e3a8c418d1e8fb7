"""Candidates that compete on the folds of a cross-validation."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold

from data_makers import QUICK, additive, product_of_three
from scboost import SCBoostClassifier, SCBoostRegressor
from scboost._core import autotune
from scboost._core.losses import LogisticLoss, QuantilesLoss, SoftmaxLoss, SquaredLoss, TargetsSquaredLoss
from scboost._core.race import Candidate, Race, first_folds
from scboost._core.selection import CrossValidation
from scboost._core.stopping import ContinuedStopping, EarlyStopping, HopelessStopping
from scboost._engine.interface import TreeOptions

FREE = autotune.Free(depth=True, shape=True, projection=True, subset_splits=False, rate=True)
BASE = TreeOptions(max_depth=6)


class Scripted:
    """A competitor whose losses are known in advance."""

    def __init__(self, candidate, losses):
        self.candidate, self.losses, self._all, self.calls, self.folds = candidate, [], losses, [], []

    def first_losses(self, n_folds):
        """All folds have the same loss."""
        return self.losses

    def pointwise_loss(self):
        """Samples whose losses have a standard error of 0.01."""
        return min(self.losses) + 0.01 * np.tile([1.0, -1.0], 8)

    def advance(self, n_rounds, stopping, n_folds=None):
        self.calls.append(n_rounds)
        self.folds.append(n_folds)
        while len(self.losses) < min(n_rounds, len(self._all)) and not stopping.reached(self.losses):
            self.losses.append(self._all[len(self.losses)])


def in_standard_errors(values):
    return values.mean() / 0.01


def run(curves, paces=None, margins=None, *, thorough=False):
    """Run a race of losses by round; return the winner's index and all competitors."""
    paces, margins = paces or [1.0] * len(curves), margins or [0.0] * len(curves)
    runs = [
        Scripted(Candidate(replace(BASE, max_depth=i + 1), pace=pace, margin=margin), list(curve))
        for i, (curve, pace, margin) in enumerate(zip(curves, paces, margins, strict=True))
    ]
    best = Race(EarlyStopping(30, 0.0), 200, in_standard_errors, 3, thorough=thorough).run(runs)
    return runs.index(best), runs


def falling(end, n=150, start=1.0):
    return np.linspace(start, end, n)


def slowing(end, n=150):
    """The same gain in every doubling of rounds."""
    return 1.0 - (1.0 - end) * np.log2(np.arange(1, n + 1)) / np.log2(n)


def test_the_lowest_loss_wins_and_only_the_best_candidates_continue():
    winner, runs = run([falling(0.5 + 0.05 * i) for i in range(6)])
    assert winner == 0
    lengths = [len(runs[i].losses) for i in range(6)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] == 150
    assert lengths[-1] < 20


def test_runs_are_continued_not_repeated():
    _, runs = run([falling(0.5 + 0.05 * i) for i in range(6)])
    assert runs[0].calls == sorted(runs[0].calls)
    assert len(runs[0].calls) > 2
    assert runs[0].folds == [1, 1, 2, None]
    np.testing.assert_array_equal(runs[0].losses, falling(0.5))


def test_trials_start_on_two_fifths_of_the_folds():
    """Two of ten folds have too few samples: chance would decide whether a trial is continued."""
    assert [first_folds(n) for n in (1, 2, 3, 5, 10)] == [1, 1, 2, 2, 4]


def test_a_tie_goes_to_the_cheaper_candidate():
    assert run([falling(0.5)] * 5)[0] == 0


def test_slow_candidates_are_compared_at_the_same_stage():
    fast, slow = falling(0.6, 60), falling(0.5, 150)
    others = [falling(0.8)] * 4
    assert run([fast, slow, *others])[0] == 0  # too far behind when candidates are compared
    assert run([fast, slow, *others], [1, 2.5, 1, 1, 1, 1])[0] == 1


def test_a_single_candidate_runs_to_the_end():
    winner, runs = run([falling(0.5)])
    assert winner == 0
    assert runs[0].calls == [200]


def test_a_candidate_with_a_margin_must_be_significantly_better():
    for gain, wins in ((0.01, False), (0.05, True)):
        assert run([slowing(0.5 - gain), slowing(0.5), falling(0.6)], margins=[2.0, 0, 0])[0] == (0 if wins else 1)


def test_the_last_two_are_compared_before_they_are_grown_to_the_end():
    winner, runs = run([falling(0.55), falling(0.52), falling(0.5)])
    assert winner == 2
    assert [len(one.losses) for one in runs] == [30, 50, 150]


def test_a_single_fold_decides_later():
    runs = [Scripted(Candidate(replace(BASE, max_depth=i)), list(falling(0.5 + 0.05 * i))) for i in range(2)]
    assert Race(EarlyStopping(30, 0.0), 200, in_standard_errors, 1).run(runs) is runs[0]
    assert [len(one.losses) for one in runs] == [150, 75]


@pytest.mark.parametrize("n_folds", [1, 5])
def test_on_a_single_fold_candidates_have_time_to_catch_up(n_folds):
    late = np.concatenate([np.linspace(1, 0.95, 30), np.linspace(0.94, 0.2, 120)])
    curves = [falling(0.5), falling(0.55), late]
    runs = [Scripted(Candidate(replace(BASE, max_depth=i)), list(curve)) for i, curve in enumerate(curves)]
    best = Race(EarlyStopping(30, 0.0), 200, in_standard_errors, n_folds).run(runs)
    assert runs.index(best) == (2 if n_folds == 1 else 0)


def test_competitors_may_have_rounds_already():
    started = Scripted(Candidate(BASE), list(falling(0.5)))
    started.advance(50, EarlyStopping(30, 0.0))
    other = Scripted(Candidate(replace(BASE, max_depth=8)), list(falling(0.6)))
    assert Race(EarlyStopping(30, 0.0), 200, in_standard_errors, 3).run([started, other]) is started
    assert (len(started.losses), len(other.losses)) == (150, 50)


def test_a_candidate_with_a_margin_may_start_slowly():
    """Shallow trees are behind deep ones for long, and still win on some data."""
    slow = slowing(0.4)
    winner, runs = run([slow, falling(0.5, 40)], margins=[2.0, 0.0])
    assert slow[40] > 0.55
    assert winner == 0
    assert len(runs[0].losses) == 150


def test_a_candidate_with_a_margin_that_cannot_catch_up_is_given_up():
    winner, runs = run([slowing(0.6), falling(0.5, 40)], margins=[2.0, 0.0])
    assert winner == 1
    assert len(runs[0].losses) < 50


def test_a_candidate_with_a_margin_is_grown_on_all_folds_only_if_it_is_better_on_the_first():
    for end, folds in ((0.65, [2]), (0.4, [2, None])):
        _, runs = run([slowing(end), falling(0.6)], margins=[2.0, 0.0])
        assert runs[0].folds == folds


def test_only_the_better_kind_of_categorical_splits_competes():
    options = [replace(BASE, subset_splits=subsets) for subsets in (False, True)]
    symmetric = [replace(one, shape="symmetric") for one in options]
    for better in (0, 1):
        ends = {one: 0.6 if i == better else 0.7 for i, one in enumerate(options)} | dict.fromkeys(symmetric, 0.5)
        runs = [Scripted(Candidate(one), list(falling(end))) for one, end in ends.items()]
        race = Race(EarlyStopping(30, 0.0), 200, in_standard_errors, 3)
        assert race.run(runs).candidate.options == symmetric[better]
        assert not runs[3 - better].losses


def test_early_stopping_continues_between_stages():
    whole = [1.0, 0.9, 0.8, 0.85, 0.86, 0.87]
    stopping = EarlyStopping(3, 0.0)
    for cut in range(len(whole) + 1):
        assert ContinuedStopping(stopping, tuple(whole[:cut])).reached(whole[cut:]) == stopping.reached(whole)


def test_capacity_of_the_candidates_grows_with_the_data():
    def largest(n, loss):
        found = autotune.candidates(
            BASE if loss.n_classes else TreeOptions((), False, None, 31, "leaf-wise"), loss, n, FREE
        )
        return max(one.options.max_leaves or 2**one.options.max_depth for one in found)

    for loss in (LogisticLoss(), SquaredLoss()):
        sizes = [largest(n, loss) for n in (1_000, 5_000, 15_000, 50_000)]
        assert sizes == sorted(sizes)
        assert sizes[0] < sizes[-1]


def test_one_shallow_depth_competes_for_many_targets_and_none_for_many_classes():
    def depths(loss, base):
        found = autotune.candidates(base, loss, 1500, replace(FREE, shape=False))
        return {one.options.max_depth for one in found}

    leaf_wise = TreeOptions((), False, None, 31, "leaf-wise")
    assert depths(TargetsSquaredLoss([1.0] * 4), leaf_wise) == {None, 2, 3, 4}
    assert depths(TargetsSquaredLoss([1.0] * 5), leaf_wise) == {None, 3}
    assert depths(SoftmaxLoss(5), BASE) == {6}


def test_given_parameters_are_not_candidates():
    def found(**given):
        return autotune.candidates(BASE, LogisticLoss(), 3000, replace(FREE, **given))

    assert {one.options.max_depth for one in found(depth=False)} == {6}
    assert {one.options.shape for one in found(shape=False)} == {"depth-wise"}
    assert {one.projection_strength for one in found(projection=False)} == {None}
    assert {one.rate for one in found(rate=False)} == {1.0}
    assert {one.options.subset_splits for one in found()} == {False}
    assert {one.options.subset_splits for one in found(subset_splits=True)} == {False, True}
    assert found(depth=False, shape=False) == (Candidate(BASE),)


@pytest.fixture(scope="module")
def native():
    pytest.importorskip("scboost._engine.native._native")
    return {**QUICK, "engine": "native"}


@pytest.mark.parametrize(("noise", "rate"), [(0.3, 0.02), (20.0, 0.3)])
@pytest.mark.parametrize("engine", ["native", "xgboost"])
def test_models_of_later_folds_catch_up(noise, rate, engine, monkeypatch):
    """First folds alone and then all folds are the same as all folds at once, also if the best round is past."""
    X, _ = additive(300)
    y = (X[:, 2] + noise * np.random.default_rng(0).normal(size=len(X)) > 0).astype(int)
    found = {}

    def grow_both(self, *, kept):
        candidate = Candidate(self._spec.options)
        at_once, later = (self._start(candidate, "") for _ in range(2))
        at_once.advance(30, None)
        for n_rounds, n_folds in ((10, 1), (25, 2), (25, None), (30, None)):
            later.advance(n_rounds, None, n_folds)
            assert later.losses == found.setdefault("all", at_once).first_losses(n_folds or 3)[:n_rounds]
            np.testing.assert_allclose(later.pointwise_loss().mean(), min(later.losses), rtol=1e-5)
        np.testing.assert_allclose(later.pointwise_loss(), at_once.pointwise_loss(), rtol=1e-5)
        found["best"] = int(np.argmin(at_once.losses)) + 1
        return at_once.models()

    monkeypatch.setattr(CrossValidation, "grow", grow_both)
    SCBoostClassifier(**{**QUICK, "engine": engine, "learning_rate": rate}).fit(X, y)
    assert (found["best"] < 25) == (noise > 1)


def test_models_that_catch_up_stop_when_the_loss_of_all_folds_says_so(monkeypatch):
    """Not only when they have as many rounds as the models of the first folds, which alone may want many more."""
    X, _ = additive(300)
    y = (X[:, 2] + 3 * np.random.default_rng(0).normal(size=len(X)) > 0).astype(int)

    def grow_both(self, *, kept):
        candidate, stopping = Candidate(self._spec.options), EarlyStopping(8, 0.0)
        at_once, later = (self._start(candidate, "") for _ in range(2))
        at_once.advance(100, stopping)
        later.advance(100, None, 2)
        later.advance(100, stopping)
        assert len(at_once.losses) < 50
        np.testing.assert_allclose(later.losses, at_once.losses, rtol=1e-12)
        assert [run.training.state.round for run in later._runs] == [100, 100, len(later.losses)]
        np.testing.assert_allclose(later.pointwise_loss(), at_once.pointwise_loss(), rtol=1e-5)
        return at_once.models()

    monkeypatch.setattr(CrossValidation, "grow", grow_both)
    SCBoostClassifier(**QUICK).fit(X, y)


def test_selection_does_not_depend_on_threads_and_is_reproducible(native):
    X, y = product_of_three(600)
    models = [SCBoostClassifier(**{**native, "n_jobs": n}).fit(X, y) for n in (1, 2)]
    assert models[0].tree_shape_ == models[1].tree_shape_
    np.testing.assert_array_equal(*(model.predict_proba(X) for model in models))


def test_a_given_shape_is_kept(native):
    X, y = additive(400)
    for shape in ("depth-wise", "symmetric"):
        assert SCBoostClassifier(**native, tree_shape=shape).fit(X, y).tree_shape_ == shape


def test_groups_drive_the_selection_of_capacity(native):
    """Random folds reward trees that memorize groups; folds by group do not."""
    rng = np.random.default_rng(0)
    n_groups, size = 60, 12
    groups = np.repeat(np.arange(n_groups), size)
    centres, effects = rng.normal(size=(n_groups, 4)), rng.normal(size=n_groups)
    X = np.column_stack([centres[groups] + 0.01 * rng.normal(size=(len(groups), 4)), rng.normal(size=len(groups))])
    y = (effects[groups] + X[:, 4] + 0.5 * rng.normal(size=len(groups)) > 0).astype(int)
    train = groups < 40
    by_group = SCBoostClassifier(**{**native, "cv": GroupKFold(3)}).fit(X[train], y[train], groups=groups[train])
    at_random = SCBoostClassifier(**native).fit(X[train], y[train])
    losses = [log_loss(y[~train], model.predict_proba(X[~train])) for model in (by_group, at_random)]
    assert losses[0] < losses[1]


def test_the_learning_rate_is_larger_if_the_round_limit_binds(native, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3))
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2])
    params = {**native, "learning_rate": "auto", "tree_shape": "depth-wise", "max_depth": 4, "cv": 2}
    params["loss"] = "absolute_error"  # whose fold models are not part of the model
    free = SCBoostRegressor(**params).fit(X, y)
    monkeypatch.setattr(autotune, "MAX_ROUNDS", 60)
    bound = SCBoostRegressor(**params).fit(X, y)
    assert free.n_estimators_ > 60 == bound.n_estimators_
    assert bound.learning_rate_ > autotune.auto_learning_rate(800, 60)


def test_fold_models_of_a_rare_class_keep_the_learning_rate(native):
    """From log-odds of -6, steps of four times the learning rate overshoot, and the selected rounds mean nothing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=8000) > 2.85).astype(int)
    assert 0.001 < y.mean() < 0.005
    params = {**native, "learning_rate": "auto", "tree_shape": "depth-wise", "max_depth": 6, "feature_selection": False}
    model = SCBoostClassifier(**params).fit(X, y)
    constant = -(y.mean() * np.log(y.mean()) + (1 - y.mean()) * np.log(1 - y.mean()))
    losses = model.selection_log_["validation_loss"]
    assert (losses[:20] < constant).all()
    assert autotune.selection_speedup(0.1, 0.004) == 1 < autotune.selection_speedup(0.1, 0.006)


def test_averaged_fold_models_of_few_samples_take_larger_steps():
    assert autotune.selection_speedup(0.03, few_averaged=True) == 2 * autotune.selection_speedup(0.03)
    assert autotune.selection_speedup(0.2, few_averaged=True) * 0.2 <= autotune.LARGEST_RATE
    n = autotune.FEW_SAMPLES
    few, many = (additive(size) for size in (n, n + 100))
    params = {**QUICK, "learning_rate": "auto", "max_depth": 2}
    rates = [SCBoostClassifier(**params).fit(X, y).learning_rate_ for X, y in (few, many)]
    assert rates[0] > 1.9 * rates[1]
    single = SCBoostClassifier(**params, n_estimators=600).fit(*few)  # no average
    assert single.learning_rate_ < rates[1]


@pytest.mark.parametrize(
    ("loss", "n_samples", "competes"),
    [
        (LogisticLoss(), 5000, True),
        (LogisticLoss(), 1999, False),
        (SoftmaxLoss(3), 5000, True),
        (SquaredLoss(), 5000, True),
        (QuantilesLoss((0.1, 0.9)), 5000, False),
    ],
)
def test_shapes_compete_where_folds_can_tell_them_apart(loss, n_samples, competes):
    assert autotune.shapes_compete(loss, n_samples) == competes


def test_many_classes_need_fewer_folds():
    """A round grows one tree per class."""
    sizes = (900, 10_000, 30_000)
    assert [autotune.selection_folds(n) for n in sizes] == [5, 3, 1]
    assert [autotune.selection_folds(n, 4) for n in sizes] == [5, 3, 1]
    assert [autotune.selection_folds(n, 26) for n in sizes] == [3, 1, 1]


def test_the_projection_strength_of_many_classes_is_selected():
    found = autotune.candidates(BASE, SoftmaxLoss(26), 5000, FREE)
    assert {one.projection_strength for one in found} == {None, 0.9}
    assert {one.options.max_depth for one in found} == {6}


def test_learning_goes_on_when_predictions_become_certain():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(4000, 4))
    y = (X**2).sum(axis=1) < 0.6  # without noise
    losses = {}
    for minimum in ("auto", 1.0):
        model = SCBoostClassifier(**QUICK, max_depth=6, min_child_weight=minimum).fit(X[:2000], y[:2000])
        losses[minimum] = log_loss(y[2000:], model.predict_proba(X[2000:]))
    assert losses["auto"] < 0.97 * losses[1.0], losses


def test_a_slow_candidate_is_given_up_only_if_its_extrapolated_loss_stays_above_the_target():
    """Its loss falls by half as much in each doubling: from 300 rounds on by 0.1 / 2 + 0.1 / 4 + ... < 0.1."""
    rounds = np.arange(1, 301)
    losses = (0.4 + 0.1 * 300 / rounds).tolist()
    fall = 0.1 * (1 - 300 / 1200)
    for distance, given_up in ((-0.01, False), (0.01, True)):
        target = 0.5 - fall + distance
        stopping = HopelessStopping(patience=1000, tol=0.0, target=target - 2 * distance, n_rounds=1200)
        assert stopping.reached(losses) is given_up


def test_a_loss_that_falls_steadily_is_extrapolated_steadily():
    losses = slowing(0.5, 128).tolist()
    per_doubling = 0.5 / 7
    for doublings in (1, 3):
        stopping = HopelessStopping(50, 0.0, target=0.5 - doublings * per_doubling + 1e-9, n_rounds=128 * 2**doublings)
        assert not stopping.reached(losses)
        assert HopelessStopping(50, 0.0, target=stopping.target - 1e-3, n_rounds=stopping.n_rounds).reached(losses)


def test_a_thorough_selection_compares_candidates_after_more_rounds():
    """The second one is ahead only after 60 rounds."""
    late = np.where(np.arange(150) < 60, falling(0.5) + 0.01, 0.3)
    assert run([falling(0.5), late])[0] == 0
    assert run([falling(0.5), late], thorough=True)[0] == 1


class MisleadingFolds(Scripted):
    """A competitor whose loss on the first folds is lower than on all of them."""

    def first_losses(self, n_folds):
        """The first folds have a lower loss than all."""
        return [loss - 0.2 for loss in self.losses]


@pytest.mark.parametrize("thorough", [True, False])
def test_a_thorough_selection_compares_the_winner_with_the_default_on_all_folds(thorough):
    default = Scripted(Candidate(BASE), list(falling(0.5)))
    misleading = MisleadingFolds(Candidate(replace(BASE, max_depth=3)), list(falling(0.6)))
    race = Race(EarlyStopping(30, 0.0), 200, in_standard_errors, 10, thorough=thorough)
    assert race.run([default, misleading]) is (default if thorough else misleading)


@pytest.mark.parametrize("position", [0, 9, 18])
def test_a_fold_without_anything_to_learn_does_not_end_the_fit(position):
    """The only target that differs is held out from one fold model, which has no trees."""
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.zeros(60)
    y[position] = 1e6
    params = {"loss": "expectile", "expectile": 0.1, "min_split_loss": 10.0, "cv": 2, "n_jobs": 1, "random_state": 0}
    assert np.isfinite(SCBoostRegressor(**params).fit(X, y).predict(X)).all()
