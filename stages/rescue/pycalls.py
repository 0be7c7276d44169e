"""Calls written as Python, read by a grammar of literals; nothing is ever evaluated."""

import re

from msgspec import Struct
from msgspec.structs import replace

from stages.repair.damaged_json import BrokenJson, FoundJson, repair_json
from stages.repair.json_text import json_at, json_object, object_members
from stages.rescue.found import Claim
from stages.rescue.names import Names
from stages.rescue.tags import past_closing

CALLED_NAME = r"(?:(?i:functions?|default_api|tools?|api|namespace)(?:::?|/))?[A-Za-z_][\w.-]{0,120}+"
"""A name before the bracket, not part of an address or a path."""
_HEAD = re.compile(
    rf"\s*+(?:[Pp]rint\(\s*+|await\s++)?[*`\"']{{0,2}}({CALLED_NAME})(?::\w{{0,20}}|\(\)(?=\())?[*`\"']{{0,2}}\s*+[(\uff08]\s*+"
)
_ASSIGNED = re.compile(r"\s*+[A-Za-z_]\w{0,60}+\s*+=(?!=)\s*+")
_PRINTED = re.compile(r"(?:\s*+print\(\s*+[A-Za-z_]\w{0,60}+\s*+\))++")
_KEYWORD = re.compile(r"\s*+(?P<quote>[\"']?)([A-Za-z_]\w{0,100}+)(?P=quote)\s*+(?:=>|=(?!=)|:)\s*+")
_KEYWORD_INSIDE = re.compile(r"[\"',]\s++([A-Za-z_]\w{0,100})\s?=\s?[\"'\d\[{TFN-]")
_COMMA_OR_END = re.compile(r"\s*+(?:(?P<more>,)\s*+(?P<end>\))?|(?P<closed>\))|(?P<list>(?=\]\s*+(?:[<`]|\Z))))")
"""An end that may lack its parenthesis, if the list of calls and the text end there."""
_OBJECT_END = re.compile(r"[}\]\s]{0,8}+,?\s*+\)")
_SEPARATOR = re.compile(r"[ \t]*+[,;]?\s*+")
_LIST_OPEN = re.compile(r"\[\s*")
_LIST_CLOSE = re.compile(r"\s*+[,)]?\s*+\]")
_COMMENT = re.compile(r"[ \t]++#[^\n]*+(?=\n|\Z)")
_LITERAL = re.compile(r"<\|\"\|>|[rRuU]?[\"'{\[(\u201c\u2018+\-.\d]|(?:[Tt]rue|[Ff]alse|None|null)\b")
_BLANK_TO_END = re.compile(r"\s*+\Z")


class PythonCalls(Struct, frozen=True):
    """Calls, or why they cannot be used, and where they end; with neither, Python that calls no known tool."""

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
        position = end = one.end
        comment = _COMMENT.match(text, end)
        if comment:
            # A comment may say that the call is an example.
            position = end = comment.end()
        claims += [claim.guessed() for claim in one.claims] if comment else one.claims
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
        return PythonCalls(tuple(claim.guessed("missing_closer") for claim in claims), end)
    if not _BLANK_TO_END.match(text, position):
        return PythonCalls((), end)
    return PythonCalls((), len(text), "its list of calls is cut off before it is complete.")


def _call(text: str, start: int, names: Names) -> PythonCalls | None:
    head = _HEAD.match(text, start)
    read = _sound(text, head, names) if head else None
    if head is None or (read and read.claims) or not names.knows(head[1]):
        return read
    found = repair_json(text, head.end(), called=True)
    if not isinstance(found, FoundJson) or found.left_open > 1:
        # More than the call was left open at the end of the text: its last value was too.
        return read
    given = object_members(found.text)
    if not given or not given.keys() <= {*names.parameters(head[1])}:
        return read
    claim = Claim(name=head[1], arguments=found.text, repairs=found.repairs, cost=found.cost)
    return PythonCalls((claim,), _past_print(text, head, found.end))


