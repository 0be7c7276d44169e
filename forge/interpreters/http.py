"""Interpreters that send over HTTP: bodies and streams read within limits, faults told apart."""

import asyncio
import random
import re
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Self

import httpx
from msgspec import Struct
from msgspec.structs import replace

from forge import observation
from forge.callbacks import OnChunk, Watcher
from forge.masking import NOTHING, Hidden
from stages.effect import Fault, Replied, Reply, Send, Undelivered
from stages.retry import Backoff, RetryPolicy, Tries
from stages.wire.deltas import BODY_KEPT, Decoder, Ended, Piece, Retry, cut_body, gather_reply, reply_pieces
from stages.wire.wires import OPENAI, Wire

# Faults: what httpx raises, and answers with an error status, as values; nothing is retried here.

_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{0,6})?")

_PAGES = ("<!doctype", "<html>")

RAISED = (httpx.HTTPError, OSError)
"""What a request may raise; some errors of the operating system come through httpx as they are."""


def _shown_url(url: httpx.URL) -> str:
    """The address as it may be shown: without user, password and query, which may be secret."""
    return str(url.copy_with(username=None, password=None, query=None, fragment=None))


def fault_of(error: BaseException, where: str, silence: float | None) -> Fault:
    """The fault that an exception of a request to `where` stands for; `silence`: the seconds that were allowed."""
    causes = tuple(_causes(error))
    if isinstance(error, httpx.ConnectTimeout):
        return Fault(kind="unreachable", detail=f"{where} accepted no connection in time. Is the server running?")
    if isinstance(error, httpx.ReadTimeout) and silence is not None:
        said = f"sent nothing for {silence:g} seconds; if it is only slow, allow more (timeout=…, --timeout)"
        return Fault(kind="timeout", detail=f"{where} {said}")
    if isinstance(error, httpx.TimeoutException):
        return Fault(kind="timeout", detail=f"{where} did not answer in time ({type(error).__name__})")
    if trouble := next((cause for cause in causes if isinstance(cause, ssl.SSLError)), None):
        return Fault(kind="tls", detail=f"no TLS connection to {where}: {tls_reason(trouble)}")
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return Fault(kind="unreachable", detail=f"cannot connect to {where}: the name is not known here ({error})")
    if isinstance(error, httpx.ProxyError):
        return Fault(kind="unreachable", detail=f"the proxy on the way to {where} refused: {error}")
    if isinstance(error, httpx.ConnectError | httpx.UnsupportedProtocol):
        return Fault(kind="unreachable", detail=f"cannot connect to {where}: {error}. Is the server running?")
    return Fault(kind="interrupted", detail=f"the connection to {where} broke: {type(error).__name__}: {error}"[:500])


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def tls_reason(error: ssl.SSLError) -> str:
    """Why there is no TLS connection, and what can be done."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted here ({error.verify_message}); have the client trust its issuer"
    return f"{error.reason or error}; does the server speak https at all?"


def refused(response: httpx.Response, content: bytes, where: str, hidden: Hidden = NOTHING) -> Fault:
    """The fault of a status that is no success, with its body and what it says of when to come again.

    What is `hidden` is taken out before anything is cut.
    """
    body = cut_body(hidden.cut_after(content, BODY_KEPT) if hidden else content)
    target = hidden.without(response.headers.get("location", ""))
    hint = f" (it points to {target[:300]}; give that address)" if target and response.has_redirect_location else ""
    if response.status_code == httpx.codes.UNAUTHORIZED:
        hint = " (it wants a key, or another one: api_key=…, on the command line --api-key-env)"
    words = body[:300] or "nothing more"
    # A web page is written for a browser.
    if "html" in response.headers.get("content-type", "") or body.lstrip()[:9].lower() in _PAGES:
        words = "a web page. Is this the address of a model's server? It often ends in /v1"
    detail = f"{where} answered {response.status_code}{hint}: {words}"
    return status_fault(response.status_code, response.headers, body, detail)


def status_fault(status: int, headers: Mapping[str, str], body: str, detail: str) -> Fault:
    """The fault of a status that is no success, with what its headers say of coming again."""
    return Fault(
        kind="status",
        detail=detail,
        status=status,
        body=body,
        retry_after=retry_after(headers, time.time()),
        # OpenAI's servers say it so, and its SDK goes by it.
        retriable={"true": True, "false": False}.get(headers.get("x-should-retry", "")),
    )


def _with_type(fault: Fault, response: httpx.Response, hidden: Hidden = NOTHING) -> Fault:
    """The fault of an answer that cannot be read, with what the answer says it is, where that is no JSON."""
    said = hidden.without(response.headers.get("content-type", ""))
    if fault.kind != "malformed" or "json" in said:
        return fault
    hint = f"; it says that it is {said[:80]!r}: is a proxy, or another server, at that address?" if said else ""
    return replace(fault, detail=fault.detail + hint)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a server asks to wait: `retry-after-ms`, else Retry-After, a number or a date (RFC 9110, 10.2.3).

    A date counts from the server's own Date, for its clock may be another; from `now` (seconds since 1970) where it
    gives none. None where nothing, or nothing readable, is asked.
    """
    milliseconds, text = _number(headers.get("retry-after-ms", "")), headers.get("retry-after", "")
    if milliseconds is not None:
        return milliseconds / 1000
    if (seconds := _number(text)) is not None:
        return seconds
    then = _date(text)
    if then is None:
        return None
    here = _date(headers.get("date", ""))
    return max(0.0, then - (now if here is None else here))


