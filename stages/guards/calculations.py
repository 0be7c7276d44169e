"""Calculated: no call with a calculation that cannot be worked out, or whose numbers nobody gave.

The model writes the calculation, forge does it (`stages.grounding.calculation`); what counts as given is in
`stages.grounding.miscalculations`.
"""

import msgspec

from stages.execution.unknown_outcomes import unknown_outcome
from stages.grounding.calculated_arguments import calculations_in
from stages.grounding.calculation import Calculation, Incalculable, as_json_number, calculate
from stages.grounding.miscalculations import Miscalculation, NoCalculation, WrongResult, calculation_problems
from stages.grounding.sources import everything_given, values_given_by
from stages.message import ToolCall
from stages.objection import Miscalculated, Objection, Seen
from stages.policy.escalation import offered_tools
from stages.policy.rules import Rules
from stages.schema import Check, Misfit, checker
from stages.schema.value import Json
from stages.state import Edited, State
from stages.tool import Calculated, ToolSpec
from stages.verdict import Guard, Verdict

_SHOWN = 6
"""Numbers that a correction names, the latest ones."""

_Checks = dict[tuple[str, str], Check]


def calculated(rules: Rules) -> Guard:
    """Object to such calls. Counts as a refusal; the budget bounds it."""
    bound = {tool.name: tool for tool in rules.tools if tool.calculated}
    checks = {(t.name, c.argument): _check(c) for t in bound.values() for c in t.calculated}

    def guard(state: State, calls: tuple[ToolCall, ...]) -> Verdict:
        return [
            Objection(call=call, wrong=_wrong(rules, state, bound[call.name], problems))
            for call in calls
            if call.name in bound and (problems := _problems(bound[call.name], call.arguments, state, checks))
        ]

    return guard


def _check(bound: Calculated) -> Check:
    """The check of the result, as the only argument of that name."""
    return checker(msgspec.json.encode({"type": "object", "properties": {bound.argument: bound.number}}))


def _problems(tool: ToolSpec, arguments: str, state: State, checks: _Checks) -> tuple[Miscalculation, ...]:
    # A person who writes a number means it; how they came to it is their own affair.
    found = () if isinstance(state.phase, Edited) else calculation_problems(tool, arguments, state)
    return found or _misfits(tool, arguments, checks)


def _misfits(tool: ToolSpec, arguments: str, checks: _Checks) -> tuple[Miscalculation, ...]:
    """Each result that does not fit what the argument may be."""
    found: list[Miscalculation] = []
    for bound, text in calculations_in(tool, arguments):
        name = bound.argument
        match calculate(text):
            case Incalculable(problem=problem):
                found.append(NoCalculation(argument=name, text=text, problem=problem))
            case Calculation(result=result):
                fit = checks[tool.name, name](_json({name: as_json_number(result)}))
                problems = fit.problems if isinstance(fit, Misfit) else ()
                found += [WrongResult(argument=name, text=text, expected=p.expected, found=p.found) for p in problems]
    return tuple(found)


def _wrong(rules: Rules, state: State, tool: ToolSpec, problems: tuple[Miscalculation, ...]) -> Miscalculated:
    # What it could be called with instead is not said while a person has to decide about a call of it.
    numbers = () if unknown_outcome(tool, state.ledger) else _numbers(state)
    seen = tuple(Seen(name=name, value=_json(value), tool=source) for name, value, source in numbers)
    others = () if seen else tuple(other.name for other in offered_tools(rules, state) if other.name != tool.name)
    return Miscalculated(problems=problems, seen=seen, others=others)


def _numbers(state: State) -> tuple[tuple[str, Json, str], ...]:
    """The latest numbers that tools gave, with their names and the tools, in the order in which they were given."""
    known = [
        (n, leaf, one.tool) for one in everything_given(state) if one.tool for n, leaf in values_given_by(one) if n
    ]
    numbers = [entry for entry in known if isinstance(entry[1], int | float) and not isinstance(entry[1], bool)]
    return tuple(dict.fromkeys(numbers))[-_SHOWN:]


def _json(value: Json) -> str:
    return msgspec.json.encode(value).decode()
