"""The server's side of OpenAI's Responses: what clients send is read, what they insist on is written."""

import json
from functools import partial
from typing import Any

import pytest
from msgspec import Raw

from stages.effect import RawCall, Reply, Usage
from stages.message import Assistant, turn_of
from stages.wire.deltas import CallDelta, CallStarted, Ended, Piece, ReasoningDelta, TextDelta, reply_pieces
from stages.wire.openai.responses_server import encode_reply, response_events
from stages.wire.server.errors import RequestError
from stages.wire.server.request import ClientChoice, Foreign, ServerRequest, TextFormat
from stages.wire.server.streams import Envelope
from stages.wire.server.translation import refusal
from stages.wire.server_wires import RESPONSES
from tests.wire_client import asked_of, assert_refused, named_events, pieces, said, schema_of

LOOK: Any = {
    "type": "function",
    "name": "look",
    "description": "Look.",
    "parameters": {"type": "object"},
    "strict": True,
}
PATCH: Any = {"type": "custom", "name": "patch", "description": "Change a file.", "format": {"type": "text"}}


def space(name: str, *tools: Any) -> dict[str, Any]:
    return {"type": "namespace", "name": name, "description": "Some tools.", "tools": tools}


asked = partial(asked_of, RESPONSES)


def call(call_id: str, name: str = "look", arguments: str = "{}", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "id": "fc", "call_id": call_id, "name": name, "arguments": arguments, **more}


def output(call_id: str, given: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": given}


def test_a_conversation_with_tools_is_read() -> None:
    items = [
        {"role": "developer", "content": "Use tools."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": t} for t in ("one", "two")]},
        {
            "type": "reasoning",
            "id": "rs",
            "summary": [{"type": "summary_text", "text": "Hm."}],
            "encrypted_content": "x",
        },
        {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        call("c1", arguments='{"at": 1}'),
        call("c2"),
        output("c1", "a tree"),
        output("c2", [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]),
        {"role": "assistant", "content": "Done."},
    ]
    request = asked(input=items, instructions="Be brief.", tools=[LOOK])
    assert said(request.history) == [
        ("system", "Be brief."),
        ("system", "Use tools."),
        ("user", "one\ntwo"),
        ("assistant", "I look.", 'look({"at": 1})', "look({})"),
        ("tool", "c1", "look", "a tree"),
        ("tool", "c2", "look", "a\nb"),
        ("assistant", "Done."),
    ]
    spoken = request.history[3]
    assert isinstance(spoken, Assistant)
    assert spoken.reasoning == "Hm."
    assert [turn_of(message) for message in request.history] == [0, 0, 0, 1, 1, 1, 2]
    assert [(tool.spec.name, schema_of(tool.spec.parameters)) for tool in request.tools] == [
        ("look", {"type": "object"})
    ]
    assert request.foreign == ()


def test_an_input_may_be_a_text() -> None:
    assert said(asked(input='Look "there".').history) == [("user", 'Look "there".')]


def test_custom_tools_are_functions_of_one_argument() -> None:
    given = {"type": "custom_tool_call", "id": "x", "call_id": "c1", "name": "patch", "input": "+ line"}
    answer = {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"}
    request = asked(input=[{"role": "user", "content": "Go."}, given, answer], tools=[PATCH])
    assert said(request.history)[1:] == [
        ("assistant", "", 'patch({"input":"+ line"})'),
        ("tool", "c1", "patch", "done"),
    ]
    assert [tool.kind for tool in request.tools] == ["custom"]


def test_tools_in_namespaces_have_the_shortest_name_that_is_theirs_alone() -> None:
    search = {**LOOK, "name": "search"}
    tools = [LOOK, space("mcp__docs", search, {**LOOK, "name": "read"}), space("mcp__web__", search, LOOK, PATCH)]
    more = {"type": "additional_tools", "role": "developer", "tools": [space("late", {**LOOK, "name": "found"})]}
    items = [more, {"role": "user", "content": "Go."}, call("c1", "search", namespace="mcp__web__"), output("c1", "it")]
    request = asked(tools=tools, input=items)
    assert [(tool.spec.name, tool.namespace, tool.own_name) for tool in request.tools] == [
        ("look", "", "look"),
        ("mcp__docs__search", "mcp__docs", "search"),
        ("read", "mcp__docs", "read"),
        ("mcp__web__search", "mcp__web__", "search"),
        ("mcp__web__look", "mcp__web__", "look"),
        ("patch", "mcp__web__", "patch"),
        ("found", "late", "found"),
    ]
    assert said(request.history)[1:] == [
        ("assistant", "", "mcp__web__search({})"),
        ("tool", "c1", "mcp__web__search", "it"),
    ]
    reply = Reply(calls=tuple(RawCall(id=name, name=name) for name in ("look", "mcp__web__search", "patch", "nobody")))
    told = json.loads(encode_reply(reply, envelope(request)))["output"]
    assert [(item["name"], item.get("namespace"), item["type"]) for item in told] == [
        ("look", None, "function_call"),
        ("search", "mcp__web__", "function_call"),
        ("patch", "mcp__web__", "custom_tool_call"),
        ("nobody", None, "function_call"),
    ]


CHOICES = [
    (None, ClientChoice()),
    ("auto", ClientChoice()),
    ("none", ClientChoice(mode="none")),
    ("required", ClientChoice(mode="required")),
    ({"type": "function", "name": "look"}, ClientChoice(mode="required", tools=("look",))),
    ({"type": "custom", "name": "patch"}, ClientChoice(mode="required", tools=("patch",))),
    (
        {
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "function", "name": "look"}, {"type": "mcp", "server_label": "x"}],
        },
        ClientChoice(mode="required", tools=("look",)),
    ),
    ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]}, ClientChoice(mode="none")),
]


