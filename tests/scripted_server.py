"""A real server process that answers posts from a script, in turn: JSON lines in a file; GET gives what was asked.

Run as a script it prints its port.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx


class Handler(BaseHTTPRequestHandler):
    """The next line of the script for each request."""

    script: Iterator[str]
    asked: list[object] = []  # noqa: RUF012 - one server a process

    def do_POST(self) -> None:
        Handler.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self._answer(next(Handler.script))

    def do_GET(self) -> None:
        self._answer(json.dumps(Handler.asked))

    def _answer(self, body: str) -> None:
        encoded = body.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(encoded)))
        self.end_headers()
        self.wfile.write(encoded)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def scripted_server(folder: Path, script: Sequence[object]) -> Iterator[str]:
    """The address of a server with that script, until the end of the block."""
    file = folder / "script.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in script))
    with subprocess.Popen([sys.executable, __file__, str(file)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def requests_of(address: str) -> list[dict[str, object]]:
    """The bodies of all requests so far."""
    asked: list[dict[str, object]] = httpx.get(address).json()
    return asked


if __name__ == "__main__":
    Handler.script = iter(Path(sys.argv[1]).read_text().splitlines())
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()
