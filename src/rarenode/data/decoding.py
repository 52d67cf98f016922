"""From the bytes of a picture to RGB pixels, with one defined behaviour for every odd kind of picture.

===========================  ========================================================================================
EXIF rotation                applied
palette, grey, 1 bit, CMYK   converted to RGB
alpha, transparent colour    laid over white, as browsers do
16 bit                       divided by 257; by 16 if no value exceeds 4095, as cameras store 12 bits in 16 (noted)
floating point               0 to 1, or 0 to 255 (noted)
animated, several pages      the first frame (noted)
one colour only              used as it is (noted)
damaged, truncated           `DataError`
too many pixels              `DataError`; the limit is Pillow's, twice ``PIL.Image.MAX_IMAGE_PIXELS``
not a picture                `DataError`; `FORMATS` are known
===========================  ========================================================================================

Only the formats of `FORMATS` are opened, so the rest of Pillow's decoders is out of reach of a hostile file. An MPO
file, as cameras with two lenses write it, is a JPEG, and its further pictures are previews.

Besides the picture as Pillow decodes it, memory is needed for the result only: values are converted a few rows at a
time, and a very large picture that is going to be scaled down is reduced meanwhile. Pillow itself takes 4 bytes for
each pixel at most, but 16 for one of WebP, whose decoder keeps several copies. Threads that decode `in_turn` take no
more than `BYTES_AT_ONCE` together, or as much as one larger picture needs.

Warnings of Pillow about large pictures and odd metadata are suppressed: they do not name the file.
"""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from rarenode.errors import DataError

FORMATS = ("JPEG", "PNG", "TIFF", "BMP", "GIF", "WEBP", "PPM")
SUFFIXES = (
    ".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".pbm", ".pnm", ".jpe", ".jfif"
)  # fmt: skip
TWELVE_BITS = 4095
SIXTEEN_BITS = 65535
THUMBNAIL_QUALITY = 80
BLANK = "of one colour"
ORIENTATION = 0x0112
"""The EXIF tag that says how a picture is turned."""
VERY_LARGE = 1 << 26
"""Pictures of more pixels, which no camera takes, are reduced while they are converted."""
PIXELS_AT_A_TIME = 1 << 20
BYTES_AT_ONCE = 1 << 31
"""Memory for pictures that several threads decode at the same time. A picture that needs more is decoded alone."""
BYTES_OF_A_PIXEL, BYTES_OF_A_WEBP_PIXEL = 10, 20
"""Of what Pillow takes, and of the picture in RGB, at most."""

Strip = Callable[[Image.Image], Image.Image]
"""Some rows of a picture -> the same in RGB."""

_memory = threading.Condition()
_in_use: list[int] = []
"""What each of the threads that decode `in_turn` needs."""

warnings.filterwarnings("ignore", category=Image.DecompressionBombWarning)
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")


@dataclass(frozen=True)
class Crop:
    """How a picture of any size becomes a square: the shorter side is scaled to ``resize``, the middle cut out."""

    resize: int
    size: int
    """Pixels on each side of the square."""


@dataclass(frozen=True)
class Decoded:
    """A picture in RGB."""

    image: Image.Image
    note: str = ""
    """What is odd about it; empty if nothing is."""


def decode(content: bytes, near: int | None = None) -> Decoded:
    """Decode a picture.

    Args:
        content: the bytes of a file.
        near: the picture is going to be scaled so that its shorter side has so many pixels; a large JPEG, and a
            `VERY_LARGE` picture of any kind, is then decoded at a fraction of its size, never below twice as many.
            None decodes it at its full size.

    Raises:
        DataError: it cannot be decoded.
        MemoryError: it needs more memory than there is now.
    """
    with _opened(io.BytesIO(content)) as opened:
        frames = getattr(opened, "n_frames", 1) if opened.format != "MPO" else 1
        if near is not None:
            opened.draft("RGB", (2 * near, 2 * near))
        opened.load()
        image, note = _as_rgb(opened, _reduction(opened.size, near))
        image.getexif()[ORIENTATION] = opened.getexif().get(ORIENTATION, 1)
        ImageOps.exif_transpose(image, in_place=True)
    if frames > 1:
        note = f"animated or of several pages, {frames}, of which the first is used"
    elif _is_blank(image):
        note = BLANK
    return Decoded(image, note)


