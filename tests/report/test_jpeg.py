"""What may be embedded in a page: JPEGs as Pillow writes them, and bytes from anywhere."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from rarenode.report.jpeg import MOST_BYTES, plain_jpeg
from tests.report.drawings import encoded, jpeg


def opened(content: bytes | None) -> Image.Image:
    assert content is not None
    image: Image.Image = Image.open(BytesIO(content))
    image.load()
    return image


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"optimize": True}, {"subsampling": 0}])
@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
def test_a_picture_stays_as_it_is(mode: str, options: dict[str, object]) -> None:
    image = Image.radial_gradient("L").resize((96, 64)).convert(mode)
    content = encoded(image, **options)
    assert plain_jpeg(content, 96) == content


def test_metadata_are_left_out() -> None:
    image = opened(jpeg(1, 60, 40))
    place = Image.Exif()
    place[0x8825] = {1: "N", 2: (51.0, 28.0, 38.0)}  # where the picture was taken
    content = encoded(image, exif=place, comment="taken by me", icc_profile=b"profile" * 10)
    assert b"taken by me" in content
    plain = plain_jpeg(content, 96)
    assert plain == encoded(image)
    assert np.array_equal(np.asarray(opened(plain)), np.asarray(opened(content)))


def test_a_picture_that_is_too_large() -> None:
    assert plain_jpeg(jpeg(1, 96, 20), 96) is not None
    assert plain_jpeg(jpeg(1, 97, 20), 96) is None
    assert plain_jpeg(jpeg(1, 20, 97), 96) is None
    noise = np.random.default_rng(0).integers(0, 256, (192, 192, 3), dtype=np.uint8)
    large = encoded(Image.fromarray(noise), quality=100, subsampling=0)
    assert len(large) > MOST_BYTES
    assert plain_jpeg(large, 192) is None


def test_a_few_bytes_that_promise_a_huge_picture() -> None:
    content = jpeg(1, 60, 40)
    at = content.index(b"\xff\xc0") + 5
    assert plain_jpeg(content[:at] + b"\xff\xff\xff\xff" + content[at + 4 :], 96) is None
    assert plain_jpeg(content[:at] + b"\x00\x00\x00\x00" + content[at + 4 :], 96) is None


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\xff\xd8", b"\xff\xd8\xff\xd9", b"<svg onload=alert(1)>", b"\xff\xd8<script>alert(1)</script>\xff\xd9",
        b"\xff\xd8\xff\xda\x00\x02\xff\xd9", b"\xff\xd8\xff\xc0\x00\x00\xff\xd9", b"\xff\xd8\xff\xc0\xff\xff\xff\xd9",
        b"\x89PNG\r\n\x1a\n", jpeg(1, 8, 8)[:-2], b" " + jpeg(1, 8, 8), jpeg(1, 8, 8) + b"and more",
    ],
)  # fmt: skip
def test_what_is_no_picture(content: bytes) -> None:
    assert plain_jpeg(content, 96) is None


@given(st.binary(max_size=60), st.integers(2, 700), st.integers(0, 20))
def test_no_bytes_are_an_error(junk: bytes, at: int, gone: int) -> None:
    content = jpeg(1, 60, 40)
    plain = plain_jpeg(content[:at] + junk + content[at + gone :], 96)
    assert plain is None or (plain.startswith(b"\xff\xd8\xff") and plain.endswith(b"\xff\xd9"))
    assert plain_jpeg(b"\xff\xd8" + junk + b"\xff\xd9", 96) is None or len(junk) > 10
