"""The messages of a client on two descriptors: what cannot be read is answered, and nothing piles up."""

import asyncio
import json
import os

import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse

from forge.mcp.streams import byte_streams

MOST = 16 << 20
PING = b'{"jsonrpc":"2.0","id":8,"method":"ping"}\n'
CALL = b'"method":"tools/call","params":'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"id":7,"method":"ping"}', "the request is not valid JSON-RPC 2.0"),
        (b'{"jsonrpc":"1.0","id":"7","method":"ping"}', "the request is not valid JSON-RPC 2.0"),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[1]}', "the request is not valid JSON-RPC 2.0"),
        (b'{"jsonrpc":"2.0","id":7,' + CALL + b'{"a":"\\ud800"}}', "the request is not valid JSON-RPC 2.0"),
        (b'{"jsonrpc":"2.0","id":7,' + CALL + b'{"a":' * 9000 + b"1" + b"}" * 9001, "no valid JSON-RPC 2.0"),
        (b'{"jsonrpc":"2.0","id":7,' + CALL + b'{"a":"' + b"x" * MOST + b'"}}', "at most 16,777,216 are read"),
        (b"{", None),
        (b'{"jsonrpc":"1.0","method":"ping"}', None),
        (b'{"jsonrpc":"1.0","id":7,"result":{}}', None),
    ],
    ids=["no version", "another version", "params", "half a character", "deep", "long", "torn", "no id", "an answer"],
)
def test_a_request_that_cannot_be_read_is_answered_where_its_id_can_be(line: bytes, said: str | None) -> None:
    async def answer() -> bytes:
        (asked, source), (answered, target) = os.pipe(), os.pipe()
        with os.fdopen(answered, "rb") as taken, os.fdopen(source, "wb") as writing, os.fdopen(target, "wb") as told:
            async with byte_streams(asked, told.fileno()) as (from_client, to_client), from_client, to_client:
                sent = asyncio.create_task(asyncio.to_thread(_write, source, line + b"\n" + PING))
                while not isinstance(item := await from_client.receive(), SessionMessage):
                    pass
                await sent
                assert isinstance(item.message, JSONRPCRequest)
                assert item.message.id == 8
                await to_client.send(SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=8, result={})))
                first = await asyncio.to_thread(taken.readline)
                writing.close()
            return first

    found = json.loads(asyncio.run(answer()))
    assert str(found["id"]) == ("7" if said else "8")
    assert said is None or said in found["error"]["message"]


async def test_of_a_client_that_takes_no_answers_no_more_is_read_until_it_does() -> None:
    (asked, source), (answered, target) = os.pipe(), os.pipe()
    every, read, tasks = asyncio.Event(), 0, set[asyncio.Task[None]]()
    async with byte_streams(asked, target) as (from_client, to_client), from_client, to_client:

        async def serve() -> None:
            nonlocal read
            async for item in from_client:
                assert isinstance(item, SessionMessage)
                read += 1
                every.set() if read == 3000 else None
                answer = JSONRPCResponse(jsonrpc="2.0", id=read, result={"text": "x" * 9000})
                tasks.add(asyncio.create_task(to_client.send(SessionMessage(answer))))

        serving = asyncio.create_task(serve())
        lines = b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % n for n in range(3000))
        writing = asyncio.create_task(asyncio.to_thread(_write, source, lines))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(every.wait(), 1)
        assert read < 1100
        with os.fdopen(answered, "rb") as taken:
            for _ in range(3000):
                await asyncio.to_thread(taken.readline)
        await asyncio.gather(writing, *tasks)
        assert read == 3000
        os.close(source)
        await serving
    os.close(target)


def _write(target: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(target, left) :]
