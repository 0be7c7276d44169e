"""Decisions: what a pipeline made of a state, in a word and a sentence."""

from collections.abc import Sequence
from typing import Literal, assert_never

import msgspec
from msgspec import Struct

from forge.errors import explain
from stages.effect import Ask, Execute, HandOff, NeedsInput, Said, Send
from stages.events import new_messages
from stages.halt import Halt
from stages.message import ToolCall, is_nudge
from stages.state import Awaiting, Completed, Done, Ending, State
from stages.tokens import tokens_of
from stages.tool import ToolSpec

DecisionKind = Literal["runs", "asks", "sends", "corrects", "goes on", "ends", "halts", "offers"]


class Decision(Struct, frozen=True, kw_only=True):
    """What happens next: calls run, a person or the model is asked, the model is corrected, or the run ends.

    `offers` is what a constrained reply had to choose from.
    """

    kind: DecisionKind
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.detail}".rstrip()


def decision(before: State, after: State | Halt) -> Decision:
    """The decision that leads from one state to the next, or to the end of the run."""
    if not isinstance(after, State):
        return Decision(kind="halts", detail=f"({type(after).__name__}) {explain(after)}")
    match after.phase:
        case Awaiting(effect=Execute(calls=calls)):
            return Decision(kind="runs", detail=", ".join(map(_call, calls)))
        case Awaiting(effect=Ask(call=call)):
            return Decision(kind="asks", detail=f"a person about {_call(call)}")
        case Awaiting(effect=Send(), summary=summary):
            ledger = after.ledger
            tokens = tokens_of(ledger.prompt_size, ledger.tokens_per_character, ledger.report)
            what = "for a summary" if summary else "for a reply"
            return Decision(kind="sends", detail=f"a prompt of about {tokens} tokens, {what}")
        case Done(outcome=outcome):
            return Decision(kind="ends", detail=ending(outcome))
        case _:
            said = [m.text for m in new_messages(before, after) if is_nudge(m)]
            return Decision(kind="corrects", detail=" / ".join(said)) if said else Decision(kind="goes on")


def offer(tools: Sequence[ToolSpec]) -> Decision:
    """What a constrained reply has to choose from: tools, and the values that an argument is limited to."""
    return Decision(kind="offers", detail=", ".join(map(_choice, tools)) or "nothing")


class _Schema(Struct):
    properties: dict[str, dict[str, object] | bool] = {}


def _choice(tool: ToolSpec) -> str:
    properties = msgspec.json.decode(tool.parameters, type=_Schema).properties
    limited = [f"{name}: {' or '.join(map(str, _values(kind)))}" for name, kind in properties.items() if _values(kind)]
    return f"{tool.name} ({', '.join(limited)})" if limited else tool.name


def _values(schema: dict[str, object] | bool) -> list[object]:
    values = schema.get("enum", []) if isinstance(schema, dict) else []
    return values if isinstance(values, list) else []


def ending(outcome: Ending) -> str:
    """The outcome as a text."""
    match outcome:
        case Completed(tool=tool, value=value):
            return f"{tool} returned {bytes(value).decode()}"
        case Said(text=text):
            return text
        case NeedsInput(question=question, suggestions=suggestions):
            return " ".join((question, *(f"({n}) {s}" for n, s in enumerate(suggestions, start=1))))
        case HandOff(to=to):
            return f"handed over to {to}"
        case _:
            assert_never(outcome)


def _call(call: ToolCall) -> str:
    return f"{call.name} {call.arguments}"
