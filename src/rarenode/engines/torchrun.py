"""`several_processes`: what the processes that torchrun started do, other than compute.

The first one leads; the others serve it until it ends.
"""

from __future__ import annotations

import pickle
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rarenode.engines.distributed_engine import Part
from rarenode.engines.processes import Arrays, ProcessGroup, is_one_of_several
from rarenode.errors import LostProcessError, RarenodeError, TrainingError
from rarenode.version import __version__

_group: ProcessGroup | None = None


@contextmanager
def several_processes() -> Iterator[bool]:
    """Train with all processes that torchrun started, on one machine or several.

    True in the first of them, which runs the block as it would alone; its trainings are divided among all. In the
    others, False, after they have served the first one to its end. True where there is only one.

    ::

        with several_processes() as is_first:
            if is_first:
                Run.fit("survey.csv", "runs/survey", Settings(n_members=20), options={"labels": "taxa"})

    Raises:
        LostProcessError: another process has ended.
    """
    global _group  # noqa: PLW0603 (there is one for each process, as torch.distributed has it)
    if not is_one_of_several() or _group is not None:
        yield True
        return
    group = ProcessGroup()
    if group.rank > 0:
        try:
            with _undisturbed():
                serve(group)
        finally:
            group.leave()
        yield False
        return
    _group = group
    try:
        with _terminated_as_interrupted(group):
            yield True
    finally:
        _group = None
        group.end()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Leave it to the leader what becomes of Ctrl-C and of a request to end; torchrun sends it to all processes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [(number, signal.signal(number, signal.SIG_IGN)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@contextmanager
def _terminated_as_interrupted(group: ProcessGroup) -> Iterator[None]:
    """A request to end, as torchrun and cluster schedulers send it, does what Ctrl-C does: it saves a checkpoint.

    Where another process has ended there is no use in that; what has happened is going to be said.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        if not group.has_lost:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def active_group() -> ProcessGroup | None:
    """The processes that this one leads; None if it is alone."""
    return _group


def serve(group: ProcessGroup) -> None:
    """Do what the leader says until it ends.

    Raises:
        LostProcessError: the leader has ended without an error, and no process of a lower rank is there to say so.
        SystemExit: another process has ended, and one of a lower rank says so; or this one has failed, and the leader
            says why.
    """
    part: Part | None = None
    try:
        while True:
            about, arrays = group.receive_broadcast()
            what = about["do"]
            if what == "end":
                return
            if what == "make":
                part = _made(group, about, arrays)
            elif part is not None:
                _done(group, part, what, arrays)
    except LostProcessError as error:
        if group.has_ended:
            return
        if min(error.answered) != group.rank:
            sys.exit(1)
        raise
    except (RarenodeError, OSError, MemoryError) as error:
        group.say_why(error)
        sys.exit(1)
    except Exception as error:
        group.say_why(error)
        raise


def _made(group: ProcessGroup, plan: dict[str, Any], arrays: Arrays) -> Part | None:
    """The part of this process in a training; None if it has none."""
    if plan["version"] != __version__:
        raise TrainingError(f"it has rarenode {__version__}, and the first process {plan['version']}")
    if group.rank >= plan["processes"]:
        group.total(plan["processes"])
        return None
    _, parameters = group.receive(0)
    content = arrays.pop("encoder", None)
    encoder = None if content is None else pickle.loads(content.tobytes())  # noqa: S301 (from our own program)
    return Part(group, plan, arrays, parameters, encoder)


def _done(group: ProcessGroup, part: Part, what: str, arrays: Arrays) -> None:
    if what == "step":
        part.step(arrays)
    elif what == "probs":
        part.probs(arrays["X"])
    elif what == "restore":
        part.engine.restore(group.receive(0)[1])
    else:
        group.send(0, {}, part.report(what, arrays))
