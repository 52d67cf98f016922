"""One address into one file, over a network that fails, stalls, truncates and lies.

What has arrived stays in the file, so that the next try, or the next run, asks only for the rest. Nothing here looks at
the content: whoever calls verifies the whole file before it gets the name under which others find it.
"""

from __future__ import annotations

import http.client
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import IO
from urllib import request
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from rarenode.errors import ArgumentError, DownloadError, VerificationError

MOST_BYTES = 64 * 2**20
"""No file of unknown size may be longer than this; the longest known file of the benchmark has less than 5 MB."""

CHUNK_BYTES = 2**16

BUSY = (http.HTTPStatus.REQUEST_TIMEOUT, http.HTTPStatus.TOO_MANY_REQUESTS)
"""The two refusals that mean "later"."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to put up with a server."""

    tries: int = 5
    pause: float = 1.0
    """Seconds before the second try; each further pause is twice as long."""
    timeout: float = 30.0
    """Seconds of silence that count as a broken connection."""


PATIENT = Patience()


def checked_base(address: str) -> str:
    """Return an address that paths can be appended to.

    Raises:
        ArgumentError: it is not a plain http or https address.
    """
    try:
        parts = urlsplit(address)
        plain = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc and parts.port != 0
    except ValueError:  # urlsplit and .port refuse malformed hosts and ports
        plain = False
    if not plain or re.search(r"[^!-~]|[?#]", address):
        raise ArgumentError(
            f"{address!r} is not an address that files can be fetched from; "
            "it must look like https://host/folder/, with http or https, and without a password, '?' or '#'"
        )
    return address.rstrip("/") + "/"


def download(
    address: str, part: Path, size: int | None, report: Callable[[int, int], None], patience: Patience = PATIENT
) -> bool:
    """Fetch an address into ``part``, going on from the bytes that are already there; return whether it did go on.

    Of a file of known ``size`` not one byte more is read. If the size is unknown, the server must announce one, at most
    `MOST_BYTES`. ``report`` is called with the bytes that are there and the bytes there will be.

    Raises:
        DownloadError: the server refuses (4xx), or is busy or fails (408, 429, 5xx, broken connection, too few
            bytes) at every try.
        VerificationError: the server announces another size than the catalogue.
    """
    trouble = ""
    for attempt in range(patience.tries):
        if attempt:
            time.sleep(patience.pause * 2 ** (attempt - 1))
        try:
            return _go_on(address, part, size, report, patience.timeout)
        except _TransientError as error:
            trouble = str(error)
    raise DownloadError(
        f"{address}: gave up after {patience.tries} tries, the last because {trouble}; "
        "what has arrived is kept, and fetching again goes on from there"
    )


class _TransientError(Exception):
    """This try has failed, the next one may not."""


class _NoDowngrade(request.HTTPRedirectHandler):
    """Follows redirections, but never from https to anything else."""

    def redirect_request(
        self, req: request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> request.Request | None:
        if req.type == "https" and urlsplit(newurl).scheme != "https":
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


def _web_only_opener() -> request.OpenerDirector:
    # urllib's ready-made opener would also open file: and ftp: addresses, which a redirection could name.
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler(),
        request.HTTPHandler(),
        request.HTTPSHandler(),
        _NoDowngrade(),
        request.HTTPErrorProcessor(),
        request.HTTPDefaultErrorHandler(),
        request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


def _go_on(address: str, part: Path, size: int | None, report: Callable[[int, int], None], timeout: float) -> bool:
    have = part.stat().st_size if part.exists() else 0
    if size is not None and have > size:
        part.unlink()
        have = 0
    if have == size:
        report(have, have)
        return True
    with _ask(address, part, have, timeout) as response:
        start, announced = _extent(response, part, have)
        total = _agreed_size(address, announced, size)
        with part.open("ab" if start else "wb") as out:
            done = start
            report(done, total)
            while done < total:
                chunk = _read(response, min(CHUNK_BYTES, total - done))
                if not chunk:
                    raise _TransientError(f"the connection ended after {done} of {total} bytes")
                out.write(chunk)
                done += len(chunk)
                report(done, total)
    return start > 0


def _ask(address: str, part: Path, have: int, timeout: float) -> http.client.HTTPResponse:
    headers = {"User-Agent": "rarenode", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        question = request.Request(address, headers=headers)
        response: http.client.HTTPResponse = _web_only_opener().open(question, timeout=timeout)
    except HTTPError as error:
        error.close()
        # The server's own words are left out: they are untrusted, and the standard's say as much.
        answer = f"HTTP {error.code} {http.client.responses.get(error.code, '')}".rstrip()
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            raise _cannot_continue(part, have) from error
        if error.code >= http.HTTPStatus.INTERNAL_SERVER_ERROR or error.code in BUSY:
            raise _TransientError(f"the server answered {answer}") from error
        hint = " (a redirection that is not safe to follow)" if error.code < http.HTTPStatus.BAD_REQUEST else ""
        raise DownloadError(f"{address}: the server answered {answer}{hint}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _TransientError(_reason(error)) from error
    return response


def _extent(response: http.client.HTTPResponse, part: Path, have: int) -> tuple[int, int | None]:
    """Return the position that the answer starts at, and the size of the whole file if the server tells it."""
    if response.status == http.HTTPStatus.PARTIAL_CONTENT:
        stated = re.fullmatch(r"bytes (\d{1,18})-\d+/(\d{1,18})", response.headers.get("Content-Range", ""), re.ASCII)
        if stated is None or not int(stated[1]) == have < int(stated[2]):
            raise _cannot_continue(part, have)
        return have, int(stated[2])
    # Any other answer carries the whole file: this server does not know ranges.
    length = response.headers.get("Content-Length", "")
    return 0, int(length) if re.fullmatch(r"\d{1,18}", length, re.ASCII) else None


def _agreed_size(address: str, announced: int | None, size: int | None) -> int:
    if size is not None:
        if announced not in (None, size):
            raise VerificationError(f"{address}: the server announces {announced} bytes, but the file must have {size}")
        return size
    if announced is None:
        raise VerificationError(f"{address}: the server does not announce a size, and none is known")
    if announced > MOST_BYTES:
        raise VerificationError(f"{address}: the server announces {announced} bytes, and {MOST_BYTES} are the limit")
    return announced


def _read(response: http.client.HTTPResponse, most: int) -> bytes:
    try:
        return response.read1(most)
    except (OSError, http.client.HTTPException) as error:
        raise _TransientError(_reason(error)) from error


def _cannot_continue(part: Path, have: int) -> _TransientError:
    part.unlink(missing_ok=True)
    return _TransientError(f"the server could not go on from byte {have}")


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, URLError) else error
    return f"the connection failed ({cause or type(cause).__name__})"
