"""A model server that answers at once: `python -m benchmarks.proxy.backend` prints its port."""

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import uvloop

from benchmarks.proxy.wire import EVENT_STREAM, Requests, chunk, serve, whole

WORDS = [f"word{n} " for n in range(50)]
PACE = 0.004
"""Seconds between two chunks of the model `paced`."""

_CALL = {"id": "call_x", "type": "function", "function": {"name": "search", "arguments": '{"p0": "item 19", "p1": 5}'}}
_CALLED, _PACED = re.compile(rb'"model": ?"call"'), re.compile(rb'"model": ?"paced"')
_STREAMED = re.compile(rb'"stream": ?true')
_USAGE = {"prompt_tokens": 3000, "completion_tokens": 20, "total_tokens": 3020}


def _completion(message: dict[str, Any], finish: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    made = {"id": "chatcmpl-x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return json.dumps({**made, "usage": _USAGE}).encode()


def _event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    made = {"id": "chatcmpl-x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(made).encode() + b"\n\n"


def _stream(deltas: list[dict[str, Any]], finish: str) -> list[bytes]:
    first = _event({"role": "assistant", **deltas[0]})
    return [first, *map(_event, deltas[1:]), _event({}, finish), b"data: [DONE]\n\n"]


TEXT, CALL = (
    _completion({"content": "".join(WORDS)}, "stop"),
    _completion({"content": None, "tool_calls": [_CALL]}, "tool_calls"),
)
TEXT_EVENTS = _stream([{"content": word} for word in WORDS], "stop")
CALL_EVENTS = _stream([{"tool_calls": [{"index": 0, **_CALL}]}], "tool_calls")
LISTED = b'{"object":"list","data":[{"id":"text","object":"model","created":1,"owned_by":"x"}]}'


class Backend(Requests):
    """The server. A body is searched, not read: its own cost is the same whatever is asked."""

    def answer(self, head: bytes, body: bytes) -> None:
        if not head.startswith(b"POST"):
            self.transport.write(whole(LISTED))
            return
        called = _CALLED.search(body) is not None
        if not _STREAMED.search(body):
            self.transport.write(whole(CALL if called else TEXT))
            return
        self.transport.write(EVENT_STREAM)
        self._send(iter(CALL_EVENTS if called else TEXT_EVENTS), PACE if _PACED.search(body) else 0.0)

    def _send(self, events: Iterator[bytes], pace: float) -> None:
        """The next event, and later the others."""
        if self.transport.is_closing():
            return
        event = next(events, b"")
        self.transport.write(chunk(event))
        if event:
            asyncio.get_running_loop().call_later(pace, self._send, events, pace)


if __name__ == "__main__":
    uvloop.run(serve(Backend))
