"""Streams of a real llama.cpp: the same reply as whole, in the protocols that it speaks; a client that leaves."""

import asyncio

import httpx
import msgspec
import pytest

from forge.interpreters.http import HttpSender
from stages.effect import Replied, Reply, Request, Send
from stages.message import User
from stages.wire.deltas import Delta, Ended
from stages.wire.sampling import Sampling
from stages.wire.wires import ANTHROPIC, OPENAI, Wire

HISTORY = (User(text="Name three colours."),)


def request(wire: Wire, tokens: int) -> Send:
    head = wire.head("m", Sampling(temperature=0.0, max_tokens=tokens), HISTORY)
    return Send(request=Request(head=head, messages=wire.messages(HISTORY)), turn=1)


@pytest.mark.parametrize("wire", [OPENAI, ANTHROPIC], ids=lambda wire: wire.name)
def test_a_stream_makes_the_reply_of_the_same_request_without_one(smol: str, wire: Wire) -> None:
    told: list[Delta] = []

    async def go() -> tuple[Reply, Reply]:
        async with httpx.AsyncClient(timeout=60) as client:
            interpret = HttpSender(client, f"{smol}/v1", wire=wire)
            await interpret(request(wire, 12))  # so that the cache is as warm for both
            whole, streamed = await interpret(request(wire, 12)), await interpret(request(wire, 12), told.append)
            assert isinstance(whole, Replied), whole
            assert isinstance(streamed, Replied), streamed
            return whole.reply, streamed.reply

    whole, streamed = asyncio.run(go())
    assert whole.text
    assert msgspec.structs.replace(streamed, usage=None) == msgspec.structs.replace(whole, usage=None)
    assert streamed.usage is not None
    assert whole.usage is not None
    assert streamed.usage.completion == whole.usage.completion
    assert isinstance(told[-1], Ended)


def test_a_client_that_leaves_frees_the_server(smol: str) -> None:
    """The second request is answered though the first would go on for minutes: there is one slot."""

    async def go() -> object:
        begun = asyncio.Event()
        async with httpx.AsyncClient(timeout=60) as client:
            interpret = HttpSender(client, f"{smol}/v1")
            long = asyncio.ensure_future(interpret(request(OPENAI, 3000), lambda _: begun.set()))
            await begun.wait()
            long.cancel()
            with pytest.raises(asyncio.CancelledError):
                await long
            return await interpret(request(OPENAI, 2))

    assert isinstance(asyncio.run(go()), Replied)
