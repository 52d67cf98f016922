"""Fetch the files of the catalogue's datasets into the data root.

Each file is downloaded to a temporary folder and verified there. Only then is it written to its place in the data root,
by an atomic rename, so a file in the data root is always complete and verified, even after a crash. Two processes may
fetch the same file at the same time: each renames a verified copy.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol
from urllib.parse import quote, urlsplit

from rarenode._io.files import replacing
from rarenode._io.text import counted
from rarenode.data.catalogue import CatalogueEntry, CatalogueFile, data_root, find_entry
from rarenode.data.readers import read
from rarenode.data.transfer import Limits, download
from rarenode.errors import ArgumentError, DownloadError, MissingFileError, RarenodeError, VerificationError


class DownloadProgress(Protocol):
    """A callback for the progress of downloads. It is called from a background thread."""

    def __call__(self, file: CatalogueFile, done: int, total: int, /) -> None:
        """Receive the number of bytes downloaded so far; it returns to 0 when a download is retried."""


class FetchStatus(StrEnum):
    """What `fetch_dataset` did for a file."""

    PRESENT = "already present"
    FETCHED = "fetched"


class Verified(StrEnum):
    """How a file was verified."""

    CHECKSUM = "sha256 verified"
    CONTENT = "features and nodes verified (no checksum is known)"


class FileState(StrEnum):
    """The state of a catalogue file on disk."""

    ABSENT = "absent"
    VERIFIED = "present, sha256 verified"
    UNVERIFIED = "present, no checksum is known"
    MISMATCH = "present, but its sha256 differs from the catalogue"


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A verified file in the data root."""

    path: Path
    size: int
    status: FetchStatus
    verified: Verified


def fetch_dataset(
    name: str, root: Path | str | None = None, mirror: str | None = None, progress: DownloadProgress | None = None
) -> tuple[FetchedFile, ...]:
    """Download the files of a catalogue dataset that are not in the data root yet, and verify all of them.

    Args:
        name: the name of the dataset; `rarenode data list` shows all.
        root: the data root, as in `data_root`.
        mirror: an http or https address that serves the same files under the same paths, to use in place of the
            public repository.
        progress: called while files are downloaded.

    Raises:
        UnknownDatasetError: the catalogue has no dataset of this name.
        ArgumentError: ``mirror`` is not an http or https address.
        DownloadError: a file could not be downloaded.
        VerificationError: a file differs from the catalogue. A file that was already present is left unchanged.
        MissingFileError: a file that is not published anywhere is not in the data root.
    """
    return fetch_entry(find_entry(name), root, mirror, progress)


def fetch_entry(
    entry: CatalogueEntry,
    root: Path | str | None = None,
    mirror: str | None = None,
    progress: DownloadProgress | None = None,
    limits: Limits | None = None,
) -> tuple[FetchedFile, ...]:
    """Fetch an entry that need not be in the catalogue; otherwise the same as `fetch_dataset`."""
    base = checked_base(entry.source if mirror is None else mirror)
    fetcher = _Fetcher(entry, data_root(root), base, progress, limits or Limits())
    # Unpublished files come last, so that a missing one does not prevent the download of the others.
    fetched = {file: fetcher.fetch(file) for file in sorted(entry.files, key=lambda file: not file.published)}
    return tuple(fetched[file] for file in entry.files)


def missing_files(entry: CatalogueEntry, root: Path | str | None = None) -> tuple[CatalogueFile, ...]:
    """Return the files of an entry that are not in the data root. Present files are not verified."""
    folder = data_root(root)
    return tuple(file for file in entry.files if not (folder / file.path).is_file())


def inspect_file(file: CatalogueFile, root: Path | str | None = None) -> FileState:
    """Compare a file in the data root with the catalogue."""
    path = data_root(root) / file.path
    if not path.is_file():
        return FileState.ABSENT
    if file.sha256 is None:
        return FileState.UNVERIFIED
    return FileState.VERIFIED if _sha256(path) == file.sha256 else FileState.MISMATCH


def checked_base(address: str) -> str:
    """Return an address to which paths can be appended.

    Raises:
        ArgumentError: it is not a plain http or https address.
    """
    try:
        parts = urlsplit(address)
        plain = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc and parts.port != 0
    except ValueError:  # a malformed host or port
        plain = False
    if not plain or re.search(r"[^!-~]|[?#]", address):
        raise ArgumentError(
            f"{address!r} is not an address to fetch files from; expected an http or https address such as "
            "https://host/folder/, without a password, '?' or '#'"
        )
    return address.rstrip("/") + "/"


@dataclass(frozen=True, slots=True)
class _Fetcher:
    entry: CatalogueEntry
    root: Path
    base: str
    progress: DownloadProgress | None
    limits: Limits

    def fetch(self, file: CatalogueFile) -> FetchedFile:
        path = self.root / file.path
        try:
            status = self._verify_present(file, path) if path.exists() else self._download(file, path)
            size = path.stat().st_size
        except RarenodeError:
            raise
        except OSError as error:
            raise DownloadError(f"{path}: {error.strerror or error}") from error
        return FetchedFile(path, size, status, Verified.CONTENT if file.sha256 is None else Verified.CHECKSUM)

    def _verify_present(self, file: CatalogueFile, path: Path) -> FetchStatus:
        problem = _mismatch(self.entry, file, path)
        if problem is not None:
            raise VerificationError(
                f"{path} is already present, but {problem}; it was left unchanged. Move or delete it, then fetch again"
            )
        return FetchStatus.PRESENT

    def _download(self, file: CatalogueFile, path: Path) -> FetchStatus:
        if not file.published:
            raise MissingFileError(
                f"{self.entry.name}: the {file.split} file is not published anywhere, so it cannot be fetched; "
                f"put it at {path} (its sha256 must be {file.sha256})"
            )
        address = self.base + quote(str(file.path))
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="rarenode-") as folder:
            downloaded = Path(folder) / path.name
            try:
                download(
                    address, downloaded, file.sha256, file.size, lambda *call: self._report(file, *call), self.limits
                )
                if file.sha256 is None and (problem := _mismatch(self.entry, file, downloaded)):
                    raise VerificationError(problem)
            except VerificationError as error:
                raise VerificationError(f"{address}: {error}; the download was discarded") from error
            except DownloadError as error:
                raise DownloadError(
                    f"{address}: {error}. "
                    f"Try again later, use another mirror, or download the file by other means and save it as {path}"
                ) from error
            with replacing(path) as (part,):
                shutil.copyfile(downloaded, part)
        return FetchStatus.FETCHED

    def _report(self, file: CatalogueFile, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(file, done, total)


def _mismatch(entry: CatalogueEntry, file: CatalogueFile, path: Path) -> str | None:
    """Describe how the content of a file differs from the catalogue; None if it does not."""
    if file.sha256 is not None:
        found = _sha256(path)
        return None if found == file.sha256 else f"its sha256 is {found} instead of {file.sha256}"
    try:
        content = read(path, kind=entry.kind)
    except RarenodeError as error:
        return f"it cannot be read ({error})"
    features, nodes = content.n_features, len(content.hierarchy.nodes)
    if (features, nodes) != (entry.features, entry.nodes):
        return (
            f"it has {counted(features, 'feature')} and {counted(nodes, 'node')} "
            f"instead of {entry.features:,} and {entry.nodes:,}"
        )
    return None


def _sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
