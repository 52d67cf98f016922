from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from rarenode import Hierarchy
from rarenode._io.arrays import read_note, write_arrays
from rarenode.engines import EngineName
from rarenode.engines.fused_engine import FusedEngine
from rarenode.errors import FileFormatError, FolderInUseError, Interrupted, ResumeError, TrainingError
from rarenode.training import TrainedModel, train_model
from rarenode.training.checkpoint import FILE, remove_checkpoint
from tests.training.problem import Recorder, rows, same, settings, validation

PROJECT = Path(__file__).parents[2]


def press_ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def stop_at(batch: int, folder: Path, **changes: Any) -> None:
    with pytest.raises(Interrupted):
        train_model(rows(), settings(**changes), folder=folder, callback=Recorder(batch, press_ctrl_c), resume=True)


@pytest.fixture(scope="module")
def undisturbed() -> TrainedModel:
    return train_model(rows(), settings())


@pytest.mark.parametrize("engine", ["fused", "torch"])
@pytest.mark.parametrize("batch", [1, 7, 10, 11, 30])
def test_resuming_is_never_having_stopped(tmp_path: Path, engine: EngineName, batch: int) -> None:
    stop_at(batch, tmp_path, engine=engine, schedule="exponential", n_members=2, focus="gmu")
    chosen = settings(engine=engine, schedule="exponential", n_members=2, focus="gmu")
    recorder = Recorder()
    resumed = train_model(rows(), chosen, folder=tmp_path, resume=True, callback=recorder)
    assert recorder.plan is not None
    assert recorder.plan.steps_done == batch == 30 - len(recorder.batches)
    assert same(resumed, train_model(rows(), chosen))


def test_stopping_again_and_again(tmp_path: Path, undisturbed: TrainedModel) -> None:
    for _ in range(9):
        stop_at(3, tmp_path)
    assert same(train_model(rows(), settings(), folder=tmp_path, resume=True), undisturbed)


def test_the_best_epoch_survives(tmp_path: Path) -> None:
    chosen = settings(epochs=60, learning_rate=0.05, patience=2)
    undisturbed = train_model(rows(), chosen, valid=validation())
    for more_batches in (4, 10 * len(undisturbed.history) - 12):  # in the first epoch, and in the last but one
        recorder = Recorder(more_batches, press_ctrl_c)
        with pytest.raises(Interrupted):
            train_model(rows(), chosen, valid=validation(), folder=tmp_path, callback=recorder, resume=True)
    assert same(train_model(rows(), chosen, valid=validation(), folder=tmp_path, resume=True), undisturbed)


def test_checkpoints_come_after_epochs_and_minutes(tmp_path: Path, undisturbed: TrainedModel) -> None:
    class BrokenError(Exception):
        pass

    def fail() -> None:
        raise BrokenError

    for changes, done in (({"checkpoint_epochs": 2}, 20), ({"checkpoint_minutes": 1e-9}, 24)):
        folder = tmp_path / str(done)
        with pytest.raises(BrokenError):
            train_model(rows(), settings(**changes), folder=folder, callback=Recorder(25, fail))
        recorder = Recorder()
        # How often to save decides nothing, so it may change.
        assert same(train_model(rows(), settings(), folder=folder, resume=True, callback=recorder), undisturbed)
        assert recorder.plan is not None
        assert recorder.plan.steps_done == done


def test_resuming_without_a_checkpoint_begins(tmp_path: Path, undisturbed: TrainedModel) -> None:
    assert same(train_model(rows(), settings(), folder=tmp_path / "new", resume=True), undisturbed)


def test_a_finished_training_can_be_resumed_until_its_checkpoint_is_removed(tmp_path: Path) -> None:
    first = train_model(rows(), settings(checkpoint_epochs=1), folder=tmp_path)
    recorder = Recorder()
    assert same(train_model(rows(), settings(), folder=tmp_path, resume=True, callback=recorder), first)
    assert recorder.batches == []
    remove_checkpoint(tmp_path)
    remove_checkpoint(tmp_path)
    assert list(tmp_path.iterdir()) == []


