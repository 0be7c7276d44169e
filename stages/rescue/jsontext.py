"""JSON in the middle of a text: read strictly first, mended only where that fails."""

import html
import re

import msgspec
from msgspec import Raw, Struct

from stages.rescue.mend import DEEPEST, Mended, Torn, mend

_TO_BRACKET = re.compile(r'[^{}\[\]"]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^{}\[\]"]*+)*+', re.DOTALL)
_ENTITY_QUOTE = re.compile(r"\{\s{0,8}&(?:quot|#34|#x22|apos|#39);")


class Json(Struct, frozen=True, kw_only=True):
    """A JSON value found in a text: valid JSON, and where it ended. See FoundCall for repairs and cost."""

    text: str
    end: int
    repairs: tuple[str, ...] = ()
    cost: int = 0


def extent(text: str, start: int) -> int:
    """Where the object or array that begins at `start` ends, brackets in strings not counted; -1 if nowhere."""
    depth, position = 0, start
    while True:
        position = _TO_BRACKET.match(text, position).end()  # type: ignore[union-attr]  # it matches the empty string
        if position == len(text) or text[position] == '"' or depth > DEEPEST:
            return -1
        depth += 1 if text[position] in "{[" else -1
        position += 1
        if depth == 0:
            return position


def json_at(text: str, start: int) -> Json | Torn:
    """The object or array that begins at `start`, mended if it must be; Torn with the place where it broke."""
    end = extent(text, start)
    if end > 0 and is_json(text[start:end]):
        return Json(text=text[start:end], end=end)
    if _ENTITY_QUOTE.match(text, start):
        return _unescaped(text, start)
    match mend(text, start):
        case Mended(json=mended, end=end, repairs=repairs, cost=cost):
            return Json(text=mended, end=end, repairs=repairs, cost=cost)
        case torn:
            return torn


def is_json(text: str) -> bool:
    """Whether the text is one valid JSON value."""
    try:
        msgspec.json.decode(text, type=Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def members(text: str) -> dict[str, Raw] | None:
    """The members of a JSON object, each as JSON; None for any other value."""
    try:
        return msgspec.json.decode(text, type=dict[str, Raw])
    except (msgspec.DecodeError, RecursionError):
        return None


def elements(text: str) -> list[Raw] | None:
    """The elements of a JSON array, each as JSON; None for any other value."""
    try:
        return msgspec.json.decode(text, type=list[Raw])
    except (msgspec.DecodeError, RecursionError):
        return None


def string(value: Raw | None) -> str | None:
    """The string that a JSON value is; None for any other."""
    if value is None or not bytes(value).startswith(b'"'):
        return None
    return msgspec.json.decode(value, type=str)


def source(value: Raw) -> str:
    """The JSON text of a value, as it was written."""
    return bytes(value).decode()


def quoted(text: str) -> str:
    """The text as a JSON string."""
    return msgspec.json.encode(text).decode()


_ESCAPED_END = re.compile(r"\}(?=[^{}]*+$)")


def _unescaped(text: str, start: int) -> Json | Torn:
    """An object whose quotes were written as HTML entities: it ends with the brace that balances the first."""
    end = extent(text, start)
    if end < 0:
        return Torn(end=len(text), cut=True)
    inner = json_at(html.unescape(text[start:end]).replace("&quot;", '"'), 0)
    if isinstance(inner, Torn):
        return Torn(end=end, cut=False)
    return Json(text=inner.text, end=end, repairs=("html_entities", *inner.repairs), cost=inner.cost + 1)
