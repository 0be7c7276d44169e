"""The official client for Python of OpenAI: chat completions and Responses, plain, streamed, parsed and in a loop."""

import json
from typing import Any

import openai

from tests.clients.layers import ASK, BOUNDS, MESSAGES, SCHEMA, TOKENS, TURNS, WHERE, Layer, Place, ran, run_all

FUNCTION = {"name": "shell", "description": "Run a command.", "parameters": SCHEMA}
TOOLS: Any = [{"type": "function", "function": FUNCTION}]
RESPONSES_TOOLS: Any = [{"type": "function", "strict": True, **FUNCTION}]
CHAT: Any = {"model": "m", "messages": MESSAGES, "tools": TOOLS, "max_tokens": TOKENS, **BOUNDS}
RESPONSES: Any = {"model": "m", "input": ASK, "tools": RESPONSES_TOOLS, "max_output_tokens": TOKENS, **BOUNDS}


class Shell(openai.BaseModel):
    """Run a command."""

    command: str


def client(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="dummy", max_retries=0)


def _call(completion: Any) -> str:
    """The only call's answer; the call must have an id and the choice its reason."""
    (choice,) = completion.choices
    (call,) = choice.message.tool_calls
    assert (call.function.name, choice.finish_reason) == ("shell", "tool_calls")
    assert call.id
    return ran(json.loads(call.function.arguments)["command"])


def _item(response: Any) -> Any:
    (item,) = (item for item in response.output if item.type == "function_call")
    assert (response.status, item.name) == ("completed", "shell")
    assert item.call_id
    ran(json.loads(item.arguments)["command"])
    return item


async def create(url: str) -> None:
    async with client(url) as own:
        _call(await own.chat.completions.create(**CHAT))


async def stream(url: str) -> None:
    """The chunks as they come."""
    async with client(url) as own:
        told: Any = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = [chunk async for chunk in await own.chat.completions.create(**CHAT, **told)]
        calls = [call for chunk in chunks for choice in chunk.choices for call in choice.delta.tool_calls or ()]
        arguments = "".join(call.function.arguments or "" for call in calls if call.function)
        ran(json.loads(arguments)["command"])
        assert [choice.finish_reason for chunk in chunks for choice in chunk.choices][-1] == "tool_calls"


async def stream_helper(url: str) -> None:
    async with client(url) as own, own.chat.completions.stream(**CHAT) as events:
        _call(await events.get_final_completion())


async def parse(url: str) -> None:
    async with client(url) as own:
        asked: Any = {"model": "m", "messages": WHERE, "max_tokens": TOKENS, **BOUNDS}
        parsed = await own.chat.completions.parse(**asked, response_format=Place)
        assert isinstance(parsed.choices[0].message.parsed, Place)


async def parse_tools(url: str) -> None:
    async with client(url) as own:
        tool = openai.pydantic_function_tool(Shell, name="shell")
        parsed = await own.chat.completions.parse(**{**CHAT, "tools": [tool]})
        arguments = (parsed.choices[0].message.tool_calls or [])[0].function.parsed_arguments
        assert isinstance(arguments, Shell)
        ran(arguments.command)


async def loop(url: str) -> None:
    """Streamed, the history kept by hand as the helper returns it."""
    async with client(url) as own:
        messages, answered = list(MESSAGES), 0
        for _ in range(TURNS):
            async with own.chat.completions.stream(**{**CHAT, "messages": messages}) as events:
                message = (await events.get_final_completion()).choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls or ():
                told = ran(json.loads(call.function.arguments)["command"])
                messages.append({"role": "tool", "tool_call_id": call.id, "content": told})
                answered += 1
            if not message.tool_calls:
                break
        assert answered
        assert message.content


async def responses(url: str) -> None:
    async with client(url) as own:
        _item(await own.responses.create(**RESPONSES))


async def responses_stream(url: str) -> None:
    async with client(url) as own, own.responses.stream(**RESPONSES) as events:
        kinds = [event.type async for event in events]
        _item(await events.get_final_response())
        assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")


async def responses_parse(url: str) -> None:
    async with client(url) as own:
        asked: Any = {"model": "m", "input": WHERE, "max_output_tokens": TOKENS, **BOUNDS}
        parsed = await own.responses.parse(**asked, text_format=Place)
        assert isinstance(parsed.output_parsed, Place)


async def responses_loop(url: str) -> None:
    """The second turn with the first one's items, as nothing is stored."""
    async with client(url) as own:
        items: list[Any] = list(MESSAGES)
        response = await own.responses.create(**{**RESPONSES, "input": items})
        call = _item(response)
        items += [item.model_dump(exclude_none=True) for item in response.output]
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": ran(call.arguments)})
        answer = await own.responses.create(**{**RESPONSES, "input": items, "tool_choice": "none"})
        assert answer.output_text


async def models(url: str) -> None:
    async with client(url) as own:
        (first, *_) = [model.id async for model in own.models.list()]
        assert (await own.models.retrieve(first)).id == first


LAYERS: dict[str, Layer] = {
    layer.__name__: layer
    for layer in (
        create,
        stream,
        stream_helper,
        parse,
        parse_tools,
        loop,
        responses,
        responses_stream,
        responses_parse,
        responses_loop,
        models,
    )
}

if __name__ == "__main__":
    run_all(LAYERS)
