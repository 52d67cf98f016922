"""Files that are replaced as a whole, and folders that one process uses at a time.

`replacing` writes new content to a temporary file beside the old one, through to the disk, and renames it into place.
A full disk or a killed process leaves the old file unchanged. Temporary names are unique, so two processes that write
one file never mix their content: the last one to finish wins.

Several files are not replaced in one instant. `replacing_together` replaces a record and the files that belong to it,
such as those of a model: the new files first wait under names that contain the checksum of the new record, then the
record is replaced, then they get their own names. `belonging` finds the files of the record that is there, so that
whoever reads them has either all old files or all new ones, also after a kill at any moment.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import TypeVar

from rarenode.errors import FileFormatError, FolderInUseError, TrainingError

if sys.platform != "win32":
    import fcntl

SUFFIX, WAITING = ".part", ".new"
"""End the names of a temporary file, and of one that waits for its record."""
CHECKSUM_CHARACTERS = 16
MOST_ATTEMPTS = 10
_WAITING_NAME = re.compile(rf"\.(?P<name>.+)\.(?P<checksum>[0-9a-f]{{{CHECKSUM_CHARACTERS}}}){re.escape(WAITING)}")
NAME_CHARACTERS = 50
"""So many of a file's name begin that of its temporary file; all of a long name would leave no room for the rest."""

Content = TypeVar("Content")

_held: set[tuple[int, Path]] = set()
"""The folders in use, each with the thread that uses it."""


def exists(path: Path | str) -> bool:
    """Whether there is such a file or folder; not if its name is longer than any can be, where `Path` would raise."""
    return os.path.exists(path)  # noqa: PTH110


def is_file(path: Path | str) -> bool:
    """Whether there is such a file; see `exists`."""
    return os.path.isfile(path)  # noqa: PTH113


def is_dir(path: Path | str) -> bool:
    """Whether there is such a folder; see `exists`."""
    return os.path.isdir(path)  # noqa: PTH112


def identity(path: Path | str) -> tuple[int, ...]:
    """What tells a file from one that replaces it.

    The time alone would not do: copying may keep it, and two files can be written within one tick of the clock.

    Raises:
        OSError: there is no such file.
    """
    about = Path(path).stat()
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def require_unchanged(path: Path, known: tuple[int, ...]) -> None:
    """Make sure that a file is still the one that had this `identity`.

    Raises:
        FileFormatError: it was changed, replaced or removed.
    """
    if not is_file(path) or identity(path) != known:
        raise FileFormatError(path, None, "it has changed while it was read; run the command again")


@contextmanager
def replacing(*paths: Path) -> Iterator[tuple[Path, ...]]:
    """Yield where to write the new content of each path, all in one folder; on leaving, they are replaced.

    Raises:
        OSError: the new content could not be written to the disk or renamed.
    """
    with ExitStack() as stack:
        parts = tuple(stack.enter_context(_temporary(path)) for path in paths)
        yield parts
        for part in parts:
            _sync(part)
        for part, path in zip(parts, paths, strict=True):
            part.replace(path)
    _sync_folder(paths[0].parent)


@contextmanager
def replacing_together(record: Path, *others: Path) -> Iterator[tuple[Path, ...]]:
    """Yield where to write a record and the files that belong to it, all in one folder; on leaving, they are replaced.

    Readers find the others by `belonging`. Only one process may do this in a folder at a time.

    Raises:
        OSError: the new content could not be written to the disk or renamed.
    """
    with ExitStack() as stack:
        parts = tuple(stack.enter_context(_temporary(path)) for path in (record, *others))
        yield parts
        for part in parts:
            _sync(part)
        _settle(record)  # what an earlier process could not finish
        checksum = _checksum(parts[0])
        for part, path in zip(parts[1:], others, strict=True):
            part.replace(_waiting(path, checksum))
        _sync_folder(record.parent)
        parts[0].replace(record)
        _sync_folder(record.parent)
        _settle(record)
        _sync_folder(record.parent)


def belonging(path: Path, record: Path) -> Path:
    """Where the file is that belongs to the record: under its own name, or still waiting for it."""
    waiting = _waiting(path, _checksum(record)) if is_file(record) else path
    return waiting if is_file(waiting) else path


def read_together(record: Path, read: Callable[[], Content]) -> Content:
    """What ``read`` returns; if it fails because another process has replaced the record meanwhile, once more."""
    for _ in range(MOST_ATTEMPTS - 1):
        before = _state(record)
        try:
            return read()
        except (FileFormatError, OSError):
            if _state(record) == before:
                raise
    return read()