def check_header(stream: BinaryIO) -> None:
    """Make sure that a file begins as a picture of a known format that has not too many pixels.

    Raises:
        DataError: it does not. Damage after the header is found by `decode` only.
    """
    start = stream.read(12)
    if start.startswith(b"RIFF") and start.endswith(b"WEBP"):  # of which Pillow reads everything
        return
    stream.seek(0)
    with _opened(stream):
        pass


@contextmanager
def _opened(stream: BinaryIO) -> Iterator[Image.Image]:
    """A picture of which Pillow has read the header; whatever goes wrong meanwhile is a `DataError`."""
    try:
        with Image.open(stream, formats=FORMATS) as opened:
            yield opened
    except UnidentifiedImageError:
        known = f"it is not a picture of a known format ({', '.join(FORMATS)})"
        stream.seek(0)
        raise DataError(known if stream.read(1) else "the file is empty") from None
    except Image.DecompressionBombError as error:
        raise DataError(f"it has too many pixels: {error}") from None
    except DataError:
        raise
    except MemoryError:
        raise
    except Exception as error:  # decoders raise whatever they come across: OSError, SyntaxError, struct.error, ...
        raise DataError(f"it is damaged ({str(error)[:100] or type(error).__name__})") from None


@contextmanager
def in_turn(content: bytes, near: int) -> Iterator[None]:
    """Wait until there is memory to decode a picture beside those of other threads, and keep it for the block."""
    needed = min(_bytes_to_decode(content, near), BYTES_AT_ONCE)
    with _memory:
        _memory.wait_for(lambda: sum(_in_use) + needed <= BYTES_AT_ONCE)
        _in_use.append(needed)
    try:
        yield
    finally:
        with _memory:
            _in_use.remove(needed)
            _memory.notify_all()


def _bytes_to_decode(content: bytes, near: int) -> int:
    """About how much memory `decode` takes; 0 if the bytes are not a picture."""
    if content[8:12] == b"WEBP":  # Pillow takes memory for all pixels as soon as it opens one
        return BYTES_OF_A_WEBP_PIXEL * _webp_pixels(content)
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as opened:
            if "progressive" not in opened.info:  # which is decoded as a whole, even at a fraction of its size
                opened.draft("RGB", (2 * near, 2 * near))
            return BYTES_OF_A_PIXEL * opened.width * opened.height
    except Exception:  # `decode` says what is wrong
        return 0


def _webp_pixels(content: bytes) -> int:
    """The pixels of a WebP picture, from the header of its first chunk."""
    kind = content[12:16]
    if kind == b"VP8X":
        return (int.from_bytes(content[24:27], "little") + 1) * (int.from_bytes(content[27:30], "little") + 1)
    if kind == b"VP8L":
        sides = int.from_bytes(content[21:25], "little")
        return ((sides & 0x3FFF) + 1) * ((sides >> 14 & 0x3FFF) + 1)
    return (int.from_bytes(content[26:28], "little") & 0x3FFF) * (int.from_bytes(content[28:30], "little") & 0x3FFF)


def to_square(image: Image.Image, crop: Crop) -> NDArray[np.uint8]:
    """An RGB picture as an array (size, size, 3)."""
    width, height = image.size
    scale = crop.resize / min(width, height)
    # The part that is left after cutting, in pixels of the picture: scaling only that saves the rest.
    side = crop.size / scale
    left, top = (width - side) / 2, (height - side) / 2
    box = (max(left, 0.0), max(top, 0.0), min(left + side, width), min(top + side, height))
    square = image.resize((crop.size, crop.size), Image.Resampling.BILINEAR, box=box, reducing_gap=3.0)
    return np.asarray(square, dtype=np.uint8)


