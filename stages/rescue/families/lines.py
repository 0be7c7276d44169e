"""A call as lines: one that names the tool, then one for each argument. YAML, TOML, lists, and labels of any look.

Or all of it in one line, as commands and S-expressions are: `>> f --k=v`, `(call f :k "v")`, `CALL f WITH k AS v`.
"""

import re
from collections.abc import Mapping
from textwrap import dedent

from stages.repair.damaged_json import FoundJson
from stages.repair.json_text import is_json, json_at, json_quoted
from stages.rescue.found import Claim, Family, Read
from stages.rescue.names import Names
from stages.rescue.tags import STEM, STEM_IN

_LABEL = r"[^\w\s]{0,6}+[\w. -]{1,60}+[^\w\s]{0,4}+[ \t\r]*+\n"
_TITLE = re.compile(rf"\s*+(?:{_LABEL}\s*+(?=\w{{1,30}} ?=))?")
"""A line before it, as TOML has them."""
_HEAD = re.compile(rf"(?P<head>[^\n]{{1,120}}+)\n(?:[ \t\r]*+\n)*(?P<label>{_LABEL})?")
"""The line that names the tool, and one that only says that its arguments follow."""
_WORD = re.compile(r"[A-Za-z_][\w.-]{0,100}")
_NAMED = re.compile(r"[\s-]{0,6}\w[\w-]{0,30} ?[:=]|[^\w\s*#/>|\"'`-]{2,6}")
"""A label, or two signs that begin no heading, quotation or comment."""
_LINE = re.compile(
    r"(?:[ \t\r]*+\n)*(?P<margin>[ \t]{0,8})(?P<sign>[^\w\s\"'*`{\[]{0,3}+) ?(?:[A-Za-z]{1,12}[ :] ?)??"
    r"[\"'*`]{0,3}(?P<key>[\w.-]{1,100}+)[\"'*`)\]]{0,3}"
    r"(?: {0,12}(?P<equals>=>|->|<-|:=|[:=\u2192])[*`]{0,2}|[ \t](?![\w.-]{1,60} ?[:=]))(?P<value>[^\n]*+)(?:\n|\Z)"
)
_MORE = r"(?:%s(?: {1,12}|- )[^\n]*+(?:\n|\Z)|[ \t]*+\n(?=%s ))*"
_END = re.compile(
    r"\s*+(?:```|\Z|(?:[^\w\s]{1,6} ?[\w:.-]{0,60} ?[^\w\s]{0,6}|\w{1,20}[^\w\s]{1,6}|"
    r"(?i:end)\b[\w \t-]{0,24}[^\w\s]{0,6})\s*+\Z)"
)
"""The end of a fence or of the reply, behind a line that closes the call."""
_BLOCKS = ("|", "|-", "|+", ">", ">-")
_MOST_WORDS = 5


_COMMAND = re.compile(
    rf"\s*+(?P<mark>[$%@!~^=+\u25b6\u25ba\u2192(\[]{{0,3}}(?:(?=[\w-]{{0,16}}{STEM})[\w-]{{4,24}}(?:://|[\]:>]{{0,2}}\s))?|>>+\s?)\s?"
    r"(?<![\w.-])(?P<name>[A-Za-z_][\w.-]{0,100}+)(?=[\s?])"
)
"""A mark of signs, or a word of calls with them, and the name."""
_ITEM = (
    r"(?P<lead>\s{{0,4}}[^\w\s\"'`*>|]{{0,3}}\s{{0,4}}[^\w\s\"'`*>|]{{0,2}}(?:[A-Z]{{1,8}}\s)?[^\w\s\"'`*>|]{{0,2}})"
    r"(?P<key>{keys})(?![\w.-])(?P<sep>\s?(?:=>|->|:=|[:=\u2192])\s?|\s(?:AS|TO|IS)\s|\s)"
    r"(?P<value>\"(?:[^\"\\\n]|\\.){{0,2000}}\"|'[^'\n]{{0,2000}}'|(?=[\[{{])|[^\s,;&\"'`\u201c\u201d\u00ab\u00bb()\[\]{{}}<>]{{1,400}}(?<![*.]))"
)
"""A parameter with its value, and what stands before and between them."""
_CLOSED = re.compile(r"[)\]};.\s]{0,8}\Z")
"""The end of the reply, and what may close a call."""


def _read(text: str, start: int, names: Names) -> Read | None:
    return lines_call(text, start, start, names) or _command(text, start, names)


