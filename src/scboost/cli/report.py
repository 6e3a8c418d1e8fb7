"""``scboost report``."""

from __future__ import annotations

import argparse

from scboost import report
from scboost.cli.console import add_model_and_data, say
from scboost.cli.models import columns_of, read_model, target_of, target_values, with_target
from scboost.cli.output import check_output
from scboost.cli.tables import Source, TextFormat

SUMMARY = "write an HTML report about a model on held-out data"
EXAMPLES = (
    "scboost report model.json test.csv -o report.html",
    "scboost report model.json test.parquet --target churn --name 'Churn model' -o churn.html",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model_and_data(parser)
    parser.add_argument("--target", metavar="COLUMN", help="target column (default: that of the training table)")
    parser.add_argument("--name", help="title of the report")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="report, .html")


def run(arguments: argparse.Namespace) -> int:
    """Evaluate a model on held-out data and write the report."""
    check_output(arguments.output, [arguments.model, arguments.data], (".html", ".htm"))
    model = read_model(arguments.model, arguments.data, arguments.threads)
    source = Source(arguments.data, TextFormat.of(arguments))
    target = target_of(model, arguments)
    columns, kinds = columns_of(model, source)
    table = source.read([*columns, target], with_target(model, kinds, target, None))
    y = target_values(model, source, target, table.column(target), source.first_row)
    found = report(model, table.select(columns), y, name=arguments.name)
    say(f"{found.analysis.n_samples:,} samples evaluated, written to {found.save(arguments.output)}")
    return 0
