"""The endpoints that do not call the model (models, health, metrics, usage, token counts), and all routes."""

import asyncio
import math
import time
from functools import partial

import msgspec
from msgspec import Struct

from forge.connection import Connection
from forge.door.asgi import HttpRequest
from forge.interpreters.http import REPLY_LIMIT
from forge.proxy.app import NotedOutlet, Route
from forge.proxy.endpoint_client import EndpointClient
from forge.proxy.errors import refusal_answer
from forge.proxy.exchange import adapted
from forge.proxy.passage import Passage
from forge.proxy.service import Service
from forge.proxy.upstream import Post, Refusal, TransportError
from forge.proxy.writing import counted_request
from forge.telemetry.prometheus import CONTENT_TYPE, Metrics
from stages.decoding import decode
from stages.effect import Request
from stages.tokens import STARTING_RATE
from stages.wire.anthropic.messages_server import decode_count_request
from stages.wire.server.errors import RequestError, WireAnswer
from stages.wire.server_wires import CHAT, MESSAGES, RESPONSES

_PATIENCE = 10.0
"""Maximum seconds for a GET request to the backend."""


# The counts of /metrics: finished requests.

_PATHS = frozenset({"/chat/completions", "/responses", "/messages", "/messages/count_tokens", "/models"})


def count(series: Metrics, passage: Passage) -> None:
    """Count a finished request."""
    notes = passage.notes
    path = passage.path if passage.path in _PATHS else "other"  # clients may request any number of others
    series.requests.labels(path, str(passage.status)).inc()
    if notes.outcome:
        series.outcomes.labels(notes.outcome).inc()
    again = notes.attempts - 1
    series.retries.inc(again)
    if again:
        series.repairs.labels("corrected").inc(again)
    if notes.rescued:
        series.repairs.labels("rescued").inc(len(notes.rescued))
    if notes.compacted:
        series.compactions.inc()


# Models, health, metrics, usage.


class _Listed(Struct):
    """A listed model. Clients of OpenAI's protocols get the server's whole object."""

    id: str
    created: int = 0


class _List(Struct):
    data: list[msgspec.Raw] = []


_list = msgspec.json.Decoder(_List)
_listed = msgspec.json.Decoder(_Listed)


