"""Decoding: one defined behaviour for every odd kind of picture, and `DataError` for all that is none."""

from __future__ import annotations

import io
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageCms, ImageOps

from rarenode.data.decoding import Crop, Decoded, check_header, decode, thumbnail, to_square
from rarenode.errors import DataError
from tests.data.picture_files import (
    BLUE,
    GREEN,
    RED,
    WHITE,
    encoded,
    gradient,
    huge_bmp,
    huge_gif,
    huge_tiff,
    huge_webp,
    png,
    sixteen_bits,
)

ORIENTATION = 0x0112


def pixels(decoded: Decoded) -> NDArray[np.int64]:
    assert decoded.image.mode == "RGB"
    return np.asarray(decoded.image).astype(np.int64)


def refused(content: bytes, *words: str) -> str:
    with pytest.raises(DataError) as caught:
        decode(content)
    for word in words:
        assert word in str(caught.value)
    assert str(caught.value).isprintable()
    return str(caught.value)


# --- what is taken ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["PNG", "BMP", "PPM", "TIFF"])
def test_formats_without_loss(kind: str) -> None:
    found = decode(encoded(gradient(), kind))
    assert (pixels(found) == np.asarray(gradient())).all()
    assert not found.note


@pytest.mark.parametrize(
    ("kind", "how"),
    [("JPEG", {"quality": 95}), ("JPEG", {"quality": 95, "progressive": True}), ("WEBP", {"quality": 95}), ("GIF", {})],
)
def test_formats_with_loss(kind: str, how: dict[str, int]) -> None:
    found = decode(encoded(gradient(), kind, **how))
    assert np.abs(pixels(found) - np.asarray(gradient())).mean() < 6
    assert not found.note


def test_the_first_picture_of_a_stereo_pair_is_not_odd() -> None:
    """Many cameras write MPO files, whose further pictures are previews."""
    pair = encoded(gradient(), "MPO", save_all=True, append_images=[Image.new("RGB", (40, 30), RED)], quality=95)
    found = decode(pair)
    assert np.abs(pixels(found) - np.asarray(gradient())).mean() < 6
    assert not found.note


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("near", [None, 4])
def test_exif_rotation_is_applied(orientation: int, near: int | None) -> None:
    turned = {
        1: [], 2: [Image.Transpose.FLIP_LEFT_RIGHT], 3: [Image.Transpose.ROTATE_180],
        4: [Image.Transpose.FLIP_TOP_BOTTOM], 5: [Image.Transpose.TRANSPOSE], 6: [Image.Transpose.ROTATE_270],
        7: [Image.Transpose.TRANSVERSE], 8: [Image.Transpose.ROTATE_90],
    }  # fmt: skip
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    expected = gradient(120, 90)
    for step in turned[orientation]:
        expected = expected.transpose(step)
    found = decode(encoded(gradient(120, 90), "JPEG", exif=exif, quality=95), near).image
    if near is not None:
        assert found.width < expected.width
        expected = expected.resize(found.size)
    assert found.size == expected.size
    assert np.abs(np.asarray(found).astype(int) - np.asarray(expected)).mean() < 4


def test_a_large_jpeg_is_decoded_small_but_not_too_small() -> None:
    large = encoded(gradient(1600, 800), "JPEG")
    assert decode(large).image.size == (1600, 800)
    for near in (20, 50, 99, 100, 150, 399, 400):
        assert 2 * near <= min(decode(large, near).image.size) < 800 or near >= 200
    assert min(decode(large, 401).image.size) == 800


def test_grey_one_bit_and_palette() -> None:
    grey = decode(encoded(gradient().convert("L"), "PNG"))
    assert (pixels(grey) == np.asarray(gradient().convert("L"))[:, :, None]).all()
    bits = Image.fromarray(np.array([[True, False], [False, True]]))
    assert pixels(decode(encoded(bits, "PNG")))[:, :, 0].tolist() == [[255, 0], [0, 255]]
    assert pixels(decode(encoded(bits, "TIFF")))[:, :, 2].tolist() == [[255, 0], [0, 255]]
    palette = Image.new("P", (2, 1))
    palette.putpalette([*RED, *GREEN])
    palette.putpixel((1, 0), 1)
    for kind in ("PNG", "GIF", "BMP"):
        assert pixels(decode(encoded(palette, kind))).tolist() == [[list(RED), list(GREEN)]]


