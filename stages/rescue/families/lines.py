"""A call as lines: one that names the tool, then one for each argument. YAML, TOML, lists, and labels of any look."""

import re

from stages.repair.damaged_json import FoundJson
from stages.repair.indented import indented_value, scalar, toml_value, value_below
from stages.repair.json_text import array_elements, json_object, json_source, object_members
from stages.rescue.found import Claim, Family, Read
from stages.rescue.names import Names, spelling
from stages.rescue.shape import shape_of
from stages.rescue.tags import STEM_IN

_LABEL = r"[^\w\s]{0,6}+[\w. -]{1,60}+[^\w\s]{0,4}+[ \t\r]*+\n"
_BLANK_LINES = re.compile(r"(?:[ \t\r]*+\n)*")
_HEAD = re.compile(rf"(?P<head>[^\n]{{1,120}}+)\n(?:[ \t\r]*+\n)*(?P<label>{_LABEL})?")
"""The line that names the tool, and one that only says that its arguments follow."""
_WORD = re.compile(r"[A-Za-z_][\w.-]{0,100}")
_NAMED = re.compile(r"[\s-]{0,6}\w[\w-]{0,30} ?[:=]|[^\w\s*#/>|\"'`-]{2,6}|\[[\w.-]{1,100}\]\s*+\Z")
"""A label, two signs that begin no heading, quotation or comment, or a section of an INI file."""
_LINE = re.compile(
    r"(?:[ \t\r]*+\n)*(?P<margin>[ \t]{0,8})(?P<sign>[^\w\s\"'*`{\[]{0,3}+) ?(?:[A-Za-z]{1,12}[ :] ?)??"
    r"[\"'*`]{0,3}(?P<key>[\w.-]{1,100}+)[\"'*`)\]]{0,3}"
    r"(?: {0,12}(?P<equals>=>|->|<-|:=|::|[:=\u2192])[*`]{0,2}|[ \t](?![\w.-]{1,60} ?[:=]))(?P<value>[^\n]*+)(?:\n|\Z)"
)
_MORE = r"(?:%s(?: {1,12}|- )[^\n]*+(?:\n|\Z)|[ \t]*+\n(?=%s ))*"
_END = re.compile(
    r"\s*+(?:```|\Z|(?:[^\w\s]{1,6} ?(?:[\w:.-]{0,60} ?[^\w\s]{0,6}|[\w:. -]{0,60} ?[^\w\s]{1,6})|\w{1,20}[^\w\s]{1,6}|"
    r"(?i:end)\b[\w \t-]{0,24}[^\w\s]{0,6})\s*+\Z)"
)
"""The end of a fence or of the reply, after a line that closes the call."""
_BLOCKS = ("|", "|-", "|+", ">", ">-")
_MOST_WORDS = 5


_MAPPING = re.compile(r"(?:\s*+-\s)?\s*+[\w-]{1,40}:(?:[ \t][^\n]*+)?\n")
"""The first line of a mapping, or of a list of them."""
_TABLE = re.compile(r"^\[{1,2}[\w.-]{1,80}\]{1,2}[ \t]*\n", re.MULTILINE)
_NEAR = 400
"""Characters of it within which a tool is named."""
_MOST = 20_000
"""Maximum characters of it."""


def _read(text: str, start: int, names: Names) -> Read | None:
    if "[" in text and _TABLE.search(text):
        return _mapping(text, start, start, len(text), names) or lines_call(text, start, start, names)
    return lines_call(text, start, start, names) or _mapping(text, start, start, len(text), names)


def _mapping(text: str, start: int, begin: int, end: int, names: Names) -> Read | None:
    """YAML or TOML from beginning to end that is a call in one of JSON's shapes: a guess."""
    tables = "[" in text and _TABLE.search(text, begin, end) is not None
    begins = tables or _MAPPING.match(text, begin, end)
    near = _WORD.findall(text, begin, min(begin + _NEAR, end)) if begins else ()
    if end - begin > _MOST or not any(map(names.knows, near)):
        return None
    value = toml_value(text[begin:end]) if tables else indented_value(text[begin:end])
    only = [*(object_members(value) or {}).values()] if tables and value else []
    if len(only) == 1 and array_elements(json_source(only[0])):
        value = json_source(only[0])  # `[[call]]`, with any word
    shape = shape_of(FoundJson(text=value, end=0), names, marked=False) if value else None
    if shape is None or not shape.claims or shape.damage:
        return None
    end += len("\n```") * text.startswith("\n```", end)
    return Read(start=start, end=end, claims=tuple(claim.guessed("lines") for claim in shape.claims), keep="")


def lines_call(text: str, start: int, position: int, names: Names, *, marked: bool = False) -> Read | None:
    """A known tool and a line for each of its arguments, up to the end of a fence or the reply: a guess.

    `marked`: markup around it says that it is a call.
    """
    if not names.known:
        return None
    fence = text.startswith(("```", "~~~"), start)
    closed = text.find("\n```", position) if fence else -1
    if closed > 0 and (read := _mapping(text, start, position, closed, names)) and not text[read.end :].strip():
        return read
    position = _BLANK_LINES.match(text, position).end()  # type: ignore[union-attr]  # it matches the empty string
    head = _HEAD.match(text, position)
    name = _named(head["head"], names, marked=marked) if head else ""
    if head is None or not name:
        return None
    given: dict[str, str] = {}
    known = set(map(spelling, names.parameters(name)))
    position = head.end()
    if head["label"] and (line := _LINE.match(text, head.start("label"))) and spelling(line["key"]) in known:
        position = head.start("label")
    while (line := _LINE.match(text, position)) and spelling(line["key"]) in known and (line["sign"] or line["equals"]):
        written, position = line["value"].strip(), line.end()
        if not written or written in _BLOCKS:
            margin = re.escape(line["margin"])
            more = re.compile(_MORE % (margin, margin)).match(text, position)
            below = more[0] if more else ""
            value = value_below(below, block=bool(written))
            position = more.end() if more else position
        else:
            value = scalar(written)
        if value is None:
            return None
        given[line["key"]] = value
    if name not in names.known and not set(names.parameters(name)) & set(given):
        return None  # a title and the list below it
    end = _END.match(text, position)
    if not given or end is None or (fence and not end[0].strip()):
        # The fence was cut off, and perhaps the last value.
        return None
    claim = Claim(name=name, arguments=json_object(given), repairs=("lines",), cost=1)
    return Read(start=start, end=end.end(), claims=(claim,), keep="")


def _named(head: str, names: Names, *, marked: bool) -> str:
    """The tool that the line names, if it says nothing else."""
    words = _WORD.findall(head)
    named = {word for word in words if names.knows(word)} if len(words) <= _MOST_WORDS else set[str]()
    others = [word for word in words if word not in named]
    labelled = (
        marked or all(map(str.isupper, others)) or _NAMED.match(head) is not None or any(map(STEM_IN.search, others))
    )
    return named.pop() if len(named) == 1 and labelled else ""


LINES = Family(name="lines", first="\n", opener="\n", read=_read, whole=True, words=())
