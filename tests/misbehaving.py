"""A real server process that misbehaves on demand: the path of the base URL says how.

It is a process of its own, so that a broken connection is a real one.
"""

import gzip
import json
import socket
from email.utils import formatdate
from functools import partial

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


def page(status: str, body: bytes) -> bytes:
    return answer(status, body).replace(b"application/json", b"text/html")


def error(**told: object) -> bytes:
    return json.dumps({"error": told}).encode()


FINE = answer("200 OK", GOOD)
CUT = answer("200 OK", GOOD[:40], length=len(GOOD))
"""It promises more than it sends."""
LATE = formatdate(usegmt=True, timeval=1_000_000_000)
"""The time by its own clock, which is an hour late: now."""
GIGABYTE = gzip.compress(b" " * 1_000_000) * 1000
STUCK = "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error"
"""llama.cpp, about a history with damaged arguments: recorded in data/llama-server, the same for ever."""

ANSWERS: dict[str, tuple[bytes, ...]] = {
    "good": (FINE,),
    "llama": (FINE,),
    "vllm": (FINE,),
    "busy": (*[answer("429 Too Many Requests", b'{"error":"slow down"}', "Retry-After: 0")] * 2, FINE),
    "loading": (answer("503 Service Unavailable", error(message="Loading model")), FINE),
    "patient": (answer("429 Too Many Requests", b"{}", "Retry-After: 86400"),),
    "wrong": (answer("400 Bad Request", error(message="exceed_context_size_error")),),
    "cut": (CUT, FINE),
    "html": (page("200 OK", b"<html>It works!</html>"),),
    "page": (page("501 Unsupported method", b"<!DOCTYPE HTML><html><h1>Error response</h1></html>"),),
    "empty": (answer("200 OK", b'{"choices":[]}'),),
    "stuck": (answer("500 Internal Server Error", error(code=500, message=STUCK, type="server_error")),),
    "date": (answer("429 Too Many Requests", b"{}", f"Date: {LATE}", f"Retry-After: {LATE}"), FINE),
    "milliseconds": (answer("503 Service Unavailable", b"{}", "retry-after-ms: 1.5", "Retry-After: 3600"), FINE),
    "hopeless": (answer("429 Too Many Requests", b'{"error":"quota"}', "x-should-retry: false"),),
    "hopeful": (answer("400 Bad Request", b"{}", "x-should-retry: true"), FINE),
    # Closes before the head, or in it, then answers.
    "headless": (b"", b"HTTP/1.1 200 OK\r\nContent-Ty", FINE),
    # A body of the promised length, and half a JSON; whole the next time.
    "truncated": (answer("200 OK", GOOD[:40]), FINE),
    "nothing": (answer("200 OK", b""),),
    "deep": (answer("200 OK", b'{"choices":' + b"[" * 50_000),),
    "reported": (answer("200 OK", error(message="no memory left", type="server_error")),),
    "moved": (answer("308 Permanent Redirect", b"", "Location: https://elsewhere.example/v1"),),
    # A gigabyte of blanks, packed, though nobody asked for that; and a refusal of the same.
    "bomb": (answer("200 OK", GIGABYTE, "Content-Encoding: gzip"),),
    "charge": (answer("400 Bad Request", GIGABYTE, "Content-Encoding: gzip"),),
    "garbage": (b"\x00\xffSSH-2.0-not-http\r\n\r\n",),
}
"""What it says to the first request, to the second and so on, and with the last to all that follow."""

ENDLESS = {
    "huge": (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n", b"x" * 65536),
    "refusal": (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", b"x" * 65536),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X-Filler: yes\r\n" * 100),
    "line": (b"HTTP/1.1 200 OK\r\nX-Filler: ", b"x" * 10_000),
}
"""How an answer without end begins, and goes on as far as the client goes along."""


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
        if how in ENDLESS:
            self._pour(*ENDLESS[how])
        elif said := ANSWERS.get(how):
            self.wfile.write(said[min(count, len(said)) - 1])
        else:
            getattr(self, f"how_{how}")(count)

    def _about(self, how: str, path: str) -> bytes:
        if how == "llama" and path.endswith("props"):
            return answer("200 OK", b'{"default_generation_settings":{"n_ctx":2048},"chat_template":""}')
        if how == "vllm" and path.endswith("models"):
            return answer("200 OK", b'{"data":[{"id":"served","owned_by":"vllm","max_model_len":32768}]}')
        return answer("404 Not Found", b'{"error":"no such page"}')

    def how_reset(self, count: int) -> None:
        """Resets the connection in the middle, always."""
        self.wfile.write(CUT)
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    def how_silent(self, count: int) -> None:
        """Never answers; returns when the client has gone."""
        self.rfile.read(1)

    def how_flaky(self, count: int) -> None:
        """Fails once with the status that the path names, and once more in the same words."""
        status = self.path.split("/")[1]
        refusal = answer(f"{status} Whatever", b'{"error":{"message":"a moment"}}')
        self.wfile.write(refusal if count < 3 else FINE)

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

    def _pour(self, head: bytes, filler: bytes) -> None:
        self.wfile.write(head)
        try:
            for _ in range(2000):
                self.wfile.write(filler)
        except OSError:
            pass


misbehaving = partial(process, __file__)
"""The address of a fresh server process, as a context manager."""


if __name__ == "__main__":
    serve(Handler)
