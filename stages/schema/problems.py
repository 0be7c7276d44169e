"""Problems: what about arguments does not fit their schema, in words for the model that wrote them."""

from collections.abc import Iterable, Sequence
from itertools import islice

import msgspec
from jsonschema_rs import ValidationError, ValidationErrorKind
from msgspec import Struct

from stages.schema.value import Json, cut, dotted, shown

MOST = 5
"""Problems that one text names: a model mends few at a time, and the first cause the others."""

LOOKED_AT = 50
"""Errors of the validator that are looked at to choose those."""


class Problem(Struct, frozen=True, kw_only=True):
    """What does not fit at one place.

    `path` is the place (`items[2].qty`, empty for the whole), `rule` JSON Schema's keyword (`type`,
    `required`, `enum` …; `json`, `size`, `depth` and `unique` for arguments that are not even looked at),
    `found` the value as JSON, cut to 80 characters.
    """

    path: str
    rule: str
    expected: str
    found: str


def problems(errors: Iterable[ValidationError]) -> tuple[Problem, ...]:
    """The first few problems behind the validator's errors, the deepest, being the most specific, first."""
    leaves = [leaf for error in islice(errors, LOOKED_AT) for leaf in _leaves(error)]
    leaves.sort(key=lambda leaf: -len(leaf.instance_path))
    found = dict.fromkeys(problem for leaf in leaves[:LOOKED_AT] for problem in _problems(leaf))
    return tuple(found)[:MOST]


def _leaves(error: ValidationError) -> list[ValidationError]:
    """The errors inside the one alternative that was meant, where that is clear; else the error itself."""
    match error.kind:
        case ValidationErrorKind.AnyOf(context=branches) | ValidationErrorKind.OneOfNotValid(context=branches):
            meant = [branch for branch in branches if not any(_is_another_type(e, error) for e in branch)]
            return [leaf for e in meant[0] for leaf in _leaves(e)] if len(meant) == 1 else [error]
        case _:
            return [error]


def _is_another_type(error: ValidationError, outer: ValidationError) -> bool:
    return error.kind.name == "type" and error.instance_path == outer.instance_path


def _problems(error: ValidationError) -> list[Problem]:
    path = error.instance_path
    match error.kind:
        case ValidationErrorKind.Required(property=name):
            return [_missing([*path, name])]
        case ValidationErrorKind.AdditionalProperties(unexpected=names):
            return [_unexpected(error, name) for name in islice(names, MOST)]
        case ValidationErrorKind.UnevaluatedProperties(unexpected=names):
            return [_unexpected(error, name) for name in islice(names, MOST)]
        case ValidationErrorKind.PropertyNames(error=inner):
            return [Problem(path=dotted(path), rule="propertyNames", expected=_expected(inner), found=_found(inner))]
        case _:
            return [Problem(path=dotted(path), rule=error.kind.name, expected=_expected(error), found=_found(error))]


def _missing(path: Sequence[str | int]) -> Problem:
    return Problem(path=dotted(path), rule="required", expected="a value, it is required", found="nothing")


def _unexpected(error: ValidationError, name: str) -> Problem:
    value = error.instance.get(name) if isinstance(error.instance, dict) else None
    path = dotted([*error.instance_path, name])
    return Problem(path=path, rule=error.kind.name, expected="no argument of that name", found=_shown(value))


def _found(error: ValidationError) -> str:
    return _shown(error.instance)


def _shown(value: object) -> str:
    return cut(msgspec.json.encode(value).decode())


def _expected(error: ValidationError) -> str:
    """What the rule asks for, as the object of "expected …"."""
    match error.kind:
        case ValidationErrorKind.Type(types=types):
            return " or ".join(types)
        case ValidationErrorKind.Enum(options=options):
            return "one of " + cut(", ".join(map(_shown, options)), 400)
        case ValidationErrorKind.Constant(expected_value=value):
            return _shown(value)
        case ValidationErrorKind.AnyOf(context=branches) | ValidationErrorKind.OneOfNotValid(context=branches):
            return cut(", or ".join(dict.fromkeys(_expected(branch[0]) for branch in branches if branch)), 400)
        case ValidationErrorKind.Pattern(pattern=pattern):
            return f"text that matches {cut(pattern, 200)}"
        case ValidationErrorKind.Format(format=name):
            return f"text in the format {name}"
        case _:
            return _limit(error)


def _limit(error: ValidationError) -> str:
    words = LIMITS.get(error.kind.name)
    return words.format(error.kind.value) if words else f"a value that keeps the rule {error.kind.name}"


LIMITS = {
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
"""What keywords with a limit ask for; the limit comes where the braces are."""


def not_an_object(value: Json) -> Problem:
    """For arguments that are JSON, but no object."""
    return Problem(path="", rule="type", expected="one JSON object with the arguments", found=shown(value))


def not_json(text: str, reason: str) -> Problem:
    """For arguments that are no JSON; `reason` is the decoder's."""
    expected = f"one JSON object with the arguments, {{}} for none ({reason})"
    return Problem(path="", rule="json", expected=expected, found=cut(text) or "nothing")
