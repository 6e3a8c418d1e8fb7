"""The command ``scboost-lab``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from scboost import __version__

COMMANDS = ("demo", "bench", "datasets", "reproduce", "study", "realdata", "pruning")
"""Modules of this package that add a sub-command of the same name."""


def parser() -> argparse.ArgumentParser:
    """Return the argument parser with all sub-commands."""
    main_parser = argparse.ArgumentParser(prog="scboost-lab", description="The experiments behind scboost.")
    main_parser.add_argument("--version", action="version", version=f"scboost {__version__}")
    subparsers = main_parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name in COMMANDS:
        import_module(f"scboost_lab.{name}").add_parser(subparsers)
    return main_parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a sub-command; return its exit code."""
    args = parser().parse_args(argv)
    try:
        code = int(args.func(args) or 0)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("\nstopped; finished results are kept", file=sys.stderr)
        return 130
    return code


if __name__ == "__main__":
    raise SystemExit(main())
