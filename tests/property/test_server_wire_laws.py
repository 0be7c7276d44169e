"""The laws of forge as a server: what one side of a protocol writes, the other reads, whole and in streams."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from forge.testing.strategies import TOOL_NAMES, histories
from stages.effect import Fault, Reply, Request, Usage
from stages.message import Assistant, History, Message, System, Tool, ToolCall, User
from stages.tool import ToolSpec
from stages.wire.deltas import CallDelta, CallStarted, Ended, Piece, ReasoningDelta, TextDelta, gather_reply
from stages.wire.sampling import Sampling
from stages.wire.server.errors import RequestError
from stages.wire.server.request import ServerRequest, as_sent
from stages.wire.server.streams import Envelope, Events
from stages.wire.server_wires import CHAT, MESSAGES, RESPONSES, ServerWire
from stages.wire.valid import system_first
from stages.wire.wires import ANTHROPIC, OPENAI, Wire
from tests.property import responses_client, servers
from tests.property.test_stream_laws import RECORDED, cut, cut_bytes, places, read
from tests.property.test_wire_laws import parsed, values
from tests.property.test_wire_laws import replies as any_replies


class Sides(Struct, frozen=True, kw_only=True):
    """Forge as the server of a protocol, and the client's side of it, which is forge's own where it has one."""

    server: ServerWire
    body: Callable[[History, Sampling, tuple[ToolSpec, ...]], bytes]
    reply: Callable[[bytes], Reply | Fault]
    streamed: Callable[[Iterable[bytes]], Reply | Fault]


def both(server: ServerWire, client: Wire) -> Sides:
    def body(history: History, sampling: Sampling, tools: tuple[ToolSpec, ...]) -> bytes:
        return Request(
            head=client.head("m", sampling, history),
            messages=client.messages(history),
            tail=client.tail(client.tools(tools), None),
        ).body

    return Sides(
        server=server,
        body=body,
        reply=client.decode,
        streamed=lambda chunks: gather_reply(read(client.stream, chunks)),
    )


PROTOCOLS = {
    "chat": both(CHAT, OPENAI),
    "messages": both(MESSAGES, ANTHROPIC),
    "responses": Sides(
        server=RESPONSES,
        body=responses_client.body_of,
        reply=lambda body: responses_client.reply_of(json.loads(body)),
        streamed=responses_client.streamed_reply,
    ),
}
each = pytest.mark.parametrize("sides", PROTOCOLS.values(), ids=PROTOCOLS.keys())

SPECS = tuple(
    ToolSpec(name=name, description=f"To {name}.", parameters=Raw(b'{"type":"object","properties":{"a":{}}}'))
    for name in TOOL_NAMES
)
options = st.builds(
    Sampling,
    temperature=st.floats(0, 2),
    top_p=st.floats(0.01, 1),
    top_k=st.integers(-1, 99),
    stop=st.lists(st.text(min_size=1), min_size=1, max_size=3).map(tuple),
    max_tokens=st.integers(1, 10**6),
)


def served(sides: Sides, body: bytes) -> ServerRequest:
    request = sides.server.decode_request(body)
    assert isinstance(request, ServerRequest), request
    return request


def as_told(history: History) -> list[Message]:
    """What a wire tells of a history: nobody but forge knows kinds and turns; neighbours of one role may be one."""
    told: list[Message] = []
    for message in map(_bare, history):
        if isinstance(message, System | User) and not message.text:
            continue
        if isinstance(message, System | User) and told and type(told[-1]) is type(message):
            told[-1] = replace(message, text=f"{told[-1].text}\n\n{message.text}")
        else:
            told.append(message)
    return told


def _bare(message: Message) -> Message:
    text = "" if message.text.strip() in ("", "(empty)") else message.text
    match message:
        case System():
            return System(text=text)
        case User():
            return User(text=text)
        case Tool(call_id=answered, name=name):
            return Tool(call_id=answered, name=name, text=text)
        case Assistant(calls=calls):
            bare = tuple(ToolCall(id=call.id, name=call.name, arguments=call.arguments) for call in calls)
            return Assistant(text=text, calls=bare)


@given(history=histories().filter(bool), sampling=options)
def test_what_forge_asks_for_as_a_client_it_reads_as_a_server(history: History, sampling: Sampling) -> None:
    for sides in PROTOCOLS.values():
        body = sides.body(history, sampling, SPECS)
        request = served(sides, body)
        assert request.body == body
        assert request.model == "m"
        lacks = {"top_k": UNSET, "stop": UNSET} if sides.server is RESPONSES else {}
        assert request.sampling == replace(sampling, **lacks)
        assert [(s.name, s.description, json.loads(bytes(s.parameters))) for s in request.specs] == [
            (s.name, s.description, json.loads(bytes(s.parameters))) for s in SPECS
        ]
        assert as_told(request.history) == as_told(history)
        assert request.foreign == ()


@given(history=histories().filter(bool), sampling=options)
def test_what_a_client_sent_can_be_sent_on_with_more(history: History, sampling: Sampling) -> None:
    for name in ("chat", "messages"):
        body = PROTOCOLS[name].body(history, sampling, SPECS)
        sent = as_sent(served(PROTOCOLS[name], body))
        assert sent.body == body
        more = Raw(b'{"role":"user","content":"Once more."}')
        assert json.loads(replace(sent, messages=(*sent.messages, more)).body)["messages"][-1] == json.loads(
            bytes(more)
        )


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    """Replies of which every protocol can tell the parts apart: no blank text."""
    reply = draw(any_replies())
    text, thought = reply.text, reply.reasoning
    return replace(reply, text=text if text.strip() else "", reasoning=thought if thought.strip() else "")


def envelope(sides: Sides, *, stream: bool = False) -> Envelope:
    body = json.loads(sides.body((User(text="Look."),), Sampling(), SPECS))
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    request = served(sides, msgspec.json.encode(body))
    return Envelope(id="answer-1a", created=1_700_000_000, request=request, model="m")


def same(found: Reply | Fault, reply: Reply) -> None:
    """The reply came back, under ids that are whole and each its own; some protocols always count tokens."""
    assert isinstance(found, Reply)
    if found.usage == Usage():
        found = replace(found, usage=reply.usage)
    ids = [call.id for call in found.calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    firsts = {call.id: n for n, call in reversed([*enumerate(reply.calls)])}
    assert all(ids[n] == given for given, n in firsts.items() if given)
    assert [replace(call, id="") for call in found.calls] == [replace(call, id="") for call in reply.calls]
    assert replace(found, calls=(), sealed="") == replace(reply, calls=(), sealed="")


@given(reply=replies())
def test_a_reply_that_forge_writes_as_a_server_it_reads_as_a_client(reply: Reply) -> None:
    for sides in PROTOCOLS.values():
        body = sides.server.encode_reply(reply, envelope(sides))
        same(sides.reply(body), reply)
        assert body == sides.server.encode_reply(reply, envelope(sides))


@st.composite
def streamed(draw: st.DrawFn) -> tuple[Reply, list[Piece]]:
    """A reply and how it comes: reasoning, text, then the calls, whose arguments may come by turns."""
    reply = draw(replies())
    texts = draw(places)
    pieces: list[Piece] = [ReasoningDelta(text=part) for part in cut(reply.reasoning, texts)]
    pieces += [TextDelta(text=part) for part in cut(reply.text, texts)]
    waiting = [
        [CallStarted(index=n, name=call.name, id=call.id)]
        + [CallDelta(index=n, arguments=part) for part in cut(call.arguments, texts)]
        for n, call in enumerate(reply.calls)
    ]
    begun = 0
    while any(waiting):
        # A call begins after the one before it; what follows may come in any order.
        ready = [queue for n, queue in enumerate(waiting) if queue and n <= begun]
        queue = draw(st.sampled_from(ready))
        piece = queue.pop(0)
        begun += isinstance(piece, CallStarted)
        pieces.append(piece)
    return reply, [*pieces, Ended(finish=reply.finish, usage=reply.usage)]


def written(events: Events, pieces: Sequence[Piece], pings: Sequence[int]) -> tuple[Events, bytes]:
    stream = b""
    for number, piece in enumerate(pieces):
        if number in pings:
            events, ping = events.ping()
            stream += ping
        events, more = events.advance(piece)
        stream += more
    return events, stream


@given(given=streamed(), chunks=places, pings=st.lists(st.integers(0, 9), max_size=3))
def test_a_stream_that_forge_writes_is_the_reply_however_it_is_cut(
    given: tuple[Reply, list[Piece]], chunks: list[int], pings: list[int]
) -> None:
    reply, pieces = given
    for sides in PROTOCOLS.values():
        _, stream = written(sides.server.events(envelope(sides, stream=True)), pieces, pings)
        same(sides.streamed(cut_bytes(stream, chunks)), reply)


@each
@pytest.mark.parametrize("case", RECORDED, ids=[case["name"] for case in RECORDED])
def test_what_a_real_server_streamed_is_the_same_reply_for_a_client(sides: Sides, case: dict[str, Any]) -> None:
    pieces = [piece for piece in read(OPENAI.stream, [case["stream"].encode()]) if not isinstance(piece, Fault)]
    reply = gather_reply(pieces)
    assert isinstance(reply, Reply)
    _, stream = written(sides.server.events(envelope(sides, stream=True)), pieces, (1,))
    same(sides.streamed([stream]), reply)


@given(given=streamed(), at=st.integers(0, 99))
def test_a_stream_that_ends_with_an_error_is_a_fault(given: tuple[Reply, list[Piece]], at: int) -> None:
    pieces = given[1][: at % len(given[1])]
    for sides in PROTOCOLS.values():
        events, stream = written(sides.server.events(envelope(sides, stream=True)), pieces, ())
        stream += events.fail(RequestError(message="it broke", status=529))
        found = sides.streamed([stream])
        assert isinstance(found, Fault)
        assert "it broke" in found.detail


def members(value: object) -> list[tuple[Any, Any]]:
    """Every member of a JSON value, as what holds it and its key."""
    if not isinstance(value, dict | list):
        return []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [found for key, one in items for found in ((value, key), *members(one))]


@st.composite
def mutated(draw: st.DrawFn, sides: Sides) -> Any:
    """A request with something else in some of its places."""
    history = draw(histories().filter(bool))
    body = json.loads(sides.body(history, draw(options), SPECS))
    for _ in range(draw(st.integers(1, 4))):
        holder, key = draw(st.sampled_from(members(body)))
        holder[key] = draw(values)
    return body


@each
@given(data=st.data())
def test_no_request_is_too_strange_to_be_answered(sides: Sides, data: st.DataObject) -> None:
    body = msgspec.json.encode(data.draw(mutated(sides)))
    request = sides.server.decode_request(body)
    if isinstance(request, RequestError):
        assert 400 <= request.status < 500
        assert request.message
    else:
        servers.openai(parsed(OPENAI.messages(system_first(request.history))) or [{"role": "user"}])


@each
@given(body=st.binary() | values.map(lambda value: json.dumps(value).encode()), data=st.data())
def test_no_body_is_too_strange_either(sides: Sides, body: bytes, data: st.DataObject) -> None:
    assert isinstance(sides.server.decode_request(body), RequestError)
    whole = sides.body((User(text="Look."),), Sampling(), SPECS)
    at = data.draw(st.integers(0, len(whole) - 1))
    assert isinstance(sides.server.decode_request(whole[:at]), RequestError)
    sides.server.decode_request(whole[:at] + body + whole[at:])
