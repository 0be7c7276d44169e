"""Near the least that Python can do: a bare Protocol on both sides, bodies decoded and encoded once, nothing judged.

`python -m benchmarks.proxy.limit BACKEND_PORT PORT`. Streams are handed on as they come.
"""

import asyncio
import sys
from collections import deque

import msgspec
import uvloop
from msgspec import Raw, Struct

from benchmarks.proxy.wire import LENGTH, Requests, serve, whole


class Function(Struct):
    name: str
    arguments: str


class Call(Struct):
    id: str
    function: Function
    type: str = "function"


class Message(Struct, omit_defaults=True):
    role: str
    content: str | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None


class Request(Struct, omit_defaults=True):
    model: str
    messages: list[Message]
    tools: list[Raw] = []
    max_tokens: int | None = None
    stream: bool = False


class Choice(Struct):
    message: Message
    index: int = 0
    finish_reason: str | None = None


class Reply(Struct):
    id: str
    choices: list[Choice]
    usage: Raw
    object: str = "chat.completion"
    created: int = 0
    model: str = ""


_request, _reply = msgspec.json.Decoder(Request), msgspec.json.Decoder(Reply)
_arguments, _encode = msgspec.json.Decoder(dict[str, Raw]), msgspec.json.Encoder().encode
_idle: deque["Upstream"] = deque()
_HEAD = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
)


class Upstream(asyncio.Protocol):
    """A connection to the backend."""

    def __init__(self) -> None:
        self.transport: asyncio.WriteTransport
        self._buffer = bytearray()

    def ask(self, client: asyncio.WriteTransport, body: bytes, *, stream: bool) -> None:
        self._client, self._stream = client, stream
        self.transport.write(_HEAD % (len(body), body))

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._stream:
            self._client.write(data)
            if self._buffer.endswith(b"\r\n0\r\n\r\n"):
                self._rest()
            return
        end = self._buffer.find(b"\r\n\r\n")
        length = LENGTH.search(self._buffer, 0, end + 2)
        stop = end + 4 + (int(length[1]) if length else 0)
        if end < 0 or len(self._buffer) < stop:
            return
        reply = _reply.decode(self._buffer[end + 4 : stop])
        for call in reply.choices[0].message.tool_calls or ():
            _arguments.decode(call.function.arguments)
        self._client.write(whole(_encode(reply)))
        self._rest()

    def _rest(self) -> None:
        self._buffer.clear()
        _idle.append(self)


class Limit(Requests):
    """A connection of a client."""

    def answer(self, _: bytes, body: bytes) -> None:
        request = _request.decode(body)
        sent = _encode(request)
        if _idle:
            _idle.pop().ask(self.transport, sent, stream=request.stream)
        else:
            self._task = asyncio.get_running_loop().create_task(self._first(sent, stream=request.stream))

    async def _first(self, sent: bytes, *, stream: bool) -> None:
        loop = asyncio.get_running_loop()
        transport, upstream = await loop.create_connection(Upstream, "127.0.0.1", int(sys.argv[1]))
        upstream.transport = transport
        upstream.ask(self.transport, sent, stream=stream)


if __name__ == "__main__":
    uvloop.run(serve(Limit, int(sys.argv[2])))
