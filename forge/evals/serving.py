"""Serving: the model server of a series, started if necessary, with one connection per mode."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import UNSET, Struct
from msgspec.structs import replace

from forge.backends import Backend, Launch, ServerManager, ServerOptions, named
from forge.backends.address import AsNamed
from forge.backends.profile import known_sampling
from forge.backends.servers.download import Watch as Download
from forge.backends.servers.launch import launch_of, served_name
from forge.connection import TIMEOUT, Connection, ModeName
from forge.errors import ForgeError
from forge.evals.row import Configuration
from forge.runtime.reaching import with_sampling
from stages.wire.sampling import Sampling
from stages.wire.wires import WIRES

MAX_TOKENS = 512
"""Default maximum tokens of a reply.

Half of a run's default: the reply's room is taken from the context, and the smallest scenario has 2,048 tokens.
"""


class ModelServer(Struct, frozen=True, kw_only=True):
    """A model and its server, as on the command line: `backend` is that of `forge run`.

    Without a temperature in `sampling`, the makers' recommendation or forge's default applies. `slots` and
    `chat_template_file` are for a server started by forge. `request_seconds` is the maximum time without a byte from
    the server. `context_tokens` is for a server that does not report its context. ForgeError for options that do not
    fit the kind of server, and for two models.
    """

    backend: str
    model: str = ""
    profile: str = ""
    sampling: Sampling = Sampling(max_tokens=MAX_TOKENS)
    api_key: str = ""
    slots: int | None = None
    chat_template_file: str = ""
    request_seconds: float = TIMEOUT
    context_tokens: int | None = None

    def __post_init__(self) -> None:
        """Refuse contradictions before anything is started."""
        if self.chat_template_file and (self.backend == "local" or self.launch is None):
            raise ForgeError("--chat-template is for a server that forge starts: llama-server:MODEL")
        if self.slots and self.launch is None:
            raise ForgeError("--slots is for a server that forge starts: local, or llama-server:MODEL")
        if self.context_tokens and self.launch is not None:
            raise ForgeError(
                "--context is for a server that runs already; one that forge starts gets what the scenarios need"
            )

    @property
    def launch(self) -> Launch | None:
        """What to start; None for a running server."""
        if self.profile:
            return None
        return launch_of(self.backend, self.model, slots=self.slots, chat_template_file=self.chat_template_file)


class Serving(Struct, frozen=True, kw_only=True):
    """A ready server: model name, kind, number of concurrent runs, and connections by mode."""

    model: str
    backend: str
    slots: int
    connections: Mapping[str, Connection]

    def connection(self, configuration: Configuration) -> Connection:
        """The connection for that configuration; players other than forge have no modes."""
        return self.connections.get(configuration.mode) or next(iter(self.connections.values()))


@asynccontextmanager
async def serving(
    server: ModelServer, modes: Iterable[ModeName], context_tokens: int, download: Download | None = None
) -> AsyncIterator[Serving]:
    """The server with at least that much context, until the block ends; 0: as much as it has.

    `download` watches a model's download. ForgeError if the server has less context, cannot be reached, or lacks one of
    the modes.
    """
    async with AsyncExitStack() as opened:
        name = server.model
        if launch := server.launch:
            name = launch.model
            launch = replace(launch, context_tokens=context_tokens or None)
            started = ServerManager(launch, api_key=server.api_key, download=download)
            manager = await opened.enter_async_context(started)
            profile = "llama-server" if launch.program == "local" else launch.program
            reached = {"backend": manager.url, "profile": profile, "api_key": manager.api_key}
            server = replace(server, **reached, model="", slots=None, chat_template_file="")
        connections: dict[str, Connection] = {
            mode: await opened.enter_async_context(_reached(server, mode, context_tokens)) for mode in modes
        }
        first = next(iter(connections.values()))
        yield Serving(
            model=served_name(name or first.setup.model),
            backend=first.endpoint.profile if first.endpoint else server.backend.partition(":")[0],
            slots=max(1, first.endpoint.slots if first.endpoint else 1),
            connections=connections,
        )


@asynccontextmanager
async def _reached(server: ModelServer, mode: ModeName, context_tokens: int) -> AsyncIterator[Connection]:
    """A connection in that mode, with the sampling for all players."""
    async with _backend(server, mode, server.context_tokens).connect() as connection:
        setup = connection.setup
        sized = WIRES[setup.dialect.wire].sets_context
        if setup.context_tokens >= context_tokens:
            yield _sampled(connection, server)
        elif sized:  # Ollama allocates what is requested
            async with _backend(server, mode, context_tokens).connect() as larger:
                yield _sampled(larger, server)
        else:
            raise ForgeError(
                f"a scenario needs {context_tokens:,} tokens of context, and as far as forge knows the server has "
                f"{setup.context_tokens:,}. If it has more, say so with --context; else start it with more "
                "(llama-server: -c, times the slots), or choose what needs less"
            )


def _backend(server: ModelServer, mode: ModeName, context_tokens: int | None = None) -> Backend:
    """The model's backend."""
    options: ServerOptions = {
        "mode": mode,
        "sampling": server.sampling,
        "api_key": server.api_key,
        "context_tokens": context_tokens,
        "timeout": server.request_seconds,
    }
    return AsNamed(named(server.backend, server.model, profile=server.profile or None, **options))


def _sampled(connection: Connection, server: ModelServer) -> Connection:
    """The connection; without a given temperature, with the recommended sampling for the model, if any."""
    known = known_sampling(served_name(server.model or connection.setup.model))
    wished = server.sampling.temperature is not UNSET
    return connection if wished or known is None else with_sampling(connection, known)
