"""The rules of a workflow, and what is legal now: asked by enforce, serialize and nudges alike."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, assert_never

from msgspec import Struct

from stages.confidence.unsure import WhenUnsure
from stages.execution.unknown_outcomes import unknown_outcome
from stages.ledger import Listed, Success
from stages.message import ToolCall
from stages.options.option_checks import Options
from stages.policy.levels import Escalation
from stages.policy.named_tools import named_tools
from stages.policy.order import (
    Use,
    argument_value,
    current_successes,
    judged_tools,
    obstacle,
    underused_tools,
    values_left,
)
from stages.policy.own_checks import AnyCheck
from stages.policy.progress import Repeating
from stages.state import Ledger, State
from stages.tool import ToolEffect, ToolSpec

InDoubtPolicy = Literal["report", "ask"]
"""When a person is asked about a call whose outcome is unknown: it was started, and may have taken effect.

- `ask`: before the model's next turn.
- `report`: the model is told and goes on with other tools; the person is asked before the next call of that tool,
  whatever its arguments, and at once where the run cannot end without the tool.

With nobody to ask, the run ends as `OutcomeUnknown`. Calls of tools that only read, or are idempotent, are retried.
"""

TextPolicy = Literal["nudge", "accept"]
"""What bare text means while tools are offered: a mistake to correct, or the answer."""


class RepairLimits(Struct, frozen=True, kw_only=True):
    """How much the repair of a damaged call may guess, by the effect of its tool.

    0: only repairs with one meaning. 1: also what may have been cut off (a closing bracket missing at the end).
    From 2: also where a value begins and ends.
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


OnViolation = Literal["block_all", "block_call"]
"""What a refused call means for the others of its reply: none runs, or the legal ones do."""

BatchPolicy = Literal["auto", "all", "first", "independent"]
"""Which calls of one reply are run: all, the first, or those that do not depend on the results of others.

`auto`: the first in the mode prompted, all in the other modes.
"""


class Rules(Options, frozen=True, kw_only=True):
    """What a workflow demands of the model, and how many mistakes it allows.

    The maxima count mistakes in a row: one more ends the run with the Halt of that name.
    """

    tools: tuple[ToolSpec, ...]
    required: tuple[str, ...] = ()
    on_text: TextPolicy = "nudge"
    rescue: bool = True
    repair_limits: RepairLimits = RepairLimits()
    max_retries: int = 3
    max_tool_errors: int = 2
    max_premature: int = 3
    max_prerequisite_violations: int = 2
    max_repeats: int | None = 2
    """Maximum number of times a call may get the same answer with nothing new in between; None: no maximum."""
    value_checks: bool = True
    """Refuse placeholders and, in answers, forge's own words and slipped numbers."""
    escalation: Escalation = Escalation()
    order: tuple[Use, ...] = ()
    withheld: tuple[str, ...] = ()
    """Tools that may not be called before the user or an error names them: writes that nothing needs."""
    held_back: tuple[str, ...] = ()
    """Tools that no reply to the user's first message is offered while it goes well and nobody speaks of them."""
    checks: Mapping[str, AnyCheck] = {}
    """By tool, a function of the user's that says what is wrong with a call. Rules without any survive JSON."""
    batch: BatchPolicy = "auto"
    on_violation: OnViolation = "block_all"
    max_parallel: int = 4
    """Maximum number of concurrent reads."""
    max_calls: int = 32
    """Maximum number of calls of one reply that are run; the others are answered without being run."""
    in_doubt: InDoubtPolicy = "report"
    """When a person is asked about a call whose outcome is unknown."""
    unsure: WhenUnsure | None = None
    """What follows calls that the model is not sure of; None: nobody asks how sure it is."""

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
    """The required steps that have not succeeded yet, in declared order, then tools not used often enough.

    A success that a later call has made out of date counts no more.
    """
    if not rules.required and not rules.order:
        return ()
    done = current_successes(rules.order, ledger.successes)
    names = {success.name for success in done}
    steps = tuple(step for step in rules.required if step not in names)
    if not rules.order:
        return steps
    return tuple(dict.fromkeys(steps + underused_tools(rules.order, done)))


