"""Guards: pure functions of a batch of calls and the state before it that object to calls."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeGuard

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stages._later import LazyPattern
from stages.arithmetic import (
    Calculation,
    Incalculable,
    as_json_number,
    calculate,
    calculation_problems,
    calculations_in,
    with_results,
)
from stages.budget import over_budget
from stages.decoding import decode
from stages.halt import PrerequisitesSkipped, StepsSkipped
from stages.message import Kind, Tool, ToolCall, is_user_input, messages_with_calls
from stages.nudges import asked_back
from stages.objection import (
    Custom,
    Forbidden,
    Guard,
    Incomplete,
    Miscalculated,
    Miscalculation,
    NeedsDecision,
    NoCalculation,
    Objection,
    OutOfOrder,
    Placeholder,
    PrerequisiteMissing,
    Repeated,
    Seen,
    StepsPending,
    Stop,
    Ungrounded,
    Unseen,
    Verdict,
    WrongResult,
)
from stages.offer import offered_tools
from stages.options import unfit_function
from stages.order import current_successes, obstacle, value_of
from stages.placeholders import placeholder_arguments
from stages.progress import Made, made
from stages.rules import (
    Rules,
    denied,
    listed_values_left,
    missing_by_call,
    missing_prerequisites,
    outdated,
    pending,
    repeat_policy,
    still_withheld,
    succeeded_names,
    unknown_outcome,
    welcomes_words,
)
from stages.schema import Check, Misfit, checker
from stages.schema.canonical_json import canonical
from stages.schema.value import Json, json_members
from stages.seen import (
    encoded,
    given_latest_first,
    is_own,
    is_source,
    named_values,
    plain_words,
    ungrounded_values,
    unseen_values,
    values_given_by,
)
from stages.state import Edited, Ledger, State
from stages.tool import RECALL, Grounded, ToolSpec

# A guard that judges each call by itself.


def each_call(judge: Callable[[State, ToolCall], Forbidden | None]) -> Guard:
    """The guard that objects to the calls in which `judge` finds something wrong."""

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        return [Objection(call=call, wrong=wrong) for call in calls if (wrong := judge(state, call))]

    guard.__qualname__ = getattr(judge, "__qualname__", "guard")  # traces name a guard by it
    return guard


# Required steps: no terminal call before every one of them has succeeded.


def required_steps(rules: Rules) -> Guard:
    """Object to premature terminal calls, more firmly each time, then stop (`StepsSkipped`)."""
    ends = frozenset(rules.terminal)

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        early = [call for call in calls if call.name in ends]
        steps = pending(rules, state.ledger) if early else ()
        if not steps:
            return []
        attempt = state.ledger.premature + 1
        if attempt > rules.limits.max_premature_attempts:
            return Stop(halt=StepsSkipped(tool=early[0].name, attempts=attempt, pending=steps))
        again, left = outdated(rules, state.ledger, steps), listed_values_left(rules, state.ledger)
        no = denied(rules, state.ledger, steps)
        wrong = StepsPending(steps=steps, attempt=attempt, again=again, left=left, denied=no)
        return [Objection(call=call, wrong=wrong) for call in early]

    return guard


# Prerequisites: no call before the calls that it depends on have succeeded.


def prerequisites(rules: Rules) -> Guard:
    """Object to calls whose prerequisites are unmet, judged before the batch, then stop."""
    dependent = {tool.name: tool for tool in rules.tools if tool.prerequisites}

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        ledger = state.ledger
        missing = missing_by_call(rules, ledger)
        early = [
            (call, unmet)
            for call in calls
            if (tool := dependent.get(call.name)) and (unmet := missing(tool, call.arguments))
        ]
        attempts = ledger.prerequisite_violations + 1
        if early and attempts > rules.limits.max_prereq_violations:
            call, unmet = early[0]
            return Stop(halt=PrerequisitesSkipped(tool=call.name, attempts=attempts, missing=unmet))
        return [Objection(call=c, wrong=_missing(rules, state, dependent[c.name], unmet)) for c, unmet in early]

    return guard


def _missing(rules: Rules, state: State, tool: ToolSpec, unmet: tuple[str, ...]) -> PrerequisiteMissing | NeedsDecision:
    if barred := tuple(name for name in unmet if (spec := rules.tool(name)) and unknown_outcome(spec, state.ledger)):
        return NeedsDecision(tools=barred, allowed=tuple(other.name for other in offered_tools(rules, state)))
    match = tuple(p.match_arg for p in tool.prerequisites if p.match_arg and p.tool in unmet)
    again, no = outdated(rules, state.ledger, unmet), denied(rules, state.ledger, unmet)
    return PrerequisiteMissing(tools=unmet, match=match, again=again, denied=no)


# Withheld: no call of a write that no step needs, until the user or an error names it.

_WITHHELD = "it changes something, and no step of this task needs it"


def withheld(rules: Rules) -> Guard:
    """Object to such calls. Counts as a refusal; the budget bounds it."""

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        barred = still_withheld(rules, state)
        found = [call for call in calls if call.name in barred]
        allowed = tuple(tool.name for tool in offered_tools(rules, state)) if found else ()
        return [Objection(call=call, wrong=OutOfOrder(reason=_WITHHELD, allowed=allowed)) for call in found]

    return guard


# Order: no call that the rules of order forbid now.


def order(rules: Rules) -> Guard:
    """Object to such calls. Counts as a refusal; the budget bounds it."""

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        # Judged in the order in which the calls would run: terminal ones last. A refused call does not run, so it is
        # not ahead of the others.
        ahead: tuple[ToolCall, ...] = ()
        found: dict[str, str] = {}
        for call in sorted(calls, key=lambda call: call.name in rules.terminal):
            if reason := _reason(rules, state.ledger, call, ahead):
                found[call.id] = reason
            else:
                ahead = (*ahead, call)
        if not found:
            return []
        allowed = tuple(tool.name for tool in offered_tools(rules, state))
        return [
            Objection(call=call, wrong=OutOfOrder(reason=found[call.id], allowed=allowed))
            for call in calls
            if call.id in found
        ]

    return guard


def _reason(rules: Rules, ledger: Ledger, call: ToolCall, ahead: tuple[ToolCall, ...]) -> str | None:
    left = replace(ledger, successes=current_successes(rules.order, ledger.successes, ahead))
    names = tuple(one.name for one in ahead)
    reason = obstacle(rules.order, succeeded_names(ledger), call.name, names, succeeded_names(left))
    return reason or _outdated(rules, ledger, left, call)


def _outdated(rules: Rules, ledger: Ledger, left: Ledger, call: ToolCall) -> str | None:
    """The objection that calls ahead in the same reply would make steps out of date that this call needs.

    `left` is the ledger with the successes that would still count.
    """
    tool = rules.tool(call.name)
    if tool is None or len(left.successes) == len(ledger.successes):
        return None
    lacking = {*missing_prerequisites(rules, tool, call.arguments, left)}
    lacking -= {*missing_prerequisites(rules, tool, call.arguments, ledger)}
    if tool.effect == "terminal":
        lacking |= {*pending(rules, left)} - {*pending(rules, ledger)}
    again = ", ".join(name for name in (one.name for one in rules.tools) if name in lacking)
    return f"a call before it in the same reply makes {again} necessary again" if again else None


# Tool calls: no more than the budget has left.


def tool_calls(rules: Rules) -> Guard:
    """Stop a run whose reply has more calls than `Budget.tool_calls` has left; none of them runs."""

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        spent = over_budget(rules, state.ledger, len(calls))
        return Stop(halt=spent) if spent else []

    return guard


# Completion checks: the user's functions that judge a call, and the past calls that they may see.


class PastCall(Struct, frozen=True, kw_only=True):
    """A successful call. `result` is its JSON value, or its text if that is not JSON."""

    tool: str
    arguments: Mapping[str, object]
    result: Json


CheckOfArguments = Callable[[dict[str, object]], str | None]
"""A pure function of a call's arguments that returns what is wrong, as a sentence for the model, or None."""

