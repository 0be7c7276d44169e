"""Answers: what forge sends to a client, whole or as a stream of events, in any protocol.

A stream is a fold: `begin`, then `advance` with each piece of the reply up to `Ended`, which ends the stream. Each step
gives the encoder for the next one and the bytes to send now. `ping` keeps a silent connection alive with an event that
clients take; `fail` ends the stream with an error. `Passed` is an answer that a server of the protocol has written.
"""

from typing import Protocol, Self

import msgspec
from msgspec import Raw, Struct

from stages.effect import RawCall
from stages.message import Assistant, History
from stages.wire.deltas import Piece
from stages.wire.served import RequestError, ServerRequest


class Envelope(Struct, frozen=True, kw_only=True):
    """What an answer says beside the reply. `id` is the answer's own, `created` seconds since 1970.

    `prompt_tokens` is the size of the prompt where it is known before the reply: Anthropic's streams begin with it.
    """

    id: str
    created: int
    request: ServerRequest
    model: str = ""
    """The model that answers, where it is not the one that was asked for."""
    prompt_tokens: int = 0

    @property
    def model_name(self) -> str:
        """The model as the client is told."""
        return self.model or self.request.model

    def part_id(self, prefix: str, number: int) -> str:
        """The id of a part of this answer, as unique as its own: `call_3f2a_0`."""
        own = self.id.replace("-", "_", 1).partition("_")[2] or self.id
        return f"{prefix}_{own}_{number}"


class WireAnswer(Struct, frozen=True, kw_only=True):
    """A whole answer: its status, its headers beside the usual ones, and its body."""

    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


class Events(Protocol):
    """How far a stream of events has been written."""

    def begin(self) -> tuple[Self, bytes]:
        """The events that open the stream; nothing where it is open."""
        ...

    def advance(self, piece: Piece) -> tuple[Self, bytes]:
        """The events of the next piece."""
        ...

    def ping(self) -> tuple[Self, bytes]:
        """An event without content."""
        ...

    def fail(self, error: RequestError) -> bytes:
        """The event that ends the stream with an error."""
        ...


class Passed(Protocol):
    """What of a server's own answer has been passed on to a client of the same protocol."""

    @property
    def over(self) -> bool:
        """Whether the client has seen the stream's end."""
        ...

    def advance(self, event: bytes) -> tuple[Self, bool]:
        """After the server's next event; whether clients take it as it is. If not, it is as if it had not come."""
        ...

    def takes(self, answer: bytes) -> bool:
        """Whether clients take a whole answer as it is."""
        ...

    def go_on(self) -> Events:
        """What writes the rest of the stream."""
        ...


class CallIds(Struct, frozen=True, kw_only=True):
    """The ids of an answer's calls: the server's own, or forge's where that is empty or was given before.

    Clients find results by them: without one, or with the same one twice, they stop or mix calls up.
    """

    envelope: Envelope
    prefix: str
    taken: frozenset[str] | None = None
    """Those of the request's history and of this answer; None: not looked for yet."""

    def of(self, given: str, number: int) -> tuple[Self, str]:
        """The id of the answer's call number `number`, from 0."""
        taken = _ids_of(self.envelope.request.history) if self.taken is None else self.taken
        made = given if given and given not in taken else self.envelope.part_id(self.prefix, number)
        return msgspec.structs.replace(self, taken=taken | {made}), made

    def of_all(self, calls: tuple[RawCall, ...]) -> tuple[str, ...]:
        """The ids of all calls of a whole reply."""
        ids, made = self, list[str]()
        for number, call in enumerate(calls):
            ids, one = ids.of(call.id, number)
            made.append(one)
        return tuple(made)

    def are_new(self, given: tuple[str, ...]) -> bool:
        """Whether each of these may stay as it is."""
        taken = _ids_of(self.envelope.request.history) if given else frozenset()
        return len({*given} - taken) == len(given) and "" not in given


def _ids_of(history: History) -> frozenset[str]:
    return frozenset({call.id for message in history if isinstance(message, Assistant) for call in message.calls})


def custom_names(request: ServerRequest) -> frozenset[str]:
    """The custom tools, as the model calls them."""
    return frozenset(tool.spec.name for tool in request.tools if tool.kind == "custom")


_encode = msgspec.json.Encoder().encode


def event(payload: object, name: str = "") -> bytes:
    """A server-sent event: its name, if it has one, and a line of JSON."""
    data = payload if isinstance(payload, Raw) else _encode(payload)
    return (b"event: %b\n" % name.encode() if name else b"") + b"data: %b\n\n" % bytes(data)


def headers_of(error: RequestError) -> tuple[tuple[str, str], ...]:
    """When to try again, and whether to try at all, as the official clients read it."""
    after = () if error.retry_after is None else (("retry-after", str(max(0, round(error.retry_after)))),)
    again = () if error.retriable is None else (("x-should-retry", str(error.retriable).lower()),)
    return (*after, *again)
