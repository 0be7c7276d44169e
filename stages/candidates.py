"""Candidates: values left to try for an argument, and texts that are only placeholders."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, takewhile

import msgspec
from msgspec import Raw
from msgspec.structs import replace
from toolz import unique

from stages._later import LazyPattern
from stages.execution import call_digest
from stages.message import Assistant, Kind, System, Tool, ToolCall, User, is_user_input
from stages.repair.decoding import decode_or
from stages.schema.canonical_json import canonical
from stages.schema.value import ANY_VALUE, Json, optional_members
from stages.seen import (
    Given,
    given_latest_first,
    leaves,
    look,
    named_values,
    normalized,
    texts_given,
    values_within,
)
from stages.state import State
from stages.tool import ToolSpec

# Example forms: a refused value, rewritten like the example in the refusal.

_PART = LazyPattern(r"\d+|[^\W\d_]+|[\W_]+")
"""Digits, letters, or other characters."""

_FRACTION = LazyPattern(r"\d+[.,]\d+")
"""A decimal number; padding its fraction with zeros would make it another number."""


def in_the_form_of(example: str, value: str) -> str | None:
    """The value written like the example: 19 like 0007 as `0019`, 2024/3/7 like 2023-05-01 as `2024-03-07`.

    Digits are padded with zeros if the example's begin with one, ASCII letters take its case, and the characters in
    between are the example's. None if the value has other parts, or already has this form, or if the example is just a
    word, which may be any.
    """
    parts = _PART.compiled.findall(example)
    if not (example.isupper() or any(map(str.isdecimal, parts))) or _FRACTION.compiled.fullmatch(example):
        return None
    if not (value[:1].isalnum() and value[-1:].isalnum()):
        return None
    models = [part for part in parts if part.isalnum()]
    runs = [part for part in _PART.compiled.findall(value) if part.isalnum()]
    if len(models) != len(runs):
        return None
    written = [_like(model, run) for model, run in zip(models, runs, strict=True)]
    left = iter(written)
    text = "".join((next(left) or "") if part.isalnum() else part for part in parts)
    return None if None in written or text == value else text


def _like(model: str, run: str) -> str | None:
    """The digits or letters in the form of the example; None if they cannot have it."""
    if model.isdecimal() != run.isdecimal():
        return None
    if not model.isdecimal():
        if not run.isascii():
            return run  # changing the case of some letters gives another letter
        return run.upper() if model.isupper() else run.lower() if model.islower() else run
    if len(run) < len(model) and model.startswith("0"):
        return run.zfill(len(model))
    return run if len(run) == len(model) else None


# Placeholders: arguments that only stand for a value, such as `<customer_id>`.

_WRAPPED = LazyPattern(r"<([^<>]{1,80})>|\{\{([^{}]{1,80})\}\}|\$?\{([^{}]{1,80})\}|\[([^\[\]]{1,80})\]|%([^%]{1,80})%")
_PATH = LazyPattern(r"\$?(\w{1,80})(?:\(.{0,80}\))?(?:[.\[].{1,80})?")
_WORD = LazyPattern(r"[^\W_]+")
_SPEAKS_OF_RESULTS = frozenset({"result", "results", "output", "response", "previous", "value", "from", "placeholder"})
_AROUND = frozenset({"your", "the", "my", "some", "a", "an"})
_LINKS = frozenset({"of", "by", "in", "call", "calling", "tool", "returned"})
_OPENS = "<{$[%"
"""First characters of wrapped values; other texts need not be matched against the longer pattern."""
_DOCUMENTS = frozenset(
    {"content", "contents", "code", "source", "template", "html", "markdown", "script", "snippet", "patch", "diff"}
)
"""Last words in the names of arguments that are documents, which may consist of `{{name}}`, `<div>` or `f()`."""

_EXAMPLE = LazyPattern(
    r"\b(?:as in|e\.g\.|for example|for instance|such as|like)[:,]? ?[\"'`]?([^\s\"'`]{2,60})", re.IGNORECASE
)
"""An example in a text."""

_members: msgspec.json.Decoder[dict[str, Json]] = msgspec.json.Decoder(dict)


def placeholder_arguments(call: ToolCall, tools: Mapping[str, ToolSpec], state: State) -> tuple[tuple[str, str], ...]:
    """The arguments of a call that are placeholders, with their texts: `<customer_id from get_order>`.

    Whatever the user said, or the tool's schema lists, is a value, whatever it looks like. So is a document, unless it
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
    schema = tools[call.name].properties
    # Texts in the schema, as an enum or a default, are values, and so are the user's words.
    found = [(n, text) for n, text in found if msgspec.json.encode(text) not in bytes(schema.get(n, Raw(b"")))]
    users = (m for m in state.history if isinstance(m, User) and m.kind in (Kind.USER_INPUT, Kind.REMEMBERED))
    said = [normalized(m.text) for m in users] if found else []
    return tuple((n, text) for n, text in found if not any(normalized(text) in one for one in said))


