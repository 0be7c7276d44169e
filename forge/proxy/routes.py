"""Routes: which paths there are, without `/v1`."""

from functools import partial

from forge.proxy.app import Route
from forge.proxy.count import count_tokens
from forge.proxy.info import Info
from forge.proxy.service import Service
from stages.wire.server_wires import CHAT, MESSAGES, RESPONSES


def routes_of(service: Service, info: Info) -> dict[str, Route]:
    """The paths."""
    served = {wire.path: Route({"POST": partial(service.serve, wire)}, wire) for wire in (CHAT, MESSAGES, RESPONSES)}
    return {
        **served,
        "/messages/count_tokens": Route({"POST": partial(count_tokens, service, info.connection)}, MESSAGES),
        "/models": Route({"GET": info.models}),
        "/health": Route({"GET": info.health, "HEAD": info.health}),
        "/v1/health": Route({"GET": info.health}),
        "/props": Route({"GET": info.props}),
        "/metrics": Route({"GET": info.metrics}),
        "/forge/health": Route({"GET": info.alive}),
        "/forge/usage": Route({"GET": info.usage}),
    }


def below_of(info: Info) -> dict[str, Route]:
    """The paths of which only the beginning is fixed."""
    return {"/models/": Route({"GET": info.model})}
