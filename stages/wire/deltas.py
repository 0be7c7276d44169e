"""Deltas: the increments of a streamed reply, and how the wires' decoders read them from bytes."""

from collections.abc import Callable, Iterable
from typing import Self, TypeVar, assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stages import reasoning
from stages.decoding import decode
from stages.effect import Fault, RawCall, Reply, TokenProbability, Usage
from stages.wire.faults import AnyAnswer, malformed_fault, reported_fault, too_many_objects

# For observers: the state only sees the whole reply.


class TextDelta(Struct, frozen=True, kw_only=True, tag="text"):
    """More of the text. In the modes prompted and constrained, it includes the calls."""

    text: str


class ReasoningDelta(Struct, frozen=True, kw_only=True, tag="reasoning"):
    """More of the reasoning, whether separated by the server or by tags in the text."""

    text: str
    sealed: str = ""
    """The reasoning in the form that its server wants back (`effect.Reply`); without `text`, of earlier deltas."""


class Reclassified(Struct, frozen=True, kw_only=True, tag="reclassified"):
    """A correction of earlier deltas: that many of the text's last characters were reasoning, or the reverse.

    Caused by a closing tag without an opening one, and by a call in reasoning that never ends.
    """

    to_reasoning: int = 0
    to_text: int = 0


class CallStarted(Struct, frozen=True, kw_only=True, tag="call_started"):
    """The reply's call number `index`, counted from 0, begins. Repeated for the same call if its name grows."""

    index: int
    name: str = ""
    id: str = ""


class CallDelta(Struct, frozen=True, kw_only=True, tag="call_delta"):
    """More of the JSON text of a call's arguments."""

    index: int
    arguments: str


class Ended(Struct, frozen=True, kw_only=True, tag="ended"):
    """The reply is complete. `finish` is the server's own word (stop, length …); the rest is as in `effect.Reply`."""

    finish: str = "stop"
    usage: Usage | None = None
    sealed: str = ""
    tokens: tuple[TokenProbability, ...] = ()


class Retry(Struct, frozen=True, kw_only=True, tag="retry"):
    """Attempt number `attempt` failed: discard what was shown of this reply. The next attempt starts in `seconds`."""

    fault: Fault
    attempt: int
    seconds: float


Piece = TextDelta | ReasoningDelta | CallStarted | CallDelta | Ended
"""What a wire's decoder reads from a stream."""

Delta = Piece | Reclassified | Retry
"""What an observer receives."""


def gather_reply(pieces: Iterable[Piece | Fault]) -> Reply | Fault:
    """The reply that the pieces add up to, equal to the reply sent whole; or the fault."""
    text: list[str] = []
    thought: list[str] = []
    calls: dict[int, CallStarted] = {}
    arguments: dict[int, list[str]] = {}
    for piece in pieces:
        match piece:
            case TextDelta(text=more):
                text.append(more)
            case ReasoningDelta(text=more):
                thought.append(more)
            case CallStarted(index=index):
                calls[index] = piece
            case CallDelta(index=index, arguments=more):
                arguments.setdefault(index, []).append(more)
            case Ended(finish=finish, usage=usage, sealed=sealed, tokens=tokens):
                return Reply(
                    text="".join(text),
                    reasoning="".join(thought),
                    calls=tuple(
                        RawCall(id=call.id, name=call.name, arguments="".join(arguments.get(index, ())))
                        for index, call in sorted(calls.items())
                    ),
                    finish=finish,
                    usage=usage,
                    sealed=sealed,
                    tokens=tokens,
                )
            case Fault():
                return piece
            case _:
                assert_never(piece)
    if not (text or thought or calls):
        return Fault(kind="malformed", detail="the streamed answer contains no part of a reply")
    return Fault(kind="interrupted", detail="the stream ended before the reply did")


def reply_pieces(reply: Reply) -> tuple[Piece, ...]:
    """A whole reply as pieces."""
    started = ((CallStarted(index=n, name=c.name, id=c.id), c.arguments) for n, c in enumerate(reply.calls))
    calls = tuple(
        piece
        for call, arguments in started
        for piece in (call, *((CallDelta(index=call.index, arguments=arguments),) if arguments else ()))
    )
    return (
        *((ReasoningDelta(text=reply.reasoning, sealed=reply.sealed),) if reply.reasoning or reply.sealed else ()),
        *((TextDelta(text=reply.text),) if reply.text else ()),
        *calls,
        Ended(finish=reply.finish, usage=reply.usage, sealed=reply.sealed, tokens=reply.tokens),
    )


def watched_deltas(split: "reasoning.Split", piece: Piece) -> tuple["reasoning.Split", tuple[Delta, ...]]:
    """The deltas of a piece, with reasoning between tags separated from text. Begin with `Split()`."""
    match piece:
        case TextDelta(text=text):
            after, found = reasoning.advance_split(split, text)
            return after, tuple(delta for each in found for delta in _told(each))
        case Ended():
            return split, (*(delta for each in reasoning.finish_split(split) for delta in _told(each)), piece)
        case ReasoningDelta(text=""):
            return split, ()
        case ReasoningDelta() | CallStarted() | CallDelta():
            return split, (piece,)
        case _:
            assert_never(piece)


def _told(found: "reasoning.SplitDelta") -> Iterable[Delta]:
    if found.to_reasoning or found.to_text:
        yield Reclassified(to_reasoning=found.to_reasoning, to_text=found.to_text)
    if found.reasoning:
        yield ReasoningDelta(text=found.reasoning)
    if found.text:
        yield TextDelta(text=found.text)


