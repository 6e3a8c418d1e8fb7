"""Cases of the soak test: random fits of random tasks to adversarial data, by seed and number."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from scboost import SCBoostClassifier, SCBoostRegressor
from scboost._data.identifiers import IdentifierWarning
from scboost._engine.native import is_available

Array = npt.NDArray[Any]

AMOUNTS = {"poisson", "gamma", "tweedie"}
"""Losses of non-negative targets."""


@dataclass(frozen=True)
class Case:
    """One fit.

    Attributes
    ----------
    task : {"classes", "numbers"}
        Which estimator.
    X : ndarray of shape (n, d)
        Features; a categorical column holds the numbers of its categories.
    y : ndarray of shape (n,)
        Target.
    weight : ndarray of shape (n,) or None
        Sample weights.
    params : dict
        Parameters of the estimator that are not the default.
    categorical : tuple of int
        Numbers of the categorical columns.
    n_validation : int
        Number of the last samples that form the validation set.
    prefix : str
        What the names of categories begin with.
    matrix : sparse matrix or None
        X in another form, for fits and predictions of all samples.
    """

    task: str
    X: Array
    y: Array
    weight: Array | None = None
    params: dict[str, Any] = field(default_factory=dict)
    categorical: tuple[int, ...] = ()
    n_validation: int = 0
    prefix: str = "c"
    matrix: Any = None

    def rows(self, X: Array | None = None, *, kind: str = "") -> Any:
        """Return samples as an array, or as a table if there are categorical features or `kind` names one."""
        if self.matrix is not None:
            return self.matrix if X is None else self.matrix[: len(X)]
        X = self.X if X is None else X
        if not (kind or self.categorical):
            return X
        columns: dict[str, Any] = {f"x{j}": X[:, j] for j in range(X.shape[1])}
        if kind == "polars":
            import polars as pl

            texts = {
                f"x{j}": [None if np.isnan(v) else f"{self.prefix}{v:g}" for v in X[:, j]] for j in self.categorical
            }
            return pl.DataFrame(columns | texts, schema_overrides=dict.fromkeys(texts, pl.String))
        import pandas as pd

        for j in self.categorical:
            values, codes = np.unique(X[:, j], return_inverse=True)
            names = [f"{self.prefix}{v:g}" for v in values[~np.isnan(values)]]
            columns[f"x{j}"] = pd.Categorical.from_codes(np.where(np.isnan(X[:, j]), -1, codes), names)
        return pd.DataFrame(columns)

    def model(self, **changes: Any) -> Any:
        """Return the estimator, unfitted."""
        cls = SCBoostClassifier if self.task == "classes" else SCBoostRegressor
        return cls(**{"n_estimators": 3, "n_jobs": 1, "random_state": 0, **self.params, **changes})

    def fit(self, *, kind: str = "", order: Array | None = None, model: Any = None, **changes: Any) -> Any:
        """Fit; any warning but ``ConvergenceWarning`` and that of ID-like columns is a violation."""
        n = len(self.y) - self.n_validation
        chosen = np.arange(n) if order is None else order
        model = self.model(**changes) if model is None else model
        given: dict[str, Any] = {}
        if self.n_validation:
            given = {"X_val": self.rows(self.X[n:], kind=kind), "y_val": self.y[n:]}
            if self.weight is not None:
                given["sample_weight_val"] = self.weight[n:]
        weight = None if self.weight is None else self.weight[chosen]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", IdentifierWarning)  # some cases have a category for each sample
            return model.fit(self.rows(self.X[chosen], kind=kind), self.y[chosen], weight, **given)

    def script(self, check: str) -> str:
        """Return a program that reproduces a violation; run it in the directory ``tools``."""
        lines = ["from numpy import array, inf, nan", "from soak import CHECKS, Case", "", "case = Case("]
        for name in ("task", "X", "y", "weight", "params", "categorical", "n_validation"):
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                dtype = "object" if value.dtype.kind in "OU" else str(value.dtype)
                value = f"array({value.tolist()!r}, dtype={dtype!r})"
            else:
                value = repr(value)
            lines.append(f"    {name}={value},")
        return "\n".join([*lines, ")", f"CHECKS[{check!r}](case)", ""])


_COLUMNS = {
    "normal": 8.0,
    "rounded": 8.0,
    "binary": 4.0,
    "constant": 2.0,
    "missing": 1.0,
    "heavy": 3.0,
    "huge": 2.0,
    "tiny": 2.0,
    "large integers": 2.0,
    "copy": 2.0,
    "zero": 1.0,
    "categories": 4.0,
    "many categories": 1.0,
    "one category": 0.5,
    "limit": 0.5,
    "subnormal": 1.0,
    "infinite": 0.05,
    "beyond": 0.05,
    "sorted": 2.0,
}


def _column(rng: np.random.Generator, n: int, earlier: list[Array]) -> tuple[Array, bool]:
    """Return a column, and whether it is categorical."""
    kind = rng.choice(list(_COLUMNS), p=_shares(list(_COLUMNS.values())))
    x = rng.normal(size=n)
    categorical = "categor" in str(kind)
    values: dict[str, Callable[[], Array]] = {
        "normal": lambda: x,
        "rounded": lambda: np.round(2 * x) / 2,
        "binary": lambda: (x > 0).astype(float),
        "constant": lambda: np.full(n, rng.choice([0.0, 1.0, -7.25, 1e20])),
        "missing": lambda: np.full(n, np.nan),
        "heavy": lambda: np.clip(x / np.abs(rng.normal(size=n)) ** 3, -1e30, 1e30),
        "huge": lambda: x * 1e30,
        "tiny": lambda: x * 1e-30,
        "large integers": lambda: np.rint(2**24 + 50 * x),
        "copy": lambda: earlier[rng.integers(len(earlier))].copy() if earlier else x,
        "zero": lambda: np.where(rng.random(n) < 0.9, 0.0, x),
        "categories": lambda: rng.integers(0, 5, size=n).astype(float),
        "many categories": lambda: rng.permutation(n).astype(float),
        "one category": lambda: np.zeros(n),
        "limit": lambda: np.sign(x) * rng.choice([1.6e38, 3.4e38]),
        "subnormal": lambda: x * 1e-41,
        "infinite": lambda: np.where(rng.random(n) < 0.05, np.inf, x),
        "beyond": lambda: np.where(rng.random(n) < 0.05, 1e39, x),
        "sorted": lambda: np.arange(n, dtype=float),
    }
    column = values[str(kind)]()
    if rng.random() < 0.2:
        column[rng.random(n) < rng.choice([0.02, 0.5, 0.98])] = np.nan
    return column, categorical


def _shares(parts: list[float]) -> Array:
    return np.asarray(np.array(parts) / np.sum(parts))


def _signal(rng: np.random.Generator, X: Array) -> Array:
    """Return numbers that depend on the ranks of a column or two, with noise."""
    ranks = np.argsort(np.argsort(np.nan_to_num(X[:, : 1 + rng.integers(2)]), axis=0), axis=0)
    return np.asarray(3 * ranks.mean(axis=1) / len(X) + rng.choice([0.0, 0.3, 3.0]) * rng.normal(size=len(X)))


def _classes(rng: np.random.Generator, X: Array) -> Array:
    n_classes = int(rng.choice([2, 2, 3, 5]))
    signal = _signal(rng, X)
    shares = rng.dirichlet(np.full(n_classes, rng.choice([0.3, 5.0])))
    codes = np.searchsorted(np.quantile(signal, np.cumsum(shares)[:-1]), signal)
    labels: list[Any] = [
        [f"class {k}" for k in range(n_classes)],
        [3 * k - 4 for k in range(n_classes)],
        [bool(k) for k in range(n_classes)] if n_classes == 2 else list(range(n_classes)),
        [k / 2 for k in range(n_classes)] if rng.random() < 0.1 else list(range(n_classes)),
    ]
    return np.asarray(np.array(labels[rng.integers(4)])[codes])


def _numbers(rng: np.random.Generator, X: Array, loss: str) -> Array:
    n, signal = len(X), _signal(rng, X)
    if loss in AMOUNTS:
        mean = rng.choice([0.05, 1.0, 30.0, 1e6, 1e9])
        y = rng.poisson(mean * np.exp(signal - signal.mean()).clip(0, 100)).astype(float)
        return np.asarray(y * rng.choice([1.0, 1.0, 0.37]) + (loss == "gamma") * 0.01 * mean)
    kind = rng.choice(["plain", "offset", "scaled", "heavy", "steps", "constant", "one apart"])
    values: dict[str, Callable[[], Array]] = {
        "plain": lambda: signal,
        "offset": lambda: signal + rng.choice([1e3, 1e7, -1e12]),
        "scaled": lambda: signal * rng.choice([1e-12, 1e-6, 1e6, 1e12]),
        "heavy": lambda: signal / np.abs(rng.normal(size=n)) ** 2,
        "steps": lambda: np.round(signal),
        "constant": lambda: np.full(n, rng.choice([0.0, 1.0, -1e6])),
        "one apart": lambda: np.where(np.arange(n) == rng.integers(n), 1e6, 0.0),
    }
    return values[str(kind)]()


def _weight(rng: np.random.Generator, n: int) -> Array | None:
    kind = rng.choice(["none", "whole", "uniform", "small", "large", "one heavy", "mostly zero", "wide"])
    values: dict[str, Callable[[], Array]] = {
        "whole": lambda: rng.integers(0, 5, size=n).astype(float),
        "uniform": lambda: rng.uniform(0.1, 3, size=n),
        "small": lambda: rng.uniform(0.5, 1.5, size=n) / n / rng.choice([1, 1e8]),
        "large": lambda: rng.uniform(0.5, 1.5, size=n) * rng.choice([1e6, 1e12]),
        "one heavy": lambda: np.where(np.arange(n) == rng.integers(n), 1e4, 1.0),
        "mostly zero": lambda: (rng.random(n) < 0.2).astype(float),
        "wide": lambda: np.exp(rng.uniform(-15, 15, size=n)),
    }
    return None if kind == "none" else values[str(kind)]()


def _params(rng: np.random.Generator, task: str, loss: str, numeric: list[int], d: int) -> dict[str, Any]:
    """Return parameters that are legal one by one; a few of them are not together."""
    rounds = min(int(rng.geometric(0.3)), 12)  # a few: most of what can go wrong shows there, and cases are many
    params: dict[str, Any] = {"n_estimators": rounds, "random_state": int(rng.integers(100))}

    def maybe(name: str, values: list[Any], share: float = 0.3) -> None:
        if rng.random() < share:
            params[name] = values[rng.integers(len(values))]

    maybe("n_estimators", ["auto"], 0.003)  # each of these takes as long as a hundred others
    maybe("preset", ["fast", "best"], 0.15)
    maybe("learning_rate", [0.01, 0.3, 1.0, 3.0])
    maybe("max_depth", [1, 2, 6, 12])
    maybe("max_leaves", [2, 7, 31])
    maybe("min_child_weight", [0.0, 0.5, 5.0, 50.0])
    maybe("reg_lambda", [0.0, 1.0, 100.0])
    maybe("min_split_loss", [0.1, 10.0], 0.1)
    maybe("projection_strength", [0.0, 0.3, 1.0])
    maybe("energy_threshold", [0.01, 0.5, 0.999, 1.0])
    maybe("memory", [1, 3, "all"])
    maybe("exploration", [0.0, 0.3, 2.0])
    maybe("leaf_rule", ["mean"], 0.15 if loss not in AMOUNTS else 0.02)
    maybe("init", ["zero"], 0.15)
    maybe("subsample", [0.3, 0.7])
    maybe("colsample_bytree", [0.1, 0.6])
    maybe("colsample_bylevel", [0.5], 0.1)
    maybe("colsample_bynode", [0.5], 0.1)
    maybe("max_bin", [2, 8, 64], 0.2)
    maybe("weighting", ["simplex", "nonnegative"], 0.2 if loss not in {"absolute_error", "quantile"} else 0.02)
    if "weighting" in params:
        maybe("weighting_data", ["out_of_fold", "fold_average"], 0.4 if params["weighting"] != "simplex" else 0.02)
        maybe("covariance_penalty", [0.1, 10.0])
        maybe("weight_ridge", [1e-6, 10.0])
    maybe("cv", [2, 3], 0.3)
    maybe("early_stopping", [True], 0.2)
    maybe("n_iter_no_change", [1, 3])
    maybe("validation_fraction", [0.05, 0.5], 0.1)
    maybe("feature_selection", [False], 0.1)
    maybe("categorical_splits", ["one-vs-rest", "subset"], 0.2)
    if rng.random() < 0.1:
        signs = rng.integers(-1, 2, size=d)
        params["monotone_constraints"] = [int(signs[j]) if j in numeric else 0 for j in range(d)]
    if rng.random() < 0.1:
        params["interaction_constraints"] = [[int(j)] for j in range(d)]
    if task == "classes":
        maybe("class_weight", ["balanced"], 0.15)
    elif loss != "squared_error":
        params["loss"] = loss
        if loss == "quantile":
            params["quantile"] = float(rng.choice([0.01, 0.3, 0.9]))
        elif loss == "expectile":
            params["expectile"] = float(rng.choice([0.1, 0.5, 0.95]))
        elif loss == "tweedie":
            maybe("tweedie_power", [1.1, 1.9])
        elif loss == "huber":
            maybe("huber_delta", [1e-3, 1.0, 1e3])
    maybe("reg_alpha", [0.1, 10.0], 0.1)
    return params


def make_case(seed: int, number: int) -> Case:
    """Return the case of a seed and a number."""
    rng = np.random.default_rng([seed, number])
    n, d = int(rng.choice([20, 30, 60, 120, 250])), int(rng.integers(1, 9))
    columns: list[Array] = []
    categorical = []
    for j in range(d):
        column, is_category = _column(rng, n, columns)
        columns.append(column)
        if is_category:
            categorical.append(j)
    X = np.column_stack(columns)
    if rng.random() < 0.1:  # rows that repeat
        X = X[rng.integers(0, n, size=n)]
    task = str(rng.choice(["classes", "numbers"]))
    losses = ["squared_error", "squared_error", "absolute_error", "huber", "quantile", "poisson"]
    losses += ["gamma", "tweedie", "expectile"]
    loss = str(rng.choice(losses)) if task == "numbers" else ""
    y = _classes(rng, X) if task == "classes" else _numbers(rng, X, loss)
    params = _params(rng, task, loss, [j for j in range(d) if j not in categorical], d)
    if task == "classes" and len(np.unique(y)) > 2 and rng.random() < 0.9:
        params.pop("monotone_constraints", None)
    gives = {"early_stopping", "weighting"} & set(params) and not {"preset", "weighting_data"} & set(params)
    n_validation = n // 4 if rng.random() < (0.5 if gives else 0.05) else 0
    weight = _weight(rng, n)
    if is_available() and rng.random() < 0.5:
        params["engine"] = "native"
    else:
        params["engine"] = "xgboost"
    return Case(task, X, y, weight, params, tuple(categorical), n_validation)
