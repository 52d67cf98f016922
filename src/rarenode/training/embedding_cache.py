"""Embeddings on disk, each with what is odd about its picture.

The cache knows a picture by the sha256 of its bytes, and an encoder by that of its weights and of how it looks at
pictures, so nothing in it is ever out of date. It consists of files that are written once and never changed, each with
a few hundred embeddings: several processes may fill it at the same time, and what is interrupted continues from the
last file.
"""

from __future__ import annotations

import json
import os
import warnings
from contextlib import suppress
from pathlib import Path
from time import monotonic
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from platformdirs import user_cache_path
from safetensors import SafetensorError, safe_open

from rarenode._io.arrays import Arrays, Layout, read_arrays, read_note, write_arrays
from rarenode._io.files import is_dir, remove_abandoned, replacing
from rarenode.data.images import DIGEST_BYTES
from rarenode.errors import FileFormatError

ENVIRONMENT_VARIABLE = "RARENODE_CACHE"
SUFFIX = ".safetensors"
ROWS_IN_A_FILE, SECONDS_IN_A_FILE = 512, 30.0
"""A file of the cache is written after so many embeddings, or so many seconds."""


def cache_folder() -> Path:
    """Where embeddings are kept: the environment variable ``RARENODE_CACHE``, or else the user's cache folder."""
    chosen = os.environ.get(ENVIRONMENT_VARIABLE)
    return Path(chosen).expanduser() if chosen else user_cache_path("rarenode", appauthor=False) / "embeddings"


class EmbeddingCache:
    """The embeddings of one encoder on disk."""

    def __init__(self, folder: Path, width: int) -> None:
        self.folder, self.width = folder, width
        self._places: dict[bytes, tuple[Path, int]] = {}
        self._new: dict[bytes, tuple[NDArray[np.float32], str]] = {}
        self._since = monotonic()
        self._warned = False
        if not is_dir(folder):
            return
        remove_abandoned(folder)
        for path in sorted(folder.glob(f"*{SUFFIX}")):
            try:
                with safe_open(path, framework="numpy") as content:
                    digests = content.get_tensor("digests")
            except (SafetensorError, OSError):  # damaged, or being removed
                continue
            if digests.dtype == np.uint8 and digests.ndim == 2 and digests.shape[1] == DIGEST_BYTES:
                self._places.update((digest.tobytes(), (path, row)) for row, digest in enumerate(digests))

    def has(self, digest: bytes) -> bool:
        """Whether the embedding of a picture is there."""
        return digest in self._places

    def add(self, digests: list[bytes], values: NDArray[np.float32], notes: list[str]) -> None:
        """Keep embeddings, and what is odd about their pictures; they are written some at a time."""
        self._new.update(zip(digests, zip(values, notes, strict=True), strict=True))
        if len(self._new) >= ROWS_IN_A_FILE or monotonic() - self._since > SECONDS_IN_A_FILE:
            self.flush()

    def flush(self) -> None:
        """Write what is not written yet. A folder that cannot be written to costs a warning, and the cache."""
        self._since = monotonic()
        if not self._new:
            return
        new, self._new = self._new, {}
        arrays: Arrays = {
            "digests": np.frombuffer(b"".join(new), dtype=np.uint8).reshape(len(new), DIGEST_BYTES),
            "values": np.stack([values for values, _ in new.values()]),
        }
        notes = {str(row): note for row, (_, note) in enumerate(new.values()) if note}
        about = {"rows": len(new), "width": self.width, "notes": notes}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(self.folder / f"{uuid4().hex}{SUFFIX}") as (part,):
                write_arrays(part, arrays, json.dumps(about))
        except OSError as error:
            if not self._warned:
                warnings.warn(
                    f"embeddings cannot be kept in {self.folder} ({error}); {ENVIRONMENT_VARIABLE} may name another",
                    RuntimeWarning,
                    stacklevel=2,
                )
            self._warned = True

    def get(self, digests: list[bytes]) -> tuple[NDArray[np.float32], NDArray[np.bool_], dict[int, str]]:
        """Embeddings (rows, width), for which rows they are there, and notes on some; a damaged file is removed."""
        values = np.zeros((len(digests), self.width), dtype=np.float32)
        there = np.zeros(len(digests), dtype=np.bool_)
        notes: dict[int, str] = {}
        by_file: dict[Path, list[tuple[int, int]]] = {}
        for row, digest in enumerate(digests):
            path, place = self._places[digest]
            by_file.setdefault(path, []).append((row, place))
        for path, wanted in by_file.items():
            content = self._read(path)
            if content is None:
                self._places = {key: place for key, place in self._places.items() if place[0] != path}
            else:
                rows, places = (np.array(each) for each in zip(*wanted, strict=True))
                values[rows], there[rows] = content[0][places], True
                notes |= {row: content[1][place] for row, place in wanted if place in content[1]}
        return values, there, notes

    def _read(self, path: Path) -> tuple[NDArray[np.float32], dict[int, str]] | None:
        """The embeddings in a file, and notes by the place of the picture in it."""
        try:
            about = json.loads(read_note(path))
            rows = int(about["rows"])
            layout: Layout = {
                "digests": (np.dtype(np.uint8), (rows, DIGEST_BYTES)),
                "values": (np.dtype(np.float32), (rows, self.width)),
            }
            # Files that were written before notes were kept have none.
            notes = {int(place): str(note) for place, note in about.get("notes", {}).items()}
            return read_arrays(path, layout)["values"], notes
        except (
            FileFormatError,
            OSError,
            ValueError,
            ArithmeticError,
            LookupError,
            TypeError,
            AttributeError,
            RecursionError,
        ):
            with suppress(OSError):
                path.unlink(missing_ok=True)
            return None
