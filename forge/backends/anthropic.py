"""Anthropic's API through the official SDK, which has its own ways to authenticate."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from forge.backends.profile import check_sampling, named_profile
from forge.backends.server import Server, ServerOptions
from forge.connection import TIMEOUT, Connection
from forge.errors import ForgeError, checked_options
from forge.interpreters.anthropic_sdk import ThroughSdk, sdk_client
from stages.options import Seconds, Tokens
from stages.retry import RetryPolicy
from stages.wire.sampling import Sampling

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic


class Anthropic:
    """A model of Anthropic's. Without an `api_key`, the SDK looks in its usual places (`ANTHROPIC_API_KEY` …).

    `client` is your own AsyncAnthropic, or one for Bedrock or Vertex, instead of a key. Prompt caching is on. Extended
    thinking is an option: `Sampling(max_tokens=4096, extra={"thinking": {"type": "enabled", "budget_tokens": 2048}})`.
    `context_tokens` defaults to what the API reports, otherwise 200,000.
    """

    @checked_options
    def __init__(
        self,
        model: str,
        *,
        api_key: str = "",
        client: "AsyncAnthropic | None" = None,
        base_url: str = "",
        sampling: Sampling | None = None,
        context_tokens: Tokens | None = None,
        timeout: Seconds = TIMEOUT,
        retry: RetryPolicy | None = None,
    ) -> None:
        if not model:
            raise ForgeError("anthropic needs a model: on the command line, write anthropic:MODEL")
        if client is not None and (api_key or base_url):
            raise ForgeError("give either a client, or a key and an address")
        check_sampling(sampling or Sampling(), named_profile("anthropic"))
        self._model, self._client, self._api_key, self._base_url = model, client, api_key.strip(), base_url
        self._options: ServerOptions = {
            "sampling": sampling,
            "context_tokens": context_tokens,
            "timeout": timeout,
            "retry": retry,
        }

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """Authenticate and ask for the context size. BackendError if nothing answers, or it rejects the key."""
        sdk = self._client
        if sdk is None:
            sdk = await asyncio.to_thread(sdk_client, self._api_key, self._base_url)
        key, token = sdk.api_key or "", sdk.auth_token
        options: ServerOptions = {
            **self._options,
            "api_key": key,
            "headers": {"authorization": f"Bearer {token}"} if token and not key else None,
            "transport": ThroughSdk(sdk),
        }
        server = Server(f"{str(sdk.base_url).rstrip('/')}/v1", profile="anthropic", model=self._model, **options)
        try:
            async with server.connect() as connection:
                # What passes requests on by itself, as the proxy does, needs a credential of its own.
                alone = self._client is not None or not (key or token)
                yield replace(connection, endpoint=None) if alone else connection
        finally:
            if self._client is None:
                await sdk.close()
