"""Decoding: whatever bytes a file has, it is a picture or a `DataError`."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from rarenode.data.decoding import FORMATS, Crop, decode, thumbnail, to_square
from rarenode.errors import DataError
from tests.data.picture_files import encoded, gradient

KINDS = ("PNG", "JPEG", "GIF", "TIFF", "WEBP", "BMP", "PPM")
SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"II*\0", b"MM\0*", b"RIFF", b"BM", b"P6 ")
CROP = Crop(18, 16)


@cache
def files() -> dict[str, bytes]:
    exif = Image.Exif()
    exif[0x0112] = 6
    several = {"save_all": True, "append_images": [gradient(24, 18)]}
    rest: dict[str, dict[str, Any]] = {"JPEG": {"exif": exif}, "GIF": several, "TIFF": several, "PNG": {"exif": exif}}
    return {kind: encoded(gradient(24, 18), kind, **rest.get(kind, {})) for kind in KINDS}


def look_at(content: bytes) -> None:
    """All that is ever done with the bytes of a picture."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns of odd metadata; as errors they would hide what comes after
        try:
            found = decode(content, 16)
        except DataError as error:
            assert str(error)
            return
        assert found.image.mode == "RGB"
        assert to_square(found.image, CROP).shape == (16, 16, 3)
        assert thumbnail(content, 16)[:2] == b"\xff\xd8"


@given(st.binary(max_size=300))
def test_any_bytes(content: bytes) -> None:
    look_at(content)


@given(st.sampled_from(SIGNATURES), st.binary(max_size=300))
def test_any_bytes_after_a_signature(signature: bytes, rest: bytes) -> None:
    look_at(signature + rest)


@pytest.mark.parametrize("kind", KINDS)
@given(changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=8))
def test_changed_bytes(kind: str, changes: list[tuple[float, int]]) -> None:
    content = bytearray(files()[kind])
    for place, value in changes:
        content[int(place * len(content))] = value
    look_at(bytes(content))


@pytest.mark.parametrize("kind", KINDS)
@given(first=st.floats(0, 1), last=st.floats(0, 1), filling=st.binary(max_size=8))
def test_a_piece_cut_out(kind: str, first: float, last: float, filling: bytes) -> None:
    content = files()[kind]
    first, last = sorted((first, last))
    look_at(content[: int(first * len(content))] + filling + content[int(last * len(content)) :])


@pytest.mark.parametrize("kind", KINDS)
def test_every_byte_of_the_header_changed(kind: str) -> None:
    content = files()[kind]
    for place in range(min(64, len(content))):
        for value in (0, 0xFF, content[place] ^ 0x80):
            look_at(content[:place] + bytes([value]) + content[place + 1 :])


@given(st.integers(1, 200), st.integers(1, 200), st.integers(1, 48), st.integers(0, 30))
def test_squares_of_any_size(width: int, height: int, size: int, margin: int) -> None:
    square = to_square(gradient(width, height), Crop(size + margin, size))
    assert square.shape == (size, size, 3)
    values = np.asarray(gradient(width, height))
    low, high = values.min(axis=(0, 1)), values.max(axis=(0, 1))
    assert (square >= low.clip(1) - 1).all()
    assert (square <= high.clip(None, 254) + 1).all()


def test_no_other_decoder_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow has decoders for dozens of formats; files of theirs are not even looked at."""
    asked = []
    opened = Image.open

    def open_and_note(file: object, mode: str = "r", formats: object = None) -> Image.Image:
        asked.append(formats)
        return opened(file, mode, formats)  # type: ignore[arg-type]

    monkeypatch.setattr(Image, "open", open_and_note)
    for kind in ("ICO", "PCX", "TGA", "SGI", "PDF"):
        with pytest.raises(DataError, match="not a picture"):
            decode(encoded(gradient(), kind))
    assert set(asked) == {FORMATS}
