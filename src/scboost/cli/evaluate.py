"""``scboost evaluate``."""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import metrics

from scboost import SCBoostClassifier, SCBoostRegressor
from scboost.cli.console import Progress, add_model_and_data, add_target, say
from scboost.cli.models import (
    Model,
    UnseenCategories,
    columns_of,
    read_model,
    target_of,
    target_values,
    with_target,
)
from scboost.cli.tables import DataError, Source, TextFormat

SUMMARY = "score a model on a table with known targets"
EXAMPLES = (
    "scboost evaluate model.json test.csv",
    "scboost evaluate model.json test.parquet --target price --json",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model_and_data(parser)
    add_target(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object; undefined scores are null")


def run(arguments: argparse.Namespace) -> int:
    """Predict chunk by chunk, then score."""
    model = read_model(arguments.model, arguments.data, arguments.threads)
    model.__fitted_model__().require_one_target("scboost evaluate")
    source = Source(arguments.data, TextFormat.of(arguments))
    target, weight = target_of(model, arguments), arguments.weight
    columns, kinds = columns_of(model, source)
    kinds = with_target(model, kinds, target, weight)
    targets, predictions, weights = [], [], []
    unseen = UnseenCategories(model, columns)
    with Progress("rows read") as progress:
        for row, table in source.chunks([*columns, target, *([weight] if weight else [])], kinds):
            if not len(table):
                raise DataError(f"{source.path}: the table has no rows")
            unseen.add(table)
            targets.append(target_values(model, source, target, table.column(target), row))
            predictions.append(predict(model, table.select(columns)))
            if weight:
                weights.append(table.column(weight).to_numpy())
            progress.add(len(table))
    unseen.report()
    w = np.concatenate(weights) if weight else None
    scores = score(model, np.concatenate(targets), np.concatenate(predictions), w)
    if arguments.json:
        finite = {name: value if math.isfinite(value) else None for name, value in scores.items()}
        say(json.dumps(finite, allow_nan=False))
    else:
        for name, value in scores.items():
            say(f"{name:<12} {value:,}" if isinstance(value, int) else f"{name:<12} {value:.6g}")
    return 0


def predict(model: Model, X: Any) -> npt.NDArray[Any]:
    """Return probabilities of a classifier, predictions of a regressor."""
    return np.asarray(model.predict_proba(X) if isinstance(model, SCBoostClassifier) else model.predict(X))


def score(model: Model, y: npt.NDArray[Any], predicted: npt.NDArray[Any], w: Any) -> dict[str, float]:
    """Score predictions by the usual metrics; those that are undefined for these samples are left out."""
    if isinstance(model, SCBoostClassifier):
        return {"rows": len(y), **_classification(model, y, predicted, w)}
    return {"rows": len(y), **_regression(model, y, predicted, w)}


def _regression(model: SCBoostRegressor, y: Any, predicted: Any, w: Any) -> dict[str, float]:
    if isinstance(model.quantile, list | tuple):
        return {
            f"pinball_{quantile}": float(metrics.mean_pinball_loss(y, column, alpha=quantile, sample_weight=w))
            for quantile, column in zip(model.quantile, predicted.T, strict=True)
        }
    found = {
        "rmse": float(metrics.root_mean_squared_error(y, predicted, sample_weight=w)),
        "mae": float(metrics.mean_absolute_error(y, predicted, sample_weight=w)),
    }
    return found | ({"r2": float(metrics.r2_score(y, predicted, sample_weight=w))} if len(y) > 1 else {})


def _classification(model: SCBoostClassifier, y: Any, predicted: Any, w: Any) -> dict[str, float]:
    labels = model.classes_
    found = {
        "log_loss": float(metrics.log_loss(y, predicted, labels=labels, sample_weight=w)),
        "accuracy": float(metrics.accuracy_score(y, labels[predicted.argmax(axis=1)], sample_weight=w)),
    }
    if len(np.unique(y)) == len(labels):  # the AUC needs samples of every class
        p = predicted[:, 1] if len(labels) == 2 else predicted
        found["auc"] = float(metrics.roc_auc_score(y, p, labels=labels, multi_class="ovr", sample_weight=w))
    return found
