"""`ProcessGroup`: the processes that torchrun started for one training, and the messages between them.

The first process leads. It runs the program as if it were alone: it reads data, writes files and shows progress. The
others wait for what it sends them to compute (`rarenode.engines.torchrun`), and get all that they need from it. So no
other process needs the data, and nothing but engines knows that there are several.

Messages are arrays and JSON, over gloo; only the network of an encoder is pickled on its way. Sums in a training step
go over gloo or, from GPU to GPU, nccl. As in everything that torch.distributed does, processes trust each other and the
connections between them.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from time import monotonic, sleep
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor
from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]  # documented, if not listed
from torch.distributed.rendezvous import rendezvous

from rarenode.errors import LostProcessError, TrainingError
from rarenode.models.network import tensor_of

Arrays = dict[str, NDArray[Any]]
IDLE = timedelta(days=30)
"""How long a process waits for the leader's next message; the leader may be growing a forest meanwhile. If it ends, its
connections close, and nobody waits."""
MEETING = timedelta(minutes=5)
"""How long processes wait for all others to start."""
BUSY = timedelta(minutes=10)
"""How long a process waits for the others within a step; only a host that vanished with open connections takes as
long."""
ROLL_CALL = 3.0
"""Seconds in which a process that is alive answers, once a connection was lost."""
FIRST_BYTES, MOST_BYTES = 1 << 16, 1 << 30
"""That are sent at first, and at most, at a time. Most messages of a step fit into the first ones."""
_DEVICES = {"cpu": "gloo", "cuda": "nccl"}


def is_one_of_several() -> bool:
    """Whether torchrun, or a program that sets the same environment variables, has started several processes."""
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    return all(name in os.environ for name in names) and int(os.environ["WORLD_SIZE"]) > 1


class ProcessGroup:
    """The processes, seen from one of them."""

    _meetings = 0
    """How often this process has been in a group; what an earlier one left in the store does not concern the next."""

    def __init__(self) -> None:
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.place = int(os.environ.get("LOCAL_RANK", "0"))
        """The number of this process on its machine."""
        self.neighbours = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        """How many processes its machine has."""
        self._meet()
        about = f"rank {self.rank} of {self.size}, process {os.getpid()} on {socket.gethostname()}"
        self._store.set(f"about/{self.rank}", about)
        self.lock = threading.RLock()
        """Held while a command is sent and computed, so that threads do not mix their commands."""
        self.training = 0
        """The number of the engine that the others have; a new one replaces it."""
        self.has_lost = False
        """Whether another process is known to have ended. torchrun asks those that are left to end too."""
        self._leaving = threading.Event()
        self._answering = threading.Thread(target=self._answer, daemon=True)
        self._answering.start()

    def _meet(self) -> None:
        ProcessGroup._meetings += 1
        backends = [f"{device}:{_DEVICES[device]}" for device in _DEVICES if device == "cpu" or _has_nccl()]
        try:
            store = PrefixStore(f"rarenode/{ProcessGroup._meetings}", next(rendezvous("env://", timeout=MEETING))[0])
            self._store = _own_store()
            dist.init_process_group(",".join(backends), store=store, rank=self.rank, world_size=self.size, timeout=IDLE)
            self._subgroups = {self.size: dist.new_group(timeout=BUSY)}
        except (RuntimeError, OSError, ValueError) as error:
            place = f"{os.environ['MASTER_ADDR']}, port {os.environ['MASTER_PORT']}"
            raise TrainingError(
                f"rank {self.rank} did not meet the other {self.size - 1} processes at {place} (MASTER_ADDR, "
                f"MASTER_PORT): {error}"
            ) from None

    # --- words and arrays --------------------------------------------------------------------------------------------

    def broadcast(self, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Send all other processes what to do; `receive_broadcast` returns it there."""
        content = _packed(about, arrays)
        with self._connected():
            for part in (_first(content), *_parts(content[FIRST_BYTES:])):
                dist.broadcast(part, src=0)

    def receive_broadcast(self) -> tuple[dict[str, Any], Arrays]:
        """Wait for what the leader sends."""
        first = _first(np.empty(0, dtype=np.uint8))
        with self._connected():
            dist.broadcast(first, src=0)
            content = _with_room_for_all(first)
            for part in _parts(content[FIRST_BYTES:]):
                dist.broadcast(part, src=0)
        return _unpacked(content)

    def send(self, rank: int, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Send arrays to one process, which must `receive` them."""
        content = _packed(about, arrays)
        with self._connected():
            for part in (_first(content), *_parts(content[FIRST_BYTES:])):
                dist.send(part, rank, self._subgroup(self.size))

    def receive(self, rank: int) -> tuple[dict[str, Any], Arrays]:
        """Wait for what one process sends."""
        first = _first(np.empty(0, dtype=np.uint8))
        with self._connected():
            dist.recv(first, rank, self._subgroup(self.size))
            content = _with_room_for_all(first)
            for part in _parts(content[FIRST_BYTES:]):
                dist.recv(part, rank, self._subgroup(self.size))
        return _unpacked(content)

    def total(self, processes: int) -> Callable[[Tensor], Tensor]:
        """What adds up a tensor over the first so many processes. All processes must ask for it, also the others."""
        group = self._subgroup(processes)

        def add_up(value: Tensor) -> Tensor:
            value = value.contiguous()
            with self._connected():
                dist.all_reduce(value, group=group)
            return value

        return add_up

    def _subgroup(self, processes: int) -> Any:
        if processes not in self._subgroups:
            with self._connected():
                self._subgroups[processes] = dist.new_group(list(range(processes)), timeout=BUSY)
        return self._subgroups[processes]

    # --- the end -----------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Let the other processes end, as the leader does now."""
        with suppress(Exception):  # they may have ended already, or wait for something else
            self._store.set("ended", "")
            self.broadcast({"do": "end"}, {})
        self.leave()

    def leave(self) -> None:
        """Close the connections."""
        self._leaving.set()
        self._answering.join()
        with suppress(Exception):
            dist.destroy_process_group()

    @property
    def has_ended(self) -> bool:
        """Whether the leader has said that it ends."""
        with suppress(Exception):
            return self._has("ended")
        return False

    def _has(self, key: str) -> bool:
        found: bool = self._store.check([key])
        return found

    def say_why(self, error: BaseException) -> None:
        """Publish why this process ends; the others report it."""
        with suppress(Exception):
            self._store.set(f"why/{self.rank}", str(error) or type(error).__name__)

    @contextmanager
    def _connected(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:  # gloo raises nothing more precise
            raise self._lost(error) from None

    def _lost(self, error: RuntimeError) -> LostProcessError:
        """Which processes are no longer there, and why."""
        self.has_lost = True
        found, answered = [], {self.rank}
        try:
            self._store.set("roll call", "")
            waited_until = monotonic() + ROLL_CALL
            while len(answered) < self.size and monotonic() < waited_until:
                answered |= {rank for rank in range(self.size) if self._has(f"here/{rank}")}
                sleep(0.05)
            for rank in sorted(set(range(self.size)) - answered):
                about = self._store.get(f"about/{rank}").decode()
                why = "ended without an error: it was killed, or there was too little memory"
                if self._has(f"why/{rank}"):
                    why = f"failed: {self._store.get(f'why/{rank}').decode()}"
                found.append(f"{about}, {why}")
        except (RuntimeError, OSError):
            found.append(f"the process that torchrun runs on {os.environ['MASTER_ADDR']} has ended, and others with it")
        what = "; ".join(found) or f"processes have lost their connection ({error})"
        lost = LostProcessError(
            f"{what}. The other processes end too; a training in a folder continues from its last checkpoint: start "
            "the same command again with --resume (in Python resume=True), with any number of processes"
        )
        lost.answered = frozenset(answered)
        return lost

    def _answer(self) -> None:
        """Answer when another process asks who is there, whatever this one is doing or waiting for."""
        with suppress(Exception):  # the store ends with the processes
            store = _own_store()
            while not self._leaving.wait(ROLL_CALL / 10):
                if store.check(["roll call"]):
                    store.set(f"here/{self.rank}", "")
                    return


def _own_store() -> Any:
    """A new connection to the place where processes publish why they end. Two threads cannot share one."""
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    store = TCPStore(address, port, is_master=False, timeout=MEETING, wait_for_workers=False)
    return PrefixStore(f"rarenode/{attempt}/{ProcessGroup._meetings}/words", store)


def _has_nccl() -> bool:
    return torch.cuda.is_available() and dist.is_nccl_available()


# --- messages --------------------------------------------------------------------------------------------------------


def _packed(about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """JSON and arrays as bytes: first how many bytes the JSON has, and at last the arrays."""
    layout = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    head = json.dumps([about, layout]).encode()
    parts: list[NDArray[Any]] = [np.array([len(head)], dtype=np.int64), np.frombuffer(head, dtype=np.uint8)]
    parts += [np.asarray(array, order="C").reshape(-1) for array in arrays.values()]
    return np.concatenate([part.view(np.uint8) for part in parts])


def _unpacked(content: NDArray[np.uint8]) -> tuple[dict[str, Any], Arrays]:
    place = 8 + int(content[:8].view(np.int64)[0])
    about, layout = json.loads(content[8:place].tobytes())
    arrays: Arrays = {}
    for name, kind, shape in layout:
        size = np.dtype(kind).itemsize * int(np.prod(shape))
        # Copied, so that the numbers lie in memory where those of their type must.
        arrays[name] = content[place : place + size].copy().view(kind).reshape(shape)
        place += size
    return about, arrays


def _first(content: NDArray[np.uint8]) -> Tensor:
    """The size of a message, and its first bytes."""
    first = np.zeros(8 + FIRST_BYTES, dtype=np.uint8)
    first[:8] = np.array([len(content)], dtype=np.int64).view(np.uint8)
    first[8 : 8 + len(content)] = content[:FIRST_BYTES]
    return torch.from_numpy(first)


def _with_room_for_all(first: Tensor) -> NDArray[np.uint8]:
    """A message of which the first bytes are there."""
    bytes_there = first.numpy()
    content = np.empty(int(bytes_there[:8].view(np.int64)[0]), dtype=np.uint8)
    content[:FIRST_BYTES] = bytes_there[8 : 8 + len(content)]
    return content


def _parts(content: NDArray[np.uint8]) -> Iterator[Tensor]:
    """Tensors in the memory of the content, none of which is too large to be sent at once."""
    for first in range(0, len(content), MOST_BYTES):
        yield tensor_of(content[first : first + MOST_BYTES])
