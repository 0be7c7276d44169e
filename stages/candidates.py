"""Candidates: the values that are left to try for an argument, and texts that are nobody's value."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, takewhile

import msgspec
from msgspec import Raw
from msgspec.structs import replace
from toolz import unique

from stages.execution import call_digest
from stages.message import Assistant, Kind, System, Tool, ToolCall, User
from stages.rules import Rules
from stages.schema.canonical_json import canonical
from stages.schema.value import Json, optional_members
from stages.seen import (
    Given,
    evidence,
    given_latest_first,
    leaves,
    look,
    named_values,
    normalized,
    texts_given,
    ungrounded_values,
    values_within,
)
from stages.state import Attempt, Ledger, State, Success
from stages.tool import ToolSpec

# Example forms: a refused value, written as the example in the refusal is.

_PART = re.compile(r"\d+|[^\W\d_]+|[\W_]+")
"""Digits, letters, or what stands between them."""

_FRACTION = re.compile(r"\d+[.,]\d+")
"""A number, which is another one if zeros are put before the digits of its fraction."""


def in_the_form_of(example: str, value: str) -> str | None:
    """The value written like the example: `0019` for 19 like 0007, `2024-03-07` for 2024/3/7 like 2023-05-01.

    Digits are filled up with zeros where the example's begin with one, letters (of ASCII) are in its case, and what
    stands between them is the example's. None if the value has other parts, or is written like it already, and for an
    example that is but a word, which may be any.
    """
    parts = _PART.findall(example)
    if not (example.isupper() or any(map(str.isdecimal, parts))) or _FRACTION.fullmatch(example):
        return None
    if not (value[:1].isalnum() and value[-1:].isalnum()):
        return None
    models = [part for part in parts if part.isalnum()]
    runs = [part for part in _PART.findall(value) if part.isalnum()]
    if len(models) != len(runs):
        return None
    written = [_like(model, run) for model, run in zip(models, runs, strict=True)]
    left = iter(written)
    text = "".join((next(left) or "") if part.isalnum() else part for part in parts)
    return None if None in written or text == value else text


def _like(model: str, run: str) -> str | None:
    """The digits, or the letters, like those of the example; None if they cannot be."""
    if model.isdecimal() != run.isdecimal():
        return None
    if not model.isdecimal():
        if not run.isascii():
            return run  # the other case of some letters is another letter
        return run.upper() if model.isupper() else run.lower() if model.islower() else run
    if len(run) < len(model) and model.startswith("0"):
        return run.zfill(len(model))
    return run if len(run) == len(model) else None


# Placeholder values: arguments that only stand for a value, such as `<customer_id>`.

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

_EXAMPLE = re.compile(
    r"\b(?:as in|e\.g\.|for example|for instance|such as|like)[:,]? ?[\"'`]?([^\s\"'`]{2,60})", re.IGNORECASE
)
"""What a text gives as an example."""

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
    schema = msgspec.json.decode(tools[call.name].parameters, type=_Schema).properties
    # What the schema lists, as an enum or a default, is a value; so is what the user said.
    found = [(n, text) for n, text in found if msgspec.json.encode(text) not in bytes(schema.get(n, Raw(b"")))]
    users = (m for m in state.history if isinstance(m, User) and m.kind in (Kind.USER_INPUT, Kind.REMEMBERED))
    said = [normalized(m.text) for m in users] if found else []
    return tuple((n, text) for n, text in found if not any(normalized(text) in one for one in said))


def _examples_in(texts: Iterable[str]) -> tuple[str, ...]:
    """What these texts give as examples: of `such as '0007'`, 0007."""
    return tuple(found.rstrip(".,;:)") for text in texts for found in _EXAMPLE.findall(text))


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
        named = any(_words(one) <= words for one in (name, *tools))
        return named or not words.isdisjoint(_SPEAKS_OF_RESULTS)
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


class _Schema(msgspec.Struct):
    properties: dict[str, Raw] = {}


# Untried values: what a model may try instead, if it keeps calling a tool with the same value.

_LONGEST = 80
"""Maximum characters of a proposed value."""

_MOST = 32
"""Maximum number of proposed values, the latest ones."""

_VALUE = re.compile(
    r"""(?<!\w)'([^'\n]{1,80})'(?!\w)|"([^"\n]{1,80})\""""
    r"|(?<![\w.@/-])((?=[^\d\s]{0,40}\d|[\w-]{1,40}[._@/]\w)[\w-](?:[\w.@/-]{0,78}[\w-]))"
)
"""Quoted texts, and words with a digit or a point in them, as ids and file names have."""


