"""JSON in the middle of a text: read strictly first, repaired only if that fails."""

import json
from collections.abc import Mapping

import msgspec
from msgspec import Raw

from stages._later import LazyPattern
from stages.decoding import NESTING, decode_or, nested
from stages.repair.damaged_json import BrokenJson, FoundJson, repair_json

_SCANNER = json.JSONDecoder(parse_int=str, parse_float=str)
_WINDOW = 1024
_NEAR_END = 16
"""Characters; an error closer to the end of a window may be caused by the window."""
_BACKSLASHED = LazyPattern(r'[\[{\s]{1,20}\\"')
_BEHIND_IT = r'(?=\s*+(?:["<%\[\u3010\u3014\u27e6\u300a\u00ab]|```|\Z))'
_LINE_OF_IT = LazyPattern(rf"[^\n]{{0,4000}}?[}}\]](?:{_BEHIND_IT}|(?=[ \t]*+\n))")
_ALL_OF_IT = LazyPattern(rf"[^<`]{{0,4000}}[}}\]]{_BEHIND_IT}")
_ENTITY_QUOTE = LazyPattern(r"\{\s{0,8}&(?:quot|#34|#x22|apos|#39);")


FIRST_KEY = r"[\"\u201c\uff02](?:name|tool|tool_name|function|function_name)[\"\u201d\uff02]\s{0,8}[:\uff1a]"
"""The beginning of a call whose opening brace is missing."""
_FIRST_KEY = LazyPattern(FIRST_KEY)


def _strict_end(text: str, start: int, *, python: bool = False) -> int:
    """The end of the valid JSON that begins at `start`; if there is none, minus the place where it broke.

    It is scanned in growing windows, so a text full of false starts costs no more than its length. `python`: with
    Python's quotes and words, which are as long as those of JSON.
    """
    size = _WINDOW
    while True:
        window = text[start : start + size]
        if python:
            window = window.replace("'", '"').replace("True", "true").replace("False", "false").replace("None", "null")
        try:
            broken, end = None, _SCANNER.raw_decode(window)[1]
        except json.JSONDecodeError as error:
            broken, end = error, error.pos
        except RecursionError:
            broken, end = None, len(window)
        if end > NESTING and nested(window[:end]):
            return -(start + len(window))
        if broken is None:
            return start + end
        whole = start + size >= len(text)
        if whole or (end < size - _NEAR_END and not broken.msg.startswith("Unterminated")):
            return -(start + end)
        size *= 8


def json_at(
    text: str, start: int, *, strict: bool = False, opened: bool = False, broken: BrokenJson | None = None
) -> FoundJson | BrokenJson:
    """The object or array at `start`; otherwise BrokenJson with the place where it broke. `strict`: no repairs.

    `opened`: a key there, without a brace, begins an object. `broken`: what a strict reading has found.
    """
    if not text.startswith(("{", "["), start) and (opened or _FIRST_KEY.compiled.match(text, start)):
        return repair_json(text, start, opened=True)
    end = -broken.end if broken else _strict_end(text, start)
    if end > 0 and _decodes(written := text[start:end]):
        return FoundJson(text=written, end=end)
    if strict:
        return BrokenJson(end=abs(end), cut=False)
    if _IN_PYTHON.compiled.match(text, start) and (python := _of_python(text, start)):
        return python
    if _ENTITY_QUOTE.compiled.match(text, start):
        return _unescaped(text, start)
    if _BACKSLASHED.compiled.match(text, start):
        return _unquoted(text, start)
    found = repair_json(text, start)
    # Up to there, it was valid JSON, so no call begins in it.
    return BrokenJson(end=max(found.end, abs(end)), cut=found.cut) if isinstance(found, BrokenJson) else found


_IN_PYTHON = LazyPattern(r"[{\[\s]{1,20}'")
_PYTHON = LazyPattern("('[^']*+')|True|False|None")
_WORDS = {"True": "true", "False": "false", "None": "null"}


