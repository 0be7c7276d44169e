"""Types as JSON Schema, and values back from JSON, for msgspec's types and pydantic models."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence

import msgspec

from forge.tools.annotations import nested_types
from stages.schema.value import Json

Schema = dict[str, Json]
Decode = Callable[[bytes | str | msgspec.Raw], object]

SUPPORTED_TYPES = (
    "str, int, float, bool, list, dict, Literal, an enum, a dataclass, a TypedDict, a msgspec Struct or "
    "a pydantic model"
)
"""The supported types, for error messages."""


def schemas_of(hints: Sequence[object]) -> tuple[list[Schema], Schema]:
    """The schema of each type, and the definitions that they refer to as `#/$defs/…`.

    Raises TypeError or NameError for a type that JSON cannot represent.
    """
    taken: frozenset[str] = frozenset()
    while True:
        inner: Schema = {}
        hook = functools.partial(_pydantic_schema, inner, taken)
        schemas, defined = msgspec.json.schema_components(hints, schema_hook=hook, ref_template="#/$defs/{name}")
        if inner.keys().isdisjoint(defined):
            return [*schemas], {**inner, **defined}
        # Only now is it known which names msgspec needs for itself.
        taken = frozenset(defined)


def decoder_of(hint: object) -> Decode:
    """A decoder of that type; it raises msgspec.ValidationError or the model's own ValueError."""
    decode = msgspec.json.Decoder(hint, dec_hook=_pydantic_value).decode
    if not any(map(dataclasses.is_dataclass, nested_types(hint))):
        return decode
    return lambda text: _completed(decode(text))


def _completed(value: object) -> object:
    """The value, with dataclass defaults set on the instances, which msgspec leaves on the class.

    Without them, an instance has the same repr but a different `vars`, which encoders and comparisons use.
    """
    if isinstance(value, list | tuple | set | frozenset):
        for item in value:
            _completed(item)
    elif isinstance(value, dict):
        for item in value.values():
            _completed(item)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            _completed(getattr(value, name))
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            inner = getattr(value, field.name)
            if hasattr(value, "__dict__"):
                vars(value).setdefault(field.name, inner)
            _completed(inner)
    return value


def encoded(value: object) -> bytes:
    """The value as JSON. NotImplementedError or an error of msgspec if JSON cannot represent it."""
    return msgspec.json.encode(value, enc_hook=_pydantic_fields)


def formless(hint: object) -> str | None:
    """Why JSON cannot represent the type; None if it can."""
    try:
        schemas_of([hint])
    except (TypeError, NameError) as error:
        return str(error).strip().splitlines()[-1]
    return None


def object_schema(hint: object) -> Schema | None:
    """The closed schema of a type whose values are objects with fields, as parameters of a tool.

    None for any other type.
    """
    (schema,), definitions = schemas_of([hint])
    if isinstance(ref := schema.get("$ref"), str):
        name = ref.rpartition("/")[2]
        named = definitions[name]
        if not isinstance(named, dict):
            return None
        schema = named
        if ref.encode() not in msgspec.json.encode(definitions):
            del definitions[name]
    if schema.get("type") != "object" or "properties" not in schema:
        return None
    closed: Schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    return {
        **closed,
        **{k: v for k, v in schema.items() if k != "title"},
        **({"$defs": definitions} if definitions else {}),
    }


def _pydantic_schema(definitions: Schema, taken: Iterable[str], kind: type) -> Schema:
    """The schema of a pydantic model; its definitions are added to `definitions`. NotImplementedError otherwise."""
    model_json_schema = getattr(kind, "model_json_schema", None)
    if not callable(model_json_schema):
        raise NotImplementedError
    for number in range(1, 1000):
        # Models in different modules may have the same name.
        ending = f"_{number}" * (number > 1)
        schema: Schema = model_json_schema(ref_template=f"#/$defs/{{model}}{ending}")
        _free_times(schema)
        inner = schema.pop("$defs", {})
        named = {f"{name}{ending}": one for name, one in inner.items()} if isinstance(inner, dict) else {}
        if not any(name in taken or definitions.get(name, one) != one for name, one in named.items()):
            definitions.update(named)
            return schema
    raise TypeError(f"{kind.__name__} refers to more than 1000 models of one name")


def _free_times(part: Json) -> None:
    """Drop formats that require a time zone: pydantic accepts times without one, or refuses them itself."""
    if isinstance(part, list):
        for item in part:
            _free_times(item)
    elif isinstance(part, dict):
        if part.get("type") == "string" and part.get("format") in ("date-time", "time"):
            del part["format"]
        for item in part.values():
            _free_times(item)


def _pydantic_fields(value: object) -> object:
    """The fields of a pydantic model as JSON values."""
    model_dump = getattr(value, "model_dump", None)
    if not callable(model_dump):
        raise NotImplementedError(f"{type(value).__name__} has no JSON form")
    return model_dump(mode="json")


def _pydantic_value(kind: type, value: object) -> object:
    """The value as a pydantic model."""
    model_validate = getattr(kind, "model_validate", None)
    if not callable(model_validate):
        raise NotImplementedError(f"{kind.__name__} cannot be made from JSON")
    return model_validate(value)
