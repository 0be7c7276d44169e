"""Which events and answers of a backend clients take as they are; from any other on, forge writes the stream."""

import json
from typing import Any

import msgspec
import pytest

from stages.effect import Usage
from stages.wire.deltas import CallDelta, CallStarted, Ended, Piece, ReasoningDelta, TextDelta
from stages.wire.server.streams import Envelope, Events
from stages.wire.server_wires import CHAT, MESSAGES, ServerWire
from tests.wire_client import asked_of, without

Event = dict[str, Any]


def function(call_id: str, arguments: str = "") -> Event:
    return {"index": 0, "id": call_id, "type": "function", "function": {"name": "look", "arguments": arguments}}


def use(call_id: str) -> Event:
    return {"type": "tool_use", "id": call_id, "name": "look", "input": {}}


BEFORE: dict[str, Any] = {"chat": {"tool_calls": [function("c9", "{}")]}, "messages": {"content": [use("c9")]}}
"""A reply of the history: its id is used."""


def begun(wire: ServerWire, *, usage: bool = True) -> Events:
    messages = [{"role": "user", "content": "Look."}, {"role": "assistant", **BEFORE[wire.name]}]
    request = asked_of(wire, messages=messages, stream=True, stream_options={"include_usage": usage})
    return wire.events(Envelope(id="own-1", created=1, request=request))


def event(payload: Event) -> bytes:
    """The event, under its name if it is one of Anthropic's."""
    name = f"event: {payload['type']}\n".encode() if "type" in payload else b""
    return name + b"data: " + msgspec.json.encode(payload) + b"\n\n"


def passed(wire: ServerWire, events: list[Event], *, usage: bool = True) -> Events:
    state = begun(wire, usage=usage)
    for one in events:
        state, fits = state.pass_on(event(one))
        assert fits, one
    return state


def rest(state: Events, *pieces: Piece) -> list[Any]:
    """What forge writes from there on."""
    stream = b""
    for piece in pieces:
        state, more = state.advance(piece)
        stream += more
    return [json.loads(part.split("data: ")[1]) for part in stream.decode().split("\n\n")[:-1] if "[DONE]" not in part]


def chunk(delta: Any, finish: str | None = None, **frame: Any) -> Event:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "x1", "object": "chat.completion.chunk", "created": 7, "model": "b", "choices": [choice], **frame}


def with_call(**fields: Any) -> Event:
    return chunk({"tool_calls": [{**function("c1"), **fields}]})


ROLE, TEXT, CALL = chunk({"role": "assistant"}), chunk({"content": "Hm."}), with_call()
MORE, END = chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}), chunk({}, "tool_calls")
COUNTED: Event = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
GOOD = [ROLE, TEXT, CALL, MORE, END, COUNTED]


def block(number: int, content: Event, *deltas: Event) -> list[Event]:
    opened = {"type": "content_block_start", "index": number, "content_block": content}
    grown = [{"type": "content_block_delta", "index": number, "delta": delta} for delta in deltas]
    return [opened, *grown, {"type": "content_block_stop", "index": number}]


MESSAGE: Event = {
    "id": "msg_x1",
    "type": "message",
    "role": "assistant",
    "model": "b",
    "content": [],
    "stop_reason": None,
    "usage": {"input_tokens": 3, "output_tokens": 1},
}
START, STOP, PING = {"type": "message_start", "message": MESSAGE}, {"type": "message_stop"}, {"type": "ping"}
WHY: Event = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}
SIGNATURE = {"type": "signature_delta", "signature": "sig"}
THOUGHT = block(0, {"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": "Hm."}, SIGNATURE)
HIDDEN = block(1, {"type": "redacted_thinking", "data": "xyz"})
SPOKEN = block(2, {"type": "text", "text": ""}, {"type": "text_delta", "text": "I look."})
CALLED = block(3, use("t1"), {"type": "input_json_delta", "partial_json": "{}"})
SEALED = '[{"type":"thinking","thinking":"Hm.","signature":"sig"}]'


def test_a_stream_that_lacks_nothing_is_taken_whole() -> None:
    second = chunk({"role": "assistant"})
    second["choices"][0]["index"] = 1
    chat = passed(CHAT, [ROLE, second, *GOOD[1:]])
    assert chat.over
    assert chat.pass_on(b"data: [DONE]\n\n") == (chat, True)
    assert passed(MESSAGES, [START, PING, *THOUGHT, *HIDDEN, *SPOKEN, *CALLED, WHY, STOP]).over
    passed(MESSAGES, [PING, START, {"type": "newer", "index": 7}])


@pytest.mark.parametrize("wire", [CHAT, MESSAGES], ids=lambda wire: wire.name)
@pytest.mark.parametrize("raw", [b": waiting\n\n", b"\n", b"", b"retry: 5\n\n"])
def test_comments_and_blanks_are_taken(wire: ServerWire, raw: bytes) -> None:
    assert begun(wire).pass_on(raw) == (begun(wire), True)