# --- Ctrl-C ----------------------------------------------------------------------------------------------------------


def test_ctrl_c_says_how_to_resume(tmp_path: Path) -> None:
    with pytest.raises(Interrupted, match=r"epoch 2 of 3 after batch 4 of 10\. .*--resume") as caught:
        train_model(rows(), settings(), folder=tmp_path, callback=Recorder(14, press_ctrl_c))
    assert str(tmp_path) in str(caught.value)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_without_a_folder_says_that_nothing_is_saved() -> None:
    with pytest.raises(Interrupted, match="Nothing is saved"):
        train_model(rows(), settings(), callback=Recorder(4, press_ctrl_c))


def test_a_second_ctrl_c_does_not_wait() -> None:
    def press_twice() -> None:
        press_ctrl_c()
        press_ctrl_c()
        raise AssertionError("the second should have been raised at once")

    with pytest.raises(Interrupted):
        train_model(rows(), settings(), callback=Recorder(4, press_twice))


def test_half_a_step_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: TrainedModel) -> None:
    """An interrupt from a handler of the program's own may come in the middle of a step."""
    step, count = FusedEngine.step, [0]

    def interrupted(self: FusedEngine, *args: Any) -> float:
        count[0] += 1
        if count[0] == 15:
            raise KeyboardInterrupt
        return step(self, *args)

    monkeypatch.setattr(FusedEngine, "step", interrupted)
    with pytest.raises(Interrupted, match="No checkpoint could be saved"):
        train_model(rows(), settings(checkpoint_epochs=1), folder=tmp_path)
    assert same(train_model(rows(), settings(), folder=tmp_path, resume=True), undisturbed)


@pytest.mark.parametrize(
    ("model", "function", "says"),
    [("mlp+forest", "grow_forest", "the forest was grown"), ("mlp+neighbours", "fit_neighbours", "distances .* were")],
)
def test_an_interrupt_after_the_network_says_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, function: str, says: str
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"rarenode.training.train.{function}", interrupted)
    with pytest.raises(Interrupted, match=f"stopped while {says}.*; resuming .* networks that are trained are kept"):
        train_model(rows(), settings(model=model), folder=tmp_path)


def test_training_outside_the_main_thread(undisturbed: TrainedModel) -> None:
    with ThreadPoolExecutor(1) as other:
        assert same(other.submit(train_model, rows(), settings()).result(), undisturbed)


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"learning_rate": 2e-3}, r"learning_rate was 0\.001 and is now 0\.002$"),
        ({"epochs": 9, "seed": 1}, r"epochs was 3 and is now 9; seed was 0 and is now 1$"),
        ({"focus": "gmu"}, "focus was 'none' and is now 'gmu'"),
        ({"engine": "torch"}, "engine was 'fused' and is now 'torch'"),
        ({"n_members": 2}, "n_members was 1 and is now 2"),
    ],
)
def test_other_settings_are_refused_by_name(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    stop_at(4, tmp_path)
    with pytest.raises(ResumeError, match=says):
        train_model(rows(), settings(**changes), folder=tmp_path, resume=True)


def test_the_engine_counts_and_not_how_it_was_chosen(tmp_path: Path, undisturbed: TrainedModel) -> None:
    stop_at(4, tmp_path, engine="auto")
    assert same(train_model(rows(), settings(engine="fused"), folder=tmp_path, resume=True), undisturbed)


def test_other_data_are_refused(tmp_path: Path) -> None:
    stop_at(4, tmp_path)
    weights = np.ones(len(rows()), dtype=np.float32)
    for given, valid, says in [
        (replace(rows(), X=rows().X * np.arange(1, 9)[::-1] ** 2 + rows().X ** 2), None, "the training rows are not"),
        (replace(rows(), n_counted=None), None, "the training rows are not the same$"),
        (replace(rows(), sample_weight=weights), None, "the training rows are not the same$"),
        (rows(), validation(), "the validation rows are not the same$"),
    ]:
        with pytest.raises(ResumeError, match=says):
            train_model(given, settings(), valid=valid, folder=tmp_path, resume=True)


def test_another_hierarchy_is_refused(tmp_path: Path) -> None:
    stop_at(4, tmp_path)
    flat = Hierarchy.from_edges([], rows().hierarchy.nodes)
    with pytest.raises(ResumeError, match="the hierarchy is not the same"):
        train_model(replace(rows(), hierarchy=flat), settings(), folder=tmp_path, resume=True)


def test_a_checkpoint_is_not_overwritten_without_resume(tmp_path: Path) -> None:
    stop_at(4, tmp_path)
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(ResumeError, match="--resume"):
        train_model(rows(), settings(), folder=tmp_path)
    assert (tmp_path / FILE).read_bytes() == before


def test_two_trainings_cannot_share_a_folder(tmp_path: Path) -> None:
    def second() -> None:
        with ThreadPoolExecutor(1) as other, pytest.raises(FolderInUseError, match="another process is using"):
            other.submit(train_model, rows(), settings(), folder=tmp_path).result()

    train_model(rows(), settings(), folder=tmp_path, callback=Recorder(2, second))


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainingError, match="cannot be created"):
        train_model(rows(), settings(), folder=tmp_path / "file")