def _command(text: str, start: int, names: Names) -> Read | None:
    """A reply that is a tool and its arguments, all of them written in the same way, perhaps behind a mark: a guess."""
    head = _COMMAND.match(text, start)
    known = names.parameters(head["name"]) if head else ()
    if head is None or not known or any(map(names.knows, _WORD.findall(head["mark"]))):
        return None
    pattern = re.compile(_ITEM.format(keys="|".join(map(re.escape, known))))
    given: dict[str, str] = {}
    signs: set[tuple[str, str]] = set()
    position = head.end()
    while (item := pattern.match(text, position)) and item["key"] not in given:
        found = None if item["value"] else json_at(text, item.start("value"))
        value = found.text if isinstance(found, FoundJson) else _scalar(item["value"])
        position = found.end if isinstance(found, FoundJson) else item.end()
        if not value:
            return None
        signs.add((item["lead"].strip(), item["sep"].strip()))
        given[item["key"]] = value
    # The first may have another sign before it, `?a=1&b=2`. Without any sign it is a sentence.
    alike = len({sep for _, sep in signs}) == 1 and len({lead for lead, _ in signs}) <= 1 + (len(given) > 1)
    if not alike or not all(lead or sep for lead, sep in signs):
        return None
    return _guess(head["name"], given, start, closed.end()) if (closed := _CLOSED.match(text, position)) else None


def _guess(name: str, given: Mapping[str, str], start: int, end: int) -> Read:
    arguments = "{" + ",".join(f"{json_quoted(key)}:{value}" for key, value in given.items()) + "}"
    claim = Claim(name=name, arguments=arguments, repairs=("lines",), cost=1)
    return Read(start=start, end=end, claims=(claim,), keep="")


def lines_call(text: str, start: int, position: int, names: Names, *, marked: bool = False) -> Read | None:
    """A known tool and a line for each of its arguments, up to the end of a fence or the reply: a guess.

    `marked`: markup around it says that it is a call.
    """
    if not names.known:
        return None
    title = _TITLE.match(text, position)
    heads = (_HEAD.match(text, at) for at in (position, title.end() if title else position))
    named = ((head, name) for head in heads if head and (name := _named(head["head"], names, marked=marked)))
    if (first := next(named, None)) is None:
        return None
    head, name = first
    given: dict[str, str] = {}
    known = names.parameters(name)
    position = head.end()
    if head["label"] and (line := _LINE.match(text, head.start("label"))) and line["key"] in known:
        position = head.start("label")
    while (line := _LINE.match(text, position)) and line["key"] in known and (line["sign"] or line["equals"]):
        written, position = line["value"].strip(), line.end()
        if not written or written in _BLOCKS:
            margin = re.escape(line["margin"])
            more = re.compile(_MORE % (margin, margin)).match(text, position)
            value = _below(more[0]) if more else None
            position = more.end() if more else position
        else:
            value = _scalar(written)
        if value is None:
            return None
        given[line["key"]] = value
    end = _END.match(text, position)
    if not given or end is None or (text.startswith(("```", "~~~"), start) and not end[0].strip()):
        # The fence was cut off, and perhaps the last value.
        return None
    return _guess(name, given, start, end.end())


def _named(head: str, names: Names, *, marked: bool) -> str:
    """The tool that the line names, if that is all that it says."""
    words = _WORD.findall(head)
    named = {word for word in words if names.knows(word)} if len(words) <= _MOST_WORDS else set[str]()
    others = [word for word in words if word not in named]
    labelled = (
        marked or all(map(str.isupper, others)) or _NAMED.match(head) is not None or any(map(STEM_IN.search, others))
    )
    return named.pop() if len(named) == 1 and labelled else ""


def _below(lines: str) -> str | None:
    """A value that stands below its key: a list, or a text."""
    items = lines.splitlines()
    if items and all(item.lstrip().startswith("- ") for item in items):
        values = [_scalar(item.lstrip()[2:].strip()) for item in items]
        return None if None in values else f"[{','.join(filter(None, values))}]"
    return json_quoted(dedent(lines).strip("\n")) if lines.strip() else None


def _scalar(value: str) -> str | None:
    """The value as JSON; None if it was cut off."""
    mark = value[:1]
    if mark in ('"', "[", "{") and is_json(value):
        return value
    if mark in ('"', "'", "`") and value.find(mark, 1) < len(value) - 1:
        return None
    return json_quoted(value[1:-1] if len(value) > 1 and mark in ("'", "`") and value[-1] == mark else value)


LINES = Family(name="lines", first="\n", opener="\n", read=_read, whole=True, words=())
