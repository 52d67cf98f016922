"""Images: where pictures are, which are found, how they are read, and what is kept of them."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import threading
import tracemalloc
import warnings
import zipfile
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from PIL import Image

from rarenode import Dataset, Hierarchy
from rarenode.data import archives
from rarenode.data.features import take_rows
from rarenode.data.images import ImageFile, Images, are_images, as_images, find_names, list_names
from rarenode.errors import DataError, FileFormatError, MissingFileError
from rarenode.training.embedding import check_images
from tests.data.picture_files import encoded, gradient

NAMES = ("a.png", "b b.JPG", "corals/c.jpeg", "corals/déjà vu.tif", "corals/deep/x'y\"(1) [2] %20 #.png", "日本/鯨.gif")


def content(number: int) -> bytes:
    """A different small picture for each number."""
    return encoded(Image.new("RGB", (3, 2), (number % 256, number // 256, 7)), "PNG")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, name in enumerate(NAMES):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(number))
    return tmp_path / "photos"


def zipped(folder: Path, *, compression: int = zipfile.ZIP_DEFLATED) -> Path:
    path = folder.with_suffix(".zip")
    with zipfile.ZipFile(path, "w", compression) as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, file.relative_to(folder).as_posix())
    return path


Place = Callable[[Path], Path]
PLACES = [pytest.param(lambda folder: folder, id="folder"), pytest.param(zipped, id="zip")]


def unreadable(file: ImageFile) -> str:
    with pytest.raises(DataError) as caught:
        file.read()
    return str(caught.value)


# --- which are found -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", PLACES)
def test_all_pictures_below(folder: Path, place: Place) -> None:
    (folder / "notes.txt").write_text("no picture")
    (folder / "empty").mkdir()
    found = Images.below(place(folder))
    assert found.names == tuple(sorted(NAMES))
    assert len(found) == len(NAMES)
    assert found.shape == (len(NAMES), 1)
    assert {file.name: file.read() for file in found.files} == {name: content(n) for n, name in enumerate(NAMES)}
    assert as_images(str(place(folder))).names == found.names


@pytest.mark.parametrize("place", PLACES)
def test_files_that_may_be_meant_as_pictures_are_counted(folder: Path, place: Place) -> None:
    for name in ("p.jfif", "q.JPE", "r.pnm", "s.pbm"):
        (folder / name).write_bytes(content(1))
    for name in ("1.HEIC", "corals/2.heic", "3.jp2", "corals/no suffix"):
        (folder / name).write_bytes(content(2))
    for name in ("labels.csv", "Thumbs.db", "README", "deep.tar.gz"):
        (folder / name).write_text("no picture")
    told = r"left out 4 files that may be meant as pictures: 2 \.heic, 1 \.jp2, 1 without a suffix; those of \.jpg, "
    with pytest.warns(RuntimeWarning, match=told):
        found = Images.below(place(folder))
    assert found.names == tuple(sorted((*NAMES, "p.jfif", "q.JPE", "r.pnm", "s.pbm")))


@pytest.mark.parametrize("place", PLACES)
def test_hidden_files_are_left_out(folder: Path, place: Place) -> None:
    for name in (".hidden.png", ".thumbs/x.png", "corals/._c.jpeg", "__MACOSX/corals/._c.jpeg"):
        path = folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(content(99))
    assert Images.below(place(folder)).names == tuple(sorted(NAMES))


def test_what_a_mac_packs_is_left_out(folder: Path) -> None:
    archive = zipped(folder)
    with zipfile.ZipFile(archive, "a") as opened:
        opened.writestr("__MACOSX/a.png", content(9))
    assert Images.below(archive).names == tuple(sorted(NAMES))


def test_a_name_that_is_twice_in_an_archive_is_one_picture(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of what it writes here
        archive.writestr("a.png", content(1))
        archive.writestr("a.png", content(2))
    assert Images.below(tmp_path / "a.zip").names == ("a.png",)
    assert Images.below(tmp_path / "a.zip").file(0).read() == content(2)  # as programs that unpack it have it


def zip_with_raw_names(path: Path, names: dict[bytes, bytes]) -> Path:
    """An archive whose names are written as they are, without the flag for UTF-8; each with its extra field."""
    with zipfile.ZipFile(path, "w") as archive:
        for number, (raw, extra) in enumerate(names.items()):
            about = zipfile.ZipInfo("x" * len(raw))
            about.extra = extra
            archive.writestr(about, content(number))
    packed = path.read_bytes()
    for raw in names:
        packed = packed.replace(b"x" * len(raw), raw)
    path.write_bytes(packed)
    return path


def unicode_path(name: str, raw: bytes, *, version: int = 1) -> bytes:
    field = struct.pack("<BL", version, zlib.crc32(raw)) + name.encode()
    return struct.pack("<HHB", 0x9999, 1, 0) + struct.pack("<HH", 0x7075, len(field)) + field


@pytest.mark.parametrize(
    ("raw", "extra", "name"),
    [
        ("Käfer/鯨.png".encode(), b"", "Käfer/鯨.png"),  # as `zip` writes it on Linux
        ("Käfer/1.png".encode("cp437"), b"", "Käfer/1.png"),  # as DOS does
        (b"K_fer/1.png", unicode_path("Käfer/1.png", b"K_fer/1.png"), "Käfer/1.png"),
        ("Käfer/1.png".encode("cp437"), unicode_path("Other/1.png", b"another name"), "Käfer/1.png"),
        (b"K_fer/1.png", unicode_path("Other/1.png", b"K_fer/1.png", version=2), "K_fer/1.png"),
    ],
)
def test_names_in_archives_of_every_program(tmp_path: Path, raw: bytes, extra: bytes, name: str) -> None:
    found = Images.below(zip_with_raw_names(tmp_path / "a.zip", {raw: extra}))
    assert found.names == (name,)
    assert found.file(0).read() == content(0)


def test_links_to_folders_are_followed(folder: Path, tmp_path: Path) -> None:
    far = tmp_path / "far"
    (far / "deep").mkdir(parents=True)
    (far / "1.png").write_bytes(content(50))
    (far / "deep" / "2.png").write_bytes(content(51))
    (folder / "sponges").symlink_to(far)
    (folder / "corals" / "link.png").symlink_to(far / "1.png")
    found = Images.below(folder)
    assert set(found.names) == {*NAMES, "sponges/1.png", "sponges/deep/2.png", "corals/link.png"}
    assert found.file(found.names.index("sponges/deep/2.png")).read() == content(51)
    (tmp_path / "other").symlink_to(folder)
    assert Images.below(tmp_path / "other").names == found.names


def test_every_folder_is_read_once(folder: Path, tmp_path: Path) -> None:
    """Neither round in a circle, nor the same pictures under two names; links that are left out are named."""
    far = tmp_path / "far"
    far.mkdir()
    (far / "1.png").write_bytes(content(50))
    (far / "back").symlink_to(folder / "corals")
    (far / "up").symlink_to(tmp_path)
    (folder / "again").symlink_to(folder / "corals")
    (folder / "corals" / "round").symlink_to(folder)
    (folder / "sponges").symlink_to(far)
    (folder / "sponges too").symlink_to(far)
    left_out = "again, corals/round, sponges too, sponges/back, sponges/up"
    with pytest.warns(RuntimeWarning, match=f"photos: left out links to folders that are read anyway .*: {left_out}"):
        assert Images.below(folder).names == tuple(sorted((*NAMES, "sponges/1.png")))


def test_links_that_lead_nowhere_are_named(folder: Path, tmp_path: Path) -> None:
    (folder / "lost").symlink_to(tmp_path / "gone")
    (folder / "lost.txt").symlink_to(tmp_path / "gone.txt")
    with pytest.warns(RuntimeWarning, match=r"left out links that lead nowhere: lost$"):
        assert Images.below(folder).names == tuple(sorted(NAMES))


def test_a_folder_that_cannot_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.scandir

    def refusing(path: Any) -> Any:
        if str(path).endswith("corals"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(FileFormatError, match=r"photos/corals: the folder cannot be read: Permission denied"):
        Images.below(folder)


def test_no_pictures(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="nowhere"):
        Images.below(tmp_path / "nowhere")
    with pytest.raises(MissingFileError, match="nowhere"):
        Images.below(tmp_path / "nowhere.zip")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("a")
    with pytest.raises(DataError, match=r"notes contains no picture.*\.jpg"):
        Images.below(tmp_path / "notes")
    with pytest.raises(FileFormatError, match="expected a folder"):
        list(list_names(tmp_path / "notes" / "a.txt"))


def test_forms_of_pictures(folder: Path) -> None:
    paths = [folder / name for name in NAMES]
    images = as_images(paths)
    assert [file.read() for file in images.files] == [content(number) for number in range(len(NAMES))]
    assert as_images(images) is images
    assert all(are_images(form) for form in (images, paths, tuple(map(str, paths)), folder, str(folder)))
    names = [str(path) for path in paths]
    for form in (np.array(names), np.array(paths), pd.Series(names, index=range(7, 7 + len(names))), pl.Series(names)):
        assert are_images(form)
        for made in (as_images(form), Images(form), Images.from_paths(form)):
            assert [file.read() for file in made.files] == [content(number) for number in range(len(NAMES))]
    for wrong in (np.array([1.5]), pd.Series(["a.png", None]), pd.Series([], dtype=object), np.array([["a.png"]])):
        assert not are_images(wrong)
    with pytest.raises(DataError, match=r"paths of files; got 'nan'"):
        Images(pd.Series(["a.png", None]))
    with pytest.raises(DataError, match=r"Images.below\('photos'\)"):
        Images("photos")
    assert not any(are_images(form) for form in ([], [[1.0]], np.zeros((2, 3)), None, [paths[0], 3]))
    with pytest.raises(DataError, match="pictures must be"):
        as_images([paths[0], 3])


@pytest.mark.parametrize("place", PLACES)
def test_the_first_candidate_that_is_there(folder: Path, place: Place) -> None:
    (folder / "taken.png").mkdir()
    wanted = [["a", "a.png"], ["x.png"], ["corals/c.jpeg", "a.png"], [], ["taken.png"]]
    assert find_names(wanted, place(folder)) == ["a.png", None, "corals/c.jpeg", None, None]
    with pytest.raises(MissingFileError):
        find_names(wanted, folder / "nowhere")


# --- how they are read -----------------------------------------------------------------------------------------------


def test_files_that_cannot_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert unreadable(ImageFile(folder, "no.png")) == "there is no such file"
    assert "cannot be read" in unreadable(ImageFile(folder, "corals"))
    assert "cannot be read" in unreadable(ImageFile(folder, f"{'x' * 5000}.png"))
    assert unreadable(ImageFile(folder, "a\0.png"))
    assert unreadable(ImageFile(folder, "\ud800.png"))
    os.mkfifo(folder / "pipe.png")
    assert "no ordinary file" in unreadable(ImageFile(folder, "pipe.png"))  # reading it would never end
    monkeypatch.setattr(archives, "MOST_BYTES", 10)
    assert "more than the 10" in unreadable(ImageFile(folder, "a.png"))


def test_a_file_without_a_name_in_an_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo("corals/a.png"), b"a")
        archive.writestr(zipfile.ZipInfo("\0"), b"b")
    assert Images.below(tmp_path / "a.zip").names == ("corals/a.png",)


def test_an_archive_that_is_none(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "text.zip").write_text("no archive")
    with pytest.raises(FileFormatError, match=r"text\.zip.*damaged, or no zip archive"):
        Images.below(tmp_path / "text.zip")
    archive = zipped(folder)
    archive.write_bytes(archive.read_bytes()[:-40])
    with pytest.raises(FileFormatError, match="damaged"):
        Images.below(archive)


def test_a_damaged_member_spoils_no_other(folder: Path) -> None:
    archive = zipped(folder, compression=zipfile.ZIP_STORED)
    whole = archive.read_bytes()
    place = whole.index(content(0)) + 40
    archive.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    assert "cannot be unpacked" in unreadable(ImageFile(archive, "a.png"))
    assert ImageFile(archive, "b b.JPG").read() == content(1)
    assert "contains no such file" in unreadable(ImageFile(archive, "no.png"))


def test_damaged_compression(folder: Path) -> None:
    (folder / "noise.png").write_bytes(b"abc" * 1000)
    archive = zipped(folder)
    whole = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as opened:
        info = opened.getinfo("noise.png")
    first = info.header_offset + 30 + len(info.filename)
    whole[first : first + info.compress_size] = b"\xff" * info.compress_size
    archive.write_bytes(bytes(whole))
    assert "cannot be unpacked" in unreadable(ImageFile(archive, "noise.png"))


def test_an_encrypted_member(folder: Path) -> None:
    archive = zipped(folder, compression=zipfile.ZIP_STORED)
    whole = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as opened:
        first = opened.getinfo("a.png").header_offset
    whole[first + 6] |= 1  # the flag, in front of the file and in the table of contents
    table = whole.index(b"PK\x01\x02")
    assert whole[table + 46 : table + 51] == b"a.png"
    whole[table + 8] |= 1
    archive.write_bytes(bytes(whole))
    assert "encrypted" in unreadable(ImageFile(archive, "a.png"))


def test_an_unknown_compression(folder: Path) -> None:
    archive = zipped(folder, compression=zipfile.ZIP_STORED)
    whole = bytearray(archive.read_bytes())
    table = whole.index(b"PK\x01\x02")
    whole[table + 10 : table + 12] = struct.pack("<H", 97)
    archive.write_bytes(bytes(whole))
    assert "cannot be unpacked" in unreadable(ImageFile(archive, "a.png"))


@pytest.mark.parametrize("claimed", [None, 50])
def test_a_member_that_unpacks_to_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claimed: int | None
) -> None:
    """A thousand times its size on disk; what it claims to have may be a lie."""
    monkeypatch.setattr(archives, "MOST_BYTES", 1000)
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.png", bytes(10_000_000))
    whole = bytearray(path.read_bytes())
    if claimed is not None:
        table = whole.index(b"PK\x01\x02")
        whole[table + 24 : table + 28] = struct.pack("<I", claimed)
        path.write_bytes(bytes(whole))
    problem = unreadable(ImageFile(path, "a.png"))
    assert ("more than the 1,000" if claimed is None else "cannot be unpacked") in problem


def test_a_large_member_that_is_packed_into_next_to_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No picture shrinks to a hundredth, but for those of one colour without compression of their own, if small."""
    monkeypatch.setattr(archives, "RATIO_FROM", 100_000)
    path = tmp_path / "bomb.zip"
    noise = np.random.default_rng(0).integers(0, 256, 100_000, dtype=np.uint8).tobytes()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("small.bmp", bytes(99_999))
        archive.writestr("large.bmp", bytes(100_000))
        archive.writestr("noise.bmp", noise)
    assert ImageFile(path, "small.bmp").read() == bytes(99_999)
    assert ImageFile(path, "noise.bmp").read() == noise
    assert "100,000 bytes, more than 100 times" in unreadable(ImageFile(path, "large.bmp"))


