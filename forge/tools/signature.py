"""Signatures: from a Python function to the JSON Schema that a model is given, and from its JSON to values."""

import functools
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import TYPE_CHECKING, Self

import msgspec
from msgspec import Raw, Struct

from forge.tools.parameters import Function, function_name, model_parameters, target, types_of
from forge.tools.schemas import SUPPORTED_TYPES, decoder_of, encoded, formless, schemas_of
from stages.schema.value import Json

if TYPE_CHECKING:
    from docstring_parser import Docstring


class Signature(Struct, frozen=True, kw_only=True):
    """A function as the model sees it. `parameters` is a closed JSON Schema of an object, in the function's order."""

    name: str
    description: str
    parameters: Raw


Convert = Callable[[str], dict[str, object]]
"""From arguments, JSON text that matches the schema, to keyword arguments of the function."""


class Explicit(functools.partial[object]):
    """A function with an explicit signature, for one whose own does not describe its parameters."""

    def __new__(cls, function: Function, signature: Signature, convert: Convert) -> Self:
        """The function with its signature and its conversion of arguments."""
        made = super().__new__(cls, function)
        made.signature, made.convert = signature, convert
        return made

    signature: Signature
    convert: Convert


class Returned(Struct, frozen=True):
    """Yielded last by an async generator, which cannot return: the result, and not progress."""

    value: object


def describe(function: Function) -> Signature | tuple[str, ...]:
    """The function's signature as the model sees it; or every mistake in it, one sentence each.

    Types are those that msgspec supports (primitives, Literal, enums, unions, collections, Struct, dataclass,
    TypedDict, `Annotated[..., msgspec.Meta(...)]`) and pydantic models; on a parameter, `Annotated` may also hold a
    pydantic `Field`, constraints of annotated_types, or a plain string. Descriptions come from the docstring, in
    Google, NumPy or Sphinx style, unless the annotation has one. Methods, partials (bound arguments are not offered
    to the model) and objects with `__call__` work too.
    """
    if isinstance(function, Explicit):
        return function.signature
    name = function_name(function)
    parameters, problems = model_parameters(function)
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
    """The conversion from arguments, JSON text that matches the schema, to values of the parameters' types.

    It raises ValueError naming a parameter whose type refuses its value: a type can require more than its JSON
    Schema expresses.
    """
    if isinstance(function, Explicit):
        return function.convert
    parameters, _ = model_parameters(function)
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
    """The schema of each parameter with its description and default."""
    texts = {param.arg_name: param.description for param in doc.params if param.description}
    described: dict[str, Json] = {}
    for name, schema in schemas.items():
        text = {"description": texts[name]} if name in texts else {}
        described[name] = {**text, **schema, **_default(parameters[name].default, hints[name])}
    return described


def _default(value: object, hint: object) -> dict[str, Json]:
    """The default as a schema keyword, if JSON can represent it so that the type accepts it; none for None."""
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
