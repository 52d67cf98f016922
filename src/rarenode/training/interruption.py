"""Ctrl-C at a moment when it does no harm.

Python raises KeyboardInterrupt wherever it happens to be. In the middle of a step some weights are updated and others
not, and such a state must never be saved. So the first Ctrl-C waits until it is asked for; the second acts at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def hold_interrupts() -> Iterator[Callable[[], None]]:
    """Yield a function that raises KeyboardInterrupt if Ctrl-C has been pressed.

    Outside the main thread Python delivers no Ctrl-C, and a program with a handler of its own keeps it: then nothing is
    held, and the function does nothing.
    """
    pressed = False

    def note(signal_number: int, frame: object) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    def release() -> None:
        if pressed:
            raise KeyboardInterrupt

    in_main_thread = threading.current_thread() is threading.main_thread()
    holds = in_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if holds:
        signal.signal(signal.SIGINT, note)
    try:
        yield release
    finally:
        if holds:
            signal.signal(signal.SIGINT, signal.default_int_handler)
