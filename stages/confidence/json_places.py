"""Where the values of JSON stand in a text: each string, number and word of it, with its path."""

import re
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from stages.repair.decoding import decode

_MARK = re.compile(r'\\.|["{}\[\]:,]', re.DOTALL)
_DEEP = 6
"""Maximum length of a path that is told: calls stand no deeper."""

_string = msgspec.json.Decoder(str)


class JsonPlace(Struct, frozen=True, kw_only=True, gc=False):
    """A value that is no array and no object. `value` is its JSON, `number` counts the texts with JSON around it."""

    path: tuple[str | int, ...]
    start: int
    value: str
    number: int = 0


def json_places(text: str) -> Iterator[JsonPlace]:
    """The plain values of the objects and arrays in the text, in order; of damaged JSON, whatever is found."""
    path: list[str | int | None] = []
    number = -1
    for start, part in _parts(text):
        inner = path[-1] if path else 0
        if part in "{[":
            number += not path
            path.append(None if part == "{" else 0)
        elif part in "]}":
            del path[-1:]
        elif part == ",":
            path[-1:] = [] if not path else [inner + 1] if isinstance(inner, int) else [None]
        elif inner is None:
            path[-1] = _name(part)
        elif part != ":" and 0 < len(path) <= _DEEP:
            at = tuple(one for one in path if one is not None)
            yield JsonPlace(path=at, start=start, value=part, number=number)


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """The signs, strings, numbers and words of JSON in the text, each with where it begins."""
    since, quoted = 0, False
    for mark in _MARK.finditer(text):
        at = mark.start()
        if mark[0] == '"':
            if quoted:
                yield since, text[since : at + 1]
            since, quoted = (at + 1, False) if quoted else (at, True)
        elif not quoted:
            if bare := text[since:at].strip():
                yield text.index(bare, since), bare
            yield at, mark[0]
            since = at + 1


def _name(key: str) -> str:
    try:
        return decode(_string, key)
    except msgspec.DecodeError:
        return ""
