"""Start a server: download the model, find a port, start the program, wait; or reuse a running one."""

import asyncio
import logging
import os
import shutil
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec import Struct

from forge.backends.http_client import client
from forge.backends.servers import models
from forge.backends.servers.command_line import command
from forge.backends.servers.download import Watch, fetched
from forge.backends.servers.environment import is_secret, needed
from forge.backends.servers.exit_report import explain_exit
from forge.backends.servers.launch import HOST, Launch, Source
from forge.backends.servers.llama_cpp import LlamaCpp, Settings
from forge.backends.servers.port_occupant import Occupant, occupant, serves
from forge.backends.servers.process import Process
from forge.backends.servers.readiness import Tell, free_port, is_free, until_ready
from forge.errors import BackendError

_KEY_IN = {"llama-server": "LLAMA_API_KEY", "llamafile": "LLAMA_API_KEY", "vllm": "VLLM_API_KEY"}
_INSTALL = {
    "llama-server": "Install llama.cpp (https://github.com/ggml-org/llama.cpp)",
    "llamafile": "Get it from https://github.com/mozilla-ai/llamafile",
    "vllm": "Run: pip install vllm",
}


class Running(Struct, frozen=True):
    """A server that is ready. `owner` is what forge started, None for somebody else's."""

    url: str
    found: Occupant
    owner: Process | LlamaCpp | None


class Starter:
    """How one manager's servers are started. `start` leaves nothing behind when it fails, or is cancelled."""

    def __init__(
        self,
        source: Source,
        *,
        api_key: str,
        environment: Mapping[str, str],
        load_timeout: float,
        grace: float,
        progress: Tell,
        download: Watch | None,
    ) -> None:
        self._source = source
        self._api_key = api_key
        self._environment = environment
        self._load_timeout = load_timeout
        self._grace = grace
        self._progress = progress
        self._download = download

    async def start(self, launch: Launch) -> Running:
        """A server that is ready. BackendError says why there is none."""
        port = launch.port
        model = await self._model()
        if port and not is_free(port):
            return await self._attached(launch, port, model)
        if launch.program == "local":
            return await self._inside(launch, Path(model), port)
        return await self._started(launch, _executable(launch, model), model, port or free_port())

    async def _model(self) -> Path | str:
        found = self._source
        if isinstance(found, models.KnownModel):
            return await fetched(found, self._download)
        return found

    async def _attached(self, launch: Launch, port: int, model: Path | str) -> Running:
        """Somebody else's server, if it serves this very model as it was asked for."""
        url = f"http://{HOST}:{port}"
        async with client(url) as http:
            found = await occupant(http, url)
        if found is None:
            raise BackendError(f"port {port} is in use, by something that takes no connections; choose another, or 0")
        if not serves(found, model) or (difference := _difference(launch, found)):
            asked = difference if serves(found, model) else f"it does not serve {model}"
            raise BackendError(f"port {port} is in use by {found}; {asked}. Choose another port, or 0 for a free one")
        logging.getLogger("forge").info("%s serves %s already; it is used, and left running", url, model)
        return Running(url, found, None)

    async def _inside(self, launch: Launch, path: Path, port: int) -> Running:
        settings = Settings.of(launch, path, port)
        server = await asyncio.to_thread(LlamaCpp, settings, self._api_key)
        async with AsyncExitStack() as undo:
            undo.push_async_callback(asyncio.to_thread, server.stop)
            found = await self._asked(server.url)
            undo.pop_all()
        return Running(server.url, found, server)

    async def _started(self, launch: Launch, executable: str, model: Path | str, port: int) -> Running:
        url = f"http://{HOST}:{port}"
        try:
            process = Process(
                command(launch, executable, model, port), launch.program, self._environ(launch), grace=self._grace
            )
        except OSError as error:
            raise BackendError(f"{launch.program} cannot be started: {error}") from None
        async with AsyncExitStack() as undo:
            undo.push_async_callback(process.stop)
            await until_ready(
                process,
                launch.program,
                url,
                load_timeout=self._load_timeout,
                tell=self._progress,
                secrets=self._secrets(),
            )
            found = await self._asked(url)
            if launch.program == "llama-server" and not serves(found, model):
                raise BackendError(f"{url} is answered by {found}, not by the server that was started; try again")
            undo.pop_all()
        return Running(url, found, process)

    def died(self, process: Process, program: str) -> str:
        """What became of a server that was ready; empty while it runs."""
        code = process.code
        said = process.tail(self._secrets())
        return "" if code is None else explain_exit(program, code, said, process.log, "while it was in use")

    def _secrets(self) -> tuple[str, ...]:
        return (self._api_key, *_secrets(self._environment), *_secrets(os.environ))

    async def _asked(self, url: str) -> Occupant:
        headers = {"authorization": f"Bearer {self._api_key}"} if self._api_key else {}
        async with client(url, headers=headers) as http:
            found = await occupant(http, url)
        if found is None or not found.models:
            raise BackendError(f"{url} was ready, and then did not say which models it has: {found or 'no answer'}")
        return found

    def _environ(self, launch: Launch) -> dict[str, str]:
        # Threads that wait busily leave nothing for anyone else on a small machine; a user's own setting goes before.
        own = {} if "OMP_WAIT_POLICY" in os.environ else {"OMP_WAIT_POLICY": "passive"}
        key = {_KEY_IN[launch.program]: self._api_key} if self._api_key else {}
        fetched = needed(fetches=True) if isinstance(self._source, str) else {}
        return {**fetched, **own, **self._environment, **key}


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
        raise BackendError(f"{where}. {_INSTALL[launch.program]}, or say where it is (in Python, executable=…)")
    return found


def _secrets(environment: Mapping[str, str]) -> tuple[str, ...]:
    """What a server may know, and print, that nobody else should."""
    return tuple(value for name, value in environment.items() if is_secret(name))
