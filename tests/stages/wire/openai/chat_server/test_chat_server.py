"""The server's side of chat completions: what clients send is read, what they insist on is written."""

import json
from functools import partial
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from stages.effect import Fault, RawCall, Reply, Usage
from stages.message import User, turn_of
from stages.wire.deltas import CallDelta, CallStarted, Ended, TextDelta
from stages.wire.openai.chat import encode_history, encode_messages
from stages.wire.openai.chat_server import completion_events, decode_request, encode_reply
from stages.wire.server.errors import RequestError, error_of
from stages.wire.server.request import ClientChoice, Foreign, ServerRequest, TextFormat, as_sent, fields
from stages.wire.server.streams import Envelope
from stages.wire.server.translation import refusal
from stages.wire.server_wires import CHAT
from tests.wire_client import asked_of, assert_refused, pieces, said, schema_of

ASK = {"role": "user", "content": "Look."}
LOOK: Any = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}
CUSTOM = {"type": "custom", "custom": {"name": "patch", "description": "Change a file."}}
asked = partial(asked_of, CHAT)


def test_a_conversation_with_tools_is_read() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "Use tools."}]},
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "Hm."},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a tree"}]},
        {"role": "assistant", "refusal": "No."},
    ]
    request = asked(messages=messages, tools=[LOOK])
    assert said(request.history) == [
        ("system", "Be brief."),
        ("system", "Use tools."),
        ("user", "one\ntwo"),
        ("assistant", "", 'look({"at": 1})'),
        ("tool", "c1", "look", "a tree"),
        ("assistant", "No."),
    ]
    assert request.history[3] == msgspec.structs.replace(request.history[3], reasoning="Hm.")
    assert [turn_of(message) for message in request.history] == [0, 0, 0, 1, 1, 2]
    assert [(spec.name, spec.description, schema_of(spec.parameters)) for spec in request.specs] == [
        ("look", "Look.", {"type": "object"})
    ]
    assert request.foreign == ()


def test_a_history_that_servers_refuse_is_read_all_the_same() -> None:
    """What is wrong with it is the wire's to repair: a conversation is never refused for good."""
    broken = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{"}}
    twice = {"role": "assistant", "tool_calls": [broken, broken, {"function": {"name": "look", "arguments": {"a": 1}}}]}
    request = asked(messages=[twice, {"role": "tool", "tool_call_id": "nobody", "content": "?"}, {"role": "assistant"}])
    assert said(request.history) == [
        ("assistant", "", "look({)", "look({)", 'look({"a":1})'),
        ("tool", "nobody", "", "?"),
        ("assistant", ""),
    ]


def test_the_older_form_of_calls_is_read() -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}}
    request = asked(messages=[ASK, call, {"role": "function", "name": "look", "content": "a tree"}])
    assert said(request.history)[1:] == [("assistant", "", "look({})"), ("tool", "", "look", "a tree")]


CHOICES = [
    (None, ClientChoice()),
    ("auto", ClientChoice()),
    ("none", ClientChoice(mode="none")),
    ("required", ClientChoice(mode="required")),
    ({"type": "function", "function": {"name": "look"}}, ClientChoice(mode="required", tools=("look",))),
    ({"type": "custom", "custom": {"name": "patch"}}, ClientChoice(mode="required", tools=("patch",))),
    (
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"function": {"name": "look"}}]}},
        ClientChoice(tools=("look",)),
    ),
    (
        {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"custom": {"name": "patch"}}]}},
        ClientChoice(mode="required", tools=("patch",)),
    ),
]


@pytest.mark.parametrize(("given", "choice"), CHOICES)
def test_the_choice_of_tools(given: object, choice: ClientChoice) -> None:
    assert asked(tools=[LOOK, CUSTOM], tool_choice=given).choice == choice


def test_options_are_read_by_what_they_mean() -> None:
    request = asked(
        stream=True,
        stream_options={"include_usage": True},
        parallel_tool_calls=False,
        temperature=0,
        top_p=0,
        top_k=40,
        min_p=0.1,
        repeat_penalty=1.1,
        presence_penalty=1,
        frequency_penalty=-1,
        seed=7,
        stop="END",
        max_tokens=50,
        max_completion_tokens=60,
        reasoning_effort="low",
        response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}},
    )
    sampling = msgspec.to_builtins(request.sampling)
    assert 0 < sampling.pop("top_p") < 0.001
    assert sampling == {
        "temperature": 0,
        "top_k": 40,
        "min_p": 0.1,
        "repeat_penalty": 1.1,
        "presence_penalty": 1,
        "frequency_penalty": -1,
        "seed": 7,
        "stop": ("END",),
        "max_tokens": 60,
        "extra": {},
    }
    assert (request.stream, request.usage_in_stream, request.parallel) == (True, True, False)
    assert request.format == TextFormat(name="a", schema=Raw(b'{"type":"object"}'))
    assert request.thinking.effort == "low"


