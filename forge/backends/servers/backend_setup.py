"""`setup_backend`: a server by name, ready for runs, and the context that they may count on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal, Unpack

from forge.backends.address import base_url, is_here
from forge.backends.budget import BudgetMode, ResolvedBudget, ollama_budget, resolve_mode
from forge.backends.credentials import headers_for
from forge.backends.http_client import client
from forge.backends.ollama import ask_model
from forge.backends.profile import named_profile
from forge.backends.server import Options, Server
from forge.backends.servers.hardware import detect_hardware
from forge.backends.servers.launch import CacheType, Launch, Program
from forge.backends.servers.server_manager import ServerManager
from forge.connection import Connection
from forge.errors import DefinitionError


class AttachedOllama:
    """A model of an Ollama that runs already: forge never starts it, and never stops it.

    `url` is its address, by default that of this machine. `budget` decides on the context: manual where
    `context_tokens` are given, else as Ollama has the model loaded, its Modelfile says, or the GPUs bear.
    """

    def __init__(
        self, model: str, *, url: str = "", budget: BudgetMode | None = None, **options: Unpack[Options]
    ) -> None:
        self._tokens = options.pop("context_tokens", None)
        self._mode = resolve_mode(budget, self._tokens)
        self._model, self._options = model, options
        self._url = base_url(url, named_profile("ollama"))

    async def start(self) -> ResolvedBudget:
        """Ask Ollama for the model. ForgeError if it has not got it, BackendError if it is not there."""
        options, profile = self._options, named_profile("ollama")
        headers = headers_for(self._url, profile, options.get("api_key", ""), options.get("headers") or {})
        proxy, verify = options.get("proxy"), options.get("verify", True)
        # The memory of this machine says nothing about another's.
        here = is_here(self._url)
        async with client(self._url, headers=headers, proxy=proxy, verify=verify) as http:
            says = await ask_model(http, self._url, self._model)
        hardware = await asyncio.to_thread(detect_hardware) if here else None
        return ollama_budget(self._mode, self._tokens, says, hardware)

    async def stop(self) -> None:
        """Nothing: it is not forge's."""

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """A connection that asks for this context with every request."""
        budget = await self.start()
        options: Options = {**self._options, "context_tokens": budget.tokens}
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
    **options: Unpack[Options],
) -> tuple[ServerManager | AttachedOllama, ResolvedBudget]:
    """A server that is ready, and its budget. Whoever sets it up stops it: `await server.stop()`.

    For Ollama, which is only attached to, everything about starting is refused. `ServerManager(Launch(…))` has more
    options, and as `async with` it stops by itself. Raises what `Launch` and `ServerManager.start` raise.
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
        wanted: Options = {**options, "context_tokens": manual_tokens}
        attached = AttachedOllama(model, budget=budget_mode, **wanted)
        return attached, await attached.start()
    server = ServerManager(launching, budget=budget_mode, **options)
    return server, await server.start()
