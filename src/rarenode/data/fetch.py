"""Fetch the catalogue's files so that a file under its own name is always the right file.

A file is downloaded beside its place, under its name and ``.part``. It is verified there, written through to the disk,
and only then renamed. A crash at any moment leaves either no file or the whole, verified file.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from rarenode.data.catalogue import CatalogueEntry, CatalogueFile, find_entry
from rarenode.data.download import PATIENT, Patience, checked_base, download
from rarenode.data.locations import data_root
from rarenode.data.readers.arff import read_arff
from rarenode.errors import DownloadError, MissingFileError, RarenodeError, VerificationError

if sys.platform != "win32":
    import fcntl


class Progress(Protocol):
    """Is told how far the download of a file is; ``done`` falls back when a download has to start anew."""

    def __call__(self, file: CatalogueFile, done: int, total: int, /) -> None:
        """Take note that ``done`` of ``total`` bytes are there."""


class FetchStatus(StrEnum):
    """What it took to have the file."""

    PRESENT = "already there"
    FETCHED = "fetched"
    RESUMED = "fetched, going on from an earlier part"


class Verified(StrEnum):
    """How the file is known to be the right one."""

    CHECKSUM = "sha256 is right"
    CONTENT = "it parses, with the right features and nodes; no checksum is known for this file"
    SIZE_AND_CONTENT = "of the announced size, and it parses, with the right features and nodes; no checksum is known"


class FileState(StrEnum):
    """What is in the place of a catalogue's file."""

    ABSENT = "absent"
    RIGHT = "present, sha256 is right"
    UNVERIFIED = "present, no checksum is known"
    WRONG = "present, but not the file that the catalogue describes"


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A verified file in its place."""

    path: Path
    size: int
    status: FetchStatus
    verified: Verified


def fetch_dataset(
    name: str, root: Path | str | None = None, mirror: str | None = None, progress: Progress | None = None
) -> tuple[FetchedFile, ...]:
    """Make sure that all files of a dataset of the catalogue are in the data root; return what was done for each.

    Files that are there and right are left alone. ``root`` is as in `data_root`. ``mirror`` is an http or https address
    that holds the same files under the same paths, to be used in place of the public repository.

    Raises:
        UnknownDatasetError: the catalogue has no such name.
        ArgumentError: ``mirror`` is not an http or https address.
        DownloadError: a file could not be had; what has arrived is kept for the next time.
        VerificationError: a file is not what the catalogue describes; one that was there before is not touched.
        MissingFileError: a file that is published nowhere is not there.
    """
    return fetch_entry(find_entry(name), root, mirror, progress)


def fetch_entry(
    entry: CatalogueEntry,
    root: Path | str | None = None,
    mirror: str | None = None,
    progress: Progress | None = None,
    patience: Patience = PATIENT,
) -> tuple[FetchedFile, ...]:
    """Do what `fetch_dataset` does, for an entry that need not be in the catalogue."""
    base = checked_base(entry.source if mirror is None else mirror)
    fetcher = _Fetcher(entry, data_root(root), base, progress, patience)
    # What cannot be fetched comes last: its absence is no reason to leave the others out.
    fetched = {file: fetcher.obtain(file) for file in sorted(entry.files, key=lambda file: not file.published)}
    return tuple(fetched[file] for file in entry.files)


def missing_files(entry: CatalogueEntry, root: Path | str | None = None) -> tuple[CatalogueFile, ...]:
    """Return the files that are not in the data root; says nothing about the content of those that are."""
    folder = data_root(root)
    return tuple(file for file in entry.files if not (folder / file.path).is_file())


def inspect_file(file: CatalogueFile, root: Path | str | None = None) -> FileState:
    """Compare what is in the file's place with the catalogue."""
    path = data_root(root) / file.path
    if not path.is_file():
        return FileState.ABSENT
    if file.sha256 is None:
        return FileState.UNVERIFIED
    return FileState.RIGHT if _sha256(path) == file.sha256 else FileState.WRONG


@dataclass(frozen=True, slots=True)
class _Fetcher:
    entry: CatalogueEntry
    folder: Path
    base: str
    progress: Progress | None
    patience: Patience

    def obtain(self, file: CatalogueFile) -> FetchedFile:
        path = self.folder / file.path
        if not file.published and not path.exists():
            raise MissingFileError(
                f"{self.entry.name}: its {file.split} file is not published anywhere, so it cannot be fetched; "
                f"put it at {path} (its sha256 must be {file.sha256})"
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with _sole_use(path.parent):
                status = self._keep(file, path) if path.exists() else self._fetch(file, path)
                size = path.stat().st_size
        except RarenodeError:
            raise
        except OSError as error:
            raise DownloadError(f"{path}: {error.strerror or error}") from error
        without_checksum = Verified.CONTENT if status is FetchStatus.PRESENT else Verified.SIZE_AND_CONTENT
        return FetchedFile(path, size, status, without_checksum if file.sha256 is None else Verified.CHECKSUM)

    def _keep(self, file: CatalogueFile, path: Path) -> FetchStatus:
        fault = _fault(self.entry, file, path)
        if fault is not None:
            raise VerificationError(
                f"{path} is already there, but {fault}; it was not touched: move it away or delete it, then fetch again"
            )
        return FetchStatus.PRESENT

    def _fetch(self, file: CatalogueFile, path: Path) -> FetchStatus:
        address = self.base + quote(str(file.path))
        part = path.with_name(path.name + ".part")
        if file.sha256 is None:
            part.unlink(missing_ok=True)  # without a checksum nobody could tell that an older part was of another file

        resumed = self._download(file, address, part)
        fault = _fault(self.entry, file, part)
        if fault is not None and resumed:
            part.unlink()  # the older bytes may be to blame; a fresh copy decides
            resumed = self._download(file, address, part)
            fault = _fault(self.entry, file, part)
        if fault is not None:
            part.unlink()
            raise VerificationError(f"{path} was fetched from {address}, but {fault}; the download was thrown away")
        _put_in_place(part, path)
        return FetchStatus.RESUMED if resumed else FetchStatus.FETCHED

    def _download(self, file: CatalogueFile, address: str, part: Path) -> bool:
        def report(done: int, total: int) -> None:
            if self.progress is not None:
                self.progress(file, done, total)

        return download(address, part, file.size, report, self.patience)


def _fault(entry: CatalogueEntry, file: CatalogueFile, path: Path) -> str | None:
    """Say what is wrong with the content, if anything."""
    if file.sha256 is not None:
        found = _sha256(path)
        return None if found == file.sha256 else f"its sha256 is {found}, and {file.sha256} was expected"
    try:
        content = read_arff(path, kind=entry.kind)
    except RarenodeError as error:
        return f"it cannot be read ({error})"
    features, nodes = len(content.feature_names), len(content.hierarchy.nodes)
    if (features, nodes) != (entry.features, entry.nodes):
        return f"it has {features} features and {nodes} nodes, and {entry.features} and {entry.nodes} were expected"
    return None


def _sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _put_in_place(part: Path, path: Path) -> None:
    with part.open("rb+") as content:
        os.fsync(content.fileno())
    part.replace(path)
    if sys.platform != "win32":  # elsewhere a folder cannot be opened, and renaming needs no help
        with _opened(path.parent) as folder:
            os.fsync(folder)


@contextmanager
def _sole_use(folder: Path) -> Iterator[None]:
    """Wait until no other process fetches into the folder: two of them must never write to the same part."""
    if sys.platform == "win32":
        yield
    else:
        with _opened(folder) as descriptor:
            with suppress(OSError):  # some network file systems cannot lock a folder; one process is fine without
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
