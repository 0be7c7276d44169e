"""Wildcards: matching a text against a pattern in which `*` stands for any characters, or none."""

from collections.abc import Sequence


def matches(pattern: str, text: str) -> bool:
    """Whether the whole text matches the pattern."""
    return has_parts(pattern.split("*"), text)


def has_parts(parts: Sequence[str], text: str) -> bool:
    """Whether the text is these parts in order, with anything between them. Takes linear time for each part."""
    first, *others = parts
    if not others:
        return text == first
    *middle, last = others
    if not text.startswith(first) or len(text) < len(first) + len(last) or not text.endswith(last):
        return False
    # The first occurrence of a part leaves the most room for the parts after it.
    at, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
