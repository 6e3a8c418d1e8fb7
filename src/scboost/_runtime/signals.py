"""Interrupts from the keyboard."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts_held() -> Iterator[Callable[[], bool]]:
    """Delay an interrupt from the keyboard; a second one is raised at once. Yields a function that tells of the first.

    Half a round would leave scores and histories that no later round could continue from. Only Python's own handler
    in the main thread is replaced; other handlers are left alone.
    """
    asked: list[bool] = []
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )

    def hold(number: int, frame: FrameType | None) -> None:
        if asked:
            signal.default_int_handler(number, frame)
        asked.append(True)

    if ours:
        signal.signal(signal.SIGINT, hold)
    try:
        yield lambda: bool(asked)
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
