"""A real server process that plays the model of a three-step workflow, and fails four times out of five.

The path of a request begins with a run's name. Which requests fail, and how, follows from that name and the number of
the request, so it is the same each time.
"""

import json
import random
import socket
from collections.abc import Callable
from functools import partial

from tests.serving import RawHandler, process, serve

MARK = "FAULT-OF-THE-TRANSPORT"
"""Stands in all that a fault says: it must never come back in a request."""

RATE = 0.8
STEPS = (("look", '{"what": "a"}'), ("write", '{"what": "a", "text": "x"}'), ("finish", '{"result": "done"}'))
HEAD = "HTTP/1.1 {}\r\nConnection: close\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n"


def answer(status: str, body: bytes, kind: str = "application/json", length: int | None = None) -> bytes:
    return HEAD.format(status, kind, len(body) if length is None else length).encode() + body


def reply(done: int, *, stream: bool) -> bytes:
    """The next call of the workflow, as the server says it to a conversation with so many results."""
    name, arguments = STEPS[done]
    call = {"index": 0, "id": f"c{done}", "type": "function", "function": {"name": name, "arguments": arguments}}
    if not stream:
        choice = {
            "message": {"role": "assistant", "content": None, "tool_calls": [call]},
            "finish_reason": "tool_calls",
        }
        return answer("200 OK", json.dumps({"choices": [choice]}).encode())
    begun = {**call, "function": {"name": name, "arguments": ""}}
    parts = [{"index": 0, "function": {"arguments": letter}} for letter in arguments]
    deltas = [({"tool_calls": [part]}, None) for part in (begun, *parts)]
    chunks = [{"choices": [{"delta": delta, "finish_reason": why}]} for delta, why in (*deltas, ({}, "tool_calls"))]
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return answer("200 OK", "".join((*lines, "data: [DONE]\n\n")).encode(), "text/event-stream")


Break = Callable[[bytes, random.Random], tuple[bytes, bool]]
"""From the good answer to what is sent instead, and whether the connection is then reset instead of closed."""


def status(code: int) -> Break:
    body = json.dumps({"error": {"message": MARK, "code": code}}).encode()
    return lambda _, __: (answer(f"{code} {MARK}", body), False)


def cut(data: bytes, at: random.Random) -> tuple[bytes, bool]:
    """Ends anywhere, in the head or in the body."""
    return data[: at.randrange(len(data) - 20)], at.random() < 0.5


def spoilt(kind: str, body: bytes) -> Break:
    return lambda _, __: (answer("200 OK", body, kind), False)


def in_stream(data: bytes, at: random.Random) -> tuple[bytes, bool]:
    """An error object in the middle of a stream, or in a whole answer's place."""
    head, _, body = data.partition(b"\r\n\r\n")
    error = json.dumps({"error": {"message": MARK, "code": 503}}).encode()
    if b"event-stream" not in head:
        return answer("200 OK", error), False
    events = body.split(b"\n\n")
    kept = events[: at.randrange(len(events) - 2)]
    return answer("200 OK", b"\n\n".join((*kept, b"data: " + error, b"")), "text/event-stream"), False


BREAKS: tuple[Break, ...] = (
    *map(status, (408, 409, 425, 429, 500, 502, 503, 504, 529, 400)),
    *([cut] * 8),
    *([in_stream] * 4),
    lambda _, __: (b"", True),
    lambda _, __: (b"", False),
    spoilt("application/json", b'{"choices": [' + MARK.encode()),
    spoilt("text/html", f"<html>{MARK}</html>".encode()),
    spoilt("application/json", b""),
)


class Handler(RawHandler):
    """Answers one request; `asked` counts them by run."""

    asked: dict[str, int] = {}  # noqa: RUF012 - one server a process
    faults = 0
    leaks = 0

    def answer(self, body: bytes) -> None:
        if self.path == "/counts":
            self.wfile.write(answer("200 OK", json.dumps([Handler.faults, Handler.leaks]).encode()))
            return
        Handler.leaks += MARK.encode() in body
        run = self.path.split("/")[1]
        Handler.asked[run] = number = Handler.asked.get(run, 0) + 1
        self._answer(json.loads(body), random.Random(f"{run} {number}"))  # noqa: S311 - the same each time

    def _answer(self, request: dict[str, object], luck: random.Random) -> None:
        messages = request["messages"]
        assert isinstance(messages, list)
        done = sum(message["role"] == "tool" for message in messages)
        good = reply(done, stream=bool(request.get("stream")))
        if luck.random() > RATE:
            self.wfile.write(good)
            return
        Handler.faults += 1
        data, reset = luck.choice(BREAKS)(good, luck)
        self.wfile.write(data)
        self.wfile.flush()
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


faulty = partial(process, __file__)
"""The address of a fresh server process, as a context manager."""


if __name__ == "__main__":
    serve(Handler)
