"""The server's side of Anthropic's Messages: what clients send is read, what they insist on is written."""

import json
from functools import partial
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from stages.effect import RawCall, Reply, Usage
from stages.message import Assistant, Tool, turn_of
from stages.wire.anthropic.messages import AnthropicStream, decode_reply
from stages.wire.anthropic.messages_server import decode_count_request, decode_request, encode_reply, message_events
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
from stages.wire.server.errors import RequestError, too_long
from stages.wire.server.request import ClientChoice, Foreign, ServerRequest, TextFormat, Thinking
from stages.wire.server.streams import Envelope
from stages.wire.server.translation import refusal
from stages.wire.server_wires import MESSAGES
from tests.wire_client import asked_of, assert_refused, named_events, pieces, said

ASK: Any = {"role": "user", "content": "Look."}
LOOK: Any = {"name": "look", "description": "Look.", "input_schema": {"type": "object"}}
asked = partial(asked_of, MESSAGES)


def text(*texts: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": each, "cache_control": {"type": "ephemeral"}} for each in texts]


def result(answered: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": answered, "content": content, **more}


def use(use_id: str, name: str = "look", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": use_id, "name": name, "input": given}


def test_a_conversation_with_tools_is_read() -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
    messages = [
        {"role": "user", "content": text("one", "two")},
        {"role": "assistant", "content": [thought, *text("I look."), use("t1", at=1), use("t2")]},
        {"role": "user", "content": [*text("There."), result("t1", text("a", "b")), result("t2", "no", is_error=True)]},
        {"role": "system", "content": "Be quick."},
        {"role": "assistant", "content": "Done."},
    ]
    request = asked(messages=messages, system=text("Be brief.", "Use tools."), tools=[LOOK])
    assert said(request.history) == [
        ("system", "Be brief.\n\nUse tools."),
        ("user", "one\n\ntwo"),
        ("assistant", "I look.", 'look({"at":1})', "look({})"),
        ("tool", "t1", "look", "a\nb"),
        ("tool", "t2", "look", "no"),
        ("user", "There."),
        ("system", "Be quick."),
        ("assistant", "Done."),
    ]
    spoken = request.history[2]
    assert isinstance(spoken, Assistant)
    assert spoken.reasoning == "Hm."
    assert json.loads(spoken.sealed) == [thought]
    assert [turn_of(message) for message in request.history] == [0, 0, 1, 1, 1, 1, 0, 2]
    assert [each.status for each in request.history if isinstance(each, Tool)] == ["succeeded", "failed"]
    assert request.foreign == ()


@pytest.mark.parametrize("same", [{"system": "Be brief."}, {"system": text("Be brief.")}])
def test_a_system_prompt_is_the_same_as_text_and_as_blocks(same: dict[str, Any]) -> None:
    assert said(asked(**same).history)[0] == ("system", "Be brief.")


def test_thinking_that_nobody_signed_is_reasoning_alone() -> None:
    mine = {"type": "thinking", "thinking": "Hm.", "signature": ""}
    hidden = {"type": "redacted_thinking", "data": "xyz"}
    one, other = (
        asked(messages=[ASK, {"role": "assistant", "content": [thought]}]).history[1] for thought in (mine, hidden)
    )
    assert isinstance(one, Assistant)
    assert isinstance(other, Assistant)
    assert (one.reasoning, one.sealed) == ("Hm.", "")
    assert json.loads(other.sealed) == [hidden]


CHOICES = [
    (None, ClientChoice(), True),
    ({"type": "auto"}, ClientChoice(), True),
    ({"type": "auto", "disable_parallel_tool_use": True}, ClientChoice(), False),
    ({"type": "none"}, ClientChoice(mode="none"), True),
    ({"type": "any"}, ClientChoice(mode="required"), True),
    ({"type": "tool", "name": "look"}, ClientChoice(mode="required", tools=("look",)), True),
]


@pytest.mark.parametrize(("given", "choice", "parallel"), CHOICES)
def test_the_choice_of_tools(given: object, choice: ClientChoice, parallel: bool) -> None:
    request = asked(tools=[LOOK], tool_choice=given)
    assert (request.choice, request.parallel) == (choice, parallel)


def test_options_are_read_by_what_they_mean() -> None:
    schema = {"type": "json_schema", "schema": {"type": "object"}}
    request = asked(
        stream=True,
        temperature=0.5,
        top_p=0.9,
        top_k=5,
        stop_sequences=["END", ""],
        thinking={"type": "enabled", "budget_tokens": 2000},
        output_config={"effort": "high", "format": schema},
    )
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.stop) == (0.5, 0.9, 5, ("END",))
    assert sampling.max_tokens == 50
    assert request.stream
    assert request.thinking == Thinking(wanted=True, effort="high")
    assert request.format == asked(output_format=schema).format == TextFormat(schema=Raw(b'{"type":"object"}'))
    assert asked(thinking={"type": "disabled"}).thinking == Thinking(wanted=False)
    assert asked().thinking == Thinking()


def test_a_deferred_tool_is_offered_when_a_result_refers_to_it() -> None:
    later = {**LOOK, "name": "later", "defer_loading": True}
    other = {**LOOK, "name": "other", "defer_loading": True}
    found = result("t1", [{"type": "tool_reference", "tool_name": "later"}])
    messages = [ASK, {"role": "assistant", "content": [use("t1")]}, {"role": "user", "content": [found]}]
    request = asked(messages=messages, tools=[LOOK, later, other])
    assert [spec.name for spec in request.specs] == ["look", "later"]
    assert said(request.history)[-1] == ("tool", "t1", "look", "The tool later can be called now.")


def test_what_has_no_noun_is_listed_with_what_becomes_of_it() -> None:
    picture = {"type": "image", "source": {"type": "base64", "data": ""}}
    request = asked(
        messages=[
            {"role": "user", "content": [picture, *text("What?")]},
            {"role": "assistant", "content": [{"type": "server_tool_use", "id": "s", "name": "web", "input": {}}]},
            {"role": "user", "content": [result("t1", [picture]), {"type": "document", "source": {}}]},
        ],
        tools=[{"type": "web_search_20250305", "name": "web_search"}, {"type": "bash_20250124", "name": "bash"}],
        mcp_servers=[{}],
    )
    assert said(request.history)[0] == ("user", "[image left out]\n\nWhat?")
    assert request.foreign == (
        Foreign(at="messages[0].content[0]", kind="image", fate="noted"),
        Foreign(at="messages[1].content[0]", kind="server_tool_use", fate="dropped"),
        Foreign(at="messages[2].content[0].content[0]", kind="image", fate="noted"),
        Foreign(at="messages[2].content[1]", kind="document", fate="refused"),
        Foreign(at="tools[0]", kind="web_search_20250305", fate="dropped"),
        Foreign(at="tools[1]", kind="bash_20250124", fate="dropped"),
        Foreign(at="mcp_servers", kind="tools of another server", fate="dropped"),
    )
    error = refusal(request)
    assert error is not None
    assert error.param == "messages[2].content[1]"


def test_tokens_are_counted_without_a_limit() -> None:
    body = msgspec.json.encode({"model": "m", "messages": [ASK], "tools": [LOOK]})
    assert isinstance(decode_count_request(body), ServerRequest)
    assert decode_request(body) == RequestError(message="max_tokens: field required", param="max_tokens")


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"model": 3}, "model", "expected string, got integer"),
    ({"max_tokens": 0}, "max_tokens", ">= 1"),
    ({"messages": []}, "messages", "at least one"),
    ({"messages": [{"role": "user"}]}, "messages[0].content", "field required"),
    ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role", "must be user, assistant or system"),
    ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text", "field required"),
    (
        {"messages": [{"role": "assistant", "content": [{"type": "tool_use"}]}]},
        "messages[0].content[0].name",
        "field required",
    ),
    ({"messages": [{"role": "user", "content": [result("t", 3)]}]}, "messages[0].content[0].content", "expected"),
    (
        {"messages": [{"role": "user", "content": [result("t", [{}])]}]},
        "messages[0].content[0].content[0].type",
        "field required",
    ),
    ({"system": [{"type": "image"}]}, "system[0].type", "must be text"),
    ({"tools": [{"name": ""}]}, "tools[0].name", "1 to 256 characters"),
    ({"tools": [{"name": "f", "input_schema": 3}]}, "tools[0].input_schema", "must be a JSON Schema"),
    ({"tool_choice": {"type": "any"}}, "tool_choice", "the request has no tools"),
    ({"tools": [LOOK], "tool_choice": {"type": "tool"}}, "tool_choice.name", "field required"),
    ({"tools": [LOOK], "tool_choice": {"type": "some"}}, "tool_choice.type", "must be auto, any, tool or none"),
    ({"output_format": {"type": "xml"}}, "output_format.type", "must be json_schema"),
    ({"output_config": {"format": {"type": "xml"}}}, "output_config.format.type", "must be json_schema"),
]


