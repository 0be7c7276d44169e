"""Placeholder values: arguments that only stand for a value, such as `<customer_id>`."""

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec import Raw

from stages.grounding.matching import normalized, values_within
from stages.grounding.sources import values_nowhere
from stages.message import Kind, ToolCall, User
from stages.schema.value import Json
from stages.state import State
from stages.tool import Grounded, ToolSpec

_WRAPPED = re.compile(r"<([^<>]{1,80})>|\{\{([^{}]{1,80})\}\}|\$?\{([^{}]{1,80})\}|\[([^\[\]]{1,80})\]|%([^%]{1,80})%")
_PATH = re.compile(r"\$?(\w{1,80})(?:\(.{0,80}\))?(?:[.\[].{1,80})?")
_WORD = re.compile(r"[^\W_]+")
_SPEAKS_OF_RESULTS = frozenset({"result", "results", "output", "response", "previous", "value", "from", "placeholder"})
_AROUND = frozenset({"your", "the", "my", "some", "a", "an"})
_LINKS = frozenset({"of", "by", "in", "call", "calling", "tool", "returned"})
_OPENS = "<{$[%"
"""First characters of wrapped values; texts with any other are not matched against the longer pattern."""
_DOCUMENTS = frozenset(
    {"content", "contents", "code", "source", "template", "html", "markdown", "script", "snippet", "patch", "diff"}
)
"""Last words of the names of arguments that are documents, of which `{{name}}`, `<div>` or `f()` may be all."""

_COPIED = 20
"""Minimum of characters of a text that was copied from a tool's description: shorter ones may be there by chance."""

_EXAMPLE = re.compile(
    r"\b(?:as in|e\.g\.|for example|for instance|such as|like)[:,]? ?[\"'`]?([^\s\"'`]{2,60})", re.IGNORECASE
)
"""What a description, or an error, gives as an example."""

_members: msgspec.json.Decoder[dict[str, Json]] = msgspec.json.Decoder(dict)


def placeholder_arguments(call: ToolCall, tools: Mapping[str, ToolSpec], state: State) -> tuple[tuple[str, str], ...]:
    """The arguments of a call that only stand for a value, with their texts: `<customer_id from get_order>`.

    Whatever the user said, or the tool's schema lists, is a value, however it looks. So is a document, unless it
    names the result of a tool: `<content from read_file>`.
    """
    found: list[tuple[str, str]] = []
    writes = tools[call.name].effect == "write"
    for name, value in _members.decode(call.arguments).items():
        if isinstance(value, str) and ("\n" in value.strip() or (writes and _is_document(name))):
            found += [(name, value)] if _stands_for_a_result(value.strip(), tools) else []
        elif isinstance(value, str):
            found += [(name, value)] if _stands_for(value, name, tools) else []
        elif isinstance(value, list | dict):
            texts = [leaf for _, leaf in values_within(value) if isinstance(leaf, str)]
            found += [(name, text) for text in texts if _stands_for(text, name, tools)]
    if not found:
        return ()
    schema = _properties(tools[call.name])
    return tuple((n, text) for n, text in found if not _listed(text, schema.get(n)) and not _said(text, state))


def described_arguments(call: ToolCall, tool: ToolSpec, state: State) -> tuple[tuple[str, str], ...]:
    """The arguments whose text is their own description, or stands in the tool's: models copy what they are shown.

    Only texts of three words count, of the tool's description of twenty characters too. What the user said is a value
    here too, and so is what the schema lists.
    """
    schema = bytes(tool.parameters)
    texts = [(n, v) for n, v in _members.decode(call.arguments).items() if isinstance(v, str) and v.count(" ") >= 2]
    of_tool = [(n, v) for n, v in texts if len(v.strip()) >= _COPIED and v.strip().rstrip(".") in tool.description]
    # Most texts stand nowhere in the schema, and then it need not be decoded.
    copied = [(name, text) for name, text in texts if msgspec.json.encode(text.strip().rstrip("."))[1:-1] in schema]
    if not copied and not of_tool:
        return ()
    schemas = _properties(tool)
    own = [(n, text) for n, text in copied if _describes(text, schemas.get(n))]
    own += [(n, text) for n, text in of_tool if not _listed(text, schemas.get(n))]
    return tuple((n, text) for n, text in dict.fromkeys(own) if not _said(text, state))


