"""Pictures of every odd kind, as the bytes of their files."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)


def gradient(width: int = 40, height: int = 30) -> Image.Image:
    """A smooth picture without symmetry, so that no two orientations of it look alike."""
    x, y = np.meshgrid(np.linspace(0, 1, width), np.linspace(0, 1, height))
    values = np.stack([200 * x + 30, 200 * y + 20, 120 * x * y + 60], axis=2)
    return Image.fromarray(values.astype(np.uint8))


def encoded(image: Image.Image, kind: str, **how: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **how)
    return file.getvalue()


def sixteen_bits(values: NDArray[np.uint16], kind: str) -> bytes:
    return encoded(Image.fromarray(values), kind)


def png(width: int, height: int, *, depth: int = 8, colour: int = 2, pixels: bytes = b"") -> bytes:
    """A PNG file that claims this size, whatever its pixels are."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def huge_gif(width: int, height: int) -> bytes:
    """A GIF file that claims this size, both of itself and of its only frame."""
    small = bytearray(encoded(Image.new("P", (1, 1)), "GIF"))
    small[6:10] = struct.pack("<HH", width, height)
    frame = small.index(b"\x2c\x00\x00\x00\x00")
    small[frame + 5 : frame + 9] = struct.pack("<HH", width, height)
    return bytes(small)


def huge_tiff(width: int, height: int) -> bytes:
    """A TIFF file that claims this size."""
    tags = [(256, width), (257, height), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1), (278, height), (279, 1)]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    return b"II*\x00" + struct.pack("<I", 8) + struct.pack("<H", len(tags)) + entries + bytes(4)


def huge_bmp(width: int, height: int) -> bytes:
    """A BMP file that claims this size."""
    small = bytearray(encoded(Image.new("RGB", (1, 1)), "BMP"))
    small[18:26] = struct.pack("<ii", width, height)
    return bytes(small)


def huge_webp(width: int, height: int) -> bytes:
    """A WEBP file that claims this size, of at most 16,383 pixels a side."""
    small = bytearray(encoded(Image.new("RGB", (1, 1)), "WEBP", lossless=True))
    place = small.index(b"VP8L") + 9
    bits = int.from_bytes(small[place : place + 4], "little") & ~0xFFFFFFF
    small[place : place + 4] = (bits | (width - 1) | (height - 1) << 14).to_bytes(4, "little")
    return bytes(small)
