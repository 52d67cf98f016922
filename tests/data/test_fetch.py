from __future__ import annotations

import hashlib
import multiprocessing
import os
import time
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from io import BytesIO
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request

import pytest

from rarenode.data import download
from rarenode.data.catalogue import CatalogueEntry, CatalogueFile
from rarenode.data.download import Patience, checked_base
from rarenode.data.fetch import (
    FetchedFile,
    FetchStatus,
    FileState,
    Verified,
    fetch_dataset,
    fetch_entry,
    inspect_file,
    missing_files,
)
from rarenode.errors import ArgumentError, DownloadError, MissingFileError, UnknownDatasetError, VerificationError
from tests.data.serving import (
    SMALL_ARFF,
    Answer,
    Server,
    endless,
    failing,
    honest,
    other_content,
    other_length,
    partial_content,
    redirecting,
    running_server,
    small_entry,
    small_file,
    stalled,
    truncated,
    without_length,
    without_ranges,
)

BODY = bytes(range(256)) * 1000
SOON = Patience(tries=3, pause=0.0, timeout=10.0)


@pytest.fixture
def file(server: Server) -> CatalogueFile:
    file = small_file(BODY)
    server.content[quote(str(file.path))] = BODY
    return file


@pytest.fixture
def entry(server: Server, file: CatalogueFile) -> CatalogueEntry:
    return small_entry(server.address, file)


@pytest.fixture
def place(tmp_path: Path, file: CatalogueFile) -> Path:
    return tmp_path / file.path


@pytest.fixture
def part(place: Path) -> Path:
    place.parent.mkdir(parents=True)
    return place.with_name(place.name + ".part")


@pytest.fixture
def unknown(server: Server) -> CatalogueEntry:
    """A dataset whose file has neither a known size nor a known checksum."""
    file = small_file(SMALL_ARFF, size=None, sha256=None)
    server.content[quote(str(file.path))] = SMALL_ARFF
    return small_entry(server.address, file)


class TestPlainFetch:
    def test_file_appears_with_its_content(self, entry: CatalogueEntry, place: Path, tmp_path: Path) -> None:
        fetched = fetch_entry(entry, tmp_path, patience=SOON)
        assert fetched == (FetchedFile(place, len(BODY), FetchStatus.FETCHED, Verified.CHECKSUM),)
        assert place.read_bytes() == BODY
        assert list(place.parent.iterdir()) == [place]

    def test_progress_rises_to_the_size(self, entry: CatalogueEntry, file: CatalogueFile, tmp_path: Path) -> None:
        told: list[tuple[CatalogueFile, int, int]] = []
        fetch_entry(entry, tmp_path, progress=lambda *news: told.append(news), patience=SOON)
        assert {(of, total) for of, _, total in told} == {(file, len(BODY))}
        steps = [done for _, done, _ in told]
        assert steps == sorted(steps)
        assert (steps[0], steps[-1]) == (0, len(BODY))

    def test_mirror_replaces_the_source(self, server: Server, entry: CatalogueEntry, tmp_path: Path) -> None:
        path = quote(str(entry.files[0].path))
        server.content = {f"deep/mirror/{path}": BODY}
        fetch_entry(entry, tmp_path, mirror=f"{server.address}deep/mirror", patience=SOON)
        assert server.paths == [f"/deep/mirror/{path}"]

    def test_several_files_come_in_the_order_of_the_entry(self, server: Server, tmp_path: Path) -> None:
        files = small_file(b"train"), small_file(b"test", "test")
        server.content = {quote(str(file.path)): body for file, body in zip(files, (b"train", b"test"), strict=True)}
        fetched = fetch_entry(small_entry(server.address, *files), tmp_path, patience=SOON)
        assert [file.path.read_bytes() for file in fetched] == [b"train", b"test"]

    def test_redirection_is_followed(self, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path) -> None:
        server.content["elsewhere"] = BODY
        server.script.append(redirecting("/elsewhere"))
        fetch_entry(entry, tmp_path, patience=SOON)
        assert place.read_bytes() == BODY

    def test_unknown_name(self, tmp_path: Path) -> None:
        with pytest.raises(UnknownDatasetError, match="Did you mean 'enron'"):
            fetch_dataset("enrom", tmp_path)

    def test_two_at_once_download_once(
        self, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path
    ) -> None:
        with ThreadPoolExecutor(4) as pool:
            runs = [pool.submit(fetch_entry, entry, tmp_path, patience=SOON) for _ in range(4)]
            statuses = [run.result()[0].status for run in runs]
        assert sorted(statuses) == sorted([FetchStatus.FETCHED] + [FetchStatus.PRESENT] * 3)
        assert server.bytes_served == len(BODY)
        assert place.read_bytes() == BODY