@pytest.mark.parametrize(("given", "choice"), CHOICES)
def test_the_choice_of_tools(given: object, choice: ClientChoice) -> None:
    request = asked(tools=[LOOK, PATCH], tool_choice=given)
    assert request.choice == choice
    assert request.foreign == ()


def test_options_are_read_by_what_they_mean() -> None:
    request = asked(
        stream=True,
        parallel_tool_calls=False,
        temperature=0.5,
        top_p=1,
        max_output_tokens=60,
        reasoning={"effort": "low", "summary": "auto"},
        text={"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}, "strict": True}},
        store=False,
        include=["reasoning.encrypted_content"],
        prompt_cache_key="k",
    )
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_p, sampling.max_tokens) == (0.5, 1, 60)
    assert (request.stream, request.parallel, request.thinking.effort) == (True, False, "low")
    assert request.format == TextFormat(schema=Raw(b'{"type":"object"}'), name="a", strict=True)
    assert asked(text={"format": {"type": "text"}}).format is None
    assert asked(text={"format": {"type": "json_object"}}).format == TextFormat()


def test_what_has_no_noun_is_listed_with_what_becomes_of_it() -> None:
    picture = {"type": "input_image", "image_url": "data:"}
    request = asked(
        input=[
            {"role": "user", "content": [picture]},
            call("c1"),
            output("c1", [picture]),
            {"type": "web_search_call", "id": "ws", "status": "completed"},
            {"role": "user", "content": [{"type": "input_file", "file_id": "f"}]},
            {"type": "item_reference", "id": "old"},
        ],
        tools=[{"type": "web_search"}],
        tool_choice={"type": "web_search_preview"},
        previous_response_id="resp_1",
        conversation={"id": "c"},
        prompt={"id": "p"},
        background=True,
        top_logprobs=2,
    )
    assert said(request.history)[0] == ("user", "[input_image left out]")
    assert request.foreign == (
        Foreign(at="input[0].content[0]", kind="input_image", fate="noted"),
        Foreign(at="input[2].output[0]", kind="input_image", fate="noted"),
        Foreign(at="input[3]", kind="web_search_call", fate="dropped"),
        Foreign(at="input[4].content[0]", kind="input_file", fate="refused"),
        Foreign(at="input[5]", kind="item_reference", fate="refused"),
        Foreign(at="tools[0]", kind="web_search", fate="dropped"),
        Foreign(at="previous_response_id", kind="a response stored by the server", fate="refused"),
        Foreign(at="conversation", kind="a conversation stored by the server", fate="refused"),
        Foreign(at="prompt", kind="a prompt stored by the server", fate="refused"),
        Foreign(at="background", kind="a background response", fate="refused"),
        Foreign(at="top_logprobs", kind="log-probabilities", fate="refused"),
        Foreign(at="tool_choice", kind="web_search_preview", fate="refused"),
    )
    error = refusal(request)
    assert error is not None
    assert error.param == "input[4].content[0]"


