"""The files in a folder and in all folders below it, links to folders included.

Every folder is read once, however many links lead to it, so that a picture is never in the training rows under one name
and in the test rows under another, and a link to a parent folder does not cause an endless loop.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from rarenode._io.text import printable
from rarenode.errors import FileFormatError

MOST_SHOWN = 5
"""Links that a warning names."""


def files_below(root: Path) -> Iterator[str]:
    """The paths of all files below a folder, with ``/``; hidden files and folders are left out.

    Links to folders are followed. One that leads to a folder that is read anyway, to one above, or nowhere, is left
    out with a warning.

    Raises:
        FileFormatError: a folder cannot be read.
    """
    seen: set[str] = set()
    links = [""]
    repeated: list[str] = []
    broken: list[str] = []
    while links:  # folders themselves come before links to them, whose names say less about their files
        place = links.pop(0)
        if place and _leads_back(root, root / place, seen):
            repeated.append(place)
            continue
        for folder, folders, names in os.walk(root / place, onerror=_refuse):
            here = Path(folder).relative_to(root).as_posix()
            prefix = "" if here == "." else f"{here}/"
            shown = sorted(name for name in folders if not name.startswith("."))
            folders[:] = [name for name in shown if not (Path(folder) / name).is_symlink()]
            folders[:] = [name for name in folders if _real(Path(folder) / name) not in seen]
            links += [f"{prefix}{name}" for name in shown if (Path(folder) / name).is_symlink()]
            seen.add(_real(folder))
            for name in names:
                if not name.startswith("."):
                    broken += [f"{prefix}{name}"] if _may_be_lost_folder(Path(folder) / name) else []
                    yield f"{prefix}{name}"
    for left_out, why in ((repeated, "to folders that are read anyway or lie above"), (broken, "that lead nowhere")):
        if left_out:
            some = ", ".join(printable(name) for name in sorted(left_out)[:MOST_SHOWN])
            more = f" and {len(left_out) - MOST_SHOWN:,} more" if len(left_out) > MOST_SHOWN else ""
            warnings.warn(f"{root}: left out links {why}: {some}{more}", RuntimeWarning, stacklevel=2)


def _leads_back(root: Path, link: Path, seen: set[str]) -> bool:
    """Whether a link leads to a folder that has been read, or to one above itself or above all."""
    target = _real(link)
    return target in seen or any(Path(_real(folder)).is_relative_to(target) for folder in (root, link.parent))


def _real(path: Path | str) -> str:
    return os.path.realpath(path)


def _may_be_lost_folder(path: Path) -> bool:
    """Whether this is a link that leads nowhere, and that may have led to a folder, as it has no suffix."""
    return not path.suffix and path.is_symlink() and not os.path.exists(path)  # noqa: PTH110 (it never raises)


def _refuse(error: OSError) -> NoReturn:
    raise FileFormatError(error.filename, None, f"the folder cannot be read: {error.strerror or error}") from None
