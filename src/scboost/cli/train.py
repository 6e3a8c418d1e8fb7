"""``scboost train``."""

from __future__ import annotations

import argparse
import ast
import warnings
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from scboost._data.encoder import Encoder
from scboost._data.identifiers import IdentifierWarning
from scboost._estimators.distribution import DistributionName
from scboost.cli.columns import suspicious_columns
from scboost.cli.console import TABLE_HELP, Elapsed, add_data, add_threads, say, warn
from scboost.cli.models import check_no_missing
from scboost.cli.output import MODEL_ENDINGS, check_output
from scboost.cli.roles import ESTIMATORS, Roles, events, requested_task, several, task_name
from scboost.cli.tables import Kinds, Source, is_category, is_date, pyarrow
from scboost.cli.text import DataError, TextFormat
from scboost.cli.training_summary import show_cross_validation, show_settings, show_validation

SUMMARY = "train a model on a table and write it to a model file"
EXAMPLES = (
    "scboost train train.csv --target price -o model.json",
    "scboost train train.csv --target price -o model.json --sep ';' --decimal ,",
    "scboost train train.parquet --target churn -o model.json --ignore customer_id --valid valid.parquet",
    "scboost train train.csv --target label -o model.json --param preset=best --param random_state=0",
    "scboost train clicks.csv --task ranking --target relevance --group query -o ranker.json",
    "scboost train patients.csv --task survival --target days --event died -o survival.json",
    "scboost train demand.csv --task distribution --target units --distribution negative_binomial -o demand.json",
    "scboost train plant.csv --target yield --target purity -o two_targets.json",
)
_MOST_CLASSES = 20  # integers with more distinct values than these are a regression target
_MOST_SHOWN = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_data(parser)
    add_threads(parser)
    parser.add_argument(
        "--target",
        action="append",
        required=True,
        metavar="COLUMN",
        help="target column: label, value, relevance or time; repeat it for several targets in one model",
    )
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="model file, .json or .ubj")
    parser.add_argument(
        "--task",
        type=task_name,
        choices=["auto", *ESTIMATORS],
        default="auto",
        help="auto: what --group, --event or --distribution belongs to; otherwise classification if the target is a "
        "string or has at most 20 distinct values, all of them integers, and regression if not",
    )
    parser.add_argument("--group", metavar="COLUMN", help="ranking: column that holds the query of each row")
    parser.add_argument(
        "--event", metavar="COLUMN", help="survival: column that says whether the event was observed (1) or not (0)"
    )
    parser.add_argument(
        "--distribution", choices=get_args(DistributionName), help="distribution: family (default: normal)"
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
    requested, given = requested_task(arguments), _parameters(arguments)
    source = Source(arguments.data, TextFormat.of(arguments))
    roles = Roles.of(requested, arguments)
    table, features = _read(arguments, source, roles)
    y = _target(source, table, roles)
    task = _task(y) if requested == "auto" else requested
    if task == "regression" and y.dtype == object:
        raise DataError(
            f"{source.path}: column {roles.targets[0]!r} holds strings such as {y[0]!r}; regression needs numbers"
        )
    roles = replace(roles, task=task)
    model = ESTIMATORS[task](**given)
    X = table.select(features)
    how = " (from its values; --task overrides)" if requested == "auto" else ""
    fields = "" if arguments.sep or source.usual_separator else f", fields separated by {source.separator!r}"
    say(f"{source.path}: {len(table):,} rows{fields}; {task} of {', '.join(map(repr, roles.targets))}{how}")
    _show_kinds(X)
    for text in suspicious_columns(X):
        warn(text)
    fit: dict[str, Any] = {"sample_weight": roles.weights(table), "qid": roles.queries(source, table, source.first_row)}
    if arguments.valid:
        fit |= _validation_set(arguments, roles, X, y)
    fit = {name: value for name, value in fit.items() if value is not None}
    with Elapsed("training", enabled=not arguments.quiet and not given["verbose"]), warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifierWarning)  # which suspicious_columns has given, with the option
        model.fit(X, y, **fit)
    model.target_name_ = roles.stored
    model.save_model(arguments.output)
    show_settings(model)
    if arguments.valid:
        show_validation(model, y, fit)
    else:
        show_cross_validation(model, y, fit.get("sample_weight"))
    say(f"written to {arguments.output}")
    return 0


