"""llama.cpp inside this process, as a backend like any other: it also serves http://127.0.0.1:PORT."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from forge.backends.modes import check_mode
from forge.backends.profile import DEFAULT_CONTEXT
from forge.backends.server import Server
from forge.backends.servers import models
from forge.backends.servers.download import Watch, fetched
from forge.backends.servers.llama_cpp import LlamaCpp, Settings, random_key
from forge.connection import Connection
from forge.runtime.options import checked_options
from stages.options import Seconds, Tokens
from stages.serialize import Mode
from stages.wire.deltas import Sampling


class Local:
    """A model in this process; a known one's name, or the path of a GGUF file.

    Its port is for this machine alone, and for who knows `api_key`: a random one, unless given. `progress` watches
    the download. A wrong model, and more context than it was trained for, are refused here; ModelUnavailable and
    BackendError come from `connect`.
    """

    @checked_options
    def __init__(
        self,
        model: str = "",
        *,
        mode: Mode | Literal["auto"] = "auto",
        context_tokens: Tokens | None = None,
        sampling: Sampling | None = None,
        model_sampling: bool = False,
        port: int = 0,
        chat_template: str = "",
        api_key: str = "",
        timeout: Seconds = 300.0,
        progress: Watch | None = None,
    ) -> None:
        check_mode(mode, None)
        self._model = models.resolve(model or models.DEFAULT)
        models.refuse_beyond_training(self._model, context_tokens)
        self._mode: Mode | Literal["auto"] = mode
        self._sampling, self._model_sampling = sampling, model_sampling
        self._progress = progress
        self._context_tokens = context_tokens or DEFAULT_CONTEXT
        self._port, self._timeout = port, timeout
        self._chat_template = chat_template
        self._api_key = api_key or random_key()

    def __repr__(self) -> str:
        """Its model."""
        model = self._model
        return f"Local({str(model) if isinstance(model, Path) else model.name!r})"

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """Fetch the model if need be, load it, serve it for as long as the connection lasts."""
        model = self._model
        path = model if isinstance(model, Path) else await fetched(model, self._progress)
        name = model.stem if isinstance(model, Path) else model.name
        settings = Settings(
            path=path,
            alias=name,
            context_tokens=self._context_tokens,
            port=self._port,
            chat_template=self._chat_template,
        )
        server = await asyncio.to_thread(LlamaCpp, settings, self._api_key)
        try:
            backend = Server(
                server.url,
                profile="llama-server",
                model=name,
                mode=self._mode,
                api_key=self._api_key,
                sampling=self._sampling,
                model_sampling=self._model_sampling,
                timeout=self._timeout,
            )
            async with backend.connect() as connection:
                yield connection
        finally:
            await asyncio.to_thread(server.stop)
