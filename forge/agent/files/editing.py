"""Edits of text files: exact replacements that preserve line endings and encoding."""

from collections.abc import Iterator
from itertools import islice, takewhile

from msgspec import Struct

# How a model sees a file's text. Pure functions.

_WIDEST = 500
"""Maximum characters to show of one line."""


def lines_of(text: str) -> list[str]:
    """The lines, without their ends."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def numbered(lines: list[str], first: int, last: int, most: int) -> tuple[str, int]:
    """Lines `first` to `last` with their numbers, in at most `most` characters; and the last one shown."""
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
    """The last lines in at most `most` characters, and the number of the first of them."""
    size, first = 0, len(lines)
    while first > 0 and (size := size + len(_cut(lines[first - 1])) + 1) <= max(most, _WIDEST + 50):
        first -= 1
    return "\n".join(map(_cut, lines[first:])), first + 1


def lines_with(text: str, wanted: str, *, ignore_case: bool) -> Iterator[tuple[int, str]]:
    """The lines that contain the wanted text, with their numbers."""
    sought = wanted.casefold() if ignore_case else wanted
    for number, line in enumerate(lines_of(text), 1):
        if sought in (line.casefold() if ignore_case else line):
            yield number, line


def unfenced(text: str, name: str) -> str:
    """The text of the file with that name, without a Markdown code fence around all of it.

    Small models put code into fences everywhere. In a Markdown file the fence may be intended.
    """
    lines = text.strip("\n").split("\n")
    first = lines[0].rstrip()
    fenced = len(lines) > 1 and first.startswith("```") and "`" not in first[3:] and lines[-1].rstrip() == "```"
    if not fenced or name.lower().endswith((".md", ".markdown")) or any("```" in line for line in lines[1:-1]):
        return text
    return "".join(f"{line}\n" for line in lines[1:-1])


def one_line(line: str) -> str:
    """The line, stripped and shortened."""
    return _cut(line.strip())


def _cut(line: str) -> str:
    return line if len(line) <= _WIDEST else f"{line[:_WIDEST]} [Cut — {len(line) - _WIDEST} chars more]"


# Replacing a part of a text that must occur once, tolerating whitespace differences. Pure functions.

_AROUND = 2
"""Lines to show before and after a place."""

_PLACES = 10
"""Maximum places to name in a message."""

_COMPARED = 20_000
"""Maximum lines to compare with a text that was not found."""

_SHOWN = 2_000
"""Maximum characters to show of a place."""


class Edited(Struct, frozen=True, kw_only=True):
    """A text with one part replaced; `first` and `last` are the lines of the new part, from 1."""

    text: str
    first: int
    last: int


class Unfound(Struct, frozen=True, kw_only=True):
    """Why nothing was replaced, in sentences for the model."""

    reason: str


def edit(text: str, old: str, new: str) -> Edited | Unfound:
    """The text with `old`, which must occur exactly once, replaced by `new`.

    Without an exact match, whole lines match that differ only in whitespace or copied line numbers; the new lines are
    then indented like those in the file.
    """
    if not old.strip():
        return Unfound(reason="the text to replace is empty; give the lines to replace, or use write_file")
    if "\r\n" in text and "\r" not in old + new:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    if old == new:
        return Unfound(reason=_SAME)
    at = text.find(old)
    if at < 0:
        return _edit_alike(text, old, new)
    if text.find(old, at + 1) >= 0:
        return Unfound(reason=_several(_lines_at(text, old)))
    first = text.count("\n", 0, at) + 1
    return Edited(
        text=text[:at] + new + text[at + len(old) :], first=first, last=first + new.rstrip("\r\n").count("\n")
    )


def kept_lines(old: list[str], new: list[str]) -> tuple[int, int]:
    """How many lines at the beginning and at the end stay the same."""
    before = _same(old, new)
    return before, _same(old[before:][::-1], new[before:][::-1])


def _same(one: list[str], other: list[str]) -> int:
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))


def _edit_alike(text: str, old: str, new: str) -> Edited | Unfound:
    """`edit` for a text that only matches without whitespace or line numbers. Unchanged lines are not touched."""
    was, now = _as_lines(old, new)
    if was == now:
        return Unfound(reason=_SAME)
    lines = text.split("\n")
    places = _places_alike(lines, was)
    if len(places) > 1:
        return Unfound(reason=_several([place + 1 for place in places]))
    if not places:
        return Unfound(reason=_nearest(text, old))
    before, after = kept_lines(was, now)
    at = places[0]
    put = _indented(now[before : len(now) - after], was, lines[at : at + len(was)])
    if put is None:
        told, _ = numbered(lines_of(text), at + 1, at + len(was), _SHOWN)
        return Unfound(
            reason=f"that text is there, but indented otherwise. Nothing was changed. It is:\n{told}\n{_COPY}"
        )
    end = "\r" if "\r\n" in text else ""
    first = at + before
    edited = [*lines[:first], *(line + end for line in put), *lines[at + len(was) - after :]]
    return Edited(text="\n".join(edited).removesuffix("\r"), first=first + 1, last=first + len(put))


def _as_lines(old: str, new: str) -> tuple[list[str], list[str]]:
    """The lines of both, without surrounding blank ones and without the line numbers of `read_file`."""
    was, now = _trimmed(old), _trimmed(new)
    bare = [_unnumbered(line) for line in was]
    if any(map(str.strip, bare)) and all(one != line for one, line in zip(bare, was, strict=True) if line.strip()):
        return bare, [_unnumbered(line) for line in now]
    return was, now


def _trimmed(text: str) -> list[str]:
    lines = lines_of(text)
    filled = [at for at, line in enumerate(lines) if line.strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def _unnumbered(line: str) -> str:
    """The line without a leading number and bar."""
    number, bar, rest = line.partition("|")
    return rest.removeprefix(" ") if bar and number.strip().isdecimal() else line


def _places_alike(lines: list[str], wanted: list[str]) -> list[int]:
    """Where the wanted lines occur, ignoring whitespace; at most one place more than a message names."""
    bare, sought = ("\n" + "".join(f"{_bare(line)}\n" for line in some) for some in (lines, wanted))
    return [place - 1 for place in _lines_at(bare, sought)]


def _bare(line: str) -> str:
    return "".join(line.split())


def _indented(new: list[str], given: list[str], there: list[str]) -> list[str] | None:
    """The new lines with the file's indentation; None if the given ones are unevenly indented."""
    pairs = {(_indent(line), _indent(real)) for line, real in zip(given, there, strict=True) if line.strip()}
    mine, real = min(pairs)
    if real.endswith(mine):
        more = real.removesuffix(mine)
        if all(other == more + own for own, other in pairs):
            return [more + line if line.strip() else line for line in new]
    elif mine.endswith(real):
        less = mine.removesuffix(real)
        if all(own == less + other for own, other in pairs) and all(
            line.startswith(less) or not line.strip() for line in new
        ):
            return [line.removeprefix(less) for line in new]
    return None


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


