"""Several readings of one text: the cheapest one wins; a tie between different calls has no winner."""

import re
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from stages.repair.damaged_json import FoundJson
from stages.repair.json_text import json_source, object_members
from stages.rescue.described import ARGUMENT_KEYS, has_values
from stages.rescue.found import Claim, Read
from stages.rescue.names import Names
from stages.rescue.shape import arguments_of, shape_of

_TWICE = re.compile(
    rf"\{{\s*+(?:\"type\"\s*+:\s*+\"object\"\s*+,\s*+)?\"({'|'.join(ARGUMENT_KEYS)}|properties)\"\s*+:\s*+\"?\{{"
)
_BESIDE = frozenset({"type", "required", "additionalProperties"})
"""Other members of a schema whose `properties` a model has filled with values."""


def cheapest(readings: list[tuple[str, Read]], names: Names) -> tuple[str, Read]:
    """The winner among several readings of the same place, each with its family, in the order of families.

    Calls come before damage; a reading that a family knows not to be a call keeps its place in the order.
    """
    called = [(family, read) for family, read in readings if read.claims]
    if not called:
        return readings[0]
    family, best = min(called, key=lambda reading: _cost(reading[1], names))
    for _, rival in called:
        same_price = rival.end == best.end and _cost(rival, names) == _cost(best, names)
        if same_price and _calls(rival, names) != _calls(best, names):
            return family, _ambiguous(best, rival)
    return family, best


def unwrapped(claim: Claim, names: Names) -> Claim:
    """The call inside a call's arguments, where markup and JSON both name it.

    Or its arguments where a second object holds them, such as the `properties` of a schema that it echoes.
    """
    if (twice := _TWICE.match(claim.arguments)) and twice[1] not in names.parameters(claim.name):
        given = object_members(claim.arguments) or {}
        beside = given.keys() - {twice[1]}
        whole = not beside
        if twice[1] == "properties":
            whole = beside <= _BESIDE and has_values(given[twice[1]])
        if whole and isinstance(names.known, Mapping) and names.knows(claim.name):
            inside = arguments_of(claim.name, FoundJson(text=json_source(given[twice[1]]), end=0)).claims
            if inside:
                repairs = (*claim.repairs, "wrapped_twice", *inside[0].repairs)
                claim = replace(claim, arguments=inside[0].arguments, repairs=repairs, cost=claim.cost + 1)
    if '"name"' not in claim.arguments and '"tool' not in claim.arguments:
        return claim
    inner = shape_of(FoundJson(text=claim.arguments, end=0), names, marked=False).claims
    outer = names.find(claim.name)
    if len(inner) != 1 or (outer and names.find(inner[0].name) != outer):
        return claim
    if not names.knows(inner[0].name):
        return claim
    repairs = (*claim.repairs, "wrapped_twice", *inner[0].repairs)
    return Claim(name=inner[0].name, arguments=inner[0].arguments, repairs=repairs, cost=claim.cost + inner[0].cost + 1)


def _ambiguous(one: Read, other: Read) -> Read:
    """Neither call, but a sentence for the model."""
    first, second = (
        ", ".join(f"{claim.name[:60]}({claim.arguments[:60]})" for claim in r.claims) for r in (one, other)
    )
    return Read(start=one.start, end=one.end, damage=f"it can be read in two ways, as {first} or as {second}.")


def _cost(read: Read, names: Names) -> tuple[bool, int]:
    """The order of preference: calls of known tools first, then the cheapest."""
    return not all(names.knows(claim.name) for claim in read.claims), sum(claim.cost for claim in read.claims)


def _calls(read: Read, names: Names) -> list[tuple[tuple[str, ...], object]]:
    return [_call(claim, names) for claim in read.claims]


def _call(claim: Claim, names: Names) -> tuple[tuple[str, ...], object]:
    """The call, independent of its spelling."""
    return names.find(claim.name) or (claim.name,), msgspec.json.decode(claim.arguments)
