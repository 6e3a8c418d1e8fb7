"""Hashes of the results of many kinds of fits: a refactoring must leave every bit of them as it was.

``python tools/fit_snapshots.py write FILE`` stores SHA-256 hashes of predictions, weights, logs and other numeric
results of 82 kinds of fits, made through the public interface only; ``check FILE`` repeats the fits, prints the kinds
whose results differ, and exits with 1 if there are any. Hashes depend on the versions of NumPy, SciPy, scikit-learn and
XGBoost and on the processor architecture, which are stored with them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor

from scboost import Batches, Checkpoint, SCBoostClassifier, SCBoostRegressor, load_model
from scboost.losses import Loss

# Public names by the name used below, newest first: the tool compares versions across renames.
_PARAMETERS = {
    "categorical_splits": ("categorical_splits", "category_splits"),
    "weighting_data": ("weighting_data", "weighting_rows"),
    "weight_ridge": ("weight_ridge", "weight_pull"),
    "feature_selection": ("feature_selection", "column_selection"),
}
_OLD_VALUES = {("category_splits", "one-vs-rest"): "one", ("category_splits", "subset"): "groups"}
_ATTRIBUTES = {
    "selection_log_": ("selection_log_", "choosing_log_"),
    "selected_features_": ("selected_features_", "selected_columns_"),
}
_PACKAGES = ("numpy", "scipy", "sklearn", "xgboost", "pandas")
_DEFAULTS = {"n_jobs": 1, "random_state": 0}
_STAGES = 40  # rounds of a model up to which the predictions of every stage are part of the snapshot


class LogCosh(Loss):
    """Logarithm of the hyperbolic cosine of the error, in the old and the new form of custom losses."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def initial_score(self, y: Any, sample_weight: Any) -> Any:  # noqa: ARG002 - part of the interface
        """Return the median of the target."""
        return np.array([np.median(y)])

    def residual(self, y: Any, F: Any) -> Any:
        """Return negative gradient and Hessian."""
        t = np.tanh((y - F) / self.scale)
        return self.scale * t, 1 - t**2 + 1e-3

    def gradient_hessian(self, y: Any, raw: Any) -> Any:
        """Return gradient and Hessian."""
        negative, hessian = self.residual(y, raw)
        return -negative, hessian

    def row_losses(self, y: Any, F: Any) -> Any:
        """Return the loss of every sample."""
        e = np.abs(y - F[0]) / self.scale
        return self.scale**2 * (e + np.log1p(np.exp(-2 * e)) - np.log(2))

    def pointwise_loss(self, y: Any, raw: Any) -> Any:
        """Return the loss of every sample."""
        return self.row_losses(y, raw)

    def inverse_link(self, F: Any) -> Any:
        """Return the prediction of a raw score."""
        return F[0]


# ---------------------------------------------------------------------------------------------------------------- data
@cache
def _features(n: int, d: int = 6, *, rounded: bool = False) -> Any:
    X = np.random.default_rng(n + d).normal(size=(n, d))
    return X.round(1) if rounded else X


def _binary(n: int = 600) -> tuple[Any, Any]:
    X = _features(n)
    noise = np.random.default_rng(1).normal(size=n)
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * noise > 0.2).astype(int)


def _multiclass(n: int = 500) -> tuple[Any, Any]:
    X = _features(n)
    noise = np.random.default_rng(2).normal(size=n)
    return X, np.array(["a", "b", "c", "d"])[np.digitize(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * noise, [-0.4, 0.3, 1.0])]


def _real(n: int = 600) -> tuple[Any, Any]:
    X = _features(n)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * np.random.default_rng(3).normal(size=n)


def _mean(n: int) -> Any:
    X = _features(n)
    return np.exp(0.5 * X[:, 0] + 0.4 * X[:, 1] * (X[:, 2] > 0))


def _counts(n: int = 600) -> tuple[Any, Any]:
    return _features(n), np.random.default_rng(4).poisson(_mean(n)).astype(float)


