"""Schemas from types, and metadata in annotations."""

import dataclasses
import enum
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from types import UnionType
from typing import Annotated, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from stages.schema.value import Json

# Annotations: metadata of pydantic and annotated_types, and plain strings, converted to `msgspec.Meta`.

_CONSTRAINTS = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern")
"""Constraints of annotated_types and pydantic that `msgspec.Meta` has under the same names."""

_FOREIGN = ("pydantic", "pydantic_core", "annotated_types")


class AnnotationError(ValueError):
    """Metadata that neither JSON Schema nor forge can express; the message says what to do."""


def normal(hint: object) -> object:
    """The type with all its metadata, at any depth, as `msgspec.Meta`. Raises AnnotationError.

    A plain string or `Doc` is a description. Metadata of unknown libraries is kept and ignored.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is None or origin is Literal:
        return hint
    if origin is Annotated:
        base, *extras = arguments
        return Annotated[(normal(base), *_metas(extras))]
    inner = tuple(map(normal, arguments))
    if inner == arguments and all(a is b for a, b in zip(inner, arguments, strict=True)):
        return hint
    return Union[inner] if origin in (Union, UnionType) else origin[inner]  # noqa: UP007 - made at run time


def _metas(extras: Iterable[object]) -> list[object]:
    """Msgspec's own unchanged, plus one for all the others together."""
    kept = [extra for extra in extras if isinstance(extra, msgspec.Meta) or not _known(extra)]
    facts: dict[str, object] = {}
    for extra in extras:
        if not isinstance(extra, msgspec.Meta) and _known(extra):
            facts = {**_facts(extra), **facts}
    try:
        return [*kept, msgspec.Meta(**facts)] if facts else kept  # type: ignore[call-overload]  # which keywords go together, Meta says itself
    except (TypeError, ValueError) as error:
        raise AnnotationError(f"{error}; write Annotated[..., msgspec.Meta(...)]") from error


def _known(extra: object) -> bool:
    return isinstance(extra, str) or hasattr(extra, "documentation") or _foreign(extra)


def _foreign(extra: object) -> bool:
    """Whether the metadata is of pydantic or annotated_types."""
    return type(extra).__module__.partition(".")[0] in _FOREIGN


def _facts(extra: object) -> Mapping[str, object]:
    """The metadata as keyword arguments of `msgspec.Meta`."""
    if isinstance(extra, str):
        return {"description": extra}
    if isinstance(text := getattr(extra, "documentation", None), str):
        return {"description": text}
    if type(extra).__name__ == "FieldInfo":
        return _facts_of_field(extra)
    found = {name: value for name in _CONSTRAINTS if (value := getattr(extra, name, None)) is not None}
    # Groups of constraints (Interval, Len, StringConstraints) have them as attributes as well.
    if not found:
        raise AnnotationError(
            f"{extra!r} cannot be expressed in JSON Schema; check it in the tool and raise a ValueError there"
        )
    return found


def _facts_of_field(field: object) -> Mapping[str, object]:
    """The metadata in a pydantic Field."""
    said = {"alias": getattr(field, "alias", None), "default_factory": getattr(field, "default_factory", None)}
    if wrong := [name for name, value in said.items() if value is not None]:
        raise AnnotationError(f"Field({wrong[0]}=…) works only in a pydantic model; leave it out of the annotation")
    if type(getattr(field, "default", None)).__name__ != "PydanticUndefinedType":
        raise AnnotationError("Field(default=…) works only in a pydantic model; write the default after the type")
    facts: dict[str, object] = {}
    for extra in getattr(field, "metadata", ()):
        facts.update(_facts(extra))
    words = {name: value for name in ("title", "description", "examples") if (value := getattr(field, name, None))}
    more = getattr(field, "json_schema_extra", None)
    return {**facts, **words, **({"extra_json_schema": more} if isinstance(more, dict) else {})}


def unread(hint: object) -> list[str]:
    """A sentence for each field, of any class in the type, with constraints that msgspec ignores."""
    return [
        f"{name} of {getattr(one, '__name__', one)} has a constraint of {type(extra).__module__}, which works "
        "only in pydantic models and on parameters; write Annotated[..., msgspec.Meta(...)]"
        for one in _nested_types(hint)
        for name, kind in _fields(one).items()
        for extra in getattr(kind, "__metadata__", ())
        if _foreign(extra)
    ]


