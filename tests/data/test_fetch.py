"""Fetching from a local server, through pooch and requests: what arrives, what is rejected, and how it is reported."""

from __future__ import annotations

import hashlib
import logging
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest
from requests import Response
from requests.structures import CaseInsensitiveDict

import rarenode
from rarenode.data.catalogue import CatalogueEntry, CatalogueFile
from rarenode.data.fetch import (
    FetchedFile,
    FetchStatus,
    FileState,
    Verified,
    checked_base,
    fetch_dataset,
    fetch_entry,
    inspect_file,
    missing_files,
)
from rarenode.data.transfer import Limits, _Downloader
from rarenode.errors import ArgumentError, DownloadError, MissingFileError, UnknownDatasetError, VerificationError
from tests.data.serving import (
    SMALL_ARFF,
    Answer,
    Server,
    dripping,
    dripping_headers,
    endless,
    failing,
    other_content,
    other_length,
    redirecting,
    running_server,
    small_entry,
    small_file,
    stalled,
    truncated,
    without_length,
)

BODY = bytes(range(256)) * 1000
LIMITS = Limits(retries=2, timeout=10.0)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts, which are not made."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    return pauses


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
def unknown(server: Server) -> CatalogueEntry:
    """A dataset whose file has neither a known size nor a known checksum."""
    file = small_file(SMALL_ARFF, size=None, sha256=None)
    server.content[quote(str(file.path))] = SMALL_ARFF
    return small_entry(server.address, file)


