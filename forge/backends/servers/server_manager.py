"""Servers that forge starts: one per model, shared, stopped when the last user leaves."""

import asyncio
import logging
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Literal, Self, Unpack

from msgspec import Struct
from msgspec.structs import replace

from forge.backends.address import is_here
from forge.backends.budget import SMALL, BudgetMode, ResolvedBudget, halved, ollama_budget, resolve_mode
from forge.backends.credentials import HEADERS, headers_for
from forge.backends.http_client import new_client
from forge.backends.ollama import ask_model
from forge.backends.profile import base_url, named_profile
from forge.backends.questions import ask
from forge.backends.recognition import ContextSize, ask_about, context_of
from forge.backends.server import Server, ServerOptions
from forge.backends.servers import models
from forge.backends.servers.download import Watch, fetched
from forge.backends.servers.hardware import detect_hardware
from forge.backends.servers.launch import (
    HOST,
    CacheType,
    Launch,
    Program,
    command,
    source,
)
from forge.backends.servers.llama_cpp import LlamaCpp, random_key
from forge.backends.servers.process import (
    EXIT_GRACE,
    Loading,
    Process,
    Tell,
    explain_exit,
    free_port,
    is_free,
    until_ready,
)
from forge.connection import Connection, Sender
from forge.errors import BackendError, DefinitionError, ForgeError, checked_options
from forge.processes import is_secret, needed
from stages.effect import Replied, Send, Undelivered

_KEY_IN = {"llama-server": "LLAMA_API_KEY", "llamafile": "LLAMA_API_KEY", "vllm": "VLLM_API_KEY"}
_INSTALL = {
    "llama-server": "Install llama.cpp (https://github.com/ggml-org/llama.cpp)",
    "llamafile": "Get it from https://github.com/mozilla-ai/llamafile",
    "vllm": "Run: pip install vllm",
}


class Running(Struct, frozen=True):
    """A ready server: the first model that it lists, and its context. `process` is None if it runs in this one.

    `stop` ends it when it is closed.
    """

    url: str
    model: str
    context: ContextSize
    process: Process | None
    stop: AsyncExitStack


def _executable(launch: Launch, model: Path | str) -> str:
    if launch.program == "llamafile" and isinstance(model, Path) and model.suffix != ".gguf":
        return str(model)
    wanted = launch.executable or launch.program
    found = shutil.which(str(Path(wanted).expanduser()) if launch.executable else wanted)
    if found is None:
        where = f"{wanted} is not a program" if launch.executable else f"there is no {wanted} on the PATH"
        raise BackendError(f"{where}. {_INSTALL[launch.program]}, or say where it is (in Python, executable=…)")
    return found


def _log_loading(loading: Loading) -> None:
    logging.getLogger("forge").info("loading for %.0f seconds: %s", loading.seconds, loading.said)