def test_what_clients_write_for_nothing_is_nothing() -> None:
    names = ("tools", "tool_choice", "stream", "stream_options", "temperature", "stop", "n", "response_format")
    plain = asked(**dict.fromkeys(names))
    assert plain.sampling == asked(stop=["", ""], max_tokens=-1).sampling == asked().sampling
    assert asked(response_format={"type": "text"}).format is None
    assert asked(response_format={"type": "json_object"}).format == TextFormat()


def test_tools_without_parameters_and_custom_ones() -> None:
    strict = {"type": "function", "function": {"name": "exact", "strict": True, "parameters": None}}
    tools = asked(tools=[strict, CUSTOM, {**LOOK, "function": {"name": "exact"}}]).tools
    assert [(tool.spec.name, tool.kind) for tool in tools] == [("exact", "function"), ("patch", "custom")]
    assert schema_of(tools[0].spec.parameters) == {"type": "object", "properties": {}}
    assert schema_of(tools[1].spec.parameters)["required"] == ["input"]


PICTURE = {"type": "image_url", "image_url": {"url": "data:"}}


def test_what_has_no_noun_is_listed_with_what_becomes_of_it() -> None:
    request = asked(
        messages=[
            {"role": "user", "content": [PICTURE, {"type": "text", "text": "What?"}]},
            {"role": "assistant", "content": "A tree."},
            {"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]},
        ],
        tools=[{"type": "web_search"}],
        n=2,
        logprobs=True,
        functions=[{}],
    )
    assert said(request.history)[0] == ("user", "[image_url left out]\nWhat?")
    assert request.foreign == (
        Foreign(at="messages[0].content[0]", kind="image_url", fate="noted"),
        Foreign(at="messages[2].content[0]", kind="input_audio", fate="refused"),
        Foreign(at="tools[0]", kind="web_search", fate="dropped"),
        Foreign(at="n", kind="a number of choices", fate="refused"),
        Foreign(at="logprobs", kind="log-probabilities", fate="refused"),
        Foreign(at="functions", kind="the deprecated form of tools", fate="refused"),
    )
    error = refusal(request)
    assert error is not None
    assert error.param == "messages[2].content[0]"
    assert refusal(asked()) is None


def test_a_retry_keeps_what_the_client_wrote() -> None:
    message = '{"role":"user","content":"é \\u00e9","x":[1, 2]}'
    body = f'{{ "model":"m","cache_prompt":true, "messages":[{message}], "top_a":0.50}}'.encode()
    request = decode_request(body)
    assert isinstance(request, ServerRequest)
    assert request.body == body
    assert [*fields(request)] == ["model", "cache_prompt", "messages", "top_a"]
    sent = as_sent(request)
    more = encode_messages(encode_history((User(text="Again."),)))
    again = msgspec.structs.replace(sent, messages=sent.messages + more).body
    added = '{"role":"user","content":"Again."}'
    assert again.decode() == f'{{"model":"m","cache_prompt":true,"messages":[{message},{added}],"top_a":0.50}}'


WRONG = [
    ({"model": None}, "model", "expected string, got null"),
    ({"messages": None}, "messages", "expected array, got null"),
    ({"messages": [{"role": "robot"}]}, "messages[0].role", "must be one of system"),
    ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text", "field required"),
    ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages[0].tool_calls[0]", "must have a function"),
    ({"tools": [{"type": "function"}]}, "tools[0].function", "field required"),
    ({"tools": [{"function": {"name": " "}}]}, "tools[0].function.name", "1 to 256 characters"),
    (
        {"tools": [{"function": {"name": "f", "parameters": []}}]},
        "tools[0].function.parameters",
        "must be a JSON Schema",
    ),
    ({"tool_choice": "required"}, "tool_choice", "the request has no tools"),
    ({"tools": [LOOK], "tool_choice": "maybe"}, "tool_choice", "must be auto, none, required or a tool, not 'maybe'"),
    ({"tools": [LOOK], "tool_choice": {"type": "function"}}, "tool_choice", "name a function"),
    ({"tools": [LOOK], "tool_choice": {"function": {"name": "x"}}}, "tool_choice", "'x' is not one of"),
    ({"n": 0}, "n", "at least 1"),
    ({"stream": "yes"}, "stream", "expected boolean | null"),
    ({"response_format": {"type": "xml"}}, "response_format.type", "must be text"),
]


@pytest.mark.parametrize(("body", "param", "words"), WRONG)
def test_a_request_that_is_wrong_is_told_where_and_what_to_write(body: dict[str, Any], param: str, words: str) -> None:
    assert_refused(CHAT, body, param, words)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"null", 400),
        (b"[" * 200_000, 400),
        (b'{"messages":[' + b"{}," * 300_000 + b"{}]}", 413),
        (b" " * (33 * 1024 * 1024), 413),
    ],
    ids=["empty", "null", "deep", "crowded", "too large"],
)
def test_a_body_that_is_no_request(body: bytes, status: int) -> None:
    error = decode_request(body)
    assert isinstance(error, RequestError)
    assert error.status == status


def test_ten_thousand_tools_and_much_code_are_no_crowd() -> None:
    tools = [
        {"type": "function", "function": {"name": f"tool{n}", "parameters": {"properties": {}}}} for n in range(10_000)
    ]
    code = {"role": "user", "content": "{}[]" * 200_000}
    assert len(asked(tools=tools, messages=[code]).tools) == 10_000


