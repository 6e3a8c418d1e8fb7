"""Prediction intervals, label sets and their conformal state."""

import json
import pickle

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, make_friedman1
from sklearn.model_selection import GroupKFold, KFold, TimeSeriesSplit

from scboost import Checkpoint, SCBoostClassifier, SCBoostRegressor, load_model, prune
from scboost._core import out_of_fold
from scboost._core.conformal import LabelSets, LocalScale, Scores, counted, label_scores
from scboost._model import file
from scboost._model.packing import ModelFileError


def noisy(n, seed=0):
    """Return samples whose noise grows with the mean."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, size=(n, 3))
    return X, X[:, 0] + (0.2 + 0.2 * X[:, 0]) * rng.normal(size=n)


def covered(bounds, y):
    return np.mean((bounds[..., 0] <= y) & (y <= bounds[..., 1]))


@pytest.fixture(scope="module")
def fitted():
    X, y = noisy(600)
    return SCBoostRegressor(engine="auto", random_state=0).fit(X, y)


# --- ranks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("n", [9, 99, 500])
def test_quantiles_are_the_order_statistics_of_the_theorem(n, level):
    scores = np.random.default_rng(n).normal(size=n)
    found, ordered = Scores.of(scores), np.sort(scores)
    rank = int(np.ceil(level * (n + 1) - 1e-9))
    assert found.upper(level) == (ordered[rank - 1] if rank <= n else np.inf)
    rank = int(np.floor((1 - level) * (n + 1) + 1e-9))
    assert found.lower(1 - level) == (ordered[rank - 1] if rank else -np.inf)


def test_thinned_scores_err_on_the_safe_side_by_little():
    n = 200_000
    scores = np.random.default_rng(0).normal(size=n)
    thin, ordered = Scores.of(scores), np.sort(scores)
    assert len(thin.values) <= 1024
    assert thin.size == n
    for level in (0.6, 0.8, 0.9, 0.95, 0.99, 0.999):
        rank = np.searchsorted(ordered, thin.upper(level), side="right")
        assert level * (n + 1) <= rank <= n * (level + 0.03 * (1 - level))
        rank = np.searchsorted(ordered, thin.lower(1 - level), side="right")
        assert (1 - level) * (n + 1) >= rank >= n * (1 - level) * 0.97


def test_coverage_over_random_calibration_sets_is_at_least_nominal():
    rng = np.random.default_rng(0)
    n, level = 30, 0.9
    below = [rng.normal() <= Scores.of(rng.normal(size=n)).upper(level) for _ in range(4000)]
    exact = np.ceil(level * (n + 1)) / (n + 1)  # 28 / 31
    assert abs(np.mean(below) - exact) < 4 * np.sqrt(exact * (1 - exact) / 4000)


def test_equal_weights_count_samples_and_unequal_ones_fewer():
    assert counted(None) is None
    np.testing.assert_allclose(counted(np.full(7, 3.0)), 1)
    assert counted(np.array([1.0, 1.0, 10.0])).sum() == pytest.approx(144 / 102)
    repeats = np.array([2, 2, 1])  # the first sample is there twice
    assert counted(None, repeats).sum() == pytest.approx(2)


def test_weights_move_the_quantile():
    scores, weight = np.array([1.0, 2.0, 3.0, 4.0]), np.array([10.0, 1.0, 1.0, 1.0])
    assert Scores.of(scores, counted(weight)).upper(0.5) == 2
    assert Scores.of(scores, counted(weight[::-1])).upper(0.5) == 4


def test_groups_merge_to_all_scores():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=100), rng.normal(size=50)
    together, merged = Scores.of(np.concatenate([a, b])), Scores.merged([Scores.of(a), Scores.of(b)])
    np.testing.assert_array_equal(together.values, merged.values)
    np.testing.assert_allclose(together.ranks, merged.ranks)


def test_local_scale_follows_the_size_of_the_residuals():
    rng = np.random.default_rng(0)
    prediction = rng.uniform(1, 5, 4000)
    scale = LocalScale.of(prediction, prediction * rng.normal(size=4000), None)
    ratio = scale.at(np.array([4.5])) / scale.at(np.array([1.5]))
    assert 2.0 < ratio < 3.0  # 3, less the shrinkage
    assert LocalScale.of(prediction, np.zeros(4000), None) is None
    assert LocalScale.of(prediction[:60], np.ones(60), None) is None


# --- regression ------------------------------------------------------------------------------------------------------


def test_intervals_cover_and_follow_the_noise(fitted):
    X, y = noisy(3000, seed=1)
    bounds = fitted.predict_interval(X, coverage=[0.8, 0.9, 0.95])
    assert bounds.shape == (3000, 3, 2)
    for k, coverage in enumerate((0.8, 0.9, 0.95)):
        assert abs(covered(bounds[:, k], y) - coverage) < 0.04
        np.testing.assert_array_equal(bounds[:, k], fitted.predict_interval(X, coverage))
    width = np.diff(bounds[:, 1], axis=1)[:, 0]
    assert width[X[:, 0] > 8].mean() > 2 * width[X[:, 0] < 2].mean()
    np.testing.assert_allclose(bounds[:, 1].mean(axis=1), fitted.predict(X), rtol=1e-10)
    assert (bounds[:, 0, 0] > bounds[:, 1, 0]).all()
    assert (bounds[:, 1, 1] < bounds[:, 2, 1]).all()


@pytest.mark.parametrize("coverage", [0, 1, -0.9, 90, [], [0.9, 2], True, "0.9", None])
def test_coverage_is_checked(fitted, coverage):
    with pytest.raises(ValueError, match="coverage="):
        fitted.predict_interval(np.zeros((1, 3)), coverage)


@pytest.mark.parametrize(
    "parameters",
    [
        {"preset": "fast"},
        {"n_estimators": 30, "loss": "huber"},
        {"n_estimators": 30, "loss": "poisson"},
        {"n_estimators": 30, "loss": "expectile", "expectile": 0.8},
        {"n_estimators": 30, "loss": "quantile", "quantile": 0.9},
        {"n_estimators": 30, "loss": "quantile", "quantile": [0.1, 0.9]},
    ],
)
def test_calibration_set_gives_nominal_coverage_for_every_loss(parameters):
    X, y = noisy(6000)
    y = np.maximum(y, 0)
    model = SCBoostRegressor(engine="auto", **parameters).fit(X[:400], y[:400])
    with pytest.raises(ValueError, match=r"call calibrate\(X_cal, y_cal\)"):
        model.predict_interval(X)
    before = model.predict(X)
    model.calibrate(X[400:3000], y[400:3000])
    np.testing.assert_array_equal(model.predict(X), before)
    for coverage in (0.5, 0.9):
        bounds = model.predict_interval(X[3000:], coverage)
        assert abs(covered(bounds, y[3000:]) - coverage) < 0.03
        assert (bounds[:, 0] <= bounds[:, 1]).all()
        if parameters.get("loss") == "poisson":
            assert bounds.min() >= 0


def test_calibration_keeps_the_scale_of_the_fit(fitted):
    X, y = noisy(500, seed=2)
    calibrated = pickle.loads(pickle.dumps(fitted)).calibrate(X, y)  # noqa: S301 - our own
    np.testing.assert_array_equal(calibrated._fitted.conformal.scale.values, fitted._fitted.conformal.scale.values)
    assert calibrated._fitted.conformal.centred.size == 500


def test_too_few_calibration_samples_give_infinite_bounds():
    X, y = noisy(100)
    model = SCBoostRegressor(engine="auto", n_estimators=5).fit(X, y).calibrate(X[:9], y[:9])
    assert np.isinf(model.predict_interval(X, 0.95)).all()
    assert np.isfinite(model.predict_interval(X, 0.9)).all()  # the largest of 9 residuals


def test_fast_quantiles_are_not_overfitted():
    X, y = noisy(3900)
    model = SCBoostRegressor(engine="auto", loss="quantile", quantile=[0.05, 0.5, 0.95], preset="fast").fit(
        X[:900], y[:900]
    )
    below = (y[900:, None] < model.predict(X[900:])).mean(axis=0)
    np.testing.assert_allclose(below, [0.05, 0.5, 0.95], atol=0.04)
    assert abs(covered(model.predict_interval(X[900:], 0.9), y[900:]) - 0.9) < 0.04
    assert model.n_estimators_ == 100


def test_weighted_calibration_covers_the_weighted_distribution():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(4000, 1))
    noise = np.where(rng.random(4000) < 0.5, 0.1, 1.0)  # which the feature does not tell
    y = noise * rng.normal(size=4000)
    model = SCBoostRegressor(engine="auto", n_estimators=2).fit(X[:500], y[:500])
    model.calibrate(X[500:], y[500:], sample_weight=np.where(noise[500:] == 1, 1.0, 1e-3))
    bounds = model.predict_interval(X, 0.9)
    assert abs(covered(bounds[noise == 1], y[noise == 1]) - 0.9) < 0.03
    assert covered(bounds[noise < 1], y[noise < 1]) > 0.99


def test_groups_and_time_use_the_same_folds():
    X, y = noisy(400)
    groups = np.repeat(np.arange(40), 10)
    model = SCBoostRegressor(engine="auto", cv=GroupKFold(4), random_state=0).fit(X, y, groups=groups)
    assert model._fitted.conformal.centred.size == 400
    model = SCBoostRegressor(engine="auto", cv=TimeSeriesSplit(3), random_state=0).fit(X, y)
    assert model._fitted.conformal.centred.size == 300  # the first quarter is never held out


def test_out_of_fold_residuals_are_those_of_held_out_samples(fitted):
    X, y = noisy(600)
    training = np.mean(np.abs(y - fitted.predict(X)))
    state = fitted._fitted.conformal
    out_of_fold = np.average(state.centred.values) * np.mean(state.scale.at(fitted.predict(X)))
    new_X, new_y = noisy(3000, seed=3)
    new = np.mean(np.abs(new_y - fitted.predict(new_X)))
    assert out_of_fold > training
    assert out_of_fold == pytest.approx(new, rel=0.12)


# --- averages of fold models -----------------------------------------------------------------------------------------


def fold_errors(common, own, n=4000, n_models=4, shrinkage=0.3):
    """Return errors of models with a common and an own part, smaller for samples that a model was fitted to."""
    rng = np.random.default_rng(0)
    fold = np.arange(n) % n_models
    errors = common * rng.normal(size=n) + own * rng.normal(size=(n_models, n))
    errors[np.arange(n_models)[:, None] != fold] *= shrinkage
    return errors, fold


@pytest.mark.parametrize(("common", "own"), [(1.0, 0.0), (1.0, 0.3), (1.0, 0.6), (2.0, 1.0)])
def test_factor_is_half_way_to_that_of_the_mean_of_errors_with_a_common_part(common, own):
    """The variance of the common part is not reduced by averaging, that of the models' own parts by their number."""
    errors, fold = fold_errors(common, own)
    expected = np.sqrt((common**2 + own**2 / 4) / (common**2 + own**2))
    assert out_of_fold._factor_of_average(errors, fold, None) ** 2 == pytest.approx(expected, abs=0.015)


