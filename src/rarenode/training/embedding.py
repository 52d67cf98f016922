"""Embeddings of pictures: each is computed once, and kept in memory with the pictures and on disk in a cache.

Threads decode while the encoder computes.
"""

from __future__ import annotations

import hashlib
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rarenode._io.progress import Progress
from rarenode._io.text import counted, shortened
from rarenode.data.dataset import Dataset
from rarenode.data.decoding import Crop, decode, in_turn, to_square
from rarenode.data.images import DIGEST_BYTES, Images
from rarenode.engines import available_threads, limited_threads
from rarenode.errors import DataError, FileFormatError
from rarenode.models.encoder import ROWS_ON_DEVICE, Encoder
from rarenode.training.embedding_cache import EmbeddingCache, cache_folder

AHEAD, BYTES_AHEAD = 4 * ROWS_ON_DEVICE, 1 << 28
"""Pictures that are decoded before the encoder needs them, and the bytes of their pixels."""
MOST_SHOWN = 10
SMALL = 32
"""Pixels on each side of a picture that is decoded only to see whether it can be."""

Pixels = NDArray[np.uint8]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Findings:
    """The outcome of decoding or embedding pictures, other than the embeddings."""

    problems: Mapping[int, str]
    """Row -> why its picture cannot be used."""
    notes: Mapping[int, str]
    """Row -> what is odd about its picture, which is used all the same; of all rows, whether they were known or not."""
    computed: int
    """How many were encoded; the others were known."""
    from_cache: int = 0
    """Of how many the embeddings were on disk."""


def embeddings(images: Images, encoder: Encoder, *, n_jobs: int | None = None) -> NDArray[np.float32]:
    """(rows, width): the embeddings of pictures, known or computed now.

    Raises:
        DataError: a picture cannot be used.
    """
    values, known = images.values(encoder.fingerprint, encoder.width, np.float32)
    if known.all():
        return values
    findings = embed(images, encoder, n_jobs=n_jobs)
    if findings.problems:
        raise DataError(describe_problems(images, findings.problems))
    return images.values(encoder.fingerprint, encoder.width, np.float32)[0]


def pixels(images: Images, crop: Crop, *, n_jobs: int | None = None) -> Pixels:
    """(rows, size * size * 3): the pixels of pictures, known or decoded now.

    Raises:
        DataError: a picture cannot be used.
    """
    key, width = _pixels_key(crop), crop.size * crop.size * 3
    values, known = images.values(key, width, np.uint8)
    if known.all():
        return values
    findings = decode_all(images, crop, n_jobs=n_jobs)
    if findings.problems:
        raise DataError(describe_problems(images, findings.problems))
    return images.values(key, width, np.uint8)[0]


