"""Kill trainings and commands at random moments, and run commands on full disks and in folders that are read-only.

A training in a process of its own gets SIGKILL after a random time and is resumed, again and again. It saves a
checkpoint every few milliseconds, so that many kills fall into the writing of one. Whenever a training reaches its end,
its parameters and losses must be those of the undisturbed one, bit for bit; then the next one begins.

Commands (see `stress_commands`) are killed in the same way. After each kill, old or new content must be there, whole;
run again, the command must produce what it does undisturbed. Without room on the disk, or in a folder that is
read-only, it must end with an error of one line, and leave what was there.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

import numpy as np

from rarenode import make_hierarchical
from rarenode.config import Settings
from rarenode.config.choices import EngineName
from rarenode.training import Callback, Plan, TrainedModel, train_model
from rarenode.training.checkpoint import remove_checkpoint
from tools import duration
from tools.stress_commands import COMMANDS, CONTEXT, Command, contents, fill, small_disk, why_no_disk
from tools.stress_commands import start as start_command

CHECKPOINT_SECONDS = 0.005
FILES = ("checkpoint.safetensors", ".checkpoint.safetensors.*.part")
"""The checkpoint, and the next one while it is written."""
PRELOADED = ("rarenode.cli.app", "rarenode.training", "rarenode.run", "rarenode.paper.runner", "tools.stress_commands")
ROOM = (0, 1 << 12, 1 << 14, 1 << 16)
"""Bytes that are left on a full disk."""


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


def stress(folder: Path, options: argparse.Namespace, seconds: float) -> str:
    """Kill trainings so often, or for so long, and return what to say about it."""
    chance = random.Random(options.seed)
    end = monotonic() + seconds
    undisturbed, disturbed = folder / "undisturbed", folder / "disturbed"
    process = start(undisturbed, options)
    began = perf_counter()
    process.join()
    longest = perf_counter() - began
    expected = TrainedModel.load(undisturbed / "model")

    kills = at_work = at_writing = finished = 0
    while (enough := kills >= options.kills or monotonic() > end) is False or finished == 0:
        before = [last_change(disturbed, name) for name in FILES]
        process = start(disturbed, options)
        process.join(None if enough else chance.uniform(0, longest))
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


class Trials:
    """Commands in trouble; a command is prepared, and run undisturbed, once."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.log = folder / "log.txt"
        self.known: dict[str, tuple[Path, Any, dict[str, str], float]] = {}
        self.counts: Counter[str] = Counter()

    def undisturbed(self, command: Command) -> tuple[Path, Any, dict[str, str], float]:
        """A prepared folder, the result, all files, and the seconds of the command when nothing happens to it."""
        if command.name not in self.known:
            place = self.folder / f"prepared {len(self.known)}"
            place.mkdir()
            command.prepare(place)
            work = self.copy(place)
            began = perf_counter()
            code, _ = self.run(command, work)
            if code != 0:
                self.fail(command, "undisturbed, it failed")
            command.check(work)
            self.known[command.name] = place, command.result(work), contents(work), perf_counter() - began
        return self.known[command.name]

    def copy(self, prepared: Path, into: Path | None = None) -> Path:
        """A fresh folder to work in; it has the same path every time, which some files mention."""
        work = (into or self.folder) / "work"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(prepared, work)
        return work

    def run(self, command: Command, work: Path, seconds: float | None = None, **how: Any) -> tuple[int | None, bool]:
        """Run a command, perhaps until it is killed; its exit code, and whether it was killed."""
        process = start_command(command, work, self.log, **how)
        process.join(seconds)
        is_killed = process.is_alive()
        process.kill()
        process.join()
        return process.exitcode, is_killed

    def kills(self, command: Command) -> None:
        """Kill it up to three times, and let it end."""
        prepared, result, _, longest = self.undisturbed(command)
        work = self.copy(prepared)
        for _ in range(self.chance.randint(1, 3)):
            _, is_killed = self.run(command, work, self.chance.uniform(0, longest))
            self.counts["kills"] += is_killed
            self.checked(command, work, "after a kill")
        self.again(command, work, result, "after kills")

    def full_disk(self, command: Command) -> None:
        """Run it with little room on the disk, and then with enough."""
        prepared, result, expected, _ = self.undisturbed(command)
        with small_disk(self.folder / "disk") as disk:
            work = self.copy(prepared, disk)
            before = contents(work)
            fill(disk, self.chance.choice(ROOM))
            code, _ = self.run(command, work)
            self.counts["full disks"] += 1
            if code != 0:
                self.ended_well(command, code)
            for name, digest in before.items():
                now = contents(work).get(name)
                if now not in (digest, expected.get(name)) and name.split("/")[0] != "model":
                    self.fail(command, f"on a full disk, {name} is neither as it was nor as it should be")
            self.checked(command, work, "on a full disk")
            (disk / "filler").unlink()
            self.again(command, work, result, "after a full disk")

    def read_only(self, command: Command) -> None:
        """Run it in a folder that cannot be written to."""
        prepared, _, _, _ = self.undisturbed(command)
        work = self.copy(prepared)
        before = contents(work)
        folders = [work, *(path for path in work.rglob("*") if path.is_dir())]
        for path in folders:
            path.chmod(0o555)
        code, _ = self.run(command, work, as_owner=True)
        for path in folders:
            path.chmod(0o755)
        self.counts["read-only folders"] += 1
        if code == 0:
            self.fail(command, "in a read-only folder, it said that it was done")
        self.ended_well(command, code)
        if contents(work) != before:
            self.fail(command, "in a read-only folder, it changed something")

    def again(self, command: Command, work: Path, result: Any, when: str) -> None:
        """Run it to the end, and compare."""
        code, _ = self.run(command, work)
        if code != 0:
            self.fail(command, f"{when}, it failed with exit code {code}")
        if command.result(work) != result:
            self.fail(command, f"{when}, its result is another one than that of an undisturbed run")

    def checked(self, command: Command, work: Path, when: str) -> None:
        """What is there must be complete."""
        try:
            command.check(work)
        except Exception as error:
            self.fail(command, f"{when}, {type(error).__name__}: {error}")

    def ended_well(self, command: Command, code: int | None) -> None:
        """It must have ended with an error of one line, after warnings perhaps."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        if code != 1 or not lines or not lines[-1].startswith("rarenode: ") or "Traceback" in "".join(lines):
            self.fail(command, f"it ended with exit code {code}, and not with an error of one line")

    def fail(self, command: Command, what: str) -> None:
        """End with what went wrong, and what the command printed last."""
        printed = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:]
        sys.exit("\n".join([f"{command.name}: {what}", *printed]))


def stress_commands(folder: Path, options: argparse.Namespace, seconds: float) -> str:
    """Trouble for commands, for so long, or a few rounds of everything; returns what to say about it."""
    chance = random.Random(options.seed)
    trials, end = Trials(folder, chance), monotonic() + seconds
    why_not = why_no_disk(folder)
    kinds = [trials.kills] * 4 + [trials.read_only] + ([] if why_not else [trials.full_disk])
    chosen = [command for command in COMMANDS if command.name in (options.only or command.name)]
    todo = [(kind, command) for kind in kinds for command in chosen]
    chance.shuffle(todo)
    for kind, command in todo * (1000 if options.seconds else options.rounds):
        if monotonic() > end:
            break
        kind(command)
    done = ", ".join(f"{number} {what}" for what, number in sorted(trials.counts.items())) or "nothing"
    skipped = f"; full disks are left out: {why_not}" if why_not else ""
    return f"commands: {done}{skipped}; every content was complete, and every command ended as undisturbed"


def main() -> None:
    """Print two lines, or fail."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="how often to kill a training (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="of trouble for all commands (default: %(default)s)")
    parser.add_argument("--seconds", type=duration, help="how long; instead of kills and rounds")
    parser.add_argument("--epochs", type=int, default=60, help="epochs of each training (default: %(default)s)")
    parser.add_argument("--engine", default="auto", help="auto, fused or torch (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="decides the moments (default: %(default)s)")
    parser.add_argument("--only", nargs="+", choices=[command.name for command in COMMANDS], help="only these commands")
    options = parser.parse_args()
    CONTEXT.set_forkserver_preload([*PRELOADED])
    seconds = options.seconds or float("inf")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("training", "commands"):
            Path(folder, name).mkdir()
        if not options.only:
            print(stress(Path(folder, "training"), options, seconds / 4), flush=True)
        print(stress_commands(Path(folder, "commands"), options, 3 * seconds / 4), flush=True)


if __name__ == "__main__":
    main()