def test_the_conversation_goes_on_without_words_that_a_client_only_refers_to() -> None:
    referred = [{"type": "item_reference", "id": name} for name in ("rs_1", "msg_1")]
    request = asked(input=[{"role": "user", "content": "Look."}, *referred, call("c1"), output("c1", "A tree.")])
    assert [one[0] for one in said(request.history)] == ["user", "assistant", "tool"]
    assert said(request.history)[1][1] == "[an earlier text left out]"
    assert request.foreign == (
        Foreign(at="input[1]", kind="item_reference", fate="dropped"),
        Foreign(at="input[2]", kind="item_reference", fate="noted"),
    )
    assert refusal(request) is None


def test_a_required_call_of_tools_that_only_another_server_runs_is_refused() -> None:
    required = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "web_search"}]}
    error = refusal(asked(tools=[LOOK, {"type": "web_search"}], tool_choice=required))
    assert error is not None
    assert (error.param, "web_search" in error.message) == ("tool_choice", True)


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"model": None}, "model", "expected string, got null"),
    ({"input": []}, "input", "at least one item"),
    ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role", "must be user, assistant, system or developer"),
    ({"input": [{"role": "user", "content": [{}]}]}, "input[0].content[0].type", "field required"),
    ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0].text", "field required"),
    ({"input": [{"type": "custom_tool_call", "name": "x"}]}, "input[0].input", "expected string, got null"),
    ({"tools": [{"name": "look"}]}, "tools[0].type", "field required"),
    ({"tools": [space("x", {"type": "function"})]}, "tools[0].tools[0].name", "1 to 256 characters"),
    ({"tools": [{**LOOK, "parameters": 3}]}, "tools[0].parameters", "must be a JSON Schema"),
    ({"tool_choice": "required"}, "tool_choice", "the request has no tools"),
    ({"tools": [LOOK], "tool_choice": "maybe"}, "tool_choice", "must be auto, none, required or a tool, not 'maybe'"),
    ({"tools": [LOOK], "tool_choice": {"type": "function", "name": "x"}}, "tool_choice", "'x' is not one of"),
    ({"tools": [LOOK], "tool_choice": {"type": "allowed_tools", "mode": "x"}}, "tool_choice.mode", "auto or required"),
    ({"max_output_tokens": 0}, "max_output_tokens", ">= 1"),
    ({"text": {"format": {"type": "xml"}}}, "text.format.type", "must be text"),
]


@pytest.mark.parametrize(("body", "param", "words"), WRONG)
def test_a_request_that_is_wrong_is_told_where_and_what_to_write(body: dict[str, Any], param: str, words: str) -> None:
    assert_refused(RESPONSES, body, param, words)


# --- answers


def envelope(request: ServerRequest | None = None) -> Envelope:
    return Envelope(id="resp_3f", created=1_700_000_000, request=request or asked(tools=[LOOK, PATCH]))


