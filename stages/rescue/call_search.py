"""Search for a call in a text that a model was shown: in any grammar, damaged or escaped, alone or within more.

A reply is read with care for what its words mean; here every place is read as if a call were meant, because whoever
repeats a call need not mean it. A call is found where the tool's name and the arguments are written together as a call.
Values alone are no call, and neither is a name.

Only the surroundings of the name are read, as far as the wanted call may reach, so the work is linear in the length of
the text. It is done in steps, and the caller may stop after any number of them.
"""

import re
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from stages.repair.damaged_json import FoundJson
from stages.repair.decoding import decode
from stages.repair.json_text import json_at
from stages.rescue.described import ARGUMENT_KEYS
from stages.rescue.found import Family
from stages.rescue.names import Names, name_pattern
from stages.rescue.pycalls import call_list
from stages.rescue.shape import NAME_KEYS
from stages.rescue.unescape import unescape_layers, unescape_letters, without_margin
from stages.schema.value import MAX_DEPTH, Json

_NEAR = 300
"""Maximum characters from the beginning of a call's markup to the name in it."""

_CLOSERS = 4
"""Closing parentheses that are tried as the call's own; earlier ones may be inside its texts."""

_OTHERWISE = frozenset({"fenced", "bare", "echo"})
"""Families that are not asked: JSON is read anyway, and so is what a text declares to be no call."""

_BETWEEN = "|".join(
    sorted({part for key in (*ARGUMENT_KEYS, "action", "constrain", "message", "json") for part in key.split("_")})
)
"""Words of the markup between a call's name and its arguments, each without the underscores that join them."""
_TO_ARGUMENTS = re.compile(rf"(?:[^\w{{.;!?]|_|(?:{_BETWEEN})(?![^\W_])){{0,80}}+(?=\{{)", re.IGNORECASE)
_SHUTS = " \"'`,;.]})"
"""What may stand behind a call in a line of JSON, code or words."""
_DATA = re.compile(r"[\s\"':=*`]*")


class WantedCall(Struct, frozen=True, kw_only=True):
    """The wanted call.

    `written` is the text that it was read from, `reach` the maximum length of an occurrence, `word` a word in its
    arguments, or "". `families` are the grammars besides JSON and Python.
    """

    name: str
    written: str
    reach: int
    word: str
    names: Names
    families: tuple[Family, ...]


class Occurrence(Struct, frozen=True):
    """Arguments found with the name, as JSON text; None: the text `written` itself was found.

    `loose`: it may as well be data, `{"refund": {…}}`, or the name of a tool, `finish()`.
    """

    arguments: str | None
    loose: bool = False


_Attempts = Iterator[Occurrence | None]


def search(text: str, sought: WantedCall) -> _Attempts:
    """What is found with the name, an item for each place that was read: None for nothing."""
    text = unescape_letters(text)
    if sought.word.lower() not in text.lower():
        return
    spelt = name_pattern(sought.name, glued=True)
    for part in _parts(text, spelt, sought):
        for layer in unescape_layers(part):
            yield from _in_layer(layer, spelt, sought)
            if plain := without_margin(layer):
                yield from _in_layer(plain, spelt, sought)


def _in_layer(layer: str, spelt: re.Pattern[str], sought: WantedCall) -> _Attempts:
    yield from _verbatim(layer, sought)
    yield from _objects(layer, spelt, sought)
    yield from _behind_name(layer, spelt, sought)
    yield from _grammars(layer, spelt, sought)


def _parts(text: str, spelt: re.Pattern[str], sought: WantedCall) -> Iterator[str]:
    """The surroundings of the name that hold the word, those that overlap as one."""
    start = end = 0
    for found in spelt.finditer(text):
        if found.start() - sought.reach > end:
            if sought.word.lower() in text[start:end].lower():
                yield text[start:end]
            start = max(0, found.start() - sought.reach)
        end = found.end() + sought.reach
    if end and sought.word.lower() in text[start:end].lower():
        yield text[start:end]


def _verbatim(layer: str, sought: WantedCall) -> _Attempts:
    written = " ".join(unescape_letters(sought.written).split())
    yield Occurrence(None) if written and written in " ".join(layer.split()) else None


def _objects(layer: str, spelt: re.Pattern[str], sought: WantedCall) -> _Attempts:
    """JSON objects, those within others too; damaged ones where the name is near."""
    position = 0
    while (start := layer.find("{", position)) >= 0:
        position = start + 1
        near = spelt.search(layer, start, start + _NEAR)
        found = json_at(layer[start : start + sought.reach], 0, strict=near is None)
        yield None
        if isinstance(found, FoundJson):
            position = position if found.repairs else start + found.end
            for value in _members(decode(_any, found.text)):
                yield from _in_object(value, sought)


