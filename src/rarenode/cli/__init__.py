"""The shell face of rarenode: parse, call, print. `rarenode.cli.app` has the commands."""

from __future__ import annotations

import os
import signal
import sys

INTERRUPTED, TERMINATED = 130, 143
"""The exit codes after Ctrl-C and SIGTERM, as shells have them."""


def main() -> None:
    """Run the command line; Ctrl-C is answered in one line from the beginning, while modules are still imported."""
    # Libraries of compiled code may turn the exception into another one. A process in the background ignores Ctrl-C.
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if is_usual:
            signal.signal(signal.SIGINT, _stop)
        from rarenode._io.interrupts import terminate_as_interrupt  # noqa: PLC0415
        from rarenode.cli.app import run  # noqa: PLC0415 (it takes a second)

        terminate_as_interrupt()
        if is_usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:
        print("rarenode: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


def _stop(*_: object) -> None:
    os.write(2, b"rarenode: interrupted\n")
    os._exit(INTERRUPTED)