class TestFileAlreadyThere:
    def test_right_one_is_left_alone(self, server: Server, entry: CatalogueEntry, part: Path, place: Path) -> None:
        place.write_bytes(BODY)
        before = place.stat().st_mtime_ns
        (fetched,) = fetch_entry(entry, place.parents[1], patience=SOON)
        assert fetched == FetchedFile(place, len(BODY), FetchStatus.PRESENT, Verified.CHECKSUM)
        assert place.stat().st_mtime_ns == before
        assert server.paths == []

    def test_wrong_one_is_never_overwritten(
        self, server: Server, entry: CatalogueEntry, part: Path, place: Path
    ) -> None:
        place.write_bytes(b"mine")
        with pytest.raises(VerificationError, match=r"already there.*not touched: move it away or delete it") as caught:
            fetch_entry(entry, place.parents[1], patience=SOON)
        assert str(place) in str(caught.value)
        assert hashlib.sha256(b"mine").hexdigest() in str(caught.value)
        assert str(entry.files[0].sha256) in str(caught.value)
        assert place.read_bytes() == b"mine"
        assert server.paths == []

    def test_folder_in_its_place(self, entry: CatalogueEntry, place: Path, tmp_path: Path) -> None:
        place.mkdir(parents=True)
        with pytest.raises(DownloadError, match="Is a directory"):
            fetch_entry(entry, tmp_path, patience=SOON)

    def test_file_in_place_of_a_folder(self, entry: CatalogueEntry, place: Path, tmp_path: Path) -> None:
        place.parent.write_bytes(b"")
        with pytest.raises(DownloadError):
            fetch_entry(entry, tmp_path, patience=SOON)

    def test_states(self, entry: CatalogueEntry, file: CatalogueFile, part: Path, place: Path, tmp_path: Path) -> None:
        assert inspect_file(file, tmp_path) is FileState.ABSENT
        assert missing_files(entry, tmp_path) == (file,)
        place.write_bytes(b"mine")
        assert inspect_file(file, tmp_path) is FileState.WRONG
        place.write_bytes(BODY)
        assert inspect_file(file, tmp_path) is FileState.RIGHT
        assert inspect_file(small_file(BODY, sha256=None), tmp_path) is FileState.UNVERIFIED
        assert missing_files(entry, tmp_path) == ()