def _positive(n: int = 600) -> tuple[Any, Any]:
    return _features(n), np.random.default_rng(5).gamma(2.0, _mean(n) / 2) + 1e-3


def _zero_inflated(n: int = 600) -> tuple[Any, Any]:
    X, y = _positive(n)
    return X, np.where(np.random.default_rng(6).random(n) < 0.4, 0.0, y)


def _missing() -> tuple[Any, Any]:
    X, y = _binary()
    return np.where(np.random.default_rng(7).random(X.shape) < 0.2, np.nan, X), y


def _csr() -> tuple[Any, Any]:
    X, y = _binary()
    return sparse.csr_matrix(np.where(np.abs(X) > 0.7, X, 0.0)), y


def _table(n: int = 1200) -> tuple[Any, Any]:
    rng = np.random.default_rng(8)
    codes = rng.integers(0, 40, size=n)
    table = pd.DataFrame({"level": pd.Categorical([f"level {c:02d}" for c in codes]), "x": rng.normal(size=n)})
    table["text"] = rng.choice(["north", "south", "east"], size=n)
    return table, 3.0 * (codes % 3 == 0) * (table["x"].to_numpy() > 0) + 0.2 * rng.normal(size=n)


def _table_binary() -> tuple[Any, Any]:
    table, y = _table()
    return table, y > 1


def _noise_features() -> tuple[Any, Any]:
    X = _features(800, 43, rounded=True)
    score = X[:, 0] + 2 * X[:, 1] * X[:, 2] + 0.3 * np.random.default_rng(9).normal(size=len(X))
    return X, (score > np.median(score)).astype(int)


def _additive() -> tuple[Any, Any]:
    X = _features(800, rounded=True)
    score = np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) - X[:, 2] + 0.5 * X[:, 3]
    return X, (score + 1.5 * np.random.default_rng(10).normal(size=len(X)) > 0.8).astype(int)


def _head(data: Callable[[], tuple[Any, Any]], n: int) -> dict[str, Any]:
    """Return the first ``n`` samples of a data set as arguments of ``fit``."""
    X, y = data()
    return {"X_val": X[:n], "y_val": y[:n]}


def _weights(n: int, *, integer: bool = False) -> Any:
    rng = np.random.default_rng(11)
    return rng.integers(0, 4, size=n) if integer else rng.random(n) + 0.1


# --------------------------------------------------------------------------------------------------------------- kinds
@dataclass(frozen=True)
class Kind:
    """One fit: the estimator, the data, its parameters and further arguments of ``fit``."""

    make: Callable[..., Any]
    data: Callable[[], tuple[Any, Any]]
    params: dict[str, Any] = field(default_factory=dict)
    fit: Callable[[], dict[str, Any]] = dict


