"""Lossless coercions, led by the schema.

- A string becomes the JSON value that it spells, a number only if it prints the same.
- A number becomes the text of a decimal.
- A boolean or a number becomes the option of a string enum that spells it.
- A whole float becomes an integer where only integers are allowed.
- One string becomes a list of one, XML's `<item>`s a list of them.
- The null of an optional argument that cannot be null is left out; `null` as text is null where null is allowed.

Nothing else.
"""

import msgspec

from stages.schema.judging import Judge
from stages.schema.place import Fuel, Path, Place
from stages.schema.retyping import LIST_OF_ONE, retype
from stages.schema.value import Json, dotted

_Coerced = tuple[Json, list[str]]
"""A value, and the coercions that it needed."""


def coerce(value: Json, judge: Judge, size: int, *, improve: bool) -> tuple[Json, tuple[str, ...]]:
    """The value coerced as far as possible, and the name of each coercion (`string to integer at "qty"`).

    `size` is the length of the value's text. A value that no coercion helps stays as it is, and doesn't fit. `improve`:
    what fits, too, may be better written another way.
    """
    coerced, repairs = _coerced(value, Place(judge, judge.schema.root), _Walk(size, improve=improve))
    return coerced, tuple(repairs)


_FURTHER = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
"""Keywords whose parts apply to the same value."""


class _Walk(Fuel):
    """One walk, and what it has found: by part, value and path. The value is kept, so that its id stays its own."""

    def __init__(self, size: int, *, improve: bool) -> None:
        super().__init__(size)
        self.improve = improve
        self.wrapping = False
        self.known: dict[tuple[int, int, Path, bool], tuple[Json, _Coerced]] = {}


def _coerced(value: Json, at: Place, fuel: _Walk) -> _Coerced:
    if not at.rules:
        return value, []
    further, inner = not at.rules.keys().isdisjoint(_FURTHER), isinstance(value, list | dict)
    if not further and not inner:
        return _here(value, at, fuel) if fuel.lasts(at) else (value, [])
    if inner and not fuel.improve and at.fits(value):
        return value, []
    key = id(at.part), id(value), at.path, fuel.wrapping
    if key not in fuel.known:
        if not fuel.lasts(at):
            return value, []
        fuel.known[key] = value, _through(value, at, fuel) if further else _here(value, at, fuel)
    return fuel.known[key][1]


def _through(value: Json, at: Place, fuel: _Walk) -> _Coerced:
    repairs: list[str] = []
    for place in at.conjuncts():
        value, more = _coerced(value, place, fuel)
        repairs += more
    for branches in at.alternatives():
        value, more = _alternative(value, branches, fuel)
        repairs += more
    value, more = _here(value, at, fuel)
    return value, repairs + more


def _alternative(value: Json, branches: list[Place], fuel: _Walk) -> _Coerced:
    """The value coerced to the alternative that it fits; else to the only result that the alternatives lead to.

    Alternatives with different results are ambiguous: the value stays.
    """
    meant = next((branch for branch in branches if branch.fits(value)), None)
    if meant is not None:
        return _coerced(value, meant, fuel)
    # What has needed no coercion is the value itself, which fits none.
    tried = [one for branch in branches if (one := _coerced(value, branch, fuel))[1] and branch.fits(one[0])]
    results = {msgspec.json.encode(result) for result, _ in tried}
    return tried[0] if len(results) == 1 else (value, [])


def _here(value: Json, at: Place, fuel: _Walk) -> _Coerced:
    """The value in the type that this part of the schema asks for, and everything in it likewise."""
    retyped, repair = retype(value, at.rules, lambda one: at.judge.lists(at.rules, one))
    if repair == LIST_OF_ONE:
        # Where a list may hold lists like itself, there would be no end to it.
        if fuel.wrapping:
            return value, []
        fuel.wrapping = True
        within, repairs = _children(retyped, at, fuel)
        fuel.wrapping = False
        return (within, [_noted(repair, at), *repairs]) if at.fits(within) else (value, [])
    within, repairs = _children(retyped, at, fuel)
    return within, [_noted(repair, at), *repairs] if repair else repairs


def _noted(repair: str, at: Place) -> str:
    return f'{repair} at "{dotted(at.path)}"' if at.path else repair


def _children(value: Json, at: Place, fuel: _Walk) -> _Coerced:
    match value:
        case dict():
            return _members(value, at, fuel)
        case list():
            return _items(value, at, fuel)
        case _:
            return value, []


def _members(value: dict[str, Json], at: Place, fuel: _Walk) -> _Coerced:
    part = at.rules
    declared, required = part.get("properties"), part.get("required")
    optional = declared.keys() - _names(required) if isinstance(declared, dict) else frozenset[str]()
    coerced: dict[str, Json] = {}
    repairs: list[str] = []
    for name, child in value.items():
        place = at.member(name)
        if child is None and name in optional and not place.fits(None):
            repairs.append(_noted("null left out", place))
            continue
        coerced[name], more = _coerced(child, place, fuel)
        repairs += more
    return (coerced, repairs) if repairs else (value, [])


def _names(required: Json) -> frozenset[str]:
    return frozenset(name for name in required if isinstance(name, str)) if isinstance(required, list) else frozenset()


def _items(value: list[Json], at: Place, fuel: _Walk) -> _Coerced:
    coerced: list[Json] = []
    repairs: list[str] = []
    for i, child in enumerate(value):
        item, more = _coerced(child, at.item(i), fuel)
        coerced.append(item)
        repairs += more
    return (coerced, repairs) if repairs else (value, [])