# --- answers


def envelope(request: ServerRequest | None = None) -> Envelope:
    return Envelope(id="chatcmpl-3f", created=1_700_000_000, request=request or asked(tools=[LOOK, CUSTOM]))


def test_a_reply_is_written_as_clients_read_it() -> None:
    calls = (RawCall(id="c1", name="look", arguments='{"a": 1}'), RawCall(name="patch", arguments='{"input":"+ x"}'))
    reply = Reply(reasoning="Hm.", calls=calls, usage=Usage(prompt=10, completion=5, cached=8))
    assert json.loads(encode_reply(reply, envelope())) == {
        "id": "chatcmpl-3f",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": None,
                    "reasoning_content": "Hm.",
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}},
                        {"id": "call_3f_1", "type": "custom", "custom": {"name": "patch", "input": "+ x"}},
                    ],
                },
                "logprobs": None,
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 8},
        },
    }


def test_ids_that_a_server_gives_twice_are_replaced() -> None:
    call = {"id": "call_0", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    before = asked(messages=[ASK, {"role": "assistant", "tool_calls": [call]}])
    reply = Reply(calls=tuple(RawCall(id=each, name="look") for each in ("call_0", "x", "x", "")))
    answer = json.loads(encode_reply(reply, envelope(before)))
    ids = [call["id"] for call in answer["choices"][0]["message"]["tool_calls"]]
    assert ids == ["call_3f_0", "x", "call_3f_2", "call_3f_3"]


@pytest.mark.parametrize(
    ("finish", "called", "told"),
    [
        ("stop", False, "stop"),
        ("stop", True, "tool_calls"),
        ("length", True, "length"),
        ("content_filter", False, "content_filter"),
    ],
)
def test_the_reason_for_which_a_reply_ends(finish: str, called: bool, told: str) -> None:
    reply = Reply(finish=finish, calls=(RawCall(id="c", name="look"),) if called else ())
    assert json.loads(encode_reply(reply, envelope()))["choices"][0]["finish_reason"] == told


def chunks(stream: bytes) -> list[Any]:
    *events, done, end = stream.decode().split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


def test_a_stream_has_the_role_first_then_deltas_then_the_reason() -> None:
    events, stream = completion_events(envelope()).begin()
    for piece in (
        TextDelta(text="Hi"),
        CallStarted(index=0, name="lo"),
        CallStarted(index=0, name="look", id="c1"),
        CallDelta(index=0, arguments="{"),
        CallStarted(index=1, name="patch"),
        CallDelta(index=0, arguments="}"),
        Ended(usage=Usage(prompt=1)),
    ):
        events, more = events.advance(piece)
        stream += more
    told = chunks(stream)
    assert {(c["id"], c["object"], c["created"], c["model"]) for c in told} == {
        ("chatcmpl-3f", "chat.completion.chunk", 1_700_000_000, "m")
    }
    assert [(c["choices"][0]["delta"], c["choices"][0]["finish_reason"]) for c in told] == [
        ({"role": "assistant", "content": ""}, None),
        ({"content": "Hi"}, None),
        (
            {
                "tool_calls": [
                    {"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": ""}}
                ]
            },
            None,
        ),
        ({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}, None),
        (
            {
                "tool_calls": [
                    {"index": 1, "id": "call_3f_1", "type": "custom", "custom": {"name": "patch", "input": ""}}
                ]
            },
            None,
        ),
        ({}, "tool_calls"),
    ]


def test_usage_is_told_where_the_client_asks_for_it() -> None:
    ended = (Ended(usage=Usage(prompt=2, completion=1)),)
    request = asked(stream=True, stream_options={"include_usage": True})
    *rest, last = chunks(pieces(completion_events(envelope(request)), ended))
    assert (last["choices"], last["usage"]["total_tokens"]) == ([], 3)
    assert {chunk["usage"] for chunk in rest} == {None}
    assert all("usage" not in chunk for chunk in chunks(pieces(completion_events(envelope()), ended)))


ERRORS = [
    (RequestError(message="n: no", param="n"), 400, "invalid_request_error", None),
    (
        RequestError(message="no such model", status=404, code="model_not_found"),
        404,
        "not_found_error",
        "model_not_found",
    ),
    (error_of(Fault(kind="timeout", detail="slow")), 504, "server_error", None),
]


@pytest.mark.parametrize(("error", "status", "kind", "code"), ERRORS)
def test_an_error_has_the_shape_of_the_protocol(error: RequestError, status: int, kind: str, code: str | None) -> None:
    answer = CHAT.encode_error(error)
    assert answer.status == status
    assert json.loads(answer.body) == {
        "error": {"message": error.message, "type": kind, "param": error.param or None, "code": code}
    }


def test_an_error_says_when_to_try_again_and_whether_to() -> None:
    fault = Fault(kind="status", detail="busy", status=429, retry_after=1.6, retriable=False)
    assert CHAT.encode_error(error_of(fault)).headers == (("retry-after", "2"), ("x-should-retry", "false"))
