"""Family `pythonic`: calls written as Python: a list, a fence, or a whole reply of them."""

import re

from msgspec.structs import replace

from stages.rescue.found import Family, Read
from stages.rescue.names import Names
from stages.rescue.pycalls import CALLED_NAME, PythonCalls, call_list
from stages.rescue.tags import IN_BRACKETS, LEFT, RIGHT, STEM

_TOOL_CODE = re.compile(r"\s*+tool_code[ \t]*+\n")
"""Gemma's fence, without the fence."""
_NAME_BEFORE = re.compile(rf"[\s`]*(?:[A-Za-z_]\w{{0,60}}\s?=\s?)?(?:print\(|await\s)?{CALLED_NAME}\s?")
_LEADING = re.compile(r"[\s`]*+")
_REST_OF_REPLY = re.compile(r"[\s`;\])]*(?:<(?:[|/]|bot_end)[^>]{0,40}>\s*+)*+\Z")
_FENCE = re.compile(r"(?:```|~~~)[ \t]*+(tool_code|tool_calls?|python3?|py|code|)[ \t\r]*+\n\s*+")
_AGENT_CODE = re.compile(r"^Code:\s*\Z", re.MULTILINE)
"""What precedes the fence of smolagents' CodeAgent, which assigns results to names and prints them."""
_FENCE_END = re.compile(r"\s*+(?:```|~~~|`{0,2}\s*+\Z)")
_CALL = "tool_call"
_NAME_ABOVE = re.compile(r"(?:\A|\n)[ \t]*([A-Za-z_][\w.-]{0,100})[ \t]*\n\s*\Z")
_NEAR_BEGIN = 160
"""Maximum characters before the first bracket of a reply that consists of calls."""
_MARKED = re.compile(
    rf"^(?:[A-Z]\w{{0,15}}: ?|{LEFT}{{1,3}}\s?(?:[\w-]{{1,20}}[:=\s]\s?)?|"
    rf"{LEFT}{{1,2}}{IN_BRACKETS}{{1,40}}{RIGHT}{{1,2}}\s?|"
    rf"(?:[=-]>|[^\w\s`\"'#>|/*-]{{1,4}})\s?(?:[A-Za-z_]{{0,15}}{STEM}[A-Za-z_ ]{{0,15}}?[: ]\s?)?)?"
    rf"(?P<name>(?:await |print\()?{CALLED_NAME}) ?\Z",
    re.MULTILINE,
)
_MARK_AFTER = re.compile(
    rf"(?:\s?(?:{LEFT}{{1,2}}{IN_BRACKETS}{{1,40}})?{RIGHT}{{1,3}}| ?[^\w\s`\"'.,;]{{1,4}}|;)?[ \t]*(?=\n|\Z)"
)
_CALLED = re.compile(CALLED_NAME)
_MARGIN = 20
"""Maximum characters of marks before a list of calls on its line."""
_LINE_BEFORE = re.compile(r"[ \t>*`-]*")


def _read(text: str, start: int, names: Names) -> Read | None:
    """A list of calls on a line of its own."""
    if not _stands_alone_before(text, start):
        return None
    calls = call_list(text, start, names)
    if calls is None:
        return None
    if not _stands_alone_after(text, calls.end) or not _any_known(text, start, calls, names):
        return Read(start=start, end=calls.end)
    return Read(start=start, end=calls.end, claims=calls.claims, damage=calls.damage, keep="")


def _stands_alone_before(text: str, start: int) -> bool:
    near = max(0, start - _MARGIN)
    line = text.rfind("\n", near, start) + 1
    if line or not near:
        return _LINE_BEFORE.fullmatch(text, line, start) is not None
    return text[near:start].isspace()  # a thought on the same line, blanked out


def _stands_alone_after(text: str, end: int) -> bool:
    newline = text.find("\n", end, end + 40)
    following = text[end : newline if newline >= 0 else end + 40].strip(" \t`*.;")
    return not following or following.startswith(("<|", "</", "#"))


def _whole(text: str, start: int, names: Names) -> Read | None:
    """A reply that consists of calls, without brackets around them."""
    if start > _NEAR_BEGIN:
        return None
    script = _TOOL_CODE.match(text)
    begin = script.end() if script else 0
    if not _NAME_BEFORE.fullmatch(text, begin, start):
        return _marked_line(text, start, names)
    begin = _LEADING.match(text, begin).end()  # type: ignore[union-attr]  # it matches the empty string
    calls = call_list(text, begin, names, script=script is not None)
    if calls is None or not _any_known(text, begin, calls, names):
        return None
    if not calls.damage and not _REST_OF_REPLY.match(text, calls.end):
        return _marked_line(text, start, names)
    return Read(start=0, end=calls.end, claims=calls.claims, damage=calls.damage, keep="")


def _marked_line(text: str, start: int, names: Names) -> Read | None:
    """A line with just a call, perhaps between marks of any kind: `%%CALL f(x=1)%%`, `<<RUN>> f(x=1)`; a guess."""
    head = _MARKED.search(text, max(0, start - _NEAR_BEGIN), start)
    calls = call_list(text, head.start("name"), names) if head else None
    if head is None or calls is None or calls.damage or not calls.claims:
        return None
    if not all(names.knows(claim.name) for claim in calls.claims):
        return None
    closing = _MARK_AFTER.match(text, calls.end)
    if closing is None:
        return None
    claims = tuple(claim.guessed("any_markup") for claim in calls.claims)
    return Read(start=head.start(), end=closing.end(), claims=claims, keep="")


def python_fence(text: str, start: int, names: Names) -> Read | None:
    """A fence that contains only calls."""
    fence = _FENCE.match(text, start)
    script = fence is not None and (fence[1] == "tool_code" or _AGENT_CODE.search(text, max(0, start - 20), start))
    calls = call_list(text, fence.end(), names, script=bool(script)) if fence else None
    closing = _FENCE_END.match(text, calls.end) if calls else None
    if calls is None:
        return None
    above = _NAME_ABOVE.search(text, max(0, start - _NEAR_BEGIN), start)
    if above and names.knows(above[1]) and [claim.name for claim in calls.claims] == [_CALL]:
        # ChatGLM3 writes the name above the fence and this in its place.
        calls, start = replace(calls, claims=(replace(calls.claims[0].guessed(), name=above[1]),)), above.start(1)
    if not _any_known(text, start, calls, names) or (closing is None and not calls.damage):
        return Read(start=start, end=calls.end)
    end = closing.end() if closing else calls.end
    return Read(start=start, end=end, claims=calls.claims, damage=calls.damage, keep="")


def _any_known(text: str, start: int, calls: PythonCalls, names: Names) -> bool:
    """Whether any of the calls is of a known tool: without markup, other Python is ordinary code."""
    if calls.damage:
        return any(names.knows(name.removesuffix(".call")) for name in _CALLED.findall(text, start, calls.end))
    return any(names.knows(claim.name) for claim in calls.claims)


_NAME = rf"[*`\"']{{0,2}}{CALLED_NAME}[*`\"']{{0,2}}"
CALL_LIST = Family(name="pythonic", first="[", opener=rf"\[(?=\s{{0,8}}{_NAME}\s?\()", read=_read, words=())
WHOLE_REPLY = Family(name="pythonic", first="(", opener=rf"\((?<!(?s:.){{{_NEAR_BEGIN + 2}}})", read=_whole, words=())
