"""``scboost evaluate``."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
from sklearn import metrics

from scboost.cli.console import Counter, add_model_and_data, add_target, say
from scboost.cli.models import columns_of, read_model, target_of, target_values, with_target
from scboost.cli.tables import Source

SUMMARY = "score a model on a table with known targets"
EXAMPLES = (
    "scboost evaluate model.json test.csv",
    "scboost evaluate model.json test.parquet --json",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model_and_data(parser)
    add_target(parser)
    parser.add_argument("--json", action="store_true", help="write the figures as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Predict chunk by chunk, and measure."""
    model = read_model(arguments)
    source = Source(arguments.data)
    target, weight = target_of(model, arguments), arguments.weight
    columns, kinds = columns_of(model, source)
    kinds = with_target(model, kinds, target, weight)
    answers, predictions, weights = [], [], []
    counter = Counter("rows read")
    for row, table in source.chunks([*columns, target, *([weight] if weight else [])], kinds):
        answers.append(target_values(model, source, target, table.column(target), row))
        X = table.select(columns)
        predictions.append(model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X))
        if weight:
            weights.append(table.column(weight).to_numpy())
        counter.add(len(table))
    counter.end()
    found = _measure(
        model, np.concatenate(answers), np.concatenate(predictions), np.concatenate(weights) if weight else None
    )
    if arguments.json:
        say(json.dumps(found))
    else:
        for name, value in found.items():
            say(f"{name:<12} {value:,}" if isinstance(value, int) else f"{name:<12} {value:.6g}")
    return 0


def _measure(model: Any, y: Any, predicted: Any, w: Any) -> dict[str, float]:
    found: dict[str, float] = {"rows": len(y)}
    if predicted.ndim == 2 and not hasattr(model, "classes_"):
        for quantile, column in zip(model.quantile, predicted.T, strict=True):
            loss = metrics.mean_pinball_loss(y, column, alpha=quantile, sample_weight=w)
            found[f"pinball_{quantile}"] = float(loss)
        return found
    if not hasattr(model, "classes_"):
        found["rmse"] = float(metrics.root_mean_squared_error(y, predicted, sample_weight=w))
        found["mae"] = float(metrics.mean_absolute_error(y, predicted, sample_weight=w))
        if len(y) > 1:
            found["r2"] = float(metrics.r2_score(y, predicted, sample_weight=w))
        return found
    labels = model.classes_
    found["log_loss"] = float(metrics.log_loss(y, predicted, labels=labels, sample_weight=w))
    found["accuracy"] = float(metrics.accuracy_score(y, labels[predicted.argmax(axis=1)], sample_weight=w))
    if len(np.unique(y)) == len(labels):  # the area needs every class
        scores = predicted[:, 1] if len(labels) == 2 else predicted
        found["auc"] = float(metrics.roc_auc_score(y, scores, labels=labels, multi_class="ovr", sample_weight=w))
    return found