OF_CALL = ("choices", 0, "delta", "tool_calls", 0)
OPEN = [START, THOUGHT[0]]
LACKING: list[tuple[ServerWire, list[Event], Event]] = [
    (CHAT, [], without(ROLE, "choices", 0, "delta", "role")),
    (CHAT, [], chunk({"role": None, "content": "Hm."})),
    *((CHAT, [], without(ROLE, name)) for name in ("id", "object", "created", "model", "choices")),
    (CHAT, [], chunk({"role": "assistant"}, object="chat.completion")),
    (CHAT, [ROLE], without(TEXT, "choices", 0, "index")),
    (CHAT, [ROLE], without(TEXT, "choices", 0, "delta")),
    (CHAT, [ROLE], ROLE),
    *((CHAT, [ROLE], without(CALL, *OF_CALL, name)) for name in ("index", "id", "type", "function")),
    (CHAT, [ROLE], without(CALL, *OF_CALL, "function", "name")),
    *((CHAT, [ROLE], with_call(**fields)) for fields in ({"id": ""}, {"id": "c9"}, {"index": 1}, {"index": -1})),
    (CHAT, [ROLE], with_call(function={"name": "look", "arguments": {"at": 4}})),
    (CHAT, [ROLE, CALL], with_call(index=1)),
    (CHAT, [ROLE, CALL], with_call(id="c2")),
    (CHAT, [ROLE, CALL], chunk({"tool_calls": [{"index": 0, "function": {"name": "look"}}]})),
    (CHAT, [ROLE, CALL], chunk({"tool_calls": [{"function": {"arguments": "{}"}}]})),
    *((MESSAGES, [], without(START, "message", name)) for name in ("id", "role", "model", "content", "usage")),
    *((MESSAGES, [], without(START, "message", "usage", name)) for name in ("input_tokens", "output_tokens")),
    (MESSAGES, [], THOUGHT[0]),
    (MESSAGES, [START], START),
    *((MESSAGES, [START], without(THOUGHT[0], name)) for name in ("index", "content_block")),
    *((MESSAGES, before, {**THOUGHT[0], "index": 1}) for before in ([START], OPEN)),
    *((MESSAGES, OPEN, without(THOUGHT[1], *path)) for path in (("index",), ("delta",), ("delta", "type"))),
    (MESSAGES, OPEN, without(THOUGHT[-1], "index")),
    (MESSAGES, OPEN, WHY),
    *(
        (MESSAGES, [START], block(0, {**use("t1"), **wrong})[0])
        for wrong in ({"id": ""}, {"name": ""}, {"id": "c9"}, {"input": {"at": 4}})
    ),
    (MESSAGES, [START], without(WHY, "usage")),
    (MESSAGES, [START], {**WHY, "usage": {}}),
    (MESSAGES, [START], STOP),
]


@pytest.mark.parametrize(("wire", "before", "lacking"), LACKING)
def test_an_event_without_what_clients_ask_for_is_not_taken(
    wire: ServerWire, before: list[Event], lacking: Event
) -> None:
    state = passed(wire, before)
    assert state.pass_on(event(lacking)) == (state, False)


@pytest.mark.parametrize(
    ("wire", "raw"),
    [
        (CHAT, b"data: {\n\n"),
        (CHAT, b'data: "x"\n\n'),
        (CHAT, event(ROLE) + event(TEXT)),
        (CHAT, b"data: [DONE]\n\n"),
        (MESSAGES, b"data: {\n\n"),
        (MESSAGES, event(START).partition(b"\n")[2]),
        (MESSAGES, event(START).replace(b"event: message_start", b"event: other")),
        (MESSAGES, event(START) + event(PING)),
    ],
)
def test_neither_is_what_is_no_event_two_at_once_or_an_end_without_a_reason(wire: ServerWire, raw: bytes) -> None:
    assert begun(wire).pass_on(raw) == (begun(wire), False)


ENDED = Ended(finish="tool_calls")
GOES_ON: list[tuple[list[Piece], list[Any]]] = [
    # Clients would append a name that grows, and an id that is repeated.
    ([CallStarted(index=0, name="looked", id="c1"), CallDelta(index=0, arguments="{}")], ["{}"]),
    (
        [
            CallDelta(index=0, arguments='{"a"'),
            TextDelta(text="!"),
            ReasoningDelta(text="Hm."),
            CallDelta(index=0, arguments=":1}"),
        ],
        ['{"a"', ":1}", {"reasoning_content": "Hm."}, {"content": "!"}],
    ),
]


@pytest.mark.parametrize(("pieces", "told"), GOES_ON)
def test_a_call_that_the_server_began_is_one_call_however_it_goes_on(pieces: list[Piece], told: list[Any]) -> None:
    *written, last = rest(passed(CHAT, [ROLE, CALL]), *pieces, ENDED)
    grown = [
        {"tool_calls": [{"index": 0, "function": {"arguments": one}}]} if isinstance(one, str) else one for one in told
    ]
    assert [one["choices"][0]["delta"] for one in written] == grown
    assert last["choices"][0]["finish_reason"] == "tool_calls"


