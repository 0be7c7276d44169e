"""Quoting: a model's own words and lists of names, as they stand in a sentence."""

from collections.abc import Iterable, Sequence

import msgspec

_QUOTED = 240
"""Characters of the model's own words that a text quotes."""


def quote(text: str, limit: int = _QUOTED) -> str:
    """The text, cut to `limit` characters with a marker."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} characters more)"


def as_data(text: str) -> str:
    """The text as a JSON string on one line, with `<` and `>` escaped: it can end nothing that it stands in."""
    return msgspec.json.encode(text).decode().replace("<", "\\u003c").replace(">", "\\u003e")


def listed(names: Iterable[str]) -> str:
    """Names as a list in a sentence; `none` for no name."""
    return ", ".join(names) or "none"


def first_few(values: Sequence[str], most: int = 8) -> str:
    """The first of these values, and how many more there are: each on one line, as far as 40 characters."""
    more = f" and {len(values) - most} more" if len(values) > most else ""
    return listed(quote(" ".join(value.split()), 40) for value in values[:most]) + more


def may_call(names: Iterable[str]) -> str:
    """A sentence, after a blank, that names the tools; empty for none."""
    tools = ", ".join(names)
    return f" You may call: {tools}." if tools else ""
