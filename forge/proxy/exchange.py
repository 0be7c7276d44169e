"""An exchange: one request of a client, how the backend is asked for it, and what the answer says of itself."""

import re
import time
import uuid

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from forge.connection import Setup
from forge.proxy.admission import Admission
from forge.proxy.errors import naming_a_model
from forge.proxy.fitting import Fitted, fitted
from forge.proxy.policy import ModelPolicy, Policy
from forge.proxy.room import Room
from forge.proxy.tools import Guard, Guards
from forge.proxy.turn import Turn, ask, opening, plain_request, verbatim_turn, written_turn
from forge.proxy.upstream import Caller, Post, Refusal, Upstream
from stages.effect import Request
from stages.policy.rules import pending
from stages.state import State
from stages.wire.answers import Envelope
from stages.wire.overflow import overflow_of
from stages.wire.served import Protocol, RequestError, ServerRequest, fields, refusal
from stages.wire.server_wires import ServerWire
from stages.wire.wires import WireName

VERBATIM: dict[WireName, Protocol] = {"openai": "chat", "anthropic": "messages"}
"""The protocol of a client whose bodies such a backend takes as they are."""


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
    room: Room | None = None
    """For a server that makes as much room as it is asked for."""

    @property
    def window(self) -> int:
        """Tokens of context that a conversation may have."""
        return self.room.limit if self.room else self.setup.context_tokens

    def setup_for(self, request: ServerRequest) -> Setup:
        """The setup, with room for the request."""
        return self.room.setup_for(self.setup, request) if self.room else self.setup

    def policy_for(self, request: ServerRequest) -> ModelPolicy:
        """What holds for the model of this request: as it was asked for by name, or by the client, or as it is."""
        return self.policy.of(self.name) if self.name else self.policy.of(request.model, self.setup.model)


_KIND = re.compile(r"[A-Za-z0-9_.-]+")
"""Kinds that may stand in a header: the client's own word."""


class Guarded(Struct, frozen=True):
    """What guards a reply."""

    guard: Guard
    turn: Turn
    state: State

    def admission(self, *, early: bool) -> Admission:
        """What may be shown of a reply before it is judged: no text where words are no answer yet.

        `early`: calls, unless a policy may refuse them.
        """
        rules = self.guard.rules
        welcome = rules.on_text == "accept" and not pending(rules, self.state.ledger)
        return Admission(self.guard.holding, early=early and not self.guard.applied.guards, silent=not welcome)


class Exchange(Struct, frozen=True, kw_only=True):
    """A request on its way. `same`: the backend's bytes are the client's; `guarded` is None where it goes through.

    `given` is what the client asks for, `request` what is made of it for the backend; `cut` of its messages were left
    out or shortened. `overflow` is the refusal after which that was done.
    """

    wire: ServerWire
    given: ServerRequest
    request: ServerRequest
    model: Model
    first: Post
    same: bool
    guarded: Guarded | None
    cut: int = 0
    overflow: Refusal | None = None

    def envelope(self) -> Envelope:
        """What an answer of forge's own says beside the reply."""
        return Envelope(id=self.wire.prefix + uuid.uuid4().hex, created=int(time.time()), request=self.given)

    @property
    def upstream(self) -> Upstream:
        """The backend."""
        return self.model.upstream

    @property
    def policy(self) -> ModelPolicy:
        """What holds for its model."""
        return self.model.policy_for(self.given)

    @property
    def compacted(self) -> str:
        """What was cut, in words."""
        return f"{self.cut} message{'s' if self.cut > 1 else ''}"

    @property
    def left_out(self) -> tuple[str, ...]:
        """Kinds of what the backend gets a few words for, as it speaks another protocol."""
        kinds = () if self.same else tuple(each.kind for each in self.given.foreign if each.fate == "noted")
        return tuple(dict.fromkeys(kind if _KIND.fullmatch(kind) else "other" for kind in kinds))[:8]

    def told(self, refusal: Refusal) -> Refusal:
        """The refusal as the client is told of it: the size of a prompt that is too long is that of its own."""
        if self.overflow and overflow_of(refusal.fault):
            return self.overflow
        return refusal if self.model.name or self.model.setup.model else naming_a_model(refusal)

    def post(self, request: Request) -> Post:
        """A further request of the same client."""
        return Post(request=request, body=request.body if self.same else b"", caller=self.first.caller)


def exchange_of(wire: ServerWire, request: ServerRequest, model: Model, caller: Caller) -> Exchange | RequestError:
    """How the request is served; why it cannot be."""
    same = request.protocol == model.verbatim
    if same:
        request = pinned(request, model.name)
    elif error := refusal(request):
        return error
    policy = model.policy_for(request)
    fit = Fitted(request, 0)
    if policy.context_tokens is not None:
        fit = fitted(request, model.setup, policy.context_tokens, same=same)
    return exchange_for(wire, request, fit, model, caller, same=same)


def exchange_for(
    wire: ServerWire, given: ServerRequest, fit: Fitted, model: Model, caller: Caller, *, same: bool
) -> Exchange:
    request = fit.request
    whole = request.n > 1 or request.logprobs
    guarded = None
    if request.tools and request.choice.mode != "none" and not whole:
        guarded, first = _guarded(given, request, model, same=same)
    else:
        first = Request() if same else plain_request(request, model.setup_for(request), model.name)
    return Exchange(
        wire=wire,
        given=given,
        request=request,
        model=model,
        first=Post(request=first, body=request.body if same else b"", caller=caller),
        same=same,
        guarded=guarded,
        cut=fit.cut,
    )


def _guarded(given: ServerRequest, request: ServerRequest, model: Model, *, same: bool) -> tuple[Guarded, Request]:
    """What guards the reply, and the first request; one that is sent as it came is in its body.

    Rules look at the session as the client has it, of which the backend may be sent less.
    """
    guard = model.guards.of(request, model.policy_for(given))
    ledger, cleared = guard.applied.ledger(given.history), guard.applied.record(given.history, request.history)
    state = replace(opening(request, model.max_retries, asked=same, ledger=ledger), cleared=cleared)
    if same:
        return Guarded(guard, verbatim_turn(request, guard, model.setup), state), Request()
    turn = written_turn(request, guard, model.setup_for(request), model.name)
    first = ask(turn, state)
    if first is None:
        raise TypeError("a turn without a first request")
    return Guarded(guard, turn, first.state), first.request


def pinned(request: ServerRequest, name: str) -> ServerRequest:
    """The request for that model, if one was asked for by name; all other fields stay as the client wrote them."""
    if not name or name == request.model:
        return request
    given = fields(request) | {"model": Raw(msgspec.json.encode(name))}
    return replace(request, body=msgspec.json.encode(given))