_RECENT = 256
"""Calls that are looked through for values that were used, and texts for values to try, beside the user's first."""


def values_to_try(tool: ToolSpec, state: State) -> tuple[str, ...]:
    """Values that were seen and may be meant instead, the latest first; empty for a tool that needs more than one text.

    No recent call of any tool has used them. A value that the tool has refused with an example of how to write it is
    meant so, and no other is among them. Once this tool has succeeded with some values, they look like one of those
    (`C-311` like `A-17`), or stand beside one: under the same name in the same result, as names of one list do.
    Empty for a terminal tool, whose value is not to be guessed, and for one that has just failed for good: other values
    do not help then, and a small model would go on with them.
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
    """Whether the tool's last answer says that it is not to be tried again."""
    own = (m for m in reversed(state.history) if isinstance(m, Tool) and m.name == tool.name)
    last = next((m for m in own if m.kind is Kind.TOOL_RESULT), None)
    return last is not None and last.status == "final"


def _no_examples(given: Given, values: Iterable[str]) -> Iterator[str]:
    """The values but those that a tool's text has as examples only: `such as '0007'` says what a value looks like."""
    examples = set(map(normalized, _examples_in((given.text,)))) if given.tool else set[str]()
    return (value for value in values if not examples or normalized(value) not in examples)


def _recently_given(state: State) -> Iterator[Given]:
    """The latest texts, the latest first, and what was given before the first reply: so the user's own ids."""
    history = state.history
    opening = next((place for place, m in enumerate(history) if isinstance(m, Assistant)), len(history))
    yield from islice(given_latest_first(state), _RECENT)
    yield from reversed(tuple(texts_given(history[:opening], recalled=True)))


def _alike(text: str, known: frozenset[str], looks: frozenset[str]) -> Iterator[str]:
    """The values of a text that look like known ones or stand beside one; without any, all."""
    beside = {name for name, value in named_values(text) if isinstance(value, str) and value in known}
    return (value for name, value in _values(text) if not known or look(value) in looks or name in beside)


def looked_up(rules: Rules, ledger: Ledger, tool: ToolSpec, texts: Iterable[str]) -> frozenset[str]:
    """The values, normalized, that need not be looked up again: in vain, or while others like them were not tried.

    Only of a tool that reads and takes one text. A write, or a compaction, may have changed what an answer is worth.
    """
    argument = only_text_argument(tool)
    if argument is None or tool.effect != "read" or tool.repeatable:
        return frozenset()
    writes = {other.name for other in rules.tools if other.effect == "write"}
    recent = ledger.successes[-_RECENT:]
    changed = (success.turn for success in reversed(recent) if success.name in writes)
    since = max(next(changed, -1), ledger.compactions[-1].turn if ledger.compactions else -1)

    def values(calls: Iterable[Success | Attempt]) -> frozenset[str]:
        made = (_value(call.arguments, argument) for call in calls if call.name == tool.name and call.turn > since)
        return frozenset(value for value in made if isinstance(value, str))

    found = values(recent)
    vain = frozenset(map(normalized, values(a for a in ledger.attempts[-_RECENT:] if a.answer) - found))
    tried, alike = frozenset(map(normalized, found)), {_kind(value) for value in found}
    left = any(_kind(text) in alike and normalized(text) not in tried | vain for text in texts)
    return tried | vain if left else vain


