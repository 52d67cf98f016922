"""Download one file with pooch, within limits on time and bytes.

pooch and requests do the work: connections, redirections, retries and the checksum. This module adds what they do not
have: an overall deadline, a limit on the number of bytes, no redirection away from https, no retry of what cannot
succeed, and errors in one line.
"""

from __future__ import annotations

import http.client
import re
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from rarenode.errors import DownloadError, VerificationError

if TYPE_CHECKING:  # imported when a file is downloaded, so that everything else starts faster
    from requests import RequestException, Response

CHUNK_BYTES = 2**14
RETRIED = (http.HTTPStatus.REQUEST_TIMEOUT, http.HTTPStatus.TOO_MANY_REQUESTS)
"""Client errors that are worth another attempt; all server errors (5xx) are."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When to give up on a download."""

    retries: int = 4
    timeout: float = 30.0
    """Seconds without data after which a connection counts as broken."""
    deadline: float = 600.0
    """Seconds for one file, all attempts included."""
    max_bytes: int = 64 * 2**20
    """Size limit for files of unknown size. The largest known file of the catalogue has less than 5 MB."""


def download(
    address: str,
    path: Path,
    sha256: str | None,
    size: int | None,
    report: Callable[[int, int], None],
    limits: Limits,
) -> None:
    """Download a file to ``path``, which does not exist yet.

    Args:
        address: an http or https address.
        path: where to save the file.
        sha256: the expected checksum, if known. Without one, the server must announce the size.
        size: the expected number of bytes, if known.
        report: called with the number of bytes received and expected, from a background thread.
        limits: when to give up.

    Raises:
        DownloadError: the server refuses, or all attempts fail, or the deadline has passed.
        VerificationError: the size or the checksum is not the expected one.
    """
    import pooch  # noqa: PLC0415
    import requests  # noqa: PLC0415

    source = pooch.Pooch(
        path=path.parent,
        base_url="",
        registry={path.name: sha256},
        urls={path.name: address},
        retry_if_failed=limits.retries,
    )
    logger = pooch.get_logger()  # it prints every download unless filtered
    logger.addFilter(_drop)
    try:
        source.fetch(path.name, downloader=_Downloader(size, sha256 is not None, report, limits))
    except requests.RequestException as error:
        raise DownloadError(f"{_reason(error)}, in the last of {limits.retries + 1} attempts") from error
    except ValueError as error:  # this is how pooch reports a checksum other than expected
        raise VerificationError(str(error).rstrip(".")) from error
    finally:
        logger.removeFilter(_drop)


class _Downloader:
    """A downloader for pooch, and the file-like object that receives the body of the response.

    It raises `DownloadError` for what ends the download at once; pooch retries after a `RequestException`.
    """

    def __init__(self, size: int | None, has_checksum: bool, report: Callable[[int, int], None], limits: Limits):
        self._size = size
        self._has_checksum = has_checksum
        self._report = report
        self._limits = limits
        self._end = time.monotonic() + limits.deadline

    def __call__(self, address: str, output_file: str, _source: object) -> None:
        """Make one attempt."""
        import requests  # noqa: PLC0415

        self._done = self._total = 0
        self._response: Response | None = None
        with Path(output_file).open("wb") as out:
            self._out = out
            try:
                finished = _finishes(lambda: self._get(address), self._end)
            except requests.RequestException:
                raise
            except ValueError as error:
                raise DownloadError("the response of the server is malformed") from error
        if not finished:
            received = f"{self._done} of {self._total} bytes" if self._total else "no response"
            raise DownloadError(f"received {received} within {self._limits.deadline:g} s")

    def _get(self, address: str) -> None:
        import pooch  # noqa: PLC0415

        get = pooch.HTTPDownloader(
            chunk_size=CHUNK_BYTES,
            timeout=self._limits.timeout,
            headers={"User-Agent": "rarenode", "Accept-Encoding": "identity"},
            hooks={"response": self.check},
        )
        try:
            get(address, self, None)
        finally:
            if self._response is not None:
                self._response.close()  # pooch leaves it open when the transfer fails

    def check(self, response: Response, **_: object) -> None:
        """Look at the headers of a response before its body is read; requests calls this."""
        self._response = response
        status = response.status_code
        if response.is_redirect:
            safe = ("https",) if response.url.startswith("https:") else ("https", "http")
            if urlsplit(urljoin(response.url, response.headers["Location"])).scheme not in safe:
                raise DownloadError("the server redirects to an address that is not safe to follow")
        elif status < http.HTTPStatus.BAD_REQUEST:
            self._total = self._expected_size(response.headers.get("Content-Length"))
        elif status < http.HTTPStatus.INTERNAL_SERVER_ERROR and status not in RETRIED:
            raise DownloadError(f"the server answered {_answer(status)}")

    def _expected_size(self, length: str | None) -> int:
        if length is None:
            if not self._has_checksum:  # nothing would show that the end is missing
                raise VerificationError("the server does not announce a size, and no checksum is known")
            return self._limits.max_bytes if self._size is None else self._size
        if not re.fullmatch("[0-9]{1,18}", length):
            raise DownloadError("the server announces an invalid size")
        announced = int(length)
        if self._size is not None and announced != self._size:
            raise VerificationError(f"the server announces {announced} bytes instead of {self._size}")
        if self._size is None and announced > self._limits.max_bytes:
            raise VerificationError(f"the server announces {announced} bytes; the limit is {self._limits.max_bytes}")
        return announced

    def write(self, chunk: bytes) -> None:
        """Receive a part of the body."""
        if self._done + len(chunk) > self._total:
            raise VerificationError(f"the server sends more than {self._total} bytes")
        self._out.write(chunk)
        self._done += len(chunk)
        self._report(self._done, self._total)

    def flush(self) -> None:
        """Do nothing: pooch calls this after every chunk, and closing the file is enough."""


def _finishes(function: Callable[[], None], end: float) -> bool:
    """Run a function in a thread; return whether it finishes before ``time.monotonic()`` reaches ``end``.

    The timeout of a socket only limits the silence between two packets: a server that sends a byte now and then could
    hold the caller for days. A thread that is left behind stops at its next write, because the file is closed by then.
    """
    future: Future[None] = Future()

    def run() -> None:
        try:
            function()
            future.set_result(None)
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    wait([future], max(0.0, end - time.monotonic()))
    if not future.done():
        return False
    future.result()
    return True


def _reason(error: RequestException) -> str:
    if error.response is not None:
        return f"the server answered {_answer(error.response.status_code)}"
    cause: object = error
    while isinstance(cause, BaseException):  # requests wraps the errors of urllib3, which wrap those of the socket
        cause = getattr(cause, "reason", None) or (cause.args[0] if cause.args else type(cause).__name__)
    return f"the connection failed ({cause})"


def _answer(status: int) -> str:
    # The reason that the server gives is untrusted text; the standard one says as much.
    return f"HTTP {status} {http.client.responses.get(status, '')}".rstrip()


def _drop(_record: object) -> bool:
    return False
