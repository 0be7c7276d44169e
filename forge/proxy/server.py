"""ProxyServer: the proxy as an async context: it listens when the block begins, and has stopped when it ends."""

import logging
from collections.abc import Callable
from contextlib import AsyncExitStack, closing

from msgspec.structs import replace

from forge.backends import named
from forge.backends.slot import Slots
from forge.connection import AnyBackend, Endpoint
from forge.door.listening import AppServer
from forge.masking import Hidden
from forge.observation import observe_with
from forge.proxy.app import ProxyApp, refuse_without_key
from forge.proxy.endpoint_client import EndpointClient
from forge.proxy.fitting import GrowingContext
from forge.proxy.http_upstream import HttpUpstream
from forge.proxy.info import Info, count
from forge.proxy.judges import ReplyJudges
from forge.proxy.model import VERBATIM, Model, ToolFallback
from forge.proxy.options import ProxyOptions
from forge.proxy.passage import Passage, summary_line
from forge.proxy.policy_file import given_policy
from forge.proxy.service import Service
from forge.proxy.upstream import ConnectionUpstream
from forge.telemetry.prometheus import Metrics
from stages.wire.wires import wire

_log = logging.getLogger("forge.proxy")

_SLOTS = 4
"""Concurrent requests at a backend that does not report its slots."""


def _log_line(passage: Passage) -> None:
    """A line in the log."""
    if _log.isEnabledFor(logging.INFO):
        _log.info("%s", summary_line(passage))


class ProxyServer(AppServer):
    """A proxy in front of a backend: `async with ProxyServer("http://127.0.0.1:8080") as proxy: …proxy.url…`.

    `backend` is one of forge.backends, or a name as on the command line. `watch` is called with each finished request;
    by default, it is logged. ForgeError for an address that other machines can reach without a key, a port in use, an
    invalid policy, or a backend that cannot be reached.
    """

    def __init__(
        self, backend: AnyBackend, options: ProxyOptions | None = None, watch: Callable[[Passage], None] = _log_line
    ) -> None:
        self._backend = named(backend) if isinstance(backend, str) else backend
        self._options, self._watch = options or ProxyOptions(), watch
        refuse_without_key(self._options)
        super().__init__(self._options)

    async def _application(self, opening: AsyncExitStack) -> ProxyApp:
        options, policy, series = self._options, given_policy(self._options.policy), Metrics()
        connection = await opening.enter_async_context(self._backend.connect())
        endpoint, setup = connection.endpoint, connection.setup
        if endpoint is not None and options.backend_api_key:
            endpoint = replace(endpoint, hidden=endpoint.hidden | Hidden((options.backend_api_key,)))
            connection = replace(connection, endpoint=endpoint)
        if setup.mode == "constrained":
            setup = replace(setup, mode="native")  # under a constraint, a model could never answer in text
        spoken = wire(setup.dialect)
        client, served = None, None
        if endpoint is not None:
            client = opening.enter_context(closing(EndpointClient(endpoint)))
            served = HttpUpstream(client, endpoint, spoken)
        limit = endpoint.context_limit if endpoint else 0
        model = Model(
            setup=setup,
            upstream=served or ConnectionUpstream(connection),
            judges=ReplyJudges(max_retries=options.max_retries, search_text=options.rescue),
            max_retries=options.max_retries,
            verbatim=VERBATIM.get(spoken.name) if served and setup.mode == "native" else None,
            name=endpoint.model if endpoint else "",
            constrains=connection.setup.mode == "constrained",
            policy=policy,
            growing=GrowingContext(setup.context_tokens, limit) if limit else None,
            count=connection.count,
            endpoint=endpoint,
            fallback=_fallback(endpoint) if endpoint is not None and setup.mode == "native" else None,
        )
        slots = options.slots or (endpoint.slots if endpoint else 0) or _SLOTS
        self._service = Service(model, Slots(slots, options.queue, options.queue_timeout), options)
        opening.callback(observe_with(series))

        def over(passage: Passage) -> None:
            count(series, passage)
            self._watch(passage)

        return ProxyApp(Info(connection, client, self._service, series).routes(), options, over)

    def reload(self) -> None:
        """Read the policy file again, for new requests. ForgeError if it is invalid: the old policy stays in force."""
        policy = given_policy(self._options.policy)
        self._service.model = replace(self._service.model, policy=policy)

    @property
    def load(self) -> tuple[int, int]:
        """The numbers of requests at the backend, and of those waiting for a slot."""
        slots = self._service.slots
        return slots.working, slots.waiting


def _fallback(endpoint: Endpoint) -> ToolFallback | None:
    """The fallback for a server that may refuse tools; None if it never does."""
    if endpoint.native_calls and not endpoint.tools_refused:
        return None
    return ToolFallback(words=endpoint.tools_refused, always=not endpoint.native_calls)
