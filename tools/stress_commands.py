"""Commands under stress: killed at random moments, on a full disk, and in folders that cannot be written to.

Each `Command` runs in a folder of its own that `Command.prepare` has filled. `Command.check` is called after every
kill, and raises `AssertionError` unless old or new content is there, complete; `Command.result` is what the command,
once it has ended, must have produced, whatever happened before.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tests.paper.small_grid import QUICK, STANDING_FOR, write_files

from rarenode import Run
from rarenode._io.files import SUFFIX
from rarenode.config import Settings
from rarenode.data.catalogue import find_entry
from rarenode.paper.store import load_record, record_files
from rarenode.run.shards import Manifest
from rarenode.training import TrainedModel

# A fork of a process that has everything imported and has computed nothing: starting anew takes no time.
CONTEXT = multiprocessing.get_context("forkserver")
SMALL: dict[str, Any] = {
    "model": "mlp", "hidden_size": 8, "n_layers": 1, "epochs": 8, "batch_size": 8, "holdout": 0.3, "n_members": 2,
    "engine": "torch",
}  # fmt: skip
NO_CAPABILITIES, SYS_CAPSET = (0x20080522, 0), {"x86_64": 126, "aarch64": 91}


@dataclass(frozen=True)
class Command:
    """A command, and what must hold."""

    name: str
    prepare: Callable[[Path], None]
    run: Callable[[], None]
    """In the folder, in a process of its own."""
    check: Callable[[Path], None]
    result: Callable[[Path], Any]


# --- running -------------------------------------------------------------------------------------------------------


def start(command: Command, folder: Path, log: Path, *, as_owner: bool = False) -> Any:
    """Begin the command in a process of its own, which prints to a file; as root, or only with an owner's rights."""
    process = CONTEXT.Process(target=_in_folder, args=(command.run, folder, log, as_owner))
    process.start()
    return process


def _in_folder(run: Callable[[], None], folder: Path, log: Path, as_owner: bool) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.chdir(folder)
    if as_owner and os.geteuid() == 0:
        _drop_capabilities()
    run()


def _drop_capabilities() -> None:
    """From here on root may write only where its owner may; the interpreter it runs on stays readable."""
    header, nothing = (ctypes.c_uint32 * 2)(*NO_CAPABILITIES), (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(SYS_CAPSET[os.uname().machine], header, nothing) != 0:
        raise OSError(ctypes.get_errno(), "capabilities cannot be dropped")


def shell(*arguments: str) -> None:
    """A command of rarenode, as the shell runs it."""
    from rarenode.cli import main  # noqa: PLC0415

    sys.argv = ["rarenode", *arguments]
    main()


def contents(folder: Path) -> dict[str, str]:
    """The sha256 of each file in a folder, but for those that are being written."""
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(SUFFIX))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(paths)}


# --- what is run ---------------------------------------------------------------------------------------------------


def _rows(path: Path, rows: int = 60) -> None:
    names = ("A > B", "A > C", "D", "A > B > E")
    lines = [f"r{row},{row % 7 + row % 4},{row % 5},{names[row % 4]}" for row in range(rows)]
    path.write_text("id,a,b,taxa\n" + "\n".join(lines) + "\n", encoding="utf-8")


def _with_run(folder: Path) -> None:
    """A finished run on a table."""
    _rows(folder / "rows.csv")
    with chdir(folder):
        Run.fit("rows.csv", "run", Settings(**SMALL), options={"labels": "taxa", "id": "id"}, report=False)


def _prepare_save(folder: Path) -> None:
    _with_run(folder)
    shutil.move(folder / "run", folder / "first")
    with chdir(folder):
        settings = Settings(**SMALL, seed=1)
        Run.fit("rows.csv", "second", settings, options={"labels": "taxa", "id": "id"}, report=False)
        TrainedModel.load("first").save("model")


def _save() -> None:
    """Save one model over another, again and again, and end with the first."""
    models = [TrainedModel.load(name) for name in ("second", "first")]
    try:
        for model in models * 20:
            model.save("model")
    except OSError as error:
        print(f"rarenode: {error}")
        sys.exit(1)


def _arrays(folder: Path) -> dict[str, Any]:
    model = TrainedModel.load(folder)
    return {name: array.tobytes() for name, array in model.model.arrays().items()} | {"seed": model.settings.seed}


def _check_save(folder: Path) -> None:
    found = _arrays(folder / "model")
    assert found in (_arrays(folder / "first"), _arrays(folder / "second")), "the model is neither of the two"


