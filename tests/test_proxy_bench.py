"""The bench of the proxy measures what it says: replies that fit their tools, and ratios to the limit."""

import asyncio

import pytest

from benchmarks.proxy.backend import CALL, CALL_EVENTS, TEXT, TEXT_EVENTS
from benchmarks.proxy.bodies import bodies
from benchmarks.proxy.report import Measured, Session, Streams, report
from benchmarks.results import machine
from tests.scripted_model import streamed, whole
from tests.test_proxy import behind


@pytest.mark.parametrize("case", bodies())
async def test_every_case_is_a_clean_first_attempt(case: str) -> None:
    text = case.startswith(("chat", "paced"))
    stream = b'"stream": true' in bodies()[case]
    events = TEXT_EVENTS if text else CALL_EVENTS
    async with behind(streamed(*events) if stream else whole(TEXT if text else CALL)) as there:
        status, body, headers = await there.post("/v1/chat/completions", bodies()[case])
        assert status == 200
        assert body == (b"".join(events) if stream else TEXT if text else CALL)
        assert there.model.asked == [bodies()[case]]
        if not stream:
            assert headers["x-forge-outcome"] == ("passed" if text else "clean")


def test_the_page_has_ratios_to_the_limit() -> None:
    costs = {"agent": {"limit": [10.0, 10.0, 10.0], "forge proxy": [40.0, 41.0, 42.0]}}
    page = report(
        machine(),
        Measured(
            costs, {"forge proxy": 0.5}, Session(1000, 50.0, 10000, 50.5), Streams(200, 0.5, 1.0, 60.0), (1.0, 2.0)
        ),
    )
    assert "| forge proxy | 41 ±1 (4.1 x) |" in page
    assert "50.0 MiB after 1,000 requests of the agent, 50.5 MiB after 10,000" in page


async def test_the_load_is_spread_over_connections_and_a_closed_one_is_replaced() -> None:
    from benchmarks.proxy.loader import load

    asked = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        await reader.readuntil(b"\r\n\r\nhello")
        asked += 1
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        done = await load(server.sockets[0].getsockname()[1], b"hello", 7, 3)
    assert (len(done.whole), asked) == (7, 7)