CheckOfResults = Callable[[dict[str, object], tuple[PastCall, ...]], str | None]
"""The same, also given the successful calls before it, the latest last."""

CompletionCheck = CheckOfArguments | CheckOfResults
"""Either of them; the parameters tell which."""


def sees_results(check: CompletionCheck) -> TypeGuard[CheckOfResults]:
    """Whether the check also takes the past calls."""
    return not _of_arguments(check) and unfit_function(check, "arguments", "results") is None


def _of_arguments(check: CompletionCheck) -> TypeGuard[CheckOfArguments]:
    return unfit_function(check, "arguments") is None


def _of_both(check: CompletionCheck) -> CheckOfResults:
    """The check as a function of both. Raises TypeError for other parameters."""
    if _of_arguments(check):
        of_one = check
        return lambda arguments, _: of_one(arguments)
    if sees_results(check):
        return check
    raise TypeError(f"a completion check takes (arguments) or (arguments, results): {unfit_function(check, '')}")


def past_calls(state: State) -> tuple[PastCall, ...]:
    """The successful calls, in order, with results that compaction cut, if they can be recalled."""
    cut = {entry.call_id: entry for entry in state.cleared}
    here = {message.call_id for message in state.history if isinstance(message, Tool)}
    found = [
        _past_call(e.name, e.arguments, e.text)
        for e in state.cleared
        if e.call_id not in here and e.status == "succeeded"
    ]
    for message, call in messages_with_calls(state.history):
        match message:
            case Tool(kind=Kind.TOOL_RESULT, status="succeeded", name=name, call_id=call_id) if name != RECALL.name:
                text = cut[call_id].text if call_id in cut else message.text
                found.append(_past_call(name, call.arguments if call else "{}", text))
            case _:
                pass
    return tuple(found)


