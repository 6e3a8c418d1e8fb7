"""The progress of a fit on the terminal or in a notebook."""

from __future__ import annotations

import sys
import time

_DELAY = 3.0  # seconds before progress appears by itself
_WIDTH = 100


class Progress:
    """One line on standard error that is rewritten in place, for all phases of a fit.

    Parameters
    ----------
    verbose : bool or None, default=None
        True shows progress from the beginning, in a log file as a line every ten seconds. None shows it after three
        seconds, on terminals and in notebooks only, and removes it at the end. False never shows it.
    """

    def __init__(self, *, verbose: bool | None = None) -> None:
        self._live = _rewrites_lines()
        self._enabled = self._live if verbose is None else verbose
        self._transient = verbose is None
        self._interval = 0.1 if self._live else 10.0  # a log file needs no more than a line now and then
        self._start = time.monotonic()
        self._shown = self._start + (_DELAY - self._interval if self._transient else 0.0)
        self._written = False
        self.begin(0, "")

    def begin(self, total: int, label: str, *, remaining: bool = False) -> None:
        """Start a phase of at most ``total`` steps; ``remaining`` shows the time that they need."""
        self._total, self._label, self._done, self._note, self._remaining = total, label, 0, "", remaining
        self._began = time.monotonic() if self._enabled else 0.0

    def step(self, note: str = "") -> None:
        """Advance by one step, with a short note at the end of the line."""
        self._done += 1
        self._note = note
        if self._enabled and time.monotonic() - self._shown > self._interval:
            self._show()

    def end(self) -> None:
        """Show the last state of the phase."""
        if self._enabled and self._done and not self._transient:
            self._show()

    def close(self) -> None:
        """End the line, or remove it if it appeared by itself."""
        if self._written and self._live:
            sys.stderr.write(f"\r{'':<{_WIDTH}}\r" if self._transient else "\n")
            sys.stderr.flush()
        self._enabled = self._written = False

    def _show(self) -> None:
        self._shown = time.monotonic()
        self._written = True
        bar = "#" * round(24 * min(self._done / max(self._total, 1), 1.0))
        parts = [f"{self._shown - self._start:.0f} s"]
        if self._remaining:
            rest = (self._shown - self._began) / self._done * (self._total - self._done)
            parts.append(f"{rest:.0f} s left")
        if self._note:
            parts.append(self._note)
        line = f"{self._label} [{bar:<24}] {self._done}/{self._total}, {', '.join(parts)}"
        sys.stderr.write(f"\r{line:<{_WIDTH}}" if self._live else f"{line}\n")
        sys.stderr.flush()


def _rewrites_lines() -> bool:
    """Return whether standard error is a terminal or the output of a notebook cell."""
    return bool(sys.stderr and (sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel")))
