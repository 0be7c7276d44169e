"""The laws of streams: however the bytes are cut, the reply is the one that comes whole; anything else is a fault."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from stages.effect import Fault, RawCall, Reply
from stages.reasoning import Split, split_reasoning
from stages.wire.deltas import (
    CallDelta,
    CallStarted,
    Decoder,
    Delta,
    Ended,
    Lines,
    Piece,
    ReasoningDelta,
    Reclassified,
    Retry,
    TextDelta,
    gather_reply,
    reply_pieces,
    watched_deltas,
)
from stages.wire.faults import CALLS_LIMIT
from stages.wire.wires import ANTHROPIC, OLLAMA, OPENAI, Wire
from tests.property import servers
from tests.property.test_wire_laws import replies as any_replies


class Server(Struct, frozen=True, kw_only=True):
    """A wire, and how its servers give a reply whole and in a stream."""

    wire: Wire
    whole: Callable[[Reply], bytes]
    stream: Callable[[Reply, servers.Cut], bytes]


SERVERS = {
    "openai": Server(wire=OPENAI, whole=servers.openai_reply, stream=servers.openai_stream),
    "ollama": Server(wire=OLLAMA, whole=servers.ollama_reply, stream=servers.ollama_stream),
    "anthropic": Server(wire=ANTHROPIC, whole=servers.anthropic_reply, stream=servers.anthropic_stream),
}
each = pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS.keys())
RECORDED: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data/llama_server_streams.jsonl").read_text().splitlines()
]


def cut(text: str, places: Iterable[int]) -> list[str]:
    ends = sorted({place % len(text) for place in places} - {0}) if text else []
    return [part for part in (text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)) if part]


def cut_bytes(data: bytes, places: Iterable[int]) -> list[bytes]:
    return [part.encode("latin-1") for part in cut(data.decode("latin-1"), places)]


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    """Replies whose arguments stand on one line, as Ollama's protocol needs it."""
    reply = draw(any_replies())
    calls = (msgspec.structs.replace(call, arguments=call.arguments.replace("\n", " ")) for call in reply.calls)
    return msgspec.structs.replace(reply, calls=tuple(calls))


places = st.lists(st.integers(0, 10**6), max_size=30)


def read(decoder: Decoder, chunks: Iterable[bytes]) -> list[Piece | Fault]:
    pieces: list[Piece | Fault] = []
    for chunk in chunks:
        decoder, added = decoder.advance(chunk)
        pieces += added
    return [*pieces, *decoder.finish()]


@given(reply=replies(), texts=places, chunks=places)
def test_a_stream_makes_the_reply_that_comes_whole(reply: Reply, texts: list[int], chunks: list[int]) -> None:
    for server in SERVERS.values():
        stream = server.stream(reply, lambda text: cut(text, texts))
        expected = server.wire.decode(server.whole(reply))
        assert gather_reply(read(server.wire.stream, cut_bytes(stream, chunks))) == expected


@each
@pytest.mark.parametrize("made", [CALLS_LIMIT, CALLS_LIMIT + 1])
def test_a_reply_has_the_same_number_of_calls_at_most_whole_and_streamed(server: Server, made: int) -> None:
    reply = Reply(calls=tuple(RawCall(id=f"c{n}", name="look", arguments="{}") for n in range(made)))
    for read_as in (
        server.wire.decode(server.whole(reply)),
        gather_reply(read(server.wire.stream, [_streamed(server, reply)])),
    ):
        if made <= CALLS_LIMIT:
            assert isinstance(read_as, Reply)
            assert len(read_as.calls) == made
        else:
            assert read_as == Fault(kind="too_large", detail=f"the reply has more than {CALLS_LIMIT} tool calls")


def _streamed(server: Server, reply: Reply) -> bytes:
    return server.stream(reply, lambda text: [text] if text else [])


@given(reply=replies(), texts=places, ends=st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=1, max_size=9))
def test_lines_may_end_in_any_way_and_every_byte_may_come_alone(
    reply: Reply, texts: list[int], ends: list[str]
) -> None:
    for server in SERVERS.values():
        lines = server.stream(reply, lambda text: cut(text, texts)).split(b"\n")
        stream = b"".join(line + ends[n % len(ends)].encode() for n, line in enumerate(lines))
        expected = server.wire.decode(server.whole(reply))
        assert gather_reply(read(server.wire.stream, (bytes([byte]) for byte in stream))) == expected


