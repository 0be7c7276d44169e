"""Send requests to a server over HTTP; every fault of the transport becomes a value (D24)."""

import asyncio
import random
import time

import httpx

from forge.interpreters.transport import RAISED, fault_of, place, refused, with_type
from stages.effect import Fault, Replied, Reply, Send, Undelivered
from stages.retry import Backoff, RetryPolicy, Tries
from stages.wire.wires import OPENAI, Wire

BODY_LIMIT = 16 * 1024 * 1024
"""Bytes of an answer that are read."""

TOTAL = 3600.0
"""Seconds that one request may take, with its answer; a server that drips is not read for ever."""


class Http:
    """The interpreter of `Send`: posts to the wire's path below `base_url`, on a client that the caller closes.

    The client brings what httpx knows of: TLS, proxies, limits, headers, and `timeout.read`, the seconds without a
    byte after which a request is given up. `total` is the seconds that it may take in all, None without end.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        base_url: str,
        retry: RetryPolicy | None = None,
        wire: Wire = OPENAI,
        *,
        total: float | None = TOTAL,
    ) -> None:
        self._client = client
        self._wire = wire
        # What does not change from request to request is put together once: httpx would merge it each time anew.
        # No compression: an answer is small, a stream must not be held back, and a bomb is never unpacked.
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        blank = client.build_request("GET", f"{base_url}{wire.path}", headers=headers)
        self._to, self._headers, self._extensions = blank.url, blank.headers, blank.extensions
        self._where = place(blank.url)
        self._retry = retry or Backoff()
        self._total = total

    async def __call__(self, effect: Send) -> Replied | Undelivered:
        """The reply, or the fault that the retry policy gave up at."""
        began = time.monotonic()
        faults: tuple[Fault, ...] = ()
        waited = 0.0
        while True:
            answer = await self._attempt(effect.request.body)
            if isinstance(answer, Reply):
                return Replied(reply=answer, seconds=time.monotonic() - began)
            faults = (*faults, answer)
            wait = self._retry(Tries(faults=faults, waited=waited, chance=random.random()))  # noqa: S311 - no secret
            if wait is None:
                return Undelivered(fault=answer, attempts=len(faults), seconds=time.monotonic() - began)
            await asyncio.sleep(wait)
            waited += wait

    async def _attempt(self, body: bytes) -> Reply | Fault:
        request = httpx.Request(
            "POST", self._to, headers=self._headers, content=body, extensions=dict(self._extensions)
        )
        try:
            async with asyncio.timeout(self._total) as limit:
                response = await self._client.send(request, stream=True)
                try:
                    return await self._answer(response)
                finally:
                    await response.aclose()
        except RAISED as error:
            if isinstance(error, TimeoutError) and limit.expired():
                return Fault(kind="timeout", detail=f"{self._where} took longer than {self._total} seconds in all")
            return fault_of(error, self._where)

    async def _answer(self, response: httpx.Response) -> Reply | Fault:
        packed = response.headers.get("content-encoding", "identity")
        content = b"" if packed != "identity" else await _read(response)
        if content is None:
            return Fault(kind="too_large", detail=f"{self._where} sent more than {BODY_LIMIT} bytes")
        if not response.is_success:
            return refused(response, content, self._where)
        if packed != "identity":
            return Fault(kind="malformed", detail=f"{self._where} answered in {packed[:40]}, and was asked not to pack")
        answer = self._wire.decode(content)
        return answer if isinstance(answer, Reply) else with_type(answer, response)


async def _read(response: httpx.Response) -> bytes | None:
    """The whole body, None if it is longer than `BODY_LIMIT`."""
    chunks, length = [], 0
    async for chunk in response.aiter_raw():
        length += len(chunk)
        if length > BODY_LIMIT:
            return None
        chunks.append(chunk)
    return b"".join(chunks)
