"""The command ``scboost-lab``; only the sub-command that is run is imported."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = {
    "demo": "compare five libraries on a real table, compress a model, write a report",
    "speed": "measure fits and predictions against other libraries",
    "datasets": "list, fetch and check the paper's ten data sets",
    "reproduce": "run the paper's tables and figures",
    "pruning": "measure redundancy and pruning on real data",
    "default_study": "compare the default with other libraries at their defaults",
    "category_study": "compare ways to split features with many categories",
    "compress_study": "compare compressed models with their teachers and with short boosted models",
    "survival_study": "compare survival models with other libraries",
    "coverage_study": "measure coverage and size of intervals and label sets",
    "distribution_study": "compare predicted distributions with other libraries",
    "ranking_study": "compare rankings with other libraries",
    "targets_study": "compare one model of several targets with one model per target",
    "benchmarks": "write the page of benchmarks and its chart from the results",
    "writeup": "write the write-up for reviewers from the results",
    "guide": "write the tables of the guide from the results",
    "readme": "write the README's table and speeds from the results",
}
"""Modules of this package that describe their ``arguments`` and have a ``main``."""


def _version() -> str:
    from scboost import __version__

    return f"scboost {__version__}"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a sub-command; return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        Command-line arguments; those of the process by default.

    Returns
    -------
    int
        2 for wrong arguments, missing data, a missing package or a full disk; 130 after an interrupt or a kill.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="scboost-lab", description="The experiments behind scboost.")
    parser.add_argument("--version", action="store_true", help="show the version of scboost and exit")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        command = subparsers.add_parser(name, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter)
        if name in words[:1]:
            import_module(f"scboost_lab.{name}").arguments(command)
    args = parser.parse_args(words)
    if args.version:
        print(_version())
        return 0
    if not words:
        parser.error("a command is missing")
    return run(words[0], args)


def run(name: str, args: argparse.Namespace) -> int:
    """Run a sub-command with parsed arguments; turn errors into a message and an exit code."""
    from scboost_lab.datasets import DataError
    from scboost_lab.results import StorageError
    from scboost_lab.runner import NotInstalledError

    # A kill, too, must leave a record of what was run.
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = int(import_module(f"scboost_lab.{name}").main(args) or 0)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; finished results are kept and the same command resumes", file=sys.stderr)
        return 130
    except (DataError, NotInstalledError, StorageError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    finally:
        signal.signal(signal.SIGTERM, previous)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
