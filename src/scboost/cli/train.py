"""``scboost train``."""

from __future__ import annotations

import argparse
import ast
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from scboost import SCBoostClassifier, SCBoostRegressor
from scboost.cli.console import say
from scboost.cli.models import check_no_gap
from scboost.cli.tables import DataError, Kinds, Source, is_category, pyarrow

_MOST_CLASSES = 20  # whole numbers of more values than these are taken for a quantity
_MOST_SHOWN = 60


SUMMARY = "train a model on a table and write it to a model file"
EXAMPLES = (
    "scboost train train.csv --target price -o model.json",
    "scboost train train.parquet --target churn -o model.json --ignore customer_id --valid valid.parquet",
    "scboost train train.csv --target label -o model.json --param preset=best --param random_state=0",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "data", metavar="DATA", help="rows: .csv, .tsv (also .gz, .bz2, .zst), .parquet, .feather, .arrow"
    )
    parser.add_argument("--target", required=True, metavar="COLUMN", help="column to predict")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the model file, .json or .ubj")
    parser.add_argument(
        "--task",
        choices=["auto", "classification", "regression"],
        default="auto",
        help="auto: classification if the target is text or has at most 20 values, all of them whole numbers",
    )
    parser.add_argument("--valid", metavar="DATA", help="rows that choose the number of rounds; see X_val of fit")
    parser.add_argument("--weight", metavar="COLUMN", help="column of row weights")
    parser.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE", help="parameter of the estimator; may be repeated"
    )
    parser.add_argument("--categorical", action="append", default=[], metavar="COLUMN", help="take it as categories")
    parser.add_argument("--numeric", action="append", default=[], metavar="COLUMN", help="take it as numbers")
    parser.add_argument("--ignore", action="append", default=[], metavar="COLUMN", help="leave it out")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(arguments: argparse.Namespace) -> int:
    """Fit a model and write it."""
    if Path(arguments.output).suffix not in {".json", ".ubj"}:  # before the work, not after it
        raise DataError(f"-o {arguments.output}: the name of a model file must end in .json or .ubj")
    source = Source(arguments.data)
    target, weight = arguments.target, arguments.weight
    source.require([target, *([weight] if weight else []), *arguments.ignore])
    columns = [name for name in source.names if name not in {target, weight, *arguments.ignore}]
    source.require([*arguments.categorical, *arguments.numeric])
    kinds = Kinds(
        numeric=frozenset([*arguments.numeric, *([weight] if weight else [])]),
        categorical=frozenset(arguments.categorical),
    )
    table = source.read([*columns, target, *([weight] if weight else [])], kinds)
    check_no_gap(source, target, table.column(target), source.first_row)
    y = _target(table.column(target))
    task = _task(y) if arguments.task == "auto" else arguments.task
    if task == "regression" and y.dtype == object:
        raise DataError(f"{source.path}: column {target!r} holds text such as {y[0]!r}; regression needs numbers")
    model = (SCBoostClassifier if task == "classification" else SCBoostRegressor)(
        **{"verbose": 0 if arguments.quiet else 1, **_parameters(arguments.param)}
    )
    X = table.select(columns)
    for name, column in zip(X.schema.names, X.columns, strict=True):
        if pyarrow().types.is_temporal(column.type):
            raise DataError(
                f"{source.path}: column {name!r} holds dates or times such as {column.drop_null()[0]}; leave it out "
                f"with --ignore {name!r}, or write numbers in its place, such as the year and the day of the week"
            )
    how = " (by its values; --task overrides)" if arguments.task == "auto" else ""
    say(f"{source.path}: {len(table):,} rows; {task} of {target!r}{how}")
    _show_kinds(X)
    fit: dict[str, Any] = {}
    if weight:
        fit["sample_weight"] = table.column(weight).to_numpy()
    if arguments.valid:
        fit |= _validation_rows(arguments, X, y)
    model.fit(X, y, **fit)
    model.target_name_ = target
    model.save_model(arguments.output)
    say(f"{model.n_estimators_} rounds at learning rate {model.learning_rate_:.4g}, written to {arguments.output}")
    return 0


def _validation_rows(arguments: argparse.Namespace, X: Any, y: npt.NDArray[Any]) -> dict[str, Any]:
    """Read the validation rows, with columns of the same kinds as those of the training rows."""
    source = Source(arguments.valid)
    target, weight = arguments.target, arguments.weight
    names = list(X.schema.names)
    categorical = frozenset(name for name, kind in zip(names, X.schema.types, strict=True) if is_category(kind))
    numeric = frozenset(names) - categorical | ({weight} if weight else set())
    kinds = (
        Kinds(numeric, categorical, frozenset([target]))
        if y.dtype == object
        else Kinds(numeric | {target}, categorical)
    )
    table = source.read([*names, target, *([weight] if weight else [])], kinds)
    check_no_gap(source, target, table.column(target), source.first_row)
    rows = {"X_val": table.select(names), "y_val": _target(table.column(target))}
    return rows | ({"sample_weight_val": table.column(weight).to_numpy()} if weight else {})


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
    """Write the kind of each column: how the estimators will read it."""
    types = pyarrow().types
    width = max(map(len, X.schema.names), default=0)
    for name, column in list(zip(X.schema.names, X.columns, strict=True))[:_MOST_SHOWN]:
        if is_category(column.type):
            kind = f"categorical, {len(column.unique())} values"
        else:
            kind = "empty" if types.is_null(column.type) else "numeric"
        missing = f", {column.null_count:,} missing" if column.null_count else ""
        say(f"  {name:<{width}}  {kind}{missing}")
    if len(X.schema.names) > _MOST_SHOWN:
        say(f"  ... and {len(X.schema.names) - _MOST_SHOWN} more columns")