def _state(record: Path) -> tuple[object, ...]:
    try:
        return identity(record), *sorted(waiting_files(record.parent))
    except OSError:
        return ()


def waiting_files(folder: Path) -> list[Path]:
    """Files in a folder that have not got their names, since a process was killed."""
    return [each for each in folder.glob(f".*{WAITING}") if _WAITING_NAME.fullmatch(each.name)]


def _waiting(path: Path, checksum: str) -> Path:
    return path.with_name(f".{path.name}.{checksum}{WAITING}")


def _settle(record: Path) -> None:
    """Give waiting files of the record their names, and remove those of records that never came."""
    checksum = _checksum(record) if is_file(record) else ""
    for each in waiting_files(record.parent):
        match = _WAITING_NAME.fullmatch(each.name)
        if match is not None and match["checksum"] == checksum:
            each.replace(each.with_name(match["name"]))
        else:
            each.unlink(missing_ok=True)


def _checksum(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()[:CHECKSUM_CHARACTERS]


def _sync(path: Path) -> None:
    with path.open("rb+") as content:
        os.fsync(content.fileno())


def _sync_folder(path: Path) -> None:
    if sys.platform == "win32":  # where a folder cannot be opened, and renaming needs no help
        return
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def remove_abandoned(folder: Path, prefix: str = ".") -> None:
    """Remove temporary files that killed processes left: those that can be locked are not in use."""
    if sys.platform == "win32":
        return
    for part in [each for each in folder.glob(f".*{SUFFIX}") if each.name.startswith(prefix)]:
        with suppress(OSError):  # it is a link, or gone, or in use
            descriptor = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # opening a pipe may never end
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink()
            finally:
                os.close(descriptor)


def require_writable(folder: Path) -> None:
    """Make sure, before long work, that a folder can be created or, if it is there, written to; nothing is left.

    Raises:
        TrainingError: it cannot.
    """
    try:
        with suppress(FileNotFoundError):
            os.lstat(folder)  # refuses names that are too long, and folders below a file
        nearest = next(each for each in (folder, *folder.parents) if exists(each))
        Path(tempfile.mkdtemp(SUFFIX, ".", nearest)).rmdir()
    except OSError as error:
        what = "written to" if is_dir(folder) else "created"
        raise TrainingError(f"the folder {folder} cannot be {what}: {error.strerror}") from None


@contextmanager
def sole_use(folder: Path, patience: float = 0.0) -> Iterator[None]:
    """Keep others out of a folder, which is created if need be, until the end of the block or of the process.

    Within the block the same thread may enter again, for the same folder.

    Args:
        folder: to use.
        patience: seconds to wait for a process that holds it.

    Raises:
        FolderInUseError: another process holds the folder.
        TrainingError: the folder cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TrainingError(f"the folder {folder} cannot be created: {error.strerror}") from None
    if sys.platform == "win32":
        yield
        return
    mine = (threading.get_ident(), folder.resolve())
    if mine in _held:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        last = monotonic() + patience
        while not _is_locked(descriptor):
            if monotonic() >= last:
                raise FolderInUseError(f"another process is using {folder}")
            sleep(0.2)
        if not is_dir(folder) or not os.path.samestat(os.fstat(descriptor), folder.stat()):
            raise FolderInUseError(f"another process has removed {folder}; run the command again")
        _held.add(mine)
        yield
    finally:
        _held.discard(mine)
        os.close(descriptor)


def _is_locked(descriptor: int) -> bool:
    """Lock an open folder, unless another process has."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network file systems cannot lock a folder; a single process is fine without
        pass
    return True


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A new empty file beside ``path`` for one writer, removed on leaving if it is still there.

    It is made with O_EXCL, so a planted link is never followed, and locked while it is in use.
    """
    prefix = f".{path.name[:NAME_CHARACTERS]}."
    remove_abandoned(path.parent, prefix)
    descriptor, name = _make_locked(prefix, path.parent)
    try:
        if sys.platform != "win32":
            os.fchmod(descriptor, 0o666 & ~_umask())  # as an ordinary new file; mkstemp lets only the owner read
        yield Path(name)
    finally:
        os.close(descriptor)
        with suppress(OSError):
            Path(name).unlink(missing_ok=True)


def _make_locked(prefix: str, folder: Path) -> tuple[int, str]:
    """A new file that is locked; before it is, another writer may take it for abandoned and remove it."""
    while True:
        descriptor, name = tempfile.mkstemp(SUFFIX, prefix, folder)
        if sys.platform == "win32":
            return descriptor, name
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if Path(name).exists():
            return descriptor, name
        os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