def test_factor_depends_on_signs_and_ranks_of_the_residuals_of_fitted_samples_only():
    errors, fold = fold_errors(1.0, 0.5)
    distorted, fitted = errors.copy(), np.arange(4)[:, None] != fold
    distorted[fitted] = np.sign(errors[fitted]) * np.expm1(np.abs(errors[fitted])) ** 2
    expected = out_of_fold._factor_of_average(errors, fold, None)
    assert out_of_fold._factor_of_average(distorted, fold, None) == pytest.approx(expected, rel=1e-12)


def test_factor_is_bounded():
    """Models that interpolate their samples have residuals that say nothing: no factor may follow from these."""
    errors, fold = fold_errors(0.0, 1.0)
    assert out_of_fold._factor_of_average(errors, fold, None) == 0.85  # not the fourth root of 1/4
    assert out_of_fold._factor_of_average(0 * errors, fold, None) == 1
    assert out_of_fold._factor_of_average(np.tile(errors[:1], (4, 1)), fold, None) <= 1


def test_factor_of_weighted_samples_is_that_of_repeated_ones():
    errors, fold = fold_errors(1.0, 0.5, n=400)
    repeats = np.random.default_rng(1).integers(1, 4, size=400)
    repeated = out_of_fold._factor_of_average(np.repeat(errors, repeats, axis=1), np.repeat(fold, repeats), None)
    weighted = out_of_fold._factor_of_average(errors, fold, repeats.astype(float))
    assert weighted == pytest.approx(repeated, abs=0.002)


