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


_OPTIONS = 200
"""Maximum number of a list's values that are looked at to name some."""


def in_words(error: "ValidationError", path: Sequence[str | int]) -> Problem:
    """The problem that an error of the validator stands for, at that path."""
    found = cut_text(msgspec.json.encode(error.instance).decode())
    return Problem(path=dotted(path), rule=error.kind.name, expected=_expected(error), found=found)


def missing(name: str, path: Sequence[str | int]) -> Problem:
    """The problem of an object at that path without a member of that name."""
    return Problem(path=dotted([*path, name]), rule="required", expected="a value (required)", found="nothing")


def unexpected(name: str, value: Json, path: Sequence[str | int]) -> Problem:
    """The problem of an object at that path with a member of that name."""
    where, expected = dotted([*path, name]), "no argument of that name"
    return Problem(path=where, rule="additionalProperties", expected=expected, found=shown_value(value))


def unmatched(pattern: str, value: Json, path: Sequence[str | int]) -> Problem:
    """The problem of a text at that path in which the pattern is not found."""
    expected = f"text that matches {cut_text(pattern, 200)}"
    return Problem(path=dotted(path), rule="pattern", expected=expected, found=shown_value(value))


def unlisted(part: dict[str, Json], value: Json, path: Sequence[str | int]) -> Problem:
    """The problem of a value at that path that is not among those that the part lists."""
    found, options = shown_value(value), part.get("enum")
    if "const" in part or not isinstance(options, list):
        return Problem(path=dotted(path), rule="const", expected=shown_value(part.get("const")), found=found)
    expected = "one of " + cut_text(", ".join(map(shown_value, options[:_OPTIONS])), 400)
    return Problem(path=dotted(path), rule="enum", expected=expected, found=found)


def _expected(error: "ValidationError") -> str:
    """What the rule demands, as the object of "expected …"."""
    from jsonschema_rs import ValidationErrorKind  # noqa: PLC0415 - it takes longer to import than most of forge

    match error.kind:
        case ValidationErrorKind.Type(types=types):
            return " or ".join(types)
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
