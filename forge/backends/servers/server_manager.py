"""ServerManager: a model server that is started on demand and always stopped."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

from msgspec.structs import replace

from forge.backends.budget import SMALL, BudgetMode, ResolvedBudget, by_ram, halved, resolve_mode
from forge.backends.server import Options, Server
from forge.backends.servers.download import Watch
from forge.backends.servers.hardware import detect_hardware
from forge.backends.servers.launch import Launch, served_name, source
from forge.backends.servers.llama_cpp import LlamaCpp, random_key
from forge.backends.servers.models import refuse_beyond_training, trained_context
from forge.backends.servers.process import EXIT_GRACE, Process
from forge.backends.servers.readiness import Loading, Tell
from forge.backends.servers.starter import Running, Starter
from forge.connection import Connection
from forge.errors import DefinitionError, ForgeError
from forge.runtime.options import checked_options
from forge.runtime.watcher import OnChunk
from stages.effect import Replied, Send, Undelivered


def log_loading(loading: Loading) -> None:
    """Say in the log how long a server has been loading."""
    logging.getLogger("forge").info("loading for %.0f seconds: %s", loading.seconds, loading.said)


class ServerManager:
    """A backend whose server forge starts and stops.

    `async with ServerManager(Launch(…)) as server` keeps it running for all runs inside; passed to a run by itself,
    it runs for that one; started by hand before, it runs until `stop`. Where `launch.port` is given and the very model
    is served there already, that server is used, and left alone. Whatever ends this process ends the server that it
    started.

    `budget` says who decides on the context: by default `launch.context_tokens` if given, else the server.
    `environment` is added to the server's. `load_timeout` and `grace`, which it has to end by itself, are in seconds.
    `progress` is called every two seconds while it loads; `download` while a known model is fetched. The other options
    are those of `Server`; `api_key` reaches the server in its environment, and shows nowhere. `local` has a random one
    unless one is given.
    """

    @checked_options
    def __init__(
        self,
        launch: Launch,
        *,
        budget: BudgetMode | None = None,
        environment: Mapping[str, str] | None = None,
        load_timeout: float = 600.0,
        grace: float = EXIT_GRACE,
        progress: Tell = log_loading,
        download: Watch | None = None,
        **options: Unpack[Options],
    ) -> None:
        if options.pop("context_tokens", None):
            raise DefinitionError(("context_tokens belongs into the Launch: Launch(context_tokens=…)",))
        self._budget_mode = resolve_mode(budget, launch.context_tokens)
        self._launch = launch
        if launch.program == "local" and not options.get("api_key"):
            options["api_key"] = random_key()
        self._options = options
        self._source = source(launch)
        if launch.program == "local" and not isinstance(self._source, str):
            refuse_beyond_training(self._source, launch.context_tokens)
        self._starter = Starter(
            self._source,
            api_key=options.get("api_key", ""),
            environment=dict(environment or {}),
            load_timeout=load_timeout,
            grace=grace,
            progress=progress,
            download=download,
        )
        self._running: Running | None = None
        self._users = 0
        self._kept = False
        self._lock = asyncio.Lock()

    @property
    def url(self) -> str:
        """The server's address. ForgeError while it is not running."""
        return self._now().url

    @property
    def api_key(self) -> str:
        """What a client of the server needs, as it was given; `local` has a random one otherwise. Empty: nothing."""
        return self._options.get("api_key", "")

    @property
    def budget(self) -> ResolvedBudget:
        """The context that a run may count on, and why. ForgeError while the server is not running."""
        mode, found = self._budget_mode, self._now().found
        if mode is BudgetMode.MANUAL and found.context_tokens in (0, self._launch.context_tokens):
            return ResolvedBudget(tokens=self._launch.context_tokens or SMALL, source="as given")
        if not found.context_tokens:
            return halved(mode, ResolvedBudget(tokens=SMALL, source=f"{found.kind} does not say how much it has"))
        return halved(mode, ResolvedBudget(tokens=found.context_tokens, source=f"as {found.kind} says"))

    @property
    def log(self) -> Path | None:
        """The file that the server's own output goes to; None if forge did not start a process."""
        owner = self._now().owner
        return owner.log if isinstance(owner, Process) else None

    def _now(self) -> Running:
        if self._running is None:
            raise ForgeError("the server is not running; use `async with`, or start it first")
        return self._running

    async def start(self) -> ResolvedBudget:
        """Have it ready: at once if it is. Where nobody uses it yet, it runs until `stop`.

        BackendError says why it cannot be ready.
        """
        async with self._lock:
            await self._ready()
            self._kept = self._kept or self._users == 0
            return self.budget

    async def _ready(self) -> None:
        if self._running is not None and _gone(self._running):
            await self._end()
        if self._running is None:
            self._running = await self._starter.start(await self._fitted())

    async def stop(self) -> None:
        """End what was started: asked, then killed after `grace` seconds. Stopping twice is no mistake."""
        async with self._lock:  # what is just being started is ended too
            self._kept = False
            await self._end()

    async def _end(self) -> None:
        running, self._running = self._running, None
        match running.owner if running else None:
            case Process() as process:
                await process.stop()
            case LlamaCpp() as server:
                await asyncio.to_thread(server.stop)
            case None:
                pass

    async def __aenter__(self) -> Self:
        """The manager, its server ready."""
        async with self._lock:
            await self._ready()
            self._users += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it, if nobody else uses it."""
        self._users -= 1
        async with self._lock:  # whoever comes meanwhile finds it running, or starts it when it has ended
            if self._users == 0 and not self._kept:
                await self._end()

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """A connection to the server, which is started for it if it is not running."""
        async with self:
            program = self._launch.program
            options: Options = {**self._options, "context_tokens": self.budget.tokens}
            if program == "local":
                backend = Server(self.url, profile="llama-server", model=served_name(self._launch), **options)
            else:
                backend = Server(self.url, profile=program, model=self._now().found.models[0], **options)
            async with backend.connect() as connection:
                yield self._watched(connection)

    def _watched(self, connection: Connection) -> Connection:
        """The connection; a request that fails because our server has died says how it did."""
        owner = self._now().owner
        if not isinstance(owner, Process):
            return connection

        def told(outcome: Replied | Undelivered) -> Replied | Undelivered:
            if isinstance(outcome, Replied) or not (why := self._starter.died(owner, self._launch.program)):
                return outcome
            return replace(outcome, fault=replace(outcome.fault, detail=why))

        async def send(effect: Send) -> Replied | Undelivered:
            return told(await connection.send(effect))

        async def stream(effect: Send, on_chunk: OnChunk) -> Replied | Undelivered:
            return told(await connection.told(on_chunk)(effect))

        return replace(connection, send=send, stream=stream)

    async def _fitted(self) -> Launch:
        """The launch with the context that the machine bears, where that is forge's to say.

        With a GPU llama.cpp and vLLM fit it to the memory themselves, and better than a table could.
        """
        if self._budget_mode not in (BudgetMode.FORGE_FULL, BudgetMode.FORGE_FAST) or self._launch.program == "vllm":
            return self._launch
        hardware = await asyncio.to_thread(detect_hardware)
        if hardware.gpus:
            return self._launch
        trained = None if isinstance(self._source, str) else trained_context(self._source)
        tokens = by_ram(hardware).tokens
        return replace(self._launch, context_tokens=min(tokens, trained or tokens))


def _gone(running: Running) -> bool:
    """Whether it has to be looked for anew: ours has died, or it is somebody else's."""
    return running.owner is None or (isinstance(running.owner, Process) and running.owner.code is not None)
