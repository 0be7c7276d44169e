"""Texts: what a file's text looks like to a model, and how a unique part of it is replaced. Pure functions."""

from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

WIDEST = 500
"""Maximum characters of one line that are shown."""

_AROUND = 2
"""Lines shown before and after a place."""

_PLACES = 10
"""Maximum places that a message names."""

_COMPARED = 20_000
"""Maximum lines that are compared with a text that is not there."""


class Edited(Struct, frozen=True, kw_only=True):
    """A text in which one part was replaced, and the lines that the new part has there, counted from 1."""

    text: str
    first: int
    last: int


class Unfound(Struct, frozen=True, kw_only=True):
    """Why nothing was replaced, in sentences for the model."""

    reason: str


def lines_of(text: str) -> list[str]:
    """The lines, without their ends."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def numbered(lines: list[str], first: int, last: int, most: int) -> tuple[str, int]:
    """Lines `first` to `last` with their numbers, at most `most` characters; and the last one that is there."""
    told: list[str] = []
    size, at = 0, first - 1
    for at in range(first - 1, min(last, len(lines))):
        line = f"{at + 1} | {_cut(lines[at])}"
        size += len(line) + 1
        if told and size > most:
            return "\n".join(told), at
        told.append(line)
    return "\n".join(told), at + 1


def ending(lines: list[str], most: int) -> tuple[str, int]:
    """The last lines, at most `most` characters, and the number of the first of them."""
    size, first = 0, len(lines)
    while first > 0 and (size := size + len(_cut(lines[first - 1])) + 1) <= max(most, WIDEST + 50):
        first -= 1
    return "\n".join(map(_cut, lines[first:])), first + 1


def edit(text: str, old: str, new: str) -> Edited | Unfound:
    """The text with `old`, which must be in it exactly once, replaced by `new`."""
    if not old.strip():
        return Unfound(reason="the text to replace is empty; give the lines to replace, or use write_file")
    if "\r\n" in text and "\r" not in old + new:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    if old == new:
        return Unfound(reason="the old and the new text are the same, so nothing would change")
    at = text.find(old)
    if at < 0:
        return Unfound(reason=_nearest(text, old))
    if text.find(old, at + 1) >= 0:
        return Unfound(reason=_several(text, old))
    first = text.count("\n", 0, at) + 1
    return Edited(
        text=text[:at] + new + text[at + len(old) :], first=first, last=first + new.rstrip("\r\n").count("\n")
    )


def lines_with(text: str, wanted: str, *, ignore_case: bool) -> Iterator[tuple[int, str]]:
    """The lines that hold the wanted text, with their numbers."""
    sought = wanted.casefold() if ignore_case else wanted
    for number, line in enumerate(lines_of(text), 1):
        if sought in (line.casefold() if ignore_case else line):
            yield number, line


def one_line(line: str) -> str:
    """The line, shortened, without what surrounds it."""
    return _cut(line.strip())


def _several(text: str, old: str) -> str:
    places: list[int] = []
    at = text.find(old)
    while at >= 0 and len(places) <= _PLACES:
        places.append(text.count("\n", 0, at) + 1)
        at = text.find(old, at + 1)
    count = f"more than {_PLACES}" if len(places) > _PLACES else str(len(places))
    return (
        f"that text is there {count} times, at lines {', '.join(map(str, places[:_PLACES]))}. Nothing was changed. "
        "Give more of the lines around the right one, so that it is there once"
    )


def _nearest(text: str, old: str) -> str:
    lines, wanted = lines_of(text), [line for line in lines_of(old) if line.strip()]
    if not lines:
        return "that text is not in the file, which is empty; use write_file"
    same = _whitespace_apart(lines, wanted)
    if same is not None:
        first, last = same
        told, _ = numbered(lines, first, last, 2_000)
        return f"that text is there but for spaces or line numbers. Nothing was changed. It is:\n{told}\n{_COPY}"
    at = _most_alike(lines, wanted)
    told, _ = numbered(lines, max(1, at + 1 - _AROUND), at + len(wanted) + _AROUND, 2_000)
    return (
        f"that text is not in the file. Nothing was changed. The nearest lines are:\n{told}\n"
        f"{_first_difference(lines[at:], lines_of(old))}{_COPY}"
    )


_COPY = "Copy the old text exactly from there, without the line numbers and the bars; one line may be enough"


def _first_difference(lines: list[str], wanted: list[str]) -> str:
    """Which of the wanted lines is the first that is not as in the file."""
    for there, line in zip(lines, wanted, strict=False):
        if there != line:
            return f"Your text has {one_line(line)!r} where the file has {one_line(there)!r}. "
    return ""


def _whitespace_apart(lines: list[str], wanted: list[str]) -> tuple[int, int] | None:
    """The first and the last line of the place where the wanted lines are, but for spaces and copied line numbers."""
    bare = [(n, "".join(line.split())) for n, line in enumerate(lines, 1) if line.strip()]
    joined, sought = (
        "\n" + "".join(f"{line}\n" for line in found) for found in ([b for _, b in bare], map(_bare, wanted))
    )
    at = joined.find(sought)
    if at < 0:
        return None
    start = joined.count("\n", 0, at)
    return bare[start][0], bare[start + len(wanted) - 1][0]


def _bare(line: str) -> str:
    number, bar, rest = line.partition("|")
    return "".join((rest if bar and number.strip().isdigit() else line).split())


def _most_alike(lines: list[str], wanted: list[str]) -> int:
    """The line that has most words in common with the first wanted line that has any."""
    sought = next(filter(None, map(_words, wanted)), frozenset[str]())
    alike = [_likeness(_words(line), sought) for line in islice(lines, _COMPARED)]
    return alike.index(max(alike))


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / (len(one | other) or 1)


def _words(line: str) -> frozenset[str]:
    return frozenset("".join(c if c.isalnum() else " " for c in line[:WIDEST].lower()).split())


def _cut(line: str) -> str:
    return line if len(line) <= WIDEST else f"{line[:WIDEST]} [Cut — {len(line) - WIDEST} chars more]"