def _past_call(tool: str, arguments: str, result: str) -> PastCall:
    given = MappingProxyType(_argument_values.decode(arguments))
    return PastCall(tool=tool, arguments=given, result=value_of(result))


_argument_values: msgspec.json.Decoder[dict[str, object]] = msgspec.json.Decoder(dict[str, object])


def completion(checks: Mapping[str, CompletionCheck], tools: tuple[ToolSpec, ...] = ()) -> Guard:
    """Object to calls that the check of their tool refuses. Counts as a refusal.

    Calculated arguments of `tools` are replaced by their results for the check. Raises TypeError for a check with other
    parameters.
    """
    calculating = {tool.name: tool for tool in tools if tool.calculated}
    both = {name: _of_both(check) for name, check in checks.items()}
    wanted = {name for name, check in checks.items() if sees_results(check)}

    def problem_with(call: ToolCall, past: tuple[PastCall, ...]) -> str | None:
        tool = calculating.get(call.name)
        try:
            arguments = with_results(call.arguments, tool) if tool else call.arguments
        except ValueError as error:
            return f"{error}."
        return both[call.name](_argument_values.decode(arguments), past)

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        checked = [call for call in calls if call.name in both]
        past = past_calls(state) if any(call.name in wanted for call in checked) else ()
        problems = ((call, problem_with(call, past)) for call in checked)
        return [Objection(call=call, wrong=Incomplete(problem=problem)) for call, problem in problems if problem]

    return guard


# Grounding: no call with a value that nobody gave. A required step shows that a tool ran, not that its result was used.
#
# The user's words and the tools' answers, errors included, count as given. An answer is no evidence for a value that it
# repeats from its own call. `stages.seen` decides whether a text shows a value.

_MadeUp = tuple[tuple[Grounded, Json], ...]


def grounding(rules: Rules) -> Guard:
    """Object to calls that have an ungrounded value. Counts as a refusal; the budget bounds it."""
    bound = {tool.name: tool for tool in rules.tools if tool.grounded}

    def guard(state: State, call: ToolCall) -> Ungrounded | None:
        tool = bound.get(call.name)
        made_up = ungrounded_values(tool, call.arguments, state) if tool else ()
        return _ungrounded(rules, state, tool, made_up) if tool and made_up else None

    return each_call(guard)