def test_transparent_colours_become_white() -> None:
    palette = Image.new("P", (2, 1))
    palette.putpalette([*RED, *GREEN])
    palette.putpixel((1, 0), 1)
    for kind in ("PNG", "GIF"):
        assert pixels(decode(encoded(palette, kind, transparency=0))).tolist() == [[list(WHITE), list(GREEN)]]
    two = Image.new("RGB", (2, 1), BLUE)
    two.putpixel((1, 0), GREEN)
    assert pixels(decode(encoded(two, "PNG", transparency=BLUE))).tolist() == [[list(WHITE), list(GREEN)]]
    grey = Image.fromarray(np.array([[7, 90]], dtype=np.uint8))
    assert pixels(decode(encoded(grey, "PNG", transparency=7)))[0].tolist() == [list(WHITE), [90, 90, 90]]


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP"])
def test_alpha_is_laid_over_white(kind: str) -> None:
    values = np.array([[[200, 100, 0, 255], [200, 100, 0, 128], [200, 100, 0, 0]]], dtype=np.uint8)
    how = {"lossless": True, "exact": True} if kind == "WEBP" else {}
    found = pixels(decode(encoded(Image.fromarray(values), kind, **how)))
    alpha = values[:, :, 3:].astype(np.float64) / 255
    expected = alpha * values[:, :, :3] + (1 - alpha) * 255
    assert np.abs(found - expected).max() <= 1
    grey = np.array([[[40, 255], [40, 51], [40, 0]]], dtype=np.uint8)
    if kind == "PNG":
        assert np.abs(pixels(decode(encoded(Image.fromarray(grey), kind)))[0, :, 0] - [40, 212, 255]).max() <= 1


def test_cmyk() -> None:
    print_colours = Image.new("CMYK", (16, 16), (0, 255, 255, 0))
    print_colours.paste((255, 0, 0, 0), (8, 0, 16, 16))
    found = pixels(decode(encoded(print_colours, "JPEG", quality=95)))
    assert np.abs(found[8, 3] - [255, 0, 0]).max() < 12
    assert np.abs(found[8, 12] - [0, 255, 255]).max() < 12


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bits(kind: str) -> None:
    full = np.array([[0, 257, 4095], [257 * 100, 65534, 65535]], dtype=np.uint16)
    found = decode(sixteen_bits(full, kind))
    assert pixels(found)[:, :, 1].tolist() == [[0, 1, 15], [100, 254, 255]]
    assert not found.note
    camera = np.array([[0, 16, 2048, 4095]], dtype=np.uint16)
    found = decode(sixteen_bits(camera, kind))
    assert pixels(found)[0, :, 0].tolist() == [0, 1, 128, 255]
    assert "12 bits" in found.note
    assert decode(sixteen_bits(np.zeros((2, 2), dtype=np.uint16), kind)).note == "of one colour"


def test_sixteen_bits_in_the_other_byte_order() -> None:
    values = np.array([[0, 25700, 65535]], dtype=np.uint16)
    file = b"P5 3 1 65535\n" + values.astype(">u2").tobytes()
    assert pixels(decode(file))[0, :, 0].tolist() == [0, 100, 255]
    tiff = sixteen_bits(values, "TIFF")
    if tiff[:2] == b"II":
        big = encoded(Image.frombytes("I;16B", (3, 1), values.astype(">u2").tobytes()), "TIFF")
        assert pixels(decode(big))[0, :, 0].tolist() == [0, 100, 255]


def test_more_than_sixteen_bits_and_negative_values_are_refused() -> None:
    refused(encoded(Image.fromarray(np.array([[0, 70_000]], dtype=np.int32)), "TIFF"), "0 to 70000", "16 bits")
    refused(encoded(Image.fromarray(np.array([[-1, 5]], dtype=np.int32)), "TIFF"), "-1 to 5")


