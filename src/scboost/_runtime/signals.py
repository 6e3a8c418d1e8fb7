"""Interrupts from the keyboard: raised where work can stop, held where it cannot.

A fit has three kinds of sections. Where no state would be lost, an interrupt is raised at once, as usual in Python.
Within a round, it is held until the round is finished: half a round would leave inconsistent raw scores and histories.
While a C++ library calls back into Python, it is deferred: an exception would be lost, or leave the library with
incomplete data. The state is the handler itself. Only Python's own handler in the main thread is replaced; other
handlers are left unchanged.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from types import FrameType


class _Mode(Enum):
    RAISE = "raise at once"
    HOLD = "note the first interrupt, raise the second"
    DEFER = "note all interrupts"


class _Handler:
    """Handles interrupts while sections are entered and left."""

    def __init__(self) -> None:
        self.mode, self.interrupted = _Mode.RAISE, False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        again, self.interrupted = self.interrupted, True
        if self.mode is _Mode.RAISE or (self.mode is _Mode.HOLD and again):
            signal.default_int_handler(number, frame)


def _never() -> bool:
    return False


@contextmanager
def _section(mode: _Mode) -> Iterator[Callable[[], bool]]:
    """Handle interrupts in the given mode; yields a function that returns whether there was one."""
    if threading.current_thread() is not threading.main_thread():
        yield _never
        return
    outer = signal.getsignal(signal.SIGINT)
    if outer is not signal.default_int_handler and not isinstance(outer, _Handler):
        yield _never
        return
    handler = outer if isinstance(outer, _Handler) else _Handler()
    before, handler.mode = handler.mode, mode
    if handler is not outer:
        signal.signal(signal.SIGINT, handler)
    try:
        yield lambda: handler.interrupted
    finally:
        handler.mode = before
        if handler is not outer:
            signal.signal(signal.SIGINT, outer)


@contextmanager
def interrupts_held() -> Iterator[Callable[[], bool]]:
    """Hold the first interrupt; a second one is raised at once.

    Yields a function that returns, also after the section, whether there was an interrupt; the caller must act on it.
    """
    with _section(_Mode.HOLD) as interrupted:
        yield interrupted


@contextmanager
def interrupts_raised() -> Iterator[None]:
    """Raise interrupts at once, also one that is held already; one that a finalizer swallows is seen at the end."""
    with _section(_Mode.RAISE) as interrupted:
        if interrupted():
            raise KeyboardInterrupt
        yield


@contextmanager
def interrupts_deferred() -> Iterator[Callable[[], bool]]:
    """Defer all interrupts to the end of the section.

    Yields a function that returns whether there was one, for sections that can end early.
    """
    with _section(_Mode.DEFER) as interrupted:
        yield interrupted
    if interrupted():
        raise KeyboardInterrupt