def _prepare_report(folder: Path) -> None:
    _with_run(folder)
    (folder / "page.html").write_text("old", encoding="ascii")


def _report() -> None:
    shell("report", "run", "--out", "page.html")


def _check_report(folder: Path) -> None:
    text = (folder / "page.html").read_text(encoding="utf-8")
    assert text == "old" or text.rstrip().endswith("</html>"), "the page is not complete"


def _prepare_predict(folder: Path) -> None:
    _with_run(folder)
    (folder / "out.csv").write_text("old", encoding="ascii")


def _predict() -> None:
    shell("predict", "run", "rows.csv", "--out", "out.csv")


def _check_predict(folder: Path) -> None:
    text = (folder / "out.csv").read_text(encoding="utf-8")
    assert text == "old" or (text.endswith("\n") and "\nr59," in text), "the predictions are not complete"


def _prepare_shards(folder: Path) -> None:
    _with_run(folder)
    for part in range(4):
        _rows(folder / f"part-{part}.csv", 20 + part)


def _predict_shards() -> None:
    shell("predict", "run", "part-*.csv", "--out", "out/")


def _check_shards(folder: Path) -> None:
    manifest = folder / "out" / "predictions.json"
    done = Manifest.model_validate_json(manifest.read_bytes()).files if manifest.exists() else {}
    for name, shard in done.items():
        content = (folder / "out" / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == shard.sha256, f"{name} is not what the manifest says"
    for path in (folder / "out").glob("*.csv"):
        last = 19 + int(path.stem.removeprefix("part-"))
        assert f"\nr{last}," in path.read_text(encoding="utf-8"), f"{path.name} is not complete"


def _prepare_fit(folder: Path) -> None:
    _rows(folder / "rows.csv")
    options = {**SMALL, "checkpoint_epochs": 1, "epochs": 20}
    (folder / "own.toml").write_text(Settings(**options).to_toml(), encoding="utf-8")


def _fit() -> None:
    shell("fit", "rows.csv", "--labels", "taxa", "--id", "id", "--settings", "own.toml", "--out", "run", "--resume")


def _check_fit(folder: Path) -> None:
    run = Run(folder / "run")
    run.files.settings(), run.files.start(), run.files.examination()
    if run.files.has_model:
        TrainedModel.load(folder / "run")


def _fitted(folder: Path) -> Any:
    return _arrays(folder / "run"), Run(folder / "run").model.thresholds, (folder / "run/report.html").exists()


def _prepare_paper(folder: Path) -> None:
    write_files(folder / "data", find_entry(STANDING_FOR))
    settings = "\n".join(f"{name} = {json.dumps(value)}" for name, value in QUICK.items())
    head = f'title = "small"\ndatasets = ["{STANDING_FOR}"]\nseeds = 2\n[settings]\n'
    (folder / "spec.toml").write_text(f'{head}{settings}\n[[methods]]\nname = "plain"\n', encoding="utf-8")


def _paper() -> None:
    shell("paper", "run", "spec.toml", "--results", "results", "--root", "data", "--quiet")


def _records(folder: Path) -> list[Any]:
    records = [load_record(path) for path in record_files(folder / "results")]
    return [(record.settings, record.at_half.summary, record.at_half.nodes) for record in records]


COMMANDS = (
    Command("save over a model", _prepare_save, _save, _check_save, lambda folder: _arrays(folder / "model")),
    Command("report", _prepare_report, _report, _check_report, contents),
    Command("predict", _prepare_predict, _predict, _check_predict, contents),
    Command("predict a folder", _prepare_shards, _predict_shards, _check_shards, contents),
    Command("fit and resume", _prepare_fit, _fit, _check_fit, _fitted),
    Command("paper run", _prepare_paper, _paper, lambda folder: (_records(folder), None)[1], _records),
)


# --- disks ---------------------------------------------------------------------------------------------------------


@contextmanager
def small_disk(folder: Path, megabytes: int = 64) -> Iterator[Path]:
    """A disk of its own, in memory; only root can make one."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def why_no_disk(folder: Path) -> str:
    """Why no disk can be made; empty if one can."""
    if os.geteuid() != 0:
        return "only root can make disks"
    try:
        with small_disk(folder / "trial"):
            pass
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no disk can be made here ({error})"
    return ""


def fill(disk: Path, leave: int) -> None:
    """Leave so many bytes on a disk."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    with (disk / "filler").open("wb") as filler:
        filler.write(np.zeros(max(free - leave, 0), dtype=np.uint8).data)
