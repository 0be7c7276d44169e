"""Differences between two values of the same type, field by field, with readable paths."""

import re
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from stages.schema.value import Json, dotted
from stages.view.prefix_reuse import common_length

_SHOWN = 120
"""Maximum characters of a value that a difference shows."""

_LEAD = 30
"""Characters shown before the place where two long texts diverge."""

_Path = tuple[str | int, ...]


class Difference(Struct, frozen=True, kw_only=True):
    """One place where two values differ, and both values as shortened JSON; None: not there."""

    path: str
    before: str | None
    after: str | None


def differences(before: object, after: object, hidden: re.Pattern[str] | None = None) -> tuple[Difference, ...]:
    """The smallest differences between the JSON of the two, in order; lists are compared by position.

    What matches `hidden` in a text of `before` matches anything.
    """
    return tuple(_walk(_json(before), _json(after), hidden))


def as_lines(found: tuple[Difference, ...], names: tuple[str, str], limit: int = 10) -> str:
    """The differences as lines of text, at most `limit` of them; `names` says what the two sides are."""
    width = max(map(len, names))
    sides = [(one, (names[0].ljust(width), names[1].ljust(width))) for one in found[:limit]]
    lines = [f"  {d.path}\n    {old}  {_said(d.before)}\n    {new}  {_said(d.after)}" for d, (old, new) in sides]
    more = len(found) - limit
    return "\n".join((*lines, f"  and {more} more") if more > 0 else lines)


def _said(text: str | None) -> str:
    return "(not there)" if text is None else text


def _json(value: object) -> Json:
    decoded: Json = msgspec.json.decode(msgspec.json.encode(value))
    return decoded


def _walk(before: Json, after: Json, hidden: re.Pattern[str] | None) -> Iterator[Difference]:
    """Iterative, because what a model said may be nested deeper than Python can recurse."""
    left: list[tuple[_Path, Json, Json]] = [((), before, after)]
    while left:
        path, old, new = left.pop()
        match old, new:
            case dict(), dict():
                names = [*old, *(name for name in new if name not in old)]
                pairs = [((*path, n), old.get(n, _ABSENT), new.get(n, _ABSENT)) for n in names]
                left.extend(reversed(pairs))
            case list(), list():
                length = max(len(old), len(new))
                indexed = [((*path, i), _at(old, i), _at(new, i)) for i in range(length)]
                left.extend(reversed(indexed))
            case _:
                if old is new or (type(old) is type(new) and old == new):
                    continue
                if hidden is None or not isinstance(old, str) or not _stands_for(old, new, hidden):
                    yield _difference(path, old, new)


def _stands_for(old: str, new: Json, hidden: re.Pattern[str]) -> bool:
    """Whether the two are equal except for what is hidden in the first; linear, since each part is searched once."""
    if new is _ABSENT or not hidden.search(old):
        return False
    if hidden.fullmatch(old):
        return True
    if not isinstance(new, str):
        return False
    first, *middle, last = hidden.split(old)
    if len(new) < len(first) + len(last) or not (new.startswith(first) and new.endswith(last)):
        return False
    at, end = len(first), len(new) - len(last)
    for part in middle:
        found = new.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


_ABSENT = "\0absent"
"""A missing value; compared by identity, so that no text is mistaken for it."""


def _at(values: list[Json], index: int) -> Json:
    return values[index] if index < len(values) else _ABSENT


def _difference(path: _Path, old: Json, new: Json) -> Difference:
    start = 0
    if isinstance(old, str) and isinstance(new, str) and old is not _ABSENT and new is not _ABSENT:
        start = max(0, common_length(old, new) - _LEAD)
    return Difference(path=dotted(path), before=_shown(old, start), after=_shown(new, start))


def _shown(value: Json, start: int) -> str | None:
    if value is _ABSENT:
        return None
    if isinstance(value, str):
        part = value[start : start + _SHOWN]
        text = msgspec.json.encode(part).decode()
        return f"{'…' if start else ''}{text}{'…' if len(value) > start + _SHOWN else ''}"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
