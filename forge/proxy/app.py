"""The proxy's ASGI application: routes and answers requests, with errors in the client's protocol."""

import hmac
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext

from msgspec import Struct
from msgspec.structs import replace

from forge.door.access import Reach, is_loopback
from forge.door.asgi import AsgiSend, Headers, HttpRequest, Leaving, Outlet, Receive, Scope, attended, read_body
from forge.errors import ForgeError
from forge.observation import Notes, Observed, Requested, Responded
from forge.proxy.options import ProxyOptions
from forge.proxy.passage import AGENT_LENGTH, Passage
from stages.wire.server.errors import RequestError, WireAnswer
from stages.wire.server_wires import CHAT, MESSAGES, ServerWire

_log = logging.getLogger("forge.proxy")

_CORS_HEADERS = "authorization, content-type, x-api-key, anthropic-version, anthropic-beta"


class NotedOutlet(Outlet):
    """The answer to one request, with notes for its headers and the log."""

    def __init__(self, send: AsgiSend, headers: Headers = ()) -> None:
        super().__init__(send, headers)
        self.notes = Notes()

    async def refuse(self, wire: ServerWire, error: RequestError, headers: Headers = ()) -> None:
        """Answer with an error of forge's own, which the log repeats."""
        self.notes.problem, answer = error.message, wire.encode_error(error)
        await self.answer(replace(answer, headers=(*answer.headers, *headers)))

    async def _begin(self, status: int, headers: Headers) -> None:
        noted = {"x-forge-compacted": self.notes.compacted, "x-forge-left-out": ", ".join(self.notes.left_out)}
        await super()._begin(status, (*headers, *((name, value) for name, value in noted.items() if value)))


_Handler = Callable[[HttpRequest, NotedOutlet], Awaitable[None]]


class Route(Struct, frozen=True):
    """The handlers of a path by method; `wire` is the protocol of its errors."""

    handlers: Mapping[str, _Handler]
    wire: ServerWire = CHAT


def refuse_without_key(options: ProxyOptions) -> None:
    """ForgeError if other machines can reach the proxy without a key, unless `insecure` allows it."""
    if not (is_loopback(options.host) or options.api_key or options.insecure):
        raise ForgeError(
            f"{options.host} can be reached from other machines, so anyone there could use the model. Require a key "
            "(--api-key-env NAME, ProxyOptions(api_key=…)), or pass --insecure"
        )


class ProxyApp:
    """The application. `routes` are by path without `/v1`; one that ends in a slash is for all paths below it.

    `watch` is called with each finished request; it must return quickly.
    """

    def __init__(self, routes: dict[str, Route], options: ProxyOptions, watch: Callable[[Passage], None]) -> None:
        self._routes, self._options, self._watch = routes, options, watch
        keyed = bool(options.api_key)
        self._reach = Reach(host=options.host, keyed=keyed, origins=options.origins, headers=_CORS_HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: AsgiSend) -> None:
        """Serve one request."""
        asked = HttpRequest.of({**scope, "path": _path(scope["path"])})
        out = NotedOutlet(send, self._reach.cors(asked) if b"origin" in asked.headers else ())
        above = (found for path, found in self._routes.items() if path.endswith("/") and asked.path.startswith(path))
        route = self._routes.get(asked.path) or next(above, None)
        wire = _wire_of(route, asked)

        async def handle(leaving: Leaving) -> None:
            await self._handled(route, asked, receive, out, leaving)

        # Only requests to endpoints, not health checks and metrics.
        observed = Observed(Requested(method=asked.method, route=f"/v1{asked.path}", headers=asked.headers))
        asks = route is not None and asked.method == "POST" and asked.method in route.handlers
        try:
            with observed if asks else nullcontext():
                early = await attended(asked, handle, receive, out, fail=wire.encode_error, log=_log)
                out.notes.outcome = early or out.notes.outcome
                observed.outcome = Responded(status=out.status, notes=out.notes)
        finally:
            agent = asked.header("user-agent")[:AGENT_LENGTH]
            self._watch(Passage(time.time(), asked.method, asked.path, agent, out.status, out.seconds, out.notes))

    async def _handled(
        self, route: Route | None, asked: HttpRequest, receive: Receive, out: NotedOutlet, leaving: Leaving
    ) -> None:
        wire = _wire_of(route, asked)
        if error := self._reach.objection(asked) or self._keyless(asked):
            await out.refuse(wire, error)
        elif asked.method == "OPTIONS":
            await out.answer(WireAnswer(status=204, body=b""))
        elif route is None:
            endpoints = ", ".join(f"/v1{path}" for path, found in self._routes.items() if "POST" in found.handlers)
            said = f"there is no endpoint {asked.path[:100]}; available: {endpoints}, /v1/models"
            await out.refuse(wire, RequestError(message=said, status=404))
        elif (handler := route.handlers.get(asked.method)) is None:
            allowed = ", ".join(route.handlers)
            error = RequestError(message=f"{asked.path} accepts {allowed}, not {asked.method[:20]}", status=405)
            await out.refuse(wire, error, (("allow", allowed),))
        else:
            body = await read_body(asked, receive, self._options.body_limit)
            if isinstance(body, RequestError):
                await out.refuse(wire, body)
                return
            leaving.begin()
            await handler(replace(asked, body=body), out)

    def _keyless(self, asked: HttpRequest) -> RequestError | None:
        """The error for a request without the required key."""
        own = self._options.api_key
        if not own or asked.method == "OPTIONS" or asked.path in ("/health", "/forge/health"):
            return None
        given = (asked.header("authorization").partition(" ")[2].strip(), asked.header("x-api-key").strip())
        if any(hmac.compare_digest(key.encode("latin-1"), own.encode()) for key in given):  # the bytes of a header
            return None
        return RequestError(message="this server requires its API key, as a bearer token or in x-api-key", status=401)


def _path(path: str) -> str:
    """The path as in the routes: without `/v1` and without a trailing slash."""
    trimmed = path.rstrip("/") or "/"
    return trimmed.removeprefix("/v1") if trimmed.startswith("/v1/") else trimmed


def _wire_of(route: Route | None, asked: HttpRequest) -> ServerWire:
    """The protocol in which the client expects errors."""
    if route is not None and route.wire is not CHAT:
        return route.wire
    return MESSAGES if b"anthropic-version" in asked.headers else CHAT
