"""Hostile data and random legal parameters: every fit keeps its promises, or says before the first tree why it cannot.

Case number i of a seed follows from the two numbers alone. What is promised for a fit that starts: finite predictions,
inputs left as they were, and the same scores with two threads in place of one, from a table in place of an array, after
saving and loading, after pickling, after a checkpoint and a resumed fit, by a staged prediction, by XGBoost, as the sum
of the tree matrix - and, up to rounding, with the rows in another order, and with rows repeated in place of weighted.
A violation is shrunk and printed as a script that shows it: ``make soak MINUTES=10 SEED=1``.
"""

from __future__ import annotations

import json
import pickle
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import xgboost
from sklearn.exceptions import ConvergenceWarning

from figures import arguments, described, finish
from scboost import Checkpoint, SCBoostClassifier, SCBoostRegressor, load_model, tree_matrix
from scboost.xgb.engine import XGBoostEngine

Array = npt.NDArray[Any]

ROUNDING = 1e-3
"""Largest difference of scores, in units of their spread, that counts as rounding."""
NUDGE = 1e-6
"""Relative change of the weights under which an ill-conditioned fit becomes another model."""
AMOUNTS = {"poisson", "gamma", "tweedie"}
"""Losses of targets that are not negative."""
LARGEST = 1e38
"""Numbers beyond are for the check of infinity only."""
WORDS = (
    "X",
    "y",
    "Sample weights",
    "sample_weight",
    "sample_weight_val",
    "X_val",
    "y_val",
    "classes",
    "label",
    "Column",
)


class Violation(AssertionError):  # noqa: N818 - it is what is looked for, not an error of this program
    """A promise that was not kept."""


class Refused(Exception):  # noqa: N818 - an answer, not a failure
    """The library said that these data or parameters do not go, as it may."""


@dataclass(frozen=True)
class Case:
    """A fit.

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
        How many of the last rows are given as validation rows.
    """

    task: str
    X: Array
    y: Array
    weight: Array | None = None
    params: dict[str, Any] = field(default_factory=dict)
    categorical: tuple[int, ...] = ()
    n_validation: int = 0

    def rows(self, X: Array | None = None, *, kind: str = "") -> Any:
        """Return rows as the model takes them: an array, or a table if there are categories or it is asked for."""
        X = self.X if X is None else X
        if not (kind or self.categorical):
            return X
        columns: dict[str, Any] = {f"x{j}": X[:, j] for j in range(X.shape[1])}
        if kind == "polars":
            import polars as pl

            texts = {f"x{j}": [None if np.isnan(v) else f"c{v:g}" for v in X[:, j]] for j in self.categorical}
            return pl.DataFrame(columns | texts, schema_overrides=dict.fromkeys(texts, pl.String))
        import pandas as pd

        for j in self.categorical:
            values, codes = np.unique(X[:, j], return_inverse=True)
            names = [f"c{v:g}" for v in values[~np.isnan(values)]]
            columns[f"x{j}"] = pd.Categorical.from_codes(np.where(np.isnan(X[:, j]), -1, codes), names)
        return pd.DataFrame(columns)

    def model(self, **changes: Any) -> Any:
        """Return the estimator, unfitted."""
        cls = SCBoostClassifier if self.task == "classes" else SCBoostRegressor
        return cls(**{"n_estimators": 3, "n_jobs": 1, "random_state": 0, **self.params, **changes})

    def fit(self, *, kind: str = "", order: Array | None = None, model: Any = None, **changes: Any) -> Any:
        """Fit; warnings that the library does not mean to give are violations."""
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
            return model.fit(self.rows(self.X[chosen], kind=kind), self.y[chosen], weight, **given)

    def script(self, check: str) -> str:
        """Return a program that shows a violation; it runs in the folder ``tools``."""
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


# --- what is promised ------------------------------------------------------------------------------------------------


@contextmanager
def _grown() -> Iterator[list[bool]]:
    """Count the trees grown."""
    grown: list[bool] = []
    original = XGBoostEngine.grow

    def grow(self: XGBoostEngine, *args: Any) -> Any:
        grown.append(True)
        return original(self, *args)

    with mock.patch.object(XGBoostEngine, "grow", grow):
        yield grown