def _sound(text: str, head: re.Match[str], names: Names) -> PythonCalls | None:
    # A module's name may precede the function's: `weather_api.get_weather(…)`.
    # Llama's own tools are called through a method: `brave_search.call(…)`.
    last = head[1].removesuffix(".call").rsplit(".", 1)[-1]
    name = head[1] if names.knows(head[1]) else last
    position = head.end()
    if text.startswith(")", position):
        return PythonCalls((Claim(name=name, arguments="{}"),), _past_print(text, head, position + 1))
    given_whole = position + 2 * text.startswith("**{", position)
    if text.startswith("{", given_whole) and names.knows(name):
        return _of_object(text, head, given_whole, name)
    parameters = names.parameters(name)
    given: dict[str, _Argument] = {}
    while True:
        argument = _argument(text, position, len(given), parameters)
        if argument is None or argument.key in given:
            return _not_keyword(text, position, name, names)
        found = repair_json(text, argument.begin) if _LITERAL.match(text, argument.begin) else None
        if not isinstance(found, FoundJson) or found.left_open:
            broken = argument.begin if found is None else found.end
            cut = isinstance(found, FoundJson) or (found is not None and found.cut)
            return _unread(text, broken, name, names, cut=cut)
        inside = _KEYWORD_INSIDE.search(text, argument.begin, found.end) if "inner_quotes" in found.repairs else None
        if inside and inside[1] in parameters:
            return None  # a comma may be missing
        given[argument.key] = replace(argument, value=found)
        following = _COMMA_OR_END.match(text, found.end)
        if following is None:
            return _unread(text, found.end, name, names, cut=_BLANK_TO_END.match(text, found.end) is not None)
        position = following.end()
        if following.lastgroup == "more":
            continue
        claim = _claim(name, given, parameters)
        if following.lastgroup == "list":
            if "missing_quote" in claim.repairs:
                return _unread(text, found.end, name, names, cut=False)
            claim = claim.guessed("missing_closer")
        return PythonCalls((claim,), _past_print(text, head, position))


class _Argument(Struct, frozen=True):
    """One argument: its parameter, where its value begins, and its value once read."""

    key: str
    begin: int
    named: bool
    value: FoundJson | None = None


def _argument(text: str, position: int, index: int, parameters: tuple[str, ...]) -> _Argument | None:
    """The argument that begins at `position`; one without a name belongs to the parameter at its position."""
    keyword = _KEYWORD.match(text, position)
    if keyword:
        return _Argument(keyword[2], keyword.end(), named=True)
    if index < len(parameters) and _LITERAL.match(text, position):
        return _Argument(parameters[index], position, named=False)
    return None


def _claim(name: str, given: dict[str, _Argument], parameters: tuple[str, ...]) -> Claim:
    members: dict[str, str] = {}
    repairs: dict[str, None] = {}
    cost = 0
    for key, argument in given.items():
        value = argument.value
        if value is None:
            continue
        members[key] = value.text
        repairs.update(dict.fromkeys(r for r in value.repairs if r not in ("single_quotes", "python_literals")))
        cost += value.cost
        if not argument.named:
            repairs["positional"] = None
            # With several, the order is that of the tool's declaration, which the model may not have meant.
            cost += len(parameters) > 1
    return Claim(name=name, arguments=json_object(members), repairs=tuple(repairs), cost=cost)


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
    position += "print(" in head[0] and text.startswith(")", position)
    position += text.startswith(";", position)
    return position


def _not_keyword(text: str, position: int, name: str, names: Names) -> PythonCalls | None:
    if _BLANK_TO_END.match(text, position):
        return _unread(text, position, name, names, cut=True)
    why = f"the arguments of {name[:60]} must be given by name."
    return PythonCalls((), position + 1, why) if names.knows(name) else None


def _unread(text: str, position: int, name: str, names: Names, *, cut: bool) -> PythonCalls:
    if not names.knows(name):
        return PythonCalls((), position)
    why = "is cut off before it is complete." if cut else "has an argument that is not a literal."
    return PythonCalls((), len(text), f"the call of {name[:60]} {why}")
