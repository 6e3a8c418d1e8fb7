"""Ctrl-C at a chosen call of a Python function of the library or of XGBoost."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import xgboost

import scboost

_PACKAGES = tuple(str(Path(package.__file__ or "").parent) for package in (scboost, xgboost))


class Press:
    """Presses Ctrl-C once.

    Parameters
    ----------
    at : int
        At which call, counted from 1; 0 for none, to count the calls.

    Attributes
    ----------
    n_calls : int
        Number of calls so far.
    where : str
        File and function of the call where it was pressed.
    """

    def __init__(self, at: int) -> None:
        self.at, self.n_calls, self.where = at, 0, ""

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Profile a call."""
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(_PACKAGES):
            self.n_calls += 1
            if self.n_calls == self.at:
                self.where = f"{name}:{frame.f_code.co_name}"
                signal.raise_signal(signal.SIGINT)


@contextmanager
def pressed(at: int) -> Iterator[Press]:
    """Press Ctrl-C at a call in the block."""
    press = Press(at)
    sys.setprofile(press)
    try:
        yield press
    finally:
        sys.setprofile(None)
