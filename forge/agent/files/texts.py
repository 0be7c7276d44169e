"""Texts: what a file's text looks like to a model. Pure functions."""

from collections.abc import Iterator

WIDEST = 500
"""Maximum characters of one line that are shown."""


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


def lines_with(text: str, wanted: str, *, ignore_case: bool) -> Iterator[tuple[int, str]]:
    """The lines that hold the wanted text, with their numbers."""
    sought = wanted.casefold() if ignore_case else wanted
    for number, line in enumerate(lines_of(text), 1):
        if sought in (line.casefold() if ignore_case else line):
            yield number, line


def unfenced(text: str, name: str) -> str:
    """The text of a file of that name, without the Markdown code fence that a model has put around all of it.

    Small models write code in fences wherever they write it. A Markdown file may be meant so.
    """
    lines = text.strip("\n").split("\n")
    first = lines[0].rstrip()
    fenced = len(lines) > 1 and first.startswith("```") and "`" not in first[3:] and lines[-1].rstrip() == "```"
    if not fenced or name.lower().endswith((".md", ".markdown")) or any("```" in line for line in lines[1:-1]):
        return text
    return "".join(f"{line}\n" for line in lines[1:-1])


def one_line(line: str) -> str:
    """The line, shortened, without what surrounds it."""
    return _cut(line.strip())


def _cut(line: str) -> str:
    return line if len(line) <= WIDEST else f"{line[:WIDEST]} [Cut — {len(line) - WIDEST} chars more]"
