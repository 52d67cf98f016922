"""Named arrays in a safetensors file: nothing in it is executed, and sizes are checked before memory is allocated.

The reader says beforehand which arrays it expects, of which type and shape. The size of the file is compared with
that before it is opened, and what the file declares before a single array is read. Where arrays have a note, a
checksum covers both, so that a file that was edited or damaged is never taken for what was written.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from rarenode.errors import FileFormatError

Arrays = dict[str, NDArray[Any]]
Layout = Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]
"""Name -> type and shape."""

KEY, CHECKSUM = "rarenode", "sha256"
"""Of what a file says about its arrays."""
MOST_HEADER_BYTES = 100_000_000
"""What safetensors itself allows a header to have."""
HEADER_ALIGNMENT = 8
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
    header: dict[str, Any] = {"__metadata__": {KEY: f"{_checksum(arrays, note)} {note}" if note else ""}}
    # The largest numbers first, so that all are aligned.
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    end = 0
    for name in order:
        array, begin = arrays[name], end
        end += array.nbytes
        kind = _NAMES[array.dtype.newbyteorder("=")]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    text += b" " * (-len(text) % HEADER_ALIGNMENT)
    # The library's writer would put another file in the place of this one, which may be locked as that of a writer.
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            array = np.asarray(arrays[name], dtype=arrays[name].dtype.newbyteorder("<"), order="C")
            file.write(array.reshape(-1).view(np.uint8).data)


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