def test_forge_goes_on_under_the_servers_id_with_calls_of_new_ids() -> None:
    again: list[Piece] = [CallStarted(index=1, name="look", id="c1"), ENDED]
    chunks = rest(passed(CHAT, [ROLE, TEXT, CALL]), *again)
    assert {(one["id"], one["model"], one["created"]) for one in chunks} == {("x1", "b", 7)}
    (call,) = chunks[0]["choices"][0]["delta"]["tool_calls"]
    assert (call["index"], call["id"] not in ("", "c1", "c9")) == (1, True)
    used: list[Piece] = [CallStarted(index=0, name="look", id="c9"), ENDED]
    opened = rest(passed(MESSAGES, [START, *THOUGHT, *HIDDEN]), *used)[0]
    assert (opened["index"], opened["content_block"]["id"] not in ("", "c9")) == (2, True)


def shape(events: list[Any]) -> list[tuple[str, int]]:
    return [(one["type"].removeprefix("content_block_"), one.get("index", -1)) for one in events]


def test_thinking_that_is_open_gets_the_signature_that_its_server_gave() -> None:
    said: list[Piece] = [ReasoningDelta(text="", sealed=SEALED), TextDelta(text="So.")]
    told = rest(passed(MESSAGES, [START, *THOUGHT[:2]]), *said)
    assert told[0] == THOUGHT[2]
    assert shape(told[1:]) == [("stop", 0), ("start", 1), ("delta", 1)]


def test_a_block_that_is_open_goes_on_and_what_comes_between_waits() -> None:
    text = rest(passed(MESSAGES, [START, *THOUGHT, *HIDDEN, *SPOKEN[:2]]), TextDelta(text=" Now."), ENDED)
    assert shape(text) == [("delta", 2), ("stop", 2), ("message_delta", -1), ("message_stop", -1)]
    told = rest(
        passed(MESSAGES, [START, *block(0, use("t1"))[:1]]),
        CallDelta(index=0, arguments='{"at"'),
        ReasoningDelta(text="", sealed=SEALED),
        TextDelta(text="So."),
        CallDelta(index=0, arguments=":4}"),
        ENDED,
    )
    assert [one["delta"].get("partial_json") for one in told[:2]] == ['{"at"', ":4}"]
    assert shape(told[2:-2]) == [("stop", 0), ("start", 1), ("delta", 1), ("stop", 1)]


def test_usage_is_told_once() -> None:
    ended = Ended(usage=Usage(prompt=3, completion=1))
    for chunks, told in ((GOOD, 0), (GOOD[:-1], 1)):
        assert passed(CHAT, chunks).advance(ended)[1].count(b'"usage":{') == told


def whole(*calls: Event, **more: Any) -> Event:
    """A whole chat completion."""
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls", **more}
    return {"id": "x1", "object": "chat.completion", "created": 7, "model": "b", "choices": [choice], "odd": {}}


ANSWER, ONE = whole(function("c1", "{}")), function("c1", "{}")
WHOLE: Event = {**MESSAGE, "content": [{"type": "text", "text": "a"}, use("t1")], "stop_reason": "tool_use"}


def test_a_whole_answer_that_lacks_nothing_is_taken() -> None:
    for answer in (ANSWER, without(ANSWER, "choices", 0, "message", "tool_calls")):
        assert begun(CHAT).takes(msgspec.json.encode(answer))
    assert begun(MESSAGES).takes(msgspec.json.encode(WHOLE))


@pytest.mark.parametrize(
    ("wire", "lacking"),
    [
        *((CHAT, without(ANSWER, name)) for name in ("id", "object", "created", "model", "choices")),
        *((CHAT, without(ANSWER, "choices", 0, name)) for name in ("index", "message", "finish_reason")),
        (CHAT, without(ANSWER, "choices", 0, "message", "role")),
        *((CHAT, whole(without(ONE, name))) for name in ("id", "type")),
        *((CHAT, whole(ONE | wrong)) for wrong in ({"id": ""}, {"id": "c9"}, {"function": {"name": "look"}})),
        (CHAT, whole(ONE, ONE)),
        (CHAT, whole(ONE, finish_reason="eos")),
        (CHAT, {**ANSWER, "choices": []}),
        *(
            (MESSAGES, without(WHOLE, name))
            for name in ("id", "type", "role", "model", "content", "usage", "stop_reason")
        ),
        *(
            (MESSAGES, {**WHOLE, "content": calls})
            for calls in ([use("")], [use("c9")], [use("t1"), use("t1")], [without(use("t1"), "name")])
        ),
    ],
)
def test_one_that_lacks_something_is_not(wire: ServerWire, lacking: Event) -> None:
    assert not begun(wire).takes(msgspec.json.encode(lacking))
