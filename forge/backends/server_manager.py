"""ServerManager: a model server that is started when it is needed, found ready, and stopped whatever happens."""

import asyncio
import logging
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

import httpx
from msgspec import Struct
from msgspec.structs import replace

from forge.backends import models
from forge.backends.budget import SMALL, BudgetMode, ResolvedBudget, by_ram, halved, resolve_mode
from forge.backends.download import Watch, ensure_model
from forge.backends.hardware import detect_hardware
from forge.backends.launch import HOST, Launch, command, served_name, source
from forge.backends.local import LlamaCpp, Settings
from forge.backends.occupant import Occupant, occupant, serves
from forge.backends.process import GRACE, Process
from forge.backends.ready import Loading, Tell, free_port, is_free, until_ready
from forge.backends.server import Options, Server
from forge.connection import Connection
from forge.errors import BackendError, DefinitionError, ForgeError

KEY_IN = {"llama-server": "LLAMA_API_KEY", "llamafile": "LLAMA_API_KEY", "vllm": "VLLM_API_KEY"}
INSTALL = {
    "llama-server": "Install llama.cpp (https://github.com/ggml-org/llama.cpp)",
    "llamafile": "Get it from https://github.com/mozilla-ai/llamafile",
    "vllm": "Run: pip install vllm",
}


class _Running(Struct, frozen=True):
    """A server that is ready. `owner` is what forge started, None for somebody else's."""

    url: str
    found: Occupant
    owner: Process | LlamaCpp | None


def log_loading(loading: Loading) -> None:
    """Say in the log how long a server has been loading."""
    logging.getLogger("forge").info("loading for %.0f seconds: %s", loading.seconds, loading.said)