def test_intervals_of_averaged_models_do_not_cover_too_much():
    """Single fold models err more than their average: their residuals alone covered .874 on average."""
    observed = []
    for seed in range(4):
        X, y = make_friedman1(2500, noise=1.0, random_state=seed)
        model = SCBoostRegressor(random_state=0, n_jobs=1).fit(X[:500], y[:500])
        observed.append(covered(model.predict_interval(X[500:], 0.8), y[500:]))
    assert 0.78 < np.mean(observed) < 0.85


@pytest.mark.parametrize(
    ("n", "parameters"),
    [(299, {}), (400, {"cv": KFold(5)}), (400, {"learning_rate": 0.1}), (400, {"preset": "best", "cv": 3})],
)
def test_other_intervals_have_no_factor(n, parameters, monkeypatch):
    """Few samples say too little; residuals of groups or times must not be mixed; weighted folds fit too closely."""
    X, y = noisy(n)
    factors = []
    monkeypatch.setattr(out_of_fold, "_factor_of_average", lambda *_: factors.append(0.9) or 0.9)
    SCBoostRegressor(n_jobs=1, random_state=0, **parameters).fit(X, y).predict_interval(X)
    assert not factors
    SCBoostRegressor(n_jobs=1, random_state=0).fit(*noisy(400))
    assert factors