def thumbnail(content: bytes, size: int) -> bytes:
    """A small JPEG whose longer side has at most ``size`` pixels. Nothing but pixels is taken over.

    Raises:
        DataError: the picture cannot be decoded.
    """
    image = decode(content, size).image
    image.thumbnail((size, size), Image.Resampling.BILINEAR)
    clean = Image.fromarray(np.asarray(image))  # a new picture, without what the old one has besides pixels
    out = io.BytesIO()
    clean.save(out, "JPEG", quality=THUMBNAIL_QUALITY)
    return out.getvalue()


def _reduction(size: tuple[int, int], near: int | None) -> int:
    """How many pixels become one, on each side, before a picture is scaled further."""
    width, height = size
    if near is None or width * height <= VERY_LARGE:
        return 1
    return max(1, min(size) // (2 * near))


def _as_rgb(image: Image.Image, reduction: int) -> tuple[Image.Image, str]:
    if image.mode == "RGB" and "transparency" not in image.info:
        return (image if reduction == 1 else image.reduce(reduction)), ""
    convert, note = _conversion(image)
    width, height = (-(-side // reduction) for side in image.size)
    result = Image.new("RGB", (width, height))
    for top, strip in _strips(image, reduction):
        rows = convert(strip)
        result.paste(rows if reduction == 1 else rows.reduce(reduction), (0, top // reduction))
    return result, note


def _strips(image: Image.Image, multiple: int = 1) -> Iterator[tuple[int, Image.Image]]:
    """Some rows at a time, from top to bottom, each time a multiple of so many, with the number of the first one."""
    rows = max(1, PIXELS_AT_A_TIME // (image.width * multiple)) * multiple
    for top in range(0, image.height, rows):
        yield top, image.crop((0, top, image.width, min(top + rows, image.height)))


def _conversion(image: Image.Image) -> tuple[Strip, str]:
    """How rows of a picture become RGB, and what is odd about it."""
    if image.mode.startswith("I"):
        return _from_integers(*_range(image))
    if image.mode == "F":
        return _from_floats(*_range(image))
    if ("A" in image.mode and image.mode != "LAB") or "transparency" in image.info:
        return _over_white, ""
    return lambda strip: strip.convert("RGB"), ""


def _range(image: Image.Image) -> tuple[float, float]:
    """The least and the greatest value; NaN if there is one."""
    strips = (np.asarray(strip) for _, strip in _strips(image))
    ranges = np.array([(values.min(), values.max()) for values in strips])
    return ranges[:, 0].min().item(), ranges[:, 1].max().item()


def _over_white(strip: Image.Image) -> Image.Image:
    over = strip.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", over.size, "white"), over).convert("RGB")


def _from_integers(low: float, high: float) -> tuple[Strip, str]:
    if low < 0 or high > SIXTEEN_BITS:
        raise DataError(f"its values, {low} to {high}, are not those of 16 bits")
    if high <= TWELVE_BITS:
        return lambda strip: _grey(np.asarray(strip) // 16), "16 bit with values of 12 bits"
    return lambda strip: _grey(np.asarray(strip) // 257), ""


def _from_floats(low: float, high: float) -> tuple[Strip, str]:
    if not (low >= 0 and high <= 255):  # nor NaN
        raise DataError("its values are floating point and not from 0 to 255")
    if high <= 1:
        return lambda strip: _grey(np.rint(255 * np.asarray(strip))), "floating point, from 0 to 1"
    return lambda strip: _grey(np.rint(np.asarray(strip))), "floating point, from 0 to 255"


def _grey(values: NDArray[Any]) -> Image.Image:
    return Image.fromarray(values.astype(np.uint8)).convert("RGB")


def _is_blank(image: Image.Image) -> bool:
    return all(low == high for low, high in image.getextrema())  # type: ignore[misc]
