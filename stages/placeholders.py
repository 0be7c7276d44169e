"""Placeholders: arguments that only stand for a value, such as `<customer_id>`."""

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from stages._later import LazyPattern
from stages.message import Kind, ToolCall, User
from stages.schema.value import json_members
from stages.seen import normalized, plain_words, values_within
from stages.state import State
from stages.tool import ToolSpec

_WRAPPED = LazyPattern(r"<([^<>]{1,80})>|\{\{([^{}]{1,80})\}\}|\$?\{([^{}]{1,80})\}|\[([^\[\]]{1,80})\]|%([^%]{1,80})%")
_PATH = LazyPattern(r"\$?(\w{1,80})(?:\(.{0,80}\))?(?:[.\[].{1,80})?")
_SPEAKS_OF_RESULTS = frozenset({"result", "results", "output", "response", "previous", "value", "from", "placeholder"})
_AROUND = frozenset({"your", "the", "my", "some", "a", "an"})
_LINKS = frozenset({"of", "by", "in", "call", "calling", "tool", "returned"})
_OPENS = "<{$[%"
"""First characters of wrapped values; other texts need not be matched against the longer pattern."""
_DOCUMENTS = frozenset(
    {"content", "contents", "code", "source", "template", "html", "markdown", "script", "snippet", "patch", "diff"}
)
"""Last words in the names of arguments that are documents, which may consist of `{{name}}`, `<div>` or `f()`."""


def placeholder_arguments(call: ToolCall, tools: Mapping[str, ToolSpec], state: State) -> tuple[tuple[str, str], ...]:
    """The arguments of a call that are placeholders, with their texts: `<customer_id from get_order>`.

    Whatever the user said, or the tool's schema lists, is a value, whatever it looks like. So is a document, unless it
    names the result of a tool: `<content from read_file>`.
    """
    found: list[tuple[str, str]] = []
    writes = tools[call.name].effect == "write"
    for name, value in json_members.decode(call.arguments).items():
        if isinstance(value, str) and _stands_for(value, name, tools):
            last_word = plain_words(name)[-1:]
            document = "\n" in value.strip() or (writes and not _DOCUMENTS.isdisjoint(last_word))
            if not document or _stands_for_a_result(value.strip(), tools):
                found.append((name, value))
        elif isinstance(value, list | dict):
            texts = [leaf for _, leaf in values_within(value) if isinstance(leaf, str)]
            found += [(name, text) for text in texts if _stands_for(text, name, tools)]
    if not found:
        return ()
    schema = tools[call.name].properties
    # Texts in the schema, as an enum or a default, are values, and so are the user's words.
    found = [(n, text) for n, text in found if msgspec.json.encode(text) not in bytes(schema.get(n, Raw(b"")))]
    users = (m for m in state.history if isinstance(m, User) and m.kind in (Kind.USER_INPUT, Kind.REMEMBERED))
    said = [normalized(m.text) for m in users] if found else []
    return tuple((n, text) for n, text in found if not any(normalized(text) in one for one in said))


def _stands_for_a_result(text: str, tools: Mapping[str, ToolSpec]) -> bool:
    """Whether the whole text is in brackets, names a tool and mentions its result."""
    wrapped = _WRAPPED.compiled.fullmatch(text) if text[:1] in _OPENS else None
    if wrapped is None:
        return False
    inner = next(group for group in wrapped.groups() if group is not None)
    words, path = _words(inner), _PATH.compiled.fullmatch(inner.strip())
    named = any(_words(tool) <= words for tool in tools)
    return (named and not words.isdisjoint(_SPEAKS_OF_RESULTS)) or (path is not None and path[1] in tools)


def _stands_for(text: str, name: str, tools: Mapping[str, ToolSpec]) -> bool:
    plain = text.strip()
    # A longer text is content. The bound only spares it the patterns: halving it changes no recorded decision.
    if len(plain) > _LONGEST_PLACEHOLDER:
        return False
    if plain[:1] in _OPENS and (wrapped := _WRAPPED.compiled.fullmatch(plain)):
        words = _words(next(group for group in wrapped.groups() if group is not None))
        named = any(_words(one) <= words for one in (name, *tools))
        return named or not words.isdisjoint(_SPEAKS_OF_RESULTS)
    # Most values are no placeholders, which a look at the first word shows quickly.
    first = plain_words(name)[:1]
    if (not first or first[0] in plain.casefold()) and _words(plain) - _AROUND == _words(name):
        return True
    if not any(map(plain.__contains__, tools)):
        return False
    path = _PATH.compiled.fullmatch(plain)
    return (path is not None and path[1] in tools) or _says_only_where_it_is(plain, name, tools)


def _says_only_where_it_is(plain: str, name: str, tools: Mapping[str, ToolSpec]) -> bool:
    """Whether the text is like `the customer id from get_order` and no more; a sentence about a result is a value."""
    words = _words(plain)
    if words.isdisjoint(_SPEAKS_OF_RESULTS):
        return False
    left = words - _SPEAKS_OF_RESULTS - _AROUND - _LINKS - _words(name)
    return any(left <= _words(tool) for tool in tools if tool in plain)


def _words(text: str) -> frozenset[str]:
    return frozenset(plain_words(text))


_LONGEST_PLACEHOLDER = 120
"""Maximum characters of a placeholder."""
