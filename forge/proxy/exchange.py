"""An exchange: one client request and how the backend is asked for it. Pure."""

import re

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from forge.observation import ModelAsked, Observed
from forge.proxy.admission import Admission
from forge.proxy.errors import naming_a_model
from forge.proxy.fitting import refitted
from forge.proxy.model import Model
from forge.proxy.policy import ModelPolicy
from forge.proxy.shaping import Shaped, shaped_request
from forge.proxy.tool_offer import in_plain_words
from forge.proxy.turn import (
    Again,
    Exhausted,
    Judgement,
    Turn,
    ask,
    judged,
    opening,
    unanswered,
)
from forge.proxy.upstream import Forwarded, Post, Refusal
from forge.proxy.writing import plain_request
from stages.effect import Reply, Request
from stages.rules import pending
from stages.wire.faults import Overflow, overflow_of
from stages.wire.server.errors import RequestError
from stages.wire.server.request import ServerRequest, as_sent, fields
from stages.wire.server.streams import Envelope
from stages.wire.server.translation import refusal
from stages.wire.server_wires import ServerWire
from stages.wire.valid import alternating_history, system_first, valid_history
from stages.wire.wires import Dialect, in_dialect
from stages.wire.wires import wire as wire_of

_KIND = re.compile(r"[A-Za-z0-9_.-]+")
"""Kinds that are safe in a header: clients choose the word."""


class Exchange(Struct, frozen=True, kw_only=True):
    """A request in progress. `same`: backend and client speak the same protocol. `asked`: None if nothing is judged.

    `envelope` holds the client's request and the fields of forge's own answers; `shaped` is the request for the
    backend. `overflow` is the refusal after which it was compacted, `cuts` the number of compactions.
    """

    wire: ServerWire
    envelope: Envelope
    shaped: Shaped
    model: Model
    first: Post
    same: bool
    asked: Again | None
    overflow: Refusal | None = None
    cuts: int = 0

    @property
    def given(self) -> ServerRequest:
        """The client's request."""
        return self.envelope.request

    @property
    def request(self) -> ServerRequest:
        """The request for the backend."""
        return self.shaped.request

    def observed(self) -> Observed:
        """An observation of one model call."""
        model, request = self.model, self.request
        name = model.name_for(request) or request.model or model.setup.model
        return Observed(ModelAsked(model=name, endpoint=model.endpoint, streamed=request.stream))

    @property
    def policy(self) -> ModelPolicy:
        """The policy for its model."""
        return self.model.policy_for(self.given)

    def admission(self) -> Admission:
        """The initial admission of a streamed reply; silent while a text would not be an acceptable answer."""
        if self.asked is None:
            return Admission(None)
        judge = self.asked.turn.judge
        welcome = judge.rules.on_text == "accept" and not pending(judge.rules, self.asked.state.ledger)
        return Admission(judge.holding, silent=not welcome)

    @property
    def strips(self) -> bool:
        """Whether reasoning is hidden from the client; never with several choices or log-probabilities."""
        several = self.request.n > 1 or self.request.logprobs
        return self.policy.reasoning_in_replies == "strip" and not several

    @property
    def left_out(self) -> tuple[str, ...]:
        """The kinds of content that a backend of another protocol gets only as a note."""
        kinds = () if self.same else tuple(each.kind for each in self.given.foreign if each.fate == "noted")
        return tuple(dict.fromkeys(kind if _KIND.fullmatch(kind) else "other" for kind in kinds))[:8]

    async def sized(self, refusal: Refusal) -> Refusal:
        """The refusal with the exact size of the prompt, counted if the server gave only a lower bound."""
        overflow, count = refusal.overflow, self.model.count
        if overflow is None or not overflow.at_least or count is None:
            return refusal
        return replace(refusal, tokens=await count(self.first.body or self.first.request.body) or 0)

    def told(self, refusal: Refusal) -> Refusal:
        """The refusal for the client: an overflow reports the size of the client's own prompt."""
        if self.overflow and overflow_of(refusal.fault):
            return self.overflow
        return refusal if self.model.name or self.model.setup.model else naming_a_model(refusal)

    def judged(self, asked: Again | None, reply: Reply) -> Judgement | None:
        """The step after the reply; None if replies are not judged."""
        return self._in_plain_words(judged(asked, reply)) if asked else None

    def unanswered(self, asked: Again | None, refusal: Refusal) -> Judgement | None:
        """The step after the backend refused the request; None if the client gets the error."""
        return self._in_plain_words(unanswered(asked, refusal.fault)) if asked else None

    def _in_plain_words(self, step: Judgement | None) -> Judgement | None:
        """The step with calls of the added `respond` tool turned into text."""
        if step is None or isinstance(step, Again) or not self.shaped.responds:
            return step
        plain = in_plain_words(step.reply)
        if plain is step.reply:
            return step
        return Exhausted(plain) if isinstance(step, Exhausted) else replace(step, reply=plain, clean=False)

    def post(self, again: Again) -> Post:
        """The next request in this exchange."""
        body = again.request.body if self.same and not again.constrained else b""
        return Post(request=again.request, body=body, forwarded=self.first.forwarded)


def exchange_of(wire: ServerWire, envelope: Envelope, model: Model, forwarded: Forwarded) -> Exchange | RequestError:
    """The exchange for a request, or the error if it cannot be served."""
    request = envelope.request
    model = model.asked_about(request)
    same = model.passes(request)
    if same:
        request = adapted(request, model.name, model.setup.dialect)
    elif error := refusal(request):
        return error
    names = tuple(filter(None, (model.name, request.model, model.setup.model)))
    shaped = shaped_request(request, model.policy_for(request), model.setup, names, same=same)
    if isinstance(shaped, RequestError):
        return shaped
    return _exchange_for(wire, replace(envelope, request=request), shaped, model, forwarded, same=same)


