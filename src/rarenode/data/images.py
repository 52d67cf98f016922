"""`Images`: pictures as the features of rows. They stay in their files, or in a zip archive, until they are needed.

What is computed from pictures (pixels at a certain size, embeddings by an encoder) depends on each picture alone. It
is therefore kept beside them in memory, for all rows that are taken from the same `Images`: folds, validation rows and
reports find it there. `rarenode.training.embedding` also keeps embeddings on disk. A file that changes later is not
looked at again by the same `Images`; new ones see it.
"""

from __future__ import annotations

import hashlib
import io
import posixpath
import shutil
import stat
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rarenode._io.files import exists, identity, is_dir, is_file
from rarenode._io.text import by_normal_form, counted, normal_form
from rarenode.data.archives import check_size, is_archive, open_archive, opened_member
from rarenode.data.decoding import SUFFIXES, check_header, thumbnail
from rarenode.data.folders import files_below
from rarenode.errors import DataError, FileFormatError, MissingFileError

BLOCK = 1 << 20
"""Bytes that are unpacked at a time."""
DIGEST_BYTES = 32
NO_PICTURES = (
    ".csv", ".tsv", ".parquet", ".arrow", ".xlsx", ".xls", ".ods", ".json", ".jsonl", ".xml", ".yaml", ".yml", ".toml",
    ".txt", ".md", ".rst", ".html", ".htm", ".pdf", ".docx", ".log", ".db", ".ini", ".zip", ".gz", ".py", ".ipynb",
    ".obo", ".arff", ".npy", ".npz", ".safetensors",
)  # fmt: skip
"""Suffixes of files that are often beside pictures and that nobody takes for one."""
@dataclass(frozen=True)
class ImageFile:
    """Where a picture is."""

    root: Path
    """A folder, or a zip archive."""
    name: str
    """Its path below the folder or in the archive, with ``/``."""
    is_blank: bool = False
    """Whether a table names no picture; ``name`` is then where it should, such as ``survey.csv, line 7``."""
    archive: tuple[int, ...] | None = None
    """The `identity` of the archive when its files were listed."""

    def __str__(self) -> str:
        return self.name if self.is_blank else str(self.root / self.name)

    def read(self) -> bytes:
        """The bytes of the file.

        Raises:
            DataError: it cannot be read.
            FileFormatError: its archive is damaged, or has changed since its files were listed.
        """
        content = io.BytesIO()
        with self._opened() as stream:
            shutil.copyfileobj(stream, content, BLOCK)  # all at once would take twice the memory
        return content.getvalue()

    def check(self) -> None:
        """Look at the header only, which takes a fraction of a millisecond.

        Raises:
            DataError: there is no such file, it is too large, or it does not begin as a picture.
        """
        with self._opened() as stream:
            check_header(stream)

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        """The file, if it may be read; whatever goes wrong meanwhile is a `DataError`."""
        if self.is_blank:
            raise DataError("no picture is named there")
        try:
            if self.archive is not None or is_archive(self.root):
                with opened_member(self.root, self.name, self.archive) as stream:
                    yield stream
                return
            path = self.root / self.name
            about = path.stat()
            if not stat.S_ISREG(about.st_mode):  # reading a pipe may never end
                raise DataError("it cannot be read: it is no ordinary file")
            check_size(about.st_size)
            with path.open("rb") as stream:
                yield stream
        except (FileNotFoundError, UnicodeError):
            raise DataError("there is no such file") from None
        except DataError:
            raise
        except ValueError as error:  # a character that no name can have
            raise DataError(f"it cannot be read: {error}") from None
        except OSError as error:
            raise DataError(f"it cannot be read: {error.strerror or error}") from None


