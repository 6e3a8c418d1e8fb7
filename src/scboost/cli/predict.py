"""``scboost predict``."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

from scboost import SCBoostClassifier, SCBoostRegressor
from scboost.cli.console import Progress, add_model_and_data
from scboost.cli.models import Model, UnseenCategories, columns_of, read_model
from scboost.cli.output import Output, check_output
from scboost.cli.tables import DataError, Source, TextFormat, pyarrow

SUMMARY = "predict the rows of a table of any size"
EXAMPLES = (
    "scboost predict model.json new.csv -o predictions.csv",
    "scboost predict model.json new.parquet -o predictions.parquet --proba --keep customer_id",
    "scboost predict prices.ubj new.csv -o predictions.csv --interval 0.9",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model_and_data(parser)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="table of predictions: .csv or .tsv (also compressed), .parquet, .feather or .arrow",
    )
    parser.add_argument("--proba", action="store_true", help="add the probability of each class")
    parser.add_argument(
        "--interval",
        type=float,
        metavar="COVERAGE",
        help="add the bounds of prediction intervals (regression) with this coverage, such as 0.9",
    )
    parser.add_argument(
        "--keep", action="append", default=[], metavar="COLUMN", help="copy this column of DATA; may be repeated"
    )


def run(arguments: argparse.Namespace) -> int:
    """Predict chunk by chunk: memory does not grow with the table."""
    check_output(arguments.output, [arguments.model, arguments.data])
    model = read_model(arguments.model, arguments.data, arguments.threads)
    if arguments.proba and not isinstance(model, SCBoostClassifier):
        raise DataError(f"{arguments.model} is a regressor: --proba needs a classifier")
    if arguments.interval is not None:
        _check_interval(model, arguments)
    source = Source(arguments.data, TextFormat.of(arguments))
    columns, kinds = columns_of(model, source)
    keep = list(dict.fromkeys(arguments.keep))
    new = list(_predictions(model, None, arguments))
    for name in keep:
        if name in new:
            raise DataError(
                f"--keep {name}: the output has a column of predictions with this name; rename that of DATA"
            )
    kept = [name for name in keep if name not in columns]
    kinds = replace(kinds, labels=frozenset(kept))
    unseen = UnseenCategories(model, columns)
    with Output(arguments.output) as output, Progress("rows predicted") as progress:
        for _, table in source.chunks([*columns, *kept], kinds):
            unseen.add(table)
            X = table.select(columns) if len(table) else None
            found = _predictions(model, X, arguments)
            output.write(pyarrow().table({**{name: table.column(name) for name in keep}, **found}))
            progress.add(len(table))
    unseen.report()
    return 0


def _check_interval(model: Model, arguments: argparse.Namespace) -> None:
    """Refuse intervals before any row is read."""
    if not isinstance(model, SCBoostRegressor):
        raise DataError(f"{arguments.model} is not a regressor: --interval needs one")
    if not 0 < arguments.interval < 1:
        raise DataError(f"--interval {arguments.interval:g}: the coverage must be between 0 and 1, such as 0.9")
    if model.__fitted_model__().conformal is None:
        raise DataError(
            f"{arguments.model} has no out-of-fold predictions, which --interval needs: train it without "
            "n_estimators, or call calibrate(X_cal, y_cal) in Python and save the model again"
        )


def _predictions(model: Model, X: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    """Columns of predictions and of the bounds of intervals; without rows if X is None."""
    found = _point_predictions(model, X, proba=arguments.proba)
    if arguments.interval is None or not isinstance(model, SCBoostRegressor):
        return found
    bounds = np.zeros((0, 2)) if X is None else model.predict_interval(X, arguments.interval)
    return {**found, "lower": pyarrow().array(bounds[:, 0]), "upper": pyarrow().array(bounds[:, 1])}


def _point_predictions(model: Model, X: Any, *, proba: bool) -> dict[str, Any]:
    """Columns of labels, probabilities, values or quantiles; without rows if X is None."""
    pa = pyarrow()
    n_targets = model.__fitted_model__().n_targets
    if n_targets > 1:
        several = model.predict_proba if proba and isinstance(model, SCBoostClassifier) else model.predict
        values = np.zeros((0, n_targets)) if X is None else several(X)
        return {
            f"{'probability' if proba else 'prediction'}_{k}": pa.array(column) for k, column in enumerate(values.T)
        }
    if isinstance(model, SCBoostClassifier):
        labels = model.classes_.tolist()
        if not proba:
            return {"prediction": pa.array(model.classes_[:0] if X is None else model.predict(X))}
        p = np.zeros((0, len(labels))) if X is None else model.predict_proba(X)
        columns = {f"probability_{label}": pa.array(p[:, k]) for k, label in enumerate(labels)}
        return {"prediction": pa.array(model.classes_[p.argmax(axis=1)]), **columns}
    if isinstance(model.quantile, list | tuple):
        values = np.zeros((0, len(model.quantile))) if X is None else model.predict(X)
        return {f"quantile_{q}": pa.array(column) for q, column in zip(model.quantile, values.T, strict=True)}
    return {"prediction": pa.array(np.zeros(0) if X is None else model.predict(X))}