def _ungrounded(rules: Rules, state: State, tool: ToolSpec, made_up: _MadeUp) -> Ungrounded:
    # No other values are suggested while a person has to decide about a call of this tool.
    waits = unknown_outcome(tool, state.ledger) is not None
    optional = tool.optional
    values = tuple(
        Unseen(argument=b.argument, value=encoded(value), sources=b.sources, optional=b.argument in optional)
        for b, value in made_up
    )
    seen = tuple(
        Seen(name=b.argument, value=encoded(value), tool=source)
        for b, v in made_up
        if not waits
        for value, source in _instead(b, v, state, optional=b.argument in optional)
    )
    others = () if seen else tuple(other.name for other in offered_tools(rules, state) if other.name != tool.name)
    return Ungrounded(values=values, seen=seen, others=others)


_PROPOSED_VALUES = 3


def _instead(bound: Grounded, value: Json, state: State, *, optional: bool) -> tuple[tuple[Json, str], ...]:
    """The latest values from tools for the argument: those under its own name, else any of its type; three at most.

    For an optional argument, only values under its own name.
    """
    alike = dict[tuple[Json, str], None]()
    named = dict[tuple[Json, str], None]()
    for one in given_latest_first(state):
        if not one.tool or not is_source(one, bound):
            continue
        known = [(n, leaf) for n, leaf in values_given_by(one) if n or leaf is not one.text]
        for name, leaf in reversed(known):
            if is_own(bound, name, one.tool):
                named[leaf, one.tool] = None
            if isinstance(leaf, str) is isinstance(value, str):
                alike[leaf, one.tool] = None
        if len(named) >= _PROPOSED_VALUES:
            break  # a long history is not read to its beginning
    return tuple(named or ({} if optional else alike))[:_PROPOSED_VALUES]


# Unseen values: no write without any rule of its own with a value that nobody gave.


def no_unseen_values(rules: Rules) -> Guard:
    """Object to such calls. Counts as a refusal; the budget bounds it.

    A value is a number, a text with a digit (an ID, a time), or a short text such as a name, of which at least one word
    must be given; longer texts are the model's own words. The schema gives what it lists or has as a default. Numbers,
    dates and times may be derived ("tomorrow at noon"), so they are accepted when the same call is made again.
    """
    free = {tool.name: tool for tool in rules.tools if tool.name in rules.unruled}

    def guard(state: State, call: ToolCall) -> Ungrounded | None:
        unseen = _unseen(free[call.name], call, state) if call.name in free else ()
        reads = (one.name for one in offered_tools(rules, state) if one.effect == "read") if unseen else ()
        return Ungrounded(values=unseen, others=tuple(name for name in reads if name != call.name)) if unseen else None

    return each_call(guard)


def _unseen(tool: ToolSpec, call: ToolCall, state: State) -> tuple[Unseen, ...]:
    values = decode(json_members, call.arguments)
    refused = (
        attempt.arguments for attempt in state.ledger.attempts if attempt.name == call.name and not attempt.answer
    )
    again = canonical(call.arguments) in map(canonical, refused)
    return tuple(
        Unseen(argument=name, value=encoded(value))
        for name, value in values.items()
        if (parts := _parts(value))
        and not (again and (isinstance(value, int | float) or _NUMERIC.compiled.fullmatch(str(value))))
        and not _is_listed(tool, name, value)
        and len(unseen_values(parts, Grounded(argument=name), state)) == len(parts)
    )


_FEW = 3
"""Maximum words of a text that is a value; longer ones are the model's own words."""


def _parts(value: Json) -> list[Json]:
    """The parts of a value of which at least one must be given: itself, or the words of a short text; else none."""
    if isinstance(value, str):
        if any(map(str.isdigit, value)):
            return [value]
        words = [word for word in plain_words(value) if len(word) > 1]
        return [*words] if len(words) <= _FEW else []
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


_NUMERIC = LazyPattern(r"[\d\s:./,+TZ-]{1,40}(?: ?[ap]\.?m\.?)?", re.IGNORECASE)
"""A number, a date or a time."""


def _is_listed(tool: ToolSpec, name: str, value: Json) -> bool:
    """Whether the argument's schema lists the value, or has it as a default; what it refers to may do so."""
    schema = bytes(tool.properties.get(name, b"{}")).decode()
    listed = (leaf for key, leaf in named_values(schema) if key in _LISTING)
    return '"$ref"' in schema or canonical(encoded(value)) in (canonical(encoded(one)) for one in listed)


