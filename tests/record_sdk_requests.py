"""Record what the official clients send: `python -m tests.record_sdk_requests` writes tests/data/sdk_requests.jsonl.

Each line is a call with every helper layer of a client, as it goes over the wire; the answers are forge's own.
"""

import json
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
from anthropic import beta_tool
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr

from stages.effect import RawCall, Reply
from stages.wire.server.errors import RequestError
from stages.wire.server_wires import CHAT, MESSAGES, RESPONSES, ServerWire
from tests.wire_client import Endpoint

FILE = Path(__file__).parent / "data/sdk_requests.jsonl"
ASK: Any = [{"role": "user", "content": "What is the weather in Oslo?"}]
CALLED = Reply(calls=(RawCall(id="c1", name="weather", arguments='{"city":"Oslo"}'),), finish="tool_calls")
SAID = Reply(text='{"city":"Oslo","degrees":3}')
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CHAT_TOOL: Any = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
RESPONSES_TOOL: Any = {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": None}
MESSAGES_TOOL: Any = {"name": "weather", "description": "The weather.", "input_schema": SCHEMA}


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int = 0


class Recorder(Endpoint):
    """An endpoint that keeps every body."""

    def __init__(self, wire: ServerWire, *replies: Reply | RequestError) -> None:
        super().__init__(wire, *replies)
        self.bodies: list[bytes] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.bodies.append(request.read())
        return super().handle_request(request)


def openai_client(recorder: Recorder) -> openai.OpenAI:
    http = httpx2.Client(transport=recorder)
    return openai.OpenAI(base_url="http://forge/v1", api_key="none", http_client=http, max_retries=0)


def anthropic_client(recorder: Recorder) -> anthropic.Anthropic:
    http = httpx2.Client(transport=recorder)
    return anthropic.Anthropic(base_url="http://forge", api_key="none", http_client=http, max_retries=0)


def langchain(recorder: Recorder, **options: Any) -> ChatOpenAI:
    http = httpx2.Client(transport=recorder)
    key = SecretStr("none")
    return ChatOpenAI(model="m", base_url="http://forge/v1", api_key=key, http_client=http, max_retries=0, **options)


def chat_loop(recorder: Recorder) -> None:
    api, messages = openai_client(recorder), list(ASK)
    for _ in range(2):
        with api.chat.completions.stream(model="m", messages=messages, tools=[CHAT_TOOL]) as stream:
            message: Any = stream.get_final_completion().choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        messages += [{"role": "tool", "tool_call_id": call.id, "content": "3"} for call in message.tool_calls or ()]


def chat_parse(recorder: Recorder) -> None:
    tools: Any = [openai.pydantic_function_tool(Weather, name="weather")]
    api = openai_client(recorder)
    api.chat.completions.parse(model="m", messages=ASK, tools=tools, response_format=Weather, tool_choice="required")
    api.chat.completions.parse(model="m", messages=ASK, response_format=Weather, temperature=0, max_completion_tokens=9)


def responses_loop(recorder: Recorder) -> None:
    api, items = openai_client(recorder), list(ASK)
    for _ in range(2):
        with api.responses.stream(model="m", input=items, tools=[RESPONSES_TOOL], instructions="Be brief.") as stream:
            output: Any = stream.get_final_response().output
        items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in output]
        calls = (item for item in output if item.type == "function_call")
        items += [{"type": "function_call_output", "call_id": call.call_id, "output": "3"} for call in calls]


def responses_parse(recorder: Recorder) -> None:
    openai_client(recorder).responses.parse(model="m", input="?", text_format=Weather, reasoning={"effort": "low"})


def messages_loop(recorder: Recorder) -> None:
    api, messages = anthropic_client(recorder), list(ASK)
    thinking: Any = {"type": "enabled", "budget_tokens": 1024}
    for _ in range(2):
        with api.messages.stream(
            model="m", max_tokens=2048, messages=messages, tools=[MESSAGES_TOOL], system="Be brief.", thinking=thinking
        ) as stream:
            content: Any = stream.get_final_message().content
        messages.append({"role": "assistant", "content": [block.to_dict() for block in content]})
        uses = (block for block in content if block.type == "tool_use")
        results = [{"type": "tool_result", "tool_use_id": use.id, "content": "3"} for use in uses]
        messages.append({"role": "user", "content": results or "Thanks."})


def messages_runner(recorder: Recorder) -> None:
    @beta_tool
    def weather(city: str) -> str:
        """The weather.

        Args:
            city: its name
        """
        return f"{city}: 3"

    list(anthropic_client(recorder).beta.messages.tool_runner(model="m", max_tokens=99, messages=ASK, tools=[weather]))


def messages_parse(recorder: Recorder) -> None:
    anthropic_client(recorder).messages.parse(model="m", max_tokens=99, messages=ASK, output_format=Weather)


def langchain_chat(recorder: Recorder) -> None:
    model = langchain(recorder)
    said = AIMessage("", tool_calls=[{"name": "Weather", "args": {"city": "Oslo"}, "id": "c1"}])
    history = [SystemMessage("Be brief."), HumanMessage("?"), said, ToolMessage("3", tool_call_id="c1")]
    model.bind_tools([Weather], tool_choice="Weather", parallel_tool_calls=False).invoke(history)
    list(model.bind_tools([Weather]).stream(history))


def langchain_responses(recorder: Recorder) -> None:
    model = langchain(recorder, use_responses_api=True)
    said = AIMessage("", tool_calls=[{"name": "Weather", "args": {"city": "Oslo"}, "id": "c1"}])
    model.bind_tools([Weather]).invoke([HumanMessage("?"), said, ToolMessage("3", tool_call_id="c1")])


CALLS: list[tuple[str, ServerWire, Callable[[Recorder], None]]] = [
    ("openai", CHAT, chat_loop),
    ("openai", CHAT, chat_parse),
    ("openai", RESPONSES, responses_loop),
    ("openai", RESPONSES, responses_parse),
    ("anthropic", MESSAGES, messages_loop),
    ("anthropic", MESSAGES, messages_runner),
    ("anthropic", MESSAGES, messages_parse),
    ("langchain-openai", CHAT, langchain_chat),
    ("langchain-openai", RESPONSES, langchain_responses),
]


def recorded() -> Iterator[dict[str, Any]]:
    """What each call sends, request by request."""
    for client, wire, call in CALLS:
        recorder = Recorder(wire, CALLED if "loop" in call.__name__ or "runner" in call.__name__ else SAID, SAID)
        call(recorder)
        for number, body in enumerate(recorder.bodies):
            name = f"{call.__name__} {number}"
            yield {"client": f"{client} {version(client)}", "call": name, "wire": wire.name, "body": json.loads(body)}


if __name__ == "__main__":
    FILE.write_text("".join(json.dumps(line) + "\n" for line in recorded()))