def _examples_in(texts: Iterable[str]) -> tuple[str, ...]:
    """The examples in these texts: 0007 from `such as '0007'`."""
    return tuple(found.rstrip(".,;:)") for text in texts for found in _EXAMPLE.compiled.findall(text))


def _is_document(name: str) -> bool:
    return not _DOCUMENTS.isdisjoint(_WORD.compiled.findall(name.lower())[-1:])


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
    if _first_word(name) in plain.lower() and _words(plain) - _AROUND == _words(name):
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


def _first_word(text: str) -> str:
    word = _WORD.compiled.search(text.lower())
    return word[0] if word else ""


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.compiled.findall(text.lower()))


_LONGEST_PLACEHOLDER = 120
"""Maximum characters of a placeholder."""


# Untried values: suggestions for a model that keeps calling a tool with the same value.

_LONGEST = 80
"""Maximum characters of a suggested value."""

_MOST = 32
"""Maximum number of suggested values, the latest ones."""

_VALUE = LazyPattern(
    r"""(?<!\w)'([^'\n]{1,80})'(?!\w)|"([^"\n]{1,80})\""""
    r"|(?<![\w.@/-])((?=[^\d\s]{0,40}\d|[\w-]{1,40}[._@/]\w)[\w-](?:[\w.@/-]{0,78}[\w-]))"
)
"""Quoted texts, and words with a digit or a point in them, like IDs and file names."""


_RECENT = 256
"""Maximum calls that are searched for used values, and texts that are searched for values to try (besides the opening).

It keeps the cost of a stuck turn independent of the length of the run; a sixteenth of it changes no recorded decision.
"""


def values_to_try(tool: ToolSpec, state: State) -> tuple[str, ...]:
    """Seen values that may be meant instead, the latest first; empty for a tool that needs more than one text.

    No recent call of any tool has used them. If the tool rejected a value and showed the expected format, only the
    reformatted value is returned. Once the tool has succeeded with some values, the others look like one of these
    (`C-311` like `A-17`), or occur under the same name in the same result, like the names in one list. Empty for a
    terminal tool, whose value must not be guessed, and for one that has just failed for good: a small model would go on
    trying other values, which do not help.
    """
    argument = _needed_text(tool)
    if argument is None or tool.effect == "terminal" or _failed_for_good(tool, state):
        return ()
    ledger = state.ledger
    done, vain = ledger.successes[-_RECENT:], ledger.attempts[-_RECENT:]
    made = [*(success.arguments for success in done), *(attempt.arguments for attempt in vain)]
    used = {value for arguments in made for value in leaves(arguments) if isinstance(value, str)}
    if right := put_right(tool, state):
        return right
    good = [_value(success.arguments, argument) for success in done if success.name == tool.name]
    known = frozenset(value for value in good if isinstance(value, str))
    looks = frozenset(map(look, known))
    given = _recently_given(state)
    seen = (value for one in given for value in _no_examples(one, _alike(one.text, known, looks)))
    return tuple(islice(unique(value for value in seen if value not in used), _MOST))


def _failed_for_good(tool: ToolSpec, state: State) -> bool:
    """Whether the tool's last result is a failure that no retry can help."""
    own = (m for m in reversed(state.history) if isinstance(m, Tool) and m.name == tool.name)
    last = next((m for m in own if m.kind is Kind.TOOL_RESULT), None)
    return last is not None and last.status == "final"


def _no_examples(given: Given, values: Iterable[str]) -> Iterator[str]:
    """The values without those that a tool's text only has as examples, such as `such as '0007'`."""
    examples = set(map(normalized, _examples_in((given.text,)))) if given.tool else set[str]()
    return (value for value in values if not examples or normalized(value) not in examples)


def _recently_given(state: State) -> Iterator[Given]:
    """The latest texts, the latest first, then those before the first reply, which have the user's own IDs."""
    history = state.history
    opening = next((place for place, m in enumerate(history) if isinstance(m, Assistant)), len(history))
    yield from islice(given_latest_first(state), _RECENT)
    yield from reversed(tuple(texts_given(history[:opening], recalled=True)))


def _alike(text: str, known: frozenset[str], looks: frozenset[str]) -> Iterator[str]:
    """The values of a text that look like known ones or occur beside one; all values if none are known."""
    beside = {name for name, value in named_values(text) if isinstance(value, str) and value in known}
    return (value for name, value in _values(text) if not known or look(value) in looks or name in beside)


def refused_call(state: State) -> ToolCall | None:
    """The only call of the last reply, if a guard, a person or the tool itself refused it.

    None if the user has said something since. A call that raised was not refused, because a retry may succeed. After a
    reply of several calls, those beside the refused one should be made again.
    """
    recent = [*takewhile(lambda m: not isinstance(m, Assistant), reversed(state.history))]
    if any(map(is_user_input, recent)) or len(recent) == len(state.history):
        return None
    match state.history[-1 - len(recent)], [m for m in recent if isinstance(m, Tool)]:
        case Assistant(calls=(call,)), [Tool() as answer] if _refuses(answer, call, state):
            return call
        case _:
            return None


