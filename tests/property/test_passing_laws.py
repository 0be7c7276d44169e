"""The laws of passing on: what forge writes it takes, and a stream that it goes on with adds up to the reply."""

import re
from collections import Counter
from operator import itemgetter

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from stages.effect import Fault, RawCall, Reply
from stages.wire.deltas import reply_pieces
from stages.wire.server.streams import Envelope, Events
from tests.property.test_server_wire_laws import PROTOCOLS, Sides, envelope, replies, same, written
from tests.property.test_stream_laws import RECORDED, SERVERS, cut, places

SIDES = {name: PROTOCOLS[name] for name in ("chat", "messages")}
BACKENDS = {"chat": SERVERS["openai"], "messages": SERVERS["anthropic"]}
each = pytest.mark.parametrize("name", SIDES)


TWO_CALLS = Reply(
    calls=(RawCall(id="a", name="look", arguments='{"a":12}'), RawCall(id="b", name="find", arguments='{"b":34}')),
    finish="tool_calls",
)


def parted(stream: bytes) -> list[bytes]:
    """The events of a stream."""
    return [event + b"\n\n" for event in stream.split(b"\n\n")[:-1]]


def by_turns(events: list[bytes]) -> list[bytes]:
    """The same events, but the calls of a chat completion all begin first, and then grow by turns."""
    pieces = Counter[bytes]()
    turns = list[int]()
    for event in events:
        call = re.search(rb'"tool_calls":\[{"index":\d+', event)
        turns.append(pieces[call[0]] if call else len(events) * bool(pieces))
        pieces.update([call[0]] if call else [])
    return [event for _, event in sorted(zip(turns, events, strict=True), key=itemgetter(0))]


def theirs(sides: Sides) -> Envelope:
    """The envelope of the server whose stream is passed on."""
    return replace(envelope(sides, stream=True), id="answer-2b")


def is_named(reply: Reply) -> bool:
    return all(call.name for call in reply.calls)


@each
@given(reply=replies().filter(is_named))
def test_a_stream_of_forges_own_is_taken(name: str, reply: Reply) -> None:
    sides = SIDES[name]
    passed = sides.server.events(envelope(sides, stream=True))
    _, stream = written(sides.server.events(theirs(sides)), reply_pieces(reply), ())
    for event in parted(stream):
        passed, fits = passed.pass_on(event)
        assert fits, event
    assert passed.over


@each
@given(reply=replies(), texts=places, at=st.integers(0, 99), turned=st.booleans())
@example(reply=TWO_CALLS, texts=[4], at=5, turned=True)
def test_a_servers_stream_is_the_reply_wherever_forge_takes_over(
    name: str, reply: Reply, texts: list[int], at: int, *, turned: bool
) -> None:
    sides, server = SIDES[name], BACKENDS[name]
    stream = parted(server.stream(reply, lambda text: cut(text, texts)))
    stream = by_turns(stream) if turned else stream
    passed, decoder = sides.server.events(envelope(sides, stream=True)), server.wire.stream
    own: Events | None = None
    sent = list[bytes]()
    for number, event in enumerate(stream):
        decoder, pieces = decoder.advance(event)
        after, fits = passed.pass_on(event)
        if own is None and fits and number < at % (len(stream) + 1):
            passed = after
            sent.append(event)
            continue
        own = own or passed
        for piece in pieces:
            assert not isinstance(piece, Fault)
            own, more = own.advance(piece)
            sent.append(more)
    same(sides.streamed(sent), reply)


@each
@given(reply=replies().filter(is_named))
def test_a_whole_answer_of_forges_own_is_taken(name: str, reply: Reply) -> None:
    sides = SIDES[name]
    body = sides.server.encode_reply(reply, theirs(sides))
    assert sides.server.events(envelope(sides)).takes(body)


@pytest.mark.parametrize("case", RECORDED, ids=[case["name"] for case in RECORDED])
def test_what_llama_cpp_streams_is_taken_as_it_is(case: dict[str, str]) -> None:
    passed = SIDES["chat"].server.events(envelope(SIDES["chat"], stream=True))
    for event in case["stream"].split("\n\n")[:-1]:
        passed, fits = passed.pass_on(event.encode() + b"\n\n")
        assert fits, event
    assert passed.over


@each
@given(body=st.binary() | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(msgspec.json.encode))
def test_nothing_is_too_strange_to_be_looked_at(name: str, body: bytes) -> None:
    passed = SIDES[name].server.events(envelope(SIDES[name]))
    assert not passed.takes(body)
    for event in (body, b"data: " + body + b"\n\n", b"event: x\ndata: " + body + b"\n\n"):
        passed.pass_on(event)
