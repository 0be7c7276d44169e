"""A real server process that misbehaves on demand: the path of the base URL says how.

Run as a script it prints its port. It is a process of its own, so that a broken connection is a real one.
"""

import json
import socket
import socketserver
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

GOOD = json.dumps(
    {
        "choices": [{"message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}},
    }
).encode()


def answer(status: str, body: bytes, *headers: str, length: int | None = None) -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", "Connection: close"]
    return "\r\n".join((*head, "Content-Type: application/json", *headers)).encode() + b"\r\n\r\n" + body


class Handler(socketserver.StreamRequestHandler):
    """Answers one request as its first path segment says; `counts` are requests by that segment."""

    counts: dict[str, int] = {}  # noqa: RUF012 - one server a process

    def handle(self) -> None:
        line = self.rfile.readline().decode()
        headers = {}
        while (header := self.rfile.readline().decode().strip()) != "":
            key, _, value = header.partition(":")
            headers[key.lower()] = value.strip()
        self.rfile.read(int(headers.get("content-length", 0)))
        path = line.split()[1].strip("/")
        how = path.split("/")[0]
        if path.endswith(("props", "models")):
            self.wfile.write(self._about(how, path))
            return
        if path.endswith("count"):
            self.wfile.write(answer("200 OK", str(Handler.counts.get(how, 0)).encode()))
            return
        Handler.counts[how] = count = Handler.counts.get(how, 0) + 1
        getattr(self, f"how_{how}")(count)

    def _about(self, how: str, path: str) -> bytes:
        if how == "llama" and path.endswith("props"):
            return answer("200 OK", b'{"default_generation_settings":{"n_ctx":2048},"chat_template":""}')
        if how == "vllm" and path.endswith("models"):
            return answer("200 OK", b'{"data":[{"id":"served","max_model_len":32768}]}')
        return answer("404 Not Found", b'{"error":"no such page"}')

    def how_good(self, count: int) -> None:
        self.wfile.write(answer("200 OK", GOOD))

    how_llama = how_vllm = how_good

    def how_busy(self, count: int) -> None:
        """Refuses twice, and says how long to wait."""
        busy = answer("429 Too Many Requests", b'{"error":"slow down"}', "Retry-After: 0")
        self.wfile.write(busy if count < 3 else answer("200 OK", GOOD))

    def how_loading(self, count: int) -> None:
        loading = answer("503 Service Unavailable", b'{"error":{"message":"Loading model"}}')
        self.wfile.write(loading if count < 2 else answer("200 OK", GOOD))

    def how_patient(self, count: int) -> None:
        """Asks for more patience than anyone has."""
        self.wfile.write(answer("429 Too Many Requests", b"{}", "Retry-After: 86400"))

    def how_wrong(self, count: int) -> None:
        self.wfile.write(answer("400 Bad Request", b'{"error":{"message":"exceed_context_size_error"}}'))

    def how_cut(self, count: int) -> None:
        """Promises more than it sends, once."""
        self.wfile.write(answer("200 OK", GOOD[:40], length=len(GOOD)) if count < 2 else answer("200 OK", GOOD))

    def how_reset(self, count: int) -> None:
        """Resets the connection in the middle, always."""
        self.wfile.write(answer("200 OK", GOOD[:40], length=len(GOOD)))
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    def how_html(self, count: int) -> None:
        self.wfile.write(answer("200 OK", b"<html>It works!</html>"))

    def how_empty(self, count: int) -> None:
        self.wfile.write(answer("200 OK", b'{"choices":[]}'))

    def how_huge(self, count: int) -> None:
        """A body without end, as far as the client goes along."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
        try:
            for _ in range(2000):
                self.wfile.write(b"x" * 65536)
        except OSError:
            pass

    def how_silent(self, count: int) -> None:
        """Never answers; returns when the client has gone."""
        self.rfile.read(1)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


@contextmanager
def misbehaving() -> Iterator[str]:
    """The address of a fresh server process."""
    with subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


if __name__ == "__main__":
    with Server(("127.0.0.1", 0), Handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()
