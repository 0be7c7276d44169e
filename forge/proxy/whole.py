"""A whole reply: asked for, judged, asked for again; then the client's answer."""

from msgspec.structs import replace

from forge.proxy.errors import nothing_usable, refusal_answer
from forge.proxy.exchange import Exchange
from forge.proxy.passage import Notes, RequestOutcome
from forge.proxy.second_try import after_refusal
from forge.proxy.turn import Accepted, Again, Exhausted, Step
from forge.proxy.upstream import Refusal, Whole
from stages.effect import Reply
from stages.wire.served import WireAnswer


async def whole_answer(exchange: Exchange, notes: Notes) -> WireAnswer:
    """The answer; `notes` are told how it came about."""
    post, notes.attempts = exchange.first, 0
    notes.compacted, notes.left_out = exchange.shaped.compacted, exchange.left_out
    asked = exchange.guarded.first if exchange.guarded else None
    while True:
        notes.attempts += 1
        got = await exchange.upstream.whole(post)
        if isinstance(got, Refusal):
            if notes.attempts == 1:
                got = await exchange.sized(got)
                if again := after_refusal(exchange, got):
                    return await whole_answer(again, notes)
            step: Step | None = exchange.unanswered(asked, got)
        else:
            notes.usage = got.reply.usage or notes.usage
            step = exchange.judged(asked, got.reply)
        if not isinstance(step, Again):
            return _ended(exchange, notes, got, step)
        notes.refused += step.refused
        asked, post = step, exchange.post(step)


def _ended(exchange: Exchange, notes: Notes, got: Whole | Refusal, step: Accepted | Exhausted | None) -> WireAnswer:
    """The client's answer after the last of the backend's."""
    retried = notes.attempts > 1
    match step:
        case Exhausted(reply=reply):
            error = None if reply.text.strip() or reply.calls else nothing_usable(notes.attempts)
            answer = exchange.wire.encode_error(error) if error else _encoded(exchange, reply)
            return _told(answer, notes, "exhausted")
        case Accepted(reply=reply, clean=False, rescued=rescued):
            notes.rescued = rescued
            return _told(_encoded(exchange, reply), notes, "retried" if retried else "repaired")
        case Accepted() | None if isinstance(got, Whole):
            outcome: RequestOutcome = "passed" if step is None else "retried" if retried else "clean"
            return _told(_passed(exchange, got), notes, outcome)
        case _:
            notes.compacted = ""
            answer = refusal_answer(exchange.wire, exchange.told(got), same=exchange.same)
            return _told(answer, notes, "error")


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


def _told(answer: WireAnswer, notes: Notes, outcome: RequestOutcome) -> WireAnswer:
    notes.outcome = outcome
    told = (("x-forge-outcome", outcome), ("x-forge-attempts", str(notes.attempts)))
    return WireAnswer(body=answer.body, status=answer.status, headers=(*answer.headers, *told))