def _number(text: str) -> float | None:
    text = text.strip()
    return float(text) if _NUMBER.fullmatch(text) else None


def _date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text[:100]).timestamp()
    except (ValueError, OverflowError):
        return None


# The body of an HTTP answer, read to a bound and never unpacked: packed, a body may hold a thousand times as much.

IDENTITY = {"accept-encoding": "identity"}
"""The header that asks a server not to pack its answer: answers are small, and a stream must not be held back."""


class TooLargeError(Exception):
    """A body has more bytes than may be read."""


class _Bounded:
    """The chunks of a body as they come over the wire. TooLargeError once there are more than `limit` bytes."""

    def __init__(self, chunks: AsyncIterator[bytes], limit: int) -> None:
        self._chunks = chunks
        self._left = limit

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """The next chunk."""
        chunk = await anext(self._chunks)
        self._left -= len(chunk)
        if self._left < 0:
            raise TooLargeError
        return chunk


class Body(Struct, frozen=True, kw_only=True):
    """What was read of a body: nothing if it is `packed` (the coding's name), its beginning if it is not `whole`."""

    content: bytes = b""
    whole: bool = True
    packed: str = ""


async def read_body(response: httpx.Response, limit: int) -> Body:
    """The body of a response that nobody has read yet, to at most `limit` bytes."""
    if packed := _packing(response):
        return Body(whole=False, packed=packed)
    chunks: list[bytes] = []
    try:
        async for chunk in _Bounded(response.aiter_raw(), limit):
            chunks.append(chunk)  # noqa: PERF401 - what came before the bound is kept
    except TooLargeError:
        return Body(content=b"".join(chunks), whole=False)
    return Body(content=b"".join(chunks))


def _packing(response: httpx.Response) -> str:
    """How the body is packed although nobody asked for that; empty where it is not."""
    packed: str = response.headers.get("content-encoding", "").strip().lower()
    return "" if packed == "identity" else packed[:40]


# A streamed reply: read chunk by chunk, told to the watcher meanwhile, gathered into a Reply.

STREAM_LIMIT = 64 * 1024 * 1024
"""Maximum bytes of a stream: some 250,000 tokens, as each arrives in JSON of its own."""

PIECES_LIMIT = 250_000
"""Maximum pieces of a reply: as many tokens, as a server sends no smaller ones."""

_LINGER = 0.5
"""Seconds to wait for the end of the body after the end of the reply, so that the connection can be reused."""


