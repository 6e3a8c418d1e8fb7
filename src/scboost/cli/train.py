"""``scboost train``."""

from __future__ import annotations

import argparse
import ast
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost import SCBoostClassifier, SCBoostRegressor
from scboost._data.encoder import Encoder
from scboost._data.identifiers import IdentifierWarning
from scboost.cli.columns import suspicious_columns
from scboost.cli.console import TABLE_HELP, Elapsed, add_data, add_threads, say, warn
from scboost.cli.evaluate import predict, score
from scboost.cli.models import Model, check_no_missing
from scboost.cli.output import MODEL_ENDINGS, check_output
from scboost.cli.tables import DataError, Kinds, Source, TextFormat, is_category, is_date, pyarrow

SUMMARY = "train a model on a table and write it to a model file"
EXAMPLES = (
    "scboost train train.csv --target price -o model.json",
    "scboost train train.csv --target price -o model.json --sep ';' --decimal ,",
    "scboost train train.parquet --target churn -o model.json --ignore customer_id --valid valid.parquet",
    "scboost train train.csv --target label -o model.json --param preset=best --param random_state=0",
)
_MOST_CLASSES = 20  # integers with more distinct values than these are a regression target
_MOST_SHOWN = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_data(parser)
    add_threads(parser)
    parser.add_argument("--target", required=True, metavar="COLUMN", help="target column")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="model file, .json or .ubj")
    parser.add_argument(
        "--task",
        choices=["auto", "classification", "regression"],
        default="auto",
        help="auto: classification if the target is a string or has at most 20 distinct values, all of them integers",
    )
    parser.add_argument("--valid", metavar="DATA", help=f"validation set, for early stopping and scores: {TABLE_HELP}")
    parser.add_argument("--weight", metavar="COLUMN", help="column of sample weights")
    parser.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE", help="estimator parameter; may be repeated"
    )
    parser.add_argument(
        "--categorical", action="append", default=[], metavar="COLUMN", help="treat as categorical; may be repeated"
    )
    parser.add_argument(
        "--numeric", action="append", default=[], metavar="COLUMN", help="treat as numeric; may be repeated"
    )
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="COLUMN", help="do not use as a feature; may be repeated"
    )
    parser.add_argument("--quiet", action="store_true", help="show no progress")


def run(arguments: argparse.Namespace) -> int:
    """Fit a model and write it."""
    check_output(arguments.output, [arguments.data, arguments.valid], MODEL_ENDINGS)
    source = Source(arguments.data, TextFormat.of(arguments))
    table, features = _read(arguments, source)
    target, weight = arguments.target, arguments.weight
    y = _target(table.column(target))
    task = _task(y) if arguments.task == "auto" else arguments.task
    if task == "regression" and y.dtype == object:
        raise DataError(f"{source.path}: column {target!r} holds strings such as {y[0]!r}; regression needs numbers")
    given = {"verbose": 0, "n_jobs": arguments.threads, **_parameters(arguments.param)}
    model: Model = (SCBoostClassifier if task == "classification" else SCBoostRegressor)(**given)
    X = table.select(features)
    how = " (from its values; --task overrides)" if arguments.task == "auto" else ""
    say(f"{source.path}: {len(table):,} rows; {task} of {target!r}{how}")
    _show_kinds(X)
    for text in suspicious_columns(X):
        warn(text)
    fit: dict[str, Any] = {}
    if weight:
        fit["sample_weight"] = table.column(weight).to_numpy()
    if arguments.valid:
        fit |= _validation_set(arguments, X, y)
    with Elapsed("training", enabled=not arguments.quiet and not given["verbose"]), warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifierWarning)  # which suspicious_columns has given, with the option
        model.fit(X, y, **fit)
    model.target_name_ = target
    model.save_model(arguments.output)
    _show_settings(model)
    if arguments.valid:
        _show_validation(model, y, fit)
    else:
        _show_cross_validation(model, y, fit.get("sample_weight"))
    say(f"written to {arguments.output}")
    return 0


def _read(arguments: argparse.Namespace, source: Source) -> tuple[Any, list[str]]:
    """Read target, weights and features; return the table and the names of the features."""
    target, weight = arguments.target, arguments.weight
    others = [target, *([weight] if weight else [])]
    source.require([*others, *arguments.ignore, *arguments.categorical, *arguments.numeric])
    features = [name for name in source.names if name not in {*others, *arguments.ignore}]
    if not features:
        raise DataError(f"{source.path}: no column is left as a feature")
    kinds = Kinds(
        numeric=frozenset([*arguments.numeric, *([weight] if weight else [])]),
        categorical=frozenset(arguments.categorical),
    )
    table = source.read([*features, *others], kinds)
    check_no_missing(source, target, table.column(target), source.first_row)
    for name in features:
        column = table.column(name)
        if pyarrow().types.is_temporal(column.type) and not is_date(column.type):
            raise DataError(
                f"{source.path}: column {name!r} holds durations or times of day such as {column.drop_null()[0]}; "
                f"leave it out with --ignore {name!r}, or replace it by a number such as hours"
            )
    return table, features


