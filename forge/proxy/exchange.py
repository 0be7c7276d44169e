"""An exchange: one client request and how the backend is asked for it. Pure.

If the backend speaks the client's protocol, the request is sent unchanged, and a retry appends messages to it;
otherwise it is rewritten.
"""

import re

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace
from returns.result import Success

from forge.connection import Setup
from forge.observation import ModelAsked, Observed
from forge.proxy.admission import Admission
from forge.proxy.errors import naming_a_model
from forge.proxy.fitting import refitted
from forge.proxy.judges import ReplyJudge
from forge.proxy.model import Model
from forge.proxy.policy import ModelPolicy
from forge.proxy.shaping import Shaped, shaped_request
from forge.proxy.upstream import Forwarded, Post, Refusal
from forge.proxy.writing import plain_request, writing
from stages import Stage, fold, on, pipeline, send
from stages.effect import Reply, Request, Send
from stages.pipeline import advance
from stages.rules import Rules, needed_tools, pending
from stages.state import Awaiting, Folded, Prepared, Ready, State
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

_UNBOUND = send(Rules(tools=(), on_text="accept"))
"""Accepts text: rules of order may leave no tool to call, but a text answer is still possible."""


class Again(Struct, frozen=True, kw_only=True):
    """A request to the model whose reply is judged; that of a retry has the corrections in its history.

    `last` is what the client gets if no reply comes; None before the first reply. `refused` names the calls that were
    corrected, or `a text`. `constrained`: the request was rewritten, whatever the client's protocol. `constrains`:
    whether retries may be; not after the backend refused one.
    """

    judge: ReplyJudge
    state: State
    request: Request
    last: Reply | None = None
    refused: tuple[str, ...] = ()
    constrained: bool = False
    constrains: bool


class Exchange(Struct, frozen=True, kw_only=True):
    """A request in progress. `same`: backend and client speak the same protocol. `asked`: None if nothing is judged.

    `envelope` holds the client's request and the fields of forge's own answers; `shaped` is the request for the
    backend. `overflow` is the refusal after which it was compacted, `cuts` the number of compactions.
    """

    wire: ServerWire
    envelope: Envelope
    shaped: Shaped
    model: Model
    forwarded: Forwarded
    same: bool
    asked: Again | None = None
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

    @property
    def unmodelled(self) -> bool:
        """Whether it asks for several choices or log-probabilities: the backend's own bytes are the only answer."""
        return self.request.n > 1 or self.request.logprobs

    @property
    def first(self) -> Post:
        """The first request."""
        if self.same:
            return Post(request=Request(), body=self.request.body, forwarded=self.forwarded)
        request, model = self.request, self.model
        if self.asked:
            first = self.asked.request
        else:
            first = plain_request(request, model.setup_for(request), model.name_for(request))
        return Post(request=first, forwarded=self.forwarded)

    def post(self, again: Again) -> Post:
        """The next request in this exchange."""
        body = again.request.body if self.same and not again.constrained else b""
        return Post(request=again.request, body=body, forwarded=self.forwarded)

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
        judge = self.asked.judge
        welcome = judge.rules.on_text == "accept" and not pending(judge.rules, self.asked.state.ledger)
        return Admission(judge.holding, silent=not welcome)

    @property
    def strips(self) -> bool:
        """Whether reasoning is hidden from the client; never with several choices or log-probabilities."""
        return self.policy.reasoning_in_replies == "strip" and not self.unmodelled

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
    envelope = replace(envelope, request=request)
    return _opened(Exchange(wire=wire, envelope=envelope, shaped=shaped, model=model, forwarded=forwarded, same=same))


def _opened(exchange: Exchange) -> Exchange:
    """The exchange with what is asked first, if its replies are judged.

    The rules look at the client's whole session, even if the backend is sent less of it.
    """
    given, request, model, same = exchange.given, exchange.request, exchange.model, exchange.same
    if not request.tools or request.choice.mode == "none" or exchange.unmodelled:
        return exchange
    judge = model.judges.of(request, exchange.policy, model.setup.mode)
    ledger = judge.applied.ledger(given.history)
    # The client's own body is sent without a stage, so it takes no call of the budget.
    budget = replace(ledger.budget, calls=model.max_retries + (0 if same else 1))
    state = State(
        history=request.history,
        cleared=judge.applied.record(given.history, request.history),
        ledger=replace(ledger, budget=budget, turn=ledger.turn + same),
        phase=Awaiting(effect=Send(request=Request(), turn=ledger.turn)) if same else Ready(),
    )
    asked = Again(judge=judge, state=state, request=Request(), constrains=model.constrains)
    first = asked if same else next_attempt(exchange, asked, state)
    if first is None:
        raise TypeError("a turn without a first request")
    return replace(exchange, asked=first)


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


# Asking: the requests of a judged turn.


def next_attempt(exchange: Exchange, asked: Again, state: State) -> Again | None:
    """The next request from this state; None if the turn has no attempts left."""
    constraining = _constraining(exchange, asked, state)
    match advance(constraining or _asking(exchange, asked), state):
        case Success(State(phase=Awaiting(effect=Send(request=request))) as sent):
            return replace(asked, state=sent, request=request, refused=(), constrained=constraining is not None)
        case _:
            return None


def _asking(exchange: Exchange, asked: Again) -> Stage:
    """The stages that write a request of the turn."""
    request, setup = exchange.request, exchange.model.setup_for(exchange.request)
    if not exchange.same:
        return _written(exchange, asked.judge.rules, setup)

    @on(Folded)
    def write(state: State, _: Folded) -> State:
        sent = as_sent(request)
        added = wire_of(setup.dialect).messages(state.history[len(request.history) :])
        return state.to(Prepared(request=replace(sent, messages=sent.messages + added)))

    return pipeline(fold(), write, _UNBOUND)


def _constraining(exchange: Exchange, asked: Again, state: State) -> Stage | None:
    """The stages that write a constrained retry, for turns in which text is not an answer; None to retry unconstrained.

    The first request is constrained too if tools are in the prompt already.

    While steps are pending, the model can call only the tools that they need: a model that has skipped a step skips it
    again, whatever it is told. If the client requires a call, the model can only make a call: servers accept that
    requirement but do not enforce it. Constrained calls arrive as text, so rescue must be on. Requests with content
    that forge does not model are not constrained, because rewriting would lose it.
    """
    judge, request, setup = asked.judge, exchange.request, exchange.model.setup_for(exchange.request)
    if not (asked.constrains and judge.rules.calls.rescue_enabled):
        return None
    if any(foreign.fate != "dropped" for foreign in request.foreign):
        return None
    if setup.mode == "native" and len(state.history) == len(request.history):
        return None
    left = pending(judge.rules, state.ledger)
    needed = needed_tools(judge.applied.rules, left).intersection(tool.name for tool in judge.rules.tools)
    if not needed and request.choice.mode != "required":
        return None
    rules = judge.applied.among(needed) if needed else judge.rules
    return _written(exchange, rules, replace(setup, mode="constrained"))


def _written(exchange: Exchange, rules: Rules, setup: Setup) -> Stage:
    request = exchange.request
    return pipeline(*writing(request, rules, setup, exchange.model.name_for(request)), _UNBOUND)


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
        again = exchange_of(exchange.wire, exchange.envelope, in_text, exchange.forwarded)
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
    cuts = exchange.cuts + 1
    return _opened(replace(exchange, shaped=less, asked=None, overflow=exchange.overflow or refusal, cuts=cuts))


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
    return _opened(replace(exchange, shaped=shaped, asked=None))
