"""Wildcards: matching a text against a pattern in which `*` stands for any characters, or none."""


def matches(pattern: str, text: str) -> bool:
    """Whether the whole text matches the pattern. Takes linear time for each `*`."""
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
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
