"""Forge as a server of each protocol: what clients send is read, what they insist on is written."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from stages.effect import Fault, RawCall, Reply, Usage
from stages.message import Assistant, Tool, User, turn_of
from stages.wire.anthropic.messages_server import decode_count_request
from stages.wire.deltas import (
    CallDelta,
    CallStarted,
    Ended,
    Piece,
    ReasoningDelta,
    TextDelta,
    gather_reply,
    reply_pieces,
)
from stages.wire.openai.chat import encode_history, encode_messages
from stages.wire.sampling import Sampling
from stages.wire.server.errors import RequestError, error_of, too_long
from stages.wire.server.request import ClientChoice, Foreign, ServerRequest, TextFormat, Thinking, as_sent, fields
from stages.wire.server.streams import Envelope
from stages.wire.server.translation import refusal
from stages.wire.server_wires import CHAT, MESSAGES, RESPONSES, ServerWire
from stages.wire.wires import ANTHROPIC
from tests.wire_client import LOOK_AT, asked_of, named_events, pieces, said, schema_of

SCHEMA = {"type": "object"}
OFFERED: dict[str, Any] = {"name": "look", "description": "Look.", "parameters": SCHEMA}
TOOLS: dict[str, list[Any]] = {
    "chat": [{"type": "function", "function": OFFERED}, {"type": "custom", "custom": {"name": "patch"}}],
    "responses": [{"type": "function", "strict": True, **OFFERED}, {"type": "custom", "name": "patch"}],
    "messages": [{"name": "look", "description": "Look.", "input_schema": SCHEMA}, {"name": "patch"}],
}
"""A tool that looks, and one that changes a file: a custom one, where the protocol has these."""


def texts(*said: str, kind: str = "text") -> list[dict[str, Any]]:
    return [{"type": kind, "text": one} for one in said]


def called(call_id: str, arguments: str = "{}", **more: Any) -> dict[str, Any]:
    """A call as the Responses API has it."""
    return {"type": "function_call", "call_id": call_id, "name": "look", "arguments": arguments, **more}


def answered(call_id: str, output: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def used(call_id: str, **given: Any) -> dict[str, Any]:
    """A call as the Messages API has it."""
    return {"type": "tool_use", "id": call_id, "name": "look", "input": given}


def result(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def function(call_id: str, arguments: Any = "{}") -> dict[str, Any]:
    """A call as chat completions have it."""
    return {"id": call_id, "type": "function", "function": {"name": "look", "arguments": arguments}}


THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
BOTH_CALLS = ('look({"at":1})', "look({})")
CONVERSATIONS: list[tuple[ServerWire, dict[str, Any], list[tuple[str, ...]], list[int]]] = [
    (
        CHAT,
        {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "developer", "content": texts("Use tools.")},
                {"role": "user", "content": texts("one", "two")},
                {
                    "role": "assistant",
                    "content": "I look.",
                    "tool_calls": [function("c1", '{"at":1}'), function("c2")],
                    "reasoning_content": "Hm.",
                },
                {"role": "tool", "tool_call_id": "c1", "content": "a tree"},
                {"role": "tool", "tool_call_id": "c2", "content": texts("a", "b")},
                {"role": "assistant", "refusal": "No."},
            ]
        },
        [("system", "Be brief."), ("system", "Use tools."), ("user", "one\ntwo"), ("assistant", "No.")],
        [0, 0, 0, 1, 1, 1, 2],
    ),
    (
        RESPONSES,
        {
            "instructions": "Be brief.",
            "input": [
                {"role": "developer", "content": "Use tools."},
                {"type": "message", "role": "user", "content": texts("one", "two", kind="input_text")},
                {"type": "reasoning", "summary": texts("Hm.", kind="summary_text"), "encrypted_content": "x"},
                {"type": "message", "role": "assistant", "content": texts("I look.", kind="output_text")},
                called("c1", '{"at":1}'),
                called("c2"),
                answered("c1", "a tree"),
                answered("c2", texts("a", "b", kind="input_text")),
                {"role": "assistant", "content": "Done."},
            ],
        },
        [("system", "Be brief."), ("system", "Use tools."), ("user", "one\ntwo"), ("assistant", "Done.")],
        [0, 0, 0, 1, 1, 1, 2],
    ),
    (
        MESSAGES,
        {
            "system": texts("Be brief.", "Use tools."),
            "messages": [
                {"role": "user", "content": texts("one", "two")},
                {"role": "assistant", "content": [THOUGHT, *texts("I look."), used("c1", at=1), used("c2")]},
                {
                    "role": "user",
                    "content": [*texts("There."), result("c1", "a tree"), result("c2", texts("a", "b"), is_error=True)],
                },
                {"role": "system", "content": "Be quick."},
                {"role": "assistant", "content": "Done."},
            ],
        },
        [
            ("system", "Be brief.\n\nUse tools."),
            ("user", "one\n\ntwo"),
            ("user", "There."),
            ("system", "Be quick."),
            ("assistant", "Done."),
        ],
        [0, 0, 1, 1, 1, 1, 0, 2],
    ),
]


@pytest.mark.parametrize(("wire", "body", "words", "turns"), CONVERSATIONS)
def test_a_conversation_with_tools_is_read(
    wire: ServerWire, body: dict[str, Any], words: list[tuple[str, ...]], turns: list[int]
) -> None:
    request = asked_of(wire, **body, tools=TOOLS[wire.name])
    found = said(request.history)
    at = found.index(("assistant", "I look.", *BOTH_CALLS))
    assert found[at + 1 : at + 3] == [("tool", "c1", "look", "a tree"), ("tool", "c2", "look", "a\nb")]
    assert found[:at] + found[at + 3 :] == words
    spoken = request.history[at]
    assert isinstance(spoken, Assistant)
    assert (spoken.reasoning, spoken.sealed and json.loads(spoken.sealed)) == (
        "Hm.",
        [THOUGHT] if wire is MESSAGES else "",
    )
    assert [turn_of(message) for message in request.history] == turns
    statuses = [each.status for each in request.history if isinstance(each, Tool)]
    assert statuses == ["succeeded", "failed" if wire is MESSAGES else "succeeded"]
    first = request.specs[0]
    assert (first.name, first.description, schema_of(first.parameters)) == ("look", "Look.", SCHEMA)
    assert request.foreign == ()


ASK: Any = {"role": "user", "content": "Look."}
ODD: list[tuple[ServerWire, dict[str, Any], list[tuple[str, ...]]]] = [
    # A conversation is never refused for good: what is wrong with it is the wires' to repair.
    (
        CHAT,
        {
            "messages": [
                {"role": "assistant", "tool_calls": [function("c1", "{"), function("c1", "{"), function("", {"a": 1})]},
                {"role": "tool", "tool_call_id": "nobody", "content": "?"},
                {"role": "assistant"},
            ]
        },
        [("assistant", "", "look({)", "look({)", 'look({"a":1})'), ("tool", "nobody", "", "?"), ("assistant", "")],
    ),
    (
        CHAT,
        {
            "messages": [
                {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
                {"role": "function", "name": "look", "content": "a tree"},
                {"role": "assistant", "tool_calls": [{"id": "c1", "custom": {"name": "patch", "input": "+"}}]},
            ]
        },
        [("assistant", "", "look({})"), ("tool", "", "look", "a tree"), ("assistant", "", 'patch({"input":"+"})')],
    ),
    (RESPONSES, {"input": 'Look "there".'}, [("user", 'Look "there".')]),
    (
        RESPONSES,
        {
            "input": [
                {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "+ line"},
                {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"},
            ]
        },
        [("assistant", "", 'patch({"input":"+ line"})'), ("tool", "c1", "patch", "done")],
    ),
    (MESSAGES, {"system": "Be brief.", "messages": [ASK]}, [("system", "Be brief."), ("user", "Look.")]),
]


@pytest.mark.parametrize(("wire", "body", "history"), ODD)
def test_older_shorter_and_damaged_forms_are_read(
    wire: ServerWire, body: dict[str, Any], history: list[tuple[str, ...]]
) -> None:
    assert said(asked_of(wire, **body, tools=TOOLS[wire.name]).history) == history


@pytest.mark.parametrize(
    ("block", "reasoning", "sealed"),
    [
        ({"type": "thinking", "thinking": "Hm.", "signature": ""}, "Hm.", []),
        ({"type": "redacted_thinking", "data": "xyz"}, "", [{"type": "redacted_thinking", "data": "xyz"}]),
    ],
)
def test_only_signed_or_hidden_thinking_is_sealed(block: object, reasoning: str, sealed: list[object]) -> None:
    spoken = asked_of(MESSAGES, messages=[ASK, {"role": "assistant", "content": [block]}]).history[1]
    assert isinstance(spoken, Assistant)
    assert (spoken.reasoning, json.loads(spoken.sealed or "[]")) == (reasoning, sealed)


LOOK_ONLY, PATCH_ONLY = (ClientChoice(mode="required", tools=(name,)) for name in ("look", "patch"))
NONE, ANY = ClientChoice(mode="none"), ClientChoice(mode="required")
CHOICES: list[tuple[ServerWire, object, ClientChoice]] = [
    *(
        (wire, word, choice)
        for wire in (CHAT, RESPONSES)
        for word, choice in ((None, ClientChoice()), ("auto", ClientChoice()), ("none", NONE), ("required", ANY))
    ),
    (CHAT, {"type": "function", "function": {"name": "look"}}, LOOK_ONLY),
    (CHAT, {"type": "custom", "custom": {"name": "patch"}}, PATCH_ONLY),
    (
        CHAT,
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"function": {"name": "look"}}]}},
        ClientChoice(tools=("look",)),
    ),
    (
        CHAT,
        {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"custom": {"name": "patch"}}]}},
        PATCH_ONLY,
    ),
    (RESPONSES, {"type": "function", "name": "look"}, LOOK_ONLY),
    (RESPONSES, {"type": "custom", "name": "patch"}, PATCH_ONLY),
    (RESPONSES, {"type": "allowed_tools", "mode": "required", "tools": [{"name": "look"}, {"type": "mcp"}]}, LOOK_ONLY),
    (RESPONSES, {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]}, NONE),
    (MESSAGES, None, ClientChoice()),
    (MESSAGES, {"type": "auto", "disable_parallel_tool_use": True}, ClientChoice()),
    (MESSAGES, {"type": "none"}, NONE),
    (MESSAGES, {"type": "any"}, ANY),
    (MESSAGES, {"type": "tool", "name": "look"}, LOOK_ONLY),
]


@pytest.mark.parametrize(("wire", "given", "choice"), CHOICES)
def test_the_choice_of_tools(wire: ServerWire, given: object, choice: ClientChoice) -> None:
    request = asked_of(wire, tools=TOOLS[wire.name], tool_choice=given)
    alone = isinstance(given, dict) and "disable_parallel_tool_use" in given
    assert (request.choice, request.parallel, request.foreign) == (choice, not alone, ())


JSON_SCHEMA = {"type": "json_schema", "schema": SCHEMA}
OF_SCHEMA = TextFormat(schema=Raw(b'{"type":"object"}'))
RARE: dict[str, Any] = {"min_p": 0.1, "repeat_penalty": 1.1, "presence_penalty": 1, "frequency_penalty": -1, "seed": 7}
OPTIONS: list[tuple[ServerWire, dict[str, Any], str, object]] = [
    (CHAT, {"stream": True}, "stream", True),
    (CHAT, {"stream_options": {"include_usage": True}}, "usage_in_stream", True),
    (CHAT, {"parallel_tool_calls": False}, "parallel", False),
    (CHAT, RARE, "sampling", Sampling(**RARE)),
    (CHAT, {"top_p": 0}, "sampling", Sampling(top_p=1e-6)),
    (
        CHAT,
        {"stop": "END", "max_tokens": 50, "max_completion_tokens": 60},
        "sampling",
        Sampling(stop=("END",), max_tokens=60),
    ),
    (CHAT, {"stop": ["", ""], "max_tokens": -1}, "sampling", Sampling()),
    (CHAT, {"reasoning_effort": "low"}, "thinking", Thinking(effort="low")),
    (CHAT, {"response_format": {"type": "text"}}, "format", None),
    (CHAT, {"response_format": {"type": "json_object"}}, "format", TextFormat()),
    (CHAT, {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}, "format", OF_SCHEMA),
    (RESPONSES, {"stream": True}, "stream", True),
    (RESPONSES, {"parallel_tool_calls": False}, "parallel", False),
    (RESPONSES, {"top_p": 1, "max_output_tokens": 60}, "sampling", Sampling(top_p=1, max_tokens=60)),
    (RESPONSES, {"reasoning": {"effort": "low", "summary": "auto"}}, "thinking", Thinking(effort="low")),
    (
        RESPONSES,
        {"text": {"format": {**JSON_SCHEMA, "name": "a", "strict": True}}},
        "format",
        TextFormat(schema=OF_SCHEMA.schema, name="a", strict=True),
    ),
    (MESSAGES, {"stream": True}, "stream", True),
    (MESSAGES, {"stop_sequences": ["END", ""]}, "sampling", Sampling(stop=("END",), max_tokens=50)),
    (MESSAGES, {"thinking": {"type": "enabled"}}, "thinking", Thinking(wanted=True)),
    (MESSAGES, {"thinking": {"type": "disabled"}}, "thinking", Thinking(wanted=False)),
    (MESSAGES, {"output_config": {"effort": "high"}}, "thinking", Thinking(effort="high")),
    (MESSAGES, {"output_config": {"format": JSON_SCHEMA}}, "format", OF_SCHEMA),
    (MESSAGES, {"output_format": JSON_SCHEMA}, "format", OF_SCHEMA),
]


@pytest.mark.parametrize(("wire", "body", "name", "value"), OPTIONS)
def test_options_are_read_by_what_they_mean(wire: ServerWire, body: dict[str, Any], name: str, value: object) -> None:
    assert getattr(asked_of(wire, **body), name) == value


def test_null_means_that_an_option_is_not_set() -> None:
    names = ("tools", "tool_choice", "stream", "stream_options", "temperature", "stop", "n", "response_format")
    unset, plain = asked_of(CHAT, **dict.fromkeys(names)), asked_of(CHAT)
    assert msgspec.structs.replace(unset, body=b"") == msgspec.structs.replace(plain, body=b"")


def test_tools_without_parameters_and_custom_ones() -> None:
    strict = {"type": "function", "function": {"name": "exact", "strict": True, "parameters": None}}
    tools = asked_of(CHAT, tools=[strict, TOOLS["chat"][1], {"function": {**OFFERED, "name": "exact"}}]).tools
    assert [(tool.spec.name, tool.kind) for tool in tools] == [("exact", "function"), ("patch", "custom")]
    assert schema_of(tools[0].spec.parameters) == {"type": "object", "properties": {}}
    assert schema_of(tools[1].spec.parameters)["required"] == ["input"]


def space(name: str, *tools: Any) -> dict[str, Any]:
    return {"type": "namespace", "name": name, "description": "Some tools.", "tools": tools}


def test_tools_in_namespaces_have_the_shortest_name_that_is_theirs_alone() -> None:
    look, patch = TOOLS["responses"]
    search, read, late = ({**look, "name": name} for name in ("search", "read", "found"))
    request = asked_of(
        RESPONSES,
        tools=[look, space("mcp__docs", search, read), space("mcp__web__", search, look, patch)],
        input=[
            {"type": "additional_tools", "role": "developer", "tools": [space("late", late)]},
            {**called("c1"), "name": "search", "namespace": "mcp__web__"},
            answered("c1", "it"),
        ],
    )
    assert [(tool.spec.name, tool.namespace, tool.own_name) for tool in request.tools] == [
        ("look", "", "look"),
        ("mcp__docs__search", "mcp__docs", "search"),
        ("read", "mcp__docs", "read"),
        ("mcp__web__search", "mcp__web__", "search"),
        ("mcp__web__look", "mcp__web__", "look"),
        ("patch", "mcp__web__", "patch"),
        ("found", "late", "found"),
    ]
    assert said(request.history) == [
        ("assistant", "", "mcp__web__search({})"),
        ("tool", "c1", "mcp__web__search", "it"),
    ]
    reply = Reply(calls=tuple(RawCall(id=name, name=name) for name in ("look", "mcp__web__search", "patch", "nobody")))
    told = json.loads(RESPONSES.encode_reply(reply, envelope(RESPONSES, request)))["output"]
    assert [(item["name"], item.get("namespace"), item["type"]) for item in told] == [
        ("look", None, "function_call"),
        ("search", "mcp__web__", "function_call"),
        ("patch", "mcp__web__", "custom_tool_call"),
        ("nobody", None, "function_call"),
    ]


def test_a_deferred_tool_is_offered_when_a_result_refers_to_it() -> None:
    look = TOOLS["messages"][0]
    later, other = ({**look, "name": name, "defer_loading": True} for name in ("later", "other"))
    found = result("t1", [{"type": "tool_reference", "tool_name": "later"}])
    messages = [ASK, {"role": "assistant", "content": [used("t1")]}, {"role": "user", "content": [found]}]
    request = asked_of(MESSAGES, messages=messages, tools=[look, later, other])
    assert [spec.name for spec in request.specs] == ["look", "later"]
    assert said(request.history)[-1] == ("tool", "t1", "look", "The tool later can be called now.")


def saying(role: str, *content: object) -> dict[str, Any]:
    return {"role": role, "content": content}


WEB, OLD = {"type": "web_search"}, {"type": "item_reference", "id": "old"}
REFUSED, NOTED, DROPPED = "refused", "noted", "dropped"
FOREIGN: list[tuple[ServerWire, dict[str, Any], str, str, str]] = [
    (CHAT, {"tools": [WEB]}, "tools[0]", "web_search", DROPPED),
    (CHAT, {"n": 2}, "n", "a number of choices", REFUSED),
    (CHAT, {"logprobs": True}, "logprobs", "log-probabilities", REFUSED),
    (CHAT, {"functions": [{}]}, "functions", "the deprecated form of tools", REFUSED),
    (RESPONSES, {"tools": [WEB]}, "tools[0]", "web_search", DROPPED),
    (RESPONSES, {"tool_choice": WEB}, "tool_choice", "web_search", REFUSED),
    (
        RESPONSES,
        {"tools": TOOLS["responses"], "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [WEB]}},
        "tool_choice",
        "web_search",
        REFUSED,
    ),
    (RESPONSES, {"previous_response_id": "r"}, "previous_response_id", "a response stored by the server", REFUSED),
    (RESPONSES, {"conversation": {"id": "c"}}, "conversation", "a conversation stored by the server", REFUSED),
    (RESPONSES, {"prompt": {"id": "p"}}, "prompt", "a prompt stored by the server", REFUSED),
    (RESPONSES, {"background": True}, "background", "a background response", REFUSED),
    (RESPONSES, {"top_logprobs": 2}, "top_logprobs", "log-probabilities", REFUSED),
    (RESPONSES, {"input": [{"type": "web_search_call", "id": "ws"}]}, "input[0]", "web_search_call", DROPPED),
    (RESPONSES, {"input": [answered("c1", [{"type": "input_image"}])]}, "input[0].output[0]", "input_image", NOTED),
    (RESPONSES, {"input": [OLD]}, "input[0]", "item_reference", REFUSED),
    # The conversation goes on without words that a client only refers to.
    (RESPONSES, {"input": [OLD | {"id": "rs_1"}]}, "input[0]", "item_reference", DROPPED),
    (RESPONSES, {"input": [OLD | {"id": "msg_1"}]}, "input[0]", "item_reference", NOTED),
    (MESSAGES, {"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools[0]", "bash_20250124", DROPPED),
    (MESSAGES, {"mcp_servers": [{}]}, "mcp_servers", "tools of another server", DROPPED),
    (
        MESSAGES,
        {"messages": [saying("assistant", {"type": "server_tool_use", "id": "s"})]},
        "messages[0].content[0]",
        "server_tool_use",
        DROPPED,
    ),
    (
        MESSAGES,
        {"messages": [saying("user", result("t1", [{"type": "image"}]))]},
        "messages[0].content[0].content[0]",
        "image",
        NOTED,
    ),
    # A picture is noted, unless it is new.
    *(
        (wire, {field: [saying("user", {"type": "image"}), *more]}, f"{field}[0].content[0]", "image", fate)
        for wire, field in ((CHAT, "messages"), (RESPONSES, "input"), (MESSAGES, "messages"))
        for more, fate in (((), REFUSED), ((saying("assistant"),), NOTED))
    ),
]


@pytest.mark.parametrize(("wire", "body", "at", "kind", "fate"), FOREIGN)
def test_what_forge_does_not_model_is_listed_with_what_becomes_of_it(
    wire: ServerWire, body: dict[str, Any], at: str, kind: str, fate: Any
) -> None:
    request = asked_of(wire, **body)
    assert request.foreign == (Foreign(at=at, kind=kind, fate=fate),)
    if kind in ("image", "input_image"):
        assert request.history[0].text == f"[{kind} left out]"
    error = refusal(request)
    assert (error is not None) == (fate == REFUSED)
    assert error is None or (error.param == at and kind in error.message)


def test_a_text_that_a_client_only_refers_to_is_noted() -> None:
    items = [{"type": "item_reference", "id": "msg_1"}, called("c1"), answered("c1", "A tree.")]
    assert said(asked_of(RESPONSES, input=items).history)[0][1] == "[an earlier text left out]"


def test_a_retry_keeps_what_the_client_wrote() -> None:
    message = '{"role":"user","content":"é \\u00e9","x":[1, 2]}'
    body = f'{{ "model":"m","cache_prompt":true, "messages":[{message}], "top_a":0.50}}'.encode()
    request = CHAT.decode_request(body)
    assert isinstance(request, ServerRequest)
    assert request.body == body
    assert [*fields(request)] == ["model", "cache_prompt", "messages", "top_a"]
    sent = as_sent(request)
    more = encode_messages(encode_history((User(text="Again."),)))
    again = msgspec.structs.replace(sent, messages=sent.messages + more).body
    added = '{"role":"user","content":"Again."}'
    assert again.decode() == f'{{"model":"m","cache_prompt":true,"messages":[{message},{added}],"top_a":0.50}}'


def test_tokens_are_counted_without_a_limit() -> None:
    body = msgspec.json.encode({"model": "m", "messages": [ASK], "tools": TOOLS["messages"]})
    assert isinstance(decode_count_request(body), ServerRequest)
    assert MESSAGES.decode_request(body) == RequestError(message="max_tokens: field required", param="max_tokens")


CHAT_LOOK, RESPONSES_LOOK, MESSAGES_LOOK = ({"tools": TOOLS[name]} for name in ("chat", "responses", "messages"))
FIELD = "field required"
WRONG: list[tuple[ServerWire, dict[str, Any], str, str]] = [
    # What all protocols check alike.
    (CHAT, {"model": None}, "model", "expected string, got null"),
    (RESPONSES, {"max_output_tokens": 0}, "max_output_tokens", ">= 1"),
    (CHAT, {"stream": "yes"}, "stream", "expected boolean | null"),
    (CHAT, {"tool_choice": "required"}, "tool_choice", "the request has no tools"),
    (CHAT, {"tools": [{"function": {"name": " "}}]}, "tools[0].function.name", "1 to 256 characters"),
    (CHAT, {"tools": [{"function": {"name": "f", "parameters": []}}]}, "tools[0].function.parameters", "a JSON Schema"),
    # Chat completions.
    (CHAT, {"messages": None}, "messages", "expected array, got null"),
    (CHAT, {"messages": []}, "messages", "at least one message"),
    (CHAT, {"messages": [{"role": "robot"}]}, "messages[0].role", "must be one of system"),
    (CHAT, {"messages": [saying("user", {"type": "text"})]}, "messages[0].content[0].text", FIELD),
    (CHAT, {"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages[0].tool_calls[0]", "have a function"),
    (CHAT, {"tools": [{"type": "function"}]}, "tools[0].function", FIELD),
    (CHAT, CHAT_LOOK | {"tool_choice": "maybe"}, "tool_choice", "must be auto, none, required or a tool, not 'maybe'"),
    (CHAT, CHAT_LOOK | {"tool_choice": {"type": "function"}}, "tool_choice", "name a function"),
    (CHAT, CHAT_LOOK | {"tool_choice": {"function": {"name": "x"}}}, "tool_choice", "'x' is not one of"),
    (
        CHAT,
        CHAT_LOOK | {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "x"}}},
        "tool_choice.allowed_tools.mode",
        "auto or required",
    ),
    (CHAT, {"n": 0}, "n", "at least 1"),
    (CHAT, {"response_format": {"type": "xml"}}, "response_format.type", "must be text"),
    (CHAT, {"response_format": {"type": "json_schema"}}, "response_format.json_schema", FIELD),
    # Responses.
    (RESPONSES, {"tools": [{"type": "namespace", "name": "n"}]}, "tools[0].tools", "expected array, got null"),
    (RESPONSES, {"input": []}, "input", "at least one item"),
    (
        RESPONSES,
        {"input": [{"role": "robot", "content": "x"}]},
        "input[0].role",
        "user, assistant, system or developer",
    ),
    (RESPONSES, {"input": [{"content": "x"}]}, "input[0].role", FIELD),
    (RESPONSES, {"input": [{"role": "user", "content": [{}]}]}, "input[0].content[0].type", FIELD),
    (RESPONSES, {"input": [{"role": "user", "content": [{"type": "text"}]}]}, "input[0].content[0].text", FIELD),
    (RESPONSES, {"input": [{"type": "function_call"}]}, "input[0].name", FIELD),
    (RESPONSES, {"input": [{"type": "custom_tool_call", "name": "x"}]}, "input[0].input", "expected string, got null"),
    (RESPONSES, {"tools": [{"name": "look"}]}, "tools[0].type", FIELD),
    (RESPONSES, {"tools": [space("x", {"type": "function"})]}, "tools[0].tools[0].name", "1 to 256 characters"),
    (RESPONSES, RESPONSES_LOOK | {"tool_choice": {"type": "function"}}, "tool_choice", "must have a name"),
    (
        RESPONSES,
        RESPONSES_LOOK | {"tool_choice": {"type": "allowed_tools", "mode": "x"}},
        "tool_choice.mode",
        "auto or required",
    ),
    (RESPONSES, {"text": {"format": {"type": "xml"}}}, "text.format.type", "must be text"),
    # Messages.
    (MESSAGES, {"messages": []}, "messages", "at least one"),
    (MESSAGES, {"messages": [{"role": "user"}]}, "messages[0].content", FIELD),
    (MESSAGES, {"messages": [saying("tool")]}, "messages[0].role", "must be user, assistant or system"),
    (MESSAGES, {"messages": [saying("user", {"type": "text"})]}, "messages[0].content[0].text", FIELD),
    (MESSAGES, {"messages": [saying("assistant", {"type": "tool_use"})]}, "messages[0].content[0].name", FIELD),
    (MESSAGES, {"messages": [saying("user", result("t", 3))]}, "messages[0].content[0].content", "expected"),
    (MESSAGES, {"messages": [saying("user", result("t", [{}]))]}, "messages[0].content[0].content[0].type", FIELD),
    (MESSAGES, {"system": [{"type": "image"}]}, "system[0].type", "must be text"),
    (MESSAGES, {"tools": [{"name": "f", "input_schema": 3}]}, "tools[0].input_schema", "must be a JSON Schema"),
    (MESSAGES, MESSAGES_LOOK | {"tool_choice": {"type": "tool"}}, "tool_choice.name", FIELD),
    (MESSAGES, MESSAGES_LOOK | {"tool_choice": {"type": "some"}}, "tool_choice.type", "must be auto, any, tool or"),
    (MESSAGES, {"output_format": {"type": "xml"}}, "output_format.type", "must be json_schema"),
    (MESSAGES, {"output_config": {"format": {"type": "xml"}}}, "output_config.format.type", "must be json_schema"),
]


@pytest.mark.parametrize(("wire", "body", "param", "words"), WRONG)
def test_a_wrong_request_is_told_where_and_what_to_write(
    wire: ServerWire, body: dict[str, Any], param: str, words: str
) -> None:
    error = wire.decode_request(msgspec.json.encode({"model": "m", **LOOK_AT[wire.name], **body}))
    assert isinstance(error, RequestError)
    assert (error.status, error.param) == (400, param)
    assert error.message.startswith(f"{param}: ")
    assert words in error.message


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"null", 400),
        (b"\xff", 400),
        (b"[" * 200_000, 400),
        (b'{"messages":[' + b"{}," * 300_000 + b"{}]}", 413),
        (b" " * (33 * 1024 * 1024), 413),
    ],
    ids=["empty", "null", "not UTF-8", "deep", "crowded", "too large"],
)
def test_a_body_that_is_no_request(body: bytes, status: int) -> None:
    error = CHAT.decode_request(body)
    assert isinstance(error, RequestError)
    assert error.status == status


def test_ten_thousand_tools_and_much_code_are_no_crowd() -> None:
    tools = [{"function": {"name": f"tool{n}", "parameters": {"properties": {}}}} for n in range(10_000)]
    code = {"role": "user", "content": "{}[]" * 200_000}
    assert len(asked_of(CHAT, tools=tools, messages=[code]).tools) == 10_000


# --- answers


def envelope(wire: ServerWire, request: ServerRequest | None = None) -> Envelope:
    request = request or asked_of(wire, tools=TOOLS[wire.name])
    return Envelope(id=f"{wire.prefix}3f", created=1_700_000_000, request=request, prompt_tokens=12)


CALLED = Reply(
    text="I look. Now.",
    reasoning="Hm.",
    calls=(RawCall(id="c1", name="look", arguments='{"at": "tree"}'), RawCall(name="patch", arguments='{"input":"+"}')),
    finish="tool_calls",
    usage=Usage(prompt=10, completion=5, cached=3),
)
ITEMS: list[dict[str, Any]] = [
    {"type": "reasoning", "id": "rs_3f_0", "summary": texts("Hm.", kind="summary_text")},
    {
        "type": "message",
        "id": "msg_3f_1",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "I look. Now.", "annotations": [], "logprobs": []}],
    },
    {
        "type": "function_call",
        "id": "fc_3f_2",
        "status": "completed",
        "call_id": "c1",
        "name": "look",
        "arguments": '{"at": "tree"}',
    },
    {
        "type": "custom_tool_call",
        "id": "ctc_3f_3",
        "status": "completed",
        "call_id": "call_3f_1",
        "name": "patch",
        "input": "+",
    },
]


def test_a_chat_completion_is_written_as_clients_read_it() -> None:
    message = {
        "role": "assistant",
        "content": "I look. Now.",
        "reasoning_content": "Hm.",
        "tool_calls": [
            function("c1", '{"at": "tree"}'),
            {"id": "call_3f_1", "type": "custom", "custom": {"name": "patch", "input": "+"}},
        ],
    }
    assert json.loads(CHAT.encode_reply(CALLED, envelope(CHAT))) == {
        "id": "chatcmpl-3f",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "m",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 3},
        },
    }


def test_a_response_is_written_as_clients_read_it() -> None:
    given = {"temperature": 0.5, "metadata": {"a": "b"}, "reasoning": {"effort": "low"}}
    request = asked_of(RESPONSES, tools=TOOLS["responses"], **given)
    response = json.loads(RESPONSES.encode_reply(CALLED, envelope(RESPONSES, request)))
    assert response["output"] == ITEMS
    assert response["usage"] == {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    }
    assert (response["id"], response["object"], response["created_at"]) == ("resp_3f", "response", 1_700_000_000)
    assert (response["status"], response["error"], response["model"]) == ("completed", None, "m")
    assert {name: response[name] for name in (*given, "tool_choice")} == {**given, "tool_choice": "auto"}


def test_a_message_is_written_as_clients_read_it() -> None:
    assert json.loads(MESSAGES.encode_reply(CALLED, envelope(MESSAGES))) == {
        "id": "msg_3f",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": ""},
            *texts("I look. Now."),
            used("c1", at="tree"),
            {"type": "tool_use", "id": "toolu_3f_1", "name": "patch", "input": {"input": "+"}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 7,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 3,
            "output_tokens": 5,
        },
    }


def test_ids_that_a_server_gives_twice_are_replaced() -> None:
    before = asked_of(CHAT, messages=[ASK, {"role": "assistant", "tool_calls": [function("call_0")]}])
    reply = Reply(calls=tuple(RawCall(id=each, name="look") for each in ("call_0", "x", "x", "")))
    answer = json.loads(CHAT.encode_reply(reply, envelope(CHAT, before)))
    ids = [call["id"] for call in answer["choices"][0]["message"]["tool_calls"]]
    assert ids == ["call_3f_0", "x", "call_3f_2", "call_3f_3"]


ENDS: list[tuple[ServerWire, str, bool, object]] = [
    (CHAT, "stop", False, "stop"),
    (CHAT, "stop", True, "tool_calls"),
    (CHAT, "length", True, "length"),
    (CHAT, "content_filter", False, "content_filter"),
    (CHAT, "abort", False, "stop"),
    (RESPONSES, "abort", False, ("completed", None)),
    (RESPONSES, "length", False, ("incomplete", {"reason": "max_output_tokens"})),
    (RESPONSES, "content_filter", False, ("incomplete", {"reason": "content_filter"})),
    (MESSAGES, "stop", False, "end_turn"),
    (MESSAGES, "stop", True, "tool_use"),
    (MESSAGES, "length", True, "max_tokens"),
    (MESSAGES, "abort", False, "end_turn"),
]


@pytest.mark.parametrize(("wire", "finish", "called", "told"), ENDS)
def test_the_reason_for_which_a_reply_ends(wire: ServerWire, finish: str, *, called: bool, told: object) -> None:
    reply = Reply(text="So", finish=finish, calls=(RawCall(id="c", name="look"),) if called else ())
    answer = json.loads(wire.encode_reply(reply, envelope(wire)))
    streamed = pieces(wire.events(envelope(wire)), reply_pieces(reply))
    if wire is CHAT:
        assert answer["choices"][0]["finish_reason"] == told == chunks(streamed)[-1]["choices"][0]["finish_reason"]
    elif wire is RESPONSES:
        last = named_events(streamed)[-1]
        assert last["type"] == f"response.{answer['status']}"
        for response in (answer, last["response"]):
            assert (response["status"], response["incomplete_details"]) == told
    else:
        assert answer["stop_reason"] == told == named_events(streamed)[-2]["delta"]["stop_reason"]


def test_sealed_thinking_goes_back_as_it_came_whole_and_streamed() -> None:
    sealed = '[{"type":"thinking","thinking":"Hm.","signature":"sig"},{"type":"redacted_thinking","data":"x"}]'
    reply = Reply(text="Yes.", reasoning="Hm.", sealed=sealed, usage=Usage(prompt=1))
    assert ANTHROPIC.decode(MESSAGES.encode_reply(reply, envelope(MESSAGES))) == reply
    stream = pieces(MESSAGES.events(envelope(MESSAGES)), reply_pieces(reply))
    decoder, read = ANTHROPIC.stream.advance(stream)
    assert gather_reply((*read, *decoder.finish())) == reply
    blocks = [event["index"] for event in named_events(stream) if event["type"] == "content_block_stop"]
    assert blocks == [0, 1, 2]


def test_a_call_with_damaged_arguments_becomes_text_and_the_client_waits_for_no_call() -> None:
    reply = Reply(finish="tool_calls", calls=(RawCall(id="t1", name="look", arguments='{"a": '),))
    written = json.loads(MESSAGES.encode_reply(reply, envelope(MESSAGES)))
    assert written["content"] == texts('[called look: {"a": ]')
    assert written["stop_reason"] == "end_turn"


# --- streams


def chunks(stream: bytes) -> list[Any]:
    *events, done, end = stream.decode().split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


PIECES: list[Piece] = [
    ReasoningDelta(text="Hm."),
    TextDelta(text="I "),
    TextDelta(text="look."),
    CallStarted(index=0, name="lo"),
    CallStarted(index=0, name="look", id="c1"),
    CallDelta(index=0, arguments='{"at": '),
    CallStarted(index=1, name="patch"),
    CallDelta(index=1, arguments='{"input":"+"}'),
    CallDelta(index=0, arguments='"tree"}'),
    TextDelta(text=" Now."),
    Ended(finish="tool_calls", usage=CALLED.usage),
]
"""`CALLED` as it comes: a name that grows, calls by turns, and text after them, which is written before them."""


def streamed(wire: ServerWire) -> bytes:
    events, stream = wire.events(envelope(wire)).begin()
    for piece in PIECES:
        events, more = events.advance(piece)
        stream += more
    return stream


def test_a_stream_of_chunks_has_the_role_first_then_deltas_then_the_reason() -> None:
    told = chunks(streamed(CHAT))
    assert {(c["id"], c["object"], c["created"], c["model"]) for c in told} == {
        ("chatcmpl-3f", "chat.completion.chunk", 1_700_000_000, "m")
    }
    patch = {"index": 1, "id": "call_3f_1", "type": "custom", "custom": {"name": "patch", "input": "+"}}
    assert [c["choices"][0]["delta"] for c in told] == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "Hm."},
        *({"content": text} for text in ("I ", "look.", " Now.")),
        {"tool_calls": [{"index": 0, **function("c1", "")}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"at": "tree"}'}}]},
        {"tool_calls": [patch]},
        {},
    ]
    assert [c["choices"][0]["finish_reason"] for c in told] == [*[None] * 8, "tool_calls"]


def test_usage_is_told_where_the_client_asks_for_it() -> None:
    ended = (Ended(usage=Usage(prompt=2, completion=1)),)
    request = asked_of(CHAT, stream=True, stream_options={"include_usage": True})
    *rest, last = chunks(pieces(CHAT.events(envelope(CHAT, request)), ended))
    assert (last["choices"], last["usage"]["total_tokens"]) == ([], 3)
    assert {chunk["usage"] for chunk in rest} == {None}
    assert all("usage" not in chunk for chunk in chunks(pieces(CHAT.events(envelope(CHAT)), ended)))


def test_a_stream_of_a_message_opens_and_closes_each_block_in_turn() -> None:
    opening, *blocks, delta, stop = named_events(streamed(MESSAGES))
    assert opening["message"]["content"] == []
    assert opening["message"]["usage"]["input_tokens"] == 12
    assert [(e["type"].removeprefix("content_block_"), e["index"]) for e in blocks] == [
        (what, number) for number, deltas in enumerate((1, 3, 1, 1)) for what in ("start", *["delta"] * deltas, "stop")
    ]
    assert [e["content_block"] for e in blocks if "content_block" in e] == [
        {"type": "thinking", "thinking": "", "signature": ""},
        *texts(""),
        used("c1"),
        {"type": "tool_use", "id": "toolu_3f_1", "name": "patch", "input": {}},
    ]
    assert [e["delta"] for e in blocks if "delta" in e] == [
        {"type": "thinking_delta", "thinking": "Hm."},
        *texts("I ", "look.", " Now.", kind="text_delta"),
        *({"type": "input_json_delta", "partial_json": call.arguments} for call in CALLED.calls),
    ]
    assert delta["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert (delta["usage"]["input_tokens"], delta["usage"]["output_tokens"]) == (7, 5)
    assert stop == {"type": "message_stop"}


def numbered(stream: bytes) -> list[Any]:
    """The events, each under its own name, counted without a gap."""
    events = named_events(stream)
    assert [event["sequence_number"] for event in events] == [*range(len(events))]
    return events


def test_a_stream_of_a_response_has_each_item_added_and_done_and_the_whole_at_the_end() -> None:
    found = numbered(streamed(RESPONSES))
    of_items = (
        [f"reasoning_summary_{what}" for what in ("part.added", "text.delta", "text.done", "part.done")],
        ["content_part.added", *["output_text.delta"] * 3, "output_text.done", "content_part.done"],
        [f"function_call_arguments.{what}" for what in ("delta", "done")],
        [f"custom_tool_call_input.{what}" for what in ("delta", "done")],
    )
    assert [event["type"].removeprefix("response.") for event in found] == [
        *("created", "in_progress"),
        *(name for inside in of_items for name in ("output_item.added", *inside, "output_item.done")),
        "completed",
    ]
    assert [event["item"] for event in found if event["type"] == "response.output_item.done"] == ITEMS
    assert found[-1]["response"] == json.loads(RESPONSES.encode_reply(CALLED, envelope(RESPONSES)))
    assert {event["response"]["id"] for event in found if "response" in event} == {"resp_3f"}
    assert [event["name"] for event in found if event["type"].endswith("arguments.done")] == ["look"]
    deltas = [event["delta"] for event in found if "delta" in event]
    assert deltas == ["Hm.", "I ", "look.", " Now.", '{"at": "tree"}', "+"]
    inside = [event for event in found if not {"response", "item"} & event.keys()]
    assert [ITEMS[event["output_index"]]["id"] for event in inside] == [event["item_id"] for event in inside]


# --- errors

TOO_LONG = too_long(300, 200)
ERRORS: list[tuple[ServerWire, RequestError, int, str, str | None]] = [
    (CHAT, RequestError(message="n: no", param="n"), 400, "invalid_request_error", None),
    (CHAT, RequestError(message="gone", status=404, code="model_not_found"), 404, "not_found_error", "model_not_found"),
    (RESPONSES, error_of(Fault(kind="timeout", detail="slow")), 504, "server_error", None),
    (CHAT, TOO_LONG, 400, "invalid_request_error", "context_length_exceeded"),
    (MESSAGES, TOO_LONG, 400, "invalid_request_error", None),
    (MESSAGES, error_of(Fault(kind="reported", detail="odd")), 502, "api_error", None),
]


@pytest.mark.parametrize(("wire", "error", "status", "kind", "code"), ERRORS)
def test_an_error_has_the_shape_of_the_protocol(
    wire: ServerWire, error: RequestError, status: int, kind: str, code: str | None
) -> None:
    answer = wire.encode_error(error)
    told: dict[str, object] = {"type": "error", "error": {"type": kind, "message": error.message}}
    if wire is not MESSAGES:
        told = {"error": {"message": error.message, "type": kind, "param": error.param or None, "code": code}}
    assert (answer.status, json.loads(answer.body)) == (status, told)


def test_a_prompt_that_is_too_long_is_told_in_the_words_by_which_clients_compact() -> None:
    assert TOO_LONG.message == "prompt is too long: 300 tokens > 200 maximum"


def test_an_error_says_when_to_try_again_and_whether_to() -> None:
    fault = Fault(kind="status", detail="busy", status=429, retry_after=1.6, retriable=False)
    assert CHAT.encode_error(error_of(fault)).headers == (("retry-after", "2"), ("x-should-retry", "false"))
    assert CHAT.encode_error(TOO_LONG).headers == (("x-should-retry", "false"),)


def test_a_response_that_fails_says_so_in_an_event_of_its_own() -> None:
    events, sent = RESPONSES.events(envelope(RESPONSES)).advance(TextDelta(text="So"))
    last = numbered(sent + events.fail(RequestError(message="it broke", status=502)))[-1]
    assert last["type"] == "response.failed"
    assert last["response"]["status"] == "failed"
    assert last["response"]["error"] == {"code": "server_error", "message": "it broke"}
    early = RESPONSES.events(envelope(RESPONSES)).fail(RequestError(message="later", status=429))
    first, *_, failed = numbered(early)
    assert (first["type"], failed["response"]["error"]["code"]) == ("response.created", "rate_limit_exceeded")
