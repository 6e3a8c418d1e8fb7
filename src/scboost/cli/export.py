"""``scboost export``."""

from __future__ import annotations

import argparse
from pathlib import Path

from scboost import export_c, export_js, export_sql, to_onnx, to_treelite
from scboost._model.atomic import write_file
from scboost.cli.console import say
from scboost.cli.models import read_model
from scboost.cli.output import check_output
from scboost.cli.text import DataError

SUMMARY = "write a model as C, JavaScript or SQL code, or for ONNX or treelite"
EXAMPLES = (
    "scboost export model.json --to c -o model.h",
    "scboost export model.json --to js -o model.mjs",
    "scboost export model.json --to sql --table customers --keep id --dialect postgresql -o model.sql",
    "scboost export model.json --to onnx -o model.onnx",
)
_ENDINGS = {"c": (".h", ".c"), "js": (".mjs", ".js"), "sql": (".sql",), "onnx": (".onnx",), "treelite": (".tl", ".bin")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("model", metavar="MODEL", help="model file, .json or .ubj")
    parser.add_argument("--to", required=True, choices=_ENDINGS, help="format of the output")
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="; ".join(f"{to}: {' or '.join(endings)}" for to, endings in _ENDINGS.items()),
    )
    parser.add_argument("--name", help="c: prefix of the names in the header (default: model)")
    parser.add_argument("--table", help="sql: table with the features (default: samples)")
    parser.add_argument("--dialect", choices=["duckdb", "postgresql", "sqlite"], help="sql: database (default: duckdb)")
    parser.add_argument(
        "--keep", action="append", metavar="COLUMN", help="sql: column of the table to repeat, such as a key"
    )


def run(arguments: argparse.Namespace) -> int:
    """Export a model."""
    to, output = arguments.to, arguments.output
    for option, owner in (("name", "c"), ("table", "sql"), ("dialect", "sql"), ("keep", "sql")):
        if getattr(arguments, option) is not None and to != owner:
            raise DataError(f"--{option} belongs to --to {owner}, not to --to {to}")
    check_output(output, [arguments.model], _ENDINGS[to])
    model = read_model(arguments.model)
    if to == "c":
        export_c(model, output, name=arguments.name or "model")
    elif to == "js":
        export_js(model, output)
    elif to == "sql":
        export_sql(
            model,
            output,
            table=arguments.table or "samples",
            dialect=arguments.dialect or "duckdb",
            keep=arguments.keep or (),
        )
    elif to == "onnx":
        write_file(Path(output), to_onnx(model).SerializeToString())
    else:
        write_file(Path(output), to_treelite(model).serialize_bytes())
    say(f"{Path(output).stat().st_size:,} bytes written to {output}")
    return 0
