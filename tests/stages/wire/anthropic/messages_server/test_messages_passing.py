"""What of the API's own messages clients take as it is; from there on forge writes the stream."""

import json
from typing import Any

import msgspec
import pytest

from stages.wire.anthropic.messages_server import MessageEvents, message_events
from stages.wire.deltas import CallDelta, CallStarted, Ended, ReasoningDelta, TextDelta
from stages.wire.server.streams import Envelope
from stages.wire.server_wires import MESSAGES as MESSAGES_WIRE
from tests.wire_client import asked_of, without

Event = dict[str, Any]
USED = {"type": "tool_use", "id": "t9", "name": "look", "input": {}}
MESSAGES = [{"role": "user", "content": "Look."}, {"role": "assistant", "content": [USED]}]
MESSAGE: Event = {
    "id": "msg_x1",
    "type": "message",
    "role": "assistant",
    "model": "b",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 0},
}
START: Event = {"type": "message_start", "message": MESSAGE}
STOP: Event = {"type": "message_stop"}
END: Event = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}
HIDDEN = {"type": "redacted_thinking", "data": "xyz"}
CALL = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}


def begun() -> MessageEvents:
    request = asked_of(MESSAGES_WIRE, messages=MESSAGES, stream=True)
    return message_events(Envelope(id="msg_own", created=1, request=request))


def event(payload: Event) -> bytes:
    return f"event: {payload['type']}\n".encode() + b"data: " + msgspec.json.encode(payload) + b"\n\n"


def block(number: int, content: Event, *deltas: Event) -> list[Event]:
    opened = {"type": "content_block_start", "index": number, "content_block": content}
    grown = [{"type": "content_block_delta", "index": number, "delta": delta} for delta in deltas]
    return [opened, *grown, {"type": "content_block_stop", "index": number}]


THOUGHT = block(
    0,
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": "Hm."},
    {"type": "signature_delta", "signature": "sig"},
)
TEXT = block(2, {"type": "text", "text": ""}, {"type": "text_delta", "text": "I look."})
CALLED = block(3, CALL, {"type": "input_json_delta", "partial_json": "{}"})
GOOD = [START, {"type": "ping"}, *THOUGHT, *block(1, HIDDEN), *TEXT, *CALLED, END, STOP]


def passed(events: list[Event]) -> MessageEvents:
    state = begun()
    for one in events:
        state, fits = state.pass_on(event(one))
        assert fits, one
    return state


def test_a_stream_that_lacks_nothing_is_taken_whole() -> None:
    assert passed(GOOD).over
    assert passed([{"type": "ping"}, START, {"type": "newer", "index": 7}]).pass_on(b": waiting\n\n")[1]


def called(**fields: Any) -> Event:
    return {"type": "content_block_start", "index": 0, "content_block": {**CALL, **fields}}


OPEN = [START, THOUGHT[0]]


@pytest.mark.parametrize(
    ("before", "lacking"),
    [
        *(([], without(START, "message", name)) for name in ("id", "role", "model", "content", "usage")),
        *(([], without(START, "message", "usage", name)) for name in ("input_tokens", "output_tokens")),
        ([], THOUGHT[0]),
        ([START], START),
        *(([START], without(THOUGHT[0], name)) for name in ("index", "content_block")),
        ([START], {**THOUGHT[0], "index": 1}),
        (OPEN, {**THOUGHT[0], "index": 1}),
        *((OPEN, without(THOUGHT[1], *path)) for path in (("index",), ("delta",), ("delta", "type"))),
        (OPEN, without(THOUGHT[-1], "index")),
        (OPEN, END),
        *(([START], called(**{name: ""})) for name in ("id", "name")),
        ([START], called(id="t9")),
        ([START], called(input={"at": 4})),
        ([START], without(END, "usage")),
        ([START], {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}),
        ([START], STOP),
    ],
)
def test_an_event_without_what_clients_ask_for_is_not_taken(before: list[Event], lacking: Event) -> None:
    state = passed(before)
    assert state.pass_on(event(lacking)) == (state, False)


