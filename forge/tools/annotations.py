"""Annotations: metadata of pydantic and annotated_types, and plain strings, converted to `msgspec.Meta`."""

from collections.abc import Iterable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

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
        return _field(extra)
    found = {name: value for name in _CONSTRAINTS if (value := getattr(extra, name, None)) is not None}
    # Groups of constraints (Interval, Len, StringConstraints) have them as attributes as well.
    if not found:
        raise AnnotationError(
            f"{extra!r} cannot be expressed in JSON Schema; check it in the tool and raise a ValueError there"
        )
    return found


def _field(field: object) -> Mapping[str, object]:
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
        for one in nested_types(hint)
        for name, kind in _fields(one).items()
        for extra in getattr(kind, "__metadata__", ())
        if _foreign(extra)
    ]


def nested_types(hint: object) -> Iterator[object]:
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
