"""``scboost evaluate``."""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

import numpy as np

from scboost.cli.console import Progress, add_model_and_data, add_roles, say
from scboost.cli.models import UnseenCategories, columns_of, has_text_labels, read_model
from scboost.cli.roles import Roles
from scboost.cli.scores import predict, score
from scboost.cli.tables import Source
from scboost.cli.text import DataError, TextFormat

SUMMARY = "score a model on a table with known targets"
EXAMPLES = (
    "scboost evaluate model.json test.csv",
    "scboost evaluate model.json test.parquet --target price --json",
    "scboost evaluate ranker.json test.csv --target relevance --group query",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model_and_data(parser)
    add_roles(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object; undefined scores are null")


def run(arguments: argparse.Namespace) -> int:
    """Predict chunk by chunk, then score."""
    model = read_model(arguments.model, arguments.data, arguments.threads)
    roles = Roles.of_model(model, arguments)
    source = Source(arguments.data, TextFormat.of(arguments))
    columns, kinds = columns_of(model, source)
    text = has_text_labels(model)
    kinds = roles.kinds(kinds, text_target=text)
    if not text:
        kinds = kinds.with_numeric(roles.targets)
    targets, predictions, weights, queries = [], [], list[Any](), list[Any]()
    unseen = UnseenCategories(model, columns)
    with Progress("rows read") as progress:
        for row, table in source.chunks([*columns, *roles.columns], kinds):
            if not len(table):
                raise DataError(f"{source.path}: the table has no rows")
            unseen.add(table)
            targets.append(roles.evaluated(model, source, table, row))
            predictions.append(predict(model, table.select(columns)))
            weights.append(roles.weights(table))
            queries.append(roles.queries(source, table, row))
            progress.add(len(table))
    unseen.report()
    w = np.concatenate(weights) if roles.weight else None
    query = np.concatenate(queries) if roles.group else None
    scores = score(model, np.concatenate(targets), np.concatenate(predictions), w, query)
    if arguments.json:
        finite = {name: value if math.isfinite(value) else None for name, value in scores.items()}
        say(json.dumps(finite, allow_nan=False))
    else:
        width = max(12, *map(len, scores))
        for name, value in scores.items():
            say(f"{name:<{width}} {value:,}" if isinstance(value, int) else f"{name:<{width}} {value:.6g}")
    return 0
