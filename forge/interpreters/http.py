"""Send requests to a server over HTTP, with retries; every fault of the transport becomes a value."""

import asyncio
import random
import time
from collections.abc import Callable
from functools import partial

import httpx
from msgspec.structs import replace

from forge.interpreters.http_body import IDENTITY, packing, read_body
from forge.interpreters.http_faults import RAISED, fault_of, place, refused, with_type
from forge.interpreters.http_streams import read_stream
from forge.masking import NOTHING, Hidden
from forge.runtime.watcher import OnChunk, Watcher
from stages.effect import Fault, Replied, Reply, Send, Undelivered
from stages.retry import Backoff, RetryPolicy, Tries
from stages.wire.deltas import reply_pieces
from stages.wire.wires import OPENAI, Wire

_BODY_LIMIT = 16 * 1024 * 1024
"""Maximum bytes to read of a reply."""

TOTAL = 3600.0
"""Maximum seconds for one request and its reply, however slowly the bytes arrive."""


class Http:
    """The interpreter of `Send`: posts to the wire's path below `base_url`, on a client that the caller closes.

    The client brings what httpx knows of: TLS, proxies, limits, headers, and `timeout.read`, the seconds without a
    byte after which a request is given up. `total` is the seconds that it may take in all, None without end.
    `hidden` is taken out of what a refusal says before any of it is cut. `translate` is what the backend knows of its
    faults: it hides what must not be shown, and names what it recognises; `clean` hides it in replies.
    `transport` is what that client sends through, where nothing of the rest of it is wanted: redirects, cookies and
    logins take a fifth of what a request to a server on this machine costs.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        base_url: str,
        retry: RetryPolicy | None = None,
        wire: Wire = OPENAI,
        *,
        total: float | None = TOTAL,
        hidden: Hidden = NOTHING,
        translate: Callable[[Fault], Fault] = lambda fault: fault,
        clean: Callable[[Reply], Reply] = lambda reply: reply,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._send = partial(client.send, stream=True) if transport is None else transport.handle_async_request
        self._wire = wire
        # What does not change from request to request is put together once: httpx would merge it each time anew.
        headers = {"content-type": "application/json", **IDENTITY}
        blank = client.build_request("GET", f"{base_url}{wire.path}", headers=headers)
        self._to, self._headers, self._extensions = blank.url, blank.headers, blank.extensions
        self._where = place(blank.url)
        self._retry = retry or Backoff()
        self._silence, self._total = client.timeout.read, total
        self._hidden = hidden
        self._translate = translate
        self._clean = clean

    async def __call__(self, effect: Send, on_chunk: OnChunk | None = None) -> Replied | Undelivered:
        """The reply, or the fault that the retry policy gave up at. With `on_chunk`, the reply is streamed to it."""
        began = time.monotonic()
        watcher = None if on_chunk is None else Watcher(on_chunk)
        body = effect.request.body if watcher is None else self._wire.streamed(effect.request)
        faults: tuple[Fault, ...] = ()
        waited = 0.0
        while True:
            answer = await self._attempt(body, watcher)
            if isinstance(answer, Reply):
                return Replied(reply=self._clean(answer), seconds=time.monotonic() - began)
            fault = self._translate(answer)
            faults = (*faults, fault)
            wait = self._retry(Tries(faults=faults, waited=waited, chance=random.random()))  # noqa: S311 - no secret
            if wait is None:
                return Undelivered(fault=fault, attempts=len(faults), seconds=time.monotonic() - began)
            if watcher is not None:
                await watcher.forget(fault, len(faults), wait)
            await asyncio.sleep(wait)
            waited += wait

    async def _attempt(self, body: bytes, watcher: Watcher | None) -> Reply | Fault:
        request = httpx.Request(
            "POST", self._to, headers=self._headers, content=body, extensions=dict(self._extensions)
        )
        try:
            async with asyncio.timeout(self._total) as limit:
                response = await self._send(request)
                try:
                    return await self._answer(response, watcher)
                finally:
                    await response.aclose()
        except RAISED as error:
            if isinstance(error, TimeoutError) and limit.expired():
                return Fault(kind="timeout", detail=f"{self._where} took longer than {self._total} seconds in all")
            return fault_of(error, self._where, self._silence)

    async def _answer(self, response: httpx.Response, watcher: Watcher | None) -> Reply | Fault:
        packed = packing(response)
        if watcher is not None and response.is_success and not packed and not _is_whole(response):
            answer = await read_stream(response.aiter_raw(), self._wire.stream, watcher)
            return answer if isinstance(answer, Reply) else with_type(answer, response, self._hidden)
        body = await read_body(response, _BODY_LIMIT)
        if not (body.whole or packed):
            return Fault(kind="too_large", detail=f"{self._where} sent more than {_BODY_LIMIT} bytes")
        if not response.is_success:
            return refused(response, body.content, self._where, self._hidden)
        if packed:
            return Fault(kind="malformed", detail=f"{self._where} answered in {packed}, and was asked not to pack")
        answer = self._wire.decode(body.content)
        if isinstance(answer, Fault):
            return with_type(self._told(answer, body.content), response, self._hidden)
        if watcher is not None:
            for piece in reply_pieces(answer):
                await watcher.see(piece)
        return answer

    def _told(self, fault: Fault, content: bytes) -> Fault:
        """The fault of that answer, as it is of one without what is hidden: it holds parts that were cut off."""
        text = content.decode(errors="replace") if self._hidden else ""
        again = self._wire.decode(self._hidden.without(text).encode()) if text in self._hidden else fault
        return again if isinstance(again, Fault) else replace(fault, body="")


def _is_whole(response: httpx.Response) -> bool:
    """Whether a server that was asked for a stream gives the reply in one go, as some do."""
    said: str = response.headers.get("content-type", "")
    return said.startswith("application/json")
