"""The ASGI application: a request read to its bound, routed, answered, and given up when its client leaves."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from forge.proxy.access import cors_headers, objection
from forge.proxy.asgi import Asked, Outlet, Receive, Scope, Send
from forge.proxy.options import ProxyOptions
from forge.proxy.passage import AGENT_LENGTH, Passage
from stages.wire.served import RequestError, WireAnswer
from stages.wire.server_wires import CHAT, MESSAGES, ServerWire

log = logging.getLogger("forge.proxy")

Handler = Callable[[Asked, Outlet], Awaitable[None]]

_LISTEN_AFTER = 0.02
"""Seconds after which a request is listened to for its client's leaving: most are answered before."""


STOPPING = RequestError(message="the proxy was stopped before the reply was whole", status=503)


class Route(Struct, frozen=True):
    """What answers a path, by method; `wire` is the protocol of its errors."""

    handlers: Mapping[str, Handler]
    wire: ServerWire = CHAT


class LeftError(Exception):
    """The client went away."""


class App:
    """The application. `routes` are by path, without `/v1`; `below` answers paths below another.

    `watch` is told of each request when it is over; it must not take long.
    """

    def __init__(
        self,
        routes: dict[str, Route],
        below: dict[str, Route],
        options: ProxyOptions,
        watch: Callable[[Passage], None],
    ) -> None:
        self._routes, self._below, self._options, self._watch = routes, below, options, watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        began = time.monotonic()
        asked = Asked(
            method=scope["method"],
            path=_path(scope["path"]),
            headers=dict(scope["headers"]),
            query=scope["query_string"],
        )
        out = Outlet(send, cors_headers(asked, self._options) if b"origin" in asked.headers else ())
        try:
            await self._served(asked, receive, out)
        finally:
            agent, seconds = asked.header("user-agent")[:AGENT_LENGTH], time.monotonic() - began
            self._watch(Passage(time.time(), asked.method, asked.path, agent, out.status, seconds, out.notes))

    async def _served(self, asked: Asked, receive: Receive, out: Outlet) -> None:
        leaving = Leaving(receive)
        route = self._route(asked.path)
        try:
            await self._handled(route, asked, receive, out, leaving)
        except asyncio.CancelledError:
            # The client has left, or the server that stops has waited for this request as long as it may.
            out.notes.outcome = "left" if leaving.left else "stopped"
            if not leaving.left and not out.begun:
                await out.answer(_wire_of(route, asked).encode_error(STOPPING))
        except LeftError:
            out.notes.outcome = "left"
        # What nobody has foreseen is told in the client's protocol, and in the log in full.
        except Exception:
            log.exception("%s %s failed", asked.method, asked.path)
            if out.begun:
                raise  # the server then cuts the connection: half an answer must not look whole
            error = RequestError(message="the proxy failed at this request; its log says why", status=500)
            await out.answer(_wire_of(route, asked).encode_error(error))
        finally:
            leaving.stop()

    async def _handled(
        self, route: Route | None, asked: Asked, receive: Receive, out: Outlet, leaving: "Leaving"
    ) -> None:
        wire = _wire_of(route, asked)
        if error := objection(asked, self._options):
            await out.answer(wire.encode_error(error))
        elif asked.method == "OPTIONS":
            await out.answer(WireAnswer(status=204, body=b""))
        elif route is None:
            error = RequestError(message=f"there is nothing at {asked.path[:100]}", status=404)
            await out.answer(wire.encode_error(error))
        elif (handler := route.handlers.get(asked.method)) is None:
            allowed = ", ".join(route.handlers)
            error = RequestError(message=f"{asked.path} takes {allowed}, not {asked.method[:20]}", status=405)
            answer = wire.encode_error(error)
            await out.answer(replace(answer, headers=(*answer.headers, ("allow", allowed))))
        else:
            body = await self._body(asked, receive)
            if isinstance(body, RequestError):
                await out.answer(wire.encode_error(body))
                return
            leaving.begin()
            await handler(replace(asked, body=body), out)

    async def _body(self, asked: Asked, receive: Receive) -> bytes | RequestError:
        """The body, to its bound. LeftError where the client goes before its end."""
        limit = self._options.body_limit
        said = asked.header("content-length")
        if said.isdigit() and int(said[:20]) > limit:
            return _too_large(limit)
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise LeftError
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > limit:
                return _too_large(limit)
            if not message.get("more_body", False):
                return b"".join((*chunks, chunk)) if chunks else chunk
            chunks.append(chunk)

    def _route(self, path: str) -> Route | None:
        found = self._routes.get(path)
        if found is not None:
            return found
        return next((route for prefix, route in self._below.items() if path.startswith(prefix)), None)


class Leaving:
    """Listens for the client's leaving, and then cancels the task that serves it."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.left = False
        self._timer: asyncio.TimerHandle | None = None
        self._listening: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Listen from a moment on."""
        self._serving = asyncio.current_task()
        self._timer = asyncio.get_running_loop().call_later(_LISTEN_AFTER, self._listen)

    def stop(self) -> None:
        """Listen no more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._listening is not None:
            self._listening.cancel()

    def _listen(self) -> None:
        self._listening = asyncio.get_running_loop().create_task(self._wait())

    async def _wait(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if self._serving is not None:
            self.left = True
            self._serving.cancel()


def _path(path: str) -> str:
    """The path as routes have it: without the version, and without a slash at its end."""
    trimmed = path.rstrip("/") or "/"
    return trimmed[3:] if trimmed.startswith("/v1/") else trimmed


def _wire_of(route: Route | None, asked: Asked) -> ServerWire:
    """The protocol in which the client expects errors."""
    if route is not None and route.wire is not CHAT:
        return route.wire
    return MESSAGES if b"anthropic-version" in asked.headers else CHAT


def _too_large(limit: int) -> RequestError:
    return RequestError(message=f"the request has more than {limit} bytes", status=413)
