"""Second try: what is asked instead of a request that the backend has refused."""

from msgspec.structs import replace

from forge.proxy.exchange import Exchange, exchange_for, exchange_of
from forge.proxy.shaping import refitted
from forge.proxy.upstream import Refusal
from stages.wire.deltas import Overflow
from stages.wire.served import RequestError, as_sent
from stages.wire.valid import alternating_history, system_first, valid_history
from stages.wire.wires import wire as wire_of

REFUSED = frozenset({400, 422, 500})
"""The statuses with which servers refuse a history."""

MOST_CUTS = 3
"""Maximum number of times that a conversation is compacted for a server that stops counting at its limit."""


def after_refusal(exchange: Exchange, refusal: Refusal) -> Exchange | None:
    """What is asked instead of a request that the backend has refused; None where that is the answer."""
    if refusal.overflow is not None:
        return _with_less(exchange, refusal, refusal.overflow)
    if in_text := exchange.model.after_refusal(exchange.given, refusal.fault):
        again = exchange_of(exchange.wire, exchange.given, in_text, exchange.first.caller)
        return None if isinstance(again, RequestError) else again
    return _with_valid_history(exchange) if refusal.fault.status in REFUSED else None


def _with_less(exchange: Exchange, refusal: Refusal, overflow: Overflow) -> Exchange | None:
    """The exchange with a shorter conversation; None where the client is to be told that it does not fit.

    Once, where the server says how long it is; where it says that it has at least so many tokens, a few times.
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
    again = exchange_for(exchange.wire, given, less, model, exchange.first.caller, same=exchange.same)
    return replace(again, overflow=exchange.overflow or refusal, cuts=exchange.cuts + 1)


def _with_valid_history(exchange: Exchange) -> Exchange | None:
    """The exchange with a history that strict servers and templates take; None where that is the client's own.

    A damaged call in it, and llama.cpp answers 500 to the conversation for good. What has no noun would be lost.
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
    return exchange_for(exchange.wire, exchange.given, shaped, exchange.model, exchange.first.caller, same=True)
