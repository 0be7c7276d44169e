"""Kinds: values of another kind than their annotation says, each told with its place and with what to write."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import isnan
from types import NoneType, UnionType
from typing import Literal, TypeAlias, TypeGuard, Union, get_args, get_origin

from msgspec import Struct, structs

Hint: TypeAlias = object
"""An annotation: classes, choices (`Literal`), and unions, lists, dicts and functions of them."""

WORDS: Mapping[Hint, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
    NoneType: "None",
}
SHOWN = 200
"""Characters of a wrong value that are shown."""


def foreign(options: Mapping[str, object], hints: Mapping[str, Hint]) -> dict[str, tuple[str, ...]]:
    """The options of another kind than their hints say: by name, a sentence for each mistake."""
    found = {name: tuple(_wrong(name, value, hints[name])) for name, value in options.items()}
    return {name: sentences for name, sentences in found.items() if sentences}


def fits(value: object, hint: Hint) -> bool:
    """Whether the value is of that kind. No bool is a number, and nan is none."""
    return hint is object or any(_is(value, kind) for kind in _kinds(hint))


def _is(value: object, kind: Hint) -> bool:
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Literal:
        return any(value == one and type(value) is type(one) for one in inside)
    if origin is Callable:
        # A class is given where its instance is meant, unless anything at all may be called.
        return callable(value) and (inside[0] is ... or not isinstance(value, type))
    if origin in (Sequence, tuple):
        return _is_list(value) and all(fits(one, inside[0]) for one in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(fits(one, inside[1]) for one in value.values())
    if kind in (int, float) and isinstance(value, int):
        return not isinstance(value, bool)
    wanted = origin or kind
    if not isinstance(wanted, type) or not isinstance(value, wanted):
        return False
    if isinstance(value, Struct):
        return all(fits(getattr(value, inner.name), inner.type) for inner in structs.fields(value))
    return not (isinstance(value, float) and isnan(value))


def _wrong(name: str, value: object, hint: Hint) -> Iterator[str]:
    """What is wrong, at the smallest places: a list may hold one thing that does not belong there."""
    if fits(value, hint):
        return
    inner = {get_origin(kind): get_args(kind) for kind in _kinds(hint)}
    if Sequence in inner and _is_list(value):
        for number, one in enumerate(value):
            yield from _wrong(f"{name}[{number}]", one, inner[Sequence][0])
    elif Mapping in inner and isinstance(value, Mapping):
        for key, one in value.items():
            yield from _wrong(f"{name}[{key!r}]", one, inner[Mapping][1])
    elif isinstance(value, Struct) and type(value) in _kinds(hint):
        for part in structs.fields(value):
            yield from _wrong(f"{name}.{part.name}", getattr(value, part.name), part.type)
    elif Callable in inner and isinstance(value, type):
        yield f"{name} is the class {value.__name__}; write {value.__name__}()"
    else:
        yield f"{name} is {repr(value)[:SHOWN]}; it must be {_words(hint)}"


def _kinds(hint: Hint) -> tuple[Hint, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _is_list(value: object) -> TypeGuard[Collection[object]]:
    """Whether it can be looked through more than once, so that looking here takes nothing from it."""
    return isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping)


def _words(hint: Hint) -> str:
    *first, last = (_word(kind) for kind in _kinds(hint))
    return f"{', '.join(first)} or {last}" if first else last


def _word(kind: Hint) -> str:
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Literal:
        return f"one of {', '.join(map(str, inside))}"
    if origin is Callable:
        return "a function"
    if origin in (Sequence, tuple):
        return f"a list, each {_words(inside[0])}"
    if origin is Mapping:
        return f"a dict, each value {_words(inside[1])}"
    return WORDS.get(kind) or f"a {getattr(origin or kind, '__name__', kind)}"
