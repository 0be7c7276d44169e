"""Members of JSON objects, including duplicates and members of JSON within a text."""

import json
import re
from collections.abc import Iterator

from stages.repair.decoding import nested


class Members(list[tuple[str, object]]):
    """The members of a JSON object in order, including duplicate names."""


def members(text: str) -> Members | None:
    """The members, if the text is a JSON object; None otherwise."""
    if nested(text):
        return None
    try:
        found = json.loads(text, object_pairs_hook=Members)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, Members) else None


def repeats(text: str) -> bool:
    """Whether any object in this JSON text has a duplicate member."""
    left: list[object] = [members(text)]
    while left:
        value = left.pop()
        if isinstance(value, Members):
            if len({name for name, _ in value}) < len(value):
                return True
            left += [item for _, item in value]
        elif isinstance(value, list):
            left += value
    return False


def inner_members(text: str) -> Iterator[tuple[str, object]]:
    """Anything in a text that looks like a member with a string or number value, escaped or not."""
    for form in {text, text.replace('\\"', '"')}:
        for name, value in _MEMBER.findall(form):
            try:
                yield name, json.loads(value)
            except ValueError:
                yield name, value


_MEMBER = re.compile(r"""["']([^"'\\\n]{1,64})["']\s{0,9}:\s{0,9}("(?:[^"\\]|\\.)*"|[^\s,{}\[\]"]{1,400})""")


def plainly(name: str) -> str:
    """The name without case and punctuation: `api-key`, `apiKey` and `API_KEY` are the same."""
    return re.sub(r"[^a-z0-9]", "", name.lower()) or name