@pytest.mark.parametrize(("body", "param", "words"), WRONG)
def test_a_request_that_is_wrong_is_told_where_and_what_to_write(body: dict[str, Any], param: str, words: str) -> None:
    assert_refused(MESSAGES, body, param, words)


# --- answers


def envelope(request: ServerRequest | None = None) -> Envelope:
    return Envelope(id="msg_3f", created=1_700_000_000, request=request or asked(tools=[LOOK]), prompt_tokens=12)


def test_a_reply_is_written_as_clients_read_it() -> None:
    calls = (RawCall(id="t1", name="look", arguments='{"a": 1}'), RawCall(name="look"))
    reply = Reply(text="I look.", reasoning="Hm.", calls=calls, usage=Usage(prompt=10, completion=5, cached=8))
    assert json.loads(encode_reply(reply, envelope())) == {
        "id": "msg_3f",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": ""},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {"a": 1}},
            {"type": "tool_use", "id": "toolu_3f_1", "name": "look", "input": {}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 2,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 8,
            "output_tokens": 5,
        },
    }


def test_sealed_thinking_goes_back_as_it_came_whole_and_streamed() -> None:
    sealed = '[{"type":"thinking","thinking":"Hm.","signature":"sig"},{"type":"redacted_thinking","data":"x"}]'
    reply = Reply(text="Yes.", reasoning="Hm.", sealed=sealed, usage=Usage(prompt=1))
    assert decode_reply(encode_reply(reply, envelope())) == reply
    stream = pieces(message_events(envelope()), reply_pieces(reply))
    decoder, read = AnthropicStream().advance(stream)
    assert gather_reply((*read, *decoder.finish())) == reply
    blocks = [event["index"] for event in named_events(stream) if event["type"] == "content_block_stop"]
    assert blocks == [0, 1, 2]


