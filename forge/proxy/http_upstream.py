"""HttpUpstream: a server as the proxy asks it; bodies unchanged, faults as values."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from forge.backends.credentials import HEADERS
from forge.backends.endpoints import AnthropicCount
from forge.connection import Endpoint
from forge.interpreters.http import REPLY_LIMIT, STREAM_LIMIT, packing, page_told, status_fault, with_type
from forge.masking import masked_fault
from forge.proxy.endpoint_client import EndpointClient, HttpAnswer, OpenRequest
from forge.proxy.upstream import Forwarded, Heard, Hearing, Post, Refusal, TransportError, Whole, streamed_reply
from stages.decoding import decode_or
from stages.effect import Fault
from stages.wire.faults import BODY_KEPT, cut_body
from stages.wire.wires import Wire

_H = TypeVar("_H", Heard, Refusal, Heard | Refusal)

_EVENTS_LIMIT = 250_000
"""Maximum events of a stream: an event holds at least a token."""

_EVENTS_AT_ONCE = 64
"""Events after which other tasks may run: a chunk may hold tens of thousands."""


class HttpUpstream:
    """A server that speaks the protocol `wire`."""

    def __init__(self, client: EndpointClient, endpoint: Endpoint, wire: Wire) -> None:
        self._client, self._endpoint, self._wire = client, endpoint, wire
        self._url = endpoint.base + wire.path

    async def whole(self, post: Post) -> Whole | Refusal:
        """The whole answer."""
        try:
            async with await self._posted(post, post.body or post.request.body) as answer:
                raw = await answer.read(REPLY_LIMIT)
        except TransportError as error:
            return Refusal(error.fault)
        if raw is None:
            return Refusal(Fault(kind="too_large", detail=f"{self._url} sent more than {REPLY_LIMIT} bytes"))
        if answer.status >= 300:
            return self._refused(answer, raw)
        if packed := self._packed(answer):
            return packed
        reply = self._wire.decode(raw)
        if isinstance(reply, Fault):
            streamed = streamed_reply(self._wire, raw)
            return self._told(Refusal(reply, raw), answer) if streamed is None else Whole(streamed)
        return Whole(reply, raw)

    async def stream(self, post: Post) -> AsyncGenerator[Heard | Refusal]:
        """The answer's events as they arrive; closing the iterator closes the connection, which frees the slot."""
        try:
            async with await self._posted(post, post.body or self._wire.streamed(post.request)) as answer:
                if answer.status >= 300:
                    yield self._refused(answer, await answer.read(REPLY_LIMIT) or b"")
                    return
                if packed := self._packed(answer):
                    yield packed
                    return
                async for heard in self._events(answer):
                    yield heard
        except TransportError as error:
            yield Refusal(error.fault)

    async def count(self, post: Post) -> int | Refusal | None:
        """The backend's token count; None if it has no such endpoint or answers something else."""
        if self._wire.counts_at is None:
            return None
        url = self._endpoint.base + self._wire.counts_at
        try:
            asking = await self._client.ask("POST", url, post.forwarded.key, post.body, post.forwarded.headers)
            async with asking as answer:
                raw = await answer.read(REPLY_LIMIT) or b""
        except TransportError:
            return None
        if answer.status >= 300:
            return None if answer.status in (404, 405) else self._refused(answer, raw)
        found = decode_or(_count, raw, None)
        return None if found is None else found.input_tokens

    async def _events(self, answer: HttpAnswer) -> AsyncGenerator[Heard | Refusal]:
        hearing, size, events = Hearing(self._wire), 0, 0
        while chunk := await answer.chunk():
            size += len(chunk)
            if size > STREAM_LIMIT:
                yield Refusal(Fault(kind="too_large", detail=f"the stream has more than {STREAM_LIMIT} bytes"))
                return
            for heard in hearing.hear(chunk):
                if heard.raw or heard.pieces:
                    yield self._told(heard)
                events += 1
                if events % _EVENTS_AT_ONCE == 0:
                    await asyncio.sleep(0)
            if events > _EVENTS_LIMIT:
                yield Refusal(Fault(kind="too_large", detail=f"the stream has more than {_EVENTS_LIMIT} events"))
                return
        for last in hearing.end():
            yield self._told(last, answer)

    def _told(self, heard: _H, ended: HttpAnswer | None = None) -> _H:
        """The same without the backend's credential, which a server may repeat in an error with any status.

        A fault found at the end of an answer names the answer's type if that is unusual.
        """
        hidden = self._endpoint.hidden

        def told(fault: Fault) -> Fault:
            shown = masked_fault(fault, hidden) if hidden else fault
            return with_type(shown, ended.headers, hidden) if ended else shown

        match heard:
            case _ if not (hidden or ended):
                return heard
            case Refusal(fault=fault, raw=raw):
                return replace(heard, fault=told(fault), raw=hidden.without_bytes(raw))
            case Heard(pieces=pieces, raw=raw) if any(isinstance(piece, Fault) for piece in pieces):
                shown = tuple(told(piece) if isinstance(piece, Fault) else piece for piece in pieces)
                return replace(heard, pieces=shown, raw=hidden.without_bytes(raw))
            case _:
                return heard

    async def _posted(self, post: Post, body: bytes) -> OpenRequest:
        headers = post.forwarded.headers if post.body else ()
        return await self._client.ask("POST", self._url, post.forwarded.key, body, headers, trace=post.trace)

    def _packed(self, answer: HttpAnswer) -> Refusal | None:
        """The refusal of a compressed body, which was not requested."""
        if not (encoding := packing(answer.headers)):
            return None
        said = f"{self._url} answered with content-encoding: {encoding}, although identity was requested"
        return Refusal(Fault(kind="malformed", detail=said))

    def _refused(self, answer: HttpAnswer, raw: bytes) -> Refusal:
        hidden = self._endpoint.hidden
        shown = hidden.without_bytes(raw)
        body = cut_body(hidden.cut_after(raw, BODY_KEPT) if hidden else raw)
        answered, page = f"{self._url} answered {answer.status}", page_told(answer.headers, body)
        if page:
            return Refusal(status_fault(answer.status, answer.headers, "", f"{answered}: {page}"), shown)
        return Refusal(status_fault(answer.status, answer.headers, body, body or answered), shown)


_CREDENTIALS = tuple(name.encode() for name in sorted(HEADERS))
_count = msgspec.json.Decoder(AnthropicCount)

_CARRIED = ("anthropic-beta", "anthropic-version", "openai-beta", "openai-organization", "openai-project")
"""The client's headers that affect how a backend reads its body."""


def forwarded_of(headers: Mapping[bytes, bytes], key: str) -> Forwarded:
    """The credential and the headers to forward."""
    found = ((name, headers.get(name.encode(), b"").decode("latin-1")) for name in _CARRIED)
    return Forwarded(key=key, headers=tuple(pair for pair in found if pair[1]))


def credential_of(headers: Mapping[bytes, bytes]) -> str:
    """The client's credential: the bearer token, or the value of another header for credentials."""
    for name in _CREDENTIALS:
        if value := headers.get(name, b"").decode("latin-1").strip():
            return value.rpartition(" ")[2]
    return ""
