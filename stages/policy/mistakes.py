"""Mistakes: how each kind of objection is with_mistakes, kept in the history and named."""

from collections.abc import Iterable
from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from stages.ledger import Counter, Ledger, mistake_count
from stages.message import Kind
from stages.objection import (
    BadArguments,
    BareText,
    BesideDamage,
    Custom,
    CutOff,
    Echo,
    EchoedArgument,
    Empty,
    Guessed,
    Incomplete,
    Miscalculated,
    NeedsDecision,
    Objection,
    OnlyRepeats,
    OutOfOrder,
    Placeholder,
    PrerequisiteMissing,
    Repeated,
    SlippedNumber,
    StepsPending,
    Ungrounded,
    UnknownTool,
    Wrong,
)

NudgeKind = Literal[
    "retry",
    "unknown_tool",
    "arguments",
    "step",
    "prerequisite",
    "repeated",
    "ungrounded",
    "miscalculated",
    "placeholder",
    "order",
    "incomplete",
    "echo",
    "provenance",
]
"""The names by which a user's own words replace forge's.

`retry`: a reply without a call that can be used. The others answer a call: of no tool, with arguments that do not
fit, before its steps, before its prerequisites, made before with the same answer, with a value that nobody gave, with
a calculation that cannot be used, with a placeholder for a value, against a rule of order, one whose arguments the
user's own check refuses, and one that ends the run with what forge has told the model as its text. `provenance`: a
reply whose calls only repeat what was shown or done before.
"""


class _Mistake(Struct, frozen=True):
    """A kind of mistake: the count that it adds to, the kind of its message, what its text begins with in brackets.

    `name` is None where no words but its own can be said of it.
    """

    name: NudgeKind | None
    counter: Counter
    kind: Kind = Kind.RETRY_NUDGE
    prefix: str = ""


def mistake_of(wrong: Wrong) -> _Mistake:
    """Which mistake that is."""
    match wrong:
        case BareText() | CutOff() | Empty() | Echo():
            return _Mistake("retry", "retries")
        case OnlyRepeats():
            return _Mistake("provenance", "retries", Kind.PROVENANCE_NUDGE, "Repeats")
        case UnknownTool():
            return _Mistake("unknown_tool", "retries", prefix="UnknownTool")
        case BadArguments():
            return _Mistake("arguments", "tool_errors", prefix="ToolArgValidationError")
        case Guessed():
            return _Mistake("arguments", "retries", prefix="ToolArgValidationError")
        case BesideDamage():
            return _Mistake(None, "retries", prefix="NotRun")
        case StepsPending():
            return _Mistake("step", "premature", Kind.STEP_NUDGE, "StepEnforcementError")
        case PrerequisiteMissing() | NeedsDecision():
            return _Mistake("prerequisite", "prerequisite_violations", Kind.PREREQUISITE_NUDGE, "PrereqError")
        case OutOfOrder():
            return _Mistake("order", "refusals", Kind.STEP_NUDGE, "OrderError")
        case Placeholder():
            return _Mistake("placeholder", "refusals", prefix="Placeholder")
        case Ungrounded() | SlippedNumber():
            return _Mistake("ungrounded", "refusals", prefix="UngroundedArgument")
        case Miscalculated():
            return _Mistake("miscalculated", "refusals", prefix="Miscalculated")
        case Repeated():
            return _Mistake("repeated", "repetitions", prefix="Repeated")
        case Incomplete():
            return _Mistake("incomplete", "refusals", prefix="Incomplete")
        case EchoedArgument():
            return _Mistake("echo", "refusals", prefix="Echo")
        case Custom(kind=kind, counter=counter):
            return _Mistake(None, counter, kind)
        case _:
            assert_never(wrong)


def with_mistakes(ledger: Ledger, objections: Iterable[Objection]) -> Ledger:
    """The ledger after these objections to one batch: one more in each count that they add to."""
    counters = dict.fromkeys(mistake_of(objection.wrong).counter for objection in objections)
    return replace(ledger, **{counter: mistake_count(ledger, counter) + 1 for counter in counters})
