"""Small data sets and strategies for legal parameters, shared by the suites."""

import numpy as np
from hypothesis import strategies as st

from scboost._engine.native import is_available
from scboost._engine.xgboost.engine import XGBoostEngine

ENGINES = {"xgboost": XGBoostEngine}
"""Engines that are installed, by the values of the parameter ``engine``."""
if is_available():
    from scboost._engine.native.engine import NativeEngine

    ENGINES["native"] = NativeEngine
STEPS_OF_GROWTH = ("grow", "finish_round")
"""Methods of an engine that grow trees: of a round, or of what follows the gradient in one call."""
FAST = {"n_estimators": 8, "learning_rate": 0.3, "n_jobs": 1, "random_state": 0}
"""Parameters of a fit of few rounds."""
QUICK = {"learning_rate": 0.3, "n_iter_no_change": 8, "cv": 3, "n_jobs": 1, "random_state": 0}
"""Parameters of a fit whose number of rounds is selected by cross-validation."""


def two_classes(n=300, d=5, seed=0, *, flip=0.1):
    """Continuous columns, a label that depends on two of them and on their product, some labels flipped."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] + X[:, 1] * X[:, 0] > 0.2).astype(int)
    return X, np.where(rng.random(n) < flip, 1 - y, y)


def three_classes(n=300, d=5, seed=0):
    """Continuous columns and a label in {0, 1, 2} that depends on two of them, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.digitize(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=n), [0.0, 0.9])


def real_target(n=300, d=4, seed=0):
    """Continuous columns and a smooth target with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.normal(size=n)


def ranking_data(n_queries=60, size=10, seed=0):
    """Features, relevances from 0 to 2, and queries."""
    rng = np.random.default_rng(seed)
    n = n_queries * size
    X = rng.normal(size=(n, 4))
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.normal(size=n), [0.5, 1.5])
    return X, y, np.repeat(np.arange(n_queries), size)


def survival_data(n=800, seed=0):
    """Features, and times with events, of which some are censored."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    time = rng.exponential(np.exp(-X[:, 0] + 0.5 * X[:, 1] ** 2)) + 1e-3
    censoring = rng.exponential(2.0, n) + 1e-3
    return X, np.stack([np.minimum(time, censoring), time <= censoring], axis=1)


def rounded(n=1500, n_classes=2, seed=0):
    """Samples with few distinct values, so that bins do not depend on partitions or batches; some are missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)).round(1).astype(np.float32)
    X[rng.random(X.shape) < 0.05] = np.nan
    score = np.nan_to_num(X[:, 0] - X[:, 1] * X[:, 2] + X[:, 3]) + rng.normal(size=n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def mostly_noise(n=800, n_noise=40, n_classes=2):
    """A target that follows from the first three columns; the others have nothing to say. Few distinct values."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3 + n_noise)).round(1)
    score = X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    return X, score if n_classes == 0 else np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def additive(n=800):
    """Labels that follow, with much noise, from a sum of one column's part each. Few distinct values."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6)).round(1)
    score = np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) - X[:, 2] + 0.5 * X[:, 3]
    return X, (score + 1.5 * rng.normal(size=n) > 0.8).astype(int)


def product_of_three(n=800):
    """Labels that no sum of fewer than three columns together tells anything of."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)).round(1)
    return X, (X[:, 0] * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n) > 0).astype(int)


def levels(n_levels, n=1200, seed=0):
    """Two columns, one of categories, and a target that they decide: every third category is one of a group."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_levels, size=n)
    X = pd.DataFrame({"level": pd.Categorical([f"level {c:03d}" for c in codes]), "x": rng.normal(size=n)})
    return X, codes % 3 == 0, rng


def grouped(n=1200):
    """Return samples whose many categories are of two kinds, with little noise, so that subset splits are best."""
    X, member, rng = levels(60, n)
    X["x"] += 0.1 * np.sign(X["x"])  # no sample is so near the jump that the place of a cut decides
    return X, 3.0 * member * (X["x"] > 0) + 0.1 * rng.normal(size=n)


def coloured():
    """Table with a categorical column, and a binary target that depends on it."""
    import pandas as pd

    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=400), "c": pd.Categorical(rng.choice(list("abcdefg"), 400))})
    return table, (table["x"] > 0) ^ table["c"].isin(["a", "c", "f"])


@st.composite
def vectors(draw, *, max_rows=40, max_vectors=12):
    """Prediction vectors as rows, of any rank: columns of mixed size, with copies, zeros and linear combinations."""
    n = draw(st.integers(1, max_rows))
    t = draw(st.integers(1, max_vectors))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    H = np.zeros((t, n))
    for i in range(t):
        kind = draw(st.sampled_from(["new", "new", "new", "copy", "zero", "combination"]))
        if kind == "new" or (i == 0 and kind != "zero"):
            H[i] = rng.normal(size=n) * draw(st.sampled_from([0.1, 1.0, 10.0]))
        elif kind == "copy":
            H[i] = H[rng.integers(i)]
        elif kind == "combination":
            H[i] = rng.normal(size=i) @ H[:i]
    return H


energy_thresholds = st.one_of(st.sampled_from([0.5, 0.9, 0.99, 0.999, 1.0]), st.floats(0.05, 1.0))


@st.composite
def legal_parameters(draw):
    """Keyword arguments that SCBoostClassifier accepts, for a fit of a second at most."""
    n_estimators = draw(st.integers(1, 6))
    max_leaves = draw(st.sampled_from([None, 2, 7]))
    weighting = draw(st.sampled_from([None, None, "simplex", "nonnegative"]))
    rows = draw(st.sampled_from(["holdout", "out_of_fold", "fold_average"]))
    rows = rows if weighting == "nonnegative" else "holdout"
    return {
        "n_estimators": n_estimators,
        "learning_rate": draw(st.sampled_from(["auto", 0.05, 0.5, 1.0])),
        "max_depth": draw(st.integers(1, 6)) if max_leaves is None else draw(st.sampled_from([None, 3])),
        "max_leaves": max_leaves,
        "min_child_weight": draw(st.sampled_from([0.0, 1.0, 5.0])),
        "reg_lambda": draw(st.sampled_from([0.0, 1.0, 30.0])),
        "projection_strength": draw(st.sampled_from([0.0, 0.3, 1.0])),
        "energy_threshold": draw(energy_thresholds),
        "memory": draw(st.one_of(st.sampled_from(["auto", "all"]), st.integers(1, n_estimators))),
        "leaf_rule": draw(st.sampled_from(["newton", "mean"])),
        "init": draw(st.sampled_from(["prior", "zero"])),
        "subsample": draw(st.sampled_from([1.0, 0.5])),
        "colsample_bytree": draw(st.sampled_from([1.0, 0.6])),
        "max_bin": draw(st.sampled_from([2, 16, 256])),
        "weighting": weighting,
        "weighting_data": rows,
        "cv": 2,
        "covariance_penalty": draw(st.sampled_from([0.0, 0.1, 10.0])),
        "early_stopping": draw(st.booleans()) and rows == "holdout",
        "random_state": draw(st.integers(0, 100)),
        "n_jobs": 1,
    }