def _validation_set(arguments: argparse.Namespace, X: Any, y: npt.NDArray[Any]) -> dict[str, Any]:
    """Read the validation set, with features of the same kinds as those of the training set."""
    source = Source(arguments.valid, TextFormat.of(arguments))
    target, weight = arguments.target, arguments.weight
    names = list(X.schema.names)
    categorical = frozenset(name for name, kind in zip(names, X.schema.types, strict=True) if is_category(kind))
    dates = frozenset(name for name, kind in zip(names, X.schema.types, strict=True) if is_date(kind))
    numeric = frozenset(names) - categorical - dates | ({weight} if weight else set())
    kinds = (
        Kinds(numeric, categorical, frozenset([target]), dates)
        if y.dtype == object
        else Kinds(numeric | {target}, categorical, dates=dates)
    )
    table = source.read([*names, target, *([weight] if weight else [])], kinds)
    check_no_missing(source, target, table.column(target), source.first_row)
    found = {"X_val": table.select(names), "y_val": _target(table.column(target))}
    return found | ({"sample_weight_val": table.column(weight).to_numpy()} if weight else {})


def _parameters(given: list[str]) -> dict[str, Any]:
    parameters = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise DataError(f"--param {text}: write it as NAME=VALUE")
        try:
            parameters[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            parameters[name] = value
    return parameters


def _target(column: Any) -> npt.NDArray[Any]:
    types = pyarrow().types
    if types.is_integer(column.type) or types.is_floating(column.type):
        return np.asarray(column.to_numpy())
    if types.is_decimal(column.type):
        return np.asarray(column.cast(pyarrow().float64()).to_numpy())
    return np.array([str(value) for value in column.to_pylist()], dtype=object)


def _task(y: npt.NDArray[Any]) -> str:
    if y.dtype == object:
        return "classification"
    values = np.unique(y)
    few = len(values) <= _MOST_CLASSES and bool((values == np.round(values)).all())
    return "classification" if few else "regression"


def _show_kinds(X: Any) -> None:
    """Print the kind of each feature: how the estimators will read it."""
    types = pyarrow().types
    width = max(map(len, X.schema.names), default=0)
    for name, column in list(zip(X.schema.names, X.columns, strict=True))[:_MOST_SHOWN]:
        if is_category(column.type):
            kind = f"categorical, {len(column.drop_null().unique())} categories"
        elif is_date(column.type):
            kind = f"date, expanded to {', '.join(Encoder.learn(X.select([name])).features.parts[0] or ())}"
        else:
            kind = "empty" if types.is_null(column.type) else "numeric"
        missing = f", {column.null_count:,} missing" if column.null_count else ""
        say(f"  {name:<{width}}  {kind}{missing}")
    if len(X.schema.names) > _MOST_SHOWN:
        say(f"  ... and {len(X.schema.names) - _MOST_SHOWN} more features")


def _show_settings(model: Model) -> None:
    """Print what was used, selected or given."""
    parts = [f"{model.n_estimators_} rounds", f"learning rate {model.learning_rate_:.4g}"]
    if getattr(model, "max_depth_", None) is not None:
        parts.append(f"max depth {model.max_depth_}")
    fitted = model.__fitted_model__()
    if fitted.tree_shape:
        parts.append(f"{fitted.tree_shape} trees")
    if fitted.selected_features:
        parts.append(f"{len(fitted.selected_features)} of {fitted.encoder.n_features} features")
    if fitted.selection.categorical_splits:
        parts.append(f"{fitted.selection.categorical_splits} categorical splits")
    say(f"settings: {', '.join(parts)}")


def _show_validation(model: Model, y: npt.NDArray[Any], fit: dict[str, Any]) -> None:
    """Print the scores on the validation set beside those of a constant prediction."""
    y_val, w = fit["y_val"], fit.get("sample_weight_val")
    predicted = predict(model, fit["X_val"])
    w_train = fit.get("sample_weight")
    constant = np.broadcast_to(_constant(model, y, w_train), predicted.shape)
    scores, baseline = score(model, y_val, predicted, w), score(model, y_val, constant, w)
    parts = [f"{name} {value:.4g} (constant prediction: {baseline[name]:.4g})" for name, value in scores.items()][1:]
    say(f"validation set: {', '.join(parts)}")


def _constant(model: Model, y: npt.NDArray[Any], w: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    """Return the best constant prediction on the training set."""
    fitted = model.__fitted_model__()
    raw = fitted.loss.initial_score(_encoded(model, y), w)
    constant: npt.NDArray[Any] = np.asarray(fitted.loss.link.inverse(np.asarray(raw, np.float64).reshape(-1, 1)))[0]
    return constant


def _encoded(model: Model, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the target as the loss takes it."""
    values = np.searchsorted(model.classes_, y) if isinstance(model, SCBoostClassifier) else y
    return np.asarray(values, dtype=np.float64)


def _show_cross_validation(model: Model, y: npt.NDArray[Any], w: npt.NDArray[Any] | None) -> None:
    """Print the loss of the fold models at the selected round beside that of a constant prediction."""
    fitted = model.__fitted_model__()
    if not fitted.selection.log:
        say("no validation score: give --valid DATA, or leave n_estimators at its default")
        return
    column = next(name for name in fitted.selection.log if name != "round")
    if column != "validation_loss":  # a metric, of which higher is better
        score = float(np.max(fitted.selection.log[column]))
        say(f"cross-validation: {column.removeprefix('validation_')} {score:.4g}")
        return
    loss = float(np.min(fitted.selection.log[column]))
    target = _encoded(model, y)
    raw = np.asarray(fitted.loss.initial_score(target, w), dtype=np.float64)
    constant = float(fitted.loss.mean(target, np.tile(raw[:, None], len(y)), w))
    name = "log-loss" if isinstance(model, SCBoostClassifier) else f"{model.loss} loss"
    say(f"cross-validation: {name} {loss:.4g} (constant prediction: {constant:.4g})")