class Images:
    """Pictures, one for each row; a form of features that a `Dataset` can have.

    >>> pictures = Images.from_paths(["a.png", "b.png", "c.png"])
    >>> len(pictures), pictures.shape, pictures[np.array([2, 0])].names
    (3, (3, 1), ('c.png', 'a.png'))
    """

    def __init__(self, files: Iterable[ImageFile | Path | str]) -> None:
        if isinstance(files, str | Path):
            raise DataError(f"Images takes several paths; Images.below({str(files)!r}) has all pictures in a folder")
        self._all = tuple(_as_file(file) for file in files)
        self._rows = np.arange(len(self._all))
        self._digests: NDArray[np.uint8] = np.zeros((len(self._all), DIGEST_BYTES), dtype=np.uint8)
        self._has_digest = np.zeros(len(self._all), dtype=np.bool_)
        self._values: dict[str, tuple[NDArray[Any], NDArray[np.bool_]]] = {}
        self._notes: dict[int, str] = {}

    @classmethod
    def from_paths(cls, paths: Iterable[Path | str]) -> Images:
        """Pictures in files; paths may be in a list, a numpy array, or a pandas or polars Series."""
        return cls(paths)

    @classmethod
    def below(cls, root: Path | str) -> Images:
        """All pictures in a folder or zip archive and in the folders below, sorted by path.

        Files with other suffixes are left out, with a warning unless they are texts or tables.

        Raises:
            MissingFileError: there is no such folder or archive.
            DataError: there is no picture in it.
        """
        archive = identity(root) if is_archive(root) else None
        names = sorted(list_names(Path(root)))
        found = [name for name in names if _suffix(name) in SUFFIXES]
        if not found:
            raise DataError(f"{root} contains no picture ({', '.join(SUFFIXES)})")
        others = (ImageFile(Path(root), name, archive=archive) for name in names if _suffix(name) not in SUFFIXES)
        left_out = Counter(_suffix(file.name) for file in others if _may_be_meant(file))
        if left_out:
            kinds = ", ".join(f"{number:,} {suffix or 'without a suffix'}" for suffix, number in left_out.most_common())
            what = f"{root}: left out {counted(left_out.total(), 'file')} that may be meant as pictures: {kinds}"
            warnings.warn(f"{what}; those of {', '.join(SUFFIXES)} are read", RuntimeWarning, stacklevel=2)
        return cls(ImageFile(Path(root), name, archive=archive) for name in found)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<Images: {counted(len(self), 'picture')}>"

    def __getitem__(self, rows: Any) -> Images:
        """Some of the pictures, in this order; what has been computed from them stays known.

        Raises:
            TypeError: ``rows`` is a single number; see `file`.
        """
        chosen = self._rows[rows]
        if np.ndim(chosen) != 1:
            raise TypeError("Images are indexed by a slice, a mask or several rows; file(row) is where one picture is")
        taken = object.__new__(Images)
        taken.__dict__.update(self.__dict__)
        taken._rows = chosen
        return taken

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, 1), as that of a table with one column."""
        return len(self), 1

    @property
    def files(self) -> tuple[ImageFile, ...]:
        """Where the pictures are."""
        return tuple(self._all[row] for row in self._rows.tolist())

    @property
    def names(self) -> tuple[str, ...]:
        """Their paths in their folder or archive."""
        return tuple(file.name for file in self.files)

    def joined(self, others: Images) -> Images:
        """These pictures and others after them."""
        if others._all is self._all:
            return self._taking(np.concatenate([self._rows, others._rows]))
        return Images((*self.files, *others.files))

    def _taking(self, rows: NDArray[np.int64]) -> Images:
        taken = self[np.zeros(0, dtype=np.int64)]
        taken._rows = rows
        return taken

    def thumbnail(self, row: int, size: int) -> bytes | None:
        """A small JPEG of a picture, its longer side at most ``size``; None if it cannot be decoded."""
        try:
            return thumbnail(self.file(row).read(), size)
        except (DataError, MemoryError):
            return None

    # --- what is computed from them ---------------------------------------------------------------------------------

    def values(self, key: str, width: int, dtype: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """(rows, width) numbers computed from each picture, and for which rows they are known."""
        array, known = self._store(key, width, dtype)
        return array[self._rows], known[self._rows]

    def keep(self, key: str, rows: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Keep numbers computed from some of the pictures."""
        array, known = self._store(key, values.shape[1], values.dtype)
        array[self._rows[rows]] = values
        known[self._rows[rows]] = True

    def _store(self, key: str, width: int, dtype: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        if key not in self._values:
            rows = len(self._all)
            self._values[key] = np.zeros((rows, width), dtype=dtype), np.zeros(rows, dtype=np.bool_)
        return self._values[key]

    def forget(self, key: str) -> None:
        """Free the memory of numbers that are no longer needed."""
        self._values.pop(key, None)

    def keep_note(self, row: int, note: str) -> None:
        """Keep what is odd about a picture; nothing is, if the note is empty."""
        if note:
            self._notes[int(self._rows[row])] = note

    @property
    def notes(self) -> dict[int, str]:
        """Row -> what is odd about its picture, as far as it has been decoded, now or for the cache of embeddings."""
        if not self._notes:
            return {}
        return {row: self._notes[place] for row, place in enumerate(self._rows.tolist()) if place in self._notes}

    def keep_digest(self, row: int, digest: bytes) -> None:
        """Keep the sha256 of a picture's bytes, which `digests` then need not read."""
        place = self._rows[row]
        self._digests[place] = np.frombuffer(digest, dtype=np.uint8)
        self._has_digest[place] = True

    @property
    def digests(self) -> NDArray[np.uint8]:
        """(rows, 32): the sha256 of the bytes of each picture; zeros where it cannot be read."""
        for row in np.flatnonzero(~self._has_digest[self._rows]).tolist():
            try:
                self.keep_digest(row, hashlib.sha256(self.file(row).read()).digest())
            except FileFormatError:
                raise
            except DataError:
                self.keep_digest(row, bytes(DIGEST_BYTES))
        return self._digests[self._rows]

    def file(self, row: int) -> ImageFile:
        """Where the picture of a row is."""
        return self._all[int(self._rows[row])]


def as_images(images: Any) -> Images:
    """Pictures from `Images`, a folder or zip archive, or paths of files.

    Raises:
        DataError: it is none of these.
    """
    if isinstance(images, Images):
        return images
    if isinstance(images, str | Path):
        return Images.below(images)
    return Images.from_paths(images)


def are_images(X: Any) -> bool:
    """Whether features are pictures in a form that `as_images` takes."""
    return isinstance(X, Images | str | Path) or are_paths(X)


def are_paths(X: Any) -> bool:
    """Whether these are paths of files, in a list, a tuple, a numpy array, or a pandas or polars Series."""
    is_column = hasattr(X, "dtype") and len(getattr(X, "shape", ())) == 1
    if not (is_column or isinstance(X, list | tuple)):
        return False
    return len(X) > 0 and all(isinstance(each, str | Path) for each in X)


def _as_file(file: Any) -> ImageFile:
    if isinstance(file, ImageFile):
        return file
    if not isinstance(file, str | Path):
        raise DataError(f"pictures must be Images, a folder, a zip archive, or paths of files; got {str(file)[:80]!r}")
    return ImageFile(Path(), str(file))


def list_names(root: Path) -> Iterator[str]:
    """The paths of all files in a folder or zip archive, with ``/``; hidden ones are left out.

    Raises:
        MissingFileError: there is no such folder or archive.
        FileFormatError: the archive is damaged, or a folder cannot be read.
    """
    if is_archive(root):
        yield from (name for name in open_archive(root).members if not _is_hidden(name))
    elif is_dir(root):
        yield from files_below(root)
    elif exists(root):
        raise FileFormatError(root, None, "expected a folder of pictures, or a zip archive")
    else:
        raise MissingFileError(f"{root}: there is no such folder or zip archive of pictures")


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def _may_be_meant(file: ImageFile) -> bool:
    """Whether a file without the suffix of a picture may be meant as one; without any suffix, its content tells."""
    if _suffix(file.name):
        return _suffix(file.name) not in NO_PICTURES
    try:
        file.check()
    except FileFormatError:
        raise
    except DataError:
        return False
    return True


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))