def test_a_member_is_unpacked_into_its_own_size_of_memory(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 16, 40_000, dtype=np.uint8).tobytes()
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("large.ppm", 1_000 * noise)
    tracemalloc.start()
    try:
        assert len(ImageFile(tmp_path / "a.zip", "large.ppm").read()) == 1_000 * len(noise)
        assert tracemalloc.get_traced_memory()[1] < 1.3 * 1_000 * len(noise)
    finally:
        tracemalloc.stop()


def test_an_archive_that_is_replaced_is_read_anew(folder: Path) -> None:
    archive = zipped(folder)
    file = ImageFile(archive, "a.png")
    assert file.read() == content(0)
    (folder / "a.png").write_bytes(content(77))
    before = archive.stat().st_mtime_ns
    zipped(folder)
    os.utime(archive, ns=(before + 10**9, before + 10**9))
    assert file.read() == content(77)


@pytest.mark.parametrize("in_place", [True, False])
def test_an_archive_that_is_replaced_by_one_of_the_same_time(folder: Path, tmp_path: Path, in_place: bool) -> None:
    archive = zipped(folder, compression=zipfile.ZIP_STORED)
    file, before = ImageFile(archive, "a.png"), archive.stat()
    assert file.read() == content(0)
    (folder / "a.png").write_bytes(content(77))
    assert len(content(77)) == len(content(0))
    if in_place:
        zipped(folder, compression=zipfile.ZIP_STORED)
    else:
        aside = archive.rename(tmp_path / "before.zip")
        zipped(folder, compression=zipfile.ZIP_STORED)
        assert aside.exists()  # so that its place on the disk is not used again
    os.utime(archive, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (archive.stat().st_mtime_ns, archive.stat().st_size) == (before.st_mtime_ns, before.st_size)
    assert file.read() == content(77)


@pytest.mark.parametrize("change", [zipped, Path.unlink])
def test_an_archive_that_changes_while_it_is_read(folder: Path, change: Callable[[Path], object]) -> None:
    """Pictures of two archives are never mixed, nor left out as bad ones."""
    archive = zipped(folder)
    images = Images.below(archive)
    assert images.file(0).read() == content(0)
    change(folder if change is zipped else archive)
    for attempt in (images.file(1).read, lambda: images.digests, lambda: check_images(images)):
        with pytest.raises(FileFormatError, match=r"photos\.zip: it has changed while it was read; run"):
            attempt()
    assert images.thumbnail(0, 8) is None


def test_many_threads_read_one_archive(tmp_path: Path) -> None:
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(200):
            archive.writestr(f"{number}.png", content(number))
    together = threading.Barrier(8)

    def read(first: int) -> bool:
        together.wait()
        numbers = [(first * 25 + step) % 200 for step in range(200)]
        return all(ImageFile(path, f"{number}.png").read() == content(number) for number in numbers)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(8)))