def _exchange_for(
    wire: ServerWire, envelope: Envelope, shaped: Shaped, model: Model, forwarded: Forwarded, *, same: bool
) -> Exchange:
    """The exchange for an already shaped request."""
    request = shaped.request
    whole = request.n > 1 or request.logprobs
    judges = request.tools and request.choice.mode != "none" and not whole
    asked = _first_asked(envelope.request, request, model, same=same) if judges else None
    if asked is not None:
        first = asked.request
    else:
        first = Request() if same else plain_request(request, model.setup_for(request), model.name_for(request))
    return Exchange(
        wire=wire,
        envelope=envelope,
        shaped=shaped,
        model=model,
        first=Post(request=first, body=request.body if same else b"", forwarded=forwarded),
        same=same,
        asked=asked,
    )


def _first_asked(given: ServerRequest, request: ServerRequest, model: Model, *, same: bool) -> Again:
    """The first request of a judged turn; empty if the client's own body is sent unchanged.

    The rules look at the client's whole session, even if the backend is sent less of it.
    """
    judge = model.judges.of(request, model.policy_for(given))
    ledger, cleared = judge.applied.ledger(given.history), judge.applied.record(given.history, request.history)
    state = replace(opening(request, model.max_retries, asked=same, ledger=ledger), cleared=cleared)
    turn = Turn(
        given=given,
        request=request,
        judge=judge,
        setup=model.setup_for(request),
        model=model.name_for(request),
        same=same,
        constrains=model.constrains,
    )
    if same:
        return Again(turn=turn, state=state, request=Request())
    first = ask(turn, state)
    if first is None:
        raise TypeError("a turn without a first request")
    return first


def adapted(request: ServerRequest, name: str, dialect: Dialect) -> ServerRequest:
    """The client's request as this backend takes it: for the configured model, in its dialect; else unchanged.

    An option that the backend lacks is passed on, so that the client hears of it.
    """
    if not dialect.adapts and name in ("", request.model):
        return request
    given = fields(request)
    wanted = {"model": Raw(msgspec.json.encode(name))} if name and name != request.model else {}
    lacking = {option: value for option, value in given.items() if dialect.option_names.get(option) == ""}
    own = lacking | in_dialect({**given, **wanted}, dialect)
    return request if own == given else replace(request, body=msgspec.json.encode(own))


# After a refusal: the request that replaces one that the backend refused.

_REFUSED = frozenset({400, 422, 500})
"""Statuses with which servers refuse a history: llama.cpp answers 500 where its chat template or parser fails."""

MOST_CUTS = 3
"""Maximum number of compactions for a server that stops counting tokens at its limit.

Each raises the assumed tokens per character until the last prompt's estimate exceeds the limit. After three, the rate
has reached its maximum of 1, so a fourth would cut nothing more.
"""


def after_refusal(exchange: Exchange, refusal: Refusal) -> Exchange | None:
    """The exchange to try after the backend refused a request; None if the refusal is the answer."""
    if refusal.overflow is not None:
        return _with_less(exchange, refusal, refusal.overflow)
    if in_text := exchange.model.after_refusal(exchange.given, refusal.fault):
        again = exchange_of(exchange.wire, exchange.envelope, in_text, exchange.first.forwarded)
        return None if isinstance(again, RequestError) else again
    return _with_valid_history(exchange) if refusal.fault.status in _REFUSED else None


def _with_less(exchange: Exchange, refusal: Refusal, overflow: Overflow) -> Exchange | None:
    """The exchange with a compacted conversation; None if the client gets the overflow error.

    Tried once if the server reports the size of the prompt, several times if it reports a lower bound.
    """
    model, given, policy = exchange.model, exchange.given, exchange.policy
    most = MOST_CUTS if overflow.at_least else 1
    if exchange.cuts >= most or not policy.compacts_overflow(given):
        return None
    setup, limit = model.setup_for(given), policy.context_tokens or 0
    fit = refitted(exchange.shaped.whole, exchange.request, setup, overflow, limit, same=exchange.same)
    if fit is None:
        return None
    less = replace(exchange.shaped, request=fit.request, cut=fit.cut)
    again = _exchange_for(exchange.wire, exchange.envelope, less, model, exchange.first.forwarded, same=exchange.same)
    return replace(again, overflow=exchange.overflow or refusal, cuts=exchange.cuts + 1)


def _with_valid_history(exchange: Exchange) -> Exchange | None:
    """The exchange with a history that strict servers and templates accept; None if the client's own is valid already.

    With a damaged call in the history, llama.cpp would answer 500 to the conversation forever. Not tried if the request
    has content that forge does not model: it would be lost.
    """
    request = exchange.request
    if not exchange.same or any(foreign.fate != "dropped" for foreign in request.foreign):
        return None
    valid = alternating_history if exchange.model.setup.alternating else valid_history
    history = valid(system_first(request.history))
    if history == request.history:
        return None
    messages = wire_of(exchange.model.setup.dialect).messages(history)
    body = replace(as_sent(request), messages=messages).body
    shaped = replace(exchange.shaped, request=replace(request, body=body, history=history))
    return _exchange_for(exchange.wire, exchange.envelope, shaped, exchange.model, exchange.first.forwarded, same=True)