def _refuses(answer: Tool, call: ToolCall, state: State) -> bool:
    match answer.status:
        case _ if answer.kind is not Kind.TOOL_RESULT:
            return True
        case "unresolved":  # for want of data, which a call without arguments may find later
            return canonical(call.arguments) != "{}"
        case "not_run":  # or left to be made again
            return call_digest(call) in state.ledger.rejected
        case status:
            return status == "final"


def put_right(tool: ToolSpec, state: State) -> tuple[str, ...]:
    """The values that the tool refused since the last progress, each rewritten like the example in its answer.

    Without those already tried. Empty for a terminal tool, and for one that needs more than one text.
    """
    argument = _needed_text(tool)
    if argument is None or tool.effect == "terminal":
        return ()
    refused = _refused(tool, state)
    made = [(answer, value) for answer, args in refused if isinstance(value := _value(args, argument), str)]
    written = (
        in_the_form_of(example, value.strip())
        for answer, value in made
        if len(value) <= _LONGEST
        for example in _examples_in((answer.text,))
    )
    tried = {value for _, value in made}
    return tuple(unique(value for value in written if value and value not in tried))[:_MOST]


_MOST_IN_ENUM = 64
"""Maximum values of one `enum`."""

_DIGITS = 20
"""Maximum characters of a whole number that may be an id."""


def with_enum(tool: ToolSpec, values: tuple[str, ...], argument: str = "") -> ToolSpec:
    """The tool with that argument limited to the first of these values.

    Without `argument`, it is the only required text, and optional arguments are left out. Unchanged if the argument is
    no text or whole number, or if it is named and its schema says more about its values.
    """
    schema = msgspec.json.decode(tool.parameters, type=dict[str, Raw])
    name, properties = argument or _needed_text(tool) or "", tool.properties
    own: Json = msgspec.json.decode(properties.get(name, b"{}"))
    kind = own.get("type") if isinstance(own, dict) and (not argument or own.keys() <= ANY_VALUE) else None
    first = values[:_MOST_IN_ENUM]
    if kind == "integer":
        allowed: list[Json] = [int(v) for v in first if v.removeprefix("-").isdecimal() and len(v) < _DIGITS]
    else:
        allowed = [*first] if kind == "string" else []
    if len(allowed) < len(first):
        return tool
    limited = {name: Raw(msgspec.json.encode({"type": kind, "enum": allowed}))}
    schema["properties"] = Raw(msgspec.json.encode(properties | limited if argument else limited))
    return replace(tool, parameters=Raw(msgspec.json.encode(schema)))


def _refused(tool: ToolSpec, state: State) -> list[tuple[Tool, str]]:
    """The answers to the tool's calls that failed since the last progress, with their arguments, the latest first."""
    progress = state.ledger.progress
    recent = [*takewhile(lambda m: not isinstance(m, System) and m.turn > progress, reversed(state.history))]
    made = {call.id: call.arguments for said in recent if isinstance(said, Assistant) for call in said.calls}
    answers = (m for m in recent if isinstance(m, Tool) and m.name == tool.name)
    return [(m, made[m.call_id]) for m in answers if m.status in ("unresolved", "failed") and m.call_id in made]


def only_text_argument(tool: ToolSpec) -> str | None:
    """The argument of a tool that takes one text and nothing else; None for other tools, or if it is calculated."""
    return _single_text(tool, needed=False)


def _needed_text(tool: ToolSpec) -> str | None:
    """The only required argument or, if none is required, the only one; None if it is not a text."""
    return _single_text(tool, needed=True)


def _single_text(tool: ToolSpec, *, needed: bool) -> str | None:
    schema: dict[str, Json] = msgspec.json.decode(tool.parameters, type=dict)
    properties = schema.get("properties")
    if tool.calculated or not isinstance(properties, dict):
        return None
    optional = optional_members(schema)
    required = [name for name in properties if name not in optional]
    match (required if needed else []) or [*properties]:
        case [name] if isinstance(kind := properties[name], dict) and kind.get("type") == "string":
            return None if "enum" in kind else name
        case _:
            return None


def _value(arguments: str, name: str) -> object:
    """A member of a call's arguments; None if they are no object, as a proxy's client may send any history."""
    found = decode_or(_members, arguments, None)
    return None if found is None else found.get(name)


def _values(text: str) -> Iterator[tuple[str, str]]:
    """The values in a text that may be tried, each with the name of its member; empty if it has none."""
    for name, leaf in named_values(text):
        if not isinstance(leaf, str):
            continue
        if leaf is text:  # no JSON, but words
            yield from (
                ("", next(group for group in found.groups() if group)) for found in _VALUE.compiled.finditer(leaf)
            )
        elif leaf.strip() and len(leaf) <= _LONGEST:
            yield name, leaf
