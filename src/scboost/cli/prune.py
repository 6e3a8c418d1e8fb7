"""``scboost prune``."""

from __future__ import annotations

import argparse

from scboost import prune
from scboost.cli.console import add_model_and_data, add_target, say
from scboost.cli.models import columns_of, read_model, require_labels_or_values, target_of, target_values, with_target
from scboost.cli.output import MODEL_ENDINGS, check_output
from scboost.cli.tables import Source
from scboost.cli.text import TextFormat

SUMMARY = "keep the trees of a model that matter, with new weights"
EXAMPLES = ("scboost prune model.json valid.csv --max-trees 20 -o small.json",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model_and_data(parser)
    add_target(parser)
    parser.add_argument("--max-trees", type=int, required=True, metavar="N", help="maximum number of trees, per class")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="pruned model, .json or .ubj")


def run(arguments: argparse.Namespace) -> int:
    """Select and weight trees on held-out data."""
    check_output(arguments.output, [arguments.model, arguments.data], MODEL_ENDINGS)
    model = read_model(arguments.model, arguments.data, arguments.threads)
    require_labels_or_values(model, arguments)
    source = Source(arguments.data, TextFormat.of(arguments))
    target, weight = target_of(model, arguments), arguments.weight
    columns, kinds = columns_of(model, source)
    table = source.read([*columns, target, *([weight] if weight else [])], with_target(model, kinds, target, weight))
    y = target_values(model, source, target, table.column(target), source.first_row)
    pruned = prune(
        model,
        table.select(columns),
        y,
        max_trees=arguments.max_trees,
        sample_weight=table.column(weight).to_numpy() if weight else None,
    )
    pruned.model.save_model(arguments.output)
    say(pruned.verdict)
    say(f"written to {arguments.output}")
    return 0