_any: msgspec.json.Decoder[Json] = msgspec.json.Decoder()


def _members(value: Json) -> Iterator[dict[str, Json]]:
    """The value, and those within it, as far as they are objects."""
    stack = [(value, 0)]
    while stack:
        one, depth = stack.pop()
        if isinstance(one, dict):
            yield one
        if isinstance(one, dict | list) and depth < MAX_DEPTH:
            stack.extend((inner, depth + 1) for inner in (one.values() if isinstance(one, dict) else one))


def _in_object(value: dict[str, Json], sought: WantedCall) -> _Attempts:
    """The name as a value or as a key, and the arguments beside it, or in it, or as the members of the same object."""
    named = [key for key, name in value.items() if isinstance(name, str) and sought.name in sought.names.find(name)]
    if named:
        for inner in value.values():
            yield from _arguments(inner, loose=False)
        flat = {key: inner for key, inner in value.items() if key not in (*NAME_KEYS, *named, "type", "id")}
        whole = {key: inner for key, inner in value.items() if key not in named}
        sure = bool(flat) and any(key in NAME_KEYS for key in named)
        yield from _arguments(flat, loose=not sure)
        yield from _arguments(whole, loose=not sure)
    for key, inner in value.items():
        if sought.name in sought.names.find(key):
            yield from _arguments(inner, loose=True)


def _arguments(value: Json, *, loose: bool) -> _Attempts:
    """The arguments that a value may be: an object, a list of one, or a text that holds one."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):
        yield Occurrence(msgspec.json.encode(value).decode(), loose)
    elif isinstance(value, str) and value.lstrip().startswith("{"):
        found = json_at(value, value.index("{"))
        yield Occurrence(found.text, loose) if isinstance(found, FoundJson) else None


def _behind_name(layer: str, spelt: re.Pattern[str], sought: WantedCall) -> _Attempts:
    """The name, and behind it arguments as Python has them, or as one object."""
    for found in spelt.finditer(layer):
        near = layer[found.start() : found.start() + sought.reach]
        end = found.end() - found.start()
        if near[end : end + 2].lstrip().startswith("("):
            yield from _python(near, end, sought)
        if between := _TO_ARGUMENTS.match(near, end):
            read = json_at(near, between.end())
            loose = _DATA.fullmatch(between[0]) is not None
            yield Occurrence(read.text, loose) if isinstance(read, FoundJson) else None


def _python(near: str, position: int, sought: WantedCall) -> _Attempts:
    """A call as Python has it, up to each of the first parentheses: what follows may change what a quote means."""
    for _ in range(_CLOSERS):
        position = near.find(")", position) + 1
        if not position:
            return
        calls = call_list(near[:position], 0, sought.names)
        given = calls.claims[0].arguments if calls and calls.claims else None
        # `finish()` in a sentence is how tools are spoken of.
        yield Occurrence(given, loose=given == "{}") if given else None


def _grammars(layer: str, spelt: re.Pattern[str], sought: WantedCall) -> _Attempts:
    """What the families read wherever one may begin before the name; or of the line, and of the paragraph, with it."""
    for family in sought.families:
        if family.name in _OTHERWISE:
            continue
        if family.whole:
            around = dict.fromkeys(
                part for found in spelt.finditer(layer) for part in _around(layer, found.start(), sought)
            )
            parts = (part for part in around if sought.word.lower() in part.lower())
        else:
            starts = (opened.start() for opened in re.finditer(family.opener, layer))
            near = (start for start in starts if spelt.search(layer, start, start + _NEAR))
            parts = (layer[start : start + sought.reach] for start in near)
        for part in parts:
            read = family.read(part, 0, sought.names)
            yield None
            for claim in read.claims if read else ():
                if sought.name in sought.names.find(claim.name):
                    yield Occurrence(claim.arguments)


def _around(layer: str, at: int, sought: WantedCall) -> Iterator[str]:
    """The rest of the line there, the line, and the paragraph, as far as the call may reach."""
    rest = layer[at : at + sought.reach].split("\n", 1)[0]
    yield rest
    yield rest.rstrip(_SHUTS)
    for ends in ("\n", "\n\n"):
        begin = layer.rfind(ends, max(0, at - _NEAR), at) + 1
        end = layer.find(ends, at, at + sought.reach)
        yield layer[max(begin, at - _NEAR) : end if end >= 0 else at + sought.reach].strip()