# --- damage ----------------------------------------------------------------------------------------------------------


def test_damaged_and_foreign_checkpoints(tmp_path: Path) -> None:
    stop_at(4, tmp_path)
    path = tmp_path / FILE
    whole = path.read_bytes()
    header_size = int.from_bytes(whole[:8], "little")
    damaged = {
        "empty": b"",
        "truncated": whole[:-1],
        "cut in the header": whole[:100],
        "longer": whole + b"\0",
        "huge header": (1 << 62).to_bytes(8, "little") + whole[8:],
        "not JSON": whole[:8] + b"x" * header_size + whole[8 + header_size :],
        "text": b"this is not a checkpoint",
    }
    for what, content in damaged.items():
        path.write_bytes(content)
        with pytest.raises(FileFormatError, match=FILE):
            train_model(rows(), settings(), folder=tmp_path, resume=True)
        assert path.read_bytes() == content, what
    path.write_bytes(whole.replace(b"F32", b"I32", 1))
    with pytest.raises(FileFormatError, match=r"I32 .*F32 .* was expected"):
        train_model(rows(), settings(), folder=tmp_path, resume=True)
    path.write_bytes(whole.replace(b"checkpoint", b"checkmates", 1))
    with pytest.raises(FileFormatError, match="no checkpoint of this rarenode: format"):
        train_model(rows(), settings(), folder=tmp_path, resume=True)
    save_file({"a": np.zeros(3)}, path)
    with pytest.raises(FileFormatError, match="rarenode did not write it"):
        train_model(rows(), settings(), folder=tmp_path, resume=True)


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    stop_at(14, tmp_path)
    path = tmp_path / FILE
    whole = path.read_bytes()
    end_of_header = 8 + int.from_bytes(whole[:8], "little")
    edits = {place: bytes([whole[place] ^ 1]) for place in (end_of_header, len(whole) // 2, len(whole) - 1)}
    edits[whole.index(b"loss") + len(b'loss\\":')] = b"7"
    for place, byte in edits.items():
        path.write_bytes(whole[:place] + byte + whole[place + 1 :])
        with pytest.raises(FileFormatError, match=r"its checksum .* remove it to begin this training again"):
            train_model(rows(), settings(), folder=tmp_path, resume=True)


@pytest.mark.parametrize(
    "changes",
    [
        {"epoch": -1}, {"epoch": 2**64}, {"epoch": 0}, {"epoch": 3}, {"batch": -4}, {"batch": 11}, {"batch": 5},
        {"best_epoch": 2}, {"best_epoch": -1}, {"seconds": -1.0}, {"history": []},
    ],
)  # fmt: skip
def test_a_position_outside_the_training_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    stop_at(14, tmp_path)
    path = tmp_path / FILE
    with safe_open(path, framework="numpy") as content:
        arrays = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118 (no dict)
    header = json.loads(read_note(path))
    header["position"] |= changes
    write_arrays(path, arrays, json.dumps(header))
    with pytest.raises(FileFormatError, match=r"position.* remove it to begin this training again"):
        train_model(rows(), settings(), folder=tmp_path, resume=True)


# --- the disk --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["fsync", "replace", "open"])
def test_a_disk_that_refuses_costs_nothing_but_the_new_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: TrainedModel, call: str
) -> None:
    stop_at(4, tmp_path)
    before = (tmp_path / FILE).read_bytes()

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.warns(RuntimeWarning, match="No space left on device.*the last one is kept") as caught:
        fill = Recorder(1, lambda: monkeypatch.setattr(Path if call == "open" else os, call, refuse))
        model = train_model(rows(), settings(checkpoint_epochs=1), folder=tmp_path, resume=True, callback=fill)
    monkeypatch.undo()
    assert len(caught) == 1
    assert same(model, undisturbed)
    assert (tmp_path / FILE).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_ctrl_c_on_a_full_disk_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill_and_press() -> None:
        def refuse(*_: Any) -> None:
            raise OSError(errno.ENOSPC, "full")

        monkeypatch.setattr(os, "fsync", refuse)
        press_ctrl_c()

    with (
        pytest.warns(RuntimeWarning, match="there is none yet"),
        pytest.raises(Interrupted, match="No checkpoint could be saved"),
    ):
        train_model(rows(), settings(), folder=tmp_path, callback=Recorder(4, fill_and_press))


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are Unix's")
def test_a_disk_that_is_really_full(tmp_path: Path, undisturbed: TrainedModel) -> None:
    """A file may not grow beyond a limit, in a separate process: the write itself fails, half-way."""
    stop_at(4, tmp_path)
    before = (tmp_path / FILE).read_bytes()
    script = f"""
import resource, warnings
from pathlib import Path
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
warnings.simplefilter("ignore")
from rarenode.training import train_model
from tests.training.problem import rows, settings
train_model(rows(), settings(checkpoint_epochs=1), folder=Path({str(tmp_path)!r}), resume=True)
print("done")
"""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False
    )
    assert result.stdout == "done\n", result.stderr
    assert (tmp_path / FILE).read_bytes() == before
    assert same(train_model(rows(), settings(), folder=tmp_path, resume=True), undisturbed)


