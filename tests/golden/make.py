"""Write model files that every later version must read: once for every schema and every release, then never changed.

Run as ``python tests/golden/make.py`` from the root of the repository for the current schema;
`tools/release.py prepare` writes those of a release.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from scboost import SCBoostClassifier, SCBoostRegressor
from scboost._model.file import SCHEMA

FOLDER = Path(__file__).parent
SMALL = {"n_estimators": 6, "max_depth": 3, "max_leaves": None, "learning_rate": 0.3, "n_jobs": 1, "random_state": 0}


def rows(n=200):
    """Numbers with gaps, texts and whole numbers as categories, and a target."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)).round(3)
    X[rng.random(X.shape) < 0.1] = np.nan
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    table["colour"] = rng.choice(["red", "grün", "blue", 'a "b"'], size=n)
    table["code"] = rng.choice([100, 20, 3], size=n)
    filled = table.fillna(0)
    return table, filled["a"] + filled["b"] * filled["c"] + (table["colour"] == "red") - (table["code"] == 20)


def categorical(table):
    """The two last columns as categories."""
    return table.astype({"colour": "category", "code": "category"})


def main(prefix=f"schema{SCHEMA}"):
    """Fit, save, and write what the models predict."""
    table, y = rows()
    numbers = table[["a", "b", "c", "d"]].to_numpy()
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-0.5, 0.5])]
    stopping = {**SMALL, "n_estimators": 30, "early_stopping": True, "n_iter_no_change": 3}
    models = {
        "binary.ubj": SCBoostClassifier(**SMALL).fit(numbers, y > 0),
        "classes.json": SCBoostClassifier(**SMALL).fit(numbers, labels),
        "categories.json": SCBoostClassifier(**SMALL).fit(categorical(table), labels),
        "stopped.ubj": SCBoostClassifier(**stopping).fit(categorical(table), y > 0),
        "regression.ubj": SCBoostRegressor(**SMALL, weighting="nonnegative").fit(numbers, y + 1e6),
        "quantile.json": SCBoostRegressor(**SMALL, loss="quantile", quantile=0.2).fit(numbers, y),
        "quantiles.json": SCBoostRegressor(**SMALL, loss="quantile", quantile=[0.1, 0.5, 0.9]).fit(numbers, y + 20),
        "counts.ubj": SCBoostRegressor(**SMALL, loss="poisson").fit(numbers, np.abs(y).round()),
    }
    expected = {}
    for name, model in models.items():
        model.save_model(FOLDER / f"{prefix}-{name}")
        X = categorical(table) if hasattr(model, "feature_names_in_") else numbers
        predictions = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
        staged = list(model.staged_predict(X))[1]
        expected[name] = {
            "predictions": predictions.tolist(),
            "labels": model.predict(X).tolist(),
            "after two rounds": staged.tolist(),
            "weights": model.weights_.tolist(),
        }
    (FOLDER / f"{prefix}.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