class Info:
    """The endpoints about the backend and the proxy."""

    def __init__(
        self, connection: Connection, client: EndpointClient | None, service: Service, series: Metrics
    ) -> None:
        self.connection, self._client, self._service, self._series = connection, client, service, series
        self._began = int(time.time())
        for gauge in (series.waiting, series.queue_depth):
            series.watch(gauge, lambda: service.slots.waiting)
        series.watch(series.working, lambda: service.slots.working)

    def routes(self) -> dict[str, Route]:
        """All endpoints of the proxy, by path without `/v1`."""
        serve = self._service.serve
        return {
            **{wire.path: Route({"POST": partial(serve, wire)}, wire) for wire in (CHAT, MESSAGES, RESPONSES)},
            "/messages/count_tokens": Route({"POST": self.count_tokens}, MESSAGES),
            "/models": Route({"GET": self.models}),
            "/models/": Route({"GET": self.model}),
            "/health": Route({"GET": self.health, "HEAD": self.health}),
            "/props": Route({"GET": self.props}),
            "/metrics": Route({"GET": self.metrics}),
            "/forge/health": Route({"GET": self.alive}),
            "/forge/usage": Route({"GET": self.usage}),
        }

    async def models(self, asked: HttpRequest, out: NotedOutlet) -> None:
        """GET /v1/models, in Anthropic's form for Anthropic clients."""
        found = await self._models(asked)
        if b"anthropic-version" not in asked.headers:
            body = b'{"object":"list","data":[' + b",".join(map(bytes, found)) + b"]}"
            await out.answer(WireAnswer(body=body))
            return
        models = [_anthropic(decode(_listed, raw)) for raw in found][: _limit(asked.query)]
        ends = {"first_id": models[0]["id"], "last_id": models[-1]["id"]} if models else {}
        await _tell(out, {"data": models, "has_more": False, **ends})

    async def model(self, asked: HttpRequest, out: NotedOutlet) -> None:
        """GET /v1/models/{id}."""
        name = asked.path.removeprefix("/models/")
        anthropic = b"anthropic-version" in asked.headers
        for raw in await self._models(asked):
            listed = decode(_listed, raw)
            if listed.id == name:
                await (_tell(out, _anthropic(listed)) if anthropic else out.answer(WireAnswer(body=raw)))
                return
        error = RequestError(
            message=f"there is no model {name[:100]!r} on this server", status=404, code="model_not_found"
        )
        await out.refuse(MESSAGES if anthropic else CHAT, error)

    async def _models(self, asked: HttpRequest) -> list[bytes]:
        """The models that the backend lists; otherwise the one it runs."""
        status, body = await self._got("/v1/models", asked)
        try:
            found = [bytes(raw) for raw in decode(_list, body).data] if status == 200 else []
            [decode(_listed, raw) for raw in found]
        except msgspec.DecodeError:
            found = []
        own = {"id": self.connection.setup.model or "forge", "object": "model", "created": self._began}
        return found or [msgspec.json.encode({**own, "owned_by": "forge"})]

    async def health(self, asked: HttpRequest, out: NotedOutlet) -> None:
        """GET /health: the backend's answer, if it has that endpoint."""
        status, body = await self._got("/health", asked)
        if status in (0, 404):
            status, body = (503, b'{"status":"unreachable"}') if self._client and not status else (200, b"")
        await out.answer(WireAnswer(status=status, body=body or b'{"status":"ok"}'))

    async def props(self, asked: HttpRequest, out: NotedOutlet) -> None:
        """GET /props: llama.cpp's answer; otherwise what forge knows."""
        status, body = await self._got("/props", asked)
        if status == 200:
            await out.answer(WireAnswer(body=body))
            return
        setup, slots = self.connection.setup, self._service.slots.slots
        generation = {"n_ctx": self._service.model.window}
        await _tell(out, {"default_generation_settings": generation, "total_slots": slots, "model_alias": setup.model})

    async def metrics(self, asked: HttpRequest, out: NotedOutlet) -> None:
        """GET /metrics: forge's metrics, then the backend's."""
        status, body = await self._got("/metrics", asked)
        await out.answer(WireAnswer(body=self._series.text() + (body if status == 200 else b"")), CONTENT_TYPE)

    async def alive(self, _: HttpRequest, out: NotedOutlet) -> None:
        """GET /forge/health: the proxy itself."""
        slots = self._service.slots
        await _tell(out, {"status": "ok", "slots": slots.slots, "working": slots.working, "waiting": slots.waiting})

    async def usage(self, _: HttpRequest, out: NotedOutlet) -> None:
        """GET /forge/usage: the context used by the last request, or 204."""
        last = self._service.last
        if last is None:
            await out.answer(WireAnswer(status=204, body=b""))
            return
        window = self._service.model.window
        share = {"usage_percent": round(100 * last.tokens / window, 1)} if window else {}
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(last.at))
        told = {"current_usage_tokens": last.tokens, "context_window_tokens": window, **share}
        await _tell(out, {**told, "model": last.model, "observed_at": at})

    async def count_tokens(self, asked: HttpRequest, out: NotedOutlet) -> None:
        """POST /v1/messages/count_tokens: by the backend's own tokenizer if it can be asked, otherwise estimated."""
        connection, model = self.connection, self._service.model
        request = decode_count_request(asked.body)
        if isinstance(request, RequestError):
            await out.refuse(MESSAGES, request)
            return
        if model.verbatim == request.protocol:
            body = adapted(request, model.name, model.setup.dialect).body
            post = Post(request=Request(), body=body, forwarded=self._service.forwarded_of(asked))
            counted = await model.upstream.count(post)
            if isinstance(counted, Refusal):
                await out.answer(refusal_answer(MESSAGES, counted, same=True))
                return
            if counted is not None:
                await _tell(out, {"input_tokens": counted})
                return
        model = model.asked_about(request)
        written, size = counted_request(request, model.setup, model.name)
        tokens = await connection.count(written.body) if connection.count else None
        if tokens is None:
            tokens = math.ceil(size * (connection.setup.tokens_per_character or STARTING_RATE))
        await _tell(out, {"input_tokens": tokens})

    async def _got(self, path: str, asked: HttpRequest) -> tuple[int, bytes]:
        """The backend's answer to a GET request; status 0 if there is none."""
        endpoint = self.connection.endpoint
        if endpoint is None or self._client is None:
            return 0, b""
        try:
            async with asyncio.timeout(_PATIENCE):
                async with await self._client.ask("GET", endpoint.root + path, self._service.key_of(asked)) as answer:
                    body = await answer.read(REPLY_LIMIT) or b""
                    return answer.status, endpoint.hidden.without_bytes(body)
        except (TransportError, TimeoutError):
            return 0, b""


async def _tell(out: NotedOutlet, told: object) -> None:
    await out.answer(WireAnswer(body=msgspec.json.encode(told)))


def _anthropic(listed: _Listed) -> dict[str, str]:
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(min(max(0, listed.created), 4_000_000_000)))
    return {"type": "model", "id": listed.id, "display_name": listed.id, "created_at": made}


def _limit(query: bytes) -> int:
    """The parameter `limit`, which Anthropic's clients send."""
    for part in query.split(b"&"):
        name, _, value = part.partition(b"=")
        if name == b"limit" and value.isdigit():
            return max(1, int(value[:6]))
    return 1000