class TestPlainFetch:
    def test_file_appears_with_its_content(self, entry: CatalogueEntry, place: Path, tmp_path: Path) -> None:
        fetched = fetch_entry(entry, tmp_path, limits=LIMITS)
        assert fetched == (FetchedFile(place, len(BODY), FetchStatus.FETCHED, Verified.CHECKSUM),)
        assert place.read_bytes() == BODY
        assert list(place.parent.iterdir()) == [place]

    def test_progress_rises_to_the_size(self, entry: CatalogueEntry, file: CatalogueFile, tmp_path: Path) -> None:
        calls: list[tuple[CatalogueFile, int, int]] = []
        fetch_entry(entry, tmp_path, progress=lambda *call: calls.append(call), limits=LIMITS)
        assert {(of, total) for of, _, total in calls} == {(file, len(BODY))}
        steps = [done for _, done, _ in calls]
        assert steps == sorted(set(steps))
        assert len(steps) > 3
        assert steps[-1] == len(BODY)

    def test_mirror_replaces_the_source(self, server: Server, entry: CatalogueEntry, tmp_path: Path) -> None:
        path = quote(str(entry.files[0].path))
        server.content = {f"deep/mirror/{path}": BODY}
        fetch_entry(entry, tmp_path, mirror=f"{server.address}deep/mirror", limits=LIMITS)
        assert server.paths == [f"/deep/mirror/{path}"]

    def test_several_files_come_in_the_order_of_the_entry(self, server: Server, tmp_path: Path) -> None:
        files = small_file(b"train"), small_file(b"test", "test")
        server.content = {quote(str(file.path)): body for file, body in zip(files, (b"train", b"test"), strict=True)}
        fetched = fetch_entry(small_entry(server.address, *files), tmp_path, limits=LIMITS)
        assert [file.path.read_bytes() for file in fetched] == [b"train", b"test"]

    def test_redirection_is_followed(self, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path) -> None:
        server.content["elsewhere"] = BODY
        server.script.append(redirecting("/elsewhere"))
        fetch_entry(entry, tmp_path, limits=LIMITS)
        assert place.read_bytes() == BODY

    def test_unknown_name(self, tmp_path: Path) -> None:
        with pytest.raises(UnknownDatasetError, match="Did you mean 'enron'"):
            fetch_dataset("enrom", tmp_path)

    def test_several_at_once(self, entry: CatalogueEntry, place: Path, tmp_path: Path) -> None:
        with ThreadPoolExecutor(4) as pool:
            runs = [pool.submit(fetch_entry, entry, tmp_path, limits=LIMITS) for _ in range(4)]
            assert all(run.result()[0].verified is Verified.CHECKSUM for run in runs)
        assert place.read_bytes() == BODY
        assert list(place.parent.iterdir()) == [place]

    def test_the_file_has_the_permissions_of_a_new_file(
        self, entry: CatalogueEntry, place: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "new").touch()
        fetch_entry(entry, tmp_path, limits=LIMITS)
        assert place.stat().st_mode == (tmp_path / "new").stat().st_mode

    def test_pooch_prints_nothing_and_its_logger_is_left_as_it_was(
        self, server: Server, entry: CatalogueEntry, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        server.script.append(failing(500))
        fetch_entry(entry, tmp_path, limits=LIMITS)
        assert capfd.readouterr() == ("", "")
        assert logging.getLogger("pooch").filters == []

    def test_pooch_and_requests_are_imported_only_to_download(self) -> None:
        modules = "sys, rarenode.cli.app, rarenode.data.fetch"
        code = f"import {modules}; sys.exit(bool({{'pooch', 'requests'}} & set(sys.modules)))"
        environment = os.environ | {"PYTHONPATH": str(Path(rarenode.__file__).parents[1])}
        assert subprocess.run([sys.executable, "-c", code], env=environment, check=False, timeout=60).returncode == 0


class TestPresentFile:
    def test_verified_file_is_left_unchanged(self, server: Server, entry: CatalogueEntry, place: Path) -> None:
        place.parent.mkdir()
        place.write_bytes(BODY)
        before = place.stat().st_mtime_ns
        (fetched,) = fetch_entry(entry, place.parents[1], limits=LIMITS)
        assert fetched == FetchedFile(place, len(BODY), FetchStatus.PRESENT, Verified.CHECKSUM)
        assert place.stat().st_mtime_ns == before
        assert server.paths == []

    def test_another_file_is_never_overwritten(self, server: Server, entry: CatalogueEntry, place: Path) -> None:
        place.parent.mkdir()
        place.write_bytes(b"mine")
        with pytest.raises(VerificationError, match=r"already present.*left unchanged.*Move or delete it") as caught:
            fetch_entry(entry, place.parents[1], limits=LIMITS)
        assert str(place) in str(caught.value)
        assert hashlib.sha256(b"mine").hexdigest() in str(caught.value)
        assert str(entry.files[0].sha256) in str(caught.value)
        assert place.read_bytes() == b"mine"
        assert server.paths == []

    def test_folder_in_its_place(self, entry: CatalogueEntry, place: Path, tmp_path: Path) -> None:
        place.mkdir(parents=True)
        with pytest.raises(DownloadError, match="Is a directory"):
            fetch_entry(entry, tmp_path, limits=LIMITS)

    def test_file_in_place_of_a_folder(self, entry: CatalogueEntry, place: Path, tmp_path: Path) -> None:
        place.parent.write_bytes(b"")
        with pytest.raises(DownloadError):
            fetch_entry(entry, tmp_path, limits=LIMITS)

    def test_states(self, entry: CatalogueEntry, file: CatalogueFile, place: Path, tmp_path: Path) -> None:
        assert inspect_file(file, tmp_path) is FileState.ABSENT
        place.parent.mkdir()
        assert missing_files(entry, tmp_path) == (file,)
        place.write_bytes(b"mine")
        assert inspect_file(file, tmp_path) is FileState.MISMATCH
        place.write_bytes(BODY)
        assert inspect_file(file, tmp_path) is FileState.VERIFIED
        assert inspect_file(small_file(BODY, sha256=None), tmp_path) is FileState.UNVERIFIED
        assert missing_files(entry, tmp_path) == ()


class TestFailingServer:
    @pytest.mark.parametrize(
        "failure",
        [failing(500), failing(503), failing(429), truncated(100_000)],
        ids=["500", "503", "429", "truncated"],
    )
    def test_temporary_failures_are_retried(
        self, failure: Answer, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path, pauses: list[float]
    ) -> None:
        server.script.extend([failure] * 2)
        (fetched,) = fetch_entry(entry, tmp_path, limits=LIMITS)
        assert fetched.status is FetchStatus.FETCHED
        assert len(server.paths) == 3
        assert len(pauses) == 2
        assert place.read_bytes() == BODY

    def test_progress_returns_to_the_start_on_a_retry(
        self, server: Server, entry: CatalogueEntry, tmp_path: Path
    ) -> None:
        server.script.append(truncated(100_000))
        steps: list[int] = []
        fetch_entry(entry, tmp_path, progress=lambda _file, done, _total: steps.append(done), limits=LIMITS)
        assert steps != sorted(steps)
        assert max(steps) == steps[-1] == len(BODY)

    def test_it_gives_up_after_the_last_attempt(
        self, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path
    ) -> None:
        server.script.extend([truncated(100), failing(500), failing(502)])
        with pytest.raises(DownloadError, match=r"HTTP 502 Bad Gateway, in the last of 3 attempts") as caught:
            fetch_entry(entry, tmp_path, limits=LIMITS)
        assert server.address in str(caught.value)
        assert f"save it as {place}" in str(caught.value)
        assert "words of the server" not in str(caught.value)
        assert list(place.parent.iterdir()) == []

    @pytest.mark.parametrize("status", [400, 403, 404, 410])
    def test_client_errors_fail_at_once(
        self, status: int, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path
    ) -> None:
        server.script.append(failing(status))
        with pytest.raises(DownloadError, match=f"{server.address}.*HTTP {status}.*Try again later") as caught:
            fetch_entry(entry, tmp_path, limits=LIMITS)
        assert f"save it as {place}" in str(caught.value)
        assert len(server.paths) == 1
        assert not place.exists()

    def test_no_server(self, entry: CatalogueEntry, tmp_path: Path) -> None:
        with running_server() as gone:
            address = gone.address
        with pytest.raises(DownloadError, match=r"the connection failed \(.*refused.*3 attempts"):
            fetch_entry(entry, tmp_path, mirror=address, limits=LIMITS)

    def test_truncation_at_every_attempt(self, server: Server, entry: CatalogueEntry, tmp_path: Path) -> None:
        server.script.extend([truncated(100)] * 3)
        with pytest.raises(DownloadError, match=r"the connection failed \(.*100 bytes read.*3 attempts"):
            fetch_entry(entry, tmp_path, limits=LIMITS)

    def test_silence_is_a_broken_connection(
        self, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path
    ) -> None:
        server.script.append(stalled(1000))
        fetch_entry(entry, tmp_path, limits=Limits(retries=1, timeout=0.3))
        assert len(server.paths) == 2
        assert place.read_bytes() == BODY

    @pytest.mark.parametrize("slow", [dripping(0.01), dripping_headers(0.01)], ids=["body", "headers"])
    def test_a_server_that_is_never_silent_but_slow_meets_the_deadline(
        self, slow: Answer, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path
    ) -> None:
        server.script.append(slow)
        start = time.monotonic()
        with pytest.raises(DownloadError, match=r"received .* within 0\.5 s\. Try again later"):
            fetch_entry(entry, tmp_path, limits=Limits(retries=3, timeout=5.0, deadline=0.5))
        assert time.monotonic() - start < 5
        assert len(server.paths) == 1
        assert list(place.parent.iterdir()) == []

    def test_the_deadline_covers_all_attempts(self, server: Server, entry: CatalogueEntry, tmp_path: Path) -> None:
        server.script.extend([stalled(100)] * 100)
        start = time.monotonic()
        with pytest.raises(DownloadError, match=r"received .* within 1 s"):
            fetch_entry(entry, tmp_path, limits=Limits(retries=99, timeout=0.2, deadline=1.0))
        assert time.monotonic() - start < 5


class TestUnexpectedContent:
    def test_other_content(self, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path) -> None:
        server.script.extend([other_content] * 3)
        with pytest.raises(VerificationError, match="the download was discarded") as caught:
            fetch_entry(entry, tmp_path, limits=LIMITS)
        found = hashlib.sha256(bytes(byte ^ 1 for byte in BODY)).hexdigest()
        for part in (place.name, server.address, found, str(entry.files[0].sha256)):
            assert part in str(caught.value)
        assert list(place.parent.iterdir()) == []
        assert len(server.paths) == 3

    def test_a_damaged_transfer_is_retried(
        self, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path
    ) -> None:
        server.script.append(other_content)
        fetch_entry(entry, tmp_path, limits=LIMITS)
        assert place.read_bytes() == BODY

    @pytest.mark.parametrize("length", [10, len(BODY) - 1, len(BODY) + 1, 10**15])
    def test_other_length(
        self, length: int, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path
    ) -> None:
        server.script.append(other_length(length))
        with pytest.raises(VerificationError, match=f"announces {length} bytes instead of {len(BODY)}"):
            fetch_entry(entry, tmp_path, limits=LIMITS)
        assert list(place.parent.iterdir()) == []
        assert len(server.paths) == 1

    @pytest.mark.parametrize("length", ["many", "-1", "9" * 5000, "1e5"])
    def test_invalid_length(self, length: str, server: Server, entry: CatalogueEntry, tmp_path: Path) -> None:
        server.script.append(other_length(length))
        with pytest.raises(DownloadError, match="announces an invalid size"):
            fetch_entry(entry, tmp_path, limits=LIMITS)

    def test_length_may_be_omitted(self, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path) -> None:
        server.script.append(without_length)
        fetch_entry(entry, tmp_path, limits=LIMITS)
        assert place.read_bytes() == BODY

    def test_too_many_bytes(
        self, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(temporary))
        written: list[int] = []

        def measure(_file: CatalogueFile, _done: int, _total: int) -> None:
            written.append(max(path.stat().st_size for path in temporary.rglob("*") if path.is_file()))

        server.script.append(endless)
        with pytest.raises(VerificationError, match=f"sends more than {len(BODY)} bytes"):
            fetch_entry(entry, tmp_path, progress=measure, limits=LIMITS)
        assert 0 < max(written) <= len(BODY)
        assert server.bytes_served < 200 * len(BODY)  # the rest of what was sent is in the buffers of the sockets
        assert not place.exists()
        assert list(temporary.iterdir()) == []

    @pytest.mark.parametrize("target", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:,x"])
    def test_redirection_to_another_protocol(
        self, target: str, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path
    ) -> None:
        server.script.append(redirecting(target))
        with pytest.raises(DownloadError, match="not safe to follow"):
            fetch_entry(entry, tmp_path, limits=LIMITS)
        assert not place.exists()

    def test_malformed_redirection(self, server: Server, entry: CatalogueEntry, tmp_path: Path) -> None:
        server.script.append(redirecting("http://[x"))
        with pytest.raises(DownloadError, match="malformed"):
            fetch_entry(entry, tmp_path, limits=LIMITS)

    def test_redirection_away_from_encryption(self) -> None:
        downloader = _Downloader(None, True, lambda _done, _total: None, LIMITS)

        def follow(target: str) -> None:
            response = Response()
            response.status_code, response.url = 302, "https://host/file"
            response.headers = CaseInsensitiveDict(Location=target)
            downloader.check(response)

        follow("https://other/file")
        follow("/elsewhere")
        with pytest.raises(DownloadError, match="not safe to follow"):
            follow("http://host/file")


class TestAtomicity:
    def test_the_name_appears_only_after_the_last_byte(
        self, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path
    ) -> None:
        server.script.append(truncated(70_000))
        seen: list[bool] = []
        fetch_entry(entry, tmp_path, progress=lambda *_: seen.append(place.exists()), limits=LIMITS)
        assert len(seen) > 3
        assert not any(seen)

    def test_order_of_the_last_steps(
        self, entry: CatalogueEntry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
        fetch_entry(entry, tmp_path, limits=LIMITS)
        assert steps == ["fsync", "replace", "fsync"]

    def test_interrupted_by_the_user(self, entry: CatalogueEntry, place: Path, tmp_path: Path) -> None:
        def interrupt(_file: CatalogueFile, done: int, _total: int) -> None:
            if done >= 100_000:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fetch_entry(entry, tmp_path, progress=interrupt, limits=LIMITS)
        assert list(place.parent.iterdir()) == []
        fetch_entry(entry, tmp_path, limits=LIMITS)
        assert place.read_bytes() == BODY

    def test_killed_half_way(
        self, server: Server, entry: CatalogueEntry, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TMPDIR", str(tmp_path))  # a killed process leaves its temporary folder behind
        server.script.append(stalled(200_000))
        process = multiprocessing.get_context("spawn").Process(target=fetch_entry, args=(entry, tmp_path))
        process.start()
        end = time.monotonic() + 60
        while not server.bytes_served and time.monotonic() < end:
            threading.Event().wait(0.01)
        process.kill()
        process.join()
        process.close()
        assert server.bytes_served
        assert list(place.parent.iterdir()) == []

        (fetched,) = fetch_entry(entry, tmp_path, limits=LIMITS)
        assert fetched.status is FetchStatus.FETCHED
        assert place.read_bytes() == BODY

    def test_disk_that_cannot_be_written(
        self, entry: CatalogueEntry, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(_descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(DownloadError, match=r"train\.arff: No space left on device"):
            fetch_entry(entry, tmp_path, limits=LIMITS)
        assert list(place.parent.iterdir()) == []


class TestUnknownChecksum:
    def test_content_is_verified_instead(self, unknown: CatalogueEntry, tmp_path: Path) -> None:
        (fetched,) = fetch_entry(unknown, tmp_path, limits=LIMITS)
        assert fetched.verified is Verified.CONTENT
        assert "no checksum is known" in fetched.verified
        assert fetched.path.read_bytes() == SMALL_ARFF
        (again,) = fetch_entry(unknown, tmp_path, limits=LIMITS)
        assert (again.status, again.verified) == (FetchStatus.PRESENT, Verified.CONTENT)

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (SMALL_ARFF.replace(b"{a,b}", b"{a,b,c}"), "has 4 features and 4 nodes instead of 3 and 4"),
            (SMALL_ARFF.replace(b",03\n@D", b",03,04\n@D"), "has 3 features and 5 nodes"),
            (SMALL_ARFF.replace(b"1.5,a", b"1.5,z"), "cannot be read"),
            (b"<html>please log in</html>", "cannot be read"),
        ],
    )
    def test_other_content_is_discarded(
        self, content: bytes, problem: str, server: Server, unknown: CatalogueEntry, tmp_path: Path
    ) -> None:
        server.content = dict.fromkeys(server.content, content)
        with pytest.raises(VerificationError, match=f"{problem}.*discarded"):
            fetch_entry(unknown, tmp_path, limits=LIMITS)
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []

    def test_present_file_with_other_content_is_left_unchanged(self, unknown: CatalogueEntry, tmp_path: Path) -> None:
        place = tmp_path / unknown.files[0].path
        place.parent.mkdir()
        place.write_bytes(b"mine")
        with pytest.raises(VerificationError, match="left unchanged"):
            fetch_entry(unknown, tmp_path, limits=LIMITS)
        assert place.read_bytes() == b"mine"

    def test_server_must_announce_the_size(self, server: Server, unknown: CatalogueEntry, tmp_path: Path) -> None:
        server.script.append(without_length)
        with pytest.raises(VerificationError, match="does not announce a size"):
            fetch_entry(unknown, tmp_path, limits=LIMITS)

    def test_size_is_limited(self, unknown: CatalogueEntry, tmp_path: Path) -> None:
        with pytest.raises(VerificationError, match=f"announces {len(SMALL_ARFF)} bytes; the limit is 50"):
            fetch_entry(unknown, tmp_path, limits=Limits(max_bytes=50))

    def test_truncation_is_noticed(self, server: Server, unknown: CatalogueEntry, tmp_path: Path) -> None:
        server.script.append(truncated(SMALL_ARFF.rindex(b"?")))  # what arrives parses
        (fetched,) = fetch_entry(unknown, tmp_path, limits=LIMITS)
        assert len(server.paths) == 2
        assert fetched.path.read_bytes() == SMALL_ARFF


class TestUnpublishedFile:
    @pytest.fixture
    def rebuilt(self, server: Server) -> CatalogueEntry:
        test = small_file(BODY, "test")
        server.content[quote(str(test.path))] = BODY
        return small_entry(server.address, small_file(b"rebuilt", published=False), test)

    def test_others_are_fetched_and_the_error_says_what_to_do(
        self, server: Server, rebuilt: CatalogueEntry, tmp_path: Path
    ) -> None:
        train, test = rebuilt.files
        with pytest.raises(MissingFileError, match="not published anywhere") as caught:
            fetch_entry(rebuilt, tmp_path, limits=LIMITS)
        assert str(tmp_path / train.path) in str(caught.value)
        assert str(train.sha256) in str(caught.value)
        assert (tmp_path / test.path).read_bytes() == BODY
        assert len(server.paths) == 1

    def test_it_is_used_once_it_is_present(self, rebuilt: CatalogueEntry, tmp_path: Path) -> None:
        place = tmp_path / rebuilt.files[0].path
        place.parent.mkdir()
        place.write_bytes(b"rebuilt")
        fetched = fetch_entry(rebuilt, tmp_path, limits=LIMITS)
        assert [file.status for file in fetched] == [FetchStatus.PRESENT, FetchStatus.FETCHED]

    def test_another_file_is_rejected(self, rebuilt: CatalogueEntry, tmp_path: Path) -> None:
        place = tmp_path / rebuilt.files[0].path
        place.parent.mkdir()
        place.write_bytes(b"another")
        with pytest.raises(VerificationError, match="already present"):
            fetch_entry(rebuilt, tmp_path, limits=LIMITS)


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
    def test_other_than_web_addresses_are_rejected(self, address: str, entry: CatalogueEntry, tmp_path: Path) -> None:
        with pytest.raises(ArgumentError, match="is not an address"):
            fetch_entry(entry, tmp_path, mirror=address)

    @pytest.mark.parametrize("address", ["https://host", "https://host/", "https://host//"])
    def test_it_ends_in_one_slash(self, address: str) -> None:
        assert checked_base(address) == "https://host/"

    def test_it_may_have_a_port_and_a_folder(self) -> None:
        assert checked_base("http://127.0.0.1:8000/hmc") == "http://127.0.0.1:8000/hmc/"
