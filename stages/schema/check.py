"""Arguments checked against a tool's schema, with their problems in words."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import Raw, Struct

from stages.decoding import decode, decode_or, nested, sound
from stages.schema.coercion import coerce
from stages.schema.judging import Judge, Place, SchemaError, compiled
from stages.schema.value import (
    MAX_DEPTH,
    Json,
    any_json,
    cut_text,
    dotted,
    kinds,
    members_of,
    names_in,
    pairs_lost,
    shown_value,
    types_of,
)

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError


# Schemas that the validator refuses, reduced to the part that arguments can be checked against.


_MOST_BYTES = 500_000
"""Maximum total bytes of the schemas that are compiled to reduce one."""


def readable_schema(parameters: bytes | Raw) -> Raw:
    """The schema, reduced if necessary to the part that arguments can be checked against.

    In a reduced schema, members whose own schema cannot be used accept any value, and so do the last of very many
    members. `required` stays, and so does `additionalProperties`, if it is a boolean. A schema that is not one of an
    object becomes `{"type": "object"}`.
    """
    if _compiles(parameters):
        return Raw(bytes(parameters))
    schema = _object_in(parameters)
    shared = {name: schema[name] for name in ("$defs", "definitions") if name in schema}
    shared = shared if _compiles(_encoded(shared)) else {}
    kept: dict[str, Json] = {}
    left = _MOST_BYTES
    for name, one in members_of(schema).items():
        alone = _encoded(shared, {name: one}) if left > 0 else b""
        left -= len(bytes(alone))
        kept[name] = one if left > 0 and _compiles(alone) else True
    names, others = names_in(schema.get("required")), schema.get("additionalProperties")
    rest: dict[str, Json] = {"additionalProperties": others} if isinstance(others, bool) else {}
    return _encoded({**shared, "required": [*dict.fromkeys(names)], **rest}, kept)


def _compiles(schema: bytes | Raw) -> bool:
    try:
        compiled(schema)
    except SchemaError:
        return False
    return True


def _object_in(text: bytes | Raw) -> Mapping[str, Json]:
    """The JSON object in the text; an empty one for any other value, or if it is nested too deeply."""
    value = {} if nested(bytes(text), MAX_DEPTH) else decode_or(any_json, bytes(text), {})
    return value if isinstance(value, dict) else {}


def _encoded(keywords: Mapping[str, Json], properties: Mapping[str, Json] | None = None) -> Raw:
    return Raw(msgspec.json.encode({"type": "object", "properties": properties or {}, **keywords}))


# Problems: why arguments do not fit their schema, in words for the model that wrote them.


class Problem(Struct, frozen=True, kw_only=True):
    """What is wrong at one place in the arguments.

    `path` is the place (`items[2].qty`, empty for the whole), `rule` the keyword of JSON Schema (`type`, `required`,
    `enum` …), or `json`, `size`, `depth` or `unique` for arguments that are not even checked. `expected` completes the
    sentence "expected …"; `found` is the value as JSON, cut to 80 characters.
    """

    path: str
    rule: str
    expected: str
    found: str


_OPTIONS = 200
"""Maximum number of listed values that are considered for a message; its length is limited, too."""


def _expected(error: "ValidationError") -> str:
    """What the rule requires, as the object of "expected …"."""
    from jsonschema_rs import ValidationErrorKind  # noqa: PLC0415 - it takes longer to import than most of forge

    match error.kind:
        case ValidationErrorKind.Type(types=types):
            return " or ".join(types)
        case ValidationErrorKind.Format(format=name):
            return f"text in the format {name}"
        case _:
            words = _LIMITS.get(error.kind.name)
            return words.format(error.kind.value) if words else _keeps_rule(error.kind.name)


def _keeps_rule(rule: str) -> str:
    """What a rule without an entry in `_LIMITS` requires."""
    return f"a value that keeps the rule {rule}"


_LIMITS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} members",
    "maxProperties": "at most {} members",
    "uniqueItems": "items that all differ",
}
"""What keywords with a limit require; the limit replaces the braces."""


# Where a value does not fit its schema: the smallest places, each with the rule that it breaks.
#
# The validator's own list of errors for the whole value is not used, because it grows exponentially with the depth if a
# schema refers to itself in alternatives. Only its verdicts on parts are used, and its errors about single rules.

_MOST = 5
"""Maximum number of problems in a message: a model fixes few at a time, and the first ones often cause the others."""

_LOOKED_AT = 50
"""Maximum number of problems to choose these from."""

_LOCAL = frozenset(
    {"type", "enum", "const", "pattern", "format", "multipleOf", "uniqueItems", "required", "dependentRequired"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"}
    | {"minItems", "maxItems", "minProperties", "maxProperties"}
)
"""Rules about a value itself, not about its members or items."""

_TOLD_HERE = frozenset({"required", "enum", "const", "pattern"})
"""Rules that are checked here, because the validator's errors would copy the value or the list for each."""

_FOLLOWED = frozenset(
    {"$ref", "allOf", "anyOf", "oneOf", "properties", "additionalProperties", "items", "prefixItems"}
    | {"additionalItems", "$defs", "definitions", "$schema", "title", "description", "default", "examples"}
)
"""Keywords whose parts are searched themselves, and keywords that require nothing."""

