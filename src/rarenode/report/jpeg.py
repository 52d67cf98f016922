"""`plain_jpeg`: what is embedded in a page is a small JPEG picture, and no more than a picture.

A page is sent to others. It must not carry where and by whom a photograph was taken, nor bytes that a browser would
take for something else, nor a picture of a few bytes that fills the memory when it is decoded.
"""

from __future__ import annotations

MOST_BYTES = 64 * 1024
START, END = b"\xff\xd8", b"\xff\xd9"
FRAMES = (0xC0, 0xC1, 0xC2)
"""Segments that say how large a picture is: baseline, extended and progressive. Browsers decode no others."""
SCAN = 0xDA
NEEDED = (0xC4, 0xDB, 0xDD, 0xE0, 0xEE)
"""Other segments that decoding needs: tables, restart interval, JFIF, and the colour transform of Adobe."""


def plain_jpeg(content: bytes, side: int) -> bytes | None:
    """The picture without metadata; None if it is no JPEG, or one of more than `MOST_BYTES` or ``side`` pixels.

    Args:
        content: the bytes, from anywhere.
        side: the most pixels that the picture may be wide or high.
    """
    if len(content) > MOST_BYTES or not (content.startswith(START) and content.endswith(END)):
        return None
    kept, place, has_frame = [START], len(START), False
    while place + 4 <= len(content) and content[place] == 0xFF:
        kind, length = content[place + 1], int.from_bytes(content[place + 2 : place + 4], "big")
        segment = content[place : place + 2 + length]
        if length < 2 or len(segment) < 2 + length:
            return None
        if kind == SCAN:
            return b"".join((*kept, content[place:])) if has_frame else None
        if kind in FRAMES:
            height, width = (int.from_bytes(segment[at : at + 2], "big") for at in (5, 7))
            if has_frame or not (0 < height <= side and 0 < width <= side):
                return None
            has_frame = True
        if kind in FRAMES or kind in NEEDED:
            kept.append(segment)
        place += 2 + length
    return None
