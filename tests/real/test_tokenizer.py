"""llama.cpp's tokenizer: what it counts beforehand is what its replies report."""

import asyncio

import httpx
import pytest

from benchmarks.tokens_record import bodies, reported
from forge.backends.questions import Tokenizer
from stages.wire.target import Mode
from tests.token_runs import runs


@pytest.mark.parametrize("mode", ["native", pytest.param("prompted", marks=pytest.mark.soak), "constrained"])
def test_the_server_reports_what_it_counted(smol: str, mode: Mode) -> None:
    async def go() -> tuple[list[int | None], list[int]]:
        async with httpx.AsyncClient(timeout=300) as client:
            asked = bodies(runs()["orders"], mode)[:2]
            counted = [await Tokenizer(client, smol).count(body) for body in asked]
            return counted, [await reported(client, smol, body) for body in asked]

    counted, said = asyncio.run(go())
    assert counted == said
