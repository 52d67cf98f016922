"""Pictures that nobody took: each row is a colour of its own. For tests only."""

from __future__ import annotations

from collections.abc import Collection
from io import BytesIO

from PIL import Image, ImageDraw


def jpeg(row: int, width: int, height: int) -> bytes:
    """A disc on a ground; both, and the width of the disc, are the row's own."""
    ground, ink = ((row * 37 % 256, row * 101 % 256, 90), (230, 255 - row * 53 % 256, row * 71 % 256))
    image = Image.new("RGB", (width, height), ground)
    edge = min(width, height) * (5 + row % 5 * 5) // 100
    ImageDraw.Draw(image).ellipse((edge, edge, width - edge, height - edge), fill=ink)
    return encoded(image)


def encoded(image: Image.Image, **options: object) -> bytes:
    content = BytesIO()
    image.save(content, "JPEG", **options)
    return content.getvalue()


class Drawings:
    """`Pictures` of so many rows, some of which cannot be read; it remembers what it was asked for."""

    def __init__(self, rows: int, unreadable: Collection[int] = ()) -> None:
        self.rows, self.unreadable = rows, unreadable
        self.asked: list[int] = []

    def __len__(self) -> int:
        return self.rows

    def thumbnail(self, row: int, size: int) -> bytes | None:
        assert 0 <= row < self.rows
        self.asked.append(row)
        upright = row % 3 == 0
        return None if row in self.unreadable else jpeg(row, size * 2 // 3 if upright else size, size)
