"""What scenarios check answers with: values as values, facts in a text as whole words and numbers."""

import re
from collections.abc import Iterable, Sequence
from math import isclose

import msgspec

from forge.evals.scenario import PerformedCall, Trajectory
from stages.effect import Said
from stages.state import Completed

Fact = str | float
"""A word or several, found as such; or a number, found by its value."""

_NUMBER = re.compile(r"(?<![A-Za-z]-)(?<![A-Za-z\d.])\d[\d,]*(?:\.\d+)?")


def same(one: object, other: object) -> bool:
    """Whether the values are equal: texts without regard to case and outer spaces, numbers by value."""
    if isinstance(one, str) and isinstance(other, str):
        return one.strip().casefold() == other.strip().casefold()
    if isinstance(one, int | float) and isinstance(other, int | float):
        return isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def mentions(text: str, fact: Fact) -> bool:
    """Whether the text has the fact: the words in one piece, whatever their case, or a number of that value."""
    if isinstance(fact, str):
        return re.search(rf"(?<!\w){re.escape(fact)}(?!\w)", text, re.IGNORECASE) is not None
    numbers = (float(found.replace(",", "")) for found in _NUMBER.findall(text))
    return any(isclose(number, fact, rel_tol=1e-6) for number in numbers)


def first_of(*problems: str) -> str:
    """The first problem that there is; empty: none."""
    return next(filter(None, problems), "")


def last_call(trajectory: Trajectory, tool: str) -> PerformedCall | None:
    """The last call of the tool that did not fail."""
    return next(reversed(trajectory.of(tool)), None)


def sent(trajectory: Trajectory, tool: str, **wanted: object) -> str:
    """What is wrong with the values that the tool was last called with; empty: nothing."""
    made = last_call(trajectory, tool)
    return differing(made, wanted) if made else f"{tool} was not called"


def looked_up(trajectory: Trajectory, tool: str, **wanted: object) -> str:
    """That none of the calls of the tool had these values; empty: one had."""
    if any(not differing(call, wanted) for call in trajectory.of(tool)):
        return ""
    return f"{tool} was not asked for {', '.join(map(str, wanted.values()))}"


def differing(call: PerformedCall, wanted: dict[str, object]) -> str:
    """Which arguments of the call are not what is wanted; empty: none."""
    given = call.arguments
    wrong = [f"{n} is {given.get(n)!r}, not {v!r}" for n, v in wanted.items() if not same(given.get(n), v)]
    return f"{call.tool}: {'; '.join(wrong)}" if wrong else ""


def told(text: str, facts: Iterable[Fact | tuple[Fact, ...]], never: Sequence[Fact] = ()) -> str:
    """Which of the facts the text lacks (of a tuple, one is enough), or what it has that is not so."""
    for fact in facts:
        either = fact if isinstance(fact, tuple) else (fact,)
        if not any(mentions(text, one) for one in either):
            return f"the answer does not say {' or '.join(map(str, either))}"
    return next((f"the answer says {fact}, which is not so" for fact in never if mentions(text, fact)), "")


def written(trajectory: Trajectory, tool: str, argument: str) -> str:
    """The text that the tool was last called with; empty if it was not called."""
    made = last_call(trajectory, tool)
    return str(made.arguments.get(argument, "")) if made else ""


def answer(trajectory: Trajectory) -> str:
    """What the user was told in words at the end: a text, or the message of `respond`."""
    match trajectory.outcome:
        case Said(text=text):
            return text
        case Completed(tool="respond", value=value):
            return msgspec.json.decode(value, type=str)
        case _:
            return ""


def used(calls: Sequence[PerformedCall], *tools: str) -> str:
    """The tools of these that were performed, as what was done wrong; empty: none."""
    wrong = [call.tool for call in calls if call.tool in tools and not call.error]
    return f"{' and '.join(dict.fromkeys(wrong))} ran, which nobody asked for" if wrong else ""


def miswritten(calls: Sequence[PerformedCall], tool: str, **wanted: object) -> str:
    """What was wrong with the calls of a tool that should run once at most, with these values; empty: nothing."""
    made = [call for call in calls if call.tool == tool and not call.error]
    wrong = [differing(call, wanted) for call in made]
    return first_of(*wrong, f"{tool} ran {len(made)} times" if len(made) > 1 else "")