_Found = tuple[int, Problem]
"""A problem, and its depth in the value."""


def problems(value: Json, judge: Judge) -> tuple[Problem, ...]:
    """The first few problems of a value that does not fit, at least one. The deepest, most specific ones come first."""
    found = sorted(islice(_in(value, Place(judge, judge.schema.root)), _LOOKED_AT), key=lambda each: -each[0])
    named = tuple(dict.fromkeys(problem for _, problem in found))[:_MOST]
    return named or (
        Problem(path="", rule="schema", expected="arguments that fit the schema", found=shown_value(value)),
    )


def _in(value: Json, at: Place) -> Iterator[_Found]:
    # An undeclared member is its object's problem.
    if (at.path and not at.rules) or at.fits(value) or not at.lasts():
        return
    led = False
    for found in _elsewhere(value, at):
        led = True
        yield found
    for problem in _here(value, at):
        led = True
        yield len(at.path), problem
    if not led:
        rule = next((keyword for keyword in at.rules if keyword not in _LOCAL | _FOLLOWED), "schema")
        yield len(at.path), _problem(at, rule, _keeps_rule(rule), value)


def _elsewhere(value: Json, at: Place) -> Iterator[_Found]:
    """The problems in the parts that this part leads to."""
    for place in at.conjuncts():
        yield from _in(value, place)
    for branches in at.alternatives():
        yield from _alternative(value, branches, at)
    match value:
        case dict():
            for _, child, place in at.members(value):
                yield from _in(child, place)
        case list():
            for _, item, place in at.items(value):
                yield from _in(item, place)
        case _:
            pass


def _alternative(value: Json, branches: list[Place], at: Place) -> Iterator[_Found]:
    """The problems in the alternative that was clearly meant; otherwise one problem that names the alternatives."""
    if any(branch.fits(value) for branch in branches):
        return
    meant = [branch for branch in branches if _plausible(value, branch)]
    if len(meant) == 1:
        yield from _in(value, meant[0])
        return
    expected = cut_text(" or ".join(dict.fromkeys(_wanted(branch) for branch in meant or branches)), 400)
    yield len(at.path), _problem(at, "anyOf", expected, value)


def _plausible(value: Json, at: Place) -> bool:
    """Whether the value has a type that the part allows, and the values of members that mark the alternative."""
    if not at.lasts() or not all(_plausible(value, place) for place in at.conjuncts()):
        return False
    types = types_of(at.rules)
    if types and not kinds(value) & set(types):
        return False
    return not isinstance(value, dict) or all(
        at.judge.lists(at.member(name).rules, value[name]) for name in _marks(at) & value.keys()
    )


def _marks(at: Place) -> set[str]:
    """The members with a `const` or an `enum`, which distinguish alternatives (such as `type`)."""
    listed = members_of(at.rules).items()
    return {name for name, part in listed if isinstance(part, dict) and ("const" in part or "enum" in part)}


def _wanted(at: Place) -> str:
    """What the part expects, in a word or two."""
    part, types = at.rules, types_of(at.rules)
    if "const" in part:
        return shown_value(part["const"])
    if isinstance(options := part.get("enum"), list):
        return ", ".join(map(shown_value, options[:20]))
    if types:
        marks = "".join(f" with {name} {_wanted(at.member(name))}" for name in sorted(_marks(at)))
        return " or ".join(types) + marks
    return next((_wanted(place) for place in at.conjuncts() if place.lasts()), "another value")


def _here(value: Json, at: Place) -> Iterator[Problem]:
    """The problems with the part's own rules."""
    rules = at.rules
    if isinstance(value, dict):
        for name in names_in(rules.get("required")):
            if name not in value:
                where = dotted((*at.path, name))
                yield Problem(path=where, rule="required", expected="a value (required)", found="nothing")
        if rules.get("additionalProperties") is False:
            known, patterns = members_of(rules), rules.get("patternProperties")
            named = patterns if isinstance(patterns, dict) else {}
            for name, child in value.items():
                if name not in known and not any(at.judge.finds(pattern, name) for pattern in named):
                    yield _problem(at, "additionalProperties", "no argument of that name", child, name)
    for error in at.judge.own(rules, _LOCAL - _TOLD_HERE).iter_errors(value):
        yield _problem(at, error.kind.name, _expected(error), value)
    pattern, options = rules.get("pattern"), rules.get("enum")
    if isinstance(pattern, str) and isinstance(value, str) and not at.judge.finds(pattern, value):
        yield _problem(at, "pattern", f"text that matches {cut_text(pattern, 200)}", value)
    if not at.judge.lists(rules, value):
        if "const" in rules:
            yield _problem(at, "const", shown_value(rules["const"]), value)
        elif isinstance(options, list):
            listed = ", ".join(map(shown_value, options[:_OPTIONS]))
            yield _problem(at, "enum", f"one of {cut_text(listed, 400)}", value)


def _problem(at: Place, rule: str, expected: str, value: Json, *member: str) -> Problem:
    """The problem of a value with the rule there, or of that member of it."""
    return Problem(path=dotted((*at.path, *member)), rule=rule, expected=expected, found=shown_value(value))