class ServerManager:
    """A backend whose server forge starts and stops.

    `async with ServerManager(Launch(…)) as server` keeps it running for all runs inside. Passed to a run, it runs for
    that run; started explicitly, it runs until `stop`. When this process ends for any reason, so does the server.

    `budget` says who chooses the context size: by default `launch.context_tokens` if given, otherwise the server.
    `environment` is added to the server's. `load_timeout` and `grace`, the time that it has to exit, are in seconds.
    `progress` is called every two seconds while it loads, `download` while a known model is downloaded. The other
    options are those of `Server`; `api_key`, by default that of `environment` or a random one, is passed in the
    server's environment and shown nowhere.
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
        progress: Tell | None = None,
        download: Watch | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        if options.pop("context_tokens", None):
            raise DefinitionError(("context_tokens belongs into the Launch: Launch(context_tokens=…)",))
        self._budget_mode = resolve_mode(budget, launch.context_tokens)
        self._launch = launch
        self._environment = dict(environment or {})
        key_in = _KEY_IN.get(launch.program, "")
        given = options.get("api_key") or self._environment.get(key_in, "")
        headers = {name.lower() for name in options.get("headers") or ()}
        if not given and (launch.program == "local" or HEADERS.isdisjoint(headers)):
            given = random_key()
        options["api_key"] = given
        self._options = options
        self._source = source(launch)
        self._load_timeout, self._grace, self._download = load_timeout, grace, download
        self._progress = progress or _log_loading
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
        """The key for the server's clients: the given one, otherwise a random one; empty if a header carries one."""
        return self._options["api_key"]

    @property
    def budget(self) -> ResolvedBudget:
        """The context that a run may rely on, and why. ForgeError while the server is not running."""
        mode, found = self._budget_mode, self._now().context
        if mode is BudgetMode.MANUAL and found.tokens in (None, self._launch.context_tokens):
            return ResolvedBudget(tokens=self._launch.context_tokens or SMALL, source="as given")
        if found.tokens is None:
            source = f"{self._launch.program} does not say how much it has"
            return halved(mode, ResolvedBudget(tokens=SMALL, source=source))
        return halved(mode, ResolvedBudget(tokens=found.tokens, source=f"{found.source} of {self._launch.program}"))

    @property
    def log(self) -> Path | None:
        """The log file of the server's output; None if forge did not start a process."""
        process = self._now().process
        return process.log if process else None

    def _now(self) -> Running:
        if self._running is None:
            raise ForgeError("the server is not running; use `async with`, or start it first")
        return self._running

    async def start(self) -> ResolvedBudget:
        """Start the server, or return at once if it is ready. If nobody uses it yet, it runs until `stop`.

        BackendError says why it cannot start.
        """
        async with self._lock:
            await self._ready()
            self._kept = self._kept or self._users == 0
            return self.budget

    async def _ready(self) -> None:
        process = self._running.process if self._running else None
        if process is not None and process.code is not None:  # it has exited
            await self._end()
        if self._running is None:
            self._running = await self._begun()

    async def _begun(self) -> Running:
        """A ready server: in this process, or a started program.

        Leaves nothing behind on failure or cancellation. BackendError says why it cannot start.
        """
        launch, model = self._launch, self._source
        if isinstance(model, models.KnownModel):
            model = await fetched(model, self._download)
        if launch.port and not is_free(launch.port):
            raise BackendError(
                f"port {launch.port} is in use. Choose another port, or 0 for a free one; to use what runs there, "
                f"pass its address: Server('http://{HOST}:{launch.port}')"
            )
        async with AsyncExitStack() as undo:
            process = None
            if launch.program == "local":
                inside = await asyncio.to_thread(LlamaCpp, launch, Path(model), self.api_key)
                undo.push_async_callback(asyncio.to_thread, inside.stop)
                url = inside.url
            else:
                port = launch.port or free_port()
                process, url = self._process(model, port), f"http://{HOST}:{port}"
                undo.push_async_callback(process.stop)
                await until_ready(
                    process,
                    launch.program,
                    url,
                    load_timeout=self._load_timeout,
                    tell=self._progress,
                    secrets=self._secrets(),
                )
            listed, context = await self._asked(url)
            return Running(url, listed, context, process, undo.pop_all())

    def _process(self, model: Path | str, port: int) -> Process:
        """The started program."""
        launch = self._launch
        executable = _executable(launch, model)
        # Busy-waiting threads would block everything else on a small machine; the user's own setting takes precedence.
        own = {} if "OMP_WAIT_POLICY" in os.environ else {"OMP_WAIT_POLICY": "passive"}
        key = {_KEY_IN[launch.program]: self.api_key} if self.api_key else {}
        for_hub = needed(fetches=True) if isinstance(self._source, str) else {}
        environment = {**for_hub, **own, **self._environment, **key}
        try:
            return Process(command(launch, executable, model, port), launch.program, environment, grace=self._grace)
        except OSError as error:
            raise BackendError(f"{launch.program} cannot be started: {error}") from None

    async def _asked(self, url: str) -> tuple[str, ContextSize]:
        """The first model that the server lists, and its context. BackendError if it is not the one that we started."""
        headers = {"authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        async with new_client(url, headers=headers) as http:
            about = await ask_about(http, f"{url}/v1", props=True, loading=0)
            refused = about.props is None and (await ask(http, f"{url}/props", loading=0)).status in (401, 403)
        if refused and self.api_key:
            # Another forge's server has taken the port since it was free, or shares it: older ones bind it together.
            raise BackendError(
                f"{url} does not accept the key of the server that forge has started there, so another server answers. "
                "Choose another port, or 0 for a free one"
            )
        listed = about.listed()
        if listed is None:
            raise BackendError(f"{url} was ready, and then did not say which models it has")
        return listed.id, context_of(about)

    def _secrets(self) -> tuple[str, ...]:
        """Secrets that the server may print."""
        variables = (*self._environment.items(), *os.environ.items())
        return (self.api_key, *(value for name, value in variables if is_secret(name)))

    async def stop(self) -> None:
        """Stop what was started: ask it, then kill it after `grace` seconds. May be called twice."""
        async with self._lock:  # also what is just being started
            self._kept = False
            await self._end()

    async def _end(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            await running.stop.aclose()

    async def __aenter__(self) -> Self:
        """The manager, with its server ready."""
        async with self._lock:
            await self._ready()
            self._users += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop the server, if nobody else uses it."""
        self._users -= 1
        async with self._lock:  # a new user meanwhile finds it running, or starts it after it has ended
            if self._users == 0 and not self._kept:
                await self._end()

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """A connection to the server, which is started if it is not running."""
        async with self:
            running, program = self._now(), self._launch.program
            options: ServerOptions = {**self._options, "context_tokens": self.budget.tokens}
            profile = "llama-server" if program == "local" else program
            async with Server(running.url, profile=profile, model=running.model, **options).connect() as connection:
                yield connection.around(partial(self._watched, running.process)) if running.process else connection

    def _watched(self, process: Process, sender: Sender) -> Sender:
        """A failed request after the server's exit reports how it exited."""

        async def send(effect: Send) -> Replied | Undelivered:
            outcome = await sender(effect)
            if isinstance(outcome, Replied) or (code := process.code) is None:
                return outcome
            said = process.tail(self._secrets())
            why = explain_exit(self._launch.program, code, said, process.log, "while it was in use")
            return replace(outcome, fault=replace(outcome.fault, detail=why))

        return send


class Local(ServerManager):
    """A model in this process, by llama.cpp: a known model's name, or the path of a GGUF file.

    It is loaded for a run, or for all runs inside `async with`. Its port is only reachable from this machine and needs
    the `api_key`, by default a random one. `progress` watches the download. A wrong model is refused here; `connect`
    raises ModelUnavailable and BackendError.
    """

    @checked_options
    def __init__(
        self, model: str = "", *, port: int = 0, progress: Watch | None = None, **options: Unpack[ServerOptions]
    ) -> None:
        tokens = options.pop("context_tokens", None)
        launch = Launch(program="local", model=model or models.DEFAULT, port=port, context_tokens=tokens)
        super().__init__(launch, download=progress, **options)

    def __repr__(self) -> str:
        """The model."""
        return f"Local({self._launch.model!r})"


# `setup_backend`: a ready server by name, with its context budget.


class AttachedOllama:
    """A model of a running Ollama, which forge neither starts nor stops.

    `url` is its address, by default on this machine. `budget` says who chooses the context size: by default
    `context_tokens` if given, otherwise as Ollama has the model loaded, as its Modelfile says, or as the GPUs allow.
    """

    def __init__(
        self, model: str, *, url: str = "", budget: BudgetMode | None = None, **options: Unpack[ServerOptions]
    ) -> None:
        self._tokens = options.pop("context_tokens", None)
        self._mode = resolve_mode(budget, self._tokens)
        self._model, self._options = model, options
        self._url = base_url(url, named_profile("ollama"))

    async def start(self) -> ResolvedBudget:
        """Ask Ollama about the model. ForgeError if it does not have it, BackendError if it does not answer."""
        options, profile = self._options, named_profile("ollama")
        headers = headers_for(self._url, profile, options.get("api_key", ""), options.get("headers") or {})
        proxy, verify = options.get("proxy"), options.get("verify", True)
        # This machine's memory says nothing about another's.
        here = is_here(self._url)
        async with new_client(self._url, headers=headers, proxy=proxy, verify=verify) as http:
            says = await ask_model(http, self._url, self._model)
        hardware = await asyncio.to_thread(detect_hardware) if here else None
        return ollama_budget(self._mode, self._tokens, says, hardware)

    async def stop(self) -> None:
        """Do nothing: forge did not start it."""

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """A connection that requests this context size."""
        budget = await self.start()
        options: ServerOptions = {**self._options, "context_tokens": budget.tokens}
        async with Server(self._url, profile="ollama", model=self._model, **options).connect() as connection:
            yield connection


async def setup_backend(
    backend: Program | Literal["ollama"],
    model: str,
    *,
    budget_mode: BudgetMode | None = None,
    manual_tokens: int | None = None,
    cache_type_k: CacheType | None = None,
    cache_type_v: CacheType | None = None,
    n_slots: int | None = None,
    kv_unified: bool = False,
    extra_flags: tuple[str, ...] = (),
    port: int = 0,
    **options: Unpack[ServerOptions],
) -> tuple[ServerManager | AttachedOllama, ResolvedBudget]:
    """A ready server and its context budget. The caller stops it: `await server.stop()`.

    Options about starting are refused for Ollama, which forge only attaches to. `ServerManager(Launch(…))` has more
    options, and stops by itself as `async with`. Raises what `Launch` and `ServerManager.start` raise.
    """
    launching = Launch(
        model=model,
        program="llama-server" if backend == "ollama" else backend,
        port=port,
        context_tokens=manual_tokens,
        cache_type_k=cache_type_k,
        cache_type_v=cache_type_v,
        slots=n_slots,
        kv_unified=kv_unified,
        flags=extra_flags,
    )
    if backend == "ollama":
        if launching != Launch(model=model, context_tokens=manual_tokens):
            raise DefinitionError(("ollama is only attached to: slots, caches, flags and ports are its own to set",))
        wanted: ServerOptions = {**options, "context_tokens": manual_tokens}
        attached = AttachedOllama(model, budget=budget_mode, **wanted)
        return attached, await attached.start()
    server = ServerManager(launching, budget=budget_mode, **options)
    return server, await server.start()
