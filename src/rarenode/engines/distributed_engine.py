"""`DistributedEngine`: one training that several processes compute, each with an engine for its part.

* An ensemble is divided by members. Each process trains its own members as if they were alone; only the sums behind an
  uncertainty of the whole ensemble cross between processes.
* An encoder that is trained is divided by rows. Each process takes its part of every batch, and gradients are added up.

The loop that trains does not know about it: the leader's engine is this one. It tells the other processes, which serve
it (`rarenode.engines.torchrun`), to do what it does itself. States are gathered into the ordinary one, so a checkpoint
can be resumed with any number of processes.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rarenode._io.text import counted
from rarenode.engines.encoder_training import EncoderTraining
from rarenode.engines.engine import Adam, Engine, Objective, State
from rarenode.engines.fused_engine import FusedEngine
from rarenode.engines.processes import Arrays, ProcessGroup
from rarenode.engines.share import Share
from rarenode.engines.threads import available_threads
from rarenode.engines.torch_engine import TorchEngine
from rarenode.errors import ArgumentError, TrainingError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.construction import Order
from rarenode.models import MlpEnsemble
from rarenode.models.network import tensor_of
from rarenode.objective import NodeWeights
from rarenode.version import __version__

BYTES_AT_A_TIME = 1 << 26
"""Of rows that are sent to be predicted."""


def make_distributed(
    group: ProcessGroup,
    name: str,
    shape: MlpEnsemble,
    parameters: Mapping[str, NDArray[np.float32]],
    objective: Objective,
    adam: Adam,
    seed: int,
    device: str,
    encoder: torch.nn.Module | None,
    n_jobs: int | None,
    encoder_training: EncoderTraining | None,
) -> Engine | None:
    """An engine of that name in all processes; None, with a warning, if there is nothing to divide among them."""
    learns = encoder is not None and any(value.requires_grad for value in encoder.parameters())
    if shape.models == 1 and not learns:
        others = counted(group.size - 1, "other process", "other processes")
        warnings.warn(
            f"{others} of torchrun will wait: only members of an ensemble (n_members above 1, ensemble=independent) "
            "and the rows of an encoder that is trained are divided among processes",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    if device not in ("cpu", "cuda"):
        raise ArgumentError(f"several processes compute on cpu or on cuda, a GPU for each, not on {device!r}")
    return DistributedEngine(
        group, name, shape, parameters, objective, adam, seed, device, encoder, n_jobs, encoder_training, learns
    )


class DistributedEngine:
    """See `Engine`; the one of the leader. A new one replaces the last, which can no longer be used."""

    def __init__(
        self,
        group: ProcessGroup,
        name: str,
        shape: MlpEnsemble,
        parameters: Mapping[str, NDArray[np.float32]],
        objective: Objective,
        adam: Adam,
        seed: int,
        device: str,
        encoder: torch.nn.Module | None,
        n_jobs: int | None,
        encoder_training: EncoderTraining | None,
        by_rows: bool,
    ) -> None:
        weights = objective.loss().weights
        self.shape = shape
        self.name = name
        self.processes = group.size if by_rows else min(group.size, shape.models)
        self._group = group
        self._by_rows = by_rows
        plan = {
            "do": "make",
            "version": __version__,
            "engine": name,
            "processes": self.processes,
            "by_rows": by_rows,
            "shape": asdict(shape),
            "nodes": objective.hierarchy.nodes,
            "objective": {name: getattr(objective, name) for name in ("focus", "u0", "k", "reduction", "compiled")},
            "adam": asdict(adam),
            "seed": seed,
            "device": device,
            "n_jobs": n_jobs,
            "encoder_training": None if encoder_training is None else asdict(encoder_training),
        }
        arrays: Arrays = {
            "depth": objective.hierarchy.depth,
            "parents": objective.hierarchy.edge_parents,
            "children": objective.hierarchy.edge_children,
            "positive": weights.positive,
            "negative": weights.negative,
        }
        if objective.scored is not None:
            arrays["scored"] = objective.scored
        if encoder is not None:  # code is not sent: every process has the same program
            arrays["encoder"] = np.frombuffer(pickle.dumps(encoder), dtype=np.uint8)
        with group.lock:
            group.training += 1
            self._number = group.training
            group.broadcast(plan, arrays)
            for rank in range(1, self.processes):
                group.send(rank, {}, self._of(rank, parameters))
            self._here = Part(group, plan, arrays, dict(self._of(0, parameters)), encoder)

    @property
    def steps(self) -> int:
        """Steps taken so far."""
        return self._here.engine.steps

    def step(
        self,
        X: NDArray[Any],
        Y: NDArray[np.bool_],
        weights: NodeWeights | None = None,
        row_weights: NDArray[np.float32] | None = None,
        known: NDArray[np.bool_] | None = None,
    ) -> float | Tensor:
        """See `Engine.step`."""
        arrays: Arrays = {"X": X if X.dtype == np.uint8 else np.asarray(X, dtype=np.float32), "Y": Y}
        if weights is not None:
            arrays |= {"positive": weights.positive, "negative": weights.negative}
        if row_weights is not None:
            arrays["row_weights"] = row_weights
        if known is not None:
            arrays["known"] = known
        with self._commanding("step", arrays):
            return self._here.step(arrays)

    def logits(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """See `Engine.logits`."""
        if self._by_rows:
            return self._here.engine.logits(X)
        return self._gathered("logits", {"X": X})["logits"]

    def probs(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """See `Engine.probs`."""
        at_a_time = max(1, BYTES_AT_A_TIME // max(1, X[:1].nbytes))
        parts = [np.empty((0, self.shape.nodes), dtype=np.float32)]
        for first in range(0, len(X), at_a_time):
            arrays = {"X": X[first : first + at_a_time]}
            with self._commanding("probs", arrays):
                parts.append(self._here.probs(arrays["X"]))
        return np.concatenate(parts)

    def parameters(self) -> State:
        """See `Engine.parameters`."""
        return self._here.engine.parameters() if self._by_rows else self._gathered("parameters", {})

    def state(self) -> State:
        """See `Engine.state`."""
        return self._here.engine.state() if self._by_rows else self._gathered("state", {})

    def restore(self, state: State) -> None:
        """See `Engine.restore`."""
        with self._commanding("restore", {}):
            for rank in range(1, self.processes):
                self._group.send(rank, {}, self._of(rank, state))
            self._here.engine.restore(self._of(0, state))

    @contextmanager
    def _commanding(self, what: str, arrays: Arrays) -> Iterator[None]:
        """Tell the others what to do; they do it while the block does the same here."""
        with self._group.lock:
            if self._number != self._group.training:
                raise TrainingError("another training has begun in these processes; they compute one at a time")
            self._group.broadcast({"do": what}, arrays)
            yield

    def _gathered(self, what: str, arrays: Arrays) -> State:
        """Arrays of all members, from the processes that have them."""
        with self._commanding(what, arrays):
            parts = [self._here.report(what, arrays)]
            parts += [self._group.receive(rank)[1] for rank in range(1, self.processes)]
        # The number of steps, which no member has, is the same everywhere.
        return {
            name: np.concatenate([part[name] for part in parts]) if _has_members(name) else array
            for name, array in parts[0].items()
        }

    def _of(self, rank: int, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
        """What a process gets of arrays of all members."""
        if self._by_rows:
            return dict(arrays)
        members = _members_of(rank, self.shape.models, self.processes)
        return {name: array[members] if _has_members(name) else array for name, array in arrays.items()}


class Part:
    """What one process computes: the same in the leader as in the others."""

    def __init__(
        self,
        group: ProcessGroup,
        plan: dict[str, Any],
        arrays: Arrays,
        parameters: Arrays,
        encoder: torch.nn.Module | None,
    ) -> None:
        shape = MlpEnsemble(**plan["shape"])
        processes, by_rows = plan["processes"], plan["by_rows"]
        mine = _members_of(group.rank, shape.models, 1 if by_rows else processes)
        self.total = group.total(processes)
        self.share = Share(
            total=self.total,
            members=shape.models,
            first_member=0 if by_rows else mine.start,
            process=group.rank if by_rows else 0,
            row_processes=processes if by_rows else 1,
        )
        own_shape = shape if by_rows else replace(shape, members=mine.stop - mine.start)
        self.models = own_shape.models
        """How many sets of parameters are here."""
        objective = Objective(
            hierarchy=Hierarchy(Order(tuple(plan["nodes"]), arrays["depth"], arrays["parents"], arrays["children"])),
            weights=NodeWeights(arrays["positive"], arrays["negative"]),
            scored=arrays.get("scored"),
            **plan["objective"],
        )
        adam, seed = Adam(**plan["adam"]), plan["seed"]
        threads = max(1, available_threads(plan["n_jobs"]) // group.neighbours)
        self.engine: Engine
        if plan["engine"] == "fused":
            self.engine = FusedEngine(own_shape, parameters, objective, adam, seed, threads, self.share)
        else:
            device = f"cuda:{group.place}" if plan["device"] == "cuda" else plan["device"]
            how = None if plan["encoder_training"] is None else EncoderTraining(**plan["encoder_training"])
            self.engine = TorchEngine(
                own_shape, parameters, objective, adam, seed, device, encoder, threads, how, self.share
            )

    def step(self, arrays: Arrays) -> float | Tensor:
        """Take a step; its loss is that of all processes."""
        weights = NodeWeights(arrays["positive"], arrays["negative"]) if "positive" in arrays else None
        loss = self.engine.step(arrays["X"], arrays["Y"], weights, arrays.get("row_weights"), arrays.get("known"))
        if isinstance(loss, Tensor):
            return self.total(loss)
        return float(self.total(torch.tensor(loss, dtype=torch.float64)))

    def probs(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """The mean of all members, for all rows."""
        if self.share.divides_rows:
            rows = self.share.rows(len(X))
            found = self.engine.probs(X[rows])
            result = np.zeros((len(X), found.shape[1]), dtype=np.float32)
            result[rows] = found
        else:
            result = self.engine.probs(X) * np.float32(self.models / self.share.members)
        return np.asarray(self.total(tensor_of(result)).numpy())

    def report(self, what: str, arrays: Arrays) -> Arrays:
        """What the leader gathers."""
        if what == "logits":
            return {"logits": self.engine.logits(arrays["X"])}
        return self.engine.state() if what == "state" else self.engine.parameters()


def _members_of(rank: int, members: int, processes: int) -> slice:
    """The members of a process; each has one more or less than another."""
    return slice(members * rank // processes, members * (rank + 1) // processes)


def _has_members(name: str) -> bool:
    """Whether the first axis of an array is that of members; in a state, of all but ``steps``."""
    return name == "logits" or name.removeprefix("adam.m.").removeprefix("adam.v.").startswith("layer")
