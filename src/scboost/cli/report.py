"""``scboost report``."""

from __future__ import annotations

import argparse

from scboost import report
from scboost.cli.console import add_model_and_data, say
from scboost.cli.models import columns_of, read_model, target_of, target_values, with_target
from scboost.cli.tables import Source

SUMMARY = "write an HTML report about a model on held-out data"
EXAMPLES = ("scboost report model.json test.csv -o report.html",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model_and_data(parser)
    parser.add_argument("--target", metavar="COLUMN", help="target column; that of the training by default")
    parser.add_argument("--name", help="name of the model in the report")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="HTML file")


def run(arguments: argparse.Namespace) -> int:
    """Write the HTML report of a model on held-out data, which should not be the training data."""
    model, source = read_model(arguments), Source(arguments.data)
    target = target_of(model, arguments)
    columns, kinds = columns_of(model, source)
    table = source.read([*columns, target], with_target(model, kinds, target, None))
    y = target_values(model, source, target, table.column(target), source.first_row)
    found = report(model, table.select(columns), y, name=arguments.name)
    say(f"{found.analysis.n_samples:,} samples evaluated, written to {found.save(arguments.output)}")
    return 0