def embed(
    images: Images,
    encoder: Encoder,
    *,
    cache: Path | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Findings:
    """Compute the embeddings that are not known yet, and keep them with the pictures and in the cache.

    Args:
        images: the pictures.
        encoder: what computes them.
        cache: the folder of the cache; None: `cache_folder`.
        n_jobs: threads at most.
        progress: shows how far it is.
    """
    key = encoder.fingerprint
    _, known = images.values(key, encoder.width, np.float32)
    missing = np.flatnonzero(~known)
    if not len(missing):
        return Findings({}, images.notes, 0)
    there = EmbeddingCache((cache_folder() if cache is None else cache) / key[:32], encoder.width)
    display = Progress(quiet=True) if progress is None else progress
    total = len(missing)
    display.start("pictures", total)
    problems: dict[int, str] = {}
    batch: list[tuple[int, bytes, _Decoded]] = []
    computed = done = 0
    threads = available_threads(n_jobs)
    most = encoder.rows_in_parallel(threads)

    def encode() -> None:
        nonlocal computed
        with limited_threads(n_jobs):
            values = encoder.encode(np.stack([each.pixels for _, _, each in batch]), threads)
        images.keep(key, np.array([row for row, _, _ in batch]), values)
        there.add([digest for _, digest, _ in batch], values, [each.note for _, _, each in batch])
        computed += len(batch)
        batch.clear()

    try:
        while len(missing):
            found: list[tuple[int, bytes]] = []
            for row, digest, decoded in _decoded(images, missing, encoder.crop, n_jobs, there.has):
                done += 1
                if isinstance(decoded, str):
                    problems[row] = decoded
                elif decoded is None:
                    found.append((row, digest))
                else:
                    batch.append((row, digest, decoded))
                    images.keep_note(row, decoded.note)
                if len(batch) == most:
                    encode()
                display.update(done, f"{done:,} of {total:,} pictures", "pictures/s")
            if batch:
                encode()
            missing = np.array([row for row, _ in found], dtype=np.int64)
            values, is_there, notes = there.get([digest for _, digest in found])
            images.keep(key, missing[is_there], values[is_there])
            for place, note in notes.items():
                images.keep_note(int(missing[place]), note)
            missing = missing[~is_there]  # in a file that is damaged, and that the cache no longer trusts
            done -= len(missing)
    finally:
        there.flush()
        display.stop()
    return Findings(problems, images.notes, computed, total - len(problems) - computed)


def decode_all(images: Images, crop: Crop, *, n_jobs: int | None = None, progress: Progress | None = None) -> Findings:
    """Decode the pictures that are not decoded yet, and keep their pixels with them."""
    key = _pixels_key(crop)
    _, known = images.values(key, crop.size * crop.size * 3, np.uint8)

    def keep(row: int, pixels: Pixels) -> None:
        images.keep(key, np.array([row]), pixels[None])

    return _decode_each(images, np.flatnonzero(~known), crop, n_jobs, progress, keep)


def _decode_each(
    images: Images,
    missing: NDArray[np.int64],
    crop: Crop,
    n_jobs: int | None,
    progress: Progress | None,
    keep: Callable[[int, Pixels], None],
) -> Findings:
    display = Progress(quiet=True) if progress is None else progress
    display.start("pictures", max(1, len(missing)))
    problems: dict[int, str] = {}
    try:
        for done, (row, _, decoded) in enumerate(_decoded(images, missing, crop, n_jobs, lambda _: False), start=1):
            if isinstance(decoded, str):
                problems[row] = decoded
            elif decoded is not None:
                keep(row, decoded.pixels)
                images.keep_note(row, decoded.note)
            display.update(done, f"{done:,} of {len(missing):,} pictures", "pictures/s")
    finally:
        display.stop()
    return Findings(problems, images.notes, len(missing) - len(problems))


def check_images(images: Images, *, n_jobs: int | None = None, progress: Progress | None = None) -> Findings:
    """Decode all pictures to check which can be used; nothing is kept."""
    return _decode_each(images, np.arange(len(images)), Crop(SMALL, SMALL), n_jobs, progress, lambda row, pixels: None)


def check_headers(
    images: Images, rows: NDArray[np.int64], *, n_jobs: int | None = None, progress: Progress | None = None
) -> dict[int, str]:
    """Row -> why its picture cannot be used, as far as its header tells, without decoding it."""

    def problem(row: int) -> str:
        try:
            images.file(row).check()
        except FileFormatError:  # of the archive that all pictures are in
            raise
        except DataError as error:
            return str(error)
        return ""

    display = Progress(quiet=True) if progress is None else progress
    display.start("checking pictures", max(1, len(rows)))
    problems: dict[int, str] = {}
    try:
        for done, (row, text) in enumerate(_in_threads(problem, rows, n_jobs, AHEAD), start=1):
            if text:
                problems[row] = text
            display.update(done, f"{done:,} of {len(rows):,} pictures checked")
    finally:
        display.stop()
    return problems


def usable(
    parts: Sequence[Dataset],
    encoder: Encoder,
    *,
    train_encoder: bool = False,
    skip: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> list[Dataset]:
    """Of each part the rows whose pictures can be used, with what the encoder needs of them computed.

    The headers of all pictures are checked first, so that a missing one is not found out after hours only. Those
    that turn out to be damaged are named together, when all others are encoded and in the cache.

    Args:
        parts: rows with pictures, such as those to train on and those to test with.
        encoder: the image model.
        train_encoder: whether it will be trained, and needs pixels; otherwise embeddings are computed.
        skip: leave out rows whose pictures cannot be used, with a warning that names them.
        n_jobs: threads at most.
        progress: shows how far it is.

    Raises:
        DataError: pictures cannot be used, and ``skip`` is not set; or none of a part can be used.
    """
    problems: list[dict[int, str]] = []
    for part in parts:
        if train_encoder:
            _, known = part.X.values(_pixels_key(encoder.crop), encoder.input.width, np.uint8)
        else:
            _, known = part.X.values(encoder.fingerprint, encoder.width, np.float32)
        problems.append(check_headers(part.X, np.flatnonzero(~known), n_jobs=n_jobs, progress=progress))
    _require_usable(parts, problems, skip)
    for part, bad in zip(parts, problems, strict=True):
        rows = np.setdiff1d(np.arange(len(part)), list(bad))
        if train_encoder:
            findings = decode_all(part.X[rows], encoder.crop, n_jobs=n_jobs, progress=progress)
        else:
            findings = embed(part.X[rows], encoder, n_jobs=n_jobs, progress=progress)
            if progress is not None and findings.computed + findings.from_cache:
                where = f"{part.name}: " if part.name else ""
                done = counted(findings.computed + findings.from_cache, "picture")
                progress.line(f"{where}encoded {done} ({findings.from_cache:,} from the cache)")
        bad.update((int(rows[row]), text) for row, text in findings.problems.items())
    _require_usable(parts, problems, skip)
    if any(problems):
        warnings.warn(f"left out: {describe_problems(*_together(parts, problems))}", RuntimeWarning, stacklevel=2)
    return [_without(part, bad) for part, bad in zip(parts, problems, strict=True)]


def _require_usable(parts: Sequence[Dataset], problems: Sequence[Mapping[int, str]], skip: bool) -> None:
    """Refuse pictures that cannot be used, of all parts at once, unless they may be left out and others remain."""
    concerned = [(part, bad) for part, bad in zip(parts, problems, strict=True) if bad]
    if not concerned or (skip and all(len(bad) < len(part) for part, bad in concerned)):
        return
    images, together = _together([part for part, _ in concerned], [bad for _, bad in concerned])
    names = ", ".join(dict.fromkeys(part.name for part, _ in concerned if part.name))
    advice = "without them no row would be left" if skip else "or leave them out (--skip-bad-images)"
    described = f"{describe_problems(images, together)}; replace them, {advice}"
    error = DataError(f"{names}: {described}" if names else described)
    error.details = tuple(f"{shortened(images.file(row))}: {text}" for row, text in sorted(together.items()))
    error.rows = len(images)
    raise error


def _together(parts: Sequence[Dataset], problems: Sequence[Mapping[int, str]]) -> tuple[Images, dict[int, str]]:
    """The pictures of all parts, and what is wrong with some."""
    files = [file for part in parts for file in part.X.files]
    firsts = np.cumsum([0, *(len(part) for part in parts)]).tolist()
    together = {first + row: text for first, bad in zip(firsts, problems, strict=False) for row, text in bad.items()}
    return Images(files), together


def _without(part: Dataset, problems: Mapping[int, str]) -> Dataset:
    """The rows without those whose pictures cannot be used, and a note on these and on odd ones."""
    odd = (describe_notes(part.X.notes),) if part.X.notes else ()
    notes = tuple(dict.fromkeys((*part.notes, *odd)))  # rows that are looked at again are not twice as odd
    if not problems:
        return replace(part, notes=notes)
    rows = np.setdiff1d(np.arange(len(part)), list(problems))
    ids = part.ids if part.ids is not None else part.X.names
    return replace(part, ids=ids, notes=(*notes, f"left out: {describe_problems(part.X, problems)}")).take(rows)


def describe_problems(images: Images, problems: Mapping[int, str]) -> str:
    """Which pictures cannot be used, and why."""
    shown = [f"{shortened(images.file(row))}: {text}" for row, text in sorted(problems.items())[:MOST_SHOWN]]
    more = f"; and {len(problems) - MOST_SHOWN:,} more" if len(problems) > MOST_SHOWN else ""
    head = f"{counted(len(problems), 'picture')} of {len(images):,} cannot be used"
    return f"{head} ({'; '.join(shown)}{more})"


def describe_notes(notes: Mapping[int, str]) -> str:
    """What is odd about pictures that are used all the same."""
    counts = Counter(notes.values()).most_common()
    return "unusual pictures: " + "; ".join(f"{number:,} {note}" for note, number in counts)


# --- decoding --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Decoded:
    pixels: Pixels
    note: str


def _decoded(
    images: Images, rows: NDArray[np.int64], crop: Crop, n_jobs: int | None, is_known: Callable[[bytes], bool]
) -> Iterator[tuple[int, bytes, _Decoded | str | None]]:
    """Each row with the digest of its picture, and its pixels; None if it is known already, or what is wrong.

    A picture that fails is tried once more after all others, alone: it may have lacked memory, which not every decoder
    says, and the number of threads must not decide which pictures can be used.
    """

    def work(row: int) -> tuple[bytes, _Decoded | str | None]:
        digest = bytes(DIGEST_BYTES)
        try:
            content = images.file(row).read()
            digest = hashlib.sha256(content).digest()
            if is_known(digest):
                return digest, None
            with in_turn(content, crop.resize):
                decoded = decode(content, crop.resize)
                return digest, _Decoded(to_square(decoded.image, crop).reshape(-1), decoded.note)
        except FileFormatError:  # of the archive that all pictures are in
            raise
        except DataError as error:
            return digest, str(error)
        except MemoryError:
            return digest, "it needs more memory than there is"

    failed: list[int] = []
    for row, (digest, result) in _in_threads(work, rows, n_jobs, min(AHEAD, BYTES_AHEAD // (3 * crop.size**2))):
        if isinstance(result, str):
            failed.append(row)
            continue
        images.keep_digest(row, digest)
        yield row, digest, result
    for row in failed:
        digest, result = work(row)
        images.keep_digest(row, digest)
        yield row, digest, result


def _in_threads(
    work: Callable[[int], Result], rows: NDArray[np.int64], n_jobs: int | None, ahead: int
) -> Iterator[tuple[int, Result]]:
    """Each row with what threads make of it, in order, at most about so many rows ahead of the one that is needed."""
    waiting: deque[tuple[int, Future[Result]]] = deque()
    left = iter(rows.tolist())
    threads = available_threads(n_jobs)
    ahead = max(2 * threads, ahead)
    pool = ThreadPoolExecutor(threads)
    try:
        while True:
            while len(waiting) < ahead and (row := next(left, None)) is not None:
                waiting.append((row, pool.submit(work, row)))
            if not waiting:
                return
            row, future = waiting.popleft()
            yield row, future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _pixels_key(crop: Crop) -> str:
    return f"pixels {crop.resize} {crop.size}"
