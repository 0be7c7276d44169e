"""What the model is told of a call whose values nobody gave, or whose calculations cannot be used."""

from collections.abc import Sequence
from typing import assert_never

from stages.grounding.miscalculations import (
    Miscalculation,
    NoCalculation,
    NumberAlone,
    NumberOverused,
    NumbersUnseen,
    PercentageAsAmount,
    WrongResult,
)
from stages.nudges.quoting import listed, may_call, quote
from stages.objection import Miscalculated, Seen, Ungrounded, Unseen


def ungrounded(tool: str, wrong: Ungrounded) -> str:
    """What is wrong with each value, and which there are instead."""
    source = _where_seen(tool, wrong.seen) if wrong.seen else _find_first(wrong.others)
    needless = [one.argument for one in wrong.values if one.optional]
    leave = f"Leave {listed(needless)} out if nobody gave it. " if needless else ""
    return f"{tool} was not run: {'; '.join(map(_not_seen, wrong.values))}. {leave}{source}"


def miscalculated(tool: str, wrong: Miscalculated) -> str:
    """What is wrong with each calculation, and which numbers there are."""
    source = _numbers_seen(tool, wrong.seen) if wrong.seen else _find_first(wrong.others)
    return f"{tool} was not run: {'; '.join(map(_problem, wrong.problems))}. {source}"


def _not_seen(unseen: Unseen) -> str:
    if unseen.no_id:
        return f"{unseen.argument} is {quote(unseen.value, 80)}, which is none of the ids that were given"
    where = (
        f"in no result of {' or '.join(unseen.sources)}"
        if unseen.sources
        else "in no earlier result, and the user did not say it"
    )
    return f"{unseen.argument} is {quote(unseen.value, 80)}, which stands {where}"


def _problem(problem: Miscalculation) -> str:
    what = f"{problem.argument} is {quote(problem.text, 80)!r}"
    match problem:
        case NoCalculation(problem=why):
            return f"{what}, which cannot be calculated: {why}"
        case NumberAlone():
            return f"{what}, a number alone; write the whole calculation that it comes from"
        case NumbersUnseen(numbers=numbers):
            return f"{what}, but neither a result nor the user gave {listed(numbers)}"
        case NumberOverused(number=number, used=used, given=given):
            times = "once" if given == 1 else f"{given} times"
            return f"{what}, but {number} was given {times}, not {used} times; take it {times}, or multiply"
        case PercentageAsAmount(number=number):
            return f"{what}, but {number} is a percentage ({number} %) and no amount; write {number} / 100 * the amount"
        case WrongResult(expected=expected, found=found):
            return f"{what}, which comes to {found}; expected {expected}"
        case _:
            assert_never(problem)


def _where_seen(tool: str, seen: Sequence[Seen]) -> str:
    listing = ", ".join(f"{one.name} = {quote(one.value, 80)} (from {one.tool})" for one in seen)
    return f"Call {tool} again with values exactly as they were given: {listing}."


def _numbers_seen(tool: str, seen: Sequence[Seen]) -> str:
    listing = ", ".join(f"{one.name} = {one.value} (from {one.tool})" for one in seen)
    return f"Call {tool} again and calculate with numbers that were given: {listing}."


def _find_first(tools: Sequence[str]) -> str:
    """Where nothing was seen that would do; `tools` are those that may find it."""
    return f"Never make a value up: first find it out.{may_call(tools)}"