class ServerManager:
    """A backend whose server forge starts and stops.

    `async with ServerManager(Launch(…)) as server` keeps it running for all runs inside; passed to a run by itself,
    it runs for that one. Where `launch.port` is given and the very model is served there already, that server is
    used, and left alone. Whatever ends this process ends the server that it started.

    `budget` says who decides on the context: by default `launch.context_tokens` if given, else the server.
    `environment` is added to the server's. `load_timeout` and `grace`, which it has to end by itself, are in seconds.
    `progress` is called every two seconds while it loads; `download` while a known model is fetched. The other options
    are those of `Server`; `api_key` reaches the server in its environment, and shows nowhere.
    """

    def __init__(
        self,
        launch: Launch,
        *,
        budget: BudgetMode | None = None,
        environment: Mapping[str, str] | None = None,
        load_timeout: float = 600.0,
        grace: float = GRACE,
        progress: Tell = log_loading,
        download: Watch | None = None,
        **options: Unpack[Options],
    ) -> None:
        if options.pop("context_tokens", None):
            raise DefinitionError(("context_tokens belongs into the Launch: Launch(context_tokens=…)",))
        self._budget_mode = resolve_mode(budget, launch.context_tokens)
        self._launch = launch
        self._source = source(launch)
        self._options = options
        self._api_key = options.get("api_key", "")
        self._environment = dict(environment or {})
        self._load_timeout = load_timeout
        self._grace = grace
        self._progress = progress
        self._download = download
        self._running: _Running | None = None
        self._users = 0
        self._lock = asyncio.Lock()

    @property
    def url(self) -> str:
        """The server's address. ForgeError while it is not running."""
        return self._now().url

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

    def _now(self) -> _Running:
        if self._running is None:
            raise ForgeError("the server is not running; use `async with`, or start it first")
        return self._running

    async def start(self) -> ResolvedBudget:
        """Have it ready: at once if it is. BackendError says why it cannot be."""
        async with self._lock:
            if self._running is not None and _gone(self._running):
                await self._end()
            if self._running is None:
                self._running = await self._begin()
            return self.budget

    async def stop(self) -> None:
        """End what was started: asked, then killed after `grace` seconds. Stopping twice is no mistake."""
        self._users = 0
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
        self._users += 1
        try:
            await self.start()
        except BaseException:
            self._users -= 1
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it, if nobody else uses it."""
        self._users -= 1
        if self._users == 0:
            await self.stop()

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
                yield connection

    async def _begin(self) -> _Running:
        launch, port = self._fitted(), self._launch.port
        model = await self._model()
        if port and not is_free(port):
            return await self._attached(launch, port, model)
        if launch.program == "local":
            return await self._inside(launch, Path(model), port)
        return await self._started(launch, _executable(launch, model), model, port or free_port())

    def _fitted(self) -> Launch:
        """The launch with the context that the machine bears, where that is forge's to say.

        With a GPU llama.cpp and vLLM fit it to the memory themselves, and better than a table could.
        """
        if self._budget_mode not in (BudgetMode.FORGE_FULL, BudgetMode.FORGE_FAST) or self._launch.program == "vllm":
            return self._launch
        hardware = detect_hardware()
        return self._launch if hardware.gpus else replace(self._launch, context_tokens=by_ram(hardware).tokens)

    async def _model(self) -> Path | str:
        found = self._source
        if isinstance(found, models.KnownModel):
            return await asyncio.to_thread(ensure_model, found, self._download)
        return found

    async def _attached(self, launch: Launch, port: int, model: Path | str) -> _Running:
        """Somebody else's server, if it serves this very model as it was asked for."""
        url = f"http://{HOST}:{port}"
        async with httpx.AsyncClient(trust_env=False) as client:
            found = await occupant(client, url)
        if found is None:
            raise BackendError(f"port {port} is in use, by something that takes no connections; choose another, or 0")
        if not serves(found, model) or (difference := _difference(launch, found)):
            asked = difference if serves(found, model) else f"it does not serve {model}"
            raise BackendError(f"port {port} is in use by {found}; {asked}. Choose another port, or 0 for a free one")
        logging.getLogger("forge").info("%s serves %s already; it is used, and left running", url, model)
        return _Running(url, found, None)

    async def _inside(self, launch: Launch, path: Path, port: int) -> _Running:
        settings = Settings.of(launch, path, port)
        server = await asyncio.to_thread(LlamaCpp, settings)
        async with AsyncExitStack() as undo:
            undo.push_async_callback(asyncio.to_thread, server.stop)
            found = await self._asked(server.url)
            undo.pop_all()
        return _Running(server.url, found, server)

    async def _started(self, launch: Launch, executable: str, model: Path | str, port: int) -> _Running:
        url = f"http://{HOST}:{port}"
        try:
            process = Process(
                command(launch, executable, model, port), launch.program, self._environ(), grace=self._grace
            )
        except OSError as error:
            raise BackendError(f"{launch.program} cannot be started: {error}") from None
        async with AsyncExitStack() as undo:
            undo.push_async_callback(process.stop)
            await until_ready(
                process,
                launch.program,
                url,
                patience=self._load_timeout,
                tell=self._progress,
                secrets=(self._api_key, *_secrets(self._environment), *_secrets(os.environ)),
            )
            found = await self._asked(url)
            if launch.program == "llama-server" and not serves(found, model):
                raise BackendError(f"{url} is answered by {found}, not by the server that was started; try again")
            undo.pop_all()
        return _Running(url, found, process)

    async def _asked(self, url: str) -> Occupant:
        headers = {"authorization": f"Bearer {self._api_key}"} if self._api_key else {}
        async with httpx.AsyncClient(trust_env=False, headers=headers) as client:
            found = await occupant(client, url)
        if found is None or not found.models:
            raise BackendError(f"{url} was ready, and then did not say which models it has: {found or 'no answer'}")
        return found

    def _environ(self) -> dict[str, str]:
        # Threads that wait busily leave nothing for anyone else on a small machine; a user's own setting goes before.
        own = {} if "OMP_WAIT_POLICY" in os.environ else {"OMP_WAIT_POLICY": "passive"}
        key = {KEY_IN[self._launch.program]: self._api_key} if self._api_key else {}
        return {**own, **self._environment, **key}


def _gone(running: _Running) -> bool:
    """Whether it has to be looked for anew: ours has died, or it is somebody else's."""
    return running.owner is None or (isinstance(running.owner, Process) and running.owner.code is not None)


def _difference(launch: Launch, found: Occupant) -> str:
    """How a running server differs from what was asked for; empty if it does not."""
    if launch.context_tokens and found.context_tokens != launch.context_tokens:
        return f"it has {found.context_tokens or 'an unknown number of'} tokens of context, not {launch.context_tokens}"
    if launch.slots and found.slots and found.slots < launch.slots:
        return f"it has {found.slots} slots, not {launch.slots}"
    return ""


def _executable(launch: Launch, model: Path | str) -> str:
    if launch.program == "llamafile" and isinstance(model, Path) and model.suffix != ".gguf":
        return str(model)
    wanted = launch.executable or launch.program
    found = shutil.which(str(Path(wanted).expanduser()) if launch.executable else wanted)
    if found is None:
        where = f"{wanted} is no program" if launch.executable else f"there is no {wanted} on the PATH"
        raise BackendError(f"{where}. {INSTALL[launch.program]}, or say where it is: executable=…")
    return found


def _secrets(environment: Mapping[str, str]) -> tuple[str, ...]:
    """What a server may know, and print, that nobody else should."""
    words = ("KEY", "TOKEN", "SECRET", "PASSWORD")
    return tuple(value for name, value in environment.items() if any(word in name.upper() for word in words))