@pytest.mark.parametrize("case", RECORDED, ids=[case["name"] for case in RECORDED])
@given(chunks=places)
def test_recorded_streams_of_a_real_server_make_the_reply_of_the_same_request(
    case: dict[str, Any], chunks: list[int]
) -> None:
    """llama.cpp, asked the same at temperature 0 with and without `stream`; ids and the cache differ."""
    found = gather_reply(read(OPENAI.stream, cut_bytes(case["stream"].encode(), chunks)))
    expected = OPENAI.decode(msgspec.json.encode(case["whole"]))
    assert isinstance(found, Reply)
    assert isinstance(expected, Reply)
    assert found.usage is not None
    assert expected.usage is not None
    assert (found.usage.prompt, found.usage.completion) == (expected.usage.prompt, expected.usage.completion)
    assert [(c.name, c.arguments) for c in found.calls] == [(c.name, c.arguments) for c in expected.calls]
    assert all(call.id for call in found.calls)
    assert (found.text, found.reasoning, found.finish) == (expected.text, expected.reasoning, expected.finish)


@given(reply=replies(), at=st.integers(0, 10**6))
def test_a_stream_that_breaks_off_is_a_fault_or_lacks_only_what_follows_the_reply(reply: Reply, at: int) -> None:
    for server in SERVERS.values():
        stream = server.stream(reply, lambda text: cut(text, (3, 5)))
        found = gather_reply(read(server.wire.stream, [stream[: at % len(stream)]]))
        expected = server.wire.decode(server.whole(reply))
        assert isinstance(expected, Reply)
        if isinstance(found, Fault):
            assert found.kind in ("interrupted", "malformed")
        else:
            # Usage comes after the reason for which the reply ended; its loss is no reason to generate it all again.
            assert msgspec.structs.replace(found, usage=None) == msgspec.structs.replace(expected, usage=None)


@given(chunks=st.lists(st.binary() | st.sampled_from([b"data:", b"\n", b"[DONE]", b"error:", b"{", b'{"error":1}'])))
def test_no_stream_is_too_strange_to_be_told(chunks: list[bytes]) -> None:
    for server in SERVERS.values():
        gather_reply(read(server.wire.stream, chunks))


@given(reply=replies(), texts=places)
def test_a_name_comes_before_any_of_its_arguments(reply: Reply, texts: list[int]) -> None:
    for server in SERVERS.values():
        names: dict[int, str] = {}
        for piece in read(server.wire.stream, [server.stream(reply, lambda text: cut(text, texts))]):
            if isinstance(piece, CallStarted):
                names[piece.index] = piece.name
            if isinstance(piece, CallDelta):
                assert names[piece.index] == reply.calls[piece.index].name


@given(reply=replies())
def test_a_whole_reply_is_told_as_a_stream_of_itself(reply: Reply) -> None:
    assert gather_reply(reply_pieces(reply)) == reply


def watched(deltas: Iterable[Delta]) -> tuple[str, str]:
    """(reasoning, text) as a simple watcher keeps them."""
    thought = text = ""
    for delta in deltas:
        match delta:
            case TextDelta(text=more):
                text += more
            case ReasoningDelta(text=more):
                thought += more
            case Reclassified(to_reasoning=to_reasoning, to_text=to_text):
                if to_reasoning:
                    text, thought = text[:-to_reasoning], thought + text[-to_reasoning:]
                if to_text:
                    thought, text = thought[:-to_text], text + thought[-to_text:]
            case CallStarted() | CallDelta() | Ended() | Retry():
                pass
    return thought.strip(), text.strip()


tagged = st.lists(
    st.sampled_from(
        ["<think>", "</think>", "<tool_call>", "</tool_call>", '{"name": "look"}', "so\n", " be it ", "<th"]
    )
).map("".join)


@given(text=tagged | st.text(), chunks=places)
def test_a_watcher_sees_the_reasoning_that_the_run_will_see(text: str, chunks: list[int]) -> None:
    split, told = Split(), list[Delta]()
    pieces: list[Piece] = [*(TextDelta(text=part) for part in cut(text, chunks)), Ended()]
    for piece in pieces:
        split, deltas = watched_deltas(split, piece)
        told += deltas
    assert watched(told) == split_reasoning(text)
    assert told[-1] == Ended()


@given(data=st.binary(), chunks=places)
def test_lines_are_those_of_the_whole(data: bytes, chunks: list[int]) -> None:
    lines, found = Lines(), list[bytes]()
    for chunk in cut_bytes(data, chunks):
        lines, ended = lines.advance(chunk)
        found += ended
    assert [*found, *lines.finish()] == data.splitlines()


@given(parts=st.lists(st.integers(1, 50), max_size=200))
def test_a_line_that_does_not_end_is_held_in_few_parts(parts: list[int]) -> None:
    lines = Lines()
    for part in parts:
        lines, _ = lines.advance(b"x" * part)
    assert len(lines.held) <= sum(parts).bit_length()
