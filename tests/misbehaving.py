"""A real server process that misbehaves on demand: the path of the base URL says how.

It is a process of its own, so that a broken connection is a real one.
"""

import gzip
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate

from tests.serving import RawHandler, process, serve

GOOD = json.dumps(
    {
        "choices": [{"message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}},
    }
).encode()


def answer(status: str, body: bytes, *headers: str, length: int | None = None) -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", "Connection: close"]
    return "\r\n".join((*head, "Content-Type: application/json", *headers)).encode() + b"\r\n\r\n" + body


class Handler(RawHandler):
    """Answers one request as its first path segment says; `counts` are requests by that segment."""

    counts: dict[str, int] = {}  # noqa: RUF012 - one server a process

    def answer(self, body: bytes) -> None:
        path = self.path = self.path.strip("/")
        how = path.split("/")[0]
        if path.endswith(("props", "models")):
            self.wfile.write(self._about(how, path))
            return
        if path.endswith("count"):
            self.wfile.write(answer("200 OK", str(Handler.counts.get(path.removesuffix("/count"), 0)).encode()))
            return
        key = path.removesuffix("/chat/completions")
        Handler.counts[key] = count = Handler.counts.get(key, 0) + 1
        getattr(self, f"how_{how}")(count)

    def _about(self, how: str, path: str) -> bytes:
        if how == "llama" and path.endswith("props"):
            return answer("200 OK", b'{"default_generation_settings":{"n_ctx":2048},"chat_template":""}')
        if how == "vllm" and path.endswith("models"):
            return answer("200 OK", b'{"data":[{"id":"served","owned_by":"vllm","max_model_len":32768}]}')
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
        self.wfile.write(answer("200 OK", b"<html>It works!</html>").replace(b"application/json", b"text/html"))

    def how_page(self, count: int) -> None:
        page = b"<!DOCTYPE HTML><html><h1>Error response</h1></html>"
        self.wfile.write(answer("501 Unsupported method", page).replace(b"application/json", b"text/html"))

    def how_empty(self, count: int) -> None:
        self.wfile.write(answer("200 OK", b'{"choices":[]}'))

    def how_huge(self, count: int) -> None:
        """A body without end, as far as the client goes along."""
        self._pour(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n", b"x" * 65536)

    def how_silent(self, count: int) -> None:
        """Never answers; returns when the client has gone."""
        self.rfile.read(1)

    def how_flaky(self, count: int) -> None:
        """Fails once with the status that the path names, and once more in the same words."""
        status = self.path.split("/")[1]
        refusal = answer(f"{status} Whatever", b'{"error":{"message":"a moment"}}')
        self.wfile.write(refusal if count < 3 else answer("200 OK", GOOD))

    def how_stuck(self, count: int) -> None:
        """llama.cpp, about a history with damaged arguments: recorded in data/llama-server, the same for ever."""
        message = "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error"
        body = json.dumps({"error": {"code": 500, "message": message, "type": "server_error"}}).encode()
        self.wfile.write(answer("500 Internal Server Error", body))

    def how_date(self, count: int) -> None:
        """Asks to come back at a time of its own clock, which is an hour late: now."""
        late = formatdate(usegmt=True, timeval=1_000_000_000)
        busy = answer("429 Too Many Requests", b"{}", f"Date: {late}", f"Retry-After: {late}")
        self.wfile.write(busy if count < 2 else answer("200 OK", GOOD))

    def how_milliseconds(self, count: int) -> None:
        busy = answer("503 Service Unavailable", b"{}", "retry-after-ms: 1.5", "Retry-After: 3600")
        self.wfile.write(busy if count < 2 else answer("200 OK", GOOD))

    def how_hopeless(self, count: int) -> None:
        self.wfile.write(answer("429 Too Many Requests", b'{"error":"quota"}', "x-should-retry: false"))

    def how_hopeful(self, count: int) -> None:
        busy = answer("400 Bad Request", b"{}", "x-should-retry: true")
        self.wfile.write(busy if count < 2 else answer("200 OK", GOOD))

    def how_headless(self, count: int) -> None:
        """Closes before the head, or in it, then answers."""
        if count > 2:
            self.wfile.write(answer("200 OK", GOOD))
        elif count == 2:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Ty")

    def how_truncated(self, count: int) -> None:
        """A body of the promised length, and half a JSON; whole the next time."""
        self.wfile.write(answer("200 OK", GOOD[:40] if count < 2 else GOOD))

    def how_nothing(self, count: int) -> None:
        self.wfile.write(answer("200 OK", b""))

    def how_deep(self, count: int) -> None:
        self.wfile.write(answer("200 OK", b'{"choices":' + b"[" * 50_000))

    def how_reported(self, count: int) -> None:
        self.wfile.write(answer("200 OK", b'{"error":{"message":"no memory left","type":"server_error"}}'))

    def how_moved(self, count: int) -> None:
        self.wfile.write(answer("308 Permanent Redirect", b"", "Location: https://elsewhere.example/v1"))

    def how_bomb(self, count: int) -> None:
        """A gigabyte of blanks, packed, though nobody asked for that."""
        packed = gzip.compress(b" " * 1_000_000) * 1000
        self.wfile.write(answer("200 OK", packed, "Content-Encoding: gzip"))

    def how_refusal(self, count: int) -> None:
        """A refusal without end, as far as the client goes along."""
        self._pour(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", b"x" * 65536)

    def how_charge(self, count: int) -> None:
        """A refusal of a gigabyte, packed."""
        packed = gzip.compress(b" " * 1_000_000) * 1000
        self.wfile.write(answer("400 Bad Request", packed, "Content-Encoding: gzip"))

    def how_headers(self, count: int) -> None:
        """A head without end."""
        self._pour(b"HTTP/1.1 200 OK\r\n", b"X-Filler: yes\r\n" * 100)

    def how_line(self, count: int) -> None:
        """A line of a head without end."""
        self._pour(b"HTTP/1.1 200 OK\r\nX-Filler: ", b"x" * 10_000)

    def how_drip(self, count: int) -> None:
        """A byte now and then: never silent, never done."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
        self.connection.settimeout(0.02)
        while True:
            try:
                if not self.connection.recv(1):
                    return  # the client has gone
            except TimeoutError:
                self.wfile.write(b" ")

    def how_garbage(self, count: int) -> None:
        self.wfile.write(b"\x00\xffSSH-2.0-not-http\r\n\r\n")

    def _pour(self, head: bytes, filler: bytes) -> None:
        self.wfile.write(head)
        try:
            for _ in range(2000):
                self.wfile.write(filler)
        except OSError:
            pass


@contextmanager
def misbehaving() -> Iterator[str]:
    """The address of a fresh server process."""
    with process(__file__) as address:
        yield address


if __name__ == "__main__":
    serve(Handler)
