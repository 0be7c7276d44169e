"""The gate: a chat completions server for a peer, whose requests go on as those of a run do.

So a peer gets the same sampling and seeds, its model calls and tokens are counted in the same place, and it is held to
the same context. What a peer says of sampling is replaced by what all players get.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec import Raw

from forge.connection import Setup
from forge.interpreters import Interpreter
from stages.effect import Replied, Reply, Request, Send, Undelivered, Usage
from stages.wire.sampling import options


@asynccontextmanager
async def gate(perform: Interpreter, setup: Setup) -> AsyncIterator[str]:
    """The address of the gate; requests go to what `perform` performs, asked as that setup says."""
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            while (asked := await _request(reader)) is not None:
                status, answer = await _answer(perform, setup, *asked)
                head = (
                    f"HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\ncontent-length: {len(answer)}\r\n\r\n"
                )
                writer.write(head.encode() + answer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the peer is gone, or the run is over
        finally:
            writer.close()
            serving.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 24)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in serving:
            task.cancel()


async def _request(reader: asyncio.StreamReader) -> tuple[str, bytes] | None:
    """The path and the body of the next request; None where there is no more."""
    first = await reader.readline()
    if not first.strip():
        return None
    length = 0
    while (header := (await reader.readline()).strip().lower()) != b"":
        if header.startswith(b"content-length:"):
            length = int(header.partition(b":")[2])
    return first.split(b" ")[1].decode(), await reader.readexactly(length)


async def _answer(perform: Interpreter, setup: Setup, path: str, body: bytes) -> tuple[int, bytes]:
    if not path.endswith("/chat/completions"):
        return 404, b"{}"
    fields = msgspec.json.decode(body, type=dict[str, Raw])
    messages = msgspec.json.decode(fields.pop("messages"), type=list[Raw])
    sampled = options(setup.sampling, setup.dialect.option_names)
    fixed: dict[str, object] = {"model": setup.model, "stream": False, **sampled, **setup.sampling.extra}
    fields.pop("max_completion_tokens", None)
    head = Raw(msgspec.json.encode({**fields, **fixed}))
    match await perform(Send(request=Request(head=head, messages=tuple(messages)), turn=0)):
        case Replied(reply=reply):
            return 200, msgspec.json.encode(completion(reply))
        case Undelivered(fault=fault):
            said = {"error": {"message": fault.detail, "code": fault.status}}
            return fault.status or 502, fault.body.encode() or msgspec.json.encode(said)
        case other:
            raise TypeError(f"a request was answered with {type(other).__name__}")


def completion(reply: Reply) -> dict[str, Any]:
    """The reply as a chat completion, its calls as the server gave them."""
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.calls
    ]
    message: dict[str, object] = {"role": "assistant", "content": reply.text or (None if calls else "")}
    message |= {"tool_calls": calls} if calls else {}
    message |= {"reasoning_content": reply.reasoning} if reply.reasoning else {}
    took = reply.usage or Usage()
    total = took.prompt + took.completion
    return {
        "id": "chatcmpl-gate",
        "object": "chat.completion",
        "created": 0,
        "model": "model",
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
        "usage": {"prompt_tokens": took.prompt, "completion_tokens": took.completion, "total_tokens": total},
    }