def test_a_training_that_goes_wrong_keeps_the_last_good_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = FusedEngine.state

    def spoilt(self: FusedEngine) -> Any:
        arrays = state(self)
        if self.steps > 15:
            arrays["layer0.weight"][0, 0, 0] = np.inf
        return arrays

    monkeypatch.setattr(FusedEngine, "state", spoilt)
    with pytest.raises(TrainingError, match=r"epoch 2 of 3, batch 10 of 10: layer0\.weight is no longer finite"):
        train_model(rows(), settings(checkpoint_epochs=1), folder=tmp_path)
    monkeypatch.undo()
    recorder = Recorder()
    train_model(rows(), settings(), folder=tmp_path, resume=True, callback=recorder)
    assert recorder.plan is not None
    assert recorder.plan.steps_done == 10


# --- kills -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is Unix's")
@pytest.mark.slow
def test_kills_at_random_moments() -> None:
    """A handful; `make stress` does hundreds."""
    assert "5 kills" in stress("--kills", "5", "--epochs", "20", "--rounds", "0")


@pytest.mark.skipif(sys.platform != "linux", reason="rights are dropped as Linux does it")
@pytest.mark.slow
def test_trouble_for_a_command() -> None:
    printed = stress("--only", "predict", "--rounds", "1")
    assert "1 read-only folders" in printed
    assert ("1 full disks" in printed) != ("full disks are left out" in printed)


def stress(*options: str) -> str:
    one_thread = os.environ | {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tools.stress", *options]
    result = subprocess.run(command, cwd=PROJECT, env=one_thread, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
