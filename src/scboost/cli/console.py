"""What commands write on the terminal, and arguments that several of them have."""

from __future__ import annotations

import argparse
import sys
import time


def say(text: str) -> None:
    """Write a line of the result."""
    sys.stdout.write(f"{text}\n")


class Counter:
    """A line on standard error with the number of rows done, now and then."""

    def __init__(self, what: str) -> None:
        self._what, self._rows = what, 0
        self._live = sys.stderr.isatty()
        self._shown = time.monotonic()

    def add(self, rows: int) -> None:
        """Count rows."""
        self._rows += rows
        if time.monotonic() - self._shown > (0.1 if self._live else 10.0):
            self._shown = time.monotonic()
            sys.stderr.write(f"\r{self._rows:,} {self._what}" if self._live else f"{self._rows:,} {self._what}\n")
            sys.stderr.flush()

    def end(self) -> None:
        """Write the final number."""
        sys.stderr.write(f"{chr(13) if self._live else ''}{self._rows:,} {self._what}\n")


def add_model_and_data(parser: argparse.ArgumentParser) -> None:
    """Add the two arguments of all commands that use a model."""
    parser.add_argument("model", metavar="MODEL", help="a model file, .json or .ubj")
    parser.add_argument(
        "data", metavar="DATA", help="rows: .csv, .tsv (also .gz, .bz2, .zst), .parquet, .feather, .arrow"
    )
    parser.add_argument("--threads", type=int, metavar="N", help="number of threads; all by default")


def add_target(parser: argparse.ArgumentParser) -> None:
    """Add the column with the right answers, which a model trained here knows."""
    parser.add_argument("--target", metavar="COLUMN", help="column to predict; by default that of the training")
    parser.add_argument("--weight", metavar="COLUMN", help="column of row weights")
