"""A compiled schema: its validator, what a check with it may cost, and what in it is not checked."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw, Struct

from stages.repair.decoding import decode
from stages.schema.searches import Search, engine, searches
from stages.schema.subschemas import Step, with_parts, within
from stages.schema.value import MAX_BYTES, MAX_DEPTH, Json, cut_text, dotted, shown_value, too_deep
from stages.schema.visits import MOST_VISITS, visits

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

_MOST_WORK = 10_000_000
"""Maximum units that the validator may take by itself; see `stages.schema.searches`."""

_UNFOLLOWED = frozenset({"$dynamicRef", "$recursiveRef", "$anchor"})
"""References that only the validator follows."""


class SchemaError(ValueError):
    """A tool's parameters are not a JSON Schema that forge can check with; says where and why."""


class Compiled(Struct, frozen=True, kw_only=True):
    """A schema, and its validator.

    `draft` is the dialect that it names, `documents` whether parts of it are documents of their own. `searches` are its
    patterns. `unchecked` names what costs too much to check, so any value fits there. `rate` is the work that the
    validator may do for each character of arguments; None: more than can be counted.
    """

    root: Json
    draft: str
    documents: bool
    whole: "Validator"
    searches: Mapping[str, Search]
    unchecked: tuple[str, ...]
    rate: int | None

    def quick(self, size: int) -> bool:
        """Whether the validator by itself checks arguments of that many characters in bounded time."""
        return self.rate is not None and self.rate * size <= _MOST_WORK


def compiled(parameters: bytes | Raw) -> Compiled:
    """The schema, compiled. Raises SchemaError; nothing that it refers to is ever fetched."""
    size, unchecked = len(bytes(parameters)), list[str]()
    schema = _read(parameters) if size <= MAX_BYTES else {}
    if size > MAX_BYTES:
        unchecked.append(f"all (it has {size} bytes, at most {MAX_BYTES} are read)")
    known = searches(schema)
    root = _affordable(known, unchecked, (), schema)
    ways = visits(root)
    if ways >= MOST_VISITS and any(part.keys() & _UNFOLLOWED for part in within(root)):
        unchecked.append("references that are no pointers")
    kept = {pattern: search for pattern, search in known.items() if search}
    around = any(search.around for search in kept.values())
    return Compiled(
        root=root,
        draft=str(root.get("$schema", "")),
        documents=any(isinstance(part.get("$id"), str) for part in within(root) if part is not root),
        whole=_validator(root, around=around),
        searches=kept,
        unchecked=tuple(unchecked),
        rate=None
        if around or ways >= MOST_VISITS
        else 3 * (ways + _compared(root)) + sum(search.rate for search in kept.values()),
    )


def _compared(root: dict[str, Json]) -> int:
    """How many arrays and objects its enums list. The validator compares a value with each of them."""
    listed = (options for part in within(root) if isinstance(options := part.get("enum"), list))
    return sum(isinstance(option, list | dict) for options in listed for option in options)


def _affordable(
    known: Mapping[str, Search | None], unchecked: list[str], path: Step, part: dict[str, Json]
) -> dict[str, Json]:
    """The part without patterns that cost too much."""

    def inner(step: Step, one: Json) -> Json:
        return _affordable(known, unchecked, (*path, *step), one) if isinstance(one, dict) else one

    left = with_parts(part, inner)
    pattern, named = part.get("pattern"), part.get("patternProperties")
    if isinstance(pattern, str) and known.get(pattern, _UNKNOWN) is None:
        unchecked.append(f"the pattern at {dotted(path)}")
        del left["pattern"]
    if isinstance(named, dict) and any(
        (search := known.get(name, _UNKNOWN)) is None or search.around for name in named
    ):
        unchecked.append(f"{dotted((*path, 'patternProperties'))}")
        left = {keyword: rule for keyword, rule in left.items() if keyword not in _OF_OTHER_MEMBERS}
    return left


_UNKNOWN = Search(0, around=False)
_OF_OTHER_MEMBERS = frozenset({"patternProperties", "additionalProperties", "unevaluatedProperties"})

_any: msgspec.json.Decoder[Json] = msgspec.json.Decoder()


def _read(parameters: bytes | Raw) -> dict[str, Json]:
    try:
        schema = decode(_any, bytes(parameters))
    except msgspec.DecodeError as error:
        raise SchemaError(f"the schema is no JSON: {error}") from error
    if not isinstance(schema, dict):
        raise SchemaError(f"the schema is {shown_value(schema)}; write a JSON object")
    if too_deep(schema):
        raise SchemaError(f"the schema is nested deeper than {MAX_DEPTH} levels")
    types = schema.get("type", "object")
    if types != "object" and not (isinstance(types, list) and "object" in types):
        raise SchemaError(f'the schema is wrong at "type": arguments are an object, not {shown_value(types)}')
    return schema


def _validator(schema: dict[str, Json], *, around: bool) -> "Validator":
    from jsonschema_rs import ValidationError, validator_for  # noqa: PLC0415 - it takes longer to import than most of forge

    try:
        return validator_for(schema, pattern_options=engine(around=around), validate_formats=True, offline=True)
    except ValidationError as error:
        raise SchemaError(_explained(error)) from error


def _explained(error: "ValidationError") -> str:
    where = error.instance_path
    if error.kind.name == "$ref":
        return f"the schema refers to what is not in it: {error.message}; refer to its own parts, as in #/$defs/name"
    keyword = next((step for step in reversed(where) if isinstance(step, str)), "schema")
    return f'the schema is wrong at "{dotted(where)}": {cut_text(error.message, 200)} (keyword "{keyword}")'
