"""What a user gets wrong, and the words that say what to do. Cases of the classifier alone are with its own tests."""

import numpy as np
import pytest
from scipy import sparse

from data_makers import FAST, real_target, three_classes, two_classes
from scboost._engine.xgboost.engine import XGBoostEngine
from scboost._estimators import SCBoostClassifier, SCBoostRegressor

X, y = real_target()
X2, y2 = two_classes(d=4)
X3, y3 = three_classes(d=4)
COUNTS = np.round(np.exp(y))
FOLDS = {"weighting": "nonnegative", "weighting_data": "out_of_fold"}


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
    "NaN in y": regressor(["y", "NaN"], given={"y": np.where(y > 1, np.nan, y)}),
    "inf in y": regressor(["y", "infinity"], given={"y": np.where(y > 1, np.inf, y)}),
    "NaN in y_val": regressor(["y_val", "NaN"], given={"X_val": X, "y_val": np.where(y > 1, np.nan, y)}),
    "no y": regressor(["y", "None"], given={"y": None}),
    "two targets": regressor(["y", "1d", "(300, 2)"], given={"y": np.column_stack([y, y])}),
    "y too short": regressor(["y has 299", "300 rows"], given={"y": y[:-1]}),
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
    "folds of few rows": regressor(["cv=5", "3 rows"], given={"X": X[:3], "y": y[:3]}, **FOLDS),
    "hold-out of few rows": regressor(
        ["validation_fraction=0.999", "300 rows", "X_val"], early_stopping=True, validation_fraction=0.999
    ),
    "infinite X": regressor(["X", "infinity"], given={"X": np.where(X > 2, np.inf, X)}),
    "numbers as texts": regressor(["X", "dtype <U3", "dtype=object"], given={"X": np.full((300, 2), "1.5")}),
    "complex numbers": regressor(["Complex data not supported"], given={"X": X + 1j}),
    "sparse infinity": regressor(["X", "infinity"], given={"X": sparse.csr_array(np.where(X > 2, np.inf, X))}),
    "monotone classes": many(["monotone_constraints", "two classes", "3"], monotone_constraints=[1, 0, 0, 0]),
    "rare class": many(
        ["cv=5", "2 rows of the rarest class"], given={"y": np.repeat([0, 1, 2], [2, 98, 200])}, **FOLDS
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
        "categorical columns; pass a table": table.to_numpy(),
        "feature names": table.rename(columns={"a": "z"}),
        "order": table[list("bacde")],
        "Column 'b' has type datetime": table.assign(b=pd.Timestamp("2020-01-01")),
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
        with pytest.raises(ValueError, match=f"{name} refers to columns by name"):
            SCBoostRegressor(**FAST, **{name: value}).fit(X, y)
