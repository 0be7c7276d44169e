"""Servers of the tests, each a process of its own on a free port: `JsonHandler` speaks JSON, `RawHandler` bytes."""

import json
import socketserver
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any


class JsonHandler(BaseHTTPRequestHandler):
    """`post` is given the request as JSON; `tell` answers with JSON, or with bytes of any kind."""

    def do_GET(self) -> None:
        self.get()

    def do_POST(self) -> None:
        self.post(json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}"))

    def get(self) -> None:
        self.tell(404, {})

    def post(self, body: Any) -> None:
        self.tell(404, {})

    def tell(self, status: int, body: object, kind: str = "application/json", location: str = "") -> None:
        encoded = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(encoded)))
        if location:
            self.send_header("location", location)
        self.end_headers()
        self.wfile.write(encoded)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the standard library's
        """Nothing: the test says what is wrong."""


class RawHandler(socketserver.StreamRequestHandler):
    """Reads one request by hand, so that anything at all can be the answer to it, and half of that."""

    def handle(self) -> None:
        self.path = self.rfile.readline().split()[1].decode()
        length = 0
        while (header := self.rfile.readline().strip().lower()) != b"":
            if header.startswith(b"content-length:"):
                length = int(header.partition(b":")[2])
        self.answer(self.rfile.read(length))

    def answer(self, body: bytes) -> None:
        raise NotImplementedError


@contextmanager
def process(script: str, *arguments: str) -> Iterator[str]:
    """The address of a fresh process of that file, which calls `serve`."""
    root = Path(__file__).parents[1]
    module = ".".join((root / "tests" / script).relative_to(root).with_suffix("").parts)
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as running:
        assert running.stdout is not None
        try:
            yield f"http://127.0.0.1:{running.stdout.readline().strip()}"
        finally:
            running.terminate()


class _Server(ThreadingHTTPServer):
    daemon_threads = True


@contextmanager
def threaded(handler: type[socketserver.StreamRequestHandler], port: int = 0) -> Iterator[str]:
    """The address of a server in a thread of this process, for what a test wants to see of it."""
    with _Server(("127.0.0.1", port), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def serve(handler: type[socketserver.StreamRequestHandler]) -> None:
    """Print the port, and answer for as long as the process lives."""
    with _Server(("127.0.0.1", 0), handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()
