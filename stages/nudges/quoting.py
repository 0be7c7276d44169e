"""Quoting: a model's own words and lists of names, as they stand in a sentence."""

from collections.abc import Iterable

_QUOTED = 240
"""Characters of the model's own words that a text quotes."""


def quote(text: str, limit: int = _QUOTED) -> str:
    """The text, cut to `limit` characters with a marker."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} characters more)"


def listed(names: Iterable[str]) -> str:
    """Names as a list in a sentence; `none` for no name."""
    return ", ".join(names) or "none"


def may_call(names: Iterable[str]) -> str:
    """A sentence, after a blank, that names the tools; empty for none."""
    tools = ", ".join(names)
    return f" You may call: {tools}." if tools else ""
