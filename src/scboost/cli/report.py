"""``scboost report``."""

from __future__ import annotations

import argparse
from typing import Any

import numpy.typing as npt

from scboost import report
from scboost.cli.console import add_model_and_data, say
from scboost.cli.models import (
    Model,
    columns_of,
    read_model,
    require_labels_or_values,
    target_of,
    target_values,
    with_target,
)
from scboost.cli.output import check_output
from scboost.cli.tables import Source, TextFormat
from scboost.diagnostics._report import REPORT_ENDINGS

SUMMARY = "write a report about a model on held-out data"
EXAMPLES = (
    "scboost report model.json test.csv -o report.html",
    "scboost report model.json test.csv --train train.csv -o report.html",
    "scboost report model.json test.parquet --target churn --name 'Churn model' -o churn.md",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model_and_data(parser)
    parser.add_argument("--target", metavar="COLUMN", help="target column (default: that of the training table)")
    parser.add_argument("--train", metavar="DATA", help="training table, to compare scores and to find drift")
    parser.add_argument("--name", help="title of the report")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="report: .html, .json or .md")


def run(arguments: argparse.Namespace) -> int:
    """Evaluate a model on held-out data and write the report."""
    check_output(arguments.output, [arguments.model, arguments.data, arguments.train], REPORT_ENDINGS)
    model = read_model(arguments.model, arguments.data, arguments.threads)
    require_labels_or_values(model, arguments, distributions=True)
    target = target_of(model, arguments)
    X, y = _read(model, arguments.data, target, TextFormat.of(arguments))
    training: dict[str, Any] = {}
    if arguments.train:
        X_train, y_train = _read(model, arguments.train, target, TextFormat.of(arguments))
        training = {"X_train": X_train, "y_train": y_train}
    found = report(model, X, y, name=arguments.name, **training)
    say(f"{found.analysis.n_samples:,} samples evaluated, written to {found.save(arguments.output)}")
    return 0


def _read(model: Model, path: str, target: str, text: TextFormat) -> tuple[Any, npt.NDArray[Any]]:
    """Read the features and targets of a table."""
    source = Source(path, text)
    columns, kinds = columns_of(model, source)
    table = source.read([*columns, target], with_target(model, kinds, target, None))
    return table.select(columns), target_values(model, source, target, table.column(target), source.first_row)