def listed_values_left(rules: Rules, ledger: Ledger) -> tuple[Listed, ...]:
    """The tools that still have to be called with listed values, and those values."""
    each = [use for use in rules.order if use.each_of]
    done = current_successes(rules.order, ledger.successes) if each else ()
    return tuple(Listed(tool=use.tool, values=left) for use in each if (left := values_left(use, done)))


def welcomes_words(rules: Rules, ledger: Ledger) -> bool:
    """Whether a text is an answer now."""
    return rules.on_text == "accept" and not pending(rules, ledger)


def required_tools(rules: Rules) -> tuple[str, ...]:
    """The tools that have to succeed before the run may end, in declared order."""
    return tuple(dict.fromkeys((*rules.required, *(tool for use in rules.order for tool in use.demanded))))


def succeeded_names(ledger: Ledger) -> tuple[str, ...]:
    """The names of the calls that succeeded, one by one."""
    return tuple([success.name for success in ledger.successes])


def outdated(rules: Rules, ledger: Ledger, names: Iterable[str]) -> tuple[str, ...]:
    """The tools of these that have succeeded, and of which no success counts any more."""
    if not any(use.again_after for use in rules.order):
        return ()
    gone = {*succeeded_names(ledger)} - {one.name for one in current_successes(rules.order, ledger.successes)}
    gone -= {*denied(rules, ledger, gone)}
    return tuple(name for name in names if name in gone)


def denied(rules: Rules, ledger: Ledger, names: Iterable[str]) -> tuple[str, ...]:
    """The tools of these whose latest answer does not count by a rule of theirs, and nothing was written since."""
    judged = judged_tools(rules.order)
    latest = _latest_since_write(rules, ledger) if judged else {}
    return tuple(name for name in names if name in judged and name in latest and not latest[name].passed)


def unsettled_steps(rules: Rules, state: State) -> tuple[str, ...]:
    """The required steps whose latest answer may say no, the latest first, where a tool that writes may mend that.

    Nothing was written since. Either a rule says that the answer does not count; or there is no such rule, the tool
    looks at what was written before, and nobody knows. Where no tool says that it reads, any of them may look.
    """
    required, ledger = required_tools(rules), state.ledger
    if not required or not ledger.successes:
        return ()
    reads = {tool.name for tool in rules.tools if tool.effect == "read"} or {*required}
    judged = judged_tools(rules.order)
    written = {one.name for one in ledger.successes} & _writes(rules)

    def may_say_no(name: str, latest: Success) -> bool:
        if name in judged or name not in reads:
            return name in judged and not latest.passed
        return bool(written - {name})

    recent = _latest_since_write(rules, ledger).items()
    found = [name for name, latest in recent if name in required and may_say_no(name, latest)]
    mendable = found and any(t.effect == "write" and t.name not in found for t in legal_tools(rules, state))
    return tuple(found) if mendable else ()


def _latest_since_write(rules: Rules, ledger: Ledger) -> dict[str, Success]:
    """The latest success of each tool since something was last written, that included; the latest one first."""
    writes = _writes(rules)
    found: dict[str, Success] = {}
    for success in reversed(ledger.successes):
        if success.name not in found:
            found[success.name] = success
        if success.name in writes:
            break
    return found


def _writes(rules: Rules) -> frozenset[str]:
    return frozenset(tool.name for tool in rules.tools if tool.effect == "write")


def repeating_tools(rules: Rules) -> Repeating:
    """The tools that may repeat themselves, and those whose same call made again is nothing new, whatever it answers.

    Those are the ones that write, unless a rule of order wants them more than once.
    """
    free = frozenset(tool.name for tool in rules.tools if tool.repeatable)
    several = {use.tool for use in rules.order if use.at_least > 1 and not use.distinct}
    writes = frozenset(tool.name for tool in rules.tools if tool.effect == "write")
    return Repeating(free=free, once=writes - free - several)


