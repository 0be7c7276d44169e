"""Calculated arguments: their schema for the model instead of a number, and mistakes in their definition."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from stages.schema.value import Json
from stages.tool import Calculated, ToolSpec

Calculations = str | Sequence[str]
"""The arguments of a tool that are calculated, by name."""

_ASKED = "Write the calculation, such as 3 + 4; it is done for you."
"""End of such an argument's description; measured: small models then leave the result to forge."""


def calculations(given: Calculations) -> tuple[Calculated, ...]:
    """The names as `Calculated` values, without duplicates."""
    return tuple(Calculated(argument=name) for name in ((given,) if isinstance(given, str) else dict.fromkeys(given)))


def calculated_specs(specs: Iterable[ToolSpec], wanted: Mapping[str, Calculations]) -> tuple[ToolSpec, ...]:
    """The tools as the model sees them: with a string instead of each calculated number.

    What cannot be calculated is left unchanged; `calculated_mistakes` reports it.
    """
    return tuple(_asking(spec, (*spec.calculated, *calculations(wanted.get(spec.name, ())))) for spec in specs)


def _asking(spec: ToolSpec, wanted: tuple[Calculated, ...]) -> ToolSpec:
    if not wanted:
        return spec
    schema: dict[str, Json] = msgspec.json.decode(spec.parameters, type=dict)
    properties = _properties(spec)
    names = dict.fromkeys(bound.argument for bound in wanted)
    numbers = {name: number for name in names if _types(number := properties.get(name)) & NUMBERS}
    asked: Json = {**properties, **{name: _text(number) for name, number in numbers.items()}}
    return replace(
        spec,
        parameters=Raw(msgspec.json.encode({**schema, "properties": asked})),
        calculated=tuple(Calculated(argument=n, number=Raw(msgspec.json.encode(v))) for n, v in numbers.items()),
    )


def calculated_mistakes(specs: Iterable[ToolSpec], wanted: Mapping[str, Calculations]) -> tuple[str, ...]:
    """All mistakes in the calculated arguments of these tools, one sentence each."""
    tools = {spec.name: spec for spec in specs}
    found = [f"calculated: there is no tool named {name!r}" for name in wanted if name not in tools]
    for name, spec in tools.items():
        bound = (*spec.calculated, *calculations(wanted.get(name, ())))
        found += [f"tool {name}: calculated: {problem}" for one in bound if (problem := _mistake(spec, one.argument))]
    return tuple(dict.fromkeys(found))


def _mistake(spec: ToolSpec, argument: str) -> str:
    properties = _properties(spec)
    if argument not in properties:
        return f"it has no argument {argument!r}; it has: {', '.join(properties) or 'none'}"
    types = _types(properties[argument])
    if not types & NUMBERS or types - NUMBERS - {"null"}:
        return f"its argument {argument} is not a number; only integers and floats can be calculated"
    if argument in [bound.argument for bound in spec.grounded]:
        return f"{argument} is calculated, so its numbers are grounded already; leave it out of grounded"
    return ""


NUMBERS = frozenset({"number", "integer"})


def _types(schema: Json) -> frozenset[str]:
    """The types that the schema allows."""
    match schema:
        case {"type": str(name)}:
            return frozenset({name})
        case {"type": [*names]}:
            return frozenset(map(str, names))
        case {"anyOf": [*parts]}:
            return frozenset[str]().union(*map(_types, parts))
        case _:
            return frozenset({"anything"})


def _text(number: Json) -> Json:
    """The schema of a calculation of that number, as a string."""
    notes = number if isinstance(number, dict) else {}
    kind: Json = ["string", "null"] if "null" in _types(number) else "string"
    default: dict[str, Json] = {"default": notes["default"]} if notes.get("default", 0) is None else {}
    return {"type": kind, "description": f"{notes.get('description', '')} {_ASKED}".strip(), **default}


def _properties(spec: ToolSpec) -> dict[str, Json]:
    schema: dict[str, Json] = msgspec.json.decode(spec.parameters, type=dict)
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}
