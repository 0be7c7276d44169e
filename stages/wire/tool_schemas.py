"""The tools' schemas in the forms that backends' grammars support, compiled once, for constrained replies."""

import re
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import get_args

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.arithmetic import CONSTANTS, documents_of
from stages.schema import SchemaTarget, project
from stages.schema.projection import written_or_null
from stages.schema.value import ANY_VALUE, Json
from stages.seen import evidence, normalized, words_in
from stages.state import SourceValues
from stages.tool import ToolSpec
from stages.wire.openai.chat import encode_strict_tools, strict_refusals
from stages.wire.wires import Branch, branch


class ToolSchemas(Struct, frozen=True, kw_only=True):
    """The tools' schemas in the forms that requests need.

    `calls` are the schemas of calls, by grammar and tool. `strict` is the `tools` field in OpenAI's strict mode;
    `refused` has a sentence for each tool that cannot be strict.
    """

    calls: Mapping[SchemaTarget, Mapping[str, Branch]]
    strict: Raw
    refused: tuple[str, ...]


def compiled_schemas(tools: tuple[ToolSpec, ...]) -> ToolSchemas:
    """The schemas of these tools."""
    targets: tuple[SchemaTarget, ...] = get_args(SchemaTarget)
    calls = {target: MappingProxyType({tool.name: call_schema(tool, target) for tool in tools}) for target in targets}
    return ToolSchemas(calls=MappingProxyType(calls), strict=encode_strict_tools(tools), refused=strict_refusals(tools))


def call_schema(tool: ToolSpec, target: SchemaTarget, numbers: Collection[Decimal] = ()) -> Branch:
    """The schema of the tool's call, in which optional arguments are required but may be null.

    Calculated arguments may use these numbers, if there are any.
    """
    schema: dict[str, Json] = msgspec.json.decode(project(constraint_of(tool, numbers), target).schema, type=dict)
    return branch(tool, Raw(msgspec.json.encode(written_or_null(schema))))


def limited_arguments(call: Branch, seen: Mapping[str, SourceValues], tried: frozenset[str]) -> Branch:
    """The schema of a call with these arguments limited to values that were seen, without those already tried."""
    schema = msgspec.json.decode(call[0], type=_Call)
    args: dict[str, Json] = msgspec.json.decode(schema.properties.args, type=dict)
    kinds = args.get("properties")
    if not isinstance(kinds, dict):
        return call
    args["properties"] = kinds | {n: listed_values(kinds[n], values, tried) for n, values in seen.items() if n in kinds}
    properties = replace(schema.properties, args=Raw(msgspec.json.encode(args)))
    return msgspec.json.encode(replace(schema, properties=properties)), call[1]


class _Properties(Struct):
    tool: Raw
    args: Raw


class _Call(Struct, rename="camel"):
    """The schema that `branch` makes."""

    type: str
    properties: _Properties
    required: list[str]
    additional_properties: bool


# Calculations: the schema of a calculated argument, for a grammar.

_LONGEST_NUMBER = 15
"""Maximum digits of a number in a grammar."""

_ANY = "[0-9]{1,9}([.][0-9]{1,4})?"


def constraint_of(tool: ToolSpec, given: Collection[Decimal] = ()) -> Raw:
    """The tool's parameters for a grammar in which calculated arguments can only be calculations.

    Only the given numbers are allowed, if there are any: otherwise, a small model invents others.
    """
    if not tool.calculated:
        return tool.parameters
    schema: dict[str, Json] = msgspec.json.decode(tool.parameters, type=dict)
    properties = schema.get("properties")
    kinds = properties if isinstance(properties, dict) else {}
    asked: dict[str, Json] = {}
    for bound in tool.calculated:
        if isinstance(kind := kinds.get(bound.argument), dict):
            numbers = {abs(n) for n in (*given, *evidence(documents_of(tool, bound)).numbers)} if given else set()
            asked[bound.argument] = {**kind, "pattern": calculation_pattern(numbers)}
    return Raw(msgspec.json.encode({**schema, "properties": {**kinds, **asked}}))


def calculation_pattern(numbers: Collection[Decimal]) -> str:
    """A pattern for two to ten of these numbers (of any, if empty) and operators.

    Constants and counts may only multiply or divide.
    """
    spelt = [n for n in sorted(set(numbers)) if abs(n.adjusted()) < _LONGEST_NUMBER]
    own = [_digits(n) for n in spelt] or [_ANY]
    constants = (str(c) for c in sorted(CONSTANTS.union(range(3, 11))))
    factors = [*own, *(c for c in constants if c not in own)] if spelt else own
    first, other = "|".join(own), "|".join(factors)
    return f"^[(]?({first})( [+-] [(]?({first})[)]?| [*/] [(]?({other})[)]?){{1,9}}$"


def _digits(number: Decimal) -> str:
    whole, _, rest = f"{number:f}".partition(".")
    return f"{whole}[.]{rest}" if (rest := rest.rstrip("0")) else whole


# Lists of values: the schema of a grounded argument, limited to values that were seen.
#
# No value that the guard accepts is excluded, except for punctuation at its end that no id or number has. Any words of
# a text may be the value, so a pattern allows every sequence of them; after `_IN_A_ROW` words, the rest is free. Case
# and spaces are as they were seen.

