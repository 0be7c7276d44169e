"""`ToolDef`: tools whose parameters are given separately, as a JSON Schema or a type."""

import dataclasses
import inspect
import logging
from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack

import msgspec
from msgspec import Raw

from forge.errors import DefinitionError
from forge.tools.annotations import unread
from forge.tools.calculated_arguments import Calculations
from forge.tools.decorator import Grounds, Tool, tool
from forge.tools.parameters import Function, key_parameters
from forge.tools.schemas import decoder_of, formless, object_schema
from forge.tools.signature import Convert, Explicit, Signature
from stages.schema import SchemaError, checker, unchecked
from stages.tool import Prerequisite, ToolEffect


class ToolOptions(TypedDict, total=False):
    """Options of `@tool` besides name and description."""

    effect: ToolEffect
    prerequisites: str | Sequence[str | Prerequisite]
    timeout: float | None
    idle_timeout: float | None
    approval: bool
    repeatable: bool
    idempotent: bool
    max_parallel: int | None
    result_limit: int
    grounded: Grounds
    calculated: Calculations


def ToolDef(  # noqa: N802 - a name that users know
    *,
    name: str,
    description: str,
    parameters: Mapping[str, object] | type,
    function: Function,
    **options: Unpack[ToolOptions],
) -> Tool[..., object]:
    """A tool whose function needs no type hints: `parameters` describes its arguments.

    They are a JSON Schema of an object, as a dict; or a class with fields: a pydantic model, a msgspec Struct, a
    dataclass, a TypedDict. The function gets the arguments by name; with a class, in the fields' types and with its
    defaults. The other options are those of `@tool`. Mistakes are in `problems`; a Workflow refuses the tool.
    """
    if not callable(function):
        raise DefinitionError((f"tool {name}: function is {function!r}, which cannot be called",))
    schema, convert, problems = _known(parameters)
    problems += _unfit(function, schema)
    signature = Signature(name=name, description=description, parameters=Raw(msgspec.json.encode(schema)))
    tell_unchecked(name, signature.parameters)
    made = tool(name=name, description=description, **options)(Explicit(function, signature, convert))
    return Tool(made.function, made.spec, (*(f"tool {name}: {problem}" for problem in problems), *made.problems))


def tell_unchecked(name: str, parameters: bytes | Raw) -> None:
    """Log what in the schema of a tool of that name costs too much to check."""
    if sentence := unchecked(parameters):
        logging.getLogger("forge").warning("the tool %s: %s", name, sentence)


def _known(parameters: Mapping[str, object] | type) -> tuple[Mapping[str, object], Convert, list[str]]:
    """The schema, the conversion of its values, and its mistakes."""
    if isinstance(parameters, type):
        return _of_class(parameters)
    try:
        checker(msgspec.json.encode(parameters))
    except (SchemaError, TypeError, UnicodeEncodeError) as error:
        return {"type": "object"}, _as_it_is, [f"its parameters are not a JSON Schema of an object: {error}"]
    return parameters, _as_it_is, []


def _as_it_is(arguments: str) -> dict[str, object]:
    return msgspec.json.decode(arguments, type=dict[str, object])


def _of_class(kind: type) -> tuple[Mapping[str, object], Convert, list[str]]:
    if reason := formless(kind):
        return {"type": "object"}, _as_it_is, [f"its parameters have no JSON form ({reason})"]
    schema = object_schema(kind)
    if schema is None:
        return {"type": "object"}, _as_it_is, [f"its parameters are {kind.__name__}, which is not a class with fields"]
    decode = decoder_of(kind)
    return schema, lambda arguments: _fields(decode(arguments)), unread(kind)


def _fields(value: object) -> dict[str, object]:
    """The fields of a value of a class by their names in Python."""
    if isinstance(value, dict):
        return value
    model = getattr(type(value), "model_fields", None) or getattr(value, "__struct_fields__", None)
    names = model if model is not None else [field.name for field in dataclasses.fields(value)]  # type: ignore[arg-type]
    return {name: getattr(value, name) for name in names}


def _unfit(function: Function, schema: Mapping[str, object]) -> list[str]:
    """Mismatches between the schema and the function's own parameters."""
    try:
        taken = inspect.signature(function).parameters
    except (ValueError, TypeError):
        return []  # a built-in without a signature
    if any(p.kind is p.VAR_KEYWORD for p in taken.values()):
        return []
    properties, required = schema.get("properties"), schema.get("required")
    named = [*properties] if isinstance(properties, Mapping) else []
    sure = [*required] if isinstance(required, Sequence) else []
    found = [f"its parameters have {n!r}, which the function does not take" for n in named if n not in taken]
    return found + [
        f"the function needs {p.name!r}, which the parameters do not require"
        for p in taken.values()
        if p.name not in key_parameters(function)
        and p.default is p.empty
        and p.kind is not p.VAR_POSITIONAL
        and p.name not in sure
    ]