CALLED = Reply(
    text="I look.",
    reasoning="Hm.",
    calls=(RawCall(id="c1", name="look", arguments='{"at": "tree"}'), RawCall(name="patch", arguments='{"input":"+"}')),
    finish="tool_calls",
    usage=Usage(prompt=10, completion=5, cached=3),
)
ITEMS = [
    {"type": "reasoning", "id": "rs_3f_0", "summary": [{"type": "summary_text", "text": "Hm."}]},
    {
        "type": "message",
        "id": "msg_3f_1",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "I look.", "annotations": [], "logprobs": []}],
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


def test_a_reply_is_written_as_clients_read_it() -> None:
    request = asked(tools=[LOOK, PATCH], temperature=0.5, metadata={"a": "b"}, reasoning={"effort": "low"})
    response = json.loads(encode_reply(CALLED, envelope(request)))
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
    assert (response["temperature"], response["metadata"], response["tool_choice"]) == (0.5, {"a": "b"}, "auto")
    assert response["reasoning"] == {"effort": "low"}


@pytest.mark.parametrize(
    ("finish", "status", "details"),
    [
        ("stop", "completed", None),
        ("abort", "completed", None),
        ("length", "incomplete", {"reason": "max_output_tokens"}),
        ("content_filter", "incomplete", {"reason": "content_filter"}),
    ],
)
def test_a_reply_that_was_cut_off_is_incomplete(finish: str, status: str, details: object) -> None:
    reply = Reply(text="So", finish=finish)
    whole = json.loads(encode_reply(reply, envelope()))
    last = told(pieces(response_events(envelope()), reply_pieces(reply)))[-1]
    assert last["type"] == f"response.{status}"
    for response in (whole, last["response"]):
        assert (response["status"], response["incomplete_details"]) == (status, details)


def told(stream: bytes) -> list[Any]:
    """The events, each under its own name, counted without a gap."""
    events = named_events(stream)
    assert [event["sequence_number"] for event in events] == [*range(len(events))]
    return events


def test_a_stream_has_each_item_added_and_done_and_the_whole_at_the_end() -> None:
    stream: list[Piece] = [
        ReasoningDelta(text="Hm."),
        TextDelta(text="I "),
        TextDelta(text="look."),
        CallStarted(index=0, name="look", id="c1"),
        CallDelta(index=0, arguments='{"at": '),
        CallDelta(index=0, arguments='"tree"}'),
        CallStarted(index=1, name="patch"),
        CallDelta(index=1, arguments='{"input":"+"}'),
        Ended(finish="tool_calls", usage=CALLED.usage),
    ]
    events, sent = response_events(envelope()).begin()
    for piece in stream:
        events, more = events.advance(piece)
        sent += more
    found = told(sent)
    assert [event["type"].removeprefix("response.") for event in found] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
        "completed",
    ]
    assert [event["item"] for event in found if event["type"] == "response.output_item.done"] == ITEMS
    assert found[-1]["response"] == json.loads(encode_reply(CALLED, envelope()))
    assert {event["response"]["id"] for event in found if "response" in event} == {"resp_3f"}
    assert [event["delta"] for event in found if "delta" in event] == ["Hm.", "I ", "look.", '{"at": "tree"}', "+"]
    inside = [event for event in found if "item_id" in event]
    assert [ITEMS[event["output_index"]]["id"] for event in inside] == [event["item_id"] for event in inside]


def test_a_stream_that_fails_says_so_in_an_event_of_its_own() -> None:
    events, sent = response_events(envelope()).advance(TextDelta(text="So"))
    last = told(sent + events.fail(RequestError(message="it broke", status=502)))[-1]
    assert last["type"] == "response.failed"
    assert last["response"]["status"] == "failed"
    assert last["response"]["error"] == {"code": "server_error", "message": "it broke"}
    first, *_, failed = told(response_events(envelope()).fail(RequestError(message="later", status=429)))
    assert (first["type"], failed["response"]["error"]["code"]) == ("response.created", "rate_limit_exceeded")
