"""Kill a training at random moments, resume it, and compare the model with that of an undisturbed training.

A training in a process of its own gets SIGKILL after a random time and is resumed, again and again. It saves a
checkpoint every few milliseconds, so that many kills fall into the writing of one. Whenever a training reaches its end,
its parameters and losses must be those of the undisturbed one, bit for bit; then the next one begins.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import tempfile
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from time import perf_counter

import numpy as np

from rarenode import make_hierarchical
from rarenode.config import Settings
from rarenode.config.choices import EngineName
from rarenode.training import Callback, Plan, TrainedModel, train_model
from rarenode.training.checkpoint import remove_checkpoint

CHECKPOINT_SECONDS = 0.005
FILES = ("checkpoint.safetensors", ".checkpoint.safetensors.*.part")
"""The checkpoint, and the next one while it is written."""
# A fork of a process that has everything imported and has computed nothing: starting anew takes no time.
CONTEXT = multiprocessing.get_context("forkserver")


class Starter(Callback):
    """Says when the first step is about to be taken; before that there is nothing to disturb."""

    def __init__(self, begun: Connection) -> None:
        self.begun = begun

    def on_start(self, plan: Plan) -> None:
        """See `Callback`."""
        self.begun.send(True)


def run_training(folder: Path, epochs: int, engine: EngineName, begun: Connection) -> None:
    """Train to the end, from the folder's checkpoint if there is one, and save the model there."""
    data = make_hierarchical(rows=200, nodes=20, depth=3, features=8)
    settings = Settings.preset(
        "paper",
        hidden_size=16,
        batch_size=16,
        n_members=2,
        focus="gmu",
        schedule="linear",
        epochs=epochs,
        engine=engine,
        patience=epochs,
        checkpoint_epochs=1,
        checkpoint_minutes=CHECKPOINT_SECONDS / 60,
    )
    rows = data.train
    train_model(rows, settings.changed(epochs=1), valid=data.valid)  # compiles, or finds what was compiled
    model = train_model(rows, settings, valid=data.valid, folder=folder, resume=True, callback=Starter(begun))
    model.save(folder / "model")


def start(folder: Path, options: argparse.Namespace) -> ForkServerProcess:
    """Begin or resume a training in a process of its own, and wait until it takes steps."""
    is_begun, begun = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=run_training, args=(folder, options.epochs, options.engine, begun))
    process.start()
    begun.close()
    is_begun.poll(None)  # returns when told, and also when the process is gone
    return process


def last_change(folder: Path, pattern: str) -> int | None:
    """When a file was last written, or None if it is not there."""
    return max((path.stat().st_mtime_ns for path in folder.glob(pattern)), default=None)


def differences(ours: TrainedModel, theirs: TrainedModel) -> list[str]:
    """What two models have different, besides the time they took."""
    there = theirs.model.arrays()
    found = [name for name, array in ours.model.arrays().items() if not np.array_equal(array, there[name])]
    records = [[(record.epoch, record.loss, record.valid) for record in model.history] for model in (ours, theirs)]
    return found if records[0] == records[1] else [*found, "history"]


def stress(folder: Path, options: argparse.Namespace) -> str:
    """Kill as often as asked, and return what to say about it."""
    chance = random.Random(options.seed)
    CONTEXT.set_forkserver_preload(["rarenode.training"])
    undisturbed, disturbed = folder / "undisturbed", folder / "disturbed"
    process = start(undisturbed, options)
    began = perf_counter()
    process.join()
    longest = perf_counter() - began
    expected = TrainedModel.load(undisturbed / "model")

    kills = at_work = at_writing = finished = 0
    while kills < options.kills or finished == 0:
        before = [last_change(disturbed, name) for name in FILES]
        process = start(disturbed, options)
        process.join(chance.uniform(0, longest) if kills < options.kills else None)
        if process.is_alive():
            process.kill()
            process.join()
            kills += 1
            now = [last_change(disturbed, name) for name in FILES]
            at_work += now != before
            at_writing += now[1] not in (before[1], None)
            continue
        if process.exitcode != 0:
            sys.exit(f"after {kills} kills a training failed with exit code {process.exitcode}")
        finished += 1
        found = differences(TrainedModel.load(disturbed / "model"), expected)
        if found:
            sys.exit(f"after {kills} kills a resumed training is not the undisturbed one: {', '.join(found)} differ")
        remove_checkpoint(disturbed)
    return (
        f"{kills} kills, {at_work} of them after a checkpoint of the same process, {at_writing} while one was written; "
        f"{finished} trainings reached their end, each bit for bit the undisturbed one"
    )


def main() -> None:
    """Print one line, or fail."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how often to kill (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=60, help="epochs of each training (default: %(default)s)")
    parser.add_argument("--engine", default="auto", help="auto, fused or torch (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="decides the moments (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(stress(Path(folder), options))


if __name__ == "__main__":
    main()
