"""A whole reply: asked for, judged, asked for again; then the client's answer."""

from msgspec.structs import replace

from forge.proxy.errors import nothing_usable, refusal_answer
from forge.proxy.exchange import Exchange
from forge.proxy.passage import Notes, Outcome
from forge.proxy.second_try import after_refusal
from forge.proxy.turn import Accepted, Again, Exhausted
from forge.proxy.upstream import Refusal, Whole
from stages.effect import Reply
from stages.wire.answers import WireAnswer


async def whole_answer(exchange: Exchange, notes: Notes) -> WireAnswer:
    """The answer; `notes` are told how it came about."""
    post, attempts = exchange.first, 0
    notes.compacted = exchange.shaped.compacted
    state = exchange.guarded.state if exchange.guarded else None
    while True:
        attempts += 1
        got = await exchange.upstream.whole(post)
        if isinstance(got, Refusal):
            if attempts == 1 and (again := after_refusal(exchange, got)):
                return await whole_answer(again, notes)
            notes.compacted = ""
            answer = refusal_answer(exchange.wire, exchange.told(got), same=exchange.same)
            return _told(answer, notes, attempts, "error")
        notes.usage = got.reply.usage or notes.usage
        if exchange.guarded is None or state is None:
            return _told(_passed(exchange, got), notes, attempts, "passed")
        match exchange.judged(exchange.guarded, state, got.reply):
            case Accepted(reply=reply, clean=clean, rescued=rescued):
                notes.rescued = rescued
                outcome: Outcome = "retried" if attempts > 1 else "clean" if clean else "repaired"
                answer = _passed(exchange, got) if clean else _encoded(exchange, reply)
                return _told(answer, notes, attempts, outcome)
            case Again(state=state, refused=refused) as retry:
                notes.refused += refused
                post = exchange.post(retry)
            case Exhausted(reply=reply):
                error = None if reply.text.strip() or reply.calls else nothing_usable(attempts)
                answer = exchange.wire.encode_error(error) if error else _encoded(exchange, reply)
                return _told(answer, notes, attempts, "exhausted")


def _passed(exchange: Exchange, got: Whole) -> WireAnswer:
    """The backend's own bytes, where they are of the client's protocol and lack nothing."""
    request, passed = exchange.request, exchange.wire.passed if exchange.same and got.raw else None
    several = request.n > 1 or request.logprobs
    bare = exchange.strips and bool(got.reply.reasoning)
    if passed is not None and not bare and (several or passed(exchange.envelope()).takes(got.raw)):
        return WireAnswer(body=got.raw)
    return _encoded(exchange, got.reply)


def _encoded(exchange: Exchange, reply: Reply) -> WireAnswer:
    shown = replace(reply, reasoning="", sealed="") if exchange.strips else reply
    return WireAnswer(body=exchange.wire.encode_reply(shown, exchange.envelope()))


def _told(answer: WireAnswer, notes: Notes, attempts: int, outcome: Outcome) -> WireAnswer:
    notes.outcome, notes.attempts = outcome, attempts
    told = (("x-forge-outcome", outcome), ("x-forge-attempts", str(attempts)))
    return WireAnswer(body=answer.body, status=answer.status, headers=(*answer.headers, *told))
