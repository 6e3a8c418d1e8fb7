"""The study of features with many categories."""

import csv

import numpy as np
import pandas as pd

from scboost_lab import category_study
from scboost_lab.category_study import COLUMNS, CONFIRMATION, DEVELOPMENT, STUDIED, losses_table, lower
from scboost_lab.results import KEY, Results


def categories(n=400, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 12, size=n)
    names = np.array([f"c{(7 * i) % 12:02}" for i in range(12)])
    X = pd.DataFrame({"many": pd.Categorical(names[codes]), "few": pd.Categorical(np.where(codes % 2, "x", "y"))})
    return X, (codes + rng.normal(size=n) > 5.5).astype(np.int64)


def test_halves_are_disjoint():
    assert not set(DEVELOPMENT) & set(CONFIRMATION)
    assert len({table.item + table.target for table in category_study.TABLES.values()}) == len(category_study.TABLES)


def test_ordered_categories_have_increasing_means_and_keep_their_names():
    X, y = categories()
    ordered, test = category_study.with_ordered_categories(X, X.iloc[:10], y)
    assert (ordered["many"].astype(str) == X["many"].astype(str)).all()
    means = pd.Series(y).groupby(ordered["many"].cat.codes.to_numpy()).mean()
    assert np.corrcoef(means.index, means)[0, 1] > 0.9
    assert ordered["many"].dtype == test["many"].dtype
    assert ordered["few"].dtype == X["few"].dtype  # too few categories


def test_target_means_of_the_training_samples_are_those_of_other_folds():
    X, y = categories()
    X["unique"] = pd.Categorical([f"u{i}" for i in range(len(X))])  # tells nothing about other samples
    train, _ = category_study.with_target_means(X, X, y, classifies=True)
    assert abs(np.corrcoef(train["unique"], y)[0, 1]) < 0.3
    assert np.corrcoef(train["many"], y)[0, 1] > 0.5


def test_the_lowest_loss_is_bold_and_lower_losses_are_counted(tmp_path):
    first, second = "flights, late", "restaurants, score"  # classification and regression
    rows = [
        {"dataset": name, "method": method, "fold": 0, measure: loss + 0.1 * (method == "CatBoost") * sign}
        for name, measure, loss, sign in ((first, "log_loss", 0.5, 1), (second, "RMSE", 1.0, -1))
        for method in STUDIED
    ]
    with (tmp_path / "categories.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, [*KEY, *COLUMNS, "status"], restval="")
        writer.writeheader()
        writer.writerows({"seed": 42, "setting": "", "status": "ok", **row} for row in rows)
    results = Results(tmp_path / "categories.csv")
    text = losses_table(results)
    assert f"| {second} | development | 1.0000 | 1.0000 | 1.0000 | 1.0000 | **0.9000** | 1.0000 |" in text
    assert lower(results, "CatBoost", DEVELOPMENT) == "1/2, +5.0 %"  # the mean of +20 % and -10 %
    assert lower(results, "CatBoost", CONFIRMATION) == "0/0, +0.0 %"
