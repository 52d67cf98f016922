"""Decoding: memory for a picture as Pillow decodes it, and little more; the same pixels however many rows at a time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from rarenode.data import decoding
from rarenode.data.decoding import ORIENTATION, Decoded, decode
from tests.data.picture_files import encoded, gradient, png, sixteen_bits


def pixels(decoded: Decoded) -> NDArray[np.uint8]:
    assert decoded.image.mode == "RGB"
    return np.asarray(decoded.image)


PEAK = """
import re, sys
from pathlib import Path
from rarenode.data.decoding import Crop, decode, to_square

def peak():
    return 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])

small, large = (Path(path).read_bytes() for path in sys.argv[1:])
decode(small, 32)
before = peak()
decoded = decode(large, 32)
assert to_square(decoded.image, Crop(32, 32)).shape == (32, 32, 3)
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this system does not tell the peak of memory")
@pytest.mark.parametrize(("depth", "colour", "in_file", "in_memory"), [(16, 0, 2, 2), (8, 6, 4, 4), (8, 4, 2, 4)])
def test_a_very_large_picture_takes_little_more_memory_than_its_pixels(
    tmp_path: Path, depth: int, colour: int, in_file: int, in_memory: int
) -> None:
    """Grey of 16 bits, RGB and grey with alpha; in_file and in_memory are bytes of a pixel, the latter Pillow's."""
    paths = []
    for width, height in ((40, 30), (8_200, 8_200)):
        content = bytes((width * in_file + 1) * height)
        paths.append(tmp_path / f"{width}.png")
        paths[-1].write_bytes(png(width, height, depth=depth, colour=colour, pixels=content))
    assert decoding.VERY_LARGE < 8_200**2
    result = subprocess.run([sys.executable, "-c", PEAK, *paths], capture_output=True, text=True, check=True)
    assert int(result.stdout) < 1.1 * in_memory * 8_200**2 + 40_000_000


ODD: list[Any] = [
    pytest.param(lambda: encoded(gradient().convert("RGBA").rotate(30), "PNG"), id="alpha"),
    pytest.param(lambda: encoded(gradient().convert("LA").rotate(30), "PNG"), id="grey with alpha"),
    pytest.param(lambda: encoded(gradient(), "PNG", transparency=(30, 20, 60)), id="transparent colour"),
    pytest.param(lambda: encoded(gradient().quantize(9), "PNG", transparency=3), id="palette"),
    pytest.param(lambda: encoded(gradient().convert("1"), "PNG"), id="one bit"),
    pytest.param(lambda: encoded(gradient().convert("CMYK"), "TIFF"), id="CMYK"),
    pytest.param(lambda: sixteen_bits(np.arange(1200, dtype=np.uint16).reshape(30, 40) * 3, "PNG"), id="12 bits"),
    pytest.param(lambda: sixteen_bits(np.arange(1200, dtype=np.uint16).reshape(30, 40) * 50, "TIFF"), id="16 bits"),
    pytest.param(lambda: encoded(Image.fromarray(np.arange(1200, dtype=np.float32).reshape(30, 40) / 1199), "TIFF"),
                 id="floating point"),
]  # fmt: skip


@pytest.mark.parametrize("make", ODD)
@pytest.mark.parametrize("at_a_time", [1, 41, 7 * 40])
def test_rows_are_converted_some_at_a_time(
    make: Callable[[], bytes], at_a_time: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, note = pixels(decode(make())), decode(make()).note
    monkeypatch.setattr(decoding, "PIXELS_AT_A_TIME", at_a_time)
    assert (pixels(decode(make())) == whole).all()
    assert decode(make()).note == note
    monkeypatch.setattr(decoding, "VERY_LARGE", 1000)
    assert decode(make(), 9).image.size == (40, 30)  # never below twice as many
    for near, factor in ((3, 5), (5, 3), (1, 15)):
        expected = np.asarray(Image.fromarray(whole).reduce(factor))
        assert (pixels(decode(make(), near)) == expected).all()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_a_very_large_picture_is_turned(orientation: int, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    content = encoded(gradient().convert(mode), "PNG", exif=exif)
    whole = decode(content).image
    monkeypatch.setattr(decoding, "VERY_LARGE", 1000)
    assert (pixels(decode(content, 3)) == np.asarray(whole.reduce(5))).all()


def test_memory_is_estimated_from_the_header() -> None:
    """Whatever a WebP picture begins with; a JPEG is decoded at a fraction of its size, unless it is progressive."""
    picture = gradient()
    webp = [
        encoded(picture, "WEBP"),
        encoded(picture, "WEBP", lossless=True),
        encoded(picture, "WEBP", exif=Image.Exif().tobytes()),
        encoded(picture.convert("RGBA").rotate(30), "WEBP"),
        encoded(picture, "WEBP", save_all=True, append_images=[picture.rotate(30)]),
    ]
    assert {content[12:16] for content in webp} == {b"VP8 ", b"VP8L", b"VP8X"}
    for content in webp:
        assert decoding._bytes_to_decode(content, 9) == decoding.BYTES_OF_A_WEBP_PIXEL * 40 * 30
        for length in range(30):
            assert decoding._bytes_to_decode(content[:length], 9) >= 0
    for kind in ("PNG", "GIF", "TIFF", "BMP"):
        assert decoding._bytes_to_decode(encoded(picture, kind), 3) == decoding.BYTES_OF_A_PIXEL * 40 * 30
    assert decoding._bytes_to_decode(encoded(picture, "JPEG"), 3) == decoding.BYTES_OF_A_PIXEL * 10 * 8
    assert decoding._bytes_to_decode(encoded(picture, "JPEG", progressive=True), 3) == decoding.BYTES_OF_A_PIXEL * 1200
    assert decoding._bytes_to_decode(b"nothing", 3) == 0