def test_floating_point() -> None:
    shares = decode(encoded(Image.fromarray(np.array([[0, 0.5, 1]], dtype=np.float32)), "TIFF"))
    assert pixels(shares)[0, :, 0].tolist() == [0, 128, 255]
    assert "from 0 to 1" in shares.note
    values = decode(encoded(Image.fromarray(np.array([[0, 3, 254.6]], dtype=np.float32)), "TIFF"))
    assert pixels(values)[0, :, 0].tolist() == [0, 3, 255]
    assert "from 0 to 255" in values.note
    for wrong in (-0.5, 300.0, np.nan, np.inf):
        refused(encoded(Image.fromarray(np.array([[0, wrong]], dtype=np.float32)), "TIFF"), "floating point")


@pytest.mark.parametrize("kind", ["GIF", "TIFF", "WEBP", "PNG"])
def test_of_several_frames_the_first(kind: str) -> None:
    rest = [Image.new("RGB", (8, 8), colour) for colour in (GREEN, BLUE)]
    how = {"lossless": True} if kind == "WEBP" else {}
    found = decode(encoded(Image.new("RGB", (8, 8), RED), kind, save_all=True, append_images=rest, **how))
    assert (pixels(found) == RED).all()
    assert found.note == "animated or of several pages, 3, of which the first is used"


def test_one_colour_is_noted() -> None:
    assert decode(encoded(Image.new("RGB", (9, 5), GREEN), "PNG")).note == "of one colour"
    assert decode(encoded(Image.new("L", (1, 1), 9), "PNG")).note == "of one colour"
    almost = Image.new("RGB", (9, 5), GREEN)
    almost.putpixel((3, 3), (0, 254, 0))
    assert not decode(encoded(almost, "PNG")).note


# --- what is refused -------------------------------------------------------------------------------------------------


def test_no_pictures() -> None:
    assert refused(b"") == "the file is empty"
    refused(b"image,taxa\na.jpg,Corals\n", "not a picture", "JPEG")
    refused(bytes(1000), "not a picture")
    refused(b"\xff\xd8\xff\xe0", "")
    refused(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not a picture")  # Pillow would run Ghostscript


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP", "WEBP", "TIFF", "PPM"])
def test_a_file_that_ends_too_early(kind: str) -> None:
    whole = encoded(gradient(200, 150), kind)
    for share in (0.05, 0.3, 0.6, 0.9):
        refused(whole[: int(share * len(whole))])


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP", "GIF", "WEBP", "TIFF", "PPM"])
def test_headers(kind: str) -> None:
    content = encoded(gradient(), kind)
    check_header(io.BytesIO(content))
    if kind != "TIFF":  # which has it where it likes
        check_header(io.BytesIO(content[:-20]))
    with pytest.raises(DataError, match="not a picture of a known format"):
        check_header(io.BytesIO(content[1:]))
    with pytest.raises(DataError, match="the file is empty"):
        check_header(io.BytesIO())
    with pytest.raises(DataError, match="too many pixels"):
        check_header(io.BytesIO(png(30_000, 30_000)))


@pytest.mark.parametrize("make", [png, huge_gif, huge_tiff, huge_bmp, huge_webp])
def test_too_many_pixels_take_no_memory(make: Callable[[int, int], bytes]) -> None:
    side = 16_383 if make is huge_webp else 50_000
    bomb = make(side, side)
    tracemalloc.start()
    try:
        refused(bomb, "too many pixels", str(side * side))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_the_limit_is_twice_that_of_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    for kind in ("PNG", "JPEG", "TIFF", "GIF"):
        assert decode(encoded(gradient(20, 10), kind)).image.size == (20, 10)
        refused(encoded(gradient(21, 10), kind), "too many pixels")


def test_warnings_that_name_no_file_are_not_shown(tmp_path: Path) -> None:
    """Pillow warns of every large photograph of a survey, and of broken metadata."""
    broken = b"Exif\x00\x00II*\x00\x08\x00\x00\x00\xff\xff" + b"\x12\x01" * 9
    (tmp_path / "a.jpg").write_bytes(encoded(gradient(), "JPEG", exif=broken, quality=95))
    program = (
        "import sys, PIL.Image, pathlib; PIL.Image.MAX_IMAGE_PIXELS = 1000; from rarenode.data.decoding import decode; "
        "print(decode(pathlib.Path(sys.argv[1]).read_bytes()).image.size)"
    )
    command = [sys.executable, "-W", "default", "-c", program, str(tmp_path / "a.jpg")]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("(40, 30)\n", "")


# --- squares and thumbnails ------------------------------------------------------------------------------------------


def resized_and_cut(image: Image.Image, crop: Crop) -> NDArray[np.float64]:
    """The obvious way: scale the whole picture, then cut out the middle."""
    scale = crop.resize / min(image.size)
    width, height = (max(crop.resize, round(side * scale)) for side in image.size)
    whole = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR)).astype(np.float64)
    left, top = (width - crop.size) // 2, (height - crop.size) // 2
    return whole[top : top + crop.size, left : left + crop.size]


