"""The interpreter of `Send` over HTTP: reads bodies and streams within limits and classifies faults."""

import asyncio
import os
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
from forge.errors import quantity
from forge.masking import NOTHING, Hidden, masked_fault, masked_reply
from stages.effect import Fault, Replied, Reply, Send, Undelivered
from stages.retry import Backoff, RetryPolicy, Tries
from stages.wire.deltas import Decoder, Ended, Piece, Retry, gather_reply, reply_pieces
from stages.wire.faults import BODY_KEPT, cut_body
from stages.wire.wires import OPENAI, Wire

# Faults: httpx's exceptions and error statuses as values, without retries.

_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{0,6})?")

_PAGES = ("<!doctype", "<html")

RAISED = (httpx.HTTPError, OSError)
"""The exceptions that a request may raise; httpx passes some OSErrors through."""


def fault_of(error: BaseException, where: str, silence: float | None) -> Fault:
    """The fault for an exception of a request to `where`; `silence` is the read time-out in seconds."""
    causes = tuple(_causes(error))
    if isinstance(error, httpx.ConnectTimeout):
        return Fault(kind="unreachable", detail=f"connecting to {where} timed out. Is the server running?")
    if isinstance(error, httpx.ReadTimeout) and silence is not None:
        return silent(where, silence)
    if isinstance(error, httpx.TimeoutException | TimeoutError):
        return Fault(kind="timeout", detail=f"{where} did not answer in time ({type(error).__name__})")
    if trouble := next((cause for cause in causes if isinstance(cause, ssl.SSLError)), None):
        return Fault(kind="tls", detail=f"no TLS connection to {where}: {tls_reason(trouble)}")
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return Fault(
            kind="unreachable", detail=f"cannot connect to {where}: the host name cannot be resolved ({error})"
        )
    if isinstance(error, httpx.ProxyError):
        return Fault(kind="unreachable", detail=f"the forward proxy refused to connect to {where}: {error}")
    if isinstance(error, httpx.ConnectError | httpx.UnsupportedProtocol):
        numbers = (cause.errno for cause in causes if isinstance(cause, OSError) and cause.errno)
        reason = next(map(os.strerror, numbers), error)  # anyio says only "All connection attempts failed"
        return Fault(kind="unreachable", detail=f"cannot connect to {where}: {reason}. Is the server running?")
    return Fault(kind="interrupted", detail=f"the connection to {where} broke: {type(error).__name__}: {error}"[:500])


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        match cause:
            case BaseExceptionGroup(exceptions=(first, *_)):  # an error for each address of a host
                cause = first
            case _:
                cause = cause.__cause__ or cause.__context__