def test_pruning_and_an_early_stop_drop_the_state(fitted):
    X, y = noisy(600)
    pruned = prune(fitted, X, y, max_trees=5).model
    with pytest.raises(ValueError, match="calibrate"):
        pruned.predict_interval(X)
    stopped = SCBoostRegressor(engine="auto", callbacks=[lambda m: m.n_estimators_ == 3]).fit(X, y)
    with pytest.raises(ValueError, match="calibrate"):
        stopped.predict_interval(X)


@pytest.mark.parametrize("parameters", [{}, {"loss": "quantile", "quantile": [0.1, 0.9], "preset": "fast"}])
def test_resumed_fit_has_the_same_intervals(tmp_path, parameters):
    X, y = noisy(300)
    checkpoint = Checkpoint(tmp_path / "fit.checkpoint", every=7)
    model = SCBoostRegressor(engine="auto", **parameters, callbacks=[checkpoint], random_state=0).fit(X, y)
    resumed = checkpoint.load()
    assert resumed.n_estimators_ <= model.n_estimators_
    resumed.fit(X, y)
    np.testing.assert_array_equal(resumed.predict_interval(X, 0.8), model.predict_interval(X, 0.8))


def test_best_preset_has_intervals():
    X, y = noisy(500)
    model = SCBoostRegressor(engine="auto", preset="best", random_state=0).fit(X, y)
    X, y = noisy(3000, seed=5)
    assert abs(covered(model.predict_interval(X, 0.9), y) - 0.9) < 0.05


# --- classification --------------------------------------------------------------------------------------------------


def test_label_scores_by_hand():
    p = np.array([[0.2, 0.7, 0.1]])
    np.testing.assert_allclose(label_scores(p, "smallest"), [[0.8, 0.3, 0.9]])
    np.testing.assert_allclose(label_scores(p, "adaptive"), [[0.7, 0.0, 0.9]])