def start(case: Case) -> Any:
    """Fit, or raise Refused if the refusal is clear and comes before the first tree."""
    before = case.X.copy(), case.y.copy(), None if case.weight is None else case.weight.copy()
    with _grown() as grown:
        try:
            model = case.fit()
        except (ValueError, TypeError) as error:
            names = re.compile(rf"\b({'|'.join([*WORDS, *case.model().get_params()])})\b")
            if grown:
                raise Violation(f"refused after {len(grown)} trees: {error}") from error
            if not names.search(str(error)):
                raise Violation(f"the error names no parameter: {error}") from error
            raise Refused(str(error)) from error
    for old, new in zip(before, (case.X, case.y, case.weight), strict=True):
        if old is not None and new is not None and not np.array_equal(old, new, equal_nan=old.dtype.kind == "f"):
            raise Violation("fit has changed its input")
    return model


def _scores(case: Case, model: Any, *, kind: str = "", X: Array | None = None) -> Array:
    """Raw scores of all rows."""
    rows = case.rows(X, kind=kind)
    return np.asarray(model.decision_function(rows) if case.task == "classes" else _raw(model, rows))


def _raw(model: Any, rows: Any) -> Array:
    return np.asarray(model._raw_scores(rows)[0])  # noqa: SLF001 - predictions of counts hide it behind the exponential


def _new_rows(case: Case) -> Array:
    """Rows that were not in the fit: other values, missing ones, infinite ones, unknown categories."""
    rng = np.random.default_rng(0)
    X = rng.permuted(case.X, axis=0)[:20] * rng.choice([1.0, 1.5, -1.0], size=case.X.shape[1])
    X[rng.random(X.shape) < 0.1] = np.nan
    numeric = [j for j in range(X.shape[1]) if j not in case.categorical]
    if numeric:
        X[0, numeric] = np.inf
        X[-1, numeric] = -np.inf
    return np.asarray(X)


def _finite(X: Array) -> Array:
    return np.asarray(np.where(np.abs(X) < LARGEST, X, np.nan))


def _same(a: Array, b: Array, what: str) -> None:
    if not np.array_equal(a, b):
        raise Violation(f"{what}: scores differ by {np.abs(a - b).max():.3g} of {_spread(b):.3g}")


def _spread(scores: Array) -> float:
    return float(np.abs(scores - scores.mean(axis=0)).max()) if len(scores) else 0.0


def _near(a: Array, b: Array, share: float = 1e-5, size: float = 0.0) -> bool:
    """Whether scores are equal up to a share of their spread, and what float32 leaves of their parts' size."""
    size = max(size, float(np.abs(a).max(initial=0)), float(np.abs(b).max(initial=0)))
    return bool(np.abs(a - b).max(initial=0) <= share * max(_spread(a), _spread(b)) + 2e-7 * size)


def check_finite(case: Case, model: Any) -> None:
    """Promise that predictions are finite, for rows of the fit and for others."""
    X = np.vstack([case.X, _new_rows(case)])
    if not np.isfinite(_scores(case, model, X=X)).all():
        raise Violation("a score is not finite")
    rows = case.rows(X)
    answers = model.predict_proba(rows) if case.task == "classes" else model.predict(rows)
    if not np.isfinite(answers).all():
        raise Violation("a prediction is not finite")
    if case.task == "classes" and not np.allclose(answers.sum(axis=1), 1):
        raise Violation("probabilities do not add up to 1")


def check_threads(case: Case, model: Any) -> None:
    """Promise that two threads give the same model as one."""
    _same(_scores(case, case.fit(n_jobs=2)), _scores(case, model), "two threads")


def check_again(case: Case, model: Any) -> None:
    """Promise that a second fit gives the same model."""
    _same(_scores(case, case.fit()), _scores(case, model), "a second fit")


