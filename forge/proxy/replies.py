"""Replies that do not go to the client as they came: with calls repaired, and the last of a turn that failed. Pure.

An agent takes a text for the end of its work. So the calls of the last attempt go on to the client, although they do
not fit: its own tools say what is wrong, and the agent goes on. Arguments that cannot be read become `{}`, if the tool
does not take that either. A call goes on in words alone where it could run and should not: where a guard refuses it,
where the client offered the tool and excluded it, or where `{}` would be a call that fits.
"""

from collections.abc import Sequence
from typing import assert_never

from msgspec.structs import replace

from forge.proxy.tools import Guard
from stages.effect import RawCall, Reply
from stages.message import ToolCall, call_id
from stages.nudges import unprefixed
from stages.objection import AmongWords, BadArguments, BesideDamage, Guessed, Stop, UnknownTool
from stages.reading.replies import Judged
from stages.rules import pending
from stages.schema import Misfit
from stages.state import State
from stages.wire.served import ServerRequest
from stages.wire.valid import TOOL_NAME, call_as_text, is_object

_REPEATS = "a call in words that only repeats what was shown is not run"

_NO_ARGUMENTS = "{}"
"""The arguments of a call whose own cannot be read."""


def with_calls(reply: Reply, calls: Sequence[ToolCall], text: str) -> Reply:
    """The reply with the calls as they may run, under the server's own ids where it gave any.

    A limit of tokens that it ended at has cut off none of them: they were found whole.
    """
    ids = [call.id for call in reply.calls] if reply.calls else [""] * len(calls)
    made = (RawCall(id=i, name=c.name, arguments=c.arguments) for i, c in zip(ids, calls, strict=False))
    return replace(reply, text=text, calls=tuple(made), finish="tool_calls")


def last_reply(request: ServerRequest, guard: Guard, state: State, reply: Reply) -> Reply:
    """The last attempt as the client gets it: all of its calls, or none and its calls told in the text.

    `state` is the one in which it was judged. What a limit of tokens has cut off is told in words.
    """
    reading = guard.read(reply)
    sifted = guard.sift(state, reading)
    own = sifted.reading.calls
    made = own if request.parallel else own[:1]
    if guard.applied.guards:
        made = made[: guard.rules.calls.max_calls_per_reply]
    calls = [_handed_on(request, guard, n, judged) for n, judged in enumerate(made, start=1)]
    going = [call for call in calls if call is not None]
    shown = _shown(own)
    said = reply.text.strip() and not calls
    repeats = bool(sifted.repeated) and not own
    refusal = _REPEATS if repeats else _refusal(guard, state, [*going, *shown]) if going or shown or said else ""
    if refusal:
        # A call that was found in the text must not be found there again.
        return _refused(reply, reading.said.text, reading.calls, refusal)
    if not going or len(going) < len(calls) or reply.finish == "length":
        return _in_words(reply)
    return with_calls(reply, going, reading.said.text)


def without_refused(guard: Guard, state: State, reply: Reply) -> Reply | None:
    """An answer in words whose calls, if they are meant, the session must not run: they are told in the text.

    A client that looks for calls in the text itself would run them. None where there is nothing to refuse.
    """
    reading = guard.read(reply) if guard.applied.guards else None
    shown = _shown(reading.calls) if reading else []
    if reading is None or not shown or not (refusal := _refusal(guard, state, shown)):
        return None
    return _refused(reply, reading.said.text, shown, refusal)


def _refused(reply: Reply, text: str, calls: Sequence[Judged | ToolCall], why: str) -> Reply:
    """The reply with these calls told as refused beside the text around them."""
    told = tuple(RawCall(name=call.name, arguments=call.arguments) for call in calls)
    return _in_words(replace(reply, text=text, calls=told), f"[refused: {why}]")


def _shown(calls: Sequence[Judged]) -> list[ToolCall]:
    """The calls among words, which may merely be shown."""
    return [
        ToolCall(id=call_id(number), name=call.name, arguments=call.arguments, origin=call.origin)
        for number, call in enumerate(calls, start=1)
        if isinstance(call.wrong, AmongWords)
    ]


def _handed_on(request: ServerRequest, guard: Guard, number: int, judged: Judged) -> ToolCall | None:
    """The call as it goes on; None where it must not."""
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
            refused = isinstance(guard.tools.checks[judged.name](_NO_ARGUMENTS), Misfit)
            return empty if refused and not custom else None
        case other:
            assert_never(other)


def _refusal(guard: Guard, state: State, calls: list[ToolCall]) -> str:
    """Why the calls may not run, or the words be the answer where there are none; empty where they may."""
    if not calls:
        left = pending(guard.rules, state.ledger)
        return f"first complete {', '.join(left)}" if left else ""
    # A tool that does not exist is no guard's concern. The model is spoken to as if for the first time.
    known = tuple(call for call in calls if call.name in guard.tools.specs)
    calm = state.note(premature=0, prerequisite_violations=0)
    for rule in guard.applied.guards if known else ():
        match rule(calm, known):
            case Stop():  # the guard of the session's calls alone stops here
                return f"the session may run {guard.applied.policy.limits.max_tool_calls} calls, and has"
            case [objection, *_]:
                return unprefixed(objection)
            case _:
                pass
    return ""


def _in_words(reply: Reply, *more: str) -> Reply:
    """The reply with its calls told in its text: they must not be run."""
    told = map(call_as_text, reply.calls)
    text = "\n".join(filter(None, (reply.text, *told, *more)))
    return replace(reply, text=text, calls=(), finish="length" if reply.finish == "length" else "stop")
