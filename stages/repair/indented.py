"""Turns lines into JSON: the YAML that models write for calls (mappings, lists, block scalars), and TOML."""

import re
import tomllib
from textwrap import dedent

import msgspec

from stages.repair.json_text import is_json, json_object, json_quoted

_KEY = re.compile(
    r"(?P<quote>[\"'*`]{0,3})(?P<key>[\w.-]{1,100}+)(?P=quote):(?:[ \t]++(?P<value>\S.*)|[ \t]*+)\Z", re.DOTALL
)
_ITEM = re.compile(r"-(?:[ \t]++|\Z)")
_BLOCK = re.compile(r"(?P<sign>[|>])[+-]?\Z")
_TYPED = re.compile(r"-?(?:0|[1-9]\d{0,15})|true|false|null")
_UNTOLD = 3
"""Level from which few schemas say what a scalar is: 0 names the tool, 1 and 2 may be its arguments."""
_NESTED = re.compile(r"^(?:[^=\n.]*\.){8}", re.MULTILINE)
_MOST_BRACKETS = 200
"""Bounds of TOML: its parser takes quadratic time for dotted keys and recurses for nested values."""
_UNCLOSED = re.compile(r"^[\w.-]{1,80} ?= ?\"[^\"\n]*(?=\n)", re.MULTILINE)
_DEEPEST = 8
"""Maximum levels of nesting."""


def indented_value(text: str) -> str | None:
    """The mapping or list that the lines are, as JSON; None for any other text, and for a value that was cut off.

    Every scalar becomes a string, because the schema knows its type better; JSON strings, arrays and objects are kept,
    and so are integers and booleans from the fourth level on, which few schemas describe.
    """
    lines = _Lines(text.splitlines())
    value = lines.block(0)
    return value if value is not None and lines.margin() < 0 else None


def value_below(text: str, *, block: bool = False) -> str | None:
    """The mapping, list or text in the lines below a key (a `block` is a text); None if there are none."""
    below = dedent(text).strip("\n")
    lines = _Lines([] if block else below.splitlines())
    value = lines.block(_UNTOLD)
    return value if value is not None and lines.margin() < 0 else json_quoted(below) if below else None


def toml_value(text: str) -> str | None:
    """A text in TOML as JSON, with numbers as they are written; None for any other text.

    A missing quotation mark at the end of a line is added.
    """
    if _NESTED.search(text) or max(text.count("["), text.count("{")) > _MOST_BRACKETS:
        return None
    for written in (text, _UNCLOSED.sub(r'\g<0>"', text)):
        try:
            return msgspec.json.encode(tomllib.loads(written, parse_float=str)).decode()
        except ValueError:  # or a number of thousands of digits
            pass
    return None


def scalar(value: str) -> str | None:
    """A value on a separate line as JSON; None if it was cut off."""
    mark = value[:1]
    if mark in ('"', "[", "{") and is_json(value):
        return value
    if mark in ('"', "'", "`") and value.find(mark, 1) < len(value) - 1:
        return None
    return json_quoted(value[1:-1] if len(value) > 1 and mark in ("'", "`") and value[-1] == mark else value)


class _Lines:
    """Lines that are read once, from the first to the last."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0

    def margin(self) -> int:
        """The indentation of the next line that is not blank; -1 at the end."""
        while self.at < len(self.lines) and not self.lines[self.at].strip():
            self.at += 1
        return _indent(self.lines[self.at]) if self.at < len(self.lines) else -1

    def block(self, depth: int) -> str | None:
        """The mapping or list that begins with the next line; None for anything else."""
        margin = self.margin()
        if margin < 0 or depth > _DEEPEST:
            return None
        return self.items(margin, depth) if _ITEM.match(self.lines[self.at].lstrip()) else self.mapping(margin, depth)

    def mapping(self, margin: int, depth: int) -> str | None:
        members: dict[str, str] = {}
        while self.margin() == margin and (line := _KEY.match(self.lines[self.at].strip())):
            self.at += 1
            value = self.value(line["value"] or "", margin, depth)
            if value is None or line["key"] in members:
                return None
            members[line["key"]] = value
        return json_object(members) if members else None

    def items(self, margin: int, depth: int) -> str | None:
        items: list[str] = []
        while self.margin() == margin and (dash := _ITEM.match(line := self.lines[self.at].strip())):
            inside = line[dash.end() :]
            if _KEY.match(inside):
                # The first line of a mapping, whose other lines are indented like the text after the dash.
                self.lines[self.at] = " " * (margin + dash.end()) + inside
                value = self.block(depth + 1)
            else:
                self.at += 1
                value = self.value(inside, margin, depth)
            if value is None:
                return None
            items.append(value)
        return f"[{','.join(items)}]"

    def value(self, written: str, margin: int, depth: int) -> str | None:
        """The value after a key or a dash, or below it."""
        if block := _BLOCK.match(written):
            begin = self.at
            while self.at < len(self.lines) and (not (line := self.lines[self.at]).strip() or _indent(line) > margin):
                self.at += 1
            text = dedent("\n".join(self.lines[begin : self.at])).strip("\n")
            return json_quoted(text.replace("\n", " ") if block["sign"] == ">" else text)
        if depth >= _UNTOLD and _TYPED.fullmatch(written):
            return written
        if written:
            return scalar(written)
        below = self.margin()
        # A list may be indented as far as its key.
        if below > margin or (below == margin and _ITEM.match(self.lines[self.at].lstrip())):
            return self.block(depth + 1)
        return "null"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
