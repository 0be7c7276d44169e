"""Agents of pydantic-ai on all three protocols: a tool and a last word, whole and streamed, and a typed answer."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

from tests.clients import anthropic_layers, openai_layers
from tests.clients.layers import ASK, TOKENS, TURNS, WHERE, Layer, Place, ran

Make = Callable[[str], AbstractAsyncContextManager[Model]]
LIMITS: Any = {
    "usage_limits": UsageLimits(request_limit=TURNS),
    "model_settings": {"max_tokens": TOKENS, "temperature": 0},
}


@asynccontextmanager
async def chat(url: str) -> AsyncIterator[Model]:
    async with openai_layers.client(url) as client:
        yield OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))


@asynccontextmanager
async def responses(url: str) -> AsyncIterator[Model]:
    async with openai_layers.client(url) as client:
        yield OpenAIResponsesModel("m", provider=OpenAIProvider(openai_client=client))


@asynccontextmanager
async def messages(url: str) -> AsyncIterator[Model]:
    async with anthropic_layers.client(url) as client:
        yield AnthropicModel("m", provider=AnthropicProvider(anthropic_client=client))


class Shell:
    """A tool, and the commands that it was called with."""

    def __init__(self) -> None:
        self.commands: list[str] = []

    def shell(self, command: str) -> str:
        """Run a command."""
        self.commands.append(command)
        return ran(command)


def _whole(make: Make) -> Layer:
    async def layer(url: str) -> None:
        tool = Shell()
        async with make(url) as model:
            assert (await Agent(model, tools=[tool.shell]).run(ASK, **LIMITS)).output
        assert tool.commands

    return layer


def _streamed(make: Make) -> Layer:
    async def layer(url: str) -> None:
        tool = Shell()
        async with make(url) as model, Agent(model, tools=[tool.shell]).run_stream(ASK, **LIMITS) as result:
            assert "".join([part async for part in result.stream_text(delta=True)])
        assert tool.commands

    return layer


def _typed(make: Make) -> Layer:
    """The answer is the arguments of a tool that must be called."""

    async def layer(url: str) -> None:
        async with make(url) as model:
            answer = await Agent(model, output_type=Place).run(WHERE[0]["content"], **LIMITS)
        assert isinstance(answer.output, Place)

    return layer


LAYERS: dict[str, Layer] = {
    f"{make.__name__}{name}": kind(make)
    for make in (chat, responses, messages)
    for name, kind in (("", _whole), ("_stream", _streamed), ("_typed", _typed))
}
