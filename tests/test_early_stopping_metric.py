"""Early stopping by a scorer of scikit-learn in place of the loss."""

import numpy as np
import pytest
from sklearn.metrics import f1_score, make_scorer, mean_absolute_error, roc_auc_score

from data_makers import real_target, three_classes, two_classes
from scboost import Checkpoint, SCBoostClassifier, SCBoostRegressor, tree_matrix

GIVEN = {"n_estimators": 30, "learning_rate": 0.3, "early_stopping": True, "random_state": 0, "n_jobs": 1}


def halves(X, y):
    return (X[::2], y[::2]), {"X_val": X[1::2], "y_val": y[1::2]}


def test_the_log_holds_the_score_of_every_round_and_the_best_round_is_kept():
    X, y = two_classes(n=400)
    labels = np.where(y == 1, "yes", "no")
    train, validation = halves(X, labels)
    model = SCBoostClassifier(early_stopping_metric="roc_auc", n_iter_no_change=5, **GIVEN).fit(*train, **validation)
    scores = model.training_log_["validation_roc_auc"]
    staged = list(model.staged_predict_proba(validation["X_val"]))
    expected = [roc_auc_score(validation["y_val"], p[:, 1]) for p in staged]
    np.testing.assert_allclose(scores[: len(expected)], expected, atol=1e-6)
    assert model.n_estimators_ == np.argmax(scores) + 1
    assert "validation_loss" not in model.training_log_
    assert model.stop_reason_ == f"validation roc_auc did not improve in {len(scores) - model.n_estimators_} rounds"


def test_training_and_validation_loss_are_those_after_the_same_round():
    X, y = two_classes(n=200)
    train, _ = halves(X, y)
    model = SCBoostClassifier(**GIVEN).fit(*train, X_val=train[0], y_val=train[1])
    log = model.training_log_
    np.testing.assert_allclose(log["loss"], log["validation_loss"], rtol=1e-5)
    assert model.stop_reason_ in {"", f"validation loss did not improve in {30 - model.n_estimators_} rounds"}


def test_callbacks_and_checkpoints_see_the_loss_after_the_round(tmp_path):
    X, y = two_classes(n=200)
    seen = []
    checkpoint = Checkpoint(tmp_path / "fit.checkpoint", every=2)
    given = {"n_estimators": 4, "random_state": 0, "n_jobs": 1}
    record = SCBoostClassifier(**given, callbacks=[checkpoint, lambda model: seen.append(model.training_log_["loss"])])
    whole = SCBoostClassifier(**given).fit(X, y).training_log_["loss"]
    record.fit(X, y)
    for t, losses in enumerate(seen, start=1):
        np.testing.assert_allclose(losses, whole[:t], rtol=1e-6)
    np.testing.assert_array_equal(record.training_log_["loss"], whole)
    np.testing.assert_array_equal(checkpoint.load().fit(X, y).training_log_["loss"], whole)


@pytest.mark.parametrize(
    ("scoring", "name"),
    [
        ("neg_log_loss", "validation_neg_log_loss"),
        (make_scorer(mean_absolute_error, greater_is_better=False), "validation_neg_mean_absolute_error"),
        (lambda model, X, y: model.score(X, y), "validation_metric"),
    ],
    ids=["name", "scorer", "function"],
)
def test_logs_name_the_metric(scoring, name):
    X, y = two_classes(n=100)
    model = SCBoostClassifier(**{**GIVEN, "n_estimators": 2}, early_stopping_metric=scoring).fit(X, y, X_val=X, y_val=y)
    assert name in model.training_log_


def test_progress_shows_the_score(capsys):
    X, y = two_classes(n=100)
    model = SCBoostClassifier(**{**GIVEN, "n_estimators": 2}, early_stopping_metric="roc_auc", verbose=1)
    model.fit(X, y, X_val=X, y_val=y)
    score = model.training_log_["validation_roc_auc"][-1]
    loss = model.training_log_["loss"][-1]
    assert f"loss {loss:.4f}, validation roc_auc {score:.4f}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("scoring", "name"), [("f1_macro", "f1_macro"), (make_scorer(f1_score, average="macro"), "f1_score")]
)
def test_names_and_scorers_alike_for_many_classes(scoring, name):
    X, y = three_classes(n=300)
    train, validation = halves(X, y)
    model = SCBoostClassifier(early_stopping_metric=scoring, **GIVEN).fit(*train, **validation)
    best = f1_score(validation["y_val"], model.predict(validation["X_val"]), average="macro")
    assert model.training_log_[f"validation_{name}"].max() == pytest.approx(best)


