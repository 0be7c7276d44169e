"""Upstream: how the proxy asks a backend, over HTTP or through the backend's own connection."""

from collections.abc import AsyncGenerator
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from forge.connection import Connection
from stages.effect import Fault, Replied, Reply, Request, Send
from stages.wire.deltas import Overflow, Piece, overflow_of, reply_pieces


class Caller(Struct, frozen=True, kw_only=True):
    """What goes on to the backend of who asks: the credential, and headers that say how to read the body."""

    key: str = ""
    headers: tuple[tuple[str, str], ...] = ()


class Post(Struct, frozen=True, kw_only=True):
    """What is sent. `body` is the client's own, where that is sent as it came."""

    request: Request
    body: bytes = b""
    caller: Caller = Caller()
    trace: tuple[tuple[str, str], ...] = ()
    """Headers that say which trace it belongs to."""


class Whole(Struct, frozen=True):
    """A whole answer as it reads, and as it came; `raw` is empty where there are no bytes of a protocol."""

    reply: Reply
    raw: bytes = b""


class Refusal(Struct, frozen=True):
    """A fault, and the body that told of it. `tokens` are the prompt's, where the backend was asked to count them."""

    fault: Fault
    raw: bytes = b""
    tokens: int = 0

    @property
    def overflow(self) -> Overflow | None:
        """What it tells of a prompt that is too long; None where it is about something else."""
        told = overflow_of(self.fault)
        return replace(told, tokens=self.tokens, at_least=False) if told and self.tokens else told


class Heard(Struct, frozen=True):
    """The next event of a stream, as it came and as it reads."""

    raw: bytes
    pieces: tuple[Piece | Fault, ...]


class Upstream(Protocol):
    """A backend as the proxy asks it."""

    async def whole(self, post: Post) -> Whole | Refusal:
        """The whole answer."""
        ...

    async def count(self, post: Post) -> int | Refusal | None:
        """How many tokens the body's prompt has, as the backend counts them; None where it does not."""
        ...

    def stream(self, post: Post) -> AsyncGenerator[Heard | Refusal]:
        """The answer's events as they come. A Refusal is the last; close the iterator to cancel the request."""
        ...


class Connected:
    """A backend that is no server, asked through its connection: its replies come in one go."""

    def __init__(self, connection: Connection) -> None:
        self._send = connection.send

    async def whole(self, post: Post) -> Whole | Refusal:
        """The whole answer."""
        outcome = await self._send(Send(request=post.request, turn=1))
        return Whole(outcome.reply) if isinstance(outcome, Replied) else Refusal(outcome.fault)

    async def count(self, _: Post) -> int | Refusal | None:
        """None: it takes no requests of a client's own."""
        return None

    async def stream(self, post: Post) -> AsyncGenerator[Heard | Refusal]:
        """The whole answer in pieces."""
        answer = await self.whole(post)
        if isinstance(answer, Refusal):
            yield answer
            return
        for piece in reply_pieces(answer.reply):
            yield Heard(b"", (piece,))
