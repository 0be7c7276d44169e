"""Problems: how arguments do not fit their schema, in words for the model that wrote them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from stages.repair.decoding import sound
from stages.schema.value import Json, cut_text, dotted, shown_value

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError


class Problem(Struct, frozen=True, kw_only=True):
    """What does not fit at one place.

    `path` is the place (`items[2].qty`, empty for the whole), `rule` JSON Schema's keyword (`type`, `required`, `enum`
    …; `json`, `size`, `depth` and `unique` for arguments that are not even checked), `found` the value as JSON, cut to
    80 characters.
    """

    path: str
    rule: str
    expected: str
    found: str


def in_words(error: "ValidationError", path: Sequence[str | int]) -> list[Problem]:
    """The problems that an error of the validator stands for, at that path: one for each unexpected name."""
    from jsonschema_rs import ValidationErrorKind  # noqa: PLC0415 - it takes longer to import than most of forge

    match error.kind:
        case ValidationErrorKind.Required(property=name):
            return [
                Problem(path=dotted([*path, name]), rule="required", expected="a value (required)", found="nothing")
            ]
        case ValidationErrorKind.AdditionalProperties(unexpected=names):
            return [_unexpected(error, name, path) for name in names]
        case _:
            return [Problem(path=dotted(path), rule=error.kind.name, expected=_expected(error), found=_found(error))]


def _unexpected(error: "ValidationError", name: str, path: Sequence[str | int]) -> Problem:
    value = error.instance.get(name) if isinstance(error.instance, dict) else None
    where = dotted([*path, name])
    return Problem(path=where, rule=error.kind.name, expected="no argument of that name", found=_shown(value))


def _found(error: "ValidationError") -> str:
    return _shown(error.instance)


def _shown(value: object) -> str:
    return cut_text(msgspec.json.encode(value).decode())


def _expected(error: "ValidationError") -> str:
    """What the rule demands, as the object of "expected …"."""
    from jsonschema_rs import ValidationErrorKind  # noqa: PLC0415 - as above

    match error.kind:
        case ValidationErrorKind.Type(types=types):
            return " or ".join(types)
        case ValidationErrorKind.Enum(options=options):
            return "one of " + cut_text(", ".join(map(_shown, options)), 400)
        case ValidationErrorKind.Constant(expected_value=value):
            return _shown(value)
        case ValidationErrorKind.Pattern(pattern=pattern):
            return f"text that matches {cut_text(pattern, 200)}"
        case ValidationErrorKind.Format(format=name):
            return f"text in the format {name}"
        case _:
            words = _LIMITS.get(error.kind.name)
            return words.format(error.kind.value) if words else keeps_rule(error.kind.name)


def keeps_rule(rule: str) -> str:
    """What a rule without words of its own demands."""
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
"""What keywords with a limit demand; the limit replaces the braces."""


def not_an_object(value: Json) -> Problem:
    """The problem of arguments that are JSON but no object."""
    return Problem(path="", rule="type", expected="one JSON object with the arguments", found=shown_value(value))


def not_json(text: str, reason: str) -> Problem:
    """The problem of arguments that are not JSON; `reason` is the decoder's."""
    expected = f"one JSON object with the arguments, {{}} for none ({reason})"
    # Half a surrogate pair would spoil every later text that quotes it.
    found = sound(cut_text(text))
    return Problem(path="", rule="json", expected=expected, found=found or "nothing")
