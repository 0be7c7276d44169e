"""Offers: the tools and values that a request let its reply choose from, read from the request itself."""

from collections.abc import Iterator, Mapping
from itertools import chain

import msgspec
from msgspec import Raw

from stages.effect import Request
from stages.repair.decoding import decode
from stages.schema.value import Json
from stages.tool import ToolSpec

Offer = Mapping[str, Mapping[str, tuple[str, ...]]]
"""The tools that were offered; of each, the arguments that are one of several values, with those as JSON."""

CONSTRAINTS = ("response_format", "format", "structured_outputs", "guided_json")
"""The fields in which backends take a schema of the reply (`stages.wire.constrained`)."""
_REFERENCES = 8
"""Maximum number of references from one definition to the next."""

_json: msgspec.json.Decoder[Json] = msgspec.json.Decoder()
_fields: msgspec.json.Decoder[dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw])


def offer_of(request: Request, tools: tuple[ToolSpec, ...]) -> Offer:
    """What the request's schema of the reply allows; without one, its tools; without those, these, from the prompt."""
    if schema := _constraint(request):
        known = _definitions(schema)
        return {name: _arguments(arguments, known) for name, arguments in _branches(schema)}
    fields = decode(_fields, bytes(request.tail))
    if "tools" in fields:
        return dict(_declared(decode(_json, bytes(fields["tools"]))))
    return {tool.name: closed_arguments(tool) for tool in tools}


def closed_arguments(tool: ToolSpec) -> Mapping[str, tuple[str, ...]]:
    """The tool's arguments that are one of several values, with those as JSON."""
    return _arguments(decode(_json, bytes(tool.parameters)), {})


def argument_schemas(request: Request) -> Mapping[tuple[str, str], Json]:
    """The schemas, by tool and argument, to which the request's constraint holds a reply; none without one."""
    found: dict[tuple[str, str], Json] = {}
    for tool, arguments in _branches(_constraint(request)):
        match arguments:
            case {"properties": dict(properties)}:
                found |= {(tool, name): kind for name, kind in properties.items()}
            case _:
                pass
    return found


def _constraint(request: Request) -> Json:
    """The field with a schema of the reply that names calls; None: the request has none."""
    fields = decode(_fields, bytes(request.tail))
    schemas = (decode(_json, bytes(fields[name])) for name in CONSTRAINTS if name in fields)
    return next((schema for schema in schemas if any(_branches(schema))), None)


def _branches(schema: Json) -> Iterator[tuple[str, Json]]:
    """The calls that the schema names, wherever they stand in it: each an object with a constant `tool`, and `args`."""
    stack = [schema]
    while stack:
        match stack.pop():
            case {"properties": {"tool": {"const": str(name)}, "args": arguments}}:
                yield name, arguments
            case dict(members):
                stack.extend(members.values())
            case list(items):
                stack.extend(items)
            case _:
                pass


def _definitions(schema: Json) -> Mapping[str, Json]:
    """The definitions of the schema that is somewhere in the field, by how they are referred to."""
    stack = [schema]
    while stack:
        match stack.pop():
            case {"$defs": dict(known)}:
                return {f"#/$defs/{name}": value for name, value in known.items()}
            case dict(members):
                stack.extend(members.values())
            case _:
                pass
    return {}


def _declared(tools: Json) -> Iterator[tuple[str, Mapping[str, tuple[str, ...]]]]:
    """The tools in the request's own field for them, in OpenAI's form or in Anthropic's."""
    for tool in tools if isinstance(tools, list) else ():
        match tool:
            case {"function": {"name": str(name), "parameters": schema}} | {"name": str(name), "input_schema": schema}:
                yield name, _arguments(schema, _definitions(schema))
            case _:
                pass


def _arguments(schema: Json, definitions: Mapping[str, Json]) -> Mapping[str, tuple[str, ...]]:
    match schema:
        case {"properties": dict(properties)}:
            known = definitions or _definitions(schema)
            values = {name: _values(value, known, _REFERENCES) for name, value in properties.items()}
            return {name: found for name, found in values.items() if found}
        case _:
            return {}


def _values(schema: Json, definitions: Mapping[str, Json], depth: int) -> tuple[str, ...]:
    """The only values that the schema allows, as JSON; none where it allows others, or no plain ones."""
    match schema:
        case {"$ref": str(name)} if depth:
            return _values(definitions.get(name), definitions, depth - 1)
        case {"enum": list(values)} if not any(isinstance(value, dict | list) for value in values):
            return tuple(msgspec.json.encode(value).decode() for value in values)
        case {"const": str() | int() | float() | None as value}:
            return (msgspec.json.encode(value).decode(),)
        case {"anyOf": list(ways)} | {"oneOf": list(ways)} if depth:
            found = [_values(way, definitions, depth - 1) for way in ways]
            return tuple(dict.fromkeys(chain(*found))) if all(found) else ()
        case {"type": "null"}:
            return ("null",)
        case {"type": "boolean"}:
            return ("true", "false")
        case _:
            return ()
