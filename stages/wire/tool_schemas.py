"""The tools' schemas in the forms that backends' grammars support, compiled once, for constrained replies."""

from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import get_args

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.arithmetic import constraint_of
from stages.schema import SchemaTarget, project
from stages.schema.projection import written_or_null
from stages.schema.value import Json, optional_members
from stages.seen import listed_values, values_for
from stages.state import SourceValues
from stages.tool import ToolSpec
from stages.wire.openai.chat import encode_strict_tools, strict_refusals
from stages.wire.wires import Branch, branch


class ToolSchemas(Struct, frozen=True, kw_only=True):
    """The tools' schemas in the forms that requests need.

    `calls` are the schemas of calls, by grammar and tool. `strict` is the `tools` field in OpenAI's strict mode;
    `refused` says for each tool that cannot be strict why.
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


_MOST_LISTED = 600
"""Maximum total of values listed in a request; OpenAI's strict mode accepts 1,000, including the tools' enums."""


def limited_calls(
    calls: Iterable[tuple[ToolSpec, Branch]], known: tuple[SourceValues, ...], tried: Mapping[str, frozenset[str]]
) -> list[Branch]:
    """The schemas of these tools' calls, with grounded arguments limited to known values while the total fits.

    Optional arguments are not limited: a model that must choose a value chooses a wrong one, whereas an invented value
    is refused. `tried` are the values, by tool, that are not offered again.
    """
    left, limited = _MOST_LISTED, list[Branch]()
    for tool, call in calls:
        optional = optional_members(msgspec.json.decode(tool.parameters, type=dict)) if tool.grounded else ()
        bound = [one for one in tool.grounded if one.argument not in optional]
        seen = {one.argument: values_for(one, known) for one in bound}
        size = sum(len(one.texts or ()) + len(one.numbers or ()) for one in seen.values())
        fits = 0 < size <= left
        left -= size if fits else 0
        limited.append(_limited(call, seen, tried.get(tool.name, frozenset())) if fits else call)
    return limited


def without_arguments(call: Branch, names: frozenset[str]) -> Branch:
    """The schema of a call without these arguments."""
    return _with_arguments(call, lambda kinds: {name: kind for name, kind in kinds.items() if name not in names})


def _limited(call: Branch, seen: Mapping[str, SourceValues], tried: frozenset[str]) -> Branch:
    def limited(kinds: dict[str, Json]) -> dict[str, Json]:
        return kinds | {n: listed_values(kinds[n], values, tried) for n, values in seen.items() if n in kinds}

    return _with_arguments(call, limited)


def _with_arguments(call: Branch, change: Callable[[dict[str, Json]], dict[str, Json]]) -> Branch:
    """The schema of a call with the schemas of its arguments changed."""
    schema = msgspec.json.decode(call[0], type=_Call)
    args: dict[str, Json] = msgspec.json.decode(schema.properties.args, type=dict)
    kinds, required = args.get("properties"), args.get("required")
    if not isinstance(kinds, dict):
        return call
    args["properties"] = changed = change(kinds)
    args["required"] = [name for name in required if name in changed] if isinstance(required, list) else []
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