_IN_A_ROW = 6
"""Maximum words that a pattern spells out; longer values may end in anything."""

_REST = r'[^"\\\x00-\x1F]*'

_SURE = 10**15
"""From here on, a number may not survive the conversion to a grammar exactly."""

_UNLIMITED = ANY_VALUE | {"minLength", "maxLength"}
"""Keywords of a text argument that any seen text may fit. Other keywords say more than a list of seen texts."""


def listed_values(kind: Json, seen: SourceValues, tried: frozenset[str] = frozenset()) -> Json:
    """The schema limited to values that were seen; unchanged if they cannot be listed, or if none would fit.

    The `tried` ones (normalized) are left out, unless nothing else remains.
    """
    if not isinstance(kind, dict) or kind.keys() & {"enum", "const"}:
        return kind

    def within(part: Json) -> Json:
        return listed_values(part, seen, tried)

    match kind.get("type"), kind.get("anyOf"):
        case "string", None if kind.keys() <= _UNLIMITED:
            return _texts(seen, tried) or _texts(seen, frozenset()) or kind
        case "integer" | "number" as type_, None:
            return _numbers(seen, whole=type_ == "integer") or kind
        case [*types], None:
            return {"anyOf": [within({**kind, "type": one}) for one in types]}
        case None, [*branches]:
            return {**kind, "anyOf": [*map(within, branches)]}
        case "array", None if "items" in kind:
            return {**kind, "items": within(kind["items"])}
        case "object", None if isinstance(members := kind.get("properties"), dict):
            return {**kind, "properties": {name: within(part) for name, part in members.items()}}
        case _:
            return kind


def _numbers(seen: SourceValues, *, whole: bool) -> Json:
    numbers = [n for n in seen.numbers or () if not whole or n == n.to_integral_value()]
    if not numbers or any(abs(n) >= _SURE for n in numbers):
        return None
    return {"type": "integer" if whole else "number", "enum": [_as_json(n) for n in sorted(numbers)]}


def _as_json(number: Decimal) -> int | float:
    return int(number) if number == number.to_integral_value() else float(number)


def _texts(seen: SourceValues, tried: frozenset[str]) -> Json:
    if seen.texts is None or seen.numbers is None:
        return None
    spelt = [(text, words_in(text)) for text in seen.texts]
    short = (text for text, words in spelt if 0 < len(words) <= _IN_A_ROW and text.isprintable())
    whole = [*dict.fromkeys((*short, *(f"{number:f}" for number in seen.numbers)))]
    left: list[Json] = [text for text in whole if normalized(text) not in tried]
    longer = (words for text, words in spelt if len(words) > 1 or text not in whole)
    parts = [part for words in longer for part in _parts(words, tried, seen.echo)]
    kinds: list[Json] = [{"type": "string", "enum": left}] if left else []
    if parts:
        kinds.append({"type": "string", "pattern": f"^({'|'.join(dict.fromkeys(parts))})$"})
    return {"anyOf": kinds} if kinds else None


def _parts(words: list[re.Match[str]], tried: frozenset[str], echo: frozenset[str]) -> Iterator[str]:
    """A pattern for each word as the beginning of a value, which extends at least to a word that is not an echo."""
    telling = [re.match(r"\w", word[0]) is not None and normalized(word[0]) not in echo for word in words]
    for place, word in enumerate(words):
        if word[0] in _CLOSING or True not in telling[place:]:
            continue
        again = normalized(word[0]) in tried
        least = _past_stops(words, max(telling.index(True, place), place + again))
        if least < len(words):
            yield _sequence(words, place, least, _IN_A_ROW)


def _sequence(words: list[re.Match[str]], place: int, least: int, most: int) -> str:
    """A pattern for the words from `place` on: all up to `least`, then any number of those after it."""
    here = _spelt(words[place][0])
    needed = _past_stops(words, place + 1)
    if needed == len(words):
        return here
    blank = " " if words[place].end() < words[place + 1].start() else ""
    rest = blank + _sequence(words, place + 1, max(least, needed), most - 1) if most > 1 else _REST
    return here + (rest if place < least else f"({rest})?")


def _past_stops(words: list[re.Match[str]], place: int) -> int:
    """The place, moved past punctuation that only ends a sentence: that right after a word with digits, like `X-99`.

    Otherwise, small models often end an id with the text's full stop.
    """
    before = words[place - 1]
    if place < len(words) and before.end() == words[place].start() and any(map(str.isdigit, before[0])):
        while place < len(words) and words[place][0] in _STOPS:
            place += 1
    return place


_STOPS = frozenset(",.;:!?")
"""Punctuation that no id or number ends with."""

_CLOSING = frozenset(",.;:!?)]}'%")
"""Punctuation that no value begins with."""


def _spelt(word: str) -> str:
    """The word as a pattern that has the same meaning in ECMA's regular expressions and in llama.cpp's grammars."""
    return "".join(
        sign if sign.isalnum() or sign == "_" or not sign.isascii() else rf"[\x{ord(sign):02X}]" for sign in word
    ).replace(r"[\x5C]", r"[\x5C]{1,2}")
