"""Replace files so that at every moment either the old or the new one is there, whole.

New content goes to files beside the old ones and is written through to the disk. Only then do they take the places, by
renaming, one right after the other. Should the disk be full, or the process be killed before that, the old files are as
they were. Several files are not replaced in one instant: who reads them together must notice a mixture.
The name of a file beside another is always the same, so what a kill leaves behind is removed the next time. Whatever
else has that name, such as a link to a file elsewhere, is removed too, and never written through.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(*paths: Path) -> Iterator[tuple[Path, ...]]:
    """Yield where to write the new content of each of the paths, all in one folder; on leaving, they are replaced.

    Raises:
        OSError: the new content could not be written through or renamed.
    """
    parts = tuple(path.with_name(f".{path.name}.part") for path in paths)
    for part in parts:
        part.unlink(missing_ok=True)
    try:
        yield parts
        for part in parts:
            with part.open("rb+") as content:
                os.fsync(content.fileno())
        for part, path in zip(parts, paths, strict=True):
            part.replace(path)
    except BaseException:
        for part in parts:
            with suppress(OSError):
                part.unlink()
        raise
    if sys.platform != "win32":  # elsewhere a folder cannot be opened, and renaming needs no help
        folder = os.open(paths[0].parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
