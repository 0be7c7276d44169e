"""Requests of the official clients and of LangChain, recorded and fresh: every one is read whole."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from stages.wire.server.errors import RequestError
from stages.wire.server.request import ClientChoice, ServerRequest
from stages.wire.server_wires import CHAT, MESSAGES, RESPONSES
from tests.record_sdk_requests import FILE, recorded
from tests.wire_client import said

WIRES = {wire.name: wire for wire in (CHAT, RESPONSES, MESSAGES)}
ASKED = ("user", "What is the weather in Oslo?")
BRIEF = ("system", "Be brief.")
CALLED = ("assistant", "", 'weather({"city":"Oslo"})')
ANSWERED = ("tool", "c1", "weather", "3")
LANGCHAIN = [("user", "?"), ("assistant", "", 'Weather({"city": "Oslo"})'), ("tool", "c1", "Weather", "3")]
HISTORIES = {
    "chat_loop 0": [ASKED],
    "chat_loop 1": [ASKED, CALLED, ANSWERED],
    "chat_parse 0": [ASKED],
    "chat_parse 1": [ASKED],
    "responses_loop 0": [BRIEF, ASKED],
    "responses_loop 1": [BRIEF, ASKED, CALLED, ANSWERED],
    "responses_parse 0": [("user", "?")],
    "messages_loop 0": [BRIEF, ASKED],
    "messages_loop 1": [BRIEF, ASKED, CALLED, ANSWERED],
    "messages_runner 1": [ASKED],
    "messages_runner 2": [ASKED, CALLED, ("tool", "c1", "weather", "Oslo: 3")],
    "messages_parse 0": [ASKED],
    "langchain_chat 0": [BRIEF, *LANGCHAIN],
    "langchain_chat 1": [BRIEF, *LANGCHAIN],
    "langchain_responses 0": LANGCHAIN,
}


def decoded(line: dict[str, Any]) -> ServerRequest | RequestError:
    return WIRES[line["wire"]].decode_request(msgspec.json.encode(line["body"]))


def on_file() -> Iterator[dict[str, Any]]:
    return map(json.loads, FILE.read_text().splitlines())


@pytest.mark.parametrize("lines", [on_file, recorded])
def test_every_request_is_read_whole(lines: Callable[[], Iterator[dict[str, Any]]]) -> None:
    read = {line["call"]: decoded(line) for line in lines()}
    threaded = read.pop("messages_runner 0")
    assert isinstance(threaded, RequestError), "a conversation that the server would have to keep"
    requests = {call: request for call, request in read.items() if isinstance(request, ServerRequest)}
    assert {call: said(request.history) for call, request in requests.items()} == HISTORIES
    assert not [request.foreign for request in requests.values() if request.foreign]
    offered = {call: [spec.name for spec in request.specs] for call, request in requests.items() if request.tools}
    assert set(map(tuple, offered.values())) == {("weather",), ("Weather",)}
    assert len(offered) == 12
    assert {call for call, request in requests.items() if request.format} == {
        "chat_parse 0",
        "chat_parse 1",
        "responses_parse 0",
        "messages_parse 0",
    }
    assert {call: r.choice for call, r in requests.items() if r.choice != ClientChoice()} == {
        "chat_parse 0": ClientChoice(mode="required"),
        "langchain_chat 0": ClientChoice(mode="required", tools=("Weather",)),
    }
    assert [call for call, request in requests.items() if not request.parallel] == ["langchain_chat 0"]
    assert requests["messages_loop 0"].thinking.wanted
