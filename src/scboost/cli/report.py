"""``scboost report``."""

from __future__ import annotations

import argparse
from typing import Any

from scboost import report
from scboost.cli.console import add_model_and_data, add_task_columns, say
from scboost.cli.models import read_model
from scboost.cli.output import check_output
from scboost.cli.roles import Roles, read_with_target
from scboost.cli.text import TextFormat
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
    add_task_columns(parser)
    parser.add_argument("--train", metavar="DATA", help="training table, to compare scores and to find drift")
    parser.add_argument("--name", help="title of the report")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="report: .html, .json or .md")


def run(arguments: argparse.Namespace) -> int:
    """Evaluate a model on held-out data and write the report."""
    check_output(arguments.output, [arguments.model, arguments.data, arguments.train], REPORT_ENDINGS)
    model = read_model(arguments.model, arguments.data, arguments.threads)
    model.__fitted_model__().require_one_target(f"scboost {arguments.command}")
    roles = Roles.of_one_target(model, arguments)
    X, y, qid = read_with_target(model, arguments.data, roles, TextFormat.of(arguments))
    training: dict[str, Any] = {}
    if arguments.train:
        X_train, y_train, qid_train = read_with_target(model, arguments.train, roles, TextFormat.of(arguments))
        training = {"X_train": X_train, "y_train": y_train, "qid_train": qid_train}
    found = report(model, X, y, qid=qid, name=arguments.name, **training)
    found.save(arguments.output)
    say(f"{found.analysis.n_samples:,} samples evaluated, written to {arguments.output}")
    return 0