_LISTING = ("enum", "const", "default")


# Placeholders: no call with a placeholder as an argument, such as `<customer_id>`.


def no_placeholders(rules: Rules) -> Guard:
    """Object to such calls. Counts as a refusal; the budget bounds it."""
    tools = {tool.name: tool for tool in rules.tools}

    def guard(state: State, call: ToolCall) -> Placeholder | None:
        found = placeholder_arguments(call, tools, state) if call.name in tools else ()
        return (
            Placeholder(arguments=found, again=not unknown_outcome(tools[call.name], state.ledger)) if found else None
        )

    return each_call(guard)


# Questions: none to the user that only repeats the user's own message, as small models do.


def no_echoes(tool: str, argument: str) -> Guard:
    """Object to calls of the tool whose argument repeats the user's last message. Counts as a refusal."""

    def guard(state: State, call: ToolCall) -> Custom | None:
        said = next(filter(is_user_input, reversed(state.history)), None) if call.name == tool else None
        words = plain_words(said.text) if said else []
        asked = decode(json_members, call.arguments).get(argument) if words else None
        return Custom(text=asked_back(tool)) if isinstance(asked, str) and plain_words(asked) == words else None

    return each_call(guard)


# Repetition: no third time for a call with the same answer twice, or a write made twice, with nothing new in between.


def repetition(rules: Rules) -> Guard:
    """Object to calls that were already answered `max_repeats` times, the last time without anything new.

    A repeated write brings nothing new, whatever it answers (`stages.progress`); a write without any rule is made only
    once. `repeatable` tools are exempt. It never ends a run.
    """
    most = rules.limits.max_repeats
    bound = {tool.name: tool for tool in rules.tools if not tool.repeatable}
    repeating = repeat_policy(rules)
    once, lasting = repeating.once, repeating.lasting
    limit = {name: 1 if name in rules.unruled else most or 0 for name in bound}

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        ledger = state.ledger
        if most is None or not (ledger.attempts or ((rules.unruled or most == 1) and ledger.successes)):
            return []
        earlier = [(call, made(ledger, call, lasting=call.name in lasting)) for call in calls if call.name in bound]
        counted = [(call, one, _times(one, state, written=call.name in once, most=most)) for call, one in earlier]
        again = [(call, one.answers, count) for call, one, count in counted if count >= limit[call.name]]
        # Only writes that are pending steps are suggested to a model that is stuck.
        left = pending(rules, ledger) if again else []
        may = offered_tools(rules, state) if again else ()
        others = tuple(tool.name for tool in may if tool.effect != "write" or tool.name in left)
        return [
            Objection(
                call=call,
                wrong=Repeated(
                    times=count,
                    others=others,
                    written=call.name in once and answers > 1,
                    words=welcomes_words(rules, ledger),
                ),
            )
            for call, answers, count in again
        ]

    return guard


def _times(earlier: Made, state: State, *, written: bool, most: int) -> int:
    """How often the call was made without anything new; for a write, how often since the last user message.

    If the maximum is one, a look-up that was made once with nothing new since counts too.
    """
    turns = earlier.turns if written else earlier.turns[:1] if most == 1 else ()
    if len(turns) <= earlier.answered:
        return earlier.answered
    asked = next((m.turn for m in reversed(state.history) if is_user_input(m)), 0)
    return max(earlier.answered, sum(turn > asked for turn in turns))


# Calculated: no call with an invalid calculation, or one with numbers that nobody gave.
#
# The model writes the calculation and forge evaluates it (`stages.arithmetic`, which also defines which numbers count
# as given).

_SHOWN = 6
"""Maximum numbers that a correction suggests, the latest ones."""

_Checks = dict[tuple[str, str], Check]


