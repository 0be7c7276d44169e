"""Objections: what is wrong with a call or a reply, as data; how each kind counts; what a guard returns."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, assert_never, get_args

from msgspec import Struct
from msgspec.structs import replace

from stages.halt import Halt
from stages.message import NUDGES, Kind, Mark, ToolCall
from stages.options import unfit_function
from stages.schema.check import Problem
from stages.state import Counter, Ledger, Listed, State, mistake_count


class NoCalculation(Struct, frozen=True, kw_only=True, tag="no_calculation"):
    """A text that cannot be calculated, and why."""

    argument: str
    text: str
    problem: str


class NumberAlone(Struct, frozen=True, kw_only=True, tag="number_alone"):
    """A number without an operation."""

    argument: str
    text: str


class NumbersUnseen(Struct, frozen=True, kw_only=True, tag="numbers_unseen"):
    """A calculation with numbers that nobody gave."""

    argument: str
    text: str
    numbers: tuple[str, ...]


class NumberOverused(Struct, frozen=True, kw_only=True, tag="number_overused"):
    """A calculation that adds or subtracts a number more often, `used` times, than it was `given`."""

    argument: str
    text: str
    number: str
    used: int
    given: int


class PercentageAsAmount(Struct, frozen=True, kw_only=True, tag="percentage_as_amount"):
    """A calculation that takes a number that was only given as a percentage for an amount."""

    argument: str
    text: str
    number: str


class WrongResult(Struct, frozen=True, kw_only=True, tag="wrong_result"):
    """A calculation whose result, `found`, does not fit the tool's schema."""

    argument: str
    text: str
    expected: str
    found: str


Miscalculation = NoCalculation | NumberAlone | NumbersUnseen | NumberOverused | PercentageAsAmount | WrongResult
"""Everything that may be wrong with a calculated argument."""


# Objection: what is wrong with a call, or with a whole reply, as data.
#
# An objection counts as a mistake (`mistake_of`), and the model is told about it (`stages.nudges`).


class BareText(Struct, frozen=True, kw_only=True, tag="bare_text"):
    """A reply without a usable call; `damage` is what is wrong with a call that was meant."""

    allowed: tuple[str, ...]
    damage: str | None = None


class CutOff(Struct, frozen=True, kw_only=True, tag="cut_off"):
    """A reply that hit its limit of tokens before a call was complete."""

    allowed: tuple[str, ...]


class MaybeMeant(Struct, frozen=True, kw_only=True, tag="maybe_meant"):
    """A reply with calls of these tools among other words, or with a damaged call, that may or may not be meant.

    `words`: text is an answer, so this reply is the answer if they are not meant.
    """

    tools: tuple[str, ...]
    words: bool
    damage: str | None = None


class NothingDone(Struct, frozen=True, kw_only=True, tag="nothing_done"):
    """An answer in words without any call, although a write may have been meant."""

    allowed: tuple[str, ...]


class Empty(Struct, frozen=True, kw_only=True, tag="empty"):
    """A reply with nothing in it."""

    allowed: tuple[str, ...]


RepeatSource = Literal["result", "user", "done"]
"""Where the call occurred before: in a tool's result, in the user's message, among the successful calls."""

RepeatWay = Literal["alone", "native", "none"]
"""How to make the call if it is meant: in a reply with nothing else, as a native call, or not at all."""


class Repeat(Struct, frozen=True, kw_only=True):
    """A call in a text that only repeats an earlier one."""

    tool: str
    source: RepeatSource
    way: RepeatWay


class OnlyRepeats(Struct, frozen=True, kw_only=True, tag="only_repeats"):
    """A reply whose calls all repeat what was shown or done before."""

    repeats: tuple[Repeat, ...]
    allowed: tuple[str, ...]


class Echo(Struct, frozen=True, kw_only=True, tag="echo"):
    """A reply in words that only repeats a text from forge."""

    allowed: tuple[str, ...]


class UnknownTool(Struct, frozen=True, kw_only=True, tag="unknown_tool"):
    """A call of a tool that does not exist; `nearest` is the most similar known name."""

    known: tuple[str, ...]
    nearest: str | None = None


class BadArguments(Struct, frozen=True, kw_only=True, tag="bad_arguments"):
    """A call whose arguments do not match the tool's schema; `cut`: the reply hit its token limit."""

    problems: tuple[Problem, ...]
    cut: bool = False


class Guessed(Struct, frozen=True, kw_only=True, tag="guessed"):
    """A call that could only be read by guessing, of a tool that is too dangerous for that."""

    repairs: tuple[str, ...]


class AmongWords(Struct, frozen=True, kw_only=True, tag="among_words"):
    """A call of a tool that does not only read, found in a text that may merely show it (`stages.reading.meant`)."""


class BesideDamage(Struct, frozen=True, kw_only=True, tag="beside_damage"):
    """A valid call after one that cannot be read, or a terminal call beside one."""