def _kinds() -> dict[str, Kind]:
    C, R = SCBoostClassifier, SCBoostRegressor
    thirty: dict[str, Any] = {"n_estimators": 30, "learning_rate": 0.2, "max_depth": 4}
    few: dict[str, Any] = {"cv": 3, "learning_rate": 0.3, "n_iter_no_change": 8}
    nonnegative: dict[str, Any] = {"weighting": "nonnegative", "weight_ridge": 0.3, "covariance_penalty": 0.05}
    return {
        "binary, default": Kind(C, lambda: _binary(400)),
        "binary, fast": Kind(C, lambda: _binary(3000), {"preset": "fast"}),
        "binary, best": Kind(C, lambda: _binary(300), {"preset": "best", "learning_rate": 0.3}),
        "binary, 30 rounds": Kind(C, _binary, thirty),
        "binary, 500 rounds": Kind(C, lambda: _binary(200), {"n_estimators": 500, "max_depth": 2, "cv": 2}),
        "binary, 2 threads": Kind(C, lambda: _binary(3000), {**thirty, "n_jobs": 2}),
        "binary, unlimited depth": Kind(C, _binary, {**thirty, "max_depth": None, "max_leaves": 12}),
        "multiclass, default": Kind(C, lambda: _multiclass(300), few),
        "multiclass, fast": Kind(C, _multiclass, {"preset": "fast"}),
        "multiclass, best": Kind(C, lambda: _multiclass(250), {**few, "preset": "best"}),
        "multiclass, 2 threads": Kind(C, _multiclass, {**thirty, "n_jobs": 2}),
        "squared error, default": Kind(R, lambda: _real(300), few),
        "squared error, fast": Kind(R, _real, {"preset": "fast"}),
        "squared error, best": Kind(R, lambda: _real(250), {**few, "preset": "best"}),
        "squared error, 30 rounds": Kind(R, _real, thirty),
        "absolute error": Kind(R, _real, {**thirty, "loss": "absolute_error"}),
        "absolute error, default": Kind(R, lambda: _real(300), {**few, "loss": "absolute_error"}),
        "quantile": Kind(R, _real, {**thirty, "loss": "quantile", "quantile": 0.8}),
        "several quantiles": Kind(R, _real, {**thirty, "loss": "quantile", "quantile": [0.1, 0.5, 0.9]}),
        "several quantiles, default": Kind(
            R, lambda: _real(300), {**few, "loss": "quantile", "quantile": [0.05, 0.5, 0.95]}
        ),
        "quantile, projected": Kind(
            R, _real, {**thirty, "loss": "quantile", "quantile": 0.3, "projection_strength": 0.5, "exploration": 0.3}
        ),
        "huber": Kind(R, _real, {**thirty, "loss": "huber"}),
        "huber, delta": Kind(R, lambda: _real(300), {**few, "loss": "huber", "huber_delta": 0.5}),
        "poisson": Kind(R, _counts, {**thirty, "loss": "poisson"}),
        "poisson, default": Kind(R, lambda: _counts(300), {**few, "loss": "poisson"}),
        "tweedie": Kind(R, _zero_inflated, {**thirty, "loss": "tweedie", "tweedie_power": 1.3}),
        "gamma": Kind(R, _positive, {**thirty, "loss": "gamma"}),
        "expectile": Kind(R, _real, {**thirty, "loss": "expectile", "expectile": 0.8}),
        "custom loss": Kind(R, _real, {**thirty, "loss": LogCosh(0.5)}),
        "custom loss, default": Kind(R, lambda: _real(300), {**few, "loss": LogCosh(0.5)}),
        "paper": Kind(C.from_paper, _binary, {"n_estimators": 40}),
        "paper, multiclass": Kind(C.from_paper, lambda: _multiclass(300), {"n_estimators": 15}),
        "scikit-learn trees": Kind(C, _binary, {**thirty, "estimator": DecisionTreeRegressor(max_depth=3)}),
        "scikit-learn trees, means": Kind(
            R, _real, {**thirty, "estimator": DecisionTreeRegressor(max_depth=3), "leaf_rule": "mean"}
        ),
        "memory all, 250 rounds": Kind(
            C, lambda: _binary(500), {**thirty, "n_estimators": 250, "memory": "all", "energy_threshold": 1.0}
        ),
        "memory all, multiclass": Kind(C, _multiclass, {**thirty, "memory": "all", "projection_strength": 1.0}),
        "no projection, no exploration": Kind(C, _binary, {**thirty, "projection_strength": 0.0, "exploration": 0.0}),
        "simplex": Kind(C, _binary, {**thirty, "weighting": "simplex", "covariance_penalty": 0.1}),
        "nonnegative": Kind(C, _binary, {**thirty, **nonnegative}),
        "nonnegative, X_val": Kind(R, _real, {**thirty, **nonnegative}, lambda: _head(_real, 200)),
        "nonnegative, multiclass": Kind(C, _multiclass, {**thirty, **nonnegative}),
        "out of fold": Kind(C, _binary, {**thirty, **nonnegative, "weighting_data": "out_of_fold", "cv": 3}),
        "out of fold, default": Kind(
            R, lambda: _real(300), {**few, "weighting": "nonnegative", "weighting_data": "out_of_fold"}
        ),
        "fold average": Kind(C, _multiclass, {**thirty, **nonnegative, "weighting_data": "fold_average", "cv": 3}),
        "fold average, poisson": Kind(
            R, _counts, {**thirty, **nonnegative, "loss": "poisson", "weighting_data": "fold_average", "cv": 3}
        ),
        "sample weights": Kind(C, _binary, thirty, lambda: {"sample_weight": _weights(600)}),
        "integer weights, default": Kind(
            R, lambda: _real(300), few, lambda: {"sample_weight": _weights(300, integer=True)}
        ),
        "weights, quantile": Kind(
            R, _real, {**thirty, "loss": "quantile", "quantile": 0.7}, lambda: {"sample_weight": _weights(600)}
        ),
        "balanced classes": Kind(C, _multiclass, {**thirty, "class_weight": "balanced"}),
        "class weights": Kind(C, _binary, {**thirty, "class_weight": {0: 1.0, 1: 3.5}}),
        "missing values": Kind(C, _missing, thirty),
        "sparse": Kind(C, _csr, thirty),
        "sparse, default": Kind(C, _csr, few),
        "categories, one-vs-rest": Kind(R, _table, {**thirty, "categorical_splits": "one-vs-rest"}),
        "categories, subset": Kind(R, _table, {**thirty, "categorical_splits": "subset"}),
        "categories, selected": Kind(R, _table, few),
        "categories, classes": Kind(C, _table_binary, few),
        "monotone": Kind(C, _binary, {**thirty, "monotone_constraints": [1, 0, 0, -1, 0, 0]}),
        "interactions": Kind(R, _real, {**thirty, "interaction_constraints": [[0, 1], [2, 3, 4], [5]]}),
        "subsample": Kind(C, _binary, {**thirty, "subsample": 0.6}),
        "colsample": Kind(
            C, _binary, {**thirty, "colsample_bytree": 0.7, "colsample_bylevel": 0.8, "colsample_bynode": 0.7}
        ),
        "colsample_bytree, default": Kind(R, lambda: _real(300), {**few, "colsample_bytree": 0.6, "subsample": 0.8}),
        "regularized": Kind(
            C,
            _binary,
            {**thirty, "reg_alpha": 2.0, "min_split_loss": 0.5, "reg_lambda": 0.5, "min_child_weight": 3.0},
        ),
        "max_bin": Kind(R, _real, {**thirty, "max_bin": 16}),
        "max_leaves": Kind(C, _binary, {**thirty, "max_leaves": 6}),
        "early stopping": Kind(
            C, _binary, {"n_estimators": 200, "learning_rate": 0.5, "early_stopping": True, "validation_fraction": 0.3}
        ),
        "early stopping, X_val": Kind(
            C,
            _binary,
            {"n_estimators": 200, "learning_rate": 0.5, "early_stopping": True, "n_iter_no_change": 4},
            lambda: _head(_binary, 150),
        ),
        "rounds by X_val": Kind(R, _real, {"learning_rate": 0.3, "n_iter_no_change": 5}, lambda: _head(_real, 150)),
        "early stopping metric": Kind(
            C,
            _binary,
            {"n_estimators": 100, "learning_rate": 0.5, "early_stopping": True, "early_stopping_metric": "roc_auc"},
        ),
        "early stopping metric, folds": Kind(C, lambda: _binary(300), {**few, "early_stopping_metric": "roc_auc"}),
        "feature selection": Kind(C, _noise_features, few),
        "no feature selection": Kind(C, _noise_features, {**few, "feature_selection": False, "max_depth": 3}),
        "depth selection": Kind(C, _additive, few),
        "init zero": Kind(C, _binary, {**thirty, "init": "zero"}),
        "leaf means": Kind(R, _real, {**thirty, "leaf_rule": "mean"}),
    }


