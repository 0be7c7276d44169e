"""One guarded turn: judging the reply to a client's request, and retrying with corrections. Pure."""

from collections.abc import Sequence
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace
from returns.result import Failure, Success

from forge.proxy.exchange import Again, Exchange, next_attempt
from forge.proxy.judges import ReplyJudge
from forge.proxy.shaping import in_plain_words
from stages.deliver import deliver
from stages.effect import Execute, Fault, RawCall, Replied, Reply
from stages.message import History, Tool, ToolCall, call_id, is_nudge
from stages.objection import AmongWords, BadArguments, BesideDamage, Guessed, Stop, UnknownTool, unmarked
from stages.pipeline import advance
from stages.reading.replies import Judged
from stages.rules import pending
from stages.schema import Misfit
from stages.state import Awaiting, Done, Ready, State
from stages.wire.faults import overflow_of
from stages.wire.server.request import ServerRequest
from stages.wire.valid import TOOL_NAME, call_as_text, is_object


class Accepted(Struct, frozen=True):
    """The reply for the client. `clean`: unchanged; otherwise with calls found in text or repaired."""

    reply: Reply
    clean: bool
    rescued: tuple[str, ...] = ()
    """The calls that were found in text or repaired: name and repairs of each."""


class Exhausted(Struct, frozen=True):
    """Every attempt failed. `reply` is the last one, as the client gets it."""

    reply: Reply


TurnStep = Accepted | Again | Exhausted


def judged(exchange: Exchange, asked: Again, reply: Reply) -> TurnStep:
    """The step after a reply."""
    step = _judged(exchange, asked, reply)
    return step if isinstance(step, Again) else _in_plain_words(exchange, step)


def _judged(exchange: Exchange, asked: Again, reply: Reply) -> TurnStep:
    judge, given, state = asked.judge, exchange.given, asked.state
    match deliver(state, Replied(reply=reply)).bind(lambda answered: advance(judge.judging, answered)):
        case Success(State(phase=Awaiting(effect=Execute(calls=calls), batch=batch))):
            if _as_given(reply, calls):
                return Accepted(reply, clean=True)
            return Accepted(_with_calls(reply, calls, batch.said.text), clean=False, rescued=_rescued(calls))
        case Success(State(phase=Done())):
            # If the model was asked whether it meant a call, and it did not, the first reply is the answer.
            first = asked.last if state.ledger.asked_about is not None else None
            shown = first or reply
            answer = _without_refused(judge, state, shown) or shown
            return Accepted(answer, clean=answer is reply)
        case Success(State(phase=Ready()) as corrected):
            again, last = next_attempt(exchange, asked, corrected), _last_reply(given, judge, state, reply)
            if again is None:
                return Exhausted(last)
            return replace(again, last=last, refused=_refused(corrected.history[len(state.history) :]))
        case Failure():
            return Exhausted(_last_reply(given, judge, state, reply))
        case moved:
            raise TypeError(f"a turn ended in {moved}")


def unanswered(exchange: Exchange, asked: Again, fault: Fault) -> TurnStep | None:
    """The step after the backend refused a request; None if the client should get the error.

    If corrections made the prompt too long, the turn ends. If the backend refused the schema of a constrained retry,
    which no client asked for, the turn continues without constraints.
    """
    ended = _in_plain_words(exchange, Exhausted(asked.last)) if asked.last else None
    if overflow_of(fault):
        return ended
    refused = 400 <= (fault.status or 0) < 500 and fault.status not in (408, 429)  # timeouts and rate limits
    if not (refused and asked.constrained):
        return None
    state = asked.state.reshape(asked.state.history).to(Ready())
    return next_attempt(exchange, replace(asked, constrains=False), state) or ended


def _in_plain_words(exchange: Exchange, step: Accepted | Exhausted) -> Accepted | Exhausted:
    """The step with calls of the added `respond` tool turned into text."""
    plain = in_plain_words(step.reply) if exchange.shaped.responds else step.reply
    if plain is step.reply:
        return step
    return Exhausted(plain) if isinstance(step, Exhausted) else replace(step, reply=plain, clean=False)


def _as_given(reply: Reply, calls: tuple[ToolCall, ...]) -> bool:
    """Whether these are the reply's own calls, unchanged except for ids.

    Agents run no calls of a truncated reply, so if all calls are complete its finish reason must not be `length`.
    """
    own = len(calls) == len(reply.calls) and all(call.origin == "native" and not call.repairs for call in calls)
    return own and reply.finish != "length"


def _rescued(calls: tuple[ToolCall, ...]) -> tuple[str, ...]:
    notes = ((call.name, *([] if call.origin == "native" else [call.origin]), *call.repairs) for call in calls)
    return tuple(f"{name} ({', '.join(how)})" for name, *how in notes if how)


def _refused(added: History) -> tuple[str, ...]:
    nudges = filter(is_nudge, added)
    return tuple(dict.fromkeys(nudge.name if isinstance(nudge, Tool) else "a text" for nudge in nudges))


# Replies that do not reach the client as they came: those with repaired calls, and the last one of a failed turn.
#
# Agents take a text for the end of their work. So the calls of the last attempt are passed on although they do not fit:
# the client's own tool reports what is wrong, and the agent continues. Unreadable arguments become `{}`, unless the
# tool would accept that. A call that could run but must not is returned as text: one that a guard refuses, one of a
# tool that the client offered and excluded, or one for which `{}` would be valid arguments.