@pytest.mark.parametrize("method", ["smallest", "adaptive"])
@pytest.mark.parametrize("by_class", [False, True])
def test_sets_cover_marginally_or_in_each_class(method, by_class):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.5, 0.3, 0.2], size=8000)
    labels = (rng.random(8000)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    sets = LabelSets.of(p[:4000], labels[:4000], None).contains(p[4000:], 0.85, method, by_class=by_class)
    hit = sets[np.arange(4000), labels[4000:]]
    groups = [labels[4000:] == k for k in range(3)] if by_class else [slice(None)]
    for group in groups:
        assert hit[group].mean() > 0.82
        if method == "smallest":
            assert hit[group].mean() < 0.88
    if method == "adaptive" and not by_class:
        assert sets.any(axis=1).all()
        assert sets[np.arange(4000), p[4000:].argmax(axis=1)].all()


def test_classifier_sets_on_real_data():
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:300], order[300:]
    model = SCBoostClassifier(engine="auto", random_state=0).fit(X[train], y[train])
    sets = model.predict_set(X[test], coverage=[0.9, 0.99])
    assert sets.shape == (269, 2, 2)
    hit = [sets[np.arange(269), k, y[test]].mean() for k in range(2)]
    assert 0.84 < hit[0] < 0.96
    assert hit[1] > 0.96
    assert (sets[:, 0] <= sets[:, 1]).all()
    with pytest.raises(ValueError, match="method='small'"):
        model.predict_set(X, method="small")
    fast = SCBoostClassifier(engine="auto", preset="fast").fit(X[train], y[train])
    with pytest.raises(ValueError, match="calibrate"):
        fast.predict_set(X)
    with pytest.raises(ValueError, match=r"labels \[7\]"):
        fast.calibrate(X[:2], [1, 7])
    assert fast.calibrate(X[test], y[test]).predict_set(X[test]).shape == (269, 2)


# --- data and model ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classifies", [False, True])
def test_epistemic_uncertainty_is_larger_without_training_samples(classifies, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 2))
    X = X[(np.abs(X) > 0.5).any(axis=1)]  # a hole in the middle
    f = np.sin(4 * X[:, 0]) + np.cos(4 * X[:, 1])
    y = f + 0.1 * rng.normal(size=len(X))
    cls = SCBoostClassifier if classifies else SCBoostRegressor
    model = cls(engine="auto", preset="best", random_state=0, n_jobs=1).fit(X, (y > 0.5) if classifies else y)
    aleatoric, epistemic = model.prediction_uncertainty(X)
    hole = model.prediction_uncertainty(rng.uniform(-0.4, 0.4, size=(400, 2)))
    assert (aleatoric >= 0).all()
    assert (epistemic >= 0).all()
    assert hole.epistemic.mean() > 1.5 * epistemic.mean()
    model.save_model(tmp_path / "model.ubj")
    again = load_model(tmp_path / "model.ubj").prediction_uncertainty(X)
    np.testing.assert_array_equal(again, (aleatoric, epistemic))
    single = cls(n_estimators=3).fit(X, (y > 0.5) if classifies else y)
    with pytest.raises(ValueError, match="preset='best'"):
        single.prediction_uncertainty(X)


def test_members_average_to_the_model():
    X, y = noisy(300)
    params = {"engine": "auto", "n_estimators": 20, "weighting": "nonnegative", "weighting_data": "fold_average"}
    model = SCBoostRegressor(**params, random_state=0).fit(X, y)._fitted
    scores = np.mean([*model._member_scores(model.encode(X), 1)], axis=0)
    np.testing.assert_allclose(scores, model.raw_scores(X, 1), rtol=1e-5)


@pytest.mark.parametrize("preset", ["default", "best"])
def test_members_and_the_model_on_all_samples_average_to_the_model(preset):
    """What is left of the average, times the number of models, is the model that one fit to all samples gives."""
    X, y = noisy(300)
    params = {"random_state": 0, "n_jobs": 1, "max_depth": 3, "max_leaves": None, "tree_shape": "depth-wise"}
    params["feature_selection"] = False
    model = SCBoostRegressor(preset=preset, cv=3, **params).fit(X, y)
    inner = model._fitted
    members = [*inner._member_scores(inner.encode(X), 1)]
    rest = (len(members) + 1) * inner.raw_scores(X, 1) - np.sum(members, axis=0)
    rounds = model.n_estimators_ - sum(inner.members)
    alone = SCBoostRegressor(n_estimators=rounds, learning_rate=model.learning_rate_, **params).fit(X, y)
    added, expected = rest[0] - model.intercept_, alone.predict(X) - alone.intercept_
    factor = (added @ expected) / (expected @ expected)
    assert 0.5 < factor < 2  # the common factor that is estimated out of fold
    np.testing.assert_allclose(added, factor * expected, rtol=0, atol=1e-4 * np.abs(expected).max())


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def classifier():
    X, y = load_iris(return_X_y=True)
    return SCBoostClassifier(engine="auto", random_state=0).fit(X, np.array(["a", "b", "c"])[y])