# --- rows, and what is kept of them ----------------------------------------------------------------------------------


def test_rows_in_any_order(folder: Path) -> None:
    images = Images.below(folder)
    chosen = images[np.array([4, 0, 4])]
    assert chosen.names == (images.names[4], images.names[0], images.names[4])
    assert images[1:3].names == images.names[1:3]
    assert images[np.arange(len(images)) > 3].names == images.names[4:]
    assert chosen[np.array([1])].names == (images.names[0],)
    assert take_rows(images, np.array([2])).names == (images.names[2],)
    assert len(images[np.zeros(0, dtype=np.int64)]) == 0
    assert repr(images) == f"<Images: {len(NAMES)} pictures>"
    assert repr(images[:1]) == "<Images: 1 picture>"


def test_one_row_is_not_several(folder: Path) -> None:
    found = Images.below(folder)
    for row in (1, np.int64(1), np.array(1)):
        with pytest.raises(TypeError, match=r"indexed by a slice, a mask or several rows; file\(row\)"):
            found[row]
    assert found[[1]].names == found.names[1:2]


def test_parts_share_what_is_computed(folder: Path) -> None:
    images = Images.below(folder)
    part, other = images[np.array([5, 1, 3])], images[np.array([3, 0])]
    part.keep("squares", np.array([0, 2]), np.array([[25.0, 5.0], [9.0, 3.0]]))
    values, known = images.values("squares", 2, np.float64)
    assert known.tolist() == [False, False, False, True, False, True]
    assert values[5].tolist() == [25.0, 5.0]
    values, known = other.values("squares", 2, np.float64)
    assert known.tolist() == [True, False]
    assert values[0].tolist() == [9.0, 3.0]
    assert not images.values("cubes", 2, np.float64)[1].any()
    other.forget("squares")
    assert not part.values("squares", 2, np.float64)[1].any()


