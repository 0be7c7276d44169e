"""Formats as data: a format that no shape covers is an example of a call with its places, and needs no function.

    Format(name="sheet", call="@@{name} {json}@@")
    Format(name="block", call="CALL {name} {arguments} END", argument="WITH {key} {value} DONE")

A format that only differs in prefix, bracket or bar from those that forge knows needs no row at all.
"""

import re
from collections.abc import Callable

from msgspec.structs import replace

from stages.repair.json_text import is_json
from stages.rescue.families.elements import Called, Grammar, element_as_json, parameters, past, up_to
from stages.rescue.families.json_calls import ARGUMENTS_BEGIN, named_call
from stages.rescue.found import PLACES, Family, Format, Read
from stages.rescue.names import LONGEST_NAME, Names
from stages.rescue.tags import BAR, GAP

_FENCE_BEFORE = re.compile(r"```\w{0,20}\s{1,4}\Z")
_FENCE_AFTER = re.compile(r"\s*+```")
_ARGUMENTS = re.compile(ARGUMENTS_BEGIN)
_LINE_END = re.compile(r"\r?\n[ \t]*+\Z")
_LETTERS = re.compile(r"\w+")
_PARTS = re.compile(r"\s+|[|]|[\"']|.", re.DOTALL)


def family_of(row: Format) -> Family:
    """The family that reads calls of this format."""
    before, between, after = PLACES.split(row.call)
    opening = _loose(before.strip())
    head = re.compile(
        rf"{opening}{GAP}[*`\"']{{0,3}}(?P<name>{_word(between)}{{1,{LONGEST_NAME}}}+)[*`\"']{{0,3}}{GAP}{_loose(between.strip())}{GAP}"
    )
    end = past(rf"{GAP}{_loose(after.strip())}")
    grammar = _grammar(row, opening, end) if row.argument else None

    def read(text: str, start: int, names: Names) -> Read | None:
        found = head.match(text, start)
        if found is None:
            return None
        name = found["name"]
        if grammar and grammar.key.match(text, found.end()):
            fence = _FENCE_BEFORE.search(text, max(0, start - 40), start)
            called = Called(name, fence.start() if fence else start, found.end())
            return _past_fence(text, parameters(text, called, grammar, names), fenced=fence is not None)
        if not names.knows(name) or not _ARGUMENTS.match(text, found.end()):
            return None
        return named_call(text, start, found.end(), name, lambda text, position: end(text, position) or position)

    # A row of elements may be a call of any tool; a word of its beginning is in all of them.
    word = max(_LETTERS.findall(before.lower()), key=len, default="")
    return Family(name=row.name, first=before.strip()[0], opener=opening, read=read, words=(word,) if grammar else ())


def _past_fence(text: str, read: Read, *, fenced: bool) -> Read:
    closing = _FENCE_AFTER.match(text, read.end) if fenced and read.claims else None
    return replace(read, end=closing.end()) if closing else read


def _grammar(row: Format, opening: str, end: Callable[[str, int], int | None]) -> Grammar:
    written = PLACES.split(row.argument)[1]
    before, between, after = (_loose(part.strip()) for part in PLACES.split(row.argument))
    # Whether a newline after it belongs to the value is decided when the value is read.
    blank = r"[ \t]{0,8}+" if written.endswith((" ", "\t")) else ""
    closing = _loose(PLACES.split(row.call)[-1].strip()) or r"(?:```|\Z)"
    return Grammar(
        key=re.compile(rf"{GAP}{before}{GAP}[\"']?(?P<key>{_word(written)}{{1,100}}+)[\"']?{GAP}{between}{blank}"),
        keys=("key",),
        value_end=up_to(rf"{after}(?={GAP}(?:{before}|{opening}|{closing}|\Z))|(?=\n{closing}{GAP}\Z)|(?=\n```\s*+\Z)"),
        end=end,
        value=_value,
    )


def _value(written: str, _typed: str, repairs: dict[str, None]) -> str:
    """A value as JSON: a text is a JSON string, or anything that is not JSON."""
    json = written.strip()
    return json if is_json(json) else element_as_json(_LINE_END.sub("", written), repairs)


def _word(following: str) -> str:
    """A character of a name, if this follows the name."""
    return "[\\w" + "".join(re.escape(sign) for sign in ".:/#-" if sign != following.strip()[:1]) + "]"


def _loose(literal: str) -> str:
    """The literal as a pattern: any blanks, optional quotes, and any kind of bars."""
    return "".join(map(_part, _PARTS.findall(literal)))


def _part(part: str) -> str:
    if part.isspace():
        return GAP
    if part == "|":
        return f"{BAR}{{1,2}}"
    return "[\"']?" if part in ('"', "'") else re.escape(part)


KNOWN_FORMATS: tuple[Format, ...] = (
    Format(name="functionary", call=">>>{name}\n{json}", source="Functionary v2 and v3.2, their chat templates"),
    Format(name="gemma", call="call:{name}{json}", source="Gemma 4, where a server took its tokens away"),
    Format(name="gemini", call="default_api:{name}{json}", source="Gemini, in text: bayesimpact/bayes-platform 620"),
    Format(name="kimi", call="functions.{name}{json}", source="Kimi K2, where a server took its tokens away"),
    Format(
        name="block",
        call="TOOL_NAME: {name}\n{arguments}",
        argument="BEGIN_ARG: {key}\n{value}\nEND_ARG",
        source="Continue, core/tools/systemMessageTools",
    ),
)
"""Formats that none of the shapes covers."""
