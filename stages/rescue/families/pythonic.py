"""Family `pythonic`: calls written as Python, read by a grammar of literals; nothing is ever evaluated."""

import re

from msgspec import Struct

from stages.rescue.found import Claim, Family, Read
from stages.rescue.jsontext import Json, json_at, quoted
from stages.rescue.mend import Mended, Torn, mend
from stages.rescue.names import Names

_HEAD = re.compile(r"\s*(?:print\(\s*|await\s+)?([A-Za-z_][\w.-]{0,120})\s*\(\s*")
_KEYWORD = re.compile(r"\s*([A-Za-z_]\w{0,100})\s*=(?!=)\s*")
_COMMA_OR_END = re.compile(r"\s*(?:(,)\s*(\))?|(\)))")
_OBJECT_END = re.compile(r"\s*,?\s*\)")
_SEPARATOR = re.compile(r"[ \t]*[,;]?\s*")
_LIST_OPEN = re.compile(r"\[\s*")
_LIST_CLOSE = re.compile(r"\s*,?\s*\]")
_LITERAL = re.compile(r"[\"'{\[\u201c\u2018+\-.\d]|(?:[Tt]rue|[Ff]alse|None|null)\b")
_BLANK_TO_END = re.compile(r"\s*\Z")
_NAME_BEFORE = re.compile(r"[\s`]*(?:print\(|await\s)?[A-Za-z_][\w.-]{0,120}\s?")
_REST_OF_REPLY = re.compile(r"[\s`;]*(?:<(?:[|/]|bot_end)[^>]{0,40}>\s*)*\Z")
_FENCE = re.compile(r"(?:```|~~~)[ \t]*(?:tool_code|tool_calls?|python3?|py|code|)[ \t]*\n\s*")
_FENCE_END = re.compile(r"\s*(?:```|~~~|`{0,2}\s*\Z)")
_LINE_BEFORE = re.compile(r"[ \t>*`-]*")


class PythonCalls(Struct, frozen=True):
    """Calls, or why they cannot be used, and where they ended; with neither, Python that is nobody's call."""

    claims: tuple[Claim, ...]
    end: int
    damage: str | None = None


def call_list(text: str, start: int, names: Names) -> PythonCalls | None:
    """`[f(x=1), g()]`, or the same without brackets, calls after one another; None: something else."""
    opening = _LIST_OPEN.match(text, start)
    claims: tuple[Claim, ...] = ()
    position = opening.end() if opening else start
    while True:
        one = _call(text, position, names)
        if one is None:
            break
        if not one.claims:
            # A list is one value: cut off, none of it is sure.
            return PythonCalls(() if opening else claims, one.end, one.damage)
        claims += one.claims
        position = end = one.end
        separator = _SEPARATOR.match(text, end)
        position = separator.end() if separator else end
    if not claims:
        return None
    if not opening:
        return PythonCalls(claims, end)
    closing = _LIST_CLOSE.match(text, end)
    if closing:
        return PythonCalls(claims, closing.end())
    if _BLANK_TO_END.match(text, end):
        return PythonCalls(tuple(map(_unclosed, claims)), end)
    if not _BLANK_TO_END.match(text, position):
        return None
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
    last = head[1].removesuffix(".call").rsplit(".", 1)[-1]
    name = head[1] if names.knows(head[1]) else last
    parameters = names.parameters(name)
    members: list[str] = []
    keys: set[str] = set()
    repairs: dict[str, None] = {}
    cost, position = 0, head.end()
    if text.startswith(")", position):
        return PythonCalls((Claim(name=name, arguments="{}"),), _past_print(text, head, position + 1))
    if text.startswith("{", position) and names.knows(name):
        return _of_object(text, head, position, name)
    while True:
        keyword = _KEYWORD.match(text, position)
        key, begin = (
            (keyword[1], keyword.end()) if keyword else (_positional(text, position, len(keys), parameters), position)
        )
        if key is None or key in keys:
            return _not_keyword(text, position, name, names)
        found = mend(text, begin) if _LITERAL.match(text, begin) else None
        if not isinstance(found, Mended):
            broken = begin if found is None else found.end
            return _unread(text, broken, name, names, cut=found is not None and found.cut)
        members.append(f"{quoted(key)}:{found.json}")
        keys.add(key)
        if keyword is None:
            repairs["positional"] = None
            # Of several, the order is the tool's as it was declared, which the model may not have meant.
            cost += len(parameters) > 1
        repairs.update(dict.fromkeys(r for r in found.repairs if r not in ("single_quotes", "python_literals")))
        cost += found.cost
        following = _COMMA_OR_END.match(text, found.end)
        if following is None:
            return _unread(text, found.end, name, names, cut=_BLANK_TO_END.match(text, found.end) is not None)
        position = following.end()
        if following[2] or following[3]:
            break
    claim = Claim(name=name, arguments="{" + ",".join(members) + "}", repairs=tuple(repairs), cost=cost)
    return PythonCalls((claim,), _past_print(text, head, position))


