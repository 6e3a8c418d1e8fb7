"""A progress bar on the terminal."""

from __future__ import annotations

import sys
import time


class Progress:
    """One line on standard error that is rewritten in place, with an estimate of what remains.

    Parameters
    ----------
    total : int
        Number of steps.
    label : str
        Printed before the bar.
    enabled : bool, default=True
        If False nothing is printed.
    """

    def __init__(self, total: int, label: str, *, enabled: bool = True) -> None:
        self._total, self._label, self._enabled = total, label, enabled
        self._done = 0
        self._start = self._shown = time.monotonic()
        self._interval = 0.1 if sys.stderr.isatty() else 10.0  # a log file needs no more than a line now and then

    def __enter__(self) -> Progress:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Show the last state and end the line."""
        if self._enabled and self._done:
            self._show()
            if sys.stderr.isatty():
                sys.stderr.write("\n")

    def step(self, note: str = "") -> None:
        """Advance by one step, with a short note at the end of the line."""
        self._done += 1
        self._note = note
        if self._enabled and time.monotonic() - self._shown > self._interval:
            self._show()

    def _show(self) -> None:
        self._shown = time.monotonic()
        elapsed = self._shown - self._start
        share = min(self._done / max(self._total, 1), 1.0)
        rest = elapsed / self._done * (self._total - self._done)
        bar = "#" * round(24 * share)
        line = f"{self._label} [{bar:<24}] {self._done}/{self._total} {elapsed:.0f}s, {rest:.0f}s left {self._note}"
        sys.stderr.write(f"\r{line:<100}" if sys.stderr.isatty() else f"{line}\n")
        sys.stderr.flush()