def _new_name(make: Callable[..., Any], params: dict[str, Any]) -> dict[str, Any]:
    """Parameters under the names that this version of the library has."""
    owner = getattr(make, "__self__", make)
    known = owner().get_params()
    named: dict[str, Any] = {"engine": "xgboost"} if "engine" in known else {}  # that of all versions
    for name, value in params.items():
        used = next(candidate for candidate in _PARAMETERS.get(name, (name,)) if candidate in known)
        named[used] = _OLD_VALUES.get((used, value), value) if isinstance(value, str) else value
    return named


def _estimator(make: Callable[..., Any], **params: Any) -> Any:
    return make(**_new_name(make, {**_DEFAULTS, **params}))


# --------------------------------------------------------------------------------------------- fits of several steps
_THIRTY = {"n_estimators": 30, "learning_rate": 0.2, "max_depth": 4}


def _warm_start() -> tuple[Any, Any]:
    X, y = _multiclass()
    model = _estimator(SCBoostClassifier, **{**_THIRTY, "n_estimators": 12}, warm_start=True).fit(X, y)
    return model.set_params(n_estimators=30).fit(X, y), X


def _resumed() -> tuple[Any, Any]:
    X, y = _binary()
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder) / "model", every=7)
        _estimator(SCBoostClassifier, **_THIRTY, subsample=0.8, callbacks=[checkpoint]).fit(X, y)
        return checkpoint.load().fit(X, y), X