def find_names(candidates: Sequence[Sequence[str]], root: Path) -> list[str | None]:
    """For each row the first of its candidates that is a file below ``root``; None where there is none.

    In an archive where all files are below a folder, as in that of a zipped folder, names may also begin below it, if
    not one is found otherwise. A name that is not there is looked for in any of Unicode's forms: accents may be parts
    of letters in a table, and signs of their own in the names of files.
    """
    folders = [""]
    if is_archive(root):
        there = open_archive(root).members
        folders += _common_folders(list(list_names(root)))
        found = _first_names(candidates, folders, lambda name: name if name in there else None)
    else:
        if not is_dir(root):
            list(list_names(root))  # raises
        found = _first_names(candidates, folders, lambda name: name if is_file(root / name) else None)
    lost = [row for row, names in enumerate(candidates) if found[row] is None and not all(map(str.isascii, names))]
    if lost:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # which folders are left out is of no interest here
            same = by_normal_form(list_names(root))
        again = _first_names([candidates[row] for row in lost], folders, lambda name: same.get(normal_form(name)))
        for row, name in zip(lost, again, strict=True):
            found[row] = name
    return found


def _first_names(
    candidates: Sequence[Sequence[str]], folders: Sequence[str], look_up: Callable[[str], str | None]
) -> list[str | None]:
    """For each row what the first of its candidates that is found leads to, in the first folder that has any."""
    found: list[str | None] = []
    for folder in folders:
        found = [next(filter(None, (look_up(folder + name) for name in names)), None) for names in candidates]
        if any(found):
            break
    return found


def _common_folders(names: Sequence[str]) -> list[str]:
    """The folders that contain all files, the outermost first, each with ``/`` at its end.

    >>> _common_folders(["survey/photos/a.png", "survey/photos/deep/b.png"])
    ['survey/', 'survey/photos/']
    """
    common = posixpath.commonpath([posixpath.dirname(name) for name in names]) if names else ""
    return list(accumulate(f"{step}/" for step in common.split("/") if step))
