"""The tools' schemas in the forms that backends' grammars support, compiled once, for constrained replies."""

from collections.abc import Collection, Mapping
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
from stages.seen import IN_A_ROW, evidence, parts_left
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


def with_listed_values(call: Branch, seen: Mapping[str, SourceValues], tried: frozenset[str]) -> Branch:
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
# a text may be the value, so patterns allow every sequence of them (`stages.seen`).

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
    whole = {
        text: shown.plain
        for text, shown in seen.texts.items()
        if 0 < len(shown.words) <= IN_A_ROW and text.isprintable()
    }
    whole |= {text: text for text in (f"{number:f}" for number in seen.numbers) if text not in whole}
    left: list[Json] = [text for text, plain in whole.items() if plain not in tried]
    longer = (shown for text, shown in seen.texts.items() if len(shown.words) > 1 or text not in whole)
    parts = [part for shown in longer for part in parts_left(shown, tried, seen.echo)]
    kinds: list[Json] = [{"type": "string", "enum": left}] if left else []
    if parts:
        kinds.append({"type": "string", "pattern": f"^({'|'.join(dict.fromkeys(parts))})$"})
    return {"anyOf": kinds} if kinds else None
