"""Families `token` and `args`: a name and JSON between control tokens. DeepSeek, Kimi K2, Mistral, Solar."""

import re

from stages.repair.json_text import FoundJson, json_at
from stages.rescue.families.json_calls import CUT_OFF, UNREADABLE
from stages.rescue.found import Claim, Family, Read
from stages.rescue.names import LONGEST_NAME, Names

_BEGIN = r"<[|\uff5c]tool[\u2581_]call[\u2581_]begin[|\uff5c]>"
_HEAD = re.compile(
    rf"{_BEGIN}\s*+(?:function\s*+<[|\uff5c]tool[\u2581_]sep[|\uff5c]>)?\s*+(?P<name>[\w.:/*`-]{{1,200}}+)"
    r"(?:\s*+<(?:[|\uff5c]tool[\u2581_]sep[|\uff5c]|\|tool_call_argument_begin\|)>|[^\S\n]*+\n)\s*+(?:```(?:json)?\s*+)?"
)
_END = re.compile(r"\s*+[}\])]{0,2}+\s*+(?:```\s*+)?<[|\uff5c]tool[\u2581_]call[\u2581_]end[|\uff5c]>")
_SECTION_BEFORE = re.compile(
    r"<(?:[|\uff5c]tool[\u2581_]calls[\u2581_]begin|\|tool_calls_section_begin)[|\uff5c]>(?P<noise>[^<]{0,200})\Z"
)
_SECTION_AFTER = re.compile(r"\s*+<(?:[|\uff5c]tool[\u2581_]calls[\u2581_]end|\|tool_calls_section_end)[|\uff5c]>")

_SOLAR = re.compile(
    r"<\|tool_call:begin\|>[^<]{0,80}<\|tool_call:name\|>\s*+(?P<name>[\w.:/-]{1,200}+)\s*+<\|tool_call:args\|>\s*+"
)
_SOLAR_END = re.compile(r"\s*+<\|tool_call:end\|>")

_ARGS = re.compile(r"\[ARGS\]\s*+")
_COMPACT = re.compile(
    r"\[TOOL_CALLS\]\s*+(?P<name>[A-Za-z_][\w.:/-]{0,200}+)\s*+(?:\[CALL_ID\][\w-]{0,60}+)?(?:\[ARGS\])?\s*+(?=\{)"
)
_NOTHING = re.compile(r"\b\B")


def _call(text: str, begin: int, head: re.Match[str], end: re.Pattern[str]) -> Read:
    """The JSON after a head that has named the call."""
    found = json_at(text, head.end()) if text.startswith("{", head.end()) else None
    if not isinstance(found, FoundJson):
        cut = head.end() == len(text) or (found is not None and found.cut)
        broken = found.end if found else head.end()
        return Read(start=begin, end=max(broken, head.end()), damage=CUT_OFF if cut else UNREADABLE, keep="")
    closing = end.match(text, found.end)
    claim = Claim(name=head["name"], arguments=found.text, repairs=found.repairs, cost=found.cost)
    return Read(start=begin, end=closing.end() if closing else found.end, claims=(claim,), keep="")


def _token(text: str, start: int, _names: Names) -> Read | None:
    section = text.rfind("calls", max(0, start - 240), start)
    before = _SECTION_BEFORE.match(text, max(0, section - len("<|tool_")), start) if section >= 0 else None
    begin = before.start() if before else start
    head = _HEAD.match(text, start)
    if head is None:
        return Read(start=begin, end=start + len("<|tool_call_begin|>"), damage="its header is damaged.", keep="")
    if text.startswith("<", head.end()):
        # Step 3 puts the call in tags of its own; their family reads it.
        return Read(start=begin, end=head.end(), keep="")
    read = _call(text, begin, head, _END)
    after = _SECTION_AFTER.match(text, read.end)
    return (
        read if after is None else Read(start=begin, end=after.end(), claims=read.claims, damage=read.damage, keep="")
    )


def _solar(text: str, start: int, _names: Names) -> Read | None:
    head = _SOLAR.match(text, start)
    return _call(text, start, head, _SOLAR_END) if head else None


def _compact(text: str, start: int, _names: Names) -> Read | None:
    """Mistral from v11 on: `[TOOL_CALLS]name[ARGS]{…}`, and its relatives without `[ARGS]`."""
    head = _COMPACT.match(text, start)
    return _call(text, start, head, _NOTHING) if head else None


def _args(text: str, start: int, names: Names) -> Read | None:
    """`name[ARGS]{…}` where the marker before it has been lost."""
    name = _name_before(text, start)
    head = _ARGS.match(text, start)
    if not name or head is None or not text.startswith("{", head.end()):
        return None
    begin = start - len(name)
    found = json_at(text, head.end())
    if not isinstance(found, FoundJson):
        why = (CUT_OFF if found.cut else UNREADABLE) if names.knows(name) else None
        return Read(start=begin, end=max(found.end, head.end()), damage=why)
    claim = Claim(name=name, arguments=found.text, repairs=found.repairs, cost=found.cost)
    return Read(start=begin, end=found.end, claims=(claim,), keep="")


def _name_before(text: str, end: int) -> str:
    start = end
    while start > max(0, end - LONGEST_NAME) and (text[start - 1].isalnum() or text[start - 1] in "_.:/-"):
        start -= 1
    return text[start:end]


TOKEN = Family(name="token", first="<", opener=_BEGIN, read=_token)
SOLAR = Family(name="token", first="<", opener=r"<\|tool_call:begin\|>", read=_solar)
COMPACT = Family(name="args", first="[", opener=r"\[TOOL_CALLS\](?=\s{0,8}[A-Za-z_])", read=_compact)
ARGS = Family(name="args", first="[", opener=r"\[ARGS\]", read=_args)
