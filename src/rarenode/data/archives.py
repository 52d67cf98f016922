"""Zip archives of pictures: their files by name, whatever program packed them, read without unpacking the rest."""

from __future__ import annotations

import struct
import threading
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple, cast

from rarenode._io.files import identity, is_file, require_unchanged
from rarenode.errors import DataError, FileFormatError

MOST_BYTES = 1 << 29
"""A larger file is not read. So many has an RGB picture of the most pixels that `decode` takes, without compression."""
MOST_RATIO, RATIO_FROM = 100, 1 << 26
"""Files in an archive of so many bytes or more may not be so many times larger than they are packed."""
DOS, UTF8_FLAG, UNICODE_PATH = "cp437", 0x800, 0x7075
"""Of names in archives: how they are encoded without a flag, the flag for UTF-8, and the field with a name in UTF-8."""

_archives = threading.local()
"""Open archives of each thread; a zip file cannot be read from two threads at once."""


def is_archive(path: Path | str) -> bool:
    """Whether a path is that of a zip archive."""
    return Path(path).suffix.lower() == ".zip" and is_file(path)


class Archive(NamedTuple):
    """An archive that is open."""

    identity: tuple[int, ...]
    file: zipfile.ZipFile
    members: dict[str, zipfile.ZipInfo]
    """Files by name, without ``./``; none that would be unpacked outside of a folder."""


def open_archive(root: Path, expected: tuple[int, ...] | None = None) -> Archive:
    """The archive, opened once in each thread, and again if it has changed.

    Raises:
        FileFormatError: it is damaged, or not the one that was expected.
    """
    opened: dict[Path, Archive] | None = getattr(_archives, "opened", None)
    if opened is None:
        opened = _archives.opened = {}
    if expected is not None:
        require_unchanged(root, expected)
    now = identity(root)
    if root not in opened or opened[root].identity != now:
        try:
            file = zipfile.ZipFile(root)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:  # the last: of a newer format
            raise FileFormatError(root, None, f"it is damaged, or no zip archive ({error})") from None
        paths = ((PurePosixPath(_name_of(each)), each) for each in file.infolist())
        # Of files with the same name, the last one counts. A name may be empty, where `ZipInfo.is_dir` would fail.
        inside = {
            str(path): each
            for path, each in paths
            if not path.is_absolute() and ".." not in path.parts and not each.filename.endswith("/")
        }
        opened[root] = Archive(now, file, inside)
    return opened[root]


def _name_of(member: zipfile.ZipInfo) -> str:
    """The name of a file in an archive, whatever program packed it.

    Where a flag does not say that it is UTF-8, `zipfile` takes it for a name of DOS. But ``zip`` on Linux writes UTF-8
    without the flag, and other programs add the name in UTF-8 in a field of its own.
    """
    if member.flag_bits & UTF8_FLAG:
        return member.filename
    raw = member.orig_filename.encode(DOS)
    added = _unicode_path(member.extra, raw)
    try:
        name = (raw if added is None else added).decode("utf-8").partition("\0")[0]
    except UnicodeDecodeError:
        return member.filename
    return member.filename if name == member.orig_filename else name


def _unicode_path(extra: bytes, raw: bytes) -> bytes | None:
    """The content of the field that Info-ZIP calls Unicode Path, if it is there and belongs to this name."""
    while len(extra) >= 4:
        kind, size = struct.unpack("<HH", extra[:4])
        field, extra = extra[4 : 4 + size], extra[4 + size :]
        if kind == UNICODE_PATH and len(field) > 5 and field[:5] == struct.pack("<BL", 1, zlib.crc32(raw)):
            return field[5:]
    return None


@contextmanager
def opened_member(root: Path, name: str, expected: tuple[int, ...] | None) -> Iterator[BinaryIO]:
    """A file in an archive; whatever is wrong with it is a `DataError`."""
    archive = open_archive(root, expected)
    try:
        about = archive.members[name]
        check_size(about.file_size)
        if about.file_size >= RATIO_FROM and about.file_size > MOST_RATIO * about.compress_size:
            raise DataError(
                f"it has {about.file_size:,} bytes, more than {MOST_RATIO} times the {about.compress_size:,} that it "
                "is packed into, as no picture has"
            )
        with archive.file.open(about) as member:  # which ends after as many bytes as it claims to have
            yield cast("BinaryIO", member)
    except KeyError:
        raise DataError(f"{root} contains no such file") from None
    except (DataError, MemoryError):
        raise
    except Exception as error:  # encrypted, damaged, unknown compression, and what the decompressors raise
        raise DataError(f"it cannot be unpacked ({error})") from None


def check_size(size: int) -> None:
    """Refuse a file that is larger than any picture.

    Raises:
        DataError: names both sizes.
    """
    if size > MOST_BYTES:
        raise DataError(f"it has {size:,} bytes, more than the {MOST_BYTES:,} of a picture")