_REPEATS = "a call in words that only repeats what was shown is not run"

_NO_ARGUMENTS = "{}"
"""Replaces unreadable arguments."""


def _with_calls(reply: Reply, calls: Sequence[ToolCall], text: str) -> Reply:
    """The reply with the judged calls, under the server's own ids if it gave any.

    They are complete even if the reply ended at a token limit.
    """
    ids = [call.id for call in reply.calls] if reply.calls else [""] * len(calls)
    made = (RawCall(id=i, name=c.name, arguments=c.arguments) for i, c in zip(ids, calls, strict=False))
    return replace(reply, text=text, calls=tuple(made), finish="tool_calls")


def _last_reply(request: ServerRequest, judge: ReplyJudge, state: State, reply: Reply) -> Reply:
    """The last attempt for the client: with all of its calls, or with all of them as text.

    `state` is the one in which it was judged. Calls of a reply that ended at a token limit become text.
    """
    reading = judge.read(reply)
    sifted = judge.sift(state, reading)
    own = sifted.reading.calls
    made = own if request.parallel else own[:1]
    if judge.applied.guards:
        made = made[: judge.rules.calls.max_calls_per_reply]
    calls = [_handed_on(request, judge, n, judged) for n, judged in enumerate(made, start=1)]
    going = [call for call in calls if call is not None]
    shown = _shown(own)
    said = reply.text.strip() and not calls
    repeats = bool(sifted.repeated) and not own
    refusal = _REPEATS if repeats else _refusal(judge, state, [*going, *shown]) if going or shown or said else ""
    if refusal:
        # The client must not find a call in the text again.
        return _told_as_refused(reply, reading.said.text, reading.calls, refusal)
    if not going or len(going) < len(calls) or reply.finish == "length":
        return _in_words(reply)
    return _with_calls(reply, going, reading.said.text)


def _without_refused(judge: ReplyJudge, state: State, reply: Reply) -> Reply | None:
    """A text answer with its refused calls marked as such; None if there are none.

    Clients that search text for calls themselves would run them otherwise.
    """
    reading = judge.read(reply) if judge.applied.guards else None
    shown = _shown(reading.calls) if reading else []
    if reading is None or not shown or not (refusal := _refusal(judge, state, shown)):
        return None
    return _told_as_refused(reply, reading.said.text, shown, refusal)


def _told_as_refused(reply: Reply, text: str, calls: Sequence[Judged | ToolCall], why: str) -> Reply:
    """The reply with these calls as refused ones in its text."""
    told = tuple(RawCall(name=call.name, arguments=call.arguments) for call in calls)
    return _in_words(replace(reply, text=text, calls=told), f"[refused: {why}]")


def _shown(calls: Sequence[Judged]) -> list[ToolCall]:
    """The calls surrounded by text, which may only be mentioned."""
    return [
        ToolCall(id=call_id(number), name=call.name, arguments=call.arguments, origin=call.origin)
        for number, call in enumerate(calls, start=1)
        if isinstance(call.wrong, AmongWords)
    ]


def _handed_on(request: ServerRequest, judge: ReplyJudge, number: int, judged: Judged) -> ToolCall | None:
    """The call for the client; None if it must not be passed on."""
    call = ToolCall(id=call_id(number), name=judged.name, arguments=judged.arguments, origin=judged.origin)
    empty = replace(call, arguments=_NO_ARGUMENTS)
    match judged.wrong:
        case None:
            return call
        case UnknownTool():
            known = judged.name in {tool.name for tool in request.specs}
            named = TOOL_NAME.fullmatch(judged.name) is not None
            return None if known or not named else call if is_object(judged.arguments) else empty
        case BadArguments() if is_object(judged.arguments):
            return call
        case AmongWords() | BesideDamage():
            return None
        case BadArguments() | Guessed():
            custom = any(tool.spec.name == judged.name and tool.kind == "custom" for tool in request.tools)
            refused = isinstance(judge.tools.checks[judged.name](_NO_ARGUMENTS), Misfit)
            return empty if refused and not custom else None
        case other:
            assert_never(other)


def _refusal(judge: ReplyJudge, state: State, calls: list[ToolCall]) -> str:
    """Why the calls may not run or, without calls, the text may not be the answer; empty if they may."""
    if not calls:
        left = pending(judge.rules, state.ledger)
        return f"first complete {', '.join(left)}" if left else ""
    # Guards do not judge unknown tools. Without counts, they word the reason as for a first mistake.
    known = tuple(call for call in calls if call.name in judge.tools.specs)
    calm = state.note(premature=0, prerequisite_violations=0)
    for rule in judge.applied.guards if known else ():
        match rule(calm, known):
            case Stop():  # only the guard of `max_tool_calls` stops
                return f"the maximum of {judge.applied.policy.limits.max_tool_calls} calls is reached"
            case [objection, *_]:
                return unmarked(objection)
            case _:
                pass
    return ""


def _in_words(reply: Reply, *more: str) -> Reply:
    """The reply with its calls turned into text, so that they are not run."""
    told = map(call_as_text, reply.calls)
    text = "\n".join(filter(None, (reply.text, *told, *more)))
    return replace(reply, text=text, calls=(), finish="length" if reply.finish == "length" else "stop")