def refused_values(tool: ToolSpec, state: State) -> frozenset[str]:
    """The values, normalized, that the tool has said it does not have, in calls since the last progress.

    Of several values of a call, those that its answer names. Whatever is new since then may have changed that.
    For a look-up with one text, also the one of the last call, if that was refused in another way.
    """
    refused = ((m.text, arguments) for m, arguments in _refused(tool, state) if m.status == "unresolved")
    denied = {normalized(value) for text, arguments in refused for value in _in_question(text, arguments) if value}
    last, argument = refused_call(state), only_text_argument(tool)
    if last is not None and last.name == tool.name and argument is not None and tool.effect == "read":
        value = _value(last.arguments, argument)
        denied |= {normalized(value)} if isinstance(value, str) else set()
    return frozenset(denied)


def refused_call(state: State) -> ToolCall | None:
    """The call that was all of the last reply, if a guard, a person or the tool itself refused it.

    None where the user has said something since. What raised is not refused: the next try may do. Of several calls,
    those beside a refused one are to be made again.
    """
    recent = [*takewhile(lambda m: not isinstance(m, Assistant), reversed(state.history))]
    if any(isinstance(m, User) and m.kind is Kind.USER_INPUT for m in recent) or len(recent) == len(state.history):
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
    """The values that the tool has refused since the last progress, each written as the example in its answer.

    Without those that it was called with. Empty for a terminal tool, and for one that needs more than one text.
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


def limited_to(tool: ToolSpec, values: tuple[str, ...]) -> ToolSpec:
    """The tool with the only text that it needs limited to these values, and no argument that it does not need."""
    schema = msgspec.json.decode(tool.parameters, type=dict[str, object])
    name = _needed_text(tool)
    properties = {name: {"type": "string", "enum": list(values)}}
    return replace(tool, parameters=Raw(msgspec.json.encode(schema | {"properties": properties})))


def _refused(tool: ToolSpec, state: State) -> list[tuple[Tool, str]]:
    """The answers of the tool's calls that failed since the last progress, with their arguments, the latest first."""
    progress = state.ledger.progress
    recent = [*takewhile(lambda m: not isinstance(m, System) and m.turn > progress, reversed(state.history))]
    made = {call.id: call.arguments for said in recent if isinstance(said, Assistant) for call in said.calls}
    answers = (m for m in recent if isinstance(m, Tool) and m.name == tool.name)
    return [(m, made[m.call_id]) for m in answers if m.status in ("unresolved", "failed") and m.call_id in made]


def _in_question(answer: str, arguments: str) -> list[str]:
    """The texts of a call that its answer may be about."""
    texts = [value for value in leaves(arguments) if isinstance(value, str)]
    said = evidence((answer,)) if len(texts) > 1 else None
    return [text for text in texts if said is None or said.shows(text)]


def _kind(value: str) -> tuple[str, bool]:
    return look(value), value[:1].isupper()


def needless_arguments(tool: ToolSpec, state: State) -> frozenset[str]:
    """The optional arguments of the tool that the last reply had made up: better left out."""
    last = takewhile(lambda attempt: attempt.turn == state.ledger.turn, reversed(state.ledger.attempts))
    refused = [attempt.arguments for attempt in last if attempt.name == tool.name and not attempt.answer]
    made_up = frozenset(bound.argument for text in refused for bound, _ in ungrounded_values(tool, text, state))
    return made_up & optional_members(msgspec.json.decode(tool.parameters, type=dict)) if made_up else made_up


def only_text_argument(tool: ToolSpec) -> str | None:
    """The only argument of a tool that takes one text and nothing else; a calculated one does not count."""
    return _single_text(tool, needed=False)


def _needed_text(tool: ToolSpec) -> str | None:
    """The only argument that has to be given or, where none has to be, the only one; None if it is not a text."""
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
    return msgspec.json.decode(msgspec.json.decode(arguments, type=dict[str, Raw]).get(name, Raw(b"null")))


def _values(text: str) -> Iterator[tuple[str, str]]:
    """The values of a text that may be tried, each with the name of its member; empty for none."""
    for name, leaf in named_values(text):
        if not isinstance(leaf, str):
            continue
        if leaf is text:  # no JSON, but words
            yield from (("", next(group for group in found.groups() if group)) for found in _VALUE.finditer(leaf))
        elif leaf.strip() and len(leaf) <= _LONGEST:
            yield name, leaf
