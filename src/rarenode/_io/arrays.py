"""Named arrays in a safetensors file: nothing in it is executed, and sizes are checked before memory is allocated.

The reader says beforehand which arrays it expects, of which type and shape. The size of the file is compared with
that before it is opened, and what the file declares before a single array is read. Where arrays have a note, a
checksum covers both, so that a file that was edited or damaged is never taken for what was written.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from rarenode.errors import FileFormatError

Arrays = dict[str, NDArray[Any]]
Layout = Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]
"""Name -> type and shape."""

KEY, CHECKSUM = "rarenode", "sha256"
"""Of what a file says about its arrays."""
MOST_HEADER_BYTES = 100_000_000
"""What safetensors itself allows a header to have."""
_NAMES = {
    np.dtype(np.float32): "F32",
    np.dtype(np.float64): "F64",
    np.dtype(np.int32): "I32",
    np.dtype(np.int64): "I64",
    np.dtype(np.uint8): "U8",
    np.dtype(np.bool_): "BOOL",
}


def layout_of(arrays: Mapping[str, NDArray[Any]]) -> Layout:
    """The types and shapes of arrays."""
    return {name: (array.dtype, array.shape) for name, array in arrays.items()}


def write_arrays(path: Path, arrays: Arrays, note: str = "") -> None:
    """Write arrays, and a note to go with them, with a checksum over both.

    Raises:
        OSError: it could not be written.
    """
    path.touch()
    permissions = path.stat().st_mode  # safetensors would keep others from reading what they may read beside it
    # It also writes an array as it lies in memory, which for a transposed one is not what its shape says.
    in_order = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    try:
        # One entry only: it writes several in any order, and the same content would not be the same bytes.
        about = f"{_checksum(arrays, note)} {note}" if note else ""
        save_file(in_order, path, {KEY: about})
        path.chmod(permissions)
    except SafetensorError as error:  # the disk's refusal, in other words
        raise OSError(f"{path} could not be written: {error}") from error


def read_note(path: Path) -> str:
    """The note that `write_arrays` put into the file.

    Raises:
        FileFormatError: the file is damaged, or another program's.
    """
    try:
        with safe_open(path, framework="numpy") as content:
            written = content.metadata() or {}
    except SafetensorError as error:
        raise FileFormatError(path, None, f"it is damaged or no safetensors file ({error})") from None
    if KEY not in written:
        raise FileFormatError(path, None, "it is a safetensors file, but rarenode did not write it")
    return _note_and_checksum(written)[0]


def read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of all arrays in a file, without reading them.

    Raises:
        FileFormatError: the file is damaged.
    """
    try:
        with safe_open(path, framework="numpy") as content:
            return {name: tuple(content.get_slice(name).get_shape()) for name in content.keys()}  # noqa: SIM118 (no dict)
    except SafetensorError as error:
        raise FileFormatError(path, None, f"it is damaged or no safetensors file ({error})") from None


def read_arrays(path: Path, layout: Layout) -> Arrays:
    """Exactly the arrays of a layout; those with a note are compared with their checksum.

    Raises:
        FileFormatError: the file is damaged, or holds something else.
    """
    expected = sum(math.prod(shape) * dtype.itemsize for dtype, shape in layout.values())
    size = path.stat().st_size
    if not expected <= size <= expected + MOST_HEADER_BYTES:
        raise FileFormatError(path, None, f"it has {size:,} bytes, where its arrays need {expected:,} and a header")
    try:
        with safe_open(path, framework="numpy") as content:
            _compare(path, {name: content.get_slice(name) for name in content.keys()}, layout)  # noqa: SIM118 (no dict)
            arrays = {name: content.get_tensor(name) for name in layout}
            written = content.metadata() or {}
    except SafetensorError as error:
        raise FileFormatError(path, None, f"it is damaged or no safetensors file ({error})") from None
    note, checksum = _note_and_checksum(written)
    if note and checksum != _checksum(arrays, note):
        raise FileFormatError(path, None, "its checksum is not that of its content: it is damaged, or was edited")
    return arrays


def _note_and_checksum(written: Mapping[str, str]) -> tuple[str, str | None]:
    """The note that is in a file, and its checksum; in files of an older rarenode they are two entries."""
    text = written.get(KEY, "")
    both = re.fullmatch("([0-9a-f]{64}) (.*)", text, re.DOTALL)
    return (text, written.get(CHECKSUM)) if both is None or CHECKSUM in written else (both[2], both[1])


def _checksum(arrays: Mapping[str, NDArray[Any]], note: str) -> str:
    digest = hashlib.sha256(note.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f";{name};{array.dtype.str};{array.shape};".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _compare(path: Path, declared: Mapping[str, Any], layout: Layout) -> None:
    for name in sorted(layout.keys() | declared.keys()):
        if name not in declared:
            raise FileFormatError(path, None, f"the array {name!r} is missing")
        if name not in layout:
            raise FileFormatError(path, None, f"the array {name!r} should not be there")
        dtype, shape = layout[name]
        found = (declared[name].get_dtype(), tuple(declared[name].get_shape()))
        if found != (_NAMES[dtype], shape):
            raise FileFormatError(
                path, None, f"the array {name!r} is {found[0]} {found[1]}; {_NAMES[dtype]} {shape} was expected"
            )