def test_a_call_with_damaged_arguments_becomes_text_and_the_client_waits_for_no_call() -> None:
    reply = Reply(finish="tool_calls", calls=(RawCall(id="t1", name="look", arguments='{"a": '),))
    written = json.loads(encode_reply(reply, envelope()))
    assert written["content"] == [{"type": "text", "text": '[called look: {"a": ]'}]
    assert written["stop_reason"] == "end_turn"


@pytest.mark.parametrize(
    ("finish", "called", "told"),
    [
        ("stop", False, "end_turn"),
        ("stop", True, "tool_use"),
        ("length", True, "max_tokens"),
        ("abort", False, "end_turn"),
    ],
)
def test_the_reason_for_which_a_reply_ends(finish: str, called: bool, told: str) -> None:
    reply = Reply(finish=finish, calls=(RawCall(id="c", name="look"),) if called else ())
    assert json.loads(encode_reply(reply, envelope()))["stop_reason"] == told


def test_a_stream_opens_and_closes_each_block_in_turn() -> None:
    pieces: list[Piece] = [
        ReasoningDelta(text="Hm."),
        TextDelta(text="I "),
        TextDelta(text="look."),
        CallStarted(index=0, name="lo"),
        CallStarted(index=0, name="look", id="t1"),
        CallDelta(index=0, arguments="{"),
        CallStarted(index=1, name="look"),
        CallDelta(index=0, arguments="}"),
        TextDelta(text=" Now."),
        Ended(finish="tool_calls", usage=Usage(prompt=10, completion=5)),
    ]
    events, stream = message_events(envelope()).begin()
    for piece in pieces:
        events, more = events.advance(piece)
        stream += more
    opening, *blocks, delta, stop = named_events(stream)
    assert opening["message"]["content"] == []
    assert opening["message"]["usage"]["input_tokens"] == 12
    assert [(e["type"].removeprefix("content_block_"), e["index"]) for e in blocks] == [
        *(("start", 0), ("delta", 0), ("stop", 0)),
        *(("start", 1), ("delta", 1), ("delta", 1), ("delta", 1), ("stop", 1)),
        *(("start", 2), ("delta", 2), ("stop", 2)),
        *(("start", 3), ("stop", 3)),
    ]
    assert [e["content_block"] for e in blocks if "content_block" in e] == [
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "text", "text": ""},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {}},
        {"type": "tool_use", "id": "toolu_3f_1", "name": "look", "input": {}},
    ]
    assert [e["delta"] for e in blocks if "delta" in e] == [
        {"type": "thinking_delta", "thinking": "Hm."},
        {"type": "text_delta", "text": "I "},
        {"type": "text_delta", "text": "look."},
        {"type": "text_delta", "text": " Now."},
        {"type": "input_json_delta", "partial_json": "{}"},
    ]
    assert delta["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert (delta["usage"]["input_tokens"], delta["usage"]["output_tokens"]) == (10, 5)
    assert stop == {"type": "message_stop"}


ERRORS = [
    (RequestError(message="n: no", param="n"), 400, "invalid_request_error"),
    (too_long(9000, 8192), 400, "invalid_request_error"),
]


@pytest.mark.parametrize(("error", "status", "kind"), ERRORS)
def test_an_error_has_the_shape_of_the_protocol(error: RequestError, status: int, kind: str) -> None:
    answer = MESSAGES.encode_error(error)
    assert answer.status == status
    assert json.loads(answer.body) == {"type": "error", "error": {"type": kind, "message": error.message}}