@pytest.mark.parametrize("size", [(40, 30), (30, 40), (64, 64), (300, 200), (123, 457), (1000, 90), (8, 8), (3, 17)])
@pytest.mark.parametrize("crop", [Crop(32, 32), Crop(36, 32), Crop(64, 20)])
def test_a_square_is_the_middle_of_the_scaled_picture(size: tuple[int, int], crop: Crop) -> None:
    image = gradient(*size)
    found = to_square(image, crop)
    assert found.shape == (crop.size, crop.size, 3)
    assert found.dtype == np.uint8
    difference = np.abs(found - resized_and_cut(image, crop))
    step = 200 * max(crop.resize / min(size), 1) / crop.resize  # between neighbouring pixels of the scaled picture
    assert difference.mean() < 2 + step / 4
    assert difference.max() < 4 + step


def test_a_square_of_noise_is_that_of_pillow() -> None:
    """Where nothing is cut off and nothing is reduced beforehand, it is the same computation."""
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8))
    assert np.abs(to_square(noise, Crop(24, 24)) - resized_and_cut(noise, Crop(24, 24))).max() <= 1
    cut = to_square(noise, Crop(40, 20))
    assert (cut == np.asarray(noise)[10:30, 10:30]).all()


@pytest.mark.parametrize("size", [(1, 1), (1, 5000), (5000, 1), (2, 3)])
def test_squares_of_extreme_pictures(size: tuple[int, int]) -> None:
    image = Image.new("RGB", size, (10, 20, 30))
    square = to_square(decode(encoded(image, "PNG"), 36).image, Crop(36, 32))
    assert square.shape == (32, 32, 3)
    assert (square == (10, 20, 30)).all()


def test_thumbnails_have_pixels_and_nothing_else() -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    exif[0x010E] = "secret place"
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    content = encoded(gradient(400, 200), "JPEG", exif=exif, icc_profile=profile, comment=b"secret note")
    assert b"secret place" in content
    assert b"secret note" in content
    small = thumbnail(content, 96)
    with Image.open(io.BytesIO(small)) as image:
        assert image.format == "JPEG"
        assert image.size == (48, 96)  # turned as the EXIF header says
        assert set(image.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}
        assert not image.getexif()
        expected = ImageOps.exif_transpose(Image.open(io.BytesIO(content))).resize((48, 96))
        assert np.abs(np.asarray(image).astype(int) - np.asarray(expected)).mean() < 8
    assert b"secret" not in small
    assert b"ICC" not in small


@pytest.mark.parametrize("size", [(1, 1), (5000, 1), (1, 5000), (30, 20), (500, 400)])
def test_thumbnails_keep_to_their_size_and_enlarge_nothing(size: tuple[int, int]) -> None:
    with Image.open(io.BytesIO(thumbnail(encoded(gradient(*size), "PNG"), 64))) as image:
        assert max(image.size) == min(64, max(size))
        assert min(image.size) >= 1


def test_a_thumbnail_of_no_picture() -> None:
    with pytest.raises(DataError, match="not a picture"):
        thumbnail(b"nothing", 64)