class TestResume:
    def test_only_the_rest_is_asked_for(self, server: Server, entry: CatalogueEntry, part: Path, place: Path) -> None:
        part.write_bytes(BODY[:200_000])
        (fetched,) = fetch_entry(entry, place.parents[1], patience=SOON)
        assert fetched.status is FetchStatus.RESUMED
        assert server.ranges == ["bytes=200000-"]
        assert server.bytes_served == len(BODY) - 200_000
        assert place.read_bytes() == BODY

    def test_complete_part_needs_no_request(
        self, server: Server, entry: CatalogueEntry, part: Path, place: Path
    ) -> None:
        part.write_bytes(BODY)
        fetch_entry(entry, place.parents[1], patience=SOON)
        assert server.paths == []
        assert place.read_bytes() == BODY

    def test_truncated_answers_are_continued(
        self, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path
    ) -> None:
        server.script.extend([truncated(100_000), truncated(50_000)])
        (fetched,) = fetch_entry(entry, tmp_path, patience=SOON)
        assert fetched.status is FetchStatus.RESUMED
        assert server.ranges == [None, "bytes=100000-", "bytes=150000-"]
        assert server.bytes_served == len(BODY)
        assert place.read_bytes() == BODY

    def test_server_that_ignores_the_range(
        self, server: Server, entry: CatalogueEntry, part: Path, place: Path
    ) -> None:
        part.write_bytes(BODY[:1000])
        server.script.append(without_ranges)
        (fetched,) = fetch_entry(entry, place.parents[1], patience=SOON)
        assert fetched.status is FetchStatus.FETCHED
        assert place.read_bytes() == BODY

    @pytest.mark.parametrize(
        "refusal",
        [failing(416), partial_content("bytes 7-9/256000"), partial_content("nonsense")],
        ids=["416", "other place", "nonsense"],
    )
    def test_server_that_cannot_continue(
        self, refusal: Answer, server: Server, entry: CatalogueEntry, part: Path, place: Path
    ) -> None:
        part.write_bytes(BODY[:1000])
        server.script.append(refusal)
        (fetched,) = fetch_entry(entry, place.parents[1], patience=SOON)
        assert server.ranges == ["bytes=1000-", None]
        assert fetched.status is FetchStatus.FETCHED
        assert place.read_bytes() == BODY

    def test_part_that_is_too_long_is_dropped(
        self, server: Server, entry: CatalogueEntry, part: Path, place: Path
    ) -> None:
        part.write_bytes(BODY + b"more")
        fetch_entry(entry, place.parents[1], patience=SOON)
        assert server.ranges == [None]
        assert place.read_bytes() == BODY

    def test_wrong_part_is_replaced_by_a_fresh_copy(
        self, server: Server, entry: CatalogueEntry, part: Path, place: Path
    ) -> None:
        part.write_bytes(b"x" * 1000)
        (fetched,) = fetch_entry(entry, place.parents[1], patience=SOON)
        assert server.ranges == ["bytes=1000-", None]
        assert fetched.status is FetchStatus.FETCHED
        assert place.read_bytes() == BODY


