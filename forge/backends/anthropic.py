"""Anthropic's API through the official SDK, which has its own ways to authenticate."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx

from forge.backends.endpoints import AnthropicModel
from forge.backends.http_client import forward_proxy, sender, trust
from forge.backends.profile import check_sampling, named_profile
from forge.backends.questions import Tokenizer, ask
from forge.connection import TIMEOUT, Connection, Endpoint, Setup
from forge.errors import BackendError, ForgeError, checked_options
from forge.interpreters.anthropic_sdk import ThroughSdk, sdk_client
from forge.masking import MINIMUM_IN_REPLIES, Hidden
from stages.options import Seconds, Tokens
from stages.retry import RetryPolicy
from stages.wire.sampling import Sampling
from stages.wire.wires import wire

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
        self._profile = named_profile("anthropic")
        self._model, self._client, self._api_key, self._base_url = model, client, api_key.strip(), base_url
        self._sampling = sampling or Sampling()
        check_sampling(self._sampling, self._profile)
        self._context_tokens, self._timeout, self._retry = context_tokens, timeout, retry

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Connection]:
        """Authenticate and ask for the context size. BackendError if nothing answers, or it rejects the key."""
        sdk = self._client
        if sdk is None:
            sdk = await asyncio.to_thread(sdk_client, self._api_key, self._base_url)
        base = str(sdk.base_url).rstrip("/")
        try:
            async with httpx.AsyncClient(transport=ThroughSdk(sdk), timeout=self._timeout) as http:
                context = self._context_tokens
                if not context:
                    answer = await ask(http, f"{base}/v1/models/{self._model}")
                    if answer.status in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
                        raise BackendError(f"{base} rejects this key (status {answer.status}); check it")
                    # The profile's value if the API, or a compatible one, reports none.
                    found = answer.read(AnthropicModel)
                    context = (found.max_input_tokens if found else None) or self._profile.context_tokens or 0
                spoken = wire(self._profile.dialect(context))
                keys = [key for key in (sdk.api_key, sdk.auth_token) if key]

                send = sender(
                    http,
                    f"{base}/v1",
                    self._retry,
                    spoken,
                    hidden=Hidden(keys),
                    keys=Hidden(keys, minimum=MINIMUM_IN_REPLIES),
                    model=self._model,
                )
                known = Setup(
                    model=self._model, context_tokens=context, sampling=self._sampling, dialect=spoken.dialect
                )
                yield Connection(
                    known,
                    send,
                    stream=send,
                    count=Tokenizer(http, base, takes="anthropic").count,
                    endpoint=self._endpoint(sdk, base),
                )
        finally:
            if self._client is None:
                await sdk.close()

    def _endpoint(self, sdk: "AsyncAnthropic", base: str) -> Endpoint | None:
        """The endpoint for passed-through requests; None if only the SDK can authenticate."""
        if self._client is not None or not (sdk.api_key or sdk.auth_token):
            return None
        key = {"x-api-key": sdk.api_key} if sdk.api_key else {"authorization": f"Bearer {sdk.auth_token}"}
        proxy = forward_proxy(base, None)
        return Endpoint(
            base=f"{base}/v1",
            root=base,
            headers={**self._profile.headers, **key},
            key_header=self._profile.key_header,
            has_key=True,
            model=self._model,
            hidden=Hidden([value for value in (sdk.api_key, sdk.auth_token) if value]),
            timeout=self._timeout,
            profile=self._profile.name,
            proxy=proxy,
            tls=trust(base, proxy, verify=True),
        )