# The check of a tool's arguments: from JSON text to canonical JSON that fits the schema, or the problems.

_LONGEST = 1_000_000
"""Maximum characters of arguments."""

_REPAIRS = 20
"""Maximum number of repairs that are listed, because the list stays in the history with the call."""

_BETTER = re.compile(r'\d[.eE]|"(?:null|None)"')
"""Found in arguments that may fit, but that coercion may still improve: 2.0 to 2, "null" to null."""


class Fits(Struct, frozen=True, kw_only=True):
    """Arguments that fit, as JSON text in the model's order of names, and the coercions that were needed."""

    arguments: str
    repairs: tuple[str, ...] = ()


class Misfit(Struct, frozen=True, kw_only=True):
    """Arguments that do not fit: at least one problem, the most specific first."""

    problems: tuple[Problem, ...]


class Check(Protocol):
    """Checks arguments given as JSON text. Never raises, whatever the text."""

    def __call__(self, text: str, /) -> Fits | Misfit:
        """The arguments as they fit, or their problems."""
        ...


_PARTS = 3
"""Maximum number of unchecked parts that are named."""


def unchecked(parameters: bytes | Raw) -> str:
    """A sentence that names the parts of the schema that cost too much to check, so that any value fits them.

    Empty if there are none. Raises SchemaError like `checker`.
    """
    parts = compiled(parameters).unchecked
    more = f" and {len(parts) - _PARTS} more" if len(parts) > _PARTS else ""
    listed = f"{', '.join(parts[:_PARTS])}{more}"
    return f"some of its schema costs too much to check, so that any value fits there: {listed}" if parts else ""


def checker(parameters: bytes | Raw) -> Check:
    """The check of arguments against this JSON Schema, compiled once for a tool.

    Values are coerced only if they do not fit and the coerced ones do (`stages.schema.coercion`). Formats that the
    validator does not know are ignored, and parts that would take too long to check are `unchecked`. Raises SchemaError
    for anything but the JSON Schema of an object, and for a `$ref` that leads out of the schema: nothing is ever
    fetched.
    """
    schema = compiled(parameters)
    improves = any(name in bytes(parameters) for name in (b'"integer"', b'"null"'))

    def check(text: str, /) -> Fits | Misfit:
        value = _decoded(text)
        if isinstance(value, Problem):
            return Misfit(problems=(value,))
        repairs: tuple[str, ...] = ()
        if isinstance(value, str):
            value, repairs = _unquoted(value), ("JSON text to object",)
        if not isinstance(value, dict):
            expected = "one JSON object with the arguments"
            return Misfit(problems=(Problem(path="", rule="type", expected=expected, found=shown_value(value)),))
        # Arguments that fit need no coercion, except for those that `_BETTER` finds.
        quick, better = schema.quick(len(text)), improves and bool(_BETTER.search(text))
        fits = quick and schema.whole.is_valid(value)
        if better or not fits:
            judge = Judge(schema, len(text))
            if quick:
                judge.learn(value, fits=fits)
            value, coerced = coerce(value, judge, improve=better)
            repairs += coerced
            if quick:
                judge.learn(value, fits=schema.whole.is_valid(value))
            fits = judge.fits(schema.root, value)
            if judge.exhausted and not quick:
                return Misfit(problems=(_too_much(text),))
            if not fits:
                return Misfit(problems=problems(value, judge))
        return Fits(arguments=msgspec.json.encode(value).decode(), repairs=_few(repairs) if repairs else ())

    return check


def _decoded(text: str) -> Json | Problem:
    if len(text) > _LONGEST:
        found = f"{len(text)} characters"
        return Problem(path="", rule="size", expected=f"at most {_LONGEST} characters of arguments", found=found)
    if nested(text, MAX_DEPTH):  # looked at in the text: the walks over a decoded value are recursive
        expected = f"at most {MAX_DEPTH} levels of nesting"
        return Problem(path="", rule="depth", expected=expected, found=cut_text(text))
    try:
        value = decode(any_json, text)
    except msgspec.DecodeError as error:
        expected = f"one JSON object with the arguments, {{}} for none ({error})"
        # A lone surrogate cannot be encoded, so no later text that quotes it could be sent.
        found = sound(cut_text(text))
        return Problem(path="", rule="json", expected=expected, found=found or "nothing")
    if pairs_lost(text, value):
        return Problem(path="", rule="unique", expected="each argument only once", found=cut_text(text))
    return value


def _too_much(text: str) -> Problem:
    expected = "arguments with fewer values, which can be checked against all alternatives of the schema"
    return Problem(path="", rule="size", expected=expected, found=cut_text(text))


def _unquoted(text: str) -> Json:
    """The object in the text, if the model encoded its arguments twice; else the text."""
    value = _decoded(text)
    return value if isinstance(value, dict) else text


def _few(repairs: tuple[str, ...]) -> tuple[str, ...]:
    more = len(repairs) - _REPAIRS
    return repairs if more <= 0 else (*repairs[:_REPAIRS], f"and {more} more")
