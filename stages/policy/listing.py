"""Listing: the values that a tool has listed, with each of which another has to be called."""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from stages.grounding.identifiers import is_own
from stages.ledger import Success
from stages.repair.decoding import decode
from stages.schema.value import ANY_VALUE, Json
from stages.tool import Grounded, ToolSpec


class Each(Struct, frozen=True, kw_only=True):
    """Each value that `tool` has listed in its latest result: one call for each of them, as `argument`.

    The values are the texts and whole numbers in the outermost members called `member`. Without a `member`: in those
    called like the argument, or `id` where the tool's name says whose ids they are; if there are none, the items of a
    result that is a list. A result that is no JSON lists nothing.
    """

    tool: str
    argument: str
    member: str = ""


def value_of(result: str) -> Json:
    """What a result says: a JSON value, or else the text."""
    try:
        return decode(_any, result)
    except msgspec.DecodeError:
        return result


def listed_in(each: Each, result: str) -> tuple[str, ...]:
    """The values that a result lists, each once, in its order; whole numbers as they are written."""
    value = value_of(result)
    for level in _levels(value):
        found = [(name, text) for name, one in level if (text := _text(one))]
        if named := [text for name, text in found if _is_meant(each, name)]:
            return tuple(dict.fromkeys(named))
    items = value if isinstance(value, list) and not each.member else ()
    return tuple(dict.fromkeys(text for one in items if (text := _text(one))))


def _levels(value: Json) -> Iterator[list[tuple[str, Json]]]:
    """The members within a value, level by level: what is deeper belongs to something else."""
    level: list[tuple[str, Json]] = [("", value)]
    while level:
        level = [inner for name, one in level for inner in _within(name, one)]
        yield level


def _within(name: str, value: Json) -> Iterable[tuple[str, Json]]:
    match value:
        case dict():
            return value.items()
        case list():
            return ((name, item) for item in value)
        case _:
            return ()


def not_yet_called(each: Each, tool: str, done: tuple[Success, ...]) -> tuple[str, ...] | None:
    """The listed values with which no successful call of `tool` was made; None where nothing was listed for it yet.

    `done` are the successes that count.
    """
    listed = next((here.values for one in reversed(done) for here in one.listed if here.tool == tool), None)
    if not listed:
        return listed
    made = {_called_with(each, one.arguments) for one in done if one.name == tool}
    return tuple(value for value in listed if value not in made)


def limited_argument(tool: ToolSpec, argument: str, values: tuple[str, ...]) -> ToolSpec:
    """The tool with that argument, a text or a whole number, limited to the first of these values; others as it is."""
    schema = msgspec.json.decode(tool.parameters, type=dict[str, Raw])
    properties = msgspec.json.decode(schema.get("properties", b"{}"), type=dict[str, Raw])
    own: Json = _any.decode(properties.get(argument, b"{}"))
    if not isinstance(own, dict) or own.keys() - ANY_VALUE:
        return tool
    kind = own.get("type")
    allowed = [_number(value) if kind == "integer" else value for value in values[:_OFFERED]]
    if kind not in ("string", "integer") or None in allowed:
        return tool
    properties[argument] = Raw(msgspec.json.encode({"type": kind, "enum": allowed}))
    schema["properties"] = Raw(msgspec.json.encode(properties))
    return replace(tool, parameters=Raw(msgspec.json.encode(schema)))


def _called_with(each: Each, arguments: str) -> str:
    value = _members.decode(arguments).get(each.argument)
    return "" if value is None else _text(_any.decode(value))


def _is_meant(each: Each, name: str) -> bool:
    if each.member:
        return name == each.member
    return bool(name) and is_own(Grounded(argument=each.argument, sources=(each.tool,)), name, each.tool)


def _text(value: Json) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _number(value: str) -> int | None:
    return int(value) if value.removeprefix("-").isdecimal() and len(value) < _DIGITS else None


_OFFERED = 64
"""Values that a constraint offers at a time."""

_DIGITS = 20
"""Characters of a whole number that can be an id."""

_any: msgspec.json.Decoder[Json] = msgspec.json.Decoder()
_members: msgspec.json.Decoder[dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw])