def missing_prerequisites(rules: Rules, tool: ToolSpec, arguments: str | None, ledger: Ledger) -> tuple[str, ...]:
    """The prerequisites of a call that no earlier success meets; with no arguments yet, by name alone."""
    return missing_by_call(rules, ledger)(tool, arguments) if tool.prerequisites else ()


def missing_by_call(rules: Rules, ledger: Ledger) -> Callable[[ToolSpec, str | None], tuple[str, ...]]:
    """The same for any number of calls, for all of which each success is read once."""
    done = current_successes(rules.order, ledger.successes)
    read = dict[tuple[str, str | None], tuple[set[bytes | None], Iterator[bytes | None]]]()

    def met(name: str, key: str | None, wanted: bytes | None) -> bool:
        successes = (argument_value(success.arguments, key) for success in done if success.name == name)
        values, unread = read.setdefault((name, key), (set(), successes))
        if wanted in values:
            return True
        # The first that is found is enough: a long run is not read to its end.
        for value in unread:
            values.add(value)
            if value == wanted:
                return True
        return False

    def missing(tool: ToolSpec, arguments: str | None) -> tuple[str, ...]:
        unmet = []
        for needed in tool.prerequisites:
            key = None if arguments is None else needed.match_arg
            wanted = argument_value(arguments or "{}", key)
            if (key is not None and wanted is None) or not met(needed.tool, key, wanted):
                unmet.append(needed.tool)
        return tuple(unmet)

    return missing


def legal_tools(rules: Rules, state: State) -> tuple[ToolSpec, ...]:
    """The tools that may be called now: prerequisites met, rules of order kept, terminal ones only after all steps.

    Without those that are withheld, unless the history names them, and those with a call whose outcome is unknown: a
    person decides about it first.
    """
    ledger, withheld = state.ledger, still_withheld(rules, state)
    waiting = bool(pending(rules, ledger))
    done = succeeded_names(ledger) if rules.order else ()
    fresh = {success.name for success in current_successes(rules.order, ledger.successes)} if rules.order else done
    return tuple(
        tool
        for tool in rules.tools
        if tool.name not in withheld
        and not (waiting and tool.effect == "terminal")
        and not unknown_outcome(tool, ledger)
        and not missing_prerequisites(rules, tool, None, ledger)
        and obstacle(rules.order, done, tool.name, fresh=fresh) is None
    )


def still_withheld(rules: Rules, state: State) -> frozenset[str]:
    """The withheld tools that neither the user nor an error has named in this run."""
    return frozenset(rules.withheld) - named_tools(rules.withheld, state)


def needed_tools(rules: Rules, wanted: Iterable[str]) -> frozenset[str]:
    """These tools, and all tools that have to succeed before them."""
    before = {tool.name: {p.tool for p in tool.prerequisites} for tool in rules.tools}
    for use in rules.order:
        before.setdefault(use.tool, set()).update(use.after, (use.each_of.tool,) if use.each_of else ())
    found, new = set[str](), {*wanted}
    while new:
        found |= new
        new = {name for tool in new for name in before.get(tool, ())} - found
    return frozenset(found)


def blocking_unknown_outcome(rules: Rules, state: State) -> ToolCall | None:
    """A call whose outcome is unknown and without whose tool the run cannot end; None: there is none."""
    ledger = state.ledger
    unknown = tuple(call for tool in rules.tools if (call := unknown_outcome(tool, ledger)))
    if not unknown:
        return None
    left = pending(rules, ledger)
    ends = needed_tools(rules, (*left, *rules.terminal)) - ({*completed(ledger)} - {*left})
    stuck = rules.on_text != "accept" and not legal_tools(rules, state)
    return next((call for call in unknown if stuck or call.name in ends), None)
