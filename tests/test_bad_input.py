"""What a user gets wrong, and the words that say what to do. Cases of the classifier alone are with its own tests."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import GroupKFold

from data_makers import FAST, real_target, three_classes, two_classes
from scboost import load_model
from scboost._engine.xgboost.engine import XGBoostEngine
from scboost._estimators import SCBoostClassifier, SCBoostRegressor
from scboost.losses import Loss

X, y = real_target()
X2, y2 = two_classes(d=4)
X3, y3 = three_classes(d=4)
COUNTS = np.round(np.exp(y))
DAYS = np.datetime64("2026-01-01") + np.arange(300)
FOLDS = {"weighting": "nonnegative", "weighting_data": "out_of_fold"}


HALF = np.arange(150), np.arange(150, 300)


class OwnLoss(Loss):
    """Squared error with a mistake."""

    def __init__(self, mistake):
        self.mistake = mistake

    def initial_score(self, y, sample_weight):
        return np.asarray(y) if self.mistake == "start" else np.array([np.mean(y)])

    def gradient_hessian(self, y, raw):
        gradient, hessian = raw - y, np.ones_like(raw)
        return {
            "tall": (gradient.T, hessian),
            "no Hessian": gradient,
            "residual": (-gradient, hessian),
            "concave": (gradient, -hessian),
        }.get(self.mistake, (gradient, hessian))

    def pointwise_loss(self, y, raw):
        losses = (y - raw[0]) ** 2 / 2
        return {"infinite": losses * np.inf, "mean": losses.mean()}.get(self.mistake, losses)


def regressor(words, *, given=None, **params):
    return SCBoostRegressor(**{**FAST, **params}), {"X": X, "y": y, **(given or {})}, words


def classifier(words, *, given=None, **params):
    return SCBoostClassifier(**{**FAST, **params}), {"X": X2, "y": y2, **(given or {})}, words


def many(words, *, given=None, **params):
    return SCBoostClassifier(**{**FAST, **params}), {"X": X3, "y": y3, **(given or {})}, words


CASES = {
    "unknown loss": regressor(["loss", "'l2'", "squared_error", "poisson"], loss="l2"),
    "quantile 0": regressor(["quantile", "(0.0, 1.0)", "0"], loss="quantile", quantile=0.0),
    "quantile 1.5": regressor(["quantile", "(0.0, 1.0)", "1.5"], loss="quantile", quantile=1.5),
    "no quantile": regressor(["quantile=None", "loss='quantile'"], loss="quantile"),
    "quantile of another loss": regressor(["quantile=0.5", "loss='squared_error'"], quantile=0.5),
    "delta 0": regressor(["huber_delta", "(0.0, inf)", "0.0"], loss="huber", huber_delta=0.0),
    "delta of another loss": regressor(["huber_delta=1.0", "loss='huber'", "poisson"], huber_delta=1.0, loss="poisson"),
    "negative counts": regressor(["loss='poisson'", "y >= 0", f"{y.min():g}"], loss="poisson"),
    "no counts": regressor(["loss='poisson'", "positive sum of y"], given={"y": np.zeros(300)}, loss="poisson"),
    "no counts where weights are": regressor(
        ["loss='poisson'", "positive weight"],
        given={"y": COUNTS, "sample_weight": (COUNTS == 0).astype(float)},
        loss="poisson",
    ),
    "negative validation counts": regressor(
        ["y_val >= 0", "-1"], given={"y": COUNTS, "X_val": X, "y_val": COUNTS - 1}, loss="poisson"
    ),
    "means of counts": regressor(["leaf_rule='mean'", "newton"], given={"y": COUNTS}, loss="poisson", leaf_rule="mean"),
    "texts as numbers": regressor(["y", "numbers", "regression"], given={"y": np.where(y > 0, "high", "low")}),
    "numbers too large": regressor(["y spans", "rescale"], given={"y": 1e20 * y}),
    "numbers too small": regressor(["y spans", "rescale"], given={"y": 1e-20 * y}),
    "masked y": regressor(["y is a masked array"], given={"y": np.ma.masked_array(y, y > 1)}),
    "two masked targets": regressor(["y is a masked array"], given={"y": np.ma.masked_array([y, y], [y > 1, y > 1]).T}),
    "masked weights": regressor(
        ["sample_weight is a masked array"], given={"sample_weight": np.ma.masked_array(np.arange(300), y > 1)}
    ),
    "masked y_val": regressor(["y_val is a masked array"], given={"X_val": X, "y_val": np.ma.masked_array(y, y > 1)}),
    "masked labels": classifier(["y is a masked array"], given={"y": np.ma.masked_array(y2, y2 > 0)}),
    "masked groups": regressor(
        ["groups is a masked array"], given={"groups": np.ma.masked_array(COUNTS, y > 1)}, **FOLDS, cv=GroupKFold(3)
    ),
    "dates as y": regressor(["y", "datetime64[D]", "days since"], given={"y": DAYS}),
    "durations as y": regressor(["y", "timedelta64", "numbers"], given={"y": DAYS - DAYS[0]}),
    "dates as y_val": regressor(["y_val", "datetime64[D]"], given={"X_val": X, "y_val": DAYS}),
    "labels with NaT": classifier(["y contains NaT"], given={"y": np.where(y > 0, DAYS, np.datetime64("NaT", "D"))}),
    "dates as weights": regressor(["sample_weight", "datetime64[D]"], given={"sample_weight": DAYS}),
    "NaN in y": regressor(["y", "NaN"], given={"y": np.where(y > 1, np.nan, y)}),
    "inf in y": regressor(["y", "infinity"], given={"y": np.where(y > 1, np.inf, y)}),
    "NaN in y_val": regressor(["y_val", "NaN"], given={"X_val": X, "y_val": np.where(y > 1, np.nan, y)}),
    "no y": regressor(["y", "None"], given={"y": None}),
    "two targets, another loss": regressor(
        ["loss='huber'", "one target", "y has 2"], given={"y": np.column_stack([y, y])}, loss="huber"
    ),
    "y too short": regressor(["y has 299", "300 samples"], given={"y": y[:-1]}),
    "X_val alone": regressor(["X_val", "y_val", "together"], given={"X_val": X}),
    "y_val alone": regressor(["X_val", "y_val", "together"], given={"y_val": y}),
    "validation weights alone": regressor(["sample_weight_val", "X_val"], given={"sample_weight_val": np.ones(300)}),
    "negative weights": regressor(["sample_weight", "-1", ">= 0"], given={"sample_weight": np.arange(300) - 1}),
    "negative validation weights": regressor(
        ["sample_weight_val", "-1", ">= 0"], given={"X_val": X, "y_val": y, "sample_weight_val": np.arange(300) - 1}
    ),
    "columns of X_val": regressor(["X has 3 features", "expecting 4"], given={"X_val": X[:, :3], "y_val": y}),
    "weights of quantiles": regressor(
        ["weighting='nonnegative'", "Hessian"], loss="absolute_error", weighting="nonnegative"
    ),
    "folds of few samples": regressor(["cv=5", "3 distinct samples"], given={"X": X[:3], "y": y[:3]}, **FOLDS),
    "hold-out of few rows": regressor(
        ["validation_fraction=0.999", "300 samples", "X_val"], early_stopping=True, validation_fraction=0.999
    ),
    "infinite X": regressor(["X", "infinity"], given={"X": np.where(X > 2, np.inf, X)}),
    "numbers as texts": regressor(["X", "dtype <U3", "dtype=object"], given={"X": np.full((300, 2), "1.5")}),
    "complex numbers": regressor(["Complex data not supported"], given={"X": X + 1j}),
    "sparse infinity": regressor(["X", "infinity"], given={"X": sparse.csr_array(np.where(X > 2, np.inf, X))}),
    "monotone classes": many(["monotone_constraints", "two classes", "3"], monotone_constraints=[1, 0, 0, 0]),
    "rare class": many(
        ["cv=5", "2 distinct samples of the rarest class"], given={"y": np.repeat([0, 1, 2], [2, 98, 200])}, **FOLDS
    ),
    "validation without a class": many(
        ["weighting", "every class", "2 of the 3"],
        given={"X_val": X3[y3 < 2], "y_val": y3[y3 < 2]},
        weighting="nonnegative",
    ),
    "unknown validation label": many(["y_val", "[7]", "[0, 1, 2]"], given={"X_val": X3[:2], "y_val": [7, 1]}),
    "validation labels of another kind": classifier(
        ["y_val", "'yes'"], given={"X_val": X2[:2], "y_val": ["yes", "no"]}
    ),
    "unknown class weight": classifier(["class_weight", "[1]"], class_weight={0: 1.0, 5: 2.0}),
    "infinite class weight": classifier(["class_weight", "positive", "inf"], class_weight={0: np.inf, 1: 1.0}),
    "class weights by text": classifier(
        ["class_weight", "[0, 1]", "['0', '1']", "same type"], class_weight={"0": 1, "1": 2}
    ),
    "class weights as text": classifier(["class_weight", "positive number", "'1'"], class_weight={0: "1", 1: "2"}),
    "cv without splits": regressor(["cv=[]", "no splits"], **FOLDS, cv=[]),
    "cv out of range": regressor(["split 1 of cv, test", "0 to 299", "300"], **FOLDS, cv=[HALF, ([0, 1], [2, 300])]),
    "cv of negative indices": regressor(["split 0 of cv, train", "0 to 299", "-1"], **FOLDS, cv=[([-1, 1], [2, 3])]),
    "cv of short masks": regressor(["split 0 of cv, train", "300 samples", "(3,)"], **FOLDS, cv=[([True] * 3, [2])]),
    "cv of floats": regressor(["split 0 of cv, test", "float64"], **FOLDS, cv=[([0, 1], [2.0, 3.0])]),
    "cv of three": regressor(["Split 0 of cv", "(train, test)"], **FOLDS, cv=[([0], [1], [2])]),
    "cv without training samples": regressor(["split 0 of cv, train", "no sample"], **FOLDS, cv=[([], [1])]),
    "cv without test samples": regressor(["split 0 of cv, test", "no sample"], **FOLDS, cv=[([0, 1], [])]),
    "cv that names a sample twice": regressor(["split 0 of cv, train", "twice"], **FOLDS, cv=[([0, 0], [1])]),
    "cv that overlaps": regressor(["Split 0 of cv", "both"], **FOLDS, cv=[([0, 1], [1, 2])]),
    "cv of another name": regressor(["cv", "'auto'", "'loo'"], **FOLDS, cv="loo"),
    "cv out of range, weights of zero": regressor(
        ["split 0 of cv, test", "0 to 299", "300"],
        given={"sample_weight": (np.arange(300) > 9).astype(float)},
        **FOLDS,
        cv=[(np.arange(150), np.arange(150, 301))],
    ),
    "gamma spans": regressor(["y spans", "rescale"], given={"y": 1e20 * np.exp(y)}, loss="gamma"),
    "tweedie spans": regressor(["y spans", "rescale"], given={"y": 1e20 * COUNTS}, loss="tweedie"),
    "learning rates": regressor(["learning_rate", "[0.1, 0.2]"], learning_rate=[0.1, 0.2]),
    "learning rate schedule": regressor(["learning_rate", "function"], learning_rate=lambda t: 0.1 / (1 + t)),
    "callback without a call": regressor(["callbacks", "schedules are not supported"], callbacks=[object()]),
    "loss of shape (n, 1)": regressor(["gradient_hessian (gradient)", "(1, 64)", "(64, 1)"], loss=OwnLoss("tall")),
    "loss without Hessian": regressor(["gradient_hessian must return a pair"], loss=OwnLoss("no Hessian")),
    "loss of the wrong sign": regressor(["opposite sign", "not the residual"], loss=OwnLoss("residual")),
    "loss with a negative Hessian": regressor(["Hessian is -1", "negative"], loss=OwnLoss("concave")),
    "loss that is not finite": regressor(["pointwise_loss is not finite"], loss=OwnLoss("infinite")),
    "mean loss": regressor(["pointwise_loss", "(64,)", "()"], loss=OwnLoss("mean")),
    "initial score of every sample": regressor(["initial_score", "(1,)", "(300,)"], loss=OwnLoss("start")),
    "labels of two kinds": classifier([], given={"y": np.array(["a", 1] * 150, dtype=object)}),
}


@pytest.mark.parametrize("case", CASES)
def test_invalid_input_raises_an_error_that_names_it(case, monkeypatch):
    model, given, words = CASES[case]
    grown = []
    monkeypatch.setattr(XGBoostEngine, "grow", lambda *_: grown.append(1))
    with pytest.raises((ValueError, TypeError)) as error:
        model.fit(**given)
    assert not grown, "the error must come before any tree"
    message = str(error.value)
    assert all(word in message for word in words), message


def test_lone_surrogates_in_names_and_categories_are_rejected():
    pd = pytest.importorskip("pandas")
    named = pd.DataFrame(X, columns=pd.Index(["a\udcff", *"bcd"], dtype=object))
    with pytest.raises(ValueError, match=r"name of column 'a\\udcff' .* lone surrogate.*; rename it"):
        SCBoostRegressor(**FAST).fit(named, y)
    categories = pd.DataFrame({"a": pd.Series(["\udcff", "b"] * 150, dtype=object)})
    with pytest.raises(ValueError, match=r"category '\\udcff' of column 'a' .* lone surrogate"):
        SCBoostRegressor(**FAST).fit(categories, y)


def test_callbacks_of_other_libraries_are_rejected():
    lightgbm = pytest.importorskip("lightgbm")
    model = SCBoostRegressor(**FAST, callbacks=[lightgbm.reset_parameter(learning_rate=[0.1] * 8)])
    with pytest.raises(TypeError, match=r"callback of another library.*schedules are not supported"):
        model.fit(X, y)


def test_masks_of_cv_are_the_indices_they_select():
    first = np.arange(300) < 150
    indices = [(np.flatnonzero(first), np.flatnonzero(~first)), (np.flatnonzero(~first), np.flatnonzero(first))]
    masks = [(first, ~first), (~first, first)]
    weight = np.r_[np.zeros(7), np.ones(293)]
    for given in (None, weight):
        a, b = (SCBoostRegressor(**FAST, **FOLDS, cv=cv).fit(X, y, given).predict(X) for cv in (indices, masks))
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("labels", [("0", "1"), (False, True), (2.0, 5.0), ("yes", "zebra")], ids=str)
def test_class_weights_are_those_of_the_labels(labels):
    given = np.array(labels)[y2]
    by_label = SCBoostClassifier(**FAST, class_weight={labels[0]: 3.0}).fit(X2, given)
    by_sample = SCBoostClassifier(**FAST).fit(X2, given, np.where(y2 == 0, 3.0, 1.0))
    np.testing.assert_array_equal(by_label.predict_proba(X2), by_sample.predict_proba(X2))


@pytest.mark.parametrize("form", ["ubj", "json"])
def test_names_categories_and_labels_that_differ_by_nul_stay_apart(form, tmp_path):
    pd = pytest.importorskip("pandas")
    texts = np.where(X[:, 1] > 0, 0, 1)
    table = pd.DataFrame({"a": pd.Series(texts).map({0: "x", 1: "x\0"}), "a\0": X[:, 0]})
    labels = np.array(["l", "l\0"], dtype=object)[texts]
    model = SCBoostClassifier(**FAST).fit(table, labels)
    assert model.score(table, labels) == 1
    model.save_model(tmp_path / f"model.{form}")
    loaded = load_model(tmp_path / f"model.{form}")
    np.testing.assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))
    assert loaded.predict(table).tolist() == labels.tolist()
    assert loaded.feature_names_in_.tolist() == ["a", "a\0"]


@pytest.mark.parametrize("cls", [SCBoostClassifier, SCBoostRegressor])
def test_missing_labels_of_pandas(cls):
    pd = pytest.importorskip("pandas")
    labels = pd.Series(["a", "b"] * 150, dtype="string")
    labels[7] = pd.NA
    with pytest.raises(ValueError, match="y contains NaN"):
        cls(**FAST).fit(X, labels)


def test_predict_rejects_other_features_than_fit():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcd")).assign(e=np.where(X[:, 3] > 0, "up", "down"))
    model = SCBoostRegressor(**FAST).fit(table, y)
    drifted = {
        "Column 'e' is numeric but was categorical": table.assign(e=1.0),
        "Column 'a' is categorical but was numeric": table.assign(a="text"),
        "categorical columns; pass a table": np.zeros((300, 5)),
        "feature names": table.rename(columns={"a": "z"}),
        "order": table[list("bacde")],
        "Column 'b' is a date but was numeric in fit": table.assign(b=pd.Timestamp("2020-01-01")),
    }
    for message, rows in drifted.items():
        with pytest.raises((ValueError, TypeError), match=message):
            model.predict(rows)
        with pytest.raises((ValueError, TypeError), match=message):
            model.fit(table, y, X_val=rows, y_val=y)


def test_sparse_input_needs_an_estimator_that_supports_it():
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = SCBoostRegressor(**FAST, estimator=HistGradientBoostingRegressor(), leaf_rule="mean", colsample_bytree=1.0)
    with pytest.raises(TypeError, match=r"[Ss]parse data"):
        model.fit(sparse.csr_array(X), y)


def test_constraints_by_name_need_feature_names():
    for name in ("monotone_constraints", "interaction_constraints"):
        value = {"a": 1} if name.startswith("mono") else [["a", "b"]]
        with pytest.raises(ValueError, match=f"{name} refers to features by name"):
            SCBoostRegressor(**FAST, **{name: value}).fit(X, y)