class TestFailingServer:
    def test_server_errors_are_tried_again(
        self, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path
    ) -> None:
        server.script.extend([failing(500), failing(429)])
        fetch_entry(entry, tmp_path, patience=SOON)
        assert len(server.paths) == 3
        assert place.read_bytes() == BODY

    def test_it_gives_up_and_keeps_what_arrived(
        self, server: Server, entry: CatalogueEntry, place: Path, part: Path
    ) -> None:
        server.script.extend([truncated(100), failing(500), failing(502)])
        with pytest.raises(DownloadError, match=r"gave up after 3 tries.*HTTP 502 Bad Gateway; .* kept") as caught:
            fetch_entry(entry, place.parents[1], patience=SOON)
        assert server.address in str(caught.value)
        assert "words of the server" not in str(caught.value)
        assert not place.exists()
        assert part.read_bytes() == BODY[:100]

    @pytest.mark.parametrize("status", [400, 403, 404, 410])
    def test_refusals_fail_at_once(
        self, status: int, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path
    ) -> None:
        server.script.append(failing(status))
        with pytest.raises(DownloadError, match=f"{server.address}.*HTTP {status}"):
            fetch_entry(entry, tmp_path, patience=SOON)
        assert len(server.paths) == 1
        assert not place.exists()

    def test_nobody_listens(self, entry: CatalogueEntry, place: Path, tmp_path: Path) -> None:
        with running_server() as gone:
            address = gone.address
        with pytest.raises(DownloadError, match=r"gave up after 3 tries.*connection failed"):
            fetch_entry(entry, tmp_path, mirror=address, patience=SOON)

    def test_silence_is_a_broken_connection(
        self, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path
    ) -> None:
        server.script.append(stalled(1000))
        (fetched,) = fetch_entry(entry, tmp_path, patience=Patience(tries=2, pause=0.0, timeout=0.3))
        assert fetched.status is FetchStatus.RESUMED
        assert place.read_bytes() == BODY

    def test_pauses_double(
        self, server: Server, entry: CatalogueEntry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pauses: list[float] = []
        monkeypatch.setattr(time, "sleep", pauses.append)
        server.script.extend([failing(500)] * 4)
        fetch_entry(entry, tmp_path, patience=Patience(tries=5, pause=0.5))
        assert pauses == [0.5, 1.0, 2.0, 4.0]


class TestLyingServer:
    def test_other_content(self, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path) -> None:
        server.script.append(other_content)
        with pytest.raises(VerificationError, match="thrown away") as caught:
            fetch_entry(entry, tmp_path, patience=SOON)
        got = hashlib.sha256(bytes(byte ^ 1 for byte in BODY)).hexdigest()
        for told in (str(place), server.address, got, str(entry.files[0].sha256)):
            assert told in str(caught.value)
        assert list(place.parent.iterdir()) == []
        assert len(server.paths) == 1

    def test_other_content_after_a_resume_is_tried_once_more(
        self, server: Server, entry: CatalogueEntry, place: Path, part: Path
    ) -> None:
        part.write_bytes(b"x" * 1000)
        server.script.extend([honest, other_content])
        with pytest.raises(VerificationError):
            fetch_entry(entry, place.parents[1], patience=SOON)
        assert server.ranges == ["bytes=1000-", None]
        assert list(place.parent.iterdir()) == []

    @pytest.mark.parametrize("length", [10, len(BODY) - 1, len(BODY) + 1, 10**15])
    def test_other_length(
        self, length: int, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path
    ) -> None:
        server.script.append(other_length(length))
        with pytest.raises(VerificationError, match=f"announces {length} bytes, but the file must have {len(BODY)}"):
            fetch_entry(entry, tmp_path, patience=SOON)
        assert list(place.parent.iterdir()) == []
        assert len(server.paths) == 1

    def test_no_length_is_no_lie(self, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path) -> None:
        server.script.append(without_length)
        fetch_entry(entry, tmp_path, patience=SOON)
        assert place.read_bytes() == BODY

    def test_nothing_beyond_the_size_is_read(
        self, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path
    ) -> None:
        server.script.append(endless)
        fetch_entry(entry, tmp_path, patience=SOON)
        assert place.read_bytes() == BODY
        assert server.bytes_served < 200 * len(BODY)  # what the sockets buffer, not what there was

    def test_absurd_headers(self, server: Server, entry: CatalogueEntry, part: Path, place: Path) -> None:
        part.write_bytes(BODY[:1000])
        server.script.append(partial_content(f"bytes 1000-2000/{'9' * 5000}"))
        fetch_entry(entry, place.parents[1], patience=SOON)
        assert place.read_bytes() == BODY

    @pytest.mark.parametrize("target", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:,x"])
    def test_redirection_away_from_the_web(
        self, target: str, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path
    ) -> None:
        server.script.extend([redirecting(target)] * 3)
        with pytest.raises(DownloadError):
            fetch_entry(entry, tmp_path, patience=SOON)
        assert not place.exists()

    def test_redirection_away_from_encryption(self) -> None:
        redirects = download._NoDowngrade()
        question = Request("https://host/file")

        def follow(target: str) -> Request | None:
            return redirects.redirect_request(question, BytesIO(), 302, "Found", Message(), target)

        assert follow("http://host/file") is None
        assert follow("https://other/file") is not None


class TestAtomicity:
    def test_name_appears_only_after_the_last_byte(
        self, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path
    ) -> None:
        server.script.append(truncated(70_000))
        seen: list[bool] = []
        fetch_entry(entry, tmp_path, progress=lambda *_: seen.append(place.exists()), patience=SOON)
        assert len(seen) > 3
        assert not any(seen)

    def test_order_of_the_last_steps(
        self, entry: CatalogueEntry, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        steps: list[str] = []
        fsync, replace = os.fsync, Path.replace

        def noting_fsync(descriptor: int) -> None:
            steps.append("fsync")
            fsync(descriptor)

        def noting_replace(self: Path, target: Path) -> Path:
            assert hashlib.sha256(self.read_bytes()).hexdigest() == entry.files[0].sha256
            assert not target.exists()
            steps.append("replace")
            return replace(self, target)

        monkeypatch.setattr(os, "fsync", noting_fsync)
        monkeypatch.setattr(Path, "replace", noting_replace)
        fetch_entry(entry, tmp_path, patience=SOON)
        assert steps == ["fsync", "replace", "fsync"]

    def test_interrupted_by_the_user(
        self, server: Server, entry: CatalogueEntry, place: Path, part: Path, tmp_path: Path
    ) -> None:
        def interrupt(_file: CatalogueFile, done: int, _total: int) -> None:
            if done >= 100_000:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fetch_entry(entry, tmp_path, progress=interrupt, patience=SOON)
        assert not place.exists()
        arrived = part.stat().st_size
        assert 100_000 <= arrived < len(BODY)

        fetch_entry(entry, tmp_path, patience=SOON)
        assert server.ranges[-1] == f"bytes={arrived}-"
        assert place.read_bytes() == BODY

    def test_killed_half_way(
        self, server: Server, entry: CatalogueEntry, place: Path, part: Path, tmp_path: Path
    ) -> None:
        server.script.append(stalled(200_000))
        process = multiprocessing.get_context("spawn").Process(target=fetch_entry, args=(entry, tmp_path))
        process.start()
        deadline = time.monotonic() + 60
        while not (part.exists() and part.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
        process.join()
        process.close()
        assert not place.exists()
        arrived = part.stat().st_size
        assert 0 < arrived <= 200_000

        server.bytes_served = 0
        (fetched,) = fetch_entry(entry, tmp_path, patience=SOON)
        assert fetched.status is FetchStatus.RESUMED
        assert server.bytes_served == len(BODY) - arrived
        assert place.read_bytes() == BODY

    def test_disk_that_cannot_be_written(
        self, entry: CatalogueEntry, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(_descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(DownloadError, match=r"train\.arff: No space left on device"):
            fetch_entry(entry, tmp_path, patience=SOON)
        assert not place.exists()


class TestUnknownChecksum:
    def test_size_and_content_are_verified_instead(self, unknown: CatalogueEntry, tmp_path: Path) -> None:
        (fetched,) = fetch_entry(unknown, tmp_path, patience=SOON)
        assert fetched.verified is Verified.SIZE_AND_CONTENT
        assert "no checksum is known" in fetched.verified
        assert fetched.path.read_bytes() == SMALL_ARFF
        (again,) = fetch_entry(unknown, tmp_path, patience=SOON)
        assert (again.status, again.verified) == (FetchStatus.PRESENT, Verified.CONTENT)

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (SMALL_ARFF.replace(b"{a,b}", b"{a,b,c}"), "has 4 features and 4 nodes, and 3 and 4 were expected"),
            (SMALL_ARFF.replace(b",03\n@D", b",03,04\n@D"), "has 3 features and 5 nodes"),
            (SMALL_ARFF.replace(b"1.5,a", b"1.5,z"), "cannot be read"),
            (b"<html>please log in</html>", "cannot be read"),
        ],
    )
    def test_other_content_is_thrown_away(
        self, content: bytes, problem: str, server: Server, unknown: CatalogueEntry, tmp_path: Path
    ) -> None:
        server.content = dict.fromkeys(server.content, content)
        with pytest.raises(VerificationError, match=f"{problem}.*thrown away"):
            fetch_entry(unknown, tmp_path, patience=SOON)
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []

    def test_present_file_with_other_content_is_not_touched(self, unknown: CatalogueEntry, tmp_path: Path) -> None:
        place = tmp_path / unknown.files[0].path
        place.parent.mkdir()
        place.write_bytes(b"mine")
        with pytest.raises(VerificationError, match="not touched"):
            fetch_entry(unknown, tmp_path, patience=SOON)
        assert place.read_bytes() == b"mine"

    def test_server_must_announce_the_size(self, server: Server, unknown: CatalogueEntry, tmp_path: Path) -> None:
        server.script.append(without_length)
        with pytest.raises(VerificationError, match="does not announce a size"):
            fetch_entry(unknown, tmp_path, patience=SOON)

    def test_size_is_bounded(
        self, server: Server, unknown: CatalogueEntry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(download, "MOST_BYTES", 50)
        with pytest.raises(VerificationError, match=f"announces {len(SMALL_ARFF)} bytes, and 50 are the limit"):
            fetch_entry(unknown, tmp_path, patience=SOON)

    def test_truncation_is_noticed(self, server: Server, unknown: CatalogueEntry, tmp_path: Path) -> None:
        server.script.append(truncated(60))
        (fetched,) = fetch_entry(unknown, tmp_path, patience=SOON)
        assert server.ranges == [None, "bytes=60-"]
        assert fetched.path.read_bytes() == SMALL_ARFF

    def test_older_part_is_not_trusted(self, server: Server, unknown: CatalogueEntry, tmp_path: Path) -> None:
        place = tmp_path / unknown.files[0].path
        place.parent.mkdir()
        place.with_name(place.name + ".part").write_bytes(SMALL_ARFF[:20])
        fetch_entry(unknown, tmp_path, patience=SOON)
        assert server.ranges == [None]


class TestUnpublishedFile:
    @pytest.fixture
    def rebuilt(self, server: Server) -> CatalogueEntry:
        test = small_file(BODY, "test")
        server.content[quote(str(test.path))] = BODY
        return small_entry(server.address, small_file(b"rebuilt", published=False), test)

    def test_others_are_fetched_then_it_says_what_to_do(
        self, server: Server, rebuilt: CatalogueEntry, tmp_path: Path
    ) -> None:
        train, test = rebuilt.files
        with pytest.raises(MissingFileError, match="not published anywhere") as caught:
            fetch_entry(rebuilt, tmp_path, patience=SOON)
        assert str(tmp_path / train.path) in str(caught.value)
        assert str(train.sha256) in str(caught.value)
        assert (tmp_path / test.path).read_bytes() == BODY
        assert len(server.paths) == 1

    def test_once_it_is_there_all_is_well(self, rebuilt: CatalogueEntry, tmp_path: Path) -> None:
        place = tmp_path / rebuilt.files[0].path
        place.parent.mkdir()
        place.write_bytes(b"rebuilt")
        fetched = fetch_entry(rebuilt, tmp_path, patience=SOON)
        assert [file.status for file in fetched] == [FetchStatus.PRESENT, FetchStatus.FETCHED]

    def test_wrong_one_is_refused(self, rebuilt: CatalogueEntry, tmp_path: Path) -> None:
        place = tmp_path / rebuilt.files[0].path
        place.parent.mkdir()
        place.write_bytes(b"another")
        with pytest.raises(VerificationError, match="already there"):
            fetch_entry(rebuilt, tmp_path, patience=SOON)


class TestAddress:
    @pytest.mark.parametrize(
        "address",
        [
            "",
            "mirror.example.org",
            "/srv/mirror",
            "ftp://host/",
            "file:///srv/",
            "https://",
            "https:///path",
            "https://user:secret@host/",
            "https://host:port/",
            "https://host/?folder=",
            "https://host/#part",
            "https://host/a b/",
            "https://host/\r\nX: y/",
            "https://[broken/",
        ],
    )
    def test_what_is_not_a_web_address_is_refused(self, address: str, entry: CatalogueEntry, tmp_path: Path) -> None:
        with pytest.raises(ArgumentError, match="not an address"):
            fetch_entry(entry, tmp_path, mirror=address)

    @pytest.mark.parametrize("address", ["https://host", "https://host/", "https://host//"])
    def test_it_ends_in_one_slash(self, address: str) -> None:
        assert checked_base(address) == "https://host/"

    def test_it_may_have_a_port_and_a_folder(self) -> None:
        assert checked_base("http://127.0.0.1:8000/hmc") == "http://127.0.0.1:8000/hmc/"
