"""The official client for Python of Anthropic: messages plain, streamed, parsed, by its tool runner, and counted."""

import asyncio
from typing import Any

import anthropic

from tests.clients.layers import MESSAGES, SCHEMA, TOKENS, TURNS, WHERE, Layer, Place, ran, run_all

TOOLS: Any = [{"name": "shell", "description": "Run a command.", "input_schema": SCHEMA}]
ASKED: Any = {"model": "m", "max_tokens": TOKENS, "messages": MESSAGES}
CALLING: Any = {**ASKED, "tools": TOOLS}


@anthropic.beta_async_tool
async def shell(command: str) -> str:
    """Run a command.

    Args:
        command: the command
    """
    return ran(command)


def client(url: str) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(base_url=url, api_key="dummy", max_retries=0)


def _block(message: Any) -> None:
    (block,) = (block for block in message.content if block.type == "tool_use")
    assert (block.name, message.stop_reason) == ("shell", "tool_use")
    assert block.id
    ran(block.input["command"])


def _finished(turns: list[Any]) -> None:
    """Each turn but the last called; the last one is a text."""
    assert len(turns) > 1
    assert turns[-1].stop_reason == "end_turn"
    assert turns[-1].content[-1].text


async def create(url: str) -> None:
    async with client(url) as own:
        _block(await own.messages.create(**CALLING))


async def stream(url: str) -> None:
    """The events as they come."""
    async with client(url) as own:
        kinds = [event.type async for event in await own.messages.create(**CALLING, stream=True)]
        assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"])


async def stream_helper(url: str) -> None:
    async with client(url) as own, own.messages.stream(**CALLING) as events:
        _block(await events.get_final_message())


async def runner(url: str) -> None:
    async with client(url) as own:
        made = own.beta.messages.tool_runner(**ASKED, tools=[shell], max_iterations=TURNS)
        _finished([message async for message in made])


async def runner_stream(url: str) -> None:
    async with client(url) as own:
        made = own.beta.messages.tool_runner(**ASKED, tools=[shell], max_iterations=TURNS, stream=True)
        _finished([await events.get_final_message() async for events in made])


async def parse(url: str) -> None:
    async with client(url) as own:
        parsed = await own.messages.parse(**{**ASKED, "messages": WHERE}, output_format=Place)
        assert isinstance(parsed.parsed_output, Place)


async def count(url: str) -> None:
    """As many at once as an agent asks when it shows its context."""
    async with client(url) as own:
        asked: Any = {"model": "m", "messages": MESSAGES, "tools": TOOLS}
        counts = await asyncio.gather(*(own.messages.count_tokens(**asked) for _ in range(25)))
        assert all(count.input_tokens > 5 for count in counts)


async def models(url: str) -> None:
    async with client(url) as own:
        (first, *_) = [model.id async for model in own.models.list()]
        assert (await own.models.retrieve(first)).id == first


LAYERS: dict[str, Layer] = {
    layer.__name__: layer for layer in (create, stream, stream_helper, runner, runner_stream, parse, count, models)
}

if __name__ == "__main__":
    run_all(LAYERS)
