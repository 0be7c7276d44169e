"""The check of a tool's arguments: JSON text in; canonical JSON that fits the schema, or what is wrong, out."""

import re
from collections.abc import Callable

import jsonschema_rs
import msgspec
from jsonschema_rs import FancyRegexOptions, RegexOptions, ValidationError, Validator, ValidatorMap
from msgspec import Raw, Struct

from stages.schema.coerce import Compiled, coerce
from stages.schema.problems import Problem, not_an_object, not_json, problems
from stages.schema.value import DEEPEST, Json, cut, dotted, pairs_lost, shown, too_deep

LONGEST = 1_000_000
"""Characters of arguments that are read at all."""

REPAIRS = 20
"""Repairs that are named one by one; provenance stays in the history as long as the call does."""

BACKTRACKING = 10_000
"""Steps that a pattern with look-around or back-references may take; other patterns take linear time."""


FLOAT = re.compile(r"\d[.eE]")


class SchemaError(ValueError):
    """A tool's parameters are not a JSON Schema that forge can check by; says where and why."""


class Fits(Struct, frozen=True, kw_only=True):
    """Arguments that fit: canonical JSON text, names in the model's order, and each coercion that it took."""

    arguments: str
    repairs: tuple[str, ...] = ()


class Misfit(Struct, frozen=True, kw_only=True):
    """Arguments that don't fit: at least one problem, the most specific first."""

    problems: tuple[Problem, ...]


Check = Callable[[str], Fits | Misfit]
"""Judges arguments given as JSON text. Never raises, whatever the text."""


def checker(parameters: bytes | Raw) -> Check:
    """The check of arguments against this JSON Schema (D8), compiled once for a tool.

    Values are coerced only where they don't fit and their coercion does (`stages.schema.coerce`). Formats
    that the validator doesn't know are no constraint. Raises SchemaError for what is no JSON Schema of an
    object, and for a `$ref` that leads out of the schema: nothing is ever fetched.
    """
    schema = _schema(parameters)
    validator, parts = _compiled(schema)
    compiled = Compiled(root=schema, parts=parts)

    def check(text: str) -> Fits | Misfit:
        value = _decoded(text)
        if isinstance(value, Problem):
            return Misfit(problems=(value,))
        repairs: tuple[str, ...] = ()
        if isinstance(value, str):
            value, repairs = _unquoted(value), ("JSON text to object",)
        if not isinstance(value, dict):
            return Misfit(problems=(not_an_object(value),))
        mended, coerced = coerce(value, compiled, len(text)) if _may_change(validator, value, text) else (value, ())
        if not validator.is_valid(mended):
            return Misfit(problems=problems(validator.iter_errors(mended)))
        return Fits(arguments=msgspec.json.encode(mended).decode(), repairs=_few(repairs + coerced))

    return check


def _may_change(validator: Validator, value: Json, text: str) -> bool:
    """Whether to look for coercions: what fits has none, but for 2.0 that is better written 2."""
    return FLOAT.search(text) is not None or not validator.is_valid(value)


def _decoded(text: str) -> Json | Problem:
    if len(text) > LONGEST:
        found = f"{len(text)} characters"
        return Problem(path="", rule="size", expected=f"at most {LONGEST} characters of arguments", found=found)
    try:
        value: Json = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError) as error:
        return not_json(text, str(error))
    except RecursionError:
        return _deep(text)
    if too_deep(value):
        return _deep(text)
    if pairs_lost(text, value):
        return Problem(path="", rule="unique", expected="each argument only once", found=cut(text))
    return value


def _deep(text: str) -> Problem:
    return Problem(path="", rule="depth", expected=f"at most {DEEPEST} levels of nesting", found=cut(text))


def _unquoted(text: str) -> Json:
    """The object that the text is, where a model quoted its arguments once more (B12); else the text."""
    value = _decoded(text)
    return value if isinstance(value, dict) else text


def _few(repairs: tuple[str, ...]) -> tuple[str, ...]:
    more = len(repairs) - REPAIRS
    return repairs if more <= 0 else (*repairs[:REPAIRS], f"and {more} more")


def _schema(parameters: bytes | Raw) -> dict[str, Json]:
    try:
        schema: Json = msgspec.json.decode(parameters)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise SchemaError(f"the schema is no JSON: {error}") from error
    if not isinstance(schema, dict):
        raise SchemaError(f"the schema is {shown(schema)}; write a JSON object")
    if too_deep(schema):
        raise SchemaError(f"the schema is nested deeper than {DEEPEST} levels")
    types = schema.get("type", "object")
    if types != "object" and not (isinstance(types, list) and "object" in types):
        raise SchemaError(f'the schema is wrong at "type": arguments are an object, not {types!r}; write "object"')
    return schema


def _compiled(schema: dict[str, Json]) -> tuple[Validator, ValidatorMap]:
    try:
        return _with(schema, RegexOptions())
    except SchemaError:
        # A pattern with look-around or back-references has no linear-time form; its steps are bounded instead.
        return _with(schema, FancyRegexOptions(backtrack_limit=BACKTRACKING))


def _with(schema: dict[str, Json], patterns: RegexOptions | FancyRegexOptions) -> tuple[Validator, ValidatorMap]:
    try:
        validator = jsonschema_rs.validator_for(schema, pattern_options=patterns, validate_formats=True, offline=True)
        parts = jsonschema_rs.validator_map_for(schema, pattern_options=patterns, validate_formats=True, offline=True)
    except ValidationError as error:
        raise SchemaError(_explained(error)) from error
    return validator, parts


def _explained(error: ValidationError) -> str:
    where = error.instance_path
    if error.kind.name == "$ref":
        return f'the schema has a "$ref" that does not resolve: {error.message}; it may only refer to its own parts'
    keyword = next((step for step in reversed(where) if isinstance(step, str)), "schema")
    return f'the schema is wrong at "{dotted(where)}": {cut(error.message, 200)} (keyword "{keyword}")'
