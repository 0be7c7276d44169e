"""Deltas: the increments of a streamed reply, for whoever watches; the state only sees the whole reply."""

from collections.abc import Iterable
from typing import assert_never

from msgspec import Struct

from stages import reasoning
from stages.confidence.token_probability import TokenProbability
from stages.effect import Fault, RawCall, Reply, Usage


class TextDelta(Struct, frozen=True, kw_only=True, tag="text"):
    """More of the text. In the modes prompted and constrained, the calls are in it."""

    text: str


class ReasoningDelta(Struct, frozen=True, kw_only=True, tag="reasoning"):
    """More of the reasoning, whether the server or tags in the text separate it."""

    text: str
    sealed: str = ""
    """The reasoning as its server wants it back (`effect.Reply`): this, or without a text what was told before."""


class Reclassified(Struct, frozen=True, kw_only=True, tag="reclassified"):
    """A correction of what was shown: so many of the text's last characters were reasoning, or the reverse.

    A closing tag without an opening one causes it, and a call in reasoning that never ends.
    """

    to_reasoning: int = 0
    to_text: int = 0


class CallStarted(Struct, frozen=True, kw_only=True, tag="call_started"):
    """The reply's call number `index` (0, 1 …) begins. Repeated for the same call if its name grows."""

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
    """Attempt number `attempt` failed: discard what was shown of this reply; the next attempt begins in `seconds`."""

    fault: Fault
    attempt: int
    seconds: float


Piece = TextDelta | ReasoningDelta | CallStarted | CallDelta | Ended
"""What a wire's decoder reads out of a stream."""

Delta = Piece | Reclassified | Retry
"""What a watcher is told."""


def gather_reply(pieces: Iterable[Piece | Fault]) -> Reply | Fault:
    """The reply that the pieces add up to, the same as if the server had given it whole; else the fault."""
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
        return Fault(kind="malformed", detail="the answer to a request for a stream holds nothing of a reply")
    return Fault(kind="interrupted", detail="the stream ended before the reply did")


def reply_pieces(reply: Reply) -> tuple[Piece, ...]:
    """The pieces of a reply that came whole."""
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
    """What a watcher is told of a piece: reasoning between tags is separated from text. Begin with `Split()`."""
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
