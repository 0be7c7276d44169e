"""What of a server's own chat completions clients take as it is; from there on forge writes the stream."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from stages.effect import Usage
from stages.wire.deltas import CallDelta, CallStarted, Ended, Piece, ReasoningDelta, TextDelta
from stages.wire.openai.chat_server import ChatEvents, completion_events
from stages.wire.server.streams import Envelope
from stages.wire.server_wires import CHAT
from tests.wire_client import asked_of, without

Chunk = dict[str, Any]
FUNCTION = {"name": "look", "arguments": ""}
CALL: Chunk = {"index": 0, "id": "c1", "type": "function", "function": FUNCTION}
USED = {"id": "c9", "type": "function", "function": {"name": "look", "arguments": "{}"}}
MESSAGES = [{"role": "user", "content": "Look."}, {"role": "assistant", "tool_calls": [USED]}]


def begun(*, usage: bool = True) -> ChatEvents:
    request = asked_of(CHAT, messages=MESSAGES, stream=True, stream_options={"include_usage": usage})
    return completion_events(Envelope(id="chatcmpl-own", created=1, request=request))


def chunk(delta: Any, finish: str | None = None, **frame: Any) -> Chunk:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "x1", "object": "chat.completion.chunk", "created": 7, "model": "b", "choices": [choice], **frame}


def event(payload: Any) -> bytes:
    return b"data: " + msgspec.json.encode(payload) + b"\n\n"


ROLE, TEXT, END = chunk({"role": "assistant"}), chunk({"content": "Hm."}), chunk({}, "tool_calls")
GOOD = (
    ROLE,
    TEXT,
    chunk({"tool_calls": [CALL]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}),
    END,
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}},
)


def passed(*chunks: Chunk) -> tuple[ChatEvents, list[bool]]:
    state, fits = begun(), list[bool]()
    for one in chunks:
        state, fit = state.pass_on(event(one))
        fits.append(fit)
    return state, fits


def test_a_stream_that_lacks_nothing_is_taken_whole() -> None:
    state, fits = passed(*GOOD)
    assert all(fits)
    assert state.over
    assert state.pass_on(b"data: [DONE]\n\n") == (state, True)


@pytest.mark.parametrize("raw", [b": waiting\n\n", b"\n", b"", b"retry: 5\n\n"])
def test_comments_and_blanks_are_taken(raw: bytes) -> None:
    assert begun().pass_on(raw) == (begun(), True)


def with_call(**fields: Any) -> Chunk:
    return chunk({"tool_calls": [{**CALL, **fields}]})


AT_CALL = ("choices", 0, "delta", "tool_calls", 0)


@pytest.mark.parametrize(
    ("before", "lacking"),
    [
        ((), without(ROLE, "choices", 0, "delta", "role")),
        ((), chunk({"role": None, "content": "Hm."})),
        *(((), without(ROLE, name)) for name in ("id", "object", "created", "model", "choices")),
        ((), chunk({"role": "assistant"}, object="chat.completion")),
        ((ROLE,), without(TEXT, "choices", 0, "index")),
        ((ROLE,), without(TEXT, "choices", 0, "delta")),
        ((ROLE,), ROLE),
        *(((ROLE,), without(with_call(), *AT_CALL, name)) for name in ("index", "id", "type", "function")),
        ((ROLE,), without(with_call(), *AT_CALL, "function", "name")),
        ((ROLE,), with_call(id="")),
        ((ROLE,), with_call(id="c9")),
        ((ROLE,), with_call(index=1)),
        ((ROLE,), with_call(index=-1)),
        ((ROLE,), with_call(function={"name": "look", "arguments": {"at": 4}})),
        ((ROLE, with_call()), with_call(index=1)),
        ((ROLE, with_call()), with_call(id="c2")),
        ((ROLE, with_call()), chunk({"tool_calls": [{"index": 0, "function": {"name": "look"}}]})),
        ((ROLE, with_call()), chunk({"tool_calls": [{"function": {"arguments": "{}"}}]})),
    ],
)
def test_a_chunk_without_what_clients_ask_for_is_not_taken(before: tuple[Chunk, ...], lacking: Chunk) -> None:
    state, fits = passed(*before)
    assert all(fits)
    assert state.pass_on(event(lacking)) == (state, False)


@pytest.mark.parametrize("raw", [b"data: {\n\n", b'data: "x"\n\n', event(ROLE) + event(TEXT), b"data: [DONE]\n\n"])
def test_neither_is_what_is_no_chunk_two_at_once_or_an_end_without_a_reason(raw: bytes) -> None:
    assert begun().pass_on(raw) == (begun(), False)


def test_forge_goes_on_where_the_server_was_left() -> None:
    state, _ = passed(ROLE, TEXT, with_call())
    events, stream = state, b""
    for piece in (
        CallDelta(index=0, arguments="{}"),
        TextDelta(text="Now."),
        CallStarted(index=1, name="look", id="c1"),
        Ended(finish="tool_calls"),
    ):
        events, more = events.advance(piece)
        stream += more
    told = [json.loads(line.removeprefix("data: ")) for line in stream.decode().split("\n\n")[:-2]]
    assert {(one["id"], one["model"], one["created"]) for one in told} == {("x1", "b", 7)}
    first, second, third, last = [one["choices"][0] for one in told]
    assert first["delta"] == {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}
    assert second["delta"] == {"content": "Now."}
    (again,) = third["delta"]["tool_calls"]
    assert (again["index"], again["id"] not in ("", "c1", "c9")) == (1, True)
    assert last["finish_reason"] == "tool_calls"


@pytest.mark.parametrize(
    ("pieces", "told"),
    [
        ([CallStarted(index=0, name="looked", id="c1"), CallDelta(index=0, arguments="{}")], ["{}"]),
        (
            [
                CallStarted(index=0, name="look", id="c1"),
                CallDelta(index=0, arguments='{"a"'),
                TextDelta(text="!"),
                ReasoningDelta(text="Hm."),
                CallDelta(index=0, arguments=":1}"),
            ],
            ['{"a"', ":1}", "Hm.", "!"],
        ),
    ],
    ids=["its name grows", "its id is repeated, and text comes between its arguments"],
)
def test_a_call_that_the_server_began_is_one_call_however_it_goes_on(pieces: list[Piece], told: list[str]) -> None:
    state, _ = passed(ROLE, with_call())
    events, stream = state, b""
    for piece in (*pieces, Ended(finish="tool_calls")):
        events, more = events.advance(piece)
        stream += more
    deltas = [json.loads(line)["choices"][0]["delta"] for line in stream.decode().split("data: ")[1:-1]]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert all(call.keys() == {"index", "function"} and call["index"] == 0 for call in calls)
    said = [delta.get("content") or delta.get("reasoning_content") for delta in deltas[len(calls) : -1]]
    assert [*(call["function"]["arguments"] for call in calls), *said] == told


def test_usage_is_told_once() -> None:
    ended = Ended(usage=Usage(prompt=3, completion=1))
    for chunks, told in ((GOOD, 0), (GOOD[:-1], 1)):
        state, _ = passed(*chunks)
        assert state.advance(ended)[1].count(b'"usage":{') == told


MESSAGE = {"role": "assistant", "content": None, "tool_calls": [USED | {"id": "c1"}]}
WHOLE: Chunk = {
    "id": "x1",
    "object": "chat.completion",
    "created": 7,
    "model": "b",
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "tool_calls"}],
    "odd": {},
}
AT_MESSAGE = ("choices", 0, "message")


def changed(change: Callable[[Any], None]) -> Chunk:
    copy: Chunk = json.loads(json.dumps(WHOLE))
    change(copy["choices"][0])
    return copy


def test_a_whole_answer_that_lacks_nothing_is_taken() -> None:
    assert begun().takes(msgspec.json.encode(WHOLE))
    assert begun().takes(msgspec.json.encode(changed(lambda choice: choice["message"].pop("tool_calls"))))


@pytest.mark.parametrize(
    "lacking",
    [
        *(without(WHOLE, name) for name in ("id", "object", "created", "model", "choices")),
        *(without(WHOLE, "choices", 0, name) for name in ("index", "message", "finish_reason")),
        without(WHOLE, *AT_MESSAGE, "role"),
        *(without(WHOLE, *AT_MESSAGE, "tool_calls", 0, name) for name in ("id", "type")),
        changed(lambda choice: choice["message"]["tool_calls"][0].update(id="")),
        changed(lambda choice: choice["message"]["tool_calls"][0].update(id="c9")),
        changed(lambda choice: choice["message"]["tool_calls"].append(choice["message"]["tool_calls"][0])),
        changed(lambda choice: choice["message"]["tool_calls"][0]["function"].update(arguments={"at": 4})),
        changed(lambda choice: choice.update(finish_reason="eos")),
        {**WHOLE, "choices": []},
    ],
)
def test_one_that_lacks_something_is_not(lacking: Chunk) -> None:
    assert not begun().takes(msgspec.json.encode(lacking))
