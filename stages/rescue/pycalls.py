"""Calls written as Python, read by a grammar of literals; nothing is ever evaluated."""

import re

from msgspec import Struct

from stages.repair.damaged_json import BrokenJson, FoundJson, repair_json
from stages.repair.json_text import json_at, object_members
from stages.rescue.found import Claim
from stages.rescue.names import Names
from stages.rescue.tags import past_closing

_HEAD = re.compile(
    r"\s*+(?:[Pp]rint\(\s*+|await\s++)?[*`\"']{0,2}([A-Za-z_][\w.:/-]{0,120}+)(?:\(\)(?=\())?[*`\"']{0,2}\s*+[(\uff08]\s*+"
)
_ASSIGNED = re.compile(r"\s*+[A-Za-z_]\w{0,60}+\s*+=(?!=)\s*+")
_PRINTED = re.compile(r"(?:\s*+print\(\s*+[A-Za-z_]\w{0,60}+\s*+\))++")
_KEYWORD = re.compile(r"[A-Za-z_]\w{0,100}+\s*+(?:=(?!=)|:)")
_OBJECT_END = re.compile(r"[}\]\s]{0,8}+,?\s*+\)")
_SEPARATOR = re.compile(r"[ \t]*+[,;]?\s*+")
_LIST_OPEN = re.compile(r"\[\s*")
_LIST_CLOSE = re.compile(r"\s*+[,)]?\s*+\]")
_OF_PYTHON = frozenset({"single_quotes", "python_literals", "trailing_comma"})
"""Repairs of what is sound in Python."""
_LAX = frozenset({"missing_comma", "semicolon", "missing_colon", "missing_opener", "equals_sign", "bare_key"})
"""Repairs of what is no Python, which count, as guesses do, only where a tool has all the parameters given."""
_BLANK_TO_END = re.compile(r"\s*+\Z")


class PythonCalls(Struct, frozen=True):
    """Calls, or why they cannot be used, and where they ended; with neither, Python that calls no known tool."""

    claims: tuple[Claim, ...]
    end: int
    damage: str | None = None


def call_list(text: str, start: int, names: Names, *, script: bool = False) -> PythonCalls | None:
    """`[f(x=1), g()]`, or the same without brackets, one call after another; None: something else.

    `script`: a call may be assigned to a name, and a name may be printed. Elsewhere such code is only shown.
    """
    opening = _LIST_OPEN.match(text, start)
    claims: list[Claim] = []
    position = opening.end() if opening else start
    while True:
        if script and (assigned := _ASSIGNED.match(text, position)):
            position = assigned.end()
        one = _call(text, position, names)
        if one is None:
            break
        if not one.claims:
            # A list is one value: if it is cut off, none of it is certain.
            return PythonCalls(() if opening else tuple(claims), one.end, one.damage)
        claims += one.claims
        position = end = one.end
        separator = _SEPARATOR.match(text, end)
        position = separator.end() if separator else end
    if not claims:
        return None
    if not opening:
        printed = _PRINTED.match(text, end) if script else None
        return PythonCalls(tuple(claims), printed.end() if printed else end)
    closing = _LIST_CLOSE.match(text, end)
    if closing:
        return PythonCalls(tuple(claims), closing.end())
    if _BLANK_TO_END.match(text, end) or past_closing(text, end) > end:
        return PythonCalls(tuple(map(_unclosed, claims)), end)
    if not _BLANK_TO_END.match(text, position):
        return PythonCalls((), end)
    return PythonCalls((), len(text), "its list of calls is cut off before it is complete.")


def _unclosed(claim: Claim) -> Claim:
    repairs = (*claim.repairs, "missing_closer")
    return Claim(name=claim.name, arguments=claim.arguments, repairs=repairs, cost=claim.cost + 1)


def _call(text: str, start: int, names: Names) -> PythonCalls | None:
    head = _HEAD.match(text, start)
    if head is None:
        return None
    # A module's name before the function's is Python's business: `weather_api.get_weather(…)`.
    # Llama's own tools are called through a method: `brave_search.call(…)`.
    name = head[1] if names.knows(head[1]) else head[1].removesuffix(".call").rsplit(".", 1)[-1]
    known, position = names.knows(name), head.end()
    if text.startswith(")", position):
        return PythonCalls((Claim(name=name, arguments="{}"),), _past_print(text, head, position + 1))
    given_whole = position + 2 * text.startswith("**{", position)
    if text.startswith("{", given_whole) and known:
        return _of_object(text, head, given_whole, name)
    parameters = names.parameters(name)
    found = repair_json(text, position, called=parameters)
    # The end of the text may have left more open than the call: its last value.
    read = found if isinstance(found, FoundJson) and found.left_open <= 1 else None
    lax = read and (read.cost or not _LAX.isdisjoint(read.repairs))
    if read and lax and not (object_members(read.text) or {}).keys() <= {*parameters}:
        read = None
    if read:
        repairs = tuple(repair for repair in read.repairs if repair not in _OF_PYTHON)
        # Of several, the order is the tool's as it was declared, which the model may not have meant.
        cost = read.cost + ("positional" in repairs and len(parameters) > 1)
        claim = Claim(name=name, arguments=read.text, repairs=repairs, cost=cost)
        return PythonCalls((claim,), _past_print(text, head, read.end))
    cut = isinstance(found, FoundJson) or found.cut
    named = _KEYWORD.match(text, position)
    if not known:
        return PythonCalls((), found.end) if named else None
    if not named and not cut:
        return PythonCalls((), position + 1, f"the arguments of {name[:60]} must be given by name.")
    why = "is cut off before it is complete." if cut else "has an argument that is not a literal."
    return PythonCalls((), len(text), f"the call of {name[:60]} {why}")


def _of_object(text: str, head: re.Match[str], position: int, name: str) -> PythonCalls:
    """`f({"x": 1})`, as JavaScript has it, or `f(**{"x": 1})`: all arguments in one object."""
    found = json_at(text, position)
    closing = _OBJECT_END.match(text, found.end) if isinstance(found, FoundJson) else None
    if not isinstance(found, FoundJson) or closing is None:
        cut = isinstance(found, BrokenJson) and found.cut
        why = "is cut off before it is complete." if cut else "has arguments that cannot be read."
        return PythonCalls((), max(found.end, position), f"the call of {name[:60]} {why}")
    claim = Claim(name=name, arguments=found.text, repairs=found.repairs, cost=found.cost)
    return PythonCalls((claim,), _past_print(text, head, closing.end()))


def _past_print(text: str, head: re.Match[str], position: int) -> int:
    return position + 1 if "print(" in head[0] and text.startswith(")", position) else position