def test_joined(folder: Path) -> None:
    images = Images.below(folder)
    first, second = images[:2], images[np.array([4])]
    both = first.joined(second)
    assert both.names == (*images.names[:2], images.names[4])
    both.keep("a", np.array([2]), np.array([[1.0]]))
    assert images.values("a", 1, np.float64)[1].tolist() == [False] * 4 + [True, False]
    elsewhere = Images.from_paths([folder / "a.png"])
    joined = second.joined(elsewhere)
    assert [file.read() for file in joined.files] == [images.file(4).read(), content(0)]


def test_digests_are_of_the_content(folder: Path) -> None:
    images = Images.below(folder)
    expected = [hashlib.sha256(file.read()).digest() for file in images.files]
    assert [digest.tobytes() for digest in images.digests] == expected
    missing = Images.from_paths([folder / "a.png", folder / "gone.png"]).digests
    assert missing[0].any()
    assert not missing[1].any()


def test_the_fingerprint_of_rows_is_that_of_the_content(folder: Path, tmp_path: Path) -> None:
    tree = Hierarchy.from_paths(["a > b"])
    Y = np.ones((len(NAMES), 2), dtype=np.bool_)

    def fingerprint(images: Images) -> str:
        return Dataset.from_arrays(images, Y[: len(images)], tree).fingerprint

    here = Images.below(folder)
    first = fingerprint(here)
    copies = [tmp_path / f"{number}.bin" for number in range(len(NAMES))]
    for file, copy in zip(here.files, copies, strict=True):
        shutil.copy(str(file), copy)
    assert fingerprint(Images.from_paths(copies)) == first
    assert fingerprint(Images.below(zipped(folder))) == first
    assert fingerprint(here[::-1]) != first
    changed = bytearray(copies[3].read_bytes())
    changed[-1] ^= 1
    copies[3].write_bytes(bytes(changed))
    assert fingerprint(Images.from_paths(copies)) != first


def test_datasets_of_pictures(folder: Path) -> None:
    tree = Hierarchy.from_paths(["a > b"])
    Y = np.ones((len(NAMES), 2), dtype=np.bool_)
    data = Dataset.from_arrays(Images.below(folder), Y, tree)
    assert data.n_features == 1
    part = data.take(np.array([2, 0]))
    assert part.X.names == (data.X.names[0], data.X.names[2])  # rows stay in their order
    assert replace(data, name="x").fingerprint == data.fingerprint


def test_thumbnails(folder: Path) -> None:
    (folder / "a.png").write_bytes(encoded(gradient(100, 50), "PNG"))
    (folder / "b b.JPG").write_bytes(b"no picture")
    images = Images.below(folder)
    small = images.thumbnail(images.names.index("a.png"), 40)
    assert small is not None
    assert small[:2] == b"\xff\xd8"
    assert images.thumbnail(images.names.index("b b.JPG"), 40) is None
