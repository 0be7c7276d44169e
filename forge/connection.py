"""Setup, all that is known of a backend as data; Connection, that and how to ask it; and what can be connected to."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Protocol, TypeAlias

from msgspec import Meta, Struct

from forge.callbacks import OnChunk, Watcher
from forge.masking import NOTHING, Hidden
from stages.effect import Replied, Send, Undelivered
from stages.rescue.found import Format, Markers
from stages.wire.deltas import Sampling, reply_pieces
from stages.wire.prompted import FormName
from stages.wire.target import Mode
from stages.wire.wires import OPENAI, Dialect


class Setup(Struct, frozen=True, kw_only=True):
    """What a turn is set up for: all that is known of a backend, as data. No address, no key.

    A journal holds it, so a replay needs no backend. `context_tokens` is the size of the model's context, as the
    server says it. `dialect` is how the backend speaks its protocol, `form` how calls are written as text, where they
    are. `markers` are how the model's own chat template writes calls, where the server shows the template,
    `formats` what its profile says of that;
    `alternating` says that it refuses two messages of one role in a row, or the user's word right after a tool's.
    `falls_back`: a refusal of tools comes as a Fault of the kind `no_tools`, and the tools are written into the prompt
    from then on. `logprobs`: it gives the probabilities of tokens, where they are asked for. `tokens_per_character` is
    by the server's own tokenizer; without it a run begins with a guess, and learns from replies (`stages.tokens`).
    `targets` are the setups of the other models that the backend has, by the names under which stages ask for them
    (`Ready.target`): `larger`, `summary`, or one of a user's own. `because` says how forge came to know what the
    server is.
    """

    mode: Mode = "native"
    model: str = ""
    context_tokens: int = 0
    sampling: Sampling = Sampling()
    dialect: Dialect = OPENAI.dialect
    form: FormName = "json"
    alternating: bool = False
    falls_back: bool = False
    logprobs: bool = False
    targets: Mapping[str, "Setup"] = {}
    markers: Markers | None = None
    formats: tuple[Format, ...] = ()
    tokens_per_character: float | None = None
    because: str = ""


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where a server takes requests over plain HTTP, for the proxy, which hands on bodies that a client wrote.

    `base` is its address as the wire's paths are appended to it, `root` without `/v1`. `headers` go with every request,
    the credential among them if there is one; without one, a client's goes in `key_header`. `model` is the one that was
    asked for by name; empty: any. `instead` are those that the server has, where it is known not to have that one.
    `slots` are the requests that it works on at the same time, 0: it does not say. `context_limit` are the tokens of
    context that it makes room for if a request asks for them; 0: it has what it has. `hidden` must not be shown of what
    it says; the times are seconds: without a byte, and in all. `profile` is the name of what the server is.
    `native_calls`: it takes tools in a request; where it may not, `tools_refused` are words of the error that says so.
    `proxy` is the forward proxy on the way, empty for none; `tls` is what certificates are checked with, where there
    are any.
    """

    base: str
    root: str
    headers: Mapping[str, str]
    key_header: str = "authorization"
    has_key: bool = False
    model: str = ""
    instead: str = ""
    slots: int = 0
    context_limit: int = 0
    hidden: Hidden = NOTHING
    timeout: float = 300.0
    total: float | None = None
    profile: str = ""
    native_calls: bool = True
    tools_refused: tuple[str, ...] = ()
    proxy: str = ""
    tls: ssl.SSLContext | None = None


Sender = Callable[[Send], Awaitable[Replied | Undelivered]]


class Connection(Struct, frozen=True):
    """A model that can be asked, and what is known of it.

    `stream` is `send` that tells a watcher of the reply while it comes; without it a watcher is told when the whole is
    there. `count` asks the server's own tokenizer what a request takes, in tokens. `endpoint`: where it is,
    if it is a server; `endpoints`: where the other models are, by target.
    """

    setup: Setup
    send: Sender
    stream: Callable[[Send, OnChunk], Awaitable[Replied | Undelivered]] | None = None
    count: Callable[[bytes], Awaitable[int | None]] | None = None
    endpoint: Endpoint | None = None
    endpoints: Mapping[str, Endpoint] = {}

    def told(self, on_chunk: OnChunk | None) -> Sender:
        """What sends requests and tells the watcher, if there is one, of the replies."""
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
    """Anything that connects: a server's address, llama.cpp in this process, a script."""

    def connect(self) -> AbstractAsyncContextManager[Connection]:
        """Reach the model, or raise a ForgeError that says why it cannot be reached."""
        ...


AnyBackend: TypeAlias = Annotated[
    Backend | str,
    Meta(description="one of forge.backends, a server's address, such as http://127.0.0.1:8080, or 'local'"),
]
"""What a run is told to run on."""


class OpenBackend:
    """A backend that is connected already, and stays so after the run."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def setup(self) -> Setup:
        """What is known of the backend."""
        return self._connection.setup

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """The connection that there is."""
        yield self._connection
