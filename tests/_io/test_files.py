from __future__ import annotations

import multiprocessing
import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rarenode._io.files import (
    belonging,
    read_together,
    remove_abandoned,
    replacing,
    replacing_together,
    require_writable,
    sole_use,
    waiting_files,
)
from rarenode.errors import FolderInUseError, TrainingError


def test_a_planted_link_is_not_written_through(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / ".model.json.part").symlink_to(precious)
    with replacing(tmp_path / "model.json") as (part,):
        part.write_text("new")
    assert precious.read_text() == "mine"
    assert (tmp_path / "model.json").read_text() == "new"
    assert not (tmp_path / "model.json").is_symlink()


def test_a_failure_leaves_the_old_file_and_no_temporary_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing(path) as (part,):
        part.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_two_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with replacing(path) as (first,):
        first.write_text("first")
        with replacing(path) as (second,):
            second.write_text("second")
        assert path.read_text() == "second"
        assert first.read_text() == "first"
    assert path.read_text() == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_what_a_killed_process_left_is_removed_and_what_another_writes_is_not(tmp_path: Path) -> None:
    path = tmp_path / "file"
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=_write_for_ever, args=(path, ready))
    process.start()
    assert ready.wait(60)
    with replacing(path) as (part,):
        part.write_text("ours")
    assert len(list(tmp_path.iterdir())) == 2  # the file, and what the other process is writing
    process.kill()
    process.join()
    with replacing(path) as (part,):
        part.write_text("ours")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_new_file_has_ordinary_permissions(tmp_path: Path) -> None:
    (tmp_path / "ordinary").touch()
    with replacing(tmp_path / "file") as (part,):
        part.write_text("new")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ordinary", "file")}
    assert len(modes) == 1


def test_a_name_as_long_as_the_file_system_allows_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    with replacing(path) as (part,):
        part.write_text("new")
    assert path.read_text() == "new"


def test_a_folder_is_used_by_one_thread_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with ThreadPoolExecutor(1) as other:
        with sole_use(folder):
            with pytest.raises(FolderInUseError, match="another process is using"):
                other.submit(_use, folder).result()
            with sole_use(tmp_path / "another"):
                pass
        other.submit(_use, folder).result()
    assert folder.is_dir()


def test_a_folder_is_used_by_one_process_at_a_time(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with sole_use(tmp_path):
        process = context.Process(target=_use, args=(tmp_path,))
        process.start()
        process.join()
        assert process.exitcode == 1
    _use(tmp_path)


def test_the_same_thread_may_enter_again(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as other, sole_use(tmp_path):
        with sole_use(tmp_path / "." / "x" / ".."):
            pass
        with pytest.raises(FolderInUseError):  # the folder was not released with the inner block
            other.submit(_use, tmp_path).result()


def test_a_failure_releases_the_folder(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), sole_use(tmp_path):
        raise RuntimeError
    with ThreadPoolExecutor(1) as other:
        other.submit(_use, tmp_path).result()


def test_a_folder_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(TrainingError, match="cannot be created"), sole_use(tmp_path / "file"):
        pass


def test_whether_a_folder_can_be_written_is_known_before(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path, tmp_path / "new" / "deep"):
        require_writable(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    for folder in (tmp_path / "file", tmp_path / "file" / "new" / "deep"):
        with pytest.raises(TrainingError, match="cannot be created: Not a directory"):
            require_writable(folder)
    with pytest.raises(TrainingError, match="cannot be created: File name too long"):
        require_writable(tmp_path / ("x" * 300))


def test_several_files_are_replaced_together(tmp_path: Path) -> None:
    paths = tmp_path / "a", tmp_path / "b"
    for path in paths:
        path.write_text("old")
    with pytest.raises(RuntimeError), replacing(*paths) as parts:
        parts[0].write_text("new")
        raise RuntimeError
    assert [path.read_text() for path in paths] == ["old", "old"]
    with replacing(*paths) as parts:
        for part in parts:
            part.write_text("new")
        assert [path.read_text() for path in paths] == ["old", "old"]
    assert [path.read_text() for path in paths] == ["new", "new"]
    assert len(list(tmp_path.iterdir())) == 2


NAMES = "record", "a.bin", "b"


def _replace_together(folder: Path, content: str) -> None:
    with replacing_together(*(folder / name for name in NAMES)) as parts:
        for name, part in zip(NAMES, parts, strict=True):
            part.write_text(f"{content} {name}")


def _read_together(folder: Path) -> list[str]:
    return [belonging(folder / name, folder / "record").read_text() for name in NAMES]


@pytest.mark.parametrize("old", [["first"], ["first", "second"]])
@pytest.mark.parametrize("survives", range(6))
def test_a_kill_at_any_moment_leaves_all_old_files_or_all_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survives: int, old: list[str]
) -> None:
    """Of the files that are renamed so many are, and then the process ends; the next one does what is left to do."""
    changed, rename = [0], Path.replace

    def killed(self: Path, target: Path) -> Path:
        if changed[0] == survives:
            raise KeyboardInterrupt
        changed[0] += 1
        return rename(self, target)

    for content in old:
        _replace_together(tmp_path, content)
        assert _read_together(tmp_path) == [f"{content} {name}" for name in NAMES]
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        if survives < 5:  # two files wait, the record is replaced, two get their names
            with pytest.raises(KeyboardInterrupt):
                _replace_together(tmp_path, "new")
        else:
            _replace_together(tmp_path, "new")
    expected = "new" if survives >= 3 else old[-1]
    assert _read_together(tmp_path) == [f"{expected} {name}" for name in NAMES]
    assert bool(waiting_files(tmp_path)) == (0 < survives < 5)
    _replace_together(tmp_path, "last")
    assert _read_together(tmp_path) == [f"last {name}" for name in NAMES]
    assert {path.name for path in tmp_path.iterdir()} == set(NAMES)


def test_what_is_replaced_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    _replace_together(tmp_path, "old")
    attempts = []

    def read() -> list[str]:
        attempts.append(1)
        if len(attempts) == 1:
            _replace_together(tmp_path, "new")
            raise FileNotFoundError
        return _read_together(tmp_path)

    assert read_together(tmp_path / "record", read)[0] == "new record"
    with pytest.raises(FileNotFoundError):
        read_together(tmp_path / "record", lambda: _read_together(tmp_path / "nowhere"))


def test_a_folder_that_was_removed_while_it_was_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock on a folder that is no longer there would keep nobody out."""

    def lock(_: int) -> bool:
        (tmp_path / "a").rmdir()
        return True

    monkeypatch.setattr("rarenode._io.files._is_locked", lock)
    with pytest.raises(FolderInUseError, match="another process has removed"), sole_use(tmp_path / "a"):
        pass


def _use(folder: Path) -> None:
    with sole_use(folder):
        pass


def _write_for_ever(path: Path, ready: object) -> None:
    with replacing(path) as (part,):
        part.write_text("theirs")
        ready.set()  # type: ignore[attr-defined]
        multiprocessing.Event().wait()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes among files there")
def test_a_pipe_among_temporary_files_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".x.part")
    remove_abandoned(tmp_path)  # opening it to read would never end
    assert not (tmp_path / ".x.part").exists()