# Lines of a stream of bytes, however the network splits it; and the payloads of server-sent events.


class Lines(Struct, frozen=True, kw_only=True):
    """The state of splitting a stream into lines. Begin with `Lines()`; lines end in LF, CR or CRLF."""

    held: tuple[bytes, ...] = ()
    """The beginning of the next line, in a few parts."""
    returned: bool = False
    """Whether the last byte was a CR: a following LF belongs to it."""

    @property
    def size(self) -> int:
        """Bytes of the line that has begun."""
        return sum(map(len, self.held))

    def advance(self, chunk: bytes) -> tuple[Self, tuple[bytes, ...]]:
        """The state after the next bytes, and the completed lines without their terminators."""
        if self.returned and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        lines = chunk.splitlines()
        rest = b"" if chunk.endswith((b"\n", b"\r")) or not lines else lines.pop()
        returned = chunk.endswith(b"\r")
        if not lines:
            return type(self)(held=appended(self.held, rest), returned=returned), ()
        kept = type(self)(held=(rest,) if rest else (), returned=returned)
        return kept, (b"".join((*self.held, lines[0])), *lines[1:])

    def finish(self) -> tuple[bytes, ...]:
        """The last line, if it has no terminator."""
        return (b"".join(self.held),) if self.held else ()


def appended(parts: tuple[bytes, ...], more: bytes) -> tuple[bytes, ...]:
    """The parts with more at the end. They stay few, each longer than the next, so appending is O(n log n) overall."""
    if not more:
        return parts
    length, start = len(more), len(parts)
    while start and len(parts[start - 1]) <= length:
        start -= 1
        length += len(parts[start])
    return (*parts[:start], b"".join((*parts[start:], more)))


def payloads(lines: Iterable[bytes]) -> tuple[bytes, ...]:
    """The JSON in lines of server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).

    These protocols write one JSON value per line, so each `data:` line counts as an event: some servers omit the blank
    line between events. Before September 2025, llama.cpp reported errors in a field named `error:`.
    """
    found = []
    for line in lines:
        if line.startswith(b"data:"):
            found.append(line[5:].strip())
        elif line.startswith(b"error:"):
            found.append(b'{"error":' + line[6:] + b"}")
    return tuple(filter(None, found))


# Decoders: bytes in, pieces of a reply out.

StreamRead = tuple[Piece | Fault, ...]
"""What a decoder read. After `Ended` or a Fault, ignore the rest."""

LINE_LIMIT = 16 * 1024 * 1024
"""Maximum bytes of one line of a stream: a server may send the whole reply in one."""


_A = TypeVar("_A", bound=AnyAnswer)


def decoded_reply(
    decoder: msgspec.json.Decoder[_A], body: bytes, kind: str, pieces_of: Callable[[_A, bytes], StreamRead]
) -> Reply | Fault:
    """The reply in a whole answer, as `pieces_of` reads it; a Fault if the body is not an answer of this `kind`.

    A whole answer is read by the functions that read the protocol's streams, so that both give the same reply.
    """
    if (fault := too_many_objects(body)) is not None:
        return fault
    try:
        answer = decode(decoder, body)
        if bytes(answer.error) != b"null":
            return reported_fault(answer.error)
        return gather_reply(pieces_of(answer, body))
    except msgspec.DecodeError as error:
        return malformed_fault(f"the server's answer is not {kind}: {error}", body)


class Decoder(Struct, frozen=True, kw_only=True):
    """The state of reading one reply's stream, as a value. Each protocol has a subclass."""

    lines: Lines = Lines()

    def advance(self, chunk: bytes) -> tuple[Self, StreamRead]:
        """The decoder after the next bytes, and what they add."""
        lines, ended = self.lines.advance(chunk)
        return self._read_all(lines, ended)

    def finish(self) -> StreamRead:
        """What the end of the stream adds: the last line may be incomplete until then."""
        after, pieces = self._read_all(Lines(), self.lines.finish())
        ended = after.ended()
        return pieces if ended is None else (*pieces, ended)

    def _read_all(self, lines: Lines, ended: Iterable[bytes]) -> tuple[Self, StreamRead]:
        """The decoder after these lines have ended, and what they add; last, the fault for an overlong line."""
        after, pieces = replace(self, lines=lines), list[Piece | Fault]()
        for payload in self.payloads(ended):
            if (fault := too_many_objects(payload)) is not None:
                return after, (*pieces, fault)
            try:
                after, added = after.read(payload)
                pieces += added
            except msgspec.DecodeError as error:
                pieces.append(malformed_fault(f"invalid event in the stream: {error}", payload))
        if lines.size > LINE_LIMIT:
            pieces.append(Fault(kind="too_large", detail=f"a line of the stream has more than {LINE_LIMIT} bytes"))
        return after, tuple(pieces)

    def payloads(self, lines: Iterable[bytes]) -> Iterable[bytes]:
        """The JSON in these lines."""
        return payloads(lines)

    def read(self, payload: bytes) -> tuple[Self, StreamRead]:
        """The decoder after the next payload, and what it adds. Raises msgspec.DecodeError for an invalid payload."""
        raise NotImplementedError

    def ended(self) -> Ended | None:
        """The end of a reply whose stream ended without the protocol's last event; None if it ended too early."""
        return None
