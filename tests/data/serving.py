"""A local web server that can fail, truncate, stall or send something else, and a small dataset for it to serve."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from threading import Event, Thread

from rarenode.data.catalogue import CatalogueEntry, CatalogueFile, SplitName

Answer = Callable[["Handler", bytes], None]


class Server(ThreadingHTTPServer):
    """Serves ``content``. Each answer in ``script`` is used for one request, in order; then content is served as is."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content: dict[str, bytes] = {}
        self.script: deque[Answer] = deque()
        self.paths: list[str] = []
        self.bytes_served = 0
        self.closing = Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/"

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # clients may hang up


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        body = self.server.content.get(self.path.removeprefix("/"))
        answer = self.server.script.popleft() if self.server.script else plain
        if body is None:
            self.send_error(404)
        else:
            answer(self, body)

    def start(self, status: int, headers: dict[str, object]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()

    def send(self, body: bytes) -> None:
        self.wfile.write(body)
        self.wfile.flush()
        self.server.bytes_served += len(body)

    def log_message(self, *args: object) -> None:
        pass


def plain(handler: Handler, body: bytes) -> None:
    truncated(len(body))(handler, body)


def truncated(after: int) -> Answer:
    """Announce the whole body, send ``after`` bytes of it, close the connection."""

    def answer(handler: Handler, body: bytes) -> None:
        handler.start(200, {"Content-Length": len(body)})
        handler.send(body[:after])

    return answer


def stalled(after: int) -> Answer:
    """Announce the whole body, send ``after`` bytes of it, then nothing, and keep the connection open."""

    def answer(handler: Handler, body: bytes) -> None:
        truncated(after)(handler, body)
        handler.server.closing.wait(30)

    return answer


def dripping(seconds: float) -> Answer:
    """Announce the whole body, then send it byte by byte."""

    def answer(handler: Handler, body: bytes) -> None:
        handler.start(200, {"Content-Length": len(body)})
        for byte in body:
            handler.send(bytes([byte]))
            if handler.server.closing.wait(seconds):
                break

    return answer


def dripping_headers(seconds: float) -> Answer:
    """Send the status line, then a header that never ends, byte by byte."""

    def answer(handler: Handler, _body: bytes) -> None:
        handler.wfile.write(b"HTTP/1.0 200 OK\r\nX-Long: ")
        while not handler.server.closing.wait(seconds):
            handler.send(b"x")

    return answer


def failing(status: int) -> Answer:
    return lambda handler, _body: handler.send_error(status, "\x1b[31mwords of the server")


def without_length(handler: Handler, body: bytes) -> None:
    handler.start(200, {})
    handler.send(body)


def other_content(handler: Handler, body: bytes) -> None:
    """Send the announced number of bytes, but other ones."""
    plain(handler, bytes(byte ^ 1 for byte in body))


def other_length(length: object) -> Answer:
    def answer(handler: Handler, body: bytes) -> None:
        handler.start(200, {"Content-Length": length})
        handler.send(body)

    return answer


def endless(handler: Handler, body: bytes) -> None:
    """Announce no size and send far too much."""
    handler.start(200, {})
    for _ in range(1000):
        handler.send(body)


def redirecting(target: str) -> Answer:
    return lambda handler, _body: handler.start(302, {"Location": target, "Content-Length": 0})


@contextmanager
def running_server() -> Iterator[Server]:
    with Server() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.closing.set()
            server.shutdown()
            thread.join()


def small_file(body: bytes, split: SplitName = "train", **changes: object) -> CatalogueFile:
    facts: dict[str, object] = {
        "split": split,
        "path": PurePosixPath(f"small data/{split}.arff"),
        "rows": 2,
        "size": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    return CatalogueFile(**(facts | changes))  # type: ignore[arg-type]


def small_entry(source: str, *files: CatalogueFile) -> CatalogueEntry:
    return CatalogueEntry(
        name="small[bold]",
        title="Two rows",
        about="one number, one letter [red]and markup",
        kind="tree",
        source=source,
        files=files,
        features=3,
        nodes=4,
        edges=3,
        unscored=("root",),
        citations=("A. Author. A paper.",),
        licence="None known.",
    )


SMALL_ARFF = b"""@RELATION small
@ATTRIBUTE number numeric
@ATTRIBUTE letter {a,b}
@ATTRIBUTE class hierarchical 01,01/02,03
@DATA
1.5,a,01/02
?,b,03
"""
