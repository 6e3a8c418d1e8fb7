"""The command line: ``scboost COMMAND ...``, or ``python -m scboost COMMAND ...``.

A command is a module of this package, imported only when it is run. It has ``add_arguments(parser)`` and
``run(arguments)``. To add one, write the module and name it in :data:`COMMANDS`.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from scboost._version import __version__

COMMANDS = {
    "train": "fit a model to a file of rows and write it to a model file",
    "predict": "predict the rows of a file, of any size",
    "evaluate": "measure a model on the rows of a file",
    "prune": "replace a model by one of fewer trees",
    "report": "write a page about a model: one HTML file",
}
"""Commands and what they do, in the order in which the help lists them."""

FAILED, INTERRUPTED = 1, 130
"""Exit codes beside 0; the parser of the arguments exits with 2."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; those of the process by default.

    Returns
    -------
    int
        Exit code: 0 if all went well, 1 if not, 130 after an interrupt. Wrong arguments exit with 2.
    """
    parser = argparse.ArgumentParser(
        prog="scboost",
        description="Boosting that does not repeat itself. `scboost COMMAND --help` explains a command.",
        epilog="\n".join(["commands:", *(f"  {name:<10} {text}" for name, text in COMMANDS.items())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"scboost {__version__}")
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help="what to do; see below")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="arguments of the command")
    first = parser.parse_args(argv)
    command = importlib.import_module(f"scboost.cli.{first.command}")
    own = argparse.ArgumentParser(prog=f"scboost {first.command}", description=COMMANDS[first.command])
    own.add_argument("--debug", action="store_true", help="show where in the code an error came up")
    command.add_arguments(own)
    arguments = own.parse_args(first.rest)
    try:
        command.run(arguments)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except (ValueError, TypeError, OSError, ImportError) as error:
        if arguments.debug:
            raise
        sys.stderr.write(f"scboost {first.command}: error: {error}\n")
        return FAILED
    return 0