def tls_reason(error: ssl.SSLError) -> str:
    """Why the TLS connection failed, and what to do."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted here ({error.verify_message}); add its issuer to the trusted ones"
    return f"{error.reason or error}; does the server speak https at all?"


def refused(response: httpx.Response, content: bytes, where: str, hidden: Hidden = NOTHING) -> Fault:
    """The fault for an error status, with the body and the time to wait before a retry.

    Secrets (`hidden`) are removed before anything is cut.
    """
    body = cut_body(hidden.cut_after(content, BODY_KEPT) if hidden else content)
    target = hidden.without(response.headers.get("location", ""))
    hint = f" (it redirects to {target[:300]}; use that address)" if target and response.has_redirect_location else ""
    if response.status_code == httpx.codes.UNAUTHORIZED:
        hint = " (it requires a key, or another one: api_key=…, on the command line --api-key-env)"
    words = page_told(response.headers, body) or body[:300] or "nothing more"
    fault = status_fault(response.status_code, response.headers, body, "")
    if fault.retry_after:
        hint += f" (it asks to wait {quantity(fault.retry_after, 'second')})"
    return replace(fault, detail=f"{where} answered {response.status_code}{hint}: {words}")


def page_told(headers: Mapping[str, str], body: str) -> str:
    """What to say instead of a web page, which is of no use in an error message; empty for another body."""
    is_page = "html" in headers.get("content-type", "") or body.lstrip()[:9].lower().startswith(_PAGES)
    return "a web page. Is this the address of a model's server? It often ends in /v1" if is_page else ""


def silent(where: str, seconds: float) -> Fault:
    """The fault for a server that sent nothing for that long."""
    said = f"sent nothing for {quantity(seconds, 'second')}; if it is only slow, allow more (timeout=…, --timeout)"
    return Fault(kind="timeout", detail=f"{where} {said}")


def status_fault(status: int, headers: Mapping[str, str], body: str, detail: str) -> Fault:
    """The fault for an error status, with the retry hints in its headers."""
    return Fault(
        kind="status",
        detail=detail,
        status=status,
        body=body,
        retry_after=retry_after(headers, time.time()),
        # OpenAI's servers send it, and its SDK obeys it.
        retriable={"true": True, "false": False}.get(headers.get("x-should-retry", "")),
    )


def with_type(fault: Fault, headers: Mapping[str, str], hidden: Hidden = NOTHING) -> Fault:
    """The fault for an unreadable answer, with its content type if that is unusual."""
    said = hidden.without(headers.get("content-type", ""))
    if fault.kind != "malformed" or "json" in said or "event-stream" in said:
        return fault
    hint = f"; its content type is {said[:80]!r}: is there a proxy or another server at that address?" if said else ""
    return replace(fault, detail=fault.detail + hint)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait before a retry, from `retry-after-ms` or Retry-After (a number or a date; RFC 9110, 10.2.3).

    A date is relative to the server's own Date header, because its clock may differ; without that header, to `now`
    (seconds since 1970). None if there is no valid value.
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


# The body of an HTTP answer, read up to a limit and never decompressed: it could grow a thousandfold.

IDENTITY = {"accept-encoding": "identity"}
"""Asks the server not to compress: answers are small, and compression would delay streams."""


class _TooLargeError(Exception):
    """A body exceeds its limit."""


class _Bounded:
    """The raw chunks of a body. _TooLargeError after more than `limit` bytes."""

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
            raise _TooLargeError
        return chunk


class Body(Struct, frozen=True, kw_only=True):
    """The part of a body that was read: nothing if it is `packed` (the encoding), its beginning if not `whole`."""

    content: bytes = b""
    whole: bool = True
    packed: str = ""


async def read_bounded(response: httpx.Response, limit: int) -> Body:
    """The body of an unread response, at most `limit` bytes."""
    if packed := packing(response.headers):
        return Body(whole=False, packed=packed)
    chunks: list[bytes] = []
    try:
        async for chunk in _Bounded(response.aiter_raw(), limit):
            chunks.append(chunk)  # noqa: PERF401 - chunks before the limit are kept
    except _TooLargeError:
        return Body(content=b"".join(chunks), whole=False)
    return Body(content=b"".join(chunks))


_PACKINGS = frozenset({"gzip", "x-gzip", "deflate", "br", "zstd", "compress"})


def packing(headers: Mapping[str, str]) -> str:
    """The body's unrequested compression; empty if there is none."""
    packed = headers.get("content-encoding", "").strip().lower()
    return packed if packed in _PACKINGS else ""


# A streamed reply: read in chunks, passed to the watcher, gathered into a Reply.

STREAM_LIMIT = 64 * 1024 * 1024
"""Maximum bytes of a stream: about 250,000 tokens, since each arrives in its own JSON."""

PIECES_LIMIT = 250_000
"""Maximum pieces of a reply: a piece holds at least a token."""

_LINGER = 0.5
"""Seconds to wait for the end of the body after the end of the reply, so that the connection can be reused."""


async def _read_stream(chunks: AsyncIterator[bytes], decoder: Decoder, watcher: Watcher) -> Reply | Fault:
    """The streamed reply, passed to the watcher as it arrives; or the fault that ended it."""
    pieces: list[Piece | Fault] = []
    bounded = _Bounded(chunks, STREAM_LIMIT)
    try:
        async for chunk in bounded:
            decoder, added = decoder.advance(chunk)
            if len(pieces) + len(added) > PIECES_LIMIT:
                return Fault(kind="too_large", detail=f"the stream has more than {PIECES_LIMIT} pieces of a reply")
            if await _see(added, pieces, watcher):
                # Read to the end of the body for a moment; errors no longer matter to the reply.
                with suppress(TimeoutError, httpx.HTTPError, OSError, _TooLargeError):
                    async with asyncio.timeout(_LINGER):
                        async for _ in bounded:
                            pass
                return gather_reply(pieces)
    except _TooLargeError:
        return Fault(kind="too_large", detail=f"the stream has more than {STREAM_LIMIT} bytes")
    await _see(decoder.finish(), pieces, watcher)
    return gather_reply(pieces)