class StepsPending(Struct, frozen=True, kw_only=True, tag="steps_pending"):
    """A terminal call before its required steps, for the `attempt`-th time in a row.

    `again` are the steps that were done but are out of date, `denied` those whose latest result does not count, and
    `left` the listed values that steps must still be called with.
    """

    steps: tuple[str, ...]
    attempt: int
    again: tuple[str, ...] = ()
    left: tuple[Listed, ...] = ()
    denied: tuple[str, ...] = ()


class PrerequisiteMissing(Struct, frozen=True, kw_only=True, tag="prerequisite_missing"):
    """A call before these tools have succeeded; `match` are arguments that must have the same values there.

    `again` are the tools that have succeeded but are out of date, `denied` those whose latest result does not count.
    """

    tools: tuple[str, ...]
    match: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()


class NeedsDecision(Struct, frozen=True, kw_only=True, tag="needs_decision"):
    """A call that depends on others with an unknown outcome, about which a person has to decide first."""

    tools: tuple[str, ...]
    allowed: tuple[str, ...]


class OutOfOrder(Struct, frozen=True, kw_only=True, tag="out_of_order"):
    """A call that the rules of order forbid now."""

    reason: str
    allowed: tuple[str, ...]


class Placeholder(Struct, frozen=True, kw_only=True, tag="placeholder"):
    """A call with placeholders as arguments: their names and texts.

    `again`: the tool may be called once the value is known; not while a call of it has an unknown outcome.
    """

    arguments: tuple[tuple[str, str], ...]
    again: bool = True


class Unseen(Struct, frozen=True, kw_only=True):
    """A value, as JSON, that occurs in no result of its `sources`; without sources, nowhere.

    `optional`: the argument may be left out.
    """

    argument: str
    value: str
    sources: tuple[str, ...] = ()
    optional: bool = False


class Seen(Struct, frozen=True, kw_only=True):
    """A value, as JSON, from a tool, and the argument that it may be used for."""

    name: str
    value: str
    tool: str


class Ungrounded(Struct, frozen=True, kw_only=True, tag="ungrounded"):
    """A call with values that nobody gave; `seen` are some that were given, `others` the tools that may find them."""

    values: tuple[Unseen, ...]
    seen: tuple[Seen, ...] = ()
    others: tuple[str, ...] = ()


class Miscalculated(Struct, frozen=True, kw_only=True, tag="miscalculated"):
    """A call with unusable calculations; `seen` are usable numbers, `others` the tools that may find some."""

    problems: tuple[Miscalculation, ...]
    seen: tuple[Seen, ...] = ()
    others: tuple[str, ...] = ()


class Repeated(Struct, frozen=True, kw_only=True, tag="repeated"):
    """A call that was already answered this many `times`; `others` may be called instead, `values` were not tried.

    `written`: its answers differed, but it is a write. `words`: the model may answer in words instead.
    """

    times: int
    others: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    written: bool = False
    words: bool = False


class Incomplete(Struct, frozen=True, kw_only=True, tag="incomplete"):
    """A call whose arguments the user's own check refuses; `problem` is its sentence."""

    problem: str


class Custom(Struct, frozen=True, kw_only=True, tag="custom"):
    """The objection of a user's guard: a text that is sent to the model as it is.

    `kind` is the kind of the message, one of `stages.message.NUDGES`; `counter` is the count that it adds to.
    """

    text: str
    kind: Kind = Kind.RETRY_NUDGE
    counter: Counter = "refusals"


NoCall = BareText | MaybeMeant | NothingDone | CutOff | Empty | Echo | OnlyRepeats
"""Everything that may be wrong with a whole reply."""

Unfit = UnknownTool | BadArguments | Guessed | AmongWords | BesideDamage
"""The objections of the stage `validate` to a call."""

Forbidden = (
    StepsPending
    | PrerequisiteMissing
    | NeedsDecision
    | OutOfOrder
    | Placeholder
    | Ungrounded
    | Miscalculated
    | Repeated
    | Incomplete
    | Custom
)
"""The objections of guards to a call."""

Wrong = NoCall | Unfit | Forbidden


class Objection(Struct, frozen=True, kw_only=True):
    """What is wrong with a call, or with the whole reply if `call` is None."""

    wrong: Wrong
    call: ToolCall | None = None

    @property
    def tool(self) -> str:
        """The name of the tool that was called; empty for a whole reply."""
        return self.call.name if self.call else ""


# Verdict: what a guard returns for a batch of calls.


class Stop(Struct, frozen=True, kw_only=True, tag="stop"):
    """End the run."""

    halt: Halt


Verdict = Sequence[Objection] | Stop
"""The objections to calls of the batch, empty if all may run; or the end of the run."""

Guard = Callable[[State, tuple[ToolCall, ...]], Verdict]
"""A guardrail: a pure function of the state before the batch and of the batch."""