def test_weighted_regression_resumes_bit_identically():
    X, y = real_target(n=300)
    y = y + 1e4  # a score may depend on more than differences
    (X_train, y_train), validation = halves(X, y)
    weight = np.arange(1.0, 151.0)
    validation["sample_weight_val"] = weight
    given = {**GIVEN, "early_stopping_metric": "neg_mean_absolute_error", "n_iter_no_change": 30}
    model = SCBoostRegressor(**given).fit(X_train, y_train, **validation)
    last = mean_absolute_error(validation["y_val"], model.predict(validation["X_val"]), sample_weight=weight)
    name = "validation_neg_mean_absolute_error"
    assert -model.training_log_[name].max() == pytest.approx(last, rel=1e-6)
    parts = SCBoostRegressor(warm_start=True, **{**given, "n_estimators": 7}).fit(X_train, y_train, **validation)
    parts.set_params(n_estimators=30).fit(X_train, y_train, **validation)
    np.testing.assert_array_equal(parts.training_log_[name], model.training_log_[name])
    np.testing.assert_array_equal(parts.training_log_["loss"], model.training_log_["loss"])


@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_cross_validation_selects_rounds_by_the_metric(shift):
    X, y = real_target(n=300)
    y = y + shift
    folds = [(np.arange(300)[np.arange(300) % 3 != k], np.arange(300)[np.arange(300) % 3 == k]) for k in (0, 1)]
    weight = np.linspace(1, 3, 300)
    rate = 0.1
    given = {"cv": folds, "random_state": 0, "n_jobs": 1, "exploration": 0.0, "learning_rate": rate}
    scores = []

    def scorer(model, F, target, sample_weight):  # custom scorers receive the validation set
        scores.append((len(target), sample_weight.sum(), -mean_absolute_error(target, model.predict(F))))
        return scores[-1][2]

    model = SCBoostRegressor(early_stopping_metric=scorer, **given).fit(X, y, sample_weight=weight)
    pooled = model.selection_log_["validation_scorer"]
    first, second = np.array(scores[::2]), np.array(scores[1::2])
    np.testing.assert_allclose(first[0, :2], [100, weight[::3].sum()])
    masses = first[0, 1], second[0, 1]
    np.testing.assert_allclose(pooled, np.average([first[:, 2], second[:, 2]], axis=0, weights=masses))
    assert scores[0][2] > -5  # of the order of the target's standard deviation, for any mean
    best = SCBoostRegressor(n_estimators=model.n_estimators_, **given).fit(X, y, weight)
    np.testing.assert_allclose(
        tree_matrix(model, X).H, model.weights_[0] / rate * tree_matrix(best, X).H, rtol=1e-5, atol=1e-6
    )


def test_the_metric_selects_other_rounds_than_the_loss():
    X, y = two_classes(n=400, flip=0.3)
    by_loss = SCBoostClassifier(random_state=0, n_jobs=1).fit(X, y)
    by_score = SCBoostClassifier(early_stopping_metric="roc_auc", random_state=0, n_jobs=1).fit(X, y)
    assert (by_score.selection_log_["validation_roc_auc"] > 0.5).all()
    assert by_score.n_estimators_ != by_loss.n_estimators_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_metrics_undefined_on_the_validation_set_are_rejected():
    X, y = two_classes(n=100)
    with pytest.raises(ValueError, match="early_stopping_metric='roc_auc' is not defined on the 20 held-out samples"):
        SCBoostClassifier(early_stopping_metric="roc_auc", **GIVEN).fit(X, y, X_val=X[:20], y_val=np.ones(20))


def test_metrics_without_validation_data_and_unknown_metrics_are_rejected():
    X, y = two_classes(n=100)
    with pytest.raises(ValueError, match="needs a validation set for early stopping or for selecting"):
        SCBoostClassifier(early_stopping_metric="roc_auc", n_estimators=10).fit(X, y)
    with pytest.raises(ValueError, match="nonsense"):
        SCBoostClassifier(early_stopping_metric="nonsense", **GIVEN).fit(X, y)