def _resumed_default() -> tuple[Any, Any]:
    X, y = _real(300)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder) / "model", every=11)
        params = {"learning_rate": 0.3, "n_iter_no_change": 8, "cv": 3}
        _estimator(SCBoostRegressor, **params, callbacks=[checkpoint]).fit(X, y)
        return checkpoint.load().fit(X, y), X


def _init_model() -> tuple[Any, Any]:
    X, y = _binary()
    first = _estimator(SCBoostClassifier, **_THIRTY).fit(X[:300], y[:300])
    return _estimator(SCBoostClassifier, **_THIRTY).fit(X[300:], y[300:], init_model=first), X


def _init_model_file() -> tuple[Any, Any]:
    X, y = _real()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        _estimator(SCBoostRegressor, **_THIRTY).fit(X[:300], y[:300]).save_model(path)
        model = _estimator(SCBoostRegressor, **{**_THIRTY, "n_estimators": 10})
        return model.fit(X[300:], y[300:], init_model=path), X


def _batched(make: Callable[..., Any], data: tuple[Any, Any], **params: Any) -> tuple[Any, Any]:
    X, y = data
    parts = np.array_split(np.arange(len(y)), 4)
    with tempfile.TemporaryDirectory() as folder:
        batches = Batches(lambda: ((X[rows], y[rows]) for rows in parts), folder=folder)
        return _estimator(make, **params).fit(batches), X


_STEPS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "warm start": _warm_start,
    "resumed": _resumed,
    "resumed, default": _resumed_default,
    "init_model": _init_model,
    "init_model from a file": _init_model_file,
    "batches": lambda: _batched(SCBoostClassifier, _binary(), **_THIRTY),
    "batches, default": lambda: _batched(SCBoostRegressor, _real(300), cv=3, learning_rate=0.3, n_iter_no_change=8),
}


# ---------------------------------------------------------------------------------------------------------- snapshots
def _digest(values: Any) -> str:
    array = np.asarray(values)
    if array.dtype.kind in "fiub":
        # One sign of zero and one NaN, numbers as float64: equal values have equal hashes.
        array = np.asarray(array, dtype=np.float64) + 0.0
        content = np.where(np.isnan(array), np.nan, array).astype("<f8").tobytes()
    else:
        content = "\0".join(map(str, array.ravel().tolist())).encode()
    return hashlib.sha256(f"{array.shape}".encode() + content).hexdigest()


