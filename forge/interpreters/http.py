"""Send requests to a server over HTTP; every fault of the transport becomes a value (D24)."""

import asyncio
import random
import time
from collections.abc import Mapping

import httpx

from stages.effect import Fault, Replied, Reply, Send, Undelivered
from stages.retry import Backoff, RetryPolicy
from stages.wire.wires import OPENAI, Wire

BODY_LIMIT = 16 * 1024 * 1024
"""Bytes of an answer that are read."""

FAULT_BODY = 2000
"""Characters of an error body that are kept."""


class Http:
    """The interpreter of `Send`: posts to the wire's path below `base_url`, on a client that the caller closes."""

    def __init__(
        self, client: httpx.AsyncClient, base_url: str, retry: RetryPolicy | None = None, wire: Wire = OPENAI
    ) -> None:
        self._client = client
        self._wire = wire
        self._url = f"{base_url}{wire.path}"
        # What does not change from request to request is put together once: httpx would merge it each time anew.
        blank = client.build_request("GET", self._url, headers={"content-type": "application/json"})
        self._to, self._headers, self._extensions = blank.url, blank.headers, blank.extensions
        self._retry = retry or Backoff()

    async def __call__(self, effect: Send) -> Replied | Undelivered:
        """The reply, or the fault that the retry policy gave up at."""
        began = time.monotonic()
        attempt = 1
        while True:
            answer = await self._post(effect.request.body)
            if isinstance(answer, Reply):
                return Replied(reply=answer, seconds=time.monotonic() - began)
            wait = self._retry(attempt, answer)
            if wait is None:
                return Undelivered(fault=answer, attempts=attempt, seconds=time.monotonic() - began)
            # Jitter keeps clients that failed together from coming back together; a server's own word is kept.
            jitter = 1.0 if answer.retry_after is not None else random.uniform(0.5, 1.0)  # noqa: S311
            await asyncio.sleep(wait * jitter)
            attempt += 1

    async def _post(self, body: bytes) -> Reply | Fault:
        try:
            request = httpx.Request(
                "POST", self._to, headers=self._headers, content=body, extensions=dict(self._extensions)
            )
            response = await self._client.send(request, stream=True)
            try:
                content = await _read(response)
            finally:
                await response.aclose()
        except httpx.TimeoutException as error:
            return Fault(kind="timeout", detail=f"{self._url} did not answer in time ({type(error).__name__})")
        except (httpx.ConnectError, httpx.UnsupportedProtocol, httpx.ProxyError) as error:
            return Fault(kind="unreachable", detail=f"cannot connect to {self._url}: {error}. Is the server running?")
        except httpx.HTTPError as error:
            return Fault(kind="interrupted", detail=f"the connection to {self._url} broke: {type(error).__name__}")
        if content is None:
            return Fault(kind="too_large", detail=f"{self._url} sent more than {BODY_LIMIT} bytes")
        return self._wire.decode(content) if response.is_success else _refused(response, content)


async def _read(response: httpx.Response) -> bytes | None:
    """The whole body, None if it is longer than `BODY_LIMIT`."""
    chunks, length = [], 0
    async for chunk in response.aiter_bytes():
        length += len(chunk)
        if length > BODY_LIMIT:
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def _refused(response: httpx.Response, content: bytes) -> Fault:
    body = content[:FAULT_BODY].decode(errors="replace")
    return Fault(
        kind="status",
        detail=f"{response.url} answered {response.status_code}: {body[:300]}",
        status=response.status_code,
        body=body,
        retry_after=_seconds(response.headers),
    )


def _seconds(headers: Mapping[str, str]) -> float | None:
    """Retry-After in seconds; its date form is left to the policy's own waiting."""
    text = headers.get("retry-after", "").strip()
    return float(text) if text.isdecimal() and len(text) < 10 else None
