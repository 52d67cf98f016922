"""Ctrl-C and SIGTERM: work that must not be torn apart waits for a safe moment, and both save what can be saved.

Python raises KeyboardInterrupt wherever it happens to be. `hold_interrupts` defers it to the moments that the work
names. `terminate_as_interrupt` lets SIGTERM, by which schedulers and service managers request a process to end, do what
Ctrl-C does, also in a process that runs in the background and ignores Ctrl-C.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_held: Callable[[int, FrameType | None], None] | None = None
"""What happens to an interrupt within `hold_interrupts`."""
_is_terminated = False


@contextmanager
def hold_interrupts() -> Iterator[Callable[[], None]]:
    """Yield a function that raises KeyboardInterrupt if there was an interrupt.

    In the middle of a step some parameters are updated and others not, and such a state must never be saved. So the
    first interrupt waits for a safe moment; the second acts at once. Outside the main thread Python delivers none, and
    a program with its own handler of Ctrl-C keeps it: then nothing is deferred, and the function does nothing.
    """
    global _held  # noqa: PLW0603
    pressed = False

    def note(signal_number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    def release() -> None:
        if pressed:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread() or _held is not None:
        yield release
        return
    before = signal.getsignal(signal.SIGINT)
    _held = note
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, note)
    try:
        yield release
    finally:
        _held = None
        if before is signal.default_int_handler:
            signal.signal(signal.SIGINT, before)


def terminate_as_interrupt() -> None:
    """From now on SIGTERM does what Ctrl-C does. Call this in the main thread of a program, once."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def is_terminated() -> bool:
    """Whether there was a SIGTERM."""
    return _is_terminated


def _terminate(signal_number: int, frame: FrameType | None) -> None:
    global _is_terminated  # noqa: PLW0603
    _is_terminated = True
    if _held is not None:
        _held(signal_number, frame)
    elif callable(signal.getsignal(signal.SIGINT)):
        signal.raise_signal(signal.SIGINT)
    else:  # Ctrl-C is ignored, which says nothing about this
        raise KeyboardInterrupt