async def _read_stream(chunks: AsyncIterator[bytes], decoder: Decoder, watcher: Watcher) -> Reply | Fault:
    """The reply that a body streams, told to the watcher while it comes; or the fault at which it ended."""
    pieces: list[Piece | Fault] = []
    bounded = _Bounded(chunks, STREAM_LIMIT)
    try:
        async for chunk in bounded:
            decoder, added = decoder.advance(chunk)
            if len(pieces) + len(added) > PIECES_LIMIT:
                return Fault(kind="too_large", detail=f"the stream has more than {PIECES_LIMIT} pieces of a reply")
            if await _see(added, pieces, watcher):
                # Read to the end of the body, for a moment: what goes wrong now takes nothing from the reply.
                with suppress(TimeoutError, httpx.HTTPError, OSError, TooLargeError):
                    async with asyncio.timeout(_LINGER):
                        async for _ in bounded:
                            pass
                return gather_reply(pieces)
    except TooLargeError:
        return Fault(kind="too_large", detail=f"the stream has more than {STREAM_LIMIT} bytes")
    await _see(decoder.finish(), pieces, watcher)
    return gather_reply(pieces)


async def _see(added: tuple[Piece | Fault, ...], pieces: list[Piece | Fault], watcher: Watcher) -> bool:
    """Note and tell what was read; whether that was the end, one way or the other."""
    for piece in added:
        pieces.append(piece)
        if isinstance(piece, Fault):
            return True
        await watcher.see(piece)
        if isinstance(piece, Ended):
            return True
    return False


# Send requests to a server over HTTP, with retries; every fault of the transport becomes a value.

REPLY_LIMIT = 16 * 1024 * 1024
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
        self._where = _shown_url(blank.url)
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
                took = time.monotonic() - began
                return Replied(reply=self._clean(answer), seconds=took, attempts=len(faults) + 1)
            fault = self._translate(answer)
            faults = (*faults, fault)
            wait = self._retry(Tries(faults=faults, waited=waited, chance=random.random()))  # noqa: S311 - no secret
            if wait is None:
                return Undelivered(fault=fault, attempts=len(faults), seconds=time.monotonic() - began)
            observation.tell(Retry(fault=fault, attempt=len(faults), seconds=wait))
            if watcher is not None:
                await watcher.forget(fault, len(faults), wait)
            await asyncio.sleep(wait)
            waited += wait

    async def _attempt(self, body: bytes, watcher: Watcher | None) -> Reply | Fault:
        request = httpx.Request(
            "POST", self._to, headers=self._headers, content=body, extensions=dict(self._extensions)
        )
        request.headers.update(observation.outgoing())
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
        packed = _packing(response)
        # A server that was asked for a stream may give the reply in one go, as some do.
        whole = response.headers.get("content-type", "").startswith("application/json")
        if watcher is not None and response.is_success and not packed and not whole:
            answer = await _read_stream(response.aiter_raw(), self._wire.stream, watcher)
            return answer if isinstance(answer, Reply) else _with_type(answer, response, self._hidden)
        body = await read_body(response, REPLY_LIMIT)
        if not (body.whole or packed):
            return Fault(kind="too_large", detail=f"{self._where} sent more than {REPLY_LIMIT} bytes")
        if not response.is_success:
            return refused(response, body.content, self._where, self._hidden)
        if packed:
            return Fault(kind="malformed", detail=f"{self._where} answered in {packed}, and was asked not to pack")
        answer = self._wire.decode(body.content)
        if isinstance(answer, Fault):
            # A fault holds parts of the answer that were cut off, so it is made anew from the masked answer.
            text = body.content.decode(errors="replace") if self._hidden else ""
            again = self._wire.decode(self._hidden.without(text).encode()) if text in self._hidden else answer
            return _with_type((again if isinstance(again, Fault) else replace(answer, body="")), response, self._hidden)
        if watcher is not None:
            for piece in reply_pieces(answer):
                await watcher.see(piece)
        return answer
