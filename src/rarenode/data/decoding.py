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

What Pillow has to say about large pictures and odd metadata is not shown: it does not name the file.
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from rarenode.errors import DataError

FORMATS = ("JPEG", "PNG", "TIFF", "BMP", "GIF", "WEBP", "PPM")
SUFFIXES = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".bmp", ".gif", ".webp", ".ppm", ".pgm")
TWELVE_BITS = 4095
SIXTEEN_BITS = 65535
THUMBNAIL_QUALITY = 80
BLANK = "of one colour"

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
        near: the picture is going to be scaled so that its shorter side has so many pixels; a large JPEG is then
            decoded at a fraction of its size, never below twice as many. None decodes it at its full size.

    Raises:
        DataError: it cannot be decoded.
    """
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as opened:
            frames = getattr(opened, "n_frames", 1) if opened.format != "MPO" else 1
            if near is not None:
                opened.draft("RGB", (2 * near, 2 * near))
            opened.load()
            image, note = _as_rgb(ImageOps.exif_transpose(opened))
    except UnidentifiedImageError:
        what = "the file is empty" if not content else f"it is not a picture of a known format ({', '.join(FORMATS)})"
        raise DataError(what) from None
    except Image.DecompressionBombError as error:
        raise DataError(f"it has too many pixels: {error}") from None
    except DataError:
        raise
    except MemoryError:
        raise DataError("it needs more memory than there is") from None
    except Exception as error:  # decoders raise whatever they come across: OSError, SyntaxError, struct.error, ...
        raise DataError(f"it is damaged ({str(error)[:100] or type(error).__name__})") from None
    if frames > 1:
        note = f"animated or of several pages, {frames}, of which the first is used"
    elif _is_blank(image):
        note = BLANK
    return Decoded(image, note)


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


def _as_rgb(image: Image.Image) -> tuple[Image.Image, str]:
    mode = image.mode
    if mode == "RGB" and "transparency" not in image.info:
        return image, ""
    if mode.startswith("I"):
        return _from_integers(np.asarray(image).astype(np.int64))
    if mode == "F":
        return _from_floats(np.asarray(image))
    if ("A" in mode and mode != "LAB") or "transparency" in image.info:
        over = image.convert("RGBA")
        white = Image.new("RGBA", over.size, "white")
        return Image.alpha_composite(white, over).convert("RGB"), ""
    return image.convert("RGB"), ""


def _from_integers(values: NDArray[np.int64]) -> tuple[Image.Image, str]:
    low, high = int(values.min()), int(values.max())
    if low < 0 or high > SIXTEEN_BITS:
        raise DataError(f"its values, {low} to {high}, are not those of 16 bits")
    if high <= TWELVE_BITS:
        return _grey(values // 16), "16 bit with values of 12 bits"
    return _grey(values // 257), ""


def _from_floats(values: NDArray[Any]) -> tuple[Image.Image, str]:
    if not np.isfinite(values).all() or values.min() < 0 or values.max() > 255:
        raise DataError("its values are floating point and not from 0 to 255")
    if values.max() <= 1:
        return _grey(np.rint(255 * values)), "floating point, from 0 to 1"
    return _grey(np.rint(values)), "floating point, from 0 to 255"


def _grey(values: NDArray[Any]) -> Image.Image:
    return Image.fromarray(values.astype(np.uint8)).convert("RGB")


def _is_blank(image: Image.Image) -> bool:
    return all(low == high for low, high in image.getextrema())  # type: ignore[misc]