def _of_python(text: str, start: int) -> FoundJson | None:
    """Read the value as Python directly, if no string has a quotation mark or an escape in it."""
    end = _strict_end(text, start, python=True)
    written = text[start : max(end, start)]
    if not written or '"' in written or "\\" in written:
        return None
    literals: tuple[str, ...] = ()
    if any(word in written for word in _WORDS):
        plain = _PYTHON.compiled.sub(lambda found: found[1] or _WORDS[found[0]], written)
        literals, written = ("python_literals",) if plain != written else (), plain
    written = written.replace("'", '"')
    if not _decodes(written):
        return None
    return FoundJson(text=msgspec.json.format(written, indent=-1), end=end, repairs=("single_quotes", *literals))


_any = msgspec.json.Decoder(Raw)
_text = msgspec.json.Decoder(str)
_members = msgspec.json.Decoder(dict[str, Raw])
_elements = msgspec.json.Decoder(list[Raw])


def is_json(text: str) -> bool:
    """Whether the text is one valid JSON value that can be decoded, as it is."""
    return not nested(text) and _decodes(text)


def _decodes(text: str) -> bool:
    try:
        _any.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return False
    return True


def object_members(text: str) -> dict[str, Raw] | None:
    """The members of a JSON object, each as JSON; None for any other value."""
    if not text.startswith("{") and not text.lstrip().startswith("{"):
        return None
    return decode_or(_members, text, None)


def array_elements(text: str) -> list[Raw] | None:
    """The elements of a JSON array, each as JSON; None for any other value."""
    return decode_or(_elements, text, None)


def string_value(value: Raw | None) -> str | None:
    """The string that a JSON value is; None for any other."""
    written = bytes(value or b"")
    return _text.decode(written) if written.startswith(b'"') else None


def json_source(value: Raw) -> str:
    """The JSON text of a value, as it was written."""
    return bytes(value).decode()


def json_quoted(text: str) -> str:
    """The text as a JSON string."""
    return msgspec.json.encode(text).decode()


def json_object(members: Mapping[str, str]) -> str:
    """The object with these members, whose values are JSON."""
    return "{" + ",".join(f"{json_quoted(key)}:{value}" for key, value in members.items()) + "}"


def _unescaped(text: str, start: int) -> FoundJson | BrokenJson:
    """An object whose quotes were written as HTML entities."""
    end = _braces_end(text, start)
    if end < 0:
        return BrokenJson(end=len(text), cut=True)
    from html import unescape  # noqa: PLC0415 - a table of two thousand names, of use to few replies

    inner = json_at(unescape(text[start:end]), 0)
    if isinstance(inner, BrokenJson):
        return BrokenJson(end=end, cut=False)
    return FoundJson(text=inner.text, end=end, repairs=("html_entities", *inner.repairs), cost=inner.cost)


def _unquoted(text: str, start: int) -> FoundJson | BrokenJson:
    """A value escaped like the inside of a JSON string: a backslash before each quotation mark."""
    line = text.find("\n", start, start + 4000)
    torn = BrokenJson(end=min(len(text), start + 4000) if line < 0 else line, cut=False)
    for extent in (_LINE_OF_IT, _ALL_OF_IT):
        whole = extent.compiled.match(text, start)
        if whole is None:
            continue
        torn = BrokenJson(end=whole.end(), cut=False)
        quote = '"' + whole[0].replace("\n", "\\n") + '"'
        inner = msgspec.json.decode(quote, type=str) if is_json(quote) else ""
        found = json_at(inner, 0) if inner else torn
        if isinstance(found, FoundJson) and not inner[found.end :].strip():
            repairs = ("escaped_quotes", *found.repairs)
            return FoundJson(text=found.text, end=whole.end(), repairs=repairs, cost=found.cost)
    return torn


_BRACE = LazyPattern(r"[{}]")


def _braces_end(text: str, start: int) -> int:
    depth = 0
    for brace in _BRACE.compiled.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return -1
