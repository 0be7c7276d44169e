"""Layers: the ways in which a client's library is used; each is told an address, and raises unless all comes well."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pydantic import BaseModel

from tests.clients.script import LAST_WORD, MARK

Layer = Callable[[str], Awaitable[None]]

ASK = f"Use the tool to run this command: echo {MARK}"
MESSAGES: Any = [{"role": "user", "content": ASK}]
SCHEMA: Any = {
    "type": "object",
    "properties": {"command": {"type": "string"}},
    "required": ["command"],
    "additionalProperties": False,
}
BOUNDS: Any = {"temperature": 0}
TOKENS = 128
TURNS = 4
"""Of a loop, at most."""


class Place(BaseModel):
    """A place, and its number."""

    name: str
    number: int


WHERE: Any = [{"role": "user", "content": "The door is number 4. Give its name and its number as JSON."}]


def ran(command: str) -> str:
    """What the tool answers."""
    assert MARK in command
    return f"It printed: {MARK}"


def run_all(layers: Mapping[str, Layer]) -> None:
    """As a program: `ADDRESS` is its argument; the last word is said if each layer did what it should."""

    async def go() -> None:
        for name, layer in layers.items():
            print(name, flush=True)
            async with asyncio.timeout(60):
                await layer(sys.argv[1])

    asyncio.run(go())
    print(LAST_WORD)
