"""An exchange: one request of a client, how the backend is asked for it, and what the answer says of itself."""

import time
import uuid

import msgspec
from msgspec import Raw, Struct

from forge.connection import Setup
from forge.proxy.policy import ModelPolicy, Policy
from forge.proxy.tools import Guard, Guards
from forge.proxy.turn import Turn, ask, opening, plain_request, verbatim_turn, written_turn
from forge.proxy.upstream import Post, Upstream
from stages.effect import Request
from stages.state import State
from stages.wire.answers import Envelope
from stages.wire.served import Protocol, RequestError, ServerRequest, as_sent, fields, refusal
from stages.wire.server_wires import ServerWire
from stages.wire.valid import valid_history
from stages.wire.wires import WireName
from stages.wire.wires import wire as wire_of

VERBATIM: dict[WireName, Protocol] = {"openai": "chat", "anthropic": "messages"}
"""The protocol of a client whose bodies such a backend takes as they are."""


REFUSED = frozenset({400, 422, 500})
"""The statuses with which servers refuse a history."""


class Model(Struct, frozen=True, kw_only=True):
    """The backend as the proxy has it. `verbatim` is the protocol of which it takes bodies as they come."""

    setup: Setup
    upstream: Upstream
    guards: Guards
    max_retries: int
    verbatim: Protocol | None = None
    name: str = ""
    """The model by which it was asked for; empty: the client's own choice goes through."""
    policy: Policy = Policy()

    def policy_for(self, request: ServerRequest) -> ModelPolicy:
        """What holds for the model of this request: as it was asked for by name, or by the client, or as it is."""
        return self.policy.of(self.name) if self.name else self.policy.of(request.model, self.setup.model)


class Guarded(Struct, frozen=True):
    """What guards a reply."""

    guard: Guard
    turn: Turn
    state: State


class Exchange(Struct, frozen=True, kw_only=True):
    """A request on its way. `same`: the backend's bytes are the client's; `guarded` is None where it goes through."""

    wire: ServerWire
    request: ServerRequest
    model: Model
    first: Post
    same: bool
    guarded: Guarded | None

    def envelope(self) -> Envelope:
        """What an answer of forge's own says beside the reply."""
        return Envelope(id=self.wire.prefix + uuid.uuid4().hex, created=int(time.time()), request=self.request)

    @property
    def upstream(self) -> Upstream:
        """The backend."""
        return self.model.upstream

    def post(self, request: Request) -> Post:
        """A further request of the same client."""
        return Post(request=request, body=request.body if self.same else b"", key=self.first.key)


def with_valid_history(exchange: Exchange) -> Exchange | None:
    """The exchange with a history that strict servers take; None where that is the client's own.

    A damaged call in it, and llama.cpp answers 500 to the conversation for good. What has no noun would be lost.
    """
    request = exchange.request
    if not exchange.same or any(foreign.fate != "dropped" for foreign in request.foreign):
        return None
    history = valid_history(request.history)
    if history == request.history:
        return None
    messages = wire_of(exchange.model.setup.dialect).messages(history)
    body = msgspec.structs.replace(as_sent(request), messages=messages).body
    repaired = msgspec.structs.replace(request, body=body, history=history)
    again = exchange_of(exchange.wire, repaired, exchange.model, exchange.first.key)
    return again if isinstance(again, Exchange) else None


def exchange_of(wire: ServerWire, request: ServerRequest, model: Model, key: str) -> Exchange | RequestError:
    """How the request is served; why it cannot be."""
    same = request.protocol == model.verbatim
    if same:
        request = _pinned(request, model.name)
    elif error := refusal(request):
        return error
    whole = request.n > 1 or request.logprobs
    if request.tools and request.choice.mode != "none" and not whole:
        return _guarded(wire, request, model, key, same=same)
    asked = Request() if same else plain_request(request, model.setup, model.name)
    return _exchange(wire, request, model, Post(request=asked, body=request.body if same else b"", key=key))


def _guarded(wire: ServerWire, request: ServerRequest, model: Model, key: str, *, same: bool) -> Exchange:
    guard = model.guards.of(request)
    state = opening(request, model.max_retries, asked=same)
    if same:
        post = Post(request=Request(), body=request.body, key=key)
        return _exchange(wire, request, model, post, Guarded(guard, verbatim_turn(request, guard, model.setup), state))
    turn = written_turn(request, guard, model.setup, model.name)
    first = ask(turn, state)
    if first is None:
        raise TypeError("a turn without a first request")
    return _exchange(wire, request, model, Post(request=first.request, key=key), Guarded(guard, turn, first.state))


def _exchange(
    wire: ServerWire, request: ServerRequest, model: Model, first: Post, guarded: Guarded | None = None
) -> Exchange:
    return Exchange(
        wire=wire,
        request=request,
        model=model,
        first=first,
        same=bool(first.body),
        guarded=guarded,
    )


def _pinned(request: ServerRequest, name: str) -> ServerRequest:
    """The request for that model, if one was asked for by name; all other fields stay as the client wrote them."""
    if not name or name == request.model:
        return request
    given = fields(request) | {"model": Raw(msgspec.json.encode(name))}
    return msgspec.structs.replace(request, body=msgspec.json.encode(given))
