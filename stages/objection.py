"""Objection: what is wrong with one call, or with a whole reply, as data.

An objection counts as a mistake (`stages.policy.mistakes` says in which count), and the model is told of it
(`stages.nudges.rendering` says in which words).
"""

from typing import Literal

from msgspec import Struct

from stages.grounding.miscalculations import Miscalculation
from stages.ledger import Counter, Listed
from stages.message import Kind, ToolCall
from stages.schema.problems import Problem


class BareText(Struct, frozen=True, kw_only=True, tag="bare_text"):
    """A reply without a call that can be used; `damage` says what is wrong with one that was meant."""

    allowed: tuple[str, ...]
    damage: str | None = None


class CutOff(Struct, frozen=True, kw_only=True, tag="cut_off"):
    """A reply that hit its limit of tokens before a call was complete."""

    allowed: tuple[str, ...]


class Empty(Struct, frozen=True, kw_only=True, tag="empty"):
    """A reply with nothing in it."""

    allowed: tuple[str, ...]


RepeatSource = Literal["result", "user", "done"]
"""Where a call was before: in a tool's result, in what the user wrote, among the calls that have succeeded."""

RepeatWay = Literal["alone", "native", "none"]
"""How to make it if it is meant: by a reply that is nothing but the call, by a native call, not at all."""


class Repeat(Struct, frozen=True, kw_only=True):
    """A call in a text that only repeats one."""

    tool: str
    source: RepeatSource
    way: RepeatWay


class OnlyRepeats(Struct, frozen=True, kw_only=True, tag="only_repeats"):
    """A reply whose calls all repeat what was shown or done before."""

    repeats: tuple[Repeat, ...]
    allowed: tuple[str, ...]


class Echo(Struct, frozen=True, kw_only=True, tag="echo"):
    """A reply in words that only repeats what forge has told the model."""

    allowed: tuple[str, ...]


class UnknownTool(Struct, frozen=True, kw_only=True, tag="unknown_tool"):
    """A call of a tool that does not exist; `nearest` is the known name that is most like it."""

    known: tuple[str, ...]
    nearest: str | None = None


class BadArguments(Struct, frozen=True, kw_only=True, tag="bad_arguments"):
    """A call whose arguments do not fit the tool's schema; `cut`: the reply hit its limit of tokens."""

    problems: tuple[Problem, ...]
    cut: bool = False


class Guessed(Struct, frozen=True, kw_only=True, tag="guessed"):
    """A call that could only be read by guessing, of a tool for which that is too dangerous."""

    repairs: tuple[str, ...]


class BesideDamage(Struct, frozen=True, kw_only=True, tag="beside_damage"):
    """A call that was fine, after one that cannot be read, or meant to end the run without it."""


class StepsPending(Struct, frozen=True, kw_only=True, tag="steps_pending"):
    """A terminal call before its required steps, for the `attempt`-th time in a row.

    `again` are those of them that were done, and are out of date; `denied` those whose latest answer does not count;
    `left` are the listed values that some of them still have to be called with.
    """

    steps: tuple[str, ...]
    attempt: int
    again: tuple[str, ...] = ()
    left: tuple[Listed, ...] = ()
    denied: tuple[str, ...] = ()


class PrerequisiteMissing(Struct, frozen=True, kw_only=True, tag="prerequisite_missing"):
    """A call before these tools have succeeded; `match` are arguments that must have the same value there.

    `again` are those of them that have succeeded, and are out of date; `denied` those whose latest answer does not
    count.
    """

    tools: tuple[str, ...]
    match: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()


class NeedsDecision(Struct, frozen=True, kw_only=True, tag="needs_decision"):
    """A call that needs others of unknown outcome, about which a person has to decide first."""

    tools: tuple[str, ...]
    allowed: tuple[str, ...]


class OutOfOrder(Struct, frozen=True, kw_only=True, tag="out_of_order"):
    """A call that the rules of order forbid now."""

    reason: str
    allowed: tuple[str, ...]


class Placeholder(Struct, frozen=True, kw_only=True, tag="placeholder"):
    """A call with arguments that only stand for a value: names and texts.

    `again`: the tool may be called with the value then; not while a call of it has an unknown outcome.
    `copied`: the texts are descriptions of the tool's, or examples in them.
    """

    arguments: tuple[tuple[str, str], ...]
    again: bool = True
    copied: Literal["", "description", "example"] = ""


class Unseen(Struct, frozen=True, kw_only=True):
    """A value, as JSON, that stands in no result of its `sources`; without any: nowhere.

    `optional`: the argument may be left out. `no_id`: it stands there, but is unlike the ids that were given.
    """

    argument: str
    value: str
    sources: tuple[str, ...] = ()
    optional: bool = False
    no_id: bool = False


class Seen(Struct, frozen=True, kw_only=True):
    """A value, as JSON, that a tool gave, and the name under which it may be used."""

    name: str
    value: str
    tool: str


class Ungrounded(Struct, frozen=True, kw_only=True, tag="ungrounded"):
    """A call with values that nobody gave; `seen` are some that were, `others` the tools that may find them."""

    values: tuple[Unseen, ...]
    seen: tuple[Seen, ...] = ()
    others: tuple[str, ...] = ()


class Miscalculated(Struct, frozen=True, kw_only=True, tag="miscalculated"):
    """A call with calculations that cannot be used; `seen` are numbers that can, `others` tools that may find some."""

    problems: tuple[Miscalculation, ...]
    seen: tuple[Seen, ...] = ()
    others: tuple[str, ...] = ()


class Repeated(Struct, frozen=True, kw_only=True, tag="repeated"):
    """A call that was answered so many `times`; `others` may be called instead, `values` were not tried.

    `written`: its answers differed, but it writes.
    """

    times: int
    others: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    written: bool = False


class Incomplete(Struct, frozen=True, kw_only=True, tag="incomplete"):
    """A call whose arguments the user's own check refuses; `problem` is its sentence."""

    problem: str


class EchoedArgument(Struct, frozen=True, kw_only=True, tag="echoed_argument"):
    """A call that ends the run, with an argument that only repeats what forge has told the model."""

    argument: str


class SlippedNumber(Struct, frozen=True, kw_only=True, tag="slipped_number"):
    """A call that ends the run, with a text that says a number ten times as large as a given one, or a tenth of it.

    `said` is as the text has it, `given` the number that it seems to be.
    """

    argument: str
    said: str
    given: str


class Custom(Struct, frozen=True, kw_only=True, tag="custom"):
    """What a guard of the user's own has against a call: a text for the model that stands as it is.

    `kind` is that of the message, one of `stages.message.NUDGES`; `counter` the count that it adds to.
    """

    text: str
    kind: Kind = Kind.RETRY_NUDGE
    counter: Counter = "refusals"


NoCall = BareText | CutOff | Empty | Echo | OnlyRepeats
"""What may be wrong with a whole reply."""

Unfit = UnknownTool | BadArguments | Guessed | BesideDamage
"""What the stage `validate` may have against a call."""

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
    | EchoedArgument
    | SlippedNumber
    | Custom
)
"""What a guard may have against a call."""

Wrong = NoCall | Unfit | Forbidden


class Objection(Struct, frozen=True, kw_only=True):
    """What is wrong with a call; with the whole reply, where there is no call."""

    wrong: Wrong
    call: ToolCall | None = None

    @property
    def tool(self) -> str:
        """The name of the tool that was called; empty for a whole reply."""
        return self.call.name if self.call else ""