_SAME = "the old and the new text are the same, so nothing would change"

_COPY = "Copy the old text exactly from there, without the line numbers and the bars; one line may be enough"


def _lines_at(text: str, old: str) -> list[int]:
    """The lines where the text occurs; at most one more than a message names."""
    places: list[int] = []
    at = text.find(old)
    while at >= 0 and len(places) <= _PLACES:
        places.append(text.count("\n", 0, at) + 1)
        at = text.find(old, at + 1)
    return places


def _several(places: list[int]) -> str:
    count = f"more than {_PLACES}" if len(places) > _PLACES else str(len(places))
    return (
        f"that text is there {count} times, at lines {', '.join(map(str, places[:_PLACES]))}. Nothing was changed. "
        "Give more of the lines around the right one, so that it is there once"
    )


def _nearest(text: str, old: str) -> str:
    lines, wanted = lines_of(text), [line for line in lines_of(old) if line.strip()]
    if not lines:
        return "that text is not in the file, which is empty; use write_file"
    # Find the line that shares most words with the first wanted line that has any.
    sought = next(filter(None, map(_words, wanted)), frozenset[str]())
    words = [_words(line) for line in islice(lines, _COMPARED)]
    alike = [len(one & sought) / (len(one | sought) or 1) for one in words]
    at = alike.index(max(alike))
    pairs = zip(lines[at:], lines_of(old), strict=False)
    differing = next((pair for pair in pairs if _bare(pair[0]) != _bare(pair[1])), None)
    first = ""
    if differing is not None:
        there, given = map(one_line, differing)
        first = f"Your text has {given!r} where the file has {there!r}. "
    told, _ = numbered(lines, max(1, at + 1 - _AROUND), at + len(wanted) + _AROUND, _SHOWN)
    return f"that text is not in the file. Nothing was changed. The nearest lines are:\n{told}\n{first}{_COPY}"


def _words(line: str) -> frozenset[str]:
    return frozenset("".join(c if c.isalnum() else " " for c in line[:_WIDEST].lower()).split())
