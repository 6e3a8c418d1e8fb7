"""What commands print, and arguments that several of them share."""

from __future__ import annotations

import argparse
import sys
import threading
import time
from types import TracebackType

TABLE_HELP = ".csv or .tsv (also .gz, .bz2, .zst, .lz4), .parquet, .feather or .arrow"


def say(text: str) -> None:
    """Write a line of the result to standard output."""
    sys.stdout.write(f"{text}\n")


def warn(text: str) -> None:
    """Write a warning to standard error."""
    sys.stderr.write(f"warning: {text}\n")


class Progress:
    """One line on standard error with the number of rows done; in a log file, a line every ten seconds.

    Parameters
    ----------
    label : str
        What is counted: "rows predicted".
    enabled : bool, default=True
        If False nothing is written.
    """

    def __init__(self, label: str, *, enabled: bool = True) -> None:
        self._label, self._enabled, self._done = label, enabled, 0
        self._live = sys.stderr.isatty()
        self._shown = time.monotonic()

    def __enter__(self) -> Progress:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is None:
            self._show(last=True)
        elif self._live and self._done:
            sys.stderr.write("\n")

    def add(self, n: int) -> None:
        """Count rows."""
        self._done += n
        if time.monotonic() - self._shown > (0.1 if self._live else 10.0):
            self._show(last=False)

    def _show(self, *, last: bool) -> None:
        self._shown = time.monotonic()
        if self._enabled:
            start, end = ("\r", "\n" if last else "") if self._live else ("", "\n")
            sys.stderr.write(f"{start}{self._done:,} {self._label}{end}")
            sys.stderr.flush()


class Elapsed:
    """One line on a terminal with the seconds that a step has taken so far; nothing in a log file.

    Parameters
    ----------
    label : str
        What is being done.
    enabled : bool, default=True
        If False nothing is written.
    """

    def __init__(self, label: str, *, enabled: bool = True) -> None:
        self._label, self._ended = label, threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True) if enabled and sys.stderr.isatty() else None

    def _show(self) -> None:
        start = time.monotonic()
        while not self._ended.wait(1.0):
            sys.stderr.write(f"\r{self._label}, {time.monotonic() - start:.0f} s")
            sys.stderr.flush()

    def __enter__(self) -> None:
        if self._thread is not None:
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            sys.stderr.write("\r\033[K")


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the table and how its text is written."""
    parser.add_argument("data", metavar="DATA", help=f"table: {TABLE_HELP}")
    text = parser.add_argument_group("text files")
    text.add_argument("--sep", metavar="CHAR", help="field separator of DATA (default: detected in the header)")
    text.add_argument("--decimal", default=".", metavar="CHAR", help="decimal point of DATA (default: .)")
    text.add_argument(
        "--missing",
        action="append",
        default=[],
        metavar="TEXT",
        help="read this text as a missing value, as well as empty fields, NA and the like; may be repeated",
    )
    text.add_argument("--encoding", default="utf8", metavar="NAME", help="character encoding of DATA (default: utf8)")


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Add the number of threads."""
    parser.add_argument("--threads", type=int, metavar="N", help="number of threads (default: all cores)")


def add_model_and_data(parser: argparse.ArgumentParser) -> None:
    """Add the two arguments of all commands that apply a model."""
    parser.add_argument("model", metavar="MODEL", help="model file, .json or .ubj")
    add_data(parser)
    add_threads(parser)


def add_roles(parser: argparse.ArgumentParser) -> None:
    """Add the columns that are not features, which a model trained on the command line knows."""
    default = "(default: that of the training table)"
    parser.add_argument(
        "--target",
        action="append",
        metavar="COLUMN",
        help=f"target column {default}; repeat it for a model of several targets",
    )
    add_task_columns(parser)
    parser.add_argument("--weight", metavar="COLUMN", help="column of sample weights")


def add_task_columns(parser: argparse.ArgumentParser) -> None:
    """Add the columns of survival models and rankings besides the target."""
    default = "(default: that of the training table)"
    parser.add_argument("--event", metavar="COLUMN", help=f"survival: column of event indicators {default}")
    parser.add_argument("--group", metavar="COLUMN", help=f"ranking: column of queries {default}")


def add_target(parser: argparse.ArgumentParser) -> None:
    """Add the target column, which a model trained on the command line knows."""
    parser.add_argument("--target", metavar="COLUMN", help="target column (default: that of the training table)")
    parser.add_argument("--weight", metavar="COLUMN", help="column of sample weights")