async def _see(added: tuple[Piece | Fault, ...], pieces: list[Piece | Fault], watcher: Watcher) -> bool:
    """Store the pieces and pass them to the watcher; whether the reply or the stream has ended."""
    for piece in added:
        pieces.append(piece)
        if isinstance(piece, Fault):
            return True
        await watcher.see(piece)
        if isinstance(piece, Ended):
            return True
    return False


# Sending requests over HTTP with retries; transport faults are values.

REPLY_LIMIT = 16 * 1024 * 1024
"""Maximum bytes of a whole reply."""

TOTAL = 3600.0
"""Maximum seconds for one request and its reply, however slowly the bytes arrive."""


class HttpSender:
    """The interpreter of `Send`: posts to the wire's path below `base_url`, on a client that the caller closes.

    The client sets TLS, proxies, limits, headers, and `timeout.read`, the maximum seconds without a byte. `total` is
    the maximum seconds per request, None for no limit. `hidden` secrets are masked in faults, before their texts are
    cut, and `keys` in replies, also while they arrive. `translate` is the backend's function that classifies its
    faults. `transport` bypasses the client for its transport alone: redirects, cookies and authentication are a fifth
    of the cost of a request on this machine.
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
        keys: Hidden = NOTHING,
        translate: Callable[[Fault], Fault] = lambda fault: fault,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._send = partial(client.send, stream=True) if transport is None else transport.handle_async_request
        self._wire = wire
        # Built once: httpx would merge these for every request.
        headers = {"content-type": "application/json", **IDENTITY}
        blank = client.build_request("GET", f"{base_url}{wire.path}", headers=headers)
        self._to, self._headers, self._extensions = blank.url, blank.headers, blank.extensions
        # Without user, password and query, which may be secret.
        self._where = str(blank.url.copy_with(username=None, password=None, query=None, fragment=None))
        self._retry = retry or Backoff()
        self._silence, self._total = client.timeout.read, total
        self._hidden, self._keys = hidden, keys
        self._translate = translate

    async def __call__(self, effect: Send, on_chunk: OnChunk | None = None) -> Replied | Undelivered:
        """The reply, or the fault after which the policy stopped retrying. `on_chunk` gets the reply as a stream."""
        began = time.monotonic()
        watcher = None if on_chunk is None else Watcher(on_chunk, self._keys)
        body = effect.request.body if watcher is None else self._wire.streamed(effect.request)
        faults: tuple[Fault, ...] = ()
        waited = 0.0
        while True:
            answer = await self._attempt(body, watcher)
            if isinstance(answer, Reply):
                took = time.monotonic() - began
                return Replied(reply=masked_reply(answer, self._keys), seconds=took, attempts=len(faults) + 1)
            fault = self._translate(masked_fault(answer, self._hidden))
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
                most = quantity(self._total or 0, "second")
                return Fault(kind="timeout", detail=f"{self._where} took longer than {most} in total")
            return fault_of(error, self._where, self._silence)

    async def _answer(self, response: httpx.Response, watcher: Watcher | None) -> Reply | Fault:
        packed = packing(response.headers)
        # Some servers answer a request for a stream with a whole reply.
        whole = response.headers.get("content-type", "").startswith("application/json")
        if watcher is not None and response.is_success and not packed and not whole:
            answer = await _read_stream(response.aiter_raw(), self._wire.stream, watcher)
            return answer if isinstance(answer, Reply) else with_type(answer, response.headers, self._hidden)
        body = await read_bounded(response, REPLY_LIMIT)
        if not (body.whole or packed):
            return Fault(kind="too_large", detail=f"{self._where} sent more than {REPLY_LIMIT} bytes")
        if not response.is_success:
            return refused(response, body.content, self._where, self._hidden)
        if packed:
            return Fault(
                kind="malformed", detail=f"{self._where} answered in {packed}, although no compression was requested"
            )
        answer = self._wire.decode(body.content)
        if isinstance(answer, Fault):
            # The fault quotes truncated parts of the answer, so decode it again from the masked answer.
            text = body.content.decode(errors="replace") if self._hidden else ""
            again = self._wire.decode(self._hidden.without(text).encode()) if text in self._hidden else answer
            shown = again if isinstance(again, Fault) else replace(answer, body="")
            return with_type(shown, response.headers, self._hidden)
        if watcher is not None:
            for piece in reply_pieces(answer):
                await watcher.see(piece)
        return answer
