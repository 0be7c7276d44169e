"""The rules of a workflow, and what is legal now: the one place that enforce, serialize and nudges ask."""

from collections.abc import Iterable
from typing import Literal, assert_never, get_args

import msgspec
from msgspec import Struct

from stages.execution.unknown_outcomes import in_doubt
from stages.message import ToolCall
from stages.options.option_checks import Options
from stages.policy.order import Use, obstacle, underused_tools
from stages.schema.canonical_json import canonical
from stages.state import Ledger
from stages.tool import ToolEffect, ToolSpec

InDoubtPolicy = Literal["report", "ask"]
"""When a person is asked about a call that was begun, and nobody knows whether it took effect.

`ask`: before the model is asked again. `report`: the model is told, and goes on with other tools; the person is asked
before the next call of that tool, whatever its arguments, and at once where the run cannot end without the tool. With
nobody to ask, the run ends as `OutcomeUnknown`. Nothing of this is for tools that only read, or are declared
idempotent: their calls are made again.
"""

OnText = Literal["nudge", "accept"]
"""What bare text means while tools are there: a mistake to correct, or the answer."""


class RepairLimits(Struct, frozen=True, kw_only=True):
    """How much may be guessed in mending a damaged call, by what the tool does to the world.

    0: only mends that have one meaning. 1 adds what may have been cut off (a closer that is missing at the end).
    From 2 on the bounds of a value are guessed too.
    """

    read: int = 10
    write: int = 0
    terminal: int = 0

    def of(self, effect: ToolEffect) -> int:
        """The limit for tools of that effect."""
        match effect:
            case "read":
                return self.read
            case "write":
                return self.write
            case "terminal":
                return self.terminal
            case _:
                assert_never(effect)


TextMode = Literal["constrained", "prompted"]
"""The modes that a ladder may change to."""

_TEXT_MODES: tuple[TextMode, ...] = get_args(TextMode)

Rung = Literal["open", "narrow", "pin", "call", "simple", "constrained", "prompted"]
"""`open`: every tool that is legal. `narrow`: other steps, or other ways. `pin`: the pending steps, or the end.

`call`: as `narrow`, and the request demands a call (`tool_choice`; mode native). `simple`: as `pin`, and tools that
read are offered without their optional arguments (mode constrained). `constrained`, `prompted`: every tool that is
legal, and calls are asked for in that mode from then on. What a backend cannot do is skipped.
"""


OnViolation = Literal["block_all", "block_call"]
"""What one refused call does to the others of its reply: none of them runs, or those that are legal do."""

BatchPolicy = Literal["auto", "all", "first", "independent"]
"""Which calls of one reply are run: all; the first; those that need not wait for what others will find.

`auto`: the first in the mode prompted, all in the others.
"""


class Ladder(Struct, frozen=True, kw_only=True):
    """What each reply in a row that brought nothing new leads to; after the last it begins again.

    Without any rung, every reply may be any legal call. `stages.policy.escalation` reads it.

    `look_first`: as long as all goes well, no tool that writes is offered before the required steps that only read,
    unless something required needs it. A model that a constraint forces to call a tool is not tempted by it then.
    """

    rungs: tuple[Rung, ...] = ("narrow", "pin", "open")
    look_first: bool = True

    @property
    def modes(self) -> tuple[TextMode, ...]:
        """The modes that it may change to, in their order."""
        return tuple(mode for rung in self.rungs for mode in _TEXT_MODES if mode == rung)


class Rules(Options, frozen=True, kw_only=True):
    """What a workflow demands of the model, and how much patience it has.

    The maxima count mistakes in a row: one more ends the run with the Halt of that name.
    """

    tools: tuple[ToolSpec, ...]
    required: tuple[str, ...] = ()
    on_text: OnText = "nudge"
    rescue: bool = True
    repair_limits: RepairLimits = RepairLimits()
    max_retries: int = 3
    max_tool_errors: int = 2
    max_premature: int = 3
    max_prerequisite_violations: int = 2
    max_repeats: int | None = 2
    """So often a call may be answered the same, with nothing new in between; None: any number of times."""
    ladder: Ladder = Ladder()
    order: tuple[Use, ...] = ()
    batch: BatchPolicy = "auto"
    on_violation: OnViolation = "block_all"
    max_parallel: int = 4
    """So many reads run at the same time, at most."""
    max_calls: int = 32
    """So many calls of one reply are run, at most; the others are answered unrun."""
    in_doubt: InDoubtPolicy = "report"
    """When a person is asked about a call whose outcome is unknown."""

    def tool(self, name: str) -> ToolSpec | None:
        """The tool of that name, None for an unknown one."""
        return next((tool for tool in self.tools if tool.name == name), None)

    @property
    def terminal(self) -> tuple[str, ...]:
        """The names of the tools that end the run."""
        return tuple(tool.name for tool in self.tools if tool.effect == "terminal")


