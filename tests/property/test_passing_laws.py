"""The laws of passing on: what forge writes it takes, and a stream that it goes on with adds up to the reply."""

from collections.abc import Callable, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stages.effect import Reply
from stages.wire.anthropic.messages_server import passed_message
from stages.wire.deltas import CallStarted, Ended, Piece, reply_pieces
from stages.wire.openai.chat_server import passed_chat
from stages.wire.server.streams import Envelope, Events, Passed
from tests.property.test_server_wire_laws import PROTOCOLS, Sides, envelope, replies, same
from tests.property.test_stream_laws import RECORDED

SIDES = {name: PROTOCOLS[name] for name in ("chat", "messages")}
each = pytest.mark.parametrize("name", SIDES)
BEGUN: dict[str, Callable[[Envelope], Passed]] = {"chat": passed_chat, "messages": passed_message}


def written(events: Events, pieces: Sequence[Piece]) -> tuple[Events, list[bytes]]:
    """The events of these pieces."""
    stream = b""
    for piece in pieces:
        events, more = events.advance(piece)
        stream += more
    return events, [event + b"\n\n" for event in stream.split(b"\n\n")[:-1]]


def theirs(sides: Sides) -> Envelope:
    """The envelope of the server whose stream is passed on."""
    return replace(envelope(sides, stream=True), id="answer-2b")


def is_named(reply: Reply) -> bool:
    return all(call.name for call in reply.calls)


@each
@given(reply=replies().filter(is_named), at=st.integers(0, 99))
def test_a_stream_that_is_passed_on_to_some_place_and_gone_on_with_is_the_reply(
    name: str, reply: Reply, at: int
) -> None:
    sides, pieces = SIDES[name], reply_pieces(reply)
    cut = at % (len(pieces) + 1)
    if cut < len(pieces):  # calls are written when the reply ends
        cut = min(cut, *(at for at, piece in enumerate(pieces) if isinstance(piece, CallStarted | Ended)))
    _, events = written(sides.server.events(theirs(sides)), pieces[:cut])
    passed = BEGUN[name](envelope(sides, stream=True))
    for event in events:
        passed, fits = passed.advance(event)
        assert fits, event
    assert passed.over == (cut == len(pieces))
    _, rest = written(passed.go_on(), pieces[cut:])
    same(sides.streamed([*events, *rest]), reply)


@each
@given(reply=replies().filter(is_named))
def test_a_whole_answer_of_forges_own_is_taken(name: str, reply: Reply) -> None:
    sides = SIDES[name]
    body = sides.server.encode_reply(reply, theirs(sides))
    assert BEGUN[name](envelope(sides)).takes(body)


@pytest.mark.parametrize("case", RECORDED, ids=[case["name"] for case in RECORDED])
def test_what_llama_cpp_streams_is_taken_as_it_is(case: dict[str, str]) -> None:
    passed = passed_chat(envelope(SIDES["chat"], stream=True))
    for event in case["stream"].split("\n\n")[:-1]:
        passed, fits = passed.advance(event.encode() + b"\n\n")
        assert fits, event
    assert passed.over


@each
@given(body=st.binary() | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(msgspec.json.encode))
def test_nothing_is_too_strange_to_be_looked_at(name: str, body: bytes) -> None:
    passed = BEGUN[name](envelope(SIDES[name]))
    assert not passed.takes(body)
    for event in (body, b"data: " + body + b"\n\n", b"event: x\ndata: " + body + b"\n\n"):
        passed.advance(event)
