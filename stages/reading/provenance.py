"""Provenance: which calls found in text are the model's own, and which only repeat what it was shown or has done.

A model that quotes a page, a file or its own work writes calls that it does not mean to make, and the author of such a
page may hope that somebody runs them. No list of words can tell the two apart; the origin of the call can.

The rules:

 1. A call that the server delivered in its own field, or that was decoded under a constraint set by forge, is the
    model's own: it was made as a call, and guards judge it. The other rules are for calls found in text.
 2. A call that occurs in a tool's result or in a summary is not run from text, whatever words surround it and in
    whatever grammar it occurs. It occurs there if its name does, together with all of its arguments; further ones that
    its tool does not take, in JSON, make no difference. A result that only contains values for a call bars nothing.
 3. The model is told. If it replies with nothing but the call, a tool that only reads is run. One that writes or ends
    the run is not: it needs a native call, or a constrained one. This holds in the mode prompted, too, where a reply
    with just the call is how calls are made, because a result that repeats that very form is what an attack looks
    like. There, `{"refund": {"order": 7}}` in a result is data, and `finish()` the name of a tool; for calls of any
    other form, both are calls.
 4. What the user says is an order, but documents are pasted into it. So a call that occurs in a user's message is run
    if the reply is nothing but that call, which is an action and not a quotation; with words around it, it is not.
 5. A call that has succeeded in this run is a recap if there are words around it, and is not run again, unless its tool
    is repeatable, or only reads and the model has just been told. One alone is judged like any other.
 6. A result that repeats the call that it answers shows nothing that the model had not said before.

The texts are read only if a call was found in text, and only those that name a tool, which is looked up once per
message (`with_naming`). Texts that make the search too long (`PLACES_READ`) count as if they contained the call.
"""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from stages.message import Kind, User
from stages.objection import Repeat, RepeatSource, RepeatWay
from stages.reading.replies import Judged, Reading
from stages.reading.shown import ShownCall, occurs, shown_call, tool_answers, user_texts, with_naming
from stages.reading.toolset import Toolset
from stages.state import State
from stages.tool import ToolSpec


class Sifted(Struct, frozen=True, kw_only=True):
    """A reading without the calls that only repeat one, and these. The state remembers what was looked through."""

    state: State
    reading: Reading
    repeated: tuple[Repeat, ...] = ()


Sift = Callable[[State, Reading], Sifted]


def sieve(tools: Toolset) -> Sift:
    """A function that tells a model's own calls from those that only repeat one."""
    specs, checks, names = tools.specs, tools.checks, tools.names

    def sift(state: State, reading: Reading) -> Sifted:
        if all(_is_made(call, state) for call in reading.calls):
            return Sifted(state=state, reading=reading)
        state = with_naming(state, names)
        own: list[Judged] = []
        repeated: list[Repeat] = []
        for judged in reading.calls:
            source = None
            tool = None if _is_made(judged, state) else specs.get(judged.name)
            if tool and (call := shown_call(judged, checks[tool.name], names)):
                source = _source(call, tool, state, alone=reading.alone, in_form=judged.origin == "prompted")
            if tool and source:
                repeated.append(Repeat(tool=tool.name, source=source, way=_way(tool, source, state)))
            else:
                own.append(judged)
        kept = replace(reading, calls=tuple(own)) if repeated else reading
        return Sifted(state=state, reading=kept, repeated=tuple(repeated))

    return sift


def _way(tool: ToolSpec, source: RepeatSource, state: State) -> RepeatWay:
    if source != "result" or tool.effect == "read":
        return "alone"
    return "none" if state.asked.mode == "prompted" else "native"


def _is_made(call: Judged, state: State) -> bool:
    """Whether it was made as a call, rather than found in text."""
    return call.origin == "native" or (call.origin == "prompted" and state.asked.mode == "constrained")


def _source(call: ShownCall, tool: ToolSpec, state: State, *, alone: bool, in_form: bool) -> RepeatSource | None:
    """Where the call comes from, None: from the model.

    `alone`: the reply has no words beside its calls; `in_form`: the call is in the form that forge asks for.
    """
    may_repeat = tool.effect == "read" and _was_told(state)
    if may_repeat and alone:
        return None
    if not alone:
        if not may_repeat and not tool.repeatable and _is_done(call, state):
            return "done"
        if occurs(call, user_texts(state), loose=True):
            return "user"
    data_too = not (in_form and state.asked.mode == "prompted")
    return "result" if occurs(call, tool_answers(state, call), loose=data_too) else None


def _is_done(call: ShownCall, state: State) -> bool:
    return any(s.name == call.name and call.same(s.arguments) for s in state.ledger.successes)


def _was_told(state: State) -> bool:
    """Whether the last thing that the model heard is that its call only repeats one."""
    last = state.history[-1] if state.history else None
    return isinstance(last, User) and last.kind is Kind.PROVENANCE_NUDGE
