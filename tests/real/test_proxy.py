"""The proxy in front of a real llama.cpp: a call that a client can run, whole and streamed, and the prompt's cache."""

import json
from typing import Any

import openai
import pytest

from forge.proxy import ProxyOptions, ProxyServer
from tests.clients.libraries import layers_of

LAYERS = (
    *("openai: stream", "openai: responses_stream", "openai: parse", "openai: parse_tools", "openai: responses"),
    *("anthropic: stream_helper", "anthropic: create", "anthropic: parse"),
    *("langchain: chat", "langchain: structured_by_schema", "pydantic_ai: chat_stream", "pydantic_ai: messages_stream"),
)
"""Not the loops, in which so small a model calls again and again, whatever the tool answers."""

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city now.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
ASK: Any = [
    {"role": "system", "content": "Use the tools to answer. Call a tool, and say nothing else."},
    {"role": "user", "content": "What is the weather in Oslo?"},
]


async def test_a_small_models_call_reaches_an_unchanged_client(qwen: str) -> None:
    """This model writes its calls into the text, in fences: without the proxy a client sees no call at all."""
    async with (
        ProxyServer(qwen, ProxyOptions(port=0)) as proxy,
        openai.AsyncOpenAI(base_url=f"{proxy.url}/v1", api_key="none", max_retries=0) as client,
    ):
        asked: Any = {"model": "m", "messages": ASK, "tools": [WEATHER], "temperature": 0, "max_tokens": 96}
        whole = await client.chat.completions.create(**asked, tool_choice="required")
        assert call_of(whole) == ("get_weather", "oslo")
        async with client.chat.completions.stream(**asked, tool_choice="required") as stream:
            streamed = await stream.get_final_completion()
        assert call_of(streamed) == ("get_weather", "oslo")


@pytest.mark.soak  # what each makes of a scripted model is in tests/proxy/test_layers.py
@pytest.mark.parametrize("name", LAYERS)
async def test_libraries_get_their_call_of_a_small_model(qwen: str, name: str) -> None:
    library, _, layer = name.partition(": ")
    async with ProxyServer(qwen, ProxyOptions(port=0)) as proxy:
        await layers_of(library)[layer](proxy.url)


def call_of(completion: Any) -> tuple[str, str]:
    call = completion.choices[0].message.tool_calls[0]
    return call.function.name, json.loads(call.function.arguments)["city"].lower().split(",")[0]


@pytest.mark.soak  # that requests extend one another byte for byte is a law of wires
async def test_the_servers_prompt_cache_holds_over_a_session(qwen: str) -> None:
    """As many tokens are cached behind the proxy as without it, turn for turn."""

    async def cached(url: str, name: str) -> list[int]:
        messages = [{"role": "system", "content": f"You are {name}. " + "Be brief. " * 40}]
        found = []
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
            for turn in range(3):
                messages.append({"role": "user", "content": f"Say the number {turn}."})
                asked: Any = {"messages": messages, "tools": [WEATHER], "temperature": 0, "max_tokens": 8}
                reply = await client.chat.completions.create(model="m", **asked)
                details = reply.usage.prompt_tokens_details if reply.usage else None
                found.append(details.cached_tokens if details and details.cached_tokens else 0)
                messages.append({"role": "assistant", "content": "Done."})
        return found

    async with ProxyServer(qwen, ProxyOptions(port=0)) as proxy:
        behind = await cached(proxy.url, "Bert")
    alone = await cached(qwen, "Olaf")
    assert len({one - other for one, other in zip(behind[1:], alone[1:], strict=True)}) == 1, "but for the name"
    assert behind[-1] > 100