def not_a_guard(given: Callable[..., object]) -> str | None:
    """Why a function is no guard, as a sentence; often a function that makes guards was passed without calling it."""
    if getattr(given, "__annotations__", {}).get("return") in (Guard, "Guard"):
        name = getattr(given, "__name__", type(given).__name__)
        return f"{name} makes a guard; call it, as in {name}(…)"
    return unfit_function(given, "state", "calls")


def not_a_verdict(given: object, calls: Sequence[ToolCall]) -> str | None:
    """Why this is no verdict on these calls, as a sentence; None if it is."""
    if not isinstance(given, list | tuple):
        wrong = f"returned {given!r:.200}; it must return a list of Objections, empty where there is none, or Stop(…)"
        return None if isinstance(given, Stop) else wrong
    if not given:
        return None
    ids = {call.id for call in calls}
    for one in given:
        if not isinstance(one, Objection):
            return f"objected with {one!r:.200}; write Objection(call=call, wrong=Custom(text=…))"
        if one.call is None or one.call.id not in ids:
            return f"objected to {one.call!r:.200}, which is no call of the batch; take each from the calls given"
        if unknown := _unknown(one.wrong):
            return f"objected with {unknown}"
    return None


def _unknown(wrong: object) -> str:
    """The invalid part of an objection's `wrong`, with the valid choices; empty if it is valid."""
    if not isinstance(wrong, get_args(Wrong)):
        return f"wrong={wrong!r:.200}; write Objection(call=call, wrong=Custom(text=…))"
    if not isinstance(wrong, Custom):
        return ""
    counters, kinds = get_args(Counter), sorted(NUDGES)
    if wrong.counter not in counters:
        return f"Custom(counter={wrong.counter!r:.200}); the counters are: {', '.join(counters)}"
    if wrong.kind not in kinds:
        return f"Custom(kind={wrong.kind!r:.200}); the kinds are: {', '.join(kinds)}"
    given: object = wrong.text
    return "" if isinstance(given, str) else f"Custom(text={given!r:.200}); it must be a string"


# Mistakes: how each kind of objection is counted, stored and named.

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
    "provenance",
]
"""The names by which users replace forge's texts.

`retry`: a reply without a usable call. `provenance`: a reply whose calls only repeat what was shown or done before. The
others are about a call: of an unknown tool, with arguments that do not match the schema, before its steps, before its
prerequisites, repeated with the same result, with a value that nobody gave, with an unusable calculation, with a
placeholder, against a rule of order, refused by a completion check.
"""


class _Mistake(Struct, frozen=True):
    """A kind of mistake: its count, the kind of its message, and the mark that begins its text.

    `name` is None if users cannot replace its text.
    """

    name: NudgeKind | None
    counter: Counter
    kind: Kind = Kind.RETRY_NUDGE
    mark: Mark | None = None


def mistake_of(wrong: Wrong) -> _Mistake:
    """The kind of mistake."""
    match wrong:
        case BareText() | NothingDone() | CutOff() | Empty() | Echo():
            return _Mistake("retry", "retries")
        case OnlyRepeats():
            return _Mistake("provenance", "retries", Kind.PROVENANCE_NUDGE, "Repeats")
        case UnknownTool():
            return _Mistake("unknown_tool", "retries", mark="UnknownTool")
        case BadArguments():
            return _Mistake("arguments", "tool_errors", mark="ToolArgValidationError")
        case Guessed():
            return _Mistake("arguments", "retries", mark="ToolArgValidationError")
        case AmongWords() | BesideDamage():
            return _Mistake(None, "retries", mark="NotRun")
        case MaybeMeant():
            return _Mistake(None, "retries")
        case StepsPending():
            return _Mistake("step", "premature", Kind.STEP_NUDGE, "StepEnforcementError")
        case PrerequisiteMissing() | NeedsDecision():
            return _Mistake("prerequisite", "prerequisite_violations", Kind.PREREQUISITE_NUDGE, "PrereqError")
        case OutOfOrder():
            return _Mistake("order", "refusals", Kind.STEP_NUDGE, "OrderError")
        case Placeholder():
            return _Mistake("placeholder", "refusals", mark="Placeholder")
        case Ungrounded():
            return _Mistake("ungrounded", "refusals", mark="UngroundedArgument")
        case Miscalculated():
            return _Mistake("miscalculated", "refusals", mark="Miscalculated")
        case Repeated():
            return _Mistake("repeated", "repetitions", mark="Repeated")
        case Incomplete():
            return _Mistake("incomplete", "refusals", mark="Incomplete")
        case Custom(kind=kind, counter=counter):
            return _Mistake(None, counter, kind)
        case _:
            assert_never(wrong)


def with_mistakes(ledger: Ledger, objections: Iterable[Objection]) -> Ledger:
    """The ledger after these objections to one batch: one more in each of their counts."""
    counters = dict.fromkeys(mistake_of(objection.wrong).counter for objection in objections)
    return replace(ledger, **{counter: mistake_count(ledger, counter) + 1 for counter in counters})