def calculated(rules: Rules) -> Guard:
    """Object to such calls. Counts as a refusal; the budget bounds it."""
    bound = {tool.name: tool for tool in rules.tools if tool.calculated}
    checks = {
        (t.name, c.argument): checker(msgspec.json.encode({"type": "object", "properties": {c.argument: c.number}}))
        for t in bound.values()
        for c in t.calculated
    }

    def guard(state: State, call: ToolCall) -> Miscalculated | None:
        tool = bound.get(call.name)
        problems = _problems(tool, call.arguments, state, checks) if tool else ()
        return _miscalculated(rules, state, tool, problems) if tool and problems else None

    return each_call(guard)


def _problems(tool: ToolSpec, arguments: str, state: State, checks: _Checks) -> tuple[Miscalculation, ...]:
    """What is wrong with the calculations; if nothing is, the results that do not match the argument's schema."""
    # A person who edits a number need not show where it comes from.
    if not isinstance(state.phase, Edited) and (wrong := calculation_problems(tool, arguments, state)):
        return wrong
    found: list[Miscalculation] = []
    for bound, text in calculations_in(tool, arguments):
        name = bound.argument
        match calculate(text):
            case Incalculable(problem=problem):
                found.append(NoCalculation(argument=name, text=text, problem=problem))
            case Calculation(result=result):
                fit = checks[tool.name, name](encoded({name: as_json_number(result)}))
                problems = fit.problems if isinstance(fit, Misfit) else ()
                found += [WrongResult(argument=name, text=text, expected=p.expected, found=p.found) for p in problems]
    return tuple(found)


def _miscalculated(rules: Rules, state: State, tool: ToolSpec, problems: tuple[Miscalculation, ...]) -> Miscalculated:
    # No numbers are suggested while a person has to decide about a call of this tool.
    given = () if unknown_outcome(tool, state.ledger) else reversed([*given_latest_first(state)])
    numbers = dict.fromkeys(
        (name, leaf, one.tool)
        for one in given
        if one.tool
        for name, leaf in values_given_by(one)
        if name and isinstance(leaf, int | float) and not isinstance(leaf, bool)
    )
    seen = tuple(Seen(name=name, value=encoded(value), tool=source) for name, value, source in [*numbers][-_SHOWN:])
    others = () if seen else tuple(other.name for other in offered_tools(rules, state) if other.name != tool.name)
    return Miscalculated(problems=problems, seen=seen, others=others)


class _Row(Struct, frozen=True):
    """How to make a guard, and whether it can object to anything under these rules."""

    make: Callable[[Rules], Guard]
    applies: Callable[[Rules], bool]


# The order matters: a guard sees only the calls that those before it let through, so the first objection determines the
# correction, and a Stop ends the run at once. Missing calls come first (steps, prerequisites, order), because no other
# value would help; then the values, placeholders before grounding, which would say less; then repetition. The user's
# checks come last, so that they only see calls that are otherwise right.
GUARDS: Mapping[str, _Row] = MappingProxyType(
    {
        "required_steps": _Row(required_steps, lambda rules: bool(rules.required or rules.order)),
        "prerequisites": _Row(prerequisites, lambda rules: any(tool.prerequisites for tool in rules.tools)),
        "withheld": _Row(withheld, lambda rules: bool(rules.withheld)),
        "order": _Row(order, lambda rules: bool(rules.order)),
        "no_placeholders": _Row(no_placeholders, lambda _: True),
        "grounding": _Row(grounding, lambda rules: any(tool.grounded for tool in rules.tools)),
        "no_unseen_values": _Row(no_unseen_values, lambda rules: bool(rules.unruled)),
        "calculated": _Row(calculated, lambda rules: any(tool.calculated for tool in rules.tools)),
        "repetition": _Row(repetition, lambda rules: rules.limits.max_repeats is not None),
        "completion": _Row(lambda rules: completion(rules.checks, rules.tools), lambda rules: bool(rules.checks)),
    }
)
"""Every guard that follows from rules, in the order asked, by its name in `Rules.without` and `forge ablate`."""


def guards_of(rules: Rules) -> tuple[Guard, ...]:
    """The guards that can object under these rules, in the order in which they are asked."""
    on = (rule for name, rule in GUARDS.items() if name not in rules.without)
    return tuple(rule.make(rules) for rule in on if rule.applies(rules))
