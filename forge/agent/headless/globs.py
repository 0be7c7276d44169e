"""Globs: patterns of paths, as in a .gitignore without negation.

`*` stands for any characters within one name, `**` for any number of folders. A pattern without a slash, but at its
end, is about a name in any folder; one with a slash is about a path from the root. What fits a folder fits everything
in it.
"""

from stages.rules import matches


def covers(pattern: str, path: tuple[str, ...], *, any_case: bool = False) -> bool:
    """Whether the pattern fits the path or a folder above it. Takes time linear in the path for each part of both."""
    steps = _steps(pattern.casefold() if any_case else pattern)
    here = _skipping({0}, steps)
    for name in path:
        if len(steps) in here:
            return True
        folded = name.casefold() if any_case else name
        moved = {at if steps[at] == "**" else at + 1 for at in here if steps[at] == "**" or matches(steps[at], folded)}
        here = _skipping(moved, steps)
    return len(steps) in here


def _steps(pattern: str) -> tuple[str, ...]:
    names = tuple(name for name in pattern.split("/") if name not in {"", "."})
    anchored = "/" in pattern.rstrip("/")
    return names if anchored else ("**", *names)


def _skipping(places: set[int], steps: tuple[str, ...]) -> set[int]:
    """The places, and those behind any `**` there, which may stand for no folder at all."""
    found = set(places)
    for at, step in enumerate(steps):
        if at in found and step == "**":
            found.add(at + 1)
    return found