def completed(ledger: Ledger) -> tuple[str, ...]:
    """The tools that have succeeded, each once, in the order of their first success."""
    return tuple(dict.fromkeys(success.name for success in ledger.successes))


def pending(rules: Rules, ledger: Ledger) -> tuple[str, ...]:
    """The required steps that have not succeeded yet, in declared order, and what has not been used often enough."""
    if not rules.required and not rules.order:
        return ()
    steps = tuple(step for step in rules.required if all(success.name != step for success in ledger.successes))
    return tuple(dict.fromkeys(steps + underused_tools(rules.order, succeeded_names(ledger)))) if rules.order else steps


def required_tools(rules: Rules) -> tuple[str, ...]:
    """The tools that have to succeed before the run may end, in declared order."""
    return tuple(dict.fromkeys((*rules.required, *(use.tool for use in rules.order if use.at_least))))


def succeeded_names(ledger: Ledger) -> tuple[str, ...]:
    """The names of the calls that succeeded, one by one."""
    return tuple(success.name for success in ledger.successes)


def missing_prerequisites(tool: ToolSpec, arguments: str | None, ledger: Ledger) -> tuple[str, ...]:
    """The prerequisites of a call that no earlier success meets; with no arguments yet, by name alone."""
    values = None if arguments is None else _values(canonical(arguments))
    unmet = []
    for prerequisite in tool.prerequisites:
        before = (s.arguments for s in ledger.successes if s.name == prerequisite.tool)
        key = prerequisite.match_arg
        if key is not None and values is not None:
            before = (text for text in before if key in values and _values(canonical(text)).get(key) == values[key])
        # The first that is found is enough: a long run is not read to its end.
        if next(before, None) is None:
            unmet.append(prerequisite.tool)
    return tuple(unmet)


def legal_tools(rules: Rules, ledger: Ledger) -> tuple[ToolSpec, ...]:
    """The tools that may be called now: prerequisites met, terminal ones only when no step is pending, in order.

    None with a call whose outcome is unknown: a person decides about it first.
    """
    waiting = bool(pending(rules, ledger))
    done = succeeded_names(ledger) if rules.order else ()
    return tuple(
        tool
        for tool in rules.tools
        if not (waiting and tool.effect == "terminal")
        and not in_doubt(tool, ledger)
        and not missing_prerequisites(tool, None, ledger)
        and obstacle(rules.order, done, tool.name) is None
    )


def needed_tools(rules: Rules, wanted: Iterable[str]) -> frozenset[str]:
    """These tools, and all that has to succeed before them."""
    before = {tool.name: {p.tool for p in tool.prerequisites} for tool in rules.tools}
    for use in rules.order:
        before[use.tool].update(use.after)
    found, new = set[str](), {*wanted}
    while new:
        found |= new
        new = {name for tool in new for name in before.get(tool, ())} - found
    return frozenset(found)


def blocking_unknown_outcome(rules: Rules, ledger: Ledger) -> ToolCall | None:
    """A call whose outcome is unknown, and without whose tool the run cannot end."""
    unknown = tuple(call for tool in rules.tools if (call := in_doubt(tool, ledger)))
    if not unknown:
        return None
    left = pending(rules, ledger)
    ends = needed_tools(rules, (*left, *rules.terminal)) - ({*completed(ledger)} - {*left})
    stuck = rules.on_text != "accept" and not legal_tools(rules, ledger)
    return next((call for call in unknown if stuck or call.name in ends), None)


def _values(arguments: str) -> dict[str, msgspec.Raw]:
    return msgspec.json.decode(arguments, type=dict[str, msgspec.Raw])