@pytest.mark.parametrize(
    "raw",
    [
        event(START).partition(b"\n")[2],
        event(START).replace(b"event: message_start", b"event: other"),
        event(START) + event({"type": "ping"}),
        b"data: {\n\n",
    ],
    ids=["no name", "another name", "two at once", "no JSON"],
)
def test_neither_is_one_without_its_name(raw: bytes) -> None:
    assert begun().pass_on(raw) == (begun(), False)


def rest(state: MessageEvents, *pieces: Any) -> list[Event]:
    events, stream = state, b""
    for piece in pieces:
        events, more = events.advance(piece)
        stream += more
    return [json.loads(part.split("data: ")[1]) for part in stream.decode().split("\n\n")[:-1]]


def test_forge_goes_on_after_the_blocks_that_the_server_has_begun_hidden_ones_too() -> None:
    state = passed([START, *THOUGHT, *block(1, HIDDEN), *TEXT[:2]])
    told = rest(
        state,
        TextDelta(text=" Now."),
        CallStarted(index=0, name="look", id="t9"),
        CallDelta(index=0, arguments="{}"),
        Ended(finish="tool_calls"),
    )
    assert [(one["type"].removeprefix("content_block_"), one.get("index")) for one in told] == [
        *(("delta", 2), ("stop", 2)),
        *(("start", 3), ("delta", 3), ("stop", 3)),
        *(("message_delta", None), ("message_stop", None)),
    ]
    assert told[2]["content_block"]["id"] not in ("", "t9")


def test_thinking_that_is_open_gets_the_signature_that_its_server_gave() -> None:
    sealed = '[{"type":"thinking","thinking":"Hm.","signature":"sig"}]'
    told = rest(passed([START, *THOUGHT[:2]]), ReasoningDelta(text="", sealed=sealed), TextDelta(text="So."))
    assert told[0] == THOUGHT[2]
    assert [(one["type"].removeprefix("content_block_"), one["index"]) for one in told[1:]] == [
        *(("stop", 0), ("start", 1), ("delta", 1)),
    ]


def test_a_call_that_is_open_goes_on_and_what_comes_between_waits() -> None:
    sealed = '[{"type":"thinking","thinking":"Hm.","signature":"sig"}]'
    told = rest(
        passed([START, *block(0, CALL)[:1]]),
        CallDelta(index=0, arguments='{"at"'),
        ReasoningDelta(text="", sealed=sealed),
        TextDelta(text="So."),
        CallDelta(index=0, arguments=":4}"),
        Ended(finish="tool_calls"),
    )
    assert [one["delta"].get("partial_json") for one in told[:2]] == ['{"at"', ":4}"]
    assert [(one["type"].removeprefix("content_block_"), one.get("index")) for one in told[2:-2]] == [
        *(("stop", 0), ("start", 1), ("delta", 1), ("stop", 1)),
    ]


WHOLE: Event = {**MESSAGE, "content": [{"type": "text", "text": "a"}, CALL], "stop_reason": "tool_use"}


def test_a_whole_message_is_taken_if_it_lacks_nothing() -> None:
    assert begun().takes(msgspec.json.encode(WHOLE))


@pytest.mark.parametrize(
    "lacking",
    [
        *(without(WHOLE, name) for name in ("id", "type", "role", "model", "content", "usage", "stop_reason")),
        {**WHOLE, "content": [{**CALL, "id": ""}]},
        {**WHOLE, "content": [CALL, CALL]},
        {**WHOLE, "content": [{**CALL, "id": "t9"}]},
        {**WHOLE, "content": [without(CALL, "name")]},
    ],
)
def test_one_that_lacks_something_is_not(lacking: Event) -> None:
    assert not begun().takes(msgspec.json.encode(lacking))
