"""``scboost compress``."""

from __future__ import annotations

import argparse

from scboost import compress
from scboost.cli.console import add_model_and_data, add_task_columns, say
from scboost.cli.models import columns_of, read_model, require_compressible
from scboost.cli.output import MODEL_ENDINGS, check_output
from scboost.cli.roles import Roles, read_with_target
from scboost.cli.tables import Source
from scboost.cli.text import TextFormat

SUMMARY = "make a model of a few new trees that predicts nearly the same"
EXAMPLES = (
    "scboost compress model.json train.csv -o small.json",
    "scboost compress model.json train.csv --max-trees 50 --max-bytes 30000 --certify test.csv -o small.json",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model_and_data(parser)
    parser.add_argument("--max-trees", type=int, default=20, metavar="N", help="maximum number of trees (default: 20)")
    parser.add_argument(
        "--max-leaves",
        type=int,
        metavar="N",
        help="maximum number of leaves of a tree (default: 64, or 96 for more than 20 trees)",
    )
    parser.add_argument(
        "--max-bytes", type=int, metavar="N", help="maximum size of a .ubj file (default: a tenth of the model)"
    )
    parser.add_argument(
        "--certify", metavar="DATA", help="table of samples that the model does not know, with targets, for the bounds"
    )
    parser.add_argument("--target", metavar="COLUMN", help="target column (default: that of the training table)")
    add_task_columns(parser)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (default: 0)")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="compressed model, .json or .ubj")


def run(arguments: argparse.Namespace) -> int:
    """Compress a model and print its certificate."""
    check_output(arguments.output, [arguments.model, arguments.data, arguments.certify], MODEL_ENDINGS)
    model = read_model(arguments.model, arguments.data, arguments.threads)
    require_compressible(model, arguments)
    source = Source(arguments.data, TextFormat.of(arguments))
    columns, kinds = columns_of(model, source)
    X_certify = y_certify = qid_certify = None
    if arguments.certify is not None:
        roles = Roles.of_one_target(model, arguments)
        X_certify, y_certify, qid_certify = read_with_target(model, arguments.certify, roles, TextFormat.of(arguments))
    small = compress(
        model,
        source.read(columns, kinds),
        max_trees=arguments.max_trees,
        max_leaves="auto" if arguments.max_leaves is None else arguments.max_leaves,
        max_bytes="auto" if arguments.max_bytes is None else arguments.max_bytes,
        X_certify=X_certify,
        y_certify=y_certify,
        qid_certify=qid_certify,
        n_jobs=arguments.threads,
        random_state=arguments.seed,
    )
    stored = model.__fitted_model__().target_name
    if stored is not None:  # so that `scboost evaluate` finds the target
        small.model.target_name_ = stored
    small.model.save_model(arguments.output)
    say(str(small))
    say(f"written to {arguments.output}")
    return 0