def check_tables(case: Case, model: Any) -> None:
    """Promise that a table of polars gives the same model as an array, or as a table of pandas."""
    _same(_scores(case, case.fit(kind="polars"), kind="polars"), _scores(case, model), "a table")


def check_files(case: Case, model: Any) -> None:
    """Promise that a saved and loaded model, and a pickled one, are the same model."""
    new = _new_rows(case)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.{'ubj' if len(case.y) % 4 else 'json'}"
        model.save_model(path)
        _same(_scores(case, load_model(path), X=new), _scores(case, model, X=new), "a loaded file")
    copied = pickle.loads(pickle.dumps(model))  # noqa: S301 - written in the same line
    _same(_scores(case, copied, X=new), _scores(case, model, X=new), "a pickled model")


def check_resuming(case: Case, model: Any) -> None:
    """Promise that a fit that goes on from a checkpoint gives the model of a fit without interruption."""
    chosen = model.n_estimators == "auto" and model.preset == "default"
    if model.preset == "best" or (model.weighting is not None and (chosen or model.weighting_data != "holdout")):
        return
    with tempfile.TemporaryDirectory() as folder:
        every = max(1, model.n_estimators_ // 2)
        checkpoint = Checkpoint(Path(folder) / "fit.checkpoint", every=every)
        _same(_scores(case, case.fit(callbacks=[checkpoint])), _scores(case, model), "a checkpoint is written")
        if not checkpoint.path.exists():  # no tree was grown
            return
        resumed = case.fit(model=checkpoint.load())
        _same(_scores(case, resumed), _scores(case, model), "a resumed fit")


def check_sums(case: Case, model: Any) -> None:
    """Promise that the tree matrix, the last stage and plain XGBoost give the scores of the model."""
    if not model.weights_.any():  # nothing was learnt
        return
    new = _finite(_new_rows(case))
    scores = _scores(case, model, X=new)
    rows = case.rows(new)
    trees = tree_matrix(model, rows)
    parts = float(np.abs(trees.H * trees.column_weights).sum(axis=1).max() + np.abs(trees.intercepts).max())
    # XGBoost adds up in float32, tree after tree: trees that are alike are rounded alike, by half a unit of the last
    # digit each.
    rounding = parts * max(5.0, 0.3 * trees.n_trees)
    if not _near(trees.margin(), scores, size=rounding):
        raise Violation("the tree matrix adds up to another score")
    stages = list(model.staged_predict_proba(rows) if case.task == "classes" else model.staged_predict(rows))
    last = model.predict_proba(rows) if case.task == "classes" else model.predict(rows)
    stage = stages[-1]
    if case.params.get("loss") in AMOUNTS:  # rounding is that of the scores
        stage, last = np.log(stage), np.log(last)
        rounding = max(rounding, 1e-8)  # the exponential of a tiny score is 1 with 16 digits
    if not _near(stage, last, size=rounding):
        raise Violation("the last stage is another prediction")
    if not case.categorical:
        margin = model.get_booster().predict(xgboost.DMatrix(new), output_margin=True)
        if not _near(margin.reshape(scores.shape), scores, 1e-4, rounding):
            raise Violation("the native model has another margin")


def check_order(case: Case, model: Any) -> None:
    """Promise that the order of the rows does not matter, up to rounding."""
    if _bins_are_estimates(case, model):
        return
    order = np.random.default_rng(1).permutation(len(case.y) - case.n_validation)
    _equal_but_for_rounding(case, model, case.fit(order=order), "rows in another order")


def check_repetition(case: Case, model: Any) -> None:
    """Promise that a whole-number weight is the same as that many copies of the row, up to rounding."""
    n = len(case.y) - case.n_validation
    if case.weight is None or not np.array_equal(case.weight, np.rint(case.weight)) or case.weight.sum() > 2000:
        return
    if _bins_are_estimates(case, model):
        return
    order = np.repeat(np.arange(n), case.weight[:n].astype(int))
    plain = replace(case, weight=None)
    if case.n_validation:
        held_out = np.repeat(np.arange(n, len(case.y)), case.weight[n:].astype(int))
        rows = np.concatenate([order, held_out])
        plain = replace(plain, X=case.X[rows], y=case.y[rows], n_validation=len(held_out))
        order = np.arange(len(order))
    _equal_but_for_rounding(case, model, plain.fit(order=order), "repeated rows")


def _bins_are_estimates(case: Case, model: Any) -> bool:
    """Whether a column has more values than bins: XGBoost then cuts at quantiles that it estimates row by row."""
    bins = 64 if model.max_bin == "auto" else model.max_bin  # the fewest that "auto" takes
    return any(len(np.unique(column)) > bins for column in case.X.T)


class IllConditioned(Exception):  # noqa: N818 - an answer, not a failure
    """Rounding decides between two models."""


def _equal_but_for_rounding(case: Case, model: Any, other: Any, what: str) -> None:
    """Compare, and let a difference pass if weights that change by a millionth make one, too: ties between splits.

    Only rows that were learnt from are compared: two columns that part these alike may part others differently.
    """
    weight = np.ones(len(case.y)) if case.weight is None else case.weight
    X = case.X[np.flatnonzero(weight[: len(case.y) - case.n_validation])]
    scores, changed = _scores(case, model, X=X), _scores(case, other, X=X)
    size = float(np.abs(model.intercept_).max())
    if case.task == "classes":
        size = max(size, 1e-8)  # log-odds of balanced classes are the logarithm of a rounded 1
    if _near(changed, scores, ROUNDING, size):
        return
    rng = np.random.default_rng(2)
    for _ in range(6):
        nudged = replace(case, weight=weight * (1 + NUDGE * rng.uniform(-1, 1, size=len(weight))))
        if not _near(_scores(case, nudged.fit(), X=X), scores, ROUNDING, size):
            raise IllConditioned
    raise Violation(f"{what}: scores differ by {np.abs(changed - scores).max():.3g} of {_spread(scores):.3g}")


_CHECKS: dict[str, Callable[[Case, Any], None]] = {
    "finite": check_finite,
    "again": check_again,
    "threads": check_threads,
    "tables": check_tables,
    "files": check_files,
    "resuming": check_resuming,
    "sums": check_sums,
    "order": check_order,
    "repetition": check_repetition,
}
CHECKS: dict[str, Callable[[Case], None]] = {
    name: (lambda case, check=check: check(case, start(case)))  # type: ignore[misc]
    for name, check in _CHECKS.items()
}
"""What is promised, by name: each takes a case and raises Violation if it does not hold."""


# --- cases -----------------------------------------------------------------------------------------------------------


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
    """Return the case of a number, which follows from it and the seed alone."""
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
    return Case(task, X, y, _weight(rng, n), params, tuple(categorical), n_validation)


def checks_of(number: int) -> list[str]:
    """Return which promises are checked for a case: whether predictions are finite, and one of the others in turn."""
    others = [name for name in CHECKS if name != "finite"]
    return ["finite", others[number % len(others)]]


# --- running ---------------------------------------------------------------------------------------------------------


def judge(case: Case, checks: list[str]) -> tuple[str, str, str]:
    """Return what became of a case ("held", "refused", "ill-conditioned", "violation"), the check and the message."""
    outcome = "held"
    check = checks[0]
    try:
        model = start(case)
        for check in checks:
            try:
                _CHECKS[check](case, model)
            except IllConditioned:
                outcome = "ill-conditioned"
    except Refused as refused:
        return "refused", "", str(refused)
    except Violation as violation:
        return "violation", check, str(violation)
    except Exception as error:  # noqa: BLE001 - any other error is what is looked for
        where = traceback.extract_tb(error.__traceback__)[-1]
        return "violation", check, f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
    return outcome, "", ""


def shrink(case: Case, check: str, most: int = 300, seconds: float = 60.0) -> Case:
    """Return a smaller case that fails the same check: fewer rows and columns, parameters that are the default."""
    tries, end = iter(range(most)), time.monotonic() + seconds

    def fails(smaller: Case) -> bool:
        in_time = next(tries, None) is not None and time.monotonic() < end
        return in_time and judge(smaller, [check])[0] == "violation"

    changed = True
    while changed:
        changed = False
        for smaller in _smaller(case):
            if fails(smaller):
                case, changed = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    for name in list(case.params):
        if name not in {"n_estimators", "loss", "quantile", "expectile"}:
            yield replace(case, params={key: value for key, value in case.params.items() if key != name})
    if case.weight is not None:
        yield replace(case, weight=None)
    if case.n_validation:
        n = len(case.y) - case.n_validation
        weight = None if case.weight is None else case.weight[:n]
        yield replace(case, X=case.X[:n], y=case.y[:n], weight=weight, n_validation=0)
    for j in range(case.X.shape[1] if case.X.shape[1] > 1 and "monotone_constraints" not in case.params else 0):
        kept = [i for i in range(case.X.shape[1]) if i != j]
        categorical = tuple(kept.index(i) for i in case.categorical if i != j)
        yield replace(case, X=case.X[:, kept], categorical=categorical)
    rounds = case.params.get("n_estimators", 3)
    if isinstance(rounds, int) and rounds > 1:
        for fewer in {rounds // 2, rounds - 1}:
            yield replace(case, params={**case.params, "n_estimators": fewer})
    n = len(case.y) - case.n_validation
    size = n // 2
    while size >= 1 and not case.n_validation:
        for first in range(0, n, size):
            kept_rows = np.delete(np.arange(n), slice(first, first + size))
            weight = None if case.weight is None else case.weight[kept_rows]
            if len(kept_rows) >= 2:
                yield replace(case, X=case.X[kept_rows], y=case.y[kept_rows], weight=weight)
        size //= 2


def run(seed: int, cases: int, minutes: float, report: Callable[[int, int], None] = lambda *_: None) -> dict[str, Any]:
    """Run cases 0, 1, 2, ... until all are done or the time is over."""
    outcomes: Counter[str] = Counter()
    checked: Counter[str] = Counter()
    violations: list[dict[str, Any]] = []
    begin = time.monotonic()
    number = 0
    while number < cases and time.monotonic() - begin < 60 * minutes:
        checks = checks_of(number)
        case = make_case(seed, number)
        outcome, check, message = judge(case, checks)
        outcomes[outcome] += 1
        if outcome != "refused":
            checked.update(checks)
        if outcome == "violation":
            violations.append({"number": number, "check": check, "message": message})
            print(f"\n# violation in case {number} of seed {seed}: {check}: {message}", flush=True)
            if len(violations) <= 20:
                print(shrink(case, check).script(check), flush=True)
        number += 1
        report(number, len(violations))
    return {
        "cases": number,
        "violations": len(violations),
        "outcomes": dict(sorted(outcomes.items())),
        "checks": dict(sorted(checked.items())),
        "first violations": violations[:20],
        "minutes": round((time.monotonic() - begin) / 60, 1),
    }


def main() -> int:
    """Run from the command line."""
    given = arguments(__doc__, "cases")
    if given.only is not None:
        case = make_case(given.seed, given.only)
        outcome, check, message = judge(case, checks_of(given.only))
        print(outcome, check, message)
        if outcome == "violation":
            print(shrink(case, check).script(check))
        return int(outcome == "violation")

    def report(done: int, violations: int) -> None:
        if done % 1000 == 0:
            print(f"{done} cases, {violations} violations", flush=True)

    print(f"seed {given.seed}", flush=True)
    command = f"python tools/soak.py --seed {given.seed} --cases {given.cases} --minutes {given.minutes:g}"
    figures = described(command, run(given.seed, given.cases, given.minutes, report))
    return finish(figures | {"earlier runs": _earlier_runs(given.output)}, given.output)


def _earlier_runs(output: Path | None) -> list[dict[str, Any]]:
    """Read what the run of the figures on record found, and those before it."""
    if output is None or not output.exists():
        return []
    last = json.loads(output.read_text())
    return [*last.get("earlier runs", []), {name: last[name] for name in ("command", "date", "cases", "violations")}]


if __name__ == "__main__":
    sys.exit(main())
