"""How the files of samples are written: each as a whole, and replacing an older one."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from rarenode._io.files import replacing
from rarenode.errors import ArgumentError


def write_files(folder: Path | str, files: Iterable[tuple[str, str | bytes]]) -> list[Path]:
    """Write files (name, content) into a folder, one after the other. It is created, and so are folders in names.

    Raises:
        ArgumentError: a file cannot be written.
    """
    folder = Path(folder)
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files:
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            with replacing(path) as (part,):
                part.write_bytes(content.encode() if isinstance(content, str) else content)
            written.append(path)
    except OSError as error:
        raise ArgumentError(f"the sample cannot be written to {folder}: {error.strerror}") from None
    return written


def as_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as the text of a CSV file."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return file.getvalue()
