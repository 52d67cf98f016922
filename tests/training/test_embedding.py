"""Embeddings: each computed once and kept, whatever happens to a process, a picture or the cache on disk."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from platformdirs import user_cache_path

from rarenode import Dataset, Hierarchy
from rarenode.data import decoding
from rarenode.data.decoding import Crop, decode, to_square
from rarenode.data.images import ImageFile, Images
from rarenode.data.table_options import TableOptions
from rarenode.errors import DataError
from rarenode.models.encoder import ROWS_TOGETHER, Encoder
from rarenode.training import embedding, embedding_cache
from rarenode.training.embedding import (
    check_images,
    decode_all,
    describe_problems,
    embed,
    embeddings,
    pixels,
    usable,
)
from rarenode.training.embedding_cache import cache_folder
from tests.data.picture_files import encoded, gradient, sixteen_bits
from tests.encoders import cache, plain_encoder

__all__ = ["cache"]
ROWS = 3 * ROWS_TOGETHER + 2
TREE = Hierarchy.from_paths(["a > b"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    below = tmp_path / "photos"
    below.mkdir()
    rng = np.random.default_rng(0)
    for row in range(ROWS):
        picture = Image.fromarray(rng.integers(0, 256, (9, 12, 3), dtype=np.uint8))
        (below / f"{row:02d}.png").write_bytes(encoded(picture, "PNG"))
    return below


class Counting:
    """Counts the pictures that an encoder computes; may stop it after some."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, most: int | None = None) -> None:
        self.rows, self.most = 0, most
        compute = Encoder.encode

        def counted(encoder: Encoder, pixels: NDArray[np.uint8], threads: int = 1) -> NDArray[np.float32]:
            if self.most is not None and self.rows + len(pixels) > self.most:
                raise KeyboardInterrupt
            self.rows += len(pixels)
            return compute(encoder, pixels, threads)

        monkeypatch.setattr(Encoder, "encode", counted)


@pytest.fixture
def encoder() -> Encoder:
    made = plain_encoder()
    assert made.fingerprint  # it looks at a picture of its own for that, which is not to be counted
    return made


def expected(folder: Path, encoder: Encoder) -> NDArray[np.float32]:
    """One after the other, without any of the machinery."""
    squares = [to_square(decode(path.read_bytes()).image, encoder.crop) for path in sorted(folder.iterdir())]
    return encoder.encode(np.stack([square.reshape(-1) for square in squares]))


def files(cache: Path) -> list[Path]:
    return sorted(cache.rglob("*.safetensors"))


# --- what is computed ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_embeddings_are_those_of_each_picture_alone(folder: Path, encoder: Encoder, n_jobs: int) -> None:
    right = expected(folder, encoder)
    found = embeddings(Images.below(folder), encoder, n_jobs=n_jobs)
    assert found.dtype == np.float32
    assert (found == right).all()
    order = np.random.default_rng(1).permutation(ROWS)
    assert (embeddings(Images.below(folder)[order], encoder) == right[order]).all()
    assert (embeddings(Images.below(folder)[:1], encoder) == right[:1]).all()