def example_arguments(call: ToolCall, tools: Mapping[str, ToolSpec], state: State) -> tuple[tuple[str, str], ...]:
    """The arguments of a write that are an example in a tool's description, `As in 19:30`, which nobody has given.

    Only texts with a digit count that are no numbers: a time, a date, an id. `EUR` may be what the user calls euros,
    and an example of `10` what is usual.
    """
    if tools[call.name].effect == "read":
        return ()
    texts = [(n, v) for n, v in _members.decode(call.arguments).items() if isinstance(v, str) and _is_a_code(v)]
    described = (text for tool in tools.values() for text in (tool.description, *_descriptions(tool)))
    examples = set(map(normalized, examples_in(described))) if texts else set[str]()
    found = [(n, v) for n, v in texts if normalized(v) in examples]
    return tuple((n, v) for n, v in found if values_nowhere([v], Grounded(argument=n), state))


def _is_a_code(text: str) -> bool:
    return any(map(str.isdigit, text)) and not text.strip(" +-").translate(_OF_NUMBERS).isdigit()


_OF_NUMBERS = str.maketrans(dict.fromkeys(".,"))


def examples_in(texts: Iterable[str]) -> tuple[str, ...]:
    """What these texts give as examples: of `such as '0007'`, 0007."""
    return tuple(found.rstrip(".,;:)") for text in texts for found in _EXAMPLE.findall(text))


def _descriptions(tool: ToolSpec) -> Iterator[str]:
    return (_property(schema).description for schema in _properties(tool).values())


def _describes(text: str, schema: Raw | None) -> bool:
    """Whether the text is the description of an argument of this schema, and not one of the values that it lists."""
    known = _property(schema)
    return known.description.strip().rstrip(".") == text.strip().rstrip(".") and text not in known.listed


def _is_document(name: str) -> bool:
    return not _DOCUMENTS.isdisjoint(_WORD.findall(name.lower())[-1:])


def _stands_for_a_result(text: str, tools: Mapping[str, ToolSpec]) -> bool:
    """Whether the whole text, in brackets, names a tool and speaks of its result."""
    wrapped = _WRAPPED.fullmatch(text) if text[:1] in _OPENS else None
    if wrapped is None:
        return False
    inner = next(group for group in wrapped.groups() if group is not None)
    words, path = _words(inner), _PATH.fullmatch(inner.strip())
    named = any(_words(tool) <= words for tool in tools)
    return (named and not words.isdisjoint(_SPEAKS_OF_RESULTS)) or (path is not None and path[1] in tools)


def _stands_for(text: str, name: str, tools: Mapping[str, ToolSpec]) -> bool:
    plain = text.strip()
    if len(plain) > 120:
        return False
    if plain[:1] in _OPENS and (wrapped := _WRAPPED.fullmatch(plain)):
        words = _words(next(group for group in wrapped.groups() if group is not None))
        return not words.isdisjoint(_SPEAKS_OF_RESULTS) or _names(words, name, tools)
    # Most values stand for nothing else, and a look at the first word shows it.
    if _first_word(name) in plain.lower() and _words(plain) - _AROUND == _words(name):
        return True
    if not any(map(plain.__contains__, tools)):
        return False
    path = _PATH.fullmatch(plain)
    return (path is not None and path[1] in tools) or _says_only_where_it_is(plain, name, tools)


def _says_only_where_it_is(plain: str, name: str, tools: Mapping[str, ToolSpec]) -> bool:
    """Whether the text is `the customer id from get_order` and no more: a sentence about a result is a value."""
    words = _words(plain)
    if words.isdisjoint(_SPEAKS_OF_RESULTS):
        return False
    left = words - _SPEAKS_OF_RESULTS - _AROUND - _LINKS - _words(name)
    return any(left <= _words(tool) for tool in tools if tool in plain)


def _first_word(text: str) -> str:
    word = _WORD.search(text.lower())
    return word[0] if word else ""


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _names(words: frozenset[str], name: str, tools: Mapping[str, ToolSpec]) -> bool:
    """Whether the words name the argument or any tool."""
    return _words(name) <= words or any(_words(tool) <= words for tool in tools)


def _listed(text: str, schema: Raw | None) -> bool:
    """Whether the argument's schema lists the text: as an enum or a default."""
    return schema is not None and msgspec.json.encode(text) in bytes(schema)


def _said(text: str, state: State) -> bool:
    wanted = normalized(text)
    said = (m.text for m in state.history if isinstance(m, User) and m.kind in (Kind.USER_INPUT, Kind.REMEMBERED))
    return any(wanted in normalized(one) for one in said)


class _Property(msgspec.Struct):
    description: str = ""
    listed: list[object] = msgspec.field(default_factory=list, name="enum")


def _property(schema: Raw | None) -> _Property:
    try:
        return msgspec.json.decode(schema or b"{}", type=_Property)
    except msgspec.ValidationError:  # `true`, any value at all
        return _Property()


class _Schema(msgspec.Struct):
    properties: dict[str, Raw] = {}


def _properties(tool: ToolSpec) -> dict[str, Raw]:
    return msgspec.json.decode(tool.parameters, type=_Schema).properties
