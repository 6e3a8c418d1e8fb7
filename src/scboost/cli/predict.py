"""``scboost predict``."""

from __future__ import annotations

import argparse
from typing import Any

from scboost.cli.console import Counter, add_model_and_data
from scboost.cli.models import columns_of, read_model
from scboost.cli.tables import DataError, Kinds, Output, Source, pyarrow

SUMMARY = "predict the rows of a table of any size"
EXAMPLES = (
    "scboost predict model.json new.csv -o predictions.csv",
    "scboost predict model.json new.parquet -o predictions.parquet --proba --keep customer_id",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_model_and_data(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help=".csv, .tsv, .parquet, .feather or .arrow"
    )
    parser.add_argument("--proba", action="store_true", help="also write the probability of each class")
    parser.add_argument("--keep", action="append", default=[], metavar="COLUMN", help="also write this column of DATA")


def run(arguments: argparse.Namespace) -> int:
    """Predict chunk by chunk: memory does not grow with the file."""
    model = read_model(arguments)
    if arguments.proba and not hasattr(model, "classes_"):
        raise DataError(f"{arguments.model} is a regressor: --proba needs a classifier")
    source = Source(arguments.data)
    columns, kinds = columns_of(model, source)
    kept = [name for name in dict.fromkeys(arguments.keep) if name not in columns]
    kinds = Kinds(kinds.numeric, kinds.categorical, frozenset(kept))
    rows = Counter("rows predicted")
    with Output(arguments.output) as output:
        for _, table in source.chunks([*columns, *kept], kinds):
            output.write(_predicted(model, table, columns, arguments))
            rows.add(len(table))
    rows.end()
    return 0


def _predicted(model: Any, table: Any, columns: list[str], arguments: argparse.Namespace) -> Any:
    pa = pyarrow()
    X = table.select(columns)
    new = {name: table.column(name) for name in arguments.keep}
    if arguments.proba:
        p = model.predict_proba(X)
        new["prediction"] = pa.array(model.classes_[p.argmax(axis=1)])
        for k, label in enumerate(model.classes_.tolist()):
            new[f"probability_{label}"] = pa.array(p[:, k])
    elif isinstance(getattr(model, "quantile", None), list | tuple):
        for quantile, column in zip(model.quantile, model.predict(X).T, strict=True):
            new[f"quantile_{quantile}"] = pa.array(column)
    else:
        new["prediction"] = pa.array(model.predict(X))
    return pa.table(new)