def _of_object(text: str, head: re.Match[str], position: int, name: str) -> PythonCalls:
    """`f({"x": 1})`, as JavaScript has it: all arguments in one object."""
    found = json_at(text, position)
    closing = _OBJECT_END.match(text, found.end) if isinstance(found, Json) else None
    if not isinstance(found, Json) or closing is None:
        cut = isinstance(found, Torn) and found.cut
        why = "is cut off before it is complete." if cut else "has arguments that cannot be read."
        return PythonCalls((), max(found.end, position), f"the call of {name[:60]} {why}")
    claim = Claim(name=name, arguments=found.text, repairs=found.repairs, cost=found.cost)
    return PythonCalls((claim,), _past_print(text, head, closing.end()))


def _positional(text: str, position: int, index: int, parameters: tuple[str, ...]) -> str | None:
    """The parameter that an argument without a name is for."""
    return parameters[index] if index < len(parameters) and _LITERAL.match(text, position) else None


def _past_print(text: str, head: re.Match[str], position: int) -> int:
    return position + 1 if "print(" in head[0] and text.startswith(")", position) else position


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


def _read(text: str, start: int, names: Names) -> Read | None:
    """A list of calls that is a line of its own."""
    if not _stands_alone_before(text, start):
        return None
    calls = call_list(text, start, names)
    if calls is None:
        return None
    if not _stands_alone_after(text, calls.end) or not _any_known(calls, names):
        return Read(start=start, end=calls.end)
    return Read(start=start, end=calls.end, claims=calls.claims, damage=calls.damage, keep="")


def _stands_alone_before(text: str, start: int) -> bool:
    line = max(text.rfind("\n", max(0, start - 20), start) + 1, 0)
    return start - line < 20 and _LINE_BEFORE.fullmatch(text, line, start) is not None


def _stands_alone_after(text: str, end: int) -> bool:
    newline = text.find("\n", end, end + 40)
    following = text[end : newline if newline >= 0 else end + 40].strip(" \t`*.;")
    return not following or following.startswith(("<|", "</"))


def _whole(text: str, start: int, names: Names) -> Read | None:
    """A reply that is calls from beginning to end, without brackets around them."""
    if start > 160 or not _NAME_BEFORE.fullmatch(text, 0, start):
        return None
    calls = call_list(text, 0, names)
    if calls is None or not _any_known(calls, names):
        return None
    if not calls.damage and not _REST_OF_REPLY.match(text, calls.end):
        return None
    return Read(start=0, end=calls.end, claims=calls.claims, damage=calls.damage, keep="")


def python_fence(text: str, start: int, names: Names) -> Read | None:
    """A fence that is calls from end to end."""
    fence = _FENCE.match(text, start)
    calls = call_list(text, fence.end(), names) if fence else None
    closing = _FENCE_END.match(text, calls.end) if calls else None
    if calls is None:
        return None
    if not _any_known(calls, names) or (closing is None and not calls.damage):
        return Read(start=start, end=calls.end)
    end = closing.end() if closing else calls.end
    return Read(start=start, end=end, claims=calls.claims, damage=calls.damage, keep="")


def _any_known(calls: PythonCalls, names: Names) -> bool:
    """Without markup, Python that calls nobody's tool is code like any other."""
    return calls.damage is not None or any(names.knows(claim.name) for claim in calls.claims)


LIST = Family(name="pythonic", first="[", opener=r"\[(?=\s{0,8}[A-Za-z_][\w.-]{0,120}\s?\()", read=_read)
WHOLE = Family(name="pythonic", first="(", opener=r"\(", read=_whole)