@pytest.mark.parametrize("suffix", [".json", ".ubj"])
def test_state_survives_files_and_pickle(fitted, classifier, suffix, tmp_path):
    X = noisy(50, seed=4)[0]
    fitted.save_model(tmp_path / f"model{suffix}")
    for copy in (load_model(tmp_path / f"model{suffix}"), pickle.loads(pickle.dumps(fitted))):  # noqa: S301
        np.testing.assert_array_equal(copy.predict_interval(X, 0.9), fitted.predict_interval(X, 0.9))
    X = load_iris().data
    classifier.save_model(tmp_path / f"classes{suffix}")
    sets = load_model(tmp_path / f"classes{suffix}").predict_set(X, class_conditional=True)
    np.testing.assert_array_equal(sets, classifier.predict_set(X, class_conditional=True))


def edited(model, edit):
    """Return the document of a model after an edit of its conformal state, with the right checksum."""
    document = file.to_document(model._fitted, model.__stored_parameters__())
    own = json.loads(document.attributes["scboost"])
    edit(own["conformal"])
    document = document.with_learner(attributes={"scboost": json.dumps(own)})
    return document.with_learner(attributes={**document.attributes, "scboost_checksum": file.checksum(document)})


def array(values):
    return file.pack(np.array(values, dtype=np.float64))


@pytest.mark.parametrize(
    "edit",
    [
        lambda s: s.pop("centred"),
        lambda s: s.update(smallest=[]),
        lambda s: s.update(shifts=[s["centred"]]),
        lambda s: s["centred"].clear(),
        lambda s: s["centred"].update(values=array([2, 1])),
        lambda s: s["centred"].update(values=array([np.nan])),
        lambda s: s["centred"].update(values=array([[1.0]])),
        lambda s: s["centred"].update(values=array([])),
        lambda s: s["centred"].update(values="text"),
        lambda s: s["centred"].update(values=array([1, 2]), ranks=array([2, 2])),
        lambda s: s["centred"].update(values=array([1, 2]), ranks=array([-1, 2])),
        lambda s: s["centred"].update(ranks=array([1.0])),
        lambda s: s["scale"].update(values=array([0.0])),
        lambda s: s["scale"].update(knots=s["scale"]["values"], values=s["scale"]["knots"]),
        lambda s: s["scale"].update(more=1),
        lambda s: s.update(scale=3),
    ],
)
def test_contradicting_states_are_refused(fitted, edit):
    with pytest.raises(ModelFileError):
        load_bytes(edited(fitted, edit).encode())


def load_bytes(data):
    from scboost._estimators.model_file import from_document

    return from_document(file.parse(data))


def test_unedited_state_is_accepted(fitted):
    assert load_bytes(edited(fitted, lambda state: None).encode())._fitted.conformal is not None


def test_classes_and_label_scores_must_agree(classifier):
    with pytest.raises(ModelFileError, match="3 outputs or classes"):
        load_bytes(edited(classifier, lambda s: s["smallest"].pop()).encode())
    with pytest.raises(ModelFileError, match="not of the same samples"):
        load_bytes(edited(classifier, lambda s: s["smallest"][0].update(values=array([0.5]))).encode())


def test_state_in_a_file_is_small(tmp_path):
    X, y = noisy(3000)
    model = SCBoostRegressor(engine="auto", n_estimators=1).fit(X[:100], y[:100]).calibrate(X, y)
    assert len(json.dumps(json.loads(_own(model))["conformal"])) < 25_000


def _own(model):
    return file.to_document(model._fitted, model.__stored_parameters__()).attributes["scboost"]
