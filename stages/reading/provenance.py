"""Provenance: which calls found in text are the model's own, and which only repeat what it was shown or has done.

A model that quotes a page, a file or its own work writes calls that it does not mean to make, and those who write
such pages hope that somebody runs them. No list of words tells the two apart; where the call comes from does.

The rules:

 1. A call that the server gave in its own field, or that was decoded under a constraint that forge set, is the
    model's own: it was made as a call, and guards judge what it does. These rules are for calls found in text.
 2. A call that stands in what a tool answered, or in a summary, is not run from text, whatever words are around it
    and in whatever grammar it stands there. It stands there if the name does, together with all of its arguments. A
    result that only holds values, for a call to be made with them, bars nothing.
 3. The model is told. If it answers that with nothing but the call, a tool that only reads is run. One that writes,
    or ends the run, is not: it takes a native call, or a constrained one. So it is in the mode prompted too, where
    a reply that is nothing but the call is how calls are made, because a result that repeats that very form is what
    an attack would be. There `{"refund": {"order": 7}}` in a result is data, and `finish()` the name of a tool; for
    calls of any other form both are calls.
 4. What the user says is an order, but documents are pasted into it. So a call that stands in a user's message is run
    if the reply is nothing but that call, which is a deed and no quotation; with words around it, it is not.
 5. A call that has succeeded in this run is a recap where there are words around it, and is not run again, unless its
    tool is repeatable, or only reads and the model was told a moment ago. One alone is judged like any other.
 6. A result that repeats the very call that it answers shows nothing that the model had not said before.

The texts are read only when a call was found in text, and of those only what names a tool, which is looked up once a
message (`with_naming`). Texts that make the search too long (`MOST`) count as if the call stood in them.
"""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from stages.message import Kind, User
from stages.objection import Repeat, RepeatSource, RepeatWay
from stages.reading.replies import Judged, Reading
from stages.reading.shown import ShownCall, shown_call, stands, tool_answers, user_texts, with_naming
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
        if stands(call, user_texts(state), loose=True):
            return "user"
    data_too = not (in_form and state.asked.mode == "prompted")
    return "result" if stands(call, tool_answers(state, call), loose=data_too) else None


def _is_done(call: ShownCall, state: State) -> bool:
    return any(s.name == call.name and call.same(s.arguments) for s in state.ledger.successes)


def _was_told(state: State) -> bool:
    """Whether the last thing that the model heard is that its call only repeats one."""
    last = state.history[-1] if state.history else None
    return isinstance(last, User) and last.kind is Kind.PROVENANCE_NUDGE
