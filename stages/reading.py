"""Reading a reply: which calls the model meant, wherever it put them, and what is wrong with each."""

import difflib
from collections.abc import Callable, Iterable
from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from stages import nudges
from stages.effect import RawCall, Reply
from stages.rescue import Family, Names, Rescued, rescuer, split_reasoning
from stages.rules import Rules
from stages.schema import Check, Fits, Misfit, Problem, checker
from stages.wire import prompted


class Judged(Struct, frozen=True, kw_only=True):
    """One call; `correction` says what is wrong with it, empty: it may run.

    `arguments` is what the model gave, or, for a call that may run, the canonical JSON of it.
    """

    name: str
    arguments: str
    origin: str = "native"
    repairs: tuple[str, ...] = ()
    fault: Literal["unknown_tool", "bad_arguments"] | None = None
    correction: str = ""


class Reading(Struct, frozen=True, kw_only=True):
    """A reply taken apart. Without `calls`, `damage` says what is wrong with one that was clearly meant."""

    text: str
    reasoning: str
    calls: tuple[Judged, ...] = ()
    damage: str | None = None


Read = Callable[[Reply], Reading]


def reader(rules: Rules, *, in_text: bool, families: tuple[Family, ...]) -> Read:
    """A function from replies to readings; the tools' schemas are compiled here, once.

    `in_text`: calls are asked for as text (`stages.wire.prompted`), so that very form is read even where
    rescue is off.
    """
    checks = {tool.name: checker(tool.parameters) for tool in rules.tools}
    rescue = rescuer(families)

    def read(reply: Reply) -> Reading:
        thought, text = split_reasoning(reply.text)
        reasoning = "\n\n".join(filter(None, (reply.reasoning, thought)))
        cut = reply.finish == "length"
        if reply.calls:
            calls = tuple(_judged(call, checks, "native", cut=cut) for call in reply.calls)
            return Reading(text=text, reasoning=reasoning, calls=calls)
        if in_text and (asked := prompted.decode_calls(text)):
            calls = tuple(_judged(call, checks, "prompted", cut=cut) for call in asked)
            return Reading(text="", reasoning=reasoning, calls=calls)
        if rules.rescue:
            return _rescued(rescue(text, checks.keys()), text, reasoning, checks, cut=cut)
        return Reading(text=text, reasoning=reasoning)

    return read


def _rescued(found: Rescued, text: str, reasoning: str, checks: dict[str, Check], *, cut: bool) -> Reading:
    if not found.calls:
        unknown = nudges.no_such_tool(found.unknown[0], _nearest(found.unknown[0], checks)) if found.unknown else None
        return Reading(text=text, reasoning=reasoning, damage=found.damage or unknown)
    known = (
        _checked(RawCall(name=c.name, arguments=c.arguments), checks[c.name], c.origin, c.repairs, cut=cut)
        for c in found.calls
    )
    strangers = (_unknown(RawCall(name=name, arguments="{}"), checks, "text") for name in found.unknown)
    return Reading(text=found.rest, reasoning=reasoning, calls=(*known, *strangers))


def _judged(call: RawCall, checks: dict[str, Check], origin: str, *, cut: bool) -> Judged:
    meant = Names(checks.keys()).find(call.name)
    if len(meant) != 1:
        return _unknown(call, checks, origin)
    repairs = () if meant[0] == call.name else (f"name {nudges.quote(call.name, 60)}",)
    return _checked(replace(call, name=meant[0]), checks[meant[0]], origin, repairs, cut=cut)


def _unknown(call: RawCall, checks: dict[str, Check], origin: str) -> Judged:
    correction = nudges.unknown_tool(call.name, tuple(checks), _nearest(call.name, checks))
    return Judged(name=call.name, arguments=call.arguments, origin=origin, fault="unknown_tool", correction=correction)


def _checked(call: RawCall, check: Check, origin: str, repairs: tuple[str, ...], *, cut: bool) -> Judged:
    match check(call.arguments):
        case Fits(arguments=arguments, repairs=coerced):
            return Judged(name=call.name, arguments=arguments, origin=origin, repairs=repairs + coerced)
        case Misfit(problems=problems):
            return Judged(
                name=call.name,
                arguments=call.arguments,
                origin=origin,
                repairs=repairs,
                fault="bad_arguments",
                correction=nudges.bad_arguments(call.name, tuple(map(_sentence, problems)), cut=cut),
            )
        case other:
            assert_never(other)


def _sentence(problem: Problem) -> str:
    where = f"{problem.path}: " if problem.path else ""
    return f"{where}expected {problem.expected}, got {problem.found}"


def _nearest(name: str, names: Iterable[str]) -> str | None:
    close = difflib.get_close_matches(name[:80].lower(), [*names], n=1)
    return close[0] if close else None