def _read(arguments: argparse.Namespace, source: Source, roles: Roles) -> tuple[Any, list[str]]:
    """Read targets, weights and features; return the table and the names of the features."""
    source.require([*roles.columns, *arguments.ignore, *arguments.categorical, *arguments.numeric])
    features = [name for name in source.names if name not in {*roles.columns, *arguments.ignore}]
    if not features:
        raise DataError(f"{source.path}: no column is left as a feature")
    kinds = Kinds(numeric=frozenset(arguments.numeric), categorical=frozenset(arguments.categorical))
    table = source.read([*features, *roles.columns], roles.kinds(kinds))
    for name in features:
        column = table.column(name)
        if pyarrow().types.is_temporal(column.type) and not is_date(column.type):
            raise DataError(
                f"{source.path}: column {name!r} holds durations or times of day such as {column.drop_null()[0]}; "
                f"leave it out with --ignore {name!r}, or replace it by a number such as hours"
            )
    return table, features


def _validation_set(arguments: argparse.Namespace, roles: Roles, X: Any, y: npt.NDArray[Any]) -> dict[str, Any]:
    """Read the validation set, with features of the same kinds as those of the training set."""
    source = Source(arguments.valid, TextFormat.of(arguments))
    names = list(X.schema.names)
    categorical = frozenset(name for name, kind in zip(names, X.schema.types, strict=True) if is_category(kind))
    dates = frozenset(name for name, kind in zip(names, X.schema.types, strict=True) if is_date(kind))
    features = Kinds(frozenset(names) - categorical - dates, categorical, dates=dates)
    kinds = roles.kinds(features, text_target=y.dtype == object)
    if y.dtype != object:
        kinds = kinds.with_numeric(roles.targets)
    table = source.read([*names, *roles.columns], kinds)
    return {
        "X_val": table.select(names),
        "y_val": _target(source, table, roles),
        "sample_weight_val": roles.weights(table),
        "qid_val": roles.queries(source, table, source.first_row),
    }


def _target(source: Source, table: Any, roles: Roles) -> npt.NDArray[Any]:
    """Return the target as the estimators take it."""
    if len(roles.targets) > 1:
        return several(table, roles.targets)
    target = roles.targets[0]
    check_no_missing(source, target, table.column(target), source.first_row)
    values = _values(table.column(target))
    if roles.event is None:
        return values
    return np.column_stack([values, events(source, roles.event, table.column(roles.event), source.first_row)])


def _parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters of the estimator."""
    parameters: dict[str, Any] = {"verbose": 0, "n_jobs": arguments.threads}
    if arguments.distribution is not None:
        parameters["distribution"] = arguments.distribution
    for text in arguments.param:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise DataError(f"--param {text}: write it as NAME=VALUE")
        if name == "distribution" and arguments.distribution is not None:
            raise DataError(f"--param {text} and --distribution {arguments.distribution}: give one of them")
        try:
            parameters[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            parameters[name] = value
    return parameters


def _values(column: Any) -> npt.NDArray[Any]:
    types = pyarrow().types
    if types.is_integer(column.type) or types.is_floating(column.type):
        return np.asarray(column.to_numpy())
    if types.is_decimal(column.type):
        return np.asarray(column.cast(pyarrow().float64()).to_numpy())
    return np.array([str(value) for value in column.to_pylist()], dtype=object)


def _task(y: npt.NDArray[Any]) -> str:
    """Infer the task from the target; several targets are labels if all values are 0 and 1."""
    if y.dtype == object:
        return "classification"
    values = np.unique(y[~np.isnan(y)] if y.ndim == 2 else y)
    if y.ndim == 2:
        return "classification" if np.isin(values, (0, 1)).all() else "regression"
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
