"""Connections to backends: the Setup is what is known of one, as data; the Connection adds how to call it."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Literal, Protocol, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import replace

from forge.callbacks import OnChunk, Watcher
from forge.masking import NOTHING, Hidden
from stages.effect import Replied, Send, Undelivered
from stages.rescue.found import Format, Markers
from stages.wire.deltas import reply_pieces
from stages.wire.sampling import Sampling
from stages.wire.target import Mode
from stages.wire.wires import OPENAI, Dialect

ModeName: TypeAlias = Literal["auto"] | Mode
"""A mode by name; auto: the one that the server supports best."""

TIMEOUT = 300.0
"""Default maximum seconds without a byte from a server."""


class Setup(Struct, frozen=True, kw_only=True):
    """What is known of a backend, without its address and key. Journals store it, so a replay needs no backend."""

    mode: Mode = "native"
    model: str = ""
    context_tokens: int = 0
    """The size of the model's context, as the server reports it."""
    sampling: Sampling = Sampling()
    dialect: Dialect = OPENAI.dialect
    """How the backend speaks its protocol."""
    alternating: bool = False
    """Whether it refuses two messages of one role in a row, or a user message right after a tool's."""
    falls_back: bool = False
    """Whether it reports refused tools as a Fault of kind `no_tools`; from then on, they are put into the prompt."""
    logprobs: bool = False
    """Whether it returns the probabilities of tokens on request."""
    targets: Mapping[str, "Setup"] = {}
    """The backend's other models, by the names that stages use (`Ready.target`): `larger`, `summary` …"""
    markers: Markers | None = None
    """How the model's chat template writes calls, if the server shows the template."""
    formats: tuple[Format, ...] = ()
    """The formats of calls that its profile lists."""
    tokens_per_character: float | None = None
    """By the server's own tokenizer; without it, a run learns it from replies (`stages.tokens`)."""
    because: str = ""
    """How forge recognised the server."""


class Endpoint(Struct, frozen=True, kw_only=True):
    """How to reach a server over plain HTTP: for the proxy, which forwards bodies that a client wrote."""

    base: str
    """The address to which the paths of the protocol are appended."""
    root: str
    """The address without `/v1`."""
    headers: Mapping[str, str]
    """The headers of every request, with the credential if there is one."""
    key_header: str = "authorization"
    """The header for a client's credential, if there is no other."""
    has_key: bool = False
    model: str = ""
    """The configured model; empty for any."""
    instead: str = ""
    """The models that the server has, if it is known to lack the configured one."""
    slots: int = 0
    """Concurrent requests that the server works on; 0 if unknown."""
    context_limit: int = 0
    """Maximum tokens of context that a request can ask for; 0 if the size is fixed."""
    hidden: Hidden = NOTHING
    """Secrets to mask in the server's answers."""
    timeout: float = TIMEOUT
    """Maximum seconds without a byte."""
    total: float | None = None
    """Maximum seconds in all."""
    profile: str = ""
    """The name of the server's profile."""
    native_calls: bool = True
    """Whether it accepts tools in a request."""
    tools_refused: tuple[str, ...] = ()
    """Words in the errors with which it refuses tools."""
    proxy: str = ""
    """The forward proxy; empty for none."""
    tls: ssl.SSLContext | None = None
    """Verifies certificates."""


Sender = Callable[[Send], Awaitable[Replied | Undelivered]]


class Connection(Struct, frozen=True):
    """A connected model. `stream` is `send` with a callback for the parts of the reply; None if it cannot stream.

    `count` returns the tokens of a request by the server's own tokenizer. `endpoint` is None unless it is a server;
    `endpoints` are those of the other models, by target.
    """

    setup: Setup
    send: Sender
    stream: Callable[[Send, OnChunk], Awaitable[Replied | Undelivered]] | None = None
    count: Callable[[bytes], Awaitable[int | None]] | None = None
    endpoint: Endpoint | None = None
    endpoints: Mapping[str, Endpoint] = {}

    def around(self, wrap: Callable[[Sender], Sender]) -> "Connection":
        """The connection with `wrap` around each way to send a request, with and without `on_chunk`."""

        async def stream(effect: Send, on_chunk: OnChunk) -> Replied | Undelivered:
            return await wrap(self.told(on_chunk))(effect)

        return replace(self, send=wrap(self.send), stream=stream)

    def told(self, on_chunk: OnChunk | None) -> Sender:
        """A function that sends requests, and passes the parts of replies to `on_chunk` if that is given."""
        if on_chunk is None:
            return self.send
        if self.stream is None:
            return lambda effect: _in_one_go(self.send, effect, on_chunk)
        stream = self.stream
        return lambda effect: stream(effect, on_chunk)


async def _in_one_go(send: Sender, effect: Send, on_chunk: OnChunk) -> Replied | Undelivered:
    """The answer of a backend that cannot stream, passed to `on_chunk` once it is complete."""
    outcome = await send(effect)
    if isinstance(outcome, Replied):
        watcher = Watcher(on_chunk)
        for piece in reply_pieces(outcome.reply):
            await watcher.see(piece)
    return outcome


class Backend(Protocol):
    """Anything that can connect to a model: a server, llama.cpp in this process, a script."""

    def connect(self) -> AbstractAsyncContextManager[Connection]:
        """Connect to the model. ForgeError if it cannot be reached."""
        ...


AnyBackend: TypeAlias = Annotated[
    Backend | str,
    Meta(description="one of forge.backends, a server's address, such as http://127.0.0.1:8080, or 'local'"),
]
"""The `backend` argument of a run."""


class OpenBackend:
    """A backend that is already connected, and stays connected after the run."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def setup(self) -> Setup:
        """The backend's setup."""
        return self._connection.setup

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """The existing connection."""
        yield self._connection
