"""Signatures: from a Python function to the JSON Schema that a model is given, and from its JSON to values."""

import functools
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import TYPE_CHECKING, Self

import msgspec
from msgspec import Raw, Struct

from forge.tools.parameters import Function, function_name, offered, target, types_of
from forge.tools.schemas import SUPPORTED_TYPES, decoder_of, encoded, formless, schemas_of
from stages.schema.value import Json

if TYPE_CHECKING:
    from docstring_parser import Docstring


class Signature(Struct, frozen=True, kw_only=True):
    """What a model is told of a function. `parameters` is a closed JSON Schema of type object, in their order."""

    name: str
    description: str
    parameters: Raw


Convert = Callable[[str], dict[str, object]]
"""From arguments, JSON text that fits the schema, to what the function is called with, by name."""


class Explicit(functools.partial[object]):
    """A function beside what is said of its parameters, where its own signature does not say it."""

    def __new__(cls, function: Function, signature: Signature, convert: Convert) -> Self:
        """The function; its signature and the way to its values go with it."""
        made = super().__new__(cls, function)
        made.signature, made.convert = signature, convert
        return made

    signature: Signature
    convert: Convert


def describe(function: Function) -> Signature | tuple[str, ...]:
    """The function's signature as a model is given it; or every mistake in it, a sentence each.

    Types are what msgspec knows (primitives, Literal, enums, unions, collections, Struct, dataclass, TypedDict,
    `Annotated[..., msgspec.Meta(...)]`) and pydantic models; at a parameter, `Annotated` may hold a pydantic `Field`,
    constraints of annotated_types, and plain words instead. Descriptions come from the docstring, in Google,
    NumPy or Sphinx style, unless the annotation has its own. Methods, partials (what is bound is not offered
    to the model) and objects with `__call__` are functions too.
    """
    if isinstance(function, Explicit):
        return function.signature
    name = function_name(function)
    parameters, problems = offered(function)
    hints, unresolved = types_of(function, parameters)
    wordless = [
        f"parameter {p} has a type without a JSON form ({reason}); use {SUPPORTED_TYPES}"
        for p, hint in hints.items()
        if (reason := formless(hint))
    ]
    if found := (*problems, *unresolved, *wordless):
        return tuple(f"tool {name}: {problem}" for problem in found)
    doc = _docstring(function)
    schemas, definitions = schemas_of([*hints.values()])
    described = _properties(parameters, dict(zip(hints, schemas, strict=True)), hints, doc)
    return Signature(
        name=name,
        description="\n\n".join(filter(None, (doc.short_description, doc.long_description))),
        parameters=_schema(parameters, described, definitions),
    )


def converter(function: Function) -> Convert:
    """Made once for a function: from arguments, JSON text that fits its schema, to values of its parameters' types.

    The conversion raises ValueError naming the parameter whose value its type refuses after all: a type can ask
    for more than its JSON Schema says.
    """
    if isinstance(function, Explicit):
        return function.convert
    parameters, _ = offered(function)
    hints, _ = types_of(function, parameters)
    decode = {name: decoder_of(hint) for name, hint in hints.items()}
    split = msgspec.json.Decoder(dict[str, Raw])

    def convert(arguments: str) -> dict[str, object]:
        given = split.decode(arguments)
        if not given.keys() <= decode.keys():
            known = ", ".join(hints) or "none"
            raise ValueError(
                f"{function_name(function)} has no parameter {min(given.keys() - decode)}; it has: {known}"
            )
        values: dict[str, object] = {}
        for name, raw in given.items():
            try:
                values[name] = decode[name](raw)
            except msgspec.ValidationError as error:
                raise ValueError(f"{name}: {error}") from error
        return values

    return convert


def _docstring(function: Function) -> "Docstring":
    from docstring_parser import Docstring, ParseError, parse  # noqa: PLC0415 - slow to import: it reads every style

    plain = function.func if isinstance(function, functools.partial) else function
    text = target(plain).__doc__ or plain.__doc__ or ""
    try:
        return parse(text)
    except ParseError:
        plainly = Docstring()
        plainly.short_description = text
        return plainly


def _properties(
    parameters: dict[str, Parameter],
    schemas: dict[str, dict[str, Json]],
    hints: Mapping[str, object],
    doc: "Docstring",
) -> dict[str, Json]:
    """The schema of each parameter with what is known besides: its description and its default."""
    texts = {param.arg_name: param.description for param in doc.params if param.description}
    described: dict[str, Json] = {}
    for name, schema in schemas.items():
        text = {"description": texts[name]} if name in texts else {}
        described[name] = {**text, **schema, **_default(parameters[name].default, hints[name])}
    return described


def _default(value: object, hint: object) -> dict[str, Json]:
    """The default as a keyword of the schema, where JSON can say it so that its type reads it; None says nothing."""
    if value is Parameter.empty or value is None:
        return {}
    try:
        text = encoded(value)
        decoder_of(hint)(text)
    except (TypeError, ValueError, NotImplementedError):
        return {}
    default: Json = msgspec.json.decode(text)
    return {"default": default}


def _schema(parameters: dict[str, Parameter], properties: dict[str, Json], definitions: dict[str, Json]) -> Raw:
    required: list[Json] = [name for name, p in parameters.items() if p.default is Parameter.empty]
    schema: dict[str, Json] = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    return Raw(msgspec.json.encode({**schema, "$defs": definitions} if definitions else schema))