def _nested_types(hint: object) -> Iterator[object]:
    """The type and every type nested in it, each once: type arguments, and the fields of classes."""
    seen: set[int] = set()
    left = [hint]
    while left:
        one = left.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            left.extend(get_args(one))
            left.extend(_fields(one).values())


def _fields(kind: object) -> Mapping[str, object]:
    """The fields of a class that msgspec knows by its annotations: a Struct, a dataclass, a TypedDict, a NamedTuple."""
    marks = ("__struct_fields__", "__dataclass_fields__", "__total__", "_fields")
    if not isinstance(kind, type) or not any(hasattr(kind, mark) for mark in marks):
        return {}
    try:
        return get_type_hints(kind, include_extras=True)
    except (NameError, AttributeError, TypeError):
        return {}  # msgspec has the better message: see schemas.formless


# Types as JSON Schema, and values back from JSON, for msgspec's types and pydantic models.

Schema = dict[str, Json]
_Decode = Callable[[bytes | str | msgspec.Raw], object]

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
            _as_written([*schemas, *defined.values()], hints)
            return [*schemas], {**inner, **defined}
        # Only now is it known which names msgspec needs for itself.
        taken = frozenset(defined)


_BY_PYDANTIC = "$pydantic"
"""Marks the schema of a pydantic model within those of msgspec, until `_as_written` has passed it by."""

_DATA = ("default", "examples", "const")
"""Keys whose values are data, not schemas."""


def _as_written(part: Json, hints: Iterable[object]) -> None:
    """Close the objects, and put the choices of each Literal and Enum in the order of their definition.

    Small models prefer the first choice, so the order is the author's, and msgspec sorts them. Choices that the types
    have in two orders stay sorted, since a schema does not say which of the types it is of. Pydantic keeps the order.
    """
    orders: dict[bytes, list[Json]] = {}
    for kind in (kind for hint in hints for kind in _nested_types(hint)):
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            choices = [member.value for member in kind]
        else:
            choices = [*get_args(kind)] if get_origin(kind) is Literal else []
        key = msgspec.json.encode(sorted(choices, key=repr))
        orders[key] = choices if orders.get(key, choices) == choices else []

    def put(part: Json) -> None:
        if isinstance(part, list):
            for item in part:
                put(item)
        elif isinstance(part, dict) and not part.pop(_BY_PYDANTIC, False):
            _close(part)
            if isinstance(choices := part.get("enum"), list):
                part["enum"] = orders.get(msgspec.json.encode(sorted(choices, key=repr))) or choices
            for name, item in part.items():
                if name == "properties" and isinstance(item, dict):
                    put([*item.values()])  # whose names may be any
                elif name not in _DATA:
                    put(item)

    put(part)


def decoder_of(hint: object) -> _Decode:
    """A decoder of that type; it raises msgspec.ValidationError or the model's own ValueError."""
    decode = msgspec.json.Decoder(hint, dec_hook=_pydantic_value).decode
    if not any(map(dataclasses.is_dataclass, _nested_types(hint))):
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


def result_json(value: object) -> bytes:
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
    for number in count(1):
        # Models in different modules may have the same name.
        ending = f"_{number}" * (number > 1)
        schema: Schema = model_json_schema(ref_template=f"#/$defs/{{model}}{ending}")
        _as_checked(schema)
        inner = schema.pop("$defs", {})
        named = {f"{name}{ending}": one for name, one in inner.items()} if isinstance(inner, dict) else {}
        if not any(name in taken or definitions.get(name, one) != one for name, one in named.items()):
            definitions.update(named)
            break
    return {**schema, _BY_PYDANTIC: True}


def _as_checked(part: Json) -> None:
    """Close the objects, and drop formats that require a time zone: pydantic accepts or refuses such times itself."""
    if isinstance(part, list):
        for item in part:
            _as_checked(item)
    elif isinstance(part, dict):
        _close(part)
        if part.get("type") == "string" and part.get("format") in ("date-time", "time"):
            del part["format"]
        for item in part.values():
            _as_checked(item)


def _close(part: Schema) -> None:
    """Refuse unknown fields, unless the class accepts them: both libraries would drop a misspelt one in silence."""
    if part.get("type") == "object" and isinstance(part.get("properties"), dict):
        part.setdefault("additionalProperties", False)


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