def _results(model: Any, X: Any) -> Iterator[tuple[str, Any]]:
    """Every numeric result of a fitted model."""
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            yield method, getattr(model, method)(X)
    trees = model.estimator is None
    if trees:
        yield "feature_importances_", model.feature_importances_
        yield "apply", model.apply(X)
        with tempfile.TemporaryDirectory() as folder:
            model.save_model(Path(folder) / "model.ubj")
            own = {"loss": model.loss} if isinstance(getattr(model, "loss", None), Loss) else {}
            yield "predict after load_model", load_model(Path(folder) / "model.ubj", **own).predict(X)
    if model.n_estimators_ <= _STAGES:
        method = "staged_predict_proba" if hasattr(model, "staged_predict_proba") else "staged_predict"
        yield method, np.stack([np.array(stage) for stage in getattr(model, method)(X)])
    for name in ("weights_", "intercept_", "n_estimators_", "learning_rate_", "best_iteration_", "classes_"):
        if hasattr(model, name):
            yield name, getattr(model, name)
    for name in ("training_log_", "selection_log_"):
        log = _attribute(model, name)
        yield name, sorted(log or ())
        yield from ((f"{name} {key}", values) for key, values in sorted((log or {}).items()))
    yield "selected_features_", _attribute(model, "selected_features_")
    yield "max_depth_", getattr(model, "max_depth_", None)


def _attribute(model: Any, name: str) -> Any:
    return next((getattr(model, n) for n in _ATTRIBUTES.get(name, (name,)) if hasattr(model, n)), None)


def _snapshot(name: str) -> dict[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in _STEPS:
            model, X = _STEPS[name]()
        else:
            kind = _kinds()[name]
            X, y = kind.data()
            model = _estimator(kind.make, **kind.params).fit(X, y, **kind.fit())
        return {result: _digest(values) for result, values in _results(model, X)}


def _take(pattern: str, *, verbose: bool) -> dict[str, dict[str, str]]:
    snapshots = {}
    for name in [*_kinds(), *_STEPS]:
        if pattern in name:
            start = time.process_time()
            snapshots[name] = _snapshot(name)
            if verbose:
                print(f"{time.process_time() - start:6.1f} s  {name}", file=sys.stderr, flush=True)
    return snapshots


def _differences(stored: dict[str, dict[str, str]], found: dict[str, dict[str, str]], pattern: str) -> Iterator[str]:
    for name in sorted({*stored, *found}):
        if pattern not in name:
            continue
        old, new = stored.get(name), found.get(name)
        if old is None or new is None:
            yield f"{name}: only in {'the stored file' if new is None else 'this version'}"
        elif old != new:
            results = [result for result in {**old, **new} if old.get(result) != new.get(result)]
            yield f"{name}: {', '.join(results)}"


def main(arguments: list[str] | None = None) -> int:
    """Write or check snapshots; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("command", choices=["write", "check"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--threads", type=int, default=1, help="n_jobs of the fits whose kind is not about threads")
    parser.add_argument("--only", default="", help="fit only kinds whose name contains this text")
    parser.add_argument("--verbose", action="store_true", help="print the CPU time of every kind")
    given = parser.parse_args(arguments)
    _DEFAULTS["n_jobs"] = given.threads
    versions = {package: str(import_module(package).__version__) for package in _PACKAGES}
    stored = json.loads(given.file.read_text()) if given.command == "check" else {}
    found = _take(given.only, verbose=given.verbose)
    if given.command == "write":
        document = {
            "command": "python tools/fit_snapshots.py check FILE",
            "machine": platform.machine(),
            "python": platform.python_version(),
            "versions": versions,
            "fits": found,
        }
        given.file.write_text(json.dumps(document, indent=1) + "\n")
        print(f"{len(found)} kinds of fits written to {given.file}")
        return 0
    if stored["versions"] != versions:
        print(f"note: stored with {stored['versions']}, found {versions}")
    differences = list(_differences(stored["fits"], found, given.only))
    print("\n".join(differences) or f"{len(found)} kinds of fits are identical")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