def test_nothing_is_computed_twice(
    folder: Path, cache: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, counting = expected(folder, encoder), Counting(monkeypatch)
    images = Images.below(folder)
    assert embed(images[:10], encoder).computed == 10
    assert counting.rows == 10
    assert (embeddings(images, encoder) == right).all()  # the first ten are known in memory
    assert counting.rows == ROWS
    embeddings(images[::2], encoder)
    assert counting.rows == ROWS
    again = Images.below(folder)
    assert embed(again, encoder).computed == 0  # and all in the cache
    assert (embeddings(again, encoder) == right).all()
    assert counting.rows == ROWS
    assert files(cache)


def test_the_cache_knows_pictures_by_their_content(
    folder: Path, cache: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    right = expected(folder, encoder)
    embed(Images.below(folder), encoder)
    counting = Counting(monkeypatch)
    moved = tmp_path / "moved"
    shutil.copytree(folder, moved)
    (moved / "00.png").rename(moved / "zz.png")
    assert (embeddings(Images.below(moved), encoder)[-1] == right[0]).all()
    assert counting.rows == 0
    (moved / "01.png").write_bytes(encoded(gradient(), "PNG"))  # another picture under the same name
    found = embeddings(Images.below(moved), encoder)
    assert counting.rows == 1
    assert not (found[0] == right[1]).all()


@pytest.mark.usefixtures("cache")
def test_other_encoders_and_crops_have_other_embeddings(
    folder: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [encoder, plain_encoder(seed=1), plain_encoder(resize=11), plain_encoder(mean=(0.0, 0.0, 0.0))]
    right = [expected(folder, each) for each in others]
    assert len({each.fingerprint for each in others}) == len(others)
    counting = Counting(monkeypatch)
    images = Images.below(folder)
    for each, values in zip(others, right, strict=True):
        assert (embeddings(images, each) == values).all()
        assert (embeddings(Images.below(folder), each) == values).all()
    assert counting.rows == len(others) * ROWS
    assert len({values.tobytes() for values in right}) == len(others)


# --- what may happen -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [ROWS_TOGETHER, 2 * ROWS_TOGETHER])
def test_what_is_done_before_an_interrupt_is_kept(
    folder: Path, cache: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    right = expected(folder, encoder)
    counting = Counting(monkeypatch, most=after)
    with pytest.raises(KeyboardInterrupt):
        embeddings(Images.below(folder), encoder)
    assert files(cache)
    counting.rows, counting.most = 0, None
    assert (embeddings(Images.below(folder), encoder) == right).all()
    assert counting.rows == ROWS - after


def flip(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :]


DAMAGES: list[Any] = [
    pytest.param(lambda content: content[: len(content) // 2], id="cut"),
    pytest.param(lambda _: b"", id="empty"),
    pytest.param(lambda _: b"\xff" * 100, id="noise"),
    pytest.param(lambda content: flip(content, len(content) - 3), id="last value"),
    pytest.param(lambda content: flip(content, len(content) // 2), id="middle"),
    pytest.param(lambda content: flip(content, 20), id="header"),
    pytest.param(lambda content: content.replace(b'width\\": 5', b'width\\": 6'), id="note"),
]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("is_removable", [True, False])
def test_a_damaged_file_of_the_cache_is_computed_again(
    folder: Path,
    cache: Path,
    encoder: Encoder,
    damage: Callable[[bytes], bytes],
    is_removable: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = expected(folder, encoder)
    embed(Images.below(folder)[:10], encoder)
    embed(Images.below(folder)[10:], encoder)
    assert len(files(cache)) == 2
    damaged = files(cache)[0]
    before = damaged.read_bytes()
    damaged.write_bytes(damage(before))
    assert damaged.read_bytes() != before
    if not is_removable:

        def refuse(path: Path, missing_ok: bool = False) -> None:
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr(Path, "unlink", refuse)
    for _ in range(2):
        assert (embeddings(Images.below(folder), encoder) == right).all()


def test_a_file_that_vanishes_is_computed_again(
    folder: Path, cache: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when someone empties the cache while it is used."""
    right = expected(folder, encoder)
    embed(Images.below(folder), encoder)
    has = embedding_cache.EmbeddingCache.has

    def has_and_remove(there: embedding_cache.EmbeddingCache, digest: bytes) -> bool:
        found = has(there, digest)
        shutil.rmtree(cache, ignore_errors=True)
        return found

    monkeypatch.setattr(embedding_cache.EmbeddingCache, "has", has_and_remove)
    assert (embeddings(Images.below(folder), encoder) == right).all()


def test_a_folder_that_cannot_be_written_costs_one_warning(
    folder: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("RARENODE_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(embedding_cache, "ROWS_IN_A_FILE", ROWS_TOGETHER)  # several files
    right = expected(folder, encoder)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert (embeddings(Images.below(folder), encoder) == right).all()
    assert len(caught) == 1
    assert "RARENODE_CACHE" in str(caught[0].message)
    assert str(tmp_path / "file" / "cache") in str(caught[0].message)


def test_a_name_that_no_folder_can_have(folder: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RARENODE_CACHE", "/x" * 20 + "x" * 5000)
    with pytest.warns(RuntimeWarning, match="cannot be kept"):
        assert (embeddings(Images.below(folder), encoder) == expected(folder, encoder)).all()


FILLING = """
import sys
import numpy as np
from tests.encoders import plain_encoder
from rarenode.data.images import ImageFile, Images
from rarenode.training import embedding, embedding_cache

embedding_cache.ROWS_IN_A_FILE = 8
print("ready", flush=True)
sys.stdin.readline()
images = Images.below(sys.argv[1])
order = np.arange(len(images))[:: int(sys.argv[2])]
np.save(sys.argv[3], embedding.embeddings(images[order], plain_encoder())[::int(sys.argv[2])])
"""


def test_two_processes_fill_one_cache(folder: Path, cache: Path, encoder: Encoder, tmp_path: Path) -> None:
    right = expected(folder, encoder)
    results = [tmp_path / f"{number}.npy" for number in range(2)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", FILLING, str(folder), step, str(result)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        for step, result in zip(("1", "-1"), results, strict=True)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.communicate("go\n", timeout=120)
        assert process.returncode == 0
    for result in results:
        assert (np.load(result) == right).all()
    assert embed(Images.below(folder), encoder).computed == 0
    assert not [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".safetensors"]


KILLED = """
import sys, time
from pathlib import Path
from rarenode._io.files import replacing

with replacing(Path(sys.argv[1]) / "x.safetensors") as (part,):
    part.write_text("half")
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there, files are not locked")
def test_what_a_killed_process_left_is_removed(folder: Path, cache: Path, encoder: Encoder) -> None:
    """Not what another one is writing."""
    embed(Images.below(folder), encoder)
    place = files(cache)[0].parent

    def parts() -> list[Path]:
        return list(place.glob(".*.part"))

    with subprocess.Popen([sys.executable, "-c", KILLED, place], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (place / ".0a.1.part").write_text("older")
        embed(Images.below(folder), encoder)
        left = parts()
        process.kill()
    assert [part.name[:3] for part in left] == [".x."]
    embed(Images.below(folder), encoder)
    assert parts() == []


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert user_cache_path("rarenode") not in cache_folder().parents  # tests have another
    monkeypatch.setenv("RARENODE_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.setenv("RARENODE_CACHE", "~/there")
    assert cache_folder() == Path.home() / "there"
    monkeypatch.delenv("RARENODE_CACHE")
    assert cache_folder().is_relative_to(user_cache_path("rarenode", appauthor=False))


# --- pixels, and pictures that cannot be used ------------------------------------------------------------------------


def test_pixels(folder: Path) -> None:
    crop = Crop(9, 8)
    images = Images.below(folder)
    right = [to_square(decode(file.read()).image, crop).reshape(-1) for file in images.files]
    found = pixels(images, crop, n_jobs=2)
    assert found.dtype == np.uint8
    assert (found == np.stack(right)).all()
    assert decode_all(images, crop).computed == 0
    assert pixels(images[3:5], Crop(8, 8)).shape == (2, 8 * 8 * 3)


def test_few_large_pictures_are_decoded_ahead(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model file may ask for squares of 50 megabytes each."""
    read: list[str] = []
    plain = ImageFile.read

    def read_and_note(file: ImageFile) -> bytes:
        read.append(file.name)
        return plain(file)

    monkeypatch.setattr(ImageFile, "read", read_and_note)
    monkeypatch.setattr(embedding, "BYTES_AHEAD", 7 * 3 * 64**2)
    crop = Crop(64, 64)
    for row, _ in enumerate(embedding._decoded(Images.below(folder), np.arange(ROWS), crop, 1, lambda _: False)):
        assert len(read) <= row + 8
    assert len(read) == ROWS


def spoil(folder: Path) -> None:
    (folder / "03.png").write_bytes(b"no picture")
    (folder / "05.png").unlink()
    (folder / "07.png").write_bytes((folder / "07.png").read_bytes()[:-60])
    (folder / "08.png").write_bytes(encoded(Image.new("RGB", (4, 4)), "PNG"))


def rows_of(folder: Path, names: list[str], **reading: Any) -> Dataset:
    images = Images.from_paths([folder / name for name in names])
    data = Dataset.from_arrays(images, np.ones((len(names), 2), dtype=np.bool_), TREE)
    return replace(data, name="survey", reading=TableOptions(**reading))


def names_in(error: DataError) -> list[str]:
    return [detail.rpartition("/")[2].split(":")[0] for detail in error.details]


@pytest.mark.parametrize("train_encoder", [False, True])
def test_bad_pictures_are_all_named_at_once(folder: Path, cache: Path, encoder: Encoder, train_encoder: bool) -> None:
    names = sorted(path.name for path in folder.iterdir())
    spoil(folder)
    train, test = parts = rows_of(folder, names[:4]), rows_of(folder, names[4:])
    (odd,) = usable([rows_of(folder, ["08.png", "01.png"])], encoder, train_encoder=train_encoder)
    assert odd.notes == ("unusual pictures: 1 of one colour",)
    before = files(cache)
    with pytest.raises(DataError) as caught:
        usable(parts, encoder, train_encoder=train_encoder)
    message = str(caught.value)
    assert message.startswith(f"survey: 2 pictures of {ROWS} cannot be used")
    assert all(part in message for part in ("03.png: it is not a picture", "05.png: there is no such file"))
    assert "--skip-bad-images" in message
    assert names_in(caught.value) == ["03.png", "05.png"]
    assert caught.value.rows == ROWS
    assert files(cache) == before  # nothing was encoded
    with pytest.warns(RuntimeWarning, match=r"left out: 3 pictures of 26.*03\.png.*05\.png.*07\.png") as warned:
        kept = usable(parts, encoder, train_encoder=train_encoder, skip=True)
    assert len(warned) == 1
    assert [len(part) for part in kept] == [3, ROWS - 6]
    good = [name for name in names if name not in ("03.png", "05.png", "07.png")]
    assert (*kept[0].X.names, *kept[1].X.names) == tuple(str(folder / name) for name in good)
    for part, before_ in zip(kept, (train, test), strict=True):
        assert part.ids == part.X.names
        assert any("left out" in note for note in part.notes)
        assert before_.notes == ()


@pytest.mark.usefixtures("cache")
def test_damage_in_all_parts_is_named_when_the_rest_is_encoded(
    folder: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = sorted(path.name for path in folder.iterdir())
    for name in ("01.png", "20.png"):
        (folder / name).write_bytes((folder / name).read_bytes()[:-60])
    parts = [replace(rows_of(folder, part), name=name) for part, name in ((names[:9], "train"), (names[9:], "test"))]
    counting = Counting(monkeypatch)
    with pytest.raises(DataError, match=f"^train, test: 2 pictures of {ROWS} cannot be used") as caught:
        usable(parts, encoder)
    assert names_in(caught.value) == ["01.png", "20.png"]
    assert counting.rows == ROWS - 2
    with pytest.warns(RuntimeWarning, match="left out: 2 pictures"):
        usable([rows_of(folder, names)], encoder, skip=True)
    assert counting.rows == ROWS - 2


@pytest.mark.parametrize("is_zipped", [False, True])
def test_a_header_tells_much_and_is_all_that_is_read(folder: Path, is_zipped: bool) -> None:
    spoil(folder)
    (folder / "02.png").write_bytes(b"")
    (folder / "04.png").unlink()
    (folder / "04.png").mkdir()
    root = Path(shutil.make_archive(str(folder), "zip", folder)) if is_zipped else folder
    images = Images(ImageFile(root, f"{row:02d}.png") for row in range(10))
    found = embedding.check_headers(images, np.arange(1, 10))
    assert list(found) == [2, 3, 4, 5]
    assert found[2] == "the file is empty"
    assert found[3].startswith("it is not a picture of a known format")
    assert ("contains no such file" if is_zipped else "no ordinary file") in found[4]
    assert "no such file" in found[5]


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("train_encoder", [False, True])
def test_notes_do_not_depend_on_what_is_known_already(folder: Path, encoder: Encoder, train_encoder: bool) -> None:
    spoil(folder)
    names = ["08.png", "01.png", "09.png", "02.png"]
    (folder / "09.png").write_bytes(sixteen_bits(np.arange(0, 3600, 300, dtype=np.uint16).reshape(3, 4), "PNG"))
    note = "unusual pictures: 1 of one colour; 1 16 bit with values of 12 bits"
    data = rows_of(folder, names)
    (first,) = usable([data], encoder, train_encoder=train_encoder)
    assert first.notes == (note,)
    assert usable([data], encoder, train_encoder=train_encoder)[0].notes == (note,)  # known in memory
    assert usable([first], encoder, train_encoder=train_encoder)[0].notes == (note,)
    assert usable([data.take(np.array([1, 2]))], encoder, train_encoder=train_encoder)[0].notes == (
        "unusual pictures: 1 16 bit with values of 12 bits",
    )
    anew = rows_of(folder, names[::-1])
    assert usable([anew], encoder, train_encoder=train_encoder)[0].notes == (  # known on disk
        "unusual pictures: 1 16 bit with values of 12 bits; 1 of one colour",
    )
    assert embed(rows_of(folder, names).X, encoder).notes == {0: "of one colour", 2: "16 bit with values of 12 bits"}


@pytest.mark.usefixtures("cache")
def test_if_none_can_be_used_it_is_an_error(folder: Path, encoder: Encoder) -> None:
    with pytest.raises(DataError, match="1 picture of 1 cannot be used"):
        usable([rows_of(folder, ["gone.png"])], encoder, skip=True)
    with pytest.raises(DataError, match="1 picture of 2 cannot be used"):
        embeddings(rows_of(folder, ["gone.png", "01.png"]).X, encoder)
    with pytest.raises(DataError, match="1 picture of 2 cannot be used"):
        pixels(rows_of(folder, ["gone.png", "01.png"]).X, encoder.crop)


def test_pictures_are_checked_without_an_encoder(folder: Path) -> None:
    images = Images.below(folder)
    spoil(folder)
    found = check_images(images)
    assert sorted(found.problems) == [3, 5, 7]
    assert found.notes == {8: "of one colour"}
    text = describe_problems(images, dict.fromkeys(range(15), "x"))
    assert "and 5 more" in text
    assert "\n" not in describe_problems(Images.from_paths(["a\nb.png"]), {0: "x"})


# --- memory ----------------------------------------------------------------------------------------------------------


class Decoding:
    """Takes some time to decode, and notes which pictures are decoded at the same time, by their widths."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now: list[int] = []
        self.together: list[list[int]] = []
        self.most: int | None = None
        self.error: Exception = MemoryError()
        monkeypatch.setattr(embedding, "decode", self.decode)

    def decode(self, content: bytes, near: int) -> decoding.Decoded:
        found = decode(content, near)
        self.now.append(found.image.width)
        self.together.append(list(self.now))
        time.sleep(0.01)
        many = self.most is not None and sum(self.now) > self.most
        self.now.remove(found.image.width)
        if many:
            raise self.error
        return found


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Every fourth picture is 10 times as wide as the others."""
    for row in range(24):
        (tmp_path / f"{row:02d}.png").write_bytes(encoded(Image.new("RGB", (10 if row % 4 else 100, 10), "red"), "PNG"))
    return tmp_path


def test_large_pictures_are_decoded_alone(mixed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "BYTES_AT_ONCE", 3 * decoding.BYTES_OF_A_PIXEL * 10 * 10)
    monkeypatch.setattr(embedding, "available_threads", lambda n_jobs: 8)
    seen = Decoding(monkeypatch)
    assert not check_images(Images.below(mixed)).problems
    assert all(len(widths) <= 3 for widths in seen.together)
    assert all(widths == [100] for widths in seen.together if 100 in widths)
    assert max(map(len, seen.together)) > 1


def test_the_number_of_threads_does_not_decide_which_pictures_are_used(
    mixed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where memory runs out, a picture is decoded once more alone. Decoders may say that it is damaged."""
    seen, images = Decoding(monkeypatch), Images.below(mixed)
    memory, damaged = "it needs more memory than there is", "it is damaged (could not create decoder object)"
    for seen.error, problem in ((MemoryError(), memory), (DataError(damaged), damaged)):
        for seen.most, problems in ((100, {}), (99, dict.fromkeys(range(0, 24, 4), problem))):
            for threads in (1, 8):
                monkeypatch.setattr(embedding, "available_threads", lambda n_jobs, threads=threads: threads)
                assert check_images(images).problems == problems


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("name", ["n" * 12_000, "a\x1b[2J", "a\nb", "a\u202eb", "a\tb"])
def test_pictures_with_odd_names(tmp_path: Path, encoder: Encoder, name: str) -> None:
    """They are used as others are, and a message about them stays one line that can be read."""
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr(f"{name}.png", encoded(gradient(), "PNG"))
        opened.writestr(f"{name}.jpg", b"no picture")
    images = Images.below(archive)
    findings = embed(images, encoder)
    assert (findings.computed, list(findings.problems)) == (1, [0])
    with pytest.raises(DataError) as caught:
        usable([Dataset.from_images(images, np.ones((2, 2)), TREE)], encoder)
    for message in (str(caught.value), *caught.value.details):
        assert message.isprintable()
        assert len(message) < 600
        assert ".jpg: it is not a picture" in message
