"""Several targets in one model: multi-output regression and multilabel classification."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning
from sklearn.inspection import permutation_importance
from sklearn.metrics import r2_score
from sklearn.tree import DecisionTreeRegressor

import scboost
from scboost import SCBoostClassifier, SCBoostRegressor
from scboost._core.losses import TargetsLogisticLoss, TargetsSquaredLoss

FIXED = {"n_estimators": 20, "learning_rate": 0.2, "max_depth": 3, "exploration": 0.0, "random_state": 0, "n_jobs": 1}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    signal = np.c_[X[:, 0] + X[:, 1] ** 2, 1000 * np.sin(2 * X[:, 2]) + 500, X[:, 0] * X[:, 3]]
    return X, signal + rng.normal(size=signal.shape) * [0.3, 100, 0.3]


@pytest.fixture(scope="module")
def labels(data):
    return (data[1] > np.median(data[1], axis=0)).astype(int)


def with_gaps(Y, share=0.3, seed=1):
    gaps = np.random.default_rng(seed).random(Y.shape) < share
    gaps[gaps.all(axis=1)] = False
    return np.where(gaps, np.nan, Y)


@pytest.mark.parametrize("engine", ["native", "xgboost"])
class TestOracle:
    def test_targets_are_those_of_separate_models(self, data, engine):
        X, Y = data
        together = SCBoostRegressor(engine=engine, **FIXED).fit(X, Y).predict(X)
        for k in range(3):
            alone = SCBoostRegressor(engine=engine, **FIXED).fit(X, Y[:, k]).predict(X)
            np.testing.assert_allclose(together[:, k], alone, atol=1e-5 * Y[:, k].std())

    def test_labels_are_those_of_separate_models(self, data, labels, engine):
        X = data[0]
        together = SCBoostClassifier(engine=engine, **FIXED).fit(X, labels)
        for k in range(3):
            alone = SCBoostClassifier(engine=engine, **FIXED).fit(X, labels[:, k])
            np.testing.assert_allclose(together.predict_proba(X)[:, k], alone.predict_proba(X)[:, 1], atol=1e-6)
            np.testing.assert_array_equal(together.predict(X)[:, k], alone.predict(X))

    def test_missing_targets_are_left_out_of_their_output_only(self, data, engine):
        X, Y = data[0], with_gaps(data[1])
        # Bins depend on all samples: as many as there are values make them equal.
        settings = {**FIXED, "max_bin": 1000, "engine": engine}
        together = SCBoostRegressor(**settings).fit(np.round(X, 1), Y).predict(np.round(X, 1))
        for k in range(3):
            seen = ~np.isnan(Y[:, k])
            alone = SCBoostRegressor(**settings).fit(np.round(X, 1)[seen], Y[seen, k]).predict(np.round(X, 1))
            close = np.isclose(together[:, k], alone, atol=1e-4 * np.nanstd(Y[:, k]))
            assert close.mean() > 0.97  # a threshold may lie anywhere between two values that one of the models sees

    def test_missing_labels_are_left_out_of_their_output_only(self, data, labels, engine):
        X, Y = np.round(data[0], 1), with_gaps(labels.astype(float))
        settings = {**FIXED, "max_bin": 1000, "engine": engine}
        together = SCBoostClassifier(**settings).fit(X, Y).predict_proba(X)
        for k in range(3):
            seen = ~np.isnan(Y[:, k])
            alone = SCBoostClassifier(**settings).fit(X[seen], Y[seen, k].astype(int)).predict_proba(X)[:, 1]
            assert np.isclose(together[:, k], alone, atol=1e-4).mean() > 0.97


class TestUnits:
    def test_units_of_one_target_do_not_change_the_others(self, data):
        X, Y = data
        factor = np.array([1, 1e6, 1e-3])
        one = SCBoostRegressor(n_estimators=30, random_state=0, n_jobs=1).fit(X, Y).predict(X)
        other = SCBoostRegressor(n_estimators=30, random_state=0, n_jobs=1).fit(X, Y * factor).predict(X)
        np.testing.assert_allclose(other / factor, one, atol=1e-4 * Y.std(axis=0).min(), rtol=1e-4)

    def test_a_constant_target_is_predicted(self, data):
        X, Y = data
        Y = np.c_[Y[:, 0], np.full(len(Y), 7.0)]
        model = SCBoostRegressor(**FIXED).fit(X, Y)
        np.testing.assert_allclose(model.predict(X)[:, 1], 7.0, rtol=1e-6)
        assert r2_score(Y[:, 0], model.predict(X)[:, 0]) > 0.7

    def test_a_label_without_variation_is_predicted(self, data, labels):
        Y = np.c_[labels[:, 0], np.ones(len(labels), int), np.zeros(len(labels), int)]
        model = SCBoostClassifier(**FIXED).fit(data[0], Y)
        np.testing.assert_array_equal(model.predict(data[0])[:, 1:], Y[:, 1:])
        assert np.isfinite(model.decision_function(data[0])).all()

    def test_noise_of_a_target_is_in_units_of_its_own_residuals(self, data):
        """A target that is noise does not prevent splits on one that is almost exactly predictable."""
        X = data[0]
        clean = 3.0 * (X[:, 0] > 0)
        rng = np.random.default_rng(0)
        settings = {**FIXED, "n_estimators": 60, "exploration": 1.0}
        model = SCBoostRegressor(**settings).fit(X, np.c_[clean, rng.normal(size=len(X))])
        alone = SCBoostRegressor(**settings).fit(X, clean)
        error, own = (np.mean((p - clean) ** 2) for p in (model.predict(X)[:, 0], alone.predict(X)))
        assert error < 3 * own + 1e-6

    def test_gradient_is_the_derivative_of_each_targets_loss(self):
        rng = np.random.default_rng(0)
        for loss, y in (
            (TargetsSquaredLoss([1.0, 20.0]), rng.normal(size=(7, 2))),
            (TargetsLogisticLoss(2), rng.integers(0, 2, size=(7, 2)).astype(float)),
        ):
            y[2, 0] = np.nan
            raw, step = rng.normal(size=(2, 7)), 1e-5
            gradient, hessian = loss.gradient_hessian(y, raw)
            assert gradient[0, 2] == 0
            assert hessian[0, 2] < 1e-15
            for k in range(2):
                shift = np.zeros((2, 1))
                shift[k] = step
                slope = (loss.pointwise_loss(y, raw + shift) - loss.pointwise_loss(y, raw - shift)) / (2 * step)
                np.testing.assert_allclose(2 * slope, gradient[k], atol=1e-6)  # the loss is the mean over 2 targets


class TestFits:
    def test_weight_is_repetition(self, data):
        X, Y = data[0], with_gaps(data[1])
        weight = np.random.default_rng(0).integers(0, 4, len(X))
        repeated = np.repeat(np.arange(len(X)), weight)
        settings = {"n_estimators": 20, "random_state": 0, "n_jobs": 1}
        one = SCBoostRegressor(**settings).fit(X, Y, sample_weight=weight).predict(X)
        other = SCBoostRegressor(**settings).fit(X[repeated], Y[repeated]).predict(X)
        np.testing.assert_allclose(one, other, atol=1e-3 * np.nanstd(Y, axis=0).min(), rtol=1e-3)

    def test_rounds_are_selected_by_cross_validation(self, data):
        X, Y = data
        model = SCBoostRegressor(random_state=0, n_jobs=1, max_depth=3, cv=3).fit(X[:200], Y[:200])
        assert model.score(X[200:], Y[200:]) > 0.75
        assert model.predict(X).shape == (300, 3)
        assert len(model.selection_log_["validation_loss"]) > 1
        model = SCBoostClassifier(random_state=0, n_jobs=1, max_depth=3, cv=3).fit(X[:200], data[1][:200] > [1, 500, 0])
        assert ((model.predict(X[200:]) == (data[1][200:] > [1, 500, 0])).mean(axis=0) > 0.75).all()

    def test_categories_missing_features_and_validation_set(self, data):
        X, Y = data
        table = pd.DataFrame(X.copy(), columns=list("abcde")).drop(columns="e")
        table["kind"] = np.where(X[:, 4] > 0, "left", "right")
        table.loc[::7, "a"] = np.nan
        Y = with_gaps(Y + 2 * (X[:, 4] > 0)[:, None] * Y.std(axis=0))
        frame = pd.DataFrame(Y, columns=["u", "v", "w"])
        model = SCBoostRegressor(random_state=0, n_jobs=1, max_depth=3)
        model.fit(table[:200], frame[:200], X_val=table[200:], y_val=frame[200:])
        seen = ~np.isnan(Y[200:, 1])
        assert r2_score(Y[200:, 1][seen], model.predict(table[200:])[seen, 1]) > 0.6
        assert model.feature_importances_[4] > 0.05

    def test_warm_start_continues(self, data):
        X, Y = data[0], with_gaps(data[1])
        settings = {**FIXED, "exploration": 0.3, "warm_start": True}
        model = SCBoostRegressor(**{**settings, "n_estimators": 8}).fit(X, Y)
        model.set_params(n_estimators=20).fit(X, Y)
        np.testing.assert_array_equal(model.predict(X), SCBoostRegressor(**settings).fit(X, Y).predict(X))

    @pytest.mark.parametrize("rounds", [20, "auto"])
    def test_checkpoint_resumes_to_the_same_bits(self, data, tmp_path, rounds):
        X, Y = data[0], with_gaps(data[1])
        checkpoint = scboost.Checkpoint(tmp_path / "fit", every=8)
        settings = {**FIXED, "exploration": 0.3, "n_estimators": rounds, "cv": 3}
        whole = SCBoostRegressor(**settings, callbacks=[checkpoint]).fit(X, Y)
        resumed = checkpoint.load()
        assert resumed.n_estimators_ == whole.n_estimators_ // 8 * 8
        np.testing.assert_array_equal(resumed.fit(X, Y).predict(X), whole.predict(X))

    def test_init_model_keeps_the_scales(self, data):
        X, Y = data
        base = SCBoostRegressor(**FIXED).fit(X, Y)
        more = SCBoostRegressor(**FIXED).fit(X, 2 * Y, init_model=base)
        assert more.n_estimators_ == 40
        assert r2_score(2 * Y, more.predict(X)) > 0.8
        with pytest.raises(ValueError, match="which differs from"):
            SCBoostRegressor(**FIXED).fit(X, Y[:, :2], init_model=base)

    def test_staged_predictions_end_in_the_prediction(self, data, labels):
        X, Y = data
        model = SCBoostRegressor(**FIXED).fit(X, Y)
        np.testing.assert_allclose(list(model.staged_predict(X))[-1], model.predict(X), rtol=1e-5, atol=1e-4)
        classifier = SCBoostClassifier(**FIXED).fit(X, labels)
        np.testing.assert_array_equal(list(classifier.staged_predict(X))[-1], classifier.predict(X))

    def test_sparse_indicator_matrix(self, data, labels):
        from scipy import sparse

        one = SCBoostClassifier(**FIXED).fit(data[0], labels)
        other = SCBoostClassifier(**FIXED).fit(data[0], sparse.csr_array(labels))
        np.testing.assert_array_equal(one.predict_proba(data[0]), other.predict_proba(data[0]))

    def test_one_column_is_one_target(self, data):
        X, Y = data
        with pytest.warns(DataConversionWarning):
            model = SCBoostRegressor(**FIXED).fit(X, Y[:, :1])
        assert model.predict(X).shape == (300,)


class TestExplanations:
    def test_shap_values_of_each_target_add_up(self, data):
        X, Y = data
        model = SCBoostRegressor(**FIXED).fit(X, Y)
        values = model.shap_values(X[:20])
        assert values.shape == (20, 3, 6)
        np.testing.assert_allclose(values.sum(axis=2), model.predict(X[:20]), rtol=1e-4, atol=1e-3)
        assert np.abs(values[:, 1, :5]).mean(axis=0).argmax() == 2  # the second target depends on the third feature

    def test_permutation_importance_of_a_target(self, data):
        X, Y = data
        model = SCBoostRegressor(**FIXED).fit(X, Y)

        def second(estimator, X, y):
            return r2_score(y[:, 1], estimator.predict(X)[:, 1])

        found = permutation_importance(model, X, Y, scoring=second, n_repeats=2, random_state=0).importances_mean
        assert found.argmax() == 2
        assert permutation_importance(model, X, Y, n_repeats=2, random_state=0).importances_mean.shape == (5,)


class TestFiles:
    @pytest.mark.parametrize("suffix", ["json", "ubj"])
    def test_file_predicts_the_same_here_and_in_xgboost(self, data, labels, tmp_path, suffix):
        xgb = pytest.importorskip("xgboost")
        X, Y = data
        for model, target in ((SCBoostRegressor(**FIXED), Y), (SCBoostClassifier(**FIXED), labels)):
            model.fit(X, target)
            path = tmp_path / f"model.{suffix}"
            model.save_model(path)
            again = scboost.load_model(path)
            assert type(again) is type(model)
            np.testing.assert_array_equal(again.predict(X), model.predict(X))
            margin = xgb.Booster(model_file=path).predict(xgb.DMatrix(X), output_margin=True)
            np.testing.assert_allclose(margin, model._raw_scores(X).T, rtol=1e-5, atol=1e-5 * Y.std())
            plain = xgb.Booster(model_file=path).predict(xgb.DMatrix(X))
            own = model.predict_proba(X) if isinstance(model, SCBoostClassifier) else model.predict(X)
            np.testing.assert_allclose(plain, own, rtol=1e-5, atol=1e-5 * np.abs(own).max())

    def test_xgboost_estimators(self, data, labels):
        pytest.importorskip("xgboost")
        X, Y = data
        model = SCBoostRegressor(**FIXED).fit(X, Y)
        np.testing.assert_allclose(model.to_xgboost().predict(X), model.predict(X), rtol=1e-4, atol=1e-2)
        classifier = SCBoostClassifier(**FIXED).fit(X, labels)
        exported = classifier.to_xgboost()
        np.testing.assert_allclose(exported.predict_proba(X), classifier.predict_proba(X), atol=1e-5)
        np.testing.assert_array_equal(exported.predict(X), classifier.predict(X))

    def test_onnx(self, data, labels):
        onnxruntime = pytest.importorskip("onnxruntime")
        pytest.importorskip("onnx")
        X = data[0].astype(np.float32)
        for model, target in ((SCBoostRegressor(**FIXED), data[1]), (SCBoostClassifier(**FIXED), labels)):
            model.fit(X, target)
            session = onnxruntime.InferenceSession(scboost.to_onnx(model).SerializeToString())
            own = model.predict_proba(X) if isinstance(model, SCBoostClassifier) else model.predict(X)
            np.testing.assert_allclose(session.run(None, {"X": X})[0], own, rtol=1e-4, atol=1e-2)

    def test_treelite(self, data, labels):
        treelite = pytest.importorskip("treelite")
        X = data[0].astype(np.float32)
        for model, target in ((SCBoostRegressor(**FIXED), data[1]), (SCBoostClassifier(**FIXED), labels)):
            model.fit(X, target)
            own = model.predict_proba(X) if isinstance(model, SCBoostClassifier) else model.predict(X)
            found = treelite.gtil.predict(scboost.to_treelite(model), X).reshape(len(X), -1)
            np.testing.assert_allclose(found, own, rtol=1e-4, atol=1e-2)


class TestRefusals:
    @pytest.mark.parametrize(
        "parameters",
        [
            {"weighting": "nonnegative"},
            {"preset": "best"},
            {"max_trees": 5},
            {"early_stopping_metric": "r2"},
            {"loss": "poisson"},
            {"loss": "quantile", "quantile": 0.5},
        ],
    )
    def test_parameters_of_one_target(self, data, parameters):
        with pytest.raises(ValueError, match=next(iter(parameters))):
            SCBoostRegressor(**parameters).fit(*data)

    def test_class_weight(self, data, labels):
        with pytest.raises(ValueError, match="class_weight='balanced' supports one target"):
            SCBoostClassifier(class_weight="balanced").fit(data[0], labels)

    def test_labels_must_be_indicators(self, data, labels):
        with pytest.raises(ValueError, match="values 0 and 1"):
            SCBoostClassifier(**FIXED).fit(data[0], labels + 1)

    def test_leaf_means_need_all_targets(self, data):
        with pytest.raises(ValueError, match="leaf_rule='newton'"):
            SCBoostRegressor(leaf_rule="mean").fit(data[0], with_gaps(data[1]))

    def test_samples_without_any_target(self, data):
        Y = data[1].copy()
        Y[4] = np.nan
        with pytest.raises(ValueError, match="sample 4; remove"):
            SCBoostRegressor(**FIXED).fit(data[0], Y)
        Y = data[1].copy()
        Y[:, 1] = np.nan
        with pytest.raises(ValueError, match="Column 1 of y is NaN"):
            SCBoostRegressor(**FIXED).fit(data[0], Y)

    def test_validation_targets_must_have_as_many_columns(self, data, labels):
        X, Y = data
        for y, y_val in ((Y, Y[:, 0]), (Y, Y[:, :2]), (Y[:, 0], Y)):
            with pytest.raises(ValueError, match="y_val"):
                SCBoostRegressor(**FIXED).fit(X, y, X_val=X, y_val=y_val)
        for y, y_val in ((labels, labels[:, 0]), (labels[:, 0], labels)):
            with pytest.raises(ValueError, match="y_val"):
                SCBoostClassifier(**FIXED).fit(X, y, X_val=X, y_val=y_val)

    def test_methods_of_one_target(self, data, labels):
        X, Y = data
        model = SCBoostRegressor(**FIXED).fit(X, Y)
        for call in (
            lambda: model.predict_interval(X),
            lambda: model.calibrate(X, Y),
            lambda: model.prediction_uncertainty(X),
            lambda: model.compress(X),
            lambda: scboost.export_c(model),
            lambda: scboost.redundancy_report(model, X),
        ):
            with pytest.raises(ValueError, match="supports one target, this model has 3"):
                call()
        classifier = SCBoostClassifier(**FIXED).fit(X, labels)
        with pytest.raises(ValueError, match="supports one target"):
            classifier.predict_set(X)


class TestTargetModel:
    """The model of one of several targets, as an estimator of its own."""

    @pytest.mark.parametrize("learner", [None, DecisionTreeRegressor(max_depth=2)])
    def test_predictions_are_those_of_the_target(self, data, labels, learner):
        X, Y = data
        model = SCBoostRegressor(**FIXED, estimator=learner).fit(X, with_gaps(Y))
        classifier = SCBoostClassifier(**FIXED, estimator=learner).fit(X, labels)
        for k in range(3):
            np.testing.assert_array_equal(model.target_model(k).predict(X), model.predict(X)[:, k])
            one = classifier.target_model(k)
            np.testing.assert_array_equal(one.predict_proba(X)[:, 1], classifier.predict_proba(X)[:, k])
            np.testing.assert_array_equal(one.predict(X), classifier.predict(X)[:, k])
            np.testing.assert_array_equal(one.classes_, [0, 1])
        assert model.predict(X).shape == Y.shape  # it is unchanged

    def test_files_pickles_and_shap_values(self, data, labels, tmp_path):
        X, Y = data
        for model in (SCBoostRegressor(**FIXED).fit(X, Y), SCBoostClassifier(**FIXED).fit(X, labels)):
            one = model.target_model(1)
            one.save_model(tmp_path / "one.ubj")
            for again in (scboost.load_model(tmp_path / "one.ubj"), pickle.loads(pickle.dumps(one))):  # noqa: S301 - ours
                assert type(again) is type(model)
                np.testing.assert_allclose(again.predict(X), one.predict(X), rtol=1e-6)
            np.testing.assert_array_equal(one.shap_values(X), model.shap_values(X)[:, 1])
            assert one.get_booster().num_boosted_rounds() == one.n_estimators_ == 20

    def test_what_needs_one_target_works(self, data, labels):
        X, Y = data
        one = SCBoostRegressor(**FIXED).fit(X[:200], Y[:200]).target_model(2)
        low, high = one.calibrate(X[200:], Y[200:, 2]).predict_interval(X, 0.8).T
        assert np.mean((low <= Y[:, 2]) & (Y[:, 2] <= high)) > 0.7
        assert one.compress(X, max_trees=3).model.n_estimators_ <= 3
        assert scboost.report(one, X, Y[:, 2]).analysis.scores[0].name == "R2"
        label = SCBoostClassifier(**FIXED).fit(X, labels).target_model(0)
        assert scboost.report(label, X, labels[:, 0]).analysis.scores[0].name == "log-loss"
        assert one.n_estimators_ == SCBoostRegressor(**FIXED).fit(X, Y[:, 0], init_model=one).n_estimators_ - 20

    def test_targets_are_given_by_number_or_name(self, data):
        X, Y = data
        model = SCBoostRegressor(**FIXED).fit(X, Y)
        for wrong in (3, -1, 1.0, "mass"):
            with pytest.raises(ValueError, match="target"):
                model.target_model(wrong)
        model.target_name_ = ["length", "mass", "age"]
        one = model.target_model("mass")
        assert one.target_name_ == "mass"
        np.testing.assert_array_equal(one.predict(X), model.predict(X)[:, 1])
        with pytest.raises(ValueError, match="this model has one"):
            one.target_model(0)
