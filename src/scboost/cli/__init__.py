"""The command line: ``scboost COMMAND ...``, or ``python -m scboost COMMAND ...``.

A command is a module of this package with four names: ``SUMMARY`` (one line for the list of commands), ``EXAMPLES``
(complete command lines for ``--help``), ``add_arguments(parser)``, and ``run(arguments)``, which returns the exit code.
To add a command, write the module and add its name to :data:`COMMANDS`.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import sys
from collections.abc import Sequence

from scboost._version import __version__

COMMANDS = (
    "train",
    "predict",
    "evaluate",
    "prune",
    "compress",
    "report",
    "export",
    "check",
)
"""Names of the command modules, in the order in which ``scboost --help`` lists them."""

FAILED, WRONG_ARGUMENTS, INTERRUPTED = 1, 2, 130
"""Exit codes beside 0."""


def make_parser() -> argparse.ArgumentParser:
    """Return the argument parser with one subparser per command."""
    parser = argparse.ArgumentParser(
        prog="scboost",
        description="Gradient boosting from the command line: train, apply, inspect and deploy models.",
        epilog="`scboost COMMAND --help` explains a command and shows examples.",
    )
    parser.add_argument("--version", action="version", version=f"scboost {__version__}")
    subparsers = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        command = importlib.import_module(f"scboost.cli.{name}")
        own = subparsers.add_parser(
            name,
            help=command.SUMMARY,
            description=f"{command.SUMMARY[0].upper()}{command.SUMMARY[1:]}.",
            epilog="\n".join(["examples:", *(f"  {example}" for example in command.EXAMPLES)]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        own.add_argument("--debug", action="store_true", help="show the traceback of an error")
        command.add_arguments(own)
        own.set_defaults(run=command.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; those of the process by default.

    Returns
    -------
    int
        Exit code: 0 on success, 1 on failure, 2 for no or wrong arguments, 130 after an interrupt.
    """
    parser, given = make_parser(), list(sys.argv[1:] if argv is None else argv)
    if not given:
        parser.print_help()
        return WRONG_ARGUMENTS
    if not given[0].startswith("-") and given[0] not in COMMANDS:
        close = difflib.get_close_matches(given[0], COMMANDS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(COMMANDS)}"
        parser.error(f"there is no command {given[0]!r}; {hint}")
    arguments = parser.parse_args(given)
    try:
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except (ValueError, TypeError, OSError, ImportError) as error:
        if arguments.debug:
            raise
        sys.stderr.write(f"scboost {arguments.command}: error: {error}\n")
        return FAILED
